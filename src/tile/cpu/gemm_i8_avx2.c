/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_i8_avx2.c - products of bytes widened to 16 bits by VPMADDWD, tiles of 6x16: gemm_bytes.h. */
#include <immintrin.h>
#include "base/base.h"
#define V __m256i
#define VL 8
#define MK __m256i
#define v_zero() _mm256_setzero_si256()
#define v_load(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define v_store(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define v_loadm(m, p) _mm256_maskload_epi32(p, m)
#define v_storem(p, m, v) _mm256_maskstore_epi32(p, m, v)
#define v_mask(n) _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define v_add(a, b) _mm256_add_epi32(a, b)
#define v_each(x) _mm256_set1_epi32(x)
#define v_dot(s, a, b) _mm256_add_epi32(s, _mm256_madd_epi16(a, b))
#define UNIT 2
#define MR 6
#define NV 2
#define KERNEL gemm_i8_6x16_avx2

/* two rows of 16 columns become 16 pairs */
ST_INLINE int64_t side_by_side(const int has_sign, const int W, int32_t *dst, int64_t k, const uint8_t *src,
                               int64_t ks)
{
    int64_t p = 0;
    if (W != 16) return 0;
    for (; p + 2 <= k; p += 2, dst += W) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(src + p * ks)),
                      y = _mm_loadu_si128((const __m128i *)(const void *)(src + (p + 1) * ks));
        const __m256i a = has_sign ? _mm256_cvtepi8_epi16(x) : _mm256_cvtepu8_epi16(x),
                      b = has_sign ? _mm256_cvtepi8_epi16(y) : _mm256_cvtepu8_epi16(y);
        const __m256i lo = _mm256_unpacklo_epi16(a, b), hi = _mm256_unpackhi_epi16(a, b);
        v_store(dst, _mm256_permute2x128_si256(lo, hi, 0x20));
        v_store(dst + 8, _mm256_permute2x128_si256(lo, hi, 0x31));
    }
    return p;
}
#define BYTES_SIDE_BY_SIDE(has_sign, flip, W, dst, k, src, ks) side_by_side(has_sign, W, dst, k, src, ks)
#include "tile/cpu/gemm_bytes.h"
