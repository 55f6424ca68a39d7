/* SPDX-License-Identifier: Apache-2.0 */
/* test_softmax.c - softmax and log-softmax over any dim against long sums in double precision; gradients against central
 * differences; infinities and NaN; same bits for any number of threads. */
#include <math.h>
#include <strata.h>
#include "levels.h"
#include "handle.h"
#include "support.h"

/* of the line through idx along axis: max, log(sum(exp(x - max))) */
static void line_of(const strata_tensor *x, const int64_t *idx, int axis, double *max, double *lse)
{
    int64_t i[STRATA_MAX_RANK];
    memcpy(i, idx, sizeof i);
    *max = -INFINITY;
    for (i[axis] = 0; i[axis] < x->dim[axis]; i[axis]++) *max = fmax(*max, test_get(x, i));
    double s = 0;
    for (i[axis] = 0; i[axis] < x->dim[axis]; i[axis]++) s += exp(test_get(x, i) - *max);
    *lse = log(s);
}

/* the place of a line among all: the row-major number of its first element */
static int64_t line_number(const strata_tensor *x, const int64_t *idx, int axis)
{
    int64_t n = 0;
    for (int d = 0; d < x->rank; d++) n = n * x->dim[d] + (d == axis ? 0 : idx[d]);
    return n;
}

static void check(test_rng *r, strata_type type, int i)
{
    const int rank = (int)test_int(r, 1, 5), axis = (int)test_int(r, 0, rank - 1);
    int64_t dim[STRATA_MAX_RANK];
    for (int d = 0; d < rank; d++) dim[d] = test_int(r, 1, rank < 3 ? 50 : rank < 4 ? 9 : 5);
    if (test_chance(r, 0.2)) dim[axis] = test_int(r, 1, 3000);
    strata_softmax o = {.axis = test_chance(r, 0.5) ? axis : axis - rank,
                        .axis_is_set = true,
                        .log = test_chance(r, 0.5),
                        .accumulate = test_chance(r, 0.3)};
    test_problem("softmax case %d %s rank %d axis %d (%lld long) log %d accumulate %d", i,
                 strata_type_name(type), rank, axis, (long long)dim[axis], o.log, o.accumulate);
    test_array x = test_array_make(r, type, rank, dim, TEST_ANY),
               y = test_array_make(r, type, rank, dim, TEST_ANY);
    test_array dy = test_array_make(r, type, rank, dim, TEST_ANY),
               dx = test_array_make(r, type, rank, dim, TEST_ANY);
    test_array_random(r, &x, -5, 5), test_array_random(r, &dy, -1, 1);
    const double u = test_unit(type), n = (double)dim[axis];
    test_ok(h, strata_softmax_forward(h, &o, x.t, y.t));
    int64_t idx[STRATA_MAX_RANK] = {0};
    /* two numbers a line, made at its first element */
    double(*lines)[2] = calloc((size_t)strata_count(x.t), sizeof *lines);
    do {
        double *line = lines[line_number(&x.t, idx, axis)], v = test_get(&x.t, idx);
        if (idx[axis] == 0) line_of(&x.t, idx, axis, &line[0], &line[1]);
        const double max = line[0], lse = line[1];
        const double d = v - max, want = o.log ? d - lse : exp(d - lse);
        /* x - max is off by u |x - max| <= 10 u, which exp turns into a relative error; the sum adds at most n u */
        const double b = u * (o.log ? 2 * fabs(d) + 4 * fabs(lse) + n + 16 : want * (n + 32));
        test_close(test_get(&y.t, idx), want, b, "y");
    } while (test_next(&y.t, idx));
    /* backward from y as it is */
    double *before = calloc((size_t)strata_count(x.t), sizeof *before);
    if (o.accumulate) {
        test_array_random(r, &dx, -1, 1);
        int64_t e = 0;
        memset(idx, 0, sizeof idx);
        do before[e++] = test_get(&dx.t, idx);
        while (test_next(&dx.t, idx));
    }
    test_ok(h, strata_softmax_backward(h, &o, y.t, dy.t, dx.t));
    memset(idx, 0, sizeof idx);
    int64_t e = 0;
    do {
        double *line = lines[line_number(&x.t, idx, axis)];
        if (idx[axis] == 0) {
            int64_t j[STRATA_MAX_RANK];
            memcpy(j, idx, sizeof j);
            line[0] = line[1] = 0;
            for (; j[axis] < dim[axis]; j[axis]++) {
                const double t = test_get(&dy.t, j) * (o.log ? 1 : test_get(&y.t, j));
                line[0] += t, line[1] += fabs(t);
            }
        }
        const double s = line[0], a = line[1];
        const double yv = test_get(&y.t, idx), g = test_get(&dy.t, idx), p = o.log ? exp(yv) : yv;
        const double want = before[e] + (o.log ? g - p * s : p * (g - s));
        const double b = u * ((n + 8) * (fabs(p) * a) + 40 * fabs(p * s) +
                              4 * (o.log ? fabs(g) : fabs(p * g)) + 2 * fabs(before[e]));
        test_close(test_get(&dx.t, idx), want, b, "dx");
        e++;
    } while (test_next(&dx.t, idx));
    test_array_intact(&x), test_array_intact(&y), test_array_intact(&dy), test_array_intact(&dx);
    /* in place */
    if (!o.accumulate) {
        test_ok(h, strata_softmax_backward(h, &o, y.t, dy.t, dy.t));
        test_ok(h, strata_softmax_forward(h, &o, x.t, x.t));
        memset(idx, 0, sizeof idx);
        do {
            /* another layout of the output may take another way through memory: equal up to the bounds above */
            test_close(test_get(&x.t, idx), test_get(&y.t, idx),
                       u * (n + 60) * (1 + fabs(test_get(&y.t, idx))), "in place");
        } while (test_next(&x.t, idx));
    }
    free(before), free(lines);
    test_array_free(&x), test_array_free(&y), test_array_free(&dy), test_array_free(&dx);
}

static void random_cases(void **s)
{
    (void)s;
    test_rng r = test_rng_make(17);
    for (int i = 0; i < test_rounds(200); i++) check(&r, i % 3 == 2 ? STRATA_F64 : STRATA_F32, i);
}

static void gradients(void **s)
{
    (void)s;
    test_rng r = test_rng_make(2);
    for (int log = 0; log < 2; log++)
        for (int axis = 0; axis < 2; axis++) {
            double x[12], y[12], dy[12], dx[12];
            for (int i = 0; i < 12; i++) x[i] = test_real(&r, -2, 2), dy[i] = test_real(&r, -1, 1);
            const strata_softmax o = {.axis = axis, .axis_is_set = true, .log = log};
            strata_tensor X = strata_matrix(x, STRATA_F64, 3, 4, STRATA_ROW_MAJOR, 0), Y = X, DY = X, DX = X;
            Y.data = y, DY.data = dy, DX.data = dx;
            test_ok(h, strata_softmax_forward(h, &o, X, Y));
            test_ok(h, strata_softmax_backward(h, &o, Y, DY, DX));
            for (int i = 0; i < 12; i++) {
                const double v = x[i], step = 1e-6;
                double g = 0;
                for (int side = -1; side <= 1; side += 2) {
                    x[i] = v + side * step;
                    test_ok(h, strata_softmax_forward(h, &o, X, Y));
                    for (int j = 0; j < 12; j++) g += side * y[j] * dy[j] / (2 * step);
                }
                x[i] = v;
                /* 12 terms of at most 4, rounded, over the step */
                test_close(dx[i], g, 12 * 4 * 1.2e-16 / 1e-6, "log %d axis %d [%d]", log, axis, i);
            }
        }
}

static void special(void **s)
{
    (void)s;
    float x[4] = {-INFINITY, -INFINITY, 1000, 1001}, y[4];
    strata_tensor X = strata_matrix(x, STRATA_F32, 2, 2, STRATA_ROW_MAJOR, 0), Y = X;
    Y.data = y;
    test_ok(h, strata_softmax_forward(h, NULL, X, Y));
    test_check(isnan(y[0]) && isnan(y[1]), "a row of -Inf is NaN");
    test_close(y[2], 1 / (1 + exp(1)), 1e-7, "large");
    test_close(y[3], 1 / (1 + exp(-1)), 1e-7, "large");
    x[0] = 3;
    test_ok(h, strata_softmax_forward(h, NULL, X, Y));
    test_close(y[0], 1, 0, "masked");
    test_close(y[1], 0, 0, "masked");
    test_ok(h, strata_softmax_forward(h, &(strata_softmax){.log = true}, X, Y));
    test_close(y[0], 0, 0, "masked, log");
    test_close(y[1], -INFINITY, 0, "masked, log");
    x[1] = NAN;
    test_ok(h, strata_softmax_forward(h, NULL, X, Y));
    test_check(isnan(y[0]) && isnan(y[1]) && !isnan(y[2]), "a NaN fills its row");
}

static void threads_same_bits(void **s)
{
    (void)s;
    test_rng r = test_rng_make(4);
    const int64_t dim[2] = {500, 333};
    for (int axis = 0; axis < 2; axis++) {
        test_array x = test_array_make(&r, STRATA_F32, 2, dim, TEST_PACKED), y[3];
        test_array_random(&r, &x, -4, 4);
        for (int t = 0; t < 3; t++) {
            y[t] = test_array_make(&r, STRATA_F32, 2, dim, TEST_PACKED);
            test_ok(h, strata_set_threads(h, t + 1));
            test_ok(h, strata_softmax_forward(h, &(strata_softmax){.axis = axis, .axis_is_set = true}, x.t,
                                              y[t].t));
            test_check(!memcmp(y[0].t.data, y[t].t.data, 500 * 333 * 4), "%d threads, axis %d", t + 1, axis);
        }
        for (int t = 0; t < 3; t++) test_array_free(&y[t]);
        test_array_free(&x);
    }
    test_ok(h, strata_set_threads(h, 0));
}

static void refusals(void **s)
{
    (void)s;
    float x[6] = {0}, y[6] = {0};
    strata_tensor X = strata_matrix(x, STRATA_F32, 2, 3, STRATA_ROW_MAJOR, 0), Y = X;
    Y.data = y;
    test_error(h, strata_softmax_forward(h, &(strata_softmax){.axis = 2, .axis_is_set = true}, X, Y),
               STRATA_ERROR_ARGUMENT, "axis is 2", "-2 to 1");
    test_error(h, strata_softmax_forward(h, &(strata_softmax){.axis = -3}, X, Y), STRATA_ERROR_ARGUMENT,
               "axis is -3");
    test_error(h, strata_softmax_forward(h, NULL, X, strata_transpose(Y)), STRATA_ERROR_SHAPE, "2x3", "3x2");
    test_error(h, strata_softmax_forward(h, NULL, strata_point(x, STRATA_F32), strata_point(y, STRATA_F32)),
               STRATA_ERROR_ARGUMENT, "axis");
    for (int i = 0; i < 6; i++) test_check(y[i] == 0, "y was written");
    test_ok(h, strata_softmax_forward(h, NULL, strata_matrix(x, STRATA_F32, 2, 0, STRATA_ROW_MAJOR, 0),
                                      strata_matrix(y, STRATA_F32, 2, 0, STRATA_ROW_MAJOR, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_cases), cmocka_unit_test(gradients),
                                       cmocka_unit_test(special), cmocka_unit_test(threads_same_bits),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, setup, teardown) + test_lower_levels();
}
