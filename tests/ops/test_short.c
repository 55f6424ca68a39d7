/* SPDX-License-Identifier: Apache-2.0 */
/* test_short.c - the ways for short operands: strata_vectors_of against sums written out, at both sides of guard pages and with every sign of
 * increments, and strata_matvec_run_plain against the operators, which it must agree with to the bit; what it leaves to them it leaves untouched. */
#include "support.h"
#include "levels.h"
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <strata.h>

static strata_handle *h;
static const strata_type types[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};
static bool pairs(strata_type t) { return t == STRATA_C64 || t == STRATA_C128; }
static size_t size_of(strata_type t) { return strata_type_bits(t) / 8; }
static bool single(strata_type t) { return t == STRATA_F32 || t == STRATA_C64; }

static double complex get(strata_type t, const void *p)
{
    double re, im = 0;
    if (single(t))
        re = (double)((const float *)p)[0], im = pairs(t) ? (double)((const float *)p)[1] : 0;
    else
        re = ((const double *)p)[0], im = pairs(t) ? ((const double *)p)[1] : 0;
    return __builtin_complex(re, im);
}
static void put(strata_type t, void *p, double complex v)
{
    if (single(t)) {
        ((float *)p)[0] = (float)creal(v);
        if (pairs(t)) ((float *)p)[1] = (float)cimag(v);
    } else {
        ((double *)p)[0] = creal(v);
        if (pairs(t)) ((double *)p)[1] = cimag(v);
    }
}
static uint64_t seed = 20261201;
static double any(void) /* in [-1, 1], with 20 bits, so that single products are exact */
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(seed >> 43) / 0x1p+20 - 1;
}
static double complex any_of(strata_type t)
{
    const double re = any();
    return __builtin_complex(re, pairs(t) ? any() : 0);
}

/* n elements that reach from one end of a guarded block to the other; NaN between them */
typedef struct vec {
    char *block, *first;
    int64_t n, inc;
    strata_type t;
    double complex v[3100];
} vec;
static void make(vec *x, strata_type t, int64_t n, int64_t inc, bool end)
{
    const int64_t step = llabs(inc), bytes = ((n - 1) * step + 1) * (int64_t)size_of(t);
    x->block = test_guard((size_t)bytes, end);
    test_poison(x->block, (size_t)bytes);
    x->first = x->block + (inc < 0 ? (n - 1) * step * (int64_t)size_of(t) : 0);
    x->n = n, x->inc = inc, x->t = t;
    for (int64_t i = 0; i < n; i++) {
        x->v[i] = any_of(t);
        put(t, x->first + i * inc * (int64_t)size_of(t), x->v[i]);
        x->v[i] = get(t, x->first + i * inc * (int64_t)size_of(t));
    }
}
static double complex at(const vec *x, int64_t i)
{
    return get(x->t, x->first + i * x->inc * (int64_t)size_of(x->t));
}
static void done(vec *x)
{
    assert_true(test_guard_intact(x->block));
    test_guard_free(x->block);
}
static void near(double complex got, double complex want, double bound, const char *what, int64_t i)
{
    test_check(cabs(got - want) <= bound, "%s %lld: %g%+gi, expected %g%+gi within %g", what, (long long)i,
               creal(got), cimag(got), creal(want), cimag(want), bound);
}
static double size(double complex v) { return fabs(creal(v)) + fabs(cimag(v)); }

static void elementwise(const strata_vectors *k, vec *x, vec *y)
{
    const double u = single(x->t) ? 0x1p-24 : 0x1p-53, im = pairs(x->t) ? 0.375 : 0, a[2] = {1.5, im},
                 b[2] = {-0.75, im}, s[2] = {0.6, im}, zero[2] = {0, 0};
    const double complex va = __builtin_complex(a[0], a[1]), vb = __builtin_complex(b[0], b[1]),
                         vs = __builtin_complex(s[0], s[1]);
    const int64_t n = x->n;
#define AGAIN                                                               \
    for (int64_t i = 0; i < n; i++) {                                       \
        put(x->t, x->first + i * x->inc * (int64_t)size_of(x->t), x->v[i]); \
        put(y->t, y->first + i * y->inc * (int64_t)size_of(y->t), y->v[i]); \
    }
    k->axpy(n, a, x->first, x->inc, y->first, y->inc);
    for (int64_t i = 0; i < n; i++) near(at(y, i), va * x->v[i] + y->v[i], 24 * u, "axpy", i);
    AGAIN k->axpby(n, a, x->first, x->inc, b, y->first, y->inc);
    for (int64_t i = 0; i < n; i++) near(at(y, i), va * x->v[i] + vb * y->v[i], 24 * u, "axpby", i);
    k->axpby(n, a, x->first, x->inc, zero, y->first, y->inc);
    for (int64_t i = 0; i < n; i++) near(at(y, i), va * x->v[i], 24 * u, "axpby, b = 0", i);
    k->scal(n, a, y->first, y->inc);
    for (int64_t i = 0; i < n; i++) near(at(y, i), va * va * x->v[i], 48 * u, "scal", i);
    AGAIN k->swap(n, x->first, x->inc, y->first, y->inc);
    for (int64_t i = 0; i < n; i++)
        near(at(y, i), x->v[i], 0, "swap: y", i), near(at(x, i), y->v[i], 0, "swap: x", i);
    AGAIN k->copy(n, x->first, x->inc, y->first, y->inc);
    for (int64_t i = 0; i < n; i++) near(at(y, i), x->v[i], 0, "copy", i);
    AGAIN k->rot(n, 0.8, s, x->first, x->inc, y->first, y->inc);
    for (int64_t i = 0; i < n; i++) {
        near(at(x, i), 0.8 * x->v[i] + vs * y->v[i], 24 * u, "rot: x", i);
        near(at(y, i), 0.8 * y->v[i] - conj(vs) * x->v[i], 24 * u, "rot: y", i);
    }
    AGAIN
#undef AGAIN
}

static void vectors(void **state)
{
    (void)state;
    static const int64_t length[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 71, 130, 1024, 1025, 3001};
    static const int64_t inc[] = {1, 2, -1, -3};
    static vec x, y;
    for (int c = 0; c < 4 * TEST_COUNT(length) * TEST_COUNT(inc) * 2; c++) {
        const strata_type t = types[c % 4];
        const int64_t n = length[c / 4 % TEST_COUNT(length)],
                      ix = inc[c / 4 / TEST_COUNT(length) % TEST_COUNT(inc)], iy = c % 3 ? ix : 1;
        const bool end = c / 4 / TEST_COUNT(length) / TEST_COUNT(inc);
        const strata_vectors *k = strata_vectors_of(h, t);
        assert_true(k && n <= k->most && !k->reserved[0]);
        test_problem("%s, n %lld, increments %lld %lld, side %d", strata_type_name(t), (long long)n,
                     (long long)ix, (long long)iy, end);
        make(&x, t, n, ix, end), make(&y, t, n, iy, end);
        elementwise(k, &x, &y);
        double complex dot = 0, dotc = 0;
        double squares = 0, sum = 0, mag = 0, r[2];
        int64_t most = 0, least = 0;
        for (int64_t i = 0; i < n; i++) {
            dot += x.v[i] * y.v[i], dotc += conj(x.v[i]) * y.v[i];
            mag += size(x.v[i]) * size(y.v[i]);
            squares += creal(x.v[i] * conj(x.v[i])), sum += size(x.v[i]);
            if (size(x.v[i]) > size(x.v[most])) most = i;
            if (size(x.v[i]) < size(x.v[least])) least = i;
        }
        const double bound = ((double)n + 4) * (single(t) ? 0x1p-24 : 0x1p-53);
        k->dots(n, false, x.first, x.inc, y.first, y.inc, r);
        near(__builtin_complex(r[0], r[1]), dot, bound * mag, "dots", n);
        k->dots(n, true, x.first, x.inc, y.first, y.inc, r);
        near(__builtin_complex(r[0], r[1]), dotc, bound * mag, "dots, conjugated", n);
        assert_true(!k->dot == pairs(t));
        if (k->dot) near(k->dot(n, x.first, x.inc, y.first, y.inc), dot, bound * mag, "dot", n);
        near(k->nrm2(n, x.first, x.inc), sqrt(squares), bound * sqrt(squares), "nrm2", n);
        near(k->asum(n, x.first, x.inc), sum, bound * sum, "asum", n);
        near(size(x.v[k->iamax(n, x.first, x.inc)]), size(x.v[most]), 4 * bound, "iamax", n);
        near(size(x.v[k->iamin(n, x.first, x.inc)]), size(x.v[least]), 4 * bound, "iamin", n);
        /* the first of equal ones, and the first NaN before all */
        for (int64_t i = 0; i < n; i++) put(t, x.first + i * x.inc * (int64_t)size_of(t), 0.5);
        assert_true(k->iamax(n, x.first, x.inc) == 0 && k->iamin(n, x.first, x.inc) == 0);
        const int64_t nan = n / 2;
        put(t, x.first + (n - 1) * x.inc * (int64_t)size_of(t), INFINITY);
        test_check(k->iamax(n, x.first, x.inc) == n - 1, "Inf is the largest");
        put(t, x.first + (n - 1) * x.inc * (int64_t)size_of(t), NAN);
        put(t, x.first + nan * x.inc * (int64_t)size_of(t), NAN);
        test_check(k->iamax(n, x.first, x.inc) == nan && k->iamin(n, x.first, x.inc) == nan,
                   "the first NaN is at %lld", (long long)nan);
        test_check(isnan(k->nrm2(n, x.first, x.inc)) && isnan(k->asum(n, x.first, x.inc)), "NaN spreads");
        done(&x), done(&y);
    }
    assert_null(strata_vectors_of(h, STRATA_BF16));
    assert_null(strata_vectors_of(NULL, STRATA_F32));
}

/* ---- matrices ---- */
enum { MOST = 45 };
static char a_op[2 * MOST * MOST * 16], a_plain[sizeof a_op], x_op[2 * 3 * MOST * 16], x_plain[sizeof x_op],
    y_op[sizeof x_op], y_plain[sizeof x_op];

static void fill(strata_type t, void *one, void *two, size_t bytes, double scale)
{
    for (size_t i = 0; i < bytes; i += size_of(t)) put(t, (char *)one + i, scale * any_of(t));
    memcpy(two, one, bytes);
}

static void one_matrix(int c)
{
    const strata_type t = types[c % 4];
    const int64_t n = 1 + c * 7 % MOST, other = c % 3 ? n : 1 + c * 11 % MOST, ix = c % 5 == 0 ? -2 : 1,
                  iy = c % 7 == 0 ? 3 : 1;
    const strata_uplo uplo = c / 4 % 2 ? STRATA_LOWER : STRATA_UPPER;
    const bool packed = c / 8 % 3 == 0, rows = c / 3 % 2;
    const int op = c / 5 % 5, mirror = pairs(t) ? 2 : 1;
    const strata_order order = rows ? STRATA_ROW_MAJOR : STRATA_COL_MAJOR;
    const bool general = (op == STRATA_MATVEC_PRODUCT || op == STRATA_MATVEC_UPDATE) && c % 2;
    const int64_t m = general ? other : n, ld = MOST;
    fill(t, a_op, a_plain, sizeof a_op, 0.1), fill(t, x_op, x_plain, sizeof x_op, 1),
        fill(t, y_op, y_plain, sizeof y_op, 1);
    strata_tensor A = general ? strata_matrix(a_op, t, m, n, order, ld)
                      : packed
                          ? strata_packed(a_op, t, n, uplo, order)
                          : strata_triangular(strata_matrix(a_op, t, n, n, order, ld), uplo, STRATA_NON_UNIT);
    strata_matvec_plain p = {
        .op = op, .type = t, .m = m, .n = n, .kl = m, .ku = n, .incx = ix, .incy = iy, .a = a_plain};
    p.row = general || !packed ? A.stride[0] : !rows, p.col = general || !packed ? A.stride[1] : rows;
    if (!general) {
        p.packed = packed, p.half = uplo == STRATA_LOWER ? 1 : 2;
        *(p.half == 1 ? &p.ku : &p.kl) = 0;
        if (op == STRATA_MATVEC_PRODUCT || op >= STRATA_MATVEC_UPDATE) {
            p.mirror = mirror;
            A.flags |= mirror == 2 ? STRATA_TENSOR_HERMITIAN : STRATA_TENSOR_SYMMETRIC;
        }
    }
    const int64_t nx = op >= STRATA_MATVEC_UPDATE ? m : n, ny = op >= STRATA_MATVEC_UPDATE ? n : m;
    const strata_tensor X = strata_vector(x_op, t, nx, ix), Y = strata_vector(y_op, t, ny, iy);
    p.x = x_plain + ((char *)X.data - x_op), p.y = y_plain + ((char *)Y.data - y_op);
    p.alpha[0] = 0.75, p.beta[0] = c % 9 ? 0.5 : 0;
    if (pairs(t) && op != STRATA_MATVEC_UPDATE) p.alpha[1] = 0.25;
    if (op == STRATA_MATVEC_UPDATE && !general) p.y = p.x, p.incy = p.incx, p.conj_y = mirror == 2;
    const strata_scalar alpha = strata_complex(p.alpha[0], p.alpha[1]), beta = strata_real(p.beta[0]);
    test_problem("case %d: op %d of %s %lldx%lld, half %d, packed %d, rows %d", c, op, strata_type_name(t),
                 (long long)m, (long long)n, p.half, packed, rows);
    switch (op) {
    case STRATA_MATVEC_PRODUCT: test_ok(h, strata_gemv(h, alpha, A, X, beta, Y)); break;
    case STRATA_MATVEC_MULTIPLY: test_ok(h, strata_trmv(h, A, X)); break;
    case STRATA_MATVEC_SOLVE: test_ok(h, strata_trsv(h, A, X)); break;
    case STRATA_MATVEC_UPDATE:
        test_ok(h, general       ? strata_ger(h, alpha, X, Y, A)
                   : mirror == 2 ? strata_her(h, alpha, X, A)
                                 : strata_syr(h, alpha, X, A));
        break;
    default: test_ok(h, (mirror == 2 ? strata_her2 : strata_syr2)(h, alpha, X, Y, A)); break;
    }
    assert_int_equal(strata_matvec_run_plain(&p), STRATA_OK);
    assert_memory_equal(a_op, a_plain, sizeof a_op);
    assert_memory_equal(x_op, x_plain, sizeof x_op);
    assert_memory_equal(y_op, y_plain, sizeof y_op);
}

static void matrices(void **state)
{
    (void)state;
    for (int c = 0; c < 3000; c++) one_matrix(c);
}

/* What is not plain is left to the operators, and nothing was touched. */
static void refused(void **state)
{
    (void)state;
    double a[64], x[64], y[64];
    for (int i = 0; i < 64; i++) a[i] = x[i] = y[i] = i;
    const strata_matvec_plain good = {.type = STRATA_F64,
                                      .m = 4,
                                      .n = 4,
                                      .row = 1,
                                      .col = 8,
                                      .kl = 4,
                                      .ku = 4,
                                      .incx = 1,
                                      .incy = 1,
                                      .a = a,
                                      .x = x,
                                      .y = y,
                                      .alpha = {1, 0}};
    strata_matvec_plain p;
#define REFUSED(change)                                                      \
    p = good;                                                                \
    p.change;                                                                \
    assert_int_equal(strata_matvec_run_plain(&p), STRATA_ERROR_UNSUPPORTED); \
    for (int i = 0; i < 64; i++) assert_true(a[i] == i && x[i] == i && y[i] == i);
    REFUSED(type = STRATA_BF16)
    REFUSED(reserved = 1)
    REFUSED(m = 0)
    REFUSED(n = 513)
    REFUSED(y = x + 3)
    REFUSED(y = a + 27)
    REFUSED(row = 2)
    REFUSED(col = -8)
    REFUSED(alpha[0] = 0)
#undef REFUSED
    p = good;
    assert_int_equal(strata_matvec_run_plain(&p), STRATA_OK);
    for (int i = 0; i < 4; i++) assert_true(y[i] == i * 6 + (8 + 16 * 2 + 24 * 3));
}

int main(void)
{
    if (strata_create(&h, "cpu")) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(matrices),
                                       cmocka_unit_test(refused)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed + test_lower_levels();
}
