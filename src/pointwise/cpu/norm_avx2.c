/* SPDX-License-Identifier: Apache-2.0 */
/* norm_avx2.c - the per-channel kernels of norm_body.h for avx2. */
#include "pointwise/norm.h"
#include "pointwise/cpu/vec.h"

#define T float
#define V(op) vf##op
#define LANES VF_LANES
#define NAME(way, what) st_norm_##way##_f32_avx2_##what
#include "pointwise/cpu/norm_body.h"
#undef T
#undef V
#undef LANES
#undef NAME

#define T double
#define V(op) vd##op
#define LANES VD_LANES
#define NAME(way, what) st_norm_##way##_f64_avx2_##what
#include "pointwise/cpu/norm_body.h"
