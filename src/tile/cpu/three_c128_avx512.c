/* SPDX-License-Identifier: Apache-2.0 */
/* three_c128_avx512.c - the ends of products in c128 by three in f64: three_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 512
#define MR 6
#define NR 32
#define REAL gemm_f64f64f64_6x32_avx512
#define KERNEL gemm_c128c128c128_3m6x32_avx512
#include "tile/cpu/three_body.h"
