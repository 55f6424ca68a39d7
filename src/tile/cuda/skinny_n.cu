/* SPDX-License-Identifier: Apache-2.0 */
/* skinny_n.cu - products with at most 16 rows on one side, where the other side (the weights, W) lies along its rows (n): bound by reading W once.
 *
 * 16-bit types: a lane takes 16 bytes (8 rows of W) at each of four k, pairs the k by byte permutation, and so has the fragments of four m16n8k16 instructions: rows of
 * an instruction are every eighth row of W, which is as good as neighbours. VN: 8, or 16 for two runs of 64 rows a warp (longer runs of memory). f32: a lane has VN rows at four k and multiplies by the cores. The WARPS warps of a
 * block take turns along k and add their sums in order. Names as in skinny_k.cu; both sides have one axis each. */
#ifndef TA
#    define TA bf16
#    define TB bf16
#    define TC bf16
#    define ROWS_X 8
#    define WARPS 16
#    define VN 4
#    define XA 1
#    define VW 1
#    define VX 1
#endif
#define WIN 0
#define KAX 1
#define CV 1
#include "generic.cuh"

#if XA
typedef TA tx;
typedef TB tw;
#    define X_OF OF_A
#    define W_OF OF_B
#else
typedef TB tx;
typedef TA tw;
#    define X_OF OF_B
#    define W_OF OF_A
#endif

struct st_sides {
    const tw *w;
    const tx *x;
    i64 wk, xk, xr, wr; /* strides along k and along rows */
    u32 many, few, k1;
};

#if defined(SKINNY_F32)
enum { BW = 32 * VN, DEPTH = 4, U = ROWS_X > 4 ? 1 : 2, SUMS = ROWS_X * VN, AT_ONCE = ROWS_X < 4 ? ROWS_X : 4 };
typedef float sum_type;
/* U times four k; WIDE: they and the lane's rows all exist and are aligned */
template <bool WIDE> INL void step(const st_sides &s, u32 n, u32 k, float (*acc)[VN])
{
    float w[U * 4][VN];
#    pragma unroll
    for (int u = 0; u < U * 4; u++) {
        const float *at = s.w + (i64)(k + u) * s.wk + n;
        if (WIDE && VN == 4) {
            const float4 v = __ldcs((const float4 *)at);
            w[u][0] = v.x, w[u][1] = v.y, w[u][VN - 2] = v.z, w[u][VN - 1] = v.w;
        } else if (WIDE && VN == 2) {
            const float2 v = __ldcs((const float2 *)at);
            w[u][0] = v.x, w[u][1] = v.y;
        } else
#    pragma unroll
            for (int i = 0; i < VN; i++) w[u][i] = n + i < s.many && k + u < s.k1 ? s.w[(i64)(k + u) * s.wk + (i64)(n + i) * s.wr] : 0.f;
    }
#    pragma unroll
    for (int x = 0; x < ROWS_X; x++) {
        const float *at = s.x + (i64)min((u32)x, s.few - 1) * s.xr;
#    pragma unroll
        for (int u = 0; u < U; u++) {
            float v[4];
            if (WIDE) {
                const float4 f = *(const float4 *)(at + k + u * 4);
                v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
            } else
#    pragma unroll
                for (int i = 0; i < 4; i++) v[i] = k + u * 4 + i < s.k1 ? at[(i64)(k + u * 4 + i) * s.xk] : 0.f;
#    pragma unroll
            for (int i = 0; i < 4; i++)
#    pragma unroll
                for (int j = 0; j < VN; j++) acc[x][j] = fma(w[u * 4 + i][j], v[i], acc[x][j]);
        }
        if (x % 4 == 3) asm volatile("" ::: "memory"); /* not all loads of X ahead of all products: registers */
    }
}
#else
enum { NC = VN / 8, BW = 64 * NC, DEPTH = 16, U = NC > 1 ? 1 : 2, FX = ROWS_X > 8 ? 2 : 1, AT_ONCE = 8 };
typedef float sum_type;
INL u32 half_word(const void *at) { return *(const u16 *)at; }
template <bool WIDE> INL void step(const st_sides &s, u32 n, u32 k, float (*acc)[FX][4])
{
    const u32 q = threadIdx.x % 4, r = threadIdx.x % 32 / 4;
    u32 w[U][4][NC][4], v[U][FX][2];
#    pragma unroll
    for (int u = 0; u < U; u++)
#    pragma unroll
        for (int i = 0; i < 4; i++)
#    pragma unroll
            for (int c = 0; c < NC; c++) {
                const u32 at = k + u * 16 + q * 2 + i % 2 + i / 2 * 8, n1 = n + c * 64;
                u32 *const to = w[u][i][c];
                if (WIDE)
                    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                                 : "l"(s.w + (i64)at * s.wk + n1));
                else
#    pragma unroll
                    for (int j = 0; j < 4; j++) {
                        to[j] = 0;
                        if (at < s.k1 && n1 + j * 2 < s.many) to[j] = half_word(s.w + (i64)at * s.wk + (i64)(n1 + j * 2) * s.wr);
                        if (at < s.k1 && n1 + j * 2 + 1 < s.many)
                            to[j] |= half_word(s.w + (i64)at * s.wk + (i64)(n1 + j * 2 + 1) * s.wr) << 16;
                    }
            }
#    pragma unroll
    for (int u = 0; u < U; u++)
#    pragma unroll
        for (int x = 0; x < FX; x++)
#    pragma unroll
            for (int h = 0; h < 2; h++) {
                const u32 at = k + u * 16 + q * 2 + h * 8;
                const tx *from = s.x + (i64)(x * 8 + r) * s.xr;
                v[u][x][h] = 0;
                if (x * 8 + r < s.few) {
                    if (WIDE)
                        v[u][x][h] = *(const u32 *)(from + at);
                    else {
                        if (at < s.k1) v[u][x][h] = half_word(from + (i64)at * s.xk);
                        if (at + 1 < s.k1) v[u][x][h] |= half_word(from + (i64)(at + 1) * s.xk) << 16;
                    }
                }
            }
#    pragma unroll
    for (int u = 0; u < U; u++)
#    pragma unroll
        for (int j = 0; j < 4 * NC; j++) {
            const u32 w0 = w[u][0][j / 4][j % 4], w1 = w[u][1][j / 4][j % 4], w2 = w[u][2][j / 4][j % 4], w3 = w[u][3][j / 4][j % 4];
            const u32 a[4] = {__byte_perm(w0, w1, 0x5410), __byte_perm(w0, w1, 0x7632), __byte_perm(w2, w3, 0x5410),
                              __byte_perm(w2, w3, 0x7632)};
#    pragma unroll
            for (int x = 0; x < FX; x++) product<tw, tx>::add(acc[j][x], a, v[u][x][0], v[u][x][1]);
        }
}
#endif

/* below 9.0 ptxas, left to itself, spills a few bytes for a second block's sake */
#if __CUDA_ARCH__ < 900
#    define BOUNDS __launch_bounds__(WARPS * 32, 1)
#else
#    define BOUNDS __launch_bounds__(WARPS * 32)
#endif
extern "C" __global__ void BOUNDS skinny_n(const __grid_constant__ st_params p)
{
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    st_tile t;
    t.split = blockIdx.y;
    t.k0 = t.split * p.k_split;
    t.k1 = min(p.K, t.k0 + p.k_split);
    const u32 tiles = XA ? p.tiles_n : p.tiles_m;
    t.g = blockIdx.x / tiles;
    const u32 w0 = (blockIdx.x - t.g * tiles) * BW;
    st_sides s;
    s.w = (const tw *)(XA ? p.b : p.a) + list_offset<W_OF>(p.batch, t.g);
    s.x = (const tx *)(XA ? p.a : p.b) + list_offset<X_OF>(p.batch, t.g);
    s.wk = stride_of<W_OF>(p.k.ax[0]);
    s.xk = stride_of<X_OF>(p.k.ax[0]);
    s.wr = stride_of<W_OF>((XA ? p.n : p.m).ax[0]);
    s.xr = stride_of<X_OF>((XA ? p.m : p.n).ax[0]);
    s.many = XA ? p.N : p.M;
    s.few = XA ? p.M : p.N;
    s.k1 = t.k1;
    const bool whole = VW && VX && w0 + BW <= s.many;
    u32 k = t.k0 + warp * (U * DEPTH);
#if defined(SKINNY_F32)
    __shared__ float part[WARPS][AT_ONCE * BW];
    float acc[ROWS_X][VN];
#    pragma unroll
    for (int x = 0; x < ROWS_X; x++)
#    pragma unroll
        for (int i = 0; i < VN; i++) acc[x][i] = 0;
    const u32 n = w0 + lane * VN;
#else
    __shared__ float part[WARPS][AT_ONCE * BW];
    float acc[4 * NC][FX][4];
#    pragma unroll
    for (int j = 0; j < 4 * NC; j++)
#    pragma unroll
        for (int x = 0; x < FX; x++)
#    pragma unroll
            for (int h = 0; h < 4; h++) acc[j][x][h] = 0;
    const u32 n = w0 + lane / 4 * 8;
#endif
    if (whole)
        for (; k + U * DEPTH <= t.k1; k += WARPS * U * DEPTH) step<true>(s, n, k, acc);
    for (; k < t.k1; k += WARPS * U * DEPTH) step<false>(s, n, k, acc);

    st_store<float> c;
    c.begin(p, t);
#if defined(SKINNY_F32)
    enum { ROUNDS = ROWS_X / AT_ONCE };
#else
    enum { ROUNDS = FX };
#endif
#pragma unroll
    for (int round = 0; round < ROUNDS; round++) {
        if (round) __syncthreads();
#if defined(SKINNY_F32)
#    pragma unroll
        for (int x = 0; x < AT_ONCE; x++)
#    pragma unroll
            for (int i = 0; i < VN; i++) part[warp][x * BW + lane * VN + i] = acc[round * AT_ONCE + x][i];
#else
#    pragma unroll
        for (int j = 0; j < 4 * NC; j++)
#    pragma unroll
            for (int h = 0; h < 4; h++) part[warp][(lane % 4 * 2 + h % 2) * BW + j / 4 * 64 + lane / 4 * 8 + j % 4 * 2 + h / 2] = acc[j][round][h];
#endif
        __syncthreads();
        for (u32 i = threadIdx.x; i < AT_ONCE * BW; i += WARPS * 32) {
            float v = part[0][i];
#pragma unroll
            for (int j = 1; j < WARPS; j++) v += part[j][i];
            const u32 w = w0 + i % BW, x = round * AT_ONCE + i / BW;
            if (x < s.few) {
                st_columns<1, 1, 1> cols;
                cols.begin(p, XA ? w : x);
                c.row(p, t, XA ? x : w, cols, [&](int) { return &v; });
            }
        }
    }
}
