/* SPDX-License-Identifier: Apache-2.0 */
/* small_c64_portable.c - small products in c64. */
#define VEC_F64 0
#define NUMBER 64
#define KERNEL st_kernel_gemm_c64c64c64_small_portable
#include "tile/cpu/small_pairs_portable.h"
