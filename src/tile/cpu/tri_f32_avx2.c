/* SPDX-License-Identifier: Apache-2.0 */
/* tri_f32_avx2.c - triangular blocks in f32, tiles of 6x16: tri_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_BITS 256
#define MR 6
#define NV 2
#define KERNEL tri_f32f32f32_6x16_avx2
#include "tile/cpu/tri_body.h"
