/* SPDX-License-Identifier: Apache-2.0 */
/* vector_types.h - vector_body.h for the four types; the including file defines ARCH (avx2). */
#include "pointwise/cpu/vec_pairs.h"
#include "pointwise/vector.h"

#define PASTE2(type, arch, what) st_vector_##type##_##arch##_##what
#define PASTE(type, arch, what) PASTE2(type, arch, what)
extern const st_vec_kernels PASTE(f32, ARCH, kernels), PASTE(f64, ARCH, kernels), PASTE(c64, ARCH, kernels),
    PASTE(c128, ARCH, kernels);

#define T float
#define IS_F32 1
#define V(op) vf##op
#define LANES VF_LANES
#define SWAP SWAP_F
#define VABS VABS_F
#define FMA FMA_F
#define PAIR 0
#define NAME(what) PASTE(f32, ARCH, what)
#include "pointwise/cpu/vector_body.h"
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) PASTE(c64, ARCH, what)
#include "pointwise/cpu/vector_body.h"
#undef T
#undef IS_F32
#undef V
#undef LANES
#undef SWAP
#undef VABS
#undef FMA
#undef PAIR
#undef NAME

#define T double
#define IS_F32 0
#define V(op) vd##op
#define LANES VD_LANES
#define SWAP SWAP_D
#define VABS VABS_D
#define FMA FMA_D
#define PAIR 0
#define NAME(what) PASTE(f64, ARCH, what)
#include "pointwise/cpu/vector_body.h"
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) PASTE(c128, ARCH, what)
#include "pointwise/cpu/vector_body.h"
