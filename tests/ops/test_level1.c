/* SPDX-License-Identifier: Apache-2.0 */
/* test_level1.c - BLAS level 1 against loops in long double: lengths around every chunk and piece, strides of both signs, guard pages, special
 * numbers, and the same bits for any number of threads. */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <strata.h>
#include "handle.h"
#include "support.h"

#ifndef CMPLXL /* the C library has it for gcc only */
#    define CMPLXL(re, im) __builtin_complex((long double)(re), (long double)(im))
#endif
typedef long double _Complex wide;
static const strata_type types[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};
enum { kinds = 4 };

static bool is_complex(strata_type t) { return t == STRATA_C64 || t == STRATA_C128; }
static strata_type part_of(strata_type t)
{
    return t == STRATA_C64 ? STRATA_F32 : t == STRATA_C128 ? STRATA_F64 : t;
}
static double unit(strata_type t) { return test_unit(part_of(t)); }

/* A vector in a guarded buffer: element i at base + start + i * inc elements; gaps are 0xff. */
typedef struct vec {
    strata_tensor t;
    unsigned char *base;
    size_t size;
} vec;

static vec make(test_rng *r, strata_type type, int64_t n)
{
    static const int64_t incs[] = {1, 1, 1, 2, 3, -1, -2};
    const int64_t inc = incs[test_int(r, 0, 6)], step = inc < 0 ? -inc : inc;
    vec v;
    v.size = strata_type_bits(type) / 8;
    v.base = test_guard((size_t)(n ? (n - 1) * step + 1 : 0) * v.size, test_chance(r, 0.5));
    v.t = strata_vector(v.base, type, n, inc);
    return v;
}
static void put(const vec *v, int64_t i, wide x)
{
    char *p = (char *)v->t.data + i * v->t.stride[0] * (int64_t)v->size;
    if (part_of((strata_type)v->t.type) == STRATA_F32) {
        float f[2] = {(float)creall(x), (float)cimagl(x)};
        memcpy(p, f, v->size);
    } else {
        double f[2] = {(double)creall(x), (double)cimagl(x)};
        memcpy(p, f, v->size);
    }
}
static wide get(const vec *v, int64_t i)
{
    const char *p = (const char *)v->t.data + i * v->t.stride[0] * (int64_t)v->size;
    if (part_of((strata_type)v->t.type) == STRATA_F32) {
        float f[2] = {0, 0};
        memcpy(f, p, v->size);
        return CMPLXL(f[0], f[1]);
    }
    double f[2] = {0, 0};
    memcpy(f, p, v->size);
    return CMPLXL(f[0], f[1]);
}
static void fill(test_rng *r, const vec *v)
{
    for (int64_t i = 0; i < v->t.dim[0]; i++)
        put(v, i, CMPLXL(test_real(r, -2, 2), is_complex((strata_type)v->t.type) ? test_real(r, -2, 2) : 0));
}
/* the bytes between elements are still 0xff */
static void intact(const vec *v)
{
    const int64_t n = v->t.dim[0], step = v->t.stride[0] < 0 ? -v->t.stride[0] : v->t.stride[0];
    test_check(test_guard_intact(v->base), "beside the vector");
    for (int64_t i = 0; i + 1 < n; i++)
        for (size_t b = v->size; b < (size_t)step * v->size; b++)
            test_check(v->base[(size_t)(i * step) * v->size + b] == 0xff, "between elements %d and %d",
                       (int)i, (int)i + 1);
}
static void drop(vec *v) { test_guard_free(v->base); }

static void close_to(wide got, wide want, double bound, int64_t i)
{
    test_close((double)creall(got), (double)creall(want), bound, "re [%d]", (int)i);
    test_close((double)cimagl(got), (double)cimagl(want), bound, "im [%d]", (int)i);
}

static int64_t length(test_rng *r)
{
    static const int64_t edge[] = {0,  1,  2,   3,    7,    8,    15,   16,    17,    31,   33,
                                   63, 65, 100, 1023, 1024, 1025, 3000, 32768, 32769, 70001};
    return test_chance(r, 0.5) ? test_int(r, 0, 200) : edge[test_int(r, 0, TEST_COUNT(edge) - 1)];
}
static strata_scalar random_factor(test_rng *r, strata_type t, wide *v)
{
    const double re = test_chance(r, 0.2) ? (double)test_int(r, 0, 1) : test_real(r, -2, 2);
    const double im = is_complex(t) && test_chance(r, 0.7) ? test_real(r, -2, 2) : 0;
    /* the operators work with the factor rounded to the vectors' type */
    const bool f32 = part_of(t) == STRATA_F32;
    *v = CMPLXL(f32 ? (double)(float)re : re, f32 ? (double)(float)im : im);
    return strata_complex(creall(*v), cimagl(*v));
}

static void test_axpby(void **state)
{
    (void)state;
    test_rng r = test_rng_make(1);
    for (int round = 0; round < test_rounds(400); round++) {
        const strata_type type = types[round % kinds];
        const int64_t n = length(&r);
        vec x = make(&r, type, n), y = make(&r, type, n), old = make(&r, type, n);
        wide a, b;
        strata_scalar alpha = random_factor(&r, type, &a), beta = random_factor(&r, type, &b);
        const int kind = (int)test_int(&r, 0, 2);
        test_problem("round %d: kind %d %s n %d", round, kind, test_say(x.t), (int)n);
        fill(&r, &x);
        fill(&r, &y);
        for (int64_t i = 0; i < n; i++) put(&old, i, get(&y, i));
        if (kind == 1 && b == 0)
            for (int64_t i = 0; i < n; i++) put(&y, i, CMPLXL(NAN, NAN)); /* not read */
        if (kind < 2 && a == 0)
            for (int64_t i = 0; i < n; i++) put(&x, i, CMPLXL(NAN, NAN));
        if (kind == 0) test_ok(h, strata_axpy(h, alpha, x.t, y.t));
        if (kind == 1) test_ok(h, strata_axpby(h, alpha, x.t, beta, y.t));
        if (kind == 2) test_ok(h, strata_scal(h, alpha, y.t));
        for (int64_t i = 0; i < n; i++) {
            const wide xi = kind == 2 ? 0 : a == 0 ? 0 : get(&x, i), yi = get(&old, i);
            const wide want = kind == 2 ? a * yi : a * xi + (kind == 0 ? 1 : b) * yi;
            const double mag = (double)(cabsl(kind == 2 ? a : a) * (cabsl(xi) + (kind == 2 ? cabsl(yi) : 0)) +
                                        cabsl(kind == 0 ? 1 : b) * cabsl(yi));
            close_to(get(&y, i), want, 8 * unit(type) * mag, i);
        }
        intact(&x);
        intact(&y);
        drop(&x);
        drop(&y);
        drop(&old);
    }
}

static void test_swap_and_rotations(void **state)
{
    (void)state;
    test_rng r = test_rng_make(2);
    for (int round = 0; round < test_rounds(300); round++) {
        const strata_type type = types[round % kinds];
        const int64_t n = length(&r);
        vec x = make(&r, type, n), y = make(&r, type, n), ox = make(&r, type, n), oy = make(&r, type, n);
        const int kind = (int)test_int(&r, 0, is_complex(type) ? 1 : 2);
        wide s;
        strata_scalar vs = random_factor(&r, type, &s);
        const double c = (double)(float)test_real(&r, -1, 1);
        double p64[5] = {-1, 0.5, -0.25, 2, 1.5};
        float p32[5] = {-1, 0.5f, -0.25f, 2, 1.5f};
        p64[0] = test_int(&r, -2, 1);
        p32[0] = (float)p64[0];
        test_problem("round %d: kind %d %s n %d flag %g", round, kind, test_say(x.t), (int)n, p64[0]);
        fill(&r, &x);
        fill(&r, &y);
        for (int64_t i = 0; i < n; i++) put(&ox, i, get(&x, i)), put(&oy, i, get(&y, i));
        if (kind == 0) test_ok(h, strata_swap(h, x.t, y.t));
        if (kind == 1) test_ok(h, strata_rot(h, x.t, y.t, strata_real(c), vs));
        if (kind == 2)
            test_ok(h, strata_rotm(h, x.t, y.t,
                                   strata_vector(type == STRATA_F32 ? (void *)p32 : p64, type, 5, 1)));
        double m[4] = {p64[1], p64[2], p64[3], p64[4]}; /* h11 h21 h12 h22 */
        if (p64[0] == 0) m[0] = m[3] = 1;
        if (p64[0] == 1) m[1] = -1, m[2] = 1;
        if (p64[0] == -2) m[0] = m[3] = 1, m[1] = m[2] = 0;
        for (int64_t i = 0; i < n; i++) {
            const wide a = get(&ox, i), b = get(&oy, i);
            const wide wx = kind == 0 ? b : kind == 1 ? c * a + s * b : m[0] * a + m[2] * b;
            const wide wy = kind == 0 ? a : kind == 1 ? c * b - conjl(s) * a : m[1] * a + m[3] * b;
            const double bound = kind == 0 ? 0 : 8 * unit(type) * (double)(3 * (cabsl(a) + cabsl(b)));
            close_to(get(&x, i), wx, bound, i);
            close_to(get(&y, i), wy, bound, i);
        }
        intact(&x);
        intact(&y);
        drop(&x), drop(&y), drop(&ox), drop(&oy);
    }
}

static void test_sums(void **state)
{
    (void)state;
    test_rng r = test_rng_make(3);
    for (int round = 0; round < test_rounds(400); round++) {
        const strata_type type = types[round % kinds], part = part_of(type);
        const int64_t n = length(&r);
        vec x = make(&r, type, n), y = make(&r, type, n), one = make(&r, type, 1),
            wider = make(&r, is_complex(type) ? STRATA_C128 : STRATA_F64, 1), real = make(&r, part, 1);
        test_problem("round %d: %s n %d", round, test_say(x.t), (int)n);
        fill(&r, &x);
        fill(&r, &y);
        wide u = 0, c = 0;
        long double sq = 0, sum = 0, mag = 0;
        int64_t most = n ? 0 : -1, least = most, at = 0;
        for (int64_t i = 0; i < n; i++) {
            const wide a = get(&x, i), b = get(&y, i);
            u += a * b;
            c += conjl(a) * b;
            mag += 2 * cabsl(a) * cabsl(b);
            sq += creall(a) * creall(a) + cimagl(a) * cimagl(a);
            sum += fabsl(creall(a)) + fabsl(cimagl(a));
        }
#define SIZE(i)                                                                                         \
    (part == STRATA_F32 ? (double)(fabsf((float)creall(get(&x, i))) + fabsf((float)cimagl(get(&x, i)))) \
                        : fabs((double)creall(get(&x, i))) + fabs((double)cimagl(get(&x, i))))
        for (int64_t i = 1; i < n; i++) {
            if (SIZE(i) > SIZE(most)) most = i;
            if (SIZE(i) < SIZE(least)) least = i;
        }
        const double grow = (double)(n + 8) * unit(type);
        test_ok(h, strata_dot(h, x.t, y.t, strata_point(one.t.data, type)));
        close_to(get(&one, 0), u, grow * (double)mag, 0);
        test_ok(h, strata_dotc(h, x.t, y.t, strata_point(one.t.data, type)));
        close_to(get(&one, 0), c, grow * (double)mag, 0);
        test_ok(h, strata_dot(h, x.t, y.t, strata_point(wider.t.data, (strata_type)wider.t.type)));
        close_to(get(&wider, 0), u, grow * (double)mag, 0);
        test_ok(h, strata_nrm2(h, x.t, strata_point(real.t.data, part)));
        close_to(get(&real, 0), sqrtl(sq), grow * (double)sqrtl(sq), 0);
        test_ok(h, strata_asum(h, x.t, strata_point(real.t.data, part)));
        close_to(get(&real, 0), sum, grow * (double)sum, 0);
        test_ok(h, strata_iamax(h, x.t, strata_point(&at, STRATA_I64)));
        test_check(at == most, "iamax %d, expected %d", (int)at, (int)most);
        test_ok(h, strata_iamin(h, x.t, strata_point(&at, STRATA_I64)));
        test_check(at == least, "iamin %d, expected %d", (int)at, (int)least);
        intact(&x);
        drop(&x), drop(&y), drop(&one), drop(&wider), drop(&real);
    }
}

/* Sums of whole numbers are exact: any lost or doubled element shows. */
static void test_exact(void **state)
{
    (void)state;
    test_rng r = test_rng_make(4);
    for (int round = 0; round < 60; round++) {
        const strata_type type = types[round % kinds];
        const int64_t n = test_int(&r, 0, 5000);
        vec x = make(&r, type, n), y = make(&r, type, n), one = make(&r, type, 1);
        wide want = 0;
        for (int64_t i = 0; i < n; i++) {
            put(&x, i, CMPLXL(test_int(&r, -8, 8), is_complex(type) ? test_int(&r, -8, 8) : 0));
            put(&y, i, CMPLXL(test_int(&r, -8, 8), is_complex(type) ? test_int(&r, -8, 8) : 0));
            want += get(&x, i) * get(&y, i);
        }
        test_problem("round %d: %s n %d", round, test_say(x.t), (int)n);
        test_ok(h, strata_dot(h, x.t, y.t, strata_point(one.t.data, type)));
        close_to(get(&one, 0), want, 0, 0);
        drop(&x), drop(&y), drop(&one);
    }
}

static void test_threads(void **state)
{
    (void)state;
    test_rng r = test_rng_make(5);
    const int64_t n = 400000;
    double *x = malloc((size_t)n * 8), *y = malloc((size_t)n * 8), first[3] = {0}, got[3];
    for (int64_t i = 0; i < n; i++) x[i] = test_real(&r, -1, 1), y[i] = test_real(&r, -1, 1);
    strata_tensor X = strata_vector(x, STRATA_F64, n, 1), Y = strata_vector(y, STRATA_F64, n, 1);
    for (int t = 1; t <= 3; t++) {
        test_ok(h, strata_set_threads(h, t));
        test_ok(h, strata_dot(h, X, Y, strata_point(&got[0], STRATA_F64)));
        test_ok(h, strata_nrm2(h, X, strata_point(&got[1], STRATA_F64)));
        test_ok(h, strata_asum(h, X, strata_point(&got[2], STRATA_F64)));
        if (t == 1) memcpy(first, got, sizeof got);
        test_check(memcmp(first, got, sizeof got) == 0, "%d threads give other bits", t);
    }
    test_ok(h, strata_set_threads(h, 0));
    free(x);
    free(y);
}

static double norm(const double *x, int64_t n)
{
    double r = -1;
    test_ok(h, strata_nrm2(h, strata_vector(x, STRATA_F64, n, 1), strata_point(&r, STRATA_F64)));
    return r;
}
static float normf(const float *x, int64_t n)
{
    float r = -1;
    test_ok(h, strata_nrm2(h, strata_vector(x, STRATA_F32, n, 1), strata_point(&r, STRATA_F32)));
    return r;
}

static void test_special_numbers(void **state)
{
    (void)state;
    static const double scal[][2] = {{0, NAN},        {0, INFINITY},   {NAN, 0}, {INFINITY, 0},
                                     {NAN, INFINITY}, {INFINITY, NAN}, {NAN, 3}, {3, NAN}};
    for (int i = 0; i < TEST_COUNT(scal); i++) {
        double x = scal[i][1];
        test_ok(h, strata_scal(h, strata_real(scal[i][0]), strata_vector(&x, STRATA_F64, 1, 1)));
        test_check(isnan(x), "%g * %g gave %g", scal[i][0], scal[i][1], x);
    }
    double many[100] = {-INFINITY};
    test_check(normf((float[]){2e20f}, 1) == 2e20f, "2e20");
    test_check(normf((float[]){2e-28f}, 1) == 2e-28f, "2e-28");
    test_close(normf((float[]){3e20f, 4e20f}, 2), 5e20, 5e14, "3-4-5");
    test_close(norm((double[]){7.457008414e-310, 0}, 2), 7.457008414e-310, 7e-315, "subnormal");
    test_check(norm(many, 100) == INFINITY, "-Inf");
    test_check(isnan(norm((double[]){1, NAN, INFINITY}, 3)), "NaN beside Inf");
    test_close(norm((double[]){3e300, 4e300}, 2), 5e300, 1e285, "large");
    test_close(norm((double[]){3e-300, 4e-300}, 2), 5e-300, 1e-315, "small");
    test_close(norm((double[]){3e300, 4e-300, 1}, 3), 3e300, 1e285, "mixed");
    test_check(norm((double[]){DBL_MAX, DBL_MAX}, 2) == INFINITY, "a norm beyond the range");
    test_check(norm(many, 0) == 0 && norm(many + 1, 99) == 0, "zeros");
    int64_t at = -5;
    double x[] = {1, -7, NAN, 9, NAN};
    test_ok(h, strata_iamax(h, strata_vector(x, STRATA_F64, 5, 1), strata_point(&at, STRATA_I64)));
    test_check(at == 2, "iamax gives the first NaN, got %d", (int)at);
    test_ok(h, strata_iamax(h, strata_vector(x, STRATA_F64, 2, -1), strata_point(&at, STRATA_I64)));
    test_check(at == 0, "from the far end: %d", (int)at);
}

/* A result of the wider type means products and sums of the wider type: BLAS's dsdot. */
static void test_wide_results(void **state)
{
    (void)state;
    test_rng r = test_rng_make(7);
    static const float extreme[] = {1e30f, 1e-30f};
    for (int i = 0; i < 2; i++) {
        const float v[2] = {extreme[i], extreme[i]};
        double d = 0, e = (double)extreme[i];
        strata_tensor x = strata_vector(v, STRATA_F32, 2, 1);
        test_ok(h, strata_dot(h, x, x, strata_point(&d, STRATA_F64)));
        test_close(d, 2 * e * e, 1e-15 * e * e, "dot of %g", e);
        test_ok(h, strata_nrm2(h, x, strata_point(&d, STRATA_F64)));
        test_close(d, sqrt(2) * e, 1e-15 * e, "norm of %g", e);
    }
    for (int round = 0; round < 40; round++) {
        const int64_t n = test_int(&r, 1, 3000);
        vec x = make(&r, STRATA_F32, n), y = make(&r, STRATA_F32, n);
        long double want = 0, mag = 0, sum = 0;
        double d = 0;
        fill(&r, &x);
        fill(&r, &y);
        for (int64_t i = 0; i < n; i++) {
            want += creall(get(&x, i)) * creall(get(&y, i));
            mag += fabsl(creall(get(&x, i)) * creall(get(&y, i)));
            sum += fabsl(creall(get(&x, i)));
        }
        test_ok(h, strata_dot(h, x.t, y.t, strata_point(&d, STRATA_F64)));
        test_close(d, (double)want, (double)(n + 2) * DBL_EPSILON * (double)mag, "dot");
        test_ok(h, strata_asum(h, x.t, strata_point(&d, STRATA_F64)));
        test_close(d, (double)sum, (double)(n + 2) * DBL_EPSILON * (double)sum, "asum");
        drop(&x);
        drop(&y);
    }
}

static void test_building_rotations(void **state)
{
    (void)state;
    test_rng r = test_rng_make(6);
    for (int round = 0; round < 200; round++) {
        static const double scale[] = {1, 1e300, 1e-300, 1e150, 0};
        double a = test_real(&r, -1, 1) * scale[test_int(&r, 0, 4)],
               b = test_real(&r, -1, 1) * scale[test_int(&r, 0, 4)], c = NAN, s = NAN, ra = a, rb = b;
        test_problem("rotg %a %a", a, b);
        test_ok(h, strata_rotg(h, strata_point(&ra, STRATA_F64), strata_point(&rb, STRATA_F64),
                               strata_point(&c, STRATA_F64), strata_point(&s, STRATA_F64)));
        const double m = fmax(fabs(a), fabs(b));
        test_close(c * c + s * s, 1, 8 * DBL_EPSILON, "c and s");
        if (m > 0) {
            test_close(c * (a / m) + s * (b / m), ra / m, 8 * DBL_EPSILON, "r");
            test_close(c * (b / m) - s * (a / m), 0, 8 * DBL_EPSILON, "zero");
        }
        double ca[2] = {test_real(&r, -1, 1), test_real(&r, -1, 1)},
               cb[2] = {test_real(&r, -1, 1), test_real(&r, -1, 1)}, cs[2] = {NAN, NAN};
        const wide va = CMPLXL(ca[0], ca[1]), vb = CMPLXL(cb[0], cb[1]);
        test_ok(h, strata_rotg(h, strata_point(ca, STRATA_C128), strata_point(cb, STRATA_C128),
                               strata_point(&c, STRATA_F64), strata_point(cs, STRATA_C128)));
        const wide sc = CMPLXL(cs[0], cs[1]);
        close_to(c * va + sc * vb, CMPLXL(ca[0], ca[1]), 16 * DBL_EPSILON, 0);
        close_to(c * vb - conjl(sc) * va, 0, 16 * DBL_EPSILON, 0);
    }
    for (int round = 0; round < 200; round++) {
        static const double scale[] = {1, 1e10, 1e-10, 1e20};
        double d1 = test_real(&r, 0.1, 1) * scale[test_int(&r, 0, 3)],
               d2 = test_real(&r, 0.1, 1) * scale[test_int(&r, 0, 3)], x1 = test_real(&r, -1, 1),
               y1 = test_real(&r, -1, 1), p[5] = {0}, o1 = d1, o2 = d2, ox = x1;
        test_problem("rotmg %a %a %a %a", d1, d2, x1, y1);
        test_ok(h, strata_rotmg(h, strata_point(&d1, STRATA_F64), strata_point(&d2, STRATA_F64),
                                strata_point(&x1, STRATA_F64), strata_point(&y1, STRATA_F64),
                                strata_vector(p, STRATA_F64, 5, 1)));
        double a = ox, b = y1;
        test_ok(h, strata_rotm(h, strata_vector(&a, STRATA_F64, 1, 1), strata_vector(&b, STRATA_F64, 1, 1),
                               strata_vector(p, STRATA_F64, 5, 1)));
        const double before = o1 * ox * ox + o2 * y1 * y1;
        test_close(a, x1, 1e-12 * fabs(x1), "x1");
        test_close(b, 0, 1e-12 * sqrt(before / d2), "the second component");
        test_close(d1 * x1 * x1, before, 1e-12 * before, "the weighted norm");
        test_check(d1 > 0x1p-24 && d1 < 0x1p24 && d2 > 0x1p-24 && d2 < 0x1p24, "scales %g %g", d1, d2);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, before[8], r = 0;
    int64_t at = 0;
    memcpy(before, x, sizeof x);
    strata_tensor a = strata_vector(x, STRATA_F32, 4, 1), b = strata_vector(x + 4, STRATA_F32, 3, 1),
                  c = strata_vector(x + 2, STRATA_F32, 4, 1);
    test_error(h, strata_axpy(h, STRATA_ONE, a, b), STRATA_ERROR_SHAPE, "strata_axpy", "4", "3");
    test_error(h, strata_axpy(h, STRATA_ONE, a, c), STRATA_ERROR_ALIAS, "overlap");
    test_error(h, strata_swap(h, a, a), STRATA_ERROR_ALIAS, "overlap");
    test_error(h, strata_scal(h, strata_complex(1, 2), a), STRATA_ERROR_TYPE, "alpha", "imaginary");
    test_error(h, strata_scal(h, STRATA_ONE, strata_matrix(x, STRATA_F32, 2, 2, STRATA_ROW_MAJOR, 0)),
               STRATA_ERROR_SHAPE, "rank");
    test_error(h, strata_dot(h, a, strata_vector(x, STRATA_F64, 4, 1), strata_point(&r, STRATA_F32)),
               STRATA_ERROR_TYPE, "f64");
    test_error(h, strata_nrm2(h, a, strata_point(&at, STRATA_I64)), STRATA_ERROR_TYPE, "result",
               "f32 or f64");
    test_error(h, strata_iamax(h, a, strata_point(&r, STRATA_F32)), STRATA_ERROR_TYPE, "i64");
    test_error(h, strata_scal(h, STRATA_ONE, strata_vector(x, STRATA_I32, 4, 1)), STRATA_ERROR_TYPE, "i32",
               "supported");
    test_error(h, strata_nrm2(h, strata_vector(NULL, STRATA_F32, 4, 1), strata_point(&r, STRATA_F32)),
               STRATA_ERROR_ARGUMENT, "x");
    test_error(NULL, strata_nrm2(NULL, a, strata_point(&r, STRATA_F32)), STRATA_ERROR_ARGUMENT, "handle");
    test_check(memcmp(before, x, sizeof x) == 0, "untouched");
    test_error(h, strata_nrm2(h, a, strata_point(x + 1, STRATA_F32)), STRATA_ERROR_ALIAS, "inside x");
    test_error(h, strata_dot(h, b, b, strata_point(x + 5, STRATA_F32)), STRATA_ERROR_ALIAS, "inside x");
    test_error(h,
               strata_rotg(h, strata_point(x, STRATA_F32), strata_point(x + 1, STRATA_F32),
                           strata_point(x, STRATA_F32), strata_point(x + 2, STRATA_F32)),
               STRATA_ERROR_ALIAS, "a and c");
    test_error(h, strata_rot(h, a, strata_vector(x + 4, STRATA_F32, 4, 1), strata_complex(1, 1), STRATA_ONE),
               STRATA_ERROR_TYPE, "c is", "real");
    test_check(memcmp(before, x, sizeof x) == 0, "untouched");
    /* y := x + y where they are the same view is allowed */
    test_ok(h, strata_axpy(h, STRATA_ONE, a, a));
    test_check(x[3] == 8, "doubled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axpby),        cmocka_unit_test(test_swap_and_rotations),
        cmocka_unit_test(test_sums),         cmocka_unit_test(test_exact),
        cmocka_unit_test(test_threads),      cmocka_unit_test(test_special_numbers),
        cmocka_unit_test(test_wide_results), cmocka_unit_test(test_building_rotations),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
