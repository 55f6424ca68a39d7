/* SPDX-License-Identifier: Apache-2.0 */
/* vec_f32_avx2.h - the vector operations of kernels.inc: 8 floats. */
#include <immintrin.h>
#include <sleef.h>
#include "base/base.h"
#define VI ST_INLINE
enum { W = 8 };
typedef float T;
typedef __m256 V;
typedef __m256 K;
typedef __m256i M;
#define SLEEF(f, u) Sleef_##f##f8_##u##avx2
VI V v_set(T a) { return _mm256_set1_ps(a); }
VI K v_negative(V a) { return a; } /* blends look at the sign bit alone */
VI V v_load(const T *p) { return _mm256_loadu_ps(p); }
VI void v_store(T *p, V a) { _mm256_storeu_ps(p, a); }
/* lanes [0, n) are all ones */
VI M v_tail(int64_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const void *)(ones + (n >= 8 ? 0 : 8 - n)));
}
VI V v_loadm(const T *p, M m) { return _mm256_maskload_ps(p, m); }
VI void v_storem(T *p, M m, V a) { _mm256_maskstore_ps(p, m, a); }
VI V v_keep(M m, V a, V fill) { return _mm256_blendv_ps(fill, a, _mm256_castsi256_ps(m)); }
VI V v_add(V a, V b) { return _mm256_add_ps(a, b); }
VI V v_sub(V a, V b) { return _mm256_sub_ps(a, b); }
VI V v_mul(V a, V b) { return _mm256_mul_ps(a, b); }
VI V v_div(V a, V b) { return _mm256_div_ps(a, b); }
VI V v_fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
VI V v_fms(V a, V b, V c) { return _mm256_fmsub_ps(a, b, c); }
VI V v_fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }
VI V v_min(V a, V b) { return _mm256_min_ps(a, b); }
VI V v_max(V a, V b) { return _mm256_max_ps(a, b); }
VI V v_sqrt(V a) { return _mm256_sqrt_ps(a); }
VI V v_rint(V a) { return _mm256_round_ps(a, 8); }
VI V v_floor(V a) { return _mm256_round_ps(a, 9); }
VI V v_ceil(V a) { return _mm256_round_ps(a, 10); }
VI V v_trunc(V a) { return _mm256_round_ps(a, 11); }
VI V v_and(V a, V b) { return _mm256_and_ps(a, b); }
VI V v_andnot(V a, V b) { return _mm256_andnot_ps(a, b); }
VI V v_or(V a, V b) { return _mm256_or_ps(a, b); }
VI V v_xor(V a, V b) { return _mm256_xor_ps(a, b); }
VI K v_lt(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
VI K v_le(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
VI K v_eq(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
VI K v_ne(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ); }
VI K k_and(K a, K b) { return _mm256_and_ps(a, b); }
VI K k_or(K a, K b) { return _mm256_or_ps(a, b); }
VI V v_blend(K k, V no, V yes) { return _mm256_blendv_ps(no, yes, k); }
VI V v_one(K k) { return _mm256_and_ps(k, _mm256_set1_ps(1)); }
VI V v_bits(uint32_t u) { return _mm256_castsi256_ps(_mm256_set1_epi32((int)u)); }
/* a 2^n for an integer n: in two halves, so that denormal results and n = 128 come out */
VI V v_scale2(V a, V n)
{
    n = _mm256_min_ps(_mm256_set1_ps(250), _mm256_max_ps(_mm256_set1_ps(-250), n));
    __m256i i = _mm256_cvtps_epi32(n), h = _mm256_srai_epi32(i, 1), bias = _mm256_set1_epi32(127);
    __m256i x = _mm256_slli_epi32(_mm256_add_epi32(h, bias), 23),
            y = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(i, h), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(a, _mm256_castsi256_ps(x)), _mm256_castsi256_ps(y));
}
VI T v_first(V a) { return _mm256_cvtss_f32(a); }
#define ST_FOLD(COMBINE, a)                          \
    a = COMBINE(a, _mm256_permute2f128_ps(a, a, 1)); \
    a = COMBINE(a, _mm256_permute_ps(a, 0x4e));      \
    a = COMBINE(a, _mm256_permute_ps(a, 0xb1))
VI void v_addto(double *p, V a)
{
    __m256d lo = _mm256_cvtps_pd(_mm256_castps256_ps128(a)),
            hi = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
    _mm256_storeu_pd(p, _mm256_add_pd(_mm256_loadu_pd(p), lo));
    _mm256_storeu_pd(p + 4, _mm256_add_pd(_mm256_loadu_pd(p + 4), hi));
}
#define ST_FAST_CONVERT 1
VI V v_from_f32(const void *p) { return v_load(p); }
VI void v_to_f32(void *p, V a) { v_store(p, a); }
VI V v_from_f64(const void *p)
{
    __m128 lo = _mm256_cvtpd_ps(_mm256_loadu_pd(p)),
           hi = _mm256_cvtpd_ps(_mm256_loadu_pd((const double *)p + 4));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(lo), hi, 1);
}
VI V v_from_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
VI V v_from_bf16(const void *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}
VI V v_from_i8(const void *p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p))); }
VI V v_from_u8(const void *p) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(p))); }
VI V v_from_i32(const void *p) { return _mm256_cvtepi32_ps(_mm256_loadu_si256(p)); }
VI void v_to_f64(void *p, V a)
{
    _mm256_storeu_pd(p, _mm256_cvtps_pd(_mm256_castps256_ps128(a)));
    _mm256_storeu_pd((double *)p + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
}
VI void v_to_f16(void *p, V a)
{
    _mm_storeu_si128(p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* eight 32-bit lanes to 16 bits, in order */
VI __m128i narrow16(__m256i r)
{
    return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}
VI void v_to_bf16(void *p, V a)
{
    __m256i u = _mm256_castps_si256(a),
            odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i r = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
    __m256i nan = _mm256_or_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(0x40));
    r = _mm256_blendv_epi8(r, nan, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
    _mm_storeu_si128(p, narrow16(r));
}
/* integers: towards zero, saturated, NaN is 0 */
VI V v_clamp_int(V a, float lo, float hi)
{
    a = _mm256_and_ps(a, _mm256_cmp_ps(a, a, _CMP_ORD_Q));
    return _mm256_min_ps(_mm256_max_ps(a, _mm256_set1_ps(lo)), _mm256_set1_ps(hi));
}
VI void v_to_i8(void *p, V a)
{
    __m256i r = _mm256_cvttps_epi32(v_clamp_int(a, -128, 127));
    __m128i w = _mm_packs_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
    _mm_storel_epi64(p, _mm_packs_epi16(w, w));
}
VI void v_to_u8(void *p, V a)
{
    __m128i w = narrow16(_mm256_cvttps_epi32(v_clamp_int(a, 0, 255)));
    _mm_storel_epi64(p, _mm_packus_epi16(w, w));
}
VI void v_to_i32(void *p, V a)
{
    __m256i r = _mm256_cvttps_epi32(v_clamp_int(a, -2147483648.f, 2147483520.f));
    __m256 big = _mm256_cmp_ps(a, _mm256_set1_ps(2147483648.f), _CMP_GE_OQ);
    r = _mm256_blendv_epi8(r, _mm256_set1_epi32(0x7fffffff), _mm256_castps_si256(big));
    _mm256_storeu_si256(p, r);
}
