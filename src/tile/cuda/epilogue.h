/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.h - a contraction's epilogue on CUDA: the header that a kernel includes as "generated.cuh", and its parameters.
 *
 * The generated text defines, for accumulators of type ST_ACC (float or double):
 *
 *     INL ST_ACC st_epilogue(const st_epi &e, ST_ACC acc, long long m, long long n, long long g);
 *
 * which returns what is stored to C at row m, column n of batch item g (flattened indices), after storing the other outputs. In f32, with one axis of m and
 * n, also its parts (R, C, O, F, X being ST_EPI_ROWS, _COLS, _ONES, _FULL, _OUTS, numbers of operands)
 *
 *     INL void st_epi_rows(const st_epi &e, float to[R], long long m, long long g);     what belongs to row m
 *     INL void st_epi_cols(const st_epi &e, float to[C], long long n, long long g);     to column n
 *     INL void st_epi_ones(const st_epi &e, float to[O], long long none, long long g);  to all
 *     INL void st_epi_full(const st_epi &e, float (&to)[2][F], long long m, long long n, long long n1, long long g);  to columns n (even) and n1 of row m
 *     INL void st_epi_outs(const st_epi &e, const float (&v)[2][X], long long m, long long n, long long g, bool first, bool second);  stores n, n + 1
 *     INL float st_epilogue_of(const float row[R], const float col[C], const float one[O], const float full[F], float out[X], float acc,
 *                              long long m, long long n, long long g);
 *
 * (With ST_EPI_TAKES_BIASED it defines ST_EPI_BIASED where C is i8 and what it returns is 1.5 * 2^23 more than C's number, so that C is its bits' low byte.)
 * the last being st_epilogue on what the others fetched, its other outputs left in `out`. Pairs assume that C's columns are even in number or c.unaligned is set. The
 * struct of parameters is the same for every program, so that a kernel's parameters do not change. Kernels without an epilogue (EPI=0) include an empty text. */
#ifndef ST_TILE_CUDA_EPILOGUE_H
#define ST_TILE_CUDA_EPILOGUE_H
#include "expr/cuda.h"
#include "tile/tile.h"

enum { ST_EPI_VECTORS = 4 }; /* most rows and columns that the parts fetch */

/* mirrored in include/strata/dev/epilogue.cuh */
typedef struct st_epi_params {
    void *ptr[ST_EPI_OPERANDS];
    int64_t sm[ST_EPI_OPERANDS], sn[ST_EPI_OPERANDS],
        sb[ST_EPI_OPERANDS]; /* where m, n, batch are one axis each */
} st_epi_params;

/* c: the problem in the axes that the kernel flattens (simplified; m, n and batch of several axes print divisions). swapped: the kernel computes the
 * transposed product. *text: free(). NULL text for a NULL x. */
strata_status st_cuda_epilogue_text(st_err *e, const st_contract *c, const st_expr *x, bool swapped,
                                    char **text);
/* Operands with an element for each of C's: 0 none, 1 the kernel's neighbouring columns stand together in aligned pairs, 2 in some they do not. */
int st_cuda_epilogue_full(const st_contract *c, bool swapped);
void st_cuda_epilogue_params(const st_contract *c, bool swapped, void *const data[], st_epi_params *p);
#endif
