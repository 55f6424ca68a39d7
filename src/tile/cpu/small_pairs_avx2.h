/* SPDX-License-Identifier: Apache-2.0 */
/* small_pairs_avx2.h - small complex products: vectors of 32 and 16 bytes. The including file defines VEC_F64, NUMBER (bits of a complex number) and KERNEL. */
#define VEC_PAIRS 1
#define VEC_BITS 256
#define SMALL(x) x##_w32
#define ROWS1 6
#define ROWS2 2
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
#define VEC_BITS 128
#define SMALL(x) x##_w16
#define ROWS1 6
#define ROWS2 0
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
const st_small_kernel KERNEL = {
    2, {{256 / NUMBER, 2, {6, 2}, full_w32, masked_w32}, {128 / NUMBER, 1, {6}, full_w16, masked_w16}}};
