/* SPDX-License-Identifier: Apache-2.0 */
/* three_c64_portable.c - the ends of products in c64 by three in f32: three_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_BITS 128
#define MR 4
#define NR 8
#define REAL gemm_f32f32f32_4x8_portable
#define KERNEL gemm_c64c64c64_3m4x8_portable
#include "tile/cpu/three_body.h"
