/* SPDX-License-Identifier: Apache-2.0 */
/* skinny_bf16_avx512.c - the skinny kernels of skinny_body.h for bf16, by those of f32. */
#include <strata/base.h>
#define HALF STRATA_BF16
#define VEC_F64 0
#define VEC_BITS 512
#define NN_MR 8
#define NN_NV 4
#define NN_ACC 24
#define NT_MR 4
#define NT_NR 6
#define KERNEL gemm_bf16_skinny_avx512
#include "tile/cpu/skinny_body.h"
