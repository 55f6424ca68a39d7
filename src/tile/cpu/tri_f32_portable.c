/* SPDX-License-Identifier: Apache-2.0 */
/* tri_f32_portable.c - triangular blocks in f32, tiles of 4x8: tri_body.h with this file's instruction set. */
#define VEC_F64 0
#define VEC_BITS 128
#define MR 4
#define NV 2
#define KERNEL tri_f32f32f32_4x8_portable
#include "tile/cpu/tri_body.h"
