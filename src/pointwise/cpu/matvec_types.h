/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_types.h - matvec_body.h for the four types; the including file defines ARCH (avx2) and GROUP (lines at once). */
#include "pointwise/cpu/vec_pairs.h"
#include "pointwise/matvec.h"

#if defined(__clang__)
#    pragma clang diagnostic ignored "-Wpass-failed" /* what it does not unroll is right too */
#    define UNROLL _Pragma("clang loop unroll(full)")
#else
#    define UNROLL _Pragma("GCC unroll 16")
#endif
#define PASTE2(type, arch, what) st_matvec_##type##_##arch##_##what
#define PASTE(type, arch, what) PASTE2(type, arch, what)
extern const st_matvec_kernels PASTE(f32, ARCH, kernels), PASTE(f64, ARCH, kernels),
    PASTE(c64, ARCH, kernels), PASTE(c128, ARCH, kernels);

#define T float
#define V(op) vf##op
#define LANES VF_LANES
#define SWAP SWAP_F
#define FMA FMA_F
#define PAIR 0
#define NAME(what) PASTE(f32, ARCH, what)
#include "pointwise/cpu/matvec_body.h"
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) PASTE(c64, ARCH, what)
#include "pointwise/cpu/matvec_body.h"
#undef T
#undef V
#undef LANES
#undef SWAP
#undef FMA
#undef PAIR
#undef NAME

#define T double
#define V(op) vd##op
#define LANES VD_LANES
#define SWAP SWAP_D
#define FMA FMA_D
#define PAIR 0
#define NAME(what) PASTE(f64, ARCH, what)
#include "pointwise/cpu/matvec_body.h"
#undef PAIR
#undef NAME
#define PAIR 1
#define NAME(what) PASTE(c128, ARCH, what)
#include "pointwise/cpu/matvec_body.h"
