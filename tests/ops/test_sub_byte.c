/* SPDX-License-Identifier: Apache-2.0 */
/* test_sub_byte.c - i4, u4 and bit operands of programs: conversions both ways in every layout, neighbours in the same byte, reductions, slices,
 * and what is refused. */
#include <math.h>
#include <strata.h>
#include "levels.h"
#include "handle.h"
#include "programs.h"
#include "support.h"
#include <stdlib.h>
#include <string.h>

static const strata_type types[] = {STRATA_I4, STRATA_U4, STRATA_BIT};

static int element(const strata_tensor *t, const uint8_t *base, int64_t i, int64_t j)
{
    const int64_t bits = (int64_t)strata_type_bits((strata_type)t->type),
                  at = (i * t->stride[0] + j * t->stride[1]) * bits;
    const int v = base[at >> 3] >> (at & 7) & ((1 << bits) - 1);
    return t->type == STRATA_I4 && v > 7 ? v - 16 : v;
}
static double stored(strata_type type, double x)
{
    if (type == STRATA_BIT) return x != 0;
    const double lo = type == STRATA_I4 ? -8 : 0, hi = type == STRATA_I4 ? 7 : 15;
    return isnan(x) ? 0 : trunc(fmin(fmax(x, lo), hi));
}

/* memory of a matrix of such elements; *bytes of it */
static uint8_t *room(test_rng *r, strata_type type, int64_t rows, int64_t cols, strata_tensor *t,
                     size_t *bytes)
{
    const int64_t per = 8 / (int64_t)strata_type_bits(type);
    const strata_order order = test_int(r, 0, 1) ? STRATA_ROW_MAJOR : STRATA_COL_MAJOR;
    const int64_t run = order == STRATA_ROW_MAJOR ? cols : rows,
                  other = order == STRATA_ROW_MAJOR ? rows : cols,
                  ld = (run + per - 1) / per * per + per * test_int(r, 0, 3);
    *bytes = (size_t)(other * ld / per);
    uint8_t *p = malloc(*bytes);
    for (size_t i = 0; i < *bytes; i++) p[i] = (uint8_t)test_int(r, 0, 255);
    *t = strata_matrix(p, type, rows, cols, order, ld);
    return p;
}

static void conversions(void **state)
{
    (void)state;
    test_rng r = test_rng_make(51);
    for (int t = 0; t < test_rounds(60); t++) {
        const strata_type type = types[t % 3];
        const int64_t m = test_int(&r, 1, t % 5 ? 40 : 300), n = test_int(&r, 1, t % 7 ? 60 : 400);
        test_array x = test_array_make(&r, t % 4 == 3 ? STRATA_F64 : STRATA_F32, 2, (int64_t[]){m, n},
                                       TEST_ANY),
                   y = test_array_make(&r, STRATA_F32, 2, (int64_t[]){m, n}, TEST_ANY);
        test_array_random(&r, &x, -20, 20);
        strata_tensor q;
        size_t bytes;
        uint8_t *p = room(&r, type, m, n, &q, &bytes), *before = malloc(bytes);
        memcpy(before, p, bytes);
        test_problem("conversion %d %s %lldx%lld stride %lld,%lld", t, strata_type_name(type), (long long)m,
                     (long long)n, (long long)q.stride[0], (long long)q.stride[1]);
        test_ok(h, RUN("q = x", {"q", q}, {"x", x.t}));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t bits = (int64_t)strata_type_bits(type),
                              at = (i * q.stride[0] + j * q.stride[1]) * bits;
                test_check(element(&q, p, i, j) == stored(type, test_elem(x.t, i, j)),
                           "q[%lld,%lld] is %d of %g", (long long)i, (long long)j, element(&q, p, i, j),
                           test_elem(x.t, i, j));
                before[at >> 3] = (uint8_t)(before[at >> 3] & ~(((1 << bits) - 1) << (at & 7)));
                before[at >> 3] |= (uint8_t)((p[at >> 3] >> (at & 7) & ((1 << bits) - 1)) << (at & 7));
            }
        test_check(memcmp(before, p, bytes) == 0, "bits beside the elements changed");
        test_ok(h, RUN("y = q * 2 + 1", {"q", q}, {"y", y.t}));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                test_check(test_elem(y.t, i, j) == 2 * element(&q, p, i, j) + 1, "y[%lld,%lld]", (long long)i,
                           (long long)j);
        test_array_intact(&y);
        test_array_free(&x), test_array_free(&y);
        free(p), free(before);
    }
}

static void reductions(void **state)
{
    (void)state;
    test_rng r = test_rng_make(52);
    for (int t = 0; t < test_rounds(30); t++) {
        const strata_type type = types[t % 3];
        const int64_t m = test_int(&r, 1, 50), n = test_int(&r, 1, 300);
        const bool by_rows = t & 1;
        strata_tensor q;
        size_t bytes;
        uint8_t *p = room(&r, type, m, n, &q, &bytes), any[64] = {0};
        test_array s =
            test_array_make(&r, STRATA_F32, 2, (int64_t[]){by_rows ? m : 1, by_rows ? 1 : n}, TEST_ANY);
        test_problem("reduction %d %s %lldx%lld", t, strata_type_name(type), (long long)m, (long long)n);
        test_ok(h, strata_fused(h, "s = sum(q)", OPS({"s", s.t}, {"q", q}),
                                &(strata_fused_options){.axes = by_rows ? 2 : 1}));
        for (int64_t i = 0; i < (by_rows ? m : n); i++) {
            double want = 0;
            for (int64_t j = 0; j < (by_rows ? n : m); j++)
                want += by_rows ? element(&q, p, i, j) : element(&q, p, j, i);
            test_check(test_elem(s.t, by_rows ? i : 0, by_rows ? 0 : i) == want, "sum %lld", (long long)i);
        }
        /* one bit a line */
        const strata_tensor out = strata_matrix(any, STRATA_BIT, by_rows ? m : 1, by_rows ? 1 : n,
                                                by_rows ? STRATA_COL_MAJOR : STRATA_ROW_MAJOR, 0);
        test_ok(h, strata_fused(h, "a = any(q > 5)", OPS({"a", out}, {"q", q}),
                                &(strata_fused_options){.axes = by_rows ? 2 : 1}));
        for (int64_t i = 0; i < (by_rows ? m : n); i++) {
            int want = 0;
            for (int64_t j = 0; j < (by_rows ? n : m); j++)
                want |= (by_rows ? element(&q, p, i, j) : element(&q, p, j, i)) > 5;
            test_check((any[i >> 3] >> (i & 7) & 1) == want, "any %lld", (long long)i);
        }
        test_array_free(&s);
        free(p);
    }
}

static void views(void **state)
{
    (void)state;
    uint8_t p[64];
    float y[64];
    for (int i = 0; i < 64; i++) p[i] = (uint8_t)(i * 37 + 11);
    const strata_tensor q = strata_matrix(p, STRATA_U4, 7, 9, STRATA_ROW_MAJOR, 0);
    test_check(q.stride[0] == 10 && q.stride[1] == 1, "rows of 9 halves have 5 bytes, not %lld elements",
               (long long)q.stride[0]);
    const strata_tensor part = strata_slice(strata_slice(q, 1, 4, 5, 1), 0, 2, 3, 2);
    test_ok(h, RUN("y = q", {"q", part}, {"y", strata_matrix(y, STRATA_F32, 3, 5, STRATA_ROW_MAJOR, 0)}));
    for (int64_t i = 0; i < 3; i++)
        for (int64_t j = 0; j < 5; j++)
            test_check((int)y[i * 5 + j] == element(&q, p, 2 + 2 * i, 4 + j), "y[%lld,%lld]", (long long)i,
                       (long long)j);
    const strata_tensor b = strata_array(p, STRATA_BIT, 3, (int64_t[]){2, 3, 5}, NULL);
    test_check(b.stride[1] == 8 && b.stride[0] == 24, "rows of bits begin on bytes");
    const strata_tensor ys = strata_matrix(y, STRATA_F32, 7, 8, STRATA_ROW_MAJOR, 0);
    test_error(h, RUN("y = q", {"q", strata_slice(q, 1, 1, 8, 1)}, {"y", ys}), STRATA_ERROR_LAYOUT,
               "inside a byte");
    test_error(h, RUN("y = q", {"q", strata_matrix(p, STRATA_I4, 7, 8, STRATA_ROW_MAJOR, 9)}, {"y", ys}),
               STRATA_ERROR_LAYOUT, "inside a byte");
    test_error(
        h,
        RUN("y = q", {"q", strata_array(p, STRATA_I4, 2, (int64_t[]){7, 8}, (int64_t[]){9, 1})}, {"y", ys}),
        STRATA_ERROR_LAYOUT, "rows begin on whole bytes");
    /* every second half byte is a whole byte apart */
    test_ok(h, RUN("y = q", {"q", strata_slice(q, 1, 0, 4, 2)}, {"y", strata_slice(ys, 1, 0, 4, 1)}));
    for (int64_t j = 0; j < 4; j++)
        test_check((int)y[j] == element(&q, p, 0, 2 * j), "y[%lld]", (long long)j);
    test_error(h, RUN("y = q", {"q", strata_slice(b, 2, 0, 2, 2)}, {"y", ys}), STRATA_ERROR_LAYOUT,
               "stride 2", "dim 2");
    static float c[49];
    test_error(h,
               strata_gemm(h, STRATA_ONE, ys, strata_transpose(ys), STRATA_ZERO,
                           strata_matrix(c, STRATA_F32, 7, 7, STRATA_ROW_MAJOR, 0),
                           &(strata_gemm_options){.epilogue = "out = acc * q", .operands = OPS({"q", q})}),
               STRATA_ERROR_TYPE, "strata_fused", "u4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(conversions), cmocka_unit_test(reductions),
                                       cmocka_unit_test(views)};
    int failures = cmocka_run_group_tests(tests, setup, teardown);
    return failures + test_lower_levels();
}
