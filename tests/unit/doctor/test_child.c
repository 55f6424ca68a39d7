/* SPDX-License-Identifier: Apache-2.0 */
/* test_child.c - children that end, hang and crash; the line reader and the flat JSON reader on any bytes; the steps in a child of this program. */
#include "doctor/child.h"
#include "doctor/json.h"
#include "doctor/machine.h"
#include "doctor/steps.h"
#include "support.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void put(int fd, const char *text)
{
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static int body(const char *what, int fd)
{
    if (!strcmp(what, "lines")) put(fd, "one\ntwo\n\nlast without newline");
    if (!strcmp(what, "status")) return 3;
    if (!strcmp(what, "crash")) {
        put(fd, "before\n");
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would make it an exit */
        kill(getpid(), SIGSEGV);
    }
    if (!strcmp(what, "hang")) {
        put(fd, "before\n");
        for (;;) pause();
    }
    if (!strcmp(what, "long")) {
        char *big = malloc(100000);
        memset(big, 'x', 100000);
        for (int i = 0; i < 5; i++)
            if (write(fd, big, 100000) < 0) return 4;
        put(fd, "\nend\n");
    }
    if (!strcmp(what, "zeros")) return write(fd, "a\0b\n", 4) != 4;
    return 0;
}

static void children(void **s)
{
    (void)s;
    st_child c;
    char line[256], how[120];
    assert_true(st_child_start(&c, body, "lines"));
    static const char *const lines[] = {"one", "two", "", "last without newline"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(st_child_line(&c, st_seconds() + 10, line, sizeof line), 1);
        assert_string_equal(line, lines[i]);
    }
    assert_int_equal(st_child_line(&c, st_seconds() + 10, line, sizeof line), 0);
    assert_true(st_child_stop(&c, how, sizeof how));
    assert_string_equal(how, "");

    assert_true(st_child_start(&c, body, "status"));
    assert_int_equal(st_child_line(&c, st_seconds() + 10, line, sizeof line), 0);
    assert_false(st_child_stop(&c, how, sizeof how));
    assert_string_equal(how, "ended with status 3");

    assert_true(st_child_start(&c, body, "crash"));
    assert_int_equal(st_child_line(&c, st_seconds() + 10, line, sizeof line), 1);
    assert_int_equal(st_child_line(&c, st_seconds() + 10, line, sizeof line), 0);
    assert_false(st_child_stop(&c, how, sizeof how));
    assert_non_null(strstr(how, "signal 11"));

    assert_true(st_child_start(&c, body, "hang"));
    pid_t pid = c.pid;
    assert_int_equal(st_child_line(&c, st_seconds() + 10, line, sizeof line), 1);
    double t = st_seconds();
    assert_int_equal(st_child_line(&c, t + 0.2, line, sizeof line), -1);
    assert_true(st_seconds() - t < 5);
    assert_true(st_child_stop(&c, how, sizeof how));
    assert_int_equal(kill(pid, 0), -1); /* gone, and waited for */

    assert_true(st_child_start(&c, body, "long"));
    size_t sum = 0;
    int r;
    while ((r = st_child_line(&c, st_seconds() + 10, line, sizeof line)) == 1 && strcmp(line, "end"))
        sum += strlen(line);
    assert_int_equal(r, 1);
    assert_true(sum > 1000);
    st_child_stop(&c, how, sizeof how);

    assert_true(st_child_start(&c, body, "zeros"));
    assert_int_equal(st_child_line(&c, st_seconds() + 10, line, sizeof line), 1);
    assert_string_equal(line, "a b");
    st_child_stop(&c, how, sizeof how);
}

static void flat_json(void **s)
{
    (void)s;
    char v[64];
    const char *line = "{\"a\": \"x \\\"y\\\" \\\\ \\n\\u0041\", \"number\": -1.5e3, \"no\": null, \"b:\": "
                       "\"a\\\": 1\", \"last\": true}";
    assert_true(st_json_get(line, "a", v, sizeof v));
    assert_string_equal(v, "x \"y\" \\ \nA");
    assert_true(st_json_get(line, "number", v, sizeof v));
    assert_string_equal(v, "-1.5e3");
    assert_true(st_json_get(line, "no", v, sizeof v));
    assert_string_equal(v, "null");
    assert_true(st_json_get(line, "b:", v, sizeof v));
    assert_string_equal(v, "a\": 1");
    assert_true(st_json_get(line, "last", v, sizeof v));
    assert_false(st_json_get(line, "a\": 1", v, sizeof v));
    assert_false(st_json_get(line, "absent", v, sizeof v));
    assert_true(st_json_get(line, "a", v, 3));
    assert_string_equal(v, "x ");
    static const char *const none[] = {"",        "{",          "{}",           "[1]",         "{\"a\"",
                                       "{\"a\":", "{\"a\": \"", "{\"a\": \"\\", "{\"a\": {}}", "{\"a\" \"b\"",
                                       "null",    "{\"\\u"};
    for (int i = 0; i < ST_COUNT(none); i++) st_json_get(none[i], "a", v, sizeof v);
    test_rng r = test_rng_make(5);
    for (int round = 0; round < test_rounds(100000); round++) {
        size_t n = strlen(line);
        char *copy = malloc(n + 1); /* of the exact size */
        memcpy(copy, line, n + 1);
        for (int i = (int)test_int(&r, 1, 5); i > 0; i--)
            copy[test_int(&r, 0, (int64_t)n - 1)] = "\"\\{}:, \n\001\377u"[test_int(&r, 0, 10)];
        copy[test_int(&r, 0, (int64_t)n)] = 0;
        st_json_get(copy, "number", v, sizeof v);
        st_json_get(copy, "last", v, (size_t)test_int(&r, 1, 8));
        free(copy);
    }
}

/* what the writer writes, the reader reads */
static void there_and_back(void **s)
{
    (void)s;
    char *text = NULL, v[200];
    size_t n;
    FILE *f = open_memstream(&text, &n);
    st_json j = {.f = f, .line = true};
    st_json_open(&j, NULL, '{');
    st_json_string(&j, "quote", "a \"b\" \\ \n\tc");
    st_json_integer(&j, "big", 1796069777957);
    st_json_number(&j, "third", 1.0 / 3);
    st_json_number(&j, "nan", 0.0 / 0.0);
    st_json_bool(&j, "yes", true);
    st_json_close(&j, '}');
    fclose(f);
    assert_null(strchr(text, '\n') == text + n - 1 ? NULL : text);
    assert_true(st_json_get(text, "quote", v, sizeof v));
    assert_string_equal(v, "a \"b\" \\ \n\tc");
    assert_true(st_json_get(text, "big", v, sizeof v));
    assert_string_equal(v, "1796069777957");
    assert_true(st_json_get(text, "nan", v, sizeof v));
    assert_string_equal(v, "null");
    assert_true(st_json_get(text, "yes", v, sizeof v));
    assert_string_equal(v, "true");
    free(text);
}

/* a body that only pretends: each line becomes a finding, garbage none */
static int garbage(const char *what, int fd)
{
    (void)what;
    put(fd, "{\"step\": \"cuInit\", \"layer\": \"driver\", \"state\": \"begin\"}\nhello\n{\"state\": "
            "\"ok\"}\n{\"state\": \"odd\", \"text\": \"x\"}\n"
            "{\"layer\": \"nowhere\", \"state\": \"fault\", \"id\": \"x\", \"text\": \"broken\", \"fix\": "
            "\"mend\"}\n\377\376\n{\"state\": \"warn");
    return 1;
}
static void lines_of_children(void **s)
{
    (void)s;
    setenv("STRATA_CUDA_LIB", "/no/such/library.so", 1);
    setenv("STRATA_NVML_LIB", "/no/such/library.so", 1);
    st_live live = {.body = garbage};
    int error;
    st_doctor *d = st_doctor_look("/", &live, &error);
    assert_non_null(d);
    int broken = 0;
    for (int i = 0; i < st_doctor_count(d); i++) broken += !strcmp(st_doctor_finding(d, i)->text, "broken");
    assert_int_equal(broken, 2); /* NVML's child and the driver's */
    st_doctor_free(d);
    live.body = st_steps_body; /* no such library: nothing to say */
    d = st_doctor_look("/", &live, &error);
    assert_non_null(d);
    for (int i = 0; i < st_doctor_count(d); i++) {
        const st_finding *f = st_doctor_finding(d, i);
        if (!strncmp(f->id, "call_", 5)) fail_msg("%s: %s (%s)", f->id, f->text, f->evidence);
    }
    st_doctor_free(d);
    unsetenv("STRATA_CUDA_LIB");
    unsetenv("STRATA_NVML_LIB");
}

/* what an H200 answered (recorded lines of strata selftest --json --only nvml, deep and compile), played back */
static char recording[400];
static int play(const char *what, int fd)
{
    char line[4096];
    FILE *f = strcmp(what, "deep") ? NULL : fopen(recording, "r");
    while (f && fgets(line, sizeof line, f)) put(fd, line);
    return 0;
}
static void recorded(void **s)
{
    (void)s;
    static const char *const ids[] = {"nvml_device",     "cuinit",        "cuda_device", "cuda_context",
                                      "memory",          "kernel_ptx",    "memory_rate", "link_rate",
                                      "arithmetic_rate", "nvrtc_compile", "kernel"};
    snprintf(recording, sizeof recording, "%s", __FILE__);
    strcpy(strrchr(recording, '/'), "/../../fixtures/doctor/h200_lines.jsonl");
    setenv("STRATA_CUDA_LIB", "/no/such/library.so", 1);
    st_live live = {.body = play, .deep = true};
    st_doctor *d = st_doctor_look("/", &live, NULL);
    assert_non_null(d);
    for (int k = 0; k < ST_COUNT(ids); k++) {
        bool found = false;
        for (int i = 0; i < st_doctor_count(d); i++) {
            const st_finding *f = st_doctor_finding(d, i);
            found |= strcmp(f->id, ids[k]) == 0 && f->state == ST_FINDING_OK && f->text[0];
        }
        if (!found) fail_msg("%s is lost", ids[k]);
    }
    st_doctor_free(d);
    unsetenv("STRATA_CUDA_LIB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(children), cmocka_unit_test(flat_json),
                                       cmocka_unit_test(there_and_back), cmocka_unit_test(lines_of_children),
                                       cmocka_unit_test(recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
