/* SPDX-License-Identifier: Apache-2.0 */
/* skinny_k.cu - products with at most 16 rows on one side, where the other side (the weights, W) lies along k: bound by reading W once.
 *
 * A warp multiplies 16 * FW rows of W with all rows of X by m16n8 tensor instructions whose fragments come straight from global memory: the order of k inside an
 * instruction is free as long as both sides use the same, so a lane takes 16 bytes of a row (8 or 16 elements) and feeds them to two instructions. WK warps of a block
 * take turns along k and add their sums in order. X is read through L1 (W passes it by). f32 is multiplied by the
 * cores: a warp has FW rows of W, a lane four k of each, and the lanes' sums are added by halves.
 * ROWS_X (1, 2, 4, 8, 16): rows of X at most; AHEAD: steps of k whose loads are in flight together;
 * WK: warps along k, the others have other rows of W (then X is read less often). X is A where XA is 1, else B. VW, VX: 1 where W or X may not be read 16 bytes at a time. */
#ifndef TA
#    define TA bf16
#    define TB bf16
#    define TC bf16
#    define ROWS_X 8
#    define FW 2
#    define XA 1
#    define VW 0
#    define VX 0
#    define AHEAD 2
#    define WK 8
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
enum { ES = sizeof(tw), EACH = 16 / ES, WARPS = 8, WR = WARPS / WK };

/* 16 bytes of a row from element k on. WIDE: they exist and are aligned; else element by element, zero past k1. W passes L1 by. */
template <class T, bool WIDE, bool STREAM> INL uint4 piece(const T *row, u32 k, u32 k1, i64 stride)
{
    uint4 v = {0, 0, 0, 0};
    if constexpr (WIDE && STREAM) {
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(row + k));
        return v;
    } else if constexpr (WIDE)
        return *(const uint4 *)(row + k);
    u32 w[4] = {0, 0, 0, 0};
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (k + e < k1) {
            const T *at = row + (i64)(k + e) * stride;
            if (ES == 4)
                w[e] = *(const u32 *)at;
            else if (ES == 2)
                w[e / 2] |= (u32) * (const u16 *)at << e % 2 * 16;
            else
                w[e / 4] |= (u32) * (const u8 *)at << e % 4 * 8;
        }
    v.x = w[0], v.y = w[1], v.z = w[2], v.w = w[3];
    return v;
}

/* N sums a lane over D * 2 lanes: each step a lane keeps half of its sums and gives the other half away, while there is more than one */
template <int N, int D> INL void halve(float *acc, u32 &first)
{
    const bool upper = threadIdx.x & D;
    if constexpr (N > 1) {
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            const float give = upper ? acc[i] : acc[i + N / 2], keep = upper ? acc[i + N / 2] : acc[i];
            acc[i] = keep + __shfl_xor_sync(~0u, give, D);
        }
        first += upper ? N / 2 : 0;
    } else
        acc[0] += __shfl_xor_sync(~0u, acc[0], D);
    if constexpr (D > 1) halve<(N > 1 ? N / 2 : 1), D / 2>(acc, first);
}

#if defined(SKINNY_F32)
#    if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#        define MANY 8
#    else
#        define MANY 16
#    endif
enum { ROWS_W = FW, STEPS = AHEAD, BLOCKS = VW && VX && (ROWS_X <= 8 || (ROWS_X <= MANY && WK == 1)) ? 2 : 1 }; /* rows of a warp; blocks a multiprocessor */
typedef float sum_type;
#else
enum { ROWS_W = 16 * FW, BLOCKS = ROWS_X > 8 ? 1 : 2 };
typedef product<tw, tx>::acc sum_type;
#endif

#if defined(SKINNY_F32)
template <bool WIDE>
INL void step_f32(const float *const *row, const float *x0, i64 xr, u32 few, u32 k, u32 k1, i64 sw, i64 sx, float *acc)
{
    uint4 w[FW];
#    pragma unroll
    for (int i = 0; i < FW; i++) w[i] = piece<float, WIDE, true>(row[i], k, k1, sw);
#    pragma unroll
    for (int x = 0; x < ROWS_X; x++) {
        const uint4 v = piece<float, WIDE, false>(x0, k, k1, sx);
        if (x + 1 < few) x0 += xr;
#    pragma unroll
        for (int i = 0; i < FW; i++) {
            float s = acc[i * ROWS_X + x];
            s = fma(__uint_as_float(w[i].x), __uint_as_float(v.x), s);
            s = fma(__uint_as_float(w[i].y), __uint_as_float(v.y), s);
            s = fma(__uint_as_float(w[i].z), __uint_as_float(v.z), s);
            acc[i * ROWS_X + x] = fma(__uint_as_float(w[i].w), __uint_as_float(v.w), s);
        }
        if (x % 4 == 3) asm volatile("" ::: "memory"); /* not all loads of X ahead of all products: registers */
    }
}
#else
enum { FX = ROWS_X > 8 ? 2 : 1, PART = 4 * EACH }; /* 64 bytes of a row a pair of instructions */
template <bool WIDE, int N>
INL void step_mma(const tw *const *row, const tx *const *xrow, u32 k, u32 k1, i64 sw, i64 sx, u32 few, sum_type (*acc)[FX][4])
{
    uint4 w[N][FW * 2], v[N][FX];
#    pragma unroll
    for (int u = 0; u < N; u++)
#    pragma unroll
        for (int i = 0; i < FW * 2; i++) w[u][i] = piece<tw, WIDE, true>(row[i], k + u * PART, k1, sw);
#    pragma unroll
    for (int u = 0; u < N; u++)
#    pragma unroll
        for (int x = 0; x < FX; x++) {
            v[u][x] = uint4{0, 0, 0, 0};
            if (x * 8 + threadIdx.x % 32 / 4 < few) v[u][x] = piece<tx, WIDE, false>(xrow[x], k + u * PART, k1, sx);
        }
#    pragma unroll
    for (int u = 0; u < N; u++)
#    pragma unroll
        for (int i = 0; i < FW; i++) {
            const uint4 lo = w[u][i * 2], hi = w[u][i * 2 + 1];
            const u32 a0[4] = {lo.x, hi.x, lo.y, hi.y}, a1[4] = {lo.z, hi.z, lo.w, hi.w};
#    pragma unroll
            for (int x = 0; x < FX; x++) {
                product<tw, tx>::add(acc[i][x], a0, v[u][x].x, v[u][x].y);
                product<tw, tx>::add(acc[i][x], a1, v[u][x].z, v[u][x].w);
            }
        }
}
#endif

extern "C" __global__ void __launch_bounds__(WARPS * 32, BLOCKS) skinny_k(const __grid_constant__ st_params p)
{
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    st_tile t;
    t.split = blockIdx.y;
    t.k0 = t.split * p.k_split;
    t.k1 = min(p.K, t.k0 + p.k_split);
    const st_list &lw = XA ? p.n : p.m, &lx = XA ? p.m : p.n;
    const u32 many = XA ? p.N : p.M, few = XA ? p.M : p.N, tiles = XA ? p.tiles_n : p.tiles_m;
    t.g = blockIdx.x / tiles;
    const u32 block = (blockIdx.x - t.g * tiles) * (ROWS_W * WR), w0 = block + warp / WK * ROWS_W, turn = warp % WK;
    const tw *wbase = (const tw *)(XA ? p.b : p.a) + list_offset<W_OF>(p.batch, t.g);
    const tx *xbase = (const tx *)(XA ? p.a : p.b) + list_offset<X_OF>(p.batch, t.g);
    const i64 sw = stride_of<W_OF>(p.k.ax[0]), sx = stride_of<X_OF>(p.k.ax[0]);
#if defined(SKINNY_F32)
    __shared__ float part[WK][WR * ROWS_W * ROWS_X];
    const float *row[FW];
    const i64 xr = stride_of<X_OF>(lx.ax[0]);
    float acc[FW * ROWS_X];
#    pragma unroll
    for (int i = 0; i < FW; i++) row[i] = wbase + list_offset<W_OF>(lw, min(w0 + i, many - 1));
#    pragma unroll
    for (int i = 0; i < FW * ROWS_X; i++) acc[i] = 0;
    u32 k = t.k0 + turn * 128;
    if (VW && VX)
#    pragma unroll(STEPS)
        for (; k + 128 <= t.k1; k += WK * 128) step_f32<true>(row, xbase, xr, few, k + lane * 4, t.k1, sw, sx, acc);
#    pragma unroll 1
    for (; k < t.k1; k += WK * 128) step_f32<false>(row, xbase, xr, few, k + lane * 4, t.k1, sw, sx, acc);
    u32 first = 0;
    halve<FW * ROWS_X, 16>(acc, first);
    const int left = FW * ROWS_X >= 32 ? FW * ROWS_X / 32 : 1;
#    pragma unroll
    for (int i = 0; i < left; i++) part[turn][warp / WK * (ROWS_W * ROWS_X) + first + i] = acc[i]; /* lanes that hold the same sum store the same value */
    const int pitch = ROWS_X;
#else
    const u32 r = lane / 4, q = lane % 4;
    __shared__ sum_type part[WK][WR * ROWS_W * 8 * FX];
    const tw *row[FW * 2];
    const tx *xrow[FX];
    sum_type acc[FW][FX][4];
#    pragma unroll
    for (int i = 0; i < FW * 2; i++) row[i] = wbase + list_offset<W_OF>(lw, min(w0 + i * 8 + r, many - 1));
#    pragma unroll
    for (int x = 0; x < FX; x++) xrow[x] = xbase + list_offset<X_OF>(lx, min(x * 8 + r, few - 1));
#    pragma unroll
    for (int i = 0; i < FW; i++)
#    pragma unroll
        for (int x = 0; x < FX; x++)
#    pragma unroll
            for (int h = 0; h < 4; h++) acc[i][x][h] = 0;
    u32 k = t.k0 + turn * (AHEAD * PART);
    if (VW && VX)
        for (; k + AHEAD * PART <= t.k1; k += WK * AHEAD * PART) step_mma<true, AHEAD>(row, xrow, k + q * EACH, t.k1, sw, sx, few, acc);
    for (; k < t.k1; k += WK * AHEAD * PART)
#    pragma unroll 1
        for (u32 u = 0; u < AHEAD; u++) step_mma<false, 1>(row, xrow, k + u * PART + q * EACH, t.k1, sw, sx, few, acc);
    const int pitch = 8 * FX;
#    pragma unroll
    for (int i = 0; i < FW; i++)
#    pragma unroll
        for (int x = 0; x < FX; x++)
#    pragma unroll
            for (int h = 0; h < 4; h++) part[turn][(warp / WK * ROWS_W + i * 16 + h / 2 * 8 + r) * pitch + x * 8 + q * 2 + h % 2] = acc[i][x][h];
#endif
    __syncthreads();
    st_store<sum_type> c;
    c.begin(p, t);
    for (u32 i = threadIdx.x; i < WR * ROWS_W * pitch; i += WARPS * 32) {
        sum_type s = part[0][i];
#pragma unroll
        for (int j = 1; j < WK; j++) s += part[j][i];
        const u32 w = block + i / pitch, x = i % pitch;
        if (x < few) {
                st_columns<1, 1, 1> cols;
                cols.begin(p, XA ? w : x);
                c.row(p, t, XA ? x : w, cols, [&](int) { return &s; });
            }
    }
}
