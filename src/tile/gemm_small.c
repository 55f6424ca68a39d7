/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_small.c - the provider of small products, and the direct path that needs no plan.
 *
 * Nothing is packed where columns of B are contiguous; else B alone is turned into panels. The plan holds function pointers, masks
 * and the split into tiles, so that a run of one tile is one indirect call. Every element is one sum over k in ascending order (complex: two,
 * of the real and of the imaginary parts of A times B, joined at the end), whatever the other sizes are. */
#include "tile/gemm_small.h"
#include <strata/blas.h>
#include <stdio.h>
#include <string.h>

/* ---- cutting ----------------------------------------------------------------------------------------------------- */
ST_INLINE const st_small_width *width_for(const st_small_kernel *kr, int64_t n)
{
    const st_small_width *w = kr->w;
    for (int i = 1; i < kr->widths && kr->w[i].vl >= n; i++) w = &kr->w[i];
    return w;
}

/* vectors of the next tile when `left` are left: as wide as can be, but 3 + 2 rather than 4 + 1 */
ST_INLINE int next_vectors(const st_small_width *w, int64_t left, bool panels)
{
    return left <= w->nv ? (int)left : w->nv == 4 && left == 5 && !panels ? 3 : w->nv;
}

/* even heights: as many tiles as the tallest would make */
ST_INLINE int64_t tile_height(const st_small_width *w, int nv, int64_t m)
{
    uint32_t most = (uint32_t)w->rows[nv - 1];
    if (m <= most) return m;
    if (m > UINT32_MAX / 2) return most;
    uint32_t tiles = ((uint32_t)m + most - 1) / most;
    return ((uint32_t)m + tiles - 1) / tiles;
}

ST_INLINE st_small_fn kernel_of(const st_small_width *w, bool masked, int nv, int64_t height)
{
    return (masked ? w->masked : w->full)[(nv - 1) * ST_SMALL_ROWS + height - 1];
}

void st_small_divide(const st_small_kernel *kr, int64_t es, const st_small_view *v, st_small_split *out)
{
    const st_small_width *w = width_for(kr, v->n);
    memset(out, 0, sizeof *out);
    for (int64_t j = 0; j < v->n;) {
        const int nv = next_vectors(w, st_ceil_div(v->n - j, w->vl), v->panel > 0);
        const int64_t cols = st_min64(v->n - j, (int64_t)nv * w->vl), last = cols - (int64_t)(nv - 1) * w->vl;
        int64_t across = 1;
        if (nv == w->nv && last == w->vl) { /* equal tiles side by side, as long as the rule above says so */
            across = (v->n - j) / cols;
            int64_t rest = st_ceil_div(v->n - j - across * cols, w->vl);
            if (across > 1 && w->nv == 4 && rest == 1 && !v->panel) across--;
        }
        const int64_t h = tile_height(w, nv, v->m), whole = v->m / h, rest = v->m - whole * h;
        for (int part = 0; part < 2; part++) {
            if (part == 1 && rest == 0) break;
            st_small_part *p = &out->part[out->parts++];
            p->fn = kernel_of(w, last != w->vl, nv, part ? rest : h);
            p->s = (st_small_shape){v->k,   v->ars,           v->acs, v->panel ? v->panel : v->brs,
                                    v->crs, part ? 1 : whole, last,   NULL};
            p->across = across;
            p->cstep = cols * es;
            p->bstep = v->panel ? v->panel * v->k * es : cols * es;
            p->a = part ? whole * h * v->ars * es : 0;
            p->b = v->panel ? (j / v->panel * v->panel * v->k + j % v->panel) * es : j * es;
            p->c = (j + (part ? whole * h * v->crs : 0)) * es;
        }
        j += across * cols;
    }
}

/* ---- the direct path --------------------------------------------------------------------------------------------- */
/* f32, f64, c64, c128 */
#define EVERY_TYPE(isa)                                                                     \
    {                                                                                       \
        &st_kernel_gemm_f32f32f32_small_##isa, &st_kernel_gemm_f64f64f64_small_##isa,       \
            &st_kernel_gemm_c64c64c64_small_##isa, &st_kernel_gemm_c128c128c128_small_##isa \
    }
#define DECLARE(isa)                                                                                         \
    extern const st_small_kernel st_kernel_gemm_f32f32f32_small_##isa, st_kernel_gemm_f64f64f64_small_##isa, \
        st_kernel_gemm_c64c64c64_small_##isa, st_kernel_gemm_c128c128c128_small_##isa
DECLARE(portable);
#if defined(__x86_64__)
DECLARE(avx2);
DECLARE(avx512);
static const st_small_kernel *const direct[ST_LEVELS][4] = {EVERY_TYPE(portable), EVERY_TYPE(avx2),
                                                            EVERY_TYPE(avx512)};
#else
static const st_small_kernel *const direct[ST_LEVELS][4] = {EVERY_TYPE(portable)};
#endif
ST_INLINE int column_of(int type)
{
    return type == STRATA_F32 ? 0 : type == STRATA_F64 ? 1 : type == STRATA_C64 ? 2 : 3;
}
/* DIRECT: real multiplications of a product that strata_gemm runs without a plan; of one whose plan would use several threads, fewer. */
enum { DIRECT = 1 << 20, DIRECT_SHARED = 1 << 18, TURN_BYTES = 1 << 16 };

const st_small_kernel *st_small_kernel_of(const st_cpu *cpu, int type)
{
    return direct[cpu->level][column_of(type)];
}

ST_INLINE void in_place(const st_small_kernel *kr, int64_t es, int64_t m, int64_t n, st_small_shape *s,
                        const char *a, const char *b, char *c, double alpha, double beta)
{
    const st_small_width *w = width_for(kr, n);
    for (int64_t j = 0; j < n;) {
        const int nv = next_vectors(w, (n - j + w->vl - 1) / w->vl, false);
        const int64_t cols = st_min64(n - j, (int64_t)nv * w->vl);
        s->last = cols - (int64_t)(nv - 1) * w->vl;
        const bool masked = s->last != w->vl;
        const char *pa = a;
        char *pc = c + j * es;
        const int64_t h = tile_height(w, nv, m);
        s->tiles = h == m ? 1 : (uint32_t)m / (uint32_t)h;
        kernel_of(w, masked, nv, h)(s, pa, b + j * es, pc, alpha, beta);
        const int64_t done = h * s->tiles;
        if (done < m) {
            s->tiles = 1;
            kernel_of(w, masked, nv, m - done)(s, pa + done * s->ars * es, b + j * es,
                                               pc + done * s->crs * es, alpha, beta);
        }
        j += cols;
    }
}

void st_small_in_place(const st_small_kernel *kr, int64_t es, int64_t m, int64_t n, st_small_shape *s,
                       const char *a, const char *b, char *c, double alpha, double beta)
{
    in_place(kr, es, m, n, s, a, b, c, alpha, beta);
}

/* B's rows are contiguous along k: turned on the stack, then as above panel by panel */
static ST_NOINLINE bool run_turned(const st_cpu *cpu, int type, int64_t es, const st_small_kernel *kr,
                                   const st_small_view *v, const char *a, const char *b, char *c, int64_t bcs,
                                   double alpha, double beta, const st_small_pairs *pairs)
{
    const st_kernel_row *row = st_kernel_best("gemm_packed", type, cpu);
    const st_packed_kernel *packed = row->impl;
    const int64_t nr = (int64_t)packed->nv * packed->vl;
    _Alignas(64) char turned[TURN_BYTES + ST_PACK_SLACK];
    if (st_round_up(v->n, nr) * v->k * es > TURN_BYTES) return false;
    packed->pack_b(turned, v->n, v->k, b, bcs, v->brs);
    st_small_view t = *v;
    t.panel = nr;
    st_small_split split;
    st_small_divide(kr, es, &t, &split);
    for (int i = 0; i < split.parts; i++) st_small_part_run(&split.part[i], a, turned, c, alpha, beta, pairs);
    return true;
}

/* Products of other forms than the commonest. */
ST_INLINE bool other_form(const strata_handle *h, const strata_gemm_plain *p, const bool complex)
{
    int64_t m = p->m, n = p->n, k = p->k;
    const bool twice = p->type == (complex ? STRATA_C128 : STRATA_F64);
    const int64_t es = (twice ? 8 : 4) << complex;
    const st_small_kernel *kr = direct[h->cpu->level][2 * complex + twice];
    st_small_pairs pairs;
    if (complex) pairs = (st_small_pairs){p->alpha_im, p->beta_im, p->conj};
    const st_small_pairs *more = complex ? &pairs : NULL;
    const char *a = p->a, *b = p->b;
    st_small_shape s = {
        .k = k, .ars = p->a_row, .acs = p->a_col, .brs = p->b_row, .crs = p->c_row, .pairs = more};
    int64_t bcs = p->b_col;
    if (n > 1 && p->c_col != 1) { /* the transposed product */
        a = p->b;
        b = p->a;
        m = p->n;
        n = p->m;
        s = (st_small_shape){
            .k = k, .ars = p->b_col, .acs = p->b_row, .brs = p->a_col, .crs = p->c_col, .pairs = more};
        bcs = p->a_row;
        if (complex) pairs.conj = (pairs.conj & 1) << 1 | pairs.conj >> 1;
    }
    if (n > 1 ? st_gemm_skinny_serves(h->cpu, es, m, n, k, bcs)
              : st_gemm_skinny_serves(h->cpu, es, 1, m, k, s.ars))
        return false;
    if (bcs == 1 || n == 1) {
        in_place(kr, es, m, n, &s, a, b, p->c, p->alpha, p->beta);
        return true;
    }
    const st_small_view v = {m, n, k, s.ars, s.acs, s.brs, s.crs, 0};
    return run_turned(h->cpu, p->type, es, kr, &v, a, b, p->c, bcs, p->alpha, p->beta, more);
}
static ST_NOINLINE bool run_other(const strata_handle *h, const strata_gemm_plain *p)
{
    return other_form(h, p, false);
}
static ST_NOINLINE bool run_other_complex(const strata_handle *h, const strata_gemm_plain *p)
{
    return other_form(h, p, true);
}

/* Keeps a value in a register of its own: joined to a vector with its neighbour, it would be read before both were written. */
#define APART(x) __asm__("" : "+r"(x))

ST_INLINE strata_status product(strata_handle *h, const strata_gemm_plain *p, st_gemm_otherwise otherwise,
                                const bool complex)
{
    const int64_t m = p->m, n = p->n, k = p->k;
    int64_t ars = p->a_row, acs = p->a_col, brs = p->b_row, bcs = p->b_col, crs = p->c_row, ccs = p->c_col;
    APART(ars);
    APART(acs);
    APART(brs);
    APART(bcs);
    APART(crs);
    APART(ccs);
    /* sizes up to 4096, strides from 0 (inputs) to 2^32: no offset overflows, and each view is [data, data + span) */
    if ((uint64_t)((m - 1) | (n - 1) | (k - 1)) >= 4096 ||
        (uint64_t)(ars | acs | brs | bcs | crs | ccs) >> 32)
        goto other;
    if (!p->a || !p->b || !p->c || (!complex && p->type != STRATA_F32 && p->type != STRATA_F64)) goto other;
    /* rows or columns of C contiguous and apart from each other */
    const bool rows = ccs == 1 && (crs >= n || m == 1);
    if (ST_UNLIKELY(!rows) && !(crs == 1 && (ccs >= m || n == 1))) goto other;
    /* C apart from A and B */
    const bool twice = p->type == (complex ? STRATA_C128 : STRATA_F64);
    const int64_t es = (twice ? 8 : 4) << complex;
    const char *a = p->a, *b = p->b;
    char *c = p->c, *c1 = c + ((m - 1) * crs + (n - 1) * ccs + 1) * es;
    if (c < a + ((m - 1) * ars + (k - 1) * acs + 1) * es && a < c1) goto other;
    if (c < b + ((k - 1) * brs + (n - 1) * bcs + 1) * es && b < c1) goto other;
    if (m * n * k > (h->threads == 1 ? DIRECT : DIRECT_SHARED) >> 2 * complex ||
        (p->alpha == 0 && (!complex || p->alpha_im == 0)) || h->batch_invariant)
        goto other;

    const st_small_kernel *kr = direct[h->cpu->level][2 * complex + twice];
    const st_small_width *w = width_for(kr, n);
    const int shift = __builtin_ctz((unsigned)w->vl), more = (int)(n - 1) >> shift;
    if (ST_UNLIKELY(!rows || bcs != 1 || n == 1 || more >= w->nv || (m > n ? m : n) * k >= ST_SKINNY_LEAST))
        return (complex ? run_other_complex : run_other)(h, p) ? STRATA_OK : otherwise(h, p);
    /* one strip of tiles */
    st_small_shape s = {.k = k, .ars = ars, .acs = acs, .brs = brs, .crs = crs, .tiles = 1};
    st_small_pairs pairs;
    if (complex) {
        pairs = (st_small_pairs){p->alpha_im, p->beta_im, p->conj};
        s.pairs = &pairs;
    }
    s.last = n - ((int64_t)more << shift);
    const st_small_fn *fn = (s.last == w->vl ? w->full : w->masked) + more * ST_SMALL_ROWS - 1;
    const uint32_t most = (uint32_t)w->rows[more];
    if (m <= most) {
        fn[m](&s, a, b, c, p->alpha, p->beta);
        return STRATA_OK;
    }
    const uint32_t tiles = ((uint32_t)m + most - 1) / most, tall = ((uint32_t)m + tiles - 1) / tiles,
                   whole = (uint32_t)m / tall, left = (uint32_t)m - whole * tall;
    s.tiles = whole;
    fn[tall](&s, a, b, c, p->alpha, p->beta);
    if (left) {
        const int64_t done = (int64_t)whole * tall;
        s.tiles = 1;
        fn[left](&s, a + done * ars * es, b, c + done * crs * es, p->alpha, p->beta);
    }
    return STRATA_OK;
other:
    return otherwise(h, p);
}

static ST_NOINLINE strata_status complex_product(strata_handle *h, const strata_gemm_plain *p,
                                                 st_gemm_otherwise otherwise)
{
    return (unsigned)p->conj > 3 ? otherwise(h, p) : product(h, p, otherwise, true);
}

strata_status st_tile_gemm_small(strata_handle *h, const strata_gemm_plain *p, st_gemm_otherwise otherwise)
{
    if (ST_UNLIKELY(st_type_is_complex(p->type))) return complex_product(h, p, otherwise);
    return product(h, p, otherwise, false);
}

/* ---- plans --------------------------------------------------------------------------------------------------------- */
typedef struct st_small_plan {
    st_contract_plan head;
    st_gemm g;
    const st_small_kernel *kernel;
    const st_packed_kernel *turn; /* NULL, or what packs B */
    st_small_view v;
    st_small_split split; /* of one item on one thread */
    st_small_fn one;      /* the only call of a plan without batch, packing or epilogue */
    int ia, ib;           /* which of data[] are this form's A and B */
    int64_t bls, bks;     /* strides of B along n and k, for packing */
    int threads;
    double us;
    size_t pack_bytes, scratch; /* workspace: a worker's packed B, then its scratch */
} st_small_plan;

static bool setup(strata_handle *h, const st_problem *pr, const st_kernel_row *row, void *plan, char *why,
                  size_t n)
{
    st_small_plan *const p = plan;
    st_gemm *g = &p->g;
    if (!st_gemm_normalise(pr->data, pr->text, g, why, n)) return false;
    if (!g->one_type || row->type != g->type) {
        snprintf(why, n, "computes in %s", row->types);
        return false;
    }
    if (st_kernel_why_not(row, h->cpu, why, n)) return false;
    if (g->m.count > 1 || g->n.count > 1 || g->k.count > 1) {
        snprintf(why, n, "m, n or k is a list of axes that do not merge into one");
        return false;
    }
    if (g->N > 1 && st_axes_inner(&g->n, 'c') != 1) {
        snprintf(why, n, "C has no axis of stride 1");
        return false;
    }
    const double parts = st_type_is_complex(g->type) ? 4 : 1; /* real multiplications of one */
    double work = parts * (double)g->M * (double)g->N * (double)g->K,
           bytes = ((double)g->K * (double)g->N + (double)g->M * (double)g->K) * (double)g->es;
    if (work > 4e6 && bytes > 0.6 * (double)h->cpu->l2) {
        snprintf(why, n, "A and B of an item take %.0f KiB, more than 0.6 of L2", bytes / 1024);
        return false;
    }
    p->kernel = row->impl;
    p->ia = g->swapped ? 1 : 0;
    p->ib = 1 - p->ia;
    p->v = (st_small_view){g->M,
                           g->N,
                           g->K,
                           st_axes_inner(&g->m, 'a'),
                           st_axes_inner(&g->k, 'a'),
                           st_axes_inner(&g->k, 'b'),
                           st_axes_inner(&g->m, 'c'),
                           0};
    p->bls = st_axes_inner(&g->n, 'b');
    p->bks = p->v.brs;
    if (g->N > 1 && p->bls != 1) {
        const st_kernel_row *packed = NULL;
        int rows;
        const st_kernel_row *all = st_kernel_rows(&rows);
        for (int i = 0; i < rows && !packed; i++)
            if (all[i].type == g->type && all[i].needs == row->needs &&
                !strcmp(all[i].provider, "gemm_packed"))
                packed = &all[i];
        p->turn = packed->impl;
        p->v.panel = (int64_t)p->turn->nv * p->turn->vl;
        p->pack_bytes = (size_t)st_round_up(st_round_up(g->N, p->v.panel) * g->K * g->es + ST_PACK_SLACK, 64);
    }
    const st_small_width *w = &p->kernel->w[0];
    double lanes = (double)w->vl * (double)g->es /
                   (h->cpu->level >= ST_LEVEL_AVX512 ? 64
                    : h->cpu->level == ST_LEVEL_AVX2 ? 32
                                                     : 16);
    double cols = (double)st_ceil_div(g->N, w->vl) * w->vl;
    double item = 2 * parts * (double)g->M * cols * (double)g->K /
                      (0.9 * lanes * st_contract_peak(h->cpu, st_type_part(g->type))) +
                  0.004;
    /* strided rows of B: reread by every row of tiles, from a page each */
    item += (double)(p->turn ? g->K * g->N : 0) * (double)g->es / 20000.0;
    if (bytes > 32768) item *= 1.05;
    p->us = item * (double)g->G + 0.03;
    p->threads = p->us < 4.0 ? 1 : st_threads(h);
    return true;
}

/* As st_tile_gemm_small decides. */
static bool runs_directly(const st_cpu *cpu, const st_small_plan *p)
{
    const st_gemm *g = &p->g;
    const bool complex = st_type_is_complex(g->type);
    return p->kernel == direct[cpu->level][column_of(g->type)] && g->G == 1 &&
           g->M * g->N * g->K <= DIRECT >> 2 * complex && p->pack_bytes <= TURN_BYTES + ST_PACK_SLACK &&
           !st_gemm_skinny_serves(cpu, g->es, g->M, g->N, g->K, p->bls);
}

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    int rows, n = 0;
    const st_kernel_row *row = st_kernel_rows(&rows);
    for (int i = 0; i < rows && n < max; i++, row++) {
        if (strcmp(row->provider, "gemm_small") || row->type != ((const st_contract *)pr->data)->ta) continue;
        st_candidate *c = &out[n++];
        st_small_plan p = {0};
        st_contract_candidate(row, c);
        if (!setup(h, pr, row, &p, c->why, sizeof c->why)) continue;
        c->us = p.threads > 1 ? p.us / p.threads * 1.05 + 1.0 : p.us;
        if (!pr->text && runs_directly(h->cpu, &p)) {
            /* strata_gemm takes it without asking, so a plan takes it too: no other's prediction is below this */
            const double least =
                2.0 * (double)(p.g.M * p.g.N * p.g.K) / st_contract_peak(h->cpu, st_type_part(p.g.type));
            c->us = 0.03 + least / p.threads;
        }
        c->workspace = (size_t)p.threads * p.pack_bytes;
    }
    return n;
}

typedef struct st_small_job {
    const st_small_plan *p;
    void *const *data;
    st_factors f;
    const st_small_pairs *pairs; /* NULL for real products */
    char *ws;
} st_small_job;

static void run_item(const st_small_job *j, const st_small_split *split, const char *a, const char *b,
                     char *c, char *ws)
{
    const st_small_plan *p = j->p;
    if (p->turn) {
        p->turn->pack_b(ws, p->g.N, p->g.K, b, p->bls, p->bks);
        b = ws;
    }
    for (int i = 0; i < split->parts; i++)
        st_small_part_run(&split->part[i], a, b, c, j->f.alpha, j->f.beta, j->pairs);
}

/* Threads take items; of a single item (or when there are few) each takes a part of the rows, and turns B for itself. */
static void run_thread(void *v, int id, int n)
{
    const st_small_job *j = v;
    const st_small_plan *p = j->p;
    const st_gemm *g = &p->g;
    char *ws = j->ws + (size_t)id * (p->pack_bytes + p->scratch);
    const bool by_item = g->G >= n;
    int64_t i0 = by_item ? g->G * id / n : 0, i1 = by_item ? g->G * (id + 1) / n : g->G, m0 = 0, m1 = g->M;
    st_small_split part;
    const st_small_split *split = &p->split;
    if (!by_item) {
        m0 = g->M * id / n;
        m1 = g->M * (id + 1) / n;
        if (m0 == m1) return;
        st_small_view w = p->v;
        w.m = m1 - m0;
        st_small_divide(p->kernel, g->es, &w, &part);
        split = &part;
    }
    for (int64_t i = i0; i < i1; i++) {
        const char *a =
            (const char *)j->data[p->ia] + (st_axes_offset(&g->batch, 'a', i) + m0 * p->v.ars) * g->es;
        const char *b = (const char *)j->data[p->ib] + st_axes_offset(&g->batch, 'b', i) * g->es;
        char *c = (char *)j->data[2] + (st_axes_offset(&g->batch, 'c', i) + m0 * p->v.crs) * g->es;
        run_item(j, split, a, b, c, ws);
        if (p->head.expr)
            st_gemm_epilogue(g, p->head.expr, j->data, i, m0, m1 - m0, 0, g->N, ws + p->pack_bytes);
    }
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_small_plan *p = (const st_small_plan *)plan;
    const st_gemm *g = &p->g;
    double alpha[2], beta[2];
    strata_status s = st_contract_scalars_complex(h, &p->head, r, alpha, beta);
    if (s) return s;
    const st_factors f = {alpha[0], alpha[1], beta[0], beta[1]};
    const st_small_pairs pairs = {alpha[1], beta[1], g->conj};
    if (g->M == 0 || g->N == 0 || g->G == 0) return STRATA_OK;
    uint64_t t0 = st_trace_begin();
    char *ws = NULL;
    if (plan->workspace && !(ws = st_plan_workspace(h, plan, r))) return h->err.status;
    if ((f.alpha == 0 && f.alpha_im == 0) || g->K == 0) {
        st_gemm_scale(g, data[2], &f);
        for (int64_t i = 0; p->head.expr && i < g->G; i++)
            st_gemm_epilogue(g, p->head.expr, data, i, 0, g->M, 0, g->N, ws);
    } else {
        st_small_job job = {p, data, f, st_type_is_complex(g->type) ? &pairs : NULL, ws};
        if (p->threads == 1)
            run_thread(&job, 0, 1);
        else
            st_team_run_apart(h, p->threads, p->us, run_thread, &job);
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel, "%lldx%lldx%lld batch %lld%s%s workspace %zu",
                     (long long)g->M, (long long)g->N, (long long)g->K, (long long)g->G,
                     g->swapped ? " transposed" : "", p->turn ? " B turned" : "", plan->workspace);
    return STRATA_OK;
}

/* One item in one call: nothing is computed that the plan could know. */
static strata_status run_one(strata_handle *h, const strata_plan *plan, void *const data[],
                             const strata_run *r)
{
    const st_small_plan *p = (const st_small_plan *)plan;
    if (ST_UNLIKELY(r || atomic_load_explicit(&st_trace_on, memory_order_relaxed) || p->head.alpha[0] == 0))
        return run(h, plan, data, r);
    p->one(&p->split.part[0].s, data[p->ia], data[p->ib], data[2], p->head.alpha[0], p->head.beta[0]);
    return STRATA_OK;
}

/* One item on one thread in a few calls. */
static strata_status run_few(strata_handle *h, const strata_plan *plan, void *const data[],
                             const strata_run *r)
{
    const st_small_plan *p = (const st_small_plan *)plan;
    if (ST_UNLIKELY(r || atomic_load_explicit(&st_trace_on, memory_order_relaxed) || p->head.alpha[0] == 0))
        return run(h, plan, data, r);
    for (int i = 0; i < p->split.parts; i++)
        st_small_part_run(&p->split.part[i], data[p->ia], data[p->ib], data[2], p->head.alpha[0],
                          p->head.beta[0], NULL);
    return STRATA_OK;
}

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *c, strata_plan **plan)
{
    st_contract_plan *head;
    const strata_status s = st_contract_plan_of(h, pr, c->row, sizeof(st_small_plan), setup, &head);
    if (s) return s;
    st_small_plan *p = (st_small_plan *)head;
    const st_gemm *g = &p->g;
    if (g->M && g->N) st_small_divide(p->kernel, g->es, &p->v, &p->split);
    p->scratch = st_epilogue_scratch(head->expr);
    head->base.workspace = (size_t)p->threads * (p->pack_bytes + p->scratch);
    head->base.run = run;
    if (g->M && g->N && g->K && g->G == 1 && !p->turn && !head->expr && p->threads == 1 &&
        !st_type_is_complex(g->type)) {
        p->one = p->split.part[0].fn;
        head->base.run = p->split.parts == 1 && p->split.part[0].across == 1 ? run_one : run_few;
    }
    *plan = &head->base;
    return STRATA_OK;
}

const st_provider st_gemm_small_provider = {
    .name = "gemm_small", .op = ST_OP_CONTRACT, .enumerate = enumerate, .build = build, .where = ST_ON_CPU};
