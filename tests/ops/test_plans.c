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
    return strata_create(&h, "cpu"); /* tests/gpu/test_plans.c is the same on a GPU */
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

static const char *packed_of(strata_type t)
{
    static char id[96];
    strata_kernel_info k;
    for (int i = 0; strata_kernels(i, &k); i++)
        if (k.usable && !strcmp(k.family, "gemm") && strstr(k.order, "blocks") &&
            !strncmp(k.types, strata_type_name(t), 3) && !strncmp(k.id, "gemm_", 5)) {
            snprintf(id, sizeof id, "%s", k.id);
            return id;
        }
    return NULL;
}

/* The same bits from a prepared operand, for one thread and several, and in a plan of another number of rows. */
static void prepared(void **state)
{
    (void)state;
    test_rng r = test_rng_make(74);
    for (int i = 0; i < test_rounds(60); i++) {
        test_ok(h, strata_set_threads(h, (int)test_int(&r, 1, 3)));
        const int64_t k = test_chance(&r, 0.4) ? test_int(&r, 500, 1300) : size(&r);
        product p = make(&r, test_chance(&r, 0.5) ? STRATA_F32 : STRATA_F64, test_int(&r, 1, 150),
                         test_int(&r, 1, 300), k, test_chance(&r, 0.4), test_chance(&r, 0.4));
        const strata_choice choice = {.kernel = packed_of(p.type)};
        const strata_tensor A = of(p.a, p.type, p.m, p.k, p.ta), B = of(p.b, p.type, p.k, p.n, p.tb);
        strata_plan *plan;
        test_ok(h, plan_of(&p, &choice, &plan));
        run(&p, plan);
        void *want = malloc(p.c_bytes);
        memcpy(want, p.c, p.c_bytes);
        for (int operand = 0; operand < 2; operand++) {
            strata_tensor W;
            const strata_status s = strata_prepare(h, plan, operand, operand ? B : A, &W);
            if (s == STRATA_ERROR_UNSUPPORTED && strstr(strata_error(h), "reads operand"))
                continue; /* read in place */
            test_ok(h, s);
            assert_true(W.flags == STRATA_TENSOR_PREPARED && W.data && W.type == STRATA_U8);
            const strata_run go = {.prepared = 1u << operand};
            memcpy(p.c, p.c0, p.c_bytes);
            test_ok(h, strata_plan_run(h, plan,
                                       (void *[]){operand ? p.a : W.data, operand ? W.data : p.b, p.c}, &go));
            test_check(!memcmp(want, p.c, p.c_bytes), "other bits with operand %d prepared", operand);
            /* a plan for fewer rows (columns) of the other operand takes it too */
            product q = p;
            if (operand)
                q.m = 1 + p.m / 2;
            else
                q.n = 1 + p.n / 2;
            if (!(operand ? p.ta : p.tb)) {
                strata_plan *less;
                strata_tensor X = operand ? of(p.a, p.type, q.m, p.k, p.ta) : of(p.b, p.type, p.k, q.n, p.tb);
                if (!operand) X.stride[0] = p.n;
                strata_tensor C = of(p.c, p.type, q.m, q.n, false);
                C.stride[0] = p.n;
                test_ok(h, strata_gemm_plan(h, strata_real(p.alpha), operand ? X : A, operand ? B : X,
                                            strata_real(p.beta), C, NULL, &choice, &less));
                memcpy(p.c, p.c0, p.c_bytes);
                const strata_status t = strata_plan_run(
                    h, less, (void *[]){operand ? p.a : W.data, operand ? W.data : p.b, p.c}, &go);
                if (t != STRATA_ERROR_ARGUMENT ||
                    !strstr(strata_error(h), "prepared")) { /* else: it reads in place */
                    test_ok(h, t);
                    const size_t es = strata_type_bits(p.type) / 8;
                    for (int64_t row = 0; row < q.m; row++)
                        test_check(!memcmp((char *)want + (size_t)(row * p.n) * es,
                                           (char *)p.c + (size_t)(row * p.n) * es, (size_t)q.n * es),
                                   "row %lld of the smaller product", (long long)row);
                }
                strata_plan_destroy(less);
            }
            test_ok(h, strata_free(h, W.data));
        }
        free(want);
        strata_plan_destroy(plan);
        drop(&p);
    }
    test_ok(h, strata_set_threads(h, 0));
}

static void prepared_wrongly(void **state)
{
    (void)state;
    test_rng r = test_rng_make(75);
    product p = make(&r, STRATA_F32, 100, 200, 300, false, false),
            q = make(&r, STRATA_F32, 100, 200, 290, false, false);
    const strata_choice choice = {.kernel = packed_of(STRATA_F32)};
    strata_plan *plan, *other, *reference;
    const strata_choice slow = {.kernel = "contract_any_reference_portable"};
    test_ok(h, plan_of(&p, &choice, &plan));
    test_ok(h, plan_of(&q, &choice, &other));
    test_ok(h, plan_of(&p, &slow, &reference));
    const strata_tensor B = of(p.b, STRATA_F32, 300, 200, false);
    strata_tensor W;
    test_error(h, strata_prepare(h, plan, 2, B, &W), STRATA_ERROR_UNSUPPORTED, "operand 2", "try");
    test_error(h, strata_prepare(h, plan, 3, B, &W), STRATA_ERROR_ARGUMENT, "operand is 3", "0 to 2");
    test_error(h, strata_prepare(h, plan, -1, B, &W), STRATA_ERROR_ARGUMENT, "operand is -1");
    test_error(h, strata_prepare(h, reference, 1, B, &W), STRATA_ERROR_UNSUPPORTED, "contract_any_reference",
               "as it lies");
    test_error(h, strata_prepare(h, plan, 1, of(p.b, STRATA_F32, 290, 200, false), &W), STRATA_ERROR_SHAPE,
               "operand 1", "the view with which");
    /* the same bytes, read in another way */
    test_error(h,
               strata_prepare(h, plan, 1, strata_matrix(p.b, STRATA_F32, 300, 200, STRATA_COL_MAJOR, 0), &W),
               STRATA_ERROR_LAYOUT, "(stride 1,300)", "(stride 200,1)", "operand 1");
    test_error(h,
               strata_prepare(h, plan, 1, strata_matrix(p.b, STRATA_F32, 200, 300, STRATA_ROW_MAJOR, 0), &W),
               STRATA_ERROR_SHAPE, "200x300", "300x200");
    test_error(h, strata_prepare(h, plan, 1, strata_transpose(B), &W), STRATA_ERROR_SHAPE, "200x300",
               "  strata_transpose(W)");
    test_error(h,
               strata_prepare(h, plan, 1, strata_matrix(p.b, STRATA_F64, 300, 100, STRATA_ROW_MAJOR, 0), &W),
               STRATA_ERROR_TYPE, "W is f64", "is f32 300x200");
    test_error(h,
               strata_prepare(h, plan, 1, strata_matrix(p.b, STRATA_I32, 300, 200, STRATA_ROW_MAJOR, 0), &W),
               STRATA_ERROR_TYPE, "W is i32");
    test_error(h, strata_prepare(h, plan, 1, strata_vector(p.b, STRATA_F32, 60000, 1), &W),
               STRATA_ERROR_SHAPE, "60000");
    test_error(
        h, strata_prepare(h, plan, 1, strata_array(p.b, STRATA_F32, 3, (int64_t[]){2, 150, 200}, NULL), &W),
        STRATA_ERROR_SHAPE, "2x150x200");
    test_error(
        h,
        strata_prepare(h, plan, 1,
                       strata_conj(strata_packed(p.b, STRATA_F32, 300, STRATA_LOWER, STRATA_ROW_MAJOR)), &W),
        STRATA_ERROR_UNSUPPORTED, "a packed triangle");
    assert_null(W.data);
    const strata_tensor same = strata_array(p.b, STRATA_F32, 3, (int64_t[]){1, 300, 200}, NULL);
    test_ok(h, strata_prepare(h, plan, 1, same, &W)); /* a batch of one is the matrix */
    test_ok(h, strata_free(h, W.data));
    test_error(h, strata_prepare(h, NULL, 1, B, &W), STRATA_ERROR_ARGUMENT, "plan is NULL");
    test_error(h, strata_prepare(h, plan, 1, B, NULL), STRATA_ERROR_ARGUMENT, "NULL");
    test_error(NULL, strata_prepare(NULL, plan, 1, B, &W), STRATA_ERROR_ARGUMENT, "handle is NULL");
    test_ok(h, strata_prepare(h, plan, 1, B, &W));
    memcpy(p.c, p.c0, p.c_bytes);
    const strata_run go = {.prepared = 2}, third = {.prepared = 4};
    test_error(h, strata_plan_run(h, other, (void *[]){q.a, W.data, p.c}, &go), STRATA_ERROR_ARGUMENT,
               "data[1]", "another layout", "try");
    test_error(h, strata_plan_run(h, plan, (void *[]){p.a, p.b, p.c}, &go), STRATA_ERROR_ARGUMENT, "data[1]",
               "not what strata_prepare made");
    test_error(h, strata_plan_run(h, plan, (void *[]){p.a, W.data, p.c}, &third), STRATA_ERROR_ARGUMENT,
               "prepared");
    test_error(h, strata_plan_run(h, reference, (void *[]){p.a, W.data, p.c}, &go), STRATA_ERROR_ARGUMENT,
               "prepared");
    test_error(h,
               strata_gemm(h, STRATA_ONE, of(p.a, STRATA_F32, 100, 300, false), W, STRATA_ZERO,
                           of(p.c, STRATA_F32, 100, 200, false), NULL),
               STRATA_ERROR_UNSUPPORTED, "prepared");
    assert_memory_equal(p.c, p.c0, p.c_bytes);
    test_ok(h, strata_free(h, W.data));
    strata_plan_destroy(plan);
    strata_plan_destroy(other);
    strata_plan_destroy(reference);
    drop(&p);
    drop(&q);
}

/* Conjugated operands are prepared as such, plain ones are not taken for them; items of a batch. */
static void prepared_structure(void **state)
{
    (void)state;
    enum { M = 40, N = 70, K = 90, ITEMS = 3 };
    const size_t a_bytes = sizeof(float) * 2 * ITEMS * M * K, b_bytes = sizeof(float) * 2 * ITEMS * K * N,
                 c_bytes = sizeof(float) * 2 * ITEMS * M * N;
    float *a = malloc(a_bytes), *b = malloc(b_bytes), *c = malloc(c_bytes), *want = malloc(c_bytes);
    test_rng r = test_rng_make(77);
    for (size_t i = 0; i < a_bytes / sizeof *a; i++) a[i] = (float)test_real(&r, -1, 1);
    for (size_t i = 0; i < b_bytes / sizeof *b; i++) b[i] = (float)test_real(&r, -1, 1);
    const strata_tensor A = strata_batch(strata_matrix(a, STRATA_C64, M, K, STRATA_ROW_MAJOR, 0), ITEMS, 0),
                        B = strata_batch(strata_matrix(b, STRATA_C64, K, N, STRATA_ROW_MAJOR, 0), ITEMS, 0),
                        C = strata_batch(strata_matrix(c, STRATA_C64, M, N, STRATA_ROW_MAJOR, 0), ITEMS, 0);
    for (int conj = 0; conj < 2; conj++) {
        const strata_tensor X = conj ? strata_conj(B) : B, other = conj ? B : strata_conj(B);
        strata_plan *plan = NULL;
        strata_candidate x;
        strata_tensor W;
        test_ok(h, strata_gemm_plan(h, STRATA_ONE, A, X, STRATA_ZERO, C, NULL, NULL, &plan));
        char kernel[96] = "";
        for (int i = 0; strata_plan_candidates(plan, i, &x); i++)
            if (x.predicted_us >= 0 && x.tile.warp_m) memcpy(kernel, x.kernel, sizeof kernel);
        strata_plan_destroy(plan);
        assert_true(kernel[0]);
        test_ok(h, strata_gemm_plan(h, STRATA_ONE, A, X, STRATA_ZERO, C, NULL,
                                    &(strata_choice){.kernel = kernel}, &plan));
        test_ok(h, strata_plan_run(h, plan, (void *[]){a, b, want}, NULL));
        assert_true(strata_prepare(h, plan, 1, other, &W) ==
                    (conj ? STRATA_ERROR_LAYOUT : STRATA_ERROR_UNSUPPORTED));
        test_error(h, strata_prepare(h, plan, 1, strata_slice(X, 0, 0, 1, 1), &W), STRATA_ERROR_SHAPE,
                   "1x90x70", "3x90x70");
        test_ok(h, strata_prepare(h, plan, 1, X, &W));
        memset(c, 0xff, c_bytes);
        test_ok(h, strata_plan_run(h, plan, (void *[]){a, W.data, c}, &(strata_run){.prepared = 2}));
        assert_memory_equal(c, want, c_bytes);
        test_ok(h, strata_free(h, W.data));
        strata_plan_destroy(plan);
    }
    free(a);
    free(b);
    free(c);
    free(want);
}

/* Tiles of the caller's: results within the bound of any order (equal bits where k is one block), exact reasons where impossible. */
static void tiles(void **state)
{
    (void)state;
    test_rng r = test_rng_make(76);
    for (int i = 0; i < test_rounds(40); i++) {
        const int64_t k = test_chance(&r, 0.5) ? test_int(&r, 300, 1500) : size(&r);
        product p = make(&r, test_chance(&r, 0.5) ? STRATA_F32 : STRATA_F64, test_int(&r, 1, 150),
                         test_int(&r, 1, 300), k, false, test_chance(&r, 0.4));
        const strata_choice usual = {.kernel = packed_of(p.type)};
        strata_plan *plan;
        strata_candidate c;
        test_ok(h, plan_of(&p, &usual, &plan));
        run(&p, plan);
        void *want = malloc(p.c_bytes);
        memcpy(want, p.c, p.c_bytes);
        int at = 0;
        while (strata_plan_candidates(plan, at, &c) && !c.chosen) at++;
        assert_true(c.chosen && c.tile.warp_m > 0);
        const strata_tile t = {.block_m = c.tile.warp_m * (int32_t)test_int(&r, 1, 9),
                               .block_n = c.tile.warp_n * (int32_t)test_int(&r, 1, 3),
                               .block_k = 16 * (int32_t)test_int(&r, 1, 100),
                               .warp_m = c.tile.warp_m};
        const strata_choice choice = {.kernel = usual.kernel, .tile = &t};
        strata_plan *mine, *again;
        test_ok(h, plan_of(&p, &choice, &mine));
        char words[64];
        snprintf(words, sizeof words, "block %d x %d x %d", t.block_m, t.block_n, t.block_k);
        test_check(strstr(strata_plan_describe(mine), words), "no %s in %s", words,
                   strata_plan_describe(mine));
        run(&p, mine);
        if (k <= t.block_k && k <= 512) {
            test_check(!memcmp(want, p.c, p.c_bytes), "one block of k, other bits");
            assert_string_equal(strata_plan_order(mine), strata_plan_order(plan));
        }
        const double bound = 2 * test_gamma(k + 4, p.type) * (double)(k + 1);
        for (int64_t j = 0; j < p.m * p.n; j++) {
            const double x = p.type == STRATA_F32 ? (double)((float *)want)[j] : ((double *)want)[j],
                         y = p.type == STRATA_F32 ? (double)((float *)p.c)[j] : ((double *)p.c)[j];
            test_close(y, x, bound, "element %lld", (long long)j);
        }
        memcpy(want, p.c, p.c_bytes);
        test_ok(h, plan_of(&p, &(strata_choice){.code = strata_plan_code(mine)}, &again));
        assert_string_equal(strata_plan_code(again), strata_plan_code(mine));
        run(&p, again);
        test_check(!memcmp(want, p.c, p.c_bytes), "rebuilt from %s: other bits", strata_plan_code(mine));
        strata_plan_destroy(again);
        strata_plan_destroy(mine);
        strata_plan_destroy(plan);
        free(want);
        drop(&p);
    }
    product p = make(&r, STRATA_F32, 64, 64, 64, false, false);
    strata_plan *plan;
    static const struct {
        strata_tile t;
        const char *words;
    } wrong[] = {{{.block_k = 17}, "block_k is 17: a multiple of 16"},
                 {{.block_m = 1 << 29, .block_k = 16}, "block_m is"},
                 {{.warp_m = 5}, "rows of the register tile"},
                 {{.instruction_k = 9}, "instruction_k"},
                 {{.stages = 3}, "a CPU's caches have none"},
                 {{.cluster_m = 2}, "in a cluster"},
                 {{.split_k = 2}, "summed apart"}};
    for (int i = 0; i < TEST_COUNT(wrong); i++) {
        const strata_choice choice = {.kernel = packed_of(STRATA_F32), .tile = &wrong[i].t};
        test_error(h, plan_of(&p, &choice, &plan), STRATA_ERROR_UNSUPPORTED, wrong[i].words);
    }
    drop(&p);
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
    const struct CMUnitTest tests[] = {
        T(codes_and_orders), T(batch_invariance),   T(images), T(prepared),
        T(prepared_wrongly), T(prepared_structure), T(tiles),  T(measured_by_bucket)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
