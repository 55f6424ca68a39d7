/* SPDX-License-Identifier: Apache-2.0 */
/* small_pairs_portable.h - small complex products: the compiler's 16-byte vectors. The including file defines VEC_F64, NUMBER (bits of a complex number) and KERNEL. */
#define VEC_PAIRS 1
#define VEC_BITS 128
#define SMALL(x) x##_w16
#define ROWS1 4
#define ROWS2 2
#define ROWS3 0
#define ROWS4 0
#include "tile/cpu/small_body.h"
const st_small_kernel KERNEL = {1, {{128 / NUMBER, 2, {4, 2}, full_w16, masked_w16}}};
