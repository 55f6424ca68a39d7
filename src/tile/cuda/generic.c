/* SPDX-License-Identifier: Apache-2.0 */
/* generic.c - the provider of the generic CUDA kernels: candidates (each row with and without a split of k), plans, runs.
 *
 * A plan has its parameters ready; a run fills in addresses and scalars and launches one kernel, or two when k is split. Where the addresses of a run lack the alignment that the
 * kernel copies with, a second one takes over, whose copies are single elements: the same sums in the same order. It is rare, so it is got when the first such run
 * comes (not under capture), and building a plan does not wait for it. */
#include "tile/cuda/generic.h"
#include "tile/cuda/own_tile.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE, NARROW };

typedef struct st_gplan {
    st_contract_plan head;
    st_gproblem g;
    const st_grow *row[2]; /* by alignment, as all that follows */
    st_gconfig f[2];
    _Atomic(const st_gpu_kernel *) kernel[2], sum[2]; /* sum: NULL without a split */
    st_gparams params[2];
} st_gplan;

bool st_generic_takes(const st_grow *row, const st_gproblem *g, int64_t math, char *why, size_t n)
{
    const int64_t tc = g->c.tc;
    bool c_fits = false;
    for (int i = 0; i < ST_COUNT(row->tc); i++) c_fits |= tc && tc == row->tc[i];
    if (g->c.ta != row->ta || g->c.tb != row->tb || !c_fits) {
        snprintf(why, n, "takes %s x %s", strata_type_name((strata_type)row->ta),
                 strata_type_name((strata_type)row->tb));
        return false;
    }
    if (row->math && row->math != math) {
        snprintf(why, n, "rounds its factors: only with the math mode that allows it");
        return false;
    }
    return true;
}

static const char *order_of(const st_grow *row, bool split)
{
    if (row->kind == ST_G_BATCH)
        return st_type_is_complex(row->ta) ? "k ascending, two products to each part's accumulator"
                                           : "k ascending, one accumulator";
    if (row->kind >= ST_G_SKINNY_K)
        return split ? "k in even parts, each in pieces that a block's warps sum in turn; warps, then parts "
                       "added in order"
                     : "k in pieces that a block's warps sum in turn; warps added in order";
    if (row->ta == STRATA_C64)
        return split ? "k in even parts, each ascending, two products to each part's accumulator; parts "
                       "added in order"
                     : "k ascending, two products to each part's accumulator";
    if (row->kind == ST_G_SIMT)
        return split ? "k in even parts, each ascending in one accumulator; parts added in order"
                     : "k ascending, one accumulator";
    return split ? "k in even parts, each ascending by the instruction's group of k; parts added in order"
                 : "k ascending by the instruction's group of k, one accumulator";
}

/* What fixes an order of these words: the parts, and of the skinny kernels the pieces of k that their warps take. */
static int64_t order_number(const st_grow *row, const st_gconfig *f)
{
    const int64_t parts = f->splits > 1 ? f->splits : 0;
    if (row->kind == ST_G_LDS) return parts * 32 + row->lanes_m;
    if (row->kind < ST_G_SKINNY_K || row->kind == ST_G_BATCH) return parts;
    return ((parts * 64 + f->warps_k) * 64 + f->unroll) * 64 + f->vec[0] * 8 + f->vec[1];
}

void st_generic_tile(const st_grow *row, const st_gconfig *f, strata_tile *t)
{
    *t = (strata_tile){.block_m = row->bm,
                       .block_n = row->bn,
                       .block_k = row->bk,
                       .warp_m = row->warps_m > 0 ? row->bm / row->warps_m : 0,
                       .warp_n = row->warps_n > 0 ? row->bn / row->warps_n : 0,
                       .stages = row->stages,
                       .split_k = f->splits};
}

void st_generic_candidate(const st_grow *row, const st_gproblem *g, const st_gconfig *f, const st_gpu *gpu,
                          bool split, bool usable, st_candidate *x)
{
    st_generic_id(row, (int)g->own.tc, split, x->kernel, sizeof x->kernel);
    x->order = order_of(row, split);
    x->row = row;
    x->us = -1;
    if (!usable) return;
    x->us = st_generic_us(row, g, f, gpu);
    x->workspace = st_generic_workspace(row, g, f);
    x->order_arg = order_number(row, f);
    x->row_count_matters = f->splits > 1 || row->kind == ST_G_SKINNY_K || row->kind == ST_G_SKINNY_N;
    st_generic_tile(row, f, &x->tile);
}

static int enumerate(strata_handle *h, const st_problem *p, st_candidate *out, int max)
{
    const st_contract *c = p->data;
    st_gproblem g;
    int count, n = 0;
    const st_grow *rows = st_generic_rows(&count);
    st_generic_problem(c, p->text, &g);
    for (int i = 0; i < count; i++) {
        char why[160];
        if (!st_generic_takes(&rows[i], &g, c->math, why, sizeof why) &&
            !(rows[i].ta == g.c.ta && rows[i].tb == g.c.tb))
            continue;
        for (int split = 0; split < (rows[i].kind == ST_G_BATCH ? 1 : 2) && n < max; split++) {
            st_candidate *x = &out[n++];
            st_gconfig f;
            memset(x, 0, sizeof *x);
            x->arg[0] = split;
            const bool ok =
                st_generic_takes(&rows[i], &g, c->math, x->why, sizeof x->why) &&
                st_generic_configure(&rows[i], &g, h->gpu, p->text != NULL, split, &f, x->why, sizeof x->why);
            st_generic_candidate(&rows[i], &g, &f, h->gpu, split, ok, x);
        }
    }
    return n;
}

/* The kernels of one alignment. */
static strata_status get_kernels(strata_handle *h, st_gplan *p, int narrow)
{
    const int tc = (int)p->g.c.tc;
    char *text = NULL;
    st_gspec spec;
    const st_gpu_kernel *k;
    strata_status s = st_cuda_epilogue_text(&h->err, &p->g.own, p->head.expr, p->g.swapped, &text);
    if (!s && p->f[narrow].splits > 1) {
        st_gconfig one = p->f[narrow];
        if (narrow) one.cv = 1;
        st_generic_sum_spec(p->row[narrow], &p->g, &one, tc, text, &spec);
        s = st_gpu_kernel_get(h, &spec.spec, &k);
        if (!s) atomic_store(&p->sum[narrow], k);
    }
    if (!s) {
        st_generic_spec(p->row[narrow], &p->g, &p->f[narrow], tc, text, &spec);
        s = st_gpu_kernel_get(h, &spec.spec, &k);
        if (!s) atomic_store(&p->kernel[narrow], k);
    }
    free(text);
    return s;
}

/* A run whose addresses are not aligned: its kernels are got now if they are not there yet. */
static ST_NOINLINE strata_status get_narrow(strata_handle *h, const st_gplan *p)
{
    if (st_gpu_capturing(h)) {
        st_fail(&h->err, STRATA_ERROR_STATE,
                "%s: the addresses lack the alignment that the plan's kernel copies with, and the kernel for "
                "any alignment "
                "cannot be loaded while the stream is being captured",
                p->head.base.title);
        st_err_remedy(
            &h->err,
            "align A, B and C to 16 bytes, or run the plan once with these addresses before the capture");
        return STRATA_ERROR_STATE;
    }
    return get_kernels(h, (st_gplan *)p, NARROW);
}

strata_status st_generic_scalars(strata_handle *h, const st_contract_plan *p, const strata_run *r,
                                 st_gparams *a)
{
    double alpha[2], beta[2];
    const strata_status s = st_contract_scalars_complex(h, p, r, alpha, beta);
    if (s) return s;
    a->alpha = alpha[0];
    a->alpha_im = alpha[1];
    a->beta = beta[0];
    a->beta_im = beta[1];
    return STRATA_OK;
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_gplan *p = (const st_gplan *)plan;
    const uint64_t t0 = st_trace_begin();
    const int narrow = !st_generic_aligned(&p->g, &p->f[WIDE], data);
    const st_gconfig *f = &p->f[narrow];
    st_gparams a = p->params[narrow];
    strata_status s = st_generic_scalars(h, &p->head, r, &a);
    if (s) return s;
    if (p->g.M == 0 || p->g.N == 0 || p->g.G == 0) return STRATA_OK;
    a.a = data[p->g.swapped];
    a.b = data[!p->g.swapped];
    a.c = data[2];
    if (a.alpha == 0 && a.alpha_im == 0) a.K = 0; /* A and B are not read */
    if (plan->workspace && !(a.part = st_plan_workspace(h, plan, r))) return h->err.status;
    st_cuda_epilogue_params(&p->g.own, p->g.swapped, data, &a.epi);
    if (ST_UNLIKELY(narrow && !atomic_load(&p->kernel[NARROW])) && (s = get_narrow(h, p))) return s;
    void *args[] = {&a};
    const st_gpu_launch l = {.kernel = p->kernel[narrow],
                             .grid = {st_generic_blocks(p->row[narrow], &a), a.splits, 1},
                             .block = {st_generic_threads(p->row[narrow], f), 1, 1},
                             .smem = st_generic_smem(p->row[narrow], f),
                             .args = args};
    s = st_gpu_run(h, &l);
    if (!s && f->splits > 1) {
        const int64_t threads = st_ceil_div(p->g.N, narrow ? 1 : f->cv) * p->g.M * p->g.G;
        const st_gpu_launch sum = {.kernel = p->sum[narrow],
                                   .grid = {(unsigned)st_ceil_div(threads, 256), 1, 1},
                                   .block = {256, 1, 1},
                                   .args = args};
        s = st_gpu_run(h, &sum);
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel, "%lld x %lldx%lldx%lld%s", (long long)p->g.G,
                     (long long)p->g.M, (long long)p->g.N, (long long)p->g.K, narrow ? ", unaligned" : "");
    return s;
}

static strata_status build(strata_handle *h, const st_problem *problem, const st_candidate *c,
                           strata_plan **plan)
{
    st_contract_plan *head;
    const st_grow *row = c->row;
    char why[160];
    *plan = NULL;
    strata_status s = st_contract_plan_new(h, problem, sizeof(st_gplan), &head);
    if (s) return s;
    st_gplan *p = (st_gplan *)head;
    p->row[WIDE] = row;
    st_generic_problem(&head->problem, problem->text, &p->g);
    if (!st_generic_configure(row, &p->g, h->gpu, problem->text != NULL, c->arg[0] != 0, &p->f[WIDE], why,
                              sizeof why))
        s = st_fail(&h->err, STRATA_ERROR_INTERNAL, "%s: %s: %s", problem->who, c->kernel, why);
    if (!s) {
        p->f[NARROW] = p->f[WIDE];
        p->row[NARROW] = st_generic_unaligned(row, &p->f[NARROW]);
        s = get_kernels(h, p, WIDE);
        if (!s) s = st_tile_registers(h, problem->who, c, p->kernel[WIDE]);
    }
    if (s) {
        strata_plan_destroy(&head->base);
        return s;
    }
    for (int i = WIDE; i <= NARROW; i++) st_generic_params(p->row[i], &p->g, &p->f[i], &p->params[i]);
    head->base.workspace = st_generic_workspace(row, &p->g, &p->f[WIDE]);
    head->base.run = run;
    *plan = &head->base;
    return STRATA_OK;
}

/* ---- lists ---------------------------------------------------------------------------------------------------------------- */

typedef struct listed {
    char id[96], types[24];
    const st_grow *row;
} listed;
static listed list_rows[512];
static int list_count;

static void fill_list(void)
{
    int count;
    const st_grow *rows = st_generic_rows(&count);
    for (int i = 0; i < count; i++)
        for (int t = 0; t < ST_COUNT(rows[i].tc) && rows[i].tc[t]; t++)
            for (int split = 0;
                 split < (rows[i].kind == ST_G_BATCH ? 1 : 2) && list_count < ST_COUNT(list_rows); split++) {
                listed *x = &list_rows[list_count++];
                x->row = &rows[i];
                st_generic_id(x->row, rows[i].tc[t], split, x->id, sizeof x->id);
                snprintf(x->types, sizeof x->types, "%s%s%s", strata_type_name((strata_type)rows[i].ta),
                         strata_type_name((strata_type)rows[i].tb),
                         strata_type_name((strata_type)rows[i].tc[t]));
            }
}
static pthread_once_t list_once = PTHREAD_ONCE_INIT;

static int list(int i, strata_kernel_info *info)
{
    pthread_once(&list_once, fill_list);
    if (i < 0 || i >= list_count) return 0;
    const listed *x = &list_rows[i];
    *info = st_plan_gpu_kernel_info(x->id, "gemm", x->types, x->row->cc >= 89 ? "sm89" : "sm80",
                                    order_of(x->row, strstr(x->id, "_sk_") != NULL));
    return 1;
}

const st_provider st_generic_provider = {"generic_cuda", ST_OP_CONTRACT, enumerate, build, ST_ON_CUDA};

__attribute__((constructor)) static void list_kernels(void) { st_plan_register_kernels(list); }

void st_generic_register(void)
{
    st_plan_register(&st_generic_provider);
    st_plan_register_tiles(&st_generic_tiles);
    st_plan_register_kernels(list);
}
