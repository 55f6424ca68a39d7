/* SPDX-License-Identifier: Apache-2.0 */
/* norm_avx512.c - the per-channel kernels of norm_body.h for avx512. */
#include "pointwise/norm.h"
#include "pointwise/cpu/vec.h"

#define T float
#define V(op) vf##op
#define LANES VF_LANES
#define NAME(way, what) st_norm_##way##_f32_avx512_##what
#include "pointwise/cpu/norm_body.h"
#undef T
#undef V
#undef LANES
#undef NAME

#define T double
#define V(op) vd##op
#define LANES VD_LANES
#define NAME(way, what) st_norm_##way##_f64_avx512_##what
#include "pointwise/cpu/norm_body.h"
