/* SPDX-License-Identifier: Apache-2.0 */
/* tri_kernel.h - what a triangular block needs beside the packed product's kernels of the same type, instruction set and tile. */
#ifndef ST_TILE_CPU_TRI_KERNEL_H
#define ST_TILE_CPU_TRI_KERNEL_H
#include "base/base.h"

typedef struct st_tri_kernel {
    int mr, nr; /* those of the product's kernel, in elements */
    /* Rows of a panel of B (h of them, nr elements each, of which the first `w` matter) := T^-1 times them. tri: the triangle where a panel of A holds it,
     * element (r, p) at p * mr + r, its diagonal inverted. */
    void (*solve)(const void *tri, void *rows, int64_t h, int64_t w, int upper, int conj);
    /* The first `w` lines of a panel (k steps of nr elements) to where they belong: line i, step p at dst + i * ls + p * ks elements. */
    void (*unpack)(const void *panel, int64_t w, int64_t k, void *dst, int64_t ls, int64_t ks);
} st_tri_kernel;
#endif
