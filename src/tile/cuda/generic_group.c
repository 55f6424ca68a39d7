/* SPDX-License-Identifier: Apache-2.0 */
/* generic_group.c - many products in one launch of a generic kernel: a block finds its member by the ends of their blocks and takes that one's parameters.
 *
 * All members' parameters, of one axis a list, are the kernel's (up to 32764 bytes since CUDA 12.1, here those of 80), so that nothing is copied to the device and a captured graph
 * has them. Members with the same layouts, copies and rules share a launch; the row is the one of least predicted time for all of them together. Sums are those of the row
 * without parts of k. */
#include "tile/cuda/generic.h"
#include "tile/grouped.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 80 };
static const int64_t most_blocks = (int64_t)1 << 30;

/* mirrored in generic.cuh, where GROUP is set */
typedef struct one_axis {
    int64_t count;
    st_gax ax;
} one_axis;
typedef struct member_params {
    const void *a, *b;
    void *c, *part;
    one_axis m, n, k, batch;
    st_gwindow win[ST_BOUNDS];
    uint32_t M, N, K, G;
    uint32_t tiles_m, tiles_n, splits, k_split;
    double alpha, beta, alpha_im, beta_im;
    int64_t offset[3];
} member_params;
typedef struct group_params {
    uint32_t count, end[MEMBERS];
    member_params member[MEMBERS];
} group_params;
_Static_assert(sizeof(group_params) <= 32764, "a kernel's parameters");

typedef struct taken {
    const st_member *m;
    st_gproblem g;
    st_gconfig f; /* for the row that gather was last asked about */
    int64_t at;   /* its number in the caller's list */
    bool launched;
} taken;

static bool same_kernel(const taken *t, const taken *u)
{
    const st_gproblem *x = &t->g, *y = &u->g;
    const st_gconfig *f = &t->f, *g = &u->f;
    for (int s = 0; s < 2; s++)
        if (f->layout[s] != g->layout[s] || f->vec[s] != g->vec[s] || f->conj[s] != g->conj[s]) return false;
    const bool unit_x = x->c.k.count && x->c.k.ax[0].a == 1, unit_y = y->c.k.count && y->c.k.ax[0].a == 1,
               unit_bx = x->c.k.count && x->c.k.ax[0].b == 1, unit_by = y->c.k.count && y->c.k.ax[0].b == 1;
    return unit_x == unit_y && unit_bx == unit_by && f->cv == g->cv && f->halves == g->halves &&
           !memcmp(f->rule, g->rule, sizeof f->rule);
}

static bool configure(strata_handle *h, const st_grow *row, taken *t)
{
    st_gconfig *const f = &t->f;
    char why[160];
    return st_generic_takes(row, &t->g, t->m->c->math, why, sizeof why) &&
           st_generic_configure(row, &t->g, h->gpu, false, false, f, why, sizeof why) &&
           st_generic_aligned(&t->g, f, t->m->data);
}

/* Those that share the first one's kernel, and the microseconds that they take together: their tiles spread evenly, and half of the longest at the end. */
static int64_t gather(strata_handle *h, const st_grow *row, taken *all, int64_t first, int64_t count,
                      taken **list, double *us)
{
    double sum = 0, longest = 0;
    int64_t n = 0, blocks = 0;
    if (!configure(h, row, &all[first])) return 0;
    for (int64_t i = first; i < count; i++) {
        if (i > first &&
            (all[i].launched || !configure(h, row, &all[i]) || !same_kernel(&all[first], &all[i])))
            continue;
        const int64_t tiles =
            st_ceil_div(all[i].g.M, row->bm) * st_ceil_div(all[i].g.N, row->bn) * all[i].g.G;
        if ((blocks += tiles) > most_blocks) break;
        const double one = st_generic_tile_us(row, &all[i].g, &all[i].f, h->gpu);
        sum += one * (double)tiles;
        if (one > longest) longest = one;
        list[n++] = &all[i];
    }
    *us = sum / (h->gpu->sms * row->blocks_sm) + longest * 0.5;
    return n;
}

static const st_grow *choose(strata_handle *h, taken *all, int64_t first, int64_t count, taken **list)
{
    int rows_count;
    const st_grow *rows = st_generic_rows(&rows_count), *best = NULL;
    int64_t most = 1;
    double least = 0;
    for (int i = 0; i < rows_count; i++) {
        double us;
        if (rows[i].kind >= ST_G_SKINNY_K) continue;
        const int64_t n = gather(h, &rows[i], all, first, count, list, &us);
        if (n < most || n < 2 || (n == most && best && us >= least)) continue;
        best = &rows[i];
        most = n;
        least = us;
    }
    return best;
}

/* Longest sums first: what ends last is short. */
static int deepest_first(const void *a, const void *b)
{
    const taken *x = *(taken *const *)a, *y = *(taken *const *)b;
    if (x->g.K != y->g.K) return x->g.K > y->g.K ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static one_axis one_of(const st_glist *l) { return (one_axis){l->count, l->ax[0]}; }

static void fill(const st_grow *row, const taken *t, member_params *to)
{
    st_gparams p;
    const st_member *m = t->m;
    st_generic_params(row, &t->g, &t->f, &p);
    *to = (member_params){.a = m->data[t->g.swapped],
                          .b = m->data[!t->g.swapped],
                          .c = m->data[2],
                          .m = one_of(&p.m),
                          .n = one_of(&p.n),
                          .k = one_of(&p.k),
                          .batch = one_of(&p.batch),
                          .M = p.M,
                          .N = p.N,
                          .K = m->alpha[0] == 0 && m->alpha[1] == 0 ? 0 : p.K,
                          .G = p.G,
                          .tiles_m = p.tiles_m,
                          .tiles_n = p.tiles_n,
                          .splits = 1,
                          .k_split = p.k_split,
                          .alpha = m->alpha[0],
                          .beta = m->beta[0],
                          .alpha_im = m->alpha[1],
                          .beta_im = m->beta[1]};
    memcpy(to->win, p.win, sizeof to->win);
    memcpy(to->offset, p.offset, sizeof to->offset);
}

static strata_status launch(strata_handle *h, const st_grow *row, taken *const list[], int n,
                            group_params *all)
{
    const st_gpu_kernel *kernel;
    st_gspec spec;
    uint32_t end = 0;
    memset(all, 0, sizeof *all);
    all->count = (uint32_t)n;
    for (int i = 0; i < n; i++) {
        fill(row, list[i], &all->member[i]);
        all->end[i] = end += all->member[i].tiles_m * all->member[i].tiles_n * all->member[i].G;
    }
    const taken *first = list[0];
    st_generic_spec(row, &first->g, &first->f, (int)first->g.c.tc, NULL, &spec);
    st_generic_option(&spec, "-DGROUP=%d", MEMBERS);
    snprintf(spec.id + strlen(spec.id), sizeof spec.id - strlen(spec.id), "_grp");
    strata_status s = st_gpu_kernel_get(h, &spec.spec, &kernel);
    if (s) return s;
    const uint64_t t0 = st_trace_begin();
    void *args[] = {all};
    const st_gpu_launch l = {.kernel = kernel,
                             .grid = {end, 1, 1},
                             .block = {st_generic_threads(row, &first->f), 1, 1},
                             .smem = st_generic_smem(row, &first->f),
                             .args = args};
    s = st_gpu_run(h, &l);
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "tile", kernel->id, "%d products, %u tiles", n, end);
    return s;
}

/* One axis a list, nothing but strides: what the small parameters say. */
static bool take(const st_member *m, st_gproblem *g)
{
    st_generic_problem(m->c, NULL, g);
    return !g->window && !g->c.pointers && g->c.m.count <= 1 && g->c.n.count <= 1 && g->c.k.count <= 1 &&
           g->c.batch.count <= 1;
}

strata_status st_generic_group(strata_handle *h, const char *who, const st_member *const m[], int64_t count,
                               bool done[])
{
    taken *all = malloc(sizeof *all * (size_t)count), **list = malloc(sizeof *list * (size_t)count);
    group_params *p = malloc(sizeof *p);
    int64_t n = 0;
    strata_status s = STRATA_OK;
    if (!all || !list || !p)
        s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a list of products", who);
    for (int64_t i = 0; i < count && !s; i++) {
        if (!take(m[i], &all[n].g)) continue;
        all[n].m = m[i];
        all[n].at = i;
        all[n++].launched = false;
    }
    for (int64_t i = 0; i < n && !s; i++) {
        if (all[i].launched) continue;
        double us;
        const st_grow *row = choose(h, all, i, n, list);
        if (!row) continue;
        const int64_t part = gather(h, row, all, i, n, list, &us);
        qsort(list, (size_t)part, sizeof(taken *), deepest_first);
        for (int64_t k = 0; k < part; k++) list[k]->launched = true;
        for (int64_t k = 0; k < part && !s; k += MEMBERS) {
            const int some = (int)st_min64(part - k, MEMBERS);
            if (some < 2) break;
            s = launch(h, row, list + k, some, p);
            for (int x = 0; x < some && !s; x++) done[list[k + x]->at] = true;
        }
    }
    free(all);
    free(list);
    free(p);
    return s;
}
