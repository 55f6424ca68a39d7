/* SPDX-License-Identifier: Apache-2.0 */
/* vector_body.h - the kernels of vector.h, written once; a vector_<arch>.c file includes it for f32 and f64 with T, V(op), LANES, SWAP and
 * NAME(what). SWAP exchanges the neighbours in each pair of lanes, which is all that complex arithmetic on pairs needs:
 * (a + bi)(x + yi) is a * (x, y) + (-b, b) * (y, x). Loops have four vectors in flight; a masked vector ends them. */

static void NAME(axpby)(int64_t n, double a, const void *xv, double b, void *yv)
{
    const T *x = xv;
    T *y = yv;
    const V() va = V(_set1)((T)a), vb = V(_set1)((T)b);
    int64_t i = 0;
    if (b == 0) {
        for (; i + LANES <= n; i += LANES) V(_store)(y + i, V(_mul)(va, V(_load)(x + i)));
        if (i < n) V(_storen)(y + i, V(_mul)(va, V(_loadn)(x + i, (int)(n - i))), (int)(n - i));
    } else if (b == 1) {
        for (; i + 4 * LANES <= n; i += 4 * LANES) {
            V() r0 = V(_fma)(va, V(_load)(x + i), V(_load)(y + i));
            V() r1 = V(_fma)(va, V(_load)(x + i + LANES), V(_load)(y + i + LANES));
            V() r2 = V(_fma)(va, V(_load)(x + i + 2 * LANES), V(_load)(y + i + 2 * LANES));
            V() r3 = V(_fma)(va, V(_load)(x + i + 3 * LANES), V(_load)(y + i + 3 * LANES));
            V(_store)(y + i, r0);
            V(_store)(y + i + LANES, r1);
            V(_store)(y + i + 2 * LANES, r2);
            V(_store)(y + i + 3 * LANES, r3);
        }
        for (; i + LANES <= n; i += LANES) V(_store)(y + i, V(_fma)(va, V(_load)(x + i), V(_load)(y + i)));
        if (i < n) {
            const int k = (int)(n - i);
            V(_storen)(y + i, V(_fma)(va, V(_loadn)(x + i, k), V(_loadn)(y + i, k)), k);
        }
    } else {
        for (; i + LANES <= n; i += LANES)
            V(_store)(y + i, V(_fma)(va, V(_load)(x + i), V(_mul)(vb, V(_load)(y + i))));
        if (i < n) {
            const int k = (int)(n - i);
            V(_storen)(y + i, V(_fma)(va, V(_loadn)(x + i, k), V(_mul)(vb, V(_loadn)(y + i, k))), k);
        }
    }
}

static void NAME(scal)(int64_t n, double a, void *xv)
{
    T *x = xv;
    const V() va = V(_set1)((T)a);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) V(_store)(x + i, V(_mul)(va, V(_load)(x + i)));
    if (i < n) V(_storen)(x + i, V(_mul)(va, V(_loadn)(x + i, (int)(n - i))), (int)(n - i));
}

static void NAME(swap)(int64_t n, void *xv, void *yv)
{
    T *x = xv, *y = yv;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const V() a = V(_load)(x + i), b = V(_load)(y + i);
        V(_store)(x + i, b);
        V(_store)(y + i, a);
    }
    if (i < n) {
        const int k = (int)(n - i);
        const V() a = V(_loadn)(x + i, k), b = V(_loadn)(y + i, k);
        V(_storen)(x + i, b, k);
        V(_storen)(y + i, a, k);
    }
}

static void NAME(rotm)(int64_t n, const double h[4], void *xv, void *yv)
{
    T *x = xv, *y = yv;
    const V() h11 = V(_set1)((T)h[0]), h21 = V(_set1)((T)h[1]), h12 = V(_set1)((T)h[2]),
              h22 = V(_set1)((T)h[3]);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const V() a = V(_load)(x + i), b = V(_load)(y + i);
        V(_store)(x + i, V(_fma)(h12, b, V(_mul)(h11, a)));
        V(_store)(y + i, V(_fma)(h21, a, V(_mul)(h22, b)));
    }
    if (i < n) {
        const int k = (int)(n - i);
        const V() a = V(_loadn)(x + i, k), b = V(_loadn)(y + i, k);
        V(_storen)(x + i, V(_fma)(h12, b, V(_mul)(h11, a)), k);
        V(_storen)(y + i, V(_fma)(h21, a, V(_mul)(h22, b)), k);
    }
}

static void NAME(rot)(int64_t n, double c, double s, void *x, void *y)
{
    const double h[4] = {c, -s, s, c};
    NAME(rotm)(n, h, x, y);
}

static double NAME(lanes)(V() a)
{
    T lane[LANES];
    double s = 0;
    V(_store)(lane, a);
    for (int i = 0; i < LANES; i++) s += (double)lane[i];
    return s;
}

/* Four sums in flight, joined in a fixed order. E(i, load) is the term of vector i. */
#define SUM4(n, TERM, TERMN)                               \
    V() s0 = V(_set1)(0), s1 = s0, s2 = s0, s3 = s0;       \
    int64_t i = 0;                                         \
    for (; i + 4 * LANES <= (n); i += 4 * LANES) {         \
        s0 = TERM(i, s0);                                  \
        s1 = TERM(i + LANES, s1);                          \
        s2 = TERM(i + 2 * LANES, s2);                      \
        s3 = TERM(i + 3 * LANES, s3);                      \
    }                                                      \
    for (; i + LANES <= (n); i += LANES) s0 = TERM(i, s0); \
    if (i < (n)) s1 = TERMN(i, s1, (int)((n)-i));          \
    return NAME(lanes)(V(_add)(V(_add)(s0, s1), V(_add)(s2, s3)));

static double NAME(dot)(int64_t n, const void *xv, const void *yv)
{
    const T *x = xv, *y = yv;
#define TERM(i, s) V(_fma)(V(_load)(x + (i)), V(_load)(y + (i)), s)
#define TERMN(i, s, k) V(_fma)(V(_loadn)(x + (i), k), V(_loadn)(y + (i), k), s)
    SUM4(n, TERM, TERMN)
#undef TERM
#undef TERMN
}

static double NAME(sumsq)(int64_t n, const void *x) { return NAME(dot)(n, x, x); }

static double NAME(asum)(int64_t n, const void *xv)
{
    const T *x = xv;
#define TERM(i, s) V(_add)(s, VABS(V(_load)(x + (i))))
#define TERMN(i, s, k) V(_add)(s, VABS(V(_loadn)(x + (i), k)))
    SUM4(n, TERM, TERMN)
#undef TERM
#undef TERMN
}

static double NAME(top)(V() best)
{
    T lane[LANES];
    double m = 0;
    V(_store)(lane, best);
    for (int i = 0; i < LANES; i++)
        if (!((double)lane[i] <= m) && m == m) m = (double)lane[i];
    return m;
}

static double NAME(amax)(int64_t n, const void *xv)
{
    const T *x = xv;
    V() b0 = V(_set1)(0), b1 = b0;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const V() a = VABS(V(_load)(x + i)), c = VABS(V(_load)(x + i + LANES));
        b0 = V(_sel)(V(_beats)(a, b0), a, b0);
        b1 = V(_sel)(V(_beats)(c, b1), c, b1);
    }
    for (; i < n; i += LANES) {
        const V() a = VABS(i + LANES <= n ? V(_load)(x + i) : V(_loadn)(x + i, (int)(n - i)));
        b0 = V(_sel)(V(_beats)(a, b0), a, b0);
    }
    return NAME(top)(V(_sel)(V(_beats)(b1, b0), b1, b0));
}

/* ---- complex: 2n parts ---- */
static double NAME(camax)(int64_t n, const void *xv)
{
    const T *x = xv;
    V() best = V(_set1)(0);
    for (int64_t i = 0; i < 2 * n; i += LANES) {
        const V() a = VABS(i + LANES <= 2 * n ? V(_load)(x + i) : V(_loadn)(x + i, (int)(2 * n - i)));
        const V() sum = V(_add)(a, SWAP(a)); /* the same in both lanes of a pair */
        best = V(_sel)(V(_beats)(sum, best), sum, best);
    }
    return NAME(top)(best);
}

ST_INLINE V() NAME(pairs)(double even, double odd)
{
    T lane[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = (T)(i % 2 ? odd : even);
    return V(_load)(lane);
}

static void NAME(cscal)(int64_t n, const double a[2], void *xv)
{
    T *x = xv;
    const V() re = V(_set1)((T)a[0]), im = NAME(pairs)(-a[1], a[1]);
    int64_t i = 0;
    for (; i + LANES <= 2 * n; i += LANES) {
        const V() v = V(_load)(x + i);
        V(_store)(x + i, V(_fma)(im, SWAP(v), V(_mul)(re, v)));
    }
    if (i < 2 * n) {
        const int k = (int)(2 * n - i);
        const V() v = V(_loadn)(x + i, k);
        V(_storen)(x + i, V(_fma)(im, SWAP(v), V(_mul)(re, v)), k);
    }
}

static void NAME(caxpby)(int64_t n, const double a[2], const void *xv, const double b[2], void *yv)
{
    const T *x = xv;
    T *y = yv;
    const V() re = V(_set1)((T)a[0]), im = NAME(pairs)(-a[1], a[1]);
    const V() bre = V(_set1)((T)b[0]), bim = NAME(pairs)(-b[1], b[1]);
    const bool keep = b[0] == 1 && b[1] == 0, zero = b[0] == 0 && b[1] == 0;
    for (int64_t i = 0; i < 2 * n; i += LANES) {
        const int k = 2 * n - i < LANES ? (int)(2 * n - i) : LANES;
        const V() v = k == LANES ? V(_load)(x + i) : V(_loadn)(x + i, k);
        V() r = V(_set1)(0);
        if (!zero) {
            const V() w = k == LANES ? V(_load)(y + i) : V(_loadn)(y + i, k);
            r = keep ? w : V(_fma)(bim, SWAP(w), V(_mul)(bre, w));
        }
        r = V(_fma)(im, SWAP(v), V(_fma)(re, v, r));
        if (k == LANES)
            V(_store)(y + i, r);
        else
            V(_storen)(y + i, r, k);
    }
}

static void NAME(cdot)(int64_t n, const void *xv, const void *yv, double out[4])
{
    const T *x = xv, *y = yv;
    V() s0 = V(_set1)(0), s1 = s0, c0 = s0, c1 = s0;
    int64_t i = 0;
    for (; i + 2 * LANES <= 2 * n; i += 2 * LANES) {
        const V() a = V(_load)(x + i), b = V(_load)(y + i), c = V(_load)(x + i + LANES),
                  d = V(_load)(y + i + LANES);
        s0 = V(_fma)(a, b, s0);
        c0 = V(_fma)(SWAP(a), b, c0);
        s1 = V(_fma)(c, d, s1);
        c1 = V(_fma)(SWAP(c), d, c1);
    }
    for (; i < 2 * n; i += LANES) {
        const int k = 2 * n - i < LANES ? (int)(2 * n - i) : LANES;
        const V() a = k == LANES ? V(_load)(x + i) : V(_loadn)(x + i, k),
                  b = k == LANES ? V(_load)(y + i) : V(_loadn)(y + i, k);
        s0 = V(_fma)(a, b, s0);
        c0 = V(_fma)(SWAP(a), b, c0);
    }
    T s[LANES], c[LANES];
    V(_store)(s, V(_add)(s0, s1));
    V(_store)(c, V(_add)(c0, c1));
    out[0] = out[1] = out[2] = out[3] = 0;
    for (int j = 0; j < LANES; j += 2) {
        out[0] += (double)s[j];
        out[1] += (double)s[j + 1];
        out[3] += (double)c[j];     /* xi yr */
        out[2] += (double)c[j + 1]; /* xr yi */
    }
}

const st_vec_kernels NAME(kernels) = {.axpby = NAME(axpby),
                                      .scal = NAME(scal),
                                      .swap = NAME(swap),
                                      .rot = NAME(rot),
                                      .rotm = NAME(rotm),
                                      .dot = NAME(dot),
                                      .sumsq = NAME(sumsq),
                                      .asum = NAME(asum),
                                      .amax = NAME(amax),
                                      .caxpby = NAME(caxpby),
                                      .cscal = NAME(cscal),
                                      .cdot = NAME(cdot),
                                      .camax = NAME(camax)};
#undef SUM4
