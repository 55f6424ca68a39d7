/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.h - one expression over tensors: elementwise maps with broadcasting, and reductions inside the expression. */
#ifndef STRATA_POINTWISE_H
#define STRATA_POINTWISE_H
#include <strata/base.h>
#include <strata/plan.h>
#ifdef __cplusplus
extern "C" {
#endif

/* A name in an expression (at most 23 characters) and the tensor behind it. Arrays of operands end with a row whose name is NULL. */
typedef struct strata_operand {
    const char *name;
    strata_tensor tensor;
} strata_operand;

typedef struct strata_fused_options {
    uint32_t axes;        /* bit d: reductions run over dim d of the largest operand; 0: the last dim */
    uint64_t reserved[4]; /* zero */
} strata_fused_options;

/* Runs `program`: statements "name = expression" separated by ';'. Names on the left that are in `operands` are outputs,
 * others are temporaries. The language is docs/expressions.md: + - * / comparisons, select(c, a, b), min max abs sqrt rsqrt
 * exp log tanh erf sigmoid relu gelu gelu_tanh silu rint floor ceil, saturating casts (sat_i8 sat_u8 ...), index(d), and the
 * reductions sum mean var max min absmax, prod, any, all over options->axes.
 * Shapes: the iteration space is the broadcast of all operands (right-aligned dims, a dim of 1 repeats). An output has
 * the iteration space's dims, with 1 (or absent, for leading dims) along reduced axes where its value is a reduction.
 * An operand written name[m] or name[n] has rank 1 and runs along the last but one (m) or the last (n) dim.
 * Arithmetic is f32; f64 when an operand is f64, and for positions beyond 2^24 (index(d) with a longer dim, argmax over more
 * elements). Integer types are converted on load and saturated on store by sat_ casts, otherwise rounded towards zero.
 * NaN and Inf follow IEEE 754; max and min return NaN when an argument is NaN.
 * In-place use (an output that is the same view as an input) is allowed for programs without reductions, and for row
 * programs whose input is read at the position that is written. Other overlap is refused; views that lie between each other's
 * elements (columns of one matrix, real and imaginary parts) do not overlap. Every operand must occur in the program.
 * On a GPU an operand of one number that is only read may lie in host memory: it is read when the call is made (while a stream is captured, its value is
 * part of the graph).
 *
 * Products: X @ W, of operands or of expressions in parentheses, any number of times, at most six different ones: "silu(X @ W0) * (X @ W1)". Dims and
 * types are those of strata_gemm; a product is f32 (f64 of f64, i32 of 8-bit integers) and an operand like any other of the program around it, whose
 * outputs may have any type. A program that only maps elements runs as the last product's epilogue, on each tile while it is in registers or cache;
 * the products before it, and all where the program reduces, lie in the workspace. In a factor that is an expression, [k] names the dim that the
 * product sums over: "X @ (W * s[n])", "(X * g[k]) @ W"; S[k/64, n] is an operand of k/64 rows, one for each 64 of k. Its value has the other
 * factor's type where that is f16 or bf16, else f32. Outputs must then be apart from every other operand.
 * Errors: STRATA_ERROR_SYNTAX with position and caret, _SHAPE, _TYPE, _ALIAS. */
STRATA_API strata_status strata_fused(strata_handle *h, const char *program, const strata_operand *operands,
                                      const strata_fused_options *options);

/* The same as a plan; data[] of its runs are the operands' addresses in their order (addresses in the tensors are not kept). The steps that it takes
 * are in strata_plan_describe. What overlaps in a run is the caller's duty. */
STRATA_API strata_status strata_fused_plan(strata_handle *h, const char *program,
                                           const strata_operand *operands,
                                           const strata_fused_options *options, const strata_choice *choice,
                                           strata_plan **plan);

#ifdef __cplusplus
}
#endif
#endif
