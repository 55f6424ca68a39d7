/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm.c - strata_gemm as users call it: every layout through the direct, small, skinny and packed paths, batches that broadcast,
 * epilogues, aliasing and every error's words. The program runs itself again for each lower instruction set. */
#include "support.h"
#include <math.h>
#include <strata.h>
#include <strata/blas.h>
#include <strata/runtime.h>
#include <sys/wait.h>
#include <unistd.h>

static strata_handle *h;
static int setup(void **state)
{
    (void)state;
    return strata_create(&h, test_device());
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

/* sum over k of A(i,k) B(k,j) and of its absolute products, for item idx (C's batch indices; dims of 1 or missing ones repeat) */
static long double product(const strata_tensor *A, const strata_tensor *B, const strata_tensor *C,
                           const int64_t *idx, long double *abs)
{
    int64_t ia[STRATA_MAX_RANK] = {0}, ib[STRATA_MAX_RANK] = {0};
    int ra = A->rank, rb = B->rank, rc = C->rank;
    for (int d = 0; d < rc - 2; d++) {
        if (d - (rc - ra) >= 0 && A->dim[d - (rc - ra)] > 1) ia[d - (rc - ra)] = idx[d];
        if (d - (rc - rb) >= 0 && B->dim[d - (rc - rb)] > 1) ib[d - (rc - rb)] = idx[d];
    }
    ia[ra - 2] = idx[rc - 2];
    ib[rb - 1] = idx[rc - 1];
    long double s = 0;
    *abs = 0;
    for (int64_t p = 0; p < A->dim[ra - 1]; p++) {
        ia[ra - 1] = ib[rb - 2] = p;
        long double v = (long double)test_get(A, ia) * test_get(B, ib);
        s += v;
        *abs += fabsl(v);
    }
    return s;
}

static void compare(double alpha, const strata_tensor *A, const strata_tensor *B, double beta,
                    const strata_tensor *old, const strata_tensor *C)
{
    int64_t i[STRATA_MAX_RANK] = {0}, k = A->dim[A->rank - 1];
    if (!strata_count(*C)) return;
    do {
        long double abs = 0, s = alpha == 0 ? 0 : product(A, B, C, i, &abs),
                    was = beta == 0 ? 0 : (long double)test_get(old, i) * beta;
        double bound = (double)((k + 3) * test_unit((strata_type)C->type) * (fabs(alpha) * abs + fabsl(was)));
        test_close(test_get(C, i), (double)(alpha * s + was), bound, "C[%d,%d,%d]", (int)i[0], (int)i[1],
                   (int)i[2]);
    } while (test_next(C, i));
}

static void copy_values(const strata_tensor *from, const strata_tensor *to)
{
    int64_t i[STRATA_MAX_RANK] = {0};
    if (!strata_count(*to)) return;
    do test_put(to, i, test_get(from, i));
    while (test_next(to, i));
}

static void any_layout(void **state)
{
    (void)state;
    static const double scalar[] = {0, 1, -1, 0.5, 1, 0};
    test_rng r = test_rng_make(21);
    for (int n = 0; n < test_rounds(400); n++) {
        strata_type type = n & 1 ? STRATA_F64 : STRATA_F32;
        int64_t big = test_chance(&r, 0.1) ? 150 : 24, d[3];
        for (int i = 0; i < 3; i++) d[i] = test_chance(&r, 0.05) ? 0 : test_int(&r, 1, big);
        unsigned how = test_chance(&r, 0.5) ? TEST_PERMUTED | TEST_PADDED : TEST_ANY;
        test_array a = test_array_make(&r, type, 2, (int64_t[]){d[0], d[2]},
                                       how | (test_chance(&r, 0.1) ? TEST_BROADCAST : 0));
        test_array b = test_array_make(&r, type, 2, (int64_t[]){d[2], d[1]},
                                       how | (test_chance(&r, 0.1) ? TEST_BROADCAST : 0));
        test_array c = test_array_make(&r, type, 2, (int64_t[]){d[0], d[1]}, how);
        test_array old = test_array_make(&r, type, 2, (int64_t[]){d[0], d[1]}, TEST_PACKED);
        double alpha = scalar[test_int(&r, 0, 5)], beta = scalar[test_int(&r, 0, 5)];
        test_array_random(&r, &a, -1, 1);
        test_array_random(&r, &b, -1, 1);
        if (beta != 0) test_array_random(&r, &old, -1, 1);
        if (alpha == 0) { /* must not be read */
            test_array_set(&a, NAN);
            test_array_set(&b, NAN);
        }
        copy_values(&old.t, &c.t);
        test_problem("round %d: alpha %g beta %g A %s B %s C %s", n, alpha, beta, test_say(a.t),
                     test_say(b.t), test_say(c.t));
        test_ok(h, strata_gemm(h, strata_real(alpha), a.t, b.t, strata_real(beta), c.t, NULL));
        compare(alpha, &a.t, &b.t, beta, &old.t, &c.t);
        test_array_intact(&c);
        test_array_free(&a);
        test_array_free(&b);
        test_array_free(&c);
        test_array_free(&old);
    }
}

static void batches(void **state)
{
    (void)state;
    test_rng r = test_rng_make(22);
    for (int n = 0; n < test_rounds(150); n++) {
        strata_type type = n & 1 ? STRATA_F64 : STRATA_F32;
        int rank = (int)test_int(&r, 3, 5), ra = (int)test_int(&r, 2, rank), rb = (int)test_int(&r, 2, rank);
        int64_t da[8], db[8], dc[8], m = test_int(&r, 1, 20), nn = test_int(&r, 1, 40),
                                     k = test_int(&r, 1, 30);
        for (int d = 0; d < rank - 2; d++) dc[d] = test_int(&r, 1, 4);
        for (int d = 0; d < ra - 2; d++) da[d] = test_chance(&r, 0.3) ? 1 : dc[rank - ra + d];
        for (int d = 0; d < rb - 2; d++) db[d] = test_chance(&r, 0.3) ? 1 : dc[rank - rb + d];
        da[ra - 2] = dc[rank - 2] = m;
        db[rb - 1] = dc[rank - 1] = nn;
        da[ra - 1] = db[rb - 2] = k;
        unsigned how = test_chance(&r, 0.5) ? TEST_PACKED : TEST_ANY;
        test_array a = test_array_make(&r, type, ra, da, how), b = test_array_make(&r, type, rb, db, how);
        test_array c = test_array_make(&r, type, rank, dc, how);
        test_array_random(&r, &a, -1, 1);
        test_array_random(&r, &b, -1, 1);
        test_array_set(&c, NAN);
        test_problem("batch round %d: A %s B %s C %s", n, test_say(a.t), test_say(b.t), test_say(c.t));
        test_ok(h, strata_gemm(h, STRATA_ONE, a.t, b.t, STRATA_ZERO, c.t, NULL));
        compare(1, &a.t, &b.t, 0, NULL, &c.t);
        test_array_intact(&c);
        test_array_free(&a);
        test_array_free(&b);
        test_array_free(&c);
    }
}

/* out = max(acc + bias[n], 0) * s + r; pre = acc + bias[n], in exact steps: compared with the same from the long double product */
static void epilogues(void **state)
{
    (void)state;
    static const int64_t shape[][3] = {{5, 7, 9},     {64, 64, 64},    {130, 200, 50}, {3, 500, 700},
                                       {500, 4, 700}, {90, 130, 1100}, {1, 1, 1}};
    test_rng r = test_rng_make(23);
    for (int n = 0; n < test_rounds(8 * TEST_COUNT(shape)); n++) {
        strata_type type = n & 1 ? STRATA_F64 : STRATA_F32;
        const int64_t *d = shape[n / 2 % TEST_COUNT(shape)];
        unsigned how = test_chance(&r, 0.3) ? TEST_PACKED : TEST_PERMUTED | TEST_PADDED;
        test_array a = test_array_make(&r, type, 2, (int64_t[]){d[0], d[2]}, how),
                   b = test_array_make(&r, type, 2, (int64_t[]){d[2], d[1]}, how);
        test_array c = test_array_make(&r, type, 2, (int64_t[]){d[0], d[1]}, how),
                   pre = test_array_make(&r, type, 2, (int64_t[]){d[0], d[1]}, how);
        test_array res = test_array_make(&r, type, 2, (int64_t[]){d[0], d[1]}, how),
                   old = test_array_make(&r, type, 2, (int64_t[]){d[0], d[1]}, how);
        test_array bias = test_array_make(&r, type, 1, &d[1], TEST_STEPPED),
                   s = test_array_make(&r, type, 1, &d[0], TEST_STEPPED);
        test_array *in[] = {&a, &b, &res, &old, &bias, &s};
        for (int i = 0; i < 6; i++) test_array_random(&r, in[i], -1, 1);
        copy_values(&old.t, &c.t);
        double alpha = 0.5, beta = n % 3 ? 0 : 2;
        if (n % 7 == 6) alpha = 0;
        if (beta == 0) test_array_set(&c, NAN);
        test_problem("epilogue round %d: A %s B %s C %s alpha %g beta %g", n, test_say(a.t), test_say(b.t),
                     test_say(c.t), alpha, beta);
        strata_operand ops[] = {{"bias", bias.t}, {"s", s.t}, {"r", res.t}, {"pre", pre.t}, {NULL, {0}}};
        strata_gemm_options o = {.epilogue = "pre = acc + bias[n]; out = max(pre, 0) * s[m] + r",
                                 .operands = ops};
        test_ok(h, strata_gemm(h, strata_real(alpha), a.t, b.t, strata_real(beta), c.t, &o));
        const double u = test_unit(type);
        int64_t i[STRATA_MAX_RANK] = {0};
        do {
            long double abs, p = product(&a.t, &b.t, &c.t, i, &abs),
                             was = beta * (long double)test_get(&old.t, i);
            long double bn = test_get(&bias.t, &i[1]), sm = test_get(&s.t, &i[0]), rr = test_get(&res.t, i);
            long double v = alpha * p + was + bn, out = (v > 0 ? v : 0) * sm + rr;
            double e = (double)((d[2] + 3) * u * (fabs(alpha) * abs + fabsl(was)) + 2 * u * fabsl(v));
            test_close(test_get(&pre.t, i), (double)v, e, "pre[%d,%d]", (int)i[0], (int)i[1]);
            test_close(test_get(&c.t, i), (double)out,
                       e * fabs((double)sm) + 4 * u * (double)(fabsl(out) + fabsl(rr)), "C[%d,%d]", (int)i[0],
                       (int)i[1]);
        } while (test_next(&c.t, i));
        test_array_intact(&c);
        test_array_intact(&pre);
        test_array *all[] = {&a, &b, &c, &pre, &res, &old, &bias, &s};
        for (int k = 0; k < 8; k++) test_array_free(all[k]);
    }
}

/* batch items with an operand of their own, one that repeats, and a point */
static void batched_epilogue(void **state)
{
    (void)state;
    static float a[3 * 4 * 5], b[5 * 6], c[3 * 4 * 6], r[3 * 6], k;
    test_rng rng = test_rng_make(24);
    for (int i = 0; i < 60; i++) a[i] = (float)test_int(&rng, -3, 3);
    for (int i = 0; i < 30; i++) b[i] = (float)test_int(&rng, -3, 3);
    for (int i = 0; i < 18; i++) r[i] = (float)i;
    k = 100;
    strata_tensor A = strata_array(a, STRATA_F32, 3, (int64_t[]){3, 4, 5}, NULL),
                  B = strata_matrix(b, STRATA_F32, 5, 6, STRATA_ROW_MAJOR, 0);
    strata_tensor C = strata_array(c, STRATA_F32, 3, (int64_t[]){3, 4, 6}, NULL),
                  R = strata_array(r, STRATA_F32, 3, (int64_t[]){3, 1, 6}, NULL);
    strata_operand ops[] = {{"r", R}, {"k", strata_point(&k, STRATA_F32)}, {NULL, {0}}};
    test_ok(h, strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, C,
                           &(strata_gemm_options){.epilogue = "acc + r + k", .operands = ops}));
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 6; j++) {
                float want = r[g * 6 + j] + k;
                for (int p = 0; p < 5; p++) want += a[(g * 4 + i) * 5 + p] * b[p * 6 + j];
                test_close(c[(g * 4 + i) * 6 + j], want, 0.0, "C[%d,%d,%d]", g, i, j);
            }
}

static void errors(void **state)
{
    (void)state;
    static float a[600], b[600], c[600];
    static double x[600];
    for (int i = 0; i < 600; i++) c[i] = 7;
    strata_tensor A = strata_matrix(a, STRATA_F32, 8, 4, STRATA_ROW_MAJOR, 0),
                  B = strata_matrix(b, STRATA_F32, 4, 6, STRATA_ROW_MAJOR, 0);
    strata_tensor C = strata_matrix(c, STRATA_F32, 8, 6, STRATA_ROW_MAJOR, 0),
                  D = strata_matrix(x, STRATA_F64, 4, 6, STRATA_ROW_MAJOR, 0);
#define GEMM(A, B, C, o) strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, C, o)
    test_error(h, GEMM(A, strata_transpose(B), C, NULL), STRATA_ERROR_SHAPE,
               "strata_gemm: A is 8x4 and B is 6x4: A's columns (4) and B's rows (6) must agree. Did you "
               "mean strata_transpose(B)?");
    test_error(h, GEMM(strata_transpose(A), B, C, NULL), STRATA_ERROR_SHAPE,
               "A's columns (8) and B's rows (4)", "Did you mean strata_transpose(A)?");
    test_error(h, GEMM(A, B, strata_transpose(C), NULL), STRATA_ERROR_SHAPE, "C must be 8x6, but it is 6x8",
               "strata_transpose(C)");
    test_error(h, GEMM(A, D, C, NULL), STRATA_ERROR_TYPE, "A is f32, B is f64 and C is f32",
               "f32, f64, c64 or c128");
    test_error(h, GEMM(strata_vector(a, STRATA_F32, 4, 1), B, C, NULL), STRATA_ERROR_SHAPE, "A has rank 1");
    test_error(h, GEMM(A, B, strata_matrix(NULL, STRATA_F32, 8, 6, STRATA_ROW_MAJOR, 0), NULL),
               STRATA_ERROR_ARGUMENT, "C");
    test_error(h, GEMM(A, strata_matrix(c + 3, STRATA_F32, 4, 6, STRATA_ROW_MAJOR, 0), C, NULL),
               STRATA_ERROR_ALIAS, "C overlaps B");
    test_error(h, GEMM(A, B, strata_matrix(a + 31, STRATA_F32, 8, 6, STRATA_COL_MAJOR, 0), NULL),
               STRATA_ERROR_ALIAS, "C overlaps A");
    strata_tensor once = C;
    once.stride[0] = 3;
    test_error(h, GEMM(A, B, once, NULL), STRATA_ERROR_LAYOUT, "C");
    once = C;
    once.stride[1] = 0;
    test_error(h, GEMM(A, B, once, NULL), STRATA_ERROR_LAYOUT, "C");
    strata_tensor bad = A;
    bad.reserved = 1;
    test_error(h, GEMM(bad, B, C, NULL), STRATA_ERROR_ARGUMENT, "A");
    bad = A;
    bad.dim[0] = -8;
    test_error(h, GEMM(bad, B, C, NULL), STRATA_ERROR_SHAPE, "A is -8x4: dim 0 is negative");
    bad = strata_matrix(a, STRATA_F32, 8, 4, STRATA_ROW_MAJOR, 3);
    test_error(h, GEMM(bad, B, C, NULL), STRATA_ERROR_LAYOUT, "A", "leading dimension 3");
    bad = A;
    bad.dim[0] = INT64_MAX / 2;
    bad.stride[0] = 4;
    test_error(h, GEMM(bad, B, C, NULL), STRATA_ERROR_OVERFLOW, "A");
    bad = A;
    bad.flags = STRATA_TENSOR_PACKED;
    test_error(h, GEMM(bad, B, C, NULL), STRATA_ERROR_UNSUPPORTED, "A is a packed triangle");
    test_error(h, GEMM(A, B, C, (&(strata_gemm_options){.reserved = {0, 1}})), STRATA_ERROR_ARGUMENT,
               "reserved words of strata_gemm_options");
    test_error(h, strata_gemm(h, strata_scalar_at(STRATA_I4, a), A, B, STRATA_ZERO, C, NULL),
               STRATA_ERROR_TYPE, "alpha");
    test_error(NULL, strata_gemm(NULL, STRATA_ONE, A, B, STRATA_ZERO, C, NULL), STRATA_ERROR_ARGUMENT,
               "strata_gemm", "handle");
    strata_tensor A3 = strata_array(a, STRATA_F32, 3, (int64_t[]){2, 8, 4}, NULL),
                  C3 = strata_array(c, STRATA_F32, 3, (int64_t[]){3, 8, 6}, NULL);
    test_error(h, GEMM(A3, B, C3, NULL), STRATA_ERROR_SHAPE, "batch dim 0 of A is 2, but C's is 3");
    test_error(h, GEMM(A3, B, C, NULL), STRATA_ERROR_SHAPE, "A has 1 batch dims and C has 0");
    /* epilogues */
    strata_operand bias[] = {{"bias", strata_vector(b, STRATA_F32, 5, 1)}, {NULL, {0}}};
    test_error(h, GEMM(A, B, C, (&(strata_gemm_options){.epilogue = "acc + bias[n]", .operands = bias})),
               STRATA_ERROR_SHAPE, "bias[n]", "6 elements", "5");
    test_error(h, GEMM(A, B, C, (&(strata_gemm_options){.epilogue = "acc + bias", .operands = bias})),
               STRATA_ERROR_SHAPE, "bias has rank 1", "bias[m]", "bias[n]");
    strata_operand wide[] = {{"r", strata_matrix(b, STRATA_F32, 8, 5, STRATA_ROW_MAJOR, 0)}, {NULL, {0}}};
    test_error(h, GEMM(A, B, C, (&(strata_gemm_options){.epilogue = "acc + r", .operands = wide})),
               STRATA_ERROR_SHAPE, "r is 8x5", "does not broadcast to C (8x6)");
    test_error(h, GEMM(A, B, C, (&(strata_gemm_options){.epilogue = "gelv(acc)"})), STRATA_ERROR_SYNTAX,
               "gelv", "gelu");
    test_error(h, GEMM(A, B, C, (&(strata_gemm_options){.epilogue = "acc = 1"})), STRATA_ERROR_ARGUMENT,
               "out");
    test_error(h, GEMM(A, B, C, (&(strata_gemm_options){.epilogue = "sum(acc)"})), STRATA_ERROR_UNSUPPORTED,
               "reduction");
    test_error(h, GEMM(A, B, C, (&(strata_gemm_options){.epilogue = "acc * 2", .operands = wide})),
               STRATA_ERROR_ARGUMENT, "operand r does not occur in the epilogue", "acc * 2");
    strata_operand same[] = {{"r", C}, {NULL, {0}}};
    test_error(h, GEMM(A, B, C, (&(strata_gemm_options){.epilogue = "acc + r", .operands = same})),
               STRATA_ERROR_ALIAS, "C overlaps", "r");
    strata_operand aux[] = {{"pre", strata_matrix(b, STRATA_F32, 8, 6, STRATA_ROW_MAJOR, 0)}, {NULL, {0}}};
    test_error(h,
               GEMM(A, B, C, (&(strata_gemm_options){.epilogue = "pre = acc; out = acc", .operands = aux})),
               STRATA_ERROR_ALIAS, "pre", "overlaps B");
    test_error(h, GEMM(A, B, C, (&(strata_gemm_options){.operands = aux})), STRATA_ERROR_ARGUMENT, "pre",
               "without an epilogue");
    strata_plan *p;
    test_error(h,
               strata_gemm_plan(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL,
                                &(strata_choice){.kernel = "no_such"}, &p),
               STRATA_ERROR_ARGUMENT, "no_such", "strata_kernels");
    test_check(p == NULL, " ");
    for (int i = 0; i < 600; i++) test_check(c[i] == 7, "the output was touched");
}

/* plans of tensors without addresses; scalars by address and per run; workspace 0 */
static void plans(void **state)
{
    (void)state;
    enum { N = 150 };
    static float a[N * N], b[N * N], c[N * N], d[N * N];
    test_rng r = test_rng_make(25);
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)test_int(&r, -4, 4);
        b[i] = (float)test_int(&r, -4, 4);
    }
    strata_tensor none = strata_matrix(NULL, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0), A = none, B = none,
                  C = none;
    A.data = a;
    B.data = b;
    C.data = d;
    strata_plan *p, *q;
    test_ok(h, strata_gemm_plan(h, STRATA_ONE, none, none, STRATA_ZERO, none, NULL, NULL, &p));
    test_ok(h, strata_gemm_plan(h, STRATA_ONE, none, none, STRATA_ZERO, none, NULL,
                                &(strata_choice){.limit_workspace = true}, &q));
    test_check(strata_plan_workspace(q) == 0, "%zu", strata_plan_workspace(q));
    test_ok(h, strata_plan_run(h, p, (void *[]){a, b, c}, NULL));
    float two = 2;
    strata_scalar alpha = strata_scalar_at(STRATA_F32, &two), beta = strata_real(-1);
    test_ok(h, strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL));
    test_check(!memcmp(c, d, sizeof c),
               "the plan and the call differ"); /* whole numbers: any order is exact */
    test_ok(h, strata_plan_run(h, q, (void *[]){a, b, c}, &(strata_run){.alpha = &alpha, .beta = &beta}));
    test_check(!memcmp(c, d, sizeof c), "2 AB - AB is AB");
    strata_plan_destroy(p);
    strata_plan_destroy(q);
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_layout),       cmocka_unit_test(batches), cmocka_unit_test(epilogues),
        cmocka_unit_test(batched_epilogue), cmocka_unit_test(errors),  cmocka_unit_test(plans),
    };
    int bad = 0;
    if (!getenv("STRATA_ISA")) {
        static const char *const isa[] = {"avx2", "portable"};
        for (int i = 0; i < 2; i++) {
            fflush(NULL);
            pid_t child = fork();
            if (child == 0) {
                setenv("STRATA_ISA", isa[i], 1);
                execv("/proc/self/exe", argv);
                _exit(127);
            }
            int status = 0;
            if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
                WEXITSTATUS(status)) {
                fprintf(stderr, "STRATA_ISA=%s failed\n", isa[i]);
                bad++;
            }
        }
    }
    return cmocka_run_group_tests(tests, setup, teardown) + bad;
}
