/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_packed.c - the provider of the packed product: block sizes from the caches, prediction, plan, run. One candidate a row of
 * the kernel table. */
#include "tile/gemm_packed.h"
#include <stdio.h>
#include <string.h>

/* kc: long enough that updating C is rare, and fixed by type alone, so that the order of sums is too. mc: a block of A in a quarter of L2 (half and three quarters measured 1 % slower). */
static void block_sizes(st_packed_plan *p, const st_cpu *cpu, const int64_t *arg)
{
    const st_packed_kernel *kr = p->kernel;
    int64_t mr = kr->mr, nr = (int64_t)kr->nv * kr->vl, line = 512 * (int64_t)kr->size;
    p->kc = 512 * (int64_t)kr->unit;
    p->mc = st_max64(mr, cpu->l2 / 4 / line / mr * mr);
    p->nc = st_max64(nr, (4 << 20) / line / nr * nr);
    /* a tile of the caller's or the search's (gemm_prepared.c) */
    if (arg[0]) p->kc = arg[0];
    if (arg[1]) p->mc = arg[1];
    if (arg[2]) p->nc = arg[2];
}

/* Sums beside C: where C cannot hold them, and where its elements do not lie as kernels store them. Those of one block of k stay in cache;
 * of several blocks, so many rows are kept that they take 32 MiB. */
static void sums_aside(st_packed_plan *p)
{
    const st_gemm *g = &p->g;
    p->aside = g->tc != g->type;
    p->aside_rows = st_max64(2 * p->mc, (32 << 20) / (p->nc * g->es) / p->mc * p->mc);
}

/* Rows of A that are contiguous along k need no packing when the whole block stays in cache as it is (measured: 256 cubed gains 1.5 %, from
 * 512 on it loses 3 to 6), or when B has so few panels that packing A would not pay. */
static bool read_in_place(const st_packed_plan *p)
{
    const st_gemm *g = &p->g;
    const int64_t nr = (int64_t)p->kernel->nv * p->kernel->vl;
    if (!p->kernel->in_place_full || g->m.count > 1 || g->k.count > 1 ||
        (g->K > 1 && st_axes_inner(&g->k, 'a') != 1))
        return false;
    const int64_t ars = st_axes_inner(&g->m, 'a'), distance = ars < 0 ? -ars : ars;
    return (g->K <= 256 && distance <= 2 * g->K) || g->N <= 4 * nr;
}

/* Products a step beside those of f32: bytes by fours; by pairs widened to 16 bits (a multiplication and an addition of their own);
 * bf16 by pairs, which AMD's processors do at twice the rate of f32 and Intel's at half of it (Sapphire Rapids, measured). */
static double rate_of(const st_packed_plan *p, const st_cpu *cpu)
{
    const int unit = p->kernel->unit;
    if (unit == 4) return 4;
    if (unit == 2 && p->g.type == STRATA_F32) return strstr(cpu->name, "AMD") ? 1.9 : 0.5;
    return 1;
}

/* Work of one thread in microseconds: the kernel at most of its peak, packing by bytes, the update of C by tiles. */
static double predict(const st_packed_plan *p, const st_cpu *cpu)
{
    const st_gemm *g = &p->g;
    const st_packed_kernel *kr = p->kernel;
    const double nr = kr->nv * kr->vl, es = (double)g->es, panel = (double)kr->size / kr->unit,
                 lanes = cpu->level >= ST_LEVEL_AVX512 && kr->vl * g->es < 64 ? 0.5 : 1,
                 parts = st_type_is_complex(g->type) ? 4 : 1;
    const double m = (double)g->M, n = (double)st_ceil_div(g->N, kr->vl) * kr->vl, k = (double)g->K,
                 items = (double)g->G;
    /* few rows are bound by the loads of B */
    double us = 2 * parts * (m > 4 ? m : 4) * n * k /
                (0.9 * lanes * rate_of(p, cpu) * st_contract_peak(cpu, st_type_part(g->type)));
    us += p->in_place ? 0 : m * k * (double)st_ceil_div(g->N, p->nc) * 2 * panel / 40000.0;
    /* everything is read once from where it is; B is written to panels and read again */
    const double bytes = n * k * panel,
                 all = n * k * (double)g->eb + m * k * (double)g->ea + m * n * (double)g->ec;
    const double rate = all > (double)cpu->l3   ? ST_CONTRACT_BYTES_PER_US * 0.7
                        : all > (double)cpu->l2 ? ST_CONTRACT_BYTES_PER_US * 1.2
                                                : 60000.0;
    us += all / rate + (p->fused && m >= kr->mr ? 0 : bytes / 40000.0);
    us += m * n / (6 * nr) * 0.02 * (double)st_ceil_div(g->K, p->kc);
    if (p->aside) us += m * n * es / 8000.0;
    if (kr->vl * g->es == 16) us *= 1.5;
    return us * items + 0.4;
}

static int want_threads(double us, int threads) { return us < 6.0 ? 1 : threads; }

/* Rows are named after the first of two types that one kernel takes. */
static bool is_second(int64_t type) { return type == STRATA_F8E5M2 || type == STRATA_U8; }
static int64_t row_type(int64_t type)
{
    return type == STRATA_F8E5M2 ? STRATA_F8E4M3 : type == STRATA_U8 ? STRATA_I8 : type;
}

static void choose_packing(st_packed_plan *p)
{
    const st_packed_kernel *kr = p->kernel;
    const bool a2 = is_second(p->g.ta), b2 = is_second(p->g.tb);
    p->pack_a = a2 ? kr->pack_a_2 : kr->pack_a;
    p->pack_b = b2 ? kr->pack_b_2 : kr->pack_b;
    p->first = b2 ? kr->first_2 : kr->first;
    p->first_in_place = kr->first_in_place;
    /* kernels of bytes take A without a sign and B with one */
    p->move_a = kr->head && !a2 ? 128 : 0;
    p->move_b = kr->head && b2 ? 128 : 0;
}

static bool setup(strata_handle *h, const st_problem *pr, const st_candidate *cand, st_packed_plan *p,
                  char *why, size_t n)
{
    const st_kernel_row *row = cand->row;
    const st_contract *c = pr->data;
    if (!st_gemm_normalise(c, pr->text, &p->g, why, n)) return false;
    if (st_kernel_why_not(row, h->cpu, why, n)) return false;
    p->kernel = row->impl;
    choose_packing(p);
    block_sizes(p, h->cpu, cand->arg);
    p->in_place = read_in_place(p);
    sums_aside(p);
    p->fused = (p->in_place ? p->first_in_place : p->first) && p->g.m.count <= 1 && p->g.n.count <= 1 &&
               p->g.k.count <= 1 && st_axes_inner(&p->g.n, 'b') == 1 &&
               (p->aside || st_axes_inner(&p->g.n, 'c') == 1);
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

bool st_packed_consider(strata_handle *h, const st_problem *pr, st_candidate *c)
{
    const st_kernel_row *row = c->row;
    st_packed_plan p = {0};
    c->order = row->order;
    c->order_arg = 0;
    c->us = -1;
    if (!setup(h, pr, c, &p, c->why, sizeof c->why)) return false;
    st_packed_describe(&p, row, c);
    c->us = p.threads > 1 ? p.us / p.threads * 1.08 + 1.0 : p.us;
    c->workspace = workspace_of(&p); /* the epilogue's scratch comes on top when it is parsed: see build */
    return true;
}

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    int rows, n = 0;
    const st_kernel_row *row = st_kernel_rows(&rows);
    if (st_gemm_structured(pr->data)) return 0; /* the same kernels in other loops */
    for (int i = 0; i < rows && n < max; i++, row++) {
        if (strcmp(row->provider, "gemm_packed")) continue;
        if (row->type != row_type(((const st_contract *)pr->data)->ta)) continue;
        st_candidate *c = &out[n++];
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", row->id);
        c->row = row;
        st_packed_consider(h, pr, c);
    }
    return n;
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_packed_plan *p = (const st_packed_plan *)plan;
    const st_gemm *g = &p->g;
    double alpha[2], beta[2];
    strata_status s = st_contract_scalars_complex(h, &p->head, r, alpha, beta);
    if (s) return s;
    const st_factors f = {alpha[0], alpha[1], beta[0], beta[1]};
    if (g->M == 0 || g->N == 0 || g->G == 0) return STRATA_OK;
    uint64_t t0 = st_trace_begin();
    char *ws = st_plan_workspace(h, plan, r);
    if (!ws) return h->err.status;
    if ((f.alpha == 0 && f.alpha_im == 0) || g->K == 0) {
        st_gemm_scale(g, data[2], &f);
        for (int64_t i = 0; p->head.expr && i < g->G; i++)
            st_gemm_epilogue(g, p->head.expr, data, i, 0, g->M, 0, g->N, ws);
    } else {
        st_packed_job job = {p,
                             data,
                             data[g->swapped ? 1 : 0],
                             data[g->swapped ? 0 : 1],
                             data[2],
                             f,
                             ws,
                             h->parallel_for != NULL,
                             p->aside,
                             NULL,
                             NULL};
        /* integers take factors in f64, once, when they are whole */
        if (g->type == STRATA_I32 && (f.alpha != 1 || f.beta != 0)) job.aside = true;
        if (r && r->prepared && (s = st_packed_prepared(h, p, r, &job))) return s;
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
    if (!setup(h, pr, c, p, why, sizeof why)) {
        strata_plan_destroy(&head->base);
        return st_fail(&h->err, STRATA_ERROR_INTERNAL, "%s: %s", pr->who, why);
    }
    if (head->expr) p->scratch = st_epilogue_scratch(head->expr);
    head->base.run = run;
    head->base.workspace = workspace_of(p);
    p->sync = st_packed_sync_bytes(p);
    st_packed_preparable(p);
    *plan = &head->base;
    return STRATA_OK;
}

const st_provider st_gemm_packed_provider = {
    .name = "gemm_packed", .op = ST_OP_CONTRACT, .enumerate = enumerate, .build = build, .where = ST_ON_CPU};
