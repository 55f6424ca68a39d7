/* SPDX-License-Identifier: Apache-2.0 */
/* test_plans.c - plans of products on a GPU: candidates that name one order of summation give the same bits, and each is rebuilt from its code; a
 * prepared operand gives the bits of the operand; batch-invariant products give a row the same bits in any number of rows; a search finds a
 * kernel that later plans take. Needs a GPU. */
#include <strata.h>
#include "support.h"

static strata_handle *h;
enum { MOST = 300, TRIED = 14 };

/* random values of 8 bits, so that the sums differ by their order */
static void *operand(test_rng *r, strata_type t, int64_t n)
{
    const size_t es = strata_type_bits(t) / 8;
    unsigned char *host = calloc((size_t)n + 4, es);
    void *d;
    for (int64_t i = 0; i < n; i++) {
        const float f = (float)test_real(r, -1, 1);
        uint32_t u;
        memcpy(&u, &f, 4);
        const uint16_t b = (uint16_t)(u >> 16);
        if (t == STRATA_F32)
            memcpy(host + 4 * i, &f, 4);
        else
            memcpy(host + 2 * i, &b, 2);
    }
    test_ok(h, strata_alloc(h, (size_t)n * es + 16, &d));
    test_ok(h, strata_copy(h, strata_vector(host, STRATA_U8, (int64_t)((size_t)n * es), 1),
                           strata_vector(d, STRATA_U8, (int64_t)((size_t)n * es), 1)));
    free(host);
    return d;
}

static void *bits(void *from, size_t n)
{
    void *to = calloc(1, n + 1);
    test_ok(h, strata_copy(h, strata_vector(from, STRATA_U8, (int64_t)n, 1),
                           strata_vector(to, STRATA_U8, (int64_t)n, 1)));
    test_ok(h, strata_synchronize(h));
    return to;
}

typedef struct product {
    strata_type t;
    int64_t m, n, k, ldb;
    void *a, *b, *c;
    size_t bytes;
} product;

static strata_status plan_of(const product *p, const strata_choice *choice, strata_plan **plan)
{
    return strata_gemm_plan(h, STRATA_ONE, strata_matrix(p->a, p->t, p->m, p->k, STRATA_ROW_MAJOR, 0),
                            strata_matrix(p->b, p->t, p->k, p->n, STRATA_COL_MAJOR, p->ldb), STRATA_ZERO,
                            strata_matrix(p->c, p->t, p->m, p->n, STRATA_ROW_MAJOR, 0), NULL, choice, plan);
}
static product make(test_rng *r, strata_type t, int64_t m, int64_t n, int64_t k, int64_t pad)
{
    test_problem("%s %lldx%lldx%lld pad %lld", strata_type_name(t), (long long)m, (long long)n, (long long)k,
                 (long long)pad);
    product p = {t,
                 m,
                 n,
                 k,
                 k + pad,
                 operand(r, t, m * k),
                 operand(r, t, n * (k + pad)),
                 operand(r, t, m * n),
                 (size_t)(m * n) * strata_type_bits(t) / 8};
    return p;
}
static void drop(product *p)
{
    test_ok(h, strata_free(h, p->a));
    test_ok(h, strata_free(h, p->b));
    test_ok(h, strata_free(h, p->c));
}
static void *result(const product *p, const strata_plan *plan, void *b, const strata_run *r)
{
    test_ok(h, strata_plan_run(h, plan, (void *[]){p->a, b, p->c}, r));
    return bits(p->c, p->bytes);
}

static const strata_type types[] = {STRATA_BF16, STRATA_F32};
static const int64_t shapes[][3] = {{128, 256, 512}, {16, 512, 1024}, {300, 200, 333}, {512, 512, 2048}};

static void orders_and_codes(void **state)
{
    (void)state;
    test_rng r = test_rng_make(80);
    static strata_candidate c[MOST];
    int compared = 0;
    for (int t = 0; t < 2; t++)
        for (int s = 0; s < TEST_COUNT(shapes); s++) {
            product p = make(&r, types[t], shapes[s][0], shapes[s][1], shapes[s][2], 0);
            strata_plan *plan, *one;
            void *seen[MOST] = {NULL};
            test_ok(h, plan_of(&p, NULL, &plan));
            int n = 0, tried = 0;
            while (n < MOST && strata_plan_candidates(plan, n, &c[n])) n++;
            for (int i = 0; i < n; i++) {
                if (c[i].predicted_us < 0 || c[i].predicted_us > 2000 || (!c[i].chosen && tried++ >= TRIED))
                    continue;
                const strata_choice again = {.code = c[i].code};
                test_ok(h, plan_of(&p, &again, &one));
                assert_string_equal(strata_plan_kernel(one), c[i].kernel);
                seen[i] = result(&p, one, p.b, NULL);
                strata_plan_destroy(one);
                for (int j = 0; j < i; j++)
                    if (seen[j] && !strcmp(c[j].order, c[i].order)) {
                        compared++;
                        test_check(!memcmp(seen[j], seen[i], p.bytes),
                                   "%s and %s name one order (%s) and differ", c[j].kernel, c[i].kernel,
                                   c[i].order);
                    }
            }
            for (int i = 0; i < n; i++) free(seen[i]);
            strata_plan_destroy(plan);
            drop(&p);
        }
    assert_true(compared > 0);
}

static void prepared(void **state)
{
    (void)state;
    test_rng r = test_rng_make(81);
    for (int i = 0; i < 6; i++) {
        product p = make(&r, STRATA_BF16, 64 + 100 * i, 256 + 40 * i, 200 + 64 * i,
                         3); /* rows of B that TMA cannot read */
        strata_plan *plan;
        strata_tensor W;
        test_ok(h, plan_of(&p, NULL, &plan));
        const strata_status s =
            strata_prepare(h, plan, 1, strata_matrix(p.b, p.t, p.k, p.n, STRATA_COL_MAJOR, p.ldb), &W);
        if (s == STRATA_ERROR_UNSUPPORTED) {
            print_message("%s reads B as it lies\n", strata_plan_kernel(plan));
        } else {
            test_ok(h, s);
            void *want = result(&p, plan, p.b, NULL),
                 *got = result(&p, plan, W.data, &(strata_run){.prepared = 2});
            test_check(!memcmp(want, got, p.bytes), "other bits with B prepared: %s",
                       strata_plan_kernel(plan));
            free(want);
            free(got);
            test_ok(h, strata_free(h, W.data));
        }
        strata_plan_destroy(plan);
        drop(&p);
    }
}

static void batch_invariance(void **state)
{
    (void)state;
    test_rng r = test_rng_make(82);
    static const int64_t rows[] = {1, 2, 7, 16, 33, 128, 511};
    test_ok(h, strata_set_batch_invariant(h, true));
    for (int t = 0; t < 2; t++) {
        product p = make(&r, types[t], 512, 384, 2048, 0);
        strata_plan *plan;
        test_ok(h, plan_of(&p, NULL, &plan));
        void *whole = result(&p, plan, p.b, NULL);
        strata_plan_destroy(plan);
        for (int i = 0; i < TEST_COUNT(rows); i++) {
            product q = p;
            q.m = rows[i];
            q.bytes = p.bytes / 512 * (size_t)rows[i];
            test_ok(h, plan_of(&q, NULL, &plan));
            void *part = result(&q, plan, q.b, NULL);
            test_check(!memcmp(part, whole, q.bytes), "%lld rows differ: %s", (long long)rows[i],
                       strata_plan_kernel(plan));
            free(part);
            strata_plan_destroy(plan);
        }
        free(whole);
        drop(&p);
    }
    test_ok(h, strata_set_batch_invariant(h, false));
}

static void tuned(void **state)
{
    (void)state;
    test_rng r = test_rng_make(83);
    product p = make(&r, STRATA_BF16, 1000, 1024, 1024, 0);
    strata_plan *plan, *winner;
    strata_candidate c[8];
    int n;
    test_ok(h, plan_of(&p, NULL, &plan));
    const strata_tune_options o = {.seconds = 2};
    test_ok(h, strata_tune(h, plan, NULL, &o, c, 8, &n));
    for (int i = 0; i < 8 && i < n && c[i].measured_us > 0; i++)
        print_message("%8.2f us measured, %8.2f predicted  %s%s\n", c[i].measured_us, c[i].predicted_us,
                      c[i].kernel, c[i].chosen ? " (the choice)" : "");
    test_ok(h, plan_of(&p, NULL, &winner));
    assert_non_null(strstr(strata_plan_describe(winner), "measured"));
    strata_plan_destroy(plan);
    strata_plan_destroy(winner);
    drop(&p);
}

int main(void)
{
    if (strata_create(&h, "cuda:0")) {
        printf("skipped: %s\n", strata_error(NULL));
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(orders_and_codes), cmocka_unit_test(prepared),
                                       cmocka_unit_test(batch_invariance), cmocka_unit_test(tuned)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed;
}
