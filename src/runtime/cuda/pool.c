/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - device memory: blocks are kept when freed and given again in the order of streams, since the driver's own allocation takes from 50
 * microseconds to milliseconds and stops the device.
 *
 * Up to 1 MiB, sizes are rounded to four classes a power of two and carved from slabs of 8 MiB; above, a block is an allocation of its own, in
 * whole 2 MiB pages, and serves a request of at least 7/8 of its size. A freed block remembers its stream and an event recorded there: the
 * same stream takes it at once, another one when the event has come, or waits for it on the device. (PyTorch's caching
 * allocator gives a block only to its own stream; the idea of slabs for small blocks is the same.) When the driver has no more, everything cached goes
 * back to it and the request is tried again. What is cached is at most a quarter of the device.
 * One lock a device; blocks are described in host memory only. */
#include "runtime/cuda/cuda.h"
#include <stdlib.h>
#include <string.h>

enum { SMALL = 1 << 20, SLAB = 8 << 20, PAGE = 2 << 20, CLASSES = 64, BUCKETS = 4096, SEARCHED = 32 };

typedef struct segment { /* one allocation of the driver */
    char *lo, *hi;
    size_t used; /* of a slab: carved so far */
    int live;    /* blocks handed out */
    bool slab;
} segment;

typedef struct block {
    char *p;
    size_t bytes, asked; /* with the rounding; as asked */
    struct block *next;  /* in its bucket, or in its list of free blocks */
    segment *from;       /* NULL: a caller's allocator's */
    const strata_handle *owner;
    uint64_t serial;   /* stream that freed it; 0: every use has finished */
    st_cu_event event; /* recorded there then; NULL: only that stream may take it */
} block;

struct st_cuda_pool {
    pthread_mutex_t lock;
    strata_memory_stats stats;
    block *bucket[BUCKETS]; /* live blocks */
    block *small[CLASSES];  /* free ones */
    block *large;
    segment **segment; /* ordered by address */
    int segments, room;
    segment *slab; /* being carved */
    st_cu_event *spare;
    int spares, spare_room;
};

bool st_cuda_pool_init(st_cuda *g)
{
    g->pool = calloc(1, sizeof *g->pool);
    return g->pool && pthread_mutex_init(&g->pool->lock, NULL) == 0;
}

/* ---- sizes ---------------------------------------------------------------------------------------------------------------------- */
static size_t rounded(size_t bytes, int *class)
{
    size_t p = 512, step;
    int c = 0;
    if (bytes > SMALL) {
        *class = -1;
        return (bytes + PAGE - 1) / PAGE * PAGE;
    }
    if (bytes <= p) {
        *class = 0;
        return p;
    }
    while (2 * p < bytes) p *= 2, c += 4;
    step = p / 4 < 256 ? 256 : p / 4;
    size_t n = (bytes + step - 1) / step * step;
    *class = c + (int)((n - p) / (p / 4));
    return n;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------------- */
static st_cu_event event_take(st_cuda *g)
{
    struct st_cuda_pool *q = g->pool;
    st_cu_event e = NULL;
    if (q->spares) return q->spare[--q->spares];
    return g->cu->event_create(&e, ST_CU_EVENT_NO_TIMING) == 0 ? e : NULL;
}

static void event_put(st_cuda *g, st_cu_event e)
{
    struct st_cuda_pool *q = g->pool;
    if (!e) return;
    if (q->spares == q->spare_room) {
        int room = q->spare_room ? 2 * q->spare_room : 64;
        st_cu_event *more = realloc(q->spare, sizeof *more * (size_t)room);
        if (!more) {
            g->cu->event_destroy(e);
            return;
        }
        q->spare = more;
        q->spare_room = room;
    }
    q->spare[q->spares++] = e;
}

/* ---- the live table -------------------------------------------------------------------------------------------------------------- */
static block **bucket_of(struct st_cuda_pool *q, const void *p)
{
    return &q->bucket[((uintptr_t)p >> 8) * 0x9e3779b97f4a7c15u >> 40 & (BUCKETS - 1)];
}

static void live_add(struct st_cuda_pool *q, block *b, size_t asked)
{
    block **at = bucket_of(q, b->p);
    b->asked = asked;
    b->next = *at;
    *at = b;
    if (b->from) b->from->live++;
    q->stats.allocations++;
    q->stats.bytes_in_use += asked;
    if (q->stats.bytes_in_use > q->stats.bytes_peak) q->stats.bytes_peak = q->stats.bytes_in_use;
}

static void live_remove(struct st_cuda_pool *q, block **at)
{
    block *b = *at;
    q->stats.frees++;
    q->stats.bytes_in_use -= b->asked;
    if (b->from) b->from->live--;
    *at = b->next;
}

/* ---- segments --------------------------------------------------------------------------------------------------------------------- */
static int segment_at(const struct st_cuda_pool *q, const char *p) /* the first one that ends after p */
{
    int lo = 0, hi = q->segments;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (q->segment[mid]->hi <= p)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static st_cu_result segment_make(st_cuda *g, size_t bytes, bool slab, segment **out)
{
    struct st_cuda_pool *q = g->pool;
    if (q->segments == q->room) {
        int room = q->room ? 2 * q->room : 64;
        segment **more = realloc(q->segment, sizeof(segment *) * (size_t)room);
        if (!more) return ST_CU_OUT_OF_MEMORY;
        q->segment = more;
        q->room = room;
    }
    segment *s = calloc(1, sizeof *s);
    st_cu_ptr p = 0;
    if (!s) return ST_CU_OUT_OF_MEMORY;
    int mode = st_cuda_relax(g);
    st_cu_result r = g->cu->mem_alloc(&p, bytes);
    st_cuda_restore(g, mode);
    if (r) {
        free(s);
        return r;
    }
    q->stats.system_allocations++;
    *s = (segment){.lo = (char *)(uintptr_t)p, .hi = (char *)(uintptr_t)p + bytes, .slab = slab};
    int i = segment_at(q, s->lo);
    memmove(q->segment + i + 1, q->segment + i, sizeof *q->segment * (size_t)(q->segments++ - i));
    q->segment[i] = s;
    *out = s;
    return 0;
}

static void segment_drop(st_cuda *g, segment *s)
{
    struct st_cuda_pool *q = g->pool;
    int i = segment_at(q, s->lo), mode = st_cuda_relax(g);
    memmove(q->segment + i, q->segment + i + 1, sizeof *q->segment * (size_t)(--q->segments - i));
    g->cu->mem_free((st_cu_ptr)(uintptr_t)s->lo); /* waits for the device */
    st_cuda_restore(g, mode);
    if (q->slab == s) q->slab = NULL;
    free(s);
}

/* ---- free blocks -------------------------------------------------------------------------------------------------------------------- */
static void unlink_free(st_cuda *g, block **at)
{
    block *b = *at;
    *at = b->next;
    g->pool->stats.bytes_cached -= b->bytes;
}

/* Everything that is free goes back to the driver, slabs where no block of them lives. */
static size_t release_all(st_cuda *g)
{
    struct st_cuda_pool *q = g->pool;
    size_t before = 0;
    while (q->large) {
        block *b = q->large;
        before += b->bytes;
        unlink_free(g, &q->large);
        event_put(g, b->event);
        segment_drop(g, b->from);
        free(b);
    }
    for (int c = 0; c < CLASSES; c++)
        for (block **at = &q->small[c]; *at;) {
            block *b = *at;
            if (b->from->live) {
                at = &b->next;
                continue;
            }
            unlink_free(g, at);
            event_put(g, b->event);
            free(b);
        }
    for (int i = q->segments - 1; i >= 0; i--)
        if (q->segment[i]->slab && !q->segment[i]->live) {
            before += (size_t)(q->segment[i]->hi - q->segment[i]->lo);
            segment_drop(g, q->segment[i]);
        }
    return before;
}

/* Orders stream s after the block's last use; false when that cannot be done. A stream that is captured runs nothing and later runs
 * elsewhere, so the use must be over. */
static bool order(st_cuda *g, block *b, const strata_stream *s)
{
    bool captured = b->serial && st_cuda_stream_captures(g, s);
    if (b->serial && (b->serial != s->serial || captured)) {
        if (!b->event) return false;
        int mode = st_cuda_relax(g);
        st_cu_result r = g->cu->event_query(b->event);
        st_cuda_restore(g, mode);
        if (r && (captured || g->cu->stream_wait_event(s->native, b->event, 0))) return false;
    }
    event_put(g, b->event);
    b->event = NULL;
    b->serial = 0;
    return true;
}

/* A free block for the request: the first of this stream's among those searched, else the smallest. */
static block *reuse(st_cuda *g, strata_stream *s, size_t n, int class)
{
    struct st_cuda_pool *q = g->pool;
    block **best = NULL;
    int searched = 0;
    for (block **at = class < 0 ? &q->large : &q->small[class]; *at && searched < SEARCHED;
         at = &(*at)->next) {
        block *b = *at;
        if (b->bytes < n || b->bytes - n > n / 7 || (!b->event && b->serial && b->serial != s->serial))
            continue;
        searched++;
        bool own = !b->serial || b->serial == s->serial;
        bool best_own = best && (!(*best)->serial || (*best)->serial == s->serial);
        if (!best || (own && !best_own) || (own == best_own && b->bytes < (*best)->bytes)) best = at;
        if (class >= 0 && own) break;
    }
    if (!best) return NULL;
    block *b = *best;
    if (!order(g, b, s)) return NULL;
    unlink_free(g, best);
    return b;
}

static block *fresh(st_cuda *g, size_t n, int class, st_cu_result *r)
{
    struct st_cuda_pool *q = g->pool;
    segment *s = q->slab;
    block *b = calloc(1, sizeof *b);
    if (!b) {
        *r = ST_CU_OUT_OF_MEMORY;
        return NULL;
    }
    if (class < 0) {
        if ((*r = segment_make(g, n, false, &s)) != 0) goto none;
        *b = (block){.p = s->lo, .bytes = n, .from = s};
        return b;
    }
    if (!s || s->used + n > (size_t)(s->hi - s->lo)) {
        /* what is left of the old slab is lost until the slab goes: at most 1 of 8 MiB */
        if ((*r = segment_make(g, SLAB, true, &s)) != 0) goto none;
        q->slab = s;
    }
    *b = (block){.p = s->lo + s->used, .bytes = n, .from = s};
    s->used += n;
    return b;
none:
    free(b);
    return NULL;
}

void *st_cuda_pool_alloc(st_err *e, st_cuda *g, strata_stream *s, size_t bytes)
{
    struct st_cuda_pool *q = g->pool;
    int class;
    size_t released = 0;
    st_cu_result r = 0;
    if (bytes > (size_t)PTRDIFF_MAX / 2) {
        st_cuda_no_memory(e, g, 0, bytes, 0);
        return NULL;
    }
    size_t n = rounded(bytes ? bytes : 1, &class);
    pthread_mutex_lock(&q->lock);
    block *b = reuse(g, s, n, class);
    if (!b) b = fresh(g, n, class, &r);
    if (!b && r == ST_CU_OUT_OF_MEMORY) {
        released = release_all(g);
        b = fresh(g, n, class, &r);
    }
    if (b) live_add(q, b, bytes);
    pthread_mutex_unlock(&q->lock);
    if (b) return b->p;
    if (r == ST_CU_OUT_OF_MEMORY)
        st_cuda_no_memory(e, g, r, bytes, released);
    else
        st_cuda_fail(e, g, s, "cuMemAlloc", r, "%s gave no memory (%zu bytes)", g->gpu.device, bytes);
    return NULL;
}

bool st_cuda_pool_adopt(st_cuda *g, void *p, size_t bytes, const strata_handle *owner)
{
    block *b = calloc(1, sizeof *b);
    if (!b) return false;
    *b = (block){.p = p, .bytes = bytes, .owner = owner};
    pthread_mutex_lock(&g->pool->lock);
    live_add(g->pool, b, bytes);
    pthread_mutex_unlock(&g->pool->lock);
    return true;
}

static void to_cache(st_cuda *g, block *b, strata_stream *s)
{
    struct st_cuda_pool *q = g->pool;
    int class;
    rounded(b->bytes, &class);
    b->serial = s ? s->serial : 0;
    if (s && !st_cuda_stream_captures(g, s) && (b->event = event_take(g)) != NULL &&
        g->cu->event_record(b->event, s->native)) {
        event_put(g, b->event);
        b->event = NULL;
    }
    block **at = class < 0 ? &q->large : &q->small[class];
    b->next = *at;
    *at = b;
    q->stats.bytes_cached += b->bytes;
    while (q->stats.bytes_cached > (uint64_t)g->gpu.memory / 4 && q->large &&
           !(s && st_cuda_stream_captures(g, s))) {
        block **last = &q->large; /* freed longest ago */
        while ((*last)->next) last = &(*last)->next;
        block *old = *last;
        unlink_free(g, last);
        event_put(g, old->event);
        segment_drop(g, old->from);
        free(old);
    }
}

st_taken st_cuda_pool_take(st_cuda *g, strata_stream *s, void *p, const strata_handle *h, size_t *bytes)
{
    struct st_cuda_pool *q = g->pool;
    pthread_mutex_lock(&q->lock);
    block **at = bucket_of(q, p);
    while (*at && (*at)->p != p) at = &(*at)->next;
    block *b = *at;
    st_taken r = !b              ? ST_TAKEN_NOTHING
                 : b->from       ? ST_TAKEN_POOL
                 : b->owner == h ? ST_TAKEN_CALLERS
                                 : ST_TAKEN_OTHERS;
    if (r == ST_TAKEN_POOL || r == ST_TAKEN_CALLERS) {
        *bytes = b->asked;
        live_remove(q, at);
        if (r == ST_TAKEN_POOL)
            to_cache(g, b, s);
        else
            free(b);
    }
    pthread_mutex_unlock(&q->lock);
    return r;
}

void st_cuda_pool_forget(st_cuda *g, const strata_handle *owner)
{
    struct st_cuda_pool *q = g->pool;
    pthread_mutex_lock(&q->lock);
    for (int i = 0; i < BUCKETS; i++)
        for (block **at = &q->bucket[i]; *at;) {
            block *b = *at;
            if (b->from || b->owner != owner) {
                at = &b->next;
                continue;
            }
            live_remove(q, at);
            free(b);
        }
    pthread_mutex_unlock(&q->lock);
}

void st_cuda_pool_trim(st_cuda *g)
{
    pthread_mutex_lock(&g->pool->lock);
    release_all(g);
    pthread_mutex_unlock(&g->pool->lock);
}

void st_cuda_pool_stats(st_cuda *g, strata_memory_stats *s)
{
    pthread_mutex_lock(&g->pool->lock);
    *s = g->pool->stats;
    pthread_mutex_unlock(&g->pool->lock);
}

bool st_cuda_pool_range(st_cuda *g, const void *p, char **lo, char **hi)
{
    struct st_cuda_pool *q = g->pool;
    pthread_mutex_lock(&q->lock);
    int i = segment_at(q, p);
    bool in = i < q->segments && (const char *)p >= q->segment[i]->lo;
    if (in) {
        *lo = q->segment[i]->lo;
        *hi = q->segment[i]->hi;
    }
    pthread_mutex_unlock(&q->lock);
    return in;
}
