/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - one case: every contender checked, then timed in interleaved rounds between probes. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* A batch of calls lasts about this long: much more than reading the clock, much less than a neighbour's burst. */
#define BATCH_SECONDS 3e-3
/* A batch counts when the probes on both sides reach this part of the usual peak. */
#define QUIET 0.92

static const size_t huge = (size_t)2 << 20;

void *bench_alloc(size_t bytes)
{
    size_t n = (bytes + huge - 1) / huge * huge;
    char *p = mmap(NULL, n + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    char *q = (char *)(((uintptr_t)p + huge - 1) / huge * huge);
    if (q > p) munmap(p, (size_t)(q - p));
    if (q + n < p + n + huge) munmap(q + n, (size_t)(p + n + huge - (q + n)));
    madvise(q, n, MADV_HUGEPAGE);
    memset(q, 0, n);
    return q;
}

void bench_free(void *p, size_t bytes)
{
    if (p) munmap(p, (bytes + huge - 1) / huge * huge);
}

void bench_random(void *p, int64_t n, bool f64, uint64_t seed)
{
    uint64_t s = seed * 0x9e3779b97f4a7c15u + 1;
    for (int64_t i = 0; i < n; i++) {
        s ^= s << 13, s ^= s >> 7, s ^= s << 17;
        double v = (double)(s >> 11) * 0x1p-52 - 1.0;
        if (f64)
            ((double *)p)[i] = v;
        else
            ((float *)p)[i] = (float)v;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *v, int n)
{
    if (n == 0) return NAN;
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

contender *case_add(bench_case *c, const char *name, contender_class kind, void (*run)(void *), void *arg,
                    void (*drop)(void *))
{
    if (!arg || c->n == BENCH_CONTENDERS) {
        if (arg && drop) drop(arg);
        return NULL;
    }
    contender *k = &c->c[c->n++];
    memset(k, 0, sizeof *k);
    snprintf(k->name, sizeof k->name, "%s", name);
    k->kind = kind;
    k->run = run;
    k->arg = arg;
    k->drop = drop;
    return k;
}

typedef struct sample {
    double seconds, lo, mean; /* of a call; probes beside it: the lesser, the mean */
    double rate;
    bool interrupted; /* another process had a processor of ours meanwhile */
} sample;

typedef struct timing {
    sample s[BENCH_CONTENDERS][BENCH_ROUNDS];
    long inner[BENCH_CONTENDERS];
    double call[BENCH_CONTENDERS]; /* seconds, from the first timing */
    double probes[BENCH_ROUNDS * 4];
    int probe_count, rounds;
} timing;

static double timed(contender *k, long inner)
{
    double t = cli_seconds();
    for (long i = 0; i < inner; i++) k->run(k->arg);
    return (cli_seconds() - t) / (double)inner;
}

/* Checks every contender and drops from the contest those whose result is wrong. */
static void check_all(bench_case *c)
{
    for (int i = 0; i < c->n; i++) {
        contender *k = &c->c[i];
        if (!k->run || k->kind == CLASS_REFERENCE) continue;
        if (c->poison) c->poison(c->check_arg);
        k->run(k->arg);
        if (!c->check) continue;
        if (k->fetch && !k->fetch(k->arg))
            k->wrong = true, k->error = INFINITY;
        else
            k->error = c->check(c->check_arg), k->wrong = !(k->error <= 1.0);
    }
}

static void calibrate(bench_case *c, timing *t)
{
    for (int i = 0; i < c->n; i++) {
        contender *k = &c->c[i];
        t->inner[i] = 1;
        if (k->wrong || k->sample) continue;
        double s = timed(k, 1);
        if (s < 0.2) s = timed(k, 1);
        if (s < 1e-4) s = timed(k, (long)(2e-4 / (s + 1e-8)) + 1);
        t->call[i] = s;
        t->inner[i] = s < BATCH_SECONDS ? (long)(BATCH_SECONDS / (s + 1e-9)) + 1 : 1;
    }
}

static double probe_now(bench *b, timing *t)
{
    double p = bench_probe();
    if (p > b->peak) b->peak = p;
    if (t->probe_count < BENCH_ROUNDS * 4) t->probes[t->probe_count++] = p;
    return p;
}

/* How often another process took the processor from a thread of this one. */
static long taken(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) ? 0 : u.ru_nivcsw;
}

static void one_round(bench *b, bench_case *c, timing *t)
{
    int r = t->rounds;
    double before = probe_now(b, t);
    for (int j = 0; j < c->n; j++) {
        /* a turning order, so that no contender always follows the same one */
        int i = r % 2 ? (c->n - 1 - j + r / 2) % c->n : (j + r / 2) % c->n;
        contender *k = &c->c[i];
        sample *s = &t->s[i][r];
        memset(s, 0, sizeof *s);
        if (k->wrong) continue;
        long before_taken;
        double begin;
        if (k->sample) {
            before_taken = taken();
            begin = cli_seconds();
            s->rate = k->sample(k->arg);
            s->seconds = s->rate > 0 ? c->work / s->rate : 0;
        } else {
            /* wakes the contender's threads and warms the caches: the probe in between has cooled both */
            if (t->call[i] < 0.05) {
                double until = cli_seconds() + 3e-4;
                do k->run(k->arg);
                while (cli_seconds() < until);
            }
            before_taken = taken();
            begin = cli_seconds();
            s->seconds = timed(k, t->inner[i]);
            s->rate = c->work / s->seconds;
        }
        /* the system's own housekeeping is allowed one turn in ten milliseconds */
        s->interrupted = (double)(taken() - before_taken) > (cli_seconds() - begin) / 0.01;
        double after = probe_now(b, t);
        s->lo = before < after ? before : after;
        s->mean = 0.5 * (before + after);
        before = after;
    }
    t->rounds++;
}

static bool counts(const sample *s, double floor)
{
    return s->seconds > 0 && s->lo >= floor && (floor == 0 || !s->interrupted);
}

static int quiet_rounds(const bench_case *c, const timing *t, double floor)
{
    int least = t->rounds;
    for (int i = 0; i < c->n; i++) {
        if (c->c[i].wrong) continue;
        int n = 0;
        for (int r = 0; r < t->rounds; r++) n += counts(&t->s[i][r], floor);
        if (n < least) least = n;
    }
    return least;
}

/* index of the sample series that percentages refer to: the one named "copy", or -1 for the probes */
static int reference_of(const bench_case *c)
{
    for (int i = 0; i < c->n && c->peak_scale == 0; i++)
        if (strcmp(c->c[i].name, "copy") == 0) return i;
    return -1;
}

static int index_of_ours(const bench_case *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->c[i].kind == CLASS_OURS && !c->c[i].wrong) return i;
    return -1;
}

static void summarise(bench_case *c, const timing *t, double floor)
{
    int ref = reference_of(c), ours = index_of_ours(c);
    for (int i = 0; i < c->n; i++) {
        contender *k = &c->c[i];
        double rate[BENCH_ROUNDS], part[BENCH_ROUNDS], ratio[BENCH_ROUNDS], us[BENCH_ROUNDS];
        int n = 0, np = 0, nr = 0;
        for (int r = 0; r < t->rounds; r++) {
            const sample *s = &t->s[i][r];
            if (!counts(s, floor)) continue;
            rate[n] = s->rate;
            us[n++] = s->seconds * 1e6;
            if (ref < 0)
                part[np++] = 100 * s->rate / (s->mean * c->peak_scale);
            else if (counts(&t->s[ref][r], floor))
                part[np++] = 100 * s->rate / t->s[ref][r].rate;
            if (ours >= 0 && counts(&t->s[ours][r], floor)) ratio[nr++] = s->seconds / t->s[ours][r].seconds;
        }
        k->rounds = n;
        k->rate = bench_median(rate, n);
        k->percent = bench_median(part, np);
        k->ratio = bench_median(ratio, nr);
        k->us = bench_median(us, n);
    }
    /* quiet rounds of the two may all differ: then the medians themselves are compared */
    for (int i = 0; i < c->n && ref >= 0; i++)
        if (isnan(c->c[i].percent) && c->c[i].rounds) c->c[i].percent = 100 * c->c[i].rate / c->c[ref].rate;
    for (int i = 0; i < c->n && ours >= 0; i++)
        if (isnan(c->c[i].ratio) && c->c[i].rounds) c->c[i].ratio = c->c[i].us / c->c[ours].us;
    c->best = c->best_pointer = -1;
    for (int i = 0; i < c->n; i++) {
        const contender *k = &c->c[i];
        if (k->kind != CLASS_PEER || k->wrong || !(k->rate > 0)) continue;
        /* A call cannot win against a ready pointer where the call itself is the cost: those are compared with plans. */
        bool small = c->flops > 0 && c->flops < 2.0 * 128 * 128 * 128;
        if (!(k->pointer && small) && (c->best < 0 || k->rate > c->c[c->best].rate)) c->best = i;
        if (c->best_pointer < 0 || k->rate > c->c[c->best_pointer].rate) c->best_pointer = i;
    }
}

/* the usual peak in this case: the upper quartile of its probes */
static double usual_peak(timing *t)
{
    double v[BENCH_ROUNDS * 4];
    memcpy(v, t->probes, sizeof *v * (size_t)t->probe_count);
    qsort(v, (size_t)t->probe_count, sizeof *v, by_value);
    return t->probe_count ? v[t->probe_count * 3 / 4] : 0;
}

bool bench_room(bench *b)
{
    if (b->count < b->room) return true;
    const int room = b->room ? 2 * b->room : 64;
    bench_case *rows = realloc(b->rows, sizeof *rows * (size_t)room);
    if (rows) b->rows = rows, b->room = room;
    return rows != NULL;
}

bool bench_measure(bench *b, bench_case *c)
{
    timing *t = calloc(1, sizeof *t);
    bool ours_right = true;
    if (t && bench_room(b)) {
        check_all(c);
        calibrate(c, t);
        double begin = cli_seconds(), floor = 0;
        for (;;) {
            double now = cli_seconds() - begin;
            if (t->rounds == BENCH_ROUNDS || (t->rounds >= 5 && now > 2.5 * b->o.seconds + 1)) break;
            if (t->rounds >= 3 && now >= b->o.seconds) {
                floor = QUIET * usual_peak(t);
                if (quiet_rounds(c, t, floor) >= 3) break;
            }
            one_round(b, c, t);
            cli_progress_update(&b->progress, b->done + (now < b->o.seconds ? now / b->o.seconds : 1),
                                c->name);
        }
        floor = QUIET * usual_peak(t);
        c->noisy = quiet_rounds(c, t, floor) < 3;
        summarise(c, t, c->noisy ? 0 : floor);
        for (int i = 0; i < c->n; i++)
            if (c->c[i].kind == CLASS_OURS && c->c[i].wrong) ours_right = false, b->wrong++;
        b->rows[b->count++] = *c;
    }
    for (int i = 0; i < c->n; i++)
        if (c->c[i].drop) c->c[i].drop(c->c[i].arg);
    b->done += 1;
    if (t && b->count) report_case(b, &b->rows[b->count - 1]);
    free(t);
    return ours_right;
}
