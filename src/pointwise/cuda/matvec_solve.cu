/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_solve.cu - x := A^-1 x for a triangle, in one launch: block b (by a ticket, so that whoever is waited for runs) has ROWS rows, takes off what the rows before it give, in
 * ascending order as they are ready, and solves its own triangle. The idea is Hogg's, "A fast dense triangular solve in CUDA", SIAM J. Sci. Comput. 35 (2013). Steps k = 0, 1, ... are
 * rows 0, 1, ... of a lower triangle (side 0) and n - 1, n - 2, ... of an upper one (side 1).
 * matvec_serial: one block, without workspace, row by row: x := A^-1 x, or x := A x (phase 1). */
#include "matvec.cuh"

/* row i, column j */
INL el at_ij(const args &g, i64 i, i64 j)
{
    return g.rows_are_lines ? conj_if(element(g, j, i), g.conj_dot) : conj_if(element(g, i, j), g.conj_add);
}
INL bool there_ij(const args &g, i64 i, i64 j) { return g.rows_are_lines ? is_there(g, j, i) : is_there(g, i, j); }
INL i64 step_row(const args &g, i64 step) { return g.side ? g.n_d - 1 - step : step; }

INL u32 look(const u32 *p)
{
    u32 v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
INL void show(u32 *p) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(1u) : "memory"); }

/* past the first-level cache, which may hold what another block has overwritten */
INL el fresh(const el *p)
{
    el r;
    const u32 *a = (const u32 *)p;
    u32 *b = (u32 *)&r;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(el) / 4); i++) b[i] = __ldcg(a + i);
    return r;
}

enum { ROWS = sizeof(el) == 16 ? 32 : 64, COLS = ROWS, PARTS = 256 / ROWS, EACH = COLS / PARTS };
/* work: a counter and a flag a block, all 0 */
extern "C" __global__ void __launch_bounds__(256) matvec_solve(const args g)
{
    __shared__ el own_a[ROWS][ROWS + 1], own_x[ROWS], theirs[COLS], sums[PARTS][ROWS];
    __shared__ u32 mine;
    u32 *const flags = (u32 *)g.work;
    if (threadIdx.x == 0) mine = atomicAdd(flags, 1);
    __syncthreads();
    const i64 b = mine, n = g.n_d, s0 = b * ROWS;
    const int r = threadIdx.x % ROWS, part = threadIdx.x / ROWS; /* row; share of the columns */
    const i64 step = s0 + r, row = step_row(g, step < n ? step : n - 1);
    for (int c = part; c < ROWS; c += PARTS) {
        const bool in = step < n && s0 + c < n && c <= r;
        own_a[r][c] = in ? at_ij(g, row, step_row(g, s0 + c)) : zero_el();
    }
    el s = zero_el();
    const i64 reach = g.side ? (g.rows_are_lines ? g.below : g.above) : (g.rows_are_lines ? g.above : g.below);
    const i64 first = s0 > reach ? (s0 - reach) / COLS : 0;
    for (i64 k = first; k < b; k++) {
        el a[EACH];
#pragma unroll
        for (int c = 0; c < EACH; c++)
            a[c] = step < n ? at_ij(g, row, step_row(g, k * COLS + part * EACH + c)) : zero_el();
        if (threadIdx.x == 0)
            while (!look(flags + 1 + k)) {}
        __syncthreads();
        if (threadIdx.x < COLS) theirs[threadIdx.x] = fresh(g.x + step_row(g, k * COLS + threadIdx.x) * g.sx);
        __syncthreads();
#pragma unroll
        for (int c = 0; c < EACH; c++) {
            const int at = part * EACH + c;
            if (step < n && there_ij(g, row, step_row(g, k * COLS + at))) s = mul_add(a[c], theirs[at], s);
        }
        __syncthreads();
    }
    sums[part][r] = s;
    __syncthreads();
    if (part == 0) {
        el v = step < n ? g.x[row * g.sx] : zero_el();
        el t = sums[0][r];
        for (int i = 1; i < PARTS; i++) t = add_el(t, sums[i][r]);
        own_x[r] = add_el(v, neg_el(t));
    }
    __syncthreads();
    /* one warp, a row or two a lane; solved numbers go round by shared memory */
    if (threadIdx.x < 32) {
        el x[ROWS / 32];
#pragma unroll
        for (int i = 0; i < ROWS / 32; i++) x[i] = own_x[threadIdx.x + 32 * i];
#pragma unroll
        for (int i = 0; i < ROWS / 32; i++)
            for (int k = 0; k < 32 && s0 + 32 * i + k < n; k++) {
                const int c = 32 * i + k;
                if ((int)threadIdx.x == k) own_x[c] = g.unit ? x[i] : div_el(x[i], own_a[c][c]);
                __syncwarp();
                const el v = neg_el(own_x[c]);
#pragma unroll
                for (int j = 0; j < ROWS / 32; j++) {
                    const int at = threadIdx.x + 32 * j;
                    if (at > c && at - c <= reach) x[j] = mul_add(own_a[at][c], v, x[j]);
                }
                __syncwarp();
            }
    }
    __syncthreads();
    if (part == 0 && step < n) g.x[row * g.sx] = own_x[r];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) show(flags + 1 + b);
}

extern "C" __global__ void __launch_bounds__(1024) matvec_serial(const args g)
{
    __shared__ el sums[32];
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
