/* SPDX-License-Identifier: Apache-2.0 */
/* tri_body.h - substitution in registers: the mr x nr block of a panel of B that stands beside a triangle of A is loaded, solved row by row
 * (row := row * inverted diagonal; the rows behind it lose their multiples of it) and stored again. mr rows of 4 vectors fill the registers.
 * And the way back from panels to memory, which is a transposition where B's columns are contiguous.
 *
 * Including file: VEC_F64, VEC_BITS, VEC_PAIRS (complex: MR counts numbers, two a row), MR, NV and KERNEL, as in gemm_body.h. */
#include "tile/cpu/tri_kernel.h"
#ifndef VEC_PAIRS
#    define VEC_PAIRS 0
#endif
#if VEC_PAIRS
#    include "tile/cpu/pack_pairs.h"
#else
#    include "tile/cpu/gemm_vec.h"
#    include "tile/cpu/pack_body.h"
#endif
#define PARTS (1 + VEC_PAIRS)
#define ROWS (MR / PARTS)
#define LINE (NV * VL) /* numbers of a step of B's panel */
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

#if VEC_PAIRS
static const T tri_turn[16] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
#endif

/* Columns of nv vectors of h rows; h and nv are constants where it is unrolled. */
ST_INLINE void tri_solve(const int h, const int nv, V *t, const int upper, const T sign,
                         const T *restrict tri, T *restrict b)
{
#if VEC_PAIRS
    const V turn = v_load(tri_turn);
#endif
    (void)sign;
    UNROLL
    for (int i = 0; i < h; i++) UNROLL
    for (int j = 0; j < nv; j++) t[i * nv + j] = v_load(b + i * LINE + j * VL);
    UNROLL
    for (int q = 0; q < h; q++) {
        const int p = upper ? h - 1 - q : q;
        const T *column = tri + p * MR;
        const V d = v_set1(column[p * PARTS]);
#if VEC_PAIRS
        const V di = v_mul(turn, v_set1(sign * column[p * PARTS + 1]));
#endif
        UNROLL
        for (int j = 0; j < nv; j++) {
            V x = v_mul(d, t[p * nv + j]);
#if VEC_PAIRS
            x = v_fma(di, v_swap(t[p * nv + j]), x);
#endif
            t[p * nv + j] = x;
        }
        UNROLL
        for (int s = q + 1; s < h; s++) {
            const int r = upper ? h - 1 - s : s;
            const V a = v_set1(-column[r * PARTS]);
#if VEC_PAIRS
            const V ai = v_mul(turn, v_set1(-sign * column[r * PARTS + 1]));
#endif
            UNROLL
            for (int j = 0; j < nv; j++) {
                t[r * nv + j] = v_fma(a, t[p * nv + j], t[r * nv + j]);
#if VEC_PAIRS
                t[r * nv + j] = v_fma(ai, v_swap(t[p * nv + j]), t[r * nv + j]);
#endif
            }
        }
    }
    UNROLL
    for (int i = 0; i < h; i++) UNROLL
    for (int j = 0; j < nv; j++) v_store(b + i * LINE + j * VL, t[i * nv + j]);
}

#define CASE(n)                                               \
    case n:                                                   \
        if ((n) <= ROWS) {                                    \
            V t[n];                                           \
            if (upper)                                        \
                tri_solve(n, 1, t, 1, sign, tri, b + j * VL); \
            else                                              \
                tri_solve(n, 1, t, 0, sign, tri, b + j * VL); \
        }                                                     \
        break

static void solve(const void *tri, void *rows, int64_t h, int64_t w, int upper, int conj)
{
    const T sign = conj ? -1 : 1;
    T *b = rows;
    const int64_t nv = (w * PARTS + VL - 1) / VL;
    if (h == ROWS && nv == NV) {
        V t[ROWS * NV];
        if (upper)
            tri_solve(ROWS, NV, t, 1, sign, tri, b);
        else
            tri_solve(ROWS, NV, t, 0, sign, tri, b);
        return;
    }
    for (int64_t j = 0; j < nv; j++) switch (h) {
            CASE(1);
            CASE(2);
            CASE(3);
            CASE(4);
            CASE(5);
            CASE(6);
        }
}

/* ---- panels to memory --------------------------------------------------------------------------------------------------- */
#if VEC_PAIRS && VEC_F64
typedef pair item; /* pack_pairs.h */
#elif VEC_PAIRS || VEC_F64
typedef double item;
#else
typedef float item;
#endif
#define ITEMS (LINE / PARTS)

#if defined(__AVX512F__) && !VEC_F64 && !VEC_PAIRS
#    define SIDE 16
ST_INLINE void turn_block(const item *from, int64_t fs, int64_t steps, item *to, int64_t lines, int64_t ls)
{
    __m512 r[16];
    UNROLL
    for (int i = 0; i < 16; i++) r[i] = i < steps ? _mm512_loadu_ps(from + i * fs) : _mm512_setzero_ps();
    transpose_ps16(r);
    const __mmask16 mask = (__mmask16)((1u << steps) - 1);
    UNROLL
    for (int i = 0; i < 16; i++)
        if (i < lines) _mm512_mask_storeu_ps(to + i * ls, mask, r[i]);
}
#elif defined(__AVX512F__) && (VEC_F64 != VEC_PAIRS)
#    define SIDE 8
ST_INLINE void turn_block(const item *from, int64_t fs, int64_t steps, item *to, int64_t lines, int64_t ls)
{
    __m512d r[8];
    UNROLL
    for (int i = 0; i < 8; i++) r[i] = i < steps ? _mm512_loadu_pd(from + i * fs) : _mm512_setzero_pd();
    transpose_pd8(r);
    const __mmask8 mask = (__mmask8)((1u << steps) - 1);
    UNROLL
    for (int i = 0; i < 8; i++)
        if (i < lines) _mm512_mask_storeu_pd(to + i * ls, mask, r[i]);
}
#elif defined(__AVX2__) && !VEC_F64 && !VEC_PAIRS
#    define SIDE 8
ST_INLINE void turn_block(const item *from, int64_t fs, int64_t steps, item *to, int64_t lines, int64_t ls)
{
    __m256 r[8];
    UNROLL
    for (int i = 0; i < 8; i++) r[i] = i < steps ? _mm256_loadu_ps(from + i * fs) : _mm256_setzero_ps();
    transpose_ps8(r);
    const __m256i mask = _mm256_loadu_si256((const __m256i *)(vec_mask32 + 8 - steps));
    UNROLL
    for (int i = 0; i < 8; i++)
        if (i < lines) _mm256_maskstore_ps(to + i * ls, mask, r[i]);
}
#elif defined(__AVX2__) && (VEC_F64 != VEC_PAIRS)
#    define SIDE 4
ST_INLINE void turn_block(const item *from, int64_t fs, int64_t steps, item *to, int64_t lines, int64_t ls)
{
    __m256d r[4];
    UNROLL
    for (int i = 0; i < 4; i++) r[i] = i < steps ? _mm256_loadu_pd(from + i * fs) : _mm256_setzero_pd();
    transpose_pd4(r);
    const __m256i mask = _mm256_loadu_si256((const __m256i *)(vec_mask64 + 4 - steps));
    UNROLL
    for (int i = 0; i < 4; i++)
        if (i < lines) _mm256_maskstore_pd(to + i * ls, mask, r[i]);
}
#else
#    define SIDE 4
ST_INLINE void turn_block(const item *from, int64_t fs, int64_t steps, item *to, int64_t lines, int64_t ls)
{
    for (int64_t i = 0; i < lines; i++)
        for (int64_t p = 0; p < steps; p++) to[i * ls + p] = from[p * fs + i];
}
#endif

static void unpack(const void *panel, int64_t w, int64_t k, void *dst, int64_t ls, int64_t ks)
{
    const item *from = panel;
    item *to = dst;
    if (ls == 1) {
        for (int64_t p = 0; p < k; p++) memcpy(to + p * ks, from + p * ITEMS, (size_t)w * sizeof *to);
    } else if (ks == 1) {
        for (int64_t i = 0; i < w; i += SIDE)
            for (int64_t p = 0; p < k; p += SIDE)
                turn_block(from + p * ITEMS + i, ITEMS, k - p < SIDE ? k - p : SIDE, to + i * ls + p,
                           w - i < SIDE ? w - i : SIDE, ls);
    } else {
        for (int64_t p = 0; p < k; p++)
            for (int64_t i = 0; i < w; i++) to[i * ls + p * ks] = from[p * ITEMS + i];
    }
}

/* ---- squares that are laid out whole -------------------------------------------------------------------------------------- */
/* a row of a block of side x side, as bits */
typedef uint64_t row_bits __attribute__((vector_size(SIDE * sizeof(item)), aligned(sizeof(T)), may_alias));

/* n numbers, then zeros up to `width`; may write a vector beyond what it is for, which the caller's next row overwrites */
ST_INLINE void copy_row(T *to, const T *from, int64_t n, int64_t width)
{
    int64_t i = 0;
    for (; i + VL <= n; i += VL) v_store(to + i, v_load(from + i));
    if (i < n) {
        v_store(to + i, v_loadm(v_mask((int)(n - i)), from + i));
        i += VL;
    }
    for (; i < width; i += VL) v_store(to + i, v_zero());
}

ST_INLINE void conjugate_one(item *d)
{
    uint64_t u[sizeof *d / 4]; /* of real types not reached */
    memcpy(u, d, sizeof *d);
    u[(sizeof *d - 1) / 8] ^= (uint64_t)1 << 63;
    memcpy(d, u, sizeof *d);
}

ST_INLINE void conjugate_row(item *d)
{
#if VEC_PAIRS
    row_bits m;
    UNROLL
    for (int i = 0; i < (int)(sizeof m / 8); i++) m[i] = VEC_F64 && i % 2 == 0 ? 0 : (uint64_t)1 << 63;
    *(row_bits *)d ^= m;
#endif
    (void)d;
}

static void mirror_square(item *d, int64_t ld, int64_t n, int lower, int conj)
{
    for (int64_t b = 0; b < n; b += SIDE) {
        for (int64_t q = 0; q < b; q += SIDE) {
            const item *from = lower ? d + b * ld + q : d + q * ld + b;
            item *to = lower ? d + q * ld + b : d + b * ld + q;
            turn_block(from, ld, SIDE, to, SIDE, ld);
            for (int i = 0; conj && i < SIDE; i++) conjugate_row(to + i * ld);
        }
        _Alignas(64) item t[SIDE * SIDE];
        item *own = d + b * ld + b;
        turn_block(own, ld, SIDE, t, SIDE, SIDE);
        for (int i = 0; i < SIDE; i++) {
            memset(t + i * SIDE + i, 0, sizeof *t);
            if (conj) { /* not the zeros: their signs would be joined to what is stored there */
                for (int q = lower ? i + 1 : 0; q < (lower ? SIDE : i); q++) conjugate_one(t + i * SIDE + q);
                memset((char *)(own + i * ld + i) + sizeof *own / 2, 0, sizeof *own / 2);
            }
            *(row_bits *)(own + i * ld) |= *(const row_bits *)(t + i * SIDE);
        }
    }
}

static void square(void *dst, int64_t ld, const void *src, int64_t rs, int64_t n, int lower, int mirror,
                   int unit)
{
    item *d = dst;
    const item *s = src;
    const int skip = unit != 0;
    static const T one[2] = {1, 0};
    for (int64_t r = 0; r < n; r++, d += ld, s += rs) {
        const int64_t first = lower ? 0 : r + skip, count = lower ? r + 1 - skip : n - first;
        for (int64_t c = 0; c < first; c += SIDE) memset(d + c, 0, SIDE * sizeof *d);
        copy_row((T *)(d + first), (const T *)(s + first), PARTS * count, PARTS * (ld - first));
        if (unit) memcpy(d + r, one, sizeof *d);
    }
    for (int64_t r = n; r % SIDE; r++, d += ld) copy_row((T *)d, NULL, 0, PARTS * ld);
    if (mirror) mirror_square(dst, ld, n, lower, mirror == 2);
}

static void turn(void *to, const void *from, int64_t ld, int64_t n)
{
    for (int64_t i = 0; i < n; i += SIDE)
        for (int64_t j = 0; j < n; j += SIDE)
            turn_block((const item *)from + i * ld + j, ld, SIDE, (item *)to + j * ld + i, SIDE, ld);
}

static void add(void *c, const void *t, int64_t n, double beta)
{
    T *d = c;
    const T *s = t;
    int64_t i = 0;
    if (beta == 0) {
        for (; i + VL <= n; i += VL) v_store(d + i, v_load(s + i));
        if (i < n) {
            const MK mask = v_mask((int)(n - i));
            v_storem(d + i, mask, v_loadm(mask, s + i));
        }
        return;
    }
    const V b = v_set1((T)beta);
    for (; i + VL <= n; i += VL) v_store(d + i, v_fma(b, v_load(d + i), v_load(s + i)));
    if (i < n) {
        const MK mask = v_mask((int)(n - i));
        v_storem(d + i, mask, v_fma(b, v_loadm(mask, d + i), v_loadm(mask, s + i)));
    }
}

const st_tri_kernel PASTE(st_kernel_, KERNEL) = {ROWS, ITEMS, solve, unpack, SIDE, square, turn, add};
