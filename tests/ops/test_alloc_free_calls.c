/* SPDX-License-Identifier: Apache-2.0 */
/* test_alloc_free_calls.c - after the first call of a shape, no call asks anybody for memory: malloc and its kin and mmap are counted by
 * functions of this program that stand before the C library's, the library's pool by its statistics, the plan cache by its misses. */
#include "calls.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || TEST_UNDER_TSAN
#    define COUNTING 0 /* the sanitizers own malloc; the pool's statistics remain */
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define COUNTING 0
#    endif
#endif
#ifndef COUNTING
#    define COUNTING 1
#endif

static atomic_int asked;
static atomic_bool counting;

#if COUNTING
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);
#    pragma GCC visibility push(default) /* seen by the C library too */
static void count(void)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed)) atomic_fetch_add(&asked, 1);
}
void *malloc(size_t n)
{
    count();
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    count();
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    count();
    return __libc_realloc(p, n);
}
void *aligned_alloc(size_t align, size_t n)
{
    count();
    return __libc_memalign(align, n);
}
int posix_memalign(void **p, size_t align, size_t n)
{
    count();
    *p = __libc_memalign(align, n);
    return *p ? 0 : ENOMEM;
}
void free(void *p) { __libc_free(p); }
void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
    count();
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, off);
}
#    pragma GCC visibility pop
#endif

static void the_counters_count(void **state)
{
    (void)state;
    if (!COUNTING) skip();
    atomic_store(&asked, 0);
    atomic_store(&counting, true);
    void *volatile p = malloc(10);
    void *volatile q = strdup("x"); /* from inside the C library too */
    void *m = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    atomic_store(&counting, false);
    free(p);
    free(q);
    munmap(m, 4096);
    assert_int_equal(atomic_load(&asked), 3);
    void *block;
    atomic_store(&asked, 0);
    atomic_store(&counting, true);
    strata_status s = strata_alloc(h, 3 << 20, &block); /* and from inside the library */
    atomic_store(&counting, false);
    test_ok(h, s);
    assert_true(atomic_load(&asked) >= 1);
    test_ok(h, strata_free(h, block));
}

/* Calls f a few times first, after work that is worth starting the team for (which happens once a process), then counts. */
static void check(const char *name, call_fn f, int variants)
{
    for (int threads = 1; threads <= 2; threads++) {
        strata_memory_stats m0, m1;
        strata_plan_cache_stats c0, c1;
        test_problem("%s with %d threads", name, threads);
        test_ok(h, strata_set_threads(h, threads));
        test_ok(h, strata_gemm(h, STRATA_ONE, f32(a, 600, 600), f32(b, 600, 600), STRATA_ZERO,
                               f32(c, 600, 600), NULL));
        for (int warm = 0; warm < 2; warm++)
            for (int v = 0; v < variants; v++) test_ok(h, f(v));
        test_ok(h, strata_get_memory_stats(h, &m0));
        test_ok(h, strata_get_plan_cache_stats(h, &c0));
        atomic_store(&asked, 0);
        atomic_store(&counting, true);
        strata_status s = STRATA_OK;
        for (int i = 0; i < 6 && !s; i++)
            for (int v = 0; v < variants && !s; v++) s = f(v); /* shapes in turn: no growing back and forth */
        atomic_store(&counting, false);
        test_ok(h, s);
        test_ok(h, strata_get_memory_stats(h, &m1));
        test_ok(h, strata_get_plan_cache_stats(h, &c1));
        test_check(atomic_load(&asked) == 0, "asked for memory %d times in %d calls", atomic_load(&asked),
                   6 * variants);
        test_check(m0.allocations == m1.allocations, "%llu blocks of the pool",
                   (unsigned long long)(m1.allocations - m0.allocations));
        test_check(c0.misses == c1.misses, "%llu plans were made",
                   (unsigned long long)(c1.misses - c0.misses));
    }
}

static strata_plan *plan;
static strata_status by_plan(int v)
{
    (void)v;
    return strata_plan_run(h, plan, (void *[]){a, b, c}, NULL);
}
static strata_status refused(int v)
{ /* a mistake in a loop may not grow anything either */
    (void)v;
    return strata_gemm(h, STRATA_ONE, f32(a, 3, 4), f32(b, 5, 6), STRATA_ZERO, f32(c, 3, 6), NULL) ==
                   STRATA_ERROR_SHAPE
               ? STRATA_OK
               : STRATA_ERROR_INTERNAL;
}

static void every_operator(void **state)
{
    (void)state;
    fill_arrays();
    for (int i = 0; i < TEST_COUNT(calls); i++) check(calls[i].name, calls[i].call, calls[i].variants);
}

static void plans_and_mistakes(void **state)
{
    (void)state;
    test_ok(h, strata_gemm_plan(h, STRATA_ONE, f32(a, 300, 300), f32(b, 300, 300), STRATA_ZERO,
                                f32(c, 300, 300), NULL, NULL, &plan));
    check("gemm by plan", by_plan, 1);
    strata_plan_destroy(plan);
    check("gemm refused", refused, 1);
}

/* A caller's allocator is asked for the workspace once, and for nothing more. */
static int given;
static void *give(void *user, size_t bytes, size_t alignment)
{
    void *p = NULL;
    (void)user;
    given++;
    return posix_memalign(&p, alignment, bytes) ? NULL : p;
}
static void take(void *user, void *p, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(p);
}

static void callers_allocator(void **state)
{
    (void)state;
    strata_allocator own = {give, take, NULL};
    test_ok(h, strata_set_allocator(h, &own));
    for (int v = 0; v < 7; v++) test_ok(h, gemm(v));
    for (int v = 0; v < 4; v++) test_ok(h, conv_forward(v));
    int before = given;
    for (int v = 0; v < 7; v++) test_ok(h, gemm(v));
    for (int v = 0; v < 4; v++) test_ok(h, conv_forward(v));
    assert_int_equal(given, before);
    assert_true(before >= 1);
    test_ok(h, strata_set_allocator(h, NULL));
}

/* "0 always works": every operator has a way that needs no workspace but some scratch, and takes it although its plan was cached before. */
static void without_workspace(void **state)
{
    (void)state;
    strata_memory_stats m;
    test_ok(h, strata_trim(h));
    test_ok(h, strata_set_workspace_limit(h, 0));
    fill_arrays();
    for (int i = 0; i < TEST_COUNT(calls); i++)
        for (int v = 0; v < calls[i].variants; v++) {
            test_problem("%s, variant %d, workspace limit 0", calls[i].name, v);
            test_ok(h, calls[i].call(v));
            test_ok(h, strata_get_memory_stats(h, &m));
            test_check(m.workspace_bytes < 1 << 20, "%llu bytes of scratch",
                       (unsigned long long)m.workspace_bytes);
        }
    test_ok(h, strata_set_workspace_limit(h, SIZE_MAX));
}

int main(void)
{
    if (strata_create(&h, "cpu")) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_counters_count), cmocka_unit_test(every_operator),
                                       cmocka_unit_test(plans_and_mistakes),
                                       cmocka_unit_test(callers_allocator),
                                       cmocka_unit_test(without_workspace)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed;
}
