/* SPDX-License-Identifier: Apache-2.0 */
/* vector_avx512.c - the vector kernels of vector_body.h for avx512. */
#include "pointwise/cpu/vec.h"
#include "pointwise/vector.h"

extern const st_vec_kernels st_vec_f32_avx512_kernels, st_vec_f64_avx512_kernels;

#define T float
#define V(op) vf##op
#define LANES VF_LANES
#define SWAP(a) _mm512_permute_ps(a, 0xb1)
#define VABS(a) _mm512_abs_ps(a)
#define NAME(what) st_vec_f32_avx512_##what
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
#define SWAP(a) _mm512_permute_pd(a, 0x55)
#define VABS(a) _mm512_abs_pd(a)
#define NAME(what) st_vec_f64_avx512_##what
#include "pointwise/cpu/vector_body.h"
