/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h - operands of programs in the place of an argument. */
#ifndef TEST_PROGRAMS_H
#define TEST_PROGRAMS_H
#include "handle.h"
#include <math.h>

#define OPS(...)             \
    (const strata_operand[]) \
    {                        \
        __VA_ARGS__,         \
        {                    \
            NULL, { 0 }      \
        }                    \
    }
#define RUN(program, ...) strata_fused(h, program, OPS(__VA_ARGS__), NULL)

static inline double silu(double x) { return x / (1 + exp(-x)); }
#endif
