/* SPDX-License-Identifier: Apache-2.0 */
/* contract_sum.cu - the end of a product whose k was split: C = epilogue(alpha * (part 0 + part 1 + ...) + beta * C), the parts in ascending order, so that the
 * bits do not depend on who finished first. Parts are dense, [split][batch][m][n]; a thread has CV columns. */
#ifndef TA
#    define TA f32
#    define TB f32
#    define TC f32
#    define SUM f32
#    define KAX 1
#    define CV 4
#endif
#define WIN 0
#define SPLIT 0
#include "generic.cuh"

extern "C" __global__ void __launch_bounds__(256) contract_sum(const __grid_constant__ st_params p)
{
    const u32 across = (p.N + CV - 1) / CV, i = blockIdx.x * 256 + threadIdx.x, row = i / across, n = (i - row * across) * CV;
    if (row >= p.M * p.G) return;
    st_tile t;
    t.g = row / p.M;
    t.split = 0;
    const u32 m = row - t.g * p.M;
    const i64 item = (i64)p.G * p.M * p.N;
    const SUM *part = (const SUM *)p.part + (i64)row * p.N + n;
    SUM v[CV];
#pragma unroll
    for (int j = 0; j < CV; j++) v[j] = SUM{};
    /* many splits' loads are in flight at a time; the additions keep their order */
    const int AHEAD = CV == 1 ? 16 : 8;
    for (u32 s = 0; s < p.splits; s += AHEAD) {
        lanes<SUM, CV> x[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (s + u < p.splits) {
                if (p.N % CV == 0) /* else rows of parts are not aligned */
                    x[u] = *(const lanes<SUM, CV> *)(part + (i64)(s + u) * item);
                else
#pragma unroll
                    for (int j = 0; j < CV; j++) x[u].e[j] = n + j < p.N ? part[(i64)(s + u) * item + j] : SUM{};
            }
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (s + u < p.splits)
#pragma unroll
                for (int j = 0; j < CV; j++) v[j] = s + u ? v[j] + x[u].e[j] : x[u].e[j];
    }
    st_store<SUM> c;
    c.begin(p, t);
    st_columns<1, CV, CV> cols;
    cols.begin(p, n);
    c.row(p, t, m, cols, [&](int) { return v; });
}
