/* SPDX-License-Identifier: Apache-2.0 */
/* structured.c - panels of structured operands. A panel meets the diagonal in as many steps as it has lines; on one side of these steps all
 * elements are stored, on the other none are. What is stored is packed as any operand is; a mirror image is packed as the transposed
 * operand (its strides change places); the steps between go element by element. No copy of the matrix is made. */
#include "tile/structured.h"
#include <math.h>
#include <string.h>

/* elements as bits, by size */
typedef struct bits32 {
    uint32_t u;
} bits32;
typedef struct bits64 {
    uint64_t u;
} bits64;
typedef struct bits128 {
    uint64_t re, im;
} bits128;

void st_side_range(const st_side *s, int64_t i0, int64_t w, int64_t K, int64_t *lo, int64_t *hi)
{
    *lo = 0;
    *hi = K;
    if (!s->rule.half || s->rule.mirror) return;
    if (s->rule.half == ST_HALF_LOWER)
        *hi = st_max64(0, st_min64(K, i0 + w + s->rule.offset));
    else
        *lo = st_min64(K, st_max64(0, i0 + s->rule.offset));
}

/* Signs of the imaginary parts of n elements. */
static void conjugate(int type, char *p, int64_t n)
{
    uint64_t *u = (uint64_t *)(void *)p;
    if (type == STRATA_C64)
        for (int64_t i = 0; i < n; i++) u[i] ^= (uint64_t)1 << 63;
    else
        for (int64_t i = 0; i < n; i++) u[2 * i + 1] ^= (uint64_t)1 << 63;
}

static void put_one(int type, char *p)
{
    const float f[2] = {1, 0};
    const double d[2] = {1, 0};
    const bool single = st_type_part(type) == STRATA_F32;
    memcpy(p, single ? (const void *)f : (const void *)d, strata_type_bits((strata_type)type) / 8);
}

/* Steps in which lines t0.. t1 - 1 of the panel are on the diagonal; d is the first one's place. One element after another: the stored lines of a
 * step, then those that are zero or whose mirror image is stored. */
#define DIAGONAL(T)                                                                                   \
    static void diagonal_##T(const st_side *s, T *d, const T *src, int64_t i0, int64_t w, int64_t t0, \
                             int64_t t1)                                                              \
    {                                                                                                 \
        const int64_t ls = s->ls, ks = s->ks, off = s->rule.offset, width = s->width;                 \
        const bool lower = s->rule.half == ST_HALF_LOWER, mirror = s->rule.mirror != ST_MIRROR_NONE;  \
        const T zero = {0};                                                                           \
        for (int64_t t = t0; t < t1; t++, d += width) {                                               \
            const T *here = src + i0 * ls + (i0 + t + off) * ks;                                      \
            const T *there = src + (i0 + t) * ls + (i0 + off) * ks;                                   \
            const int64_t first = lower ? t : 0, end = lower ? w : t + 1, f2 = lower ? 0 : t + 1,     \
                          e2 = lower ? t : w;                                                         \
            for (int64_t i = first; i < end; i++) d[i] = here[i * ls];                                \
            if (mirror)                                                                               \
                for (int64_t i = f2; i < e2; i++) d[i] = there[i * ks];                               \
            else                                                                                      \
                for (int64_t i = f2; i < e2; i++) d[i] = zero;                                        \
            for (int64_t i = w; i < width; i++) d[i] = zero;                                          \
        }                                                                                             \
    }
DIAGONAL(bits32)
DIAGONAL(bits64)
DIAGONAL(bits128)

static void diagonal(const st_side *s, int type, int64_t es, char *d, const char *src, int64_t i0, int64_t w,
                     int64_t t0, int64_t t1)
{
    const st_rule *r = &s->rule;
    if (es == 4)
        diagonal_bits32(s, (bits32 *)(void *)d, (const bits32 *)(const void *)src, i0, w, t0, t1);
    else if (es == 8)
        diagonal_bits64(s, (bits64 *)(void *)d, (const bits64 *)(const void *)src, i0, w, t0, t1);
    else
        diagonal_bits128(s, (bits128 *)(void *)d, (const bits128 *)(const void *)src, i0, w, t0, t1);
    if (!r->unit && r->mirror != ST_MIRROR_HERMITIAN) return;
    for (int64_t t = t0; t < t1; t++, d += s->width * es) {
        if (r->unit) {
            put_one(type, d + t * es);
            continue;
        }
        conjugate(type, r->half == ST_HALF_LOWER ? d : d + (t + 1) * es,
                  r->half == ST_HALF_LOWER ? t : w - t - 1);
        memset(d + t * es + es / 2, 0, (size_t)(es / 2));
    }
}

void st_side_pack(const st_side *s, int type, char *dst, const char *src, int64_t i0, int64_t w, int64_t k0,
                  int64_t kc)
{
    const st_rule *r = &s->rule;
    const int64_t es = (int64_t)strata_type_bits((strata_type)type) / 8, end = k0 + kc, row = s->width * es;
    if (!r->half) {
        s->pack(dst, w, kc, src + (i0 * s->ls + k0 * s->ks) * es, s->ls, s->ks);
        return;
    }
    const int64_t d0 = st_min64(end, st_max64(k0, i0 + r->offset)),
                  d1 = st_min64(end, st_max64(k0, i0 + w + r->offset));
    for (int part = 0; part < 2; part++) { /* before the diagonal, after it */
        const int64_t from = part ? d1 : k0, to = part ? end : d0;
        char *d = dst + (from - k0) * row;
        if (part && d0 < d1) /* (a pack may write a little beyond its end, so they go in order) */
            diagonal(s, type, es, dst + (d0 - k0) * row, src, i0, w, d0 - i0 - r->offset,
                     d1 - i0 - r->offset);
        if (from >= to) continue;
        if ((r->half == ST_HALF_LOWER) == (part == 0)) {
            s->pack(d, w, to - from, src + (i0 * s->ls + from * s->ks) * es, s->ls, s->ks);
        } else if (r->mirror) {
            s->pack(d, w, to - from, src + ((from - r->offset) * s->ls + (i0 + r->offset) * s->ks) * es,
                    s->ks, s->ls);
            if (r->mirror == ST_MIRROR_HERMITIAN) conjugate(type, d, (to - from) * s->width);
        }
    }
}

bool st_side_invert(int type, char *panel, int64_t width, int64_t first_step, int64_t w)
{
    bool normal = true;
    for (int64_t i = 0; i < w; i++) {
        const int64_t at = (first_step + i) * width + i;
        float *f = (float *)(void *)panel + at * (st_type_is_complex(type) ? 2 : 1);
        double *d = (double *)(void *)panel + at * (st_type_is_complex(type) ? 2 : 1);
        if (type == STRATA_F32) {
            *f = 1 / *f;
            normal = normal && isnormal(*f);
        } else if (type == STRATA_F64) {
            *d = 1 / *d;
            normal = normal && isnormal(*d);
        } else {
            const bool single = type == STRATA_C64;
            const double re = single ? (double)f[0] : d[0], im = single ? (double)f[1] : d[1];
            const double _Complex z = 1 / __builtin_complex(re, im);
            const double size = fmax(fabs(__real__ z), fabs(__imag__ z));
            normal = normal && (single ? isnormal((float)size) : isnormal(size)) && !isnan(__real__ z) &&
                     !isnan(__imag__ z);
            if (single) {
                f[0] = (float)__real__ z;
                f[1] = (float)__imag__ z;
            } else {
                d[0] = __real__ z;
                d[1] = __imag__ z;
            }
        }
    }
    return normal;
}
