/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_lines.h - a matrix on the CPU as lines: columns of neighbouring elements, of which some rows are there. A matrix by rows is its transpose by
 * columns, so everything below knows columns alone. Work goes by blocks: ST_MV_COLS lines times ST_MV_ROWS rows, whose share of the vectors is dense
 * and in the first cache. */
#ifndef ST_POINTWISE_MATVEC_LINES_H
#define ST_POINTWISE_MATVEC_LINES_H
#include "pointwise/matvec.h"

enum {
    ST_MV_ROWS = 1024, /* of a block: 16 KB of the widest type */
    ST_MV_COLS = 128,
    ST_MV_DIAGONAL = 64, /* order of the diagonal blocks of what is done in place */
    ST_MV_BYTES = 16     /* of the widest element */
};

typedef struct st_lines {
    char *a;
    const st_matvec_kernels *k;
    int64_t m, n, row, col; /* elements from row to row (1: lines are dense), from line to line */
    int64_t kl, ku;         /* line j has rows j - ku to j + kl; -1: without the diagonal */
    int64_t es;             /* bytes of an element */
    int packed;             /* 0; 1: lower, 2: upper triangle of order n */
    int type;
    bool conj;
} st_lines;

ST_INLINE char *st_lines_at(const st_lines *l, int64_t i, int64_t j)
{
    if (l->packed)
        return l->a + (l->packed == 1 ? i + j * (2 * l->n - j - 1) / 2 : i + j * (j + 1) / 2) * l->es;
    return l->a + (i * l->row + j * l->col) * l->es;
}
ST_INLINE int64_t st_lines_first(const st_lines *l, int64_t j) { return st_max64(0, j - l->ku); }
ST_INLINE int64_t st_lines_end(const st_lines *l, int64_t j) { return st_min64(l->m, j + l->kl + 1); }

/* What is done with lines: t, u and s have an element a line (from j0), x and y one a row (from i0); all dense. */
typedef enum st_lines_op { ST_LINES_ADD, ST_LINES_DOT, ST_LINES_BOTH, ST_LINES_UPDATE } st_lines_op;
typedef struct st_lines_work {
    st_lines_op op;
    const void *t, *u; /* ADD, BOTH, UPDATE; UPDATE of two products */
    void *y;           /* ADD, BOTH; UPDATE of two products: read, may be NULL */
    const void *x;     /* DOT, BOTH, UPDATE */
    void *s;           /* DOT, BOTH: added to */
    bool conj_add, conj_dot;
} st_lines_work;
/* The elements in lines [j0, j1) and rows [i0, i1); at most ST_MV_COLS and ST_MV_ROWS of them. */
void st_lines_block(const st_lines *l, const st_lines_work *w, int64_t j0, int64_t j1, int64_t i0,
                    int64_t i1);

/* Between a vector of any stride and a dense one. */
typedef struct st_mv_vec {
    char *p;
    int64_t step;
    bool conj;
} st_mv_vec;
/* The elements [at, at + n): where they lie when they are dense and not conjugated, else copied to room. */
void *st_mv_read(const st_mv_vec *v, int type, int64_t at, int64_t n, void *room);
/* What of `room` was changed goes back. */
void st_mv_write(const st_mv_vec *v, int type, int64_t at, int64_t n, const void *dense);
/* to = factor * (conj) v, dense. */
void st_mv_scaled(const st_mv_vec *v, int type, int64_t at, int64_t n, const double factor[2], void *to);
/* y := beta * y + alpha * s (s dense, NULL: nothing); beta = 0: y is not read. */
void st_mv_finish(const st_mv_vec *y, int type, int64_t at, int64_t n, const double alpha[2], const void *s,
                  const double beta[2]);

/* matvec_triangle.c */
void st_mv_multiply(strata_handle *h, const st_lines *l, bool across, bool unit, st_mv_vec x);
void st_mv_solve(strata_handle *h, const st_lines *l, bool across, bool unit, st_mv_vec x);
/* matvec.c: y += alpha * (the part of A in rows [i0, i1) and lines [j0, j1)) x, `across`: its transpose. x and y begin at the part's first. */
void st_mv_rectangle(strata_handle *h, const st_lines *l, bool across, const double alpha[2], int64_t i0,
                     int64_t i1, int64_t j0, int64_t j1, st_mv_vec x, st_mv_vec y);
#endif
