/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90.c - the provider of the Hopper kernels: candidates (one a row), plans, runs.
 *
 * A run copies the operands that TMA does not read, encodes tensor maps (kept a thread, by addresses, as most runs repeat their last ones), and launches. The launches overlap: each
 * kernel waits itself for its predecessor (programmatic dependent launch). A run whose addresses are not multiples of 16 goes to a twin of
 * its plan that copies every operand. */
#include "tile/cuda/gemm_sm90.h"
#include "tile/cuda/own_tile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct st_sm90_plan {
    st_contract_plan head;
    st_sm90 q;
    uint64_t serial; /* of all plans of the process: names the plan in the threads' memory of maps */
    const st_gpu_kernel *kernel, *pack[2], *sum, *exact;
    int slots;         /* clusters that run at a time */
    strata_plan *twin; /* with scales: the plan for any address */
    char *text;
    st_gparams sum_params;
} st_sm90_plan;

/* The maps of a plan's last run in this thread. */
typedef struct st_maps {
    uint64_t serial;
    const void *a, *b, *c;
    st_gpu_map ma, mb, mc;
} st_maps;
enum { RECENT = 16 };
static _Thread_local st_maps recent[RECENT];

/* block: of a cluster's member; warp: of a consumer's warp group; instruction: wgmma's, 32 bytes of k */
void st_sm90_tile(const st_sm90 *q, strata_tile *t)
{
    const st_sm90_row *r = q->row;
    *t = (strata_tile){.block_m = r->bm,
                       .block_n = r->bn,
                       .block_k = 128 / q->es,
                       .warp_m = r->pp ? r->bm : r->bm / r->consumers,
                       .warp_n = r->bn,
                       .warp_k = 128 / q->es,
                       .instruction_m = 64,
                       .instruction_n = r->bn,
                       .instruction_k = 32 / q->es,
                       .stages = r->stages,
                       .cluster_m = r->cm,
                       .cluster_n = r->cn,
                       .split_k = q->splits,
                       .raster = r->raster};
}

void st_sm90_candidate(const st_contract *c, const st_sm90 *q, bool usable, st_candidate *x)
{
    const st_sm90_row *row = q->row;
    st_sm90_id(row, (int)(usable ? q->g.c.ta : c->ta), (int)(usable ? q->g.c.tb : c->tb), (int)c->tc,
               q->a.mn && !q->turned, q->b.mn || q->turned, x->kernel, sizeof x->kernel);
    x->order = st_sm90_order(row, (int)c->ta);
    x->row = row;
    x->us = usable ? q->us : -1;
    x->workspace = usable ? q->workspace : 0;
    x->row_count_matters = row->kind == ST_SM90_SPLIT;
    x->order_arg = usable && q->splits > 1 ? q->splits : 0;
    if (usable) st_sm90_tile(q, &x->tile);
}

static int enumerate(strata_handle *h, const st_problem *p, st_candidate *out, int max)
{
    int count, n = 0;
    const st_contract *c = p->data;
    const st_sm90_row *r = st_sm90_rows(&count);
    for (int i = 0; i < count && n < max; i++) {
        st_candidate *x = &out[n];
        st_sm90 q = {.row = &r[i]};
        memset(x, 0, sizeof *x);
        const bool ok = !st_contract_rules(c, x->why, sizeof x->why) &&
                        st_sm90_configure(&r[i], c, p->text, h->gpu, &q, x->why, sizeof x->why);
        st_sm90_candidate(c, &q, ok, x);
        n++;
        if (!ok && h->gpu->cc != 90) break; /* one row says it for all */
    }
    return n;
}

/* ---- maps --------------------------------------------------------------------------------------------------------------------- */

/* Rows of a box: of an operand of fewer than a tile's it holds no others, since rows outside cost as much to load (and more, where all blocks want
 * the same few lines). What the ring then has in their place reaches no element of C. */
static int box_rows(const st_sm90 *q, const st_sm90_side *s, int tile)
{
    if (s->mn || s->part || q->row->cm * q->row->cn > 1) return tile;
    return (int)st_min64(tile, st_round_up(s->rows, 8));
}
int st_sm90_stage_bytes(const st_sm90 *q)
{
    return 128 * (box_rows(q, &q->a, q->row->bm) + box_rows(q, &q->b, q->row->bn)) *
           (st_sm90_holds_parts(q->row) ? 3 : 1);
}

strata_status st_sm90_map(strata_handle *h, const st_sm90 *q, const st_sm90_side *s, int type, int tile,
                          const void *base, st_gpu_map *map)
{
    const int kb = 128 / q->es;
    const int64_t parts = s->part ? 3 : 1, item = s->item ? s->item : s->part; /* one plane after another */
    const int64_t rows =
        s->part
            ? s->panel
            : s->rows; /* of a last, shorter panel the rest is of the one before, and C's end cuts it off */
    const int64_t dim[3] = {s->mn ? rows : q->K, s->mn ? q->K : rows, (s->item ? q->G : 1) * parts};
    const int64_t stride[3] = {0, s->pitch * q->es, item ? item * q->es : 16};
    const int box[3] = {kb, s->mn ? kb : box_rows(q, s, tile), 1};
    return st_gpu_map_tiled(h, map,
                            q->tf32   ? ST_GPU_TF32
                            : s->part ? STRATA_BF16
                                      : type,
                            q->batch ? 3 : 2, base, dim, stride, box, 128);
}

static strata_status c_map(strata_handle *h, const st_sm90 *q, void *base, st_gpu_map *map)
{
    const int64_t dim[3] = {q->N, q->M, q->G}, stride[3] = {0, q->ldc * q->cs, q->cg ? q->cg * q->cs : 16};
    const int box[3] = {128 / q->cs, q->row->bm / q->row->consumers, 1};
    return st_gpu_map_tiled(h, map, (int)q->g.c.tc, q->batch ? 3 : 2, base, dim, stride, box, 128);
}

static const st_maps *maps_of(strata_handle *h, const st_sm90_plan *p, const void *a, const void *b, void *c)
{
    const st_sm90 *q = &p->q;
    st_maps *m = &recent[p->serial % RECENT];
    if (ST_LIKELY(m->serial == p->serial && m->a == a && m->b == b && m->c == c)) return m;
    m->serial = 0;
    if (st_sm90_map(h, q, &q->a, (int)q->g.c.ta, q->row->bm / q->row->cn, a, &m->ma) ||
        st_sm90_map(h, q, &q->b, (int)q->g.c.tb, q->row->bn / q->row->cm, b, &m->mb) ||
        (q->row->tma_store && c_map(h, q, c, &m->mc)))
        return NULL;
    m->serial = p->serial;
    m->a = a;
    m->b = b;
    m->c = c;
    return m;
}

/* ---- runs --------------------------------------------------------------------------------------------------------------------- */

/* Does the copy turn its source round? */
static bool along_rows(const st_sm90 *q, const st_sm90_side *s) { return !s->mn && s->ks != 1 && q->K > 1; }

/* A grid for so much work, of at most a part of what the device holds. */
static unsigned copy_blocks(const strata_handle *h, int64_t work, int of)
{
    return (unsigned)st_min64(work + 1, (int64_t)h->gpu->sms * 8 / of);
}

/* X6: `rows` rows of A or B into the workspace, as three parts */
static strata_status split_side(strata_handle *h, const st_sm90_plan *p, int i, const void *src, void *dst,
                                void *found, int64_t rows)
{
    const st_sm90 *q = &p->q;
    const st_sm90_side *s = i ? &q->b : &q->a;
    st_sm90_parts a = {src,   dst,   found,    rows,    q->K,    s->rs,
                       s->ks, s->gs, s->pitch, s->item, s->part, (int32_t)(s->gs ? q->G : 1)};
    void *args[] = {&a};
    const int64_t work = !along_rows(q, s) ? st_ceil_div(q->K, 4) * rows * a.g / 256
                                           : st_ceil_div(q->K * q->es, 128) * st_ceil_div(rows, 64) * a.g;
    const st_gpu_launch l = {.kernel = p->pack[i],
                             .grid = {copy_blocks(h, work, 1), 1, 1},
                             .block = {256, 1, 1},
                             .overlap = true,
                             .args = args};
    return st_gpu_run(h, &l);
}

/* Copies of A and B (to: NULL where there is none to make): at once where one kernel does both. */
static strata_status copy_sides(strata_handle *h, const st_sm90_plan *p, const void *const from[2],
                                char *const to[2])
{
    const st_sm90 *q = &p->q;
    st_sm90_pack side[2];
    int64_t work[2];
    for (int i = 0; i < 2; i++) {
        const st_sm90_side *s = i ? &q->b : &q->a;
        side[i] = (st_sm90_pack){from[i], to[i], s->rows,  q->K,    s->rs,
                                 s->ks,   s->gs, s->pitch, s->item, (int32_t)(s->gs ? q->G : 1)};
        if (s->mn) { /* its k are the copy's rows */
            side[i].rows = q->K;
            side[i].k = s->rows;
            side[i].rs = s->ks;
            side[i].ks = s->rs;
        }
        work[i] = !along_rows(q, s) ? st_ceil_div(side[i].k * q->es, 496) * side[i].rows * side[i].g / 32
                                    : st_ceil_div(q->K * q->es, 128) * st_ceil_div(s->rows, 64) * side[i].g;
    }
    const bool both = to[0] && to[1] && p->pack[0] == p->pack[1];
    for (int i = 0; i < 2; i++) {
        if (!to[i]) continue;
        st_sm90_pack_both args = {{side[i], side[1]}, copy_blocks(h, work[i], 1 + both)};
        void *list[] = {&args};
        const st_gpu_launch l = {.kernel = p->pack[i],
                                 .grid = {args.first + (both ? copy_blocks(h, work[1], 2) : 0), 1, 1},
                                 .block = {256, 1, 1},
                                 .overlap = true,
                                 .args = list};
        const strata_status e = st_gpu_run(h, &l);
        if (e || both) return e;
    }
    return STRATA_OK;
}

static strata_status launch_sum(strata_handle *h, const st_sm90_plan *p, void *const data[], double alpha,
                                double beta, const void *parts, int splits)
{
    const st_sm90 *q = &p->q;
    st_gparams a = p->sum_params;
    a.alpha = alpha;
    a.beta = beta;
    a.c = data[2];
    a.part = (void *)(uintptr_t)parts;
    a.splits = (uint32_t)splits;
    st_cuda_epilogue_params(&q->g.own, q->g.swapped, data, &a.epi);
    void *args[] = {&a};
    const st_gpu_launch l = {.kernel = p->sum,
                             .grid = {(unsigned)st_ceil_div(q->N * q->M * q->g.G, 256), 1, 1},
                             .block = {256, 1, 1},
                             .args = args};
    return st_gpu_run(h, &l);
}

/* The part of C that a launch computes. */
typedef struct st_panel {
    int64_t m, rows, n, cols;
} st_panel;

/* X6: the same product in f32 arithmetic, which does something only where the parts could not. */
static strata_status launch_exact(strata_handle *h, const st_sm90_plan *p, const void *a, const void *b,
                                  void *c, const void *found, double alpha, double beta, const st_panel *at,
                                  st_epi_params *epi)
{
    const st_sm90 *q = &p->q;
    st_sm90_exact x = {a,
                       b,
                       c,
                       found,
                       q->a.rs,
                       q->a.ks,
                       q->a.gs,
                       q->b.rs,
                       q->b.ks,
                       q->b.gs,
                       q->ldc,
                       q->cg,
                       (int32_t)at->rows,
                       (int32_t)at->cols,
                       (int32_t)q->K,
                       (int32_t)q->G,
                       (int32_t)at->m,
                       (int32_t)at->n,
                       (float)alpha,
                       (float)beta};
    void *args[] = {&x, epi};
    const int64_t tiles = st_ceil_div(at->rows, 64) * st_ceil_div(at->cols, 64) * q->G;
    const st_gpu_launch l = {.kernel = p->exact,
                             .grid = {(unsigned)st_min64(tiles, (int64_t)h->gpu->sms * 4), 1, 1},
                             .block = {256, 1, 1},
                             .args = args};
    return st_gpu_run(h, &l);
}

/* One item of the outer batch axes: offsets in elements. */
static strata_status launch(strata_handle *h, const st_sm90_plan *p, const char *a, const char *b, char *c,
                            double alpha, double beta, int64_t item, const void *found, const st_panel *at,
                            st_epi_params *epi, st_sm90_scales *scale)
{
    const st_sm90 *q = &p->q;
    const st_sm90_row *row = q->row;
    const bool split = row->kind == ST_SM90_SPLIT;
    const int cs = split ? 4 : q->cs;
    const int64_t ldc = split ? q->N : q->ldc, cg = split ? q->M * q->N : q->cg;
    const st_maps *m = maps_of(h, p, a, b, c);
    if (!m) return h->err.status;
    st_sm90_args args = {.m = (int32_t)(at->m + at->rows),
                         .n = (int32_t)(at->n + at->cols),
                         .m_at = (int32_t)at->m,
                         .n_at = (int32_t)at->n,
                         .k = (int32_t)q->K,
                         .g = (int32_t)q->G,
                         .g0 = (int32_t)(item * q->G),
                         .raster = row->raster,
                         .splits = q->splits,
                         .az = q->a.item != 0,
                         .bz = q->b.item != 0,
                         .vec = (uintptr_t)c % 16 == 0 && ldc * cs % 16 == 0 && cg * cs % 16 == 0,
                         .bytes = st_sm90_stage_bytes(q),
                         .scaled = alpha != 1 || beta != 0 || (q->integer && q->g.c.tc != STRATA_I32),
                         .alpha = alpha,
                         .beta = beta,
                         .c = c,
                         .ldc = ldc,
                         .cg = cg,
                         .found = found};
    const int64_t tiles = st_ceil_div(at->rows, row->bm * row->cm) *
                          st_ceil_div(at->cols, row->bn * row->cn) * q->G * q->splits;
    const unsigned cl = (unsigned)(row->cm * row->cn);
    void *list[] = {(void *)(uintptr_t)&m->ma,
                    (void *)(uintptr_t)&m->mb,
                    (void *)(uintptr_t)(row->tma_store ? &m->mc : &m->ma),
                    &args,
                    p->head.expr ? (void *)epi : (void *)scale,
                    scale};
    const st_gpu_launch l = {.kernel = p->kernel,
                             .grid = {(unsigned)st_min64(tiles, p->slots) * cl, 1, 1},
                             .block = {(unsigned)row->consumers * 128 + 128, 1, 1},
                             .cluster = {cl, 1, 1},
                             .smem = st_sm90_smem(q),
                             .overlap = true,
                             .args = list};
    return st_gpu_run(h, &l);
}

/* The plan for the same problem at any address, made when the first such run comes. */
static strata_status run_twin(strata_handle *h, const st_sm90_plan *p, void *const data[],
                              const strata_run *r, double alpha, double beta)
{
    st_contract c = p->head.problem;
    const strata_plan *twin;
    c.unaligned = 1;
    const st_problem pr = {ST_OP_CONTRACT, "strata_plan_run", &c, sizeof c, p->text};
    strata_status s = st_plan_get(h, &pr, &twin);
    if (s) return s;
    const strata_scalar va = strata_real(alpha), vb = strata_real(beta);
    strata_run again = r ? *r : (strata_run){0};
    again.alpha = &va;
    again.beta = &vb;
    if (again.workspace && again.workspace_bytes < twin->workspace) again.workspace = NULL;
    return twin->run(h, twin, data, &again);
}

/* The epilogue's text moves operands with an element for each of C's in pairs. */
static bool pairs_fit(const st_contract *c, void *const data[])
{
    for (int i = 0; i < (int)c->epi_operands; i++) {
        const st_epi_operand *o = &c->epi[i];
        bool m = false, n = false;
        for (int64_t d = 0; d < c->m.count; d++) m |= o->sm[d] != 0;
        for (int64_t d = 0; d < c->n.count; d++) n |= o->sn[d] != 0;
        if (m && n && (uintptr_t)data[3 + i] % (2 * strata_type_bits((strata_type)o->type) / 8)) return false;
    }
    return true;
}

static int64_t outer_offset(const st_contract *c, int which, int64_t item)
{
    int64_t off = 0;
    for (int64_t d = c->batch.count - 2; d >= 0; d--) {
        off += item % c->batch.ax[d].len * st_axis_stride(&c->batch.ax[d], which);
        item /= c->batch.ax[d].len;
    }
    return off;
}

/* f32 by three bf16 parts: all of C at a time, or as many rows and columns as their parts fit the workspace. */
static strata_status run_parts(strata_handle *h, const st_sm90_plan *p, const char *a, const char *b, char *c,
                               double alpha, double beta, char *ws, st_epi_params *epi)
{
    const st_sm90 *q = &p->q;
    strata_status s = STRATA_OK;
    for (st_panel at = {0}; at.m < q->M && !s; at.m += at.rows) {
        const char *const rows = a + at.m * q->a.rs * 4;
        at.rows = st_min64(q->a.panel, q->M - at.m);
        if ((s = st_gpu_set(h, ws, 0, 4)) || (s = split_side(h, p, 0, rows, ws + q->a.at, ws, at.rows)))
            break;
        for (at.n = 0; at.n < q->N && !s; at.n += at.cols) {
            const char *const cols = b + at.n * q->b.rs * 4;
            at.cols = st_min64(q->b.panel, q->N - at.n);
            s = split_side(h, p, 1, cols, ws + q->b.at, ws, at.cols);
            if (!s) s = launch(h, p, ws + q->a.at, ws + q->b.at, c, alpha, beta, 0, ws, &at, epi, NULL);
            if (!s)
                s = launch_exact(h, p, rows, cols, c + (at.m * q->ldc + at.n) * 4, ws, alpha, beta, &at, epi);
        }
    }
    return s;
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_sm90_plan *p = (const st_sm90_plan *)plan;
    const st_sm90 *q = &p->q;
    const st_contract *c = &q->g.c;
    const uint64_t t0 = st_trace_begin();
    double alpha, beta;
    strata_status s = st_contract_scalars(h, &p->head, r, &alpha, &beta);
    if (s) return s;
    if (alpha == 0) return launch_sum(h, p, data, alpha, beta, NULL, 0);
    const bool exchanged = q->g.swapped != q->turned;
    const char *a = data[exchanged], *b = data[!exchanged];
    const bool ready[2] = {r && (r->prepared >> exchanged & 1), r && (r->prepared >> !exchanged & 1)};
    if ((!q->a.pack && (uintptr_t)a % 16) || (!q->b.pack && (uintptr_t)b % 16) ||
        (q->row->tma_store && (uintptr_t)data[2] % 16) || !pairs_fit(&p->head.problem, data)) {
        if (p->twin) return p->twin->run(h, p->twin, data, r);
        if (!ready[0] && !ready[1]) return run_twin(h, p, data, r, alpha, beta);
        return st_fail(
            &h->err, STRATA_ERROR_LAYOUT,
            "strata_plan_run: beside a prepared operand the other addresses must be multiples of 16 (%s)",
            plan->title);
    }
    char *ws = NULL;
    if (plan->workspace && !(ws = st_plan_workspace(h, plan, r))) return h->err.status;
    st_epi_params epi;
    if (p->head.expr) st_cuda_epilogue_params(&q->g.own, q->g.swapped, data, &epi);
    const bool split = q->row->kind == ST_SM90_SPLIT, parts = q->row->kind == ST_SM90_X6;
    const st_panel all = {0, q->M, 0, q->N};
    st_sm90_scales scale = q->scale;
    if (q->scales) {
        void *const *const at = &data[3 + p->head.problem.epi_operands];
        scale.a = at[exchanged];
        scale.b = at[!exchanged];
    }
    if (parts)
        s = run_parts(h, p, a, b, data[2], alpha, beta, ws, &epi);
    else {
        const void *const from[2] = {a, b};
        char *const to[2] = {q->a.pack && !ready[0] ? ws + q->a.at : NULL,
                             q->b.pack && !ready[1] ? ws + q->b.at : NULL};
        if (to[0] || to[1]) s = copy_sides(h, p, from, to);
    }
    if (q->a.pack && !ready[0]) a = ws + q->a.at;
    if (q->b.pack && !ready[1]) b = ws + q->b.at;
    for (int64_t i = 0; i < q->outer && !s && !parts; i++)
        s = launch(h, p, a + outer_offset(c, q->turned ? 'b' : 'a', i) * q->es,
                   b + outer_offset(c, q->turned ? 'a' : 'b', i) * q->es,
                   split ? ws + q->partial_at : (char *)data[2] + outer_offset(c, 'c', i) * q->cs, alpha,
                   beta, i, NULL, &all, &epi, &scale);
    if (!s && split) s = launch_sum(h, p, data, alpha, beta, ws + q->partial_at, q->splits);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel, "%lld x %lldx%lldx%lld%s%s%s parts %d",
                     (long long)q->g.G, (long long)q->M, (long long)q->N, (long long)q->K,
                     q->g.swapped ? " transposed" : "", q->a.pack ? " A copied" : "",
                     q->b.pack ? " B copied" : "", q->splits);
    return s;
}

/* ---- plans -------------------------------------------------------------------------------------------------------------------- */

static void destroy(strata_plan *plan)
{
    st_sm90_plan *p = (st_sm90_plan *)plan;
    free(p->text);
    if (p->twin) strata_plan_destroy(p->twin);
    st_contract_plan_destroy(plan);
}

static strata_status get_kernels(strata_handle *h, st_sm90_plan *p)
{
    st_sm90 *q = &p->q;
    const st_contract *c = &q->g.c;
    st_gspec spec;
    char *text = NULL;
    strata_status s =
        st_cuda_epilogue_text(&h->err, &q->g.own, p->head.expr, q->g.swapped != q->turned, &text);
    if (!s) {
        st_sm90_spec(q->row, (int)c->ta, (int)c->tb, (int)c->tc, q->tf32, q->a.mn && !q->turned,
                     q->b.mn || q->turned, q->batch, text, &spec);
        if (q->scales) st_generic_option(&spec, "-DSCALES=%d", q->scales);
        s = st_gpu_kernel_get(h, &spec.spec, &p->kernel);
    }
    if (!s && q->turned) { /* the kernel for alpha = 0 computes C as it is */
        free(text);
        s = st_cuda_epilogue_text(&h->err, &q->g.own, p->head.expr, q->g.swapped, &text);
    }
    if (!s) {
        st_sm90_sum_spec(q, text, &spec);
        s = st_gpu_kernel_get(h, &spec.spec, &p->sum);
    }
    const bool x6 = q->row->kind == ST_SM90_X6;
    if (!s && x6) {
        st_sm90_exact_spec(text, &spec);
        s = st_gpu_kernel_get(h, &spec.spec, &p->exact);
    }
    free(text);
    for (int i = 0; i < 2 && !s; i++) {
        const st_sm90_side *x = i ? &q->b : &q->a;
        if (!x->pack) continue;
        if (x6)
            st_sm90_parts_spec(along_rows(q, x), &spec);
        else
            st_sm90_pack_spec(q->es, along_rows(q, x), &spec);
        s = st_gpu_kernel_get(h, &spec.spec, &p->pack[i]);
    }
    return s;
}

/* strata_prepare: the copy that a run would make. The other operand's sizes are not part of it. */
static const st_sm90_side *side_of(const st_sm90_plan *p, int operand, int *i)
{
    *i = operand != (p->q.g.swapped != p->q.turned);
    return *i ? &p->q.b : &p->q.a;
}
static size_t prepared_bytes(const strata_plan *plan, int operand)
{
    int i;
    return side_of((const st_sm90_plan *)plan, operand, &i)->bytes;
}
static strata_status prepare(strata_handle *h, const strata_plan *plan, int operand, const void *src,
                             void *dst)
{
    const void *from[2] = {NULL};
    char *to[2] = {NULL};
    int i;
    side_of((const st_sm90_plan *)plan, operand, &i);
    from[i] = src;
    to[i] = dst;
    return copy_sides(h, (const st_sm90_plan *)plan, from, to);
}

strata_status st_sm90_build(strata_handle *h, const st_problem *problem, const st_candidate *c,
                            const st_block_scale *scale, strata_plan **plan)
{
    static atomic_uint_fast64_t serials;
    st_contract_plan *head;
    char why[160];
    *plan = NULL;
    strata_status s = st_contract_plan_new(h, problem, sizeof(st_sm90_plan), &head);
    if (s) return s;
    st_sm90_plan *p = (st_sm90_plan *)head;
    head->base.destroy = destroy;
    p->serial = atomic_fetch_add(&serials, 1) + 1;
    if (!st_sm90_configure(c->row, &head->problem, problem->text, h->gpu, &p->q, why, sizeof why) ||
        (scale && !st_sm90_scale(&p->q, scale, why, sizeof why)))
        s = st_fail(&h->err, STRATA_ERROR_INTERNAL, "%s: %s: %s", problem->who, c->kernel, why);
    if (!s && problem->text && !(p->text = strdup(problem->text)))
        s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a plan", problem->who);
    if (!s) s = get_kernels(h, p);
    if (!s) s = st_tile_registers(h, problem->who, c, p->kernel);
    if (!s) {
        const st_sm90_row *row = p->q.row;
        const unsigned cl = (unsigned)(row->cm * row->cn);
        p->slots = h->gpu->sms;
        if (cl > 1) {
            const st_gpu_launch l = {.kernel = p->kernel,
                                     .grid = {(unsigned)h->gpu->sms / cl * cl, 1, 1},
                                     .block = {(unsigned)row->consumers * 128 + 128, 1, 1},
                                     .cluster = {cl, 1, 1},
                                     .smem = st_sm90_smem(&p->q)};
            p->slots = st_gpu_clusters(h, &l);
            if (p->slots < 1) p->slots = 1;
        }
        const st_grow none = {.bm = 1, .bn = 1, .bk = 1};
        const st_gconfig one = {.kax = 1, .cv = 1, .splits = 1};
        st_generic_params(&none, &p->q.g, &one, &p->sum_params);
        head->base.workspace = p->q.workspace;
        head->base.run = run;
        for (int operand = 0; operand < 2 && row->kind != ST_SM90_X6; operand++) {
            int i;
            if (side_of(p, operand, &i)->pack) head->base.preparable |= 1u << operand;
        }
        head->base.prepared_bytes = prepared_bytes;
        head->base.prepare = prepare;
        *plan = &head->base;
        return STRATA_OK;
    }
    strata_plan_destroy(&head->base);
    return s;
}

static strata_status build(strata_handle *h, const st_problem *problem, const st_candidate *c,
                           strata_plan **plan)
{
    return st_sm90_build(h, problem, c, NULL, plan);
}

void st_sm90_set_twin(strata_plan *plan, strata_plan *twin) { ((st_sm90_plan *)plan)->twin = twin; }

const st_provider st_sm90_provider = {"gemm_sm90", ST_OP_CONTRACT, enumerate, build, ST_ON_CUDA};

void st_sm90_register(void)
{
    st_plan_register(&st_sm90_provider);
    st_plan_register_tiles(&st_sm90_tiles);
    st_plan_register_kernels(st_sm90_list);
}
