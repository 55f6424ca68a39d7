/* SPDX-License-Identifier: Apache-2.0 */
/* frameworks.c - PyTorch in each package folder against GPU, driver and cuDNN; the environment of the program itself. */
#include "doctor/machine.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct torch {
    const st_site *site;
    char version[48], cuda[16]; /* cuda "" : not told, "none": CPU build */
    char release[16], variant[16];
    int row; /* of the table pytorch, -1 */
} torch;

static void python_value(const char *text, const char *key, char *out, size_t n)
{
    size_t k = strlen(key);
    out[0] = 0;
    for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        if (strncmp(p, key, k) || (p[k] != ' ' && p[k] != ':' && p[k] != '=')) continue;
        const char *eq = strchr(p, '='), *end = strchr(p, '\n');
        if (!eq || (end && eq > end)) continue;
        eq += 1 + strspn(eq + 1, " ");
        if (strncmp(eq, "None", 4) == 0)
            st_put(out, n, "none");
        else if (*eq == '\'' || *eq == '"')
            st_put(out, n, "%.*s", (int)strcspn(eq + 1, "'\"\n"), eq + 1);
        return;
    }
}

static bool read_torch(const st_machine *m, const st_site *s, torch *t)
{
    const char *dist = st_dist_version(s, "torch");
    memset(t, 0, sizeof *t);
    t->site = s;
    if (!dist) return false;
    char path[400];
    st_put(path, sizeof path, "%s/torch/version.py", s->path);
    char *text = st_root_read(m->root, path, 65536, NULL);
    python_value(text, "__version__", t->version, sizeof t->version);
    python_value(text, "cuda", t->cuda, sizeof t->cuda);
    free(text);
    if (!t->version[0]) st_put(t->version, sizeof t->version, "%s", dist);
    const char *plus = strchr(t->version, '+');
    if (!t->cuda[0] && plus && strncmp(plus, "+cpu", 4) == 0) st_put(t->cuda, sizeof t->cuda, "none");
    if (!t->cuda[0] && plus && strncmp(plus, "+cu", 3) == 0 && strlen(plus) >= 6)
        st_put(t->cuda, sizeof t->cuda, "%.*s.%s", (int)strlen(plus + 3) - 1, plus + 3,
               plus + strlen(plus) - 1);
    int a = 0, b = 0;
    sscanf(t->version, "%d.%d", &a, &b);
    st_put(t->release, sizeof t->release, "%d.%d", a, b);
    for (const char *p = t->cuda, *q = "cu"; p && isdigit((unsigned char)*p); p = NULL) {
        st_put(t->variant, sizeof t->variant, "%s", q);
        for (const char *c = t->cuda; *c; c++)
            if (isdigit((unsigned char)*c))
                st_put(t->variant + strlen(t->variant), sizeof t->variant - strlen(t->variant), "%c", *c);
    }
    const st_table *table = st_facts_table(m->facts, "pytorch");
    t->row = -1;
    for (int i = 0; i < table->rows && t->row < 0; i++)
        if (!strcmp(st_table_get(table, i, "torch"), t->release) &&
            !strcmp(st_table_get(table, i, "variant"), t->variant))
            t->row = i;
    return true;
}

static void no_code(st_doctor *d, const torch *t, enum st_state bad)
{
    const st_machine *m = &d->m;
    const char *list = st_table_get(st_facts_table(m->facts, "pytorch"), t->row, "sm_list_x86_64");
    for (int i = 0; i < m->gpu_count && t->row >= 0; i++) {
        const st_pci_gpu *g = &m->gpus[i];
        if (!g->known || !g->gpu.cc || st_cc_in_list(list, g->gpu.cc) != 0) continue;
        st_finding *f =
            st_report(d, ST_FRAMEWORKS, bad, "torch_no_code",
                      "PyTorch %s (CUDA %s) has no code for the %s (sm_%d): \"no kernel image is available\"",
                      t->version, t->cuda, g->gpu.name, g->gpu.cc);
        st_evidence(f, "%s/torch/version.py; this build has code for sm_ %.*s", t->site->path,
                    (int)strcspn(list, "("), list);
        if (g->gpu.cc >= 100)
            st_fix(f, "pip install --force-reinstall torch --index-url "
                      "https://download.pytorch.org/whl/cu128 (2.7 or later; driver 570.26 or later)");
        else
            st_fix(f,
                   "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu126 "
                   "(the builds with CUDA 12.6 keep sm_50 to sm_90)");
        st_avoid(f, "reinstalling driver, CUDA or cuDNN: they are not at fault");
        return;
    }
}

static void check_torch(st_doctor *d, const torch *t)
{
    const st_machine *m = &d->m;
    bool gpu = m->gpu_count > 0 || (m->wsl && m->libcuda);
    enum st_state bad = t->site->active ? ST_FINDING_FAULT : ST_FINDING_WARNING;
    st_finding *f;
    if (!strcmp(t->cuda, "none")) {
        f = st_report(d, ST_FRAMEWORKS, gpu ? bad : ST_FINDING_OK, gpu ? "torch_cpu" : "torch",
                      "PyTorch %s is a build without CUDA", t->version);
        st_evidence(f, "%s/torch/version.py: cuda = None", t->site->path);
        if (!gpu) return;
        st_fix(f, "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu%s",
               m->driver[0] && atoi(m->driver) < 580 ? "126" : "130");
        st_avoid(f, "installing CUDA or cuDNN: a CPU build uses neither");
        return;
    }
    f = st_report(d, ST_FRAMEWORKS, ST_FINDING_OK, "torch", "PyTorch %s, built for CUDA %s%s", t->version,
                  t->cuda[0] ? t->cuda : "?", t->site->active ? "" : " (not the active Python)");
    st_evidence(f, "%s/torch/version.py", t->site->path);
    const char *need = t->cuda[0] ? st_cuda_min_driver(m->facts, t->cuda, false) : NULL;
    if (need && m->driver[0] && !m->wsl && st_version_cmp(m->driver, need) < 0 &&
        !(m->libcuda && strstr(m->libcuda->real, "/compat/"))) {
        f = st_report(d, ST_FRAMEWORKS, bad, "torch_driver_old",
                      "PyTorch %s needs driver %s or newer for CUDA %s; %s is loaded", t->version, need,
                      t->cuda, m->driver);
        st_evidence(f, "%s/torch/version.py; %s", t->site->path, m->driver_from);
        st_fix(f,
               "update the driver to branch %d or newer, or: pip install --force-reinstall torch --index-url "
               "https://download.pytorch.org/whl/cu%s",
               atoi(need), st_version_cmp(m->driver, "525.60.13") >= 0 ? "126" : "118");
        st_avoid(f, "installing another CUDA toolkit: wheels do not use it");
        return;
    }
    no_code(d, t, bad);
    const st_table *vision = st_facts_table(m->facts, "torchvision");
    const char *have = st_dist_version(t->site, "torchvision");
    int row = st_table_find(vision, "torch", t->release);
    if (have && row >= 0) {
        const char *want = st_table_get(vision, row, "torchvision");
        if (strncmp(have, want, strlen(want)) || isdigit((unsigned char)have[strlen(want)])) {
            f = st_report(d, ST_FRAMEWORKS, bad, "vision_mismatch",
                          "torchvision %s does not belong to torch %s (it wants %s.x): \"operator "
                          "torchvision::nms does not exist\"",
                          have, t->version, want);
            st_evidence(f, "%s", t->site->path);
            st_fix(f,
                   "pip install --force-reinstall torch torchvision --index-url "
                   "https://download.pytorch.org/whl/%s   (both in one command)",
                   *t->variant ? t->variant : "cu126");
        }
    }
    const char *cudnn = st_dist_version(t->site, "nvidia-cudnn"),
               *wants = st_table_get(st_facts_table(m->facts, "pytorch"), t->row, "cudnn");
    if (cudnn && *wants && st_version_cmp(cudnn, wants) < 0) {
        f = st_report(
            d, ST_FRAMEWORKS, ST_FINDING_WARNING, "torch_cudnn_old",
            "PyTorch %s was built with cuDNN %s; the wheel beside it is %s (another package lowered it)",
            t->version, wants, cudnn);
        st_evidence(f, "%s/nvidia_cudnn_*.dist-info", t->site->path);
        st_fix(f, "pip install nvidia-cudnn-cu%c%c==%s", t->cuda[0], t->cuda[1], wants);
    }
}

void st_probe_frameworks(st_doctor *d)
{
    const st_machine *m = &d->m;
    int n = 0;
    for (int pass = 0; pass < 2; pass++) /* the active Python first */
        for (int i = 0; i < m->site_count && n < 16; i++) {
            torch t;
            if (m->sites[i].active == (pass == 0) && read_torch(m, &m->sites[i], &t)) check_torch(d, &t), n++;
        }
    static const char *const others[] = {"tensorflow", "jax", "cupy-cuda12x", "cupy-cuda13x",
                                         "onnxruntime-gpu"};
    for (int i = 0; i < m->site_count; i++)
        for (int k = 0; k < ST_COUNT(others); k++) {
            const char *v = st_dist_version(&m->sites[i], others[k]);
            if (v && n++ < 24)
                st_evidence(st_report(d, ST_FRAMEWORKS, ST_FINDING_OK, "framework", "%s %s", others[k], v),
                            "%s", m->sites[i].path);
        }
    if (!n)
        st_report(d, ST_FRAMEWORKS, ST_FINDING_ABSENT, "no_framework",
                  "no PyTorch, TensorFlow, JAX, CuPy or ONNX Runtime in the Python folders that were found");
}

/* ---- application: what the environment asks for -------------------------------------------------------------------------- */
static void check_visible(st_doctor *d)
{
    const st_machine *m = &d->m;
    const char *v = st_environ(m, "CUDA_VISIBLE_DEVICES");
    if (!v || (!m->gpu_count && !(m->wsl && m->libcuda))) return;
    st_finding *f;
    char *end;
    long index = strtol(v, &end, 10);
    bool number = end != v, hidden = !*v || (number && index < 0) || !strcmp(v, "NoDevFiles");
    if (hidden || (number && m->gpu_count && index >= m->gpu_count)) {
        f = st_report(d, ST_APPLICATION, ST_FINDING_FAULT, "visible_devices",
                      "CUDA_VISIBLE_DEVICES=%s%s hides every GPU from programs started here (error 100)",
                      *v ? v : "(empty)", hidden ? "" : " names a GPU that is not there and");
        st_evidence(f, "/proc/self/environ; %d GPU%s on the bus", m->gpu_count, m->gpu_count == 1 ? "" : "s");
        st_fix(f, "unset CUDA_VISIBLE_DEVICES   (a list that ends at the first index that does not exist)");
        st_avoid(f, "reinstalling anything");
        return;
    }
    st_evidence(st_report(d, ST_APPLICATION, ST_FINDING_NOTE, "visible_subset",
                          "CUDA_VISIBLE_DEVICES=%s: programs see these GPUs only, numbered from 0", v),
                "/proc/self/environ");
}

void st_probe_application(st_doctor *d)
{
    st_machine *m = &d->m;
    int before = d->count;
    check_visible(d);
    char *mounts = st_root_read(m->root, "/proc/mounts", 1 << 20, NULL);
    const char *shm = mounts ? strstr(mounts, " /dev/shm tmpfs ") : NULL,
               *end = shm ? strchr(shm, '\n') : NULL, *size = shm ? strstr(shm, "size=65536k") : NULL;
    if (size && (!end || size < end) && *m->container && m->gpu_count) {
        st_finding *f = st_report(
            d, ST_APPLICATION, ST_FINDING_WARNING, "shm_small",
            "/dev/shm has 64 MB (Docker's default): too little for NCCL and for PyTorch data loaders");
        st_evidence(f, "/proc/mounts: /dev/shm size=65536k");
        st_fix(f, "docker run --shm-size=8g ... or --ipc=host; Kubernetes: an emptyDir with medium Memory on "
                  "/dev/shm");
    }
    free(mounts);
    if (d->count == before && m->environ_text)
        st_report(d, ST_APPLICATION, ST_FINDING_OK, "environment",
                  "the environment hides no GPU and redirects no library");
    else if (d->count == before)
        st_report(d, ST_APPLICATION, ST_FINDING_ABSENT, "no_environment",
                  "the environment of the programs is not recorded here");
}
