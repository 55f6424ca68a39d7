/* SPDX-License-Identifier: Apache-2.0 */
/* structured_small.c - small products of triangular, symmetric and hermitian matrices, and results that are triangles, by the kernels of small
 * products: the operand of which a half is stored is laid out whole on the stack (vectors copy its rows, blocks that are transposed in
 * registers fill the mirror image), the other one is read where it lies. Of a triangle the steps in which a tile's rows or columns are all zero
 * are left out; of a result that is a triangle, tiles beside the diagonal go to C at once, those on it through the stack.
 *
 * Sums run over k in ascending order, as those of the packed product do up to its first block of k: the bits are the plan's. */
#include "tile/structured.h"
#include "tile/gemm_small.h"
#include "tile/cpu/tri_kernel.h"
#include <string.h>

enum { ROOM = 1 << 16, MOST = 128 };

/* ---- kernels of a type and instruction set, without search ---------------------------------------------------------------- */
typedef struct kernels {
    const st_packed_kernel *packed;
    const st_tri_kernel *tri;
} kernels;
#define BOTH(types, tile, isa)                                                            \
    {                                                                                     \
        &st_kernel_gemm_##types##_##tile##_##isa, &st_kernel_tri_##types##_##tile##_##isa \
    }
#define DECLARE(types, tile, isa)                                          \
    extern const st_packed_kernel st_kernel_gemm_##types##_##tile##_##isa; \
    extern const st_tri_kernel st_kernel_tri_##types##_##tile##_##isa
DECLARE(f32f32f32, 4x8, portable);
DECLARE(f64f64f64, 4x4, portable);
DECLARE(c64c64c64, 2x4, portable);
DECLARE(c128c128c128, 2x2, portable);
#if defined(__x86_64__)
DECLARE(f32f32f32, 6x16, avx2);
DECLARE(f64f64f64, 6x8, avx2);
DECLARE(c64c64c64, 3x8, avx2);
DECLARE(c128c128c128, 3x4, avx2);
DECLARE(f32f32f32, 6x64, avx512);
DECLARE(f64f64f64, 6x32, avx512);
DECLARE(c64c64c64, 3x32, avx512);
DECLARE(c128c128c128, 3x16, avx512);
#endif
static const kernels table[ST_LEVELS][4] = {
    {BOTH(f32f32f32, 4x8, portable), BOTH(f64f64f64, 4x4, portable), BOTH(c64c64c64, 2x4, portable),
     BOTH(c128c128c128, 2x2, portable)},
#if defined(__x86_64__)
    {BOTH(f32f32f32, 6x16, avx2), BOTH(f64f64f64, 6x8, avx2), BOTH(c64c64c64, 3x8, avx2),
     BOTH(c128c128c128, 3x4, avx2)},
    {BOTH(f32f32f32, 6x64, avx512), BOTH(f64f64f64, 6x32, avx512), BOTH(c64c64c64, 3x32, avx512),
     BOTH(c128c128c128, 3x16, avx512)},
#endif
};
static const kernels *kernels_of(int level, int type)
{
    return &table[level][type == STRATA_F32 ? 0 : type == STRATA_F64 ? 1 : type == STRATA_C64 ? 2 : 3];
}
const st_packed_kernel *st_side_packed(int level, int type) { return kernels_of(level, type)->packed; }
const st_tri_kernel *st_side_tri(int level, int type) { return kernels_of(level, type)->tri; }

/* ---- one product ------------------------------------------------------------------------------------------------------------ */
typedef struct work {
    const st_small_structured *p;
    const st_small_kernel *kernel;
    const st_tri_kernel *tri;
    int64_t es;
    st_small_shape shape; /* of the whole product; B has unit column stride */
    st_small_pairs pairs;
    double alpha, beta;
    const char *a, *b;
} work;

/* C's rows i0.. and columns j0.. in steps k0.. of k, with another place for C */
static void rectangle(const work *w, int64_t i0, int64_t m, int64_t j0, int64_t n, int64_t k0, int64_t k,
                      char *c, int64_t crs, double beta)
{
    st_small_shape s = w->shape;
    s.k = k;
    s.crs = crs;
    if (m <= 0 || n <= 0) return;
    st_small_in_place(w->kernel, w->es, m, n, &s, w->a + (i0 * s.ars + k0 * s.acs) * w->es,
                      w->b + (k0 * s.brs + j0) * w->es, c, w->alpha, beta);
}

static char *c_at(const work *w, int64_t i, int64_t j) { return w->p->c + (i * w->p->crs + j) * w->es; }

/* Where an operand's elements are contiguous along its steps: laid out, its rows are lines; else steps. */
static bool rows_are_lines(const st_side *s, int64_t n) { return s->ks == 1 || n == 1; }

/* The half of an operand, whole, at `to`. False where neither its lines nor its steps are contiguous, or there is no room. */
static bool lay_out(const work *w, const st_side *s, const char *src, int64_t n, char *to, int64_t ld)
{
    const st_rule *r = &s->rule;
    const bool lines = rows_are_lines(s, n);
    if ((!lines && s->ls != 1) || (size_t)(ld * ld * w->es + ST_TRI_SLACK) > ROOM) return false;
    w->tri->square(to, ld, src, lines ? s->ls : s->ks, n, (r->half == ST_HALF_LOWER) == lines, r->mirror,
                   r->unit);
    return true;
}

/* B whole at w->b, its rows being steps. A mirror image is as good the other way round, or conjugated. */
static bool lay_out_b(work *w, const st_side *s, const char *src, int64_t n, char *room, int64_t ld)
{
    const int64_t bytes = st_round_up(ld * ld * w->es + ST_TRI_SLACK, 64);
    const bool lines = rows_are_lines(s, n);
    w->b = room;
    w->shape.brs = ld;
    if (!lines || s->rule.mirror) {
        if (lines && s->rule.mirror == ST_MIRROR_HERMITIAN) w->pairs.conj ^= 2;
        return lay_out(w, s, src, n, room, ld);
    }
    if (2 * bytes > ROOM || !lay_out(w, s, src, n, room + bytes, ld)) return false;
    w->tri->turn(room, room + bytes, ld, n);
    return true;
}

/* B is a half: columns of C by pairs of vectors, in the order in which none is needed after it is written where C is A */
static void by_columns(const work *w, const st_rule *line)
{
    const st_small_structured *p = w->p;
    const int64_t step = line->mirror ? p->N : 2 * w->kernel->w[0].vl, tiles = st_ceil_div(p->N, step);
    for (int64_t q = 0; q < tiles; q++) {
        const int64_t j0 = (line->half == ST_HALF_LOWER ? tiles - 1 - q : q) * step,
                      n = st_min64(step, p->N - j0);
        /* lower: column j has steps up to j */
        const int64_t k0 = line->mirror || line->half == ST_HALF_LOWER ? 0 : j0,
                      k1 = line->mirror || line->half == ST_HALF_UPPER ? p->K : st_min64(p->K, j0 + n);
        rectangle(w, 0, p->M, j0, n, k0, k1 - k0, c_at(w, 0, j0), p->crs, w->beta);
    }
}

/* A is a half: rows of C by the height of a tile, likewise */
static void by_rows(const work *w, const st_rule *line)
{
    const st_small_structured *p = w->p;
    const st_small_width *width = &w->kernel->w[0];
    const int64_t vectors = st_min64(width->nv, st_ceil_div(p->N, width->vl)),
                  step = line->mirror ? p->M : width->rows[vectors - 1], tiles = st_ceil_div(p->M, step);
    for (int64_t q = 0; q < tiles; q++) {
        const int64_t i0 = (line->half == ST_HALF_LOWER ? tiles - 1 - q : q) * step,
                      m = st_min64(step, p->M - i0);
        const int64_t k0 = line->mirror || line->half == ST_HALF_LOWER ? 0 : i0,
                      k1 = line->mirror || line->half == ST_HALF_UPPER ? p->K : st_min64(p->K, i0 + m);
        rectangle(w, i0, m, 0, p->N, k0, k1 - k0, c_at(w, i0, 0), p->crs, w->beta);
    }
}

/* C is a triangle: columns by pairs of vectors */
static void triangle(const work *w)
{
    const st_small_structured *p = w->p;
    const bool lower = p->rule_c.half == ST_HALF_LOWER;
    const int64_t step = 2 * w->kernel->w[0].vl, parts = st_type_is_complex(p->type) ? 2 : 1;
    const bool hermitian = p->rule_c.mirror == ST_MIRROR_HERMITIAN;
    _Alignas(64) char own[32 * 32 * 8 + 64];
    for (int64_t j0 = 0; j0 < p->N; j0 += step) {
        const int64_t n = st_min64(step, p->N - j0), end = j0 + n;
        if (lower)
            rectangle(w, end, p->M - end, j0, n, 0, p->K, c_at(w, end, j0), p->crs, w->beta);
        else
            rectangle(w, 0, j0, j0, n, 0, p->K, c_at(w, 0, j0), p->crs, w->beta);
        rectangle(w, j0, n, j0, n, 0, p->K, own, step, 0);
        for (int64_t i = 0; i < n; i++) {
            char *row = c_at(w, j0 + i, j0), *diagonal = row + i * w->es + w->es / 2;
            const int64_t first = lower ? 0 : i, count = lower ? i + 1 : n - i;
            if (hermitian) memset(diagonal, 0, (size_t)(w->es / 2));
            w->tri->add(row + first * w->es, own + (i * step + first) * w->es, parts * count, w->beta);
            if (hermitian) memset(diagonal, 0, (size_t)(w->es / 2));
        }
    }
}

bool st_structured_small(const st_cpu *cpu, const st_small_structured *p, const double alpha[2],
                         const double beta[2])
{
    const st_rule *ra = &p->a.rule, *rb = &p->b.rule, *rc = &p->rule_c;
    const bool complex = st_type_is_complex(p->type);
    if (p->M > MOST || p->N > MOST || p->K > MOST || p->M * p->N * p->K == 0 || beta[1] != 0) return false;
    if (!ra->half + !rb->half + !rc->half != 2 || (ra->half && p->M != p->K) || (rb->half && p->N != p->K) ||
        (rc->half && p->M != p->N) || ra->offset || rb->offset || rc->offset)
        return false;
    _Alignas(64) char room[ROOM];
    work w = {.p = p, .kernel = st_small_kernel_of(cpu, p->type), .tri = st_side_tri(cpu->level, p->type)};
    w.es = (int64_t)strata_type_bits((strata_type)p->type) / 8;
    w.pairs = (st_small_pairs){alpha[1], beta[1], p->conj};
    w.alpha = alpha[0];
    w.beta = beta[0];
    w.a = p->a_data;
    w.b = p->b_data;
    w.shape =
        (st_small_shape){.ars = p->a.ls, .acs = p->a.ks, .brs = p->b.ks, .pairs = complex ? &w.pairs : NULL};
    const int64_t n = rb->half ? p->N : p->M, ld = st_round_up(n, w.tri->side);
    if (rb->half) {
        if (!lay_out_b(&w, &p->b, p->b_data, n, room, ld)) return false;
        by_columns(&w, rb);
        return true;
    }
    if (p->b.ls != 1 && p->N > 1) { /* its rows are not contiguous */
        const st_packed_kernel *packed = st_side_packed(cpu->level, p->type);
        const int64_t nr = (int64_t)packed->nv * packed->vl;
        if (ra->half || p->N > nr || nr * p->K * w.es + ST_PACK_SLACK > ROOM) return false;
        packed->pack_b(room, p->N, p->K, p->b_data, p->b.ls, p->b.ks);
        w.b = room;
        w.shape.brs = nr;
    }
    if (ra->half) {
        if (!lay_out(&w, &p->a, p->a_data, n, room, ld)) return false;
        w.a = room;
        w.shape.ars = rows_are_lines(&p->a, n) ? ld : 1;
        w.shape.acs = rows_are_lines(&p->a, n) ? 1 : ld;
        by_rows(&w, ra);
    } else {
        triangle(&w);
    }
    return true;
}
