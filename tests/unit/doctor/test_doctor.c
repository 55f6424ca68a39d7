/* SPDX-License-Identifier: Apache-2.0 */
/* test_doctor.c - made machines (tests/fixtures/doctor) and what the doctor must say about each. */
#include "doctor/doctor.h"
#include "facts/facts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tree.h"

static st_facts *facts;
static char fixtures[400];

static int set_up(void **s)
{
    (void)s;
    facts = st_facts_open();
    snprintf(fixtures, sizeof fixtures, "%s", __FILE__);
    strcpy(strrchr(fixtures, '/'), "/../../fixtures/doctor");
    return facts ? 0 : -1;
}
static int tear_down(void **s)
{
    (void)s;
    st_facts_close(facts);
    return 0;
}

static const st_finding *finding(const st_doctor *d, const char *id, const char *state)
{
    for (int i = 0; i < st_doctor_count(d); i++) {
        const st_finding *f = st_doctor_finding(d, i);
        if (!strcmp(f->id, id) && (!state || !strcmp(st_state_names[f->state], state))) return f;
    }
    return NULL;
}

/* brackets and quotes in balance, no raw control bytes: enough to catch a writer's slip without a parser */
static void check_json(const char *name, const char *text)
{
    char open[64];
    int depth = 0;
    bool string = false;
    for (const char *p = text; *p; p++) {
        if (string && *p == '\\')
            p++;
        else if (*p == '"')
            string = !string;
        else if (string && (unsigned char)*p < 32)
            fail_msg("%s: control byte in a JSON string", name);
        else if (!string && (*p == '{' || *p == '[') && depth < 63)
            open[depth++] = *p;
        else if (!string && (*p == '}' || *p == ']')) {
            if (depth == 0 || open[--depth] != (*p == '}' ? '{' : '['))
                fail_msg("%s: brackets of the JSON do not match", name);
        }
    }
    if (depth || string) fail_msg("%s: the JSON is cut short", name);
}

static char *written(int (*write)(const st_doctor *, FILE *), const st_doctor *d, int *code)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    *code = write(d, f);
    fclose(f);
    return text;
}

static int complaints;
static void complain(const char *name, const char *what, const char *want, const st_doctor *d)
{
    int code;
    char *text = written(st_doctor_text, d, &code);
    fprintf(stderr, "%s: %s: wanted '%s'; the doctor says:\n%s\n", name, what, want, text);
    free(text);
    complaints++;
}

static void check_machine(const st_table *t, int row)
{
    const char *name = st_table_get(t, row, "fixture"), *verdict = st_table_get(t, row, "verdict"),
               *layer = st_table_get(t, row, "layer");
    tree m;
    tree_open(&m, fixtures, facts);
    tree_read(&m, name);
    tree_close(&m);
    int error, code;
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    st_doctor *d = st_doctor_run(m.root, &error);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    assert_non_null(d);
    if ((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec) > 1.0)
        complain(name, "took over a second", "", d);
    const st_finding *v = st_doctor_verdict(d);
    if (strcmp(v ? v->id : "-", verdict)) complain(name, "verdict", verdict, d);
    if (strcmp(v ? st_layer_names[v->layer] : "-", layer)) complain(name, "layer", layer, d);
    const char *fix = st_table_get(t, row, "fix_holds");
    if (v && (!*v->fix || !*v->evidence)) complain(name, "a verdict without fix or evidence", "", d);
    if (v && strcmp(fix, "-") && !strstr(v->fix, fix)) complain(name, "fix", fix, d);
    char *text = written(st_doctor_text, d, &code);
    if (code != atoi(st_table_get(t, row, "exit")))
        complain(name, "exit code", st_table_get(t, row, "exit"), d);
    if (strstr(text, m.root)) complain(name, "names the test's own folder", "", d);
    free(text);
    text = written(st_doctor_json, d, &code);
    check_json(name, text);
    free(text);
    text = written(st_doctor_html, d, &code);
    if (!strstr(text, "</html>") || strstr(text, "<script")) complain(name, "HTML", "a whole page", d);
    free(text);
    char want[256], *save = NULL;
    snprintf(want, sizeof want, "%s", st_table_get(t, row, "findings"));
    for (char *w = strtok_r(want, " ", &save); w && strcmp(w, "-"); w = strtok_r(NULL, " ", &save)) {
        char *colon = strchr(w, ':');
        if (colon) *colon++ = 0;
        bool absent = *w == '!';
        if ((finding(d, w + absent, colon) != NULL) == absent) complain(name, "finding", w, d);
    }
    st_doctor_free(d);
    tree_remove(&m);
}

static void machines(void **s)
{
    (void)s;
    char path[500];
    snprintf(path, sizeof path, "%s/expected.tsv", fixtures);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = malloc(1 << 16);
    size_t n = fread(text, 1, 1 << 16, f);
    fclose(f);
    st_table t;
    assert_true(st_table_parse(&t, text, n));
    free(text);
    assert_true(t.rows >= 80);
    for (int i = 0; i < t.rows; i++) check_machine(&t, i);
    st_table_free(&t);
    assert_int_equal(complaints, 0);
}

static void no_such_root(void **s)
{
    (void)s;
    int error = 0;
    assert_null(st_doctor_run("/nonexistent/root", &error));
    assert_int_equal(error, ENOENT);
    assert_null(st_doctor_run("/etc/passwd", &error));
    assert_int_equal(error, ENOTDIR);
}

/* versions read from library files themselves */
static void versions_in_files(void **s)
{
    (void)s;
    tree m;
    tree_open(&m, fixtures, facts);
    tree_read(&m, "h200_ubuntu2404");
    tree_close(&m);
    st_doctor *d = st_doctor_run(m.root, NULL);
    assert_non_null(d);
    int code;
    char *json = written(st_doctor_json, d, &code);
    static const char *const parts[] = {
        "9.19.0", "9.14.0", "2.28.9", "13.1.0", "\"driver_max_cuda\": \"13.0\"", "580.159.04"};
    for (int i = 0; i < ST_COUNT(parts); i++)
        if (!strstr(json, parts[i])) fail_msg("%s is not in the report:\n%s", parts[i], json);
    free(json);
    st_doctor_free(d);
    tree_remove(&m);
}

/* mode 0660: those of the node's group may, others may not */
static void permission_by_group(void **s)
{
    (void)s;
    for (int member = 0; member < 2; member++) {
        tree m;
        char text[200], path[512];
        struct stat node;
        tree_open(&m, fixtures, facts);
        tree_read(&m, "nodes_permission");
        tree_close(&m);
        tree_path(&m, "/dev/nvidia0", path);
        assert_int_equal(stat(path, &node), 0);
        st_put(text, sizeof text,
               "Name:\tx\nUid:\t4242\t4242\t4242\t4242\nGid:\t4242\t4242\t4242\t4242\nGroups:\t4 %ld 1000 \n",
               (long)node.st_gid + !member);
        tree_text(&m, "/proc/self/status", text);
        st_doctor *d = st_doctor_run(m.root, NULL);
        assert_non_null(d);
        assert_true((finding(d, "nodes_permission", "fault") == NULL) == (member == 1));
        st_doctor_free(d);
        tree_remove(&m);
    }
}

/* what the doctor's findings are said to explain are rows of the table of errors */
static void answers_exist(void **s)
{
    (void)s;
    const st_table *t = st_facts_table(facts, "answers"), *errors = st_facts_table(facts, "errors");
    assert_true(t->rows > 30);
    for (int i = 0; i < t->rows; i++) {
        char list[400], *save = NULL;
        st_put(list, sizeof list, "%s", st_table_get(t, i, "messages"));
        for (char *w = strtok_r(list, " ", &save); w; w = strtok_r(NULL, " ", &save))
            if (st_table_find(errors, "id", w) < 0)
                fail_msg("answers: %s explains %s, which is no message", st_table_at(t, i, 0), w);
    }
}

static void plan_case(const char *request, int want, const char *const *holds)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    int code = st_doctor_plan(request, f, false);
    fclose(f);
    if (code != want) fail_msg("plan \"%s\": exit %d, wanted %d\n%s", request, code, want, text);
    for (int i = 0; holds[i]; i++)
        if (!strstr(text, holds[i])) fail_msg("plan \"%s\": lacks \"%s\"\n%s", request, holds[i], text);
    free(text);
    f = open_memstream(&text, &n);
    st_doctor_plan(request, f, true);
    fclose(f);
    if (want != ST_BAD_USAGE) check_json(request, text);
    free(text);
}

static void plans(void **s)
{
    (void)s;
    plan_case("rtx 2080 ti, pytorch 2.8", ST_HEALTHY,
              (const char *const[]){"compute capability 7.5", "2.8 cu126", "-- fits",
                                    "pip install torch==2.8.*", NULL});
    plan_case("GTX 1080, pytorch 2.11.0", ST_HEALTHY,
              (const char *const[]){"branch 580", "no code for sm_61", "whl/cu126", "CUDA 8.0 to 12.9",
                                    "9.10.2 is the last", NULL});
    plan_case("RTX 5090, torch 2.6", ST_FAULT,
              (const char *const[]){"no code for sm_120", "instead", "nothing fits", NULL});
    plan_case(
        "h100, driver 535.104.05, pytorch 2.11", ST_HEALTHY,
        (const char *const[]){"needs driver 580.65.06", "programs up to CUDA 12.2", "2.11 cu126", NULL});
    plan_case("sm_70; pytorch 2.11; driver 590.48", ST_HEALTHY,
              (const char *const[]){"take branch 580", "no code for sm_70", NULL});
    plan_case("cuda 12.4, gcc 14", ST_HEALTHY,
              (const char *const[]){"525.60.13", "gcc up to 13", "too new", NULL});
    plan_case("rtx 9999", ST_BAD_USAGE, (const char *const[]){"not understood", "rtx 9999", NULL});
    plan_case(" , ", ST_BAD_USAGE, (const char *const[]){"empty", NULL});
    plan_case("pytorch 9.9", ST_FAULT, (const char *const[]){"not in the tables", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines),          cmocka_unit_test(no_such_root),
        cmocka_unit_test(versions_in_files), cmocka_unit_test(permission_by_group),
        cmocka_unit_test(answers_exist),     cmocka_unit_test(plans)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
