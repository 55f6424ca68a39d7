/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - providers, choice, the plan's text, the public plan calls. */
#include "plan/plan.h"
#include "runtime/gpu.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROVIDERS = 32, MAX_LISTS = 8, MAX_CANDIDATES = 256 };

/* Filled once by the engines' init functions and read-only after: a registry, not state. */
static struct {
    pthread_mutex_t lock;
    const st_provider *provider[MAX_PROVIDERS];
    atomic_int providers;
    int (*list[MAX_LISTS])(int, strata_kernel_info *);
    atomic_int lists;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void before_fork(void) { pthread_mutex_lock(&registry.lock); }
static void after_fork(void) { pthread_mutex_unlock(&registry.lock); }
__attribute__((constructor)) static void register_fork(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

void st_plan_register(const st_provider *p)
{
    pthread_mutex_lock(&registry.lock);
    int n = atomic_load(&registry.providers);
    bool known = false;
    for (int i = 0; i < n; i++) known |= registry.provider[i] == p;
    if (!known && n < MAX_PROVIDERS) {
        registry.provider[n] = p;
        atomic_store(&registry.providers, n + 1);
    }
    pthread_mutex_unlock(&registry.lock);
}

void st_plan_register_kernels(int (*list)(int i, strata_kernel_info *info))
{
    pthread_mutex_lock(&registry.lock);
    int n = atomic_load(&registry.lists);
    bool known = false;
    for (int i = 0; i < n; i++) known |= registry.list[i] == list;
    if (!known && n < MAX_LISTS) {
        registry.list[n] = list;
        atomic_store(&registry.lists, n + 1);
    }
    pthread_mutex_unlock(&registry.lock);
}

int strata_kernels(int i, strata_kernel_info *info)
{
    if (i < 0 || !info) return 0;
    int n = atomic_load(&registry.lists);
    for (int l = 0; l < n; l++)
        for (int k = 0; registry.list[l](k, info); k++)
            if (i-- == 0) {
                if (info->isa && strncmp(info->isa, "sm", 2) == 0)
                    info->usable = st_gpu_runs(info->isa, &info->why_not);
                return 1;
            }
    return 0;
}

/* The memory of plans is never given back: a spare plan keeps the word by which its functions see that it was destroyed, and is
 * reused after KEEP others of its size. Its number is bounded by the most that lived at once. */
enum { KEEP = 16, SIZE_CLASSES = 8, SMALLEST = 1024 };
static struct {
    strata_plan *first, *last;
    int spare;
} sizes[SIZE_CLASSES];

void *st_plan_new(size_t bytes)
{
    int i = 0;
    while (i < SIZE_CLASSES && (size_t)SMALLEST << i < bytes) i++;
    strata_plan *p = NULL;
    if (i < SIZE_CLASSES) {
        bytes = (size_t)SMALLEST << i;
        pthread_mutex_lock(&registry.lock);
        if (sizes[i].spare > KEEP) {
            p = sizes[i].first;
            sizes[i].first = p->next_spare;
            sizes[i].spare--;
        }
        pthread_mutex_unlock(&registry.lock);
    }
    if (p)
        memset(p, 0, bytes);
    else
        p = calloc(1, bytes);
    if (!p) return NULL;
    atomic_store(&p->refs, 1);
    p->size_class = i;
    p->magic = ST_PLAN_MAGIC;
    return p;
}

static void put_away(strata_plan *p)
{
    const int i = p->size_class;
    if (i == SIZE_CLASSES) {
        free(p);
        return;
    }
    p->next_spare = NULL;
    pthread_mutex_lock(&registry.lock);
    if (sizes[i].spare++)
        sizes[i].last->next_spare = p;
    else
        sizes[i].first = p;
    sizes[i].last = p;
    pthread_mutex_unlock(&registry.lock);
}

ST_INLINE bool alive(const strata_plan *p) { return p && p->magic == ST_PLAN_MAGIC; }

void strata_plan_destroy(strata_plan *p)
{
    if (!alive(p) || atomic_fetch_sub(&p->refs, 1) != 1) return;
    p->magic = 0;
    if (p->destroy) p->destroy(p);
    free(p->text);
    free(p->extent);
    p->text = NULL;
    p->extent = NULL;
    put_away(p);
}

void *st_plan_workspace(strata_handle *h, const strata_plan *p, const strata_run *r)
{
    if (!r || !r->workspace) {
        void *w = st_workspace_beyond(h, p->workspace, p->scratch);
        if (!w) { /* st_workspace knows the rule that was broken, not for whom */
            char rule[sizeof h->err.text];
            memcpy(rule, h->err.text, sizeof rule);
            snprintf(h->err.text, sizeof h->err.text, "%.180s: %.560s", p->title, rule);
        }
        return w;
    }
    if (r->workspace_bytes < p->workspace || ((uintptr_t)r->workspace & 63)) {
        st_fail(&h->err, STRATA_ERROR_WORKSPACE,
                "strata_plan_run: the run's workspace has %zu bytes at %p; the plan needs %zu at a multiple "
                "of 64",
                r->workspace_bytes, r->workspace, p->workspace);
        return NULL;
    }
    if (ST_UNLIKELY(h->gpu != NULL) && !st_gpu_reaches(h, r->workspace)) {
        st_fail(&h->err, STRATA_ERROR_DEVICE,
                "strata_plan_run: the run's workspace at %p is memory that %s does not reach", r->workspace,
                h->device);
        st_err_remedy(&h->err, "allocate it with strata_alloc on this handle");
        return NULL;
    }
    if (p->workspace > h->workspace_peak) h->workspace_peak = p->workspace;
    return r->workspace;
}

strata_status st_plan_check_workspace(strata_handle *h, const strata_plan *p, void *const data[],
                                      const strata_run *r)
{
    const bool own = r && r->workspace;
    const uintptr_t at = (uintptr_t)(own ? r->workspace : h->workspace), end = at + p->workspace;
    if ((own ? r->workspace_bytes : h->workspace_size) < p->workspace || at & 63)
        return STRATA_OK; /* run says it */
    for (int i = 0; i < p->operands; i++) {
        const uintptr_t x = (uintptr_t)data[i];
        const st_extent *e = p->extent ? &p->extent[i] : NULL;
        const uintptr_t lo = x + (uintptr_t)(e ? e->lo : 0), hi = e ? x + (uintptr_t)e->hi : x + 1;
        if (!x || lo == hi || hi <= at || end <= lo) continue;
        st_fail(&h->err, STRATA_ERROR_ALIAS,
                "%s: operand %d (bytes %p to %p) shares memory with %s workspace (%zu bytes at %p)", p->title,
                i, (void *)lo, (void *)hi, own ? "the run's" : "the handle's", p->workspace, (void *)at);
        st_err_remedy(&h->err, "give a workspace of its own memory, or none: the handle then keeps one");
        return STRATA_ERROR_ALIAS;
    }
    return STRATA_OK;
}

/* ---- the text: written when the plan is made, so that describing costs nothing and cannot fail ---- */
typedef struct st_text {
    char *s;
    size_t n, cap;
} st_text;

static void put(st_text *t, const char *fmt, ...) ST_PRINTF(2, 3);
static void put(st_text *t, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int k = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (k < 0) return;
    size_t len = (size_t)k < sizeof line ? (size_t)k : sizeof line - 1;
    if (t->n + len + 1 > t->cap) {
        size_t cap = (t->cap + len + 1) * 2;
        char *s = realloc(t->s, cap);
        if (!s) return;
        t->s = s;
        t->cap = cap;
    }
    memcpy(t->s + t->n, line, len + 1);
    t->n += len;
}

static void put_size(st_text *t, size_t bytes)
{
    if (bytes < 10240)
        put(t, "%zu B", bytes);
    else if (bytes < 10u << 20)
        put(t, "%.1f KiB", (double)bytes / 1024);
    else
        put(t, "%.1f MiB", (double)bytes / (1 << 20));
}

static void write_text(strata_plan *p, const st_candidate *c, int n, const st_candidate *chosen)
{
    st_text t = {0};
    put(&t, "%s on %s\n", p->title, p->device);
    put(&t, "  kernel     %s    workspace ", chosen->kernel);
    put_size(&t, p->workspace);
    put(&t, "    predicted %.1f us on one thread\n", chosen->us);
    if (p->flops > 0 || p->bytes > 0)
        put(&t, "  work       %.4g Mflop, %.4g MB at least, %.3g flop/byte\n", p->flops * 1e-6,
            p->bytes * 1e-6, p->bytes > 0 ? p->flops / p->bytes : 0.0);
    if (chosen->order) put(&t, "  order      %s\n", chosen->order);
    for (int i = 0; i < n; i++)
        if (&c[i] != chosen && c[i].us >= 0)
            put(&t, "  also       %-40s predicted %.1f us\n", c[i].kernel, c[i].us);
    for (int i = 0; i < n; i++)
        if (c[i].us < 0) put(&t, "  refused    %-40s %s\n", c[i].kernel, c[i].why);
    if (t.n && t.s[t.n - 1] == '\n') t.s[t.n - 1] = 0;
    p->text = t.s;
}

/* Says why none of the candidates can be used: the forced kernel's reason, else the limit when only that is in the way, else everyone's. */
static void no_choice(strata_handle *h, const st_problem *pr, const char *forced, size_t limit,
                      const st_candidate *c, int n)
{
    const st_candidate *named = NULL;
    size_t least = SIZE_MAX; /* workspace that would do */
    for (int i = 0; i < n; i++) {
        if (forced && strcmp(forced, c[i].kernel)) continue;
        if (!named) named = &c[i];
        if (c[i].over_limit && c[i].workspace < least) least = c[i].workspace;
    }
    strata_status s = least != SIZE_MAX ? STRATA_ERROR_WORKSPACE : STRATA_ERROR_UNSUPPORTED;
    if (forced && named) {
        st_fail(&h->err, s, "%s: kernel '%s' was asked for, but %s", pr->who, forced, named->why);
    } else if (forced) {
        st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                "%s: there is no kernel '%s' for this problem; strata_kernels lists them", pr->who, forced);
    } else if (least != SIZE_MAX) {
        st_fail(&h->err, s,
                "%s: no kernel that can do this keeps to the workspace limit of %zu bytes; %zu would do",
                pr->who, limit, least);
    } else {
        st_fail(&h->err, s, "%s: no kernel can do this", pr->who);
    }
    if (least != SIZE_MAX) st_err_remedy(&h->err, "a workspace limit of at least %zu bytes", least);
    for (int i = 0, shown = 0; i < n && shown < ST_ERR_FRAMES - 2; i++)
        if (c[i].us < 0 && !(forced && named)) {
            st_err_frame(&h->err, "plan", "%s: %s", c[i].kernel, c[i].why);
            shown++;
        }
}

static const st_candidate *choose(strata_handle *h, const st_problem *pr, const strata_choice *choice,
                                  st_candidate *c, int n)
{
    const st_candidate *best = NULL;
    const char *forced = choice ? choice->kernel : NULL;
    size_t limit = choice && choice->limit_workspace ? choice->workspace_limit : h->workspace_limit;
    for (int i = 0; i < n; i++) {
        if (c[i].us < 0) continue;
        if (c[i].workspace > limit) {
            snprintf(c[i].why, sizeof c[i].why, "needs %zu bytes of workspace and the limit is %zu",
                     c[i].workspace, limit);
            c[i].us = -1;
            c[i].over_limit = true;
        } else if ((!forced || !strcmp(forced, c[i].kernel)) && (!best || c[i].us < best->us)) {
            best = &c[i];
        }
    }
    if (!best) no_choice(h, pr, forced, limit, c, n);
    return best;
}

/* The choice fixes the order of summation, so it may not depend on how many threads there are: candidates are predicted, and their
 * workspace is counted, for one thread. */
static int list_candidates(strata_handle *h, const st_problem *pr, st_candidate *c)
{
    const int threads = h->threads, providers = atomic_load(&registry.providers);
    const strata_parallel_for callers = h->parallel_for;
    int n = 0;
    h->threads = 1;
    h->parallel_for = NULL;
    for (int i = 0; i < providers; i++) {
        const st_provider *p = registry.provider[i];
        if (p->op != pr->op || p->where != (h->gpu ? ST_ON_CUDA : ST_ON_CPU) || n == MAX_CANDIDATES) continue;
        int k = p->enumerate(h, pr, c + n, MAX_CANDIDATES - n);
        for (int j = n; j < n + k; j++) c[j].provider = p;
        n += k;
    }
    h->threads = threads;
    h->parallel_for = callers;
    return n;
}

/* Several threads may want more workspace than the limit that one thread keeps: then the plan is for one. */
static strata_status build(strata_handle *h, const st_problem *pr, const strata_choice *choice,
                           const st_candidate *c, strata_plan **plan)
{
    strata_status s = c->provider->build(h, pr, c, plan);
    const size_t limit = choice && choice->limit_workspace ? choice->workspace_limit : h->workspace_limit;
    if (s || (*plan)->workspace <= limit) return s;
    const int threads = h->threads;
    const strata_parallel_for callers = h->parallel_for;
    strata_plan_destroy(*plan);
    *plan = NULL;
    h->threads = 1;
    h->parallel_for = NULL;
    s = c->provider->build(h, pr, c, plan);
    h->threads = threads;
    h->parallel_for = callers;
    /* what is still above the limit is what every kernel needs beside what the candidate said: scratch of an expression's evaluation */
    if (s == STRATA_OK && (*plan)->workspace > limit) (*plan)->scratch = (*plan)->workspace - limit;
    return s;
}

strata_status st_plan_make(strata_handle *h, const st_problem *pr, const strata_choice *choice,
                           strata_plan **plan)
{
    *plan = NULL;
    if (choice)
        for (int i = 0; i < ST_COUNT(choice->reserved); i++)
            if (choice->reserved[i])
                return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                               "%s: reserved words of strata_choice are not zero; start from {0}", pr->who);
    st_candidate *c = calloc(MAX_CANDIDATES, sizeof *c);
    if (!c) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory to list candidates", pr->who);
    uint64_t t0 = st_trace_begin();
    int n = list_candidates(h, pr, c);
    const st_candidate *best = choose(h, pr, choice, c, n);
    strata_status s = best ? build(h, pr, choice, best, plan) : h->err.status;
    if (s == STRATA_OK) {
        strata_plan *p = *plan;
        p->op = pr->op;
        p->where = best->provider->where;
        p->chosen = *best;
        snprintf(p->device, sizeof p->device, "%s", h->device);
        write_text(p, c, n, best);
        if (ST_UNLIKELY(t0))
            st_trace_end(t0, "plan", best->kernel, "%s: %d candidates, predicted %.1f us, workspace %zu",
                         p->title, n, best->us, p->workspace);
    } else if (ST_UNLIKELY(t0)) {
        st_trace_end(t0, "plan", "none", "%d candidates", n);
    }
    free(c);
    return s;
}

/* Position of the first operand that lacks an address and needs one; -1 when all have theirs, or when there is nothing to compute. */
ST_INLINE int missing_operand(const strata_plan *p, void *const data[], const strata_run *r)
{
    for (int i = 0; i < p->operands; i++)
        if (ST_UNLIKELY(!data[i]) && p->flops > 0 && !(p->may_miss && p->may_miss(p, r, i))) return i;
    return -1;
}

static ST_NOINLINE strata_status run_refused(strata_handle *h, const strata_plan *p, void *const data[],
                                             const strata_run *r)
{
    strata_status s = st_handle_check(h, "strata_plan_run");
    if (s) return s;
    if (p && !alive(p))
        return st_fail(
            &h->err, STRATA_ERROR_STATE,
            "strata_plan_run: the plan is destroyed, or not a strata_plan; make one with a function "
            "that ends in _plan");
    int missing = p && data ? missing_operand(p, data, r) : -1;
    if (missing >= 0)
        return st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "strata_plan_run: data[%d] is NULL; the plan (%s) takes %d addresses, in the order of its maker",
            missing, p->title, p->operands);
    return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "strata_plan_run: %s",
                   !p      ? "the plan is NULL"
                   : !data ? "data is NULL; give the addresses of the operands, in the order in which the "
                             "plan's maker takes them"
                           : "reserved words of strata_run are not zero; start from {0}");
}

strata_status strata_plan_run(strata_handle *h, const strata_plan *p, void *const data[], const strata_run *r)
{
    if (ST_LIKELY(h && h->magic == ST_HANDLE_MAGIC && alive(p) && data) &&
        ST_LIKELY(!r || !(r->reserved[0] | r->reserved[1] | r->reserved[2] | r->reserved[3])) &&
        ST_LIKELY(missing_operand(p, data, r) < 0))
        return st_plan_execute(h, p, data, r);
    return run_refused(h, p, data, r);
}

size_t strata_plan_workspace(const strata_plan *p) { return alive(p) ? p->workspace : 0; }
const char *strata_plan_describe(const strata_plan *p)
{
    if (!alive(p)) return p ? "a destroyed plan" : "no plan";
    return p->text ? p->text : p->title;
}
const char *strata_plan_kernel(const strata_plan *p) { return alive(p) ? p->chosen.kernel : ""; }
