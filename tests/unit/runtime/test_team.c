/* SPDX-License-Identifier: Apache-2.0 */
/* The thread team: fork-join, barriers, tasks exactly once, two handles at once, nesting, more threads than processors, a caller's own threads,
 * fork. Checks inside bodies only count; the test's own thread judges. */
#include "runtime/handle.h"
#include "support.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static strata_handle *h;
#define BIG 1e6 /* microseconds: always worth waking the team */

static int setup(void **state)
{
    (void)state;
    return strata_create(&h, "cpu") != STRATA_OK;
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

typedef struct visit {
    atomic_int seen[64], n, inside, most;
    int turns;
    int plain; /* written by every body under a barrier: TSan looks at it */
    st_barrier barrier;
} visit;

static void body(void *arg, int id, int n)
{
    visit *v = arg;
    atomic_fetch_add(&v->seen[id], 1);
    atomic_store(&v->n, n);
}

static void ids_once_each(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 6; threads++)
        for (int want = 1; want <= 8; want++) {
            visit v = {0};
            test_problem("threads %d, want %d", threads, want);
            test_ok(h, strata_set_threads(h, threads));
            assert_int_equal(strata_get_threads(h), threads);
            int n = st_team_run(h, want, BIG, body, &v);
            test_check(n == (want < threads ? want : threads), "n is %d", n);
            assert_int_equal(atomic_load(&v.n), n);
            for (int i = 0; i < 64; i++)
                test_check(atomic_load(&v.seen[i]) == (i < n), "id %d seen %d times", i,
                           atomic_load(&v.seen[i]));
        }
}

/* The bodies run at the same time, and the barrier orders plain memory between them, sense after sense. */
static void turns(void *arg, int id, int n)
{
    visit *v = arg;
    int sense = 0;
    for (int turn = 0; turn < v->turns; turn++) {
        if (turn % n == id) v->plain++;
        st_barrier_wait(&v->barrier, n, &sense);
        if (v->plain != turn + 1) atomic_fetch_add(&v->seen[0], 1);
        st_barrier_wait(&v->barrier, n, &sense);
    }
}

static void barriers(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4;
         threads++) { /* 3 and 4 are more than the processors of a small machine */
        visit v = {.turns = 300};
        test_ok(h, strata_set_threads(h, threads));
        assert_int_equal(st_team_run(h, threads, BIG, turns, &v), threads);
        assert_int_equal(v.plain, 300);
        assert_int_equal(atomic_load(&v.seen[0]), 0);
    }
}

/* Workers may have parked, be about to, or spin: each pause meets another moment. */
static void after_every_pause(void **state)
{
    (void)state;
    test_ok(h, strata_set_threads(h, 3));
    for (int i = 0; i < 150; i++) {
        visit v = {0};
        assert_int_equal(st_team_run(h, 3, BIG, body, &v), 3);
        for (int k = 0; k < 3; k++) assert_int_equal(atomic_load(&v.seen[k]), 1);
        nanosleep(&(struct timespec){0, (long)(i % 16) * 150000}, NULL);
    }
}

/* Small work: refused by a parked team, taken by a hot one, and a stream of it wakes the team. */
static void small_work(void **state)
{
    (void)state;
    visit v = {0};
    test_ok(h, strata_set_threads(h, 2));
    assert_int_equal(st_team_run(h, 2, 0.5, body, &v), 1);
    assert_int_equal(st_team_run(h, 2, BIG, body, &v), 2);
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    assert_int_equal(st_team_run(h, 2, 20, body, &v), 1); /* parked */
    bool hot = false;
    for (uint64_t end = st_now_ns() + 8000000000u;
         !hot && st_now_ns() < end;) /* others may hold the processors now */
        hot = st_team_run(h, 2, 20, body, &v) == 2;
    assert_true(hot);
}

typedef struct tasks {
    atomic_int *count;
    int64_t n;
    int threads;
    atomic_int wrong_worker, busy[64], twice;
} tasks;

static void task(void *arg, int64_t i, int worker)
{
    tasks *t = arg;
    if (i < 0 || i >= t->n || worker < 0 || worker >= t->threads) {
        atomic_fetch_add(&t->wrong_worker, 1);
        return;
    }
    if (atomic_fetch_add(&t->busy[worker], 1))
        atomic_fetch_add(&t->twice, 1); /* a worker's scratch is its own */
    atomic_fetch_add(&t->count[i], 1);
    atomic_fetch_sub(&t->busy[worker], 1);
}

static void check_tasks(int64_t n, int threads, double us)
{
    tasks t = {.n = n, .threads = threads, .count = calloc((size_t)n + 1, sizeof(atomic_int))};
    test_problem("%lld tasks on %d threads", (long long)n, threads);
    st_team_for(h, n, us, task, &t);
    for (int64_t i = 0; i < n; i++)
        test_check(atomic_load(&t.count[i]) == 1, "task %lld ran %d times", (long long)i,
                   atomic_load(&t.count[i]));
    assert_int_equal(atomic_load(&t.wrong_worker), 0);
    assert_int_equal(atomic_load(&t.twice), 0);
    free(t.count);
}

static void every_task_once(void **state)
{
    (void)state;
    static const int64_t n[] = {0, 1, 2, 3, 4, 5, 7, 16, 31, 1000, 10007};
    for (int threads = 1; threads <= 5; threads++) {
        test_ok(h, strata_set_threads(h, threads));
        for (int i = 0; i < TEST_COUNT(n); i++) check_tasks(n[i], threads, i % 3 ? BIG : 1);
    }
}

/* ---- a caller's own threads ------------------------------------------------------------------------------------------------------------- */
typedef struct call {
    void (*body)(void *, int);
    void *arg;
    int i;
} call;
static void *call_main(void *v)
{
    call *c = v;
    c->body(c->arg, c->i);
    return NULL;
}
static atomic_int called;
static void own_threads(void *user, int n, void (*f)(void *, int), void *arg)
{
    pthread_t t[16];
    call c[16];
    (void)user;
    atomic_fetch_add(&called, 1);
    for (int i = 0; i < n; i++) c[i] = (call){f, arg, i};
    for (int i = 0; i < n; i++) pthread_create(&t[i], NULL, call_main, &c[i]);
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
}
static void backwards(void *user, int n, void (*f)(void *, int), void *arg)
{
    ++*(int *)user;
    for (int i = n - 1; i >= 0; i--) f(arg, i);
}
static void forgetful(void *user, int n, void (*f)(void *, int), void *arg)
{
    (void)user;
    (void)n;
    (void)f;
    (void)arg;
}

static void unruly(void *user, int n, void (*f)(void *, int), void *arg)
{ /* numbers that were never given, and some twice */
    (void)user;
    f(arg, -1);
    f(arg, n);
    f(arg, 0);
    f(arg, 0);
    f(arg, 1000000);
}

/* Bodies that never wait for each other: on the team, or on the caller's threads, each number once whatever the caller does. */
static void bodies_apart(void **state)
{
    (void)state;
    static const strata_parallel_for loops[] = {NULL, own_threads, backwards, forgetful, unruly};
    for (int k = 0; k < TEST_COUNT(loops); k++)
        for (int want = 1; want <= 5; want++) {
            visit v = {0};
            int calls = 0;
            test_problem("loop %d, want %d", k, want);
            test_ok(h, strata_set_threads(h, 3));
            test_ok(h, strata_set_parallel_for(h, loops[k], &calls, loops[k] ? 3 : 0));
            assert_int_equal(st_team_run_apart(h, want, BIG, body, &v), want < 3 ? want : 3);
            assert_int_equal(atomic_load(&v.n), want < 3 ? want : 3);
            for (int i = 0; i < 64; i++)
                test_check(atomic_load(&v.seen[i]) == (i < 3 && i < want), "id %d seen %d times", i,
                           atomic_load(&v.seen[i]));
        }
    test_ok(h, strata_set_parallel_for(h, unruly, NULL, 3));
    check_tasks(100, 3, BIG);
}

static void callers_parallel_for(void **state)
{
    (void)state;
    visit v = {0};
    int calls = 0;
    test_ok(h, strata_set_parallel_for(h, own_threads, NULL, 4));
    assert_int_equal(strata_get_threads(h), 4);
    check_tasks(1000, 4, BIG);
    check_tasks(3, 4, BIG);
    check_tasks(1, 4, BIG);
    assert_int_equal(atomic_load(&called), 2);             /* one task needs nobody */
    assert_int_equal(st_team_run(h, 4, BIG, body, &v), 1); /* no promise that bodies run at once */
    test_ok(h, strata_set_parallel_for(h, backwards, &calls, 3));
    check_tasks(100, 3, BIG);
    assert_int_equal(calls, 1);
    test_ok(h, strata_set_parallel_for(h, forgetful, NULL, 3)); /* breaks its promise: no work is lost */
    check_tasks(100, 3, BIG);
    test_ok(h, strata_set_parallel_for(h, NULL, NULL, 0));
    test_ok(h, strata_set_threads(h, 2));
    assert_int_equal(st_team_run(h, 2, BIG, body, &v), 2);
    test_error(h, strata_set_parallel_for(h, NULL, NULL, -3), STRATA_ERROR_ARGUMENT, "threads is -3",
               "give 0");
    test_error(h, strata_set_parallel_for(h, own_threads, NULL, 0), STRATA_ERROR_ARGUMENT,
               "strata_set_parallel_for", "threads is 0", "256");
    test_error(h, strata_set_parallel_for(h, own_threads, NULL, 257), STRATA_ERROR_ARGUMENT,
               "threads is 257");
}

static void thread_numbers(void **state)
{
    (void)state;
    strata_device_info info;
    test_ok(NULL, strata_get_device_info("cpu", &info));
    assert_int_equal(strata_get_threads(h), info.threads);
    test_error(h, strata_set_threads(h, -1), STRATA_ERROR_ARGUMENT, "strata_set_threads", "n is -1", "256");
    test_error(h, strata_set_threads(h, 257), STRATA_ERROR_ARGUMENT, "n is 257");
    assert_int_equal(strata_get_threads(h), info.threads);
    test_ok(h, strata_set_threads(h, 256));
    assert_int_equal(strata_get_threads(h), 256);
    test_ok(h, strata_set_threads(h, 0));
    assert_int_equal(strata_get_threads(h), info.threads);
    assert_int_equal(strata_get_threads(NULL), 0);
}

/* ---- two users of one team ------------------------------------------------------------------------------------------------------------- */
typedef struct nest {
    strata_handle *inner;
    atomic_int inner_n, runs;
} nest;
static void inner_body(void *arg, int id, int n)
{
    nest *s = arg;
    (void)id;
    atomic_store(&s->inner_n, n);
    atomic_fetch_add(&s->runs, 1);
}
static void outer_body(void *arg, int id, int n)
{
    nest *s = arg;
    (void)n;
    if (id == 0) st_team_run(s->inner, 2, BIG, inner_body, s);
}

static void nested(void **state)
{
    (void)state;
    nest s = {0};
    test_ok(NULL, strata_create(&s.inner, "cpu"));
    test_ok(h, strata_set_threads(h, 2));
    test_ok(s.inner, strata_set_threads(s.inner, 2));
    assert_int_equal(st_team_run(h, 2, BIG, outer_body, &s), 2);
    assert_int_equal(atomic_load(&s.inner_n), 1); /* the team is busy: alone */
    assert_int_equal(atomic_load(&s.runs), 1);
    assert_int_equal(st_team_run(h, 2, BIG, outer_body, &s), 2); /* and is whole afterwards */
    strata_destroy(s.inner);
}

static void *user_main(void *arg)
{
    strata_handle *own;
    uintptr_t bad = 0;
    (void)arg;
    if (strata_create(&own, "cpu")) return (void *)1;
    strata_set_threads(own, 3);
    for (int i = 0; i < 40 && !bad; i++) {
        visit v = {.turns = 100};
        int n = st_team_run(own, 3, BIG, turns, &v);
        if (n != 1 && n != 3) bad = 2;
        if (v.plain != 100 || atomic_load(&v.seen[0])) bad = 3;
        enum { N = 50 };
        atomic_int count[N + 1] = {0};
        tasks t = {.n = N, .threads = 3, .count = count};
        st_team_for(own, N, BIG, task, &t);
        for (int k = 0; k < N; k++)
            if (atomic_load(&count[k]) != 1) bad = 4;
        if (atomic_load(&t.wrong_worker) || atomic_load(&t.twice)) bad = 5;
        if (i == 4 && TEST_UNDER_TSAN) break; /* barriers of more threads than processors are slow there */
    }
    strata_destroy(own);
    return (void *)bad;
}

static void two_handles_at_once(void **state)
{
    (void)state;
    pthread_t t[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&t[i], NULL, user_main, NULL), 0);
    for (int i = 0; i < 3; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        test_check(!bad, "thread %d: %d", i, (int)(intptr_t)bad);
    }
}

/* ---- what a program's own threads keep --------------------------------------------------------------------------------------------------- */
static pthread_t main_thread;
static atomic_int handled, handled_elsewhere;
static void on_signal(int s)
{
    (void)s;
    atomic_fetch_add(&handled, 1);
    if (!pthread_equal(pthread_self(), main_thread)) atomic_fetch_add(&handled_elsewhere, 1);
}

static void callers_thread_is_left_alone(void **state)
{
    (void)state;
    cpu_set_t before, after;
    sigset_t mask_before, mask_after;
    visit v = {0};
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
    test_ok(h, strata_set_threads(h, 7)); /* more than any test above: new workers start here */
    assert_int_equal(st_team_run(h, 7, BIG, body, &v), 7);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
    assert_true(CPU_EQUAL(&before, &after));
    for (int s = 1; s < 32; s++) assert_int_equal(sigismember(&mask_before, s), sigismember(&mask_after, s));
    main_thread = pthread_self();
    struct sigaction act = {.sa_handler = on_signal}, old;
    sigaction(SIGUSR1, &act, &old);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGUSR1);
    for (int i = 0; i < 20; i++) {
        pthread_sigmask(SIG_BLOCK, &only, NULL); /* the kernel would look for another thread that takes it */
        kill(getpid(), SIGUSR1);
        st_team_run(h, 7, BIG, body, &v);
        pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    }
    sigaction(SIGUSR1, &old, NULL);
    assert_true(atomic_load(&handled) >= 1);
    assert_int_equal(atomic_load(&handled_elsewhere), 0);
}

/* ---- fork ------------------------------------------------------------------------------------------------------------------------------------ */
static int in_child(void)
{
    visit v = {0};
    void *p;
    strata_handle *own;
    alarm(30);
    for (int i = 0; i < 5; i++) {
        v = (visit){.turns = 10};
        if (st_team_run(h, 3, BIG, turns, &v) != 3 || v.plain != 10)
            return 1; /* the parent's handle, new workers */
    }
    if (strata_create(&own, "cpu") || strata_alloc(own, 3 << 20, &p) || strata_free(own, p)) return 2;
    strata_set_threads(own, 2);
    if (st_team_run(own, 2, BIG, body, &v) != 2) return 3;
    strata_destroy(own);
    return 0;
}

static void check_child(void)
{
    pid_t child = fork();
    if (child == 0) _exit(in_child());
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    test_check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status 0x%x",
               (unsigned)status);
}

static void after_fork(void **state)
{
    (void)state;
    if (TEST_UNDER_TSAN) skip(); /* it allows no new threads in a child of a process with threads */
    visit v = {0};
    test_ok(h, strata_set_threads(h, 3));
    assert_int_equal(st_team_run(h, 3, BIG, body, &v), 3);
    for (int i = 0; i < 3; i++) {
        check_child();
        v = (visit){.turns = 10};
        assert_int_equal(st_team_run(h, 3, BIG, turns, &v), 3); /* the parent's team is as it was */
        assert_int_equal(v.plain, 10);
    }
}

static atomic_int stop;
static void *busy_main(void *arg)
{
    strata_handle *own;
    void *p;
    (void)arg;
    if (strata_create(&own, "cpu")) return (void *)1;
    strata_set_threads(own, 3);
    uintptr_t bad = 0;
    while (!atomic_load(&stop) && !bad) {
        visit v = {0};
        st_team_run(own, 3, BIG, body, &v);
        if (strata_alloc(own, 2 << 20, &p) || strata_free(own, p)) bad = 2;
        strata_handle *more;
        if (strata_create(&more, "cpu")) bad = 3;
        strata_destroy(more);
    }
    strata_destroy(own);
    return (void *)bad;
}

/* Another thread is inside the team, the pool and the handles' list when the fork comes: the child must find none of them locked. */
static void fork_while_another_thread_works(void **state)
{
    (void)state;
    if (TEST_UNDER_TSAN) skip();
    pthread_t t;
    void *bad;
    test_ok(h, strata_set_threads(h, 3));
    assert_int_equal(pthread_create(&t, NULL, busy_main, NULL), 0);
    for (int i = 0; i < 15; i++) check_child();
    atomic_store(&stop, 1);
    pthread_join(t, &bad);
    assert_null(bad);
    visit v = {0};
    assert_int_equal(st_team_run(h, 3, BIG, body, &v), 3);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(thread_numbers),
        T(ids_once_each),
        T(barriers),
        T(after_every_pause),
        T(small_work),
        T(every_task_once),
        T(callers_parallel_for),
        T(bodies_apart),
        T(nested),
        T(two_handles_at_once),
        T(callers_thread_is_left_alone),
        T(after_fork),
        T(fork_while_another_thread_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
