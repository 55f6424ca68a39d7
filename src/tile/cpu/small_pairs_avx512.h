/* SPDX-License-Identifier: Apache-2.0 */
/* small_pairs_avx512.h - small complex products: vectors of 64, 32 and 16 bytes with mask registers. The including file defines VEC_F64, NUMBER (bits of a complex number) and KERNEL. */
#define VEC_PAIRS 1
#define VEC_BITS 512
#define SMALL(x) x##_w64
#define ROWS1 8
#define ROWS2 6
#define ROWS3 4
#define ROWS4 3
#include "tile/cpu/small_body.h"
#define VEC_BITS 256
#define SMALL(x) x##_w32
#define ROWS1 8
#define ROWS2 0
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
#define VEC_BITS 128
#define SMALL(x) x##_w16
#define ROWS1 8
#define ROWS2 0
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
const st_small_kernel KERNEL = {3,
                                {{512 / NUMBER, 4, {8, 6, 4, 3}, full_w64, masked_w64},
                                 {256 / NUMBER, 1, {8}, full_w32, masked_w32},
                                 {128 / NUMBER, 1, {8}, full_w16, masked_w16}}};
