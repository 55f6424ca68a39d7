/* SPDX-License-Identifier: Apache-2.0 */
/* vector_portable.c - the vector kernels of vector_body.h for portable. */
#include "pointwise/cpu/vec.h"
#include "pointwise/vector.h"

extern const st_vec_kernels st_vec_f32_portable_kernels, st_vec_f64_portable_kernels;

static vf vf_swap(vf a) { return (vf){a[1], a[0], a[3], a[2]}; }
static vd vd_swap(vd a) { return (vd){a[1], a[0]}; }
static vf vf_abs(vf a) { return (vf)((vfi)a & (vfi){INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}); }
static vd vd_abs(vd a) { return (vd)((vdi)a & (vdi){INT64_MAX, INT64_MAX}); }

#define T float
#define V(op) vf##op
#define LANES VF_LANES
#define SWAP(a) vf_swap(a)
#define VABS(a) vf_abs(a)
#define NAME(what) st_vec_f32_portable_##what
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
#define SWAP(a) vd_swap(a)
#define VABS(a) vd_abs(a)
#define NAME(what) st_vec_f64_portable_##what
#include "pointwise/cpu/vector_body.h"
