/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_short.h - the part of matvec_body.h for matrices in the first caches: a whole operation in one call, without threads or tables of lines.
 *
 * The matrix is lines (see matvec_lines.h), in groups of LINES. A triangle is a corner of each group, at the diagonal, element by element, and the rows that the
 * group's lines have in common beside it, by the group's kernel. So a general matrix has the bits that the long way gives it.
 * Vectors are dense while the work goes on: where they lie, or in rooms of ROOM elements. */

enum { NAME(LINES) = ST_MATVEC_LINES, NAME(ROOM) = ST_MATVEC_SHORT };

typedef struct NAME(num) {
    T re, im;
} NAME(num);
ST_INLINE NAME(num) NAME(at)(const T *p, bool conj)
{
    return (NAME(num)){p[0], !PAIR ? 0 : conj ? -p[PAIR] : p[PAIR]};
}
ST_INLINE void NAME(set)(T *p, NAME(num) v)
{
    p[0] = v.re;
    if (PAIR) p[PAIR] = v.im;
}
/* a b + c */
ST_INLINE NAME(num) NAME(muladd)(NAME(num) a, NAME(num) b, NAME(num) c)
{
#if PAIR
    return (NAME(num)){FMA(-a.im, b.im, FMA(a.re, b.re, c.re)), FMA(a.im, b.re, FMA(a.re, b.im, c.im))};
#else
    return (NAME(num)){FMA(a.re, b.re, c.re), 0};
#endif
}
ST_INLINE NAME(num) NAME(times)(NAME(num) a, NAME(num) b)
{
    if (!PAIR) return (NAME(num)){a.re * b.re, 0};
    return (NAME(num)){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/* without overflow on the way (Smith, "Algorithm 116", CACM 5, 1962), in f64 as the long way does it */
ST_INLINE NAME(num) NAME(over)(NAME(num) x, NAME(num) d)
{
#if PAIR
    const double xr = (double)x.re, xi = (double)x.im, dr = (double)d.re, di = (double)d.im;
    if (di == 0) return (NAME(num)){(T)(xr / dr), (T)(xi / dr)};
    if (fabs(dr) >= fabs(di)) {
        const double r = di / dr, s = dr + di * r;
        return (NAME(num)){(T)((xr + xi * r) / s), (T)((xi - xr * r) / s)};
    }
    const double r = dr / di, s = di + dr * r;
    return (NAME(num)){(T)((xr * r + xi) / s), (T)((xi * r - xr) / s)};
#else
    return (NAME(num)){x.re / d.re, 0};
#endif
}

/* The lines of a short matrix: element (i, j) of a strided one lies at a + i + j * col; of a packed triangle lines follow each other. */
typedef struct NAME(matrix) {
    T *a;
    int64_t n, col; /* lines; elements from line to line */
    int packed;     /* 0, 1: lower, 2: upper */
} NAME(matrix);
ST_INLINE T *NAME(place)(const NAME(matrix) * q, int64_t i, int64_t j)
{
    const int64_t at = q->packed == 0   ? i + j * q->col
                       : q->packed == 1 ? i + j * (2 * q->n - j - 1) / 2
                                        : i + j * (j + 1) / 2;
    return q->a + at * PARTS;
}
/* row i of lines j .. j + lines - 1 */
ST_INLINE void NAME(group)(const NAME(matrix) * q, int64_t i, int64_t j, int lines, T *a[])
{
    T *p = NAME(place)(q, i, j);
    int64_t step = q->packed == 0 ? q->col : q->packed == 1 ? q->n - j - 1 : j + 1;
    const int64_t grow = q->packed == 0 ? 0 : q->packed == 1 ? -1 : 1;
    for (int k = 0; k < lines; k++, p += step * PARTS, step += grow) a[k] = p;
}

/* n elements from any stride, dense and times `factor` (NULL: as they are), as the long way multiplies. */
static void NAME(take)(T *to, const T *from, int64_t step, bool conj, int64_t n, const double *factor)
{
    const bool scale = factor && !(factor[0] == 1 && factor[1] == 0);
    const T fr = scale ? (T)factor[0] : 1, fi = scale ? (T)factor[1] : 0;
    if (!PAIR && step == 1) {
        const V() f = V(_set1)(fr);
        for (int64_t i = 0; i < n; i += LANES) {
            const int k = n - i < LANES ? (int)(n - i) : LANES;
            const V() v = NAME(get)(from + i, k);
            NAME(put)(to + i, scale ? V(_mul)(f, v) : v, k);
        }
        return;
    }
    step *= PARTS;
    if (!PAIR) {
        for (int64_t i = 0; i < n; i++, from += step) to[i] = scale ? fr * *from : *from;
        return;
    }
    for (int64_t i = 0; i < n; i++, from += step, to += PARTS) {
        const T re = from[0], im = conj ? -from[PAIR] : from[PAIR];
        to[0] = !scale ? re : 0 + (fr * re - fi * im);
        to[PAIR] = !scale ? im : 0 + (fr * im + fi * re);
    }
}
/* y := beta y + alpha s (s NULL: nothing) */
static void NAME(combine)(T *y, int64_t step, int64_t n, const double alpha[2], const T *s,
                          const double beta[2])
{
    const T ar = (T)alpha[0], ai = (T)alpha[1], br = (T)beta[0], bi = (T)beta[1];
    const bool one = br == 1 && bi == 0, zero = br == 0 && bi == 0;
    if (!s && one) return;
#if !PAIR
    if (step == 1) {
        const V() a = V(_set1)(ar), b = V(_set1)(br), none = V(_set1)(0);
        for (int64_t i = 0; i < n; i += LANES) {
            const int k = n - i < LANES ? (int)(n - i) : LANES;
            V() v = s ? V(_mul)(a, NAME(get)(s + i, k)) : none;
            if (!zero) {
                const V() old = V(_mul)(b, NAME(get)(y + i, k));
                v = s ? V(_add)(v, old) : old;
            }
            NAME(put)(y + i, v, k);
        }
        return;
    }
#endif
    for (int64_t i = 0; i < n; i++, y += step * PARTS) {
        T re = 0, im = 0;
        if (!PAIR) {
            y[0] = !s ? (zero ? 0 : br * y[0]) : zero ? ar * s[i] : ar * s[i] + br * y[0];
            continue;
        }
        if (one)
            re = y[0], im = y[PAIR];
        else if (!zero)
            re = br * y[0] - bi * y[PAIR], im = br * y[PAIR] + bi * y[0];
        if (s) {
            const T sr = s[PARTS * i], si = s[PARTS * i + PAIR];
            re += ar * sr - ai * si, im += ar * si + ai * sr;
        }
        y[0] = re;
        y[PAIR] = im;
    }
}

/* ---- groups: m rows from row i of lines [j, j + lines) ---- */
ST_INLINE void NAME(group_add)(const NAME(matrix) * q, int64_t i, int64_t m, int64_t j, int lines, const T *t,
                               bool conj, T *y)
{
    T *a[NAME(LINES)];
    if (m <= 0) return;
    NAME(group)(q, i, j, lines, a);
    NAME(add)(m, lines, (const void *const *)a, t, conj, y);
}
ST_INLINE void NAME(group_dot)(const NAME(matrix) * q, int64_t i, int64_t m, int64_t j, int lines, const T *x,
                               bool conj, T *s)
{
    T *a[NAME(LINES)];
    if (m <= 0) return;
    NAME(group)(q, i, j, lines, a);
    NAME(dot)(m, lines, (const void *const *)a, x, conj, s);
}

static void NAME(product)(const strata_matvec_plain *p, const NAME(matrix) * q, bool across, const T *x, T *y)
{
    T *a[NAME(LINES)], *out = p->y;
    T t[NAME(ROOM) * PARTS];
    const int64_t lines = q->n, rows = across ? p->n : p->m;
    if (across) { /* sums, one a line */
        memset(t, 0, sizeof *t * (size_t)(lines * PARTS));
        for (int64_t j = 0; j < lines; j += NAME(LINES)) {
            const int k = (int)st_min64(NAME(LINES), lines - j);
            NAME(group)(q, 0, j, k, a);
            NAME(dot)(rows, k, (const void *const *)a, x, p->conj, t + j * PARTS);
        }
        NAME(combine)(out, p->incy, lines, p->alpha, t, p->beta);
        return;
    }
    NAME(take)(t, p->x, p->incx, p->conj_x, lines, p->alpha);
    NAME(combine)(out, p->incy, rows, p->alpha, NULL, p->beta);
    if (y != out) NAME(take)(y, out, p->incy, false, rows, NULL);
    for (int64_t j = 0; j < lines; j += NAME(LINES)) {
        const int k = (int)st_min64(NAME(LINES), lines - j);
        NAME(group)(q, 0, j, k, a);
        NAME(add)(rows, k, (const void *const *)a, t + j * PARTS, p->conj, y);
    }
    if (y != out)
        for (int64_t i = 0; i < rows; i++)
            for (int c = 0; c < PARTS; c++) out[i * p->incy * PARTS + c] = y[i * PARTS + c];
}

/* A band by lines: a line with its few rows at a time. */
static void NAME(band)(const strata_matvec_plain *p, const NAME(matrix) * q, bool across, const T *x, T *y)
{
    const int64_t lines = q->n, rows = across ? p->n : p->m, kl = across ? p->ku : p->kl,
                  ku = across ? p->kl : p->ku;
    T t[NAME(ROOM) * PARTS], *out = p->y;
    if (across) {
        memset(t, 0, sizeof *t * (size_t)(lines * PARTS));
    } else {
        NAME(take)(t, p->x, p->incx, p->conj_x, lines, p->alpha);
        NAME(combine)(out, p->incy, rows, p->alpha, NULL, p->beta);
        if (y != out) NAME(take)(y, out, p->incy, false, rows, NULL);
    }
    for (int64_t j = 0; j < lines; j++) {
        const int64_t i0 = st_max64(0, j - ku), m = st_min64(rows, j + kl + 1) - i0;
        const T *a = NAME(place)(q, i0, j);
        if (m <= 0) continue;
        if (across)
            NAME(dot_lines)(m, 1, &a, x + i0 * PARTS, p->conj, t + j * PARTS);
        else
            NAME(add_lines)(m, 1, &a, t + j * PARTS, p->conj, y + i0 * PARTS);
    }
    if (across)
        NAME(combine)(out, p->incy, lines, p->alpha, t, p->beta);
    else if (y != out)
        for (int64_t i = 0; i < rows; i++)
            for (int c = 0; c < PARTS; c++) out[i * p->incy * PARTS + c] = y[i * PARTS + c];
}

/* Groups of a triangle: whole ones, then 4, 2 and 1 lines, so that corners have constant sizes. The one that begins at j, the one that ends at e. */
ST_INLINE int NAME(lines_from)(int64_t j, int64_t n)
{
    return n - j >= NAME(LINES) ? NAME(LINES) : n - j >= 4 ? 4 : n - j >= 2 ? 2 : 1;
}
ST_INLINE int NAME(lines_to)(int64_t e) { return e % NAME(LINES) == 0 ? NAME(LINES) : (int)(e & -e); }
#if PAIR
#    define UNROLLED
#else
#    define UNROLLED UNROLL
#endif

/* The corner of a mirrored matrix: z += A t, of the stored triangle without its diagonal; s = the mirror's product with x, and the diagonal's. */
ST_INLINE void NAME(mirrored_corner)(const NAME(matrix) * q, int64_t j, int k, bool lower, bool hermitian,
                                     bool conj, const T *x, const T *t, T *z, T *s)
{
    NAME(num) xv[NAME(LINES)] = {{0, 0}}, zv[NAME(LINES)] = {{0, 0}};
    UNROLLED
    for (int i = 0; i < k; i++)
        xv[i] = NAME(at)(x + i * PARTS, false), zv[i] = NAME(at)(z + i * PARTS, false);
    UNROLLED
    for (int c = 0; c < k; c++) {
        const T *line = NAME(place)(q, j, j + c);
        const NAME(num) tc = NAME(at)(t + c * PARTS, false);
        NAME(num) d = NAME(at)(line + c * PARTS, conj);
        if (hermitian) d.im = 0;
        NAME(num) sum = NAME(times)(d, xv[c]);
        UNROLLED
        for (int i = 0; i < k; i++) {
            if (lower ? i <= c : i >= c) continue;
            zv[i] = NAME(muladd)(NAME(at)(line + i * PARTS, conj), tc, zv[i]);
            sum = NAME(muladd)(NAME(at)(line + i * PARTS, conj != hermitian), xv[i], sum);
        }
        NAME(set)(s + c * PARTS, sum);
    }
    UNROLLED
    for (int i = 0; i < k; i++) NAME(set)(z + i * PARTS, zv[i]);
}

static ST_NOINLINE void NAME(mirrored_corners)(const NAME(matrix) * q, int64_t j, int k, bool lower,
                                               bool hermitian, bool conj, const T *x, const T *t, T *z, T *s)
{
#if PAIR
    NAME(mirrored_corner)(q, j, k, lower, hermitian, conj, x, t, z, s);
#else
#    define SIZES(is_lower)                                                                      \
        do {                                                                                     \
            if (k == NAME(LINES))                                                                \
                NAME(mirrored_corner)(q, j, NAME(LINES), is_lower, hermitian, conj, x, t, z, s); \
            else if (k == 4)                                                                     \
                NAME(mirrored_corner)(q, j, 4, is_lower, hermitian, conj, x, t, z, s);           \
            else if (k == 2)                                                                     \
                NAME(mirrored_corner)(q, j, 2, is_lower, hermitian, conj, x, t, z, s);           \
            else                                                                                 \
                NAME(mirrored_corner)(q, j, 1, is_lower, hermitian, conj, x, t, z, s);           \
        } while (0)
    if (lower)
        SIZES(true);
    else
        SIZES(false);
#    undef SIZES
#endif
}

/* y := alpha A x + beta y, A mirrored: every element beside the diagonal serves twice. */
static void NAME(mirrored)(const strata_matvec_plain *p, const NAME(matrix) * q, bool lower, bool conj,
                           const T *x)
{
    static const double one[2] = {1, 0};
    const bool hermitian = p->mirror == 2;
    const int64_t n = q->n;
    T z[NAME(ROOM) * PARTS], t[NAME(ROOM) * PARTS], *a[NAME(LINES)];
    memset(z, 0, sizeof *z * (size_t)(n * PARTS));
    NAME(take)(t, x, 1, false, n, p->alpha);
    const NAME(num) alpha = {(T)p->alpha[0], (T)p->alpha[1]};
    for (int64_t j = 0, k; j < n; j += k) {
        k = NAME(lines_from)(j, n);
        T s[NAME(LINES) * PARTS];
        NAME(mirrored_corners)
        (q, j, (int)k, lower, hermitian, conj, x + j * PARTS, t + j * PARTS, z + j * PARTS, s);
        const int64_t i0 = lower ? j + k : 0, m = lower ? n - i0 : j;
        if (m > 0) {
            NAME(group)(q, i0, j, k, a);
            NAME(both)
            (m, k, (const void *const *)a, t + j * PARTS, conj, z + i0 * PARTS, x + i0 * PARTS,
             conj != hermitian, s);
        }
        for (int c = 0; c < k; c++) {
            T *zc = z + (j + c) * PARTS;
            NAME(set)(zc, NAME(muladd)(alpha, NAME(at)(s + c * PARTS, false), NAME(at)(zc, false)));
        }
    }
    NAME(combine)(p->y, p->incy, n, one, z, p->beta);
}

/* ---- in place ---- */
ST_INLINE NAME(num) NAME(by_diagonal)(NAME(num) v, NAME(num) d, bool solve)
{
    return solve ? NAME(over)(v, d) : NAME(times)(v, d);
}
/* The corner of lines [j, j + k), x from its first row on; the numbers stay in registers where k is a constant. */
ST_INLINE void NAME(corner)(const NAME(matrix) * q, int64_t j, int k, bool lower, bool across, bool solve,
                            bool unit, bool conj, T *x)
{
    const bool forward = (lower == solve) != across;
    const T sign = solve ? -1 : 1;
    NAME(num) v[NAME(LINES)] = {{0, 0}};
    UNROLLED
    for (int i = 0; i < k; i++) v[i] = NAME(at)(x + i * PARTS, false);
    UNROLLED
    for (int g = 0; g < k; g++) {
        const int c = forward ? g : k - 1 - g;
        const T *line = NAME(place)(q, j, j + c);
        NAME(num) w = v[c];
        if (!unit && solve != across) w = NAME(by_diagonal)(w, NAME(at)(line + c * PARTS, conj), solve);
        const NAME(num) t = {sign * w.re, sign * w.im};
        UNROLLED
        for (int i = 0; i < k; i++) {
            if (lower ? i <= c : i >= c) continue;
            const NAME(num) e = NAME(at)(line + i * PARTS, conj);
            if (across)
                w = NAME(muladd)((NAME(num)){sign * e.re, sign * e.im}, v[i], w);
            else
                v[i] = NAME(muladd)(e, t, v[i]);
        }
        if (!unit && solve == across) w = NAME(by_diagonal)(w, NAME(at)(line + c * PARTS, conj), solve);
        v[c] = w;
    }
    UNROLLED
    for (int i = 0; i < k; i++) NAME(set)(x + i * PARTS, v[i]);
}
static ST_NOINLINE void NAME(corners)(const NAME(matrix) * q, int64_t j, int k, bool lower, bool across,
                                      bool solve, bool unit, bool conj, T *x)
{
#if PAIR
    NAME(corner)(q, j, k, lower, across, solve, unit, conj, x);
#else
#    define SIZES(is_lower, is_across)                                                      \
        do {                                                                                \
            if (k == NAME(LINES))                                                           \
                NAME(corner)(q, j, NAME(LINES), is_lower, is_across, solve, unit, conj, x); \
            else if (k == 4)                                                                \
                NAME(corner)(q, j, 4, is_lower, is_across, solve, unit, conj, x);           \
            else if (k == 2)                                                                \
                NAME(corner)(q, j, 2, is_lower, is_across, solve, unit, conj, x);           \
            else                                                                            \
                NAME(corner)(q, j, 1, is_lower, is_across, solve, unit, conj, x);           \
        } while (0)
    if (lower && across)
        SIZES(true, true);
    else if (lower)
        SIZES(true, false);
    else if (across)
        SIZES(false, true);
    else
        SIZES(false, false);
#    undef SIZES
#endif
}

static void NAME(triangle)(const strata_matvec_plain *p, const NAME(matrix) * q, bool lower, bool across,
                           T *x)
{
    const bool solve = p->op == STRATA_MATVEC_SOLVE, unit = p->unit, conj = p->conj;
    const bool forward = (lower == solve) != across, before = across == solve;
    const int64_t n = q->n;
    for (int64_t done = 0, k; done < n; done += k) {
        k = forward ? NAME(lines_from)(done, n) : NAME(lines_to)(n - done);
        const int64_t j = forward ? done : n - done - k;
        const int64_t i0 = lower ? j + k : 0, m = lower ? n - i0 : j;
        T t[NAME(LINES) * PARTS], *xj = x + j * PARTS, *xi = x + i0 * PARTS;
        if (across && before) { /* x_j -= sums of what is solved */
            memset(t, 0, sizeof t);
            NAME(group_dot)(q, i0, m, j, (int)k, xi, conj, t);
            for (int c = 0; c < k * PARTS; c++) xj[c] -= t[c];
        } else if (before) { /* of the old x_j */
            NAME(group_add)(q, i0, m, j, (int)k, xj, conj, xi);
        }
        NAME(corners)(q, j, (int)k, lower, across, solve, unit, conj, xj);
        if (across && !before) {
            NAME(group_dot)(q, i0, m, j, (int)k, xi, conj, xj);
        } else if (!before) {
            for (int c = 0; c < k * PARTS; c++) t[c] = -xj[c];
            NAME(group_add)(q, i0, m, j, (int)k, t, conj, xi);
        }
    }
}

/* ---- updates: lines += x t (+ y u); of a triangle the corner apart ---- */
static void NAME(outer)(const NAME(matrix) * q, int64_t rows, int half, const T *x, const T *t, const T *y,
                        const T *u, bool hermitian)
{
    T *a[NAME(LINES)];
    const bool lower = half == 1;
    for (int64_t j = 0; j < q->n; j += NAME(LINES)) {
        const int k = (int)st_min64(NAME(LINES), q->n - j);
        const int64_t i0 = half == 1 ? j + k : 0, m = half == 1 ? rows - i0 : half == 2 ? j : rows;
        for (int c = 0; c < k && half; c++) {
            T *line = NAME(place)(q, j, j + c), *from = line + (lower ? c * PARTS : 0);
            const int64_t at = (j + (lower ? c : 0)) * PARTS, number = (j + c) * PARTS;
            NAME(update)
            (lower ? k - c : c + 1, 1, (void *const *)&from, x + at, t + number, y ? y + at : NULL,
             y ? u + number : NULL);
            if (PAIR && hermitian) line[c * PARTS + PAIR] = 0;
        }
        if (m <= 0) continue;
        NAME(group)(q, i0, j, k, a);
        NAME(update)
        (m, k, (void *const *)a, x + i0 * PARTS, t + j * PARTS, y ? y + i0 * PARTS : NULL,
         y ? u + j * PARTS : NULL);
    }
}

static void NAME(rank)(const strata_matvec_plain *p, const NAME(matrix) * q, bool across, int half)
{
    static const double one[2] = {1, 0};
    const bool two = p->op == STRATA_MATVEC_UPDATE2, her = p->mirror == 2, flip = two && her;
    const double conjugate[2] = {p->alpha[0], her ? -p->alpha[1] : p->alpha[1]};
    const int64_t rows = across ? p->n : p->m;
    T room[4][NAME(ROOM) * PARTS];
    const T *v[2] = {p->x, p->y};
    const int64_t inc[2] = {p->incx, p->incy};
    const bool conj[2] = {p->conj_x != 0, p->conj_y != 0};
    /* along lines: x, or of rows the conjugated y; one number a line: the other one, times alpha */
    const int r = across, c = !across;
    const T *x = v[r], *y = NULL, *u = NULL;
    const bool cx = conj[r] != (r == 1 && flip), cy = conj[c] != (c == 1 && flip);
    if (inc[r] != 1 || (PAIR && cx)) NAME(take)(room[0], v[r], inc[r], cx, rows, one), x = room[0];
    NAME(take)(room[1], v[c], inc[c], cy, q->n, p->alpha);
    if (two) {
        const bool dx = conj[c] != (c == 0 && flip), dy = conj[r] != (r == 0 && flip);
        NAME(take)(room[2], v[c], inc[c], dx, rows, one), y = room[2];
        NAME(take)(room[3], v[r], inc[r], dy, q->n, conjugate), u = room[3];
    }
    NAME(outer)(q, rows, half, x, room[1], y, u, her);
}

/* The whole operation, or false: the long way is for it. */
static bool NAME(brief)(const strata_matvec_plain *p)
{
    const int64_t row = p->row, col = p->col;
    bool across = col == 1 && (row != 1 || p->m == 1);
    if (p->m > NAME(ROOM) || p->n > NAME(ROOM) ||
        p->m * p->n * (int64_t)sizeof(T) * PARTS >> (p->half != 0) > ST_MATVEC_SHORT_BYTES)
        return false;
    if (p->packed)
        across = row == 0;
    else if (row != 1 && !across)
        return false;
    const bool banded = !p->half && (p->kl < p->m - 1 || p->ku < p->n - 1);
    const int half = p->half && across ? 3 - p->half : p->half;
    if ((p->half == 1 && p->kl < p->m - 1) || (p->half == 2 && p->ku < p->n - 1))
        return false; /* and a band */
    const NAME(matrix) q = {p->a, across ? p->m : p->n, across ? row : col, p->packed ? half : 0};
    T xr[NAME(ROOM) * PARTS], yr[NAME(ROOM) * PARTS];
    T *x = p->x, *y = p->y;
    switch (p->op) {
    case STRATA_MATVEC_PRODUCT:
        if ((p->half && !p->mirror) || (p->alpha[0] == 0 && p->alpha[1] == 0)) return false;
        if ((across || p->mirror) && (p->incx != 1 || p->conj_x))
            NAME(take)(xr, p->x, p->incx, p->conj_x, p->n, NULL), x = xr;
        if (p->incy != 1) y = yr;
        if (p->mirror)
            NAME(mirrored)(p, &q, half == 1, (across && p->mirror == 2) != (p->conj != 0), x);
        else if (banded)
            NAME(band)(p, &q, across, x, y);
        else
            NAME(product)(p, &q, across, x, y);
        return true;
    case STRATA_MATVEC_MULTIPLY:
    case STRATA_MATVEC_SOLVE:
        if (p->incx != 1) NAME(take)(xr, p->x, p->incx, false, p->n, NULL), x = xr;
        NAME(triangle)(p, &q, half == 1, across, x);
        if (x == xr)
            for (int64_t i = 0; i < p->n; i++)
                for (int c = 0; c < PARTS; c++) ((T *)p->x)[i * p->incx * PARTS + c] = xr[i * PARTS + c];
        return true;
    default: NAME(rank)(p, &q, across, half); return true;
    }
}
#undef UNROLLED
