/* SPDX-License-Identifier: Apache-2.0 */
/* vec.h - one vector of f32 (vf_) or f64 (vd_) lanes in the widest registers that this file is compiled for. Kernels are
 * written once over these names (through V(op), see pool_body.h) and compiled per instruction set. `n` in loadn/storen is how many
 * leading lanes are touched (others load as 0); masks are whatever compares fastest. */
#ifndef ST_POINTWISE_CPU_VEC_H
#define ST_POINTWISE_CPU_VEC_H
#include "base/base.h"
#include <string.h>

#if defined(__AVX512F__)
#    include <immintrin.h>
enum { VF_LANES = 16, VD_LANES = 8 };
typedef __m512 vf;
typedef __m512i vfi;
typedef __mmask16 vfm;
typedef __m512d vd;
typedef __m512i vdi; /* i64 lanes */
typedef __mmask8 vdm;
ST_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
ST_INLINE vf vf_loadn(const float *p, int n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
ST_INLINE void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
ST_INLINE void vf_storen(float *p, vf a, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), a); }
ST_INLINE void vf_stream(float *p, vf a) { _mm512_stream_ps(p, a); }
ST_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
ST_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
ST_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
ST_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
ST_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
ST_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
/* x takes over from best: it is larger, or the first NaN */
ST_INLINE vfm vf_beats(vf x, vf best)
{
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(best, best, _CMP_ORD_Q), x, best, _CMP_NLE_UQ);
}
ST_INLINE vf vf_sel(vfm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
ST_INLINE vf vf_keep(vfm m, vf a) { return _mm512_maskz_mov_ps(m, a); }
ST_INLINE vfi vf_iset1(int64_t x) { return _mm512_set1_epi32((int)x); }
ST_INLINE vfi vf_isel(vfm m, vfi a, vfi b) { return _mm512_mask_blend_epi32(m, b, a); }
ST_INLINE vfi vf_iadd(vfi a, vfi b) { return _mm512_add_epi32(a, b); }
ST_INLINE vfm vf_ieq(vfi a, vfi b) { return _mm512_cmpeq_epi32_mask(a, b); }
ST_INLINE vfi vf_iload(const int32_t *p) { return _mm512_loadu_si512(p); }
ST_INLINE vfi vf_iloadn(const int32_t *p, int n)
{
    return _mm512_maskz_loadu_epi32((__mmask16)((1u << n) - 1), p);
}
ST_INLINE void vf_istore(int32_t *p, vfi a) { _mm512_storeu_si512(p, a); }
ST_INLINE void vf_istoren(int32_t *p, vfi a, int n)
{
    _mm512_mask_storeu_epi32(p, (__mmask16)((1u << n) - 1), a);
}
ST_INLINE vd vd_load(const double *p) { return _mm512_loadu_pd(p); }
ST_INLINE vd vd_loadn(const double *p, int n) { return _mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p); }
ST_INLINE void vd_store(double *p, vd a) { _mm512_storeu_pd(p, a); }
ST_INLINE void vd_storen(double *p, vd a, int n) { _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), a); }
ST_INLINE void vd_stream(double *p, vd a) { _mm512_stream_pd(p, a); }
ST_INLINE vd vd_set1(double x) { return _mm512_set1_pd(x); }
ST_INLINE vd vd_add(vd a, vd b) { return _mm512_add_pd(a, b); }
ST_INLINE vd vd_sub(vd a, vd b) { return _mm512_sub_pd(a, b); }
ST_INLINE vd vd_mul(vd a, vd b) { return _mm512_mul_pd(a, b); }
ST_INLINE vd vd_div(vd a, vd b) { return _mm512_div_pd(a, b); }
ST_INLINE vd vd_fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }
ST_INLINE vdm vd_beats(vd x, vd best)
{
    return _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(best, best, _CMP_ORD_Q), x, best, _CMP_NLE_UQ);
}
ST_INLINE vd vd_sel(vdm m, vd a, vd b) { return _mm512_mask_blend_pd(m, b, a); }
ST_INLINE vd vd_keep(vdm m, vd a) { return _mm512_maskz_mov_pd(m, a); }
ST_INLINE vdi vd_iset1(int64_t x) { return _mm512_set1_epi64(x); }
ST_INLINE vdi vd_isel(vdm m, vdi a, vdi b) { return _mm512_mask_blend_epi64(m, b, a); }
ST_INLINE vdi vd_iadd(vdi a, vdi b) { return _mm512_add_epi64(a, b); }
ST_INLINE vdm vd_ieq(vdi a, vdi b) { return _mm512_cmpeq_epi64_mask(a, b); }
ST_INLINE vdi vd_iload(const int32_t *p)
{
    return _mm512_cvtepi32_epi64(_mm256_loadu_si256((const void *)p));
}
ST_INLINE vdi vd_iloadn(const int32_t *p, int n)
{
    return _mm512_cvtepi32_epi64(_mm256_maskz_loadu_epi32((__mmask8)((1u << n) - 1), p));
}
ST_INLINE void vd_istore(int32_t *p, vdi a) { _mm256_storeu_si256((void *)p, _mm512_cvtepi64_epi32(a)); }
ST_INLINE void vd_istoren(int32_t *p, vdi a, int n)
{
    _mm256_mask_storeu_epi32(p, (__mmask8)((1u << n) - 1), _mm512_cvtepi64_epi32(a));
}

#elif defined(__AVX2__)
#    include <immintrin.h>
enum { VF_LANES = 8, VD_LANES = 4 };
typedef __m256 vf;
typedef __m256i vfi;
typedef __m256 vfm;
typedef __m256d vd;
typedef __m256i vdi;
typedef __m256d vdm;
static const int32_t vec_edge[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
static const int64_t vec_edge64[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
ST_INLINE __m256i vec_first8(int n) { return _mm256_loadu_si256((const void *)(vec_edge + 8 - n)); }
ST_INLINE __m128i vec_first4(int n) { return _mm_loadu_si128((const void *)(vec_edge + 8 - n)); }
ST_INLINE __m256i vec_first4d(int n) { return _mm256_loadu_si256((const void *)(vec_edge64 + 4 - n)); }
ST_INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
ST_INLINE vf vf_loadn(const float *p, int n) { return _mm256_maskload_ps(p, vec_first8(n)); }
ST_INLINE void vf_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
ST_INLINE void vf_storen(float *p, vf a, int n) { _mm256_maskstore_ps(p, vec_first8(n), a); }
ST_INLINE void vf_stream(float *p, vf a) { _mm256_stream_ps(p, a); }
ST_INLINE vf vf_set1(float x) { return _mm256_set1_ps(x); }
ST_INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
ST_INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
ST_INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
ST_INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
ST_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
ST_INLINE vfm vf_beats(vf x, vf best)
{
    return _mm256_and_ps(_mm256_cmp_ps(best, best, _CMP_ORD_Q), _mm256_cmp_ps(x, best, _CMP_NLE_UQ));
}
ST_INLINE vf vf_sel(vfm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
ST_INLINE vf vf_keep(vfm m, vf a) { return _mm256_and_ps(m, a); }
ST_INLINE vfi vf_iset1(int64_t x) { return _mm256_set1_epi32((int)x); }
ST_INLINE vfi vf_isel(vfm m, vfi a, vfi b) { return _mm256_blendv_epi8(b, a, _mm256_castps_si256(m)); }
ST_INLINE vfi vf_iadd(vfi a, vfi b) { return _mm256_add_epi32(a, b); }
ST_INLINE vfm vf_ieq(vfi a, vfi b) { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)); }
ST_INLINE vfi vf_iload(const int32_t *p) { return _mm256_loadu_si256((const void *)p); }
ST_INLINE vfi vf_iloadn(const int32_t *p, int n) { return _mm256_maskload_epi32(p, vec_first8(n)); }
ST_INLINE void vf_istore(int32_t *p, vfi a) { _mm256_storeu_si256((void *)p, a); }
ST_INLINE void vf_istoren(int32_t *p, vfi a, int n) { _mm256_maskstore_epi32(p, vec_first8(n), a); }
ST_INLINE vd vd_load(const double *p) { return _mm256_loadu_pd(p); }
ST_INLINE vd vd_loadn(const double *p, int n) { return _mm256_maskload_pd(p, vec_first4d(n)); }
ST_INLINE void vd_store(double *p, vd a) { _mm256_storeu_pd(p, a); }
ST_INLINE void vd_storen(double *p, vd a, int n) { _mm256_maskstore_pd(p, vec_first4d(n), a); }
ST_INLINE void vd_stream(double *p, vd a) { _mm256_stream_pd(p, a); }
ST_INLINE vd vd_set1(double x) { return _mm256_set1_pd(x); }
ST_INLINE vd vd_add(vd a, vd b) { return _mm256_add_pd(a, b); }
ST_INLINE vd vd_sub(vd a, vd b) { return _mm256_sub_pd(a, b); }
ST_INLINE vd vd_mul(vd a, vd b) { return _mm256_mul_pd(a, b); }
ST_INLINE vd vd_div(vd a, vd b) { return _mm256_div_pd(a, b); }
ST_INLINE vd vd_fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }
ST_INLINE vdm vd_beats(vd x, vd best)
{
    return _mm256_and_pd(_mm256_cmp_pd(best, best, _CMP_ORD_Q), _mm256_cmp_pd(x, best, _CMP_NLE_UQ));
}
ST_INLINE vd vd_sel(vdm m, vd a, vd b) { return _mm256_blendv_pd(b, a, m); }
ST_INLINE vd vd_keep(vdm m, vd a) { return _mm256_and_pd(m, a); }
ST_INLINE vdi vd_iset1(int64_t x) { return _mm256_set1_epi64x(x); }
ST_INLINE vdi vd_isel(vdm m, vdi a, vdi b) { return _mm256_blendv_epi8(b, a, _mm256_castpd_si256(m)); }
ST_INLINE vdi vd_iadd(vdi a, vdi b) { return _mm256_add_epi64(a, b); }
ST_INLINE vdm vd_ieq(vdi a, vdi b) { return _mm256_castsi256_pd(_mm256_cmpeq_epi64(a, b)); }
ST_INLINE vdi vd_iload(const int32_t *p) { return _mm256_cvtepi32_epi64(_mm_loadu_si128((const void *)p)); }
ST_INLINE vdi vd_iloadn(const int32_t *p, int n)
{
    return _mm256_cvtepi32_epi64(_mm_maskload_epi32(p, vec_first4(n)));
}
ST_INLINE __m128i vec_low32(vdi a)
{
    return _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(a, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
}
ST_INLINE void vd_istore(int32_t *p, vdi a) { _mm_storeu_si128((void *)p, vec_low32(a)); }
ST_INLINE void vd_istoren(int32_t *p, vdi a, int n) { _mm_maskstore_epi32(p, vec_first4(n), vec_low32(a)); }

#else /* the compiler's own vectors: SSE2 on x86-64, NEON on Arm */
enum { VF_LANES = 4, VD_LANES = 2 };
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vfi __attribute__((vector_size(16)));
typedef vfi vfm;
typedef double vd __attribute__((vector_size(16)));
typedef int64_t vdi __attribute__((vector_size(16)));
typedef vdi vdm;
#    define VEC_PORTABLE(P, T, N)                                                                   \
        ST_INLINE P P##_load(const T *p)                                                            \
        {                                                                                           \
            P a;                                                                                    \
            memcpy(&a, p, sizeof a);                                                                \
            return a;                                                                               \
        }                                                                                           \
        ST_INLINE P P##_loadn(const T *p, int n)                                                    \
        {                                                                                           \
            P a = {0};                                                                              \
            for (int i = 0; i < n && i < N; i++) a[i] = p[i];                                       \
            return a;                                                                               \
        }                                                                                           \
        ST_INLINE void P##_store(T *p, P a) { memcpy(p, &a, sizeof a); }                            \
        ST_INLINE void P##_storen(T *p, P a, int n)                                                 \
        {                                                                                           \
            for (int i = 0; i < n && i < N; i++) p[i] = a[i];                                       \
        }                                                                                           \
        ST_INLINE P P##_set1(T x)                                                                   \
        {                                                                                           \
            P a = {0};                                                                              \
            for (int i = 0; i < N; i++) a[i] = x;                                                   \
            return a;                                                                               \
        }                                                                                           \
        ST_INLINE P P##_add(P a, P b) { return a + b; }                                             \
        ST_INLINE P P##_sub(P a, P b) { return a - b; }                                             \
        ST_INLINE P P##_mul(P a, P b) { return a * b; }                                             \
        ST_INLINE P P##_div(P a, P b) { return a / b; }                                             \
        ST_INLINE P P##_fma(P a, P b, P c) { return a * b + c; }                                    \
        ST_INLINE P##m P##_beats(P x, P best) { return (P##m)(best == best) & ~(P##m)(x <= best); } \
        ST_INLINE P P##_sel(P##m m, P a, P b) { return (P)((m & (P##m)a) | (~m & (P##m)b)); }       \
        ST_INLINE P P##_keep(P##m m, P a) { return (P)(m & (P##m)a); }                              \
        ST_INLINE P##i P##_iset1(int64_t x)                                                         \
        {                                                                                           \
            P##i a = {0};                                                                           \
            for (int i = 0; i < N; i++) a[i] = (__typeof__(a[0]))x;                                 \
            return a;                                                                               \
        }                                                                                           \
        ST_INLINE P##i P##_isel(P##m m, P##i a, P##i b) { return (m & a) | (~m & b); }              \
        ST_INLINE P##i P##_iadd(P##i a, P##i b) { return a + b; }                                   \
        ST_INLINE P##m P##_ieq(P##i a, P##i b) { return (P##m)(a == b); }                           \
        ST_INLINE P##i P##_iloadn(const int32_t *p, int n)                                          \
        {                                                                                           \
            P##i a = {0};                                                                           \
            for (int i = 0; i < n && i < N; i++) a[i] = p[i];                                       \
            return a;                                                                               \
        }                                                                                           \
        ST_INLINE P##i P##_iload(const int32_t *p) { return P##_iloadn(p, N); }                     \
        ST_INLINE void P##_istoren(int32_t *p, P##i a, int n)                                       \
        {                                                                                           \
            for (int i = 0; i < n && i < N; i++) p[i] = (int32_t)a[i];                              \
        }                                                                                           \
        ST_INLINE void P##_istore(int32_t *p, P##i a) { P##_istoren(p, a, N); }
VEC_PORTABLE(vf, float, 4)
VEC_PORTABLE(vd, double, 2)
#endif

/* stream: like store, past the caches, to a multiple of the vector's size; vec_streamed() orders what was streamed before what
 * follows. Where there is no such instruction it is a store. */
#if defined(__AVX2__)
ST_INLINE void vec_streamed(void) { _mm_sfence(); }
#else
ST_INLINE void vf_stream(float *p, vf a) { vf_store(p, a); }
ST_INLINE void vd_stream(double *p, vd a) { vd_store(p, a); }
ST_INLINE void vec_streamed(void) {}
#endif

/* Lane j of step i: x[i * 2 + j]: even and odd elements apart, and together again. Full vectors only. */
ST_INLINE void vf_deal2(const float *p, vf *even, vf *odd)
{
#if defined(__AVX512F__)
    const __m512i e = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    vf a = vf_load(p), b = vf_load(p + 16);
    *even = _mm512_permutex2var_ps(a, e, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(e, _mm512_set1_epi32(1)), b);
#elif defined(__AVX2__)
    vf a = vf_load(p), b = vf_load(p + 8);
    vf e = _mm256_shuffle_ps(a, b, 0x88), o = _mm256_shuffle_ps(a, b, 0xdd);
    *even = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(e), 0xd8));
    *odd = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(o), 0xd8));
#else
    *even = (vf){p[0], p[2], p[4], p[6]};
    *odd = (vf){p[1], p[3], p[5], p[7]};
#endif
}
ST_INLINE void vf_weave2(float *p, vf even, vf odd)
{
#if defined(__AVX512F__)
    const __m512i lo = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    vf_store(p, _mm512_permutex2var_ps(even, lo, odd));
    vf_store(p + 16, _mm512_permutex2var_ps(even, _mm512_add_epi32(lo, _mm512_set1_epi32(8)), odd));
#elif defined(__AVX2__)
    vf lo = _mm256_unpacklo_ps(even, odd), hi = _mm256_unpackhi_ps(even, odd);
    vf_store(p, _mm256_permute2f128_ps(lo, hi, 0x20));
    vf_store(p + 8, _mm256_permute2f128_ps(lo, hi, 0x31));
#else
    for (int i = 0; i < VF_LANES; i++) p[2 * i] = even[i], p[2 * i + 1] = odd[i];
#endif
}
ST_INLINE void vd_deal2(const double *p, vd *even, vd *odd)
{
    double e[VD_LANES], o[VD_LANES];
    for (int i = 0; i < VD_LANES; i++) e[i] = p[2 * i], o[i] = p[2 * i + 1];
    *even = vd_load(e);
    *odd = vd_load(o);
}
ST_INLINE void vd_weave2(double *p, vd even, vd odd)
{
    double e[VD_LANES], o[VD_LANES];
    vd_store(e, even);
    vd_store(o, odd);
    for (int i = 0; i < VD_LANES; i++) p[2 * i] = e[i], p[2 * i + 1] = o[i];
}
#endif
