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
            for (int64_t m = i; m < a1; m++) a[m] = x[2 * m - pad];
        }
        for (; i < i1; i++) b[i] = x[(i * sw + j - pad) * xs];
    }
}

static inline __attribute__((always_inline)) void NAME(rows, output)(const st_pool_problem *p,
                                                                     const st_pool_tables *t, T *const *rows,
                                                                     int64_t i, bool max, bool arg, T *y,
                                                                     int32_t *a)
{
    const st_pool_span r = t->row[i];
    const int64_t sw = p->stride[1], dw = p->dilation[1], h0 = i * p->stride[0] - p->pad[0];
    int32_t lane[LANES];
    for (int k = 0; k < LANES; k++) lane[k] = (int32_t)(k * sw);
    const V(i) lanes = V(_iload)(lane);
    for (int64_t q = 0; q < p->q; q += LANES) {
        V() acc = V(_set1)(max ? -(T)INFINITY : 0);
        V(i) at = V(_iset1)(-1);
        if (arg && r.lo < r.hi)
            at = V(_iadd)(V(_iload)(t->col_first + q), V(_iset1)((h0 + r.lo * p->dilation[0]) * p->w));
        for (int64_t k = r.lo; k < r.hi; k++) {
            int64_t phase = 0, shift = 0; /* of tap j: j * dw = shift * sw + phase */
            for (int64_t j = 0; j < p->window[1]; j++) {
                V() e = V(_load)(rows[k] + phase * t->row_buffer + shift + q);
                if (!max) {
                    acc = V(_add)(acc, e);
                } else {
                    V(m) m = V(_beats)(e, acc);
                    acc = V(_sel)(m, e, acc);
                    if (arg) {
                        int64_t base = (h0 + k * p->dilation[0]) * p->w + q * sw - p->pad[1] + j * dw;
                        at = V(_isel)(m, V(_iadd)(V(_iset1)(base), lanes), at);
                    }
                }
                for (phase += dw; phase >= sw; phase -= sw) shift++;
            }
        }
        V(_store)(y + q, acc);
        if (arg) V(_istore)(a + q, at);
    }
    if (!max)
        for (int64_t q = 0; q < p->q; q++) {
            int32_t n = r.count * t->col[q].count;
            y[q] = n && r.lo < r.hi && t->col[q].lo < t->col[q].hi ? y[q] / (T)n : 0;
        }
    if (arg && t->empty)
        for (int64_t q = 0; q < p->q; q++)
            if (r.lo >= r.hi || t->col[q].lo >= t->col[q].hi) a[q] = -1;
}

void NAME(rows, forward)(const st_pool_problem *p, const st_pool_tables *t, void *const data[], int64_t n,
                         int64_t c0, int64_t c1, int64_t r0, int64_t r1, void *scratch)
{
    const bool max = p->kind == STRATA_POOL_MAX, arg = max && data[2];
    const T fill = max ? -(T)INFINITY : 0;
    const int64_t row_size = t->row_buffer * p->stride[1], dh = p->dilation[0];
    const int64_t ring = (p->window[0] - 1) * dh + 1, ylen = st_round_up(p->q, ST_POOL_PAD);
    T *buf = scratch, *y = buf + ring * row_size;
    int32_t *a = (int32_t *)(y + ylen);
    int64_t *held = (int64_t *)(a + ylen);
    T **rows = (T **)(held + ring);
    for (int64_t c = c0; c < c1; c++) {
        const T *x = (const T *)data[0] + n * p->xs[0] + c * p->xs[1];
        for (int64_t i = 0; i < ring; i++) held[i] = -1;
        for (int64_t i = r0; i < r1; i++) {
            for (int64_t k = t->row[i].lo; k < t->row[i].hi; k++) {
                const int64_t h = i * p->stride[0] - p->pad[0] + k * dh, slot = h % ring;
                rows[k] = buf + slot * row_size;
                if (held[slot] != h) NAME(rows, deal)(p, t, x + h * p->xs[2], fill, rows[k]);
                held[slot] = h;
            }
            if (!max)
                NAME(rows, output)(p, t, rows, i, false, false, y, a);
            else if (arg)
                NAME(rows, output)(p, t, rows, i, true, true, y, a);
            else
                NAME(rows, output)(p, t, rows, i, true, false, y, a);
            if (data[1]) {
                T *out = (T *)data[1] + n * p->ys[0] + c * p->ys[1] + i * p->ys[2];
                if (p->ys[3] == 1)
                    memcpy(out, y, (size_t)p->q * sizeof(T));
                else
                    for (int64_t q = 0; q < p->q; q++) out[q * p->ys[3]] = y[q];
            }
            if (arg) {
                int32_t *out = (int32_t *)data[2] + n * p->as[0] + c * p->as[1] + i * p->as[2];
                for (int64_t q = 0; q < p->q; q++) out[q * p->as[3]] = a[q];
            }
        }
    }
}

/* Writes one row of dx from its phases. */
static void NAME(rows, weave)(const st_pool_problem *p, const st_pool_tables *t, const T *buf, T *dx)
{
    const int64_t sw = p->stride[1], pad = p->pad[1], len = t->row_buffer, s = p->xs[3];
    int64_t w = 0;
    if (sw == 2 && s == 1 && !p->accumulate) {
        if (pad & 1) dx[0] = buf[len + (pad >> 1)], w = 1;
        for (; w + 2 * LANES <= p->w; w += 2 * LANES) {
            const int64_t i = (w + pad) / 2;
            V(_weave2)(dx + w, V(_load)(buf + i), V(_load)(buf + len + i));
        }
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
                    for (int64_t q = 0; q < p->q; q++) a[lead + q] = from[q * p->as[3]];
                    for (int64_t q = 0; q < p->q; q++) g[lead + q] = dy[q * p->ys[3]];
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
