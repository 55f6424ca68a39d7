/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90_model.c - how a row of the Hopper kernels would run a problem, and how long that takes. Pure functions of the problem, the row and the device's figures: the
 * same call always has the same configuration, so the same order of summation.
 *
 * The time of a k-block of one tile is the largest of three: what the tensor cores take (BM * BN / 32 clocks, whatever the type: a block is 128 bytes of k), what its bytes
 * take to come from L2 (64 a clock and multiprocessor; rows that span two lines take 1.75 times as long), and what few consumers
 * can issue. Whole waves of tiles are counted, as blocks are persistent. */
#include "tile/cuda/gemm_sm90.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ST_GENERIC(...)
#define ST_SM90(...) {__VA_ARGS__, 0},
static const st_sm90_row rows[] = {
#include "tile/cuda/kernels.inc"
};
#undef ST_SM90
#undef ST_GENERIC

const st_sm90_row *st_sm90_rows(int *count)
{
    *count = ST_COUNT(rows);
    return rows;
}

enum { PANELS = 256 << 20 }; /* X6: bytes of parts at a time, the default limit of workspaces */
static int size_of(int64_t type) { return (int)strata_type_bits((strata_type)type) / 8; }
static bool is_f8(int64_t t) { return t == STRATA_F8E4M3 || t == STRATA_F8E5M2; }

static bool takes_types(const st_sm90_row *row, const st_contract *c, char *why, size_t n)
{
    const bool f32 = c->ta == STRATA_F32 && c->tb == STRATA_F32, f8 = is_f8(c->ta) && is_f8(c->tb);
    const bool half = c->ta == c->tb && (c->ta == STRATA_F16 || c->ta == STRATA_BF16);
    const bool integer = c->ta == STRATA_I8 && c->tb == STRATA_I8;
    const bool float_c = c->tc == STRATA_F32 || c->tc == STRATA_F16 || c->tc == STRATA_BF16;
    const bool x6 = row->kind == ST_SM90_X6;
    if (row->kind == ST_SM90_TURN && !f32) {
        snprintf(why, n, "turns 32-bit operands round on their way to the tensor cores");
        return false;
    }
    if (f32 && c->tc == STRATA_F32 && c->math != (x6 ? STRATA_MATH_BF16X6 : STRATA_MATH_TF32)) {
        snprintf(why, n,
                 x6 ? "takes factors as three bf16 parts: only with STRATA_MATH_BF16X6"
                    : "rounds its factors to tf32: only with STRATA_MATH_TF32");
        return false;
    }
    if (x6 && !f32) {
        snprintf(why, n, "takes f32, as three bf16 parts");
        return false;
    }
    const bool i8_c = c->tc == STRATA_I8;
    if (!((f32 && c->tc == STRATA_F32) || (half && (float_c || i8_c)) || (f8 && (float_c || is_f8(c->tc))) ||
          (integer && (c->tc == STRATA_I32 || c->tc == STRATA_F32 || i8_c)))) {
        snprintf(why, n, "takes 16-bit floats, 8-bit floats, i8, and f32 as tf32; not %s x %s into %s",
                 strata_type_name((strata_type)c->ta), strata_type_name((strata_type)c->tb),
                 strata_type_name((strata_type)c->tc));
        return false;
    }
    const bool promote = f8 && c->math != STRATA_MATH_FAST_ACCUM;
    if (promote && row->kind != ST_SM90_PROMOTE) {
        snprintf(why, n, "keeps about 14 bits of sums of 8-bit floats: only with STRATA_MATH_FAST_ACCUM");
        return false;
    }
    if (!promote && row->kind == ST_SM90_PROMOTE) {
        snprintf(why, n, "adds every 128 to f32, which only 8-bit floats need");
        return false;
    }
    return true;
}

/* X6: the workspace of parts of `panel` rows */
static void set_panel(const st_sm90 *q, st_sm90_side *s, int64_t panel)
{
    s->panel = panel;
    s->part = s->pitch * panel * (s->gs ? q->G : 1);
    s->bytes = (size_t)(3 * s->part * q->es);
}
/* X6: where the parts of all of A and B are more than PANELS bytes, C is computed by panels: A's rows are split once, B's once for every panel of A. False: not even
 * panels fit. */
static bool cut_panels(st_sm90 *q)
{
    const int64_t row = 3 * q->a.pitch * q->es, fit = (PANELS - 1024) / row;
    if ((q->M + q->N) * row * q->G <= PANELS - 1024) return true;
    if (q->G > 1 || fit < 1024) return false;
    const int64_t b = st_min64(q->N, st_max64(fit / 4 / 256 * 256, 256)),
                  a = st_min64(q->M, (fit - b) / 256 * 256);
    set_panel(q, &q->a, a);
    set_panel(q, &q->b, st_min64(q->N, (fit - a) / 256 * 256));
    return true;
}

/* An operand as TMA reads it, or as it is copied. `across`: columns of a box of contiguous rows must divide the tile. */
static void side(const st_sm90 *q, const st_axes *rows_of, int which, int64_t count, int tile, bool unaligned,
                 st_sm90_side *s)
{
    const st_contract *c = &q->g.c;
    const int es = q->es;
    const bool one_row = count <= 1, one_k = q->K <= 1;
    const int64_t last = c->batch.count - 1;
    s->rows = count;
    s->rs = rows_of->count ? st_axis_stride(&rows_of->ax[0], which) : 0;
    s->ks = c->k.count ? st_axis_stride(&c->k.ax[0], which) : 1;
    s->gs = last >= 0 ? st_axis_stride(&c->batch.ax[last], which) : 0;
    s->item = s->gs;
    if (q->row->kind == ST_SM90_X6) {
        s->pack = true;
        s->pitch = st_round_up(q->K, 128 / es);
        s->item = s->gs ? s->pitch * count : 0;
        set_panel(q, s, count);
        return;
    }
    if (q->row->kind == ST_SM90_TURN && which == (q->turned ? 'b' : 'a')) { /* rows() has looked */
        s->mn = true;
        s->pitch = one_k ? st_round_up(count, 4) : s->ks;
        return;
    }
    const bool batch_fits = s->gs >= 0 && s->gs * es % 16 == 0;
    for (int64_t d = 0; d < last; d++)
        if (st_axis_stride(&c->batch.ax[d], which) * es % 16) unaligned = true;
    if (!unaligned && batch_fits && (s->ks == 1 || one_k) &&
        (one_row || (s->rs > 0 && s->rs * es % 16 == 0))) {
        s->pitch = one_row ? st_round_up(q->K, 16 / es) : s->rs;
        return;
    }
    if (!unaligned && batch_fits && es == 2 && tile % 64 == 0 && (s->rs == 1 || one_row) &&
        (one_k || (s->ks > 0 && s->ks % 8 == 0))) {
        s->mn = true;
        s->pitch = one_k ? st_round_up(count, 8) : s->ks;
        return;
    }
    s->pack = true;
    if (es == 2 && tile % 64 == 0 && s->rs == 1 &&
        s->ks != 1) { /* copied as it lies: no need to turn it round */
        s->mn = true;
        s->pitch = st_round_up(count, 64);
        s->item = s->gs ? s->pitch * q->K : 0;
        s->bytes = (size_t)(s->pitch * q->K * (s->gs ? q->G : 1) * es);
        return;
    }
    s->pitch = st_round_up(q->K, 128 / es);
    s->item = s->gs ? s->pitch * count : 0;
    s->bytes = (size_t)(s->pitch * count * (s->gs ? q->G : 1) * es);
}

/* TURN: can TMA read the operand with its rows contiguous? */
static bool reads_rows(const st_contract *c, const st_axes *rows_of, int which)
{
    if (c->unaligned || !rows_of->count || !c->k.count || st_axis_stride(&rows_of->ax[0], which) != 1)
        return false;
    const int64_t ks = st_axis_stride(&c->k.ax[0], which);
    for (int64_t d = 0; d < c->batch.count; d++)
        if (st_axis_stride(&c->batch.ax[d], which) % 4 || st_axis_stride(&c->batch.ax[d], which) < 0)
            return false;
    return ks > 1 && ks % 4 == 0;
}

static double copy_us(const st_sm90 *q, const st_sm90_side *s, const st_gpu *gpu, bool second)
{
    if (!s->pack) return 0;
    const double through = q->row->kind == ST_SM90_X6 ? (double)(s->rows * q->K) * 10 : (double)s->bytes * 2,
                 rate = gpu->copy_bytes_per_us > 0 ? gpu->copy_bytes_per_us : 3e6;
    return (second ? 0.3 : 3.5) + through / rate * (s->mn || s->ks == 1 || q->K <= 1 ? 1.2 : 1.6);
}

static double predict(st_sm90 *q, const st_gpu *gpu)
{
    const st_sm90_row *row = q->row;
    const double clock = gpu->clock_mhz > 0 ? gpu->clock_mhz * 0.8 : 1500,
                 copy = gpu->copy_bytes_per_us > 0 ? gpu->copy_bytes_per_us : 3e6;
    const int kb = 128 / q->es, cl = row->cm * row->cn;
    const int64_t tm = st_ceil_div(q->M, row->bm * row->cm), tn = st_ceil_div(q->N, row->bn * row->cn);
    const int64_t tiles = tm * tn * q->G * q->outer, slots = st_max64(gpu->sms / cl, 1),
                  kall = st_ceil_div(q->K, kb) * (row->kind == ST_SM90_X6 ? 6 : 1);
    const double ragged_a = q->a.pitch * q->es % 128 ? 1.75 : 1,
                 ragged_b = q->b.pitch * q->es % 128 ? 1.75 : 1;
    const double bytes = 128.0 * (row->bm * ragged_a / row->cn + row->bn * ragged_b / row->cm);
    /* ping-pong gains with 8-bit types, whose k-blocks hold twice the work */
    const int percent = row->percent + (row->pp && q->es == 1 ? 2 : 0);
    /* a C whose rows do not begin on 16 bytes is written in parts of sectors, which takes from what is left for loads */
    const bool odd = q->ldc * q->cs % 16 != 0;
    const double issue = row->bm * row->bn / 32.0 * 100 / percent, feed = bytes / (odd ? 51 : 64);
    const double block = issue > feed ? issue : feed;
    /* what a tile costs beside its k: filling the ring once a block, storing the tile where nothing hides it */
    const double end = row->bm * row->bn * ((q->epilogue ? 0.2 : 0.07) + (odd ? 0.1 : 0)), fill = 1800;
    const double store = row->pp ? row->bm * row->bn * 0.02 : end + row->bm * row->bn * 0.02;
    /* what must come from memory at all */
    const double compulsory = ((double)(q->M * q->K + q->N * q->K) * q->es + (double)(q->M * q->N) * q->cs) *
                              (double)(q->G * q->outer) / (copy * 0.85);
    q->splits = 1;
    double best = 0;
    const int64_t most = row->kind == ST_SM90_SPLIT ? st_min64(64, kall / 4) : 1;
    const int64_t first = row->parts ? row->parts : 1, last = row->parts ? row->parts : st_max64(most, 1);
    for (int64_t s = first; s <= last; s++) {
        if (s > first && s * q->M * q->N * q->G * 4 > (int64_t)256 << 20) break;
        const int64_t waves = st_ceil_div(tiles * s, slots);
        double us = ((double)waves * ((double)st_ceil_div(kall, s) * block + store) + fill) / clock + 2.5;
        if (row->pp) us += end / clock; /* the last tile's */
        /* long products run at the card's power limit, where ping-pong draws more */
        if (row->pp && us > 150 && q->es > 1) us *= 1.02;
        if (cl > 1) us += 1;
        us = cbrt(us * us * us +
                  compulsory * compulsory * compulsory); /* both go on at once, not quite freely */
        if (row->kind == ST_SM90_SPLIT)
            us += 3 + (double)(s + 1) * (double)(q->M * q->N * q->G) * 4 / (copy * 1.5);
        if (s == first || us < best) {
            best = us;
            q->splits = (int)s;
        }
    }
    return best + copy_us(q, &q->a, gpu, false) + copy_us(q, &q->b, gpu, q->a.pack);
}

/* Would copies pay of operands that TMA reads, but whose rows straddle lines of 128 bytes? */
static void copy_ragged(st_sm90 *q, const st_gpu *gpu)
{
    st_sm90 copied = *q;
    st_sm90_side *const side[] = {&copied.a, &copied.b};
    bool any = false;
    for (int i = 0; i < 2; i++) {
        st_sm90_side *s = side[i];
        if (s->pack || s->mn || s->rows < 2 || s->pitch * q->es % 128 == 0) continue;
        any = s->pack = true;
        s->pitch = st_round_up(q->K, 128 / q->es);
        s->item = s->gs ? s->pitch * s->rows : 0;
        s->bytes = (size_t)(s->pitch * s->rows * (s->gs ? q->G : 1) * q->es);
    }
    if (!any || q->outer > 1) return;
    copied.us = predict(&copied, gpu);
    if (copied.us < q->us) *q = copied;
}

static bool plain(const st_contract *c, char *why, size_t n)
{
    if (c->bounds) {
        snprintf(why, n, "the operand has bounds (a window of an image); this one reads plain views");
        return false;
    }
    if (c->m.count > 1 || c->n.count > 1 || c->k.count > 1) {
        snprintf(why, n, "takes one axis each of m, n and k; there are %d, %d and %d", (int)c->m.count,
                 (int)c->n.count, (int)c->k.count);
        return false;
    }
    if (c->n.count && c->n.ax[0].c != 1) {
        snprintf(why, n, "takes a C whose rows or columns stand together");
        return false;
    }
    if ((c->m.count && (c->m.ax[0].b || c->m.ax[0].c <= 0)) || (c->n.count && c->n.ax[0].a)) {
        snprintf(why, n, "takes rows of C in ascending order, and A and B along their own axes");
        return false;
    }
    return true;
}

bool st_sm90_configure(const st_sm90_row *row, const st_contract *c, const char *text, const st_gpu *gpu,
                       st_sm90 *q, char *why, size_t n)
{
    memset(q, 0, sizeof *q);
    q->row = row;
    if (gpu->cc != 90) {
        snprintf(why, n, "is for compute capability 9.0; %s has %d.%d", gpu->device, gpu->cc / 10,
                 gpu->cc % 10);
        return false;
    }
    if (!takes_types(row, c, why, n)) return false;
    st_generic_problem(c, text, &q->g);
    const st_contract *p = &q->g.c;
    if (!plain(p, why, n)) return false;
    q->M = q->g.M;
    q->N = q->g.N;
    q->K = q->g.K;
    const int64_t last = p->batch.count - 1;
    q->G = last >= 0 ? p->batch.ax[last].len : 1;
    q->outer = q->G ? q->g.G / q->G : 0;
    if (q->M < 1 || q->N < 1 || q->K < 1 || q->g.G < 1) {
        snprintf(why, n, "takes products that have something to multiply");
        return false;
    }
    if (q->M >= 1 << 30 || q->N >= 1 << 30 || q->K >= 1 << 30 || q->g.G >= 1 << 30 ||
        st_ceil_div(q->M, row->bm) * st_ceil_div(q->N, row->bn) >= ((int64_t)1 << 30) / st_max64(q->G, 1)) {
        snprintf(why, n, "takes sizes, and tiles together, below 2^30");
        return false;
    }
    const bool x6 = row->kind == ST_SM90_X6;
    q->es = x6 ? 2 : size_of(p->ta);
    q->cs = size_of(p->tc);
    q->tf32 = p->ta == STRATA_F32 && !x6;
    q->integer = p->ta == STRATA_I8;
    q->batch = q->G > 1 || x6;
    q->ldc = p->m.count ? p->m.ax[0].c : q->N;
    q->cg = last >= 0 ? p->batch.ax[last].c : 0;
    if (row->kind == ST_SM90_TURN) {
        q->turned = !reads_rows(p, &p->m, 'a');
        if (q->turned && !reads_rows(p, &p->n, 'b')) {
            snprintf(why, n,
                     "is for an operand whose k is not contiguous, but its rows are, in steps of 16 bytes");
            return false;
        }
    }
    if (q->turned) {
        q->M = q->g.N;
        q->N = q->g.M;
        side(q, &p->n, 'b', q->M, row->bm, c->unaligned != 0, &q->a);
        side(q, &p->m, 'a', q->N, row->bn, c->unaligned != 0, &q->b);
    } else {
        side(q, &p->m, 'a', q->M, row->bm / row->cn, c->unaligned != 0, &q->a);
        side(q, &p->n, 'b', q->N, row->bn / row->cm, c->unaligned != 0, &q->b);
    }
    if (x6 && !cut_panels(q)) {
        snprintf(why, n, "splits operands into parts in at most %d MiB: of one item, and of k to about 40000",
                 PANELS >> 20);
        return false;
    }
    if ((q->a.pack || q->b.pack) && q->outer > 1) {
        snprintf(why, n, "copies operands that TMA does not read, of one batch axis, not of %d",
                 (int)p->batch.count);
        return false;
    }
    if (row->kind == ST_SM90_SPLIT && q->outer > 1) {
        snprintf(why, n, "splits k of one batch axis, not of %d", (int)p->batch.count);
        return false;
    }
    if (row->cm > 1 && q->M <= row->bm * (row->cm - 1)) {
        snprintf(why, n, "shares B among tiles of %d rows; there is one", row->bm);
        return false;
    }
    /* TMA stores whole 16 bytes: it would write past the end of a row that has no multiple of them */
    if (row->tma_store &&
        (c->unaligned || q->N * q->cs % 16 || q->ldc * q->cs % 16 || q->cg * q->cs % 16 || q->cg < 0)) {
        snprintf(why, n, "stores C by TMA: its address, columns and pitch must be multiples of 16 bytes");
        return false;
    }
    if (((text || q->integer) && row->pp && row->bn > 160) ||
        (text && st_sm90_holds_parts(row) && row->bn > 64)) {
        snprintf(why, n, "holds so many sums that %s has no registers",
                 text ? "an epilogue" : "scaling integers");
        return false;
    }
    const int full = text ? st_cuda_epilogue_full(&q->g.own, q->g.swapped != q->turned) : 0;
    const int sums = row->bm / (row->pp ? 1 : row->consumers) * row->bn / 128 *
                     (row->kind == ST_SM90_PROMOTE || x6 ? 2 : 1);
    if (sums > (full == 0                                                         ? 192
                : full == 2                                                       ? 64
                : (row->tma_store && row->bm == 128) || (row->pp && row->cm == 1) ? 128
                                                                                  : 64)) {
        snprintf(why, n,
                 "has no registers beside its sums for an epilogue whose operands have an element for each "
                 "of C's%s",
                 full == 2 ? ", not in pairs" : "");
        return false;
    }
    if (row->parts > st_ceil_div(q->K, 128 / q->es)) {
        snprintf(why, n, "cuts k into %d parts, and it has %d steps of %d", row->parts,
                 (int)st_ceil_div(q->K, 128 / q->es), 128 / q->es);
        return false;
    }
    q->epilogue = text != NULL;
    q->us = predict(q, gpu);
    if (row->kind == ST_SM90_ANY) copy_ragged(q, gpu);
    if (row->kind == ST_SM90_SPLIT && q->splits == 1) {
        snprintf(why, n, "the tiles fill the multiprocessors, or k is short: a split would not pay");
        return false;
    }
    q->a.at = x6 ? 256 : 0; /* before it: whether there is what has no parts */
    q->b.at = q->a.at + (size_t)st_round_up((int64_t)q->a.bytes, 256);
    q->partial_at = q->b.at + (size_t)st_round_up((int64_t)q->b.bytes, 256);
    q->workspace = q->a.pack || q->b.pack ? q->partial_at : 0;
    if (row->kind == ST_SM90_SPLIT)
        q->workspace = q->partial_at + (size_t)(q->splits * q->M * q->N * q->G * 4);
    return true;
}

unsigned st_sm90_smem(const st_sm90 *q)
{
    const st_sm90_row *r = q->row;
    const int staging = r->tma_store ? 512 * 128 : r->consumers * 4 * 2048;
    const int high = r->pp ? r->bm : r->bm / r->consumers; /* of a consumer's tile */
    const int fetched = q->epilogue ? r->consumers * ST_EPI_VECTORS * 4 * (r->bn + high) : 0;
    return (unsigned)(r->stages * (r->bm + r->bn) * 128 * (st_sm90_holds_parts(r) ? 3 : 1) + staging +
                      r->stages * 16 + fetched);
}
