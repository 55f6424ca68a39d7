/* SPDX-License-Identifier: Apache-2.0 */
/* window_direct.c - the direct form: tiles of pixels x columns, the image read in place.
 *
 * A task is one block of columns and a range of pixels. B's block is packed as [step of k][lane] into a panel of the worker's own, right
 * before it is used: the panel stays in the second-level cache, and a worker whose next task has the same block keeps it. A block too
 * large for that is packed and used in even parts of k, sums passing through C. A tile whose
 * pixels have every tap inside the image uses the plan's list of runs, merged where taps are neighbours in memory (the row of a
 * window in NHWC is one run); a border tile gets a table of addresses, zeros for taps outside. Rows of a tile are any pixels, so
 * that small images fill tiles across rows and images. */
#include "tile/window.h"
#include <stdlib.h>
#include <string.h>

enum { MIN_PIXELS = 400 }; /* of a task, so that packing for each stays below a tenth */

typedef struct direct_job {
    const st_win_plan *p;
    void *const *data;
    char *local;
    double alpha, beta;
    int threads;
} direct_job;

/* A worker's share of the workspace: what the panel holds, panel, tables, a tile for views that cannot be stored to directly,
 * the epilogue's scratch. */
typedef struct direct_local {
    int64_t unit, part; /* of the packed panel; -1: none */
    char *panel, *tile, *epilogue;
    const char *ahead; /* what of B comes next, and how much of it to ask for in a step */
    int64_t ahead_step;
    const void **table;
    st_conv_run *runs;
} direct_local;

static size_t table_bytes(const st_win_plan *p)
{
    return (size_t)st_round_up(
        (p->taps + 1) * (ST_CONV_ROWS * (int64_t)sizeof(void *) + (int64_t)sizeof(st_conv_run)), 64);
}
static size_t head_bytes(void) { return (size_t)st_round_up(sizeof(direct_local), 64); }

static direct_local *local_of(const direct_job *j, int worker)
{
    return (direct_local *)(j->local + (size_t)worker * j->p->local);
}

static int64_t merge_runs(const st_win_plan *p, int64_t k0, int64_t k1, st_conv_run *run)
{
    int64_t n = 0;
    for (int64_t k = k0; k < k1;) {
        const int64_t t = k / p->inner, o = k % p->inner, len = st_min64(p->inner - o, k1 - k),
                      a = p->tap_a[t] + o * p->ks;
        if (n && run[n - 1].a + run[n - 1].len * p->ks == a)
            run[n - 1].len += len;
        else
            run[n++] = (st_conv_run){a, (k - k0) * p->width, len};
        k += len;
    }
    return n;
}

strata_status st_win_direct_build(strata_handle *h, st_win_plan *p)
{
    const st_conv_kernel *kn = p->kernel;
    p->blocks = st_ceil_div(st_ceil_div(p->N, kn->vl), kn->vecs);
    p->width = st_ceil_div(st_ceil_div(p->N, kn->vl), p->blocks) * kn->vl;
    const int64_t whole = p->K * p->width * p->es, l2 = h->cpu->l2;
    p->kparts = whole <= l2 * 5 / 8 ? 1 : st_ceil_div(whole, l2 / 4);
    p->steps = st_ceil_div(p->K, p->kparts);
    p->b_dense = st_win_b_dense(p);
    strata_status s = st_win_tap_tables(h, p);
    if (s) return s;
    p->run = calloc((size_t)(p->taps + p->kparts), sizeof *p->run);
    p->part_run = calloc((size_t)p->kparts + 1, sizeof *p->part_run);
    const size_t zero = (size_t)(((p->inner - 1) * (p->ks < 0 ? -p->ks : p->ks) + 1) * p->es);
    p->zeros = p->c.bounds ? calloc(1, zero) : NULL;
    if (!p->run || !p->part_run || (p->c.bounds && !p->zeros))
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "plan: no memory for the tables of %lld taps",
                       (long long)p->taps);
    p->zero_row = p->zeros ? (char *)p->zeros + (p->ks < 0 ? (p->inner - 1) * -p->ks * p->es : 0) : NULL;
    for (int64_t i = 0; i < p->kparts; i++) {
        int64_t k0, k1;
        st_win_part(p, i, &k0, &k1);
        p->part_run[i + 1] = p->part_run[i] + merge_runs(p, k0, k1, p->run + p->part_run[i]);
    }
    /* ranges of pixels: enough tasks for the workers to share */
    const int64_t mr = kn->rows[p->width / kn->vl], units = p->blocks * p->G, workers = p->workers;
    p->ranges = st_min64(st_ceil_div(4 * workers, units), p->M / MIN_PIXELS);
    if (units < 4 * workers && units % workers) p->ranges = st_max64(p->ranges, st_max64(2, workers / units));
    p->ranges = st_max64(1, st_min64(p->ranges, p->M / (4 * mr)));
    p->chunk = st_min64(st_round_up(st_ceil_div(p->M, p->ranges), mr), ST_WIN_CHUNK / mr * mr);
    p->chunks = st_ceil_div(p->M, p->chunk);
    p->ranges = st_min64(p->ranges, p->chunks);
    p->shared = 0;
    p->local = head_bytes() + (size_t)st_round_up(p->steps * p->width * p->es, 64) + table_bytes(p) +
               (size_t)(ST_CONV_ROWS * p->width * p->es) + st_win_epilogue_scratch(p);
    p->head.base.run = st_win_direct_run;
    return STRATA_OK;
}

/* Packs a part of unit (batch item and block of columns) unless the worker's panel holds it. */
static void pack(const direct_job *j, direct_local *l, int64_t unit, int64_t part)
{
    const st_win_plan *p = j->p;
    if (l->unit == unit && l->part == part) return;
    int64_t n0, count, k0, k1;
    int vecs;
    st_win_block(p, p->N, unit % p->blocks, &n0, &count, &vecs);
    st_win_part(p, part, &k0, &k1);
    const char *b = (const char *)j->data[1] + st_axes_offset(&p->c.batch, 'b', unit / p->blocks) * p->es;
    st_win_pack(&p->source, p->kernel->turn, b, n0, count, k0, k1 - k0, l->panel, p->width,
                vecs * p->kernel->vl);
    l->unit = unit;
    l->part = part;
}

/* The table of a border tile for steps [k0, k1): taps outside for every row are left out. Returns the number of runs. */
static int64_t border(const st_win_plan *p, const char *a, const st_win_pixels *x, int64_t i, int64_t mr,
                      int64_t k0, int64_t k1, const void **table, st_conv_run *run)
{
    int64_t n = 0;
    for (int64_t k = k0; k < k1;) {
        const int64_t t = k / p->inner, o = k % p->inner, len = st_min64(p->inner - o, k1 - k);
        const void **row = table + n * ST_CONV_ROWS;
        bool any = false;
        for (int64_t e = 0; e < mr; e++) {
            bool in = true;
            for (int64_t b = 0; b < p->c.bounds; b++) {
                const int64_t y = x->at[b][i + e] + p->tap_c[b][t];
                in = in && y >= 0 && y < p->c.bound[b].limit;
            }
            row[e] = in ? a + (x->a[i + e] + p->tap_a[t] + o * p->ks) * p->es : p->zero_row;
            any = any || in;
        }
        if (any) run[n++] = (st_conv_run){0, (k - k0) * p->width, len};
        k += len;
    }
    return n;
}

/* One part of k for pixels m0 .. m0 + count - 1. */
static void direct_chunk(const direct_job *j, direct_local *l, int64_t unit, int64_t part, int64_t m0,
                         int64_t count)
{
    const st_win_plan *p = j->p;
    const st_conv_kernel *kn = p->kernel;
    const int64_t g = unit / p->blocks;
    int64_t n0, cols, k0, k1;
    int vecs;
    st_win_block(p, p->N, unit % p->blocks, &n0, &cols, &vecs);
    st_win_part(p, part, &k0, &k1);
    st_win_pixels x;
    st_win_place(p, m0, count, &x);
    const char *a = (const char *)j->data[0] + st_axes_offset(&p->c.batch, 'a', g) * p->es;
    char *cg = (char *)j->data[2] + st_axes_offset(&p->c.batch, 'c', g) * p->es;
    const bool wide = p->c.n.count == 0 || (p->c.n.count == 1 && p->c.n.ax[0].c == 1);
    const int64_t tiles = st_ceil_div(count, kn->rows[vecs]), nc = st_axes_offset(&p->c.n, 'c', n0);
    st_conv_call q = {.ks = p->ks, .ldb = p->width, .last = cols - (vecs - 1) * (int64_t)kn->vl};
    q.b = l->panel;
    q.alpha = j->alpha;
    q.beta = part ? 1.0 : j->beta;
    q.ahead_step = l->ahead_step;
    for (int64_t t = 0, e = 0; t < tiles; t++) {
        const int64_t mr = count / tiles + (t < count % tiles);
        const void *row[ST_CONV_ROWS];
        const int with_table = !st_win_inside(p, &x, e, mr);
        if (with_table) {
            q.rows = l->table;
            q.run = l->runs;
            q.runs = border(p, a, &x, e, mr, k0, k1, l->table, l->runs);
        } else {
            for (int64_t r = 0; r < mr; r++) row[r] = a + x.a[e + r] * p->es;
            q.rows = row;
            q.run = p->run + p->part_run[part];
            q.runs = p->part_run[part + 1] - p->part_run[part];
        }
        q.ahead = l->ahead;
        l->ahead += l->ahead_step * (k1 - k0);
        bool even = wide;
        q.ldc = mr > 1 ? x.c[e + 1] - x.c[e] : 0;
        for (int64_t r = 2; r < mr; r++) even = even && x.c[e + r] - x.c[e + r - 1] == q.ldc;
        if (even) {
            q.c = cg + (x.c[e] + nc) * p->es;
            kn->fn[with_table][vecs][mr](&q);
        } else {
            st_conv_call own = q;
            own.c = l->tile;
            own.ldc = p->width;
            own.alpha = 1;
            own.beta = 0;
            kn->fn[with_table][vecs][mr](&own);
            st_win_scatter(p, true, cg, l->tile, p->width, m0 + e, mr, n0, cols, q.alpha, q.beta);
        }
        e += mr;
    }
}

/* The next block's part of B is fetched while this one is computed, if it is one piece of memory. */
static void look_ahead(const direct_job *j, direct_local *l, int64_t unit, int64_t pixels)
{
    const st_win_plan *p = j->p;
    const int64_t next = unit + j->threads;
    l->ahead = l->panel;
    l->ahead_step = 0;
    if (!p->b_dense || next / p->blocks != unit / p->blocks) return;
    int64_t n0, cols;
    int vecs;
    st_win_block(p, p->N, next % p->blocks, &n0, &cols, &vecs);
    const int64_t tiles = st_ceil_div(pixels, p->kernel->rows[vecs]);
    l->ahead =
        (const char *)j->data[1] +
        (st_axes_offset(&p->c.batch, 'b', next / p->blocks) + st_axes_offset(&p->c.n, 'b', n0)) * p->es;
    l->ahead_step = st_ceil_div(cols * p->es, tiles);
}

static void direct_task(void *arg, int64_t i, int worker)
{
    const direct_job *j = arg;
    const st_win_plan *p = j->p;
    direct_local *l = local_of(j, worker);
    const int64_t range = i % p->ranges, unit = i / p->ranges;
    const int64_t c0 = p->chunks * range / p->ranges, c1 = p->chunks * (range + 1) / p->ranges;
    int64_t n0, cols;
    int vecs;
    st_win_block(p, p->N, unit % p->blocks, &n0, &cols, &vecs);
    look_ahead(j, l, unit, (c1 - c0) * p->chunk);
    for (int64_t part = 0; part < p->kparts; part++) {
        pack(j, l, unit, part);
        for (int64_t c = c0; c < c1; c++) {
            const int64_t m0 = c * p->chunk, count = st_min64(p->chunk, p->M - m0);
            direct_chunk(j, l, unit, part, m0, count);
            if (part == p->kparts - 1)
                st_win_epilogue(p, j->data, unit / p->blocks, m0, count, n0, cols, l->epilogue);
        }
    }
}

strata_status st_win_direct_run(strata_handle *h, const strata_plan *plan, void *const data[],
                                const strata_run *r)
{
    const st_win_plan *p = (const st_win_plan *)plan;
    direct_job j = {.p = p, .data = data, .threads = st_threads(h)};
    const uint64_t t0 = st_trace_begin();
    strata_status s = st_contract_scalars(h, &p->head, r, &j.alpha, &j.beta);
    if (s) return s;
    if (!(j.local = st_plan_workspace(h, plan, r))) return h->err.status;
    if (j.alpha == 0) {
        st_win_beta_only(p, data, j.beta, j.local);
        return STRATA_OK;
    }
    for (int w = 0; w < p->workers; w++) {
        direct_local *l = local_of(&j, w);
        l->unit = l->part = -1;
        l->panel = (char *)l + head_bytes();
        l->table = (const void **)(l->panel + st_round_up(p->steps * p->width * p->es, 64));
        l->runs = (st_conv_run *)(l->table + (p->taps + 1) * ST_CONV_ROWS);
        l->tile = (char *)l->table + table_bytes(p);
        l->epilogue = l->tile + ST_CONV_ROWS * p->width * p->es;
    }
    st_win_for(h, p, p->G * p->blocks * p->ranges, p->us, direct_task, &j);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel,
                     "%lld x %lldx%lldx%lld, %lld taps, %lld columns a block, workspace %zu", (long long)p->G,
                     (long long)p->M, (long long)p->N, (long long)p->K, (long long)p->taps,
                     (long long)p->width, plan->workspace);
    return STRATA_OK;
}
