/* SPDX-License-Identifier: Apache-2.0 */
/* test_fused_products.c - programs with products beyond one epilogue: several products, reductions over them, outputs of other types, factors that are
 * expressions, chunks under a workspace limit, plans. Everything against sums in double precision. */
#include <math.h>
#include <strata.h>
#include "levels.h"
#include "handle.h"
#include "programs.h"
#include "support.h"
#include <stdlib.h>
#include <string.h>

typedef struct problem {
    int64_t m, n, k;
    strata_type type;
    test_array x, w, w2, b, y;
    double tol; /* of an element of a product */
} problem;

static problem make(test_rng *r, strata_type type, int64_t m, int64_t n, int64_t k)
{
    problem p = {.m = m, .n = n, .k = k, .type = type};
    p.x = test_array_make(r, type, 2, (int64_t[]){m, k}, TEST_ANY);
    p.w = test_array_make(r, type, 2, (int64_t[]){k, n}, TEST_ANY);
    p.w2 = test_array_make(r, type, 2, (int64_t[]){k, n}, TEST_ANY);
    p.b = test_array_make(r, type, 1, &n, TEST_ANY);
    p.y = test_array_make(r, type, 2, (int64_t[]){m, n}, TEST_PADDED);
    test_array *a[] = {&p.x, &p.w, &p.w2, &p.b};
    for (int i = 0; i < 4; i++) test_array_random(r, a[i], -1, 1);
    p.tol = test_gamma(k + 8, type) * (double)(k + 1);
    return p;
}
static void done(problem *p)
{
    test_array_intact(&p->y);
    test_array *a[] = {&p->x, &p->w, &p->w2, &p->b, &p->y};
    for (int i = 0; i < 5; i++) test_array_free(a[i]);
}
static double dot(const problem *p, const test_array *w, int64_t i, int64_t j)
{
    double s = 0;
    for (int64_t k = 0; k < p->k; k++) s += test_elem(p->x.t, i, k) * test_elem(w->t, k, j);
    return s;
}

static void gates(void **s)
{
    (void)s;
    test_rng r = test_rng_make(31);
    for (int t = 0; t < test_rounds(12); t++) {
        const strata_type type = t % 3 == 2 ? STRATA_F64 : STRATA_F32;
        problem p = make(&r, type, test_int(&r, 1, 50), test_int(&r, 1, 50), test_int(&r, 1, 40));
        test_problem("gate %d %s %lldx%lldx%lld", t, strata_type_name(type), (long long)p.m, (long long)p.n,
                     (long long)p.k);
        test_ok(h, RUN("y = silu(X @ W) * (X @ V) + b[n]", {"X", p.x.t}, {"W", p.w.t}, {"V", p.w2.t},
                       {"b", p.b.t}, {"y", p.y.t}));
        for (int64_t i = 0; i < p.m; i++)
            for (int64_t j = 0; j < p.n; j++) {
                const double a = dot(&p, &p.w, i, j), g = dot(&p, &p.w2, i, j);
                test_close(test_elem(p.y.t, i, j), silu(a) * g + test_elem(p.b.t, j),
                           8 * p.tol * (1 + fabs(a) + fabs(g)), "y[%lld,%lld]", (long long)i, (long long)j);
            }
        done(&p);
    }
}

/* row sums and largest magnitudes beside the output; softmax over the row of a product */
static void rows(void **s)
{
    (void)s;
    test_rng r = test_rng_make(32);
    for (int t = 0; t < test_rounds(12); t++) {
        const strata_type type = t % 3 == 2 ? STRATA_F64 : STRATA_F32;
        problem p = make(&r, type, test_int(&r, 1, 40), test_int(&r, 1, 60), test_int(&r, 1, 30));
        test_array sum = test_array_make(&r, type, 2, (int64_t[]){p.m, 1}, TEST_PACKED),
                   top = test_array_make(&r, type, 2, (int64_t[]){p.m, 1}, TEST_PACKED);
        test_problem("rows %d %s %lldx%lldx%lld", t, strata_type_name(type), (long long)p.m, (long long)p.n,
                     (long long)p.k);
        test_ok(h, RUN("z = X @ W + b[n]; e = exp(z - max(z)); y = e / sum(e); s = sum(z); a = absmax(z)",
                       {"X", p.x.t}, {"W", p.w.t}, {"b", p.b.t}, {"y", p.y.t}, {"s", sum.t}, {"a", top.t}));
        for (int64_t i = 0; i < p.m; i++) {
            double most = -INFINITY, total = 0, all = 0, large = 0;
            for (int64_t j = 0; j < p.n; j++) most = fmax(most, dot(&p, &p.w, i, j) + test_elem(p.b.t, j));
            for (int64_t j = 0; j < p.n; j++) {
                const double z = dot(&p, &p.w, i, j) + test_elem(p.b.t, j);
                total += exp(z - most), all += z, large = fmax(large, fabs(z));
            }
            for (int64_t j = 0; j < p.n; j++)
                test_close(
                    test_elem(p.y.t, i, j), exp(dot(&p, &p.w, i, j) + test_elem(p.b.t, j) - most) / total,
                    16 * p.tol + 140 * test_gamma(2, type), "y[%lld,%lld]", (long long)i, (long long)j);
            test_close(test_elem(sum.t, i, 0), all,
                       (p.tol + 140 * test_gamma(2, type) * (1 + large)) * (double)p.n, "sum");
            test_close(test_elem(top.t, i, 0), large, p.tol, "absmax");
        }
        done(&p);
        test_array_intact(&sum), test_array_intact(&top);
        test_array_free(&sum), test_array_free(&top);
    }
}

/* quantised output, and the bias gradient: a sum over the rows */
static void other_types(void **s)
{
    (void)s;
    test_rng r = test_rng_make(33);
    problem p = make(&r, STRATA_F32, 37, 45, 20);
    test_array q = test_array_make(&r, STRATA_I8, 2, (int64_t[]){37, 45}, TEST_PADDED),
               g = test_array_make(&r, STRATA_F32, 2, (int64_t[]){1, 45}, TEST_PACKED),
               mask = test_array_make(&r, STRATA_BOOL, 2, (int64_t[]){37, 45}, TEST_PACKED);
    test_ok(h, RUN("z = X @ W; q = sat_i8(rint(relu(z) * 20)); m = z > 0", {"X", p.x.t}, {"W", p.w.t},
                   {"q", q.t}, {"m", mask.t}));
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) {
            const double z = dot(&p, &p.w, i, j), v = z > 0 ? fmin(z * 20, 127) : 0;
            test_close(test_elem(q.t, i, j), v, 0.5 + 40 * p.tol, "q[%lld,%lld]", (long long)i, (long long)j);
            if (fabs(z) > p.tol) test_check((test_elem(mask.t, i, j) != 0) == (z > 0), "mask");
        }
    test_ok(h, strata_fused(h, "g = sum(X @ W)", OPS({"X", p.x.t}, {"W", p.w.t}, {"g", g.t}),
                            &(strata_fused_options){.axes = 1}));
    for (int64_t j = 0; j < p.n; j++) {
        double z = 0;
        for (int64_t i = 0; i < p.m; i++) z += dot(&p, &p.w, i, j);
        test_close(test_elem(g.t, 0, j), z, 37 * p.tol + 1e-5, "g[%lld]", (long long)j);
    }
    test_array_intact(&q), test_array_intact(&g), test_array_intact(&mask);
    test_array_free(&q), test_array_free(&g), test_array_free(&mask);
    done(&p);
}

static void loaders(void **s)
{
    (void)s;
    test_rng r = test_rng_make(34);
    for (int t = 0; t < test_rounds(8); t++) {
        const int64_t g = 4 + 4 * test_int(&r, 0, 3), k = g * test_int(&r, 1, 5), m = test_int(&r, 1, 20),
                      n = test_int(&r, 1, 30);
        problem p = make(&r, STRATA_F32, m, n, k);
        test_array q = test_array_make(&r, STRATA_I8, 2, (int64_t[]){k, n}, TEST_ANY),
                   scale = test_array_make(&r, STRATA_F32, 2, (int64_t[]){k / g, n}, TEST_ANY),
                   d = test_array_make(&r, STRATA_F32, 1, &k, TEST_ANY);
        char program[120];
        test_problem("loader %d %lldx%lldx%lld, groups of %lld", t, (long long)m, (long long)n, (long long)k,
                     (long long)g);
        test_array_random(&r, &q, -127, 127), test_array_random(&r, &scale, 0, 0.01),
            test_array_random(&r, &d, -1, 1);
        snprintf(program, sizeof program, "y = (X * d[k]) @ (Q * S[k / %lld, n]) + b[n]", (long long)g);
        test_ok(h, RUN(program, {"X", p.x.t}, {"d", d.t}, {"Q", q.t}, {"S", scale.t}, {"b", p.b.t},
                       {"y", p.y.t}));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double z = test_elem(p.b.t, j);
                for (int64_t c = 0; c < k; c++)
                    z += test_elem(p.x.t, i, c) * test_elem(d.t, c) * test_elem(q.t, c, j) *
                         test_elem(scale.t, c / g, j);
                test_close(test_elem(p.y.t, i, j), z, 4 * p.tol, "y[%lld,%lld]", (long long)i, (long long)j);
            }
        test_array_free(&q), test_array_free(&scale), test_array_free(&d);
        done(&p);
    }
    float a[24] = {0}, o[16];
    for (int i = 0; i < 16; i++) o[i] = 7;
    const strata_tensor A = strata_matrix(a, STRATA_F32, 4, 6, STRATA_ROW_MAJOR, 0), B = strata_transpose(A),
                        O = strata_matrix(o, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0);
    test_error(h, RUN("y = A @ (B * S[k/4, n])", {"A", A}, {"B", B}, {"S", O}, {"y", O}), STRATA_ERROR_SHAPE,
               "S");
    test_error(h, RUN("y = A @ (s[n] * 2)", {"A", A}, {"s", strata_vector(a, STRATA_F32, 4, 1)}, {"y", O}),
               STRATA_ERROR_SHAPE, "no matrix");
    test_error(h, RUN("y = A @ (B * gelv(B))", {"A", A}, {"B", B}, {"y", O}), STRATA_ERROR_SYNTAX, "gelv");
    test_error(h, RUN("y = A @ (B * A)", {"A", A}, {"B", B}, {"y", O}), STRATA_ERROR_SHAPE, "A");
    for (int i = 0; i < 16; i++) test_check(o[i] == 7, "the output was written");
}

/* Under a limit the lines run in chunks, with the same bits; batches too; and plans run on other addresses. */
static void chunks(void **s)
{
    (void)s;
    test_rng r = test_rng_make(35);
    problem p = make(&r, STRATA_F32, 3000, 70, 33);
    test_array again = test_array_make(&r, STRATA_F32, 2, (int64_t[]){3000, 70}, TEST_PADDED);
    static const char program[] = "z = X @ W; y = (z - mean(z)) * rsqrt(var(z) + 1e-5) * b[n] + c[m]";
    test_array c = test_array_make(&r, STRATA_F32, 1, &p.m, TEST_ANY);
    test_array_random(&r, &c, -1, 1);
    test_ok(h, RUN(program, {"X", p.x.t}, {"W", p.w.t}, {"b", p.b.t}, {"c", c.t}, {"y", p.y.t}));
    strata_plan *plan;
    const strata_operand *ops = OPS({"X", p.x.t}, {"W", p.w.t}, {"b", p.b.t}, {"c", c.t}, {"y", again.t});
    test_ok(h, strata_fused_plan(h, program, ops, NULL,
                                 &(strata_choice){.limit_workspace = true, .workspace_limit = 256 << 10},
                                 &plan));
    test_check(strata_plan_workspace(plan) < 600 << 10, "the plan needs %zu bytes",
               strata_plan_workspace(plan));
    test_check(strstr(strata_plan_describe(plan), "step 2") != NULL, "%s", strata_plan_describe(plan));
    void *data[5];
    for (int i = 0; i < 5; i++) data[i] = ops[i].tensor.data;
    test_ok(h, strata_plan_run(h, plan, data, NULL));
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++)
            test_close(test_elem(again.t, i, j), test_elem(p.y.t, i, j), 1e-4, "chunked y[%lld,%lld]",
                       (long long)i, (long long)j);
    strata_plan_destroy(plan);
    test_array_intact(&again);
    test_array_free(&again), test_array_free(&c);
    done(&p);
}

static void batches(void **s)
{
    (void)s;
    test_rng r = test_rng_make(36);
    test_array x = test_array_make(&r, STRATA_F32, 3, (int64_t[]){5, 9, 7}, TEST_ANY),
               w = test_array_make(&r, STRATA_F32, 2, (int64_t[]){7, 11}, TEST_ANY),
               v = test_array_make(&r, STRATA_F32, 3, (int64_t[]){5, 7, 11}, TEST_ANY),
               y = test_array_make(&r, STRATA_F32, 3, (int64_t[]){5, 9, 11}, TEST_PADDED);
    test_array_random(&r, &x, -1, 1), test_array_random(&r, &w, -1, 1), test_array_random(&r, &v, -1, 1);
    test_ok(h, RUN("y = (X @ W) * (X @ V) - X @ W", {"X", x.t}, {"W", w.t}, {"V", v.t}, {"y", y.t}));
    int64_t i[STRATA_MAX_RANK] = {0};
    do {
        double a = 0, b = 0;
        for (int64_t k = 0; k < 7; k++) {
            a += test_elem(x.t, i[0], i[1], k) * test_elem(w.t, k, i[2]);
            b += test_elem(x.t, i[0], i[1], k) * test_elem(v.t, i[0], k, i[2]);
        }
        test_close(test_get(&y.t, i), a * b - a, 1e-4, "y");
    } while (test_next(&y.t, i));
    test_array_intact(&y);
    test_array_free(&x), test_array_free(&w), test_array_free(&v), test_array_free(&y);
}

/* Every line of docs/epilogues.md: the epilogue gives what the product, stored, and then the same program give. */
static void listed(void **s)
{
    (void)s;
    static const char *const list[] = {
        "out = relu(acc)",
        "out = acc + b[n]",
        "out = relu(acc + b[n])",
        "mask = acc > 0; out = relu(acc)",
        "z = acc + b[n]; mask = z > 0; out = relu(z)",
        "out = gelu_tanh(acc)",
        "out = gelu(acc)",
        "out = gelu_tanh(acc + b[n])",
        "pre = acc; out = gelu_tanh(pre)",
        "pre = acc + b[n]; out = gelu_tanh(pre)",
        "out = in ? acc : 0",
        "t = tanh(0.7978845608 * (in + 0.044715 * in ** 3)); out = acc * (0.5 * (1 + t) + 0.5 * in * "
        "(1 - t * t) * 0.7978845608 * (1 + 0.134145 * in * in))",
        "out = acc * sa * sb",
        "out = acc * r[m] * b[n]",
        "out = acc + in"};
    test_rng r = test_rng_make(37);
    problem p = make(&r, STRATA_F32, 33, 50, 21);
    float sa = 0.5f, sb = 3, rows_[33];
    for (int i = 0; i < 33; i++) rows_[i] = (float)i / 16 - 1;
    float *in = malloc(33 * 50 * sizeof(float)), *t = malloc(33 * 50 * sizeof(float)),
          *y = malloc(33 * 50 * sizeof(float)), *pre = malloc(33 * 50 * sizeof(float)),
          *z = malloc(33 * 50 * sizeof(float));
    bool mask[33 * 50];
    const strata_tensor T = strata_matrix(t, STRATA_F32, 33, 50, STRATA_ROW_MAJOR, 0);
    strata_tensor IN = T, Y = T, P = T, Z = T;
    IN.data = in, Y.data = y, P.data = pre, Z.data = z;
    for (int i = 0; i < 33 * 50; i++) in[i] = (float)(i % 9 - 4) / 4;
    const strata_operand all[] = {{"b", p.b.t},
                                  {"mask", strata_matrix(mask, STRATA_BOOL, 33, 50, STRATA_ROW_MAJOR, 0)},
                                  {"pre", P},
                                  {"in", IN},
                                  {"sa", strata_point(&sa, STRATA_F32)},
                                  {"sb", strata_point(&sb, STRATA_F32)},
                                  {"r", strata_vector(rows_, STRATA_F32, 33, 1)}};
    test_ok(h, strata_gemm(h, STRATA_ONE, p.x.t, p.w.t, STRATA_ZERO, T, NULL));
    for (int k = 0; k < TEST_COUNT(list); k++) {
        strata_operand use[TEST_COUNT(all) + 3];
        int n = 0;
        for (int i = 0; i < TEST_COUNT(all); i++) {
            const char *at = list[k];
            const size_t len = strlen(all[i].name);
            bool in_text = false;
            for (; (at = strstr(at, all[i].name)); at += len)
                in_text |= (at == list[k] || !strchr("abcdefghijklmnopqrstuvwxyz_", at[-1])) &&
                           (!at[len] || !strchr("abcdefghijklmnopqrstuvwxyz_(", at[len]));
            if (in_text) use[n++] = all[i];
        }
        use[n] = (strata_operand){NULL, {0}};
        test_ok(h, strata_gemm(h, STRATA_ONE, p.x.t, p.w.t, STRATA_ZERO, Y,
                               &(strata_gemm_options){.epilogue = list[k], .operands = use}));
        use[n++] = (strata_operand){"acc", T};
        use[n++] = (strata_operand){"out", Z};
        use[n] = (strata_operand){NULL, {0}};
        test_ok(h, strata_fused(h, list[k], use, NULL));
        for (int i = 0; i < 33 * 50; i++)
            test_close(y[i], z[i], 1e-5 * (1 + fabs(z[i])), "%s: %d", list[k], i);
    }
    free(in), free(t), free(y), free(pre), free(z);
    done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gates),       cmocka_unit_test(rows),
                                       cmocka_unit_test(other_types), cmocka_unit_test(loaders),
                                       cmocka_unit_test(chunks),      cmocka_unit_test(batches),
                                       cmocka_unit_test(listed)};
    return cmocka_run_group_tests(tests, setup, teardown) + test_lower_levels();
}
