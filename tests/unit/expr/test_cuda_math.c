/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_math.c - the device code's functions and conversions (include/strata/dev) compiled for the host: functions against long double over the whole
 * range, with the error of the approximate instructions added in both directions; conversions bit by bit against the CPU's. The bounds are the
 * CUDA column of docs/expressions.md, but for functions of the device library, which are libm's here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include "math_reference.h"
#include <strata/dev/math.cuh>

#define F(name, reference, bound32, bound64)                        \
    static float f32_##name(float x) { return st_##name##_f32(x); } \
    static double f64_##name(double x) { return st_##name##_f64(x); }
#define EACH(F)                       \
    F(sqrt, sqrtl, 0.5001, 0.5001)    \
    F(rsqrt, r_rsqrt, 1.5, 1.5)       \
    F(exp, expl, 4, 1)                \
    F(exp2, exp2l, 4, 1)              \
    F(expm1, expm1l, 1.1, 1.1)        \
    F(log, logl, 1, 1)                \
    F(log2, log2l, 1, 1)              \
    F(log1p, log1pl, 1, 1)            \
    F(sin, sinl, 1, 1)                \
    F(cos, cosl, 1, 1)                \
    F(tan, tanl, 1, 1)                \
    F(atan, atanl, 1, 1)              \
    F(tanh, tanhl, 2.5, 2.1)          \
    F(erf, erfl, 2.7, 1)              \
    F(erfc, erfcl, 11.5, 5)           \
    F(sigmoid, r_sigmoid, 7, 2.5)     \
    F(gelu, r_gelu, 11.5, 6)          \
    F(gelu_tanh, r_gelu_tanh, 5.5, 5) \
    F(silu, r_silu, 8.5, 5)           \
    F(softplus, r_softplus, 4.5, 2)   \
    F(elu, r_elu, 1.1, 1.1)           \
    F(hard_swish, r_hard_swish, 2.5, 2.5)
EACH(F)
#undef F

static const struct {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
    real (*ref)(real);
    double bound[2];
} functions[] = {
#define F(name, reference, bound32, bound64) {#name, f32_##name, f64_##name, reference, {bound32, bound64}},
    EACH(F)
#undef F
};

static void check(int fn, bool wide, double x, double *worst, double *at)
{
    const char *name = functions[fn].name;
    if (!wide) x = (double)(float)x;
    const real ref = functions[fn].ref(x);
    const double y = wide ? functions[fn].f64(x) : (double)functions[fn].f32((float)x);
    double e = ulp_error(ref, y, wide);
    const bool tails = !strcmp(name, "gelu") || !strcmp(name, "erfc");
    if (!wide && tails && fabsl(ref) < 1e-36L && fabs(y) <= 1.1 * (double)fabsl(ref)) e = 0; /* may be zero */
    if (!strcmp(name, "gelu_tanh")) e -= tail(ST_OP_GELU_TANH, wide, x);
    if (!strcmp(name, "gelu")) e -= tail(ST_OP_GELU, wide, x);
    if (!(e <= *worst)) *worst = e, *at = x;
}

static void every_function(void **state)
{
    (void)state;
    enum { POINTS = 60000 };
    static const double ranges[][2] = {{-1, 1}, {-6, 6}, {-20, 20}, {-110, 110}};
    int bad = 0;
    for (int wide = 0; wide < 2; wide++)
        for (int fn = 0; fn < ST_COUNT(functions); fn++) {
            double worst = 0, at = 0;
            for (int sign = -1; sign < 2; sign++) { /* ex2.approx is within 2^-22.5 */
                strata_dev_error = sign * 0x1p-22 * 0.70710678;
                if (wide && sign) continue;
                uint64_t u = 1;
                for (int i = 0; i < POINTS; i++, u += (wide ? UINT64_MAX : UINT32_MAX) / POINTS)
                    check(fn, wide, from_bits(u, wide), &worst, &at);
                for (int r = 0; r < ST_COUNT(ranges); r++)
                    for (int i = 0; i < POINTS / 4; i++)
                        check(fn, wide,
                              ranges[r][0] + (ranges[r][1] - ranges[r][0]) * (i + 0.37) / (POINTS / 4),
                              &worst, &at);
                static const double special[] = {0.0,   -0.0,  INFINITY, -INFINITY, NAN, 88.72,
                                                 88.73, -87.3, -103.9,   -104.1,    128, -149.5};
                for (int i = 0; i < ST_COUNT(special); i++) check(fn, wide, special[i], &worst, &at);
            }
            const bool ok = worst <= functions[fn].bound[wide];
            bad += !ok;
            if (!ok || getenv("VERBOSE"))
                printf("%-10s %s: %.3f ulp at %.9g (bound %g)%s\n", functions[fn].name, wide ? "f64" : "f32",
                       worst, at, functions[fn].bound[wide], ok ? "" : "  <--");
        }
    assert_int_equal(bad, 0);
}

/* operations without error, on pairs of special values: what folding constants gives */
static void exact_operations(void **state)
{
    (void)state;
    static const float v[] = {0.0,   -0.0,   1,      -1,  2.5,      -2.5,      3.5, 7.4f,
                              -8.2f, 200.7f, -1e30f, 3e9, INFINITY, -INFINITY, NAN, 1e-40f};
    double worst = 0;
#define SAME(got, op, ...)                                                                           \
    {                                                                                                \
        const double a_ = got, b_ = st_ir_eval(op, (const double[3]){__VA_ARGS__}, false);           \
        if (!(a_ == b_ || (a_ != a_ && b_ != b_))) {                                                 \
            printf("%s(%.17g, %.17g): %.17g, not %.17g\n", #op, (double)v[i], (double)v[j], a_, b_); \
            worst = 1;                                                                               \
        }                                                                                            \
    }
    for (int i = 0; i < ST_COUNT(v); i++)
        for (int j = 0; j < ST_COUNT(v); j++) {
            const float a = v[i], b = v[j];
            SAME(st_add_f32(a, b), ST_OP_ADD, a, b)
            SAME(st_min_f32(a, b), ST_OP_MIN, a, b)
            SAME(st_max_f32(a, b), ST_OP_MAX, a, b)
            SAME(st_lt_f32(a, b), ST_OP_LT, a, b)
            SAME(st_le_f32(a, b), ST_OP_LE, a, b)
            SAME(st_eq_f32(a, b), ST_OP_EQ, a, b)
            SAME(st_ne_f32(a, b), ST_OP_NE, a, b)
            SAME(st_and_f32(a, b), ST_OP_AND, a, b)
            SAME(st_or_f32(a, b), ST_OP_OR, a, b)
            SAME(st_copysign_f32(a, b), ST_OP_COPYSIGN, a, b)
            SAME(st_leaky_relu_f32(a, b), ST_OP_LEAKY_RELU, a, b)
            SAME(st_select_f32(a, b, 7), ST_OP_SELECT, a, b, 7)
            SAME(st_fma_f32(a, b, 7), ST_OP_FMA, a, b, 7)
            SAME(st_clamp_f32(a, -2, 3), ST_OP_CLAMP, a, -2, 3)
            SAME(st_relu_f32(a), ST_OP_RELU, a)
            SAME(st_sign_f32(a), ST_OP_SIGN, a)
            SAME(st_rint_f32(a), ST_OP_RINT, a)
            SAME(st_floor_f32(a), ST_OP_FLOOR, a)
            SAME(st_isnan_f32(a), ST_OP_ISNAN, a)
            SAME(st_isinf_f32(a), ST_OP_ISINF, a)
            SAME(st_not_f32(a), ST_OP_NOT, a)
            SAME(st_sat_i4_f32(a), ST_OP_SAT_I4, a)
            SAME(st_sat_u4_f32(a), ST_OP_SAT_U4, a)
            SAME(st_sat_i8_f32(a), ST_OP_SAT_I8, a)
            SAME(st_sat_u8_f32(a), ST_OP_SAT_U8, a)
            SAME(st_sat_i32_f32(a), ST_OP_SAT_I32, a)
            float r, k;
            recip_f32(b, &r, &k);
            const float q = div_row_f32(a, r, k), exact = a / b;
            assert_true(q == exact || (q != q && exact != exact) ||
                        fabsf(q - exact) <= 2.4e-7f * fabsf(exact) + 0x1p-149f);
        }
    assert_true(worst == 0);
}

static bool same_f32(float a, float b) { return bits_of_f32(a) == bits_of_f32(b) || (a != a && b != b); }

static void conversions(void **state)
{
    (void)state;
    for (uint32_t u = 0; u < 0x10000; u++) {
        assert_true(same_f32(cvt_f32_f16((uint16_t)u), st_f16_to_f32((uint16_t)u)));
        assert_true(same_f32(cvt_f32_bf16((uint16_t)u), st_bf16_to_f32((uint16_t)u)));
        if (u > 0xff) continue;
        assert_true(same_f32(cvt_f32_e4m3((uint8_t)u), st_f8e4m3_to_f32((uint8_t)u)));
        assert_true(same_f32(cvt_f32_e5m2((uint8_t)u), st_f8e5m2_to_f32((uint8_t)u)));
    }
    /* to small floats: bit patterns evenly, and numbers near ties */
    for (uint64_t i = 0; i < 3000000; i++) {
        const uint32_t u =
            i < 1500000 ? (uint32_t)(i * 2863u) : (uint32_t)((i * 0x9e3779b97f4a7c15ull) >> 32) & 0xfffff000u;
        const float f = f32_of_bits(u);
        const double d = (double)f * (i & 1 ? 1 + 0x1p-40 : 1 - 0x1p-40);
        uint16_t w;
        uint8_t b;
#define TO(bits, from, type, v)   \
    st_store_f64(type, &bits, v); \
    if (v == v && bits != from) fail_msg("%s of %a is %#x, not %#x", #from, (double)v, from, bits);
        TO(w, cvt_f16_f32(f), STRATA_F16, (double)f)
        TO(w, cvt_bf16_f32(f), STRATA_BF16, (double)f)
        TO(b, cvt_e4m3_f32(f), STRATA_F8E4M3, (double)f)
        TO(b, cvt_e5m2_f32(f), STRATA_F8E5M2, (double)f)
        TO(w, cvt_f16_f64(d), STRATA_F16, d)
        TO(w, cvt_bf16_f64(d), STRATA_BF16, d)
        TO(b, cvt_e4m3_f64(d), STRATA_F8E4M3, d)
        TO(b, cvt_e5m2_f64(d), STRATA_F8E5M2, d)
        int32_t n;
        int64_t l;
        int8_t c;
        TO(n, cvt_i32_f32(f), STRATA_I32, (double)f)
        st_store_f64(STRATA_I64, &l, (double)f);
        if (f == f) assert_true(l == cvt_i64_f32(f));
        TO(c, cvt_i8_f32(f), STRATA_I8, (double)f)
        TO(b, cvt_u8_f32(f), STRATA_U8, (double)f)
    }
    const float nan = STRATA_DEV_NAN;
    assert_true(cvt_i32_f32(nan) == 0 && cvt_i64_f32(nan) == 0 && cvt_u8_f32(nan) == 0 &&
                cvt_i8_f64((double)nan) == 0);
    assert_true(cvt_f32_f16(cvt_f16_f32(nan)) != 0 && isnan(cvt_f32_f16(cvt_f16_f32(nan))));
    assert_true(isnan(cvt_f32_e4m3(cvt_e4m3_f32(nan))) && isnan(cvt_f32_e5m2(cvt_e5m2_f32(nan))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_function), cmocka_unit_test(exact_operations),
                                       cmocka_unit_test(conversions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
