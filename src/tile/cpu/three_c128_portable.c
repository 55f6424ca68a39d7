/* SPDX-License-Identifier: Apache-2.0 */
/* three_c128_portable.c - the ends of products in c128 by three in f64: three_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 128
#define MR 4
#define NR 4
#define REAL gemm_f64f64f64_4x4_portable
#define KERNEL gemm_c128c128c128_3m4x4_portable
#include "tile/cpu/three_body.h"
