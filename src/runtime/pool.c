/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - the CPU's memory: 64-byte aligned blocks, each with a header before it; large ones are mapped on 2 MiB boundaries and madvised,
 * and are kept in a small cache when freed (mapping and touching pages anew costs more than most kernels).
 *
 *     system block:  [ padding | st_block | user memory ... ]
 * The header lies in the 64 bytes before the user's address. Blocks in use are also in a hash table, so that a pointer freed twice, or from
 * elsewhere, is recognised without reading memory that is not ours. One process-wide pool behind one lock, which fork may not leave held. */
#include "runtime/runtime.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    HEADER = ST_BLOCK_HEADER,
    LARGE = 1 << 20,
    HUGE_PAGE = 2 << 20,
    CACHED_BLOCKS = 16,
    COLOURS = 13,
    FIRST_BUCKETS = 64
};
#define CACHED_BYTES ((uint64_t)1 << 30) /* in all */

typedef struct st_block {
    void *base;    /* what the system gave; NULL: a caller's allocator gave it */
    size_t total;  /* its size */
    size_t usable; /* bytes from the user's address on */
    size_t asked;
    struct st_block *next;      /* in its bucket of the live table */
    const strata_handle *owner; /* of a block from a caller's allocator */
    int mapped;
} st_block;
_Static_assert(sizeof(st_block) <= HEADER, "the header must fit before the user's address");

static st_block *first_buckets[FIRST_BUCKETS];
static struct {
    pthread_mutex_t lock;
    strata_memory_stats stats;
    st_block *cached[CACHED_BLOCKS];
    int n;
    st_block **bucket; /* the live blocks; a power of two of them */
    size_t buckets, live;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .bucket = first_buckets, .buckets = FIRST_BUCKETS};

static void before_fork(void) { pthread_mutex_lock(&pool.lock); }
static void after_fork(void) { pthread_mutex_unlock(&pool.lock); }
__attribute__((constructor)) static void register_fork(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static void *user_of(st_block *b) { return (char *)b + HEADER; }
static st_block *block_of(const void *p) { return (st_block *)((char *)(uintptr_t)p - HEADER); }

/* ---- the live table; all under the lock --------------------------------------------------------------------------------------- */
static st_block **bucket_of(st_block **bucket, size_t buckets, const void *user)
{
    return &bucket[((uintptr_t)user >> 6) * 0x9e3779b97f4a7c15u >> 40 & (buckets - 1)];
}

static void live_grow(void)
{
    size_t n = pool.buckets * 4;
    st_block **b = n <= (size_t)1 << 24 ? calloc(n, sizeof *b) : NULL;
    if (!b) return; /* longer chains, nothing worse */
    for (size_t i = 0; i < pool.buckets; i++)
        for (st_block *k = pool.bucket[i], *next; k; k = next) {
            st_block **to = bucket_of(b, n, user_of(k));
            next = k->next;
            k->next = *to;
            *to = k;
        }
    if (pool.bucket != first_buckets) free(pool.bucket);
    pool.bucket = b;
    pool.buckets = n;
}

static void live_add(st_block *b, size_t asked)
{
    if (++pool.live > pool.buckets) live_grow();
    st_block **at = bucket_of(pool.bucket, pool.buckets, user_of(b));
    b->asked = asked;
    b->next = *at;
    *at = b;
    pool.stats.allocations++;
    pool.stats.bytes_in_use += asked;
    if (pool.stats.bytes_in_use > pool.stats.bytes_peak) pool.stats.bytes_peak = pool.stats.bytes_in_use;
}

static st_block **live_find(const void *user)
{
    st_block **at = bucket_of(pool.bucket, pool.buckets, user);
    while (*at && user_of(*at) != user) at = &(*at)->next;
    return at;
}

static void live_remove(st_block **at)
{
    pool.stats.frees++;
    pool.stats.bytes_in_use -= (*at)->asked;
    pool.live--;
    *at = (*at)->next;
}

/* ---- blocks of the pool --------------------------------------------------------------------------------------------------------- */
static void to_system(st_block *b)
{
    if (b->mapped)
        munmap(b->base, b->total);
    else
        free(b->base);
}

static void drop_cached(int i)
{
    pool.stats.bytes_cached -= pool.cached[i]->usable;
    to_system(pool.cached[i]);
    memmove(pool.cached + i, pool.cached + i + 1, sizeof *pool.cached * (size_t)(--pool.n - i));
}

static void release(st_block *b)
{
    if (!b->mapped || b->usable > CACHED_BYTES) {
        to_system(b);
        return;
    }
    while (pool.n && (pool.n == CACHED_BLOCKS || pool.stats.bytes_cached + b->usable > CACHED_BYTES))
        drop_cached(0); /* the oldest goes */
    pool.stats.bytes_cached += b->usable;
    pool.cached[pool.n++] = b;
}

static st_block *from_system(size_t bytes, size_t align)
{
    size_t total;
    char *base, *user;
    if (bytes >= LARGE) {
        size_t page = HUGE_PAGE;
        if (bytes > SIZE_MAX - 2 * page - HEADER - align) return NULL;
        total = (bytes + HEADER * (1 + 5 * COLOURS) + (align > HEADER ? align : 0) + page - 1) / page * page +
                page;
        base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED) return NULL;
        /* the user's address stands shortly after a 2 MiB boundary, each time at another distance: buffers that all begin at one
         * offset within a page fall into the same cache sets */
        static unsigned colour;
        size_t first = (size_t)(-(uintptr_t)base & (page - 1));
        size_t a = align > HEADER ? align : HEADER * (1 + 5 * (colour++ % COLOURS));
        user = base + first + a;
        madvise(base + first, total - first, MADV_HUGEPAGE);
    } else {
        if (align < HEADER) align = HEADER;
        total = bytes + HEADER + align;
        if (total < bytes || posix_memalign((void **)&base, align, total)) return NULL;
        user = base + align;
    }
    st_block *b = block_of(user);
    *b = (st_block){
        .base = base, .total = total, .usable = (size_t)(base + total - user), .mapped = bytes >= LARGE};
    pool.stats.system_allocations++;
    return b;
}

void *st_cpu_alloc(size_t bytes, size_t align)
{
    if (align < 64) align = 64;
    pthread_mutex_lock(&pool.lock);
    st_block *b = NULL;
    int best = -1;
    for (int i = 0; bytes >= LARGE && i < pool.n; i++) { /* smallest that fits and is not twice too large */
        st_block *c = pool.cached[i];
        if (c->usable >= bytes && c->usable <= 2 * bytes + HUGE_PAGE &&
            ((uintptr_t)user_of(c) & (align - 1)) == 0 && (best < 0 || c->usable < pool.cached[best]->usable))
            best = i;
    }
    if (best >= 0) {
        b = pool.cached[best];
        pool.cached[best] = pool.cached[--pool.n];
        pool.stats.bytes_cached -= b->usable;
    } else {
        b = from_system(bytes, align);
        if (!b && pool.n) { /* give the cache back and try once more */
            while (pool.n) drop_cached(pool.n - 1);
            b = from_system(bytes, align);
        }
    }
    if (b) live_add(b, bytes);
    pthread_mutex_unlock(&pool.lock);
    return b ? user_of(b) : NULL;
}

void st_cpu_adopt(void *user, size_t bytes, const strata_handle *owner)
{
    st_block *b = block_of(user);
    *b = (st_block){.owner = owner};
    pthread_mutex_lock(&pool.lock);
    live_add(b, bytes);
    pthread_mutex_unlock(&pool.lock);
}

st_taken st_cpu_take(void *user, const strata_handle *h, size_t *bytes)
{
    pthread_mutex_lock(&pool.lock);
    st_block **at = live_find(user), *b = *at;
    st_taken r = !b              ? ST_TAKEN_NOTHING
                 : b->base       ? ST_TAKEN_POOL
                 : b->owner == h ? ST_TAKEN_CALLERS
                                 : ST_TAKEN_OTHERS;
    if (r == ST_TAKEN_POOL || r == ST_TAKEN_CALLERS) {
        *bytes = b->asked;
        live_remove(at);
        if (r == ST_TAKEN_POOL) release(b);
    }
    pthread_mutex_unlock(&pool.lock);
    return r;
}

void st_cpu_forget(const strata_handle *owner)
{
    pthread_mutex_lock(&pool.lock);
    for (size_t i = 0; i < pool.buckets; i++)
        for (st_block **at = &pool.bucket[i]; *at;)
            if (!(*at)->base && (*at)->owner == owner)
                live_remove(at);
            else
                at = &(*at)->next;
    pthread_mutex_unlock(&pool.lock);
}

void st_cpu_trim(void)
{
    pthread_mutex_lock(&pool.lock);
    while (pool.n) drop_cached(pool.n - 1);
    pthread_mutex_unlock(&pool.lock);
}

void st_cpu_stats(strata_memory_stats *s)
{
    pthread_mutex_lock(&pool.lock);
    *s = pool.stats;
    pthread_mutex_unlock(&pool.lock);
}

size_t st_cpu_memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t limit = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
    static const char *const files[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (int i = 0; i < ST_COUNT(files); i++) {
        FILE *f = fopen(files[i], "r");
        unsigned long long v;
        if (!f) continue;
        if (fscanf(f, "%llu", &v) == 1 && v > 0 && v < limit) limit = (size_t)v;
        fclose(f);
    }
    return limit;
}
