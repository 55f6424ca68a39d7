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
    int64_t k, ldc, ars;      /* ars: of the kernels that read A in place (its k stride is 1) */
    double alpha, beta;       /* C := alpha * AB + beta * C; beta = 0 never reads C */
    double alpha_im, beta_im; /* of complex products */
    int conj;                 /* of complex products: 1 conjugates A, 2 B */
    int last;                 /* lanes of the last vector, 1..vl (edge kernels) */
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

/* Integer panels whose values are moved into the range of the other sign: what that adds to a product goes to the head of the panel,
 * head[line] = factor * (sum of the line's values) + constant, from where the kernels start their sums. */
typedef void (*st_head_fn)(void *panel, int64_t units, int32_t factor, int32_t constant);

/* A panel's line has `size` bytes for every `unit` steps of k (a last incomplete unit is filled with zeros), after `head` bytes. The
 * kernels' k and blocks of k count units. */
typedef struct st_packed_kernel {
    int mr, nv, vl;
    int unit, size, head;
    st_ukr_fn full;          /* mr x nr, no masks */
    const st_ukr_fn *edge;   /* [(rows - 1) * nv + vectors - 1], last vector masked */
    st_ukr_fn in_place_full; /* NULL, or the same with A where it is */
    const st_ukr_fn *in_place_edge;
    st_ukr_fn first, first_in_place; /* NULL, or mr x nr, packing B on the way: the first tile of a panel */
    st_pack_fn pack_a, pack_b;
    /* kernels of two source types (f8e4m3 and f8e5m2, i8 and u8): the second one's */
    st_ukr_fn first_2;
    st_pack_fn pack_a_2, pack_b_2;
    st_head_fn head_a, head_b; /* NULL where head is 0 */
} st_packed_kernel;
#endif
