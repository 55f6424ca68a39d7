/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_avx512.c - the kernels of matvec_body.h for avx512. */
#include "pointwise/cpu/vec.h"
#include "pointwise/matvec.h"

#define ARCH avx512
#define GROUP 8
#define SWAP_F(a) _mm512_permute_ps(a, 0xb1)
#define SWAP_D(a) _mm512_permute_pd(a, 0x55)

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

#include "pointwise/cpu/matvec_types.h"
