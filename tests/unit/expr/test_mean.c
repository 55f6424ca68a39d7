/* SPDX-License-Identifier: Apache-2.0 */
/* test_mean.c - deviations from a mean keep their digits however far from zero the mean lies: e - mean(e), var(e) and what is made of them,
 * along rows, along columns and over all, at every level, in f32 and f64. */
#include "support.h"
#include <math.h>
#include "expr/ir.h"

enum { BY_ROWS, BY_COLS, BY_ALL };
static const char *const names[] = {"x", "w", "b", "y", "d", "z", "v", "m", NULL};

typedef struct run {
    st_expr *p;
    st_expr_arg args[ST_EXPR_VARS];
    char *scratch;
    int how, type;
    int64_t rows, cols, count, length; /* count rows (columns, or one rectangle) of length numbers */
} run;

static run make(const char *text, bool f64, int level, int how, int64_t length, int64_t count)
{
    st_err e;
    run q = {.how = how, .type = f64 ? STRATA_F64 : STRATA_F32};
    test_check(st_expr_parse(&e, "test", text, names, f64, &q.p) == STRATA_OK, "%s", e.text);
    st_expr_set_level(q.p, level);
    q.rows = how == BY_COLS ? length : count, q.cols = how == BY_COLS ? count : length;
    q.count = how == BY_ALL ? 1 : count, q.length = how == BY_ALL ? length * count : length;
    q.scratch = test_guard(st_expr_rows_scratch(q.p, q.cols), true);
    test_problem("%s: %lldx%lld how %d level %d f64 %d", text, (long long)q.rows, (long long)q.cols, how,
                 level, f64);
    return q;
}

/* binds a rectangle; a number a row (column), as reductions give; or the axis along which w and b run */
static void whole(run *q, const char *name, void *p)
{
    q->args[st_expr_find(q->p, name)] = (st_expr_arg){p, q->type, q->cols, 1};
}
static void single(run *q, const char *name, void *p)
{
    q->args[st_expr_find(q->p, name)] = (st_expr_arg){p, q->type, q->how == BY_ROWS, q->how == BY_COLS};
}
static void along(run *q, const char *name, void *p)
{
    q->args[st_expr_find(q->p, name)] = (st_expr_arg){p, q->type, q->how == BY_COLS, q->how != BY_COLS};
}

static void go(run *q)
{
    if (q->how == BY_ROWS) st_expr_rows(q->p, q->args, q->rows, q->cols, 0, q->scratch);
    if (q->how == BY_COLS) st_expr_cols(q->p, q->args, q->rows, q->cols, 0, q->scratch);
    if (q->how == BY_ALL) st_expr_all(q->p, q->args, q->rows, q->cols, 0, 0, q->scratch);
    test_check(test_guard_intact(q->scratch), "scratch");
}

static void done(run *q)
{
    test_guard_free(q->scratch);
    st_expr_free(q->p);
}

static int64_t at(const run *q, int64_t k, int64_t j)
{
    return q->how == BY_ALL ? j : q->how == BY_ROWS ? k * q->cols + j : j * q->cols + k;
}

static double get(const run *q, const void *p, int64_t i)
{
    return q->type == STRATA_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}
static void put(const run *q, void *p, int64_t i, double v)
{
    if (q->type == STRATA_F64)
        ((double *)p)[i] = v;
    else
        ((float *)p)[i] = (float)v;
}

/* One row against long double. With k the factor of sums (docs/expressions.md), e the error of the mean m that the program stores,
 * D = x - mean, S = mean |D|, V = mean D^2:
 *   m:         (k + 1) u mean |x|
 *   the pair:  sums of x - m have k u (S + e), each term u (S + e); its lower part, at most L = u (|mean| + e), is rounded
 *   x - mean:  that, the rounding of x - hi, u (|D| + L), and the last one
 *   var:       (k + 4) u (V + e^2) for the squares, 2 e times the pair's for what is taken away, u V
 * so that u |mean| stands only in m's own bound and, times u, in L. */
static void check_row(const run *q, int64_t k, const void *in, const void *wb, void *const out[5], bool all)
{
    const double u = q->type == STRATA_F64 ? 0x1p-53 : 0x1p-24,
                 sums = q->type == STRATA_F64 ? 140 + (double)q->length / (q->how == BY_COLS ? 8 : 512) + 1
                                              : 140;
    /* about the first number: long double alone would not have f64's small deviations from a large mean */
    const long double first = get(q, in, at(q, k, 0));
    long double mean = 0, var = 0, mad = 0, size = 0;
    for (int64_t j = 0; j < q->length; j++)
        mean += get(q, in, at(q, k, j)) - first, size += fabs(get(q, in, at(q, k, j)));
    mean /= q->length, size /= q->length;
    for (int64_t j = 0; j < q->length; j++) {
        long double d = get(q, in, at(q, k, j)) - first - mean;
        var += d * d / q->length, mad += fabsl(d) / q->length;
    }
    const double V = (double)var, S = (double)mad;
    double e = (sums + 1) * u * (double)size;
    if (all) {
        test_close(get(q, out[4], k), (double)(first + mean), e, "mean[%lld]", (long long)k);
        e = fabs((double)(get(q, out[4], k) - first - mean));
    }
    const double pair = (sums + 1) * u * (S + e), L = u * (fabs((double)(first + mean)) + e),
                 dv = (sums + 4) * u * (V + e * e) + 2 * (e + pair) * pair + u * V, inv = 1 / sqrt(V + 1e-5),
                 dinv = dv / (V + 1e-5) + 4 * u;
    if (all) test_close(get(q, out[3], k), V, dv, "var[%lld]", (long long)k);
    for (int64_t j = 0; j < q->length; j++) {
        const int64_t i = at(q, k, j);
        const double D = (double)(get(q, in, i) - first - mean), bound = pair + u * (2 * fabs(D) + 4 * L),
                     s = get(q, wb, q->how == BY_COLS ? i / q->cols : i % q->cols);
        if (all) {
            test_close(get(q, out[1], i), D, bound, "x - mean(x) [%lld]", (long long)i);
            test_close(get(q, out[2], i), -D, bound, "mean(x) - x [%lld]", (long long)i);
        }
        test_check(all || dinv < 0.5, "the bound says nothing");
        test_close(get(q, out[0], i), D * inv * s + s,
                   fabs(s) * (inv * bound + fabs(D) * inv * (dinv + 2 * u)) +
                       u * (2 * fabs(D * inv * s) + 2 * fabs(s)),
                   "y[%lld]", (long long)i);
    }
}

static void test_random_rows(void **state)
{
    (void)state;
    static const char *const one = "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w + b",
                             *const more =
                                 "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w + b; d = x - mean(x); z = "
                                 "mean(x) - x; v = var(x); m = mean(x)";
    static const int64_t lengths[] = {1, 2, 5, 16, 33, 100, 1000, 2048, 2049, 5000};
    static const struct {
        double mean, spread;
    } kinds[] = {{0, 1}, {1, 1}, {-100, 0.5}, {1e4, 8e-3}, {1e4, 30}, {-3e5, 1}, {1e-3, 1e-5}};
    test_rng r = test_rng_make(31);
    for (int level = 0; level <= st_cpu_get()->level; level++)
        for (int how = BY_ROWS; how <= BY_ALL; how++)
            for (int i = 0; i < TEST_COUNT(lengths); i++)
                for (int kind = 0; kind < TEST_COUNT(kinds); kind++)
                    for (int form = 0; form < 4; form++) { /* f64; in place, y alone */
                        bool f64 = form & 1, all = !(form & 2);
                        int64_t n = lengths[i], other = n > 1024 ? 1 : how == BY_COLS ? 37 : 3;
                        run q = make(all ? more : one, f64, level, how, n, other);
                        size_t cells = (size_t)(n * other), bytes = cells * (f64 ? 8 : 4);
                        void *x = test_guard(bytes, true), *in = malloc(bytes),
                             *wb =
                                 test_guard((size_t)(how == BY_COLS ? q.rows : q.cols) * (f64 ? 8 : 4), true);
                        void *out[5] = {all ? test_guard(bytes, true) : x};
                        for (int o = 1; o < 5 && all; o++)
                            out[o] = test_guard(o < 3 ? bytes : (size_t)q.count * (f64 ? 8 : 4), true);
                        for (int64_t j = 0; j < n * other; j++)
                            put(&q, x, j, kinds[kind].mean + kinds[kind].spread * test_real(&r, -1, 1));
                        memcpy(in, x, bytes);
                        for (int64_t j = 0; j < (how == BY_COLS ? q.rows : q.cols); j++)
                            put(&q, wb, j, test_real(&r, -1, 1));
                        whole(&q, "x", x), whole(&q, "y", out[0]);
                        along(&q, "w", wb), along(&q, "b", wb);
                        if (all)
                            whole(&q, "d", out[1]), whole(&q, "z", out[2]), single(&q, "v", out[3]),
                                single(&q, "m", out[4]);
                        go(&q);
                        /* alone, the mean's error is only bounded: where its square is not small, so is y's */
                        if (all || f64 || fabs(kinds[kind].mean) <= 100)
                            for (int64_t k = 0; k < q.count; k++) check_row(&q, k, in, wb, out, all);
                        for (int o = 0; o < (all ? 5 : 0); o++) test_guard_free(out[o]);
                        test_guard_free(x);
                        test_guard_free(wb);
                        free(in);
                        done(&q);
                    }
}

/* equal values, whose sum need not be exact: no variance, no deviation, and w plays no part */
static void test_equal_values(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 3, 16, 100, 1000, 2049, 5000, 100003};
    static const double values[] = {0.1, -1.0 / 3, 1234.567, 1e-3, 7e5 / 3, 16777213};
    for (int level = 0; level <= st_cpu_get()->level; level++)
        for (int how = BY_ROWS; how <= BY_ALL; how++)
            for (int i = 0; i < TEST_COUNT(lengths); i++)
                for (int k = 0; k < 2 * TEST_COUNT(values); k++) {
                    int64_t n = lengths[i], other = n > 1000 ? 1 : 5;
                    run q = make("y = (x - mean(x)) * rsqrt(var(x) + 1e-5); v = var(x); d = mean(x) - x",
                                 k & 1, level, how, n, other);
                    size_t bytes = (size_t)(n * other) * 8;
                    void *x = malloc(bytes), *y = malloc(bytes), *d = malloc(bytes), *v = malloc(40);
                    test_poison(y, bytes), test_poison(d, bytes), test_poison(v, 40);
                    for (int64_t j = 0; j < n * other; j++) put(&q, x, j, values[k / 2]);
                    whole(&q, "x", x), whole(&q, "y", y), whole(&q, "d", d), single(&q, "v", v);
                    go(&q);
                    for (int64_t j = 0; j < n * other; j++) {
                        test_close(get(&q, y, j), 0, 0, "y[%lld] of %.17g", (long long)j, values[k / 2]);
                        test_close(get(&q, d, j), 0, 0, "d[%lld] of %.17g", (long long)j, values[k / 2]);
                    }
                    for (int64_t j = 0; j < q.count; j++) test_close(get(&q, v, j), 0, 0, "variance");
                    free(x), free(y), free(d), free(v);
                    done(&q);
                }
}

/* one row of numbers to every output */
static void row_of(const char *text, int level, int64_t n, float *x, float *y, float *d, float *v, float *m)
{
    run q = make(text, false, level, BY_ROWS, n, 1);
    void *p[] = {x, y, d, v, m};
    static const char *const name[] = {"x", "y", "d", "v", "m"};
    for (int i = 0; i < 5; i++)
        if (st_expr_find(q.p, name[i]) >= 0) i < 3 ? whole(&q, name[i], p[i]) : single(&q, name[i], p[i]);
    go(&q);
    done(&q);
}

static void test_forms(void **state)
{
    (void)state;
    float x[100], y[100], d[100], v, m, want;
    for (int level = 0; level <= st_cpu_get()->level; level++) {
        /* the row of microsoft/onnxruntime#21935 */
        for (int i = 0; i < 16; i++) x[i] = (float)(10000 + i * 1e-3);
        row_of("y = (x - mean(x)) * rsqrt(var(x) + 1e-5)", level, 16, x, y, NULL, NULL, NULL);
        test_close(y[0], -1.3313, 2e-3, "first");
        test_close(y[15], 1.3313, 2e-3, "last");
        /* written out, the variance is var's; as a sum it is n times that */
        for (int i = 0; i < 100; i++) x[i] = (float)(5000 + i % 7 * 0.01);
        row_of("v = var(x); m = mean((x - mean(x)) ** 2)", level, 100, x, NULL, NULL, &v, &m);
        test_check(v == m, "var(x) is %g, written out %g", v, m);
        row_of("v = sum((mean(x) - x) ** 2); m = var(x)", level, 100, x, NULL, NULL, &v, &want);
        test_close(v, 100 * (double)want, 0x1p-22 * v, "as a sum");
        /* other users of a deviation, and levels of them up to the last that there are */
        row_of("d = x - mean(x); y = exp(d)", level, 100, x, y, d, NULL, NULL);
        for (int i = 0; i < 100; i++) test_close(y[i], exp(d[i]), 3 * 0x1p-24 * exp(d[i]), "exp [%d]", i);
        row_of("a = x - mean(x); a = a - mean(a); a = a - mean(a); a = a - mean(a); a = a - mean(a); a = a - "
               "mean(a); a = a - mean(a); y = a - mean(a); d = x - mean(x)",
               level, 100, x, y, d, NULL, NULL);
        for (int i = 0; i < 100; i++) test_close(y[i], d[i], 8 * 0x1p-24 * 0.06, "eight times [%d]", i);
        /* the mean of a row with an infinity is one, and has no second part that would be NaN */
        x[7] = INFINITY;
        row_of("y = x - mean(x); v = var(x)", level, 100, x, y, NULL, &v, NULL);
        for (int i = 0; i < 100; i++)
            test_close(y[i], i == 7 ? NAN : -INFINITY, 0, "beside an infinity [%d]", i);
        test_check(isnan(v), "variance with an infinity");
        /* a factor that is no number any more: 0 times it, and x times it */
        for (int i = 0; i < 100; i++) x[i] = (float)(1 + i % 2 * 0x1p-23);
        row_of("y = (x - mean(x)) * (sum(x) * inf)", level, 100, x, y, NULL, NULL, NULL);
        for (int i = 0; i < 100; i++)
            test_close(y[i], i % 2 ? INFINITY : -INFINITY, 0, "times infinity [%d]", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_rows),
                                       cmocka_unit_test(test_equal_values), cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
