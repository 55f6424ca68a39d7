/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel pack's reader: a pack written here is read back; cut, changed or foreign files are refused with a reason, and nothing that a
 * damaged one says is believed. */
#include "runtime/cuda/image.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cmocka.h>

static const char source[] = "extern \"C\" __global__ void fill(float *p) { p[0] = 1; }\n";
const st_gpu_source st_gpu_source_rows[] = {{"fill.cu", source, sizeof source - 1}, {NULL, NULL, 0}};

enum { ROWS = 3 };
static char path[] = "/tmp/strata-pack-XXXXXX";
static const char *const archs[ROWS] = {"sm_80", "sm_90a", "sm_100"};

static st_gpu_spec spec(void) { return (st_gpu_spec){.id = "fill", .source = "fill.cu", .entry = "fill"}; }

/* A pack of ROWS kernels whose code is the name of the architecture 100 times; returns its size. */
static size_t write_pack(void)
{
    st_pack_head h = {
        .magic = ST_PACK_MAGIC, .format = ST_PACK_FORMAT, .recipe = ST_IMAGE_RECIPE, .count = ROWS};
    st_image_record row[ROWS];
    char body[ROWS][512];
    st_gpu_spec s = spec();
    uint64_t at = sizeof h + sizeof row;
    for (int i = 0; i < ROWS; i++) {
        st_err e = {0};
        st_image_key key;
        char code[1024] = "";
        for (int k = 0; k < 100; k++) strcat(code, archs[i]);
        assert_true(st_image_key_of(&e, &s, archs[i], &key));
        st_gpu_image im = {.bytes = code, .size = strlen(code), .registers = 10 + i};
        row[i] = st_image_record_of(&key, archs[i], 13000, &s, &im);
        row[i].stored = ZSTD_compress(body[i], sizeof body[i], code, im.size, 3);
        assert_false(ZSTD_isError(row[i].stored));
        row[i].offset = at;
        at += row[i].stored;
    }
    st_image_record sorted[ROWS];
    memcpy(sorted, row, sizeof row);
    qsort(sorted, ROWS, sizeof *sorted, st_pack_order);
    h.bytes = at;
    h.hash = st_pack_hash(&h, sorted);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(&h, sizeof h, 1, f), 1);
    assert_int_equal(fwrite(sorted, sizeof sorted, 1, f), 1);
    for (int i = 0; i < ROWS; i++) assert_int_equal(fwrite(body[i], row[i].stored, 1, f), 1);
    assert_int_equal(fclose(f), 0);
    return (size_t)at;
}

static bool read_one(const st_pack *p, const char *arch, int driver, st_gpu_image *im, char *why)
{
    st_err e = {0};
    st_gpu_spec s = spec();
    st_image_record r;
    st_image_wish w = {.arch = arch, .driver = driver};
    assert_true(st_image_key_of(&e, &s, arch, &w.key));
    return st_pack_read_from(p, &w, &r, im, why, 300);
}

static void test_read(void **state)
{
    (void)state;
    st_pack p;
    st_gpu_image im;
    char why[300] = "";
    write_pack();
    if (!st_pack_open(&p, path)) fail_msg("%s", p.why);
    for (int i = 0; i < ROWS; i++) {
        if (!read_one(&p, archs[i], 13000, &im, why)) fail_msg("%s", why);
        assert_int_equal(im.size, 100 * strlen(archs[i]));
        assert_memory_equal(im.bytes, archs[i], strlen(archs[i]));
        assert_int_equal(im.registers, 10 + i);
        free(im.bytes);
    }
    assert_false(read_one(&p, "sm_86", 0, &im, why));
    assert_string_equal(why, "not in it");
    assert_false(read_one(&p, "sm_80", 12090, &im, why));
    assert_non_null(strstr(why, "driver"));
    /* cut while it is open */
    assert_int_equal(truncate(path, sizeof(st_pack_head) + ROWS * sizeof(st_image_record) + 4), 0);
    int found = 0;
    for (int i = 0; i < ROWS; i++)
        if (read_one(&p, archs[i], 0, &im, why))
            found++, free(im.bytes);
        else
            assert_non_null(strstr(why, "damaged"));
    assert_true(found < ROWS);
    st_pack_close(&p);
}

static void test_damage(void **state)
{
    (void)state;
    st_pack p;
    st_gpu_image im;
    char why[300] = "";
    size_t size = write_pack();
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit += 3) {
            write_pack();
            int fd = open(path, O_RDWR);
            char c;
            assert_int_equal(pread(fd, &c, 1, (off_t)i), 1);
            c = (char)(c ^ (1 << bit));
            assert_int_equal(pwrite(fd, &c, 1, (off_t)i), 1);
            close(fd);
            if (!st_pack_open(&p, path)) {
                assert_true(strlen(p.why) > 0);
                assert_true(i < sizeof(st_pack_head) + ROWS * sizeof(st_image_record));
                continue;
            }
            /* the head and the records are whole: one code is not */
            assert_true(i >= sizeof(st_pack_head) + ROWS * sizeof(st_image_record));
            int found = 0;
            for (int k = 0; k < ROWS; k++)
                if (read_one(&p, archs[k], 0, &im, why)) {
                    assert_memory_equal(im.bytes, archs[k], strlen(archs[k]));
                    found++;
                    free(im.bytes);
                }
            assert_true(found >= ROWS - 1); /* bits that a frame's head does not use may change nothing */
            st_pack_close(&p);
        }
    for (size_t n = 0; n < size; n += 7) {
        write_pack();
        assert_int_equal(truncate(path, (off_t)n), 0);
        assert_false(st_pack_open(&p, path));
    }
    assert_false(st_pack_open(&p, "/nonexistent/pack"));
    assert_false(st_pack_open(&p, "/tmp"));
}

static void test_process_pack(void **state)
{
    (void)state;
    st_err e = {0};
    st_gpu_spec s = spec();
    write_pack();
    setenv("STRATA_PACK_FILE", path, 1);
    setenv("STRATA_CACHE", "off", 1);
    const st_pack *p = st_pack_get();
    assert_non_null(p->row);
    assert_string_equal(p->path, path);
    /* a device takes its own code, or that of a lower part of its major number */
    static const struct {
        int cc;
        const char *arch;
    } want[] = {{80, "sm_80"}, {90, "sm_90a"},  {86, "sm_80"},
                {89, "sm_80"}, {103, "sm_100"}, {100, "sm_100"}};
    for (int i = 0; i < ST_COUNT(want); i++) {
        st_image_request q = {.spec = &s, .cc = want[i].cc};
        assert_int_equal(st_image_obtain(&e, &q), STRATA_OK);
        assert_string_equal(q.from, "pack");
        assert_string_equal(q.record.arch, want[i].arch);
        free(q.image.bytes);
    }
}

/* Nothing anywhere: the error says why each place has none, and what to do. */
static void test_nowhere(void **state)
{
    (void)state;
    st_err e = {0};
    st_gpu_spec s = spec();
    s.option[0] = "-DNOT_IN_THE_PACK";
    setenv("STRATA_NVRTC_LIB", "/nonexistent/libnvrtc.so", 1);
    st_image_request q = {.spec = &s, .cc = 90};
    assert_int_equal(st_image_obtain(&e, &q), STRATA_ERROR_DEVICE);
    assert_non_null(strstr(e.text, "fill"));
    assert_non_null(strstr(e.text, "9.0"));
    assert_true(e.frames >= 3);
    assert_string_equal(e.frame[0].layer, "pack");
    assert_string_equal(e.frame[0].text, "not in it");
    assert_string_equal(e.frame[1].layer, "cache");
    assert_string_equal(e.frame[1].text, "STRATA_CACHE=off");
    assert_string_equal(e.frame[2].layer, "nvrtc");
    bool told = false;
    for (int i = 2; i < e.frames; i++)
        told = told || strstr(e.frame[i].text, "/nonexistent/libnvrtc.so") != NULL;
    assert_true(told);
    assert_true(e.remedy[0] != 0);
}

int main(void)
{
    int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_process_pack), cmocka_unit_test(test_nowhere)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
