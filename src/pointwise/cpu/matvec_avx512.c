/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_avx512.c - the kernels of matvec_body.h for avx512. */
#include "pointwise/cpu/vec.h"
#include "pointwise/matvec.h"

#if defined(__clang__)
#    pragma clang diagnostic ignored "-Wpass-failed" /* what it does not unroll is right too */
#    define UNROLL _Pragma("clang loop unroll(full)")
#else
#    define UNROLL _Pragma("GCC unroll 16")
#endif
#define GROUP 8
extern const st_matvec_kernels st_matvec_f32_avx512_kernels, st_matvec_f64_avx512_kernels,
    st_matvec_c64_avx512_kernels, st_matvec_c128_avx512_kernels;

#define T float
#define V(op) vf##op
#define LANES VF_LANES
#define SWAP(a) _mm512_permute_ps(a, 0xb1)
#define PAIR 0
#define NAME(what) st_matvec_f32_avx512_##what
#include "pointwise/cpu/matvec_body.h"
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) st_matvec_c64_avx512_##what
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
#define SWAP(a) _mm512_permute_pd(a, 0x55)
#define PAIR 0
#define NAME(what) st_matvec_f64_avx512_##what
#include "pointwise/cpu/matvec_body.h"
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) st_matvec_c128_avx512_##what
#include "pointwise/cpu/matvec_body.h"
