/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_peer.c - cuBLAS and cuBLASLt, opened at run time; our own declarations of the few functions that are called.
 *
 * They think in column-major: a row-major C = A B is their C' = B' A', so the operands change places. Enumerators are those of
 * NVIDIA's documentation (library_types.h, cublas_api.h, cublasLt.h). */
#include "cuda.h"
#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

typedef void *H;
typedef struct heuristic { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} heuristic;

enum { R_32F = 0, R_64F = 1, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14, R_8F_E4M3 = 28, R_8F_E5M2 = 29 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32I = 72, COMPUTE_FAST_TF32 = 77 };
enum {
    DESC_TRANSA = 3,
    DESC_TRANSB = 4,
    DESC_EPILOGUE = 7,
    DESC_BIAS = 8,
    DESC_FAST_ACCUM = 25,
    PREF_WORKSPACE = 1
};

struct cublas {
    void *blas, *lt;
    char path[512];
    H handle, lt_handle, stream;
    void *workspace;
    size_t workspace_bytes;
    strata_handle *h;
    int (*create)(H *), (*destroy)(H), (*set_stream)(H, H), (*set_workspace)(H, void *, size_t),
        (*version)(H, int *);
    int (*gemm)(H, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int,
                const void *, void *, int, int, int, int);
    int (*lt_create)(H *), (*lt_destroy)(H), (*desc_create)(H *, int, int),
        (*desc_set)(H, int, const void *, size_t), (*desc_destroy)(H),
        (*layout_create)(H *, int, uint64_t, uint64_t, int64_t), (*layout_destroy)(H), (*pref_create)(H *),
        (*pref_set)(H, int, const void *, size_t), (*pref_destroy)(H),
        (*find)(H, H, H, H, H, H, H, int, heuristic *, int *),
        (*matmul)(H, H, const void *, const void *, H, const void *, H, const void *, const void *, H, void *,
                  H, const void *, void *, size_t, H);
};

struct cublaslt {
    cublas *p;
    H desc, a, b, c;
    int count;
    heuristic answer[CUDA_ALGOS];
};

/* The loader's path first, then the toolkit and what pip installs. */
static void *open_one(const char *base, char *path, size_t n)
{
    static const char *const places[] = {"/usr/local/cuda*/lib64",
                                         "/usr/local/cuda*/targets/x86_64-linux/lib",
                                         "/usr/lib/x86_64-linux-gnu",
                                         "/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib",
                                         "/opt/*/.venv/lib/python3*/site-packages/nvidia/*/*/lib",
                                         "/usr/lib/python3*/site-packages/nvidia/*/lib",
                                         "/usr/local/lib/python3*/*-packages/nvidia/*/lib"};
    static const char *const versions[] = {"13", "12"};
    for (int v = 0; v < 2; v++) {
        char name[400];
        snprintf(name, sizeof name, "lib%s.so.%s", base, versions[v]);
        void *lib = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
        if (lib) return snprintf(path, n, "%.400s", name), lib;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            glob_t g;
            snprintf(name, sizeof name, "%s/lib%s.so.%s", places[i], base, versions[v]);
            if (glob(name, 0, NULL, &g) == 0) {
                for (size_t k = 0; k < g.gl_pathc && !lib; k++)
                    if ((lib = dlopen(g.gl_pathv[k], RTLD_NOW | RTLD_GLOBAL)))
                        snprintf(path, n, "%s", g.gl_pathv[k]);
                globfree(&g);
            }
            if (lib) return lib;
        }
    }
    return NULL;
}

static bool load(cublas *p)
{
    const struct {
        void *lib;
        const char *name;
        void *at;
    } need[] = {{p->blas, "cublasCreate_v2", &p->create},
                {p->blas, "cublasDestroy_v2", &p->destroy},
                {p->blas, "cublasSetStream_v2", &p->set_stream},
                {p->blas, "cublasSetWorkspace_v2", &p->set_workspace},
                {p->blas, "cublasGetVersion_v2", &p->version},
                {p->blas, "cublasGemmEx", &p->gemm},
                {p->lt, "cublasLtCreate", &p->lt_create},
                {p->lt, "cublasLtDestroy", &p->lt_destroy},
                {p->lt, "cublasLtMatmulDescCreate", &p->desc_create},
                {p->lt, "cublasLtMatmulDescSetAttribute", &p->desc_set},
                {p->lt, "cublasLtMatmulDescDestroy", &p->desc_destroy},
                {p->lt, "cublasLtMatrixLayoutCreate", &p->layout_create},
                {p->lt, "cublasLtMatrixLayoutDestroy", &p->layout_destroy},
                {p->lt, "cublasLtMatmulPreferenceCreate", &p->pref_create},
                {p->lt, "cublasLtMatmulPreferenceSetAttribute", &p->pref_set},
                {p->lt, "cublasLtMatmulPreferenceDestroy", &p->pref_destroy},
                {p->lt, "cublasLtMatmulAlgoGetHeuristic", &p->find},
                {p->lt, "cublasLtMatmul", &p->matmul}};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++) {
        void *f = dlsym(need[i].lib, need[i].name);
        if (!f) return false;
        memcpy(need[i].at, &f, sizeof f);
    }
    return true;
}

cublas *cublas_open(bench *b)
{
    cublas *p = calloc(1, sizeof *p);
    char lt_path[512] = "";
    int version = 0;
    if (!p) return NULL;
    p->h = b->h;
    p->lt = open_one("cublasLt", lt_path, sizeof lt_path);
    p->blas = open_one("cublas", p->path, sizeof p->path);
    p->workspace_bytes = (size_t)64 << 20;
    p->stream = strata_native_stream(b->h);
    if (!p->blas || !p->lt || !load(p)) {
        peers_note(&b->peers, "cuBLAS was not found: no peer");
        free(p);
        return NULL;
    }
    int r = p->create(&p->handle);
    if (r || p->lt_create(&p->lt_handle) || strata_alloc(b->h, p->workspace_bytes, &p->workspace)) {
        peers_note(&b->peers, "cuBLAS: cublasCreate says %d: no peer", r);
        free(p);
        return NULL;
    }
    p->set_stream(p->handle, p->stream);
    p->set_workspace(p->handle, p->workspace, p->workspace_bytes);
    p->version(p->handle, &version);
    if (b->peers.n < BENCH_PEERS) {
        peer *e = &b->peers.p[b->peers.n++];
        snprintf(e->name, sizeof e->name, "cublas");
        snprintf(e->version, sizeof e->version, "%d.%d.%d", version / 10000, version / 100 % 100,
                 version % 100);
        snprintf(e->path, sizeof e->path, "%.500s", p->path);
    }
    return p;
}

void cublas_close(cublas *p)
{
    if (!p) return;
    p->destroy(p->handle);
    p->lt_destroy(p->lt_handle);
    strata_free(p->h, p->workspace);
    free(p);
}

void *cublas_handle(const cublas *p) { return p->handle; }
void *cublas_symbol(const cublas *p, const char *name) { return dlsym(p->blas, name); }

static int kind_of(strata_type t)
{
    switch (t) {
    case STRATA_F32: return R_32F;
    case STRATA_F64: return R_64F;
    case STRATA_F16: return R_16F;
    case STRATA_BF16: return R_16BF;
    case STRATA_F8E4M3: return R_8F_E4M3;
    case STRATA_F8E5M2: return R_8F_E5M2;
    case STRATA_I8: return R_8I;
    case STRATA_I32: return R_32I;
    default: return -1;
    }
}

static int compute_of(const cublas_product *q)
{
    return q->in == STRATA_F64  ? COMPUTE_64F
           : q->in == STRATA_I8 ? COMPUTE_32I
           : q->tf32            ? COMPUTE_FAST_TF32
                                : COMPUTE_32F;
}

typedef union scalar {
    float f;
    double d;
    int i;
} scalar;

static void scalars(const cublas_product *q, scalar *one, scalar *zero)
{
    memset(one, 0, sizeof *one);
    memset(zero, 0, sizeof *zero);
    if (q->in == STRATA_F64)
        one->d = 1;
    else if (q->in == STRATA_I8)
        one->i = 1;
    else
        one->f = 1;
}

int cublas_gemm(cublas *p, const cublas_product *q)
{
    scalar one, zero;
    const int lda = (int)(q->ta ? q->m : q->k), ldb = (int)(q->tb ? q->k : q->n), t = kind_of(q->in);
    scalars(q, &one, &zero);
    if (q->in == STRATA_F8E4M3 || q->in == STRATA_F8E5M2) return 15; /* only cublasLt has them */
    return p->gemm(p->handle, q->tb, q->ta, (int)q->n, (int)q->m, (int)q->k, &one, q->b, t, ldb, q->a, t, lda,
                   &zero, q->c, kind_of(q->out), (int)q->n, compute_of(q), -1);
}

cublaslt *cublaslt_make(cublas *p, const cublas_product *q, int *count)
{
    cublaslt *l = calloc(1, sizeof *l);
    H pref = NULL;
    *count = 0;
    if (!l) return NULL;
    l->p = p;
    const int scale = q->in == STRATA_F64  ? R_64F
                      : q->in == STRATA_I8 ? R_32I
                                           : R_32F,
              ta = q->tb, tb = q->ta;
    const signed char fast = 1;
    bool ok = !p->desc_create(&l->desc, compute_of(q), scale) &&
              !p->desc_set(l->desc, DESC_TRANSA, &ta, sizeof ta) &&
              !p->desc_set(l->desc, DESC_TRANSB, &tb, sizeof tb);
    if (ok && q->epilogue)
        ok = !p->desc_set(l->desc, DESC_EPILOGUE, &q->epilogue, sizeof q->epilogue) &&
             !p->desc_set(l->desc, DESC_BIAS, &q->bias, sizeof q->bias);
    if (ok && q->fast) ok = !p->desc_set(l->desc, DESC_FAST_ACCUM, &fast, 1);
    const uint64_t m = (uint64_t)q->n, n = (uint64_t)q->m, k = (uint64_t)q->k;
    ok = ok && !p->layout_create(&l->a, kind_of(q->in), ta ? k : m, ta ? m : k, (int64_t)(ta ? k : m)) &&
         !p->layout_create(&l->b, kind_of(q->in), tb ? n : k, tb ? k : n, (int64_t)(tb ? n : k)) &&
         !p->layout_create(&l->c, kind_of(q->out), m, n, (int64_t)m) && !p->pref_create(&pref) &&
         !p->pref_set(pref, PREF_WORKSPACE, &p->workspace_bytes, sizeof p->workspace_bytes);
    if (ok && p->find(p->lt_handle, l->desc, l->a, l->b, l->c, l->c, pref, CUDA_ALGOS, l->answer, &l->count))
        l->count = 0;
    if (pref) p->pref_destroy(pref);
    if (!ok || l->count == 0) {
        cublaslt_free(l);
        return NULL;
    }
    *count = l->count;
    return l;
}

int cublaslt_run(cublaslt *l, int i, const cublas_product *q)
{
    scalar one, zero;
    cublas *p = l->p;
    scalars(q, &one, &zero);
    return p->matmul(p->lt_handle, l->desc, &one, q->b, l->a, q->a, l->b, &zero, q->c, l->c, q->c, l->c,
                     l->answer[i].algo, p->workspace, p->workspace_bytes, p->stream);
}

void cublaslt_free(cublaslt *l)
{
    if (!l) return;
    if (l->desc) l->p->desc_destroy(l->desc);
    if (l->a) l->p->layout_destroy(l->a);
    if (l->b) l->p->layout_destroy(l->b);
    if (l->c) l->p->layout_destroy(l->c);
    free(l);
}
