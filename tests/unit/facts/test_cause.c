/* SPDX-License-Identifier: Apache-2.0 */
/* test_cause.c - error names of driver, NVRTC and NVML lead to a cause and a fix, and into an error chain. */
#include "facts/cause.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void names(void **s)
{
    (void)s;
    static const struct {
        const char *name, *id, *layer;
    } rows[] = {{"CUDA_ERROR_OUT_OF_MEMORY", "cuda_2", "application"},
                {"CUDA_ERROR_NO_DEVICE", "cuda_100", "driver"},
                {"CUDA_ERROR_INVALID_VALUE", "cuda_1", "application"},
                {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "cuda_803", "driver"},
                {"CUDA_ERROR_ILLEGAL_ADDRESS", "cuda_700", "application"},
                {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "cuda_900", "application"},
                {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "cuda_222", "driver"},
                {"CUBLAS_STATUS_NOT_INITIALIZED", "cublas_not_initialized", "application"},
                {"cublasCreate failed", "cublas_not_initialized", "application"},
                {"NVRTC_ERROR_COMPILATION", "nvrtc_compilation", "cuda"},
                {"NVRTC_ERROR_INTERNAL_ERROR", "nvrtc_other", "cuda"},
                {"NVML_ERROR_GPU_IS_LOST", "nvml_lost", "hardware"},
                {"RuntimeError: CUDA error: out of memory (at line 3)", "cuda_2", "application"}};
    for (int i = 0; i < ST_COUNT(rows); i++) {
        st_cause c;
        if (!st_facts_cause(rows[i].name, &c)) fail_msg("%s is not known", rows[i].name);
        assert_string_equal(c.id, rows[i].id);
        assert_string_equal(c.layer, rows[i].layer);
        assert_true(c.cause[0] && c.fix[0]);
        assert_null(strstr(c.cause, " | "));
        assert_int_equal(strncmp(c.causes, c.cause, strlen(c.cause)), 0);
        if (strncmp(c.fix, "see ", 4) == 0)
            fail_msg("%s: the fix only points elsewhere: %s", rows[i].name, c.fix);
    }
}

static void unknown(void **s)
{
    (void)s;
    static const char *const none[] = {"",
                                       "x",
                                       "CUDA_ERROR",
                                       "CUDA_ERROR_OUT_OF_MEMOR",
                                       "UT_OF_MEMORY",
                                       "all is well",
                                       "((((",
                                       "\377\376\375 \001"};
    for (int i = 0; i < ST_COUNT(none); i++) {
        st_cause c;
        if (st_facts_cause(none[i], &c)) fail_msg("'%s' is taken for %s", none[i], c.id);
        assert_int_equal(c.fix[0], 0);
    }
    st_cause c;
    assert_false(st_facts_cause(NULL, &c));
}

/* what a failing call of the library says */
static void chain(void **s)
{
    (void)s;
    st_err *e = st_err_thread();
    st_fail(e, STRATA_ERROR_DEVICE, "strata_create: cuInit failed on cuda:0");
    st_facts_explain(e, "CUDA_ERROR_NO_DEVICE");
    const char *text = strata_error(NULL);
    assert_non_null(strstr(text, "cuInit failed"));
    assert_non_null(strstr(text, "likely: CUDA_VISIBLE_DEVICES"));
    assert_non_null(strstr(text, "unset CUDA_VISIBLE_DEVICES"));
    /* a remedy that is there stays; unknown names change nothing */
    st_fail(e, STRATA_ERROR_DEVICE, "strata_alloc: 1 GiB");
    st_err_remedy(e, "free something");
    st_facts_explain(e, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_string_equal(e->remedy, "free something");
    int frames = e->frames;
    st_facts_explain(e, "CUDA_ERROR_NEVER_HEARD_OF");
    assert_int_equal(e->frames, frames);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(unknown),
                                       cmocka_unit_test(chain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
