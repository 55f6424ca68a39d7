/* SPDX-License-Identifier: Apache-2.0 */
/* The error chain: sentence, frames outermost first, remedy; per handle and per thread; never more than its buffers. */
#include "base/head.h"
#include "support.h"
#include <pthread.h>

static void composition(void **state)
{
    (void)state;
    st_err *e = st_err_thread();
    assert_ptr_equal(st_err_of(NULL), e);
    assert_int_equal(st_fail(e, STRATA_ERROR_MEMORY, "strata_gemm: %s has no memory for %d bytes", "cpu", 7),
                     STRATA_ERROR_MEMORY);
    assert_string_equal(strata_error(NULL), "strata_gemm: cpu has no memory for 7 bytes");
    st_err_frame(e, "runtime", "pool: %d asked", 7);
    st_err_frame(e, "tile", "gemm_x");
    st_err_frame(e, "blas", "gemm f32");
    st_err_remedy(e, "free %s", "something");
    assert_string_equal(
        strata_error(NULL),
        "strata_gemm: cpu has no memory for 7 bytes\n  blas      gemm f32\n  tile      gemm_x\n  "
        "runtime   pool: 7 asked\n  try       free something");
    assert_int_equal(e->status, STRATA_ERROR_MEMORY);
    st_fail(e, STRATA_ERROR_SHAPE, "second"); /* forgets the frames and the remedy of the first */
    assert_string_equal(strata_error(NULL), "second");
    assert_string_equal(strata_error(NULL), "second");
}

static void a_handles_own(void **state)
{
    (void)state;
    static _Alignas(ST_HANDLE_ALIGN) st_handle_head own = {.magic = ST_HANDLE_MAGIC};
    strata_handle *h = (strata_handle *)(void *)&own;
    assert_string_equal(strata_error(h), "no error");
    st_fail(st_err_thread(), STRATA_ERROR_SHAPE, "thread's");
    assert_string_equal(strata_error(h), "no error");
    st_fail(st_err_of(h), STRATA_ERROR_TYPE, "handle's");
    assert_string_equal(strata_error(h), "handle's");
    assert_string_equal(strata_error(NULL), "thread's");
    assert_non_null(strstr(strata_error((strata_handle *)(void *)((char *)&own + 4)), "not a strata_handle"));
    own.magic = 0;
    assert_non_null(strstr(strata_error(h), "not a strata_handle"));
}

static void lengths(void **state)
{
    (void)state;
    static char lots[5000];
    memset(lots, 'x', sizeof lots - 1);
    st_err *e = st_err_thread();
    st_fail(e, STRATA_ERROR_INTERNAL, "%s", lots);
    assert_true(strlen(strata_error(NULL)) == sizeof e->text - 1);
    for (int i = 0; i < 3 * ST_ERR_FRAMES; i++) st_err_frame(e, "layer name too long", "%d%s", i, lots);
    st_err_remedy(e, "%s", lots);
    assert_int_equal(e->frames, ST_ERR_FRAMES);
    const char *s = strata_error(NULL);
    assert_true(strlen(s) < sizeof e->composed);
    assert_non_null(
        strstr(s, "\n  layer name  7x"));            /* cut at 11 characters; frame 7 is the outermost kept */
    assert_non_null(strstr(s, "\n  try       xxx")); /* the remedy still fits */
}

static void *other_thread(void *arg)
{
    bool *ok = arg;
    *ok = !strcmp(strata_error(NULL), "no error");
    st_fail(st_err_thread(), STRATA_ERROR_TYPE, "the other's");
    *ok = *ok && !strcmp(strata_error(NULL), "the other's");
    return NULL;
}

static void one_a_thread(void **state)
{
    (void)state;
    pthread_t t;
    bool ok = false;
    st_fail(st_err_thread(), STRATA_ERROR_SHAPE, "mine");
    assert_int_equal(pthread_create(&t, NULL, other_thread, &ok), 0);
    pthread_join(t, NULL);
    assert_true(ok);
    assert_string_equal(strata_error(NULL), "mine");
}

static void names(void **state)
{
    (void)state;
    static const char *const want[] = {
        "OK",           "ERROR_ARGUMENT", "ERROR_SHAPE",       "ERROR_TYPE",   "ERROR_LAYOUT",
        "ERROR_ALIAS",  "ERROR_OVERFLOW", "ERROR_UNSUPPORTED", "ERROR_MEMORY", "ERROR_WORKSPACE",
        "ERROR_DEVICE", "ERROR_SYNTAX",   "ERROR_STATE",       "ERROR_IO",     "ERROR_INTERNAL"};
    char name[64];
    for (int i = 0; i < TEST_COUNT(want); i++) {
        snprintf(name, sizeof name, "STRATA_%s", want[i]);
        assert_string_equal(strata_status_name((strata_status)i), name);
    }
    assert_string_equal(strata_status_name((strata_status)15), "unknown status");
    assert_string_equal(strata_status_name((strata_status)-1), "unknown status");
}

/* What messages repeat: all of a short text, both ends of a long one, whole characters, no line breaks. */
static void cut(void **state)
{
    (void)state;
    char room[ST_CUT], text[400];
    assert_string_equal(st_cut("", room), "");
    assert_string_equal(st_cut("gemm\n4\t4", room), "gemm 4 4");
    for (size_t n = 70; n < sizeof text; n++) {
        for (size_t i = 0; i < n; i++) text[i] = (char)('a' + i % 26);
        text[n] = 0;
        const char *c = st_cut(text, room);
        const size_t k = strlen(c);
        assert_true(c == room && k == (n <= 80 ? n : 80));
        assert_true(n <= 80 ? !strcmp(c, text)
                            : !strncmp(c, text, 53) && !strncmp(c + 53, "...", 3) &&
                                  !strcmp(c + 56, text + n - 24));
    }
    for (int shift = 0; shift < 3; shift++) { /* characters of three bytes are dropped whole */
        memset(text, 'x', (size_t)shift);
        for (size_t i = (size_t)shift; i < 300; i += 3) memcpy(text + i, "\xe2\x82\xac", 3);
        text[300 + shift] = 0;
        const char *c = st_cut(text, room);
        assert_true(strlen(c) <= 80 && (strchr(c, '.') - c - shift) % 3 == 0 &&
                    strlen(strrchr(c, '.') + 1) % 3 == 0);
    }
    assert_string_equal(ST_SHORT("plain"), "plain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(composition),  cmocka_unit_test(a_handles_own), cmocka_unit_test(lengths),
        cmocka_unit_test(one_a_thread), cmocka_unit_test(names),         cmocka_unit_test(cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
