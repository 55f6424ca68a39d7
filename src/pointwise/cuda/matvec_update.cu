/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_update.cu - A := A + p q^T, or + p q^T + r s^T, on what of A is there: a block has TILE elements of LINES lines. p and r run along d, q and s along l; the host says which of
 * x and y they are, the factors go with y's side of each product (x_i (alpha y_j)). */
#include "matvec.cuh"

#ifndef TWO
#    define TWO 0
#endif
enum { LINES = 32, AT_ONCE = sizeof(el) == 16 ? 2 : 4 };

/* phase 0: x along d, y times alpha along l; 1: the other way round */
INL el factor_d(const args &g, i64 d, bool second)
{
    const bool x = (g.phase == 0) != second;
    const el v = x ? conj_if(g.x[d * g.sx], g.conj_x) : conj_if(g.y[d * g.sy], g.conj_y);
    if (g.phase == 0) return v;
    return mul_el(conj_if(number(g.alpha), second && g.herm), conj_if(v, g.herm && TWO));
}
INL el factor_l(const args &g, i64 l, bool second)
{
    const bool x = (g.phase == 0) == second;
    const el v = x ? conj_if(g.x[l * g.sx], g.conj_x) : conj_if(g.y[l * g.sy], g.conj_y);
    if (g.phase != 0) return v;
    return mul_el(conj_if(number(g.alpha), second && g.herm), conj_if(v, g.herm && TWO));
}

extern "C" __global__ void __launch_bounds__(256) matvec_update(const args g)
{
    begin();
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const i64 tiles = (g.n_d + TILE - 1) / TILE, tile = blockIdx.x % tiles, chunk = blockIdx.x / tiles;
    const i64 d0 = tile * TILE, l0 = chunk * LINES, l1 = least(g.n_l, l0 + LINES);
    if (is_empty(g, d0, d0 + TILE, l0, l1)) return;
    const bool whole = is_whole(g, d0, l0, l1);
    el p[OWN];
#if TWO
    el r2[OWN];
#endif
#pragma unroll
    for (int q = 0; q < OWN; q++) {
        const i64 d = d0 + own(lane, q);
        p[q] = d < g.n_d ? factor_d(g, d, false) : zero_el();
#if TWO
        r2[q] = d < g.n_d ? factor_d(g, d, true) : zero_el();
#endif
    }
#pragma unroll
    for (int j = 0; j < LINES / LINE_WARPS / AT_ONCE; j++) {
        const i64 l = l0 + warp + j * LINE_WARPS * AT_ONCE;
        el r[AT_ONCE][OWN];
        if (whole) {
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) load_whole(g, d0, l + k * LINE_WARPS, lane, r[k]);
        } else {
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) load_part(g, d0, l + k * LINE_WARPS, lane, r[k]);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const i64 at = l + k * LINE_WARPS;
            if (at >= l1) continue;
            const el f = factor_l(g, at, false);
#if TWO
            const el f2 = factor_l(g, at, true);
#endif
            el *to = g.a + line_at(g, at) + d0 * g.sd;
#pragma unroll
            for (int q = 0; q < OWN; q++) {
                r[k][q] = mul_add(p[q], f, r[k][q]);
#if TWO
                r[k][q] = mul_add(r2[q], f2, r[k][q]);
#endif
            }
#if VEC
            if (whole) {
#    pragma unroll
                for (int i = 0; i < (int)(OWN * sizeof(el) / 16); i++)
                    __stcs((uint4 *)(to + own(lane, i * NEIGHBOURS)), ((const uint4 *)r[k])[i]);
                continue;
            }
#endif
#pragma unroll
            for (int q = 0; q < OWN; q++) {
                const i64 d = d0 + own(lane, q);
                if (whole || is_there(g, d, at))
                    to[(i64)own(lane, q) * g.sd] = real_only(r[k][q], g.herm && d == at);
            }
        }
    }
}
