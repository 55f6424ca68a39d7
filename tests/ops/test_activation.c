/* SPDX-License-Identifier: Apache-2.0 */
/* test_activation.c - every activation and its derivative against libm in double precision (long double where it cancels), over random
 * views; NaN, infinities, kinks, in place, accumulation; derivatives against central differences. */
#include <math.h>
#include <strata.h>
#include "levels.h"
#include "handle.h"
#include "support.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double f(int kind, double x, double slope)
{
    switch (kind) {
    case STRATA_RELU: return isnan(x) ? x : x > 0 ? x : 0;
    case STRATA_LEAKY_RELU: return x > 0 ? x : x * slope;
    case STRATA_RELU6: return isnan(x) ? x : x > 6 ? 6 : x > 0 ? x : 0;
    case STRATA_ELU: return x > 0 ? x : slope * expm1(x);
    case STRATA_SIGMOID: return sigmoid(x);
    case STRATA_TANH: return tanh(x);
    case STRATA_GELU: return isinf(x) ? (x > 0 ? x : 0) : 0.5 * x * erfc(-x * M_SQRT1_2);
    case STRATA_GELU_TANH:
        return isinf(x) ? (x > 0 ? x : 0) : x * sigmoid(2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    case STRATA_SILU: return isinf(x) ? (x > 0 ? x : 0) : x * sigmoid(x);
    case STRATA_SOFTPLUS: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case STRATA_HARD_SWISH: return isnan(x) ? x : x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
    default: return x;
    }
}
/* derivative where it exists */
static double df(int kind, double x, double slope)
{
    switch (kind) {
    case STRATA_RELU: return x > 0;
    case STRATA_LEAKY_RELU: return x > 0 ? 1 : slope;
    case STRATA_RELU6: return x > 0 && x < 6;
    case STRATA_ELU: return x > 0 ? 1 : slope * exp(x);
    case STRATA_SIGMOID: return sigmoid(x) * sigmoid(-x);
    case STRATA_TANH: return 1 / (cosh(x) * cosh(x));
    case STRATA_GELU:
        return 0.5 * erfc(-x * M_SQRT1_2) + (isinf(x) ? 0 : x * exp(-0.5 * x * x) / sqrt(2 * M_PI));
    case STRATA_GELU_TANH: {
        if (fabs(x) > 40) return x > 0;
        double u = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), s = sigmoid(2 * u);
        return s + x * 2 * s * sigmoid(-2 * u) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    }
    case STRATA_SILU: return fabs(x) > 1e4 ? x > 0 : sigmoid(x) * (1 + x * sigmoid(-x));
    case STRATA_SOFTPLUS: return sigmoid(x);
    case STRATA_HARD_SWISH: return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
    default: return 1;
    }
}
/* Relative to |f| plus |x f'| (what a rounding of x does) plus a floor for the kinds that subtract from 1. */
static double bound(int kind, double x, double slope, strata_type t)
{
    const double u = test_unit(t), y = f(kind, x, slope);
    const double condition = fabs(x) < 1e30 ? fabs(x * df(kind, x, slope)) : 0;
    const bool tail = kind == STRATA_GELU_TANH || kind == STRATA_GELU;
    return u * (16 * fabs(y) + 8 * condition + (tail ? 4 * fmin(fabs(x), 10) : 0)) +
           (t == STRATA_F64 ? 2e-323 : 6e-45); /* four denormals */
}

static void check(test_rng *r, int kind, strata_type type, int i)
{
    const int rank = (int)test_int(r, 0, 5);
    int64_t dim[STRATA_MAX_RANK];
    for (int d = 0; d < rank; d++) dim[d] = test_int(r, 1, rank < 3 ? 70 : 9);
    const double slope = test_chance(r, 0.5) ? 0.3 : 0, used = slope != 0           ? slope
                                                               : kind == STRATA_ELU ? 1
                                                                                    : 0.01;
    strata_activation o = {
        .kind = (strata_activation_kind)kind, .slope = slope, .accumulate = test_chance(r, 0.4)};
    test_problem("activation %d case %d %s rank %d slope %g accumulate %d", kind, i, strata_type_name(type),
                 rank, slope, o.accumulate);
    test_array x = test_array_make(r, type, rank, dim, TEST_ANY),
               y = test_array_make(r, type, rank, dim, TEST_ANY);
    test_array dy = test_array_make(r, type, rank, dim, TEST_ANY),
               dx = test_array_make(r, type, rank, dim, TEST_ANY);
    test_array_random(r, &x, -8, 8), test_array_random(r, &dy, -2, 2), test_array_random(r, &dx, -1, 1);
    static const double special[] = {0, -0.0, NAN, INFINITY, -INFINITY, 6, 3, -3, 100, -100, 1e-20, -1e-20};
    int64_t idx[STRATA_MAX_RANK] = {0};
    do {
        if (test_chance(r, 0.1)) test_put(&x.t, idx, special[test_int(r, 0, TEST_COUNT(special) - 1)]);
    } while (test_next(&x.t, idx));
    double *before = malloc((size_t)strata_count(x.t) * sizeof *before);
    int64_t e = 0;
    memset(idx, 0, sizeof idx);
    do before[e++] = o.accumulate ? test_get(&dx.t, idx) : 0;
    while (test_next(&dx.t, idx));
    if (!o.accumulate) test_poison(dx.base, dx.bytes);
    test_ok(h, strata_activation_forward(h, &o, x.t, y.t));
    test_ok(h, strata_activation_backward(h, &o, x.t, dy.t, dx.t));
    memset(idx, 0, sizeof idx);
    e = 0;
    do {
        const double v = test_get(&x.t, idx), want = isnan(v) ? NAN : f(kind, v, used),
                     g = test_get(&dy.t, idx);
        test_close(test_get(&y.t, idx), want, isnan(v) ? 0 : bound(kind, v, used, type), "f(%.17g)", v);
        const double d = df(kind, v, used), grad = before[e] + g * d;
        const double b =
            test_unit(type) * (fabs(before[e]) + fabs(g) * (8 + 40 * fabs(d) + fmin(fabs(v), 10)));
        if (kind == STRATA_IDENTITY || !isnan(v))
            test_close(test_get(&dx.t, idx), grad, b, "f'(%.17g)", v);
        else
            test_check(isnan(test_get(&dx.t, idx)), "f'(NaN)");
        e++;
    } while (test_next(&x.t, idx));
    test_array_intact(&x), test_array_intact(&y), test_array_intact(&dy), test_array_intact(&dx);
    /* in place: y is x; dx is dy */
    if (!o.accumulate) {
        test_ok(h, strata_activation_backward(h, &o, x.t, dy.t, dy.t));
        test_ok(h, strata_activation_forward(h, &o, x.t, x.t));
        memset(idx, 0, sizeof idx);
        do {
            test_close(test_get(&x.t, idx), test_get(&y.t, idx), 0, "in place");
            test_close(test_get(&dy.t, idx), test_get(&dx.t, idx), 0, "in place backward");
        } while (test_next(&x.t, idx));
    }
    free(before);
    test_array_free(&x), test_array_free(&y), test_array_free(&dy), test_array_free(&dx);
}

static void random_cases(void **s)
{
    (void)s;
    test_rng r = test_rng_make(31);
    for (int i = 0; i < test_rounds(20); i++)
        for (int kind = 0; kind < STRATA_ACTIVATION_COUNT; kind++)
            check(&r, kind, i % 3 == 2 ? STRATA_F64 : STRATA_F32, i);
}

static void gradients(void **s)
{
    (void)s;
    for (int kind = 0; kind < STRATA_ACTIVATION_COUNT; kind++)
        for (int i = -30; i <= 30; i++) {
            double x = i * 0.31 + 0.013, up = x + 1e-6, down = x - 1e-6, yu = NAN, yd = NAN, one = 1, g = NAN;
            const strata_activation o = {.kind = (strata_activation_kind)kind};
            test_ok(h, strata_activation_forward(h, &o, strata_point(&up, STRATA_F64),
                                                 strata_point(&yu, STRATA_F64)));
            test_ok(h, strata_activation_forward(h, &o, strata_point(&down, STRATA_F64),
                                                 strata_point(&yd, STRATA_F64)));
            test_ok(h,
                    strata_activation_backward(h, &o, strata_point(&x, STRATA_F64),
                                               strata_point(&one, STRATA_F64), strata_point(&g, STRATA_F64)));
            test_close(g, (yu - yd) / 2e-6, 2e-9, "kind %d at %g", kind, x);
        }
}

static void refusals(void **s)
{
    (void)s;
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0};
    strata_tensor X = strata_vector(x, STRATA_F32, 6, 1), Y = strata_vector(y, STRATA_F32, 6, 1);
    test_error(h, strata_activation_forward(h, &(strata_activation){.kind = STRATA_ACTIVATION_COUNT}, X, Y),
               STRATA_ERROR_ARGUMENT, "kind is");
    test_error(h, strata_activation_forward(h, &(strata_activation){.slope = NAN}, X, Y),
               STRATA_ERROR_ARGUMENT, "slope");
    test_error(h, strata_activation_forward(h, NULL, X, strata_vector(y, STRATA_F32, 5, 1)),
               STRATA_ERROR_SHAPE, "x is 6 and y is 5");
    test_error(h, strata_activation_forward(h, NULL, X, strata_vector(y, STRATA_F64, 3, 1)),
               STRATA_ERROR_TYPE, "f32", "f64");
    test_error(h,
               strata_activation_forward(h, NULL, strata_vector(x, STRATA_F32, 4, 1),
                                         strata_vector(x + 1, STRATA_F32, 4, 1)),
               STRATA_ERROR_ALIAS, "overlaps");
    test_error(h, strata_activation_forward(h, &(strata_activation){.reserved = {1}}, X, Y),
               STRATA_ERROR_ARGUMENT, "reserved");
    for (int i = 0; i < 6; i++) test_check(y[i] == 0, "y was written");
    test_ok(h, strata_activation_forward(h, NULL, strata_vector(NULL, STRATA_F32, 0, 1),
                                         strata_vector(NULL, STRATA_F32, 0, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_cases), cmocka_unit_test(gradients),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, setup, teardown) + test_lower_levels();
}
