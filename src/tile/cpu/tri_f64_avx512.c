/* SPDX-License-Identifier: Apache-2.0 */
/* tri_f64_avx512.c - triangular blocks in f64, tiles of 6x32: tri_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 512
#define MR 6
#define NV 4
#define KERNEL tri_f64f64f64_6x32_avx512
#include "tile/cpu/tri_body.h"
