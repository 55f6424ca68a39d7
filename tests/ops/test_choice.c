/* SPDX-License-Identifier: Apache-2.0 */
/* test_choice.c - which kernel is chosen, and so the order of summation, depends on the problem alone: the same with 1, 2, 3 and 16 threads
 * and with a caller's parallel_for. */
#include "support.h"
#include <strata.h>

static void serial(void *user, int n, void (*body)(void *arg, int i), void *arg)
{
    (void)user;
    for (int i = n - 1; i >= 0; i--) body(arg, i);
}

static void same_kernel(strata_handle *h[], int n, int64_t m, int64_t cols, int64_t k, strata_type type,
                        bool ta, bool tb)
{
    char first[96] = "";
    for (int i = 0; i < n; i++) {
        strata_tensor A = strata_matrix(NULL, type, ta ? k : m, ta ? m : k, STRATA_ROW_MAJOR, 0);
        strata_tensor B = strata_matrix(NULL, type, tb ? cols : k, tb ? k : cols, STRATA_ROW_MAJOR, 0);
        strata_tensor C = strata_matrix(NULL, type, m, cols, STRATA_ROW_MAJOR, 0);
        if (ta) A = strata_transpose(A);
        if (tb) B = strata_transpose(B);
        strata_plan *p;
        test_ok(h[i], strata_gemm_plan(h[i], STRATA_ONE, A, B, STRATA_ZERO, C, NULL, NULL, &p));
        if (i == 0) snprintf(first, sizeof first, "%s", strata_plan_kernel(p));
        test_check(!strcmp(first, strata_plan_kernel(p)), "%lldx%lldx%lld %s: %s, but %s on handle %d",
                   (long long)m, (long long)cols, (long long)k, strata_type_name(type), first,
                   strata_plan_kernel(p), i);
        strata_plan_destroy(p);
    }
}

static void choice_is_the_problems(void **state)
{
    (void)state;
    strata_handle *h[5];
    static const int threads[4] = {1, 2, 3, 16};
    for (int i = 0; i < 5; i++) {
        test_ok(NULL, strata_create(&h[i], "cpu"));
        if (i < 4) test_ok(h[i], strata_set_threads(h[i], threads[i]));
    }
    test_ok(h[4], strata_set_parallel_for(h[4], serial, NULL, 4));
    static const int64_t size[] = {1, 2, 7, 16, 17, 33, 64, 100, 128, 256, 500, 1568, 4096};
    test_rng r = test_rng_make(20);
    for (int i = 0; i < test_rounds(300); i++) {
        int64_t m = size[test_int(&r, 0, 12)], n = size[test_int(&r, 0, 12)], k = size[test_int(&r, 0, 12)];
        same_kernel(h, 5, m, n, k, test_chance(&r, 0.5) ? STRATA_F32 : STRATA_F64, test_chance(&r, 0.3),
                    test_chance(&r, 0.3));
    }
    same_kernel(h, 5, 16, 128, 1568, STRATA_F32, false, false);
    for (int i = 0; i < 5; i++) strata_destroy(h[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(choice_is_the_problems)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
