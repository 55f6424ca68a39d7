/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - the CUDA toolkits against the driver and the GPUs. */
#include "doctor/machine.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int major_of(const char *v) { return atoi(v); }

static bool compat_in_use(const st_machine *m)
{
    return m->libcuda && strstr(m->libcuda->real, "/compat/") != NULL;
}

static void against_driver(st_doctor *d, const st_toolkit *t)
{
    st_machine *m = &d->m;
    if (!m->driver[0] || m->wsl || !m->gpu_count) return;
    const char *need = st_cuda_min_driver(m->facts, t->version, false),
               *max = st_driver_cuda(m->facts, m->driver, NULL);
    st_finding *f;
    if (need && st_version_cmp(m->driver, need) < 0 && !compat_in_use(m)) {
        f = st_report(d, ST_RUNTIME, t->is_default ? ST_FINDING_FAULT : ST_FINDING_WARNING,
                      "toolkit_needs_driver", "CUDA %s needs driver %s or newer; %s is loaded (error 35)",
                      t->version, need, m->driver);
        st_evidence(f, "%s is CUDA %s; %s: %s", t->path, t->version, m->driver_from, m->driver);
        st_fix(f,
               "update the driver to %d or newer, or use a toolkit of CUDA %d (the driver supports up to %s)",
               atoi(need), major_of(max ? max : "0"), max ? max : "?");
        st_avoid(f, "reinstalling this toolkit");
        return;
    }
    if (max && st_version_cmp(t->version, max) > 0 && major_of(t->version) == major_of(max)) {
        char two[16];
        const char *dot = strchr(t->version, '.');
        st_put(two, sizeof two, "%.*s", dot ? (int)(dot - t->version + 1 + (int)strcspn(dot + 1, ".")) : 8,
               t->version);
        if (st_version_cmp(two, max) <= 0) return;
        f = st_report(d, ST_RUNTIME, ST_FINDING_WARNING, "toolkit_newer",
                      "CUDA %s is newer than the driver's %s, same major: compiled code (SASS) runs, PTX "
                      "made by it does not (error 222), since minor-version compatibility does not cover PTX",
                      t->version, max);
        st_evidence(f, "%s; driver %s", t->path, m->driver);
        st_fix(f,
               "compile for the GPU itself (-arch=sm_%d; NVRTC: --gpu-architecture=sm_%d and take the "
               "CUBIN), or a driver for CUDA %s, or NVRTC %s",
               m->oldest_cc, m->oldest_cc, two, max);
        st_avoid(f, "taking error 222 for an unsupported GPU");
    }
}

static void against_gpus(st_doctor *d, const st_toolkit *t)
{
    st_machine *m = &d->m;
    for (int i = 0; i < m->gpu_count; i++) {
        const st_gpu *g = &m->gpus[i].gpu;
        if (!m->gpus[i].known || !g->cc) continue;
        bool dropped = isdigit((unsigned char)g->last_toolkit[0]) &&
                       st_version_cmp(t->version, g->last_toolkit) > 0 &&
                       strncmp(t->version, g->last_toolkit, strlen(g->last_toolkit)) != 0;
        bool early =
            isdigit((unsigned char)g->first_toolkit[0]) && st_version_cmp(t->version, g->first_toolkit) < 0;
        if (!dropped && !early) continue;
        enum st_state state = t->is_default && t->has_nvcc ? ST_FINDING_FAULT : ST_FINDING_WARNING;
        st_finding *f = st_report(d, ST_RUNTIME, state, dropped ? "toolkit_drops_gpu" : "toolkit_before_gpu",
                                  "CUDA %s cannot compile for the %s (sm_%d): %s is the %s toolkit that can",
                                  t->version, g->name, g->cc, dropped ? g->last_toolkit : g->first_toolkit,
                                  dropped ? "last" : "first");
        st_evidence(f, "%s; GPU %s is 10de:%04x", t->path, m->gpus[i].bus, m->gpus[i].device);
        char dashed[16];
        st_put(dashed, sizeof dashed, "%s", g->last_toolkit);
        for (char *p = dashed; *p; p++)
            if (*p == '.') *p = '-';
        if (dropped)
            st_fix(f, "sudo apt install cuda-toolkit-%s and put /usr/local/cuda-%s/bin first in PATH", dashed,
                   g->last_toolkit);
        else
            st_fix(f, "install CUDA %s or newer", g->first_toolkit);
        if (dropped)
            st_avoid(f, "a newer driver: it shows a higher CUDA version and still has no code for this GPU");
        return;
    }
}

/* "x86_64-linux-gnu-gcc-13" behind /usr/bin/gcc; 0 when the name does not tell */
static int gcc_major(st_machine *m)
{
    char real[ST_PATH];
    if (!st_root_resolve(m->root, "/usr/bin/gcc", real)) return 0;
    const char *dash = strstr(real, "gcc-");
    return dash ? atoi(dash + 4) : 0;
}

/* The newest gcc that nvcc takes: what its own header says, else the table; 0: not known. */
static int gcc_limit(st_machine *m, const st_toolkit *t, char *where, size_t n)
{
    char path[256], two[16];
    st_put(path, sizeof path, "%s/include/crt/host_config.h", t->path);
    char *text = st_root_read(m->root, path, 1 << 16, NULL), *at = text ? strstr(text, "__GNUC__ > ") : NULL;
    int limit = at ? atoi(at + 11) : 0;
    free(text);
    st_put(where, n, "%s", path);
    if (limit) return limit;
    const char *dot = strchr(t->version, '.');
    st_put(two, sizeof two, "%.*s", dot ? (int)(dot - t->version + 1 + (int)strcspn(dot + 1, ".")) : 8,
           t->version);
    const st_table *table = st_facts_table(m->facts, "nvcc_host_compiler");
    st_put(where, n, "the table of host compilers");
    return atoi(st_table_get(table, st_table_find(table, "toolkit", two), "max_gcc"));
}

static void against_gcc(st_doctor *d, const st_toolkit *t)
{
    char where[256];
    int have = gcc_major(&d->m),
        limit = t->is_default && t->has_nvcc && have ? gcc_limit(&d->m, t, where, sizeof where) : 0;
    if (!limit || have <= limit) return;
    st_finding *f =
        st_report(d, ST_RUNTIME, ST_FINDING_WARNING, "nvcc_gcc",
                  "nvcc of CUDA %s takes gcc up to %d; the system's is %d (unsupported GNU version)",
                  t->version, limit, have);
    st_evidence(f, "/usr/bin/gcc; %s", where);
    st_fix(f, "sudo apt install g++-%d, then nvcc -ccbin g++-%d (CUDAHOSTCXX=g++-%d for CMake)", limit, limit,
           limit);
    st_avoid(f, "-allow-unsupported-compiler, but as a risk that you take knowingly");
}

void st_probe_runtime(st_doctor *d)
{
    st_machine *m = &d->m;
    char target[ST_PATH];
    struct stat s;
    if (st_root_lstat(m->root, "/usr/local/cuda", &s) && S_ISLNK(s.st_mode) &&
        !st_root_exists(m->root, "/usr/local/cuda")) {
        st_root_readlink(m->root, "/usr/local/cuda", target);
        st_finding *f = st_report(d, ST_RUNTIME, ST_FINDING_WARNING, "toolkit_broken_link",
                                  "/usr/local/cuda points to a toolkit that is not there");
        st_evidence(f, "/usr/local/cuda -> %s", target);
        st_fix(f,
               "sudo update-alternatives --config cuda, or sudo ln -sfn /usr/local/cuda-X.Y /usr/local/cuda");
    }
    for (int i = 0; i < m->toolkit_count; i++) {
        const st_toolkit *t = &m->toolkits[i];
        st_evidence(st_report(d, ST_RUNTIME, ST_FINDING_OK, "toolkit", "CUDA toolkit %s%s%s", t->version,
                              t->is_default ? " (default)" : "", t->has_nvcc ? "" : ", without nvcc"),
                    "%s", t->path);
        against_driver(d, t);
        against_gpus(d, t);
        against_gcc(d, t);
    }
    if (!m->toolkit_count)
        st_report(d, ST_RUNTIME, ST_FINDING_ABSENT, "no_toolkit",
                  "no CUDA toolkit: needed only to compile; programs and wheels bring their own runtime");
    /* the toolkit's stubs in LD_LIBRARY_PATH, which also hold no libcuda.so.1 that the loader's choice would show */
    const char *path = st_environ(m, "LD_LIBRARY_PATH"), *stub = path ? strstr(path, "/stubs") : NULL;
    bool said = false;
    for (int i = 0; i < d->count; i++) said |= strcmp(d->findings[i].id, "stub_on_path") == 0;
    if (stub && (!stub[6] || stub[6] == ':' || stub[6] == '/') && !said && m->gpu_count) {
        st_finding *f =
            st_report(d, ST_RUNTIME, ST_FINDING_FAULT, "stub_on_path",
                      "LD_LIBRARY_PATH holds the toolkit's stubs, which are for linking only (error 34)");
        st_evidence(f, "LD_LIBRARY_PATH=%.200s", path);
        st_fix(f, "take the stubs directory out of LD_LIBRARY_PATH; it belongs into LIBRARY_PATH or -L when "
                  "linking");
    }
}
