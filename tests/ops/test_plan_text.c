/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_text.c - what plans say of themselves is right: work, orders, predicted times. */
#include "support.h"
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

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(work_counted_once), T(exact_products_are_not_rounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
