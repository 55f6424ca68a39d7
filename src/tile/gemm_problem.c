/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_problem.c - brings a contraction into the form of gemm.h, and the parts of running it that are the same for every
 * provider: the product that is zero, and the epilogue on a rectangle. */
#include "tile/gemm.h"
#include <stdio.h>
#include <string.h>

enum { LIST_M, LIST_N, LIST_BATCH, LIST_K };

static int64_t *epi_strides(st_epi_operand *e, int list)
{
    return list == LIST_M ? e->sm : list == LIST_N ? e->sn : e->sb;
}

/* Drops axes of length 1, merges an axis into its inner neighbour where every operand steps through both as through one. */
static void collapse(st_gemm *g, st_axes *l, int list)
{
    st_axes r = {0};
    for (int d = 0; d < (int)l->count; d++) {
        if (l->ax[d].len == 1) continue;
        int k = (int)r.count;
        bool join = k > 0 && r.ax[k - 1].a == l->ax[d].a * l->ax[d].len &&
                    r.ax[k - 1].b == l->ax[d].b * l->ax[d].len && r.ax[k - 1].c == l->ax[d].c * l->ax[d].len;
        for (int e = 0; list != LIST_K && join && e < (int)g->flat.epi_operands; e++) {
            int64_t *s = epi_strides(&g->flat.epi[e], list);
            join = s[k - 1] == s[d] * l->ax[d].len;
        }
        int at = join ? k - 1 : k;
        int64_t len = join ? r.ax[k - 1].len * l->ax[d].len : l->ax[d].len;
        r.ax[at] = l->ax[d];
        r.ax[at].len = len;
        for (int e = 0; list != LIST_K && e < (int)g->flat.epi_operands; e++) {
            int64_t *s = epi_strides(&g->flat.epi[e], list);
            s[at] = s[d];
        }
        r.count = at + 1;
    }
    *l = r;
}

static void exchange(st_gemm *g)
{
    st_axes t = g->m;
    g->m = g->n;
    g->n = t;
    st_axes *lists[] = {&g->m, &g->n, &g->k, &g->batch};
    for (int i = 0; i < 4; i++)
        for (int d = 0; d < (int)lists[i]->count; d++) {
            int64_t a = lists[i]->ax[d].a;
            lists[i]->ax[d].a = lists[i]->ax[d].b;
            lists[i]->ax[d].b = a;
        }
    for (int e = 0; e < (int)g->flat.epi_operands; e++) {
        int64_t s[ST_AXES];
        memcpy(s, g->flat.epi[e].sm, sizeof s);
        memcpy(g->flat.epi[e].sm, g->flat.epi[e].sn, sizeof s);
        memcpy(g->flat.epi[e].sn, s, sizeof s);
    }
    g->swapped = !g->swapped;
    int type = g->ta;
    g->ta = g->tb;
    g->tb = type;
    int64_t size = g->ea;
    g->ea = g->eb;
    g->eb = size;
    g->conj = (g->conj & 1) << 1 | g->conj >> 1;
}

/* One batch axis that B does not have goes on where m ends: one taller product instead of many. */
static void batch_into_rows(st_gemm *g)
{
    if (g->batch.count != 1 || g->m.count > 1) return;
    st_axis x = g->batch.ax[0];
    if (x.b != 0) return;
    if (g->m.count == 1) {
        st_axis *m = &g->m.ax[0];
        if (x.a != m->a * m->len || x.c != m->c * m->len) return;
        for (int e = 0; e < (int)g->flat.epi_operands; e++)
            if (g->flat.epi[e].sb[0] != g->flat.epi[e].sm[0] * m->len) return;
        m->len *= x.len;
    } else {
        for (int e = 0; e < (int)g->flat.epi_operands; e++) g->flat.epi[e].sm[0] = g->flat.epi[e].sb[0];
        g->m.ax[0] = x;
        g->m.count = 1;
    }
    for (int e = 0; e < (int)g->flat.epi_operands; e++)
        memset(g->flat.epi[e].sb, 0, sizeof g->flat.epi[e].sb);
    g->batch.count = 0;
}

static bool is_half(int64_t t) { return t == STRATA_F16 || t == STRATA_BF16; }
static bool is_f8(int64_t t) { return t == STRATA_F8E4M3 || t == STRATA_F8E5M2; }
static bool is_byte(int64_t t) { return t == STRATA_I8 || t == STRATA_U8; }

/* The type of the sums, STRATA_NONE for types that do not go together. */
static int sum_type(const st_contract *c)
{
    const int64_t a = c->ta, b = c->tb, t = c->tc;
    if (a == b && a == t && (a == STRATA_F32 || a == STRATA_F64 || st_type_is_complex((int)a))) return (int)a;
    if (((is_half(a) && a == b) || (is_f8(a) && is_f8(b))) &&
        (t == STRATA_F32 || is_half(t) || is_f8(t) || is_byte(t)))
        return STRATA_F32;
    if (is_byte(a) && is_byte(b) && (t == STRATA_I32 || t == STRATA_F32 || is_half(t) || is_byte(t)))
        return STRATA_I32;
    return STRATA_NONE;
}

static int64_t bytes_of(int64_t type) { return (int64_t)strata_type_bits((strata_type)type) / 8; }

bool st_gemm_normalise(const st_contract *c, const char *text, st_gemm *g, char *why, size_t n)
{
    memset(g, 0, sizeof *g);
    st_contract plain = *c; /* conjugates are other signs in a kernel's store */
    plain.rule_a.conj = plain.rule_b.conj = 0;
    if (st_contract_rules(&plain, why, n)) return false;
    if (c->bounds) {
        snprintf(why, n, "the operand has bounds (a window of an image); this one reads plain views");
        return false;
    }
    g->type = sum_type(c);
    if (g->type == STRATA_NONE || (st_type_is_complex(g->type) && text)) {
        snprintf(why, n,
                 g->type
                     ? "has no epilogues in complex numbers (%s x %s into %s)"
                     : "takes f32, f64, c64 or c128 throughout, 16-bit or 8-bit floats into f32 or shorter, "
                       "bytes into i32, f32 or shorter; not %s x %s into %s",
                 strata_type_name((strata_type)c->ta), strata_type_name((strata_type)c->tb),
                 strata_type_name((strata_type)c->tc));
        return false;
    }
    g->ta = (int)c->ta;
    g->tb = (int)c->tb;
    g->tc = (int)c->tc;
    g->es = bytes_of(g->type);
    g->ea = bytes_of(c->ta);
    g->eb = bytes_of(c->tb);
    g->ec = bytes_of(c->tc);
    g->one_type = g->ta == g->tc;
    if (st_type_is_complex(g->type)) g->conj = (c->rule_a.conj ? 1 : 0) | (c->rule_b.conj ? 2 : 0);
    g->m = c->m;
    g->n = c->n;
    g->k = c->k;
    g->batch = c->batch;
    g->flat = *c;
    if (!text) g->flat.epi_operands = 0;
    collapse(g, &g->m, LIST_M);
    collapse(g, &g->n, LIST_N);
    collapse(g, &g->k, LIST_K);
    collapse(g, &g->batch, LIST_BATCH);
    int64_t mc = st_axes_inner(&g->m, 'c'), nc = st_axes_inner(&g->n, 'c');
    /* index() in an expression counts along m and n as the caller named them: then the roles stay */
    bool named = text && strstr(text, "index");
    if (!named && ((nc != 1 && mc == 1) || (g->n.count == 0 && g->m.count > 0 && mc == 1))) exchange(g);
    if (!named) batch_into_rows(g);
    g->M = st_axes_len(&g->m);
    g->N = st_axes_len(&g->n);
    g->K = st_axes_len(&g->k);
    g->G = st_axes_len(&g->batch);
    g->flat.m = g->m;
    g->flat.n = g->n;
    g->flat.k = g->k;
    g->flat.batch = g->batch;
    return true;
}

/* Measured on one core (f32, 256 and 512 long): dot products, whose B would have to be turned, gain 1.2 to 8 times; few columns, whose vectors
 * would be mostly empty, 1.7 to 5; B read as it lies loses up to 2 times while it stays in L2. */
bool st_gemm_skinny_serves(const st_cpu *cpu, int64_t es, int64_t m, int64_t n, int64_t k, int64_t bcs)
{
    const int64_t elements = (m <= n ? n : m) * k;
    if (st_min64(m, n) > ST_SKINNY_MOST || elements < ST_SKINNY_LEAST) return false;
    if ((double)elements * (double)es > 0.6 * (double)cpu->l2) return true;
    return m <= n ? bcs != 1 : n * es < 32;
}

#define SCALE_ROW(T)                                                          \
    do {                                                                      \
        T *p = c, b = (T)f->beta;                                             \
        for (int64_t j = 0; j < n; j++) p[j * cs] = zero ? 0 : p[j * cs] * b; \
    } while (0)
#define SCALE_PAIRS(T)                                           \
    do {                                                         \
        T *p = c, b = (T)f->beta, i = (T)f->beta_im;             \
        for (int64_t j = 0; j < n; j++, p += 2 * cs) {           \
            const T re = zero ? 0 : p[0], im = zero ? 0 : p[1];  \
            p[0] = zero ? 0 : i == 0 ? b * re : b * re - i * im; \
            p[1] = zero ? 0 : i == 0 ? b * im : b * im + i * re; \
        }                                                        \
    } while (0)

static void scale_row(int type, void *c, int64_t n, int64_t cs, const st_factors *f)
{
    const bool zero = f->beta == 0 && f->beta_im == 0;
    const int64_t es = bytes_of(type);
    switch (type) {
    case STRATA_F64: SCALE_ROW(double); break;
    case STRATA_F32: SCALE_ROW(float); break;
    case STRATA_C128: SCALE_PAIRS(double); break;
    case STRATA_C64: SCALE_PAIRS(float); break;
    default:
        for (int64_t j = 0; j < n; j++) {
            char *p = (char *)c + j * cs * es;
            double v = 0;
            if (!zero) st_load_f64(type, p, &v);
            st_store_f64(type, p, zero ? 0 : f->beta * v);
        }
    }
}

void st_gemm_scale(const st_gemm *g, void *c, const st_factors *f)
{
    if (f->beta == 1 && f->beta_im == 0) return;
    int64_t cs = st_axes_inner(&g->n, 'c');
    for (int64_t b = 0; b < g->G; b++)
        for (int64_t i = 0; i < g->M; i++) {
            int64_t row = st_axes_offset(&g->batch, 'c', b) + st_axes_offset(&g->m, 'c', i);
            for (int64_t j = 0; j < g->N;) {
                int64_t run = st_min64(st_axes_run(&g->n, j), g->N - j);
                scale_row(g->tc, (char *)c + (row + st_axes_offset(&g->n, 'c', j)) * g->ec, run, cs, f);
                j += run;
            }
        }
}

void st_gemm_epilogue(const st_gemm *g, const st_expr *x, void *const data[], int64_t item, int64_t i0,
                      int64_t rows, int64_t j0, int64_t cols, void *scratch)
{
    st_epilogue_run(x, &g->flat, data, NULL, item, i0, rows, j0, cols, scratch);
}
