/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_batch.cu - many small products, each no larger than a BM x BN tile: a team of TM_THREADS x TN_THREADS threads has an item, TEAMS teams a block; each sum in one accumulator by
 * fused multiply-adds, k ascending, in f32 for 16-bit floats. Such products move more bytes than they multiply: what counts is that loads are wide and many, and few instructions.
 *
 * KC of k of both sides lie in shared memory as [k][row], in the type of the sums. V elements are one load where they stand together (as in generic.cuh) and an item's address
 * has the alignment, which is looked at here, for arrays of addresses may name any. No windows, no rules but conjugates (CA, CB), one axis each of m, n and k. */
#ifndef BM
#    define BM 16
#    define BN 16
#    define KC 16
#    define TM_THREADS 4
#    define TN_THREADS 4
#    define TEAMS 8
#    define LA LK
#    define VA 4
#    define LB LR
#    define VB 4
#endif
#ifndef TA
#    define TA f32
#    define TB f32
#    define TC f32
#    define TS f32
#    define WIN 0
#    define KAX 1
#    define CV 4
#    define SPLIT 0
#endif
#include "generic.cuh"

enum {
    TEAM = TM_THREADS * TN_THREADS,
    TM = BM / TM_THREADS,
    TN = BN / TN_THREADS,
    RUN = 16 / sizeof(TC) < TN ? 16 / sizeof(TC) : TN, /* columns of C that are stored at once */
    PAD = 16 / sizeof(TS),
    PITCH_A = BM + PAD,
    PITCH_B = BN + PAD,
    SIDE_A = KC * PITCH_A,
    BLOCKS = (sizeof(parts<TS>) == sizeof(parts<TS>::word) ? 512 : 256) / (TEAM * TEAMS), /* 128 or 255 registers: without it the compiler takes 80 and spills */
    ROOM = SIDE_A + KC * PITCH_B /* of a team */
};
static_assert(TEAM % 32 == 0 || 32 % TEAM == 0, "a warp has whole teams");

INL f32 summand(f32 v) { return v; }
INL f64 summand(f64 v) { return v; }
INL c64 summand(c64 v) { return v; }
INL c128 summand(c128 v) { return v; }
INL f32 summand(f16 v) { return to_f32(v); }
INL f32 summand(bf16 v) { return to_f32(v); }
INL f32 turned(f32 v) { return v; }
INL f64 turned(f64 v) { return v; }
template <class T> INL T turned(T v) { return T{v.re, -v.im}; }
INL void clear(f32 &v) { v = 0; }
INL void clear(f64 &v) { v = 0; }
template <class T> INL void clear(T &v) { v.re = v.im = 0; }
INL void add(f32 &c, f32 a, f32 b) { c = fma(a, b, c); }
INL void add(f64 &c, f64 a, f64 b) { c = fma(a, b, c); }
template <class T> INL void add(T &c, T a, T b)
{
    c.re = fma(a.re, b.re, c.re);
    c.im = fma(a.re, b.im, c.im);
    c.re = fma(-a.im, b.im, c.re);
    c.im = fma(a.im, b.re, c.im);
}
template <int N> INL void fetch(TS *to, const TS *from)
{
    constexpr int bytes = N * (int)sizeof(TS);
    if constexpr (bytes % 16 == 0)
#pragma unroll
        for (int i = 0; i < bytes / 16; i++) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
    else
#pragma unroll
        for (int i = 0; i < N; i++) to[i] = from[i];
}

/* One side: ROWS rows of an item. */
template <class T, int W, int ROWS, int LAYOUT, int V, int PITCH, bool CONJ> struct side {
    static constexpr int FAST = (LAYOUT == LK ? KC : ROWS) / V, SLOW = LAYOUT == LK ? ROWS : KC, COUNT = (FAST * SLOW + TEAM - 1) / TEAM;
    static constexpr int PIECE = COUNT * V * (int)sizeof(T) <= 128 && COUNT <= 8 ? COUNT : V * sizeof(T) <= 8 ? 8 : 4; /* loads on their way at once */
    static_assert(COUNT % PIECE == 0, "pieces divide a side");
    static_assert((LAYOUT == LK ? KC : ROWS) % V == 0, "copies divide a side");
    const T *base;
    i64 sr, sk;
    u32 rows, k;
    int t;
    bool wide;
    METHOD void begin(const st_params &p, u32 g, int thread, bool there)
    {
        const st_list &l = W == OF_A ? p.m : p.n;
        base = matrix<const T, W>(p, g);
        sr = l.count ? stride_of<W>(l.ax[0]) : 0;
        sk = stride_of<W>(p.k.ax[0]);
        rows = there ? (W == OF_A ? p.M : p.N) : 0;
        k = p.K;
        t = thread;
        wide = V > 1 && (u64)base % (V * sizeof(T)) == 0;
    }
    METHOD void load(TS *room, u32 k0) const
    {
#pragma unroll(PIECE < COUNT ? 1 : COUNT)
        for (int first = 0; first < COUNT; first += PIECE) piece(room, k0, first);
    }
    METHOD void piece(TS *room, u32 k0, int first) const
    {
        lanes<T, V> v[PIECE];
#pragma unroll
        for (int i = 0; i < PIECE; i++) {
            const int at = t + (first + i) * TEAM, slow = at / FAST, fast = at % FAST * V;
            const u32 r = LAYOUT == LK ? slow : fast, kk = k0 + (LAYOUT == LK ? fast : slow);
#pragma unroll
            for (int e = 0; e < V; e++) v[i].e[e] = T();
            if (r < rows && kk < k && (FAST * SLOW % TEAM == 0 || at < FAST * SLOW)) {
                const T *from = base + r * sr + kk * sk;
                if (wide)
                    v[i] = *(const lanes<T, V> *)from;
                else
#pragma unroll
                    for (int e = 0; e < V; e++) v[i].e[e] = from[e];
            }
        }
#pragma unroll
        for (int i = 0; i < PIECE; i++) {
            const int at = t + (first + i) * TEAM, slow = at / FAST, fast = at % FAST * V;
            if (FAST * SLOW % TEAM != 0 && at >= FAST * SLOW) continue;
            TS x[V];
#pragma unroll
            for (int e = 0; e < V; e++) {
                x[e] = summand(v[i].e[e]);
                if (CONJ) x[e] = turned(x[e]);
            }
            if (LAYOUT == LK)
#pragma unroll
                for (int e = 0; e < V; e++) room[(fast + e) * PITCH + slow] = x[e];
            else
#pragma unroll
                for (int e = 0; e < V; e++) room[slow * PITCH + fast + e] = x[e];
        }
    }
};

INL void meet()
{
    if (TEAM <= 32)
        __syncwarp();
    else
        __syncthreads();
}

extern "C" __global__ void __launch_bounds__(TEAM * TEAMS, BLOCKS) gemm_batch(const __grid_constant__ st_params p)
{
    extern __shared__ __align__(16) char shared[];
    const int team = threadIdx.x / TEAM, t = threadIdx.x % TEAM, tm = t / TN_THREADS, tn = t % TN_THREADS;
    TS *room = (TS *)shared + team * ROOM;
    const u32 item = blockIdx.x * TEAMS + team;
    const bool there = item < p.G;
    st_tile tile = {there ? item : p.G - 1, 0, 0, 0, 0, p.K};
    side<TA, OF_A, BM, LA, VA, PITCH_A, CA> a;
    side<TB, OF_B, BN, LB, VB, PITCH_B, CB> b;
    a.begin(p, tile.g, t, there);
    b.begin(p, tile.g, t, there);
    TS acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) clear(acc[i][j]);
    const TS *pa = room + tm * TM, *pb = room + SIDE_A + tn * TN;
    for (u32 k0 = 0; k0 < p.K; k0 += KC) {
        if (k0) meet();
        a.load(room, k0);
        b.load(room + SIDE_A, k0);
        meet();
        const int count = (int)min((u32)KC, p.K - k0);
#pragma unroll 4
        for (int k = 0; k < count; k++) {
            TS x[TM], y[TN];
            fetch<TM>(x, pa + k * PITCH_A);
            fetch<TN>(y, pb + k * PITCH_B);
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) add(acc[i][j], x[i], y[j]);
        }
    }
    if (!there) return;
    st_store<TS> c;
    st_columns<TN / RUN, RUN, RUN> cols;
    c.begin(p, tile);
    cols.begin(p, tn * TN);
#pragma unroll
    for (int i = 0; i < TM; i++) c.row(p, tile, tm * TM + i, cols, [&](int j) { return &acc[i][j * RUN]; });
}
