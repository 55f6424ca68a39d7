/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_c64_avx2.c - packed product in c64, tiles of 3x8: gemm_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_PAIRS 1
#define VEC_BITS 256
#define MR 6
#define NV 2
#define KERNEL gemm_c64c64c64_3x8_avx2
#include "tile/cpu/gemm_body.h"
