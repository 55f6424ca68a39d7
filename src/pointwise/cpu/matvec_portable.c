/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_portable.c - the kernels of matvec_body.h for portable. */
#include "pointwise/cpu/vec.h"
#include "pointwise/matvec.h"

#if defined(__clang__)
#    pragma clang diagnostic ignored "-Wpass-failed" /* what it does not unroll is right too */
#    define UNROLL _Pragma("clang loop unroll(full)")
#else
#    define UNROLL _Pragma("GCC unroll 16")
#endif
#define GROUP 4
extern const st_matvec_kernels st_matvec_f32_portable_kernels, st_matvec_f64_portable_kernels,
    st_matvec_c64_portable_kernels, st_matvec_c128_portable_kernels;

ST_INLINE vf vf_swap(vf a) { return (vf){a[1], a[0], a[3], a[2]}; }
ST_INLINE vd vd_swap(vd a) { return (vd){a[1], a[0]}; }
ST_INLINE void vf_fold(vf a, float out[2]) { out[0] = a[0] + a[2], out[1] = a[1] + a[3]; }
ST_INLINE void vd_fold(vd a, double out[2]) { out[0] = a[0], out[1] = a[1]; }

#define T float
#define V(op) vf##op
#define LANES VF_LANES
#define SWAP(a) vf_swap(a)
#define PAIR 0
#define NAME(what) st_matvec_f32_portable_##what
#include "pointwise/cpu/matvec_body.h"
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) st_matvec_c64_portable_##what
#include "pointwise/cpu/matvec_body.h"
#undef T
#undef V
#undef LANES
#undef SWAP
#undef PAIR
#undef NAME

#define T double
#define V(op) vd##op
#define LANES VD_LANES
#define SWAP(a) vd_swap(a)
#define PAIR 0
#define NAME(what) st_matvec_f64_portable_##what
#include "pointwise/cpu/matvec_body.h"
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) st_matvec_c128_portable_##what
#include "pointwise/cpu/matvec_body.h"
