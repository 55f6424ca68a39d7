/* SPDX-License-Identifier: Apache-2.0 */
/* skinny_f64_avx512.c - the skinny kernels of skinny_body.h for f64 and c128. */
#define VEC_F64 1
#define VEC_BITS 512
#define NN_MR 8
#define NN_NV 4
#define NN_ACC 24
#define NT_MR 4
#define NT_NR 6
#define KERNEL gemm_f64f64f64_skinny_avx512
#define PAIRS_KERNEL gemm_c128c128c128_skinny_avx512
#include "tile/cpu/skinny_body.h"
