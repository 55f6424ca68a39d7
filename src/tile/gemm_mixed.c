/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_mixed.c - plans of gemm_mixed.h: which kernel, which of the two ways to share the work, block sizes, prediction. */
#include "tile/gemm_mixed_plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    B_BYTES = 16 << 20,     /* packed B of a part of the columns, where the program maps elements */
    B_BYTES_MOST = 96 << 20 /* and of all columns, where it reduces over rows */
};

void st_mix_free(st_mix *m)
{
    if (!m) return;
    for (int i = 0; i < ST_MIX_PRODUCTS; i++) {
        if (m->a[i]) st_expr_free(m->a[i]->x);
        if (m->b[i]) st_expr_free(m->b[i]->x);
        free(m->a[i]);
        free(m->b[i]);
    }
    st_expr_free(m->x);
    free(m);
}

static bool is_second(int type) { return type == STRATA_F8E5M2 || type == STRATA_U8; }
static int first_type(int type)
{
    return type == STRATA_F8E5M2 ? STRATA_F8E4M3 : type == STRATA_U8 ? STRATA_I8 : type;
}

/* One kernel for all products: their factors are of one type (or of the two that a kernel takes). */
static const st_kernel_row *kernel_of(strata_handle *h, const st_mix *x, char *why, size_t n)
{
    const int type = first_type(x->a[0]->type);
    for (int i = 0; i < x->na + x->nb; i++) {
        const int t = (i < x->na ? x->a[i] : x->b[i - x->na])->type;
        if (first_type(t) == type) continue;
        snprintf(why, n, "the products' factors are %s and %s; one kernel serves all",
                 strata_type_name((strata_type)x->a[0]->type), strata_type_name((strata_type)t));
        return NULL;
    }
    const st_kernel_row *row = st_kernel_best("gemm_packed", type, h->cpu);
    if (!row)
        snprintf(why, n, "no packed kernel takes %s x %s", strata_type_name((strata_type)type),
                 strata_type_name((strata_type)type));
    return row;
}

static void choose_packing(st_mix_plan *p, const st_mix *x)
{
    const st_packed_kernel *kr = p->kernel;
    for (int i = 0; i < x->na; i++) {
        const bool second = is_second(x->a[i]->type);
        p->pack_a[i] = second ? kr->pack_a_2 : kr->pack_a;
        p->move_a[i] = kr->head && !second ? 128 : 0;
    }
    for (int i = 0; i < x->nb; i++) {
        const bool second = is_second(x->b[i]->type);
        p->pack_b[i] = second ? kr->pack_b_2 : kr->pack_b;
        p->move_b[i] = kr->head && second ? 128 : 0;
    }
}

/* Bits that are written: two threads may not share a byte. Rows that threads take are then multiples of this. */
static int64_t rows_together(const st_mix *x, bool *along_columns)
{
    const st_expr_var *var;
    const int n = st_expr_vars(x->x, &var);
    int64_t unit = 1;
    *along_columns = false;
    for (int v = 0; v < n; v++) {
        if (!var[v].output || x->product[v] >= 0 || !st_type_is_sub_byte(x->term[v].type)) continue;
        if (x->term[v].sr == 1) unit = 8;
        if (x->term[v].sc == 1) *along_columns = true;
    }
    return unit;
}

/* the heads of bytes' panels take one factor for all of a packed factor: which sign the other one has must be the same in every product */
static bool moves_agree(const st_mix_plan *p, const st_mix *x)
{
    for (int i = 1; i < x->na; i++)
        if (p->move_a[i] != p->move_a[0]) return false;
    for (int i = 1; i < x->nb; i++)
        if (p->move_b[i] != p->move_b[0]) return false;
    return true;
}

/* Bytes of packed lines of the factors, all of k. */
static int64_t packed(const st_mix_plan *p, st_mix_factor *const f[], int n, int64_t lines)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        const int64_t parts = st_ceil_div(f[i]->k, p->kc),
                      kc = parts > 1 ? st_round_up(st_ceil_div(f[i]->k, parts), p->kernel->unit) : f[i]->k;
        bytes +=
            st_ceil_div(f[i]->k, kc) * st_round_up(st_packed_bytes(p->kernel, lines, kc) + ST_PACK_SLACK, 64);
    }
    return bytes;
}

static void share(strata_handle *h, st_mix_plan *p, const st_mix *x, int64_t unit)
{
    const int64_t mr = p->kernel->mr, nr = (int64_t)p->kernel->nv * p->kernel->vl, l2 = h->cpu->l2,
                  all_rows = st_round_up(x->m, mr), all_cols = st_round_up(x->n, nr);
    int64_t step = mr;
    while (step % unit) step += mr;
    p->slots = st_threads(h);
    const int64_t row_a = packed(p, x->a, x->na, mr) / mr + 1,
                  row_sums = x->products * p->es * (x->by_rows ? all_cols : nr);
    /* rows of A and of sums in three quarters of L2, enough of them that B is worth passing by */
    p->mc = st_max64(step, 3 * l2 / 4 / (row_a + row_sums) / step * step);
    p->mc = st_max64(p->mc, st_round_up(8 * mr, step));
    if (p->mc > 240) p->mc = st_max64(step, 240 / step * step);
    p->by_columns = x->m <= p->mc && all_rows * row_a <= l2;
    if (p->by_columns) {
        p->mc = x->m;
        p->nc = x->n;
        p->slots = (int)st_min64(p->slots, st_ceil_div(x->n, nr));
    } else {
        /* two blocks a thread at least */
        const int64_t even = st_round_up(st_ceil_div(x->m, 2 * p->slots), step);
        p->mc = st_min64(p->mc, st_max64(even, step));
        p->nc = all_cols;
        const int64_t col_b = packed(p, x->b, x->nb, nr) / nr + 1;
        if (!x->by_rows && all_cols * col_b > B_BYTES) p->nc = st_max64(4 * nr, B_BYTES / col_b / nr * nr);
        if (p->nc > all_cols) p->nc = all_cols;
        p->slots = (int)st_min64(p->slots, st_ceil_div(x->m, p->mc));
    }
    if (p->slots < 1) p->slots = 1;
}

static void rooms(st_mix_plan *p, const st_mix *x)
{
    const int64_t mr = p->kernel->mr, nr = (int64_t)p->kernel->nv * p->kernel->vl,
                  rows = st_round_up(p->mc, mr), cols = st_round_up(p->nc, nr);
    size_t scratch = x->by_rows ? st_expr_rows_scratch(x->x, x->n) : st_expr_scratch(x->x);
    bool values = false;
    for (int i = 0; i < x->na + x->nb; i++) {
        const st_mix_factor *f = i < x->na ? x->a[i] : x->b[i - x->na];
        values |= f->x || f->term[0].picks >= 0;
        if (f->x && st_expr_scratch(f->x) > scratch) scratch = st_expr_scratch(f->x);
    }
    p->a = (size_t)st_round_up(packed(p, x->a, x->na, rows), 4096);
    if (p->by_columns) {
        int64_t most = 0;
        for (int i = 0; i < x->nb; i++)
            most =
                st_max64(most, st_packed_bytes(p->kernel, nr, st_min64(x->b[i]->k, p->kc + p->kernel->unit)));
        p->b = (size_t)st_round_up(most + ST_PACK_SLACK, 4096);
        p->sums = x->by_rows ? 0 : (size_t)st_round_up(x->products * rows * nr * p->es, 4096);
        p->all_sums = x->by_rows ? (size_t)st_round_up(x->products * rows * cols * p->es, 4096) : 0;
    } else {
        p->b = (size_t)st_round_up(packed(p, x->b, x->nb, cols), 4096);
        p->sums = (size_t)st_round_up(x->products * rows * (x->by_rows ? cols : nr) * p->es, 4096);
        p->all_sums = 0;
    }
    p->values = values ? (size_t)st_round_up(ST_MIX_VALUES * 8 + 4096, 4096) : 0;
    p->scratch = (size_t)st_round_up((int64_t)scratch, 4096);
    p->base.workspace = (p->by_columns ? p->a : p->b) + p->all_sums +
                        (size_t)p->slots * ((p->by_columns ? p->b : p->a) + p->sums + p->values + p->scratch);
}

/* One thread's microseconds. */
static double predict(const st_mix_plan *p, const st_mix *x, const st_cpu *cpu)
{
    const st_packed_kernel *kr = p->kernel;
    const double nr = kr->nv * kr->vl,
                 rate = kr->unit == 4                            ? 4
                        : kr->unit == 2 && p->type == STRATA_F32 ? (strstr(cpu->name, "AMD") ? 1.9 : 0.5)
                                                                 : 1,
                 slow = cpu->level >= ST_LEVEL_AVX512 ? 1
                        : cpu->level == ST_LEVEL_AVX2 ? 2
                                                      : 4,
                 m = (double)x->m, n = (double)st_ceil_div(x->n, kr->vl) * kr->vl,
                 blocks = (double)st_ceil_div(x->n, p->nc ? p->nc : 1);
    double us = 0;
    for (int i = 0; i < x->products; i++)
        us += 2 * (m > 4 ? m : 4) * n * (double)x->a[x->pa[i]]->k /
              (0.85 * rate * st_contract_peak(cpu, p->type == STRATA_I32 ? STRATA_F32 : p->type));
    for (int i = 0; i < x->na + x->nb; i++) {
        const st_mix_factor *f = i < x->na ? x->a[i] : x->b[i - x->na];
        const double elements = (i < x->na ? m * blocks : n) * (double)f->k;
        us += elements * ((f->x ? st_expr_cost(f->x) * slow : 0) + 0.8) / 2800;
    }
    us += m * n * (st_expr_cost(x->x) * slow + 0.1) / 2800 + m * n * x->products / (6 * nr) * 0.02;
    return us * (double)x->items + 3;
}

static bool setup(strata_handle *h, const st_mix *x, st_mix_plan *p, const st_kernel_row **row, char *why,
                  size_t n)
{
    bool along;
    if (!(*row = kernel_of(h, x, why, n))) return false;
    p->kernel = (*row)->impl;
    const int first = first_type(x->a[0]->type);
    p->type = first == STRATA_F64 ? STRATA_F64 : first == STRATA_I8 ? STRATA_I32 : STRATA_F32;
    p->es = p->type == STRATA_F64 ? 8 : 4;
    p->kc = 512 * (int64_t)p->kernel->unit;
    choose_packing(p, x);
    if (!moves_agree(p, x)) {
        snprintf(why, n, "i8 and u8 factors are mixed");
        return false;
    }
    if (x->m == 0 || x->n == 0 || x->items == 0) {
        snprintf(why, n, "there is nothing to multiply");
        return false;
    }
    for (int i = 0; i < x->na; i++)
        if (x->a[i]->k == 0) {
            snprintf(why, n, "a product sums over nothing (k is 0)");
            return false;
        }
    const int64_t unit = rows_together(x, &along), nr = (int64_t)p->kernel->nv * p->kernel->vl;
    if (along && nr % 8) {
        snprintf(why, n, "the kernel's %lld columns are no whole bytes of bits", (long long)nr);
        return false;
    }
    share(h, p, x, unit);
    if (x->by_rows && !p->by_columns && packed(p, x->b, x->nb, p->nc) > B_BYTES_MOST) {
        snprintf(why, n, "whole rows would need %lld MiB of packed factors (%d is the most)",
                 (long long)(packed(p, x->b, x->nb, p->nc) >> 20), B_BYTES_MOST >> 20);
        return false;
    }
    rooms(p, x);
    p->us = predict(p, x, h->cpu);
    return true;
}

bool st_mix_consider(strata_handle *h, const st_mix *m, st_candidate *c)
{
    st_mix_plan p;
    const st_kernel_row *row;
    memset(&p, 0, sizeof p);
    c->us = -1;
    if (!setup(h, m, &p, &row, c->why, sizeof c->why)) return false;
    c->us = p.slots > 1 ? p.us / p.slots * 1.08 + 5 : p.us;
    c->workspace = p.base.workspace;
    c->order = row->order;
    return true;
}

static void destroy(strata_plan *plan)
{
    st_mix_plan *p = (st_mix_plan *)plan;
    st_mix_free(p->x);
    p->x = NULL;
}

strata_status st_mix_build(strata_handle *h, const char *who, st_mix *m, int operands, strata_plan **plan)
{
    char why[160] = "";
    const st_kernel_row *row;
    st_mix_plan *p = st_plan_new(sizeof *p);
    *plan = NULL;
    if (!p) {
        st_mix_free(m);
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a plan", who);
    }
    p->x = m;
    p->base.destroy = destroy;
    p->base.run = st_mix_run;
    p->base.operands = operands;
    p->base.flops = m->flops;
    if (!setup(h, m, p, &row, why, sizeof why)) {
        strata_plan_destroy(&p->base);
        return st_fail(&h->err, STRATA_ERROR_INTERNAL, "%s: %s", who, why);
    }
    snprintf(p->base.chosen.kernel, sizeof p->base.chosen.kernel, "%.80s", row->id);
    *plan = &p->base;
    return STRATA_OK;
}

void st_mix_words(const strata_plan *plan, char *text, size_t n)
{
    const st_mix_plan *p = (const st_mix_plan *)plan;
    const st_mix *x = p->x;
    int made = 0, picked = 0;
    for (int i = 0; i < x->na + x->nb; i++) {
        const st_mix_factor *f = i < x->na ? x->a[i] : x->b[i - x->na];
        made += f->x != NULL;
        for (int t = 0; t < f->terms; t++) picked += f->term[t].picks >= 0;
    }
    int at = snprintf(text, n, "%d product%s in one pass, %dx%d tiles, ", x->products,
                      x->products > 1 ? "s" : "", p->kernel->mr, p->kernel->nv * p->kernel->vl);
    if (p->by_columns)
        at += snprintf(text + at, n - (size_t)at, "threads share the columns");
    else
        at += snprintf(text + at, n - (size_t)at, "threads share rows, %lld at a time, over %lld columns",
                       (long long)p->mc, (long long)p->nc);
    if (made)
        at += snprintf(text + at, n - (size_t)at, "; %d factor%s evaluated while packed, %d KiB at a time",
                       made, made > 1 ? "s" : "", ST_MIX_VALUES * 4 >> 10);
    if (picked) at += snprintf(text + at, n - (size_t)at, "; rows are picked while packed");
    snprintf(text + at, n - (size_t)at, "; the program runs on %s in cache",
             x->by_rows ? "whole rows" : "tiles");
}
