/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm_complex.c - complex products against a double loop in long double: every kernel row by its id and the plan's choice, views of any
 * strides between guard pages with NaN around every element, conjugates, complex factors, batches, zeros of every kind, NaN and Inf.
 * With STRATA_MATH_3M too, whose kernels refuse who does not allow it. Bound: for each part of a result, 2 (k + 4) u times the sum of |re|+|im| products (Higham, Accuracy and Stability, section 3.6). */
#include "support.h"
#include <math.h>
#include <strata.h>

static strata_handle *h;

typedef struct num {
    long double re, im;
} num;

static num get(const strata_tensor *t, const int64_t *i)
{
    int64_t at = 0;
    for (int d = 0; d < t->rank; d++) at += i[d] * t->stride[d];
    num v;
    if (t->type == STRATA_C64) {
        const float *p = (const float *)t->data + 2 * at;
        v = (num){p[0], p[1]};
    } else {
        const double *p = (const double *)t->data + 2 * at;
        v = (num){p[0], p[1]};
    }
    return v;
}
static void set(const strata_tensor *t, const int64_t *i, double re, double im)
{
    int64_t at = 0;
    for (int d = 0; d < t->rank; d++) at += i[d] * t->stride[d];
    if (t->type == STRATA_C64) {
        float *p = (float *)t->data + 2 * at;
        p[0] = (float)re;
        p[1] = (float)im;
    } else {
        double *p = (double *)t->data + 2 * at;
        p[0] = re;
        p[1] = im;
    }
}
static void fill(test_rng *r, const strata_tensor *t)
{
    int64_t i[STRATA_MAX_RANK] = {0};
    if (strata_count(*t)) do
            set(t, i, test_real(r, -1, 1), test_real(r, -1, 1));
        while (test_next(t, i));
}
static num times(num a, num b) { return (num){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static long double size(num a) { return fabsl(a.re) + fabsl(a.im); }

typedef struct problem {
    strata_type type;
    int64_t g, m, n, k;
    bool ta, tb, tc, ca, cb, three; /* three: STRATA_MATH_3M is allowed */
    unsigned how;
    num alpha, beta;
} problem;

static test_array make(test_rng *r, const problem *p, int64_t rows, int64_t cols, bool turned,
                       strata_tensor *view)
{
    const int64_t dim[3] = {p->g, turned ? cols : rows, turned ? rows : cols};
    test_array a = test_array_make(r, p->type, p->g ? 3 : 2, dim + (p->g ? 0 : 1), p->how);
    *view = turned ? strata_transpose(a.t) : a.t;
    return a;
}

static void verify(const problem *p, const strata_tensor *A, const strata_tensor *B, const num *old,
                   const strata_tensor *C)
{
    const double u = test_unit(p->type == STRATA_C64 ? STRATA_F32 : STRATA_F64);
    int64_t i[STRATA_MAX_RANK] = {0}, at = 0;
    const int d = C->rank - 2;
    if (!strata_count(*C)) return;
    do {
        num s = {0, 0};
        long double all = 0;
        for (int64_t l = 0; l < p->k && size(p->alpha) != 0; l++) {
            int64_t ia[3] = {i[0], 0, 0}, ib[3] = {i[0], 0, 0};
            ia[d] = i[d];
            ia[d + 1] = l;
            ib[d] = l;
            ib[d + 1] = i[d + 1];
            num x = get(A, ia), y = get(B, ib);
            if (p->ca) x.im = -x.im;
            if (p->cb) y.im = -y.im;
            const num z = times(x, y);
            s.re += z.re;
            s.im += z.im;
            all += size(x) * size(y);
        }
        num want = times(p->alpha, s);
        long double scale = size(p->alpha) * all;
        if (size(p->beta) != 0) {
            const num z = times(p->beta, old[at]);
            want.re += z.re;
            want.im += z.im;
            scale += size(p->beta) * size(old[at]);
        }
        const double bound = (double)(2 * (long double)(p->k + 4) * u * scale) + 1e-300;
        const num got = get(C, i);
        test_close((double)got.re, (double)want.re, bound, "re C[%d,%d,%d]", (int)i[0], (int)i[1], (int)i[2]);
        test_close((double)got.im, (double)want.im, bound, "im C[%d,%d,%d]", (int)i[0], (int)i[1], (int)i[2]);
        at++;
    } while (test_next(C, i));
}

/* False when the kernel refuses the problem or this machine. */
static bool run(test_rng *r, const problem *p, const char *kernel)
{
    strata_tensor A, B, C;
    test_array a = make(r, p, p->m, p->k, p->ta, &A), b = make(r, p, p->k, p->n, p->tb, &B),
               c = make(r, p, p->m, p->n, p->tc, &C);
    test_problem("%s %s %lld x %lldx%lldx%lld turned %d%d%d conj %d%d 3m %d how %u alpha %g,%g beta %g,%g",
                 kernel ? kernel : "chosen", strata_type_name(p->type), (long long)p->g, (long long)p->m,
                 (long long)p->n, (long long)p->k, p->ta, p->tb, p->tc, p->ca, p->cb, p->three, p->how,
                 (double)p->alpha.re, (double)p->alpha.im, (double)p->beta.re, (double)p->beta.im);
    fill(r, &A);
    fill(r, &B);
    num *old = calloc((size_t)(strata_count(C) + 1), sizeof *old);
    assert_non_null(old);
    if (size(p->beta) != 0) { /* else C holds NaN */
        fill(r, &C);
        int64_t i[STRATA_MAX_RANK] = {0}, at = 0;
        if (strata_count(C)) do
                old[at++] = get(&C, i);
            while (test_next(&C, i));
    }
    const strata_tensor va = p->ca ? strata_conj(A) : A, vb = p->cb ? strata_conj(B) : B;
    const strata_scalar alpha = strata_complex((double)p->alpha.re, (double)p->alpha.im),
                        beta = strata_complex((double)p->beta.re, (double)p->beta.im);
    const strata_gemm_options options = {.math = STRATA_MATH_3M}, *o = p->three ? &options : NULL;
    bool ran = true;
    if (kernel) {
        const strata_choice choice = {.kernel = kernel};
        strata_plan *plan;
        const strata_status s = strata_gemm_plan(h, alpha, va, vb, beta, C, o, &choice, &plan);
        ran = s == STRATA_OK;
        if (!ran) test_check(s == STRATA_ERROR_UNSUPPORTED, "%s", strata_error(h));
        if (ran) {
            void *data[] = {A.data, B.data, C.data};
            test_ok(h, strata_plan_run(h, plan, data, NULL));
            strata_plan_destroy(plan);
        }
    } else {
        test_ok(h, strata_gemm(h, alpha, va, vb, beta, C, o));
    }
    if (ran) {
        verify(p, &A, &B, old, &C);
        test_array_intact(&c);
    }
    free(old);
    test_array_free(&a);
    test_array_free(&b);
    test_array_free(&c);
    return ran;
}

static problem any_problem(test_rng *r)
{
    static const int64_t length[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 64, 65, 97};
    static const num factor[] = {{1, 0}, {1, 0}, {0, 0}, {-1, 0}, {0.5L, -2}, {0, 1}};
    problem p = {.type = test_chance(r, 0.5) ? STRATA_C64 : STRATA_C128};
    p.m = length[test_int(r, 0, 17)];
    p.n = length[test_int(r, 0, 17)];
    p.k = test_chance(r, 0.1) ? test_int(r, 500, 1100) : length[test_int(r, 0, 17)];
    if (test_chance(r, 0.02)) p.k = 0;
    if (p.k > 400) p.m = test_int(r, 1, 9), p.n = test_int(r, 1, 40);
    if (test_chance(r, 0.1)) { /* few rows or columns beside a large operand */
        p.m = test_int(r, 1, 17);
        p.n = test_int(r, 150, 400);
        p.k = test_int(r, 90, 300);
        if (test_chance(r, 0.4)) {
            const int64_t t = p.m;
            p.m = p.n;
            p.n = t;
        }
    }
    if (test_chance(r, 0.2)) p.g = test_int(r, 1, 3);
    p.ta = test_chance(r, 0.5);
    p.tb = test_chance(r, 0.5);
    p.tc = test_chance(r, 0.3);
    p.ca = test_chance(r, 0.4);
    p.cb = test_chance(r, 0.4);
    p.how = test_chance(r, 0.4) ? TEST_ANY : test_chance(r, 0.5) ? TEST_PADDED : TEST_PACKED;
    p.alpha = factor[test_int(r, 0, 5)];
    p.beta = factor[test_int(r, 0, 5)];
    return p;
}

static void every_kernel(void **state)
{
    (void)state;
    test_rng r = test_rng_make(41);
    strata_kernel_info info;
    int ran = 0;
    if (strstr(strata_handle_device(h), "cuda"))
        skip(); /* a GPU has other kernels: test_cuda_gemm.c and the_choice */
    for (int i = 0; strata_kernels(i, &info); i++) {
        const bool c64 = !strncmp(info.id, "gemm_c64", 8), c128 = !strncmp(info.id, "gemm_c128", 9);
        if ((!c64 && !c128) || strstr(info.id, "_sm")) continue;
        for (int n = 0; n < test_rounds(strstr(info.id, "skinny") ? 100 : 40); n++) {
            problem p = any_problem(&r);
            p.type = c64 ? STRATA_C64 : STRATA_C128;
            p.three = strstr(info.id, "_3m") != NULL;
            ran += run(&r, &p, info.id);
        }
    }
    test_check(ran > 40 || strcmp(test_device(), "cpu"), "only %d runs of kernels by id", ran);
}

static void the_choice(void **state)
{
    (void)state;
    test_rng r = test_rng_make(42);
    for (int n = 0; n < test_rounds(150); n++) {
        problem p = any_problem(&r);
        p.three = test_chance(&r, 0.3);
        run(&r, &p, NULL);
    }
}

/* Large enough that three real products are chosen, by those alone who allow them: their bits differ, their error is within the bound of
 * gemm_3m.c; the same bits for any number of threads. */
static void three_products(void **state)
{
    (void)state;
    if (strstr(strata_handle_device(h), "cuda")) skip();
    enum { M = 190, N = 230, K = 700 };
    test_rng r = test_rng_make(44);
    test_array a = test_array_make(&r, STRATA_C64, 2, (int64_t[]){M, K}, TEST_PACKED),
               b = test_array_make(&r, STRATA_C64, 2, (int64_t[]){K, N}, TEST_PACKED), c[4];
    const strata_gemm_options options = {.math = STRATA_MATH_3M};
    fill(&r, &a.t);
    fill(&r, &b.t);
    test_problem("three real products");
    for (int i = 0; i < 4; i++) {
        c[i] = test_array_make(&r, STRATA_C64, 2, (int64_t[]){M, N}, TEST_PACKED);
        test_ok(h, strata_set_threads(h, i ? i : 1));
        test_ok(h, strata_gemm(h, STRATA_ONE, a.t, b.t, STRATA_ZERO, c[i].t, i ? &options : NULL));
    }
    test_ok(h, strata_set_threads(h, 0));
    const size_t bytes = sizeof(float) * 2 * M * N;
    test_check(memcmp(c[0].t.data, c[1].t.data, bytes), "the exact product came of STRATA_MATH_3M");
    test_check(!memcmp(c[1].t.data, c[2].t.data, bytes) && !memcmp(c[1].t.data, c[3].t.data, bytes),
               "the number of threads shows");
    const problem p = {.type = STRATA_C64, .m = M, .n = N, .k = K, .alpha = {1, 0}};
    verify(&p, &a.t, &b.t, NULL, &c[1].t);
    for (int i = 0; i < 4; i++) test_array_free(&c[i]);
    test_array_free(&a);
    test_array_free(&b);
    strata_plan *plan;
    strata_kernel_info info;
    for (int i = 0; strata_kernels(i, &info); i++)
        if (strstr(info.id, "_3m"))
            test_error(h,
                       strata_gemm_plan(h, STRATA_ONE, a.t, b.t, STRATA_ZERO, c[0].t, NULL,
                                        &(strata_choice){.kernel = info.id}, &plan),
                       strstr(info.id, "c64") ? STRATA_ERROR_UNSUPPORTED : STRATA_ERROR_ARGUMENT, info.id);
}

/* Results do not depend on how many threads there are. */
static void threads(void **state)
{
    (void)state;
    enum { N = 150 };
    test_rng r = test_rng_make(43);
    static double a[2 * N * N], b[2 * N * N], c[4][2 * N * N];
    for (int i = 0; i < 2 * N * N; i++) a[i] = test_real(&r, -1, 1), b[i] = test_real(&r, -1, 1);
    const strata_tensor A = strata_matrix(a, STRATA_C128, N, N, STRATA_ROW_MAJOR, 0),
                        B = strata_matrix(b, STRATA_C128, N, N, STRATA_COL_MAJOR, 0);
    for (int t = 0; t < 4; t++) {
        test_ok(h, strata_set_threads(h, t + 1));
        test_ok(h, strata_gemm(h, strata_complex(0.5, 1), A, strata_conj(B), STRATA_ZERO,
                               strata_matrix(c[t], STRATA_C128, N, N, STRATA_ROW_MAJOR, 0), NULL));
        test_check(!memcmp(c[t], c[0], sizeof c[0]), "%d threads give other bits", t + 1);
    }
    test_ok(h, strata_set_threads(h, 0));
}

/* A factor 1 + 0i leaves infinite elements alone; what multiplies a NaN or an infinity is NaN or infinite; others stay finite. */
static void not_finite(void **state)
{
    (void)state;
    float a[2 * 5 * 4], b[2 * 4 * 6], c[2 * 5 * 6];
    for (int i = 0; i < 40; i++) a[i] = 1;
    for (int i = 0; i < 48; i++) b[i] = 1;
    const strata_tensor A = strata_matrix(a, STRATA_C64, 5, 4, STRATA_ROW_MAJOR, 0),
                        B = strata_matrix(b, STRATA_C64, 4, 6, STRATA_ROW_MAJOR, 0),
                        C = strata_matrix(c, STRATA_C64, 5, 6, STRATA_ROW_MAJOR, 0);
    a[2 * (2 * 4 + 1)] = INFINITY; /* row 2 */
    b[2 * (3 * 6 + 4) + 1] = NAN;  /* column 4 */
    memset(c, 0xff, sizeof c);
    test_ok(h, strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL));
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 6; j++) {
            const float re = c[2 * (i * 6 + j)], im = c[2 * (i * 6 + j) + 1];
            if (j == 4)
                test_check(isnan(re) && isnan(im), "C[%d,%d] = %g, %g", i, j, (double)re, (double)im);
            else if (i == 2)
                test_check(isinf(re) && isinf(im), "C[%d,%d] = %g, %g", i, j, (double)re, (double)im);
            else
                test_check(re == 0 && im == 8, "C[%d,%d] = %g, %g", i, j, (double)re, (double)im);
        }
    /* alpha = 0 reads neither; beta = 0 + 0i clears NaN */
    test_ok(h, strata_gemm(h, STRATA_ZERO, A, B, STRATA_ZERO, C, NULL));
    for (int i = 0; i < 60; i++) test_check(c[i] == 0, "c[%d] = %g", i, (double)c[i]);
}

static int setup(void **state)
{
    (void)state;
    return strata_create(&h, test_device()) != STRATA_OK;
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel), cmocka_unit_test(the_choice),
                                       cmocka_unit_test(three_products), cmocka_unit_test(threads),
                                       cmocka_unit_test(not_finite)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
