/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_packed.c - the provider of the packed product: block sizes from the caches, prediction, plan, run. One candidate a row of
 * the kernel table. */
#include "tile/gemm_packed.h"
#include <stdio.h>
#include <string.h>

/* kc: long enough that updating C is rare, and fixed by type alone, so that the order of sums is too. mc: a block of A in a quarter of L2 (half and three quarters measured 1 % slower). */
static void block_sizes(st_packed_plan *p, const st_cpu *cpu)
{
    const st_packed_kernel *kr = p->kernel;
    int64_t mr = kr->mr, nr = (int64_t)kr->nv * kr->vl;
    p->kc = 512;
    p->mc = st_max64(mr, cpu->l2 / 4 / (p->kc * p->g.es) / mr * mr);
    p->nc = st_max64(nr, (4 << 20) / (p->kc * p->g.es) / nr * nr);
}

/* Rows of A that are contiguous along k need no packing when the whole block stays in cache as it is (measured: 256 cubed gains 1.5 %, from
 * 512 on it loses 3 to 6), or when B has so few panels that packing A would not pay. */
static bool read_in_place(const st_packed_plan *p)
{
    const st_gemm *g = &p->g;
    const int64_t nr = (int64_t)p->kernel->nv * p->kernel->vl;
    if (g->m.count > 1 || g->k.count > 1 || (g->K > 1 && st_axes_inner(&g->k, 'a') != 1)) return false;
    const int64_t ars = st_axes_inner(&g->m, 'a'), distance = ars < 0 ? -ars : ars;
    return (g->K <= 256 && distance <= 2 * g->K) || g->N <= 4 * nr;
}

/* Work of one thread in microseconds: the kernel at most of its peak, packing by bytes, the update of C by tiles. */
static double predict(const st_packed_plan *p, const st_cpu *cpu)
{
    const st_gemm *g = &p->g;
    const st_packed_kernel *kr = p->kernel;
    const double nr = kr->nv * kr->vl, es = (double)g->es,
                 lanes = cpu->level >= ST_LEVEL_AVX512 && kr->vl * g->es < 64 ? 0.5 : 1;
    const double m = (double)g->M, n = (double)st_ceil_div(g->N, kr->vl) * kr->vl, k = (double)g->K,
                 items = (double)g->G;
    /* few rows are bound by the loads of B */
    double us = 2 * (m > 4 ? m : 4) * n * k / (0.9 * lanes * st_contract_peak(cpu, g->type));
    us += p->in_place ? 0 : m * k * (double)st_ceil_div(g->N, p->nc) * 2 * es / 40000.0;
    /* everything is read once from where it is; B is written to panels and read again */
    const double bytes = n * k * es, all = bytes + m * k * es + m * n * es;
    const double rate = all > (double)cpu->l3   ? ST_CONTRACT_BYTES_PER_US * 0.7
                        : all > (double)cpu->l2 ? ST_CONTRACT_BYTES_PER_US * 1.2
                                                : 60000.0;
    us += all / rate + (p->fused && m >= kr->mr ? 0 : bytes / 40000.0);
    us += m * n / (6 * nr) * 0.02 * (double)st_ceil_div(g->K, p->kc);
    if (kr->vl * g->es == 16) us *= 1.5;
    return us * items + 0.4;
}

static int want_threads(double us, int threads) { return us < 6.0 ? 1 : threads; }

static bool setup(strata_handle *h, const st_problem *pr, const st_kernel_row *row, st_packed_plan *p,
                  char *why, size_t n)
{
    const st_contract *c = pr->data;
    if (!st_gemm_normalise(c, pr->text, &p->g, why, n)) return false;
    if (row->type != p->g.type) {
        snprintf(why, n, "computes in %s", row->types);
        return false;
    }
    if (st_kernel_why_not(row, h->cpu, why, n)) return false;
    p->kernel = row->impl;
    block_sizes(p, h->cpu);
    p->in_place = read_in_place(p);
    p->fused = p->g.m.count <= 1 && p->g.n.count <= 1 && p->g.k.count <= 1 &&
               st_axes_inner(&p->g.n, 'b') == 1 && st_axes_inner(&p->g.n, 'c') == 1;
    p->us = predict(p, h->cpu);
    p->threads = want_threads(p->us, st_threads(h));
    return true;
}

static size_t workspace_of(const st_packed_plan *p)
{
    size_t most = 0;
    st_packed_layout l;
    for (int n = 1; n <= p->threads; n++) {
        for (int apart = 0; apart < 2; apart++) {
            st_packed_layout_for(p, n, apart, &l);
            if (l.total > most) most = l.total;
        }
    }
    return most;
}

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    int rows, n = 0;
    const st_kernel_row *row = st_kernel_rows(&rows);
    for (int i = 0; i < rows && n < max; i++, row++) {
        if (strcmp(row->provider, "gemm_packed")) continue;
        if (row->type != ((const st_contract *)pr->data)->ta) continue;
        st_candidate *c = &out[n++];
        st_packed_plan p = {0};
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", row->id);
        c->row = row;
        c->order = row->order;
        c->us = -1;
        if (!setup(h, pr, row, &p, c->why, sizeof c->why)) continue;
        c->us = p.threads > 1 ? p.us / p.threads * 1.08 + 1.0 : p.us;
        c->workspace =
            workspace_of(&p); /* the epilogue's scratch comes on top when it is parsed: see build */
    }
    return n;
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_packed_plan *p = (const st_packed_plan *)plan;
    const st_gemm *g = &p->g;
    double alpha, beta;
    strata_status s = st_contract_scalars(h, &p->head, r, &alpha, &beta);
    if (s) return s;
    if (g->M == 0 || g->N == 0 || g->G == 0) return STRATA_OK;
    uint64_t t0 = st_trace_begin();
    char *ws = st_plan_workspace(h, plan, r);
    if (!ws) return h->err.status;
    if (alpha == 0 || g->K == 0) {
        st_gemm_scale(g, data[2], beta);
        for (int64_t i = 0; p->head.expr && i < g->G; i++)
            st_gemm_epilogue(g, p->head.expr, data, i, 0, g->M, 0, g->N, ws);
    } else {
        st_packed_job job = {p,    data, data[g->swapped ? 1 : 0], data[g->swapped ? 0 : 1], data[2], alpha,
                             beta, ws,   h->parallel_for != NULL};
        if (!job.apart && p->sync) memset(ws, 0, p->sync);
        (job.apart ? st_team_run_apart : st_team_run)(h, p->threads, p->us, st_packed_run_thread, &job);
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel,
                     "%lldx%lldx%lld batch %lld%s kc %lld mc %lld nc %lld workspace %zu", (long long)g->M,
                     (long long)g->N, (long long)g->K, (long long)g->G, g->swapped ? " transposed" : "",
                     (long long)p->kc, (long long)p->mc, (long long)p->nc, plan->workspace);
    return STRATA_OK;
}

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *c, strata_plan **plan)
{
    st_contract_plan *head;
    strata_status s = st_contract_plan_new(h, pr, sizeof(st_packed_plan), &head);
    if (s) return s;
    st_packed_plan *p = (st_packed_plan *)head;
    char why[160];
    if (!setup(h, pr, c->row, p, why, sizeof why)) {
        strata_plan_destroy(&head->base);
        return st_fail(&h->err, STRATA_ERROR_INTERNAL, "%s: %s", pr->who, why);
    }
    if (head->expr) p->scratch = st_epilogue_scratch(head->expr);
    head->base.run = run;
    head->base.workspace = workspace_of(p);
    p->sync = st_packed_sync_bytes(p);
    *plan = &head->base;
    return STRATA_OK;
}

const st_provider st_gemm_packed_provider = {"gemm_packed", ST_OP_CONTRACT, enumerate, build, ST_ON_CPU};
