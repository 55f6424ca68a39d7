/* SPDX-License-Identifier: Apache-2.0 */
/* norm_plan.c - what plans of batch normalisation have in common on every device. */
#include "pointwise/norm.h"
#include <stdio.h>
#include <stdlib.h>

void st_pw_norm_describe(strata_plan *plan, const st_norm_problem *p, const char *more)
{
    static const char *const names[] = {"training", "inference", "backward"};
    static const double traffic[] = {2, 2, 3};
    const double size = p->type == STRATA_F64 ? 8 : 4;
    double elements = 1;
    for (int d = 0; d < ST_NORM_DIMS; d++) elements *= (double)p->dim[d];
    plan->operands = ST_NORM_OPERANDS;
    plan->bytes = elements * size * traffic[p->op];
    plan->flops = elements * (p->op == ST_NORM_INFERENCE ? 3 : 8);
    snprintf(plan->title, sizeof plan->title, "batch norm %s %s %lldx%lldx%lldx%lldx%lld%s", names[p->op],
             strata_type_name((strata_type)p->type), (long long)p->dim[0], (long long)p->dim[1],
             (long long)p->dim[2], (long long)p->dim[3], (long long)p->dim[4], more);
}

strata_status st_pw_norm_extents(strata_plan *plan, const st_norm_problem *p)
{
    static const int written[] = {
        [ST_NORM_TRAINING] = 1 << ST_NORM_Y | 1 << ST_NORM_RUNNING_MEAN | 1 << ST_NORM_RUNNING_VAR |
                             1 << ST_NORM_SAVE_MEAN | 1 << ST_NORM_SAVE_INV_STD,
        [ST_NORM_INFERENCE] = 1 << ST_NORM_Y,
        [ST_NORM_BACKWARD] = 1 << ST_NORM_DX | 1 << ST_NORM_DSCALE | 1 << ST_NORM_DSHIFT};
    const int only = 1 << ST_NORM_Y | 1 << ST_NORM_SAVE_MEAN |
                     1 << ST_NORM_SAVE_INV_STD; /* never read where they are written */
    const int64_t size = p->type == STRATA_F64 ? 8 : 4;
    plan->extent = calloc(ST_NORM_OPERANDS, sizeof *plan->extent);
    if (!plan->extent) return STRATA_ERROR_MEMORY;
    for (int o = 0; o < ST_NORM_OPERANDS; o++) {
        if (!(p->present >> o & 1)) continue;
        st_extent *e = &plan->extent[o];
        int64_t lo = 0, hi = 1;
        for (int d = 0; d < ST_NORM_DIMS && o < ST_NORM_SCALE; d++)
            *(p->stride[o][d] < 0 ? &lo : &hi) += (p->dim[d] - 1) * p->stride[o][d];
        if (o >= ST_NORM_SCALE) *(p->vector[o] < 0 ? &lo : &hi) += (p->dim[1] - 1) * p->vector[o];
        e->lo = lo * size, e->hi = hi * size;
        e->written = written[p->op] >> o & 1;
        const bool sum = o == ST_NORM_DX || o == ST_NORM_DSCALE || o == ST_NORM_DSHIFT;
        e->read = !e->written || !(only >> o & 1 || (sum && !p->accumulate));
    }
    return STRATA_OK;
}

int64_t st_pw_norm_alignment(const st_norm_problem *p, void *const data[])
{
    uintptr_t bits = 16;
    for (int o = 0; o < ST_NORM_OPERANDS; o++)
        if (p->present >> o & 1) bits |= (uintptr_t)data[o];
    return (int64_t)(bits & (~bits + 1));
}
