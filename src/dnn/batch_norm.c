/* SPDX-License-Identifier: Apache-2.0 */
/* batch_norm.c - batch normalisation: checks, and the description for the pointwise engine's per-channel family. */
#include "dnn/args.h"
#include "pointwise/pointwise.h"
#include <string.h>
#include <strata/dnn.h>

enum { IN = 1, OUT = 2, NEEDED = 4 };
typedef struct role {
    const char *name;
    int at;   /* st_norm_operand */
    int uses; /* IN, OUT, NEEDED */
} role;

static const strata_tensor *tensor_of(const strata_batch_norm_tensors *t, int at)
{
    switch (at) {
    case ST_NORM_X: return &t->x;
    case ST_NORM_Y: return &t->y;
    case ST_NORM_DY: return &t->dy;
    case ST_NORM_DX: return &t->dx;
    case ST_NORM_SCALE: return &t->scale;
    case ST_NORM_SHIFT: return &t->shift;
    case ST_NORM_RUNNING_MEAN: return &t->running_mean;
    case ST_NORM_RUNNING_VAR: return &t->running_var;
    case ST_NORM_SAVE_MEAN: return &t->save_mean;
    case ST_NORM_SAVE_INV_STD: return &t->save_inv_std;
    case ST_NORM_DSCALE: return &t->dscale;
    default: return &t->dshift;
    }
}

static strata_status check_options(strata_handle *h, const char *who, const strata_batch_norm *o)
{
    strata_status s = st_dnn_reserved(h, who, o->reserved);
    if (s) return s;
    if (!(o->epsilon >= 0))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: epsilon is %g; it must be 0 (meaning 1e-5) or positive", who, o->epsilon);
    if (!(o->momentum >= 0 && o->momentum <= 1))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: momentum is %g; it must lie in [0, 1] (0 means 0.1)", who, o->momentum);
    return STRATA_OK;
}

static strata_status check_shapes(strata_handle *h, const char *who, const strata_batch_norm_tensors *t,
                                  const role *roles, int n)
{
    const strata_tensor *x = &t->x;
    if (x->rank < 2 || x->rank > ST_NORM_DIMS)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: x is %s, of rank %d; ranks 2 to 5 are (n, c) to (n, c, d, h, w)", who,
                       ST_DIMS(*x), x->rank);
    for (int i = 0; i < n; i++) {
        const strata_tensor *v = tensor_of(t, roles[i].at);
        if (!(roles[i].uses & NEEDED) && !st_dnn_present(v)) continue;
        if (roles[i].at < ST_NORM_SCALE) {
            strata_status s = st_dnn_same_dims(h, who, "x", x, roles[i].name, v);
            if (s) return s;
        } else if (v->rank != 1 || v->dim[0] != x->dim[1]) {
            return st_fail(&h->err, STRATA_ERROR_SHAPE,
                           "%s: %s is %s and x is %s: it must be a vector of x's %lld channels (dim 1)", who,
                           roles[i].name, ST_DIMS(*v), ST_DIMS(*x), (long long)x->dim[1]);
        }
    }
    return STRATA_OK;
}

/* Checks all that the operator uses and fills the problem; *elements: of one channel. */
static strata_status describe(strata_handle *h, const char *who, st_norm_op op, const strata_batch_norm *o,
                              const strata_batch_norm_tensors *t, const role *roles, int n,
                              st_norm_problem *p, void **data, int64_t *elements)
{
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!t) return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: the tensors are NULL", who);
    static const strata_batch_norm usual;
    if (!o) o = &usual;
    st_dnn_arg args[ST_NORM_OPERANDS];
    for (int i = 0; i < n; i++)
        args[i] = (st_dnn_arg){roles[i].name, tensor_of(t, roles[i].at), roles[i].uses & OUT,
                               !(roles[i].uses & NEEDED), roles[i].at >= ST_NORM_SCALE};
    if ((s = check_options(h, who, o)) || (s = st_dnn_check(h, who, args, n, true)) ||
        (s = check_shapes(h, who, t, roles, n)))
        return s;
    memset(p, 0, sizeof *p);
    memset(data, 0, ST_NORM_OPERANDS * sizeof *data);
    p->type = t->x.type;
    p->op = op;
    *elements = 1;
    for (int d = 0; d < ST_NORM_DIMS; d++) {
        p->dim[d] = d < t->x.rank ? t->x.dim[d] : 1;
        if (d != 1) *elements *= p->dim[d];
    }
    for (int i = 0; i < n; i++) {
        const strata_tensor *v = args[i].t;
        const int at = roles[i].at;
        if (!v->data) continue;
        data[at] = v->data;
        p->present |= INT64_C(1) << at;
        for (int d = 0; at < ST_NORM_SCALE && d < v->rank; d++)
            p->stride[at][d] = v->dim[d] > 1 ? v->stride[d] : 0;
        if (at >= ST_NORM_SCALE) p->vector[at] = v->stride[0];
    }
    p->accumulate = op == ST_NORM_BACKWARD && o->accumulate;
    if (op == ST_NORM_TRAINING) {
        p->running_biased = o->running_biased;
        p->momentum = o->momentum > 0 ? o->momentum : 0.1;
    }
    if (op != ST_NORM_BACKWARD) p->epsilon = o->epsilon > 0 ? o->epsilon : 1e-5;
    return STRATA_OK;
}

strata_status strata_batch_norm_training(strata_handle *h, const strata_batch_norm *o,
                                         const strata_batch_norm_tensors *t)
{
    static const char who[] = "strata_batch_norm_training";
    static const role roles[] = {{"x", ST_NORM_X, IN | NEEDED},
                                 {"y", ST_NORM_Y, OUT | NEEDED},
                                 {"scale", ST_NORM_SCALE, IN},
                                 {"shift", ST_NORM_SHIFT, IN},
                                 {"running_mean", ST_NORM_RUNNING_MEAN, OUT},
                                 {"running_var", ST_NORM_RUNNING_VAR, OUT},
                                 {"save_mean", ST_NORM_SAVE_MEAN, OUT},
                                 {"save_inv_std", ST_NORM_SAVE_INV_STD, OUT}};
    st_norm_problem p;
    void *data[ST_NORM_OPERANDS];
    int64_t elements;
    strata_status s = describe(h, who, ST_NORM_TRAINING, o, t, roles, ST_COUNT(roles), &p, data, &elements);
    if (s || elements == 0 || p.dim[1] == 0) return s;
    if (elements == 1 && data[ST_NORM_RUNNING_VAR] && !p.running_biased)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: x is %s, one element a channel: its unbiased variance, which running_var takes, "
                       "does not exist; give more "
                       "elements, or set running_biased",
                       who, ST_DIMS(t->x));
    return st_pw_norm(h, who, &p, data);
}

strata_status strata_batch_norm_inference(strata_handle *h, const strata_batch_norm *o,
                                          const strata_batch_norm_tensors *t)
{
    static const char who[] = "strata_batch_norm_inference";
    static const role roles[] = {{"x", ST_NORM_X, IN | NEEDED},
                                 {"y", ST_NORM_Y, OUT | NEEDED},
                                 {"scale", ST_NORM_SCALE, IN},
                                 {"shift", ST_NORM_SHIFT, IN},
                                 {"running_mean", ST_NORM_RUNNING_MEAN, IN | NEEDED},
                                 {"running_var", ST_NORM_RUNNING_VAR, IN | NEEDED}};
    st_norm_problem p;
    void *data[ST_NORM_OPERANDS];
    int64_t elements;
    strata_status s = describe(h, who, ST_NORM_INFERENCE, o, t, roles, ST_COUNT(roles), &p, data, &elements);
    if (s || elements == 0 || p.dim[1] == 0) return s;
    return st_pw_norm(h, who, &p, data);
}

/* No elements: the sums are 0. */
strata_status strata_batch_norm_backward(strata_handle *h, const strata_batch_norm *o,
                                         const strata_batch_norm_tensors *t)
{
    static const char who[] = "strata_batch_norm_backward";
    static const role roles[] = {{"x", ST_NORM_X, IN | NEEDED},
                                 {"dy", ST_NORM_DY, IN | NEEDED},
                                 {"scale", ST_NORM_SCALE, IN},
                                 {"save_mean", ST_NORM_SAVE_MEAN, IN | NEEDED},
                                 {"save_inv_std", ST_NORM_SAVE_INV_STD, IN | NEEDED},
                                 {"dx", ST_NORM_DX, OUT},
                                 {"dscale", ST_NORM_DSCALE, OUT},
                                 {"dshift", ST_NORM_DSHIFT, OUT}};
    st_norm_problem p;
    void *data[ST_NORM_OPERANDS];
    int64_t elements;
    strata_status s = describe(h, who, ST_NORM_BACKWARD, o, t, roles, ST_COUNT(roles), &p, data, &elements);
    if (s || p.dim[1] == 0 || !(data[ST_NORM_DX] || data[ST_NORM_DSCALE] || data[ST_NORM_DSHIFT])) return s;
    if (elements == 0) {
        const strata_tensor *sums[] = {&t->dscale, &t->dshift}; /* of nothing: 0 */
        for (int i = 0; i < 2 && !s && !p.accumulate; i++)
            if (sums[i]->data) s = strata_fill(h, *sums[i], STRATA_ZERO);
        return s;
    }
    return st_pw_norm(h, who, &p, data);
}
