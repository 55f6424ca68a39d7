/* SPDX-License-Identifier: Apache-2.0 */
/* triangle.cu - B := alpha A B or B := alpha A^-1 B in place, A lower triangular of order n (an upper one is one read from its end), for a batch. A block has CPL * 32 columns
 * of one item, all rows of them in shared memory, and goes through A in tiles of 32 x 32, which come through a ring of asynchronous copies:
 *
 *     solution, rows ascending:   S = sum_j A_ij X_j (j < i),  X_i = inverse(A_ii) (alpha B_i - S)
 *     product, rows descending:   B_i = alpha (sum_j A_ij B_j + A_ii B_i)
 *
 * The tiles of the diagonal are inverted first, each by a warp, a lane having a column of the identity. A warp has four rows of a tile's product, a lane one column (CPL
 * of them, 32 apart): a row's four numbers of A are one broadcast load. Terms of the diagonal's tile beyond the diagonal are left out, not multiplied by zero, so that a NaN goes
 * where the definition says and no further. conj(A) is A with B conjugated before and after. Sums ascend along j; they depend on n alone. */
#ifndef T
#    define T f32
#    define SOLVE 1
#    define CPL 1
#endif
#include "triangle.cuh"
#include "mma.cuh"

enum {
    NB = 32,
    STAGES = 4,
    BN = 32 * CPL,
    AP = NB + 16 / sizeof(T), /* [k][row]: eight of k by four rows fall into different banks, four rows are aligned to 16 bytes */
    XP = BN + 1,
    TILE = NB * AP
};

/* ---- copies ---------------------------------------------------------------------------------------------------------------- */
/* One element, its parts apart where it has two: their alignment is all that is asked for. */
INL void fetch(T *to, const T *from, bool exists)
{
    const u32 dst = shared_address(to);
    constexpr int size = sizeof(R);
    copy_async<size>(dst, from, exists ? size : 0);
    if (number<T>::complex) copy_async<size>(dst + size, (const char *)from + size, exists ? size : 0);
}

struct walk { /* places of a 32 x 32 tile of A: rows are neighbours, or eight of k */
    const T *a;
    i64 ars, acs;
    int row, k, row_step, k_step; /* of a whole block, a thread's places are in one row */
    METHOD void begin(const T *base, i64 rs, i64 cs)
    {
        const int t = threadIdx.x;
        const bool along_rows = (rs < 0 ? -rs : rs) < (cs < 0 ? -cs : cs);
        a = base;
        ars = rs;
        acs = cs;
        row = along_rows ? t % 32 : t / 8 % 32;
        k = along_rows ? t / 32 : t % 8;
        k_step = along_rows ? (int)blockDim.x / 32 : 8;
        row_step = along_rows ? 32 : (int)blockDim.x / 8;
    }
    /* calls f(row, k) for the thread's places */
    template <class F> METHOD void each(F f) const
    {
        for (int kk = k; kk < NB; kk += k_step)
            for (int r = row; r < NB; r += row_step) f(r, kk);
    }
};

struct block {
    T *stage, *diagonal, *x;
    i64 n, rows; /* rows: n in whole tiles */
    int warp, lane, tiles;
};

/* The tile at (i, j) below the diagonal into its place of the ring; 256 threads */
INL void start(const block &s, const walk &w, T *to, int i, int j)
{
    const i64 m = (i64)i * NB + w.row;
    const bool exists = m < s.n;
    const T *from = exists ? w.a + m * w.ars + ((i64)j * NB + w.k) * w.acs : w.a;
    const i64 step = exists ? w.k_step * w.acs : 0;
    to += w.k * AP + w.row;
#pragma unroll
    for (int e = 0; e < NB / 8; e++, from += step, to += w.k_step * AP) fetch(to, from, exists);
}

INL void load_diagonal(const block &s, const walk &w, bool unit)
{
    for (int i = 0; i < s.tiles; i++)
        w.each([&](int r, int k) {
            const i64 m = (i64)i * NB + r, q = (i64)i * NB + k;
            T *to = s.diagonal + i * TILE + k * AP + r;
            const bool one = unit && r == k, exists = m < s.n && q < s.n && k <= r && !one;
            fetch(to, exists ? w.a + m * w.ars + q * w.acs : w.a, exists);
        });
}

/* rows along, or columns along lanes */
template <class F> INL void each_of_panel(const block &s, bool along_rows, F f)
{
    const int warps = blockDim.x / 32;
    if (along_rows)
        for (int c = s.warp; c < BN; c += warps)
            for (int r = s.lane; r < s.rows; r += 32) f(r, c);
    else
        for (int r = s.warp; r < s.rows; r += warps)
            for (int c = s.lane; c < BN; c += 32) f(r, c);
}

/* ---- the diagonal ----------------------------------------------------------------------------------------------------------- */
INL void load_rows(T *to, const T *at) /* four numbers */
{
#pragma unroll
    for (int i = 0; i < (int)(4 * sizeof(T) / 16); i++) *(uint4 *)((char *)to + 16 * i) = *(const uint4 *)((const char *)at + 16 * i);
}
INL void store_rows(T *at, const T *from)
{
#pragma unroll
    for (int i = 0; i < (int)(4 * sizeof(T) / 16); i++) *(uint4 *)((char *)at + 16 * i) = *(const uint4 *)((const char *)from + 16 * i);
}

/* A warp's tile of order m becomes its inverse, lane c having column c: x_k is final after k steps. */
INL void invert(T *tile, int m, int lane)
{
    T x[NB];
#pragma unroll
    for (int r = 0; r < NB; r++) x[r] = of(r == lane ? 1 : 0);
    const T mine = inverse(tile[lane * AP + lane]);
#pragma unroll
    for (int k = 0; k < NB; k++) {
        if (k < m) {
            const T d = from_lane(mine, k);
            T v = of(0);
            add(v, x[k], d);
            x[k] = k >= lane ? v : of(0);
            const T minus_x = minus(of(0), x[k]);
#pragma unroll
            for (int q = (k + 1) / 4; q < NB / 4; q++) {
                T a[4];
                load_rows(a, tile + k * AP + q * 4);
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (q * 4 + i > k) add(x[q * 4 + i], a[i], minus_x);
            }
        }
    }
    __syncwarp();
#pragma unroll
    for (int q = 0; q < NB / 4; q++) store_rows(tile + lane * AP + q * 4, x + q * 4);
}

/* ---- products of a tile ----------------------------------------------------------------------------------------------------- */
struct sums {
    T v[4][CPL];
    METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < CPL; c++) v[i][c] = of(0);
    }
    /* from: rows of this tile that take k, the first of the warp's four */
    METHOD void step(const T *tile, const T *x, int k, int from)
    {
        T a[4], b[CPL];
        load_rows(a, tile + k * AP);
#pragma unroll
        for (int c = 0; c < CPL; c++) b[c] = x[k * XP + 32 * c];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < CPL; c++)
                if (i >= from) add(v[i][c], a[i], b[c]);
    }
    /* tile: at the warp's rows; x: at the lane's column */
    METHOD void all(const T *tile, const T *x)
    {
#pragma unroll 8
        for (int k = 0; k < NB; k++) step(tile, x, k, 0);
    }
    METHOD void triangle(const T *tile, const T *x, int row)
    {
#pragma unroll 4
        for (int k = 0; k < row; k++) step(tile, x, k, 0);
#pragma unroll
        for (int k = 0; k < 4; k++) step(tile + row * AP, x + row * XP, k, k);
    }
};

extern "C" __global__ void __launch_bounds__(256) triangle(const __grid_constant__ st_triangle p)
{
    extern __shared__ __align__(16) char shared[];
    block s;
    s.n = p.n;
    s.tiles = (int)((p.n + NB - 1) / NB);
    s.rows = (i64)s.tiles * NB;
    s.warp = threadIdx.x / 32;
    s.lane = threadIdx.x % 32;
    s.stage = (T *)shared;
    s.diagonal = s.stage + (s.tiles > 1 ? STAGES * TILE : 0);
    s.x = s.diagonal + s.tiles * TILE;
    const u32 item = blockIdx.x / p.panels, first = blockIdx.x - item * p.panels;
    const T *a;
    T *b;
    matrices(p, item, a, b);
    const i64 col0 = (i64)first * BN;
    const bool b_rows = (p.brs < 0 ? -p.brs : p.brs) < (p.bcs < 0 ? -p.bcs : p.bcs);

    walk w;
    w.begin(a, p.ars, p.acs);
    load_diagonal(s, w, p.unit);
    each_of_panel(s, b_rows, [&](int r, int c) {
        const bool exists = r < s.n && col0 + c < p.cols;
        fetch(s.x + r * XP + c, exists ? b + r * p.brs + (col0 + c) * p.bcs : b, exists);
    });
    copy_commit();
    /* the ring: the next tile that is fetched */
    int ni = SOLVE ? 1 : s.tiles - 1, nj = 0, filled = 0, used = 0;
    auto next = [&] {
        if (SOLVE ? ni < s.tiles : ni > 0) {
            start(s, w, s.stage + filled * TILE, ni, nj);
            if (++nj == ni) ni += SOLVE ? 1 : -1, nj = 0;
        }
        copy_commit();
        filled = filled + 1 == STAGES ? 0 : filled + 1;
    };
    for (int i = 0; i < STAGES - 1; i++) next();
    copy_wait<STAGES - 1>();
    if (p.conj)
        each_of_panel(s, b_rows, [&](int r, int c) { s.x[r * XP + c] = conjugate(s.x[r * XP + c]); });
    if (p.unit)
        w.each([&](int r, int k) {
            if (r == k)
                for (int i = 0; i < s.tiles; i++) s.diagonal[i * TILE + k * AP + r] = of(1);
        });
    __syncthreads();
    if (SOLVE) {
        for (int i = s.warp; i < s.tiles; i += (int)blockDim.x / 32) invert(s.diagonal + i * TILE, (int)min((i64)NB, s.n - (i64)i * NB), s.lane);
        __syncthreads();
    }
    const double alpha_im = p.conj ? -p.alpha_im : p.alpha_im;
    const int row = s.warp * 4;
    for (int q = 0; q < s.tiles; q++) {
        const int i = SOLVE ? q : s.tiles - 1 - q;
        T *xi = s.x + i * NB * XP + s.lane;
        const T *d = s.diagonal + i * TILE + row;
        sums acc;
        acc.clear();
        for (int j = 0; j < i; j++) {
            copy_wait<STAGES - 2>();
            __syncthreads();
            next();
            acc.all(s.stage + used * TILE + row, s.x + j * NB * XP + s.lane);
            used = used + 1 == STAGES ? 0 : used + 1;
        }
        if (SOLVE) {
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < CPL; c++) {
                    T *at = xi + (row + r) * XP + 32 * c;
                    *at = minus(scaled(*at, p.alpha, alpha_im), acc.v[r][c]);
                }
            __syncthreads();
            acc.clear();
        }
        acc.triangle(d, xi, row);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int c = 0; c < CPL; c++) xi[(row + r) * XP + 32 * c] = SOLVE ? acc.v[r][c] : scaled(acc.v[r][c], p.alpha, alpha_im);
        __syncthreads();
    }
    each_of_panel(s, b_rows, [&](int r, int c) {
        if (r >= s.n || col0 + c >= p.cols) return;
        const T v = s.x[r * XP + c];
        b[r * p.brs + (col0 + c) * p.bcs] = p.conj ? conjugate(v) : v;
    });
}
