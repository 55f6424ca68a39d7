/* SPDX-License-Identifier: Apache-2.0 */
/* test_shape.c - how programs and views become loops: the way through memory, joined dims, lines, spans; and that every family of the
 * engine lists its kernels. */
#include "pointwise/program.h"
#include "support.h"

typedef struct view {
    const char *name;
    strata_tensor t;
} view;

/* the key that st_pw_run builds, from a list that ends in a NULL name */
static strata_status make(st_err *e, const char *text, uint32_t axes, const view *v, st_pw_shape *s)
{
    static int64_t key[ST_KEY_WORDS];
    int64_t *k = key + ST_KEY_HEAD;
    memset(key, 0, sizeof key);
    key[0] = ST_PW_PROGRAM, key[1] = 1, key[2] = axes;
    for (; v->name; v++, key[3]++) {
        const strata_tensor *t = &v->t;
        *k++ = t->type | (int64_t)t->rank << 8;
        memcpy(k, v->name, strlen(v->name));
        k += ST_KEY_NAME;
        memcpy(k, t->dim, (size_t)t->rank * sizeof *k), k += t->rank;
        memcpy(k, t->stride, (size_t)t->rank * sizeof *k), k += t->rank;
    }
    return st_pw_shape_make(e, "test", key, text, s);
}
#define MAKE(text, axes, ...) \
    assert_int_equal(make(&e, text, axes, (const view[]){__VA_ARGS__, {NULL, {0}}}, &s), STRATA_OK)

static float memory[4096];
static strata_tensor array(int rank, const int64_t *dim)
{
    return strata_array(memory, STRATA_F32, rank, dim, NULL);
}
#define ARRAY(...) \
    array((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static void maps_join(void **state)
{
    (void)state;
    st_err e = {0};
    st_pw_shape s;
    MAKE("y = x + 1", 0, {"x", ARRAY(2, 3, 4, 5)}, {"y", ARRAY(2, 3, 4, 5)});
    assert_int_equal(s.mode, ST_PW_MAP);
    assert_int_equal(s.col.len, 120); /* all dims are one run */
    assert_int_equal(s.row.len, 1);
    assert_int_equal(s.nouter, 0);
    st_expr_free(s.x);
    /* a bias along the channels of an NHWC image: two dims remain */
    MAKE("y = x + b", 0, {"x", ARRAY(2, 3, 4, 5)}, {"y", ARRAY(2, 3, 4, 5)}, {"b", ARRAY(5)});
    assert_int_equal(s.col.len, 5);
    assert_int_equal(s.row.len, 24);
    st_expr_free(s.x);
    /* transposed alike: the contiguous dim becomes the columns */
    strata_tensor t = strata_transpose(ARRAY(7, 9));
    MAKE("y = x + 1", 0, {"x", t}, {"y", t});
    assert_int_equal(s.col.len, 63);
    assert_int_equal(s.col.step[0], 1);
    st_expr_free(s.x);
}

/* f32 holds the positions of 2^24 elements; the program of a longer dim with positions is f64. Only shapes are looked at. */
static void far_positions_are_f64(void **state)
{
    (void)state;
    st_err e = {0};
    st_pw_shape s;
    const int64_t most = (int64_t)1 << 24;
    const struct {
        const char *text;
        uint32_t axes;
        int64_t rows, cols;
        bool f64;
    } t[] = {{"y = argmax(x)", 0, 2, most, false},          {"y = argmax(x)", 0, 2, most + 1, true},
             {"y = argmax(x)", 3, 4096, 4096, false},       {"y = argmax(x)", 3, 4096, 4097, true},
             {"y = argmax(x)", 1, most + 1, 2, true},       {"y = argmax(x)", 1, 2, most + 1, false},
             {"y = sum(x)", 0, 2, most + 1, false},         {"y = sum(x + index(0))", 0, 2, most + 1, true},
             {"y = sum(x + index(-1))", 3, 2, most, false}, {"y = sum(x * index(-2))", 0, most + 1, 2, true}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const strata_tensor x = ARRAY(t[i].rows, t[i].cols),
                            y = ARRAY(t[i].axes & 1 ? 1 : t[i].rows, t[i].axes == 1 ? t[i].cols : 1);
        MAKE(t[i].text, t[i].axes, {"x", x}, {"y", y});
        assert_int_equal(s.f64, t[i].f64);
        st_expr_free(s.x);
    }
}

static void reductions_choose(void **state)
{
    (void)state;
    st_err e = {0};
    st_pw_shape s;
    MAKE("y = sum(x)", 0, {"x", ARRAY(6, 8)}, {"y", ARRAY(6, 1)});
    assert_int_equal(s.mode, ST_PW_ROWS);
    assert_true(s.row.len == 6 && s.col.len == 8 && s.lines == 6);
    st_expr_free(s.x);
    MAKE("y = sum(x)", 1, {"x", ARRAY(6, 8)}, {"y", ARRAY(8)});
    assert_int_equal(s.mode, ST_PW_COLS);
    assert_true(s.row.len == 6 && s.col.len == 8 && s.lines == 8);
    st_expr_free(s.x);
    /* n, h and w of NCHW: h and w join, n does not */
    MAKE("y = sum(x)", 1 | 4 | 8, {"x", ARRAY(2, 3, 4, 5)}, {"y", ARRAY(1, 3, 1, 1)});
    assert_int_equal(s.mode, ST_PW_ALL);
    assert_true(s.row.len == 2 && s.col.len == 20 && s.lines == 3);
    st_expr_free(s.x);
    /* of NHWC memory all three join, and channels are the columns */
    strata_tensor image = strata_nhwc(memory, STRATA_F32, 2, 3, 4, 5);
    MAKE("y = sum(x)", 1 | 4 | 8, {"x", image}, {"y", ARRAY(1, 3, 1, 1)});
    assert_int_equal(s.mode, ST_PW_COLS);
    assert_true(s.row.len == 40 && s.col.len == 3);
    st_expr_free(s.x);
    /* three that do not join are packed */
    strata_tensor gaps = strata_array(memory, STRATA_F32, 4, (const int64_t[]){2, 3, 4, 5},
                                      (const int64_t[]){500, 100, 20, 2});
    MAKE("y = sum(x)", 1 | 2 | 8, {"x", gaps}, {"y", ARRAY(1, 1, 4, 1)});
    assert_true(s.pack && s.npacked == 3 && s.col.len == 30);
    st_expr_free(s.x);
    /* a line of one element */
    MAKE("y = sum(x)", 1, {"x", ARRAY(1, 64)}, {"y", ARRAY(64)});
    assert_int_equal(s.mode, ST_PW_COLS);
    assert_int_equal(s.col.len, 64);
    st_expr_free(s.x);
}

static void spans_and_views(void **state)
{
    (void)state;
    st_err e = {0};
    st_pw_shape s;
    strata_tensor x = strata_slice(ARRAY(6, 8), 1, 7, 8, -1);
    MAKE("y = x", 0, {"x", x}, {"y", ARRAY(6, 8)});
    assert_int_equal(s.lo[0], -7 * 4);
    assert_int_equal(s.hi[0], (5 * 8 + 1) * 4);
    assert_int_equal(s.lo[1], 0);
    assert_int_equal(s.hi[1], 48 * 4);
    assert_int_equal(s.outputs, 2);
    assert_int_equal(s.same[0] & 2, 0);
    st_expr_free(s.x);
}

static void lists_kernels(void **state)
{
    (void)state;
    st_pw_init(); /* an archive brings only the objects that something names */
    int pool = 0, norm = 0, program = 0, usable = 0;
    strata_kernel_info k;
    for (int i = 0; strata_kernels(i, &k); i++) {
        assert_non_null(k.id);
        assert_true(k.usable == (k.why_not == NULL));
        pool += !strcmp(k.family, "pool");
        norm += !strcmp(k.family, "norm");
        program += !strcmp(k.family, "pointwise");
        usable += k.usable;
    }
    assert_true(pool >= 4 && norm >= 4 && program >= 8 && usable >= 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps_join), cmocka_unit_test(far_positions_are_f64),
                                       cmocka_unit_test(reductions_choose), cmocka_unit_test(spans_and_views),
                                       cmocka_unit_test(lists_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
