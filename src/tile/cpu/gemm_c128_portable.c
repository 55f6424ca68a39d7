/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_c128_portable.c - packed product in c128, tiles of 2x2: gemm_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_PAIRS 1
#define VEC_BITS 128
#define MR 4
#define NV 2
#define KERNEL gemm_c128c128c128_2x2_portable
#include "tile/cpu/gemm_body.h"
