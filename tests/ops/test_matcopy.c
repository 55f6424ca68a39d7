/* SPDX-License-Identifier: Apache-2.0 */
/* test_matcopy.c - geam, imatcopy, dgmm and trcopy against double loops: any order in memory, conjugation, C as an operand, batches, packed triangles;
 * what is not read is NaN, what is not written stays. */
#include <complex.h>
#include <math.h>
#include <strata.h>
#include "handle.h"
#include "support.h"

typedef double _Complex number;
static const strata_type types[] = {STRATA_F32, STRATA_F64, STRATA_C64, STRATA_C128};

static bool is_complex(strata_type t) { return t == STRATA_C64 || t == STRATA_C128; }
static bool is_f32(strata_type t) { return t == STRATA_F32 || t == STRATA_C64; }
static int64_t size_of(strata_type t) { return (int64_t)strata_type_bits(t) / 8; }

static number get(const void *p, strata_type type)
{
    if (is_f32(type)) {
        float f[2] = {0, 0};
        memcpy(f, p, (size_t)size_of(type));
        return __builtin_complex((double)f[0], (double)f[1]);
    }
    double f[2] = {0, 0};
    memcpy(f, p, (size_t)size_of(type));
    return __builtin_complex(f[0], f[1]);
}
static void put(void *p, strata_type type, number x)
{
    if (is_f32(type)) {
        float f[2] = {(float)creal(x), (float)cimag(x)};
        memcpy(p, f, (size_t)size_of(type));
    } else {
        double f[2] = {creal(x), cimag(x)};
        memcpy(p, f, (size_t)size_of(type));
    }
}
/* small whole numbers: everything below is exact in every type */
static number whole(test_rng *r, strata_type t)
{
    return __builtin_complex((double)test_int(r, -9, 9), is_complex(t) ? (double)test_int(r, -9, 9) : 0.0);
}
static void fill(test_rng *r, const strata_tensor *t)
{
    int64_t i[STRATA_MAX_RANK] = {0};
    if (strata_count(*t)) do {
            put(test_at(t, i), (strata_type)t->type, whole(r, (strata_type)t->type));
        } while (test_next(t, i));
}
static number value(const strata_tensor *t, const int64_t *i)
{
    const number x = get(test_at(t, i), (strata_type)t->type);
    return t->flags & STRATA_TENSOR_CONJ ? conj(x) : x;
}
static void same(number got, number want, const int64_t *i)
{
    test_check(creal(got) == creal(want) && cimag(got) == cimag(want), "[%d,%d,%d]: %g%+gi, expected %g%+gi",
               (int)i[0], (int)i[1], (int)i[2], creal(got), cimag(got), creal(want), cimag(want));
}
static strata_scalar factor(test_rng *r, strata_type t, number *v)
{
    *v = test_chance(r, 0.3) ? 0 : test_chance(r, 0.3) ? 1 : whole(r, t);
    return strata_complex(creal(*v), cimag(*v));
}
/* the elements as they are now, in row-major order */
static number *values(const strata_tensor *t)
{
    number *v = malloc(sizeof *v * (size_t)(strata_count(*t) + 1));
    int64_t i[STRATA_MAX_RANK] = {0}, n = 0;
    if (strata_count(*t)) do {
            v[n++] = value(t, i);
        } while (test_next(t, i));
    return v;
}

static void test_sums(void **state)
{
    (void)state;
    test_rng r = test_rng_make(31);
    for (int round = 0; round < test_rounds(600); round++) {
        const strata_type type = types[round % 4];
        const bool large = round % 50 == 0;
        const int rank = large ? 2 : (int)test_int(&r, 2, 4);
        int64_t dim[4];
        for (int d = 0; d < 4; d++)
            dim[d] =
                large ? test_int(&r, 60, 300) : test_int(&r, d < rank - 2 ? 1 : 0, d < rank - 2 ? 3 : 20);
        test_array a = test_array_make(&r, type, rank, dim, TEST_ANY),
                   b = test_array_make(&r, type, rank, dim, TEST_ANY),
                   c = test_array_make(&r, type, rank, dim, TEST_ANY);
        number al, be;
        strata_scalar alpha = factor(&r, type, &al), beta = factor(&r, type, &be);
        fill(&r, &a.t), fill(&r, &b.t), fill(&r, &c.t);
        strata_tensor A = test_chance(&r, 0.4) ? strata_conj(a.t) : a.t,
                      B = test_chance(&r, 0.4) ? strata_conj(b.t) : b.t;
        const int alias = (int)test_int(&r, 0, 5);
        if (alias == 0) A = test_chance(&r, 0.5) ? strata_conj(c.t) : c.t;
        if (alias == 1) B = c.t;
        if (al == 0 && alias != 0) test_poison(a.base, a.bytes);
        if (be == 0 && alias != 1) test_poison(b.base, b.bytes);
        test_problem("geam round %d: A %s, B %s, C %s, alpha %g%+gi, beta %g%+gi, alias %d", round,
                     test_say(A), test_say(B), test_say(c.t), alpha.re, alpha.im, beta.re, beta.im, alias);
        number *va = values(&A), *vb = values(&B);
        test_ok(h, strata_geam(h, alpha, A, beta, B, c.t));
        int64_t i[STRATA_MAX_RANK] = {0}, n = 0;
        if (strata_count(c.t)) do {
                const number x = al == 0 ? 0 : al * va[n], y = be == 0 ? 0 : be * vb[n];
                same(get(test_at(&c.t, i), type), x + y, i);
                n++;
            } while (test_next(&c.t, i));
        test_array_intact(&c);
        test_array_free(&a), test_array_free(&b), test_array_free(&c);
        free(va), free(vb);
    }
}

static void test_rows(void **state)
{
    (void)state;
    test_rng r = test_rng_make(32);
    for (int round = 0; round < test_rounds(300); round++) {
        const strata_type type = types[round % 4];
        const int64_t dim[2] = {test_int(&r, 0, 60), test_int(&r, 0, 60)};
        test_array a = test_array_make(&r, type, 2, dim, TEST_ANY),
                   c = test_array_make(&r, type, 2, dim, TEST_ANY),
                   x = test_array_make(&r, type, 1, dim, TEST_ANY);
        fill(&r, &a.t), fill(&r, &x.t);
        strata_tensor A = test_chance(&r, 0.4) ? strata_conj(a.t) : a.t,
                      X = test_chance(&r, 0.4) ? strata_conj(x.t) : x.t;
        if (test_chance(&r, 0.3)) fill(&r, &c.t), A = c.t;
        test_problem("dgmm round %d: x %s, A %s, C %s", round, test_say(X), test_say(A), test_say(c.t));
        number *va = values(&A);
        test_ok(h, strata_dgmm(h, X, A, c.t));
        for (int64_t i = 0; i < dim[0]; i++)
            for (int64_t j = 0; j < dim[1]; j++)
                same(get(test_at(&c.t, (int64_t[]){i, j}), type), value(&X, &i) * va[i * dim[1] + j],
                     (int64_t[]){i, j, 0});
        test_array_intact(&c);
        test_array_free(&a), test_array_free(&c), test_array_free(&x);
        free(va);
    }
}

static void test_in_place(void **state)
{
    (void)state;
    test_rng r = test_rng_make(33);
    for (int round = 0; round < test_rounds(200); round++) {
        const strata_type type = types[round % 4];
        const int64_t m = test_int(&r, 1, 40), n = test_int(&r, 1, 40), lda = m + test_int(&r, 0, 3),
                      ldb = (round & 4 ? n : m) + test_int(&r, 0, 3);
        const size_t bytes =
            (size_t)((lda * n > ldb * m ? lda * n : ldb * (round & 4 ? m : n)) * size_of(type)) +
            (size_t)(ldb * n * size_of(type));
        unsigned char *p = test_guard(bytes, false);
        number al;
        strata_scalar alpha = factor(&r, type, &al);
        strata_tensor from = strata_matrix(p, type, m, n, STRATA_COL_MAJOR, lda),
                      to = round & 4 ? strata_transpose(strata_matrix(p, type, n, m, STRATA_COL_MAJOR, ldb))
                                     : strata_matrix(p, type, m, n, STRATA_COL_MAJOR, ldb);
        fill(&r, &from);
        if (round & 8) from = strata_conj(from);
        number *v = values(&from);
        test_problem("imatcopy round %d: %s to %s", round, test_say(from), test_say(to));
        test_ok(h, strata_imatcopy(h, alpha, from, to));
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                same(get(test_at(&to, (int64_t[]){i, j}), type), al == 0 ? 0 : al * v[i * n + j],
                     (int64_t[]){i, j, 0});
        test_check(test_guard_intact(p), "beside");
        test_guard_free(p);
        free(v);
    }
}

/* The offset of element (i, j) of a packed triangle, by the public definition. */
static int64_t place(int64_t i, int64_t j, int64_t n, bool lower, bool by_rows)
{
    if (by_rows) return place(j, i, n, !lower, false);
    return lower ? i + j * (2 * n - j - 1) / 2 : i + j * (j + 1) / 2;
}

static void test_triangles(void **state)
{
    (void)state;
    test_rng r = test_rng_make(34);
    for (int round = 0; round < test_rounds(300); round++) {
        const strata_type type = types[round % 4];
        const int64_t n = test_int(&r, 0, 40), s = size_of(type), ld = n + test_int(&r, 0, 2) + 1;
        const bool lower = test_chance(&r, 0.5), by_rows = test_chance(&r, 0.5),
                   full_rows = test_chance(&r, 0.5), from_packed = test_chance(&r, 0.5),
                   conjugate = test_chance(&r, 0.3);
        unsigned char *pp = test_guard((size_t)(n * (n + 1) / 2 * s), test_chance(&r, 0.5)),
                      *pf = test_guard((size_t)(ld * n * s), false);
        const strata_uplo uplo = lower ? STRATA_LOWER : STRATA_UPPER;
        strata_tensor packed =
                          strata_packed(pp, type, n, uplo, by_rows ? STRATA_ROW_MAJOR : STRATA_COL_MAJOR),
                      plain =
                          strata_matrix(pf, type, n, n, full_rows ? STRATA_ROW_MAJOR : STRATA_COL_MAJOR, ld),
                      whole_ = strata_triangular(plain, uplo, STRATA_NON_UNIT);
        number *v = malloc(sizeof *v * (size_t)(n * n + 1));
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                if (lower ? i < j : i > j) continue;
                v[i * n + j] = whole(&r, type);
                put(from_packed ? (char *)pp + place(i, j, n, lower, by_rows) * s
                                : test_at(&plain, (int64_t[]){i, j}),
                    type, v[i * n + j]);
            }
        strata_tensor from = from_packed ? packed : whole_, to = from_packed ? whole_ : packed;
        if (conjugate) from = strata_conj(from);
        test_problem("trcopy round %d: %s to %s", round, test_say(from), test_say(to));
        test_ok(h, strata_trcopy(h, from, to));
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                char *full = test_at(&plain, (int64_t[]){i, j});
                if (lower ? i < j : i > j) {
                    for (int64_t k = 0; k < s; k++)
                        test_check((unsigned char)full[k] == 0xff, "the other triangle was written");
                    continue;
                }
                const number x = v[i * n + j];
                same(get(from_packed ? full : (char *)pp + place(i, j, n, lower, by_rows) * s, type),
                     conjugate && is_complex(type) ? conj(x) : x, (int64_t[]){i, j, 0});
            }
        test_check(test_guard_intact(pp) && test_guard_intact(pf), "beside");
        test_guard_free(pp), test_guard_free(pf);
        free(v);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    double a[12] = {0}, x[4] = {0};
    strata_tensor A = strata_matrix(a, STRATA_F64, 3, 4, STRATA_COL_MAJOR, 0),
                  T = strata_matrix(a, STRATA_F64, 3, 3, STRATA_COL_MAJOR, 0);
    double other[12] = {0};
    strata_tensor C = strata_matrix(other, STRATA_F64, 4, 3, STRATA_COL_MAJOR, 0);
    test_error(h, strata_geam(h, STRATA_ONE, A, STRATA_ZERO, A, C), STRATA_ERROR_SHAPE, "3x4", "4x3",
               "strata_transpose(A)");
    test_error(h,
               strata_geam(h, STRATA_ONE,
                           strata_transpose(strata_matrix(a, STRATA_F64, 3, 4, STRATA_ROW_MAJOR, 0)),
                           STRATA_ZERO, A, strata_matrix(a, STRATA_F64, 4, 3, STRATA_ROW_MAJOR, 0)),
               STRATA_ERROR_ALIAS, "overlaps A");
    test_error(h, strata_dgmm(h, strata_vector(x, STRATA_F64, 2, 1), A, A), STRATA_ERROR_SHAPE, "x", "2",
               "3");
    test_error(h, strata_trcopy(h, T, T), STRATA_ERROR_ARGUMENT, "same side");
    test_error(h, strata_geam(h, STRATA_ONE, strata_symmetric(T, STRATA_LOWER), STRATA_ZERO, A, T),
               STRATA_ERROR_UNSUPPORTED, "symmetric");
    test_error(h,
               strata_geam(h, STRATA_ONE, strata_matrix(a, STRATA_I32, 4, 3, STRATA_COL_MAJOR, 0),
                           STRATA_ZERO, A, C),
               STRATA_ERROR_TYPE, "i32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),      cmocka_unit_test(test_rows),     cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_triangles), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
