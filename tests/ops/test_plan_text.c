/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_text.c - what plans say of themselves is right: work, orders, predicted times. */
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata.h>
#include <string.h>

static strata_handle *h;
static int setup(void **state)
{
    (void)state;
    setenv("STRATA_CACHE", "off", 1);
    return strata_create(&h, "cpu");
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

/* What a plan says of its work: operations of the real kind, each element that exists once, in its own type. */
static void work_counted_once(void **state)
{
    (void)state;
    static char x[1 << 20];
    static const struct {
        strata_type in, out;
        const char *words;
    } work[] = {{STRATA_F32, STRATA_F32, "0.5243 Mflop, 0.04915 MB at least"},
                {STRATA_I8, STRATA_I32, "0.5243 Mflop, 0.02458 MB at least"},
                {STRATA_BF16, STRATA_F32, "0.5243 Mflop, 0.03277 MB at least"},
                {STRATA_C64, STRATA_C64, "2.097 Mflop, 0.0983 MB at least"}};
    strata_plan *plan;
    for (int i = 0; i < TEST_COUNT(work); i++) {
        const strata_tensor A = strata_matrix(x, work[i].in, 64, 64, STRATA_ROW_MAJOR, 0),
                            B = strata_matrix(x + (1 << 17), work[i].in, 64, 64, STRATA_ROW_MAJOR, 0),
                            C = strata_matrix(x + (1 << 18), work[i].out, 64, 64, STRATA_ROW_MAJOR, 0);
        test_ok(h, strata_gemm_plan(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL, NULL, &plan));
        test_check(strstr(strata_plan_describe(plan), work[i].words), "no %s in\n%s", work[i].words,
                   strata_plan_describe(plan));
        strata_plan_destroy(plan);
    }
    /* an image is smaller than the nine windows that read it: 4 KB in, 2304 B of filters, 4 KB out */
    const strata_tensor X = strata_nhwc(x, STRATA_F32, 1, 4, 16, 16),
                        W = strata_nhwc(x, STRATA_F32, 4, 4, 3, 3),
                        Y = strata_nhwc(x + (1 << 18), STRATA_F32, 1, 4, 16, 16);
    test_ok(h, strata_conv_forward_plan(h, &(strata_conv){.pad = {1, 1}}, X, W, Y, NULL, &plan));
    test_check(strstr(strata_plan_describe(plan), "0.008768 MB at least"), "%s", strata_plan_describe(plan));
    strata_plan_destroy(plan);
}

/* Products of whole numbers, and of 16-bit floats in f32, are exact: nothing of them is rounded. */
static void exact_products_are_not_rounded(void **state)
{
    (void)state;
    strata_kernel_info k;
    int seen = 0;
    for (int i = 0; strata_kernels(i, &k); i++) {
        const bool exact =
            !strncmp(k.types, "i8", 2) || !strncmp(k.types, "f16", 3) || !strncmp(k.types, "f8", 2);
        if (strcmp(k.isa, "portable") || strcmp(k.family, "gemm")) continue;
        const bool rounds = k.order && strstr(k.order, "products rounded");
        test_check(rounds == !exact, "%s: %s", k.id, k.order ? k.order : "");
        seen += exact;
    }
    assert_int_equal(seen, 3);
}

static double predicted(const strata_plan *p, int step)
{
    char head[32];
    const char *at = strata_plan_describe(p);
    snprintf(head, sizeof head, "step %d", step);
    if (step) at = strstr(at, head);
    at = at ? strstr(at, "predicted ") : NULL;
    test_check(at != NULL, "no prediction of step %d in\n%s", step, strata_plan_describe(p));
    return atof(at + strlen("predicted "));
}

/* A fused plan's time is microseconds: that of its steps together. */
static void fused_times(void **state)
{
    (void)state;
    static float x[512 * 512], w[512 * 512], out[512 * 512];
    static const struct {
        const char *kernel, *program;
        int steps;
    } form[] = {{"fused_epilogue", "out = gelu(X @ W)", 1},
                {"fused_epilogue", "out = silu(X @ W) * (W @ X)", 2},
                {"fused_steps", "s = X @ W; out = s - max(s)", 2},
                {"fused_steps", "out = (X @ W) * (W @ X)", 3},
                {"fused_steps", "out = X @ (W * 2)", 3}};
    double once[TEST_COUNT(form)];
    for (int size = 128; size <= 512; size *= 2)
        for (int i = 0; i < TEST_COUNT(form); i++) {
            const strata_operand o[] = {
                {"X", strata_matrix(x, STRATA_F32, size, size, STRATA_ROW_MAJOR, 0)},
                {"W", strata_matrix(w, STRATA_F32, size, size, STRATA_ROW_MAJOR, 0)},
                {"out", strata_matrix(out, STRATA_F32, size, size, STRATA_ROW_MAJOR, 0)},
                {NULL, {0}}};
            const strata_choice c = {.kernel = form[i].kernel};
            strata_plan *p;
            test_ok(h, strata_fused_plan(h, form[i].program, o, NULL, &c, &p));
            const double all = predicted(p, 0);
            double sum = 0;
            for (int k = 1; k <= form[i].steps; k++) sum += predicted(p, k);
            /* an epilogue's program is in the whole alone: at most 40 cycles an element; each number is rounded to 0.1 */
            const double program = form[i].kernel[6] == 'e' ? 40.0 * size * size / 2800 : 0;
            test_check(all >= sum - 0.1 * form[i].steps && all <= sum + program + 0.1 * form[i].steps + 0.1,
                       "%s of %d: %g us, its steps %g\n%s", form[i].program, size, all, sum,
                       strata_plan_describe(p));
            /* twice the size is eight times the operations */
            test_check(size == 128 || (all > 3 * once[i] && all < 12 * once[i]),
                       "%s: %g us of %d, %g of the half", form[i].program, all, size, once[i]);
            once[i] = all;
            strata_candidate x0;
            for (int k = 0; strata_plan_candidates(p, k, &x0); k++)
                if (x0.chosen)
                    test_check(fabs(x0.predicted_us - all) <= 0.06, "%g, %g", x0.predicted_us, all);
            strata_plan_destroy(p);
        }
}

/* A kernel of another family is not denied: the message says whose it is and which ones serve. */
static void forced_from_another_family(void **state)
{
    (void)state;
    static float x[64 * 64], w[64 * 64], out[64 * 64];
    const strata_operand o[] = {{"X", strata_matrix(x, STRATA_F32, 64, 64, STRATA_ROW_MAJOR, 0)},
                                {"W", strata_matrix(w, STRATA_F32, 64, 64, STRATA_ROW_MAJOR, 0)},
                                {"out", strata_matrix(out, STRATA_F32, 64, 64, STRATA_ROW_MAJOR, 0)},
                                {NULL, {0}}};
    strata_plan *p;
    const strata_choice gemm = {.kernel = "gemm_f32f32f32_4x8_portable"}, none = {.kernel = "gemm_f33"},
                        fused = {.kernel = "fused_steps"};
    test_error(h, strata_fused_plan(h, "out = relu(X @ W)", o, NULL, &gemm, &p), STRATA_ERROR_ARGUMENT,
               "'gemm_f32f32f32_4x8_portable' is one of the family gemm", "steps of its kernels",
               "fused_epilogue");
    test_error(h, strata_fused_plan(h, "out = relu(X @ W)", o, NULL, &none, &p), STRATA_ERROR_ARGUMENT,
               "there is no kernel 'gemm_f33'", "fused_epilogue");
    test_error(h, strata_fused_plan(h, "out = relu(X)", o, NULL, &gemm, &p), STRATA_ERROR_ARGUMENT,
               "family gemm");
    test_error(
        h,
        strata_gemm_plan(h, STRATA_ONE, o[0].tensor, o[1].tensor, STRATA_ZERO, o[2].tensor, NULL, &fused, &p),
        STRATA_ERROR_ARGUMENT, "fused_steps", "gemm_f32f32f32_small");
}

/* Programs and pooling windows are measured and remembered as products are, by buckets of the outermost dim. */
static void programs_are_tuned(void **state)
{
    (void)state;
    static float x[96 * 32], y[96 * 32];
    for (int rows = 65; rows <= 97; rows += 16) {
        const strata_operand o[] = {
            {"x", strata_matrix(x, STRATA_F32, rows > 96 ? 24 : rows, 32, STRATA_ROW_MAJOR, 0)},
            {"out", strata_matrix(y, STRATA_F32, rows > 96 ? 24 : rows, 32, STRATA_ROW_MAJOR, 0)},
            {NULL, {0}}};
        strata_plan *p;
        test_ok(h, strata_fused_plan(h, "out = tanh(x) * 0.625", o, NULL, NULL, &p));
        const bool known = strstr(strata_plan_describe(p), "least measured time") != NULL;
        test_check(known == (rows == 81), "%d rows: %s", rows,
                   strata_plan_describe(p)); /* the bucket of 65 to 96 */
        const strata_tune_options t = {.seconds = 0.05};
        if (rows == 65) test_ok(h, strata_tune(h, p, NULL, &t, NULL, 0, NULL));
        strata_plan_destroy(p);
    }
    strata_tuning_info was, is;
    test_ok(h, strata_get_tuning_info(&was));
    test_ok(h, strata_find(h, 0.02, false));
    const strata_tensor image = strata_nhwc(x, STRATA_F32, 1, 4, 16, 16),
                        half = strata_nhwc(y, STRATA_F32, 1, 4, 8, 8);
    const strata_pool pool = {.window = {2, 2}, .stride = {2, 2}};
    test_ok(h, strata_pool_forward(h, &pool, image, half, (strata_tensor){0}));
    test_ok(h, strata_find(h, 0, false));
    test_ok(h, strata_get_tuning_info(&is));
    assert_true(is.problems == was.problems + 1 && was.problems >= 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(work_counted_once), T(exact_products_are_not_rounded),
                                       T(fused_times), T(forced_from_another_family), T(programs_are_tuned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
