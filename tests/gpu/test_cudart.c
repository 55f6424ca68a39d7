/* SPDX-License-Identifier: Apache-2.0 */
/* test_cudart.c - Strata beside NVIDIA's runtime in one process, as in a program that uses PyTorch: one context, its memory, its stream, its capture. The runtime is
 * opened at run time; without it or without a GPU the test is skipped. */
#include "support.h"
#include <dlfcn.h>
#include <strata.h>
#include <string.h>

typedef void *P;
static struct {
    int (*set_device)(int), (*alloc)(P *, size_t), (*free)(P), (*copy)(P, const void *, size_t, int, P),
        (*stream_create)(P *), (*stream_destroy)(P), (*synchronize)(P), (*begin)(P, int), (*end)(P, P *),
        (*instantiate)(P *, P, unsigned long long), (*launch)(P, P), (*exec_destroy)(P), (*graph_destroy)(P),
        (*last_error)(void);
} rt;
static strata_handle *h;
enum { N = 256, TO_DEVICE = 1, TO_HOST = 2, RELAXED = 2 };

static bool open_runtime(void)
{
    static const char *const names[] = {"libcudart.so.13", "/usr/local/cuda/lib64/libcudart.so.13",
                                        "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so.12"};
    void *lib = NULL;
    for (int i = 0; i < 4 && !lib; i++) lib = dlopen(names[i], RTLD_NOW);
    const struct {
        const char *name;
        void *at;
    } f[] = {{"cudaSetDevice", &rt.set_device},
             {"cudaMalloc", &rt.alloc},
             {"cudaFree", &rt.free},
             {"cudaMemcpyAsync", &rt.copy},
             {"cudaStreamCreate", &rt.stream_create},
             {"cudaStreamDestroy", &rt.stream_destroy},
             {"cudaStreamSynchronize", &rt.synchronize},
             {"cudaStreamBeginCapture", &rt.begin},
             {"cudaStreamEndCapture", &rt.end},
             {"cudaGraphInstantiateWithFlags", &rt.instantiate},
             {"cudaGraphLaunch", &rt.launch},
             {"cudaGraphExecDestroy", &rt.exec_destroy},
             {"cudaGraphDestroy", &rt.graph_destroy},
             {"cudaGetLastError", &rt.last_error}};
    for (int i = 0; lib && i < (int)(sizeof f / sizeof *f); i++) {
        void *p = dlsym(lib, f[i].name);
        if (!p) return false;
        memcpy(f[i].at, &p, sizeof p);
    }
    return lib != NULL;
}

static float a[N * N], b[N * N], c[N * N];
static double want(int i, int j)
{
    double s = 0;
    for (int l = 0; l < N; l++) s += (double)a[i * N + l] * (double)b[l * N + j];
    return s;
}
static void check(double factor)
{
    for (int i = 0; i < N; i += 17)
        for (int j = 0; j < N; j += 13)
            test_close((double)c[i * N + j], factor * want(i, j), (N + 3) * 6e-8 * N, "C[%d,%d]", i, j);
}

/* The runtime's memory and stream, Strata's product between the runtime's copies: nothing waits in between. */
static void runtime_owns(void **state)
{
    (void)state;
    P d[3], stream, graph, exec;
    strata_stream *s;
    for (int i = 0; i < 3; i++) assert_int_equal(rt.alloc(&d[i], sizeof a), 0);
    assert_int_equal(rt.stream_create(&stream), 0);
    test_ok(h, strata_stream_wrap(h, stream, &s));
    test_ok(h, strata_set_stream(h, s));
    const strata_tensor A = strata_matrix(d[0], STRATA_F32, N, N, STRATA_ROW_MAJOR, 0),
                        B = strata_matrix(d[1], STRATA_F32, N, N, STRATA_ROW_MAJOR, 0),
                        C = strata_matrix(d[2], STRATA_F32, N, N, STRATA_ROW_MAJOR, 0);
    assert_int_equal(rt.copy(d[0], a, sizeof a, TO_DEVICE, stream), 0);
    assert_int_equal(rt.copy(d[1], b, sizeof b, TO_DEVICE, stream), 0);
    test_ok(h, strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL));
    assert_int_equal(rt.copy(c, d[2], sizeof c, TO_HOST, stream), 0);
    assert_int_equal(rt.synchronize(stream), 0);
    check(1);
    /* the runtime captures, Strata's calls become nodes: C = A B, then C = 2 C */
    assert_int_equal(rt.begin(stream, RELAXED), 0);
    test_ok(h, strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL));
    test_ok(h, strata_gemm(h, STRATA_ONE, A, B, STRATA_ONE, C, NULL));
    assert_int_equal(rt.end(stream, &graph), 0);
    assert_int_equal(rt.instantiate(&exec, graph, 0), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(rt.launch(exec, stream), 0);
    assert_int_equal(rt.copy(c, d[2], sizeof c, TO_HOST, stream), 0);
    assert_int_equal(rt.synchronize(stream), 0);
    check(2);
    rt.exec_destroy(exec);
    rt.graph_destroy(graph);
    test_ok(h, strata_synchronize(h));
    test_ok(h, strata_set_stream(h, NULL));
    test_ok(h, strata_stream_destroy(s));
    assert_int_equal(rt.stream_destroy(stream), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(rt.free(d[i]), 0);
    assert_int_equal(rt.last_error(), 0);
}

/* Strata's memory in the runtime's copies. */
static void strata_owns(void **state)
{
    (void)state;
    void *d[3];
    for (int i = 0; i < 3; i++) test_ok(h, strata_alloc(h, sizeof a, &d[i]));
    test_ok(h, strata_synchronize(h));
    assert_int_equal(rt.copy(d[0], a, sizeof a, TO_DEVICE, NULL), 0);
    assert_int_equal(rt.copy(d[1], b, sizeof b, TO_DEVICE, NULL), 0);
    assert_int_equal(rt.synchronize(NULL), 0);
    test_ok(h, strata_gemm(h, STRATA_ONE, strata_matrix(d[0], STRATA_F32, N, N, STRATA_ROW_MAJOR, 0),
                           strata_matrix(d[1], STRATA_F32, N, N, STRATA_ROW_MAJOR, 0), STRATA_ZERO,
                           strata_matrix(d[2], STRATA_F32, N, N, STRATA_ROW_MAJOR, 0), NULL));
    test_ok(h, strata_synchronize(h));
    assert_int_equal(rt.copy(c, d[2], sizeof c, TO_HOST, NULL), 0);
    assert_int_equal(rt.synchronize(NULL), 0);
    check(1);
    for (int i = 0; i < 3; i++) test_ok(h, strata_free(h, d[i]));
    assert_int_equal(rt.last_error(), 0);
}

int main(void)
{
    if (!open_runtime()) {
        printf("skipped: libcudart is not here\n");
        return 77;
    }
    /* the runtime comes first, as in most programs; Strata joins its context */
    if (rt.set_device(0)) {
        printf("skipped: the CUDA runtime finds no device\n");
        return 77;
    }
    if (strata_create(&h, "cuda:0")) {
        printf("skipped: %s\n", strata_error(NULL));
        return 77;
    }
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(((int64_t)i * 7919) % 2003) / 1001.0f - 1;
        b[i] = (float)(((int64_t)i * 104729) % 1999) / 999.0f - 1;
        c[i] = 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(runtime_owns), cmocka_unit_test(strata_owns)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed;
}
