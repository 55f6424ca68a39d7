/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90_split.cu - an f32 matrix as three bf16 ones whose sum it is, rows with k contiguous and of a pitch that TMA takes.
 *
 * The first part is the upper half of the bits (so it never rounds up to infinity), the second the rest to nearest, the third what is left: together 24 bits,
 * exact down to 2^-110. Values that have no such parts (NaN and infinities) set *found, and the product is then left to exact arithmetic.
 * ROWS=0: the source's k is contiguous; ROWS=1: anything else, turned round in shared memory. Parts are p.part elements apart. */
#include "async.cuh"

struct split_args { /* mirrored by the host; strides in elements */
    const float *src;
    bf16 *dst;
    u32 *found;
    i64 rows, k, rs, ks, gs, pitch, item, part;
    i32 g;
};

INL void put(const split_args &p, bf16 *to, const float *v, bool *odd)
{
    u32 w[3][2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
        float r[2], s[2];
        u32 top[2];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const u32 b = bits_of_f32(v[2 * j + e]);
            *odd |= (b & 0x7f800000u) == 0x7f800000u;
            top[e] = b >> 16;
            r[e] = v[2 * j + e] - f32_of_bits(b & 0xffff0000u);
        }
        w[0][j] = top[0] | top[1] << 16;
        w[1][j] = pack_bf16(r[0], r[1]);
        s[0] = r[0] - f32_of_bits(w[1][j] << 16);
        s[1] = r[1] - f32_of_bits(w[1][j] & 0xffff0000u);
        w[2][j] = pack_bf16(s[0], s[1]);
    }
#pragma unroll
    for (int i = 0; i < 3; i++) *(uint2 *)(to + i * p.part) = make_uint2(w[i][0], w[i][1]);
}

extern "C" __global__ void __launch_bounds__(256) gemm_split(const __grid_constant__ split_args p)
{
    bool odd = false;
    launch_next();
    launch_wait();
#if ROWS == 0
    const i64 quads = (p.k + 3) / 4, all = quads * p.rows * p.g;
    const bool small = all < 1ll << 31,
               whole = p.k % 4 == 0 && ((u64)p.src & 15) == 0 && p.rs % 4 == 0 && p.gs % 4 == 0;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < all; i += (i64)gridDim.x * 256) {
        const i64 line = small ? (i64)((u32)i / (u32)quads) : i / quads, c = (i - line * quads) * 4;
        const i64 g = p.g == 1 ? 0 : line / p.rows, r = line - g * p.rows;
        const float *at = p.src + g * p.gs + r * p.rs + c;
        float v[4];
        if (whole) {
            const float4 x = *(const float4 *)at;
            v[0] = x.x;
            v[1] = x.y;
            v[2] = x.z;
            v[3] = x.w;
        } else
#    pragma unroll
            for (int j = 0; j < 4; j++) v[j] = c + j < p.k ? at[j] : 0;
        put(p, p.dst + g * p.item + r * p.pitch + c, v, &odd);
    }
#else
    __shared__ float tile[32][65];
    const i64 tr = (p.rows + 63) / 64, tk = (p.k + 31) / 32, all = tr * tk * p.g;
    for (i64 t = blockIdx.x; t < all; t += gridDim.x) {
        const i64 g = t / (tr * tk), u = t - g * tr * tk, k0 = u / tr * 32, r0 = u % tr * 64;
        const float *src = p.src + g * p.gs;
        for (int i = threadIdx.x; i < 64 * 32; i += 256) {
            const i64 r = r0 + (i & 63), k = k0 + i / 64;
            tile[i / 64][i & 63] = r < p.rows && k < p.k ? src[r * p.rs + k * p.ks] : 0;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < 64 * 8; i += 256) {
            const int r = i / 8, c = i % 8 * 4;
            if (r0 + r < p.rows && k0 + c < p.k) {
                const float v[4] = {tile[c][r], tile[c + 1][r], tile[c + 2][r], tile[c + 3][r]};
                put(p, p.dst + g * p.item + (r0 + r) * p.pitch + k0 + c, v, &odd);
            }
        }
        __syncthreads();
    }
#endif
    if (odd) *p.found = 1;
}
