/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_body.h - the packed microkernel: mr rows x nv vectors of C stay in registers while k runs over two panels.
 *
 * Including file: VEC_F64, VEC_BITS, MR, NV and KERNEL (the row's id); it gets st_kernel_<id> with an instance for every
 * height 1..MR and width 1..NV, so that no edge is ever scalar. Everything is an always_inline body with constant mr and nv
 * whose inner loops unroll completely; else the accumulators go to memory. The walk over k is one loop body run in four
 * phases that differ only in what they prefetch (next B panel; nothing; rows of C, about 200 steps before they are updated;
 * nothing): three copies of the loop made clang keep the accumulators in memory, and C prefetched at the start is gone
 * again when it is needed. The recipe of few rows and long runs (6 x 4 vectors): C's update is what tiles differ in.
 *
 * VEC_PAIRS 1: complex numbers, by the same arithmetic. A row of A is two rows (its real and its imaginary parts, which lie side by side
 * in a panel anyway), each times B as it lies: P = sum of re(a) (re b, im b) and Q = sum of im(a) (re b, im b). Only the store knows: a b =
 * (P.re - Q.im, P.im + Q.re), and conjugates of A or B are other signs there. Sizes outside this file count complex elements. */
#include "tile/cpu/gemm_kernel.h"
#ifndef VEC_PAIRS
#    define VEC_PAIRS 0
#endif
#if VEC_PAIRS
#    include "tile/cpu/pack_pairs.h"
#else
#    include "tile/cpu/gemm_vec.h"
#    include "tile/cpu/pack_body.h"
#endif
#if VEC_PAIRS || VEC_F64
#    define WIDE_NONE 0
#    define WIDE_BYTES(kind) ((kind) + (int)sizeof(T))
#    define widen(kind, p) v_load((const T *)(p))
#else
#    include "tile/cpu/pack_widen.h"
#endif

#define NR (NV * VL)
/* numbers of an element, rows of elements, lanes of elements */
#define PARTS (1 + VEC_PAIRS)
#define MRE (MR / PARTS)
#define VLE (VL / PARTS)
/* real row i in elements of A: pairs lie side by side, ars numbers from pair to pair */
#define A_ROW(i, ars) (VEC_PAIRS ? (i) / 2 * (ars) + (i) % 2 : (i) * (ars))
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
enum { KU = 4, C_AHEAD = 192, B_AHEAD = 24 };

ST_INLINE void ukr_step(const int mr, const int nv, V *acc, const T *a, const int64_t ars, const T *b)
{
    if (mr * nv == 1) { /* clang leaves an array of one in memory when loops index it */
        *acc = v_fma(v_set1(*a), v_load(b), *acc);
        return;
    }
    V bv[NV];
    UNROLL
    for (int j = 0; j < nv; j++) bv[j] = v_load(b + j * VL);
    UNROLL
    for (int i = 0; i < mr; i++) {
        V x = v_set1(a[A_ROW(i, ars)]);
        UNROLL
        for (int j = 0; j < nv; j++) acc[i * nv + j] = v_fma(x, bv[j], acc[i * nv + j]);
    }
}

#if VEC_PAIRS
/* Signs of P and Q: conjugates take those of A (bit 0) and B (bit 1). */
#    define SIGNS(re, im)                                                  \
        {                                                                  \
            re, im, re, im, re, im, re, im, re, im, re, im, re, im, re, im \
        }
static const T sign_p[4][16] = {SIGNS(1, 1), SIGNS(1, 1), SIGNS(1, -1), SIGNS(1, -1)};
static const T sign_q[4][16] = {SIGNS(-1, 1), SIGNS(1, -1), SIGNS(1, 1), SIGNS(-1, -1)};

/* C := alpha * acc + beta * C; C is not read when beta is 0, and an imaginary part of 0 is no factor (0 * Inf is not 0) */
ST_INLINE void ukr_store(const int mr, const int nv, const int masked, const V *acc, const st_ukr_args *x,
                         T *restrict c)
{
    const int64_t ldc = 2 * x->ldc;
    __asm__("" : "+r"(c));
    const MK mask = v_mask(masked ? 2 * x->last : VL - 1);
    const V sp = v_load(sign_p[x->conj]), sq = v_load(sign_q[x->conj]), turn = v_load(sign_q[0]);
    const V va = v_set1((T)x->alpha), ia = v_mul(turn, v_set1((T)x->alpha_im));
    const bool plain = x->beta == 0.0 && x->beta_im == 0.0, real = x->alpha_im == 0.0;
    const V vb = v_set1((T)x->beta), ib = v_mul(turn, v_set1((T)x->beta_im));
    UNROLL
    for (int i = 0; i < mr; i += 2, c += ldc) UNROLL
    for (int j = 0; j < nv; j++) {
        const V y = v_fma(sq, v_swap(acc[(i + 1) * nv + j]), v_mul(sp, acc[i * nv + j]));
        V r = v_mul(va, y);
        if (!real) r = v_fma(ia, v_swap(y), r);
        const bool part = masked && j == nv - 1;
        if (!plain) {
            const V old = part ? v_loadm(mask, c + j * VL) : v_load(c + j * VL);
            r = v_fma(vb, old, r);
            if (x->beta_im != 0.0) r = v_fma(ib, v_swap(old), r);
        }
        if (part)
            v_storem(c + j * VL, mask, r);
        else
            v_store(c + j * VL, r);
    }
    (void)mask;
}
#else
/* C := alpha * acc + beta * C; C is not read when beta is 0 */
ST_INLINE void ukr_store(const int mr, const int nv, const int masked, const V *acc, const st_ukr_args *x,
                         T *restrict c)
{
    const int64_t ldc = x->ldc;
    __asm__("" : "+r"(c)); /* or GCC computes all row addresses before the loop and spills them */
    const MK mask = v_mask(masked ? x->last : VL - 1);
    const V va = v_set1((T)x->alpha);
    if (x->beta == 0.0) {
        UNROLL
        for (int i = 0; i < mr; i++, c += ldc) UNROLL
        for (int j = 0; j < nv; j++) {
            V r = v_mul(va, acc[i * nv + j]);
            if (masked && j == nv - 1)
                v_storem(c + j * VL, mask, r);
            else
                v_store(c + j * VL, r);
        }
    } else {
        const V vb = v_set1((T)x->beta);
        UNROLL
        for (int i = 0; i < mr; i++, c += ldc) UNROLL
        for (int j = 0; j < nv; j++) {
            V r = v_mul(va, acc[i * nv + j]);
            if (masked && j == nv - 1)
                v_storem(c + j * VL, mask, v_fma(vb, v_loadm(mask, c + j * VL), r));
            else
                v_store(c + j * VL, v_fma(vb, v_load(c + j * VL), r));
        }
    }
    (void)mask;
}
#endif

/* ars: distance of rows in A, 1 in a panel (a step is MR values), else A is read where it is (a step is one element) */
ST_INLINE void ukr_body(const int mr, const int nv, const int masked, const int packed, V *acc,
                        const st_ukr_args *x, const T *restrict a, const T *restrict b, T *restrict c)
{
    const int64_t ars = packed ? PARTS : PARTS * x->ars, as = packed ? MR : PARTS;
    UNROLL
    for (int i = 0; i < mr * nv; i++) acc[i] = v_zero();
    const int64_t k = x->k, steps = k / KU, ldc = PARTS * x->ldc;
    /* phases: iterations left when each one ends */
    int64_t late = steps > C_AHEAD / KU ? C_AHEAD / KU : steps, left = steps;
    int64_t stop = x->next_count < steps - late ? steps - x->next_count : late;
    const char *pf = x->next;
    int64_t jump = 256;
    if (x->next_count == 0) {
        stop = late;
        jump = 0;
        pf = (const char *)b;
    }
    for (;;) {
        for (; left > stop; left--, a += KU * as, b += KU * NR, pf += jump) {
            __builtin_prefetch(pf);
            if (NV > 1) __builtin_prefetch(pf + 64);
            if (NV * VL * sizeof(T) > 128) __builtin_prefetch(pf + 128);
            if (NV * VL * sizeof(T) > 192) __builtin_prefetch(pf + 192);
            UNROLL
            for (int u = 0; u < KU; u++) ukr_step(mr, nv, acc, a + u * as, ars, b + u * NR);
        }
        if (left == 0) break;
        if (left > late) { /* the next panel's share is done */
            stop = late;
            jump = 0;
            pf = (const char *)b;
        } else if (left == late && late > mr / PARTS) {
            stop = late - mr / PARTS;
            jump = ldc * (int64_t)sizeof(T);
            pf = (const char *)c;
        } else {
            stop = 0;
            jump = 0;
            pf = (const char *)b;
        }
    }
    for (int64_t p = steps * KU; p < k; p++, a += as, b += NR) ukr_step(mr, nv, acc, a, ars, b);
    ukr_store(mr, nv, masked, acc, x, c);
}

/* The first tile of a panel of B packs it: the loads are needed anyway, and stores have room beside the arithmetic. Rows of B lie on a page
 * each, where no hardware prefetch follows, so they are asked for B_AHEAD steps before. */
ST_INLINE void ukr_first_body(const int packed, const int kind, const st_ukr_args *x, const T *restrict a,
                              const char *restrict b, T *restrict c)
{
    V acc[MR * NV];
    const int bytes = WIDE_BYTES(kind);
    const int64_t ars = packed ? PARTS : PARTS * x->ars, as = packed ? MR : PARTS,
                  ldb = PARTS * x->ldb * bytes, inside = x->k > B_AHEAD ? x->k - B_AHEAD : 0;
    T *panel = x->panel;
    UNROLL
    for (int i = 0; i < MR * NV; i++) acc[i] = v_zero();
    for (int64_t p = 0; p < x->k; p++, a += as, b += ldb, panel += NR) {
        V bv[NV];
        const char *ahead = p < inside ? b + B_AHEAD * ldb : b;
        UNROLL
        for (int j = 0; j < NV; j++) {
            bv[j] = widen(kind, b + j * VL * bytes);
            __builtin_prefetch(ahead + j * VL * bytes);
            v_store(panel + j * VL, bv[j]);
        }
        UNROLL
        for (int i = 0; i < MR; i++) {
            V y = v_set1(a[A_ROW(i, ars)]);
            UNROLL
            for (int j = 0; j < NV; j++) acc[i * NV + j] = v_fma(y, bv[j], acc[i * NV + j]);
        }
    }
    ukr_store(MR, NV, 0, acc, x, c);
}

#define EDGE(m, v)                                                                                  \
    static void ukr_##m##_##v(const st_ukr_args *x, const void *a, const void *b, void *c)          \
    {                                                                                               \
        V acc[PARTS * (m) * (v)];                                                                   \
        ukr_body(PARTS *(m), v, 1, 1, acc, x, a, b, c);                                             \
    }                                                                                               \
    static void ukr_in_place_##m##_##v(const st_ukr_args *x, const void *a, const void *b, void *c) \
    {                                                                                               \
        V acc[PARTS * (m) * (v)];                                                                   \
        ukr_body(PARTS *(m), v, 1, 0, acc, x, a, b, c);                                             \
    }
static void ukr_full(const st_ukr_args *x, const void *a, const void *b, void *c)
{
    V acc[MR * NV];
    ukr_body(MR, NV, 0, 1, acc, x, a, b, c);
}
static void ukr_first(const st_ukr_args *x, const void *a, const void *b, void *c)
{
    ukr_first_body(1, WIDE_NONE, x, a, b, c);
}
static void ukr_first_in_place(const st_ukr_args *x, const void *a, const void *b, void *c)
{
    ukr_first_body(0, WIDE_NONE, x, a, b, c);
}
static void ukr_in_place_full(const st_ukr_args *x, const void *a, const void *b, void *c)
{
    V acc[MR * NV];
    ukr_body(MR, NV, 0, 0, acc, x, a, b, c);
}
#if NV == 4
#    define EDGES(m) EDGE(m, 1) EDGE(m, 2) EDGE(m, 3) EDGE(m, 4)
#    define ROW(f, m) f##m##_1, f##m##_2, f##m##_3, f##m##_4
#elif NV == 2
#    define EDGES(m) EDGE(m, 1) EDGE(m, 2)
#    define ROW(f, m) f##m##_1, f##m##_2
#endif
EDGES(1)
EDGES(2)
#if MR == 6 && VEC_PAIRS
EDGES(3)
#    define ROWS(f) ROW(f, 1), ROW(f, 2), ROW(f, 3)
#elif VEC_PAIRS
#    define ROWS(f) ROW(f, 1), ROW(f, 2)
#elif MR == 6
EDGES(3)
EDGES(4)
EDGES(5)
EDGES(6)
#    define ROWS(f) ROW(f, 1), ROW(f, 2), ROW(f, 3), ROW(f, 4), ROW(f, 5), ROW(f, 6)
#else
EDGES(3)
EDGES(4)
#    define ROWS(f) ROW(f, 1), ROW(f, 2), ROW(f, 3), ROW(f, 4)
#endif
static const st_ukr_fn edges[MRE * NV] = {ROWS(ukr_)};
static const st_ukr_fn edges_in_place[MRE * NV] = {ROWS(ukr_in_place_)};

static void pack_a(void *dst, int64_t w, int64_t k, const void *src, int64_t ls, int64_t ks)
{
    pack_lines(MRE, dst, w, k, src, ls, ks);
}
static void pack_b(void *dst, int64_t w, int64_t k, const void *src, int64_t ls, int64_t ks)
{
    pack_lines(NR / PARTS, dst, w, k, src, ls, ks);
}

/* what all source types share */
#define PACKED_KERNEL \
    .mr = MRE, .nv = NV, .vl = VLE, .unit = 1, .size = PARTS * (int)sizeof(T), .full = ukr_full, .edge = edges

const st_packed_kernel PASTE(st_kernel_, KERNEL) = {
    PACKED_KERNEL,      .in_place_full = ukr_in_place_full,   .in_place_edge = edges_in_place,
    .first = ukr_first, .first_in_place = ukr_first_in_place, .pack_a = pack_a,
    .pack_b = pack_b};
