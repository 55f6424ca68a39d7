/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - an expression bound to shapes: what shape.c finds out and program.c runs. Nothing here depends on addresses. */
#ifndef ST_POINTWISE_PROGRAM_H
#define ST_POINTWISE_PROGRAM_H
#include "pointwise/engine.h"

/* The key of a program's plan is a list of words: family, threads (on a GPU: what divides the operands' addresses, up to 16), axes, operands, then per operand
 * type and rank, its name in NAME_WORDS words, dims, strides. */
enum {
    ST_KEY_HEAD = 4,
    ST_KEY_NAME = ST_EXPR_NAME / 8,
    ST_KEY_OPERAND = 1 + ST_KEY_NAME + 2 * STRATA_MAX_RANK
};
enum { ST_KEY_WORDS = ST_KEY_HEAD + ST_EXPR_VARS * ST_KEY_OPERAND };

typedef enum st_pw_mode { ST_PW_MAP, ST_PW_ROWS, ST_PW_COLS, ST_PW_ALL, ST_PW_MODES } st_pw_mode;

/* A loop: its length and the step of every variable, in elements. `dim` is the dim of the iteration space, -1 for joined ones. */
typedef struct st_pw_loop {
    int64_t len;
    int dim;
    int64_t step[ST_EXPR_VARS];
} st_pw_loop;

typedef struct st_pw_shape {
    st_expr *x;
    int nvars, noperands, rank;
    const st_expr_var *var;
    int operand[ST_EXPR_VARS]; /* of each variable; -1: a position */
    int type[ST_EXPR_VARS];
    int position[ST_EXPR_VARS]; /* for a position: its dim */
    bool f64, reduces, positions;
    st_pw_mode mode;
    st_pw_loop row, col, outer[STRATA_MAX_RANK];
    int nouter;
    bool pack; /* three or more reduced dims that do not join: a line is packed into a buffer first */
    st_pw_loop packed[STRATA_MAX_RANK]; /* then: the reduced dims; col is their product, dense */
    int npacked;
    int64_t elements, lines;
    /* per operand: span in bytes around its address, whether it is written, which operands have the same layout */
    int64_t lo[ST_EXPR_VARS], hi[ST_EXPR_VARS];
    uint32_t outputs, same[ST_EXPR_VARS];
    char name[ST_EXPR_VARS][ST_EXPR_NAME];
} st_pw_shape;

/* Parses and checks; on success s->x is the caller's to free. */
strata_status st_pw_shape_make(st_err *e, const char *who, const int64_t *key, const char *text,
                               st_pw_shape *s);

/* Every operand of a call has a name, once, and is a plain view of a type that programs take; *n is their number. */
strata_status st_pw_check_operands(strata_handle *h, const char *who, const strata_operand *o, int *n);
/* The key's second word for operands at these addresses. */
int64_t st_pw_program_second(const strata_handle *h, const strata_operand *operands, int n);
/* Fills the key for n operands, `second` being its second word; returns its length in bytes. */
size_t st_pw_program_key(int64_t *key, const strata_operand *operands, int n, uint32_t axes, int64_t second);

/* What every device's plans of a program say: title, operands, work; and the bytes that they touch. */
void st_pw_program_describe(strata_plan *p, const st_pw_shape *s);
strata_status st_pw_program_extents(strata_plan *p, const st_pw_shape *s);

/* cuda/program_cuda.c */
void st_pw_program_cuda_init(void);
int st_pw_program_cuda_kernels(int i, strata_kernel_info *info);
#endif
