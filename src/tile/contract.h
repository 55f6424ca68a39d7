/* SPDX-License-Identifier: Apache-2.0 */
/* contract.h - what the providers of contractions share: the head of their plans, its scalars, and the fields that
 * describe a problem in words.
 *
 * Every plan that a contraction provider builds begins with st_contract_plan, so that st_tile_plan can set the scalars and
 * free the expression whoever built the plan. */
#ifndef ST_TILE_CONTRACT_H
#define ST_TILE_CONTRACT_H
#include "tile/tile.h"
#include "tile/kernels.h"

typedef struct st_contract_plan {
    strata_plan base;
    double alpha[2], beta[2]; /* re, im; of a run that brings none: 1 and 0 unless st_tile_plan set them */
    st_contract problem;      /* as described by the caller */
    st_expr *expr;            /* NULL, or the parsed epilogue; owned */
} st_contract_plan;

/* Provider's build: a zeroed plan of `bytes` (its own struct, beginning with st_contract_plan) with problem, expression,
 * operands, flops, bytes and title filled in. *plan is NULL on failure. */
strata_status st_contract_plan_new(strata_handle *h, const st_problem *p, size_t bytes,
                                   st_contract_plan **plan);
/* The same for a row of kernels.inc, whose `setup` then fills in the provider's part: where it refuses what it took when the candidate was listed, _INTERNAL. */
typedef bool (*st_contract_setup)(strata_handle *h, const st_problem *p, const st_kernel_row *row, void *plan,
                                  char *why, size_t n);
strata_status st_contract_plan_of(strata_handle *h, const st_problem *p, const st_kernel_row *row,
                                  size_t bytes, st_contract_setup setup, st_contract_plan **plan);
/* A candidate of that row, zeroed but for kernel, row and order; refused until us is set. */
void st_contract_candidate(const st_kernel_row *row, st_candidate *c);
void st_contract_plan_destroy(
    strata_plan *p); /* frees the expression; providers call it from their own destroy or use it as such */

/* Scalars of this run: r's, else the plan's. The first is for real products. */
strata_status st_contract_scalars(strata_handle *h, const st_contract_plan *p, const strata_run *r,
                                  double *alpha, double *beta);
strata_status st_contract_scalars_complex(strata_handle *h, const st_contract_plan *p, const strata_run *r,
                                          double alpha[2], double beta[2]);

/* On a CPU: no entry of an array of addresses is NULL; `reads`: of A and B too. */
strata_status st_contract_addresses(strata_handle *h, const st_contract_plan *p, void *const data[],
                                    bool reads);

/* Product of an axis list's lengths (1 for none). */
int64_t st_axes_len(const st_axes *l);

/* Offset in elements of index i of a list, in operand 'a', 'b' or 'c'. */
ST_INLINE int64_t st_axis_stride(const st_axis *x, int which)
{
    return which == 'a' ? x->a : which == 'b' ? x->b : x->c;
}
ST_INLINE int64_t st_axes_offset(const st_axes *l, int which, int64_t i)
{
    if (l->count == 1) return i * st_axis_stride(&l->ax[0], which);
    int64_t off = 0;
    for (int d = (int)l->count - 1; d >= 0; d--) {
        off += i % l->ax[d].len * st_axis_stride(&l->ax[d], which);
        i /= l->ax[d].len;
    }
    return off;
}
/* Indices along every axis of the flattened index i. */
ST_INLINE void st_axes_index(const st_axes *l, int64_t i, int64_t idx[ST_AXES])
{
    for (int64_t d = l->count - 1; d >= 0; d--) {
        idx[d] = i % l->ax[d].len;
        i /= l->ax[d].len;
    }
}

/* Floor of any method, for predictions: measured-once rates of this processor in flops and bytes per microsecond. */
double st_contract_peak(const st_cpu *cpu, int type); /* flops per microsecond and core */
#define ST_CONTRACT_BYTES_PER_US 20000.0              /* memory, one core: a low estimate */

/* Providers of plain products (gemm_small.c, skinny.c, gemm_packed.c) and of windowed ones (window.c), and the slow one that always
 * works (reference.c), in the order in which st_tile_init registers them. */
extern const st_provider st_gemm_small_provider, st_gemm_skinny_provider, st_gemm_packed_provider,
    st_gemm_structured_provider, st_gemm_3m_provider;
bool st_gemm_structured(const st_contract *c); /* halves, unit diagonals, addresses: gemm_structured.c's */
extern const st_engine st_contract_engine;     /* contract_key.c */
extern const st_tiles st_gemm_packed_tiles;    /* gemm_prepared.c */
void st_window_register(void);
void st_reference_register(void);
/* Runs a small product of such operands at once, on this thread and with the bits of the plan; false: not done, take the plan. */
bool st_structured_direct(strata_handle *h, const st_contract *c, const double alpha[2], const double beta[2],
                          void *const data[]);
#endif
