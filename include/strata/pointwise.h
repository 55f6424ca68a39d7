/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.h - one expression over tensors: elementwise maps with broadcasting, and reductions inside the expression. */
#ifndef STRATA_POINTWISE_H
#define STRATA_POINTWISE_H
#include <strata/base.h>
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
 * Errors: STRATA_ERROR_SYNTAX with position and caret, _SHAPE, _TYPE, _ALIAS. */
STRATA_API strata_status strata_fused(strata_handle *h, const char *program, const strata_operand *operands,
                                      const strata_fused_options *options);

#ifdef __cplusplus
}
#endif
#endif
