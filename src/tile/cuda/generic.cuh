/* SPDX-License-Identifier: Apache-2.0 */
/* generic.cuh - what the contraction kernels for sm_80 and later share: the parameters (those of generic.h), indices to offsets, tiles, loaders
 * from global to shared memory, and the last step from accumulators to C.
 *
 * A and B are the two sides of one thing: rows (m or n) by k. A loader brings BR rows x BK of k into shared memory, each thread the same places in every tile,
 * so that the rows' offsets are computed once and the offset along k once a tile and place. Layout LK: neighbouring lanes go along k; LR: along rows. V
 * elements are one copy (they stand together and are aligned: the host has checked). A windowed side (WIN 1: A, 2: B) has bounds: coordinates
 * that are outside an image read as zero.
 * Macros: TA TB TC element types; ST_ACC what the epilogue computes in; WIN; KAX axes of k (1, or 3: fewer are padded); NAX 1 where n is one axis; UA, UB 1:
 * elements of A, of B stand together along k where their layout is LK;
 * CV elements of C that stand together; SPLIT 1: sums go to the workspace; EPI 1: generated.cuh. */
#ifndef ST_GENERIC_CUH
#define ST_GENERIC_CUH
#include "types.cuh"
#include "mma.cuh"
#include "epilogue.cuh"

#ifndef NAX
#    define NAX 1
#endif
#ifndef UA
#    define UA 0
#    define UB 0
#endif
enum { LK, LR };

struct st_ax {
    i64 len, a, b, c;
    u32 mul, shift;
};
struct st_list {
    i64 count;
    st_ax ax[4];
};
struct st_window {
    i32 limit, offset;
    i32 row[4], k[4]; /* share of each axis' index in the coordinate */
};
struct st_params {
    const void *a, *b;
    void *c, *part;
    st_list m, n, k, batch;
    st_window win[2];
    u32 M, N, K, G;
    u32 tiles_m, tiles_n, splits, k_split; /* k of a split, a multiple of BK */
    double alpha, beta;
    st_epi epi;
};
/* blocks a multiprocessor: coordinates of a window, or several axes of k, need the registers of one */
#define ST_BLOCKS ((WIN || KAX > 1) && MINB > 1 ? MINB - 1 : MINB)
#if defined(__CUDACC__)

/* quotient of i < 2^31 by the axis' length */
INL u32 quotient(u32 i, const st_ax &x) { return (__umulhi(i, x.mul) + i) >> x.shift; }

enum { OF_A, OF_B, OF_C };
template <int W> INL i64 stride_of(const st_ax &x) { return W == OF_A ? x.a : W == OF_B ? x.b : x.c; }

/* Offset of flattened index i; idx (may be NULL) takes the indices along the axes. */
template <int W> INL i64 list_offset(const st_list &l, u32 i, u32 *idx = 0)
{
    i64 off = 0;
#pragma unroll
    for (int d = 3; d > 0; d--) {
        u32 at = 0;
        if (d < l.count) {
            const u32 q = quotient(i, l.ax[d]);
            at = i - q * (u32)l.ax[d].len;
            off += (i64)at * stride_of<W>(l.ax[d]);
            i = q;
        }
        if (idx) idx[d] = at;
    }
    if (idx) idx[0] = i;
    return off + (i64)i * stride_of<W>(l.ax[0]);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------------- */
struct st_tile {
    u32 g, m0, n0, split, k0, k1;
};
/* Block -> tile, in groups of 8 rows of tiles, so that blocks that run together share A and B in L2. */
template <int TILE_M, int TILE_N> INL st_tile tile_of(const st_params &p)
{
    st_tile t;
    const u32 each = p.tiles_m * p.tiles_n, group = 8 * p.tiles_n;
    t.g = blockIdx.x / each;
    const u32 i = blockIdx.x - t.g * each, first = i / group * 8, rows = min(p.tiles_m - first, 8u), j = i - first * p.tiles_n;
    t.m0 = (first + j % rows) * TILE_M;
    t.n0 = j / rows * TILE_N;
    t.split = blockIdx.y;
    t.k0 = t.split * p.k_split;
    t.k1 = min(p.K, t.k0 + p.k_split);
    return t;
}

/* ---- loaders ----------------------------------------------------------------------------------------------------------- */
/* Element (row, k) of the tile lies at S::at(row, k) bytes in its stage. W: OF_A or OF_B. */
template <class T, int W, int THREADS, int ROWS, int DEPTH, int LAYOUT, int V, int LANES, class S> struct loader {
    static constexpr bool windowed = WIN == (W == OF_A ? 1 : 2);
    /* one stride along k: a thread's own share of it is part of the rows' addresses, the rest is the same for all threads */
    static constexpr bool plain = KAX == 1 && !windowed, unit = LAYOUT == LK && (V > 1 || (W == OF_A ? UA : UB));
    static constexpr int FAST = (LAYOUT == LK ? DEPTH : ROWS) / V, SLOW = LAYOUT == LK ? ROWS : DEPTH;
    static constexpr int LF = FAST < LANES ? FAST : LANES, LS = THREADS / LF;
    static constexpr int FI = FAST / LF, SI = (SLOW + LS - 1) / LS;
    static constexpr int RI = LAYOUT == LK ? SI : FI, KI = LAYOUT == LK ? FI : SI;
    static constexpr bool ragged = SI * LS != SLOW; /* more threads than places */
    static_assert(FAST % LF == 0 && THREADS % LF == 0, "lanes do not divide the tile");
    const T *row[RI];
    i32 y[windowed ? RI : 1], x[windowed ? RI : 1];
    u32 bytes[LAYOUT == LR ? RI : 1];
    u32 f, s;

    __device__ __forceinline__ u32 row_at(int i) const { return LAYOUT == LK ? s + i * LS : (f + i * LF) * V; }
    __device__ __forceinline__ u32 k_at(int j) const { return LAYOUT == LK ? (f + j * LF) * V : s + j * LS; }

    __device__ __forceinline__ void begin(const st_params &p, u32 r0, u32 g)
    {
        const st_list &l = W == OF_A ? p.m : p.n;
        const u32 count = W == OF_A ? p.M : p.N;
        const T *base = (const T *)(W == OF_A ? p.a : p.b) + list_offset<W>(p.batch, g);
        f = threadIdx.x % LF;
        s = threadIdx.x / LF;
#pragma unroll
        for (int i = 0; i < RI; i++) {
            /* rows past the end repeat the last one; what they give is not stored */
            u32 r = r0 + row_at(i), idx[4];
            if constexpr (LAYOUT == LR) {
                bytes[i] = r < count ? min((u32)V, count - r) * sizeof(T) : 0;
                if (r >= count) r = 0;
            } else if (r >= count)
                r = count - 1;
            row[i] = base + list_offset<W>(l, r, idx);
            if constexpr (plain) row[i] += (i64)k_at(0) * stride_of<W>(p.k.ax[0]);
            if constexpr (windowed) {
                y[i] = p.win[0].offset;
                x[i] = p.win[1].offset;
#pragma unroll
                for (int d = 0; d < 4; d++) {
                    y[i] += (i32)idx[d] * p.win[0].row[d];
                    x[i] += (i32)idx[d] * p.win[1].row[d];
                }
            }
        }
    }
    /* offset along k, and the coordinates' share */
    __device__ __forceinline__ i64 along(const st_params &p, u32 k, i32 &dy, i32 &dx) const
    {
        dy = dx = 0;
#if KAX == 1
        if constexpr (windowed) {
            dy = (i32)k * p.win[0].k[0];
            dx = (i32)k * p.win[1].k[0];
        }
        return (i64)k * stride_of<W>(p.k.ax[0]);
#else
        const u32 q = quotient(k, p.k.ax[2]), i2 = k - q * (u32)p.k.ax[2].len, i0 = quotient(q, p.k.ax[1]),
                  i1 = q - i0 * (u32)p.k.ax[1].len;
        if constexpr (windowed) {
            dy = (i32)i0 * p.win[0].k[0] + (i32)i1 * p.win[0].k[1] + (i32)i2 * p.win[0].k[2];
            dx = (i32)i0 * p.win[1].k[0] + (i32)i1 * p.win[1].k[1] + (i32)i2 * p.win[1].k[2];
        }
        return (i64)i0 * stride_of<W>(p.k.ax[0]) + (i64)i1 * stride_of<W>(p.k.ax[1]) + (i64)i2 * stride_of<W>(p.k.ax[2]);
#endif
    }
    __device__ __forceinline__ bool inside(const st_params &p, int i, i32 dy, i32 dx) const
    {
        if constexpr (windowed)
            return (u32)(y[i] + dy) < (u32)p.win[0].limit && (u32)(x[i] + dx) < (u32)p.win[1].limit;
        else
            return true;
    }
    /* place (i, j)'s valid bytes and address */
    __device__ __forceinline__ u32 valid(const st_params &p, int i, u32 k, u32 k1, i32 dy, i32 dx) const
    {
        u32 n = LAYOUT == LR ? bytes[i] : (u32)(V * sizeof(T));
        if (LAYOUT == LK && V > 1 && k < k1) n = min((u32)V, k1 - k) * sizeof(T);
        return k < k1 && inside(p, i, dy, dx) ? n : 0;
    }
    /* starts the copies of the tile at k0 into the stage at shared address `to` */
    __device__ __forceinline__ void start(const st_params &p, u32 to, u32 k0, u32 k1) const
    {
        constexpr int step = LAYOUT == LK ? LF * V : LS;
        if constexpr (plain)
            if (k0 + DEPTH <= k1) {
                const i64 s1 = unit ? 1 : stride_of<W>(p.k.ax[0]), off = (i64)k0 * s1;
#pragma unroll
                for (int j = 0; j < KI; j++) {
                    if (LAYOUT == LR && ragged && k_at(j) >= DEPTH) continue;
#pragma unroll
                    for (int i = 0; i < RI; i++) {
                        if (LAYOUT == LK && ragged && row_at(i) >= ROWS) continue;
                        const u32 dst = to + S::at(row_at(i), k_at(j));
                        const T *src = row[i] + off + (i64)(j * step) * s1;
                        if (LAYOUT == LR)
                            copy_async<V * (int)sizeof(T)>(dst, src, bytes[i]);
                        else
                            copy_async<V * (int)sizeof(T)>(dst, src);
                    }
                }
                return;
            }
        /* many single elements: their addresses would take all registers */
#pragma unroll(RI * KI > 8 ? 1 : KI)
        for (int j = 0; j < KI; j++) {
            if (LAYOUT == LR && ragged && k_at(j) >= DEPTH) continue;
            const u32 k = k0 + k_at(j);
            i32 dy = 0, dx = 0;
            i64 off;
            if constexpr (plain)
                off = (i64)(k0 + j * step) * stride_of<W>(p.k.ax[0]);
            else
                off = along(p, k < k1 ? k : 0, dy, dx);
#pragma unroll
            for (int i = 0; i < RI; i++) {
                if (LAYOUT == LK && ragged && row_at(i) >= ROWS) continue;
                const u32 n = valid(p, i, k, k1, dy, dx);
                copy_async<V * (int)sizeof(T)>(to + S::at(row_at(i), k_at(j)), n ? row[i] + off : row[i], n);
            }
        }
    }
};

/* ---- from accumulators to C ------------------------------------------------------------------------------------------------ */
/* Offsets of a thread's columns in C, once a tile: COUNT groups of V, STEP columns apart from n0 on. One stride is multiplied where it is used. */
template <int COUNT, int V, int STEP> struct st_columns {
    static constexpr bool table = !SPLIT && NAX != 1;
    static constexpr int EACH = CV >= V ? 1 : V;
    u32 n0;
    i64 off[table ? COUNT * EACH : 1];
    __device__ __forceinline__ void begin(const st_params &p, u32 first)
    {
        n0 = first;
        if constexpr (table)
#pragma unroll
            for (int i = 0; i < COUNT * EACH; i++) {
                const u32 n = first + i / EACH * STEP + i % EACH;
                off[i] = list_offset<OF_C>(p.n, n < p.N ? n : 0);
            }
    }
    __device__ __forceinline__ u32 at(int j) const { return n0 + j * STEP; }
    __device__ __forceinline__ i64 offset(const st_params &p, int j, int i) const
    {
        if constexpr (table) return off[j * EACH + (EACH == 1 ? 0 : i)] + (EACH == 1 ? i : 0);
        return (i64)(at(j) + i) * p.n.ax[0].c;
    }
};

template <class Acc> struct st_store {
    i64 batch;
    ST_ACC alpha, beta;
    __device__ __forceinline__ void begin(const st_params &p, const st_tile &t)
    {
        batch = SPLIT ? ((i64)t.split * p.G + t.g) * p.M : list_offset<OF_C>(p.batch, t.g);
        alpha = (ST_ACC)p.alpha;
        beta = (ST_ACC)p.beta;
    }
    /* All of a thread's sums in row m: v(j) are those of column group j, V of them. */
    template <int COUNT, int V, int STEP, class F>
    __device__ __forceinline__ void row(const st_params &p, const st_tile &t, u32 m, const st_columns<COUNT, V, STEP> &cols, F v) const
    {
        if (m >= p.M) return;
#if SPLIT
        Acc *to = (Acc *)p.part + (batch + m) * p.N;
#else
        TC *to = (TC *)p.c + batch + list_offset<OF_C>(p.m, m);
#endif
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            const u32 n = cols.at(j);
            const Acc *x = v(j);
#if SPLIT
            if (CV >= V && n + V <= p.N)
                *(lanes<Acc, V> *)(to + n) = *(const lanes<Acc, V> *)x;
            else
#pragma unroll
                for (int i = 0; i < V; i++)
                    if (n + i < p.N) to[n + i] = x[i];
#else
            if (CV >= V && n + V <= p.N) {
                lanes<TC, V> r, *at = (lanes<TC, V> *)(to + cols.offset(p, j, 0));
                if (beta != 0) r = *at;
#pragma unroll
                for (int i = 0; i < V; i++) r.e[i] = value(p, t, m, n + i, x[i], r.e[i]);
                *at = r;
            } else
#pragma unroll
                for (int i = 0; i < V; i++)
                    if (n + i < p.N) {
                        TC *at = to + cols.offset(p, j, i), old;
                        if (beta != 0) old = *at;
                        *at = value(p, t, m, n + i, x[i], old);
                    }
#endif
        }
    }
    __device__ __forceinline__ TC value(const st_params &p, const st_tile &t, u32 m, u32 n, Acc v, const TC &old) const
    {
        ST_ACC x = alpha * (ST_ACC)v;
        if (beta != 0) x += beta * (sizeof(ST_ACC) == 8 ? (ST_ACC)to_f64(old) : (ST_ACC)to_f32(old));
#if EPI
        x = st_epilogue(p.epi, x, m, n, t.g);
#endif
        return from<TC>(x);
    }
};
#endif
#endif
