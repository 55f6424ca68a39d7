/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - prints a program as CUDA C: statements for the body of a device function, for engines to put into a generated header.
 *
 * Values are `float` or `double` (as the program was parsed); functions are those of include/strata/dev/math.cuh (st_exp, st_gelu, ...), whose errors
 * docs/expressions.md gives. Where the CPU and the GPU differ, both keep the same documented bound. */
#ifndef ST_EXPR_CUDA_H
#define ST_EXPR_CUDA_H
#include "expr/expr.h"

/* Text that grows; .failed when memory ran out. */
typedef struct st_text {
    char *s;
    size_t n, cap;
    bool failed;
} st_text;
void st_text_put(st_text *t, const char *fmt, ...) ST_PRINTF(2, 3);

/* How the engine reads and writes the program's variables, as C text: load(v) prints an expression that yields variable v's value in the program's
 * precision; store(v) prints a whole statement that stores `value` (a C identifier) to v. index(-1) and index(-2) print as `col` and `row`. */
typedef struct st_cuda_names {
    void (*load)(void *user, st_text *t, int var);
    void (*store)(void *user, st_text *t, int var, const char *value);
    const char *row, *col; /* C expressions (long long) */
    void *user;
} st_cuda_names;
/* A program without reductions: declarations "const float v0 = ...;" in order, each store where the program has it. */
void st_expr_cuda_map(const st_expr *x, const st_cuda_names *names, st_text *t);
#endif
