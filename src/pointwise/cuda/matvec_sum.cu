/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_sum.cu - products of a matrix and a vector, in parts whose bounds follow from the matrix's shape alone; matvec_end joins them in ascending order.
 *
 * matvec_add: lines times numbers, added: a block has TILE elements of every line of a chunk, warp w lines w, w + 8, ... With BOTH (a stored half that is read once for both triangles)
 * every line's sum over the tile is taken too. matvec_dot: lines' sums, a warp a few lines of a chunk of d. matvec_plain: one warp an output,
 * for small problems and where there is no workspace. */
#include "matvec.cuh"

#ifndef BOTH
#    define BOTH 0
#endif
enum { AT_ONCE = sizeof(el) == 16 ? 2 : sizeof(el) == 8 ? 4 : 8 };

/* where the part that belongs to tile `tile` and chunk `chunk` goes, for outputs along d and along l */
INL i64 slot_add(const args &g, i64 tile, i64 chunk)
{
    return !g.relative ? chunk : tile > chunk ? tile - chunk : chunk - tile;
}
INL i64 slot_dot(const args &g, i64 tile, i64 chunk)
{
    if (g.relative) return g.parts / 2 + (tile > chunk ? tile - chunk : chunk - tile);
    return tile == chunk ? g.parts - 1 : tile;
}

extern "C" __global__ void __launch_bounds__(256, 2) matvec_add(const args g)
{
    __shared__ el sums[LINE_WARPS][TILE];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const i64 tiles = (g.n_d + TILE - 1) / TILE, tile = blockIdx.x % tiles, at_chunk = blockIdx.x / tiles,
              chunk = !BOTH ? at_chunk : g.above == 0 ? tile - at_chunk : tile + at_chunk;
    if (BOTH && (chunk < 0 || chunk >= tiles)) return;
    const i64 d0 = tile * TILE, c0 = chunk * g.lines_chunk, c1 = least(g.n_l, c0 + g.lines_chunk);
    if (is_empty(g, d0, d0 + TILE, c0, c1)) return;
    /* lines that meet the tile; warps keep their lines */
    const i64 l0 = most(c0, d0 - g.below), l1 = least(c1, d0 + TILE + g.above),
              begin = c0 + (l0 - c0) / LINE_WARPS * LINE_WARPS;
    el s[OWN];
#pragma unroll
    for (int q = 0; q < OWN; q++) s[q] = zero_el();
#if BOTH
    el with[OWN];
#    pragma unroll
    for (int q = 0; q < OWN; q++) {
        const i64 d = d0 + own(lane, q);
        with[q] = d < g.n_d ? conj_if(g.x[d * g.sx], g.conj_x) : zero_el();
    }
#endif
    const bool whole = is_whole(g, d0, begin, l1);
    for (i64 l = begin + warp; l < l1; l += LINE_WARPS * AT_ONCE) {
        el r[AT_ONCE][OWN], t[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const i64 at = l + k * LINE_WARPS;
            if (at < l1) {
                if (whole)
                    load_whole(g, d0, at, lane, r[k]);
                else
                    load_part(g, d0, at, lane, r[k]);
                t[k] = conj_if(g.x[at * g.sx], g.conj_x);
            } else {
#pragma unroll
                for (int q = 0; q < OWN; q++) r[k][q] = zero_el();
                t[k] = zero_el();
            }
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const i64 at = l + k * LINE_WARPS;
            /* an absent element's product is none: x may be no number there */
#pragma unroll
            for (int q = 0; q < OWN; q++)
                if (whole ? at < l1 : is_there(g, d0 + own(lane, q), at))
                    s[q] = mul_add(conj_if(r[k][q], g.conj_add), t[k], s[q]);
#if BOTH
            el sum = zero_el();
#    pragma unroll
            for (int q = 0; q < OWN; q++) {
                const i64 d = d0 + own(lane, q);
                if (whole ? at < l1 : d != at && is_there(g, d, at))
                    sum = mul_add(conj_if(r[k][q], g.conj_dot), with[q], sum);
            }
            sum = over_warp(sum);
            if (lane == 0 && at < l1) g.work[slot_dot(g, tile, chunk) * g.n_d + at] = sum;
#endif
        }
    }
#pragma unroll
    for (int q = 0; q < OWN; q++) sums[warp][own(lane, q)] = s[q];
    __syncthreads();
    if (threadIdx.x < TILE && d0 + threadIdx.x < g.n_d) {
        el sum = sums[0][threadIdx.x];
#pragma unroll
        for (int w = 1; w < LINE_WARPS; w++) sum = add_el(sum, sums[w][threadIdx.x]);
        g.work[slot_add(g, tile, chunk) * g.n_d + d0 + threadIdx.x] = sum;
    }
}

enum { LINES_OWN = sizeof(el) == 16 ? 2 : 4 }; /* as in matvec_cuda.c */
extern "C" __global__ void __launch_bounds__(256, 2) matvec_dot(const args g)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const i64 groups = (g.n_l + LINE_WARPS * LINES_OWN - 1) / (LINE_WARPS * LINES_OWN), group = blockIdx.x % groups,
              chunk = blockIdx.x / groups;
    const i64 l0 = (group * LINE_WARPS + warp) * LINES_OWN, l1 = least(g.n_l, l0 + LINES_OWN);
    const i64 c0 = chunk * g.d_chunk, c1 = least(g.n_d, c0 + g.d_chunk);
    if (l0 >= g.n_l || is_empty(g, c0, c1, l0, l1)) return;
    const i64 first = most(c0, l0 - g.above), begin = c0 + (first - c0) / TILE * TILE, end = least(c1, l1 + g.below);
    el s[LINES_OWN];
#pragma unroll
    for (int k = 0; k < LINES_OWN; k++) s[k] = zero_el();
#pragma unroll(sizeof(el) <= 8 ? 2 : 1)
    for (i64 d0 = begin; d0 < end; d0 += TILE) {
        el r[LINES_OWN][OWN], with[OWN];
        const bool whole = is_whole(g, d0, l0, l0 + LINES_OWN);
        if (whole) {
#pragma unroll
            for (int k = 0; k < LINES_OWN; k++) load_whole(g, d0, l0 + k, lane, r[k]);
        } else {
#pragma unroll
            for (int k = 0; k < LINES_OWN; k++) load_part(g, d0, l0 + k, lane, r[k]);
        }
#pragma unroll
        for (int q = 0; q < OWN; q++) {
            const i64 d = d0 + own(lane, q);
            with[q] = d < g.n_d ? conj_if(g.x[d * g.sx], g.conj_x) : zero_el();
        }
#pragma unroll
        for (int k = 0; k < LINES_OWN; k++)
#pragma unroll
            for (int q = 0; q < OWN; q++)
                if (whole || is_there(g, d0 + own(lane, q), l0 + k))
                    s[k] = mul_add(conj_if(r[k][q], g.conj_dot), with[q], s[k]);
    }
#pragma unroll
    for (int k = 0; k < LINES_OWN; k++) {
        const el sum = over_warp(s[k]);
        if (lane == 0 && l0 + k < g.n_l) g.work[chunk * g.n_l + l0 + k] = sum;
    }
}

INL void put(const args &g, i64 at, el sum)
{
    el *y = g.y + at * g.sy;
    const el alpha = number(g.alpha), beta = number(g.beta);
    sum = mul_el(alpha, sum);
    *y = is_zero(beta) ? sum : mul_add(beta, *y, sum);
}

/* phase 0: lines were added, 1: summed, 2: both; 3: there is no sum at all */
extern "C" __global__ void __launch_bounds__(256) matvec_end(const args g)
{
    __shared__ el sums[8][32];
    const i64 outputs = g.phase == 1 || (g.phase == 3 && g.rows_are_lines) ? g.n_l : g.n_d,
              at = (i64)blockIdx.x * 32 + (threadIdx.x & 31);
    const int part = threadIdx.x / 32;
    const bool dot = g.phase == 1;
    el s = zero_el();
    if (at < outputs && g.phase != 3) {
        /* what of the other direction meets this output, in chunks */
        const i64 other = dot ? g.n_d : g.n_l, size = dot ? g.d_chunk : g.lines_chunk,
                  low = most(0, at - (dot ? g.above : g.below)), high = least(other - 1, at + (dot ? g.below : g.above));
        const i64 a0 = low / size, a1 = low > high ? a0 : high / size + 1;
        /* the mirror's tiles */
        const i64 m0 = most(0, at - g.above) / TILE, m1 = g.phase == 2 ? least(g.n_d - 1, at + g.below) / TILE + 1 : m0;
        const i64 count = a1 - a0 + m1 - m0, each = (count + 7) / 8, tile = at / TILE;
        for (i64 i = part * each; i < least(count, (part + 1) * each); i++) {
            const i64 c = a0 + i, m = m0 + i - (a1 - a0);
            const i64 slot = i >= a1 - a0 ? slot_dot(g, m, tile) : g.phase == 2 ? slot_add(g, tile, c) : c;
            s = add_el(s, g.work[slot * outputs + at]);
        }
    }
    sums[part][threadIdx.x & 31] = s;
    __syncthreads();
    if (part || at >= outputs) return;
    for (int i = 1; i < 8; i++) s = add_el(s, sums[i][threadIdx.x]);
    if (g.phase == 3)
        g.y[at * g.sy] = is_zero(number(g.beta)) ? zero_el() : mul_el(number(g.beta), g.y[at * g.sy]);
    else
        put(g, at, s);
}

extern "C" __global__ void __launch_bounds__(256) matvec_plain(const args g)
{
    const i64 outputs = g.rows_are_lines ? g.n_l : g.n_d, terms = g.rows_are_lines ? g.n_d : g.n_l,
              at = (i64)blockIdx.x * 8 + threadIdx.x / 32;
    const int lane = threadIdx.x & 31;
    if (at >= outputs) return;
    el s = zero_el();
    for (i64 k = lane; k < terms; k += 32) {
        const i64 d = g.rows_are_lines ? k : at, l = g.rows_are_lines ? at : k;
        const bool here = is_there(g, d, l), there = !here && g.mirror && is_there(g, l, d);
        if (!here && !there) continue;
        /* conjugated as an element of this place, or as its mirror image */
        const bool c = (g.rows_are_lines != 0) == here ? g.conj_dot : g.conj_add;
        s = mul_add(conj_if(here ? element(g, d, l) : element(g, l, d), c), conj_if(g.x[k * g.sx], g.conj_x), s);
    }
    s = over_warp(s);
    if (lane == 0) put(g, at, s);
}
