/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm_scaled.c - 8-bit floats whose blocks have scales, against f64: rows of 1 and of 128 for A, 128 columns or all for B, one factor without, sizes that are
 * no multiples, any addresses, epilogues. Every 128 of k the tensor cores keep about 14 bits. */
#include "blas/product.h"
#include "runtime/gpu.h"
#include "runtime/handle.h"
#include <math.h>
#include <stdlib.h>
#include <strata/runtime.h>
#include "device_matrix.h" /* last: its h */

/* scales are positive */
static double factor_or_scale(test_rng *r, strata_type type)
{
    return type == STRATA_F32 ? test_real(r, 0.01, 2) : test_real(r, -1, 1);
}
static matrix make(test_rng *r, strata_type type, int64_t rows, int64_t cols, bool turned, int64_t skew)
{
    return device_matrix(r, type, rows, cols, turned, 0, skew, factor_or_scale);
}

typedef struct problem {
    int64_t m, n, k, rows_a, cols_b; /* of blocks; 0: no scales */
    bool bias, turned;
    int64_t skew;
    strata_type a, b, c;
} problem;

static void one(test_rng *r, const problem *p)
{
    const int64_t kb = (p->k + 127) / 128, ma = p->rows_a ? (p->m + p->rows_a - 1) / p->rows_a : 1,
                  nb = p->cols_b ? (p->n + p->cols_b - 1) / p->cols_b : 1;
    matrix A = make(r, p->a, p->m, p->k, false, p->skew), B = make(r, p->b, p->k, p->n, true, p->skew),
           C = make(r, p->c, p->m, p->n, false, 0), sa = make(r, STRATA_F32, ma, kb, p->turned, 0),
           sb = make(r, STRATA_F32, kb, nb, p->turned, 0), bias = make(r, STRATA_F32, 1, p->n, false, 0);
    test_problem("%lldx%lldx%lld, scales of %lld rows and %lld columns%s%s skew %lld", (long long)p->m,
                 (long long)p->n, (long long)p->k, (long long)p->rows_a, (long long)p->cols_b,
                 p->bias ? " bias" : "", p->turned ? " turned" : "", (long long)p->skew);
    st_contract c;
    st_product_describe(&A.dev, &B.dev, &C.dev, &c);
    if (p->bias) {
        c.epi_operands = 1;
        c.epi[0] = (st_epi_operand){.name = "b", .type = STRATA_F32, .sn = {1}};
    }
    const st_block_scale scale[2] = {{p->rows_a, sa.dev.stride[0], sa.dev.stride[1]},
                                     {p->cols_b, sb.dev.stride[1], sb.dev.stride[0]}};
    strata_plan *plan;
    test_ok(h, st_tile_scaled_plan(h, "test", &c, p->bias ? "out = acc + b" : NULL, scale, &plan));
    void *data[6] = {A.dev.data,
                     B.dev.data,
                     C.dev.data,
                     p->bias ? bias.dev.data : sa.dev.data,
                     p->bias ? sa.dev.data : sb.dev.data,
                     sb.dev.data};
    void *ws = NULL;
    if (plan->workspace) test_ok(h, strata_alloc(h, plan->workspace, &ws));
    const strata_run run = {.workspace = ws, .workspace_bytes = plan->workspace};
    test_ok(h, plan->run(h, plan, data, &run));
    test_ok(h, strata_copy(h, C.dev, C.host));
    for (int64_t i = 0; i < p->m && !test_values_ignored(); i++)
        for (int64_t j = 0; j < p->n; j++) {
            double want = p->bias ? test_elem(bias.host, 0, j) : 0, size = fabs(want);
            for (int64_t k = 0; k < p->k; k++) {
                const double s = (p->rows_a ? test_elem(sa.host, i / p->rows_a, k / 128) : 1) *
                                 (p->cols_b ? test_elem(sb.host, k / 128, j / p->cols_b) : 1),
                             x = s * test_elem(A.host, i, k) * test_elem(B.host, k, j);
                want += x;
                size += fabs(x);
            }
            const double got = test_elem(C.host, i, j),
                         tol = size * (0x1p-11 + (double)kb * 0x1p-22) + fabs(want) * test_unit(p->c);
            test_check(fabs(got - want) <= tol, "%lld,%lld: %g, want %g +- %g", (long long)i, (long long)j,
                       got, want, tol);
        }
    test_ok(h, strata_free(h, ws));
    strata_plan_destroy(plan);
    drop(&A), drop(&B), drop(&C), drop(&sa), drop(&sb), drop(&bias);
}

static void scaled(void **state)
{
    (void)state;
    test_rng r = test_rng_make(128);
    static const problem list[] = {
        {256, 256, 512, 1, 128, false, false, 0, STRATA_F8E4M3, STRATA_F8E4M3, STRATA_BF16},
        {200, 300, 400, 1, 128, false, true, 0, STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F32},
        {130, 272, 656, 128, 128, true, false, 0, STRATA_F8E5M2, STRATA_F8E4M3, STRATA_F16},
        {70, 64, 128, 1, 0, false, false, 0, STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F32},
        {70, 144, 272, 0, 128, true, true, 0, STRATA_F8E4M3, STRATA_F8E5M2, STRATA_BF16},
        {33, 150, 300, 32, 512, false, false, 0, STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F32},
        {65, 130, 304, 1, 128, true, false, 1, STRATA_F8E4M3, STRATA_F8E4M3, STRATA_F32},
        {1, 128, 1024, 1, 128, false, false, 0, STRATA_F8E4M3, STRATA_F8E4M3, STRATA_BF16},
    };
    if (!h->gpu || h->gpu->cc != 90) {
        st_contract c = {.ta = STRATA_F8E4M3, .tb = STRATA_F8E4M3, .tc = STRATA_F32};
        const st_block_scale scale[2] = {{1, 1, 1}, {128, 1, 1}};
        strata_plan *plan;
        assert_int_equal(st_tile_scaled_plan(h, "test", &c, NULL, scale, &plan), STRATA_ERROR_UNSUPPORTED);
        assert_null(plan);
        return;
    }
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++) one(&r, &list[i]);
}

/* The same by the text of a program, on every device: blocks of 128 x 128 for W, of 1 x 128 for X, a bias and relu. */
static void program(void **state)
{
    (void)state;
    test_rng r = test_rng_make(77);
    static const int64_t size[][3] = {{96, 256, 384}, {5, 128, 256}, {256, 384, 512}};
    for (int i = 0; i < 3; i++) {
        const int64_t m = size[i][0], n = size[i][1], k = size[i][2];
        matrix X = make(&r, STRATA_F8E4M3, m, k, false, 0), W = make(&r, STRATA_F8E4M3, k, n, true, 0),
               C = make(&r, STRATA_BF16, m, n, false, 0), sx = make(&r, STRATA_F32, m, k / 128, false, 0),
               sw = make(&r, STRATA_F32, k / 128, n / 128, false, 0),
               b = make(&r, STRATA_F32, 1, n, false, 0);
        test_problem("program, %lldx%lldx%lld", (long long)m, (long long)n, (long long)k);
        strata_tensor bias = strata_vector(b.dev.data, STRATA_F32, n, 1);
        const strata_operand op[] = {{"X", X.dev}, {"W", W.dev}, {"SX", sx.dev}, {"SW", sw.dev},
                                     {"b", bias},  {"y", C.dev}, {NULL, {0}}};
        test_ok(h, strata_fused(h, "y = relu((X * SX[m, k/128]) @ (W * SW[k/128, n/128]) + b[n])", op, NULL));
        test_ok(h, strata_copy(h, C.dev, C.host));
        for (int64_t x = 0; x < m && !test_values_ignored(); x++)
            for (int64_t j = 0; j < n; j++) {
                double want = test_elem(b.host, 0, j), all = fabs(want);
                for (int64_t l = 0; l < k; l++) {
                    const double v = test_elem(sx.host, x, l / 128) * test_elem(sw.host, l / 128, j / 128) *
                                     test_elem(X.host, x, l) * test_elem(W.host, l, j);
                    want += v;
                    all += fabs(v);
                }
                const double got = test_elem(C.host, x, j), tol = all * 0x1p-10 + fabs(want) * 0x1p-8;
                if (want < 0) want = 0;
                test_check(fabs(got - want) <= tol, "%lld,%lld: %g, want %g +- %g", (long long)x,
                           (long long)j, got, want, tol);
            }
        drop(&X), drop(&W), drop(&C), drop(&sx), drop(&sw), drop(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scaled), cmocka_unit_test(program)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
