/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.h - a contraction's epilogue on CUDA: the header that a kernel includes as "generated.cuh", and its parameters.
 *
 * The generated text defines, for accumulators of type ST_ACC (float or double):
 *
 *     INL ST_ACC st_epilogue(const st_epi &e, ST_ACC acc, long long m, long long n, long long g);
 *
 * which returns what is stored to C at row m, column n of batch item g (flattened indices), after storing the other outputs. The struct of parameters
 * is the same for every program, so that a kernel's parameters do not change. Kernels without an epilogue (EPI=0) include an empty text. */
#ifndef ST_TILE_CUDA_EPILOGUE_H
#define ST_TILE_CUDA_EPILOGUE_H
#include "expr/cuda.h"
#include "tile/tile.h"

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
void st_cuda_epilogue_params(const st_contract *c, bool swapped, void *const data[], st_epi_params *p);
#endif
