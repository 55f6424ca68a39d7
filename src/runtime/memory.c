/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - the CPU's memory: 64-byte aligned blocks, each with a header before it; large ones are mapped on 2 MiB boundaries and madvised,
 * and are kept in a small cache when freed (mapping and touching pages anew costs more than most kernels).
 *
 *     system block:  [ padding | st_block | user memory ... ]
 * The header lies in the 64 bytes before the user's address. One process-wide pool behind one lock. */
#include "runtime/runtime.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK_MAGIC 0x424c4f434b535452u
#define BLOCK_FREED 0x6465657266656c62u
enum { HEADER = 64, LARGE = 1 << 20, HUGE_PAGE = 2 << 20, CACHED_BLOCKS = 16, COLOURS = 13 };

typedef struct st_block {
    uint64_t magic;
    void *base;    /* what the system gave */
    size_t total;  /* its size */
    size_t usable; /* bytes from the user's address on */
    size_t asked;
    int mapped;
} st_block;
_Static_assert(sizeof(st_block) <= HEADER, "the header must fit before the user's address");

static struct {
    pthread_mutex_t lock;
    strata_memory_stats stats;
    st_block *cached[CACHED_BLOCKS];
    int n;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *user_of(st_block *b) { return (char *)b + HEADER; }
static st_block *block_of(const void *p) { return (st_block *)((char *)(uintptr_t)p - HEADER); }

static void to_system(st_block *b)
{
    pool.stats.bytes_cached -= b->usable;
    b->magic = 0;
    if (b->mapped)
        munmap(b->base, b->total);
    else
        free(b->base);
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
    *b = (st_block){BLOCK_MAGIC, base, total, (size_t)(base + total - user), bytes, bytes >= LARGE};
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
        b->magic = BLOCK_MAGIC;
        b->asked = bytes;
    } else {
        b = from_system(bytes, align);
        if (!b && pool.n) { /* give the cache back and try once more */
            while (pool.n) to_system(pool.cached[--pool.n]);
            b = from_system(bytes, align);
        }
    }
    if (b) {
        pool.stats.allocations++;
        pool.stats.bytes_in_use += bytes;
        if (pool.stats.bytes_in_use > pool.stats.bytes_peak) pool.stats.bytes_peak = pool.stats.bytes_in_use;
    }
    pthread_mutex_unlock(&pool.lock);
    return b ? user_of(b) : NULL;
}

bool st_cpu_owns(const void *p)
{
    /* the header of a foreign pointer is not ours to read unless it is aligned as ours are */
    return p && ((uintptr_t)p & (HEADER - 1)) == 0 && block_of(p)->magic == BLOCK_MAGIC;
}

void st_cpu_free(void *p)
{
    st_block *b = block_of(p);
    pthread_mutex_lock(&pool.lock);
    pool.stats.frees++;
    pool.stats.bytes_in_use -= b->asked;
    b->magic = BLOCK_FREED;
    pool.stats.bytes_cached += b->usable;
    if (!b->mapped) {
        to_system(b);
    } else {
        if (pool.n == CACHED_BLOCKS) { /* the oldest goes */
            to_system(pool.cached[0]);
            memmove(pool.cached, pool.cached + 1, sizeof *pool.cached * (size_t)--pool.n);
        }
        pool.cached[pool.n++] = b;
    }
    pthread_mutex_unlock(&pool.lock);
}

void st_cpu_trim(void)
{
    pthread_mutex_lock(&pool.lock);
    while (pool.n) to_system(pool.cached[--pool.n]);
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

static strata_status no_memory(strata_handle *h, size_t bytes)
{
    strata_memory_stats s;
    st_cpu_stats(&s);
    st_fail(&h->err, STRATA_ERROR_MEMORY, "strata_alloc: %s has no memory for %zu bytes", h->device, bytes);
    st_err_frame(&h->err, "runtime",
                 "this process holds %.1f MB through strata_alloc, %.1f MB cached (released and retried); "
                 "the machine has %.1f MB",
                 (double)s.bytes_in_use * 1e-6, (double)s.bytes_cached * 1e-6,
                 (double)st_cpu_memory_limit() * 1e-6);
    st_err_remedy(&h->err, "ask for less, or free memory first (strata_trim gives cached memory back)");
    return STRATA_ERROR_MEMORY;
}

strata_status strata_alloc(strata_handle *h, size_t bytes, void **ptr)
{
    strata_status s = st_handle_check(h, "strata_alloc");
    if (s) return s;
    if (!ptr)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_alloc: ptr is NULL; give the address of a pointer");
    *ptr = NULL;
    if (h->own_allocator) {
        /* a caller's allocator has no header of ours: its size is kept in front of the block */
        char *p =
            bytes > SIZE_MAX - HEADER ? NULL : h->allocator.alloc(h->allocator.user, bytes + HEADER, HEADER);
        if (!p) return no_memory(h, bytes);
        memcpy(p, &bytes, sizeof bytes);
        h->outstanding++;
        *ptr = p + HEADER;
        return STRATA_OK;
    }
    void *p = bytes > (size_t)PTRDIFF_MAX ? NULL : st_cpu_alloc(bytes, 64);
    if (!p) return no_memory(h, bytes);
    *ptr = p;
    return STRATA_OK;
}

strata_status strata_free(strata_handle *h, void *ptr)
{
    strata_status s = st_handle_check(h, "strata_free");
    if (s || !ptr) return s;
    if (h->own_allocator) {
        size_t bytes;
        memcpy(&bytes, (char *)ptr - HEADER, sizeof bytes);
        h->outstanding--;
        h->allocator.free(h->allocator.user, (char *)ptr - HEADER, bytes + HEADER);
        return STRATA_OK;
    }
    if (!st_cpu_owns(ptr))
        return st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "strata_free: %p is not a live block of strata_alloc (freed twice, or from elsewhere?)", ptr);
    st_cpu_free(ptr);
    return STRATA_OK;
}

void *st_malloc(strata_handle *h, size_t bytes)
{
    if (!h->own_allocator) return st_cpu_alloc(bytes, 64);
    void *p = h->allocator.alloc(h->allocator.user, bytes, 64);
    if (p) h->held += bytes;
    return p;
}

void st_mfree(strata_handle *h, void *p, size_t bytes)
{
    if (!p) return;
    if (!h->own_allocator) {
        st_cpu_free(p);
        return;
    }
    h->held -= bytes;
    h->allocator.free(h->allocator.user, p, bytes);
}

void *st_workspace(strata_handle *h, size_t bytes)
{
    if (bytes > h->workspace_peak) h->workspace_peak = bytes;
    if (ST_LIKELY(bytes <= h->workspace_size)) return h->workspace;
    if (h->workspace_is_callers) {
        st_fail(&h->err, STRATA_ERROR_WORKSPACE, "the caller's workspace has %zu bytes and %zu are needed",
                h->workspace_size, bytes);
        st_err_remedy(&h->err, "strata_set_workspace with %zu bytes, or with NULL for the handle's own",
                      bytes);
        return NULL;
    }
    if (bytes > h->workspace_limit) {
        st_fail(&h->err, STRATA_ERROR_WORKSPACE, "%zu bytes of workspace are needed and the limit is %zu",
                bytes, h->workspace_limit);
        st_err_remedy(
            &h->err,
            "strata_set_workspace_limit(h, %zu), or make the plan with a workspace limit in its choice",
            bytes);
        return NULL;
    }
    st_mfree(h, h->workspace, h->workspace_size);
    h->workspace = NULL;
    h->workspace_size = 0;
    size_t want = bytes < 65536
                      ? 65536
                      : bytes + bytes / 8; /* some room, so that slightly larger shapes do not ask again */
    char *p = st_malloc(h, want);
    if (!p) p = st_malloc(h, want = bytes);
    if (!p) {
        st_fail(&h->err, STRATA_ERROR_MEMORY, "no memory for %zu bytes of workspace", bytes);
        return NULL;
    }
    h->workspace = p;
    h->workspace_size = want;
    return p;
}

strata_status strata_set_workspace(strata_handle *h, void *ptr, size_t bytes)
{
    strata_status s = st_handle_check(h, "strata_set_workspace");
    if (s) return s;
    if ((uintptr_t)ptr & 63)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "strata_set_workspace: %p is not aligned to 64 bytes",
                       ptr);
    if (!ptr && bytes)
        return st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "strata_set_workspace: ptr is NULL but bytes is %zu; NULL with 0 restores the handle's own",
            bytes);
    if (!h->workspace_is_callers) st_mfree(h, h->workspace, h->workspace_size);
    h->workspace = ptr;
    h->workspace_size = bytes;
    h->workspace_is_callers = ptr != NULL;
    return STRATA_OK;
}

strata_status strata_set_workspace_limit(strata_handle *h, size_t bytes)
{
    strata_status s = st_handle_check(h, "strata_set_workspace_limit");
    if (s) return s;
    h->workspace_limit = bytes;
    if (!h->workspace_is_callers && h->workspace_size > bytes) {
        st_mfree(h, h->workspace, h->workspace_size);
        h->workspace = NULL;
        h->workspace_size = 0;
    }
    return STRATA_OK;
}

strata_status strata_set_allocator(strata_handle *h, const strata_allocator *a)
{
    strata_status s = st_handle_check(h, "strata_set_allocator");
    if (s) return s;
    if (a && (!a->alloc || !a->free))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_set_allocator: alloc and free must both be given");
    if (h->own_allocator && h->outstanding)
        return st_fail(&h->err, STRATA_ERROR_STATE,
                       "strata_set_allocator: %d blocks of the present allocator are not freed yet",
                       h->outstanding);
    if (!h->workspace_is_callers) {
        st_mfree(h, h->workspace, h->workspace_size);
        h->workspace = NULL;
        h->workspace_size = 0;
    }
    if (h->plan_slot && h->plan_slot_free) { /* cached plans were allocated by the previous one */
        h->plan_slot_free(h->plan_slot);
        h->plan_slot = NULL;
    }
    h->own_allocator = a != NULL;
    h->allocator = a ? *a : (strata_allocator){0};
    return STRATA_OK;
}

strata_status strata_get_memory_stats(strata_handle *h, strata_memory_stats *stats)
{
    strata_status s = st_handle_check(h, "strata_get_memory_stats");
    if (s) return s;
    if (!stats) return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "strata_get_memory_stats: stats is NULL");
    st_cpu_stats(stats);
    stats->workspace_bytes = h->workspace_is_callers ? 0 : h->workspace_size;
    stats->workspace_peak = h->workspace_peak;
    return STRATA_OK;
}

strata_status strata_trim(strata_handle *h)
{
    strata_status s = st_handle_check(h, "strata_trim");
    if (s) return s;
    if (!h->workspace_is_callers) {
        st_mfree(h, h->workspace, h->workspace_size);
        h->workspace = NULL;
        h->workspace_size = 0;
    }
    st_cpu_trim();
    return STRATA_OK;
}
