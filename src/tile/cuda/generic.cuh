/* SPDX-License-Identifier: Apache-2.0 */
/* generic.cuh - what the contraction kernels for sm_80 and later share: the parameters (those of generic.h), indices to offsets, tiles, loaders
 * from global to shared memory; the last step, from accumulators to C, is in generic_store.cuh.
 *
 * A and B are the two sides of one thing: rows (m or n) by k. A loader brings BR rows x BK of k into shared memory, each thread the same places in every tile,
 * so that the rows' offsets are computed once and the offset along k once a tile and place. Layout LK: neighbouring lanes go along k; LR: along rows. V
 * elements are one copy (they stand together and are aligned: the host has checked). A windowed side (WIN 1: A, 2: B) has bounds: coordinates
 * that are outside an image read as zero.
 * Macros: TA TB TC element types; ST_ACC what the epilogue computes in; WIN; KAX axes of k (1, or 3: fewer are padded); NAX 1 where n is one axis; UA, UB 1:
 * elements of A, of B stand together along k where their layout is LK;
 * CV elements of C that stand together; GROUP: products of one launch; SPLIT 1: sums go to the workspace; EPI 1: generated.cuh.
 *
 * Rules (RULE_A, RULE_B by row and k of the side, RULE_C by m and n; bits below): half of a side is stored. Tiles of k that are zero are not visited, tiles that are stored are
 * loaded as ever, those of the mirror image with exchanged strides; tiles on the diagonal element by element. What a copy cannot do (ones on the diagonal, conjugates of the mirror
 * image) is mended in shared memory before the tile is used. CA, CB 1: a complex side is conjugated after that. PTRS: bits 0, 1, 2: A, B, C are arrays of addresses, one a batch item. */
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
#ifndef RULE_A
#    define RULE_A 0
#endif
#ifndef RULE_B
#    define RULE_B 0
#endif
#ifndef RULE_C
#    define RULE_C 0
#endif
#ifndef PTRS
#    define PTRS 0
#endif
#ifndef GROUP
#    define GROUP 0
#endif
#ifndef CA
#    define CA 0
#    define CB 0
#endif
enum { LK, LR };
/* lower: row - column + offset >= 0 is stored, upper: <= 0; hermitian comes with mirror, but for C, where it makes the diagonal real */
enum { R_LOWER = 1, R_UPPER = 2, R_MIRROR = 4, R_HERMITIAN = 8, R_UNIT = 16 };

struct st_ax {
    i64 len, a, b, c;
    u32 mul, shift;
};
enum { ST_AXES = GROUP ? 1 : 4 };
struct st_list {
    i64 count;
    st_ax ax[ST_AXES];
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
    double alpha, beta, alpha_im, beta_im;
    i64 offset[3]; /* of the rules: A and B by row and k of the side, C */
#if !GROUP
    st_epi epi;
#endif
};
/* GROUP: most products of a launch, each of one axis a list; end: blocks of all up to this one */
#if GROUP
struct st_group {
    u32 count, end[GROUP];
    st_params member[GROUP];
};
#    define ST_PARAMS st_group group
#    define ST_TAKE_PARAMS                                       \
        u32 block = blockIdx.x;                                  \
        const st_params &p = group.member[member_of(group, block)];
#else
#    define ST_PARAMS st_params p
#    define ST_TAKE_PARAMS const u32 block = blockIdx.x;
#endif
/* blocks a multiprocessor: coordinates of a window, or several axes of k, need the registers of one */
#define ST_BLOCKS ((WIN || KAX > 1) && MINB > 1 ? MINB - 1 : MINB)
#if defined(__CUDACC__)

/* The address of the block's shared memory, kept in a register */
INL u32 shared_base(const void *p)
{
    u32 at = shared_address(p);
    asm("" : "+r"(at));
    return at;
}

/* quotient of i < 2^31 by the axis' length */
INL u32 quotient(u32 i, const st_ax &x) { return (__umulhi(i, x.mul) + i) >> x.shift; }

enum { OF_A, OF_B, OF_C };
template <int W> INL i64 stride_of(const st_ax &x) { return W == OF_A ? x.a : W == OF_B ? x.b : x.c; }

/* Offset of flattened index i; idx (may be NULL) takes the indices along the axes. */
template <int W> INL i64 list_offset(const st_list &l, u32 i, u32 *idx = 0)
{
    i64 off = 0;
#pragma unroll
    for (int d = ST_AXES - 1; d > 0; d--) {
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

#if GROUP
/* Whose block it is; `block` becomes its number there. */
INL u32 member_of(const st_group &g, u32 &block)
{
    u32 lo = 0, n = g.count - 1;
    while (n) { /* the first member whose blocks end behind this one */
        const u32 half = n / 2;
        if (g.end[lo + half] <= block)
            lo += half + 1, n -= half + 1;
        else
            n = half;
    }
    if (lo) block -= g.end[lo - 1];
    return lo;
}
#endif

/* The side's matrix of batch item g. */
template <class T, int W> INL T *matrix(const st_params &p, u32 g)
{
    T *at = (T *)(W == OF_A ? (void *)p.a : W == OF_B ? (void *)p.b : p.c);
    if constexpr ((PTRS >> W & 1) != 0) return W == OF_C || p.K ? ((T **)at)[g] : (T *)0;
    return at + list_offset<W>(p.batch, g);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------------- */
struct st_tile {
    u32 g, m0, n0, split, k0, k1;
};
/* Block -> tile, in groups of 8 rows of tiles, so that blocks that run together share A and B in L2. */
template <int TILE_M, int TILE_N> INL st_tile tile_of(const st_params &p, u32 block)
{
    st_tile t;
    const u32 each = p.tiles_m * p.tiles_n, group = 8 * p.tiles_n;
    t.g = block / each;
    const u32 i = block - t.g * each, first = i / group * 8, rows = min(p.tiles_m - first, 8u), j = i - first * p.tiles_n;
    t.m0 = (first + j % rows) * TILE_M;
    t.n0 = j / rows * TILE_N;
    t.split = blockIdx.y;
    t.k0 = t.split * p.k_split;
    t.k1 = min(p.K, t.k0 + p.k_split);
    return t;
}
/* The part of k where rows r0 to r0 + rows - 1 of a triangle are not all zero, in whole steps of `step`. */
template <int RULE> INL void triangle_range(st_tile &t, i64 r0, u32 rows, i64 offset, u32 step)
{
    if constexpr ((RULE & R_MIRROR) == 0) {
        const i64 first = r0 + offset, end = first + rows;
        if ((RULE & R_LOWER) != 0 && end < (i64)t.k1) t.k1 = end > 0 ? (u32)end : 0;
        if ((RULE & R_UPPER) != 0 && first > (i64)t.k0) t.k0 += (u32)min(first - (i64)t.k0, (i64)(t.k1 > t.k0 ? t.k1 - t.k0 : 0)) / step * step;
    }
}
template <int TILE_M, int TILE_N, int DEPTH> INL void rule_range(const st_params &p, st_tile &t)
{
    triangle_range<RULE_A>(t, t.m0, TILE_M, p.offset[OF_A], DEPTH);
    triangle_range<RULE_B>(t, t.n0, TILE_N, p.offset[OF_B], DEPTH);
}
/* Is nothing of the tile stored? */
template <int TILE_M, int TILE_N> INL bool is_left_out(const st_params &p, const st_tile &t)
{
    const i64 d = (i64)t.m0 - (i64)t.n0 + p.offset[OF_C];
    return ((RULE_C & R_LOWER) != 0 && d + TILE_M - 1 < 0) || ((RULE_C & R_UPPER) != 0 && d - TILE_N + 1 > 0);
}

/* A number's words: its parts where it is complex. */
template <class T> struct parts {
    typedef T word;
    T w[1];
    static __device__ __forceinline__ T join(T v, T) { return v; }
};
template <> struct parts<c64> {
    typedef float word;
    float w[2];
    static __device__ __forceinline__ c64 join(float re, float im) { return c64{re, im}; }
};
template <> struct parts<c128> {
    typedef double word;
    double w[2];
    static __device__ __forceinline__ c128 join(double re, double im) { return c128{re, im}; }
};

/* ---- loaders ----------------------------------------------------------------------------------------------------------- */
/* Element (row, k) of the tile lies at S::at(row, k) bytes in its stage; its imaginary part, where S::plane is not 0, so many bytes behind; S::linear: at(a + b) is at(a) +
 * at(b). W: OF_A or OF_B. */
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
    static constexpr int rule = W == OF_A ? RULE_A : RULE_B;
    static constexpr bool mends = (rule & (R_UNIT | R_HERMITIAN)) != 0;
    const T *origin; /* where there is a rule */
    u32 r0, place;   /* the thread's first place in a stage */
    const T *row[RI];
    i32 y[windowed ? RI : 1], x[windowed ? RI : 1];
    u32 bytes[LAYOUT == LR ? RI : 1];
    u32 f, s;
    bool whole; /* every row of the tile exists, so that copies along rows need no count of bytes */

    __device__ __forceinline__ u32 row_at(int i) const { return LAYOUT == LK ? s + i * LS : (f + i * LF) * V; }
    __device__ __forceinline__ u32 k_at(int j) const { return LAYOUT == LK ? (f + j * LF) * V : s + j * LS; }

    __device__ __forceinline__ void begin(const st_params &p, u32 first_row, u32 g)
    {
        const st_list &l = W == OF_A ? p.m : p.n;
        const u32 count = W == OF_A ? p.M : p.N;
        const T *base = matrix<const T, W>(p, g);
        r0 = first_row;
        origin = base;
        f = threadIdx.x % LF;
        s = threadIdx.x / LF;
        place = S::at(row_at(0), k_at(0));
        asm("" : "+r"(place)); /* kept, not made anew on every path: NVRTC's optimiser would */
        whole = LAYOUT == LK || r0 + ROWS <= count;
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
            if constexpr (plain) {
                row[i] += (i64)k_at(0) * stride_of<W>(p.k.ax[0]);
                asm("" : "+l"(row[i])); /* an address in registers, not a sum that is made anew for every copy */
            }
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
    /* all of the tile's k exist */
    template <bool WHOLE> __device__ __forceinline__ void full(const st_params &p, u32 to, u32 k0) const
    {
        constexpr int step = LAYOUT == LK ? LF * V : LS;
        const i64 s1 = unit ? 1 : stride_of<W>(p.k.ax[0]), off = (i64)k0 * s1;
#pragma unroll
        for (int j = 0; j < KI; j++) {
            if (LAYOUT == LR && ragged && k_at(j) >= DEPTH) continue;
#pragma unroll
            for (int i = 0; i < RI; i++) {
                if (LAYOUT == LK && ragged && row_at(i) >= ROWS) continue;
                const u32 dst = S::linear ? to + place + S::at(row_at(i) - row_at(0), k_at(j) - k_at(0)) : to + S::at(row_at(i), k_at(j));
                const T *src = row[i] + (off + (i64)(j * step) * s1);
                if (WHOLE)
                    copy<V>(dst, src);
                else
                    copy<V>(dst, src, bytes[i]);
            }
        }
    }
    /* E elements; a complex one's parts may go to two places */
    template <int E> static __device__ __forceinline__ void copy(u32 dst, const T *src)
    {
        if constexpr (S::plane != 0) {
            copy_async<(int)sizeof(T) / 2>(dst, src);
            copy_async<(int)sizeof(T) / 2>(dst + S::plane, (const char *)src + sizeof(T) / 2);
        } else
            copy_async<E * (int)sizeof(T)>(dst, src);
    }
    template <int E> static __device__ __forceinline__ void copy(u32 dst, const T *src, u32 valid)
    {
        if constexpr (S::plane != 0) {
            copy_async<(int)sizeof(T) / 2>(dst, src, valid / 2);
            copy_async<(int)sizeof(T) / 2>(dst + S::plane, (const char *)src + sizeof(T) / 2, valid / 2);
        } else
            copy_async<E * (int)sizeof(T)>(dst, src, valid);
    }
    /* ---- rules: row - k + offset of the tile's elements lies from low to high ---- */
    __device__ __forceinline__ i64 low(const st_params &p, u32 k0) const { return (i64)r0 - (i64)(k0 + DEPTH - 1) + p.offset[W]; }
    __device__ __forceinline__ i64 high(const st_params &p, u32 k0) const { return (i64)(r0 + ROWS - 1) - (i64)k0 + p.offset[W]; }
    static __device__ __forceinline__ bool stored(i64 d) { return (rule & R_LOWER) != 0 ? d >= 0 : d <= 0; }
    __device__ __forceinline__ bool all_stored(const st_params &p, u32 k0) const
    {
        return (rule & R_LOWER) != 0 ? low(p, k0) >= (mends ? 1 : 0) : high(p, k0) <= (mends ? -1 : 0);
    }
    /* a tile of the mirror image, all of which exists */
    __device__ __forceinline__ bool all_mirrored(const st_params &p, u32 k0, u32 k1) const
    {
        const u32 count = W == OF_A ? p.M : p.N;
        return ((rule & R_LOWER) != 0 ? high(p, k0) < 0 : low(p, k0) > 0) && k0 + DEPTH <= k1 && r0 + ROWS <= count;
    }
    __device__ __forceinline__ void mirrored(const st_params &p, u32 to, u32 k0) const
    {
        /* what stands together along rows of what is stored stands together along k here: lanes go the other way */
        static_assert(rule == 0 || (LAYOUT == LR ? ROWS % (THREADS / 8) == 0 : THREADS % ROWS == 0), "lanes do not divide the image");
        constexpr int LR8 = THREADS / 8, COUNT = (ROWS * DEPTH + THREADS - 1) / THREADS;
        const i64 sr = stride_of<W>((W == OF_A ? p.m : p.n).ax[0]), sk = stride_of<W>(p.k.ax[0]);
        const u32 t = threadIdx.x, row = LAYOUT == LR ? t / 8 : t % ROWS, k = LAYOUT == LR ? t % 8 : t / ROWS;
        const T *src = origin + ((i64)k0 + k - p.offset[W]) * sr + ((i64)r0 + row + p.offset[W]) * sk;
#pragma unroll
        for (int c = 0; c < COUNT; c++) {
            const int dr = LAYOUT == LR ? c / (DEPTH / 8) * LR8 : 0, dk = LAYOUT == LR ? c % (DEPTH / 8) * 8 : c * (THREADS / ROWS);
            if ((LAYOUT == LR && row + dr >= ROWS) || (LAYOUT == LK && k + dk >= DEPTH)) continue;
            copy<1>(to + S::at(row + dr, k + dk), src + ((i64)dr * sk + (i64)dk * sr));
        }
    }
    /* a tile that the diagonal crosses, or an edge of the mirror image */
    __device__ __forceinline__ void elements(const st_params &p, u32 to, u32 k0, u32 k1) const
    {
        const st_list &l = W == OF_A ? p.m : p.n;
        const u32 count = W == OF_A ? p.M : p.N;
#pragma unroll 1
        for (int x = 0; x < RI * KI * V; x++) {
            const int i = x / V % RI, j = x / V / RI, e = x % V;
            const u32 row_in = row_at(i) + (LAYOUT == LR ? e : 0), k_in = k_at(j) + (LAYOUT == LK ? e : 0), r = r0 + row_in, k = k0 + k_in;
            if (row_in >= ROWS || k_in >= DEPTH) continue;
            const i64 d = (i64)r - (i64)k + p.offset[W];
            const bool here = stored(d), read = r < count && k < k1 && (here || (rule & R_MIRROR) != 0) && ((rule & R_UNIT) == 0 || d != 0);
            const T *src = origin;
            if (read && here)
                src += list_offset<W>(l, r) + (i64)k * stride_of<W>(p.k.ax[0]);
            else if (read)
                src += ((i64)k - p.offset[W]) * stride_of<W>(l.ax[0]) + ((i64)r + p.offset[W]) * stride_of<W>(p.k.ax[0]);
            copy<1>(to + S::at(row_in, k_in), src, read ? (u32)sizeof(T) : 0);
        }
    }
    /* Does shared memory hold what must be mended before use? */
    __device__ __forceinline__ bool amiss(const st_params &p, u32 k0) const
    {
        if ((rule & R_UNIT) != 0) return low(p, k0) <= 0 && high(p, k0) >= 0;
        return (rule & R_LOWER) != 0 ? low(p, k0) <= 0 : high(p, k0) >= 0;
    }
    __device__ __forceinline__ void mend(const st_params &p, char *stage, u32 k0, u32 k1) const
    {
        typedef typename parts<T>::word word;
        constexpr bool complex = sizeof(T) != sizeof(word);
        for (u32 x = threadIdx.x; x < ROWS * DEPTH; x += THREADS) {
            const u32 row_in = x % ROWS, k_in = x / ROWS;
            const i64 d = (i64)(r0 + row_in) - (i64)(k0 + k_in) + p.offset[W];
            word *re = (word *)(stage + S::at(row_in, k_in)), *im = (word *)((char *)re + (S::plane ? S::plane : complex ? sizeof(word) : 0));
            if ((rule & R_UNIT) != 0) {
                if (d == 0 && k0 + k_in < k1) *re = 1;
            } else if (d == 0)
                *im = 0;
            else if (!stored(d))
                *im = -*im;
        }
    }
    /* starts the copies of the tile at k0 into the stage at shared address `to` */
    __device__ __forceinline__ void start(const st_params &p, u32 to, u32 k0, u32 k1) const
    {
        if constexpr (rule != 0) {
            static_assert(plain, "a rule goes with one axis of k");
            if ((rule & R_MIRROR) != 0 && all_mirrored(p, k0, k1)) {
                mirrored(p, to, k0);
                return;
            }
            if (!all_stored(p, k0)) {
                elements(p, to, k0, k1);
                return;
            }
        }
        constexpr int step = LAYOUT == LK ? LF * V : LS;
        if constexpr (plain)
            if (k0 + DEPTH <= k1) {
                if (LAYOUT == LK || whole)
                    full<true>(p, to, k0);
                else
                    full<false>(p, to, k0);
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
                copy<V>(to + S::at(row_at(i), k_at(j)), n ? row[i] + off : row[i], n);
            }
        }
    }
};

/* Before the tile at k0 is used: what copies could not do. */
template <class A, class B> INL void mend_tile(const st_params &p, const A &a, const B &b, char *stage, u32 bytes_a, u32 k0, u32 k1)
{
    if constexpr (A::mends || B::mends) {
        bool any = false;
        if (A::mends && a.amiss(p, k0)) a.mend(p, stage, k0, k1), any = true;
        if (B::mends && b.amiss(p, k0)) b.mend(p, stage + bytes_a, k0, k1), any = true;
        if (any) __syncthreads();
    }
}

#include "generic_store.cuh"
#endif
#endif
