/* SPDX-License-Identifier: Apache-2.0 */
/* tune.c - measuring a plan's candidates: strata_tune, strata_find.
 *
 * First every candidate runs once or a few times, the usual choice first, the others in order of prediction; those several times slower than
 * the best so far are not looked at again. Then the rest run in turn, so that a clock that drifts meets all alike, until the budget is used or each has its
 * samples. The time of a candidate is the median of its samples; a sample is many runs between two events of the handle's stream, so that
 * GPUs and CPUs are measured by the same code. */
#include "plan/tuning.h"
#include "runtime/gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 128, SAMPLES = 9, OPERANDS = 64, MOST_VARIANTS = 16, VARIED = 3, PIECE = 1 << 20 };

typedef struct runner {
    st_candidate c;
    strata_plan *plan;
    double sample[SAMPLES], us;
    int n, runs; /* samples; runs a sample */
} runner;

typedef struct search {
    strata_handle *h;
    const st_kept *kept;
    const strata_tune_options *o;
    void *const *data;
    strata_event *begin, *end;
    runner *r;
    int n;
    double seconds;
    uint64_t started;
    bool stopped;
} search;

static double spent(const search *s) { return (double)(st_now_ns() - s->started) * 1e-9; }
static bool over(const search *s) { return s->stopped || spent(s) >= s->seconds; }

/* ---- buffers ----------------------------------------------------------------------------------------------------------------- */

typedef struct buffers {
    void *block[OPERANDS], *data[OPERANDS];
} buffers;

/* Bytes from 0x30 to 0x3f: numbers of middling size in every floating type, small whole ones in the others. */
static strata_status fill(strata_handle *h, char *to, size_t n)
{
    char *piece = malloc(PIECE);
    if (!piece) return st_fail(&h->err, STRATA_ERROR_MEMORY, "strata_tune: no memory to fill operands");
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < PIECE; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        piece[i] = (char)(0x30 | (x >> 20 & 15));
    }
    strata_status s = STRATA_OK;
    for (size_t at = 0; at < n && !s; at += PIECE) {
        const size_t k = n - at < PIECE ? n - at : PIECE;
        if (h->gpu)
            s = st_gpu_upload(h, to + at, piece, k);
        else
            memcpy(to + at, piece, k);
    }
    free(piece);
    return s;
}

static void free_buffers(strata_handle *h, const strata_plan *p, buffers *b)
{
    for (int i = 0; i < p->operands && i < OPERANDS; i++)
        if (b->block[i]) strata_free(h, b->block[i]);
}

static strata_status make_buffers(strata_handle *h, const strata_plan *p, buffers *b)
{
    memset(b, 0, sizeof *b);
    if (!p->extent || p->operands > OPERANDS)
        return st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "strata_tune: this plan (%s) does not say what it touches; give the operands' addresses in data",
            p->title);
    strata_device_info info;
    double all = 0;
    for (int i = 0; i < p->operands; i++) all += (double)(p->extent[i].hi - p->extent[i].lo);
    strata_status s = strata_get_device_info(h->device, &info);
    if (!s && info.memory > 0 && all > 0.6 * (double)info.memory)
        return st_fail(
            &h->err, STRATA_ERROR_MEMORY,
            "strata_tune: the operands take %.3g GB and %s has %.3g; give the operands' addresses in data",
            all * 1e-9, h->device, (double)info.memory * 1e-9);
    for (int i = 0; i < p->operands && !s; i++) {
        const st_extent *e = &p->extent[i];
        const size_t n = (size_t)(e->hi - e->lo);
        if ((s = strata_alloc(h, n + 256, &b->block[i]))) break;
        /* element 0 on a multiple of 64 */
        b->data[i] = (char *)b->block[i] + st_round_up(-st_min64(e->lo, 0), 64);
        const size_t lead = (size_t)((char *)b->data[i] - (char *)b->block[i]) + (size_t)e->lo;
        s = fill(h, (char *)b->block[i] + lead, n);
    }
    if (s) free_buffers(h, p, b);
    return s;
}

/* ---- one candidate ------------------------------------------------------------------------------------------------------------- */

/* Microseconds of one run, from `runs` in a row */
static strata_status sample(search *s, const strata_plan *p, int runs, double *us)
{
    strata_status st = strata_event_record(s->h, s->begin);
    for (int i = 0; i < runs && !st; i++) st = st_plan_execute(s->h, p, s->data, NULL);
    double ms = 0;
    if (!st) st = strata_event_record(s->h, s->end);
    if (!st) st = strata_event_wait(s->end);
    if (!st) st = strata_event_elapsed(s->begin, s->end, &ms);
    *us = ms * 1000 / runs;
    return st;
}

static int upward(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void add_sample(runner *r, double us)
{
    double sorted[SAMPLES];
    if (r->n == SAMPLES) return;
    r->sample[r->n++] = us > 1e-4 ? us : 1e-4;
    memcpy(sorted, r->sample, sizeof(double) * (size_t)r->n);
    qsort(sorted, (size_t)r->n, sizeof *sorted, upward);
    r->us = r->n % 2 ? sorted[r->n / 2] : 0.5 * (sorted[r->n / 2 - 1] + sorted[r->n / 2]);
    r->c.measured = r->us;
}

static double least(const runner *r)
{
    double x = r->sample[0];
    for (int i = 1; i < r->n; i++) x = r->sample[i] < x ? r->sample[i] : x;
    return x;
}

static const runner *best_of(const search *s)
{
    const runner *best = NULL;
    for (int i = 0; i < s->n; i++)
        if (s->r[i].n && (!best || s->r[i].us < best->us)) best = &s->r[i];
    return best;
}

static void report(search *s)
{
    const runner *best = best_of(s);
    strata_candidate c;
    if (!s->o->progress || !best) return;
    st_plan_candidate(&best->c, &s->kept->list[s->kept->chosen], &c);
    const double done = spent(s) / s->seconds;
    if (!s->o->progress(s->o->user, done < 1 ? done : 1, &c)) s->stopped = true;
}

/* Builds, runs once to warm up, and takes a first sample, unless one run already says that it is far behind. */
static void first_look(search *s, runner *r)
{
    double once;
    const runner *best = best_of(s);
    if (st_plan_build(s->h, &s->kept->problem, s->kept->limit, &r->c, &r->plan)) return;
    if (sample(s, r->plan, 1, &once)) return;
    if (best && once > 5 * best->us && sample(s, r->plan, 1, &once)) return;
    if (best && once > 5 * best->us) {
        add_sample(r, once);
        strata_plan_destroy(r->plan);
        r->plan = NULL;
        return;
    }
    const double target = st_min64((int64_t)(s->seconds * 1e6 / 60), s->h->gpu ? 3000 : 1500);
    r->runs = once * 5000 < target ? 5000 : (int)(target / once) + 1;
    double us;
    if (!sample(s, r->plan, r->runs, &us)) add_sample(r, us);
}

static void look(search *s, int from)
{
    for (int i = from; i < s->n; i++) {
        if (i && over(s)) break;
        const runner *best = best_of(s);
        /* not worth its time by any prediction: what is predicted at 30 times the best, or alone would use the budget up */
        if (best && s->r[i].c.us > 30 * best->c.us + 1) continue;
        if (best && best->c.us > 0 && 3e-6 * s->r[i].c.us * (best->us / best->c.us) > s->seconds - spent(s))
            continue;
        first_look(s, &s->r[i]);
        report(s);
    }
}

static void in_turn(search *s)
{
    static const double within[SAMPLES] = {0, 5, 2.5, 1.5, 1.3, 1.2, 1.15, 1.15, 1.15};
    for (int round = 1; round < SAMPLES; round++)
        for (int i = 0; i < s->n; i++) {
            runner *r = &s->r[i];
            double us;
            if (over(s)) return;
            /* one disturbed sample throws nobody out, and the usual choice stays to the end, as the one to beat */
            if (!r->plan || !r->n || (i && least(r) > within[round] * least(best_of(s)))) continue;
            if (sample(s, r->plan, r->runs, &us)) continue;
            add_sample(r, us);
            if (i + 1 == s->n || round % 2) report(s);
        }
}

/* Further settings of the best candidates' tiles. */
static void add_variants(search *s)
{
    bool used[MOST] = {false};
    const int known = s->n;
    for (int k = 0; k < VARIED; k++) {
        int best = -1;
        for (int i = 0; i < known; i++)
            if (!used[i] && s->r[i].n && (best < 0 || s->r[i].us < s->r[best].us)) best = i;
        if (best < 0) return;
        used[best] = true;
        const st_candidate *c = &s->r[best].c;
        int64_t arg[MOST_VARIANTS][8];
        const st_tiles *tiles = st_plan_tiles(c->provider);
        if (!tiles) continue;
        const int n = tiles->variants(s->h, &s->kept->problem, c, arg, MOST_VARIANTS);
        for (int i = 0; i < n && s->n < MOST; i++) {
            st_candidate x = *c;
            x.measured = 0;
            x.us = 0;
            x.why[0] = 0;
            memcpy(x.arg, arg[i], sizeof x.arg);
            if (!tiles->refine(s->h, &s->kept->problem, &x, NULL) || x.workspace > s->kept->limit) continue;
            if (!s->o->allow_reordering && !st_same_order(&x, &s->kept->list[s->kept->chosen])) continue;
            s->r[s->n++] = (runner){.c = x};
        }
    }
}

/* ---- the search ----------------------------------------------------------------------------------------------------------------- */

static int by_prediction(const void *a, const void *b)
{
    const runner *x = a, *y = b;
    return x->c.us < y->c.us ? -1 : x->c.us > y->c.us;
}

static int by_time(const void *a, const void *b)
{
    const runner *x = a, *y = b;
    if (!x->n != !y->n) return x->n ? -1 : 1;
    return x->n ? (x->us < y->us ? -1 : x->us > y->us) : by_prediction(a, b);
}

static void list_runners(search *s)
{
    const st_kept *k = s->kept;
    s->r[s->n++].c = k->list[k->chosen];
    for (int i = 0; i < k->count && s->n < MOST; i++) {
        if (i == k->chosen || k->list[i].us < 0) continue;
        if (!s->o->allow_reordering && !st_same_order(&k->list[i], &k->list[k->chosen])) continue;
        s->r[s->n++].c = k->list[i];
    }
    for (int i = 0; i < s->n; i++) s->r[i].c.measured = 0;
    qsort(s->r + 1, (size_t)s->n - 1, sizeof *s->r, by_prediction);
}

static void store(const search *s)
{
    st_tuning_key key;
    st_tuned t[ST_TUNED_MAX];
    int n = 0;
    if (s->o->forget || !st_tuning_key_of(s->h, &s->kept->problem, &key)) return;
    for (int i = 0; i < s->n && n < ST_TUNED_MAX; i++) {
        if (!s->r[i].n) continue;
        st_code_write(&s->r[i].c, t[n].code);
        t[n].us = s->r[i].us;
        if (t[n].code[0]) n++;
    }
    if (n) st_tuning_store(&key, t, n);
}

static strata_status run_search(search *s, strata_candidate *results, int max, int *count)
{
    const st_err before =
        s->h->err; /* candidates that fail are left out; what they say is no failure of the call */
    list_runners(s);
    look(s, 0);
    const int listed = s->n;
    if (!over(s)) add_variants(s);
    look(s, listed);
    if (!over(s)) in_turn(s);
    const bool any = best_of(s) != NULL;
    const st_candidate usual = s->kept->list[s->kept->chosen];
    qsort(s->r, (size_t)s->n, sizeof *s->r, by_time);
    for (int i = 0; i < s->n && i < max && results; i++) {
        st_plan_candidate(&s->r[i].c, &usual, &results[i]);
        results[i].chosen =
            !strcmp(usual.kernel, s->r[i].c.kernel) && !memcmp(usual.arg, s->r[i].c.arg, sizeof usual.arg);
    }
    if (count) *count = s->n;
    if (!any) return s->h->err.status ? s->h->err.status : STRATA_ERROR_INTERNAL;
    s->h->err = before;
    store(s);
    return STRATA_OK;
}

static strata_status tune(strata_handle *h, const strata_plan *p, void *const data[],
                          const strata_tune_options *o, strata_candidate *results, int max, int *count)
{
    search s = {.h = h, .kept = p->kept, .o = o, .data = data, .started = st_now_ns()};
    buffers own;
    s.seconds = o->seconds > 0 ? o->seconds : 1;
    strata_status st = STRATA_OK;
    if (!data) {
        if ((st = make_buffers(h, p, &own))) return st;
        s.data = own.data;
    }
    s.r = calloc(MOST, sizeof *s.r);
    if (!s.r) st = st_fail(&h->err, STRATA_ERROR_MEMORY, "strata_tune: no memory for the search");
    if (!st) st = strata_event_create(h, &s.begin);
    if (!st) st = strata_event_create(h, &s.end);
    s.started = st_now_ns();
    if (!st) st = run_search(&s, results, max, count);
    for (int i = 0; i < s.n; i++) strata_plan_destroy(s.r[i].plan);
    if (s.begin) strata_event_destroy(s.begin);
    if (s.end) strata_event_destroy(s.end);
    if (!data) free_buffers(h, p, &own);
    free(s.r);
    return st;
}

strata_status strata_tune(strata_handle *h, const strata_plan *p, void *const data[],
                          const strata_tune_options *o, strata_candidate *results, int max, int *count)
{
    static const strata_tune_options usual;
    strata_status s = st_handle_check(h, "strata_tune");
    if (s) return s;
    st_err *e = &h->err;
    if (count) *count = 0;
    if (!o) o = &usual;
    if (!p || p->magic != ST_PLAN_MAGIC)
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "strata_tune: the plan is %s; make one with a function that ends in _plan",
                       p ? "destroyed, or not a strata_plan" : "NULL");
    if (p->only && data)
        return st_fail(
            e, STRATA_ERROR_ARGUMENT,
            "strata_tune: this plan (%s) is searched with buffers of the search's own; give NULL as data",
            p->title);
    if (p->only) p = p->only;
    if (o->reserved[0] | o->reserved[1] | o->reserved[2] | o->reserved[3])
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "strata_tune: reserved words of strata_tune_options are not zero; start from {0}");
    if (!(o->seconds >= 0) || !(o->seconds <= 86400))
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "strata_tune: the budget is %g seconds; it is 0 (one second) to 86400", o->seconds);
    if (max < 0 || (max && !results))
        return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_tune: there is room for %d results at %p", max,
                       (void *)results);
    if (!p->kept)
        return st_fail(
            e, STRATA_ERROR_ARGUMENT,
            "strata_tune: the plan (%s) keeps no candidates; make one with a function that ends in _plan",
            p->title);
    if ((p->where == ST_ON_CUDA) != (h->gpu != NULL) || strcmp(p->device, h->device))
        return st_fail(e, STRATA_ERROR_STATE,
                       "strata_tune: the plan (%s) was made for %s and the handle is on %s", p->title,
                       p->device, h->device);
    if (st_gpu_capturing(h))
        return st_fail(e, STRATA_ERROR_STATE, "strata_tune: the stream is being captured; search before");
    const uint64_t t0 = st_trace_begin();
    s = tune(h, p, data, o, results, max, count);
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "plan", "tune", "%s", p->title);
    return s;
}

/* ---- searches at first use ------------------------------------------------------------------------------------------------------- */

strata_status strata_find(strata_handle *h, double seconds, bool allow_reordering)
{
    const strata_status s = st_handle_check(h, "strata_find");
    if (s) return s;
    if (!(seconds >= 0) || !(seconds <= 86400))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_find: the budget is %g seconds; it is 0 (off) to 86400", seconds);
    h->find_seconds = seconds;
    h->find_reorders = seconds > 0 && allow_reordering;
    return STRATA_OK;
}

/* Failures leave the usual choice. */
void st_plan_find_first(strata_handle *h, const st_problem *pr)
{
    st_tuning_key key;
    st_tuned known[1];
    strata_plan *p;
    if (st_gpu_capturing(h) || !st_tuning_key_of(h, pr, &key) || st_tuning_find(&key, known, 1)) return;
    const st_err before = h->err;
    const double seconds = h->find_seconds;
    h->find_seconds = 0; /* plans that the search itself asks the cache for are not searched */
    const strata_tune_options o = {.seconds = seconds, .allow_reordering = h->find_reorders};
    strata_status s = st_plan_make(h, pr, NULL, &p);
    if (!s) {
        s = strata_tune(h, p, NULL, &o, NULL, 0, NULL);
        strata_plan_destroy(p);
    }
    h->find_seconds = seconds;
    if (s) {
        const uint64_t t0 = st_trace_begin();
        if (ST_UNLIKELY(t0)) st_trace_end(t0, "plan", "find", "no search: %.300s", h->err.text);
    }
    h->err = before;
}
