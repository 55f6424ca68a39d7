/* SPDX-License-Identifier: Apache-2.0 */
/* skinny.c - products with 1 to 16 rows (or, as the transposed product, columns): the large operand is read once, where it is.
 *
 *     S[m x n] = sum over k of A(m,k) B(k,n)      S: compact scratch in the workspace;  A: packed there
 *     C = alpha S + beta C, or the epilogue, in a last pass over the small result
 *
 * NN (B contiguous along n): KB rows of B at a time over all columns. NT (B contiguous along k): tiles of dot products. Columns are
 * divided among the threads; a column's sum never depends on how.
 *
 * Complex numbers are two real rows of A a row, by the same kernels on B as it lies, a real matrix of pairs: NN its real and its imaginary parts, joined
 * in the last pass as the packed product joins them; NT (re, -im) and (im, re), whose dot products with B's pairs are the two parts of the
 * result. Conjugates are signs there.
 *
 * bf16 and f16 are widened as they are loaded, A once, as it is packed: sums are f32. */
#include "tile/contract.h"
#include "tile/epilogue.h"
#include "tile/cpu/skinny_kernel.h"
#include <stdio.h>
#include <string.h>

enum {
    KB_NN = 8,
    KB_NN_DEEP = 32,
    KB_NT = 512,
    AHEAD = 512,
    MIN_ELEMENTS = 32768,
    LINES = 2 * ST_SKINNY_ROWS
};

typedef struct st_skinny_shape {
    bool swap, nt;
    int64_t m, n, k;
    int64_t ams, aks, bks, bns, cms, cns; /* strides of the (swapped) problem */
    int conj;                             /* complex: 1 conjugates A, 2 B, of the (swapped) problem */
} st_skinny_shape;

typedef struct st_skinny_plan {
    st_contract_plan head;
    const st_skinny_kernel *kernel;
    bool pairs;                        /* complex */
    st_skinny_shape s;                 /* in real numbers: what the kernels see */
    st_skinny_shape el;                /* the same in elements */
    int64_t lds;                       /* of S, elements */
    int groups, mr[LINES], row[LINES]; /* row groups of one pass */
    int64_t kb, width;                 /* steps of k a pass; columns a tile */
    bool pack_a;
    size_t a_bytes, s_bytes; /* parts of the workspace: packed A, S, the epilogue's scratch */
    size_t epi_bytes;
} st_skinny_plan;

typedef struct st_skinny_job {
    const st_skinny_plan *p;
    const char *a, *b; /* packed A (or A in place); B */
    int64_t lda;
    char *s;
    int64_t size, given; /* bytes of a number: of sums, and of B */
} st_skinny_job;

/* One axis of the list after dropping ones and merging neighbours; false when more than one is left. */
static bool single(const st_axes *l, st_axis *out)
{
    *out = (st_axis){1, 0, 0, 0};
    bool any = false;
    for (int64_t i = 0; i < l->count; i++) {
        st_axis x = l->ax[i];
        if (x.len == 1) continue;
        if (!any) {
            *out = x;
            any = true;
        } else if (out->a == x.a * x.len && out->b == x.b * x.len && out->c == x.c * x.len) {
            *out = (st_axis){out->len * x.len, x.a, x.b, x.c};
        } else {
            return false;
        }
    }
    return true;
}

static bool shape_of(const st_contract *c, st_skinny_shape *s, char *why, size_t n)
{
    st_axis m, nn, k;
    const bool complex = st_type_is_complex((int)c->ta);
    st_contract plain = *c;
    plain.rule_a.conj = plain.rule_b.conj = 0;
    if (st_contract_rules(&plain, why, n)) return false;
    if (c->bounds) return snprintf(why, n, "A is a window of an image"), false;
    if (!single(&c->m, &m) || !single(&c->n, &nn) || !single(&c->k, &k))
        return snprintf(why, n, "m, n or k is several axes that do not merge into one stride"), false;
    if (st_min64(m.len, nn.len) > ST_SKINNY_ROWS)
        return snprintf(why, n, "C is %lldx%lld: the smaller side must be at most %d", (long long)m.len,
                        (long long)nn.len, ST_SKINNY_ROWS),
               false;
    s->swap = nn.len < m.len;
    s->k = k.len;
    if (s->swap)
        *s = (st_skinny_shape){true, false, nn.len, m.len, k.len, nn.b, k.b, k.a, m.a, nn.c, m.c, 0};
    else
        *s = (st_skinny_shape){false, false, m.len, nn.len, k.len, m.a, k.a, k.b, nn.b, m.c, nn.c, 0};
    if (complex)
        s->conj = (c->rule_a.conj ? (s->swap ? 2 : 1) : 0) | (c->rule_b.conj ? (s->swap ? 1 : 2) : 0);
    if (s->n * s->k < MIN_ELEMENTS)
        return snprintf(why, n, "the large operand has %lld elements, fewer than %d: not worth it",
                        (long long)(s->n * s->k), MIN_ELEMENTS),
               false;
    if (s->bns == 1 || s->n == 1) {
        s->nt = s->bns != 1 && s->bks == 1;
    } else if (s->bks == 1 || s->k == 1) {
        s->nt = true;
    } else {
        return snprintf(why, n, "the large operand has unit stride along neither of its sides (%lld, %lld)",
                        (long long)s->bks, (long long)s->bns),
               false;
    }
    if (!s->nt && s->bns != 1) return snprintf(why, n, "the large operand is strided"), false;
    return true;
}

/* A complex problem in real numbers. */
static st_skinny_shape in_numbers(const st_skinny_shape *e)
{
    st_skinny_shape s = *e;
    s.m *= 2;
    if (s.nt) {
        s.k *= 2;
        s.bks = 1;
        s.bns *= 2;
    } else {
        s.n *= 2;
        s.bns = 1;
        s.bks *= 2;
    }
    return s;
}
/* bytes of a number of the sums, and of A and B */
static int64_t number_bytes(const st_contract *c) { return st_type_part((int)c->ta) == STRATA_F64 ? 8 : 4; }

static bool is_half(int type) { return type == STRATA_BF16 || type == STRATA_F16; }
static int64_t given_bytes(const st_contract *c) { return is_half((int)c->ta) ? 2 : number_bytes(c); }

/* C has A's type, or f32 for short floats; short ones are rounded once, so an epilogue, which sees sums in C, needs f32. */
static bool types_of(const st_contract *c, bool expr, char *why, size_t n)
{
    const bool half = is_half((int)c->ta);
    if (c->ta != c->tb || (c->ta != c->tc && !(half && c->tc == STRATA_F32)))
        return snprintf(why, n, "A and B must have one type, and C too%s", half ? " or f32" : ""), false;
    if (half && expr && c->tc != STRATA_F32)
        return snprintf(why, n, "an epilogue needs C in f32 here"), false;
    return true;
}

static double predict(const strata_handle *h, const st_contract *c, const st_skinny_shape *s)
{
    double size = (double)given_bytes(c), bytes = size * (double)s->n * (double)s->k;
    double rate = bytes > (double)h->cpu->l3   ? ST_CONTRACT_BYTES_PER_US * 0.7
                  : bytes > (double)h->cpu->l2 ? ST_CONTRACT_BYTES_PER_US * 1.2
                                               : 6e4;
    double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k /
                   (st_contract_peak(h->cpu, number_bytes(c) == 8 ? STRATA_F64 : STRATA_F32) * 0.7);
    double batch = (double)st_axes_len(&c->batch);
    return batch * (1.0 + (bytes / rate > flops ? bytes / rate + 0.2 * flops : flops + 0.2 * bytes / rate));
}

static int enumerate(strata_handle *h, const st_problem *p, st_candidate *out, int max)
{
    const st_contract *c = p->data;
    int rows, n = 0;
    const st_kernel_row *row = st_kernel_rows(&rows);
    st_skinny_shape s;
    char why[160] = "";
    bool fits = types_of(c, p->text != NULL, why, sizeof why) && shape_of(c, &s, why, sizeof why);
    if (fits && st_type_is_complex((int)c->ta)) {
        fits = !p->text;
        if (!fits) snprintf(why, sizeof why, "has no epilogues in complex numbers");
        s = in_numbers(&s);
    }
    for (int i = 0; i < rows && n < max; i++) {
        if (strcmp(row[i].provider, "gemm_skinny") || row[i].type != c->ta) continue;
        st_candidate *o = &out[n++];
        snprintf(o->kernel, sizeof o->kernel, "%s", row[i].id);
        o->row = &row[i];
        o->order = row[i].order;
        o->us = -1;
        o->row_count_matters = true; /* which side is the small one, and so the form, follows from it */
        if (st_kernel_why_not(&row[i], h->cpu, o->why, sizeof o->why)) continue;
        if (!fits) {
            snprintf(o->why, sizeof o->why, "%s", why);
            continue;
        }
        /* slower instruction sets behind faster ones */
        double scale = row[i].needs & ST_ISA_AVX512 ? 1 : row[i].needs & ST_ISA_AVX2 ? 1.3 : 4;
        o->us = predict(h, c, &s) * (h->cpu->level == ST_LEVEL_PORTABLE ? 1 : scale);
        const st_skinny_kernel *k = row[i].impl;
        if (s.nt) o->order_arg = k->vl; /* lanes */
        const int64_t size = number_bytes(c);
        o->workspace = (size_t)(st_round_up((s.m * (s.k + k->vl)) * size, 64) +
                                st_round_up(s.m * (st_round_up(s.n, k->vl) + k->vl) * size, 64));
    }
    return n;
}

/* ---- running ---- */

static void nn_columns(const st_skinny_job *j, int64_t j0, int64_t j1)
{
    const st_skinny_plan *p = j->p;
    const st_skinny_shape *s = &p->s;
    for (int64_t k0 = 0; k0 < s->k; k0 += p->kb) {
        int64_t kb = st_min64(p->kb, s->k - k0);
        for (int64_t c = j0; c < j1; c += p->width) {
            int64_t cols = st_min64(p->width, j1 - c);
            for (int g = 0; g < p->groups; g++)
                p->kernel->nn[p->mr[g]](kb, j->a + (p->row[g] * s->k + k0 * p->mr[g]) * j->size,
                                        j->b + (k0 * s->bks + c) * j->given, s->bks,
                                        j->s + (p->row[g] * p->lds + c) * j->size, p->lds, cols, k0 == 0,
                                        g == 0 ? AHEAD : 0);
        }
    }
}

static void nt_columns(const st_skinny_job *j, int64_t j0, int64_t j1)
{
    const st_skinny_plan *p = j->p;
    const st_skinny_shape *s = &p->s;
    _Alignas(64) char part[LINES * ST_SKINNY_NR * 64];
    for (int64_t c = j0; c < j1; c += p->width) {
        int nr = (int)st_min64(p->width, j1 - c);
        for (int64_t k0 = 0; k0 < s->k; k0 += p->kb) {
            int64_t kb = st_min64(p->kb, s->k - k0);
            for (int g = 0; g < p->groups; g++)
                p->kernel->nt[(p->mr[g] - 1) * ST_SKINNY_NR + nr - 1](
                    kb, j->a + (p->row[g] * j->lda + k0) * j->size, j->lda,
                    j->b + (c * s->bns + k0) * j->given, s->bns,
                    part + p->row[g] * nr * p->kernel->vl * j->size, k0 == 0, g == 0 ? AHEAD : 0);
        }
        for (int64_t i = 0; i < s->m; i++)
            p->kernel->reduce(nr, part + i * nr * p->kernel->vl * j->size, j->s + (i * p->lds + c) * j->size,
                              1);
    }
}

#define FINISH(T)                                                                                  \
    static void finish_##T(const st_skinny_plan *p, const T *s, T *c, T alpha, T beta, int64_t j0, \
                           int64_t j1)                                                             \
    {                                                                                              \
        const int64_t cms = p->s.cms, cns = p->s.cns;                                              \
        for (int64_t i = 0; i < p->s.m; i++) {                                                     \
            const T *x = s + i * p->lds;                                                           \
            T *y = c + i * cms;                                                                    \
            if (beta == 0)                                                                         \
                for (int64_t j = j0; j < j1; j++) y[j * cns] = alpha * x[j];                       \
            else                                                                                   \
                for (int64_t j = j0; j < j1; j++) y[j * cns] = alpha * x[j] + beta * y[j * cns];   \
        }                                                                                          \
    }
FINISH(float)
FINISH(double)

/* The same of pairs. re C = P.re - Q.im, im C = P.im + Q.re with the signs of conjugates, as gemm_body.h has it. */
#define FINISH_PAIRS(T)                                                                                 \
    static void finish_pairs_##T(const st_skinny_plan *p, const T *s, T *c, const double al[2],         \
                                 const double be[2], int64_t j0, int64_t j1)                            \
    {                                                                                                   \
        const st_skinny_shape *e = &p->el;                                                              \
        const T ar = (T)al[0], ai = (T)al[1], br = (T)be[0], bi = (T)be[1];                             \
        const T sa = e->conj & 1 ? -1 : 1, sb = e->conj & 2 ? -1 : 1;                                   \
        for (int64_t i = 0; i < e->m; i++) {                                                            \
            const T *x = s + (p->s.nt ? 2 * i : i) * p->lds, *y = x + (p->s.nt ? 1 : e->m) * p->lds;    \
            T *z = c + 2 * (i * e->cms + j0 * e->cns);                                                  \
            for (int64_t j = j0; j < j1; j++, z += 2 * e->cns) {                                        \
                T re, im;                                                                               \
                if (p->s.nt)                                                                            \
                    re = x[j], im = y[j];                                                               \
                else                                                                                    \
                    re = x[2 * j] - sa * sb * y[2 * j + 1], im = sb * x[2 * j + 1] + sa * y[2 * j];     \
                T u = ai == 0 ? ar * re : ar * re - ai * im, v = ai == 0 ? ar * im : ar * im + ai * re; \
                if (br != 0 || bi != 0) {                                                               \
                    u += bi == 0 ? br * z[0] : br * z[0] - bi * z[1];                                   \
                    v += bi == 0 ? br * z[1] : br * z[1] + bi * z[0];                                   \
                }                                                                                       \
                z[0] = u;                                                                               \
                z[1] = v;                                                                               \
            }                                                                                           \
        }                                                                                               \
    }
FINISH_PAIRS(float)
FINISH_PAIRS(double)

/* Sums into a C of short floats, rounded once. */
static float read_short(int type, const char *p)
{
    double v = 0;
    st_load_f64(type, p, &v);
    return (float)v;
}
static void write_short(int type, char *p, float v)
{
    union {
        float f;
        uint32_t u;
    } x = {v};
    if (type != STRATA_BF16 || v != v) {
        st_store_f64(type, p, (double)v);
        return;
    }
    const uint16_t h = (uint16_t)((x.u + 0x7fff + (x.u >> 16 & 1)) >> 16);
    memcpy(p, &h, 2);
}
static void finish_short(const st_skinny_plan *p, const float *s, char *c, float alpha, float beta,
                         int64_t j0, int64_t j1)
{
    const int type = (int)p->head.problem.tc;
    for (int64_t i = 0; i < p->s.m; i++) {
        const float *x = s + i * p->lds;
        for (int64_t j = j0; j < j1; j++) {
            char *y = c + (i * p->s.cms + j * p->s.cns) * 2;
            write_short(type, y, beta == 0 ? alpha * x[j] : alpha * x[j] + beta * read_short(type, y));
        }
    }
}

/* A of a dot product with pairs: rows 2 i and 2 i + 1 of 2 k numbers */
#define PACK_DOTS(T)                                                       \
    static void pack_dots_##T(const st_skinny_shape *e, const T *a, T *to) \
    {                                                                      \
        const T sa = e->conj & 1 ? -1 : 1, sb = e->conj & 2 ? -1 : 1;      \
        for (int64_t i = 0; i < e->m; i++, to += 4 * e->k) {               \
            const T *x = a + 2 * i * e->ams;                               \
            T *y = to + 2 * e->k;                                          \
            for (int64_t p = 0; p < e->k; p++, x += 2 * e->aks) {          \
                to[2 * p] = x[0];                                          \
                to[2 * p + 1] = -sa * sb * x[1];                           \
                y[2 * p] = sa * x[1];                                      \
                y[2 * p + 1] = sb * x[0];                                  \
            }                                                              \
        }                                                                  \
    }
PACK_DOTS(float)
PACK_DOTS(double)

/* Columns [j0, j1) of the kernels' sums into C; there are whole pairs. */
static void finish(const st_skinny_plan *p, const char *s, char *c, int64_t size, const double alpha[2],
                   const double beta[2], int64_t j0, int64_t j1)
{
    const int64_t e0 = p->s.nt ? j0 : j0 / 2, e1 = p->s.nt ? j1 : j1 / 2;
    const float *fs = (const float *)(const void *)s;
    const double *ds = (const double *)(const void *)s;
    float *fc = (float *)(void *)c;
    double *dc = (double *)(void *)c;
    if (p->pairs && size == 4)
        finish_pairs_float(p, fs, fc, alpha, beta, e0, e1);
    else if (p->pairs)
        finish_pairs_double(p, ds, dc, alpha, beta, e0, e1);
    else if (is_half((int)p->head.problem.tc))
        finish_short(p, fs, c, (float)alpha[0], (float)beta[0], j0, j1);
    else if (size == 4)
        finish_float(p, fs, fc, (float)alpha[0], (float)beta[0], j0, j1);
    else
        finish_double(p, ds, dc, alpha[0], beta[0], j0, j1);
}

typedef struct st_skinny_run {
    st_skinny_job job;
    char *c;
    double alpha[2], beta[2];
} st_skinny_run;

static void body(void *v, int id, int n)
{
    const st_skinny_run *r = v;
    const st_skinny_plan *p = r->job.p;
    /* whole tiles for each thread */
    int64_t tiles = st_ceil_div(p->s.n, p->width), j0 = tiles * id / n * p->width,
            j1 = st_min64(tiles * (id + 1) / n * p->width, p->s.n);
    if (j0 >= j1) return;
    if (p->s.nt)
        nt_columns(&r->job, j0, j1);
    else
        nn_columns(&r->job, j0, j1);
    finish(p, r->job.s, r->c, r->job.size, r->alpha, r->beta, j0, j1);
}

/* alpha = 0 or k = 0: A and B are not read. */
static void scale_only(const st_skinny_plan *p, char *c, char *s, int64_t size, const double beta[2])
{
    static const double none[2];
    memset(s, 0, (size_t)(p->s.m * p->lds * size));
    finish(p, s, c, size, none, beta, 0, p->s.n);
}

static const char *prepare_a(const st_skinny_plan *p, const char *a, char *room, int64_t size, int64_t *lda)
{
    const st_skinny_shape *s = &p->s;
    const int64_t given = p->kernel->half ? 2 : size;
    *lda = s->ams;
    if (!p->pack_a) return a;
    *lda = s->k;
    if (p->pairs && s->nt) {
        if (size == 4)
            pack_dots_float(&p->el, (const float *)(const void *)a, (float *)(void *)room);
        else
            pack_dots_double(&p->el, (const double *)(const void *)a, (double *)(void *)room);
        return room;
    }
    for (int g = 0; p->pairs && g < p->groups; g++) {
        const int64_t line = p->row[g] % p->el.m, part = p->row[g] / p->el.m;
        p->kernel->pack(room + p->row[g] * s->k * size, p->mr[g], s->k,
                        a + (2 * line * p->el.ams + part) * size, 2 * p->el.ams, 2 * p->el.aks);
    }
    if (p->pairs) return room;
    if (s->nt) { /* rows made contiguous: "lines" are steps of k */
        p->kernel->pack(room, s->k, s->m, a, s->aks, s->ams);
        return room;
    }
    for (int g = 0; g < p->groups; g++)
        p->kernel->pack(room + p->row[g] * s->k * size, p->mr[g], s->k, a + p->row[g] * s->ams * given,
                        s->ams, s->aks);
    return room;
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const st_skinny_plan *p = (const st_skinny_plan *)(const void *)plan;
    const st_contract *c = &p->head.problem;
    const int64_t size = number_bytes(c), given = given_bytes(c), es = p->pairs ? 2 * size : given,
                  ec = is_half((int)c->tc) ? 2
                       : p->pairs          ? 2 * size
                                           : size,
                  batch = st_axes_len(&c->batch);
    uint64_t t0 = st_trace_begin();
    double alpha[2], beta[2];
    strata_status st = st_contract_scalars_complex(h, &p->head, r, alpha, beta);
    if (st) return st;
    char *ws = st_plan_workspace(h, plan, r);
    if (!ws) return h->err.status;
    int threads = 1;
    for (int64_t g = 0; g < batch; g++) {
        const char *a =
            (const char *)data[p->s.swap ? 1 : 0] + st_axes_offset(&c->batch, p->s.swap ? 'b' : 'a', g) * es;
        const char *b =
            (const char *)data[p->s.swap ? 0 : 1] + st_axes_offset(&c->batch, p->s.swap ? 'a' : 'b', g) * es;
        st_skinny_run job = {{p, NULL, b, 0, ws + p->a_bytes, size, given},
                             (char *)data[2] + st_axes_offset(&c->batch, 'c', g) * ec,
                             {alpha[0], alpha[1]},
                             {beta[0], beta[1]}};
        if ((alpha[0] == 0 && alpha[1] == 0) || p->s.k == 0) {
            scale_only(p, job.c, job.job.s, size, beta);
        } else {
            job.job.a = prepare_a(p, a, ws, size, &job.job.lda);
            threads = st_team_run_apart(h, st_threads(h), plan->chosen.us / (double)batch, body, &job);
        }
        if (p->head.expr)
            st_epilogue_run(p->head.expr, c, data, NULL, g, 0, st_axes_len(&c->m), 0, st_axes_len(&c->n),
                            ws + p->a_bytes + p->s_bytes);
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel, "%lldx%lldx%lld %s, %d threads, workspace %zu",
                     (long long)p->s.m, (long long)p->s.n, (long long)p->s.k,
                     p->s.nt ? "dot products" : "row streams", threads, plan->workspace);
    return STRATA_OK;
}

/* Rows in passes of nearly equal height, the width of a tile the same for all. */
static void divide_rows(st_skinny_plan *p)
{
    /* complex rows without dots: those of the real parts, then those of the imaginary parts */
    const int halves = p->pairs && !p->s.nt ? 2 : 1;
    int m = (int)p->s.m / halves, most = p->s.nt ? p->kernel->nt_mr : p->kernel->nn_mr, width = 64;
    const int each = (m + most - 1) / most;
    p->groups = halves * each;
    for (int g = 0, at = 0; g < p->groups; g++) {
        p->mr[g] = m / each + (g % each < m % each);
        p->row[g] = at;
        at += p->mr[g];
        if (!p->s.nt && p->kernel->nn_vectors[p->mr[g]] < width) width = p->kernel->nn_vectors[p->mr[g]];
    }
    p->width = p->s.nt ? (m == 1 ? p->kernel->nt_nr1 : p->kernel->nt_nr) : width * p->kernel->vl;
}

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *cand,
                           strata_plan **out)
{
    st_contract_plan *head;
    strata_status st = st_contract_plan_new(h, pr, sizeof(st_skinny_plan), &head);
    if (st) return st;
    st_skinny_plan *p = (st_skinny_plan *)(void *)head;
    char why[160];
    const st_kernel_row *row = cand->row;
    p->kernel = row->impl;
    if (!shape_of(&head->problem, &p->s, why, sizeof why)) {
        head->base.destroy = st_contract_plan_destroy;
        strata_plan_destroy(&head->base);
        return st_fail(&h->err, STRATA_ERROR_INTERNAL, "%s: %s", pr->who, why);
    }
    p->el = p->s;
    p->pairs = st_type_is_complex((int)head->problem.ta);
    if (p->pairs) p->s = in_numbers(&p->el);
    divide_rows(p);
    const int64_t size = number_bytes(&head->problem);
    p->lds = st_round_up(p->s.n, p->kernel->vl) +
             p->kernel->vl; /* one vector more: rows must not be a power of two apart */
    p->kb = p->s.nt ? (p->groups == 1 ? st_max64(p->s.k, 1) : KB_NT) : p->s.m > 4 ? KB_NN_DEEP : KB_NN;
    p->pack_a = !p->s.nt || p->pairs || p->kernel->half || (p->s.aks != 1 && p->s.k > 1);
    p->a_bytes = (size_t)st_round_up(p->pack_a ? p->s.m * p->s.k * size : 0, 64);
    p->s_bytes = (size_t)st_round_up(p->s.m * p->lds * size, 64);
    p->epi_bytes = st_epilogue_scratch(head->expr);
    head->base.workspace = p->a_bytes + p->s_bytes + p->epi_bytes;
    head->base.run = run;
    head->base.destroy = st_contract_plan_destroy;
    *out = &head->base;
    return STRATA_OK;
}

const st_provider st_gemm_skinny_provider = {
    .name = "gemm_skinny", .op = ST_OP_CONTRACT, .enumerate = enumerate, .build = build, .where = ST_ON_CPU};
