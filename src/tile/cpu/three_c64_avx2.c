/* SPDX-License-Identifier: Apache-2.0 */
/* three_c64_avx2.c - the ends of products in c64 by three in f32: three_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_BITS 256
#define MR 6
#define NR 16
#define REAL gemm_f32f32f32_6x16_avx2
#define KERNEL gemm_c64c64c64_3m6x16_avx2
#include "tile/cpu/three_body.h"
