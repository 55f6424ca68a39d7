/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_cuda.c - level 2 on CUDA devices: what a matrix looks like along its lines, the parts of its sums, launches.
 *
 * Lines run where neighbours in memory are: columns of a matrix by columns. A product then adds lines (parts: chunks of lines), sums them (parts: chunks of a line), or, where a
 * stored half stands for both, does both and reads it once. Bounds of parts, and so the order of a sum, follow from shape, strides and type alone. */
#include "pointwise/matvec.h"
#include "pointwise/engine.h"
#include "pointwise/cuda/matvec_cuda.h"
#include "runtime/gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum matvec_way { ADD, DOT, BOTH, HALF, PLAIN, UPDATE, SOLVE, SERIAL } matvec_way;
typedef struct matvec_row {
    const char *id, *types;
    int type;
    matvec_way way;
} matvec_row;
#define ROWS_OF(t, T)                                                                         \
    {"matvec_" t "_add_sm80", t, T, ADD}, {"matvec_" t "_dot_sm80", t, T, DOT},               \
        {"matvec_" t "_both_sm80", t, T, BOTH}, {"matvec_" t "_half_sm80", t, T, HALF},       \
        {"matvec_" t "_plain_sm80", t, T, PLAIN}, {"matvec_" t "_update_sm80", t, T, UPDATE}, \
        {"matvec_" t "_solve_sm80", t, T, SOLVE},                                             \
    {                                                                                         \
        "matvec_" t "_serial_sm80", t, T, SERIAL                                              \
    }
static const matvec_row rows[] = {ROWS_OF("f32", STRATA_F32), ROWS_OF("f64", STRATA_F64),
                                  ROWS_OF("c64", STRATA_C64), ROWS_OF("c128", STRATA_C128)};
static const char *const order_tiles =
                             "lines or pieces of lines inside parts bounded by shape, strides and type, "
                             "then parts ascending in eight shares",
                         *const order_plain = "32 lanes, then a tree", *const order_none = "no sums",
                         *const order_solve =
                             "blocks of 64 (c128: 32) rows ascending, inside them by shares of columns",
                         *const order_serial = "1024 threads, then lanes and warps by trees";

enum { TILE = 128, LINE_WARPS = 8, UPDATE_LINES = 32, SMALL = 1 << 16 };
/* Blocks of matvec_add and matvec_dot: three and eight times the multiprocessors of a large device, whatever this one has, since orders follow from shapes alone. */
enum {
    ADD_BLOCKS = 396,
    DOT_BLOCKS = 1024,
    SOLO_BYTES = 8 << 20,
    SOLO_LINES = 4096,
    HALF_TILES = 8,
    HALF_MOST = 16384
};

/* As matvec.cuh has it. */
typedef struct words {
    void *a, *x, *y, *work;
    int64_t n_d, n_l, sd, sl, below, above, packed;
    int64_t sx, sy;
    int64_t unit, herm, mirror, conj_add, conj_dot, conj_x, conj_y;
    int64_t lines_chunk, d_chunk, parts, relative;
    int64_t rows_are_lines, side, phase, across;
    double alpha[2], beta[2];
} words;

typedef struct matvec_plan {
    strata_plan base;
    st_matvec v;
    matvec_way way;
    words w;
    int64_t blocks, ends; /* of the first launch and of the one that joins parts; 0: none */
    const st_gpu_kernel *kernel, *end, *empty; /* empty: y := beta y */
} matvec_plan;

static int size_of(const st_matvec *v) { return (int)strata_type_bits((strata_type)v->type) / 8; }
static bool writes_matrix(const st_matvec *v)
{
    return v->op == ST_MATVEC_UPDATE || v->op == ST_MATVEC_UPDATE2;
}
static int64_t magnitude(int64_t s) { return s < 0 ? -s : s; }

static void look_along_lines(const st_matvec *v, words *w)
{
    const bool r = v->store == ST_STORE_PACKED ? v->row == 0 : magnitude(v->row) > magnitude(v->col);
    const bool herm = v->mirror == 2;
    memset(w, 0, sizeof *w);
    w->rows_are_lines = r;
    w->n_d = r ? v->n : v->m, w->n_l = r ? v->m : v->n;
    w->sd = r ? v->col : v->row, w->sl = r ? v->row : v->col;
    w->below = st_min64(r ? v->ku : v->kl, w->n_d), w->above = st_min64(r ? v->kl : v->ku, w->n_l);
    if (v->store == ST_STORE_PACKED) w->packed = (v->half == 2) != r ? 1 : 2, w->sd = 1, w->sl = 0;
    w->sx = v->x, w->sy = v->y;
    w->unit = v->unit, w->herm = herm, w->mirror = v->mirror != 0;
    w->conj_add = v->conj != (herm && r), w->conj_dot = v->conj != (herm && !r);
    if (v->op == ST_MATVEC_SOLVE || v->op == ST_MATVEC_MULTIPLY) w->conj_add = w->conj_dot = v->conj;
    w->conj_x = v->conj_x, w->conj_y = v->conj_y;
    w->side = v->half == 2;
    if (v->op == ST_MATVEC_MULTIPLY) w->sy = v->x;
}

/* Bytes of workspace; sets parts, phase and launches. */
static size_t plan_sums(const st_matvec *v, matvec_way way, words *w, int64_t *blocks, int64_t *ends)
{
    const int64_t tiles = st_ceil_div(w->n_d, TILE), outputs = way == DOT ? w->n_l : w->n_d;
    w->phase = way == ADD ? 0 : way == DOT ? 1 : 2;
    w->relative = 0;
    const int64_t size = size_of(v), bytes = w->n_d * w->n_l * size / (v->half ? 2 : 1);
    /* so few bytes that one launch is worth more than many blocks; not in place, where others still read what is written */
    const bool solo =
        bytes <= SOLO_BYTES && st_max64(w->n_d, w->n_l) <= SOLO_LINES && v->op == ST_MATVEC_PRODUCT;
    if (way == ADD) {
        const int64_t own = 16 / size;
        w->across = 64;
        while (w->across > 4 &&
               (solo ? st_ceil_div(w->n_d, w->across * own) < 128 : w->across / 2 * own >= w->n_d))
            w->across /= 2;
        const int64_t across = st_ceil_div(w->n_d, w->across * own),
                      want = st_max64(
                          1, st_min64(ADD_BLOCKS * (v->half ? 2 : 1) / across, st_ceil_div(w->n_l, 64)));
        w->lines_chunk = solo ? w->n_l : st_ceil_div(w->n_l, want);
        w->parts = st_ceil_div(w->n_l, w->lines_chunk);
        w->relative = w->parts == 1 && v->op == ST_MATVEC_PRODUCT;
        *blocks = across * w->parts;
        *ends = w->relative ? 0 : st_ceil_div(w->n_d, 32);
        return w->relative ? 0 : (size_t)(w->parts * w->n_d * size);
    }
    if (way == DOT) {
        const int64_t own = size == 16 ? 2 : 4;
        w->across = solo ? LINE_WARPS : 1;
        const int64_t groups = st_ceil_div(w->n_l, own * (solo ? 1 : LINE_WARPS)),
                      want = st_max64(
                          1, st_min64(st_ceil_div(DOT_BLOCKS, groups), st_ceil_div(w->n_d, 4 * TILE)));
        w->d_chunk = solo ? w->n_d : st_round_up(st_ceil_div(w->n_d, want), TILE);
        w->parts = st_ceil_div(w->n_d, w->d_chunk);
        *blocks = groups * w->parts;
        if (solo) {
            *ends = 0;
            return 0;
        }
    } else if (way == HALF) {
        const int64_t strips = st_ceil_div(w->n_l, size == 16 ? 32 : 64),
                      few = st_max64(1, st_min64(HALF_TILES, tiles * strips / 2 / ADD_BLOCKS)),
                      chunks = st_ceil_div(w->n_d, few * TILE);
        w->d_chunk = few * TILE;
        w->phase = 4;
        w->parts = strips + chunks;
        *blocks = strips * chunks;
    } else {
        const int64_t reach = st_max64(w->below, w->above),
                      far = st_min64(tiles - 1, (reach + TILE - 1) / TILE);
        w->lines_chunk = TILE;
        w->relative = 2 * (far + 1) <= tiles;
        w->parts = w->relative ? 2 * (far + 1) : tiles + 1;
        *blocks = tiles * (far + 1);
    }
    *ends = st_ceil_div(outputs, 32);
    return (size_t)(w->parts * outputs * size_of(v));
}

/* as in matvec_solve.cu */
static int64_t solve_rows(const st_matvec *v) { return size_of(v) == 16 ? 32 : 64; }
static size_t solve_bytes(const st_matvec *v) { return (size_t)(16 + v->n * size_of(v)); }
static unsigned solve_smem(const st_matvec *v)
{
    return (unsigned)(2 * solve_rows(v) * (solve_rows(v) + 1) * size_of(v));
}

static matvec_way best_way(const st_matvec *v, const words *w)
{
    switch (v->op) {
    case ST_MATVEC_SOLVE: return SOLVE;
    case ST_MATVEC_UPDATE:
    case ST_MATVEC_UPDATE2: return UPDATE;
    case ST_MATVEC_PRODUCT:
        if (v->m * v->n <= SMALL) return PLAIN;
        break;
    default: break;
    }
    if (w->mirror) return st_max64(w->below, w->above) >= v->n - 1 && v->n <= HALF_MOST ? HALF : BOTH;
    return w->rows_are_lines ? DOT : ADD;
}
/* what does without workspace, or the best way where it needs none */
static matvec_way modest_way(const st_matvec *v, matvec_way best)
{
    if (best == UPDATE || best == PLAIN) return best;
    return v->op == ST_MATVEC_PRODUCT ? PLAIN : SERIAL;
}

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    const st_matvec *v = pr->data;
    int n = 0;
    if (v->family != ST_PW_MATVEC) return 0;
    words w;
    look_along_lines(v, &w);
    const matvec_way best = best_way(v, &w), modest = modest_way(v, best);
    const double bytes =
        (double)v->m * (double)v->n * size_of(v) / (v->half ? 2 : 1) * (writes_matrix(v) ? 2 : 1);
    for (int i = 0; i < ST_COUNT(rows) && n < max; i++) {
        const matvec_row *row = &rows[i];
        if (row->type != v->type) continue;
        st_candidate *c = &out[n++];
        int64_t blocks, ends;
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", row->id);
        c->row = row;
        c->us = -1;
        c->order = row->way == PLAIN    ? order_plain
                   : row->way == UPDATE ? order_none
                   : row->way == SOLVE  ? order_solve
                   : row->way == SERIAL ? order_serial
                                        : order_tiles;
        if (row->way != best && row->way != modest) {
            snprintf(c->why, sizeof c->why,
                     "the operation, or where the matrix's neighbours lie, asks for another way");
            continue;
        }
        c->us = 5 + bytes / h->gpu->copy_bytes_per_us * (row->way == best ? 1 : row->way == PLAIN ? 8 : 100);
        if (row->way == ADD || row->way == DOT || row->way == BOTH || row->way == HALF)
            c->workspace = plan_sums(v, row->way, &w, &blocks, &ends);
        if (row->way == SOLVE) c->workspace = solve_bytes(v);
    }
    return n;
}

/* ---- plans ---- */
static strata_status get_kernel(strata_handle *h, const matvec_plan *pl, const char *entry,
                                const st_gpu_kernel **k)
{
    const st_matvec *v = &pl->v;
    const words *w = &pl->w;
    const int size = size_of(v);
    static const char *const sources[] = {
        [ADD] = "matvec_sum.cu",     [DOT] = "matvec_sum.cu",     [BOTH] = "matvec_sum.cu",
        [HALF] = "matvec_sum.cu",    [PLAIN] = "matvec_sum.cu",   [UPDATE] = "matvec_update.cu",
        [SOLVE] = "matvec_solve.cu", [SERIAL] = "matvec_solve.cu"};
    const bool wide = w->packed == 0 && w->sd == 1 && w->sl * size % 16 == 0;
    const bool tiles = pl->way != SOLVE && pl->way != SERIAL && pl->way != PLAIN;
    const st_gpu_spec spec = {.id = pl->base.chosen.kernel[0] ? pl->base.chosen.kernel : "matvec",
                              .source = sources[pl->way],
                              .entry = entry,
                              .option = {"-fmad=false",
                                         st_type_part((int)v->type) == STRATA_F32 ? "-DT=f32" : "-DT=f64",
                                         st_type_is_complex((int)v->type) ? "-DCOMPLEX=1" : "-DCOMPLEX=0",
                                         tiles && wide && v->alignment >= 16 ? "-DVEC=1" : "-DVEC=0",
                                         tiles && !wide && w->sd == 1 ? "-DAPART=1" : "-DAPART=0",
                                         v->op == ST_MATVEC_UPDATE2 ? "-DTWO=1" : NULL}};
    return st_gpu_kernel_get(h, &spec, k);
}

static strata_status get_kernels(strata_handle *h, matvec_plan *pl)
{
    static const char *const entries[] = {
        [ADD] = "matvec_add",     [DOT] = "matvec_dot",      [BOTH] = "matvec_tiles",
        [HALF] = "matvec_half",   [PLAIN] = "matvec_plain",  [UPDATE] = "matvec_update",
        [SOLVE] = "matvec_solve", [SERIAL] = "matvec_serial"};
    strata_status s = get_kernel(h, pl, entries[pl->way], &pl->kernel);
    if (!s && pl->ends) s = get_kernel(h, pl, "matvec_end", &pl->end);
    if (!s && pl->v.op == ST_MATVEC_PRODUCT) s = get_kernel(h, pl, "matvec_end", &pl->empty);
    return s;
}

/* bytes that a vector touches */
static st_extent vector_extent(int64_t n, int64_t step, int size, bool read, bool written)
{
    const int64_t last = (n - 1) * step;
    return (st_extent){.lo = st_min64(0, last) * size,
                       .hi = (st_max64(0, last) + 1) * size,
                       .read = read,
                       .written = written};
}
static st_extent matrix_extent(const st_matvec *v, const words *w)
{
    const bool out = writes_matrix(v);
    st_extent e = {.read = true, .written = out};
    if (w->packed) {
        e.hi = v->n * (v->n + 1) / 2;
    } else {
        /* corners of what is there: offsets are linear */
        const int64_t d1 = w->n_d - 1, l1 = w->n_l - 1;
        bool first = true;
        const int64_t at[][2] = {{0, 0},
                                 {st_min64(w->below, d1), 0},
                                 {0, st_min64(w->above, l1)},
                                 {d1, st_max64(0, d1 - w->below)},
                                 {st_max64(0, l1 - w->above), l1},
                                 {st_min64(d1, l1 + w->below), l1},
                                 {d1, st_min64(l1, d1 + w->above)}};
        for (int i = 0; i < ST_COUNT(at); i++) {
            const int64_t under = at[i][0] - at[i][1];
            if (at[i][0] > d1 || at[i][1] > l1 || under > w->below || -under > w->above) continue;
            const int64_t o = at[i][0] * w->sd + at[i][1] * w->sl;
            e.lo = first ? o : st_min64(e.lo, o), e.hi = first ? o + 1 : st_max64(e.hi, o + 1);
            first = false;
        }
    }
    e.lo *= size_of(v), e.hi *= size_of(v);
    return e;
}

static bool may_miss(const strata_plan *base, const strata_run *r, int operand)
{
    const matvec_plan *pl = (const matvec_plan *)base;
    double re = 1, im = 0;
    st_err e = {0};
    if (operand == 2) return pl->v.op == ST_MATVEC_MULTIPLY || pl->v.op == ST_MATVEC_SOLVE;
    if (pl->v.op != ST_MATVEC_PRODUCT || !r || !r->alpha) return false;
    return st_scalar_value(&e, "", "alpha", *r->alpha, &re, &im) && re == 0 && im == 0;
}

static strata_status run(strata_handle *h, const strata_plan *base, void *const data[], const strata_run *r);

static void describe(matvec_plan *pl)
{
    static const char *const ops[] = {"product", "triangular product", "triangular solve", "rank-1 update",
                                      "rank-2 update"};
    const st_matvec *v = &pl->v;
    snprintf(pl->base.title, sizeof pl->base.title, "matvec %s %s %lldx%lld%s%s", ops[v->op],
             strata_type_name((strata_type)v->type), (long long)v->m, (long long)v->n,
             v->store == ST_STORE_PACKED ? ", packed"
             : v->half                   ? ", a triangle"
                                         : "",
             v->mirror == 1   ? ", symmetric"
             : v->mirror == 2 ? ", hermitian"
                              : "");
    const double there = (double)v->m * (double)v->n / (v->half ? 2 : 1);
    pl->base.flops = there * (v->mirror || v->op == ST_MATVEC_UPDATE2 ? 4 : 2) *
                     (st_type_is_complex((int)v->type) ? 4 : 1);
    pl->base.bytes = there * size_of(v) * (writes_matrix(v) ? 2 : 1);
}

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *c, strata_plan **plan)
{
    matvec_plan *pl = st_plan_new(sizeof *pl);
    if (!pl) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    const st_matvec *v = &pl->v;
    words *w = &pl->w;
    memcpy(&pl->v, pr->data, sizeof pl->v);
    pl->way = ((const matvec_row *)c->row)->way;
    look_along_lines(v, w);
    switch (pl->way) {
    case PLAIN: pl->blocks = st_ceil_div(v->m, 8); break;
    case UPDATE:
        pl->blocks = st_ceil_div(w->n_d, TILE) * st_ceil_div(w->n_l, UPDATE_LINES);
        w->phase = w->rows_are_lines;
        break;
    case SOLVE:
        pl->blocks = st_ceil_div(v->n, solve_rows(v));
        pl->base.workspace = solve_bytes(v);
        break;
    case SERIAL:
        pl->blocks = 1;
        w->phase = v->op == ST_MATVEC_MULTIPLY;
        break;
    default: pl->base.workspace = plan_sums(v, pl->way, w, &pl->blocks, &pl->ends);
    }
    pl->base.run = run;
    pl->base.may_miss = may_miss;
    pl->base.operands = 3;
    pl->base.chosen = *c;
    describe(pl);
    strata_status s = STRATA_OK;
    pl->base.extent = calloc(3, sizeof *pl->base.extent);
    if (!pl->base.extent) {
        s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    } else {
        const bool in_place = v->op == ST_MATVEC_MULTIPLY || v->op == ST_MATVEC_SOLVE, out = writes_matrix(v);
        pl->base.extent[0] = matrix_extent(v, w);
        pl->base.extent[1] = vector_extent(out ? v->m : v->n, v->x, size_of(v), true, in_place);
        if (!in_place) pl->base.extent[2] = vector_extent(out ? v->n : v->m, v->y, size_of(v), true, !out);
    }
    if (!s && (pl->blocks > INT32_MAX || pl->ends > INT32_MAX))
        s = st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                    "%s: %lld x %lld asks for more than 2^31 blocks of threads", pr->who, (long long)v->m,
                    (long long)v->n);
    if (!s) s = get_kernels(h, pl);
    if (s) {
        strata_plan_destroy(&pl->base);
        return s;
    }
    *plan = &pl->base;
    return STRATA_OK;
}

static strata_status launch(strata_handle *h, const st_gpu_kernel *k, words *w, int64_t blocks,
                            unsigned threads, unsigned smem)
{
    void *args[] = {w};
    const st_gpu_launch l = {.kernel = k,
                             .grid = {(unsigned)blocks, 1, 1},
                             .block = {threads, 1, 1},
                             .smem = smem,
                             .overlap = true,
                             .args = args};
    return st_gpu_run(h, &l);
}

static strata_status run(strata_handle *h, const strata_plan *base, void *const data[], const strata_run *r)
{
    const matvec_plan *pl = (const matvec_plan *)base;
    const st_matvec *v = &pl->v;
    words w = pl->w;
    w.alpha[0] = 1;
    const bool factors = r && v->op != ST_MATVEC_MULTIPLY && v->op != ST_MATVEC_SOLVE;
    if ((factors && r->alpha &&
         !st_scalar_now(h, base->title, "alpha", *r->alpha, &w.alpha[0], &w.alpha[1])) ||
        (factors && r->beta && v->op == ST_MATVEC_PRODUCT &&
         !st_scalar_now(h, base->title, "beta", *r->beta, &w.beta[0], &w.beta[1])))
        return h->err.status;
    w.a = data[0], w.x = data[1], w.y = v->op == ST_MATVEC_MULTIPLY ? data[1] : data[2];
    if (v->op == ST_MATVEC_PRODUCT && w.alpha[0] == 0 && w.alpha[1] == 0) {
        w.phase = 3;
        return launch(h, pl->empty, &w, st_ceil_div(v->m, 32), 256, 0);
    }
    if (base->workspace) {
        w.work = st_plan_workspace(h, base, r);
        if (!w.work) return h->err.status;
    }
    if (pl->way == SOLVE) {
        const strata_status s = st_gpu_set(h, w.work, 255, base->workspace);
        if (s) return s;
    }
    strata_status s = launch(h, pl->kernel, &w, pl->blocks,
                             pl->way == SERIAL  ? 1024
                             : pl->way == SOLVE ? 512
                                                : 256,
                             pl->way == SOLVE ? solve_smem(v) : 0);
    if (!s && pl->ends) s = launch(h, pl->end, &w, pl->ends, 256, 0);
    return s;
}

static const st_provider provider = {"matvec", ST_OP_POINTWISE, enumerate, build, ST_ON_CUDA};

int st_pw_matvec_cuda_kernels(int i, strata_kernel_info *info)
{
    if (i < 0 || i >= ST_COUNT(rows)) return 0;
    const matvec_way w = rows[i].way;
    *info = st_plan_gpu_kernel_info(rows[i].id, "matvec", rows[i].types, "sm80",
                                    w == PLAIN    ? order_plain
                                    : w == UPDATE ? order_none
                                    : w == SOLVE  ? order_solve
                                    : w == SERIAL ? order_serial
                                                  : order_tiles);
    return 1;
}

void st_pw_matvec_cuda_init(void) { st_plan_register(&provider); }
