/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel images without a device: keys, NVRTC and its report, files of the cache, the order pack - cache - NVRTC.
 * The rows of sources are this test's own: the library's table is an object of its archive that nothing here pulls in. Where NVRTC is
 * missing, tests that need it are skipped with a line. */
#include "driver/driver.h"
#include "runtime/cuda/image.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ROW(name, text)             \
    {                               \
        name, text, sizeof text - 1 \
    }
static const char plain[] = "#include \"two.cuh\"\n#include \"generated.cuh\"\n"
                            "#ifndef N\n#define N 4\n#endif\n"
                            "extern \"C\" __global__ void fill(float *p) { p[threadIdx.x] = two() * N; }\n"
                            "extern \"C\" __global__ void other(float *p) { p[threadIdx.x] = 1; }\n";
static const char two[] = "float two() { return 2.0f; }\n";
static const char unused[] = "float three() { return 3.0f; }\n";
static const char wrong[] = "extern \"C\" __global__ void fill(float *p)\n{\n    p[0] = nothing;\n}\n";
static const char noisy[] =
    "float idle() {}\nextern \"C\" __global__ void fill(float *p) { p[0] = idle(); }\n";
static const char spills[] =
    "extern \"C\" __global__ void __launch_bounds__(1024, 2) fill(float *p, int n)\n{\n"
    "    float a[96];\n"
    "#pragma unroll\n    for (int i = 0; i < 96; i++) a[i] = p[i];\n"
    "    for (int k = 0; k < n; k++) {\n"
    "#pragma unroll\n        for (int i = 0; i < 96; i++) a[i] = a[i] * a[(i * 7 + 5) % 96] + p[k];\n    }\n"
    "#pragma unroll\n    for (int i = 0; i < 96; i++) p[i] = a[i];\n}\n";
const st_gpu_source st_gpu_source_rows[] = {
    ROW("plain.cu", plain), ROW("two.cuh", two),    ROW("unused.cuh", unused),
    ROW("wrong.cu", wrong), ROW("noisy.cu", noisy), ROW("spills.cu", spills),
    {NULL, NULL, 0}};

static char folder[] = "/tmp/strata-image-XXXXXX";

static bool no_nvrtc(void)
{
    st_err e = {0};
    if (st_libnvrtc_open(&e, 90)) return false;
    printf("skipped: NVRTC is not here (%s)\n", e.text);
    return true;
}
#define NEEDS_NVRTC()           \
    do {                        \
        if (no_nvrtc()) skip(); \
    } while (0)

static st_gpu_spec spec(const char *source)
{
    return (st_gpu_spec){.id = "fill_test", .source = source, .entry = "fill"};
}

static bool same_key(st_gpu_spec a, st_gpu_spec b, const char *arch)
{
    st_err e = {0};
    st_image_key x, y;
    assert_true(st_image_key_of(&e, &a, "sm_90a", &x));
    assert_true(st_image_key_of(&e, &b, arch, &y));
    return memcmp(&x, &y, sizeof x) == 0;
}

static void test_key(void **state)
{
    (void)state;
    st_gpu_spec a = spec("plain.cu"), b = a;
    assert_true(same_key(a, b, "sm_90a"));
    assert_false(same_key(a, b, "sm_80"));
    b.option[0] = "-DN=8";
    assert_false(same_key(a, b, "sm_90a"));
    st_gpu_spec c = b;
    b.option[1] = "-DM=1";
    c.option[0] = "-DM=1";
    c.option[1] = "-DN=8";
    assert_false(same_key(b, c, "sm_90a")); /* order counts */
    st_gpu_spec joined = a, apart = a;
    joined.option[0] = "-DA-DB";
    apart.option[0] = "-DA";
    apart.option[1] = "-DB";
    assert_false(same_key(joined, apart, "sm_90a"));
    b = a;
    b.generated = "float g;";
    assert_false(same_key(a, b, "sm_90a"));
    c = b;
    c.generated = "#include \"unused.cuh\"";
    assert_false(same_key(b, c, "sm_90a"));
    b = a;
    b.entry = "other";
    assert_false(same_key(a, b, "sm_90a"));
    st_err e = {0};
    st_image_key k;
    b.source = "absent.cu";
    assert_false(st_image_key_of(&e, &b, "sm_90a", &k));
    assert_non_null(strstr(e.text, "absent.cu"));
    assert_string_equal(st_gpu_arch(90), "sm_90a");
    assert_string_equal(st_gpu_arch(120), "sm_120");
    assert_null(st_gpu_arch(999));
}

static void test_compile(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    st_err e = {0};
    st_gpu_image im;
    char line[200];
    st_gpu_spec s = spec("plain.cu");
    assert_int_equal(st_gpu_compile(&e, &s, "sm_90a", &im), STRATA_OK);
    assert_memory_equal(im.bytes,
                        "\x7f"
                        "ELF",
                        4);
    assert_true(im.registers > 0 && im.registers < 64);
    assert_int_equal(im.spill_stores + im.spill_loads + im.stack + im.smem, 0);
    assert_true(im.ms > 0);
    assert_false(st_image_complaint(&im, line, sizeof line));
    free(im.bytes);
    free(im.log);
    /* PTX for a virtual architecture */
    assert_int_equal(st_gpu_compile(&e, &s, "compute_80", &im), STRATA_OK);
    assert_non_null(strstr(im.bytes, ".target sm_80"));
    free(im.bytes);
    free(im.log);
    /* the generated header is seen */
    s.generated = "#error generated text\n";
    assert_int_equal(st_gpu_compile(&e, &s, "sm_80", &im), STRATA_ERROR_INTERNAL);
    assert_null(im.bytes);
    assert_non_null(strstr(e.frame[0].text, "generated.cuh(1)"));
}

static void test_compile_errors(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    st_err e = {0};
    st_gpu_image im;
    char line[200];
    st_gpu_spec s = spec("wrong.cu");
    assert_int_equal(st_gpu_compile(&e, &s, "sm_90a", &im), STRATA_ERROR_INTERNAL);
    assert_non_null(strstr(e.text, "fill_test"));
    assert_non_null(strstr(e.text, "wrong.cu"));
    assert_true(e.frames > 0);
    assert_string_equal(e.frame[0].layer, "nvrtc");
    assert_non_null(strstr(e.frame[0].text, "wrong.cu(3)"));
    assert_non_null(strstr(e.frame[0].text, "nothing"));
    /* a warning is code, and a complaint */
    s = spec("noisy.cu");
    assert_int_equal(st_gpu_compile(&e, &s, "sm_90a", &im), STRATA_OK);
    assert_true(st_image_complaint(&im, line, sizeof line));
    assert_non_null(strstr(line, "idle"));
    free(im.bytes);
    free(im.log);
    s = spec("spills.cu");
    assert_int_equal(st_gpu_compile(&e, &s, "sm_90a", &im), STRATA_OK);
    assert_true(im.spill_stores > 0 && im.spill_loads > 0);
    assert_int_equal(im.registers, 32);
    assert_true(st_image_complaint(&im, line, sizeof line));
    assert_non_null(strstr(line, "spill"));
    free(im.bytes);
    free(im.log);
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

static void fresh(void)
{
    strcpy(folder, "/tmp/strata-image-XXXXXX");
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    unsetenv("STRATA_CACHE");
}

static void gone(void)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static st_image_record put(const char *code, uint64_t word)
{
    st_gpu_spec s = spec("plain.cu");
    st_image_key key = {{word, ~word}};
    st_gpu_image im = {.bytes = (void *)code, .size = strlen(code), .registers = 17};
    char why[300] = "";
    st_image_record r = st_image_record_of(&key, "sm_90a", 13000, &s, &im);
    if (!st_cache_write(&r, code, why, sizeof why)) fail_msg("%s", why);
    return r;
}

static bool get(uint64_t word, int nvrtc, int driver, st_gpu_image *im, char *why)
{
    st_image_record r;
    st_image_wish w = {{{word, ~word}}, "sm_90a", nvrtc, driver};
    return st_cache_read(&w, &r, im, why, 300);
}

static void file_path(char *path, size_t n, uint64_t word)
{
    snprintf(path, n, "%s/strata/%016llx%016llx.kernel", folder, (unsigned long long)word,
             (unsigned long long)~word);
}

static void test_cache(void **state)
{
    (void)state;
    fresh();
    char why[300] = "", path[200];
    st_gpu_image im;
    assert_false(get(1, 0, 0, &im, why));
    assert_string_equal(why, "not there");
    put("some code", 1);
    assert_true(get(1, 0, 0, &im, why));
    assert_int_equal(im.size, 9);
    assert_int_equal(im.registers, 17);
    assert_memory_equal(im.bytes, "some code", 9);
    free(im.bytes);
    assert_true(get(1, 13000, 13010, &im, why));
    free(im.bytes);
    assert_false(get(1, 12080, 0, &im, why)); /* another compiler is asked for */
    assert_non_null(strstr(why, "STRATA_NVRTC_LIB"));
    assert_false(get(1, 0, 12080, &im, why)); /* the driver is too old for it */
    assert_non_null(strstr(why, "driver"));
    /* every single byte of a file counts: it is set aside, and found no more */
    struct stat st;
    file_path(path, sizeof path, 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    for (off_t i = 0; i < st.st_size; i++) {
        put("some code", 1);
        int fd = open(path, O_RDWR);
        char c;
        assert_int_equal(pread(fd, &c, 1, i), 1);
        c = (char)(c ^ 0x10);
        assert_int_equal(pwrite(fd, &c, 1, i), 1);
        close(fd);
        if (get(1, 0, 0, &im, why)) {
            /* `stored` and `offset` are not looked at in a cache file */
            assert_true(i >= 8 + 64 && i < 8 + 80);
            free(im.bytes);
        } else
            assert_true(access(path, F_OK) != 0);
    }
    put("some code", 1);
    assert_int_equal(truncate(path, st.st_size - 1), 0);
    assert_false(get(1, 0, 0, &im, why));
    strcat(path, ".damaged");
    assert_int_equal(access(path, F_OK), 0);
    gone();
}

static void test_cache_folder(void **state)
{
    (void)state;
    fresh();
    char why[300] = "", path[1024], own[200];
    st_gpu_image im;
    assert_true(st_cache_folder(path, sizeof path, why, sizeof why));
    snprintf(own, sizeof own, "%s/strata", folder);
    assert_string_equal(path, own);
    put("x", 1);
    setenv("STRATA_CACHE", "off", 1);
    assert_false(get(1, 0, 0, &im, why));
    assert_string_equal(why, "STRATA_CACHE=off");
    unsetenv("STRATA_CACHE");
    /* others could write here */
    assert_int_equal(chmod(own, 0770), 0);
    assert_false(get(1, 0, 0, &im, why));
    assert_non_null(strstr(why, "mode 0700"));
    st_gpu_spec s = spec("plain.cu");
    st_image_record r = st_image_record_of(&(st_image_key){{5, 6}}, "sm_80", 13000, &s,
                                           &(st_gpu_image){.bytes = "y", .size = 1});
    assert_false(st_cache_write(&r, "y", why, sizeof why));
    assert_int_equal(chmod(own, 0700), 0);
    assert_true(get(1, 0, 0, &im, why));
    free(im.bytes);
    /* a link instead of the folder, and instead of a file */
    char moved[220], file[220], link[220];
    snprintf(moved, sizeof moved, "%s/elsewhere", folder);
    assert_int_equal(rename(own, moved), 0);
    assert_int_equal(symlink(moved, own), 0);
    assert_false(get(1, 0, 0, &im, why));
    assert_int_equal(unlink(own), 0);
    assert_int_equal(rename(moved, own), 0);
    file_path(file, sizeof file, 1);
    file_path(link, sizeof link, 2);
    assert_int_equal(symlink(file, link), 0);
    assert_false(get(2, 0, 0, &im, why));
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_false(st_cache_folder(path, sizeof path, why, sizeof why));
    gone();
}

static void test_cache_trim(void **state)
{
    (void)state;
    fresh();
    char path[220];
    struct stat st;
    /* sparse files of 100 MB each pass the bound of 256 with the third: the one used longest ago goes, and old temporary files */
    st_gpu_image im;
    char why[300];
    put("first", 1);
    put("second", 2);
    for (uint64_t i = 1; i <= 2; i++) {
        file_path(path, sizeof path, i);
        assert_int_equal(truncate(path, 150 << 20), 0);
        struct timespec t[2] = {{1000 + (i == 1), 0}, {1000 + (i == 1), 0}};
        assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
    }
    snprintf(path, sizeof path, "%s/strata/tmp-1-2-3", folder);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    struct timespec t[2] = {{1000, 0}, {1000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
    put("third", 3);
    assert_int_not_equal(stat(path, &st), 0);
    file_path(path, sizeof path, 2);
    assert_int_not_equal(stat(path, &st), 0);
    file_path(path, sizeof path, 1);
    assert_int_equal(stat(path, &st), 0);
    assert_true(get(3, 0, 0, &im, why));
    free(im.bytes);
    gone();
}

/* ---- the order of places ---------------------------------------------------------------------------------------------------- */

static bool refuse_first(void *user, st_err *e, const st_gpu_image *im, bool *other)
{
    (void)im;
    int *calls = user;
    if (++*calls > 1) return true;
    *other = true;
    st_fail(e, STRATA_ERROR_DEVICE, "no binary for this GPU");
    return false;
}

static void test_obtain(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    fresh();
    st_err e = {0};
    st_gpu_spec s = spec("plain.cu");
    st_image_request q = {.spec = &s, .cc = 90};
    assert_int_equal(st_image_obtain(&e, &q), STRATA_OK);
    assert_string_equal(q.from, "nvrtc");
    st_gpu_image first = q.image;
    assert_int_equal(st_image_obtain(&e, &q), STRATA_OK);
    assert_string_equal(q.from, "cache");
    assert_int_equal(q.image.size, first.size);
    assert_memory_equal(q.image.bytes, first.bytes, first.size);
    assert_int_equal(q.image.registers, first.registers);
    free(q.image.bytes);
    free(first.bytes);
    free(first.log);
    /* code that the driver refuses is looked for elsewhere */
    int calls = 0;
    q.load = refuse_first;
    q.user = &calls;
    assert_int_equal(st_image_obtain(&e, &q), STRATA_OK);
    assert_string_equal(q.from, "nvrtc");
    assert_int_equal(calls, 2);
    free(q.image.bytes);
    free(q.image.log);
    /* a device newer than the compiler: PTX */
    q = (st_image_request){.spec = &s, .cc = 999};
    assert_int_equal(st_image_obtain(&e, &q), STRATA_OK);
    assert_memory_equal(q.record.arch, "compute_", 8);
    free(q.image.bytes);
    free(q.image.log);
    assert_int_equal(st_image_obtain(&e, &q), STRATA_OK);
    assert_string_equal(q.from, "cache");
    free(q.image.bytes);
    gone();
}

int main(void)
{
    setenv("STRATA_PACK_FILE", "off", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_compile),
        cmocka_unit_test(test_compile_errors),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_cache_folder),
        cmocka_unit_test(test_cache_trim),
        cmocka_unit_test(test_obtain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
