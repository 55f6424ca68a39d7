/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - providers, choice, the plan's text, the public plan calls. */
#include "plan/plan.h"
#include "runtime/gpu.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROVIDERS = 64, MAX_LISTS = 16, MAX_ENGINES = 8 };

/* Filled once by the engines' init functions and read-only after: a registry, not state. */
static struct {
    pthread_mutex_t lock;
    const st_provider *provider[MAX_PROVIDERS];
    atomic_int providers;
    int (*list[MAX_LISTS])(int, strata_kernel_info *);
    atomic_int lists;
    const st_engine *engine[MAX_ENGINES];
    atomic_int engines;
    const st_tiles *tiles[MAX_PROVIDERS];
    atomic_int tilings;
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

void st_plan_register_engine(const st_engine *e)
{
    pthread_mutex_lock(&registry.lock);
    const int n = atomic_load(&registry.engines);
    bool known = false;
    for (int i = 0; i < n; i++) known |= registry.engine[i]->op == e->op;
    if (!known && n < MAX_ENGINES) {
        registry.engine[n] = e;
        atomic_store(&registry.engines, n + 1);
    }
    pthread_mutex_unlock(&registry.lock);
}

void st_plan_register_tiles(const st_tiles *t)
{
    pthread_mutex_lock(&registry.lock);
    const int n = atomic_load(&registry.tilings);
    bool known = false;
    for (int i = 0; i < n; i++) known |= registry.tiles[i]->provider == t->provider;
    if (!known && n < MAX_PROVIDERS) {
        registry.tiles[n] = t;
        atomic_store(&registry.tilings, n + 1);
    }
    pthread_mutex_unlock(&registry.lock);
}

const st_tiles *st_plan_tiles(const st_provider *p)
{
    const int n = atomic_load(&registry.tilings);
    for (int i = 0; i < n; i++)
        if (registry.tiles[i]->provider == p) return registry.tiles[i];
    return NULL;
}

const st_engine *st_plan_engine(st_op op)
{
    const int n = atomic_load(&registry.engines);
    for (int i = 0; i < n; i++)
        if (registry.engine[i]->op == op) return registry.engine[i];
    return NULL;
}

int st_plan_providers(const st_provider *out[], int max)
{
    const int n = (int)st_min64(atomic_load(&registry.providers), max);
    for (int i = 0; i < n; i++) out[i] = registry.provider[i];
    return n;
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

st_extent st_plan_extent(const strata_tensor *t, bool written)
{
    static char somewhere;
    strata_tensor view = *t;
    const char *lo, *hi;
    view.data = &somewhere;
    st_tensor_span(&view, &lo, &hi);
    if (!lo) return (st_extent){.read = true, .written = written};
    return (st_extent){.lo = lo - &somewhere, .hi = hi - &somewhere, .read = true, .written = written};
}

ST_INLINE bool alive(const strata_plan *p) { return p && p->magic == ST_PLAN_MAGIC; }

static void forget(st_kept *k)
{
    if (!k) return;
    free((void *)(uintptr_t)k->problem.data);
    free((void *)(uintptr_t)k->problem.text);
    free((void *)(uintptr_t)k->problem.who);
    free(k->list);
    free(k);
}

void strata_plan_destroy(strata_plan *p)
{
    if (!alive(p) || atomic_fetch_sub(&p->refs, 1) != 1) return;
    p->magic = 0;
    if (p->destroy) p->destroy(p);
    free(p->text);
    free(p->extent);
    forget(p->kept);
    p->kept = NULL;
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
        if (!x || lo == hi || hi <= at || end <= lo || (r && (r->prepared >> i & 1))) continue;
        st_fail(&h->err, STRATA_ERROR_ALIAS,
                "%s: operand %d (bytes %p to %p) shares memory with %s workspace (%zu bytes at %p)", p->title,
                i, (void *)lo, (void *)hi, own ? "the run's" : "the handle's", p->workspace, (void *)at);
        st_err_remedy(&h->err, "give a workspace of its own memory, or none: the handle then keeps one");
        return STRATA_ERROR_ALIAS;
    }
    return STRATA_OK;
}

/* ---- making -------------------------------------------------------------------------------------------------------------- */

/* NULL where memory is short: the plan then runs as any other and lists nothing. */
static st_kept *keep(const st_problem *pr, const st_choice *c)
{
    st_kept *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    k->problem = (st_problem){pr->op, strdup(pr->who), malloc(pr->bytes + 1), pr->bytes,
                              pr->text ? strdup(pr->text) : NULL};
    k->list = malloc(sizeof *k->list * (size_t)(c->count + 1));
    if (!k->problem.who || !k->problem.data || (pr->text && !k->problem.text) || !k->list) {
        forget(k);
        return NULL;
    }
    memcpy((void *)(uintptr_t)k->problem.data, pr->data, pr->bytes);
    memcpy(k->list, c->list, sizeof *k->list * (size_t)c->count);
    k->count = c->count;
    k->chosen = (int)(c->best - c->list);
    k->limit = c->limit;
    return k;
}

static strata_status make(strata_handle *h, const st_problem *pr, const strata_choice *choice, bool callers,
                          strata_plan **plan)
{
    st_choice c;
    const uint64_t t0 = st_trace_begin();
    *plan = NULL;
    strata_status s = st_plan_choose(h, pr, choice, &c);
    if (!s) s = st_plan_build(h, pr, c.limit, c.best, plan);
    if (!s) {
        st_plan_write_text(*plan, &c);
        if (callers) (*plan)->kept = keep(pr, &c);
        if (ST_UNLIKELY(t0))
            st_trace_end(t0, "plan", c.best->kernel, "%s: %d candidates, predicted %.1f us, workspace %zu%s",
                         (*plan)->title, c.count, (*plan)->chosen.us, (*plan)->workspace,
                         c.reordered ? ", another order of summation than the usual one" : "");
    } else if (ST_UNLIKELY(t0)) {
        st_trace_end(t0, "plan", "none", "%d candidates", c.count);
    }
    free(c.list);
    return s;
}

strata_status st_plan_make(strata_handle *h, const st_problem *pr, const strata_choice *choice,
                           strata_plan **plan)
{
    return make(h, pr, choice, true, plan);
}

strata_status st_plan_make_cached(strata_handle *h, const st_problem *pr, strata_plan **plan)
{
    return make(h, pr, NULL, false, plan);
}

strata_kernel_info st_plan_gpu_kernel_info(const char *id, const char *family, const char *types,
                                           const char *isa, const char *order)
{
    return (strata_kernel_info){.id = id,
                                .family = family,
                                .types = types,
                                .isa = isa,
                                .order = order,
                                .usable = false,
                                .why_not = "runs on a handle of a CUDA device"};
}

/* ---- running ------------------------------------------------------------------------------------------------------------- */

/* Position of the first operand that lacks an address and needs one: what no byte is read or written of needs none. -1: all have theirs. */
ST_INLINE int missing_operand(const strata_plan *p, void *const data[], const strata_run *r)
{
    for (int i = 0; i < p->operands; i++)
        if (ST_UNLIKELY(!data[i]) && (p->extent ? p->extent[i].hi > p->extent[i].lo : p->flops > 0) &&
            !(p->may_miss && p->may_miss(p, r, i)))
            return i;
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
                   : r && r->prepared & ~p->preparable
                       ? "strata_run.prepared names an operand that this plan does not take prepared"
                       : "reserved words of strata_run are not zero; start from {0}");
}

strata_status strata_plan_run(strata_handle *h, const strata_plan *p, void *const data[], const strata_run *r)
{
    if (ST_LIKELY(h && h->magic == ST_HANDLE_MAGIC && alive(p) && data) &&
        ST_LIKELY(!r ||
                  !(r->reserved[0] | r->reserved[1] | r->reserved[2] | (r->prepared & ~p->preparable))) &&
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
const char *strata_plan_code(const strata_plan *p) { return alive(p) ? p->code : ""; }
const char *strata_plan_order(const strata_plan *p) { return alive(p) ? p->order : ""; }

int strata_plan_candidates(const strata_plan *p, int i, strata_candidate *c)
{
    if (alive(p) && p->only) p = p->only;
    if (!alive(p) || !p->kept || !c || i < 0 || i >= p->kept->count) return 0;
    st_plan_candidate(&p->kept->list[i], &p->chosen, c);
    c->chosen = i == p->kept->chosen;
    if (c->chosen) c->predicted_us = p->chosen.us;
    return 1;
}

void st_plan_candidate(const st_candidate *x, const st_candidate *chosen, strata_candidate *c)
{
    *c = (strata_candidate){.predicted_us = x->us,
                            .measured_us = x->measured,
                            .workspace = x->workspace,
                            .tile = x->tile,
                            .same_order = st_same_order(x, chosen)};
    memcpy(c->kernel, x->kernel, sizeof c->kernel);
    if (x->us < 0)
        memcpy(c->why, x->why, sizeof c->why);
    else
        st_code_write(x, c->code);
    st_order_words(x, c->order, sizeof c->order);
}

strata_status strata_set_batch_invariant(strata_handle *h, bool on)
{
    const strata_status s = st_handle_check(h, "strata_set_batch_invariant");
    if (!s) h->batch_invariant = on;
    return s;
}
