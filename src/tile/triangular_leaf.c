/* SPDX-License-Identifier: Apache-2.0 */
/* triangular_leaf.c - diagonal blocks on the CPU, in panels: A's triangle is packed once, its diagonal inverted; each panel of B's columns is
 * packed, solved (or multiplied) where it lies in the cache, tile of rows by tile, and goes back to memory.
 *
 * A tile of rows first loses its multiples of the rows that are solved (the packed product's kernel, with C in the panel), then meets its own
 * small triangle in registers. A product takes the tiles in the other order, so that each overwrites what no later one reads. */
#include "tile/gemm.h"
#include "tile/structured.h"
#include "tile/triangular.h"
#include "tile/cpu/tri_kernel.h"
#include "tile/cuda/triangle_cuda.h"
#include <string.h>

typedef struct leaf_job {
    const st_triangle *t;
    const st_packed_kernel *kernel;
    const st_tri_kernel *tri;
    st_side a;
    double alpha[2];
    int64_t es, nr, panels;
    char *shared, *local; /* A where all items have one; a worker's: A of the item, a panel of B */
    size_t abytes, each;
} leaf_job;

int64_t st_triangle_leaf_order(const strata_handle *h, int64_t type)
{
    return h->gpu ? st_cuda_triangle_order(h->gpu, type) : type == STRATA_C128 ? 128 : 256;
}

/* A into panels of rows, each of all n steps (those that are zero are left out). */
static bool pack_triangle(const leaf_job *j, char *to, const char *a)
{
    const st_triangle *t = j->t;
    const int64_t mr = j->a.width;
    bool regular = true;
    for (int64_t i = 0; i < t->n; i += mr) {
        const int64_t w = st_min64(mr, t->n - i);
        char *panel = to + i * t->n * j->es;
        st_side_pack(&j->a, (int)t->type, panel, a, i, w, 0, t->n);
        if (t->solve) regular = st_side_invert((int)t->type, panel, mr, i, w) && regular;
    }
    return regular;
}

/* One tile of rows of a panel of w columns. */
static void tile(const leaf_job *j, const char *a, char *b, int64_t i, int64_t w)
{
    const st_triangle *t = j->t;
    const st_packed_kernel *kr = j->kernel;
    const int64_t mr = j->a.width, h = st_min64(mr, t->n - i), es = j->es;
    const bool lower = t->rule.half == ST_HALF_LOWER;
    const int64_t own = t->solve ? 0 : h, first = lower ? 0 : i + h - own, end = lower ? i + own : t->n;
    const int nv = (int)st_ceil_div(w, kr->vl);
    const char *panel = a + i * t->n * es;
    st_ukr_args x = {.k = end - first, .ldc = j->nr, .conj = t->rule.conj ? 1 : 0, .last = kr->vl};
    if (t->solve) {
        x.alpha = -1;
        x.beta = j->alpha[0];
        x.beta_im = j->alpha[1];
    } else {
        x.alpha = j->alpha[0];
        x.alpha_im = j->alpha[1];
    }
    if (x.k > 0 || x.beta != 1 || x.beta_im != 0)
        (h == mr && nv == kr->nv ? kr->full : kr->edge[(h - 1) * kr->nv + nv - 1])(
            &x, panel + first * mr * es, b + first * j->nr * es, b + i * j->nr * es);
    if (t->solve) j->tri->solve(panel + i * mr * es, b + i * j->nr * es, h, w, !lower, t->rule.conj);
}

static void columns(const leaf_job *j, const char *a, char *room, char *b, int64_t first)
{
    const st_triangle *t = j->t;
    const int64_t w = st_min64(j->nr, t->cols - first), mr = j->a.width, last = (t->n - 1) / mr * mr;
    b += first * t->bcs * j->es;
    j->kernel->pack_b(room, w, t->n, b, t->bcs, t->brs);
    if ((t->rule.half == ST_HALF_LOWER) == t->solve)
        for (int64_t i = 0; i <= last; i += mr) tile(j, a, room, i, w);
    else
        for (int64_t i = last; i >= 0; i -= mr) tile(j, a, room, i, w);
    j->tri->unpack(room, w, t->n, b, t->bcs, t->brs);
}

/* A panel of columns of an item, all items having one A. */
static void panel_task(void *arg, int64_t i, int worker)
{
    const leaf_job *j = arg;
    const int64_t g = i / j->panels;
    columns(j, j->shared, j->local + (size_t)worker * j->each,
            (char *)j->t->b + st_axes_offset(&j->t->batch, 'b', g) * j->es, i % j->panels * j->nr);
}

/* An item with an A of its own. */
static void item_task(void *arg, int64_t g, int worker)
{
    leaf_job *j = arg;
    const st_triangle *t = j->t;
    char *room = j->local + (size_t)worker * j->each;
    char *b = (char *)t->b + st_axes_offset(&t->batch, 'b', g) * j->es;
    const char *a = (const char *)t->a + st_axes_offset(&t->batch, 'a', g) * j->es;
    if (pack_triangle(j, room, a)) {
        for (int64_t i = 0; i < j->panels; i++) columns(j, room, room + j->abytes, b, i * j->nr);
        return;
    }
    st_triangle one = *t;
    one.a = a;
    one.b = b;
    one.batch.count = 0;
    st_triangle_column_range(&one, j->alpha, 0, t->cols);
}

/* Do `bytes` at `ws` meet the box that `rows` x `cols` elements and the items span? */
static bool meets(const st_triangle *t, int which, int64_t cols, const char *ws, size_t bytes)
{
    const int64_t es = (int64_t)strata_type_bits((strata_type)t->type) / 8;
    const int64_t step[2] = {(which == 'a' ? t->ars : t->brs) * (t->n - 1),
                             (which == 'a' ? t->acs : t->bcs) * (cols - 1)};
    const char *base = which == 'a' ? t->a : t->b;
    int64_t lo = 0, hi = 0;
    for (int i = 0; i < 2; i++) *(step[i] < 0 ? &lo : &hi) += step[i];
    for (int d = 0; d < (int)t->batch.count; d++) {
        const int64_t s = st_axis_stride(&t->batch.ax[d], which) * (t->batch.ax[d].len - 1);
        *(s < 0 ? &lo : &hi) += s;
    }
    return ws < base + (hi + 1) * es && base + lo * es < ws + bytes;
}

/* Workspace, or NULL where a limit or the caller's own has no room for it (or the caller's lies in an operand): columns need none. */
static char *room_for(strata_handle *h, const st_triangle *t, size_t bytes)
{
    if (bytes > h->workspace_limit) return NULL;
    if (h->workspace_is_callers && (bytes > h->workspace_size || meets(t, 'a', t->n, h->workspace, bytes) ||
                                    meets(t, 'b', t->cols, h->workspace, bytes)))
        return NULL;
    return st_workspace(h, bytes);
}

static strata_status run(strata_handle *h, leaf_job *j)
{
    const st_triangle *t = j->t;
    const int64_t items = st_axes_len(&t->batch), mr = j->a.width;
    bool one_a = true;
    for (int d = 0; d < (int)t->batch.count; d++)
        one_a = one_a && (t->batch.ax[d].a == 0 || t->batch.ax[d].len == 1);
    const size_t bbytes = (size_t)st_round_up(t->n * j->nr * j->es + ST_PACK_SLACK, 64);
    j->abytes = (size_t)st_round_up(st_round_up(t->n, mr) * t->n * j->es + ST_PACK_SLACK, 64);
    j->each = one_a ? bbytes : bbytes + j->abytes;
    const int64_t tasks = one_a ? items * j->panels : items;
    const double peak =
        st_contract_peak(h->cpu, st_type_part((int)t->type)) / (st_type_is_complex((int)t->type) ? 4 : 1);
    const double us = (double)items * (double)t->cols * (double)t->n * ((double)t->n / (0.6 * peak) + 1e-4);
    const size_t workers = tasks > 1 && us > 6 ? (size_t)st_threads(h) : 1;
    char *ws = room_for(h, t, (one_a ? j->abytes : 0) + workers * j->each);
    if (!ws) {
        st_triangle_columns(h, t, j->alpha);
        return STRATA_OK;
    }
    j->shared = ws;
    j->local = ws + (one_a ? j->abytes : 0);
    if (one_a && !pack_triangle(j, j->shared, t->a)) {
        st_triangle_columns(h, t, j->alpha);
        return STRATA_OK;
    }
    if (workers == 1)
        for (int64_t i = 0; i < tasks; i++) (one_a ? panel_task : item_task)(j, i, 0);
    else
        st_team_for(h, tasks, us, one_a ? panel_task : item_task, j);
    return STRATA_OK;
}

strata_status st_triangle_leaf(strata_handle *h, const char *who, const st_triangle *t, const double alpha[2])
{
    leaf_job j = {.t = t,
                  .kernel = st_side_packed(h->cpu->level, (int)t->type),
                  .tri = st_side_tri(h->cpu->level, (int)t->type),
                  .alpha = {alpha[0], alpha[1]}};
    j.es = (int64_t)strata_type_bits((strata_type)t->type) / 8;
    j.nr = (int64_t)j.kernel->nv * j.kernel->vl;
    j.panels = st_ceil_div(t->cols, j.nr);
    j.a = (st_side){t->rule, t->ars, t->acs, j.kernel->pack_a, j.kernel->mr};
    const st_enter e = st_handle_enter(h);
    if (ST_UNLIKELY(e == ST_IN_USE)) return st_handle_in_use(who);
    const strata_status s = run(h, &j);
    st_handle_leave(h, e);
    return s;
}
