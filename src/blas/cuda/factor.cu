/* SPDX-License-Identifier: Apache-2.0 */
/* factor.cu - batched small factorisations. A team of G threads has one item; teams of up to 32 threads share a warp or a block, larger ones are the block. The
 * item lies in shared memory, rows G apart in threads, with an odd pitch so that a column is free of bank conflicts; where it does not fit (SMEM=0) the team works in
 * place. The order of every sum follows from the item's size and G alone. Formulas are those of cpu/factor_body.h. */
#ifndef OP
#    define OP 0 /* st_factor_op */
#    define T f32
#    define R f32
#    define COMPLEX 0
#    define G 32
#    define TEAMS 4
#    define SMEM 1
#endif
#include "types.cuh"

struct view {
    char *ptr;
    i64 rs, cs, bs[4], pointers;
};
struct factor { /* st_factor */
    i64 m, n, nrhs, items, batch, len[4];
    view v[4];
    i64 transpose, conjugate;
    i32 op, type, index, reserved;
};

#if COMPLEX
INL T make(R re, R im = 0) { T r; r.re = re; r.im = im; return r; }
INL T operator-(T a, T b) { return make(a.re - b.re, a.im - b.im); }
INL T operator*(T a, T b) { return make(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); }
INL T scaled(T a, R f) { return make(a.re * f, a.im * f); }
INL T conj(T a) { return make(a.re, -a.im); }
INL R real(T a) { return a.re; }
INL R imag(T a) { return a.im; }
INL bool zero(T a) { return a.re == 0 && a.im == 0; }
INL T operator/(T a, T b)
{
    if (fabs(b.re) >= fabs(b.im)) {
        const R q = b.im / b.re, d = b.re + b.im * q;
        return make((a.re + a.im * q) / d, (a.im - a.re * q) / d);
    }
    const R q = b.re / b.im, d = b.re * q + b.im;
    return make((a.re * q + a.im) / d, (a.im * q - a.re) / d);
}
#else
INL T make(R re, R = 0) { return re; }
INL T scaled(T a, R f) { return a * f; }
INL T conj(T a) { return a; }
INL R real(T a) { return a; }
INL R imag(T) { return 0; }
INL bool zero(T a) { return a == 0; }
#endif
INL R abs1(T a) { return fabs(real(a)) + fabs(imag(a)); }
INL R abs2(T a) { return real(a) * real(a) + imag(a) * imag(a); }

/* ---- the team ------------------------------------------------------------------------------------------------------------------ */
INL void meet()
{
#if G <= 32
    __syncwarp();
#else
    __syncthreads();
#endif
}
#if G > 32
__shared__ double st_room[G / 32 * 2];
#endif
INL R team_sum(R x)
{
#pragma unroll
    for (int d = (G < 32 ? G : 32) / 2; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
#if G > 32
    __syncthreads();
    if (threadIdx.x % 32 == 0) st_room[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int w = 0; w < G / 32; w++) x += (R)st_room[w];
#endif
    return x;
}
/* The largest (a NaN counts as that) and the first row that has it. */
INL void take_larger(R &x, int &at, R y, int w)
{
    const bool nx = x != x, ny = y != y;
    const bool better = nx != ny ? ny : (nx || x == y) ? w < at : y > x;
    if (better) x = y, at = w;
}
INL void team_max(R &x, int &at)
{
#pragma unroll
    for (int d = (G < 32 ? G : 32) / 2; d > 0; d /= 2) {
        const R y = __shfl_xor_sync(0xffffffffu, x, d);
        const int w = __shfl_xor_sync(0xffffffffu, at, d);
        take_larger(x, at, y, w);
    }
#if G > 32
    __syncthreads();
    if (threadIdx.x % 32 == 0) st_room[threadIdx.x / 32 * 2] = (double)x, st_room[threadIdx.x / 32 * 2 + 1] = (double)at;
    __syncthreads();
    for (int w = 0; w < G / 32; w++) take_larger(x, at, (R)st_room[w * 2], (int)st_room[w * 2 + 1]);
#endif
}

/* An item's matrix: in shared memory, or where it lies. */
struct far_mat {
    T *p;
    i64 rs, cs;
    METHOD T &operator()(int i, int j) const { return p[i * rs + j * cs]; }
};
#if SMEM
struct mat {
    T *p;
    int rs;
    METHOD T &operator()(int i, int j) const { return p[i * rs + j]; }
};
#else
typedef far_mat mat;
#endif

INL char *at_item(const factor &f, int o, i64 item, i64 size)
{
    const view &v = f.v[o];
    if (!v.ptr) return 0;
    if (v.pointers) return ((char **)v.ptr)[item];
    i64 off = 0;
    for (int d = (int)f.batch - 1; d >= 0; d--) {
        off += item % f.len[d] * v.bs[d];
        item /= f.len[d];
    }
    return v.ptr + off * size;
}
INL void put_index(const factor &f, int o, char *p, i64 i, i64 value)
{
    if (!p) return;
    if (f.index == 4)
        ((i32 *)p)[i * f.v[o].rs] = (i32)value;
    else
        ((i64 *)p)[i * f.v[o].rs] = value;
}

/* ---- LU -------------------------------------------------------------------------------------------------------------------------- */

INL void swap_rows(const mat &a, int n, int i, int k, int lane)
{
    if (i != k)
        for (int j = lane; j < n; j += G) {
            const T t = a(i, j);
            a(i, j) = a(k, j);
            a(k, j) = t;
        }
    meet();
}

/* pivots to pv (int, shared) where it is not 0; returns info */
INL int lu(const mat &a, int m, int n, int *pv, bool pivoting, int lane)
{
    int info = 0;
    const int least = m < n ? m : n;
    for (int k = 0; k < least; k++) {
        int p = k;
        if (pivoting) {
            R most = -1;
            p = 0x7fffffff;
            for (int i = k + lane; i < m; i += G) take_larger(most, p, abs1(a(i, k)), i);
            team_max(most, p);
            swap_rows(a, n, k, p, lane);
        }
        if (pv && lane == 0) pv[k] = p;
        const T d = a(k, k);
        if (zero(d)) {
            if (!info) info = k + 1;
            meet();
            continue;
        }
        for (int i = k + 1 + lane; i < m; i += G) {
            const T l = a(i, k) / d;
            a(i, k) = l;
            for (int j = k + 1; j < n; j++) a(i, j) = a(i, j) - l * a(k, j);
        }
        meet();
    }
    return info;
}

/* b := (P^T L U)^-1 b; a thread has rows, all columns of b */
INL void solve(const mat &a, int n, const int *pv, const mat &b, int nrhs, int lane)
{
    for (int k = 0; pv && k < n; k++) swap_rows(b, nrhs, k, pv[k], lane);
    for (int k = 0; k < n; k++) {
        for (int i = k + 1 + lane; i < n; i += G) {
            const T l = a(i, k);
            for (int j = 0; j < nrhs; j++) b(i, j) = b(i, j) - l * b(k, j);
        }
        meet();
    }
    for (int k = n - 1; k >= 0; k--) {
        const T d = a(k, k);
        for (int j = lane; j < nrhs; j += G) b(k, j) = b(k, j) / d;
        meet();
        for (int i = lane; i < k; i += G) {
            const T u = a(i, k);
            for (int j = 0; j < nrhs; j++) b(i, j) = b(i, j) - u * b(k, j);
        }
        meet();
    }
}
INL void solve_transposed(const mat &a, int n, const int *pv, const mat &b, int nrhs, bool cj, int lane)
{
    for (int k = 0; k < n; k++) {
        const T d = cj ? conj(a(k, k)) : a(k, k);
        for (int j = lane; j < nrhs; j += G) b(k, j) = b(k, j) / d;
        meet();
        for (int i = k + 1 + lane; i < n; i += G) {
            const T u = cj ? conj(a(k, i)) : a(k, i);
            for (int j = 0; j < nrhs; j++) b(i, j) = b(i, j) - u * b(k, j);
        }
        meet();
    }
    for (int k = n - 1; k >= 0; k--) {
        for (int i = lane; i < k; i += G) {
            const T l = cj ? conj(a(k, i)) : a(k, i);
            for (int j = 0; j < nrhs; j++) b(i, j) = b(i, j) - l * b(k, j);
        }
        meet();
    }
    for (int k = n - 1; pv && k >= 0; k--) swap_rows(b, nrhs, k, pv[k], lane);
}

/* ---- QR -------------------------------------------------------------------------------------------------------------------------- */

/* The reflector of column k, its tau to all; x[k] := beta, below v. */
INL T reflector(const mat &a, int m, int k, int lane)
{
    R top = 0, sum = 0;
    int row = 0;
    for (int i = k + 1 + lane; i < m; i += G) take_larger(top, row, abs1(a(i, k)), i);
    team_max(top, row);
    const T alpha = a(k, k);
    if (top == 0 && imag(alpha) == 0) {
        meet();
        return make(0);
    }
    const R all = top > abs1(alpha) || top != top ? top : abs1(alpha), f = 1 / all;
    for (int i = k + 1 + lane; i < m; i += G) sum += abs2(scaled(a(i, k), f));
    sum = team_sum(sum) + abs2(scaled(alpha, f));
    const R whole = all * sqrt(sum), beta = real(alpha) >= 0 ? -whole : whole;
    const T tau = scaled(make(beta) - alpha, 1 / beta), g = make(1) / (alpha - make(beta));
    meet();
    for (int i = k + 1 + lane; i < m; i += G) a(i, k) = a(i, k) * g;
    if (lane == 0) a(k, k) = make(beta);
    meet();
    return tau;
}
/* c(k.., j) := (I - conj(tau) v v^H) c for columns j0.. of c, a thread a column */
INL void reflect(const mat &v, int m, int k, T tau, const mat &c, int j0, int n, int lane)
{
    for (int j = j0 + lane; j < n; j += G) {
        T s = c(k, j);
        for (int i = k + 1; i < m; i++) s = s + conj(v(i, k)) * c(i, j);
        s = s * conj(tau);
        c(k, j) = c(k, j) - s;
        for (int i = k + 1; i < m; i++) c(i, j) = c(i, j) - v(i, k) * s;
    }
    meet();
}

/* ---- an item ---------------------------------------------------------------------------------------------------------------------- */

extern __shared__ double st_smem[];

/* along whichever side of the matrix in global memory is dense */
template <class A, class B> INL void load(const A &to, const B &from, const far_mat &global, int m, int n, int lane)
{
    if (global.cs == 1 || global.rs != 1)
        for (int i = 0; i < m; i++)
            for (int j = lane; j < n; j += G) to(i, j) = from(i, j);
    else
        for (int j = 0; j < n; j++)
            for (int i = lane; i < m; i += G) to(i, j) = from(i, j);
}

INL void item(const factor &f, i64 it, bool mine, char *smem, int lane)
{
    const int m = (int)f.m, n = (int)f.n, nrhs = (int)f.nrhs, least = m < n ? m : n, pitch = n | 1;
    const far_mat ga = {(T *)at_item(f, 0, it, sizeof(T)), f.v[0].rs, f.v[0].cs}, gb = {(T *)at_item(f, 1, it, sizeof(T)), f.v[1].rs, f.v[1].cs};
    char *pp = at_item(f, 2, it, OP == 4 ? sizeof(T) : f.index), *pi = at_item(f, 3, it, f.index);
    int *pv = (int *)smem;
    smem += (least + 3) / 4 * 16;
#if SMEM
    const mat a = {(T *)smem, pitch}, b = {(T *)smem + m * pitch, (OP == 2 || OP == 3 ? n : nrhs) | 1};
    load(a, ga, ga, m, n, lane);
#else
    const mat a = ga, b = gb;
#endif
    (void)b, (void)pitch;
    int info = 0;
    const bool exchanges = f.v[2].ptr != 0;
    if ((OP == 1 || OP == 2) && exchanges)
        for (int k = lane; k < n; k += G)
            pv[k] = f.index == 4 ? ((const i32 *)pp)[k * f.v[2].rs] : (int)((const i64 *)pp)[k * f.v[2].rs];
    meet();
#if OP == 0
    info = lu(a, m, n, pv, exchanges, lane);
    meet();
    if (mine) {
        if (SMEM) load(ga, a, ga, m, n, lane);
        if (exchanges)
            for (int k = lane; k < least; k += G) put_index(f, 2, pp, k, pv[k]);
    }
#elif OP == 1
    if (SMEM) load(b, gb, gb, n, nrhs, lane);
    meet();
    if (f.transpose)
        solve_transposed(a, n, exchanges ? pv : 0, b, nrhs, f.conjugate, lane);
    else
        solve(a, n, exchanges ? pv : 0, b, nrhs, lane);
    if (mine && SMEM) load(gb, b, gb, n, nrhs, lane);
#elif OP == 2 || OP == 3
    if (OP == 3)
        info = lu(a, n, n, pv, true, lane);
    else
        for (int k = n - 1; k >= 0; k--)
            if (zero(a(k, k))) info = k + 1;
    for (int i = 0; i < n; i++)
        for (int j = lane; j < n; j += G) b(i, j) = make(i == j);
    meet();
    if (!info || SMEM) {
        solve(a, n, OP == 3 || exchanges ? pv : 0, b, n, lane);
        if (mine && SMEM && !info) load(gb, b, gb, n, n, lane);
    }
#elif OP == 4 || OP == 5
    if (OP == 5 && SMEM) load(b, gb, gb, m, nrhs, lane);
    meet();
    T *tau = (T *)pp;
    for (int k = 0; k < least; k++) {
        const T t = reflector(a, m, k, lane);
        if (OP == 4 && mine && lane == 0) tau[k * f.v[2].rs] = t;
        reflect(a, m, k, t, a, k + 1, n, lane);
        if (OP == 5) reflect(a, m, k, t, b, 0, nrhs, lane);
    }
    if (OP == 5) {
        for (int k = n - 1; k >= 0; k--)
            if (zero(a(k, k))) info = k + 1;
        for (int k = n - 1; k >= 0 && !info; k--) {
            const T d = a(k, k);
            for (int j = lane; j < nrhs; j += G) {
                const T x = b(k, j) / d;
                b(k, j) = x;
                for (int i = 0; i < k; i++) b(i, j) = b(i, j) - a(i, k) * x;
            }
        }
        meet();
        if (mine && SMEM && !info) load(gb, b, gb, m, nrhs, lane);
    }
    if (mine && SMEM) load(ga, a, ga, m, n, lane);
#endif
    if (mine && lane == 0 && f.v[3].ptr) put_index(f, 3, pi, 0, info);
}

extern "C" __global__ void __launch_bounds__(G *TEAMS, 1) factor_batched(const __grid_constant__ factor f, i64 smem_team)
{
    const int team = threadIdx.x / G, lane = threadIdx.x % G;
    for (i64 first = (i64)blockIdx.x * TEAMS; first < f.items; first += (i64)gridDim.x * TEAMS) {
        const i64 it = first + team;
        const bool mine = it < f.items; /* a team without an item of its own keeps step on a copy of the last; it stores nothing */
        item(f, mine ? it : f.items - 1, mine, (char *)st_smem + team * smem_team, lane);
        meet();
    }
}
