/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - running a plan where it may not belong: plans of another device. */
#include "plan/plan.h"
#include "runtime/gpu.h"
#include <string.h>

strata_status st_plan_execute_gpu(strata_handle *h, const strata_plan *p, void *const data[],
                                  const strata_run *r)
{
    if ((p->where == ST_ON_CUDA) != (h->gpu != NULL) || (h->gpu && strcmp(p->device, h->device))) {
        st_fail(&h->err, STRATA_ERROR_STATE,
                "strata_plan_run: the plan (%s) was made for %s and the handle is on %s", p->title, p->device,
                h->device);
        st_err_remedy(&h->err, "make the plan with a handle on the device that runs it");
        return STRATA_ERROR_STATE;
    }
    return p->run(h, p, data, r);
}
