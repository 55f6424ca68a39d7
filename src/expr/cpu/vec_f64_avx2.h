/* SPDX-License-Identifier: Apache-2.0 */
/* vec_f64_avx2.h - the vector operations of kernels.inc: 4 doubles. */
#include <immintrin.h>
#include <sleef.h>
#include "base/base.h"
#define VI ST_INLINE
#define ST_ELEMENT_F64 1
enum { W = 4 };
typedef double T;
typedef __m256d V;
typedef __m256d K;
typedef __m256i M;
#define SLEEF(f, u) Sleef_##f##d4_##u##avx2
VI V v_set(T a) { return _mm256_set1_pd(a); }
VI K v_negative(V a) { return a; } /* blends look at the sign bit alone */
VI V v_load(const T *p) { return _mm256_loadu_pd(p); }
VI void v_store(T *p, V a) { _mm256_storeu_pd(p, a); }
/* lanes [0, n) are all ones */
VI M v_tail(int64_t n)
{
    static const int64_t ones[8] = {-1, -1, -1, -1};
    return _mm256_loadu_si256((const void *)(ones + (n >= 4 ? 0 : 4 - n)));
}
VI V v_loadm(const T *p, M m) { return _mm256_maskload_pd(p, m); }
VI void v_storem(T *p, M m, V a) { _mm256_maskstore_pd(p, m, a); }
VI V v_keep(M m, V a, V fill) { return _mm256_blendv_pd(fill, a, _mm256_castsi256_pd(m)); }
VI V v_add(V a, V b) { return _mm256_add_pd(a, b); }
VI V v_sub(V a, V b) { return _mm256_sub_pd(a, b); }
VI V v_mul(V a, V b) { return _mm256_mul_pd(a, b); }
VI V v_div(V a, V b) { return _mm256_div_pd(a, b); }
VI V v_fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
VI V v_fms(V a, V b, V c) { return _mm256_fmsub_pd(a, b, c); }
VI V v_fnma(V a, V b, V c) { return _mm256_fnmadd_pd(a, b, c); }
VI V v_min(V a, V b) { return _mm256_min_pd(a, b); }
VI V v_max(V a, V b) { return _mm256_max_pd(a, b); }
VI V v_sqrt(V a) { return _mm256_sqrt_pd(a); }
VI V v_rint(V a) { return _mm256_round_pd(a, 8); }
VI V v_floor(V a) { return _mm256_round_pd(a, 9); }
VI V v_ceil(V a) { return _mm256_round_pd(a, 10); }
VI V v_trunc(V a) { return _mm256_round_pd(a, 11); }
VI V v_and(V a, V b) { return _mm256_and_pd(a, b); }
VI V v_andnot(V a, V b) { return _mm256_andnot_pd(a, b); }
VI V v_or(V a, V b) { return _mm256_or_pd(a, b); }
VI V v_xor(V a, V b) { return _mm256_xor_pd(a, b); }
VI K v_lt(V a, V b) { return _mm256_cmp_pd(a, b, _CMP_LT_OQ); }
VI K v_le(V a, V b) { return _mm256_cmp_pd(a, b, _CMP_LE_OQ); }
VI K v_eq(V a, V b) { return _mm256_cmp_pd(a, b, _CMP_EQ_OQ); }
VI K v_ne(V a, V b) { return _mm256_cmp_pd(a, b, _CMP_NEQ_UQ); }
VI K k_and(K a, K b) { return _mm256_and_pd(a, b); }
VI K k_or(K a, K b) { return _mm256_or_pd(a, b); }
VI V v_blend(K k, V no, V yes) { return _mm256_blendv_pd(no, yes, k); }
VI V v_one(K k) { return _mm256_and_pd(k, _mm256_set1_pd(1)); }
VI T v_first(V a) { return _mm256_cvtsd_f64(a); }
#define ST_FOLD(COMBINE, a)                          \
    a = COMBINE(a, _mm256_permute2f128_pd(a, a, 1)); \
    a = COMBINE(a, _mm256_permute_pd(a, 5))
VI void v_addto(double *p, V a) { _mm256_storeu_pd(p, _mm256_add_pd(_mm256_loadu_pd(p), a)); }
#define ST_FAST_CONVERT 1
VI V v_from_f64(const void *p) { return v_load(p); }
VI void v_to_f64(void *p, V a) { v_store(p, a); }
VI V v_from_f32(const void *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
VI void v_to_f32(void *p, V a) { _mm_storeu_ps(p, _mm256_cvtpd_ps(a)); }
