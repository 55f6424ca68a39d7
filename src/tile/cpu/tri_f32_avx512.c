/* SPDX-License-Identifier: Apache-2.0 */
/* tri_f32_avx512.c - triangular blocks in f32, tiles of 6x64: tri_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_BITS 512
#define MR 6
#define NV 4
#define KERNEL tri_f32f32f32_6x64_avx512
#include "tile/cpu/tri_body.h"
