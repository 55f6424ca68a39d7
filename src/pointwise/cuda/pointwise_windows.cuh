/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_windows.cuh - what kernels over windows share: their parameters, which taps of a window lie in the image, the largest of a window. */
#ifndef STRATA_POINTWISE_WINDOWS_CUH
#define STRATA_POINTWISE_WINDOWS_CUH
#include "types.cuh"
#ifndef ELEMENT
#    define ELEMENT float
#    define MAX 1
#    define CHANNELS 0
#    define BACKWARD 0
#    define ACCUMULATE 0
#    define ARGMAX 0
#    define FIND 0
#    define BIG 0
#endif

typedef ELEMENT T;
#if BIG
typedef i64 idx;
#else
typedef u32 idx;
#endif

struct pool {
    const T *x;
    T *y; /* dy backward */
    i32 *argmax;
    T *dx;
    i64 xs[4], ys[4], as[4], zs[4]; /* strides of x, y, argmax, dx */
    i64 total;
    i32 n, c, h, w, p, q;
    i32 window[2], stride[2], pad[2], pad_end[2], dilation[2], count_padding;
};

/* taps [lo, hi) of window i that lie in the image; count: what divides an average */
struct span {
    i32 lo, hi, count;
};
INL span span_of(const pool &P, int d, i32 i)
{
    const i64 at = (i64)i * P.stride[d] - P.pad[d], len = d ? P.w : P.h, step = P.dilation[d];
    const i64 lo = at < 0 ? (-at + step - 1) / step : 0, hi = at < len ? (len - at + step - 1) / step : 0;
    span s;
    s.lo = (i32)lo;
    s.hi = (i32)(hi < P.window[d] ? hi : P.window[d]);
    s.count = s.hi > s.lo ? s.hi - s.lo : 0;
    if (P.count_padding) {
        const i64 all = (len + P.pad_end[d] - at + step - 1) / step;
        s.count = (i32)(all < P.window[d] ? all : P.window[d]);
    }
    return s;
}

/* the largest of a window and where it is; a NaN is larger than all, of equals the first */
INL T largest(const pool &P, const T *x, i32 i, i32 j, span r, span s, i32 &at)
{
    T best = 0;
    at = -1;
    for (i32 a = r.lo; a < r.hi; a++)
        for (i32 b = s.lo; b < s.hi; b++) {
            const i32 h = i * P.stride[0] - P.pad[0] + a * P.dilation[0],
                      w = j * P.stride[1] - P.pad[1] + b * P.dilation[1];
            const T e = x[h * P.xs[2] + w * P.xs[3]];
            if (at < 0 || (best == best && !(e <= best))) best = e, at = h * P.w + w;
        }
    return best;
}

/* thread to (n, c, row, column) of an image of rows x cols */
struct place {
    i32 n, c, i, j;
};
INL place place_of(const pool &P, idx t, i32 rows, i32 cols)
{
    place e;
    if (CHANNELS) e.c = (i32)(t % P.c), t /= P.c;
    e.j = (i32)(t % cols), t /= cols;
    e.i = (i32)(t % rows), t /= rows;
    if (!CHANNELS) e.c = (i32)(t % P.c), t /= P.c;
    e.n = (i32)t;
    return e;
}
INL i64 offset_of(const i64 *s, place e) { return e.n * s[0] + e.c * s[1] + e.i * s[2] + e.j * s[3]; }
#endif
