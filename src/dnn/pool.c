/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - pooling: checks and output sizes; the windows are the pointwise engine's. */
#include "dnn/args.h"
#include "pointwise/pointwise.h"
#include <string.h>
#include <strata/dnn.h>

static const char *const side[2] = {"rows (h)", "columns (w)"};

/* Fills p's window fields and output dims from the options and x's dims. */
static strata_status describe(strata_handle *h, const char *who, const strata_pool *o, const strata_tensor *x,
                              st_pool_problem *p)
{
    st_err *e = &h->err;
    memset(p, 0, sizeof *p);
    if (!o)
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "%s: the options are NULL, but the window has no default: set window[2]", who);
    strata_status s = st_dnn_reserved(h, who, o->reserved);
    if (s) return s;
    if (o->kind != STRATA_POOL_MAX && o->kind != STRATA_POOL_AVERAGE)
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "%s: kind is %d; it is STRATA_POOL_MAX or STRATA_POOL_AVERAGE", who, (int)o->kind);
    if (x->rank != 4)
        return st_fail(e, STRATA_ERROR_SHAPE, "%s: x is %s, of rank %d; images have dims (n, c, h, w)", who,
                       ST_DIMS(*x), x->rank);
    p->kind = o->kind;
    p->n = x->dim[0], p->c = x->dim[1], p->h = x->dim[2], p->w = x->dim[3];
    p->count_padding = o->count_padding;
    int64_t out[2];
    for (int d = 0; d < 2; d++) {
        const int64_t len = x->dim[2 + d];
        p->window[d] = o->window[d];
        p->stride[d] = o->stride[d] ? o->stride[d] : o->window[d];
        p->pad[d] = o->pad[d];
        p->pad_end[d] = o->asymmetric ? o->pad_end[d] : o->pad[d];
        p->dilation[d] = o->dilation[d] ? o->dilation[d] : 1;
        const int64_t limit = INT64_C(1) << 30;
        if (p->window[d] < 1 || p->stride[d] < 1 || p->dilation[d] < 1 || p->pad[d] < 0 ||
            p->pad_end[d] < 0 || p->window[d] > limit || p->stride[d] > limit || p->dilation[d] > limit ||
            p->pad[d] > limit || p->pad_end[d] > limit || len > limit)
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           "%s: along the %s the window is %lld, stride %lld, dilation %lld, padding %lld "
                           "and %lld, image %lld: window, "
                           "stride and dilation must be at least 1, padding at least 0, none above 2^30",
                           who, side[d], (long long)p->window[d], (long long)p->stride[d],
                           (long long)p->dilation[d], (long long)p->pad[d], (long long)p->pad_end[d],
                           (long long)len);
        int64_t extent = (p->window[d] - 1) * p->dilation[d] + 1;
        if (p->pad[d] >= extent || p->pad_end[d] >= extent)
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           "%s: along the %s the padding is %lld and %lld, the window spans %lld: padding "
                           "must be smaller, else windows "
                           "would hold nothing of the image",
                           who, side[d], (long long)p->pad[d], (long long)p->pad_end[d], (long long)extent);
        const int64_t room = len + p->pad[d] + p->pad_end[d] - extent;
        if (room < 0)
            return st_fail(
                e, STRATA_ERROR_SHAPE,
                "%s: along the %s the window spans %lld and the padded image is %lld: the window must fit",
                who, side[d], (long long)extent, (long long)(room + extent));
        out[d] = room / p->stride[d] + 1;
        if (o->ceil_mode) {
            out[d] = st_ceil_div(room, p->stride[d]) + 1;
            if ((out[d] - 1) * p->stride[d] >= len + p->pad[d]) out[d]--;
        }
    }
    p->p = out[0], p->q = out[1];
    int64_t area;
    if (st_mul_over(p->h, p->w, &area) || area > INT32_MAX || p->window[0] * p->window[1] > INT32_MAX)
        return st_fail(e, STRATA_ERROR_OVERFLOW,
                       "%s: an image of %lldx%lld or a window of %lldx%lld has more than 2^31 - 1 elements",
                       who, (long long)p->h, (long long)p->w, (long long)p->window[0],
                       (long long)p->window[1]);
    return STRATA_OK;
}

static strata_status check_out(strata_handle *h, const char *who, const char *name, const strata_tensor *y,
                               const st_pool_problem *p)
{
    if (y->rank == 4 && y->dim[0] == p->n && y->dim[1] == p->c && y->dim[2] == p->p && y->dim[3] == p->q)
        return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_SHAPE,
                   "%s: %s is %s and must be %lldx%lldx%lldx%lld for this image and window", who, name,
                   ST_DIMS(*y), (long long)p->n, (long long)p->c, (long long)p->p, (long long)p->q);
}

static strata_status check_argmax(strata_handle *h, const char *who, const strata_tensor *a, bool output,
                                  const st_pool_problem *p)
{
    strata_status s = output ? st_tensor_check_output(&h->err, who, "argmax", a)
                             : st_tensor_check(&h->err, who, "argmax", a);
    if (s) return s;
    if (a->type != STRATA_I32)
        return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: argmax is %s and must be i32", who,
                       strata_type_name((strata_type)a->type));
    return check_out(h, who, "argmax", a, p);
}

strata_status strata_pool_output(strata_handle *h, const strata_pool *o, strata_tensor x, int64_t dim[4])
{
    static const char who[] = "strata_pool_output";
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!dim) return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: dim is NULL; it receives 4 numbers", who);
    if (x.error) return st_tensor_check(&h->err, who, "x", &x);
    st_pool_problem p;
    s = describe(h, who, o, &x, &p);
    if (s) return s;
    dim[0] = p.n, dim[1] = p.c, dim[2] = p.p, dim[3] = p.q;
    return STRATA_OK;
}

static void strides(int64_t s[4], const strata_tensor *t)
{
    for (int d = 0; d < 4; d++) s[d] = t->stride[d];
}

strata_status strata_pool_forward(strata_handle *h, const strata_pool *o, strata_tensor x, strata_tensor y,
                                  strata_tensor argmax)
{
    static const char who[] = "strata_pool_forward";
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (o && o->accumulate)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: accumulate is for strata_pool_backward", who);
    if (o && o->kind != STRATA_POOL_MAX && st_dnn_present(&argmax))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: an average has no argmax; leave that tensor zero",
                       who);
    const bool arg = st_dnn_present(&argmax) && (!o || o->kind == STRATA_POOL_MAX);
    st_pool_problem p;
    if ((s = st_dnn_check(h, who, (st_dnn_arg[]){{"x", &x, .output = false}, {"y", &y, .output = true}}, 2,
                          false)))
        return s;
    if ((s = describe(h, who, o, &x, &p)) || (s = check_out(h, who, "y", &y, &p))) return s;
    if (arg) {
        const st_dnn_arg all[] = {
            {"x", &x, .output = false}, {"y", &y, .output = true}, {"argmax", &argmax, .output = true}};
        if ((s = check_argmax(h, who, &argmax, true, &p)) || (s = st_dnn_check_alias(h, who, all, 3, false)))
            return s;
        p.has_argmax = 1;
        strides(p.as, &argmax);
    }
    p.type = x.type;
    strides(p.xs, &x);
    strides(p.ys, &y);
    if (p.n * p.c * p.p * p.q == 0) return STRATA_OK;
    return st_pw_pool(h, who, &p, (void *const[]){x.data, y.data, arg ? argmax.data : NULL});
}

strata_status strata_pool_backward(strata_handle *h, const strata_pool *o, strata_tensor x, strata_tensor dy,
                                   strata_tensor argmax, strata_tensor dx)
{
    static const char who[] = "strata_pool_backward";
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    const bool max = o && o->kind == STRATA_POOL_MAX, arg = max && st_dnn_present(&argmax),
               use_x = max && !arg;
    st_pool_problem p;
    const st_dnn_arg all[] = {
        {"dy", &dy, .output = false}, {"dx", &dx, .output = true}, {"x", &x, .output = false}};
    if ((s = st_dnn_check(h, who, all, use_x ? 3 : 2, false))) return s;
    if ((s = describe(h, who, o, &dx, &p)) || (s = check_out(h, who, "dy", &dy, &p))) return s;
    if (use_x) {
        if (!st_dnn_present(&x))
            return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                           "%s: neither argmax nor x is given; the gradient of max pooling needs one of them",
                           who);
        if ((s = st_dnn_same_dims(h, who, "dx", &dx, "x", &x))) return s;
        strides(p.as, &x);
    }
    if (arg) {
        const st_dnn_arg both[] = {{"argmax", &argmax, .output = false}, {"dx", &dx, .output = true}};
        if ((s = check_argmax(h, who, &argmax, false, &p)) ||
            (s = st_dnn_check_alias(h, who, both, 2, false)))
            return s;
        p.has_argmax = 1;
        strides(p.as, &argmax);
    }
    p.type = dx.type;
    p.backward = 1;
    p.accumulate = o->accumulate;
    strides(p.xs, &dx);
    strides(p.ys, &dy);
    if (p.n * p.c * p.h * p.w == 0) return STRATA_OK;
    return st_pw_pool(h, who, &p,
                      (void *const[]){use_x ? x.data : NULL, dy.data, arg ? argmax.data : NULL, dx.data});
}
