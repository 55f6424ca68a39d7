/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_structured.c - products of triangular, symmetric and hermitian operands, results that are triangles, arrays of addresses: the packed
 * product's kernels in loops that know what is zero and what is not stored.
 *
 * A tile's sum runs over the steps in which neither operand is zero; tiles outside C's triangle are left out; those on its border are computed
 * beside C, in as few vectors as hold stored elements. Threads share rows or columns of C by the work that is in them, each with panels of its
 * own, so that nobody waits. Nothing of it changes the order of a sum. */
#include "tile/gemm.h"
#include "tile/structured.h"
#include "tile/cpu/tri_kernel.h"
#include <stdio.h>
#include <string.h>

enum { MOST_PANELS = 1024, SMALL = 96 /* longest side of what runs without a plan */ };

typedef struct st_structured_plan {
    st_contract_plan head;
    const st_packed_kernel *kernel;
    const st_tri_kernel *tri;
    int type, conj;
    int64_t es, nr, M, N, K, G;
    st_side a, b;
    st_rule rule_c;
    int64_t crs, ccs;
    bool swapped;
    st_axes batch;
    int64_t pointers; /* of this form's A, B, C */
    int64_t kc, mc, nc;
    int threads;
    double us;
    size_t abytes, bbytes, each; /* of a thread: A block, B block, all */
} st_structured_plan;

bool st_gemm_structured(const st_contract *c)
{
    const st_rule *r[] = {&c->rule_a, &c->rule_b, &c->rule_c};
    if (c->pointers) return true;
    for (int i = 0; i < 3; i++)
        if (r[i]->half || r[i]->unit) return true;
    return false;
}

/* ---- one thread ------------------------------------------------------------------------------------------------------- */
typedef struct job {
    const st_structured_plan *p;
    void *const *data;
    st_factors f;
    char *workspace;
} job;

typedef struct view {
    const st_structured_plan *p;
    const job *j;
    const char *a, *b;
    char *c;
    char *abuf, *bbuf, *tile;
    bool packed[MOST_PANELS]; /* panels of the block of B */
    int64_t k0, kc;
} view;

typedef struct part {
    int64_t first, end;
} part;

/* Columns of C stored in rows [i0, i0 + h), at most; as offsets from j0 within w columns. */
static part stored_columns(const st_rule *r, int64_t i0, int64_t h, int64_t j0, int64_t w)
{
    part p = {0, w};
    if (r->half == ST_HALF_LOWER) p.end = st_max64(0, st_min64(w, i0 + h + r->offset - j0));
    if (r->half == ST_HALF_UPPER) p.first = st_max64(0, st_min64(w, i0 + r->offset - j0));
    return p;
}

#define MERGE(T)                                                                     \
    static void merge_##T(T *c, int64_t cs, const T *t, int64_t n, T beta)           \
    {                                                                                \
        if (beta == 0)                                                               \
            for (int64_t i = 0; i < n; i++) c[i * cs] = t[i];                        \
        else                                                                         \
            for (int64_t i = 0; i < n; i++) c[i * cs] = t[i] + beta * c[i * cs];     \
    }                                                                                \
    static void merge_pairs_##T(T *c, int64_t cs, const T *t, int64_t n, T re, T im) \
    {                                                                                \
        for (int64_t i = 0; i < n; i++, c += 2 * cs, t += 2) {                       \
            T x = 0, y = 0;                                                          \
            if (re != 0 || im != 0) {                                                \
                x = im == 0 ? re * c[0] : re * c[0] - im * c[1];                     \
                y = im == 0 ? re * c[1] : re * c[1] + im * c[0];                     \
            }                                                                        \
            c[0] = t[0] + x;                                                         \
            c[1] = t[1] + y;                                                         \
        }                                                                            \
    }
MERGE(float)
MERGE(double)

static void merge_row(const st_structured_plan *p, char *c, const char *t, int64_t n, const st_factors *f)
{
    float *fc = (float *)(void *)c;
    double *dc = (double *)(void *)c;
    const float *ft = (const float *)(const void *)t;
    const double *dt = (const double *)(const void *)t;
    const bool complex = st_type_is_complex(p->type), single = st_type_part(p->type) == STRATA_F32;
    if (p->ccs == 1 && f->beta_im == 0) {
        p->tri->add(c, t, complex ? 2 * n : n, f->beta);
    } else if (single && complex)
        merge_pairs_float(fc, p->ccs, ft, n, (float)f->beta, (float)f->beta_im);
    else if (complex)
        merge_pairs_double(dc, p->ccs, dt, n, f->beta, f->beta_im);
    else if (single)
        merge_float(fc, p->ccs, ft, n, (float)f->beta);
    else
        merge_double(dc, p->ccs, dt, n, f->beta);
}

/* A tile beside C into its stored elements; of a hermitian result the diagonal's imaginary parts are 0, before and after. */
static void merge(const view *v, int64_t i0, int64_t h, int64_t j0, int64_t first, int64_t end,
                  const st_factors *f)
{
    const st_structured_plan *p = v->p;
    const st_rule *r = &p->rule_c;
    for (int64_t i = 0; i < h; i++) {
        part s = stored_columns(r, i0 + i, 1, j0, end);
        s.first = st_max64(s.first, first);
        if (s.first >= s.end) continue;
        char *row = v->c + (i0 + i) * p->crs * p->es;
        const int64_t on = i0 + i + r->offset; /* the diagonal's column */
        char *diagonal = NULL;
        if (r->mirror == ST_MIRROR_HERMITIAN && on >= j0 + s.first && on < j0 + s.end) {
            diagonal = row + on * p->ccs * p->es + p->es / 2;
            memset(diagonal, 0, (size_t)(p->es / 2));
        }
        merge_row(p, row + (j0 + s.first) * p->ccs * p->es, v->tile + (i * p->nr + s.first) * p->es,
                  s.end - s.first, f);
        if (diagonal) memset(diagonal, 0, (size_t)(p->es / 2));
    }
}

/* Tile of rows i0.. and columns j0.. in the steps of this block. */
static void tile(view *v, const char *a, int64_t i0, int64_t h, const char *b, int64_t j0, int64_t w)
{
    const st_structured_plan *p = v->p;
    const st_packed_kernel *kr = p->kernel;
    const part cols = stored_columns(&p->rule_c, i0, h, j0, w);
    if (cols.first >= cols.end) return;
    int64_t la, ha, lb, hb;
    st_side_range(&p->a, i0, h, p->K, &la, &ha);
    st_side_range(&p->b, j0, w, p->K, &lb, &hb);
    const int64_t lo = st_max64(la, lb), hi = st_min64(ha, hb);
    const int64_t from = st_max64(lo, v->k0), to = st_min64(hi, v->k0 + v->kc);
    st_factors f = v->j->f;
    if (lo < hi ? from >= to : v->k0 > 0) return;
    if (lo < hi && lo < v->k0) { /* not the first block of this tile */
        f.beta = 1;
        f.beta_im = 0;
    }
    const part all = stored_columns(&p->rule_c, i0 + h - 1, 1, j0, w),
               least = stored_columns(&p->rule_c, i0, 1, j0, w);
    const bool hermitian = p->rule_c.mirror == ST_MIRROR_HERMITIAN;
    const bool whole = p->rule_c.half == ST_HALF_LOWER
                           ? least.end == w && (!hermitian || i0 + p->rule_c.offset >= j0 + w)
                       : p->rule_c.half == ST_HALF_UPPER
                           ? all.first == 0 && (!hermitian || i0 + h - 1 + p->rule_c.offset < j0)
                           : true;
    const bool direct = whole && (p->ccs == 1 || p->N == 1);
    const int64_t v0 = cols.first / kr->vl, v1 = st_ceil_div(cols.end, kr->vl);
    st_ukr_args x = {.k = to > from ? to - from : 0,
                     .ldc = direct ? p->crs : p->nr,
                     .alpha = f.alpha,
                     .alpha_im = f.alpha_im,
                     .beta = direct ? f.beta : 0,
                     .beta_im = direct ? f.beta_im : 0,
                     .conj = p->conj,
                     .last = (int)(st_min64(v1 * kr->vl, w) - (v1 - 1) * kr->vl)};
    const bool full = h == kr->mr && v0 == 0 && w == p->nr && v1 == kr->nv;
    const st_ukr_fn fn = full ? kr->full : kr->edge[(h - 1) * kr->nv + v1 - v0 - 1];
    const int64_t at = x.k ? from - v->k0 : 0;
    char *c =
        direct ? v->c + (i0 * p->crs + (j0 + v0 * kr->vl) * p->ccs) * p->es : v->tile + v0 * kr->vl * p->es;
    fn(&x, a + at * kr->mr * p->es, b + (at * p->nr + v0 * kr->vl) * p->es, c);
    if (!direct) merge(v, i0, h, j0, cols.first, cols.end, &f);
}

/* A's rows of a block; of an operand without rules in one go, which reads each line of the cache once. */
static void pack_rows(view *v, int64_t ib, int64_t ie)
{
    const st_structured_plan *p = v->p;
    const int64_t mr = p->kernel->mr, end = st_min64(ie, p->M);
    if (!p->a.rule.half) {
        st_side_pack(&p->a, p->type, v->abuf, v->a, ib, end - ib, v->k0, v->kc);
        return;
    }
    for (int64_t i = ib; i < end; i += mr)
        st_side_pack(&p->a, p->type, v->abuf + (i - ib) * v->kc * p->es, v->a, i, st_min64(mr, end - i),
                     v->k0, v->kc);
}

/* Rows and columns [.., ..) of one item, in blocks. */
static void run_part(view *v, part rows, part cols)
{
    const st_structured_plan *p = v->p;
    const int64_t mr = p->kernel->mr, nr = p->nr, es = p->es;
    const int64_t kparts = st_max64(1, st_ceil_div(p->K, p->kc)),
                  kstep = kparts > 1 ? st_round_up(st_ceil_div(p->K, kparts), 4) : st_max64(1, p->K);
    for (int64_t jb = cols.first; jb < cols.end; jb += p->nc) {
        const int64_t je = st_min64(cols.end, jb + p->nc);
        for (v->k0 = 0; v->k0 == 0 || v->k0 < p->K; v->k0 += kstep) {
            v->kc = st_min64(kstep, p->K - v->k0);
            memset(v->packed, 0, (size_t)st_ceil_div(je - jb, nr));
            for (int64_t ib = rows.first; ib < rows.end; ib += p->mc) {
                const int64_t ie = st_min64(rows.end, ib + p->mc);
                const part any = stored_columns(&p->rule_c, ib, ie - ib, jb, je - jb);
                if (any.first >= any.end) continue;
                if (v->kc > 0) pack_rows(v, ib, ie);
                for (int64_t j = jb + any.first / nr * nr; j < jb + any.end; j += nr) {
                    const int64_t w = st_min64(nr, p->N - j), panel = (j - jb) / nr;
                    char *b = v->bbuf + panel * nr * v->kc * es;
                    if (!v->packed[panel] && v->kc > 0) {
                        st_side_pack(&p->b, p->type, b, v->b, j, w, v->k0, v->kc);
                        v->packed[panel] = true;
                    }
                    for (int64_t i = ib; i < ie; i += mr)
                        tile(v, v->abuf + (i - ib) * v->kc * es, i, st_min64(mr, p->M - i), b, j, w);
                }
            }
        }
    }
}

/* ---- sharing ------------------------------------------------------------------------------------------------------------ */
/* Work of a row of tiles, or of a column of panels: what is stored times what is not zero. */
static int64_t work(const st_structured_plan *p, bool rows, int64_t at, int64_t n)
{
    int64_t lo, hi;
    st_side_range(rows ? &p->a : &p->b, at, n, p->K, &lo, &hi);
    st_rule r = rows ? p->rule_c : st_rule_transposed(p->rule_c);
    const part s = stored_columns(&r, at, n, 0, rows ? p->N : p->M);
    return st_max64(0, s.end - s.first) * (st_max64(0, hi - lo) + 16);
}

static part share(const st_structured_plan *p, bool rows, int id, int n)
{
    const int64_t total = rows ? p->M : p->N, unit = rows ? p->kernel->mr : p->nr;
    int64_t all = 0, sum = 0;
    part s = {0, total};
    if (n == 1) return s;
    for (int64_t i = 0; i < total; i += unit) all += work(p, rows, i, st_min64(unit, total - i));
    s.first = s.end = total;
    for (int64_t i = 0; i < total;
         i += unit) { /* a unit belongs to the thread in whose part its middle lies */
        const int64_t w = work(p, rows, i, st_min64(unit, total - i));
        const int64_t owner =
            all > 0 ? st_min64(n - 1, (int64_t)((double)(2 * sum + w) / 2 / (double)all * n)) : 0;
        sum += w;
        if (owner == id && s.first == total) s.first = i;
        if (owner == id) s.end = st_min64(total, i + unit);
    }
    return s;
}

static void item_of(view *v, int64_t item)
{
    const st_structured_plan *p = v->p;
    void *const *data = v->j->data;
    int64_t idx[ST_AXES] = {0};
    st_axes_index(&p->batch, item, idx);
    const int from[3] = {p->swapped ? 1 : 0, p->swapped ? 0 : 1, 2};
    const char *base[3];
    for (int o = 0; o < 3; o++) {
        base[o] = data[from[o]];
        if (p->pointers >> o & 1) base[o] = ((void *const *)(const void *)base[o])[idx[0]];
        base[o] += st_axes_offset(&p->batch, "abc"[o], item) * p->es;
    }
    v->a = base[0];
    v->b = base[1];
    v->c = (char *)(uintptr_t)base[2];
}

static void run_thread(void *arg, int id, int n)
{
    const job *j = arg;
    const st_structured_plan *p = j->p;
    view v;
    v.p = p;
    v.j = j;
    v.abuf = j->workspace + (size_t)id * p->each;
    v.bbuf = v.abuf + p->abytes;
    v.tile = v.bbuf + p->bbytes;
    if (n > 1 && p->G >= 4 * n) {
        for (int64_t g = p->G * id / n; g < p->G * (id + 1) / n; g++) {
            item_of(&v, g);
            run_part(&v, (part){0, p->M}, (part){0, p->N});
        }
        return;
    }
    /* columns, where there are enough: threads then share no part of B, of which there is more in a cache than of A */
    const bool rows = st_ceil_div(p->N, p->nr) < 4 * n && p->M / p->kernel->mr > st_ceil_div(p->N, p->nr);
    const part mine = share(p, rows, id, n);
    for (int64_t g = 0; g < p->G && mine.first < mine.end; g++) {
        item_of(&v, g);
        run_part(&v, rows ? mine : (part){0, p->M}, rows ? (part){0, p->N} : mine);
    }
}

/* C := beta C where it is stored. */
static void scale(view *v, const st_factors *f)
{
    const st_structured_plan *p = v->p;
    memset(v->tile, 0, (size_t)(p->nr * p->es));
    for (int64_t g = 0; g < p->G; g++) {
        const st_structured_plan *q = v->p;
        int64_t idx[ST_AXES] = {0};
        st_axes_index(&q->batch, g, idx);
        v->c = v->j->data[2];
        if (q->pointers & 4) v->c = ((void **)(void *)v->c)[idx[0]];
        v->c += st_axes_offset(&q->batch, 'c', g) * q->es;
        for (int64_t i = 0; i < p->M; i++)
            for (int64_t j = 0; j < p->N; j += p->nr) merge(v, i, 1, j, 0, st_min64(p->nr, p->N - j), f);
    }
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_structured_plan *p = (const st_structured_plan *)plan;
    double alpha[2], beta[2];
    strata_status s = st_contract_scalars_complex(h, &p->head, r, alpha, beta);
    if (s) return s;
    if (p->M == 0 || p->N == 0 || p->G == 0) return STRATA_OK;
    const bool nothing = (alpha[0] == 0 && alpha[1] == 0) || p->K == 0;
    if ((s = st_contract_addresses(h, &p->head, data, !nothing))) return s;
    const uint64_t t0 = st_trace_begin();
    char *ws = st_plan_workspace(h, plan, r);
    if (!ws) return h->err.status;
    job j = {p, data, {alpha[0], alpha[1], beta[0], beta[1]}, ws};
    if (nothing) {
        view v;
        v.p = p;
        v.j = &j;
        v.tile = ws + p->abytes + p->bbytes;
        scale(&v, &j.f);
    } else if (p->threads == 1)
        run_thread(&j, 0, 1);
    else
        st_team_run_apart(h, p->threads, p->us, run_thread, &j);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel,
                     "%lldx%lldx%lld batch %lld, structured%s, workspace %zu", (long long)p->M,
                     (long long)p->N, (long long)p->K, (long long)p->G, p->swapped ? ", transposed" : "",
                     plan->workspace);
    return STRATA_OK;
}

/* ---- planning ----------------------------------------------------------------------------------------------------------- */
static bool one_axis(const st_axes *l, st_axis *x)
{
    int64_t real = 0;
    *x = (st_axis){1, 0, 0, 0};
    for (int d = 0; d < (int)l->count; d++) {
        if (l->count > 1 && l->ax[d].len == 1) continue;
        *x = l->ax[d];
        real++;
    }
    return real <= 1;
}

static void exchange(st_axis *x)
{
    const int64_t a = x->a;
    x->a = x->b;
    x->b = a;
}

static bool setup(strata_handle *h, const st_problem *pr, const st_kernel_row *row, void *plan, char *why,
                  size_t n)
{
    st_structured_plan *const p = plan;
    const st_contract *c = pr->data;
    st_axis m, nn, k;
    st_rule ra = c->rule_a, rb = c->rule_b, rc = c->rule_c;
    if (c->bounds || pr->text)
        return snprintf(why, n, "has no %s beside rules of a matrix", c->bounds ? "bounds" : "epilogue") < 0;
    if (c->ta != c->tb || c->ta != c->tc || row->type != c->ta)
        return snprintf(why, n, "computes in %s throughout", row->types) < 0;
    if (!one_axis(&c->m, &m) || !one_axis(&c->n, &nn) || !one_axis(&c->k, &k))
        return snprintf(why, n, "has one axis each of rows, columns and steps") < 0;
    if (st_kernel_why_not(row, h->cpu, why, n)) return false;
    p->kernel = row->impl;
    p->tri = st_side_tri(row->needs & ST_ISA_AVX512 ? ST_LEVEL_AVX512
                         : row->needs & ST_ISA_AVX2 ? ST_LEVEL_AVX2
                                                    : ST_LEVEL_PORTABLE,
                         row->type);
    p->type = row->type;
    p->es = (int64_t)strata_type_bits((strata_type)row->type) / 8;
    p->nr = (int64_t)p->kernel->nv * p->kernel->vl;
    p->batch = c->batch;
    p->pointers = c->pointers;
    p->swapped = nn.c != 1 && (m.c == 1 || nn.len == 1) && !(nn.len == 1 && m.len == 1);
    if (p->swapped) {
        const st_axis t = m;
        m = nn;
        nn = t;
        exchange(&m);
        exchange(&nn);
        exchange(&k);
        for (int d = 0; d < (int)p->batch.count; d++) exchange(&p->batch.ax[d]);
        const st_rule was = ra;
        ra = st_rule_transposed(rb);
        rb = st_rule_transposed(was);
        rc = st_rule_transposed(rc);
        p->pointers = (p->pointers & 1) << 1 | (p->pointers >> 1 & 1) | (p->pointers & 4);
    }
    p->M = m.len;
    p->N = nn.len;
    p->K = k.len;
    p->G = st_axes_len(&p->batch);
    p->crs = m.c;
    p->ccs = nn.c;
    p->rule_c = rc;
    p->conj = st_type_is_complex(p->type) ? (ra.conj ? 1 : 0) | (rb.conj ? 2 : 0) : 0;
    p->a = (st_side){ra, m.a, k.a, p->kernel->pack_a, p->kernel->mr};
    p->b = (st_side){st_rule_transposed(rb), nn.b, k.b, p->kernel->pack_b, p->nr};
    p->kc = 512;
    p->mc = st_max64(p->kernel->mr, h->cpu->l2 / 4 / (p->kc * p->es) / p->kernel->mr * p->kernel->mr);
    p->nc = st_min64(MOST_PANELS * p->nr, st_max64(p->nr, (4 << 20) / (p->kc * p->es) / p->nr * p->nr));
    double macs = 0;
    const double peak =
        st_contract_peak(h->cpu, st_type_part(p->type)) / (st_type_is_complex(p->type) ? 4 : 1);
    for (int64_t i = 0; i < p->M; i += 64)
        macs += (double)work(p, true, i, st_min64(64, p->M - i)) * (double)st_min64(64, p->M - i);
    p->us = ((double)p->G * (0.2 + macs * 2 / (0.8 * peak))) + 0.3;
    const double touched = (double)(p->M * p->K + p->K * p->N + p->M * p->N) * (double)p->es;
    p->us += (double)p->G * touched / 40000.0;
    p->threads = p->us < 6 ? 1 : st_threads(h);
    const int64_t kc = st_min64(p->kc, st_max64(p->K, 1)),
                  rows = st_min64(p->mc, st_round_up(st_max64(p->M, 1), p->kernel->mr)),
                  cols = st_min64(p->nc, st_round_up(st_max64(p->N, 1), p->nr));
    p->abytes = (size_t)st_round_up(rows * kc * p->es + ST_PACK_SLACK, 4096);
    p->bbytes = (size_t)st_round_up(cols * kc * p->es + ST_PACK_SLACK, 4096);
    p->each = p->abytes + p->bbytes + (size_t)st_round_up(p->kernel->mr * p->nr * p->es, 64);
    return true;
}

bool st_structured_direct(strata_handle *h, const st_contract *c, const double alpha[2], const double beta[2],
                          void *const data[])
{
    if (c->ta != c->tc || h->workspace_is_callers || atomic_load_explicit(&st_trace_on, memory_order_relaxed))
        return false;
    if ((alpha[0] == 0 && alpha[1] == 0) || st_axes_len(&c->k) > SMALL || st_axes_len(&c->m) > SMALL ||
        st_axes_len(&c->n) > SMALL || st_axes_len(&c->k) == 0 || c->batch.count)
        return false;
    const st_kernel_row *row = st_kernel_best("gemm_packed", (int)c->ta, h->cpu);
    const st_problem pr = {ST_OP_CONTRACT, "", c, sizeof *c, NULL};
    st_structured_plan p; /* its head is not looked at */
    char why[160];
    if (!row || !setup(h, &pr, row, &p, why, sizeof why)) return false;
    if (p.M == 0 || p.N == 0) return true;
    if (!p.pointers && (p.ccs == 1 || p.N == 1)) {
        const st_small_structured small = {p.type,
                                           p.conj,
                                           p.M,
                                           p.N,
                                           p.K,
                                           p.crs,
                                           p.a,
                                           p.b,
                                           p.rule_c,
                                           data[p.swapped ? 1 : 0],
                                           data[p.swapped ? 0 : 1],
                                           data[2]};
        if (st_structured_small(h->cpu, &small, alpha, beta)) return true;
    }
    if (p.each > h->workspace_limit) return false;
    const st_enter e = st_handle_enter(h);
    if (ST_UNLIKELY(e == ST_IN_USE)) return false;
    char *ws = st_workspace(h, p.each);
    const job j = {&p, data, {alpha[0], alpha[1], beta[0], beta[1]}, ws};
    if (ws) run_thread((void *)(uintptr_t)&j, 0, 1);
    st_handle_leave(h, e);
    return ws != NULL;
}

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    int rows, n = 0;
    const st_contract *pc = pr->data;
    const st_kernel_row *row = st_kernel_rows(&rows);
    if (!st_gemm_structured(pc)) return 0;
    for (int i = 0; i < rows && n < max; i++, row++) {
        if (strcmp(row->provider, "gemm_packed") || row->type != pc->ta) continue;
        if (((const st_packed_kernel *)row->impl)->unit != 1) continue;
        st_candidate *c = &out[n++];
        st_structured_plan p;
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
    const strata_status s = st_contract_plan_of(h, pr, c->row, sizeof(st_structured_plan), setup, &head);
    if (s) return s;
    st_structured_plan *p = (st_structured_plan *)head;
    head->base.run = run;
    head->base.workspace = p->each * (size_t)p->threads;
    *plan = &head->base;
    return STRATA_OK;
}

const st_provider st_gemm_structured_provider = {.name = "gemm_structured",
                                                 .op = ST_OP_CONTRACT,
                                                 .enumerate = enumerate,
                                                 .build = build,
                                                 .where = ST_ON_CPU};
