/* SPDX-License-Identifier: Apache-2.0 */
/* test_threads.c - what threads may and may not change: the same bits on any number of threads and on a caller's own, from several handles at
 * once, with one plan shared between threads, in a child after fork and in its parent; and what a trace of all that says. */
#include "calls.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* The best kernel that packs both operands. */
static const char *first_packed(void)
{
    static strata_kernel_info k;
    for (int i = 0; strata_kernels(i, &k); i++)
        if (k.usable && !strncmp(k.id, "gemm_f32f32f32_6x", 17)) return k.id;
    return NULL;
}

static uint64_t hash_bytes(uint64_t s, const void *p, size_t n)
{
    const unsigned char *at = p;
    for (; n >= 8; n -= 8, at += 8) {
        uint64_t w;
        memcpy(&w, at, 8);
        s = (s ^ w) * 0x9fb21c651e98df25u;
        s ^= s >> 32;
    }
    return s;
}

/* All arrays after the call: also what it should not have touched. */
static uint64_t result(call_fn call, int variant)
{
    fill_arrays();
    test_ok(h, call(variant));
    uint64_t s = hash_bytes(1, a, sizeof a);
    s = hash_bytes(hash_bytes(hash_bytes(s, b, sizeof b), c, sizeof c), d, sizeof d);
    return hash_bytes(hash_bytes(s, dc, sizeof dc), arg, sizeof arg);
}

static void in_order(void *user, int n, void (*body)(void *, int), void *x)
{
    ++*(int *)user;
    for (int i = 0; i < n; i++) body(x, i);
}
static void backwards(void *user, int n, void (*body)(void *, int), void *x)
{
    ++*(int *)user;
    for (int i = n - 1; i >= 0; i--) body(x, i);
}

/* Work that starts the team, or finds it parked; what follows then meets it hot. */
static void warm_team(int threads)
{
    const int64_t n = TEST_UNDER_TSAN ? 200 : 600;
    test_ok(h, strata_set_threads(h, threads));
    test_ok(h, strata_gemm(h, STRATA_ONE, f32(a, n, n), f32(b, n, n), STRATA_ZERO, f32(c, n, n), NULL));
}

/* A handle of its own for each number of threads, so that each chooses its plans anew: the choice may not depend on the number either. */
static void fresh(void)
{
    strata_destroy(h);
    test_ok(NULL, strata_create(&h, "cpu"));
}

static void same_bits(void **state)
{
    (void)state;
    int loops = 0;
    for (int i = 0; i < TEST_COUNT(calls); i++)
        for (int v = 0; v < calls[i].variants; v++) {
            test_problem("%s, variant %d", calls[i].name, v);
            fresh();
            test_ok(h, strata_set_threads(h, 1));
            uint64_t want = result(calls[i].call, v);
            for (int threads = 2; threads <= 4; threads++) {
                fresh();
                warm_team(threads);
                test_check(result(calls[i].call, v) == want, "other bits on %d threads", threads);
            }
            fresh();
            test_ok(h, strata_set_parallel_for(h, v & 1 ? backwards : in_order, &loops, 3));
            test_check(result(calls[i].call, v) == want, "other bits on a caller's threads");
            test_ok(h, strata_set_parallel_for(h, NULL, NULL, 0));
            test_check(result(calls[i].call, v) == want, "other bits the second time");
        }
    assert_true(loops > 0);
}

/* ---- a sweep of shapes: the kernel and the bits --------------------------------------------------------------------- */
static int64_t some_size(test_rng *r)
{
    static const int64_t round[] = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 320, 384, 512, 600};
    return test_chance(r, 0.5) ? round[test_int(r, 0, TEST_COUNT(round) - 1)]
                               : test_int(r, 1, test_chance(r, 0.5) ? 20 : 600);
}

static void sweep_of_products(void **state)
{
    (void)state;
    test_rng r = test_rng_make(41);
    static float by_plan[FLOATS], by_call[FLOATS];
    fill_arrays();
    warm_team(3);
    for (int round = 0; round < test_rounds(TEST_UNDER_TSAN ? 10 : 150); round++) {
        int64_t m = some_size(&r), n = some_size(&r), k = some_size(&r);
        strata_tensor A = test_chance(&r, 0.5) ? f32(a, m, k) : strata_transpose(f32(a, k, m)),
                      B = test_chance(&r, 0.5) ? f32(b, k, n) : strata_transpose(f32(b, n, k));
        char kernel[100] = "";
        for (int threads = 1; threads <= 3; threads++) {
            strata_plan *p;
            test_problem("product %lldx%lldx%lld, A %s, B %s, %d threads", (long long)m, (long long)n,
                         (long long)k, test_say(A), test_say(B), threads);
            test_ok(h, strata_set_threads(h, threads));
            test_ok(h, strata_gemm_plan(h, STRATA_ONE, A, B, STRATA_ZERO, f32(c, m, n), NULL, NULL, &p));
            if (threads == 1) snprintf(kernel, sizeof kernel, "%s", strata_plan_kernel(p));
            test_check(!strcmp(kernel, strata_plan_kernel(p)), "%s, not %s", strata_plan_kernel(p), kernel);
            test_poison(c, sizeof c);
            test_ok(h, strata_plan_run(h, p, (void *[]){a, b, c}, NULL));
            if (threads == 1) memcpy(by_plan, c, (size_t)(m * n) * 4);
            test_check(!memcmp(by_plan, c, (size_t)(m * n) * 4), "other bits by the plan, %s", kernel);
            test_poison(c, sizeof c);
            test_ok(h, strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, f32(c, m, n), NULL));
            if (threads == 1) memcpy(by_call, c, (size_t)(m * n) * 4);
            test_check(!memcmp(by_call, c, (size_t)(m * n) * 4), "other bits by the plain call");
            strata_plan_destroy(p);
        }
    }
}

static void sweep_of_convolutions(void **state)
{
    (void)state;
    typedef strata_status (*plan_fn)(strata_handle *, const strata_conv *, strata_tensor, strata_tensor,
                                     strata_tensor, const strata_choice *, strata_plan **);
    static const plan_fn make[] = {strata_conv_forward_plan, strata_conv_backward_data_plan,
                                   strata_conv_backward_weights_plan};
    test_rng r = test_rng_make(42);
    static float one_thread[FLOATS];
    fill_arrays();
    warm_team(3);
    for (int round = 0; round < test_rounds(TEST_UNDER_TSAN ? 5 : 60); round++) {
        int64_t n = test_int(&r, 1, 8), ci = test_int(&r, 1, 48), co = test_int(&r, 1, 48),
                side = test_int(&r, 4, 24), q = test_int(&r, 0, 1) * 2 + 1;
        strata_conv o = {.pad = {q / 2, q / 2}, .stride = {test_int(&r, 1, 2), 1}};
        int kind = (int)test_int(&r, 0, 2), v = (int)test_int(&r, 0, 1);
        int64_t dim[4];
        strata_tensor x = image(a, v, n, ci, side, side), w = image(b, v, co, ci, q, q);
        test_ok(h, strata_conv_output(h, &o, x, w, dim));
        if (n * ci * side * side > FLOATS || n * co * side * side > FLOATS) continue;
        strata_tensor y = image(kind == 0 ? c : a, v, dim[0], dim[1], dim[2], dim[3]);
        if (kind == 1) x = image(c, v, n, ci, side, side);
        if (kind == 2) {
            y = image(b, v, dim[0], dim[1], dim[2], dim[3]);
            w = image(c, v, co, ci, q, q);
        }
        strata_tensor first = kind == 1 ? y : x, second = kind == 2 ? y : w,
                      out = kind == 0   ? y
                            : kind == 1 ? x
                                        : w;
        char kernel[100] = "";
        for (int threads = 1; threads <= 3; threads++) {
            strata_plan *p;
            test_problem("convolution %d of %s with %s, stride %d, %d threads", kind, test_say(x),
                         test_say(w), (int)o.stride[0], threads);
            test_ok(h, strata_set_threads(h, threads));
            test_ok(h, make[kind](h, &o, first, second, out, NULL, &p));
            if (threads == 1) snprintf(kernel, sizeof kernel, "%s", strata_plan_kernel(p));
            test_check(!strcmp(kernel, strata_plan_kernel(p)), "%s, not %s", strata_plan_kernel(p), kernel);
            test_poison(c, sizeof c);
            test_ok(h, strata_plan_run(h, p, (void *[]){first.data, second.data, out.data}, NULL));
            if (threads == 1) memcpy(one_thread, c, sizeof c);
            test_check(!memcmp(one_thread, c, sizeof c), "other bits, %s", kernel);
            strata_plan_destroy(p);
        }
    }
}

/* ---- one plan, several threads --------------------------------------------------------------------------------------------------------- */
static strata_plan *shared;
static float expected[200 * 200];

static void *run_shared(void *x)
{
    strata_handle *own;
    float *out = malloc(sizeof expected);
    uintptr_t bad = 0;
    (void)x;
    if (!out || strata_create(&own, "cpu")) return (void *)1;
    strata_set_threads(own, 2);
    for (int i = 0; i < 30 && !bad; i++) {
        memset(out, 0xff, sizeof expected);
        if (strata_plan_run(own, shared, (void *[]){a, b, out}, NULL)) bad = 2;
        if (memcmp(out, expected, sizeof expected)) bad = 3;
    }
    strata_destroy(own);
    free(out);
    return (void *)bad;
}

static void a_shared_plan(void **state)
{
    (void)state;
    pthread_t t[3];
    fill_arrays();
    test_ok(h, strata_gemm_plan(h, STRATA_ONE, f32(a, 200, 200), f32(b, 200, 200), STRATA_ZERO,
                                f32(expected, 200, 200), NULL, NULL, &shared));
    test_ok(h, strata_plan_run(h, shared, (void *[]){a, b, expected}, NULL));
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&t[i], NULL, run_shared, NULL), 0);
    for (int i = 0; i < 3; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        test_check(!bad, "thread %d: %d", i, (int)(intptr_t)bad);
    }
    strata_plan_destroy(shared);
}

/* ---- many handles, their own operands ----------------------------------------------------------------------------------------------------- */
static void *own_work(void *x)
{
    strata_handle *own;
    enum { N = 96, C = 8, SIDE = 12 };
    float *m = malloc(sizeof(float) * (4 * N * N + 4 * C * SIDE * SIDE + C * C * 9));
    uintptr_t bad = 0;
    int id = (int)(intptr_t)x;
    if (!m || strata_create(&own, "cpu")) return (void *)1;
    float *p = m + N * N, *out = p + N * N, *again = out + N * N, *image0 = again + N * N,
          *image1 = image0 + 2 * C * SIDE * SIDE, *w = image1 + 2 * C * SIDE * SIDE;
    strata_set_threads(own, 1 + id % 3);
    for (int i = 0; i < N * N; i++) {
        m[i] = (float)((i * 7 + id) % 11 - 5);
        p[i] = (float)((i * 3 + id) % 13 - 6);
    }
    for (int i = 0; i < 2 * C * SIDE * SIDE; i++) image0[i] = (float)(i % 9 - 4);
    for (int i = 0; i < C * C * 9; i++) w[i] = (float)(i % 5 - 2);
    for (int round = 0; round < 20 && !bad; round++) {
        float *to = round ? again : out;
        strata_conv o = {.pad = {1, 1}};
        if (strata_gemm(own, STRATA_ONE, f32(m, N, N), f32(p, N, N), STRATA_ZERO, f32(to, N, N), NULL))
            bad = 2;
        if (strata_fused(own, "y = relu(x) + x",
                         (strata_operand[]){{"x", f32(to, N, N)}, {"y", f32(to, N, N)}, {NULL, {0}}}, NULL))
            bad = 3;
        if (strata_softmax_forward(own, NULL, f32(to, N, N), f32(to, N, N))) bad = 4;
        if (strata_conv_forward(own, &o, strata_nhwc(image0, STRATA_F32, 2, C, SIDE, SIDE),
                                strata_nchw(w, STRATA_F32, C, C, 3, 3),
                                strata_nhwc(image1, STRATA_F32, 2, C, SIDE, SIDE)))
            bad = 5;
        if (round && memcmp(out, again, sizeof(float) * N * N)) bad = 6;
    }
    strata_destroy(own);
    free(m);
    return (void *)bad;
}

static void handles_at_once(void **state)
{
    (void)state;
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, own_work, (void *)(intptr_t)i), 0);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        test_check(!bad, "thread %d: step %d", i, (int)(intptr_t)bad);
    }
}

/* ---- fork ------------------------------------------------------------------------------------------------------------------------------------ */
static void after_fork(void **state)
{
    (void)state;
    if (TEST_UNDER_TSAN) skip();
    uint64_t want[TEST_COUNT(calls)];
    warm_team(2);
    for (int i = 0; i < TEST_COUNT(calls); i++) want[i] = result(calls[i].call, 1);
    for (int round = 0; round < 2; round++) {
        pid_t child = fork();
        if (child == 0) { /* the parent's handle with its cached plans, and a new one */
            alarm(120);
            for (int k = 0; k < 2; k++) {
                for (int i = 0; i < TEST_COUNT(calls); i++)
                    if (result(calls[i].call, 1) != want[i]) _exit(2 + i);
                strata_destroy(h);
                if (strata_create(&h, "cpu") || strata_set_threads(h, 2)) _exit(1);
            }
            _exit(0);
        }
        int status;
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        test_check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status 0x%x",
                   (unsigned)status);
        for (int i = 0; i < TEST_COUNT(calls); i++)
            test_check(result(calls[i].call, 1) == want[i], "%s in the parent afterwards", calls[i].name);
    }
}

/* ---- trace --------------------------------------------------------------------------------------------------------------------------------------- */
static void traced(void **state)
{
    (void)state;
    char path[] = "/tmp/strata-test-threads-XXXXXX", command[300];
    static char text[1 << 20];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    test_ok(h, strata_set_threads(h, 2));
    fill_arrays();
    test_ok(NULL, strata_set_trace(path));
    for (int i = 0; i < TEST_COUNT(calls); i++) test_ok(h, calls[i].call(1));
    test_error(h, strata_gemm(h, STRATA_ONE, f32(a, 3, 4), f32(b, 5, 6), STRATA_ZERO, f32(c, 3, 6), NULL),
               STRATA_ERROR_SHAPE, "strata_gemm");
    test_ok(NULL, strata_set_trace(NULL));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    static const char *const words[] = {"\"cat\":\"blas\"", "\"cat\":\"tile\"", "\"cat\":\"plan\"",
                                        "\"cat\":\"dnn\"", "\"cat\":\"pointwise\""};
    for (int i = 0; i < TEST_COUNT(words); i++)
        test_check(strstr(text, words[i]), "no event with %s", words[i]);
    if (!system("python3 -c pass >/dev/null 2>&1")) {
        snprintf(command, sizeof command, "python3 -c 'import json,sys; json.load(open(sys.argv[1]))' %s",
                 path);
        assert_int_equal(system(command), 0);
    }
    unlink(path);
}

/* Two threads with one handle: a mistake, which is told to one of them or does no harm, but never hangs. */
typedef struct rival {
    strata_plan *plan;
    float *x, *w, *y;
    int refused, other;
    atomic_int *go;
} rival;
static void *rivals_calls(void *v)
{
    rival *q = v;
    atomic_fetch_add(q->go, 1);
    while (atomic_load(q->go) < 2) {}
    for (int i = 0; i < 200; i++) {
        const strata_status s = strata_plan_run(h, q->plan, (void *[]){q->x, q->w, q->y}, NULL);
        q->refused += s == STRATA_ERROR_STATE;
        q->other += s != STRATA_ERROR_STATE && s != STRATA_OK;
    }
    return NULL;
}
static void one_handle_two_threads(void **state)
{
    (void)state;
    enum { N = 256 };
    rival q[2];
    atomic_int go = 0;
    pthread_t t;
    test_ok(h, strata_set_threads(h, 2));
    for (int i = 0; i < 2; i++) {
        float *m = test_guard(3 * N * N * sizeof *m, false);
        memset(m, 0, 3 * N * N * sizeof *m);
        q[i] = (rival){.x = m, .w = m + N * N, .y = m + 2 * N * N, .go = &go};
        /* a product whose packed panels threads wait for */
        test_ok(h, strata_gemm_plan(h, STRATA_ONE, f32(q[i].x, N, N), strata_transpose(f32(q[i].w, N, N)),
                                    STRATA_ZERO, f32(q[i].y, N, N), NULL,
                                    &(strata_choice){.kernel = first_packed()}, &q[i].plan));
    }
    assert_int_equal(pthread_create(&t, NULL, rivals_calls, &q[1]), 0);
    rivals_calls(&q[0]);
    pthread_join(t, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(q[i].other, 0);
        test_ok(h, strata_plan_run(h, q[i].plan, (void *[]){q[i].x, q[i].w, q[i].y}, NULL));
        strata_plan_destroy(q[i].plan);
        test_guard_free((unsigned char *)q[i].x);
    }
}

int main(void)
{
    if (strata_create(&h, "cpu")) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits),
                                       cmocka_unit_test(sweep_of_products),
                                       cmocka_unit_test(sweep_of_convolutions),
                                       cmocka_unit_test(a_shared_plan),
                                       cmocka_unit_test(handles_at_once),
                                       cmocka_unit_test(one_handle_two_threads),
                                       cmocka_unit_test(after_fork),
                                       cmocka_unit_test(traced)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed;
}
