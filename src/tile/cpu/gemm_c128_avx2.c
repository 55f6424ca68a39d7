/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_c128_avx2.c - packed product in c128, tiles of 3x4: gemm_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_PAIRS 1
#define VEC_BITS 256
#define MR 6
#define NV 2
#define KERNEL gemm_c128c128c128_3x4_avx2
#include "tile/cpu/gemm_body.h"
