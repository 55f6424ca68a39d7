/* SPDX-License-Identifier: Apache-2.0 */
/* small_c64_avx512.c - small products in c64. */
#define VEC_F64 0
#define NUMBER 64
#define KERNEL st_kernel_gemm_c64c64c64_small_avx512
#include "tile/cpu/small_pairs_avx512.h"
