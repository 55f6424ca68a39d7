/* SPDX-License-Identifier: Apache-2.0 */
/* skinny_kernel.h - what the kernels for products with 1 to 16 rows look like to their driver (skinny.c).
 *
 * The large operand B is read once, in place. Sums are kept in a compact scratch S (rows lds apart): C's own rows, often a power of two
 * apart, would fall into a few cache sets. */
#ifndef ST_TILE_CPU_SKINNY_KERNEL_H
#define ST_TILE_CPU_SKINNY_KERNEL_H
#include "base/base.h"

/* NN: B's rows are contiguous along n. S[mr x cols] (+)= A panel (k-major, mr values a step) * kb rows of B. `first`: S is overwritten.
 * cols is at most nv * vl; the last vector is masked where it is not full. B is fetched `ahead` bytes further on along every row
 * (0: not at all). */
typedef void (*st_skinny_nn_fn)(int64_t kb, const void *a, const void *b, int64_t ldb, void *s, int64_t lds,
                                int64_t cols, bool first, int64_t ahead);
/* NT: B's columns are contiguous along k. part[mr x nr] vectors (+)= A rows (lda apart) times B columns (ldb apart), kb steps of k, a
 * partial vector at the end when `tail` says so. */
typedef void (*st_skinny_nt_fn)(int64_t kb, const void *a, int64_t lda, const void *b, int64_t ldb,
                                void *part, bool first, int64_t ahead);

enum { ST_SKINNY_ROWS = 16, ST_SKINNY_MR = 8, ST_SKINNY_NR = 8 };

typedef struct st_skinny_kernel {
    int vl;                           /* lanes */
    int nn_mr;                        /* rows of one pass */
    int nn_vectors[ST_SKINNY_MR + 1]; /* width of a tile of mr rows, in vectors */
    int nt_mr, nt_nr;                 /* tile of dot products; one row of A takes nt_nr1 columns */
    int nt_nr1;
    const st_skinny_nn_fn *nn; /* [mr] */
    const st_skinny_nt_fn *nt; /* [(mr - 1) * ST_SKINNY_NR + nr - 1] */
    /* s[j] = sum of the lanes of the j-th vector, n of them */
    void (*reduce)(int64_t n, const void *part, void *s, int64_t stride);
    /* dst[p * width + i] = element (i, p) of A for width lines and k steps: the k-major panel */
    void (*pack)(void *dst, int64_t width, int64_t k, const void *src, int64_t ls, int64_t ks);
    int half; /* 0, or STRATA_BF16 or STRATA_F16: A and B have that type, sums are f32, and A is always packed, widened */
} st_skinny_kernel;
#endif
