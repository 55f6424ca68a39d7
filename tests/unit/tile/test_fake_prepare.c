/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared operands of Hopper's products, through the fake driver: preparing makes the copy that a run would make, runs with it launch the product
 * alone; what cannot be is refused. Tiles and orders of the kernels are listed. */
#include "fake_test.h"
#include "tile/tile.h"

static strata_handle *h;
static int launches, copies;
static void seen(void *user, const fake_launch *l)
{
    (void)user;
    launches++;
    copies += strstr(l->function, "pack") != NULL;
}

static st_contract product(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb)
{
    st_contract c;
    memset(&c, 0, sizeof c);
    c.ta = c.tb = c.tc = STRATA_F16;
    c.m = (st_axes){1, {{m, lda, 0, n}}};
    c.n = (st_axes){1, {{n, 0, ldb, 1}}};
    c.k = (st_axes){1, {{k, 1, 1, 0}}};
    return c;
}

static void the_copy_alone(void **state)
{
    (void)state;
    enum { M = 1024, N = 1024, K = 1000, LDB = 1003 }; /* rows of B are at no multiple of 16 bytes */
    strata_plan *p;
    const st_contract c = product(M, N, K, K, LDB);
    test_ok(h, st_tile_plan(h, "strata_gemm_plan", &c, NULL, 1, 0, NULL, &p));
    assert_non_null(strstr(strata_plan_kernel(p), "sm90a"));
    void *a, *b, *out;
    test_ok(h, strata_alloc(h, M * K * 2, &a));
    test_ok(h, strata_alloc(h, N * LDB * 2, &b));
    test_ok(h, strata_alloc(h, M * N * 2 + 32, &out));
    fake_on_launch(seen, NULL);
    launches = copies = 0;
    test_ok(h, strata_plan_run(h, p, (void *[]){a, b, out}, NULL));
    assert_true(launches == 2 && copies == 1);
    const strata_tensor W = strata_matrix(b, STRATA_F16, K, N, STRATA_COL_MAJOR, LDB);
    strata_tensor P, none;
    launches = copies = 0;
    test_ok(h, strata_prepare(h, p, 1, W, &P));
    assert_true(launches == 1 && copies == 1 && P.flags == STRATA_TENSOR_PREPARED);
    const strata_run go = {.prepared = 2};
    launches = copies = 0;
    test_ok(h, strata_plan_run(h, p, (void *[]){a, P.data, out}, &go));
    assert_true(launches == 1 && copies == 0);
    test_error(h, strata_prepare(h, p, 0, strata_matrix(a, STRATA_F16, M, K, STRATA_ROW_MAJOR, 0), &none),
               STRATA_ERROR_UNSUPPORTED, "operand 0", "as it lies");
    float host[8];
    test_error(h,
               strata_prepare(h, p, 1, strata_matrix(host, STRATA_F16, K, N, STRATA_COL_MAJOR, LDB), &none),
               STRATA_ERROR_DEVICE, "host memory", "strata_alloc");
    test_error(h, strata_plan_run(h, p, (void *[]){a, host, out}, &go), STRATA_ERROR_DEVICE, "operand 1");
    test_error(h, strata_plan_run(h, p, (void *[]){(char *)a + 2, P.data, out}, &go), STRATA_ERROR_LAYOUT,
               "multiples of 16");
    fake_on_launch(NULL, NULL);
    strata_plan_destroy(p);
    test_ok(h, strata_free(h, P.data));
    test_ok(h, strata_free(h, a));
    test_ok(h, strata_free(h, b));
    test_ok(h, strata_free(h, out));
}

static void candidates(void **state)
{
    (void)state;
    strata_plan *p, *q;
    const st_contract c = product(1024, 1024, 1024, 1024, 1024);
    test_ok(h, st_tile_plan(h, "strata_gemm_plan", &c, NULL, 1, 0, NULL, &p));
    strata_candidate x;
    int usable = 0;
    for (int i = 0; strata_plan_candidates(p, i, &x); i++) {
        if (x.predicted_us < 0) continue;
        usable++;
        const strata_choice again = {.code = x.code};
        test_ok(h, st_tile_plan(h, "strata_gemm_plan", &c, NULL, 1, 0, &again, &q));
        assert_string_equal(strata_plan_code(q), x.code);
        assert_string_equal(strata_plan_kernel(q), x.kernel);
        strata_plan_destroy(q);
    }
    assert_true(usable > 10);
    assert_true(strata_plan_candidates(p, 0, &x) && x.tile.block_m > 0 && x.tile.stages > 0);
    strata_plan_destroy(p);
    const strata_tile t = {.block_m = 128, .block_n = 128}, none = {.block_m = 77};
    strata_choice wish = {.tile = &t};
    test_ok(h, st_tile_plan(h, "strata_gemm_plan", &c, NULL, 1, 0, &wish, &p));
    test_check(strstr(strata_plan_describe(p), "block 128 x 128"), "%s", strata_plan_describe(p));
    strata_plan_destroy(p);
    wish.tile = &none;
    test_error(h, st_tile_plan(h, "strata_gemm_plan", &c, NULL, 1, 0, &wish, &p), STRATA_ERROR_UNSUPPORTED,
               "with the tile that was asked for", "block_m", "77");
    /* few rows: the usual choice splits k or takes a kernel of its own; a batch-invariant one does not */
    const st_contract few = product(4, 4096, 4096, 4096, 4096);
    wish = (strata_choice){.batch_invariant = true};
    test_ok(h, st_tile_plan(h, "strata_gemm_plan", &few, NULL, 1, 0, &wish, &p));
    test_ok(h, st_tile_plan(h, "strata_gemm_plan", &c, NULL, 1, 0, &wish, &q));
    assert_string_equal(strata_plan_order(p), strata_plan_order(q));
    strata_plan_destroy(p);
    strata_plan_destroy(q);
}

int main(void)
{
    fake_use();
    h = fake_handle("cuda:0");
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_copy_alone), cmocka_unit_test(candidates)};
    const int r = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return r;
}
