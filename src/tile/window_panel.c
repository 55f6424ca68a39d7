/* SPDX-License-Identifier: Apache-2.0 */
/* window_panel.c - the panel form: columns are m (pixels), packed from the image piece by piece; rows are n, read in place.
 *
 * A task is one block of up to 64 columns and a range of rows. For each even part of k it packs a panel [step][column] small
 * enough for the second-level cache and runs all its rows over it. Sums of several parts pass through C, or through a tile buffer
 * when C cannot be stored to in rows of columns. Every stride and bound goes: the packing reads through them. */
#include "tile/window.h"
#include <string.h>

/* Steps of a panel's part: as many as leave room beside it in the second-level cache; rows read in place want long streams. */
static int64_t part_steps(const strata_handle *h, const st_win_plan *p)
{
    return st_max64(256, h->cpu->l2 * 5 / 8 / (p->width * p->es));
}

typedef struct panel_job {
    const st_win_plan *p;
    void *const *data;
    char *local;
    double alpha, beta;
} panel_job;

strata_status st_win_panel_build(strata_handle *h, st_win_plan *p)
{
    const st_conv_kernel *kn = p->kernel;
    p->blocks = st_ceil_div(st_ceil_div(p->M, kn->vl), kn->vecs);
    p->width = st_ceil_div(st_ceil_div(p->M, kn->vl), p->blocks) * kn->vl;
    p->kparts = st_ceil_div(p->K, part_steps(h, p));
    p->steps = st_ceil_div(p->K, p->kparts);
    /* few columns: the rows are shared among threads, each packing for itself; the split changes no sum */
    p->row_split = 1;
    if (p->blocks * p->G < 4 * p->workers) p->row_split = st_min64(st_ceil_div(p->N, 48), p->workers);
    if (p->row_split < 1) p->row_split = 1;
    const int64_t rows = st_ceil_div(p->N, p->row_split);
    p->shared = 0;
    p->local = (size_t)st_round_up(p->steps * p->width * p->es, 64) +
               (size_t)st_round_up(rows * p->width * p->es, 64) +
               (size_t)st_round_up(p->steps * (int64_t)sizeof(st_conv_run), 64) + st_win_epilogue_scratch(p);
    p->head.base.run = st_win_panel_run;
    return STRATA_OK;
}

/* Runs of the rows (operand B) for steps [k0, k1) of k. */
static int64_t row_runs(const st_win_plan *p, int64_t k0, int64_t k1, st_conv_run *run)
{
    const st_axes *k = &p->c.k;
    const int64_t last = k->count - 1, inner = last < 0 ? 1 : k->ax[last].len,
                  ks = last < 0 ? 1 : k->ax[last].b;
    int64_t n = 0;
    for (int64_t x = k0; x < k1;) {
        const int64_t a = st_axes_offset(k, 'b', x), len = st_min64(inner - x % inner, k1 - x);
        if (n && run[n - 1].a + run[n - 1].len * ks == a)
            run[n - 1].len += len;
        else
            run[n++] = (st_conv_run){a, (x - k0) * p->width, len};
        x += len;
    }
    return n;
}

static void panel_task(void *arg, int64_t i, int worker)
{
    const panel_job *j = arg;
    const st_win_plan *p = j->p;
    const st_conv_kernel *kn = p->kernel;
    const int64_t split = i % p->row_split, block = i / p->row_split % p->blocks,
                  g = i / p->row_split / p->blocks;
    char *panel = j->local + (size_t)worker * p->local;
    char *buffer = panel + st_round_up(p->steps * p->width * p->es, 64);
    st_conv_run *runs =
        (st_conv_run *)(buffer + st_round_up(st_ceil_div(p->N, p->row_split) * p->width * p->es, 64));
    char *scratch = (char *)runs + st_round_up(p->steps * (int64_t)sizeof(st_conv_run), 64);
    const int64_t each = p->N / p->row_split, more = p->N % p->row_split;
    const int64_t r0 = split * each + st_min64(split, more), rows = each + (split < more);
    int64_t c0, cols;
    int vecs;
    st_win_block(p, p->M, block, &c0, &cols, &vecs);
    const char *a = (const char *)j->data[0] + st_axes_offset(&p->c.batch, 'a', g) * p->es;
    const char *b = (const char *)j->data[1] + st_axes_offset(&p->c.batch, 'b', g) * p->es;
    char *c = (char *)j->data[2] + st_axes_offset(&p->c.batch, 'c', g) * p->es;
    /* C directly: columns side by side, rows evenly apart */
    const st_axes *m = &p->c.m, *n = &p->c.n;
    const int64_t first = st_axes_offset(m, 'c', c0);
    bool direct = n->count <= 1 && (m->count == 0 || m->ax[m->count - 1].c == 1);
    for (int64_t x = 1; x < cols && direct; x++) direct = st_axes_offset(m, 'c', c0 + x) == first + x;
    const int64_t last = p->c.k.count - 1;
    st_conv_call q = {.ks = last < 0 ? 1 : p->c.k.ax[last].b, .ldb = p->width, .b = panel, .run = runs};
    q.last = cols - (vecs - 1) * (int64_t)kn->vl;
    for (int64_t part = 0; part < p->kparts; part++) {
        int64_t k0, k1;
        st_win_part(p, part, &k0, &k1);
        st_win_pack(&p->source, kn->turn, a, c0, cols, k0, k1 - k0, panel, p->width, vecs * kn->vl);
        q.runs = row_runs(p, k0, k1, runs);
        q.alpha = direct ? j->alpha : 1;
        q.beta = part ? 1 : direct ? j->beta : 0;
        const int64_t tiles = st_ceil_div(rows, kn->rows[vecs]);
        for (int64_t t = 0, e = 0; t < tiles; t++) {
            const int64_t mr = rows / tiles + (t < rows % tiles);
            const void *row[ST_CONV_ROWS];
            for (int64_t r = 0; r < mr; r++) row[r] = b + st_axes_offset(n, 'b', r0 + e + r) * p->es;
            q.rows = row;
            q.c =
                direct ? c + (first + st_axes_offset(n, 'c', r0 + e)) * p->es : buffer + e * p->width * p->es;
            q.ldc = direct ? (n->count ? n->ax[0].c : 0) : p->width;
            kn->fn[0][vecs][mr](&q);
            e += mr;
        }
    }
    if (!direct) st_win_scatter(p, false, c, buffer, p->width, r0, rows, c0, cols, j->alpha, j->beta);
    st_win_epilogue(p, j->data, g, c0, cols, r0, rows, scratch);
}

strata_status st_win_panel_run(strata_handle *h, const strata_plan *plan, void *const data[],
                               const strata_run *r)
{
    const st_win_plan *p = (const st_win_plan *)plan;
    panel_job j = {.p = p, .data = data};
    const uint64_t t0 = st_trace_begin();
    strata_status s = st_contract_scalars(h, &p->head, r, &j.alpha, &j.beta);
    if (s) return s;
    if (!(j.local = st_plan_workspace(h, plan, r))) return h->err.status;
    if (j.alpha == 0) {
        st_win_beta_only(p, data, j.beta, j.local);
        return STRATA_OK;
    }
    st_win_for(h, p, p->G * p->blocks * p->row_split, p->us, panel_task, &j);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel,
                     "%lld x %lldx%lldx%lld, %lld pixels a panel, workspace %zu", (long long)p->G,
                     (long long)p->M, (long long)p->N, (long long)p->K, (long long)p->width, plan->workspace);
    return STRATA_OK;
}
