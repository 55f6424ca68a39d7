/* SPDX-License-Identifier: Apache-2.0 */
/* vec_portable.h - the vector operations of kernels.inc in GNU C's own vectors of 16 bytes: SSE2, NEON or whatever the compiler
 * makes of them. Comparisons give lanes of all ones or all zeros; there is no fused multiply-add here, a b + c rounds twice. */
#include "base/base.h"
#include <math.h>
#include <string.h>
#define VI ST_INLINE
#ifdef ST_ELEMENT_F64
typedef double T;
typedef int64_t I;
enum { W = 2 };
#    define ST_SIGN INT64_MIN
#    define ST_WHOLE 0x1p52 /* from here on every number is an integer */
#    define ST_LIBM(fn) fn
#else
typedef float T;
typedef int32_t I;
enum { W = 4 };
#    define ST_SIGN INT32_MIN
#    define ST_WHOLE 0x1p23f
#    define ST_LIBM(fn) fn##f
#endif
typedef T V __attribute__((vector_size(16)));
typedef I K __attribute__((vector_size(16)));
typedef int M; /* number of lanes */
#define SLEEF(f, u) lanes_##f

VI V v_set(T a) { return a - (V){0}; }
VI K v_negative(V a) { return (K)a < 0; }
VI V v_load(const T *p)
{
    V a;
    memcpy(&a, p, sizeof a);
    return a;
}
VI void v_store(T *p, V a) { memcpy(p, &a, sizeof a); }
VI M v_tail(int64_t n) { return n >= W ? W : (M)n; }
VI V v_loadm(const T *p, M m)
{
    V a = {0};
    for (int i = 0; i < W; i++)
        if (i < m) a[i] = p[i];
    return a;
}
VI void v_storem(T *p, M m, V a)
{
    for (int i = 0; i < W; i++)
        if (i < m) p[i] = a[i];
}
VI V v_keep(M m, V a, V fill)
{
    for (int i = 0; i < W; i++)
        if (i < m) fill[i] = a[i];
    return fill;
}
VI V v_add(V a, V b) { return a + b; }
VI V v_sub(V a, V b) { return a - b; }
VI V v_mul(V a, V b) { return a * b; }
VI V v_div(V a, V b) { return a / b; }
VI V v_fma(V a, V b, V c) { return a * b + c; }
VI V v_fms(V a, V b, V c) { return a * b - c; }
VI V v_fnma(V a, V b, V c) { return c - a * b; }
VI V v_and(V a, V b) { return (V)((K)a & (K)b); }
VI V v_andnot(V a, V b) { return (V)(~(K)a & (K)b); }
VI V v_or(V a, V b) { return (V)((K)a | (K)b); }
VI V v_xor(V a, V b) { return (V)((K)a ^ (K)b); }
VI V v_blend(K k, V no, V yes) { return (V)((k & (K)yes) | (~k & (K)no)); }
VI K v_lt(V a, V b) { return (K)(a < b); }
VI K v_le(V a, V b) { return (K)(a <= b); }
VI K v_eq(V a, V b) { return (K)(a == b); }
VI K v_ne(V a, V b) { return (K)(a != b); }
VI K k_and(K a, K b) { return a & b; }
VI K k_or(K a, K b) { return a | b; }
VI V v_one(K k) { return (V)(k & (K)v_set(1)); }
VI V v_min(V a, V b) { return v_blend((K)(a < b), b, a); } /* b when either is NaN */
VI V v_max(V a, V b) { return v_blend((K)(a > b), b, a); }
VI V v_sqrt(V a)
{
    for (int i = 0; i < W; i++) a[i] = ST_LIBM(sqrt)(a[i]);
    return a;
}
/* rounding to integers by adding and taking away 2^23 (2^52); the sign is the argument's, zero included */
VI V portable_sign(V x) { return v_and(v_set((T)-0.0), x); }
VI V portable_abs(V x) { return v_andnot(v_set((T)-0.0), x); }
VI V v_rint(V x)
{
    V a = portable_abs(x), r = (a + v_set(ST_WHOLE)) - v_set(ST_WHOLE);
    return v_blend(v_lt(a, v_set(ST_WHOLE)), x, v_or(r, portable_sign(x)));
}
VI V v_trunc(V x)
{
    V a = portable_abs(x), r = (a + v_set(ST_WHOLE)) - v_set(ST_WHOLE);
    r = r - v_one(v_lt(a, r));
    return v_blend(v_lt(a, v_set(ST_WHOLE)), x, v_or(r, portable_sign(x)));
}
VI V v_floor(V x)
{
    V r = v_rint(x);
    return v_or(portable_abs(r - v_one(v_lt(x, r))), portable_sign(x));
}
VI V v_ceil(V x)
{
    V r = v_rint(x);
    return v_or(portable_abs(r + v_one(v_lt(r, x))), portable_sign(x));
}
VI T v_first(V a) { return a[0]; }
/* lanes turned by half, then by one */
VI V v_turned(V a, int by)
{
    V r = a;
    for (int i = 0; i < W; i++) r[i] = a[(i + by) % W];
    return r;
}
#define ST_FOLD(COMBINE, a)             \
    a = COMBINE(a, v_turned(a, W / 2)); \
    if (W > 2) a = COMBINE(a, v_turned(a, 1))
VI void v_addto(double *p, V a)
{
    for (int i = 0; i < W; i++) p[i] += (double)a[i];
}
#ifndef ST_ELEMENT_F64
VI V v_bits(uint32_t u)
{
    K k = {(I)u, (I)u, (I)u, (I)u};
    return (V)k;
}
/* a 2^n for an integer n: in two halves, so that denormal results and n = 128 come out */
VI V v_scale2(V a, V n)
{
    n = v_min(v_set(250), v_max(v_set(-250), n));
    K i = (K)(n + v_set(0x1.8p23f)) - (K)v_set(0x1.8p23f), h = i >> 1;
    return a * (V)((h + 127) << 23) * (V)((i - h + 127) << 23);
}
#endif
/* SLEEF's part is libm's here, lane by lane */
#define ST_LANES_OF(f)                                       \
    static inline V lanes_##f(V a)                           \
    {                                                        \
        for (int i = 0; i < W; i++) a[i] = ST_LIBM(f)(a[i]); \
        return a;                                            \
    }
ST_LANES_OF(log)
ST_LANES_OF(log2)
ST_LANES_OF(log1p)
ST_LANES_OF(sin)
ST_LANES_OF(cos)
ST_LANES_OF(tan)
ST_LANES_OF(atan)
#ifdef ST_ELEMENT_F64
ST_LANES_OF(exp)
ST_LANES_OF(exp2)
ST_LANES_OF(expm1)
ST_LANES_OF(tanh)
ST_LANES_OF(erf)
ST_LANES_OF(erfc)
#endif
static inline V lanes_pow(V a, V b)
{
    for (int i = 0; i < W; i++) a[i] = ST_LIBM(pow)(a[i], b[i]);
    return a;
}
