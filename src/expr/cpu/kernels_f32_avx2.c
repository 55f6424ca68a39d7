/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_f32_avx2.c - the f32 kernels for AVX2, FMA and F16C. */
#include "expr/cpu/vec_f32_avx2.h"
#include "expr/cpu/math_f32.inc"
#define ST_TABLE st_expr_f32_avx2
#include "expr/cpu/kernels.inc"
