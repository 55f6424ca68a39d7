/* SPDX-License-Identifier: Apache-2.0 */
/* test_fused_packed.c - programs with products in one pass over the packed kernels: several products, rows as a whole, factors evaluated while they are
 * packed (4-bit weights with scales and zero points of groups, blocks of scales, rows picked by a list), masks of bits. Each plan is asked for by name,
 * so that no other form can answer (a GPU has other forms of the same programs); against sums in double precision. */
#include <math.h>
#include <strata.h>
#include "levels.h"
#include "handle.h"
#include "programs.h"
#include "support.h"
#include <stdlib.h>
#include <string.h>

/* Runs the program in the packed form alone. */
static void packed(const char *program, const strata_operand *o)
{
    strata_plan *plan;
    void *data[24];
    int n = 0;
    if (on_gpu()) {
        test_ok(h, strata_fused(h, program, o, NULL));
        return;
    }
    for (; o[n].name; n++) data[n] = o[n].tensor.data;
    test_ok(h, strata_fused_plan(h, program, o, NULL, &(strata_choice){.kernel = "fused_packed"}, &plan));
    test_check(strstr(strata_plan_describe(plan), "in one pass") != NULL, "%s", strata_plan_describe(plan));
    test_ok(h, strata_plan_run(h, plan, data, NULL));
    strata_plan_destroy(plan);
}

typedef struct problem {
    int64_t m, n, k;
    strata_type type;
    test_array x, w, v, b, y;
    double tol, *xw, *xv; /* bound of an element of a product; the products */
} problem;

static double *product(const test_array *x, const test_array *w, int64_t m, int64_t n, int64_t k)
{
    double *c = calloc((size_t)(m * n), sizeof *c);
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            const double a = test_elem(x->t, i, p);
            for (int64_t j = 0; j < n; j++) c[i * n + j] += a * test_elem(w->t, p, j);
        }
    return c;
}

static problem make(test_rng *r, strata_type type, strata_type out, int64_t m, int64_t n, int64_t k)
{
    problem p = {.m = m, .n = n, .k = k, .type = type};
    p.x = test_array_make(r, type, 2, (int64_t[]){m, k}, TEST_ANY);
    p.w = test_array_make(r, type, 2, (int64_t[]){k, n}, TEST_ANY);
    p.v = test_array_make(r, type, 2, (int64_t[]){k, n}, TEST_ANY);
    p.b = test_array_make(r, type == STRATA_F64 ? STRATA_F64 : STRATA_F32, 1, &n, TEST_ANY);
    p.y =
        test_array_make(r, out, 2, (int64_t[]){m, n}, TEST_PADDED | (test_int(r, 0, 1) ? TEST_PERMUTED : 0));
    test_array *a[] = {&p.x, &p.w, &p.v, &p.b};
    const double top = type == STRATA_I8 || type == STRATA_U8 ? 60 : 1;
    for (int i = 0; i < 4; i++) test_array_random(r, a[i], type == STRATA_U8 && i < 3 ? 0 : -top, top);
    p.xw = product(&p.x, &p.w, m, n, k);
    p.xv = product(&p.x, &p.v, m, n, k);
    p.tol = top == 1 ? test_gamma(k + 8, type == STRATA_F64 ? type : STRATA_F32) * (double)(k + 1)
                     : 1e-6 * top * top * (double)k;
    return p;
}
static void done(problem *p)
{
    test_array_intact(&p->y);
    test_array *a[] = {&p->x, &p->w, &p->v, &p->b, &p->y};
    for (int i = 0; i < 5; i++) test_array_free(a[i]);
    free(p->xw), free(p->xv);
}

/* shapes: few rows (threads share the columns) and many, one block of k and several */
static void sizes(test_rng *r, int t, int64_t *m, int64_t *n, int64_t *k)
{
    *m = t % 3 == 0 ? test_int(r, 1, 8) : t % 3 == 1 ? test_int(r, 9, 60) : test_int(r, 250, 420);
    *n = test_int(r, 1, t % 4 ? 90 : 300);
    *k = t % 5 == 4 ? test_int(r, 513, 1100) : test_int(r, 1, 100);
}

static void gates(void **s)
{
    (void)s;
    test_rng r = test_rng_make(61);
    static const strata_type types[] = {STRATA_F32, STRATA_F64, STRATA_BF16,
                                        STRATA_F16, STRATA_I8,  STRATA_U8};
    for (int t = 0; t < test_rounds(24); t++) {
        const strata_type type = types[t % 6];
        int64_t m, n, k;
        sizes(&r, t, &m, &n, &k);
        problem p = make(&r, type, type == STRATA_F64 ? type : STRATA_F32, m, n, k);
        const double scale = type == STRATA_I8 || type == STRATA_U8 ? 1e-3 : 1;
        test_problem("gate %d %s %lldx%lldx%lld", t, strata_type_name(type), (long long)m, (long long)n,
                     (long long)k);
        packed(scale == 1 ? "y = silu(X @ W) * (X @ V) + b[n]" : "y = silu(0.001 * (X @ W)) * (X @ V) + b[n]",
               OPS({"X", p.x.t}, {"W", p.w.t}, {"V", p.v.t}, {"b", p.b.t}, {"y", p.y.t}));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const double a = scale * p.xw[i * n + j], g = p.xv[i * n + j];
                test_close(test_elem(p.y.t, i, j), silu(a) * g + test_elem(p.b.t, j),
                           8 * p.tol * (1 + fabs(a) + fabs(g)), "y[%lld,%lld]", (long long)i, (long long)j);
            }
        done(&p);
    }
}

static void rows(void **s)
{
    (void)s;
    test_rng r = test_rng_make(62);
    for (int t = 0; t < test_rounds(20); t++) {
        const strata_type type = t % 4 == 3 ? STRATA_F64 : STRATA_F32;
        int64_t m, n, k;
        sizes(&r, t, &m, &n, &k);
        problem p = make(&r, type, type, m, n, k);
        test_array sum = test_array_make(&r, type, 2, (int64_t[]){m, 1}, TEST_PACKED),
                   top = test_array_make(&r, type, 1, (int64_t[]){m}, TEST_PACKED);
        test_problem("rows %d %s %lldx%lldx%lld", t, strata_type_name(type), (long long)m, (long long)n,
                     (long long)k);
        packed("z = X @ W + b[n]; e = exp(z - max(z)); y = e / sum(e); s = sum(z); a[m] = absmax(z)",
               OPS({"X", p.x.t}, {"W", p.w.t}, {"b", p.b.t}, {"y", p.y.t}, {"s", sum.t}, {"a", top.t}));
        for (int64_t i = 0; i < m; i++) {
            double most = -INFINITY, total = 0, all = 0, large = 0;
            for (int64_t j = 0; j < n; j++) most = fmax(most, p.xw[i * n + j] + test_elem(p.b.t, j));
            for (int64_t j = 0; j < n; j++) {
                const double z = p.xw[i * n + j] + test_elem(p.b.t, j);
                total += exp(z - most), all += z, large = fmax(large, fabs(z));
            }
            for (int64_t j = 0; j < n; j++)
                test_close(test_elem(p.y.t, i, j), exp(p.xw[i * n + j] + test_elem(p.b.t, j) - most) / total,
                           16 * p.tol + 140 * test_gamma(2, type), "y[%lld,%lld]", (long long)i,
                           (long long)j);
            test_close(test_elem(sum.t, i, 0), all,
                       (p.tol + 140 * test_gamma(2, type) * (1 + large)) * (double)n, "sum");
            test_close(test_elem(top.t, i), large, p.tol, "absmax");
        }
        test_array_intact(&sum), test_array_intact(&top);
        test_array_free(&sum), test_array_free(&top);
        done(&p);
    }
}

/* 4-bit elements at random in a matrix of random order, read here by hand */
typedef struct halves {
    uint8_t *p;
    strata_tensor t;
} halves;
static halves halves_make(test_rng *r, strata_type type, int64_t rows, int64_t cols)
{
    const strata_order order = test_int(r, 0, 1) ? STRATA_ROW_MAJOR : STRATA_COL_MAJOR;
    halves q = {malloc((size_t)((rows + 1) * (cols + 1))), {0}};
    for (int64_t i = 0; i < (rows + 1) * (cols + 1); i++) q.p[i] = (uint8_t)test_int(r, 0, 255);
    q.t = strata_matrix(q.p, type, rows, cols, order, 0);
    return q;
}
static int half(const halves *q, int64_t i, int64_t j)
{
    const int64_t at = i * q->t.stride[0] + j * q->t.stride[1];
    const int v = q->p[at / 2] >> (at & 1) * 4 & 15;
    return q->t.type == STRATA_I4 && v > 7 ? v - 16 : v;
}

static void weights(void **s)
{
    (void)s;
    test_rng r = test_rng_make(63);
    for (int t = 0; t < test_rounds(24); t++) {
        const int64_t g = t % 3 == 2 ? 128 : 8 * test_int(&r, 1, 5),
                      k = g * test_int(&r, 1, t % 3 == 2 ? 6 : 9),
                      m = t % 2 ? test_int(&r, 1, 9) : test_int(&r, 1, 300), n = test_int(&r, 1, 150);
        const strata_type type = t % 4 == 3 ? STRATA_BF16 : STRATA_F32;
        problem p = make(&r, type, STRATA_F32, m, n, k);
        halves q = halves_make(&r, t & 1 ? STRATA_I4 : STRATA_U4, k, n),
               z = halves_make(&r, t & 1 ? STRATA_I4 : STRATA_U4, k / g, n);
        test_array scale = test_array_make(&r, STRATA_F32, 2, (int64_t[]){k / g, n}, TEST_ANY),
                   d = test_array_make(&r, STRATA_F32, 1, &k, TEST_ANY);
        test_array_random(&r, &scale, -0.1, 0.1), test_array_random(&r, &d, -1, 1);
        char program[160];
        test_problem("weights %d %s %lldx%lldx%lld groups of %lld", t, strata_type_name(type), (long long)m,
                     (long long)n, (long long)k, (long long)g);
        const bool scaled = t % 5 == 1;
        snprintf(program, sizeof program, "y = %s @ ((Q - Z[k/%lld, n]) * S[k / %lld, n]) + b[n]",
                 scaled ? "(X * d[k])" : "X", (long long)g, (long long)g);
        strata_operand o[8] = {{"X", p.x.t},   {"Q", q.t},   {"Z", z.t},
                               {"S", scale.t}, {"b", p.b.t}, {"y", p.y.t}};
        if (scaled) o[6] = (strata_operand){"d", d.t};
        packed(program, o);
        /* values of a factor are rounded to the other's type where that is short */
        const double round = type == STRATA_BF16 ? (scaled ? 0x1p-7 : 0x1p-8) : 0;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double want = test_elem(p.b.t, j), size = 0;
                for (int64_t c = 0; c < k; c++) {
                    const double a = test_elem(p.x.t, i, c) * (scaled ? test_elem(d.t, c) : 1) *
                                     (half(&q, c, j) - half(&z, c / g, j)) * test_elem(scale.t, c / g, j);
                    want += a, size += fabs(a);
                }
                test_close(test_elem(p.y.t, i, j), want, 4 * p.tol + round * size + 1e-6 * size,
                           "y[%lld,%lld]", (long long)i, (long long)j);
            }
        /* the same from the cached plan, whatever form it takes */
        test_array_set(&p.y, 0);
        test_ok(h, strata_fused(h, program, o, NULL));
        test_check(test_elem(p.y.t, 0, 0) != 0 || k < 3, "nothing was written");
        test_array_free(&scale), test_array_free(&d);
        free(q.p), free(z.p);
        done(&p);
    }
}

/* scales of blocks, of 8-bit floats and of integers */
static void blocks(void **s)
{
    (void)s;
    test_rng r = test_rng_make(64);
    for (int t = 0; t < test_rounds(8); t++) {
        const int64_t g = 16, c = t & 1 ? 8 : 32, m = test_int(&r, 1, t < 4 ? 10 : 280),
                      n = c * test_int(&r, 1, 5), k = g * test_int(&r, 1, 8);
        test_array x = test_array_make(&r, STRATA_F32, 2, (int64_t[]){m, k}, TEST_ANY),
                   q = test_array_make(&r, t & 2 ? STRATA_F8E4M3 : STRATA_I8, 2, (int64_t[]){k, n}, TEST_ANY),
                   scale = test_array_make(&r, STRATA_F32, 2, (int64_t[]){k / g, n / c}, TEST_ANY),
                   xs = test_array_make(&r, STRATA_F32, 2, (int64_t[]){m, k / g}, TEST_ANY),
                   y = test_array_make(&r, STRATA_F32, 2, (int64_t[]){m, n}, TEST_PADDED);
        test_array_random(&r, &x, -1, 1), test_array_random(&r, &q, -8, 8),
            test_array_random(&r, &scale, -1, 1), test_array_random(&r, &xs, -1, 1);
        char program[120];
        snprintf(program, sizeof program, "y = (X * x[m, k/%lld]) @ (Q * S[k/%lld, n / %lld])", (long long)g,
                 (long long)g, (long long)c);
        test_problem("blocks %d %lldx%lldx%lld", t, (long long)m, (long long)n, (long long)k);
        const strata_operand *o = OPS({"X", x.t}, {"x", xs.t}, {"Q", q.t}, {"S", scale.t}, {"y", y.t});
        for (int form = 0; form < 2; form++) {
            if (form && on_gpu()) break;
            if (form) { /* the same as steps */
                strata_plan *plan;
                void *data[5];
                for (int i = 0; i < 5; i++) data[i] = o[i].tensor.data;
                test_array_set(&y, 0);
                test_ok(h, strata_fused_plan(h, program, o, NULL, &(strata_choice){.kernel = "fused_steps"},
                                             &plan));
                test_ok(h, strata_plan_run(h, plan, data, NULL));
                strata_plan_destroy(plan);
            } else {
                packed(program, o);
            }
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    double want = 0, size = 0;
                    for (int64_t p = 0; p < k; p++) {
                        const double a = test_elem(x.t, i, p) * test_elem(xs.t, i, p / g) *
                                         test_elem(q.t, p, j) * test_elem(scale.t, p / g, j / c);
                        want += a, size += fabs(a);
                    }
                    test_close(test_elem(y.t, i, j), want, 1e-5 * size + 1e-30, "y[%lld,%lld]", (long long)i,
                               (long long)j);
                }
        }
        test_array_intact(&y);
        test_array_free(&x), test_array_free(&q), test_array_free(&scale), test_array_free(&xs),
            test_array_free(&y);
    }
}

static void picked(void **s)
{
    (void)s;
    if (on_gpu()) { /* lists that pick rows are read by the packed kernels: a GPU says so */
        float a[64] = {0};
        int32_t list[4] = {0};
        const strata_tensor A = strata_matrix(a, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0);
        test_error(h,
                   strata_fused(h, "y = A[i[m], k] @ B",
                                OPS({"A", A}, {"B", A}, {"i", strata_vector(list, STRATA_I32, 4, 1)},
                                    {"y", strata_matrix(a + 16, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0)}),
                                NULL),
                   STRATA_ERROR_UNSUPPORTED, "list");
        return;
    }
    test_rng r = test_rng_make(65);
    for (int t = 0; t < test_rounds(16); t++) {
        int64_t m, n, k;
        sizes(&r, t, &m, &n, &k);
        const int64_t from = test_int(&r, 1, 40);
        const strata_type type = t % 4 == 3 ? STRATA_BF16 : STRATA_F32;
        problem p = make(&r, type, STRATA_F32, m, n, k);
        test_array x = test_array_make(&r, type, 2, (int64_t[]){from, k}, TEST_ANY),
                   idx = test_array_make(&r, t & 1 ? STRATA_I64 : STRATA_I32, 1, &m, TEST_ANY);
        test_array_random(&r, &x, -1, 1);
        test_array_integers(&r, &idx, 0, from - 1);
        test_problem("picked %d %s %lldx%lldx%lld of %lld", t, strata_type_name(type), (long long)m,
                     (long long)n, (long long)k, (long long)from);
        const bool twice = t % 3 == 1;
        packed(twice ? "y = (X[idx[m], k] * 2) @ W + b[n]" : "y = X[idx[m], k] @ W + b[n]",
               OPS({"X", x.t}, {"idx", idx.t}, {"W", p.w.t}, {"b", p.b.t}, {"y", p.y.t}));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double want = 0;
                for (int64_t c = 0; c < k; c++)
                    want += (twice + 1) * test_elem(x.t, (int64_t)test_elem(idx.t, i), c) *
                            test_elem(p.w.t, c, j);
                test_close(test_elem(p.y.t, i, j), want + test_elem(p.b.t, j), 4 * p.tol, "y[%lld,%lld]",
                           (long long)i, (long long)j);
            }
        if (m > 3) {
            const int64_t three[STRATA_MAX_RANK] = {3};
            test_put(&idx.t, three, (double)from);
            test_error(h,
                       strata_fused(h, "y = X[idx[m], k] @ W + b[n]",
                                    OPS({"X", x.t}, {"idx", idx.t}, {"W", p.w.t}, {"b", p.b.t}, {"y", p.y.t}),
                                    NULL),
                       STRATA_ERROR_ARGUMENT, "element 3");
        }
        test_array_free(&x), test_array_free(&idx);
        done(&p);
    }
}

/* RELU_AUX and DRELU of cuBLASLt with eight elements a byte */
static void masks(void **s)
{
    (void)s;
    test_rng r = test_rng_make(66);
    for (int t = 0; t < test_rounds(16); t++) {
        int64_t m, n, k;
        sizes(&r, t, &m, &n, &k);
        problem p = make(&r, STRATA_F32, STRATA_F32, m, n, k);
        const bool by_rows = t & 1;
        const int64_t ld = ((by_rows ? n : m) + 7) / 8 * 8;
        uint8_t *bits = calloc((size_t)(ld / 8 * (by_rows ? m : n)), 1);
        const strata_tensor mask =
            strata_matrix(bits, STRATA_BIT, m, n, by_rows ? STRATA_ROW_MAJOR : STRATA_COL_MAJOR, ld);
        test_problem("mask %d %lldx%lldx%lld by %s", t, (long long)m, (long long)n, (long long)k,
                     by_rows ? "rows" : "columns");
        packed("z = X @ W + b[n]; mask = z > 0; y = relu(z)",
               OPS({"X", p.x.t}, {"W", p.w.t}, {"b", p.b.t}, {"mask", mask}, {"y", p.y.t}));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t at = by_rows ? i * ld + j : i + j * ld;
                test_check((bits[at >> 3] >> (at & 7) & 1) == (test_elem(p.y.t, i, j) > 0), "mask[%lld,%lld]",
                           (long long)i, (long long)j);
            }
        packed("y = mask ? X @ V : 0", OPS({"X", p.x.t}, {"V", p.v.t}, {"mask", mask}, {"y", p.y.t}));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t at = by_rows ? i * ld + j : i + j * ld;
                test_close(test_elem(p.y.t, i, j), bits[at >> 3] >> (at & 7) & 1 ? p.xv[i * n + j] : 0, p.tol,
                           "y[%lld,%lld]", (long long)i, (long long)j);
            }
        free(bits);
        done(&p);
    }
}

/* the same bits whatever the number of threads, and whatever rows stand beside a row */
static void same_bits(void **s)
{
    (void)s;
    if (on_gpu()) return; /* of the packed form's own threads */
    test_rng r = test_rng_make(67);
    problem p = make(&r, STRATA_F32, STRATA_F32, 400, 130, 600);
    float *a = malloc(400 * 130 * 4), *b = malloc(400 * 130 * 4);
    static const char program[] = "z = (X @ W) * (X @ V); y = z - mean(z)";
    for (int threads = 1; threads <= 3; threads++) {
        float *to = threads == 1 ? a : b;
        const strata_tensor y = strata_matrix(to, STRATA_F32, 400, 130, STRATA_ROW_MAJOR, 0);
        test_ok(h, strata_set_threads(h, threads));
        packed(program, OPS({"X", p.x.t}, {"W", p.w.t}, {"V", p.v.t}, {"y", y}));
        test_check(threads == 1 || !memcmp(a, b, 400 * 130 * 4), "%d threads give other bits", threads);
    }
    test_ok(h, strata_set_threads(h, 0));
    const strata_tensor y = strata_matrix(b, STRATA_F32, 3, 130, STRATA_ROW_MAJOR, 0);
    packed(program, OPS({"X", strata_slice(p.x.t, 0, 7, 3, 1)}, {"W", p.w.t}, {"V", p.v.t}, {"y", y}));
    test_check(!memcmp(a + 7 * 130, b, 3 * 130 * 4), "three rows alone have other bits");
    free(a), free(b);
    test_array_set(&p.y, 0);
    done(&p);
}

static void batches(void **s)
{
    (void)s;
    test_rng r = test_rng_make(68);
    test_array x = test_array_make(&r, STRATA_F32, 3, (int64_t[]){5, 9, 7}, TEST_ANY),
               w = test_array_make(&r, STRATA_F32, 2, (int64_t[]){7, 11}, TEST_ANY),
               v = test_array_make(&r, STRATA_F32, 3, (int64_t[]){5, 7, 11}, TEST_ANY),
               c = test_array_make(&r, STRATA_F32, 3, (int64_t[]){5, 1, 11}, TEST_ANY),
               y = test_array_make(&r, STRATA_F32, 3, (int64_t[]){5, 9, 11}, TEST_PADDED);
    test_array *in[] = {&x, &w, &v, &c};
    for (int i = 0; i < 4; i++) test_array_random(&r, in[i], -1, 1);
    packed("y = (X @ W) * (X @ (V * 2)) - c",
           OPS({"X", x.t}, {"W", w.t}, {"V", v.t}, {"c", c.t}, {"y", y.t}));
    int64_t i[STRATA_MAX_RANK] = {0};
    do {
        double a = 0, b = 0;
        for (int64_t k = 0; k < 7; k++) {
            a += test_elem(x.t, i[0], i[1], k) * test_elem(w.t, k, i[2]);
            b += 2 * test_elem(x.t, i[0], i[1], k) * test_elem(v.t, i[0], k, i[2]);
        }
        test_close(test_get(&y.t, i), a * b - test_elem(c.t, i[0], 0, i[2]), 1e-4, "y");
    } while (test_next(&y.t, i));
    test_array_intact(&y);
    for (int k = 0; k < 4; k++) test_array_free(in[k]);
    test_array_free(&y);
}

static void refused(void **s)
{
    (void)s;
    float a[64] = {0}, o[64];
    int32_t idx[4] = {0};
    const strata_tensor A = strata_matrix(a, STRATA_F32, 4, 6, STRATA_ROW_MAJOR, 0), B = strata_transpose(A),
                        O = strata_matrix(o, STRATA_F32, 4, 4, STRATA_ROW_MAJOR, 0),
                        I = strata_vector(idx, STRATA_I32, 4, 1);
#define TRY(program, ...) strata_fused(h, program, OPS({"A", A}, {"B", B}, {"y", O}, __VA_ARGS__), NULL)
    test_error(h, TRY("y = A @ (B * S[k/4, j])", {"S", O}), STRATA_ERROR_SYNTAX, "column 16", "[k/g, n]",
               "^");
    test_error(h, TRY("y = A @ (B * S[k/1, n])", {"S", O}), STRATA_ERROR_SYNTAX, "column 16");
    test_error(h, TRY("y = A @ (B * S[k/2, n/2] * T[k/3, n])", {"S", O}, {"T", O}), STRATA_ERROR_SYNTAX,
               "groups of 2 and of 3");
    test_error(h, TRY("y = A[i[m], k] @ B", {"I", I}), STRATA_ERROR_SYNTAX, "column 7", "'i'");
    test_error(h, TRY("y = A[I[m], k] @ B", {"I", strata_vector(a, STRATA_F32, 4, 1)}), STRATA_ERROR_TYPE,
               "i32 or i64");
    test_error(h, TRY("y = (A[I[m], k] + A) @ B", {"I", I}), STRATA_ERROR_SYNTAX, "A has an index elsewhere");
    test_error(h, TRY("y = A @ (B * s[k]", {"s", I}), STRATA_ERROR_SYNTAX, "column");
    test_error(h, TRY("y = A @ (B * S[k])", {"S", O}), STRATA_ERROR_SHAPE, "rank 1");
    test_error(h, TRY("y = A @ (B * S[k/4, n])", {"S", O}), STRATA_ERROR_SHAPE,
               "S has 4 rows for groups of 4", "6 must be a multiple of 4");
    /* one k is no group of eight, on either side */
    const strata_tensor K = strata_matrix(a, STRATA_F32, 4, 1, STRATA_ROW_MAJOR, 0), L = strata_transpose(K);
    test_error(h,
               strata_fused(h, "y = (A * S[m, k/8]) @ (B * T[k/8, n])",
                            OPS({"A", K}, {"B", L}, {"y", O}, {"S", K}, {"T", L}), NULL),
               STRATA_ERROR_SHAPE, "1 must be a multiple of 8");
    (void)o;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gates),   cmocka_unit_test(rows),      cmocka_unit_test(weights),
        cmocka_unit_test(blocks),  cmocka_unit_test(picked),    cmocka_unit_test(masks),
        cmocka_unit_test(batches), cmocka_unit_test(same_bits), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, setup, teardown) + test_lower_levels();
}
