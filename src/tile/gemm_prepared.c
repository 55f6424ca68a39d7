/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_prepared.c - what a caller may decide of a packed product: its tile, and operands that are packed once.
 *
 * Tile: block_k steps of k are summed before C is updated (so it fixes the order of sums), block_m rows of A stay in L2, block_n columns of B are
 * packed at a time; the register tile and the vector are the kernel's. arg[] of a candidate: block_k, block_m, block_n, 0 for the usual.
 *
 * A prepared operand: a head, then for every item that differs the blocks of k one after the other, each all panels as st_packed_pack writes them. A
 * run then begins with the products. */
#include "tile/gemm_packed.h"
#include <stdio.h>
#include <string.h>

/* ---- tiles ---------------------------------------------------------------------------------------------------------------- */

enum { STEPS = 16, MOST_K = 1 << 14, MOST_BYTES = 1 << 28 };

void st_packed_describe(const st_packed_plan *p, const st_kernel_row *row, st_candidate *c)
{
    const st_packed_kernel *kr = p->kernel;
    const st_gemm *g = &p->g;
    c->tile = (strata_tile){.block_m = (int32_t)p->mc,
                            .block_n = (int32_t)p->nc,
                            .block_k = (int32_t)p->kc,
                            .warp_m = kr->mr,
                            .warp_n = kr->nv * kr->vl,
                            .instruction_m = 1,
                            .instruction_n = kr->vl};
    /* one block is one accumulator; other blocks than the usual are another order */
    const bool real =
        (g->type == STRATA_F32 || g->type == STRATA_F64) && g->ta == g->type && g->tc == g->type;
    if (g->K <= p->kc && real)
        c->order = row->needs ? ST_ORDER_K : ST_ORDER_K "; products rounded";
    else if (c->arg[0] && g->type != STRATA_I32) /* of whole numbers any order is the same */
        c->order_arg = c->arg[0];
}

/* True, or the rule that the tile breaks. */
static bool tile_fits(const strata_tile *t, const strata_tile *has, const st_packed_kernel *kr, char *why,
                      size_t n)
{
    const struct {
        int32_t asked, is;
        const char *words;
    } fixed[] = {{t->warp_m, has->warp_m, "rows of the register tile (warp_m)"},
                 {t->warp_n, has->warp_n, "columns of the register tile (warp_n)"},
                 {t->warp_k, 1, "steps of k at a time in registers (warp_k)"},
                 {t->instruction_m, 1, "rows of an instruction (instruction_m)"},
                 {t->instruction_n, has->instruction_n, "lanes of a vector (instruction_n)"},
                 {t->instruction_k, kr->unit, "products of k in an instruction (instruction_k)"},
                 {t->stages, 0, "pipeline stages, which a CPU's caches have none of (stages)"},
                 {t->cluster_m, 1, "blocks in a cluster (cluster_m)"},
                 {t->cluster_n, 1, "blocks in a cluster (cluster_n)"},
                 {t->split_k, 1, "parts of k summed apart (split_k)"},
                 {t->raster, 0, "raster: blocks go by columns (raster)"}};
    for (int i = 0; i < ST_COUNT(fixed); i++)
        if (fixed[i].asked && fixed[i].asked != fixed[i].is)
            return snprintf(why, n, "this kernel has %d %s, not %d", fixed[i].is, fixed[i].words,
                            fixed[i].asked),
                   false;
    if (t->block_k && (t->block_k % STEPS || t->block_k > MOST_K))
        return snprintf(why, n, "block_k is %d: a multiple of %d up to %d", t->block_k, STEPS, MOST_K), false;
    if (t->block_m % has->warp_m)
        return snprintf(why, n, "block_m is %d: a multiple of the register tile's %d rows", t->block_m,
                        has->warp_m),
               false;
    if (t->block_n % has->warp_n)
        return snprintf(why, n, "block_n is %d: a multiple of the register tile's %d columns", t->block_n,
                        has->warp_n),
               false;
    const int64_t k = t->block_k ? t->block_k : has->block_k, m = t->block_m ? t->block_m : has->block_m,
                  cols = t->block_n ? t->block_n : has->block_n, size = st_packed_bytes(kr, 1, k);
    if (m * size > MOST_BYTES || cols * size > MOST_BYTES)
        return snprintf(why, n, "blocks of %lld x %lld x %lld take more than %d MiB packed", (long long)m,
                        (long long)cols, (long long)k, MOST_BYTES >> 20),
               false;
    return true;
}

static bool refine(strata_handle *h, const st_problem *pr, st_candidate *c, const strata_tile *tile)
{
    st_candidate usual = *c;
    memset(usual.arg, 0, sizeof usual.arg);
    if (!st_packed_consider(h, pr, &usual)) {
        *c = usual;
        return false;
    }
    strata_tile asked = tile ? *tile : (strata_tile){.block_k = 0};
    if (!tile) {
        for (int i = 0; i < ST_COUNT(c->arg); i++)
            if (c->arg[i] < 0 || c->arg[i] > 1 << 30 || (i > 2 && c->arg[i]))
                return snprintf(c->why, sizeof c->why, "its numbers are no tile of this kernel"), false;
        asked.block_k = (int32_t)c->arg[0];
        asked.block_m = (int32_t)c->arg[1];
        asked.block_n = (int32_t)c->arg[2];
    }
    const st_packed_kernel *kr = ((const st_kernel_row *)c->row)->impl;
    if (!tile_fits(&asked, &usual.tile, kr, c->why, sizeof c->why)) return false;
    c->arg[0] = asked.block_k == usual.tile.block_k ? 0 : asked.block_k;
    c->arg[1] = asked.block_m == usual.tile.block_m ? 0 : asked.block_m;
    c->arg[2] = asked.block_n == usual.tile.block_n ? 0 : asked.block_n;
    return st_packed_consider(h, pr, c);
}

/* Half and twice the usual blocks, where the problem is that large. */
static int variants(strata_handle *h, const st_problem *pr, const st_candidate *c, int64_t (*arg)[8], int max)
{
    const st_contract *p = pr->data;
    const strata_tile *t = &c->tile;
    const int64_t k = st_axes_len(&p->k), longest = st_max64(st_axes_len(&p->m), st_axes_len(&p->n));
    int n = 0;
    (void)h;
    const int64_t tries[][3] = {{0, t->block_m / 2 / t->warp_m * t->warp_m, 0},
                                {0, 2 * t->block_m, 0},
                                {0, 0, t->block_n / 2 / t->warp_n * t->warp_n},
                                {t->block_k / 2, 0, 0},
                                {2 * t->block_k, 0, 0},
                                {t->block_k / 2, 2 * t->block_m, 0}};
    for (int i = 0; i < ST_COUNT(tries) && n < max; i++) {
        const bool rows = tries[i][1] && longest > tries[i][1] / 2,
                   cols = tries[i][2] && longest > tries[i][2],
                   depth = tries[i][0] && k > st_min64(tries[i][0], t->block_k);
        if (!rows && !cols && !depth) continue;
        memset(arg[n], 0, sizeof arg[n]);
        memcpy(arg[n++], tries[i], sizeof tries[i]);
    }
    return n;
}

const st_tiles st_gemm_packed_tiles = {&st_gemm_packed_provider, refine, variants};

/* ---- prepared operands ------------------------------------------------------------------------------------------------------ */

int64_t st_packed_k_block(const st_packed_plan *p)
{
    const int64_t parts = st_ceil_div(p->g.K, p->kc);
    return parts > 1 ? st_round_up(st_ceil_div(p->g.K, parts), 4) : p->g.K;
}

/* 'a' or 'b': which of the form's operands the plan's operand is */
static int form_of(const st_packed_plan *p, int operand)
{
    return (operand == 0) != p->g.swapped ? 'a' : 'b';
}

/* Lines in whole panels */
static int64_t lines_of(const st_packed_plan *p, int which)
{
    return which == 'a' ? st_round_up(p->g.M, p->kernel->mr)
                        : st_round_up(p->g.N, (int64_t)p->kernel->nv * p->kernel->vl);
}

/* Items that differ: 1 where all of them share the operand. */
static int64_t items_of(const st_packed_plan *p, int which)
{
    for (int d = 0; d < (int)p->g.batch.count; d++)
        if (st_axis_stride(&p->g.batch.ax[d], which)) return p->g.G;
    return 1;
}

static int64_t item_bytes(const st_packed_plan *p, int which)
{
    const int64_t block = st_packed_k_block(p), lines = lines_of(p, which);
    int64_t n = 0;
    for (int64_t k0 = 0; k0 < p->g.K; k0 += block)
        n += st_packed_bytes(p->kernel, lines, st_min64(block, p->g.K - k0));
    return st_round_up(n, 64);
}

const char *st_packed_ready_at(const st_packed_plan *p, int which, const char *ready, int64_t item,
                               int64_t line, int64_t k0, int64_t kc)
{
    const int64_t block = st_packed_k_block(p);
    if (items_of(p, which) > 1) ready += item * item_bytes(p, which);
    return ready + k0 / block * st_packed_bytes(p->kernel, lines_of(p, which), block) +
           st_packed_bytes(p->kernel, line, kc);
}

/* All that the layout depends on; the other operand's sizes are not part of it. */
static st_prepared_head head_of(const st_packed_plan *p, int which)
{
    const st_gemm *g = &p->g;
    const int64_t words[] = {
        which == 'a' ? g->M : g->N, g->K, items_of(p, which), st_packed_k_block(p), g->ta, g->tb, g->type,
        lines_of(p, which)};
    const char *id = p->head.base.chosen.kernel;
    return (st_prepared_head){.magic = ST_PREPARED_MAGIC,
                              .form = (uint32_t)which,
                              .layout = st_hash(words, sizeof words, st_hash(id, strlen(id), 11))};
}

static size_t prepared_bytes(const strata_plan *plan, int operand)
{
    const st_packed_plan *p = (const st_packed_plan *)plan;
    const int which = form_of(p, operand);
    return sizeof(st_prepared_head) + (size_t)(items_of(p, which) * item_bytes(p, which)) + ST_PACK_SLACK;
}

static strata_status prepare(strata_handle *h, const strata_plan *plan, int operand, const void *from,
                             void *to)
{
    const st_packed_plan *p = (const st_packed_plan *)plan;
    const st_gemm *g = &p->g;
    const int which = form_of(p, operand);
    const int64_t block = st_packed_k_block(p), lines = which == 'a' ? g->M : g->N,
                  items = items_of(p, which);
    const int64_t width = which == 'a' ? p->kernel->mr : (int64_t)p->kernel->nv * p->kernel->vl,
                  size = which == 'a' ? g->ea : g->eb;
    char *ready = (char *)to + sizeof(st_prepared_head);
    (void)h;
    for (int64_t i = 0; i < items; i++) {
        const char *src = (const char *)from + (items > 1 ? st_axes_offset(&g->batch, which, i) * size : 0);
        for (int64_t k0 = 0; k0 < g->K; k0 += block) {
            const int64_t kc = st_min64(block, g->K - k0);
            for (int64_t l = 0; l < lines; l += width)
                st_packed_pack(p, which, (char *)(uintptr_t)st_packed_ready_at(p, which, ready, i, l, k0, kc),
                               src, l, st_min64(width, lines - l), k0, kc);
        }
    }
    const st_prepared_head head = head_of(p, which);
    memcpy(to, &head, sizeof head);
    return STRATA_OK;
}

void st_packed_preparable(st_packed_plan *p)
{
    strata_plan *base = &p->head.base;
    base->preparable = 1u << (p->g.swapped ? 0 : 1);
    if (!p->in_place) base->preparable |= 1u << (p->g.swapped ? 1 : 0);
    base->prepared_bytes = prepared_bytes;
    base->prepare = prepare;
}

strata_status st_packed_prepared(strata_handle *h, const st_packed_plan *p, const strata_run *r,
                                 st_packed_job *job)
{
    for (int i = 0; i < 2; i++) {
        if (!(r->prepared >> i & 1)) continue;
        const int which = form_of(p, i);
        const st_prepared_head want = head_of(p, which), *has = job->data[i];
        if (memcmp(&want, has, sizeof want) != 0) {
            st_fail(&h->err, STRATA_ERROR_ARGUMENT, "strata_plan_run: data[%d] is %s (%s)", i,
                    has->magic == ST_PREPARED_MAGIC ? "prepared for a plan of another layout"
                                                    : "not what strata_prepare made",
                    p->head.base.title);
            st_err_remedy(&h->err, "strata_prepare with this plan; its kernel is %s",
                          p->head.base.chosen.kernel);
            return STRATA_ERROR_ARGUMENT;
        }
        *(which == 'a' ? &job->ready_a : &job->ready_b) =
            (const char *)job->data[i] + sizeof(st_prepared_head);
    }
    return STRATA_OK;
}
