/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_f32_portable.c - the f32 kernels in the compiler's own vectors of 16 bytes, for any processor. */
#include "expr/cpu/vec_portable.h"
#include "expr/cpu/math_f32.inc"
#define ST_TABLE st_expr_f32_portable
#include "expr/cpu/kernels.inc"
