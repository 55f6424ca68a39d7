/* SPDX-License-Identifier: Apache-2.0 */
/* vector_sums.h - the part of vector_body.h that adds up: dot products, sums of absolute values and of squares.
 *
 * Within a chunk four or eight sums in flight, joined in a fixed order; from chunk to chunk lanes stay apart, in f64. A vector of one chunk is folded as it
 * is. */

/* TERM(i, s, k) adds vector i, of k lanes. */
#define SUM4(n, s0, s1, s2, s3, TERM)              \
    int64_t i = 0;                                 \
    for (; i + 4 * LANES <= (n); i += 4 * LANES) { \
        TERM(i, s0, LANES);                        \
        TERM(i + LANES, s1, LANES);                \
        TERM(i + 2 * LANES, s2, LANES);            \
        TERM(i + 3 * LANES, s3, LANES);            \
    }                                              \
    if (i + LANES <= (n)) {                        \
        TERM(i, s0, LANES);                        \
        i += LANES;                                \
        if (i + LANES <= (n)) {                    \
            TERM(i, s1, LANES);                    \
            i += LANES;                            \
            if (i + LANES <= (n)) {                \
                TERM(i, s2, LANES);                \
                i += LANES;                        \
            }                                      \
        }                                          \
    }                                              \
    if (i < (n)) {                                 \
        const int rest = (int)((n)-i);             \
        TERM(i, s3, rest);                         \
    }

/* Lanes in f64. */
typedef struct NAME(wide) {
    vd lo, hi;
} NAME(wide);
ST_INLINE void NAME(widen)(NAME(wide) * w, V() a)
{
#if IS_F32
    vd lo, hi;
    vf_widen(a, &lo, &hi);
    w->lo = vd_add(w->lo, lo);
    w->hi = vd_add(w->hi, hi);
#else
    w->lo = vd_add(w->lo, a);
#endif
}

/* The same of many, eight at a time at first: s0 to s3 and t0 to t3, whose sums s0 to s3 then hold. Goes along x. */
#define SUM8(n, x, TERM)                                                                    \
    int64_t at = 0;                                                                         \
    for (; at + 8 * LANES <= n; at += 8 * LANES) {                                          \
        TERM(at, s0, LANES);                                                                \
        TERM(at + LANES, s1, LANES);                                                        \
        TERM(at + 2 * LANES, s2, LANES);                                                    \
        TERM(at + 3 * LANES, s3, LANES);                                                    \
        TERM(at + 4 * LANES, t0, LANES);                                                    \
        TERM(at + 5 * LANES, t1, LANES);                                                    \
        TERM(at + 6 * LANES, t2, LANES);                                                    \
        TERM(at + 7 * LANES, t3, LANES);                                                    \
    }                                                                                       \
    s0 = V(_add)(s0, t0), s1 = V(_add)(s1, t1), s2 = V(_add)(s2, t2), s3 = V(_add)(s3, t3); \
    x += at, n -= at;                                                                       \
    SUM4(n, s0, s1, s2, s3, TERM)

/* what one chunk of n parts adds up to, in lanes */
ST_INLINE V() NAME(asum_lanes)(int64_t n, const T *x)
{
    V() s0 = V(_set1)(0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    if (n <= LANES) return VABS(NAME(get)(x, (int)n));
#define TERM(i, s, k) s = V(_add)(s, VABS(NAME(get)(x + (i), k)))
    SUM8(n, x, TERM)
#undef TERM
    return V(_add)(V(_add)(s0, s1), V(_add)(s2, s3));
}
#if IS_F32
/* Squares of f32 neither overflow nor vanish in f64, and norms are what rotations and reflections are made of: they run in f64. */
ST_INLINE double NAME(squares)(int64_t n, const T *x)
{
    vd s0 = vd_set1(0), s1 = s0, s2 = s0, s3 = s0, lo, hi;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        vf_widen(V(_load)(x + i), &lo, &hi);
        s0 = vd_fma(lo, lo, s0), s1 = vd_fma(hi, hi, s1);
        vf_widen(V(_load)(x + i + LANES), &lo, &hi);
        s2 = vd_fma(lo, lo, s2), s3 = vd_fma(hi, hi, s3);
    }
    for (; i < n; i += LANES) {
        vf_widen(NAME(get)(x + i, n - i < LANES ? (int)(n - i) : LANES), &lo, &hi);
        s0 = vd_fma(lo, lo, s0), s1 = vd_fma(hi, hi, s1);
    }
    return vd_total(vd_add(vd_add(s0, s1), vd_add(s2, s3)));
}
#else
ST_INLINE V() NAME(squares_lanes)(int64_t n, const T *x)
{
    V() s0 = V(_set1)(0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    if (n <= LANES) {
        const V() a = NAME(get)(x, (int)n);
        return V(_mul)(a, a);
    }
#    define TERM(i, s, k)                        \
        do {                                     \
            const V() a = NAME(get)(x + (i), k); \
            s = V(_fma)(a, a, s);                \
        } while (0)
    SUM8(n, x, TERM)
#    undef TERM
    return V(_add)(V(_add)(s0, s1), V(_add)(s2, s3));
}
ST_INLINE double NAME(squares)(int64_t n, const T *x) { return V(_total)(NAME(squares_lanes)(n, x)); }
#endif

#if !PAIR
ST_INLINE V() NAME(dot_lanes)(int64_t n, const T *x, const T *y)
{
    V() s0 = V(_set1)(0), s1 = s0, s2 = s0, s3 = s0;
    if (n <= LANES) return V(_mul)(NAME(get)(x, (int)n), NAME(get)(y, (int)n));
    if (n <= 2 * LANES) {
        const int k = (int)n - LANES;
        return V(_fma)(NAME(get)(x + LANES, k), NAME(get)(y + LANES, k), V(_mul)(V(_load)(x), V(_load)(y)));
    }
#    define TERM(i, s, k) s = V(_fma)(NAME(get)(x + (i), k), NAME(get)(y + (i), k), s)
    SUM4(n, s0, s1, s2, s3, TERM)
#    undef TERM
    return V(_add)(V(_add)(s0, s1), V(_add)(s2, s3));
}

static ST_NOINLINE double NAME(dot_chunks)(int64_t n, const T *x, int64_t incx, const T *y, int64_t incy)
{
    _Alignas(64) T xs[CHUNK], ys[CHUNK];
    NAME(wide) w = {vd_set1(0), vd_set1(0)};
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t k = st_min64(CHUNK, n - at);
        const T *px = x + at * incx, *py = y + at * incy;
        if (incx != 1) NAME(gather)(xs, px, incx, k), px = xs;
        if (incy != 1) NAME(gather)(ys, py, incy, k), py = ys;
        const V() s = NAME(dot_lanes)(k, px, py);
        if (n <= CHUNK) return (double)V(_total)(s);
        NAME(widen)(&w, s);
    }
    return vd_total(vd_add(w.lo, w.hi));
}

static double NAME(dot)(int64_t n, const void *x, int64_t incx, const void *y, int64_t incy)
{
    if (incx == 1 && incy == 1 && n <= CHUNK) return (double)V(_total)(NAME(dot_lanes)(n, x, y));
    return NAME(dot_chunks)(n, x, incx, y, incy);
}

static void NAME(dots)(int64_t n, bool conjugate, const void *x, int64_t incx, const void *y, int64_t incy,
                       double r[2])
{
    (void)conjugate;
    r[0] = NAME(dot)(n, x, incx, y, incy), r[1] = 0;
}
#else
/* s: lanes of xr yr and xi yi, c: of xi yr and xr yi */
ST_INLINE void NAME(dots_lanes)(int64_t n, const T *x, const T *y, V() * s, V() * c)
{
    V() s0 = V(_set1)(0), s1 = s0, s2 = s0, s3 = s0, c0 = s0, c1 = s0, c2 = s0, c3 = s0;
#    define TERM(i, s, k)                                                   \
        do {                                                                \
            const V() a = NAME(get)(x + (i), k), b = NAME(get)(y + (i), k); \
            s = V(_fma)(a, b, s);                                           \
            c##s = V(_fma)(SWAP(a), b, c##s);                               \
        } while (0)
#    define cs0 c0
#    define cs1 c1
#    define cs2 c2
#    define cs3 c3
    SUM4(2 * n, s0, s1, s2, s3, TERM)
#    undef cs0
#    undef cs1
#    undef cs2
#    undef cs3
#    undef TERM
    *s = V(_add)(V(_add)(s0, s1), V(_add)(s2, s3));
    *c = V(_add)(V(_add)(c0, c1), V(_add)(c2, c3));
}

static ST_NOINLINE void NAME(dots_chunks)(int64_t n, const T *x, int64_t incx, const T *y, int64_t incy,
                                          double s[2], double c[2])
{
    _Alignas(64) T xs[CHUNK], ys[CHUNK];
    NAME(wide) ws = {vd_set1(0), vd_set1(0)}, wc = ws;
    for (int64_t at = 0; at < n; at += ST_VEC_CHUNK) {
        const int64_t k = st_min64(ST_VEC_CHUNK, n - at);
        const T *px = x + at * incx * 2, *py = y + at * incy * 2;
        V() vs, vc;
        if (incx != 1) NAME(gather)(xs, px, incx, k), px = xs;
        if (incy != 1) NAME(gather)(ys, py, incy, k), py = ys;
        NAME(dots_lanes)(k, px, py, &vs, &vc);
        if (n <= ST_VEC_CHUNK) {
            NAME(fold)(vs, s), NAME(fold)(vc, c);
            return;
        }
        NAME(widen)(&ws, vs), NAME(widen)(&wc, vc);
    }
    vd_fold(vd_add(ws.lo, ws.hi), s);
    vd_fold(vd_add(wc.lo, wc.hi), c);
}

static void NAME(dots)(int64_t n, bool conjugate, const void *x, int64_t incx, const void *y, int64_t incy,
                       double r[2])
{
    double s[2], c[2];
    if (incx == 1 && incy == 1 && n <= ST_VEC_CHUNK) {
        V() vs, vc;
        NAME(dots_lanes)(n, x, y, &vs, &vc);
        NAME(fold)(vs, s), NAME(fold)(vc, c);
    } else {
        NAME(dots_chunks)(n, x, incx, y, incy, s, c);
    }
    r[0] = conjugate ? s[0] + s[1] : s[0] - s[1];
    r[1] = conjugate ? c[1] - c[0] : c[1] + c[0];
}
#endif

static ST_NOINLINE double NAME(asum_chunks)(int64_t n, const T *x, int64_t incx)
{
    _Alignas(64) T xs[CHUNK];
    NAME(wide) w = {vd_set1(0), vd_set1(0)};
    for (int64_t at = 0; at < n; at += ST_VEC_CHUNK) {
        const int64_t k = st_min64(ST_VEC_CHUNK, n - at);
        const T *p = x + at * incx * PARTS;
        if (incx != 1) NAME(gather)(xs, p, incx, k), p = xs;
        const V() s = NAME(asum_lanes)(k * PARTS, p);
        if (n <= ST_VEC_CHUNK) return (double)V(_total)(s);
        NAME(widen)(&w, s);
    }
    return vd_total(vd_add(w.lo, w.hi));
}
static double NAME(asum)(int64_t n, const void *x, int64_t incx)
{
    if (incx == 1 && n <= ST_VEC_CHUNK) return (double)V(_total)(NAME(asum_lanes)(n * PARTS, x));
    return NAME(asum_chunks)(n, x, incx);
}

#if !IS_F32
/* What of a chunk's squares a plain sum cannot hold: see st_vec_norm. */
static ST_NOINLINE void NAME(scaled_squares)(int64_t n, const T *x, double out[4])
{
    for (int64_t i = 0; i < n; i++) {
        const double m = fabs((double)x[i]);
        if (m != m || isinf(m))
            out[3] += m;
        else if (m > 0x1p+486)
            out[1] += (m * 0x1p-538) * (m * 0x1p-538);
        else if (m < 0x1p-511)
            out[2] += (m * 0x1p+537) * (m * 0x1p+537);
        else
            out[0] += m * m;
    }
}
#endif
static ST_NOINLINE void NAME(norm)(int64_t n, const void *xv, int64_t incx, double out[4])
{
    const T *x = xv;
    _Alignas(64) T xs[CHUNK];
    for (int64_t at = 0; at < n; at += ST_VEC_CHUNK) {
        const int64_t k = st_min64(ST_VEC_CHUNK, n - at) * PARTS;
        const T *p = x + at * incx * PARTS;
        if (incx != 1) NAME(gather)(xs, p, incx, k / PARTS), p = xs;
        const double plain = NAME(squares)(k, p);
#if IS_F32
        out[0] += plain;
#else
        if (plain > 1e-270 && plain < 1e290)
            out[0] += plain;
        else
            NAME(scaled_squares)(k, p, out);
#endif
    }
}

static double NAME(nrm2)(int64_t n, const void *x, int64_t incx)
{
    double out[4] = {0};
    if (incx == 1 && n <= ST_VEC_CHUNK) { /* most calls */
        const double plain = NAME(squares)(n * PARTS, x);
        if (IS_F32 || (plain > 1e-270 && plain < 1e290)) return sqrt(plain);
    }
    NAME(norm)(n, x, incx, out);
    return st_vec_norm(out);
}
#undef SUM4
