/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_vec.h - one vector of the instruction set for which the including file is compiled, under one set of names.
 *
 * Before including: VEC_F64 0 or 1, VEC_BITS 512, 256 or 128. May be included again with other values: everything is a macro.
 *   T element, V vector, VL lanes, MK mask of the lanes of a partial vector
 *   v_zero() v_set1(x) v_load(p) v_store(p, v) v_fma(a, b, c) = a*b+c v_mul v_add v_sum(v)
 *   v_swap(v) lanes 0 and 1, 2 and 3... exchanged
 *   v_mask(n) lanes 0..n-1; v_loadm(mask, p) zeros elsewhere, reads nothing there; v_storem(p, mask, v) */
#undef T
#undef V
#undef VL
#undef MK
#undef v_zero
#undef v_set1
#undef v_load
#undef v_store
#undef v_fma
#undef v_mul
#undef v_add
#undef v_mask
#undef v_loadm
#undef v_storem
#undef v_sum
#undef v_swap

#ifndef ST_TILE_CPU_GEMM_VEC_H
#    define ST_TILE_CPU_GEMM_VEC_H
#    include "base/base.h"
#    include <string.h>
/* Complete unrolling of a loop with a constant count: clang must do it early, or arrays of vectors stay in memory. */
#    if defined(__clang__)
#        define UNROLL _Pragma("clang loop unroll(full)")
#    else
#        define UNROLL _Pragma("GCC unroll 32")
#    endif
#    if defined(__AVX2__)
#        include <immintrin.h>
static const int32_t vec_mask32[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
static const int64_t vec_mask64[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
#        if !defined(__AVX512VL__)
ST_INLINE __m256i vec_mask32_256(int n) { return _mm256_loadu_si256((const __m256i *)(vec_mask32 + 8 - n)); }
ST_INLINE __m128i vec_mask32_128(int n) { return _mm_loadu_si128((const __m128i *)(vec_mask32 + 8 - n)); }
ST_INLINE __m256i vec_mask64_256(int n) { return _mm256_loadu_si256((const __m256i *)(vec_mask64 + 4 - n)); }
ST_INLINE __m128i vec_mask64_128(int n) { return _mm_loadu_si128((const __m128i *)(vec_mask64 + 4 - n)); }
#        endif
ST_INLINE float vec_sum_ps128(__m128 x)
{
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
ST_INLINE double vec_sum_pd128(__m128d x) { return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x))); }
ST_INLINE float vec_sum_ps256(__m256 x)
{
    return vec_sum_ps128(_mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)));
}
ST_INLINE double vec_sum_pd256(__m256d x)
{
    return vec_sum_pd128(_mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1)));
}
#        if defined(__AVX512F__)
ST_INLINE float vec_sum_ps512(__m512 x)
{
    return vec_sum_ps256(_mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
}
ST_INLINE double vec_sum_pd512(__m512d x)
{
    return vec_sum_pd256(_mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1)));
}
#        endif
#    else
typedef float vec_f32x4 __attribute__((vector_size(16)));
typedef double vec_f64x2 __attribute__((vector_size(16)));
typedef float vec_f32x4u __attribute__((vector_size(16), aligned(4), may_alias));
typedef double vec_f64x2u __attribute__((vector_size(16), aligned(8), may_alias));
ST_INLINE vec_f32x4 vec_loadm_f32(int n, const float *p)
{
    vec_f32x4 v = {0, 0, 0, 0};
    for (int i = 0; i < n; i++) v[i] = p[i];
    return v;
}
ST_INLINE void vec_storem_f32(float *p, int n, vec_f32x4 v)
{
    for (int i = 0; i < n; i++) p[i] = v[i];
}
ST_INLINE vec_f64x2 vec_loadm_f64(int n, const double *p)
{
    vec_f64x2 v = {0, 0};
    for (int i = 0; i < n; i++) v[i] = p[i];
    return v;
}
ST_INLINE void vec_storem_f64(double *p, int n, vec_f64x2 v)
{
    for (int i = 0; i < n; i++) p[i] = v[i];
}
#    endif
#endif

#if (VEC_BITS == 512 && !defined(__AVX512VL__)) || (VEC_BITS == 256 && !defined(__AVX2__))
#    error "compiled without the flags of its instruction set: the file's suffix selects them"
#endif
#if defined(__AVX512VL__)
#    if VEC_F64
#        define T double
#        define VL (VEC_BITS / 64)
#        define MK __mmask8
#        define v_mask(n) ((__mmask8)((1u << (n)) - 1))
#    else
#        define T float
#        define VL (VEC_BITS / 32)
#        if VEC_BITS == 512
#            define MK __mmask16
#            define v_mask(n) ((__mmask16)((1u << (n)) - 1))
#        else
#            define MK __mmask8
#            define v_mask(n) ((__mmask8)((1u << (n)) - 1))
#        endif
#    endif
#    if VEC_BITS == 512 && VEC_F64
#        define V __m512d
#        define v_zero() _mm512_setzero_pd()
#        define v_set1(x) _mm512_set1_pd(x)
#        define v_load(p) _mm512_loadu_pd(p)
#        define v_store(p, v) _mm512_storeu_pd(p, v)
#        define v_fma(a, b, c) _mm512_fmadd_pd(a, b, c)
#        define v_mul(a, b) _mm512_mul_pd(a, b)
#        define v_add(a, b) _mm512_add_pd(a, b)
#        define v_loadm(m, p) _mm512_maskz_loadu_pd(m, p)
#        define v_storem(p, m, v) _mm512_mask_storeu_pd(p, m, v)
#        define v_sum(v) vec_sum_pd512(v)
#        define v_swap(v) _mm512_permute_pd(v, 0x55)
#    elif VEC_BITS == 512
#        define V __m512
#        define v_zero() _mm512_setzero_ps()
#        define v_set1(x) _mm512_set1_ps(x)
#        define v_load(p) _mm512_loadu_ps(p)
#        define v_store(p, v) _mm512_storeu_ps(p, v)
#        define v_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#        define v_mul(a, b) _mm512_mul_ps(a, b)
#        define v_add(a, b) _mm512_add_ps(a, b)
#        define v_loadm(m, p) _mm512_maskz_loadu_ps(m, p)
#        define v_storem(p, m, v) _mm512_mask_storeu_ps(p, m, v)
#        define v_sum(v) vec_sum_ps512(v)
#        define v_swap(v) _mm512_permute_ps(v, 0xb1)
#    endif
#elif defined(__AVX2__)
#    if VEC_F64
#        define T double
#        define VL (VEC_BITS / 64)
#    else
#        define T float
#        define VL (VEC_BITS / 32)
#    endif
#    if VEC_BITS == 256
#        define MK __m256i
#    else
#        define MK __m128i
#    endif
#else /* portable: 16-byte vectors of the compiler */
#    define MK int
#    define v_mask(n) (n)
#    define v_mul(a, b) ((a) * (b))
#    define v_add(a, b) ((a) + (b))
#    define v_fma(a, b, c) ((a) * (b) + (c))
#    if VEC_F64
#        define T double
#        define VL 2
#        define V vec_f64x2
#        define v_zero() ((vec_f64x2){0, 0})
#        define v_set1(x) ((vec_f64x2){(x), (x)})
#        define v_load(p) ((vec_f64x2)(*(const vec_f64x2u *)(p)))
#        define v_store(p, v) (*(vec_f64x2u *)(p) = (v))
#        define v_loadm(m, p) vec_loadm_f64(m, p)
#        define v_storem(p, m, v) vec_storem_f64(p, m, v)
#        define v_sum(v) ((v)[0] + (v)[1])
#        define v_swap(v) __builtin_shufflevector(v, v, 1, 0)
#    else
#        define T float
#        define VL 4
#        define V vec_f32x4
#        define v_zero() ((vec_f32x4){0, 0, 0, 0})
#        define v_set1(x) ((vec_f32x4){(x), (x), (x), (x)})
#        define v_load(p) ((vec_f32x4)(*(const vec_f32x4u *)(p)))
#        define v_store(p, v) (*(vec_f32x4u *)(p) = (v))
#        define v_loadm(m, p) vec_loadm_f32(m, p)
#        define v_storem(p, m, v) vec_storem_f32(p, m, v)
#        define v_sum(v) (((v)[0] + (v)[2]) + ((v)[1] + (v)[3]))
#        define v_swap(v) __builtin_shufflevector(v, v, 1, 0, 3, 2)
#    endif
#endif

#if defined(__AVX2__) && VEC_BITS == 256 && VEC_F64
#    define V __m256d
#    define v_zero() _mm256_setzero_pd()
#    define v_set1(x) _mm256_set1_pd(x)
#    define v_load(p) _mm256_loadu_pd(p)
#    define v_store(p, v) _mm256_storeu_pd(p, v)
#    define v_fma(a, b, c) _mm256_fmadd_pd(a, b, c)
#    define v_mul(a, b) _mm256_mul_pd(a, b)
#    define v_add(a, b) _mm256_add_pd(a, b)
#    define v_sum(v) vec_sum_pd256(v)
#    define v_swap(v) _mm256_permute_pd(v, 0x5)
#elif defined(__AVX2__) && VEC_BITS == 256
#    define V __m256
#    define v_zero() _mm256_setzero_ps()
#    define v_set1(x) _mm256_set1_ps(x)
#    define v_load(p) _mm256_loadu_ps(p)
#    define v_store(p, v) _mm256_storeu_ps(p, v)
#    define v_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#    define v_mul(a, b) _mm256_mul_ps(a, b)
#    define v_add(a, b) _mm256_add_ps(a, b)
#    define v_sum(v) vec_sum_ps256(v)
#    define v_swap(v) _mm256_permute_ps(v, 0xb1)
#elif defined(__AVX2__) && VEC_BITS == 128 && VEC_F64
#    define V __m128d
#    define v_zero() _mm_setzero_pd()
#    define v_set1(x) _mm_set1_pd(x)
#    define v_load(p) _mm_loadu_pd(p)
#    define v_store(p, v) _mm_storeu_pd(p, v)
#    define v_fma(a, b, c) _mm_fmadd_pd(a, b, c)
#    define v_mul(a, b) _mm_mul_pd(a, b)
#    define v_add(a, b) _mm_add_pd(a, b)
#    define v_sum(v) vec_sum_pd128(v)
#    define v_swap(v) _mm_permute_pd(v, 0x1)
#elif defined(__AVX2__) && VEC_BITS == 128
#    define V __m128
#    define v_zero() _mm_setzero_ps()
#    define v_set1(x) _mm_set1_ps(x)
#    define v_load(p) _mm_loadu_ps(p)
#    define v_store(p, v) _mm_storeu_ps(p, v)
#    define v_fma(a, b, c) _mm_fmadd_ps(a, b, c)
#    define v_mul(a, b) _mm_mul_ps(a, b)
#    define v_add(a, b) _mm_add_ps(a, b)
#    define v_sum(v) vec_sum_ps128(v)
#    define v_swap(v) _mm_permute_ps(v, 0xb1)
#endif

#if defined(__AVX512VL__)
#    if VEC_BITS == 256 && VEC_F64
#        define v_loadm(m, p) _mm256_maskz_loadu_pd(m, p)
#        define v_storem(p, m, v) _mm256_mask_storeu_pd(p, m, v)
#    elif VEC_BITS == 256
#        define v_loadm(m, p) _mm256_maskz_loadu_ps(m, p)
#        define v_storem(p, m, v) _mm256_mask_storeu_ps(p, m, v)
#    elif VEC_BITS == 128 && VEC_F64
#        define v_loadm(m, p) _mm_maskz_loadu_pd(m, p)
#        define v_storem(p, m, v) _mm_mask_storeu_pd(p, m, v)
#    elif VEC_BITS == 128
#        define v_loadm(m, p) _mm_maskz_loadu_ps(m, p)
#        define v_storem(p, m, v) _mm_mask_storeu_ps(p, m, v)
#    endif
#elif defined(__AVX2__)
#    if VEC_BITS == 256 && VEC_F64
#        define v_mask(n) vec_mask64_256(n)
#        define v_loadm(m, p) _mm256_maskload_pd(p, m)
#        define v_storem(p, m, v) _mm256_maskstore_pd(p, m, v)
#    elif VEC_BITS == 256
#        define v_mask(n) vec_mask32_256(n)
#        define v_loadm(m, p) _mm256_maskload_ps(p, m)
#        define v_storem(p, m, v) _mm256_maskstore_ps(p, m, v)
#    elif VEC_BITS == 128 && VEC_F64
#        define v_mask(n) vec_mask64_128(n)
#        define v_loadm(m, p) _mm_maskload_pd(p, m)
#        define v_storem(p, m, v) _mm_maskstore_pd(p, m, v)
#    elif VEC_BITS == 128
#        define v_mask(n) vec_mask32_128(n)
#        define v_loadm(m, p) _mm_maskload_ps(p, m)
#        define v_storem(p, m, v) _mm_maskstore_ps(p, m, v)
#    endif
#endif
