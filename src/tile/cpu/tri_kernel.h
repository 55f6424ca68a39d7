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

    /* For small problems, which are laid out whole: squares of order n in rows `ld` elements apart, ld and the rows there is room for n rounded up
     * to a multiple of `side`, and ST_TRI_SLACK bytes more. */
    int side;
    /* dst(r, c) := the half of src (r, c at src + r * rs + c elements) that is stored; unit: 1 on the diagonal, which is not read; the other half
     * is zero (mirror 0), the mirror image (1) or its conjugate (2: and the diagonal is real). */
    void (*square)(void *dst, int64_t ld, const void *src, int64_t rs, int64_t n, int lower, int mirror,
                   int unit);
    /* to := from transposed */
    void (*turn)(void *to, const void *from, int64_t ld, int64_t n);
    /* c := t + beta c, n numbers (two of a complex element), in one rounding where the processor can; beta = 0 does not read c */
    void (*add)(void *c, const void *t, int64_t n, double beta);
} st_tri_kernel;
enum { ST_TRI_SLACK = 64 };
#endif
