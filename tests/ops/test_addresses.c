/* SPDX-License-Identifier: Apache-2.0 */
/* test_addresses.c - what is refused of operands given by arrays of addresses: entries that are NULL, results that overlap each other or an input; and what is
 * not: tiles of one matrix, one input for many results, any order of addresses. Pivots that name no row. */
#include "handle.h"
#include <math.h>
#include <stdlib.h>

enum { TILES = 6, SIDE = 5, BIG = TILES * SIDE };
static float big[BIG * BIG], other[BIG * BIG], third[BIG * BIG];
static const void *tile[3][TILES * TILES];
typedef const void *const *addresses;

static strata_tensor tiles(int which, int64_t rows, int64_t cols, int64_t count)
{
    return strata_pointers(strata_matrix(NULL, STRATA_F32, rows, cols, STRATA_ROW_MAJOR, BIG), tile[which],
                           count);
}

/* Tile (i, j) of `from` in a random order, as operand `which`. */
static void deal(test_rng *r, int which, float *from)
{
    for (int i = 0; i < TILES * TILES; i++) tile[which][i] = from + i / TILES * SIDE * BIG + i % TILES * SIDE;
    for (int i = TILES * TILES - 1; i > 0; i--) {
        const int64_t k = test_int(r, 0, i);
        const void *t = tile[which][i];
        tile[which][i] = tile[which][k];
        tile[which][k] = t;
    }
}

static void fill(void)
{
    for (int i = 0; i < BIG * BIG; i++) big[i] = 1, other[i] = 1, third[i] = 7;
}

/* C := A B on tiles that fill a matrix: each in its place, none refused. */
static void tiles_apart(void **state)
{
    (void)state;
    test_rng r = test_rng_make(901);
    for (int round = 0; round < test_rounds(40); round++) {
        const int64_t m = test_int(&r, 1, SIDE), n = test_int(&r, 1, SIDE), k = test_int(&r, 1, SIDE),
                      count = test_int(&r, 1, TILES * TILES);
        test_problem("round %d: %lld tiles %lldx%lldx%lld", round, (long long)count, (long long)m,
                     (long long)n, (long long)k);
        fill();
        deal(&r, 0, big), deal(&r, 1, other), deal(&r, 2, third);
        test_ok(h, strata_gemm(h, STRATA_ONE, tiles(0, m, k, count), tiles(1, k, n, count), STRATA_ZERO,
                               tiles(2, m, n, count), NULL));
        for (int64_t t = 0; t < count; t++)
            for (int64_t i = 0; i < SIDE; i++)
                for (int64_t j = 0; j < SIDE; j++)
                    test_check(((const float *)tile[2][t])[i * BIG + j] == (i < m && j < n ? (float)k : 7),
                               "tile %lld (%lld, %lld)", (long long)t, (long long)i, (long long)j);
        /* inputs and results among the tiles of one matrix, one input for all */
        deal(&r, 0, big);
        for (int i = 0; i < 9; i++) tile[1][i] = tile[0][20], tile[2][i] = tile[0][i + 9];
        test_ok(h, strata_gemm(h, STRATA_ONE, tiles(0, m, m, 9), tiles(1, m, n, 9), STRATA_ZERO,
                               tiles(2, m, n, 9), NULL));
        test_ok(h,
                strata_trsm(h, STRATA_ZERO, strata_triangular(tiles(0, m, m, 9), STRATA_LOWER, STRATA_UNIT),
                            tiles(2, m, n, 9)));
    }
}

/* Random tiles at random places: refused exactly when two rectangles meet. */
static void random_places(void **state)
{
    (void)state;
    test_rng r = test_rng_make(902);
    int64_t refused = 0, taken = 0;
    for (int round = 0; round < test_rounds(600); round++) {
        const int64_t m = test_int(&r, 1, 4), n = test_int(&r, 1, 4), k = test_int(&r, 1, 3),
                      count = test_chance(&r, 0.2) ? test_int(&r, 50, 80) : test_int(&r, 1, 5);
        int64_t at[3][80];
        const int64_t rows[3] = {m, m, k}, cols[3] = {n, k, n}; /* C A B */
        strata_tensor t[3];
        bool hit = false;
        const bool column = test_chance(&r, 0.3);
        for (int o = 0; o < 3; o++) {
            for (int64_t i = 0; i < count; i++) {
                at[o][i] = test_int(&r, 0, BIG - 4) * BIG + test_int(&r, 0, BIG - 4);
                if (count > 5)
                    at[o][i] = (i + 80 * o) / 6 * 4 * BIG % (BIG * 26) + (i + 80 * o) % 6 * 4 +
                               test_chance(&r, 0.002);
            }
            static const void *where[3][80];
            for (int64_t i = 0; i < count; i++) where[o][i] = big + at[o][i];
            t[o] = strata_pointers(
                column ? strata_transpose(
                             strata_matrix(NULL, STRATA_F32, cols[o], rows[o], STRATA_ROW_MAJOR, BIG))
                       : strata_matrix(NULL, STRATA_F32, rows[o], cols[o], STRATA_ROW_MAJOR, BIG),
                where[o], count);
        }
        for (int o = 0; o < 3; o++)
            for (int64_t i = 0; i < count; i++)
                for (int64_t c = 0; c < count; c++) {
                    const int64_t di = at[o][i] / BIG - at[0][c] / BIG, dj = at[o][i] % BIG - at[0][c] % BIG;
                    const int64_t ro = column ? cols[o] : rows[o], co = column ? rows[o] : cols[o],
                                  r0 = column ? n : m, c0 = column ? m : n;
                    hit |= (o || i != c) && di < r0 && di > -ro && dj < c0 && dj > -co;
                }
        test_problem("round %d: %lld tiles %lldx%lldx%lld%s", round, (long long)count, (long long)m,
                     (long long)n, (long long)k, column ? ", columns" : "");
        const strata_status s = strata_gemm(h, STRATA_ONE, t[1], t[2], STRATA_ZERO, t[0], NULL);
        test_check(s == (hit ? STRATA_ERROR_ALIAS : STRATA_OK), "%d where tiles %s", s,
                   hit ? "meet" : "are apart");
        *(hit ? &refused : &taken) += 1;
    }
    test_check(test_rounds(600) < 600 || (refused > 50 && taken > 50), "%lld refused, %lld taken",
               (long long)refused, (long long)taken);
}

static void refused(void **state)
{
    (void)state;
    float *p = big, *q = other, *c = third;
    const void *a[3] = {p, p + 16, p + 32}, *b[3] = {q, q, q}, *o[3] = {c, c + 16, c + 32},
               *gap[3] = {p, p + 16, NULL}, *two[3] = {c, c + 16, c + 3}, *in[3] = {p + 48, p + 20, c};
    fill();
    const strata_tensor M = strata_matrix(NULL, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0);
#define P(x) strata_pointers(M, x, 3)
    const strata_tensor S = strata_matrix(q, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0),
                        T = strata_batch(strata_matrix(c, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0), 3, 0),
                        none = {0};
    test_error(h, strata_gemm(h, STRATA_ONE, P(gap), P(b), STRATA_ZERO, P(o), NULL), STRATA_ERROR_ARGUMENT,
               "A is an array of 3 addresses", "number 2", "NULL");
    test_error(h, strata_gemm(h, STRATA_ONE, P(a), P(b), STRATA_ZERO, P(gap), NULL), STRATA_ERROR_ARGUMENT,
               "C is an array of 3 addresses", "number 2");
    test_error(h, strata_gemm(h, STRATA_ONE, P(a), P(b), STRATA_ZERO, P(two), NULL), STRATA_ERROR_ALIAS,
               "matrix 0 of C", "matrix 2 of C", "memory of its own");
    test_error(h, strata_gemm(h, STRATA_ONE, P(a), P(b), STRATA_ZERO, P(in), NULL), STRATA_ERROR_ALIAS,
               "matrix 1 of C", "matrix 1 of A");
    test_error(h, strata_gemm(h, STRATA_ONE, P(o), S, STRATA_ZERO, T, NULL), STRATA_ERROR_ALIAS, "C (",
               "overlaps matrix 0 of A");
    test_error(h, strata_gemm(h, STRATA_ONE, S, P(a), STRATA_ZERO, P(b), NULL), STRATA_ERROR_ALIAS, "matrix");
    test_error(h, strata_syrk(h, STRATA_ONE, P(gap), STRATA_ZERO, strata_symmetric(P(o), STRATA_LOWER)),
               STRATA_ERROR_ARGUMENT, "strata_syrk", "number 2");
    test_error(h,
               strata_syr2k(h, STRATA_ONE, P(a), P(gap), STRATA_ZERO, strata_symmetric(P(o), STRATA_LOWER)),
               STRATA_ERROR_ARGUMENT, "B is an array", "number 2");
    const strata_tensor L = strata_triangular(P(gap), STRATA_LOWER, STRATA_UNIT);
    test_error(h, strata_trsm(h, STRATA_ONE, L, P(o)), STRATA_ERROR_ARGUMENT, "strata_trsm", "A is an array");
    test_error(h, strata_trmm(h, STRATA_ONE, strata_triangular(S, STRATA_LOWER, STRATA_UNIT), P(gap)),
               STRATA_ERROR_ARGUMENT, "B is an array");
    test_error(h, strata_trsm(h, STRATA_ONE, strata_triangular(P(a), STRATA_LOWER, STRATA_UNIT), P(two)),
               STRATA_ERROR_ALIAS, "matrix 2 of B");
    test_error(h, strata_getrf(h, P(gap), none, none), STRATA_ERROR_ARGUMENT, "strata_getrf", "number 2");
    test_error(h, strata_getrf(h, P(two), none, none), STRATA_ERROR_ALIAS, "matrix 2 of A");
    test_error(h, strata_getrs(h, P(a), none, P(gap), NULL), STRATA_ERROR_ARGUMENT, "B is an array");
    test_error(h, strata_matinv(h, P(gap), P(o), none), STRATA_ERROR_ARGUMENT, "A is an array");
    test_error(h, strata_matinv(h, P(a), P(in), none), STRATA_ERROR_ALIAS, "matrix 1 of C");
    const strata_gemm_group g = {.alpha = STRATA_ONE, .A = P(a), .B = P(gap), .C = P(o)};
    test_error(h, strata_gemm_grouped(h, &g, 1, NULL), STRATA_ERROR_ARGUMENT, "number 2");
    for (int i = 0; i < BIG * BIG; i++)
        test_check(big[i] == 1 && other[i] == 1 && third[i] == 7, "%d was written", i);
    /* nothing in the matrices: nothing is looked at */
    const strata_tensor empty = strata_pointers(strata_matrix(NULL, STRATA_F32, 4, 0, STRATA_ROW_MAJOR, 0),
                                                gap, 3),
                        lie = strata_pointers(strata_matrix(NULL, STRATA_F32, 0, 4, STRATA_ROW_MAJOR, 0), gap,
                                              3);
    test_ok(h, strata_gemm(h, STRATA_ONE, empty, lie, STRATA_ONE, P(o), NULL));
    /* runs of plans look for NULL */
    strata_plan *plan;
    test_ok(h, strata_gemm_plan(h, STRATA_ONE, P(a), P(b), STRATA_ZERO, P(o), NULL, NULL, &plan));
    test_ok(h, strata_plan_run(h, plan, (void *[]){a, b, o}, NULL));
    test_error(h, strata_plan_run(h, plan, (void *[]){a, gap, o}, NULL), STRATA_ERROR_ARGUMENT, "data[1]",
               "number 2");
    test_error(h, strata_plan_run(h, plan, (void *[]){a, b, gap}, NULL), STRATA_ERROR_ARGUMENT, "data[2]");
    const strata_scalar zero = STRATA_ZERO;
    test_ok(h, strata_plan_run(h, plan, (void *[]){gap, gap, o}, &(strata_run){.alpha = &zero}));
    strata_plan_destroy(plan);
}

static void pivots(void **state)
{
    (void)state;
    enum { N = 4, ITEMS = 3 };
    double a[ITEMS * N * N], b[ITEMS * N], was[ITEMS * N];
    int32_t p[ITEMS * N];
    int64_t wide[ITEMS * N];
    test_rng r = test_rng_make(903);
    for (int i = 0; i < ITEMS * N * N; i++) a[i] = test_real(&r, -1, 1);
    for (int i = 0; i < ITEMS * N; i++) was[i] = b[i] = test_real(&r, -1, 1);
    const int64_t dims[] = {ITEMS, N, N}, cols[] = {ITEMS, N, 1}, pd[] = {ITEMS, N};
    const strata_tensor A = strata_array(a, STRATA_F64, 3, dims, NULL),
                        B = strata_array(b, STRATA_F64, 3, cols, NULL),
                        P = strata_array(p, STRATA_I32, 2, pd, NULL),
                        W = strata_array(wide, STRATA_I64, 2, pd, NULL), none = {0};
    double c[ITEMS * N * N] = {0};
    const strata_tensor C = strata_array(c, STRATA_F64, 3, dims, NULL);
    test_ok(h, strata_getrf(h, A, P, none));
    for (int i = 0; i < ITEMS * N; i++) {
        const int32_t good = p[i];
        const int64_t bad[] = {-1, N, INT32_MAX, INT32_MIN};
        for (int k = 0; k < 4; k++) {
            char name[64], value[64];
            snprintf(name, sizeof name, "pivots[%d] of item %d is", i % N, i / N);
            snprintf(value, sizeof value, "%lld, but", (long long)bad[k]);
            p[i] = (int32_t)bad[k];
            test_error(h, strata_getrs(h, A, P, B, NULL), STRATA_ERROR_ARGUMENT, "strata_getrs", name, value,
                       "count from 0");
            test_error(h, strata_getri(h, A, P, C, none), STRATA_ERROR_ARGUMENT, "strata_getri", name, value);
        }
        p[i] = good;
    }
    for (int i = 0; i < ITEMS * N; i++) p[i]++; /* LAPACK's */
    test_error(h, strata_getrs(h, A, P, B, NULL), STRATA_ERROR_ARGUMENT, "subtract 1");
    for (int i = 0; i < ITEMS * N; i++) p[i]--, wide[i] = p[i];
    assert_memory_equal(b, was, sizeof b);
    wide[5] += INT64_C(1) << 32;
    test_error(h, strata_getrs(h, A, W, B, NULL), STRATA_ERROR_ARGUMENT, "pivots[1] of item 1");
    wide[5] = p[5];
    test_ok(h, strata_getrs(h, A, W, B, NULL));
    test_ok(h, strata_getri(h, A, P, C, none));
    const strata_tensor one = strata_matrix(a, STRATA_F64, N, N, STRATA_ROW_MAJOR, 0);
    p[1] = 9;
    test_error(h,
               strata_getri(h, one, strata_vector(p, STRATA_I32, N, 1),
                            strata_matrix(c, STRATA_F64, N, N, STRATA_ROW_MAJOR, 0), none),
               STRATA_ERROR_ARGUMENT, "pivots[1] is 9", "rows 0 to 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_apart), cmocka_unit_test(random_places),
                                       cmocka_unit_test(refused), cmocka_unit_test(pivots)};
    if (strcmp(test_device(), "cpu")) return 77; /* addresses in a GPU's memory are not looked at */
    return cmocka_run_group_tests(tests, setup, teardown);
}
