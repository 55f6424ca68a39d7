/* SPDX-License-Identifier: Apache-2.0 */
/* Tracing: lines on stderr, a Chrome trace file that is valid JSON whatever the names hold, several threads, fork, an unwritable file.
 * The environment is tried in fresh processes: this program started again with a word as its argument. */
#include "base/trace.h"
#include "support.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], self[512];

static char *slurp(const char *path)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    if (!f) return NULL;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    return text;
}

/* ---- a JSON reader that accepts what RFC 8259 does and nothing else, UTF-8 included --------------------------------------------- */
static const char *json(const char *s);
static const char *space(const char *s)
{
    while (*s == ' ' || *s == '\n' || *s == '\t' || *s == '\r') s++;
    return s;
}
static const char *string(const char *s)
{
    if (*s++ != '"') return NULL;
    while (*s != '"') {
        unsigned char c = (unsigned char)*s;
        int more = c < 0x80                ? 0
                   : c >= 0xc2 && c < 0xe0 ? 1
                   : c >= 0xe0 && c < 0xf0 ? 2
                   : c >= 0xf0 && c < 0xf5 ? 3
                                           : -1;
        if (c < 32 || more < 0) return NULL;
        if (c == '\\') {
            c = (unsigned char)*++s;
            if (c == 'u') {
                for (int i = 1; i <= 4; i++)
                    if (!isxdigit((unsigned char)s[i])) return NULL;
                s += 4;
            } else if (!c || !strchr("\"\\/bfnrt", c)) {
                return NULL;
            }
        }
        for (int i = 1; i <= more; i++)
            if (((unsigned char)s[i] & 0xc0) != 0x80) return NULL;
        s += more + 1;
    }
    return s + 1;
}
static const char *members(const char *s, char end)
{
    s = space(s + 1);
    if (*s == end) return s + 1;
    for (;;) {
        if (end == '}') {
            if (!(s = string(space(s)))) return NULL;
            s = space(s);
            if (*s++ != ':') return NULL;
        }
        if (!(s = json(s))) return NULL;
        s = space(s);
        if (*s == end) return s + 1;
        if (*s++ != ',') return NULL;
    }
}
static const char *json(const char *s)
{
    s = space(s);
    if (*s == '{') return members(s, '}');
    if (*s == '[') return members(s, ']');
    if (*s == '"') return string(s);
    char *end;
    if (*s == '-' || isdigit((unsigned char)*s)) return strtod(s, &end), end > s ? end : NULL;
    return !strncmp(s, "true", 4)    ? s + 4
           : !strncmp(s, "false", 5) ? s + 5
           : !strncmp(s, "null", 4)  ? s + 4
                                     : NULL;
}
static bool valid_json(const char *s) { return s && (s = json(s)) && !*space(s); }
static int count(const char *s, const char *word)
{
    int n = 0;
    for (; s && (s = strstr(s, word)); s += strlen(word)) n++;
    return n;
}

static void json_reader_itself(void **state)
{
    (void)state;
    assert_true(valid_json("{\"a\":[1,-2.5e3,\"x\\u00e9\\n\",{}],\"b\":null}\n"));
    static const char *const bad[] = {"{",       "[1,]",  "{\"a\":1,}", "\"\x01\"", "\"\xff\"",
                                      "\"\\x\"", "[1] 2", "\"\xc3\"",   "{a:1}",    ""};
    for (int i = 0; i < TEST_COUNT(bad); i++) test_check(!valid_json(bad[i]), "%s", bad[i]);
}

static void event(const char *name, const char *detail)
{
    uint64_t t0 = st_trace_begin();
    if (t0) st_trace_end(t0, "tile", name, "%s", detail);
}

static void file_is_json(void **state)
{
    (void)state;
    char path[128], why[300];
    snprintf(path, sizeof path, "%s/trace.json", folder);
    assert_true(st_trace_set(path, why, sizeof why));
    assert_true(st_trace_begin() != 0);
    st_trace_end(1, "base", "cut", "%s", "");
    event("gemm \"quoted\" \\ back", "tab\there, newline\nhere, bell\a");
    event("greek \xce\xb1\xce\xb2, emoji \xf0\x9f\x98\x80", "lone \xff, cut \xce");
    event("surrogate \xed\xa0\x80, overlong \xc0\x80 \xe0\x80\x80", "high \xf4\x90\x80\x80");
    static char lots[3000];
    for (int i = 0; i < 2998; i += 2) memcpy(lots + i, "\xc3\xa9", 3);
    event("long", lots);     /* cut in 512 bytes, inside a character */
    event("long", lots + 1); /* or at its end */
    uint64_t outer = st_trace_begin(), inner = st_trace_begin();
    st_trace_end(inner, "tile", "inner", "%d", 1);
    st_trace_end(outer, "blas", "outer", "%d", 2);
    assert_true(st_trace_set(NULL, why, sizeof why));
    assert_true(st_trace_begin() == 0);
    char *text = slurp(path);
    test_check(valid_json(text), "%s", text ? text : "no file");
    assert_int_equal(count(text, "\"ph\":\"X\""), 8);
    assert_non_null(strstr(text, "greek \xce\xb1\xce\xb2, emoji \xf0\x9f\x98\x80"));
    assert_non_null(strstr(text, "lone ?, cut ?"));
    assert_non_null(strstr(text, "gemm \\\"quoted\\\" \\\\ back"));
    assert_non_null(strstr(text, "\"traceEvents\""));
    /* once more to the same file: it begins anew; and with no event at all */
    assert_true(st_trace_set(path, why, sizeof why));
    assert_true(st_trace_set("", why, sizeof why));
    text = slurp(path);
    assert_true(valid_json(text));
    assert_int_equal(count(text, "\"ph\""), 0);
}

static void python_reads_it(void **state)
{
    (void)state;
    char path[128], command[400], why[300];
    if (system("python3 -c pass >/dev/null 2>&1")) skip();
    snprintf(path, sizeof path, "%s/python.json", folder);
    assert_true(st_trace_set(path, why, sizeof why));
    event("a \"b\" \xff", "\x01\x7f \xce\xb1");
    assert_true(st_trace_set("0", why, sizeof why));
    snprintf(command, sizeof command,
             "python3 -c 'import json,sys; t = json.load(open(sys.argv[1])); e = t[\"traceEvents\"]; "
             "sys.exit(len(e) != 1 or e[0][\"cat\"] != \"tile\" or e[0][\"dur\"] < 0)' %s",
             path);
    assert_int_equal(system(command), 0);
}

static void *hammer(void *arg)
{
    for (int i = 0; i < 500; i++) event(arg, "x");
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    char path[128], why[300], *names[] = {"one", "two", "three"};
    pthread_t t[3];
    snprintf(path, sizeof path, "%s/threads.json", folder);
    assert_true(st_trace_set(path, why, sizeof why));
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&t[i], NULL, hammer, names[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    assert_true(st_trace_set(NULL, why, sizeof why));
    char *text = slurp(path);
    assert_true(valid_json(text));
    for (int i = 0; i < 3; i++) {
        char key[32];
        snprintf(key, sizeof key, "\"name\":\"%s\"", names[i]);
        assert_int_equal(count(text, key), 500);
    }
}

/* The child must neither write into its parent's trace, not even what was buffered, nor wait for a lock that nobody there can release. */
static void fork_with_a_file(void **state)
{
    (void)state;
    if (TEST_UNDER_TSAN) skip();
    char path[128], why[300];
    pthread_t t;
    snprintf(path, sizeof path, "%s/fork.json", folder);
    assert_true(st_trace_set(path, why, sizeof why));
    event("before", "x");
    assert_int_equal(pthread_create(&t, NULL, hammer, "beside"), 0);
    for (int i = 0; i < 10; i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            event("child", "x");
            exit(0); /* runs atexit and flushes stdio, as a program would */
        }
        int status;
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        test_check(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", (unsigned)status);
    }
    pthread_join(t, NULL);
    event("after", "x");
    assert_true(st_trace_set(NULL, why, sizeof why));
    char *text = slurp(path);
    assert_true(valid_json(text));
    assert_int_equal(count(text, "\"before\""), 1);
    assert_int_equal(count(text, "\"beside\""), 500);
    assert_int_equal(count(text, "\"after\""), 1);
    assert_int_equal(count(text, "\"child\""), 0);
}

static void unwritable(void **state)
{
    (void)state;
    char why[300] = "";
    assert_false(st_trace_set("/nonexistent/trace.json", why, sizeof why));
    assert_non_null(strstr(why, "/nonexistent/trace.json"));
    assert_non_null(strstr(why, strerror(ENOENT)));
    assert_true(st_trace_begin() == 0);
    assert_false(st_trace_set("/dev/full", why, sizeof why)); /* opens, takes nothing */
    assert_non_null(strstr(why, strerror(ENOSPC)));
    assert_true(st_trace_begin() == 0);
    assert_true(st_trace_set("off", why, sizeof why));
    assert_true(st_trace_begin() == 0);
}

/* Full after a while: the limit on a file's size stands for the disk. */
static void filled_up(void **state)
{
    (void)state;
    char path[128], why[300] = "";
    struct rlimit old, small;
    snprintf(path, sizeof path, "%s/full.json", folder);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_true(st_trace_set(path, why, sizeof why));
    for (int i = 0; i < 500; i++) st_trace_end(st_trace_begin(), "tile", "event", "%d", i);
    assert_false(st_trace_set(NULL, why, sizeof why));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_non_null(strstr(why, "incomplete"));
    assert_true(st_trace_begin() == 0);
    assert_true(st_trace_set(NULL, why, sizeof why));
}

/* Runs this program with `word` and the trace variable set; its stderr comes back. */
static char *again(const char *trace, const char *word)
{
    char path[128], command[900];
    snprintf(path, sizeof path, "%s/stderr.txt", folder);
    snprintf(command, sizeof command, "%s%s%s %s %s 2>%s", trace ? "STRATA_TRACE='" : "env -u STRATA_TRACE",
             trace ? trace : "", trace ? "'" : "", self, word, path);
    assert_int_equal(system(command), 0);
    return slurp(path);
}

static void environment(void **state)
{
    (void)state;
    char path[128];
    char *text = again("1", "events");
    assert_int_equal(count(text, "strata"), 2);
    const char *first = strstr(text, "inner"), *second = strstr(text, "outer");
    assert_true(first && second && first < second); /* a line when an event ends */
    assert_non_null(strstr(text, "strata   tile")); /* depth shows as indentation */
    assert_non_null(strstr(text, "strata blas"));
    assert_non_null(strstr(text, " us  detail 7"));
    assert_int_equal(count(again("stderr", "events"), "strata"), 2);
    assert_string_equal(again(NULL, "events"), "");
    assert_string_equal(again("", "events"), "");
    assert_string_equal(again("0", "events"), "");
    assert_string_equal(again("off", "events"), "");
    assert_non_null(strstr(again("/dev/full", "events"), "STRATA_TRACE ignored"));
    text = again("/nonexistent/t.json", "events");
    assert_non_null(strstr(text, "STRATA_TRACE ignored"));
    assert_non_null(strstr(text, "/nonexistent/t.json"));
    snprintf(path, sizeof path, "%s/env.json", folder);
    assert_string_equal(again(path, "events"), "");
    text = slurp(path); /* closed by exit, without any call */
    test_check(valid_json(text), "%s", text ? text : "no file");
    assert_int_equal(count(text, "\"ph\""), 2);
}

static int events(void)
{
    st_trace_init();
    st_trace_init();
    uint64_t outer = st_trace_begin(), inner = st_trace_begin();
    if (inner) st_trace_end(inner, "tile", "inner", "detail %d", 7);
    if (outer) st_trace_end(outer, "blas", "outer", "detail %d", 8);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) return events();
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) return 1;
    snprintf(folder, sizeof folder, "/tmp/strata-test-trace-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_reader_itself), cmocka_unit_test(file_is_json),
        cmocka_unit_test(python_reads_it),    cmocka_unit_test(threads),
        cmocka_unit_test(fork_with_a_file),   cmocka_unit_test(unwritable),
        cmocka_unit_test(filled_up),          cmocka_unit_test(environment),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return (argv[0] && system(command)) || failed;
}
