/* SPDX-License-Identifier: Apache-2.0 */
/* vector_body.h - the kernels of vector.h, written once; a vector_<arch>.c file includes it for the four types (vector_types.h) with T (of a part),
 * V(op), LANES, SWAP, VABS, FMA, PAIR (1: elements are pairs of parts) and NAME(what). SWAP exchanges the neighbours in each pair of lanes, which is all that
 * complex arithmetic on pairs needs: (a + bi)(x + yi) is a * (x, y) + (-b, b) * (y, x).
 *
 * A call takes at most a piece. Element by element, strided vectors go by the same operations one element at a time; sums gather them by chunks, so that
 * their order is that of dense ones. Loops have four vectors in flight; a masked vector ends them. */

#define PARTS (PAIR + 1)
#define CHUNK (ST_VEC_CHUNK * PARTS) /* parts */

ST_INLINE V() NAME(get)(const T *p, int k) { return k == LANES ? V(_load)(p) : V(_loadn)(p, k); }
ST_INLINE void NAME(put)(T *p, V() a, int k)
{
    if (k == LANES)
        V(_store)(p, a);
    else
        V(_storen)(p, a, k);
}
#if PAIR
ST_INLINE V() NAME(pairs)(double even, double odd)
{
    T lane[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = (T)(i % 2 ? odd : even);
    return V(_load)(lane);
}
#endif

#if PAIR
/* the even and the odd lanes, each added up */
ST_INLINE void NAME(fold)(V() a, double out[2])
{
    T s[2];
    V(_fold)(a, s);
    out[0] = (double)s[0], out[1] = (double)s[1];
}
#endif

/* Elements of a strided vector, dense. */
static void NAME(gather)(T *to, const T *from, int64_t step, int64_t n)
{
    step *= PARTS;
    for (int64_t i = 0; i < n; i++, from += step)
        for (int p = 0; p < PARTS; p++) to[i * PARTS + p] = from[p];
}

/* ---- element by element ------------------------------------------------------------------------------------------------------- */
/* y := a x + b y, real factors; keep: b is 1, zero: b is 0 and y is not read. n counts parts. */
ST_INLINE void NAME(axpby_dense)(int64_t n, T a, const T *x, bool keep, bool zero, T b, T *y)
{
    const V() va = V(_set1)(a), vb = V(_set1)(b);
#define OLD(i, k) (keep ? NAME(get)(y + (i), k) : V(_mul)(vb, NAME(get)(y + (i), k)))
#define NEW(i, k) (zero ? V(_mul)(va, NAME(get)(x + (i), k)) : V(_fma)(va, NAME(get)(x + (i), k), OLD(i, k)))
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        const V() r0 = NEW(i, LANES), r1 = NEW(i + LANES, LANES), r2 = NEW(i + 2 * LANES, LANES),
                  r3 = NEW(i + 3 * LANES, LANES);
        V(_store)(y + i, r0);
        V(_store)(y + i + LANES, r1);
        V(_store)(y + i + 2 * LANES, r2);
        V(_store)(y + i + 3 * LANES, r3);
    }
    for (; i + LANES <= n; i += LANES) V(_store)(y + i, NEW(i, LANES));
    if (i < n) {
        const int k = (int)(n - i);
        V(_storen)(y + i, NEW(i, k), k);
    }
#undef NEW
#undef OLD
}

#if PAIR
/* complex factors */
ST_INLINE void NAME(complex_dense)(int64_t n, const double a[2], const T *x, bool keep, bool zero,
                                   const double b[2], T *y)
{
    const V() re = V(_set1)((T)a[0]), im = NAME(pairs)(-a[1], a[1]);
    const V() bre = V(_set1)((T)b[0]), bim = NAME(pairs)(-b[1], b[1]);
    int64_t i = 0;
#    define NEW(i, k)                           \
        V(_fma)                                 \
        (im, SWAP(NAME(get)(x + (i), k)),       \
         V(_fma)(re, NAME(get)(x + (i), k),     \
                 zero   ? V(_set1)(0)           \
                 : keep ? NAME(get)(y + (i), k) \
                        : V(_fma)(bim, SWAP(NAME(get)(y + (i), k)), V(_mul)(bre, NAME(get)(y + (i), k)))))
    for (; i + 2 * LANES <= 2 * n; i += 2 * LANES) {
        const V() r0 = NEW(i, LANES), r1 = NEW(i + LANES, LANES);
        V(_store)(y + i, r0);
        V(_store)(y + i + LANES, r1);
    }
    for (; i < 2 * n; i += LANES) {
        const int k = 2 * n - i < LANES ? (int)(2 * n - i) : LANES;
        NAME(put)(y + i, NEW(i, k), k);
    }
#    undef NEW
}
#endif

/* One element, by the same operations. */
ST_INLINE void NAME(axpby_one)(bool real, T ar, T ai, const T *x, bool keep, bool zero, T br, T bi, T *y)
{
    const T x0 = x[0];
    if (!PAIR || real) {
        for (int p = 0; p < PARTS; p++) y[p] = zero ? ar * x[p] : FMA(ar, x[p], keep ? y[p] : br * y[p]);
        return;
    }
    const T x1 = x[PAIR];
    T r0 = 0, r1 = 0;
    if (!zero) {
        const T y0 = y[0], y1 = y[PAIR];
        r0 = keep ? y0 : FMA(-bi, y1, br * y0), r1 = keep ? y1 : FMA(bi, y0, br * y1);
    }
    y[0] = FMA(-ai, x1, FMA(ar, x0, r0));
    y[PAIR] = FMA(ai, x0, FMA(ar, x1, r1));
}

ST_INLINE void NAME(axpby_any)(int64_t n, const double a[2], const T *x, int64_t incx, bool keep, bool zero,
                               const double b[2], T *y, int64_t incy)
{
    const bool real = !PAIR || (a[1] == 0 && b[1] == 0);
    if (incx == 1 && incy == 1) {
#if PAIR
        if (!real) {
            NAME(complex_dense)(n, a, x, keep, zero, b, y);
            return;
        }
#endif
        NAME(axpby_dense)(n * PARTS, (T)a[0], x, keep, zero, (T)b[0], y);
        return;
    }
    const T ar = (T)a[0], ai = (T)a[1], br = (T)b[0], bi = (T)b[1];
    for (int64_t i = 0; i < n; i++, x += incx * PARTS, y += incy * PARTS)
        NAME(axpby_one)(real, ar, ai, x, keep, zero, br, bi, y);
}

static void NAME(axpy)(int64_t n, const double a[2], const void *x, int64_t incx, void *y, int64_t incy)
{
    static const double one[2] = {1, 0};
    NAME(axpby_any)(n, a, x, incx, true, false, one, y, incy);
}

static void NAME(axpby)(int64_t n, const double a[2], const void *x, int64_t incx, const double b[2], void *y,
                        int64_t incy)
{
    if (b[0] == 1 && b[1] == 0)
        NAME(axpy)(n, a, x, incx, y, incy);
    else
        NAME(axpby_any)(n, a, x, incx, false, b[0] == 0 && b[1] == 0, b, y, incy);
}

static void NAME(scal)(int64_t n, const double a[2], void *xv, int64_t incx)
{
    T *x = xv;
    const T ar = (T)a[0], ai = (T)a[1];
    const bool real = !PAIR || a[1] == 0;
    if (incx != 1) {
        for (int64_t i = 0; i < n; i++, x += incx * PARTS) {
            const T x0 = x[0], x1 = x[PAIR];
            x[0] = real ? ar * x0 : FMA(-ai, x1, ar * x0);
            if (PAIR) x[PAIR] = real ? ar * x1 : FMA(ai, x0, ar * x1);
        }
        return;
    }
    int64_t i = 0;
    n *= PARTS;
#if PAIR
    if (!real) {
        const V() re = V(_set1)(ar), im = NAME(pairs)(-a[1], a[1]);
        for (; i < n; i += LANES) {
            const int k = n - i < LANES ? (int)(n - i) : LANES;
            const V() v = NAME(get)(x + i, k);
            NAME(put)(x + i, V(_fma)(im, SWAP(v), V(_mul)(re, v)), k);
        }
        return;
    }
#endif
    const V() va = V(_set1)(ar);
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        const V() r0 = V(_mul)(va, V(_load)(x + i)), r1 = V(_mul)(va, V(_load)(x + i + LANES)),
                  r2 = V(_mul)(va, V(_load)(x + i + 2 * LANES)),
                  r3 = V(_mul)(va, V(_load)(x + i + 3 * LANES));
        V(_store)(x + i, r0);
        V(_store)(x + i + LANES, r1);
        V(_store)(x + i + 2 * LANES, r2);
        V(_store)(x + i + 3 * LANES, r3);
    }
    for (; i + LANES <= n; i += LANES) V(_store)(x + i, V(_mul)(va, V(_load)(x + i)));
    if (i < n) V(_storen)(x + i, V(_mul)(va, V(_loadn)(x + i, (int)(n - i))), (int)(n - i));
}

static void NAME(copy)(int64_t n, const void *xv, int64_t incx, void *yv, int64_t incy)
{
    const T *x = xv;
    T *y = yv;
    if (incx != 1 || incy != 1) {
        for (int64_t i = 0; i < n; i++, x += incx * PARTS, y += incy * PARTS)
            for (int p = 0; p < PARTS; p++) y[p] = x[p];
        return;
    }
    int64_t i = 0;
    n *= PARTS;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        const V() r0 = V(_load)(x + i), r1 = V(_load)(x + i + LANES), r2 = V(_load)(x + i + 2 * LANES),
                  r3 = V(_load)(x + i + 3 * LANES);
        V(_store)(y + i, r0);
        V(_store)(y + i + LANES, r1);
        V(_store)(y + i + 2 * LANES, r2);
        V(_store)(y + i + 3 * LANES, r3);
    }
    for (; i + LANES <= n; i += LANES) V(_store)(y + i, V(_load)(x + i));
    if (i < n) V(_storen)(y + i, V(_loadn)(x + i, (int)(n - i)), (int)(n - i));
}

static void NAME(swap)(int64_t n, void *xv, int64_t incx, void *yv, int64_t incy)
{
    T *x = xv, *y = yv;
    if (incx != 1 || incy != 1) {
        for (int64_t i = 0; i < n; i++, x += incx * PARTS, y += incy * PARTS)
            for (int p = 0; p < PARTS; p++) {
                const T t = x[p];
                x[p] = y[p];
                y[p] = t;
            }
        return;
    }
    int64_t i = 0;
    n *= PARTS;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const V() a0 = V(_load)(x + i), a1 = V(_load)(x + i + LANES), b0 = V(_load)(y + i),
                  b1 = V(_load)(y + i + LANES);
        V(_store)(x + i, b0);
        V(_store)(x + i + LANES, b1);
        V(_store)(y + i, a0);
        V(_store)(y + i + LANES, a1);
    }
    for (; i < n; i += LANES) {
        const int k = n - i < LANES ? (int)(n - i) : LANES;
        const V() a = NAME(get)(x + i, k), b = NAME(get)(y + i, k);
        NAME(put)(x + i, b, k);
        NAME(put)(y + i, a, k);
    }
}

/* h: h11 h21 h12 h22, on parts */
static void NAME(rotm)(int64_t n, const double h[4], void *xv, int64_t incx, void *yv, int64_t incy)
{
    T *x = xv, *y = yv;
    const T t11 = (T)h[0], t21 = (T)h[1], t12 = (T)h[2], t22 = (T)h[3];
    if (incx != 1 || incy != 1) {
        for (int64_t i = 0; i < n; i++, x += incx * PARTS, y += incy * PARTS)
            for (int p = 0; p < PARTS; p++) {
                const T a = x[p], b = y[p];
                x[p] = FMA(t12, b, t11 * a);
                y[p] = FMA(t21, a, t22 * b);
            }
        return;
    }
    const V() h11 = V(_set1)(t11), h21 = V(_set1)(t21), h12 = V(_set1)(t12), h22 = V(_set1)(t22);
    int64_t i = 0;
    n *= PARTS;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const V() a0 = V(_load)(x + i), a1 = V(_load)(x + i + LANES), b0 = V(_load)(y + i),
                  b1 = V(_load)(y + i + LANES);
        V(_store)(x + i, V(_fma)(h12, b0, V(_mul)(h11, a0)));
        V(_store)(x + i + LANES, V(_fma)(h12, b1, V(_mul)(h11, a1)));
        V(_store)(y + i, V(_fma)(h21, a0, V(_mul)(h22, b0)));
        V(_store)(y + i + LANES, V(_fma)(h21, a1, V(_mul)(h22, b1)));
    }
    for (; i < n; i += LANES) {
        const int k = n - i < LANES ? (int)(n - i) : LANES;
        const V() a = NAME(get)(x + i, k), b = NAME(get)(y + i, k);
        NAME(put)(x + i, V(_fma)(h12, b, V(_mul)(h11, a)), k);
        NAME(put)(y + i, V(_fma)(h21, a, V(_mul)(h22, b)), k);
    }
}

/* x, y := c x + s y, c y - conj(s) x: where s has an imaginary part, by two passes over a chunk and its copy. */
static void NAME(rot)(int64_t n, double c, const double s[2], void *xv, int64_t incx, void *yv, int64_t incy)
{
    if (!PAIR || s[1] == 0) {
        const double h[4] = {c, -s[0], s[0], c};
        NAME(rotm)(n, h, xv, incx, yv, incy);
        return;
    }
    T *x = xv, *y = yv, old[CHUNK / 8];
    const double f[2] = {c, 0}, t[2] = {-s[0], s[1]};
    for (int64_t at = 0; at < n; at += ST_VEC_CHUNK / 8) {
        const int64_t k = st_min64(ST_VEC_CHUNK / 8, n - at);
        T *px = x + at * incx * PARTS, *py = y + at * incy * PARTS;
        NAME(gather)(old, px, incx, k);
        NAME(axpby)(k, s, py, incy, f, px, incx);
        NAME(axpby)(k, t, old, 1, f, py, incy);
    }
}

#include "pointwise/cpu/vector_sums.h"

/* ---- places --------------------------------------------------------------------------------------------------------------------
 * The first place of the largest absolute value (least: of the smallest), or of the first NaN: the value of a block first, then, in the block that
 * has it, where it stands. */
ST_INLINE V() NAME(size_of)(V() a, bool least)
{
    a = VABS(a);
#if PAIR
    a = V(_add)(a, SWAP(a)); /* the same in both lanes of a pair */
#endif
    return least ? V(_sub)(V(_set1)(0), a) : a;
}

/* n elements, dense; a value that is NaN when there is one */
ST_INLINE T NAME(block_most)(int64_t n, const T *x, bool least)
{
    V() b0 = V(_set1)(-INFINITY), b1 = b0, b2 = b0, b3 = b0;
    int64_t i = 0;
    n *= PARTS;
    if (n < LANES) {
        if (!least) {
            const V() a = NAME(size_of)(V(_loadn)(x, (int)n), false);
            return V(_any)(V(_nan)(a, a)) ? (T)NAN : V(_most)(a);
        }
        T few[LANES];
        for (int k = 0; k < LANES; k++) few[k] = x[k < n ? k : k % PARTS];
        const V() a = NAME(size_of)(V(_load)(few), true);
        return V(_any)(V(_nan)(a, a)) ? (T)NAN : V(_most)(a);
    }
    V(m) bad = V(_nan)(b0, b0);
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        const V() a0 = NAME(size_of)(V(_load)(x + i), least),
                  a1 = NAME(size_of)(V(_load)(x + i + LANES), least),
                  a2 = NAME(size_of)(V(_load)(x + i + 2 * LANES), least),
                  a3 = NAME(size_of)(V(_load)(x + i + 3 * LANES), least);
        b0 = V(_max)(a0, b0), b1 = V(_max)(a1, b1), b2 = V(_max)(a2, b2), b3 = V(_max)(a3, b3);
        bad = V(_or)(bad, V(_or)(V(_nan)(a0, a1), V(_nan)(a2, a3)));
    }
    for (; i < n; i += LANES) { /* the last one may see some again */
        const V() a = NAME(size_of)(V(_load)(x + (i + LANES <= n ? i : n - LANES)), least);
        b0 = V(_max)(a, b0);
        bad = V(_or)(bad, V(_nan)(a, a));
    }
    if (V(_any)(bad)) return (T)NAN;
    return V(_most)(V(_max)(V(_max)(b0, b1), V(_max)(b2, b3)));
}

ST_INLINE int64_t NAME(block_find)(int64_t n, const T *x, bool least, T m)
{
    const V() vm = V(_set1)(m);
    n *= PARTS;
    for (int64_t i = 0; i < n; i += LANES) {
        const int at =
            V(_first)(NAME(size_of)(NAME(get)(x + i, n - i < LANES ? (int)(n - i) : LANES), least), vm);
        if (at < LANES) return (i + at) / PARTS;
    }
    return 0;
}

/* The place, and what stands there (its negative where `least`). */
ST_INLINE int64_t NAME(place)(int64_t n, const T *x, int64_t incx, bool least, double *value)
{
    _Alignas(64) T xs[CHUNK];
    T best = -INFINITY;
    int64_t block = 0;
    for (int64_t at = 0; at < n; at += ST_VEC_CHUNK) {
        const int64_t k = st_min64(ST_VEC_CHUNK, n - at);
        const T *p = x + at * incx * PARTS;
        if (incx != 1) NAME(gather)(xs, p, incx, k), p = xs;
        const T m = NAME(block_most)(k, p, least);
        if (!(m <= best)) best = m, block = at;
        if (m != m) break;
    }
    const int64_t k = st_min64(ST_VEC_CHUNK, n - block);
    const T *p = x + block * incx * PARTS;
    if (incx != 1) NAME(gather)(xs, p, incx, k), p = xs;
    *value = (double)best;
    return block + NAME(block_find)(k, p, least, best);
}

static int64_t NAME(most_at)(int64_t n, const void *x, int64_t incx, double *value)
{
    return NAME(place)(n, x, incx, false, value);
}
static int64_t NAME(least_at)(int64_t n, const void *x, int64_t incx, double *value)
{
    return NAME(place)(n, x, incx, true, value);
}
static int64_t NAME(iamax)(int64_t n, const void *x, int64_t incx)
{
    double value;
    return NAME(place)(n, x, incx, false, &value);
}
static int64_t NAME(iamin)(int64_t n, const void *x, int64_t incx)
{
    double value;
    return NAME(place)(n, x, incx, true, &value);
}

const st_vec_kernels NAME(kernels) = {.shorts = {.most = ST_VEC_PIECE,
                                                 .axpy = NAME(axpy),
                                                 .axpby = NAME(axpby),
                                                 .scal = NAME(scal),
                                                 .copy = NAME(copy),
                                                 .swap = NAME(swap),
                                                 .rot = NAME(rot),
                                                 .rotm = NAME(rotm),
#if !PAIR
                                                 .dot = NAME(dot),
#endif
                                                 .dots = NAME(dots),
                                                 .nrm2 = NAME(nrm2),
                                                 .asum = NAME(asum),
                                                 .iamax = NAME(iamax),
                                                 .iamin = NAME(iamin)},
                                      .norm = NAME(norm),
                                      .most_at = NAME(most_at),
                                      .least_at = NAME(least_at)};
#undef CHUNK
#undef PARTS
