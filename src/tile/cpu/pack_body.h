/* SPDX-License-Identifier: Apache-2.0 */
/* pack_body.h - copies lines (rows of A, columns of B) into k-major panels of W lines: dst[p * W + i].
 *
 * Three ways, chosen by the strides: lines contiguous along k are transposed in registers; lines that lie side by side are
 * copied row by row; anything else is gathered. Stores of narrow panels overlap: a full vector is stored and the next step
 * overwrites its tail, so that W need not be a power of two; the buffer has ST_PACK_SLACK bytes for the last one. Lanes past
 * the last line are zero. Needs gemm_vec.h. */
ST_INLINE void pack_gather(const int W, T *restrict dst, int64_t w, int64_t k, const T *src, int64_t ls,
                           int64_t ks)
{
    for (int64_t p = 0; p < k; p++, dst += W) {
        const T *s = src + p * ks;
        for (int64_t i = 0; i < w; i++) dst[i] = s[i * ls];
        for (int64_t i = w; i < W; i++) dst[i] = 0;
    }
}

#if defined(__AVX2__) && !VEC_F64
/* r[i] = row i becomes r[i] = column i; 8 x 8 */
ST_INLINE void transpose_ps8(__m256 r[8])
{
    __m256 t[8], u[8];
    UNROLL
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
        u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[4 + i], 0x20);
        r[4 + i] = _mm256_permute2f128_ps(u[i], u[4 + i], 0x31);
    }
}
#endif

#if defined(__AVX512F__) && !VEC_F64
ST_INLINE void transpose_ps16(__m512 r[16])
{
    __m512 t[16], u[16];
    UNROLL
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        u[4 * i] = _mm512_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        u[4 * i + 1] = _mm512_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
        u[4 * i + 2] = _mm512_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        u[4 * i + 3] = _mm512_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
    }
    /* u[4g + c]: rows 4g..4g+3 of columns c, 4 + c, 8 + c, 12 + c in the four 128-bit lanes */
    UNROLL
    for (int i = 0; i < 2; i++) UNROLL
    for (int j = 0; j < 4; j++) {
        t[8 * i + j] = _mm512_shuffle_f32x4(u[8 * i + j], u[8 * i + 4 + j], 0x88);
        t[8 * i + 4 + j] = _mm512_shuffle_f32x4(u[8 * i + j], u[8 * i + 4 + j], 0xdd);
    }
    UNROLL
    for (int j = 0; j < 8; j++) {
        r[j] = _mm512_shuffle_f32x4(t[j], t[8 + j], 0x88);
        r[8 + j] = _mm512_shuffle_f32x4(t[j], t[8 + j], 0xdd);
    }
}
#    define PACK_NAME pack_transposed_a
#    define TR 8
#    define TV __m256
#    define tv_load(p) _mm256_loadu_ps(p)
#    define tv_store(p, v) _mm256_storeu_ps(p, v)
#    define tv_zero() _mm256_setzero_ps()
#    define tv_transpose(r) transpose_ps8(r)
#    include "tile/cpu/pack_transpose.h"
#    define PACK_NAME pack_transposed
#    define TR 16
#    define TV __m512
#    define tv_load(p) _mm512_loadu_ps(p)
#    define tv_store(p, v) _mm512_storeu_ps(p, v)
#    define tv_zero() _mm512_setzero_ps()
#    define tv_transpose(r) transpose_ps16(r)
#    include "tile/cpu/pack_transpose.h"

#elif defined(__AVX512F__)
ST_INLINE void transpose_pd8(__m512d r[8])
{
    __m512d t[8], u[8];
    UNROLL
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm512_unpacklo_pd(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_pd(r[2 * i], r[2 * i + 1]);
    }
    UNROLL
    for (int i = 0; i < 2; i++) UNROLL
    for (int j = 0; j < 2; j++) {
        u[4 * i + j] = _mm512_shuffle_f64x2(t[4 * i + j], t[4 * i + 2 + j], 0x88);
        u[4 * i + 2 + j] = _mm512_shuffle_f64x2(t[4 * i + j], t[4 * i + 2 + j], 0xdd);
    }
    UNROLL
    for (int j = 0; j < 4; j++) {
        r[j] = _mm512_shuffle_f64x2(u[j], u[4 + j], 0x88);
        r[4 + j] = _mm512_shuffle_f64x2(u[j], u[4 + j], 0xdd);
    }
}
#    define PACK_NAME pack_transposed
#    define TR 8
#    define TV __m512d
#    define tv_load(p) _mm512_loadu_pd(p)
#    define tv_store(p, v) _mm512_storeu_pd(p, v)
#    define tv_zero() _mm512_setzero_pd()
#    define tv_transpose(r) transpose_pd8(r)
#    include "tile/cpu/pack_transpose.h"
#    define pack_transposed_a pack_transposed

#elif defined(__AVX2__) && !VEC_F64
#    define PACK_NAME pack_transposed
#    define TR 8
#    define TV __m256
#    define tv_load(p) _mm256_loadu_ps(p)
#    define tv_store(p, v) _mm256_storeu_ps(p, v)
#    define tv_zero() _mm256_setzero_ps()
#    define tv_transpose(r) transpose_ps8(r)
#    include "tile/cpu/pack_transpose.h"
#    define pack_transposed_a pack_transposed

#elif defined(__AVX2__)
ST_INLINE void transpose_pd4(__m256d r[4])
{
    __m256d a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    __m256d c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(a, c, 0x20);
    r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31);
    r[3] = _mm256_permute2f128_pd(b, d, 0x31);
}
#    define PACK_NAME pack_transposed
#    define TR 4
#    define TV __m256d
#    define tv_load(p) _mm256_loadu_pd(p)
#    define tv_store(p, v) _mm256_storeu_pd(p, v)
#    define tv_zero() _mm256_setzero_pd()
#    define tv_transpose(r) transpose_pd4(r)
#    include "tile/cpu/pack_transpose.h"
#    define pack_transposed_a pack_transposed

#elif !VEC_F64
ST_INLINE void transpose_portable(V r[4])
{
    V a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
      b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    V c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5),
      d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
#    define PACK_NAME pack_transposed
#    define TR 4
#    define TV V
#    define tv_load(p) v_load(p)
#    define tv_store(p, v) v_store(p, v)
#    define tv_zero() v_zero()
#    define tv_transpose(r) transpose_portable(r)
#    include "tile/cpu/pack_transpose.h"
#    define pack_transposed_a pack_transposed

#else
ST_INLINE void transpose_portable(V r[2])
{
    V a = r[0];
    r[0] = __builtin_shufflevector(a, r[1], 0, 2);
    r[1] = __builtin_shufflevector(a, r[1], 1, 3);
}
#    define PACK_NAME pack_transposed
#    define TR 2
#    define TV V
#    define tv_load(p) v_load(p)
#    define tv_store(p, v) v_store(p, v)
#    define tv_zero() v_zero()
#    define tv_transpose(r) transpose_portable(r)
#    include "tile/cpu/pack_transpose.h"
#    define pack_transposed_a pack_transposed
#endif

/* One panel from steps whose lines lie side by side, W not a multiple of a vector: steps q0..q1 of k. */
ST_INLINE void pack_copied_narrow(const int W, T *restrict d, int64_t w, int64_t k, int64_t q0, int64_t q1,
                                  const T *src, int64_t ks)
{
    const int over = (W + VL - 1) / VL * VL;
    int64_t inside = k - (over + W - 1) / W, f = q1 < inside ? q1 : inside, p = q0;
    if (w >= over) {
        for (; p < f; p++) UNROLL
        for (int x = 0; x < W; x += VL) v_store(d + p * W + x, v_load(src + p * ks + x));
    } else {
        MK mask[4];
        UNROLL
        for (int x = 0; x < W; x += VL) mask[x / VL] = v_mask((int)(w - x < 0 ? 0 : w - x > VL ? VL : w - x));
        for (; p < f; p++) UNROLL
        for (int x = 0; x < W; x += VL) v_store(d + p * W + x, v_loadm(mask[x / VL], src + p * ks + x));
    }
    if (p < q1) pack_gather(W, d + p * W, w < W ? w : W, q1 - p, src + p * ks, 1, ks);
}

ST_INLINE void pack_copied(const int W, T *restrict dst, int64_t w, int64_t k, const T *src, int64_t ks)
{
    if (W % VL != 0) {
        /* blocks of 16 steps, so that the source lines are still in L1 when the next panel wants the rest of them */
        for (int64_t q = 0; q < k; q += 16)
            for (int64_t j = 0; j < w; j += W)
                pack_copied_narrow(W, dst + j * k, w - j, k, q, k - q < 16 ? k : q + 16, src + j, ks);
        return;
    }
    for (int64_t p = 0; p < k; p++) {
        const T *s = src + p * ks;
        T *d = dst + p * W;
        int64_t j = 0;
        for (; j + W <= w; j += W, d += k * W) UNROLL
        for (int x = 0; x < W; x += VL) {
            __builtin_prefetch(s + 4 * ks + j + x);
            v_store(d + x, v_load(s + j + x));
        }
        if (j < w)
            for (int x = 0; x < W; x += VL) {
                int64_t n = w - j - x;
                if (n >= VL)
                    v_store(d + x, v_load(s + j + x));
                else if (n > 0)
                    v_store(d + x, v_loadm(v_mask((int)n), s + j + x));
                else
                    v_store(d + x, v_zero());
            }
    }
}

ST_INLINE void pack_lines(const int W, void *dst, int64_t w, int64_t k, const void *src, int64_t ls,
                          int64_t ks)
{
    T *d = dst;
    const T *s = src;
    if (ls == 1 && ks != 1) {
        pack_copied(W, d, w, k, s, ks);
        return;
    }
    for (int64_t i = 0; i < w; i += W) {
        int64_t n = w - i < W ? w - i : W;
        if (ks != 1)
            pack_gather(W, d + i * k, n, k, s + i * ls, ls, ks);
        else if (W < 16)
            pack_transposed_a(W, d + i * k, n, k, s + i * ls, ls);
        else
            pack_transposed(W, d + i * k, n, k, s + i * ls, ls);
    }
}
