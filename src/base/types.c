/* SPDX-License-Identifier: Apache-2.0 */
/* types.c - element types: names, sizes, and conversion of one element. Rounding is to nearest, ties to even; the 8-bit
 * floats saturate (OCP 8-bit Floating Point Specification 1.0, section 5.2: saturating conversion). */
#include "base/base.h"
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bits;
} types[STRATA_TYPE_COUNT] = {
    [STRATA_NONE] = {"none", 0},  [STRATA_F64] = {"f64", 64},      [STRATA_F32] = {"f32", 32},
    [STRATA_C64] = {"c64", 64},   [STRATA_C128] = {"c128", 128},   [STRATA_F16] = {"f16", 16},
    [STRATA_BF16] = {"bf16", 16}, [STRATA_F8E4M3] = {"f8e4m3", 8}, [STRATA_F8E5M2] = {"f8e5m2", 8},
    [STRATA_I64] = {"i64", 64},   [STRATA_I32] = {"i32", 32},      [STRATA_I8] = {"i8", 8},
    [STRATA_U8] = {"u8", 8},      [STRATA_I4] = {"i4", 4},         [STRATA_U4] = {"u4", 4},
    [STRATA_BOOL] = {"bool", 8},  [STRATA_BIT] = {"bit", 1},
};

const char *strata_type_name(strata_type t)
{
    return (unsigned)t < STRATA_TYPE_COUNT ? types[t].name : "unknown type";
}

size_t strata_type_bits(strata_type t) { return (unsigned)t < STRATA_TYPE_COUNT ? types[t].bits : 0; }

strata_type strata_type_from_name(const char *name)
{
    for (int i = 1; name && i < STRATA_TYPE_COUNT; i++)
        if (!strcmp(name, types[i].name)) return (strata_type)i;
    return STRATA_NONE;
}

bool st_type_is_float(int t)
{
    return t == STRATA_F64 || t == STRATA_F32 || t == STRATA_F16 || t == STRATA_BF16 || t == STRATA_F8E4M3 ||
           t == STRATA_F8E5M2;
}
bool st_type_is_integer(int t) { return t >= STRATA_I64 && t <= STRATA_U4; }

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

/* A small float: `e` exponent bits, `m` mantissa bits, IEEE-like bias. `finite_top`: the top exponent holds numbers too and
 * only all-ones is NaN (e4m3); then there is no infinity. */
static float small_to_f32(unsigned v, int e, int m, bool finite_top)
{
    unsigned sign = v >> (e + m) & 1, ex = v >> m & ((1u << e) - 1), man = v & ((1u << m) - 1);
    int bias = (1 << (e - 1)) - 1;
    float r;
    if (ex == (1u << e) - 1 && !finite_top)
        r = man ? NAN : INFINITY;
    else if (finite_top && ex == (1u << e) - 1 && man == (1u << m) - 1)
        r = NAN;
    else if (ex == 0)
        r = ldexpf((float)man, 1 - bias - m);
    else
        r = ldexpf((float)(man | 1u << m), (int)ex - bias - m);
    return sign ? -r : r;
}

/* From f64, which holds every f32, so that a number is rounded once whatever it came from. */
static unsigned f64_to_small(double f, int e, int m, bool finite_top, bool saturate)
{
    unsigned sign = signbit(f) != 0, top = (1u << e) - 1, all = (1u << m) - 1;
    int bias = (1 << (e - 1)) - 1;
    unsigned s = sign << (e + m);
    if (isnan(f)) return s | top << m | (finite_top ? all : 1u << (m - 1));
    unsigned largest = finite_top ? (top << m | (all - 1)) : ((top - 1) << m | all);
    unsigned infinite = finite_top ? (top << m | all) : top << m;
    if (isinf(f)) return s | (saturate ? largest : infinite);
    int ex;
    double a = fabs(f);
    if (a == 0) return s;
    frexp(a, &ex);                                         /* a in [2^(ex-1), 2^ex) */
    int q = ex - 1 < 1 - bias ? 1 - bias - m : ex - 1 - m; /* exponent of the last place */
    double scaled = ldexp(a, -q);                          /* exact (or far below half), less than 2^(m+1) */
    unsigned man = (unsigned)scaled;
    double rest = scaled - man;
    man += rest > 0.5 || (rest == 0.5 && (man & 1)); /* by hand: independent of the caller's rounding mode */
    /* man counts units of 2^q; adding it to the biased exponent field carries over where rounding overflows the mantissa */
    unsigned field = ex - 1 < 1 - bias ? man : (((unsigned)(ex - 1 + bias)) << m) + (man - (1u << m));
    if (field > largest) field = saturate ? largest : infinite;
    return s | field;
}

float st_f16_to_f32(uint16_t h) { return small_to_f32(h, 5, 10, false); }
uint16_t st_f32_to_f16(float f) { return (uint16_t)f64_to_small(f, 5, 10, false, false); }
float st_f8e4m3_to_f32(uint8_t h) { return small_to_f32(h, 4, 3, true); }
uint8_t st_f32_to_f8e4m3(float f) { return (uint8_t)f64_to_small(f, 4, 3, true, true); }
float st_f8e5m2_to_f32(uint8_t h) { return small_to_f32(h, 5, 2, false); }
uint8_t st_f32_to_f8e5m2(float f) { return (uint8_t)f64_to_small(f, 5, 2, false, true); }

uint16_t st_f32_to_bf16(float f)
{
    uint32_t u = bits_of(f);
    if (isnan(f)) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

bool st_load_f64(int type, const void *p, double *v)
{
    switch (type) {
    case STRATA_F64: {
        double x;
        memcpy(&x, p, 8);
        *v = x;
        return true;
    }
    case STRATA_F32: {
        float x;
        memcpy(&x, p, 4);
        *v = x;
        return true;
    }
    case STRATA_F16: {
        uint16_t x;
        memcpy(&x, p, 2);
        *v = st_f16_to_f32(x);
        return true;
    }
    case STRATA_BF16: {
        uint16_t x;
        memcpy(&x, p, 2);
        *v = st_bf16_to_f32(x);
        return true;
    }
    case STRATA_F8E4M3: *v = st_f8e4m3_to_f32(*(const uint8_t *)p); return true;
    case STRATA_F8E5M2: *v = st_f8e5m2_to_f32(*(const uint8_t *)p); return true;
    case STRATA_I64: {
        int64_t x;
        memcpy(&x, p, 8);
        *v = (double)x;
        return true;
    }
    case STRATA_I32: {
        int32_t x;
        memcpy(&x, p, 4);
        *v = x;
        return true;
    }
    case STRATA_I8: *v = *(const int8_t *)p; return true;
    case STRATA_U8: *v = *(const uint8_t *)p; return true;
    case STRATA_BOOL: *v = *(const uint8_t *)p != 0; return true;
    default: return false;
    }
}

/* towards zero, saturating; NaN gives 0 */
static double clip(double v, double lo, double hi)
{
    return v != v ? 0 : v < lo ? lo : v > hi ? hi : trunc(v);
}

bool st_store_f64(int type, void *p, double v)
{
    switch (type) {
    case STRATA_F64: memcpy(p, &v, 8); return true;
    case STRATA_F32: {
        float x = (float)v;
        memcpy(p, &x, 4);
        return true;
    }
    case STRATA_F16: {
        uint16_t x = (uint16_t)f64_to_small(v, 5, 10, false, false);
        memcpy(p, &x, 2);
        return true;
    }
    case STRATA_BF16: {
        uint16_t x = (uint16_t)f64_to_small(v, 8, 7, false, false);
        memcpy(p, &x, 2);
        return true;
    }
    case STRATA_F8E4M3: *(uint8_t *)p = (uint8_t)f64_to_small(v, 4, 3, true, true); return true;
    case STRATA_F8E5M2: *(uint8_t *)p = (uint8_t)f64_to_small(v, 5, 2, false, true); return true;
    case STRATA_I64: {
        int64_t x = v != v                       ? 0
                    : v >= 9223372036854775808.0 ? INT64_MAX
                    : v < -9223372036854775808.0 ? INT64_MIN
                                                 : (int64_t)v;
        memcpy(p, &x, 8);
        return true;
    }
    case STRATA_I32: {
        int32_t x = (int32_t)clip(v, -2147483648.0, 2147483647.0);
        memcpy(p, &x, 4);
        return true;
    }
    case STRATA_I8: *(int8_t *)p = (int8_t)clip(v, -128, 127); return true;
    case STRATA_U8: *(uint8_t *)p = (uint8_t)clip(v, 0, 255); return true;
    case STRATA_BOOL: *(uint8_t *)p = v != 0; return true;
    default: return false;
    }
}

bool st_scalar_value(st_err *e, const char *who, const char *name, strata_scalar s, double *re, double *im)
{
    if (ST_UNLIKELY(s.reserved)) {
        st_fail(e, STRATA_ERROR_ARGUMENT, "%s: %s has a reserved word that is not zero; start from {0}", who,
                name);
        return false;
    }
    if (ST_LIKELY(!s.ptr)) {
        if (ST_UNLIKELY(s.type != STRATA_NONE)) {
            st_fail(e, STRATA_ERROR_ARGUMENT, "%s: %s is a scalar at an address, but the address is NULL",
                    who, name);
            return false;
        }
        *re = s.re;
        *im = s.im;
        return true;
    }
    *im = 0;
    if (st_type_is_complex(s.type)) {
        size_t half = s.type == STRATA_C64 ? 4 : 8;
        int part = st_type_part(s.type);
        st_load_f64(part, s.ptr, re);
        st_load_f64(part, (const char *)s.ptr + half, im);
        return true;
    }
    if (st_load_f64(s.type, s.ptr, re)) return true;
    st_fail(e, STRATA_ERROR_TYPE,
            "%s: %s is a scalar of type %s at an address; whole-byte numeric types are read there", who, name,
            strata_type_name((strata_type)s.type));
    return false;
}
