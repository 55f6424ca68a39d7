/* SPDX-License-Identifier: Apache-2.0 */
/* The tuning database: what is stored is found again in another process; a damaged, locked or foreign file, a full disk and a folder that breaks
 * the rules each cost one warning and nothing else. The snapshot is a process's, so every case runs in a child of its own. */
#include "plan/sqlite.h"
#include "plan/tuning.h"
#include "support.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODE_A "s1.PGw_Fcr5v-B.NSfV.HUs"
static char work[64], file[128];
static const st_tuning_key key = {"some cpu, 1 thread", "gemm m<=16 n8 k8"},
                           other = {"some gpu", "gemm m<=16 n8 k8"};

static int setup(void **state)
{
    (void)state;
    strcpy(work, "/tmp/strata-tuning-XXXXXX");
    if (!mkdtemp(work)) return -1;
    snprintf(file, sizeof file, "%s/strata/tuning.db", work);
    unsetenv("STRATA_CACHE");
    return setenv("XDG_CACHE_HOME", work, 1);
}
static int teardown(void **state)
{
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", work);
    return system(line);
}

/* The case in a child: 0 is right, else the line of the check that failed. */
#define CHECK(x)                   \
    do {                           \
        if (!(x)) return __LINE__; \
    } while (0)
static void child(int (*run)(void))
{
    fflush(NULL);
    const pid_t p = fork();
    if (p == 0) {
        const int line = run();
        if (line) fprintf(stderr, "the child's check in line %d failed\n", line);
        _exit(line ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(p, &status, 0), p);
    test_check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child ended with %x", status);
}

static bool have_sqlite(void)
{
    char why[200];
    return st_sqlite_get(why, sizeof why) != NULL;
}

static void code_of(int i, char code[STRATA_PLAN_CODE])
{
    st_candidate c = {.order = "k"};
    snprintf(c.kernel, sizeof c.kernel, "kernel_%d", i);
    st_code_write(&c, code);
}

static int store_some(void)
{
    st_tuned t[3];
    const unsigned was = st_tuning_generation();
    for (int i = 0; i < 3; i++) {
        code_of(i, t[i].code);
        t[i].us = 3.0 - i + 0.25;
    }
    st_tuning_store(&key, t, 3);
    CHECK(st_tuning_generation() != was);
    st_tuned back[ST_TUNED_MAX];
    CHECK(st_tuning_find(&key, back, ST_TUNED_MAX) == 3 && st_tuning_find(&other, back, ST_TUNED_MAX) == 0);
    return 0;
}
static int find_some(void)
{
    st_tuned back[ST_TUNED_MAX];
    strata_tuning_info info;
    CHECK(st_tuning_find(&key, back, ST_TUNED_MAX) == 3);
    double sum = 0;
    for (int i = 0; i < 3; i++) sum += back[i].us;
    CHECK(sum == 6.75);
    CHECK(st_tuning_find(&key, back, 2) == 2 && st_tuning_find(&other, back, 1) == 0);
    CHECK(!strata_get_tuning_info(&info) && !info.warning[0] && info.measurements == 3 && info.problems == 1);
    CHECK(!strcmp(info.path, file));
    return 0;
}
static int find_nothing(void)
{
    st_tuned back[1];
    return st_tuning_find(&key, back, 1) == 0 ? 0 : __LINE__;
}
static int replace(void)
{
    st_tuned t = {.us = 9}, back[4];
    code_of(7, t.code);
    st_tuning_store(&key, &t, 1); /* the last search of a problem counts */
    CHECK(st_tuning_find(&key, back, 4) == 1 && back[0].us == 9);
    st_tuning_store(&other, &t, 1);
    return 0;
}
static int find_replaced(void)
{
    st_tuned back[4];
    CHECK(st_tuning_find(&key, back, 4) == 1 && back[0].us == 9 && st_tuning_find(&other, back, 4) == 1);
    return 0;
}

static void persists(void **state)
{
    (void)state;
    if (!have_sqlite()) skip();
    child(find_nothing);
    assert_int_equal(access(file, F_OK), -1); /* asking makes nothing */
    child(store_some);
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    child(find_some);
    child(replace);
    child(find_replaced);
}

/* Works from memory, with one warning that has the word. */
static const char *word;
static int goes_on(void)
{
    strata_tuning_info info;
    st_tuned back[4];
    st_tuning_find(&key, back, 1);
    const int line = store_some();
    if (line) return line;
    CHECK(!strata_get_tuning_info(&info));
    if (!strstr(info.warning, word)) fprintf(stderr, "warning: %s\n", info.warning);
    CHECK(strstr(info.warning, word) && info.measurements == 3);
    return 0;
}

static void put_file(const char *bytes, size_t n)
{
    char folder[100];
    snprintf(folder, sizeof folder, "%s/strata", work);
    mkdir(folder, 0700);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void damaged(void **state)
{
    (void)state;
    if (!have_sqlite()) skip();
    char aside[140];
    snprintf(aside, sizeof aside, "%s.damaged", file);
    put_file("this is not a database, and longer than a hundred bytes, so that nobody takes it for an empty "
             "or a new one....",
             110);
    word = "set aside";
    child(goes_on);
    assert_int_equal(access(aside, F_OK), 0);
    child(find_some); /* what was stored after that is there */
    /* every byte of a good file turned, a few at a time: never more than a warning */
    FILE *f = fopen(file, "r");
    char bytes[65536];
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    test_rng r = test_rng_make(60);
    for (int i = 0; i < test_rounds(40); i++) {
        char bad[sizeof bytes];
        memcpy(bad, bytes, n);
        for (int k = 0; k < 20; k++) bad[test_int(&r, 0, (int64_t)n - 1)] ^= (char)test_int(&r, 1, 255);
        put_file(bad, i % 4 ? n : (size_t)test_int(&r, 1, (int64_t)n));
        child(store_some);
    }
}

static void make_database(const char *sql)
{
    char why[200];
    const st_sqlite *q = st_sqlite_get(why, sizeof why);
    put_file("", 0);
    sqlite3 *db;
    assert_int_equal(q->open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL), SQLITE_OK);
    test_check(q->exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql, q->errmsg(db));
    q->close(db);
}

/* A database of another schema: one warning, set aside whole, and measurements are kept in a new file. */
static int turns_foreign(void)
{
    int line = find_nothing(); /* read while it was ours */
    if (line) return line;
    make_database("DROP TABLE IF EXISTS tuning; PRAGMA user_version = 9; CREATE TABLE theirs(x)");
    return goes_on();
}
static void another_format(void **state)
{
    (void)state;
    if (!have_sqlite()) skip();
    static const struct {
        const char *sql, *word;
    } other_schema[] = {
        {"PRAGMA user_version = 9", "its format is 9 and this version reads 1; it was set aside"},
        {"PRAGMA user_version = 2; CREATE TABLE tuning(x)", "its format is 2"},
        {"CREATE TABLE theirs(x)", "another program's database"},
        {"PRAGMA user_version = 1; CREATE TABLE theirs(x)", "another program's database"},
        {"CREATE TABLE tuning(x)", "another program's database"},
        {"PRAGMA user_version = 1; CREATE TABLE tuning(device, version, problem)", "no such column"},
        {"PRAGMA user_version = 1; CREATE TABLE tuning(device, version, problem, code, us)",
         "tuning.db.foreign"},
    };
    char aside[140];
    snprintf(aside, sizeof aside, "%s.foreign", file);
    for (int i = 0; i < TEST_COUNT(other_schema); i++) {
        unlink(aside);
        make_database(other_schema[i].sql);
        word = other_schema[i].word;
        child(goes_on);
        assert_int_equal(access(aside, F_OK), 0);
        child(find_some); /* no warning any more, and what was stored is there */
        unlink(file);
    }
    word = "its format is 9";
    child(turns_foreign);
    child(find_some);
}

static void foreign_rows(void **state)
{
    (void)state;
    if (!have_sqlite()) skip();
    char why[200];
    const st_sqlite *q = st_sqlite_get(why, sizeof why);
    child(store_some);
    sqlite3 *db;
    assert_int_equal(q->open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    static const char *const sql[] = {
        "INSERT INTO tuning VALUES('d', '" STRATA_VERSION_STRING "', 'p', 'no code', 1.0, 0)",
        "INSERT INTO tuning VALUES('d', '" STRATA_VERSION_STRING "', 'p', '" CODE_A "', -1.0, 0)",
        "INSERT INTO tuning VALUES('d', '" STRATA_VERSION_STRING "', 'p2', '" CODE_A "', 'text', 0)",
        "INSERT INTO tuning VALUES(x'00ff', '" STRATA_VERSION_STRING "', 'p', '" CODE_A "', 1.0, 0)",
        "INSERT INTO tuning SELECT hex(zeroblob(5000)), '" STRATA_VERSION_STRING "', 'p', '" CODE_A
        "', 1.0, 0",
        "INSERT INTO tuning VALUES('d', '9.9.9', 'p', '" CODE_A "', 1.0, 0)"};
    for (int i = 0; i < TEST_COUNT(sql); i++)
        test_check(q->exec(db, sql[i], NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql[i], q->errmsg(db));
    q->close(db);
    child(find_some); /* none of these is counted */
}

static void locked(void **state)
{
    (void)state;
    if (!have_sqlite()) skip();
    char why[200];
    const st_sqlite *q = st_sqlite_get(why, sizeof why);
    child(store_some);
    sqlite3 *db;
    assert_int_equal(q->open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(q->exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    word = "locked";
    child(goes_on);
    q->exec(db, "COMMIT", NULL, NULL, NULL);
    q->close(db);
    child(find_some);
}

static int full_disk(void)
{
    const struct rlimit small = {1024, 1024};
    signal(SIGXFSZ, SIG_IGN);
    CHECK(!setrlimit(RLIMIT_FSIZE, &small));
    return goes_on();
}
static void full(void **state)
{
    (void)state;
    if (!have_sqlite()) skip();
    word = "tuning.db";
    child(full_disk);
    child(find_nothing);
}

/* strata_get_tuning_info alone: the warning has the word, NULL: there is none; nothing is made */
static int told(void)
{
    strata_tuning_info info;
    CHECK(!strata_get_tuning_info(&info));
    const bool right = word ? strstr(info.warning, word) != NULL : !info.warning[0];
    if (!right) fprintf(stderr, "warning: %s\n", info.warning);
    CHECK(right);
    return 0;
}

static void folders(void **state)
{
    (void)state;
    char folder[100];
    snprintf(folder, sizeof folder, "%s/strata", work);
    assert_int_equal(mkdir(folder, 0755), 0);
    chmod(folder, 0755);
    word = "mode 0700";
    child(goes_on);
    child(told); /* whoever only asks is told so, too */
    rmdir(folder);
    close(open(folder, O_CREAT | O_WRONLY, 0600)); /* a file where the folder should be */
    word = "measurements stay in memory";
    child(goes_on);
    child(told);
    unlink(folder);
    word = NULL;
    child(told); /* a folder that is still to be made is no fault, */
    setenv("XDG_CACHE_HOME", "/no/such/place", 1);
    word = "there is no folder";
    child(told); /* one that cannot be made is */
    setenv("XDG_CACHE_HOME", work, 1);
    setenv("STRATA_CACHE", "of", 1);
    word = "STRATA_CACHE=of is not understood";
    child(told);
    setenv("STRATA_CACHE", "off", 1);
    word = "STRATA_CACHE=off";
    child(goes_on);
    word = NULL;
    child(told); /* nor what was asked for */
    unsetenv("STRATA_CACHE");
    assert_int_equal(access(folder, F_OK), -1);
}

/* ---- text ----------------------------------------------------------------------------------------------------------------------- */

static char text_path[100];
static int export_some(void)
{
    const int line = store_some();
    if (line) return line;
    CHECK(!strata_tuning_export(text_path));
    return 0;
}
static int import_some(void)
{
    int64_t n = -1;
    CHECK(!strata_tuning_import(text_path, &n) && n == 3);
    return find_some();
}
static int import_wrong(void)
{
    int64_t n = -1;
    FILE *f = fopen(text_path, "a");
    CHECK(f);
    fprintf(f, "\n# fine\nnot a line\n");
    fclose(f);
    CHECK(strata_tuning_import(text_path, &n) == STRATA_ERROR_IO && n == 0);
    CHECK(strstr(strata_error(NULL), "line 7") && strstr(strata_error(NULL), "five fields"));
    CHECK(find_nothing() == 0); /* nothing of it */
    static const char *const times[] = {
        "-5", "0",  "0.0", "nan",  "inf", "1e300",      "1e3",           "0x10",
        "",   " 5", "5 ",  "5\t5", "+5",  "0.00000001", "1000000000000", "5,0"};
    for (int i = 0; i < TEST_COUNT(times); i++) {
        CHECK((f = fopen(text_path, "w")));
        fprintf(f, "d\t" STRATA_VERSION_STRING "\tp\t" CODE_A "\t%s\n", times[i]);
        fclose(f);
        const bool refused = strata_tuning_import(text_path, &n) == STRATA_ERROR_IO && n == 0;
        if (!refused) fprintf(stderr, "'%s' was taken\n", times[i]);
        CHECK(refused && strstr(strata_error(NULL), "line 1"));
    }
    CHECK(strata_tuning_import("/no/such/file", NULL) == STRATA_ERROR_IO);
    CHECK(strata_tuning_export("/no/such/file") == STRATA_ERROR_IO);
    CHECK(strata_tuning_import(NULL, NULL) == STRATA_ERROR_ARGUMENT &&
          strata_tuning_export(NULL) == STRATA_ERROR_ARGUMENT);
    CHECK(strata_get_tuning_info(NULL) == STRATA_ERROR_ARGUMENT);
    if (!access("/dev/full", F_OK)) CHECK(strata_tuning_export("/dev/full") == STRATA_ERROR_IO);
    return 0;
}
static void as_text(void **state)
{
    (void)state;
    if (!have_sqlite()) skip();
    snprintf(text_path, sizeof text_path, "%s/text", work);
    child(export_some);
    unlink(file);
    child(import_some);
    child(find_some); /* from the file that the import wrote */
    unlink(file);
    child(import_wrong);
}

/* A child begins with its parent's snapshot, and both store on. */
static int forks(void)
{
    int line = store_some();
    if (line) return line;
    const pid_t p = fork();
    if (p == 0) {
        line = find_some();
        if (!line) line = replace();
        _exit(line ? 1 : 0);
    }
    int status;
    CHECK(waitpid(p, &status, 0) == p && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    st_tuned back[4];
    CHECK(st_tuning_find(&key, back, 4) == 3);
    st_tuning_store(&key, back, 3);
    return 0;
}
static void over_fork(void **state)
{
    (void)state;
    if (!have_sqlite()) skip();
    child(forks);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(persists), T(damaged), T(another_format), T(foreign_rows), T(locked),
                                       T(full),     T(folders), T(as_text),        T(over_fork)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
