/* SPDX-License-Identifier: Apache-2.0 */
/* A device that fails: the fault is told where it is found and said to be caused earlier, with the launches; later calls say that the device is
 * lost; STRATA_SYNC=1 names the launch; everything can still be destroyed; the CPU works on. Each case is a process of its own. */
#include "fake_test.h"
#include "runtime/gpu.h"
#include <sys/wait.h>
#include <unistd.h>

static strata_handle *h;
static const st_gpu_kernel *k[3];

static void launch(int i, strata_status want)
{
    int x = 0;
    void *args[] = {&x};
    st_gpu_launch l = {.kernel = k[i], .grid = {(unsigned)(10 + i), 2, 1}, .block = {64, 2, 1}, .args = args};
    assert_int_equal(st_gpu_run(h, &l), want);
}

static void begin(void)
{
    static const char *const id[] = {"first_kernel", "second_kernel", "third_kernel"};
    fake_use();
    h = fake_handle("cuda:0");
    for (int i = 0; i < 3; i++) {
        const st_gpu_spec s = {.id = id[i], .source = "copy.cu", .entry = "nothing", .option = {id[i]}};
        test_ok(h, st_gpu_kernel_get(h, &s, &k[i]));
    }
}

static int lost(void)
{
    void *p, *q;
    float host[4];
    strata_stream *s;
    strata_event *e;
    begin();
    test_ok(h, strata_alloc(h, 100000, &p));
    test_ok(h, strata_stream_create(h, &s));
    test_ok(h, strata_event_create(h, &e));
    test_ok(h, strata_set_stream(h, s));
    for (int i = 0; i < 3; i++) launch(i, STRATA_OK);
    fake_lose(700);
    test_error(h, strata_synchronize(h), STRATA_ERROR_DEVICE, "strata_synchronize",
               "CUDA_ERROR_ILLEGAL_ADDRESS", "found here, caused earlier",
               "last third_kernel grid 12x2x1 block 128", "before it second_kernel grid 11x2x1",
               "STRATA_SYNC=1", "restarted", "cuStreamSynchronize");
    test_error(h, strata_synchronize(h), STRATA_ERROR_DEVICE, "cuda:0", "cannot be used any more",
               "CUDA_ERROR_ILLEGAL_ADDRESS");
    test_error(h, strata_alloc(h, 10, &q), STRATA_ERROR_DEVICE, "strata_alloc", "cannot be used any more");
    test_error(h, strata_copy(h, strata_vector(host, STRATA_F32, 4, 1), strata_vector(p, STRATA_F32, 4, 1)),
               STRATA_ERROR_DEVICE, "strata_copy");
    test_error(h, strata_event_record(h, e), STRATA_ERROR_DEVICE, "cannot be used any more");
    launch(0, STRATA_ERROR_DEVICE);
    strata_handle *again = NULL;
    if (!strata_create(&again, "cuda:0")) {
        test_error(again, strata_synchronize(again), STRATA_ERROR_DEVICE, "cannot be used any more");
        strata_destroy(again);
    }
    test_ok(h, strata_free(h, p)); /* nothing to give back to: no error on top of the error */
    test_ok(NULL, strata_event_destroy(e));
    test_ok(NULL, strata_stream_destroy(s));
    strata_destroy(h);
    strata_handle *cpu = fake_handle("cpu");
    test_ok(cpu, strata_alloc(cpu, 100, &p));
    test_ok(cpu, strata_free(cpu, p));
    strata_destroy(cpu);
    return 0;
}

static int pinned_down(void)
{
    setenv("STRATA_SYNC", "1", 1);
    begin();
    launch(0, STRATA_OK);
    fake_fail("cuStreamSynchronize", 2, 716);
    launch(1, STRATA_OK);
    launch(2, STRATA_ERROR_DEVICE);
    assert_true(strstr(strata_error(h), "third_kernel failed while it ran") &&
                strstr(strata_error(h), "CUDA_ERROR_MISALIGNED_ADDRESS") &&
                strstr(strata_error(h), "this launch is the one at fault"));
    strata_destroy(h);
    return 0;
}

static int own_fault(void)
{
    begin();
    fake_fail("cuLaunchKernelEx", 1, 701);
    launch(1, STRATA_ERROR_DEVICE);
    const char *e = strata_error(h);
    assert_true(strstr(e, "second_kernel could not be launched on cuda:0") &&
                strstr(e, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES") && strstr(e, "grid 11x2x1") &&
                !strstr(e, "caused earlier"));
    launch(1, STRATA_OK); /* the device is not lost */
    strata_destroy(h);
    return 0;
}

static int found_by_a_launch(void)
{
    begin();
    launch(0, STRATA_OK);
    fake_fail("cuLaunchKernelEx", 1, 719);
    launch(1, STRATA_ERROR_DEVICE);
    assert_true(strstr(strata_error(h), "caused earlier") && strstr(strata_error(h), "first_kernel"));
    launch(2, STRATA_ERROR_DEVICE);
    strata_destroy(h);
    return 0;
}

static int graph_of_a_lost_device(void)
{
    strata_graph *g;
    begin();
    test_ok(h, strata_graph_begin(h));
    launch(0, STRATA_OK);
    test_ok(h, strata_graph_end(h, &g));
    test_ok(h, strata_graph_launch(h, g));
    fake_lose(719);
    test_error(h, strata_synchronize(h), STRATA_ERROR_DEVICE, "CUDA_ERROR_LAUNCH_FAILED");
    test_ok(NULL, strata_graph_destroy(g));
    strata_destroy(h);
    return 0;
}

static int no_context(void)
{
    strata_handle *g;
    fake_use();
    fake_fail("cuDevicePrimaryCtxRetain", 1, 46);
    test_error(NULL, strata_create(&g, "cuda:0"), STRATA_ERROR_DEVICE, "strata_create", "cuda:0",
               "CUDA_ERROR_DEVICE_UNAVAILABLE", "try");
    assert_null(g);
    g = fake_handle("cuda:0"); /* not kept */
    strata_destroy(g);
    return 0;
}

static int old_gpu(void)
{
    strata_handle *g;
    fake_use();
    fake_shape(1, 13000, 61);
    test_error(NULL, strata_create(&g, "cuda:0"), STRATA_ERROR_DEVICE, "compute capability 6.1", "8.0",
               "\"cpu\"");
    g = fake_handle("auto");
    assert_string_equal(strata_handle_device(g), "cpu");
    strata_destroy(g);
    return 0;
}

static int no_device(void)
{
    strata_handle *g;
    fake_use();
    fake_shape(0, 13000, 90);
    test_error(NULL, strata_create(&g, "cuda:0"), STRATA_ERROR_DEVICE, "strata_create", "cuda:0",
               "CUDA_ERROR_NO_DEVICE", "likely", "CUDA_VISIBLE_DEVICES");
    g = fake_handle("auto");
    assert_string_equal(strata_handle_device(g), "cpu");
    strata_destroy(g);
    assert_int_equal(strata_device_count(), 1);
    return 0;
}

static int old_driver(void)
{
    strata_handle *g;
    fake_use();
    setenv("STRATA_CUDA_LIB", OLD_CUDA, 1);
    test_error(NULL, strata_create(&g, "cuda:0"), STRATA_ERROR_DEVICE, "strata_create", "too old", "11.4",
               "525");
    return 0;
}

static void alone(int (*f)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int r = f();
        fflush(NULL);
        _exit(r);
    }
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}
#define ALONE(f)               \
    static void f##_(void **s) \
    {                          \
        (void)s;               \
        alone(f);              \
    }
ALONE(lost)
ALONE(pinned_down)
ALONE(own_fault)
ALONE(found_by_a_launch)
ALONE(graph_of_a_lost_device)
ALONE(no_context)
ALONE(old_gpu)
ALONE(no_device)
ALONE(old_driver)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lost_),
                                       cmocka_unit_test(pinned_down_),
                                       cmocka_unit_test(own_fault_),
                                       cmocka_unit_test(found_by_a_launch_),
                                       cmocka_unit_test(graph_of_a_lost_device_),
                                       cmocka_unit_test(no_context_),
                                       cmocka_unit_test(old_gpu_),
                                       cmocka_unit_test(no_device_),
                                       cmocka_unit_test(old_driver_)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
