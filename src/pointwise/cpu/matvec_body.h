/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_body.h - the kernels of matvec.h, written once; a matvec_<arch>.c file includes it for the four types with T (of a part), V(op), LANES,
 * SWAP, PAIR (1: elements are pairs of parts), GROUP (lines that fit in registers at once) and NAME(what). Everything is unrolled over the lines of a
 * group by always-inlined functions whose number of lines is a constant.
 *
 * Complex numbers stay interleaved. Products with a number t are two real sums, P of a * re t and Q of a * im t, joined once a group:
 * a t = P + i Q, conj(a) t = conj(P) + i conj(Q). Sums of products are S of a * x and R of a * SWAP(x), joined once a line. So conjugation costs nothing.
 * A line's sum has the same order whatever group it is in: even vectors and odd vectors, then lanes, folded in halves (V(_fold): to two). */

#define PARTS (PAIR + 1)

/* the constant (even, odd, even, odd, ...) */
ST_INLINE V() NAME(alternate)(T even, T odd)
{
    T lane[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = i % 2 ? odd : even;
    return V(_load)(lane);
}

ST_INLINE V() NAME(get)(const T *p, int k) { return k == LANES ? V(_load)(p) : V(_loadn)(p, k); }
ST_INLINE void NAME(put)(T *p, V() a, int k)
{
    if (k == LANES)
        V(_store)(p, a);
    else
        V(_storen)(p, a, k);
}

/* ---- y += sum a[k] t[k] ---- */
ST_INLINE V() NAME(add_at)(int64_t i, int n, int lines, const T *const a[], const V() * re, const V() * im,
                           V() c1, V() c2, V() y)
{
#if PAIR
    V() p = V(_set1)(0), q = p;
    UNROLL
    for (int k = 0; k < lines; k++) {
        const V() v = NAME(get)(a[k] + i, n);
        p = V(_fma)(v, re[k], p);
        q = V(_fma)(v, im[k], q);
    }
    return V(_fma)(p, c1, V(_fma)(SWAP(q), c2, y));
#else
    (void)im, (void)c1, (void)c2;
    V() p = V(_mul)(NAME(get)(a[0] + i, n), re[0]);
    UNROLL
    for (int k = 1; k < lines; k++) p = V(_fma)(NAME(get)(a[k] + i, n), re[k], p);
    return V(_add)(p, y);
#endif
}

ST_INLINE void NAME(add_lines)(int64_t m, int lines, const T *const given[], const T *t, bool conj, T *y)
{
    const T *a[GROUP];
    V() re[GROUP], im[GROUP];
    const V() c1 = NAME(alternate)(1, conj ? -1 : 1), c2 = NAME(alternate)(conj ? 1 : -1, 1);
    UNROLL
    for (int k = 0; k < lines; k++) {
        a[k] = given[k];
        re[k] = V(_set1)(t[k * PARTS]);
        im[k] = V(_set1)(t[k * PARTS + PAIR]);
    }
    int64_t i = 0;
    m *= PARTS;
    for (; i + 2 * LANES <= m; i += 2 * LANES) {
        const V() y0 = NAME(add_at)(i, LANES, lines, a, re, im, c1, c2, V(_load)(y + i));
        const V() y1 = NAME(add_at)(i + LANES, LANES, lines, a, re, im, c1, c2, V(_load)(y + i + LANES));
        V(_store)(y + i, y0);
        V(_store)(y + i + LANES, y1);
    }
    for (; i + LANES <= m; i += LANES)
        V(_store)(y + i, NAME(add_at)(i, LANES, lines, a, re, im, c1, c2, V(_load)(y + i)));
    if (i < m) {
        const int n = (int)(m - i);
        V(_storen)(y + i, NAME(add_at)(i, n, lines, a, re, im, c1, c2, V(_loadn)(y + i, n)), n);
    }
}

/* CALL(lines) with constants: whole groups, then what is left at once. */
#define BY_GROUPS(lines, group, CALL)              \
    int k = 0;                                     \
    for (; k + (group) <= (lines); k += (group)) { \
        CALL(group);                               \
    }                                              \
    switch ((lines)-k) {                           \
    case 1: CALL(1); break;                        \
    case 2: CALL(2); break;                        \
    case 3: CALL(3); break;                        \
    case 4: CALL((group) > 4 ? 4 : 1); break;      \
    case 5: CALL((group) > 4 ? 5 : 1); break;      \
    case 6: CALL((group) > 4 ? 6 : 1); break;      \
    case 7: CALL((group) > 4 ? 7 : 1); break;      \
    default: break;                                \
    }

static void NAME(add)(int64_t m, int lines, const void *const av[], const void *t, bool conj, void *y)
{
    const T *const *a = (const T *const *)av;
#define CALL(n) NAME(add_lines)(m, n, a + k, (const T *)t + k * PARTS, conj, y)
    BY_GROUPS(lines, GROUP, CALL)
#undef CALL
}

/* ---- s[k] += sum a[k] x ---- */
/* From the sums of a line, S and R or the even and the odd vectors', to one element. */
ST_INLINE void NAME(join)(V() s, V() r, bool conj, T *out)
{
    T a[2];
#if PAIR
    T b[2];
    V(_fold)(s, a);
    V(_fold)(r, b);
    out[0] += conj ? a[0] + a[1] : a[0] - a[1];
    out[1] += conj ? b[0] - b[1] : b[0] + b[1];
#else
    (void)conj;
    V(_fold)(V(_add)(s, r), a);
    out[0] += a[0] + a[1];
#endif
}

ST_INLINE void NAME(dot_lines)(int64_t m, int lines, const T *const given[], const T *x, bool conj, T *s)
{
    const T *a[GROUP];
    V() s0[GROUP], s1[GROUP];
    UNROLL
    for (int k = 0; k < lines; k++) {
        a[k] = given[k];
        s0[k] = s1[k] = V(_set1)(0);
    }
    int64_t i = 0;
    m *= PARTS;
#if PAIR
    for (; i < m; i += LANES) {
        const int n = m - i < LANES ? (int)(m - i) : LANES;
        const V() v = NAME(get)(x + i, n), w = SWAP(v);
        UNROLL
        for (int k = 0; k < lines; k++) {
            const V() e = NAME(get)(a[k] + i, n);
            s0[k] = V(_fma)(e, v, s0[k]);
            s1[k] = V(_fma)(e, w, s1[k]);
        }
    }
#else
    for (; i + 2 * LANES <= m; i += 2 * LANES) {
        const V() v = V(_load)(x + i), w = V(_load)(x + i + LANES);
        UNROLL
        for (int k = 0; k < lines; k++) {
            s0[k] = V(_fma)(V(_load)(a[k] + i), v, s0[k]);
            s1[k] = V(_fma)(V(_load)(a[k] + i + LANES), w, s1[k]);
        }
    }
    if (i + LANES <= m) {
        const V() v = V(_load)(x + i);
        UNROLL
        for (int k = 0; k < lines; k++) s0[k] = V(_fma)(V(_load)(a[k] + i), v, s0[k]);
        i += LANES;
    }
    if (i < m) {
        const int n = (int)(m - i);
        const V() v = V(_loadn)(x + i, n);
        UNROLL
        for (int k = 0; k < lines; k++) s1[k] = V(_fma)(V(_loadn)(a[k] + i, n), v, s1[k]);
    }
#endif
    UNROLL
    for (int k = 0; k < lines; k++) NAME(join)(s0[k], s1[k], conj, s + k * PARTS);
}

static void NAME(dot)(int64_t m, int lines, const void *const av[], const void *x, bool conj, void *s)
{
    const T *const *a = (const T *const *)av;
#define CALL(n) NAME(dot_lines)(m, n, a + k, x, conj, (T *)s + k * PARTS)
    BY_GROUPS(lines, GROUP, CALL)
#undef CALL
}

/* ---- both: of each line the number, its sum and the line's vector live in registers ---- */
#define BOTH (PAIR || GROUP < 8 ? 4 : 8)
ST_INLINE V() NAME(both_at)(int64_t i, int n, int lines, const T *const a[], const V() * re, const V() * im,
                            V() c1, V() c2, V() y, V() x, V() * s, V() * r)
{
#if PAIR
    V() p = V(_set1)(0), q = p;
    const V() w = SWAP(x);
    UNROLL
    for (int k = 0; k < lines; k++) {
        const V() v = NAME(get)(a[k] + i, n);
        p = V(_fma)(v, re[k], p);
        q = V(_fma)(v, im[k], q);
        s[k] = V(_fma)(v, x, s[k]);
        r[k] = V(_fma)(v, w, r[k]);
    }
    return V(_fma)(p, c1, V(_fma)(SWAP(q), c2, y));
#else
    (void)im, (void)c1, (void)c2, (void)r;
    UNROLL
    for (int k = 0; k < lines; k++) {
        const V() v = NAME(get)(a[k] + i, n);
        y = V(_fma)(v, re[k], y);
        s[k] = V(_fma)(v, x, s[k]);
    }
    return y;
#endif
}

ST_INLINE void NAME(both_lines)(int64_t m, int lines, const T *const given[], const T *t, bool conj_add, T *y,
                                const T *x, bool conj_dot, T *sum)
{
    const T *a[BOTH];
    V() re[BOTH], im[BOTH], s[BOTH], r[BOTH];
    const V() c1 = NAME(alternate)(1, conj_add ? -1 : 1), c2 = NAME(alternate)(conj_add ? 1 : -1, 1);
    UNROLL
    for (int k = 0; k < lines; k++) {
        a[k] = given[k];
        re[k] = V(_set1)(t[k * PARTS]);
        im[k] = V(_set1)(t[k * PARTS + PAIR]);
        s[k] = r[k] = V(_set1)(0);
    }
    int64_t i = 0;
    m *= PARTS;
    for (; i + LANES <= m; i += LANES) V(_store)
    (y + i, NAME(both_at)(i, LANES, lines, a, re, im, c1, c2, V(_load)(y + i), V(_load)(x + i), s, r));
    if (i < m) {
        const int n = (int)(m - i);
        V(_storen)
        (y + i, NAME(both_at)(i, n, lines, a, re, im, c1, c2, V(_loadn)(y + i, n), V(_loadn)(x + i, n), s, r),
         n);
    }
    UNROLL
    for (int k = 0; k < lines; k++) NAME(join)(s[k], r[k], conj_dot, sum + k * PARTS);
}

static void NAME(both)(int64_t m, int lines, const void *const av[], const void *t, bool conj_add, void *y,
                       const void *x, bool conj_dot, void *s)
{
    const T *const *a = (const T *const *)av;
#define CALL(n) \
    NAME(both_lines)(m, n, a + k, (const T *)t + k * PARTS, conj_add, y, x, conj_dot, (T *)s + k * PARTS)
    BY_GROUPS(lines, BOTH, CALL)
#undef CALL
}

/* ---- a[k] += x t[k] (+ y u[k]) ---- */
ST_INLINE void NAME(update_lines)(int64_t m, int lines, T *const given[], const T *x, const T *t, bool two,
                                  const T *y, const T *u)
{
    T *a[4];
    V() re[4], im[4], ure[4], uim[4];
    const V() sign = NAME(alternate)(-1, 1);
    UNROLL
    for (int k = 0; k < lines; k++) {
        a[k] = given[k];
        re[k] = V(_set1)(t[k * PARTS]);
        im[k] = V(_mul)(sign, V(_set1)(t[k * PARTS + PAIR]));
        ure[k] = V(_set1)(two ? u[k * PARTS] : 0);
        uim[k] = V(_mul)(sign, V(_set1)(two ? u[k * PARTS + PAIR] : 0));
    }
    m *= PARTS;
    for (int64_t i = 0; i < m; i += LANES) {
        const int n = m - i < LANES ? (int)(m - i) : LANES;
        const V() v = NAME(get)(x + i, n), w = two ? NAME(get)(y + i, n) : v;
        UNROLL
        for (int k = 0; k < lines; k++) {
            V() e = V(_fma)(v, re[k], NAME(get)(a[k] + i, n));
            if (PAIR) e = V(_fma)(SWAP(v), im[k], e);
            if (two) e = V(_fma)(w, ure[k], e);
            if (two && PAIR) e = V(_fma)(SWAP(w), uim[k], e);
            NAME(put)(a[k] + i, e, n);
        }
    }
}

static void NAME(update)(int64_t m, int lines, void *const av[], const void *x, const void *t, const void *y,
                         const void *u)
{
    T *const *a = (T *const *)av;
    const T *ts = t, *us = u;
    if (y) {
#define CALL(n) NAME(update_lines)(m, n, a + k, x, ts + k * PARTS, true, y, us + k * PARTS)
        BY_GROUPS(lines, 4, CALL)
#undef CALL
    } else {
#define CALL(n) NAME(update_lines)(m, n, a + k, x, ts + k * PARTS, false, NULL, NULL)
        BY_GROUPS(lines, 4, CALL)
#undef CALL
    }
}

#include "pointwise/cpu/matvec_short.h"

const st_matvec_kernels NAME(kernels) = {
    .add = NAME(add), .dot = NAME(dot), .both = NAME(both), .update = NAME(update), .brief = NAME(brief)};
#undef BY_GROUPS
#undef BOTH
#undef PARTS
