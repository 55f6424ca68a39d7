/* SPDX-License-Identifier: Apache-2.0 */
/* strata_copy and strata_fill over random views between guard pages, element by element. */
#include "runtime/handle.h"
#include "support.h"
#include <math.h>

static strata_handle *h;
static const strata_type types[] = {STRATA_F64,  STRATA_F32,    STRATA_C64,   STRATA_C128, STRATA_F16,
                                    STRATA_BF16, STRATA_F8E4M3, STRATA_I64,   STRATA_I32,  STRATA_I8,
                                    STRATA_U8,   STRATA_BOOL,   STRATA_F8E5M2};

static int random_shape(test_rng *r, int64_t *dim)
{
    int rank = (int)test_int(r, 0, 5);
    for (int d = 0; d < rank; d++) dim[d] = test_int(r, test_chance(r, 0.05) ? 0 : 1, rank > 3 ? 4 : 9);
    return rank;
}

static size_t size_of(const strata_tensor *t) { return strata_type_bits((strata_type)t->type) / 8; }

static void copies(void **state)
{
    (void)state;
    test_rng r = test_rng_make(21);
    for (int round = 0; round < test_rounds(4000); round++) {
        int64_t dim[5], i[STRATA_MAX_RANK] = {0};
        int rank = random_shape(&r, dim);
        strata_type type = types[test_int(&r, 0, TEST_COUNT(types) - 1)];
        test_array s = test_array_make(&r, type, rank, dim, TEST_ANY | TEST_BROADCAST),
                   d = test_array_make(&r, type, rank, dim, TEST_ANY);
        test_problem("copy round %d: %s to %s", round, test_say(s.t), test_say(d.t));
        size_t size = size_of(&s.t);
        for (size_t k = 0; k < s.bytes; k++) s.base[k] = (unsigned char)test_u64(&r);
        unsigned char *before = malloc(s.bytes + 1);
        memcpy(before, s.base, s.bytes);
        test_ok(h, strata_copy(h, s.t, d.t));
        if (strata_count(s.t)) do
                test_check(!memcmp(test_at(&s.t, i), test_at(&d.t, i), size), "an element differs");
            while (test_next(&s.t, i));
        test_array_intact(&d);
        test_check(!memcmp(before, s.base, s.bytes), "the source changed");
        free(before);
        test_array_free(&s);
        test_array_free(&d);
    }
}

static void fills(void **state)
{
    (void)state;
    static const strata_type real[] = {STRATA_F64, STRATA_F32, STRATA_I64, STRATA_I32,
                                       STRATA_I8,  STRATA_U8,  STRATA_BF16};
    test_rng r = test_rng_make(22);
    for (int round = 0; round < test_rounds(3000); round++) {
        int64_t dim[5], i[STRATA_MAX_RANK] = {0};
        int rank = random_shape(&r, dim);
        test_array d = test_array_make(&r, real[test_int(&r, 0, TEST_COUNT(real) - 1)], rank, dim, TEST_ANY);
        double v = (double)test_int(&r, 0, 100);
        test_problem("fill round %d: %s with %g", round, test_say(d.t), v);
        test_ok(h, strata_fill(h, d.t, strata_real(v)));
        if (strata_count(d.t)) do
                test_close(test_get(&d.t, i), v, 0, "an element");
            while (test_next(&d.t, i));
        test_array_intact(&d);
        test_array_free(&d);
    }
}

static void values_of_fill(void **state)
{
    (void)state;
    int64_t n[3] = {0}, big = (INT64_C(1) << 53) + 1;
    strata_tensor t = strata_vector(n, STRATA_I64, 2, 1);
    test_ok(h, strata_fill(h, t, strata_scalar_at(STRATA_I64, &big)));
    assert_true(n[0] == big && n[1] == big && n[2] == 0); /* exact: no way through f64 */
    uint32_t nan_bits = 0x7fc12345, f[2] = {0};
    test_ok(h, strata_fill(h, strata_vector(f, STRATA_F32, 2, 1), strata_scalar_at(STRATA_F32, &nan_bits)));
    assert_true(f[1] == nan_bits);
    float c64[4] = {0};
    test_ok(h, strata_fill(h, strata_vector(c64, STRATA_C64, 2, 1), strata_complex(1.5, -2)));
    assert_true(c64[2] == 1.5f && c64[3] == -2);
    double c128[4] = {0};
    test_ok(h, strata_fill(h, strata_vector(c128, STRATA_C128, 2, 1), strata_scalar_at(STRATA_C64, c64)));
    assert_true(c128[2] == 1.5 && c128[3] == -2);
    test_ok(h, strata_fill(h, strata_vector(c128, STRATA_C128, 2, 1), STRATA_ONE));
    assert_true(c128[0] == 1 && c128[1] == 0);
    uint8_t b[2] = {9, 9};
    test_ok(h, strata_fill(h, strata_vector(b, STRATA_BOOL, 1, 1), strata_real(0.5)));
    assert_true(b[0] == 1 && b[1] == 9);
    test_error(h, strata_fill(h, strata_vector(f, STRATA_F32, 2, 1), strata_complex(1, -2)),
               STRATA_ERROR_TYPE, "strata_fill", "1-2i", "f32", "imaginary");
    test_error(h, strata_fill(h, strata_vector(f, STRATA_F32, 2, 1), strata_scalar_at(STRATA_U4, b)),
               STRATA_ERROR_TYPE, "strata_fill", "value", "u4");
    assert_true(f[0] == nan_bits);
}

static void refusals(void **state)
{
    (void)state;
    float a[64], b[64];
    memset(a, 1, sizeof a);
    memset(b, 2, sizeof b);
    strata_tensor x = strata_matrix(a, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 0),
                  y = strata_matrix(b, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 0);
    strata_tensor bad = strata_matrix(b, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 2), t = y;
    test_error(h, strata_copy(h, bad, y), STRATA_ERROR_LAYOUT, "strata_copy: src", "leading dimension 2");
    test_error(h, strata_copy(h, x, bad), STRATA_ERROR_LAYOUT, "strata_copy: dst", "leading dimension 2");
    test_error(h, strata_fill(h, bad, STRATA_ONE), STRATA_ERROR_LAYOUT, "strata_fill: dst",
               "leading dimension 2");
    test_error(h, strata_copy(h, strata_transpose(x), y), STRATA_ERROR_SHAPE, "strata_copy", "4x3", "3x4");
    test_error(h, strata_copy(h, strata_reshape(x, 1, (int64_t[]){12}), y), STRATA_ERROR_SHAPE, "12", "3x4");
    t.type = STRATA_I32;
    test_error(h, strata_copy(h, x, t), STRATA_ERROR_TYPE, "f32", "i32", "strata_fused");
    t = strata_broadcast(strata_vector(b, STRATA_F32, 4, 1), 2, (int64_t[]){3, 4});
    test_error(h, strata_copy(h, x, t), STRATA_ERROR_LAYOUT, "strata_copy: dst", "dim 0", "stride 0");
    test_error(h, strata_fill(h, t, STRATA_ONE), STRATA_ERROR_LAYOUT, "strata_fill: dst", "stride 0");
    test_error(h, strata_copy(h, x, strata_matrix(a + 1, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 0)),
               STRATA_ERROR_ALIAS, "overlap");
    test_error(h, strata_copy(h, x, strata_matrix(a, STRATA_F32, 3, 4, STRATA_COL_MAJOR, 0)),
               STRATA_ERROR_ALIAS, "overlap");
    strata_tensor half = strata_array(a, STRATA_I4, 1, (int64_t[]){4}, NULL),
                  to = strata_array(b, STRATA_I4, 1, (int64_t[]){4}, NULL);
    test_error(h, strata_copy(h, half, to), STRATA_ERROR_UNSUPPORTED, "strata_copy", "i4", "u8");
    test_error(h, strata_fill(h, half, STRATA_ONE), STRATA_ERROR_UNSUPPORTED, "strata_fill", "i4");
    test_error(NULL, strata_copy(NULL, x, y), STRATA_ERROR_ARGUMENT, "strata_copy", "NULL", "strata_create");
    test_error(NULL, strata_fill(NULL, y, STRATA_ONE), STRATA_ERROR_ARGUMENT, "strata_fill", "NULL");
    for (size_t i = 0; i < sizeof b; i++) assert_int_equal(((char *)b)[i], 2);
    for (size_t i = 0; i < sizeof a; i++) assert_int_equal(((char *)a)[i], 1);
    test_ok(h, strata_copy(h, x, x)); /* the same view: nothing to do */
    /* halves of one matrix that interleave without meeting */
    test_ok(h, strata_copy(h, strata_array(a, STRATA_F32, 1, (int64_t[]){20}, (int64_t[]){2}),
                           strata_array(a + 1, STRATA_F32, 1, (int64_t[]){20}, (int64_t[]){2})));
    test_ok(h, strata_copy(h, strata_matrix(NULL, STRATA_F32, 0, 4, STRATA_ROW_MAJOR, 0),
                           strata_matrix(NULL, STRATA_F32, 0, 4, STRATA_ROW_MAJOR, 0)));
    test_ok(h, strata_fill(h, strata_matrix(NULL, STRATA_F32, 4, 0, STRATA_ROW_MAJOR, 0), STRATA_ONE));
}

int main(void)
{
    if (strata_create(&h, "cpu")) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies), cmocka_unit_test(fills),
                                       cmocka_unit_test(values_of_fill), cmocka_unit_test(refusals)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    return failed;
}
