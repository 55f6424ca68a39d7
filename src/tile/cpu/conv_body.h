/* SPDX-License-Identifier: Apache-2.0 */
/* conv_body.h - the microkernel of windowed contractions as a template: mr rows x nv vectors of C stay in registers over all runs.
 *
 * Including file: VEC_F64, VEC_BITS, NV (2 or 4) and KERNEL(form), the name of a form's struct; it gets one struct a form with an
 * instance for every height and width. As in gemm_body.h everything is an always_inline body with constant mr and nv whose inner loops unroll
 * completely. Eight rows are the most whose addresses fit the integer registers beside the loop's own; with four vectors six
 * rows are already 24 accumulators. */
#include "tile/cpu/conv_kernel.h"
#include "tile/cpu/gemm_vec.h"

ST_INLINE void conv_step(const int mr, const int nv, V acc[ST_CONV_ROWS][NV], const T *const *a, int64_t x,
                         const T *b)
{
    V bv[NV];
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) bv[j] = v_load(b + j * VL);
#pragma GCC unroll 8
    for (int i = 0; i < mr; i++) {
        V y = v_set1(a[i][x]);
#pragma GCC unroll 4
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
#pragma GCC unroll 8
        for (int i = 0; i < mr; i++, c += ldc)
#pragma GCC unroll 4
            for (int j = 0; j < nv; j++) {
                V r = v_mul(va, acc[i][j]);
                if (j == nv - 1 && part)
                    v_storem(c + j * VL, mask, r);
                else
                    v_store(c + j * VL, r);
            }
    } else {
        const V vb = v_set1((T)q->beta);
#pragma GCC unroll 8
        for (int i = 0; i < mr; i++, c += ldc)
#pragma GCC unroll 4
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
#pragma GCC unroll 8
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) acc[i][j] = v_zero();
    const int64_t ks = q->ks, ldb = q->ldb;
    const void *const *rows = q->rows;
    const st_conv_run *run = q->run, *end = run + q->runs;
    for (; run < end; run++) {
        const T *a[ST_CONV_ROWS];
        if (table) {
#pragma GCC unroll 8
            for (int i = 0; i < mr; i++) a[i] = rows[i];
            rows += ST_CONV_ROWS;
        } else {
#pragma GCC unroll 8
            for (int i = 0; i < mr; i++) a[i] = (const T *)rows[i] + run->a;
        }
        const T *b = (const T *)q->b + run->b;
        int64_t x = 0;
        for (int64_t n = run->len; n > 0; n--, x += ks, b += ldb) conv_step(mr, nv, acc, a, x, b);
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
EIGHT(0, 2) EIGHT(0, 3) SIX(0, 4) EIGHT(1, 1) EIGHT(1, 2) EIGHT(1, 3) SIX(1, 4)
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
SIX(0, 2) EIGHT(1, 1) SIX(1, 2)
#    define ROWS          \
        {                 \
            0, 8, 6, 0, 0 \
        }
#    define TABLE(t)                              \
        {                                         \
            {0}, {NAMES8(t, 1)}, { NAMES6(t, 2) } \
        }
#endif

/* Square blocks of one 16-byte vector are transposed in registers: they compile for every instruction set and leave a copy that
 * costs half a cycle an element. */
#if VEC_F64
    typedef double turn_v __attribute__((vector_size(16)));
typedef double turn_u __attribute__((vector_size(16), aligned(8), may_alias));
enum { TURN = 2 };
ST_INLINE void turn_block(turn_v r[TURN])
{
    turn_v a = __builtin_shufflevector(r[0], r[1], 0, 2), b = __builtin_shufflevector(r[0], r[1], 1, 3);
    r[0] = a;
    r[1] = b;
}
#else
    typedef float turn_v __attribute__((vector_size(16)));
typedef float turn_u __attribute__((vector_size(16), aligned(4), may_alias));
enum { TURN = 4 };
ST_INLINE void turn_block(turn_v r[TURN])
{
    turn_v a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
           b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    turn_v c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5),
           d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
#endif

static void turn(void *dst, int64_t ldd, const void *const *line, int64_t w, int64_t k)
{
    T *d = dst;
    for (int64_t i = 0; i < w; i += TURN) {
        int64_t p = 0, n = w - i < TURN ? w - i : TURN;
        bool all = n == TURN;
        for (int64_t x = i; x < i + n; x++) all = all && line[x];
        if (all)
            for (; p + TURN <= k; p += TURN) {
                turn_v r[TURN];
#pragma GCC unroll 4
                for (int x = 0; x < TURN; x++) r[x] = *(const turn_u *)((const T *)line[i + x] + p);
                turn_block(r);
#pragma GCC unroll 4
                for (int x = 0; x < TURN; x++) *(turn_u *)(d + (p + x) * ldd + i) = r[x];
            }
        for (int64_t x = i; x < i + n; x++) {
            const T *s = line[x];
            for (int64_t y = p; y < k; y++) d[y * ldd + x] = s ? s[y] : 0;
        }
    }
}

#define FORM(form) const st_conv_kernel KERNEL(form) = {VL, NV, ROWS, {TABLE(0), TABLE(1)}, turn};
FORM(direct)
FORM(taps)
FORM(panel)
