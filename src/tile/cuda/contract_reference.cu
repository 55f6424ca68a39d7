/* SPDX-License-Identifier: Apache-2.0 */
/* contract_reference.cu - the last row: any axes, strides, bounds and types, one thread an element of C, its sum in ascending k: in f64 for floats (two of them for complex
 * numbers), modulo 2^32 for integers; with rules and arrays of addresses. Slow and obvious; 64-bit indices throughout. */
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
struct st_rule { /* as in tile.h, of A by m and k, B by k and n, C by m and n */
    i32 conj, half, mirror, unit;
    i64 offset;
};
struct st_bounds {
    i64 limit[2], offset[2], row[2][4], k[2][4], rows, cols, depth, items; /* an absent bound: limit INT64_MAX, the rest 0 */
    st_rule rule[3];
    i64 pointers;
};
enum { HALF_LOWER = 1, HERMITIAN = 2 };
INL bool is_stored(const st_rule &r, i64 row, i64 col)
{
    const i64 below = row - col + r.offset;
    return r.half == 0 || (r.half == HALF_LOWER ? below >= 0 : below <= 0);
}
template <class T> INL T conjugate(T v) { return v; }
INL c64 conjugate(c64 v) { return c64{v.re, -v.im}; }
INL c128 conjugate(c128 v) { return c128{v.re, -v.im}; }
template <class T> INL T real_part(T v) { return v; }
INL c64 real_part(c64 v) { return c64{v.re, 0}; }
INL c128 real_part(c128 v) { return c128{v.re, 0}; }
template <class T> INL T one(T) { return from<T>(1.0); }
INL c64 one(c64) { return c64{1, 0}; }
INL c128 one(c128) { return c128{1, 0}; }
/* Element (row, col), whose place is `at`, rs and cs being the strides; false where it is a zero. */
template <class T> INL bool element(const st_rule &r, const T *at, i64 rs, i64 cs, i64 row, i64 col, T &v)
{
    const bool here = is_stored(r, row, col), diagonal = row - col + r.offset == 0;
    if (!here && !r.mirror) return false;
    if (diagonal && r.unit) {
        v = one(T{});
        return true;
    }
    if (!here) at += (col - r.offset - row) * rs + (row + r.offset - col) * cs;
    v = *at;
    if (r.mirror == HERMITIAN) v = diagonal ? real_part(v) : here ? v : conjugate(v);
    if (r.conj) v = conjugate(v);
    return true;
}
/* Matrix of batch item g, whose indices are gi. */
template <int W, class T> INL T *item(const st_params &p, void *at, i64 pointers, const i64 *gi)
{
    return (pointers >> W & 1 ? ((T **)at)[gi[0]] : (T *)at) + dot_axes<W>(p.batch, gi);
}
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
        if (!is_stored(w.rule[2], m, n)) continue;
        const TA *a = 0;
        const TB *b = 0;
        if (w.depth) {
            a = item<OF_A, const TA>(p, (void *)p.a, w.pointers, gi) + dot_axes<OF_A>(p.m, mi) + dot_axes<OF_A>(p.n, ni);
            b = item<OF_B, const TB>(p, (void *)p.b, w.pointers, gi) + dot_axes<OF_B>(p.m, mi) + dot_axes<OF_B>(p.n, ni);
        }
        TC *c = item<OF_C, TC>(p, p.c, w.pointers, gi) + dot_axes<OF_C>(p.m, mi) + dot_axes<OF_C>(p.n, ni);
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
            TA va;
            TB vb;
            if (in && element(w.rule[0], a + dot_axes<OF_A>(p.k, ki), p.m.ax[0].a, p.k.ax[0].a, m, k, va) &&
                element(w.rule[1], b + dot_axes<OF_B>(p.k, ki), p.k.ax[0].b, p.n.ax[0].b, k, n, vb))
                add(s, va, vb);
            bool carry = true;
#pragma unroll
            for (int d = 3; d >= 0; d--)
                if (carry && d < p.k.count) {
                    carry = ++ki[d] >= p.k.ax[d].len;
                    if (carry) ki[d] = 0;
                }
        }
#if KIND == 2
        const bool real = w.rule[2].mirror == HERMITIAN && m - n + w.rule[2].offset == 0;
        TC r, old;
        double re = p.alpha * s.re, im = p.alpha * s.im;
        if (p.alpha_im != 0) {
            re -= p.alpha_im * s.im;
            im += p.alpha_im * s.re;
        }
        if (p.beta != 0 || p.beta_im != 0) {
            old = *c;
            if (real) old.im = 0;
            re += p.beta * old.re;
            im += p.beta * old.im;
            if (p.beta_im != 0) {
                re -= p.beta_im * old.im;
                im += p.beta_im * old.re;
            }
        }
        r.re = re;
        r.im = real ? 0 : im;
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
