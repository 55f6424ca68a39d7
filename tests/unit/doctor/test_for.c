/* SPDX-License-Identifier: Apache-2.0 */
/* test_for.c - which libraries a program takes: made machines (expected_for.tsv), the real loader as the oracle on this one, damaged trees. */
#include "doctor/for.h"
#include "support.h"
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

static char *asked(const char *root, const char *subject, bool json, int *code, char why[400])
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    why[0] = 0;
    *code = st_doctor_for(root, subject, f, json, why, 400);
    fclose(f);
    return text;
}

static void made_machines(void **s)
{
    (void)s;
    char path[500], file[16384];
    snprintf(path, sizeof path, "%s/expected_for.tsv", fixtures);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(file, 1, sizeof file, f);
    fclose(f);
    st_table t;
    assert_true(st_table_parse(&t, file, n) && t.rows >= 20);
    int bad = 0;
    for (int i = 0; i < t.rows; i++) {
        const char *subject = st_table_get(&t, i, "subject"), *verdict = st_table_get(&t, i, "verdict");
        char why[400], holds[400], id[64], *save = NULL;
        tree m;
        int code, code2;
        tree_open(&m, fixtures, facts);
        tree_read(&m, st_table_get(&t, i, "fixture"));
        tree_close(&m);
        char *text = asked(m.root, subject, false, &code, why),
             *json = asked(m.root, subject, true, &code2, why);
        bool good = code == atoi(st_table_get(&t, i, "exit")) && code2 == code &&
                    (code == 3) == (why[0] != 0) && !strstr(text, m.root);
        st_put(id, sizeof id, "\"verdict\": %s", strcmp(verdict, "-") ? "{" : "null");
        good = good && (code == 3 || strstr(json, id));
        st_put(id, sizeof id, "\"id\": \"%s\"", verdict);
        good = good && (!strcmp(verdict, "-") || strstr(json, id));
        st_put(holds, sizeof holds, "%s", st_table_get(&t, i, "holds"));
        for (char *w = strtok_r(holds, "|", &save); w; w = strtok_r(NULL, "|", &save))
            if (!strstr(text, w) && !strstr(why, w)) {
                fprintf(stderr, "lacks '%s'\n", w);
                good = false;
            }
        if (!good) {
            fprintf(stderr, "%s --for %s: exit %d, %s\n%s\n", st_table_get(&t, i, "fixture"), subject, code,
                    why, text);
            bad++;
        }
        free(text);
        free(json);
        tree_remove(&m);
    }
    st_table_free(&t);
    assert_int_equal(bad, 0);
}

/* On this machine: the same files as the loader itself names (ldd), for a handful of its programs. */
static void as_the_loader(void **s)
{
    (void)s;
    static const char *const programs[] = {"/usr/bin/git",     "/usr/bin/cmake", "/usr/bin/gcc",
                                           "/usr/bin/python3", "/bin/bash",      "/proc/self/exe"};
    char line[1024], real[1024];
    int compared = 0;
    for (int p = 0; p < ST_COUNT(programs); p++) {
        if (!realpath(programs[p], real)) continue;
        st_doctor *d = st_doctor_run("/", NULL);
        assert_non_null(d);
        st_loader l;
        assert_true(st_loader_open(&l, &d->m, getenv("LD_LIBRARY_PATH")));
        if (st_loader_add(&l, real, -1, "the program", NULL) >= 0) {
            char command[1100];
            snprintf(command, sizeof command, "ldd '%s' 2>/dev/null", real);
            FILE *f = popen(command, "r");
            while (f && fgets(line, sizeof line, f)) {
                char name[256], path[512];
                if (sscanf(line, " %255s => %511s", name, path) != 2 || path[0] != '/') continue;
                int at = st_loader_find(&l, name);
                if (at < 0) fail_msg("%s: the loader takes %s, the replay does not", real, name);
                char a[1024];
                if (realpath(path, a) && strcmp(a, l.o[at].real))
                    fail_msg("%s: %s is %s for the loader, %s for the replay", real, name, a, l.o[at].real);
                compared++;
            }
            if (f) pclose(f);
        }
        st_loader_close(&l);
        st_doctor_free(d);
    }
    print_message("%d libraries compared with the loader\n", compared);
    assert_true(compared > 3 || access("/usr/bin/ldd", X_OK));
}

/* Files overwritten at random, links in circles: an answer or a reason, always. */
static void damaged(void **s)
{
    (void)s;
    static const char *const subjects[] = {"python3", "origin", "two_cublas", "loop",
                                           "train",   "4242",   "opens"};
    static const char *const files[] = {
        "/usr/bin/python3.10",
        "/opt/app/bin/origin",
        "/opt/app/lib/libcudnn.so.9",
        "/opt/app/loop/libloop.so.1",
        "/etc/ld.so.cache",
        "/home/u/venv/pyvenv.cfg",
        "/home/u/venv/lib/python3.10/site-packages/torch/lib/libtorch_global_deps.so",
        "/proc/self/environ",
        "/opt/app/bin/opens"};
    test_rng r = test_rng_make(77);
    for (int round = 0; round < test_rounds(60); round++) {
        tree m;
        char path[512], why[400];
        tree_open(&m, fixtures, facts);
        tree_read(&m, "for_programs");
        tree_close(&m);
        for (int k = (int)test_int(&r, 1, 4); k > 0; k--) {
            const char *file = files[test_int(&r, 0, ST_COUNT(files) - 1)];
            tree_path(&m, file, path);
            if (test_chance(&r, 0.15)) {
                tree_link(&m, file, test_chance(&r, 0.5) ? file : "/../../../../../../etc/passwd");
                continue;
            }
            int fd = open(path, O_RDWR | O_NOFOLLOW);
            struct stat st;
            if (fd < 0 || fstat(fd, &st) || st.st_size < 16) {
                if (fd >= 0) close(fd);
                continue;
            }
            for (int i = 0; i < 12; i++) {
                uint64_t v = test_u64(&r);
                if (pwrite(fd, &v, (size_t)test_int(&r, 1, 8), test_int(&r, 0, st.st_size - 8)) < 0) break;
            }
            if (test_chance(&r, 0.2) && ftruncate(fd, test_int(&r, 0, st.st_size))) break;
            close(fd);
        }
        test_problem("damaged --for round %d", round);
        for (int i = 0; i < ST_COUNT(subjects); i++) {
            int code;
            char *text = asked(m.root, subjects[i], i & 1, &code, why);
            test_check(code >= 0 && code <= 3 && (code != 3 || why[0]), "%s: exit %d without a reason",
                       subjects[i], code);
            test_check(!strstr(text, "root:x:0"), "%s: read outside the root", subjects[i]);
            free(text);
        }
        tree_remove(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(made_machines), cmocka_unit_test(as_the_loader),
                                       cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
