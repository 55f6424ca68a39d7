/* SPDX-License-Identifier: Apache-2.0 */
/* test_run.c - conversions bit by bit, accuracy of sums, mean and variance, softmax and normalisation rows in every direction, and the
 * independence of results from how the caller cuts the rectangle. */
#include "support.h"
#include <math.h>
#include <pthread.h>
#include "expr/code.h"

static st_expr *parse(const char *text, const char *const *names, bool f64, int level)
{
    st_err e;
    st_expr *x = NULL;
    strata_status s = st_expr_parse(&e, "test", text, names, f64, &x);
    test_check(s == STRATA_OK, "%s", e.text);
    st_expr_set_level(x, level);
    return x;
}

static int levels(void) { return st_cpu_get()->level; }

/* ---- conversions ----------------------------------------------------------------------------------------------------- */
static const int types[] = {STRATA_F64, STRATA_F32, STRATA_F16, STRATA_BF16, STRATA_F8E4M3, STRATA_F8E5M2,
                            STRATA_I64, STRATA_I32, STRATA_I8,  STRATA_U8,   STRATA_BOOL};

static bool same_value(int type, const void *a, const void *b)
{
    double x, y;
    if (!memcmp(a, b, strata_type_bits((strata_type)type) / 8)) return true;
    st_load_f64(type, a, &x);
    st_load_f64(type, b, &y);
    return st_type_is_float(type) && isnan(x) && isnan(y);
}

/* what one element becomes */
static void convert_one(int from, const void *x, int to, void *y)
{
    double v;
    st_load_f64(from, x, &v);
    st_store_f64(to, y, v);
    if (from == to)
        memcpy(y, x,
               strata_type_bits((strata_type)from) /
                   8); /* a copy keeps an infinity that e5m2 would saturate */
}

static void test_convert(void **state)
{
    (void)state;
    enum { N = 67000 };
    test_rng r = test_rng_make(3);
    char *x = malloc(N * 8), *y = malloc(N * 16), *want = malloc(N * 16);
    for (int a = 0; a < TEST_COUNT(types); a++)
        for (int b = 0; b < TEST_COUNT(types); b++) {
            int from = types[a], to = types[b];
            int64_t fs = (int64_t)strata_type_bits((strata_type)from) / 8,
                    ts = (int64_t)strata_type_bits((strata_type)to) / 8;
            int64_t n = fs == 1   ? 256
                        : fs == 2 ? 65536
                                  : 3000,
                    sx = fs >= 2 || to == STRATA_F64 ? 1 : test_int(&r, 1, 2);
            int64_t sy = test_int(&r, 1, 2);
            if (fs > 2 && test_chance(&r, 0.5)) sx = 2, n /= 2;
            test_problem("convert %s to %s, %lld elements, strides %lld %lld",
                         strata_type_name((strata_type)from), strata_type_name((strata_type)to), (long long)n,
                         (long long)sx, (long long)sy);
            for (int64_t i = 0; i < n;
                 i++) { /* every pattern of a small type; interesting numbers of a large one */
                char *p = x + i * sx * fs;
                uint64_t bits = (uint64_t)i;
                double v = test_real(&r, -300, 300);
                if (i % 4 == 1) v = ldexp(v, (int)test_int(&r, -40, 40));
                if (i % 16 == 2)
                    v = (double[]){NAN,           INFINITY, -INFINITY, 0,    -0.0,  0.5,
                                   1.5,           2.5,      127.5,     128,  255.5, 2147483647,
                                   -2147483649.0, 65520,    9.3e18,    1e-45}[i / 16 % 16];
                if (fs <= 2)
                    memcpy(p, &bits, (size_t)fs);
                else
                    st_store_f64(from, p, v);
            }
            test_poison(y, N * 16);
            test_poison(want, N * 16);
            for (int64_t i = 0; i < n; i++) convert_one(from, x + i * sx * fs, to, want + i * sy * ts);
            st_convert(from, x, sx, to, y, sy, n);
            for (int64_t i = 0; i < n * sy; i++) {
                double v = 0;
                if (i % sy == 0) st_load_f64(from, x + i / sy * sx * fs, &v);
                test_check(same_value(to, y + i * ts, want + i * ts), "element %lld (%.9g)", (long long)i, v);
            }
        }
    free(x);
    free(y);
    free(want);
}

/* loads and stores of programs, at every level */
static void test_program_types(void **state)
{
    (void)state;
    test_rng r = test_rng_make(4);
    for (int level = 0; level <= levels(); level++)
        for (int a = 0; a < TEST_COUNT(types); a++)
            for (int b = 0; b < TEST_COUNT(types); b++)
                for (int f64 = 0; f64 < 2; f64++) {
                    int from = types[a], to = types[b];
                    int64_t n = test_int(&r, 0, 70), fs = (int64_t)strata_type_bits((strata_type)from) / 8,
                            ts = (int64_t)strata_type_bits((strata_type)to) / 8;
                    char *x = test_guard((size_t)(n * fs), true), *y = test_guard((size_t)(n * ts), true);
                    st_expr *p = parse("x * 2", (const char *const[]){"x", "out", NULL}, f64, level);
                    for (int64_t i = 0; i < n; i++) st_store_f64(from, x + i * fs, test_real(&r, -100, 100));
                    st_expr_arg args[2];
                    args[st_expr_find(p, "x")] = (st_expr_arg){x, from, 0, 1};
                    args[st_expr_find(p, "out")] = (st_expr_arg){y, to, 0, 1};
                    char *scratch = test_guard(st_expr_scratch(p), true);
                    st_expr_map(p, args, 1, n, 0, 0, scratch);
                    test_problem("%s to %s level %d f64 %d", strata_type_name((strata_type)from),
                                 strata_type_name((strata_type)to), level, f64);
                    for (int64_t i = 0; i < n; i++) {
                        double v;
                        char one[8];
                        st_load_f64(from, x + i * fs, &v);
                        if (!f64) v = (float)v;
                        st_store_f64(to, one, v * 2);
                        test_check(same_value(to, y + i * ts, one), "element %lld", (long long)i);
                    }
                    test_guard_free(scratch);
                    test_guard_free(x);
                    test_guard_free(y);
                    st_expr_free(p);
                }
}

/* ---- reductions ------------------------------------------------------------------------------------------------------ */
typedef struct run {
    st_expr *p;
    st_expr_arg args[8];
    char *scratch;
} run;

enum { BY_ROWS, BY_COLS, BY_ALL };

static void go(run *q, int how, int64_t rows, int64_t cols)
{
    if (how == BY_ROWS) st_expr_rows(q->p, q->args, rows, cols, 0, q->scratch);
    if (how == BY_COLS) st_expr_cols(q->p, q->args, rows, cols, 0, q->scratch);
    if (how == BY_ALL) st_expr_all(q->p, q->args, rows, cols, 0, 0, q->scratch);
}

static run make(const char *text, const char *const *names, bool f64, int level, int64_t cols)
{
    run q = {.p = parse(text, names, f64, level)};
    q.scratch = test_guard(st_expr_rows_scratch(q.p, cols), true);
    return q;
}

static void done(run *q)
{
    test_check(test_guard_intact(q->scratch), "scratch");
    test_guard_free(q->scratch);
    st_expr_free(q->p);
}

static const int64_t lengths[] = {1, 2, 5, 16, 31, 64, 100, 1000, 1024, 2048, 2049, 5000, 100003};

/* constant rows have no variance at all, and their mean is the constant */
static void test_constant_rows(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "v", "m", NULL};
    for (int level = 0; level <= levels(); level++)
        for (int how = BY_ROWS; how <= BY_ALL; how++)
            for (int f64 = 0; f64 < 2; f64++)
                for (int i = 0; i < TEST_COUNT(lengths); i++) {
                    int64_t n = lengths[i], other = n > 5000 ? 1 : 3, rows = how == BY_COLS ? n : other,
                            cols = how == BY_COLS ? other : n;
                    int type = f64 ? STRATA_F64 : STRATA_F32;
                    double v[6], m[6];
                    char *x = malloc((size_t)(rows * cols) * 8);
                    for (int64_t k = 0; k < rows * cols; k++)
                        st_store_f64(type, x + k * (f64 ? 8 : 4), 1234.0);
                    run q = make("v = var(x); m = mean(x)", names, f64, level, cols);
                    int64_t sm = how == BY_ROWS, sn = how == BY_COLS;
                    q.args[st_expr_find(q.p, "x")] = (st_expr_arg){x, type, cols, 1};
                    q.args[st_expr_find(q.p, "v")] = (st_expr_arg){v, STRATA_F64, sm, sn};
                    q.args[st_expr_find(q.p, "m")] = (st_expr_arg){m, STRATA_F64, sm, sn};
                    go(&q, how, rows, cols);
                    test_problem("constant %lldx%lld how %d level %d f64 %d", (long long)rows,
                                 (long long)cols, how, level, f64);
                    for (int64_t k = 0; k < (how == BY_ALL ? 1 : other); k++) {
                        test_close(v[k], 0, 0, "variance");
                        test_close(m[k], 1234, 0, "mean");
                    }
                    done(&q);
                    free(x);
                }
}

/* Sums: within a block of 1024 (columns: 8 rows) a lane adds at most 2048 / (4 W) = 128 numbers in element precision, then 6 or fewer
 * tree steps; between blocks f64. So |error| <= 140 u sum |x|, and the mean of squared deviations likewise. */
static void test_sums(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "y", "a", "b", "c", "d", NULL};
    test_rng r = test_rng_make(8);
    for (int level = 0; level <= levels(); level++)
        for (int how = BY_ROWS; how <= BY_ALL; how++)
            for (int i = 0; i < TEST_COUNT(lengths) - 1; i++) {
                int64_t n = lengths[i], other = n > 1024 ? 2 : 7, rows = how == BY_COLS ? n : other,
                        cols = how == BY_COLS ? other : n;
                float *x = malloc((size_t)(rows * cols) * 4), *y = malloc((size_t)(rows * cols) * 4);
                double out[4][8];
                for (int64_t k = 0; k < rows * cols; k++)
                    x[k] = (float)test_real(&r, 10, 11), y[k] = (float)test_real(&r, -1, 1);
                run q =
                    make("a = sum(x); b = sum(x * y); c = sum(y * y); d = var(x)", names, false, level, cols);
                q.args[st_expr_find(q.p, "x")] = (st_expr_arg){x, STRATA_F32, cols, 1};
                q.args[st_expr_find(q.p, "y")] = (st_expr_arg){y, STRATA_F32, cols, 1};
                for (int k = 0; k < 4; k++)
                    q.args[st_expr_find(q.p, names[2 + k])] =
                        (st_expr_arg){out[k], STRATA_F64, how == BY_ROWS, how == BY_COLS};
                go(&q, how, rows, cols);
                test_problem("sums %lldx%lld how %d level %d", (long long)rows, (long long)cols, how, level);
                int64_t count = how == BY_ALL ? 1 : other, length = how == BY_ALL ? rows * cols : n;
                for (int64_t k = 0; k < count; k++) {
                    double s[4] = {0}, size[4] = {0}, mean;
                    for (int pass = 0; pass < 2; pass++) {
                        mean = s[0] / (double)length;
                        for (int64_t j = 0; j < length; j++) {
                            int64_t at = how == BY_ALL ? j : how == BY_ROWS ? k * cols + j : j * cols + k;
                            double u = x[at], v = y[at];
                            if (!pass)
                                s[0] += u, size[0] += fabs(u), s[1] += u * v, size[1] += fabs(u * v),
                                    s[2] += v * v, size[2] += v * v;
                            else
                                s[3] += (u - mean) * (u - mean) / (double)length;
                        }
                    }
                    /* the mean's rounding (u 11) enters each deviation (at most 1): 2 * 11 u, and the mean's own error is 140 u 11 */
                    size[3] = s[3] + 2 * 11 * 1.5;
                    for (int w = 0; w < 4; w++)
                        test_close(out[w][k], s[w], 0x1p-24 * 140 * size[w] + 0x1p-24 * fabs(s[w]), "%s[%d]",
                                   names[2 + w], (int)k);
                }
                done(&q);
                free(x);
                free(y);
            }
}

static const char *const softmax = "y = exp(x - max(x)) / sum(exp(x - max(x)))";
static const char *const layernorm = "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w + b";
static const char *const xywb[] = {"x", "y", "w", "b", NULL};

/* Both programs in every direction, apart and in place, against f64. Bounds: softmax: exp 1.1 ulp, the difference's rounding at most
 * |x - max| u, the sum 140 u, the quotient 1.5: relative. layernorm: the mean's and variance's errors as above, relative to 1. */
static void test_rows_programs(void **state)
{
    (void)state;
    test_rng r = test_rng_make(9);
    for (int level = 0; level <= levels(); level++)
        for (int how = BY_ROWS; how <= BY_ALL; how++)
            for (int i = 0; i < TEST_COUNT(lengths) - 1; i++)
                for (int which = 0; which < 2; which++)
                    for (int in_place = 0; in_place < 2; in_place++) {
                        int64_t n = lengths[i], other = n > 1024 ? 1 : 5, rows = how == BY_COLS ? n : other,
                                cols = how == BY_COLS ? other : n;
                        size_t cells = (size_t)(rows * cols);
                        float *x = test_guard(cells * 4, true),
                              *y = in_place ? x : test_guard(cells * 4, true),
                              *wb = malloc((size_t)(rows + cols) * 4);
                        double *in = malloc(cells * 8);
                        for (size_t k = 0; k < cells; k++) in[k] = x[k] = (float)test_real(&r, -5, 5);
                        for (int64_t k = 0; k < rows + cols; k++) wb[k] = (float)test_real(&r, -1, 1);
                        run q = make(which ? layernorm : softmax, xywb, false, level, cols);
                        bool by_n = how != BY_COLS;
                        q.args[st_expr_find(q.p, "x")] = (st_expr_arg){x, STRATA_F32, cols, 1};
                        q.args[st_expr_find(q.p, "y")] = (st_expr_arg){y, STRATA_F32, cols, 1};
                        if (which) {
                            q.args[st_expr_find(q.p, "w")] = (st_expr_arg){wb, STRATA_F32, !by_n, by_n};
                            q.args[st_expr_find(q.p, "b")] = (st_expr_arg){wb, STRATA_F32, !by_n, by_n};
                        }
                        go(&q, how, rows, cols);
                        test_problem("%s %lldx%lld how %d level %d in place %d",
                                     which ? "layernorm" : "softmax", (long long)rows, (long long)cols, how,
                                     level, in_place);
                        int64_t count = how == BY_ALL ? 1 : other, length = how == BY_ALL ? rows * cols : n;
                        for (int64_t k = 0; k < count; k++) {
                            double most = -1e9, mean = 0, var = 0, total = 0;
#define AT(j) (how == BY_ALL ? (j) : how == BY_ROWS ? k * cols + (j) : (j)*cols + k)
                            for (int64_t j = 0; j < length; j++)
                                most = fmax(most, in[AT(j)]), mean += in[AT(j)] / (double)length;
                            for (int64_t j = 0; j < length; j++)
                                total += exp(in[AT(j)] - most),
                                    var += pow(in[AT(j)] - mean, 2) / (double)length;
                            for (int64_t j = 0; j < length; j++) {
                                double v = in[AT(j)], u = 0x1p-24,
                                       scale = wb[by_n ? AT(j) % cols : AT(j) / cols], want, bound;
                                if (which) {
                                    double inv = 1 / sqrt(var + 1e-5);
                                    want = (v - mean) * inv * scale + scale;
                                    bound = u * (fabs(scale) * (10 * 5 * inv * 2 +
                                                                fabs(v - mean) * inv *
                                                                    (6 + 140 * (1 + 1e-5 * inv * inv))) +
                                                 2 * fabs(want));
                                } else {
                                    want = exp(v - most) / total;
                                    bound = u * want * (140 + 3 * fabs(v - most) + 8);
                                }
                                test_close(y[AT(j)], want, bound, "element %lld", (long long)AT(j));
                            }
                        }
                        done(&q);
                        if (!in_place) test_guard_free(y);
                        test_guard_free(x);
                        free(wb);
                        free(in);
                    }
}

/* The same bits however the rectangle is cut: rows one by one or together, columns (where nothing is reduced along them) in any pieces. */
static void test_cuts(void **state)
{
    (void)state;
    test_rng r = test_rng_make(10);
    static const char *const programs[] = {"y = exp(x - max(x)) / sum(exp(x - max(x)))",
                                           "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w + b",
                                           "y = gelu(x * w + b) * tanh(x)"};
    for (int level = 0; level <= levels(); level++)
        for (int round = 0; round < 60; round++)
            for (int how = BY_ROWS; how <= BY_COLS; how++) {
                int which = (int)test_int(&r, 0, 2);
                int64_t rows = test_int(&r, 1, 40), cols = test_int(&r, 1, 300);
                if (test_chance(&r, 0.2))
                    how == BY_ROWS ? (cols = test_int(&r, 2000, 5000)) : (rows = test_int(&r, 400, 600));
                size_t cells = (size_t)(rows * cols);
                float *x = malloc(cells * 4), *y = malloc(cells * 4), *z = malloc(cells * 4),
                      *wb = malloc(cells * 4);
                for (size_t k = 0; k < cells; k++)
                    x[k] = (float)test_real(&r, -3, 3), wb[k] = (float)test_real(&r, -1, 1);
                run q = make(programs[which], xywb, false, level, cols);
                st_expr_arg *ax = &q.args[st_expr_find(q.p, "x")], *ay = &q.args[st_expr_find(q.p, "y")],
                            *aw = NULL, *ab = NULL;
                *ax = (st_expr_arg){x, STRATA_F32, cols, 1}, *ay = (st_expr_arg){y, STRATA_F32, cols, 1};
                if (which) {
                    aw = &q.args[st_expr_find(q.p, "w")], ab = &q.args[st_expr_find(q.p, "b")];
                    *aw = *ab = (st_expr_arg){wb, STRATA_F32, 0, 1};
                }
                test_problem("cut %s %lldx%lld how %d level %d", programs[which], (long long)rows,
                             (long long)cols, how, level);
                go(&q, how, rows, cols);
                for (int64_t at = 0, step; at < (how == BY_ROWS ? rows : cols); at += step) {
                    step = test_int(&r, 1, 30);
                    if (at + step > (how == BY_ROWS ? rows : cols))
                        step = (how == BY_ROWS ? rows : cols) - at;
                    int64_t off = how == BY_ROWS ? at * cols : at;
                    ax->ptr = x + off, ay->ptr = z + off;
                    if (which && how == BY_COLS) aw->ptr = ab->ptr = wb + at;
                    go(&q, how, how == BY_ROWS ? step : rows, how == BY_ROWS ? cols : step);
                }
                test_check(!memcmp(y, z, cells * 4), "the bits depend on the cut");
                done(&q);
                free(x), free(y), free(z), free(wb);
            }
}

/* the arrays' functions: any length, any alignment, in place, nothing beside them touched */
static void test_fn1(void **state)
{
    (void)state;
    test_rng r = test_rng_make(11);
    for (int fn = 0; fn < ST_FN1_COUNT; fn++)
        for (int n = 0; n < 70; n++) {
            float *x = test_guard((size_t)n * 4 + 2, true), *y = test_guard((size_t)n * 4, n & 1);
            double *d = test_guard((size_t)n * 8, true);
            x = (float *)((char *)x + 2); /* misaligned by two bytes */
            for (int i = 0; i < n; i++) {
                float v = (float)test_real(&r, 0.1, 4);
                memcpy(&x[i], &v, 4);
                d[i] = v;
            }
            st_fn1_f32((st_fn1)fn, n, x, y);
            st_fn1_f64((st_fn1)fn, n, d, d);
            test_problem("fn1 %d length %d", fn, n);
            for (int i = 0; i < n; i++) test_close(y[i], d[i], fabs(d[i]) * 8 * 0x1p-24, "element %d", i);
            st_fn1_f32((st_fn1)fn, n, x, x);
            test_check(n == 0 || !memcmp(x, y, (size_t)n * 4), "in place differs");
            test_guard_free((char *)x - 2);
            test_guard_free(y);
            test_guard_free(d);
        }
}

/* nothing to reduce: the neutral elements; nothing to store: nothing happens */
static void test_empty(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "a", "b", "c", "d", "e", NULL};
    float out[5] = {0}, x = 0;
    run q = make("a = sum(x); b = max(x); c = prod(x); d = any(x); e = mean(x)", names, false, levels(), 1);
    q.args[st_expr_find(q.p, "x")] = (st_expr_arg){&x, STRATA_F32, 0, 1};
    for (int k = 0; k < 5; k++)
        q.args[st_expr_find(q.p, names[1 + k])] = (st_expr_arg){&out[k], STRATA_F32, 0, 0};
    for (int how = BY_ROWS; how <= BY_ALL; how++) {
        for (int k = 0; k < 5; k++) {
            q.args[st_expr_find(q.p, names[1 + k])].sm = how == BY_ROWS;
            q.args[st_expr_find(q.p, names[1 + k])].sn = how == BY_COLS;
            out[k] = 77;
        }
        go(&q, how, how == BY_ROWS, how == BY_COLS);
        test_problem("empty how %d", how);
        test_close(out[0], 0, 0, "sum");
        test_close(out[1], -INFINITY, 0, "max");
        test_close(out[2], 1, 0, "prod");
        test_close(out[3], 0, 0, "any");
        test_check(isnan(out[4]), "mean of nothing");
    }
    done(&q);
}

/* several threads meet a program that nobody has run yet: each gets a compiled form, and the same bits */
enum { THREADS = 4, SHARED_N = 3000 };
static float shared_x[SHARED_N], shared_y[THREADS][SHARED_N];
static st_expr *shared_program;
static pthread_barrier_t together;

static void *one_thread(void *arg)
{
    int me = (int)(intptr_t)arg;
    void *scratch = test_guard(st_expr_rows_scratch(shared_program, SHARED_N), true);
    st_expr_arg args[2];
    args[st_expr_find(shared_program, "x")] = (st_expr_arg){shared_x, STRATA_F32, SHARED_N, 1};
    args[st_expr_find(shared_program, "y")] = (st_expr_arg){shared_y[me], STRATA_F32, SHARED_N, 1};
    pthread_barrier_wait(&together);
    st_expr_rows(shared_program, args, 1, SHARED_N, 0, scratch);
    test_guard_free(scratch);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    test_rng r = test_rng_make(12);
    for (int i = 0; i < SHARED_N; i++) shared_x[i] = (float)test_real(&r, -4, 4);
    pthread_barrier_init(&together, NULL, THREADS);
    for (int round = 0; round < 20; round++) {
        pthread_t t[THREADS];
        shared_program = parse("y = exp(x - max(x)) / sum(exp(x - max(x)))", xywb, false, levels());
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&t[i], NULL, one_thread, (void *)(intptr_t)i), 0);
        for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
        for (int i = 1; i < THREADS; i++) assert_memory_equal(shared_y[0], shared_y[i], sizeof shared_y[0]);
        st_expr_free(shared_program);
    }
    pthread_barrier_destroy(&together);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convert),       cmocka_unit_test(test_program_types),
        cmocka_unit_test(test_constant_rows), cmocka_unit_test(test_sums),
        cmocka_unit_test(test_rows_programs), cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_fn1),           cmocka_unit_test(test_empty),
        cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
