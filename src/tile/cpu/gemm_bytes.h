/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_bytes.h - the packed microkernel of i8 and u8 into i32, modulo 2^32: one step takes UNIT values of k at a time, which lie in one 32-bit
 * place of a panel.
 *
 * Including file: UNIT 4 (VPDPBUSD: A without a sign, B with one; bytes of the other kind are moved by 128 while packing, and what that adds stands
 * in the heads of the panels, where sums start), 2 (values widened to 16 bits, VPMADDWD: exact), or 1 (widened to 32 bits); MR, NV, KERNEL. It defines
 * before: V, VL, v_zero, v_load, v_store, v_loadm, v_storem, MK, v_mask, v_add, v_each(word) and v_dot(sum, a, b). */
#include "tile/cpu/gemm_kernel.h"
#include <string.h>
#define NR (NV * VL)
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define HEAD (UNIT == 4)
#if defined(UNROLL)
#elif defined(__clang__)
#    define UNROLL _Pragma("clang loop unroll(full)")
#else
#    define UNROLL _Pragma("GCC unroll 32")
#endif

ST_INLINE void bytes_step(const int mr, const int nv, V *acc, const int32_t *a, const int32_t *b)
{
    V bv[NV];
    UNROLL
    for (int j = 0; j < nv; j++) bv[j] = v_load(b + j * VL);
    UNROLL
    for (int i = 0; i < mr; i++) {
        const V x = v_each(a[i]);
        UNROLL
        for (int j = 0; j < nv; j++) acc[i * nv + j] = v_dot(acc[i * nv + j], x, bv[j]);
    }
}

/* C := A B, or A B + C: factors are applied to whole sums, in f64 (gemm_pack.c) */
ST_INLINE void bytes_body(const int mr, const int nv, const int masked, const st_ukr_args *x,
                          const int32_t *restrict a, const int32_t *restrict b, int32_t *restrict c)
{
    V acc[MR * NV];
    UNROLL
    for (int i = 0; i < mr; i++) UNROLL
    for (int j = 0; j < nv; j++) acc[i * nv + j] = HEAD ? v_add(v_each(a[i]), v_load(b + j * VL)) : v_zero();
    if (HEAD) a += MR, b += NR;
    int64_t p = 0;
    const char *next = x->next ? x->next : (const char *)b;
    const int64_t jump = x->next ? 256 : 0;
    for (; p + 4 <= x->k; p += 4, a += 4 * MR, b += 4 * NR, next += jump) {
        UNROLL
        for (int q = 0; q < NR * 4; q += 64) __builtin_prefetch(next + q);
        UNROLL
        for (int u = 0; u < 4; u++) bytes_step(mr, nv, acc, a + u * MR, b + u * NR);
    }
    for (; p < x->k; p++, a += MR, b += NR) bytes_step(mr, nv, acc, a, b);
    const MK mask = v_mask(masked ? x->last : VL - 1);
    const int64_t ldc = x->ldc;
    __asm__("" : "+r"(c));
    UNROLL
    for (int i = 0; i < mr; i++, c += ldc) UNROLL
    for (int j = 0; j < nv; j++) {
        V r = acc[i * nv + j];
        if (masked && j == nv - 1) {
            if (x->beta != 0) r = v_add(r, v_loadm(mask, c + j * VL));
            v_storem(c + j * VL, mask, r);
        } else {
            if (x->beta != 0) r = v_add(r, v_load(c + j * VL));
            v_store(c + j * VL, r);
        }
    }
    (void)mask;
}

/* ---- packing ------------------------------------------------------------------------------------------------------- */
/* A place of a panel: the values of up to UNIT steps. `has_sign`: of the source; flip: 0x80, where bytes are moved by 128. */
ST_INLINE int32_t place(const int has_sign, const int flip, const uint8_t *s, int64_t ks, int64_t steps)
{
    uint32_t word = 0;
    for (int64_t q = 0; q < UNIT && q < steps; q++) {
        const uint8_t v = s[q * ks];
        if (UNIT == 4)
            word |= (uint32_t)(v ^ flip) << 8 * q;
        else {
            const int32_t wide = has_sign ? (int8_t)v : v;
            word |= UNIT == 2 ? ((uint32_t)wide & 0xffff) << 16 * q : (uint32_t)wide;
        }
    }
    return (int32_t)word;
}

/* units u0.. of one panel, anyhow */
ST_INLINE void bytes_gather(const int has_sign, const int flip, const int W, int32_t *restrict dst, int64_t w,
                            int64_t k, const uint8_t *src, int64_t ls, int64_t ks)
{
    for (int64_t p = 0; p < k; p += UNIT, dst += W) {
        const uint8_t *s = src + p * ks;
        for (int64_t i = 0; i < w; i++) dst[i] = place(has_sign, flip, s + i * ls, ks, k - p);
        for (int64_t i = w; i < W; i++) dst[i] = 0;
    }
}

#ifndef BYTES_SIDE_BY_SIDE
/* Lines side by side, w = W of them, and lines contiguous along k: how many steps were packed; the rest is gathered. */
#    define BYTES_SIDE_BY_SIDE(has_sign, flip, W, dst, k, src, ks) 0
#endif
#ifndef BYTES_ALONG_K
#    define BYTES_ALONG_K(has_sign, flip, W, dst, w, k, src, ls) 0
#endif

ST_INLINE void bytes_lines(const int has_sign, const int flip, const int W, void *dst, int64_t w, int64_t k,
                           const void *src, int64_t ls, int64_t ks)
{
    int32_t *d = dst;
    const uint8_t *s = src;
    const int64_t units = (k + UNIT - 1) / UNIT;
    for (int64_t i = 0; i < w; i += W, d += W * units, s += W * ls) {
        const int64_t n = w - i < W ? w - i : W;
        int64_t done = 0;
        if (ks == 1)
            done = BYTES_ALONG_K(has_sign, flip, W, d, n, k, s, ls);
        else if (ls == 1 && n == W)
            done = BYTES_SIDE_BY_SIDE(has_sign, flip, W, d, k, s, ks);
        bytes_gather(has_sign, flip, W, d + done / UNIT * W, n, k - done, s + done * ks, ls, ks);
    }
}
#define BYTES_PACK(name, W, has_sign, flip)                                                    \
    static void name(void *dst, int64_t w, int64_t k, const void *src, int64_t ls, int64_t ks) \
    {                                                                                          \
        bytes_lines(has_sign, flip, W, dst, w, k, src, ls, ks);                                \
    }
BYTES_PACK(pack_a_i8, MR, 1, UNIT == 4 ? 0x80 : 0)
BYTES_PACK(pack_a_u8, MR, 0, 0)
BYTES_PACK(pack_b_i8, NR, 1, 0)
BYTES_PACK(pack_b_u8, NR, 0, UNIT == 4 ? 0x80 : 0)

#define EDGE(m, v)                                                                         \
    static void ukr_##m##_##v(const st_ukr_args *x, const void *a, const void *b, void *c) \
    {                                                                                      \
        bytes_body(m, v, 1, x, a, b, c);                                                   \
    }
static void ukr_full(const st_ukr_args *x, const void *a, const void *b, void *c)
{
    bytes_body(MR, NV, 0, x, a, b, c);
}
#if NV == 4
#    define EDGES(m) EDGE(m, 1) EDGE(m, 2) EDGE(m, 3) EDGE(m, 4)
#    define ROW(m) ukr_##m##_1, ukr_##m##_2, ukr_##m##_3, ukr_##m##_4
#else
#    define EDGES(m) EDGE(m, 1) EDGE(m, 2)
#    define ROW(m) ukr_##m##_1, ukr_##m##_2
#endif
EDGES(1)
EDGES(2)
EDGES(3)
EDGES(4)
#if MR == 6
EDGES(5)
EDGES(6)
static const st_ukr_fn edges[MR * NV] = {ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6)};
#else
static const st_ukr_fn edges[MR * NV] = {ROW(1), ROW(2), ROW(3), ROW(4)};
#endif

const st_packed_kernel PASTE(st_kernel_, KERNEL) = {.mr = MR,
                                                    .nv = NV,
                                                    .vl = VL,
                                                    .unit = UNIT,
                                                    .size = 4,
                                                    .head = HEAD ? 4 : 0,
                                                    .full = ukr_full,
                                                    .edge = edges,
                                                    .pack_a = pack_a_i8,
                                                    .pack_b = pack_b_i8,
                                                    .pack_a_2 = pack_a_u8,
                                                    .pack_b_2 = pack_b_u8,
#if HEAD
                                                    .head_a = head_a,
                                                    .head_b = head_b
#endif
};
