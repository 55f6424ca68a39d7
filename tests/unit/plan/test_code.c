/* SPDX-License-Identifier: Apache-2.0 */
/* Plan codes: what is written is read back; anything else is refused in words; lines of an export likewise. */
#include "plan/tuning.h"
#include "support.h"

static st_candidate candidate(test_rng *r, int args, int64_t most)
{
    st_candidate c;
    memset(&c, 0, sizeof c);
    snprintf(c.kernel, sizeof c.kernel, "gemm_f32f32f32_%lldx%lld_avx512", (long long)test_int(r, 1, 300),
             (long long)test_int(r, 1, 300));
    c.order = test_chance(r, 0.5) ? "k ascending" : "k in parts";
    c.order_arg = test_int(r, 0, 5);
    for (int i = 0; i < args; i++) c.arg[i] = test_int(r, 0, most);
    return c;
}

static void round_trip(void **state)
{
    (void)state;
    test_rng r = test_rng_make(50);
    for (int i = 0; i < test_rounds(20000); i++) {
        char code[STRATA_PLAN_CODE];
        st_code back;
        const char *why = NULL;
        const st_candidate c = candidate(&r, (int)test_int(&r, 0, 6), test_chance(&r, 0.5) ? 9 : 4096);
        st_code_write(&c, code);
        test_check(st_code_read(code, &back, &why), "%s: %s", code, why);
        assert_true(strlen(code) < STRATA_PLAN_CODE && back.kernel == st_code_kernel(c.kernel) &&
                    back.order == st_code_order(&c) && !memcmp(back.arg, c.arg, sizeof c.arg));
        /* one letter off is seen */
        const size_t at = (size_t)test_int(&r, 0, (int64_t)strlen(code) - 1);
        const char was = code[at];
        code[at] = (char)test_int(&r, 33, 126);
        if (code[at] != was) test_check(!st_code_read(code, &back, &why), "%s is taken", code);
    }
}

static void what_does_not_fit(void **state)
{
    (void)state;
    test_rng r = test_rng_make(51);
    st_candidate c = candidate(&r, 8, 0);
    char code[STRATA_PLAN_CODE];
    for (int i = 0; i < 8; i++) c.arg[i] = 1 << 30; /* eight numbers of six digits */
    st_code_write(&c, code);
    assert_string_equal(code, "");
    memset(c.arg, 0, sizeof c.arg);
    c.arg[0] = -1;
    st_code_write(&c, code);
    assert_string_equal(code, "");
    c.arg[0] = 0;
    c.arg[7] = 35;
    st_code_write(&c, code);
    assert_true(code[0] != 0);
}

static void garbage(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "s",
        "s1",
        "s1.",
        "s2.PGw_Fcr5v-B.NSfV.HUs",
        "s1.PGw_Fcr5v-B.NSfV.HU",
        "t1.PGw_Fcr5v-B.NSfV.HUs",
        "s1.PGw_Fcr5v-B.NSfV.1.2.3.4.5.6.7.8.9.AAA",
        "s1.PGw_Fcr5v-B.NSfV.zzzzzzzzzzzzzzzzzzzzzzzzzzz.AAA",
        "s1.PGw_Fcr5v-B.NSfV.000000000000000000000000000000000000000000000000000"};
    st_code code;
    for (int i = 0; i < TEST_COUNT(wrong); i++) {
        const char *why = NULL;
        test_check(!st_code_read(wrong[i], &code, &why), "%s is taken", wrong[i]);
        assert_true(why && *why);
    }
    test_rng r = test_rng_make(52);
    for (int i = 0; i < test_rounds(50000); i++) {
        char line[200];
        const int n = (int)test_int(&r, 0, 120);
        for (int k = 0; k < n; k++) line[k] = (char)test_int(&r, 1, 255);
        line[n] = 0;
        const char *why = NULL;
        st_tuning_row row;
        assert_false(st_code_read(line, &code, &why));
        assert_true(st_tuning_parse(line, &row, &why) <= 0);
    }
}

static void lines(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int is;
    } cases[] = {{"# comment", 0},
                 {"", 0},
                 {"\r\n", 0},
                 {"cpu\t" STRATA_VERSION_STRING "\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUs\t12.5", 1},
                 {"cpu\t" STRATA_VERSION_STRING "\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUs\t12.5\n", 1},
                 {"cpu\t0.0.1\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUs\t12.5", 0},
                 {"cpu\t" STRATA_VERSION_STRING "\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUs", -1},
                 {"cpu\t" STRATA_VERSION_STRING "\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUs\t12.5\tmore", -1},
                 {"cpu\t" STRATA_VERSION_STRING "\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUt\t12.5", -1},
                 {"cpu\t" STRATA_VERSION_STRING "\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUs\t0", -1},
                 {"cpu\t" STRATA_VERSION_STRING "\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUs\t-1", -1},
                 {"cpu\t" STRATA_VERSION_STRING "\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUs\tnan", -1},
                 {"cpu\t" STRATA_VERSION_STRING "\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUs\t1e5", -1},
                 {"cpu\t" STRATA_VERSION_STRING "\t\ts1.PGw_Fcr5v-B.NSfV.HUs\t1", -1},
                 {"c\x01pu\t" STRATA_VERSION_STRING "\tgemm\ts1.PGw_Fcr5v-B.NSfV.HUs\t1", -1}};
    for (int i = 0; i < TEST_COUNT(cases); i++) {
        char line[300];
        st_tuning_row row;
        const char *why = NULL;
        snprintf(line, sizeof line, "%s", cases[i].line);
        const int is = st_tuning_parse(line, &row, &why);
        test_check(is == cases[i].is, "line %d: %d, %s", i, is, why ? why : "");
        if (is > 0) assert_true(row.t.us == 12.5 && !strcmp(row.problem, "gemm"));
    }
    char *wide = malloc(700);
    memset(wide, 'x', 600);
    strcpy(wide + 600, "\t1\tp\tc\t1");
    st_tuning_row row;
    const char *why;
    assert_int_equal(st_tuning_parse(wide, &row, &why), -1);
    free(wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(what_does_not_fit),
                                       cmocka_unit_test(garbage), cmocka_unit_test(lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
