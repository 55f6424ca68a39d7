/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c - the last row: any axes, any strides in every operand, any bounds, f32 and f64 in any mix, no elements at all.
 *
 * One element of C after another, its sum in f64 in ascending k. Slow and obvious: what it refuses does not exist, and what
 * the fast kernels give is compared with it. Needs no workspace but an epilogue's. */
#include "tile/window.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reference_job {
    const st_win_plan *p;
    void *const *data;
    char *local;
    double alpha, beta;
} reference_job;

static double load(int64_t type, const void *base, int64_t i)
{
    return type == STRATA_F32 ? (double)((const float *)base)[i] : ((const double *)base)[i];
}

static double sum(const st_contract *c, void *const data[], int64_t a0, int64_t b0, const int64_t *mi,
                  int64_t K)
{
    double s = 0;
    int64_t ki[ST_AXES] = {0};
    for (int64_t k = 0; k < K; k++) {
        int64_t a = a0, b = b0;
        bool in = true;
        for (int64_t d = 0; d < c->k.count; d++) {
            a += ki[d] * c->k.ax[d].a;
            b += ki[d] * c->k.ax[d].b;
        }
        for (int64_t x = 0; x < c->bounds; x++) {
            const st_bound *q = &c->bound[x];
            const int64_t at =
                q->offset + (q->m >= 0 ? q->im * mi[q->m] : 0) + (q->k >= 0 ? q->ik * ki[q->k] : 0);
            in = in && at >= 0 && at < q->limit;
        }
        if (in) s += load(c->ta, data[0], a) * load(c->tb, data[1], b);
        for (int64_t d = c->k.count - 1; d >= 0; d--) {
            if (++ki[d] < c->k.ax[d].len) break;
            ki[d] = 0;
        }
    }
    return s;
}

/* One row of C. */
static void row_task(void *arg, int64_t i, int worker)
{
    const reference_job *j = arg;
    const st_win_plan *p = j->p;
    const st_contract *c = &p->c;
    const int64_t m = i % p->M, g = i / p->M;
    int64_t mi[ST_AXES] = {0}, start[3];
    st_axes_index(&c->m, m, mi);
    for (int o = 0; o < 3; o++)
        start[o] = st_axes_offset(&c->batch, "abc"[o], g) + st_axes_offset(&c->m, "abc"[o], m);
    for (int64_t n = 0; n < p->N; n++) {
        const int64_t at = start[2] + st_axes_offset(&c->n, 'c', n);
        const int64_t a = start[0] + st_axes_offset(&c->n, 'a', n),
                      b = start[1] + st_axes_offset(&c->n, 'b', n);
        double v = j->alpha * sum(c, j->data, a, b, mi, p->K);
        if (j->beta != 0) v += j->beta * load(c->tc, j->data[2], at);
        if (c->tc == STRATA_F32)
            ((float *)j->data[2])[at] = (float)v;
        else
            ((double *)j->data[2])[at] = v;
    }
    if (p->head.expr) st_win_epilogue(p, j->data, g, m, 1, 0, p->N, j->local + (size_t)worker * p->local);
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_win_plan *p = (const st_win_plan *)plan;
    reference_job j = {.p = p, .data = data};
    const uint64_t t0 = st_trace_begin();
    strata_status s = st_contract_scalars(h, &p->head, r, &j.alpha, &j.beta);
    if (s) return s;
    if (plan->workspace && !(j.local = st_plan_workspace(h, plan, r))) return h->err.status;
    if (j.alpha == 0 || p->K == 0) { /* a sum of nothing: C := beta * C */
        st_win_beta_only(p, data, j.beta, j.local);
        return STRATA_OK;
    }
    st_win_for(h, p, p->G * p->M, p->us, row_task, &j);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel, "%lld x %lldx%lldx%lld", (long long)p->G,
                     (long long)p->M, (long long)p->N, (long long)p->K);
    return STRATA_OK;
}

static double predicted(const st_contract *c)
{
    return 1 + (double)st_axes_len(&c->batch) * (double)st_axes_len(&c->m) * (double)st_axes_len(&c->n) *
                   ((double)st_axes_len(&c->k) * 5e-3 + 20e-3);
}

static const st_kernel_row *own_row(void) { return st_kernel_find("contract_any_reference_portable"); }

static int enumerate(strata_handle *h, const st_problem *p, st_candidate *out, int max)
{
    const st_contract *c = p->data;
    const st_kernel_row *row = own_row();
    (void)h;
    if (max < 1) return 0;
    memset(out, 0, sizeof *out);
    snprintf(out->kernel, sizeof out->kernel, "%s", row->id);
    out->order = row->order;
    out->row = row;
    out->us = predicted(c);
    const int64_t t[3] = {c->ta, c->tb, c->tc};
    if (st_contract_rules(c, out->why, sizeof out->why)) out->us = -1;
    for (int i = 0; i < 3; i++)
        if (t[i] != STRATA_F32 && t[i] != STRATA_F64) {
            out->us = -1;
            snprintf(out->why, sizeof out->why, "takes f32 and f64; %c is %s", "ABC"[i],
                     strata_type_name((strata_type)t[i]));
        }
    return 1;
}

static strata_status build(strata_handle *h, const st_problem *problem, const st_candidate *c,
                           strata_plan **plan)
{
    st_contract_plan *head;
    *plan = NULL;
    (void)c;
    strata_status s = st_contract_plan_new(h, problem, sizeof(st_win_plan), &head);
    if (s) return s;
    st_win_plan *p = (st_win_plan *)head;
    p->c = head->problem;
    p->M = st_axes_len(&p->c.m);
    p->N = st_axes_len(&p->c.n);
    p->K = st_axes_len(&p->c.k);
    p->G = st_axes_len(&p->c.batch);
    p->es = p->c.tc == STRATA_F32 ? 4 : 8;
    p->us = predicted(&p->c);
    strata_device_info info;
    p->workers = st_threads(h);
    if (h->threads != 1 && strata_get_device_info("cpu", &info) == STRATA_OK && info.threads > p->workers)
        p->workers = info.threads;
    p->local = st_win_epilogue_scratch(p);
    head->base.workspace = p->local * (size_t)p->workers;
    head->base.run = run;
    head->base.destroy = st_contract_plan_destroy;
    *plan = &head->base;
    return STRATA_OK;
}

static const st_provider provider = {"reference", ST_OP_CONTRACT, enumerate, build, ST_ON_CPU};
const int st_kernel_contract_any_reference_portable = 0; /* the row has no struct of its own */

void st_reference_register(void) { st_plan_register(&provider); }
