/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_solve.cu - x := A^-1 x for a triangle, in one launch: block b (by a ticket, so that whoever is waited for runs) has ROWS rows, takes off what the rows before it give, in
 * ascending order as they are ready, and solves its own triangle by its inverse. The idea of one launch is Hogg's, "A fast dense triangular solve in CUDA", SIAM J. Sci. Comput. 35
 * (2013). Steps k = 0, 1, ... are rows 0, 1, ... of a lower triangle (side 0) and n - 1, n - 2, ... of an upper one (side 1).
 * matvec_serial: one block, without workspace, row by row: x := A^-1 x, or x := A x (phase 1). */
#include "matvec.cuh"

/* row i, column j */
INL el at_ij(const args &g, i64 i, i64 j)
{
    return g.rows_are_lines ? conj_if(element(g, j, i), g.conj_dot) : conj_if(element(g, i, j), g.conj_add);
}
INL bool there_ij(const args &g, i64 i, i64 j) { return g.rows_are_lines ? is_there(g, j, i) : is_there(g, i, j); }
INL i64 step_row(const args &g, i64 step) { return g.side ? g.n_d - 1 - step : step; }

/* A solved number is its own flag: the place holds ones alone before (a NaN that is never stored), and whoever needs it looks until it does not. So one trip through the
 * second-level cache hands a block's numbers on. */
INL void wait_for(const el *p, el *v)
{
    if (sizeof(el) == 4) {
        u32 w;
        do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(w) : "l"(p) : "memory");
        while (w == 0xffffffffu);
        *(u32 *)v = w;
        return;
    }
#pragma unroll
    for (int i = 0; i < (int)(sizeof(el) / 8); i++) {
        u64 w;
        do asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(w) : "l"((const u64 *)p + i) : "memory");
        while (w == ~0ull);
        ((u64 *)v)[i] = w;
    }
}
INL void show(el *p, el v)
{
    if (sizeof(el) == 4) {
        const u32 w = *(const u32 *)&v;
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(w == 0xffffffffu ? w - 1 : w) : "memory");
        return;
    }
#pragma unroll
    for (int i = 0; i < (int)(sizeof(el) / 8); i++) {
        const u64 w = ((const u64 *)&v)[i];
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"((u64 *)p + i), "l"(w == ~0ull ? w - 1 : w) : "memory");
    }
}

/* as in matvec_cuda.c */
enum { ROWS = sizeof(el) == 16 ? 32 : 64, PITCH = ROWS + 1, SHARES = 512 / ROWS, EACH = ROWS / SHARES, BASE = 16 };

/* to := the inverse of the lower triangle `from`: blocks of 16 by substitution, a thread a column; then twice as large ones from their halves, - Y22 (A21 Y11) */
INL void invert(const el *from, el *to, el *reciprocal)
{
    const int t = threadIdx.x;
    if (t < ROWS) reciprocal[t] = div_el(real_el(1), from[t * PITCH + t]);
    __syncthreads();
    if (t < ROWS) {
        const int q = t / BASE * BASE, c = t % BASE;
        el y[BASE];
#pragma unroll
        for (int i = 0; i < BASE; i++) {
            el v = i == c ? real_el(1) : zero_el();
#pragma unroll
            for (int k = 0; k < i; k++)
                if (k >= c) v = mul_add(neg_el(from[(q + i) * PITCH + q + k]), y[k], v);
            y[i] = i < c ? zero_el() : mul_el(v, reciprocal[q + i]);
            if (i >= c) to[(q + i) * PITCH + q + c] = y[i];
        }
    }
    __syncthreads();
#pragma unroll
    for (int h = BASE; h < ROWS; h *= 2) {
        /* A21 Y11 goes to the other triangle, which is free */
        for (int e = t; e < ROWS / 2 * h; e += 512) {
            const int pair = e / (h * h) * 2 * h, i = e / h % h, j = e % h;
            el v = zero_el();
            for (int k = j; k < h; k++) v = mul_add(from[(pair + h + i) * PITCH + pair + k], to[(pair + k) * PITCH + pair + j], v);
            to[(pair + i) * PITCH + pair + h + j] = v;
        }
        __syncthreads();
        for (int e = t; e < ROWS / 2 * h; e += 512) {
            const int pair = e / (h * h) * 2 * h, i = e / h % h, j = e % h;
            el v = zero_el();
            for (int k = 0; k <= i; k++)
                v = mul_add(to[(pair + h + i) * PITCH + pair + h + k], to[(pair + k) * PITCH + pair + h + j], v);
            to[(pair + h + i) * PITCH + pair + j] = neg_el(v);
        }
        __syncthreads();
    }
}

/* The numbers of share `part` of a row of block (b, k), from the matrix */
INL void load_block(const args &g, i64 row, i64 step0, i64 n, bool in, bool plain, el *a)
{
    if (plain) {
        const i64 sc = g.rows_are_lines ? g.sd : g.sl, sr = g.rows_are_lines ? g.sl : g.sd,
                  c0 = step_row(g, step0), next = g.side ? -sc : sc;
        const el *p = g.a + row * sr + c0 * sc;
        const bool c = g.rows_are_lines ? g.conj_dot : g.conj_add;
#pragma unroll
        for (int i = 0; i < EACH; i++) a[i] = conj_if(p[i * next], c);
        return;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) a[i] = in ? at_ij(g, row, step_row(g, step0 + i)) : zero_el();
}

/* work: ones alone; a counter (16 bytes), then a number a step. Block b solves rows b ROWS + ..., and while it waits it makes ready: Y, its triangle's inverse, and M = Y times the block
 * of the matrix just before the triangle. So between the last numbers that it waits for and its own lie one product with M, a sum of SHARES numbers and a store:
 * x_b = Y (x_b - what all but the last block before give) - M x_(b-1). */
extern "C" __global__ void __launch_bounds__(512, 1) matvec_solve(const args g)
{
    extern __shared__ __align__(16) unsigned char room[];
    el *const P = (el *)room, *const Q = P + ROWS * PITCH;
    __shared__ el sums[2][SHARES][ROWS], vec[2][ROWS];
    __shared__ u32 mine;
    begin();
    u32 *const counter = (u32 *)g.work;
    el *const solved = (el *)((char *)g.work + 16);
    if (threadIdx.x == 0) mine = atomicAdd(counter, 1) + 1;
    __syncthreads();
    const i64 b = mine, n = g.n_d, s0 = b * ROWS;
    const int r = threadIdx.x % ROWS, part = threadIdx.x / ROWS, c0 = part * EACH; /* row; share of the columns */
    const i64 step = s0 + r, row = step_row(g, step < n ? step : n - 1);
    const i64 reach = g.side ? (g.rows_are_lines ? g.below : g.above) : (g.rows_are_lines ? g.above : g.below);
    const bool banded = reach < n - 1, in = step < n, plain = in && !banded && g.packed == 0;
    const i64 first = s0 > reach ? (s0 - reach) / ROWS : 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int c = c0 + i;
        P[r * PITCH + c] = in && s0 + c < n && c <= r ? at_ij(g, row, step_row(g, s0 + c)) : c == r ? real_el(1) : zero_el();
    }
    const el right = part == 0 && in ? g.x[row * g.sx] : zero_el();
    el a[EACH], y[EACH], m[EACH];
    __syncthreads();
    invert(P, Q, vec[0]);
    if (b > first) { /* the block before the triangle is next to it, whole */
        load_block(g, row, s0 - ROWS + c0, n, in, plain, a);
#pragma unroll
        for (int i = 0; i < EACH; i++) P[r * PITCH + c0 + i] = a[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        y[i] = c0 + i <= r ? Q[r * PITCH + c0 + i] : zero_el();
        m[i] = zero_el();
    }
    if (b > first)
        for (int k = 0; k < ROWS; k++)
            if (k <= r) {
                const el q = Q[r * PITCH + k];
#pragma unroll
                for (int i = 0; i < EACH; i++) m[i] = mul_add(q, P[k * PITCH + c0 + i], m[i]);
            }
    el s = zero_el();
    if (first < b - 1) load_block(g, row, first * ROWS + c0, n, in, plain, a);
    for (i64 k = first; k < b - 1; k++) {
        el next[EACH];
        if (k + 1 < b - 1) load_block(g, row, (k + 1) * ROWS + c0, n, in, plain, next);
        const int turn = (int)(k & 1);
        if (part == 0) wait_for(solved + k * ROWS + r, &vec[turn][r]);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (!banded || (in && there_ij(g, row, step_row(g, k * ROWS + c0 + i)))) s = mul_add(a[i], vec[turn][c0 + i], s);
#pragma unroll
        for (int i = 0; i < EACH; i++) a[i] = next[i];
    }
    sums[0][part][r] = s;
    __syncthreads();
    if (part == 0) {
        el t = sums[0][0][r];
#pragma unroll
        for (int i = 1; i < SHARES; i++) t = add_el(t, sums[0][i][r]);
        vec[0][r] = add_el(right, neg_el(t));
    }
    __syncthreads();
    s = zero_el();
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (c0 + i <= r) s = mul_add(y[i], vec[0][c0 + i], s);
    sums[1][part][r] = s;
    __syncthreads();
    el x = zero_el();
    if (part == 0) {
        x = sums[1][0][r];
#pragma unroll
        for (int i = 1; i < SHARES; i++) x = add_el(x, sums[1][i][r]);
    }
    if (b > first) {
        if (part == 0) wait_for(solved + (b - 1) * ROWS + r, &vec[1][r]);
        __syncthreads();
        s = zero_el();
        /* a number of M that is 0 because nothing of a band is there takes nothing of what is no number */
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (!banded || !is_zero(m[i])) s = mul_add(m[i], vec[1][c0 + i], s);
        sums[0][part][r] = s;
        __syncthreads();
        if (part == 0) {
            el t = sums[0][0][r];
#pragma unroll
            for (int i = 1; i < SHARES; i++) t = add_el(t, sums[0][i][r]);
            x = add_el(x, neg_el(t));
        }
    }
    if (part == 0 && in) {
        show(solved + step, x);
        g.x[row * g.sx] = x;
    }
}

extern "C" __global__ void __launch_bounds__(1024) matvec_serial(const args g)
{
    __shared__ el sums[32];
    begin();
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const bool product = g.phase == 1;
    for (i64 step = 0; step < g.n_d; step++) {
        /* a product goes the other way, so that what is written is not read again */
        const i64 row = step_row(g, product ? g.n_d - 1 - step : step);
        el s = zero_el();
        for (i64 j = threadIdx.x; j < g.n_d; j += 1024)
            if ((product || j != row) && there_ij(g, row, j)) s = mul_add(at_ij(g, row, j), g.x[j * g.sx], s);
        s = over_warp(s);
        if (lane == 0) sums[warp] = s;
        __syncthreads();
        if (warp == 0) {
            s = over_warp(sums[lane]);
            if (lane == 0) {
                el *const x = g.x + row * g.sx;
                if (!product) {
                    s = add_el(*x, neg_el(s));
                    if (!g.unit) s = div_el(s, at_ij(g, row, row));
                }
                *x = s;
            }
        }
        __syncthreads();
    }
}
