/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c - the libraries that are measured beside Strata, opened at run time.
 *
 * No header of theirs is used: the few functions called are declared in bench.h by their standard (CBLAS) or documented
 * interfaces. What a library is follows from its symbols, so any CBLAS can be given under any name. */
#include "bench.h"
#include <ctype.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Names that distributions use, tried in order. */
static const struct {
    const char *name;
    const char *files[6];
} usual[] = {
    {"openblas", {"libopenblas.so.0", "libopenblas.so"}},
    {"blis", {"libblis.so.4", "libblis.so.5", "libblis.so"}},
    {"aocl", {"libblis-mt.so.5", "libblis-mt.so.4", "libblis-mt.so"}},
    {"mkl", {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"}},
    {"libxsmm", {"libxsmm.so.2", "libxsmm.so"}},
    {"onednn", {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"}},
};
enum { USUAL = sizeof usual / sizeof *usual };

void peers_note(peers *ps, const char *fmt, ...)
{
    size_t used = strlen(ps->notes);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ps->notes + used, sizeof ps->notes - used, fmt, ap);
    va_end(ap);
    used = strlen(ps->notes);
    if (used + 1 < sizeof ps->notes) ps->notes[used] = '\n', ps->notes[used + 1] = 0;
}

static void *open_library(const char *file)
{
    int flags = RTLD_NOW | RTLD_LOCAL;
    /* A program that itself offers cblas_* would otherwise catch the peer's calls to its own functions. */
    if (dlsym(RTLD_DEFAULT, "cblas_sgemm")) flags |= RTLD_DEEPBIND;
    return dlopen(file, flags);
}

static void *symbol(void *lib, const char *name) { return dlsym(lib, name); }
#define LOOK(field, name) *(void **)&(field) = symbol(p->lib, name)

static void describe_cblas(peer *p)
{
    const char *(*config)(void), *(*core)(void), *(*blis_version)(void), *(*blis_arch)(int);
    int (*blis_id)(void);
    void (*mkl_version)(char *, int);
    LOOK(config, "openblas_get_config");
    LOOK(core, "openblas_get_corename");
    LOOK(blis_version, "bli_info_get_version_str");
    LOOK(blis_arch, "bli_arch_string");
    LOOK(blis_id, "bli_arch_query_id");
    LOOK(mkl_version, "MKL_Get_Version_String");
    if (config) {
        snprintf(p->version, sizeof p->version, "%.120s; kernels %s", config(), core ? core() : "?");
        const char *forced = getenv("OPENBLAS_CORETYPE");
        if (forced) snprintf(p->version + strlen(p->version), 60, " (OPENBLAS_CORETYPE=%.30s)", forced);
    } else if (blis_version) {
        snprintf(p->version, sizeof p->version, "BLIS %.80s; kernels %.40s", blis_version(),
                 blis_arch && blis_id ? blis_arch(blis_id()) : "?");
    } else if (mkl_version) {
        mkl_version(p->version, (int)sizeof p->version);
        p->version[sizeof p->version - 1] = 0;
        for (size_t n = strlen(p->version); n && p->version[n - 1] == ' '; n--) p->version[n - 1] = 0;
    } else {
        snprintf(p->version, sizeof p->version, "a CBLAS");
    }
}

static bool recognise(peer *p, char *why, size_t n)
{
    if (symbol(p->lib, "dnnl_engine_create")) {
        p->kind = PEER_DNNL;
        p->dnnl = dnnl_open(p->lib, p->version, sizeof p->version);
        if (!p->dnnl)
            snprintf(why, n, "its oneDNN interface is neither 2.x nor 3.x, or its engine does not start");
        return p->dnnl != NULL;
    }
    if (symbol(p->lib, "libxsmm_dispatch_gemm")) {
        void (*init)(void);
        const char *(*arch)(void);
        p->kind = PEER_XSMM;
        LOOK(init, "libxsmm_init");
        LOOK(arch, "libxsmm_get_target_arch");
        if (init) init();
        snprintf(p->version, sizeof p->version, "libxsmm; JIT target %.60s", arch ? arch() : "?");
        return true;
    }
    LOOK(p->sgemm, "cblas_sgemm");
    LOOK(p->dgemm, "cblas_dgemm");
    LOOK(p->sgemv, "cblas_sgemv");
    LOOK(p->dgemv, "cblas_dgemv");
    p->kind = PEER_CBLAS;
    if (!p->sgemm || !p->dgemm) {
        snprintf(why, n, "it has neither cblas_sgemm nor libxsmm_dispatch_gemm nor dnnl_engine_create");
        return false;
    }
    int (*layer)(int);
    LOOK(layer, "MKL_Set_Threading_Layer");
    if (layer && !getenv("MKL_THREADING_LAYER")) layer(3); /* GNU OpenMP, which the others use too */
    describe_cblas(p);
    return true;
}

static bool already_open(const peers *ps, void *lib)
{
    for (int i = 0; i < ps->n; i++)
        if (ps->p[i].lib == lib) return true;
    return false;
}

static bool has_avx512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512dq");
#else
    return false;
#endif
}

static bool has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

static void reopen(peer *p, const char *file, const char *variable, const char *value)
{
    dlclose(p->lib);
    setenv(variable, value, 1);
    p->lib = open_library(file);
    if (p->lib) {
        void (*init)(void);
        LOOK(init, "bli_init"); /* BLIS reads its variable then, OpenBLAS when it is loaded */
        if (init) init();
    }
    unsetenv(variable);
}

/* A peer older than the processor may take kernels of 2004 for it (OpenBLAS 0.3.21 takes Prescott's on a 2024 Xeon, BLIS 2.1
 * plain C on Zen 5). It is then closed and opened again with the best kernels that the processor can run, as its manual says to. */
static void wake(peers *ps, peer *p, const char *file)
{
    static const char *const old[] = {"Prescott", "Core2",  "Nehalem",    "Generic",
                                      "Unknown",  "Katmai", "Coppermine", "Northwood"};
    const char *(*core)(void), *(*arch)(int);
    int (*id)(void);
    void (*init)(void);
    const void *(*lookup)(int);
    LOOK(core, "openblas_get_corename");
    LOOK(init, "bli_init");
    LOOK(arch, "bli_arch_string");
    LOOK(id, "bli_arch_query_id");
    LOOK(lookup, "bli_gks_lookup_id");
    if (core && has_avx2() && !getenv("OPENBLAS_CORETYPE")) {
        char had[32];
        bool weak = false;
        snprintf(had, sizeof had, "%s", core());
        for (size_t i = 0; i < sizeof old / sizeof *old; i++) weak = weak || strcasecmp(had, old[i]) == 0;
        if (!weak) return;
        reopen(p, file, "OPENBLAS_CORETYPE", has_avx512() ? "SkylakeX" : "Haswell");
        peers_note(ps, "%s took %s kernels by itself; opened again with OPENBLAS_CORETYPE=%s", p->name, had,
                   has_avx512() ? "SkylakeX" : "Haswell");
    } else if (init && arch && id && has_avx512() && !getenv("BLIS_ARCH_TYPE")) {
        init();
        char had[32];
        snprintf(had, sizeof had, "%s", arch(id()));
        if (strcmp(had, "skx") == 0 || strncmp(had, "zen4", 4) == 0 || strncmp(had, "zen5", 4) == 0 ||
            strcmp(arch(0), "skx") != 0)
            return;
        if (lookup && lookup(0)) {
            reopen(p, file, "BLIS_ARCH_TYPE", "0");
            peers_note(ps, "%s took %s kernels by itself; opened again with BLIS_ARCH_TYPE=0 (skx)", p->name,
                       had);
        } else {
            peers_note(
                ps,
                "%s took %s kernels; BLIS_ARCH_TYPE=0 asks for its AVX-512 ones if it was built with them",
                p->name, had);
        }
    }
}

/* 1 opened, 0 not there (or already open under another name), -1 there but no use (said in why) */
static int open_one(peers *ps, const char *name, const char *file, char *why, size_t n)
{
    if (ps->n == BENCH_PEERS) {
        snprintf(why, n, "there is room for %d peers only", BENCH_PEERS);
        return -1;
    }
    peer *p = &ps->p[ps->n];
    memset(p, 0, sizeof *p);
    p->lib = open_library(file);
    if (!p->lib) {
        const char *e = dlerror();
        snprintf(why, n, "%s", e ? e : "cannot be opened");
        return 0;
    }
    if (already_open(ps, p->lib)) {
        dlclose(p->lib);
        snprintf(why, n, "it is the same library as another peer");
        return 0;
    }
    snprintf(p->name, sizeof p->name, "%s", name);
    snprintf(p->path, sizeof p->path, "%s", file);
    wake(ps, p, file);
    if (!p->lib || !recognise(p, why, n)) return -1;
    /* dladdr tells which file the loader took for a bare name */
    Dl_info info;
    void *probe = symbol(p->lib, p->kind == PEER_CBLAS  ? "cblas_sgemm"
                                 : p->kind == PEER_DNNL ? "dnnl_engine_create"
                                                        : "libxsmm_dispatch_gemm");
    if (dladdr(probe, &info) && info.dli_fname) snprintf(p->path, sizeof p->path, "%s", info.dli_fname);
    ps->n++;
    return 1;
}

static bool in_list(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = list; p; p = strchr(p, ',')) {
        if (*p == ',') p++;
        if (strncmp(p, name, len) == 0 && (p[len] == 0 || p[len] == ',')) return true;
    }
    return false;
}

/* STRATA_PEER_OPENBLAS for openblas */
static const char *from_environment(const char *name)
{
    char var[64];
    snprintf(var, sizeof var, "STRATA_PEER_%s", name);
    for (char *c = var; *c; c++) *c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
    const char *v = getenv(var);
    return v && *v ? v : NULL;
}

/* The path given for `name` on the command line (the last one counts) or in the environment; NULL when none. */
static const char *given_path(const char *name, const char *const *given, int n)
{
    size_t len = strlen(name);
    const char *path = from_environment(name);
    for (int i = 0; i < n; i++)
        if (strncmp(given[i], name, len) == 0 && given[i][len] == '=') path = given[i] + len + 1;
    return path;
}

static bool open_given(peers *ps, const char *name, const char *path)
{
    char why[256] = "";
    if (open_one(ps, name, path, why, sizeof why) == 1) return true;
    cli_bad("bench", "peer %s=%s: %s", name, path, why);
    return false;
}

/* Every word of --peers is a name that a peer can have. */
static bool only_names(const char *only, const char *const *given, int n)
{
    for (const char *p = only; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        const size_t len = strcspn(p, ",");
        char word[32];
        const char *names[USUAL + 1] = {"none"};
        snprintf(word, sizeof word, "%.*s", (int)len, p);
        bool known = len == 0 || strcmp(word, "none") == 0;
        for (int u = 0; u < USUAL; u++) {
            names[u + 1] = usual[u].name;
            known = known || strcmp(word, usual[u].name) == 0;
        }
        for (int i = 0; i < n; i++) known = known || (strncmp(given[i], p, len) == 0 && given[i][len] == '=');
        if (known) continue;
        const char *near = cli_nearest(word, names, USUAL + 1, sizeof *names);
        cli_bad("bench",
                "--peers: there is no peer '%.*s'%s%s%s; known: none openblas blis aocl mkl libxsmm onednn, "
                "and the "
                "names of --peer NAME=PATH",
                (int)len, p, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        return false;
    }
    return true;
}

bool peers_open(peers *ps, const char *const *given, int given_count, const char *only)
{
    /* Workers of the peers should go to sleep soon after a call, since another's turn follows; both variables are read when
     * the library is loaded, and neither was found to slow a peer's own batch. */
    setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
    setenv("GOMP_SPINCOUNT", "20000", 0);
    for (int i = 0; i < given_count; i++) {
        const char *eq = strchr(given[i], '=');
        if (!eq || eq == given[i] || !eq[1] || eq - given[i] > 20) {
            cli_bad("bench", "--peer takes NAME=PATH or NAME=off, not '%.80s'", given[i]);
            return false;
        }
    }
    if (!only_names(only, given, given_count)) return false;
    for (int u = 0; u < USUAL; u++) {
        const char *name = usual[u].name, *path = given_path(name, given, given_count);
        if ((only && !in_list(only, name)) || (path && strcmp(path, "off") == 0)) continue;
        if (path) {
            if (!open_given(ps, name, path)) return false;
            continue;
        }
        char why[256] = "";
        int opened = 0;
        for (int f = 0; f < 6 && usual[u].files[f] && opened == 0; f++)
            opened = open_one(ps, name, usual[u].files[f], why, sizeof why);
        if (opened < 0) peers_note(ps, "%s was found but cannot be used: %s", name, why);
    }
    /* names of the user's own */
    for (int i = 0; i < given_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "%.*s", (int)(strchr(given[i], '=') - given[i]), given[i]);
        bool known = false;
        for (int u = 0; u < USUAL; u++) known = known || strcmp(usual[u].name, name) == 0;
        if (known || strcmp(strchr(given[i], '=') + 1, "off") == 0) continue;
        if (!open_given(ps, name, strchr(given[i], '=') + 1)) return false;
    }
    if (only && *only)
        for (int u = 0; u < USUAL; u++) {
            bool found = false;
            for (int i = 0; i < ps->n; i++) found = found || strcmp(ps->p[i].name, usual[u].name) == 0;
            if (in_list(only, usual[u].name) && !found)
                peers_note(ps, "%s was asked for but not found; give its path: --peer %s=PATH", usual[u].name,
                           usual[u].name);
        }
    if (!ps->n && !(only && strcmp(only, "none") == 0))
        peers_note(ps, "no peer was found (apt-get install libopenblas0-pthread libblis4-pthread "
                       "libdnnl-dev, or --peer NAME=PATH)");
    return true;
}

void peers_threads(const peers *ps, int threads)
{
    for (int i = 0; i < ps->n; i++) {
        const peer *p = &ps->p[i];
        void (*openblas)(int), (*blis)(int64_t), (*mkl)(int), (*omp)(int);
        LOOK(openblas, "openblas_set_num_threads");
        LOOK(blis, "bli_thread_set_num_threads");
        LOOK(mkl, "MKL_Set_Num_Threads");
        LOOK(omp, "omp_set_num_threads"); /* found among the library's dependencies */
        if (openblas) openblas(threads);
        if (blis) blis(threads);
        if (mkl) mkl(threads);
        if (omp) omp(threads);
    }
}
