/* SPDX-License-Identifier: Apache-2.0 */
/* test_hostile.c - damaged libraries, caches and trees: the doctor neither crashes, hangs nor leaves its root. */
#include "doctor/doctor.h"
#include "doctor/elf.h"
#include "doctor/machine.h"
#include "support.h"
#include "tree.h"
#include <sys/mman.h>
#include <time.h>

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

/* ---- libraries ------------------------------------------------------------------------------------------------------------- */
static void count_name(const char *name, void *arg) { *(size_t *)arg += strlen(name); }

static void libraries(void **s)
{
    (void)s;
    static unsigned char image[1 << 18];
    test_rng r = test_rng_make(21);
    tree t = {.facts = facts};
    elf_maker *m = malloc(sizeof *m);
    elf_start(m, "libcudnn_graph.so.9");
    elf_option(&t, m, "libcudnn_graph.so.9", "needed", "libc.so.6");
    elf_option(&t, m, "libcudnn_graph.so.9", "runpath", "$ORIGIN");
    elf_option(&t, m, "libcudnn_graph.so.9", "cudnn", "9.19.0");
    elf_option(&t, m, "libnvrtc.so.13", "nvrtc", "13.0");
    elf_option(&t, m, "libcublasLt.so.13", "cublas", "130100");
    size_t n = elf_finish(m, image, sizeof image);
    free(m);
    unsigned char *copy = malloc(n);
    for (int round = 0; round < test_rounds(20000); round++) {
        size_t k = n;
        memcpy(copy, image, n);
        int changes = round ? (int)test_int(&r, 1, 6) : 0;
        for (int i = 0; i < changes; i++) {
            /* headers, program headers and the dynamic table at the end get most of it */
            size_t at = test_chance(&r, 0.5)   ? (size_t)test_int(&r, 0, 180)
                        : test_chance(&r, 0.5) ? n - (size_t)test_int(&r, 8, 200)
                                               : (size_t)test_int(&r, 0, (int64_t)n - 8);
            static const uint64_t odd[] = {0,
                                           1,
                                           0xff,
                                           0x7fffffff,
                                           0xffffffff,
                                           0x7fffffffffffffff,
                                           0xffffffffffffffff,
                                           0x10000,
                                           0xfffffffffffffff0};
            uint64_t v = test_chance(&r, 0.5) ? odd[test_int(&r, 0, ST_COUNT(odd) - 1)] : test_u64(&r);
            memcpy(copy + at, &v, (size_t)test_int(&r, 1, 8));
        }
        if (round && test_chance(&r, 0.2)) k = (size_t)test_int(&r, 0, (int64_t)n);
        int fd = memfd_create("library", MFD_CLOEXEC);
        assert_true(fd >= 0 && write(fd, copy, k) == (ssize_t)k);
        st_elf e;
        const char *why = NULL;
        size_t names = 0;
        bool good = st_elf_read(fd, &e, &why);
        test_problem("library round %d", round);
        test_check(good || why, "refused without a reason");
        test_check(memchr(e.soname, 0, sizeof e.soname) && memchr(e.runpath, 0, sizeof e.runpath),
                   "unended strings");
        st_elf_version(fd, &e);
        st_elf_symbols(fd, count_name, &names);
        uint64_t offset, size;
        bool section = st_elf_section(fd, ".rodata", &offset, &size);
        test_check(!section || (offset <= k && size <= k - offset), "a section outside the file");
        if (round == 0) {
            assert_true(good);
            assert_string_equal(e.soname, "libcudnn_graph.so.9");
            assert_string_equal(e.needed[0], "libc.so.6");
            assert_string_equal(e.runpath, "$ORIGIN");
            assert_string_equal(e.version, "9.19.0");
            assert_true(names > 10);
        }
        close(fd);
    }
    free(copy);
}

/* ---- the loader's cache -------------------------------------------------------------------------------------------------------- */
static void see_entry(const char *name, const char *path, void *arg)
{
    *(size_t *)arg += strlen(name) + strlen(path);
}

static void caches(void **s)
{
    (void)s;
    static unsigned char image[1 << 16];
    test_rng r = test_rng_make(22);
    tree t = {.facts = facts};
    for (int i = 0; i < 20; i++) {
        char name[64], path[96];
        st_put(name, sizeof name, "libcudnn_%d.so.9", i);
        st_put(path, sizeof path, "/usr/lib/%s", name);
        tree_cache(&t, name, path);
    }
    size_t n = cache_image(&t, image, sizeof image);
    for (int round = 0; round < test_rounds(20000); round++) {
        size_t k = round && test_chance(&r, 0.3) ? (size_t)test_int(&r, 0, (int64_t)n) : n, sum = 0;
        char *copy = malloc(k ? k : 1); /* exact size: the sanitizer sees a byte too far */
        memcpy(copy, image, k);
        for (int i = round ? (int)test_int(&r, 1, 8) : 0; i > 0 && k > 8; i--) {
            uint32_t v = test_chance(&r, 0.3) ? 0xffffffffu : (uint32_t)test_u64(&r);
            size_t at =
                test_chance(&r, 0.3) ? (size_t)test_int(&r, 12, 40) : (size_t)test_int(&r, 0, (int64_t)k - 4);
            if (at + 4 <= k) memcpy(copy + at, &v, 4);
        }
        if (round % 7 == 1 && k > 16) memcpy(copy, "ld.so-1.7.0", 12);
        test_problem("cache round %d", round);
        bool good = st_ldcache_each(copy, k, see_entry, &sum);
        if (round == 0) assert_true(good && sum > 500);
        free(copy);
    }
}

/* ---- paths ------------------------------------------------------------------------------------------------------------------------ */
static void escapes(void **s)
{
    (void)s;
    tree t;
    tree_open(&t, fixtures, facts);
    tree_text(&t, "/etc/mine", "inside\n");
    tree_text(&t, "/deep/er/file", "deep\n");
    tree_link(&t, "/absolute", "/etc");
    tree_link(&t, "/upward", "../../../../../../../../etc");
    tree_link(&t, "/deep/up", "../../../..");
    tree_link(&t, "/chain1", "chain2");
    tree_link(&t, "/chain2", "/chain3");
    tree_link(&t, "/chain3", "./deep/../absolute");
    tree_link(&t, "/self", "self");
    tree_link(&t, "/ping", "pong");
    tree_link(&t, "/pong", "/ping");
    tree_link(&t, "/passwd", "/etc/passwd");
    tree_link(&t, "/proc/self", "/proc/1");
    char path[512];
    tree_path(&t, "/pipe", path);
    assert_int_equal(mkfifo(path, 0644), 0);
    int error;
    st_root *r = st_root_open(t.root, &error);
    assert_non_null(r);
    assert_false(st_root_is_host(r));
    static const char *const inside[] = {"/etc/mine",
                                         "/absolute/mine",
                                         "/upward/mine",
                                         "/deep/up/etc/mine",
                                         "/chain1/mine",
                                         "/../../../etc/mine",
                                         "etc/mine",
                                         "//etc//./mine",
                                         "/deep/up/../../absolute/mine",
                                         "/deep/er/../../etc/mine"};
    for (int i = 0; i < ST_COUNT(inside); i++) {
        char *text = st_root_read(r, inside[i], 100, NULL), real[ST_PATH];
        if (!text || strcmp(text, "inside\n")) fail_msg("%s: %s", inside[i], text ? text : strerror(errno));
        free(text);
        assert_true(st_root_resolve(r, inside[i], real));
        assert_string_equal(real, "/etc/mine");
    }
    /* these exist outside the root only */
    static const char *const outside[] = {"/etc/passwd",     "/absolute/passwd", "/upward/passwd",
                                          "/passwd",         "/deep/up/bin/sh",  "/../../../../bin/sh",
                                          "/proc/self/maps", "/proc/version"};
    for (int i = 0; i < ST_COUNT(outside); i++) {
        char *text = st_root_read(r, outside[i], 100, NULL);
        if (text) fail_msg("%s was read from outside the root", outside[i]);
    }
    errno = 0;
    assert_false(st_root_exists(r, "/self"));
    assert_int_equal(errno, ELOOP);
    assert_false(st_root_exists(r, "/ping/x"));
    assert_int_equal(errno, ELOOP);
    assert_int_equal(st_root_openfile(r, "/pipe"), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(st_root_openfile(r, "/etc"), -1);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(st_root_openfile(r, "/etc/mine/x"), -1);
    assert_int_equal(errno, ENOTDIR);
    char *longest = malloc(9000);
    memset(longest, 'a', 8999);
    longest[8999] = 0;
    assert_false(st_root_exists(r, longest));
    for (int i = 0; i + 2 < 9000; i += 2) memcpy(longest + i, "./", 2);
    longest[3000] = 0;
    assert_true(st_root_exists(r, longest));
    free(longest);
    st_list l;
    assert_true(st_root_list(r, "/absolute", &l));
    assert_int_equal(l.n, 1);
    st_list_free(&l);
    st_root_close(r);
    tree_remove(&t);
}

/* random links in a small tree: whatever resolves has the inode that the plain path under the root has */
static void random_links(void **s)
{
    (void)s;
    test_rng rng = test_rng_make(23);
    static const char *const names[] = {"a", "b", "c", "d", "a/b", "a/c", "b/d", "b/a/c"};
    static const char *const targets[] = {
        "a", "b",      "../a",         "../../b/d",       "/",    "/a", "/b/a", "..", "../..",
        ".", "c/../d", "/a/b/../../c", "../../../../tmp", "//b//"};
    for (int round = 0; round < test_rounds(60); round++) {
        tree t;
        tree_open(&t, fixtures, facts);
        for (int i = 0; i < ST_COUNT(names); i++) {
            char path[512], full[512];
            st_put(path, sizeof path, "/%s", names[i]);
            st_put(full, sizeof full, "%s%s", t.root, path);
            char *slash = strrchr(full, '/');
            *slash = 0;
            struct stat st;
            bool parent = lstat(full, &st) == 0 && S_ISDIR(st.st_mode);
            *slash = '/';
            if (!parent || lstat(full, &st) == 0) continue;
            int kind = (int)test_int(&rng, 0, 3);
            if (kind == 0)
                assert_int_equal(mkdir(full, 0755), 0);
            else if (kind == 1)
                tree_text(&t, path, "x");
            else
                assert_int_equal(symlink(targets[test_int(&rng, 0, ST_COUNT(targets) - 1)], full), 0);
        }
        st_root *r = st_root_open(t.root, NULL);
        for (int k = 0; k < 60; k++) {
            char path[256] = "", real[ST_PATH], full[1200];
            for (int i = (int)test_int(&rng, 1, 5); i > 0; i--) {
                static const char *const parts[] = {"a", "b", "c", "d", "..", "."};
                size_t used = strlen(path);
                st_put(path + used, sizeof path - used, "/%s", parts[test_int(&rng, 0, 5)]);
            }
            struct stat got, want;
            test_problem("links round %d path %s in %s", round, path, t.root);
            if (!st_root_resolve(r, path, real)) continue;
            st_put(full, sizeof full, "%s%s", t.root, real);
            test_check(st_root_stat(r, path, &got), "resolves but has no state");
            test_check(lstat(full, &want) == 0, "%s is not there", full);
            test_check(got.st_ino == want.st_ino && got.st_dev == want.st_dev, "another file than %s", full);
            test_check(!strstr(real, "/..") && !S_ISLNK(got.st_mode), "%s is not final", real);
        }
        st_root_close(r);
        tree_remove(&t);
    }
}

/* ---- whole machines ------------------------------------------------------------------------------------------------------------- */
typedef struct damage {
    test_rng r;
    int done;
} damage;
static damage *current;

static int spoil(const char *path, const struct stat *s, int type, struct FTW *w)
{
    (void)type, (void)w;
    test_rng *r = &current->r;
    if (S_ISDIR(s->st_mode) || !test_chance(r, 0.12)) return 0;
    current->done++;
    int kind = (int)test_int(r, 0, 6);
    if (kind == 0 || kind == 1) { /* random bytes in or instead of the content */
        if (!S_ISREG(s->st_mode)) return 0;
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0) return 0;
        for (int i = 0; i < 12; i++) {
            uint64_t v = test_u64(r);
            if (pwrite(fd, &v, 8,
                       kind ? (off_t)test_int(r, 0, 1 << 14) : (off_t)test_int(r, 0, s->st_size + 1)) != 8)
                break;
        }
        close(fd);
        return 0;
    }
    if (kind == 2) return truncate(path, (off_t)test_int(r, 0, s->st_size + 100)), 0;
    unlink(path);
    static const char *const targets[] = {"/",
                                          ".",
                                          "..",
                                          "/proc",
                                          "/sys/bus",
                                          "/etc/ld.so.cache",
                                          "../../../../../../../../etc/passwd",
                                          "/usr/lib/x86_64-linux-gnu",
                                          "x"};
    int bad = 0;
    if (kind == 3) bad = symlink(targets[test_int(r, 0, ST_COUNT(targets) - 1)], path);
    if (kind == 4) bad = mkfifo(path, 0644);
    if (kind == 5) bad = mkdir(path, 0755);
    (void)bad;
    return 0;
}

static void damaged_machines(void **s)
{
    (void)s;
    static const char *const names[] = {"h200_ubuntu2404",
                                        "c21_unattended_upgrade",
                                        "cudnn_incomplete_wheel",
                                        "c23_nvjitlink_shadow",
                                        "c25_unversioned_cudnn8",
                                        "hgx_fabric_version",
                                        "c29_blas_without_cblas",
                                        "dkms_stale",
                                        "conda",
                                        "xid79_this_boot",
                                        "link_loops",
                                        "compat_on_geforce"};
    damage d = {test_rng_make(24), 0};
    current = &d;
    for (int round = 0; round < test_rounds(120); round++) {
        tree t;
        tree_open(&t, fixtures, facts);
        tree_read(&t, names[round % ST_COUNT(names)]);
        tree_close(&t);
        nftw(t.root, spoil, 16, FTW_PHYS);
        test_problem("damaged machine round %d (%s)", round, names[round % ST_COUNT(names)]);
        struct timespec a, b;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
        st_doctor *doctor = st_doctor_run(t.root, NULL);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
        assert_non_null(doctor);
        double seconds = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        test_check(seconds < 5, "took %.1f s", seconds);
        FILE *f = fopen("/dev/null", "w");
        int code = st_doctor_text(doctor, f);
        test_check(code == st_doctor_json(doctor, f) && code == st_doctor_html(doctor, f),
                   "exit codes differ");
        fclose(f);
        st_doctor_free(doctor);
        tree_remove(&t);
    }
    assert_true(d.done > 100);
}

/* the machine that runs the test: whatever it is, the doctor comes to an end */
static void this_machine(void **s)
{
    (void)s;
    int error;
    st_doctor *d = st_doctor_run("/", &error);
    assert_non_null(d);
    assert_true(st_doctor_count(d) >= ST_LAYER_COUNT);
    st_doctor_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries),    cmocka_unit_test(caches),           cmocka_unit_test(escapes),
        cmocka_unit_test(random_links), cmocka_unit_test(damaged_machines), cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
