/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c - the last row: any axes, any strides in every operand, any bounds, any rule of a matrix (halves, mirrors, conjugates, unit
 * diagonals), arrays of addresses, f32, f64, c64 and c128 in any mix, no elements at all.
 *
 * One element of C after another, its sum in f64 (complex: two of them) in ascending k. Slow and obvious: what it refuses does not exist,
 * and what the fast kernels give is compared with it. Needs no workspace but an epilogue's. */
#include "tile/window.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct number {
    double re, im;
} number;

typedef struct reference_job {
    const st_win_plan *p;
    void *const *data;
    char *local;
    number alpha, beta;
    bool complex; /* C is: else imaginary parts are not looked at, for 0 times Inf is not 0 */
    bool nothing; /* alpha = 0 or K = 0: A and B are not read */
} reference_job;

static number load(int64_t type, const void *base, int64_t i)
{
    const float *f = base;
    const double *d = base;
    switch (type) {
    case STRATA_F32: return (number){(double)f[i], 0};
    case STRATA_F64: return (number){d[i], 0};
    case STRATA_C64: return (number){(double)f[2 * i], (double)f[2 * i + 1]};
    default: return (number){d[2 * i], d[2 * i + 1]};
    }
}

static void store(int64_t type, void *base, int64_t i, number v)
{
    float *f = base;
    double *d = base;
    switch (type) {
    case STRATA_F32: f[i] = (float)v.re; break;
    case STRATA_F64: d[i] = v.re; break;
    case STRATA_C64:
        f[2 * i] = (float)v.re;
        f[2 * i + 1] = (float)v.im;
        break;
    default: d[2 * i] = v.re; d[2 * i + 1] = v.im;
    }
}

/* A factor that is real is no complex number with a zero in it. */
static number times(number factor, number x)
{
    if (factor.im == 0) return (number){factor.re * x.re, factor.re * x.im};
    return (number){factor.re * x.re - factor.im * x.im, factor.re * x.im + factor.im * x.re};
}

static bool stored(const st_rule *r, int64_t row, int64_t col)
{
    const int64_t below = row - col + r->offset;
    return r->half == ST_HALF_NONE || (r->half == ST_HALF_LOWER ? below >= 0 : below <= 0);
}

/* Element (row, col) of an input at `at`, with a rule: false where it is a zero. rs and cs step along rows and columns. */
static bool element(const st_rule *r, int64_t type, const void *base, int64_t at, int64_t rs, int64_t cs,
                    int64_t row, int64_t col, number *v)
{
    const bool diagonal = row - col + r->offset == 0, here = stored(r, row, col);
    if (!here && !r->mirror) return false;
    if (diagonal && r->unit) {
        *v = (number){1, 0};
        return true;
    }
    if (!here) at += (col - r->offset - row) * rs + (row + r->offset - col) * cs;
    *v = load(type, base, at);
    if (r->mirror == ST_MIRROR_HERMITIAN) v->im = diagonal ? 0 : here ? v->im : -v->im;
    if (r->conj) v->im = -v->im;
    return true;
}

/* The element that a row of C begins with, and what its sums run over. */
typedef struct place {
    const void *a, *b;
    int64_t a0, b0, m, n;
    const int64_t *mi;
} place;

static bool inside(const st_contract *c, const int64_t *mi, const int64_t *ki)
{
    for (int64_t x = 0; x < c->bounds; x++) {
        const st_bound *q = &c->bound[x];
        const int64_t at =
            q->offset + (q->m >= 0 ? q->im * mi[q->m] : 0) + (q->k >= 0 ? q->ik * ki[q->k] : 0);
        if (at < 0 || at >= q->limit) return false;
    }
    return true;
}

static number sum(const reference_job *j, const st_contract *c, const place *x)
{
    number s = {0, 0}, va, vb;
    int64_t ki[ST_AXES] = {0};
    const int64_t ars = c->m.count ? c->m.ax[0].a : 0, acs = c->k.count ? c->k.ax[0].a : 0,
                  brs = c->k.count ? c->k.ax[0].b : 0, bcs = c->n.count ? c->n.ax[0].b : 0;
    for (int64_t k = 0; k < j->p->K; k++) {
        int64_t a = x->a0, b = x->b0;
        for (int64_t d = 0; d < c->k.count; d++) {
            a += ki[d] * c->k.ax[d].a;
            b += ki[d] * c->k.ax[d].b;
        }
        if (inside(c, x->mi, ki) && element(&c->rule_a, c->ta, x->a, a, ars, acs, x->m, k, &va) &&
            element(&c->rule_b, c->tb, x->b, b, brs, bcs, k, x->n, &vb)) {
            s.re += va.re * vb.re;
            if (j->complex) {
                s.re -= va.im * vb.im;
                s.im += va.re * vb.im + va.im * vb.re;
            }
        }
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
    int64_t mi[ST_AXES] = {0}, gi[ST_AXES] = {0}, start[3];
    void *data[3 + ST_EPI_OPERANDS];
    memcpy(data, j->data, (size_t)(3 + c->epi_operands) * sizeof *data);
    st_axes_index(&c->m, m, mi);
    st_axes_index(&c->batch, g, gi);
    for (int o = 0; o < 3; o++) {
        start[o] = st_axes_offset(&c->batch, "abc"[o], g) + st_axes_offset(&c->m, "abc"[o], m);
        if (c->pointers >> o & 1 && (o == 2 || !j->nothing)) data[o] = ((void **)data[o])[gi[0]];
    }
    int64_t first = 0, end = p->N; /* the stored part */
    if (c->rule_c.half == ST_HALF_LOWER) end = st_max64(0, st_min64(end, m + c->rule_c.offset + 1));
    if (c->rule_c.half == ST_HALF_UPPER) first = st_min64(end, st_max64(0, m + c->rule_c.offset));
    const bool hermitian = c->rule_c.mirror == ST_MIRROR_HERMITIAN;
    for (int64_t n = first; n < end; n++) {
        const int64_t at = start[2] + st_axes_offset(&c->n, 'c', n);
        const place x = {data[0],
                         data[1],
                         start[0] + st_axes_offset(&c->n, 'a', n),
                         start[1] + st_axes_offset(&c->n, 'b', n),
                         m,
                         n,
                         mi};
        const bool real = hermitian && m - n + c->rule_c.offset == 0;
        number v = {0, 0};
        if (!j->nothing) v = times(j->alpha, sum(j, c, &x));
        if (j->beta.re != 0 || j->beta.im != 0) {
            number old = load(c->tc, data[2], at);
            if (real) old.im = 0;
            old = times(j->beta, old);
            v.re += old.re;
            v.im += old.im;
        }
        if (real) v.im = 0;
        store(c->tc, data[2], at, v);
    }
    if (p->head.expr && end > first)
        st_win_epilogue(p, data, g, m, 1, first, end - first, j->local + (size_t)worker * p->local);
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_win_plan *p = (const st_win_plan *)plan;
    reference_job j = {.p = p, .data = data, .complex = st_type_is_complex((int)p->c.tc)};
    const uint64_t t0 = st_trace_begin();
    double alpha[2], beta[2];
    strata_status s = st_contract_scalars_complex(h, &p->head, r, alpha, beta);
    if (s) return s;
    if (plan->workspace && !(j.local = st_plan_workspace(h, plan, r))) return h->err.status;
    j.alpha = (number){alpha[0], alpha[1]};
    j.beta = (number){beta[0], beta[1]};
    j.nothing = (alpha[0] == 0 && alpha[1] == 0) || p->K == 0;
    if (p->M > 0 && p->N > 0 && (s = st_contract_addresses(h, &p->head, data, !j.nothing))) return s;
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

static bool takes(int64_t t)
{
    return t == STRATA_F32 || t == STRATA_F64 || t == STRATA_C64 || t == STRATA_C128;
}

/* Mirrors need a place to look at: one axis each way. */
static bool mirrors_lie(const st_contract *c)
{
    return (!c->rule_a.mirror || (c->m.count <= 1 && c->k.count <= 1)) &&
           (!c->rule_b.mirror || (c->k.count <= 1 && c->n.count <= 1));
}

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
    for (int i = 0; i < 3; i++)
        if (!takes(t[i]) || (st_type_is_complex((int)t[i]) && !st_type_is_complex((int)c->tc))) {
            out->us = -1;
            snprintf(out->why, sizeof out->why,
                     "takes f32, f64, c64 and c128, and no complex A or B into a real C; %c is %s", "ABC"[i],
                     strata_type_name((strata_type)t[i]));
            return 1;
        }
    if (st_type_is_complex((int)c->tc) && p->text) {
        out->us = -1;
        snprintf(out->why, sizeof out->why, "has no epilogues in complex numbers");
    } else if (!mirrors_lie(c)) {
        out->us = -1;
        snprintf(out->why, sizeof out->why,
                 "a symmetric or hermitian operand has one axis of rows and one of columns");
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
