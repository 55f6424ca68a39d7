/* SPDX-License-Identifier: Apache-2.0 */
/* window_taps.c - the taps form: rows are the window's taps with the channels below them, the sum runs over pixels.
 *
 * The rows of a tile share the axes that a bound reads (one tap), so the pixels whose window stays inside the image are one
 * range of the run axis for the whole tile: padding is clipped, never read and never multiplied. B is read in place when its columns
 * lie side by side, else packed a part of k at a time.
 * A long sum with few results is cut in pieces that the shape alone fixes; their results are added in order, so that the bits
 * do not depend on threads. With one piece the threads share the rows instead. */
#include "tile/window.h"
#include <string.h>

enum { STEPS = 512, MAX_PIECES = 16, PIECE_BYTES = 2 << 20, MIN_PIECE_STEPS = 1024 };

typedef struct taps_job {
    const st_win_plan *p;
    void *const *data;
    char *partial, *local;
    double alpha, beta;
} taps_job;

static int64_t run_limit(const st_win_plan *p)
{
    return st_min64(p->outer_k, p->K / p->kparts / p->run_len + 3);
}

strata_status st_win_taps_build(strata_handle *h, st_win_plan *p)
{
    const st_conv_kernel *kn = p->kernel;
    const st_axes *k = &p->c.k;
    p->blocks = st_ceil_div(st_ceil_div(p->N, kn->vl), kn->vecs);
    p->width = st_ceil_div(st_ceil_div(p->N, kn->vl), p->blocks) * kn->vl;
    p->kparts = st_ceil_div(p->K, STEPS);
    p->steps = st_ceil_div(p->K, p->kparts);
    p->run_len = k->ax[k->count - 1].len;
    p->run_a = k->ax[k->count - 1].a;
    p->run_b = k->ax[k->count - 1].b;
    p->outer_k = p->K / p->run_len;
    p->b_in_place = st_win_b_in_place(&p->c, kn);
    const int64_t result = p->M * p->blocks * p->width * p->es;
    p->pieces = st_min64(MAX_PIECES, st_min64(PIECE_BYTES / st_max64(result, 1), p->K / MIN_PIECE_STEPS));
    p->pieces = st_min64(p->pieces, st_ceil_div(32, p->blocks * p->G));
    if (p->pieces < 2) p->pieces = 1;
    const int64_t mr = kn->rows[p->width / kn->vl], tiles = p->outer_rows * st_ceil_div(p->free_rows, mr);
    p->row_tasks = 1;
    if (p->pieces == 1) p->row_tasks = st_min64(st_ceil_div(32, p->blocks * p->G), st_ceil_div(tiles, 4));
    p->row_tiles = st_ceil_div(tiles, p->row_tasks);
    p->row_tasks = st_ceil_div(tiles, p->row_tiles);
    const int64_t buffer = p->pieces == 1 ? p->row_tiles * mr * p->width * p->es : 0;
    p->shared = p->pieces == 1 ? 0 : (size_t)st_round_up(p->pieces * p->G * result, 64);
    p->local = (size_t)(p->b_in_place ? 0 : st_round_up(p->steps * p->width * p->es, 64)) +
               (size_t)st_round_up(buffer, 64) +
               (size_t)st_round_up(run_limit(p) * (int64_t)sizeof(st_conv_run), 64) +
               st_win_epilogue_scratch(p);
    p->head.base.run = st_win_taps_run;
    (void)h;
    return STRATA_OK;
}

/* Range of the run axis where coordinate x + step * i stays in [0, limit) */
static void clip(int64_t x, int64_t step, int64_t limit, int64_t *lo, int64_t *hi)
{
    if (step == 0) {
        if (x < 0 || x >= limit) *hi = 0;
    } else if (step > 0) {
        if (x < 0) *lo = st_max64(*lo, st_ceil_div(-x, step));
        *hi = x >= limit ? 0 : st_min64(*hi, st_ceil_div(limit - x, step));
    } else {
        if (x >= limit) *lo = st_max64(*lo, st_ceil_div(x - limit + 1, -step));
        *hi = x < 0 ? 0 : st_min64(*hi, x / -step + 1);
    }
}

/* The runs of tap `outer` (index over the bound m axes) for steps [k0, k1) of k. */
static int64_t tap_runs(const st_win_plan *p, int64_t outer, int64_t k0, int64_t k1, st_conv_run *run)
{
    const st_contract *c = &p->c;
    const int64_t last = c->k.count - 1, ldb = p->b_in_place ? p->run_b : p->width;
    int64_t at[ST_BOUNDS] = {0}, mi[ST_AXES] = {0}, ki[ST_AXES] = {0}, n = 0;
    st_axes_index(&c->m, outer * p->free_rows, mi);
    for (int64_t b = 0; b < c->bounds; b++)
        at[b] = c->bound[b].offset + (c->bound[b].m >= 0 ? c->bound[b].im * mi[c->bound[b].m] : 0);
    st_axes_index(&c->k, k0, ki);
    for (int64_t k = k0; k < k1;) {
        const int64_t from = ki[last], len = st_min64(p->run_len - from, k1 - k);
        int64_t a = from * p->run_a, bo = from * p->run_b, lo = 0, hi = len;
        for (int64_t d = 0; d < last; d++) {
            a += ki[d] * c->k.ax[d].a;
            bo += ki[d] * c->k.ax[d].b;
        }
        for (int64_t b = 0; b < c->bounds; b++) {
            const st_bound *q = &c->bound[b];
            const bool along = q->k == last;
            clip(at[b] + (q->k >= 0 ? q->ik * ki[q->k] : 0), along ? q->ik : 0, q->limit, &lo, &hi);
        }
        if (lo < hi) {
            const int64_t y = p->b_in_place ? bo + lo * p->run_b : (k - k0 + lo) * p->width,
                          x = a + lo * p->run_a;
            st_conv_run *e = n ? &run[n - 1] : NULL;
            if (e && e->a + e->len * p->run_a == x && e->b + e->len * ldb == y)
                e->len += hi - lo;
            else
                run[n++] = (st_conv_run){x, y, hi - lo};
        }
        k += len;
        ki[last] += len;
        for (int64_t d = last; d > 0 && ki[d] == c->k.ax[d].len; d--) {
            ki[d] = 0;
            ki[d - 1]++;
        }
    }
    return n;
}

/* Steps [k0, k1) of k for tiles [t0, t1) of column block `block`: sum (+)= into out[row * pitch], row counted from the first tile. */
typedef struct taps_span {
    int64_t g, block, k0, k1, t0, t1;
    char *out, *panel;
    int64_t pitch;
    st_conv_run *runs;
} taps_span;

static void sum_span(const taps_job *j, const taps_span *s, bool add)
{
    const st_win_plan *p = j->p;
    const st_conv_kernel *kn = p->kernel;
    int64_t n0, cols;
    int vecs;
    st_win_block(p, p->N, s->block, &n0, &cols, &vecs);
    const char *a = (const char *)j->data[0] + st_axes_offset(&p->c.batch, 'a', s->g) * p->es;
    const char *b = (const char *)j->data[1] + st_axes_offset(&p->c.batch, 'b', s->g) * p->es;
    const int64_t wide = p->width / kn->vl, per_tap = st_ceil_div(p->free_rows, kn->rows[wide]);
    st_conv_call q = {.ks = p->run_a,
                      .ldb = p->b_in_place ? p->run_b : p->width,
                      .run = s->runs,
                      .ldc = s->pitch,
                      .alpha = 1,
                      .beta = add ? 1 : 0,
                      .last = kn->vl};
    q.b = p->b_in_place ? b + n0 * p->es : s->panel;
    if (!p->b_in_place)
        st_win_pack(&p->source, kn->turn, b, n0, cols, s->k0, s->k1 - s->k0, s->panel, p->width,
                    vecs * kn->vl);
    int64_t tap = -1, done = 0;
    for (int64_t t = s->t0; t < s->t1; t++) {
        if (t / per_tap != tap) {
            tap = t / per_tap;
            q.runs = tap_runs(p, tap, s->k0, s->k1, s->runs);
        }
        const int64_t f = t % per_tap, mr = p->free_rows / per_tap + (f < p->free_rows % per_tap);
        const int64_t r =
            tap * p->free_rows + f * (p->free_rows / per_tap) + st_min64(f, p->free_rows % per_tap);
        const void *row[ST_CONV_ROWS];
        for (int64_t e = 0; e < mr; e++) row[e] = a + st_axes_offset(&p->c.m, 'a', r + e) * p->es;
        q.rows = row;
        q.c = s->out + done * s->pitch * p->es;
        kn->fn[0][vecs][mr](&q);
        done += mr;
    }
}

/* First row of tile t. */
static int64_t tile_row(const st_win_plan *p, int64_t t)
{
    const int64_t per_tap = st_ceil_div(p->free_rows, p->kernel->rows[p->width / p->kernel->vl]),
                  f = t % per_tap;
    return t / per_tap * p->free_rows + f * (p->free_rows / per_tap) + st_min64(f, p->free_rows % per_tap);
}

static void split_scratch(const taps_job *j, int worker, taps_span *s, char **buffer, char **epilogue)
{
    const st_win_plan *p = j->p;
    char *x = j->local + (size_t)worker * p->local;
    s->panel = x;
    x += p->b_in_place ? 0 : st_round_up(p->steps * p->width * p->es, 64);
    *buffer = x;
    x += p->pieces == 1
             ? st_round_up(p->row_tiles * p->kernel->rows[p->width / p->kernel->vl] * p->width * p->es, 64)
             : 0;
    s->runs = (st_conv_run *)x;
    *epilogue = x + st_round_up(run_limit(p) * (int64_t)sizeof(st_conv_run), 64);
}

static void rows_task(void *arg, int64_t i, int worker)
{
    const taps_job *j = arg;
    const st_win_plan *p = j->p;
    const int64_t task = i % p->row_tasks, block = i / p->row_tasks % p->blocks,
                  g = i / p->row_tasks / p->blocks;
    const int64_t mr = p->kernel->rows[p->width / p->kernel->vl],
                  tiles = p->outer_rows * st_ceil_div(p->free_rows, mr);
    char *buffer, *epilogue;
    taps_span s = {
        .g = g, .block = block, .t0 = task * p->row_tiles, .t1 = st_min64(tiles, (task + 1) * p->row_tiles)};
    split_scratch(j, worker, &s, &buffer, &epilogue);
    s.out = buffer;
    s.pitch = p->width;
    for (int64_t part = 0; part < p->kparts; part++) {
        st_win_part(p, part, &s.k0, &s.k1);
        sum_span(j, &s, part > 0);
    }
    int64_t n0, cols;
    int vecs;
    st_win_block(p, p->N, block, &n0, &cols, &vecs);
    const int64_t r0 = tile_row(p, s.t0), rows = (s.t1 == tiles ? p->M : tile_row(p, s.t1)) - r0;
    char *c = (char *)j->data[2] + st_axes_offset(&p->c.batch, 'c', g) * p->es;
    st_win_scatter(p, true, c, buffer, p->width, r0, rows, n0, cols, j->alpha, j->beta);
    st_win_epilogue(p, j->data, g, r0, rows, n0, cols, epilogue);
}

static void piece_task(void *arg, int64_t i, int worker)
{
    const taps_job *j = arg;
    const st_win_plan *p = j->p;
    const int64_t piece = i % p->pieces, block = i / p->pieces % p->blocks, g = i / p->pieces / p->blocks;
    const int64_t mr = p->kernel->rows[p->width / p->kernel->vl],
                  tiles = p->outer_rows * st_ceil_div(p->free_rows, mr);
    char *buffer, *epilogue;
    taps_span s = {.g = g, .block = block, .t0 = 0, .t1 = tiles, .pitch = p->blocks * p->width};
    split_scratch(j, worker, &s, &buffer, &epilogue);
    int64_t n0, cols;
    int vecs;
    st_win_block(p, p->N, block, &n0, &cols, &vecs);
    s.out = j->partial + (((piece * p->G + g) * p->M) * s.pitch + n0) * p->es;
    const int64_t first = piece * p->kparts / p->pieces, end = (piece + 1) * p->kparts / p->pieces;
    for (int64_t part = first; part < end; part++) {
        st_win_part(p, part, &s.k0, &s.k1);
        sum_span(j, &s, part > first);
    }
}

#define ADD_PIECES(T)                                     \
    static void add_##T(T *to, const T *from, int64_t n)  \
    {                                                     \
        for (int64_t i = 0; i < n; i++) to[i] += from[i]; \
    }
ADD_PIECES(float)
ADD_PIECES(double)

enum { REDUCE_ROWS = 32 };
/* Rows of the pieces' results: added in order into the first, then stored. */
static void reduce_task(void *arg, int64_t i, int worker)
{
    const taps_job *j = arg;
    const st_win_plan *p = j->p;
    const int64_t groups = st_ceil_div(p->M, REDUCE_ROWS), g = i / groups, r0 = i % groups * REDUCE_ROWS;
    const int64_t rows = st_min64(REDUCE_ROWS, p->M - r0), pitch = p->blocks * p->width,
                  distance = p->G * p->M * pitch * p->es;
    char *sum = j->partial + (g * p->M + r0) * pitch * p->es;
    for (int64_t x = 1; x < p->pieces; x++) {
        if (p->es == 4)
            add_float((float *)sum, (const float *)(sum + x * distance), rows * pitch);
        else
            add_double((double *)sum, (const double *)(sum + x * distance), rows * pitch);
    }
    char *c = (char *)j->data[2] + st_axes_offset(&p->c.batch, 'c', g) * p->es, *buffer, *epilogue;
    taps_span s;
    split_scratch(j, worker, &s, &buffer, &epilogue);
    st_win_scatter(p, true, c, sum, pitch, r0, rows, 0, p->N, j->alpha, j->beta);
    st_win_epilogue(p, j->data, g, r0, rows, 0, p->N, epilogue);
}

strata_status st_win_taps_run(strata_handle *h, const strata_plan *plan, void *const data[],
                              const strata_run *r)
{
    const st_win_plan *p = (const st_win_plan *)plan;
    taps_job j = {.p = p, .data = data};
    const uint64_t t0 = st_trace_begin();
    strata_status s = st_contract_scalars(h, &p->head, r, &j.alpha, &j.beta);
    if (s) return s;
    if (!(j.partial = st_plan_workspace(h, plan, r))) return h->err.status;
    if (j.alpha == 0) {
        st_win_beta_only(p, data, j.beta, j.partial);
        return STRATA_OK;
    }
    j.local = j.partial + p->shared;
    if (p->pieces == 1) {
        st_win_for(h, p, p->G * p->blocks * p->row_tasks, p->us, rows_task, &j);
    } else {
        st_win_for(h, p, p->G * p->blocks * p->pieces, p->us, piece_task, &j);
        const double us = (double)(p->pieces * p->G * p->M * p->N) * 0.5e-3;
        st_win_for(h, p, p->G * st_ceil_div(p->M, REDUCE_ROWS), us, reduce_task, &j);
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel, "%lld x %lldx%lldx%lld, %lld pieces, workspace %zu",
                     (long long)p->G, (long long)p->M, (long long)p->N, (long long)p->K, (long long)p->pieces,
                     plan->workspace);
    return STRATA_OK;
}
