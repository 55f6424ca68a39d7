/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the plan cache of one handle, in the handle's plan slot: a hash table of fixed size with chains in order of use, so that
 * shapes that keep changing replace the oldest plan instead of growing memory. */
#include "plan/plan.h"
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 512, PER_BUCKET = 8 };

typedef struct st_entry {
    uint64_t hash;
    st_op op;
    size_t bytes, text_bytes;
    void *key; /* problem bytes, then the text */
    strata_plan *plan;
    uint64_t used;
} st_entry;

typedef struct st_cache {
    st_entry entry[BUCKETS][PER_BUCKET];
    uint64_t clock;
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

static bool same(const st_entry *e, uint64_t hash, const st_problem *p, size_t text)
{
    return e->plan && e->hash == hash && e->op == p->op && e->bytes == p->bytes && e->text_bytes == text &&
           !memcmp(e->key, p->data, p->bytes) && (!text || !memcmp((char *)e->key + p->bytes, p->text, text));
}

strata_status st_plan_get(strata_handle *h, const st_problem *p, const strata_plan **plan)
{
    st_cache *c = h->plan_slot;
    size_t text = p->text ? strlen(p->text) + 1 : 0;
    if (ST_UNLIKELY(!c)) {
        c = calloc(1, sizeof *c);
        if (!c) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for the plan cache", p->who);
        h->plan_slot = c;
        h->plan_slot_free = cache_free;
    }
    uint64_t hash = st_hash(p->data, p->bytes, (uint64_t)p->op);
    if (text) hash = st_hash(p->text, text, hash);
    st_entry *set = c->entry[hash % BUCKETS], *victim = set;
    for (int i = 0; i < PER_BUCKET; i++) {
        st_entry *e = &set[i];
        if (same(e, hash, p, text)) {
            e->used = ++c->clock;
            c->stats.hits++;
            *plan = e->plan;
            return STRATA_OK;
        }
        if (victim->plan && (!e->plan || e->used < victim->used)) victim = e;
    }
    c->stats.misses++;
    strata_plan *made;
    strata_status s = st_plan_make(h, p, NULL, &made);
    if (s) return s;
    char *key = malloc(p->bytes + text + 1);
    if (!key) {
        strata_plan_destroy(made);
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a cached plan", p->who);
    }
    memcpy(key, p->data, p->bytes);
    if (text) memcpy(key + p->bytes, p->text, text);
    if (victim->plan) {
        drop(victim);
        c->stats.evictions++;
        c->stats.entries--;
    }
    *victim = (st_entry){hash, p->op, p->bytes, text, key, made, ++c->clock};
    c->stats.entries++;
    *plan = made;
    return STRATA_OK;
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
