/* SPDX-License-Identifier: Apache-2.0 */
/* vector.c - vectors cut in pieces and chunks, threads, strides; and the norms, whose rules for large, small and special numbers need more
 * than a kernel. */
#include "pointwise/vector.h"
#include "base/cpu.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROWS(X)                               \
    X(f32, STRATA_F32, avx512, ST_ISA_AVX512) \
    X(f64, STRATA_F64, avx512, ST_ISA_AVX512) \
    X(f32, STRATA_F32, avx2, ST_ISA_AVX2)     \
    X(f64, STRATA_F64, avx2, ST_ISA_AVX2)
#define LAST_ROWS(X)                              \
    X(f32, STRATA_F32, portable, ST_ISA_PORTABLE) \
    X(f64, STRATA_F64, portable, ST_ISA_PORTABLE)
#if !defined(__x86_64__)
#    undef ROWS
#    define ROWS(X)
#endif
#define PROTOTYPE(type, TYPE, arch, ISA) extern const st_vec_kernels st_vec_##type##_##arch##_kernels;
ROWS(PROTOTYPE)
LAST_ROWS(PROTOTYPE)

static const struct row {
    const char *id, *types, *isa_name;
    int part;
    unsigned isa;
    const st_vec_kernels *k;
} rows[] = {
#define ROW(type, TYPE, arch, ISA) \
    {"vector_" #type "_" #arch, #type, #arch, TYPE, ISA, &st_vec_##type##_##arch##_kernels},
    ROWS(ROW) LAST_ROWS(ROW)};

const st_vec_kernels *st_vec_kernels_of(int part, unsigned isa)
{
    for (int i = 0; i < ST_COUNT(rows); i++)
        if (rows[i].part == part && (rows[i].isa & ~isa) == 0) return rows[i].k;
    return rows[ST_COUNT(rows) - 1].k;
}

int st_vec_list(int i, strata_kernel_info *info)
{
    if (i < 0 || i >= ST_COUNT(rows)) return 0;
    const bool usable = (rows[i].isa & ~st_cpu_get()->isa) == 0;
    *info = (strata_kernel_info){
        rows[i].id,
        "vector",
        rows[i].types,
        rows[i].isa_name,
        "lanes inside chunks of 1024, chunks and pieces added in f64 in ascending order",
        usable,
        usable ? NULL : "needs an instruction set that this machine or STRATA_ISA does not offer"};
    return 1;
}

/* ---- walking ---------------------------------------------------------------------------------------------------------------- */
typedef struct walk walk;
/* One chunk of dense vectors: x, y may be written where the operation writes; partial results go to out. */
typedef void (*chunk_fn)(const walk *w, int64_t n, void *x, void *y, double *out);
struct walk {
    const st_vec_kernels *k;
    int64_t n, piece, pieces;
    int64_t size, parts; /* bytes of an element; parts an element has */
    bool wide;           /* elements of f32 parts are made f64 before the kernels see them */
    st_vec x, y;
    bool two, write_x, write_y, read_y;
    double a[4], b[2];
    chunk_fn chunk;
    int outs;
    double (*out)[4]; /* a row of sums a piece */
};

static void move(char *to, int64_t ts, const char *from, int64_t fs, int64_t n, int64_t size)
{
    ts *= size, fs *= size;
    if (size == 4)
        for (int64_t i = 0; i < n; i++) memcpy(to + i * ts, from + i * fs, 4);
    else if (size == 8)
        for (int64_t i = 0; i < n; i++) memcpy(to + i * ts, from + i * fs, 8);
    else
        for (int64_t i = 0; i < n; i++) memcpy(to + i * ts, from + i * fs, 16);
}

/* Elements of f32 parts, dense and f64. */
static void widen(double *to, const char *from, int64_t step, int64_t n, int64_t parts)
{
    for (int64_t i = 0; i < n; i++, from += step * parts * 4)
        for (int64_t p = 0; p < parts; p++) {
            float f;
            memcpy(&f, from + 4 * p, 4);
            to[i * parts + p] = (double)f;
        }
}

static void one_piece(void *arg, int64_t i, int worker)
{
    const walk *w = arg;
    _Alignas(64) char xs[ST_VEC_CHUNK * 16], ys[ST_VEC_CHUNK * 16];
    const int64_t end = st_min64(w->n, (i + 1) * w->piece);
    const bool dense = w->x.step == 1 && (!w->two || w->y.step == 1);
    /* elementwise operations on dense vectors need no chunks */
    const int64_t chunk = dense && !w->outs ? w->piece : ST_VEC_CHUNK;
    (void)worker;
    for (int64_t at = i * w->piece; at < end; at += chunk) {
        const int64_t n = st_min64(chunk, end - at);
        char *x = w->x.p + at * w->x.step * w->size, *y = w->two ? w->y.p + at * w->y.step * w->size : NULL;
        char *dx = x, *dy = y;
        if (w->wide) { /* sums only: nothing is written back */
            widen((double *)(void *)xs, x, w->x.step, n, w->parts);
            if (w->two) widen((double *)(void *)ys, y, w->y.step, n, w->parts);
            w->chunk(w, n, xs, ys, w->out[i]);
            continue;
        }
        if (w->x.step != 1) move(dx = xs, 1, x, w->x.step, n, w->size);
        if (w->two && w->y.step != 1) {
            dy = ys;
            if (w->read_y) move(dy, 1, y, w->y.step, n, w->size);
        }
        w->chunk(w, n, dx, dy, w->outs ? w->out[i] : NULL);
        if (w->write_x && dx != x) move(x, w->x.step, dx, 1, n, w->size);
        if (w->write_y && dy != y) move(y, w->y.step, dy, 1, n, w->size);
    }
}

static void set_type(const strata_handle *h, walk *w, int type)
{
    const int part = st_type_part(type);
    w->wide = w->wide && part == STRATA_F32;
    w->k = st_vec_kernels_of(w->wide ? STRATA_F64 : part, h->cpu->isa);
    w->parts = st_type_is_complex(type) ? 2 : 1;
    w->size = (part == STRATA_F32 ? 4 : 8) * w->parts;
    w->piece = st_max64(ST_VEC_PIECE, st_round_up(st_ceil_div(w->n, ST_VEC_PIECES), ST_VEC_CHUNK));
    w->pieces = st_ceil_div(w->n, w->piece);
}

static void run_pieces(strata_handle *h, walk *w)
{
    if (w->outs) memset(w->out, 0, sizeof w->out[0] * (size_t)w->pieces);
    if (w->pieces == 1)
        one_piece(w, 0, 0);
    else
        st_team_for(h, w->pieces, (double)(w->n * w->size) * (w->two ? 2 : 1) / 10e3, one_piece, w);
}

/* Without sums. */
static void run(strata_handle *h, walk *w, int type)
{
    set_type(h, w, type);
    run_pieces(h, w);
}

/* Sums of the pieces in ascending order, in total[]. */
static void run_sums(strata_handle *h, walk *w, int type, double total[4])
{
    double out[ST_VEC_PIECES][4];
    w->out = out;
    run(h, w, type);
    for (int o = 0; o < 4; o++) total[o] = 0;
    for (int64_t i = 0; i < w->pieces; i++)
        for (int o = 0; o < w->outs; o++) total[o] += out[i][o];
    w->out = NULL;
}

/* ---- operations --------------------------------------------------------------------------------------------------------------- */
static void axpby_chunk(const walk *w, int64_t n, void *x, void *y, double *out)
{
    (void)out;
    if (w->parts == 2 && (w->a[1] != 0 || w->b[1] != 0))
        w->k->caxpby(n, w->a, x, w->b, y);
    else
        w->k->axpby(n * w->parts, w->a[0], x, w->b[0], y);
}
void st_vec_axpby(strata_handle *h, int type, int64_t n, const double a[2], st_vec x, const double b[2],
                  st_vec y)
{
    walk w = {.n = n,
              .x = x,
              .y = y,
              .two = true,
              .write_y = true,
              .read_y = b[0] != 0 || b[1] != 0,
              .a = {a[0], a[1]},
              .b = {b[0], b[1]},
              .chunk = axpby_chunk};
    run(h, &w, type);
}

static void scal_chunk(const walk *w, int64_t n, void *x, void *y, double *out)
{
    (void)y, (void)out;
    if (w->parts == 2 && w->a[1] != 0)
        w->k->cscal(n, w->a, x);
    else
        w->k->scal(n * w->parts, w->a[0], x);
}
void st_vec_scal(strata_handle *h, int type, int64_t n, const double a[2], st_vec x)
{
    walk w = {.n = n, .x = x, .write_x = true, .a = {a[0], a[1]}, .chunk = scal_chunk};
    run(h, &w, type);
}

static void swap_chunk(const walk *w, int64_t n, void *x, void *y, double *out)
{
    (void)out;
    w->k->swap(n * w->parts, x, y);
}
void st_vec_swap(strata_handle *h, int type, int64_t n, st_vec x, st_vec y)
{
    walk w = {.n = n,
              .x = x,
              .y = y,
              .two = true,
              .write_x = true,
              .write_y = true,
              .read_y = true,
              .chunk = swap_chunk};
    run(h, &w, type);
}

/* x, y := c x + s y, c y - conj(s) x: where s has an imaginary part, by two passes over a chunk and its copy. */
static void rot_chunk(const walk *w, int64_t n, void *x, void *y, double *out)
{
    (void)out;
    if (w->a[2] == 0) {
        w->k->rot(n * w->parts, w->a[0], w->a[1], x, y);
        return;
    }
    const double c[2] = {w->a[0], 0}, s[2] = {w->a[1], w->a[2]}, t[2] = {-w->a[1], w->a[2]};
    _Alignas(64) char old[ST_VEC_CHUNK * 16];
    for (int64_t at = 0; at < n; at += ST_VEC_CHUNK) {
        const int64_t k = st_min64(ST_VEC_CHUNK, n - at);
        char *px = (char *)x + at * w->size, *py = (char *)y + at * w->size;
        memcpy(old, px, (size_t)(k * w->size));
        w->k->caxpby(k, s, py, c, px);
        w->k->caxpby(k, t, old, c, py);
    }
}
void st_vec_rot(strata_handle *h, int type, int64_t n, double c, const double s[2], st_vec x, st_vec y)
{
    walk w = {.n = n,
              .x = x,
              .y = y,
              .two = true,
              .write_x = true,
              .write_y = true,
              .read_y = true,
              .a = {c, s[0], s[1]},
              .chunk = rot_chunk};
    run(h, &w, type);
}

static void rotm_chunk(const walk *w, int64_t n, void *x, void *y, double *out)
{
    (void)out;
    w->k->rotm(n, w->a, x, y);
}
void st_vec_rotm(strata_handle *h, int type, int64_t n, const double m[4], st_vec x, st_vec y)
{
    walk w = {.n = n,
              .x = x,
              .y = y,
              .two = true,
              .write_x = true,
              .write_y = true,
              .read_y = true,
              .a = {m[0], m[1], m[2], m[3]},
              .chunk = rotm_chunk};
    run(h, &w, type);
}

static void dot_chunk(const walk *w, int64_t n, void *x, void *y, double *out)
{
    double s[4] = {0};
    if (w->parts == 2)
        w->k->cdot(n, x, y, s);
    else
        s[0] = w->k->dot(n, x, y);
    for (int i = 0; i < 4; i++) out[i] += s[i];
}
void st_vec_dot(strata_handle *h, int type, int64_t n, bool conjugate, bool wide, st_vec x, st_vec y,
                double out[2])
{
    walk w = {
        .n = n, .x = x, .y = y, .two = true, .read_y = true, .wide = wide, .chunk = dot_chunk, .outs = 4};
    double s[4];
    run_sums(h, &w, type, s);
    out[0] = conjugate ? s[0] + s[1] : s[0] - s[1];
    out[1] = conjugate ? s[2] - s[3] : s[2] + s[3];
}

static void asum_chunk(const walk *w, int64_t n, void *x, void *y, double *out)
{
    (void)y;
    out[0] += w->k->asum(n * w->parts, x);
}
double st_vec_asum(strata_handle *h, int type, int64_t n, bool wide, st_vec x)
{
    walk w = {.n = n, .x = x, .wide = wide, .chunk = asum_chunk, .outs = 1};
    double s[4];
    run_sums(h, &w, type, s);
    return s[0];
}

/* Squares of a chunk go to one of three sums, as Anderson's "Algorithm 978: safe scaling in the level 1 BLAS" (TOMS 44, 2017) has it: out[0] as
 * they are, out[1] of numbers so large that they are scaled down by 2^-538, out[2] of ones so small that they are scaled up by
 * 2^538; out[3] keeps what is no number. The parts of f32 have squares well inside f64. */
static void norm_chunk(const walk *w, int64_t n, void *x, void *y, double *out)
{
    const bool f32 = w->size == 4 * w->parts && !w->wide;
    (void)y;
    if (f32) {
        double s = 0;
        const float *v = x;
        const double plain = w->k->sumsq(n * w->parts, x);
        if (plain > 1e-25 && plain < 1e30) {
            out[0] += plain;
            return;
        }
        for (int64_t i = 0; i < n * w->parts; i++) s += (double)v[i] * (double)v[i];
        out[0] += s;
        return;
    }
    const double plain = w->k->sumsq(n * w->parts, x), *v = x;
    if (plain > 1e-270 && plain < 1e290) {
        out[0] += plain;
        return;
    }
    for (int64_t i = 0; i < n * w->parts; i++) {
        const double m = fabs(v[i]);
        if (m != m || isinf(m))
            out[3] += m;
        else if (m > 0x1p+486)
            out[1] += (m * 0x1p-538) * (m * 0x1p-538);
        else if (m < 0x1p-511)
            out[2] += (m * 0x1p+537) * (m * 0x1p+537);
        else
            out[0] += m * m;
    }
}
double st_vec_nrm2(strata_handle *h, int type, int64_t n, bool wide, st_vec x)
{
    walk w = {.n = n, .x = x, .wide = wide, .chunk = norm_chunk, .outs = 4};
    double s[4];
    run_sums(h, &w, type, s);
    if (s[3] != 0) return s[3]; /* NaN, or Inf */
    if (s[1] > 0) return sqrt(s[1] + (s[0] * 0x1p-538) * 0x1p-538) * 0x1p+538;
    if (s[2] > 0 && s[0] < 1e-250) return sqrt(s[2] + (s[0] * 0x1p+537) * 0x1p+537) * 0x1p-537;
    return sqrt(s[0]);
}

/* ---- the position of the largest (least) absolute value: the value first, then where it stands ---- */
static void amax_chunk(const walk *w, int64_t n, void *x, void *y, double *out)
{
    (void)y;
    const double m = w->parts == 2 ? w->k->camax(n, x) : w->k->amax(n, x);
    if (!(m <= out[0]) && out[0] == out[0]) out[0] = m;
}

static double magnitude(const walk *w, const char *p)
{
    if (w->size == 4 * w->parts) {
        const float *v = (const float *)(const void *)p;
        return w->parts == 2 ? (double)(fabsf(v[0]) + fabsf(v[1])) : (double)fabsf(v[0]);
    }
    const double *v = (const double *)(const void *)p;
    return w->parts == 2 ? fabs(v[0]) + fabs(v[1]) : fabs(v[0]);
}

static int64_t first_least(const walk *w)
{
    int64_t at = 0;
    double m = magnitude(w, w->x.p);
    for (int64_t i = 1; i < w->n && m == m; i++) {
        const double v = magnitude(w, w->x.p + i * w->x.step * w->size);
        if (!(v >= m)) m = v, at = i;
    }
    return at;
}

int64_t st_vec_iamax(strata_handle *h, int type, int64_t n, bool least, st_vec x)
{
    double best[ST_VEC_PIECES][4];
    walk w = {.n = n, .x = x, .chunk = amax_chunk, .outs = 1, .out = best};
    if (n == 0) return -1;
    set_type(h, &w, type);
    if (least) return first_least(&w);
    run_pieces(h, &w);
    int64_t piece = 0;
    for (int64_t i = 1; i < w.pieces; i++)
        if (!(best[i][0] <= best[piece][0]) && best[piece][0] == best[piece][0]) piece = i;
    const double m = best[piece][0];
    enum { LOOK = 128 }; /* by the kernel until the place is near */
    int64_t from = piece * w.piece;
    for (; x.step == 1 && from + LOOK <= n; from += LOOK) {
        double v[4] = {0};
        amax_chunk(&w, LOOK, x.p + from * w.size, NULL, v);
        if (v[0] == m || v[0] != v[0]) break;
    }
    for (int64_t i = from; i < n; i++) {
        const double v = magnitude(&w, x.p + i * x.step * w.size);
        if (v == m || v != v) return i;
    }
    return 0;
}
