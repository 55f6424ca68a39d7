/* SPDX-License-Identifier: Apache-2.0 */
/* level3.h - what the tests of level 3 share: complex elements of structured views by their definition, comparison with sums in long double,
 * random structures and layouts. */
#ifndef TEST_LEVEL3_H
#define TEST_LEVEL3_H
#include "support.h"
#include "levels.h"
#include <math.h>
#include <strata.h>
#include <strata/blas.h>
#include <strata/runtime.h>

typedef struct num {
    long double re, im;
} num;
static strata_handle *h;
static const strata_type types[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};

static inline int setup(void **state)
{
    (void)state;
    return strata_create(&h, test_device());
}
static inline int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

static inline bool is_complex(int t) { return t == STRATA_C64 || t == STRATA_C128; }
static inline bool is_single(int t) { return t == STRATA_F32 || t == STRATA_C64; }
static inline double unit(int t)
{
    return test_unit(is_single(t) ? STRATA_F32 : STRATA_F64) * (is_complex(t) ? 4 : 1);
}

static inline num get(int type, const void *p)
{
    const float *f = p;
    const double *d = p;
    num v = {is_single(type) ? (long double)f[0] : (long double)d[0], 0};
    if (is_complex(type)) v.im = is_single(type) ? (long double)f[1] : (long double)d[1];
    return v;
}
static inline void put(int type, void *p, num v)
{
    const int parts = is_complex(type) ? 2 : 1;
    for (int i = 0; i < parts; i++) {
        const long double x = i ? v.im : v.re;
        if (is_single(type))
            ((float *)p)[i] = (float)x;
        else
            ((double *)p)[i] = (double)x;
    }
}
static inline num times(num a, num b) { return (num){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static inline num plus(num a, num b) { return (num){a.re + b.re, a.im + b.im}; }
static inline long double size(num a) { return fabsl(a.re) + fabsl(a.im); }

/* where element (i, j) of item g is */
static inline char *place(const strata_tensor *t, int64_t g, int64_t i, int64_t j)
{
    int64_t x[STRATA_MAX_RANK] = {0};
    strata_tensor one = *t;
    if (t->flags & STRATA_TENSOR_POINTERS) {
        one.data = ((void **)t->data)[g];
        g = 0;
    }
    for (int d = t->rank - 3; d >= 0; d--) {
        x[d] = g % t->dim[d];
        g /= t->dim[d];
    }
    x[t->rank - 2] = i;
    x[t->rank - 1] = j;
    return test_at(&one, x);
}
static inline bool held(const strata_tensor *t, int64_t i, int64_t j)
{
    if (t->flags & STRATA_TENSOR_UNIT && i == j) return false;
    return !(t->flags & STRATA_TENSOR_LOWER && i < j) && !(t->flags & STRATA_TENSOR_UPPER && i > j);
}
/* the matrix that a view means */
static inline num meaning(const strata_tensor *t, int64_t g, int64_t i, int64_t j)
{
    const uint32_t f = t->flags;
    num v = {0, 0};
    if (f & STRATA_TENSOR_UNIT && i == j) return (num){1, 0};
    if (held(t, i, j))
        v = get(t->type, place(t, g, i, j));
    else if (f & (STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_HERMITIAN))
        v = get(t->type, place(t, g, j, i));
    if (f & STRATA_TENSOR_HERMITIAN) v.im = i == j ? 0 : held(t, i, j) ? v.im : -v.im;
    if (f & STRATA_TENSOR_CONJ) v.im = -v.im;
    return v;
}

static inline void fill(test_rng *r, const strata_tensor *t, int64_t items, double lo, double hi)
{
    for (int64_t g = 0; g < items; g++)
        for (int64_t i = 0; i < t->dim[t->rank - 2]; i++)
            for (int64_t j = 0; j < t->dim[t->rank - 1]; j++)
                if (held(t, i, j))
                    put(t->type, place(t, g, i, j), (num){test_real(r, lo, hi), test_real(r, lo, hi)});
}
/* What is not stored is NaN still. */
static inline void untouched(const strata_tensor *t, int64_t items, const char *name)
{
    for (int64_t g = 0; g < items; g++)
        for (int64_t i = 0; i < t->dim[t->rank - 2]; i++)
            for (int64_t j = 0; j < t->dim[t->rank - 1]; j++) {
                const num v = held(t, i, j) ? (num){NAN, NAN} : get(t->type, place(t, g, i, j));
                test_check(isnan(v.re) && (!is_complex(t->type) || isnan(v.im)),
                           "%s[%d,%d] is not stored but was written", name, (int)i, (int)j);
            }
}

static inline strata_tensor structured(test_rng *r, strata_tensor t, bool square, bool result)
{
    const strata_uplo uplo = test_chance(r, 0.5) ? STRATA_LOWER : STRATA_UPPER;
    const int kind = (int)test_int(r, 0, 4);
    if (square && kind == 0) t = strata_symmetric(t, uplo);
    if (square && kind == 1) t = strata_hermitian(t, uplo);
    if (square && kind == 2)
        t = strata_triangular(t, uplo, !result && test_chance(r, 0.5) ? STRATA_UNIT : STRATA_NON_UNIT);
    if (!result && test_chance(r, 0.3)) t = strata_conj(t);
    return t;
}

static inline num factor(test_rng *r, int type, bool real)
{
    static const double choice[] = {0, 1, -1, 0.5, 1, 2};
    num v = {choice[test_int(r, 0, 5)], 0};
    if (!real && is_complex(type) && test_chance(r, 0.5)) v.im = choice[test_int(r, 0, 5)];
    return v;
}
static inline strata_scalar scalar(num v) { return strata_complex((double)v.re, (double)v.im); }

static inline int64_t some(test_rng *r)
{
    return test_chance(r, 0.03) ? 0 : test_chance(r, 0.1) ? test_int(r, 100, 170) : test_int(r, 1, 40);
}
static inline unsigned layout(test_rng *r)
{
    return test_chance(r, 0.2) ? TEST_ANY : test_chance(r, 0.5) ? TEST_PERMUTED | TEST_PADDED : TEST_PADDED;
}

/* C against alpha A B + beta old, of the stored elements; old is NULL where beta is 0. */
typedef struct expect {
    const strata_tensor *A, *B, *C, *old;
    num alpha, beta;
    int64_t items_a, items_b;     /* 1: repeats */
    const strata_tensor *A2, *B2; /* NULL, or a second product, by alpha2 */
    num alpha2;
} expect;

static inline num product(const expect *x, const strata_tensor *A, const strata_tensor *B, int64_t g,
                          int64_t i, int64_t j, long double *abs)
{
    num s = {0, 0};
    for (int64_t p = 0; p < A->dim[A->rank - 1]; p++) {
        const num v =
            times(meaning(A, x->items_a > 1 ? g : 0, i, p), meaning(B, x->items_b > 1 ? g : 0, p, j));
        s = plus(s, v);
        *abs += size(v);
    }
    return s;
}

static inline void compare(const expect *x, int64_t items)
{
    const strata_tensor *C = x->C;
    const int64_t k = x->A->dim[x->A->rank - 1];
    for (int64_t g = 0; g < items; g++)
        for (int64_t i = 0; i < C->dim[C->rank - 2]; i++)
            for (int64_t j = 0; j < C->dim[C->rank - 1]; j++) {
                if (!held(C, i, j)) continue;
                const bool real = C->flags & STRATA_TENSOR_HERMITIAN && i == j;
                long double abs = 0, abs2 = 0;
                num v = {0, 0}, was = {0, 0};
                if (size(x->alpha) != 0) v = times(x->alpha, product(x, x->A, x->B, g, i, j, &abs));
                abs *= size(x->alpha);
                if (x->A2 && size(x->alpha2) != 0) {
                    v = plus(v, times(x->alpha2, product(x, x->A2, x->B2, g, i, j, &abs2)));
                    abs += abs2 * size(x->alpha2);
                }
                if (size(x->beta) != 0) {
                    was = get(C->type, place(x->old, g, i, j));
                    if (real) was.im = 0;
                    was = times(x->beta, was);
                }
                v = plus(v, was);
                if (real) v.im = 0;
                const num got = get(C->type, place(C, g, i, j));
                const double bound =
                    (double)((long double)((x->A2 ? 2 * k : k) + 4) * unit(C->type) * (abs + size(was)));
                test_close((double)got.re, (double)v.re, bound, "re C[%d;%d,%d]", (int)g, (int)i, (int)j);
                test_close((double)got.im, (double)v.im, real ? 0 : bound, "im C[%d;%d,%d]", (int)g, (int)i,
                           (int)j);
            }
}

static inline test_array matrices(test_rng *r, strata_type type, int64_t items, int64_t m, int64_t n)
{
    return items > 1 ? test_array_make(r, type, 3, (int64_t[]){items, m, n}, layout(r))
                     : test_array_make(r, type, 2, (int64_t[]){m, n}, layout(r));
}
static inline void copy_held(const strata_tensor *to, const strata_tensor *from, int64_t items)
{
    for (int64_t g = 0; g < items; g++)
        for (int64_t i = 0; i < to->dim[to->rank - 2]; i++)
            for (int64_t j = 0; j < to->dim[to->rank - 1]; j++)
                if (held(to, i, j)) put(to->type, place(to, g, i, j), get(to->type, place(from, g, i, j)));
}

/* |A X - alpha B| row by row, X being what the call left */
static inline void residual(const strata_tensor *A, const strata_tensor *X, const strata_tensor *B, num alpha,
                            int64_t items, int64_t ga)
{
    const int64_t n = A->dim[A->rank - 1], cols = X->dim[X->rank - 1];
    for (int64_t g = 0; g < items; g++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < cols; j++) {
                const num b = times(alpha, get(B->type, place(B, g, i, j)));
                num s = {0, 0};
                long double abs = size(b);
                for (int64_t p = 0; p < n; p++) {
                    const num v = times(meaning(A, ga > 1 ? g : 0, i, p), get(X->type, place(X, g, p, j)));
                    s = plus(s, v);
                    abs += size(v);
                }
                const double bound = (double)((long double)(n + 4) * unit(B->type) * abs);
                test_close((double)s.re, (double)b.re, bound, "re (A X)[%d;%d,%d]", (int)g, (int)i, (int)j);
                test_close((double)s.im, (double)b.im, bound, "im (A X)[%d;%d,%d]", (int)g, (int)i, (int)j);
            }
}

#endif
