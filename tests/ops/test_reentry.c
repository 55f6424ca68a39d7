/* SPDX-License-Identifier: Apache-2.0 */
/* test_reentry.c - calls from inside calls: a caller's parallel_for whose bodies' threads, or which itself, use other handles and (by mistake) the same one; and
 * a child after fork that uses what its parent had warmed up, level 2 and 3 and factorisations too. */
#include "handle.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 220 };
static double a[N * N], b[N * N], c[N * N], want[N * N];
static strata_tensor square(double *p) { return strata_matrix(p, STRATA_F64, N, N, STRATA_ROW_MAJOR, 0); }

static void fill(void)
{
    for (int i = 0; i < N * N; i++) a[i] = (double)(i * 7 % 23 - 11) / 8, b[i] = (double)(i * 5 % 19 - 9) / 8;
    for (int i = 0; i < N; i++) a[i * (N + 1)] = 64;
}

typedef struct inner {
    strata_handle *other;
    int calls, wrong, refused, taken;
} inner;

/* Before and between the bodies: products on another handle, and on the one that is at work. */
static void nested(void *user, int n, void (*body)(void *, int), void *arg)
{
    static double p[16 * 16], q[16 * 16], r[16 * 16];
    inner *in = user;
    in->calls++;
    for (int i = 0; i < 256; i++) p[i] = i % 7, q[i] = i % 17 == 0;
    const strata_tensor P = strata_matrix(p, STRATA_F64, 16, 16, STRATA_ROW_MAJOR, 0),
                        Q = strata_matrix(q, STRATA_F64, 16, 16, STRATA_ROW_MAJOR, 0),
                        R = strata_matrix(r, STRATA_F64, 16, 16, STRATA_ROW_MAJOR, 0);
    for (int i = 0; i < n; i++) {
        memset(r, 0xff, sizeof r);
        if (strata_gemm(in->other, STRATA_ONE, P, Q, STRATA_ZERO, R, NULL) || memcmp(r, p, sizeof r))
            in->wrong++;
        body(arg, i);
        static double big[N * N];
        const strata_status s =
            strata_gemm(h, STRATA_ONE, square(a), square(b), STRATA_ZERO, square(big), NULL);
        in->refused += s == STRATA_ERROR_STATE;
        in->taken += s == STRATA_OK;
        in->wrong += s != STRATA_ERROR_STATE && s != STRATA_OK;
        if (!s && want[0] != 0 && memcmp(big, want, sizeof big)) in->wrong++;
    }
}

static void inside_parallel_for(void **state)
{
    (void)state;
    inner in = {0};
    fill();
    test_ok(NULL, strata_create(&in.other, "cpu"));
    memset(want, 0, sizeof want);
    test_ok(h, strata_set_threads(h, 1));
    test_ok(h, strata_gemm(h, STRATA_ONE, square(a), square(b), STRATA_ZERO, square(c), NULL));
    memcpy(want, c, sizeof c);
    test_ok(h, strata_set_parallel_for(h, nested, &in, 3));
    memset(c, 0xff, sizeof c);
    strata_plan *p;
    test_ok(h, strata_gemm_plan(h, STRATA_ONE, square(a), square(b), STRATA_ZERO, square(c), NULL, NULL, &p));
    test_ok(h, strata_plan_run(h, p, (void *[]){a, b, c}, NULL));
    strata_plan_destroy(p);
    test_check(!memcmp(c, want, sizeof c), "the outer product has other bits");
    test_check(in.calls > 0 && in.wrong == 0, "%d calls, %d wrong, %d refused, %d taken", in.calls, in.wrong,
               in.refused, in.taken);
    test_ok(h, strata_set_parallel_for(h, NULL, NULL, 0));
    test_ok(h, strata_gemm(h, STRATA_ONE, square(a), square(b), STRATA_ZERO, square(c),
                           NULL)); /* the handle is free again */
    strata_destroy(in.other);
}

typedef strata_status op(void);
static strata_status gemm(void)
{
    return strata_gemm(h, STRATA_ONE, square(a), square(b), STRATA_ZERO, square(c), NULL);
}
static strata_status symm(void)
{
    return strata_gemm(h, STRATA_ONE, strata_symmetric(square(a), STRATA_LOWER), square(b), STRATA_ZERO,
                       square(c), NULL);
}
static strata_status syrk(void)
{
    return strata_syrk(h, STRATA_ONE, square(a), STRATA_ZERO, strata_symmetric(square(c), STRATA_LOWER));
}
static strata_status trsm(void)
{
    return strata_trsm(h, STRATA_ONE, strata_triangular(square(a), STRATA_LOWER, STRATA_NON_UNIT), square(c));
}
static strata_status trmm(void)
{
    return strata_trmm(h, STRATA_ONE, strata_triangular(square(a), STRATA_UPPER, STRATA_UNIT), square(c));
}
static strata_status gemv(void)
{
    return strata_gemv(h, STRATA_ONE, square(a), strata_vector(b, STRATA_F64, N, 1), STRATA_ZERO,
                       strata_vector(c, STRATA_F64, N, 1));
}
static strata_status trsv(void)
{
    return strata_trsv(h, strata_triangular(square(a), STRATA_LOWER, STRATA_NON_UNIT),
                       strata_vector(c, STRATA_F64, N, 1));
}
static strata_status ger(void)
{
    return strata_ger(h, STRATA_ONE, strata_vector(a, STRATA_F64, N, 1), strata_vector(b, STRATA_F64, N, 1),
                      square(c));
}
static strata_status axpy(void)
{
    return strata_axpy(h, STRATA_ONE, strata_vector(a, STRATA_F64, N * N, 1),
                       strata_vector(c, STRATA_F64, N * N, 1));
}
static strata_status getrf(void)
{
    return strata_getrf(h, square(c), (strata_tensor){0}, (strata_tensor){0});
}
static strata_status program(void)
{
    return strata_fused(h, "y = x * 2 + y", (strata_operand[]){{"x", square(a)}, {"y", square(c)}, {0}},
                        NULL);
}
static op *const ops[] = {gemm, symm, syrk, trsm, trmm, gemv, trsv, ger, axpy, getrf, program};

static uint64_t bits(op *f)
{
    uint64_t s = 1, w;
    for (int i = 0; i < N * N; i++) c[i] = (double)(i % 29) - 14;
    for (int i = 0; i < N; i++) c[i * (N + 1)] = 100;
    if (f()) return 0;
    for (int i = 0; i < N * N; i++) memcpy(&w, &c[i], 8), s = (s ^ w) * 0x9fb21c651e98df25u, s ^= s >> 29;
    return s;
}

static void after_fork(void **state)
{
    (void)state;
    if (TEST_UNDER_TSAN) skip();
    uint64_t expected[TEST_COUNT(ops)];
    fill();
    test_ok(h, strata_set_threads(h, 2));
    for (int i = 0; i < TEST_COUNT(ops); i++)
        test_check((expected[i] = bits(ops[i])) != 0, "operator %d: %s", i, strata_error(h));
    const pid_t child = fork();
    if (child == 0) {
        alarm(100);
        for (int k = 0; k < 2; k++) { /* the parent's handle, then one of its own */
            for (int i = 0; i < TEST_COUNT(ops); i++)
                if (bits(ops[i]) != expected[i]) _exit(10 + i);
            strata_destroy(h);
            if (strata_create(&h, "cpu") || strata_set_threads(h, 2)) _exit(1);
        }
        const pid_t grandchild = fork();
        if (grandchild == 0) _exit(bits(gemm) == expected[0] && bits(trsm) == expected[3] ? 0 : 2);
        int status;
        _exit(waitpid(grandchild, &status, 0) == grandchild && status == 0 ? 0 : 3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    test_check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status 0x%x",
               (unsigned)status);
    for (int i = 0; i < TEST_COUNT(ops); i++)
        test_check(bits(ops[i]) == expected[i], "operator %d in the parent afterwards", i);
}

int main(void)
{
    if (strcmp(test_device(), "cpu")) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(inside_parallel_for), cmocka_unit_test(after_fork)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
