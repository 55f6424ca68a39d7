/* SPDX-License-Identifier: Apache-2.0 */
/* small_f32_portable.c - small products in f32 with the compiler's 16-byte vectors. */
#define VEC_F64 0
#define VEC_BITS 128
#define SMALL(x) x##_w16
#define ROWS1 8
#define ROWS2 4
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
const st_small_kernel st_kernel_gemm_f32f32f32_small_portable = {
    1, {{128 / 32, 2, {8, 4}, full_w16, masked_w16}}};
