/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_3m.c - complex products by three real ones, for callers that allow STRATA_MATH_3M:
 *
 *     P = re(A) re(B)   Q = im(A) im(B)   R = (re(A) + im(A)) (re(B) + im(B))   A B = (P - Q) + i (R - P - Q)
 *
 * Panels of A and B are packed as parts and their sums, three real panels each; a tile of C is three calls of the real product's kernel into
 * tiles that stay in L1, joined into C's complex elements at the end of every block of k. Conjugates change signs while packing.
 *
 * Error (N. Higham, "Stability of a method for multiplying complex matrices with three real matrix multiplications", SIAM J. Matrix Anal.
 * Appl. 13, 1992): with S = sum over k of (|re a| + |im a|)(|re b| + |im b|), each part of an element is within 2 (k + 4) u S of the exact
 * one. That is a bound for the element as a whole: where one part is much smaller than the other, its own digits may be lost, which the exact
 * product keeps (its real part is within (k + 1) u of the sums of |re a re b| + |im a im b|). */
#include "tile/gemm.h"
#include "tile/cpu/three_kernel.h"
#include <strata/blas.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 64 /* steps of k that are packed as pairs at a time */ };

typedef struct st_three_plan {
    st_contract_plan head;
    st_gemm g;
    const st_three_kernel *kernel;
    int64_t part;       /* bytes of a number */
    int64_t kc, mc, nc; /* blocks */
    int threads;
    double us;
    size_t pairs, a, b, tiles,
        each; /* bytes of a thread: pairs of a chunk, one part of A and of B, three tiles, all */
} st_three_plan;

typedef struct job {
    const st_three_plan *p;
    const char *a, *b;
    char *c;
    st_three_factors f;
    char *ws;
} job;

/* Lines i0.. (w of them, at most a panel) x steps k0.. of one operand into three panels. */
static void pack(const st_three_plan *p, int which, const char *src, int64_t i0, int64_t w, int64_t k0,
                 int64_t kc, char *pairs, char *to, int64_t apart)
{
    const st_gemm *g = &p->g;
    const bool a = which == 'a';
    const st_axes *lines = a ? &g->m : &g->n;
    const int64_t ls = st_axes_inner(lines, which), ks = st_axes_inner(&g->k, which), es = g->es,
                  width = a ? p->kernel->real->mr : (int64_t)p->kernel->real->nv * p->kernel->real->vl;
    for (int64_t q = 0; q < kc; q += CHUNK) {
        const int64_t steps = st_min64(CHUNK, kc - q), at = q * width * p->part;
        (a ? p->kernel->pack_a : p->kernel->pack_b)(pairs, w, steps, src + (i0 * ls + (k0 + q) * ks) * es, ls,
                                                    ks);
        p->kernel->split(steps * width, pairs, g->conj & (a ? 1 : 2), to + at, to + apart + at,
                         to + 2 * apart + at);
    }
}

/* Rows [m0, m1) and columns [n0, n1) of one item. */
static void part_of(const job *j, char *ws, const char *a, const char *b, char *c, int64_t m0, int64_t m1,
                    int64_t n0, int64_t n1)
{
    const st_three_plan *p = j->p;
    const st_gemm *g = &p->g;
    const st_packed_kernel *kr = p->kernel->real;
    const int64_t mr = kr->mr, nr = (int64_t)kr->nv * kr->vl, crs = st_axes_inner(&g->m, 'c');
    char *pairs = ws, *abuf = pairs + p->pairs, *bbuf = abuf + 3 * p->a, *tile = bbuf + 3 * p->b;
    const int64_t tb = (int64_t)p->tiles / 3;
    for (int64_t jb = n0; jb < n1; jb += p->nc)
        for (int64_t k0 = 0; k0 < g->K; k0 += p->kc) {
            const int64_t kc = st_min64(p->kc, g->K - k0), je = st_min64(n1, jb + p->nc);
            st_three_factors f = j->f;
            if (k0 > 0) f.beta = 1, f.beta_im = 0;
            for (int64_t q = jb; q < je; q += nr)
                pack(p, 'b', b, q, st_min64(nr, je - q), k0, kc, pairs, bbuf + (q - jb) * kc * p->part,
                     (int64_t)p->b);
            for (int64_t ib = m0; ib < m1; ib += p->mc) {
                const int64_t ie = st_min64(m1, ib + p->mc);
                for (int64_t i = ib; i < ie; i += mr)
                    pack(p, 'a', a, i, st_min64(mr, ie - i), k0, kc, pairs, abuf + (i - ib) * kc * p->part,
                         (int64_t)p->a);
                for (int64_t q = jb; q < je; q += nr) {
                    const int64_t w = st_min64(nr, je - q);
                    const int nv = (int)st_ceil_div(w, kr->vl);
                    st_ukr_args x = {.k = kc, .ldc = nr, .alpha = 1, .last = (int)(w - (nv - 1) * kr->vl)};
                    for (int64_t i = ib; i < ie; i += mr) {
                        const int64_t h = st_min64(mr, ie - i);
                        const st_ukr_fn fn =
                            h == mr && w == nr ? kr->full : kr->edge[(h - 1) * kr->nv + nv - 1];
                        for (int s = 0; s < 3; s++)
                            fn(&x, abuf + s * (int64_t)p->a + (i - ib) * kc * p->part,
                               bbuf + s * (int64_t)p->b + (q - jb) * kc * p->part, tile + s * tb);
                        p->kernel->join(h, w, tile, tile + tb, tile + 2 * tb, nr, c + (i * crs + q) * g->es,
                                        crs, &f);
                    }
                }
            }
        }
}

/* Threads take items; of few items each takes a part of the columns, or of the rows where there are few columns. */
static void run_thread(void *arg, int id, int n)
{
    const job *j = arg;
    const st_three_plan *p = j->p;
    const st_gemm *g = &p->g;
    const st_packed_kernel *kr = p->kernel->real;
    const int64_t mr = kr->mr, nr = (int64_t)kr->nv * kr->vl, mt = st_ceil_div(g->M, mr),
                  nt = st_ceil_div(g->N, nr);
    const bool by_item = g->G >= n, by_rows = !by_item && nt < 2 * n && mt > nt;
    int64_t i0 = 0, i1 = g->G, m0 = 0, m1 = g->M, n0 = 0, n1 = g->N;
    if (by_item) {
        i0 = g->G * id / n;
        i1 = g->G * (id + 1) / n;
    } else if (by_rows) {
        m0 = st_min64(g->M, mt * id / n * mr);
        m1 = st_min64(g->M, mt * (id + 1) / n * mr);
    } else {
        n0 = st_min64(g->N, nt * id / n * nr);
        n1 = st_min64(g->N, nt * (id + 1) / n * nr);
    }
    for (int64_t i = i0; i < i1 && m0 < m1 && n0 < n1; i++)
        part_of(j, j->ws + (size_t)id * p->each, j->a + st_axes_offset(&g->batch, 'a', i) * g->es,
                j->b + st_axes_offset(&g->batch, 'b', i) * g->es,
                j->c + st_axes_offset(&g->batch, 'c', i) * g->es, m0, m1, n0, n1);
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_three_plan *p = (const st_three_plan *)plan;
    const st_gemm *g = &p->g;
    double alpha[2], beta[2];
    strata_status s = st_contract_scalars_complex(h, &p->head, r, alpha, beta);
    if (s) return s;
    if (g->M == 0 || g->N == 0 || g->G == 0) return STRATA_OK;
    if ((alpha[0] == 0 && alpha[1] == 0) || g->K == 0) {
        st_gemm_scale(g, data[2], &(st_factors){0, 0, beta[0], beta[1]});
        return STRATA_OK;
    }
    const uint64_t t0 = st_trace_begin();
    char *ws = st_plan_workspace(h, plan, r);
    if (!ws) return h->err.status;
    job j = {p,
             data[g->swapped ? 1 : 0],
             data[g->swapped ? 0 : 1],
             data[2],
             {alpha[0], alpha[1], beta[0], beta[1]},
             ws};
    if (p->threads == 1)
        run_thread(&j, 0, 1);
    else
        st_team_run_apart(h, p->threads, p->us, run_thread, &j);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel, "%lldx%lldx%lld batch %lld%s, three real products",
                     (long long)g->M, (long long)g->N, (long long)g->K, (long long)g->G,
                     g->swapped ? " transposed" : "");
    return STRATA_OK;
}

static bool setup(strata_handle *h, const st_problem *pr, const st_kernel_row *row, void *plan, char *why,
                  size_t n)
{
    st_three_plan *const p = plan;
    const st_contract *c = pr->data;
    st_gemm *g = &p->g;
    if (c->math != STRATA_MATH_3M)
        return snprintf(why, n, "three real products are for callers that allow STRATA_MATH_3M"), false;
    if (!st_gemm_normalise(c, pr->text, g, why, n) || st_kernel_why_not(row, h->cpu, why, n)) return false;
    if (!g->one_type || row->type != g->type) return snprintf(why, n, "computes in %s", row->types), false;
    if (g->m.count > 1 || g->n.count > 1 || g->k.count > 1)
        return snprintf(why, n, "m, n or k is a list of axes that do not merge into one"), false;
    if (g->N > 1 && st_axes_inner(&g->n, 'c') != 1)
        return snprintf(why, n, "C has no axis of stride 1"), false;
    p->kernel = row->impl;
    const st_packed_kernel *kr = p->kernel->real;
    const int64_t mr = kr->mr, nr = (int64_t)kr->nv * kr->vl, parts = st_max64(1, st_ceil_div(g->K, 512));
    p->part = g->es / 2;
    p->kc = parts > 1 ? st_round_up(st_ceil_div(g->K, parts), 4) : st_max64(1, g->K);
    p->mc = st_max64(mr, h->cpu->l2 / 4 / (3 * 512 * p->part) / mr * mr);
    p->nc = st_max64(nr, (2 << 20) / (512 * p->part) / nr * nr);
    const int64_t rows = st_min64(p->mc, st_round_up(st_max64(g->M, 1), mr)),
                  cols = st_min64(p->nc, st_round_up(st_max64(g->N, 1), nr));
    p->pairs = (size_t)st_round_up(CHUNK * st_max64(mr, nr) * g->es + ST_PACK_SLACK, 4096);
    p->a = (size_t)st_round_up(rows * p->kc * p->part + ST_PACK_SLACK, 4096) + 1344;
    p->b = (size_t)st_round_up(cols * p->kc * p->part + ST_PACK_SLACK, 4096) + 1344;
    p->tiles = 3 * (size_t)st_round_up(mr * nr * p->part + 64, 64);
    p->each = (size_t)st_round_up((int64_t)(p->pairs + 3 * p->a + 3 * p->b + p->tiles), 4096);
    const double m = (double)g->M, w = (double)st_ceil_div(g->N, kr->vl) * kr->vl, k = (double)g->K,
                 lanes = h->cpu->level >= ST_LEVEL_AVX512 && kr->vl * p->part < 64 ? 0.5 : 1;
    double us =
        3 * 2 * (m > 4 ? m : 4) * w * k / (0.9 * lanes * st_contract_peak(h->cpu, st_type_part(g->type)));
    us += (m * k * (double)st_ceil_div(g->N, p->nc) + w * k) * 5 * (double)p->part / 15000.0;
    us += m * w * 3 * (double)p->part / 15000.0 * (double)parts;
    p->us = us * (double)g->G + 0.5;
    p->threads = p->us < 12 ? 1 : st_threads(h);
    return true;
}

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    int rows, n = 0;
    const st_contract *pc = pr->data;
    const st_kernel_row *row = st_kernel_rows(&rows);
    if (st_gemm_structured(pc)) return 0;
    for (int i = 0; i < rows && n < max; i++, row++) {
        if (strcmp(row->provider, "gemm_3m") || row->type != pc->ta) continue;
        st_candidate *c = &out[n++];
        st_three_plan p;
        memset(&p, 0, sizeof p);
        st_contract_candidate(row, c);
        if (!setup(h, pr, row, &p, c->why, sizeof c->why)) continue;
        c->us = p.threads > 1 ? p.us / p.threads * 1.1 + 1.0 : p.us;
        c->workspace = p.each * (size_t)p.threads;
    }
    return n;
}

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *c, strata_plan **plan)
{
    st_contract_plan *head;
    const strata_status s = st_contract_plan_of(h, pr, c->row, sizeof(st_three_plan), setup, &head);
    if (s) return s;
    st_three_plan *p = (st_three_plan *)head;
    head->base.run = run;
    head->base.workspace = p->each * (size_t)p->threads;
    *plan = &head->base;
    return STRATA_OK;
}

const st_provider st_gemm_3m_provider = {
    .name = "gemm_3m", .op = ST_OP_CONTRACT, .enumerate = enumerate, .build = build, .where = ST_ON_CPU};
