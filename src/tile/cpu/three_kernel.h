/* SPDX-License-Identifier: Apache-2.0 */
/* three_kernel.h - what a complex product by three real ones (gemm_3m.c) needs beside the real product's kernel of the same instruction set. */
#ifndef ST_TILE_CPU_THREE_KERNEL_H
#define ST_TILE_CPU_THREE_KERNEL_H
#include "tile/cpu/gemm_kernel.h"

typedef struct st_three_factors {
    double alpha, alpha_im, beta, beta_im;
} st_three_factors;

typedef struct st_three_kernel {
    const st_packed_kernel *real;
    /* complex lines into panels of real->mr (nr) lines of pairs, as st_packed_kernel's packing does */
    st_pack_fn pack_a, pack_b;
    /* n pairs: their real parts, imaginary parts (the others' signs where conj) and sums of both */
    void (*split)(int64_t n, const void *pairs, int conj, void *re, void *im, void *sum);
    /* h rows of w elements: C := alpha (P - Q, R - P - Q) + beta C. P, Q and R are tiles of real numbers whose rows are ld apart; C's are ldc
     * elements apart. beta = 0 does not read C. */
    void (*join)(int64_t h, int64_t w, const void *p, const void *q, const void *r, int64_t ld, void *c,
                 int64_t ldc, const st_three_factors *f);
} st_three_kernel;
#endif
