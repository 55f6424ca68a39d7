/* SPDX-License-Identifier: Apache-2.0 */
/* pool_body.h - the window kernels, written once; a pool_<arch>.c file includes it for f32 and f64 with
 *   T (element), V(op) (vec.h's names of that type), LANES, NAME(way, direction) (the function's name).
 *
 * channels: channels are contiguous in every operand, a vector holds channels of one pixel; each output reads its taps, each input
 * gradient reads the windows that contain it, both in fixed order.
 * rows: a vector holds outputs of one row. Every image row is first dealt into `stride` buffers, so that buffer j holds the columns
 * i * stride + j - pad (what is outside the image as -Inf or 0): then tap s of outputs q, q + 1, ... is one contiguous load
 * whatever the strides. The gradient goes the same way back. */

static inline __attribute__((always_inline)) void NAME(channels, pixel)(const st_pool_problem *p, int nv,
                                                                        int tail, bool max, bool arg,
                                                                        const T *x, st_pool_span r,
                                                                        st_pool_span s, int64_t h0,
                                                                        int64_t w0, T *y, int32_t *a)
{
    const int64_t dh = p->dilation[0], dw = p->dilation[1];
    V() acc[4];
    V(i) at[4];
    bool first = true;
    for (int v = 0; v < nv; v++) acc[v] = V(_set1)(0), at[v] = V(_iset1)(-1);
    for (int64_t i = r.lo; i < r.hi; i++) {
        const int64_t h = h0 + i * dh;
        for (int64_t j = s.lo; j < s.hi; j++) {
            const int64_t w = w0 + j * dw;
            const T *xp = x + h * p->xs[2] + w * p->xs[3];
            V(i) here = V(_iset1)(h * p->w + w);
            for (int v = 0; v < nv; v++) {
                V() e = v == nv - 1 ? V(_loadn)(xp + v * LANES, tail) : V(_load)(xp + v * LANES);
                if (!max) {
                    acc[v] = V(_add)(acc[v], e);
                } else if (first) {
                    acc[v] = e;
                    at[v] = here;
                } else {
                    V(m) m = V(_beats)(e, acc[v]);
                    acc[v] = V(_sel)(m, e, acc[v]);
                    if (arg) at[v] = V(_isel)(m, here, at[v]);
                }
            }
            first = false;
        }
    }
    if (!max) {
        V() d = V(_set1)((T)(r.count * s.count));
        for (int v = 0; v < nv; v++) acc[v] = first ? V(_set1)(0) : V(_div)(acc[v], d);
    } else if (first) {
        for (int v = 0; v < nv; v++) acc[v] = V(_set1)(-(T)INFINITY);
    }
    for (int v = 0; v < nv; v++) {
        const int n = v == nv - 1 ? tail : LANES;
        if (y) V(_storen)(y + v * LANES, acc[v], n);
        if (arg) V(_istoren)(a + v * LANES, at[v], n);
    }
}

static inline __attribute__((always_inline)) void NAME(channels, forward_as)(
    const st_pool_problem *p, const st_pool_tables *t, void *const data[], int64_t n, int64_t c0, int64_t c1,
    int64_t r0, int64_t r1, bool max, bool arg)
{
    const T *x = (const T *)data[0] + n * p->xs[0];
    T *y = data[1] ? (T *)data[1] + n * p->ys[0] : NULL;
    int32_t *a = arg ? (int32_t *)data[2] + n * p->as[0] : NULL;
    for (int64_t i = r0; i < r1; i++)
        for (int64_t j = 0; j < p->q; j++) {
            const int64_t h0 = i * p->stride[0] - p->pad[0], w0 = j * p->stride[1] - p->pad[1];
            T *yp = y ? y + i * p->ys[2] + j * p->ys[3] : NULL;
            int32_t *ap = arg ? a + i * p->as[2] + j * p->as[3] : NULL;
            for (int64_t c = c0; c < c1;) {
                const int64_t left = c1 - c;
                T *yc = yp ? yp + c : NULL;
                int32_t *ac = arg ? ap + c : NULL;
                if (left >= 4 * LANES) {
                    NAME(channels, pixel)(p, 4, LANES, max, arg, x + c, t->row[i], t->col[j], h0, w0, yc, ac);
                    c += 4 * LANES;
                } else if (left > LANES) {
                    const int tail = left >= 2 * LANES ? LANES : (int)(left - LANES);
                    NAME(channels, pixel)(p, 2, tail, max, arg, x + c, t->row[i], t->col[j], h0, w0, yc, ac);
                    c += LANES + tail;
                } else {
                    NAME(channels, pixel)
                    (p, 1, (int)left, max, arg, x + c, t->row[i], t->col[j], h0, w0, yc, ac);
                    c = c1;
                }
            }
        }
}

void NAME(channels, forward)(const st_pool_problem *p, const st_pool_tables *t, void *const data[], int64_t n,
                             int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch)
{
    (void)scratch;
    if (p->kind == STRATA_POOL_AVERAGE)
        NAME(channels, forward_as)(p, t, data, n, c0, c1, r0, r1, false, false);
    else if (data[2])
        NAME(channels, forward_as)(p, t, data, n, c0, c1, r0, r1, true, true);
    else
        NAME(channels, forward_as)(p, t, data, n, c0, c1, r0, r1, true, false);
}

static inline __attribute__((always_inline)) void NAME(channels, backward_as)(
    const st_pool_problem *p, const st_pool_tables *t, void *const data[], int64_t n, int64_t c0, int64_t c1,
    int64_t r0, int64_t r1, bool max)
{
    const T *dy = (const T *)data[1] + n * p->ys[0];
    const int32_t *a = max ? (const int32_t *)data[2] + n * p->as[0] : NULL;
    T *dx = (T *)data[3] + n * p->xs[0];
    for (int64_t h = r0; h < r1; h++)
        for (int64_t w = 0; w < p->w; w++) {
            const st_pool_back br = t->back_row[h], bc = t->back_col[w];
            const V(i) here = V(_iset1)(h * p->w + w);
            T *d = dx + h * p->xs[2] + w * p->xs[3];
            for (int64_t c = c0; c < c1; c += LANES) {
                const int k = c1 - c < LANES ? (int)(c1 - c) : LANES;
                V() acc = p->accumulate ? V(_loadn)(d + c, k) : V(_set1)(0);
                for (int64_t i = br.first; i <= br.last; i++) {
                    if (p->dilation[0] > 1 && (h + p->pad[0] - i * p->stride[0]) % p->dilation[0]) continue;
                    for (int64_t j = bc.first; j <= bc.last; j++) {
                        if (p->dilation[1] > 1 && (w + p->pad[1] - j * p->stride[1]) % p->dilation[1])
                            continue;
                        V() g = V(_loadn)(dy + i * p->ys[2] + j * p->ys[3] + c, k);
                        if (max) {
                            V(m) m = V(_ieq)(V(_iloadn)(a + i * p->as[2] + j * p->as[3] + c, k), here);
                            acc = V(_add)(acc, V(_keep)(m, g));
                        } else {
                            T share = 1 / (T)(t->row[i].count * t->col[j].count);
                            acc = V(_fma)(g, V(_set1)(share), acc);
                        }
                    }
                }
                V(_storen)(d + c, acc, k);
            }
        }
}

void NAME(channels, backward)(const st_pool_problem *p, const st_pool_tables *t, void *const data[],
                              int64_t n, int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch)
{
    (void)scratch;
    NAME(channels, backward_as)(p, t, data, n, c0, c1, r0, r1, p->kind == STRATA_POOL_MAX);
}

/* Deals image row x (w elements, stride xs) into p->stride[1] buffers of t->row_buffer elements. */
static void NAME(rows, deal)(const st_pool_problem *p, const st_pool_tables *t, const T *x, T fill, T *buf)
{
    const int64_t sw = p->stride[1], pad = p->pad[1], len = t->row_buffer, xs = p->xs[3];
    for (int64_t j = 0; j < sw; j++) {
        T *b = buf + j * len;
        int64_t i0 = j >= pad ? 0 : (pad - j + sw - 1) / sw, i1 = (p->w + pad - j + sw - 1) / sw;
        if (p->w + pad - j <= 0) i1 = 0;
        i0 = st_min64(i0, len);
        i1 = st_max64(i0, st_min64(i1, len));
        for (int64_t i = 0; i < i0; i++) b[i] = fill;
        for (int64_t i = i1; i < len; i++) b[i] = fill;
        if (sw == 1 && xs == 1) {
            memcpy(b + i0, x + i0 - pad, (size_t)(i1 - i0) * sizeof(T));
            continue;
        }
        if (sw == 2 && xs == 1 && j == 0) continue;
        int64_t i = i0;
        if (sw == 2 && xs == 1) {
            /* buffer 0 too: columns 2i - pad and 2i + 1 - pad come out of one pair of loads */
            T *a = buf;
            int64_t a0 = (pad + 1) / 2, a1 = st_max64(a0, st_min64((p->w + pad + 1) / 2, len)),
                    k = st_max64(a0, i0);
            for (i = a0; i < k; i++) a[i] = x[(2 * i - pad) * xs];
            for (i = i0; i < k; i++) b[i] = x[(2 * i + 1 - pad) * xs];
            for (i = k; i + LANES <= i1 && i + LANES <= a1; i += LANES) {
                V() e, o;
                V(_deal2)(x + 2 * i - pad, &e, &o);
                V(_store)(a + i, e);
                V(_store)(b + i, o);
            }
            const int64_t both = st_min64(i1, a1) - i;
            if (both > 0) {
                T part[2 * LANES];
                V() e, o;
                const int n = (int)(2 * both);
                V(_store)(part, V(_loadn)(x + 2 * i - pad, n < LANES ? n : LANES));
                V(_store)(part + LANES, V(_loadn)(x + 2 * i - pad + LANES, n > LANES ? n - LANES : 0));
                V(_deal2)(part, &e, &o);
                V(_storen)(a + i, e, (int)both);
                V(_storen)(b + i, o, (int)both);
                i += both;
            }
            for (int64_t m = i; m < a1; m++) a[m] = x[2 * m - pad];
        }
        for (; i < i1; i++) b[i] = x[(i * sw + j - pad) * xs];
    }
}

/* What a call of the forward kernel needs beside the problem: in scratch. */
typedef struct NAME(rows, work) {
    T *buf, *y, *share; /* dealt rows; one row of outputs; elements that divide an average, by column */
    int32_t *a;
    int64_t *held, *tap; /* which image row a buffer holds; where each tap of a row begins in it */
    T **rows;
    V(i) lanes;
} NAME(rows, work);

/* One row of outputs to y (and a), contiguous. */
static inline __attribute__((always_inline)) void NAME(rows, output)(const st_pool_problem *p,
                                                                     const st_pool_tables *t,
                                                                     const NAME(rows, work) * k, int64_t i,
                                                                     bool max, bool arg, T *y, int32_t *a)
{
    const st_pool_span r = t->row[i];
    const int64_t sw = p->stride[1], dw = p->dilation[1], h0 = i * p->stride[0] - p->pad[0],
                  taps = p->window[1];
    for (int64_t q = 0; q < p->q; q += LANES) {
        const int n = p->q - q < LANES ? (int)(p->q - q) : LANES;
        V() acc = V(_set1)(max ? -(T)INFINITY : 0);
        V(i) at = V(_iset1)(-1);
        if (arg && r.lo < r.hi)
            at = V(_iadd)(V(_iload)(t->col_first + q), V(_iset1)((h0 + r.lo * p->dilation[0]) * p->w));
        for (int64_t m = r.lo; m < r.hi; m++) {
            const T *row = k->rows[m] + q;
            int64_t base = (h0 + m * p->dilation[0]) * p->w + q * sw - p->pad[1];
            for (int64_t j = 0; j < taps; j++, base += dw) {
                V() e = V(_load)(row + k->tap[j]);
                if (!max) {
                    acc = V(_add)(acc, e);
                    continue;
                }
                V(m) beats = V(_beats)(e, acc);
                acc = V(_sel)(beats, e, acc);
                if (arg) at = V(_isel)(beats, V(_iadd)(V(_iset1)(base), k->lanes), at);
            }
        }
        if (!max) acc = V(_div)(acc, V(_mul)(V(_load)(k->share + q), V(_set1)((T)(r.count ? r.count : 1))));
        V(_storen)(y + q, acc, n);
        if (arg) V(_istoren)(a + q, at, n);
    }
    if (arg && t->empty)
        for (int64_t q = 0; q < p->q; q++)
            if (r.lo >= r.hi || t->col[q].lo >= t->col[q].hi) a[q] = -1;
}

/* The mean of whole contiguous planes. */
static void NAME(rows, planes)(const st_pool_problem *p, const T *x, T *y, int64_t c0, int64_t c1)
{
    const int64_t n = p->h * p->w;
    for (int64_t c = c0; c < c1; c++) {
        const T *e = x + c * p->xs[1];
        V() acc[4] = {V(_set1)(0), V(_set1)(0), V(_set1)(0), V(_set1)(0)};
        int64_t i = 0;
        for (; i + 4 * LANES <= n; i += 4 * LANES)
            for (int v = 0; v < 4; v++) acc[v] = V(_add)(acc[v], V(_load)(e + i + v * LANES));
        for (int v = 0; i < n; v++, i += LANES)
            acc[v] = V(_add)(acc[v], V(_loadn)(e + i, n - i < LANES ? (int)(n - i) : LANES));
        T part[LANES], sum = 0;
        V(_store)(part, V(_add)(V(_add)(acc[0], acc[1]), V(_add)(acc[2], acc[3])));
        for (int v = 0; v < LANES; v++) sum += part[v];
        y[c * p->ys[1]] = sum / (T)n;
    }
}

void NAME(rows, forward)(const st_pool_problem *p, const st_pool_tables *t, void *const data[], int64_t n,
                         int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch)
{
    const bool max = p->kind == STRATA_POOL_MAX, arg = max && data[2];
    const T fill = max ? -(T)INFINITY : 0;
    const int64_t row_size = t->row_buffer * p->stride[1], dh = p->dilation[0];
    const int64_t ring = (p->window[0] - 1) * dh + 1, ylen = st_round_up(p->q, ST_POOL_PAD);
    const T *x0 = (const T *)data[0] + n * p->xs[0];
    if (!max && p->p == 1 && p->q == 1 && p->xs[3] == 1 && p->xs[2] == p->w && t->row[0].count == p->h &&
        t->col[0].count == p->w && t->row[0].hi - t->row[0].lo == p->h &&
        t->col[0].hi - t->col[0].lo == p->w) {
        NAME(rows, planes)(p, x0, (T *)data[1] + n * p->ys[0], c0, c1);
        return;
    }
    NAME(rows, work) k = {.buf = scratch};
    k.y = k.buf + ring * row_size;
    k.share = k.y + ylen;
    k.a = (int32_t *)(k.share + ylen);
    k.held = (int64_t *)(k.a + ylen);
    k.rows = (T **)(k.held + ring);
    k.tap = (int64_t *)(k.rows + p->window[0]);
    int32_t lane[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = (int32_t)(i * p->stride[1]);
    k.lanes = V(_iload)(lane);
    for (int64_t i = 0; i < ylen; i++) k.share[i] = i < p->q && t->col[i].count ? (T)t->col[i].count : 1;
    for (int64_t j = 0; j < p->window[1]; j++)
        k.tap[j] = j * p->dilation[1] % p->stride[1] * t->row_buffer + j * p->dilation[1] / p->stride[1];
    for (int64_t c = c0; c < c1; c++) {
        const T *x = x0 + c * p->xs[1];
        for (int64_t i = 0; i < ring; i++) k.held[i] = -1;
        for (int64_t i = r0; i < r1; i++) {
            for (int64_t m = t->row[i].lo; m < t->row[i].hi; m++) {
                const int64_t h = i * p->stride[0] - p->pad[0] + m * dh, slot = h % ring;
                k.rows[m] = k.buf + slot * row_size;
                if (k.held[slot] != h) NAME(rows, deal)(p, t, x + h * p->xs[2], fill, k.rows[m]);
                k.held[slot] = h;
            }
            T *out = data[1] ? (T *)data[1] + n * p->ys[0] + c * p->ys[1] + i * p->ys[2] : NULL;
            int32_t *at = arg ? (int32_t *)data[2] + n * p->as[0] + c * p->as[1] + i * p->as[2] : NULL;
            T *y = out && p->ys[3] == 1 ? out : k.y;
            int32_t *a = arg && p->as[3] == 1 ? at : k.a;
            if (!max)
                NAME(rows, output)(p, t, &k, i, false, false, y, a);
            else if (arg)
                NAME(rows, output)(p, t, &k, i, true, true, y, a);
            else
                NAME(rows, output)(p, t, &k, i, true, false, y, a);
            for (int64_t q = 0; out && y != out && q < p->q; q++) out[q * p->ys[3]] = y[q];
            for (int64_t q = 0; arg && a != at && q < p->q; q++) at[q * p->as[3]] = a[q];
        }
    }
}

/* Writes one row of dx from its phases. */
static void NAME(rows, weave)(const st_pool_problem *p, const st_pool_tables *t, const T *buf, T *dx)
{
    const int64_t sw = p->stride[1], pad = p->pad[1], len = t->row_buffer, s = p->xs[3];
    int64_t w = 0;
    if (sw == 2 && s == 1) {
        if (pad & 1) dx[0] = p->accumulate ? dx[0] + buf[len + (pad >> 1)] : buf[len + (pad >> 1)], w = 1;
        for (; w < p->w; w += 2 * LANES) {
            const int64_t i = (w + pad) / 2, left = p->w - w;
            T both[2 * LANES];
            V(_weave2)(both, V(_load)(buf + i), V(_load)(buf + len + i));
            for (int v = 0; v < 2 && v * LANES < left; v++) {
                const int n = left - v * LANES < LANES ? (int)(left - v * LANES) : LANES;
                V() e = V(_load)(both + v * LANES);
                if (p->accumulate) e = V(_add)(V(_loadn)(dx + w + v * LANES, n), e);
                V(_storen)(dx + w + v * LANES, e, n);
            }
        }
        return;
    }
    if (sw == 1 && s == 1) {
        for (; w < p->w; w += LANES) {
            const int n = p->w - w < LANES ? (int)(p->w - w) : LANES;
            V() e = V(_load)(buf + w + pad);
            if (p->accumulate) e = V(_add)(V(_loadn)(dx + w, n), e);
            V(_storen)(dx + w, e, n);
        }
        return;
    }
    int64_t i = (w + pad) / sw, j = (w + pad) % sw;
    for (; w < p->w; w++) {
        T v = buf[j * len + i];
        dx[w * s] = p->accumulate ? dx[w * s] + v : v;
        if (++j == sw) j = 0, i++;
    }
}

void NAME(rows, backward)(const st_pool_problem *p, const st_pool_tables *t, void *const data[], int64_t n,
                          int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch)
{
    const bool max = p->kind == STRATA_POOL_MAX;
    const int64_t sw = p->stride[1], dw = p->dilation[1], len = t->row_buffer;
    /* windows q < 0 and q >= Q read as gradient 0: lead covers the largest shift of a tap */
    const int64_t lead = (p->window[1] - 1) * dw / sw, glen = st_round_up(lead + len, ST_POOL_PAD);
    T *buf = scratch, *g = buf + sw * len;
    int32_t *a = (int32_t *)(g + glen);
    int32_t lane[LANES];
    for (int k = 0; k < LANES; k++) lane[k] = (int32_t)(k * sw);
    const V(i) lanes = V(_iload)(lane);
    for (int64_t i = 0; i < glen; i++) g[i] = 0, a[i] = -1;
    for (int64_t c = c0; c < c1; c++)
        for (int64_t h = r0; h < r1; h++) {
            memset(buf, 0, (size_t)(sw * len) * sizeof(T));
            for (int64_t i = t->back_row[h].first; i <= t->back_row[h].last; i++) {
                if ((h + p->pad[0] - i * p->stride[0]) % p->dilation[0]) continue;
                const T *dy = (const T *)data[1] + n * p->ys[0] + c * p->ys[1] + i * p->ys[2];
                if (max) {
                    const int32_t *from =
                        (const int32_t *)data[2] + n * p->as[0] + c * p->as[1] + i * p->as[2];
                    for (int64_t q = 0; q < p->q; q += LANES) {
                        const int m = p->q - q < LANES ? (int)(p->q - q) : LANES;
                        if (p->as[3] == 1 && p->ys[3] == 1) {
                            V(_istoren)(a + lead + q, V(_iloadn)(from + q, m), m);
                            V(_storen)(g + lead + q, V(_loadn)(dy + q, m), m);
                            continue;
                        }
                        for (int64_t e = q; e < q + m; e++)
                            a[lead + e] = from[e * p->as[3]], g[lead + e] = dy[e * p->ys[3]];
                    }
                } else {
                    for (int64_t q = 0; q < p->q; q++) {
                        int32_t m = t->row[i].count * t->col[q].count;
                        g[lead + q] = m ? dy[q * p->ys[3]] / (T)m : 0;
                    }
                }
                for (int64_t j = 0; j < p->window[1]; j++) {
                    const int64_t phase = j * dw % sw, shift = j * dw / sw;
                    T *b = buf + phase * len;
                    const int64_t at = h * p->w + phase - p->pad[1];
                    for (int64_t k = 0; k + LANES <= len; k += LANES) {
                        V() e = V(_load)(g + lead + k - shift);
                        if (max) {
                            V(i) here = V(_iadd)(V(_iset1)(at + k * sw), lanes);
                            e = V(_keep)(V(_ieq)(V(_iload)(a + lead + k - shift), here), e);
                        }
                        V(_store)(b + k, V(_add)(V(_load)(b + k), e));
                    }
                }
            }
            NAME(rows, weave)(p, t, buf, (T *)data[3] + n * p->xs[0] + c * p->xs[1] + h * p->xs[2]);
        }
}
