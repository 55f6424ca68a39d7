/* SPDX-License-Identifier: Apache-2.0 */
/* small_c64_portable.c - small products in c64: the compiler's 16-byte vectors. */
#define VEC_F64 0
#define VEC_PAIRS 1
#define VEC_BITS 128
#define SMALL(x) x##_w16
#define ROWS1 4
#define ROWS2 2
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
const st_small_kernel st_kernel_gemm_c64c64c64_small_portable = {
    1, {{128 / 64, 2, {4, 2}, full_w16, masked_w16}}};
