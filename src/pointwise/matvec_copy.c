/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_copy.c - matrices element by element on the CPU. The walk is C's: its inner loop goes along C's neighbouring elements, in tiles of TILE by TILE, so
 * that an operand that lies the other way round is read from the first cache. */
#include "pointwise/matvec.h"
#include <string.h>

enum { TILE = 32 };

/* One operand: the address of row 0 and its steps in elements, or a packed triangle. */
typedef struct operand {
    char *p;
    int64_t row, col;
    int packed; /* 1: lower, 2: upper, by columns */
    bool conj;
} operand;

typedef struct job {
    const st_matcopy *c;
    operand o[3]; /* A, B, C */
    int64_t m, n, es, tiles;
    double alpha[2], beta[2];
    bool flipped; /* rows and columns are exchanged */
    int half;
} job;

static char *at(const job *q, const operand *o, int64_t i, int64_t j)
{
    if (o->packed)
        return o->p + (o->packed == 1 ? i + j * (2 * q->m - j - 1) / 2 : i + j * (j + 1) / 2) * q->es;
    return o->p + (i * o->row + j * o->col) * q->es;
}

/* n elements of a line of C from its operands (NULL: absent), steps in elements. */
#define LINES(name, T)                                                                                       \
    static void name##_sum(int64_t n, T a, const T *x, int64_t sx, T b, const T *y, int64_t sy, T *z,        \
                           int64_t sz)                                                                       \
    {                                                                                                        \
        if (x && y)                                                                                          \
            for (int64_t i = 0; i < n; i++) z[i * sz] = a * x[i * sx] + b * y[i * sy];                       \
        else if (x && a == 1)                                                                                \
            for (int64_t i = 0; i < n; i++) z[i * sz] = x[i * sx];                                           \
        else if (x)                                                                                          \
            for (int64_t i = 0; i < n; i++) z[i * sz] = a * x[i * sx];                                       \
        else if (y)                                                                                          \
            for (int64_t i = 0; i < n; i++) z[i * sz] = b * y[i * sy];                                       \
        else                                                                                                 \
            for (int64_t i = 0; i < n; i++) z[i * sz] = 0;                                                   \
    }                                                                                                        \
    static void name##_rows(int64_t n, const T *d, int64_t sd, const T *x, int64_t sx, T *z, int64_t sz)     \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++) z[i * sz] = d[i * sd] * x[i * sx];                                   \
    }                                                                                                        \
    static void name##_csum(int64_t n, const T a[2], const T *x, int64_t sx, T cx, const T b[2], const T *y, \
                            int64_t sy, T cy, T *z, int64_t sz)                                              \
    {                                                                                                        \
        const bool keep = !y && a[0] == 1 && a[1] == 0;                                                      \
        for (int64_t i = 0; i < n; i++, z += 2 * sz) {                                                       \
            T re = 0, im = 0;                                                                                \
            if (x) {                                                                                         \
                const T xr = x[0], xi = cx * x[1];                                                           \
                re = keep ? xr : a[0] * xr - a[1] * xi, im = keep ? xi : a[0] * xi + a[1] * xr;              \
                x += 2 * sx;                                                                                 \
            }                                                                                                \
            if (y) {                                                                                         \
                const T yr = y[0], yi = cy * y[1];                                                           \
                re += b[0] * yr - b[1] * yi, im += b[0] * yi + b[1] * yr;                                    \
                y += 2 * sy;                                                                                 \
            }                                                                                                \
            z[0] = re, z[1] = im;                                                                            \
        }                                                                                                    \
    }                                                                                                        \
    static void name##_crows(int64_t n, const T *d, int64_t sd, T cd, const T *x, int64_t sx, T cx, T *z,    \
                             int64_t sz)                                                                     \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++, d += 2 * sd, x += 2 * sx, z += 2 * sz) {                             \
            const T dr = d[0], di = cd * d[1], xr = x[0], xi = cx * x[1];                                    \
            z[0] = dr * xr - di * xi, z[1] = dr * xi + di * xr;                                              \
        }                                                                                                    \
    }
LINES(f32, float)
LINES(f64, double)

/* Rows [i, i + n) of column j. */
static void line(const job *q, int64_t i, int64_t j, int64_t n)
{
    const operand *a = &q->o[0], *b = &q->o[1], *c = &q->o[2];
    const bool rows = q->c->op == ST_MATCOPY_ROWS;
    const void *x = a->p ? at(q, a, i, j) : NULL, *y = b->p ? at(q, b, i, j) : NULL;
    void *z = at(q, c, i, j);
    const int64_t sx = a->packed ? 1 : a->row, sy = b->packed ? 1 : b->row, sz = c->packed ? 1 : c->row;
    const double *va = q->alpha, *vb = q->beta;
    const float fa[2] = {(float)va[0], (float)va[1]}, fb[2] = {(float)vb[0], (float)vb[1]};
    const float cxf = a->conj ? -1 : 1, cyf = b->conj ? -1 : 1;
    const double cx = a->conj ? -1 : 1, cy = b->conj ? -1 : 1;
    switch (q->c->type) {
    case STRATA_F32:
        if (rows)
            f32_rows(n, y, sy, x, sx, z, sz);
        else
            f32_sum(n, fa[0], x, sx, fb[0], y, sy, z, sz);
        break;
    case STRATA_F64:
        if (rows)
            f64_rows(n, y, sy, x, sx, z, sz);
        else
            f64_sum(n, va[0], x, sx, vb[0], y, sy, z, sz);
        break;
    case STRATA_C64:
        if (rows)
            f32_crows(n, y, sy, cyf, x, sx, cxf, z, sz);
        else
            f32_csum(n, fa, x, sx, cxf, fb, y, sy, cyf, z, sz);
        break;
    default:
        if (rows)
            f64_crows(n, y, sy, cy, x, sx, cx, z, sz);
        else
            f64_csum(n, va, x, sx, cx, vb, y, sy, cy, z, sz);
        break;
    }
    if (q->c->hermitian && i <= j && j < i + n) { /* complex types only */
        char *d = at(q, c, j, j) + q->es / 2;
        memset(d, 0, (size_t)q->es / 2);
    }
}

/* Columns of one block of TILE of them. */
static void columns(void *arg, int64_t block, int worker)
{
    const job *q = arg;
    const int64_t j0 = block * TILE, j1 = st_min64(q->n, j0 + TILE);
    const bool plain = (!q->o[0].p || q->o[0].row == 1) && (!q->o[1].p || q->o[1].row == 1);
    const int64_t step = plain ? st_max64(1, q->m) : TILE;
    (void)worker;
    for (int64_t i = 0; i < q->m; i += step)
        for (int64_t j = j0; j < j1; j++) {
            int64_t from = i, to = st_min64(q->m, i + step);
            if (q->half == 1) from = st_max64(from, j);
            if (q->half == 2) to = st_min64(to, j + 1);
            if (from < to) line(q, from, j, to - from);
        }
}

static void set_operand(const st_matcopy *c, int o, bool flipped, operand *t)
{
    const int64_t r = c->stride[o][c->batches], k = c->stride[o][c->batches + 1];
    t->row = flipped ? k : r;
    t->col = flipped ? r : k;
    /* a packed triangle by columns has row 1; one whose lines run the other way is read element by element */
    t->packed = 0;
    if (c->packed[o]) t->packed = (int)(flipped ? 3 - c->half : c->half);
    t->conj = o < 2 && c->conj[o];
}

/* A packed triangle whose lines are not columns of this walk: as a matrix of its own walk. */
static void mixed(const job *q)
{
    for (int64_t j = 0; j < q->n; j++)
        for (int64_t i = q->half == 1 ? j : 0; i < (q->half == 2 ? j + 1 : q->m); i++) {
            job one = *q;
            for (int o = 0; o < 3; o++) {
                operand *t = &one.o[o];
                if (!t->p) continue;
                if (!t->packed) {
                    t->p = at(q, t, i, j);
                } else if (t->row == 1) {
                    t->p = at(q, t, i, j);
                } else { /* by rows: element (i, j) is element (j, i) of the other triangle by columns */
                    operand other = *t;
                    other.packed = 3 - t->packed;
                    t->p = at(q, &other, j, i);
                }
                t->packed = 0, t->row = t->col = 0;
            }
            one.half = 0;
            st_matcopy c = *q->c;
            c.hermitian = q->c->hermitian && i == j;
            one.c = &c;
            line(&one, 0, 0, 1);
        }
}

strata_status st_matcopy_cpu(strata_handle *h, const st_matcopy *c, const double alpha[2],
                             const double beta[2], void *const data[3])
{
    const int b = (int)c->batches;
    const int64_t es = (int64_t)strata_type_bits((strata_type)c->type) / 8;
    int64_t index[STRATA_MAX_RANK] = {0};
    const int64_t r = c->stride[2][b], k = c->stride[2][b + 1];
    const int64_t ar = r < 0 ? -r : r, ak = k < 0 ? -k : k;
    job q = {.c = c,
             .es = es,
             .alpha = {alpha[0], alpha[1]},
             .beta = {beta[0], beta[1]},
             .flipped = c->packed[2] ? r == 0 : ak < ar || c->dim[b] == 1};
    q.m = c->dim[b + q.flipped], q.n = c->dim[b + !q.flipped];
    q.half = (int)(c->half && q.flipped ? 3 - c->half : c->half);
    bool mix = false;
    for (int o = 0; o < 3; o++) {
        set_operand(c, o, q.flipped, &q.o[o]);
        mix = mix || (q.o[o].packed && q.o[o].row != 1);
    }
    const bool no_a = c->op == ST_MATCOPY_SUM && alpha[0] == 0 && alpha[1] == 0,
               no_b = c->op == ST_MATCOPY_SUM && beta[0] == 0 && beta[1] == 0;
    for (;;) {
        int64_t off[3] = {0};
        for (int o = 0; o < 3; o++)
            for (int d = 0; d < b; d++) off[o] += index[d] * c->stride[o][d];
        q.o[0].p = no_a ? NULL : (char *)data[0] + off[0] * es;
        q.o[1].p = no_b ? NULL : (char *)data[1] + off[1] * es;
        q.o[2].p = (char *)data[2] + off[2] * es;
        q.tiles = st_ceil_div(q.n, TILE);
        if (mix)
            mixed(&q);
        else if (q.tiles == 1)
            columns(&q, 0, 0);
        else
            st_team_for(h, q.tiles, (double)(q.m * q.n * es) / 4e3, columns, &q);
        int d = b - 1;
        for (; d >= 0 && ++index[d] == c->dim[d]; d--) index[d] = 0;
        if (d < 0) return STRATA_OK;
    }
}
