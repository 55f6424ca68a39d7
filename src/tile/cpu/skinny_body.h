/* SPDX-License-Identifier: Apache-2.0 */
/* skinny_body.h - kernels for products with 1 to 16 rows, bound by the reading of B.
 *
 * Including file: VEC_F64, VEC_BITS, KERNEL (the row's id), PAIRS_KERNEL (that of complex products), or HALF (only for f32 and 512 bits: A and B are STRATA_BF16
 * or STRATA_F16, widened to f32 as they are loaded, which is exact; A arrives widened by `pack`), NN_MR (rows of one pass), NN_NV (vectors of a tile of few rows), NT_MR, NT_NR.
 * Few long sequential streams feed the hardware's prefetcher best, so the driver runs kb (8 to 16) rows of B at a time over all columns;
 * sums are loaded and stored once per kb rows, from a scratch in L1 or L2 that is ten times faster than memory. */
#include "tile/cpu/gemm_vec.h"
#include "tile/cpu/skinny_kernel.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

#ifdef HALF
typedef uint16_t BT;
ST_INLINE V b_widen(__m256i x)
{
    if (HALF == STRATA_F16) return _mm512_cvtph_ps(x);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}
ST_INLINE V b_load(const BT *p) { return b_widen(_mm256_loadu_si256((const void *)p)); }
ST_INLINE V b_loadm(MK m, const BT *p) { return b_widen(_mm256_maskz_loadu_epi16(m, p)); }
ST_INLINE T a_widen(BT x)
{
    if (HALF == STRATA_F16) return _cvtsh_ss(x);
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128((int)((uint32_t)x << 16))));
}
#else
typedef T BT;
#    define b_load(p) v_load(p)
#    define b_loadm(m, p) v_loadm(m, p)
#    define a_widen(x) (x)
#    define HALF 0
#endif

/* A tile of mr rows has so many vectors that the accumulators and B's vectors fit the registers. */
#define WIDTH(mr) ((mr)*NN_NV <= NN_ACC ? NN_NV : NN_ACC / (mr) > 0 ? NN_ACC / (mr) : 1)

ST_INLINE void nn_tile(const int mr, const int nv, const bool masked, const bool fetch, int64_t kb,
                       const T *a, const BT *b, int64_t ldb, T *s, int64_t lds, MK mask, bool first,
                       int64_t ahead)
{
    V acc[NN_MR][NN_NV];
    UNROLL
    for (int i = 0; i < mr; i++) UNROLL
    for (int j = 0; j < nv; j++)
        acc[i][j] = first ? v_zero() : v_load(s + i * lds + j * VL); /* S is padded to whole vectors */
    for (int64_t p = 0; p < kb; p++, b += ldb, a += mr) {
        V bv[NN_NV];
        UNROLL
        for (int j = 0; j < nv; j++) {
            bv[j] = masked && j == nv - 1 ? b_loadm(mask, b + j * VL) : b_load(b + j * VL);
            if (fetch) __builtin_prefetch((const char *)(b + j * VL) + ahead);
        }
        UNROLL
        for (int i = 0; i < mr; i++) {
            V x = v_set1(a[i]);
            UNROLL
            for (int j = 0; j < nv; j++) acc[i][j] = v_fma(x, bv[j], acc[i][j]);
        }
    }
    __asm__("" : "+r"(s));
    UNROLL
    for (int i = 0; i < mr; i++, s += lds) UNROLL
    for (int j = 0; j < nv; j++) v_store(s + j * VL, acc[i][j]);
}

#define NN_CASE(q)                                                                 \
    case q:                                                                        \
        if (ahead)                                                                 \
            nn_tile(mr, q, false, true, kb, a, b, ldb, s, lds, all, first, ahead); \
        else                                                                       \
            nn_tile(mr, q, false, false, kb, a, b, ldb, s, lds, all, first, 0);    \
        return;

ST_INLINE void nn_any(const int mr, int64_t kb, const T *a, const BT *b, int64_t ldb, T *s, int64_t lds,
                      int64_t cols, bool first, int64_t ahead)
{
    const MK all = v_mask(VL - 1); /* not used by unmasked tiles */
    const int64_t whole = cols % VL == 0 ? cols / VL : 0;
    switch (whole) {
        NN_CASE(1)
#if NN_NV >= 2
        NN_CASE(2)
#endif
    case 3:
        if (WIDTH(mr) < 3) break;
        if (ahead)
            nn_tile(mr, WIDTH(mr) < 3 ? 1 : 3, false, true, kb, a, b, ldb, s, lds, all, first, ahead);
        else
            nn_tile(mr, WIDTH(mr) < 3 ? 1 : 3, false, false, kb, a, b, ldb, s, lds, all, first, 0);
        return;
    case 4:
        if (WIDTH(mr) < 4) break;
        if (ahead)
            nn_tile(mr, WIDTH(mr) < 4 ? 1 : 4, false, true, kb, a, b, ldb, s, lds, all, first, ahead);
        else
            nn_tile(mr, WIDTH(mr) < 4 ? 1 : 4, false, false, kb, a, b, ldb, s, lds, all, first, 0);
        return;
    default: break;
    }
    /* the edge: whole vectors one by one, then a masked one */
    int64_t j = 0;
    for (; j + VL <= cols; j += VL)
        nn_tile(mr, 1, false, false, kb, a, b + j, ldb, s + j, lds, all, first, 0);
    if (j < cols)
        nn_tile(mr, 1, true, false, kb, a, b + j, ldb, s + j, lds, v_mask((int)(cols - j)), first, 0);
}

#define NN(mr)                                                                                       \
    static void nn_##mr(int64_t kb, const void *a, const void *b, int64_t ldb, void *s, int64_t lds, \
                        int64_t cols, bool first, int64_t ahead)                                     \
    {                                                                                                \
        nn_any(mr, kb, a, b, ldb, s, lds, cols, first, ahead);                                       \
    }
NN(1)
NN(2)
NN(3)
NN(4)
#if NN_MR == 8
NN(5)
NN(6) NN(7) NN(8) static const st_skinny_nn_fn nn[] = {NULL, nn_1, nn_2, nn_3, nn_4, nn_5, nn_6, nn_7, nn_8};
#else
static const st_skinny_nn_fn nn[] = {NULL, nn_1, nn_2, nn_3, nn_4, NULL, NULL, NULL, NULL};
#endif

ST_INLINE void nt_tile(const int mr, const int nr, const bool fetch, int64_t kb, const T *a, int64_t lda,
                       const BT *b, int64_t ldb, T *part, bool first, int64_t ahead)
{
    V acc[NT_MR][ST_SKINNY_NR];
    UNROLL
    for (int i = 0; i < mr; i++) UNROLL
    for (int j = 0; j < nr; j++) acc[i][j] = first ? v_zero() : v_load(part + (i * nr + j) * VL);
    int64_t p = 0;
    for (; p + VL <= kb; p += VL) {
        V av[NT_MR];
        UNROLL
        for (int i = 0; i < mr; i++) av[i] = v_load(a + i * lda + p);
        UNROLL
        for (int j = 0; j < nr; j++) {
            V x = b_load(b + j * ldb + p);
            if (fetch) __builtin_prefetch((const char *)(b + j * ldb + p) + ahead);
            UNROLL
            for (int i = 0; i < mr; i++) acc[i][j] = v_fma(av[i], x, acc[i][j]);
        }
    }
    if (p < kb) {
        const MK mask = v_mask((int)(kb - p));
        V av[NT_MR];
        UNROLL
        for (int i = 0; i < mr; i++) av[i] = v_loadm(mask, a + i * lda + p);
        UNROLL
        for (int j = 0; j < nr; j++) {
            V x = b_loadm(mask, b + j * ldb + p);
            UNROLL
            for (int i = 0; i < mr; i++) acc[i][j] = v_fma(av[i], x, acc[i][j]);
        }
    }
    UNROLL
    for (int i = 0; i < mr; i++) UNROLL
    for (int j = 0; j < nr; j++) v_store(part + (i * nr + j) * VL, acc[i][j]);
}

#define NT(mr, nr)                                                                                 \
    static void nt_##mr##_##nr(int64_t kb, const void *a, int64_t lda, const void *b, int64_t ldb, \
                               void *part, bool first, int64_t ahead)                              \
    {                                                                                              \
        if (ahead)                                                                                 \
            nt_tile(mr, nr, true, kb, a, lda, b, ldb, part, first, ahead);                         \
        else                                                                                       \
            nt_tile(mr, nr, false, kb, a, lda, b, ldb, part, first, 0);                            \
    }
#define NTS(mr) NT(mr, 1) NT(mr, 2) NT(mr, 3) NT(mr, 4) NT(mr, 5) NT(mr, 6)
#define NT_ROW(mr) nt_##mr##_1, nt_##mr##_2, nt_##mr##_3, nt_##mr##_4, nt_##mr##_5, nt_##mr##_6
NTS(1)
NT(1, 7)
NT(1, 8)
#if NT_MR == 4
NTS(2)
NTS(3)
NTS(4)
static const st_skinny_nt_fn nt[] = {NT_ROW(1), nt_1_7, nt_1_8, NT_ROW(2), NULL, NULL,
                                     NT_ROW(3), NULL,   NULL,   NT_ROW(4), NULL, NULL};
#else
NTS(2) static const st_skinny_nt_fn nt[] = {NT_ROW(1), nt_1_7, nt_1_8, NT_ROW(2), NULL, NULL};
#endif

static void reduce(int64_t n, const void *part, void *s, int64_t stride)
{
    const T *p = part;
    T *d = s;
    for (int64_t i = 0; i < n; i++) d[i * stride] = v_sum(v_load(p + i * VL));
}

static void pack(void *dst, int64_t width, int64_t k, const void *src, int64_t ls, int64_t ks)
{
    T *d = dst;
    const BT *s = src;
    /* whole lines of the source at a time: rows a power of two apart share one cache set */
    for (int64_t p0 = 0; p0 < k; p0 += 16)
        for (int64_t i = 0; i < width; i++)
            for (int64_t p = p0; p < p0 + 16 && p < k; p++) d[p * width + i] = a_widen(s[i * ls + p * ks]);
}

#if NN_MR == 8
#    define NN_WIDTHS                                                                         \
        {                                                                                     \
            0, WIDTH(1), WIDTH(2), WIDTH(3), WIDTH(4), WIDTH(5), WIDTH(6), WIDTH(7), WIDTH(8) \
        }
#else
#    define NN_WIDTHS                                             \
        {                                                         \
            0, WIDTH(1), WIDTH(2), WIDTH(3), WIDTH(4), 0, 0, 0, 0 \
        }
#endif
#define SKINNY_KERNEL                                                     \
    {                                                                     \
        VL, NN_MR, NN_WIDTHS, NT_MR, NT_NR, 8, nn, nt, reduce, pack, HALF \
    }
/* complex products run by the same, see skinny.c */
const st_skinny_kernel PASTE(st_kernel_, KERNEL) = SKINNY_KERNEL;
#ifdef PAIRS_KERNEL
const st_skinny_kernel PASTE(st_kernel_, PAIRS_KERNEL) = SKINNY_KERNEL;
#endif
