/* SPDX-License-Identifier: Apache-2.0 */
/* vecsum.cu - what of one or two vectors gives one number: OP 0 dot product, 1 euclidean norm, 2 sum of magnitudes, 3 position of the largest |re| + |im| (least: of the smallest).
 *
 * A slot is 16 bytes of neighbouring elements; block b has the slots of part b, bounds follow from the length alone. Sums of f32 run in f32 over ROUND slots and then in f64; a
 * round that overflows or comes out so small that squares may have vanished is summed again in f64. Squares of f64 go to one of three sums, large ones scaled down and tiny ones up,
 * where a round's plain sum is out of range (Anderson, "Algorithm 978", TOMS 44, 2017). Positions compare the bits of magnitudes, of which a NaN's are the largest. */
#include "matvec.cuh"

#ifndef OP
#    define OP 0
#endif
enum { SLOT = 16 / sizeof(el), ROUND = OP == 0 ? 3 : OP == 3 ? 4 : 6, THREADS = 256 };
struct total {
    f64 a, b, c; /* dot: re, im; norm: plain, large, tiny; sum: a */
    i64 at;      /* position */
    u64 key;
};
/* As the host fills it: vecsum_cuda.c has the same words. */
struct sum_args {
    const el *x, *y;
    void *result;
    total *work;
    i64 n, sx, sy, chunk, parts; /* chunk: slots of a part */
    i64 conjugate, least, wide;  /* wide: the result is f64, or i64 */
};

#if OP > 1
INL T size_of(el v)
{
#if COMPLEX
    return magnitude(v.re) + magnitude(v.im);
#else
    return magnitude(v.re);
#endif
}
#endif
#if OP == 3
INL u64 key_of(el v, bool least)
{
    const T s = size_of(v);
    if (s != s) return ~0ull;
    return least ? (1ull << 63) - bits_of(s) : bits_of(s) + 1; /* 0: nothing seen yet */
}
#endif

INL void merge(total &t, const total &o)
{
#if OP == 3
    if (o.key > t.key || (o.key == t.key && o.at < t.at)) t = o;
#else
    t.a += o.a, t.b += o.b, t.c += o.c;
#endif
}
INL void clear(total &t)
{
    t.a = t.b = t.c = 0;
    t.key = 0, t.at = (i64)(~0ull >> 1);
}
INL total from_lane(const total &v, int m)
{
    total r;
    const u32 *a = (const u32 *)&v;
    u32 *b = (u32 *)&r;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(total) / 4); i++) b[i] = __shfl_xor_sync(0xffffffffu, a[i], m);
    return r;
}
/* the block's total, in thread 0 */
INL void over_block(total &t)
{
    __shared__ total warps[THREADS / 32];
#pragma unroll
    for (int m = 16; m; m >>= 1) merge(t, from_lane(t, m));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = t;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < THREADS / 32; w++) merge(t, warps[w]);
}

/* elements of slot i; behind the end: 0 */
INL void load(const el *x, i64 step, i64 n, i64 i, el *r)
{
#if VEC
    if ((i + 1) * SLOT <= n) {
        *(uint4 *)r = __ldcs((const uint4 *)x + i);
        return;
    }
#endif
#pragma unroll
    for (int q = 0; q < SLOT; q++) r[q] = i * SLOT + q < n ? x[(i * SLOT + q) * step] : zero_el();
}

#if OP == 1
INL void take_squares(total &t, T v)
{
    const f64 a = magnitude((f64)v);
    if (sizeof(T) == 4 || (a >= 0x1p-511 && a <= 0x1p+486) || a != a) t.a = fma_of(a, a, t.a);
    else if (a > 0x1p+486) t.b = fma_of(a * 0x1p-538, a * 0x1p-538, t.b);
    else t.c = fma_of(a * 0x1p+537, a * 0x1p+537, t.c);
}
#endif

INL void take_round(total &t, const el (&x)[ROUND][SLOT], const el (&y)[OP == 0 ? ROUND : 1][SLOT], i64 first, const sum_args &g, u32 *limit)
{
#if OP == 0
    T re[SLOT], im[SLOT];
#    pragma unroll
    for (int q = 0; q < SLOT; q++) re[q] = im[q] = 0;
#    pragma unroll
    for (int k = 0; k < ROUND; k++)
#    pragma unroll
        for (int q = 0; q < SLOT; q++) {
#    if COMPLEX
            const T xi = g.conjugate ? -x[k][q].im : x[k][q].im;
            re[q] = fma_of(-xi, y[k][q].im, fma_of(x[k][q].re, y[k][q].re, re[q]));
            im[q] = fma_of(xi, y[k][q].re, fma_of(x[k][q].re, y[k][q].im, im[q]));
#    else
            re[q] = fma_of(x[k][q].re, y[k][q].re, re[q]);
#    endif
        }
#    pragma unroll
    for (int q = 1; q < SLOT; q++) re[0] += re[q], im[0] += im[q];
    t.a += (f64)re[0], t.b += (f64)im[0];
#elif OP == 1
    T s[SLOT];
#    pragma unroll
    for (int q = 0; q < SLOT; q++) s[q] = 0;
#    pragma unroll
    for (int k = 0; k < ROUND; k++)
#    pragma unroll
        for (int q = 0; q < SLOT; q++) {
            s[q] = fma_of(x[k][q].re, x[k][q].re, s[q]);
#    if COMPLEX
            s[q] = fma_of(x[k][q].im, x[k][q].im, s[q]);
#    endif
        }
#    pragma unroll
    for (int q = 1; q < SLOT; q++) s[0] += s[q];
    if (squares_fit(s[0])) {
        t.a += (f64)s[0];
        return;
    }
#    pragma unroll
    for (int k = 0; k < ROUND; k++)
#    pragma unroll
        for (int q = 0; q < SLOT; q++) {
            take_squares(t, x[k][q].re);
#    if COMPLEX
            take_squares(t, x[k][q].im);
#    endif
        }
#elif OP == 2
    T s[SLOT];
#    pragma unroll
    for (int q = 0; q < SLOT; q++) s[q] = 0;
#    pragma unroll
    for (int k = 0; k < ROUND; k++)
#    pragma unroll
        for (int q = 0; q < SLOT; q++) s[q] += size_of(x[k][q]);
#    pragma unroll
    for (int q = 1; q < SLOT; q++) s[0] += s[q];
    if (sum_fits(s[0])) {
        t.a += (f64)s[0];
        return;
    }
#    pragma unroll
    for (int k = 0; k < ROUND; k++)
#    pragma unroll
        for (int q = 0; q < SLOT; q++) {
            t.a += (f64)magnitude(x[k][q].re);
#    if COMPLEX
            t.a += (f64)magnitude(x[k][q].im);
#    endif
        }
#else
    if (!g.least) { /* mostly nothing here beats what is known; a NaN's bits are larger than a number's */
        u32 most_of = 0;
#    pragma unroll
        for (int k = 0; k < ROUND; k++)
#    pragma unroll
            for (int q = 0; q < SLOT; q++) {
                const u32 s = upper_bits(size_of(x[k][q]));
                most_of = s > most_of ? s : most_of;
            }
        if (most_of < *(volatile u32 *)limit) return; /* of what any thread of the block has seen */
    }
    /* of the smallest: the round's best magnitude alone, and NaN by a comparison that fails */
    T best = size_of(x[0][0]);
    bool nan = false;
#    pragma unroll
    for (int k = 0; k < ROUND; k++)
#    pragma unroll
        for (int q = 0; q < SLOT; q++) {
            const T s = size_of(x[k][q]);
            nan = nan || s != s;
            best = g.least ? (s < best ? s : best) : (s > best ? s : best);
        }
    const el top = real_el(best);
    if (!nan && key_of(top, g.least) <= t.key) return;
#    pragma unroll
    for (int k = 0; k < ROUND; k++)
#    pragma unroll
        for (int q = 0; q < SLOT; q++) {
            const i64 at = (first + (i64)k * THREADS) * SLOT + q;
            const u64 key = key_of(x[k][q], g.least);
            if (at < g.n && key > t.key) t.key = key, t.at = at;
        }
    if (!g.least && t.key) { /* no more than the least NaN's, of which the first one counts */
        const u64 top = sizeof(T) == 4 ? t.key - 1 : (t.key - 1) >> 32, most_top = sizeof(T) == 4 ? 0x7f800001u : 0x7ff00000u;
        atomicMax(limit, (u32)(t.key == ~0ull || top > most_top ? most_top : top));
    }
#endif
}

extern "C" __global__ void __launch_bounds__(256, 3) vecsum(const sum_args g)
{
#if OP == 3
    __shared__ u32 room;
    u32 *const limit = &room;
    if (threadIdx.x == 0) room = 0;
    __syncthreads();
#else
    u32 *const limit = nullptr;
#endif
    begin();
    const i64 slots = (g.n + SLOT - 1) / SLOT, c0 = (i64)blockIdx.x * g.chunk, c1 = least(slots, c0 + g.chunk);
    total t;
    clear(t);
    i64 i = c0 + threadIdx.x;
    for (; i + (ROUND - 1) * THREADS < c1; i += ROUND * THREADS) {
        el x[ROUND][SLOT], y[OP == 0 ? ROUND : 1][SLOT];
#pragma unroll
        for (int k = 0; k < ROUND; k++) {
            load(g.x, g.sx, g.n, i + k * THREADS, x[k]);
#if OP == 0
            load(g.y, g.sy, g.n, i + k * THREADS, y[k]);
#endif
        }
        take_round(t, x, y, i, g, limit);
    }
    if (i < c1) {
        el x[ROUND][SLOT], y[OP == 0 ? ROUND : 1][SLOT];
#pragma unroll
        for (int k = 0; k < ROUND; k++) {
            const bool in = i + k * THREADS < c1;
#pragma unroll
            for (int q = 0; q < SLOT; q++) {
                x[k][q] = zero_el();
#if OP == 0
                y[k][q] = zero_el();
#endif
            }
            if (in) load(g.x, g.sx, g.n, i + k * THREADS, x[k]);
#if OP == 0
            if (in) load(g.y, g.sy, g.n, i + k * THREADS, y[k]);
#endif
        }
#if OP == 3
        (void)y;
        /* what was filled up is none of the vector's */
#    pragma unroll
        for (int k = 0; k < ROUND; k++)
#    pragma unroll
            for (int q = 0; q < SLOT; q++) {
                const i64 s = i + (i64)k * THREADS, at = s * SLOT + q;
                const u64 key = key_of(x[k][q], g.least);
                if (s < c1 && at < g.n && (key > t.key || (key == t.key && at < t.at))) t.key = key, t.at = at;
            }
#else
        take_round(t, x, y, i, g, limit);
#endif
    }
    over_block(t);
    if (threadIdx.x == 0) g.work[blockIdx.x] = t;
}

extern "C" __global__ void __launch_bounds__(256) vecsum_end(const sum_args g)
{
    begin();
    total t;
    clear(t);
    for (i64 p = threadIdx.x; p < g.parts; p += THREADS) merge(t, g.work[p]);
    over_block(t);
    if (threadIdx.x) return;
#if OP == 0
    el r = real_el((T)t.a);
#    if COMPLEX
    r.im = (T)t.b;
#    endif
    *(el *)g.result = r;
#elif OP == 3
    if (g.wide)
        *(i64 *)g.result = t.at;
    else
        *(int *)g.result = (int)t.at;
#else
    f64 v = t.a;
#    if OP == 1
    if (t.b > 0) v = __dsqrt_rn(t.b + t.a * 0x1p-538 * 0x1p-538) * 0x1p+538;
    else if (t.c > 0 && t.a < 1e-250) v = __dsqrt_rn(t.c + t.a * 0x1p+537 * 0x1p+537) * 0x1p-537;
    else v = __dsqrt_rn(t.a);
#    endif
    if (g.wide)
        *(f64 *)g.result = v;
    else
        *(f32 *)g.result = (f32)v;
#endif
}
