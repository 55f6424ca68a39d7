/* SPDX-License-Identifier: Apache-2.0 */
/* skinny_f32_portable.c - the skinny kernels of skinny_body.h for f32 and c64. */
#define VEC_F64 0
#define VEC_BITS 128
#define NN_MR 4
#define NN_NV 4
#define NN_ACC 11
#define NT_MR 2
#define NT_NR 4
#define KERNEL gemm_f32f32f32_skinny_portable
#define PAIRS_KERNEL gemm_c64c64c64_skinny_portable
#include "tile/cpu/skinny_body.h"
