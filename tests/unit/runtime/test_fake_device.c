/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs through the fake driver: which devices there are, what "auto" is, contexts beside another user of CUDA, scalars, launches, fork. */
#include "fake_test.h"
#include "runtime/gpu.h"
#include "runtime/cuda/cuda.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void devices(void **state)
{
    (void)state;
    strata_device_info d;
    strata_handle *h;
    assert_int_equal(strata_device_count(), 3);
    assert_string_equal(strata_device_name(0), "cpu");
    assert_string_equal(strata_device_name(1), "cuda:0");
    assert_string_equal(strata_device_name(2), "cuda:1");
    assert_null(strata_device_name(3));
    memset(&d, 0xff, sizeof d);
    test_ok(NULL, strata_get_device_info("cuda:1", &d));
    assert_string_equal(d.name, "Fake GPU 1");
    assert_string_equal(d.device, "cuda:1");
    assert_string_equal(d.isa, "sm_90");
    assert_int_equal(d.compute_capability, 90);
    assert_int_equal(d.multiprocessors, 132);
    assert_int_equal(d.driver_version, 13000);
    assert_true(d.l2 == 50 << 20 && d.memory == (int64_t)2 << 30);
    assert_true(d.clock_mhz == 1980 && d.memory_gbs > 4900 && d.memory_gbs < 4930);
    for (int i = 0; i < 4; i++) assert_true(d.reserved[i] == 0);
    test_error(NULL, strata_get_device_info("cuda:7", &d), STRATA_ERROR_DEVICE, "strata_get_device_info",
               "GPU 7", "shows 2", "CUDA_VISIBLE_DEVICES");
    test_error(NULL, strata_create(&h, "cuda:2"), STRATA_ERROR_DEVICE, "strata_create", "cuda:2", "shows 2");
    assert_null(h);
    test_error(NULL, strata_create(&h, "cuda:x"), STRATA_ERROR_DEVICE, "\"cuda:x\"", "cuda:0");
    test_error(NULL, strata_create(&h, "cuda:99999"), STRATA_ERROR_DEVICE, "\"cuda:99999\"");
    h = fake_handle("cuda:0");
    assert_string_equal(strata_handle_device(h), "cuda:0");
    assert_true(h->gpu && !h->staging && h->gpu->cc == 90 && h->gpu->smem_block == 227 << 10);
    assert_true(h->workspace_limit == 256 << 20);
    strata_destroy(h);
}

static void automatic(void **state)
{
    (void)state;
    strata_handle *h = fake_handle("auto");
    assert_string_equal(strata_handle_device(h), "cuda:0");
    assert_true(h->staging);
    strata_destroy(h);
    static const struct {
        const char *named, *device;
    } of[] = {{"cpu", "cpu"}, {"cuda:1", "cuda:1"}, {"auto", "cuda:0"}, {"", "cuda:0"}};
    for (int i = 0; i < TEST_COUNT(of); i++) {
        setenv("STRATA_DEVICE", of[i].named, 1);
        h = fake_handle(NULL);
        assert_string_equal(strata_handle_device(h), of[i].device);
        assert_true(h->staging == (h->gpu != NULL));
        strata_destroy(h);
    }
    setenv("STRATA_DEVICE", "tpu", 1);
    test_error(NULL, strata_create(&h, "auto"), STRATA_ERROR_DEVICE, "\"tpu\"", "STRATA_DEVICE");
    h = fake_handle("cuda:1"); /* only "auto" asks it */
    strata_destroy(h);
    unsetenv("STRATA_DEVICE");
    h = strata_default_handle();
    assert_string_equal(strata_handle_device(h), "cuda:0");
}

/* Another library's context stays current for its thread; a thread without one keeps device 0's. */
static void contexts(void **state)
{
    (void)state;
    strata_handle *h = fake_handle("cuda:0"), *g = fake_handle("cuda:1");
    void *p;
    fake_set_current(fake_other_context());
    test_ok(h, strata_alloc(h, 1000, &p));
    assert_ptr_equal(fake_current(), fake_other_context());
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_synchronize(h));
    assert_ptr_equal(fake_current(), fake_other_context());
    test_error(h, strata_free(h, (void *)64), STRATA_ERROR_ARGUMENT, "strata_free", "not a live block");
    assert_ptr_equal(fake_current(), fake_other_context());
    fake_set_current(NULL);
    test_ok(g, strata_synchronize(g));
    assert_null(fake_current());
    test_ok(h, strata_synchronize(h));
    assert_ptr_equal(fake_current(), st_cuda_of(h)->context);
    int pushes = fake_count().pushes;
    test_ok(h, strata_synchronize(h)); /* current already: nothing is pushed */
    assert_int_equal(fake_count().pushes, pushes);
    fake_fail("cuCtxPushCurrent_v2", 1, 201);
    test_error(g, strata_synchronize(g), STRATA_ERROR_DEVICE, "cuda:1", "context",
               "CUDA_ERROR_INVALID_CONTEXT");
    assert_ptr_equal(fake_current(), st_cuda_of(h)->context);
    strata_destroy(h);
    strata_destroy(g);
}

static void reach(void **state)
{
    (void)state;
    strata_handle *h = fake_handle("cuda:0"), *g = fake_handle("cuda:1");
    char host[64];
    void *p, *q, *pinned;
    test_ok(h, strata_alloc(h, 4096, &p));
    test_ok(g, strata_alloc(g, 4096, &q));
    test_ok(h, strata_alloc_host(h, 4096, &pinned));
    for (int i = 0; i < 3; i++) {
        assert_true(st_gpu_reaches(h, p) && st_gpu_reaches(h, (char *)p + 4095));
        assert_true(st_gpu_reaches(g, q));
        assert_false(st_gpu_reaches(h, q)); /* another device's */
        assert_false(st_gpu_reaches(h, host));
        assert_true(st_gpu_reaches(h, pinned));
    }
    int asked = fake_calls("cuPointerGetAttributes");
    for (int i = 0; i < 100; i++) assert_true(st_gpu_reaches(h, (char *)p + i));
    assert_int_equal(fake_calls("cuPointerGetAttributes"), asked); /* the pool's own are not asked for */
    test_ok(h, strata_free_host(h, pinned));
    assert_false(st_gpu_reaches(h, pinned));
    test_error(h, strata_free_host(h, pinned), STRATA_ERROR_DEVICE, "strata_free_host", "cuMemFreeHost");
    test_ok(h, strata_free_host(h, NULL));
    /* numbers: by value, on the host, on the device */
    double re, im, two[2] = {2.5, -1};
    test_ok(h, st_gpu_upload(h, p, two, sizeof two));
    assert_true(st_gpu_scalar_value(h, "f", "alpha", strata_real(3), &re, &im) && re == 3);
    assert_true(st_gpu_scalar_value(h, "f", "alpha", strata_scalar_at(STRATA_F64, two + 1), &re, &im) &&
                re == -1);
    assert_true(
        st_gpu_scalar_value(h, "f", "alpha", strata_scalar_at(STRATA_F64, (double *)p + 1), &re, &im) &&
        re == -1);
    assert_false(st_gpu_scalar_value(h, "f", "alpha", strata_scalar_at(STRATA_F64, q), &re, &im));
    assert_true(strstr(strata_error(h), "f: alpha") && strstr(strata_error(h), "another device"));
    fake_fail("cuMemcpyDtoHAsync_v2", 1, 1);
    assert_false(st_gpu_scalar_value(h, "f", "alpha", strata_scalar_at(STRATA_F64, p), &re, &im));
    assert_true(strstr(strata_error(h), "f: 8 bytes") && strstr(strata_error(h), "CUDA_ERROR_INVALID_VALUE"));
    test_ok(h, strata_free(h, p));
    test_ok(g, strata_free(g, q));
    strata_destroy(h);
    strata_destroy(g);
}

static fake_launch seen;
static void look(void *user, const fake_launch *l)
{
    (void)user;
    seen = *l;
}

static void launches(void **state)
{
    (void)state;
    strata_handle *h = fake_handle("cuda:0");
    const st_gpu_kernel *k;
    const st_gpu_spec spec = {
        .id = "nothing", .source = "copy.cu", .entry = "nothing", .option = {"-DESIZE=4", "-DA=1"}};
    test_ok(h, st_gpu_kernel_get(h, &spec, &k));
    fake_on_launch(look, NULL);
    int x = 7;
    void *args[] = {&x};
    st_gpu_launch l = {.kernel = k, .grid = {3, 0, 2}, .block = {128}, .smem = 1000, .args = args};
    int sets = fake_calls("cuFuncSetAttribute");
    test_ok(h, st_gpu_run(h, &l));
    assert_string_equal(seen.function, "nothing");
    assert_true(seen.grid[0] == 3 && seen.grid[1] == 1 && seen.grid[2] == 2 && seen.block[0] == 128 &&
                seen.block[1] == 1);
    assert_true(seen.smem == 1000 && !seen.overlap && seen.cluster[0] == 1 && seen.args == args);
    assert_int_equal(fake_calls("cuFuncSetAttribute"), sets);
    l.smem = 100000;
    l.cluster[0] = 2;
    l.overlap = true;
    for (int i = 0; i < 5; i++) test_ok(h, st_gpu_run(h, &l));
    assert_true(seen.smem == 100000 && seen.overlap && seen.cluster[0] == 2 && seen.cluster[1] == 1);
    assert_int_equal(fake_calls("cuFuncSetAttribute"), sets + 1); /* once */
    l.cluster[0] = 16;
    for (int i = 0; i < 5; i++) test_ok(h, st_gpu_run(h, &l));
    assert_int_equal(fake_calls("cuFuncSetAttribute"), sets + 2);
    assert_int_equal(st_gpu_clusters(h, &l), 132 / 16);
    assert_int_equal(st_gpu_occupancy(h, k, 256, 100000), 2);
    assert_int_equal(st_gpu_occupancy(h, k, 256, 240 << 10), 0);
    assert_true(strstr(strata_error(h), "nothing") && strstr(strata_error(h), "cuFuncSetAttribute"));
    l.block[0] = 2048;
    test_error(h, st_gpu_run(h, &l), STRATA_ERROR_DEVICE, "nothing", "block 2048x1x1",
               "CUDA_ERROR_INVALID_VALUE");
    fake_fail("cuOccupancyMaxActiveClusters", 1, 912);
    assert_int_equal(st_gpu_clusters(h, &l), 0);
    assert_true(strstr(strata_error(h), "CUDA_ERROR_INVALID_CLUSTER_SIZE") != NULL);
    fake_on_launch(NULL, NULL);
    /* tensor maps: what the driver gets, and what is refused before it */
    st_gpu_map map;
    const int64_t dim[2] = {64, 100}, stride[2] = {2, 256};
    const int box[2] = {64, 128};
    test_ok(h, st_gpu_map_tiled(h, &map, STRATA_BF16, 2, (void *)4096, dim, stride, box, 128));
    assert_true(map.opaque[0] == 9 && map.opaque[1] == 2 && map.opaque[2] == 4096 && map.opaque[3] == 64 &&
                map.opaque[4] == 256 && map.opaque[5] == 64 && map.opaque[6] == 3);
    test_ok(h, st_gpu_map_tiled(h, &map, ST_GPU_TF32, 2, (void *)4096, (const int64_t[]){64, 1},
                                (const int64_t[]){4, 0}, (const int[]){32, 1}, 128));
    assert_true(map.opaque[0] == 11 &&
                map.opaque[4] == 16); /* a dim of one element: its stride does not matter */
    test_error(h, st_gpu_map_tiled(h, &map, STRATA_BF16, 2, (void *)4098, dim, stride, box, 128),
               STRATA_ERROR_INTERNAL, "bf16", "multiple of 16");
    test_error(
        h, st_gpu_map_tiled(h, &map, STRATA_BF16, 2, (void *)4096, dim, (const int64_t[]){2, 200}, box, 128),
        STRATA_ERROR_INTERNAL, "strides");
    test_error(h, st_gpu_map_tiled(h, &map, STRATA_C128, 2, (void *)4096, dim, stride, box, 128),
               STRATA_ERROR_INTERNAL, "type");
    test_error(h, st_gpu_map_tiled(h, &map, STRATA_BF16, 6, (void *)4096, dim, stride, box, 128),
               STRATA_ERROR_INTERNAL, "rank");
    test_error(
        h, st_gpu_map_tiled(h, &map, STRATA_BF16, 2, (void *)4096, dim, stride, (const int[]){64, 300}, 128),
        STRATA_ERROR_INTERNAL, "box");
    fake_fail("cuTensorMapEncodeTiled", 1, 1);
    test_error(h, st_gpu_map_tiled(h, &map, STRATA_BF16, 2, (void *)4096, dim, stride, box, 128),
               STRATA_ERROR_DEVICE, "cuTensorMapEncodeTiled", "swizzle of 128");
    strata_destroy(h);
}

static void kernel_images(void **state)
{
    (void)state;
    strata_handle *h = fake_handle("cuda:0");
    const st_gpu_kernel *k, *k2;
    st_gpu_spec spec = {
        .id = "k1", .source = "copy.cu", .entry = "st_copy", .option = {"-DESIZE=4", "-DB=1"}};
    fake_fail("cuModuleLoadData", 1, 209);
    test_error(h, st_gpu_kernel_get(h, &spec, &k), STRATA_ERROR_DEVICE, "k1", "CUDA_ERROR_NO_BINARY_FOR_GPU");
    fake_fail("cuModuleGetFunction", 1, 500);
    test_error(h, st_gpu_kernel_get(h, &spec, &k), STRATA_ERROR_DEVICE, "k1", "CUDA_ERROR_NOT_FOUND");
    int modules = fake_count().modules;
    test_ok(h, st_gpu_kernel_get(h, &spec, &k)); /* a failure is not kept */
    test_ok(h, st_gpu_kernel_get(h, &spec, &k2));
    assert_ptr_equal(k, k2);
    assert_int_equal(fake_count().modules, modules + 1);
    strata_destroy(h);
}

static void forked(void **state)
{
    (void)state;
    strata_handle *h = fake_handle("cuda:0");
    void *p;
    test_ok(h, strata_alloc(h, 1 << 20, &p));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        strata_handle *c = NULL, *mine = NULL;
        void *q;
        int bad = strata_alloc(h, 100, &q) != STRATA_ERROR_DEVICE || !strstr(strata_error(h), "forked");
        bad |= strata_free(h, p) != STRATA_ERROR_DEVICE;
        bad |= strata_synchronize(h) != STRATA_ERROR_DEVICE;
        bad |= strata_create(&c, "cuda:0") != STRATA_ERROR_DEVICE || !strstr(strata_error(NULL), "exec");
        strata_destroy(h);                               /* only what is the child's own goes */
        bad |= strata_create(&mine, "cpu") != STRATA_OK; /* the CPU works on */
        strata_destroy(mine);
        _exit(bad);
    }
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    test_ok(h, strata_free(h, p));
    strata_destroy(h);
}

int main(void)
{
    fake_use();
    fake_shape(2, 13000, 90);
    const struct CMUnitTest tests[] = {cmocka_unit_test(devices),  cmocka_unit_test(automatic),
                                       cmocka_unit_test(contexts), cmocka_unit_test(reach),
                                       cmocka_unit_test(launches), cmocka_unit_test(kernel_images),
                                       cmocka_unit_test(forked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
