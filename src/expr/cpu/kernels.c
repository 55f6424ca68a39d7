/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - the kernel tables, one a level and element type. */
#include "expr/cpu/tables.h"

const st_kernels *st_expr_kernels(int level, bool f64)
{
#if defined(__x86_64__)
    if (level >= ST_LEVEL_AVX512) return f64 ? &st_expr_f64_avx512 : &st_expr_f32_avx512;
    if (level == ST_LEVEL_AVX2) return f64 ? &st_expr_f64_avx2 : &st_expr_f32_avx2;
#endif
    (void)level;
    return f64 ? &st_expr_f64_portable : &st_expr_f32_portable;
}
