/* SPDX-License-Identifier: Apache-2.0 */
/* window_common.c - what the three forms share: indices of axis lists, even splits, finished tiles into C. */
#include "tile/window.h"
#include "tile/epilogue.h"
#include <stdlib.h>

void st_win_block(const st_win_plan *p, int64_t total, int64_t j, int64_t *first, int64_t *count, int *vecs)
{
    const int64_t vl = p->kernel->vl, all = st_ceil_div(total, vl), each = all / p->blocks,
                  more = all % p->blocks;
    const int64_t v0 = j * each + st_min64(j, more), n = each + (j < more);
    *first = v0 * vl;
    *count = st_min64(total - *first, n * vl);
    *vecs = (int)n;
}

void st_win_part(const st_win_plan *p, int64_t part, int64_t *k0, int64_t *k1)
{
    const int64_t each = p->K / p->kparts, more = p->K % p->kparts;
    *k0 = part * each + st_min64(part, more);
    *k1 = *k0 + each + (part < more);
}

bool st_win_b_dense(const st_win_plan *p)
{
    const st_axes *n = &p->c.n, *k = &p->c.k;
    if (n->count != 1 || n->ax[0].b != p->K) return false;
    int64_t s = 1;
    for (int64_t i = k->count - 1; i >= 0; s *= k->ax[i--].len)
        if (k->ax[i].b != s) return false;
    return true;
}

void st_win_for(strata_handle *h, const st_win_plan *p, int64_t tasks, double us, st_task_fn fn, void *arg)
{
    if (tasks > 1 && st_threads(h) <= p->workers) {
        st_team_for(h, tasks, us, fn, arg);
        return;
    }
    for (int64_t i = 0; i < tasks; i++) fn(arg, i, 0);
}

#define SCATTER(T)                                                                                        \
    static void scatter_##T(T *c, const T *t, int64_t pitch, const int64_t *ro, int64_t rows,             \
                            const int64_t *co, int64_t cols, T alpha, T beta)                             \
    {                                                                                                     \
        for (int64_t j = 0; j < cols; j++) {                                                              \
            T *d = c + co[j];                                                                             \
            if (beta == 0)                                                                                \
                for (int64_t i = 0; i < rows; i++) d[ro[i]] = alpha * t[i * pitch + j];                   \
            else                                                                                          \
                for (int64_t i = 0; i < rows; i++) d[ro[i]] = alpha * t[i * pitch + j] + beta * d[ro[i]]; \
        }                                                                                                 \
    }
SCATTER(float)
SCATTER(double)

void st_win_scatter(const st_win_plan *p, bool rows_are_m, void *c, const void *tile, int64_t pitch,
                    int64_t r0, int64_t rows, int64_t c0, int64_t cols, double alpha, double beta)
{
    const st_axes *rl = rows_are_m ? &p->c.m : &p->c.n, *cl = rows_are_m ? &p->c.n : &p->c.m;
    int64_t ro[64], co[64];
    for (int64_t y = 0; y < rows; y += 64) {
        const int64_t nr = st_min64(64, rows - y);
        for (int64_t i = 0; i < nr; i++) ro[i] = st_axes_offset(rl, 'c', r0 + y + i);
        for (int64_t x = 0; x < cols; x += 64) {
            const int64_t nc = st_min64(64, cols - x);
            for (int64_t i = 0; i < nc; i++) co[i] = st_axes_offset(cl, 'c', c0 + x + i);
            const char *t = (const char *)tile + (y * pitch + x) * p->es;
            if (p->es == 4)
                scatter_float(c, (const float *)t, pitch, ro, nr, co, nc, (float)alpha, (float)beta);
            else
                scatter_double(c, (const double *)t, pitch, ro, nr, co, nc, alpha, beta);
        }
    }
}

size_t st_win_epilogue_scratch(const st_win_plan *p) { return st_epilogue_scratch(p->head.expr); }

void st_win_epilogue(const st_win_plan *p, void *const data[], int64_t g, int64_t m0, int64_t rows,
                     int64_t n0, int64_t cols, void *scratch)
{
    if (p->head.expr) st_epilogue_run(p->head.expr, &p->c, data, NULL, g, m0, rows, n0, cols, scratch);
}

void st_win_beta_only(const st_win_plan *p, void *const data[], double beta, void *scratch)
{
    static const double zeros[64] = {0};
    for (int64_t g = 0; g < p->G; g++) {
        char *c = (char *)data[2] + st_axes_offset(&p->c.batch, 'c', g) * p->es;
        for (int64_t n = 0; n < p->N; n += 64)
            st_win_scatter(p, true, c, zeros, 0, 0, p->M, n, st_min64(64, p->N - n), 0, beta);
        st_win_epilogue(p, data, g, 0, p->M, 0, p->N, scratch);
    }
}

strata_status st_win_tap_tables(strata_handle *h, st_win_plan *p)
{
    const st_contract *c = &p->c;
    const size_t taps = (size_t)p->taps;
    p->tap_a = calloc(taps, sizeof *p->tap_a);
    p->tap_c[0] = calloc(taps, sizeof *p->tap_c[0]);
    p->tap_c[1] = calloc(taps, sizeof *p->tap_c[1]);
    if (!p->tap_a || !p->tap_c[0] || !p->tap_c[1])
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "plan: no memory for the tables of %lld taps",
                       (long long)p->taps);
    for (int64_t t = 0; t < p->taps; t++) {
        int64_t idx[ST_AXES] = {0};
        st_axes_index(&c->k, t * p->inner, idx);
        for (int64_t d = 0; d < c->k.count; d++) p->tap_a[t] += idx[d] * c->k.ax[d].a;
        for (int64_t b = 0; b < c->bounds; b++) {
            const int64_t x = c->bound[b].k >= 0 ? c->bound[b].ik * idx[c->bound[b].k] : 0;
            p->tap_c[b][t] = x;
            p->reach[b][0] = t ? st_min64(p->reach[b][0], x) : x;
            p->reach[b][1] = t ? st_max64(p->reach[b][1], x) : x;
        }
    }
    return STRATA_OK;
}

/* Offsets and bound coordinates of pixels m0.. */
void st_win_place(const st_win_plan *p, int64_t m0, int64_t count, st_win_pixels *x)
{
    const st_axes *m = &p->c.m;
    const int64_t last = m->count - 1;
    int64_t idx[ST_AXES] = {0};
    st_axes_index(m, m0, idx);
    for (int64_t i = 0; i < count;) {
        int64_t a = 0, c = 0, at[ST_BOUNDS] = {0}, step[ST_BOUNDS] = {0};
        for (int64_t d = 0; d <= last; d++) {
            a += idx[d] * m->ax[d].a;
            c += idx[d] * m->ax[d].c;
        }
        for (int64_t b = 0; b < p->c.bounds; b++) {
            const st_bound *q = &p->c.bound[b];
            at[b] = q->offset + (q->m >= 0 ? q->im * idx[q->m] : 0);
            step[b] = q->m == last ? q->im : 0;
        }
        const int64_t n = last < 0 ? 1 : st_min64(count - i, m->ax[last].len - idx[last]);
        const int64_t da = last < 0 ? 0 : m->ax[last].a, dc = last < 0 ? 0 : m->ax[last].c;
        for (int64_t e = 0; e < n; e++) {
            x->a[i + e] = a + e * da;
            x->c[i + e] = c + e * dc;
        }
        for (int64_t b = 0; b < p->c.bounds; b++)
            for (int64_t e = 0; e < n; e++) x->at[b][i + e] = at[b] + e * step[b];
        i += n;
        if (last < 0) break;
        idx[last] += n;
        for (int64_t d = last; d > 0 && idx[d] == m->ax[d].len; d--) {
            idx[d] = 0;
            idx[d - 1]++;
        }
    }
}

/* All taps of all rows inside the image? */
bool st_win_inside(const st_win_plan *p, const st_win_pixels *x, int64_t i, int64_t mr)
{
    for (int64_t b = 0; b < p->c.bounds; b++) {
        int64_t lo = x->at[b][i], hi = lo;
        for (int64_t e = 1; e < mr; e++) {
            lo = st_min64(lo, x->at[b][i + e]);
            hi = st_max64(hi, x->at[b][i + e]);
        }
        if (lo + p->reach[b][0] < 0 || hi + p->reach[b][1] >= p->c.bound[b].limit) return false;
    }
    return true;
}
