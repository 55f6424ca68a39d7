/* SPDX-License-Identifier: Apache-2.0 */
/* small_c64_avx2.c - small products in c64: vectors of 32 and 16 bytes. */
#define VEC_F64 0
#define VEC_PAIRS 1
#define VEC_BITS 256
#define SMALL(x) x##_w32
#define ROWS1 6
#define ROWS2 2
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
#define VEC_BITS 128
#define SMALL(x) x##_w16
#define ROWS1 6
#define ROWS2 0
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
const st_small_kernel st_kernel_gemm_c64c64c64_small_avx2 = {
    2, {{256 / 64, 2, {6, 2}, full_w32, masked_w32}, {128 / 64, 1, {6}, full_w16, masked_w16}}};
