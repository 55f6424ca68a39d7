/* SPDX-License-Identifier: Apache-2.0 */
/* vector_avx2.c - the vector kernels of vector_body.h for avx2. */
#include "pointwise/cpu/vec.h"
#include "pointwise/vector.h"

extern const st_vec_kernels st_vec_f32_avx2_kernels, st_vec_f64_avx2_kernels;

#define T float
#define V(op) vf##op
#define LANES VF_LANES
#define SWAP(a) _mm256_permute_ps(a, 0xb1)
#define VABS(a) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#define NAME(what) st_vec_f32_avx2_##what
#include "pointwise/cpu/vector_body.h"
#undef T
#undef V
#undef LANES
#undef SWAP
#undef VABS
#undef NAME

#define T double
#define V(op) vd##op
#define LANES VD_LANES
#define SWAP(a) _mm256_permute_pd(a, 0x5)
#define VABS(a) _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
#define NAME(what) st_vec_f64_avx2_##what
#include "pointwise/cpu/vector_body.h"
