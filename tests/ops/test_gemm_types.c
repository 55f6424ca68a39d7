/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm_types.c - products of 16-bit and 8-bit floats, bytes and tf32: whole numbers whose sums are exact in every kernel, so that any wrong
 * element shows; random numbers against f64 within bounds; every kernel by its id; batches, epilogues, odd addresses; the same bits a hundred times.
 * On the CPU as on GPUs. */
#include "support.h"
#include "runtime/gpu.h"
#include "runtime/handle.h"
#include <math.h>
#include <strata.h>

static strata_handle *h;

typedef struct combo {
    strata_type a, b, c;
    strata_math math;
} combo;
static const combo combos[] = {
    {STRATA_BF16, STRATA_BF16, STRATA_BF16, 0},
    {STRATA_BF16, STRATA_BF16, STRATA_F32, 0},
    {STRATA_F16, STRATA_F16, STRATA_F16, 0},
    {STRATA_F16, STRATA_F16, STRATA_F32, 0},
    {STRATA_F16, STRATA_F16, STRATA_BF16, 0},
    {STRATA_F32, STRATA_F32, STRATA_F32, STRATA_MATH_TF32},
    {STRATA_F32, STRATA_F32, STRATA_F32, STRATA_MATH_BF16X6},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_BF16, 0},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F32, STRATA_MATH_FAST_ACCUM},
    {STRATA_F8E5M2, STRATA_F8E4M3, STRATA_F16, 0},
    {STRATA_F8E4M3, STRATA_F8E5M2, STRATA_BF16, STRATA_MATH_FAST_ACCUM},
    {STRATA_I8, STRATA_I8, STRATA_I32, 0},
    {STRATA_I8, STRATA_I8, STRATA_F32, 0},
    {STRATA_I8, STRATA_I8, STRATA_I8, 0},
    {STRATA_BF16, STRATA_BF16, STRATA_I8, 0},
};

static bool on_gpu(void) { return h->gpu != NULL; }

/* ---- one problem ------------------------------------------------------------------------------------------------------------- */
typedef struct problem {
    int64_t g, m, n, k;
    bool ta, tb, tc, wild; /* stored transposed; wild: any strides */
    int64_t skew;          /* elements that addresses are moved by */
    double alpha, beta;
} problem;

typedef struct matrix {
    test_array whole;
    strata_tensor t; /* as the product takes it */
} matrix;

/* rows x cols, or a batch of such, in a guarded buffer; moved by `skew` elements */
static matrix make(test_rng *r, strata_type type, int64_t g, int64_t rows, int64_t cols, bool turned,
                   bool wild, int64_t skew)
{
    matrix x;
    const int64_t p = turned ? cols : rows, q = turned ? rows : cols;
    const int64_t dim[3] = {g, p, q + skew};
    x.whole = test_array_make(r, type, g ? 3 : 2, dim + (g ? 0 : 1), wild ? TEST_ANY : 0);
    x.t = x.whole.t;
    const int last = x.t.rank - 1;
    x.t.data = (char *)x.t.data + skew * x.t.stride[last] * (int64_t)(strata_type_bits(type) / 8);
    x.t.dim[last] = q;
    if (turned) x.t = strata_transpose(x.t);
    return x;
}

static double rounded(strata_type type, double v)
{
    char bits[16];
    st_store_f64(type, bits, v);
    st_load_f64(type, bits, &v);
    return v;
}

static double *values_of(const strata_tensor *t)
{
    int64_t i[STRATA_MAX_RANK] = {0}, at = 0;
    double *v = malloc((size_t)(strata_count(*t) + 1) * sizeof *v);
    assert_non_null(v);
    if (strata_count(*t)) do
            v[at++] = test_get(t, i);
        while (test_next(t, i));
    return v;
}

/* want = alpha A B + beta C and the sum of magnitudes, in f64 */
static void reference(const problem *p, const strata_tensor *A, const strata_tensor *B,
                      const strata_tensor *C, double *want, double *size)
{
    double *a = values_of(A), *b = values_of(B), *c = p->beta != 0 ? values_of(C) : NULL;
    const int64_t items = p->g ? p->g : 1, m = p->m, n = p->n, k = p->k;
    for (int64_t g = 0; g < items; g++)
        for (int64_t i = 0; i < m; i++) {
            double *w = want + (g * m + i) * n, *s = size + (g * m + i) * n;
            for (int64_t j = 0; j < n; j++) w[j] = s[j] = 0;
            for (int64_t l = 0; l < k; l++) {
                const double x = a[(g * m + i) * k + l];
                const double *y = b + (g * k + l) * n;
                for (int64_t j = 0; j < n; j++) {
                    w[j] += x * y[j];
                    s[j] += fabs(x * y[j]);
                }
            }
            for (int64_t j = 0; j < n; j++) {
                const double old = c ? c[(g * m + i) * n + j] : 0;
                w[j] = p->alpha * w[j] + p->beta * old;
                s[j] = fabs(p->alpha) * s[j] + fabs(p->beta * old);
            }
        }
    free(a);
    free(b);
    free(c);
}

static double unit(strata_type t) { return st_type_is_integer(t) ? 0 : test_unit(t); }

/* Runs one problem and compares every element; false when the device refuses it (forced kernels only). */
static bool run(test_rng *r, const combo *x, const problem *p, bool whole, const char *kernel)
{
    matrix A = make(r, x->a, p->g, p->m, p->k, p->ta, p->wild, p->skew),
           B = make(r, x->b, p->g, p->k, p->n, p->tb, p->wild, p->skew),
           C = make(r, x->c, p->g, p->m, p->n, p->tc, p->wild, p->skew);
    const bool integers = st_type_is_integer(x->a);
    test_problem("%s %s x %s into %s math %d, %lld x %lldx%lldx%lld, %d%d%d%s skew %lld, alpha %g beta %g",
                 whole ? "whole" : "random", strata_type_name(x->a), strata_type_name(x->b),
                 strata_type_name(x->c), (int)x->math, (long long)p->g, (long long)p->m, (long long)p->n,
                 (long long)p->k, p->ta, p->tb, p->tc, p->wild ? " wild" : "", (long long)p->skew, p->alpha,
                 p->beta);
    test_array *in[] = {&A.whole, &B.whole, &C.whole};
    for (int i = 0; i < (p->beta != 0 ? 3 : 2); i++)
        if (whole)
            test_array_integers(r, in[i], -2, 2);
        else
            test_array_random(r, in[i], integers ? -100 : -1, integers ? 100 : 1);
    const int64_t count = (p->g ? p->g : 1) * p->m * p->n;
    double *want = malloc((size_t)(count + 1) * 2 * sizeof *want), *size = want + count + 1;
    assert_non_null(want);
    reference(p, &A.t, &B.t, &C.t, want, size);
    const strata_gemm_options o = {.math = x->math};
    bool ran = true;
    if (kernel) {
        const strata_choice choice = {.kernel = kernel};
        strata_plan *plan;
        const strata_status s = strata_gemm_plan(h, strata_real(p->alpha), A.t, B.t, strata_real(p->beta),
                                                 C.t, &o, &choice, &plan);
        ran = s == STRATA_OK;
        if (!ran)
            test_check(s == STRATA_ERROR_UNSUPPORTED || s == STRATA_ERROR_ARGUMENT, "%s", strata_error(h));
        if (ran) {
            void *data[] = {A.t.data, B.t.data, C.t.data};
            test_ok(h, strata_plan_run(h, plan, data, NULL));
            strata_plan_destroy(plan);
        }
    } else {
        test_ok(h, strata_gemm(h, strata_real(p->alpha), A.t, B.t, strata_real(p->beta), C.t, &o));
    }
    if (ran) {
        /* sums in f32 (parts of them once more), factors of tf32 to 2^-10, 8-bit sums of FAST_ACCUM to 13 bits, then one rounding to C's type */
        double each = integers ? 0 : ((double)p->k + 4) * 0x1p-23;
        if (x->math == STRATA_MATH_TF32) each += 0x1.1p-9;
        if (x->math == STRATA_MATH_FAST_ACCUM) each += ((double)p->k / 32 + 4) * 0x1p-13;
        int64_t i[STRATA_MAX_RANK] = {0}, at = 0;
        if (count) do {
                const double w = rounded(x->c, want[at]);
                const double bound =
                    whole ? 0 : size[at] * each + (fabs(want[at]) + size[at] * each) * 2 * unit(x->c) + 1e-7;
                test_close(test_get(&C.t, i), w, bound, "C[%lld,%lld,%lld]", (long long)i[0], (long long)i[1],
                           (long long)i[2]);
                at++;
            } while (test_next(&C.t, i));
        if (!p->skew) test_array_intact(&C.whole);
    }
    free(want);
    test_array_free(&A.whole);
    test_array_free(&B.whole);
    test_array_free(&C.whole);
    return ran;
}

static problem any_problem(test_rng *r, const combo *x)
{
    static const int64_t size[] = {1,  2,   7,   8,   16,  31,  32,  33,  63,  64, 65,
                                   96, 127, 128, 129, 160, 200, 255, 256, 257, 300};
    problem p = {0};
    p.m = size[test_int(r, 0, 20)];
    p.n = size[test_int(r, 0, 20)];
    p.k = size[test_int(r, 0, 20)];
    p.ta = test_chance(r, 0.5);
    p.tb = test_chance(r, 0.5);
    p.tc = test_chance(r, 0.2);
    p.wild = test_chance(r, 0.3);
    p.skew = test_chance(r, 0.2) ? 1 : 0;
    if (test_chance(r, 0.25)) p.g = test_int(r, 1, 4);
    static const double alpha[] = {1, 1, 2, -1}, beta[] = {0, 0, 1, -2};
    p.alpha = alpha[test_int(r, 0, 3)];
    p.beta = beta[test_int(r, 0, 3)];
    (void)x;
    return p;
}

static void whole_numbers(void **state)
{
    (void)state;
    test_rng r = test_rng_make(31);
    for (int i = 0; i < test_rounds(25); i++) {
        const combo *x = &combos[test_int(&r, 0, TEST_COUNT(combos) - 1)];
        const problem p = any_problem(&r, x);
        run(&r, x, &p, true, NULL);
    }
}

static void random_numbers(void **state)
{
    (void)state;
    test_rng r = test_rng_make(32);
    for (int i = 0; i < test_rounds(12); i++) {
        const combo *x = &combos[test_int(&r, 0, TEST_COUNT(combos) - 1)];
        const problem p = any_problem(&r, x);
        run(&r, x, &p, false, NULL);
    }
}

/* k so long, and m, n so small, that k is split; tiles' edges; no k at all; alpha 0 */
static void shapes(void **state)
{
    (void)state;
    static const problem list[] = {
        {0, 64, 64, 4096, 0, 0, 0, 0, 0, 1, 0},   {0, 128, 136, 5000, 0, 1, 0, 0, 0, 1, 1},
        {0, 512, 1024, 64, 0, 1, 0, 0, 0, 1, 0},  {0, 1023, 513, 131, 0, 1, 0, 0, 0, 2, 1},
        {0, 1, 4096, 512, 0, 0, 0, 0, 0, 1, 0},   {0, 4096, 1, 512, 0, 1, 0, 0, 0, 1, 0},
        {0, 130, 70, 0, 0, 0, 0, 0, 0, 1, 1},     {0, 130, 70, 64, 0, 0, 0, 0, 0, 0, 1},
        {3, 130, 264, 200, 1, 1, 0, 0, 0, 1, -2}, {5, 65, 72, 128, 1, 0, 1, 0, 0, 1, 0},
    };
    test_rng r = test_rng_make(33);
    for (int t = 0; t < TEST_COUNT(combos); t++)
        for (int i = 0; i < TEST_COUNT(list); i++)
            if ((t + i) % 4 == 0 || getenv("STRATA_SOAK")) run(&r, &combos[t], &list[i], true, NULL);
}

/* Every kernel by its id where bf16 goes into bf16, a sample of the others (all in a soak: compiling them takes minutes), on shapes with and without edges. */
static bool usable(const char *id)
{
    strata_kernel_info info;
    for (int i = 0; strata_kernels(i, &info); i++)
        if (!strcmp(info.id, id)) return info.usable;
    return false;
}
static void every_kernel(void **state)
{
    (void)state;
    static const problem list[] = {
        {0, 256, 512, 512, 0, 1, 0, 0, 0, 1, 0}, {0, 256, 512, 512, 0, 0, 0, 0, 0, 1, 1},
        {0, 200, 328, 264, 1, 1, 0, 0, 0, 1, 0}, {0, 264, 136, 1096, 1, 0, 0, 0, 0, 2, 0},
        {0, 131, 77, 1091, 0, 1, 0, 0, 0, 1, 1},
    };
    /* on a CPU few rows and few columns too, B by rows and by columns */
    static const problem few[] = {
        {0, 1, 300, 1096, 0, 0, 0, 0, 0, 1, 0},  {0, 3, 277, 515, 0, 1, 0, 0, 0, 1, 1},
        {2, 16, 129, 700, 1, 0, 0, 0, 0, 2, -1}, {0, 300, 5, 641, 0, 1, 0, 0, 1, 1, 0},
        {0, 1003, 1, 77, 0, 0, 0, 0, 0, -1, 0},  {0, 9, 1001, 67, 1, 1, 1, 0, 0, 1, 1},
    };
    test_rng r = test_rng_make(34);
    strata_kernel_info info;
    int ran = 0, skinny = 0;
    for (int i = 0; strata_kernels(i, &info); i++) {
        if (!on_gpu()) { /* a CPU's kernel takes a family of types: it is told by the start of its id */
            for (int t = 0; t < TEST_COUNT(combos); t++) {
                const strata_type own = combos[t].a == STRATA_F8E5M2 ? STRATA_F8E4M3 : combos[t].a;
                char id[32];
                snprintf(id, sizeof id, "gemm_%.*s_", own == STRATA_F8E4M3 ? 2 : 8, strata_type_name(own));
                if (strncmp(info.id, id, strlen(id)) || strstr(info.id, "_sm")) continue;
                for (int s = 0; s < TEST_COUNT(list); s++)
                    if (run(&r, &combos[t], &list[s], true, info.id)) ran++;
                for (int s = 0; s < TEST_COUNT(few); s++)
                    for (int whole = 0; whole < 2; whole++)
                        if (run(&r, &combos[t], &few[s], whole, info.id))
                            ran++, skinny += strstr(info.id, "skinny") != NULL;
            }
            continue;
        }
        if (strncmp(info.id, "gemm_", 5) || !strstr(info.id, "_sm")) continue;
        for (int t = 0; t < TEST_COUNT(combos); t++) {
            char types[64];
            snprintf(types, sizeof types, "%s%s%s", strata_type_name(combos[t].a),
                     strata_type_name(combos[t].b), strata_type_name(combos[t].c));
            if (strcmp(types, info.types)) continue;
            if (t > 0 && !getenv("STRATA_SOAK") && !test_chance(&r, 0.04)) continue;
            for (int s = 0; s < TEST_COUNT(list); s++)
                if (run(&r, &combos[t], &list[s], true, info.id)) ran++;
        }
    }
    test_check(ran > 20, "only %d runs of kernels by id", ran);
    if (!on_gpu() && usable("gemm_bf16_skinny_avx512"))
        test_check(skinny >= 2 * 2 * 5, "only %d runs of kernels for few rows", skinny);
}

static void same_bits(void **state)
{
    (void)state;
    test_rng r = test_rng_make(35);
    static const int64_t shape[][3] = {{384, 520, 700}, {64, 64, 9000}};
    for (int s = 0; s < 2; s++) {
        const int64_t m = shape[s][0], n = shape[s][1], k = shape[s][2];
        matrix A = make(&r, STRATA_BF16, 0, m, k, false, false, 0),
               B = make(&r, STRATA_BF16, 0, k, n, false, false, 0),
               C = make(&r, STRATA_F32, 0, m, n, false, false, 0);
        test_array_random(&r, &A.whole, -1, 1);
        test_array_random(&r, &B.whole, -1, 1);
        const size_t bytes = (size_t)(m * n) * 4;
        void *first = malloc(bytes);
        assert_non_null(first);
        for (int i = 0; i < 100; i++) {
            test_poison(C.t.data, bytes);
            test_ok(h, strata_gemm(h, STRATA_ONE, A.t, B.t, STRATA_ZERO, C.t, NULL));
            if (i == 0) memcpy(first, C.t.data, bytes);
            test_check(!memcmp(first, C.t.data, bytes), "run %d has other bits", i);
        }
        free(first);
        test_array_free(&A.whole);
        test_array_free(&B.whole);
        test_array_free(&C.whole);
    }
}

/* bias, a residual, an extra output; on C stored by rows and by columns */
static void epilogues(void **state)
{
    (void)state;
    test_rng r = test_rng_make(36);
    static const struct {
        combo x;
        int64_t m, n, k;
        bool tc;
    } list[] = {
        {{STRATA_BF16, STRATA_BF16, STRATA_BF16, 0}, 300, 264, 200, false},
        {{STRATA_BF16, STRATA_BF16, STRATA_F32, 0}, 128, 100, 72, true},
        {{STRATA_F16, STRATA_F16, STRATA_F16, 0}, 64, 64, 8192, false},
        {{STRATA_I8, STRATA_I8, STRATA_I32, 0}, 130, 72, 160, false},
        {{STRATA_F8E4M3, STRATA_F8E4M3, STRATA_BF16, 0}, 200, 208, 256, false},
    };
    for (int i = 0; i < TEST_COUNT(list); i++) {
        const int64_t m = list[i].m, n = list[i].n, k = list[i].k;
        const combo *x = &list[i].x;
        test_problem("epilogue %d", i);
        matrix A = make(&r, x->a, 0, m, k, false, false, 0), B = make(&r, x->b, 0, k, n, false, false, 0),
               C = make(&r, x->c, 0, m, n, list[i].tc, false, 0),
               P = make(&r, STRATA_F32, 0, m, n, false, false, 0),
               R = make(&r, STRATA_F32, 0, m, n, true, false, 0);
        const int64_t dim[1] = {n};
        test_array bias = test_array_make(&r, STRATA_F32, 1, dim, 0);
        test_array *in[] = {&A.whole, &B.whole, &R.whole, &bias};
        for (int j = 0; j < 4; j++) test_array_integers(&r, in[j], -2, 2);
        const strata_operand ops[] = {{"bias", bias.t}, {"res", R.t}, {"pre", P.t}, {0}};
        const strata_gemm_options o = {.epilogue = "pre = acc + bias[n]; out = max(pre, 0) + res",
                                       .operands = ops};
        test_ok(h, strata_gemm(h, STRATA_ONE, A.t, B.t, STRATA_ZERO, C.t, &o));
        const problem p = {0, m, n, k, 0, 0, 0, 0, 0, 1, 0};
        double *want = malloc((size_t)(m * n) * 2 * sizeof *want);
        assert_non_null(want);
        reference(&p, &A.t, &B.t, &C.t, want, want + m * n);
        for (int64_t a = 0; a < m; a++)
            for (int64_t b = 0; b < n; b++) {
                const double pre = want[a * n + b] + test_elem(bias.t, b);
                test_close(test_elem(P.t, a, b), pre, 0, "pre[%lld,%lld]", (long long)a, (long long)b);
                test_close(test_elem(C.t, a, b), rounded(x->c, (pre > 0 ? pre : 0) + test_elem(R.t, a, b)), 0,
                           "C[%lld,%lld]", (long long)a, (long long)b);
            }
        free(want);
        test_array *all[] = {&A.whole, &B.whole, &C.whole, &P.whole, &R.whole, &bias};
        for (int j = 0; j < 6; j++) test_array_free(all[j]);
    }
}

/* A vector of rows, one of columns, a number, a residual, an extra output and C's old values together, on kernel `id`: operands with even and odd rows, addresses
 * that allow pairs and that do not. */
static bool fused_kernel(test_rng *r, const combo *x, const char *id, int round)
{
    static const int64_t shape[][3] = {{264, 392, 136}, {131, 277, 72}, {70, 33, 200}, {300, 264, 64}};
    const int64_t m = shape[round % 4][0], n = shape[round % 4][1], k = shape[round % 4][2],
                  odd = round % 3 == 1;
    const bool byte = x->c == STRATA_I8;
    const double beta = round % 2;
    matrix A = make(r, x->a, 0, m, k, round == 2, false, 0), B = make(r, x->b, 0, k, n, round != 2, false, 0),
           C = make(r, x->c, 0, m, n, false, false, 0), P = make(r, x->c, 0, m, n, false, false, odd),
           R = make(r, STRATA_BF16, 0, m, n, round == 3, false, odd),
           one = make(r, STRATA_F32, 0, 1, 1, false, false, 0);
    const int64_t dm[1] = {m}, dn[1] = {n};
    test_array s = test_array_make(r, STRATA_F32, 1, dm, 0), bias = test_array_make(r, STRATA_BF16, 1, dn, 0);
    test_array *in[] = {&A.whole, &B.whole, &R.whole, &bias, &C.whole};
    for (int j = 0; j < (beta != 0 ? 5 : 4); j++) test_array_integers(r, in[j], -2, 2);
    test_array_integers(r, &s, 1, 3);
    test_array_integers(r, &one.whole, 2, 2);
    test_problem("fused %s round %d", id, round);
    const int64_t rank0[1] = {1};
    strata_tensor number = strata_array(one.t.data, STRATA_F32, 0, rank0, NULL);
    const strata_operand ops[] = {{"s", s.t},   {"bias", bias.t}, {"one", number},
                                  {"res", R.t}, {"pre", P.t},     {0}};
    const strata_gemm_options o = {.epilogue = "pre = acc * s[m] + bias[n]; out = max(pre, 0) * one + res",
                                   .operands = ops,
                                   .math = x->math};
    const strata_choice choice = {.kernel = id};
    strata_plan *plan;
    const strata_status made =
        strata_gemm_plan(h, STRATA_ONE, A.t, B.t, strata_real(beta), C.t, &o, &choice, &plan);
    if (made == STRATA_OK) {
        const problem p = {0, m, n, k, 0, 0, 0, 0, 0, 1, beta};
        double *want = malloc((size_t)(m * n) * 2 * sizeof *want);
        assert_non_null(want);
        reference(&p, &A.t, &B.t, &C.t, want, want + m * n);
        void *data[] = {A.t.data, B.t.data, C.t.data, s.t.data, bias.t.data, one.t.data, R.t.data, P.t.data};
        test_ok(h, strata_plan_run(h, plan, data, NULL));
        for (int64_t a = 0; a < m; a++)
            for (int64_t b = 0; b < n; b++) {
                const double pre = want[a * n + b] * test_elem(s.t, a) + test_elem(bias.t, b),
                             out = (pre > 0 ? pre : 0) * 2 + test_elem(R.t, a, b);
                test_close(test_elem(P.t, a, b), rounded(x->c, pre), byte ? 0 : 1e-9, "pre[%lld,%lld]",
                           (long long)a, (long long)b);
                test_close(test_elem(C.t, a, b), rounded(x->c, out), 0, "C[%lld,%lld]", (long long)a,
                           (long long)b);
            }
        test_array_intact(&C.whole);
        if (!odd) test_array_intact(&P.whole);
        free(want);
        strata_plan_destroy(plan);
    }
    test_array *all[] = {&A.whole, &B.whole, &C.whole, &P.whole, &R.whole, &one.whole, &s, &bias};
    for (int j = 0; j < 8; j++) test_array_free(all[j]);
    return made == STRATA_OK;
}

static void epilogues_by_kernel(void **state)
{
    (void)state;
    if (!on_gpu()) skip(); /* a CPU's epilogue is one piece of code for all kernels */
    test_rng r = test_rng_make(39);
    strata_kernel_info info;
    int ran = 0;
    for (int i = 0; strata_kernels(i, &info); i++) {
        if (strncmp(info.id, "gemm_", 5) || !strstr(info.id, "_sm90a")) continue;
        for (int t = 0; t < TEST_COUNT(combos); t++) {
            char types[64];
            snprintf(types, sizeof types, "%s%s%s", strata_type_name(combos[t].a),
                     strata_type_name(combos[t].b), strata_type_name(combos[t].c));
            if (strcmp(types, info.types)) continue;
            const double chance = t == 0 && strstr(info.id, "_tn_") ? 1
                                  : strstr(info.id, "_turn")        ? 0.5
                                                                    : 0.04;
            if (!getenv("STRATA_SOAK") && !test_chance(&r, chance)) continue;
            for (int round = 0; round < 4; round++) ran += fused_kernel(&r, &combos[t], info.id, round);
        }
    }
    test_check(h->gpu->cc != 90 || ran > 20, "only %d runs of kernels by id", ran);
}

/* 8-bit floats with a scale for each row of A and each column of B, as an epilogue */
static void row_scales(void **state)
{
    (void)state;
    test_rng r = test_rng_make(40);
    static const int64_t shape[][3] = {{256, 512, 384}, {131, 264, 200}, {16, 1024, 640}};
    for (int i = 0; i < 3; i++) {
        const int64_t m = shape[i][0], n = shape[i][1], k = shape[i][2];
        test_problem("row scales %d", i);
        matrix A = make(&r, STRATA_F8E4M3, 0, m, k, false, false, 0),
               B = make(&r, STRATA_F8E4M3, 0, k, n, true, false, 0),
               C = make(&r, STRATA_BF16, 0, m, n, false, false, 0);
        test_array sa = test_array_make(&r, STRATA_F32, 1, (int64_t[]){m}, 0),
                   sb = test_array_make(&r, STRATA_F32, 1, (int64_t[]){n}, 0);
        test_array_random(&r, &A.whole, -1, 1);
        test_array_random(&r, &B.whole, -1, 1);
        test_array_random(&r, &sa, 0.5, 2);
        test_array_random(&r, &sb, 0.01, 3);
        const strata_operand ops[] = {{"sa", sa.t}, {"sb", sb.t}, {0}};
        const strata_gemm_options o = {.epilogue = "acc * sa[m] * sb[n]", .operands = ops};
        test_ok(h, strata_gemm(h, STRATA_ONE, A.t, B.t, STRATA_ZERO, C.t, &o));
        const problem p = {0, m, n, k, 0, 0, 0, 0, 0, 1, 0};
        double *want = malloc((size_t)(m * n) * 2 * sizeof *want), *size = want + m * n;
        assert_non_null(want);
        reference(&p, &A.t, &B.t, &C.t, want, size);
        for (int64_t a = 0; a < m; a++)
            for (int64_t b = 0; b < n; b++) {
                const double s = test_elem(sa.t, a) * test_elem(sb.t, b), w = want[a * n + b] * s;
                test_close(test_elem(C.t, a, b), w,
                           ((double)k + 6) * 0x1p-23 * size[a * n + b] * s + 0x1.02p-8 * fabs(w),
                           "C[%lld,%lld]", (long long)a, (long long)b);
            }
        test_array_intact(&C.whole);
        free(want);
        test_array *all[] = {&A.whole, &B.whole, &C.whole, &sa, &sb};
        for (int j = 0; j < 5; j++) test_array_free(all[j]);
    }
}

/* A batch of batches, with a B that all share along one axis. */
static void broadcast_batches(void **state)
{
    (void)state;
    test_rng r = test_rng_make(37);
    const int64_t m = 72, n = 136, k = 64;
    const int64_t da[] = {2, 3, m, k}, db[] = {1, 3, k, n}, dc[] = {2, 3, m, n};
    test_array A = test_array_make(&r, STRATA_BF16, 4, da, 0), B = test_array_make(&r, STRATA_BF16, 4, db, 0),
               C = test_array_make(&r, STRATA_BF16, 4, dc, TEST_PADDED);
    test_array_integers(&r, &A, -2, 2);
    test_array_integers(&r, &B, -2, 2);
    test_ok(h, strata_gemm(h, STRATA_ONE, A.t, B.t, STRATA_ZERO, C.t, NULL));
    for (int64_t x = 0; x < 2; x++)
        for (int64_t y = 0; y < 3; y++)
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    double s = 0;
                    for (int64_t l = 0; l < k; l++)
                        s += test_elem(A.t, x, y, i, l) * test_elem(B.t, 0, y, l, j);
                    test_close(test_elem(C.t, x, y, i, j), rounded(STRATA_BF16, s), 0,
                               "C[%lld,%lld,%lld,%lld]", (long long)x, (long long)y, (long long)i,
                               (long long)j);
                }
    test_array_intact(&C);
    test_array_free(&A);
    test_array_free(&B);
    test_array_free(&C);
}

/* Infinities and NaN have no bf16 parts: the product is then IEEE's all the same, C's old values included. */
static void parts_of_infinity(void **state)
{
    (void)state;
    test_rng r = test_rng_make(38);
    const int64_t m = 70, n = 130, k = 90;
    matrix A = make(&r, STRATA_F32, 0, m, k, false, false, 0),
           B = make(&r, STRATA_F32, 0, k, n, true, false, 0),
           C = make(&r, STRATA_F32, 0, m, n, false, false, 0);
    test_array *in[] = {&A.whole, &B.whole, &C.whole};
    for (int i = 0; i < 3; i++) test_array_integers(&r, in[i], 1, 3);
    const int64_t at[2] = {5, 7}, nan_at[2] = {9, 3};
    test_put(&A.t, at, (double)INFINITY);
    test_put(&B.t, nan_at, (double)NAN);
    const problem p = {0, m, n, k, 0, 0, 0, 0, 0, 1, 1};
    double *want = malloc((size_t)(m * n) * 2 * sizeof *want);
    assert_non_null(want);
    reference(&p, &A.t, &B.t, &C.t, want, want + m * n);
    const strata_gemm_options o = {.math = STRATA_MATH_BF16X6};
    test_ok(h, strata_gemm(h, STRATA_ONE, A.t, B.t, STRATA_ONE, C.t, &o));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            test_close(test_elem(C.t, i, j), want[i * n + j], 0, "C[%lld,%lld]", (long long)i, (long long)j);
    free(want);
    for (int i = 0; i < 3; i++) test_array_free(in[i]);
}

static void refusals(void **state)
{
    (void)state;
    strata_tensor A = strata_matrix(NULL, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0), B = A, C = A;
    strata_plan *p;
    const strata_gemm_options o = {.math = (strata_math)9};
    test_error(h, strata_gemm_plan(h, STRATA_ONE, A, B, STRATA_ZERO, C, &o, NULL, &p), STRATA_ERROR_ARGUMENT,
               "math mode 9");
    B = strata_matrix(NULL, STRATA_BF16, 4, 4, STRATA_ROW_MAJOR, 0);
    test_error(h, strata_gemm_plan(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL, NULL, &p), STRATA_ERROR_TYPE,
               "A is f32", "B is bf16");
    /* what a kernel of another device is asked for says what it needs */
    if (!on_gpu()) {
        const strata_choice choice = {.kernel = "gemm_bf16bf16bf16_tn_128x128x64_s6_pp_sm90a"};
        B = A;
        test_error(h, strata_gemm_plan(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL, &choice, &p),
                   STRATA_ERROR_ARGUMENT, "gemm_bf16bf16bf16_tn_128x128x64_s6_pp_sm90a");
    }
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(random_numbers),
        cmocka_unit_test(shapes),
        cmocka_unit_test(every_kernel),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(epilogues),
        cmocka_unit_test(broadcast_batches),
        cmocka_unit_test(parts_of_infinity),
        cmocka_unit_test(refusals),
        cmocka_unit_test(epilogues_by_kernel),
        cmocka_unit_test(row_scales),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
