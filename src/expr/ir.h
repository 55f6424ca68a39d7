/* SPDX-License-Identifier: Apache-2.0 */
/* ir.h - what a parsed program is: values in order of evaluation (operands come before their users, equal values are one
 * value), and the stores. Immutable after parsing but for the cache of compiled forms. */
#ifndef ST_EXPR_IR_H
#define ST_EXPR_IR_H
#include "expr/expr.h"

enum {
    ST_OPF_C = 1,
    ST_OPF_R = 2,
    ST_OPF_B = 4,
    ST_OPF_X = 8,
    ST_EXPR_ARGS = 6,
    ST_EXPR_CACHE = 8,
    ST_EXPR_STORES = ST_EXPR_VARS
};

typedef enum st_op {
#define ST_OP(id, name, arity, cost, flags) ST_OP_##id,
#include "expr/ops.inc"
#undef ST_OP
    ST_OP_COUNT_
} st_op;

typedef struct st_op_info {
    const char *id, *name;
    int arity;
    float cost;
    int flags;
} st_op_info;
extern const st_op_info st_expr_ops[ST_OP_COUNT_];

typedef struct st_value {
    uint8_t op, phase;         /* phase: how many reductions lie below it */
    int16_t arg[ST_EXPR_ARGS]; /* values, -1 when absent */
    int16_t var;               /* VAR: which; INDEX: -1 the column, -2 the row */
    int32_t column;            /* 1-based position in the text */
    double imm;                /* CONST */
} st_value;

typedef struct st_store {
    int16_t var, value;
} st_store;

struct st_code;
struct st_expr {
    char *text;
    bool f64, matmul, positions; /* positions: index(-1) or index(-2) occurs */
    int nvars, nvalues, nstores, reductions;
    int level;   /* which kernels: ST_LEVEL_ */
    int rowbufs; /* values that rows of more than one block keep, at most */
    struct {
        size_t places, dynamic, slots, mvecs, unis, accs, code,
            rowbufs; /* offsets in the scratch; rowbufs is its size without them */
    } at;
    st_expr_var var[ST_EXPR_VARS];
    st_store store[ST_EXPR_STORES];
    _Atomic(struct st_code *) cache[ST_EXPR_CACHE];
    st_value value[ST_EXPR_VALUES];
};

/* build.c: adds a value, folding constants and finding equal ones; -1 when the program is full. */
int st_ir_const(st_expr *x, double v);
int st_ir_add(st_expr *x, st_op op, int a, int b, int c, int column);
int st_ir_leaf(st_expr *x, st_op op, int var, int column);
/* fills what a finished program knows about itself (scratch) */
void st_expr_measure(st_expr *x);
/* for tests: other kernels than this processor's best; before the first run */
void st_expr_set_level(st_expr *x, int level);
/* one operation on numbers, in the program's precision; used for folding */
double st_ir_eval(st_op op, const double *a, bool f64);
#endif
