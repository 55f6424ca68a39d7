/* SPDX-License-Identifier: Apache-2.0 */
/* program_geometry.c - which loops are a line's elements, how wide slots are, and which kernel goes over a program how. The order of a line's sums follows from the
 * program, the line's length and the device's generation: never from how many lines there are, where they lie or how many multiprocessors share them, so that a line
 * has the same bits in any company. The number of lines only chooses among kernels that add in the same order; an operand's alignment only says how a slot is read.
 *
 * A line stays on chip up to 256 threads with 128 bytes each (8192 f32, 16384 of 16 bits), and on Hopper up to a cluster of eight such blocks, or larger ones that share an SM's
 * shared memory with the lines that come next (pointwise_ring.cu). Longer ones are cut into parts. */
#include "pointwise/cuda/program_cuda.h"
#include <string.h>

enum {
    MAP_THREADS = 256,
    LONG_THREADS = 256,
    LANE_THREADS = 128,
    CLUSTER_THREADS = 256,
    CLUSTER_MAX = 8,
    PARTS_MAX = 1024,         /* of a line: 32 groups of 32 */
    RING_FROM = 8192,         /* lines above are worth a ring's shared memory */
    RING_WEIGHTS = 128 << 10, /* bytes that all lines share */
    RING_THREADS = 1024,
    RING_STAGES = 4
};

static void keep(st_pw_loop *to, int *n, const st_pw_loop *from)
{
    if (from->len != 1) to[(*n)++] = *from;
}

static void split_loops(st_pw_cuda *c)
{
    const st_pw_shape *s = c->s;
    const bool map = s->mode == ST_PW_MAP;
    for (int i = 0; i < s->nouter; i++) keep(map ? c->e : c->l, map ? &c->ne : &c->nl, &s->outer[i]);
    switch (s->mode) {
    case ST_PW_ROWS:
        keep(c->l, &c->nl, &s->row);
        if (!s->pack) keep(c->e, &c->ne, &s->col);
        for (int i = 0; i < s->npacked && s->pack; i++) keep(c->e, &c->ne, &s->packed[i]);
        break;
    case ST_PW_COLS:
        keep(c->l, &c->nl, &s->col);
        keep(c->e, &c->ne, &s->row);
        break;
    default: keep(c->e, &c->ne, &s->row); keep(c->e, &c->ne, &s->col);
    }
    c->n = c->lines = 1;
    for (int i = 0; i < c->ne; i++) c->n *= c->e[i].len;
    for (int i = 0; i < c->nl; i++) c->lines *= c->l[i].len;
}

/* bytes; of types of less than one, one */
static int size_of(const st_pw_cuda *c, int v)
{
    return (int)(strata_type_bits((strata_type)c->s->type[v]) + 7) / 8;
}

static bool along(const st_pw_cuda *c, int dim)
{
    for (int d = 0; d < c->ne; d++)
        if (c->e[d].dim == dim) return true;
    return false;
}

static void classify(st_pw_cuda *c)
{
    const st_pw_shape *s = c->s;
    bool element[ST_EXPR_VARS] = {false};
    for (int v = 0; v < s->nvars; v++) {
        const int o = s->operand[v];
        if (o < 0) {
            element[v] = along(c, s->position[v]);
            continue;
        }
        for (int d = 0; d < c->ne; d++) element[v] |= c->e[d].step[v] != 0;
        if (s->hi[o] <= s->lo[o]) element[v] = true; /* has no number to read once a line */
        c->by_value[v] =
            s->hi[o] - s->lo[o] == size_of(c, v) && !s->var[v].output && !st_type_is_sub_byte(s->type[v]);
    }
    memcpy(c->element, element, sizeof element);
    st_expr_cuda_analyse(s->x, element, along(c, s->rank - 2), along(c, s->rank - 1), &c->p);
    for (int v = 0; v < s->nvars; v++) {
        if (!s->var[v].output) continue;
        c->stores |= element[v];
        c->line_stores |= !element[v];
    }
    c->total_bytes = 16 * (c->p.widest ? c->p.widest : 1);
}

/* the widest slot of at most 16 bytes of the smallest type, no more than eight elements, that divides the innermost loop; 1 where nobody would read it at once */
static int slot_width(const st_pw_cuda *c)
{
    const st_pw_shape *s = c->s;
    int size = 8;
    bool unit = false;
    if (c->ne == 0) return 1;
    for (int v = 0; v < s->nvars; v++) {
        if (s->operand[v] < 0 || !c->element[v] || c->e[c->ne - 1].step[v] != 1) continue;
        unit = true;
        if (size_of(c, v) < size) size = size_of(c, v);
    }
    if (!unit) return 1;
    int w = s->f64 ? 2 : 16 / size > 8 ? 8 : 16 / size;
    while (w > 1 && c->e[c->ne - 1].len % w) w /= 2;
    return w;
}

static void find_wide(st_pw_cuda *c, int alignment)
{
    const st_pw_shape *s = c->s;
    for (int v = 0; v < s->nvars; v++) {
        if (s->operand[v] < 0 || !c->element[v] || c->ne == 0 || st_type_is_sub_byte(s->type[v])) continue;
        const int64_t bytes = (int64_t)c->width * size_of(c, v), unit = bytes < 16 ? bytes : 16;
        bool wide = c->e[c->ne - 1].step[v] == 1;
        if (c->width > 1) {
            wide &= alignment % unit == 0;
            for (int d = 0; d < c->ne - 1; d++) wide &= c->e[d].step[v] * size_of(c, v) % unit == 0;
            for (int d = 0; d < c->nl; d++) wide &= c->l[d].step[v] * size_of(c, v) % unit == 0;
        }
        c->wide[v] = wide;
    }
}

/* A weight of every line. No output is the same view, since outputs differ from line to line. */
static void find_constant(st_pw_cuda *c)
{
    for (int v = 0; v < c->s->nvars; v++) {
        bool same =
            c->s->operand[v] >= 0 && c->element[v] && !c->s->var[v].output && c->s->reduces && c->lines > 1;
        for (int d = 0; d < c->nl; d++) same &= c->l[d].step[v] == 0;
        c->constant[v] = same;
    }
}

static int power_above(int64_t n, int most)
{
    int p = 1;
    while (p < n && p < most) p *= 2;
    return p;
}

/* by a pass (or a map): before the stores. Whether an operand is the same for every line cannot be seen where there is one line, so the order of sums asks this. */
static bool read_early(const st_pw_cuda *c, int v)
{
    bool read = c->p.passes == 0 && st_expr_cuda_reads(&c->p, 0, v);
    for (int q = 0; q < c->p.passes; q++) read |= st_expr_cuda_reads(&c->p, q, v);
    return read;
}

/* operands that passes (or a map) read */
static int operands_read(const st_pw_cuda *c)
{
    int n = 0;
    for (int v = 0; v < c->s->nvars; v++) n += c->s->operand[v] >= 0 && c->element[v] && read_early(c, v);
    return n;
}

static void go_map(st_pw_cuda *c, const st_pw_device *d)
{
    const int n = operands_read(c);
    c->way = ST_PW_WAY_MAP;
    c->threads = MAP_THREADS;
    c->slots = n <= 2 ? 4 : n <= 4 ? 2 : 1;
    if (c->width == 1 && n <= 2) c->slots = 8;
    while (c->slots > 1 && st_ceil_div(c->n, (int64_t)c->threads * c->slots * c->width) < 2 * d->sms)
        c->slots /= 2;
}

/* Elements of a line that a thread holds: 128 bytes of all operands together, in registers. What is done once a thread (its share of a total, the line's numbers) costs as much as
 * some hundred instructions, so many elements a thread are what makes reductions fast, more than many threads. */
static int elements_held(const st_pw_cuda *c)
{
    int size = 2, read = operands_read(c);
    for (int v = 0; v < c->s->nvars; v++)
        if (c->s->operand[v] >= 0 && c->element[v] && read_early(c, v) && size_of(c, v) > size)
            size = size_of(c, v);
    const int e = 128 / (c->s->f64 ? 8 : size) / power_above(read, 8);
    return e < c->width ? c->width : e;
}

/* Bytes that an element of a line takes of shared memory: in every place of a ring, and once for what all lines share. */
static void ring_bytes(const st_pw_cuda *c, int *line, int *shared)
{
    *line = *shared = 0;
    for (int v = 0; v < c->s->nvars; v++) {
        bool read = false;
        if (c->s->operand[v] < 0 || !c->element[v]) continue;
        for (int q = 0; q <= c->p.passes; q++) read |= st_expr_cuda_reads(&c->p, q, v);
        if (read) *(c->constant[v] ? shared : line) += size_of(c, v);
    }
}

/* Lines of more than RING_FROM elements on Hopper. Measured on an H200: 256 threads a block with 128 bytes each; of 16-bit elements and weights, which a block with a ring keeps in shared
 * memory, 128; a kept value of 16-bit elements: 512 with a ring. */
static void go_long_rows(st_pw_cuda *c, int64_t slots, int most, bool kept)
{
    bool late = false;
    for (int v = 0; v < c->s->nvars; v++)
        late |= c->s->operand[v] >= 0 && c->element[v] && !read_early(c, v) &&
                st_expr_cuda_reads(&c->p, c->p.passes, v);
    const int threads = most <= 32 || c->n <= 16384 ? 256 : late ? 128 : kept ? 512 : 256;
    while (c->cluster < CLUSTER_MAX && st_ceil_div(slots, (int64_t)threads * c->cluster) * c->width > most)
        c->cluster *= 2;
    c->threads = c->group = threads;
    c->slots = (int)st_min64(st_ceil_div(slots, (int64_t)threads * c->cluster), 1 << 20);
}

/* Whether lines come through shared memory, and how many groups of threads and places a group there are. Nothing here changes a bit of a result. */
static void find_ring(st_pw_cuda *c, const st_pw_device *d, int alignment, bool kept)
{
    int line, shared;
    c->groups = c->stages = 0;
    if (d->cc < 90 || c->way != ST_PW_WAY_ROWS || c->stream || c->n <= RING_FROM || c->ne != 1 ||
        alignment < 16 || c->lines < d->sms)
        return;
    ring_bytes(c, &line, &shared);
    /* where it was faster on an H200: weights that the first-level cache does not hold, or 16-bit elements with a kept value */
    const bool weights = shared * c->n >= RING_WEIGHTS && c->cluster > 1, dear = kept && line <= 2;
    if (line == 0 || !(weights || dear)) return;
    for (int v = 0; v < c->s->nvars; v++) {
        bool read = false;
        if (c->s->operand[v] < 0 || !c->element[v]) continue;
        for (int q = 0; q <= c->p.passes; q++) read |= st_expr_cuda_reads(&c->p, q, v);
        if (!read) continue;
        bool whole = c->wide[v] && c->n * size_of(c, v) % 16 == 0 && c->width * size_of(c, v) % 4 == 0;
        for (int k = 0; k < c->nl; k++) whole &= c->l[k].step[v] * size_of(c, v) % 16 == 0;
        if (!whole) return;
    }
    /* beside the ring: totals of warps and blocks, mbarriers; a warp's for 32 warps, that is enough */
    const int64_t beside = (int64_t)c->p.passes * c->total_bytes * (64 + 16 * c->cluster) + 1024;
    const int64_t part = (int64_t)c->group * c->slots * c->width, room = d->smem - beside - part * shared,
                  places = room / (part * line);
    /* registers: a line's words, what is kept, and what every thread needs */
    const int64_t held = (int64_t)c->slots * c->width * (line + (kept ? (c->s->f64 ? 8 : 4) : 0)) / 4 + 40,
                  most = st_max64(1, st_min64(RING_THREADS, 65536 / held) / c->group);
    if (room <= 0 || places < 2) return;
    c->groups = (int)st_min64(most, places / 2);
    c->stages = (int)st_min64(RING_STAGES, places / c->groups);
    c->slot_bytes = part * line, c->shared_bytes = part * shared;
}

/* a line in rows on chip, false where it is too long */
static bool go_rows(st_pw_cuda *c, const st_pw_device *d)
{
    const int64_t slots = st_ceil_div(c->n, c->width);
    const int most = elements_held(c);
    st_cuda_program trial = c->p;
    const bool kept = !c->s->f64 && st_expr_cuda_keep(&trial) > 0;
    /* 1024 threads leave 64 registers each, of which ptxas spills some but on 8.0: longer lines are streamed there */
    const int largest = d->cc >= 90 ? CLUSTER_THREADS : d->cc == 80 ? 1024 : 512;
    c->way = ST_PW_WAY_ROWS;
    if (d->cc >= 90 && c->n > RING_FROM) {
        go_long_rows(c, slots, kept && most > 32 && c->n <= 16384 ? 32 : most, kept);
        return (int64_t)c->slots * c->width <= most;
    }
    c->group = slots <= 2 ? 2 : slots <= 8 ? 8 : 32;
    while (c->group < largest && st_ceil_div(slots, c->group) * c->width > most) c->group *= 2;
    c->threads = c->group <= 32 ? LANE_THREADS : c->group;
    c->slots = (int)st_min64(st_max64(1, st_ceil_div(slots, c->group)), 1 << 20);
    /* kernels for any number of slots are worth their compilation where there is much to do; the slots added are empty */
    if ((double)c->n * (double)c->lines < 1 << 20) c->slots = power_above(c->slots, 1 << 20);
    return (int64_t)c->slots * c->width <= most;
}

/* Maps of few elements are all alike, so that a new shape seldom needs a new kernel: single elements, one thread each. */
static bool is_small_map(const st_pw_cuda *c) { return !c->s->reduces && c->n <= 16384; }

/* Parts of a line, by its length alone. `span`: elements that a block takes at a time. */
static void cut(st_pw_cuda *c, int64_t span, int64_t least)
{
    c->chunk = st_round_up(st_max64(least, st_ceil_div(c->n, PARTS_MAX)), span);
    c->parts = st_max64(1, st_ceil_div(c->n, c->chunk));
}

/* A line too long to be kept: parts after each other by one block, or by a block each where lines are few. */
static void go_long(st_pw_cuda *c)
{
    c->way = ST_PW_WAY_ROWS;
    c->stream = c->precise = true;
    c->cluster = 1;
    c->groups = c->stages = 0;
    c->threads = c->group = LONG_THREADS;
    c->slots = operands_read(c) <= 2 ? 4 : 2;
    const int64_t span = (int64_t)c->threads * c->slots * c->width;
    cut(c, span, span < 8192 ? 8192 : span);
}

bool st_pw_cuda_relax(st_pw_cuda *c)
{
    if (c->groups) {
        c->groups--;
        return true;
    }
    if (c->way != ST_PW_WAY_ROWS || c->stream || c->threads < 128) return false;
    go_long(c);
    c->hint = false;
    memset(c->p.keep, 0, sizeof c->p.keep);
    return true;
}

static void go_cols(st_pw_cuda *c)
{
    c->way = ST_PW_WAY_COLS;
    c->precise = true;
    c->tall = power_above(c->n, 8);
    c->threads = 32 * c->tall;
    c->slots = power_above(st_ceil_div(c->n, c->tall), operands_read(c) > 2 ? 4 : 8);
    cut(c, (int64_t)c->tall * c->slots, 4 * (int64_t)c->tall * c->slots);
}

/* The same sums with a block a part. */
static void go_split(st_pw_cuda *c)
{
    c->way = ST_PW_WAY_SPLIT;
    c->stream = false;
    c->cluster = c->group = 1;
}

void st_pw_cuda_make(st_pw_cuda *c, const st_pw_shape *s, const st_pw_device *d, int alignment, bool split)
{
    memset(c, 0, sizeof *c);
    c->s = s;
    c->parts = c->chunk = c->group = c->cluster = 1;
    split_loops(c);
    classify(c);
    const int64_t edge = INT32_MAX - (1 << 24);
    c->big = c->n > edge || c->lines > edge;
    c->width = s->mode == ST_PW_COLS || is_small_map(c) ? 1 : slot_width(c);
    find_constant(c);
    if (!s->reduces) {
        go_map(c, d);
    } else if (s->mode == ST_PW_COLS) {
        go_cols(c);
        if (split && c->parts > 1 && st_ceil_div(c->lines, 32) < 2 * d->sms) go_split(c);
    } else if (!go_rows(c, d)) {
        go_long(c);
        if (split && c->parts > 1 && c->lines < 2 * d->sms) go_split(c);
    }
    bool kept = false;
    if (c->way == ST_PW_WAY_ROWS && !c->stream) kept = st_expr_cuda_keep(&c->p) > 0;
    double bytes = 0;
    for (int o = 0; o < s->noperands; o++) bytes += (double)(s->hi[o] - s->lo[o]);
    c->hint =
        bytes > (double)d->l2 / 2 && (c->way == ST_PW_WAY_MAP || (c->way == ST_PW_WAY_ROWS && !c->stream));
    find_wide(c, alignment);
    find_ring(c, d, alignment, kept);
}

int64_t st_pw_cuda_blocks(const st_pw_cuda *c, bool whole)
{
    switch (c->way) {
    case ST_PW_WAY_MAP: return st_ceil_div(c->n, (int64_t)c->threads * c->slots * c->width);
    case ST_PW_WAY_ROWS:
        return c->group < c->threads ? st_ceil_div(c->lines, c->threads / c->group) : c->lines * c->cluster;
    case ST_PW_WAY_COLS: return st_ceil_div(c->lines, 32);
    default: return (c->tall ? st_ceil_div(c->lines, 32) : c->lines) * (whole ? c->parts : 1);
    }
}
