/* SPDX-License-Identifier: Apache-2.0 */
/* types.cuh - element types in device code: fixed-width names, conversions, 16-byte loads and stores. No toolkit header is included, so NVRTC
 * compiles this without -I.
 *
 * Types of less than 32 bits are structs of their bits: f16, bf16, e4m3, e5m2, b8; i8, u8, i32, i64, f32, f64 are the language's. cvt_<to>_<from> converts
 * between bits and f32 or f64 with the rules of the CPU: to floats to nearest even (the 8-bit floats saturate), to integers towards zero and saturated, NaN as
 * 0, to bool 1 for anything but 0. From f64 everything is rounded once. In C++ to_f32(x), to_f64(x) and from<T>(value) choose by type.
 * A host compiler sees the same names over plain C (tests compare them with the CPU's). */
#ifndef STRATA_DEV_TYPES_CUH
#define STRATA_DEV_TYPES_CUH

#if defined(__CUDACC__)
#    define INL static __device__ __forceinline__
#    define METHOD __device__ __forceinline__ /* a member function */
typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
INL u32 bits_of_f32(float v) { return __float_as_uint(v); }
INL float f32_of_bits(u32 v) { return __uint_as_float(v); }
INL u64 bits_of_f64(double v) { return (u64)__double_as_longlong(v); }
INL double f64_of_bits(u64 v) { return __longlong_as_double((i64)v); }
#else
#    include <math.h>
#    include <stdint.h>
#    include <string.h>
#    define INL static inline __attribute__((always_inline, unused))
#    define METHOD inline __attribute__((always_inline))
#    define __align__(n) __attribute__((aligned(n)))
typedef int8_t i8;
typedef uint8_t u8;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
INL u32 bits_of_f32(float v)
{
    u32 u;
    memcpy(&u, &v, 4);
    return u;
}
INL float f32_of_bits(u32 u)
{
    float v;
    memcpy(&v, &u, 4);
    return v;
}
INL u64 bits_of_f64(double v)
{
    u64 u;
    memcpy(&u, &v, 8);
    return u;
}
INL double f64_of_bits(u64 u)
{
    double v;
    memcpy(&v, &u, 8);
    return v;
}
#endif

typedef float f32;
typedef double f64;
typedef struct f16 {
    u16 x;
} f16;
typedef struct bf16 {
    u16 x;
} bf16;
typedef struct e4m3 {
    u8 x;
} e4m3;
typedef struct e5m2 {
    u8 x;
} e5m2;
typedef struct b8 {
    u8 x;
} b8;
typedef struct c64 {
    float re, im;
} c64;
typedef struct c128 {
    double re, im;
} c128;

#if defined(__cplusplus)
INL c64 operator+(c64 a, c64 b) { return c64{a.re + b.re, a.im + b.im}; }
INL c128 operator+(c128 a, c128 b) { return c128{a.re + b.re, a.im + b.im}; }
#endif

/* ---- f64 to f32 for a second rounding: towards zero, the lost bits kept in the lowest one (round to odd) -------------- */
INL float odd_f32_f64(double v)
{
#if defined(__CUDACC__)
    const float z = __double2float_rz(v);
#else
    float z = (float)v; /* to nearest, then back where that went away from zero */
    if (v == v && fabs((double)z) > fabs(v)) z = f32_of_bits(bits_of_f32(z) - 1);
#endif
    return (double)z != v ? f32_of_bits(bits_of_f32(z) | 1u) : z;
}

/* ---- bf16 -------------------------------------------------------------------------------------------------------------- */
INL float cvt_f32_bf16(u16 b) { return f32_of_bits((u32)b << 16); }
INL u16 cvt_bf16_f32(float v)
{
#if defined(__CUDACC__)
    u16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
#else
    const u32 u = bits_of_f32(v);
    if (v != v) return 0x7fff;
    return (u16)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
#endif
}

/* ---- f16 --------------------------------------------------------------------------------------------------------------- */
INL float cvt_f32_f16(u16 b)
{
#if defined(__CUDACC__)
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(b));
    return r;
#else
    const u32 m = (u32)(b & 0x7fff) << 13;
    const float a = m >= 0x0f800000u ? f32_of_bits(m | 0x7f800000u) : f32_of_bits(m) * 0x1p112f;
    return (b & 0x8000) != 0 ? -a : a;
#endif
}
INL u16 cvt_f16_f32(float v)
{
#if defined(__CUDACC__)
    u16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
#else
    u32 u = bits_of_f32(v), s = u >> 16 & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return 0x7fff;
    if (u >= 0x477ff000u) return (u16)(s | 0x7c00u);
    if (u < 0x38800000u) return (u16)(s | (bits_of_f32(f32_of_bits(u) + 0.5f) & 0x7ffu));
    return (u16)(s | ((u - 0x38000000u + 0xfffu + (u >> 13 & 1)) >> 13));
#endif
}

/* ---- 8-bit floats: by instruction from sm_89, by bits before ------------------------------------------------------------ */
#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#    define STRATA_DEV_F8 1
#endif

INL float cvt_f32_e4m3(u8 b)
{
    /* the exponent is placed 120 too low, which holds for denormals too */
    const float a = f32_of_bits((u32)(b & 0x7f) << 20) * 0x1p120f;
    const u32 u = (b & 0x7f) == 0x7f ? 0x7fc00000u : bits_of_f32(a);
    return f32_of_bits(u | (u32)(b & 0x80) << 24);
}
INL float cvt_f32_e5m2(u8 b) { return cvt_f32_f16((u16)((u16)b << 8)); }
INL u8 cvt_e4m3_f32(float v)
{
#if defined(STRATA_DEV_F8)
    u16 r;
    asm("{ .reg .f32 z; mov.f32 z, 0f00000000; cvt.rn.satfinite.e4m3x2.f32 %0, z, %1; }" : "=h"(r) : "f"(v));
    return (u8)r;
#else
    const u32 w = bits_of_f32(v), u = w & 0x7fffffffu, s = w >> 24 & 0x80u;
    u32 r;
    if (u >= 0x43e00000u) /* 448 and up */
        r = u > 0x7f800000u ? 0x7fu : 0x7eu;
    else if (u < 0x3c800000u) /* below 2^-6: units of 2^-9 */
        r = bits_of_f32(f32_of_bits(u) + 16384.f) & 0xfu;
    else
        r = (u - 0x3c000000u + 0x7ffffu + (u >> 20 & 1)) >> 20;
    return (u8)(s | r);
#endif
}
INL u8 cvt_e5m2_f32(float v)
{
#if defined(STRATA_DEV_F8)
    u16 r;
    asm("{ .reg .f32 z; mov.f32 z, 0f00000000; cvt.rn.satfinite.e5m2x2.f32 %0, z, %1; }" : "=h"(r) : "f"(v));
    return (u8)r;
#else
    const u32 w = bits_of_f32(v), u = w & 0x7fffffffu, s = w >> 24 & 0x80u;
    u32 r;
    if (u >= 0x47600000u) /* 57344 and up */
        r = u > 0x7f800000u ? 0x7fu : 0x7bu;
    else if (u < 0x38800000u) /* below 2^-14: units of 2^-16 */
        r = bits_of_f32(f32_of_bits(u) + 128.f) & 0x7u;
    else
        r = (u - 0x38000000u + 0xfffffu + (u >> 21 & 1)) >> 21;
    return (u8)(s | r);
#endif
}

/* ---- from f64, rounded once --------------------------------------------------------------------------------------------- */
INL u16 cvt_bf16_f64(double v) { return cvt_bf16_f32(odd_f32_f64(v)); }
INL u16 cvt_f16_f64(double v) { return cvt_f16_f32(odd_f32_f64(v)); }
INL u8 cvt_e4m3_f64(double v) { return cvt_e4m3_f32(odd_f32_f64(v)); }
INL u8 cvt_e5m2_f64(double v) { return cvt_e5m2_f32(odd_f32_f64(v)); }

/* ---- integers: towards zero, saturated, NaN is 0 -------------------------------------------------------------------------- */
#if defined(__CUDACC__)
INL i32 cvt_i32_f32(float v) { return __float2int_rz(v); } /* the instruction's own rules */
INL i32 cvt_i32_f64(double v) { return v != v ? 0 : __double2int_rz(v); }
INL i64 cvt_i64_f32(float v) { return v != v ? 0 : __float2ll_rz(v); }
INL i64 cvt_i64_f64(double v) { return v != v ? 0 : __double2ll_rz(v); }
#else
INL i32 cvt_i32_f64(double v)
{
    return v != v ? 0 : v <= -2147483648.0 ? INT32_MIN : v >= 2147483647.0 ? INT32_MAX : (i32)v;
}
INL i64 cvt_i64_f64(double v)
{
    return v != v ? 0 : v <= -0x1p63 ? INT64_MIN : v >= 0x1p63 ? INT64_MAX : (i64)v;
}
INL i32 cvt_i32_f32(float v) { return cvt_i32_f64(v); }
INL i64 cvt_i64_f32(float v) { return cvt_i64_f64(v); }
#endif
INL i32 between_i32(i32 v, i32 lo, i32 hi) { return v < lo ? lo : v > hi ? hi : v; }
INL i8 cvt_i8_f32(float v) { return (i8)between_i32(cvt_i32_f32(v), -128, 127); }
INL i8 cvt_i8_f64(double v) { return (i8)between_i32(cvt_i32_f64(v), -128, 127); }
INL u8 cvt_u8_f32(float v) { return (u8)between_i32(cvt_i32_f32(v), 0, 255); }
INL u8 cvt_u8_f64(double v) { return (u8)between_i32(cvt_i32_f64(v), 0, 255); }

#if defined(__cplusplus)
/* ---- by type --------------------------------------------------------------------------------------------------------------- */
INL float to_f32(float v) { return v; }
INL float to_f32(double v) { return (float)v; }
INL float to_f32(f16 v) { return cvt_f32_f16(v.x); }
INL float to_f32(bf16 v) { return cvt_f32_bf16(v.x); }
INL float to_f32(e4m3 v) { return cvt_f32_e4m3(v.x); }
INL float to_f32(e5m2 v) { return cvt_f32_e5m2(v.x); }
INL float to_f32(i64 v) { return (float)v; }
INL float to_f32(i32 v) { return (float)v; }
INL float to_f32(i8 v) { return (float)v; }
INL float to_f32(u8 v) { return (float)v; }
INL float to_f32(b8 v) { return v.x != 0 ? 1.f : 0.f; }
INL double to_f64(double v) { return v; }
INL double to_f64(i64 v) { return (double)v; }
INL double to_f64(i32 v) { return (double)v; }
template <class T> INL double to_f64(T v) { return (double)to_f32(v); }
INL i32 to_i32(i8 v) { return v; }
INL i32 to_i32(u8 v) { return v; }
INL i32 to_i32(i32 v) { return v; }

template <class T> struct strata_dev_store;
#    define STRATA_DEV_STORE(T, OF_F32, OF_F64)                 \
        template <> struct strata_dev_store<T> {                \
            static METHOD T of(float v)                         \
            {                                                   \
                T r;                                            \
                OF_F32;                                         \
                return r;                                       \
            }                                                   \
            static METHOD T of(double v)                        \
            {                                                   \
                T r;                                            \
                OF_F64;                                         \
                return r;                                       \
            }                                                   \
            static METHOD T of(i32 v) { return of((double)v); } \
        };
STRATA_DEV_STORE(f64, r = (double)v, r = v)
STRATA_DEV_STORE(f32, r = v, r = (float)v)
STRATA_DEV_STORE(f16, r.x = cvt_f16_f32(v), r.x = cvt_f16_f64(v))
STRATA_DEV_STORE(bf16, r.x = cvt_bf16_f32(v), r.x = cvt_bf16_f64(v))
STRATA_DEV_STORE(e4m3, r.x = cvt_e4m3_f32(v), r.x = cvt_e4m3_f64(v))
STRATA_DEV_STORE(e5m2, r.x = cvt_e5m2_f32(v), r.x = cvt_e5m2_f64(v))
STRATA_DEV_STORE(i64, r = cvt_i64_f32(v), r = cvt_i64_f64(v))
STRATA_DEV_STORE(i32, r = cvt_i32_f32(v), r = cvt_i32_f64(v))
STRATA_DEV_STORE(i8, r = cvt_i8_f32(v), r = cvt_i8_f64(v))
STRATA_DEV_STORE(u8, r = cvt_u8_f32(v), r = cvt_u8_f64(v))
STRATA_DEV_STORE(b8, r.x = v != 0, r.x = v != 0)
#    undef STRATA_DEV_STORE
/* from<bf16>(1.5f): the value rounded to the type */
template <class T> INL T from(float v) { return strata_dev_store<T>::of(v); }
template <class T> INL T from(double v) { return strata_dev_store<T>::of(v); }
template <class T> INL T from(i32 v) { return strata_dev_store<T>::of(v); }

/* N elements that stand together, aligned to the whole (at most 16 bytes at a time) */
template <class T, int N> struct __align__(sizeof(T) * N < 16 ? sizeof(T) * N : 16) lanes { T e[N]; };

/* Two f32 to a pair of smaller floats in one word, lo in the low half. */
#    if defined(__CUDACC__)
INL u32 pack_bf16(float lo, float hi)
{
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
INL u32 pack_f16(float lo, float hi)
{
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
#    else
INL u32 pack_bf16(float lo, float hi) { return cvt_bf16_f32(lo) | (u32)cvt_bf16_f32(hi) << 16; }
INL u32 pack_f16(float lo, float hi) { return cvt_f16_f32(lo) | (u32)cvt_f16_f32(hi) << 16; }
#    endif
#    if defined(STRATA_DEV_F8)
INL u16 pack_e4m3(float lo, float hi)
{
    u16 r;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(hi), "f"(lo));
    return r;
}
INL u16 pack_e5m2(float lo, float hi)
{
    u16 r;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(hi), "f"(lo));
    return r;
}
#    else
INL u16 pack_e4m3(float lo, float hi) { return (u16)(cvt_e4m3_f32(lo) | (u16)cvt_e4m3_f32(hi) << 8); }
INL u16 pack_e5m2(float lo, float hi) { return (u16)(cvt_e5m2_f32(lo) | (u16)cvt_e5m2_f32(hi) << 8); }
#    endif

#    if defined(__CUDACC__)
/* 16 bytes, 16-byte aligned; _stream: read or written once, not to be kept in the caches */
INL uint4 load16(const void *p) { return *(const uint4 *)p; }
INL uint4 load16_stream(const void *p) { return __ldcs((const uint4 *)p); }
INL void store16(void *p, uint4 v) { *(uint4 *)p = v; }
INL void store16_stream(void *p, uint4 v) { __stcs((uint4 *)p, v); }
#    endif
#endif
#endif
