/* SPDX-License-Identifier: Apache-2.0 */
/* product.h - what the operators that are products share: views become the rules and axes of a contraction. */
#ifndef ST_BLAS_PRODUCT_H
#define ST_BLAS_PRODUCT_H
#include "tile/tile.h"
#include <strata/blas.h>

/* Conjugate, half, mirror and unit diagonal of a view. */
st_rule st_product_rule(const strata_tensor *t);
/* C (+)= A B of checked views: one axis each for m, n and k, one for every batch dim of C. */
void st_product_describe(const strata_tensor *A, const strata_tensor *B, const strata_tensor *C,
                         st_contract *c);
/* Batch dims of an input (`name`) against those of the output (`out`): right-aligned, a dim of 1 or a missing one repeats. An array of
 * addresses is one batch dim and the only one. */
strata_status st_product_check_batch(strata_handle *h, const char *who, const char *name,
                                     const strata_tensor *t, const char *out, const strata_tensor *C);
/* addresses.c: of operands given by arrays of addresses (t[i] may be NULL: no such operand): no entry is NULL, and no matrix of those that `written` has a bit
 * for shares memory with another. Costs nothing where no operand is such an array. */
enum { ST_ADDRESSES = 4 };
strata_status st_addresses_check(strata_handle *h, const char *who, const strata_tensor *const t[],
                                 const char *const name[], unsigned written, int n);
ST_INLINE bool st_addresses_any(const strata_tensor *a, const strata_tensor *b, const strata_tensor *c)
{
    return ((a->flags | b->flags | c->flags) & STRATA_TENSOR_POINTERS) != 0;
}
/* Does strata_gemm take these types on this handle? */
bool st_gemm_types_fit(const strata_handle *h, int a, int b, int c);
/* The checks of strata_gemm's operands and options (which are not NULL) but for an epilogue's. */
strata_status st_gemm_check(strata_handle *h, const char *who, const strata_tensor *A, const strata_tensor *B,
                            const strata_tensor *C, const strata_gemm_options *o, bool addresses);
/* strata_gemm_plan for C := A B under another function's name; the addresses in the tensors do not matter but may not be NULL. */
strata_status st_gemm_make(strata_handle *h, const char *who, const strata_tensor *A, const strata_tensor *B,
                           const strata_tensor *C, const strata_gemm_options *o, strata_plan **plan);
/* gemm_gpu.c: runs a product whose plan is known; false: go the long way, and then let it be remembered. */
bool st_gemm_recall(strata_handle *h, const strata_gemm_plain *p, strata_status *s);
void st_gemm_remember(strata_handle *h, const strata_gemm_plain *p, const strata_tensor *A,
                      const strata_tensor *B, const strata_tensor *C);
#endif
