/* SPDX-License-Identifier: Apache-2.0 */
/* test_drop_in_level2.c - level 2 by its Fortran and C names, in both orders, against sums written out, on arrays that end at guard pages and hold NaN
 * wherever nothing is stored. */
#include "drop_in.h"

typedef struct call {
    int type;
    bool fortran, row;
} call;
static call some_call(test_rng *r)
{
    call c = {(int)test_int(r, 0, 3), test_chance(r, 0.5), false};
    c.row = !c.fortran && test_chance(r, 0.6);
    return c;
}
static int order(call c) { return c.row ? ROW : COL; }
static z vector_get(const array *x, bool after, int64_t n, int64_t inc, int64_t i)
{
    return get(x->type, after ? x->p : x->before, vector_at(n, inc, i));
}
static void gaps_untouched(const array *x, int64_t n, int64_t inc)
{
    for (int64_t at = 0; at < x->count; at++)
        if (at % (inc < 0 ? -inc : inc) || n == 0)
            test_check(array_same(x, at), "between the elements of y, place %lld", (long long)at);
}

/* y := alpha op(A) x + beta y for gemv, gbmv (general) and symv, sbmv, spmv, hemv, hbmv, hpmv */
static void check_product(call c, const matrix *A, meaning means, char op, z alpha, const array *x,
                          int64_t incx, z beta, const array *y, int64_t incy)
{
    const int64_t rows = op == 'N' ? A->m : A->n, cols = op == 'N' ? A->n : A->m;
    for (int64_t i = 0; i < rows; i++) {
        z sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += matrix_op(A, means, op, i, j) * vector_get(x, false, cols, incx, j);
        const z old = vector_get(y, false, rows, incy, i);
        const z want = cols ? alpha * sum + (beta == 0 ? 0 : beta * old) : old;
        close_to(c.type, vector_get(y, true, rows, incy, i), want, 8 * (double)(cols + 4) * 2, "y", i, 0);
    }
    gaps_untouched(y, rows, incy);
    for (int64_t i = 0; i < A->a.count; i++) test_check(array_same(&A->a, i), "A was written");
}

static void gemv(void **state)
{
    (void)state;
    test_rng r = test_rng_make(21);
    for (int round = 0; round < test_rounds(400); round++) {
        const call c = some_call(&r);
        const bool band = test_chance(&r, 0.5);
        const char op = some_op(&r);
        matrix A = {
            .form = band ? BAND : FULL, .row = c.row, .m = test_int(&r, 0, 9), .n = test_int(&r, 0, 9)};
        if (band) A.kl = test_int(&r, 0, 3), A.ku = test_int(&r, 0, 3);
        test_problem("gemv %d type %c %s op %c %lldx%lld", round, letters[c.type], c.row ? "row" : "col", op,
                     (long long)A.m, (long long)A.n);
        A = matrix_make(&r, c.type, A);
        const int64_t rows = op == 'N' ? A.m : A.n, cols = op == 'N' ? A.n : A.m;
        const blas_int incx = (blas_int)increment(&r), incy = (blas_int)increment(&r), m = (blas_int)A.m,
                       n = (blas_int)A.n, kl = (blas_int)A.kl, ku = (blas_int)A.ku, ld = (blas_int)A.ld;
        array x = vector_make(&r, c.type, cols, incx), y = vector_make(&r, c.type, rows, incy);
        const z alpha = factor(&r, c.type), beta = factor(&r, c.type);
        if (alpha == 0) memset(x.p, 0xff, (size_t)x.count * sizes[c.type]);
        if (beta == 0 && A.m && A.n) memset(y.p, 0xff, (size_t)y.count * sizes[c.type]);
        array_keep(&y);
        if (c.fortran) {
            char fa[16], fb[16];
            put(c.type, fa, 0, alpha), put(c.type, fb, 0, beta);
            if (band)
                ((void (*)(const char *, const blas_int *, const blas_int *, const blas_int *,
                           const blas_int *, const void *, const void *, const blas_int *, const void *,
                           const blas_int *, const void *, void *, const blas_int *,
                           size_t))symbol(c.type, "?gbmv", true))(&op, &m, &n, &kl, &ku, fa, A.a.p, &ld, x.p,
                                                                  &incx, fb, y.p, &incy, 1);
            else
                ((void (*)(const char *, const blas_int *, const blas_int *, const void *, const void *,
                           const blas_int *, const void *, const blas_int *, const void *, void *,
                           const blas_int *, size_t))symbol(c.type, "?gemv", true))(
                    &op, &m, &n, fa, A.a.p, &ld, x.p, &incx, fb, y.p, &incy, 1);
        } else if (band) {
#define CALL(S, u, v)                                                                                     \
    ((void (*)(int, int, blas_int, blas_int, blas_int, blas_int, S, const void *, blas_int, const void *, \
               blas_int, S, void *, blas_int))symbol(c.type, "?gbmv", false))(                            \
        order(c), c_op(op), m, n, kl, ku, u, A.a.p, ld, x.p, incx, v, y.p, incy)
            BY_TYPE(c.type, CALL, alpha, beta)
#undef CALL
        } else {
#define CALL(S, u, v)                                                                                       \
    ((void (*)(int, int, blas_int, blas_int, S, const void *, blas_int, const void *, blas_int, S, void *,  \
               blas_int))symbol(c.type, "?gemv", false))(order(c), c_op(op), m, n, u, A.a.p, ld, x.p, incx, \
                                                         v, y.p, incy)
            BY_TYPE(c.type, CALL, alpha, beta)
#undef CALL
        }
        check_product(c, &A, GENERAL, op, alpha, &x, incx, beta, &y, incy);
        array_free(&A.a), array_free(&x), array_free(&y);
    }
}

static matrix some_triangle(test_rng *r, call c, bool unit_diagonal)
{
    matrix A = {.form = (form)test_int(r, 0, 2),
                .row = c.row,
                .upper = test_chance(r, 0.5),
                .triangle = true,
                .unit = unit_diagonal};
    A.m = A.n = test_int(r, 0, 9);
    if (A.form == BAND) (*(A.upper ? &A.ku : &A.kl)) = test_int(r, 0, 3);
    return matrix_make(r, c.type, A);
}

static void symv(void **state)
{
    (void)state;
    test_rng r = test_rng_make(22);
    for (int round = 0; round < test_rounds(400); round++) {
        const call c = some_call(&r);
        matrix A = some_triangle(&r, c, false);
        static const char *const names[2][3] = {{"?symv", "?sbmv", "?spmv"}, {"?hemv", "?hbmv", "?hpmv"}};
        const char *name = names[is_complex(c.type)][A.form];
        test_problem("%s %d type %c %s %s n %lld k %lld", name, round, letters[c.type], c.row ? "row" : "col",
                     A.upper ? "upper" : "lower", (long long)A.n, (long long)(A.kl + A.ku));
        const blas_int incx = (blas_int)increment(&r), incy = (blas_int)increment(&r), n = (blas_int)A.n,
                       k = (blas_int)(A.kl + A.ku), ld = (blas_int)A.ld;
        array x = vector_make(&r, c.type, A.n, incx), y = vector_make(&r, c.type, A.n, incy);
        const z alpha = factor(&r, c.type), beta = factor(&r, c.type);
        if (beta == 0) memset(y.p, 0xff, (size_t)y.count * sizes[c.type]);
        array_keep(&y);
        void *f = symbol(c.type, name, c.fortran);
        char fa[16], fb[16];
        put(c.type, fa, 0, alpha), put(c.type, fb, 0, beta);
        if (c.fortran && A.form == FULL)
            ((void (*)(V, I, V, V, I, V, I, V, void *, I, size_t))f)(f_uplo(A.upper), &n, fa, A.a.p, &ld, x.p,
                                                                     &incx, fb, y.p, &incy, 1);
        else if (c.fortran && A.form == BAND)
            ((void (*)(V, I, I, V, V, I, V, I, V, void *, I, size_t))f)(f_uplo(A.upper), &n, &k, fa, A.a.p,
                                                                        &ld, x.p, &incx, fb, y.p, &incy, 1);
        else if (c.fortran)
            ((void (*)(V, I, V, V, V, I, V, void *, I, size_t))f)(f_uplo(A.upper), &n, fa, A.a.p, x.p, &incx,
                                                                  fb, y.p, &incy, 1);
#define FULL_CALL(S, u, v)                                                               \
    ((void (*)(int, int, blas_int, S, V, blas_int, V, blas_int, S, void *, blas_int))f)( \
        order(c), c_uplo(A.upper), n, u, A.a.p, ld, x.p, incx, v, y.p, incy)
#define BAND_CALL(S, u, v)                                                                         \
    ((void (*)(int, int, blas_int, blas_int, S, V, blas_int, V, blas_int, S, void *, blas_int))f)( \
        order(c), c_uplo(A.upper), n, k, u, A.a.p, ld, x.p, incx, v, y.p, incy)
#define PACKED_CALL(S, u, v)                                                   \
    ((void (*)(int, int, blas_int, S, V, V, blas_int, S, void *, blas_int))f)( \
        order(c), c_uplo(A.upper), n, u, A.a.p, x.p, incx, v, y.p, incy)
        else if (A.form == FULL)
            BY_TYPE(c.type, FULL_CALL, alpha, beta)
        else if (A.form == BAND)
            BY_TYPE(c.type, BAND_CALL, alpha, beta)
        else
            BY_TYPE(c.type, PACKED_CALL, alpha, beta)
#undef FULL_CALL
#undef BAND_CALL
#undef PACKED_CALL
        if (A.n)
            check_product(c, &A, is_complex(c.type) ? HERMITIAN : SYMMETRIC, 'N', alpha, &x, incx, beta, &y,
                          incy);
        array_free(&A.a), array_free(&x), array_free(&y);
    }
}

static void trmv(void **state)
{
    (void)state;
    test_rng r = test_rng_make(23);
    for (int round = 0; round < test_rounds(600); round++) {
        const call c = some_call(&r);
        const bool solve = test_chance(&r, 0.5), unit_diagonal = test_chance(&r, 0.5);
        const char op = some_op(&r);
        matrix A = some_triangle(&r, c, unit_diagonal);
        static const char *const names[2][3] = {{"?trmv", "?tbmv", "?tpmv"}, {"?trsv", "?tbsv", "?tpsv"}};
        const char *name = names[solve][A.form];
        test_problem("%s %d type %c %s %s op %c unit %d n %lld", name, round, letters[c.type],
                     c.row ? "row" : "col", A.upper ? "upper" : "lower", op, unit_diagonal, (long long)A.n);
        /* well conditioned: small beside the diagonal */
        for (int64_t i = 0; i < A.n && solve; i++)
            for (int64_t j = 0; j < A.n; j++)
                if (matrix_at(&A, i, j) >= 0)
                    put(c.type, A.a.p, matrix_at(&A, i, j),
                        i == j ? 2 + some(&r, c.type) / 4 : some(&r, c.type) / 16);
        array_keep(&A.a);
        const blas_int inc = (blas_int)increment(&r), n = (blas_int)A.n, k = (blas_int)(A.kl + A.ku),
                       ld = (blas_int)A.ld;
        array x = vector_make(&r, c.type, A.n, inc);
        void *f = symbol(c.type, name, c.fortran);
        const char *u = f_uplo(A.upper), *d = f_unit(unit_diagonal);
        const int o = order(c), cu = c_uplo(A.upper), co = c_op(op), cd = c_unit(unit_diagonal);
        if (c.fortran && A.form == FULL)
            ((void (*)(V, V, V, I, V, I, void *, I, size_t, size_t, size_t))f)(u, &op, d, &n, A.a.p, &ld, x.p,
                                                                               &inc, 1, 1, 1);
        else if (c.fortran && A.form == BAND)
            ((void (*)(V, V, V, I, I, V, I, void *, I, size_t, size_t, size_t))f)(u, &op, d, &n, &k, A.a.p,
                                                                                  &ld, x.p, &inc, 1, 1, 1);
        else if (c.fortran)
            ((void (*)(V, V, V, I, V, void *, I, size_t, size_t, size_t))f)(u, &op, d, &n, A.a.p, x.p, &inc,
                                                                            1, 1, 1);
        else if (A.form == FULL)
            ((void (*)(int, int, int, int, blas_int, V, blas_int, void *, blas_int))f)(o, cu, co, cd, n,
                                                                                       A.a.p, ld, x.p, inc);
        else if (A.form == BAND)
            ((void (*)(int, int, int, int, blas_int, blas_int, V, blas_int, void *, blas_int))f)(
                o, cu, co, cd, n, k, A.a.p, ld, x.p, inc);
        else
            ((void (*)(int, int, int, int, blas_int, V, void *, blas_int))f)(o, cu, co, cd, n, A.a.p, x.p,
                                                                             inc);
        for (int64_t i = 0; i < A.n; i++) {
            z sum = 0;
            for (int64_t j = 0; j < A.n; j++)
                sum += matrix_op(&A, TRIANGULAR, op, i, j) * vector_get(&x, solve, A.n, inc, j);
            const z want = vector_get(&x, !solve, A.n, inc, i);
            close_to(c.type, sum, want, 16 * (double)(A.n + 4), solve ? "A x" : "x", i, 0);
        }
        gaps_untouched(&x, A.n, inc);
        array_free(&A.a), array_free(&x);
    }
}

/* ger geru gerc, syr spr her hpr, syr2 spr2 her2 hpr2 */
static void updates(void **state)
{
    (void)state;
    test_rng r = test_rng_make(24);
    for (int round = 0; round < test_rounds(600); round++) {
        const call c = some_call(&r);
        const int kind = (int)test_int(&r, 0, 2); /* ger, syr, syr2 */
        const bool complex_type = is_complex(c.type),
                   gerc = kind == 0 && complex_type && test_chance(&r, 0.5);
        matrix A;
        if (kind == 0) {
            A = matrix_make(&r, c.type,
                            (matrix){.row = c.row, .m = test_int(&r, 0, 9), .n = test_int(&r, 0, 9)});
        } else {
            do {
                A = some_triangle(&r, c, false);
                if (A.form != BAND) break;
                array_free(&A.a);
            } while (true);
        }
        static const char *const names[2][2][2] = {{{"?syr", "?spr"}, {"?her", "?hpr"}},
                                                   {{"?syr2", "?spr2"}, {"?her2", "?hpr2"}}};
        const char *name = kind == 0 ? (!complex_type ? "?ger"
                                        : gerc        ? "?gerc"
                                                      : "?geru")
                                     : names[kind - 1][complex_type][A.form == PACKED];
        test_problem("%s %d type %c %s %s %lldx%lld", name, round, letters[c.type], c.row ? "row" : "col",
                     A.upper ? "upper" : "lower", (long long)A.m, (long long)A.n);
        const blas_int incx = (blas_int)increment(&r), incy = (blas_int)increment(&r), m = (blas_int)A.m,
                       n = (blas_int)A.n, ld = (blas_int)A.ld;
        array x = vector_make(&r, c.type, A.m, incx), y = vector_make(&r, c.type, A.n, incy);
        const z alpha = kind == 1 ? creal(factor(&r, c.type)) : factor(&r, c.type);
        void *f = symbol(c.type, name, c.fortran);
        char fa[16];
        put(kind == 1 ? (is_single(c.type) ? F32 : F64) : c.type, fa, 0, alpha);
        const char *u = f_uplo(A.upper);
        const int o = order(c), cu = c_uplo(A.upper);
        const bool packed = A.form == PACKED;
#define GER(S, a1, a2)                                                                                  \
    ((void)(a2), ((void (*)(int, blas_int, blas_int, S, V, blas_int, V, blas_int, void *, blas_int))f)( \
                     o, m, n, a1, x.p, incx, y.p, incy, A.a.p, ld))
#define SYR2(S, a1, a2)                                                                            \
    ((void)(a2), ((void (*)(int, int, blas_int, S, V, blas_int, V, blas_int, void *, blas_int))f)( \
                     o, cu, n, a1, x.p, incx, y.p, incy, A.a.p, ld))
        if (c.fortran && kind == 0)
            ((void (*)(I, I, V, V, I, V, I, void *, I))f)(&m, &n, fa, x.p, &incx, y.p, &incy, A.a.p, &ld);
        else if (c.fortran && kind == 1)
            ((void (*)(V, I, V, V, I, void *, I, size_t))f)(u, &n, fa, x.p, &incx, A.a.p, &ld, 1);
        else if (c.fortran)
            ((void (*)(V, I, V, V, I, V, I, void *, I, size_t))f)(u, &n, fa, x.p, &incx, y.p, &incy, A.a.p,
                                                                  &ld, 1);
        else if (kind == 0)
            BY_TYPE(c.type, GER, alpha, alpha)
        else if (kind == 1 && is_single(c.type))
            ((void (*)(int, int, blas_int, float, V, blas_int, void *, blas_int))f)(
                o, cu, n, (float)creal(alpha), x.p, incx, A.a.p, ld);
        else if (kind == 1)
            ((void (*)(int, int, blas_int, double, V, blas_int, void *, blas_int))f)(o, cu, n, creal(alpha),
                                                                                     x.p, incx, A.a.p, ld);
        else
            BY_TYPE(c.type, SYR2, alpha, alpha)
#undef GER
#undef SYR2
        (void)packed; /* its routines have no ld, and an argument too many does no harm */
        for (int64_t i = 0; i < A.m; i++)
            for (int64_t j = 0; j < A.n; j++) {
                const int64_t at = matrix_at(&A, i, j);
                if (at < 0) continue;
                const z xi = vector_get(&x, false, A.m, incx, i),
                        xj = kind ? vector_get(&x, false, A.m, incx, j) : 0,
                        yj = vector_get(&y, false, A.n, incy, j),
                        yi = kind ? vector_get(&y, false, A.n, incy, i) : 0;
                const bool her = kind && complex_type;
                z old = get(c.type, A.a.before, at), want = old;
                if (her && i == j && alpha != 0) want = creal(old);
                if (kind == 0) want += alpha * xi * (gerc ? conj(yj) : yj);
                if (kind == 1) want += alpha * xi * (her ? conj(xj) : xj);
                if (kind == 2)
                    want += her ? alpha * xi * conj(yj) + conj(alpha) * yi * conj(xj)
                                : alpha * (xi * yj + yi * xj);
                if (alpha == 0)
                    test_check(array_same(&A.a, at), "alpha = 0 changes nothing");
                else
                    close_to(c.type, get(c.type, A.a.p, at), want, 64, "A", i, j);
                if (her && i == j && alpha != 0)
                    test_check(cimag(get(c.type, A.a.p, at)) == 0, "a real diagonal");
            }
        matrix_untouched(&A);
        array_free(&A.a), array_free(&x), array_free(&y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gemv), cmocka_unit_test(symv), cmocka_unit_test(trmv),
                                       cmocka_unit_test(updates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
