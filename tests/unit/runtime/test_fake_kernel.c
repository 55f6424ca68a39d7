/* SPDX-License-Identifier: Apache-2.0 */
/* The table of loaded kernels, against the fake driver: one compilation and one load for any number of threads, a table a device, failures that
 * are told with their cause and not kept, no context left behind. */
#include "fake_test.h"
#include "runtime/gpu.h"
#include <pthread.h>
#include <unistd.h>

static st_gpu_spec spec(const char *define)
{
    return (st_gpu_spec){
        .id = "copy_test", .source = "copy.cu", .entry = "copy", .option = {"-DELEMENT=4", define}};
}

static void once(void **state)
{
    (void)state;
    strata_handle *h = fake_handle("cuda:0"), *other = fake_handle("cuda:1");
    const st_gpu_kernel *a, *b, *c;
    st_gpu_spec s = spec("-DONCE");
    int compiled = fake_calls("nvrtcCompileProgram"), loaded = fake_calls("cuModuleLoadData");
    void *before = fake_other_context(); /* of a program that uses CUDA beside us */
    fake_set_current(before);
    test_ok(h, st_gpu_kernel_get(h, &s, &a));
    assert_ptr_equal(fake_current(), before);
    test_ok(h, st_gpu_kernel_get(h, &s, &b));
    assert_ptr_equal(a, b);
    assert_string_equal(a->id, "copy_test");
    assert_non_null(a->function);
    assert_int_equal(fake_calls("nvrtcCompileProgram"), compiled + 1);
    assert_int_equal(fake_calls("cuModuleLoadData"), loaded + 1);
    /* another device has its own */
    test_ok(other, st_gpu_kernel_get(other, &s, &c));
    assert_ptr_not_equal(a, c);
    assert_int_equal(fake_calls("cuModuleLoadData"), loaded + 2);
    /* so has another spec */
    s = spec("-DONCE=2");
    test_ok(h, st_gpu_kernel_get(h, &s, &c));
    assert_ptr_not_equal(a, c);
    fake_set_current(NULL);
    strata_destroy(h);
    strata_destroy(other);
    strata_handle *cpu = fake_handle("cpu");
    test_error(cpu, st_gpu_kernel_get(cpu, &s, &c), STRATA_ERROR_INTERNAL, "copy_test", "cpu");
    strata_destroy(cpu);
}

/* ---- threads ---------------------------------------------------------------------------------------------------------------- */

enum { THREADS = 12, KERNELS = 5 };
static pthread_barrier_t gate;
typedef struct asker {
    pthread_t thread;
    int number;
    const st_gpu_kernel *kernel[KERNELS];
    bool bad;
} asker;

static void *ask(void *arg)
{
    static const char *const define[KERNELS] = {"-DT=0", "-DT=1", "-DT=2", "-DT=3", "-DT=4"};
    asker *a = arg;
    strata_handle *h;
    a->bad = strata_create(&h, "cuda:0") != STRATA_OK;
    pthread_barrier_wait(&gate);
    for (int i = 0; i < KERNELS && !a->bad; i++) {
        int k = (i + a->number) % KERNELS;
        st_gpu_spec s = spec(define[k]);
        a->bad = st_gpu_kernel_get(h, &s, &a->kernel[k]) != STRATA_OK;
    }
    strata_destroy(h);
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    asker a[THREADS] = {0};
    int compiled = fake_calls("nvrtcCompileProgram");
    assert_int_equal(pthread_barrier_init(&gate, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        a[i].number = i;
        assert_int_equal(pthread_create(&a[i].thread, NULL, ask, &a[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(a[i].thread, NULL);
    pthread_barrier_destroy(&gate);
    for (int i = 0; i < THREADS; i++) {
        assert_false(a[i].bad);
        for (int k = 0; k < KERNELS; k++) assert_ptr_equal(a[i].kernel[k], a[0].kernel[k]);
    }
    for (int k = 1; k < KERNELS; k++) assert_ptr_not_equal(a[0].kernel[k], a[0].kernel[0]);
    assert_int_equal(fake_calls("nvrtcCompileProgram"), compiled + KERNELS);
}

/* ---- failures ----------------------------------------------------------------------------------------------------------------- */

static void failures(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        int code;
        strata_status status;
        const char *word;
    } cases[] = {{"cuModuleLoadData", 2, STRATA_ERROR_MEMORY, "memory"},
                 {"cuModuleLoadData", 209, STRATA_ERROR_DEVICE, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                 {"cuModuleLoadData", 222, STRATA_ERROR_DEVICE, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
                 {"cuModuleGetFunction", 500, STRATA_ERROR_DEVICE, "CUDA_ERROR_NOT_FOUND"},
                 {"nvrtcCompileProgram", 6, STRATA_ERROR_INTERNAL, "does not compile"}};
    strata_handle *h = fake_handle("cuda:0");
    st_gpu_spec s = spec("-DFAILS");
    const st_gpu_kernel *k;
    void *before = fake_other_context(); /* of a program that uses CUDA beside us */
    fake_set_current(before);
    for (int i = 0; i < TEST_COUNT(cases); i++) {
        test_problem("%s answers %d", cases[i].function, cases[i].code);
        fake_fail(cases[i].function, 1, cases[i].code);
        k = (const st_gpu_kernel *)h;
        test_error(h, st_gpu_kernel_get(h, &s, &k), cases[i].status, "copy_test", cases[i].word);
        assert_null(k);
        assert_ptr_equal(fake_current(), before);
        fake_reset();
    }
    fake_set_current(NULL);
    /* nothing of it is kept */
    test_ok(h, st_gpu_kernel_get(h, &s, &k));
    assert_non_null(k);
    strata_destroy(h);
}

int main(void)
{
    fake_use();
    fake_shape(2, 13000, 90);
    const struct CMUnitTest tests[] = {cmocka_unit_test(once), cmocka_unit_test(threads),
                                       cmocka_unit_test(failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
