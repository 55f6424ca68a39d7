/* SPDX-License-Identifier: Apache-2.0 */
/* test_level3_rules.c - level 3 beside its values: the same bits on any number of threads and from plans, diagonals without a normal inverse,
 * limits and places of workspace, and the words of every refusal. */
#include "level3.h"

/* The same bits on one thread and on two, and from a plan as from a call. */
static void same_bits(void **state)
{
    (void)state;
    enum { N = 300 };
    strata_handle *one, *two;
    test_rng r = test_rng_make(305);
    if (strcmp(test_device(), "cpu")) return;
    test_ok(NULL, strata_create(&one, "cpu"));
    test_ok(NULL, strata_create(&two, "cpu"));
    test_ok(one, strata_set_threads(one, 1));
    test_ok(two, strata_set_threads(two, 2));
    for (int n = 0; n < test_rounds(24); n++) {
        const strata_type type = types[n % 4];
        const size_t es = strata_type_bits(type) / 8;
        const int64_t m = n % 3 ? test_int(&r, 20, 90) : test_int(&r, 200, N),
                      k = n % 3 ? test_int(&r, 20, 90) : test_int(&r, 200, N);
        test_array a = test_array_make(&r, type, 2, (int64_t[]){m, m}, TEST_PACKED),
                   b = test_array_make(&r, type, 2, (int64_t[]){m, k}, TEST_PACKED);
        for (int64_t i = 0; i < m * m; i++)
            put(type, (char *)a.t.data + (size_t)i * es,
                (num){i % (m + 1) ? test_real(&r, -1, 1) / (double)m : 1, 0});
        fill(&r, &b.t, 1, -1, 1);
        const strata_tensor L = strata_triangular(a.t, STRATA_LOWER, STRATA_NON_UNIT),
                            S = strata_symmetric(a.t, STRATA_UPPER);
        char *x[3];
        for (int i = 0; i < 3; i++) x[i] = calloc((size_t)(m * (m > k ? m : k)), es);
        for (int op = 0; op < 4; op++) {
            test_problem("same bits, round %d: operator %d, %s %lldx%lld", n, op, strata_type_name(type),
                         (long long)m, (long long)k);
            for (int i = 0; i < 2; i++) {
                strata_handle *w = i ? two : one;
                const strata_tensor X = strata_matrix(x[i], type, m, k, STRATA_COL_MAJOR, 0),
                                    C = strata_triangular(
                                        strata_matrix(x[i], type, m, m, STRATA_ROW_MAJOR, 0), STRATA_UPPER,
                                        STRATA_NON_UNIT);
                if (op >= 2) copy_held(&X, &b.t, 1);
                test_ok(w, op == 0   ? strata_gemm(w, STRATA_ONE, S, b.t, STRATA_ZERO, X, NULL)
                           : op == 1 ? strata_syrk(w, STRATA_ONE, b.t, STRATA_ZERO, C)
                           : op == 2 ? strata_trmm(w, STRATA_ONE, L, X)
                                     : strata_trsm(w, STRATA_ONE, L, X));
            }
            test_check(!memcmp(x[0], x[1], (size_t)(m * (op == 1 ? m : k)) * es),
                       "two threads give other bits than one");
            if (op) continue;
            strata_plan *p;
            const strata_tensor X = strata_matrix(x[2], type, m, k, STRATA_COL_MAJOR, 0);
            test_ok(one, strata_gemm_plan(one, STRATA_ONE, S, b.t, STRATA_ZERO, X, NULL, NULL, &p));
            test_ok(one, strata_plan_run(one, p, (void *[]){a.t.data, b.t.data, x[2]}, NULL));
            test_check(!memcmp(x[0], x[2], (size_t)(m * k) * es), "a plan gives other bits than the call: %s",
                       strata_plan_kernel(p));
            strata_plan_destroy(p);
        }
        for (int i = 0; i < 3; i++) free(x[i]);
        test_array_free(&a);
        test_array_free(&b);
    }
    strata_destroy(one);
    strata_destroy(two);
}

/* Diagonals whose inverse is no normal number: divisions give what there is to give. A zero gives Inf, as it should. */
static void diagonals(void **state)
{
    (void)state;
    enum { N = 9, COLS = 3 };
    static double a[N * N], b[N * COLS];
    static float f[N * N], g[N * COLS];
    const double tiny = 3e-310, huge = 1e308 * 1.5;
    if (strcmp(test_device(), "cpu")) return;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < COLS; j++) {
            a[i * (N + 1)] = i % 2 ? tiny : huge;
            b[i * COLS + j] = a[i * (N + 1)] * (j - 1);
            f[i * (N + 1)] = i == 4 ? 0 : 1e-40f;
            g[i * COLS + j] = i == 4 ? 1 : 1e-40f * (float)(j + 1);
        }
    const strata_tensor A = strata_triangular(strata_matrix(a, STRATA_F64, N, N, STRATA_ROW_MAJOR, 0),
                                              STRATA_LOWER, STRATA_NON_UNIT);
    const strata_tensor F = strata_triangular(strata_matrix(f, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0),
                                              STRATA_UPPER, STRATA_NON_UNIT);
    test_problem("tiny and huge diagonals");
    test_ok(h, strata_trsm(h, STRATA_ONE, A, strata_matrix(b, STRATA_F64, N, COLS, STRATA_ROW_MAJOR, 0)));
    for (int i = 0; i < N * COLS; i++) test_close(b[i], i % COLS - 1, 0.0, "x[%d]", i);
    test_ok(h, strata_trsm(h, STRATA_ONE, strata_transpose(F),
                           strata_matrix(g, STRATA_F32, N, COLS, STRATA_ROW_MAJOR, 0)));
    for (int i = 0; i < 4 * COLS; i++) test_close((double)g[i], i % COLS + 1, 0.0, "x[%d]", i);
    for (int j = 0; j < COLS; j++) test_check(isinf(g[4 * COLS + j]), "1 / 0 is %g", (double)g[4 * COLS + j]);
}

/* No workspace, and one of the caller's that lies in an operand. */
static void workspaces(void **state)
{
    (void)state;
    enum { N = 40, COLS = 30 };
    static double a[N * N], b[N * COLS], was[N * COLS];
    if (strcmp(test_device(), "cpu")) return;
    test_rng r = test_rng_make(306);
    strata_handle *w;
    test_ok(NULL, strata_create(&w, "cpu"));
    const strata_tensor A = strata_triangular(strata_matrix(a, STRATA_F64, N, N, STRATA_COL_MAJOR, 0),
                                              STRATA_UPPER, STRATA_NON_UNIT),
                        B = strata_matrix(b, STRATA_F64, N, COLS, STRATA_COL_MAJOR, 0),
                        old = strata_matrix(was, STRATA_F64, N, COLS, STRATA_COL_MAJOR, 0);
    for (int i = 0; i < N * N; i++) a[i] = i % (N + 1) ? test_real(&r, -1, 1) / N : 2;
    for (int how = 0; how < 3; how++) {
        fill(&r, &old, 1, -1, 1);
        copy_held(&B, &old, 1);
        if (how == 0) test_ok(w, strata_set_workspace_limit(w, 0));
        if (how == 1) test_ok(w, strata_set_workspace_limit(w, SIZE_MAX));
        if (how == 2) test_ok(w, strata_set_workspace(w, a, sizeof a));
        test_problem("workspace %d", how);
        test_ok(w, strata_trsm(w, STRATA_ONE, A, B));
        residual(&A, &B, &old, (num){1, 0}, 1, 1);
    }
    strata_destroy(w);
}

static void errors(void **state)
{
    (void)state;
    static double a[64], b[64], c[64];
    for (int i = 0; i < 64; i++) c[i] = 7;
    const strata_tensor A = strata_matrix(a, STRATA_F64, 4, 3, STRATA_ROW_MAJOR, 0),
                        S = strata_matrix(c, STRATA_F64, 4, 4, STRATA_ROW_MAJOR, 0),
                        C = strata_symmetric(S, STRATA_LOWER),
                        B = strata_matrix(b, STRATA_F64, 4, 2, STRATA_ROW_MAJOR, 0);
    test_error(h, strata_syrk(h, STRATA_ONE, A, STRATA_ZERO, S), STRATA_ERROR_ARGUMENT,
               "strata_syrk: C is 4x4 and does not say which triangle");
    test_error(h, strata_syrk(h, STRATA_ONE, strata_transpose(A), STRATA_ZERO, C), STRATA_ERROR_SHAPE,
               "A's rows (3) and C's (4)", "strata_transpose(A)");
    test_error(h, strata_syr2k(h, STRATA_ONE, A, B, STRATA_ZERO, C), STRATA_ERROR_SHAPE, "strata_syr2k",
               "A has 3 columns and B has 2");
    test_error(h,
               strata_syrk(h, STRATA_ONE, strata_matrix(c + 8, STRATA_F64, 4, 3, STRATA_ROW_MAJOR, 0),
                           STRATA_ZERO, C),
               STRATA_ERROR_ALIAS, "C overlaps A");
    test_error(
        h,
        strata_syrk(h, STRATA_ONE, strata_matrix(a, STRATA_F32, 4, 3, STRATA_ROW_MAJOR, 0), STRATA_ZERO, C),
        STRATA_ERROR_TYPE, "A is f32 and C is f64");
    test_error(h, strata_syrk(h, strata_complex(1, 1), A, STRATA_ZERO, C), STRATA_ERROR_TYPE, "alpha",
               "imaginary");
    const strata_tensor Z = strata_matrix(a, STRATA_C128, 4, 3, STRATA_ROW_MAJOR, 0),
                        H = strata_hermitian(strata_matrix(c, STRATA_C128, 4, 4, STRATA_ROW_MAJOR, 0),
                                             STRATA_UPPER);
    test_error(h, strata_herk(h, strata_complex(1, 1), Z, STRATA_ZERO, H), STRATA_ERROR_ARGUMENT,
               "strata_herk", "alpha", "real");
    test_error(h, strata_syrk(h, STRATA_ONE, Z, STRATA_ZERO, H), STRATA_ERROR_ARGUMENT,
               "C is a hermitian view", "strata_herk");
    const strata_tensor L = strata_triangular(strata_matrix(a, STRATA_F64, 4, 4, STRATA_ROW_MAJOR, 0),
                                              STRATA_LOWER, STRATA_NON_UNIT);
    test_error(h, strata_trsm(h, STRATA_ONE, strata_matrix(a, STRATA_F64, 4, 4, STRATA_ROW_MAJOR, 0), B),
               STRATA_ERROR_ARGUMENT, "strata_trsm: A is 4x4 and does not say which triangle");
    test_error(h, strata_trsm(h, STRATA_ONE, L, strata_transpose(B)), STRATA_ERROR_SHAPE,
               "A is 4x4 and B is 2x4", "From the right");
    test_error(h, strata_trmm(h, STRATA_ONE, L, strata_matrix(a + 12, STRATA_F64, 4, 2, STRATA_ROW_MAJOR, 0)),
               STRATA_ERROR_ALIAS, "strata_trmm: B overlaps A");
    test_error(h, strata_trmm(h, STRATA_ONE, strata_symmetric(S, STRATA_LOWER), B), STRATA_ERROR_UNSUPPORTED,
               "A is a symmetric matrix");
    test_error(
        h,
        strata_trmm(h, STRATA_ONE, L, strata_conj(strata_matrix(b, STRATA_C128, 4, 1, STRATA_ROW_MAJOR, 0))),
        STRATA_ERROR_UNSUPPORTED, "B is conjugated");
    test_error(NULL, strata_trsm(NULL, STRATA_ONE, L, B), STRATA_ERROR_ARGUMENT, "strata_trsm", "handle");
    for (int i = 0; i < 64; i++) test_check(c[i] == 7, "the output was touched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(diagonals),
                                       cmocka_unit_test(workspaces), cmocka_unit_test(errors)};
    const int bad = test_lower_levels();
    return cmocka_run_group_tests(tests, setup, teardown) + bad;
}
