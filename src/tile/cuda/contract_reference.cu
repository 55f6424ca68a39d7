/* SPDX-License-Identifier: Apache-2.0 */
/* contract_reference.cu - the last row: any axes, strides, bounds and types, one thread an element of C, its sum in ascending k: in f64 for floats (two of them for complex
 * numbers), modulo 2^32 for integers. Slow and obvious; 64-bit indices throughout. */
#ifndef TA
#    define TA f32
#    define TB f32
#    define TC f32
#endif
#ifndef KIND
#    define KIND 0 /* 0: floats, 1: integers, 2: complex */
#endif
#define WIN 0
#define KAX 1
#define CV 1
#define SPLIT 0
#include "generic.cuh"

INL void at_axes(const st_list &l, i64 i, i64 *idx)
{
#pragma unroll
    for (int d = 3; d >= 0; d--) {
        idx[d] = d < l.count ? i % l.ax[d].len : 0;
        if (d < l.count) i /= l.ax[d].len;
    }
}
template <int W> INL i64 dot_axes(const st_list &l, const i64 *idx)
{
    i64 off = 0;
#pragma unroll
    for (int d = 0; d < 4; d++) off += idx[d] * stride_of<W>(l.ax[d]);
    return off;
}
struct st_bounds {
    i64 limit[2], offset[2], row[2][4], k[2][4], rows, cols, depth, items; /* an absent bound: limit INT64_MAX, the rest 0 */
};
#if KIND == 2
struct sum_type {
    double re, im;
};
template <class A, class B> INL void add(sum_type &s, A a, B b)
{
    s.re = fma((double)a.re, (double)b.re, fma(-(double)a.im, (double)b.im, s.re));
    s.im = fma((double)a.re, (double)b.im, fma((double)a.im, (double)b.re, s.im));
}
#elif KIND == 1
typedef u32 sum_type;
template <class A, class B> INL void add(sum_type &s, A a, B b) { s += (u32)(to_i32(a) * to_i32(b)); }
#else
typedef double sum_type;
template <class A, class B> INL void add(sum_type &s, A a, B b) { s = fma(to_f64(a), to_f64(b), s); }
#endif

extern "C" __global__ void __launch_bounds__(128)
    contract_reference(const __grid_constant__ st_params p, const __grid_constant__ st_bounds w)
{
    for (i64 i = (i64)blockIdx.x * 128 + threadIdx.x; i < w.items * w.rows * w.cols; i += (i64)gridDim.x * 128) {
        i64 mi[4], ni[4], gi[4], ki[4] = {0, 0, 0, 0};
        const i64 n = i % w.cols, m = i / w.cols % w.rows, g = i / w.cols / w.rows;
        at_axes(p.n, n, ni);
        at_axes(p.m, m, mi);
        at_axes(p.batch, g, gi);
        const TA *a = (const TA *)p.a + dot_axes<OF_A>(p.m, mi) + dot_axes<OF_A>(p.n, ni) + dot_axes<OF_A>(p.batch, gi);
        const TB *b = (const TB *)p.b + dot_axes<OF_B>(p.m, mi) + dot_axes<OF_B>(p.n, ni) + dot_axes<OF_B>(p.batch, gi);
        TC *c = (TC *)p.c + dot_axes<OF_C>(p.m, mi) + dot_axes<OF_C>(p.n, ni) + dot_axes<OF_C>(p.batch, gi);
        sum_type s = {};
        for (i64 k = 0; k < w.depth; k++) {
            bool in = true;
#pragma unroll
            for (int x = 0; x < 2; x++) {
                i64 at = w.offset[x];
#pragma unroll
                for (int d = 0; d < 4; d++) at += w.row[x][d] * mi[d] + w.k[x][d] * ki[d];
                in = in && at >= 0 && at < w.limit[x];
            }
            if (in) add(s, a[dot_axes<OF_A>(p.k, ki)], b[dot_axes<OF_B>(p.k, ki)]);
            bool carry = true;
#pragma unroll
            for (int d = 3; d >= 0; d--)
                if (carry && d < p.k.count) {
                    carry = ++ki[d] >= p.k.ax[d].len;
                    if (carry) ki[d] = 0;
                }
        }
#if KIND == 2
        TC r, old;
        double re = p.alpha * s.re, im = p.alpha * s.im;
        if (p.beta != 0) {
            old = *c;
            re += p.beta * old.re;
            im += p.beta * old.im;
        }
        r.re = re;
        r.im = im;
        *c = r;
#else
#    if KIND == 1
        double v = p.alpha * (double)(i32)s;
#    else
        double v = p.alpha * s;
#    endif
        if (p.beta != 0) v += p.beta * to_f64(*c);
#    if EPI
        v = st_epilogue(p.epi, (ST_ACC)v, m, n, g);
#    endif
        *c = from<TC>(v);
#endif
    }
}
