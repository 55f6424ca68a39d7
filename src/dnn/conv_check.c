/* SPDX-License-Identifier: Apache-2.0 */
/* conv_check.c - checks of convolution: options, types, dims, overlap, epilogue operands. Nothing is touched before they pass. */
#include "dnn/args.h"
#include "dnn/conv.h"
#include <stdio.h>
#include <string.h>

static const char *const side[2] = {"rows (h)", "columns (w)"};
enum { LIMIT = 1 << 30 };

static strata_status bad_option(strata_handle *h, const char *who, const char *name, int d, int64_t value,
                                const char *rule)
{
    return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: %s[%d] is %lld; it must be %s, and at most 2^30", who,
                   name, d, (long long)value, rule);
}

static strata_status options(strata_handle *h, const char *who, const strata_conv *o, st_conv *c)
{
    static const strata_conv usual;
    if (!o) o = &usual;
    strata_status s = st_dnn_reserved(h, who, o->reserved);
    if (s) return s;
    for (int d = 0; d < 2; d++) {
        c->pad[d] = o->pad[d];
        c->pad_end[d] = o->asymmetric ? o->pad_end[d] : o->pad[d];
        c->stride[d] = o->stride[d] ? o->stride[d] : 1;
        c->dilation[d] = o->dilation[d] ? o->dilation[d] : 1;
        if (c->pad[d] < 0 || c->pad[d] > LIMIT) return bad_option(h, who, "pad", d, o->pad[d], "0 or more");
        if (c->pad_end[d] < 0 || c->pad_end[d] > LIMIT)
            return bad_option(h, who, "pad_end", d, o->pad_end[d], "0 or more");
        if (c->stride[d] < 1 || c->stride[d] > LIMIT)
            return bad_option(h, who, "stride", d, o->stride[d], "1 or more (0 means 1)");
        if (c->dilation[d] < 1 || c->dilation[d] > LIMIT)
            return bad_option(h, who, "dilation", d, o->dilation[d], "1 or more (0 means 1)");
        if (!o->asymmetric && o->pad_end[d])
            return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                           "%s: pad_end[%d] is %lld but asymmetric is not set: set it, or leave pad_end 0 "
                           "(pad then serves both sides)",
                           who, d, (long long)o->pad_end[d]);
    }
    c->groups = o->groups ? o->groups : 1;
    if (c->groups < 1)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: groups is %lld; it must be 1 or more (0 means 1)",
                       who, (long long)o->groups);
    c->flip = o->flip;
    c->accumulate = o->accumulate;
    c->epilogue = o->epilogue;
    c->operand = o->operands;
    return STRATA_OK;
}

/* names of the three tensors, by kind: image, weights, output */
static const char *const names[3][3] = {{"x", "w", "y"}, {"dx", "w", "dy"}, {"x", "dw", "dy"}};

strata_status st_conv_sizes(strata_handle *h, const char *who, const strata_conv *o, const strata_tensor *x,
                            const strata_tensor *w, st_conv *c)
{
    const char *const *name = names[c->kind];
    strata_status s = options(h, who, o, c);
    if (s) return s;
    c->who = who;
    c->x = *x;
    c->w = *w;
    if (x->rank != 4)
        return st_fail(
            &h->err, STRATA_ERROR_SHAPE,
            "%s: %s is %s, of rank %d; images have dims (n, c, h, w): see strata_nchw, strata_nhwc", who,
            name[0], ST_DIMS(*x), (int)x->rank);
    if (w->rank != 4)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: %s is %s, of rank %d; filters have dims (out, in / groups, rows, columns)", who,
                       name[1], ST_DIMS(*w), (int)w->rank);
    c->n = x->dim[0], c->c = x->dim[1], c->h = x->dim[2], c->wd = x->dim[3];
    c->o = w->dim[0], c->r = w->dim[2], c->s = w->dim[3];
    if (c->c % c->groups || c->o % c->groups)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: groups is %lld; it must divide the %lld channels of %s and the %lld of %s", who,
                       (long long)c->groups, (long long)c->c, name[0], (long long)c->o, name[1]);
    if (w->dim[1] != c->c / c->groups)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: %s is %s and %s is %s: %s's dim 1 is %lld and must be %s's channels / groups = "
                       "%lld / %lld = %lld",
                       who, name[0], ST_DIMS(*x), name[1], ST_DIMS(*w), name[1], (long long)w->dim[1],
                       name[0], (long long)c->c, (long long)c->groups, (long long)(c->c / c->groups));
    const int64_t image[2] = {c->h, c->wd}, kernel[2] = {c->r, c->s};
    int64_t out[2];
    for (int d = 0; d < 2; d++) {
        int64_t reach, padded;
        if (kernel[d] < 1)
            return st_fail(&h->err, STRATA_ERROR_SHAPE, "%s: %s is %s: a filter has at least one of the %s",
                           who, name[1], ST_DIMS(*w), side[d]);
        if (st_mul_over(kernel[d] - 1, c->dilation[d], &reach) || st_add_over(reach, 1, &reach) ||
            st_add_over(image[d], c->pad[d] + c->pad_end[d], &padded) || padded > INT64_MAX / 4 ||
            reach > INT64_MAX / 4)
            return st_fail(&h->err, STRATA_ERROR_OVERFLOW,
                           "%s: along the %s %s or %s with padding and dilation does not fit 63 bits", who,
                           side[d], name[0], name[1]);
        if (reach > padded)
            return st_fail(&h->err, STRATA_ERROR_SHAPE,
                           "%s: along the %s the filter reaches over %lld (%lld taps, dilation %lld) and the "
                           "padded image is %lld "
                           "(%lld + %lld + %lld): the filter must fit",
                           who, side[d], (long long)reach, (long long)kernel[d], (long long)c->dilation[d],
                           (long long)padded, (long long)image[d], (long long)c->pad[d],
                           (long long)c->pad_end[d]);
        out[d] = (padded - reach) / c->stride[d] + 1;
    }
    c->p = out[0], c->q = out[1];
    return STRATA_OK;
}

static strata_status output_dims(strata_handle *h, const st_conv *c)
{
    const char *const *name = names[c->kind];
    const strata_tensor *y = &c->y;
    if (y->rank == 4 && y->dim[0] == c->n && y->dim[1] == c->o && y->dim[2] == c->p && y->dim[3] == c->q)
        return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_SHAPE,
                   "%s: %s is %s and must be %lldx%lldx%lldx%lld: that is what %s %s and %s %s give with "
                   "padding %lld,%lld (end %lld,%lld), "
                   "stride %lld,%lld, dilation %lld,%lld",
                   c->who, name[2], ST_DIMS(*y), (long long)c->n, (long long)c->o, (long long)c->p,
                   (long long)c->q, name[0], ST_DIMS(c->x), name[1], ST_DIMS(c->w), (long long)c->pad[0],
                   (long long)c->pad[1], (long long)c->pad_end[0], (long long)c->pad_end[1],
                   (long long)c->stride[0], (long long)c->stride[1], (long long)c->dilation[0],
                   (long long)c->dilation[1]);
}

static strata_status epilogue(strata_handle *h, st_conv *c)
{
    c->operands = 0;
    if (!c->epilogue) {
        if (c->operand && c->operand[0].name)
            return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                           "%s: operands are given (%s, ...) but no epilogue reads them", c->who,
                           c->operand[0].name);
        return STRATA_OK;
    }
    if (c->kind != ST_CONV_FORWARD)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: an epilogue is for strata_conv_forward only; leave it NULL", c->who);
    if (st_tile_epilogue_use(c->epilogue, "index").called)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                       "%s: the epilogue uses index(), which has no meaning inside a convolution", c->who);
    const int64_t dims[4] = {c->n, c->o, c->p, c->q};
    for (const strata_operand *o = c->operand; o && o->name; o++) {
        if (c->operands == ST_EPI_OPERANDS)
            return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: more than %d operands of the epilogue",
                           c->who, ST_EPI_OPERANDS);
        if (strlen(o->name) >= ST_EXPR_NAME || !o->name[0] || strcmp(o->name, "acc") == 0 ||
            strcmp(o->name, "out") == 0)
            return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                           "%s: an operand is named '%.40s'; names have 1 to %d characters, and acc (the "
                           "sum) and out (the result) are taken",
                           c->who, o->name, ST_EXPR_NAME - 1);
        const st_epi_use use = st_tile_epilogue_use(c->epilogue, o->name);
        const bool written = use.written;
        const strata_tensor *t = &o->tensor;
        strata_status s = written ? st_tensor_check_output(&h->err, c->who, o->name, t)
                                  : st_tensor_check(&h->err, c->who, o->name, t);
        if (s) return s;
        bool fits = t->rank <= 4;
        if (!use.used) { /* the parser will know the name that was meant */
            fits = false;
        } else if (use.index == ST_INDEX_M) {
            return st_fail(
                &h->err, STRATA_ERROR_SHAPE,
                "%s: the epilogue writes %s[m]; a convolution has no rows, only channels: write %s[n]",
                c->who, o->name, o->name);
        } else if (use.index == ST_INDEX_N) {
            if (t->rank != 1 || t->dim[0] != c->o)
                return st_fail(&h->err, STRATA_ERROR_SHAPE,
                               "%s: %s is %s; written %s[n] it must be a vector of the %lld output channels",
                               c->who, o->name, ST_DIMS(*t), o->name, (long long)c->o);
            c->along_channels |= 1u << c->operands;
        } else {
            for (int d = 0; fits && d < t->rank; d++) {
                const int64_t want = dims[4 - t->rank + d];
                fits = t->dim[d] == want || (t->dim[d] == 1 && !written);
            }
            fits = fits && !(written && t->rank != 4);
            if (!fits)
                return st_fail(&h->err, STRATA_ERROR_SHAPE,
                               "%s: %s is %s and does not %s %lldx%lldx%lldx%lld (n, c, h, w)%s%s%s", c->who,
                               o->name, ST_DIMS(*t), written ? "have the output's dims" : "broadcast to",
                               (long long)dims[0], (long long)dims[1], (long long)dims[2], (long long)dims[3],
                               t->rank == 1 ? "; a vector along the channels is written " : "",
                               t->rank == 1 ? o->name : "", t->rank == 1 ? "[n]" : "");
        }
        if (st_tensor_overlap(t, &c->y))
            return st_fail(&h->err, STRATA_ERROR_ALIAS,
                           "%s: %s overlaps y in memory; use accumulate to add to what y holds", c->who,
                           o->name);
        if (written && (st_tensor_overlap(t, &c->x) || st_tensor_overlap(t, &c->w)))
            return st_fail(&h->err, STRATA_ERROR_ALIAS, "%s: the output %s overlaps x or w in memory", c->who,
                           o->name);
        c->operands++;
    }
    return STRATA_OK;
}

strata_status st_conv_check(strata_handle *h, st_conv_kind kind, const char *who, const strata_conv *o,
                            strata_tensor x, strata_tensor w, strata_tensor y, st_conv *c)
{
    memset(c, 0, sizeof *c);
    c->kind = kind;
    const char *const *name = names[kind];
    const st_dnn_arg arg[3] = {{.name = name[0], .t = &x, .output = kind == ST_CONV_DATA},
                               {.name = name[1], .t = &w, .output = kind == ST_CONV_WEIGHTS},
                               {.name = name[2], .t = &y, .output = kind == ST_CONV_FORWARD}};
    strata_status s = st_dnn_check(h, who, arg, 3, false);
    if (s) return s;
    s = st_conv_sizes(h, who, o, &x, &w, c);
    if (s) return s;
    c->y = y;
    c->es = x.type == STRATA_F32 ? 4 : 8;
    s = output_dims(h, c);
    if (s) return s;
    return epilogue(h, c);
}
