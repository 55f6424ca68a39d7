/* SPDX-License-Identifier: Apache-2.0 */
/* fused.h - programs with products, `silu(X @ W0) * (X @ W1)`, from text to plans.
 *
 * fused_text.c takes the text apart: factors that are expressions themselves ("X @ (W * s[n])") become loaders with programs of their own, and every
 * different pair of factors a product. fused_plan.c makes the steps: loaders and products into the workspace, then the program; or, where the
 * program only maps elements, the last product with the program as its epilogue. fused.c is the public face. */
#ifndef ST_BLAS_FUSED_H
#define ST_BLAS_FUSED_H
#include "plan/plan.h"
#include "pointwise/program.h"
#include <strata/blas.h>

enum { ST_FUSED_PRODUCTS = 6, ST_FUSED_LOADERS = 6 };

/* How a factor's expression indexes an operand. Rows and columns are the factor's own: right of '@' k and n, left of it m and k. */
typedef struct st_fused_place {
    int64_t row_group, col_group; /* one element for so many rows or columns, "[k/128, n]"; 0: one for each */
    int along;                    /* of rank 1: 1 runs along the rows, 2 along the columns; 0: a matrix */
    int picks; /* 1 + the operand whose elements say which row stands for row m, "[idx[m], k]"; 0: none */
} st_fused_place;

typedef struct st_fused_loader {
    char *text;                   /* "_f0 = W * s", indices left out */
    bool right;                   /* of '@' */
    bool picks;                   /* rows are picked by a list */
    uint32_t used;                /* bit o: operand o occurs */
    uint32_t lists;               /* bit o: as a list that picks rows */
    int64_t row_group, col_group; /* of those operands that have one */
    st_fused_place place[ST_EXPR_VARS];
} st_fused_loader;

typedef struct st_fused_text {
    char *program; /* with _f0.. in place of loaders */
    int loaders, products;
    st_fused_loader loader[ST_FUSED_LOADERS];
    int x[ST_FUSED_PRODUCTS], w[ST_FUSED_PRODUCTS]; /* operands; n + i: loader i */
    uint32_t outside; /* bit o: operand o stands outside products (and loaders) */
} st_fused_text;

/* Errors are those of the text's form; names that nobody knows are left to the parser. */
strata_status st_fused_split(st_err *e, const char *who, const char *program, const strata_operand *o, int n,
                             st_fused_text *t);
void st_fused_text_free(st_fused_text *t);
/* The program with every product i as the name _p<i>, product `main` as acc and the operand `out` as out (main -1: neither); free(). NULL: no memory. */
char *st_fused_rewrite(const st_fused_text *t, const strata_operand *o, int n, int main, const char *out);

/* What a plan of this family knows for the checks that depend on addresses. */
typedef struct st_fused_use {
    uint32_t outputs; /* bits of operands */
    int x, w, out;    /* of the product that `out` receives as an epilogue; -1: of none */
} st_fused_use;
st_fused_use st_fused_plan_use(const strata_plan *p);
void st_fused_init(void);
/* Appends the steps' own descriptions to the plan's. */
void st_fused_describe(strata_plan *p);
#endif
