/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_mixed_run.c - the loops of gemm_mixed.h.
 *
 *   by rows      for parts of nc columns: B's panels, all of k, are packed by everyone; then each thread takes blocks of mc rows, packs A's panels, all of
 *                k, and goes over B's panels: sums of one panel, of all products, go through the program before the next panel.
 *   by columns   (few rows) A is packed by everyone; then each thread takes panels of B, packs a block of k at a time and multiplies at once, so that B
 *                passes through the cache once and is kept nowhere.
 *
 * Where the program reduces over rows, sums of whole rows are kept (of mc rows a thread, or of the few rows that there are) and go through it at the
 * end. Sums are added in blocks of k in ascending order, whatever the way and the number of threads. */
#include "tile/gemm_mixed_plan.h"
#include <string.h>

typedef struct st_mix_job {
    const st_mix_plan *p;
    void *const *data;
    int64_t item, j0, cols; /* the part of the columns */
    char *a, *b, *all, *slot;
    size_t slot_bytes;
    atomic_llong next;
} st_mix_job;

/* One slot's room. */
typedef struct st_mix_view {
    char *a, *b, *sums;
    st_mix_room room;
} st_mix_view;

static st_mix_view view_of(const st_mix_job *j, int64_t slot)
{
    const st_mix_plan *p = j->p;
    char *w = j->slot + (size_t)slot * j->slot_bytes;
    st_mix_view v = {j->a, j->b, NULL, {NULL, NULL}};
    if (p->by_columns) {
        v.b = w;
        w += p->b;
    } else {
        v.a = w;
        w += p->a;
    }
    v.sums = w;
    v.room.values = w + p->sums;
    v.room.scratch = v.room.values + p->values;
    return v;
}

static int64_t block_of(const st_mix_plan *p, int64_t k)
{
    const int64_t parts = st_ceil_div(k, p->kc);
    return parts > 1 ? st_round_up(st_ceil_div(k, parts), p->kernel->unit) : k;
}
static int64_t width_of(const st_mix_plan *p) { return (int64_t)p->kernel->nv * p->kernel->vl; }

/* Packed room of one block of k of `lines` lines, and of all of a factor. */
static int64_t block_bytes(const st_mix_plan *p, int64_t lines, int64_t kc)
{
    return st_round_up(st_packed_bytes(p->kernel, lines, kc) + ST_PACK_SLACK, 64);
}
static int64_t factor_bytes(const st_mix_plan *p, const st_mix_factor *f, int64_t lines)
{
    const int64_t kc = block_of(p, f->k);
    return kc ? st_ceil_div(f->k, kc) * block_bytes(p, lines, kc) : 0;
}
static char *place(const st_mix_plan *p, st_mix_factor *const f[], int which, char *base, int64_t lines,
                   int64_t k0)
{
    for (int i = 0; i < which; i++) base += factor_bytes(p, f[i], lines);
    const int64_t kc = block_of(p, f[which]->k);
    return base + k0 / kc * block_bytes(p, lines, kc);
}

/* `rows` rows of packed A by one panel of packed B, added to sums when `add`; next: the panel that comes after it, to bring near meanwhile. */
static void multiply(const st_mix_plan *p, const char *a, const char *b, const char *next, int64_t rows,
                     int64_t cols, int64_t kc, char *sums, int64_t ld, bool add)
{
    const st_packed_kernel *kr = p->kernel;
    const int64_t mr = kr->mr, nr = width_of(p), step = st_packed_bytes(kr, mr, kc);
    const int nv = (int)st_ceil_div(cols, kr->vl);
    st_ukr_args x = {.k = st_ceil_div(kc, kr->unit),
                     .ldc = ld,
                     .alpha = 1,
                     .beta = add,
                     .last = (int)(cols - (nv - 1) * kr->vl)};
    const int64_t share = next ? st_ceil_div(x.k * nr * kr->size / 256, st_ceil_div(rows, mr)) : 0;
    x.next_count = share;
    for (int64_t i = 0; i < rows; i += mr, a += step) {
        const int64_t h = st_min64(mr, rows - i);
        x.next = next ? next + i / mr * share * 256 : NULL;
        const st_ukr_fn fn = h == mr && cols == nr ? kr->full : kr->edge[(h - 1) * kr->nv + nv - 1];
        fn(&x, a, b, sums + i * ld * p->es);
    }
}

/* The program on a rectangle whose sums of product i are at sums + i * plane, ld apart. */
static void program(const st_mix_job *j, int64_t i0, int64_t rows, int64_t j0, int64_t cols, char *sums,
                    int64_t plane, int64_t ld, char *scratch)
{
    const st_mix_plan *p = j->p;
    const st_mix *x = p->x;
    st_expr_arg args[ST_EXPR_VARS];
    const int n = st_expr_vars(x->x, NULL);
    for (int v = 0; v < n; v++) {
        const st_mix_term *t = &x->term[v];
        if (x->product[v] >= 0)
            args[v] = (st_expr_arg){sums + x->product[v] * plane, p->type, ld, 1};
        else
            args[v] = st_expr_arg_at(j->data[t->data], t->type,
                                     st_mix_offset(x, t, j->item) + i0 * t->sr + j0 * t->sc, t->sr, t->sc);
    }
    if (x->by_rows)
        st_expr_rows(x->x, args, rows, cols, i0, scratch);
    else
        st_expr_map(x->x, args, rows, cols, i0, j0, scratch);
}

/* ---- by rows ---------------------------------------------------------------------------------------------------------- */
static void pack_columns(void *arg, int64_t slot, int worker)
{
    st_mix_job *j = arg;
    const st_mix_plan *p = j->p;
    const st_mix *x = p->x;
    const st_mix_view v = view_of(j, slot);
    const int64_t nr = width_of(p), panels = st_ceil_div(j->cols, nr);
    (void)worker;
    for (;;) {
        const int64_t task = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed), q = task % panels;
        const int f = (int)(task / panels);
        if (f >= x->nb) return;
        const int64_t kc = block_of(p, x->b[f]->k);
        for (int64_t k0 = 0; k0 < x->b[f]->k; k0 += kc) {
            const int64_t steps = st_min64(kc, x->b[f]->k - k0);
            st_mix_pack(p, false, f, j->data, j->item,
                        place(p, x->b, f, v.b, panels * nr, k0) + q * st_packed_bytes(p->kernel, nr, steps),
                        j->j0 + q * nr, st_min64(nr, j->cols - q * nr), k0, steps, &v.room);
        }
    }
}

static void row_block(st_mix_job *j, const st_mix_view *v, int64_t i0, int64_t rows)
{
    const st_mix_plan *p = j->p;
    const st_mix *x = p->x;
    const int64_t nr = width_of(p), mr = p->kernel->mr, lines = st_round_up(rows, mr),
                  panels = st_ceil_div(j->cols, nr), ld = x->by_rows ? panels * nr : nr,
                  plane = lines * ld * p->es;
    for (int f = 0; f < x->na; f++) {
        const int64_t kc = block_of(p, x->a[f]->k);
        for (int64_t k0 = 0; k0 < x->a[f]->k; k0 += kc)
            st_mix_pack(p, true, f, j->data, j->item, place(p, x->a, f, v->a, lines, k0), i0, rows, k0,
                        st_min64(kc, x->a[f]->k - k0), &v->room);
    }
    for (int64_t q = 0; q < panels; q++) {
        const int64_t w = st_min64(nr, j->cols - q * nr);
        char *sums = v->sums + (x->by_rows ? q * nr * p->es : 0);
        for (int i = 0; i < x->products; i++) {
            const int fa = x->pa[i], fb = x->pb[i];
            const int64_t k = x->a[fa]->k, kc = block_of(p, k);
            for (int64_t k0 = 0; k0 < k; k0 += kc) {
                const int64_t steps = st_min64(kc, k - k0);
                const char *b =
                    place(p, x->b, fb, v->b, panels * nr, k0) + q * st_packed_bytes(p->kernel, nr, steps);
                /* the same panel's next block of k; after the last one the next panel's first */
                const bool more = k0 + kc < k;
                const char *next = more ? place(p, x->b, fb, v->b, panels * nr, k0 + kc) +
                                              q * st_packed_bytes(p->kernel, nr, st_min64(kc, k - k0 - kc))
                                   : q + 1 < panels
                                       ? place(p, x->b, fb, v->b, panels * nr, 0) +
                                             (q + 1) * st_packed_bytes(p->kernel, nr, st_min64(kc, k))
                                       : NULL;
                multiply(p, place(p, x->a, fa, v->a, lines, k0), b, next, rows, w, steps, sums + i * plane,
                         ld, k0 > 0);
            }
        }
        if (!x->by_rows) program(j, i0, rows, j->j0 + q * nr, w, sums, plane, ld, v->room.scratch);
    }
    if (x->by_rows) program(j, i0, rows, 0, x->n, v->sums, plane, ld, v->room.scratch);
}

static void take_rows(void *arg, int64_t slot, int worker)
{
    st_mix_job *j = arg;
    const st_mix_view v = view_of(j, slot);
    const int64_t m = j->p->x->m, mc = j->p->mc;
    (void)worker;
    for (;;) {
        const int64_t i = mc * atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (i >= m) return;
        row_block(j, &v, i, st_min64(mc, m - i));
    }
}

/* ---- by columns ------------------------------------------------------------------------------------------------------- */
/* All of A: blocks of k are shared out, lines are not, since packing narrow panels writes over their ends. */
static void pack_rows(void *arg, int64_t slot, int worker)
{
    st_mix_job *j = arg;
    const st_mix_plan *p = j->p;
    const st_mix *x = p->x;
    const st_mix_view v = view_of(j, slot);
    (void)worker;
    int64_t task = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed), at = 0;
    for (int f = 0; f < x->na; f++) {
        const int64_t kc = block_of(p, x->a[f]->k);
        for (int64_t k0 = 0; k0 < x->a[f]->k; k0 += kc, at++) {
            if (at != task) continue;
            st_mix_pack(p, true, f, j->data, j->item,
                        place(p, x->a, f, v.a, st_round_up(x->m, p->kernel->mr), k0), 0, x->m, k0,
                        st_min64(kc, x->a[f]->k - k0), &v.room);
            task = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        }
    }
}

static void column_panel(st_mix_job *j, const st_mix_view *v, int64_t q)
{
    const st_mix_plan *p = j->p;
    const st_mix *x = p->x;
    const int64_t nr = width_of(p), lines = st_round_up(x->m, p->kernel->mr), w = st_min64(nr, x->n - q * nr),
                  ld = x->by_rows ? st_round_up(x->n, nr) : nr, plane = lines * ld * p->es;
    char *sums = x->by_rows ? j->all + q * nr * p->es : v->sums;
    for (int f = 0; f < x->nb; f++) {
        const int64_t k = x->b[f]->k, kc = block_of(p, k);
        for (int64_t k0 = 0; k0 < k; k0 += kc) {
            const int64_t steps = st_min64(kc, k - k0);
            st_mix_pack(p, false, f, j->data, j->item, v->b, q * nr, w, k0, steps, &v->room);
            for (int i = 0; i < x->products; i++)
                if (x->pb[i] == f)
                    multiply(p, place(p, x->a, x->pa[i], v->a, lines, k0), v->b, NULL, x->m, w, steps,
                             sums + i * plane, ld, k0 > 0);
        }
    }
    if (!x->by_rows) program(j, 0, x->m, q * nr, w, sums, plane, ld, v->room.scratch);
}

static void take_columns(void *arg, int64_t slot, int worker)
{
    st_mix_job *j = arg;
    const st_mix_view v = view_of(j, slot);
    const int64_t panels = st_ceil_div(j->p->x->n, width_of(j->p));
    (void)worker;
    for (;;) {
        const int64_t q = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (q >= panels) return;
        column_panel(j, &v, q);
    }
}

static void finish_rows(void *arg, int64_t slot, int worker)
{
    enum { SOME = 8 }; /* rows: whole bytes of bits */
    st_mix_job *j = arg;
    const st_mix_plan *p = j->p;
    const st_mix_view v = view_of(j, slot);
    const int64_t ld = st_round_up(p->x->n, width_of(p)),
                  plane = st_round_up(p->x->m, p->kernel->mr) * ld * p->es;
    (void)worker;
    for (;;) {
        const int64_t i = SOME * atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (i >= p->x->m) return;
        program(j, i, st_min64(SOME, p->x->m - i), 0, p->x->n, j->all + i * ld * p->es, plane, ld,
                v.room.scratch);
    }
}

/* ---- all -------------------------------------------------------------------------------------------------------------- */
static void phase(strata_handle *h, st_mix_job *j, double us, st_task_fn fn)
{
    atomic_store(&j->next, 0);
    st_team_for(h, j->p->slots, us, fn, j);
}

strata_status st_mix_run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_mix_plan *p = (const st_mix_plan *)plan;
    const st_mix *x = p->x;
    char *w = NULL;
    const strata_status s = st_mix_check_picks(h, "strata_fused", p, data);
    if (s) return s;
    if (!(w = st_plan_workspace(h, plan, r))) return h->err.status;
    const uint64_t t0 = st_trace_begin();
    st_mix_job j = {.p = p, .data = data};
    j.a = j.b = w;
    j.all = w + (p->by_columns ? p->a : p->b);
    j.slot = j.all + p->all_sums;
    j.slot_bytes = (p->by_columns ? p->b : p->a) + p->sums + p->values + p->scratch;
    for (j.item = 0; j.item < x->items; j.item++) {
        if (p->by_columns) {
            phase(h, &j, p->us / 8, pack_rows);
            phase(h, &j, p->us, take_columns);
            if (x->by_rows) phase(h, &j, p->us / 4, finish_rows);
            continue;
        }
        for (j.j0 = 0; j.j0 < x->n; j.j0 += p->nc) {
            j.cols = st_min64(p->nc, x->n - j.j0);
            phase(h, &j, p->us / 8, pack_columns);
            phase(h, &j, p->us, take_rows);
        }
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel, "%lldx%lld, %d products, by %s, workspace %zu",
                     (long long)x->m, (long long)x->n, x->products, p->by_columns ? "columns" : "rows",
                     plan->workspace);
    return STRATA_OK;
}
