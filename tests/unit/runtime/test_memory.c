/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: alloc and free with statistics, sizes that cannot be, wrong pointers, a caller's allocator, the workspace. */
#include "runtime/handle.h"
#include "support.h"
#include <pthread.h>

static strata_handle *h;

static int setup(void **state)
{
    (void)state;
    return strata_create(&h, "cpu") != STRATA_OK;
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    h = NULL;
    return 0;
}

static strata_memory_stats stats(void)
{
    strata_memory_stats s;
    test_ok(h, strata_get_memory_stats(h, &s));
    return s;
}

static void sizes_and_alignment(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        0, 1, 63, 64, 65, 4096, 100000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20, 64 << 20};
    void *p[TEST_COUNT(sizes)];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < TEST_COUNT(sizes); i++) {
            test_ok(h, strata_alloc(h, sizes[i], &p[i]));
            test_check(((uintptr_t)p[i] & 63) == 0, "%zu bytes at %p", sizes[i], p[i]);
            if (sizes[i]) memset(p[i], i + 1, sizes[i]);
        }
        for (int i = 0; i < TEST_COUNT(sizes); i++) /* none lies over another */
            for (size_t k = 0; k<sizes[i]; k += sizes[i]> 1000 ? 997 : 1)
                assert_int_equal(((unsigned char *)p[i])[k], i + 1);
        for (int i = 0; i < TEST_COUNT(sizes); i++)
            test_ok(h, strata_free(h, p[(i * 5 + round) % TEST_COUNT(sizes)]));
    }
    test_ok(h, strata_free(h, NULL));
}

/* On the CPU page-locked memory is plain memory, and there are no native streams and graphs. */
static void what_gpus_have(void **state)
{
    (void)state;
    void *p, *q;
    strata_stream *s;
    strata_graph *g;
    test_ok(h, strata_alloc_host(h, 1000, &p));
    memset(p, 1, 1000);
    test_ok(h, strata_free_host(h, p));
    test_error(h, strata_free_host(h, p), STRATA_ERROR_ARGUMENT, "strata_free_host", "freed twice");
    test_ok(h, strata_free_host(h, NULL));
    test_error(h, strata_alloc_host(h, SIZE_MAX, &q), STRATA_ERROR_MEMORY, "strata_alloc_host");
    assert_null(q);
    test_error(h, strata_alloc_host(h, 8, NULL), STRATA_ERROR_ARGUMENT, "strata_alloc_host", "NULL");
    assert_null(strata_native_stream(h));
    test_error(h, strata_stream_wrap(h, &s, &s), STRATA_ERROR_UNSUPPORTED, "strata_stream_wrap", "cpu",
               "strata_stream_create");
    test_error(h, strata_graph_begin(h), STRATA_ERROR_UNSUPPORTED, "strata_graph_begin", "cpu", "directly");
    test_error(h, strata_graph_end(h, &g), STRATA_ERROR_UNSUPPORTED, "strata_graph_end");
    test_error(h, strata_graph_launch(h, NULL), STRATA_ERROR_UNSUPPORTED, "strata_graph_launch");
    test_ok(NULL, strata_graph_destroy(NULL));
}

static void statistics(void **state)
{
    (void)state;
    test_ok(h, strata_trim(h));
    strata_memory_stats a = stats();
    assert_true(a.bytes_cached == 0);
    void *p, *q;
    test_ok(h, strata_alloc(h, 1000, &p));
    test_ok(h, strata_alloc(h, 3 << 20, &q));
    strata_memory_stats b = stats();
    assert_true(b.bytes_in_use - a.bytes_in_use == 1000 + (3 << 20));
    assert_true(b.allocations - a.allocations == 2 && b.frees == a.frees);
    assert_true(b.system_allocations - a.system_allocations == 2);
    assert_true(b.bytes_peak >= b.bytes_in_use);
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_free(h, q));
    strata_memory_stats c = stats();
    assert_true(c.bytes_in_use == a.bytes_in_use && c.frees - a.frees == 2);
    assert_true(c.bytes_cached >= 3 << 20); /* the large one is kept */
    test_ok(h, strata_alloc(h, 3 << 20, &p));
    strata_memory_stats d = stats();
    assert_true(d.system_allocations == c.system_allocations); /* and used again */
    assert_true(d.bytes_cached == 0);
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_trim(h));
    assert_true(stats().bytes_cached == 0);
    test_error(h, strata_get_memory_stats(h, NULL), STRATA_ERROR_ARGUMENT, "strata_get_memory_stats", "NULL");
}

/* What is kept for reuse has bounds, in blocks and in bytes. */
static void the_cache_is_bounded(void **state)
{
    (void)state;
    void *p[40];
    for (int i = 0; i < TEST_COUNT(p); i++) test_ok(h, strata_alloc(h, (size_t)(i + 1) << 20, &p[i]));
    for (int i = 0; i < TEST_COUNT(p); i++) test_ok(h, strata_free(h, p[i]));
    assert_true(stats().bytes_cached <= 16 * ((uint64_t)44 << 20));
    for (int i = 0; i < 6; i++)
        test_ok(h, strata_alloc(h, (size_t)400 << 20, &p[i])); /* untouched pages cost nothing */
    for (int i = 0; i < 6; i++) test_ok(h, strata_free(h, p[i]));
    assert_true(stats().bytes_cached <= (uint64_t)1 << 30);
    test_ok(h, strata_alloc(h, (size_t)1100 << 20, &p[0]));
    test_ok(h, strata_free(h, p[0]));
    assert_true(stats().bytes_cached <= (uint64_t)1 << 30);
    test_ok(h, strata_trim(h));
}

static void sizes_that_cannot_be(void **state)
{
    (void)state;
    static const size_t sizes[] = {SIZE_MAX,
                                   SIZE_MAX - 1,
                                   SIZE_MAX - 63,
                                   SIZE_MAX - 64,
                                   SIZE_MAX - (4 << 20),
                                   (size_t)PTRDIFF_MAX,
                                   (size_t)PTRDIFF_MAX + 1,
                                   (size_t)PTRDIFF_MAX - 64,
                                   SIZE_MAX / 2 - 4096,
                                   (size_t)1 << 60};
    strata_memory_stats a = stats();
    for (int i = 0; i < TEST_COUNT(sizes); i++) {
        void *p = &p;
        char bytes[32];
        snprintf(bytes, sizeof bytes, "%zu bytes", sizes[i]);
        test_error(h, strata_alloc(h, sizes[i], &p), STRATA_ERROR_MEMORY, "strata_alloc", "cpu", bytes, "try",
                   "strata_trim");
        assert_null(p);
    }
    strata_memory_stats b = stats();
    assert_true(a.bytes_in_use == b.bytes_in_use && a.allocations == b.allocations);
    test_error(h, strata_alloc(h, 8, NULL), STRATA_ERROR_ARGUMENT, "strata_alloc", "ptr is NULL", "address");
}

static void wrong_pointers(void **state)
{
    (void)state;
    void *p, *q;
    char *own = malloc(256), local[256];
    strata_memory_stats a = stats();
    test_ok(h, strata_alloc(h, 100, &p));
    test_ok(h, strata_alloc(h, 2 << 20, &q));
    test_error(h, strata_free(h, own), STRATA_ERROR_ARGUMENT, "strata_free", "not a live block");
    test_error(h, strata_free(h, (char *)(((uintptr_t)own + 127) & ~(uintptr_t)63)), STRATA_ERROR_ARGUMENT,
               "not a live block");
    test_error(h, strata_free(h, local), STRATA_ERROR_ARGUMENT, "not a live block");
    test_error(h, strata_free(h, (char *)p + 64), STRATA_ERROR_ARGUMENT, "not a live block");
    test_error(h, strata_free(h, (char *)p + 1), STRATA_ERROR_ARGUMENT, "not a live block");
    test_error(h, strata_free(h, (void *)64), STRATA_ERROR_ARGUMENT,
               "0x40"); /* nothing is mapped there, nothing is read */
    test_error(h, strata_free(h, (void *)(uintptr_t)0xffffffffffffffc0u), STRATA_ERROR_ARGUMENT,
               "not a live block");
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_free(h, q));
    test_error(h, strata_free(h, p), STRATA_ERROR_ARGUMENT,
               "freed twice"); /* the small one is malloc's again */
    test_error(h, strata_free(h, q), STRATA_ERROR_ARGUMENT, "freed twice"); /* the large one is cached */
    test_ok(h, strata_trim(h));
    test_error(h, strata_free(h, q), STRATA_ERROR_ARGUMENT, "freed twice"); /* and now unmapped */
    assert_true(stats().bytes_in_use == a.bytes_in_use);
    free(own);
}

static void many_blocks(void **state)
{
    (void)state;
    enum { N = 20000 };
    static void *p[N];
    test_rng r = test_rng_make(1);
    strata_memory_stats a = stats();
    for (int i = 0; i < N; i++) test_ok(h, strata_alloc(h, (size_t)test_int(&r, 0, 300), &p[i]));
    for (int i = N - 1; i > 0; i--) {
        int k = (int)test_int(&r, 0, i);
        void *keep = p[i];
        p[i] = p[k];
        p[k] = keep;
    }
    for (int i = 0; i < N; i++) test_ok(h, strata_free(h, p[i]));
    for (int i = 0; i < N; i += 100)
        test_error(h, strata_free(h, p[i]), STRATA_ERROR_ARGUMENT, "freed twice");
    strata_memory_stats b = stats();
    assert_true(b.bytes_in_use == a.bytes_in_use && b.allocations - a.allocations == N &&
                b.frees - a.frees == N);
}

static void *churn(void *arg)
{
    test_rng r = test_rng_make((uint64_t)(uintptr_t)arg);
    strata_handle *own;
    void *p[16] = {NULL};
    if (strata_create(&own, "cpu")) return (void *)1;
    void *bad = NULL;
    for (int i = 0; i < 3000 && !bad; i++) {
        int k = (int)test_int(&r, 0, 15);
        size_t n = test_chance(&r, 0.05) ? 1500000 : (size_t)test_int(&r, 1, 5000);
        if (p[k] && (*(char *)p[k] != k || strata_free(own, p[k]))) bad = (void *)2;
        if (strata_alloc(own, n, &p[k])) return (void *)3;
        *(char *)p[k] = (char)k;
        if (i % 500 == 0 && strata_trim(own)) bad = (void *)4;
    }
    for (int k = 0; k < 16; k++)
        if (strata_free(own, p[k])) bad = (void *)5;
    strata_destroy(own);
    return bad;
}

static void from_many_threads(void **state)
{
    (void)state;
    pthread_t t[4];
    strata_memory_stats a = stats();
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    assert_true(stats().bytes_in_use == a.bytes_in_use);
}

/* ---- a caller's allocator --------------------------------------------------------------------------------------------------------- */
typedef struct counter {
    size_t held, allocs, frees, fail_at, misaligned;
    bool wrong;
} counter;

static void *count_alloc(void *user, size_t bytes, size_t alignment)
{
    counter *c = user;
    void *p = NULL;
    if (++c->allocs == c->fail_at || bytes > (size_t)1 << 40) return NULL;
    if (posix_memalign(&p, alignment < 16 ? 16 : alignment, bytes + 16 + 64)) return NULL;
    c->held += bytes;
    return (char *)p + c->misaligned;
}
static void count_free(void *user, void *ptr, size_t bytes)
{
    counter *c = user;
    c->frees++;
    c->wrong |= bytes > c->held;
    c->held -= bytes;
    free((char *)ptr - c->misaligned);
}

static void callers_allocator(void **state)
{
    (void)state;
    counter c = {0};
    strata_allocator a = {count_alloc, count_free, &c};
    void *p, *q, *own;
    test_ok(h, strata_alloc(h, 500, &own)); /* from the pool, before */
    test_ok(h, strata_set_allocator(h, &a));
    strata_memory_stats before = stats();
    test_ok(h, strata_alloc(h, 1000, &p));
    test_ok(h, strata_alloc(h, 0, &q));
    assert_true(((uintptr_t)p & 63) == 0 && ((uintptr_t)q & 63) == 0);
    memset(p, 7, 1000);
    assert_true(c.allocs == 2 && c.held >= 1000);
    assert_true(stats().bytes_in_use - before.bytes_in_use == 1000);
    test_error(h, strata_set_allocator(h, NULL), STRATA_ERROR_STATE, "strata_set_allocator", "2 blocks",
               "not freed");
    test_error(h, strata_set_allocator(h, &a), STRATA_ERROR_STATE, "2 blocks");
    /* blocks of the pool still go to the pool, blocks of this handle to its allocator only, others' nowhere */
    strata_handle *other;
    test_ok(NULL, strata_create(&other, "cpu"));
    test_error(other, strata_free(other, p), STRATA_ERROR_ARGUMENT, "strata_free", "another handle");
    test_ok(h, strata_free(h, own));
    assert_true(c.frees == 0);
    test_error(h, strata_free(h, own), STRATA_ERROR_ARGUMENT, "freed twice");
    test_ok(h, strata_free(h, p));
    test_error(h, strata_free(h, p), STRATA_ERROR_ARGUMENT, "freed twice");
    test_ok(h, strata_free(h, q));
    assert_true(c.allocs == 2 && c.frees == 2 && c.held == 0 && !c.wrong);
    /* the workspace too */
    void *w = st_workspace(h, 100000);
    assert_non_null(w);
    assert_true(c.allocs == 3 && c.held >= 100000);
    assert_ptr_equal(st_workspace(h, 5000), w);
    assert_true(c.allocs == 3);
    test_ok(h, strata_set_allocator(h, NULL)); /* gives it back */
    assert_true(c.held == 0 && c.allocs == c.frees && !c.wrong);
    assert_non_null(st_workspace(h, 100000));
    assert_true(c.allocs == 3);
    strata_destroy(other);
}

static void allocator_that_fails(void **state)
{
    (void)state;
    counter c = {.fail_at = 1};
    strata_allocator a = {count_alloc, count_free, &c};
    void *p = &p;
    test_ok(h, strata_set_allocator(h, &a));
    test_error(h, strata_alloc(h, 77, &p), STRATA_ERROR_MEMORY, "strata_alloc", "77 bytes",
               "caller's allocator");
    assert_null(p);
    c.fail_at = 2; /* the room on top of the workspace is refused, its need is then met */
    assert_non_null(st_workspace(h, 10000));
    assert_true(c.held == 10000);
    test_ok(h, strata_trim(h));
    c.fail_at = 0;
    c.misaligned = 16; /* an allocator that does not keep its promise */
    test_error(h, strata_alloc(h, 77, &p), STRATA_ERROR_MEMORY, "multiple of 64");
    assert_null(st_workspace(h, 77));
    assert_true(c.held == 0 && !c.wrong);
    c.misaligned = 0;
    test_error(h, strata_alloc(h, SIZE_MAX, &p), STRATA_ERROR_MEMORY, "strata_alloc");
    test_error(h, strata_alloc(h, SIZE_MAX - 63, &p), STRATA_ERROR_MEMORY, "strata_alloc");
    test_ok(h, strata_set_allocator(h, NULL));
    a.alloc = NULL;
    test_error(h, strata_set_allocator(h, &a), STRATA_ERROR_ARGUMENT, "alloc is NULL", "both");
    a = (strata_allocator){count_alloc, NULL, &c};
    test_error(h, strata_set_allocator(h, &a), STRATA_ERROR_ARGUMENT, "free is NULL", "both");
}

static void destroyed_with_blocks(void **state)
{
    (void)state;
    counter c = {0};
    strata_allocator a = {count_alloc, count_free, &c};
    strata_handle *other;
    void *p;
    strata_memory_stats before = stats();
    test_ok(NULL, strata_create(&other, "cpu"));
    test_ok(other, strata_set_allocator(other, &a));
    test_ok(other, strata_alloc(other, 10, &p));
    assert_non_null(st_workspace(other, 10));
    strata_destroy(other); /* the workspace goes back; the block is its caller's business */
    assert_true(c.allocs == 2 && c.frees == 1);
    test_error(h, strata_free(h, p), STRATA_ERROR_ARGUMENT, "not a live block");
    assert_true(stats().bytes_in_use == before.bytes_in_use);
    count_free(&c, (char *)p - 64, 10 + 64);
    assert_true(c.held == 0 && !c.wrong);
}

/* ---- workspace ----------------------------------------------------------------------------------------------------------------------- */
static void workspace_grows(void **state)
{
    (void)state;
    assert_true(stats().workspace_bytes == 0);
    char *w = st_workspace(h, 100);
    assert_true(w && ((uintptr_t)w & 63) == 0);
    assert_true(stats().workspace_bytes >= 100 && stats().workspace_peak == 100);
    assert_ptr_equal(st_workspace(h, 60000), w); /* one granule */
    w = st_workspace(h, 1000000);
    memset(w, 1, 1000000);
    assert_ptr_equal(st_workspace(h, 1050000), w); /* the room on top */
    strata_memory_stats a = stats();
    for (int i = 0; i < 100; i++) assert_ptr_equal(st_workspace(h, (size_t)i * 10000), w);
    assert_true(stats().allocations == a.allocations);
    assert_true(stats().workspace_peak == 1050000);
    test_ok(h, strata_trim(h));
    assert_true(stats().workspace_bytes == 0 && stats().workspace_peak == 1050000);
    uint64_t in_use = stats().bytes_in_use;
    assert_null(st_workspace(h, SIZE_MAX));
    test_error(h, h->err.status, STRATA_ERROR_MEMORY, "18446744073709551615 bytes of workspace");
    assert_null(st_workspace(h, SIZE_MAX - 100)); /* the room on top may not wrap round */
    assert_null(st_workspace(h, SIZE_MAX / 9 * 8 + 100));
    assert_true(stats().workspace_bytes == 0 && stats().bytes_in_use == in_use &&
                stats().workspace_peak == 1050000);
}

static void workspace_limit(void **state)
{
    (void)state;
    test_ok(h, strata_set_workspace_limit(h, 1000));
    assert_non_null(st_workspace(h, 1000));
    assert_true(stats().workspace_bytes == 1000); /* no granule beyond the limit */
    assert_null(st_workspace(h, 1001));
    test_error(h, h->err.status, STRATA_ERROR_WORKSPACE, "1001 bytes", "limit is 1000", "try",
               "strata_set_workspace_limit(h, 1001)");
    test_ok(h, strata_set_workspace_limit(h, 500000));
    assert_non_null(st_workspace(h, 450000));
    assert_true(stats().workspace_bytes <= 500000);
    test_ok(h, strata_set_workspace_limit(h, 0));
    assert_true(stats().workspace_bytes == 0); /* given back at once */
    assert_null(st_workspace(h, 1));
    test_ok(h, strata_set_workspace_limit(h, SIZE_MAX));
    assert_non_null(st_workspace(h, 1));
}

static void callers_workspace(void **state)
{
    (void)state;
    char *own = test_guard(4096, true);
    assert_non_null(st_workspace(h, 100000));
    test_ok(h, strata_set_workspace(h, own, 4096));
    assert_true(stats().workspace_bytes == 0); /* the handle's is given back */
    assert_ptr_equal(st_workspace(h, 4096), own);
    assert_null(st_workspace(h, 4097));
    test_error(h, h->err.status, STRATA_ERROR_WORKSPACE, "caller's workspace", "4096", "4097", "try");
    test_ok(h, strata_trim(h));
    test_ok(h, strata_set_workspace_limit(h, 10)); /* is about the handle's own */
    assert_ptr_equal(st_workspace(h, 4096), own);
    test_error(h, strata_set_workspace(h, own + 8, 100), STRATA_ERROR_ARGUMENT, "strata_set_workspace", "64");
    test_error(h, strata_set_workspace(h, NULL, 100), STRATA_ERROR_ARGUMENT, "NULL", "100");
    assert_ptr_equal(st_workspace(h, 4096), own); /* a refused call changes nothing */
    test_ok(h, strata_set_workspace_limit(h, SIZE_MAX));
    test_ok(h, strata_set_workspace(h, NULL, 0));
    char *w = st_workspace(h, 100);
    assert_true(w && w != own);
    assert_true(test_guard_intact(own) && own[0] == (char)0xff); /* asking writes nothing */
    test_guard_free(own);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(sizes_and_alignment),  T(what_gpus_have),        T(statistics),
        T(the_cache_is_bounded), T(sizes_that_cannot_be),  T(wrong_pointers),
        T(many_blocks),          T(from_many_threads),     T(callers_allocator),
        T(allocator_that_fails), T(destroyed_with_blocks), T(workspace_grows),
        T(workspace_limit),      T(callers_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
