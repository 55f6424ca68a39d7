/* SPDX-License-Identifier: Apache-2.0 */
/* Handles and devices, streams and events: what they say, what they refuse, many at once, one default a thread. */
#include "runtime/handle.h"
#include "support.h"
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

static void devices(void **state)
{
    (void)state;
    strata_device_info info;
    strata_handle *h;
    assert_int_equal(strata_device_count(), 1);
    assert_string_equal(strata_device_name(0), "cpu");
    assert_null(strata_device_name(1));
    assert_null(strata_device_name(-1));
    memset(&info, 0xff, sizeof info);
    test_ok(NULL, strata_get_device_info("cpu", &info));
    assert_string_equal(info.device, "cpu");
    assert_true(info.name[0] && info.isa[0] && info.cache_source[0]);
    assert_true(info.threads >= 1 && info.threads <= 256 && info.processors >= 1);
    assert_true(info.l1d > 0 && info.l2 > info.l1d && info.l3 >= info.l2 && info.memory > 1 << 20);
    assert_true(info.compute_capability == 0 && info.multiprocessors == 0 && info.driver_version == 0);
    for (int i = 0; i < 4; i++) assert_true(info.reserved[i] == 0);
    static const char *const same[] = {"cpu", "cpu:0", "auto", NULL};
    for (int i = 0; i < TEST_COUNT(same); i++) {
        test_ok(NULL, strata_create(&h, same[i]));
        assert_string_equal(strata_handle_device(h), "cpu");
        assert_string_equal(strata_error(h), "no error");
        strata_destroy(h);
    }
    h = (strata_handle *)(void *)&info;
    test_error(NULL, strata_create(&h, "cuda:0"), STRATA_ERROR_DEVICE, "strata_create", "\"cuda:0\"",
               "libcuda.so.1", "driver", "try", "\"cpu\"");
    assert_null(h);
    test_error(NULL, strata_create(&h, "tpu"), STRATA_ERROR_DEVICE, "strata_create", "\"tpu\"", "\"cpu\"");
    test_error(NULL, strata_create(&h, ""), STRATA_ERROR_DEVICE, "strata_create", "\"\"");
    test_error(NULL, strata_create(&h, "cpu:1"), STRATA_ERROR_DEVICE, "\"cpu:1\"");
    test_error(NULL, strata_create(NULL, "cpu"), STRATA_ERROR_ARGUMENT, "strata_create", "NULL");
    test_error(NULL, strata_get_device_info("cpu", NULL), STRATA_ERROR_ARGUMENT, "strata_get_device_info",
               "NULL");
    test_error(NULL, strata_get_device_info("gpu", &info), STRATA_ERROR_DEVICE, "strata_get_device_info",
               "\"gpu\"");
    assert_string_equal(strata_handle_device(NULL), "none");
}

/* Every function that takes a handle recognises NULL, and one that was destroyed. */
static void no_handle(void **state)
{
    (void)state;
    strata_handle *dead, *h[2] = {NULL, NULL};
    strata_memory_stats stats;
    strata_stream *s;
    strata_event *e;
    void *p;
    test_ok(NULL, strata_create(&dead, "cpu"));
    strata_destroy(dead);
    h[1] = dead;
    for (int i = 0; i < 2; i++) {
        strata_status want = i ? STRATA_ERROR_STATE : STRATA_ERROR_ARGUMENT;
        const char *is = i ? "destroyed" : "NULL";
#define REFUSED(call, name) test_error(NULL, call, want, name ": the handle is", is, "strata_create")
        REFUSED(strata_alloc(h[i], 8, &p), "strata_alloc");
        REFUSED(strata_free(h[i], &p), "strata_free");
        REFUSED(strata_get_memory_stats(h[i], &stats), "strata_get_memory_stats");
        REFUSED(strata_trim(h[i]), "strata_trim");
        REFUSED(strata_set_allocator(h[i], NULL), "strata_set_allocator");
        REFUSED(strata_set_workspace(h[i], NULL, 0), "strata_set_workspace");
        REFUSED(strata_set_workspace_limit(h[i], 0), "strata_set_workspace_limit");
        REFUSED(strata_set_threads(h[i], 1), "strata_set_threads");
        REFUSED(strata_set_parallel_for(h[i], NULL, NULL, 0), "strata_set_parallel_for");
        REFUSED(strata_stream_create(h[i], &s), "strata_stream_create");
        REFUSED(strata_set_stream(h[i], NULL), "strata_set_stream");
        REFUSED(strata_synchronize(h[i]), "strata_synchronize");
        REFUSED(strata_event_create(h[i], &e), "strata_event_create");
        assert_int_equal(strata_get_threads(h[i]), 0);
        assert_string_equal(strata_handle_device(h[i]), "none");
        strata_destroy(h[i]); /* once more: nothing happens */
    }
}

static void streams_and_events(void **state)
{
    (void)state;
    strata_handle *h;
    strata_stream *s, *t;
    strata_event *a, *b;
    double ms = -1;
    test_ok(NULL, strata_create(&h, "cpu"));
    test_ok(h, strata_stream_create(h, &s));
    test_ok(h, strata_stream_create(h, &t));
    assert_ptr_not_equal(s, t);
    test_ok(h, strata_set_stream(h, s));
    test_ok(h, strata_synchronize(h));
    test_ok(h, strata_set_stream(h, NULL));
    test_ok(h, strata_event_create(h, &a));
    test_ok(h, strata_event_create(h, &b));
    test_error(NULL, strata_event_elapsed(a, b, &ms), STRATA_ERROR_STATE, "strata_event_elapsed",
               "begin event", "never recorded");
    test_ok(h, strata_event_record(h, a));
    test_error(NULL, strata_event_elapsed(a, b, &ms), STRATA_ERROR_STATE, "end event", "never recorded");
    assert_true(ms == -1);
    nanosleep(&(struct timespec){0, 3000000}, NULL);
    test_ok(h, strata_event_record(h, b));
    test_ok(NULL, strata_event_wait(b));
    test_ok(NULL, strata_event_elapsed(a, b, &ms));
    assert_true(ms >= 3 && ms < 10000);
    double back;
    test_ok(NULL, strata_event_elapsed(b, a, &back));
    assert_true(back == -ms);
    test_error(NULL, strata_event_elapsed(a, b, NULL), STRATA_ERROR_ARGUMENT, "ms is NULL");
    test_error(NULL, strata_event_elapsed(NULL, b, &ms), STRATA_ERROR_ARGUMENT, "strata_event_elapsed",
               "NULL", "strata_event_create");
    test_error(NULL, strata_event_elapsed(a, NULL, &ms), STRATA_ERROR_ARGUMENT, "NULL");
    test_error(h, strata_event_record(h, NULL), STRATA_ERROR_ARGUMENT, "strata_event_record", "NULL");
    test_error(NULL, strata_event_record(NULL, a), STRATA_ERROR_ARGUMENT, "strata_event_record", "handle");
    test_error(NULL, strata_event_wait(NULL), STRATA_ERROR_ARGUMENT, "strata_event_wait", "NULL");
    test_error(h, strata_stream_create(h, NULL), STRATA_ERROR_ARGUMENT, "strata_stream_create", "NULL");
    test_error(h, strata_event_create(h, NULL), STRATA_ERROR_ARGUMENT, "strata_event_create", "NULL");
    test_ok(NULL, strata_stream_destroy(s));
    test_error(NULL, strata_stream_destroy(s), STRATA_ERROR_ARGUMENT, "strata_stream_destroy", "not a live");
    test_error(h, strata_set_stream(h, s), STRATA_ERROR_ARGUMENT, "strata_set_stream", "not a live",
               "default stream");
    test_ok(NULL, strata_stream_destroy(t));
    test_ok(NULL, strata_stream_destroy(NULL));
    test_ok(NULL, strata_event_destroy(a));
    test_error(NULL, strata_event_destroy(a), STRATA_ERROR_ARGUMENT, "strata_event_destroy", "destroyed");
    test_error(h, strata_event_record(h, a), STRATA_ERROR_ARGUMENT, "strata_event_record", "destroyed");
    test_error(NULL, strata_event_elapsed(a, b, &ms), STRATA_ERROR_ARGUMENT, "destroyed");
    test_ok(NULL, strata_event_destroy(b));
    test_ok(NULL, strata_event_destroy(NULL));
    strata_destroy(h);
}

static void *many(void *arg)
{
    strata_handle *h[20];
    (void)arg;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 20; i++)
            if (strata_create(&h[i], "cpu")) return (void *)1;
        for (int i = 0; i < 20; i++)
            for (int k = 0; k < i; k++)
                if (h[i] == h[k]) return (void *)2;
        if (!st_workspace(h[round % 20], 1000)) return (void *)3;
        strata_set_threads(h[3], round % 4);
        for (int i = 0; i < 20; i++) strata_destroy(h[(i * 7 + round) % 20]);
    }
    strata_handle *fresh; /* a handle made from a spare one remembers nothing */
    if (strata_create(&fresh, "cpu")) return (void *)4;
    if (fresh->workspace || fresh->threads || fresh->plan_slot || fresh->held || fresh->err.status)
        return (void *)5;
    strata_destroy(fresh);
    return NULL;
}

static void many_from_many_threads(void **state)
{
    (void)state;
    pthread_t t[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, many, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        test_check(!bad, "thread %d: %d", i, (int)(intptr_t)bad);
    }
}

static void *default_of_thread(void *arg)
{
    strata_handle **out = arg;
    *out = strata_default_handle();
    if (*out != strata_default_handle()) *out = NULL;
    if (*out && st_handle_check(*out, "x")) *out = NULL;
    return NULL;
}

static void default_handles(void **state)
{
    (void)state;
    pthread_t t;
    strata_handle *mine = strata_default_handle(), *theirs;
    assert_non_null(mine);
    assert_ptr_equal(mine, strata_default_handle());
    assert_int_equal(pthread_create(&t, NULL, default_of_thread, &theirs), 0);
    pthread_join(t, NULL);
    assert_non_null(theirs);
    assert_ptr_not_equal(mine, theirs);
    test_error(NULL, strata_trim(theirs), STRATA_ERROR_STATE, "destroyed"); /* with its thread */
    test_ok(mine, strata_trim(mine));
    strata_destroy(mine); /* a mistake that must not be fatal */
    mine = strata_default_handle();
    test_ok(mine, strata_trim(mine));
}

/* The team's size in a fresh process: this program again, with the variable set and on `processors` of those that it has. */
static int threads_of(const char *value, int processors)
{
    char self[400], command[600], text[64] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
    snprintf(command, sizeof command, "%s%s '%s' threads %d",
             value ? "STRATA_THREADS=" : "env -u STRATA_THREADS", value ? value : "", self, processors);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    assert_int_equal(pclose(f), 0);
    return (int)strtol(text, NULL, 10);
}

static void size_of_the_team(void **state)
{
    (void)state;
    int all = threads_of(NULL, 0);
    cpu_set_t mask;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    assert_true(all >= 1 && all <= CPU_COUNT(&mask));
    assert_int_equal(threads_of("3", 0), 3);
    assert_int_equal(threads_of("1", 0), 1);
    assert_int_equal(threads_of("100000", 0), 256);
    assert_int_equal(threads_of("0", 0), all); /* nothing sensible: as if it were not set */
    assert_int_equal(threads_of("-2", 0), all);
    assert_int_equal(threads_of("many", 0), all);
    assert_int_equal(threads_of(NULL, 1), 1); /* the mask of the process counts */
}

/* Started with a narrower mask, since the library looks when it is loaded. */
static int say_threads(int processors, char **argv)
{
    cpu_set_t mask, few;
    strata_device_info info;
    if (processors && !sched_getaffinity(0, sizeof mask, &mask) && CPU_COUNT(&mask) > processors) {
        CPU_ZERO(&few);
        for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&few) < processors; i++)
            if (CPU_ISSET(i, &mask)) CPU_SET(i, &few);
        if (sched_setaffinity(0, sizeof few, &few)) return 1;
        execv("/proc/self/exe", argv);
        return 1;
    }
    if (strata_get_device_info(NULL, &info)) return 1;
    return printf("%d\n", info.threads) < 0;
}

/* A wish that nobody understands is said, not ignored; what is understood goes. */
static void unknown_wishes(void **state)
{
    (void)state;
    static const char *const bad_isa[] = {"AVX2", "sse2", "avx", "avx512 "}, *const good_isa[] = {
                                                                                 "avx512", "avx2", "portable",
                                                                                 ""};
    static const char *const bad_threads[] = {"0", "257", "-1", "many", "2x", "99999999999999999999"},
                             *const good_threads[] = {"1", "256", "2", ""};
    char isa[40] = "", threads[40] = "";
    const bool had_isa = getenv("STRATA_ISA"), had_threads = getenv("STRATA_THREADS");
    if (had_isa) snprintf(isa, sizeof isa, "%s", getenv("STRATA_ISA"));
    if (had_threads) snprintf(threads, sizeof threads, "%s", getenv("STRATA_THREADS"));
    strata_handle *t;
    for (int i = 0; i < TEST_COUNT(bad_isa); i++) {
        setenv("STRATA_ISA", bad_isa[i], 1);
        test_error(NULL, strata_create(&t, "cpu"), STRATA_ERROR_ARGUMENT, "strata_create", "STRATA_ISA",
                   bad_isa[i], "avx512, avx2 or portable");
        assert_null(t);
    }
    for (int i = 0; i < TEST_COUNT(good_isa); i++) {
        setenv("STRATA_ISA", good_isa[i], 1);
        test_ok(NULL, strata_create(&t, "cpu"));
        strata_destroy(t);
    }
    had_isa ? setenv("STRATA_ISA", isa, 1) : unsetenv("STRATA_ISA");
    for (int i = 0; i < TEST_COUNT(bad_threads); i++) {
        setenv("STRATA_THREADS", bad_threads[i], 1);
        test_error(NULL, strata_create(&t, "cpu"), STRATA_ERROR_ARGUMENT, "strata_create", "STRATA_THREADS",
                   bad_threads[i], "1 to 256");
    }
    for (int i = 0; i < TEST_COUNT(good_threads); i++) {
        setenv("STRATA_THREADS", good_threads[i], 1);
        test_ok(NULL, strata_create(&t, "cpu"));
        strata_destroy(t);
    }
    had_threads ? setenv("STRATA_THREADS", threads, 1) : unsetenv("STRATA_THREADS");
}

static void trace_by_call(void **state)
{
    (void)state;
    test_error(NULL, strata_set_trace("/nonexistent/folder/x.json"), STRATA_ERROR_IO, "strata_set_trace",
               "/nonexistent/folder/x.json");
    test_ok(NULL, strata_set_trace(NULL));
    test_ok(NULL, strata_set_trace(""));
}

int main(int argc, char **argv)
{
    setenv("STRATA_CUDA_LIB", "/nonexistent/libcuda.so.1", 1); /* the same on machines with a GPU */
    if (argc == 3) return say_threads(atoi(argv[2]), argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices),
        cmocka_unit_test(no_handle),
        cmocka_unit_test(streams_and_events),
        cmocka_unit_test(many_from_many_threads),
        cmocka_unit_test(default_handles),
        cmocka_unit_test(unknown_wishes),
        cmocka_unit_test(trace_by_call),
        cmocka_unit_test(size_of_the_team),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
