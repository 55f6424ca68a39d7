/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_avx2.c - the kernels of matvec_body.h for avx2. */
#include "pointwise/cpu/vec.h"
#include "pointwise/matvec.h"

#define ARCH avx2
#define GROUP 4
#define SWAP_F(a) _mm256_permute_ps(a, 0xb1)
#define SWAP_D(a) _mm256_permute_pd(a, 0x5)

ST_INLINE void vf_fold(vf a, float out[2])
{
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    _mm_storel_pi((void *)out, _mm_add_ps(q, _mm_movehl_ps(q, q)));
}
ST_INLINE void vd_fold(vd a, double out[2])
{
    _mm_storeu_pd(out, _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1)));
}

#include "pointwise/cpu/matvec_types.h"
