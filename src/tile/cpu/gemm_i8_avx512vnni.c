/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_i8_avx512vnni.c - products of bytes by VPDPBUSD, tiles of 6x64: gemm_bytes.h. */
#define VEC_F64 0
#define VEC_BITS 512
#include "tile/cpu/gemm_vec.h"
#include "tile/cpu/pack_body.h"
#undef V
#undef VL
#undef MK
#undef v_zero
#undef v_load
#undef v_store
#undef v_loadm
#undef v_storem
#undef v_mask
#undef v_add
#define V __m512i
#define VL 16
#define MK __mmask16
#define v_zero() _mm512_setzero_si512()
#define v_load(p) _mm512_loadu_si512(p)
#define v_store(p, v) _mm512_storeu_si512(p, v)
#define v_loadm(m, p) _mm512_maskz_loadu_epi32(m, p)
#define v_storem(p, m, v) _mm512_mask_storeu_epi32(p, m, v)
#define v_mask(n) ((__mmask16)((1u << (n)) - 1))
#define v_add(a, b) _mm512_add_epi32(a, b)
#define v_each(x) _mm512_set1_epi32(x)
#define v_dot(s, a, b) _mm512_dpbusd_epi32(s, a, b)
#define UNIT 4
#define MR 6
#define NV 4
#define KERNEL gemm_i8_6x64_avx512vnni

/* head[line] = factor * (sum of the line) + constant */
static void head_a(void *panel, int64_t units, int32_t factor, int32_t constant)
{
    int32_t *head = panel, *p = head + MR;
    if (factor == 0) {
        for (int i = 0; i < MR; i++) head[i] = constant;
        return;
    }
    __m256i sum = _mm256_setzero_si256(); /* six lanes of eight; what is read past the panel is not used */
    for (int64_t u = 0; u < units; u++, p += MR)
        sum = _mm256_dpbusd_epi32(sum, _mm256_loadu_si256((const __m256i *)(void *)p), _mm256_set1_epi8(1));
    sum = _mm256_add_epi32(_mm256_mullo_epi32(sum, _mm256_set1_epi32(factor)), _mm256_set1_epi32(constant));
    _mm256_mask_storeu_epi32(head, 0x3f, sum);
}
static void head_b(void *panel, int64_t units, int32_t factor, int32_t constant)
{
    int32_t *head = panel, *p = head + NV * VL;
    __m512i sum[NV];
    UNROLL
    for (int j = 0; j < NV; j++) sum[j] = v_zero();
    for (int64_t u = 0; u < units && factor; u++, p += NV * VL) UNROLL
    for (int j = 0; j < NV; j++) sum[j] = v_dot(sum[j], _mm512_set1_epi8(1), v_load(p + j * VL));
    UNROLL
    for (int j = 0; j < NV; j++)
        v_store(head + j * VL, v_add(_mm512_mullo_epi32(sum[j], v_each(factor)), v_each(constant)));
}

/* four rows of 16 columns become 16 places of four bytes */
ST_INLINE int64_t side_by_side(const int flip, const int W, int32_t *dst, int64_t k, const uint8_t *src,
                               int64_t ks)
{
    const __m128i turn = _mm_set1_epi8((char)flip);
    int64_t p = 0;
    if (W % 16) return 0;
    for (; p + 4 <= k; p += 4, dst += W) {
        const uint8_t *s = src + p * ks;
        UNROLL
        for (int j = 0; j < W; j += 16) {
            __m128i r[4];
            UNROLL
            for (int q = 0; q < 4; q++) {
                r[q] = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(s + q * ks + j)), turn);
                if (j % 64 == 0) __builtin_prefetch(s + (16 + q) * ks + j);
            }
            const __m128i a = _mm_unpacklo_epi8(r[0], r[1]), b = _mm_unpackhi_epi8(r[0], r[1]),
                          c = _mm_unpacklo_epi8(r[2], r[3]), d = _mm_unpackhi_epi8(r[2], r[3]);
            __m128i *t = (__m128i *)(void *)(dst + j);
            _mm_storeu_si128(t, _mm_unpacklo_epi16(a, c));
            _mm_storeu_si128(t + 1, _mm_unpackhi_epi16(a, c));
            _mm_storeu_si128(t + 2, _mm_unpacklo_epi16(b, d));
            _mm_storeu_si128(t + 3, _mm_unpackhi_epi16(b, d));
        }
    }
    return p;
}
/* lines contiguous along k: their bytes lie as they shall, places are turned as floats are */
ST_INLINE int64_t along_k(const int flip, const int W, int32_t *dst, int64_t w, int64_t k, const uint8_t *src,
                          int64_t ls)
{
    const __m512i turn = _mm512_set1_epi8((char)flip);
    int64_t p = 0;
    if (W % 16) { /* narrow: eight lines by eight places, the tail of a store overwritten by the next */
        for (; p + 64 <= k; p += 32, dst += 8 * W) {
            __m256 r[8];
            UNROLL
            for (int i = 0; i < 8; i++)
                r[i] = i < w ? _mm256_castsi256_ps(_mm256_xor_si256(
                                   _mm256_loadu_si256((const __m256i *)(const void *)(src + i * ls + p)),
                                   _mm512_castsi512_si256(turn)))
                             : _mm256_setzero_ps();
            transpose_ps8(r);
            UNROLL
            for (int q = 0; q < 8; q++) _mm256_storeu_ps((float *)(void *)(dst + q * W), r[q]);
        }
        return p;
    }
    for (; p + 64 <= k; p += 64, dst += 16 * W)
        for (int j = 0; j < W; j += 16) {
            __m512 r[16];
            UNROLL
            for (int i = 0; i < 16; i++)
                r[i] = j + i < w ? _mm512_castsi512_ps(
                                       _mm512_xor_si512(_mm512_loadu_si512(src + (j + i) * ls + p), turn))
                                 : _mm512_setzero_ps();
            transpose_ps16(r);
            UNROLL
            for (int q = 0; q < 16; q++) _mm512_storeu_ps((float *)(void *)(dst + q * W + j), r[q]);
        }
    return p;
}
#define BYTES_SIDE_BY_SIDE(has_sign, flip, W, dst, k, src, ks) side_by_side(flip, W, dst, k, src, ks)
#define BYTES_ALONG_K(has_sign, flip, W, dst, w, k, src, ls) along_k(flip, W, dst, w, k, src, ls)
#include "tile/cpu/gemm_bytes.h"
