/* SPDX-License-Identifier: Apache-2.0 */
/* blas12.c - `strata bench blas`: levels 1 and 2 against the peers' cblas functions, column-major (level 3 is blas3.c's). What works in place is given numbers
 * that stay what they are over any number of calls: factors next to 0 or 1, triangles next to the identity. */
#include "bench.h"
#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum op {
    AXPY,
    SCAL,
    DOT,
    NRM2,
    ASUM,
    IAMAX,
    SWAP,
    COPY,
    ROT,
    LEVEL1,
    GEMV = LEVEL1,
    GEMVT,
    SYMV,
    GER,
    SYR,
    TRMV,
    TRSV,
    TRSVT,
    SPMV,
    GBMV,
    OPS
} op;
/* The peer's name after the letter of the type: real and complex; vectors (level 1) or matrices of elements that a call moves at least. */
static const struct {
    const char *name, *real, *pairs;
    double traffic;
} ops[OPS] = {{"axpy", "axpy", "axpy", 3},   {"scal", "scal", "scal", 2},    {"dot", "dot", "dotu_sub", 2},
              {"nrm2", "nrm2", NULL, 1},     {"asum", "asum", NULL, 1},      {"iamax", "amax", "amax", 1},
              {"swap", "swap", "swap", 4},   {"copy", "copy", "copy", 2},    {"rot", "rot", NULL, 4},
              {"gemv", "gemv", "gemv", 1},   {"gemvt", "gemv", "gemv", 1},   {"symv", "symv", "hemv", 0.5},
              {"ger", "ger", "geru", 2},     {"syr", "syr", "her", 1},       {"trmv", "trmv", "trmv", 0.5},
              {"trsv", "trsv", "trsv", 0.5}, {"trsvt", "trsv", "trsv", 0.5}, {"spmv", "spmv", "hpmv", 0.5},
              {"gbmv", "gbmv", "gbmv", 0}};
enum { SAMPLES = 256, BAND = 8 };
static const double small = 1e-9, nearly_one = 1.0000001192092896;

typedef struct task {
    op op;
    strata_type type;
    int64_t n, inc, es;
    size_t bytes;
    char *block;
    void *a, *x, *y, *out;
    strata_tensor A, X, Y, R;
    union {
        double v[2];
        int64_t i;
    } result;
    int count;
    struct {
        int64_t at;
        double complex want;
        double bound;
    } sample[SAMPLES];
} task;
typedef struct call {
    task *t;
    strata_handle *h;
    void *fn;
} call;

static bool is_complex(strata_type t) { return t == STRATA_C64 || t == STRATA_C128; }
static bool is_f32(strata_type t) { return t == STRATA_F32 || t == STRATA_C64; }
static double complex element(const task *t, const void *p, int64_t i)
{
    if (t->type == STRATA_F32) return (double)((const float *)p)[i];
    if (t->type == STRATA_F64) return ((const double *)p)[i];
    if (t->type == STRATA_C64)
        return __builtin_complex((double)((const float *)p)[2 * i], (double)((const float *)p)[2 * i + 1]);
    return __builtin_complex(((const double *)p)[2 * i], ((const double *)p)[2 * i + 1]);
}
static void put(const task *t, void *p, int64_t i, double complex v)
{
    const int64_t k = is_complex(t->type) ? 2 * i : i;
    if (is_f32(t->type)) {
        ((float *)p)[k] = (float)creal(v);
        if (is_complex(t->type)) ((float *)p)[k + 1] = (float)cimag(v);
    } else {
        ((double *)p)[k] = creal(v);
        if (is_complex(t->type)) ((double *)p)[k + 1] = cimag(v);
    }
}

static void run_strata(void *arg)
{
    const call *c = arg;
    task *t = c->t;
    const strata_scalar tiny = strata_real(small);
    switch (t->op) {
    case AXPY: strata_axpy(c->h, tiny, t->X, t->Y); break;
    case SCAL: strata_scal(c->h, strata_real(nearly_one), t->X); break;
    case DOT: strata_dot(c->h, t->X, t->Y, t->R); break;
    case NRM2: strata_nrm2(c->h, t->X, t->R); break;
    case ASUM: strata_asum(c->h, t->X, t->R); break;
    case IAMAX: strata_iamax(c->h, t->X, t->R); break;
    case SWAP: strata_swap(c->h, t->X, t->Y); break;
    case COPY: strata_copy(c->h, t->X, t->Y); break;
    case ROT: strata_rot(c->h, t->X, t->Y, STRATA_ONE, tiny); break;
    case GEMV:
    case GEMVT:
    case SYMV:
    case SPMV:
    case GBMV: strata_gemv(c->h, STRATA_ONE, t->A, t->X, STRATA_ZERO, t->Y); break;
    case GER: strata_ger(c->h, tiny, t->X, t->Y, t->A); break;
    case SYR: (is_complex(t->type) ? strata_her : strata_syr)(c->h, tiny, t->X, t->A); break;
    case TRMV: strata_trmv(c->h, t->A, t->X); break;
    default: strata_trsv(c->h, t->A, t->X); break;
    }
}

enum { COL = CBLAS_COL, N_ = CBLAS_N, T_ = CBLAS_T, LOWER = 122, NON_UNIT = 131 };
#define F(ret, ...) ((ret(*)(__VA_ARGS__))c->fn)
/* S: how a factor is passed, R: its type; V: a vector */
#define PEER(name, R, V, FACTOR, DOTCALL)                                                                 \
    static void name(const call *c)                                                                       \
    {                                                                                                     \
        task *t = c->t;                                                                                   \
        const int n = (int)t->n, k = (int)t->inc;                                                         \
        const double complex vtiny = small, vscale = nearly_one, vone = 1, vzero = 0;                     \
        const float complex ftiny = (float)small, fscale = (float)nearly_one, fone = 1, fzero = 0;        \
        (void)vtiny, (void)vscale, (void)vone, (void)vzero, (void)ftiny, (void)fscale, (void)fone,        \
            (void)fzero;                                                                                  \
        switch (t->op) {                                                                                  \
        case AXPY: F(void, int, R, const V *, int, V *, int)(n, FACTOR(tiny), t->x, k, t->y, k); break;   \
        case SCAL: F(void, int, R, V *, int)(n, FACTOR(scale), t->x, k); break;                           \
        case DOT: DOTCALL; break;                                                                         \
        case IAMAX: t->result.i = (int64_t)F(size_t, int, const V *, int)(n, t->x, k); break;             \
        case SWAP:                                                                                        \
        case COPY: F(void, int, V *, int, V *, int)(n, t->x, k, t->y, k); break;                          \
        case GEMV:                                                                                        \
        case GEMVT:                                                                                       \
            F(void, int, int, int, int, R, const V *, int, const V *, int, R, V *, int)                   \
            (COL, t->op == GEMV ? N_ : T_, n, n, FACTOR(one), t->a, n, t->x, k, FACTOR(zero), t->y, k);   \
            break;                                                                                        \
        case SYMV:                                                                                        \
            F(void, int, int, int, R, const V *, int, const V *, int, R, V *, int)                        \
            (COL, LOWER, n, FACTOR(one), t->a, n, t->x, k, FACTOR(zero), t->y, k);                        \
            break;                                                                                        \
        case SPMV:                                                                                        \
            F(void, int, int, int, R, const V *, const V *, int, R, V *, int)                             \
            (COL, LOWER, n, FACTOR(one), t->a, t->x, k, FACTOR(zero), t->y, k);                           \
            break;                                                                                        \
        case GBMV:                                                                                        \
            F(void, int, int, int, int, int, int, R, const V *, int, const V *, int, R, V *, int)         \
            (COL, N_, n, n, BAND, BAND, FACTOR(one), t->a, 2 * BAND + 1, t->x, k, FACTOR(zero), t->y, k); \
            break;                                                                                        \
        case GER:                                                                                         \
            F(void, int, int, int, R, const V *, int, const V *, int, V *, int)                           \
            (COL, n, n, FACTOR(tiny), t->x, k, t->y, k, t->a, n);                                         \
            break;                                                                                        \
        case TRMV:                                                                                        \
        case TRSV:                                                                                        \
        case TRSVT:                                                                                       \
            F(void, int, int, int, int, int, const V *, int, V *, int)                                    \
            (COL, LOWER, t->op == TRSVT ? T_ : N_, NON_UNIT, n, t->a, n, t->x, k);                        \
            break;                                                                                        \
        default: name##_rest(c, n, k); break;                                                             \
        }                                                                                                 \
    }
#define REST(name, T)                                                                                       \
    static void name(const call *c, int n, int k)                                                           \
    {                                                                                                       \
        task *t = c->t;                                                                                     \
        if (t->op == ROT)                                                                                   \
            F(void, int, T *, int, T *, int, T, T)(n, t->x, k, t->y, k, 1, (T)small);                       \
        else if (t->op == SYR)                                                                              \
            F(void, int, int, int, T, const T *, int, T *, int)(COL, LOWER, n, (T)small, t->x, k, t->a, n); \
        else                                                                                                \
            *(T *)(void *)t->result.v = F(T, int, const T *, int)(n, t->x, k);                              \
    }
REST(peer_s_rest, float)
REST(peer_d_rest, double)
REST(peer_c_rest, float)
REST(peer_z_rest, double)
#define BY_VALUE(what) creal(v##what)

#define BY_VALUEF(what) crealf(f##what)
#define BY_ADDRESS(what) &v##what
#define BY_ADDRESSF(what) &f##what
PEER(peer_s, float, float, BY_VALUEF,
     *(float *)(void *)t->result.v = F(float, int, const float *, int, const float *, int)(n, t->x, k, t->y,
                                                                                           k))
PEER(peer_d, double, double, BY_VALUE,
     t->result.v[0] = F(double, int, const double *, int, const double *, int)(n, t->x, k, t->y, k))
PEER(peer_c, const void *, void, BY_ADDRESSF,
     F(void, int, const void *, int, const void *, int, void *)(n, t->x, k, t->y, k, t->result.v))
PEER(peer_z, const void *, void, BY_ADDRESS,
     F(void, int, const void *, int, const void *, int, void *)(n, t->x, k, t->y, k, t->result.v))

static void run_peer(void *arg)
{
    const call *c = arg;
    static void (*const by_type[])(const call *) = {
        [STRATA_F64] = peer_d, [STRATA_F32] = peer_s, [STRATA_C64] = peer_c, [STRATA_C128] = peer_z};
    by_type[c->t->type](c);
}

/* ---- the reference ---- */
static double complex a_at(const task *t, int64_t i, int64_t j)
{
    const int64_t n = t->n;
    const bool herm = is_complex(t->type);
    if (t->op == GEMVT) return element(t, t->a, j + i * n);
    if (t->op == SYMV || t->op == SPMV) {
        const int64_t r = i < j ? j : i, s = i < j ? i : j;
        const double complex v = element(t, t->a, t->op == SYMV ? r + s * n : r + s * (2 * n - s - 1) / 2);
        return !herm ? v : i == j ? creal(v) : i < j ? conj(v) : v;
    }
    if (t->op == GBMV)
        return i - j > BAND || j - i > BAND ? 0 : element(t, t->a, BAND + i - j + j * (2 * BAND + 1));
    if (t->op == TRMV) return i < j ? 0 : element(t, t->a, i + j * n);
    return element(t, t->a, i + j * n);
}
static double complex want_at(const task *t, int64_t at, double *mag)
{
    const int64_t n = t->n;
    double complex s = 0;
    double m = 0;
    switch (t->op) {
    case AXPY: *mag = 4; return small * element(t, t->x, at * t->inc) + element(t, t->y, at * t->inc);
    case SCAL: *mag = 4; return nearly_one * element(t, t->x, at * t->inc);
    case SWAP:
    case COPY: *mag = 0; return element(t, t->x, at * t->inc);
    case ROT: *mag = 4; return element(t, t->y, at * t->inc) - small * element(t, t->x, at * t->inc);
    case GER:
        *mag = 4;
        return element(t, t->a, at) +
               small * element(t, t->x, at % n * t->inc) * element(t, t->y, at / n * t->inc);
    case SYR: {
        const double complex v = element(t, t->a, at) + small * element(t, t->x, at % n * t->inc) *
                                                            conj(element(t, t->x, at / n * t->inc));
        *mag = 4;
        return at % n < at / n ? element(t, t->a, at) : at % n == at / n ? creal(v) : v;
    }
    case DOT:
        for (int64_t i = 0; i < n; i++) {
            const double complex p = element(t, t->x, i * t->inc) * element(t, t->y, i * t->inc);
            s += p, m += fabs(creal(p)) + fabs(cimag(p)) + cabs(p);
        }
        *mag = (double)n * m;
        return s;
    case NRM2:
    case ASUM:
        for (int64_t i = 0; i < n; i++) {
            const double v = fabs(creal(element(t, t->x, i * t->inc)));
            s += t->op == NRM2 ? v * v : v;
        }
        if (t->op == NRM2) s = sqrt(creal(s));
        *mag = (double)n * cabs(s);
        return s;
    case IAMAX:
        for (int64_t i = 0, best = 0; i < n; i++) {
            const double complex v = element(t, t->x, i * t->inc), b = element(t, t->x, best * t->inc);
            if (fabs(creal(v)) + fabs(cimag(v)) > fabs(creal(b)) + fabs(cimag(b))) best = i, s = (double)i;
        }
        *mag = 0;
        return s;
    case TRSV:
    case TRSVT: /* next to the identity: one term of the series is enough */
        for (int64_t j = 0; j < n; j++) {
            const bool there = t->op == TRSV ? j < at : j > at;
            if (there)
                s -= element(t, t->a, t->op == TRSV ? at + j * n : j + at * n) * element(t, t->x, j * t->inc);
        }
        *mag = (double)n * 4 + (double)n * (double)n * small * small / 1e-16;
        return element(t, t->x, at * t->inc) + s;
    default:
        for (int64_t j = 0; j < n; j++) {
            const double complex p = a_at(t, at, j) * element(t, t->x, j * t->inc);
            s += p, m += fabs(creal(p)) + fabs(cimag(p)) + cabs(p);
        }
        *mag = (double)(n + 3) * m;
        return s;
    }
}

static void set_data(void *arg)
{
    task *t = arg;
    const int64_t n = t->n, parts = is_complex(t->type) ? 2 : 1;
    const bool f64 = !is_f32(t->type);
    if (t->op == GER || t->op == SYR || !t->count) {
        if (t->op >= LEVEL1) bench_random(t->a, (t->op == GBMV ? n * (2 * BAND + 1) : n * n) * parts, f64, 1);
        for (int64_t j = 0; j < n && (t->op == TRMV || t->op == TRSV || t->op == TRSVT); j++)
            for (int64_t i = 0; i < n; i++)
                put(t, t->a, i + j * n, i == j ? 1 : i < j ? NAN : small * element(t, t->a, i + j * n));
    }
    bench_random(t->x, n * t->inc * parts, f64, 2);
    bench_random(t->y, n * t->inc * parts, f64, 3);
    memset(&t->result, 0xff, sizeof t->result);
}

static double check(void *arg)
{
    const task *t = arg;
    double worst = 0;
    for (int q = 0; q < t->count; q++) {
        const double complex got = t->op == IAMAX ? (double)t->result.i
                                   : t->out == (const void *)&t->result || t->out == t->a
                                       ? element(t, t->out, t->sample[q].at)
                                       : element(t, t->out, t->sample[q].at * t->inc);
        const double e = cabs(got - t->sample[q].want) / t->sample[q].bound;
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

static bool make(task *t, op o, strata_type type, int64_t n, int64_t inc)
{
    memset(t, 0, sizeof *t);
    t->op = o, t->type = type, t->n = n, t->inc = inc;
    t->es = (int64_t)strata_type_bits(type) / 8;
    const size_t matrix = o < LEVEL1 ? 0 : (size_t)((o == GBMV ? n * (2 * BAND + 1) : n * n) * t->es),
                 vector = (size_t)(n * inc * t->es);
    const size_t ox = (matrix + 4095) / 4096 * 4096 + 21 * 64,
                 oy = ox + (vector + 4095) / 4096 * 4096 + 21 * 64;
    t->bytes = oy + vector + 4096;
    t->block = bench_alloc(t->bytes);
    if (!t->block) return false;
    t->a = t->block, t->x = t->block + ox, t->y = t->block + oy;
    set_data(t);
    t->X = strata_vector(t->x, type, n, inc), t->Y = strata_vector(t->y, type, n, inc);
    t->A = strata_matrix(t->a, type, n, n, STRATA_COL_MAJOR, 0);
    if (o == GEMVT) t->A = strata_transpose(t->A);
    if (o == SYMV || o == SYR) t->A = strata_hermitian(t->A, STRATA_LOWER);
    if (o == TRMV || o == TRSV || o == TRSVT) t->A = strata_triangular(t->A, STRATA_LOWER, STRATA_NON_UNIT);
    if (o == TRSVT) t->A = strata_transpose(t->A);
    if (o == SPMV)
        t->A = strata_hermitian(strata_packed(t->a, type, n, STRATA_LOWER, STRATA_COL_MAJOR), STRATA_LOWER);
    if (o == GBMV) t->A = strata_band(t->a, type, n, n, BAND, BAND, STRATA_COL_MAJOR, 0);
    t->R = strata_point(&t->result, o == IAMAX ? STRATA_I64 : type);
    const bool one = o == DOT || o == NRM2 || o == ASUM || o == IAMAX;
    t->out = one                                                 ? (void *)&t->result
             : o == GER || o == SYR                              ? t->a
             : o == SCAL || o == TRMV || o == TRSV || o == TRSVT ? t->x
                                                                 : t->y;
    const int64_t all = one ? 1 : t->out == t->a ? n * n : n, count = all < SAMPLES ? all : SAMPLES;
    const double u = is_f32(type) ? 0x1p-24 : 0x1p-53;
    for (int64_t q = 0; q < count; q++) {
        double mag;
        t->sample[q].at = all <= SAMPLES ? q : (int64_t)((double)q / (double)(count - 1) * (double)(all - 1));
        t->sample[q].want = want_at(t, t->sample[q].at, &mag);
        t->sample[q].bound = 4 * u * mag + 1e-30;
    }
    t->count = (int)count;
    return true;
}

/* memory's own speed beside every round: a copy of as many bytes as the case touches */
static double sample_copy(void *arg)
{
    static char *from, *to;
    enum { ROOM = 64 << 20 };
    const task *t = arg;
    const size_t half = t->bytes / 2, bytes = half > ROOM ? ROOM : half < 4096 ? 4096 : half;
    if (!from) from = bench_alloc(ROOM), to = bench_alloc(ROOM);
    return from && to ? bench_probe_copy(to, from, bytes, 2e-3) : 0;
}

static call *new_call(task *t, strata_handle *h, void *fn)
{
    call *c = calloc(1, sizeof *c);
    if (c) *c = (call){t, h, fn};
    return c;
}

static bool one_case(bench *b, op o, strata_type type, int64_t n, int64_t inc)
{
    static task t;
    bench_case c = {.unit = "GB/s"};
    if (!make(&t, o, type, n, inc)) {
        fprintf(stderr, "strata bench: no memory for %s %lld\n", ops[o].name, (long long)n);
        return false;
    }
    snprintf(c.name, sizeof c.name, inc > 1 ? "%s %s %lld inc %lld" : "%s %s %lld", strata_type_name(type),
             ops[o].name, (long long)n, (long long)inc);
    const double elements =
        o < LEVEL1 ? ops[o].traffic * (double)n
                   : (o == GBMV ? 2 * BAND + 1 : ops[o].traffic * (double)n) * (double)n + 3 * (double)n;
    c.bytes = elements * (double)t.es;
    c.work = c.bytes * 1e-9;
    c.check = check;
    c.check_arg = &t;
    c.poison = set_data;
    case_add(&c, "strata", CLASS_OURS, run_strata, new_call(&t, b->h, NULL), free);
    contender *copy = case_add(&c, "copy", CLASS_REFERENCE, NULL, &t, NULL);
    if (copy) copy->sample = sample_copy;
    for (int i = 0; i < b->peers.n; i++) {
        const peer *e = &b->peers.p[i];
        const char *name = is_complex(type) ? ops[o].pairs : ops[o].real;
        static const char letter[] = {
            [STRATA_F64] = 'd', [STRATA_F32] = 's', [STRATA_C64] = 'c', [STRATA_C128] = 'z'};
        char symbol[40];
        if (e->kind != PEER_CBLAS || !name) continue;
        snprintf(symbol, sizeof symbol, o == IAMAX ? "cblas_i%c%s" : "cblas_%c%s", letter[type], name);
        void *fn = dlsym(e->lib, symbol);
        if (fn) case_add(&c, e->name, CLASS_PEER, run_peer, new_call(&t, NULL, fn), free);
    }
    const bool ok = bench_measure(b, &c);
    bench_free(t.block, t.bytes);
    return ok;
}

int bench_blas(bench *b, const char **words, int n)
{
    static const int64_t usual1[] = {16, 128, 1024, 4096, 65536, 4194304},
                         usual2[] = {16, 64, 256, 1024, 4096};
    bool wanted[OPS] = {false}, any = false;
    int64_t size[32], inc = 1;
    int sizes = 0;
    if (b->o.level == 3) return bench_blas3(b, words, n);
    const int from = b->o.level == 1 ? 0 : LEVEL1, to = b->o.level == 1 ? LEVEL1 : OPS;
    for (int i = 0; i < n; i++) {
        char room[256], *save = NULL;
        snprintf(room, sizeof room, "%s", words[i]);
        for (char *w = strtok_r(room, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
            int64_t v;
            bool found = false;
            for (int o = from; o < to; o++)
                if (strcmp(w, ops[o].name) == 0) wanted[o] = any = found = true;
            if (found) continue;
            if (strncmp(w, "inc", 3) == 0 && cli_integer(w + 3, 1, 1000, &inc)) continue;
            if (sizes == 32 || !cli_integer(w, 1, b->o.level == 1 ? 1 << 28 : 16384, &v))
                return cli_bad("bench", "blas level %d takes operators, sizes and incN, not '%.40s'",
                               b->o.level, w);
            size[sizes++] = v;
        }
    }
    for (int i = 0; !sizes && i < (int)(sizeof usual1 / sizeof *usual1) && b->o.level == 1; i++)
        size[i] = usual1[i];
    for (int i = 0; !sizes && i < (int)(sizeof usual2 / sizeof *usual2) && b->o.level == 2; i++)
        size[i] = usual2[i];
    if (!sizes)
        sizes =
            b->o.level == 1 ? (int)(sizeof usual1 / sizeof *usual1) : (int)(sizeof usual2 / sizeof *usual2);
    strata_type types[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};
    int count = 4;
    if (b->o.type) types[0] = strata_type_from_name(b->o.type), count = 1;
    report_column(b, "strata", NULL);
    report_column(b, "copy", NULL);
    for (int i = 0; i < b->peers.n; i++)
        if (b->peers.p[i].kind == PEER_CBLAS) report_column(b, b->peers.p[i].name, NULL);
    peers_note(&b->peers, "GB/s count every element that must be read or written once; percentages are of a "
                          "copy of as many bytes in the same round");
    for (int o = from; o < to; o++) b->total += !any || wanted[o] ? sizes * count : 0;
    cli_progress_begin(&b->progress, b->total);
    bool ok = true;
    for (int t = 0; t < count; t++)
        for (int o = from; o < to; o++) {
            if ((any && !wanted[o]) || (is_complex(types[t]) && o < LEVEL1 && !ops[o].pairs)) continue;
            for (int s = 0; s < sizes; s++) ok = one_case(b, (op)o, types[t], size[s], inc) && ok;
        }
    return ok ? CLI_OK : CLI_FAILED;
}
