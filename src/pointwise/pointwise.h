/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.h - the pointwise/reduction engine: one expression over tensors of up to 8 dims with reductions over chosen axes,
 * and pooling windows. */
#ifndef ST_POINTWISE_POINTWISE_H
#define ST_POINTWISE_POINTWISE_H
#include "base/base.h"
#include "runtime/handle.h"
#include "plan/plan.h"
#include "expr/expr.h"
#include <strata/pointwise.h>

/* What strata_fused does for a program without '@', under another name for messages. Checks shapes and aliasing, finds the
 * cached plan (keyed by text, shapes, strides, types, axes), runs it. axes: bit d = reduce dim d of the iteration space. */
strata_status st_pw_run(strata_handle *h, const char *who, const char *program,
                        const strata_operand *operands, uint32_t axes);
void st_pw_init(void);

/* Windows over the last two dims of (n, c, h, w) views; sizes checked by the caller (dnn). */
typedef struct st_pool_problem {
    int64_t type, kind;       /* strata_type, strata_pool_kind */
    int64_t n, c, h, w, p, q; /* image and output dims */
    int64_t window[2], stride[2], pad[2], pad_end[2], dilation[2];
    int64_t count_padding, accumulate, has_argmax, backward;
    int64_t xs[4], ys[4],
        as[4]; /* strides of x (or dx), y (or dy), argmax; backward of max without argmax: as is x's */
} st_pool_problem;
/* data: forward {x, y, argmax or NULL}; backward {x or NULL, dy, argmax or NULL, dx}. max, whose window holds no element of the
 * image: -Inf and position -1; average: 0. */
strata_status st_pw_pool(strata_handle *h, const char *who, const st_pool_problem *p, void *const data[]);

/* Normalisation per channel over (n, c, up to three more dims). Statistics are two-pass inside pieces of about 32768 elements and joined
 * in double precision in the order of the pieces (Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing
 * sample variances", 1979): as accurate as two passes, one reading of memory. */
typedef enum st_norm_op { ST_NORM_TRAINING, ST_NORM_INFERENCE, ST_NORM_BACKWARD } st_norm_op;
enum { ST_NORM_DIMS = 5 };
typedef enum st_norm_operand {
    ST_NORM_X,
    ST_NORM_Y,
    ST_NORM_DY,
    ST_NORM_DX, /* ST_NORM_DIMS strides each */
    ST_NORM_SCALE,
    ST_NORM_SHIFT,
    ST_NORM_RUNNING_MEAN,
    ST_NORM_RUNNING_VAR,
    ST_NORM_SAVE_MEAN,
    ST_NORM_SAVE_INV_STD,
    ST_NORM_DSCALE,
    ST_NORM_DSHIFT, /* c elements, one stride */
    ST_NORM_OPERANDS
} st_norm_operand;
typedef struct st_norm_problem {
    int64_t type, op;
    int64_t dim[ST_NORM_DIMS];                   /* n, c, then 1 where there is no more */
    int64_t stride[ST_NORM_SCALE][ST_NORM_DIMS]; /* 0 for absent operands and dims of 1 */
    int64_t vector[ST_NORM_OPERANDS];            /* strides of the vectors */
    int64_t present;                             /* bit i: operand i is given */
    int64_t accumulate, running_biased;
    double epsilon, momentum;
} st_norm_problem;
/* data: one address an operand, NULL where absent */
strata_status st_pw_norm(strata_handle *h, const char *who, const st_norm_problem *p, void *const data[]);
#endif
