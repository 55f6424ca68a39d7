/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - the FMA peak of the processor right now, on the same number of threads as what is measured beside it.
 *
 * A probe is a few hundred microseconds of independent multiply-adds in registers, started on all threads at once and kept busy
 * until the slowest has measured. Helpers sleep on a condition variable between probes: they must not take a core from the
 * contender. The caller is never pinned. */
#include "bench.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef float vec4 __attribute__((vector_size(16)));
const double bench_fma_flops_portable = 8 * 4 * 2;

void bench_fma_portable(long n)
{
    vec4 a[8], x = {1.0000001f, 1.0000001f, 1.0000001f, 1.0000001f}, y = {1e-9f, 1e-9f, 1e-9f, 1e-9f};
    for (int i = 0; i < 8; i++) a[i] = (vec4){1, 2, 3, 4} + (float)i;
    for (long k = 0; k < n; k++) {
        a[0] = a[0] * x + y, a[1] = a[1] * x + y, a[2] = a[2] * x + y, a[3] = a[3] * x + y;
        a[4] = a[4] * x + y, a[5] = a[5] * x + y, a[6] = a[6] * x + y, a[7] = a[7] * x + y;
    }
    static volatile float sink;
    vec4 s = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
    sink = s[0] + s[1] + s[2] + s[3];
    (void)sink;
}

const bench_fma *bench_fma_best(void)
{
    static bench_fma f;
    f = (bench_fma){"multiply and add, 128 bits", bench_fma_portable, bench_fma_flops_portable};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        f = (bench_fma){"FMA, 256 bits", bench_fma_avx2, bench_fma_flops_avx2};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        f = (bench_fma){"FMA, 512 bits", bench_fma_avx512, bench_fma_flops_avx512};
#endif
    return &f;
}

enum { MAX_HELPERS = 255 };
typedef struct helper {
    pthread_t thread;
    int id;
    _Alignas(64) atomic_int done;
    double rate;
} helper;

static struct {
    bench_fma fma;
    int threads;
    long steps;
    helper *h;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int go; /* generation, under the mutex */
    bool stop;
    atomic_int ready, start, finished;
    char *dst; /* a copy instead of a probe when not NULL */
    const char *src;
    size_t bytes;
    long repeat;
} probe = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static double rate(void)
{
    double t = cli_seconds();
    probe.fma.run(probe.steps);
    return probe.fma.flops * (double)probe.steps / (cli_seconds() - t) * 1e-9;
}

static void wait_for(atomic_int *a, int value)
{
    for (long spins = 0; atomic_load_explicit(a, memory_order_acquire) != value; spins++)
        if (spins > 20000) sched_yield(), spins = 0;
}

/* The thread's part of the copy, GB/s of bytes read and written. Parts are of one size, so that rates add up. */
static double copy_part(int id)
{
    size_t each = probe.bytes / (size_t)probe.threads / 64 * 64, begin = each * (size_t)id;
    memcpy(probe.dst + begin, probe.src + begin, each);
    double t = cli_seconds();
    for (long i = 0; i < probe.repeat; i++) {
        memcpy(probe.dst + begin, probe.src + begin, each);
        __asm__ volatile("" ::: "memory");
    }
    return 2e-9 * (double)each * (double)probe.repeat / (cli_seconds() - t);
}

/* What every thread does in a generation; helpers have ids from 1. */
static double body(int id)
{
    if (probe.dst) return copy_part(id);
    probe.fma.run(probe.steps / 5);
    double r = rate();
    /* keeps the core as busy as it was until the others have measured too */
    atomic_fetch_add(&probe.finished, 1);
    while (atomic_load(&probe.finished) < probe.threads) probe.fma.run(probe.steps / 50 + 1);
    return r;
}

static void *helper_main(void *arg)
{
    helper *me = arg;
    int seen = 0;
    for (;;) {
        pthread_mutex_lock(&probe.mutex);
        while (probe.go == seen && !probe.stop) pthread_cond_wait(&probe.cond, &probe.mutex);
        seen = probe.go;
        bool stop = probe.stop;
        pthread_mutex_unlock(&probe.mutex);
        if (stop) return NULL;
        atomic_fetch_add(&probe.ready, 1);
        wait_for(&probe.start, seen);
        me->rate = body(me->id);
        atomic_store_explicit(&me->done, seen, memory_order_release);
    }
}

static double together(void)
{
    if (probe.threads == 1) {
        atomic_store(&probe.finished, 0);
        return body(0);
    }
    atomic_store(&probe.ready, 0);
    atomic_store(&probe.finished, 0);
    pthread_mutex_lock(&probe.mutex);
    int go = ++probe.go;
    pthread_cond_broadcast(&probe.cond);
    pthread_mutex_unlock(&probe.mutex);
    wait_for(&probe.ready, probe.threads - 1);
    atomic_store_explicit(&probe.start, go, memory_order_release);
    double least = body(0);
    for (int i = 0; i < probe.threads - 1; i++) {
        wait_for(&probe.h[i].done, go);
        if (probe.h[i].rate < least) least = probe.h[i].rate;
    }
    return least * probe.threads;
}

bool bench_probe_begin(int threads)
{
    if (threads > MAX_HELPERS + 1) threads = MAX_HELPERS + 1;
    probe.fma = *bench_fma_best();
    probe.threads = 1;
    probe.stop = false;
    probe.steps = 20000;
    rate();
    double r = rate();
    probe.steps = (long)(0.25e-3 * r * 1e9 / probe.fma.flops) + 100;
    if (threads == 1) return true;
    probe.h = aligned_alloc(64, sizeof(helper) * (size_t)(threads - 1));
    if (!probe.h) return false;
    memset(probe.h, 0, sizeof(helper) * (size_t)(threads - 1));
    probe.go = 0;
    atomic_store(&probe.start, 0);
    for (int i = 0; i < threads - 1; i++) {
        probe.h[i].id = i + 1;
        if (pthread_create(&probe.h[i].thread, NULL, helper_main, &probe.h[i])) {
            bench_probe_end();
            return false;
        }
        probe.threads++;
    }
    return true;
}

void bench_probe_end(void)
{
    pthread_mutex_lock(&probe.mutex);
    probe.stop = true;
    pthread_cond_broadcast(&probe.cond);
    pthread_mutex_unlock(&probe.mutex);
    for (int i = 0; i < probe.threads - 1; i++) pthread_join(probe.h[i].thread, NULL);
    free(probe.h);
    probe.h = NULL;
    probe.threads = 1;
}

double bench_probe(void)
{
    probe.dst = NULL;
    /* Workers of the contender before may still be spinning for their next call: let them go to sleep. */
    if (probe.threads > 1) usleep(2500);
    return together();
}

double bench_probe_copy(void *dst, const void *src, size_t bytes, double seconds)
{
    probe.dst = dst;
    probe.src = src;
    probe.bytes = bytes;
    probe.repeat = 1;
    double guess = together();
    probe.repeat = (long)(seconds * guess * 1e9 / (2.0 * (double)bytes)) + 1;
    double r = together();
    probe.dst = NULL;
    return r;
}

bool bench_roof(int threads, double bytes, double *gflops, double *gbs)
{
    size_t n = bytes < 1 << 16 ? 1 << 16 : bytes > 1 << 27 ? 1 << 27 : (size_t)bytes / 4096 * 4096;
    void *p = bench_alloc(n), *q = bench_alloc(n);
    bool ok = p && q && bench_probe_begin(threads);
    *gflops = *gbs = 0;
    if (ok) {
        for (int i = 0; i < 8; i++) {
            double r = bench_probe();
            *gflops = r > *gflops ? r : *gflops;
        }
        for (int i = 0; i < 3; i++) {
            double r = bench_probe_copy(p, q, n, 4e-3);
            *gbs = r > *gbs ? r : *gbs;
        }
        bench_probe_end();
    }
    bench_free(p, n);
    bench_free(q, n);
    return ok && *gflops > 0 && *gbs > 0;
}
