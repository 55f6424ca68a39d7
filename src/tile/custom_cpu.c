/* SPDX-License-Identifier: Apache-2.0 */
/* custom_cpu.c - a user's own function as a plan's kernel on a CPU. The pieces of the grid, which are independent, are taken by the team's threads as each gets done; the
 * result of one is the same in whichever thread it runs. Sums leave by the epilogue's vector code. */
#include "tile/custom.h"
#include "tile/epilogue.h"
#include <stdio.h>
#include <string.h>

struct strata_custom_state {
    const st_custom_plan *plan;
    void *data[3 + ST_EPI_OPERANDS]; /* of the epilogue */
    void *scratch;                   /* of the epilogue, this thread's */
};

typedef struct pieces {
    const st_custom_plan *p;
    void *const *data;
    char *workspace;
    int64_t count;
    atomic_llong next;
    atomic_llong failed; /* 1 + the piece that failed first; 0: none */
    atomic_int status;
} pieces;

static void work(void *arg, int id, int n)
{
    pieces *w = arg;
    const st_custom_plan *p = w->p;
    struct strata_custom_state state = {.plan = p};
    char *mine = w->workspace + (size_t)id * p->apart;
    (void)n;
    state.scratch = mine + (p->smem + 63) / 64 * 64;
    if (p->output >= 0) state.data[2] = w->data[p->output];
    for (int i = 0; i < (int)p->c.epi_operands; i++) state.data[3 + i] = w->data[p->epi[i]];
    strata_custom_call call = {.data = w->data,
                               .params = p->params_bytes ? p->params : NULL,
                               .grid = {p->grid[0], p->grid[1], p->grid[2]},
                               .scratch = p->smem ? mine : NULL,
                               .state = &state};
    for (int64_t i; !atomic_load(&w->failed) && (i = atomic_fetch_add(&w->next, 1)) < w->count;) {
        call.at[0] = (uint32_t)(i % p->grid[0]);
        call.at[1] = (uint32_t)(i / p->grid[0] % p->grid[1]);
        call.at[2] = (uint32_t)(i / p->grid[0] / p->grid[1]);
        strata_status s = p->cpu(&call);
        if ((unsigned)s > STRATA_ERROR_INTERNAL) s = STRATA_ERROR_INTERNAL; /* no value of strata_status */
        long long none = 0;
        if (s && atomic_compare_exchange_strong(&w->failed, &none, 1 + i)) atomic_store(&w->status, (int)s);
    }
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_custom_plan *p = (const st_custom_plan *)plan;
    pieces w = {.p = p, .data = data, .count = (int64_t)p->grid[0] * p->grid[1] * p->grid[2]};
    const uint64_t t0 = st_trace_begin();
    if (plan->workspace && !(w.workspace = st_plan_workspace(h, plan, r))) return h->err.status;
    /* what is not known to be little is worth the team */
    const double us = plan->flops > 0 ? plan->flops / 1e4 : 1e6;
    st_team_run_apart(h, p->threads, us, work, &w);
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "tile", plan->chosen.kernel, "%s", plan->title);
    const int64_t at = (int64_t)atomic_load(&w.failed) - 1;
    if (at < 0) return STRATA_OK;
    const strata_status s = (strata_status)atomic_load(&w.status);
    return st_fail(
        &h->err, s,
        "strata_plan_run: %s: piece (%lld, %lld, %lld) of the grid returned %s; C may be written in part",
        plan->chosen.kernel, (long long)(at % p->grid[0]), (long long)(at / p->grid[0] % p->grid[1]),
        (long long)(at / p->grid[0] / p->grid[1]), strata_status_name(s));
}

void strata_custom_store(const strata_custom_call *call, const void *acc, int64_t ld, int64_t m, int64_t n,
                         int64_t g, int64_t rows, int64_t cols)
{
    const struct strata_custom_state *state = call->state;
    const st_custom_plan *p = state->plan;
    const bool wide = p->c.tc == STRATA_F64;
    if (!p->expr || g < 0 || g >= st_axes_len(&p->c.batch)) return;
    const int64_t m0 = st_max64(m, 0), n0 = st_max64(n, 0);
    rows = st_min64(m + rows, st_axes_len(&p->c.m)) - m0;
    cols = st_min64(n + cols, st_axes_len(&p->c.n)) - n0;
    if (rows <= 0 || cols <= 0) return;
    const int64_t skipped = (m0 - m) * ld + (n0 - n); /* what lies before the output's first row and column */
    const char *first = (const char *)acc + skipped * (wide ? 8 : 4);
    const st_epi_acc from = {(void *)(uintptr_t)first, wide ? STRATA_F64 : STRATA_F32, ld, 1};
    st_epilogue_run(p->expr, &p->c, state->data, &from, g, m0, rows, n0, cols, state->scratch);
}

static void destroy(strata_plan *plan)
{
    st_custom_plan *p = (st_custom_plan *)plan;
    if (p->expr) st_expr_free(p->expr);
}

void st_custom_cpu(strata_handle *h, const strata_custom *c, st_expr *x, int output, st_custom_plan *p)
{
    char text[600];
    const int64_t count = (int64_t)p->grid[0] * p->grid[1] * p->grid[2];
    p->cpu = c->cpu;
    p->expr = x;
    p->output = output;
    p->threads = (int)st_min64(st_threads(h), count);
    p->apart = (p->smem + 63) / 64 * 64 + st_epilogue_scratch(x);
    p->base.workspace = p->apart * (size_t)p->threads;
    p->base.run = run;
    p->base.destroy = destroy;
    p->base.where = ST_ON_CPU;
    snprintf(p->base.chosen.kernel, sizeof p->base.chosen.kernel, "custom_%.60s_cpu", c->entry);
    snprintf(text, sizeof text,
             "%s on %s\n  kernel     %s    grid %ux%ux%u, %u bytes of scratch a thread, workspace %zu B\n"
             "  order      the kernel's own",
             p->base.title, p->base.device, p->base.chosen.kernel, p->grid[0], p->grid[1], p->grid[2],
             p->smem, p->base.workspace);
    p->base.text = strdup(text);
}
