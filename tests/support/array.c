/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - random views over guarded buffers. Elements are read and written by conversions of this file's own, so that a fault in
 * the library's cannot hide itself. */
#include "support.h"
#include <math.h>

static int64_t bytes_of(strata_type t)
{
    static const signed char size[STRATA_TYPE_COUNT] = {
        [STRATA_F64] = 8,  [STRATA_F32] = 4,    [STRATA_C64] = 8,    [STRATA_C128] = 16, [STRATA_F16] = 2,
        [STRATA_BF16] = 2, [STRATA_F8E4M3] = 1, [STRATA_F8E5M2] = 1, [STRATA_I64] = 8,   [STRATA_I32] = 4,
        [STRATA_I8] = 1,   [STRATA_U8] = 1,     [STRATA_BOOL] = 1};
    return size[t];
}

/* ---- floats of 16 and 8 bits: sign, exponent, fraction; e4m3 has no infinity, and its NaN is all ones ---- */
static bool small_float(int type, int *e, int *m)
{
    *e = type == STRATA_BF16 ? 8 : type == STRATA_F8E4M3 ? 4 : 5;
    *m = type == STRATA_F16 ? 10 : type == STRATA_BF16 ? 7 : type == STRATA_F8E4M3 ? 3 : 2;
    return type == STRATA_F16 || type == STRATA_BF16 || type == STRATA_F8E4M3 || type == STRATA_F8E5M2;
}

static double decode(unsigned bits, int type)
{
    int e, m;
    small_float(type, &e, &m);
    const int bias = (1 << (e - 1)) - 1, ex = (int)(bits >> m) & ((1 << e) - 1);
    const unsigned fraction = bits & ((1u << m) - 1);
    double v =
        ex ? ldexp((double)(fraction + (1u << m)), ex - bias - m) : ldexp((double)fraction, 1 - bias - m);
    if (ex == (1 << e) - 1 && type != STRATA_F8E4M3) v = fraction ? NAN : INFINITY;
    if (type == STRATA_F8E4M3 && (bits & 0x7f) == 0x7f) v = NAN;
    return bits >> (e + m) & 1 ? -v : v;
}

/* to nearest, ties to even; 8-bit floats saturate */
static unsigned encode(double v, int type)
{
    int e, m;
    small_float(type, &e, &m);
    const int bias = (1 << (e - 1)) - 1;
    const bool byte = type == STRATA_F8E4M3 || type == STRATA_F8E5M2;
    const unsigned sign = signbit(v) ? 1u << (e + m) : 0, ones = (1u << (e + m)) - 1,
                   infinite = ones & ~((1u << m) - 1);
    const unsigned most = type == STRATA_F8E4M3 ? ones - 1 : byte ? infinite - 1 : infinite;
    if (isnan(v)) return sign | ones;
    const double a = fabs(v);
    if (a == 0) return sign;
    if (isinf(a)) return sign | most;
    int ex = ilogb(a);
    if (ex < 1 - bias) ex = 1 - bias;
    const double steps =
        nearbyint(ldexp(a, m - ex)); /* of the last place: carries go into the exponent by themselves */
    const double bits = steps + (double)(ex + bias - 1) * (double)(1 << m);
    return sign | (bits > (double)most ? most : (unsigned)bits);
}

bool test_next(const strata_tensor *t, int64_t *idx)
{
    for (int d = t->rank - 1; d >= 0; d--) {
        if (++idx[d] < t->dim[d]) return true;
        idx[d] = 0;
    }
    return false;
}

char *test_at(const strata_tensor *t, const int64_t *idx)
{
    int64_t off = 0;
    for (int d = 0; d < t->rank; d++) off += idx[d] * t->stride[d];
    return (char *)t->data + off * bytes_of((strata_type)t->type);
}

double test_get(const strata_tensor *t, const int64_t *idx)
{
    const char *p = test_at(t, idx);
    union {
        double d;
        float f;
        int64_t i64;
        int32_t i32;
        uint16_t h;
    } x = {0};
    memcpy(&x, p, (size_t)(bytes_of((strata_type)t->type) > 8 ? 8 : bytes_of((strata_type)t->type)));
    switch (t->type) {
    case STRATA_F64: return x.d;
    case STRATA_F32: return x.f;
    case STRATA_F16:
    case STRATA_BF16: return decode(x.h, t->type);
    case STRATA_F8E4M3:
    case STRATA_F8E5M2: return decode(*(const uint8_t *)p, t->type);
    case STRATA_I64: return (double)x.i64;
    case STRATA_I32: return x.i32;
    case STRATA_I8: return *(const int8_t *)p;
    case STRATA_U8:
    case STRATA_BOOL: return *(const uint8_t *)p;
    default: fail_msg("test_get: type %d has no reader", (int)t->type); return NAN;
    }
}

void test_put(const strata_tensor *t, const int64_t *idx, double v)
{
    char *p = test_at(t, idx);
    switch (t->type) {
    case STRATA_F64: memcpy(p, &v, 8); return;
    case STRATA_F32: memcpy(p, &(float){(float)v}, 4); return;
    case STRATA_F16:
    case STRATA_BF16: memcpy(p, &(uint16_t){(uint16_t)encode(v, t->type)}, 2); return;
    case STRATA_F8E4M3:
    case STRATA_F8E5M2: *(uint8_t *)p = (uint8_t)encode(v, t->type); return;
    case STRATA_I64: memcpy(p, &(int64_t){(int64_t)v}, 8); return;
    case STRATA_I32: memcpy(p, &(int32_t){(int32_t)v}, 4); return;
    case STRATA_I8: *(int8_t *)p = (int8_t)v; return;
    case STRATA_U8:
    case STRATA_BOOL: *(uint8_t *)p = (uint8_t)v; return;
    default: fail_msg("test_put: type %d has no writer", (int)t->type);
    }
}

test_array test_array_make(test_rng *r, strata_type type, int rank, const int64_t *dim, unsigned how)
{
    test_array a;
    int order[STRATA_MAX_RANK];
    int64_t size = bytes_of(type), step = 1, lo = 0, hi = 0, count = 1;
    memset(&a, 0, sizeof a);
    if (!size) fail_msg("test_array_make: type %d has no whole bytes", (int)type);
    a.t.type = (int32_t)type;
    a.t.rank = rank;
    for (int d = 0; d < rank; d++) {
        a.t.dim[d] = dim[d];
        order[d] = d;
        count *= dim[d];
    }
    if (how & TEST_PERMUTED && test_chance(r, 0.7))
        for (int d = rank - 1; d > 0; d--) {
            int k = (int)test_int(r, 0, d), keep = order[d];
            order[d] = order[k];
            order[k] = keep;
        }
    bool pad = how & TEST_PADDED && test_chance(r, 0.7), flip = how & TEST_NEGATIVE && test_chance(r, 0.5);
    if (how & TEST_STEPPED && test_chance(r, 0.3)) step = test_int(r, 2, 3);
    for (int k = rank - 1; k >= 0; k--) {
        int d = order[k];
        if (how & TEST_BROADCAST && test_chance(r, 0.25)) continue; /* stride stays 0 */
        a.t.stride[d] = flip && test_chance(r, 0.5) ? -step : step;
        step *= dim[d] ? dim[d] : 1;
        if (pad && test_chance(r, 0.6)) step += test_int(r, 1, 5);
    }
    for (int d = 0; d < rank && count; d++) {
        int64_t s = (dim[d] - 1) * a.t.stride[d];
        lo += s < 0 ? s : 0;
        hi += s > 0 ? s : 0;
    }
    a.bytes = count ? (size_t)((hi - lo + 1) * size) : 0;
    a.base = test_guard(a.bytes, test_chance(r, 0.5));
    a.t.data = a.base - lo * size;
    return a;
}

void test_array_free(test_array *a)
{
    test_guard_free(a->base);
    a->base = NULL;
}

static bool is_float(int type) { return type == STRATA_F64 || type == STRATA_F32; }

void test_array_random(test_rng *r, test_array *a, double lo, double hi)
{
    int64_t i[STRATA_MAX_RANK] = {0}, n = 1;
    for (int d = 0; d < a->t.rank; d++) n *= a->t.dim[d];
    if (!n) return;
    do {
        double v = test_real(r, lo, hi);
        test_put(&a->t, i, is_float(a->t.type) ? v : floor(v + 0.5));
    } while (test_next(&a->t, i));
}

void test_array_integers(test_rng *r, test_array *a, int64_t lo, int64_t hi)
{
    int64_t i[STRATA_MAX_RANK] = {0}, n = 1;
    for (int d = 0; d < a->t.rank; d++) n *= a->t.dim[d];
    if (!n) return;
    do test_put(&a->t, i, (double)test_int(r, lo, hi));
    while (test_next(&a->t, i));
}

void test_array_set(test_array *a, double v)
{
    int64_t i[STRATA_MAX_RANK] = {0}, n = 1;
    for (int d = 0; d < a->t.rank; d++) n *= a->t.dim[d];
    if (!n) return;
    do test_put(&a->t, i, v);
    while (test_next(&a->t, i));
}

void test_array_intact(const test_array *a)
{
    if (!test_guard_intact(a->base))
        test_fail(__FILE__, __LINE__, "bytes outside the buffer of %s were written", test_say(a->t));
    if (!a->bytes) return;
    unsigned char *own = calloc(1, a->bytes);
    int64_t i[STRATA_MAX_RANK] = {0}, size = bytes_of((strata_type)a->t.type);
    do memset(own + ((unsigned char *)test_at(&a->t, i) - a->base), 1, (size_t)size);
    while (test_next(&a->t, i));
    size_t at = 0;
    while (at < a->bytes && (own[at] || a->base[at] == 0xff)) at++;
    free(own);
    if (at < a->bytes)
        test_fail(__FILE__, __LINE__, "byte %zu of the buffer of %s belongs to no element and was written",
                  at, test_say(a->t));
}

const char *test_say(strata_tensor t)
{
    static _Thread_local char ring[4][240];
    static _Thread_local int at;
    char *s = ring[at++ & 3];
    size_t n = (size_t)snprintf(s, 240, "type %d ", (int)t.type);
    for (int d = 0; d < t.rank; d++)
        n += (size_t)snprintf(s + n, 240 - n, "%s%lld", d ? "x" : "", (long long)t.dim[d]);
    n += (size_t)snprintf(s + n, 240 - n, " (stride ");
    for (int d = 0; d < t.rank; d++)
        n += (size_t)snprintf(s + n, 240 - n, "%s%lld", d ? "," : "", (long long)t.stride[d]);
    snprintf(s + n, 240 - n, ")");
    return s;
}
