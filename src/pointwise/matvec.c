/* SPDX-License-Identifier: Apache-2.0 */
/* matvec.c - a matrix with vectors on the CPU: which way round the matrix is read, and how the work is cut for threads. Cuts depend on the shape alone, and
 * no two threads add to one number: results are the same for any number of threads. */
#include "pointwise/matvec_lines.h"
#include "pointwise/engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAMILY matvec
#define TABLE st_matvec_kernels
#include "pointwise/blas_rows.h"

const st_matvec_kernels *st_matvec_kernels_of(int type, unsigned isa) { return find_row(type, isa); }
int st_matvec_list(int i, strata_kernel_info *info)
{
    return list_row(
        i, "along lines: one sum in ascending order; across: two vectors of lanes in blocks of 1024 rows",
        info);
}

/* The matrix as lines; true when they are its rows: the lines are those of the transpose. */
static bool lines_of(const strata_handle *h, const st_matvec *v, void *a, st_lines *l)
{
    const int64_t r = v->row < 0 ? -v->row : v->row, c = v->col < 0 ? -v->col : v->col;
    const bool across = v->store == ST_STORE_PACKED ? v->row == 0
                        : c == 1                    ? r != 1 || v->m == 1
                                                    : c < r && r != 1;
    const int half = (int)(v->half && across ? 3 - v->half : v->half);
    *l = (st_lines){.a = a,
                    .k = st_matvec_kernels_of((int)v->type, h->cpu->isa),
                    .m = across ? v->n : v->m,
                    .n = across ? v->m : v->n,
                    .row = across ? v->col : v->row,
                    .col = across ? v->row : v->col,
                    .kl = across ? v->ku : v->kl,
                    .ku = across ? v->kl : v->ku,
                    .es = (int64_t)strata_type_bits((strata_type)v->type) / 8,
                    .packed = v->store == ST_STORE_PACKED ? half : 0,
                    .type = (int)v->type,
                    .conj = v->conj != 0};
    if (l->packed || l->m == 1) l->row = 1;
    return across;
}

static double microseconds(const st_lines *l, double rows_, double lines)
{
    return rows_ * lines * (double)l->es / 20e3;
}

/* ---- y += alpha A x over a rectangle, and its transpose ---- */
typedef struct rectangle {
    const st_lines *l;
    const double *alpha, *beta;
    int64_t i0, i1, j0, j1, step; /* step: rows, or across lines, of a task */
    st_mv_vec x, y;
    bool across;
} rectangle;

static void along(const rectangle *r, int64_t i0, int64_t i1)
{
    const st_lines *l = r->l;
    _Alignas(64) char yr[ST_MV_ROWS * ST_MV_BYTES], t[ST_MV_COLS * ST_MV_BYTES];
    const int64_t n = i1 - i0, at = i0 - r->i0;
    st_mv_finish(&r->y, l->type, at, n, r->alpha, NULL, r->beta);
    void *y = st_mv_read(&r->y, l->type, at, n, yr);
    st_lines_work w = {.op = ST_LINES_ADD, .t = t, .y = y, .conj_add = l->conj};
    /* the lines that have one of these rows at all */
    const int64_t from = st_max64(r->j0, i0 - l->kl), to = st_min64(r->j1, i1 + l->ku);
    for (int64_t j = from; j < to; j += ST_MV_COLS) {
        const int64_t end = st_min64(to, j + ST_MV_COLS);
        st_mv_scaled(&r->x, l->type, j - r->j0, end - j, r->alpha, t);
        st_lines_block(l, &w, j, end, i0, i1);
    }
    st_mv_write(&r->y, l->type, at, n, y);
}

static void across(const rectangle *r, int64_t j0, int64_t j1)
{
    const st_lines *l = r->l;
    _Alignas(64) char xr[ST_MV_ROWS * ST_MV_BYTES], s[ST_MV_COLS * ST_MV_BYTES];
    memset(s, 0, (size_t)((j1 - j0) * l->es));
    st_lines_work w = {.op = ST_LINES_DOT, .s = s, .conj_dot = l->conj};
    const int64_t from = st_max64(r->i0, j0 - l->ku), to = st_min64(r->i1, j1 + l->kl);
    for (int64_t i = from; i < to; i += ST_MV_ROWS) {
        const int64_t end = st_min64(to, i + ST_MV_ROWS);
        w.x = st_mv_read(&r->x, l->type, i - r->i0, end - i, xr);
        st_lines_block(l, &w, j0, j1, i, end);
    }
    st_mv_finish(&r->y, l->type, j0 - r->j0, j1 - j0, r->alpha, s, r->beta);
}

static void rectangle_task(void *arg, int64_t i, int worker)
{
    const rectangle *r = arg;
    (void)worker;
    const int64_t at = (r->across ? r->j0 : r->i0) + i * r->step;
    if (r->across)
        across(r, at, st_min64(r->j1, at + r->step));
    else
        along(r, at, st_min64(r->i1, at + r->step));
}

static void run_rectangle(strata_handle *h, rectangle *r)
{
    const int64_t length = r->across ? r->j1 - r->j0 : r->i1 - r->i0,
                  most = r->across ? ST_MV_COLS : ST_MV_ROWS;
    const double us = microseconds(r->l, (double)(r->i1 - r->i0), (double)(r->j1 - r->j0));
    /* Groups of lines and whole vectors stay together. Sums of a whole matrix are the same however it is cut, so one thread need not cut; of triangles and bands
     * the shape alone decides. */
    const int64_t unit = r->across ? ST_MATVEC_LINES : 128;
    const bool whole = r->l->kl >= r->l->m && r->l->ku >= r->l->n;
    r->step = us < 20 || (whole && st_threads(h) == 1)
                  ? most
                  : st_max64(unit, st_min64(most, st_round_up(st_ceil_div(length, 8), unit)));
    const int64_t tasks = st_ceil_div(length, r->step);
    if (tasks == 1)
        rectangle_task(r, 0, 0);
    else
        st_team_for(h, tasks, us, rectangle_task, r);
}

void st_mv_rectangle(strata_handle *h, const st_lines *l, bool over, const double alpha[2], int64_t i0,
                     int64_t i1, int64_t j0, int64_t j1, st_mv_vec x, st_mv_vec y)
{
    static const double one[2] = {1, 0};
    rectangle r = {.l = l,
                   .alpha = alpha,
                   .beta = one,
                   .i0 = i0,
                   .i1 = i1,
                   .j0 = j0,
                   .j1 = j1,
                   .x = x,
                   .y = y,
                   .across = over};
    run_rectangle(h, &r);
}

/* ---- a mirrored matrix: every line serves twice. Pieces of lines have sums of their own, which are added in the order of the pieces ---- */
enum { PIECES = 16, PIECE_LINES = 256 };
typedef struct mirrored {
    const st_lines *l; /* without the diagonal */
    const double *alpha, *beta;
    st_mv_vec x, y;
    bool lower, hermitian;
    int pieces;
    int64_t from[PIECES + 1];
    char *z; /* n elements a piece */
} mirrored;

/* s_j += a_jj x_j */
static void add_diagonal(const mirrored *q, int64_t j, const char *x, char *s)
{
    const st_lines *l = q->l;
    const char *p = st_lines_at(l, j, j);
    if (l->type == STRATA_F32) {
        *(float *)(void *)s += *(const float *)(const void *)p * *(const float *)(const void *)x;
    } else if (l->type == STRATA_F64) {
        *(double *)(void *)s += *(const double *)(const void *)p * *(const double *)(const void *)x;
    } else if (l->type == STRATA_C64) {
        const float *d = (const void *)p, *v = (const void *)x;
        float *r = (void *)s;
        const float im = q->hermitian ? 0 : l->conj ? -d[1] : d[1];
        r[0] += d[0] * v[0], r[1] += d[0] * v[1];
        if (!q->hermitian) r[0] -= im * v[1], r[1] += im * v[0];
    } else {
        const double *d = (const void *)p, *v = (const void *)x;
        double *r = (void *)s;
        const double im = q->hermitian ? 0 : l->conj ? -d[1] : d[1];
        r[0] += d[0] * v[0], r[1] += d[0] * v[1];
        if (!q->hermitian) r[0] -= im * v[1], r[1] += im * v[0];
    }
}

static void mirrored_piece(void *arg, int64_t p, int worker)
{
    static const double one[2] = {1, 0};
    const mirrored *q = arg;
    const st_lines *l = q->l;
    const int64_t es = l->es, n = l->n;
    char *z = q->z + p * n * es;
    _Alignas(64) char xr[ST_MV_ROWS * ST_MV_BYTES], xj[ST_MV_COLS * ST_MV_BYTES], t[ST_MV_COLS * ST_MV_BYTES],
        s[ST_MV_COLS * ST_MV_BYTES];
    (void)worker;
    memset(z, 0, (size_t)(n * es));
    for (int64_t j0 = q->from[p]; j0 < q->from[p + 1]; j0 += ST_MV_COLS) {
        const int64_t j1 = st_min64(q->from[p + 1], j0 + ST_MV_COLS);
        st_mv_scaled(&q->x, l->type, j0, j1 - j0, q->alpha, t);
        memset(s, 0, (size_t)((j1 - j0) * es));
        st_lines_work w = {
            .op = ST_LINES_BOTH, .t = t, .s = s, .conj_add = l->conj, .conj_dot = l->conj != q->hermitian};
        const int64_t from = q->lower ? j0 : st_max64(0, j0 - l->ku),
                      to = q->lower ? st_min64(n, j1 + l->kl) : j1;
        for (int64_t i = from; i < to; i += ST_MV_ROWS) {
            const int64_t end = st_min64(to, i + ST_MV_ROWS);
            w.x = st_mv_read(&q->x, l->type, i, end - i, xr);
            w.y = z + i * es;
            st_lines_block(l, &w, j0, j1, i, end);
        }
        st_mv_scaled(&q->x, l->type, j0, j1 - j0, one, xj);
        for (int64_t j = j0; j < j1; j++) add_diagonal(q, j, xj + (j - j0) * es, s + (j - j0) * es);
        const st_mv_vec dense = {z, 1, false};
        st_mv_finish(&dense, l->type, j0, j1 - j0, q->alpha, s, one);
    }
}

static strata_status product_mirrored(strata_handle *h, const char *who, st_lines *l, const st_matvec *v,
                                      bool over, const double alpha[2], const double beta[2], st_mv_vec x,
                                      st_mv_vec y)
{
    static const double one[2] = {1, 0};
    _Alignas(64) char room[2 * PIECE_LINES * ST_MV_BYTES];
    mirrored q = {
        .l = l, .alpha = alpha, .beta = beta, .x = x, .y = y, .hermitian = v->mirror == 2, .z = room};
    const int64_t n = l->n;
    q.lower = l->ku == 0;
    if (over && q.hermitian) l->conj = !l->conj; /* the transpose is the conjugate */
    if (q.lower)
        l->ku = -1;
    else
        l->kl = -1;
    q.pieces = n < 2 * PIECE_LINES ? 1 : (int)st_min64(PIECES, n / PIECE_LINES);
    for (int p = 0; p <= q.pieces; p++) /* equal numbers of elements: by the square root, without one */
        q.from[p] = p * n / q.pieces;
    const size_t bytes = (size_t)q.pieces * (size_t)(n * l->es);
    if (bytes > sizeof room && !(q.z = st_malloc(h, bytes)))
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for %zu bytes of partial sums", who,
                       bytes);
    if (q.pieces == 1)
        mirrored_piece(&q, 0, 0);
    else
        st_team_for(h, q.pieces, microseconds(l, (double)n / 2, (double)n), mirrored_piece, &q);
    for (int64_t at = 0; at < n; at += ST_MV_ROWS) {
        const int64_t k = st_min64(ST_MV_ROWS, n - at);
        st_mv_finish(&y, l->type, at, k, one, NULL, beta);
        for (int p = 0; p < q.pieces; p++)
            st_mv_finish(&y, l->type, at, k, one, q.z + (p * n + at) * l->es, one);
    }
    if (q.z != room) st_mfree(h, q.z, bytes);
    return STRATA_OK;
}

static strata_status product(strata_handle *h, const char *who, const st_matvec *v, const double alpha[2],
                             const double beta[2], void *const data[3])
{
    const st_mv_vec x = {data[1], v->x, v->conj_x != 0}, y = {data[2], v->y, false};
    static const double one[2] = {1, 0};
    st_lines l;
    if (alpha[0] == 0 && alpha[1] == 0) {
        st_mv_finish(&y, (int)v->type, 0, v->m, alpha, NULL, beta);
        return STRATA_OK;
    }
    const bool over = lines_of(h, v, data[0], &l);
    if (v->mirror) return product_mirrored(h, who, &l, v, over, alpha, beta, x, y);
    if (v->unit) *(l.ku == 0 ? &l.ku : &l.kl) = -1;
    rectangle r = {
        .l = &l, .alpha = alpha, .beta = beta, .i1 = l.m, .j1 = l.n, .x = x, .y = y, .across = over};
    run_rectangle(h, &r);
    if (v->unit) {
        _Alignas(64) char room[ST_MV_ROWS * ST_MV_BYTES];
        for (int64_t at = 0; at < v->m; at += ST_MV_ROWS) {
            const int64_t k = st_min64(ST_MV_ROWS, v->m - at);
            st_mv_finish(&y, l.type, at, k, alpha, st_mv_read(&x, l.type, at, k, room), one);
        }
    }
    return STRATA_OK;
}

/* ---- updates ---- */
typedef struct update {
    const st_lines *l;
    st_mv_vec x, t, y, u; /* along lines: x (and y); a number a line: t (and u), times alpha (beta) */
    const double *alpha, *beta;
    bool two, hermitian;
    int64_t tall; /* rows of a task */
    int64_t down; /* tasks of a block of lines */
} update;

static void clear_diagonal(const st_lines *l, int64_t j0, int64_t j1)
{
    for (int64_t j = j0; j < j1; j++) {
        char *p = st_lines_at(l, j, j);
        if (l->type == STRATA_C64)
            ((float *)(void *)p)[1] = 0;
        else if (l->type == STRATA_C128)
            ((double *)(void *)p)[1] = 0;
    }
}

static void update_task(void *arg, int64_t task, int worker)
{
    const update *q = arg;
    const st_lines *l = q->l;
    const int64_t j0 = task / q->down * ST_MV_COLS, j1 = st_min64(l->n, j0 + ST_MV_COLS),
                  top = task % q->down * q->tall, from = st_max64(top, st_lines_first(l, j0)),
                  to = st_min64(top + q->tall, st_lines_end(l, j1 - 1));
    _Alignas(64) char xr[ST_MV_ROWS * ST_MV_BYTES], yr[ST_MV_ROWS * ST_MV_BYTES], t[ST_MV_COLS * ST_MV_BYTES],
        u[ST_MV_COLS * ST_MV_BYTES];
    st_lines_work w = {.op = ST_LINES_UPDATE, .t = t, .u = u};
    (void)worker;
    st_mv_scaled(&q->t, l->type, j0, j1 - j0, q->alpha, t);
    if (q->two) st_mv_scaled(&q->u, l->type, j0, j1 - j0, q->beta, u);
    for (int64_t i = from; i < to; i += ST_MV_ROWS) {
        const int64_t end = st_min64(to, i + ST_MV_ROWS);
        w.x = st_mv_read(&q->x, l->type, i, end - i, xr);
        if (q->two) w.y = st_mv_read(&q->y, l->type, i, end - i, yr);
        st_lines_block(l, &w, j0, j1, i, end);
    }
    /* the task that has a diagonal element's row clears it */
    if (q->hermitian) clear_diagonal(l, st_max64(j0, top), st_min64(j1, top + q->tall));
}

static void run_update(strata_handle *h, const st_matvec *v, const double alpha[2], void *const data[3])
{
    st_lines l;
    const bool over = lines_of(h, v, data[0], &l), her = v->mirror == 2, two = v->op == ST_MATVEC_UPDATE2;
    const double conjugate[2] = {alpha[0], her ? -alpha[1] : alpha[1]};
    const bool flip = two && her;
    const st_mv_vec x = {data[1], v->x, v->conj_x != 0}, y = {data[2], v->y, v->conj_y != 0};
    const st_mv_vec xc = {x.p, x.step, x.conj != flip}, yc = {y.p, y.step, y.conj != flip};
    update q = {.l = &l, .alpha = alpha, .beta = conjugate, .two = two, .hermitian = her};
    if (over)
        q.x = yc, q.t = x, q.y = xc, q.u = y;
    else
        q.x = x, q.t = yc, q.y = y, q.u = xc;
    const double us = microseconds(&l, (double)l.m, (double)l.n) * (v->half ? 1 : 2);
    q.tall = 4 * ST_MV_ROWS;
    q.down = st_ceil_div(l.m, q.tall);
    const int64_t tasks = st_ceil_div(l.n, ST_MV_COLS) * q.down;
    if (tasks == 1)
        update_task(&q, 0, 0);
    else
        st_team_for(h, tasks, us, update_task, &q);
}

/* ---- on a GPU: a plan, made by the provider that takes the family ---- */
static int64_t alignment(void *const data[3])
{
    uintptr_t bits = 16;
    for (int i = 0; i < 3; i++) bits |= (uintptr_t)data[i];
    return (int64_t)(bits & (~bits + 1));
}

static strata_status planned(strata_handle *h, const char *who, const void *problem, size_t bytes,
                             const double alpha[2], const double beta[2], void *const data[3])
{
    const st_problem p = {.op = ST_OP_POINTWISE, .who = who, .data = problem, .bytes = bytes};
    const strata_scalar a = strata_complex(alpha[0], alpha[1]), b = strata_complex(beta[0], beta[1]);
    const strata_run run = {.alpha = &a, .beta = &b};
    const strata_plan *plan;
    st_pw_init();
    const strata_status s = st_plan_get(h, &p, &plan);
    return s ? s : st_plan_execute(h, plan, data, &run);
}

/* ---- short matrices ---- */
static bool brief(const strata_handle *h, const st_matvec *v, const double alpha[2], const double beta[2],
                  void *const data[3])
{
    if (v->m > ST_MATVEC_SHORT || v->n > ST_MATVEC_SHORT) return false;
    const strata_matvec_plain p = {.op = (int32_t)v->op,
                                   .type = (int32_t)v->type,
                                   .half = (int32_t)v->half,
                                   .mirror = (int32_t)v->mirror,
                                   .unit = (int32_t)v->unit,
                                   .conj = (int32_t)v->conj,
                                   .conj_x = (int32_t)v->conj_x,
                                   .conj_y = (int32_t)v->conj_y,
                                   .packed = v->store == ST_STORE_PACKED,
                                   .m = v->m,
                                   .n = v->n,
                                   .row = v->row,
                                   .col = v->col,
                                   .kl = v->kl,
                                   .ku = v->ku,
                                   .incx = v->x,
                                   .incy = v->y,
                                   .a = data[0],
                                   .x = data[1],
                                   .y = data[2],
                                   .alpha = {alpha[0], alpha[1]},
                                   .beta = {beta[0], beta[1]}};
    return st_matvec_kernels_of(p.type, h->cpu->isa)->brief(&p);
}

/* n elements from p on, `step` apart */
typedef struct span {
    uintptr_t lo, hi;
} span;
static span span_of(const void *p, int64_t n, int64_t step, int64_t es)
{
    const int64_t far = (n - 1) * step * es;
    return (span){(uintptr_t)p + (uintptr_t)(far < 0 ? far : 0),
                  (uintptr_t)p + (uintptr_t)(es + (far > 0 ? far : 0))};
}
static bool apart(span a, span b) { return a.hi <= b.lo || b.hi <= a.lo; }

strata_status strata_matvec_run_plain(const strata_matvec_plain *p)
{
    const st_matvec_kernels *k = st_matvec_kernels_of(p->type, st_cpu_get()->isa);
    if (!k || p->reserved || p->m <= 0 || p->n <= 0 || p->m > ST_MATVEC_SHORT || p->n > ST_MATVEC_SHORT ||
        p->row < 0 || p->col < 0 || p->row > 1 << 30 || p->col > 1 << 30 || p->incx > 1 << 30 ||
        p->incx < -(1 << 30) || p->incy > 1 << 30 || p->incy < -(1 << 30))
        return STRATA_ERROR_UNSUPPORTED;
    const int64_t es = p->type == STRATA_F32 ? 4 : p->type == STRATA_C128 ? 16 : 8;
    const bool product = p->op == STRATA_MATVEC_PRODUCT, writes_a = p->op >= STRATA_MATVEC_UPDATE;
    const span a = span_of(p->a,
                           p->packed ? p->m * (p->m + 1) / 2 : (p->m - 1) * p->row + (p->n - 1) * p->col + 1,
                           1, es),
               x = span_of(p->x, writes_a ? p->m : p->n, p->incx, es);
    if (!apart(a, x)) return STRATA_ERROR_UNSUPPORTED;
    if (product || writes_a) {
        const span y = span_of(p->y, writes_a ? p->n : p->m, p->incy, es);
        if (!apart(a, y) || (product && !apart(x, y))) return STRATA_ERROR_UNSUPPORTED;
    }
    return k->brief(p) ? STRATA_OK : STRATA_ERROR_UNSUPPORTED;
}

strata_status st_matvec_run(strata_handle *h, const char *who, const st_matvec *v, const double alpha[2],
                            const double beta[2], void *const data[3])
{
    if (h->gpu) {
        st_matvec key = *v;
        key.family = ST_PW_MATVEC;
        key.alignment = alignment(data);
        return planned(h, who, &key, sizeof key, alpha, beta, data);
    }
    if (brief(h, v, alpha, beta, data)) return STRATA_OK;
    if (v->op == ST_MATVEC_PRODUCT) return product(h, who, v, alpha, beta, data);
    if (v->op == ST_MATVEC_UPDATE || v->op == ST_MATVEC_UPDATE2) {
        run_update(h, v, alpha, data);
        return STRATA_OK;
    }
    st_lines l;
    const bool over = lines_of(h, v, data[0], &l);
    const st_mv_vec x = {data[1], v->x, false};
    (v->op == ST_MATVEC_SOLVE ? st_mv_solve : st_mv_multiply)(h, &l, over, v->unit != 0, x);
    return STRATA_OK;
}

strata_status st_matcopy_run(strata_handle *h, const char *who, const st_matcopy *c, const double alpha[2],
                             const double beta[2], void *const data[3])
{
    if (h->gpu) {
        st_matcopy key = *c;
        key.family = ST_PW_MATCOPY;
        key.alignment = alignment(data);
        return planned(h, who, &key, sizeof key, alpha, beta, data);
    }
    return st_matcopy_cpu(h, c, alpha, beta, data);
}
