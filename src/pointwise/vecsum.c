/* SPDX-License-Identifier: Apache-2.0 */
/* vecsum.c - see vecsum.h: a plan from the cache, run. */
#include "pointwise/vecsum.h"
#include "pointwise/engine.h"

strata_status st_vecsum_run(strata_handle *h, const char *who, const st_vecsum *v, void *const data[3])
{
    st_vecsum key = *v;
    key.family = ST_PW_VECSUM;
    const uintptr_t bits = 16 | (uintptr_t)data[0] | (uintptr_t)data[1];
    key.alignment = (int64_t)(bits & (~bits + 1));
    const st_problem p = {.op = ST_OP_POINTWISE, .who = who, .data = &key, .bytes = sizeof key};
    const strata_plan *plan;
    st_pw_init();
    const strata_status s = st_plan_get(h, &p, &plan);
    return s ? s : st_plan_execute(h, plan, data, NULL);
}
