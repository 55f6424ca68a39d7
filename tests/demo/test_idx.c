/* SPDX-License-Identifier: Apache-2.0 */
/* test_idx.c - small IDX files, good and spoilt in every way that a reader could trip over; each message must name the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "idx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { COUNT = 5, ROWS = 4, COLS = 3, CLASSES = 10, PICTURES = 16 + COUNT * ROWS * COLS, LABELS = 8 + COUNT };

static char box[64], why[5000];
static uint8_t pictures[PICTURES + 8], labels[LABELS + 8];

static void big(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(x >> (24 - 8 * i));
}

static const char *path(const char *name)
{
    static char p[200];
    snprintf(p, sizeof p, "%s/%s", box, name);
    return p;
}

static void write_plain(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(path(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void write_gz(const char *name, const void *bytes, unsigned n)
{
    gzFile f = gzopen(path(name), "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, bytes, n), n);
    gzclose(f);
}

#define PIC "x-images-idx3-ubyte"
#define LAB "x-labels-idx1-ubyte"

static int fresh(void **state)
{
    (void)state;
    snprintf(box, sizeof box, "/tmp/idx-XXXXXX");
    if (!mkdtemp(box)) return -1;
    memset(pictures, 0, sizeof pictures);
    memset(labels, 0, sizeof labels);
    big(pictures, 0x803), big(pictures + 4, COUNT), big(pictures + 8, ROWS), big(pictures + 12, COLS);
    big(labels, 0x801), big(labels + 4, COUNT);
    for (int i = 16; i < PICTURES; i++) pictures[i] = (uint8_t)(i * 37);
    for (int i = 0; i < COUNT; i++) labels[8 + i] = (uint8_t)(9 - i);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    const char *name[] = {PIC, PIC ".gz", LAB, LAB ".gz"};
    for (int i = 0; i < 4; i++) remove(path(name[i]));
    return rmdir(box);
}

static idx_result get(idx_set *s) { return idx_read(box, "x", ROWS, COLS, CLASSES, s, why, sizeof why); }

static void expect_bad(const char *file, const char *text)
{
    idx_set s;
    assert_int_equal(get(&s), IDX_BAD);
    assert_null(s.pixels);
    assert_null(s.labels);
    if (!strstr(why, file) || !strstr(why, text))
        fail_msg("message: %s\nexpected: %s ... %s", why, file, text);
}

static void good(void **state)
{
    (void)state;
    idx_set s;
    for (int form = 0; form < 2; form++) {
        if (form) {
            remove(path(PIC)), remove(path(LAB));
            write_gz(PIC ".gz", pictures, PICTURES), write_gz(LAB ".gz", labels, LABELS);
        } else {
            write_plain(PIC, pictures, PICTURES), write_plain(LAB, labels, LABELS);
        }
        assert_int_equal(get(&s), IDX_OK);
        assert_int_equal(s.count, COUNT);
        assert_memory_equal(s.pixels, pictures + 16, COUNT * ROWS * COLS);
        assert_memory_equal(s.labels, labels + 8, COUNT);
        idx_free(&s);
    }
}

static void absent(void **state)
{
    (void)state;
    idx_set s;
    assert_int_equal(get(&s), IDX_ABSENT);
    assert_non_null(strstr(why, PIC));
    write_plain(PIC, pictures, PICTURES);
    assert_int_equal(get(&s), IDX_ABSENT);
    assert_non_null(strstr(why, LAB));
    assert_null(s.pixels);
}

static void cut_off(void **state)
{
    (void)state;
    write_plain(LAB, labels, LABELS);
    for (size_t n = 0; n < PICTURES; n++) {
        write_plain(PIC, pictures, n);
        expect_bad(PIC, "is cut off");
    }
    /* compressed: every shorter file must be refused, the checksum at the end included */
    remove(path(PIC));
    write_gz(PIC ".gz", pictures, PICTURES);
    struct stat st;
    assert_int_equal(stat(path(PIC ".gz"), &st), 0);
    for (off_t n = st.st_size - 1; n > 0; n--) {
        assert_int_equal(truncate(path(PIC ".gz"), n), 0);
        expect_bad(PIC ".gz", "");
    }
}

static void too_long(void **state)
{
    (void)state;
    write_plain(LAB, labels, LABELS);
    write_plain(PIC, pictures, PICTURES + 1);
    expect_bad(PIC, "goes on after");
    write_plain(PIC, pictures, PICTURES);
    write_plain(LAB, labels, LABELS + 1);
    expect_bad(LAB, "goes on after");
}

static void headers(void **state)
{
    (void)state;
    write_plain(LAB, labels, LABELS);
    big(pictures, 0x802);
    write_plain(PIC, pictures, PICTURES);
    expect_bad(PIC, "begins with 0x00000802 where 0x00000803 is due");
    big(pictures, 0x803), big(pictures + 8, 5);
    write_plain(PIC, pictures, PICTURES);
    expect_bad(PIC, "are 5 x 3, expected are 4 x 3");
    big(pictures + 8, ROWS), big(pictures + 4, 0);
    write_plain(PIC, pictures, PICTURES);
    expect_bad(PIC, "promises 0 items");
    big(pictures + 4, 0xffffffffu);
    write_plain(PIC, pictures, PICTURES);
    expect_bad(PIC, "promises 4294967295 items");
    big(pictures + 4, COUNT);
    write_plain(PIC, pictures, PICTURES);
    big(labels + 4, COUNT - 1);
    write_plain(LAB, labels, LABELS - 1);
    expect_bad(LAB, "holds 4 labels, but there are 5 pictures");
    big(labels + 4, COUNT), labels[8 + 3] = 10;
    write_plain(LAB, labels, LABELS);
    expect_bad(LAB, "label 3 is 10; labels run from 0 to 9");
}

static void damaged(void **state)
{
    (void)state;
    write_gz(LAB ".gz", labels, LABELS);
    write_gz(PIC ".gz", pictures, PICTURES);
    FILE *f = fopen(path(PIC ".gz"), "rb");
    static uint8_t bytes[4096];
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    /* bytes 4 to 9 of a gzip header are time, flags and system: not data; any other flip must be seen */
    for (size_t i = 0; i < n; i++) {
        if (i >= 4 && i < 10) continue;
        bytes[i] ^= 0x11;
        write_plain(PIC ".gz", bytes, n);
        expect_bad(PIC ".gz", "");
        bytes[i] ^= 0x11;
    }
    write_plain(PIC ".gz", "hello, hello, hello", 19);
    expect_bad(PIC ".gz", "is not a gzip file although its name ends in .gz");
}

static void a_folder(void **state)
{
    (void)state;
    mkdir(path(PIC), 0700);
    expect_bad(PIC, "directory");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, fresh, clean)
    const struct CMUnitTest tests[] = {TEST(good),    TEST(absent),  TEST(cut_off), TEST(too_long),
                                       TEST(headers), TEST(damaged), TEST(a_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
