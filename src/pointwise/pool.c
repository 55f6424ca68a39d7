/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - windows over the last two dims: max and average pooling and their gradients.
 *
 * A plan holds the problem and the tables of its windows (pool.h). Work is cut into pieces of images, channels and rows; every output
 * is computed by one piece in a fixed order, so the cut changes no bit. The gradient of max without a stored argmax runs the
 * forward kernel first, into workspace, a few images at a time. */
#include "pointwise/pool.h"
#include "pointwise/engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/dnn.h>

#define POOL(way, type, TYPE, arch, ISA)        \
    {"pool_" #way "_" #type "_" #arch,          \
     #type,                                     \
     #arch,                                     \
     TYPE,                                      \
     ISA,                                       \
     #way[0] == 'c',                            \
     st_pool_##way##_##type##_##arch##_forward, \
     st_pool_##way##_##type##_##arch##_backward},
static const st_pool_kernel pool_kernels[] = {
#include "pointwise/cpu/kernels.inc"
};

typedef st_pool_key pool_key;

typedef struct pool_plan {
    strata_plan base;
    pool_key key;
    const st_pool_kernel *kernel;
    st_pool_tables t;
    size_t scratch;                 /* bytes of one slot */
    int64_t images, c_step, r_step; /* images at a time (find), channels and rows of a piece */
    int64_t find_strides[4];
    void *tables;
} pool_plan;

static const char *const pool_order = "taps of a window in row order; gradients: windows in row order";

static bool channels_contiguous(const pool_key *k)
{
    const st_pool_problem *p = &k->p;
    return p->xs[1] == 1 && p->ys[1] == 1 && (!(p->has_argmax || k->find) || p->as[1] == 1) && p->c > 1;
}

static int pool_enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    const pool_key *k = pr->data;
    int n = 0;
    for (int i = 0; i < ST_COUNT(pool_kernels) && n < max; i++) {
        const st_pool_kernel *row = &pool_kernels[i];
        if (row->type != k->p.type) continue;
        st_candidate *c = &out[n++];
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", row->id);
        c->row = row;
        c->order = pool_order;
        const double elements = (double)(k->p.n * k->p.c * (k->p.h * k->p.w + k->p.p * k->p.q));
        if ((row->isa & h->cpu->isa) != row->isa) {
            c->us = -1;
            snprintf(c->why, sizeof c->why, "this processor (or STRATA_ISA) has no %s", row->isa_name);
        } else if (row->channels && !channels_contiguous(k)) {
            c->us = -1;
            snprintf(c->why, sizeof c->why,
                     "channels are not contiguous in every operand (strides %lld and %lld)",
                     (long long)k->p.xs[1], (long long)k->p.ys[1]);
        } else {
            const double lanes = row->isa == ST_ISA_AVX512 ? 4 : row->isa == ST_ISA_AVX2 ? 2 : 1;
            c->us = 0.2 + elements * (row->channels ? 0.0008 : 0.001) / lanes *
                              (double)(k->p.window[0] * k->p.window[1]) / 4;
        }
    }
    return n;
}

static st_pool_span span_of(int64_t i, int64_t len, int64_t window, int64_t stride, int64_t pad,
                            int64_t pad_end, int64_t dilation, bool padded)
{
    st_pool_span s = {0, 0, 0};
    bool any = false;
    for (int64_t k = 0; k < window; k++) {
        const int64_t at = i * stride - pad + k * dilation;
        if (at >= 0 && at < len) {
            if (!any) s.lo = (int32_t)k;
            any = true;
            s.hi = (int32_t)(k + 1);
        }
        if (padded ? at < len + pad_end : at >= 0 && at < len) s.count++;
    }
    return s;
}

static void back_of(st_pool_back *b, int64_t len, int64_t outputs, int64_t window, int64_t stride,
                    int64_t pad, int64_t dilation)
{
    const int64_t extent = (window - 1) * dilation + 1;
    for (int64_t i = 0; i < len; i++) {
        const int64_t over = i + pad - extent + 1; /* the first window starts here or later */
        b[i].first = (int32_t)(over <= 0 ? 0 : st_ceil_div(over, stride));
        b[i].last = (int32_t)st_min64(outputs - 1, (i + pad) / stride);
    }
}

static bool make_tables(strata_handle *h, pool_plan *pl)
{
    const st_pool_problem *p = &pl->key.p;
    st_pool_tables *t = &pl->t;
    const int64_t qlen = st_round_up(p->q, ST_POOL_PAD);
    const size_t bytes = (size_t)(p->p + p->q) * sizeof(st_pool_span) +
                         (size_t)(p->h + p->w) * sizeof(st_pool_back) + (size_t)qlen * sizeof(int32_t);
    (void)h;
    char *m = pl->tables = calloc(1, bytes + 1);
    if (!m) return false;
    t->row = (st_pool_span *)m, m += (size_t)p->p * sizeof *t->row;
    t->col = (st_pool_span *)m, m += (size_t)p->q * sizeof *t->col;
    t->back_row = (st_pool_back *)m, m += (size_t)p->h * sizeof *t->back_row;
    t->back_col = (st_pool_back *)m, m += (size_t)p->w * sizeof *t->back_col;
    t->col_first = (int32_t *)m;
    for (int64_t i = 0; i < p->p; i++) {
        t->row[i] = span_of(i, p->h, p->window[0], p->stride[0], p->pad[0], p->pad_end[0], p->dilation[0],
                            p->count_padding);
        if (t->row[i].lo >= t->row[i].hi) t->empty = true;
    }
    for (int64_t i = 0; i < p->q; i++) {
        t->col[i] = span_of(i, p->w, p->window[1], p->stride[1], p->pad[1], p->pad_end[1], p->dilation[1],
                            p->count_padding);
        if (t->col[i].lo >= t->col[i].hi) t->empty = true;
        t->col_first[i] = (int32_t)(i * p->stride[1] - p->pad[1] + t->col[i].lo * p->dilation[1]);
    }
    back_of(t->back_row, p->h, p->p, p->window[0], p->stride[0], p->pad[0], p->dilation[0]);
    back_of(t->back_col, p->w, p->q, p->window[1], p->stride[1], p->pad[1], p->dilation[1]);
    const int64_t shift = (p->window[1] - 1) * p->dilation[1] / p->stride[1];
    t->row_buffer =
        st_round_up(st_max64(qlen + shift, (p->w - 1 + p->pad[1]) / p->stride[1] + 1), ST_POOL_PAD);
    return true;
}

static size_t pool_scratch(const pool_plan *pl)
{
    const st_pool_problem *p = &pl->key.p;
    if (pl->kernel->channels) return 0;
    const int64_t size = p->type == STRATA_F64 ? 8 : 4, row = pl->t.row_buffer * p->stride[1];
    const int64_t ring = (p->window[0] - 1) * p->dilation[0] + 1, ylen = st_round_up(p->q, ST_POOL_PAD);
    int64_t bytes = (ring * row + 2 * ylen) * size + ylen * 4 + ring * 8 +
                    p->window[0] * (int64_t)sizeof(void *) + p->window[1] * 8;
    if (p->backward) {
        const int64_t lead = (p->window[1] - 1) * p->dilation[1] / p->stride[1];
        bytes = st_max64(bytes, row * size + st_round_up(lead + pl->t.row_buffer, ST_POOL_PAD) * (size + 4));
    }
    return (size_t)st_round_up(bytes, 64);
}

/* ---- running ---- */
typedef struct pool_work {
    const pool_plan *pl;
    const st_pool_problem *p;
    st_pool_fn fn;
    void *data[4];
    char *scratch;
    int64_t n0, c_pieces, r_pieces, pieces, rows, slots;
    atomic_llong next;
} pool_work;

static void pool_slot(void *arg, int64_t slot, int worker)
{
    pool_work *w = arg;
    (void)worker;
    void *scratch = w->scratch + (size_t)slot * w->pl->scratch;
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed);
        if (i >= w->pieces) return;
        const int64_t r = i % w->r_pieces, c = i / w->r_pieces % w->c_pieces,
                      n = i / (w->r_pieces * w->c_pieces);
        const int64_t c0 = c * w->pl->c_step, r0 = r * w->pl->r_step;
        w->fn(w->p, &w->pl->t, w->data, w->n0 + n, c0, st_min64(w->p->c, c0 + w->pl->c_step), r0,
              st_min64(w->rows, r0 + w->pl->r_step), scratch);
    }
}

static void pool_pass(strata_handle *h, const pool_plan *pl, const st_pool_problem *p, st_pool_fn fn,
                      bool backward, void *const data[4], int64_t n0, int64_t images, char *scratch)
{
    pool_work w = {.pl = pl, .p = p, .fn = fn, .scratch = scratch, .n0 = n0};
    memcpy(w.data, data, sizeof w.data);
    w.rows = backward ? p->h : p->p;
    w.c_pieces = st_ceil_div(p->c, pl->c_step);
    w.r_pieces = st_ceil_div(w.rows, pl->r_step);
    w.pieces = images * w.c_pieces * w.r_pieces;
    if (w.pieces == 0) return;
    w.slots = st_min64(pl->key.slots, w.pieces);
    st_team_for(h, w.slots, pl->base.chosen.us * (double)images / (double)p->n, pool_slot, &w);
}

static strata_status pool_run(strata_handle *h, const strata_plan *base, void *const data[],
                              const strata_run *r)
{
    const pool_plan *pl = (const pool_plan *)base;
    const st_pool_problem *p = &pl->key.p;
    char *ws = NULL;
    if (base->workspace) {
        ws = st_plan_workspace(h, base, r);
        if (!ws) return h->err.status;
    }
    if (!p->backward) {
        void *d[4] = {data[0], data[1], data[2], NULL};
        pool_pass(h, pl, p, pl->kernel->forward, false, d, 0, p->n, ws);
        return STRATA_OK;
    }
    void *d[4] = {NULL, data[1], data[2], data[3]};
    if (!pl->key.find) {
        pool_pass(h, pl, p, pl->kernel->backward, true, d, 0, p->n, ws);
        return STRATA_OK;
    }
    /* positions of the maxima of a few images go to workspace, then their gradient is taken */
    st_pool_problem q = *p;
    memcpy(q.as, pl->find_strides, sizeof q.as);
    char *found = ws + (size_t)pl->key.slots * pl->scratch;
    const int64_t size = p->type == STRATA_F64 ? 8 : 4;
    for (int64_t n0 = 0; n0 < p->n; n0 += pl->images) {
        const int64_t images = st_min64(pl->images, p->n - n0);
        void *f[4] = {(char *)data[0] + n0 * p->as[0] * size, NULL, found, NULL};
        st_pool_problem fwd = q;
        memcpy(fwd.xs, p->as, sizeof fwd.xs); /* as carries the strides of x when there is no argmax */
        pool_pass(h, pl, &fwd, pl->kernel->forward, false, f, 0, images, ws);
        void *b[4] = {NULL, (char *)data[1] + n0 * p->ys[0] * size, found,
                      (char *)data[3] + n0 * p->xs[0] * size};
        pool_pass(h, pl, &q, pl->kernel->backward, true, b, 0, images, ws);
    }
    return STRATA_OK;
}

static void pool_destroy(strata_plan *p) { free(((pool_plan *)p)->tables); }

void st_pw_pool_describe(strata_plan *plan, const st_pool_problem *p)
{
    const double size = p->type == STRATA_F64 ? 8 : 4, images = (double)(p->n * p->c);
    plan->operands = p->backward ? 4 : 3;
    plan->flops = images * (double)(p->p * p->q * p->window[0] * p->window[1]);
    plan->bytes = images * size * (double)(p->h * p->w + p->p * p->q);
    snprintf(plan->title, sizeof plan->title,
             "pool %s %s %s %lldx%lldx%lldx%lld -> %lldx%lld, window %lldx%lld stride %lldx%lld",
             p->kind == STRATA_POOL_MAX ? "max" : "average", p->backward ? "backward" : "forward",
             strata_type_name((strata_type)p->type), (long long)p->n, (long long)p->c, (long long)p->h,
             (long long)p->w, (long long)p->p, (long long)p->q, (long long)p->window[0],
             (long long)p->window[1], (long long)p->stride[0], (long long)p->stride[1]);
}

strata_status st_pw_pool_extents(strata_plan *plan, const st_pool_key *k)
{
    const st_pool_problem *p = &k->p;
    const int64_t in[4] = {p->n, p->c, p->h, p->w}, out[4] = {p->n, p->c, p->p, p->q},
                  size = p->type == STRATA_F64 ? 8 : 4;
    const bool max = p->kind == STRATA_POOL_MAX;
    /* x, y or dy, argmax, dx */
    const struct {
        const int64_t *dim, *stride;
        int64_t size;
        bool read, written, there;
    } list[4] = {{in, k->find ? p->as : p->xs, size, true, false, !p->backward || k->find},
                 {out, p->ys, size, p->backward, !p->backward, true},
                 {out, p->as, 4, p->backward, !p->backward, max && p->has_argmax},
                 {in, p->xs, size, p->accumulate, true, p->backward}};
    plan->extent = calloc(4, sizeof *plan->extent);
    if (!plan->extent) return STRATA_ERROR_MEMORY;
    for (int o = 0; o < plan->operands; o++) {
        int64_t lo = 0, hi = 1;
        for (int d = 0; d < 4; d++) {
            if (list[o].dim[d] == 0) lo = hi = 0, d = 4;
            if (d < 4) *(list[o].stride[d] < 0 ? &lo : &hi) += (list[o].dim[d] - 1) * list[o].stride[d];
        }
        if (!list[o].there) continue;
        plan->extent[o] =
            (st_extent){lo * list[o].size, hi * list[o].size, list[o].read, list[o].written, false};
    }
    return STRATA_OK;
}

static strata_status pool_build(strata_handle *h, const st_problem *pr, const st_candidate *c,
                                strata_plan **plan)
{
    pool_plan *pl = st_plan_new(sizeof *pl);
    if (!pl) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    memcpy(&pl->key, pr->data, sizeof pl->key);
    const st_pool_problem *p = &pl->key.p;
    pl->kernel = c->row;
    pl->key.slots =
        st_max64(1, st_min64(pl->key.slots, st_threads(h))); /* fewer where the workspace limit says so */
    if (!make_tables(h, pl)) {
        free(pl);
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for the tables of a plan", pr->who);
    }
    const int64_t rows = p->backward ? st_max64(p->h, p->p) : p->p, cols = st_max64(p->w, p->q);
    enum { PIECE = 32768 }; /* elements: about 10 microseconds */
    if (pl->kernel->channels) {
        pl->c_step = p->c;
        pl->r_step = st_max64(1, PIECE / st_max64(1, cols * p->c));
    } else {
        pl->c_step = st_max64(1, PIECE / st_max64(1, cols * rows));
        pl->r_step = st_max64(1, PIECE * 4 / st_max64(1, cols));
    }
    pl->scratch = pool_scratch(pl);
    const int64_t outputs = p->c * p->p * p->q;
    pl->base.workspace = (size_t)pl->key.slots * pl->scratch;
    if (pl->key.find) {
        pl->images = st_max64(1, st_min64(p->n, (int64_t)(1 << 20) / st_max64(1, outputs)));
        pl->base.workspace += (size_t)(pl->images * outputs) * 4;
        const int64_t ch[4] = {outputs, 1, p->q * p->c, p->c}, ro[4] = {outputs, p->p * p->q, p->q, 1};
        memcpy(pl->find_strides, pl->kernel->channels ? ch : ro, sizeof pl->find_strides);
    }
    pl->base.run = pool_run;
    pl->base.destroy = pool_destroy;
    st_pw_pool_describe(&pl->base, p);
    if (st_pw_pool_extents(&pl->base, &pl->key)) {
        strata_plan_destroy(&pl->base);
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    }
    *plan = &pl->base;
    return STRATA_OK;
}

static const st_provider pool_provider = {"pool", ST_OP_POOL, pool_enumerate, pool_build, ST_ON_CPU};

int st_pw_pool_kernels(int i, strata_kernel_info *info)
{
    if (i >= ST_COUNT(pool_kernels)) return st_pw_pool_cuda_kernels(i - ST_COUNT(pool_kernels), info);
    if (i < 0) return 0;
    const st_pool_kernel *k = &pool_kernels[i];
    const bool usable = (k->isa & st_cpu_get()->isa) == k->isa;
    *info = (strata_kernel_info){k->id,
                                 "pool",
                                 k->types,
                                 k->isa_name,
                                 pool_order,
                                 usable,
                                 usable ? NULL : "the processor (or STRATA_ISA) lacks the instruction set"};
    return 1;
}

void st_pw_pool_init(void)
{
    st_plan_register(&pool_provider);
    st_pw_pool_cuda_init();
}

strata_status st_pw_pool(strata_handle *h, const char *who, const st_pool_problem *p, void *const data[])
{
    st_pw_init();
    pool_key key;
    memset(&key, 0, sizeof key);
    key.p = *p;
    key.slots = st_threads(h);
    key.find = p->backward && p->kind == STRATA_POOL_MAX && !p->has_argmax;
    if (p->kind == STRATA_POOL_AVERAGE) memset(key.p.as, 0, sizeof key.p.as);
    st_problem pr = {ST_OP_POOL, who, &key, sizeof key, NULL};
    const strata_plan *plan;
    strata_status s = st_plan_get(h, &pr, &plan);
    if (s) return s;
    const uint64_t t0 = st_trace_begin();
    s = st_plan_execute(h, plan, data, NULL);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "pointwise", plan->chosen.kernel, "%s, workspace %zu", plan->title, plan->workspace);
    return s;
}
