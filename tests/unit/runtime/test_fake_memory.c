/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory through the fake driver: reuse in the order of streams, statistics, trimming, out of memory in words, allocators, workspace,
 * many threads, captures. */
#include "fake_test.h"
#include "runtime/cuda/cuda.h"
#include "runtime/gpu.h"
#include <pthread.h>

static strata_handle *h;

static int setup(void **state)
{
    (void)state;
    fake_reset();
    h = fake_handle("cuda:0");
    return 0;
}
static int teardown(void **state)
{
    (void)state;
    fake_reset();
    test_ok(h, strata_trim(h));
    strata_memory_stats s;
    test_ok(h, strata_get_memory_stats(h, &s));
    assert_true(s.bytes_in_use == 0 && s.bytes_cached == 0);
    assert_int_equal(fake_count().blocks, 0); /* everything went back to the driver */
    assert_true(fake_count().bytes == 0);
    strata_destroy(h);
    assert_int_equal(fake_count().streams, 0);
    return 0;
}
static strata_memory_stats stats(void)
{
    strata_memory_stats s;
    test_ok(h, strata_get_memory_stats(h, &s));
    return s;
}
static void *take(strata_handle *of, size_t bytes)
{
    void *p = NULL;
    test_ok(of, strata_alloc(of, bytes, &p));
    test_check(((uintptr_t)p & 255) == 0, "%zu bytes at %p", bytes, p);
    return p;
}

static void sizes(void **state)
{
    (void)state;
    test_rng r = test_rng_make(5);
    enum { N = 300 };
    char *p[N] = {0};
    size_t n[N] = {0};
    for (int round = 0; round < test_rounds(2000); round++) {
        int i = (int)test_int(&r, 0, N - 1);
        if (p[i]) {
            for (size_t k = 0; k < n[i]; k += n[i] / 7 + 1) assert_int_equal((unsigned char)p[i][k], i & 255);
            test_ok(h, strata_free(h, p[i]));
            p[i] = NULL;
            continue;
        }
        n[i] = test_chance(&r, 0.9) ? (size_t)test_int(&r, 0, 9000) : (size_t)test_int(&r, 0, 6 << 20);
        p[i] = take(h, n[i]);
        memset(p[i], i, n[i]); /* none lies over another */
    }
    for (int i = 0; i < N; i++)
        if (p[i]) test_ok(h, strata_free(h, p[i]));
    strata_memory_stats s = stats();
    assert_true(s.bytes_in_use == 0 && s.bytes_cached > 0 && s.allocations == s.frees);
    assert_true(s.system_allocations < s.allocations / 4);
    test_ok(h, strata_free(h, NULL));
    void *q = take(h, 10), *again;
    test_ok(h, strata_free(h, q));
    test_error(h, strata_free(h, q), STRATA_ERROR_ARGUMENT, "strata_free", "freed twice");
    test_error(h, strata_free(h, (char *)q + 256), STRATA_ERROR_ARGUMENT, "not a live block");
    again = take(h, 12);
    assert_ptr_equal(again, q); /* the same stream takes it at once */
    test_ok(h, strata_free(h, again));
    test_error(h, strata_alloc(h, 8, NULL), STRATA_ERROR_ARGUMENT, "strata_alloc");
}

static void statistics(void **state)
{
    (void)state;
    strata_memory_stats a = stats();
    void *p = take(h, 1000), *q = take(h, 3 << 20);
    strata_memory_stats b = stats();
    assert_true(b.bytes_in_use == 1000 + (3 << 20) && b.allocations == a.allocations + 2);
    assert_true(b.system_allocations == a.system_allocations + 2 && b.bytes_peak >= b.bytes_in_use);
    test_ok(h, strata_free(h, q));
    b = stats();
    assert_true(b.bytes_cached == 4 << 20 && b.bytes_in_use == 1000);
    q = take(h, 4 << 20); /* serves: at least 7/8 */
    assert_true(stats().system_allocations == b.system_allocations);
    test_ok(h, strata_free(h, q));
    test_ok(h, strata_trim(h));
    assert_true(stats().bytes_cached == 0);
    assert_int_equal(fake_count().blocks, 1); /* the slab of p */
    test_ok(h, strata_free(h, p));
}

/* A block freed in one stream: that stream takes it at once, another one only in order. */
static void order_of_streams(void **state)
{
    (void)state;
    strata_stream *s, *t;
    test_ok(h, strata_stream_create(h, &s));
    test_ok(h, strata_stream_create(h, &t));
    for (int lazy = 0; lazy < 2; lazy++) {
        fake_lazy(lazy);
        test_ok(h, strata_set_stream(h, s));
        void *p = take(h, 5 << 20);
        test_ok(h, strata_free(h, p));
        fake_counts c = fake_count();
        void *q = take(h, 5 << 20);
        assert_ptr_equal(p, q);
        assert_int_equal(fake_count().waits, c.waits); /* its own stream: no wait */
        test_ok(h, strata_free(h, q));
        test_ok(h, strata_set_stream(h, t));
        c = fake_count();
        q = take(h, 5 << 20);
        assert_ptr_equal(p, q);
        assert_int_equal(fake_count().waits, c.waits + lazy); /* finished: none; unfinished: on the device */
        assert_int_equal(fake_count().syncs, c.syncs);        /* never on the host */
        test_ok(h, strata_free(h, q));
        test_ok(h, strata_trim(h));
    }
    /* a block that was freed in a stream which is gone */
    void *p = take(h, 5 << 20);
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_set_stream(h, s));
    test_ok(h, strata_stream_destroy(t));
    void *q = take(h, 5 << 20);
    assert_ptr_equal(p, q);
    test_ok(h, strata_free(h, q));
    test_ok(h, strata_set_stream(h, NULL));
    test_ok(h, strata_stream_destroy(s));
}

static void out_of_memory(void **state)
{
    (void)state;
    fake_memory((size_t)100 << 20);
    strata_handle *cpu = fake_handle("cpu");
    void *p = take(h, 30 << 20), *q = take(h, 60 << 20), *r = (void *)1;
    test_error(h, strata_alloc(h, 40 << 20, &r), STRATA_ERROR_MEMORY, "strata_alloc", "cuda:0",
               "41943040 bytes", "pool", "41.9 MB asked", "MB free of 0.1 GB", "94.4 MB through Strata",
               "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", "pid 1 ", "138.2 GB",
               "pid 4194999 (another container) 2.1 GB", "try");
    assert_null(r);
    test_ok(h, strata_free(h, q)); /* cached; given back and tried again */
    r = take(h, 65 << 20);
    assert_true(stats().bytes_cached == 0);
    test_ok(h, strata_free(h, r));
    test_ok(h, strata_free(h, p));
    test_error(h, strata_alloc(h, SIZE_MAX - 5, &r), STRATA_ERROR_MEMORY, "strata_alloc");
    test_error(h, strata_alloc(h, (size_t)1 << 50, &r), STRATA_ERROR_MEMORY, "strata_alloc",
               "1125899906842624");
    for (int nth = 1; nth < 4; nth++) { /* at the n-th call */
        fake_fail("cuMemAlloc_v2", nth, 2);
        void *block[4];
        for (int i = 0; i < 4; i++) block[i] = take(h, 20 << 20); /* each is retried once */
        for (int i = 0; i < 4; i++) test_ok(h, strata_free(h, block[i]));
        test_ok(h, strata_trim(h));
    }
    fake_fail("cuMemHostAlloc", 1, 2);
    test_error(h, strata_alloc_host(h, 100, &r), STRATA_ERROR_MEMORY, "strata_alloc_host", "cuMemHostAlloc");
    fake_fail("cuMemAlloc_v2", 1, 999);
    test_error(h, strata_alloc(h, 3 << 20, &r), STRATA_ERROR_DEVICE, "strata_alloc", "CUDA_ERROR_UNKNOWN");
    fake_fail("cuEventCreate", 1, 2); /* no event for a freed block: its own stream still takes it */
    p = take(h, 3 << 20);
    test_ok(h, strata_free(h, p));
    q = take(h, 3 << 20);
    test_ok(h, strata_free(h, q));
    strata_destroy(cpu);
}

/* Freed memory is kept up to a quarter of the device. */
static void cache_limit(void **state)
{
    (void)state;
    void *p[8];
    for (int i = 0; i < 8; i++) p[i] = take(h, 128 << 20);
    for (int i = 0; i < 8; i++) test_ok(h, strata_free(h, p[i]));
    assert_true(stats().bytes_cached <= (size_t)512 << 20 && stats().bytes_cached >= (size_t)384 << 20);
}

static int given, returned;
static void *my_alloc(void *user, size_t bytes, size_t alignment)
{
    given++;
    void *p;
    assert_int_equal(alignment, 256);
    return strata_alloc(user, bytes, &p) ? NULL : p;
}
static void my_free(void *user, void *p, size_t bytes)
{
    assert_true(bytes > 0);
    returned++;
    test_ok(user, strata_free(user, p));
}

static void allocator(void **state)
{
    (void)state;
    strata_handle *g = fake_handle("cuda:0");
    test_ok(g, strata_set_allocator(g, &(strata_allocator){my_alloc, my_free, h}));
    void *p = NULL, *w;
    test_ok(g, strata_alloc(g, 1000, &p));
    assert_int_equal(given, 1);
    assert_non_null(w = st_workspace(g, 100000));
    assert_int_equal(given, 2);
    assert_ptr_equal(st_workspace(g, 50000), w);
    test_error(g, strata_set_allocator(g, NULL), STRATA_ERROR_STATE, "strata_set_allocator");
    void *plan = st_malloc(g, 1000); /* plans lie in host memory */
    memset(plan, 1, 1000);
    assert_int_equal(given, 2);
    st_mfree(g, plan, 1000);
    fake_fail("cuMemAlloc_v2", 1, 2);
    fake_memory(16 << 20);
    void *q = NULL;
    test_error(g, strata_alloc(g, 900 << 20, &q), STRATA_ERROR_MEMORY, "strata_alloc",
               "the caller's allocator");
    fake_memory((size_t)2 << 30);
    test_ok(g, strata_free(g, p));
    strata_destroy(g);
    assert_int_equal(given, 3);
    assert_int_equal(returned, 2);
}

static void workspace(void **state)
{
    (void)state;
    strata_stream *s;
    test_ok(h, strata_stream_create(h, &s));
    char *w = st_workspace(h, 1000);
    assert_true(w && st_gpu_reaches(h, w));
    assert_null(st_workspace(h, (256 << 20) + 1));
    assert_true(strstr(strata_error(h), "limit is 268435456") &&
                strstr(strata_error(h), "strata_set_workspace_limit"));
    assert_ptr_equal(st_workspace(h, 1000), w);
    /* the new stream waits for the old one's use of it, once */
    fake_counts c = fake_count();
    test_ok(h, strata_set_stream(h, s));
    assert_int_equal(fake_count().waits, c.waits + 1);
    test_ok(h, strata_set_stream(h, s));
    assert_int_equal(fake_count().waits, c.waits + 1);
    assert_ptr_equal(st_workspace(h, 1000), w);
    test_ok(h, strata_set_workspace_limit(h, 0));
    assert_null(st_workspace(h, 1));
    assert_non_null(st_workspace_beyond(h, 4096, 4096));
    test_ok(h, strata_set_workspace_limit(h, 1 << 20));
    /* the caller's */
    void *mine = take(h, 1 << 16);
    char host[64];
    _Alignas(64) static char plain[64];
    (void)host;
    test_error(h, strata_set_workspace(h, plain, 64), STRATA_ERROR_DEVICE, "strata_set_workspace",
               "does not reach", "strata_alloc");
    test_ok(h, strata_set_workspace(h, mine, 1 << 16));
    assert_ptr_equal(st_workspace(h, 1 << 16), mine);
    assert_null(st_workspace(h, (1 << 16) + 1));
    test_ok(h, strata_set_workspace(h, NULL, 0));
    test_ok(h, strata_free(h, mine));
    fake_memory(1 << 20);
    test_ok(h, strata_trim(h));
    assert_null(st_workspace(h, 1 << 20));
    assert_true(strstr(strata_error(h), "no memory") &&
                strstr(strata_error(h), "strata_set_workspace_limit(h, 0)"));
    fake_memory((size_t)2 << 30);
    /* the stream goes before the workspace does */
    assert_non_null(st_workspace(h, 1000));
    test_ok(h, strata_stream_destroy(s));
    assert_null(st_gpu_alloc(h, 10));
    assert_true(strstr(strata_error(h), "stream was destroyed") != NULL);
    test_ok(h, strata_set_stream(h, NULL));
}

/* Inside a caller's capture nothing is allocated; a workspace is a pair of memory nodes. */
static void captured(void **state)
{
    (void)state;
    void *cu = fake_stream_make(0), *p = take(h, 100), *q = (void *)1;
    strata_stream *s;
    test_ok(h, strata_stream_wrap(h, cu, &s));
    assert_ptr_equal(strata_native_stream(h), NULL);
    test_ok(h, strata_set_stream(h, s));
    assert_ptr_equal(strata_native_stream(h), cu);
    assert_non_null(st_workspace(h, 100));
    for (int mode = 0; mode < 3; mode++) {
        fake_capture_begin(cu, mode);
        assert_true(st_gpu_capturing(h));
        test_error(h, strata_alloc(h, 100, &q), STRATA_ERROR_STATE, "strata_alloc", "captured",
                   "before the capture");
        test_error(h, strata_free(h, p), STRATA_ERROR_STATE, "strata_free", "captured");
        test_error(h, strata_trim(h), STRATA_ERROR_STATE, "strata_trim");
        test_error(h, strata_synchronize(h), STRATA_ERROR_STATE, "strata_synchronize", "captured");
        test_error(h, st_gpu_upload(h, p, "x", 1), STRATA_ERROR_STATE, "captured");
        double re, im;
        assert_false(st_gpu_scalar_value(h, "f", "alpha", strata_scalar_at(STRATA_F32, p), &re, &im));
        assert_true(strstr(strata_error(h), "by value") != NULL);
        fake_counts c = fake_count();
        void *w = st_workspace(h, 5000);
        assert_non_null(w);
        assert_int_equal(fake_count().mallocs_in_capture, c.mallocs_in_capture + 1);
        assert_true(st_gpu_reaches(h, w) &&
                    st_gpu_reaches(h, (char *)w + 4999)); /* though the driver does not know it */
        st_gpu_run_end(h);
        assert_non_null(st_workspace(h, 6000));
        assert_non_null(st_workspace(h, 7000)); /* the one before it ends */
        st_gpu_run_end(h);
        st_gpu_run_end(h);
        assert_int_equal(fake_capture_end(cu), 0); /* nothing that we did disturbed it */
        assert_int_equal(fake_last_graph_nodes(), 6);
        assert_false(st_gpu_capturing(h));
        /* another stream is captured, perhaps in global mode: this one allocates undisturbed */
        void *other = fake_stream_make(0);
        fake_capture_begin(other, mode);
        void *big = take(h, 9 << 20);
        test_ok(h, strata_free(h, big));
        strata_stream *t;
        test_ok(h, strata_stream_create(h, &t));
        test_ok(h, strata_set_stream(h, t));
        big = take(h, 9 << 20); /* asks an event */
        char *bytes = calloc(1, 3 << 20);
        test_ok(h, st_gpu_upload(h, big, bytes, 3 << 20));
        test_ok(h, st_gpu_download(h, bytes, big, 3 << 20));
        test_ok(h, strata_synchronize(h));
        strata_event *e;
        double ms;
        test_ok(h, strata_event_create(h, &e));
        test_ok(h, strata_event_record(h, e));
        test_ok(NULL, strata_event_wait(e));
        test_ok(NULL, strata_event_elapsed(e, e, &ms));
        test_ok(NULL, strata_event_destroy(e));
        void *pinned;
        test_ok(h, strata_alloc_host(h, 100, &pinned));
        test_ok(h, strata_free_host(h, pinned));
        free(bytes);
        test_ok(h, strata_free(h, big));
        test_ok(h, strata_set_stream(h, s));
        test_ok(h, strata_stream_destroy(t));
        assert_int_equal(fake_capture_end(other), 0);
        fake_stream_end(other);
    }
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_set_stream(h, NULL));
    test_ok(h, strata_stream_destroy(s));
    assert_int_equal(fake_count().streams, 1); /* the caller's stays */
    fake_stream_end(cu);
}

static void *worker(void *seed)
{
    strata_handle *g = fake_handle("cuda:0");
    strata_stream *s;
    test_rng r = test_rng_make((uint64_t)(uintptr_t)seed);
    test_ok(g, strata_stream_create(g, &s));
    test_ok(g, strata_set_stream(g, s));
    char *p[20] = {0};
    for (int i = 0; i < 3000; i++) {
        int k = (int)test_int(&r, 0, 19);
        if (p[k]) {
            assert_true(*p[k] == (char)(uintptr_t)seed);
            test_ok(g, strata_free(g, p[k]));
            p[k] = NULL;
        } else {
            p[k] = take(g, (size_t)test_int(&r, 1, test_chance(&r, 0.1) ? 3 << 20 : 5000));
            *p[k] = (char)(uintptr_t)seed;
        }
    }
    for (int k = 0; k < 20; k++) test_ok(g, strata_free(g, p[k]));
    test_ok(g, strata_set_stream(g, NULL));
    test_ok(g, strata_stream_destroy(s));
    strata_destroy(g);
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    pthread_t t[6];
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&t[i], NULL, worker, (void *)(uintptr_t)(i + 1)), 0);
    for (int i = 0; i < 6; i++) pthread_join(t[i], NULL);
}

int main(void)
{
    fake_use();
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(sizes),         TEST(statistics),  TEST(order_of_streams),
                                       TEST(out_of_memory), TEST(cache_limit), TEST(allocator),
                                       TEST(workspace),     TEST(captured),    TEST(threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
