/* SPDX-License-Identifier: Apache-2.0 */
/* vec_types.h - one body of kernels for the four types. The including file defines TYPES_BODY (the header), ARCH (avx2) and PASTE(type, arch, what), the
 * name of a function. */
#include "pointwise/cpu/vec_pairs.h"

#define T float
#define IS_F32 1
#define V(op) vf##op
#define LANES VF_LANES
#define SWAP SWAP_F
#define VABS VABS_F
#define FMA FMA_F
#define PAIR 0
#define NAME(what) PASTE(f32, ARCH, what)
#include TYPES_BODY
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) PASTE(c64, ARCH, what)
#include TYPES_BODY
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
#include TYPES_BODY
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) PASTE(c128, ARCH, what)
#include TYPES_BODY
