/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the driver's library: what is said when it is not there, is not it, is too old, does not start; and after fork. */
#include "base/head.h"
#include "driver/driver.h"
#include "fake_test.h"
#include <sys/wait.h>
#include <unistd.h>

/* an error as a handle carries it, so that strata_error composes it */
static _Alignas(ST_HANDLE_ALIGN) st_handle_head head = {.magic = ST_HANDLE_MAGIC};
#define e (head.err)
static const char *said(void) { return strata_error((strata_handle *)(void *)&head); }

static void refused(const char *lib, const char *const *words)
{
    setenv("STRATA_CUDA_LIB", lib, 1);
    st_driver_forget_for_tests();
    memset(&e, 0, sizeof e);
    assert_null(st_libcuda_open(&e));
    assert_int_equal(e.status, STRATA_ERROR_DEVICE);
    for (; *words; words++) test_check(strstr(said(), *words), "'%s' is not in: %s", *words, said());
    char first[sizeof e.composed];
    snprintf(first, sizeof first, "%s", said());
    memset(&e, 0, sizeof e);
    assert_null(st_libcuda_open(&e)); /* once more: the same words */
    assert_string_equal(first, said());
}
#define REFUSED(lib, ...) refused(lib, (const char *const[]){__VA_ARGS__, NULL})

static void not_there(void **state)
{
    (void)state;
    REFUSED("/nonexistent/libcuda.so.1", "libcuda.so.1 is not here", "STRATA_CUDA_LIB", "/nonexistent", "try",
            "driver");
    REFUSED("/proc/self/status", "is not here", "/proc/self/status");
    REFUSED("libm.so.6", "not the NVIDIA driver's library", "cuInit");
}

static void too_old(void **state)
{
    (void)state;
    unsetenv("OLD_CUDA_VERSION");
    REFUSED(OLD_CUDA, "too old", "11.4", "12.0", "525", "cuDeviceGetCount", "update the NVIDIA driver");
    setenv("OLD_CUDA_VERSION", "12040", 1);
    REFUSED(OLD_CUDA, "lacks a function", "12.4", "cuDeviceGetCount", "damaged");
    unsetenv("OLD_CUDA_VERSION");
    fake_shape(1, 11080, 90);
    REFUSED(FAKE_CUDA, "too old", "11.8");
    fake_shape(1, 13000, 90);
}

static void does_not_start(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *name;
    } codes[] = {{100, "CUDA_ERROR_NO_DEVICE"},
                 {999, "CUDA_ERROR_UNKNOWN"},
                 {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
                 {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
                 {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
                 {34, "CUDA_ERROR_STUB_LIBRARY"},
                 {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
                 {304, "CUDA_ERROR_OPERATING_SYSTEM"}};
    for (int i = 0; i < TEST_COUNT(codes); i++) {
        fake_fail("cuInit", 1, codes[i].code);
        REFUSED(FAKE_CUDA, "does not start", "cuInit", codes[i].name, "CUDA 13.0");
    }
}

static void opens(void **state)
{
    (void)state;
    setenv("STRATA_CUDA_LIB", FAKE_CUDA, 1);
    st_driver_forget_for_tests();
    const st_libcuda *cu = st_libcuda_open(&e);
    assert_non_null(cu);
    assert_int_equal(cu->version, 13000);
    assert_string_equal(cu->path, FAKE_CUDA);
    assert_ptr_equal(st_libcuda_open(&e), cu);
    assert_false(st_libcuda_forked());
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        memset(&e, 0, sizeof e);
        int ok =
            st_libcuda_forked() && !st_libcuda_open(&e) && strstr(said(), "forked") && strstr(said(), "exec");
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_non_null(st_libcuda_open(&e)); /* the parent goes on */
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(st_cu_result_name(2), "CUDA_ERROR_OUT_OF_MEMORY");
    assert_string_equal(st_cu_result_name(0), "CUDA_SUCCESS");
    assert_string_equal(st_cu_result_name(700), "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_string_equal(st_nvrtc_result_name(6), "NVRTC_ERROR_COMPILATION");
    assert_string_equal(st_nvml_result_name(9), "NVML_ERROR_DRIVER_NOT_LOADED");
    assert_true(strstr(st_cu_result_name(12345), "unknown") != NULL);
}

static void compilers(void **state)
{
    (void)state;
    const st_libnvrtc *nv = st_libnvrtc_open(&e, 90);
    assert_non_null(nv);
    assert_string_equal(nv->path, FAKE_CUDA);
    assert_int_equal(nv->version, 13000);
    assert_ptr_equal(st_libnvrtc_open(&e, 0), nv);
    assert_null(st_libnvrtc_open(&e, 75));
    assert_true(strstr(said(), "7.5") && strstr(said(), FAKE_CUDA) && strstr(said(), "STRATA_NVRTC_LIB"));
    const st_libnvml *m = st_libnvml_open(&e);
    assert_non_null(m);
    assert_non_null(m->compute_processes);
    assert_null(m->device_ecc_errors); /* a function that it lacks is NULL, not a failure */
}

int main(void)
{
    fake_use();
    const struct CMUnitTest tests[] = {cmocka_unit_test(not_there),      cmocka_unit_test(too_old),
                                       cmocka_unit_test(does_not_start), cmocka_unit_test(opens),
                                       cmocka_unit_test(names),          cmocka_unit_test(compilers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
