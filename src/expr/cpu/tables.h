/* SPDX-License-Identifier: Apache-2.0 */
/* tables.h - the tables that the files of this folder define. */
#ifndef ST_EXPR_CPU_TABLES_H
#define ST_EXPR_CPU_TABLES_H
#include "expr/code.h"
extern const st_kernels st_expr_f32_portable, st_expr_f64_portable;
#if defined(__x86_64__)
extern const st_kernels st_expr_f32_avx2, st_expr_f64_avx2, st_expr_f32_avx512, st_expr_f64_avx512;
#endif
#endif
