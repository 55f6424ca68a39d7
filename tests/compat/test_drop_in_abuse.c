/* SPDX-License-Identifier: Apache-2.0 */
/* test_drop_in_abuse.c - what the interface allows although few do it: operands that are not read (alpha = 0) without an address, results inside their
 * operands, bands wider than the matrix, batches whose matrices overlap; and what it does not allow and a BLAS must report, not abort at. */
#include "drop_in.h"
#include <math.h>

static char reported[64];
static int64_t reported_info;
#ifdef ST_BLAS_ILP64
#    define XERBLA xerbla_64_
#else
#    define XERBLA xerbla_
#endif
STRATA_API void XERBLA(const char *name, const blas_int *info, size_t length);
void XERBLA(const char *name, const blas_int *info, size_t length)
{
    snprintf(reported, sizeof reported, "%.*s", (int)length, name);
    reported_info = *info;
}
STRATA_API void cblas_xerbla(blas_int info, const char *name, const char *words, ...);
void cblas_xerbla(blas_int info, const char *name, const char *words, ...)
{
    (void)words;
    snprintf(reported, sizeof reported, "%s", name);
    reported_info = info;
}
static void expect(const char *name, int64_t info)
{
    test_check(!strcmp(reported, name) && reported_info == info, "reported %s %lld, expected %s %lld",
               reported, (long long)reported_info, name, (long long)info);
    reported[0] = 0, reported_info = 0;
}

static const blas_int n0 = 0, n1 = 1, n2 = 2, n3 = 3, n4 = 4, n9 = 9;
static void all(int type, const char *p, int64_t n, double want, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        test_check(creal(get(type, p, i)) == want && cimag(get(type, p, i)) == 0, "%s: element %lld is %g",
                   what, (long long)i, creal(get(type, p, i)));
    test_check(!reported[0], "%s: %s %lld was reported", what, reported, (long long)reported_info);
}

/* alpha = 0: C := beta C (beta 3), whatever addresses A and B have */
static void nothing_read(void **state)
{
    (void)state;
    for (int type = F32; type <= C128; type++) {
        char zero[16] = {0}, three[16] = {0}, c[9 * 16];
        put(type, three, 0, 3);
#define FRESH \
    for (int fresh = 0; fresh < 9; fresh++) put(type, c, fresh, 2)
#define CALL(name, args, ...)                                 \
    do {                                                      \
        FRESH;                                                \
        ((void(*) args)symbol(type, name, true)) __VA_ARGS__; \
    } while (0)
        CALL("?gemm", (V, V, I, I, I, V, V, I, V, I, V, void *, I, size_t, size_t),
             ("N", "T", &n3, &n3, &n4, zero, NULL, &n3, NULL, &n3, three, c, &n3, 1, 1));
        all(type, c, 9, 6, "gemm");
        if (is_complex(type)) {
            CALL("?gemm3m", (V, V, I, I, I, V, V, I, V, I, V, void *, I, size_t, size_t),
                 ("N", "T", &n3, &n3, &n4, zero, NULL, &n3, NULL, &n3, three, c, &n3, 1, 1));
            all(type, c, 9, 6, "gemm3m");
        }
        CALL("?gemmt", (V, V, V, I, I, V, V, I, V, I, V, void *, I, size_t, size_t, size_t),
             ("U", "N", "T", &n1, &n4, zero, NULL, &n3, NULL, &n3, three, c, &n3, 1, 1, 1));
        all(type, c, 1, 6, "gemmt");
        all(type, c + sizes[type], 8, 2, "gemmt, beside it");
        for (int right = 0; right < 2; right++) {
            CALL("?symm", (V, V, I, I, V, V, I, V, I, V, void *, I, size_t, size_t),
                 (right ? "R" : "L", "U", &n3, &n3, zero, NULL, &n3, NULL, &n3, three, c, &n3, 1, 1));
            all(type, c, 9, 6, "symm");
            for (int solve = 0; solve < 2; solve++) {
                CALL(solve ? "?trsm" : "?trmm",
                     (V, V, V, V, I, I, V, V, I, void *, I, size_t, size_t, size_t, size_t),
                     (right ? "R" : "L", "U", "T", "N", &n3, &n3, zero, NULL, &n3, c, &n3, 1, 1, 1, 1));
                all(type, c, 9, 0, "trmm, trsm");
            }
        }
        CALL("?syrk", (V, V, I, I, V, V, I, V, void *, I, size_t, size_t),
             ("L", "N", &n1, &n4, zero, NULL, &n3, three, c, &n3, 1, 1));
        all(type, c, 1, 6, "syrk");
        CALL("?syr2k", (V, V, I, I, V, V, I, V, I, V, void *, I, size_t, size_t),
             ("L", "N", &n1, &n4, zero, NULL, &n3, NULL, &n3, three, c, &n3, 1, 1));
        all(type, c, 1, 6, "syr2k");
        CALL("?gemv", (V, I, I, V, V, I, V, I, V, void *, I, size_t),
             ("T", &n4, &n9, zero, NULL, &n4, NULL, &n1, three, c, &n1, 1));
        all(type, c, 9, 6, "gemv");
        CALL("?gbmv", (V, I, I, I, I, V, V, I, V, I, V, void *, I, size_t),
             ("T", &n4, &n9, &n1, &n1, zero, NULL, &n3, NULL, &n1, three, c, &n1, 1));
        all(type, c, 9, 6, "gbmv");
        const bool hermitian = is_complex(type);
        CALL(hermitian ? "?hemv" : "?symv", (V, I, V, V, I, V, I, V, void *, I, size_t),
             ("U", &n9, zero, NULL, &n9, NULL, &n1, three, c, &n1, 1));
        all(type, c, 9, 6, "symv");
        CALL(hermitian ? "?hbmv" : "?sbmv", (V, I, I, V, V, I, V, I, V, void *, I, size_t),
             ("U", &n9, &n1, zero, NULL, &n2, NULL, &n1, three, c, &n1, 1));
        all(type, c, 9, 6, "sbmv");
        CALL(hermitian ? "?hpmv" : "?spmv", (V, I, V, V, V, I, V, void *, I, size_t),
             ("U", &n9, zero, NULL, NULL, &n1, three, c, &n1, 1));
        all(type, c, 9, 6, "spmv");
        CALL(hermitian ? "?gerc" : "?ger", (I, I, V, V, I, V, I, void *, I),
             (&n3, &n3, zero, NULL, &n1, NULL, &n1, c, &n3));
        all(type, c, 9, 2, "ger");
        CALL("?axpy", (I, V, V, I, void *, I), (&n9, zero, NULL, &n1, c, &n1));
        all(type, c, 9, 2, "axpy");
        CALL("?axpby", (I, V, V, I, V, void *, I), (&n9, zero, NULL, &n1, three, c, &n1));
        all(type, c, 9, 6, "axpby");
        CALL("?geadd", (I, I, V, V, I, V, void *, I), (&n3, &n3, zero, NULL, &n3, three, c, &n3));
        all(type, c, 9, 6, "geadd");
        CALL("?omatcopy", (V, V, I, I, V, V, I, void *, I, size_t, size_t),
             ("C", "T", &n3, &n3, zero, NULL, &n3, c, &n3, 1, 1));
        all(type, c, 9, 0, "omatcopy");
        CALL("?gemm_batch_strided", (V, V, I, I, I, V, V, I, I, V, I, I, V, void *, I, I, I),
             ("N", "N", &n1, &n3, &n4, zero, NULL, &n3, &n9, NULL, &n4, &n9, three, c, &n1, &n3, &n3));
        all(type, c, 9, 6, "gemm_batch_strided");
        void *at[] = {c, c + 3 * sizes[type], c + 6 * sizes[type]};
        CALL("?gemm_batch", (V, V, I, I, I, V, V, I, V, I, V, void *const *, I, I, I),
             ("N", "N", &n1, &n3, &n4, zero, NULL, &n3, NULL, &n4, three, at, &n1, &n1, &n3));
        all(type, c, 9, 6, "gemm_batch");
    }
}

/* A result among the operands: as if they were read first. */
static void results_inside(void **state)
{
    (void)state;
    double x[6] = {1, 2, 3, 4, 5, 6}, c[6];
    ((void (*)(blas_int, V, blas_int, V, blas_int, void *))symbol(C128, "?dotu_sub", false))(3, x, 1, x, 1,
                                                                                             x);
    test_check(x[0] == 1 - 4 + 9 - 16 + 25 - 36 && x[1] == 2 * (2 + 12 + 30) && x[2] == 3, "dotu_sub");
    double a = 3, b = 4;
    ((void (*)(void *, void *, void *, void *))symbol(F64, "?rotg", true))(&a, &b, &c[0], &c[0]);
    test_check(a == 5 && fabs(c[0] - 0.8) < 1e-15, "rotg with c and s in one place");
    double d = 1, p[5] = {9, 9, 9, 9, 9};
    ((void (*)(void *, void *, void *, V, void *))symbol(F64, "?rotmg", true))(&d, &d, &d, &d, p);
    test_check(isfinite(d) && p[0] >= -2 && p[0] <= 1, "rotmg with one place for all");
    /* two products: the second's A is the first's C */
    double A[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, want[12];
    const double I2[4] = {2, 0, 0, 3}, one = 1, zero = 0;
    memcpy(want, A, sizeof A);
    for (int i = 0; i < 8; i++) want[4 + i] = A[i] * (i % 4 < 2 ? 2 : 3); /* columns */
    ((void (*)(V, V, I, I, I, V, V, I, I, V, I, I, V, void *, I, I, I))symbol(
        F64, "?gemm_batch_strided", true))("N", "N", &n2, &n2, &n2, &one, A, &n2, &n4, I2, &n2, &n0, &zero,
                                           A + 4, &n2, &n4, &n2);
    for (int i = 0; i < 12; i++) test_check(A[i] == want[i], "gemm_batch_strided: %d is %g", i, A[i]);
    /* addresses: in turn. The same C twice with beta = 1 adds both products */
    double M[4] = {1, 2, 3, 4}, S[4] = {0};
    const void *const ma[] = {M, M}, *const mb[] = {I2, I2};
    void *const mc[] = {S, S}, *const same[] = {M, M};
    typedef void batch_f(V, V, I, I, I, V, const void *const *, I, const void *const *, I, V, void *const *,
                         I, I, I);
    batch_f *batch = symbol(F64, "?gemm_batch", true);
    batch("N", "N", &n2, &n2, &n2, &one, ma, &n2, mb, &n2, &one, mc, &n2, &n1, &n2);
    test_check(S[0] == 4 && S[1] == 8 && S[2] == 18 && S[3] == 24, "gemm_batch into one C twice");
    batch("N", "N", &n2, &n2, &n2, &one, ma, &n2, mb, &n2, &zero, same, &n2, &n1, &n2);
    test_check(M[0] == 4 && M[1] == 8 && M[2] == 27 && M[3] == 36,
               "gemm_batch with C as A, one after another");
    test_check(!reported[0], "%s %lld was reported", reported, (long long)reported_info);
}

/* kl and ku beyond the matrix are storage that is skipped */
static void wide_bands(void **state)
{
    (void)state;
    enum { N = 3, W = 7 };
    blas_int n = N, w = W, ld = 2 * W + 1, half = W + 1;
    double a[(2 * W + 1) * N], x[N] = {1, 10, 100}, y[N], one = 1, zero = 0;
    for (int upper = -1; upper <= 1; upper++) { /* -1: general */
        for (int i = 0; i < (2 * W + 1) * N; i++) a[i] = NAN;
        const int64_t step = upper < 0 ? ld : half, top = upper == 0 ? 0 : W;
        for (int64_t j = 0; j < N; j++)
            for (int64_t i = 0; i < N; i++)
                if (upper < 0 || (upper ? i <= j : i >= j)) a[top + i - j + j * step] = (double)(1 + i + j);
        if (upper < 0)
            ((void (*)(V, I, I, I, I, V, V, I, V, I, V, void *, I, size_t))symbol(F64, "?gbmv", true))(
                "N", &n, &n, &w, &w, &one, a, &ld, x, &n1, &zero, y, &n1, 1);
        else
            ((void (*)(V, I, I, V, V, I, V, I, V, void *, I, size_t))symbol(F64, "?sbmv", true))(
                upper ? "U" : "L", &n, &w, &one, a, &half, x, &n1, &zero, y, &n1, 1);
        for (int i = 0; i < N; i++)
            test_check(y[i] == 111 + 111 * i + 210 && !reported[0], "y[%d] is %g", i, y[i]);
    }
#ifdef ST_BLAS_ILP64 /* more diagonals than 32 bits count: the middle of the band alone is memory */
    const blas_int far = INT64_C(1) << 33, room = 2 * far + 1;
    double m = 5;
    ((void (*)(V, I, I, I, I, V, V, I, V, I, V, void *, I, size_t))symbol(F64, "?gbmv", true))(
        "N", &n1, &n1, &far, &far, &one, (const void *)((uintptr_t)&m - (uintptr_t)far * 8), &room, x, &n1,
        &zero, y, &n1, 1);
    test_check(y[0] == 5 && !reported[0], "a band of 2^34 diagonals");
#endif
}

static void refused(void **state)
{
    (void)state;
    double A[64] = {0}, C[16], one = 1;
    for (int i = 0; i < 16; i++) C[i] = i;
    typedef void strided_f(V, V, I, I, I, V, V, I, I, V, I, I, V, void *, I, I, I);
    strided_f *strided = symbol(F64, "?gemm_batch_strided", true);
    strided("N", "N", &n2, &n2, &n2, &one, A, &n2, &n4, A, &n2, &n4, &one, C, &n2, &n0, &n2);
    expect("DGEMM_BATCH_STRIDED", 16);
    strided("N", "N", &n2, &n2, &n2, &one, A, &n2, &n4, A, &n2, &n4, &one, C, &n2, &n3, &n2);
    expect("DGEMM_BATCH_STRIDED", 16);
    typedef void strided_c(int, int, int, blas_int, blas_int, blas_int, double, V, blas_int, blas_int, V,
                           blas_int, blas_int, double, void *, blas_int, blas_int, blas_int);
    for (int order = ROW; order <= COL; order++) {
        ((strided_c *)symbol(F64, "?gemm_batch_strided", false))(order, 111, 111, 2, 2, 2, 1, A, 2, 4, A, 2,
                                                                 4, 1, C, 2, 3, 2);
        expect("cblas_dgemm_batch_strided", 17);
    }
    strided("N", "N", &n2, &n2, &n2, &one, A, &n2, &n4, A, &n2, &n4, &one, C, &n2, &n0,
            &n1); /* one product */
    test_check(!reported[0], "a distance that is never gone is not looked at");
    typedef void batch_f(V, V, I, I, I, V, const void *const *, I, const void *const *, I, V, void *const *,
                         I, I, I);
    batch_f *batch = symbol(F64, "?gemm_batch", true);
    const void *const good[] = {A, A}, *const hole[] = {A, NULL};
    void *const c[] = {C, C + 4}, *const chole[] = {NULL, C};
    batch("N", "N", &n2, &n2, &n2, &one, hole, &n2, good, &n2, &one, c, &n2, &n1, &n2),
        expect("DGEMM_BATCH", 7);
    batch("N", "N", &n2, &n2, &n2, &one, good, &n2, hole, &n2, &one, c, &n2, &n1, &n2),
        expect("DGEMM_BATCH", 9);
    batch("N", "N", &n2, &n2, &n2, &one, good, &n2, good, &n2, &one, chole, &n2, &n1, &n2),
        expect("DGEMM_BATCH", 12);
    const int no[] = {111};
    typedef void batch_c(int, const int *, const int *, I, I, I, V, const void *const *, I,
                         const void *const *, I, V, void *const *, I, blas_int, I);
    for (int order = ROW; order <= COL; order++) {
        ((batch_c *)symbol(F64, "?gemm_batch", false))(order, no, no, &n2, &n2, &n2, &one, hole, &n2, good,
                                                       &n2, &one, c, &n2, 1, &n2);
        expect("cblas_dgemm_batch", 8);
    }
    for (int i = 0; i < 16; i++) test_check(C[i] == i, "C was written");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_read), cmocka_unit_test(results_inside),
                                       cmocka_unit_test(wide_bands), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
