/* SPDX-License-Identifier: Apache-2.0 */
/* three_c128_avx2.c - the ends of products in c128 by three in f64: three_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 256
#define MR 6
#define NR 8
#define REAL gemm_f64f64f64_6x8_avx2
#define KERNEL gemm_c128c128c128_3m6x8_avx2
#include "tile/cpu/three_body.h"
