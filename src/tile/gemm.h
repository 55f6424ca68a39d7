/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - plain contractions in the form that the gemm providers work on.
 *
 * Axes of length 1 are dropped and neighbours that run through memory as one are merged; where only the rows of C are contiguous
 * the transposed product is computed (A and B, m and n exchanged), so that columns are the ones with stride 1 whenever any
 * axis has it. After that most problems have one axis each for m, n and k and none or one for batch. */
#ifndef ST_TILE_GEMM_H
#define ST_TILE_GEMM_H
#include "tile/contract.h"
#include "tile/epilogue.h"
#include "tile/cpu/gemm_kernel.h"

typedef struct st_gemm {
    int type;       /* of sums: A's own for f32, f64, c64 and c128, f32 for shorter floats, i32 for bytes */
    int64_t es;     /* bytes of a sum */
    int ta, tb, tc; /* of this form's A, B and C; all `type` in products of one type */
    int64_t ea, eb, ec; /* bytes of their elements */
    bool one_type;
    int conj;     /* 1: A is read conjugated, 2: B */
    bool swapped; /* data[0] is B of this form and data[1] its A */
    st_axes m, n, k, batch;
    int64_t M, N, K, G; /* their lengths */
    st_contract
        flat; /* the same once more, with the epilogue's strides along the axes above: what st_epilogue_run takes */
} st_gemm;

/* True, or false with the rule that refuses in `why`. */
bool st_gemm_normalise(const st_contract *c, const char *text, st_gemm *g, char *why, size_t n);

/* Products with at most 16 rows or columns and a large other operand: true when those of gemm_skinny are faster than those of gemm_small.
 * C has columns of unit stride; bcs is B's stride along n. */
enum { ST_SKINNY_LEAST = 8192, ST_SKINNY_MOST = 16 };
bool st_gemm_skinny_serves(const st_cpu *cpu, int64_t es, int64_t m, int64_t n, int64_t k, int64_t bcs);

/* Stride of the innermost axis (0 for an empty list), and how many indices from i on it goes on with that stride. */
ST_INLINE int64_t st_axes_inner(const st_axes *l, int which)
{
    return l->count ? st_axis_stride(&l->ax[l->count - 1], which) : 0;
}
ST_INLINE int64_t st_axes_run(const st_axes *l, int64_t i)
{
    if (l->count <= 1) return INT64_MAX;
    int64_t len = l->ax[l->count - 1].len;
    return len - i % len;
}

/* alpha and beta of a run; the imaginary parts are 0 but for complex products. */
typedef struct st_factors {
    double alpha, alpha_im, beta, beta_im;
} st_factors;

/* C := beta * C for every element of the product (alpha = 0 or K = 0); C is not read when beta = 0. */
void st_gemm_scale(const st_gemm *g, void *c, const st_factors *f);

/* The epilogue on rows i0.. and columns j0.. of batch item `item`, whose C holds alpha AB + beta C; scratch of
 * st_expr_scratch bytes. `data` are the plan's operands. */
void st_gemm_epilogue(const st_gemm *g, const st_expr *x, void *const data[], int64_t item, int64_t i0,
                      int64_t rows, int64_t j0, int64_t cols, void *scratch);
#endif
