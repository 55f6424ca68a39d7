/* SPDX-License-Identifier: Apache-2.0 */
/* small_c128_avx2.c - small products in c128. */
#define VEC_F64 1
#define NUMBER 128
#define KERNEL st_kernel_gemm_c128c128c128_small_avx2
#include "tile/cpu/small_pairs_avx2.h"
