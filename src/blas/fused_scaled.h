/* SPDX-License-Identifier: Apache-2.0 */
/* fused_scaled.h - products of factors whose blocks have scales, as one kernel. */
#ifndef ST_BLAS_FUSED_SCALED_H
#define ST_BLAS_FUSED_SCALED_H
#include "blas/fused_problem.h"

/* Can the program be one kernel with `out` as its output? Else the rule that refuses in why. */
bool st_fused_scaled(const st_fused *f, int out, double *us, size_t *workspace, char *why, size_t n);
/* Its plan; at[*count]: the operands of its runs, x: the two factors' matrices. */
strata_status st_fused_scaled_plan(const st_fused *f, int out, strata_plan **plan, int *at, int *count,
                                   int x[2]);
#endif
