/* SPDX-License-Identifier: Apache-2.0 */
/* triangular.h - products with and solutions of triangular matrices in place: B := alpha A B and B := alpha A^-1 B.
 *
 * A is split in halves until its diagonal blocks are small; what lies beside them are products of the contraction engine. */
#ifndef ST_TILE_TRIANGULAR_H
#define ST_TILE_TRIANGULAR_H
#include "tile/tile.h"

typedef struct st_triangle {
    int64_t type; /* of A and B: f32, f64, c64 or c128 */
    bool solve;   /* B := alpha A^-1 B, else alpha A B */
    st_rule rule; /* of A: half, unit, conj; no mirror, no offset */
    int64_t n, cols;
    const void *a;
    void *b;
    int64_t ars, acs, brs, bcs; /* strides in elements */
    st_axes batch;              /* strides a and b */
    int64_t
        pointers; /* bits 0, 1: A, B are arrays of addresses, one for every index of the only batch axis */
    int64_t from_a,
        from_b; /* elements from an item's address, where that comes from an array, to the first one: blocks of a matrix */
} st_triangle;

/* Zero sizes are fine; alpha = 0 reads neither A nor B. Operands do not overlap. */
strata_status st_tile_triangle(strata_handle *h, const char *who, const st_triangle *t,
                               const double alpha[2]);

/* B := beta B, of all items. */
strata_status st_triangle_scale(strata_handle *h, const char *who, const st_triangle *t,
                                const double beta[2]);

/* Diagonal blocks on the CPU, whole problems of their own, of order st_triangle_leaf_order at most. A GPU's are in cuda/triangle_cuda.h. */
enum { ST_TRIANGLE_SMALL = 96 }; /* order and columns of products without packing */
int64_t st_triangle_leaf_order(const strata_handle *h, int64_t type);
strata_status st_triangle_leaf(strata_handle *h, const char *who, const st_triangle *t,
                               const double alpha[2]);
/* The same column by column: all of them, and columns first.. end - 1 of one item on this thread. */
void st_triangle_columns(strata_handle *h, const st_triangle *t, const double alpha[2]);
void st_triangle_column_range(const st_triangle *t, const double alpha[2], int64_t first, int64_t end);
#endif
