/* SPDX-License-Identifier: Apache-2.0 */
/* vecsum_cuda.c - sums over vectors on CUDA devices: one launch gives the parts' totals, whose bounds follow from the length alone, a block joins them. */
#include "pointwise/cuda/matvec_cuda.h"
#include "pointwise/vecsum.h"
#include "runtime/gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *id, *types;
    int type;
} rows[] = {{"vecsum_f32_sm80", "f32", STRATA_F32},
            {"vecsum_f64_sm80", "f64", STRATA_F64},
            {"vecsum_c64_sm80", "c64", STRATA_C64},
            {"vecsum_c128_sm80", "c128", STRATA_C128}};
static const char *const order = "slots of 16 bytes in turn over 256 threads of a part, sums of parts of f32 "
                                 "in f64; lanes, warps and parts by trees";

enum { PARTS = 396, THREADS = 256, TOTAL_BYTES = 40 };

/* As vecsum.cu has it. */
typedef struct sum_words {
    void *x, *y, *result, *work;
    int64_t n, sx, sy, chunk, parts, conjugate, least, wide;
} sum_words;
typedef struct vecsum_plan {
    strata_plan base;
    sum_words w;
    const st_gpu_kernel *kernel, *end;
} vecsum_plan;

static int size_of(const st_vecsum *v) { return (int)strata_type_bits((strata_type)v->type) / 8; }

/* slots of a part: whole turns of a block */
static int64_t chunk_of(const st_vecsum *v)
{
    const int64_t slots = st_ceil_div(v->n * size_of(v), 16);
    return st_round_up(st_ceil_div(slots, PARTS), THREADS);
}
static int64_t parts_of(const st_vecsum *v)
{
    return st_ceil_div(st_ceil_div(v->n * size_of(v), 16), chunk_of(v));
}

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    const st_vecsum *v = pr->data;
    int n = 0;
    if (v->family != ST_PW_VECSUM) return 0;
    for (int i = 0; i < ST_COUNT(rows) && n < max; i++) {
        if (rows[i].type != v->type) continue;
        st_candidate *c = &out[n++];
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", rows[i].id);
        c->row = &rows[i];
        c->order = order;
        c->us = 4 + (double)v->n * size_of(v) * (v->op == ST_VECSUM_DOT ? 2 : 1) / h->gpu->copy_bytes_per_us;
        c->workspace = (size_t)(parts_of(v) * TOTAL_BYTES);
    }
    return n;
}

static strata_status launch(strata_handle *h, const st_gpu_kernel *k, sum_words *w, int64_t blocks)
{
    void *args[] = {w};
    const st_gpu_launch l = {.kernel = k,
                             .grid = {(unsigned)blocks, 1, 1},
                             .block = {THREADS, 1, 1},
                             .overlap = true,
                             .args = args};
    return st_gpu_run(h, &l);
}

static strata_status run(strata_handle *h, const strata_plan *base, void *const data[], const strata_run *r)
{
    const vecsum_plan *pl = (const vecsum_plan *)base;
    sum_words w = pl->w;
    w.x = data[0], w.y = data[1], w.result = data[2];
    w.work = st_plan_workspace(h, base, r);
    if (!w.work) return h->err.status;
    const strata_status s = launch(h, pl->kernel, &w, w.parts);
    return s ? s : launch(h, pl->end, &w, 1);
}

static st_extent vector_extent(int64_t n, int64_t step, int64_t size)
{
    const int64_t last = (n - 1) * step;
    return (st_extent){.lo = st_min64(0, last) * size, .hi = (st_max64(0, last) + 1) * size, .read = true};
}

static strata_status get_kernels(strata_handle *h, const st_vecsum *v, const char *id, vecsum_plan *pl)
{
    static const char *const ops[] = {"-DOP=0", "-DOP=1", "-DOP=2", "-DOP=3"};
    const bool wide = v->x == 1 && (v->op != ST_VECSUM_DOT || v->y == 1) && v->alignment >= 16;
    st_gpu_spec spec = {.id = id,
                        .source = "vecsum.cu",
                        .entry = "vecsum",
                        .option = {"-fmad=false",
                                   st_type_part((int)v->type) == STRATA_F32 ? "-DT=f32" : "-DT=f64",
                                   st_type_is_complex((int)v->type) ? "-DCOMPLEX=1" : "-DCOMPLEX=0",
                                   wide ? "-DVEC=1" : "-DVEC=0", ops[v->op]}};
    strata_status s = st_gpu_kernel_get(h, &spec, &pl->kernel);
    spec.entry = "vecsum_end";
    return s ? s : st_gpu_kernel_get(h, &spec, &pl->end);
}

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *c, strata_plan **plan)
{
    static const char *const names[] = {"dot product", "norm", "sum of magnitudes", "position of an extreme"};
    static const int64_t results[] = {4, 8};
    const st_vecsum *v = pr->data;
    vecsum_plan *pl = st_plan_new(sizeof *pl);
    if (!pl) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    pl->w = (sum_words){
        .n = v->n,
        .sx = v->x,
        .sy = v->y,
        .chunk = chunk_of(v),
        .parts = parts_of(v),
        .conjugate = v->conjugate,
        .least = v->least,
        .wide = v->op == ST_VECSUM_EXTREME ? v->wide : v->wide || st_type_part((int)v->type) == STRATA_F64};
    pl->base.run = run;
    pl->base.operands = 3;
    pl->base.workspace = c->workspace;
    snprintf(pl->base.title, sizeof pl->base.title, "%s of %s %lld", names[v->op],
             strata_type_name((strata_type)v->type), (long long)v->n);
    pl->base.bytes = (double)v->n * size_of(v) * (v->op == ST_VECSUM_DOT ? 2 : 1);
    pl->base.flops = (double)v->n * 2 * (st_type_is_complex((int)v->type) ? 4 : 1);
    pl->base.extent = calloc(3, sizeof *pl->base.extent);
    strata_status s = STRATA_OK;
    if (!pl->base.extent) {
        s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    } else {
        pl->base.extent[0] = vector_extent(v->n, v->x, size_of(v));
        if (v->op == ST_VECSUM_DOT) pl->base.extent[1] = vector_extent(v->n, v->y, size_of(v));
        pl->base.extent[2] = (st_extent){.hi = v->op == ST_VECSUM_DOT ? size_of(v) : results[pl->w.wide != 0],
                                         .written = true};
        s = get_kernels(h, v, c->kernel, pl);
    }
    if (s) {
        strata_plan_destroy(&pl->base);
        return s;
    }
    *plan = &pl->base;
    return STRATA_OK;
}

static const st_provider provider = {"vecsum", ST_OP_POINTWISE, enumerate, build, ST_ON_CUDA};

int st_pw_vecsum_cuda_kernels(int i, strata_kernel_info *info)
{
    if (i < 0 || i >= ST_COUNT(rows)) return 0;
    *info = st_plan_gpu_kernel_info(rows[i].id, "vector", rows[i].types, "sm80", order);
    return 1;
}

void st_pw_vecsum_cuda_init(void) { st_plan_register(&provider); }
