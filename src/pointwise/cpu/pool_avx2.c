/* SPDX-License-Identifier: Apache-2.0 */
/* pool_avx2.c - the window kernels of pool_body.h for avx2. */
#include "pointwise/pool.h"
#include "pointwise/cpu/vec.h"
#include <math.h>
#include <strata/dnn.h>

#define T float
#define V(op) vf##op
#define LANES VF_LANES
#define NAME(way, what) st_pool_##way##_f32_avx2_##what
#include "pointwise/cpu/pool_body.h"
#undef T
#undef V
#undef LANES
#undef NAME

#define T double
#define V(op) vd##op
#define LANES VD_LANES
#define NAME(way, what) st_pool_##way##_f64_avx2_##what
#include "pointwise/cpu/pool_body.h"
