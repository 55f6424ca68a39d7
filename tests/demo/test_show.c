/* SPDX-License-Identifier: Apache-2.0 */
/* test_show.c - pictures as text, and the path of a call from a trace, against what a reader should see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "path.h"
#include "show.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *text;
static size_t size;

static FILE *start(void)
{
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    return f;
}

static void expect(FILE *f, const char *want)
{
    fclose(f);
    assert_string_equal(text, want);
    free(text);
}

static void pictures(void **state)
{
    (void)state;
    uint8_t p[16] = {255, 255, 0, 0, /* */ 255, 255, 0, 0, /* */ 120, 120, 0, 255, /* */ 120, 120, 255, 0};
    show_picture two[] = {{p, {"one", "right"}}, {p, {"a long caption", "b"}}};
    FILE *f = start();
    show_pictures(f, SHOW_ASCII, 4, 4, 1, two);
    expect(f, "@@  \n====\none\nrigh\n\n");
    f = start();
    show_pictures(f, SHOW_SHADES, 4, 4, 1, two);
    expect(f, "██  \n▒▒▒▒\none\nrigh\n\n");
    f = start();
    show_pictures(f, SHOW_COLOR, 4, 4, 1, two);
    fclose(f);
    /* white above white, black above black; the reset at the end of each line */
    assert_non_null(strstr(text, "\033[38;5;255m\033[48;5;255m▀"));
    assert_non_null(strstr(text, "\033[38;5;232m\033[48;5;232m▀\033[0m\n"));
    free(text);
    f = start(); /* beside each other: 38 columns hold two of 18 */
    show_pictures(f, SHOW_ASCII, 38, 4, 2, two);
    expect(f, "@@    @@  \n====  ====\none   a lo\nrigh  b\n\n");
    f = start(); /* half the size: area means */
    show_pictures(f, SHOW_ASCII, 2, 4, 1, two);
    expect(f, "#:\non\nri\n\n");
    f = start();
    show_pictures(f, SHOW_ASCII, 80, 4, 0, two);
    expect(f, "");
}

static void path(void **state)
{
    (void)state;
    char file[] = "/tmp/path-XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    FILE *t = fdopen(fd, "w");
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
          "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":12.000,\"dur\":5.000,\"cat\":\"tile\",\"name\":\"k\","
          "\"args\":{\"detail\":\"say \\\"x\\\"\"}},\n"
          "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":10.000,\"dur\":9.250,\"cat\":\"dnn\",\"name\":\"f\","
          "\"args\":{\"detail\":\"\"}},\n"
          "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":20.000,\"dur\":1.000,\"cat\":\"blas\",\"name\":\"g\","
          "\"args\":{\"detail\":\"d\"}}\n]}\n",
          t);
    fclose(t);
    FILE *f = start();
    assert_int_equal(path_show(f, file), 3);
    expect(f, "        9.2 us  dnn       f\n        5.0 us    tile      k  say \"x\"\n        1.0 us  blas   "
              "   g  d\n");
    remove(file);
    f = start();
    assert_int_equal(path_show(f, file), -1);
    expect(f, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pictures), cmocka_unit_test(path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
