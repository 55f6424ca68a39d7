/* SPDX-License-Identifier: Apache-2.0 */
/* math.cuh - the functions of the expression language in device code, st_<function>_f32 and st_<function>_f64. Their errors are in the CUDA column of
 * docs/expressions.md; NaN, infinities and the signs of zeros are the CPU's.
 *
 * Sums and products are the rounded operations themselves (never contracted by the compiler), so that a value is the same wherever a program computes it again. exp,
 * and what is made of it, splits e^x into ex2(f) 2^j with f = x log2 e - j in two fused steps: the error is ex2.approx's (2^-22.5) and a rounding, and scaling last
 * keeps the digits of denormal results. gelu and erfc use the tail Phi(-a) = exp(-a^2/2) G(a) with G = t P8(t), t = 1 / (1 + 0.34 a), a^2 carried in two parts;
 * results of theirs below 1e-38 may be zero. tanh is odd P9 below 0.55. The rest, and f64, is the compiler's device library.
 * Compiled by a host compiler, the approximate instructions are libm's with strata_dev_error added, so that a test can bound the rest. */
#ifndef STRATA_DEV_MATH_CUH
#define STRATA_DEV_MATH_CUH
#include "types.cuh"

#if defined(__CUDACC__)
#    define STRATA_DEV_OP2(name, f32_op, f64_op)                             \
        INL float st_##name##_f32(float a, float b) { return f32_op(a, b); } \
        INL double st_##name##_f64(double a, double b) { return f64_op(a, b); }
STRATA_DEV_OP2(add, __fadd_rn, __dadd_rn)
STRATA_DEV_OP2(sub, __fsub_rn, __dsub_rn)
STRATA_DEV_OP2(mul, __fmul_rn, __dmul_rn)
STRATA_DEV_OP2(div, __fdiv_rn, __ddiv_rn)
#    undef STRATA_DEV_OP2
INL float st_fma_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
INL double st_fma_f64(double a, double b, double c) { return __fma_rn(a, b, c); }
INL float st_sqrt_f32(float a) { return __fsqrt_rn(a); }
INL double st_sqrt_f64(double a) { return __dsqrt_rn(a); }
INL float st_max_f32(float a, float b)
{
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
INL float st_min_f32(float a, float b)
{
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
INL float ex2_approx(float a)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}
INL float rcp_approx(float a)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}
INL float rsqrt_approx(float a)
{
    float r;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}
/* floor(252 clamp(a / 252 + 1/2, 0, 1)) + 12582913 */
INL float exp_count(float a)
{
    return __fmaf_rd(__saturatef(__fmaf_rn(a, 0.00572498f, 0.5f)), 252.f, 12582913.f);
}
INL float exp2_count(float a)
{
    return __fmaf_rd(__saturatef(__fmaf_rn(a, 0.003968254f, 0.5f)), 252.f, 12582913.f);
}
#    define STRATA_DEV_NAN f32_of_bits(0x7fc00000u)
#else
#    define STRATA_DEV_OP2(name, op)                                   \
        INL float st_##name##_f32(float a, float b) { return a op b; } \
        INL double st_##name##_f64(double a, double b) { return a op b; }
STRATA_DEV_OP2(add, +)
STRATA_DEV_OP2(sub, -)
STRATA_DEV_OP2(mul, *)
STRATA_DEV_OP2(div, /)
#    undef STRATA_DEV_OP2
INL float st_fma_f32(float a, float b, float c) { return fmaf(a, b, c); }
INL double st_fma_f64(double a, double b, double c) { return fma(a, b, c); }
INL float st_sqrt_f32(float a) { return sqrtf(a); }
INL double st_sqrt_f64(double a) { return sqrt(a); }
INL float st_max_f32(float a, float b) { return a > b || a != a ? a : b; }
INL float st_min_f32(float a, float b) { return a < b || a != a ? a : b; }
static double strata_dev_error = 0; /* relative, of an approximate instruction */
INL float flushed(float a) { return fabsf(a) < 0x1p-126f ? copysignf(0, a) : a; }
INL float ex2_approx(float a) { return flushed((float)(exp2((double)flushed(a)) * (1 + strata_dev_error))); }
INL float rcp_approx(float a)
{
    return flushed((float)((1 / (double)flushed(a)) * (1 + 0.5 * strata_dev_error)));
}
INL float rsqrt_approx(float a) { return (float)(1 / sqrt((double)a) * (1 + 0.7 * strata_dev_error)); }
INL float count_of(double at) { return (float)(12582913 + floor(252 * (at > 1 ? 1 : at > 0 ? at : 0))); }
INL float exp_count(float a) { return count_of((double)fmaf(a, 0.00572498f, 0.5f)); }
INL float exp2_count(float a) { return count_of((double)fmaf(a, 0.003968254f, 0.5f)); }
#    define STRATA_DEV_NAN ((float)NAN)
#endif

/* e^x = m s, s a power of two from 2^-126 to 2^126 */
INL float exp_parts(float x, float *s)
{
    const float t = exp_count(x), j = 12583039.f - t;
    *s = f32_of_bits(bits_of_f32(t) << 23);
    return ex2_approx(st_fma_f32(x, 1.925963033500e-8f, st_fma_f32(x, 1.44269502f, j)));
}
INL float st_exp_f32(float x)
{
    float s;
    const float m = exp_parts(x, &s);
    return m * s;
}
INL float st_exp2_f32(float x)
{
    const float t = exp2_count(x), j = 12583039.f - t;
    return ex2_approx(x + j) * f32_of_bits(bits_of_f32(t) << 23);
}
INL float st_expm1_f32(float x) { return expm1f(x); }
INL float st_log_f32(float x) { return logf(x); }
INL float st_log2_f32(float x) { return log2f(x); }
INL float st_log1p_f32(float x) { return log1pf(x); }
INL float st_sin_f32(float x) { return sinf(x); }
INL float st_cos_f32(float x) { return cosf(x); }
INL float st_tan_f32(float x) { return tanf(x); }
INL float st_atan_f32(float x) { return atanf(x); }
INL float st_pow_f32(float x, float y) { return powf(x, y); }
/* one step of Newton's iteration, but for zero, infinity and NaN */
INL float st_rsqrt_f32(float x)
{
    const float y = rsqrt_approx(x), e = st_fma_f32(-(x * y), y, 1.f), z = st_fma_f32(0.5f * y, e, y);
    return z - z == 0 ? z : y;
}

INL float st_tanh_f32(float x)
{
    const float a = fabsf(x), s = x * x;
    float p = st_fma_f32(-0.0062388633619509986f, s, 0.021055817628562398f);
    p = st_fma_f32(p, s, -0.05385165280451305f);
    p = st_fma_f32(p, s, 0.1333262531225431f);
    p = st_fma_f32(p, s, -0.33333320825274015f);
    p = st_fma_f32(p * s, x, x);
    const float e = ex2_approx(a * 2.8853900817779268f), q = st_fma_f32(-2.f, rcp_approx(e + 1.f), 1.f);
    return a < 0.55f ? p : copysignf(q, x); /* a NaN stays one: not less, and q is NaN */
}
INL float st_sigmoid_f32(float x)
{
    float s;
    const float m = exp_parts(-fabsf(x), &s), e = m * s;
    return (x < 0.f ? e : 1.f) * rcp_approx(e + 1.f);
}
/* x sigmoid(y); a small numerator is scaled last */
INL float times_sigmoid_f32(float x, float y)
{
    float s;
    const float m = exp_parts(-fabsf(y), &s), r = rcp_approx(st_fma_f32(m, s, 1.f));
    return y < 0.f ? x * m * r * s : x * r;
}
INL float st_silu_f32(float x)
{
    const float y = st_max_f32(x, -1e4f); /* -inf * 0 */
    return times_sigmoid_f32(y, y);
}
INL float st_gelu_tanh_f32(float x)
{
    const float y = st_max_f32(x, -100.f), s = y * y;
    return times_sigmoid_f32(y, y * st_fma_f32(s, 0.0713548163f, 1.59576912f));
}
/* G(a) */
INL float mills_f32(float a)
{
    const float t = rcp_approx(st_fma_f32(a, 0.34f, 1.f));
    float p = st_fma_f32(-0.0256378092f, t, 0.137243211f);
    p = st_fma_f32(p, t, -0.268673688f);
    p = st_fma_f32(p, t, 0.197333023f);
    p = st_fma_f32(p, t, -0.0415550508f);
    p = st_fma_f32(p, t, 0.114096485f);
    p = st_fma_f32(p, t, 0.11549779f);
    p = st_fma_f32(p, t, 0.13607347f);
    p = st_fma_f32(p, t, 0.135622576f);
    return p * t;
}
/* 2^(c a^2) with c = hi + lo */
INL float ex2_square_f32(float a, float hi, float lo)
{
    const float s = st_mul_f32(a, a), rest = st_fma_f32(a, a, -s), y = st_mul_f32(s, hi);
    const float low = st_fma_f32(rest, hi, st_fma_f32(s, lo, st_fma_f32(s, hi, -y)));
    const float e = ex2_approx(y);
    return st_fma_f32(e, low * 0.693147182f, e);
}
INL float st_gelu_f32(float x)
{
    const float a = st_min_f32(fabsf(x), 16.f);
    const float q = a * mills_f32(a) * ex2_square_f32(a, -0.72134751f, -9.62981544e-9f);
    return st_max_f32(x, -0.f) - q; /* q = |x| Phi(-|x|) */
}
INL float st_erfc_f32(float x)
{
    /* erfc(z) = 2 Phi(-z sqrt 2) = 2 exp(-z^2) G(z sqrt 2) */
    const float a = st_min_f32(fabsf(x), 10.5f);
    const float e = 2.f * mills_f32(a * 1.41421356f) * ex2_square_f32(a, -1.44269502f, -1.92596309e-8f);
    return x < 0.f ? 2.f - e : e;
}
/* |x| < 1: x P6(x^2); beyond: 1 - 2^Q8(|x|) */
INL float st_erf_f32(float x)
{
    const float a = fabsf(x), z = x * x, b = st_min_f32(a, 4.05f);
    float p = st_fma_f32(7.87587505e-05f, z, -0.000801686428f);
    p = st_fma_f32(p, z, 0.00518908742f);
    p = st_fma_f32(p, z, -0.026854212f);
    p = st_fma_f32(p, z, 0.112835947f);
    p = st_fma_f32(p, z, -0.376126267f);
    p = st_fma_f32(p, z, 1.12837917f) * x;
    float q = st_fma_f32(2.337319231e-06f, b, -6.59826617e-05f);
    q = st_fma_f32(q, b, 0.000857265563f);
    q = st_fma_f32(q, b, -0.00684992760f);
    q = st_fma_f32(q, b, 0.0380723654f);
    q = st_fma_f32(q, b, -0.158735955f);
    q = st_fma_f32(q, b, -0.911609631f);
    q = st_fma_f32(q, b, -1.630538063f);
    q = st_fma_f32(q, b, 0.000451464844f);
    const float far = copysignf(1.f - ex2_approx(q), x);
    return a < 1.f ? p : far;
}
INL float st_softplus_f32(float x) { return st_max_f32(x, 0.f) + log1pf(st_exp_f32(-fabsf(x))); }
INL float st_elu_f32(float x) { return x > 0.f ? x : expm1f(x); }

INL double st_max_f64(double a, double b) { return a > b || a != a ? a : b; }
INL double st_min_f64(double a, double b) { return a < b || a != a ? a : b; }
INL double st_exp_f64(double x) { return exp(x); }
INL double st_exp2_f64(double x) { return exp2(x); }
INL double st_expm1_f64(double x) { return expm1(x); }
INL double st_log_f64(double x) { return log(x); }
INL double st_log2_f64(double x) { return log2(x); }
INL double st_log1p_f64(double x) { return log1p(x); }
INL double st_sin_f64(double x) { return sin(x); }
INL double st_cos_f64(double x) { return cos(x); }
INL double st_tan_f64(double x) { return tan(x); }
INL double st_atan_f64(double x) { return atan(x); }
INL double st_pow_f64(double x, double y) { return pow(x, y); }
INL double st_tanh_f64(double x) { return tanh(x); }
INL double st_erf_f64(double x) { return erf(x); }
INL double st_erfc_f64(double x) { return erfc(x); }
#if defined(__CUDACC__)
INL double st_rsqrt_f64(double x) { return rsqrt(x); }
#else
INL double st_rsqrt_f64(double x) { return 1.0 / sqrt(x); }
#endif
INL double st_sigmoid_f64(double x)
{
    const double e = exp(-fabs(x));
    return (x < 0 ? e : 1.0) / (e + 1.0);
}
/* the small factor is applied as two square roots, so that it does not pass through denormals */
INL double times_sigmoid_f64(double x, double y)
{
    const double e = exp(-0.5 * fabs(y));
    return (y < 0 ? x * e * e : x) / st_fma_f64(e, e, 1.0);
}
INL double st_silu_f64(double x)
{
    const double y = st_max_f64(x, -1e4);
    return times_sigmoid_f64(y, y);
}
INL double st_gelu_tanh_f64(double x)
{
    const double y = st_max_f64(x, -100.0), s = y * y;
    return times_sigmoid_f64(y, y * st_fma_f64(s, 0.071354816272600247, 1.5957691216057308));
}
/* x/2 erfc(z), z = -x / sqrt 2, and the error d of z's rounding: erfc(z + d) is about erfc(z) (1 - d (z + sqrt(z^2 + 4/pi))) */
INL double st_gelu_f64(double x)
{
    const double c = -0.70710678118654752440, y = st_max_f64(x, -60.0), z = st_mul_f64(y, c);
    const double d = st_fma_f64(y, 4.8336466567264567e-17, st_fma_f64(y, c, -z));
    const double slope = z + st_sqrt_f64(st_fma_f64(z, z, 1.2732395447351628)), e = erfc(z);
    return x > 10.0 ? x : y * 0.5 * st_fma_f64(-(d * slope), e, e);
}
INL double st_softplus_f64(double x) { return st_max_f64(x, 0.0) + log1p(exp(-fabs(x))); }
INL double st_elu_f64(double x) { return x > 0 ? x : expm1(x); }

/* ---- the same text for both precisions ------------------------------------------------------------------------------------ */
#define STRATA_DEV_BOTH(T, w, ABS, COPYSIGN, RINT, FLOOR, CEIL, TRUNC)                                    \
    INL T st_copy_##w(T a) { return a; }                                                                  \
    INL T st_neg_##w(T a) { return -a; }                                                                  \
    INL T st_not_##w(T a) { return a == 0 ? (T)1 : (T)0; }                                                \
    INL T st_abs_##w(T a) { return ABS(a); }                                                              \
    INL T st_relu_##w(T a) { return st_max_##w(a, 0); }                                                   \
    INL T st_rint_##w(T a) { return RINT(a); }                                                            \
    INL T st_floor_##w(T a) { return FLOOR(a); }                                                          \
    INL T st_ceil_##w(T a) { return CEIL(a); }                                                            \
    INL T st_trunc_##w(T a) { return TRUNC(a); }                                                          \
    INL T st_sign_##w(T a) { return a > 0 || a < 0 ? COPYSIGN((T)1, a) : a; }                             \
    INL T st_isnan_##w(T a) { return a != a ? (T)1 : (T)0; }                                              \
    INL T st_isinf_##w(T a) { return a == a && a - a != 0 ? (T)1 : (T)0; }                                \
    INL T st_hard_swish_##w(T a)                                                                          \
    {                                                                                                     \
        const T t = st_min_##w(st_max_##w(a + 3, 0), 6), r = st_mul_##w(st_mul_##w(a, t), (T)(1.0 / 6));  \
        return a <= -3 ? 0 : 3 <= a ? a : r;                                                              \
    }                                                                                                     \
    INL T saturate_##w(T a, T lo, T hi) { return a != a ? 0 : TRUNC(st_min_##w(st_max_##w(a, lo), hi)); } \
    INL T st_sat_i4_##w(T a) { return saturate_##w(a, -8, 7); }                                           \
    INL T st_sat_u4_##w(T a) { return saturate_##w(a, 0, 15); }                                           \
    INL T st_sat_i8_##w(T a) { return saturate_##w(a, -128, 127); }                                       \
    INL T st_sat_u8_##w(T a) { return saturate_##w(a, 0, 255); }                                          \
    INL T st_sat_i32_##w(T a) { return saturate_##w(a, (T)-2147483648.0, (T)2147483647.0); }              \
    INL T st_copysign_##w(T a, T b) { return COPYSIGN(a, b); }                                            \
    INL T st_leaky_relu_##w(T a, T b) { return a > 0 ? a : st_mul_##w(a, b); }                            \
    INL T st_lt_##w(T a, T b) { return a < b ? (T)1 : (T)0; }                                             \
    INL T st_le_##w(T a, T b) { return a <= b ? (T)1 : (T)0; }                                            \
    INL T st_eq_##w(T a, T b) { return a == b ? (T)1 : (T)0; }                                            \
    INL T st_ne_##w(T a, T b) { return a != b ? (T)1 : (T)0; }                                            \
    INL T st_and_##w(T a, T b) { return a != 0 && b != 0 ? (T)1 : (T)0; }                                 \
    INL T st_or_##w(T a, T b) { return a != 0 || b != 0 ? (T)1 : (T)0; }                                  \
    INL T st_select_##w(T a, T b, T c) { return a != 0 ? b : c; }                                         \
    INL T st_clamp_##w(T a, T b, T c) { return a != a ? a : a < b ? b : a > c ? c : a; }

STRATA_DEV_BOTH(float, f32, fabsf, copysignf, rintf, floorf, ceilf, truncf)
STRATA_DEV_BOTH(double, f64, fabs, copysign, rint, floor, ceil, trunc)
#undef STRATA_DEV_BOTH

/* Division by a number b of a line: by its reciprocal, b brought into a middle range by a power of two first. a / b = a r s, within 2 units in the last place. */
INL void recip_f32(float b, float *r, float *s)
{
    const float a = fabsf(b), k = a < 0x1p-100f ? 0x1p64f : a > 0x1p100f ? 0x1p-64f : 1.f, x = b * k;
    const float y = rcp_approx(x), e = st_fma_f32(-x, y, 1.f), z = st_fma_f32(y, e, y);
    *r = z - z == 0 ? z : y;
    *s = k;
}
INL float div_row_f32(float a, float r, float s) { return st_mul_f32(st_mul_f32(a, r), s); }
/* of a number in the middle range, zero, infinity or NaN; without the call that a division is */
INL double rcp_f64(double x)
{
#if defined(__CUDACC__)
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    double z = y;
#    pragma unroll
    for (int i = 0; i < 3; i++) z = st_fma_f64(z, st_fma_f64(-x, z, 1.0), z);
    return z - z == 0 ? z : y;
#else
    return 1.0 / x;
#endif
}
INL void recip_f64(double b, double *r, double *s)
{
    const double a = fabs(b), k = a < 0x1p-900 ? 0x1p600 : a > 0x1p900 ? 0x1p-600 : 1.0;
    *r = rcp_f64(b * k);
    *s = k;
}
INL double div_row_f64(double a, double r, double s) { return st_mul_f64(st_mul_f64(a, r), s); }
#endif
