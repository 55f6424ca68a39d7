/* SPDX-License-Identifier: Apache-2.0 */
/* test_cross_entropy.c - labels of both widths, probabilities, smoothing, ignored rows: against double precision; gradients against
 * central differences; wrong labels are refused before anything is written. */
#include <math.h>
#include <strata.h>
#include "levels.h"
#include "handle.h"
#include "support.h"

#define AT(t, ...) test_elem(t, __VA_ARGS__)

/* target probability of class c in row r */
static double target(const strata_cross_entropy *o, const strata_tensor *l, int64_t r, int64_t c,
                     int64_t classes)
{
    const double p = l->rank == 2 ? AT(*l, r, c) : AT(*l, r) == (double)c;
    return (1 - o->smoothing) * p + o->smoothing / (double)classes;
}

static void check(test_rng *r, strata_type type, int i)
{
    int64_t dim[2] = {test_int(r, 1, 40), test_int(r, 1, 30)};
    if (test_chance(r, 0.1)) dim[1] = test_int(r, 100, 2000);
    const int kind = (int)test_int(r, 0, 2); /* i32, i64, probabilities */
    strata_cross_entropy o = {.use_ignore = kind < 2 && test_chance(r, 0.4),
                              .ignore_label = test_chance(r, 0.5) ? -100 : 0,
                              .smoothing = test_chance(r, 0.5) ? 0 : 0.1};
    const bool one = test_chance(r, 0.3);
    test_problem("cross entropy case %d %s %lldx%lld kind %d ignore %d %lld smoothing %g one %d", i,
                 strata_type_name(type), (long long)dim[0], (long long)dim[1], kind, o.use_ignore,
                 (long long)o.ignore_label, o.smoothing, one);
    test_array x = test_array_make(r, type, 2, dim, TEST_ANY),
               dx = test_array_make(r, type, 2, dim, TEST_ANY);
    test_array l = kind == 2 ? test_array_make(r, type, 2, dim, TEST_ANY)
                             : test_array_make(r, kind ? STRATA_I64 : STRATA_I32, 1, dim, TEST_ANY);
    test_array loss = test_array_make(r, type, 1, dim, TEST_ANY),
               dl = test_array_make(r, type, one ? 0 : 1, dim, TEST_ANY);
    test_array_random(r, &x, -6, 6), test_array_random(r, &dl, -1, 1);
    for (int64_t a = 0; a < dim[0]; a++) {
        double sum = 0;
        if (kind < 2) {
            const bool skip = o.use_ignore && test_chance(r, 0.3);
            test_put(&l.t, (const int64_t[STRATA_MAX_RANK]){a},
                     skip ? (double)o.ignore_label : (double)test_int(r, 0, dim[1] - 1));
            continue;
        }
        for (int64_t c = 0; c < dim[1]; c++) {
            const double p = test_chance(r, 0.2) ? 0 : test_real(r, 0, 1);
            test_put(&l.t, (const int64_t[STRATA_MAX_RANK]){a, c}, p);
            sum += p;
        }
        for (int64_t c = 0; c < dim[1] && sum > 0; c++)
            test_put(&l.t, (const int64_t[STRATA_MAX_RANK]){a, c}, AT(l.t, a, c) / sum);
    }
    test_ok(h, strata_cross_entropy_forward(h, &o, x.t, l.t, loss.t));
    test_ok(h, strata_cross_entropy_backward(h, &o, x.t, l.t, dl.t, dx.t));
    const double u = test_unit(type), n = (double)dim[1];
    for (int64_t a = 0; a < dim[0]; a++) {
        double max = -INFINITY, s = 0, want = 0, mag = 0;
        for (int64_t c = 0; c < dim[1]; c++) max = fmax(max, AT(x.t, a, c));
        for (int64_t c = 0; c < dim[1]; c++) s += exp(AT(x.t, a, c) - max);
        const bool ignored = o.use_ignore && AT(l.t, a) == (double)o.ignore_label;
        for (int64_t c = 0; c < dim[1]; c++) {
            const double t = target(&o, &l.t, a, c, dim[1]);
            want += t * (log(s) - (AT(x.t, a, c) - max));
            mag += t * (fabs(log(s)) + fabs(AT(x.t, a, c) - max)) + 1 / n;
        }
        test_close(AT(loss.t, a), ignored ? 0 : want, ignored ? 0 : u * (2 * n + 40) * mag, "loss[%d]",
                   (int)a);
        const double g = one ? AT(dl.t, 0) : AT(dl.t, a);
        for (int64_t c = 0; c < dim[1]; c++) {
            const double p = exp(AT(x.t, a, c) - max) / s, t = target(&o, &l.t, a, c, dim[1]);
            test_close(AT(dx.t, a, c), ignored ? 0 : g * (p - t),
                       ignored ? 0 : u * fabs(g) * ((n + 40) * p + 6 * t), "dx[%d,%d]", (int)a, (int)c);
        }
    }
    test_array_intact(&x), test_array_intact(&dx), test_array_intact(&l), test_array_intact(&loss),
        test_array_intact(&dl);
    test_array_free(&x), test_array_free(&dx), test_array_free(&l), test_array_free(&loss),
        test_array_free(&dl);
}

static void random_cases(void **s)
{
    (void)s;
    test_rng r = test_rng_make(23);
    for (int i = 0; i < test_rounds(250); i++) check(&r, i % 3 == 2 ? STRATA_F64 : STRATA_F32, i);
}

static void gradients(void **s)
{
    (void)s;
    test_rng r = test_rng_make(9);
    for (int kind = 0; kind < 2; kind++) {
        double x[15], p[15], dl[3], loss[3], dx[15];
        int32_t label[3] = {4, 0, 2};
        for (int i = 0; i < 15; i++) x[i] = test_real(&r, -2, 2), p[i] = 0.2;
        for (int i = 0; i < 3; i++) dl[i] = test_real(&r, -1, 1), p[5 * i] += 0.1, p[5 * i + 1] -= 0.1;
        const strata_cross_entropy o = {.smoothing = 0.2};
        strata_tensor X = strata_matrix(x, STRATA_F64, 3, 5, STRATA_ROW_MAJOR, 0), DX = X, P = X;
        DX.data = dx, P.data = p;
        strata_tensor L = kind ? P : strata_vector(label, STRATA_I32, 3, 1),
                      LOSS = strata_vector(loss, STRATA_F64, 3, 1);
        test_ok(h, strata_cross_entropy_backward(h, &o, X, L, strata_vector(dl, STRATA_F64, 3, 1), DX));
        for (int i = 0; i < 15; i++) {
            const double v = x[i], step = 1e-6;
            double g = 0;
            for (int side = -1; side <= 1; side += 2) {
                x[i] = v + side * step;
                test_ok(h, strata_cross_entropy_forward(h, &o, X, L, LOSS));
                for (int j = 0; j < 3; j++) g += side * loss[j] * dl[j] / (2 * step);
            }
            x[i] = v;
            test_close(dx[i], g, 3 * 8 * 1.2e-16 / step, "kind %d [%d]", kind, i);
        }
    }
}

static void special(void **s)
{
    (void)s;
    float x[6] = {-INFINITY, 0, 1, 1e30f, 1e30f, 0}, loss[2], p[6] = {0, 1, 0, 0.5f, 0.5f, 0};
    int64_t l[2] = {1, 0};
    strata_tensor X = strata_matrix(x, STRATA_F32, 2, 3, STRATA_ROW_MAJOR, 0), P = X,
                  L = strata_vector(l, STRATA_I64, 2, 1), LOSS = strata_vector(loss, STRATA_F32, 2, 1);
    P.data = p;
    for (int kind = 0; kind < 2; kind++) {
        test_ok(h, strata_cross_entropy_forward(h, NULL, X, kind ? P : L, LOSS));
        test_close(loss[0], log(1 + exp(1)), 1e-6, "a masked class (kind %d)", kind);
        test_close(loss[1], log(2), 1e-6, "no overflow (kind %d)", kind);
    }
    l[0] = 0;
    test_ok(h, strata_cross_entropy_forward(h, NULL, X, L, LOSS));
    test_close(loss[0], INFINITY, 0, "the label is masked");
}

static void refusals(void **s)
{
    (void)s;
    float x[20] = {0}, y[20] = {0}, loss[4] = {7, 7, 7, 7};
    int32_t l[4] = {0, 4, 5, 1};
    strata_tensor X = strata_matrix(x, STRATA_F32, 4, 5, STRATA_ROW_MAJOR, 0), Y = X,
                  L = strata_vector(l, STRATA_I32, 4, 1), LOSS = strata_vector(loss, STRATA_F32, 4, 1);
    Y.data = y;
    test_error(h, strata_cross_entropy_forward(h, NULL, X, L, LOSS), STRATA_ERROR_ARGUMENT, "row 2", "is 5",
               "[0, 5)");
    test_error(h, strata_cross_entropy_backward(h, NULL, X, L, LOSS, Y), STRATA_ERROR_ARGUMENT, "row 2",
               "is 5");
    l[2] = -1;
    test_error(h,
               strata_cross_entropy_forward(
                   h, &(strata_cross_entropy){.use_ignore = true, .ignore_label = -2}, X, L, LOSS),
               STRATA_ERROR_ARGUMENT, "row 2", "is -1", "ignore_label");
    l[2] = 0;
    test_error(h, strata_cross_entropy_forward(h, &(strata_cross_entropy){.smoothing = 1}, X, L, LOSS),
               STRATA_ERROR_ARGUMENT, "smoothing is 1");
    test_error(h, strata_cross_entropy_forward(h, NULL, X, L, strata_vector(loss, STRATA_F32, 3, 1)),
               STRATA_ERROR_SHAPE, "4 rows");
    test_error(h, strata_cross_entropy_forward(h, NULL, X, strata_vector(l, STRATA_I32, 3, 1), LOSS),
               STRATA_ERROR_SHAPE, "one label a row");
    test_error(h, strata_cross_entropy_forward(h, NULL, X, strata_vector(l, STRATA_I8, 4, 1), LOSS),
               STRATA_ERROR_TYPE, "i32 or i64");
    test_error(h, strata_cross_entropy_forward(h, NULL, strata_vector(x, STRATA_F32, 4, 1), L, LOSS),
               STRATA_ERROR_SHAPE, "rank 1");
    test_error(h, strata_cross_entropy_forward(h, NULL, X, Y, strata_vector(y, STRATA_F32, 4, 1)),
               STRATA_ERROR_ALIAS, "overlaps");
    for (int i = 0; i < 4; i++) test_check(loss[i] == 7, "loss was written");
    for (int i = 0; i < 20; i++) test_check(y[i] == 0, "dlogits was written");
    test_ok(h, strata_cross_entropy_forward(h, NULL, strata_matrix(x, STRATA_F32, 0, 5, STRATA_ROW_MAJOR, 0),
                                            strata_vector(l, STRATA_I32, 0, 1),
                                            strata_vector(loss, STRATA_F32, 0, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_cases), cmocka_unit_test(gradients),
                                       cmocka_unit_test(special), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, setup, teardown) + test_lower_levels();
}
