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

bool st_gemm_normalise(const st_contract *c, const char *text, st_gemm *g, char *why, size_t n)
{
    memset(g, 0, sizeof *g);
    if (st_contract_rules(c, why, n)) return false;
    if (c->bounds) {
        snprintf(why, n, "the operand has bounds (a window of an image); this one reads plain views");
        return false;
    }
    if ((c->ta != STRATA_F32 && c->ta != STRATA_F64) || c->tb != c->ta || c->tc != c->ta) {
        snprintf(why, n, "takes f32 or f64 throughout, not %s x %s into %s",
                 strata_type_name((strata_type)c->ta), strata_type_name((strata_type)c->tb),
                 strata_type_name((strata_type)c->tc));
        return false;
    }
    g->type = (int)c->ta;
    g->es = g->type == STRATA_F64 ? 8 : 4;
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

static void scale_row(int type, void *c, int64_t n, int64_t cs, double beta)
{
    if (type == STRATA_F64) {
        double *p = c;
        if (beta == 0)
            for (int64_t j = 0; j < n; j++) p[j * cs] = 0;
        else
            for (int64_t j = 0; j < n; j++) p[j * cs] *= beta;
    } else {
        float *p = c, b = (float)beta;
        if (beta == 0)
            for (int64_t j = 0; j < n; j++) p[j * cs] = 0;
        else
            for (int64_t j = 0; j < n; j++) p[j * cs] *= b;
    }
}

void st_gemm_scale(const st_gemm *g, void *c, double beta)
{
    if (beta == 1) return;
    int64_t cs = st_axes_inner(&g->n, 'c');
    for (int64_t b = 0; b < g->G; b++)
        for (int64_t i = 0; i < g->M; i++) {
            int64_t row = st_axes_offset(&g->batch, 'c', b) + st_axes_offset(&g->m, 'c', i);
            for (int64_t j = 0; j < g->N;) {
                int64_t run = st_min64(st_axes_run(&g->n, j), g->N - j);
                scale_row(g->type, (char *)c + (row + st_axes_offset(&g->n, 'c', j)) * g->es, run, cs, beta);
                j += run;
            }
        }
}

void st_gemm_epilogue(const st_gemm *g, const st_expr *x, void *const data[], int64_t item, int64_t i0,
                      int64_t rows, int64_t j0, int64_t cols, void *scratch)
{
    st_epilogue_run(x, &g->flat, data, NULL, item, i0, rows, j0, cols, scratch);
}
