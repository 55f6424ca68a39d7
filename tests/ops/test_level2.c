/* SPDX-License-Identifier: Apache-2.0 */
/* test_level2.c - BLAS level 2 against double loops in long double: every structure of a matrix, storages and strides, vectors of either sign, guard
 * pages; what is not stored is NaN and must be neither read nor written. */
#include <complex.h>
#include <math.h>
#include <strata.h>
#include "levels.h"
#include "handle.h"
#include "support.h"

#ifndef CMPLXL /* the C library has it for gcc only */
#    define CMPLXL(re, im) __builtin_complex((long double)(re), (long double)(im))
#endif
typedef long double _Complex wide;
static const strata_type types[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};

static bool is_complex(strata_type t) { return t == STRATA_C64 || t == STRATA_C128; }
static bool is_f32(strata_type t) { return t == STRATA_F32 || t == STRATA_C64; }
static double unit(strata_type t) { return test_unit(is_f32(t) ? STRATA_F32 : STRATA_F64); }
static int64_t size_of(strata_type t) { return (int64_t)strata_type_bits(t) / 8; }

static void put(strata_type type, void *p, wide x)
{
    if (is_f32(type)) {
        float f[2] = {(float)creall(x), (float)cimagl(x)};
        memcpy(p, f, (size_t)size_of(type));
    } else {
        double f[2] = {(double)creall(x), (double)cimagl(x)};
        memcpy(p, f, (size_t)size_of(type));
    }
}
static wide get(strata_type type, const void *p)
{
    if (is_f32(type)) {
        float f[2] = {0, 0};
        memcpy(f, p, (size_t)size_of(type));
        return CMPLXL(f[0], f[1]);
    }
    double f[2] = {0, 0};
    memcpy(f, p, (size_t)size_of(type));
    return CMPLXL(f[0], f[1]);
}
static wide number(test_rng *r, strata_type t)
{
    const double re = test_real(r, -1, 1), im = is_complex(t) ? test_real(r, -1, 1) : 0;
    return is_f32(t) ? CMPLXL((float)re, (float)im) : CMPLXL(re, im);
}

/* ---- vectors ---- */
typedef struct vec {
    strata_tensor t;
    unsigned char *base;
    wide *v; /* its values */
} vec;
static vec make_vec(test_rng *r, strata_type type, int64_t n)
{
    static const int64_t incs[] = {1, 1, 1, 2, 3, -1, -2};
    const int64_t inc = incs[test_int(r, 0, 6)], step = inc < 0 ? -inc : inc;
    vec x;
    x.base = test_guard((size_t)(n ? ((n - 1) * step + 1) * size_of(type) : 0), test_chance(r, 0.5));
    x.t = strata_vector(x.base, type, n, inc);
    x.v = malloc((size_t)(n + 1) * sizeof *x.v);
    for (int64_t i = 0; i < n; i++)
        put(type, (char *)x.t.data + i * x.t.stride[0] * size_of(type), x.v[i] = number(r, type));
    return x;
}
static wide at(const vec *x, int64_t i)
{
    const strata_type type = (strata_type)x->t.type;
    return get(type, (char *)x->t.data + i * x->t.stride[0] * size_of(type));
}
static void poison_vec(vec *x)
{
    const strata_type type = (strata_type)x->t.type;
    for (int64_t i = 0; i < x->t.dim[0]; i++)
        put(type, (char *)x->t.data + i * x->t.stride[0] * size_of(type),
            CMPLXL(NAN, is_complex(type) ? NAN : 0));
}
static void intact_vec(const vec *x)
{
    const int64_t n = x->t.dim[0], s = size_of((strata_type)x->t.type),
                  step = x->t.stride[0] < 0 ? -x->t.stride[0] : x->t.stride[0];
    test_check(test_guard_intact(x->base), "beside the vector");
    for (int64_t i = 0; i + 1 < n; i++)
        for (int64_t b = s; b < step * s; b++)
            test_check(x->base[i * step * s + b] == 0xff, "between elements");
}
static void drop_vec(vec *x)
{
    test_guard_free(x->base);
    free(x->v);
}

/* ---- matrices: the kind, its memory, and what it means as a full matrix ---- */
typedef enum kind { GENERAL, TRIANGLE, SYMMETRIC, HERMITIAN } kind;
typedef struct mat {
    strata_tensor t;
    unsigned char *base, *before;
    size_t bytes;
    strata_type type;
    kind k;
    int half; /* 0, 1 lower, 2 upper */
    bool unit, packed, band, conj;
    int64_t m, n, kl, ku;
    wide *full; /* of the view, m x n by rows: what it means */
} mat;

static bool stored(const mat *a, int64_t i, int64_t j)
{
    if (a->half == 1 && i < j) return false;
    if (a->half == 2 && i > j) return false;
    if (a->unit && i == j) return false;
    return !a->band || (i - j <= a->kl && j - i <= a->ku);
}
/* the address of a stored element, by the definitions of the public header */
static char *address(const mat *a, int64_t i, int64_t j)
{
    const int64_t s = size_of(a->type);
    if (!a->packed) return (char *)a->t.data + (i * a->t.stride[0] + j * a->t.stride[1]) * s;
    int64_t r = i, c = j, half = a->half;
    if (a->t.stride[1] == 1) r = j, c = i, half = 3 - half;
    return (char *)a->t.data + (half == 2 ? r + c * (c + 1) / 2 : r + c * (2 * a->n - c - 1) / 2) * s;
}

/* write: the matrix is an output (no conjugation, no unit diagonal, no band). */
static mat make_mat(test_rng *r, strata_type type, int64_t m, int64_t n, kind k, bool write)
{
    mat a = {.type = type, .k = k, .m = m, .n = n, .kl = m, .ku = n};
    const strata_order order = test_chance(r, 0.5) ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR;
    const int storage = (int)test_int(r, 0, 3); /* 0, 1: strided, 2: packed, 3: band */
    const int64_t s = size_of(type);
    const bool at_end = test_chance(r, 0.5);
    const strata_uplo uplo = test_chance(r, 0.5) ? STRATA_LOWER : STRATA_UPPER;
    if (k != GENERAL) a.half = uplo == STRATA_LOWER ? 1 : 2;
    if (storage == 2 && k != GENERAL) {
        a.packed = true;
        a.bytes = (size_t)(n * (n + 1) / 2 * s);
        a.base = test_guard(a.bytes, at_end);
        a.t = strata_packed(a.base, type, n, uplo, order);
    } else if (storage == 3 && !write) {
        a.band = true;
        a.kl = a.half == 2 ? 0 : test_int(r, 0, test_chance(r, 0.5) ? 5 : 40);
        a.ku = a.half == 1 ? 0 : test_int(r, 0, test_chance(r, 0.5) ? 5 : 40);
        const int64_t ld = a.kl + a.ku + 1 + test_int(r, 0, 3), lines = order == STRATA_COL_MAJOR ? n : m;
        a.bytes = (size_t)(lines > 0 ? ((lines - 1) * ld + a.kl + a.ku + 1) * s : 0);
        a.base = test_guard(a.bytes, at_end);
        a.t = strata_band(a.base, type, m, n, a.kl, a.ku, order, ld);
    } else {
        const int64_t inner = order == STRATA_COL_MAJOR ? m : n, outer = order == STRATA_COL_MAJOR ? n : m,
                      step = test_chance(r, 0.2) ? 2 : 1,
                      ld = (inner > 0 ? inner : 1) * step + test_int(r, 0, 3);
        a.bytes = (size_t)(inner && outer ? ((outer - 1) * ld + (inner - 1) * step + 1) * s : 0);
        a.base = test_guard(a.bytes, at_end);
        const int64_t dim[2] = {m, n}, stride[2] = {order == STRATA_COL_MAJOR ? step : ld,
                                                    order == STRATA_COL_MAJOR ? ld : step};
        a.t = strata_array(a.base, type, 2, dim, stride);
    }
    a.unit = !write && k == TRIANGLE && test_chance(r, 0.4);
    if (k == TRIANGLE) a.t = strata_triangular(a.t, uplo, a.unit ? STRATA_UNIT : STRATA_NON_UNIT);
    if (k == SYMMETRIC) a.t = strata_symmetric(a.t, uplo);
    if (k == HERMITIAN) a.t = strata_hermitian(a.t, uplo);
    if (test_chance(r, 0.4)) { /* a view of a view */
        a.t = strata_transpose(a.t);
        a.half = a.half ? 3 - a.half : 0;
        a.m = a.t.dim[0], a.n = a.t.dim[1];
        const int64_t w = a.kl;
        a.kl = a.ku, a.ku = w;
    }
    if (!write && is_complex(type) && test_chance(r, 0.4)) a.t = strata_conj(a.t), a.conj = true;
    const double low = k == TRIANGLE ? 0.5 : 0;
    a.full = calloc((size_t)(a.m * a.n + 1), sizeof *a.full);
    for (int64_t i = 0; i < a.m; i++)
        for (int64_t j = 0; j < a.n; j++) {
            if (!stored(&a, i, j)) continue;
            wide x = number(r, type);
            if (k == TRIANGLE)
                x = i == j ? x + (creall(x) < 0 ? -low : low) : x * (1.0L / (a.m < 8 ? 8 : 64));
            if (k == TRIANGLE && is_f32(type)) x = CMPLXL((float)creall(x), (float)cimagl(x));
            if (k == TRIANGLE) x = CMPLXL((double)creall(x), (double)cimagl(x));
            put(type, address(&a, i, j), x);
            if (k == HERMITIAN && i == j) { /* the imaginary part is not read */
                if (is_complex(type) && !write) put(type, address(&a, i, j), CMPLXL(creall(x), NAN));
                x = creall(x);
            }
            if (a.conj) x = conjl(x);
            a.full[i * a.n + j] = x;
            if (k == SYMMETRIC) a.full[j * a.n + i] = x;
            if (k == HERMITIAN && i != j) a.full[j * a.n + i] = conjl(x);
        }
    if (a.unit)
        for (int64_t i = 0; i < a.n; i++) a.full[i * a.n + i] = 1;
    a.before = malloc(a.bytes + 1);
    memcpy(a.before, a.base, a.bytes);
    return a;
}
/* Nothing but what is stored (of an output) differs from what was. */
static void intact_mat(mat *a, bool written)
{
    test_check(test_guard_intact(a->base), "beside the matrix");
    if (written)
        for (int64_t i = 0; i < a->m; i++)
            for (int64_t j = 0; j < a->n; j++)
                if (stored(a, i, j)) {
                    char *p = address(a, i, j);
                    memcpy(p, a->before + (p - (char *)a->base), (size_t)size_of(a->type));
                }
    test_check(memcmp(a->base, a->before, a->bytes) == 0, "what is not stored was written");
}
static void drop_mat(mat *a)
{
    test_guard_free(a->base);
    free(a->full);
    free(a->before);
}

static void close_to(wide got, wide want, double bound, int64_t i, int64_t j)
{
    test_close((double)creall(got), (double)creall(want), bound, "re [%d,%d]", (int)i, (int)j);
    test_close((double)cimagl(got), (double)cimagl(want), bound, "im [%d,%d]", (int)i, (int)j);
}
static int64_t length(test_rng *r)
{
    static const int64_t edge[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 200};
    return test_chance(r, 0.6) ? test_int(r, 1, 40) : edge[test_int(r, 0, TEST_COUNT(edge) - 1)];
}
static strata_scalar factor(test_rng *r, strata_type t, bool real, wide *v)
{
    *v = test_chance(r, 0.3) ? (double)test_int(r, 0, 1) : number(r, t);
    if (real) *v = creall(*v);
    return strata_complex((double)creall(*v), (double)cimagl(*v));
}
static wide maybe_conj(vec *x, test_rng *r, bool *is)
{
    *is = is_complex((strata_type)x->t.type) && test_chance(r, 0.3);
    if (*is) x->t = strata_conj(x->t);
    for (int64_t i = 0; *is && i < x->t.dim[0]; i++) x->v[i] = conjl(x->v[i]);
    return 0;
}

static void gemv_round(test_rng *r, int round, int64_t m, int64_t n)
{
    const strata_type type = types[round % 4];
    const kind k = (kind)test_int(r, 0, 3);
    if (k != GENERAL) m = n = m < n ? m : n;
    mat a = make_mat(r, type, m, n, k, false);
    vec x = make_vec(r, type, a.n), y = make_vec(r, type, a.m);
    wide al, be;
    bool conj;
    strata_scalar alpha = factor(r, type, false, &al), beta = factor(r, type, false, &be);
    maybe_conj(&x, r, &conj);
    test_problem("gemv round %d: A %s, x %s, alpha %g, beta %g", round, test_say(a.t), test_say(x.t),
                 alpha.re, beta.re);
    if (be == 0) poison_vec(&y);
    if (al == 0) memset(a.base, 0xff, a.bytes), memcpy(a.before, a.base, a.bytes), poison_vec(&x);
    test_ok(h, strata_gemv(h, alpha, a.t, x.t, beta, y.t));
    for (int64_t i = 0; i < a.m; i++) {
        wide sum = 0;
        long double mag = 0;
        for (int64_t j = 0; j < a.n; j++) {
            sum += a.full[i * a.n + j] * x.v[j];
            mag += cabsl(a.full[i * a.n + j]) * cabsl(x.v[j]);
        }
        const double bound =
            4 * unit(type) * (double)((long double)(a.n + 3) * cabsl(al) * mag + 2 * cabsl(be * y.v[i]));
        close_to(at(&y, i), (al == 0 ? 0 : al * sum) + (be == 0 ? 0 : be * y.v[i]), bound, i, 0);
    }
    intact_vec(&y);
    intact_vec(&x);
    intact_mat(&a, false);
    drop_vec(&x), drop_vec(&y), drop_mat(&a);
}

static void test_gemv(void **state)
{
    (void)state;
    test_rng r = test_rng_make(21);
    for (int round = 0; round < test_rounds(1200); round++) {
        const int64_t m = length(&r), n = length(&r);
        gemv_round(&r, round, m, n);
    }
    for (int round = 0; round < 24; round++)
        gemv_round(&r, round, test_int(&r, 500, 2100), test_int(&r, 500, 1100));
    for (int round = 0; round < 8; round++)
        gemv_round(&r, round, round & 1 ? 3 : 20000, round & 1 ? 20000 : 3);
}

/* trmv against the product; trsv by what A times the solution gives: |A x - b| <= gamma |A||x|. */
static void triangle_round(test_rng *r, int round, int64_t n)
{
    const strata_type type = types[round % 4];
    mat a = make_mat(r, type, n, n, TRIANGLE, false);
    vec x = make_vec(r, type, n);
    const bool solve = test_chance(r, 0.5);
    test_problem("%s round %d: A %s, x %s", solve ? "trsv" : "trmv", round, test_say(a.t), test_say(x.t));
    test_ok(h, solve ? strata_trsv(h, a.t, x.t) : strata_trmv(h, a.t, x.t));
    for (int64_t i = 0; i < n; i++) {
        wide sum = 0;
        long double mag = 0;
        for (int64_t j = 0; j < n; j++) {
            const wide v = solve ? at(&x, j) : x.v[j];
            sum += a.full[i * n + j] * v;
            mag += cabsl(a.full[i * n + j]) * cabsl(v);
        }
        close_to(solve ? sum : at(&x, i), solve ? x.v[i] : sum,
                 4 * unit(type) * (double)((long double)(n + 3) * mag), i, 0);
    }
    intact_vec(&x);
    intact_mat(&a, false);
    drop_vec(&x), drop_mat(&a);
}
static void test_triangles(void **state)
{
    (void)state;
    test_rng r = test_rng_make(22);
    for (int round = 0; round < test_rounds(1000); round++) triangle_round(&r, round, length(&r));
    for (int round = 0; round < 16; round++) triangle_round(&r, round, test_int(&r, 300, 1300));
}

static void update_round(test_rng *r, int round, int64_t m, int64_t n)
{
    const strata_type type = types[round % 4];
    const int op = (int)test_int(r, 0, 4); /* ger, syr, her, syr2, her2 */
    const bool her = op == 2 || op == 4, two = op > 2;
    if (op) m = n;
    mat a = make_mat(r, type, m, n, op == 0 ? GENERAL : her ? HERMITIAN : SYMMETRIC, true);
    vec x = make_vec(r, type, a.m), y = make_vec(r, type, a.n);
    wide al;
    bool conj;
    strata_scalar alpha = factor(r, type, op == 2, &al);
    maybe_conj(&x, r, &conj);
    maybe_conj(&y, r, &conj);
    test_problem("update %d round %d: A %s, x %s, y %s, alpha %g", op, round, test_say(a.t), test_say(x.t),
                 test_say(y.t), alpha.re);
    if (al == 0) poison_vec(&x), poison_vec(&y);
    if (op == 0) test_ok(h, strata_ger(h, alpha, x.t, y.t, a.t));
    if (op == 1) test_ok(h, strata_syr(h, alpha, x.t, a.t));
    if (op == 2) test_ok(h, strata_her(h, alpha, x.t, a.t));
    if (op == 3) test_ok(h, strata_syr2(h, alpha, x.t, y.t, a.t));
    if (op == 4) test_ok(h, strata_her2(h, alpha, x.t, y.t, a.t));
    for (int64_t i = 0; i < a.m; i++)
        for (int64_t j = 0; j < a.n; j++) {
            if (!stored(&a, i, j)) continue;
            const wide xi = x.v[i], yj = op == 1 || op == 2 ? x.v[j] : y.v[j],
                       old = get(type, a.before + (address(&a, i, j) - (char *)a.base));
            const bool clear = her && i == j;
            wide add = al * xi * (her ? conjl(yj) : yj);
            long double mag = cabsl(al) * cabsl(xi) * cabsl(yj);
            if (two) {
                add += (her ? conjl(al) : al) * y.v[i] * (her ? conjl(x.v[j]) : x.v[j]);
                mag += cabsl(al) * cabsl(y.v[i]) * cabsl(x.v[j]);
            }
            wide want = al == 0 ? old : old + add;
            if (clear && al != 0) want = creall(want);
            close_to(get(type, address(&a, i, j)), want, 16 * unit(type) * (double)(mag + cabsl(old)), i, j);
        }
    intact_vec(&x);
    intact_vec(&y);
    intact_mat(&a, true);
    drop_vec(&x), drop_vec(&y), drop_mat(&a);
}
static void test_updates(void **state)
{
    (void)state;
    test_rng r = test_rng_make(23);
    for (int round = 0; round < test_rounds(1000); round++) {
        const int64_t m = length(&r), n = length(&r);
        update_round(&r, round, m, n);
    }
    for (int round = 0; round < 10; round++)
        update_round(&r, round, test_int(&r, 200, 700), test_int(&r, 200, 700));
}

/* The same bits for one thread and several. */
static void test_threads(void **state)
{
    (void)state;
    test_rng r = test_rng_make(24);
    enum { N = 700 };
    double *a = malloc(sizeof *a * N * N), *x = malloc(sizeof *x * N), *y = malloc(sizeof *y * N),
           *first = malloc(sizeof *y * N);
    for (int i = 0; i < N * N; i++) a[i] = test_real(&r, -1, 1) / N;
    for (int i = 0; i < N; i++) a[i * N + i] += 1;
    for (int kind_ = 0; kind_ < 6; kind_++)
        for (int t = 1; t <= 3; t++) {
            strata_tensor A = strata_matrix(a, STRATA_F64, N, N, STRATA_COL_MAJOR, 0);
            for (int i = 0; i < N; i++) x[i] = 1.0 / (i + 1), y[i] = 1;
            strata_tensor X = strata_vector(x, STRATA_F64, N, 1), Y = strata_vector(y, STRATA_F64, N, 1);
            test_ok(h, strata_set_threads(h, t));
            if (kind_ == 0) test_ok(h, strata_gemv(h, STRATA_ONE, A, X, STRATA_ONE, Y));
            if (kind_ == 1) test_ok(h, strata_gemv(h, STRATA_ONE, strata_transpose(A), X, STRATA_ONE, Y));
            if (kind_ == 2)
                test_ok(h, strata_gemv(h, STRATA_ONE, strata_symmetric(A, STRATA_LOWER), X, STRATA_ONE, Y));
            A = strata_triangular(A, STRATA_UPPER, STRATA_NON_UNIT);
            if (kind_ == 3) test_ok(h, strata_trsv(h, A, Y));
            if (kind_ == 4) test_ok(h, strata_trsv(h, strata_transpose(A), Y));
            if (kind_ == 5) test_ok(h, strata_trmv(h, A, Y));
            if (t == 1) memcpy(first, y, sizeof *y * N);
            test_check(memcmp(first, y, sizeof *y * N) == 0, "kind %d: %d threads give other bits", kind_, t);
        }
    test_ok(h, strata_set_threads(h, 0));
    free(a), free(x), free(y), free(first);
}

static void test_refusals(void **state)
{
    (void)state;
    double a[16] = {0}, x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8}, before[4];
    memcpy(before, y, sizeof y);
    strata_tensor A = strata_matrix(a, STRATA_F64, 4, 4, STRATA_COL_MAJOR, 0),
                  B = strata_matrix(a, STRATA_F64, 4, 3, STRATA_COL_MAJOR, 0);
    strata_tensor X = strata_vector(x, STRATA_F64, 4, 1), Y = strata_vector(y, STRATA_F64, 4, 1);
    test_error(h, strata_gemv(h, STRATA_ONE, B, X, STRATA_ONE, Y), STRATA_ERROR_SHAPE, "x", "4", "3",
               "columns");
    test_error(h, strata_gemv(h, STRATA_ONE, A, Y, STRATA_ONE, Y), STRATA_ERROR_ALIAS, "overlaps x");
    test_error(h, strata_gemv(h, STRATA_ONE, A, X, STRATA_ONE, strata_vector(a, STRATA_F64, 4, 1)),
               STRATA_ERROR_ALIAS, "overlaps A");
    test_error(h, strata_gemv(h, strata_complex(1, 1), A, X, STRATA_ONE, Y), STRATA_ERROR_TYPE, "alpha",
               "imaginary");
    test_error(h, strata_gemv(h, STRATA_ONE, A, strata_vector(x, STRATA_F32, 4, 1), STRATA_ONE, Y),
               STRATA_ERROR_TYPE, "f64", "f32");
    test_error(h, strata_gemv(h, STRATA_ONE, X, X, STRATA_ONE, Y), STRATA_ERROR_SHAPE, "rank");
    test_error(h, strata_trsv(h, A, Y), STRATA_ERROR_ARGUMENT, "strata_triangular");
    test_error(h, strata_trmv(h, strata_symmetric(A, STRATA_LOWER), Y), STRATA_ERROR_UNSUPPORTED,
               "symmetric");
    test_error(h, strata_syr(h, STRATA_ONE, X, A), STRATA_ERROR_ARGUMENT, "triangle");
    test_error(h, strata_ger(h, STRATA_ONE, X, Y, strata_conj(strata_symmetric(A, STRATA_LOWER))),
               STRATA_ERROR_UNSUPPORTED, "A");
    test_error(h, strata_ger(h, STRATA_ONE, X, strata_vector(y, STRATA_F64, 3, 1), A), STRATA_ERROR_SHAPE,
               "y", "3", "4");
    test_error(NULL, strata_trsv(NULL, A, Y), STRATA_ERROR_ARGUMENT, "handle");
    test_check(memcmp(before, y, sizeof y) == 0, "untouched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemv),    cmocka_unit_test(test_triangles), cmocka_unit_test(test_updates),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_refusals),
    };
    const int failures = cmocka_run_group_tests(tests, setup, teardown);
    return failures + (strcmp(test_device(), "cpu") == 0 ? test_lower_levels() : 0);
}
