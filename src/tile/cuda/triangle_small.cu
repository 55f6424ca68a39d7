/* SPDX-License-Identifier: Apache-2.0 */
/* triangle_small.cu - B := alpha A B or B := alpha A^-1 B in place for orders of NB at most and many items: a thread has a column of an item in its registers, a block of 128
 * threads those of 128 / COLS items (or of as many groups of COLS columns), whose triangles lie in shared memory with their diagonals inverted. A is lower, as in triangle.cu.
 *
 *     solution, ascending:  x_k = (b_k - sum) / a_kk, then taken from all rows below      (A by columns in shared memory)
 *     product, descending:  b_i = alpha sum_j a_ij b_j, j ascending to i                  (by rows) */
#ifndef T
#    define T f32
#    define SOLVE 1
#    define NB 8
#    define COLS 8
#endif
#include "triangle.cuh"

enum {
    NT = 128,
    UNITS = NT / COLS, /* of items and groups of columns */
    Q = 16 / sizeof(T) > NB ? NB : 16 / sizeof(T),
    PITCH = NB * NB + Q /* a unit's triangle: those of one warp begin in different banks */
};

/* Q numbers that stand together */
INL void fetch(T *to, const T *from) { *(uint4 *)to = *(const uint4 *)from; }

extern "C" __global__ void __launch_bounds__(NT) triangle_small(const __grid_constant__ st_triangle p)
{
    extern __shared__ __align__(16) char shared[];
    T *room = (T *)shared;
    const int n = (int)p.n, t = threadIdx.x;
    const i64 first = (i64)blockIdx.x * UNITS, units = p.items * p.panels;
    const bool along_rows = size_of_step(p.ars) < size_of_step(p.acs);
    for (int e = t; e < UNITS * NB * NB; e += NT) {
        const int u = e / (NB * NB), fast = e % NB, slow = e / NB % NB, r = along_rows ? fast : slow, k = along_rows ? slow : fast;
        if (r >= n || k > r || first + u >= units) continue;
        const T *a;
        T *b, v = of(1);
        matrices(p, (u32)((first + u) / p.panels), a, b);
        if (!(p.unit && r == k)) v = a[r * p.ars + k * p.acs];
        if (SOLVE && r == k && !p.unit) v = inverse(v);
        room[u * PITCH + (SOLVE ? k * NB + r : r * NB + k)] = v;
    }
    __syncthreads();
    const i64 unit = first + t / COLS;
    if (unit >= units) return;
    const u32 item = (u32)(unit / p.panels);
    const i64 col = (unit - (i64)item * p.panels) * COLS + t % COLS;
    const T *a;
    T *b, x[NB];
    matrices(p, item, a, b);
    if (col >= p.cols) return;
    b += col * p.bcs;
    const double alpha_im = p.conj ? -p.alpha_im : p.alpha_im;
#pragma unroll
    for (int r = 0; r < NB; r++) {
        x[r] = of(0);
        if (r < n) {
            x[r] = b[r * p.brs];
            if (p.conj) x[r] = conjugate(x[r]);
        }
    }
    const T *m = room + t / COLS * PITCH;
    if (SOLVE) {
#pragma unroll
        for (int r = 0; r < NB; r++) x[r] = scaled(x[r], p.alpha, alpha_im);
#pragma unroll
        for (int k = 0; k < NB; k++) {
            if (k < n) {
                T v = of(0);
                add(v, x[k], m[k * NB + k]);
                x[k] = v;
                const T minus_x = minus(of(0), v);
#pragma unroll
                for (int q = (k + 1) / Q; q < NB / Q; q++) {
                    T c[Q];
                    fetch(c, m + k * NB + q * Q);
#pragma unroll
                    for (int i = 0; i < Q; i++)
                        if (q * Q + i > k) add(x[q * Q + i], c[i], minus_x);
                }
            }
        }
    } else {
#pragma unroll
        for (int up = 0; up < NB; up++) {
            const int r = NB - 1 - up;
            if (r < n) {
                T v = of(0);
#pragma unroll
                for (int q = 0; q < NB / Q; q++) {
                    if (q * Q > r) continue;
                    T c[Q];
                    fetch(c, m + r * NB + q * Q);
#pragma unroll
                    for (int i = 0; i < Q; i++)
                        if (q * Q + i <= r) add(v, c[i], x[q * Q + i]);
                }
                x[r] = scaled(v, p.alpha, alpha_im);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < NB; r++)
        if (r < n) b[r * p.brs] = p.conj ? conjugate(x[r]) : x[r];
}
