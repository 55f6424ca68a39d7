/* SPDX-License-Identifier: Apache-2.0 */
/* window_direct.c - the direct form: tiles of pixels x columns, the image read in place.
 *
 * B is packed once a call into panels [block][step of k][lane]. A task is a chunk of pixels and one block of columns; within it
 * k goes in even parts small enough for a panel's part to stay in the second-level cache, sums passing through C. A tile whose
 * pixels have every tap inside the image uses the plan's list of runs, merged where taps are neighbours in memory (the row of a
 * window in NHWC is one run); a border tile gets a table of addresses, zeros for taps outside. Rows of a tile are any pixels, so
 * that small images fill tiles across rows and images. */
#include "tile/window.h"
#include <stdlib.h>
#include <string.h>

enum { PACK_STEPS = 256 }; /* steps of a packing task */

typedef struct direct_job {
    const st_win_plan *p;
    void *const *data;
    char *panels, *local;
    double alpha, beta;
} direct_job;

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
    p->kparts = st_ceil_div(p->K * p->width * p->es, h->cpu->l2 / 4);
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
    /* about 32 tasks, for two to eight threads to share; not below 4 tiles a task */
    const int64_t mr = kn->rows[p->width / kn->vl];
    p->chunk = st_round_up(st_ceil_div(p->M, st_max64(1, 32 / (p->blocks * p->G))), mr);
    p->chunk = st_min64(st_max64(p->chunk, 4 * mr), ST_WIN_CHUNK / mr * mr);
    p->chunks = st_ceil_div(p->M, p->chunk);
    p->shared = (size_t)st_round_up(p->G * p->blocks * p->K * p->width * p->es, 64);
    /* a worker: table of addresses and its runs, a tile for views that cannot be stored to directly, the epilogue's scratch */
    p->local =
        (size_t)st_round_up(
            (p->taps + 1) * (ST_CONV_ROWS * (int64_t)sizeof(void *) + (int64_t)sizeof(st_conv_run)), 64) +
        (size_t)(ST_CONV_ROWS * p->width * p->es) + st_win_epilogue_scratch(p);
    p->head.base.run = st_win_direct_run;
    return STRATA_OK;
}

static void pack_task(void *arg, int64_t i, int worker)
{
    const direct_job *j = arg;
    const st_win_plan *p = j->p;
    (void)worker;
    const int64_t slabs = st_ceil_div(p->K, PACK_STEPS), slab = i % slabs, block = i / slabs % p->blocks,
                  g = i / slabs / p->blocks;
    int64_t n0, count;
    int vecs;
    st_win_block(p, p->N, block, &n0, &count, &vecs);
    const int64_t k0 = slab * PACK_STEPS, k1 = st_min64(p->K, k0 + PACK_STEPS);
    const char *b = (const char *)j->data[1] + st_axes_offset(&p->c.batch, 'b', g) * p->es;
    char *dst = j->panels + (((g * p->blocks + block) * p->K + k0) * p->width) * p->es;
    st_win_pack(&p->source, p->kernel->turn, b, n0, count, k0, k1 - k0, dst, p->width, vecs * p->kernel->vl);
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

static void direct_task(void *arg, int64_t i, int worker)
{
    const direct_job *j = arg;
    const st_win_plan *p = j->p;
    const st_conv_kernel *kn = p->kernel;
    const int64_t chunk = i % p->chunks, block = i / p->chunks % p->blocks, g = i / p->chunks / p->blocks;
    char *scratch = j->local + (size_t)worker * p->local;
    const void **table = (const void **)scratch;
    st_conv_run *runs = (st_conv_run *)(scratch + (p->taps + 1) * ST_CONV_ROWS * (int64_t)sizeof(void *));
    char *tile =
        scratch +
        st_round_up((p->taps + 1) * (ST_CONV_ROWS * (int64_t)sizeof(void *) + (int64_t)sizeof(st_conv_run)),
                    64);
    char *epilogue = tile + ST_CONV_ROWS * p->width * p->es;
    const int64_t m0 = chunk * p->chunk, count = st_min64(p->chunk, p->M - m0);
    int64_t n0, cols;
    int vecs;
    st_win_block(p, p->N, block, &n0, &cols, &vecs);
    st_win_pixels x;
    st_win_place(p, m0, count, &x);
    const char *a = (const char *)j->data[0] + st_axes_offset(&p->c.batch, 'a', g) * p->es;
    char *cg = (char *)j->data[2] + st_axes_offset(&p->c.batch, 'c', g) * p->es;
    const bool wide = p->c.n.count == 0 || (p->c.n.count == 1 && p->c.n.ax[0].c == 1);
    const int64_t tiles = st_ceil_div(count, kn->rows[vecs]);
    const int64_t nc = st_axes_offset(&p->c.n, 'c', n0);
    st_conv_call q = {.ks = p->ks, .ldb = p->width, .last = cols - (vecs - 1) * (int64_t)kn->vl};
    for (int64_t part = 0; part < p->kparts; part++) {
        int64_t k0, k1;
        st_win_part(p, part, &k0, &k1);
        q.b = j->panels + (((g * p->blocks + block) * p->K + k0) * p->width) * p->es;
        q.alpha = j->alpha;
        q.beta = part ? 1.0 : j->beta;
        for (int64_t t = 0, e = 0; t < tiles; t++) {
            const int64_t mr = count / tiles + (t < count % tiles);
            const void *row[ST_CONV_ROWS];
            const int with_table = !st_win_inside(p, &x, e, mr);
            if (with_table) {
                q.rows = table;
                q.run = runs;
                q.runs = border(p, a, &x, e, mr, k0, k1, table, runs);
            } else {
                for (int64_t r = 0; r < mr; r++) row[r] = a + x.a[e + r] * p->es;
                q.rows = row;
                q.run = p->run + p->part_run[part];
                q.runs = p->part_run[part + 1] - p->part_run[part];
            }
            bool even = wide;
            q.ldc = mr > 1 ? x.c[e + 1] - x.c[e] : 0;
            for (int64_t r = 2; r < mr; r++) even = even && x.c[e + r] - x.c[e + r - 1] == q.ldc;
            if (even) {
                q.c = cg + (x.c[e] + nc) * p->es;
                kn->fn[with_table][vecs][mr](&q);
            } else {
                st_conv_call own = q;
                own.c = tile;
                own.ldc = p->width;
                own.alpha = 1;
                own.beta = 0;
                kn->fn[with_table][vecs][mr](&own);
                st_win_scatter(p, true, cg, tile, p->width, m0 + e, mr, n0, cols, q.alpha, q.beta);
            }
            e += mr;
        }
    }
    st_win_epilogue(p, j->data, g, m0, count, n0, cols, epilogue);
}

strata_status st_win_direct_run(strata_handle *h, const strata_plan *plan, void *const data[],
                                const strata_run *r)
{
    const st_win_plan *p = (const st_win_plan *)plan;
    direct_job j = {.p = p, .data = data};
    const uint64_t t0 = st_trace_begin();
    strata_status s = st_contract_scalars(h, &p->head, r, &j.alpha, &j.beta);
    if (s) return s;
    if (!(j.panels = st_plan_workspace(h, plan, r))) return h->err.status;
    if (j.alpha == 0) {
        st_win_beta_only(p, data, j.beta, j.panels);
        return STRATA_OK;
    }
    j.local = j.panels + p->shared;
    const int64_t slabs = st_ceil_div(p->K, PACK_STEPS);
    st_win_for(h, p, p->G * p->blocks * slabs, (double)(p->G * p->K * p->width) * 0.5e-3, pack_task, &j);
    st_win_for(h, p, p->G * p->blocks * p->chunks, p->us, direct_task, &j);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel,
                     "%lld x %lldx%lldx%lld, %lld taps, %lld columns a block, workspace %zu", (long long)p->G,
                     (long long)p->M, (long long)p->N, (long long)p->K, (long long)p->taps,
                     (long long)p->width, plan->workspace);
    return STRATA_OK;
}
