/* SPDX-License-Identifier: Apache-2.0 */
/* window_panel.c - the panel form: columns are m (pixels), packed from the image piece by piece; rows are n, read in place.
 *
 * A task is one block of up to 64 columns and a range of rows. For each even part of k it packs a panel [step][column] small
 * enough for the second-level cache and runs all its rows over it. Sums of several parts pass through C, or through a tile buffer
 * when C cannot be stored to in rows of columns. Every stride and bound goes: the packing reads through them.
 * A last vector of columns that would be nearly empty (49 pixels are three vectors and one) is the tail: its pixels are packed as lines along
 * k, and each is a dot product with the rows where these lie along k, too. */
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

/* A worker's share of the workspace: panel, lines of the tail, a buffer for C, runs against the panel and against a line, scratch. */
static size_t panel_bytes(const st_win_plan *p)
{
    return (size_t)st_round_up(p->steps * p->width * p->es, 64);
}
static size_t line_bytes(const st_win_plan *p) { return (size_t)st_round_up(p->tail * p->steps * p->es, 64); }
static size_t run_bytes(const st_win_plan *p)
{
    return (size_t)st_round_up(p->steps * (int64_t)sizeof(st_conv_run), 64);
}

/* Columns left to dot products: at most four beyond whole vectors, where the rows lie along k. */
int64_t st_win_tail(const st_contract *c, const st_conv_kernel *kn)
{
    const st_axes *k = &c->k;
    const int64_t M = st_axes_len(&c->m), rest = M % kn->vl;
    if (rest > 4 || rest * 2 > kn->vl || M < kn->vl || k->count == 0) return 0;
    return k->ax[k->count - 1].b == 1 && k->ax[k->count - 1].len >= 4 * kn->vl ? rest : 0;
}

strata_status st_win_panel_build(strata_handle *h, st_win_plan *p)
{
    const st_conv_kernel *kn = p->kernel;
    p->tail = st_win_tail(&p->c, kn);
    const int64_t vectors = st_ceil_div(p->M - p->tail, kn->vl);
    p->blocks = st_ceil_div(vectors, kn->vecs);
    p->width = st_ceil_div(vectors, p->blocks) * kn->vl;
    p->kparts = st_ceil_div(p->K, part_steps(h, p));
    p->steps = st_ceil_div(p->K, p->kparts);
    /* few columns: the rows are shared among threads, each packing for itself; the split changes no sum */
    p->row_split = 1;
    if (p->blocks * p->G < 4 * p->workers) p->row_split = st_min64(st_ceil_div(p->N, 48), p->workers);
    if (p->row_split < 1) p->row_split = 1;
    const int64_t rows = st_ceil_div(p->N, p->row_split);
    p->shared = 0;
    p->local = panel_bytes(p) + line_bytes(p) + (size_t)st_round_up(rows * (p->width + p->tail) * p->es, 64) +
               2 * run_bytes(p) + st_win_epilogue_scratch(p);
    p->b_dense = st_win_b_dense(p);
    p->head.base.run = st_win_panel_run;
    return STRATA_OK;
}

/* Runs of the rows (operand B) for steps [k0, k1) of k, against columns whose steps are `pitch` apart. */
static int64_t row_runs(const st_win_plan *p, int64_t k0, int64_t k1, int64_t pitch, st_conv_run *run)
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
            run[n++] = (st_conv_run){a, (x - k0) * pitch, len};
        x += len;
    }
    return n;
}

/* A task's part of k: rows r0 .. over the packed columns and the tail's lines, into c[row * ldc + column]. */
typedef struct panel_part {
    const char *b; /* the rows' operand, at the batch item */
    int64_t r0, rows;
    int vecs;
    int64_t last, tail; /* lanes of the last vector; columns of the tail, at vecs * vl */
    const char *panel, *line;
    st_conv_run *runs, *line_runs;
    int64_t count; /* of runs */
    char *c;       /* row r0 */
    int64_t ldc;
    int64_t
        stream; /* bytes from a row to the next where rows follow each other without a gap; 0: they do not */
    double alpha, beta;
} panel_part;

static void multiply(const st_win_plan *p, const panel_part *x)
{
    const st_conv_kernel *kn = p->kernel;
    const int64_t end = p->c.k.count - 1, tiles = st_ceil_div(x->rows, kn->rows[x->vecs]);
    st_conv_call q = {.run = x->runs, .runs = x->count, .b = x->panel, .ldb = p->width, .ldc = x->ldc};
    q.ks = end < 0 ? 1 : p->c.k.ax[end].b;
    q.last = x->last;
    q.alpha = x->alpha;
    q.beta = x->beta;
    st_conv_dots d = {
        .run = x->line_runs, .runs = x->count, .ldc = x->ldc, .alpha = x->alpha, .beta = x->beta};
    for (int64_t t = 0, e = 0; t < tiles; t++) {
        const int64_t mr = x->rows / tiles + (t < x->rows % tiles);
        const void *row[ST_CONV_ROWS];
        for (int64_t r = 0; r < mr; r++) row[r] = x->b + st_axes_offset(&p->c.n, 'b', x->r0 + e + r) * p->es;
        char *c = x->c + e * x->ldc * p->es;
        q.rows = d.rows = row;
        q.c = c;
        q.ahead = x->panel;
        q.ahead_step = 0;
        if (x->stream && t + 1 < tiles) {
            q.ahead = (const char *)row[mr - 1] + x->stream;
            q.ahead_step = mr * p->es;
        }
        kn->fn[0][x->vecs][mr](&q);
        for (int64_t j = 0; j < x->tail; j += ST_CONV_DOTS) {
            const int64_t px = st_min64(x->tail - j, ST_CONV_DOTS);
            for (int64_t i = 0; i < px; i++) d.x[i] = x->line + (j + i) * p->steps * p->es;
            d.c = c + (x->vecs * (int64_t)kn->vl + j) * p->es;
            kn->dots[px][mr](&d);
        }
        e += mr;
    }
}

static void panel_task(void *arg, int64_t i, int worker)
{
    const panel_job *j = arg;
    const st_win_plan *p = j->p;
    const st_conv_kernel *kn = p->kernel;
    const int64_t split = i % p->row_split, block = i / p->row_split % p->blocks,
                  g = i / p->row_split / p->blocks;
    char *panel = j->local + (size_t)worker * p->local, *line = panel + panel_bytes(p),
         *buffer = line + line_bytes(p);
    char *runs = buffer + st_round_up(st_ceil_div(p->N, p->row_split) * (p->width + p->tail) * p->es, 64);
    const int64_t each = p->N / p->row_split, more = p->N % p->row_split;
    panel_part x = {.panel = panel, .line = line};
    x.runs = (st_conv_run *)runs;
    x.line_runs = (st_conv_run *)(runs + run_bytes(p));
    x.r0 = split * each + st_min64(split, more);
    x.rows = each + (split < more);
    x.tail = block == p->blocks - 1 ? p->tail : 0;
    int64_t c0, lanes;
    st_win_block(p, p->M - p->tail, block, &c0, &lanes, &x.vecs);
    x.last = lanes - (x.vecs - 1) * (int64_t)kn->vl;
    const int64_t cols = lanes + x.tail;
    const char *a = (const char *)j->data[0] + st_axes_offset(&p->c.batch, 'a', g) * p->es;
    char *c = (char *)j->data[2] + st_axes_offset(&p->c.batch, 'c', g) * p->es;
    x.b = (const char *)j->data[1] + st_axes_offset(&p->c.batch, 'b', g) * p->es;
    /* C directly: columns side by side, rows evenly apart */
    const st_axes *m = &p->c.m, *n = &p->c.n;
    const int64_t first = st_axes_offset(m, 'c', c0);
    bool direct = n->count <= 1 && (m->count == 0 || m->ax[m->count - 1].c == 1);
    for (int64_t e = 1; e < cols && direct; e++) direct = st_axes_offset(m, 'c', c0 + e) == first + e;
    x.c = direct ? c + (first + st_axes_offset(n, 'c', x.r0)) * p->es : buffer;
    x.ldc = direct ? (n->count ? n->ax[0].c : 0) : p->width + p->tail;
    x.stream = p->b_dense && p->kparts == 1 ? p->K * p->es : 0;
    for (int64_t part = 0; part < p->kparts; part++) {
        int64_t k0, k1;
        st_win_part(p, part, &k0, &k1);
        st_win_pack(&p->source, kn->turn, a, c0, lanes, k0, k1 - k0, panel, p->width, x.vecs * kn->vl);
        for (int64_t t = 0; t < x.tail; t++)
            st_win_pack_line(&p->source, a, c0 + lanes + t, k0, k1 - k0, line + t * p->steps * p->es);
        x.count = row_runs(p, k0, k1, p->width, x.runs);
        if (x.tail) row_runs(p, k0, k1, 1, x.line_runs);
        x.alpha = direct ? j->alpha : 1;
        x.beta = part ? 1 : direct ? j->beta : 0;
        multiply(p, &x);
    }
    if (!direct)
        st_win_scatter(p, false, c, buffer, p->width + p->tail, x.r0, x.rows, c0, cols, j->alpha, j->beta);
    st_win_epilogue(p, j->data, g, c0, cols, x.r0, x.rows, runs + 2 * run_bytes(p));
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
