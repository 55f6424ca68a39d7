/* SPDX-License-Identifier: Apache-2.0 */
/* test_match.c - every sample of every table is recognised as its own row, in one text and in pieces; Xid lines of every form. */
#include "facts/facts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static st_matcher *matched(const char *text, size_t n, size_t piece)
{
    st_matcher *m = st_matcher_open(facts);
    assert_non_null(m);
    for (size_t i = 0; i < n; i += piece) st_matcher_feed(m, text + i, n - i < piece ? n - i : piece);
    st_matcher_finish(m);
    return m;
}

static const st_hit *find(const st_matcher *m, enum st_hit_kind kind, int row)
{
    for (int i = 0; i < st_matcher_count(m); i++)
        if (st_matcher_hit(m, i)->kind == kind && st_matcher_hit(m, i)->row == row)
            return st_matcher_hit(m, i);
    return NULL;
}

static void every_pattern_is_used(void **s)
{
    (void)s;
    st_matcher *m = st_matcher_open(facts);
    assert_non_null(m);
    assert_int_equal(st_matcher_refused(m), 0);
    st_matcher_close(m);
}

static void every_sample_of(const char *name, enum st_hit_kind kind)
{
    const st_table *t = st_facts_table(facts, name);
    assert_true(t->rows >= 9);
    for (int i = 0; i < t->rows; i++) {
        const char *sample = st_table_get(t, i, "sample");
        st_matcher *m = matched(sample, strlen(sample), 1 << 20);
        if (!find(m, kind, i))
            fail_msg("%s row %d (%s) does not match its sample: %s", name, i, st_table_at(t, i, 0), sample);
        st_matcher_close(m);
    }
}

static void samples(void **s)
{
    (void)s;
    every_sample_of("errors", ST_HIT_ERROR);
    every_sample_of("common_advice", ST_HIT_ADVICE);
}

/* all samples as one log, between noise, with prefixes, fed in pieces of every awkward size: same counts, right lines */
static void one_log(void **s)
{
    (void)s;
    const st_table *t = st_facts_table(facts, "errors");
    char *log = malloc(1 << 20);
    size_t n = 0;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < t->rows; i++) {
            n += (size_t)sprintf(log + n, "step %d loss 0.%d nothing to see\n", i, i * 7919);
            n += (size_t)sprintf(log + n, "2026-11-30T12:00:00 host app[12]: %s trailing\r\n",
                                 st_table_get(t, i, "sample"));
        }
    static const size_t pieces[] = {1, 7, 64, 4095, 1 << 20};
    for (int k = 0; k < ST_COUNT(pieces); k++) {
        st_matcher *m = matched(log, n, pieces[k]);
        assert_int_equal(st_matcher_lines(m), 6 * t->rows);
        assert_int_equal(st_matcher_bytes(m), (int64_t)n);
        for (int i = 0; i < t->rows; i++) {
            const st_hit *h = find(m, ST_HIT_ERROR, i);
            assert_non_null(h);
            assert_true(h->count >= 3 && h->count % 3 == 0);
            assert_true(h->first_line <= 2 * i + 2);
            assert_true(h->last_line >= 4 * t->rows + 2 * i + 2);
        }
        st_matcher_close(m);
    }
    free(log);
}

static void xid_formats(void **s)
{
    (void)s;
    const st_table *t = st_facts_table(facts, "xid_formats");
    int decoded = 0;
    for (int i = 0; i < t->rows; i++) {
        const char *line = st_table_get(t, i, "line");
        if (strncmp(line, "NVRM: Xid (", 11) != 0 || strchr(line, '\\')) continue;
        st_xid x;
        char text[512];
        snprintf(text, sizeof text, "[ 1234.567890] %s", line);
        assert_true(st_xid_parse(text, strlen(text), &x));
        const char *at = strstr(line, "): ") + 3;
        assert_int_equal(x.number, atoi(at));
        assert_true(strlen(x.device) >= 10);
        decoded++;
    }
    assert_true(decoded >= 9);
}

static void xid_fields(void **s)
{
    (void)s;
    st_xid x;
    const char *a =
        "NVRM: Xid (PCI:0000:41:00): 31, pid=12345, name=python3, Ch 00000008, intr 00000000. MMU Fault";
    assert_true(st_xid_parse(a, strlen(a), &x));
    assert_int_equal(x.number, 31);
    assert_int_equal(x.pid, 12345);
    assert_string_equal(x.name, "python3");
    assert_string_equal(x.device, "0000:41:00");
    assert_int_equal(strncmp(x.message, "Ch 00000008", 11), 0);
    const char *b =
        "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
    assert_true(st_xid_parse(b, strlen(b), &x));
    assert_int_equal(x.number, 79);
    assert_int_equal(x.pid, -1);
    assert_string_equal(x.name, "");
    assert_string_equal(x.message, "GPU has fallen off the bus.");
    const char *c =
        "NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 94, pid=7194, Contained: CE User Channel (0x9).";
    assert_true(st_xid_parse(c, strlen(c), &x));
    assert_int_equal(x.number, 94);
    assert_string_equal(x.instance, "GPU-I:05 GPU-CI:00");
    const char *d =
        "NVRM: Xid (PCI:0000:41:00): 45, pid=12345, name=python3, Ch 00000008 caused by previous Xid 31";
    assert_true(st_xid_parse(d, strlen(d), &x));
    assert_int_equal(x.number, 45);
    assert_int_equal(x.caused_by, 31);
    const char *e = "NVRM: Xid (0000:03:00): 14, Channel 00000001";
    assert_true(st_xid_parse(e, strlen(e), &x));
    assert_int_equal(x.number, 14);
    assert_string_equal(x.device, "0000:03:00");
    static const char *const bare[] = {"Xid 79", "XID: 79", "critical Xid=79 on Device", "what is Xid 79?"};
    for (int i = 0; i < ST_COUNT(bare); i++) {
        assert_true(st_xid_parse(bare[i], strlen(bare[i]), &x));
        assert_int_equal(x.number, 79);
    }
    static const char *const no[] = {"Xid",
                                     "Xid (PCI:0000:41:00): ",
                                     "SXid (PCI:0000:c5:00.0): 12028, x",
                                     "xid 79",
                                     "Xid (PCI:",
                                     "Xid (41): 3",
                                     "Xid 0",
                                     "MyXid 79",
                                     "Xid 99999999999999999999"};
    for (int i = 0; i < ST_COUNT(no); i++)
        if (st_xid_parse(no[i], strlen(no[i]), &x)) fail_msg("taken for an Xid: %s", no[i]);
}

/* where common advice is wrong: 13, 31, 43 are the program's; 48, 79, 94, 95 are not */
static void xid_classes(void **s)
{
    (void)s;
    static const int app[] = {8, 13, 31, 43, 45, 68, 69},
                     hard[] = {48, 54, 62, 64, 74, 79, 94, 95, 140, 143, 167};
    for (int i = 0; i < ST_COUNT(app); i++) assert_string_equal(st_xid_class(facts, app[i]), "application");
    for (int i = 0; i < ST_COUNT(hard); i++) {
        const char *c = st_xid_class(facts, hard[i]);
        assert_true(!strcmp(c, "hardware") || !strcmp(c, "bus") || !strcmp(c, "power"));
    }
}

static void xid_hits(void **s)
{
    (void)s;
    const char *log = "a\nNVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.\nb\n"
                      "NVRM: Xid (PCI:0000:42:00): 79, GPU has fallen off the bus.\n"
                      "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.\nXid 31, Xid 43 in dmesg";
    st_matcher *m = matched(log, strlen(log), 5);
    int xids = 0;
    for (int i = 0; i < st_matcher_count(m); i++) {
        const st_hit *h = st_matcher_hit(m, i);
        assert_true(h->kind !=
                    ST_HIT_ERROR); /* "fallen off the bus" is part of the Xid line, not a second finding */
        xids += h->kind == ST_HIT_XID;
    }
    assert_int_equal(xids, 4);
    assert_int_equal(st_matcher_hit(m, 0)->count, 2);
    assert_int_equal(st_matcher_hit(m, 0)->first_line, 2);
    assert_int_equal(st_matcher_hit(m, 0)->last_line, 5);
    assert_int_equal(st_matcher_lines(m), 6);
    st_matcher_close(m);
}

/* no newline for megabytes, binary bytes, NULs */
static void hostile_text(void **s)
{
    (void)s;
    size_t n = 5 << 20;
    char *p = malloc(n);
    uint64_t x = 88172645463325252ull;
    const char *word = "CUBLAS_STATUS_NOT_INITIALIZED";
    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < n; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            p[i] = kind == 0 ? 'a' : kind == 1 ? (char)x : kind == 2 ? 0 : "Xid ("[i % 5];
            if (kind == 1 && p[i] == '\n') p[i] = 0;
        }
        /* across the places where buffers of 2^20 end */
        for (int at = 1; at <= 4; at++) memcpy(p + ((size_t)at << 20) - 11, word, strlen(word));
        st_matcher *m = matched(p, n, 1 << 19);
        int row = st_table_find(st_facts_table(facts, "errors"), "id", "cublas_not_initialized");
        const st_hit *h = find(m, ST_HIT_ERROR, row);
        assert_non_null(h);
        assert_int_equal(h->count, 4);
        assert_int_equal(h->first_line, 1);
        assert_int_equal(st_matcher_lines(m), 1);
        assert_int_equal(st_matcher_bytes(m), (int64_t)n);
        for (const char *c = h->text; *c; c++) assert_true((unsigned char)*c >= 32);
        st_matcher_close(m);
    }
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_is_used),
        cmocka_unit_test(samples),
        cmocka_unit_test(one_log),
        cmocka_unit_test(xid_formats),
        cmocka_unit_test(xid_fields),
        cmocka_unit_test(xid_classes),
        cmocka_unit_test(xid_hits),
        cmocka_unit_test(hostile_text),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
