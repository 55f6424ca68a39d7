/* SPDX-License-Identifier: Apache-2.0 */
/* fused_problem.h - a program with products taken apart: its text, its operands, and the shapes of what lies between its steps. */
#ifndef ST_BLAS_FUSED_PROBLEM_H
#define ST_BLAS_FUSED_PROBLEM_H
#include "blas/fused.h"
#include "blas/product.h"

enum { ST_FUSED_TEMPS = ST_FUSED_PRODUCTS + ST_FUSED_LOADERS, ST_FUSED_ALL = ST_EXPR_VARS + ST_FUSED_TEMPS };

/* A problem taken apart. */
typedef struct st_fused {
    strata_handle *h;
    const char *who;
    st_err *e;
    int64_t second;
    uint32_t axes;
    int n;
    strata_operand op[ST_FUSED_ALL + 1]; /* operands, products (_p0..), loaders (_f0..) */
    char name[ST_FUSED_ALL][ST_EXPR_NAME];
    st_expr *x;
    st_fused_text t;
    uint32_t outputs, factors;
    bool f64;
    int rank; /* of the program's space, and its first dim */
    int64_t first;
    int temps; /* products and loaders */
} st_fused;

ST_INLINE int st_fused_product_at(const st_fused *f, int i) { return f->n + i; }
ST_INLINE int st_fused_loader_at(const st_fused *f, int i) { return f->n + f->t.products + i; }
/* operand number of a factor as st_fused_text counts */
ST_INLINE int st_fused_factor_at(const st_fused *f, int k)
{
    return k < f->n ? k : st_fused_loader_at(f, k - f->n);
}

/* An operand (or the value) of factor i as a matrix of the factor's own rows and columns, each cut in two where the factor has groups along it, so that
 * its text without indices is a program over them. Rows that a list picks are those of the list's length. */
strata_tensor st_fused_loader_view(const st_fused *f, int i, int o);
/* The whole problem for one pass over the packed kernels; NULL with the rule that refuses. */
struct st_mix *st_fused_mix(const st_fused *f, char *why, size_t n);
/* From the problem of a plan; st_fused_free when it succeeded. */
strata_status st_fused_take(st_fused *f, strata_handle *h, const st_problem *p);
void st_fused_free(st_fused *f);
/* Operands with their extents, work and title of a plan for f. */
void st_fused_operands(const st_fused *f, strata_plan *p);
extern const st_provider st_fused_reference; /* fused_reference.c */
#endif
