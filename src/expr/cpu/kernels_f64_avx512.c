/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_f64_avx512.c - the f64 kernels for AVX-512 (F, BW, DQ, VL). */
#include "expr/cpu/vec_f64_avx512.h"
#include "expr/cpu/math_f64.inc"
#define ST_TABLE st_expr_f64_avx512
#include "expr/cpu/kernels.inc"
