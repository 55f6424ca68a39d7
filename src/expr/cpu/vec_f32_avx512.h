/* SPDX-License-Identifier: Apache-2.0 */
/* vec_f32_avx512.h - the vector operations that kernels.inc and math_f32.inc are written in: 16 floats. A mask K has one bit a lane;
 * a tail M is the first lanes of a vector. */
#include <immintrin.h>
#include <sleef.h>
#include "base/base.h"
#define VI ST_INLINE
enum { W = 16 };
typedef float T;
typedef __m512 V;
typedef __mmask16 K;
typedef __mmask16 M;
#define SLEEF(f, u) Sleef_##f##f16_##u##avx512f
VI V v_set(T a) { return _mm512_set1_ps(a); }
VI V v_bits(uint32_t u) { return _mm512_castsi512_ps(_mm512_set1_epi32((int)u)); }
VI K v_negative(V a) { return _mm512_movepi32_mask(_mm512_castps_si512(a)); } /* sign bit */
VI V v_load(const T *p) { return _mm512_loadu_ps(p); }
VI void v_store(T *p, V a) { _mm512_storeu_ps(p, a); }
VI M v_tail(int64_t n) { return (M)(n >= W ? 0xffff : (1u << n) - 1); }
VI V v_loadm(const T *p, M m) { return _mm512_maskz_loadu_ps(m, p); }
VI void v_storem(T *p, M m, V a) { _mm512_mask_storeu_ps(p, m, a); }
VI V v_keep(M m, V a, V fill) { return _mm512_mask_blend_ps(m, fill, a); }
VI V v_add(V a, V b) { return _mm512_add_ps(a, b); }
VI V v_sub(V a, V b) { return _mm512_sub_ps(a, b); }
VI V v_mul(V a, V b) { return _mm512_mul_ps(a, b); }
VI V v_div(V a, V b) { return _mm512_div_ps(a, b); }
VI V v_fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
VI V v_fms(V a, V b, V c) { return _mm512_fmsub_ps(a, b, c); }
VI V v_fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a b */
VI V v_min(V a, V b) { return _mm512_min_ps(a, b); }             /* b when either is NaN */
VI V v_max(V a, V b) { return _mm512_max_ps(a, b); }
#define ST_OWN_MAXN 1 /* NaN when either is: a's by the mask, b's by the instruction */
VI V v_maxn(V a, V b) { return _mm512_mask_max_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b); }
VI V v_minn(V a, V b) { return _mm512_mask_min_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b); }
VI V v_sqrt(V a) { return _mm512_sqrt_ps(a); }
VI V v_rint(V a) { return _mm512_roundscale_ps(a, 8); }
VI V v_floor(V a) { return _mm512_roundscale_ps(a, 9); }
VI V v_ceil(V a) { return _mm512_roundscale_ps(a, 10); }
VI V v_trunc(V a) { return _mm512_roundscale_ps(a, 11); }
VI V v_and(V a, V b) { return _mm512_and_ps(a, b); }
VI V v_andnot(V a, V b) { return _mm512_andnot_ps(a, b); } /* ~a & b */
VI V v_or(V a, V b) { return _mm512_or_ps(a, b); }
VI V v_xor(V a, V b) { return _mm512_xor_ps(a, b); }
VI K v_lt(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
VI K v_le(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
VI K v_eq(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
VI K v_ne(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
VI K k_and(K a, K b) { return (K)(a & b); }
VI K k_or(K a, K b) { return (K)(a | b); }
VI V v_blend(K k, V no, V yes) { return _mm512_mask_blend_ps(k, no, yes); }
VI V v_one(K k) { return _mm512_maskz_mov_ps(k, _mm512_set1_ps(1)); }
/* a 2^n for an integer n of any size, rounded once */
VI V v_scale2(V a, V n) { return _mm512_scalef_ps(a, n); }
VI T v_first(V a) { return _mm512_cvtss_f32(a); }
/* COMBINE over all lanes, in every lane: halves, quarters, ... */
#define ST_FOLD(COMBINE, a)                           \
    a = COMBINE(a, _mm512_shuffle_f32x4(a, a, 0x4e)); \
    a = COMBINE(a, _mm512_shuffle_f32x4(a, a, 0xb1)); \
    a = COMBINE(a, _mm512_permute_ps(a, 0x4e));       \
    a = COMBINE(a, _mm512_permute_ps(a, 0xb1))
/* p[0..W) += a in f64 */
VI void v_addto(double *p, V a)
{
    __m512d lo = _mm512_cvtps_pd(_mm512_castps512_ps256(a)),
            hi = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));
    _mm512_storeu_pd(p, _mm512_add_pd(_mm512_loadu_pd(p), lo));
    _mm512_storeu_pd(p + 8, _mm512_add_pd(_mm512_loadu_pd(p + 8), hi));
}
#define ST_FAST_CONVERT 1
VI V v_from_f32(const void *p) { return v_load(p); }
VI void v_to_f32(void *p, V a) { v_store(p, a); }
VI V v_from_f64(const void *p)
{
    __m256 lo = _mm512_cvtpd_ps(_mm512_loadu_pd(p)),
           hi = _mm512_cvtpd_ps(_mm512_loadu_pd((const double *)p + 8));
    return _mm512_insertf32x8(_mm512_castps256_ps512(lo), hi, 1);
}
VI V v_from_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
VI V v_from_bf16(const void *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}
VI V v_from_i8(const void *p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p))); }
VI V v_from_u8(const void *p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(p))); }
VI V v_from_i32(const void *p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }
VI void v_to_f64(void *p, V a)
{
    _mm512_storeu_pd(p, _mm512_cvtps_pd(_mm512_castps512_ps256(a)));
    _mm512_storeu_pd((double *)p + 8, _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)));
}
VI void v_to_f16(void *p, V a)
{
    _mm256_storeu_si256(p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
VI void v_to_bf16(void *p, V a)
{
    __m512i u = _mm512_castps_si512(a),
            odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i r = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd), 16);
    __m512i nan = _mm512_or_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
    r = _mm512_mask_mov_epi32(r, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), nan);
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(r));
}
/* integers: towards zero, saturated, NaN is 0 */
VI V v_clamp_int(V a, float lo, float hi)
{
    a = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a);
    return _mm512_min_ps(_mm512_max_ps(a, _mm512_set1_ps(lo)), _mm512_set1_ps(hi));
}
VI void v_to_i8(void *p, V a)
{
    _mm_storeu_si128(p, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v_clamp_int(a, -128, 127))));
}
VI void v_to_u8(void *p, V a)
{
    _mm_storeu_si128(p, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v_clamp_int(a, 0, 255))));
}
VI void v_to_i32(void *p, V a)
{
    __m512i r = _mm512_cvttps_epi32(v_clamp_int(a, -2147483648.f, 2147483520.f));
    r = _mm512_mask_mov_epi32(r, _mm512_cmp_ps_mask(a, _mm512_set1_ps(2147483648.f), _CMP_GE_OQ),
                              _mm512_set1_epi32(0x7fffffff));
    _mm512_storeu_si512(p, r);
}
