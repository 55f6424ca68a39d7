/* SPDX-License-Identifier: Apache-2.0 */
/* lower.h - a program under compilation: its values as nodes that can still be fused, with their class and phase. Between lower.c
 * and compile.c only. */
#ifndef ST_EXPR_LOWER_H
#define ST_EXPR_LOWER_H
#include "expr/code.h"

enum { NOWHERE = 0xffff };

typedef struct node {
    uint8_t op, cls, phase;
    bool live, need, mean;
    int16_t arg[ST_EXPR_ARGS];
    int16_t uses;
    uint16_t at;            /* place, NOWHERE before it is computed */
    bool keep;              /* is kept in a row buffer */
    uint16_t acc;           /* of a reduction */
    uint16_t keep_at, home; /* home: where a value that is no block stands in every phase */
} node;

typedef struct build {
    const st_expr *x;
    const st_key *key;
    st_code *c;
    const st_kernels *k;
    node n[ST_EXPR_VALUES];
    int nuni, last_phase;
    uint16_t arg_at[ST_EXPR_VARS][4];
    struct {
        uint16_t from, to;
        uint8_t shape;
    } expanded[2 * ST_EXPR_VALUES]; /* numbers that were made into rows */
    int nexpanded;
    int elt_type;
} build;

/* what st_expr_pattern packs */
enum { PAT_M = 1 << 8, PAT_N = 1 << 9, PAT_UNIT_N = 1 << 10, PAT_UNIT_M = 1 << 11 };
ST_INLINE int pat_type(unsigned p) { return (int8_t)(p & 0xff); }
ST_INLINE int pat_cls(unsigned p) { return (p & PAT_M ? ST_CLS_M : 0) | (p & PAT_N ? ST_CLS_N : 0); }
ST_INLINE bool is_red(int op) { return (st_expr_ops[op].flags & ST_OPF_R) != 0; }
/* an operand of a node of class cls that is one number a row (M shape: one number) */
ST_INLINE bool is_scalar_for(const build *b, int cls, int v)
{
    return cls & ST_CLS_N ? !(b->n[v].cls & ST_CLS_N) : cls == ST_CLS_M && b->n[v].cls == ST_CLS_U;
}

/* bit j: operand j is such a number */
unsigned st_expr_variant_bits(const build *b, const node *n, int cls);
/* classes, phases and numbers of users of all values */
void st_expr_classify(build *b);
/* pairs into one operation where a kernel for the two exists */
void st_expr_fuse(build *b);
#endif
