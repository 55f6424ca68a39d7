/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_sum.cu - products of a matrix and a vector, in parts whose bounds follow from the matrix's shape alone; matvec_end joins them in ascending order.
 *
 * matvec_add: lines times numbers, added. A block has `across` threads along d, 16 bytes of every line each, and 256 / across of them beside each other take turns at the
 * lines of a chunk; where one chunk has all lines, the result is stored at once. matvec_dot: lines' sums, a warp a few lines of a chunk of d. A stored half that is read once for both
 * triangles: matvec_half, HALF_LINES lines times a few tiles a block, lines' sums stay in registers from tile to tile; matvec_tiles (bands): a tile a block. matvec_plain:
 * one warp an output, for small problems and where there is no workspace. */
#include "matvec.cuh"

enum { AT_ONCE = sizeof(el) == 16 ? 2 : sizeof(el) == 8 ? 4 : 8 };
enum { HALF_LINES = sizeof(el) == 16 ? 32 : 64 }; /* as in matvec_cuda.c */

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

INL void put(const args &g, i64 at, el sum)
{
    el *y = g.y + at * g.sy;
    const el alpha = number(g.alpha), beta = number(g.beta);
    sum = mul_el(alpha, sum);
    *y = is_zero(beta) ? sum : mul_add(beta, *y, sum);
}

enum { ACROSS = 16 / sizeof(el), ADD_LINES = sizeof(el) == 8 ? 5 : 4, X_ROOM = 512, GAP_LINES = 1 };
extern "C" __global__ void __launch_bounds__(256, VEC ? 3 : 2) matvec_add(const args g)
{
    __shared__ __align__(16) el sums[256 * ACROSS], xs[X_ROOM];
    begin();
    const int tx = (int)g.across, ty = 256 / tx, at_x = threadIdx.x % tx, at_y = threadIdx.x / tx;
    const i64 width = (i64)tx * ACROSS, tiles = (g.n_d + width - 1) / width, tile = blockIdx.x % tiles,
              chunk = blockIdx.x / tiles, t0 = tile * width;
    const i64 c0 = chunk * g.lines_chunk, c1 = least(g.n_l, c0 + g.lines_chunk);
    const i64 l0 = most(c0, t0 - g.below), l1 = least(c1, t0 + width + g.above);
    if (!g.relative && l0 >= l1) return;
    /* a thread's elements of a line: 16 bytes where VEC, else tx apart */
    const i64 step = VEC ? 1 : tx, d0 = t0 + (VEC ? at_x * ACROSS : at_x);
    el s[ACROSS];
#pragma unroll
    for (int q = 0; q < ACROSS; q++) s[q] = zero_el();
    for (i64 b0 = l0; b0 < l1; b0 += X_ROOM) {
        const i64 b1 = least(l1, b0 + X_ROOM);
        const int lines = (int)(b1 - b0);
        __syncthreads();
        for (int l = threadIdx.x; l < lines; l += 256) xs[l] = conj_if(g.x[(b0 + l) * g.sx], g.conj_x);
        __syncthreads();
        /* lines of which every element of the tile is there, and read as it lies: [w0, w1) of these; before and behind them lines with gaps */
        const bool inside = t0 + width <= g.n_d && g.packed == 0, rules = g.unit || g.herm;
        const i64 low = most(b0, t0 + width - 1 - g.below), high = least(b1, t0 + g.above + 1);
        int w0 = inside ? (int)(low - b0) : lines, w1 = inside ? (int)(high - b0) : lines;
        if (rules && t0 + width - 1 >= b0 && t0 < b1) w0 = w1 = lines; /* the diagonal */
        if (w0 >= w1) w0 = w1 = lines;
        const el *p = g.a + (b0 + w0 + at_y) * g.sl + d0 * g.sd;
        const i64 next = ty * g.sl;
        for (int l = w0 + at_y; l < w1; l += ty * ADD_LINES, p += ADD_LINES * next) {
            el r[ADD_LINES][ACROSS];
#pragma unroll
            for (int k = 0; k < ADD_LINES; k++)
                if (l + k * ty < w1) {
#if VEC
                    *(uint4 *)r[k] = __ldcs((const uint4 *)(p + k * next));
#else
#    pragma unroll
                    for (int q = 0; q < ACROSS; q++) r[k][q] = p[k * next + q * step * g.sd];
#endif
                }
#pragma unroll
            for (int k = 0; k < ADD_LINES; k++)
                if (l + k * ty < w1) {
                    const el t = xs[l + k * ty];
#pragma unroll
                    for (int q = 0; q < ACROSS; q++) s[q] = mul_add(conj_if(r[k][q], g.conj_add), t, s[q]);
                }
        }
        /* the others: what is not there is 0 in r, but its product is none all the same, since x may be no number there */
        for (int l = at_y >= w0 && at_y < w1 ? at_y + (w1 - at_y + ty - 1) / ty * ty : at_y; l < lines;) {
            el r[GAP_LINES][ACROSS];
            int at_line[GAP_LINES];
#pragma unroll
            for (int k = 0; k < GAP_LINES; k++) {
                at_line[k] = l;
                if (l >= lines) continue;
                const i64 at = b0 + l;
#if VEC
                if (is_there(g, d0, at) && is_there(g, d0 + ACROSS - 1, at) && (!rules || at < d0 || at >= d0 + ACROSS)) {
                    *(uint4 *)r[k] = __ldcs((const uint4 *)(g.a + at * g.sl + d0));
                } else
#endif
                {
#pragma unroll
                    for (int q = 0; q < ACROSS; q++) r[k][q] = element(g, d0 + q * step, at);
                }
                l += ty;
                if (l >= w0 && l < w1) l += (w1 - l + ty - 1) / ty * ty;
            }
#pragma unroll
            for (int k = 0; k < GAP_LINES; k++)
                if (at_line[k] < lines) {
                    const el t = xs[at_line[k]];
#pragma unroll
                    for (int q = 0; q < ACROSS; q++)
                        if (is_there(g, d0 + q * step, b0 + at_line[k])) s[q] = mul_add(conj_if(r[k][q], g.conj_add), t, s[q]);
                }
        }
    }
#pragma unroll
    for (int q = 0; q < ACROSS; q++)
        sums[at_y * tx * ACROSS + (VEC ? at_x * ACROSS + q : at_x + q * tx)] = s[q];
    __syncthreads();
    for (int i = threadIdx.x; i < width && t0 + i < g.n_d; i += 256) {
        el sum = sums[i];
        for (int y = 1; y < ty; y++) sum = add_el(sum, sums[y * tx * ACROSS + i]);
        if (g.relative) /* the one part: to y at once */
            put(g, t0 + i, sum);
        else
            g.work[chunk * g.n_d + t0 + i] = sum;
    }
}

enum { HALF_OWN = HALF_LINES / LINE_WARPS };
extern "C" __global__ void __launch_bounds__(256, 2) matvec_half(const args g)
{
    __shared__ el sums[2][LINE_WARPS][TILE], xs[HALF_LINES];
    begin();
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const i64 strips = (g.n_l + HALF_LINES - 1) / HALF_LINES, strip = blockIdx.x % strips, chunk = blockIdx.x / strips;
    const i64 c0 = chunk * g.d_chunk, c1 = least(g.n_d, c0 + g.d_chunk), l0 = strip * HALF_LINES,
              l1 = least(g.n_l, l0 + HALF_LINES), mine = l0 + warp * HALF_OWN;
    if (is_empty(g, c0, c1, l0, l1)) return;
    if (threadIdx.x < HALF_LINES)
        xs[threadIdx.x] = l0 + threadIdx.x < l1 ? conj_if(g.x[(l0 + threadIdx.x) * g.sx], g.conj_x) : zero_el();
    __syncthreads();
    const el *const t = xs + warp * HALF_OWN;
    el dot[HALF_OWN];
#pragma unroll
    for (int k = 0; k < HALF_OWN; k++) dot[k] = zero_el();
    int turn = 0;
    for (i64 d0 = c0; d0 < c1; d0 += TILE, turn ^= 1) {
        el s[OWN], with[OWN];
        load_x(g, d0, lane, with);
#pragma unroll
        for (int q = 0; q < OWN; q++) s[q] = zero_el();
        if (is_whole(g, d0, l0, l0 + HALF_LINES)) {
#pragma unroll
            for (int k0 = 0; k0 < HALF_OWN; k0 += AT_ONCE) {
                el r[AT_ONCE][OWN];
#pragma unroll
                for (int k = 0; k < AT_ONCE; k++) load_whole(g, d0, mine + k0 + k, lane, r[k]);
#pragma unroll
                for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
                    for (int q = 0; q < OWN; q++) {
                        s[q] = mul_add(conj_if(r[k][q], g.conj_add), t[k0 + k], s[q]);
                        dot[k0 + k] = mul_add(conj_if(r[k][q], g.conj_dot), with[q], dot[k0 + k]);
                    }
            }
        } else {
#pragma unroll
            for (int k = 0; k < HALF_OWN; k++)
#pragma unroll
                for (int q = 0; q < OWN; q++) {
                    /* an absent element's product is none: x may be no number there */
                    const i64 at = mine + k, d = d0 + own(lane, q);
                    if (!is_there(g, d, at)) continue;
                    const el r = element(g, d, at);
                    s[q] = mul_add(conj_if(r, g.conj_add), t[k], s[q]);
                    if (d != at) dot[k] = mul_add(conj_if(r, g.conj_dot), with[q], dot[k]);
                }
        }
#pragma unroll
        for (int q = 0; q < OWN; q++) sums[turn][warp][own(lane, q)] = s[q];
        __syncthreads();
        if (threadIdx.x < TILE && d0 + threadIdx.x < g.n_d) {
            el sum = sums[turn][0][threadIdx.x];
#pragma unroll
            for (int w = 1; w < LINE_WARPS; w++) sum = add_el(sum, sums[turn][w][threadIdx.x]);
            g.work[strip * g.n_d + d0 + threadIdx.x] = sum;
        }
    }
#pragma unroll
    for (int k = 0; k < HALF_OWN; k++) {
        const el sum = over_warp(dot[k]);
        if (lane == 0 && mine + k < l1) g.work[(strips + chunk) * g.n_d + mine + k] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) matvec_tiles(const args g)
{
    __shared__ el sums[LINE_WARPS][TILE];
    begin();
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const i64 tiles = (g.n_d + TILE - 1) / TILE, tile = blockIdx.x % tiles, at_chunk = blockIdx.x / tiles,
              chunk = g.above == 0 ? tile - at_chunk : tile + at_chunk;
    if (chunk < 0 || chunk >= tiles) return;
    const i64 d0 = tile * TILE, c0 = chunk * g.lines_chunk, c1 = least(g.n_l, c0 + g.lines_chunk);
    if (is_empty(g, d0, d0 + TILE, c0, c1)) return;
    /* lines that meet the tile; warps keep their lines */
    const i64 l0 = most(c0, d0 - g.below), l1 = least(c1, d0 + TILE + g.above),
              begin = c0 + (l0 - c0) / LINE_WARPS * LINE_WARPS;
    el s[OWN];
#pragma unroll
    for (int q = 0; q < OWN; q++) s[q] = zero_el();
    el with[OWN];
#pragma unroll
    for (int q = 0; q < OWN; q++) {
        const i64 d = d0 + own(lane, q);
        with[q] = d < g.n_d ? conj_if(g.x[d * g.sx], g.conj_x) : zero_el();
    }
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
            el sum = zero_el();
#pragma unroll
            for (int q = 0; q < OWN; q++) {
                const i64 d = d0 + own(lane, q);
                if (whole ? at < l1 : d != at && is_there(g, d, at))
                    sum = mul_add(conj_if(r[k][q], g.conj_dot), with[q], sum);
            }
            sum = over_warp(sum);
            if (lane == 0 && at < l1) g.work[slot_dot(g, tile, chunk) * g.n_d + at] = sum;
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
/* across: 1: every warp has lines of its own; LINE_WARPS: the warps share a few lines, of which each takes every eighth tile, and the result is stored at once */
extern "C" __global__ void __launch_bounds__(256, 2) matvec_dot(const args g)
{
    __shared__ el sums[LINE_WARPS][LINES_OWN];
    begin();
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const bool shared = g.across > 1;
    const i64 own_lines = shared ? LINES_OWN : LINE_WARPS * LINES_OWN, groups = (g.n_l + own_lines - 1) / own_lines,
              group = blockIdx.x % groups, chunk = blockIdx.x / groups;
    const i64 l0 = group * own_lines + (shared ? 0 : warp * LINES_OWN), l1 = least(g.n_l, l0 + LINES_OWN);
    const i64 c0 = chunk * g.d_chunk, c1 = least(g.n_d, c0 + g.d_chunk);
    if (!shared && (l0 >= g.n_l || is_empty(g, c0, c1, l0, l1))) return;
    const i64 first = most(c0, l0 - g.above), from = c0 + (first - c0) / TILE * TILE + (shared ? warp * TILE : 0),
              end = least(c1, l1 + g.below), step = shared ? LINE_WARPS * TILE : TILE;
    el s[LINES_OWN];
#pragma unroll
    for (int k = 0; k < LINES_OWN; k++) s[k] = zero_el();
#pragma unroll(sizeof(el) <= 8 ? 2 : 1)
    for (i64 d0 = from; d0 < end; d0 += step) {
        el r[LINES_OWN][OWN], with[OWN];
        const bool whole = is_whole(g, d0, l0, l0 + LINES_OWN);
        if (whole) {
#pragma unroll
            for (int k = 0; k < LINES_OWN; k++) load_whole(g, d0, l0 + k, lane, r[k]);
        } else {
#pragma unroll
            for (int k = 0; k < LINES_OWN; k++) load_part(g, d0, l0 + k, lane, r[k]);
        }
        load_x(g, d0, lane, with);
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
        if (shared && lane == 0) sums[warp][k] = sum;
        if (!shared && lane == 0 && l0 + k < g.n_l) g.work[chunk * g.n_l + l0 + k] = sum;
    }
    if (!shared) return;
    __syncthreads();
    if (threadIdx.x < LINES_OWN && l0 + threadIdx.x < g.n_l) {
        el sum = sums[0][threadIdx.x];
#pragma unroll
        for (int w = 1; w < LINE_WARPS; w++) sum = add_el(sum, sums[w][threadIdx.x]);
        put(g, l0 + threadIdx.x, sum);
    }
}

/* phase 0: lines were added, 1: summed, 2: both, by tiles; 3: there is no sum at all; 4: both, by strips */
extern "C" __global__ void __launch_bounds__(256) matvec_end(const args g)
{
    __shared__ el sums[8][32];
    begin();
    const i64 outputs = g.phase == 1 || (g.phase == 3 && g.rows_are_lines) ? g.n_l : g.n_d,
              at = (i64)blockIdx.x * 32 + (threadIdx.x & 31);
    const int part = threadIdx.x / 32;
    const bool dot = g.phase == 1;
    el s = zero_el();
    if (at < outputs && g.phase == 4) {
        /* blocks (strip, chunk) that are not empty gave all their lines and elements */
        const i64 size = g.d_chunk, c0 = at / size * size, s0 = at / HALF_LINES * HALF_LINES,
                  strips = (g.n_l + HALF_LINES - 1) / HALF_LINES;
        const i64 a0 = most(0, c0 - g.below) / HALF_LINES,
                  a1 = least(g.n_l - 1, c0 + size - 1 + g.above) / HALF_LINES + 1,
                  m0 = most(0, s0 - g.above) / size, m1 = least(g.n_d - 1, s0 + HALF_LINES - 1 + g.below) / size + 1;
        const i64 count = a1 - a0 + m1 - m0, each = (count + 7) / 8;
        for (i64 i = part * each; i < least(count, (part + 1) * each); i++)
            s = add_el(s, g.work[(i < a1 - a0 ? a0 + i : strips + m0 + i - (a1 - a0)) * outputs + at]);
    } else if (at < outputs && g.phase != 3) {
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
    begin();
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
