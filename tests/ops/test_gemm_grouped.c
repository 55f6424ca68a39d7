/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm_grouped.c - groups of products: small whole numbers, whose sums are exact in every kernel, so that a group must give the bits of one call after another:
 * all types and layouts, members of many sizes and none, more than fit a launch, members that depend on each other. Operands lie in the device's memory. */
#include "device_matrix.h"
#include <stdlib.h>
#include <strata/blas.h>
#include <strata/runtime.h>

static double small_whole(test_rng *r, strata_type type)
{
    (void)type;
    return (double)test_int(r, -2, 2);
}
static matrix make(test_rng *r, strata_type type, int64_t rows, int64_t cols, int64_t pitch, bool turned)
{
    return device_matrix(r, type, rows, cols, turned, pitch, 0, small_whole);
}

typedef struct kind {
    strata_type a, b, c;
    strata_math math;
} kind;
static const kind kinds[] = {
    {STRATA_BF16, STRATA_BF16, STRATA_BF16, 0},
    {STRATA_F16, STRATA_F16, STRATA_F32, 0},
    {STRATA_F32, STRATA_F32, STRATA_F32, 0},
    {STRATA_F64, STRATA_F64, STRATA_F64, 0},
    {STRATA_F32, STRATA_F32, STRATA_F32, STRATA_MATH_TF32},
    {STRATA_F8E4M3, STRATA_F8E4M3, STRATA_BF16, 0},
    {STRATA_F8E5M2, STRATA_F8E4M3, STRATA_F16, STRATA_MATH_FAST_ACCUM},
    {STRATA_I8, STRATA_I8, STRATA_I32, 0},
};

enum { MOST = 190 };

/* One group of `n`; kind -1: each member of another */
static void one(test_rng *r, int which, int n, int64_t most)
{
    static strata_gemm_group g[MOST];
    static matrix a[MOST], b[MOST], c[MOST], want[MOST];
    memset(g, 0, sizeof g);
    const strata_gemm_options o = {.math = which < 0 ? 0 : kinds[which].math};
    test_problem("kind %d, %d members to %lld", which, n, (long long)most);
    for (int i = 0; i < n; i++) {
        const kind *x = &kinds[which >= 0 ? which : test_int(r, 0, 3)];
        const bool round = test_int(r, 0, 2) > 0; /* sizes that TMA reads, or any */
        const int64_t unit = round ? 16 : 1, m = test_int(r, 0, most),
                      nn = test_int(r, 0, most / unit) * unit, k = test_int(r, 0, 2 * most / unit) * unit,
                      pitch = round ? 0 : test_int(r, 0, 3);
        const bool ta = test_int(r, 0, 3) == 0, tb = test_int(r, 0, 1), tc = test_int(r, 0, 5) == 0;
        a[i] = make(r, x->a, m, k, pitch, ta);
        b[i] = make(r, x->b, k, nn, pitch, tb);
        c[i] = make(r, x->c, m, nn, pitch, tc);
        want[i] = make(r, x->c, m, nn, pitch, tc);
        test_ok(h, strata_copy(h, c[i].dev, want[i].dev));
        g[i] = (strata_gemm_group){.alpha = strata_real(i % 7 == 6 ? 0 : 1 + i % 2),
                                   .beta = strata_real(i % 3 == 0),
                                   .A = a[i].dev,
                                   .B = b[i].dev,
                                   .C = c[i].dev};
        test_ok(h, strata_gemm(h, g[i].alpha, a[i].dev, b[i].dev, g[i].beta, want[i].dev, &o));
    }
    test_ok(h, strata_gemm_grouped(h, g, n, &o));
    for (int i = 0; i < n; i++) {
        test_ok(h, strata_copy(h, c[i].dev, c[i].host));
        test_ok(h, strata_copy(h, want[i].dev, want[i].host));
        int64_t at[STRATA_MAX_RANK] = {0};
        if (strata_count(c[i].host) && !test_values_ignored()) do
                test_check(test_get(&c[i].host, at) == test_get(&want[i].host, at),
                           "member %d, element %lld,%lld: %g, alone %g (A %s, B %s, C %s)", i,
                           (long long)at[0], (long long)at[1], test_get(&c[i].host, at),
                           test_get(&want[i].host, at), test_say(a[i].dev), test_say(b[i].dev),
                           test_say(c[i].dev));
            while (test_next(&c[i].host, at));
        drop(&a[i]), drop(&b[i]), drop(&c[i]), drop(&want[i]);
    }
}

static void all_kinds(void **state)
{
    (void)state;
    test_rng r = test_rng_make(4711);
    for (int which = -1; which < (int)(sizeof kinds / sizeof *kinds); which++) one(&r, which, 24, 70);
    one(&r, 0, 5, 300);
    one(&r, 0, MOST, 40); /* more than one launch holds */
    one(&r, 2, MOST, 20);
}

/* C of one is A of a later one: as if one after another. And blocks of one matrix, whose spans meet, but not their elements. */
static void dependent(void **state)
{
    (void)state;
    test_rng r = test_rng_make(12);
    enum { N = 32 };
    matrix x = make(&r, STRATA_F32, N, N, 0, false), y = make(&r, STRATA_F32, N, N, 0, false),
           z = make(&r, STRATA_F32, N, N, 0, false), w = make(&r, STRATA_F32, N, N, 0, false),
           v = make(&r, STRATA_F32, N, N, 0, false);
    const strata_scalar one_ = STRATA_ONE, zero = STRATA_ZERO;
    strata_gemm_group g[2] = {{.alpha = one_, .beta = zero, .A = x.dev, .B = y.dev, .C = z.dev},
                              {.alpha = one_, .beta = zero, .A = z.dev, .B = y.dev, .C = w.dev}};
    test_ok(h, strata_gemm_grouped(h, g, 2, NULL));
    test_ok(h, strata_gemm(h, one_, z.dev, y.dev, zero, v.dev, NULL));
    test_ok(h, strata_copy(h, w.dev, w.host));
    test_ok(h, strata_copy(h, v.dev, v.host));
    if (!test_values_ignored()) test_check(!memcmp(w.host.data, v.host.data, N * N * 4), "a chain of two");
    for (int i = 0; i < 2; i++) {
        g[i].A = x.dev;
        g[i].B = strata_slice(y.dev, 1, i * N / 2, N / 2, 1);
        g[i].C = strata_slice(z.dev, 1, i * N / 2, N / 2, 1);
    }
    test_ok(h, strata_gemm_grouped(h, g, 2, NULL));
    test_ok(h, strata_gemm(h, one_, x.dev, y.dev, zero, v.dev, NULL));
    test_ok(h, strata_copy(h, z.dev, w.host));
    test_ok(h, strata_copy(h, v.dev, v.host));
    if (!test_values_ignored()) test_check(!memcmp(w.host.data, v.host.data, N * N * 4), "two halves");
    drop(&x), drop(&y), drop(&z), drop(&w), drop(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_kinds), cmocka_unit_test(dependent)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
