/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_kernel.h - what a packed microkernel and its packing look like to the driver (gemm_packed.c).
 *
 * Panels: A is cut into panels of mr rows stored k-major (mr values a step of k), B into panels of nr = nv * vl columns stored
 * k-major (nr values a step). A panel holds kc steps; panels follow each other. */
#ifndef ST_TILE_CPU_GEMM_KERNEL_H
#define ST_TILE_CPU_GEMM_KERNEL_H
#include "base/base.h"

enum { ST_UKR_MAX_NV = 4, ST_PACK_SLACK = 256 /* bytes past the last panel that packing may write */ };

typedef struct st_ukr_args {
    int64_t k, ldc, ars; /* ars: of the kernels that read A in place (its k stride is 1) */
    double alpha, beta;  /* C := alpha * AB + beta * C; beta = 0 never reads C */
    int last;            /* lanes of the last vector, 1..vl (edge kernels) */
    const char *
        next; /* next B panel's lines to bring near meanwhile, 256 bytes every four steps, next_count times */
    int64_t next_count;
    int64_t
        ldb; /* of the kernels that pack B as they go: b is the source, rows ldb apart, columns contiguous */
    void *panel; /* where they put it */
} st_ukr_args;
typedef void (*st_ukr_fn)(const st_ukr_args *x, const void *a, const void *b, void *c);

/* Packs `w` lines (rows of A, columns of B) of `k` steps into panels; line i, step p at src + (i*ls + p*ks) elements. */
typedef void (*st_pack_fn)(void *dst, int64_t w, int64_t k, const void *src, int64_t ls, int64_t ks);

typedef struct st_packed_kernel {
    int mr, nv, vl;
    st_ukr_fn full;          /* mr x nr, no masks */
    const st_ukr_fn *edge;   /* [(rows - 1) * nv + vectors - 1], last vector masked */
    st_ukr_fn in_place_full; /* the same with A where it is */
    const st_ukr_fn *in_place_edge;
    st_ukr_fn first, first_in_place; /* mr x nr, packing B on the way: the first tile of a panel */
    st_pack_fn pack_a, pack_b;
} st_packed_kernel;
#endif
