/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the plan cache of one handle, in the handle's plan slot: a hash table of fixed size with chains in order of use, so that
 * shapes that keep changing replace the oldest plan instead of growing memory. */
#include "plan/tuning.h"
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 512, PER_BUCKET = 8, MEMOS = 128 };

typedef struct st_entry {
    uint64_t hash;
    st_op op;
    size_t bytes, text_bytes,
        limit;   /* limit: the handle's workspace limit, since the choice depended on it */
    int threads; /* what the plan was built for; the usual choice does not depend on it */
    unsigned
        modes; /* of the handle, on which the choice depends, and the generation of the tuning snapshot */
    void *key; /* problem bytes, then the text */
    strata_plan *plan;
    uint64_t used;
} st_entry;

typedef struct st_memo {
    int64_t key[ST_MEMO_WORDS];
    st_entry *entry;
    uint64_t drops; /* the cache's when this was written: since then no entry has changed its plan */
} st_memo;

typedef struct st_cache {
    st_entry entry[BUCKETS][PER_BUCKET];
    st_memo memo[MEMOS];
    st_entry *last; /* what st_plan_get found or made last */
    uint64_t clock, drops;
    strata_plan_cache_stats stats;
} st_cache;

static void drop(st_entry *e)
{
    strata_plan_destroy(e->plan);
    free(e->key);
    memset(e, 0, sizeof *e);
}

static void cache_free(void *v)
{
    st_cache *c = v;
    for (int b = 0; b < BUCKETS; b++)
        for (int i = 0; i < PER_BUCKET; i++)
            if (c->entry[b][i].plan) drop(&c->entry[b][i]);
    free(c);
}

static bool same(const st_entry *e, const st_entry *key, const st_problem *p)
{
    return e->plan && e->hash == key->hash && e->op == key->op && e->bytes == key->bytes &&
           e->text_bytes == key->text_bytes && e->limit == key->limit && e->threads == key->threads &&
           e->modes == key->modes && !memcmp(e->key, p->data, p->bytes) &&
           (!key->text_bytes || !memcmp((char *)e->key + p->bytes, p->text, key->text_bytes));
}

static int threads_of(const strata_handle *h)
{
    return h->parallel_for ? -h->parallel_threads : st_threads(h);
}

static unsigned modes(const strata_handle *h)
{
    return st_tuning_generation() << 2 | (unsigned)h->batch_invariant << 1 | (unsigned)h->find_reorders;
}

/* Making the plan may itself ask the cache for others, so the place for it is looked for afterwards. */
static ST_NOINLINE strata_status miss(strata_handle *h, st_cache *c, st_entry key, const st_problem *p,
                                      const strata_plan **plan)
{
    c->stats.misses++;
    strata_status s = st_plan_make_cached(h, p, &key.plan);
    if (s) return s;
    key.modes = modes(h); /* a search at first use changed the generation */
    key.key = malloc(p->bytes + key.text_bytes + 1);
    if (!key.key) {
        strata_plan_destroy(key.plan);
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a cached plan", p->who);
    }
    if (p->bytes) memcpy(key.key, p->data, p->bytes);
    if (key.text_bytes) memcpy((char *)key.key + p->bytes, p->text, key.text_bytes);
    st_entry *set = c->entry[key.hash % BUCKETS], *victim = set;
    for (int i = 1; i < PER_BUCKET; i++)
        if (victim->plan && (!set[i].plan || set[i].used < victim->used)) victim = &set[i];
    if (victim->plan) {
        drop(victim);
        c->drops++;
        c->stats.evictions++;
        c->stats.entries--;
    }
    key.used = ++c->clock;
    *victim = key;
    c->last = victim;
    c->stats.entries++;
    *plan = key.plan;
    return STRATA_OK;
}

strata_status st_plan_get(strata_handle *h, const st_problem *p, const strata_plan **plan)
{
    st_cache *c = h->plan_slot;
    if (ST_UNLIKELY(!c)) {
        c = calloc(1, sizeof *c);
        if (!c) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for the plan cache", p->who);
        h->plan_slot = c;
        h->plan_slot_free = cache_free;
    }
    st_entry key = {.op = p->op,
                    .bytes = p->bytes,
                    .text_bytes = p->text ? strlen(p->text) + 1 : 0,
                    .limit = h->workspace_limit,
                    .threads = threads_of(h),
                    .modes = modes(h)};
    key.hash = st_hash(p->data, p->bytes, (uint64_t)p->op ^ key.limit);
    if (key.text_bytes) key.hash = st_hash(p->text, key.text_bytes, key.hash);
    st_entry *set = c->entry[key.hash % BUCKETS];
    for (int i = 0; i < PER_BUCKET; i++)
        if (same(&set[i], &key, p)) {
            if (ST_UNLIKELY(!st_handle_open(h))) return st_handle_in_use(p->who);
            set[i].used = ++c->clock;
            c->stats.hits++;
            c->last = &set[i];
            *plan = set[i].plan;
            return STRATA_OK;
        }
    const st_enter e = st_handle_enter(h);
    if (e == ST_IN_USE) return st_handle_in_use(p->who);
    if (ST_UNLIKELY(h->find_seconds > 0) && e == ST_ENTERED) st_plan_find_first(h, p);
    const strata_status s = miss(h, c, key, p, plan);
    st_handle_leave(h, e);
    return s;
}

static st_memo *memo_of(st_cache *c, const int64_t *key)
{
    uint64_t x = 0;
    for (int i = 0; i < ST_MEMO_WORDS; i++) x = (x ^ (uint64_t)key[i]) * 0x9e3779b97f4a7c15u;
    return &c->memo[x >> 57];
}
_Static_assert(MEMOS == 1 << 7, "seven bits of the product choose");

const strata_plan *st_plan_recall(strata_handle *h, const int64_t key[ST_MEMO_WORDS])
{
    st_cache *c = h->plan_slot;
    if (!c || !st_handle_open(h)) return NULL;
    const st_memo *m = memo_of(c, key);
    st_entry *e = m->entry;
    if (!e || m->drops != c->drops || memcmp(m->key, key, sizeof m->key) || e->limit != h->workspace_limit ||
        e->modes != modes(h) || e->threads != threads_of(h))
        return NULL;
    e->used = ++c->clock;
    c->stats.hits++;
    return e->plan;
}

void st_plan_keep(strata_handle *h, const int64_t key[ST_MEMO_WORDS], const strata_plan *plan)
{
    st_cache *c = h->plan_slot;
    if (!c || !c->last || c->last->plan != plan) return;
    st_memo *m = memo_of(c, key);
    memcpy(m->key, key, sizeof m->key);
    m->entry = c->last;
    m->drops = c->drops;
}

strata_status strata_get_plan_cache_stats(strata_handle *h, strata_plan_cache_stats *s)
{
    strata_status r = st_handle_check(h, "strata_get_plan_cache_stats");
    if (r) return r;
    if (!s)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "strata_get_plan_cache_stats: the address is NULL");
    const st_cache *c = h->plan_slot;
    *s = c ? c->stats : (strata_plan_cache_stats){0};
    return STRATA_OK;
}
