/* SPDX-License-Identifier: Apache-2.0 */
/* team.c - one persistent thread team a process: fork-join with bodies that run at the same time.
 *
 * Workers spin on a word of their own for about a millisecond after the last call (a hot fork-join costs under a microsecond), then park on
 * a futex (waking a parked one was measured at 100 microseconds on a virtual machine). A call that meets a busy team runs alone; a
 * small one that meets a parked team runs alone too, but a stream of such calls wakes the team for those to come.
 * After fork the child has no workers and starts new ones when it needs them. The caller's thread is never bound to a processor. */
#include "runtime/runtime.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_THREADS = 256, SPINS_BEFORE_YIELD = 4000, SPINS_WHEN_CROWDED = 40 };
#define SPIN_NS 1000000u /* before parking */
#define WAKE_US 150.0    /* work worth waking a parked team for */
#define FORK_US 3.0      /* work worth a hot fork-join */

typedef struct st_worker {
    _Alignas(128) atomic_int seq; /* the master increments it to start a call */
    atomic_int parked;
    atomic_int tid, away_from;     /* away_from: 1 + the processor that its mask leaves out */
    _Alignas(128) atomic_int done; /* the worker stores the seq it finished */
} st_worker;

static struct {
    st_worker w[MAX_THREADS]; /* w[0] is unused: the caller */
    int started;              /* workers running, w[1..started] */
    atomic_int busy;
    atomic_int size;    /* team size, 0 unknown */
    double declined_us; /* work refused because the team was parked, decaying */
    uint64_t declined_at;
    st_team_fn fn;
    void *arg;
    int n;
    cpu_set_t mask; /* the process's processors when the library was loaded */
    bool have_mask;
    int processors;         /* of the mask */
    atomic_int creator_cpu; /* where the thread ran that started workers last */
    pthread_once_t once;
} team = {.once = PTHREAD_ONCE_INIT};

ST_INLINE void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* A program may bind its own threads later; what the process was given is what counts. */
__attribute__((constructor)) static void read_mask(void)
{
    team.have_mask = sched_getaffinity(0, sizeof team.mask, &team.mask) == 0;
    team.processors = team.have_mask ? CPU_COUNT(&team.mask) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* With more bodies than processors, whoever is waited for may need the very processor that the waiter spins on. */
static unsigned patience(int n) { return n > team.processors ? SPINS_WHEN_CROWDED : SPINS_BEFORE_YIELD; }

static int quota(void)
{
    long long q = -1, period = 0;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (f) {
        if (fscanf(f, "%lld %lld", &q, &period) != 2) q = -1;
        fclose(f);
    } else if ((f = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r"))) {
        if (fscanf(f, "%lld", &q) != 1) q = -1;
        fclose(f);
        if ((f = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r"))) {
            if (fscanf(f, "%lld", &period) != 1) period = 0;
            fclose(f);
        }
    }
    return q > 0 && period > 0 ? (int)((q + period - 1) / period) : INT_MAX;
}

int st_team_size(void)
{
    int n = atomic_load_explicit(&team.size, memory_order_relaxed);
    if (n) return n;
    n = team.processors;
    int q = quota();
    if (n > q) n = q;
    const char *env = st_env("STRATA_THREADS");
    if (env) {
        int v = 0;
        if (sscanf(env, "%d", &v) == 1 && v > 0) n = v;
    }
    if (n < 1) n = 1;
    if (n > MAX_THREADS) n = MAX_THREADS;
    atomic_store_explicit(&team.size, n, memory_order_relaxed);
    return n;
}

static void *worker_main(void *v)
{
    int id = (int)(intptr_t)v, seen = 0;
    st_worker *w = &team.w[id];
    atomic_store(&w->tid, (int)syscall(SYS_gettid));
    if (team.have_mask) { /* not the creator's mask, and not the creator's processor: see place() */
        cpu_set_t mask = team.mask;
        int cpu = atomic_load(&team.creator_cpu);
        if (cpu >= 0 && cpu < CPU_SETSIZE && team.processors > 1) CPU_CLR(cpu, &mask);
        if (sched_setaffinity(0, sizeof mask, &mask) == 0) atomic_store(&w->away_from, cpu + 1);
    }
    for (;;) {
        uint64_t until = 0;
        for (unsigned spins = 1; atomic_load_explicit(&w->seq, memory_order_acquire) == seen; spins++) {
            pause_cpu();
            if (spins % 256) continue;
            uint64_t now = st_now_ns();
            if (!until) until = now + SPIN_NS;
            if (now < until) continue;
            atomic_store(&w->parked, 1);
            while (atomic_load(&w->seq) == seen && atomic_load(&w->parked) == 1)
                syscall(SYS_futex, &w->seq, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
            atomic_store(&w->parked, 0);
            until = 0;
        }
        seen = atomic_load_explicit(&w->seq, memory_order_acquire);
        team.fn(team.arg, id, team.n);
        atomic_store_explicit(&w->done, seen, memory_order_release);
    }
    return NULL;
}

/* A kernel may wake a worker on the processor where the caller is about to spin (guests that pack their virtual processors do): it then waits
 * for a whole time slice, measured at 1.1 ms. So a parked worker's mask leaves the caller's processor out. */
static void place(int id)
{
    st_worker *w = &team.w[id];
    int cpu = sched_getcpu(), tid = atomic_load(&w->tid);
    if (!team.have_mask || cpu < 0 || cpu >= CPU_SETSIZE || tid <= 0 || team.processors < 2 ||
        atomic_load(&w->away_from) == cpu + 1)
        return;
    cpu_set_t mask = team.mask;
    CPU_CLR(cpu, &mask);
    if (sched_setaffinity(tid, sizeof mask, &mask) == 0) atomic_store(&w->away_from, cpu + 1);
}

static void wake(int id)
{
    place(id);
    syscall(SYS_futex, &team.w[id].seq, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void child_after_fork(void)
{
    team.started = 0;
    team.declined_us = 0;
    memset(team.w, 0, sizeof team.w);
    atomic_store(&team.busy, 0);
}
static void register_fork(void) { pthread_atfork(NULL, NULL, child_after_fork); }

/* Called by the owner of `busy`. Returns how many workers there are then. */
static int start_workers(int want)
{
    if (team.started >= want) return team.started;
    pthread_once(&team.once, register_fork);
    atomic_store(&team.creator_cpu, sched_getcpu());
    sigset_t all, old; /* a program's signal handlers run on its own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (team.started < want) {
        int id = team.started + 1;
        pthread_t t;
        pthread_attr_t a;
        atomic_store(&team.w[id].seq, 0);
        atomic_store(&team.w[id].done, 0);
        atomic_store(&team.w[id].parked, 0);
        atomic_store(&team.w[id].tid, 0);
        atomic_store(&team.w[id].away_from, 0);
        pthread_attr_init(&a);
        pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&a, 1 << 20);
        int bad = pthread_create(&t, &a, worker_main, (void *)(intptr_t)id);
        pthread_attr_destroy(&a);
        if (bad) break;
        team.started = id;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return team.started;
}

int st_threads(const strata_handle *h)
{
    if (h->parallel_for) return h->parallel_threads;
    return h->threads ? h->threads : st_team_size();
}

static bool any_parked(int n)
{
    if (team.started < n - 1) return true; /* starting threads costs as much */
    for (int i = 1; i < n; i++)
        if (atomic_load(&team.w[i].parked)) return true;
    return false;
}

static void unpark(int id)
{
    if (atomic_exchange(&team.w[id].parked, 2) == 1) wake(id);
}

int st_team_run(strata_handle *h, int want, double us, st_team_fn fn, void *arg)
{
    int n = st_threads(h);
    if (n > want) n = want;
    if (n > MAX_THREADS) n = MAX_THREADS;
    int free_team = 0;
    if (n <= 1 || h->parallel_for || us < FORK_US ||
        !atomic_compare_exchange_strong(&team.busy, &free_team, 1)) {
        fn(arg, 0, 1);
        return 1;
    }
    if (us < WAKE_US && any_parked(n)) {
        uint64_t now = st_now_ns();
        double gone = (double)(now - team.declined_at) * 1e-3;
        team.declined_us = (gone > 2000 ? 0 : team.declined_us) + us;
        team.declined_at = now;
        if (team.declined_us > WAKE_US) { /* a stream of small calls: have the team hot for the next ones */
            int have = start_workers(n - 1);
            for (int i = 1; i <= have && i < n; i++) unpark(i);
            team.declined_us = 0;
        }
        atomic_store(&team.busy, 0);
        fn(arg, 0, 1);
        return 1;
    }
    int have = start_workers(n - 1);
    if (n > have + 1) n = have + 1;
    team.fn = fn;
    team.arg = arg;
    team.n = n;
    for (int i = 1; i < n; i++) {
        st_worker *w = &team.w[i];
        atomic_fetch_add(&w->seq, 1);
        if (atomic_load(&w->parked)) wake(i);
    }
    fn(arg, 0, n);
    unsigned spin = patience(n);
    for (int i = 1; i < n; i++) {
        st_worker *w = &team.w[i];
        int seq = atomic_load_explicit(&w->seq, memory_order_relaxed);
        for (unsigned spins = 1; atomic_load_explicit(&w->done, memory_order_acquire) != seq; spins++) {
            pause_cpu();
            if (spins > spin) sched_yield();
        }
    }
    atomic_store(&team.busy, 0);
    return n;
}

/* A caller's parallel_for is held to its promise: a number outside [0, n) or one that comes twice does nothing, and what it left out is
 * done afterwards. */
typedef struct st_apart {
    st_team_fn fn;
    void *arg;
    int n;
    atomic_uchar called[MAX_THREADS];
} st_apart;

static void apart_body(void *v, int i)
{
    st_apart *a = v;
    if (i >= 0 && i < a->n && !atomic_exchange(&a->called[i], 1)) a->fn(a->arg, i, a->n);
}

static int on_callers_threads(strata_handle *h, int n, st_team_fn fn, void *arg)
{
    st_apart a = {.fn = fn, .arg = arg, .n = n};
    h->in_callers = true;
    h->parallel_for(h->parallel_user, n, apart_body, &a);
    h->in_callers = false;
    for (int i = 0; i < n; i++) apart_body(&a, i);
    return n;
}

int st_team_run_apart(strata_handle *h, int want, double us, st_team_fn fn, void *arg)
{
    int n = st_threads(h);
    if (n > want) n = want;
    if (!h->parallel_for || h->in_callers || n <= 1 || us < FORK_US) return st_team_run(h, want, us, fn, arg);
    return on_callers_threads(h, n, fn, arg);
}

void st_barrier_wait(st_barrier *b, int n, int *sense)
{
    if (n <= 1) return;
    int s = !*sense;
    *sense = s;
    if (atomic_fetch_add_explicit(&b->count, 1, memory_order_acq_rel) == n - 1) {
        atomic_store_explicit(&b->count, 0, memory_order_relaxed);
        atomic_store_explicit(&b->sense, s, memory_order_release);
        return;
    }
    unsigned spin = patience(n);
    for (unsigned spins = 1; atomic_load_explicit(&b->sense, memory_order_acquire) != s; spins++) {
        pause_cpu();
        if (spins > spin) sched_yield();
    }
}

typedef struct st_for {
    st_task_fn fn;
    void *arg;
    int64_t tasks;
    _Alignas(64) _Atomic int64_t next;
} st_for;

static void for_worker(st_for *f, int worker)
{
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&f->next, 1, memory_order_relaxed);
        if (i >= f->tasks) return;
        f->fn(f->arg, i, worker);
    }
}
static void for_body(void *v, int id, int n)
{
    (void)n;
    for_worker(v, id);
}

void st_team_for(strata_handle *h, int64_t tasks, double us, st_task_fn fn, void *arg)
{
    int n = st_threads(h);
    if (tasks <= 1 || n <= 1 || us < FORK_US) {
        for (int64_t i = 0; i < tasks; i++) fn(arg, i, 0);
        return;
    }
    st_for f = {.fn = fn, .arg = arg, .tasks = tasks};
    if (n > tasks) n = (int)tasks;
    if (h->parallel_for && !h->in_callers)
        on_callers_threads(h, n, for_body, &f);
    else
        st_team_run(h, n, us, for_body, &f);
}
