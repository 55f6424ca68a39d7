/* SPDX-License-Identifier: Apache-2.0 */
/* triangle.cuh - what both kernels of triangles share: the parameters (those of triangle_cuda.c), numbers of four types, an item's matrices. */
#ifndef ST_TRIANGLE_CUH
#define ST_TRIANGLE_CUH
#include "types.cuh"

struct st_triangle {
    const char *a;
    char *b;
    i64 n, cols, ars, acs, brs, bcs, from_a, from_b; /* from: elements from an item's address to the first one */
    i64 batch, len[4], sa[4], sb[4];
    double alpha, alpha_im;
    u32 panels, pointers; /* bits 0, 1: a, b are arrays of addresses */
    i32 unit, conj;
    i64 items;
};

/* ---- numbers --------------------------------------------------------------------------------------------------------------- */
template <class V> struct number {
    typedef V real;
    static constexpr bool complex = false;
};
template <> struct number<c64> {
    typedef f32 real;
    static constexpr bool complex = true;
};
template <> struct number<c128> {
    typedef f64 real;
    static constexpr bool complex = true;
};
typedef number<T>::real R;

INL f32 make(f32, f32 re, f32) { return re; }
INL f64 make(f64, f64 re, f64) { return re; }
INL c64 make(c64, f32 re, f32 im) { return c64{re, im}; }
INL c128 make(c128, f64 re, f64 im) { return c128{re, im}; }
INL T of(R re, R im = 0) { return make(T(), re, im); }
INL void add(f32 &c, f32 a, f32 b) { c = fma(a, b, c); }
INL void add(f64 &c, f64 a, f64 b) { c = fma(a, b, c); }
template <class V> INL void add(V &c, V a, V b)
{
    c.re = fma(a.re, b.re, c.re);
    c.im = fma(a.re, b.im, c.im);
    c.re = fma(-a.im, b.im, c.re);
    c.im = fma(a.im, b.re, c.im);
}
INL f32 minus(f32 a, f32 b) { return a - b; }
INL f64 minus(f64 a, f64 b) { return a - b; }
template <class V> INL V minus(V a, V b) { return V{a.re - b.re, a.im - b.im}; }
INL f32 conjugate(f32 a) { return a; }
INL f64 conjugate(f64 a) { return a; }
template <class V> INL V conjugate(V a) { return V{a.re, -a.im}; }
INL f32 inverse(f32 a) { return 1 / a; }
INL f64 inverse(f64 a) { return 1 / a; }
template <class V> INL V inverse(V a)
{
    if (fabs(a.re) >= fabs(a.im)) {
        const auto q = a.im / a.re, d = a.re + a.im * q;
        return V{1 / d, -q / d};
    }
    const auto q = a.re / a.im, d = a.re * q + a.im;
    return V{q / d, -1 / d};
}
INL f32 from_lane(f32 v, int l) { return __shfl_sync(0xffffffffu, v, l); }
INL f64 from_lane(f64 v, int l) { return __shfl_sync(0xffffffffu, v, l); }
template <class V> INL V from_lane(V v, int l) { return V{from_lane(v.re, l), from_lane(v.im, l)}; }
/* a term whose factor is real is not spread: 0 * Inf would be NaN */
INL f32 scaled(f32 v, double re, double) { return (f32)re * v; }
INL f64 scaled(f64 v, double re, double) { return re * v; }
template <class V> INL V scaled(V v, double re, double im)
{
    V r;
    r.re = (R)re * v.re;
    r.im = (R)re * v.im;
    if (im != 0) {
        r.re = fma(-(R)im, v.im, r.re);
        r.im = fma((R)im, v.re, r.im);
    }
    return r;
}

/* ---- an item ---------------------------------------------------------------------------------------------------------------- */
INL void matrices(const st_triangle &p, u32 item, const T *&a, T *&b)
{
    i64 off_a = 0, off_b = 0;
    u32 rest = item;
    for (int d = (int)p.batch - 1; d >= 0; d--) {
        const u32 q = rest / (u32)p.len[d], at = rest - q * (u32)p.len[d];
        off_a += at * p.sa[d];
        off_b += at * p.sb[d];
        rest = q;
    }
    a = (const T *)(p.pointers & 1 ? ((const char *const *)p.a)[item] : p.a) + p.from_a;
    b = (T *)(p.pointers & 2 ? ((char *const *)p.b)[item] : p.b) + p.from_b;
    if (!(p.pointers & 1)) a += off_a;
    if (!(p.pointers & 2)) b += off_b;
}
INL i64 size_of_step(i64 s) { return s < 0 ? -s : s; }
#endif
