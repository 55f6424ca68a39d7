/* SPDX-License-Identifier: Apache-2.0 */
/* Overlap of two views and of a view with itself, against marking every byte on small random views of all kinds. */
#include "base/base.h"
#include "base/tensor.h"
#include "support.h"

enum { ARENA = 1024 };
static unsigned char arena[2 * ARENA];

static strata_tensor wild(test_rng *r, strata_type type, bool zero_strides)
{
    int64_t dim[4], stride[4];
    int rank = (int)test_int(r, 0, 4);
    for (int d = 0; d < rank; d++) {
        dim[d] = test_int(r, test_chance(r, 0.05) ? 0 : 1, 4);
        stride[d] = test_int(r, -8, 8);
        if (!stride[d] && !zero_strides) stride[d] = 1;
    }
    size_t size = strata_type_bits(type) / 8;
    return strata_array(arena + ARENA + size * (size_t)test_int(r, -20, 20) + (test_chance(r, 0.1) ? 1 : 0),
                        type, rank, dim, stride);
}

/* Marks the view's bytes; returns whether one was marked twice by it. */
static bool mark(const strata_tensor *t, unsigned char *mark, unsigned char bit)
{
    int64_t i[STRATA_MAX_RANK] = {0};
    size_t size = strata_type_bits((strata_type)t->type) / 8;
    bool twice = false;
    if (!strata_count(*t)) return false;
    do {
        unsigned char *p = mark + (test_at(t, i) - (char *)arena);
        for (size_t b = 0; b < size; b++) {
            twice |= (p[b] & bit) != 0;
            p[b] |= bit;
        }
    } while (test_next(t, i));
    return twice;
}

static void against_brute_force(void **state)
{
    (void)state;
    static const strata_type types[] = {STRATA_U8, STRATA_F16, STRATA_F32, STRATA_F64};
    static unsigned char map[2 * ARENA];
    test_rng r = test_rng_make(11);
    int met = 0, apart_in_span = 0, collided = 0, clean_not_nested = 0;
    for (int n = 0; n < test_rounds(60000); n++) {
        strata_tensor a = wild(&r, types[test_int(&r, 0, 3)], true),
                      b = wild(&r, types[test_int(&r, 0, 3)], true);
        test_problem("overlap round %d: %s at %td, %s at %td", n, test_say(a), (char *)a.data - (char *)arena,
                     test_say(b), (char *)b.data - (char *)arena);
        memset(map, 0, sizeof map);
        bool self = mark(&a, map, 1);
        mark(&b, map, 2);
        bool want = false;
        for (int i = 0; i < 2 * ARENA; i++) want |= map[i] == 3;
        test_check(st_tensor_overlap(&a, &b) == want, "should be %d", want);
        test_check(st_tensor_overlap(&b, &a) == want, "turned round, should be %d", want);
        const char *lo, *hi, *lo2, *hi2;
        st_tensor_span(&a, &lo, &hi);
        st_tensor_span(&b, &lo2, &hi2);
        met += want;
        apart_in_span += !want && lo && lo2 && lo < hi2 && lo2 < hi;
        int first = 0, last = 2 * ARENA - 1; /* the span is exact */
        while (first < 2 * ARENA && !(map[first] & 1)) first++;
        while (last >= 0 && !(map[last] & 1)) last--;
        if (last < 0)
            test_check(!lo && !hi, "span of nothing");
        else
            test_check(lo == (char *)arena + first && hi == (char *)arena + last + 1, "span");
        strata_status s = st_tensor_check_output(st_err_thread(), "who", "C", &a);
        test_error(NULL, s, self ? STRATA_ERROR_LAYOUT : STRATA_OK, "who: C", "written");
        collided += self;
        int64_t reach = 0;
        for (int d = a.rank - 1; d >= 0; d--) reach += (a.dim[d] - 1) * a.stride[d];
        clean_not_nested += !self && reach < 0;
    }
    /* the cases that tell a good test from a lazy one did come up */
    test_check(met > 1000 && apart_in_span > 1000 && collided > 1000 && clean_not_nested > 1000,
               "met %d, apart %d, self %d, clean %d", met, apart_in_span, collided, clean_not_nested);
}

static void blocks_of_one_matrix(void **state)
{
    (void)state;
    static float m[64 * 64];
    strata_tensor whole = strata_matrix(m, STRATA_F32, 64, 64, STRATA_ROW_MAJOR, 0);
    strata_tensor left = strata_slice(whole, 1, 0, 32, 1), right = strata_slice(whole, 1, 32, 32, 1),
                  middle = strata_slice(whole, 1, 31, 2, 1), even = strata_slice(whole, 0, 0, 32, 2),
                  odd = strata_slice(whole, 0, 1, 32, 2), back = strata_slice(whole, 0, 63, 32, -2);
    assert_false(st_tensor_overlap(&left, &right));
    assert_true(st_tensor_overlap(&left, &middle));
    assert_true(st_tensor_overlap(&right, &middle));
    assert_false(st_tensor_overlap(&even, &odd));
    assert_true(st_tensor_overlap(&back, &odd));
    assert_false(st_tensor_overlap(&back, &even));
    strata_tensor lt = strata_transpose(left);
    assert_false(st_tensor_overlap(&lt, &right));
    /* real and imaginary parts of complex numbers interleave */
    strata_tensor re = strata_array(m, STRATA_F32, 1, (int64_t[]){100}, (int64_t[]){2}),
                  im = strata_array(m + 1, STRATA_F32, 1, (int64_t[]){100}, (int64_t[]){2});
    assert_false(st_tensor_overlap(&re, &im));
    /* one byte inside an element */
    strata_tensor byte = strata_point((char *)m + 9, STRATA_U8), three = strata_point(m + 2, STRATA_F32),
                  two = strata_point(m + 1, STRATA_F32);
    assert_true(st_tensor_overlap(&byte, &three));
    assert_false(st_tensor_overlap(&byte, &two));
}

/* Lattices that share no stride and meet far out: 7 i = 11 j + 5 has solutions, 6 i = 4 j + 1 has none. Also the search stays short. */
static void far_meetings(void **state)
{
    (void)state;
    static char big[1 << 20];
    strata_tensor a = strata_array(big, STRATA_U8, 1, (int64_t[]){100000}, (int64_t[]){7}),
                  b = strata_array(big + 5, STRATA_U8, 1, (int64_t[]){60000}, (int64_t[]){11});
    assert_true(st_tensor_overlap(&a, &b));
    strata_tensor c = strata_array(big, STRATA_U8, 1, (int64_t[]){100000}, (int64_t[]){6}),
                  d = strata_array(big + 1, STRATA_U8, 1, (int64_t[]){100000}, (int64_t[]){4});
    assert_false(st_tensor_overlap(&c, &d));
    strata_tensor p = strata_matrix(big, STRATA_F32, 300, 100, STRATA_ROW_MAJOR, 401),
                  q = strata_matrix(big + 404, STRATA_F32, 300, 100, STRATA_COL_MAJOR, 403);
    assert_true(st_tensor_overlap(&p, &q));
    /* eight dims each with close strides: hard for a search, which must give up with yes and in no time */
    int64_t dim[8] = {9, 9, 9, 9, 9, 9, 9, 9}, s1[8] = {1001, 1003, 1007, 1009, 1013, 1019, 1021, 1031},
            s2[8] = {1002, 1004, 1008, 1010, 1014, 1020, 1022, 1032};
    strata_tensor h1 = strata_array(big, STRATA_U8, 8, dim, s1),
                  h2 = strata_array(big + 500, STRATA_U8, 8, dim, s2);
    uint64_t t0 = st_now_ns();
    assert_true(st_tensor_overlap(&h1, &h2));
    assert_true(st_view_collides(&h1));
    test_check(st_now_ns() - t0 < 1000000000u, "took %llu ns", (unsigned long long)(st_now_ns() - t0));
}

static void edges(void **state)
{
    (void)state;
    static char m2[24];
    char *m = m2 + 8;
    strata_tensor none = strata_array(m, STRATA_U8, 2, (int64_t[]){0, 5}, NULL),
                  all = strata_array(m, STRATA_U8, 1, (int64_t[]){8}, NULL),
                  null = strata_array(NULL, STRATA_U8, 1, (int64_t[]){8}, NULL);
    assert_false(st_tensor_overlap(&none, &all));
    assert_false(st_tensor_overlap(&null, &all));
    assert_true(st_tensor_overlap(&all, &all));
    const char *lo, *hi;
    st_tensor_span(&none, &lo, &hi);
    assert_true(!lo && !hi);
    strata_tensor half = strata_array(m, STRATA_I4, 1, (int64_t[]){3}, NULL);
    st_tensor_span(&half, &lo, &hi);
    assert_true(lo == m && hi == m + 2);
    strata_tensor back = half;
    back.stride[0] = -1;
    st_tensor_span(&back, &lo, &hi);
    assert_true(lo == m - 1 && hi == m + 1);
    assert_true(st_tensor_same_view(&all, &all));
    strata_tensor one = strata_array(m, STRATA_U8, 1, (int64_t[]){1}, (int64_t[]){5}), other = one;
    other.stride[0] = 9; /* the stride of one element says nothing */
    assert_true(st_tensor_same_view(&one, &other));
    other.dim[0] = 2;
    assert_false(st_tensor_same_view(&one, &other));
    other = one;
    other.type = STRATA_I8;
    assert_false(st_tensor_same_view(&one, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_brute_force),
                                       cmocka_unit_test(blocks_of_one_matrix), cmocka_unit_test(far_meetings),
                                       cmocka_unit_test(edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
