/* SPDX-License-Identifier: Apache-2.0 */
/* reference_cuda.c - the last row on CUDA: contract_reference.cu for any axes, strides, bounds and types. */
#include "tile/cuda/generic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bounds_params { /* st_bounds of contract_reference.cu */
    int64_t limit[ST_BOUNDS], offset[ST_BOUNDS], row[ST_BOUNDS][ST_AXES], k[ST_BOUNDS][ST_AXES];
    int64_t rows, cols, depth, items;
    st_rule rule[3];
    int64_t pointers;
} bounds_params;
typedef struct reference_plan {
    st_contract_plan head;
    st_gproblem g;
    const st_gpu_kernel *kernel;
    st_gparams params;
    bounds_params bounds;
} reference_plan;

#define ID "contract_any_reference_cuda"

static bool is_integer(int64_t t) { return t == STRATA_I8 || t == STRATA_U8 || t == STRATA_I32; }

static int enumerate(strata_handle *h, const st_problem *p, st_candidate *out, int max)
{
    const st_contract *c = p->data;
    if (max < 1) return 0;
    memset(out, 0, sizeof *out);
    snprintf(out->kernel, sizeof out->kernel, ID);
    out->order = is_integer(c->ta) ? "k ascending, modulo 2^32" : "k ascending, one accumulator in f64";
    const int64_t t[3] = {c->ta, c->tb, c->tc};
    const int complex =
        st_type_is_complex((int)t[0]) + st_type_is_complex((int)t[1]) + st_type_is_complex((int)t[2]);
    for (int i = 0; i < 3; i++)
        if (t[i] <= STRATA_NONE || t[i] >= STRATA_TYPE_COUNT || strata_type_bits((strata_type)t[i]) < 8) {
            out->us = -1;
            snprintf(out->why, sizeof out->why, "takes types of whole bytes; %c is %s", "ABC"[i],
                     strata_type_name((strata_type)t[i]));
        }
    if (out->us >= 0 && ((complex && complex != 3) || (complex && p->text))) {
        out->us = -1;
        snprintf(out->why, sizeof out->why,
                 "takes complex numbers in all of A, B and C, and without an epilogue");
    }
    const bool one_a = c->m.count <= 1 && c->k.count <= 1, one_b = c->k.count <= 1 && c->n.count <= 1;
    if (out->us >= 0 && ((c->rule_a.mirror && !one_a) || (c->rule_b.mirror && !one_b))) {
        out->us = -1;
        snprintf(out->why, sizeof out->why, "takes mirrored matrices with one axis each way");
    }
    if (out->us < 0) return 1;
    const double mn =
        (double)st_axes_len(&c->batch) * (double)st_axes_len(&c->m) * (double)st_axes_len(&c->n);
    /* about 40 clocks a step of k and element, 2048 threads a multiprocessor */
    const double clock = h->gpu->clock_mhz > 0 ? h->gpu->clock_mhz : 1500,
                 threads = (double)h->gpu->sms * 256;
    out->us = 5 + ((double)st_axes_len(&c->k) + 4) * 200 / clock +
              mn * (double)st_axes_len(&c->k) * 40 / threads / clock * 4;
    return 1;
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const reference_plan *p = (const reference_plan *)plan;
    const uint64_t t0 = st_trace_begin();
    st_gparams a = p->params;
    bounds_params w = p->bounds;
    strata_status s = st_generic_scalars(h, &p->head, r, &a);
    if (s) return s;
    const int64_t all = w.rows * w.cols * w.items;
    if (all == 0) return STRATA_OK;
    a.a = data[0];
    a.b = data[1];
    a.c = data[2];
    if (a.alpha == 0 && a.alpha_im == 0) w.depth = 0;
    st_cuda_epilogue_params(&p->g.own, false, data, &a.epi);
    void *args[] = {&a, &w};
    const st_gpu_launch l = {.kernel = p->kernel,
                             .grid = {(unsigned)st_min64(st_ceil_div(all, 128), (int64_t)1 << 30), 1, 1},
                             .block = {128, 1, 1},
                             .args = args};
    s = st_gpu_run(h, &l);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel, "%lld x %lldx%lldx%lld", (long long)w.items,
                     (long long)w.rows, (long long)w.cols, (long long)w.depth);
    return s;
}

static void bind_bounds(const st_gproblem *g, bounds_params *w)
{
    w->rows = g->M;
    w->cols = g->N;
    w->depth = g->K;
    w->items = g->G;
    w->rule[0] = g->own.rule_a;
    w->rule[1] = g->own.rule_b;
    w->rule[2] = g->own.rule_c;
    w->pointers = g->own.pointers;
    for (int b = 0; b < ST_BOUNDS; b++) {
        w->limit[b] = INT64_MAX;
        if (b >= g->own.bounds) continue;
        const st_bound *x = &g->own.bound[b];
        w->limit[b] = x->limit;
        w->offset[b] = x->offset;
        if (x->m >= 0) w->row[b][x->m] = x->im;
        if (x->k >= 0) w->k[b][x->k] = x->ik;
    }
}

static strata_status build(strata_handle *h, const st_problem *problem, const st_candidate *c,
                           strata_plan **plan)
{
    st_contract_plan *head;
    char *text = NULL, opt[5][32];
    *plan = NULL;
    strata_status s = st_contract_plan_new(h, problem, sizeof(reference_plan), &head);
    if (s) return s;
    reference_plan *p = (reference_plan *)head;
    st_generic_problem(&head->problem, problem->text, &p->g);
    if (p->g.swapped) { /* the kernel takes the caller's roles */
        p->g.c = p->g.own;
        p->g.swapped = false;
        p->g.M = st_axes_len(&p->g.own.m);
        p->g.N = st_axes_len(&p->g.own.n);
    }
    const st_contract *q = &p->g.own;
    s = st_cuda_epilogue_text(&h->err, q, head->expr, false, &text);
    snprintf(opt[0], sizeof opt[0], "-DTA=%s", st_cuda_type((int)q->ta));
    snprintf(opt[1], sizeof opt[1], "-DTB=%s", st_cuda_type((int)q->tb));
    snprintf(opt[2], sizeof opt[2], "-DTC=%s", st_cuda_type((int)q->tc));
    const bool integers = is_integer(q->ta) && is_integer(q->tb);
    snprintf(opt[3], sizeof opt[3], "-DKIND=%d", st_type_is_complex((int)q->tc) ? 2 : integers);
    snprintf(opt[4], sizeof opt[4], "-DEPI=%d", text != NULL);
    const st_gpu_spec spec = {.id = c->kernel,
                              .source = "contract_reference.cu",
                              .entry = "contract_reference",
                              .option = {opt[0], opt[1], opt[2], opt[3], opt[4], "-DST_ACC=double"},
                              .generated = text};
    if (!s) s = st_gpu_kernel_get(h, &spec, &p->kernel);
    free(text);
    if (s) {
        strata_plan_destroy(&head->base);
        return s;
    }
    const st_axes *from[4] = {&q->m, &q->n, &q->k, &q->batch};
    st_glist *to[4] = {&p->params.m, &p->params.n, &p->params.k, &p->params.batch};
    for (int i = 0; i < 4; i++) st_generic_list(to[i], from[i]);
    bind_bounds(&p->g, &p->bounds);
    head->base.run = run;
    *plan = &head->base;
    return STRATA_OK;
}

static const st_provider provider = {"reference_cuda", ST_OP_CONTRACT, enumerate, build, ST_ON_CUDA};

static int list(int i, strata_kernel_info *info)
{
    if (i != 0) return 0;
    *info = st_plan_gpu_kernel_info(ID, "reference", "any", "sm80",
                                    "k ascending, one accumulator in f64 (integers modulo 2^32)");
    return 1;
}
__attribute__((constructor)) static void list_kernels(void) { st_plan_register_kernels(list); }

void st_cuda_reference_register(void)
{
    st_plan_register(&provider);
    st_plan_register_kernels(list);
}
