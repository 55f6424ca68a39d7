/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c - strata_prepare: a constant operand in the layout that a plan's kernel reads.
 *
 * The provider says which operands it takes so, of which view, and writes the layout; here the memory is made and the views are compared. On a CPU the
 * memory begins with a head by which runs know it. */
#include "plan/plan.h"
#include "runtime/gpu.h"
#include <string.h>

/* The batch dims that tell items apart, then the matrix. */
static strata_tensor essence(const strata_tensor *t)
{
    strata_tensor x = *t;
    x.rank = 0;
    for (int d = 0; d < t->rank; d++) {
        if (d < t->rank - 2 && (t->dim[d] == 1 || t->stride[d] == 0)) continue;
        x.dim[x.rank] = t->dim[d];
        x.stride[x.rank++] = t->stride[d];
    }
    return x;
}

static bool same_dims(const strata_tensor *a, const strata_tensor *b)
{
    bool same = a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++) same = a->dim[d] == b->dim[d];
    return same;
}

/* The strides that lead anywhere */
static bool same_strides(const strata_tensor *a, const strata_tensor *b)
{
    for (int d = 0; d < a->rank; d++)
        if (a->dim[d] > 1 && a->stride[d] != b->stride[d]) return false;
    return true;
}

/* W has the type, the dims, the strides and the structure of the operand with which the plan was made. */
static strata_status check_view(strata_handle *h, const strata_plan *p, int operand, const strata_tensor *W)
{
    strata_tensor view;
    p->view(p, operand, &view);
    strata_status s = st_tensor_check_flags(&h->err, "strata_prepare", "W", W, view.flags);
    if (s) return s;
    const strata_tensor has = essence(W), want = essence(&view);
    if (W->type != view.type)
        s = STRATA_ERROR_TYPE;
    else if (!same_dims(&has, &want))
        s = STRATA_ERROR_SHAPE;
    else if (W->flags != view.flags || (strata_count(want) > 0 && !same_strides(&has, &want)))
        s = STRATA_ERROR_LAYOUT;
    if (!s) return STRATA_OK;
    char is[160], made[160];
    strata_tensor_describe(*W, is, sizeof is);
    strata_tensor_describe(view, made, sizeof made);
    st_fail(&h->err, s,
            "strata_prepare: W is %s and operand %d of the plan (%s) is %s%s: give the view with which the "
            "plan was made",
            is, operand, p->title, made, W->flags != view.flags ? ", of another structure" : "");
    const strata_tensor turned = strata_transpose(*W), t = essence(&turned);
    if (W->type == view.type && !turned.error && same_dims(&t, &want) && same_strides(&t, &want))
        st_err_remedy(&h->err, "strata_transpose(W)");
    return s;
}

strata_status strata_prepare(strata_handle *h, const strata_plan *p, int operand, strata_tensor W,
                             strata_tensor *prepared)
{
    strata_status s = st_handle_check(h, "strata_prepare");
    if (s) return s;
    st_err *e = &h->err;
    if (!prepared) return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_prepare: the result's address is NULL");
    memset(prepared, 0, sizeof *prepared);
    if (!p || p->magic != ST_PLAN_MAGIC)
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "strata_prepare: the plan is %s; make one with a function that ends in _plan",
                       p ? "destroyed, or not a strata_plan" : "NULL");
    if ((p->where == ST_ON_CUDA) != (h->gpu != NULL) || strcmp(p->device, h->device))
        return st_fail(e, STRATA_ERROR_STATE,
                       "strata_prepare: the plan (%s) was made for %s and the handle is on %s", p->title,
                       p->device, h->device);
    if (operand < 0 || operand >= p->operands)
        return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_prepare: operand is %d; the plan (%s) has 0 to %d",
                       operand, p->title, p->operands - 1);
    if (!(p->preparable >> operand & 1)) {
        st_fail(e, STRATA_ERROR_UNSUPPORTED,
                "strata_prepare: kernel %s reads operand %d as it lies: nothing to prepare", p->chosen.kernel,
                operand);
        st_err_remedy(
            e, "run the plan with the operand itself, or force a kernel that packs (strata_choice.kernel)");
        return STRATA_ERROR_UNSUPPORTED;
    }
    if ((s = check_view(h, p, operand, &W))) return s;
    if (h->gpu && !st_gpu_reaches(h, (char *)W.data + (p->extent ? p->extent[operand].lo : 0))) {
        st_fail(e, STRATA_ERROR_DEVICE, "strata_prepare: W at %p is host memory, which %s does not reach",
                W.data, h->device);
        st_err_remedy(e, "copy it to memory of strata_alloc on this handle");
        return STRATA_ERROR_DEVICE;
    }
    const uint64_t t0 = st_trace_begin();
    const size_t bytes = p->prepared_bytes(p, operand);
    void *to;
    if ((s = strata_alloc(h, bytes, &to))) return s;
    if ((s = p->prepare(h, p, operand, W.data, to))) {
        strata_free(h, to);
        return s;
    }
    const int64_t dim[1] = {(int64_t)bytes};
    *prepared = strata_array(to, STRATA_U8, 1, dim, NULL);
    prepared->flags |= STRATA_TENSOR_PREPARED;
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "plan", "prepare", "operand %d of %s, %zu bytes", operand, p->title, bytes);
    return STRATA_OK;
}
