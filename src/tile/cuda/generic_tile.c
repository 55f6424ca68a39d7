/* SPDX-License-Identifier: Apache-2.0 */
/* generic_tile.c - tiles of the generic CUDA kernels that kernels.inc does not list.
 *
 * A row's kernel stays; its block, warps, stages and parts of k are free within what the kernel's text and the device allow. arg[]: split or not, rows, columns, k of a
 * block, stages, warps along m * 64 + along n, parts of k; all but the first 0: the row's own tile. */
#include "tile/cuda/generic.h"
#include "tile/cuda/own_tile.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPLIT, BM, BN, BK, STAGES, WARPS, PARTS, ARGS };

typedef struct made_row {
    st_grow row;
    const st_grow *from;
    char name[80];
    struct made_row *next;
} made_row;
static made_row *made_rows;
static pthread_mutex_t made_lock = PTHREAD_MUTEX_INITIALIZER;

static bool same_row(const st_grow *a, const st_grow *b)
{
    return a->bm == b->bm && a->bn == b->bn && a->bk == b->bk && a->stages == b->stages &&
           a->warps_m == b->warps_m && a->warps_n == b->warps_n && a->parts == b->parts;
}

/* The one row with these numbers; NULL: no memory. */
static const st_grow *keep_row(const st_grow *row, const st_grow *from)
{
    pthread_mutex_lock(&made_lock);
    made_row *m = made_rows;
    while (m && (m->from != from || !same_row(&m->row, row))) m = m->next;
    if (!m && (m = calloc(1, sizeof *m))) {
        const char *kind = strrchr(from->name, '_');
        snprintf(m->name, sizeof m->name, "%dx%dx%d_w%dx%d_s%d%s", row->bm, row->bn, row->bk, row->warps_m,
                 row->warps_n, row->stages, kind ? kind : "");
        m->row = *row;
        m->row.name = m->name;
        m->from = from;
        m->next = made_rows;
        made_rows = m;
    }
    pthread_mutex_unlock(&made_lock);
    return m ? &m->row : NULL;
}

static const st_grow *listed_row(const st_grow *row)
{
    int count;
    const st_grow *rows = st_generic_rows(&count);
    if (row >= rows && row < rows + count) return row;
    return ((const made_row *)(const void *)row)->from;
}

static int size_of(int type) { return (int)strata_type_bits((strata_type)type) / 8; }

/* What the kernel's text supposes of a warp's part of the block, by kind: multiples of rows, columns and k. */
static void grains(const st_grow *r, int *m, int *n, int *k)
{
    const int words = r->ta == STRATA_F64 ? 2 : 4; /* of 16 bytes */
    switch (r->kind) {
    case ST_G_SIMT:
        *m = r->lanes_m * words;
        *n = 32 / r->lanes_m * words;
        *k = 8;
        break;
    case ST_G_LDS:
        *m = 16;
        *n = 8;
        *k = 16;
        break;
    case ST_G_ZMMA:
        *m = 16;
        *n = 8;
        *k = 8;
        break;
    default: *m = *n = 16; *k = 64 / size_of(r->ta); /* a row of k is 64 or 128 bytes */
    }
}

static bool row_is_legal(const st_grow *r, char *why, size_t n)
{
    int gm, gn, gk;
    const int threads = 32 * r->warps_m * r->warps_n;
    grains(r, &gm, &gn, &gk);
    if (r->warps_m < 1 || r->warps_n < 1 || threads > 1024)
        return st_tile_breaks(why, n, "warp_m", r->bm / (r->warps_m > 0 ? r->warps_m : 1),
                              "a block has 1 to 32 warps");
    if (r->bm > 512 || r->bm / r->warps_m % gm || r->bm % r->warps_m)
        return snprintf(
                   why, n,
                   "block_m is %d for %d warps: a warp's rows are a multiple of %d, a block's at most 512",
                   r->bm, r->warps_m, gm),
               false;
    if (r->bn > 512 || r->bn / r->warps_n % gn || r->bn % r->warps_n)
        return snprintf(
                   why, n,
                   "block_n is %d for %d warps: a warp's columns are a multiple of %d, a block's at most 512",
                   r->bn, r->warps_n, gn),
               false;
    if (r->kind == ST_G_MMA && (r->bm % 64 || r->bn % 64))
        return st_tile_breaks(why, n, r->bm % 64 ? "block_m" : "block_n", r->bm % 64 ? r->bm : r->bn,
                              "multiples of 64, as shared memory holds lines of 128 bytes");
    if (r->bk < gk || r->bk % gk || r->bk > (r->kind == ST_G_MMA ? 2 * gk : 64))
        return snprintf(why, n, "block_k is %d: a multiple of %d up to %d", r->bk, gk,
                        r->kind == ST_G_MMA ? 2 * gk : 64),
               false;
    if (r->kind == ST_G_LDS && r->bk / r->lanes_m % 2)
        return st_tile_breaks(why, n, "block_k", r->bk, "an even number of the instruction's steps");
    if (r->kind != ST_G_ZMMA && (threads % r->bm || threads % r->bn))
        return snprintf(why, n,
                        "block %d x %d for %d threads: rows and columns divide the threads, each of which "
                        "loads for one",
                        r->bm, r->bn, threads),
               false;
    if (r->bm * r->bn / threads * size_of(r->tacc) / 4 > 192)
        return st_tile_breaks(why, n, "block_n", r->bn,
                              "a thread would hold more sums than registers (at most 192 words)");
    if (r->stages < 2 || r->stages > 16) return st_tile_breaks(why, n, "stages", r->stages, "2 to 16");
    if (r->parts == 1 || r->parts > 256 || r->parts < 0)
        return st_tile_breaks(why, n, "split_k", r->parts, "2 to 256 parts");
    return true;
}

/* Blocks a multiprocessor: as many as registers give, beside sums and what a thread has else, and never more than the row it was made from. */
static int blocks_of(const st_grow *r, const st_grow *from, const st_gpu *gpu)
{
    const int threads = 32 * r->warps_m * r->warps_n, words = size_of(r->tacc) / 4;
    const int need = (r->bm * r->bn / threads * words + 80) * threads, most = from->blocks_sm;
    const int fit = need > 0 ? (gpu->regs_sm ? gpu->regs_sm : 65536) / need : 1;
    return fit < 1 ? 1 : fit < most ? fit : most;
}

static void write_args(const st_grow *row, const st_grow *from, int split, int64_t arg[8])
{
    memset(arg, 0, 8 * sizeof *arg);
    arg[SPLIT] = split;
    if (row->bm != from->bm) arg[BM] = row->bm;
    if (row->bn != from->bn) arg[BN] = row->bn;
    if (row->bk != from->bk) arg[BK] = row->bk;
    if (row->stages != from->stages) arg[STAGES] = row->stages;
    if (row->warps_m != from->warps_m || row->warps_n != from->warps_n)
        arg[WARPS] = row->warps_m * 64 + row->warps_n;
    arg[PARTS] = row->parts;
}

static bool read_args(const st_candidate *c, const st_grow *from, st_grow *to)
{
    const int64_t *a = c->arg;
    for (int i = 0; i < ST_COUNT(c->arg); i++)
        if (a[i] < 0 || a[i] > 1 << 16 || (i >= ARGS && a[i])) return false;
    *to = *from;
    if (a[SPLIT] > 1) return false;
    if (a[BM]) to->bm = (int)a[BM];
    if (a[BN]) to->bn = (int)a[BN];
    if (a[BK]) to->bk = (int)a[BK];
    if (a[STAGES]) to->stages = (int)a[STAGES];
    if (a[WARPS]) {
        to->warps_m = (int)(a[WARPS] / 64);
        to->warps_n = (int)(a[WARPS] % 64);
    }
    to->parts = (int)a[PARTS];
    return true;
}

/* A warp's size that is left open follows the row's number of warps. */
static bool asked_row(const strata_tile *t, const st_grow *from, bool split, st_grow *to, char *why, size_t n)
{
    *to = *from;
    if (t->block_m) to->bm = t->block_m;
    if (t->block_n) to->bn = t->block_n;
    if (t->block_k) to->bk = t->block_k;
    if (t->stages) to->stages = t->stages;
    if (t->warp_m && to->bm % t->warp_m)
        return st_tile_breaks(why, n, "warp_m", t->warp_m, "it divides block_m");
    if (t->warp_n && to->bn % t->warp_n)
        return st_tile_breaks(why, n, "warp_n", t->warp_n, "it divides block_n");
    if (t->warp_m) to->warps_m = to->bm / t->warp_m;
    if (t->warp_n) to->warps_n = to->bn / t->warp_n;
    if (t->split_k && (t->split_k > 1) != split)
        return st_tile_breaks(why, n, "split_k", t->split_k,
                              split ? "this kernel splits k" : "this kernel does not split k");
    to->parts = split && t->split_k > 1 ? t->split_k : 0;
    return true;
}

/* Does another row of the same kernel come to the same tile? Earlier ones go first, and the one whose own tile it is. */
static bool has_twin(const st_grow *row, const strata_tile *tile, const st_grow *from, bool split)
{
    int count;
    const st_grow *rows = st_generic_rows(&count);
    for (int i = 0; i < count && tile; i++) {
        st_grow other;
        char why[160];
        if (&rows[i] == from || rows[i].kind != from->kind || rows[i].ta != from->ta ||
            rows[i].tb != from->tb || rows[i].math != from->math || rows[i].lanes_m != from->lanes_m ||
            !asked_row(tile, &rows[i], split, &other, why, sizeof why) || !same_row(&other, row))
            continue;
        if (&rows[i] < from || same_row(&other, &rows[i])) return true;
    }
    return false;
}

static bool refine(strata_handle *h, const st_problem *pr, st_candidate *c, const strata_tile *tile)
{
    const st_contract *p = pr->data;
    const st_grow *from = listed_row(c->row), *row = from;
    const size_t n = sizeof c->why;
    const bool split = c->arg[SPLIT] != 0;
    st_gproblem g;
    st_gconfig f;
    st_grow made;
    strata_tile own;
    c->us = -1;
    st_generic_problem(p, pr->text, &g);
    if (!st_generic_takes(from, &g, p->math, c->why, n)) return false;
    if (!tile && !read_args(c, from, &made))
        return snprintf(c->why, n, "its numbers are no tile of this kernel"), false;
    if (tile && from->kind < ST_G_SKINNY_K && !asked_row(tile, from, split, &made, c->why, n)) return false;
    if (from->kind >= ST_G_SKINNY_K) made = *from;
    if (!same_row(&made, from)) {
        if (!row_is_legal(&made, c->why, n)) return false;
        if (has_twin(&made, tile, from, split)) {
            c->twin = true;
            return snprintf(c->why, n, "another row comes to the same tile"), false;
        }
        made.blocks_sm = blocks_of(&made, from, h->gpu);
        if (!(row = keep_row(&made, from))) return snprintf(c->why, n, "no memory for a tile"), false;
    }
    if (!st_generic_configure(row, &g, h->gpu, pr->text != NULL, split, &f, c->why, n)) return false;
    st_generic_tile(row, &f, &own);
    if (tile && !st_tile_meets(tile, &own, "of this kernel", c->why, n)) return false;
    c->listed[0] = 0;
    if (row != from) st_generic_id(from, (int)g.own.tc, split, c->listed, sizeof c->listed);
    write_args(row, from, split, c->arg);
    st_generic_candidate(row, &g, &f, h->gpu, split, true, c);
    return true;
}

/* More and fewer stages. */
static int variants(strata_handle *h, const st_problem *pr, const st_candidate *c, int64_t (*arg)[8], int max)
{
    const st_grow *row = c->row, *from = listed_row(row);
    int n = 0;
    (void)h;
    (void)pr;
    for (int d = -1; d <= 1 && n < max && row->kind < ST_G_SKINNY_K; d += 2) {
        st_grow other = *row;
        other.stages += d;
        if (other.stages >= 2) write_args(&other, from, c->arg[SPLIT] != 0, arg[n++]);
    }
    return n;
}

const st_tiles st_generic_tiles = {&st_generic_provider, refine, variants};
