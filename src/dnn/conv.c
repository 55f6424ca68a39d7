/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c - the public calls of convolution: check, describe, hand to the contraction engine.
 *
 * A call that is not planned runs each part through the engine's cache. A plan holds a plan for every part and runs them in turn;
 * parts write disjoint elements, so their order decides nothing. */
#include "dnn/conv.h"
#include "dnn/args.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const call[3] = {"strata_conv_forward", "strata_conv_backward_data",
                                    "strata_conv_backward_weights"};
static const char *const plan_call[3] = {"strata_conv_forward_plan", "strata_conv_backward_data_plan",
                                         "strata_conv_backward_weights_plan"};

/* Addresses in the order of the public call, which is the order A, B, C of every part: forward (x, w, y), data gradient (dy, w, dx),
 * weight gradient (x, dy, dw). */
static void addresses(const st_conv *c, void **in)
{
    void *x = c->x.data, *w = c->w.data, *y = c->y.data;
    in[0] = c->kind == ST_CONV_DATA ? y : x;
    in[1] = c->kind == ST_CONV_WEIGHTS ? y : w;
    in[2] = c->kind == ST_CONV_FORWARD ? y : c->kind == ST_CONV_DATA ? x : w;
    for (int i = 0; i < c->operands; i++) in[3 + i] = c->operand[i].tensor.data;
}

static strata_status run_now(strata_handle *h, const st_conv *c)
{
    void *in[3 + ST_EPI_OPERANDS], *data[3 + ST_EPI_OPERANDS];
    const uint64_t t0 = st_trace_begin();
    addresses(c, in);
    const int64_t parts = st_conv_parts(c);
    for (int64_t i = 0; i < parts; i++) {
        st_conv_part part;
        if (!st_conv_part_at(c, i, &part)) continue;
        st_conv_data(c, &part, in, data);
        strata_status s =
            st_tile_contract(h, c->who, &part.problem, c->epilogue, 1.0, c->accumulate ? 1.0 : 0.0, data);
        if (s) {
            st_err_frame(&h->err, "dnn",
                         "convolution of %lldx%lldx%lldx%lld by %lldx%lldx%lldx%lld, part %lld of %lld",
                         (long long)c->n, (long long)c->c, (long long)c->h, (long long)c->wd, (long long)c->o,
                         (long long)(c->c / c->groups), (long long)c->r, (long long)c->s, (long long)i + 1,
                         (long long)parts);
            return s;
        }
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "dnn", c->who, "%lldx%lldx%lldx%lld, %lld filters %lldx%lld, %lld parts",
                     (long long)c->n, (long long)c->c, (long long)c->h, (long long)c->wd, (long long)c->o,
                     (long long)c->r, (long long)c->s, (long long)parts);
    return STRATA_OK;
}

/* ---- plans --------------------------------------------------------------------------------------------------------- */

typedef struct conv_step {
    strata_plan *plan;
    int64_t offset[3]; /* bytes */
} conv_step;
typedef struct conv_plan {
    strata_plan base;
    int64_t steps;
    conv_step *step;
    int operands;
} conv_plan;

static strata_status run_plan(strata_handle *h, const strata_plan *plan, void *const in[],
                              const strata_run *r)
{
    const conv_plan *p = (const conv_plan *)plan;
    strata_run own = r ? *r : (strata_run){0};
    void *data[3 + ST_EPI_OPERANDS];
    const uint64_t t0 = st_trace_begin();
    if (plan->workspace) {
        if (!(own.workspace = st_plan_workspace(h, plan, r))) return h->err.status;
        own.workspace_bytes = plan->workspace;
    }
    for (int i = 0; i < p->operands; i++) data[3 + i] = in[3 + i];
    for (int64_t i = 0; i < p->steps; i++) {
        const conv_step *q = &p->step[i];
        for (int o = 0; o < 3; o++) data[o] = (char *)in[o] + q->offset[o];
        strata_status s = q->plan->run(h, q->plan, data, &own);
        if (s) return s;
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "dnn", plan->chosen.kernel, "%s, %lld steps", plan->title, (long long)p->steps);
    return STRATA_OK;
}

static void destroy_plan(strata_plan *plan)
{
    conv_plan *p = (conv_plan *)plan;
    for (int64_t i = 0; i < p->steps; i++) strata_plan_destroy(p->step[i].plan);
    free(p->step);
}

static const char *layout(const strata_tensor *t)
{
    const int64_t *s = t->stride;
    if (s[1] == 1 && s[3] == t->dim[1]) return "nhwc";
    if (s[3] == 1 && s[2] == t->dim[3]) return "nchw";
    return "strided";
}

/* Steps read and write parts of the same tensors: the union of what each of them touches. */
static void join_extents(conv_plan *p)
{
    st_extent *all = calloc((size_t)p->base.operands, sizeof *all);
    bool known = all != NULL;
    for (int64_t i = 0; i < p->steps && known; i++) {
        const st_extent *e = p->step[i].plan->extent;
        if (!e) {
            known = false;
            break;
        }
        for (int o = 0; o < p->base.operands; o++) {
            const int64_t off = o < 3 ? p->step[i].offset[o] : 0;
            all[o].read |= e[o].read;
            all[o].written |= e[o].written;
            if (e[o].lo == e[o].hi) continue;
            const bool first = all[o].lo == all[o].hi;
            all[o].lo = first ? e[o].lo + off : st_min64(all[o].lo, e[o].lo + off);
            all[o].hi = first ? e[o].hi + off : st_max64(all[o].hi, e[o].hi + off);
        }
    }
    if (known)
        p->base.extent = all;
    else
        free(all);
}

/* The text of the whole: a headline, then what each step's plan says. */
static bool write_text(conv_plan *p)
{
    size_t n = strlen(p->base.title) + 64;
    for (int64_t i = 0; i < p->steps; i++) n += strlen(strata_plan_describe(p->step[i].plan)) + 40;
    char *t = malloc(n);
    if (!t) return false;
    size_t at = (size_t)snprintf(t, n, "%s: %lld step%s", p->base.title, (long long)p->steps,
                                 p->steps == 1 ? "" : "s");
    for (int64_t i = 0; i < p->steps; i++)
        at += (size_t)snprintf(t + at, n - at, "\n%lld. %s", (long long)i + 1,
                               strata_plan_describe(p->step[i].plan));
    p->base.text = t;
    return true;
}

static strata_status add_step(strata_handle *h, conv_plan *p, const st_conv *c, int64_t i,
                              const strata_choice *choice)
{
    st_conv_part part;
    if (!st_conv_part_at(c, i, &part)) return STRATA_OK;
    conv_step *q = &p->step[p->steps];
    /* residues that no tap reaches are filled, whatever kernel is asked for */
    strata_choice other;
    if (c->kind == ST_CONV_DATA && choice && choice->kernel && part.problem.k.count &&
        part.problem.k.ax[0].len == 0) {
        other = *choice;
        other.kernel = NULL;
        choice = &other;
    }
    strata_status s =
        st_tile_plan(h, c->who, &part.problem, c->epilogue, 1.0, c->accumulate ? 1.0 : 0.0, choice, &q->plan);
    if (s) return s;
    for (int o = 0; o < 3; o++) q->offset[o] = part.offset[o] * c->es;
    if (p->steps == 0 || q->plan->flops > p->base.flops) p->base.chosen = q->plan->chosen;
    p->base.workspace = p->base.workspace > q->plan->workspace ? p->base.workspace : q->plan->workspace;
    p->base.scratch = p->base.scratch > q->plan->scratch ? p->base.scratch : q->plan->scratch;
    p->steps++;
    return STRATA_OK;
}

static strata_status make_plan(strata_handle *h, const st_conv *c, const strata_choice *choice,
                               strata_plan **out)
{
    const int64_t parts = st_conv_parts(c);
    conv_plan *p = st_plan_new(sizeof *p);
    conv_step *step = calloc((size_t)(parts ? parts : 1), sizeof *step);
    if (!p || !step) {
        free(p);
        free(step);
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a plan of %lld steps", c->who,
                       (long long)parts);
    }
    p->step = step;
    p->operands = c->operands;
    p->base.run = run_plan;
    p->base.destroy = destroy_plan;
    p->base.op = ST_OP_CONTRACT;
    p->base.operands = 3 + c->operands;
    snprintf(p->base.device, sizeof p->base.device, "%s", h->device);
    snprintf(
        p->base.title, sizeof p->base.title,
        "%s %lldx%lldx%lldx%lld %s %s, %lld filters %lldx%lld, stride %lld,%lld, pad %lld,%lld, groups %lld",
        call[c->kind] + 7, (long long)c->n, (long long)c->c, (long long)c->h, (long long)c->wd, layout(&c->x),
        strata_type_name((strata_type)c->x.type), (long long)c->o, (long long)c->r, (long long)c->s,
        (long long)c->stride[0], (long long)c->stride[1], (long long)c->pad[0], (long long)c->pad[1],
        (long long)c->groups);
    strata_status s = STRATA_OK;
    double us = 0;
    for (int64_t i = 0; i < parts && s == STRATA_OK; i++) s = add_step(h, p, c, i, choice);
    join_extents(p);
    p->base.where = h->gpu ? ST_ON_CUDA : ST_ON_CPU;
    for (int64_t i = 0; i < p->steps; i++) us += p->step[i].plan->chosen.us;
    p->base.chosen.us = us;
    const double y = (double)c->n * (double)c->o * (double)c->p * (double)c->q;
    p->base.flops = 2 * y * (double)(c->c / c->groups) * (double)c->r * (double)c->s;
    p->base.bytes = (double)c->es * (y + (double)c->n * (double)c->c * (double)c->h * (double)c->wd +
                                     (double)c->o * (double)(c->c / c->groups) * (double)c->r * (double)c->s);
    if (p->steps == 1) { /* what can be asked of the step can be asked of the whole */
        p->base.only = p->step[0].plan;
        memcpy(p->base.code, p->step[0].plan->code, sizeof p->base.code);
    }
    if (p->steps) snprintf(p->base.order, sizeof p->base.order, "%s", p->step[0].plan->order);
    if (s == STRATA_OK && !write_text(p))
        s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for the plan's text", c->who);
    if (s) {
        strata_plan_destroy(&p->base);
        return s;
    }
    *out = &p->base;
    return STRATA_OK;
}

/* ---- public -------------------------------------------------------------------------------------------------------- */

/* A gradient of weights sums over the images: there is nothing to keep apart. */
static strata_status keep_images_apart(strata_handle *h, const strata_choice *choice, st_conv *c)
{
    if (!h->batch_invariant && !(choice && choice->batch_invariant)) return STRATA_OK;
    if (c->epilogue && strstr(c->epilogue, "index"))
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                       "%s: an epilogue that counts rows with index() cannot be batch-invariant", c->who);
    c->images_apart = true;
    return STRATA_OK;
}

static strata_status one_shot(strata_handle *h, st_conv_kind kind, const strata_conv *o, strata_tensor x,
                              strata_tensor w, strata_tensor y)
{
    st_conv c;
    strata_status s = st_handle_check(h, call[kind]);
    if (s) return s;
    s = st_conv_check(h, kind, call[kind], o, x, w, y, &c);
    if (!s) s = keep_images_apart(h, NULL, &c);
    return s ? s : run_now(h, &c);
}

static strata_status planned(strata_handle *h, st_conv_kind kind, const strata_conv *o, strata_tensor x,
                             strata_tensor w, strata_tensor y, const strata_choice *choice,
                             strata_plan **plan)
{
    st_conv c;
    const char *who = plan_call[kind];
    if (plan) *plan = NULL;
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!plan)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: plan is NULL; give the address of a strata_plan pointer", who);
    s = st_conv_check(h, kind, who, o, x, w, y, &c);
    if (!s) s = keep_images_apart(h, choice, &c);
    return s ? s : make_plan(h, &c, choice, plan);
}

strata_status strata_conv_forward(strata_handle *h, const strata_conv *o, strata_tensor x, strata_tensor w,
                                  strata_tensor y)
{
    return one_shot(h, ST_CONV_FORWARD, o, x, w, y);
}
strata_status strata_conv_backward_data(strata_handle *h, const strata_conv *o, strata_tensor dy,
                                        strata_tensor w, strata_tensor dx)
{
    return one_shot(h, ST_CONV_DATA, o, dx, w, dy);
}
strata_status strata_conv_backward_weights(strata_handle *h, const strata_conv *o, strata_tensor x,
                                           strata_tensor dy, strata_tensor dw)
{
    return one_shot(h, ST_CONV_WEIGHTS, o, x, dw, dy);
}
strata_status strata_conv_forward_plan(strata_handle *h, const strata_conv *o, strata_tensor x,
                                       strata_tensor w, strata_tensor y, const strata_choice *choice,
                                       strata_plan **plan)
{
    return planned(h, ST_CONV_FORWARD, o, x, w, y, choice, plan);
}
strata_status strata_conv_backward_data_plan(strata_handle *h, const strata_conv *o, strata_tensor dy,
                                             strata_tensor w, strata_tensor dx, const strata_choice *choice,
                                             strata_plan **plan)
{
    return planned(h, ST_CONV_DATA, o, dx, w, dy, choice, plan);
}
strata_status strata_conv_backward_weights_plan(strata_handle *h, const strata_conv *o, strata_tensor x,
                                                strata_tensor dy, strata_tensor dw,
                                                const strata_choice *choice, strata_plan **plan)
{
    return planned(h, ST_CONV_WEIGHTS, o, x, dw, dy, choice, plan);
}

strata_status strata_conv_output(strata_handle *h, const strata_conv *o, strata_tensor x, strata_tensor w,
                                 int64_t dim[4])
{
    static const char who[] = "strata_conv_output";
    st_conv c = {.kind = ST_CONV_FORWARD};
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!dim)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: dim is NULL; give four numbers to write to", who);
    /* only the dims count here: views without memory are welcome */
    strata_tensor *t[2] = {&x, &w};
    for (int i = 0; i < 2; i++) {
        if (!t[i]->data) t[i]->data = t[i];
        s = st_tensor_check(&h->err, who, i ? "w" : "x", t[i]);
        if (s) return s;
    }
    s = st_conv_sizes(h, who, o, &x, &w, &c);
    if (s) return s;
    dim[0] = c.n, dim[1] = c.o, dim[2] = c.p, dim[3] = c.q;
    return STRATA_OK;
}
