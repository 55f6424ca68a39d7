/* SPDX-License-Identifier: Apache-2.0 */
/* test_level3.c - matrices of every structure in products, rank updates of triangles, and triangular products and solutions in place, in
 * four types, any strides, batches and arrays of addresses, against sums in long double.
 *
 * What a structure says is not stored holds NaN and must neither be read nor written. Bounds: gamma of the sum's length for real numbers, 4
 * times that for complex ones (Higham, Accuracy and Stability, section 3.6); solutions by their residual, row by row. */
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

static int setup(void **state)
{
    (void)state;
    return strata_create(&h, test_device());
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

static bool is_complex(int t) { return t == STRATA_C64 || t == STRATA_C128; }
static bool is_single(int t) { return t == STRATA_F32 || t == STRATA_C64; }
static double unit(int t)
{
    return test_unit(is_single(t) ? STRATA_F32 : STRATA_F64) * (is_complex(t) ? 4 : 1);
}

static num get(int type, const void *p)
{
    const float *f = p;
    const double *d = p;
    num v = {is_single(type) ? (long double)f[0] : (long double)d[0], 0};
    if (is_complex(type)) v.im = is_single(type) ? (long double)f[1] : (long double)d[1];
    return v;
}
static void put(int type, void *p, num v)
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
static num times(num a, num b) { return (num){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static num plus(num a, num b) { return (num){a.re + b.re, a.im + b.im}; }
static long double size(num a) { return fabsl(a.re) + fabsl(a.im); }

/* where element (i, j) of item g is */
static char *place(const strata_tensor *t, int64_t g, int64_t i, int64_t j)
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
static bool held(const strata_tensor *t, int64_t i, int64_t j)
{
    if (t->flags & STRATA_TENSOR_UNIT && i == j) return false;
    return !(t->flags & STRATA_TENSOR_LOWER && i < j) && !(t->flags & STRATA_TENSOR_UPPER && i > j);
}
/* the matrix that a view means */
static num meaning(const strata_tensor *t, int64_t g, int64_t i, int64_t j)
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

static void fill(test_rng *r, const strata_tensor *t, int64_t items, double lo, double hi)
{
    for (int64_t g = 0; g < items; g++)
        for (int64_t i = 0; i < t->dim[t->rank - 2]; i++)
            for (int64_t j = 0; j < t->dim[t->rank - 1]; j++)
                if (held(t, i, j))
                    put(t->type, place(t, g, i, j), (num){test_real(r, lo, hi), test_real(r, lo, hi)});
}
/* What is not stored is NaN still. */
static void untouched(const strata_tensor *t, int64_t items, const char *name)
{
    for (int64_t g = 0; g < items; g++)
        for (int64_t i = 0; i < t->dim[t->rank - 2]; i++)
            for (int64_t j = 0; j < t->dim[t->rank - 1]; j++) {
                const num v = held(t, i, j) ? (num){NAN, NAN} : get(t->type, place(t, g, i, j));
                test_check(isnan(v.re) && (!is_complex(t->type) || isnan(v.im)),
                           "%s[%d,%d] is not stored but was written", name, (int)i, (int)j);
            }
}

static strata_tensor structured(test_rng *r, strata_tensor t, bool square, bool result)
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

static num factor(test_rng *r, int type, bool real)
{
    static const double choice[] = {0, 1, -1, 0.5, 1, 2};
    num v = {choice[test_int(r, 0, 5)], 0};
    if (!real && is_complex(type) && test_chance(r, 0.5)) v.im = choice[test_int(r, 0, 5)];
    return v;
}
static strata_scalar scalar(num v) { return strata_complex((double)v.re, (double)v.im); }

static int64_t some(test_rng *r)
{
    return test_chance(r, 0.03) ? 0 : test_chance(r, 0.1) ? test_int(r, 100, 170) : test_int(r, 1, 40);
}
static unsigned layout(test_rng *r)
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

static num product(const expect *x, const strata_tensor *A, const strata_tensor *B, int64_t g, int64_t i,
                   int64_t j, long double *abs)
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

static void compare(const expect *x, int64_t items)
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

static test_array matrices(test_rng *r, strata_type type, int64_t items, int64_t m, int64_t n)
{
    return items > 1 ? test_array_make(r, type, 3, (int64_t[]){items, m, n}, layout(r))
                     : test_array_make(r, type, 2, (int64_t[]){m, n}, layout(r));
}
static void copy_held(const strata_tensor *to, const strata_tensor *from, int64_t items)
{
    for (int64_t g = 0; g < items; g++)
        for (int64_t i = 0; i < to->dim[to->rank - 2]; i++)
            for (int64_t j = 0; j < to->dim[to->rank - 1]; j++)
                if (held(to, i, j)) put(to->type, place(to, g, i, j), get(to->type, place(from, g, i, j)));
}

static void products(void **state)
{
    (void)state;
    test_rng r = test_rng_make(301);
    for (int n = 0; n < test_rounds(280); n++) {
        const strata_type type = types[n % 4];
        int64_t M = some(&r), N = some(&r), K = some(&r);
        const int64_t items = test_chance(&r, 0.2) ? test_int(&r, 2, 5) : 1;
        const bool sa = test_chance(&r, 0.5), sb = !sa || test_chance(&r, 0.2), sc = test_chance(&r, 0.3);
        if (sa) K = M;
        if (sb) N = K;
        if (sc) N = M;
        const bool square_b = N == K && sb;
        const int64_t ga = items > 1 && test_chance(&r, 0.7) ? items : 1,
                      gb = items > 1 && test_chance(&r, 0.7) ? items : 1;
        test_array a = matrices(&r, type, ga, M, K), b = matrices(&r, type, gb, K, N),
                   c = matrices(&r, type, items, M, N), old = matrices(&r, type, items, M, N);
        const strata_tensor A = structured(&r, a.t, sa, false), B = structured(&r, b.t, square_b, false),
                            C = structured(&r, c.t, sc, true);
        const num alpha = factor(&r, type, false), beta = factor(&r, type, false);
        if (size(alpha) != 0) {
            fill(&r, &A, ga, -1, 1);
            fill(&r, &B, gb, -1, 1);
        }
        if (size(beta) != 0) {
            fill(&r, &old.t, items, -1, 1);
            copy_held(&C, &old.t, items);
        }
        test_problem("round %d: alpha %g,%g beta %g,%g A %s %x B %s %x C %s %x", n, (double)alpha.re,
                     (double)alpha.im, (double)beta.re, (double)beta.im, test_say(a.t), A.flags,
                     test_say(b.t), B.flags, test_say(c.t), C.flags);
        test_ok(h, strata_gemm(h, scalar(alpha), A, B, scalar(beta), C, NULL));
        compare(&(expect){.A = &A,
                          .B = &B,
                          .C = &C,
                          .old = &old.t,
                          .alpha = alpha,
                          .beta = beta,
                          .items_a = ga,
                          .items_b = gb},
                items);
        untouched(&C, items, "C");
        test_array_intact(&c);
        test_array *all[] = {&a, &b, &c, &old};
        for (int i = 0; i < 4; i++) test_array_free(all[i]);
    }
}

static void updates(void **state)
{
    (void)state;
    test_rng r = test_rng_make(302);
    for (int n = 0; n < test_rounds(200); n++) {
        const strata_type type = types[n % 4];
        const bool hermitian = test_chance(&r, 0.5), two = test_chance(&r, 0.5);
        const int64_t N = some(&r), K = some(&r), items = test_chance(&r, 0.2) ? 3 : 1;
        test_array a = matrices(&r, type, items, N, K), b = matrices(&r, type, items, N, K),
                   c = matrices(&r, type, items, N, N), old = matrices(&r, type, items, N, N);
        const strata_uplo uplo = test_chance(&r, 0.5) ? STRATA_LOWER : STRATA_UPPER;
        const strata_tensor C = hermitian              ? strata_hermitian(c.t, uplo)
                                : test_chance(&r, 0.5) ? strata_symmetric(c.t, uplo)
                                                       : strata_triangular(c.t, uplo, STRATA_NON_UNIT);
        strata_tensor A = test_chance(&r, 0.3) ? strata_conj(a.t) : a.t, B = two ? b.t : A;
        const num alpha = factor(&r, type, hermitian && !two), beta = factor(&r, type, hermitian);
        if (size(alpha) != 0) {
            fill(&r, &A, items, -1, 1);
            if (two) fill(&r, &B, items, -1, 1);
        }
        if (size(beta) != 0) {
            fill(&r, &old.t, items, -1, 1);
            copy_held(&C, &old.t, items);
        }
        test_problem("round %d: %s%s alpha %g,%g beta %g,%g A %s %x C %s %x", n, hermitian ? "her" : "syr",
                     two ? "2k" : "k", (double)alpha.re, (double)alpha.im, (double)beta.re, (double)beta.im,
                     test_say(a.t), A.flags, test_say(c.t), C.flags);
        const strata_scalar al = scalar(alpha), be = scalar(beta);
        test_ok(h, two ? (hermitian ? strata_her2k : strata_syr2k)(h, al, A, B, be, C)
                       : (hermitian ? strata_herk : strata_syrk)(h, al, A, be, C));
        strata_tensor X = strata_transpose(B), Y = strata_transpose(A);
        if (hermitian) {
            X = strata_conj(X);
            Y = strata_conj(Y);
        }
        expect x = {.A = &A,
                    .B = &X,
                    .C = &C,
                    .old = &old.t,
                    .alpha = alpha,
                    .beta = beta,
                    .items_a = items,
                    .items_b = items};
        if (two) {
            x.A2 = &B;
            x.B2 = &Y;
            x.alpha2 = hermitian ? (num){alpha.re, -alpha.im} : alpha;
        }
        compare(&x, items);
        untouched(&C, items, "C");
        test_array_intact(&c);
        test_array *all[] = {&a, &b, &c, &old};
        for (int i = 0; i < 4; i++) test_array_free(all[i]);
    }
}

/* |A X - alpha B| row by row, X being what the call left */
static void residual(const strata_tensor *A, const strata_tensor *X, const strata_tensor *B, num alpha,
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

static void triangles(void **state)
{
    (void)state;
    test_rng r = test_rng_make(303);
    for (int n = 0; n < test_rounds(280); n++) {
        const strata_type type = types[n % 4];
        const bool solve = test_chance(&r, 0.5), right = test_chance(&r, 0.4);
        const bool large = n % 70 == 69; /* beyond the blocks that are solved in panels */
        const int64_t N = large ? test_int(&r, 257, 400) : some(&r),
                      cols = large ? test_int(&r, 1, 20) : some(&r),
                      items = !large && test_chance(&r, 0.2) ? 3 : 1,
                      ga = items > 1 && test_chance(&r, 0.5) ? items : 1;
        test_array a = matrices(&r, type, ga, N, N),
                   b = right ? matrices(&r, type, items, cols, N) : matrices(&r, type, items, N, cols),
                   old = matrices(&r, type, items, N, cols);
        strata_tensor A = strata_triangular(a.t, test_chance(&r, 0.5) ? STRATA_LOWER : STRATA_UPPER,
                                            test_chance(&r, 0.3) ? STRATA_UNIT : STRATA_NON_UNIT);
        if (test_chance(&r, 0.3)) A = strata_transpose(A);
        if (test_chance(&r, 0.3)) A = strata_conj(A);
        const strata_tensor B = right ? strata_transpose(b.t) : b.t;
        const num alpha = factor(&r, type, false);
        if (size(alpha) != 0) {
            /* small beside the diagonal, or solutions grow beyond all numbers */
            fill(&r, &A, ga, -1.0 / (double)(N + 1), 1.0 / (double)(N + 1));
            for (int64_t g = 0; g < ga; g++)
                for (int64_t i = 0; i < N; i++)
                    if (held(&A, i, i))
                        put(type, place(&A, g, i, i),
                            (num){test_chance(&r, 0.5) ? 1.5 : -0.7, test_real(&r, -1, 1)});
            fill(&r, &old.t, items, -1, 1);
            copy_held(&B, &old.t, items);
        }
        test_problem("round %d: %s %s alpha %g,%g A %s %x B %s", n, solve ? "trsm" : "trmm",
                     right ? "right" : "left", (double)alpha.re, (double)alpha.im, test_say(A), A.flags,
                     test_say(B));
        test_ok(h, (solve ? strata_trsm : strata_trmm)(h, scalar(alpha), A, B));
        if (size(alpha) == 0) {
            for (int64_t g = 0; g < items; g++)
                for (int64_t i = 0; i < N; i++)
                    for (int64_t j = 0; j < cols; j++)
                        test_check(size(get(type, place(&B, g, i, j))) == 0, "not zero");
        } else if (solve)
            residual(&A, &B, &old.t, alpha, items, ga);
        else
            compare(&(expect){.A = &A, .B = &old.t, .C = &B, .alpha = alpha, .items_a = ga, .items_b = items},
                    items);
        if (size(alpha) != 0) untouched(&A, ga, "A");
        test_array_intact(&b);
        test_array_free(&a);
        test_array_free(&b);
        test_array_free(&old);
    }
}

enum { ITEMS = 5 };

/* every operand once as an array of addresses, in no order */
static void addresses(void **state)
{
    (void)state;
    test_rng r = test_rng_make(304);
    if (strcmp(test_device(), "cpu")) return; /* host addresses */
    for (int n = 0; n < test_rounds(60); n++) {
        const strata_type type = types[n % 4];
        const int64_t M = test_int(&r, 1, 30), K = test_int(&r, 1, 30), N = test_int(&r, 1, 30);
        test_array a = test_array_make(&r, type, 3, (int64_t[]){ITEMS, M, K}, TEST_PADDED),
                   b = test_array_make(&r, type, 3, (int64_t[]){ITEMS, K, N}, TEST_PADDED),
                   c = test_array_make(&r, type, 3, (int64_t[]){ITEMS, M, N}, TEST_PADDED),
                   t = test_array_make(&r, type, 3, (int64_t[]){ITEMS, M, M}, TEST_PADDED),
                   old = test_array_make(&r, type, 3, (int64_t[]){ITEMS, M, N}, TEST_PADDED);
        const void *pa[ITEMS], *pb[ITEMS], *pc[ITEMS], *pt[ITEMS];
        for (int g = 0; g < ITEMS; g++) {
            const int at = (g * 2 + 1) % ITEMS;
            pa[g] = place(&a.t, at, 0, 0);
            pb[g] = place(&b.t, at, 0, 0);
            pc[g] = place(&c.t, at, 0, 0);
            pt[g] = place(&t.t, at, 0, 0);
        }
#define ONE(x, rows, cols) \
    strata_array(NULL, type, 2, (int64_t[]){rows, cols}, (int64_t[]){(x).t.stride[1], (x).t.stride[2]})
        const strata_tensor A = strata_pointers(ONE(a, M, K), pa, ITEMS),
                            B = strata_pointers(ONE(b, K, N), pb, ITEMS),
                            C = strata_pointers(ONE(c, M, N), pc, ITEMS),
                            L = strata_triangular(strata_pointers(ONE(t, M, M), pt, ITEMS), STRATA_LOWER,
                                                  STRATA_NON_UNIT);
        fill(&r, &A, ITEMS, -1, 1);
        fill(&r, &B, ITEMS, -1, 1);
        fill(&r, &L, ITEMS, 1, 2);
        const num one = {1, 0};
        test_problem("addresses, round %d: %s %lldx%lldx%lld", n, strata_type_name(type), (long long)M,
                     (long long)N, (long long)K);
        test_ok(h, strata_gemm(h, STRATA_ONE, A, B, STRATA_ZERO, C, NULL));
        compare(&(expect){.A = &A, .B = &B, .C = &C, .alpha = one, .items_a = ITEMS, .items_b = ITEMS},
                ITEMS);
        test_ok(h, strata_gemm(h, STRATA_ONE, a.t, B, STRATA_ZERO, c.t, NULL));
        compare(&(expect){.A = &a.t, .B = &B, .C = &c.t, .alpha = one, .items_a = ITEMS, .items_b = ITEMS},
                ITEMS);
        copy_held(&old.t, &C, ITEMS);
        test_ok(h, strata_trmm(h, STRATA_ONE, L, C));
        compare(&(expect){.A = &L, .B = &old.t, .C = &C, .alpha = one, .items_a = ITEMS, .items_b = ITEMS},
                ITEMS);
        copy_held(&old.t, &C, ITEMS);
        test_ok(h, strata_trsm(h, STRATA_ONE, L, C));
        residual(&L, &C, &old.t, one, ITEMS, ITEMS);
        untouched(&L, ITEMS, "A");
        test_array_intact(&c);
        test_array *all[] = {&a, &b, &c, &t, &old};
        for (int i = 0; i < 5; i++) test_array_free(all[i]);
    }
}

/* The same bits on one thread and on two, and from a plan as from a call. */
static void same_bits(void **state)
{
    (void)state;
    enum { N = 300 };
    strata_handle *one, *two;
    test_rng r = test_rng_make(305);
    if (strcmp(test_device(), "cpu")) return;
    test_ok(NULL, strata_create(&one, "cpu"));
    test_ok(NULL, strata_create(&two, "cpu"));
    test_ok(one, strata_set_threads(one, 1));
    test_ok(two, strata_set_threads(two, 2));
    for (int n = 0; n < test_rounds(24); n++) {
        const strata_type type = types[n % 4];
        const size_t es = strata_type_bits(type) / 8;
        const int64_t m = n % 3 ? test_int(&r, 20, 90) : test_int(&r, 200, N),
                      k = n % 3 ? test_int(&r, 20, 90) : test_int(&r, 200, N);
        test_array a = test_array_make(&r, type, 2, (int64_t[]){m, m}, TEST_PACKED),
                   b = test_array_make(&r, type, 2, (int64_t[]){m, k}, TEST_PACKED);
        for (int64_t i = 0; i < m * m; i++)
            put(type, (char *)a.t.data + (size_t)i * es,
                (num){i % (m + 1) ? test_real(&r, -1, 1) / (double)m : 1, 0});
        fill(&r, &b.t, 1, -1, 1);
        const strata_tensor L = strata_triangular(a.t, STRATA_LOWER, STRATA_NON_UNIT),
                            S = strata_symmetric(a.t, STRATA_UPPER);
        char *x[3];
        for (int i = 0; i < 3; i++) x[i] = calloc((size_t)(m * (m > k ? m : k)), es);
        for (int op = 0; op < 4; op++) {
            test_problem("same bits, round %d: operator %d, %s %lldx%lld", n, op, strata_type_name(type),
                         (long long)m, (long long)k);
            for (int i = 0; i < 2; i++) {
                strata_handle *w = i ? two : one;
                const strata_tensor X = strata_matrix(x[i], type, m, k, STRATA_COL_MAJOR, 0),
                                    C = strata_triangular(
                                        strata_matrix(x[i], type, m, m, STRATA_ROW_MAJOR, 0), STRATA_UPPER,
                                        STRATA_NON_UNIT);
                if (op >= 2) copy_held(&X, &b.t, 1);
                test_ok(w, op == 0   ? strata_gemm(w, STRATA_ONE, S, b.t, STRATA_ZERO, X, NULL)
                           : op == 1 ? strata_syrk(w, STRATA_ONE, b.t, STRATA_ZERO, C)
                           : op == 2 ? strata_trmm(w, STRATA_ONE, L, X)
                                     : strata_trsm(w, STRATA_ONE, L, X));
            }
            test_check(!memcmp(x[0], x[1], (size_t)(m * (op == 1 ? m : k)) * es),
                       "two threads give other bits than one");
            if (op) continue;
            strata_plan *p;
            const strata_tensor X = strata_matrix(x[2], type, m, k, STRATA_COL_MAJOR, 0);
            test_ok(one, strata_gemm_plan(one, STRATA_ONE, S, b.t, STRATA_ZERO, X, NULL, NULL, &p));
            test_ok(one, strata_plan_run(one, p, (void *[]){a.t.data, b.t.data, x[2]}, NULL));
            test_check(!memcmp(x[0], x[2], (size_t)(m * k) * es), "a plan gives other bits than the call: %s",
                       strata_plan_kernel(p));
            strata_plan_destroy(p);
        }
        for (int i = 0; i < 3; i++) free(x[i]);
        test_array_free(&a);
        test_array_free(&b);
    }
    strata_destroy(one);
    strata_destroy(two);
}

/* Diagonals whose inverse is no normal number: divisions give what there is to give. A zero gives Inf, as it should. */
static void diagonals(void **state)
{
    (void)state;
    enum { N = 9, COLS = 3 };
    static double a[N * N], b[N * COLS];
    static float f[N * N], g[N * COLS];
    const double tiny = 3e-310, huge = 1e308 * 1.5;
    if (strcmp(test_device(), "cpu")) return;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < COLS; j++) {
            a[i * (N + 1)] = i % 2 ? tiny : huge;
            b[i * COLS + j] = a[i * (N + 1)] * (j - 1);
            f[i * (N + 1)] = i == 4 ? 0 : 1e-40f;
            g[i * COLS + j] = i == 4 ? 1 : 1e-40f * (float)(j + 1);
        }
    const strata_tensor A = strata_triangular(strata_matrix(a, STRATA_F64, N, N, STRATA_ROW_MAJOR, 0),
                                              STRATA_LOWER, STRATA_NON_UNIT);
    const strata_tensor F = strata_triangular(strata_matrix(f, STRATA_F32, N, N, STRATA_ROW_MAJOR, 0),
                                              STRATA_UPPER, STRATA_NON_UNIT);
    test_problem("tiny and huge diagonals");
    test_ok(h, strata_trsm(h, STRATA_ONE, A, strata_matrix(b, STRATA_F64, N, COLS, STRATA_ROW_MAJOR, 0)));
    for (int i = 0; i < N * COLS; i++) test_close(b[i], i % COLS - 1, 0.0, "x[%d]", i);
    test_ok(h, strata_trsm(h, STRATA_ONE, strata_transpose(F),
                           strata_matrix(g, STRATA_F32, N, COLS, STRATA_ROW_MAJOR, 0)));
    for (int i = 0; i < 4 * COLS; i++) test_close((double)g[i], i % COLS + 1, 0.0, "x[%d]", i);
    for (int j = 0; j < COLS; j++) test_check(isinf(g[4 * COLS + j]), "1 / 0 is %g", (double)g[4 * COLS + j]);
}

/* No workspace, and one of the caller's that lies in an operand. */
static void workspaces(void **state)
{
    (void)state;
    enum { N = 40, COLS = 30 };
    static double a[N * N], b[N * COLS], was[N * COLS];
    if (strcmp(test_device(), "cpu")) return;
    test_rng r = test_rng_make(306);
    strata_handle *w;
    test_ok(NULL, strata_create(&w, "cpu"));
    const strata_tensor A = strata_triangular(strata_matrix(a, STRATA_F64, N, N, STRATA_COL_MAJOR, 0),
                                              STRATA_UPPER, STRATA_NON_UNIT),
                        B = strata_matrix(b, STRATA_F64, N, COLS, STRATA_COL_MAJOR, 0),
                        old = strata_matrix(was, STRATA_F64, N, COLS, STRATA_COL_MAJOR, 0);
    for (int i = 0; i < N * N; i++) a[i] = i % (N + 1) ? test_real(&r, -1, 1) / N : 2;
    for (int how = 0; how < 3; how++) {
        fill(&r, &old, 1, -1, 1);
        copy_held(&B, &old, 1);
        if (how == 0) test_ok(w, strata_set_workspace_limit(w, 0));
        if (how == 1) test_ok(w, strata_set_workspace_limit(w, SIZE_MAX));
        if (how == 2) test_ok(w, strata_set_workspace(w, a, sizeof a));
        test_problem("workspace %d", how);
        test_ok(w, strata_trsm(w, STRATA_ONE, A, B));
        residual(&A, &B, &old, (num){1, 0}, 1, 1);
    }
    strata_destroy(w);
}

static void errors(void **state)
{
    (void)state;
    static double a[64], b[64], c[64];
    for (int i = 0; i < 64; i++) c[i] = 7;
    const strata_tensor A = strata_matrix(a, STRATA_F64, 4, 3, STRATA_ROW_MAJOR, 0),
                        S = strata_matrix(c, STRATA_F64, 4, 4, STRATA_ROW_MAJOR, 0),
                        C = strata_symmetric(S, STRATA_LOWER),
                        B = strata_matrix(b, STRATA_F64, 4, 2, STRATA_ROW_MAJOR, 0);
    test_error(h, strata_syrk(h, STRATA_ONE, A, STRATA_ZERO, S), STRATA_ERROR_ARGUMENT,
               "strata_syrk: C is 4x4 and does not say which triangle");
    test_error(h, strata_syrk(h, STRATA_ONE, strata_transpose(A), STRATA_ZERO, C), STRATA_ERROR_SHAPE,
               "A's rows (3) and C's (4)", "strata_transpose(A)");
    test_error(h, strata_syr2k(h, STRATA_ONE, A, B, STRATA_ZERO, C), STRATA_ERROR_SHAPE, "strata_syr2k",
               "A has 3 columns and B has 2");
    test_error(h,
               strata_syrk(h, STRATA_ONE, strata_matrix(c + 8, STRATA_F64, 4, 3, STRATA_ROW_MAJOR, 0),
                           STRATA_ZERO, C),
               STRATA_ERROR_ALIAS, "C overlaps A");
    test_error(
        h,
        strata_syrk(h, STRATA_ONE, strata_matrix(a, STRATA_F32, 4, 3, STRATA_ROW_MAJOR, 0), STRATA_ZERO, C),
        STRATA_ERROR_TYPE, "A is f32 and C is f64");
    test_error(h, strata_syrk(h, strata_complex(1, 1), A, STRATA_ZERO, C), STRATA_ERROR_TYPE, "alpha",
               "imaginary");
    const strata_tensor Z = strata_matrix(a, STRATA_C128, 4, 3, STRATA_ROW_MAJOR, 0),
                        H = strata_hermitian(strata_matrix(c, STRATA_C128, 4, 4, STRATA_ROW_MAJOR, 0),
                                             STRATA_UPPER);
    test_error(h, strata_herk(h, strata_complex(1, 1), Z, STRATA_ZERO, H), STRATA_ERROR_ARGUMENT,
               "strata_herk", "alpha", "real");
    test_error(h, strata_syrk(h, STRATA_ONE, Z, STRATA_ZERO, H), STRATA_ERROR_ARGUMENT,
               "C is a hermitian view", "strata_herk");
    const strata_tensor L = strata_triangular(strata_matrix(a, STRATA_F64, 4, 4, STRATA_ROW_MAJOR, 0),
                                              STRATA_LOWER, STRATA_NON_UNIT);
    test_error(h, strata_trsm(h, STRATA_ONE, strata_matrix(a, STRATA_F64, 4, 4, STRATA_ROW_MAJOR, 0), B),
               STRATA_ERROR_ARGUMENT, "strata_trsm: A is 4x4 and does not say which triangle");
    test_error(h, strata_trsm(h, STRATA_ONE, L, strata_transpose(B)), STRATA_ERROR_SHAPE,
               "A is 4x4 and B is 2x4", "From the right");
    test_error(h, strata_trmm(h, STRATA_ONE, L, strata_matrix(a + 12, STRATA_F64, 4, 2, STRATA_ROW_MAJOR, 0)),
               STRATA_ERROR_ALIAS, "strata_trmm: B overlaps A");
    test_error(h, strata_trmm(h, STRATA_ONE, strata_symmetric(S, STRATA_LOWER), B), STRATA_ERROR_UNSUPPORTED,
               "A is a symmetric matrix");
    test_error(
        h,
        strata_trmm(h, STRATA_ONE, L, strata_conj(strata_matrix(b, STRATA_C128, 4, 1, STRATA_ROW_MAJOR, 0))),
        STRATA_ERROR_UNSUPPORTED, "B is conjugated");
    test_error(NULL, strata_trsm(NULL, STRATA_ONE, L, B), STRATA_ERROR_ARGUMENT, "strata_trsm", "handle");
    for (int i = 0; i < 64; i++) test_check(c[i] == 7, "the output was touched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),   cmocka_unit_test(updates),   cmocka_unit_test(triangles),
        cmocka_unit_test(addresses),  cmocka_unit_test(same_bits), cmocka_unit_test(diagonals),
        cmocka_unit_test(workspaces), cmocka_unit_test(errors),
    };
    const int bad = test_lower_levels();
    return cmocka_run_group_tests(tests, setup, teardown) + bad;
}
