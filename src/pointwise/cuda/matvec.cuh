/* SPDX-License-Identifier: Apache-2.0 */
/* matvec.cuh - a matrix as level 2 reads it on a GPU: lines of neighbouring elements. Element d of line l is there where -above <= d - l <= below; it lies at l * sl + d * sd, or
 * in a packed triangle (d <= l: 1, d >= l: 2) at l (l + 1) / 2 + d or l (2 n - l - 1) / 2 + d. Which of i and j is d, the host says.
 *
 * T: f32 or f64; COMPLEX: elements are pairs. A thread has four elements of a line: neighbours, which one or several loads of 16 bytes bring where VEC says that they are aligned, or
 * (APART: packed triangles and bands, whose lines begin anywhere) 32 apart, so that a warp's neighbours are neighbours in memory. */
#ifndef STRATA_MATVEC_CUH
#define STRATA_MATVEC_CUH
#include "types.cuh"

#ifndef T
#    define T f32
#endif
#ifndef COMPLEX
#    define COMPLEX 0
#endif
#ifndef VEC
#    define VEC 0
#endif
#ifndef APART
#    define APART 0
#endif

INL f32 fma_of(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
INL f64 fma_of(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }

INL f32 magnitude(f32 v) { return f32_of_bits(bits_of_f32(v) & 0x7fffffffu); }
INL f64 magnitude(f64 v) { return f64_of_bits(bits_of_f64(v) & 0x7fffffffffffffffull); }
/* may squares that sum to this, or magnitudes, be summed as they are? */
INL bool squares_fit(f32 s) { return s >= 0x1p-60f && s <= 0x1p+120f; }
INL bool squares_fit(f64 s) { return s >= 0x1p-900 && s <= 0x1p+960; }
INL bool sum_fits(f32 s) { return s <= 0x1p+120f; }
INL bool sum_fits(f64) { return true; }
INL u64 bits_of(f32 v) { return bits_of_f32(v); }
INL u64 bits_of(f64 v) { return bits_of_f64(v); }
INL u32 upper_bits(f32 v) { return bits_of_f32(v) & 0x7fffffffu; } /* without the sign */
INL u32 upper_bits(f64 v) { return (u32)(bits_of_f64(v) >> 32) & 0x7fffffffu; }

#if COMPLEX
struct __align__(2 * sizeof(T)) el { T re, im; };
INL el zero_el() { return {0, 0}; }
INL el real_el(T r) { return {r, 0}; }
INL el add_el(el a, el b) { return {a.re + b.re, a.im + b.im}; }
INL el neg_el(el a) { return {-a.re, -a.im}; }
INL el conj_if(el a, bool c) { return {a.re, c ? -a.im : a.im}; }
INL el mul_add(el a, el b, el c)
{
    return {fma_of(-a.im, b.im, fma_of(a.re, b.re, c.re)), fma_of(a.im, b.re, fma_of(a.re, b.im, c.im))};
}
/* Smith's division, TOMS 5 (1962) */
INL el div_el(el a, el b)
{
    const T x = b.re < 0 ? -b.re : b.re, y = b.im < 0 ? -b.im : b.im;
    if (x >= y) {
        const T r = b.im / b.re, d = b.re + b.im * r;
        return {(a.re + a.im * r) / d, (a.im - a.re * r) / d};
    }
    const T r = b.re / b.im, d = b.re * r + b.im;
    return {(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}
INL el real_only(el a, bool c) { return {a.re, c ? 0 : a.im}; }
INL bool is_zero(el a) { return a.re == 0 && a.im == 0; }
#else
struct el { T re; };
INL el zero_el() { return {0}; }
INL el real_el(T r) { return {r}; }
INL el add_el(el a, el b) { return {a.re + b.re}; }
INL el neg_el(el a) { return {-a.re}; }
INL el conj_if(el a, bool) { return a; }
INL el mul_add(el a, el b, el c) { return {fma_of(a.re, b.re, c.re)}; }
INL el div_el(el a, el b) { return {a.re / b.re}; }
INL el real_only(el a, bool) { return a; }
INL bool is_zero(el a) { return a.re == 0; }
#endif
INL el mul_el(el a, el b) { return mul_add(a, b, zero_el()); }
INL el lane_xor(el v, int m)
{
    el r;
    const u32 *a = (const u32 *)&v;
    u32 *b = (u32 *)&r;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(el) / 4); i++) b[i] = __shfl_xor_sync(0xffffffffu, a[i], m);
    return r;
}
INL el over_warp(el v)
{
#pragma unroll
    for (int m = 16; m; m >>= 1) v = add_el(v, lane_xor(v, m));
    return v;
}

enum { OWN = 4, TILE = 32 * OWN, LINE_WARPS = 8 };

/* As the host fills it: matvec_cuda.c has the same words. */
struct args {
    el *a, *x, *y, *work;
    i64 n_d, n_l, sd, sl, below, above, packed;
    i64 sx, sy;
    i64 unit, herm, mirror, conj_add, conj_dot, conj_x, conj_y; /* conj_*: what is added along d, summed along d */
    i64 lines_chunk, d_chunk, parts, relative;                  /* of the sums' parts */
    i64 rows_are_lines, side, phase, across;                    /* across: threads of matvec_add along d */
    f64 alpha[2], beta[2];
};
/* Blocks wait for what ran before, and let those of what comes next be placed as soon as there is room (programmatic dependent launch): the launches of a call, and calls in
 * a row, follow each other without a gap. */
INL void begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
INL el number(const f64 *v)
{
    el r = real_el((T)v[0]);
#if COMPLEX
    r.im = (T)v[1];
#endif
    return r;
}

INL i64 line_at(const args &g, i64 l)
{
    if (g.packed == 0) return l * g.sl;
    return g.packed == 1 ? l * (l + 1) / 2 : l * (2 * g.n_l - l - 1) / 2;
}
INL bool is_there(const args &g, i64 d, i64 l)
{
    return d < g.n_d && l < g.n_l && d - l <= g.below && l - d <= g.above;
}
/* an element with its rules, but for conjugation; 0 where there is none */
INL el element(const args &g, i64 d, i64 l)
{
    if (!is_there(g, d, l)) return zero_el();
    if (d == l && g.unit) return real_el(1);
    return real_only(g.a[line_at(g, l) + d * (g.packed ? 1 : g.sd)], d == l && g.herm);
}
/* the position of a thread's element q from the first of its warp's tile */
enum { NEIGHBOURS = 16 / sizeof(el) }; /* that one load of 16 bytes brings; the next load's are 32 such further on, so that a warp's load is without gaps */
INL int own(int lane, int q)
{
    if (APART) return q * 32 + lane;
    return VEC ? q / NEIGHBOURS * (32 * NEIGHBOURS) + lane * NEIGHBOURS + q % NEIGHBOURS : lane * OWN + q;
}
/* a thread's numbers of x along d; behind the end: 0 */
INL void load_x(const args &g, i64 d0, int lane, el *r)
{
#if VEC
    if (g.sx == 1 && d0 + TILE <= g.n_d) {
#    pragma unroll
        for (int i = 0; i < OWN / NEIGHBOURS; i++)
            ((uint4 *)r)[i] = *(const uint4 *)(g.x + d0 + own(lane, i * NEIGHBOURS));
#    pragma unroll
        for (int q = 0; q < OWN; q++) r[q] = conj_if(r[q], g.conj_x);
        return;
    }
#endif
#pragma unroll
    for (int q = 0; q < OWN; q++) {
        const i64 d = d0 + own(lane, q);
        r[q] = d < g.n_d ? conj_if(g.x[d * g.sx], g.conj_x) : zero_el();
    }
}

/* four elements of line l of a tile that is whole */
INL void load_whole(const args &g, i64 d0, i64 l, int lane, el *r)
{
    const el *p = g.a + line_at(g, l) + d0 * g.sd;
#if VEC
#    pragma unroll
    for (int i = 0; i < (int)(OWN * sizeof(el) / 16); i++)
        ((uint4 *)r)[i] = __ldcs((const uint4 *)(p + own(lane, i * NEIGHBOURS)));
#else
#    pragma unroll
    for (int q = 0; q < OWN; q++) r[q] = p[(i64)own(lane, q) * g.sd];
#endif
}
INL void load_part(const args &g, i64 d0, i64 l, int lane, el *r)
{
#pragma unroll
    for (int q = 0; q < OWN; q++) r[q] = element(g, d0 + own(lane, q), l);
}
/* is every element of lines [l0, l1) of the tile there, and read as it lies? */
INL bool is_whole(const args &g, i64 d0, i64 l0, i64 l1)
{
    const bool apart = d0 > l1 - 1 || d0 + TILE - 1 < l0; /* from the diagonal, which has rules of its own */
    return d0 + TILE <= g.n_d && l1 <= g.n_l && d0 + TILE - 1 - l0 <= g.below && l1 - 1 - d0 <= g.above &&
           (apart || !(g.unit || g.herm || g.mirror));
}
INL bool is_empty(const args &g, i64 d0, i64 d1, i64 l0, i64 l1)
{
    return d0 - (l1 - 1) > g.below || l0 - (d1 - 1) > g.above;
}
INL i64 least(i64 a, i64 b) { return a < b ? a : b; }
INL i64 most(i64 a, i64 b) { return a > b ? a : b; }
#endif
