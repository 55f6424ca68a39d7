/* SPDX-License-Identifier: Apache-2.0 */
/* blas3.c - level 3 of the BLAS beside other libraries' cblas: square problems, column-major, lower triangle, from the left, nothing
 * transposed, alpha = 1 and beta = 0; f32, f64, c64 and c128.
 *
 * The operators in place (trmm, trsm) run again and again on one B: their A is near the identity, so that B neither grows nor dies away. Every
 * contender's result is checked first, on elements spread over the matrix. */
#include "bench.h"
#include <complex.h>
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COL = 102, PLAIN = 111, LOWER = 122, NON_UNIT = 131, LEFT = 141, SAMPLES = 400 };

typedef enum kind { GEMM, SYMM, HEMM, SYRK, HERK, SYR2K, HER2K, TRMM, TRSM, KINDS } kind;
static const struct {
    const char *name;
    double flops; /* of n cubed, in multiplications and additions */
    bool complex_only;
} ops[KINDS] = {{"gemm", 2, false}, {"symm", 2, false}, {"hemm", 2, true},
                {"syrk", 1, false}, {"herk", 1, true},  {"syr2k", 2, false},
                {"her2k", 2, true}, {"trmm", 1, false}, {"trsm", 1, false}};

typedef struct problem {
    kind op;
    strata_type type;
    int64_t n;
    size_t bytes;
    char *block;
    void *a, *b, *c, *b0; /* b0: what b was */
    strata_tensor A, B, C;
} problem;

typedef struct call {
    const problem *p;
    strata_handle *h;
    void (*fn)(void);
} call;

static bool is_complex(strata_type t) { return t == STRATA_C64 || t == STRATA_C128; }
static bool is_single(strata_type t) { return t == STRATA_F32 || t == STRATA_C64; }
static size_t size_of(strata_type t) { return strata_type_bits(t) / 8; }

static double complex element(const problem *p, const void *m, int64_t i, int64_t j)
{
    const int64_t at = (i + j * p->n) * (is_complex(p->type) ? 2 : 1);
    const float *f = m;
    const double *d = m;
    if (is_single(p->type))
        return is_complex(p->type) ? (double)f[at] + (double)f[at + 1] * I : (double)f[at];
    return is_complex(p->type) ? d[at] + d[at + 1] * I : d[at];
}
static double complex lower(const problem *p, int64_t i, int64_t j)
{
    return i >= j ? element(p, p->a, i, j) : 0;
}
static double complex mirrored(const problem *p, int64_t i, int64_t j)
{
    if (i >= j) return p->op == HEMM && i == j ? creal(element(p, p->a, i, i)) : element(p, p->a, i, j);
    return p->op == HEMM ? conj(element(p, p->a, j, i)) : element(p, p->a, j, i);
}
static double size1(double complex z) { return fabs(creal(z)) + fabs(cimag(z)); }

/* Term l of the sum behind element (i, j) of the result; of trsm: of the right side that the solution must give. */
static double complex term(const problem *p, int64_t i, int64_t j, int64_t l)
{
    switch (p->op) {
    case GEMM: return element(p, p->a, i, l) * element(p, p->b, l, j);
    case SYMM:
    case HEMM: return mirrored(p, i, l) * element(p, p->b, l, j);
    case SYRK: return element(p, p->a, i, l) * element(p, p->a, j, l);
    case HERK: return element(p, p->a, i, l) * conj(element(p, p->a, j, l));
    case SYR2K:
        return element(p, p->a, i, l) * element(p, p->b, j, l) +
               element(p, p->b, i, l) * element(p, p->a, j, l);
    case HER2K:
        return element(p, p->a, i, l) * conj(element(p, p->b, j, l)) +
               element(p, p->b, i, l) * conj(element(p, p->a, j, l));
    case TRMM: return lower(p, i, l) * element(p, p->b0, l, j);
    default: return lower(p, i, l) * element(p, p->b, l, j);
    }
}

static double check_problem(void *arg)
{
    const problem *p = arg;
    const double u = (is_single(p->type) ? FLT_EPSILON : DBL_EPSILON) / 2 * (is_complex(p->type) ? 4 : 1);
    const bool triangle = p->op >= SYRK && p->op <= HER2K;
    const int64_t n = p->n, count = n * n < SAMPLES ? n * n : SAMPLES;
    double worst = 0;
    for (int64_t q = 0; q < count; q++) {
        int64_t i = count == n * n ? q % n : (int64_t)((uint64_t)q * 2654435761u % (uint64_t)n),
                j = count == n * n ? q / n : (int64_t)((double)q / (double)count * (double)n);
        if (triangle && i < j) {
            const int64_t t = i;
            i = j;
            j = t;
        }
        double complex sum = 0;
        double mag = 0;
        for (int64_t l = 0; l < n; l++) {
            const double complex x = term(p, i, j, l);
            sum += x;
            mag += size1(x);
        }
        const void *out = p->op == TRSM ? p->b0 : p->op == TRMM ? p->b : p->c;
        double complex got = element(p, out, i, j);
        if (p->op == TRSM) mag += size1(got);
        const double e = size1(got - sum) / (((double)(2 * n) + 6) * u * mag + DBL_MIN);
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

static void poison_problem(void *arg)
{
    problem *p = arg;
    const size_t bytes = (size_t)(p->n * p->n) * size_of(p->type);
    memcpy(p->b, p->b0, bytes);
    memset(p->c, 0xff, bytes);
}

static void run_strata(void *arg)
{
    const call *c = arg;
    const problem *p = c->p;
    const strata_scalar one = STRATA_ONE, zero = STRATA_ZERO;
    switch (p->op) {
    case GEMM: strata_gemm(c->h, one, p->A, p->B, zero, p->C, NULL); break;
    case SYMM: strata_gemm(c->h, one, strata_symmetric(p->A, STRATA_LOWER), p->B, zero, p->C, NULL); break;
    case HEMM: strata_gemm(c->h, one, strata_hermitian(p->A, STRATA_LOWER), p->B, zero, p->C, NULL); break;
    case SYRK: strata_syrk(c->h, one, p->A, zero, strata_symmetric(p->C, STRATA_LOWER)); break;
    case HERK: strata_herk(c->h, one, p->A, zero, strata_hermitian(p->C, STRATA_LOWER)); break;
    case SYR2K: strata_syr2k(c->h, one, p->A, p->B, zero, strata_symmetric(p->C, STRATA_LOWER)); break;
    case HER2K: strata_her2k(c->h, one, p->A, p->B, zero, strata_hermitian(p->C, STRATA_LOWER)); break;
    case TRMM: strata_trmm(c->h, one, strata_triangular(p->A, STRATA_LOWER, STRATA_NON_UNIT), p->B); break;
    default: strata_trsm(c->h, one, strata_triangular(p->A, STRATA_LOWER, STRATA_NON_UNIT), p->B);
    }
}

/* cblas by its standard: scalars by value in real types, by address in complex ones; herk's are real. */
#define CBLAS_CALLS(T)                                                                                    \
    static void peer_##T(const call *c, int n)                                                            \
    {                                                                                                     \
        const problem *p = c->p;                                                                          \
        if (p->op == GEMM)                                                                                \
            ((void (*)(int, int, int, int, int, int, T, void *, int, void *, int, T, void *, int))c->fn)( \
                COL, PLAIN, PLAIN, n, n, n, 1, p->a, n, p->b, n, 0, p->c, n);                             \
        else if (p->op == SYMM)                                                                           \
            ((void (*)(int, int, int, int, int, T, void *, int, void *, int, T, void *, int))c->fn)(      \
                COL, LEFT, LOWER, n, n, 1, p->a, n, p->b, n, 0, p->c, n);                                 \
        else if (p->op == SYRK || p->op == HERK)                                                          \
            ((void (*)(int, int, int, int, int, T, void *, int, T, void *, int))c->fn)(                   \
                COL, LOWER, PLAIN, n, n, 1, p->a, n, 0, p->c, n);                                         \
        else if (p->op == SYR2K)                                                                          \
            ((void (*)(int, int, int, int, int, T, void *, int, void *, int, T, void *, int))c->fn)(      \
                COL, LOWER, PLAIN, n, n, 1, p->a, n, p->b, n, 0, p->c, n);                                \
        else                                                                                              \
            ((void (*)(int, int, int, int, int, int, int, T, void *, int, void *, int))c->fn)(            \
                COL, LEFT, LOWER, PLAIN, NON_UNIT, n, n, 1, p->a, n, p->b, n);                            \
    }
CBLAS_CALLS(float)
CBLAS_CALLS(double)

static void peer_complex(const call *c, int n)
{
    static const float f1[2] = {1, 0}, f0[2] = {0, 0};
    static const double d1[2] = {1, 0}, d0[2] = {0, 0};
    const problem *p = c->p;
    const void *one = is_single(p->type) ? (const void *)f1 : d1,
               *zero = is_single(p->type) ? (const void *)f0 : d0;
    if (p->op == GEMM)
        ((void (*)(int, int, int, int, int, int, const void *, void *, int, void *, int, const void *, void *,
                   int))c->fn)(COL, PLAIN, PLAIN, n, n, n, one, p->a, n, p->b, n, zero, p->c, n);
    else if (p->op == SYMM || p->op == HEMM)
        ((void (*)(int, int, int, int, int, const void *, void *, int, void *, int, const void *, void *,
                   int))c->fn)(COL, LEFT, LOWER, n, n, one, p->a, n, p->b, n, zero, p->c, n);
    else if (p->op == SYRK)
        ((void (*)(int, int, int, int, int, const void *, void *, int, const void *, void *, int))c->fn)(
            COL, LOWER, PLAIN, n, n, one, p->a, n, zero, p->c, n);
    else if (p->op == SYR2K)
        ((void (*)(int, int, int, int, int, const void *, void *, int, void *, int, const void *, void *,
                   int))c->fn)(COL, LOWER, PLAIN, n, n, one, p->a, n, p->b, n, zero, p->c, n);
    else if (p->op == HER2K && is_single(p->type))
        ((void (*)(int, int, int, int, int, const void *, void *, int, void *, int, float, void *,
                   int))c->fn)(COL, LOWER, PLAIN, n, n, one, p->a, n, p->b, n, 0, p->c, n);
    else if (p->op == HER2K)
        ((void (*)(int, int, int, int, int, const void *, void *, int, void *, int, double, void *,
                   int))c->fn)(COL, LOWER, PLAIN, n, n, one, p->a, n, p->b, n, 0, p->c, n);
    else
        ((void (*)(int, int, int, int, int, int, int, const void *, void *, int, void *, int))c->fn)(
            COL, LEFT, LOWER, PLAIN, NON_UNIT, n, n, one, p->a, n, p->b, n);
}

static void run_peer(void *arg)
{
    const call *c = arg;
    const int n = (int)c->p->n;
    if (!is_complex(c->p->type) || c->p->op == HERK)
        (is_single(c->p->type) ? peer_float : peer_double)(c, n);
    else
        peer_complex(c, n);
}

static bool make(problem *p, kind op, strata_type type, int64_t n)
{
    const size_t bytes = (size_t)(n * n) * size_of(type), step = (bytes + 4095) / 4096 * 4096 + 21 * 64;
    const int64_t numbers = n * n * (is_complex(type) ? 2 : 1);
    *p = (problem){.op = op, .type = type, .n = n, .bytes = 4 * step + 4096};
    if (!(p->block = bench_alloc(p->bytes))) return false;
    p->a = p->block;
    p->b = p->block + step;
    p->c = p->block + 2 * step;
    p->b0 = p->block + 3 * step;
    bench_random(p->a, numbers, !is_single(type), 1);
    bench_random(p->b0, numbers, !is_single(type), 2);
    if (op == TRMM || op == TRSM)
        for (int64_t i = 0; i < numbers; i++) {
            const int64_t e = is_complex(type) ? i / 2 : i;
            const bool one = e % (n + 1) == 0 && (!is_complex(type) || i % 2 == 0),
                       zero = e % (n + 1) == 0 && !one;
            if (is_single(type))
                ((float *)p->a)[i] = one ? 1 : zero ? 0 : ((float *)p->a)[i] * 1e-4f / (float)n;
            else
                ((double *)p->a)[i] = one ? 1 : zero ? 0 : ((double *)p->a)[i] * 1e-4 / (double)n;
        }
    p->A = strata_matrix(p->a, type, n, n, STRATA_COL_MAJOR, 0);
    p->B = strata_matrix(p->b, type, n, n, STRATA_COL_MAJOR, 0);
    p->C = strata_matrix(p->c, type, n, n, STRATA_COL_MAJOR, 0);
    poison_problem(p);
    return true;
}

static call *new_call(const problem *p, strata_handle *h)
{
    call *c = calloc(1, sizeof *c);
    if (c) *c = (call){.p = p, .h = h};
    return c;
}

static bool one_problem(bench *b, kind op, strata_type type, int64_t n)
{
    problem p;
    bench_case c = {.unit = "GFLOP/s"};
    if (!make(&p, op, type, n)) {
        fprintf(stderr, "strata bench: no memory for %s of order %lld\n", ops[op].name, (long long)n);
        return false;
    }
    const double cube = (double)n * (double)n * (double)n * (is_complex(type) ? 4 : 1);
    snprintf(c.name, sizeof c.name, "%s %s %lld", ops[op].name, strata_type_name(type), (long long)n);
    c.flops = ops[op].flops * cube;
    c.bytes = 3.0 * (double)n * (double)n * (double)size_of(type);
    c.work = c.flops * 1e-9;
    c.peak_scale = is_single(type) ? 1.0 : 0.5;
    c.check = check_problem;
    c.check_arg = &p;
    c.poison = poison_problem;
    case_add(&c, "strata", CLASS_OURS, run_strata, new_call(&p, b->h), free);
    if (b->o.threads > 1) case_add(&c, "one-thread", CLASS_REFERENCE, run_strata, new_call(&p, b->cpu), free);
    for (int i = 0; i < b->peers.n; i++) {
        const peer *e = &b->peers.p[i];
        char name[32];
        if (e->kind != PEER_CBLAS) continue;
        snprintf(name, sizeof name, "cblas_%c%s",
                 type == STRATA_F32   ? 's'
                 : type == STRATA_F64 ? 'd'
                 : type == STRATA_C64 ? 'c'
                                      : 'z',
                 ops[op].name);
        call *q = new_call(&p, NULL);
        if (!q) continue;
        *(void **)&q->fn = dlsym(e->lib, name);
        if (q->fn)
            case_add(&c, e->name, CLASS_PEER, run_peer, q, free);
        else
            free(q);
    }
    const bool ok = bench_measure(b, &c);
    bench_free(p.block, p.bytes);
    return ok;
}

/* Words: names of operators, sizes (lists with commas), in any order; none of a sort: all operators, 32 to 1024. */
int bench_blas3(bench *b, const char **words, int n)
{
    static const int64_t usual[] = {32, 64, 128, 256, 512, 1024};
    int64_t size[64];
    int sizes = 0;
    bool op[KINDS] = {false}, any = false;
    const strata_type type = b->o.type  ? strata_type_from_name(b->o.type)
                             : b->o.f64 ? STRATA_F64
                                        : STRATA_F32;
    if (type != STRATA_F32 && type != STRATA_F64 && !is_complex(type))
        return cli_bad("bench", "level 3 is measured in f32, f64, c64 and c128, not in '%s'", b->o.type);
    for (int i = 0; i < n; i++)
        for (const char *w = words[i]; *w;) {
            const size_t len = strcspn(w, ",");
            char word[32];
            if (len >= sizeof word)
                return cli_bad("bench", "'%.40s...' is no operator of level 3 and no size", w);
            memcpy(word, w, len);
            word[len] = 0;
            bool known = false;
            for (int k = 0; k < KINDS; k++)
                if (!strcmp(word, ops[k].name)) known = any = op[k] = true;
            if (!known) {
                if (sizes == 64 || cli_dims(word, 1, 32768, &size[sizes], 1) != 1) {
                    const char *near = cli_nearest(word, &ops[0].name, KINDS, sizeof *ops);
                    return cli_bad("bench", "'%s' is no operator of level 3 and no size of 1 to 32768%s%s%s",
                                   word, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
                }
                sizes++;
            }
            w += len;
            if (*w == ',') w++;
        }
    if (!sizes)
        for (; sizes < 6; sizes++) size[sizes] = usual[sizes];
    report_column(b, "strata", NULL);
    if (b->o.threads > 1) report_column(b, "one-thread", NULL);
    for (int i = 0; i < b->peers.n; i++)
        if (b->peers.p[i].kind == PEER_CBLAS) report_column(b, b->peers.p[i].name, NULL);
    for (int k = 0; k < KINDS; k++)
        if (any ? op[k] : k != GEMM && (is_complex(type) || !ops[k].complex_only)) b->total += sizes;
    cli_progress_begin(&b->progress, b->total);
    bool ok = true;
    for (int k = 0; k < KINDS; k++) {
        if (any ? !op[k] : k == GEMM || (!is_complex(type) && ops[k].complex_only)) continue;
        if (ops[k].complex_only && !is_complex(type))
            return cli_bad("bench", "%s is of complex matrices (--type c64 or c128)", ops[k].name);
        for (int i = 0; i < sizes; i++) ok = one_problem(b, (kind)k, type, size[i]) && ok;
    }
    return ok ? CLI_OK : CLI_FAILED;
}
