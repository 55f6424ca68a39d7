/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_f32_avx512.c - the f32 kernels for AVX-512 (F, BW, DQ, VL). */
#include "expr/cpu/vec_f32_avx512.h"
#include "expr/cpu/math_f32.inc"
#define ST_TABLE st_expr_f32_avx512
#include "expr/cpu/kernels.inc"
