/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_f64_portable.c - the f64 kernels in the compiler's own vectors of 16 bytes, for any processor. */
#define ST_ELEMENT_F64 1
#include "expr/cpu/vec_portable.h"
#include "expr/cpu/math_f64.inc"
#define ST_TABLE st_expr_f64_portable
#include "expr/cpu/kernels.inc"
