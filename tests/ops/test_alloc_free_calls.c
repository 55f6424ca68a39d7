/* SPDX-License-Identifier: Apache-2.0 */
/* test_alloc_free_calls.c - after the first call of a shape, no call asks anybody for memory: malloc and its kin and mmap are counted by
 * functions of this program that stand before the C library's, the library's pool by its statistics, the plan cache by its misses. */
#include "support.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <strata.h>
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

static strata_handle *h;

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

enum { FLOATS = 600 * 600 };
static float a[FLOATS], b[FLOATS], c[FLOATS], d[FLOATS];
static double da[300 * 300], db[300 * 300], dc[300 * 300];
static int32_t labels[512], arg[FLOATS];

static strata_tensor f32(float *p, int64_t m, int64_t n)
{
    return strata_matrix(p, STRATA_F32, m, n, STRATA_ROW_MAJOR, 0);
}

/* Calls f a few times first, after work that is worth starting the team for (which happens once a process), then counts. */
typedef strata_status (*call_fn)(int variant);
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

static strata_status gemm(int v)
{
    static const int64_t size[][3] = {{8, 8, 8},       {64, 64, 64},    {1, 500, 500}, {500, 3, 500},
                                      {300, 300, 300}, {513, 511, 257}, {30, 600, 2}};
    int64_t m = size[v][0], n = size[v][1], k = size[v][2];
    return strata_gemm(h, strata_real(1.5), f32(a, m, k), strata_transpose(f32(b, n, k)), strata_real(0.5),
                       f32(c, m, n), NULL);
}
static strata_status gemm_f64(int v)
{
    int64_t n = v ? 300 : 20;
    return strata_gemm(h, STRATA_ONE, strata_matrix(da, STRATA_F64, n, n, STRATA_COL_MAJOR, 0),
                       strata_matrix(db, STRATA_F64, n, n, STRATA_ROW_MAJOR, 0), STRATA_ZERO,
                       strata_matrix(dc, STRATA_F64, n, n, STRATA_COL_MAJOR, 0), NULL);
}
static strata_status gemm_batch(int v)
{
    int64_t n = v ? 65 : 7;
    return strata_gemm(h, STRATA_ONE, strata_batch(f32(a, n, n), 20, 0), f32(b, n, n), STRATA_ZERO,
                       strata_batch(f32(c, n, n), 20, 0), NULL);
}
static strata_status gemm_epilogue(int v)
{
    int64_t n = v ? 200 : 24;
    strata_operand operands[] = {
        {"bias", strata_vector(d, STRATA_F32, n, 1)}, {"r", f32(d, n, n)}, {NULL, {0}}};
    strata_gemm_options o = {.epilogue = "gelu(acc + bias[n]) + r", .operands = operands};
    return strata_gemm(h, STRATA_ONE, f32(a, n, n), f32(b, n, n), STRATA_ZERO, f32(c, n, n), &o);
}
static strata_status gemm_no_terms(int v)
{
    return strata_gemm(h, v ? STRATA_ONE : STRATA_ZERO, f32(a, 50, v ? 0 : 9), f32(b, v ? 0 : 9, 50),
                       strata_real(0.5), f32(c, 50, 50), NULL);
}

static strata_tensor image(float *p, int v, int64_t n, int64_t ch, int64_t y, int64_t x)
{
    return (v & 1 ? strata_nhwc : strata_nchw)(p, STRATA_F32, n, ch, y, x);
}
static strata_status conv_forward(int v)
{
    strata_conv o = {
        .pad = {1, 1},
        .epilogue = v & 2 ? "relu(acc + bias[n])" : NULL,
        .operands =
            v & 2 ? (strata_operand[]){{"bias", strata_vector(d, STRATA_F32, 16, 1)}, {NULL, {0}}} : NULL};
    return strata_conv_forward(h, &o, image(a, v, 4, 8, 20, 20), image(b, v, 16, 8, 3, 3),
                               image(c, v, 4, 16, 20, 20));
}
static strata_status conv_data(int v)
{
    strata_conv o = {.pad = {1, 1}};
    return strata_conv_backward_data(h, &o, image(a, v, 4, 16, 20, 20), image(b, v, 16, 8, 3, 3),
                                     image(c, v, 4, 8, 20, 20));
}
static strata_status conv_weights(int v)
{
    strata_conv o = {.pad = {1, 1}};
    return strata_conv_backward_weights(h, &o, image(a, v, 4, 8, 20, 20), image(b, v, 4, 16, 20, 20),
                                        image(c, v, 16, 8, 3, 3));
}

static strata_status fused_map(int v)
{
    int64_t n = v ? 500 : 10;
    return strata_fused(h, "y = gelu(x * 0.5 + z) + w[n]",
                        (strata_operand[]){{"x", f32(a, n, n)},
                                           {"z", f32(b, n, n)},
                                           {"w", strata_vector(d, STRATA_F32, n, 1)},
                                           {"y", f32(c, n, n)},
                                           {NULL, {0}}},
                        NULL);
}
static strata_status fused_rows(int v)
{
    int64_t n = v ? 500 : 10;
    return strata_fused(
        h, "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w[n]",
        (strata_operand[]){
            {"x", f32(a, n, n)}, {"w", strata_vector(d, STRATA_F32, n, 1)}, {"y", f32(c, n, n)}, {NULL, {0}}},
        NULL);
}
static strata_status fused_columns(int v)
{
    int64_t n = v ? 500 : 10;
    return strata_fused(h, "s = sum(x)",
                        (strata_operand[]){{"x", f32(a, n, n)}, {"s", f32(c, 1, n)}, {NULL, {0}}},
                        &(strata_fused_options){.axes = 1});
}

static strata_status batch_norm(int v)
{
    strata_batch_norm_tensors t = {.x = image(a, v, 8, 16, 12, 12),
                                   .y = image(c, v, 8, 16, 12, 12),
                                   .scale = strata_vector(d, STRATA_F32, 16, 1),
                                   .shift = strata_vector(d + 16, STRATA_F32, 16, 1),
                                   .running_mean = strata_vector(d + 32, STRATA_F32, 16, 1),
                                   .running_var = strata_vector(d + 48, STRATA_F32, 16, 1),
                                   .save_mean = strata_vector(d + 64, STRATA_F32, 16, 1),
                                   .save_inv_std = strata_vector(d + 80, STRATA_F32, 16, 1)};
    strata_status s =
        v & 2 ? strata_batch_norm_inference(h, NULL, &t) : strata_batch_norm_training(h, NULL, &t);
    if (s || v & 2) return s;
    t.dy = image(b, v, 8, 16, 12, 12);
    t.dx = t.y;
    t.dscale = strata_vector(d + 96, STRATA_F32, 16, 1);
    t.dshift = strata_vector(d + 112, STRATA_F32, 16, 1);
    return strata_batch_norm_backward(h, NULL, &t);
}
static strata_status pool(int v)
{
    strata_pool o = {.kind = v & 2 ? STRATA_POOL_AVERAGE : STRATA_POOL_MAX, .window = {2, 2}};
    strata_tensor x = image(a, v, 8, 16, 12, 12), y = image(b, v, 8, 16, 6, 6), none = {0};
    strata_tensor where = v & 2 ? none : (v & 1 ? strata_nhwc : strata_nchw)(arg, STRATA_I32, 8, 16, 6, 6);
    strata_status s = strata_pool_forward(h, &o, x, y, where);
    return s ? s : strata_pool_backward(h, &o, x, y, where, image(c, v, 8, 16, 12, 12));
}
static strata_status softmax(int v)
{
    int64_t n = v & 1 ? 500 : 10;
    strata_softmax o = {.log = v & 2};
    strata_status s = strata_softmax_forward(h, &o, f32(a, n, n), f32(b, n, n));
    return s ? s : strata_softmax_backward(h, &o, f32(b, n, n), f32(a, n, n), f32(c, n, n));
}
static strata_status cross_entropy(int v)
{
    int64_t n = v ? 300 : 10;
    strata_tensor l = strata_vector(labels, STRATA_I32, n, 1);
    strata_status s =
        strata_cross_entropy_forward(h, NULL, f32(a, n, 10), l, strata_vector(d, STRATA_F32, n, 1));
    return s ? s
             : strata_cross_entropy_backward(h, NULL, f32(a, n, 10), l, strata_point(d, STRATA_F32),
                                             f32(c, n, 10));
}
static strata_status activation(int v)
{
    strata_activation o = {.kind = (strata_activation_kind)(v % STRATA_ACTIVATION_COUNT)};
    strata_status s = strata_activation_forward(h, &o, f32(a, 200, 200), f32(b, 200, 200));
    return s ? s : strata_activation_backward(h, &o, f32(a, 200, 200), f32(b, 200, 200), f32(c, 200, 200));
}
static strata_status copy_and_fill(int v)
{
    int64_t n = v ? 500 : 10;
    strata_status s = strata_fill(h, f32(a, n, n), STRATA_ONE);
    return s ? s : strata_copy(h, strata_transpose(f32(a, n, n)), f32(b, n, n));
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

static void products(void **state)
{
    (void)state;
    check("gemm", gemm, 7);
    check("gemm f64", gemm_f64, 2);
    check("gemm batched", gemm_batch, 2);
    check("gemm with an epilogue", gemm_epilogue, 2);
    check("gemm without terms", gemm_no_terms, 2);
    test_ok(h, strata_gemm_plan(h, STRATA_ONE, f32(a, 300, 300), f32(b, 300, 300), STRATA_ZERO,
                                f32(c, 300, 300), NULL, NULL, &plan));
    check("gemm by plan", by_plan, 1);
    strata_plan_destroy(plan);
    check("gemm refused", refused, 1);
}
static void convolutions(void **state)
{
    (void)state;
    check("convolution", conv_forward, 4);
    check("convolution, gradient of the data", conv_data, 2);
    check("convolution, gradient of the weights", conv_weights, 2);
}
static void programs(void **state)
{
    (void)state;
    check("fused map", fused_map, 2);
    check("fused rows", fused_rows, 2);
    check("fused columns", fused_columns, 2);
    check("copy and fill", copy_and_fill, 2);
}
static void layers(void **state)
{
    (void)state;
    check("batch norm", batch_norm, 4);
    check("pooling", pool, 4);
    check("softmax", softmax, 4);
    check("cross-entropy", cross_entropy, 2);
    check("activations", activation, STRATA_ACTIVATION_COUNT);
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

int main(void)
{
    if (strata_create(&h, "cpu")) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_counters_count),
                                       cmocka_unit_test(products),
                                       cmocka_unit_test(convolutions),
                                       cmocka_unit_test(programs),
                                       cmocka_unit_test(layers),
                                       cmocka_unit_test(callers_allocator)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed;
}
