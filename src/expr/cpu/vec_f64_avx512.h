/* SPDX-License-Identifier: Apache-2.0 */
/* vec_f64_avx512.h - the vector operations of kernels.inc: 8 doubles. */
#include <immintrin.h>
#include <sleef.h>
#include "base/base.h"
#define VI ST_INLINE
#define ST_ELEMENT_F64 1
enum { W = 8 };
typedef double T;
typedef __m512d V;
typedef __mmask8 K;
typedef __mmask8 M;
#define SLEEF(f, u) Sleef_##f##d8_##u##avx512f
VI V v_set(T a) { return _mm512_set1_pd(a); }
VI K v_negative(V a) { return _mm512_movepi64_mask(_mm512_castpd_si512(a)); }
VI V v_load(const T *p) { return _mm512_loadu_pd(p); }
VI void v_store(T *p, V a) { _mm512_storeu_pd(p, a); }
VI M v_tail(int64_t n) { return (M)(n >= W ? 0xff : (1u << n) - 1); }
VI V v_loadm(const T *p, M m) { return _mm512_maskz_loadu_pd(m, p); }
VI void v_storem(T *p, M m, V a) { _mm512_mask_storeu_pd(p, m, a); }
VI V v_keep(M m, V a, V fill) { return _mm512_mask_blend_pd(m, fill, a); }
VI V v_add(V a, V b) { return _mm512_add_pd(a, b); }
VI V v_sub(V a, V b) { return _mm512_sub_pd(a, b); }
VI V v_mul(V a, V b) { return _mm512_mul_pd(a, b); }
VI V v_div(V a, V b) { return _mm512_div_pd(a, b); }
VI V v_fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
VI V v_fms(V a, V b, V c) { return _mm512_fmsub_pd(a, b, c); }
VI V v_fnma(V a, V b, V c) { return _mm512_fnmadd_pd(a, b, c); }
VI V v_min(V a, V b) { return _mm512_min_pd(a, b); }
VI V v_max(V a, V b) { return _mm512_max_pd(a, b); }
#define ST_OWN_MAXN 1 /* NaN when either is: a's by the mask, b's by the instruction */
VI V v_maxn(V a, V b) { return _mm512_mask_max_pd(a, _mm512_cmp_pd_mask(a, a, _CMP_ORD_Q), a, b); }
VI V v_minn(V a, V b) { return _mm512_mask_min_pd(a, _mm512_cmp_pd_mask(a, a, _CMP_ORD_Q), a, b); }
VI V v_sqrt(V a) { return _mm512_sqrt_pd(a); }
VI V v_rint(V a) { return _mm512_roundscale_pd(a, 8); }
VI V v_floor(V a) { return _mm512_roundscale_pd(a, 9); }
VI V v_ceil(V a) { return _mm512_roundscale_pd(a, 10); }
VI V v_trunc(V a) { return _mm512_roundscale_pd(a, 11); }
VI V v_and(V a, V b) { return _mm512_and_pd(a, b); }
VI V v_andnot(V a, V b) { return _mm512_andnot_pd(a, b); }
VI V v_or(V a, V b) { return _mm512_or_pd(a, b); }
VI V v_xor(V a, V b) { return _mm512_xor_pd(a, b); }
VI K v_lt(V a, V b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
VI K v_le(V a, V b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
VI K v_eq(V a, V b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
VI K v_ne(V a, V b) { return _mm512_cmp_pd_mask(a, b, _CMP_NEQ_UQ); }
VI K k_and(K a, K b) { return (K)(a & b); }
VI K k_or(K a, K b) { return (K)(a | b); }
VI V v_blend(K k, V no, V yes) { return _mm512_mask_blend_pd(k, no, yes); }
VI V v_one(K k) { return _mm512_maskz_mov_pd(k, _mm512_set1_pd(1)); }
VI V v_scale2(V a, V n) { return _mm512_scalef_pd(a, n); }
VI T v_first(V a) { return _mm512_cvtsd_f64(a); }
#define ST_FOLD(COMBINE, a)                           \
    a = COMBINE(a, _mm512_shuffle_f64x2(a, a, 0x4e)); \
    a = COMBINE(a, _mm512_shuffle_f64x2(a, a, 0xb1)); \
    a = COMBINE(a, _mm512_permute_pd(a, 0x55))
VI void v_addto(double *p, V a) { _mm512_storeu_pd(p, _mm512_add_pd(_mm512_loadu_pd(p), a)); }
#define ST_FAST_CONVERT 1
VI V v_from_f64(const void *p) { return v_load(p); }
VI void v_to_f64(void *p, V a) { v_store(p, a); }
VI V v_from_f32(const void *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
VI void v_to_f32(void *p, V a) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(a)); }
