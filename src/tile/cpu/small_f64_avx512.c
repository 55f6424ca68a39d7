/* SPDX-License-Identifier: Apache-2.0 */
/* small_f64_avx512.c - small products in f64: vectors of 64, 32 and 16 bytes with mask registers. */
#define VEC_F64 1
#define VEC_BITS 512
#define SMALL(x) x##_w64
#define ROWS1 16
#define ROWS2 12
#define ROWS3 8
#define ROWS4 6
#include "tile/cpu/small_body.h"
#define VEC_BITS 256
#define SMALL(x) x##_w32
#define ROWS1 16
#define ROWS2 0
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
#define VEC_BITS 128
#define SMALL(x) x##_w16
#define ROWS1 16
#define ROWS2 0
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
const st_small_kernel st_kernel_gemm_f64f64f64_small_avx512 = {
    3,
    {{512 / 64, 4, {16, 12, 8, 6}, full_w64, masked_w64},
     {256 / 64, 1, {16}, full_w32, masked_w32},
     {128 / 64, 1, {16}, full_w16, masked_w16}}};
