/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernels.c - kernels on the device that is here: each registered one is found or compiled, loads, and keeps out of local memory; several
 * threads that ask for one kernel get the same; without the pack and the cache the code is the same. Needs a GPU. */
#include "runtime/gpu.h"
#include "support.h"
#include "tile/tile.h"
#include <pthread.h>
#include <strata.h>
#include <unistd.h>

static strata_handle *h;

/* Registered kernels of this device, one by one; false past the end. The strings live until the next call. */
static bool registered(int i, st_gpu_spec *s)
{
    st_gpu_pack_fn list[32];
    int n = st_gpu_pack_lists(list, 32);
    for (int l = 0; l < n; l++) {
        int k = 0;
        while (*s = (st_gpu_spec){0}, list[l](h->gpu->cc, k, s)) {
            if (i-- == 0) return true;
            k++;
        }
    }
    return false;
}

static void test_all_load(void **state)
{
    (void)state;
    st_gpu_spec s;
    int n = 0, compiled = 0, bound = getenv("STRATA_TEST_SHORT") ? 3 : 1000;
    double begun = (double)st_now_ns() / 1e9, ms = 0;
    for (; n < bound && registered(n, &s); n++) {
        const st_gpu_kernel *k, *again;
        test_problem("kernel %s", s.id);
        /* what the pack does not hold costs up to a second each: the rest is told, not compiled */
        if (ms > 30000) break;
        test_ok(h, st_gpu_kernel_get(h, &s, &k));
        test_ok(h, st_gpu_kernel_get(h, &s, &again));
        assert_ptr_equal(k, again);
        test_check(k->registers > 0 && k->registers <= 255, "%d registers", k->registers);
        test_check(k->max_threads > 0, "%d threads", k->max_threads);
        test_check(k->static_smem <= h->gpu->smem_block, "%d bytes shared", k->static_smem);
        test_check(k->local_bytes == 0, "%d bytes of local memory a thread", k->local_bytes);
        compiled += k->compile_ms > 0;
        ms += k->compile_ms;
    }
    printf("%d kernels load, %d of them compiled here in %.0f ms, in %.1f s%s\n", n, compiled, ms,
           (double)st_now_ns() / 1e9 - begun, registered(n, &s) ? "; more are registered" : "");
    assert_true(n > 0);
}

typedef struct asker {
    pthread_t thread;
    const st_gpu_kernel *kernel;
    strata_status status;
} asker;

static pthread_barrier_t gate;
static st_gpu_spec shared_spec;

static void *ask(void *arg)
{
    asker *a = arg;
    strata_handle *own;
    a->status = strata_create(&own, h->device);
    pthread_barrier_wait(&gate);
    if (a->status) return NULL;
    a->status = st_gpu_kernel_get(own, &shared_spec, &a->kernel);
    strata_destroy(own);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    asker a[8] = {0};
    st_gpu_spec s;
    assert_true(registered(0, &s));
    shared_spec = s;
    int n = 0;
    while (s.option[n]) n++;
    assert_true(n < ST_GPU_OPTIONS);
    if (n + 1 < ST_GPU_OPTIONS) shared_spec.option[n] = "-DTEST_ONLY=1"; /* so that it is not loaded yet */
    assert_int_equal(pthread_barrier_init(&gate, NULL, TEST_COUNT(a)), 0);
    for (int i = 0; i < TEST_COUNT(a); i++)
        assert_int_equal(pthread_create(&a[i].thread, NULL, ask, &a[i]), 0);
    for (int i = 0; i < TEST_COUNT(a); i++) pthread_join(a[i].thread, NULL);
    /* without NVRTC there is none, for all of them */
    for (int i = 0; i < TEST_COUNT(a); i++) {
        assert_int_equal(a[i].status, a[0].status);
        assert_ptr_equal(a[i].kernel, a[0].kernel);
    }
    pthread_barrier_destroy(&gate);
}

static void test_unknown(void **state)
{
    (void)state;
    const st_gpu_kernel *k;
    st_gpu_spec s = {.id = "absent", .source = "absent.cu", .entry = "absent"};
    test_error(h, st_gpu_kernel_get(h, &s, &k), STRATA_ERROR_INTERNAL, "absent.cu");
    assert_null(k);
}

int main(void)
{
    st_tile_init();
    if (strata_create(&h, "cuda:0")) {
        printf("skipped: %s\n", strata_error(NULL));
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_load), cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_unknown)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed;
}
