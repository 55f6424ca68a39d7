/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90_exact.cu - the product in f32 arithmetic, done only where *p.found says that the one by parts was not: plain tiles of 64 x 64, any strides. */
#include "async.cuh"
#define ST_ACC float
#include "epilogue.cuh"

struct exact_args { /* mirrored by the host; strides in elements */
    const float *a, *b;
    float *c;
    const u32 *found;
    i64 ars, aks, ags, brs, bks, bgs, ldc, cg;
    i32 m, n, k, g, m_at, n_at; /* a panel of C from m_at, n_at on, as the epilogue counts; c, a and b are the panel's */
    float alpha, beta;
};

extern "C" __global__ void __launch_bounds__(256)
    gemm_exact(const __grid_constant__ exact_args p, const __grid_constant__ st_epi epi)
{
    if (*p.found == 0) return;
    __shared__ float sa[16][64 + 1], sb[16][64 + 1];
    const int tm = (p.m + 63) / 64, tn = (p.n + 63) / 64, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    for (i64 t = blockIdx.x; t < (i64)tm * tn * p.g; t += gridDim.x) {
        const int g = (int)(t / ((i64)tm * tn)), u = (int)(t - (i64)g * tm * tn), m0 = u % tm * 64,
                  n0 = u / tm * 64;
        const float *a = p.a + g * p.ags, *b = p.b + g * p.bgs;
        float d[4][4] = {};
        for (int k0 = 0; k0 < p.k; k0 += 16) {
            for (int i = threadIdx.x; i < 16 * 64; i += 256) {
                const int k = i / 64, r = i % 64;
                sa[k][r] = m0 + r < p.m && k0 + k < p.k ? a[(m0 + r) * p.ars + (k0 + k) * p.aks] : 0;
                sb[k][r] = n0 + r < p.n && k0 + k < p.k ? b[(n0 + r) * p.brs + (k0 + k) * p.bks] : 0;
            }
            __syncthreads();
            const int left = min(16, p.k - k0); /* no products with padding: 0 times infinity is NaN */
            for (int k = 0; k < left; k++)
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++) d[i][j] += sa[k][ty + 16 * i] * sb[k][tx + 16 * j];
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int r = m0 + ty + 16 * i, c = n0 + tx + 16 * j;
                if (r >= p.m || c >= p.n) continue;
                float *at = p.c + g * p.cg + r * p.ldc + c, v = p.alpha * d[i][j];
                if (p.beta != 0) v += p.beta * *at;
#if EPI
                v = st_epilogue(epi, v, p.m_at + r, p.n_at + c, g);
#endif
                *at = v;
            }
    }
}
