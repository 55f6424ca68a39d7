/* SPDX-License-Identifier: Apache-2.0 */
/* strata_kernel_probe: every packed kernel that can run here gives a rate; all else is refused in words. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "tile/kernels.h"
#include <strata.h>

static strata_handle *make(void)
{
    strata_handle *h;
    assert_int_equal(strata_create(&h, "cpu"), STRATA_OK);
    return h;
}

static void every_row(void **state)
{
    (void)state;
    strata_handle *h = make();
    strata_memory_stats before, after;
    int count, measured = 0;
    const st_kernel_row *r = st_kernel_rows(&count);
    assert_int_equal(strata_get_memory_stats(h, &before), STRATA_OK);
    for (int i = 0; i < count; i++) {
        double rate = -1;
        char why[128];
        bool packed = strcmp(r[i].provider, "gemm_packed") == 0,
             usable = !st_kernel_why_not(&r[i], st_cpu_get(), why, sizeof why);
        strata_status s = strata_kernel_probe(h, r[i].id, 1e-4, &rate);
        if (packed && usable) {
            assert_int_equal(s, STRATA_OK);
            assert_true(rate > 0.01 && rate < 1e5);
            measured++;
        } else {
            assert_int_equal(s, STRATA_ERROR_UNSUPPORTED);
            assert_true(rate == -1);
            assert_non_null(strstr(strata_error(h), r[i].id));
        }
    }
    assert_true(measured >= 2); /* f32 and f64 of the portable kernels at least */
    assert_int_equal(strata_get_memory_stats(h, &after), STRATA_OK);
    assert_true(before.bytes_in_use == after.bytes_in_use);
    strata_destroy(h);
}

static void refused(void **state)
{
    (void)state;
    strata_handle *h = make();
    double rate = -1;
    assert_int_equal(strata_kernel_probe(h, "no_such_kernel", 1e-4, &rate), STRATA_ERROR_UNSUPPORTED);
    assert_non_null(strstr(strata_error(h), "no_such_kernel"));
    assert_int_equal(strata_kernel_probe(h, NULL, 1e-4, &rate), STRATA_ERROR_UNSUPPORTED);
    assert_int_equal(strata_kernel_probe(h, "gemm_f32f32f32_4x8_portable", NAN, &rate),
                     STRATA_ERROR_ARGUMENT);
    assert_int_equal(strata_kernel_probe(h, "gemm_f32f32f32_4x8_portable", -1, &rate), STRATA_ERROR_ARGUMENT);
    assert_int_equal(strata_kernel_probe(h, "gemm_f32f32f32_4x8_portable", 1e-4, NULL),
                     STRATA_ERROR_ARGUMENT);
    assert_true(rate == -1);
    strata_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
