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
strata_status st_pw_run(strata_handle *h, const char *who, const char *program, const strata_operand *operands, uint32_t axes);
void st_pw_init(void);

/* Windows over the last two dims of (n, c, h, w) views; sizes checked by the caller (dnn). */
typedef struct st_pool_problem {
    int64_t type, kind;        /* strata_type, strata_pool_kind */
    int64_t n, c, h, w, p, q;  /* image and output dims */
    int64_t window[2], stride[2], pad[2], pad_end[2], dilation[2];
    int64_t count_padding, accumulate, has_argmax, backward;
    int64_t xs[4], ys[4], as[4]; /* strides of x (or dx), y (or dy), argmax */
} st_pool_problem;
/* data: forward {x, y, argmax or NULL}; backward {x or NULL, dy, argmax or NULL, dx} */
strata_status st_pw_pool(strata_handle *h, const char *who, const st_pool_problem *p, void *const data[]);
#endif
