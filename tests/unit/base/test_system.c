/* SPDX-License-Identifier: Apache-2.0 */
/* Hash, clock, environment, processor: STRATA_ISA is tried in fresh processes (this program again, with a word as its argument), and so is a
 * privileged process where the machine lets us make one. */
#include "base/cpu.h"
#include "support.h"
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char self[512];

static void hash(void **state)
{
    (void)state;
    static unsigned char text[64];
    static uint64_t seen[20000];
    int n = 0;
    assert_true(st_hash(NULL, 0, 1) == st_hash(text, 0, 1));
    assert_true(st_hash(NULL, 0, 1) != st_hash(NULL, 0, 2));
    /* every length of zeros, every single bit in 40 bytes, two seeds: all different */
    for (size_t len = 0; len <= sizeof text; len++) seen[n++] = st_hash(text, len, 3);
    for (int bit = 0; bit < 320; bit++) {
        text[bit / 8] = (unsigned char)(1 << bit % 8);
        for (size_t len = 40; len <= 56; len++) seen[n++] = st_hash(text, len, 3);
        seen[n++] = st_hash(text, 40, 4);
        text[bit / 8] = 0;
    }
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) test_check(seen[i] != seen[j], "%d and %d collide", i, j);
    /* one flipped bit changes about half of the others, low ones included (they choose the bucket) */
    double flipped[64] = {0};
    for (int bit = 0; bit < 320; bit++) {
        uint64_t a = st_hash(text, 40, 3);
        text[bit / 8] = (unsigned char)(1 << bit % 8);
        a ^= st_hash(text, 40, 3);
        text[bit / 8] = 0;
        for (int k = 0; k < 64; k++) flipped[k] += (double)(a >> k & 1) / 320;
    }
    for (int k = 0; k < 64; k++)
        test_check(flipped[k] > 0.35 && flipped[k] < 0.65, "bit %d flips %g", k, flipped[k]);
    char *guarded = test_guard(40, true); /* reads no byte past the end */
    for (size_t len = 0; len <= 40; len++) st_hash(guarded + 40 - len, len, 0);
    test_guard_free(guarded);
}

static void clock_runs(void **state)
{
    (void)state;
    uint64_t a = st_now_ns();
    nanosleep(&(struct timespec){0, 2000000}, NULL);
    uint64_t b = st_now_ns();
    assert_true(b - a >= 2000000 && b - a < 5000000000u);
}

static void environment(void **state)
{
    (void)state;
    assert_true(getauxval(AT_SECURE) || st_env_allowed());
    setenv("STRATA_TEST_VARIABLE", "x", 1);
    assert_string_equal(st_env("STRATA_TEST_VARIABLE"), "x");
    setenv("STRATA_TEST_VARIABLE", "", 1);
    assert_null(st_env("STRATA_TEST_VARIABLE"));
    unsetenv("STRATA_TEST_VARIABLE");
    assert_null(st_env("STRATA_TEST_VARIABLE"));
}

/* A set-user-id copy of this program must not see the variable. It becomes `nobody`, so that nothing is gained by anyone; needs root to make
 * it and a file system that allows it. */
static void privileged_process(void **state)
{
    (void)state;
    char copy[] = "/tmp/strata-test-suid-XXXXXX", command[1200], text[64] = "";
    struct passwd *nobody = getpwnam("nobody");
    if (geteuid() != 0 || !nobody) skip();
    int fd = mkstemp(copy);
    assert_true(fd >= 0);
    close(fd);
    snprintf(command, sizeof command, "cp %s %s", self, copy);
    assert_int_equal(system(command), 0);
    assert_int_equal(chown(copy, nobody->pw_uid, (gid_t)-1), 0);
    assert_int_equal(chmod(copy, 04755), 0);
    snprintf(command, sizeof command, "STRATA_ISA=portable %s secure 2>&1", copy);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    bool answered = fgets(text, sizeof text, f) != NULL;
    pclose(f);
    unlink(copy);
    if (!answered || strncmp(text, "secure 1", 8)) skip(); /* mounted nosuid, or a sanitizer that refuses */
    assert_string_equal(text, "secure 1 allowed 0 variable (null)\n");
}

static void processor(void **state)
{
    (void)state;
    const st_cpu *c = st_cpu_get();
    assert_ptr_equal(c, st_cpu_get());
    assert_true(c->l1d >= 4096 && c->l1d <= 1 << 20);
    assert_true(c->l2 >= 65536 && c->l2 > c->l1d);
    assert_true(c->l3 >= c->l2 && c->l3 <= 256 << 20);
    assert_true(c->name[0] && c->cache_source[0]);
    assert_int_equal(c->level, c->isa & ST_ISA_AVX512 ? ST_LEVEL_AVX512
                               : c->isa & ST_ISA_AVX2 ? ST_LEVEL_AVX2
                                                      : ST_LEVEL_PORTABLE);
    if (c->isa & ST_ISA_AVX512) assert_true(c->isa & ST_ISA_AVX2);
#if defined(__x86_64__)
    if (!getenv("STRATA_ISA")) {
        __builtin_cpu_init();
        bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
        assert_int_equal((c->isa & ST_ISA_AVX2) != 0, avx2);
        assert_int_equal((c->isa & ST_ISA_AVX512) != 0, avx512);
    }
#endif
    char name[128];
    assert_string_equal(st_isa_name(0, name, sizeof name), "portable");
    assert_string_equal(st_isa_name(ST_ISA_AVX2 | ST_ISA_AVX512, name, sizeof name), "avx512 avx2 portable");
    assert_string_equal(st_isa_name(~0u, name, sizeof name),
                        "avx512 avx512-vnni avx512-bf16 avx2 neon portable");
}

static unsigned isa_of(const char *value)
{
    char command[700], text[64] = "";
    snprintf(command, sizeof command, "STRATA_ISA=%s %s isa", value, self);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    assert_int_equal(pclose(f), 0);
    return (unsigned)strtoul(text, NULL, 10);
}

/* The variable lowers what may be used, and never raises it. */
static void lowered(void **state)
{
    (void)state;
    unsigned all = isa_of("''");
    assert_int_equal(isa_of("portable"), 0);
    assert_int_equal(isa_of("avx2"), all & ST_ISA_AVX2);
    assert_int_equal(isa_of("avx512"), all & (ST_ISA_AVX2 | ST_ISA_AVX512));
    assert_int_equal(isa_of("unknown"), all);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "isa")) return printf("%u\n", st_cpu_get()->isa) < 0;
    if (argc > 1)
        return printf("secure %lu allowed %d variable %s\n", getauxval(AT_SECURE), st_env_allowed(),
                      st_env("STRATA_ISA") ? "seen" : "(null)") < 0;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash),        cmocka_unit_test(clock_runs),
        cmocka_unit_test(environment), cmocka_unit_test(privileged_process),
        cmocka_unit_test(processor),   cmocka_unit_test(lowered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
