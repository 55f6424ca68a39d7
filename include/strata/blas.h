/* SPDX-License-Identifier: Apache-2.0 */
/* blas.h - dense linear algebra. */
#ifndef STRATA_BLAS_H
#define STRATA_BLAS_H
#include <strata/base.h>
#include <strata/plan.h>
#include <strata/pointwise.h>
#ifdef __cplusplus
extern "C" {
#endif

/* Arithmetic that a caller allows beyond the types' own; a plan's kernel says what it uses. A mode that no kernel has for the types is EXACT. */
typedef enum strata_math {
    STRATA_MATH_EXACT = 0,
    STRATA_MATH_TF32 = 1,      /* f32 factors rounded to 11 significant bits, sums in f32 */
    STRATA_MATH_BF16X6 = 2,    /* each f32 factor as three bf16 parts, six products: errors of f32's size */
    STRATA_MATH_FAST_ACCUM = 3 /* 8-bit floats: sums keep about 14 bits on Hopper, which else adds every 128 to f32 */
} strata_math;

typedef struct strata_gemm_options {
    /* NULL, or an expression over `acc` (which is alpha * A B + beta * C_in) and the named operands, run on each tile while
     * it is in cache: "gelu(acc + bias[n])". Its value is stored to C. Statements separated by ';' may also write auxiliary
     * outputs: "pre = acc + bias[n]; out = gelu(pre)" (the value for C is named out). */
    const char *epilogue;
    const strata_operand *operands; /* name, tensor; rank 1 with [m] or [n], rank 0, or broadcastable to C */
    strata_math math;
    uint64_t reserved[4]; /* zero */
} strata_gemm_options;

/* C := alpha * A B + beta * C.
 * A is m x k, B is k x n, C is m x n, each rank 2 with any strides; or each of rank 3 or more with the same leading (batch)
 * dims, which broadcast for A and B. Transposition is strata_transpose(A).
 * Types: A, B, C all f32, or all f64. Sums run in the type itself.
 * beta = 0: C is not read (NaN there does not spread). alpha = 0: A and B are not read. k = 0: C := beta * C. A zero m, n or
 * batch is a legal no-op. NaN and Inf in A and B propagate as IEEE multiplication and addition do.
 * C may not overlap A or B. Error bound: |computed - exact| <= (k + 3) u (|alpha| |A||B| + |beta C|), u the unit round-off.
 * Source: Dongarra et al., "A set of level 3 basic linear algebra subprograms", TOMS 16 (1990), for the rules. */
STRATA_API strata_status strata_gemm(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B,
                                     strata_scalar beta, strata_tensor C, const strata_gemm_options *o);
/* The same as a plan; operands in the order A, B, C, then those of the epilogue. The addresses in the tensors are not kept. */
STRATA_API strata_status strata_gemm_plan(strata_handle *h, strata_scalar alpha, strata_tensor A,
                                          strata_tensor B, strata_scalar beta, strata_tensor C,
                                          const strata_gemm_options *o, const strata_choice *choice,
                                          strata_plan **plan);

#ifdef __cplusplus
}
#endif
#endif
