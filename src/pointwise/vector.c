/* SPDX-License-Identifier: Apache-2.0 */
/* vector.c - vectors cut in pieces for threads, a kernel call each. One piece is the kernel's call alone. */
#include "pointwise/vector.h"
#include <string.h>

#define FAMILY vector
#define TABLE st_vec_kernels
#include "pointwise/blas_rows.h"

const st_vec_kernels *st_vec_kernels_of(int type, unsigned isa) { return find_row(type, isa); }
int st_vec_list(int i, strata_kernel_info *info)
{
    return list_row(
        i, "lanes inside chunks of 1024, lanes of chunks and pieces added in f64 in ascending order", info);
}

const strata_vectors *strata_vectors_of(strata_handle *h, strata_type type)
{
    const bool known = type == STRATA_F32 || type == STRATA_F64 || st_type_is_complex((int)type);
    if (!known || st_handle_check(h, "strata_vectors_of") || h->gpu) return NULL;
    return &st_vec_kernels_of((int)type, h->cpu->isa)->shorts;
}

/* ---- pieces -------------------------------------------------------------------------------------------------------------------- */
typedef struct walk walk;
typedef void (*piece_fn)(const walk *w, int64_t n, char *x, char *y, double *out);
struct walk {
    const st_vec_kernels *k;
    piece_fn run;
    int64_t n, piece, pieces, size;
    st_vec x, y;
    double a[4], b[2];
    bool conjugate;
    double (*out)[4]; /* NULL, or a row of sums a piece */
};

static void one_piece(void *arg, int64_t i, int worker)
{
    const walk *w = arg;
    const int64_t at = i * w->piece;
    (void)worker;
    w->run(w, st_min64(w->n - at, w->piece), w->x.p + at * w->x.step * w->size,
           w->y.p + at * w->y.step * w->size, w->out ? w->out[i] : NULL);
}

static int64_t size_of(int type) { return type == STRATA_F32 ? 4 : type == STRATA_C128 ? 16 : 8; }

static void cut(const strata_handle *h, walk *w, int type)
{
    w->k = st_vec_kernels_of(type, h->cpu->isa);
    w->size = size_of(type);
    if (!w->y.p) w->y = w->x;
    w->piece = st_max64(ST_VEC_PIECE, st_round_up(st_ceil_div(w->n, ST_VEC_PIECES), ST_VEC_CHUNK));
    w->pieces = st_ceil_div(w->n, w->piece);
}

static ST_NOINLINE void run(strata_handle *h, walk *w, int type)
{
    cut(h, w, type);
    st_team_for(h, w->pieces, (double)(w->n * w->size) / 5e3, one_piece, w);
}

/* Sums of the pieces in ascending order, in total[]. */
static ST_NOINLINE void run_sums(strata_handle *h, walk *w, int type, double total[4])
{
    double out[ST_VEC_PIECES][4];
    cut(h, w, type);
    memset(out, 0, sizeof out[0] * (size_t)w->pieces);
    w->out = out;
    st_team_for(h, w->pieces, (double)(w->n * w->size) / 5e3, one_piece, w);
    for (int o = 0; o < 4; o++) total[o] = 0;
    for (int64_t i = 0; i < w->pieces; i++)
        for (int o = 0; o < 4; o++) total[o] += out[i][o];
    w->out = NULL;
}

#define SHORT(type) (&st_vec_kernels_of(type, h->cpu->isa)->shorts)

/* ---- operations --------------------------------------------------------------------------------------------------------------- */
static void axpby_piece(const walk *w, int64_t n, char *x, char *y, double *out)
{
    (void)out;
    w->k->shorts.axpby(n, w->a, x, w->x.step, w->b, y, w->y.step);
}
void st_vec_axpby(strata_handle *h, int type, int64_t n, const double a[2], st_vec x, const double b[2],
                  st_vec y)
{
    if (n <= ST_VEC_PIECE) {
        SHORT(type)->axpby(n, a, x.p, x.step, b, y.p, y.step);
        return;
    }
    walk w = {.n = n, .x = x, .y = y, .a = {a[0], a[1]}, .b = {b[0], b[1]}, .run = axpby_piece};
    run(h, &w, type);
}

static void scal_piece(const walk *w, int64_t n, char *x, char *y, double *out)
{
    (void)y, (void)out;
    w->k->shorts.scal(n, w->a, x, w->x.step);
}
void st_vec_scal(strata_handle *h, int type, int64_t n, const double a[2], st_vec x)
{
    if (n <= ST_VEC_PIECE) {
        SHORT(type)->scal(n, a, x.p, x.step);
        return;
    }
    walk w = {.n = n, .x = x, .a = {a[0], a[1]}, .run = scal_piece};
    run(h, &w, type);
}

static void swap_piece(const walk *w, int64_t n, char *x, char *y, double *out)
{
    (void)out;
    w->k->shorts.swap(n, x, w->x.step, y, w->y.step);
}
void st_vec_swap(strata_handle *h, int type, int64_t n, st_vec x, st_vec y)
{
    if (n <= ST_VEC_PIECE) {
        SHORT(type)->swap(n, x.p, x.step, y.p, y.step);
        return;
    }
    walk w = {.n = n, .x = x, .y = y, .run = swap_piece};
    run(h, &w, type);
}

static void rot_piece(const walk *w, int64_t n, char *x, char *y, double *out)
{
    (void)out;
    w->k->shorts.rot(n, w->a[0], &w->a[1], x, w->x.step, y, w->y.step);
}
void st_vec_rot(strata_handle *h, int type, int64_t n, double c, const double s[2], st_vec x, st_vec y)
{
    if (n <= ST_VEC_PIECE) {
        SHORT(type)->rot(n, c, s, x.p, x.step, y.p, y.step);
        return;
    }
    walk w = {.n = n, .x = x, .y = y, .a = {c, s[0], s[1]}, .run = rot_piece};
    run(h, &w, type);
}

static void rotm_piece(const walk *w, int64_t n, char *x, char *y, double *out)
{
    (void)out;
    w->k->shorts.rotm(n, w->a, x, w->x.step, y, w->y.step);
}
void st_vec_rotm(strata_handle *h, int type, int64_t n, const double m[4], st_vec x, st_vec y)
{
    if (n <= ST_VEC_PIECE) {
        SHORT(type)->rotm(n, m, x.p, x.step, y.p, y.step);
        return;
    }
    walk w = {.n = n, .x = x, .y = y, .a = {m[0], m[1], m[2], m[3]}, .run = rotm_piece};
    run(h, &w, type);
}

static void dots_piece(const walk *w, int64_t n, char *x, char *y, double *out)
{
    w->k->shorts.dots(n, w->conjugate, x, w->x.step, y, w->y.step, out);
}
static void asum_piece(const walk *w, int64_t n, char *x, char *y, double *out)
{
    (void)y;
    out[0] = w->k->shorts.asum(n, x, w->x.step);
}
static void norm_piece(const walk *w, int64_t n, char *x, char *y, double *out)
{
    (void)y;
    w->k->norm(n, x, w->x.step, out);
}

/* Elements of f32 parts are made f64 chunk by chunk, and go to the kernels of that type. */
static void widen(double *to, const char *from, int64_t step, int64_t n, int64_t parts)
{
    for (int64_t i = 0; i < n; i++, from += step * parts * 4)
        for (int64_t p = 0; p < parts; p++) {
            float f;
            memcpy(&f, from + 4 * p, 4);
            to[i * parts + p] = (double)f;
        }
}
typedef struct wide_walk {
    walk w;     /* of f64 parts: what a chunk does */
    walk given; /* of the elements as they are */
} wide_walk;
static void wide_piece(const walk *given, int64_t n, char *x, char *y, double *out)
{
    const wide_walk *q = (const wide_walk *)(const void *)((const char *)given - offsetof(wide_walk, given));
    _Alignas(64) double xs[ST_VEC_CHUNK * 2], ys[ST_VEC_CHUNK * 2];
    const int64_t parts = q->given.size / 4;
    for (int64_t at = 0; at < n; at += ST_VEC_CHUNK) {
        const int64_t k = st_min64(ST_VEC_CHUNK, n - at);
        double sums[4] = {0};
        widen(xs, x + at * given->x.step * given->size, given->x.step, k, parts);
        if (given->y.p != given->x.p)
            widen(ys, y + at * given->y.step * given->size, given->y.step, k, parts);
        q->w.run(&q->w, k, (char *)xs, (char *)(given->y.p != given->x.p ? ys : xs), sums);
        for (int o = 0; o < 4; o++) out[o] += sums[o];
    }
}

/* Sums of any kind; wide: of the elements as f64. */
static ST_NOINLINE void sums(strata_handle *h, walk *w, int type, bool wide, double total[4])
{
    if (!wide || st_type_part(type) != STRATA_F32) {
        run_sums(h, w, type, total);
        return;
    }
    wide_walk q = {.w = *w, .given = *w};
    q.given.run = wide_piece;
    q.w.x.step = q.w.y.step = 1;
    q.w.k = st_vec_kernels_of(type == STRATA_F32 ? STRATA_F64 : STRATA_C128, h->cpu->isa);
    run_sums(h, &q.given, type, total);
}

void st_vec_dot(strata_handle *h, int type, int64_t n, bool conjugate, bool wide, st_vec x, st_vec y,
                double out[2])
{
    wide = wide && st_type_part(type) == STRATA_F32;
    if (n <= ST_VEC_PIECE && !wide) {
        SHORT(type)->dots(n, conjugate, x.p, x.step, y.p, y.step, out);
        return;
    }
    double s[4];
    walk w = {.n = n, .x = x, .y = y, .conjugate = conjugate, .run = dots_piece};
    sums(h, &w, type, wide, s);
    out[0] = s[0], out[1] = s[1];
}

double st_vec_asum(strata_handle *h, int type, int64_t n, bool wide, st_vec x)
{
    wide = wide && st_type_part(type) == STRATA_F32;
    if (n <= ST_VEC_PIECE && !wide) return SHORT(type)->asum(n, x.p, x.step);
    double s[4];
    walk w = {.n = n, .x = x, .run = asum_piece};
    sums(h, &w, type, wide, s);
    return s[0];
}

double st_vec_nrm2(strata_handle *h, int type, int64_t n, bool wide, st_vec x)
{
    wide = wide && st_type_part(type) == STRATA_F32;
    if (n <= ST_VEC_PIECE && !wide) return SHORT(type)->nrm2(n, x.p, x.step);
    double s[4];
    walk w = {.n = n, .x = x, .run = norm_piece};
    sums(h, &w, type, wide, s);
    return st_vec_norm(s);
}

/* ---- the place of the largest (least) absolute value ---- */
static void most_piece(const walk *w, int64_t n, char *x, char *y, double *out)
{
    (void)y;
    out[1] = (double)w->k->most_at(n, x, w->x.step, &out[0]);
}
static void least_piece(const walk *w, int64_t n, char *x, char *y, double *out)
{
    (void)y;
    out[1] = (double)w->k->least_at(n, x, w->x.step, &out[0]);
}
int64_t st_vec_iamax(strata_handle *h, int type, int64_t n, bool least, st_vec x)
{
    if (n == 0) return -1;
    if (n <= ST_VEC_PIECE) return (least ? SHORT(type)->iamin : SHORT(type)->iamax)(n, x.p, x.step);
    double best[ST_VEC_PIECES][4];
    walk w = {.n = n, .x = x, .run = least ? least_piece : most_piece, .out = best};
    run(h, &w, type);
    int64_t piece = 0;
    for (int64_t i = 1; i < w.pieces && best[piece][0] == best[piece][0]; i++)
        if (!(best[i][0] <= best[piece][0])) piece = i;
    return piece * w.piece + (int64_t)best[piece][1];
}
