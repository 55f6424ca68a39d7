/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.c - softmax and log-softmax over one dim, as programs of the pointwise engine. */
#include "dnn/args.h"
#include "pointwise/pointwise.h"
#include <strata/dnn.h>

static strata_status axis_of(strata_handle *h, const char *who, const strata_softmax *o,
                             const strata_tensor *x, uint32_t *axes)
{
    strata_status s = st_dnn_reserved(h, who, o->reserved);
    if (s) return s;
    int axis = o->axis_is_set ? o->axis : o->axis ? o->axis : -1;
    if (axis < 0) axis += x->rank;
    if (x->rank == 0)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: the tensor is a single element, of rank 0: it has no axis; give it a dim of 1",
                       who);
    if (axis < 0 || axis >= x->rank)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: axis is %d, but the tensor is %s, of rank %d: axes are %d to %d", who, o->axis,
                       ST_DIMS(*x), x->rank, -x->rank, x->rank - 1);
    *axes = 1u << axis;
    return STRATA_OK;
}

strata_status strata_softmax_forward(strata_handle *h, const strata_softmax *o, strata_tensor x,
                                     strata_tensor y)
{
    static const char who[] = "strata_softmax_forward";
    static const strata_softmax usual;
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!o) o = &usual;
    uint32_t axes;
    const st_dnn_arg args[] = {{"x", &x, .output = false}, {"y", &y, .output = true}};
    if ((s = st_dnn_check(h, who, args, 2, true)) || (s = st_dnn_same_dims(h, who, "x", &x, "y", &y)) ||
        (s = axis_of(h, who, o, &x, &axes)))
        return s;
    if (strata_count(x) == 0) return STRATA_OK;
    const char *text =
        o->log ? "d = x - max(x); y = d - log(sum(exp(d)))" : "e = exp(x - max(x)); y = e * (1 / sum(e))";
    return st_pw_run(h, who, text, (const strata_operand[]){{"x", x}, {"y", y}, {NULL, x}}, axes);
}

strata_status strata_softmax_backward(strata_handle *h, const strata_softmax *o, strata_tensor y,
                                      strata_tensor dy, strata_tensor dx)
{
    static const char who[] = "strata_softmax_backward";
    static const strata_softmax usual;
    static const char *const text[2][2] = {
        {"dx = y * (dy - sum(dy * y))", "dx = dx + y * (dy - sum(dy * y))"},
        {"dx = dy - exp(y) * sum(dy)", "dx = dx + (dy - exp(y) * sum(dy))"}};
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!o) o = &usual;
    uint32_t axes;
    const st_dnn_arg args[] = {
        {"y", &y, .output = false}, {"dy", &dy, .output = false}, {"dx", &dx, .output = true}};
    if ((s = st_dnn_check(h, who, args, 3, true)) || (s = st_dnn_same_dims(h, who, "y", &y, "dy", &dy)) ||
        (s = st_dnn_same_dims(h, who, "y", &y, "dx", &dx)) || (s = axis_of(h, who, o, &y, &axes)))
        return s;
    if (strata_count(y) == 0) return STRATA_OK;
    return st_pw_run(h, who, text[o->log][o->accumulate],
                     (const strata_operand[]){{"y", y}, {"dy", dy}, {"dx", dx}, {NULL, y}}, axes);
}
