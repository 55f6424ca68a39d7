/* SPDX-License-Identifier: Apache-2.0 */
/* tri_f64_portable.c - triangular blocks in f64, tiles of 4x4: tri_body.h with this file's instruction set. */
#define VEC_F64 1
#define VEC_BITS 128
#define MR 4
#define NV 2
#define KERNEL tri_f64f64f64_4x4_portable
#include "tile/cpu/tri_body.h"
