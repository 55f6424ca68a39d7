/* SPDX-License-Identifier: Apache-2.0 */
/* pool_cuda.c - the provider of window functions on CUDA devices: one source, a kernel a type, kind and direction (pointwise_pool.cu). */
#include "pointwise/pool.h"
#include "runtime/gpu.h"
#include <stdio.h>
#include <string.h>
#include <strata/dnn.h>

typedef struct pool_row {
    const char *id, *types;
    int type;
    bool channels;
} pool_row;
static const pool_row rows[] = {{"pool_channels_f32_sm80", "f32", STRATA_F32, true},
                                {"pool_channels_f64_sm80", "f64", STRATA_F64, true},
                                {"pool_rows_f32_sm80", "f32", STRATA_F32, false},
                                {"pool_rows_f64_sm80", "f64", STRATA_F64, false}};
static const char *const order = "taps of a window in row order; gradients: windows in row order";

/* as the kernel has it */
typedef struct pool_args {
    void *x, *y, *argmax, *dx;
    int64_t xs[4], ys[4], as[4], zs[4], total;
    int32_t n, c, h, w, p, q;
    int32_t window[2], stride[2], pad[2], pad_end[2], dilation[2], count_padding;
} pool_args;

typedef struct pool_plan {
    strata_plan base;
    pool_args args;
    const st_gpu_kernel *kernel;
    bool backward;
} pool_plan;

static bool channels_contiguous(const st_pool_key *k)
{
    const st_pool_problem *p = &k->p;
    return p->xs[1] == 1 && p->ys[1] == 1 && p->c > 1;
}

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    const st_pool_key *k = pr->data;
    int n = 0;
    for (int i = 0; i < ST_COUNT(rows) && n < max; i++) {
        if (rows[i].type != k->p.type) continue;
        st_candidate *c = &out[n++];
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", rows[i].id);
        c->row = &rows[i];
        c->order = order;
        const double elements = (double)(k->p.n * k->p.c) * (double)(k->p.h * k->p.w + k->p.p * k->p.q);
        c->us = 3 + elements * (rows[i].type == STRATA_F64 ? 8 : 4) / h->gpu->copy_bytes_per_us;
        if (rows[i].channels && !channels_contiguous(k)) {
            c->us = -1;
            snprintf(c->why, sizeof c->why,
                     "channels are not contiguous in every operand (strides %lld and %lld)",
                     (long long)k->p.xs[1], (long long)k->p.ys[1]);
        } else if (!rows[i].channels && channels_contiguous(k)) {
            c->us *= 2; /* rows are not */
        }
    }
    return n;
}

static strata_status run(strata_handle *h, const strata_plan *base, void *const data[], const strata_run *r)
{
    const pool_plan *pl = (const pool_plan *)base;
    pool_args a = pl->args;
    (void)r;
    if (a.total == 0) return STRATA_OK;
    a.x = data[0], a.y = data[1], a.argmax = data[2];
    if (pl->backward) a.dx = data[3];
    void *args[] = {&a};
    const st_gpu_launch l = {.kernel = pl->kernel,
                             .grid = {(unsigned)st_ceil_div(a.total, 256), 1, 1},
                             .block = {256, 1, 1},
                             .args = args};
    return st_gpu_run(h, &l);
}

static strata_status get_kernel(strata_handle *h, pool_plan *pl, const st_pool_key *k, const pool_row *row)
{
    const st_pool_problem *p = &k->p;
    char option[8][24];
    const struct {
        const char *name;
        int value;
    } list[8] = {{"MAX", p->kind == STRATA_POOL_MAX},
                 {"CHANNELS", row->channels},
                 {"BACKWARD", p->backward != 0},
                 {"ACCUMULATE", p->backward && p->accumulate},
                 {"ARGMAX", p->has_argmax != 0},
                 {"FIND", k->find != 0},
                 {"BIG", pl->args.total > INT32_MAX - 1024},
                 {NULL, 0}};
    st_gpu_spec spec = {.id = row->id, .source = "pointwise_pool.cu", .entry = "pool_kernel"};
    spec.option[0] = row->type == STRATA_F64 ? "-DELEMENT=double" : "-DELEMENT=float";
    for (int i = 0; list[i].name; i++) {
        snprintf(option[i], sizeof option[i], "-D%s=%d", list[i].name, list[i].value);
        spec.option[i + 1] = option[i];
    }
    return st_gpu_kernel_get(h, &spec, &pl->kernel);
}

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *c, strata_plan **plan)
{
    const st_pool_key *k = pr->data;
    const st_pool_problem *p = &k->p;
    pool_plan *pl = st_plan_new(sizeof *pl);
    if (!pl) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    pool_args *a = &pl->args;
    pl->backward = p->backward != 0;
    memcpy(a->ys, p->ys, sizeof a->ys);
    memcpy(a->as, p->as, sizeof a->as);
    memcpy(a->zs, p->xs, sizeof a->zs);
    /* as carries the strides of x when backward has no argmax */
    memcpy(a->xs, k->find ? p->as : p->xs, sizeof a->xs);
    a->n = (int32_t)p->n, a->c = (int32_t)p->c, a->h = (int32_t)p->h, a->w = (int32_t)p->w;
    a->p = (int32_t)p->p, a->q = (int32_t)p->q, a->count_padding = p->count_padding != 0;
    for (int d = 0; d < 2; d++) {
        a->window[d] = (int32_t)p->window[d], a->stride[d] = (int32_t)p->stride[d];
        a->pad[d] = (int32_t)p->pad[d], a->pad_end[d] = (int32_t)p->pad_end[d];
        a->dilation[d] = (int32_t)p->dilation[d];
    }
    a->total = p->n * p->c * (p->backward ? p->h * p->w : p->p * p->q);
    pl->base.run = run;
    st_pw_pool_describe(&pl->base, p);
    strata_status s = STRATA_OK;
    if (p->n > INT32_MAX || p->c > INT32_MAX || st_ceil_div(a->total, 256) > INT32_MAX)
        s = st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                    "%s: more than 2^31 images, channels or blocks of threads", pr->who);
    else if (st_pw_pool_extents(&pl->base, k))
        s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    else if (a->total)
        s = get_kernel(h, pl, k, c->row);
    if (s) {
        strata_plan_destroy(&pl->base);
        return s;
    }
    *plan = &pl->base;
    return STRATA_OK;
}

static const st_provider provider = {"pool", ST_OP_POOL, enumerate, build, ST_ON_CUDA};

int st_pw_pool_cuda_kernels(int i, strata_kernel_info *info)
{
    if (i < 0 || i >= ST_COUNT(rows)) return 0;
    *info = st_plan_gpu_kernel_info(rows[i].id, "pool", rows[i].types, "sm80", order);
    return 1;
}

void st_pw_pool_cuda_init(void) { st_plan_register(&provider); }
