/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - what a handle does with memory: strata_alloc and strata_free, a caller's own allocator, the workspace. */
#include "runtime/gpu.h"
#include "runtime/runtime.h"
#include <string.h>

/* From the caller's allocator; what is not aligned as it was asked goes back and counts as a failure. */
static void *callers_alloc(strata_handle *h, size_t bytes)
{
    void *p = h->allocator.alloc(h->allocator.user, bytes, 64);
    if (p && (uintptr_t)p & 63) {
        h->allocator.free(h->allocator.user, p, bytes);
        p = NULL;
    }
    return p;
}

static strata_status no_memory(strata_handle *h, size_t bytes)
{
    strata_memory_stats s;
    st_cpu_stats(&s);
    st_fail(&h->err, STRATA_ERROR_MEMORY, "strata_alloc: %s has no memory for %zu bytes", h->device, bytes);
    if (h->own_allocator) {
        st_err_frame(&h->err, "runtime",
                     "the caller's allocator gave no block of %zu bytes at a multiple of 64",
                     bytes + ST_BLOCK_HEADER);
        st_err_remedy(&h->err, "strata_set_allocator(h, NULL) restores Strata's own");
        return STRATA_ERROR_MEMORY;
    }
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
    if (h->gpu) return st_cuda_alloc(h, bytes, ptr);
    if (bytes > (size_t)PTRDIFF_MAX - ST_BLOCK_HEADER) return no_memory(h, bytes);
    if (!h->own_allocator) {
        void *p = st_cpu_alloc(bytes, 64);
        *ptr = p;
        return p ? STRATA_OK : no_memory(h, bytes);
    }
    char *p = callers_alloc(h, bytes + ST_BLOCK_HEADER);
    if (!p) return no_memory(h, bytes);
    st_cpu_adopt(p + ST_BLOCK_HEADER, bytes, h);
    h->outstanding++;
    *ptr = p + ST_BLOCK_HEADER;
    return STRATA_OK;
}

strata_status strata_free(strata_handle *h, void *ptr)
{
    strata_status s = st_handle_check(h, "strata_free");
    if (s || !ptr) return s;
    if (h->gpu) return st_cuda_free(h, ptr);
    size_t bytes;
    switch (st_cpu_take(ptr, h, &bytes)) {
    case ST_TAKEN_POOL: return STRATA_OK;
    case ST_TAKEN_CALLERS:
        h->outstanding--;
        h->allocator.free(h->allocator.user, (char *)ptr - ST_BLOCK_HEADER, bytes + ST_BLOCK_HEADER);
        return STRATA_OK;
    case ST_TAKEN_OTHERS:
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_free: %p came from the allocator of another handle; free it with that handle",
                       ptr);
    case ST_TAKEN_NOTHING: break;
    }
    return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                   "strata_free: %p is not a live block of strata_alloc (freed twice, or from elsewhere?)",
                   ptr);
}

strata_status strata_alloc_host(strata_handle *h, size_t bytes, void **ptr)
{
    strata_status s = st_handle_check(h, "strata_alloc_host");
    if (s) return s;
    if (!ptr)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_alloc_host: ptr is NULL; give the address of a pointer");
    *ptr = NULL;
    if (h->gpu) return st_cuda_alloc_host(h, bytes, ptr);
    if (bytes <= (size_t)PTRDIFF_MAX - ST_BLOCK_HEADER) *ptr = st_cpu_alloc(bytes, 64);
    if (*ptr) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_MEMORY, "strata_alloc_host: no memory for %zu bytes", bytes);
}

strata_status strata_free_host(strata_handle *h, void *ptr)
{
    strata_status s = st_handle_check(h, "strata_free_host");
    size_t bytes;
    if (s || !ptr) return s;
    if (h->gpu) return st_cuda_free_host(h, ptr);
    if (st_cpu_take(ptr, NULL, &bytes) == ST_TAKEN_POOL) return STRATA_OK;
    return st_fail(
        &h->err, STRATA_ERROR_ARGUMENT,
        "strata_free_host: %p is not a live block of strata_alloc_host (freed twice, or from elsewhere?)",
        ptr);
}

/* A caller's allocator on a GPU gives device memory, where plans and caches cannot lie. */
static bool from_callers(const strata_handle *h) { return h->own_allocator && !h->gpu; }

void *st_malloc(strata_handle *h, size_t bytes)
{
    if (bytes > (size_t)PTRDIFF_MAX - ST_BLOCK_HEADER) return NULL;
    if (!from_callers(h)) return st_cpu_alloc(bytes, 64);
    void *p = callers_alloc(h, bytes);
    if (p) h->held += bytes;
    return p;
}

void st_mfree(strata_handle *h, void *p, size_t bytes)
{
    if (!p) return;
    if (!from_callers(h)) {
        st_cpu_take(p, h, &bytes);
        return;
    }
    h->held -= bytes;
    h->allocator.free(h->allocator.user, p, bytes);
}

void st_workspace_drop(strata_handle *h)
{
    if (h->workspace_is_callers) return;
    if (h->gpu) {
        st_cuda_workspace_drop(h);
        return;
    }
    st_mfree(h, h->workspace, h->workspace_size);
    h->workspace = NULL;
    h->workspace_size = 0;
}

void *st_workspace(strata_handle *h, size_t bytes) { return st_workspace_beyond(h, bytes, 0); }

bool st_workspace_allowed(strata_handle *h, size_t bytes, size_t uncounted, size_t *limit)
{
    *limit = h->workspace_limit > SIZE_MAX - uncounted ? SIZE_MAX : h->workspace_limit + uncounted;
    if (bytes <= *limit) return true;
    st_fail(&h->err, STRATA_ERROR_WORKSPACE, "%zu bytes of workspace are needed and the limit is %zu",
            bytes - uncounted, h->workspace_limit);
    st_err_remedy(&h->err,
                  "strata_set_workspace_limit(h, %zu), or make the plan with a workspace limit in its choice",
                  bytes - uncounted);
    return false;
}

void *st_workspace_beyond(strata_handle *h, size_t bytes, size_t uncounted)
{
    if (h->gpu && !h->workspace_is_callers) return st_cuda_workspace(h, bytes, uncounted);
    if (ST_LIKELY(bytes <= h->workspace_size)) {
        if (bytes > h->workspace_peak) h->workspace_peak = bytes;
        return h->workspace;
    }
    if (h->workspace_is_callers) {
        st_fail(&h->err, STRATA_ERROR_WORKSPACE, "the caller's workspace has %zu bytes and %zu are needed",
                h->workspace_size, bytes);
        st_err_remedy(&h->err, "strata_set_workspace with %zu bytes, or with NULL for the handle's own",
                      bytes);
        return NULL;
    }
    size_t limit;
    if (!st_workspace_allowed(h, bytes, uncounted, &limit)) return NULL;
    st_workspace_drop(h);
    /* some room, so that slightly larger shapes do not ask again; the limit holds for that too */
    size_t want = bytes < 65536 ? 65536 : bytes + bytes / 8;
    if (want > limit || want < bytes) want = bytes;
    char *p = st_malloc(h, want);
    if (!p && want > bytes) p = st_malloc(h, want = bytes);
    if (!p) {
        st_fail(&h->err, STRATA_ERROR_MEMORY, "no memory for %zu bytes of workspace", bytes);
        st_err_remedy(&h->err, "make the plan with a workspace limit in its choice, or free memory first");
        return NULL;
    }
    h->workspace = p;
    h->workspace_size = want;
    if (bytes > h->workspace_peak) h->workspace_peak = bytes;
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
    if (ptr && h->gpu && !st_gpu_reaches(h, ptr)) {
        st_fail(&h->err, STRATA_ERROR_DEVICE, "strata_set_workspace: %p is memory that %s does not reach",
                ptr, h->device);
        st_err_remedy(&h->err, "allocate it with strata_alloc on this handle");
        return STRATA_ERROR_DEVICE;
    }
    st_workspace_drop(h);
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
    if (h->workspace_size > bytes) st_workspace_drop(h);
    return STRATA_OK;
}

strata_status strata_set_allocator(strata_handle *h, const strata_allocator *a)
{
    strata_status s = st_handle_check(h, "strata_set_allocator");
    if (s) return s;
    if (a && (!a->alloc || !a->free))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_set_allocator: %s is NULL; alloc and free must both be given",
                       a->alloc ? "free" : "alloc");
    if (h->own_allocator && h->outstanding)
        return st_fail(&h->err, STRATA_ERROR_STATE,
                       "strata_set_allocator: %d blocks of the present allocator are not freed yet",
                       h->outstanding);
    st_workspace_drop(h);
    if (h->held)
        return st_fail(&h->err, STRATA_ERROR_STATE,
                       "strata_set_allocator: the handle still holds %zu bytes of the present allocator",
                       h->held);
    h->own_allocator = a != NULL;
    h->allocator = a ? *a : (strata_allocator){0};
    return STRATA_OK;
}

strata_status strata_get_memory_stats(strata_handle *h, strata_memory_stats *stats)
{
    strata_status s = st_handle_check(h, "strata_get_memory_stats");
    if (s) return s;
    if (!stats) return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "strata_get_memory_stats: stats is NULL");
    if (h->gpu)
        st_cuda_stats(h, stats);
    else
        st_cpu_stats(stats);
    stats->workspace_bytes = h->workspace_is_callers ? 0 : h->workspace_size;
    stats->workspace_peak = h->workspace_peak;
    return STRATA_OK;
}

strata_status strata_trim(strata_handle *h)
{
    strata_status s = st_handle_check(h, "strata_trim");
    if (s) return s;
    if (h->gpu) return st_cuda_trim(h);
    st_workspace_drop(h);
    st_cpu_trim();
    return STRATA_OK;
}
