/* SPDX-License-Identifier: Apache-2.0 */
/* test_runtime.c - devices, memory, streams, graphs, copies and faults on the device that is here, and what they cost on the host. Needs a GPU. */
#include "driver/driver.h"
#include "runtime/gpu.h"
#include "support.h"
#include <pthread.h>
#include <strata.h>
#include <sys/wait.h>
#include <unistd.h>

static strata_handle *h;
static const char *self;
static int brief;

static void device(void **state)
{
    (void)state;
    strata_device_info d;
    test_ok(NULL, strata_get_device_info("cuda:0", &d));
    printf("%s, %s, %d multiprocessors, %.0f MHz, %.0f GB/s, L2 %.0f MiB, %.1f GB, CUDA %d\n", d.name, d.isa,
           d.multiprocessors, d.clock_mhz, d.memory_gbs, (double)d.l2 / (1 << 20), (double)d.memory * 1e-9,
           d.driver_version);
    assert_true(d.compute_capability >= 80 && d.multiprocessors > 0 && d.clock_mhz > 500 &&
                d.memory_gbs > 100);
    assert_true(d.l2 > 1 << 20 && d.memory > (int64_t)1 << 30 && d.driver_version >= 12000);
    assert_true(h->gpu->smem_block >= 99 << 10 && h->gpu->regs_sm == 65536 && h->gpu->warps_sm >= 32);
    strata_handle *a;
    test_ok(NULL, strata_create(&a, "auto"));
    assert_string_equal(strata_handle_device(a), "cuda:0");
    strata_destroy(a);
    test_error(NULL, strata_create(&a, "cuda:63"), STRATA_ERROR_DEVICE, "cuda:63");
}

static void reach(void **state)
{
    (void)state;
    void *p, *pinned, *heap = malloc(100);
    test_ok(h, strata_alloc(h, 5 << 20, &p));
    test_ok(h, strata_alloc_host(h, 4096, &pinned));
    assert_true(st_gpu_reaches(h, p) && st_gpu_reaches(h, (char *)p + (5 << 20) - 1));
    assert_true(st_gpu_reaches(h, pinned));
    assert_false(st_gpu_reaches(h, heap));
    assert_false(st_gpu_reaches(h, &p));
    assert_false(st_gpu_reaches(h, "text"));
    const uint64_t t0 = st_now_ns();
    for (int i = 0; i < 100000; i++) assert_true(st_gpu_reaches(h, (char *)p + i));
    const uint64_t t1 = st_now_ns();
    for (int i = 0; i < 1000; i++) (void)st_gpu_reaches(h, (char *)heap + i % 100);
    printf("does the device reach it: %.1f ns for its own memory, %.0f ns for the host's\n",
           (double)(t1 - t0) / 1e5, (double)(st_now_ns() - t1) / 1e3);
    double re, im, v = 42.5;
    test_ok(h, st_gpu_upload(h, p, &v, 8));
    assert_true(st_gpu_scalar_value(h, "f", "a", strata_scalar_at(STRATA_F64, p), &re, &im) && re == 42.5);
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_free_host(h, pinned));
    test_error(h, strata_free_host(h, heap), STRATA_ERROR_DEVICE, "strata_free_host");
    test_ok(h, strata_synchronize(h)); /* that error does not stay */
    free(heap);
}

static void transfers(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 65536, 65537, (4 << 20) + 1, (37 << 20) + 3};
    for (int i = 0; i < TEST_COUNT(sizes); i++) {
        size_t n = sizes[i];
        unsigned char *a = malloc(n), *b = calloc(1, n + 1);
        void *p;
        for (size_t k = 0; k < n; k++) a[k] = (unsigned char)(k * 2654435761u >> 13);
        b[n] = 77;
        test_ok(h, strata_alloc(h, n, &p));
        test_ok(h, st_gpu_upload(h, p, a, n));
        memset(a, 1, n); /* may be reused at return */
        test_ok(h, st_gpu_download(h, b, p, n));
        for (size_t k = 0; k < n; k++) assert_true(b[k] == (unsigned char)(k * 2654435761u >> 13));
        assert_true(b[n] == 77);
        test_ok(h, strata_free(h, p));
        free(a);
        free(b);
    }
    const size_t n = (size_t)256 << 20;
    void *p, *pinned;
    char *plain = malloc(n);
    memset(plain, 1, n);
    test_ok(h, strata_alloc(h, n, &p));
    test_ok(h, strata_alloc_host(h, n, &pinned));
    memset(pinned, 2, n);
    for (int kind = 0; kind < 2; kind++) {
        void *host = kind ? pinned : plain;
        double best[2] = {1e9, 1e9};
        for (int i = 0; i < 3; i++) {
            uint64_t t0 = st_now_ns();
            test_ok(h, st_gpu_upload(h, p, host, n));
            test_ok(h, strata_synchronize(h));
            uint64_t t1 = st_now_ns();
            test_ok(h, st_gpu_download(h, host, p, n));
            uint64_t t2 = st_now_ns();
            if ((double)(t1 - t0) < best[0]) best[0] = (double)(t1 - t0);
            if ((double)(t2 - t1) < best[1]) best[1] = (double)(t2 - t1);
        }
        printf("%s host memory: %.1f GB/s up, %.1f GB/s down\n", kind ? "page-locked" : "pageable",
               (double)n / best[0], (double)n / best[1]);
    }
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_free_host(h, pinned));
    free(plain);
}

/* Every pair of places and any strides, against elements copied one by one. */
static void copies(void **state)
{
    (void)state;
    static const strata_type types[] = {STRATA_U8, STRATA_F16, STRATA_F32, STRATA_F64, STRATA_C128};
    test_rng r = test_rng_make(21);
    for (int round = 0; round < test_rounds(brief ? 60 : 500); round++) {
        const int rank = (int)test_int(&r, 0, 4);
        const bool big = rank == 2 && test_chance(&r, 0.4), from = test_chance(&r, 0.8),
                   to = test_chance(&r, 0.8);
        int64_t dim[4];
        for (int d = 0; d < rank; d++) dim[d] = test_int(&r, 1, big ? 200 : 9);
        strata_type type = types[test_int(&r, 0, TEST_COUNT(types) - 1)];
        const size_t size = strata_type_bits(type) / 8;
        test_problem("copy %s rank %d %lldx%lld from %s to %s round %d", strata_type_name(type), rank,
                     rank ? (long long)dim[0] : 1, rank > 1 ? (long long)dim[1] : 1, from ? "device" : "host",
                     to ? "device" : "host", round);
        const unsigned how = test_chance(&r, 0.3) ? TEST_PACKED
                             : big                ? TEST_PERMUTED | TEST_PADDED
                                                  : TEST_ANY;
        test_array s = test_array_make(&r, type, rank, dim, how),
                   d = test_array_make(&r, type, rank, dim, test_chance(&r, 0.3) ? TEST_PACKED : how);
        int64_t i[STRATA_MAX_RANK] = {0};
        do
            for (size_t k = 0; k < size; k++) test_at(&s.t, i)[k] = (char)test_int(&r, 0, 254);
        while (test_next(&s.t, i));
        strata_tensor ts = s.t, td = d.t;
        char *ps = NULL, *pd = NULL;
        if (from) {
            test_ok(h, strata_alloc(h, s.bytes, (void **)&ps));
            test_ok(h, st_gpu_upload(h, ps, s.base, s.bytes));
            ts.data = ps + ((unsigned char *)s.t.data - s.base);
        }
        if (to) {
            test_ok(h, strata_alloc(h, d.bytes, (void **)&pd));
            test_ok(h, st_gpu_upload(h, pd, d.base, d.bytes));
            td.data = pd + ((unsigned char *)d.t.data - d.base);
        }
        test_ok(h, strata_copy(h, ts, td));
        if (to) test_ok(h, st_gpu_download(h, d.base, pd, d.bytes));
        memset(i, 0, sizeof i);
        do test_check(!memcmp(test_at(&d.t, i), test_at(&s.t, i), size), "element");
        while (test_next(&s.t, i));
        test_array_intact(&d);
        test_ok(h, strata_free(h, ps));
        test_ok(h, strata_free(h, pd));
        test_array_free(&s);
        test_array_free(&d);
    }
}

static double timed(strata_status (*f)(void *), void *arg, int calls)
{
    strata_event *a, *b;
    double ms, best = 1e9;
    test_ok(h, strata_event_create(h, &a));
    test_ok(h, strata_event_create(h, &b));
    for (int i = 0; i < 4; i++) {
        test_ok(h, strata_event_record(h, a));
        for (int k = 0; k < calls; k++) assert_int_equal(f(arg), STRATA_OK);
        test_ok(h, strata_event_record(h, b));
        test_ok(NULL, strata_event_elapsed(a, b, &ms));
        if (ms < best) best = ms;
    }
    test_ok(NULL, strata_event_destroy(a));
    test_ok(NULL, strata_event_destroy(b));
    return best * 1e-3 / calls;
}
typedef struct pair {
    strata_tensor a, b;
} pair;
static strata_status do_copy(void *arg) { return strata_copy(h, ((pair *)arg)->a, ((pair *)arg)->b); }
static strata_status do_fill(void *arg) { return strata_fill(h, ((pair *)arg)->a, STRATA_ONE); }

static void bandwidth(void **state)
{
    (void)state;
    const int64_t n = 8192;
    const double bytes = (double)(n * n * 4);
    void *p, *q;
    test_ok(h, strata_alloc(h, (size_t)bytes, &p));
    test_ok(h, strata_alloc(h, (size_t)bytes, &q));
    strata_tensor a = strata_matrix(p, STRATA_F32, n, n, STRATA_ROW_MAJOR, 0),
                  b = strata_matrix(q, STRATA_F32, n, n, STRATA_ROW_MAJOR, 0),
                  t = strata_matrix(q, STRATA_F32, n, n, STRATA_COL_MAJOR, 0);
    pair plain = {a, b}, turned = {a, t},
         part = {strata_slice(a, 1, 0, n - 8, 1), strata_slice(b, 1, 8, n - 8, 1)},
         odd = {strata_slice(a, 1, 1, n - 7, 1), strata_slice(b, 1, 4, n - 7, 1)};
    printf("8192x8192 f32, GB/s read and written: plain %.0f, rows %.0f, rows off 16 bytes %.0f, transposed "
           "%.0f; filled %.0f, rows filled %.0f\n",
           2e-9 * bytes / timed(do_copy, &plain, 10), 2e-9 * bytes / timed(do_copy, &part, 10),
           2e-9 * bytes / timed(do_copy, &odd, 10), 2e-9 * bytes / timed(do_copy, &turned, 10),
           1e-9 * bytes / timed(do_fill, &plain, 10), 1e-9 * bytes / timed(do_fill, &part, 10));
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_free(h, q));
}

static void host_costs(void **state)
{
    (void)state;
    const st_gpu_kernel *k;
    const st_gpu_spec spec = {
        .id = "copy_b4", .source = "copy.cu", .entry = "st_copy", .option = {"-DESIZE=4"}};
    test_ok(h, st_gpu_kernel_get(h, &spec, &k));
    char *d = NULL, walk[256] = {0};
    long long count = 0;
    void *args[] = {&d, &d, walk, &count};
    st_gpu_launch l = {.kernel = k, .grid = {1}, .block = {256}, .args = args}, big = l;
    big.smem = 100 << 10;
    big.overlap = true;
    big.cluster[0] = 2;
    big.grid[0] = 2;
    double best[4] = {1e9, 1e9, 1e9, 1e9}, bare = 1e9;
    st_err e = {0};
    const st_libcuda *cu = st_libcuda_open(&e);
    const st_cu_launch c0 = {.grid = {1, 1, 1}, .block = {256, 1, 1}};
    for (int i = 0; i < 20; i++) {
        test_ok(h, strata_synchronize(h));
        uint64_t t0 = st_now_ns();
        for (int c = 0; c < 200; c++) assert_int_equal(cu->launch_kernel(&c0, k->function, args, NULL), 0);
        double ns = (double)(st_now_ns() - t0) / 200;
        if (ns < bare) bare = ns;
    }
    for (int i = 0; i < 20; i++)
        for (int kind = 0; kind < 2; kind++) {
            if (kind && h->gpu->cc < 90) continue;
            test_ok(h, strata_synchronize(h));
            uint64_t t0 = st_now_ns();
            for (int c = 0; c < 200; c++) assert_int_equal(st_gpu_run(h, kind ? &big : &l), STRATA_OK);
            double ns = (double)(st_now_ns() - t0) / 200;
            if (ns < best[kind]) best[kind] = ns;
        }
    test_ok(h, strata_synchronize(h));
    void *p;
    for (int i = 0; i < 200; i++) {
        uint64_t t0 = st_now_ns();
        test_ok(h, strata_alloc(h, 1 << 20, &p));
        uint64_t t1 = st_now_ns();
        test_ok(h, strata_free(h, p));
        uint64_t t2 = st_now_ns();
        if ((double)(t1 - t0) < best[2]) best[2] = (double)(t1 - t0);
        if ((double)(t2 - t1) < best[3]) best[3] = (double)(t2 - t1);
    }
    printf("host: a launch %.2f us (the driver alone %.2f us), with cluster, shared memory and overlap %.2f "
           "us, strata_alloc %.2f us, "
           "strata_free %.2f us\n",
           best[0] * 1e-3, bare * 1e-3, best[1] * 1e-3, best[2] * 1e-3, best[3] * 1e-3);
    test_check(best[0] < bare + 2000, "%g ns a launch, %g by the driver alone", best[0], bare);
    assert_true(st_gpu_occupancy(h, k, 256, 0) >= 1);
    assert_int_equal(st_gpu_occupancy(h, k, 256, 1 << 20), 0);
    if (h->gpu->cc >= 90) assert_true(st_gpu_clusters(h, &big) >= 1);
    test_ok(h, strata_synchronize(h));
}

/* Memory freed while a long copy still reads it, taken and written by another stream: the copy has what was there. */
static void order_of_streams(void **state)
{
    (void)state;
    strata_stream *s[2];
    const size_t n = (size_t)512 << 20;
    void *keep;
    test_ok(h, strata_stream_create(h, &s[0]));
    test_ok(h, strata_stream_create(h, &s[1]));
    test_ok(h, strata_alloc(h, n, &keep));
    for (int round = 0; round < 6; round++) {
        void *p, *q;
        test_ok(h, strata_set_stream(h, s[round & 1]));
        test_ok(h, strata_alloc(h, n, &p));
        test_ok(h, st_gpu_set(h, p, 10 + round, n));
        for (int i = 0; i < 5; i++)
            test_ok(h, strata_copy(h, strata_vector(p, STRATA_U8, (int64_t)n, 1),
                                   strata_vector(keep, STRATA_U8, (int64_t)n, 1)));
        test_ok(h, strata_free(h, p));
        test_ok(h, strata_set_stream(h, s[~round & 1]));
        test_ok(h, strata_alloc(h, n, &q));
        assert_ptr_equal(p, q);
        test_ok(h, st_gpu_set(h, q, 99, n));
        test_ok(h, strata_synchronize(h));
        test_ok(h, strata_set_stream(h, s[round & 1]));
        unsigned char end[64];
        test_ok(h, st_gpu_download(h, end, (char *)keep + n - 64, 64));
        for (int i = 0; i < 64; i++) assert_int_equal(end[i], 10 + round);
        test_ok(h, strata_free(h, q));
    }
    test_ok(h, strata_set_stream(h, NULL));
    test_ok(h, strata_free(h, keep));
    for (int i = 0; i < 2; i++) test_ok(NULL, strata_stream_destroy(s[i]));
    test_ok(h, strata_trim(h));
    strata_memory_stats m;
    test_ok(h, strata_get_memory_stats(h, &m));
    assert_true(m.bytes_in_use == 0);
}

static void graphs(void **state)
{
    (void)state;
    enum { N = 1000 };
    float host[N], *p, *q;
    strata_graph *g;
    test_ok(h, strata_alloc(h, 4 * N, (void **)&p));
    test_ok(h, strata_alloc(h, 4 * N, (void **)&q));
    strata_tensor a = strata_vector(p, STRATA_F32, N, 1), b = strata_vector(q, STRATA_F32, N, 1);
    test_ok(h, strata_fill(h, strata_slice(a, 0, 0, N / 2, 2),
                           STRATA_ZERO)); /* the kernel is loaded before the capture */
    for (int own = 0; own < 2; own++) {
        strata_stream *s = NULL;
        if (own) {
            test_ok(h, strata_stream_create(h, &s));
            test_ok(h, strata_set_stream(h, s));
        }
        test_ok(h, strata_fill(h, a, STRATA_ZERO));
        test_ok(h, strata_graph_begin(h));
        void *x;
        test_error(h, strata_alloc(h, 100, &x), STRATA_ERROR_STATE, "captured");
        test_error(h, strata_synchronize(h), STRATA_ERROR_STATE, "captured");
        test_error(h, strata_copy(h, a, strata_vector(host, STRATA_F32, N, 1)), STRATA_ERROR_STATE,
                   "captured");
        char *w = st_workspace(h, 100000);
        assert_non_null(w);
        test_ok(h, st_gpu_set(h, w, 1, 100000));
        test_ok(h, strata_copy(h, a, b));
        test_ok(h, strata_fill(h, strata_slice(a, 0, 0, N / 2, 2), strata_real(7)));
        test_ok(h, strata_graph_end(h, &g));
        test_ok(h, strata_copy(h, a, strata_vector(host, STRATA_F32, N, 1)));
        assert_true(host[0] == 0); /* recorded, not run */
        test_ok(h, strata_fill(h, a, strata_real(3)));
        for (int i = 0; i < 3; i++) test_ok(h, strata_graph_launch(h, g));
        test_ok(h, strata_copy(h, a, strata_vector(host, STRATA_F32, N, 1)));
        for (int i = 0; i < N; i++) assert_true(host[i] == (i % 2 ? 3 : 7));
        test_ok(NULL, strata_graph_destroy(g));
        test_ok(h, strata_set_stream(h, NULL));
        test_ok(NULL, strata_stream_destroy(s));
    }
    /* a caller's own capture of its own stream, in the strictest mode, with workspace as nodes of the graph */
    st_err e = {0};
    const st_libcuda *cu = st_libcuda_open(&e);
    st_cu_stream native;
    st_cu_graph graph;
    st_cu_graphexec exec;
    strata_stream *s;
    assert_int_equal(cu->stream_create(&native, ST_CU_STREAM_NON_BLOCKING), 0);
    test_ok(h, strata_stream_wrap(h, native, &s));
    assert_non_null(st_workspace(h, 5000)); /* used in another stream before */
    test_ok(h, strata_fill(h, a, strata_real(1)));
    test_ok(h, strata_synchronize(h));
    test_ok(h, strata_set_stream(h, s));
    assert_ptr_equal(strata_native_stream(h), native);
    assert_int_equal(cu->stream_begin_capture(native, 0), 0);
    assert_true(st_gpu_capturing(h));
    test_error(h, strata_free(h, p), STRATA_ERROR_STATE, "captured");
    for (int i = 0; i < 2; i++) {
        float *w = st_workspace(h, 4 * N);
        assert_non_null(w);
        test_ok(h, strata_copy(h, a, strata_vector(w, STRATA_F32, N, 1)));
        test_ok(h, strata_copy(h, strata_slice(strata_vector(w, STRATA_F32, N, 1), 0, N - 1, N, -1), b));
        st_gpu_run_end(h);
    }
    assert_int_equal(cu->stream_end_capture(native, &graph), 0);
    assert_int_equal(cu->graph_instantiate(&exec, graph, 0), 0);
    float up[N];
    for (int i = 0; i < N; i++) up[i] = (float)i;
    test_ok(h, strata_copy(h, strata_vector(up, STRATA_F32, N, 1), a));
    for (int i = 0; i < 3; i++) assert_int_equal(cu->graph_launch(exec, native), 0);
    test_ok(h, strata_copy(h, b, strata_vector(host, STRATA_F32, N, 1)));
    for (int i = 0; i < N; i++) assert_true(host[i] == (float)(N - 1 - i));
    assert_int_equal(cu->graph_exec_destroy(exec), 0);
    assert_int_equal(cu->graph_destroy(graph), 0);
    test_ok(h, strata_set_stream(h, NULL));
    test_ok(NULL, strata_stream_destroy(s));
    assert_int_equal(cu->stream_destroy(native), 0);
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_free(h, q));
}

static void out_of_memory(void **state)
{
    (void)state;
    void *p;
    const size_t much = (size_t)h->gpu->memory + ((size_t)1 << 30);
    test_error(h, strata_alloc(h, much, &p), STRATA_ERROR_MEMORY, "strata_alloc", "cuda:0 has no memory",
               "pool", "cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY", "try");
    printf("%s\n", strata_error(h));
    test_ok(h, strata_alloc(h, 1 << 20, &p));
    test_ok(h, strata_free(h, p));
}

static void *worker(void *arg)
{
    strata_handle *g;
    strata_stream *s;
    if (strata_create(&g, "cuda:0") || strata_stream_create(g, &s) || strata_set_stream(g, s))
        return (void *)1;
    const int me = (int)(uintptr_t)arg;
    uintptr_t bad = 0;
    for (int i = 0; i < 200 && !bad; i++) {
        int64_t n = 1000 + 37 * i;
        int *p, *back = malloc(4 * (size_t)n);
        bad |= strata_alloc(g, 4 * (size_t)n, (void **)&p) != 0;
        bad |= strata_fill(g, strata_vector(p, STRATA_I32, n, 1), strata_real(me * 1000 + i)) != 0;
        bad |= strata_copy(g, strata_vector(p, STRATA_I32, n, 1), strata_vector(back, STRATA_I32, n, 1)) != 0;
        bad |= back[0] != me * 1000 + i || back[n - 1] != me * 1000 + i;
        bad |= strata_free(g, p) != 0;
        free(back);
    }
    bad |= strata_set_stream(g, NULL) != 0;
    bad |= strata_stream_destroy(s) != 0;
    strata_destroy(g);
    return (void *)bad;
}

static void threads(void **state)
{
    (void)state;
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&t[i], NULL, worker, (void *)(uintptr_t)(i + 1)), 0);
    for (int i = 0; i < 8; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
}

/* Run as a process of its own: a launch that writes where nothing is. */
static int fault(void)
{
    const st_gpu_kernel *k, *k2;
    const st_gpu_spec spec = {.id = "wild_writer",
                              .source = "copy.cu",
                              .entry = "st_copy",
                              .option = {"-DESIZE=4"}},
                      fine = {
                          .id = "harmless", .source = "copy.cu", .entry = "st_copy", .option = {"-DESIZE=8"}};
    if (strata_create(&h, "cuda:0") || st_gpu_kernel_get(h, &spec, &k) || st_gpu_kernel_get(h, &fine, &k2))
        return 9;
    char *d = (char *)64, walk[256] = {0};
    long long one = 1, none = 0;
    void *bad[] = {&d, &d, walk, &one}, *good[] = {&d, &d, walk, &none};
    st_gpu_launch l = {.kernel = k2, .grid = {1}, .block = {256}, .args = good};
    strata_status s = st_gpu_run(h, &l);
    l.kernel = k;
    l.args = bad;
    if (!s) s = st_gpu_run(h, &l);
    if (!s) s = strata_synchronize(h);
    printf("%s\n", strata_error(h));
    if (s != STRATA_ERROR_DEVICE) return 1;
    void *p;
    if (strata_alloc(h, 100, &p) != STRATA_ERROR_DEVICE ||
        !strstr(strata_error(h), "cannot be used any more"))
        return 2;
    strata_destroy(h);
    strata_handle *cpu;
    if (strata_create(&cpu, "cpu")) return 3;
    strata_destroy(cpu);
    return 0;
}

static void faults(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        char command[600], text[4096];
        snprintf(command, sizeof command, "STRATA_SYNC=%d '%s' fault", sync, self);
        fflush(NULL);
        FILE *f = popen(command, "r");
        size_t n = fread(text, 1, sizeof text - 1, f);
        text[n] = 0;
        int status = pclose(f);
        printf("%s", text);
        test_check(status == 0, "exit status %d", status);
        test_check(strstr(text, "CUDA_ERROR_ILLEGAL_ADDRESS") != NULL, "%s", text);
        test_check(strstr(text, sync ? "wild_writer failed while it ran" : "caused earlier") != NULL, "%s",
                   text);
        test_check(strstr(text, "wild_writer") != NULL, "%s", text);
    }
}

static void forked(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        void *p;
        _exit(strata_alloc(h, 100, &p) == STRATA_ERROR_DEVICE && strstr(strata_error(h), "forked") ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    test_ok(h, strata_synchronize(h));
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1 && !strcmp(argv[1], "fault")) return fault();
    brief = getenv("STRATA_TEST_SHORT") != NULL;
    if (strata_create(&h, "cuda:0")) {
        printf("skipped: %s\n", strata_error(NULL));
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device),           cmocka_unit_test(reach),     cmocka_unit_test(transfers),
        cmocka_unit_test(copies),           cmocka_unit_test(bandwidth), cmocka_unit_test(host_costs),
        cmocka_unit_test(order_of_streams), cmocka_unit_test(graphs),    cmocka_unit_test(out_of_memory),
        cmocka_unit_test(threads),          cmocka_unit_test(faults),    cmocka_unit_test(forked)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed;
}
