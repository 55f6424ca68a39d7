/* SPDX-License-Identifier: Apache-2.0 */
/* strata_copy and strata_fill where a GPU takes part, through the fake driver: every pair of places, any strides and sizes, against elements
 * copied one by one; nothing beside them touched; failures in words. */
#include "fake_test.h"
#include "runtime/cuda/cuda.h"
#include "runtime/gpu.h"

static strata_handle *h;

typedef struct side {
    test_array a; /* host: the elements themselves, or what the device's buffer began with */
    char *dev;    /* its buffer on the device, NULL: on the host */
    char *back;   /* the device's buffer brought back */
    strata_tensor t;
} side;

static side make(test_rng *r, strata_type type, int rank, const int64_t *dim, unsigned how, bool device)
{
    side s = {.a = test_array_make(r, type, rank, dim, how)};
    const size_t size = strata_type_bits(type) / 8;
    int64_t i[STRATA_MAX_RANK] = {0};
    do
        for (size_t k = 0; k < size; k++) test_at(&s.a.t, i)[k] = (char)test_int(r, 0, 254);
    while (test_next(&s.a.t, i));
    s.t = s.a.t;
    if (device) {
        void *p;
        test_ok(h, strata_alloc(h, s.a.bytes, &p));
        s.dev = p;
        test_ok(h, st_gpu_upload(h, p, s.a.base, s.a.bytes));
        s.t.data = s.dev + ((char *)s.a.t.data - (char *)s.a.base);
    }
    return s;
}

/* Brings the device's bytes into the host array, so that it can be read element by element. */
static void fetch(side *s)
{
    if (s->dev) test_ok(h, st_gpu_download(h, s->a.base, s->dev, s->a.bytes));
}
static void drop(side *s)
{
    if (s->dev) test_ok(h, strata_free(h, s->dev));
    test_array_free(&s->a);
}

static const strata_type types[] = {STRATA_U8, STRATA_F16, STRATA_F32, STRATA_F64, STRATA_I64, STRATA_C128};

static void copies(void **state)
{
    (void)state;
    test_rng r = test_rng_make(11);
    for (int round = 0; round < test_rounds(400); round++) {
        int rank = (int)test_int(&r, 0, 4);
        int64_t dim[4];
        bool big = rank == 2 && test_chance(&r, 0.2);
        for (int d = 0; d < rank; d++) dim[d] = test_int(&r, 1, big ? 70 : 6);
        strata_type type = types[test_int(&r, 0, TEST_COUNT(types) - 1)];
        bool from = test_chance(&r, 0.7), to = test_chance(&r, 0.7);
        test_problem("copy %s rank %d %lldx%lld from %s to %s round %d", strata_type_name(type), rank,
                     rank ? (long long)dim[0] : 1, rank > 1 ? (long long)dim[1] : 1, from ? "device" : "host",
                     to ? "device" : "host", round);
        unsigned how = test_chance(&r, 0.3) ? TEST_PACKED : big ? TEST_PERMUTED | TEST_PADDED : TEST_ANY;
        side s = make(&r, type, rank, dim, how | (test_chance(&r, 0.1) ? TEST_BROADCAST : 0), from);
        side d = make(&r, type, rank, dim, test_chance(&r, 0.3) ? TEST_PACKED : how, to);
        test_ok(h, strata_copy(h, s.t, d.t));
        fetch(&d);
        int64_t i[STRATA_MAX_RANK] = {0};
        do test_check(!memcmp(test_at(&d.a.t, i), test_at(&s.a.t, i), strata_type_bits(type) / 8), "element");
        while (test_next(&s.a.t, i));
        test_array_intact(&d.a);
        drop(&s);
        drop(&d);
    }
}

static void fills(void **state)
{
    (void)state;
    test_rng r = test_rng_make(12);
    for (int round = 0; round < test_rounds(200); round++) {
        int rank = (int)test_int(&r, 0, 4);
        int64_t dim[4];
        for (int d = 0; d < rank; d++) dim[d] = test_int(&r, 1, 7);
        strata_type type = types[test_int(&r, 0, TEST_COUNT(types) - 2)];
        double v = (double)test_int(&r, 0, 100), got = -1;
        test_problem("fill %s rank %d round %d", strata_type_name(type), rank, round);
        side d = make(&r, type, rank, dim, test_chance(&r, 0.4) ? TEST_PACKED : TEST_ANY, true);
        strata_scalar value = strata_real(v);
        void *p = NULL;
        if (test_chance(&r, 0.3)) { /* a value that lies on the device */
            test_ok(h, strata_alloc(h, 8, &p));
            test_ok(h, st_gpu_upload(h, p, &v, 8));
            value = strata_scalar_at(STRATA_F64, p);
        }
        test_ok(h, strata_fill(h, d.t, value));
        if (p) test_ok(h, strata_free(h, p));
        fetch(&d);
        int64_t i[STRATA_MAX_RANK] = {0};
        do test_check(st_load_f64(type, test_at(&d.a.t, i), &got) && got == v, "element %g", got);
        while (test_next(&d.a.t, i));
        test_array_intact(&d.a);
        drop(&d);
    }
    void *p;
    double two[2] = {0}, got[6];
    test_ok(h, strata_alloc(h, 96, &p));
    test_ok(h, strata_fill(h, strata_vector(p, STRATA_C128, 6, 1), strata_complex(3, -4)));
    test_ok(h, st_gpu_download(h, two, (char *)p + 80, 16));
    assert_true(two[0] == 3 && two[1] == -4);
    test_ok(h, strata_fill(h, strata_vector(got, STRATA_F64, 6, 1),
                           strata_real(2))); /* host memory on a GPU's handle */
    assert_true(got[0] == 2 && got[5] == 2);
    test_ok(h, strata_free(h, p));
}

/* Through the ring of page-locked pieces: sizes around its pieces, up and down at once. */
static void large(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,        65536,          65537,   (4 << 20) - 1, 4 << 20, (4 << 20) + 1,
                                   16 << 20, (17 << 20) + 5, 50 << 20};
    for (int i = 0; i < TEST_COUNT(sizes); i++)
        for (int lazy = 0; lazy < 2; lazy++) {
            size_t n = sizes[i];
            unsigned char *a = malloc(n), *b = calloc(1, n + 1);
            void *p;
            fake_lazy(lazy);
            for (size_t k = 0; k < n; k++) a[k] = (unsigned char)(k * 2654435761u >> 13);
            b[n] = 77;
            test_ok(h, strata_alloc(h, n, &p));
            test_ok(h, st_gpu_upload(h, p, a, n));
            test_ok(h, st_gpu_download(h, b, p, n));
            assert_true(memcmp(a, b, n) == 0 && b[n] == 77);
            test_ok(h, st_gpu_set(h, p, 0x5a, n));
            test_ok(h, st_gpu_download(h, b, p, n));
            assert_true(b[0] == 0x5a && b[n - 1] == 0x5a && b[n] == 77);
            test_ok(h, strata_free(h, p));
            free(a);
            free(b);
        }
    fake_lazy(false);
    void *pinned, *p;
    test_ok(h, strata_alloc_host(h, 1 << 20, &pinned));
    test_ok(h, strata_alloc(h, 1 << 20, &p));
    memset(pinned, 3, 1 << 20);
    test_ok(h, st_gpu_upload(h, p, pinned, 1 << 20));
    memset(pinned, 0, 1 << 20);
    test_ok(h, st_gpu_download(h, pinned, p, 1 << 20));
    assert_true(((char *)pinned)[0] == 3 && ((char *)pinned)[(1 << 20) - 1] == 3);
    test_ok(h, st_gpu_upload(h, p, pinned, 0));
    test_ok(h, strata_free(h, p));
    test_ok(h, strata_free_host(h, pinned));
}

static void failures(void **state)
{
    (void)state;
    strata_handle *g = fake_handle("cuda:1");
    float host[64] = {0};
    void *p, *q;
    test_ok(h, strata_alloc(h, 4096, &p));
    test_ok(g, strata_alloc(g, 4096, &q));
    strata_tensor a = strata_matrix(p, STRATA_F32, 8, 8, STRATA_ROW_MAJOR, 16),
                  b = strata_matrix(host, STRATA_F32, 8, 8, STRATA_COL_MAJOR, 0);
    static const char *const functions[] = {"cuMemcpyHtoDAsync_v2", "cuLaunchKernelEx"};
    for (int i = 0; i < TEST_COUNT(functions); i++) {
        fake_fail(functions[i], 1, 1);
        test_error(h, strata_copy(h, b, a), STRATA_ERROR_DEVICE, "strata_copy", "CUDA_ERROR_INVALID_VALUE");
        test_ok(h, strata_copy(h, b, a));
    }
    fake_fail("cuMemcpyDtoHAsync_v2", 1, 1);
    test_error(h, strata_copy(h, a, b), STRATA_ERROR_DEVICE, "strata_copy", "cuMemcpyDtoHAsync");
    test_ok(h, strata_copy(h, a, b));
    test_error(h, strata_copy(h, strata_vector(q, STRATA_F32, 8, 1), strata_vector(p, STRATA_F32, 8, 1)),
               STRATA_ERROR_DEVICE, "strata_copy", "src", "another device");
    test_error(h, strata_fill(h, strata_vector(q, STRATA_F32, 8, 1), STRATA_ONE), STRATA_ERROR_DEVICE,
               "strata_fill", "another device");
    fake_fail("cuMemsetD32Async", 1, 1);
    test_error(h, strata_fill(h, strata_vector(p, STRATA_F32, 8, 1), STRATA_ONE), STRATA_ERROR_DEVICE,
               "strata_fill", "cuMemset");
    test_ok(h, strata_free(h, p));
    test_ok(g, strata_free(g, q));
    strata_destroy(g);
    strata_memory_stats m;
    test_ok(h, strata_get_memory_stats(h, &m));
    assert_true(m.bytes_in_use == 0); /* nothing staged is left behind */
}

int main(void)
{
    fake_use();
    fake_shape(2, 13000, 90);
    h = fake_handle("cuda:0");
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies), cmocka_unit_test(fills),
                                       cmocka_unit_test(large), cmocka_unit_test(failures)};
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return r;
}
