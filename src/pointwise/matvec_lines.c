/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_lines.c - blocks of lines for the kernels: the rows that a group of lines has in common go to the group's kernel, what sticks out above and
 * below to the line's; lines that are not dense are gathered first. And vectors of any stride. */
#include "pointwise/matvec_lines.h"
#include <string.h>

static void gather(char *to, const char *from, int64_t step, int64_t n, int64_t es)
{
    step *= es;
    if (es == 4)
        for (int64_t i = 0; i < n; i++) memcpy(to + i * 4, from + i * step, 4);
    else if (es == 8)
        for (int64_t i = 0; i < n; i++) memcpy(to + i * 8, from + i * step, 8);
    else
        for (int64_t i = 0; i < n; i++) memcpy(to + i * 16, from + i * step, 16);
}
static void scatter(char *to, int64_t step, const char *from, int64_t n, int64_t es)
{
    step *= es;
    if (es == 4)
        for (int64_t i = 0; i < n; i++) memcpy(to + i * step, from + i * 4, 4);
    else if (es == 8)
        for (int64_t i = 0; i < n; i++) memcpy(to + i * step, from + i * 8, 8);
    else
        for (int64_t i = 0; i < n; i++) memcpy(to + i * step, from + i * 16, 16);
}

/* What sticks out of a group: a few elements of one line, [first, first + n), without a kernel. */
enum { CORNER = 8 };
/* Nothing sticks out of a whole matrix: there a line's sum has one order whatever the number of lines or rows. */
ST_INLINE bool whole(const st_lines *l) { return l->kl >= l->m && l->ku >= l->n; }
#define CORNERS(name, T)                                                                                     \
    static void name##_real(st_lines_op op, int64_t n, T *a, const T *t, const T *u, T *y, const T *x, T *s) \
    {                                                                                                        \
        T sum = 0;                                                                                           \
        switch (op) {                                                                                        \
        case ST_LINES_ADD:                                                                                   \
            for (int64_t i = 0; i < n; i++) y[i] += a[i] * *t;                                               \
            break;                                                                                           \
        case ST_LINES_BOTH:                                                                                  \
            for (int64_t i = 0; i < n; i++) y[i] += a[i] * *t, sum += a[i] * x[i];                           \
            *s += sum;                                                                                       \
            break;                                                                                           \
        case ST_LINES_DOT:                                                                                   \
            for (int64_t i = 0; i < n; i++) sum += a[i] * x[i];                                              \
            *s += sum;                                                                                       \
            break;                                                                                           \
        case ST_LINES_UPDATE:                                                                                \
            for (int64_t i = 0; i < n; i++) a[i] += x[i] * *t;                                               \
            for (int64_t i = 0; i < n && y; i++) a[i] += y[i] * *u;                                          \
            break;                                                                                           \
        }                                                                                                    \
    }
CORNERS(corner_f32, float)
CORNERS(corner_f64, double)

/* The kernel over lines at a[], rows [lo, hi). */
ST_INLINE void run_kernel(const st_lines *l, const st_lines_work *w, int64_t j0, int64_t j, int lines,
                          int64_t i0, int64_t lo, int64_t hi, void *const a[])
{
    const int64_t m = hi - lo, line = (j - j0) * l->es, row = (lo - i0) * l->es;
    const void *const *ca = (const void *const *)(const void *)a;
    const char *t = w->t ? (const char *)w->t + line : NULL, *u = w->u ? (const char *)w->u + line : NULL,
               *x = w->x ? (const char *)w->x + row : NULL;
    char *y = w->y ? (char *)w->y + row : NULL, *s = w->s ? (char *)w->s + line : NULL;
    if (m <= CORNER && lines == 1 && !whole(l) && l->type == STRATA_F32) {
        corner_f32_real(w->op, m, a[0], (const void *)t, (const void *)u, (void *)y, (const void *)x,
                        (void *)s);
        return;
    }
    if (m <= CORNER && lines == 1 && !whole(l) && l->type == STRATA_F64) {
        corner_f64_real(w->op, m, a[0], (const void *)t, (const void *)u, (void *)y, (const void *)x,
                        (void *)s);
        return;
    }
    switch (w->op) {
    case ST_LINES_ADD: l->k->add(m, lines, ca, t, w->conj_add, y); break;
    case ST_LINES_DOT: l->k->dot(m, lines, ca, x, w->conj_dot, s); break;
    case ST_LINES_BOTH: l->k->both(m, lines, ca, t, w->conj_add, y, x, w->conj_dot, s); break;
    case ST_LINES_UPDATE: l->k->update(m, lines, a, x, t, y, u); break;
    }
}

/* Lines that are not dense, in pieces that the room holds. */
enum { PIECE = 64 };
static ST_NOINLINE void gathered(const st_lines *l, const st_lines_work *w, int64_t j0, int64_t j, int lines,
                                 int64_t i0, int64_t lo, int64_t hi)
{
    _Alignas(64) char room[ST_MATVEC_LINES * PIECE * ST_MV_BYTES];
    void *a[ST_MATVEC_LINES];
    for (int64_t at = lo; at < hi; at += PIECE) {
        const int64_t end = st_min64(hi, at + PIECE);
        for (int k = 0; k < lines; k++) {
            a[k] = room + k * PIECE * ST_MV_BYTES;
            gather(a[k], st_lines_at(l, at, j + k), l->row, end - at, l->es);
        }
        run_kernel(l, w, j0, j, lines, i0, at, end, a);
        for (int k = 0; k < lines && w->op == ST_LINES_UPDATE; k++)
            scatter(st_lines_at(l, at, j + k), l->row, a[k], end - at, l->es);
    }
}

/* Rows [lo, hi) of lines [j, j + lines). */
ST_INLINE void group(const st_lines *l, const st_lines_work *w, int64_t j0, int64_t j, int lines, int64_t i0,
                     int64_t lo, int64_t hi)
{
    void *a[ST_MATVEC_LINES];
    if (lo >= hi) return;
    if (!l->packed && l->row != 1) {
        gathered(l, w, j0, j, lines, i0, lo, hi);
        return;
    }
    char *p = st_lines_at(l, lo, j);
    for (int k = 0; k < lines; k++) {
        a[k] = p;
        p = l->packed ? st_lines_at(l, lo, j + k + 1) : p + l->col * l->es;
    }
    run_kernel(l, w, j0, j, lines, i0, lo, hi, a);
}

void st_lines_block(const st_lines *l, const st_lines_work *w, int64_t j0, int64_t j1, int64_t i0, int64_t i1)
{
    for (int64_t j = j0; j < j1; j += ST_MATVEC_LINES) {
        const int lines = (int)st_min64(ST_MATVEC_LINES, j1 - j);
        /* what they have in common */
        const int64_t lo = st_max64(i0, st_lines_first(l, j + lines - 1)),
                      hi = st_min64(i1, st_lines_end(l, j));
        /* a narrow band is faster line by line */
        const bool band = l->kl < l->m && l->ku < l->n && l->kl > 0 && l->ku > 0;
        const bool common = lines > 1 && (whole(l) || hi - lo >= (band ? 24 : 4));
        if (common) {
            group(l, w, j0, j, lines, i0, lo, hi);
            if (st_lines_first(l, j) >= lo && st_lines_end(l, j + lines - 1) <= hi)
                continue; /* nothing sticks out */
            if (lo == i0 && hi == i1) continue;
        }
        for (int k = 0; k < lines; k++) {
            const int64_t first = st_max64(i0, st_lines_first(l, j + k)),
                          end = st_min64(i1, st_lines_end(l, j + k));
            if (!common) {
                group(l, w, j0, j + k, 1, i0, first, end);
                continue;
            }
            if (first < lo) group(l, w, j0, j + k, 1, i0, first, lo);
            if (end > hi) group(l, w, j0, j + k, 1, i0, hi, end);
        }
    }
}

/* ---- vectors ------------------------------------------------------------------------------------------------------------------ */
static void conjugate(int type, int64_t n, void *v)
{
    if (type == STRATA_C64)
        for (float *f = v; n > 0; n--, f += 2) f[1] = -f[1];
    else if (type == STRATA_C128)
        for (double *f = v; n > 0; n--, f += 2) f[1] = -f[1];
}

static int64_t size_of(int type) { return (int64_t)strata_type_bits((strata_type)type) / 8; }

void *st_mv_read(const st_mv_vec *v, int type, int64_t at, int64_t n, void *room)
{
    const int64_t es = size_of(type);
    char *p = v->p + at * v->step * es;
    if (v->step == 1 && !v->conj) return p;
    gather(room, p, v->step, n, es);
    if (v->conj) conjugate(type, n, room);
    return room;
}

void st_mv_write(const st_mv_vec *v, int type, int64_t at, int64_t n, const void *dense)
{
    const int64_t es = size_of(type);
    char *p = v->p + at * v->step * es;
    if (dense != p) scatter(p, v->step, dense, n, es);
}

/* y[i] := b y[i] + a s[i] with any strides, for real and complex parts; b = 0: y is not read, s NULL: only b. */
#define COMBINE(name, T)                                                                                 \
    static void name##_real(int64_t n, T a, const T *s, int64_t ss, T b, T *y, int64_t ys)               \
    {                                                                                                    \
        if (!s)                                                                                          \
            for (int64_t i = 0; i < n; i++) y[i * ys] = b == 0 ? 0 : b * y[i * ys];                      \
        else if (b == 0)                                                                                 \
            for (int64_t i = 0; i < n; i++) y[i * ys] = a * s[i * ss];                                   \
        else                                                                                             \
            for (int64_t i = 0; i < n; i++) y[i * ys] = a * s[i * ss] + b * y[i * ys];                   \
    }                                                                                                    \
    static void name##_complex(int64_t n, const T a[2], const T *s, int64_t ss, bool conj, const T b[2], \
                               T *y, int64_t ys)                                                         \
    {                                                                                                    \
        const bool read = b[0] != 0 || b[1] != 0, one = b[0] == 1 && b[1] == 0;                          \
        for (int64_t i = 0; i < n; i++, y += 2 * ys) {                                                   \
            T re = 0, im = 0;                                                                            \
            if (read && one)                                                                             \
                re = y[0], im = y[1];                                                                    \
            else if (read)                                                                               \
                re = b[0] * y[0] - b[1] * y[1], im = b[0] * y[1] + b[1] * y[0];                          \
            if (s) {                                                                                     \
                const T sr = s[2 * i * ss], si = conj ? -s[2 * i * ss + 1] : s[2 * i * ss + 1];          \
                re += a[0] * sr - a[1] * si, im += a[0] * si + a[1] * sr;                                \
            }                                                                                            \
            y[0] = re, y[1] = im;                                                                        \
        }                                                                                                \
    }
COMBINE(f32, float)
COMBINE(f64, double)

static void combine(int type, int64_t n, const double a[2], const void *s, int64_t ss, bool conj,
                    const double b[2], void *y, int64_t ys)
{
    const float fa[2] = {(float)a[0], (float)a[1]}, fb[2] = {(float)b[0], (float)b[1]};
    switch (type) {
    case STRATA_F32: f32_real(n, fa[0], s, ss, fb[0], y, ys); break;
    case STRATA_F64: f64_real(n, a[0], s, ss, b[0], y, ys); break;
    case STRATA_C64: f32_complex(n, fa, s, ss, conj, fb, y, ys); break;
    default: f64_complex(n, a, s, ss, conj, b, y, ys); break;
    }
}

void st_mv_scaled(const st_mv_vec *v, int type, int64_t at, int64_t n, const double factor[2], void *to)
{
    static const double none[2];
    const char *p = v->p + at * v->step * size_of(type);
    if (factor[0] == 1 && factor[1] == 0) { /* as they are: 0 times Inf would be NaN */
        gather(to, p, v->step, n, size_of(type));
        if (v->conj) conjugate(type, n, to);
        return;
    }
    combine(type, n, factor, p, v->step, v->conj, none, to, 1);
}

void st_mv_finish(const st_mv_vec *y, int type, int64_t at, int64_t n, const double alpha[2], const void *s,
                  const double beta[2])
{
    if (!s && beta[0] == 1 && beta[1] == 0) return;
    combine(type, n, alpha, s, 1, false, beta, y->p + at * y->step * size_of(type), y->step);
}
