/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_pack.c - the two ends of a packed product: parts of A and B into panels, and sums that were kept beside C to C.
 *
 * Operands with one axis of lines and one of k are one call of the kernel's packing; of lists of axes, every stretch that lies evenly. */
#include "tile/gemm_packed.h"
#include <string.h>

/* steps of k that are gathered at a time (a multiple of every unit) */
enum { GATHER = 16, MOST_LINES = ST_UKR_MAX_NV * 16, MOST_BYTES = 16 };

/* Lines of one panel whose offsets or steps do not run evenly: first to a place where they do. */
static void pack_scattered(const st_packed_kernel *kr, st_pack_fn fn, int64_t width, int64_t size, char *dst,
                           int64_t w, const char *src, const st_axes *lines, int which, int64_t i0,
                           const st_axes *k, int64_t k0, int64_t kc)
{
    int64_t off[MOST_LINES];
    _Alignas(64) char even[MOST_LINES * GATHER * MOST_BYTES];
    for (int64_t i = 0; i < w; i++) off[i] = st_axes_offset(lines, which, i0 + i);
    for (int64_t q = 0; q < kc; q += GATHER) {
        const int64_t steps = st_min64(GATHER, kc - q);
        for (int64_t p = 0; p < steps; p++) {
            const int64_t at = st_axes_offset(k, which, k0 + q + p);
            char *d = even + p * w * size;
            for (int64_t i = 0; i < w; i++, d += size) {
                const char *s = src + (off[i] + at) * size;
                if (size == 4)
                    memcpy(d, s, 4);
                else if (size == 8)
                    memcpy(d, s, 8);
                else
                    memcpy(d, s, (size_t)size);
            }
        }
        fn(dst + q / kr->unit * width * kr->size, w, steps, even, 1, w);
    }
}

static void pack_panel(const st_packed_kernel *kr, st_pack_fn fn, int64_t width, int64_t size, char *dst,
                       int64_t w, const char *src, const st_axes *lines, int which, int64_t i0,
                       const st_axes *k, int64_t k0, int64_t kc)
{
    const int64_t ls = st_axes_inner(lines, which), ks = st_axes_inner(k, which);
    if (st_axes_run(lines, i0) < w || (kr->unit > 1 && st_axes_run(k, k0) < kc)) {
        pack_scattered(kr, fn, width, size, dst, w, src, lines, which, i0, k, k0, kc);
        return;
    }
    const int64_t off = st_axes_offset(lines, which, i0);
    for (int64_t p = 0; p < kc;) {
        const int64_t run = st_min64(st_axes_run(k, k0 + p), kc - p);
        fn(dst + p / kr->unit * width * kr->size, w, run,
           src + (off + st_axes_offset(k, which, k0 + p)) * size, ls, ks);
        p += run;
    }
}

void st_packed_pack(const st_packed_plan *p, int which, char *dst, const char *src, int64_t i0, int64_t w,
                    int64_t k0, int64_t kc)
{
    const st_gemm *g = &p->g;
    const st_packed_kernel *kr = p->kernel;
    const bool a = which == 'a';
    const st_axes *lines = a ? &g->m : &g->n, *k = &g->k;
    const int64_t size = a ? g->ea : g->eb, width = a ? kr->mr : (int64_t)kr->nv * kr->vl;
    const st_pack_fn fn = a ? p->pack_a : p->pack_b;
    if (lines->count <= 1 && k->count <= 1 && kr->head == 0) {
        fn(dst, w, kc, src + (i0 * st_axes_inner(lines, which) + k0 * st_axes_inner(k, which)) * size,
           st_axes_inner(lines, which), st_axes_inner(k, which));
        return;
    }
    /* sum of a b = sum of (a + ma)(b - mb) + mb * sum of (a + ma) - ma * sum of (b - mb) - ma mb k */
    const uint32_t ma = (uint32_t)p->move_a, mb = (uint32_t)p->move_b;
    for (int64_t i = 0; i < w; i += width, dst += st_packed_bytes(kr, width, kc)) {
        pack_panel(kr, fn, width, size, dst + width * kr->head, st_min64(width, w - i), src, lines, which,
                   i0 + i, k, k0, kc);
        if (kr->head)
            (a ? kr->head_a : kr->head_b)(dst, st_ceil_div(kc, kr->unit), (int32_t)(a ? mb : 0 - ma),
                                          (int32_t)(a ? 0 : 0 - ma * mb * (uint32_t)kc));
    }
}

/* ---- sums to C ----------------------------------------------------------------------------------------------------- */
enum { CHUNK = 256 };

/* n elements of a row: C := what the sums say. Sums in f32 have alpha in them already; integers are exact, and leave f64 once. */
static void finish_piece(const st_packed_job *j, const void *sums, char *c, int64_t cs, int64_t n)
{
    const int type = j->p->g.type, tc = j->p->g.tc;
    const double alpha = j->f.alpha, beta = j->f.beta;
    union {
        float f[CHUNK];
        double d[CHUNK];
    } x, y;
    if (beta == 0 && (type == STRATA_F32 || alpha == 1)) {
        st_convert(type, sums, 1, tc, c, cs, n);
        return;
    }
    if (type == STRATA_F32) {
        const float *s = sums;
        st_convert(tc, c, cs, STRATA_F32, y.f, 1, n);
        for (int64_t i = 0; i < n; i++) x.f[i] = s[i] + (float)beta * y.f[i];
        st_convert(STRATA_F32, x.f, 1, tc, c, cs, n);
        return;
    }
    st_convert(type, sums, 1, STRATA_F64, x.d, 1, n);
    if (beta != 0) st_convert(tc, c, cs, STRATA_F64, y.d, 1, n);
    for (int64_t i = 0; i < n; i++) x.d[i] = beta == 0 ? alpha * x.d[i] : alpha * x.d[i] + beta * y.d[i];
    st_convert(STRATA_F64, x.d, 1, tc, c, cs, n);
}

/* The same for an epilogue: the value that it sees as acc, in f32, over the sums. */
static void value_piece(const st_packed_job *j, void *sums, const char *c, int64_t cs, int64_t n)
{
    const int type = j->p->g.type, tc = j->p->g.tc;
    const double alpha = j->f.alpha, beta = j->f.beta;
    float *s = sums;
    double x[CHUNK], y[CHUNK];
    if (beta == 0 && type == STRATA_F32) return;
    st_convert(type, sums, 1, STRATA_F64, x, 1, n);
    if (beta != 0) st_convert(tc, c, cs, STRATA_F64, y, 1, n);
    for (int64_t i = 0; i < n; i++) {
        double v = type == STRATA_F32 ? x[i] : alpha * x[i];
        s[i] = (float)(beta == 0 ? v : v + beta * y[i]);
    }
}

void st_packed_finish(const st_packed_job *j, void *sums, int64_t ld, char *c, int64_t item, int64_t i0,
                      int64_t rows, int64_t j0, int64_t cols, void *scratch)
{
    const st_packed_plan *p = j->p;
    const st_gemm *g = &p->g;
    const int64_t cs = st_axes_inner(&g->n, 'c');
    const bool exact = g->type == STRATA_I32 && j->f.alpha == 1 && j->f.beta == 0;
    for (int64_t i = 0; i < rows && !(p->head.expr && exact); i++) {
        char *row = c + st_axes_offset(&g->m, 'c', i0 + i) * g->ec;
        char *s = (char *)sums + i * ld * g->es;
        for (int64_t q = 0; q < cols;) {
            int64_t n = st_min64(st_min64(st_axes_run(&g->n, j0 + q), cols - q), CHUNK);
            char *at = row + st_axes_offset(&g->n, 'c', j0 + q) * g->ec;
            if (p->head.expr)
                value_piece(j, s + q * g->es, at, cs, n);
            else
                finish_piece(j, s + q * g->es, at, cs, n);
            q += n;
        }
    }
    if (!p->head.expr) return;
    const st_epi_acc acc = {sums, exact ? STRATA_I32 : STRATA_F32, ld, 1};
    st_epilogue_run(p->head.expr, &g->flat, j->data, &acc, item, i0, rows, j0, cols, scratch);
}
