/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_c128_avx512.c - packed product in c128, tiles of 3x16: gemm_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_PAIRS 1
#define VEC_BITS 512
#define MR 6
#define NV 4
#define KERNEL gemm_c128c128c128_3x16_avx512
#include "tile/cpu/gemm_body.h"
