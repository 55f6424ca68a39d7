/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_pool.cu - windows over the last two dims of (n, c, h, w) views: a thread an output forward, an input backward, neighbouring threads along columns (or, with
 * CHANNELS, along channels, where those stand together). Taps of a window and windows of an input are taken in row order, so every number is one thread's sum in a fixed order.
 * ELEMENT: its type, f32 or f64; MAX or average; BACKWARD; ACCUMULATE to dx; ARGMAX is written (forward) or read; FIND: the maximum is looked for again. */
#include "pointwise_windows.cuh"

extern "C" __global__ void __launch_bounds__(256) pool_kernel(const pool P)
{
    const idx t = (idx)blockIdx.x * 256 + threadIdx.x;
    if (t >= (idx)P.total) return;
#if !BACKWARD
    const place e = place_of(P, t, P.p, P.q);
    const T *x = P.x + e.n * P.xs[0] + e.c * P.xs[1];
    const span r = span_of(P, 0, e.i), s = span_of(P, 1, e.j);
#    if MAX
    i32 at;
    T v = largest(P, x, e.i, e.j, r, s, at);
    if (at < 0) v = (T)f32_of_bits(0xff800000u);
#        if ARGMAX
    P.argmax[offset_of(P.as, e)] = at;
#        endif
#    else
    T v = 0;
    for (i32 a = r.lo; a < r.hi; a++)
        for (i32 b = s.lo; b < s.hi; b++)
            v += x[(e.i * P.stride[0] - P.pad[0] + a * P.dilation[0]) * P.xs[2] +
                   (e.j * P.stride[1] - P.pad[1] + b * P.dilation[1]) * P.xs[3]];
    v = r.lo < r.hi && s.lo < s.hi ? v / ((T)r.count * (T)s.count) : 0;
#    endif
    if (P.y) P.y[offset_of(P.ys, e)] = v;
#else
    const place e = place_of(P, t, P.h, P.w);
    const T *dy = P.y + e.n * P.ys[0] + e.c * P.ys[1];
    T *dx = P.dx + offset_of(P.zs, e);
    T sum = ACCUMULATE ? *dx : 0;
    i32 first[2], last[2];
    const i32 at[2] = {e.i, e.j}, outputs[2] = {P.p, P.q};
#    pragma unroll
    for (int d = 0; d < 2; d++) {
        const i64 over = (i64)at[d] + P.pad[d] - (i64)(P.window[d] - 1) * P.dilation[d],
                  end = ((i64)at[d] + P.pad[d]) / P.stride[d];
        first[d] = over <= 0 ? 0 : (i32)((over + P.stride[d] - 1) / P.stride[d]);
        last[d] = (i32)(end < outputs[d] - 1 ? end : outputs[d] - 1);
    }
#    pragma unroll 1
    for (i32 i = first[0]; i <= last[0]; i++) {
        if ((e.i + P.pad[0] - i * P.stride[0]) % P.dilation[0]) continue;
#    pragma unroll 1
        for (i32 j = first[1]; j <= last[1]; j++) {
            if ((e.j + P.pad[1] - j * P.stride[1]) % P.dilation[1]) continue;
            const T g = dy[i * P.ys[2] + j * P.ys[3]];
#    if MAX
            i32 found;
#        if FIND
            largest(P, P.x + e.n * P.xs[0] + e.c * P.xs[1], i, j, span_of(P, 0, i), span_of(P, 1, j), found);
#        else
            found = P.argmax[e.n * P.as[0] + e.c * P.as[1] + i * P.as[2] + j * P.as[3]];
#        endif
            if (found == e.i * P.w + e.j) sum += g;
#    else
            const T share = 1 / ((T)span_of(P, 0, i).count * (T)span_of(P, 1, j).count);
            sum = sizeof(T) == 4 ? (T)__fmaf_rn((float)g, (float)share, (float)sum)
                                 : (T)__fma_rn((double)g, (double)share, (double)sum);
#    endif
        }
    }
    *dx = sum;
#endif
}
