/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90_tile.c - tiles of the Hopper kernels that kernels.inc does not list.
 *
 * A row's way of working stays (kind, ping-pong, consumers, how C leaves); the block, the stages, the cluster, the parts of k and the order of tiles are free within
 * what the machine has. arg[]: rows, columns, stages, cluster along m * 16 + along n, parts of k, tile rows a group; all 0: the row's own tile. */
#include "tile/cuda/gemm_sm90.h"
#include "tile/cuda/own_tile.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BM, BN, STAGES, CLUSTER, PARTS, RASTER, ARGS };

typedef struct made_row {
    st_sm90_row row;
    const st_sm90_row *from;
    struct made_row *next;
} made_row;
static made_row *made_rows;
static pthread_mutex_t made_lock = PTHREAD_MUTEX_INITIALIZER;

/* The one row with these numbers; NULL: no memory. */
static const st_sm90_row *keep_row(const st_sm90_row *row, const st_sm90_row *from)
{
    pthread_mutex_lock(&made_lock);
    made_row *m = made_rows;
    while (m && (m->from != from || memcmp(&m->row, row, sizeof *row) != 0)) m = m->next;
    if (!m && (m = calloc(1, sizeof *m))) {
        m->row = *row;
        m->from = from;
        m->next = made_rows;
        made_rows = m;
    }
    pthread_mutex_unlock(&made_lock);
    return m ? &m->row : NULL;
}

/* The row of kernels.inc that this one is, or was made from. */
static const st_sm90_row *listed_row(const st_sm90_row *row)
{
    int count;
    const st_sm90_row *rows = st_sm90_rows(&count);
    if (row >= rows && row < rows + count) return row;
    return ((const made_row *)(const void *)row)->from;
}

/* Rules of the kernel's text for the numbers that are free. */
static bool row_is_legal(const st_sm90_row *r, const st_sm90_row *from, const st_sm90 *usual, char *why,
                         size_t n)
{
    const int high = r->pp ? r->bm : r->bm / r->consumers, columns = 128 / usual->cs;
    const bool whole = r->tma_store;
    if (r->bm < 64 || r->bm > 256 || r->bm % 64 || (!r->pp && r->bm % (64 * r->consumers)))
        return st_tile_breaks(why, n, "block_m", r->bm,
                              r->consumers > 1 && !r->pp
                                  ? "multiples of 128 up to 256, as two warp groups take halves"
                                  : "multiples of 64 up to 256");
    if (r->bn < 16 || r->bn > 256 || r->bn % 16)
        return st_tile_breaks(why, n, "block_n", r->bn, "multiples of 16 from 16 to 256");
    if (whole && (r->bn % columns || 512 % r->bm || r->bn / columns % st_min64(512 / r->bm, r->bn / columns)))
        return st_tile_breaks(
            why, n, "block_n", r->bn,
            "this kernel stores C by boxes of 128 bytes, in even groups: rows 64, 128 or 256");
    if (r->stages < 2 || r->stages > 32) return st_tile_breaks(why, n, "stages", r->stages, "2 to 32");
    if (r->cm < 1 || r->cm > 2 || r->cn < 1 || r->cn > 2 || r->cm * r->cn > 2)
        return st_tile_breaks(why, n, r->cm > 2 || r->cm < 1 ? "cluster_m" : "cluster_n",
                              r->cm > 2 || r->cm < 1 ? r->cm : r->cn,
                              "a cluster is two blocks, along m or along n");
    if (r->cm * r->cn > 1 && (from->kind != ST_SM90_ANY || whole))
        return st_tile_breaks(why, n, r->cm > 1 ? "cluster_m" : "cluster_n", 2,
                              "this kernel's blocks work alone (splits, exact sums, parts, C by TMA)");
    if ((r->bn / r->cm) % 8 || (r->bm / r->cn) % 8)
        return st_tile_breaks(why, n, "block_n", r->bn,
                              "half of it, a cluster member's share, is a multiple of 8");
    if (r->parts && from->kind != ST_SM90_SPLIT)
        return st_tile_breaks(why, n, "split_k", r->parts, "1 for this kernel; those with _sk split k");
    if (r->parts == 1 || r->parts > 64) return st_tile_breaks(why, n, "split_k", r->parts, "2 to 64 parts");
    const int sums = high * r->bn / 128 * (r->kind == ST_SM90_PROMOTE || r->kind == ST_SM90_X6 ? 2 : 1);
    if (sums > 208)
        return st_tile_breaks(
            why, n, "block_n", r->bn,
            "a thread would hold more sums than registers (at most 208, two a sum where sums are added up)");
    return true;
}

static bool memory_fits(const strata_handle *h, const st_sm90 *q, char *why, size_t n)
{
    const unsigned smem = st_sm90_smem(q) + 1024;
    if (!h->gpu->smem_block || smem <= (unsigned)h->gpu->smem_block) return true;
    snprintf(why, n, "stages is %d: %u bytes of shared memory, and a block of %s has %d", q->row->stages,
             smem, h->gpu->device, h->gpu->smem_block);
    return false;
}

/* Does another row of the list come to the same tile? Earlier ones go first, and the one whose own tile it is. */
static const st_sm90_row *twin_of(const st_sm90_row *row, const strata_tile *tile, const st_sm90_row *from,
                                  int es)
{
    int count;
    const st_sm90_row *rows = st_sm90_rows(&count);
    for (int i = 0; i < count && tile; i++) {
        st_sm90 q = {.row = &rows[i], .es = es, .splits = row->parts ? row->parts : 1};
        strata_tile own, t;
        if (&rows[i] == from || rows[i].kind != from->kind || rows[i].pp != from->pp ||
            rows[i].consumers != from->consumers || rows[i].tma_store != from->tma_store)
            continue;
        st_sm90_tile(&q, &own);
        t = st_tile_filled(tile, &own);
        if (t.block_m != row->bm || t.block_n != row->bn || t.stages != row->stages ||
            t.cluster_m != row->cm || t.cluster_n != row->cn || (&rows[i] > from && !st_tile_same(&t, &own)))
            continue;
        return &rows[i];
    }
    return NULL;
}

static bool read_args(const st_candidate *c, const st_sm90_row *from, st_sm90_row *to)
{
    const int64_t *a = c->arg;
    for (int i = 0; i < ST_COUNT(c->arg); i++)
        if (a[i] < 0 || a[i] > 1 << 20 || (i >= ARGS && a[i])) return false;
    *to = *from;
    if (a[BM]) to->bm = (int)a[BM];
    if (a[BN]) to->bn = (int)a[BN];
    if (a[STAGES]) to->stages = (int)a[STAGES];
    if (a[CLUSTER]) {
        to->cm = (int)(a[CLUSTER] / 16);
        to->cn = (int)(a[CLUSTER] % 16);
    }
    if (a[PARTS]) to->parts = (int)a[PARTS];
    if (a[RASTER]) to->raster = (int)a[RASTER];
    return true;
}

static void write_args(const st_sm90_row *row, const st_sm90_row *from, int64_t arg[8])
{
    memset(arg, 0, 8 * sizeof *arg);
    if (row->bm != from->bm) arg[BM] = row->bm;
    if (row->bn != from->bn) arg[BN] = row->bn;
    if (row->stages != from->stages) arg[STAGES] = row->stages;
    if (row->cm != from->cm || row->cn != from->cn) arg[CLUSTER] = row->cm * 16 + row->cn;
    arg[PARTS] = row->parts;
    if (row->raster != from->raster) arg[RASTER] = row->raster;
}

static bool asked_row(const strata_tile *tile, const st_sm90_row *from, int es, st_sm90_row *to, char *why,
                      size_t n)
{
    st_sm90 q = {.row = from, .es = es, .splits = 1};
    strata_tile t;
    st_sm90_tile(&q, &t);
    t = st_tile_filled(tile, &t);
    *to = *from;
    to->bm = t.block_m;
    to->bn = t.block_n;
    to->stages = t.stages;
    to->cm = t.cluster_m;
    to->cn = t.cluster_n;
    to->raster = t.raster;
    to->parts = tile->split_k > 1 ? tile->split_k : 0;
    if (tile->split_k == 1 && from->kind == ST_SM90_SPLIT)
        return st_tile_breaks(why, n, "split_k", 1, "this kernel splits k");
    if (to->raster > 1 << 20)
        return st_tile_breaks(why, n, "raster", to->raster, "at most 2^20 rows of tiles");
    return true;
}

static bool refine(strata_handle *h, const st_problem *pr, st_candidate *c, const strata_tile *tile)
{
    const st_contract *p = pr->data;
    const st_sm90_row *from = listed_row(c->row), *row;
    const size_t n = sizeof c->why;
    st_sm90_row made;
    st_sm90 q, usual;
    strata_tile own;
    c->us = -1;
    c->why[0] = 0;
    /* the row that the problem would have, or why it has none: a split that would not pay may still be asked for */
    const bool fits =
        !st_contract_rules(p, c->why, n) && st_sm90_configure(from, p, pr->text, h->gpu, &usual, c->why, n);
    if (!fits && (from->kind != ST_SM90_SPLIT || !usual.es || usual.us <= 0)) return false;
    if (!tile && !read_args(c, from, &made))
        return snprintf(c->why, n, "its numbers are no tile of this kernel"), false;
    if (tile && !asked_row(tile, from, usual.es, &made, c->why, n)) return false;
    if (!row_is_legal(&made, from, &usual, c->why, n)) return false;
    const st_sm90_row *twin = twin_of(&made, tile, from, usual.es);
    if (twin) {
        c->twin = true;
        return snprintf(c->why, n, "another row comes to the same tile"), false;
    }
    if (memcmp(&made, from, sizeof made) == 0)
        row = from;
    else if (!(row = keep_row(&made, from)))
        return snprintf(c->why, n, "no memory for a tile"), false;
    if (!st_sm90_configure(row, p, pr->text, h->gpu, &q, c->why, n) || !memory_fits(h, &q, c->why, n))
        return false;
    st_sm90_tile(&q, &own);
    if (tile &&
        !st_tile_meets(tile, &own, "a stage is 128 bytes of k, an instruction 64 rows and 32 bytes of k",
                       c->why, n))
        return false;
    if (row != from) {
        st_candidate listed;
        st_sm90_candidate(p, &usual, fits, &listed);
        snprintf(c->listed, sizeof c->listed, "%s", listed.kernel);
    }
    write_args(row, from, c->arg);
    st_sm90_candidate(p, &q, true, c);
    return true;
}

/* The order in which tiles are taken, which needs no other code. */
static int variants(strata_handle *h, const st_problem *pr, const st_candidate *c, int64_t (*arg)[8], int max)
{
    const st_sm90_row *row = c->row, *from = listed_row(row);
    static const int rasters[] = {4, 8, 16, 32, 64};
    int n = 0;
    (void)h;
    (void)pr;
    for (int i = 0; i < ST_COUNT(rasters) && n < max; i++) {
        if (rasters[i] == row->raster) continue;
        st_sm90_row other = *row;
        other.raster = rasters[i];
        write_args(&other, from, arg[n++]);
    }
    return n;
}

const st_tiles st_sm90_tiles = {&st_sm90_provider, refine, variants};
