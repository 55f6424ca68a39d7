/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - prints a program as CUDA C: statements for the body of a device function, for engines to put into a generated header.
 *
 * Values are `float` or `double` (as the program was parsed), called v<number>; functions are those of include/strata/dev/math.cuh (st_exp_f32, st_gelu_f64, ...),
 * whose errors docs/expressions.md gives. Every sum and product is an operation of its own there (a product that only one sum uses becomes a fused
 * multiply-add), so that a value has the same bits wherever it is computed again. */
#ifndef ST_EXPR_CUDA_H
#define ST_EXPR_CUDA_H
#include "expr/expr.h"

/* Text that grows; .failed when memory ran out. The owner frees s. */
typedef struct st_text {
    char *s;
    size_t n, cap;
    bool failed;
} st_text;
void st_text_put(st_text *t, const char *fmt, ...) ST_PRINTF(2, 3);

/* How the engine reads and writes the program's variables, as C text: load prints an expression that yields variable v's value in the program's
 * precision; store prints a whole statement that stores `value` (a C identifier) to v. index(-1) and index(-2) print as `col` and `row`. */
typedef struct st_cuda_names {
    void (*load)(void *user, st_text *t, int var);
    void (*store)(void *user, st_text *t, int var, const char *value);
    const char *row, *col; /* C expressions (long long) */
    void *user;
} st_cuda_names;
/* A program without reductions: "const float v0 = ...;" for all loads first (an output may be an input's memory), then everything else, then the stores. */
void st_expr_cuda_map(const st_expr *x, const st_cuda_names *names, st_text *t);

/* ---- programs with reductions ------------------------------------------------------------------------------------------
 * A line is what a reduction runs over. Values either differ along it (elements) or are one number a line. Pass p = 0 .. passes - 1 goes over the elements
 * and feeds the reductions of level p + 1; after it the line's values of level p + 1 are known; stores come when all are. A program without
 * reductions has no pass. */
typedef struct st_cuda_program {
    const st_expr *x;
    int passes, widest; /* widest: most totals of a pass */
    bool live[ST_EXPR_VALUES], element[ST_EXPR_VALUES];
    uint8_t uses[ST_EXPR_VALUES],
        inverse[ST_EXPR_VALUES];   /* inverse: elements are divided by this number of the line */
    bool keep[ST_EXPR_VALUES];     /* is kept from the first pass that needs it on */
    uint8_t first[ST_EXPR_VALUES]; /* that pass */
    int16_t sums[ST_EXPR_VALUES];  /* of a reduction: the value whose accumulator it reads */
} st_cuda_program;
/* element[i]: variable i differs along a line; row, col: index(-2) and index(-1) do. */
void st_expr_cuda_analyse(const st_expr *x, const bool *element, bool row, bool col, st_cuda_program *p);
/* For an engine that holds a line in registers: the dearest value that several passes need stays in an array k<number>, in which element j of slot k is at k * W + j. Returns
 * how many are kept (0 or 1). */
int st_expr_cuda_keep(st_cuda_program *p);
/* Is variable v read by elements of pass p (p = passes: for the stores)? */
bool st_expr_cuda_reads(const st_cuda_program *p, int pass, int var);
bool st_expr_cuda_line_reads(const st_cuda_program *p, int var); /* by values of the line */
bool st_expr_cuda_stores_element(const st_cuda_program *p, int var);
/* "float v3, v7;": members that hold the line's values */
void st_expr_cuda_members(const st_cuda_program *p, st_text *t);
/* struct acc<p> (of a few elements) and tot<p> (of any number, sums of type A) with clear, take and merge, for every pass:
 * pointwise_reduce.cuh has their parts */
void st_expr_cuda_types(const st_cuda_program *p, st_text *t);
/* the line's values of a level, "v7 = ...;"; reductions are read from `t` (a tot) and the length `n` */
void st_expr_cuda_line(const st_cuda_program *p, int level, const st_cuda_names *names, st_text *t);
/* one element's part in pass p: declarations, then "a.a7.add(v5);"; the position in the line is `position` (for argmax) */
void st_expr_cuda_add(const st_cuda_program *p, int pass, const st_cuda_names *names, st_text *t);
/* one element's stores, or the line's (to be run once a line, after every pass). names->store is asked for every store and prints nothing for an output that does
 * not belong there: one that runs along the line is an element's, whatever is stored to it. */
void st_expr_cuda_store(const st_cuda_program *p, bool element, const st_cuda_names *names, st_text *t);
#endif
