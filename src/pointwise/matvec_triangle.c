/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_triangle.c - x := A x and x := A^-1 x in place: diagonal blocks line by line, what lies beside them by rectangles. The order of the blocks is
 * such that a rectangle reads what is still old (product) or already new (solution); so nothing is copied but a block of x. */
#include "pointwise/matvec_lines.h"
#include <math.h>
#include <string.h>

/* One element as two doubles; f32 and f64 have no imaginary part. */
static void load(int type, const void *p, double v[2])
{
    v[1] = 0;
    if (type == STRATA_F32)
        v[0] = (double)*(const float *)p;
    else if (type == STRATA_F64)
        v[0] = *(const double *)p;
    else if (type == STRATA_C64)
        v[0] = (double)((const float *)p)[0], v[1] = (double)((const float *)p)[1];
    else
        v[0] = ((const double *)p)[0], v[1] = ((const double *)p)[1];
}
static void store(int type, void *p, const double v[2])
{
    if (type == STRATA_F32)
        *(float *)p = (float)v[0];
    else if (type == STRATA_F64)
        *(double *)p = v[0];
    else if (type == STRATA_C64)
        ((float *)p)[0] = (float)v[0], ((float *)p)[1] = (float)v[1];
    else
        ((double *)p)[0] = v[0], ((double *)p)[1] = v[1];
}

/* x / d without overflow on the way (Smith, "Algorithm 116", CACM 5, 1962). */
static void divide(double x[2], const double d[2])
{
    if (d[1] == 0) {
        x[0] /= d[0], x[1] /= d[0];
    } else if (fabs(d[0]) >= fabs(d[1])) {
        const double r = d[1] / d[0], s = d[0] + d[1] * r, re = (x[0] + x[1] * r) / s;
        x[1] = (x[1] - x[0] * r) / s;
        x[0] = re;
    } else {
        const double r = d[0] / d[1], s = d[1] + d[0] * r, re = (x[0] * r + x[1]) / s;
        x[1] = (x[1] * r - x[0]) / s;
        x[0] = re;
    }
}

/* x_j (of the dense block `xj`) times or over the diagonal's element. */
static void diagonal(const st_lines *l, int64_t j, bool solve, void *xj)
{
    const char *p = st_lines_at(l, j, j);
    if (l->type == STRATA_F32) {
        float *x = xj, d = *(const float *)(const void *)p;
        *x = solve ? *x / d : *x * d;
    } else if (l->type == STRATA_F64) {
        double *x = xj, d = *(const double *)(const void *)p;
        *x = solve ? *x / d : *x * d;
    } else {
        double d[2], x[2];
        load(l->type, p, d);
        load(l->type, xj, x);
        if (l->conj) d[1] = -d[1];
        if (solve) {
            divide(x, d);
        } else {
            const double re = x[0] * d[0] - x[1] * d[1];
            x[1] = x[0] * d[1] + x[1] * d[0];
            x[0] = re;
        }
        store(l->type, xj, x);
    }
}

static void negate(int type, const void *from, void *to)
{
    double v[2];
    load(type, from, v);
    v[0] = -v[0], v[1] = -v[1];
    store(type, to, v);
}

static void subtract(int type, void *x, const void *s)
{
    double a[2], b[2];
    load(type, x, a);
    load(type, s, b);
    a[0] -= b[0], a[1] -= b[1];
    store(type, x, a);
}

/* The block of lines and rows [j0, j1); `strict` has no diagonal. */
typedef struct block {
    const st_lines *l;
    st_lines strict;
    bool across, unit, solve, lower;
} block;

/* Line j with rows of its group [a, e); x is that of the block, which begins at j0. */
static void step(const block *b, int64_t j, int64_t j0, int64_t a, int64_t e, char *x)
{
    const int64_t es = b->l->es;
    char *xj = x + (j - j0) * es;
    const int64_t i0 = b->lower ? j + 1 : a, i1 = b->lower ? e : j;
    char *rest = x + (i0 - j0) * es;
    _Alignas(16) char t[ST_MV_BYTES];
    st_lines_work w = {.conj_add = b->l->conj, .conj_dot = b->l->conj};
    if (!b->across) {
        w.op = ST_LINES_ADD;
        w.y = rest;
        w.t = t;
        if (b->solve) {
            if (!b->unit) diagonal(b->l, j, true, xj);
            negate(b->l->type, xj, t);
        } else {
            memcpy(t, xj, (size_t)es);
        }
        if (i0 < i1) st_lines_block(&b->strict, &w, j, j + 1, i0, i1);
        if (!b->solve && !b->unit) diagonal(b->l, j, false, xj);
        return;
    }
    w.op = ST_LINES_DOT;
    w.x = rest;
    if (b->solve) {
        memset(t, 0, sizeof t);
        w.s = t;
        if (i0 < i1) st_lines_block(&b->strict, &w, j, j + 1, i0, i1);
        subtract(b->l->type, xj, t);
        if (!b->unit) diagonal(b->l, j, true, xj);
    } else {
        if (!b->unit) diagonal(b->l, j, false, xj);
        w.s = xj;
        if (i0 < i1) st_lines_block(&b->strict, &w, j, j + 1, i0, i1);
    }
}

/* The rectangle beside lines [j0, j1): below them for a lower triangle, above them for an upper one. */
static void beside(strata_handle *h, const block *b, int64_t j0, int64_t j1, st_mv_vec x)
{
    const st_lines *l = b->l;
    const int64_t i0 = b->lower ? j1 : st_max64(0, j0 - l->ku),
                  i1 = b->lower ? st_min64(l->n, j1 + l->kl) : j0;
    if (i0 >= i1) return;
    const double factor[2] = {b->solve ? -1 : 1, 0};
    st_mv_vec lines = x, rows = x;
    lines.p += j0 * x.step * l->es;
    rows.p += i0 * x.step * l->es;
    if (b->across)
        st_mv_rectangle(h, l, true, factor, i0, i1, j0, j1, rows, lines);
    else
        st_mv_rectangle(h, l, false, factor, i0, i1, j0, j1, lines, rows);
}

/* Between a group's lines [a, e) and the rows of its block [j0, j1) beside it. */
static void inside(const block *b, int64_t a, int64_t e, int64_t j0, int64_t j1, char *x)
{
    const st_lines *l = b->l;
    const int64_t es = l->es, i0 = b->lower ? e : j0, i1 = b->lower ? j1 : a;
    _Alignas(64) char t[ST_MATVEC_LINES * ST_MV_BYTES];
    char *lines = x + (a - j0) * es, *rows = x + (i0 - j0) * es;
    st_lines_work w = {.conj_add = l->conj, .conj_dot = l->conj};
    if (i0 >= i1) return;
    if (!b->across) {
        w.op = ST_LINES_ADD, w.t = t, w.y = rows;
        for (int64_t j = 0; j < e - a; j++)
            if (b->solve)
                negate(l->type, lines + j * es, t + j * es);
            else
                memcpy(t + j * es, lines + j * es, (size_t)es);
        st_lines_block(l, &w, a, e, i0, i1);
        return;
    }
    w.op = ST_LINES_DOT, w.x = rows;
    if (!b->solve) {
        w.s = lines;
        st_lines_block(l, &w, a, e, i0, i1);
        return;
    }
    w.s = t;
    memset(t, 0, sizeof t);
    st_lines_block(l, &w, a, e, i0, i1);
    for (int64_t j = 0; j < e - a; j++) subtract(l->type, lines + j * es, t + j * es);
}

static void in_place(strata_handle *h, const st_lines *l, bool across, bool unit, bool solve, st_mv_vec x)
{
    block b = {.l = l, .strict = *l, .across = across, .unit = unit, .solve = solve, .lower = l->ku == 0};
    _Alignas(64) char room[ST_MV_DIAGONAL * ST_MV_BYTES];
    if (b.lower)
        b.strict.ku = -1;
    else
        b.strict.kl = -1;
    /* product: lines whose x is needed last go first; solution: the other way round, and the transposed the other way again */
    const bool forward = (b.lower == solve) != across, before = across == solve;
    const int64_t blocks = st_ceil_div(l->n, ST_MV_DIAGONAL);
    for (int64_t k = 0; k < blocks; k++) {
        const int64_t j0 = (forward ? k : blocks - 1 - k) * ST_MV_DIAGONAL,
                      j1 = st_min64(l->n, j0 + ST_MV_DIAGONAL);
        if (before) beside(h, &b, j0, j1, x);
        char *v = st_mv_read(&x, l->type, j0, j1 - j0, room);
        const int64_t groups = st_ceil_div(j1 - j0, ST_MATVEC_LINES);
        for (int64_t g = 0; g < groups; g++) {
            const int64_t a = j0 + (forward ? g : groups - 1 - g) * ST_MATVEC_LINES,
                          e = st_min64(j1, a + ST_MATVEC_LINES);
            if (before) inside(&b, a, e, j0, j1, v);
            if (forward)
                for (int64_t j = a; j < e; j++) step(&b, j, j0, a, e, v);
            else
                for (int64_t j = e; j-- > a;) step(&b, j, j0, a, e, v);
            if (!before) inside(&b, a, e, j0, j1, v);
        }
        st_mv_write(&x, l->type, j0, j1 - j0, v);
        if (!before) beside(h, &b, j0, j1, x);
    }
}

void st_mv_multiply(strata_handle *h, const st_lines *l, bool across, bool unit, st_mv_vec x)
{
    in_place(h, l, across, unit, false, x);
}
void st_mv_solve(strata_handle *h, const st_lines *l, bool across, bool unit, st_mv_vec x)
{
    in_place(h, l, across, unit, true, x);
}
