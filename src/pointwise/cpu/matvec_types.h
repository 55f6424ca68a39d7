/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_types.h - matvec_body.h for the four types; the including file defines ARCH (avx2) and GROUP (lines at once). */
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

#define TYPES_BODY "pointwise/cpu/matvec_body.h"
#include "pointwise/cpu/vec_types.h"
