/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90_pack.cu - copies a matrix that TMA does not read (its pitch or address is no multiple of 16, or its k is not contiguous where it must be) into rows of a
 * pitch that TMA takes.
 *
 * ES bytes an element. ROWS=0: the copy's rows are contiguous in the source too, at any address: a warp reads 32 aligned blocks of 16 bytes and shifts 31 of them out of neighbouring
 * lanes' pairs, so reads and writes are whole and aligned. ROWS=1: the source's other dim is contiguous (or none is): a block turns 64 rows x 128 bytes
 * round in shared memory. What lies between the end of a row and its pitch is never read. One launch copies one matrix or two: `first` blocks the first. */
#include "async.cuh"

#if ES == 1
typedef u8 elem;
#elif ES == 2
typedef u16 elem;
#else
typedef u32 elem;
#endif
#define PER16 (16 / ES)

struct pack_args { /* mirrored by the host; strides in elements */
    const elem *src;
    elem *dst;
    i64 rows, k, rs, ks, gs, pitch, item;
    i32 g;
};

/* the 16 bytes from byte `shift` of (x, y) on */
INL uint4 shifted(uint4 x, uint4 y, u32 shift)
{
    u32 w[7] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z}, last = y.w;
    if (shift & 8) {
#pragma unroll
        for (int i = 0; i < 5; i++) w[i] = w[i + 2];
        w[5] = last;
    }
    if (shift & 4) {
#pragma unroll
        for (int i = 0; i < 5; i++) w[i] = w[i + 1];
    }
    const u32 bits = (shift & 3) * 8;
    return make_uint4(__funnelshift_r(w[0], w[1], bits), __funnelshift_r(w[1], w[2], bits),
                      __funnelshift_r(w[2], w[3], bits), __funnelshift_r(w[3], w[4], bits));
}
INL uint4 from_next_lane(uint4 x)
{
    return make_uint4(__shfl_down_sync(~0u, x.x, 1), __shfl_down_sync(~0u, x.y, 1),
                      __shfl_down_sync(~0u, x.z, 1), __shfl_down_sync(~0u, x.w, 1));
}

struct pack_both { /* mirrored by the host */
    pack_args p[2];
    u32 first;
};

extern "C" __global__ void __launch_bounds__(256) gemm_pack(const __grid_constant__ pack_both both)
{
    const bool second = blockIdx.x >= both.first;
    const pack_args &p = both.p[second];
    const u32 block = second ? blockIdx.x - both.first : blockIdx.x, blocks = second ? gridDim.x - both.first : both.first;
    launch_next();
    launch_wait();
#if ROWS == 0
    const u32 chunks = (u32)((p.k * ES + 15) / 16), segments = (chunks + 30) / 31, lane = threadIdx.x & 31;
    const i64 all = (i64)segments * p.rows * p.g, step = (i64)blocks * 8;
    const bool small = all < 1ll << 31;
    const int AHEAD = 4;
    for (i64 i = (i64)block * 8 + threadIdx.x / 32; i < all; i += step * AHEAD) {
        uint4 x[AHEAD];
        u32 shift[AHEAD];
        elem *to[AHEAD];
#    pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const i64 at = i + u * step < all ? i + u * step : i;
            const i64 line = small ? (i64)((u32)at / segments) : at / segments;
            const u32 c = (u32)(at - line * segments) * 31 + lane;
            const i64 g = p.g == 1 ? 0 : line / p.rows, r = line - g * p.rows;
            const u64 lo = (u64)(p.src + g * p.gs + r * p.rs), hi = lo + p.k * ES,
                      block = (lo & ~15ull) + c * 16ull;
            shift[u] = (u32)lo & 15;
            to[u] = i + u * step < all && lane < 31 && c < chunks
                        ? p.dst + g * p.item + r * p.pitch + (i64)c * PER16
                        : 0;
            x[u] = make_uint4(0, 0, 0, 0);
            if (block < hi)
                x[u] = *(const uint4 *)block; /* a block with a byte of ours lies in our memory's pages */
        }
#    pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const uint4 v = shifted(x[u], from_next_lane(x[u]), shift[u]);
            if (to[u]) store16(to[u], v);
        }
    }
#else
    const int KT = 128 / ES;
#    if ES == 1
    /* bytes four by four: rows contiguous and words aligned */
    const bool words = p.rs == 1 && ((u64)p.src | (u64)p.ks | (u64)p.gs) % 4 == 0;
    __shared__ u32 turned[64][33];
#    endif
    __shared__ elem tile[128 / ES][64 + 4 / ES];
    const i64 tr = (p.rows + 63) / 64, tk = (p.k + KT - 1) / KT, all = tr * tk * p.g;
    for (i64 t = block; t < all; t += blocks) {
        /* the host keeps tiles below 2^31 */
        const u32 g = (u32)t / (u32)(tr * tk), u = (u32)t - g * (u32)(tr * tk), column = u / (u32)tr;
        const i64 k0 = (i64)column * KT, r0 = (i64)(u - column * (u32)tr) * 64;
        const elem *src = p.src + g * p.gs;
#    if ES == 1
        if (words && r0 + 64 <= p.rows && k0 + 128 <= p.k) {
            for (int i = threadIdx.x; i < 16 * 32; i += 256) {
                const int r = i % 16 * 4, k = i / 16;
                u32 w[4];
#        pragma unroll
                for (int j = 0; j < 4; j++) w[j] = *(const u32 *)(src + r0 + r + (k0 + 4 * k + j) * p.ks);
                const u32 a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140),
                          c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
                turned[r][k] = __byte_perm(a, b, 0x5410);
                turned[r + 1][k] = __byte_perm(a, b, 0x7632);
                turned[r + 2][k] = __byte_perm(c, d, 0x5410);
                turned[r + 3][k] = __byte_perm(c, d, 0x7632);
            }
            __syncthreads();
            for (int i = threadIdx.x; i < 64 * 8; i += 256) {
                const u32 *w = &turned[i / 8][i % 8 * 4];
                store16(p.dst + g * p.item + (r0 + i / 8) * p.pitch + k0 + i % 8 * 16,
                        make_uint4(w[0], w[1], w[2], w[3]));
            }
            __syncthreads();
            continue;
        }
#    endif
        if (ES > 1 && r0 + 64 <= p.rows && k0 + KT <= p.k) { /* all of a thread's reads in flight together */
            elem v[64 * KT / 256];
#    pragma unroll
            for (int j = 0; j < 64 * KT / 256; j++) {
                const int i = threadIdx.x + j * 256;
                v[j] = src[(r0 + (i & 63)) * p.rs + (k0 + i / 64) * p.ks];
            }
#    pragma unroll
            for (int j = 0; j < 64 * KT / 256; j++) {
                const int i = threadIdx.x + j * 256;
                tile[i / 64][i & 63] = v[j];
            }
        } else
            for (int i = threadIdx.x; i < 64 * KT; i += 256) {
                const i64 r = r0 + (i & 63), k = k0 + i / 64;
                tile[i / 64][i & 63] = r < p.rows && k < p.k ? src[r * p.rs + k * p.ks] : 0;
            }
        __syncthreads();
        for (int i = threadIdx.x; i < 64 * 8; i += 256) {
            const int r = i / 8, c = i % 8 * PER16;
            if (r0 + r < p.rows && k0 + c < p.k) {
                union {
                    elem e[PER16];
                    uint4 v;
                } x;
#    pragma unroll
                for (int j = 0; j < PER16; j++) x.e[j] = tile[c + j][r];
                store16(p.dst + g * p.item + (r0 + r) * p.pitch + k0 + c, x.v);
            }
        }
        __syncthreads();
    }
#endif
}
