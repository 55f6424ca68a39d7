/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_c64_portable.c - packed product in c64, tiles of 2x4: gemm_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_PAIRS 1
#define VEC_BITS 128
#define MR 4
#define NV 2
#define KERNEL gemm_c64c64c64_2x4_portable
#include "tile/cpu/gemm_body.h"
