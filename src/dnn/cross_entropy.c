/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy.c - cross-entropy of logits against labels or probabilities, and its gradient, as programs of the pointwise engine.
 * Logits are taken relative to their row's maximum d = x - max(x), so that log(sum(exp(d))) - d[label] neither overflows nor cancels
 * more than it must. Labels are checked before anything is written, except where they lie in the memory of a GPU,
 * which is not waited for: there the loss (and the gradient) of a row whose label is no class is NaN. */
#include "dnn/args.h"
#include "pointwise/pointwise.h"
#include "runtime/gpu.h"
#include <stdio.h>
#include <strata/dnn.h>

/* A vector over the rows, seen as rows x 1. */
static strata_tensor column(strata_tensor v, int64_t rows)
{
    v.stride[0] = v.rank == 1 ? v.stride[0] : 0;
    v.rank = 2;
    v.dim[0] = rows;
    v.dim[1] = 1;
    v.stride[1] = 0;
    return v;
}

static int64_t label_at(const strata_tensor *l, int64_t row)
{
    const int64_t at = row * l->stride[0];
    return l->type == STRATA_I64 ? ((const int64_t *)l->data)[at] : (int64_t)((const int32_t *)l->data)[at];
}

static bool on_device(strata_handle *h, const strata_tensor *l)
{
    return h->gpu && l->dim[0] > 0 && st_gpu_reaches(h, l->data);
}

/* What is added to a row whose label was not looked at: 0, or NaN where it is no class. */
static const char *unchecked(char *buf, size_t n, bool hard, strata_handle *h, const strata_tensor *l,
                             int64_t classes)
{
    buf[0] = 0;
    if (hard && on_device(h, l))
        snprintf(buf, n, " + select(label >= 0 && label < %lld, 0, 0 / 0)", (long long)classes);
    return buf;
}

static strata_status check_labels(strata_handle *h, const char *who, const strata_cross_entropy *o,
                                  const strata_tensor *x, const strata_tensor *l, bool *hard)
{
    strata_status s = st_tensor_check(&h->err, who, "labels", l);
    if (s) return s;
    *hard = l->type == STRATA_I32 || l->type == STRATA_I64;
    if (!*hard) {
        if (l->type != x->type)
            return st_fail(&h->err, STRATA_ERROR_TYPE,
                           "%s: labels are %s; they are i32 or i64, or probabilities of the logits' type, %s",
                           who, strata_type_name((strata_type)l->type),
                           strata_type_name((strata_type)x->type));
        if (o->use_ignore)
            return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                           "%s: use_ignore is set, but the labels are probabilities, of which none can be "
                           "ignored: set their row of dloss to 0 instead",
                           who);
        return st_dnn_same_dims(h, who, "logits", x, "labels", l);
    }
    if (l->rank != 1 || l->dim[0] != x->dim[0])
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: labels are %s and the logits %s: there must be one label a row (%lld)", who,
                       ST_DIMS(*l), ST_DIMS(*x), (long long)x->dim[0]);
    if (on_device(h, l)) return STRATA_OK;
    for (int64_t r = 0; r < x->dim[0]; r++) {
        const int64_t v = label_at(l, r);
        if ((v < 0 || v >= x->dim[1]) && !(o->use_ignore && v == o->ignore_label))
            return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                           "%s: the label of row %lld is %lld; labels lie in [0, %lld)%s", who, (long long)r,
                           (long long)v, (long long)x->dim[1],
                           o->use_ignore ? " or equal ignore_label" : " (ignore_label is not in use)");
    }
    return STRATA_OK;
}

static strata_status check_options(strata_handle *h, const char *who, const strata_cross_entropy *o,
                                   const strata_tensor *x)
{
    strata_status s = st_dnn_reserved(h, who, o->reserved);
    if (s) return s;
    if (!(o->smoothing >= 0 && o->smoothing < 1))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: smoothing is %g; it must lie in [0, 1)", who,
                       o->smoothing);
    if (x->rank != 2)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: the logits are %s, of rank %d; they have dims (rows, classes)", who, ST_DIMS(*x),
                       x->rank);
    return STRATA_OK;
}

/* Positions and labels are compared as numbers of the program's precision: past 2^24 classes that must be f64, which one f64 operand
 * (zero) makes it. */
static bool needs_f64(const strata_tensor *x, bool hard)
{
    return hard && x->type == STRATA_F32 && x->dim[1] > 1 << 24;
}

strata_status strata_cross_entropy_forward(strata_handle *h, const strata_cross_entropy *o,
                                           strata_tensor logits, strata_tensor labels, strata_tensor loss)
{
    static const char who[] = "strata_cross_entropy_forward";
    static const strata_cross_entropy usual;
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!o) o = &usual;
    bool hard;
    const st_dnn_arg typed[] = {{"logits", &logits, .output = false}, {"loss", &loss, .output = true}};
    const st_dnn_arg all[] = {{"loss", &loss, .output = true}, {"labels", &labels, .output = false}};
    if ((s = st_dnn_check(h, who, typed, 2, false)) || (s = check_options(h, who, o, &logits)) ||
        (s = check_labels(h, who, o, &logits, &labels, &hard)) ||
        (s = st_dnn_check_alias(h, who, all, 2, false)))
        return s;
    const int64_t rows = logits.dim[0], classes = logits.dim[1];
    if (loss.rank != 1 || loss.dim[0] != rows)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: loss is %s and the logits %s: it must be a vector of %lld rows", who,
                       ST_DIMS(loss), ST_DIMS(logits), (long long)rows);
    if (rows == 0) return STRATA_OK;
    static const double zero = 0;
    const bool wide = needs_f64(&logits, hard);
    const double sm = o->smoothing, share = classes ? sm / (double)classes : 0;
    char text[512], guard[80];
    const char *program = text;
    unchecked(guard, sizeof guard, hard, h, &labels, classes);
    if (hard && sm == 0 && !o->use_ignore && !wide && !guard[0])
        program = "d = x - max(x); loss = log(sum(exp(d))) - sum(select(index(-1) == label, d, 0))";
    else if (hard) {
        char value[256], smooth[64] = "";
        if (sm > 0) snprintf(smooth, sizeof smooth, " - %.17g * sum(d)", share);
        snprintf(value, sizeof value,
                 "log(sum(exp(d))) - %.17g * sum(select(index(-1) == label, d, 0))%s%s%s", 1 - sm, smooth,
                 wide ? " + zero" : "", guard);
        if (o->use_ignore)
            snprintf(text, sizeof text, "d = x - max(x); loss = select(label == %lld, 0, %s)",
                     (long long)o->ignore_label, value);
        else
            snprintf(text, sizeof text, "d = x - max(x); loss = %s", value);
    } else {
        /* a class of probability 0 does not see a logit of -Inf */
        snprintf(text, sizeof text,
                 "d = x - max(x); t = %.17g * label + %.17g; l = log(sum(exp(d))); loss = sum(select(t == 0, "
                 "0, t * (l - d)))",
                 1 - sm, share);
    }
    strata_operand ops[5] = {
        {"x", logits}, {"label", hard ? column(labels, rows) : labels}, {"loss", column(loss, rows)}};
    if (wide) ops[3] = (strata_operand){"zero", strata_point(&zero, STRATA_F64)};
    return st_pw_run(h, who, program, ops, 2);
}

strata_status strata_cross_entropy_backward(strata_handle *h, const strata_cross_entropy *o,
                                            strata_tensor logits, strata_tensor labels, strata_tensor dloss,
                                            strata_tensor dlogits)
{
    static const char who[] = "strata_cross_entropy_backward";
    static const strata_cross_entropy usual;
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!o) o = &usual;
    bool hard;
    const st_dnn_arg typed[] = {{"logits", &logits, .output = false},
                                {"dloss", &dloss, .output = false},
                                {"dlogits", &dlogits, .output = true}};
    const st_dnn_arg all[] = {{"dlogits", &dlogits, .output = true}, {"labels", &labels, .output = false}};
    if ((s = st_dnn_check(h, who, typed, 3, true)) || (s = check_options(h, who, o, &logits)) ||
        (s = st_dnn_same_dims(h, who, "logits", &logits, "dlogits", &dlogits)) ||
        (s = check_labels(h, who, o, &logits, &labels, &hard)) ||
        (s = st_dnn_check_alias(h, who, all, 2, true)))
        return s;
    const int64_t rows = logits.dim[0], classes = logits.dim[1];
    if (dloss.rank > 1 || (dloss.rank == 1 && dloss.dim[0] != rows))
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: dloss is %s and the logits %s: it must be one number, or a vector of %lld rows",
                       who, ST_DIMS(dloss), ST_DIMS(logits), (long long)rows);
    if (rows == 0 || classes == 0) return STRATA_OK;
    static const double zero = 0;
    const bool wide = needs_f64(&logits, hard);
    const double sm = o->smoothing, share = sm / (double)classes;
    char text[512], guard[80];
    const char *program = text;
    unchecked(guard, sizeof guard, hard, h, &labels, classes);
    if (hard && sm == 0 && !o->use_ignore && !wide && !guard[0])
        program = "e = exp(x - max(x)); dx = dl * (e * (1 / sum(e)) - select(index(-1) == label, 1, 0))";
    else if (hard) {
        char value[256], smooth[64] = "";
        if (sm > 0) snprintf(smooth, sizeof smooth, " - %.17g", share);
        snprintf(value, sizeof value, "dl * (e * (1 / sum(e)) - select(index(-1) == label, %.17g, 0)%s%s%s)",
                 1 - sm, smooth, wide ? " + zero" : "", guard);
        if (o->use_ignore)
            snprintf(text, sizeof text, "e = exp(x - max(x)); dx = select(label == %lld, 0, %s)",
                     (long long)o->ignore_label, value);
        else
            snprintf(text, sizeof text, "e = exp(x - max(x)); dx = %s", value);
    } else {
        snprintf(text, sizeof text,
                 "e = exp(x - max(x)); dx = dl * (e * (1 / sum(e)) - (%.17g * label + %.17g))", 1 - sm,
                 share);
    }
    strata_operand ops[6] = {{"x", logits},
                             {"label", hard ? column(labels, rows) : labels},
                             {"dl", column(dloss, rows)},
                             {"dx", dlogits}};
    if (dloss.rank == 0) ops[2].tensor = dloss;
    if (wide) ops[4] = (strata_operand){"zero", strata_point(&zero, STRATA_F64)};
    return st_pw_run(h, who, program, ops, 2);
}
