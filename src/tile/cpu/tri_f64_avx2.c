/* SPDX-License-Identifier: Apache-2.0 */
/* tri_f64_avx2.c - triangular blocks in f64, tiles of 6x8: tri_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 256
#define MR 6
#define NV 2
#define KERNEL tri_f64f64f64_6x8_avx2
#include "tile/cpu/tri_body.h"
