/* SPDX-License-Identifier: Apache-2.0 */
/* tri_c128_avx512.c - triangular blocks in c128, tiles of 3x16: tri_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_PAIRS 1
#define VEC_BITS 512
#define MR 6
#define NV 4
#define KERNEL tri_c128c128c128_3x16_avx512
#include "tile/cpu/tri_body.h"
