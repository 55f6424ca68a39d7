/* SPDX-License-Identifier: Apache-2.0 */
/* test_public_level1.c - faults of level 1 of BLAS that users of other libraries reported in public, as small inputs with the right value
 * (test_public_cases.c has the other operators). Each of them at every level of instructions, at lengths around every chunk. */
#include "support.h"
#include "levels.h"
#include <math.h>
#include <strata.h>

static strata_handle *h;

/* ---- scal is IEEE multiplication: OpenMathLib/OpenBLAS#4728, #86, #4413, #5078. A vector of n elements, every |inc| apart and NaN
 * between them; the special one at each of a few positions. ---------------------------------------------------------------------------- */
static const int64_t vector_length[] = {1, 2, 3, 8, 9, 17, 33, 70, 1025}, vector_inc[] = {1, 3, -1};
static strata_tensor vector_of(void *data, strata_type type, int64_t n, int64_t inc, double v)
{
    const size_t size = strata_type_bits(type) / 8,
                 part = size / (type == STRATA_C64 || type == STRATA_C128 ? 2 : 1);
    strata_tensor x = strata_vector(data, type, n, inc);
    test_poison(data, (size_t)(n - 1) * (size_t)llabs(inc) * size + size);
    for (int64_t i = 0; i < n; i++) {
        char *at = (char *)x.data + i * inc * (int64_t)size;
        memset(at, 0, size);
        memcpy(at, part == 4 ? (void *)&(float){(float)v} : &v, part); /* the real part */
    }
    return x;
}
static double real_part(const strata_tensor *x, int64_t i)
{
    const bool f32 = x->type == STRATA_F32 || x->type == STRATA_C64;
    const char *at = (char *)x->data + i * x->stride[0] * (int64_t)strata_type_bits((strata_type)x->type) / 8;
    float s;
    double d;
    memcpy(f32 ? (void *)&s : &d, at, f32 ? 4 : 8);
    return f32 ? s : d;
}

static void scal_multiplies(void **state)
{
    (void)state;
    static const double pair[8][2] = {{0, NAN},        {0, INFINITY},   {NAN, 0}, {INFINITY, 0},
                                      {NAN, INFINITY}, {INFINITY, NAN}, {NAN, 3}, {3, NAN}};
    static const strata_type type[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};
    static double room[2 * 3 * 1025];
    const int types = strcmp(strata_handle_device(h), "cpu") ? 2 : 4; /* a GPU takes the real ones */
    for (int c = 0; c < types * TEST_COUNT(vector_length) * TEST_COUNT(vector_inc) * 8; c++) {
        const strata_type t = type[c / 8 % types];
        const double alpha = pair[c % 8][0], special = pair[c % 8][1];
        const int64_t n = vector_length[c / 8 / types % TEST_COUNT(vector_length)],
                      inc = vector_inc[c / 8 / types / TEST_COUNT(vector_length)], at = c % n;
        strata_tensor x = vector_of(room, t, n, inc, 2);
        vector_of((char *)x.data + at * inc * (int64_t)strata_type_bits(t) / 8, t, 1, 1, special);
        test_problem("scal: %s, %g times %g at %lld", test_say(x), alpha, special, (long long)at);
        test_ok(h, strata_scal(h, strata_real(alpha), x));
        for (int64_t i = 0; i < n; i++)
            test_close(real_part(&x, i), i == at ? NAN : alpha * 2, 0, "x[%lld]", (long long)i);
    }
}

/* The factor 0 is different in axpy: y is left as it is and x need not even be readable (the reports' comparison). */
static void axpy_by_zero_does_nothing(void **state)
{
    (void)state;
    double y[4] = {1, NAN, -0.0, INFINITY}, before[4], x[4] = {NAN, INFINITY, NAN, -INFINITY};
    char *page = test_guard(0, true); /* ends where a page without access begins */
    memcpy(before, y, sizeof y);
    for (int k = 0; k < 2; k++) {
        test_ok(h, strata_axpy(h, STRATA_ZERO, strata_vector(k ? (void *)page : x, STRATA_F64, 4, 1),
                               strata_vector(y, STRATA_F64, 4, 1)));
        assert_memory_equal(y, before, sizeof y);
    }
    test_guard_free(page);
}

/* nrm2 without overflow and underflow: flame/blis#332, OpenMathLib/OpenBLAS#3679, #2998 */
static void norms_neither_overflow_nor_vanish(void **state)
{
    (void)state;
    static const struct {
        strata_type type;
        double a, b, want, bound; /* a at one position, b at another where there is one; zeros elsewhere */
    } row[] = {{STRATA_F32, 2e20, 0, 2e20, 2e14},
               {STRATA_F32, 2e-28, 0, 2e-28, 2e-34},
               {STRATA_F32, 3e20, 4e20, 5e20, 5e14},
               {STRATA_F64, 7.457008414e-310, 0, 7.457008414e-310, 7e-315},
               {STRATA_F64, 3e200, 4e200, 5e200, 5e185},
               {STRATA_F64, -INFINITY, 0, INFINITY, 0},
               {STRATA_F32, -INFINITY, 3e20, INFINITY, 0},
               {STRATA_F64, 1, NAN, NAN, 0},
               {STRATA_F64, INFINITY, NAN, NAN, 0},
               {STRATA_F32, NAN, -INFINITY, NAN, 0}};
    static double room[3 * 1025];
    for (int c = 0; c < TEST_COUNT(row) * TEST_COUNT(vector_length) * TEST_COUNT(vector_inc) * 3; c++) {
        const int r = c % TEST_COUNT(row), l = c / TEST_COUNT(row) % TEST_COUNT(vector_length);
        const int64_t n = vector_length[l],
                      inc = vector_inc[c / TEST_COUNT(row) / TEST_COUNT(vector_length) % 3],
                      at[] = {0, n / 2, n - 1}, p = at[c % 3], q = n - 1 - p;
        strata_tensor x = vector_of(room, row[r].type, n, inc, 0);
        double result = -1, want = q != p ? row[r].want : fabs(row[r].a);
        test_put(&x, (int64_t[STRATA_MAX_RANK]){q}, row[r].b);
        test_put(&x, (int64_t[STRATA_MAX_RANK]){p}, row[r].a);
        test_problem("nrm2: %s, %g at %lld and %g at %lld", test_say(x), row[r].a, (long long)p, row[r].b,
                     (long long)q);
        test_ok(h, strata_nrm2(h, x, strata_point(&result, STRATA_F64)));
        test_close(result, want, row[r].bound, "the norm");
    }
    static double three[] = {1, NAN, INFINITY};
    double result = -1;
    test_ok(h, strata_nrm2(h, strata_vector(three, STRATA_F64, 3, 1), strata_point(&result, STRATA_F64)));
    assert_true(isnan(result));
}

/* rot with zero increments: OpenMathLib/OpenBLAS#4. Outputs whose elements share memory are refused, so no kernel can take them for
 * independent; the reference loop's value comes of four calls. (strata_vector's 0 means 1, hence the arrays.) */
static void rot_refuses_shared_elements(void **state)
{
    (void)state;
    double x = 1, y = 2;
    const strata_scalar c = strata_real(0.25), s = strata_real(0.5);
    test_problem("rot with zero increments");
    test_error(h,
               strata_rot(h, strata_array(&x, STRATA_F64, 1, (int64_t[]){4}, (int64_t[]){0}),
                          strata_array(&y, STRATA_F64, 1, (int64_t[]){4}, (int64_t[]){0}), c, s),
               STRATA_ERROR_LAYOUT, "strata_rot: x", "stride 0");
    assert_true(x == 1 && y == 2);
    for (int i = 0; i < 4; i++)
        test_ok(h, strata_rot(h, strata_array(&x, STRATA_F64, 1, (int64_t[]){1}, (int64_t[]){0}),
                              strata_array(&y, STRATA_F64, 1, (int64_t[]){1}, (int64_t[]){0}), c, s));
    assert_true(x == -0.21484375 && y == 0.0390625);
}

/* No read past a vector: OpenMathLib/OpenBLAS#494 */
static void vectors_are_not_read_beyond(void **state)
{
    (void)state;
    double *page = test_guard(24, true), out = NAN;
    page[0] = 1, page[1] = 2, page[2] = 3;
    test_ok(h, strata_dot(h, strata_vector(page + 1, STRATA_F64, 2, 1), strata_vector(page, STRATA_F64, 2, 1),
                          strata_point(&out, STRATA_F64)));
    test_close(out, 8, 0, "2 * 1 + 3 * 2");
    test_guard_free(page);
    for (int64_t n = 1; n <= 70; n++)
        for (int k = 0; k < 4; k++) {
            const strata_type t = k & 1 ? STRATA_F64 : STRATA_F32;
            const size_t bytes = (size_t)n * strata_type_bits(t) / 8;
            void *a = test_guard(bytes, k & 2), *b = test_guard(bytes, k & 2);
            strata_tensor x = vector_of(a, t, n, 1, 2), y = vector_of(b, t, n, 1, 3);
            test_problem("guard pages: %s, side %d", test_say(x), k >> 1);
            test_ok(h, strata_dot(h, x, y, strata_point(&out, STRATA_F64)));
            test_close(out, 6.0 * (double)n, 0, "dot");
            test_ok(h, strata_asum(h, x, strata_point(&out, STRATA_F64)));
            test_close(out, 2.0 * (double)n, 0, "asum");
            test_ok(h, strata_nrm2(h, x, strata_point(&out, STRATA_F64)));
            test_close(out, sqrt(4.0 * (double)n), 1e-14 * (double)n, "nrm2");
            test_ok(h, strata_axpy(h, strata_real(2), x, y));
            for (int64_t i = 0; i < n; i++) test_close(real_part(&y, i), 7, 0, "y[%lld]", (long long)i);
            assert_true(test_guard_intact(a) && test_guard_intact(b));
            test_guard_free(a);
            test_guard_free(b);
        }
}

int main(void)
{
    if (strata_create(&h, test_device())) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scal_multiplies),
        cmocka_unit_test(axpy_by_zero_does_nothing),
        cmocka_unit_test(norms_neither_overflow_nor_vanish),
        cmocka_unit_test(rot_refuses_shared_elements),
        cmocka_unit_test(vectors_are_not_read_beyond),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed + test_lower_levels();
}
