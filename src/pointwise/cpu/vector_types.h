/* SPDX-License-Identifier: Apache-2.0 */
/* vector_types.h - vector_body.h for the four types; the including file defines ARCH (avx2). */
#include "pointwise/vector.h"

#define PASTE2(type, arch, what) st_vector_##type##_##arch##_##what
#define PASTE(type, arch, what) PASTE2(type, arch, what)
extern const st_vec_kernels PASTE(f32, ARCH, kernels), PASTE(f64, ARCH, kernels), PASTE(c64, ARCH, kernels),
    PASTE(c128, ARCH, kernels);

#define TYPES_BODY "pointwise/cpu/vector_body.h"
#include "pointwise/cpu/vec_types.h"
