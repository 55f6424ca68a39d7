/* SPDX-License-Identifier: Apache-2.0 */
/* vec_pairs.h - what level 1 and 2 need of vec.h's vectors beyond it: neighbours exchanged, absolute values, and lanes folded.
 *
 *     SWAP_F, SWAP_D    lanes 0 and 1, 2 and 3, ... exchanged
 *     VABS_F, VABS_D    absolute values
 *     FMA_F, FMA_D      of single numbers, rounded as _fma rounds
 *     _fold             the even and the odd lanes summed apart, by halves; _total: both
 *     _max              the larger lanes; where there is a NaN, any of the two
 *     _nan              lanes with a NaN in a or b, as a mask; or_, any_: of masks
 *     _most             the largest lane (none is NaN)
 *     vf_widen          the lanes as f64, in two vectors
 *     _first            the first lane of a that is NaN or equals m's, or the number of lanes */
#ifndef ST_POINTWISE_CPU_VEC_PAIRS_H
#define ST_POINTWISE_CPU_VEC_PAIRS_H
#include "pointwise/cpu/vec.h"
#include <math.h>

#if defined(__AVX512F__)
#    define SWAP_F(a) _mm512_permute_ps(a, 0xb1)
#    define SWAP_D(a) _mm512_permute_pd(a, 0x55)
#    define VABS_F(a) _mm512_abs_ps(a)
#    define VABS_D(a) _mm512_abs_pd(a)
ST_INLINE void vf_fold(vf a, float out[2])
{
    const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    _mm_storel_pi((void *)out, _mm_add_ps(q, _mm_movehl_ps(q, q)));
}
ST_INLINE void vd_fold(vd a, double out[2])
{
    const __m256d h = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    _mm_storeu_pd(out, _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1)));
}
ST_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
ST_INLINE vd vd_max(vd a, vd b) { return _mm512_max_pd(a, b); }
ST_INLINE vfm vf_nan(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
ST_INLINE vdm vd_nan(vd a, vd b) { return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q); }
ST_INLINE vfm vf_or(vfm a, vfm b) { return (vfm)(a | b); }
ST_INLINE vdm vd_or(vdm a, vdm b) { return (vdm)(a | b); }
ST_INLINE bool vf_any(vfm a) { return a != 0; }
ST_INLINE bool vd_any(vdm a) { return a != 0; }
ST_INLINE float vf_most(vf a) { return _mm512_reduce_max_ps(a); }
ST_INLINE double vd_most(vd a) { return _mm512_reduce_max_pd(a); }
ST_INLINE void vf_widen(vf a, vd *lo, vd *hi)
{
    *lo = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
    *hi = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));
}
ST_INLINE int vf_first(vf a, vf m)
{
    return __builtin_ctz(
        (unsigned)(_mm512_cmp_ps_mask(a, m, _CMP_EQ_OQ) | _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q)) | 1u << 16);
}
ST_INLINE int vd_first(vd a, vd m)
{
    return __builtin_ctz(
        (unsigned)(_mm512_cmp_pd_mask(a, m, _CMP_EQ_OQ) | _mm512_cmp_pd_mask(a, a, _CMP_UNORD_Q)) | 1u << 8);
}
#elif defined(__AVX2__)
#    define SWAP_F(a) _mm256_permute_ps(a, 0xb1)
#    define SWAP_D(a) _mm256_permute_pd(a, 0x5)
#    define VABS_F(a) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#    define VABS_D(a) _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
ST_INLINE void vf_fold(vf a, float out[2])
{
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    _mm_storel_pi((void *)out, _mm_add_ps(q, _mm_movehl_ps(q, q)));
}
ST_INLINE void vd_fold(vd a, double out[2])
{
    _mm_storeu_pd(out, _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1)));
}
ST_INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
ST_INLINE vd vd_max(vd a, vd b) { return _mm256_max_pd(a, b); }
ST_INLINE vfm vf_nan(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
ST_INLINE vdm vd_nan(vd a, vd b) { return _mm256_cmp_pd(a, b, _CMP_UNORD_Q); }
ST_INLINE vfm vf_or(vfm a, vfm b) { return _mm256_or_ps(a, b); }
ST_INLINE vdm vd_or(vdm a, vdm b) { return _mm256_or_pd(a, b); }
ST_INLINE bool vf_any(vfm a) { return _mm256_movemask_ps(a) != 0; }
ST_INLINE bool vd_any(vdm a) { return _mm256_movemask_pd(a) != 0; }
ST_INLINE void vf_widen(vf a, vd *lo, vd *hi)
{
    *lo = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    *hi = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
}
ST_INLINE float vf_most(vf a)
{
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
ST_INLINE double vd_most(vd a)
{
    const __m128d q = _mm_max_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_max_sd(q, _mm_unpackhi_pd(q, q)));
}
ST_INLINE int vf_first(vf a, vf m)
{
    return __builtin_ctz(
        (unsigned)_mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps(a, m, _CMP_EQ_OQ), vf_nan(a, a))) | 1u << 8);
}
ST_INLINE int vd_first(vd a, vd m)
{
    return __builtin_ctz(
        (unsigned)_mm256_movemask_pd(_mm256_or_pd(_mm256_cmp_pd(a, m, _CMP_EQ_OQ), vd_nan(a, a))) | 1u << 4);
}
#else
#    define SWAP_F(a) vf_swap(a)
#    define SWAP_D(a) vd_swap(a)
#    define VABS_F(a) vf_abs(a)
#    define VABS_D(a) vd_abs(a)
ST_INLINE vf vf_swap(vf a) { return (vf){a[1], a[0], a[3], a[2]}; }
ST_INLINE vd vd_swap(vd a) { return (vd){a[1], a[0]}; }
ST_INLINE vf vf_abs(vf a) { return (vf)((vfi)a & (vfi){INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}); }
ST_INLINE vd vd_abs(vd a) { return (vd)((vdi)a & (vdi){INT64_MAX, INT64_MAX}); }
ST_INLINE void vf_fold(vf a, float out[2]) { out[0] = a[0] + a[2], out[1] = a[1] + a[3]; }
ST_INLINE void vd_fold(vd a, double out[2]) { out[0] = a[0], out[1] = a[1]; }
ST_INLINE void vf_widen(vf a, vd *lo, vd *hi)
{
    *lo = (vd){(double)a[0], (double)a[1]};
    *hi = (vd){(double)a[2], (double)a[3]};
}
#    define VEC_PLACES(P, T, N)                                                      \
        ST_INLINE P P##_max(P a, P b) { return P##_sel((P##m)(a > b), a, b); }       \
        ST_INLINE P##m P##_nan(P a, P b) { return (P##m)(a != a) | (P##m)(b != b); } \
        ST_INLINE P##m P##_or(P##m a, P##m b) { return a | b; }                      \
        ST_INLINE bool P##_any(P##m a)                                               \
        {                                                                            \
            for (int i = 0; i < N; i++)                                              \
                if (a[i]) return true;                                               \
            return false;                                                            \
        }                                                                            \
        ST_INLINE T P##_most(P a)                                                    \
        {                                                                            \
            T m = a[0];                                                              \
            for (int i = 1; i < N; i++)                                              \
                if (!(a[i] <= m) && m == m) m = a[i];                                \
            return m;                                                                \
        }                                                                            \
        ST_INLINE int P##_first(P a, P m)                                            \
        {                                                                            \
            for (int i = 0; i < N; i++)                                              \
                if (a[i] == m[i] || a[i] != a[i]) return i;                          \
            return N;                                                                \
        }
VEC_PLACES(vf, float, 4)
VEC_PLACES(vd, double, 2)
#endif

#if defined(__AVX2__)
#    define FMA_F(a, b, c) __builtin_fmaf(a, b, c)
#    define FMA_D(a, b, c) __builtin_fma(a, b, c)
#else
#    define FMA_F(a, b, c) ((a) * (b) + (c))
#    define FMA_D(a, b, c) ((a) * (b) + (c))
#endif

ST_INLINE float vf_total(vf a)
{
    float s[2];
    vf_fold(a, s);
    return s[0] + s[1];
}
ST_INLINE double vd_total(vd a)
{
    double s[2];
    vd_fold(a, s);
    return s[0] + s[1];
}
#endif
