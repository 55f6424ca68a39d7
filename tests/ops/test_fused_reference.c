/* SPDX-License-Identifier: Apache-2.0 */
/* test_fused_reference.c - a workspace limit of 0 always works on the CPU: programs with several products, reductions, factors that are expressions,
 * and operands that are a factor in two places give what they give without a limit. */
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata.h>
#include <string.h>

enum { M = 70, MOST = 4 * M * M };
static strata_handle *h;
static int setup(void **state)
{
    (void)state;
    setenv("STRATA_CACHE", "off", 1);
    return strata_create(&h, "cpu");
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

static void fill(void *p, strata_type type, int64_t n, uint64_t seed)
{
    test_rng r = test_rng_make(seed);
    for (int64_t i = 0; i < n; i++) {
        const double v = type == STRATA_I8 ? (double)test_int(&r, -9, 9) : test_real(&r, -0.5, 0.5);
        if (type == STRATA_F64)
            ((double *)p)[i] = v;
        else if (type == STRATA_I8)
            ((int8_t *)p)[i] = (int8_t)v;
        else
            ((float *)p)[i] = (float)v;
    }
}

static double value(const void *p, strata_type type, int64_t i)
{
    return type == STRATA_F64   ? ((const double *)p)[i]
           : type == STRATA_I32 ? ((const int32_t *)p)[i]
                                : ((const float *)p)[i];
}

typedef struct program {
    const char *text;
    strata_type in, out;
    uint32_t axes;
    int form; /* of out: 0 M x M, 1 M x 1, 2 1 x M, 3 1 x 1, 4 batches */
} program;

static void without_workspace(void **state)
{
    (void)state;
    static const program list[] = {
        {"out = silu(X @ W) * (X @ X)", STRATA_F32, STRATA_F32, 0, 0},
        {"out = (X @ W) * (W @ X) + (W @ W)", STRATA_F32, STRATA_F32, 0, 0},
        {"out = X @ (W * 2)", STRATA_F32, STRATA_F32, 0, 0},
        {"out = relu(X @ (W * v[n]) + v[n])", STRATA_F32, STRATA_F32, 0, 0},
        {"out = (X * v[m]) @ (W * v[k])", STRATA_F32, STRATA_F32, 0, 0},
        {"out = X @ (W * g[k/10, n])", STRATA_F32, STRATA_F32, 0, 0},
        {"p = X @ W; out = exp(p - max(p)) / sum(exp(p - max(p)))", STRATA_F32, STRATA_F32, 0, 0},
        {"p = (X @ W) * (X @ X); out = p - mean(p)", STRATA_F32, STRATA_F32, 0, 0},
        {"out = sum((X @ W) * (X @ X))", STRATA_F32, STRATA_F32, 0, 1},
        {"out = sum((X @ W) * (X @ X))", STRATA_F32, STRATA_F32, 1, 2},
        {"out = sum((X @ W) * (X @ X))", STRATA_F32, STRATA_F32, 3, 3},
        {"out = (X @ W) * index(-1) + index(-2)", STRATA_F32, STRATA_F32, 0, 0},
        {"out = (X @ W) * (W @ X)", STRATA_F64, STRATA_F64, 0, 0},
        {"out = (X @ W) + (W @ X)", STRATA_I8, STRATA_I32, 0, 0},
        {"out = (B @ W) * (B @ X)", STRATA_F32, STRATA_F32, 0, 4},
        {"out = gelu(X @ W) * (B @ W)", STRATA_F32, STRATA_F32, 0, 4},
        {"p = B @ (W + X); out = p / sum(p * p)", STRATA_F32, STRATA_F32, 0, 4},
    };
    static double x[MOST], w[MOST], v[M], g[M * M], b[2 * M * M], out[2][2 * M * M + 8];
    for (int i = 0; i < TEST_COUNT(list); i++) {
        const program *p = &list[i];
        const int64_t size = strata_type_bits(p->in) / 8, osize = strata_type_bits(p->out) / 8;
        const int64_t rows = p->form == 2 || p->form == 3 ? 1 : M,
                      cols = p->form == 1 || p->form == 3 ? 1 : M;
        fill(x, p->in, M * M, 1), fill(w, p->in, M * M, 2), fill(v, p->in, M, 3), fill(g, p->in, M * M, 4);
        fill(b, p->in, 2 * M * M, 5);
        const int64_t batch[3] = {2, M, M}, groups[2] = {M / 10, M};
        const strata_tensor all[] = {strata_matrix(x, p->in, M, M, STRATA_ROW_MAJOR, 0),
                                     strata_matrix(w, p->in, M, M, STRATA_COL_MAJOR, 0),
                                     strata_vector(v, p->in, M, 1), strata_array(g, p->in, 2, groups, NULL),
                                     strata_array(b, p->in, 3, batch, NULL)};
        static const char *const name[] = {"X", "W", "v", "g", "B"};
        const int64_t count = p->form == 4 ? 2 * M * M : rows * cols;
        for (int limited = 0; limited < 2; limited++) {
            strata_operand o[8];
            void *data[8];
            int n = 0;
            for (int k = 0; k < 5; k++) {
                /* the letter as a word of its own */
                bool used = false;
                for (const char *at = p->text; (at = strstr(at, name[k])) && !used; at++)
                    used = !strchr("abcdefghijklmnopqrstuvwxyz", at[1]) || !at[1];
                if (!used) continue;
                data[n] = all[k].data;
                o[n++] = (strata_operand){name[k], all[k]};
            }
            memset(out[limited], 0xff, sizeof out[limited]); /* NaN */
            char *to = (char *)out[limited] + 32;
            data[n] = to;
            o[n++] = (strata_operand){
                "out", p->form == 4 ? strata_array(to, p->out, 3, batch, NULL)
                                    : strata_matrix(to, p->out, rows, cols, STRATA_ROW_MAJOR, 0)};
            o[n] = (strata_operand){NULL, {0}};
            strata_plan *plan;
            const strata_choice none = {.limit_workspace = true};
            const strata_fused_options options = {.axes = p->axes};
            test_ok(h, strata_fused_plan(h, p->text, o, &options, limited ? &none : NULL, &plan));
            test_check(!limited || strata_plan_workspace(plan) < 1 << 20, "%s: %zu bytes", p->text,
                       strata_plan_workspace(plan));
            if (!limited && i == 0) /* the reference is never the usual choice */
                assert_true(strcmp(strata_plan_kernel(plan), "fused_reference") != 0);
            if (limited && strstr("out = silu(X @ W) * (X @ X)", p->text))
                test_check(!strcmp(strata_plan_kernel(plan), "fused_reference"), "%s",
                           strata_plan_describe(plan));
            test_ok(h, strata_set_workspace_limit(h, limited ? 0 : 64 << 20));
            test_ok(h, strata_plan_run(h, plan, data, NULL));
            strata_plan_destroy(plan);
            /* the one-shot call under the handle's limit */
            if (limited) {
                memset(out[1], 0xff, sizeof out[1]);
                test_ok(h, strata_fused(h, p->text, o, &options));
            }
            test_ok(h, strata_set_workspace_limit(h, 64 << 20));
            for (size_t k = 0; k < sizeof out[0]; k++) /* nothing beside it is written */
                if (k < 32 || k >= 32 + (size_t)(count * osize))
                    assert_int_equal(((uint8_t *)out[limited])[k], 0xff);
        }
        double most = 0;
        for (int64_t k = 0; k < count; k++) most = fmax(most, fabs(value((char *)out[0] + 32, p->out, k)));
        for (int64_t k = 0; k < count; k++) {
            const double one = value((char *)out[0] + 32, p->out, k),
                         two = value((char *)out[1] + 32, p->out, k);
            /* two orders of M sums, then a few operations (sums of M and M * M numbers): relative to the largest */
            const double bound =
                p->out == STRATA_I32 ? 0 : (p->out == STRATA_F64 ? 1e-13 : 4e-5) * (most + 1e-3);
            test_check(fabs(one - two) <= bound, "%s [%d], element %lld: %.9g and %.9g", p->text, p->form,
                       (long long)k, one, two);
        }
        (void)size;
    }
}

/* A limit between nothing and everything is kept, too: rows are independent although X is a factor on both sides. */
static void between(void **state)
{
    (void)state;
    enum { N = 200 };
    float *x = calloc(3 * N * N, sizeof *x), *w = x + N * N, *y = w + N * N;
    const strata_operand o[] = {{"X", strata_matrix(x, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0)},
                                {"W", strata_matrix(w, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0)},
                                {"out", strata_matrix(y, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0)},
                                {NULL, {0}}};
    for (size_t limit = 0; limit <= 1 << 20; limit = limit ? limit * 4 : 1000) {
        strata_plan *plan;
        const strata_choice c = {.limit_workspace = true, .workspace_limit = limit};
        test_ok(h, strata_fused_plan(h, "out = silu(X @ W) * (X @ X)", o, NULL, &c, &plan));
        assert_true(strata_plan_workspace(plan) <= limit + (1 << 20));
        strata_plan_destroy(plan);
    }
    free(x);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(without_workspace), T(between)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
