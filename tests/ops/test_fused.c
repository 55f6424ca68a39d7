/* SPDX-License-Identifier: Apache-2.0 */
/* test_fused.c - strata_fused: broadcasting over random ranks, types and views; reductions over every set of axes; values updated in
 * place; positions; products; refusals; empty dims; same bits for any number of threads. */
#include <math.h>
#include <strata.h>
#include "levels.h"
#include "handle.h"
#include "support.h"

#define RUN(program, axes_, ...)                                                 \
    strata_fused(h, program, (const strata_operand[]){__VA_ARGS__, {NULL, {0}}}, \
                 &(strata_fused_options){.axes = axes_})

/* element of t for index idx of a space of `rank` dims: right-aligned, dims of 1 repeat */
static double wide(const strata_tensor *t, const int64_t *idx, int rank)
{
    int64_t i[STRATA_MAX_RANK] = {0};
    for (int d = 0; d < t->rank; d++) i[d] = t->dim[d] == 1 ? 0 : idx[rank - t->rank + d];
    return test_get(t, i);
}

/* a view that broadcasts to dim: leading dims dropped, others 1 at random */
static test_array part(test_rng *r, strata_type type, int rank, const int64_t *dim)
{
    const int drop = (int)test_int(r, 0, rank);
    int64_t d[STRATA_MAX_RANK];
    for (int i = drop; i < rank; i++) d[i - drop] = test_chance(r, 0.3) ? 1 : dim[i];
    return test_array_make(r, type, rank - drop, d, TEST_ANY | TEST_BROADCAST);
}

static void maps(void **s)
{
    (void)s;
    test_rng r = test_rng_make(1);
    static const strata_type types[] = {STRATA_F32, STRATA_F32, STRATA_F64, STRATA_I32, STRATA_I8, STRATA_U8};
    for (int k = 0; k < test_rounds(300); k++) {
        const int rank = (int)test_int(&r, 0, 6);
        int64_t dim[STRATA_MAX_RANK], idx[STRATA_MAX_RANK] = {0};
        for (int d = 0; d < rank; d++) dim[d] = test_int(&r, 1, rank < 3 ? 60 : 5);
        if (rank && test_chance(&r, 0.1)) dim[test_int(&r, 0, rank - 1)] = test_int(&r, 100, 300);
        strata_type t[3];
        for (int i = 0; i < 3; i++) t[i] = types[test_int(&r, 0, TEST_COUNT(types) - 1)];
        const strata_type out = test_chance(&r, 0.3) ? STRATA_F64 : STRATA_F32;
        bool f64 = out == STRATA_F64;
        for (int i = 0; i < 3; i++) f64 |= t[i] == STRATA_F64;
        test_problem("map %d rank %d %s %s %s -> %s", k, rank, strata_type_name(t[0]), strata_type_name(t[1]),
                     strata_type_name(t[2]), strata_type_name(out));
        test_array a = part(&r, t[0], rank, dim), b = part(&r, t[1], rank, dim),
                   c = part(&r, t[2], rank, dim);
        test_array y = test_array_make(&r, out, rank, dim, TEST_ANY),
                   z = test_array_make(&r, STRATA_I32, rank, dim, TEST_ANY);
        test_array_integers(&r, &a, 0, 9), test_array_random(&r, &b, 1, 3), test_array_random(&r, &c, 0, 2);
        test_ok(h, RUN("t = a * b; z = select(a > 4, a, -a) * 3; y = t + c", 0, {"a", a.t}, {"b", b.t},
                       {"c", c.t}, {"y", y.t}, {"z", z.t}));
        do {
            const double av = wide(&a.t, idx, rank), bv = wide(&b.t, idx, rank), cv = wide(&c.t, idx, rank);
            const double u = f64 ? 0x1p-53 : 0x1p-24;
            test_close(test_get(&y.t, idx), av * bv + cv,
                       (2 * u + (out == STRATA_F32 ? 0x1p-24 : 0)) * (fabs(av * bv) + fabs(cv)), "y");
            test_close(test_get(&z.t, idx), (av > 4 ? av : -av) * 3, 0, "z");
        } while (test_next(&y.t, idx));
        test_array_intact(&y), test_array_intact(&z);
        test_array_free(&a), test_array_free(&b), test_array_free(&c), test_array_free(&y),
            test_array_free(&z);
    }
}

/* Sums of a line: what the program below computes, in double precision. */
typedef struct line {
    double sum, mag, lo, hi, mean, var, prod;
    int64_t n;
} line;
static line line_of(const strata_tensor *x, const strata_tensor *w, const int64_t *idx, uint32_t axes)
{
    line l = {0, 0, INFINITY, -INFINITY, 0, 0, 1, 0};
    for (int pass = 0; pass < 2; pass++) {
        int64_t i[STRATA_MAX_RANK] = {0};
        do {
            bool in = true;
            for (int d = 0; d < x->rank; d++)
                if (!(axes >> d & 1) && i[d] != idx[d]) in = false;
            if (!in) continue;
            const double v = test_get(x, i), p = v * wide(w, i, x->rank);
            if (pass) {
                l.var += (v - l.mean) * (v - l.mean);
                continue;
            }
            l.n++;
            l.sum += p, l.mag += fabs(p), l.mean += v;
            l.lo = fmin(l.lo, v), l.hi = fmax(l.hi, v);
            l.prod *= v;
        } while (test_next(x, i));
        *(pass ? &l.var : &l.mean) /= (double)l.n;
    }
    return l;
}

static void reductions(void **s)
{
    (void)s;
    test_rng r = test_rng_make(6);
    for (int k = 0; k < test_rounds(250); k++) {
        const int rank = (int)test_int(&r, 1, 5);
        int64_t dim[STRATA_MAX_RANK], lines[STRATA_MAX_RANK], idx[STRATA_MAX_RANK] = {0};
        uint32_t axes = (uint32_t)test_int(&r, 0, (1 << rank) - 1), used = axes ? axes : 1u << (rank - 1);
        for (int d = 0; d < rank; d++) {
            dim[d] = test_int(&r, 1, rank < 3 ? 40 : 4);
            lines[d] = used >> d & 1 ? 1 : dim[d];
        }
        const strata_type type = k % 3 == 2 ? STRATA_F64 : STRATA_F32;
        test_problem("reduction %d rank %d axes %#x %s", k, rank, axes, strata_type_name(type));
        test_array x = test_array_make(&r, type, rank, dim, TEST_ANY), w = part(&r, type, rank, dim);
        test_array o[6], y = test_array_make(&r, type, rank, dim, TEST_ANY);
        for (int i = 0; i < 6; i++) o[i] = test_array_make(&r, type, rank, lines, TEST_ANY);
        test_array_random(&r, &x, -1.2, 1.5), test_array_random(&r, &w, -1, 1);
        test_ok(h, RUN("s = sum(x * w); m = mean(x); v = var(x); lo = min(x); hi = max(x); p = prod(x); y = "
                       "(x - m) * rsqrt(v + 1e-2) + lo",
                       axes, {"x", x.t}, {"w", w.t}, {"s", o[0].t}, {"m", o[1].t}, {"v", o[2].t},
                       {"lo", o[3].t}, {"hi", o[4].t}, {"p", o[5].t}, {"y", y.t}));
        line *ref = calloc((size_t)strata_count(y.t), sizeof *ref);
        const double u = test_unit(type);
        do {
            int64_t at[STRATA_MAX_RANK], number = 0;
            bool head = true;
            for (int d = 0; d < rank; d++) {
                at[d] = used >> d & 1 ? 0 : idx[d];
                head = head && at[d] == idx[d];
                number = number * dim[d] + at[d];
            }
            line *l = &ref[number];
            if (head) {
                *l = line_of(&x.t, &w.t, at, used);
                const double n = (double)l->n;
                test_close(test_get(&o[0].t, at), l->sum, test_gamma(l->n + 2, type) * l->mag, "sum");
                test_close(test_get(&o[1].t, at), l->mean, test_gamma(l->n + 2, type) * 1.5, "mean");
                test_close(test_get(&o[2].t, at), l->var, u * (n + 8) * (l->var + 4), "var");
                test_close(test_get(&o[3].t, at), l->lo, 0, "min");
                test_close(test_get(&o[4].t, at), l->hi, 0, "max");
                test_close(test_get(&o[5].t, at), l->prod,
                           test_gamma(l->n + 2, type) * fabs(l->prod) + (type == STRATA_F64 ? 0 : 1e-38),
                           "prod");
            }
            const double inv = 1 / sqrt(l->var + 1e-2), d = test_get(&x.t, idx) - l->mean;
            test_close(test_get(&y.t, idx), d * inv + l->lo,
                       u * ((double)l->n + 12) * (3 * inv + 4 * inv * inv * inv * fabs(d) + 2), "y");
        } while (test_next(&y.t, idx));
        for (int i = 0; i < 6; i++) test_array_intact(&o[i]), test_array_free(&o[i]);
        test_array_intact(&y);
        free(ref);
        test_array_free(&x), test_array_free(&w), test_array_free(&y);
    }
}

/* small whole numbers survive every type */
static void types(void **s)
{
    (void)s;
    static const strata_type all[] = {STRATA_F64,    STRATA_F32, STRATA_F16, STRATA_BF16, STRATA_F8E4M3,
                                      STRATA_F8E5M2, STRATA_I64, STRATA_I32, STRATA_I8,   STRATA_U8};
    for (int k = 0; k < TEST_COUNT(all); k++) {
        float x[37], y[37];
        uint64_t mid[37 * 2];
        for (int i = 0; i < 37; i++) x[i] = (float)(i % 8 + 1), y[i] = 0;
        test_problem("type %s", strata_type_name(all[k]));
        strata_tensor X = strata_vector(x, STRATA_F32, 37, 1), Y = strata_vector(y, STRATA_F32, 37, 1),
                      M = strata_vector(mid, all[k], 37, 2);
        test_ok(h, RUN("m = x", 0, {"x", X}, {"m", M}));
        test_ok(h, RUN("y = m", 0, {"m", M}, {"y", Y}));
        for (int i = 0; i < 37; i++) test_close(y[i], x[i], 0, "y[%d]", i);
    }
}

static void any_all_absmax(void **s)
{
    (void)s;
    float x[6] = {0, 0, 0, -3, 0, 2}, a[2], b[2], c[2];
    strata_tensor X = strata_matrix(x, STRATA_F32, 2, 3, STRATA_ROW_MAJOR, 0);
    test_ok(h, RUN("a = any(x); b = all(x + 4); c = absmax(x)", 0, {"x", X},
                   {"a", strata_matrix(a, STRATA_F32, 2, 1, STRATA_ROW_MAJOR, 0)},
                   {"b", strata_matrix(b, STRATA_F32, 2, 1, STRATA_ROW_MAJOR, 0)},
                   {"c", strata_matrix(c, STRATA_F32, 2, 1, STRATA_ROW_MAJOR, 0)}));
    test_check(a[0] == 0 && a[1] == 1 && b[0] == 1 && b[1] == 1 && c[0] == 0 && c[1] == 3,
               "any, all, absmax");
    /* max and min of a line with a NaN are NaN */
    x[1] = NAN;
    test_ok(h, RUN("a = max(x); b = min(x)", 0, {"x", X},
                   {"a", strata_matrix(a, STRATA_F32, 2, 1, STRATA_ROW_MAJOR, 0)},
                   {"b", strata_matrix(b, STRATA_F32, 2, 1, STRATA_ROW_MAJOR, 0)}));
    test_check(isnan(a[0]) && isnan(b[0]) && a[1] == 2 && b[1] == -3, "NaN");
}

static void in_place(void **s)
{
    (void)s;
    float w[5] = {1, 2, 3, 4, 5}, g[5] = {1, 1, 2, 2, 4}, v[5] = {0, 1, 0, 1, 0}, rate = 0.5f;
    strata_tensor W = strata_vector(w, STRATA_F32, 5, 1), G = strata_vector(g, STRATA_F32, 5, 1),
                  V = strata_vector(v, STRATA_F32, 5, 1);
    test_ok(h, RUN("v = 0.5 * v + g; w = w - rate * v", 0, {"w", W}, {"g", G}, {"v", V},
                   {"rate", strata_point(&rate, STRATA_F32)}));
    const float want_v[5] = {1, 1.5f, 2, 2.5f, 4}, want_w[5] = {0.5f, 1.25f, 2, 2.75f, 3};
    for (int i = 0; i < 5; i++)
        test_check(v[i] == want_v[i] && w[i] == want_w[i], "step %d: %g %g", i, v[i], w[i]);
    /* a running value beside what it is read for; long rows, so that the engine reads the row several times */
    enum { N = 30000 };
    float *x = malloc(2 * N * sizeof *x), *y = malloc(2 * N * sizeof *y), run[2] = {10, 20};
    for (int axis = 0; axis < 2; axis++) {
        run[0] = 10, run[1] = 20;
        for (int i = 0; i < 2 * N; i++) x[i] = (float)(i % 7 + (axis ? i / N : i % 2));
        double mean[2] = {0, 0};
        for (int i = 0; i < 2 * N; i++) mean[axis ? i / N : i % 2] += x[i] / (double)N;
        strata_tensor X = strata_matrix(x, STRATA_F32, axis ? 2 : N, axis ? N : 2, STRATA_ROW_MAJOR, 0),
                      Y = X;
        Y.data = y;
        strata_tensor R = strata_matrix(run, STRATA_F32, axis ? 2 : 1, axis ? 1 : 2, STRATA_ROW_MAJOR, 0);
        test_ok(h, RUN("y = x - run; run = 0.5 * run + 0.5 * mean(x)", 1u << axis, {"x", X}, {"y", Y},
                       {"run", R}));
        for (int i = 0; i < 2 * N; i++)
            test_close(y[i], x[i] - ((axis ? i / N : i % 2) ? 20 : 10), 0, "y[%d] axis %d", i, axis);
        for (int i = 0; i < 2; i++)
            test_close(run[i], 0.5 * (i ? 20 : 10) + 0.5 * mean[i], 1e-5, "run[%d] axis %d", i, axis);
        /* the new value of x is used after it is stored, and the old one before; an input may be the output's view */
        float *old = malloc(2 * N * sizeof *old);
        memcpy(old, x, 2 * N * sizeof *old);
        test_ok(h, RUN("x = 2 * x; y = x - mean(x)", 1u << axis, {"x", X}, {"y", Y}));
        for (int i = 0; i < 2 * N; i++) {
            test_close(x[i], 2 * old[i], 0, "x[%d]", i);
            test_close(y[i], 2 * old[i] - 2 * mean[axis ? i / N : i % 2], 1e-4, "y[%d]", i);
        }
        memcpy(x, old, 2 * N * sizeof *old);
        test_ok(h, RUN("a = 3 * b; y = b - mean(b)", 1u << axis, {"a", X}, {"b", X}, {"y", Y}));
        for (int i = 0; i < 2 * N; i++) {
            test_close(x[i], 3 * old[i], 0, "a[%d]", i);
            test_close(y[i], old[i] - mean[axis ? i / N : i % 2], 1e-4, "y[%d] beside a", i);
        }
        free(old);
    }
    free(x), free(y);
}

static void positions(void **s)
{
    (void)s;
    enum { A = 3, B = 4, C = 50 };
    float x[A * B * C], y[A * B * C], m[A * B];
    for (int i = 0; i < A * B * C; i++) x[i] = (float)(i * 37 % 101);
    strata_tensor X = strata_array(x, STRATA_F32, 3, (const int64_t[]){A, B, C}, NULL), Y = X;
    Y.data = y;
    test_ok(h, RUN("y = x + 1000 * index(-1) + 100000 * index(-2) + 0.25 * index(0)", 0, {"x", X}, {"y", Y}));
    for (int i = 0; i < A * B * C; i++)
        test_close(y[i], (double)x[i] + 1000 * (i % C) + 100000 * (i / C % B) + 0.25 * (i / (B * C)),
                   0x1p-23 * 350000, "y[%d]", i);
    /* the same over a transposed view: positions are those of the view */
    test_ok(h, RUN("y = index(-1) - index(1)", 0, {"y", strata_transpose(Y)}));
    for (int i = 0; i < A * B * C; i++) test_close(y[i], i / C % B - i % C, 0, "transposed y[%d]", i);
    /* where the row's maximum is */
    test_ok(h, RUN("m = max(select(x == max(x), index(-1), -1))", 0, {"x", X},
                   {"m", strata_array(m, STRATA_F32, 3, (const int64_t[]){A, B, 1}, NULL)}));
    for (int i = 0; i < A * B; i++) {
        int at = 0;
        for (int j = 1; j < C; j++)
            if (x[i * C + j] >= x[i * C + at]) at = j;
        test_close(m[i], at, 0, "m[%d]", i);
    }
    test_error(h, RUN("y = index(3)", 0, {"y", Y}), STRATA_ERROR_SYNTAX, "index(3)", "rank 3");
}

static void indexed_vectors(void **s)
{
    (void)s;
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6], m[2] = {10, 20}, n[3] = {100, 200, 300};
    strata_tensor X = strata_matrix(x, STRATA_F32, 2, 3, STRATA_ROW_MAJOR, 0), Y = X;
    Y.data = y;
    test_ok(h, RUN("y = x + a[m] + b[n]", 0, {"x", X}, {"y", Y}, {"a", strata_vector(m, STRATA_F32, 2, 1)},
                   {"b", strata_vector(n, STRATA_F32, 3, 1)}));
    for (int i = 0; i < 6; i++) test_close(y[i], x[i] + m[i / 3] + n[i % 3], 0, "y[%d]", i);
    test_error(h, RUN("y = x + a[m]", 0, {"x", X}, {"y", Y}, {"a", strata_vector(n, STRATA_F32, 3, 1)}),
               STRATA_ERROR_SHAPE, "a is 3");
    test_error(h, RUN("y = x + a[m]", 0, {"x", X}, {"y", Y}, {"a", X}), STRATA_ERROR_SYNTAX, "rank 1");
}

static void layer_norm(void **s)
{
    (void)s;
    float x[256], y[256];
    for (int i = 0; i < 256; i++) x[i] = 1234.0f;
    strata_tensor X = strata_matrix(x, STRATA_F32, 1, 256, STRATA_ROW_MAJOR, 0), Y = X;
    Y.data = y;
    const char *program = "y = (x - mean(x)) * rsqrt(var(x) + 1e-5)";
    test_ok(h, RUN(program, 0, {"x", X}, {"y", Y}));
    for (int i = 0; i < 256; i++) test_close(y[i], 0, 0, "y[%d]", i);
    static const double mean[3] = {0, 100, 10000}, first[3] = {-1.34164, -1.3415, -1.3313},
                        last[3] = {1.34164, 1.3414, 1.3313};
    X = strata_matrix(x, STRATA_F32, 1, 16, STRATA_ROW_MAJOR, 0);
    Y = X, Y.data = y;
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 16; i++) x[i] = (float)(mean[k] + i * 1e-3);
        test_ok(h, RUN(program, 0, {"x", X}, {"y", Y}));
        test_close(y[0], first[k], 2e-3, "first, mean %g", mean[k]);
        test_close(y[15], last[k], 2e-3, "last, mean %g", mean[k]);
    }
}

/* Views that lie between each other's elements are apart; the elements between are others' and stay. */
static void interleaved(void **s)
{
    (void)s;
    enum { N = 50 };
    float z[2 * N], was[2 * N], image[3 * 5 * 4];
    for (int i = 0; i < 2 * N; i++) z[i] = was[i] = (float)(i % 17) - 5;
    const strata_tensor re = strata_vector(z, STRATA_F32, N, 2), im = strata_vector(z + 1, STRATA_F32, N, 2);
    test_ok(h, RUN("t = re * 0.5 - im * 0.25; im = re * 0.25 + im * 0.5; re = t", 0, {"re", re}, {"im", im}));
    for (int i = 0; i < N; i++) {
        const double a = (double)was[2 * i], b = (double)was[2 * i + 1];
        test_close(z[2 * i], a * 0.5 - b * 0.25, 0, "re[%d]", i);
        test_close(z[2 * i + 1], a * 0.25 + b * 0.5, 0, "im[%d]", i);
    }
    /* channels of one image; two columns of one matrix, one of them reduced */
    for (int i = 0; i < 60; i++) image[i] = (float)(i * 7 % 23);
    const strata_tensor all = strata_matrix(image, STRATA_F32, 15, 4, STRATA_ROW_MAJOR, 0);
    const strata_tensor low = strata_slice(all, 1, 0, 2, 1), high = strata_slice(all, 1, 2, 2, 1);
    test_ok(h, RUN("y = x - max(x)", 0, {"x", low}, {"y", high}));
    for (int i = 0; i < 15; i++)
        for (int c = 0; c < 2; c++) {
            const int at = i * 4 + c, a = i * 4 * 7 % 23, b = (i * 4 + 1) * 7 % 23;
            test_close(image[at], at * 7 % 23, 0, "x[%d][%d]", i, c);
            test_close(image[at + 2], at * 7 % 23 - (a > b ? a : b), 0, "y[%d][%d]", i, c);
        }
    test_ok(h, strata_activation_forward(h, NULL, low, high));
    test_ok(h, strata_softmax_forward(h, NULL, low, high));
    test_ok(h, RUN("y = sum(x)", 1, {"x", strata_slice(all, 1, 1, 1, 1)},
                   {"y", strata_point(image + 2, STRATA_F32)}));
    double sum = 0;
    for (int i = 0; i < 15; i++) sum += (i * 4 + 1) * 7 % 23;
    test_close(image[2], sum, 0, "sum of a column");
    /* one element that is shared is enough */
    test_error(h, RUN("y = x", 0, {"x", strata_slice(all, 1, 0, 2, 1)}, {"y", strata_slice(all, 1, 1, 2, 1)}),
               STRATA_ERROR_ALIAS, "y overlaps", "x");
    test_error(h,
               RUN("y = x", 0, {"x", strata_vector(z, STRATA_F32, 10, 2)},
                   {"y", strata_vector(z + 3, STRATA_F32, 10, 3)}),
               STRATA_ERROR_ALIAS, "y overlaps", "x");
}

/* Beyond 2^24 f32 cannot tell neighbours apart: such programs are evaluated in f64. */
static void far_positions(void **s)
{
    (void)s;
    const int64_t n = 17000000, at = 16777219;
    uint8_t *x = calloc((size_t)n, 1);
    test_check(x != NULL, "no memory for %lld bytes", (long long)n);
    x[at] = 3, x[at + 1] = 3;
    int64_t a = 0;
    int32_t last = 0, first = 0;
    const strata_tensor X = strata_vector(x, STRATA_U8, n, 1);
    test_ok(h, RUN("a = argmax(x)", 0, {"x", X}, {"a", strata_point(&a, STRATA_I64)}));
    test_check(a == at, "argmax is %lld, not %lld", (long long)a, (long long)at);
    test_ok(h, RUN("last = max(select(x == 3, index(0), -1)); first = min(select(x == 3, index(-1), 2e9))", 0,
                   {"x", X}, {"last", strata_point(&last, STRATA_I32)},
                   {"first", strata_point(&first, STRATA_I32)}));
    test_check(last == at + 1 && first == at, "positions are %d to %d", (int)first, (int)last);
    /* the product of reduced dims counts */
    a = 0;
    test_ok(h, RUN("a = argmax(x)", 3, {"x", strata_matrix(x, STRATA_U8, 4250, 4000, STRATA_ROW_MAJOR, 0)},
                   {"a", strata_point(&a, STRATA_I64)}));
    test_check(a == at, "argmax of the matrix is %lld, not %lld", (long long)a, (long long)at);
    free(x);
}

/* A factor that stands outside the product too; what a product refuses speaks of the caller's own program. */
static void factors_again(void **s)
{
    (void)s;
    enum { N = 23 };
    float x[N * N], w[N * N], y[N * N], was[N * N];
    for (int i = 0; i < N * N; i++) x[i] = was[i] = (float)(i % 7 - 3), w[i] = (float)(i % 5 - 2), y[i] = 7;
    const strata_tensor X = strata_matrix(x, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0);
    strata_tensor W = X, Y = X;
    W.data = w, Y.data = y;
    test_error(h, RUN("X = X @ W", 0, {"X", X}, {"W", W}), STRATA_ERROR_ALIAS,
               "strata_fused: the program writes X, a factor");
    test_error(h, RUN("y = X @ W; X = y", 0, {"X", X}, {"W", W}, {"y", Y}), STRATA_ERROR_ALIAS,
               "strata_fused", "writes X");
    test_error(h, RUN("y = X @ W", 0, {"X", X}, {"W", W}, {"y", X}), STRATA_ERROR_ALIAS,
               "strata_fused: y, which receives X @ W", "overlaps X");
    test_error(h, RUN("y = X @ W + r", 0, {"X", X}, {"W", W}, {"r", Y}, {"y", Y}), STRATA_ERROR_ALIAS,
               "strata_fused: y", "overlaps r");
    test_error(h, RUN("y = X @ W", 0, {"X", X}, {"W", W}, {"y", Y}, {"z", W}), STRATA_ERROR_ARGUMENT,
               "strata_fused: operand z does not occur");
    test_error(h, RUN("y = X @ W", 0, {"X", X}, {"W", W}, {"X", W}, {"y", Y}), STRATA_ERROR_ARGUMENT,
               "X is given twice");
    strata_tensor bad = Y;
    bad.rank = 99;
    test_error(h, RUN("y = X @ W + r", 0, {"X", X}, {"W", W}, {"r", bad}, {"y", Y}), STRATA_ERROR_ARGUMENT,
               "strata_fused: r", "rank");
    test_error(h,
               RUN("y = P @ W + P", 0, {"P", strata_slice(X, 1, 0, 5, 1)}, {"W", strata_slice(W, 0, 0, 5, 1)},
                   {"y", Y}),
               STRATA_ERROR_SHAPE, "P is 23x5", "23x23");
    for (int i = 0; i < N * N; i++) test_check(y[i] == 7 && x[i] == was[i], "%d was written", i);
    test_ok(h, RUN("y = 2 * (X @ W) + X * W - X", 0, {"X", X}, {"W", W}, {"y", Y}));
    for (int i = 0; i < N * N; i++) {
        double p = 0;
        for (int k = 0; k < N; k++) p += (double)x[i / N * N + k] * (double)w[k * N + i % N];
        test_close(y[i], 2 * p + (double)x[i] * (double)w[i] - (double)x[i], 0, "y[%d]", i);
    }
    test_ok(h, RUN("y = X @ X + X", 0, {"X", X}, {"y", Y}));
    for (int i = 0; i < N * N; i++) {
        double p = 0;
        for (int k = 0; k < N; k++) p += (double)x[i / N * N + k] * (double)x[k * N + i % N];
        test_close(y[i], p + (double)x[i], 0, "square y[%d]", i);
    }
}

static void products(void **s)
{
    (void)s;
    test_rng r = test_rng_make(15);
    for (int k = 0; k < test_rounds(12); k++) {
        const strata_type type = k % 3 == 2 ? STRATA_F64 : STRATA_F32;
        const int64_t m = test_int(&r, 1, 40), n = test_int(&r, 1, 40), d = test_int(&r, 1, 40);
        test_problem("product %d %s %lldx%lldx%lld", k, strata_type_name(type), (long long)m, (long long)n,
                     (long long)d);
        test_array x = test_array_make(&r, type, 2, (int64_t[]){m, d}, TEST_ANY),
                   w = test_array_make(&r, type, 2, (int64_t[]){d, n}, TEST_ANY);
        test_array b = test_array_make(&r, type, 1, &n, TEST_ANY),
                   y = test_array_make(&r, type, 2, (int64_t[]){m, n}, TEST_PACKED);
        test_array pre = test_array_make(&r, type, 2, (int64_t[]){m, n}, TEST_PADDED);
        test_array_random(&r, &x, -1, 1), test_array_random(&r, &w, -1, 1), test_array_random(&r, &b, -1, 1);
        test_ok(h, RUN("pre = X @ W + b[n]; y = relu(pre) * (X@W)", 0, {"X", x.t}, {"W", w.t}, {"b", b.t},
                       {"pre", pre.t}, {"y", y.t}));
        int64_t i[STRATA_MAX_RANK] = {0};
        do {
            double p = 0, a = 0;
            for (int64_t j = 0; j < d; j++) {
                const double t = test_elem(x.t, i[0], j) * test_elem(w.t, j, i[1]);
                p += t, a += fabs(t);
            }
            const double q = p + test_elem(b.t, i[1]), e = test_gamma(d + 3, type) * (a + 1);
            test_close(test_get(&pre.t, i), q, e, "pre");
            test_close(test_get(&y.t, i), (q > 0 ? q : 0) * p, 2 * e * (fabs(p) + fabs(q) + 1), "y");
        } while (test_next(&y.t, i));
        test_ok(h, RUN("out = X @ W", 0, {"X", x.t}, {"W", w.t}, {"out", y.t}));
        test_array_intact(&y), test_array_intact(&pre);
        test_array_free(&x), test_array_free(&w), test_array_free(&b), test_array_free(&y),
            test_array_free(&pre);
    }
    float a[6] = {0}, o[4] = {7, 7, 7, 7};
    strata_tensor A = strata_matrix(a, STRATA_F32, 2, 3, STRATA_ROW_MAJOR, 0),
                  B = strata_matrix(a, STRATA_F32, 3, 2, STRATA_ROW_MAJOR, 0),
                  O = strata_matrix(o, STRATA_F32, 2, 2, STRATA_ROW_MAJOR, 0);
    test_error(h, RUN("out = A @ C", 0, {"A", A}, {"C", A}, {"out", O}), STRATA_ERROR_SHAPE,
               "A is 2x3 and C is 2x3");
    test_error(h, RUN("out = (A @ B) @ A", 0, {"A", A}, {"B", B}, {"out", O}), STRATA_ERROR_UNSUPPORTED,
               "A @ B", "holds a product");
    test_error(h, RUN("out = A @ (B * s[j])", 0, {"A", A}, {"B", B}, {"s", O}, {"out", O}),
               STRATA_ERROR_SYNTAX, "column 18", "[k/g, n]", "^");
    test_error(h, RUN("out = sum(A @ B)", 0, {"A", A}, {"B", B}, {"out", strata_vector(o, STRATA_F32, 3, 1)}),
               STRATA_ERROR_SHAPE, "out");
    test_error(h, RUN("out = A @ B + gelv(x)", 0, {"A", A}, {"B", B}, {"out", O}), STRATA_ERROR_SYNTAX,
               "gelv", "gelu");
    for (int i = 0; i < 4; i++) test_check(o[i] == 7, "out was written");
}

static void refusals(void **s)
{
    (void)s;
    float x[12] = {0}, y[12];
    for (int i = 0; i < 12; i++) y[i] = 7;
    strata_tensor X = strata_matrix(x, STRATA_F32, 2, 3, STRATA_ROW_MAJOR, 0), Y = X,
                  P = strata_point(y, STRATA_F32);
    Y.data = y;
    test_error(h, strata_fused(h, NULL, NULL, NULL), STRATA_ERROR_ARGUMENT, "program is NULL");
    test_error(h, strata_fused(h, "y = 1", NULL, NULL), STRATA_ERROR_ARGUMENT, "operands is NULL");
    test_error(h,
               strata_fused(h, "y = 1", (const strata_operand[]){{"y", Y}, {0}},
                            &(strata_fused_options){.reserved = {0, 0, 1}}),
               STRATA_ERROR_ARGUMENT, "reserved");
    test_error(h, RUN("y = gelv(x)", 0, {"x", X}, {"y", Y}), STRATA_ERROR_SYNTAX, "column 5", "gelv", "^");
    test_error(h, RUN("y = x", 0, {"x", X}, {"y", Y}, {"z", X}), STRATA_ERROR_ARGUMENT, "z does not occur");
    test_error(h, RUN("y = x", 0, {"x", X}, {"y", Y}, {"x", X}), STRATA_ERROR_ARGUMENT, "x is given twice");
    test_error(h, RUN("t = x", 0, {"x", X}), STRATA_ERROR_SYNTAX, "t = x");
    test_error(h, RUN("y = x", 0, {"x", X}, {"y", strata_transpose(Y)}), STRATA_ERROR_SHAPE, "3x2", "2x3");
    test_error(h, RUN("y = x", 0, {"x", X}, {"y", strata_matrix(y, STRATA_F32, 1, 3, STRATA_ROW_MAJOR, 0)}),
               STRATA_ERROR_SHAPE, "y is 1x3", "2x3");
    test_error(h, RUN("y = x", 2, {"x", X}, {"y", P}), STRATA_ERROR_SHAPE, "2x3");
    test_error(h, RUN("y = x + sum(x)", 3, {"x", X}, {"y", P}), STRATA_ERROR_SHAPE, "not a reduction");
    test_error(h, RUN("y = sum(x)", 1, {"x", X}, {"y", P}), STRATA_ERROR_SHAPE, "1x3");
    test_error(h, RUN("y = sum(x)", 4, {"x", X}, {"y", P}), STRATA_ERROR_ARGUMENT, "axes is 0x4", "rank 2");
    test_error(h,
               RUN("y = x", 0, {"x", strata_matrix(y + 1, STRATA_F32, 2, 3, STRATA_ROW_MAJOR, 0)}, {"y", Y}),
               STRATA_ERROR_ALIAS, "y overlaps", "x");
    test_error(h, RUN("y = x; z = x", 0, {"x", X}, {"y", Y}, {"z", Y}), STRATA_ERROR_ALIAS,
               "overlaps the output");
    test_error(h, RUN("y = x", 0, {"x", strata_matrix(x, STRATA_C64, 2, 3, STRATA_ROW_MAJOR, 0)}, {"y", Y}),
               STRATA_ERROR_TYPE, "x is c64");
    test_error(h,
               RUN("y = x", 0, {"x", strata_matrix(NULL, STRATA_F32, 2, 3, STRATA_ROW_MAJOR, 0)}, {"y", Y}),
               STRATA_ERROR_ARGUMENT, "x", "NULL");
    strata_tensor Z =
        strata_broadcast(strata_matrix(y, STRATA_F32, 1, 3, STRATA_ROW_MAJOR, 0), 2, (const int64_t[]){2, 3});
    test_error(h, RUN("y = x", 0, {"x", X}, {"y", Z}), STRATA_ERROR_LAYOUT, "y", "stride 0");
    for (int i = 0; i < 12; i++) test_check(y[i] == 7, "y[%d] was written", i);
}

static void empty(void **s)
{
    (void)s;
    float x[4] = {0}, a[3] = {7, 7, 7}, b[3], c[3];
    strata_tensor X = strata_matrix(x, STRATA_F32, 3, 0, STRATA_ROW_MAJOR, 0),
                  A = strata_matrix(a, STRATA_F32, 3, 1, STRATA_ROW_MAJOR, 0), B = A, C = A;
    B.data = b, C.data = c;
    test_ok(h, RUN("y = x", 0, {"x", X}, {"y", X}));
    test_ok(h, RUN("a = sum(x); b = mean(x); c = max(x)", 0, {"x", X}, {"a", A}, {"b", B}, {"c", C}));
    for (int i = 0; i < 3; i++)
        test_check(a[i] == 0 && isnan(b[i]) && c[i] == -INFINITY, "%d: %g %g %g", i, a[i], b[i], c[i]);
    a[0] = 7;
    test_ok(h, RUN("a = sum(x)", 3, {"x", X}, {"a", strata_point(a, STRATA_F32)}));
    test_check(a[0] == 0, "sum over both: %g", a[0]);
    a[0] = a[1] = a[2] = 7;
    test_ok(h, RUN("a = sum(x)", 1, {"x", strata_transpose(X)}, {"a", strata_vector(a, STRATA_F32, 3, 1)}));
    test_check(a[0] == 0 && a[2] == 0, "sum over rows: %g", a[0]);
}

static void threads_same_bits(void **s)
{
    (void)s;
    test_rng r = test_rng_make(44);
    const int64_t dim[3] = {70, 60, 50};
    static const uint32_t axes[] = {1, 2, 4, 3, 5, 6, 7};
    test_array x = test_array_make(&r, STRATA_F32, 3, dim, TEST_PADDED);
    test_array_random(&r, &x, -1, 1);
    for (int k = 0; k < TEST_COUNT(axes); k++) {
        int64_t lines[3];
        for (int d = 0; d < 3; d++) lines[d] = axes[k] >> d & 1 ? 1 : dim[d];
        test_array y[3], v[3];
        for (int t = 0; t < 3; t++) {
            y[t] = test_array_make(&r, STRATA_F32, 3, dim, TEST_PACKED),
            v[t] = test_array_make(&r, STRATA_F32, 3, lines, TEST_PACKED);
            test_ok(h, strata_set_threads(h, t + 1));
            test_ok(h, RUN("v = var(x) + sum(x * x); y = exp(x - max(x)) * v", axes[k], {"x", x.t},
                           {"y", y[t].t}, {"v", v[t].t}));
            test_check(!memcmp(y[0].t.data, y[t].t.data, (size_t)strata_count(y[0].t) * 4),
                       "axes %u, %d threads: y", axes[k], t + 1);
            test_check(!memcmp(v[0].t.data, v[t].t.data, (size_t)strata_count(v[0].t) * 4),
                       "axes %u, %d threads: v", axes[k], t + 1);
        }
        for (int t = 0; t < 3; t++) test_array_free(&y[t]), test_array_free(&v[t]);
    }
    test_array_free(&x);
    test_ok(h, strata_set_threads(h, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps),
                                       cmocka_unit_test(types),
                                       cmocka_unit_test(reductions),
                                       cmocka_unit_test(any_all_absmax),
                                       cmocka_unit_test(in_place),
                                       cmocka_unit_test(positions),
                                       cmocka_unit_test(indexed_vectors),
                                       cmocka_unit_test(layer_norm),
                                       cmocka_unit_test(interleaved),
                                       cmocka_unit_test(far_positions),
                                       cmocka_unit_test(products),
                                       cmocka_unit_test(factors_again),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(empty),
                                       cmocka_unit_test(threads_same_bits)};
    return cmocka_run_group_tests(tests, setup, teardown) + test_lower_levels();
}
