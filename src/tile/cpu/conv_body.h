/* SPDX-License-Identifier: Apache-2.0 */
/* conv_body.h - the microkernel of windowed contractions as a template: mr rows x nv vectors of C stay in registers over all runs.
 *
 * Including file: VEC_F64, VEC_BITS, NV (2 or 4) and KERNEL(form), the name of a form's struct; it gets one struct a form with an
 * instance for every height and width. As in gemm_body.h everything is an always_inline body with constant mr and nv whose inner loops unroll
 * completely. Eight rows are the most whose addresses fit the integer registers beside the loop's own; with four vectors six
 * rows are already 24 accumulators. */
#include "tile/cpu/conv_kernel.h"
#include "tile/cpu/gemm_vec.h"
#include "tile/cpu/pack_body.h"
#if VEC_F64
#    define TI int64_t /* an integer as wide as an element */
#else
#    define TI int32_t
#endif

ST_INLINE void conv_step(const int mr, const int nv, V acc[ST_CONV_ROWS][NV], const T *const *a, int64_t x,
                         const T *b)
{
    if (mr * nv == 1) { /* clang leaves an array of one in memory when loops index it */
        acc[0][0] = v_fma(v_set1(a[0][x]), v_load(b), acc[0][0]);
        return;
    }
    V bv[NV];
    UNROLL
    for (int j = 0; j < nv; j++) bv[j] = v_load(b + j * VL);
    UNROLL
    for (int i = 0; i < mr; i++) {
        V y = v_set1(a[i][x]);
        UNROLL
        for (int j = 0; j < nv; j++) acc[i][j] = v_fma(y, bv[j], acc[i][j]);
    }
}

ST_INLINE void conv_store(const int mr, const int nv, V acc[ST_CONV_ROWS][NV], const st_conv_call *q)
{
    T *c = q->c;
    const int64_t ldc = q->ldc;
    const int part = q->last != VL;
    const MK mask = v_mask(part ? (int)q->last : VL - 1);
    const V va = v_set1((T)q->alpha);
    __asm__("" : "+r"(c)); /* or GCC computes all row addresses before the loop and spills them */
    if (q->beta == 0.0) {
        UNROLL
        for (int i = 0; i < mr; i++, c += ldc) UNROLL
        for (int j = 0; j < nv; j++) {
            V r = v_mul(va, acc[i][j]);
            if (j == nv - 1 && part)
                v_storem(c + j * VL, mask, r);
            else
                v_store(c + j * VL, r);
        }
    } else {
        const V vb = v_set1((T)q->beta);
        UNROLL
        for (int i = 0; i < mr; i++, c += ldc) UNROLL
        for (int j = 0; j < nv; j++) {
            V r = v_mul(va, acc[i][j]);
            if (j == nv - 1 && part)
                v_storem(c + j * VL, mask, v_fma(vb, v_loadm(mask, c + j * VL), r));
            else
                v_store(c + j * VL, v_fma(vb, v_load(c + j * VL), r));
        }
    }
    (void)mask;
}

ST_INLINE void conv_body(const int table, const int mr, const int nv, const st_conv_call *q)
{
    V acc[ST_CONV_ROWS][NV];
    UNROLL
    for (int i = 0; i < mr; i++) UNROLL
    for (int j = 0; j < nv; j++) acc[i][j] = v_zero();
    const int64_t ks = q->ks, ldb = q->ldb, ahead_step = q->ahead_step;
    const char *ahead = q->ahead;
    const void *const *rows = q->rows;
    const st_conv_run *run = q->run, *end = run + q->runs;
    for (; run < end; run++) {
        const T *a[ST_CONV_ROWS];
        if (table) {
            UNROLL
            for (int i = 0; i < mr; i++) a[i] = rows[i];
            rows += ST_CONV_ROWS;
        } else {
            UNROLL
            for (int i = 0; i < mr; i++) a[i] = (const T *)rows[i] + run->a;
        }
        const T *b = (const T *)q->b + run->b;
        int64_t x = 0, n = run->len;
        for (; n > 0; n--, x += ks, b += ldb, ahead += ahead_step) {
            __builtin_prefetch(ahead, 0, 2);
            conv_step(mr, nv, acc, a, x, b);
        }
    }
    conv_store(mr, nv, acc, q);
}

#define ONE(t, v, m) \
    static void conv_##t##_##v##_##m(const st_conv_call *q) { conv_body(t, m, v, q); }
#define SIX(t, v) ONE(t, v, 1) ONE(t, v, 2) ONE(t, v, 3) ONE(t, v, 4) ONE(t, v, 5) ONE(t, v, 6)
#define EIGHT(t, v) SIX(t, v) ONE(t, v, 7) ONE(t, v, 8)
#define NAMES6(t, v)                                                                      \
    NULL, conv_##t##_##v##_1, conv_##t##_##v##_2, conv_##t##_##v##_3, conv_##t##_##v##_4, \
        conv_##t##_##v##_5, conv_##t##_##v##_6
#define NAMES8(t, v) NAMES6(t, v), conv_##t##_##v##_7, conv_##t##_##v##_8

#if NV == 4
EIGHT(0, 1)
EIGHT(0, 2)
EIGHT(0, 3)
SIX(0, 4)
EIGHT(1, 1)
EIGHT(1, 2)
EIGHT(1, 3)
SIX(1, 4)
#    define ROWS          \
        {                 \
            0, 8, 8, 8, 6 \
        }
#    define TABLE(t)                                                              \
        {                                                                         \
            {0}, {NAMES8(t, 1)}, {NAMES8(t, 2)}, {NAMES8(t, 3)}, { NAMES6(t, 4) } \
        }
#else
EIGHT(0, 1)
SIX(0, 2)
EIGHT(1, 1)
SIX(1, 2)
#    define ROWS          \
        {                 \
            0, 8, 6, 0, 0 \
        }
#    define TABLE(t)                              \
        {                                         \
            {0}, {NAMES8(t, 1)}, { NAMES6(t, 2) } \
        }
#endif

ST_INLINE void dots_step(const int mr, const int px, V acc[ST_CONV_ROWS][ST_CONV_DOTS], const T *const *a,
                         const T *const *x, int64_t i, const int part, MK mask)
{
    V y[ST_CONV_DOTS];
    UNROLL
    for (int j = 0; j < px; j++) y[j] = part ? v_loadm(mask, x[j] + i) : v_load(x[j] + i);
    UNROLL
    for (int r = 0; r < mr; r++) {
        const V w = part ? v_loadm(mask, a[r] + i) : v_load(a[r] + i);
        UNROLL
        for (int j = 0; j < px; j++) acc[r][j] = v_fma(w, y[j], acc[r][j]);
    }
    (void)mask;
}

/* rows r0 .. r0 + mr - 1 */
ST_INLINE void dots_rows(const int r0, const int mr, const int px, const st_conv_dots *q)
{
    V acc[ST_CONV_ROWS][ST_CONV_DOTS];
    UNROLL
    for (int r = 0; r < mr; r++) UNROLL
    for (int j = 0; j < px; j++) acc[r][j] = v_zero();
    for (const st_conv_run *run = q->run, *end = run + q->runs; run < end; run++) {
        const T *a[ST_CONV_ROWS], *x[ST_CONV_DOTS];
        UNROLL
        for (int r = 0; r < mr; r++) a[r] = (const T *)q->rows[r0 + r] + run->a;
        UNROLL
        for (int j = 0; j < px; j++) x[j] = (const T *)q->x[j] + run->b;
        const MK all = v_mask(VL - 1);
        int64_t i = 0;
        for (; i + VL <= run->len; i += VL) dots_step(mr, px, acc, a, x, i, 0, all);
        if (i < run->len) dots_step(mr, px, acc, a, x, i, 1, v_mask((int)(run->len - i)));
        (void)all;
    }
    const T alpha = (T)q->alpha, beta = (T)q->beta;
    T *c = (T *)q->c + r0 * q->ldc;
    UNROLL
    for (int r = 0; r < mr; r++, c += q->ldc) UNROLL
    for (int j = 0; j < px; j++) {
        const T sum = alpha * v_sum(acc[r][j]);
        c[j] = beta == 0 ? sum : sum + beta * c[j];
    }
}
/* the tallest tiles in two halves: with all their accumulators at once compilers spill some */
ST_INLINE void dots_body(const int mr, const int px, const st_conv_dots *q)
{
    if (mr * px > (VEC_BITS < 512 ? 8 : 14)) {
        dots_rows(0, mr / 2, px, q);
        dots_rows(mr / 2, mr - mr / 2, px, q);
    } else {
        dots_rows(0, mr, px, q);
    }
}
#define DOTS(px, m) \
    static void dots_##px##_##m(const st_conv_dots *q) { dots_body(m, px, q); }
#define DOTS8(px) \
    DOTS(px, 1) DOTS(px, 2) DOTS(px, 3) DOTS(px, 4) DOTS(px, 5) DOTS(px, 6) DOTS(px, 7) DOTS(px, 8)
DOTS8(1)
DOTS8(2)
#define DOTS_NAMES(px)                                                                                  \
    {                                                                                                   \
        NULL, dots_##px##_1, dots_##px##_2, dots_##px##_3, dots_##px##_4, dots_##px##_5, dots_##px##_6, \
            dots_##px##_7, dots_##px##_8                                                                \
    }

/* Square blocks of one vector a side are transposed in registers (pack_body.h has the networks), 64 steps at a time, so that the
 * part of the panel that is written stays in the first-level cache while the groups of lanes pass. */
#if defined(__AVX512F__) && VEC_F64
#    define turn_block transpose_pd8
#elif defined(__AVX512F__)
#    define turn_block transpose_ps16
#elif defined(__AVX2__) && VEC_F64
#    define turn_block transpose_pd4
#elif defined(__AVX2__)
#    define turn_block transpose_ps8
#else
#    define turn_block transpose_portable
#endif

static void turn(void *dst, int64_t ldd, const void *const *line, int64_t w, int64_t k)
{
    enum { SLAB = 64 };
    for (int64_t p0 = 0; p0 < k; p0 += SLAB) {
        const int64_t p1 = p0 + SLAB < k ? p0 + SLAB : k;
        for (int64_t i = 0; i < w; i += VL) {
            const T *s[VL];
            for (int x = 0; x < VL; x++)
                s[x] = line[i + x < w ? i + x : i]; /* lanes past the last: any numbers, set below */
            const int64_t n = w - i < VL ? w - i : VL;
            T *d = (T *)dst + p0 * ldd + i;
            for (int64_t p = p0; p < p1; p += VL, d += VL * ldd) {
                V r[VL];
                if (p + VL <= p1) {
                    UNROLL
                    for (int x = 0; x < VL; x++) {
                        __builtin_prefetch(s[x] + p + SLAB); /* short streams that no hardware follows */
                        r[x] = v_load(s[x] + p);
                    }
                } else {
                    const MK mask = v_mask((int)(p1 - p));
                    UNROLL
                    for (int x = 0; x < VL; x++) r[x] = v_loadm(mask, s[x] + p);
                }
                if (n < VL) {
                    UNROLL
                    for (int x = 1; x < VL; x++)
                        if (x >= n) r[x] = v_zero();
                }
                turn_block(r);
                const int64_t rows = p1 - p < VL ? p1 - p : VL;
                if (rows == VL) {
                    UNROLL
                    for (int x = 0; x < VL; x++) v_store(d + x * ldd, r[x]);
                } else {
                    for (int64_t x = 0; x < rows; x++) v_store(d + x * ldd, r[x]);
                }
            }
        }
    }
}

/* px pixels x all channels; part: fewer than a vector of channels is left */
ST_INLINE void lanes_block(const int px, const int nv, const int part, const st_conv_lanes *q, int64_t at)
{
    V acc[ST_CONV_PIXELS][2];
    const MK mask = v_mask(part ? (int)(q->lanes - at) : VL - 1);
    UNROLL
    for (int i = 0; i < px; i++) UNROLL
    for (int j = 0; j < nv; j++) acc[i][j] = v_zero();
    for (int64_t t = 0; t < q->taps; t++) {
        const T *w = (const T *)q->w + q->wo[t] + at;
        V y[2];
        UNROLL
        for (int j = 0; j < nv; j++) y[j] = part ? v_loadm(mask, w + j * VL) : v_load(w + j * VL);
        UNROLL
        for (int i = 0; i < px; i++) {
            const T *x = (const T *)q->row[i] + q->xo[t] + at;
            UNROLL
            for (int j = 0; j < nv; j++)
                acc[i][j] = v_fma(part ? v_loadm(mask, x + j * VL) : v_load(x + j * VL), y[j], acc[i][j]);
        }
    }
    const V va = v_set1((T)q->alpha), vb = v_set1((T)q->beta);
    UNROLL
    for (int i = 0; i < px; i++) {
        T *c = (T *)q->c[i] + at;
        UNROLL
        for (int j = 0; j < nv; j++) {
            V r = v_mul(va, acc[i][j]);
            if (part) {
                if (q->beta != 0.0) r = v_fma(vb, v_loadm(mask, c), r);
                v_storem(c, mask, r);
            } else {
                if (q->beta != 0.0) r = v_fma(vb, v_load(c + j * VL), r);
                v_store(c + j * VL, r);
            }
        }
    }
    (void)mask;
}
ST_INLINE void lanes_body(const int px, const st_conv_lanes *q)
{
    int64_t at = 0;
    for (; at + 2 * VL <= q->lanes; at += 2 * VL) lanes_block(px, 2, 0, q, at);
    if (at + VL <= q->lanes) {
        lanes_block(px, 1, 0, q, at);
        at += VL;
    }
    if (at < q->lanes) lanes_block(px, 1, 1, q, at);
}
#define LANES(px) \
    static void lanes_##px(const st_conv_lanes *q) { lanes_body(px, q); }
LANES(1)
LANES(2)
LANES(3)
LANES(4)

/* lane l of the result: x[pick[l]] */
#if defined(__AVX512F__) && VEC_F64
#    define v_pick(x, pick) _mm512_permutexvar_pd(_mm512_loadu_si512(pick), x)
#elif defined(__AVX512F__)
#    define v_pick(x, pick) _mm512_permutexvar_ps(_mm512_loadu_si512(pick), x)
#elif defined(__AVX2__) && VEC_F64
/* there is no such instruction for f64: halves of numbers, 2i and 2i + 1 */
ST_INLINE V pick_halves(V x, const int64_t *pick)
{
    const __m256i i = _mm256_slli_epi64(_mm256_loadu_si256((const __m256i *)pick), 1),
                  halves =
                      _mm256_or_si256(i, _mm256_slli_epi64(_mm256_add_epi64(i, _mm256_set1_epi64x(1)), 32));
    return _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(x), halves));
}
#    define v_pick(x, pick) pick_halves(x, pick)
#elif defined(__AVX2__)
#    define v_pick(x, pick) _mm256_permutevar8x32_ps(x, _mm256_loadu_si256((const __m256i *)(pick)))
#else
ST_INLINE V pick_each(V x, const TI *pick)
{
    T from[VL], to[VL];
    v_store(from, x);
    for (int i = 0; i < VL; i++) to[i] = from[pick[i]];
    return v_load(to);
}
#    define v_pick(x, pick) pick_each(x, pick)
#endif

/* px pixels x nv vectors of filters; part: the last vector of C has fewer */
ST_INLINE void groups_block(const int px, const int nv, const int part, const st_conv_groups *g, int64_t at)
{
    const st_conv_lanes *q = &g->lanes;
    const int64_t a_vector = VL / g->out * g->in, first = at / g->out * g->in;
    const int lanes = part ? (int)(q->lanes - at) : VL;
    /* a vector's channels and no more, which may be the last there are */
    const MK in = v_mask((int)(part ? lanes / g->out * g->in : a_vector)), mask = v_mask(lanes);
    V acc[ST_CONV_PIXELS][2];
    UNROLL
    for (int i = 0; i < px; i++) UNROLL
    for (int j = 0; j < nv; j++) acc[i][j] = v_zero();
    for (int64_t t = 0; t < q->taps; t++) {
        V x[ST_CONV_PIXELS][2];
        UNROLL
        for (int i = 0; i < px; i++) {
            const T *row = (const T *)q->row[i] + q->xo[t] + first;
            UNROLL
            for (int j = 0; j < nv; j++) x[i][j] = v_loadm(in, row + j * a_vector);
        }
        const T *w = (const T *)q->w + q->wo[t] * g->pitch + at;
        const TI *pick = g->pick;
        for (int64_t e = 0; e < g->in; e++, w += g->pitch, pick += VL) {
            UNROLL
            for (int j = 0; j < nv; j++) {
                const V y = v_load(w + j * VL);
                UNROLL
                for (int i = 0; i < px; i++) acc[i][j] = v_fma(v_pick(x[i][j], pick), y, acc[i][j]);
            }
        }
    }
    const V va = v_set1((T)q->alpha), vb = v_set1((T)q->beta);
    UNROLL
    for (int i = 0; i < px; i++) {
        T *c = (T *)q->c[i] + at;
        UNROLL
        for (int j = 0; j < nv; j++) {
            V r = v_mul(va, acc[i][j]);
            if (part) {
                if (q->beta != 0.0) r = v_fma(vb, v_loadm(mask, c), r);
                v_storem(c, mask, r);
            } else {
                if (q->beta != 0.0) r = v_fma(vb, v_load(c + j * VL), r);
                v_store(c + j * VL, r);
            }
        }
    }
    (void)mask;
}
ST_INLINE void groups_body(const int px, const st_conv_groups *g)
{
    const int64_t lanes = g->lanes.lanes;
    int64_t at = 0;
    if (VEC_BITS == 512) /* sixteen registers hold one vector a pixel */
        for (; at + 2 * VL <= lanes; at += 2 * VL) groups_block(px, 2, 0, g, at);
    for (; at + VL <= lanes; at += VL) groups_block(px, 1, 0, g, at);
    if (at < lanes) groups_block(px, 1, 1, g, at);
}
#define GROUPS(px) \
    static void groups_##px(const st_conv_groups *q) { groups_body(px, q); }
GROUPS(1)
GROUPS(2)
GROUPS(3)
GROUPS(4)

#define FORM(form)                                                                   \
    const st_conv_kernel KERNEL(form) = {VL,                                         \
                                         NV,                                         \
                                         ROWS,                                       \
                                         {TABLE(0), TABLE(1)},                       \
                                         turn,                                       \
                                         {{0}, DOTS_NAMES(1), DOTS_NAMES(2)},        \
                                         {NULL, lanes_1, lanes_2, lanes_3, lanes_4}, \
                                         {NULL, groups_1, groups_2, groups_3, groups_4}};
FORM(direct) FORM(taps) FORM(panel) FORM(paddirect) FORM(padtaps) FORM(depthwise)
