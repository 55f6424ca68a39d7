/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_avx2.c - the kernels of matvec_body.h for avx2. */
#include "pointwise/cpu/vec.h"
#include "pointwise/matvec.h"

#if defined(__clang__)
#    pragma clang diagnostic ignored "-Wpass-failed" /* what it does not unroll is right too */
#    define UNROLL _Pragma("clang loop unroll(full)")
#else
#    define UNROLL _Pragma("GCC unroll 16")
#endif
#define GROUP 4
extern const st_matvec_kernels st_matvec_f32_avx2_kernels, st_matvec_f64_avx2_kernels,
    st_matvec_c64_avx2_kernels, st_matvec_c128_avx2_kernels;

ST_INLINE void vf_fold(vf a, float out[2])
{
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    _mm_storel_pi((void *)out, _mm_add_ps(q, _mm_movehl_ps(q, q)));
}
ST_INLINE void vd_fold(vd a, double out[2])
{
    _mm_storeu_pd(out, _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1)));
}

#define T float
#define V(op) vf##op
#define LANES VF_LANES
#define SWAP(a) _mm256_permute_ps(a, 0xb1)
#define PAIR 0
#define NAME(what) st_matvec_f32_avx2_##what
#include "pointwise/cpu/matvec_body.h"
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) st_matvec_c64_avx2_##what
#include "pointwise/cpu/matvec_body.h"
#undef T
#undef V
#undef LANES
#undef SWAP
#undef PAIR
#undef NAME

#define T double
#define V(op) vd##op
#define LANES VD_LANES
#define SWAP(a) _mm256_permute_pd(a, 0x5)
#define PAIR 0
#define NAME(what) st_matvec_f64_avx2_##what
#include "pointwise/cpu/matvec_body.h"
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) st_matvec_c128_avx2_##what
#include "pointwise/cpu/matvec_body.h"
