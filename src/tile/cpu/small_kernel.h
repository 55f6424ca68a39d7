/* SPDX-License-Identifier: Apache-2.0 */
/* small_kernel.h - kernels of small products: A read in place by broadcasts (any strides), B in place or packed by rows of vectors, C
 * with unit column stride. */
#ifndef ST_TILE_CPU_SMALL_KERNEL_H
#define ST_TILE_CPU_SMALL_KERNEL_H
#include "base/base.h"

enum { ST_SMALL_ROWS = 16, ST_SMALL_NV = 4, ST_SMALL_WIDTHS = 3 };

/* What complex products take beside the real parts of their factors: the imaginary ones, and conjugates of A (bit 0) and B (bit 1). */
typedef struct st_small_pairs {
    double alpha_im, beta_im;
    int64_t conj;
} st_small_pairs;

/* `tiles` tiles of the kernel's height one below the other, each as wide as the kernel's vectors (the last with `last` lanes). */
typedef struct st_small_shape {
    int64_t k;
    int64_t ars, acs, brs, crs; /* strides in elements */
    int64_t tiles;
    int64_t last;
    const st_small_pairs *pairs; /* complex: not NULL. Strides and lanes count complex elements */
} st_small_shape;
typedef void (*st_small_fn)(const st_small_shape *s, const void *a, const void *b, void *c, double alpha,
                            double beta);

typedef struct st_small_width {
    int vl, nv;                       /* lanes; most vectors of a tile */
    int rows[ST_SMALL_NV];            /* most rows of a tile of 1, 2... vectors */
    const st_small_fn *full, *masked; /* [(vectors - 1) * ST_SMALL_ROWS + rows - 1] */
} st_small_width;
typedef struct st_small_kernel {
    int widths;
    st_small_width w[ST_SMALL_WIDTHS]; /* widest first */
} st_small_kernel;
#endif
