/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_measure.c - one case on a GPU: copies of the operands, graphs of launches, turns of the contenders. */
#include "cuda.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GRAPH_SECONDS 2e-3
#define BLOCK_SECONDS 0.3
enum { MAX_LAUNCHES = 2000, BLOCKS = 5 };

typedef struct cuda_timing {
    strata_graph *graph[BENCH_CONTENDERS];
    int launches[BENCH_CONTENDERS];
    double us[BENCH_CONTENDERS][BENCH_ROUNDS];
    int rounds;
    strata_event *begin, *end;
} cuda_timing;

int cuda_copies(const bench *b, size_t bytes)
{
    const double l2 = b->device.l2 > 0 ? (double)b->device.l2 : 64e6;
    double n = ceil(3 * l2 / (double)(bytes ? bytes : 1)) + 1,
           most = 0.25 * (double)b->device.memory / (double)(bytes ? bytes : 1);
    if (n > most) n = floor(most);
    return n < 1 ? 1 : n > CUDA_COPIES ? CUDA_COPIES : (int)n;
}

bool cuda_work_alloc(const bench *b, cuda_work *w, int operands, const size_t *bytes)
{
    size_t all = 0;
    w->operands = operands;
    for (int o = 0; o < operands; o++) all += w->bytes[o] = bytes[o];
    w->copies = cuda_copies(b, all);
    for (int o = 0; o < operands; o++)
        for (int i = 0; i < w->copies; i++)
            if (strata_alloc(w->h, bytes[o], &w->data[o][i])) return false;
    return true;
}

void cuda_work_free(cuda_work *w)
{
    for (int o = 0; o < w->operands; o++)
        for (int i = 0; i < w->copies; i++) strata_free(w->h, w->data[o][i]);
}

/* Seconds between two events around `launches` calls, or around the graph that holds them. */
static double timed(bench *b, contender *k, cuda_timing *t, int i, bool graph, int launches)
{
    double ms = 0;
    if (strata_event_record(b->h, t->begin)) return -1;
    if (graph) {
        if (strata_graph_launch(b->h, t->graph[i])) return -1;
    } else {
        for (int n = 0; n < launches; n++) k->run(k->arg);
    }
    if (strata_event_record(b->h, t->end) || strata_event_wait(t->end) ||
        strata_event_elapsed(t->begin, t->end, &ms))
        return -1;
    return ms * 1e-3 / launches;
}

static void check_all(bench *b, bench_case *c)
{
    for (int i = 0; i < c->n; i++) {
        contender *k = &c->c[i];
        if (k->kind == CLASS_REFERENCE) continue;
        if (c->poison) c->poison(c->check_arg);
        k->run(k->arg);
        if (strata_synchronize(b->h)) {
            k->wrong = true;
            k->error = INFINITY;
            continue;
        }
        if (c->check) {
            k->error = c->check(c->check_arg);
            k->wrong = !(k->error <= 1.0);
        }
    }
}

/* How many launches a sample has, and their graph. Without a graph (a peer that cannot be captured) launches are timed as they are. */
static void prepare(bench *b, bench_case *c, cuda_timing *t)
{
    for (int i = 0; i < c->n; i++) {
        contender *k = &c->c[i];
        if (k->wrong) continue;
        timed(b, k, t, i, false, 3);
        double one = timed(b, k, t, i, false, 10);
        double n = one > 0 ? ceil(GRAPH_SECONDS / one) : 1;
        t->launches[i] = n < 2 ? 2 : n > MAX_LAUNCHES ? MAX_LAUNCHES : (int)n;
        if (strata_graph_begin(b->h)) continue;
        for (int j = 0; j < t->launches[i]; j++) k->run(k->arg);
        if (strata_graph_end(b->h, &t->graph[i])) {
            t->graph[i] = NULL;
            snprintf(k->note + strlen(k->note), sizeof k->note - strlen(k->note), " (no graph)");
            continue;
        }
        timed(b, k, t, i, true, t->launches[i]);
    }
}

static void burst(bench *b, bench_case *c, cuda_timing *t)
{
    const double begin = cli_seconds();
    while (t->rounds < BENCH_ROUNDS && (t->rounds < 5 || cli_seconds() - begin < b->o.seconds)) {
        for (int j = 0; j < c->n; j++) {
            const int r = t->rounds, i = r % 2 ? (c->n - 1 - j + r / 2) % c->n : (j + r / 2) % c->n;
            contender *k = &c->c[i];
            t->us[i][r] = k->wrong ? NAN : timed(b, k, t, i, t->graph[i] != NULL, t->launches[i]) * 1e6;
        }
        t->rounds++;
        cli_progress_update(&b->progress, b->done + fmin(1, (cli_seconds() - begin) / b->o.seconds), c->name);
    }
}

static void sustained(bench *b, bench_case *c, cuda_timing *t)
{
    for (; t->rounds < BLOCKS; t->rounds++)
        for (int j = 0; j < c->n; j++) {
            const int r = t->rounds, i = r % 2 ? c->n - 1 - j : j;
            contender *k = &c->c[i];
            double sum = 0, from = cli_seconds();
            int n = 0;
            if (k->wrong || !t->graph[i]) {
                t->us[i][r] = NAN;
                continue;
            }
            while (cli_seconds() - from < BLOCK_SECONDS) {
                double s = timed(b, k, t, i, true, t->launches[i]) * 1e6;
                if (cli_seconds() - from > 0.2 * BLOCK_SECONDS) sum += s, n++; /* the clock settles first */
            }
            t->us[i][r] = n ? sum / n : NAN;
            cli_progress_update(&b->progress, b->done + (r + (double)j / c->n) / BLOCKS, c->name);
        }
}

static void summarise(bench_case *c, const cuda_timing *t, double peak)
{
    int ours = -1, copy = -1;
    for (int i = c->n - 1; i >= 0; i--) {
        if (c->c[i].kind == CLASS_OURS && !c->c[i].wrong) ours = i;
        if (!strcmp(c->c[i].name, "copy")) copy = i;
    }
    for (int i = 0; i < c->n; i++) {
        contender *k = &c->c[i];
        double us[BENCH_ROUNDS], ratio[BENCH_ROUNDS], part[BENCH_ROUNDS];
        int n = 0, nr = 0, np = 0;
        for (int r = 0; r < t->rounds; r++) {
            const double x = t->us[i][r];
            if (!(x > 0)) continue;
            us[n++] = x;
            if (ours >= 0 && t->us[ours][r] > 0) ratio[nr++] = x / t->us[ours][r];
            if (copy >= 0 && t->us[copy][r] > 0)
                part[np++] =
                    100 * (c->work / x) / ((c->copy_work > 0 ? c->copy_work : c->work) / t->us[copy][r]);
        }
        k->rounds = n;
        k->us = bench_median(us, n);
        k->rate = c->work / (k->us * 1e-6);
        k->ratio = bench_median(ratio, nr);
        k->percent = copy >= 0 ? bench_median(part, np) : peak > 0 ? 100 * k->rate / peak : NAN;
    }
    c->best = -1;
    for (int i = 0; i < c->n; i++)
        if (c->c[i].kind == CLASS_PEER && !c->c[i].wrong && c->c[i].rate > 0 &&
            (c->best < 0 || c->c[i].rate > c->c[c->best].rate))
            c->best = i;
    c->best_pointer = c->best;
}

bool cuda_measure(bench *b, bench_case *c)
{
    cuda_timing *t = calloc(1, sizeof *t);
    bool right = true;
    if (t && bench_room(b) && !strata_event_create(b->h, &t->begin) && !strata_event_create(b->h, &t->end)) {
        check_all(b, c);
        prepare(b, c, t);
        if (b->o.sustained)
            sustained(b, c, t);
        else
            burst(b, c, t);
        summarise(c, t, c->peak_scale * b->peak * 1e-3);
        for (int i = 0; i < c->n; i++) {
            if (c->c[i].kind == CLASS_OURS && c->c[i].wrong) right = false, b->wrong++;
            if (t->graph[i]) strata_graph_destroy(t->graph[i]);
        }
        b->rows[b->count++] = *c;
    }
    for (int i = 0; i < c->n; i++)
        if (c->c[i].drop) c->c[i].drop(c->c[i].arg);
    b->done += 1;
    if (t) {
        strata_event_destroy(t->begin);
        strata_event_destroy(t->end);
        if (b->count) report_case(b, &b->rows[b->count - 1]);
    }
    free(t);
    return right;
}
