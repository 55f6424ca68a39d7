/* SPDX-License-Identifier: Apache-2.0 */
/* test_drop_in_rules.c - level 1 against sums written out, increments of 0, the numbers that xerbla reports, NaN and Inf, operands that overlap, many
 * threads, fork, and that the library has every name of the reference one.
 *
 * This program defines xerbla_ and cblas_xerbla itself, which is how programs replace them. */
#include "drop_in.h"
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what was reported ---------------------------------------------------------------------------------------------------------- */
static char reported[64];
static int64_t reported_info;
static bool from_c;
#ifdef ST_BLAS_ILP64
#    define XERBLA xerbla_64_
#else
#    define XERBLA xerbla_
#endif
STRATA_API void XERBLA(const char *name, const blas_int *info, size_t length); /* seen by the loader */
void XERBLA(const char *name, const blas_int *info, size_t length)
{
    snprintf(reported, sizeof reported, "%.*s", (int)length, name);
    reported_info = *info;
    from_c = false;
}
extern int RowMajorStrg;
static int row_major;
STRATA_API void cblas_xerbla(blas_int info, const char *name, const char *words, ...);
void cblas_xerbla(blas_int info, const char *name, const char *words, ...)
{
    (void)words;
    snprintf(reported, sizeof reported, "%s", name);
    reported_info = info;
    row_major = RowMajorStrg;
    from_c = true;
}
static void expect(const char *name, int64_t info, int row)
{
    test_check(!strcmp(reported, name) && reported_info == info, "reported %s %lld, expected %s %lld",
               reported, (long long)reported_info, name, (long long)info);
    if (from_c) test_check(row_major == row, "RowMajorStrg is %d for %s", row_major, name);
    reported[0] = 0, reported_info = 0;
}
static void expect_none(void)
{
    test_check(!reported[0], "%s %lld was reported", reported, (long long)reported_info);
}

typedef void gemm_c(int, int, int, blas_int, blas_int, blas_int, double, const void *, blas_int, const void *,
                    blas_int, double, void *, blas_int);
typedef void gemm_f(V, V, I, I, I, V, V, I, V, I, V, void *, I, size_t, size_t);

static void errors(void **state)
{
    (void)state;
    double x[16] = {0}, one = 1;
    gemm_c *gemm = symbol(F64, "?gemm", false);
    gemm_f *fgemm = symbol(F64, "?gemm", true);
    blas_int n2 = 2, n1 = 1, minus = -1;
    fgemm("/", "N", &n2, &n2, &n2, &one, x, &n2, x, &n2, &one, x, &n2, 1, 1), expect("DGEMM ", 1, 0);
    fgemm("N", "x", &n2, &n2, &n2, &one, x, &n2, x, &n2, &one, x, &n2, 1, 1), expect("DGEMM ", 2, 0);
    fgemm("N", "N", &n2, &minus, &n2, &one, x, &n2, x, &n2, &one, x, &n2, 1, 1), expect("DGEMM ", 4, 0);
    fgemm("N", "N", &n2, &n2, &n2, &one, x, &n1, x, &n2, &one, x, &n2, 1, 1), expect("DGEMM ", 8, 0);
    fgemm("c", "t", &n2, &n2, &n1, &one, x, &n1, x, &n1, &one, x, &n2, 1, 1), expect("DGEMM ", 10, 0);
    fgemm("N", "N", &n2, &n2, &n2, &one, x, &n2, x, &n2, &one, x, &n1, 1, 1), expect("DGEMM ", 13, 0);
    /* in CBLAS's own count by columns; by rows as the reference's xerbla expects it, which turns 4, 5, 9 and 11 round */
    gemm(0, 111, 111, 2, 2, 2, 1, x, 2, x, 2, 1, x, 2), expect("cblas_dgemm", 1, 0);
    gemm(COL, 0, 111, 2, 2, 2, 1, x, 2, x, 2, 1, x, 2), expect("cblas_dgemm", 2, 0);
    gemm(COL, 111, 0, 2, 2, 2, 1, x, 2, x, 2, 1, x, 2), expect("cblas_dgemm", 3, 0);
    gemm(COL, 111, 111, -1, 2, 2, 1, x, 2, x, 2, 1, x, 2), expect("cblas_dgemm", 4, 0);
    gemm(ROW, 111, 111, -1, 2, 2, 1, x, 2, x, 2, 1, x, 2), expect("cblas_dgemm", 5, 1);
    gemm(COL, 111, 111, 2, 1, 1, 1, x, 1, x, 1, 1, x, 2), expect("cblas_dgemm", 9, 0);
    gemm(ROW, 111, 111, 1, 1, 2, 1, x, 1, x, 1, 1, x, 1), expect("cblas_dgemm", 11, 1); /* lda */
    gemm(ROW, 111, 111, 1, 2, 1, 1, x, 1, x, 1, 1, x, 2), expect("cblas_dgemm", 9, 1);  /* ldb */
    gemm(ROW, 111, 111, 2, 2, 2, 1, x, 2, x, 2, 1, x, 1), expect("cblas_dgemm", 14, 1);
    test_check(RowMajorStrg == 0, "set only while an error is reported");
    typedef void gemv_f(V, I, I, V, V, I, V, I, V, void *, I, size_t);
    gemv_f *gemv = symbol(C128, "?gemv", true);
    blas_int zero = 0;
    char f[16] = {0};
    gemv("N", &n2, &n2, f, x, &n1, x, &n1, f, x, &n1, 1), expect("ZGEMV ", 6, 0);
    gemv("N", &n2, &n2, f, x, &n2, x, &zero, f, x, &n1, 1), expect("ZGEMV ", 8, 0);
    gemv("N", &n2, &n2, f, x, &n2, x, &n1, f, x, &zero, 1), expect("ZGEMV ", 11, 0);
    typedef void syrk_f(V, V, I, I, V, V, I, V, void *, I, size_t, size_t);
    ((syrk_f *)symbol(C64, "?syrk", true))("U", "C", &n2, &n2, f, x, &n2, f, x, &n2, 1, 1),
        expect("CSYRK ", 2, 0);
    ((syrk_f *)symbol(C64, "?herk", true))("U", "T", &n2, &n2, f, x, &n2, f, x, &n2, 1, 1),
        expect("CHERK ", 2, 0);
    typedef void her2k_f(V, V, I, I, V, V, I, V, I, V, void *, I, size_t, size_t);
    ((her2k_f *)symbol(C128, "?her2k", true))("U", "N", &n2, &n2, f, x, &n1, x, &n2, f, x, &n2, 1, 1);
    expect("ZHER2K", 7, 0);
    typedef void batch_f(V, V, I, I, I, V, V, I, V, I, V, V, I, I, I);
    const void *p[1] = {x};
    ((batch_f *)symbol(F64, "?gemm_batch", true))("N", "N", &n2, &n2, &n2, &one, p, &n2, p, &n2, &one, p, &n1,
                                                  &n1, &n1);
    expect("DGEMM_BATCH", 13, 0);
    /* sizes of 0 are no error, and nothing is read */
    fgemm("N", "N", &zero, &n2, &n2, &one, NULL, &n1, NULL, &n2, &one, NULL, &n1, 1, 1), expect_none();
    gemm(ROW, 111, 111, 0, 0, 0, 1, NULL, 1, NULL, 1, 0, NULL, 1), expect_none();
}

/* ---- level 1 ------------------------------------------------------------------------------------------------------------------------ */
static double parts(z v) { return fabs(creal(v)) + fabs(cimag(v)); }
static void result(int type, double got, double want, int64_t n)
{
    test_close(got, want, 8 * (double)(n + 4) * unit(type) * (fabs(want) + 1), "result");
}

static void reductions(void **state)
{
    (void)state;
    test_rng r = test_rng_make(41);
    for (int round = 0; round < test_rounds(300); round++) {
        const int type = (int)test_int(&r, 0, 3);
        const int64_t N = test_int(&r, 0, 40);
        const blas_int n = (blas_int)N, incx = (blas_int)increment(&r), incy = (blas_int)increment(&r);
        test_problem("level 1 %d type %c n %lld inc %d %d", round, letters[type], (long long)N, (int)incx,
                     (int)incy);
        array x = vector_make(&r, type, N, incx), y = vector_make(&r, type, N, incy);
        z dot = 0, dotc = 0;
        double asum = 0, squares = 0;
        int64_t most = 0;
        for (int64_t i = 0; i < N; i++) {
            const z xi = get(type, x.p, vector_at(N, incx, i)), yi = get(type, y.p, vector_at(N, incy, i));
            dot += xi * yi, dotc += conj(xi) * yi;
            asum += parts(xi), squares += creal(xi) * creal(xi) + cimag(xi) * cimag(xi);
            if (parts(xi) > parts(get(type, x.p, vector_at(N, incx, most)))) most = i;
        }
        static const char *const nrm2[] = {"snrm2", "dnrm2", "scnrm2", "dznrm2"}, *const sum[] = {
                                                                                      "sasum", "dasum",
                                                                                      "scasum", "dzasum"};
        void *f_nrm2 = symbol(type, nrm2[type], true), *f_asum = symbol(type, sum[type], true);
        const bool single = is_single(type);
        result(type,
               single ? (double)((float (*)(I, V, I))f_nrm2)(&n, x.p, &incx)
                      : ((double (*)(I, V, I))f_nrm2)(&n, x.p, &incx),
               sqrt(squares), N);
        /* asum, iamax and scal answer increments below 1 with nothing */
        result(type,
               single ? (double)((float (*)(I, V, I))f_asum)(&n, x.p, &incx)
                      : ((double (*)(I, V, I))f_asum)(&n, x.p, &incx),
               incx > 0 ? asum : 0, N);
        test_check(((blas_int(*)(I, V, I))symbol(type, "i?amax", true))(&n, x.p, &incx) ==
                       (incx > 0 && N ? most + 1 : 0),
                   "iamax from 1");
        test_check(((size_t(*)(blas_int, V, blas_int))symbol(type, "i?amax", false))(n, x.p, incx) ==
                       (size_t)(incx > 0 ? most : 0),
                   "iamax from 0");
        if (type == F32) {
            result(type,
                   (double)((float (*)(I, V, I, V, I))symbol(type, "?dot", true))(&n, x.p, &incx, y.p, &incy),
                   creal(dot), N);
            result(F64, ((double (*)(I, V, I, V, I))symbol(type, "dsdot", true))(&n, x.p, &incx, y.p, &incy),
                   creal(dot), N);
            const float add = 0.5f;
            result(type,
                   (double)((float (*)(I, V, V, I, V, I))symbol(type, "sdsdot", true))(&n, &add, x.p, &incx,
                                                                                       y.p, &incy),
                   creal(dot) + 0.5, N);
        }
        if (type == F64)
            result(type,
                   ((double (*)(blas_int, V, blas_int, V, blas_int))symbol(type, "?dot", false))(n, x.p, incx,
                                                                                                 y.p, incy),
                   creal(dot), N);
        if (type == C64) { /* complex results are returned as gfortran returns them */
            const float complex u =
                ((float complex (*)(I, V, I, V, I))symbol(type, "?dotu", true))(&n, x.p, &incx, y.p, &incy);
            result(type, (double)crealf(u), creal(dot), N), result(type, (double)cimagf(u), cimag(dot), N);
        }
        if (type == C128) {
            const z u = ((z(*)(I, V, I, V, I))symbol(type, "?dotc", true))(&n, x.p, &incx, y.p, &incy);
            result(type, creal(u), creal(dotc), N), result(type, cimag(u), cimag(dotc), N);
            double sub[2];
            ((void (*)(blas_int, V, blas_int, V, blas_int, void *))symbol(type, "?dotu_sub", false))(
                n, x.p, incx, y.p, incy, sub);
            result(type, sub[0], creal(dot), N), result(type, sub[1], cimag(dot), N);
        }
        for (int64_t i = 0; i < x.count; i++) test_check(array_same(&x, i), "x was written");
        array_free(&x), array_free(&y);
    }
}

/* axpy, axpby, copy, swap, scal, rot: one after the other with increments that may be 0, as the reference's loops do them */
static void vectors(void **state)
{
    (void)state;
    test_rng r = test_rng_make(42);
    for (int round = 0; round < test_rounds(500); round++) {
        const int type = (int)test_int(&r, 0, 3), kind = (int)test_int(&r, 0, 5);
        const int64_t N = test_int(&r, 0, 40);
        blas_int n = (blas_int)N, incx = (blas_int)increment(&r), incy = (blas_int)increment(&r);
        if (test_chance(&r, 0.15)) incx = 0;
        if (test_chance(&r, 0.15)) incy = 0;
        static const char *const names[] = {"?axpy", "?axpby", "?copy", "?swap", "?scal", "?rot"};
        const char *name = kind < 5 ? names[kind] : type == C64 ? "csrot" : type == C128 ? "zdrot" : "?rot";
        test_problem("%s %d type %c n %lld inc %d %d", name, round, letters[type], (long long)N, (int)incx,
                     (int)incy);
        array x = vector_make(&r, type, N, incx), y = vector_make(&r, type, N, incy);
        if (N && !incx) put(type, x.p, 0, some(&r, type));
        const z a = factor(&r, type), b = factor(&r, type);
        const double c = 0.6, s = 0.8;
        array wx = {type, x.count, malloc((size_t)x.count * sizes[type] + 1), NULL},
              wy = {type, y.count, malloc((size_t)y.count * sizes[type] + 1), NULL};
        memcpy(wx.p, x.p, (size_t)x.count * sizes[type]), memcpy(wy.p, y.p, (size_t)y.count * sizes[type]);
        for (int64_t i = 0; i < N; i++) {
            const int64_t at = vector_at(N, incx, i), to = vector_at(N, incy, i);
            const z u = get(type, wx.p, at), v = get(type, wy.p, to);
            if (kind == 0 && a != 0) put(type, wy.p, to, v + a * u);
            if (kind == 1) put(type, wy.p, to, (a == 0 ? 0 : a * u) + (b == 0 ? 0 : b * v));
            if (kind == 2) put(type, wy.p, to, u);
            if (kind == 3) put(type, wx.p, at, v), put(type, wy.p, to, u);
            if (kind == 4 && incx > 0) put(type, wx.p, at, a * u);
            if (kind == 5) put(type, wx.p, at, c * u + s * v), put(type, wy.p, to, c * v - s * u);
        }
        char fa[16], fb[16], fc[8], fs[8];
        put(type, fa, 0, a), put(type, fb, 0, b);
        const int real = is_single(type) ? F32 : F64;
        put(real, fc, 0, c), put(real, fs, 0, s);
        void *f = symbol(type, name, true);
        if (kind == 0) ((void (*)(I, V, V, I, void *, I))f)(&n, fa, x.p, &incx, y.p, &incy);
        if (kind == 1) ((void (*)(I, V, V, I, V, void *, I))f)(&n, fa, x.p, &incx, fb, y.p, &incy);
        if (kind == 2) ((void (*)(I, V, I, void *, I))f)(&n, x.p, &incx, y.p, &incy);
        if (kind == 3) ((void (*)(I, void *, I, void *, I))f)(&n, x.p, &incx, y.p, &incy);
        if (kind == 4) ((void (*)(I, V, void *, I))f)(&n, fa, x.p, &incx);
        if (kind == 5) ((void (*)(I, void *, I, void *, I, V, V))f)(&n, x.p, &incx, y.p, &incy, fc, fs);
        for (int64_t i = 0; i < N; i++) {
            const int64_t at = vector_at(N, incx, i), to = vector_at(N, incy, i);
            const double scale = 64 * (incx && incy ? 1 : 1 + (double)N);
            close_to(type, get(type, x.p, at), get(type, wx.p, at), scale, "x", i, 0);
            close_to(type, get(type, y.p, to), get(type, wy.p, to), scale, "y", i, 0);
        }
        free(wx.p), free(wy.p);
        array_free(&x), array_free(&y);
    }
}

/* ---- NaN, Inf, overlap ------------------------------------------------------------------------------------------------------------ */
static void special_values(void **state)
{
    (void)state;
    blas_int n = 3, one = 1;
    double x[3] = {1, NAN, 3}, big[3] = {1e300, -1e300, 1e300}, zero = 0, inf[3] = {1, INFINITY, 2};
    test_check(isnan(((double (*)(I, V, I))symbol(F64, "?nrm2", true))(&n, x, &one)), "nrm2 of a NaN");
    test_check(isinf(((double (*)(I, V, I))symbol(F64, "?nrm2", true))(&n, inf, &one)),
               "nrm2 of an infinity");
    test_close(((double (*)(I, V, I))symbol(F64, "?nrm2", true))(&n, big, &one), 1e300 * sqrt(3), 1e286,
               "nrm2 of large numbers");
    test_check(((blas_int(*)(I, V, I))symbol(F64, "i?amax", true))(&n, x, &one) == 2,
               "iamax gives the first NaN");
    ((void (*)(I, V, void *, I))symbol(F64, "?scal", true))(&n, &zero, x, &one);
    test_check(x[0] == 0 && isnan(x[1]) && x[2] == 0, "0 times NaN is NaN");
    double y[3] = {1, 2, 3};
    ((void (*)(I, V, V, I, void *, I))symbol(F64, "?axpy", true))(&n, &zero, x, &one, y, &one);
    test_check(y[1] == 2, "alpha = 0 does not read x");
    /* a zero in B does not hide a NaN in A (the reference's loops skip it in some orders; IEEE arithmetic does not) */
    double A[4] = {1, NAN, 2, 3}, B[4] = {0, 0, 1, 1}, C[4] = {NAN, NAN, NAN, NAN};
    ((gemm_c *)symbol(F64, "?gemm", false))(COL, 111, 111, 2, 2, 2, 1, A, 2, B, 2, 0, C, 2);
    test_check(C[0] == 0 && isnan(C[1]) && C[2] == 3 && isnan(C[3]),
               "beta = 0 does not read C, NaN comes through");
}

static void overlap(void **state)
{
    (void)state;
    /* C over A: as if A had been copied first */
    double m[4] = {1, 2, 3, 4}, b[4] = {0, 1, 1, 0};
    ((gemm_c *)symbol(F64, "?gemm", false))(COL, 111, 111, 2, 2, 2, 1, m, 2, b, 2, 0, m, 2);
    test_check(m[0] == 3 && m[1] == 4 && m[2] == 1 && m[3] == 2, "C is A");
    /* copy within a vector, element after element as the reference's loop */
    double v[6] = {1, 2, 3, 4, 5, 6};
    blas_int n = 5, one = 1;
    ((void (*)(I, V, I, void *, I))symbol(F64, "?copy", true))(&n, v + 1, &one, v, &one);
    for (int i = 0; i < 5; i++) test_check(v[i] == i + 2, "moved down by one");
    ((void (*)(I, void *, I, void *, I))symbol(F64, "?swap", true))(&n, v, &one, v, &one);
    test_check(v[0] == 2 && v[4] == 6, "a vector swapped with itself");
    /* x within A, whose other parts are the operand */
    double t[9] = {2, 0, 0, 1, 2, 0, 3, 4, 5};
    const blas_int n2 = 2, n3 = 3;
    ((void (*)(V, V, V, I, V, I, void *, I, size_t, size_t, size_t))symbol(F64, "?trmv", true))(
        "U", "N", "N", &n2, t, &n3, t + 6, &one, 1, 1, 1);
    test_check(t[6] == 10 && t[7] == 8 && t[8] == 5, "trmv on a column beside its triangle");
}

/* ---- threads and fork --------------------------------------------------------------------------------------------------------------- */
enum { THREADS = 8, SIZE = 96 };
static double expected[SIZE * SIZE], left[SIZE * SIZE], right[SIZE * SIZE];
static bool multiply(void)
{
    double *c = malloc(sizeof expected);
    bool same = true;
    for (int round = 0; round < 20 && same; round++) {
        ((gemm_c *)symbol(F64, "?gemm", false))(ROW, 111, 111, SIZE, SIZE, SIZE, 1, left, SIZE, right, SIZE,
                                                0, c, SIZE);
        same = !memcmp(c, expected, sizeof expected);
        const blas_int n = SIZE, one = 1;
        const double d = ((double (*)(I, V, I, V, I))symbol(F64, "?dot", true))(&n, left, &one, right, &one);
        same = same && d == d;
    }
    free(c);
    return same;
}
static void *worker(void *arg)
{
    (void)arg;
    return multiply() ? NULL : "differs";
}
static void threads_and_fork(void **state)
{
    (void)state;
    test_rng r = test_rng_make(43);
    for (int i = 0; i < SIZE * SIZE; i++) left[i] = test_real(&r, -1, 1), right[i] = test_real(&r, -1, 1);
    ((gemm_c *)symbol(F64, "?gemm", false))(ROW, 111, 111, SIZE, SIZE, SIZE, 1, left, SIZE, right, SIZE, 0,
                                            expected, SIZE);
    pthread_t t[THREADS];
    for (int round = 0; round < 3; round++) { /* threads come and go, each with a handle of its own */
        for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, worker, NULL);
        for (int i = 0; i < THREADS; i++) {
            void *wrong;
            pthread_join(t[i], &wrong);
            test_check(!wrong, "the same bits in every thread");
        }
    }
    if (TEST_UNDER_TSAN) return;
    for (int i = 0; i < 3; i++) {
        const pid_t child = fork();
        if (child == 0) _exit(multiply() ? 0 : 1);
        int status;
        waitpid(child, &status, 0);
        test_check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a forked child computes too (status %d)",
                   status);
        test_check(multiply(), "and so does its parent afterwards");
    }
}

/* ---- names ----------------------------------------------------------------------------------------------------------------------------- */
static void names(void **state)
{
    (void)state;
    static const char general[] =
        "?axpy ?copy ?swap ?scal ?axpby i?amax i?amin ?gemv ?gbmv ?trmv ?tbmv ?tpmv ?trsv ?tbsv ?tpsv ?gemm "
        "?symm ?syrk ?syr2k "
        "?trmm ?trsm ?gemmt ?gemmtr ?geadd ?omatcopy ?imatcopy ?gemm_batch ?gemm_batch_strided";
    static const char real[] =
        "?dot ?nrm2 ?asum ?rot ?rotg ?rotm ?rotmg ?ger ?symv ?sbmv ?spmv ?syr ?spr ?syr2 ?spr2";
    static const char complex_only[] =
        "?dotu ?dotc ?rotg ?geru ?gerc ?hemv ?hbmv ?hpmv ?her ?hpr ?her2 ?hpr2 ?hemm ?herk ?her2k ?gemm3m";
    static const char *const fortran[] = {general, real, complex_only};
    for (int type = 0; type < 4; type++)
        for (int part = 0; part < 3; part++) {
            if (part && (part == 2) != is_complex(type)) continue;
            char list[1024], *save = NULL;
            snprintf(list, sizeof list, "%s", fortran[part]);
            for (char *w = strtok_r(list, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
                symbol(type, w, true);
                if (strcmp(w, "?dotu") && strcmp(w, "?dotc")) symbol(type, w, false);
            }
        }
    static const char *const single[] = {"scnrm2", "dznrm2", "scasum", "dzasum", "csscal", "zdscal",
                                         "csrot",  "zdrot",  "dsdot",  "sdsdot", "scabs1", "dcabs1"};
    for (int i = 0; i < TEST_COUNT(single); i++) symbol(F32, single[i], true), symbol(F32, single[i], false);
    for (int type = C64; type <= C128; type++)
        symbol(type, "?dotu_sub", false), symbol(type, "?dotc_sub", false);
    symbol(F32, "lsame", true), symbol(F32, "xerbla_array", true);
    int (*lsame)(V, V, size_t, size_t) = symbol(F32, "lsame", true);
    test_check(lsame("u", "U", 1, 1) && lsame("N", "N", 1, 1) && !lsame("N", "T", 1, 1), "lsame");
    test_check(((float (*)(V))symbol(F32, "scabs1", true))((float[]){3, -4}) == 7, "scabs1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names),           cmocka_unit_test(errors),
                                       cmocka_unit_test(reductions),      cmocka_unit_test(vectors),
                                       cmocka_unit_test(special_values),  cmocka_unit_test(overlap),
                                       cmocka_unit_test(threads_and_fork)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
