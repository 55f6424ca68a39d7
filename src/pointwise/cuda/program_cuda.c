/* SPDX-License-Identifier: Apache-2.0 */
/* program_cuda.c - the provider of programs on CUDA devices: candidates, plans, launches. */
#include "pointwise/cuda/program_cuda.h"
#include "runtime/gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How lines are gone over; the split row comes before what does without its workspace. */
typedef enum kind { MAP, LANES, BLOCK, CLUSTER, RING, ROWS_SPLIT, STREAM, COLS_SPLIT, COLS, KINDS } kind;
typedef struct program_row {
    const char *id, *types;
    int type;
    kind kind;
} program_row;
#define ROWS_OF(t, T)                                                                                       \
    {"program_" t "_map_sm80", t, T, MAP}, {"program_" t "_rows_lanes_sm80", t, T, LANES},                  \
        {"program_" t "_rows_block_sm80", t, T, BLOCK}, {"program_" t "_rows_cluster_sm90", t, T, CLUSTER}, \
        {"program_" t "_rows_ring_sm90", t, T, RING}, {"program_" t "_rows_split_sm80", t, T, ROWS_SPLIT},  \
        {"program_" t "_rows_stream_sm80", t, T, STREAM},                                                   \
        {"program_" t "_cols_split_sm80", t, T, COLS_SPLIT},                                                \
    {                                                                                                       \
        "program_" t "_cols_tile_sm80", t, T, COLS                                                          \
    }
static const program_row rows[] = {ROWS_OF("f32", STRATA_F32), ROWS_OF("f64", STRATA_F64)};

static const char *const order_map = "no sums";
static const char *const order_lines =
    "a thread's elements, then lanes, warps and parts, in an order fixed by the "
    "program, the line's length and the device's generation";

typedef struct cuda_plan {
    strata_plan base;
    st_pw_shape s;
    st_pw_cuda c;
    const st_gpu_kernel *kernel;
    int nwords;
    int64_t ring_clusters; /* that the device holds at a time */
    int64_t words[ST_PW_WORDS];
} cuda_plan;

static kind kind_of(const st_pw_cuda *c)
{
    switch (c->way) {
    case ST_PW_WAY_MAP: return MAP;
    case ST_PW_WAY_COLS: return COLS;
    case ST_PW_WAY_SPLIT: return c->tall ? COLS_SPLIT : ROWS_SPLIT;
    default:
        return c->stream               ? STREAM
               : c->groups             ? RING
               : c->cluster > 1        ? CLUSTER
               : c->group < c->threads ? LANES
                                       : BLOCK;
    }
}

const char *st_pw_cuda_id(const st_pw_cuda *c)
{
    for (int i = 0; i < ST_COUNT(rows); i++)
        if (rows[i].kind == kind_of(c) && rows[i].type == (c->s->f64 ? STRATA_F64 : STRATA_F32))
            return rows[i].id;
    return "program";
}

st_gpu_spec st_pw_cuda_spec(const st_pw_cuda *c, const char *id, const char *generated)
{
    static const char *const sources[] = {"pointwise_map.cu", "pointwise_rows.cu", "pointwise_cols.cu",
                                          "pointwise_split.cu", "pointwise_ring.cu"};
    static const char *const entries[] = {"program_map", "program_rows", "program_cols", "program_split",
                                          "program_ring"};
    const int which = c->groups ? 4 : (int)c->way;
    return (st_gpu_spec){.id = id,
                         .source = sources[which],
                         .entry = entries[which],
                         .option = {"-fmad=false"},
                         .generated = generated};
}

static st_pw_device device_of(const strata_handle *h)
{
    return (st_pw_device){.sms = h->gpu->sms, .cc = h->gpu->cc, .smem = h->gpu->smem_block, .l2 = h->gpu->l2};
}

static size_t workspace_of(const st_pw_cuda *c)
{
    if (c->way != ST_PW_WAY_SPLIT) return 0;
    return (size_t)c->total_bytes * (size_t)(c->lines * (c->p.passes + c->parts));
}

static double predict(const strata_handle *h, const st_pw_cuda *c)
{
    double bytes = 0;
    for (int o = 0; o < c->s->noperands; o++) bytes += (double)(c->s->hi[o] - c->s->lo[o]);
    const bool again = c->way == ST_PW_WAY_COLS || c->way == ST_PW_WAY_SPLIT || c->stream;
    const double passes = again ? c->p.passes + (c->stores ? 1 : 0) : 1;
    const double fill = st_min64(st_pw_cuda_blocks(c, true), 2 * h->gpu->sms) / (2.0 * h->gpu->sms);
    return 2.5 * (c->way == ST_PW_WAY_SPLIT ? 2 * c->p.passes + 1 : 1) +
           bytes * passes / h->gpu->copy_bytes_per_us / (fill > 0.01 ? fill : 0.01);
}

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    const int64_t *key = pr->data;
    if (key[0] != ST_PW_PROGRAM) return 0;
    st_pw_shape *s = malloc(sizeof *s);
    st_pw_cuda *c = malloc(2 * sizeof *c);
    st_err e = {0};
    int n = 0;
    const bool good = s && c && st_pw_shape_make(&e, pr->who, key, pr->text, s) == STRATA_OK;
    const st_pw_device d = device_of(h);
    if (good) {
        st_pw_cuda_make(&c[0], s, &d, (int)key[1], true);
        st_pw_cuda_make(&c[1], s, &d, (int)key[1], false);
    }
    for (int i = 0; i < ST_COUNT(rows) && n < max && s && c; i++) {
        const program_row *row = &rows[i];
        if (row->type != (s->f64 ? STRATA_F64 : STRATA_F32)) continue;
        st_candidate *o = &out[n++];
        memset(o, 0, sizeof *o);
        snprintf(o->kernel, sizeof o->kernel, "%s", row->id);
        o->row = row;
        o->order = row->kind == MAP ? order_map : order_lines;
        o->us = -1;
        snprintf(o->why, sizeof o->why,
                 "the program's lines, their length and number ask for another way through memory");
        if (!good && n == 1) o->us = 1; /* build repeats the analysis and reports its fault */
        for (int k = 0; k < 2 && good; k++) {
            if (kind_of(&c[k]) != row->kind || o->us >= 0) continue;
            if (st_pw_cuda_blocks(&c[k], true) > INT32_MAX) {
                snprintf(o->why, sizeof o->why, "more than 2^31 blocks of threads");
                continue;
            }
            o->us = predict(h, &c[k]);
            /* what the geometry says first is what it found better */
            if (k == 1 && o->us <= predict(h, &c[0])) o->us = 1.01 * predict(h, &c[0]);
            o->workspace = workspace_of(&c[k]);
            o->arg[0] = k == 0;
        }
    }
    if (good) st_expr_free(s->x);
    free(s);
    free(c);
    return n;
}

static strata_status run(strata_handle *h, const strata_plan *base, void *const data[], const strata_run *r);
static void destroy(strata_plan *p) { st_expr_free(((cuda_plan *)p)->s.x); }

static strata_status get_kernel(strata_handle *h, cuda_plan *pl, const char *id)
{
    for (;;) {
        st_text t = {0};
        st_pw_cuda_text(&pl->c, &t);
        strata_status s = STRATA_OK;
        if (t.failed) {
            s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for the text of a kernel",
                        pl->base.title);
        } else {
            const st_gpu_spec spec = st_pw_cuda_spec(&pl->c, id, t.s);
            s = st_gpu_kernel_get(h, &spec, &pl->kernel);
        }
        free(t.s);
        /* registers that were too few (or a function with a table in local memory, which costs one more compilation) */
        if (s || !pl->kernel->local_bytes || !st_pw_cuda_relax(&pl->c)) return s;
    }
}

/* Blocks of a ring stay; there are as many as the device holds. */
static strata_status count_clusters(strata_handle *h, cuda_plan *pl)
{
    const st_pw_cuda *c = &pl->c;
    const unsigned smem = (unsigned)(c->shared_bytes + c->slot_bytes * c->groups * c->stages),
                   threads = (unsigned)(c->groups * c->group);
    if (c->cluster == 1) {
        pl->ring_clusters = (int64_t)h->gpu->sms * st_gpu_occupancy(h, pl->kernel, (int)threads, smem);
    } else {
        const st_gpu_launch l = {.kernel = pl->kernel,
                                 .grid = {(unsigned)(h->gpu->sms / c->cluster * c->cluster), 1, 1},
                                 .block = {threads, 1, 1},
                                 .cluster = {(unsigned)c->cluster, 1, 1},
                                 .smem = smem};
        pl->ring_clusters = st_gpu_clusters(h, &l);
    }
    return pl->ring_clusters > 0 ? STRATA_OK : h->err.status;
}

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *c, strata_plan **plan)
{
    cuda_plan *pl = st_plan_new(sizeof *pl);
    if (!pl) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    const int64_t *key = pr->data;
    strata_status st = st_pw_shape_make(&h->err, pr->who, key, pr->text, &pl->s);
    if (st) {
        free(pl);
        return st;
    }
    const st_pw_device d = device_of(h);
    st_pw_cuda_make(&pl->c, &pl->s, &d, (int)key[1], c->arg[0] != 0);
    pl->base.run = run;
    pl->base.destroy = destroy;
    pl->base.workspace = workspace_of(&pl->c);
    st_pw_program_describe(&pl->base, &pl->s);
    st = st_pw_program_extents(&pl->base, &pl->s);
    if (st) st_fail(&h->err, st, "%s: out of memory for a plan", pr->who);
    if (!st && st_pw_cuda_blocks(&pl->c, true) > 0) st = get_kernel(h, pl, c->kernel);
    if (!st && pl->c.groups) st = count_clusters(h, pl);
    if (st) {
        strata_plan_destroy(&pl->base);
        return st;
    }
    pl->nwords = st_pw_cuda_words(&pl->c, pl->words);
    *plan = &pl->base;
    return STRATA_OK;
}

/* ---- running ---- */
static strata_status launch(strata_handle *h, const cuda_plan *pl, int64_t *words, int64_t blocks,
                            unsigned threads, int stage)
{
    void *args[] = {words, &stage};
    st_gpu_launch l = {
        .kernel = pl->kernel, .grid = {(unsigned)blocks, 1, 1}, .block = {threads, 1, 1}, .args = args};
    if (pl->c.tall && threads > 32) l.block[0] = 32, l.block[1] = threads / 32;
    if (pl->c.groups) {
        const st_pw_cuda *c = &pl->c;
        l.block[0] = (unsigned)(c->groups * c->group);
        l.smem = (unsigned)(c->shared_bytes + c->slot_bytes * c->groups * c->stages);
    }
    if (pl->c.cluster > 1) l.cluster[0] = (unsigned)pl->c.cluster, l.cluster[1] = l.cluster[2] = 1;
    return st_gpu_run(h, &l);
}

static strata_status run_split(strata_handle *h, const cuda_plan *pl, int64_t *words)
{
    const st_pw_cuda *c = &pl->c;
    const int64_t all = st_pw_cuda_blocks(c, true), one = st_pw_cuda_blocks(c, false);
    strata_status s = STRATA_OK;
    for (int q = 0; q < c->p.passes && !s; q++) {
        s = launch(h, pl, words, all, (unsigned)c->threads, 2 * q);
        if (!s) s = launch(h, pl, words, c->lines, 32, 2 * q + 1);
    }
    if (!s && c->stores) s = launch(h, pl, words, all, (unsigned)c->threads, 2 * c->p.passes);
    if (s || !c->line_stores || !c->stores) return s;
    int64_t alone[ST_PW_WORDS];
    memcpy(alone, words, (size_t)pl->nwords * sizeof *alone);
    /* one block a line: a part as long as the line */
    alone[2 * c->s->nvars + 5] = 1;
    return launch(h, pl, alone, one, (unsigned)c->threads, 2 * c->p.passes + 1);
}

static strata_status run(strata_handle *h, const strata_plan *base, void *const data[], const strata_run *r)
{
    const cuda_plan *pl = (const cuda_plan *)base;
    const st_pw_shape *s = &pl->s;
    const int64_t blocks = st_pw_cuda_blocks(&pl->c, true);
    if (blocks == 0) return STRATA_OK;
    int64_t words[ST_PW_WORDS];
    memcpy(words, pl->words, (size_t)pl->nwords * sizeof *words);
    for (int v = 0; v < s->nvars; v++) {
        if (s->operand[v] < 0) continue;
        void *at = data[s->operand[v]];
        if (pl->c.by_value[v] && !st_gpu_reaches(h, at)) {
            double value = 0;
            st_load_f64(s->type[v], at, &value);
            memcpy(&words[s->nvars + v], &value, 8);
            at = NULL;
        }
        words[v] = (int64_t)(intptr_t)at;
    }
    if (pl->c.groups) {
        const int64_t need = st_ceil_div(pl->c.lines, pl->c.groups);
        return launch(h, pl, words, st_min64(need, pl->ring_clusters) * pl->c.cluster, 0, 0);
    }
    if (pl->c.way != ST_PW_WAY_SPLIT) return launch(h, pl, words, blocks, (unsigned)pl->c.threads, 0);
    char *ws = st_plan_workspace(h, base, r);
    if (!ws) return h->err.status;
    words[2 * s->nvars + ST_PW_WORK] = (int64_t)(intptr_t)ws;
    return run_split(h, pl, words);
}

static const st_provider provider = {"program", ST_OP_POINTWISE, enumerate, build, ST_ON_CUDA};

int st_pw_program_cuda_kernels(int i, strata_kernel_info *info)
{
    if (i < 0 || i >= ST_COUNT(rows)) return 0;
    const program_row *k = &rows[i];
    *info = st_plan_gpu_kernel_info(k->id, "pointwise", k->types,
                                    k->kind == CLUSTER || k->kind == RING ? "sm90" : "sm80",
                                    k->kind == MAP ? order_map : order_lines);
    return 1;
}

void st_pw_program_cuda_init(void)
{
    st_plan_register(&provider);
    st_pw_program_pack_init();
}
