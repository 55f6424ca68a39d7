/* SPDX-License-Identifier: Apache-2.0 */
/* matcopy.cu - matrices element by element: C := alpha op(A) + beta op(B), or C := diag(B) A, of any strides, packed triangles, batches. A thread an element of C; threads are neighbours along
 * the dim in which C's elements are. */
#include "matvec.cuh"

enum { DIMS = 8 };
/* as matcopy_cuda.c has it */
struct copy_args {
    const el *a, *b;
    el *c;
    i64 count, rank, by_rows, half, hermitian, diagonal, conj_a, conj_b;
    i64 dim[DIMS], stride[3][DIMS], packed[3];
    f64 alpha[2], beta[2];
};

INL i64 offset_of(const copy_args &g, int o, i64 i, i64 j)
{
    const i64 row = g.stride[o][g.rank - 2], col = g.stride[o][g.rank - 1], n = g.dim[g.rank - 1];
    if (!g.packed[o]) return i * row + j * col;
    const bool turned = row == 0; /* by rows: the other triangle by columns */
    const i64 r = turned ? j : i, c = turned ? i : j;
    return (g.half == 2) != turned ? r + c * (c + 1) / 2 : r + c * (2 * n - c - 1) / 2;
}

extern "C" __global__ void __launch_bounds__(256) matcopy(const copy_args g)
{
    i64 at = (i64)blockIdx.x * 256 + threadIdx.x;
    if (at >= g.count) return;
    const i64 rows = g.dim[g.rank - 2], cols = g.dim[g.rank - 1];
    i64 i, j, base[3] = {0, 0, 0};
    if (g.by_rows)
        j = at % cols, at /= cols, i = at % rows, at /= rows;
    else
        i = at % rows, at /= rows, j = at % cols, at /= cols;
    if ((g.half == 1 && j > i) || (g.half == 2 && i > j)) return;
    for (i64 d = g.rank - 3; d >= 0; d--) {
        const i64 k = at % g.dim[d];
        at /= g.dim[d];
        for (int o = 0; o < 3; o++) base[o] += k * g.stride[o][d];
    }
    const el alpha = number(g.alpha), beta = number(g.beta);
    el v = zero_el();
    if (g.diagonal) {
        v = mul_el(conj_if(g.b[base[1] + i * g.stride[1][g.rank - 2]], g.conj_b),
                   conj_if(g.a[base[0] + offset_of(g, 0, i, j)], g.conj_a));
    } else {
        if (!is_zero(alpha)) v = mul_el(alpha, conj_if(g.a[base[0] + offset_of(g, 0, i, j)], g.conj_a));
        if (!is_zero(beta)) {
            const el b = conj_if(g.b[base[1] + offset_of(g, 1, i, j)], g.conj_b);
            v = is_zero(alpha) ? mul_el(beta, b) : mul_add(beta, b, v);
        }
    }
    g.c[base[2] + offset_of(g, 2, i, j)] = real_only(v, g.hermitian && i == j);
}
