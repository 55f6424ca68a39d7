/* SPDX-License-Identifier: Apache-2.0 */
/* test_weights.c - what is saved comes back bit for bit; a spoilt file is refused with its name and leaves the network as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char file[64], why[5000];
static uint8_t *bytes;
static size_t size;

static net *make(uint64_t seed)
{
    net *n = net_create("cpu", 1, 2, seed, why, sizeof why);
    if (!n) fail_msg("%s", why);
    return n;
}

static uint32_t sum(net *n)
{
    uint32_t crc = 0;
    net_parameter p;
    for (int i = 0; net_parameter_at(n, i, &p); i++)
        crc = (uint32_t)crc32(crc, p.value.data, 4 * (uInt)strata_count(p.value));
    return crc;
}

static void write_file(size_t n)
{
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* Writes the right checksum behind the first n bytes. */
static void seal(size_t n)
{
    uint32_t crc = (uint32_t)crc32(0, bytes, (uInt)n);
    for (int i = 0; i < 4; i++) bytes[n + (size_t)i] = (uint8_t)(crc >> 8 * i);
    write_file(n + 4);
}

static void expect_refused(net *n, const char *text)
{
    uint32_t before = sum(n);
    why[0] = 0;
    assert_int_equal(weights_load(n, file, why, sizeof why), -1);
    if (!strstr(why, file) || !strstr(why, text)) fail_msg("message: %s\nexpected: %s", why, text);
    assert_int_equal(sum(n), before);
}

static int setup(void **state)
{
    (void)state;
    snprintf(file, sizeof file, "/tmp/weights-XXXXXX");
    int fd = mkstemp(file);
    if (fd < 0) return -1;
    close(fd);
    net *n = make(1);
    if (weights_save(n, file, why, sizeof why)) return -1;
    net_destroy(n);
    FILE *f = fopen(file, "rb");
    fseek(f, 0, SEEK_END);
    size = (size_t)ftell(f);
    rewind(f);
    bytes = malloc(size + 64);
    size_t got = bytes ? fread(bytes, 1, size, f) : 0;
    fclose(f);
    return got == size ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(bytes);
    return remove(file);
}

static void round_trip(void **state)
{
    (void)state;
    net *a = make(1), *b = make(2);
    assert_int_not_equal(sum(a), sum(b));
    if (weights_load(b, file, why, sizeof why)) fail_msg("%s", why);
    assert_int_equal(sum(a), sum(b));
    net_destroy(a);
    net_destroy(b);
}

static void spoilt(void **state)
{
    (void)state;
    net *n = make(2);
    for (size_t at = 12; at < size; at = at < 400 ? at + 1 : at + size / 61) {
        bytes[at] ^= 0x40;
        write_file(size);
        expect_refused(n, "damaged or cut off");
        bytes[at] ^= 0x40;
    }
    size_t cut[] = {0, 1, 19, 20, 100, size / 2, size - 1};
    for (int i = 0; i < 7; i++) {
        write_file(cut[i]);
        expect_refused(n, cut[i] < 20 ? "too short" : "cut off");
    }
    write_file(size + 1);
    expect_refused(n, "damaged or cut off");
    net_destroy(n);
}

static void others(void **state)
{
    (void)state;
    net *n = make(2);
    uint8_t copy[64];
    memcpy(copy, bytes, sizeof copy);
    bytes[0] = 'X';
    seal(size - 4);
    expect_refused(n, "is not a file of weights");
    bytes[0] = copy[0], bytes[8] = 2;
    seal(size - 4);
    expect_refused(n, "has version 2; this program reads version 1");
    bytes[8] = copy[8];
    bytes[20] = 'k'; /* the first name, conv1.weight */
    seal(size - 4);
    expect_refused(n, "tensor 0 is not conv1.weight");
    bytes[20] = copy[20];
    seal(size - 4 - 100); /* well formed, but the last tensor is too short */
    expect_refused(n, "is of another network");
    remove(file);
    expect_refused(n, "cannot be opened: No such file");
    net_destroy(n);
    write_file(0); /* teardown removes it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(round_trip, setup, teardown),
                                       cmocka_unit_test_setup_teardown(spoilt, setup, teardown),
                                       cmocka_unit_test_setup_teardown(others, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
