/* SPDX-License-Identifier: Apache-2.0 */
/* norm_body.h - the per-channel kernels of norm.h, written once; a norm_<arch>.c file includes it for f32 and f64 with T, V(op),
 * LANES and NAME(way, what). Sums run over rows (or along the run) in lanes of their own: the order depends on the shape
 * and the vector length only. */

#define EACH _Pragma("GCC unroll 4") for (int v = 0; v < nv; v++)
#define LOAD(p) (v == nv - 1 ? V(_loadn)((p) + v * LANES, tail) : V(_load)((p) + v * LANES))
#define STORE(p, e) (v == nv - 1 ? V(_storen)((p) + v * LANES, e, tail) : V(_store)((p) + v * LANES, e))

/* Calls f with 1 to 4 vectors of columns, the last of which may be partial. */
#define COLUMNS(f, ...)                                             \
    for (int64_t c = 0; c < n; c += 4 * LANES) {                    \
        const int64_t left = n - c < 4 * LANES ? n - c : 4 * LANES; \
        const int tail = (int)((left - 1) % LANES) + 1;             \
        switch ((left + LANES - 1) / LANES) {                       \
        case 1: f(1, tail, c, __VA_ARGS__); break;                  \
        case 2: f(2, tail, c, __VA_ARGS__); break;                  \
        case 3: f(3, tail, c, __VA_ARGS__); break;                  \
        default: f(4, tail, c, __VA_ARGS__);                        \
        }                                                           \
    }

/* ---- channels ---- */
ST_INLINE void NAME(channels, sum_part)(int nv, int tail, int64_t c, const T *x, int64_t ldx, int64_t rows,
                                        T *sum)
{
    V() acc[4];
    EACH acc[v] = V(_set1)(0);
    x += c;
    for (int64_t i = 0; i < rows; i++, x += ldx) EACH acc[v] = V(_add)(acc[v], LOAD(x));
    EACH STORE(sum + c, acc[v]);
}
void NAME(channels, sum)(const void *x, int64_t ldx, int64_t rows, int64_t n, void *sum)
{
    COLUMNS(NAME(channels, sum_part), x, ldx, rows, sum);
}

ST_INLINE void NAME(channels, square_part)(int nv, int tail, int64_t c, const T *x, int64_t ldx, int64_t rows,
                                           const T *mean, T *sum, T *square)
{
    V() s[4], q[4], m[4];
    EACH s[v] = q[v] = V(_set1)(0), m[v] = LOAD(mean + c);
    x += c;
    for (int64_t i = 0; i < rows; i++, x += ldx) EACH
        {
            V() d = V(_sub)(LOAD(x), m[v]);
            s[v] = V(_add)(s[v], d);
            q[v] = V(_fma)(d, d, q[v]);
        }
    EACH
    {
        STORE(sum + c, s[v]);
        STORE(square + c, q[v]);
    }
}
void NAME(channels, square)(const void *x, int64_t ldx, int64_t rows, int64_t n, const void *mean, void *sum,
                            void *square)
{
    COLUMNS(NAME(channels, square_part), x, ldx, rows, mean, sum, square);
}

ST_INLINE void NAME(channels, products_part)(int nv, int tail, int64_t c, const T *x, int64_t ldx,
                                             const T *dy, int64_t ldy, int64_t rows, const T *mean, T *sum,
                                             T *product)
{
    V() s[4], p[4], m[4];
    EACH s[v] = p[v] = V(_set1)(0), m[v] = LOAD(mean + c);
    x += c, dy += c;
    for (int64_t i = 0; i < rows; i++, x += ldx, dy += ldy) EACH
        {
            V() g = LOAD(dy);
            s[v] = V(_add)(s[v], g);
            p[v] = V(_fma)(g, V(_sub)(LOAD(x), m[v]), p[v]);
        }
    EACH
    {
        STORE(sum + c, s[v]);
        STORE(product + c, p[v]);
    }
}
void NAME(channels, products)(const void *x, int64_t ldx, const void *dy, int64_t ldy, int64_t rows,
                              int64_t n, const void *mean, void *sum, void *product)
{
    COLUMNS(NAME(channels, products_part), x, ldx, dy, ldy, rows, mean, sum, product);
}

ST_INLINE void NAME(channels, apply_part)(int nv, int tail, int64_t c, const T *x, int64_t ldx, T *y,
                                          int64_t ldy, int64_t rows, const T *mean, const T *a, const T *b,
                                          bool stream)
{
    V() m[4], s[4], t[4];
    EACH m[v] = LOAD(mean + c), s[v] = LOAD(a + c), t[v] = LOAD(b + c);
    x += c, y += c;
    for (int64_t i = 0; i < rows; i++, x += ldx, y += ldy) EACH
        {
            V() e = V(_fma)(V(_sub)(LOAD(x), m[v]), s[v], t[v]);
            if (stream)
                V(_stream)(y + v * LANES, e);
            else
                STORE(y, e);
        }
}
void NAME(channels, apply)(const void *x, int64_t ldx, void *y, int64_t ldy, int64_t rows, int64_t n,
                           const void *mean, const void *a, const void *b, bool stream)
{
    if (stream && n % LANES == 0 && ldy % LANES == 0 && (uintptr_t)y % (LANES * sizeof(T)) == 0) {
        COLUMNS(NAME(channels, apply_part), x, ldx, y, ldy, rows, mean, a, b, true);
        vec_streamed();
    } else {
        COLUMNS(NAME(channels, apply_part), x, ldx, y, ldy, rows, mean, a, b, false);
    }
}

ST_INLINE void NAME(channels, gradient_part)(int nv, int tail, int64_t c, const T *x, int64_t ldx,
                                             const T *dy, int64_t ldy, T *dx, int64_t ldz, int64_t rows,
                                             const T *mean, const T *a, const T *b, const T *k, bool add,
                                             bool stream)
{
    V() m[4], s[4], t[4], u[4];
    EACH m[v] = LOAD(mean + c), s[v] = LOAD(a + c), t[v] = LOAD(b + c), u[v] = LOAD(k + c);
    x += c, dy += c, dx += c;
    for (int64_t i = 0; i < rows; i++, x += ldx, dy += ldy, dx += ldz) EACH
        {
            V() g = V(_sub)(V(_sub)(LOAD(dy), t[v]), V(_mul)(V(_sub)(LOAD(x), m[v]), u[v]));
            g = add ? V(_fma)(s[v], g, LOAD(dx)) : V(_mul)(s[v], g);
            if (stream)
                V(_stream)(dx + v * LANES, g);
            else
                STORE(dx, g);
        }
}
void NAME(channels, gradient)(const void *x, int64_t ldx, const void *dy, int64_t ldy, void *dx, int64_t ldz,
                              int64_t rows, int64_t n, const void *mean, const void *a, const void *b,
                              const void *k, bool add, bool stream)
{
    if (add) {
        COLUMNS(NAME(channels, gradient_part), x, ldx, dy, ldy, dx, ldz, rows, mean, a, b, k, true, false);
    } else if (stream && n % LANES == 0 && ldz % LANES == 0 && (uintptr_t)dx % (LANES * sizeof(T)) == 0) {
        COLUMNS(NAME(channels, gradient_part), x, ldx, dy, ldy, dx, ldz, rows, mean, a, b, k, false, true);
        vec_streamed();
    } else {
        COLUMNS(NAME(channels, gradient_part), x, ldx, dy, ldy, dx, ldz, rows, mean, a, b, k, false, false);
    }
}

/* ---- runs: `rows` and the distances are not used; sums are running (norm.h) ---- */
void NAME(runs, sum)(const void *xv, int64_t ldx, int64_t rows, int64_t n, void *sum)
{
    enum { nv = 4 };
    const T *x = xv;
    T *s = sum;
    V() acc[nv];
    (void)ldx, (void)rows;
    EACH acc[v] = V(_load)(s + v * LANES);
    int64_t i = 0;
    for (; i + nv * LANES <= n; i += nv * LANES) EACH acc[v] = V(_add)(acc[v], V(_load)(x + i + v * LANES));
    for (int v = 0; i < n; v++, i += LANES)
        acc[v] = V(_add)(acc[v], V(_loadn)(x + i, n - i < LANES ? (int)(n - i) : LANES));
    EACH V(_store)(s + v * LANES, acc[v]);
}

void NAME(runs, square)(const void *xv, int64_t ldx, int64_t rows, int64_t n, const void *mean, void *sum,
                        void *square)
{
    enum { nv = 4 };
    const T *x = xv;
    T *s = sum, *q = square;
    const V() m = V(_set1)(*(const T *)mean);
    V() acc[nv], sq[nv];
    (void)ldx, (void)rows;
    EACH acc[v] = V(_load)(s + v * LANES), sq[v] = V(_load)(q + v * LANES);
    int64_t i = 0;
    for (; i + nv * LANES <= n; i += nv * LANES) EACH
        {
            V() d = V(_sub)(V(_load)(x + i + v * LANES), m);
            acc[v] = V(_add)(acc[v], d);
            sq[v] = V(_fma)(d, d, sq[v]);
        }
    for (int v = 0; i < n; v++, i += LANES) {
        const int k = n - i < LANES ? (int)(n - i) : LANES;
        T part[LANES];
        V() d = V(_sub)(V(_loadn)(x + i, k), m);
        V(_store)(part, V(_set1)(0));
        V(_storen)(part, d, k); /* lanes beyond the run are 0, not -mean */
        d = V(_load)(part);
        acc[v] = V(_add)(acc[v], d);
        sq[v] = V(_fma)(d, d, sq[v]);
    }
    EACH
    {
        V(_store)(s + v * LANES, acc[v]);
        V(_store)(q + v * LANES, sq[v]);
    }
}

void NAME(runs, products)(const void *xv, int64_t ldx, const void *dyv, int64_t ldy, int64_t rows, int64_t n,
                          const void *mean, void *sum, void *product)
{
    enum { nv = 4 };
    const T *x = xv, *dy = dyv;
    T *s = sum, *p = product;
    const V() m = V(_set1)(*(const T *)mean);
    V() acc[nv], pro[nv];
    (void)ldx, (void)ldy, (void)rows;
    EACH acc[v] = V(_load)(s + v * LANES), pro[v] = V(_load)(p + v * LANES);
    int64_t i = 0;
    for (; i + nv * LANES <= n; i += nv * LANES) EACH
        {
            V() g = V(_load)(dy + i + v * LANES);
            acc[v] = V(_add)(acc[v], g);
            pro[v] = V(_fma)(g, V(_sub)(V(_load)(x + i + v * LANES), m), pro[v]);
        }
    for (int v = 0; i < n; v++, i += LANES) {
        const int k = n - i < LANES ? (int)(n - i) : LANES;
        T part[LANES];
        V() g = V(_loadn)(dy + i, k), d = V(_sub)(V(_loadn)(x + i, k), m);
        V(_store)(part, V(_set1)(0));
        V(_storen)(part, d, k); /* 0 * an infinite mean would be NaN */
        acc[v] = V(_add)(acc[v], g);
        pro[v] = V(_fma)(g, V(_load)(part), pro[v]);
    }
    EACH
    {
        V(_store)(s + v * LANES, acc[v]);
        V(_store)(p + v * LANES, pro[v]);
    }
}

void NAME(runs, apply)(const void *xv, int64_t ldx, void *yv, int64_t ldy, int64_t rows, int64_t n,
                       const void *mean, const void *a, const void *b, bool stream)
{
    const T *x = xv;
    T *y = yv;
    const V() m = V(_set1)(*(const T *)mean), s = V(_set1)(*(const T *)a), t = V(_set1)(*(const T *)b);
    (void)ldx, (void)ldy, (void)rows;
    int64_t i = 0;
    const int64_t ahead =
        (int64_t)(-(uintptr_t)y % (LANES * sizeof(T))) / (int64_t)sizeof(T); /* to the next whole vector */
    if (stream && n >= 4 * LANES && (uintptr_t)y % sizeof(T) == 0) {
        if (ahead) V(_storen)(y, V(_fma)(V(_sub)(V(_loadn)(x, (int)ahead), m), s, t), (int)ahead);
        for (i = ahead; i + LANES <= n; i += LANES)
            V(_stream)(y + i, V(_fma)(V(_sub)(V(_load)(x + i), m), s, t));
        vec_streamed();
    } else {
        for (; i + LANES <= n; i += LANES) V(_store)(y + i, V(_fma)(V(_sub)(V(_load)(x + i), m), s, t));
    }
    if (i < n) V(_storen)(y + i, V(_fma)(V(_sub)(V(_loadn)(x + i, (int)(n - i)), m), s, t), (int)(n - i));
}

/* one vector (or its first n lanes) of a gradient */
ST_INLINE V() NAME(runs, slope)(const T *x, const T *dy, int n, V() m, V() s, V() t, V() u)
{
    V() g = V(_sub)(V(_sub)(V(_loadn)(dy, n), t), V(_mul)(V(_sub)(V(_loadn)(x, n), m), u));
    return V(_mul)(s, g);
}
void NAME(runs, gradient)(const void *xv, int64_t ldx, const void *dyv, int64_t ldy, void *dxv, int64_t ldz,
                          int64_t rows, int64_t n, const void *mean, const void *a, const void *b,
                          const void *k, bool add, bool stream)
{
    const T *x = xv, *dy = dyv;
    T *dx = dxv;
    const V() m = V(_set1)(*(const T *)mean), s = V(_set1)(*(const T *)a), t = V(_set1)(*(const T *)b),
              u = V(_set1)(*(const T *)k);
    (void)ldx, (void)ldy, (void)ldz, (void)rows;
    int64_t i = 0;
    if (stream && !add && n >= 4 * LANES && (uintptr_t)dx % sizeof(T) == 0) {
        const int ahead =
            (int)(-(uintptr_t)dx % (LANES * sizeof(T)) / sizeof(T)); /* to the next whole vector */
        if (ahead) V(_storen)(dx, NAME(runs, slope)(x, dy, ahead, m, s, t, u), ahead);
        for (i = ahead; i + LANES <= n; i += LANES)
            V(_stream)(dx + i, NAME(runs, slope)(x + i, dy + i, LANES, m, s, t, u));
        vec_streamed();
    }
    for (; i < n; i += LANES) {
        const int w = n - i < LANES ? (int)(n - i) : LANES;
        V() g = V(_sub)(V(_sub)(V(_loadn)(dy + i, w), t), V(_mul)(V(_sub)(V(_loadn)(x + i, w), m), u));
        g = add ? V(_fma)(s, g, V(_loadn)(dx + i, w)) : V(_mul)(s, g);
        V(_storen)(dx + i, g, w);
    }
}
#undef EACH
#undef LOAD
#undef STORE
#undef COLUMNS
