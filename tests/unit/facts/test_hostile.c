/* SPDX-License-Identifier: Apache-2.0 */
/* test_hostile.c - the readers of the knowledge base against random and damaged input: tables, patterns, logs, Xid lines. */
#include "facts/facts.h"
#include "support.h"
#include <regex.h>

static st_facts *facts;
static int set_up(void **s)
{
    (void)s;
    facts = st_facts_open();
    return facts ? 0 : -1;
}
static int tear_down(void **s)
{
    (void)s;
    st_facts_close(facts);
    return 0;
}

/* any bytes give a table whose every cell can be read, or none */
static void tables(void **s)
{
    (void)s;
    static const char bits[] = "\t\t\t\n\n\r#ab\0\377 ";
    test_rng r = test_rng_make(11);
    for (int round = 0; round < test_rounds(4000); round++) {
        size_t n = (size_t)test_int(&r, 0, 300);
        char *text = malloc(n ? n : 1); /* exact size: a byte too far is seen by the sanitizer */
        for (size_t i = 0; i < n; i++)
            text[i] = test_chance(&r, 0.9) ? bits[test_int(&r, 0, sizeof bits - 2)] : (char)test_u64(&r);
        test_problem("table round %d, %zu bytes", round, n);
        st_table t;
        if (st_table_parse(&t, text, n)) {
            size_t sum = 0;
            for (int i = -2; i <= t.rows; i++)
                for (int c = -1; c <= t.columns; c++) sum += strlen(st_table_at(&t, i, c));
            test_check(sum <= n, "cells hold %zu bytes of %zu", sum, n);
            test_check(t.columns <= ST_TABLE_MAX_COLUMNS, "%d columns", t.columns);
            st_table_free(&t);
        }
        free(text);
    }
}

/* a random pattern of the grammar that the tables use */
static int random_pattern(test_rng *r, char *out, int room, int depth)
{
    int n = 0, pieces = (int)test_int(r, 1, 5);
    for (int i = 0; i < pieces && n < room - 40; i++) {
        int kind = (int)test_int(r, 0, depth ? 9 : 6);
        if (kind < 4)
            n += sprintf(out + n, "%c", (char)test_int(r, 'a', 'c'));
        else if (kind == 4)
            n += sprintf(out + n, test_chance(r, 0.5) ? "[ab]" : "[a-c]");
        else if (kind == 5)
            n += sprintf(out + n, test_chance(r, 0.5) ? "." : "\\.");
        else if (kind == 6)
            n += sprintf(out + n, test_chance(r, 0.5) ? "[^a]" : "b+");
        else {
            out[n++] = '(';
            n += random_pattern(r, out + n, room - n - 10, depth - 1);
            if (test_chance(r, 0.6)) {
                out[n++] = '|';
                n += random_pattern(r, out + n, room - n - 10, depth - 1);
            }
            out[n++] = ')';
        }
        if (test_chance(r, 0.2)) out[n++] = "?*+"[test_int(r, 0, 2)];
    }
    out[n] = 0;
    return n;
}

/* a match holds one of the literals; an exact set decides */
static void literals(void **s)
{
    (void)s;
    test_rng r = test_rng_make(12);
    st_literals *l = malloc(sizeof *l);
    int useful = 0, exact = 0;
    for (int round = 0; round < test_rounds(3000); round++) {
        char pattern[400], text[24];
        random_pattern(&r, pattern, 300, 2);
        regex_t re;
        if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB)) continue;
        st_literals_of(pattern, l);
        useful += l->n > 0;
        exact += l->exact;
        for (int k = 0; k < 40; k++) {
            int n = (int)test_int(&r, 0, 20);
            for (int i = 0; i < n; i++) text[i] = "abc."[test_int(&r, 0, 3)];
            text[n] = 0;
            bool match = regexec(&re, text, 0, NULL, 0) == 0, holds = false;
            for (int i = 0; i < l->n; i++) holds |= strstr(text, l->s[i]) != NULL;
            test_problem("pattern /%s/ text \"%s\"", pattern, text);
            test_check(!match || l->n == 0 || holds, "a match without a literal");
            test_check(!l->exact || match == holds, "the exact set is wrong");
        }
        regfree(&re);
    }
    assert_true(useful > 1000 && exact > 100);
    static const char *const odd[] = {
        "",   "(", ")", "[", "[a",           "a{",  "a\\", "((((((((((((((((((((a))))))))))))))))))))",
        "a|", "|", "*", "+", "[[:alpha:]]x", "[]]", "a**"};
    for (int i = 0; i < ST_COUNT(odd); i++) st_literals_of(odd[i], l);
    free(l);
}

typedef struct counted {
    int n;
    int64_t count[512], first[512];
} counted;
static counted run(const char *text, size_t n, test_rng *r, size_t most)
{
    counted c = {0};
    st_matcher *m = st_matcher_open(facts);
    for (size_t at = 0; at < n;) {
        size_t k = (size_t)test_int(r, 1, (int64_t)most);
        if (k > n - at) k = n - at;
        char *piece = malloc(k);
        memcpy(piece, text + at, k);
        st_matcher_feed(m, piece, k);
        free(piece);
        at += k;
    }
    st_matcher_finish(m);
    for (int i = 0; i < st_matcher_count(m) && c.n < 512; i++) {
        c.count[c.n] = st_matcher_hit(m, i)->count;
        c.first[c.n++] = st_matcher_hit(m, i)->first_line;
    }
    st_matcher_close(m);
    return c;
}

/* samples, whole and damaged, among random bytes: what is found does not depend on how the text arrives */
static void logs(void **s)
{
    (void)s;
    test_rng r = test_rng_make(13);
    const st_table *t = st_facts_table(facts, "errors"), *x = st_facts_table(facts, "xid_formats");
    enum { ROOM = 1 << 20 };
    char *text = malloc(ROOM + 4096);
    for (int round = 0; round < test_rounds(12); round++) {
        size_t n = 0, want = (size_t)test_int(&r, 1000, ROOM);
        while (n < want) {
            const char *sample = test_chance(&r, 0.3)
                                     ? st_table_get(x, (int)test_int(&r, 0, x->rows - 1), "line")
                                     : st_table_get(t, (int)test_int(&r, 0, t->rows - 1), "sample");
            size_t k = strlen(sample), from = n;
            if (test_chance(&r, 0.1)) {
                memcpy(text + n, sample, k);
                n += k;
                while (k && test_chance(&r, 0.4))
                    text[from + (size_t)test_int(&r, 0, (int64_t)k - 1)] = (char)test_u64(&r);
            } else
                for (int64_t j = test_int(&r, 0, 400); j > 0; j--)
                    text[n++] = test_chance(&r, 0.05) ? (char)test_u64(&r) : (char)test_int(&r, 32, 126);
            if (test_chance(&r, 0.7)) text[n++] = '\n';
        }
        test_problem("log round %d of %zu bytes", round, n);
        counted a = run(text, n, &r, ROOM), b = run(text, n, &r, 5000);
        test_check(a.n == b.n, "%d and %d findings", a.n, b.n);
        for (int i = 0; i < a.n; i++)
            test_check(a.count[i] == b.count[i] && a.first[i] == b.first[i], "finding %d", i);
    }
    free(text);
}

static void xid_lines(void **s)
{
    (void)s;
    test_rng r = test_rng_make(14);
    const st_table *t = st_facts_table(facts, "xid_formats");
    for (int round = 0; round < test_rounds(20000); round++) {
        const char *line = st_table_get(t, (int)test_int(&r, 0, t->rows - 1), "line");
        size_t n = strlen(line);
        char *copy = malloc(n + 1);
        memcpy(copy, line, n);
        for (int k = (int)test_int(&r, 0, 6); k > 0 && n; k--)
            copy[test_int(&r, 0, (int64_t)n - 1)] =
                test_chance(&r, 0.5) ? "():,'<=0 X"[test_int(&r, 0, 9)] : (char)test_u64(&r);
        if (n) n = (size_t)test_int(&r, 0, (int64_t)n);
        char *exact = malloc(n ? n : 1);
        memcpy(exact, copy, n);
        st_xid x;
        test_problem("xid round %d: %.*s", round, (int)n, exact);
        if (st_xid_parse(exact, n, &x)) test_check(x.number > 0 && x.number < 10000, "%d", x.number);
        free(exact);
        free(copy);
    }
}

/* order of versions, against numbers */
static void versions(void **s)
{
    (void)s;
    assert_true(st_version_cmp("12.10", "12.9") > 0);
    assert_true(st_version_cmp("570.124.04", "570.124.06") < 0);
    assert_true(st_version_cmp("9.10.2", "9.10.2.21") < 0);
    assert_int_equal(st_version_cmp("13.0", "13"), 0);
    assert_true(st_version_cmp("580.65.06", "580.65.6") == 0);
    assert_true(st_version_cmp("", "1") < 0);
    bool exact;
    assert_string_equal(st_driver_cuda(facts, "580.95.05", &exact), "13.0");
    assert_true(exact);
    assert_string_equal(st_driver_cuda(facts, "540.1", &exact), "12.2");
    assert_false(exact);
    assert_null(st_driver_cuda(facts, "100.1", NULL));
    assert_string_equal(st_cuda_min_driver(facts, "12.4", false), "525.60.13");
    assert_string_equal(st_cuda_min_driver(facts, "13.2.0", false), "580.65.06");
    assert_string_equal(st_cuda_min_driver(facts, "10.2", false), "440.33");
    assert_null(st_cuda_min_driver(facts, "77.1", false));
    static const struct {
        const char *list;
        int cc, want;
    } lists[] = {{"50 60 70 75 80 86 90", 61, 1},
                 {"75 80 86 90 100 120 +PTX", 61, 0},
                 {"75 80 86 90 100 120 +PTX", 121, 1},
                 {"70 75 80 86 90 100 120", 89, 1},
                 {"50 60 70 75 80 86 90", 120, 0},
                 {"50 60 70 75 80 86 90 (list of 2.12)", 75, 1},
                 {"", 75, -1},
                 {"75 80 +PTX", 90, 2}};
    for (int i = 0; i < ST_COUNT(lists); i++)
        assert_int_equal(st_cc_in_list(lists[i].list, lists[i].cc), lists[i].want);
    static const struct {
        const char *name;
        int cc;
    } gpus[] = {{"rtx 2080 ti", 75}, {"RTX 2080Ti", 75}, {"GTX 1080", 61},  {"h100", 90},
                {"A100", 80},        {"rtx 4090", 89},   {"RTX 5090", 120}, {"Tesla T4", 75},
                {"V100", 70},        {"L4", 89},         {"b200", 100}};
    st_gpu g;
    for (int i = 0; i < ST_COUNT(gpus); i++) {
        if (!st_gpu_by_name(facts, gpus[i].name, &g)) fail_msg("%s is not found", gpus[i].name);
        if (g.cc != gpus[i].cc) fail_msg("%s: %s, %d", gpus[i].name, g.name, g.cc);
    }
    assert_false(st_gpu_by_name(facts, "banana", &g));
    assert_false(st_gpu_by_name(facts, "", &g));
    assert_true(st_gpu_by_id(facts, 0x2335, &g));
    assert_int_equal(g.cc, 90);
    assert_false(st_gpu_by_id(facts, 0xffff, &g));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables), cmocka_unit_test(literals),
                                       cmocka_unit_test(logs), cmocka_unit_test(xid_lines),
                                       cmocka_unit_test(versions)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
