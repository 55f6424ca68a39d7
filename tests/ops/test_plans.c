/* SPDX-License-Identifier: Apache-2.0 */
/* test_plans.c - real plans of products: every candidate is rebuilt from its code with the same bits; candidates that name one order of summation
 * give the same bits; batch-invariant products give a row the same bits however many rows there are; measurements of one size serve its
 * bucket. */
#include "levels.h"
#include "support.h"
#include <strata.h>
#include <string.h>

static strata_handle *h;
static int setup(void **state)
{
    (void)state;
    setenv("STRATA_CACHE", "off", 1);
    return strata_create(&h, test_device());
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

typedef struct product {
    strata_type type;
    int64_t m, n, k;
    bool ta, tb;
    double alpha, beta;
    void *a, *b, *c0, *c;
    size_t c_bytes;
} product;

static void fill(test_rng *r, strata_type type, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double v = test_real(r, -1, 1);
        if (type == STRATA_F32)
            ((float *)to)[i] = (float)v;
        else
            ((double *)to)[i] = v;
    }
}

static product make(test_rng *r, strata_type type, int64_t m, int64_t n, int64_t k, bool ta, bool tb)
{
    product p = {type, m, n, k, ta, tb, test_chance(r, 0.5) ? 1 : 0.75, test_chance(r, 0.5) ? 0 : -0.5,
                 0,    0, 0, 0, 0};
    const size_t es = strata_type_bits(type) / 8;
    p.a = malloc((size_t)(m * k) * es + 1);
    p.b = malloc((size_t)(k * n) * es + 1);
    p.c_bytes = (size_t)(m * n) * es;
    p.c0 = malloc(p.c_bytes);
    p.c = malloc(p.c_bytes);
    fill(r, type, p.a, m * k);
    fill(r, type, p.b, k * n);
    fill(r, type, p.c0, m * n);
    test_problem("%s %lldx%lldx%lld%s%s alpha %g beta %g", strata_type_name(type), (long long)m, (long long)n,
                 (long long)k, ta ? " TA" : "", tb ? " TB" : "", p.alpha, p.beta);
    return p;
}
static void drop(product *p)
{
    free(p->a);
    free(p->b);
    free(p->c0);
    free(p->c);
}

static strata_tensor of(const void *data, strata_type t, int64_t rows, int64_t cols, bool turned)
{
    return turned ? strata_transpose(strata_matrix(data, t, cols, rows, STRATA_ROW_MAJOR, 0))
                  : strata_matrix(data, t, rows, cols, STRATA_ROW_MAJOR, 0);
}

static strata_status plan_of(const product *p, const strata_choice *choice, strata_plan **plan)
{
    return strata_gemm_plan(h, strata_real(p->alpha), of(p->a, p->type, p->m, p->k, p->ta),
                            of(p->b, p->type, p->k, p->n, p->tb), strata_real(p->beta),
                            of(p->c, p->type, p->m, p->n, false), NULL, choice, plan);
}

static void run(const product *p, const strata_plan *plan)
{
    memcpy(p->c, p->c0, p->c_bytes);
    test_ok(h, strata_plan_run(h, plan, (void *[]){p->a, p->b, p->c}, NULL));
}

static const int64_t sizes[] = {1, 2, 3, 7, 16, 17, 33, 64, 96, 130, 200};
static int64_t size(test_rng *r) { return sizes[test_int(r, 0, TEST_COUNT(sizes) - 1)]; }

static void codes_and_orders(void **state)
{
    (void)state;
    test_rng r = test_rng_make(70);
    int compared = 0;
    for (int i = 0; i < test_rounds(120); i++) {
        const int64_t k = test_chance(&r, 0.3) ? test_int(&r, 500, 1200) : size(&r);
        product p = make(&r, test_chance(&r, 0.5) ? STRATA_F32 : STRATA_F64, size(&r), size(&r), k,
                         test_chance(&r, 0.3), test_chance(&r, 0.3));
        strata_plan *plan;
        test_ok(h, plan_of(&p, NULL, &plan));
        strata_candidate c[64];
        void *result[64] = {NULL};
        int n = 0;
        while (n < 64 && strata_plan_candidates(plan, n, &c[n])) n++;
        for (int j = 0; j < n; j++) {
            if (c[j].predicted_us < 0 || (c[j].predicted_us > 3e4 && i % 8)) continue;
            strata_plan *again, *forced;
            const strata_choice choice = {.code = c[j].code}, named = {.kernel = c[j].kernel};
            test_ok(h, plan_of(&p, &choice, &again));
            assert_string_equal(strata_plan_kernel(again), c[j].kernel);
            assert_string_equal(strata_plan_code(again), c[j].code);
            run(&p, again);
            result[j] = malloc(p.c_bytes);
            memcpy(result[j], p.c, p.c_bytes);
            test_ok(h, plan_of(&p, &named, &forced));
            run(&p, forced);
            test_check(!memcmp(result[j], p.c, p.c_bytes), "%s rebuilt gives other bits", c[j].kernel);
            strata_plan_destroy(again);
            strata_plan_destroy(forced);
            for (int o = 0; o < j; o++)
                if (result[o] && !strcmp(c[o].order, c[j].order)) {
                    compared++;
                    test_check(!memcmp(result[o], result[j], p.c_bytes),
                               "%s and %s name one order (%s) and differ", c[o].kernel, c[j].kernel,
                               c[j].order);
                }
        }
        for (int j = 0; j < n; j++) free(result[j]);
        strata_plan_destroy(plan);
        drop(&p);
    }
    assert_true(compared > 0);
}

/* Rows of a product of many against products of fewer rows, as one-shot calls and as plans. */
static void batch_invariance(void **state)
{
    (void)state;
    test_rng r = test_rng_make(71);
    test_ok(h, strata_set_batch_invariant(h, true));
    static const int64_t some[] = {1, 2, 3, 5, 8, 16, 31, 64, 100, 257, 300};
    for (int i = 0; i < test_rounds(40); i++) {
        const int64_t k = test_chance(&r, 0.4) ? test_int(&r, 500, 1300) : size(&r);
        product p = make(&r, test_chance(&r, 0.5) ? STRATA_F32 : STRATA_F64, 300, size(&r), k, false,
                         test_chance(&r, 0.5));
        strata_plan *plan;
        test_ok(h, plan_of(&p, NULL, &plan));
        run(&p, plan);
        strata_plan_destroy(plan);
        void *whole = malloc(p.c_bytes);
        memcpy(whole, p.c, p.c_bytes);
        const size_t row = p.c_bytes / 300;
        for (int j = 0; j < TEST_COUNT(some); j++) {
            product q = p;
            q.m = some[j];
            q.c_bytes = row * (size_t)q.m;
            memcpy(q.c, q.c0, q.c_bytes);
            if (test_chance(&r, 0.5)) {
                test_ok(h, strata_gemm(h, strata_real(q.alpha), of(q.a, q.type, q.m, q.k, false),
                                       of(q.b, q.type, q.k, q.n, q.tb), strata_real(q.beta),
                                       of(q.c, q.type, q.m, q.n, false), NULL));
            } else {
                test_ok(h, plan_of(&q, &(strata_choice){.batch_invariant = true}, &plan));
                run(&q, plan);
                strata_plan_destroy(plan);
            }
            test_check(!memcmp(q.c, whole, q.c_bytes), "%lld rows differ from the first of 300",
                       (long long)q.m);
        }
        free(whole);
        drop(&p);
    }
}

/* Convolutions: an image has the same bits whatever the number of images. */
static void images(void **state)
{
    (void)state;
    test_rng r = test_rng_make(73);
    for (int i = 0; i < test_rounds(40); i++) {
        enum { N = 6 };
        const int64_t c = test_int(&r, 1, 40), o = test_int(&r, 1, 70), s = test_int(&r, 4, 15),
                      f = test_int(&r, 1, 3);
        const bool nchw = test_chance(&r, 0.4);
        strata_tensor (*make_image)(const void *, strata_type, int64_t, int64_t, int64_t, int64_t) =
            nchw ? strata_nchw : strata_nhwc;
        const strata_conv conv = {.pad = {test_int(&r, 0, 1), 1}, .stride = {test_int(&r, 1, 2), 1}};
        float *x = malloc((size_t)(N * c * s * s) * 4), *w = malloc((size_t)(o * c * f * f) * 4);
        fill(&r, STRATA_F32, x, N * c * s * s);
        fill(&r, STRATA_F32, w, o * c * f * f);
        test_problem("conv %s %lldx%lldx%lld:%lldx%lldx%lld pad %lld stride %lld", nchw ? "nchw" : "nhwc",
                     (long long)c, (long long)s, (long long)s, (long long)o, (long long)f, (long long)f,
                     (long long)conv.pad[0], (long long)conv.stride[0]);
        int64_t d[4];
        const strata_tensor W = make_image(w, STRATA_F32, o, c, f, f);
        test_ok(h, strata_conv_output(h, &conv, make_image(x, STRATA_F32, N, c, s, s), W, d));
        const size_t one = (size_t)(d[1] * d[2] * d[3]);
        float *y = malloc(one * N * 4), *z = malloc(one * N * 4);
        for (int64_t n = N; n >= 1; n = n == N ? 3 : n - 1) {
            strata_plan *p;
            float *to = n == N ? y : z;
            const strata_tensor X = make_image(x, STRATA_F32, n, c, s, s),
                                Y = make_image(to, STRATA_F32, n, d[1], d[2], d[3]);
            test_ok(h, strata_conv_forward_plan(h, &conv, X, W, Y, &(strata_choice){.batch_invariant = true},
                                                &p));
            test_ok(h, strata_plan_run(h, p, (void *[]){x, w, to}, NULL));
            test_check(n == N || !memcmp(y, z, one * (size_t)n * 4),
                       "%lld images differ from the first of %d: %s", (long long)n, N, strata_plan_kernel(p));
            strata_plan_destroy(p);
        }
        free(x);
        free(w);
        free(y);
        free(z);
    }
}

static void measured_by_bucket(void **state)
{
    (void)state;
    test_rng r = test_rng_make(72);
    product p = make(&r, STRATA_F32, 90, 80, 60, false, false);
    strata_plan *plan;
    strata_candidate c[64];
    int n = 0;
    test_ok(h, plan_of(&p, NULL, &plan));
    const strata_tune_options o = {.seconds = 0.1};
    test_ok(h, strata_tune(h, plan, NULL, &o, c, 64, &n));
    assert_true(n >= 1 && c[0].measured_us > 0);
    strata_plan_destroy(plan);
    for (int64_t m = 65; m <= 96; m++) {
        product q = p;
        q.m = m;
        q.c_bytes = (size_t)(m * 80 * 4) < p.c_bytes ? (size_t)(m * 80 * 4) : p.c_bytes;
        test_ok(h, plan_of(&q, NULL, &plan));
        test_check(strstr(strata_plan_describe(plan), "measured"), "%s", strata_plan_describe(plan));
        strata_plan_destroy(plan);
    }
    product q = p;
    q.m = 97;
    test_ok(h, plan_of(&q, NULL, &plan));
    assert_true(!strstr(strata_plan_describe(plan), "measured"));
    strata_plan_destroy(plan);
    drop(&p);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(codes_and_orders), T(batch_invariance), T(images),
                                       T(measured_by_bucket)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
