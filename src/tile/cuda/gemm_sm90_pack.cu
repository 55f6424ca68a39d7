/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90_pack.cu - copies a matrix of any strides and alignment into rows whose k is contiguous, 16-byte aligned and of a pitch that TMA takes.
 *
 * ES bytes an element. ROWS=0: the source's k is contiguous; a thread makes 16 bytes of a row from five aligned words, so that the reads are as good as aligned ones. ROWS=1: anything
 * else, best contiguous rows: a block turns 64 rows x 128 bytes of k round in shared memory. What lies between the end of a row and its pitch is not written. */
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

/* the word at an address that is a multiple of 4, bytes outside [lo, hi) zero: whole words are one load */
INL u32 word_within(const char *at, const char *lo, const char *hi)
{
    if (at >= lo && at + 4 <= hi) return *(const u32 *)at;
    u32 v = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (at + i >= lo && at + i < hi) v |= (u32) * (const u8 *)(at + i) << 8 * i;
    return v;
}

extern "C" __global__ void __launch_bounds__(256) gemm_pack(const __grid_constant__ pack_args p)
{
    launch_next();
    launch_wait();
#if ROWS == 0
    const i64 chunks = (p.k + PER16 - 1) / PER16, all = chunks * p.rows * p.g;
    const bool small = all < 1ll << 31;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < all; i += (i64)gridDim.x * 256) {
        const i64 line = small ? (i64)((u32)i / (u32)chunks) : i / chunks, c = i - line * chunks;
        const i64 g = p.g == 1 ? 0 : line / p.rows, r = line - g * p.rows;
        const char *lo = (const char *)(p.src + g * p.gs + r * p.rs), *hi = lo + p.k * ES, *at = lo + c * 16;
        const u32 shift = (u32)(u64)at & 3;
        at -= shift;
        u32 w[5], v[4];
        if (at >= lo && at + 20 <= hi)
#    pragma unroll
            for (int j = 0; j < 5; j++) w[j] = ((const u32 *)at)[j];
        else
#    pragma unroll
            for (int j = 0; j < 5; j++) w[j] = word_within(at + 4 * j, lo, hi);
#    pragma unroll
        for (int j = 0; j < 4; j++) v[j] = __funnelshift_r(w[j], w[j + 1], shift * 8);
        elem *to = p.dst + g * p.item + r * p.pitch + c * PER16;
        store16(to, make_uint4(v[0], v[1], v[2], v[3])); /* the pitch has room for the last one's end */
    }
#else
    const int KT = 128 / ES;
    __shared__ elem tile[128 / ES][64 + 4 / ES];
    const i64 tr = (p.rows + 63) / 64, tk = (p.k + KT - 1) / KT, all = tr * tk * p.g;
    for (i64 t = blockIdx.x; t < all; t += gridDim.x) {
        const i64 g = t / (tr * tk), u = t - g * tr * tk, k0 = u / tr * KT, r0 = u % tr * 64;
        const elem *src = p.src + g * p.gs;
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
