/* SPDX-License-Identifier: Apache-2.0 */
/* generic_problem.c - a contraction in the form of the generic CUDA kernels, and how a row of theirs would run it. Pure functions of the problem, the row and the
 * device's figures: the same call always has the same configuration, so the same order of summation. */
#include "tile/cuda/generic.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t inner(const st_axes *l, int which)
{
    return l->count ? st_axis_stride(&l->ax[l->count - 1], which) : 0;
}

static void exchange(st_contract *c)
{
    st_axes t = c->m;
    c->m = c->n;
    c->n = t;
    int64_t type = c->ta;
    c->ta = c->tb;
    c->tb = type;
    const st_rule rule = st_rule_transposed(c->rule_a);
    c->rule_a = st_rule_transposed(c->rule_b);
    c->rule_b = rule;
    c->rule_c = st_rule_transposed(c->rule_c);
    c->pointers = (c->pointers & 4) | (c->pointers & 1) << 1 | (c->pointers >> 1 & 1);
    st_axes *l[] = {&c->m, &c->n, &c->k, &c->batch};
    for (int i = 0; i < 4; i++)
        for (int64_t d = 0; d < l[i]->count; d++) {
            int64_t a = l[i]->ax[d].a;
            l[i]->ax[d].a = l[i]->ax[d].b;
            l[i]->ax[d].b = a;
        }
}

void st_generic_problem(const st_contract *c, const char *text, st_gproblem *g)
{
    memset(g, 0, sizeof *g);
    g->own = *c;
    if (!text) g->own.epi_operands = 0;
    st_tile_simplify(&g->own);
    g->c = g->own;
    const int64_t mc = inner(&g->c.m, 'c'), nc = inner(&g->c.n, 'c');
    g->swapped = g->c.m.count && mc == 1 && (nc != 1 || g->c.n.count == 0);
    if (g->swapped) exchange(&g->c);
    g->window = g->c.bounds ? 1 + g->swapped : 0;
    g->M = st_axes_len(&g->c.m);
    g->N = st_axes_len(&g->c.n);
    g->K = st_axes_len(&g->c.k);
    g->G = st_axes_len(&g->c.batch);
}

/* ---- alignment ------------------------------------------------------------------------------------------------------------- */

static bool multiple(const st_axes *l, int which, int v, int64_t but)
{
    for (int64_t d = 0; d < l->count; d++)
        if (d != but && st_axis_stride(&l->ax[d], which) % v) return false;
    return true;
}

/* May v elements along the innermost axis of `fast` be one copy? */
bool st_generic_together(const st_axes *fast, const st_axes *slow, const st_axes *batch, int which, int v)
{
    const int64_t last = fast->count - 1;
    if (v == 1) return true;
    if (last < 0 || st_axis_stride(&fast->ax[last], which) != 1) return false;
    if (fast->count > 1 && fast->ax[last].len % v) return false;
    return multiple(fast, which, v, last) && multiple(slow, which, v, -1) && multiple(batch, which, v, -1);
}

static bool bound_on(const st_contract *c, bool is_k, int64_t axis)
{
    for (int64_t b = 0; b < c->bounds; b++)
        if ((is_k ? c->bound[b].k : c->bound[b].m) == axis) return true;
    return false;
}

static int size_of(int type) { return (int)strata_type_bits((strata_type)type) / 8; }

static void side(const st_gproblem *g, int s, int type, const int *allowed, st_gconfig *f)
{
    const st_axes *rows = s ? &g->c.n : &g->c.m;
    const int which = s ? 'b' : 'a';
    const int64_t sr = llabs(inner(rows, which)), sk = llabs(inner(&g->c.k, which));
    const bool along_rows = rows->count && (!g->c.k.count || (sr != 0 && (sk == 0 || sr < sk)));
    const st_axes *fast = along_rows ? rows : &g->c.k, *slow = along_rows ? &g->c.k : rows;
    f->layout[s] = along_rows;
    f->vec[s] = 1;
    const bool bounded = g->window == s + 1 && fast->count && bound_on(&g->c, !along_rows, fast->count - 1);
    if (bounded) return;
    for (int i = 0; allowed[i]; i++)
        if (st_generic_together(fast, slow, &g->c.batch, which, allowed[i]) &&
            allowed[i] * size_of(type) <= 16) {
            f->vec[s] = allowed[i];
            return;
        }
}

/* Elements a copy that a kind's loaders have, the most first. */
static const int *vectors(const st_grow *row, bool along_rows)
{
    static const int single[] = {1, 0};
    static const int two[] = {2, 1, 0}, four[] = {4, 1, 0}, four_two[] = {4, 2, 1, 0},
                     eight[] = {8, 4, 2, 1, 0}, wide[] = {16, 8, 4, 1, 0};
    const int es = size_of(row->ta);
    if (st_type_is_complex(row->ta)) return row->kind == ST_G_BATCH && es == 8 ? two : single;
    switch (row->kind) {
    case ST_G_SIMT: return !along_rows ? single : es == 8 ? two : four;
    case ST_G_LDS: return es == 8 ? two : four;
    case ST_G_BATCH: return es == 8 ? two : es == 4 ? four_two : eight;
    default: return es == 2 ? eight : along_rows ? four : wide;
    }
}

/* Has the kernel registers to gather what cannot be copied? */
static bool gathers(const st_grow *row)
{
    const int sums = row->bm * row->bn / (row->warps_m * row->warps_n * 32);
    return sums <= 64 && (size_of(row->ta) == 2 || sums <= 32);
}

/* ---- configuration ---------------------------------------------------------------------------------------------------------- */

static bool fits_int(const st_gproblem *g, char *why, size_t n)
{
    if (g->M >= 1 << 30 || g->N >= 1 << 30 || g->K >= 1 << 30 || g->G >= 1 << 30) {
        snprintf(why, n, "takes sizes below 2^30");
        return false;
    }
    for (int64_t b = 0; b < g->c.bounds; b++) {
        const st_bound *x = &g->c.bound[b];
        if (x->limit >= 1 << 30 || llabs(x->offset) >= 1 << 30 || llabs(x->im) >= 1 << 20 ||
            llabs(x->ik) >= 1 << 20) {
            snprintf(why, n, "takes images below 2^30 rows");
            return false;
        }
    }
    return true;
}

/* Multiply-adds a clock and multiprocessor, times what the kind reaches of them. */
static double rate(const st_grow *row, int cc)
{
    const bool big = cc / 10 == 8 ? cc == 80 : cc / 10 == 9 || cc / 10 == 10;
    const bool small = row->bm * row->bn < row->warps_m * row->warps_n * 32 *
                                               64; /* of sums a thread: more loads of shared memory */
    if (row->kind == ST_G_SIMT)
        return row->ta == STRATA_F64
                   ? (big ? 64 : 2) * 0.8
                   : (cc == 80 ? 64 : 128) * (small ? 0.62 : 0.7) / (row->ta == STRATA_C64 ? 4 : 1);
    if (row->kind == ST_G_ZMMA) return (big ? (cc >= 90 ? 128 : 64) * 0.75 : 1.9) / 4;
    if (row->kind == ST_G_LDS && row->ta == STRATA_F64) return big ? (cc >= 90 ? 128 : 64) * 0.85 : 1.9;
    const double half = cc == 80 ? 1024 : cc == 90 ? 2048 * 0.6 : cc / 10 == 10 ? 1024 : 512;
    if (row->kind == ST_G_LDS) return half / 2 * 0.7;
    return half * 0.75 * (size_of(row->ta) == 1 ? 1.8 : 1);
}

/* Blocks that a multiprocessor holds: as ST_BLOCKS of generic.cuh, and as shared memory allows (each takes 1 KiB more than it asks for). */
static int blocks_of(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu)
{
    const int n = (g->window || g->c.k.count > 1) && row->blocks_sm > 1 ? row->blocks_sm - 1 : row->blocks_sm;
    const int fit = gpu->smem_sm / ((int)st_generic_smem(row, f) + 1024);
    return fit > 0 && fit < n ? fit : n;
}

/* Microseconds of one k step of one block when its multiprocessor is full, and of what a block does once. */
static double step_us(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu)
{
    const double clock = gpu->clock_mhz > 0 ? gpu->clock_mhz : 1500;
    double clocks = (double)row->bm * row->bn * row->bk / rate(row, gpu->cc) * blocks_of(row, g, f, gpu);
    /* single elements cost an instruction each, where wider copies do not count */
    const double copies[2] = {(double)row->bm * row->bk / f->vec[0], (double)row->bn * row->bk / f->vec[1]};
    clocks += (copies[0] + copies[1]) *
              (row->kind == ST_G_MMA && (f->vec[0] == 1 || f->vec[1] == 1) ? 0.12 : 0.02) *
              blocks_of(row, g, f, gpu);
    /* what a window's coordinates cost, measured */
    return clocks / clock * (g->window ? 1.5 : 1);
}

double st_generic_tile_us(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu)
{
    return step_us(row, g, f, gpu) * (double)st_ceil_div(g->K, row->bk) + 1;
}

static int64_t tiles(const st_grow *row, const st_gproblem *g)
{
    return st_ceil_div(g->M, row->bm) * st_ceil_div(g->N, row->bn) * g->G;
}

/* Tiles of which something is stored, and the part of k that they go through on average: halves of C, A and B leave out the rest. */
static int64_t worked(const st_grow *row, const st_gproblem *g, double *depth)
{
    const st_rule *c = &g->c.rule_c, b = st_rule_transposed(g->c.rule_b), *in[2] = {&g->c.rule_a, &b};
    const int64_t tm = st_ceil_div(g->M, row->bm), tn = st_ceil_div(g->N, row->bn);
    int64_t kept = tm * tn;
    *depth = 1;
    for (int s = 0; s < 2; s++)
        if (in[s]->half && !in[s]->mirror && g->K > 0) {
            const double step = (s ? row->bn : row->bm) + row->bk;
            *depth *= 0.5 * (1 + (step < (double)g->K ? step / (double)g->K : 1));
        }
    if (c->half && tm < 1 << 16) {
        kept = 0;
        for (int64_t i = 0; i < tm;
             i++) { /* columns of tiles that hold an element with row - column + offset >= 0, or <= 0 */
            const int64_t first = i * row->bm + c->offset, last = first + row->bm - 1;
            const int64_t n = c->half == ST_HALF_LOWER ? (last < 0 ? 0 : last / row->bn + 1)
                                                       : tn - st_max64(first, 0) / row->bn;
            kept += st_min64(st_max64(n, 0), tn);
        }
    }
    return kept * g->G;
}

static double total_us(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu,
                       int64_t splits)
{
    double depth;
    const int64_t slots = (int64_t)gpu->sms * blocks_of(row, g, f, gpu),
                  blocks = worked(row, g, &depth) * splits;
    const int64_t steps = st_ceil_div(st_ceil_div(g->K, row->bk), splits), waves = blocks / slots,
                  rest = blocks % slots;
    const double step = step_us(row, g, f, gpu) * depth,
                 copy = gpu->copy_bytes_per_us > 0 ? gpu->copy_bytes_per_us : 1e6;
    /* a last wave that leaves multiprocessors with fewer blocks than they hold runs faster, at least as long as one block alone */
    const double each = ceil((double)rest / gpu->sms) / blocks_of(row, g, f, gpu);
    double last = (each > 0 ? pow(each, 0.7) : 0) *
                  step; /* measured: half of its blocks run at 0.8 of a full one's rate */
    if (rest && last < 0.55)
        last = 0.55; /* a block that is alone waits for its barriers and copies: measured, of any tile */
    double us = ((double)waves * step + last) * (double)steps + (double)(waves + (rest != 0)) * 1.0 + 3.0;
    const double c = (double)g->M * (double)g->N * (double)g->G * (g->c.rule_c.half ? 0.5 : 1);
    /* the sum: one more launch, loads of 8 parts at a time, their traffic */
    if (splits > 1) us += 2.5 + (double)splits * 0.06 + c * (double)splits * size_of(row->tacc) * 2 / copy;
    const double least = ((double)g->M * (double)g->K + (double)g->N * (double)g->K) * (double)g->G *
                         size_of(row->ta) / copy * 1.3;
    return us > least + 3 ? us : least + 3;
}

/* ---- rules: bits as in generic.cuh --------------------------------------------------------------------------------------- */

enum { R_LOWER = 1, R_UPPER = 2, R_MIRROR = 4, R_HERMITIAN = 8, R_UNIT = 16 };

static int rule_bits(const st_rule *r, bool complex, bool output)
{
    if (!r->half) return 0;
    int bits = r->half == ST_HALF_LOWER ? R_LOWER : R_UPPER;
    if (r->mirror && !output) bits |= R_MIRROR;
    if (r->mirror == ST_MIRROR_HERMITIAN && complex) bits |= R_HERMITIAN;
    if (r->unit && !output) bits |= R_UNIT;
    return bits;
}

static bool rules(const st_grow *row, const st_gproblem *g, st_gconfig *f, char *why, size_t n)
{
    const st_contract *c = &g->c;
    const bool complex = st_type_is_complex(row->ta);
    const st_rule b = st_rule_transposed(c->rule_b); /* by row and k of the side */
    f->rule[0] = rule_bits(&c->rule_a, complex, false);
    f->rule[1] = rule_bits(&b, complex, false);
    f->rule[2] = rule_bits(&c->rule_c, complex, true);
    f->conj[0] = complex && c->rule_a.conj;
    f->conj[1] = complex && c->rule_b.conj;
    if (!(f->rule[0] | f->rule[1] | f->rule[2] | f->conj[0] | f->conj[1]) && !c->pointers) return true;
    if (row->kind >= ST_G_MMA && row->kind != ST_G_BATCH) return !st_contract_rules(c, why, n);
    if ((f->rule[0] | f->rule[1] | f->rule[2]) && (g->window || c->k.count > 1)) {
        snprintf(why, n, "takes halves of matrices with one axis of k and without bounds");
        return false;
    }
    for (int s = 0; s < 2; s++)
        if ((f->rule[s] & R_MIRROR) && (s ? c->n.count : c->m.count) > 1) {
            snprintf(why, n, "takes mirrored matrices with one axis each way");
            return false;
        }
    return true;
}

/* Copies as the rules and addresses need them. */
static void rule_copies(const st_grow *row, const st_gproblem *g, st_gconfig *f)
{
    for (int s = 0; s < 2; s++) {
        if ((g->c.pointers >> s & 1) && row->kind != ST_G_BATCH) f->vec[s] = 1;
    }
    if (g->c.pointers & 4) f->cv = 1;
    f->halves = row->kind == ST_G_ZMMA && (g->c.pointers & 3); /* what addresses there are is not known */
}

bool st_generic_configure(const st_grow *row, const st_gproblem *g, const st_gpu *gpu, bool epilogue,
                          bool split, st_gconfig *f, char *why, size_t n)
{
    memset(f, 0, sizeof *f);
    if (gpu->cc < row->cc) {
        snprintf(why, n, "needs compute capability %d.%d; %s has %d.%d", row->cc / 10, row->cc % 10,
                 gpu->device, gpu->cc / 10, gpu->cc % 10);
        return false;
    }
    if (!fits_int(g, why, n) || !rules(row, g, f, why, n)) return false;
    if (g->c.k.count > 3) {
        snprintf(why, n, "takes up to 3 axes of k, not %d", (int)g->c.k.count);
        return false;
    }
    for (int64_t d = 0; d < g->c.n.count && g->window == 1; d++)
        if (g->c.n.ax[d].a) {
            snprintf(why, n, "takes a windowed operand without axes of the other side");
            return false;
        }
    const int types[2] = {(int)g->c.ta, (int)g->c.tb};
    for (int s = 0; s < 2; s++) {
        const st_axes *other = s ? &g->c.m : &g->c.n; /* axes that this side must not have */
        for (int64_t d = 0; d < other->count; d++)
            if (st_axis_stride(&other->ax[d], s ? 'b' : 'a')) {
                snprintf(why, n,
                         "takes operands along m and k, and along n and k; %c has an axis of the other's",
                         "AB"[s]);
                return false;
            }
        f->vec[s] = 1;
        side(g, s, types[s], vectors(row, false), f);
        side(g, s, types[s], vectors(row, f->layout[s]), f);
    }
    if (row->kind == ST_G_MMA && !gathers(row) &&
        (f->vec[0] * size_of(row->ta) < 4 || f->vec[1] * size_of(row->tb) < 4)) {
        snprintf(why, n, "has no registers left to gather elements that are not aligned to 4 bytes");
        return false;
    }
    f->kax = g->c.k.count <= 1 ? 1 : 3;
    const int most = row->kind == ST_G_BATCH
                         ? (int)st_min64(row->bn / row->warps_n, 16 / size_of((int)g->c.tc))
                     : row->kind == ST_G_ZMMA ? 1
                     : row->kind == ST_G_SIMT ? (size_of(row->tacc) == 8 ? 2 : 4)
                                              : 2;
    f->cv = st_generic_together(&g->c.n, &g->c.m, &g->c.batch, 'c', most) ? most : 1;
    rule_copies(row, g, f);
    f->epilogue = epilogue;
    f->splits = 1;
    if (row->kind == ST_G_BATCH) return st_batch_configure(row, g, split, f, why, n);
    if (row->kind >= ST_G_SKINNY_K) return st_skinny_configure(row, g, gpu, split, f, why, n);
    f->k_split = st_ceil_div(st_max64(g->K, 1), row->bk) * row->bk;
    const int64_t steps = st_ceil_div(g->K, row->bk);
    const unsigned smem = st_generic_smem(row, f);
    if (smem > (unsigned)gpu->smem_block && gpu->smem_block) {
        snprintf(why, n, "needs %u bytes of shared memory; %s gives a block %d", smem, gpu->device,
                 gpu->smem_block);
        return false;
    }
    if (tiles(row, g) >= (int64_t)1 << 31) {
        snprintf(why, n, "has more than 2^31 tiles");
        return false;
    }
    if (row->parts) {
        const int64_t each = st_ceil_div(steps, row->parts);
        if (each < 1 || st_ceil_div(steps, each) != row->parts) {
            snprintf(why, n, "does not cut %lld steps of %d of k into %d even parts", (long long)steps,
                     row->bk, row->parts);
            return false;
        }
        f->splits = row->parts;
        f->k_split = each * row->bk;
        return true;
    }
    if (!split) return true;
    double depth;
    if (worked(row, g, &depth) * 2 > (int64_t)gpu->sms * row->blocks_sm * 3 || steps < 8) {
        snprintf(why, n, "the tiles fill the multiprocessors, or k is short: a split would not pay");
        return false;
    }
    double best = total_us(row, g, f, gpu, 1);
    const int64_t item = g->M * g->N * g->G * size_of(row->tacc);
    for (int64_t s = 2; s <= 256 && s * 4 <= steps && s * item <= (int64_t)256 << 20; s += s < 64 ? 1 : 16) {
        const int64_t each = st_ceil_div(steps, s), parts = st_ceil_div(steps, each);
        const double us = total_us(row, g, f, gpu, parts);
        if (us < best * 0.97) {
            best = us;
            f->splits = (int)parts;
            f->k_split = each * row->bk;
        }
    }
    if (f->splits > 1) return true;
    snprintf(why, n, "a split of k would not pay");
    return false;
}

double st_generic_us(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu)
{
    if (row->kind == ST_G_BATCH) return st_batch_us(row, g, f, gpu);
    return row->kind >= ST_G_SKINNY_K ? st_skinny_us(row, g, f, gpu) : total_us(row, g, f, gpu, f->splits);
}

size_t st_generic_workspace(const st_grow *row, const st_gproblem *g, const st_gconfig *f)
{
    return f->splits > 1 ? (size_t)(g->M * g->N * g->G) * (size_t)f->splits * (size_t)size_of(row->tacc) : 0;
}

const st_grow *st_generic_unaligned(const st_grow *row, st_gconfig *f)
{
    f->vec[0] = f->vec[1] = 1;
    f->halves = row->kind == ST_G_ZMMA;
    if (f->splits == 1) f->cv = 1;
    if (row->kind != ST_G_MMA || gathers(row)) return row;
    int count;
    const st_grow *rows = st_generic_rows(&count), *best = row;
    for (int i = 0; i < count; i++)
        if (rows[i].kind == row->kind && rows[i].ta == row->ta && rows[i].tb == row->tb &&
            row->bk % rows[i].bk == 0 && gathers(&rows[i]))
            best = &rows[i];
    return best;
}

bool st_generic_aligned(const st_gproblem *g, const st_gconfig *f, void *const data[])
{
    const int a = g->swapped, b = !g->swapped;
    uintptr_t need[3] = {(uintptr_t)(f->vec[0] * size_of((int)g->c.ta)),
                         (uintptr_t)(f->vec[1] * size_of((int)g->c.tb)),
                         (uintptr_t)(f->cv * size_of((int)g->c.tc))};
    for (int i = 0; i < 3; i++) {
        /* parts of complex numbers are copied, or stored, one by one */
        if (g->c.ta == STRATA_C64 && need[i] == 8) need[i] = 4;
        if (g->c.ta == STRATA_C128 && (i == 2 || f->halves)) need[i] = 8;
        if (g->c.pointers >> i & 1)
            need[i] = 1; /* an array of addresses, of elements that any address suits */
    }
    return (uintptr_t)data[a] % need[0] == 0 && (uintptr_t)data[b] % need[1] == 0 &&
           (uintptr_t)data[2] % need[2] == 0;
}

/* ---- parameters ------------------------------------------------------------------------------------------------------------- */

void st_generic_list(st_glist *to, const st_axes *l)
{
    memset(to, 0, sizeof *to);
    to->count = l->count;
    for (int d = 0; d < ST_AXES; d++) {
        st_gax *x = &to->ax[d];
        x->len = 1;
        if (d < l->count) *x = (st_gax){l->ax[d].len, l->ax[d].a, l->ax[d].b, l->ax[d].c, 0, 0};
        /* i / len = (mulhi(i, mul) + i) >> shift for i < 2^31 (Granlund and Montgomery, 1994) */
        const uint64_t len = x->len > 0 && x->len < (int64_t)1 << 31 ? (uint64_t)x->len : 1;
        while ((1ull << x->shift) < len) x->shift++;
        x->mul = (uint32_t)(((1ull << 32) * ((1ull << x->shift) - len)) / len + 1);
    }
}

void st_generic_params(const st_grow *row, const st_gproblem *g, const st_gconfig *f, st_gparams *p)
{
    memset(p, 0, sizeof *p);
    st_generic_list(&p->m, &g->c.m);
    st_generic_list(&p->n, &g->c.n);
    st_generic_list(&p->batch, &g->c.batch);
    st_axes k = g->c.k;
    int64_t first = 0; /* the kernel decodes three axes of k: the missing ones come first */
    if (f->kax == 3) {
        first = 3 - k.count;
        for (int64_t d = 2; d >= 0; d--) k.ax[d] = d >= first ? k.ax[d - first] : (st_axis){1, 0, 0, 0};
        k.count = 3;
    }
    st_generic_list(&p->k, &k);
    for (int b = 0; b < ST_BOUNDS; b++) {
        st_gwindow *w = &p->win[b];
        w->limit = INT32_MAX;
        if (b >= g->c.bounds) continue;
        const st_bound *x = &g->c.bound[b];
        w->limit = (int32_t)x->limit;
        w->offset = (int32_t)x->offset;
        if (x->m >= 0) w->row[x->m] = (int32_t)x->im;
        if (x->k >= 0) w->k[x->k + first] = (int32_t)x->ik;
    }
    p->M = (uint32_t)g->M;
    p->N = (uint32_t)g->N;
    p->K = (uint32_t)g->K;
    p->G = (uint32_t)g->G;
    if (row->kind == ST_G_BATCH) {
        p->tiles_m = p->tiles_n = 1;
    } else if (row->kind >= ST_G_SKINNY_K) { /* one tile of X, many of W */
        p->tiles_m = f->x_is_a ? 1 : (uint32_t)st_ceil_div(g->M, f->block);
        p->tiles_n = f->x_is_a ? (uint32_t)st_ceil_div(g->N, f->block) : 1;
    } else {
        p->tiles_m = (uint32_t)st_ceil_div(g->M, row->bm);
        p->tiles_n = (uint32_t)st_ceil_div(g->N, row->bn);
    }
    p->offset[0] = g->c.rule_a.offset;
    p->offset[1] = -g->c.rule_b.offset;
    p->offset[2] = g->c.rule_c.offset;
    p->splits = (uint32_t)f->splits;
    p->k_split = (uint32_t)f->k_split;
}

unsigned st_generic_smem(const st_grow *row, const st_gconfig *f)
{
    const int es = size_of(row->ta), q = 16 / es;
    int a, b;
    if (row->kind == ST_G_BATCH) {
        const int es_sum = size_of(row->tacc);
        return (unsigned)(row->lanes_m * row->bk * (row->bm + row->bn + 32 / es_sum) * es_sum);
    }
    if (row->kind >= ST_G_SKINNY_K) return 0;
    if (row->kind == ST_G_SIMT) {
        const int pad = row->ta == STRATA_C64 ? 4 : q; /* its parts lie apart */
        a = row->bk * (row->bm + (f->layout[0] && !(f->rule[0] & R_MIRROR) ? 0 : pad)) * es;
        b = row->bk * (row->bn + (f->layout[1] && !(f->rule[1] & R_MIRROR) ? 0 : pad)) * es;
    } else if (row->kind == ST_G_ZMMA) {
        a = (f->layout[0] ? row->bk * (row->bm + 2) : row->bm * (row->bk + 4)) * es;
        b = (f->layout[1] ? row->bk * (row->bn + 2) : row->bn * (row->bk + 4)) * es;
    } else if (row->kind == ST_G_LDS) {
        const int pad = es == 8 ? 4 : 8; /* of rows along m or n */
        a = (f->layout[0] ? row->bk * (row->bm + pad) : row->bm * (row->bk + 4)) * es;
        b = (f->layout[1] ? row->bk * (row->bn + pad) : row->bn * (row->bk + 4)) * es;
    } else {
        a = row->bm * row->bk * es;
        b = row->bn * row->bk * es;
    }
    return (unsigned)((a + b) * row->stages);
}

unsigned st_generic_blocks(const st_grow *row, const st_gparams *p)
{
    return row->kind == ST_G_BATCH ? (unsigned)st_ceil_div(p->G, row->lanes_m)
                                   : p->tiles_m * p->tiles_n * p->G;
}

unsigned st_generic_threads(const st_grow *row, const st_gconfig *f)
{
    if (row->kind == ST_G_BATCH) return (unsigned)(row->warps_m * row->warps_n * row->lanes_m);
    return 32u * (unsigned)(row->kind >= ST_G_SKINNY_K ? f->warps : row->warps_m * row->warps_n);
}
