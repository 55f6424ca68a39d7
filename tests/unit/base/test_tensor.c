/* SPDX-License-Identifier: Apache-2.0 */
/* Makers and views of tensors: where each element lies, what each refusal says, reshape against a map of every index. */
#include "base/base.h"
#include "support.h"

static char memory[65536];

/* The refusal that `t` carries, as an operator would report it. */
#define refused(t, status, ...)                                                               \
    do {                                                                                      \
        strata_tensor test_t = (t);                                                           \
        test_error(NULL, st_tensor_check(st_err_thread(), "strata_op", "X", &test_t), status, \
                   "strata_op: X", __VA_ARGS__);                                              \
    } while (0)
#define accepted(t)                                                                 \
    do {                                                                            \
        strata_tensor test_t = (t);                                                 \
        test_ok(NULL, st_tensor_check(st_err_thread(), "strata_op", "X", &test_t)); \
    } while (0)

static void shape_is(strata_tensor t, int rank, const int64_t *dim, const int64_t *stride)
{
    accepted(t);
    assert_int_equal(t.rank, rank);
    for (int d = 0; d < rank; d++) {
        test_check(t.dim[d] == dim[d], "dim %d of %s", d, test_say(t));
        test_check(t.stride[d] == stride[d], "stride %d of %s", d, test_say(t));
    }
}
static void makers(void **state)
{
    (void)state;
    strata_tensor t = strata_matrix(memory, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 0);
    shape_is(t, 2, (int64_t[]){3, 4}, (int64_t[]){4, 1});
    assert_ptr_equal(t.data, memory);
    assert_int_equal(t.type, STRATA_F32);
    shape_is(strata_matrix(memory, STRATA_F32, 3, 4, STRATA_COL_MAJOR, 0), 2, (int64_t[]){3, 4},
             (int64_t[]){1, 3});
    shape_is(strata_matrix(memory, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 9), 2, (int64_t[]){3, 4},
             (int64_t[]){9, 1});
    shape_is(strata_matrix(memory, STRATA_F32, 3, 4, STRATA_COL_MAJOR, 3), 2, (int64_t[]){3, 4},
             (int64_t[]){1, 3});
    accepted(strata_matrix(NULL, STRATA_F32, 0, 4, STRATA_ROW_MAJOR, 0));
    accepted(strata_matrix(NULL, STRATA_F32, 4, 0, STRATA_ROW_MAJOR, 0));
    shape_is(strata_vector(memory, STRATA_F64, 5, 0), 1, (int64_t[]){5}, (int64_t[]){1});
    shape_is(strata_vector(memory, STRATA_F64, 5, 3), 1, (int64_t[]){5}, (int64_t[]){3});
    t = strata_vector(memory, STRATA_F64, 5, -3); /* BLAS: element 0 at data[(1 - n) * inc] = data[12] */
    shape_is(t, 1, (int64_t[]){5}, (int64_t[]){-3});
    assert_ptr_equal(t.data, memory + 12 * 8);
    assert_ptr_equal(strata_vector(memory, STRATA_F64, 1, -3).data, memory);
    assert_ptr_equal(strata_vector(memory, STRATA_F64, 0, -3).data, memory);
    assert_null(strata_vector(NULL, STRATA_F64, 5, -3).data);
    shape_is(strata_point(memory, STRATA_I32), 0, NULL, NULL);
    shape_is(strata_array(memory, STRATA_U8, 3, (int64_t[]){2, 3, 4}, NULL), 3, (int64_t[]){2, 3, 4},
             (int64_t[]){12, 4, 1});
    shape_is(strata_array(memory, STRATA_U8, 2, (int64_t[]){2, 3}, (int64_t[]){0, 7}), 2, (int64_t[]){2, 3},
             (int64_t[]){0, 7});
    shape_is(strata_array(memory, STRATA_U8, 0, NULL, NULL), 0, NULL, NULL);
    shape_is(strata_nchw(memory, STRATA_F32, 2, 3, 4, 5), 4, (int64_t[]){2, 3, 4, 5},
             (int64_t[]){60, 20, 5, 1});
    shape_is(strata_nhwc(memory, STRATA_F32, 2, 3, 4, 5), 4, (int64_t[]){2, 3, 4, 5},
             (int64_t[]){60, 1, 15, 3});
    t = strata_matrix(memory, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 9);
    shape_is(strata_batch(t, 7, 0), 3, (int64_t[]){7, 3, 4}, (int64_t[]){27, 9, 1});
    shape_is(strata_batch(t, 7, 100), 3, (int64_t[]){7, 3, 4}, (int64_t[]){100, 9, 1});
    shape_is(strata_batch(strata_transpose(t), 7, 0), 3, (int64_t[]){7, 4, 3}, (int64_t[]){27, 1, 9});
    shape_is(strata_batch(t, 0, 0), 3, (int64_t[]){0, 3, 4}, (int64_t[]){27, 9, 1});
}

static void views(void **state)
{
    (void)state;
    strata_tensor t = strata_array(memory, STRATA_F32, 3, (int64_t[]){2, 3, 4}, NULL);
    shape_is(strata_transpose(t), 3, (int64_t[]){2, 4, 3}, (int64_t[]){12, 1, 4});
    strata_tensor v = strata_vector(memory, STRATA_F32, 3, 2);
    shape_is(strata_transpose(v), 1, (int64_t[]){3}, (int64_t[]){2});
    shape_is(strata_permute(t, (int[]){2, 0, 1}), 3, (int64_t[]){4, 2, 3}, (int64_t[]){1, 12, 4});
    shape_is(strata_permute(strata_point(memory, STRATA_F32), NULL), 0, NULL, NULL);
    strata_tensor s = strata_slice(t, 1, 2, 3, -1);
    shape_is(s, 3, (int64_t[]){2, 3, 4}, (int64_t[]){12, -4, 1});
    assert_ptr_equal(s.data, memory + 4 * 8);
    s = strata_slice(t, 2, 1, 2, 2);
    shape_is(s, 3, (int64_t[]){2, 3, 2}, (int64_t[]){12, 4, 2});
    assert_ptr_equal(s.data, memory + 4);
    accepted(strata_slice(t, 2, 4, 0, 1)); /* nothing, at the end */
    accepted(strata_slice(t, 2, 3, 1, 1000));
    shape_is(strata_slice(t, 2, 1, 1, INT64_MAX), 3, (int64_t[]){2, 3, 1}, (int64_t[]){12, 4, 1});
    shape_is(strata_broadcast(v, 3, (int64_t[]){5, 7, 3}), 3, (int64_t[]){5, 7, 3}, (int64_t[]){0, 0, 2});
    shape_is(
        strata_broadcast(strata_matrix(memory, STRATA_F32, 1, 4, STRATA_ROW_MAJOR, 0), 2, (int64_t[]){6, 4}),
        2, (int64_t[]){6, 4}, (int64_t[]){0, 1});
    accepted(strata_broadcast(strata_point(memory, STRATA_F32), 2, (int64_t[]){6, 4}));
    accepted(strata_broadcast(v, 1, (int64_t[]){3}));
}

static void maker_refusals(void **state)
{
    (void)state;
    const int64_t big = INT64_C(1) << 40;
    refused(strata_matrix(memory, STRATA_F32, -3, 4, STRATA_ROW_MAJOR, 0), STRATA_ERROR_SHAPE, "dim 0", "-3",
            "0 or more");
    refused(strata_matrix(memory, STRATA_F32, 3, -4, STRATA_ROW_MAJOR, 0), STRATA_ERROR_SHAPE, "dim 1", "-4",
            "0 or more");
    refused(strata_matrix(memory, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 3), STRATA_ERROR_LAYOUT,
            "leading dimension 3", "rows of 4", "tightly packed");
    refused(strata_matrix(memory, STRATA_F32, 3, 4, STRATA_COL_MAJOR, 2), STRATA_ERROR_LAYOUT,
            "leading dimension 2", "columns of 3");
    refused(strata_matrix(memory, STRATA_F32, 3, 4, STRATA_COL_MAJOR, -3), STRATA_ERROR_LAYOUT,
            "leading dimension -3");
    refused(strata_matrix(memory, STRATA_F32, 3, 4, (strata_order)7, 0), STRATA_ERROR_ARGUMENT, "order 7",
            "STRATA_COL_MAJOR");
    refused(strata_matrix(memory, (strata_type)40, 3, 4, STRATA_ROW_MAJOR, 0), STRATA_ERROR_TYPE,
            "type number 40");
    refused(strata_matrix(memory, STRATA_NONE, 3, 4, STRATA_ROW_MAJOR, 0), STRATA_ERROR_TYPE,
            "type number 0");
    refused(strata_point(memory, (strata_type)-2), STRATA_ERROR_TYPE, "type number -2");
    refused(strata_matrix(memory, STRATA_F32, big, big, STRATA_ROW_MAJOR, 0), STRATA_ERROR_OVERFLOW,
            "63 bits");
    refused(strata_matrix(memory, STRATA_F64, INT64_C(1) << 30, INT64_C(1) << 30, STRATA_ROW_MAJOR, 0),
            STRATA_ERROR_OVERFLOW, "63 bits");
    refused(strata_array(memory, STRATA_F32, 3, (int64_t[]){big, big, 4}, NULL), STRATA_ERROR_OVERFLOW,
            "63 bits");
    refused(strata_array(memory, STRATA_F32, 1, (int64_t[]){3}, (int64_t[]){INT64_MAX}),
            STRATA_ERROR_OVERFLOW, "63 bits");
    refused(strata_array(memory, STRATA_BIT, 1, (int64_t[]){2}, (int64_t[]){INT64_MIN}),
            STRATA_ERROR_OVERFLOW, "63 bits");
    refused(strata_vector(memory, STRATA_F32, -1, 1), STRATA_ERROR_SHAPE, "dim 0", "-1");
    refused(strata_vector(memory, STRATA_F32, 3, INT64_MIN), STRATA_ERROR_OVERFLOW, "63 bits");
    refused(strata_vector(memory, STRATA_F32, INT64_MAX, -2), STRATA_ERROR_OVERFLOW, "63 bits");
    refused(strata_vector(memory, STRATA_I4, 3, -1), STRATA_ERROR_LAYOUT, "i4", "-1", "whole bytes");
    refused(strata_array(memory, STRATA_F32, 9, (int64_t[9]){1}, NULL), STRATA_ERROR_ARGUMENT, "rank 9",
            "0 to 8");
    refused(strata_array(memory, STRATA_F32, -1, NULL, NULL), STRATA_ERROR_ARGUMENT, "rank -1", "0 to 8");
    refused(strata_array(memory, STRATA_F32, 2, NULL, NULL), STRATA_ERROR_ARGUMENT, "rank 2",
            "dims are NULL");
    refused(strata_array(memory, STRATA_F32, 3, (int64_t[]){1, 2, -7}, NULL), STRATA_ERROR_SHAPE, "dim 2",
            "-7");
    refused(strata_nchw(memory, STRATA_F32, 1, -2, 3, 4), STRATA_ERROR_SHAPE, "dim 1", "-2");
    refused(strata_nhwc(memory, STRATA_F32, 1, -2, 3, 4), STRATA_ERROR_SHAPE, "dim 1", "-2");
    strata_tensor t = strata_matrix(memory, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 0);
    refused(strata_batch(t, -5, 0), STRATA_ERROR_SHAPE, "dim 0", "-5");
    refused(
        strata_batch(strata_array(memory, STRATA_F32, 8, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1}, NULL), 2, 0),
        STRATA_ERROR_ARGUMENT, "rank 9");
    refused(strata_batch(strata_array(memory, STRATA_U8, 1, (int64_t[]){2}, (int64_t[]){INT64_MIN}), 2, 0),
            STRATA_ERROR_OVERFLOW, "63 bits");
    refused(strata_batch(t, big, big), STRATA_ERROR_OVERFLOW, "63 bits");
}

static void view_refusals(void **state)
{
    (void)state;
    strata_tensor t = strata_array(memory, STRATA_F32, 3, (int64_t[]){2, 3, 4}, NULL);
    refused(strata_permute(t, (int[]){0, 1, 3}), STRATA_ERROR_ARGUMENT, "axis 3", "rank 3");
    refused(strata_permute(t, (int[]){0, -1, 2}), STRATA_ERROR_ARGUMENT, "axis -1", "rank 3");
    refused(strata_permute(t, (int[]){0, 1, 1}), STRATA_ERROR_ARGUMENT, "axis 1 twice");
    refused(strata_permute(t, NULL), STRATA_ERROR_ARGUMENT, "rank 3", "NULL");
    refused(strata_slice(t, 3, 0, 1, 1), STRATA_ERROR_ARGUMENT, "axis 3", "rank 3");
    refused(strata_slice(t, -1, 0, 1, 1), STRATA_ERROR_ARGUMENT, "axis -1", "rank 3");
    refused(strata_slice(t, 1, 0, -2, 1), STRATA_ERROR_ARGUMENT, "axis 1", "count -2");
    refused(strata_slice(t, 1, 0, 2, 0), STRATA_ERROR_ARGUMENT, "axis 1", "step 0");
    refused(strata_slice(t, 1, 0, 4, 1), STRATA_ERROR_ARGUMENT, "element 3 of axis 1", "3 elements (0 to 2)");
    refused(strata_slice(t, 1, -1, 1, 1), STRATA_ERROR_ARGUMENT, "element -1 of axis 1");
    refused(strata_slice(t, 1, 3, 1, 1), STRATA_ERROR_ARGUMENT, "element 3 of axis 1");
    refused(strata_slice(t, 1, 4, 0, 1), STRATA_ERROR_ARGUMENT, "element 4 of axis 1");
    refused(strata_slice(t, 1, 1, 3, -1), STRATA_ERROR_ARGUMENT, "element -1 of axis 1");
    refused(strata_slice(t, 2, 0, 3, INT64_MAX), STRATA_ERROR_ARGUMENT, "of axis 2");
    refused(strata_slice(t, 2, 3, INT64_MAX, INT64_MIN), STRATA_ERROR_ARGUMENT, "of axis 2");
    strata_tensor half = strata_array(memory, STRATA_U4, 1, (int64_t[]){8}, NULL);
    refused(strata_slice(half, 0, 3, 2, 1), STRATA_ERROR_LAYOUT, "u4", "3", "whole bytes");
    accepted(strata_slice(half, 0, 4, 2, 1));
    assert_ptr_equal(strata_slice(half, 0, 4, 2, 1).data, memory + 2);
    refused(strata_reshape(t, 2, (int64_t[]){5, 5}), STRATA_ERROR_SHAPE, "25 elements", "24", "products");
    refused(strata_reshape(t, 2, (int64_t[]){-4, -6}), STRATA_ERROR_SHAPE, "dim 0", "-4");
    refused(strata_reshape(t, 2, (int64_t[]){INT64_MAX, INT64_MAX}), STRATA_ERROR_SHAPE, "63 bits",
            "24 elements");
    refused(strata_reshape(t, 9, (int64_t[9]){24}), STRATA_ERROR_ARGUMENT, "rank 9");
    refused(strata_reshape(t, 2, NULL), STRATA_ERROR_ARGUMENT, "rank 2", "NULL");
    refused(strata_reshape(strata_transpose(t), 1, (int64_t[]){24}), STRATA_ERROR_LAYOUT, "axis 1",
            "stride 1", "copy");
    refused(strata_broadcast(t, 3, (int64_t[]){2, 5, 4}), STRATA_ERROR_SHAPE, "size 5", "axis 1",
            "which has 3");
    refused(strata_broadcast(t, 4, (int64_t[]){2, 2, 3, 5}), STRATA_ERROR_SHAPE, "size 5", "axis 2",
            "which has 4");
    refused(strata_broadcast(t, 4, (int64_t[]){-2, 2, 3, 4}), STRATA_ERROR_SHAPE, "dim 0", "-2");
    refused(strata_broadcast(t, 2, (int64_t[]){3, 4}), STRATA_ERROR_ARGUMENT, "rank 2");
    refused(strata_broadcast(t, 9, (int64_t[9]){0}), STRATA_ERROR_ARGUMENT, "rank 9");
    refused(strata_broadcast(t, 3, NULL), STRATA_ERROR_ARGUMENT, "NULL");
    /* the first error stays, through any number of views */
    strata_tensor bad = strata_matrix(memory, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 3);
    bad = strata_slice(strata_transpose(strata_permute(bad, (int[]){9, 9})), 7, 7, 7, 7);
    bad = strata_broadcast(strata_reshape(strata_batch(bad, -1, 0), 30, NULL), 30, NULL);
    refused(bad, STRATA_ERROR_LAYOUT, "leading dimension 3");
}

/* What a program that filled the struct itself may get wrong. */
static void raw_refusals(void **state)
{
    (void)state;
    strata_tensor good = strata_matrix(memory, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 0), t = good;
    t.type = 0;
    refused(t, STRATA_ERROR_TYPE, "type number 0", "strata_matrix");
    t = good;
    t.rank = 77;
    refused(t, STRATA_ERROR_ARGUMENT, "rank 77", "0 to 8");
    refused(strata_transpose(t), STRATA_ERROR_ARGUMENT, "rank 77");
    refused(strata_reshape(t, 1, (int64_t[]){1}), STRATA_ERROR_ARGUMENT, "rank 77");
    refused(strata_permute(t, (int[99]){0}), STRATA_ERROR_ARGUMENT, "rank 77");
    refused(strata_slice(t, 50, 0, 1, 1), STRATA_ERROR_ARGUMENT, "rank 77");
    t.rank = -1;
    refused(strata_batch(t, 1, 0), STRATA_ERROR_ARGUMENT, "rank -1");
    refused(strata_broadcast(t, 2, (int64_t[]){3, 4}), STRATA_ERROR_ARGUMENT, "rank -1");
    t = good;
    t.reserved = 1;
    refused(t, STRATA_ERROR_ARGUMENT, "reserved", "zeroed");
    t = good;
    t.flags = 1u << 20;
    refused(t, STRATA_ERROR_ARGUMENT, "flags");
    t.flags = STRATA_TENSOR_POINTERS;
    refused(t, STRATA_ERROR_UNSUPPORTED, "pointer array");
    t.flags = STRATA_TENSOR_PACKED;
    refused(t, STRATA_ERROR_UNSUPPORTED, "packed triangle");
    t.flags = STRATA_TENSOR_PREPARED;
    refused(t, STRATA_ERROR_UNSUPPORTED, "prepared");
    t = good;
    t.dim[1] = -4;
    refused(t, STRATA_ERROR_SHAPE, "3x-4", "dim 1");
    t = good;
    t.data = NULL;
    refused(t, STRATA_ERROR_ARGUMENT, "3x4", "NULL");
    refused(strata_point(NULL, STRATA_F32), STRATA_ERROR_ARGUMENT, "NULL");
    t = good;
    t.error = 0x0100; /* says dim, but no status */
    refused(t, STRATA_ERROR_ARGUMENT, "dim 0");
    t.error = 0xdeadbeef;
    refused(t, STRATA_ERROR_ARGUMENT, "0xdeadbeef", "maker");
    t = good;
    t.stride[0] = 0;
    test_error(NULL, st_tensor_check_output(st_err_thread(), "strata_op", "C", &t), STRATA_ERROR_LAYOUT,
               "strata_op: C", "dim 0", "3 long", "stride 0");
    t.stride[0] = 2;
    test_error(NULL, st_tensor_check_output(st_err_thread(), "strata_op", "C", &t), STRATA_ERROR_LAYOUT,
               "strata_op: C", "3x4", "2,1", "two elements in one place");
}

static void counts_and_words(void **state)
{
    (void)state;
    char text[200];
    strata_tensor t = strata_array(memory, STRATA_F32, 2, (int64_t[]){512, 256}, NULL);
    assert_true(strata_count(t) == 512 * 256);
    assert_int_equal(strata_tensor_describe(t, text, sizeof text), strlen("f32 512x256 (stride 256,1)"));
    assert_string_equal(text, "f32 512x256 (stride 256,1)");
    assert_int_equal(strata_tensor_describe(t, NULL, 0), strlen(text));
    char cut[9];
    assert_int_equal(strata_tensor_describe(t, cut, sizeof cut), strlen(text));
    assert_string_equal(cut, "f32 512x");
    assert_true(strata_count(strata_point(memory, STRATA_F32)) == 1);
    assert_true(strata_tensor_describe(strata_point(memory, STRATA_F32), text, sizeof text) > 0);
    assert_string_equal(text, "f32 a single element");
    assert_true(strata_count(strata_array(memory, STRATA_F32, 3, (int64_t[]){5, 0, 7}, NULL)) == 0);
    t = strata_array(memory, STRATA_U8, 3, (int64_t[]){INT64_C(1) << 32, INT64_C(1) << 32, 0},
                     (int64_t[]){1, 1, 1});
    assert_true(strata_count(t) == 0); /* empty, whatever the other dims */
    t.dim[2] = 2;
    assert_true(strata_count(t) == -1);
    t.dim[0] = -3;
    t.dim[1] = 2;
    assert_true(strata_count(t) == -1);
    assert_string_equal(strata_version(), STRATA_VERSION_STRING);
}

/* reshape of random views: where it is given, element k in row-major order is the same address; where it is refused, no strides exist. */
static bool expressible(const strata_tensor *t, const strata_tensor *r)
{
    int64_t stride[STRATA_MAX_RANK] = {0}, i[STRATA_MAX_RANK] = {0}, j[STRATA_MAX_RANK] = {0};
    /* the only strides that can do are those between element 0 and the element at index 1 of each dim; then every element is tried */
    int64_t n = strata_count(*t), k = 0;
    char *at[4096];
    do at[k++] = test_at(t, i);
    while (test_next(t, i));
    for (int d = 0; d < r->rank; d++) {
        int64_t step = 1;
        for (int e = d + 1; e < r->rank; e++) step *= r->dim[e];
        stride[d] = r->dim[d] > 1 ? at[step] - at[0] : 0;
    }
    for (k = 0; k < n; k++) {
        int64_t off = 0;
        for (int d = 0; d < r->rank; d++) off += j[d] * stride[d];
        if (at[k] != at[0] + off) return false;
        test_next(r, j);
    }
    return true;
}

static int random_dims(test_rng *r, int64_t n, int64_t *dim)
{ /* a random factorisation with ones strewn in */
    int rank = 0;
    while (rank < STRATA_MAX_RANK - 1 && (n > 1 || test_chance(r, 0.3))) {
        int64_t f = 1;
        if (n > 1 && test_chance(r, 0.8)) do
                f = test_int(r, 2, n);
            while (n % f);
        dim[rank++] = f;
        n /= f;
    }
    if (n > 1) dim[rank++] = n;
    return rank;
}

static void reshape_against_every_index(void **state)
{
    (void)state;
    test_rng r = test_rng_make(5);
    int given = 0, refused_rightly = 0;
    for (int round = 0; round < test_rounds(20000); round++) {
        static const int64_t sizes[] = {1, 2, 4, 6, 8, 12, 16, 24, 36, 48, 60, 64};
        int64_t n = sizes[test_int(&r, 0, 11)], dim[STRATA_MAX_RANK], want[STRATA_MAX_RANK];
        int rank = random_dims(&r, n, dim), to = random_dims(&r, n, want);
        test_array a = test_array_make(&r, STRATA_U8, rank, dim,
                                       test_chance(&r, 0.5) ? TEST_PADDED : TEST_ANY | TEST_BROADCAST);
        for (int d = 0; d < rank; d++) /* strides of ones are noise */
            if (dim[d] == 1) a.t.stride[d] = test_int(&r, -100, 100);
        strata_tensor got = strata_reshape(a.t, to, want);
        strata_tensor shape = strata_array(memory, STRATA_U8, to, want, NULL);
        test_problem("reshape round %d: %s to %s", round, test_say(a.t), test_say(shape));
        bool can = expressible(&a.t, &shape);
        test_check(can == !got.error, "possible %d, error 0x%x", can, (unsigned)got.error);
        if (can) {
            int64_t i[STRATA_MAX_RANK] = {0}, j[STRATA_MAX_RANK] = {0};
            do {
                test_check(test_at(&a.t, i) == test_at(&got, j), "element lies elsewhere in %s",
                           test_say(got));
                test_next(&got, j);
            } while (test_next(&a.t, i));
            given++;
        } else {
            refused(got, STRATA_ERROR_LAYOUT, "copy");
            refused_rightly++;
        }
        test_array_free(&a);
    }
    test_check(given > 3000 && refused_rightly > 1000, "%d given, %d refused", given, refused_rightly);
    shape_is(
        strata_reshape(strata_array(memory, STRATA_U8, 2, (int64_t[]){0, 5}, NULL), 3, (int64_t[]){2, 0, 3}),
        3, (int64_t[]){2, 0, 3}, (int64_t[]){3, 3, 1});
    refused(strata_reshape(strata_array(memory, STRATA_U8, 2, (int64_t[]){0, 5}, NULL), 1, (int64_t[]){5}),
            STRATA_ERROR_SHAPE, "5 elements", "has 0");
}

/* Chains of slices, permutations and broadcasts against an index map kept beside them. */
static void chains_of_views(void **state)
{
    (void)state;
    test_rng r = test_rng_make(6);
    for (int round = 0; round < test_rounds(5000); round++) {
        int64_t dim[4];
        int rank = (int)test_int(&r, 1, 4);
        for (int d = 0; d < rank; d++) dim[d] = test_int(&r, 1, 5);
        test_array a = test_array_make(&r, STRATA_I32, rank, dim, TEST_ANY);
        strata_tensor t = a.t;
        int axis[4] = {0, 1, 2, 3};
        int64_t begin[4] = {0}, step[4] = {1, 1, 1, 1}; /* of the original dim d: index = begin + i * step */
        test_problem("chain round %d on %s", round, test_say(a.t));
        for (int k = 0; k < 4; k++) {
            int d = (int)test_int(&r, 0, rank - 1), o = axis[d];
            if (test_chance(&r, 0.3)) {
                int order[4] = {0, 1, 2, 3}, keep[4];
                int e = (int)test_int(&r, 0, rank - 1);
                order[d] = e;
                order[e] = d;
                t = strata_permute(t, order);
                memcpy(keep, axis, sizeof keep);
                for (int x = 0; x < rank; x++) axis[x] = keep[order[x]];
                continue;
            }
            int64_t b = test_int(&r, 0, t.dim[d] - 1), s = test_int(&r, -2, 2);
            if (!s) s = 1;
            int64_t room = s > 0 ? (t.dim[d] - 1 - b) / s + 1 : b / -s + 1, n = test_int(&r, 1, room);
            t = strata_slice(t, d, b, n, s);
            begin[o] += b * step[o];
            step[o] *= s;
        }
        accepted(t);
        int64_t i[STRATA_MAX_RANK] = {0};
        do {
            int64_t at[STRATA_MAX_RANK] = {0};
            for (int d = 0; d < rank; d++) at[axis[d]] = begin[axis[d]] + i[d] * step[axis[d]];
            test_check(test_at(&t, i) == test_at(&a.t, at), "element lies elsewhere in %s", test_say(t));
        } while (test_next(&t, i));
        test_array_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makers),
        cmocka_unit_test(views),
        cmocka_unit_test(maker_refusals),
        cmocka_unit_test(view_refusals),
        cmocka_unit_test(raw_refusals),
        cmocka_unit_test(counts_and_words),
        cmocka_unit_test(reshape_against_every_index),
        cmocka_unit_test(chains_of_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
