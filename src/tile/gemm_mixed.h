/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_mixed.h - several products and what surrounds them in one pass over the packed kernels (CPU).
 *
 *   out = program(A0 B0, A1 B1, ...)    each Ai and Bi a matrix as it lies, rows of one picked by a list, or an expression over matrices
 *
 * A factor is packed once however many products have it. One that is an expression is evaluated into a few kilobytes while it is packed: it never
 * stands in memory as a whole, nor do the products, whose sums go through the program while they are in cache: tile by tile where the program maps
 * elements, by rows where it reduces over them. */
#ifndef ST_TILE_GEMM_MIXED_H
#define ST_TILE_GEMM_MIXED_H
#include "tile/gemm.h"
#include "tile/kernels.h"

enum { ST_MIX_PRODUCTS = 6 };

/* An operand: element (row, column) is at (row / gr) * sr + (column / gc) * sc; of a factor rows are its lines (of A the rows, of B the columns) and
 * columns steps of k. */
typedef struct st_mix_term {
    int data, type; /* data[data] */
    int64_t sr, sc, gr, gc;
    int64_t sb[ST_AXES];
    /* -1, or the operand whose elements say which row stands for row i, and how many rows there are to pick from */
    int picks;
    int picks_type;
    int64_t picks_step, picks_from;
} st_mix_term;

typedef struct st_mix_factor {
    int64_t k;
    int type;   /* of the values that are packed */
    st_expr *x; /* NULL: the one term as it is. Owned */
    bool by_k;  /* values are made along k */
    int out;    /* the variable of x that is the value; others have a term each */
    int terms;
    st_mix_term term[ST_EXPR_VARS];
} st_mix_factor;

typedef struct st_mix {
    int64_t m, n, items; /* items: the product of the batch dims */
    int batches;
    int64_t batch[ST_AXES];
    int na, nb, products;
    st_mix_factor *a[ST_MIX_PRODUCTS], *b[ST_MIX_PRODUCTS]; /* owned */
    int pa[ST_MIX_PRODUCTS], pb[ST_MIX_PRODUCTS];           /* factors of a product */
    st_expr *x;                                             /* the program. Owned */
    bool by_rows;                                           /* it reduces over the columns */
    int product[ST_EXPR_VARS];                              /* of each variable; -1: an operand */
    st_mix_term term[ST_EXPR_VARS];
    char name[ST_EXPR_VARS][ST_EXPR_NAME]; /* of operands, for messages */
    double flops;
} st_mix;
void st_mix_free(st_mix *m);

/* Prediction, workspace and summation order, or false with the rule that refuses in c->why. */
bool st_mix_consider(strata_handle *h, const st_mix *m, st_candidate *c);
/* A plan over `operands` addresses; takes m (which must be allocated by malloc) whether it succeeds or not. */
strata_status st_mix_build(strata_handle *h, const char *who, st_mix *m, int operands, strata_plan **plan);
/* What it does in words, for describe. */
void st_mix_words(const strata_plan *plan, char *text, size_t n);
#endif
