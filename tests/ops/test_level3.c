/* SPDX-License-Identifier: Apache-2.0 */
/* test_level3.c - matrices of every structure in products, rank updates of triangles, and triangular products and solutions in place, in
 * four types, any strides, batches and arrays of addresses, against sums in long double.
 *
 * What a structure says is not stored holds NaN and must neither be read nor written. Bounds: gamma of the sum's length for real numbers, 4
 * times that for complex ones (Higham, Accuracy and Stability, section 3.6); solutions by their residual, row by row. */
#include "level3.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(updates),
                                       cmocka_unit_test(triangles), cmocka_unit_test(addresses)};
    const int bad = test_lower_levels();
    return cmocka_run_group_tests(tests, setup, teardown) + bad;
}
