/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - a GPU handle's memory: strata_alloc and strata_free over the device's pool or a caller's allocator, page-locked host memory, and
 * the workspace.
 *
 * The workspace is device memory, used in the order of the handle's stream. In a graph that the caller captures it is a pair of memory nodes
 * around each run, since the graph runs later and beside other uses of the handle. A graph of strata_graph_begin has a workspace of its
 * own, which lives as long as the graph (graph.c). */
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/graph.h"
#include <string.h>

enum { ALIGNMENT = 256 };

static bool refuse_captured(strata_handle *h, const char *who)
{
    if (!st_gpu_capturing(h)) return false;
    st_fail(&h->err, STRATA_ERROR_STATE, "%s: the handle's stream is being captured into a graph", who);
    st_err_remedy(&h->err, "allocate before the capture begins, free after it has ended");
    return true;
}

/* Device memory of the handle: the pool's or the caller's allocator's. The context is current. */
static void *take(strata_handle *h, size_t bytes)
{
    st_cuda *g = st_cuda_of(h);
    if (!h->own_allocator) return st_cuda_pool_alloc(&h->err, g, st_cuda_stream(h), bytes);
    void *p = h->allocator.alloc(h->allocator.user, bytes ? bytes : 1, ALIGNMENT);
    if (p && ((uintptr_t)p & 63) == 0 && st_cuda_pool_adopt(g, p, bytes, h)) {
        h->outstanding++;
        return p;
    }
    if (p) h->allocator.free(h->allocator.user, p, bytes ? bytes : 1);
    st_fail(&h->err, STRATA_ERROR_MEMORY, "%s has no memory for %zu bytes", h->device, bytes);
    st_err_frame(&h->err, "runtime", "the caller's allocator gave no block of %zu bytes at a multiple of %d",
                 bytes, ALIGNMENT);
    st_err_remedy(&h->err, "strata_set_allocator(h, NULL) restores Strata's own");
    return NULL;
}

static st_taken give(strata_handle *h, void *p, strata_stream *s)
{
    size_t bytes = 0;
    st_taken t = st_cuda_pool_take(st_cuda_of(h), s, p, h, &bytes);
    if (t == ST_TAKEN_CALLERS) {
        h->outstanding--;
        h->allocator.free(h->allocator.user, p, bytes ? bytes : 1);
    }
    return t;
}

void *st_gpu_alloc(strata_handle *h, size_t bytes)
{
    if (!st_cuda_enter(h)) return NULL;
    void *p = refuse_captured(h, "device memory cannot be allocated") ? NULL : take(h, bytes);
    st_cuda_leave(h);
    return p;
}

void st_gpu_free(strata_handle *h, void *p)
{
    st_err kept = h->err;
    if (!p) return;
    if (st_cuda_enter(h)) {
        give(h, p, st_cuda_stream(h));
        st_cuda_leave(h);
    }
    h->err = kept; /* the error that the caller is about to report */
}

strata_status st_cuda_alloc(strata_handle *h, size_t bytes, void **p)
{
    if (!st_cuda_enter(h)) {
        st_cuda_prefix(&h->err, "strata_alloc");
        return h->err.status;
    }
    if (!refuse_captured(h, "strata_alloc") && !(*p = take(h, bytes)))
        st_cuda_prefix(&h->err, "strata_alloc");
    st_cuda_leave(h);
    return *p ? STRATA_OK : h->err.status;
}

strata_status st_cuda_free(strata_handle *h, void *p)
{
    st_taken t = ST_TAKEN_POOL;
    if (atomic_load(&st_cuda_of(h)->lost)) return STRATA_OK; /* nothing to give back to */
    if (!st_cuda_enter(h)) {
        st_cuda_prefix(&h->err, "strata_free");
        return h->err.status;
    }
    strata_status s = STRATA_OK;
    if (refuse_captured(h, "strata_free"))
        s = h->err.status;
    else
        t = give(h, p, st_cuda_stream(h));
    st_cuda_leave(h);
    if (t == ST_TAKEN_OTHERS)
        s = st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                    "strata_free: %p came from the allocator of another handle; free it with that handle", p);
    if (t == ST_TAKEN_NOTHING)
        s = st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "strata_free: %p is not a live block of strata_alloc on %s (freed twice, or from elsewhere?)", p,
            h->device);
    return s;
}

/* ---- page-locked host memory ------------------------------------------------------------------------------------------------------ */
strata_status st_cuda_alloc_host(strata_handle *h, size_t bytes, void **p)
{
    st_cuda *g = st_cuda_of(h);
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) {
        st_cuda_prefix(&h->err, "strata_alloc_host");
        return h->err.status;
    }
    int mode = st_cuda_relax(g);
    st_cu_result r = cu->mem_host_alloc(p, bytes ? bytes : 1, ST_CU_HOST_PORTABLE);
    st_cuda_restore(g, mode);
    st_cuda_leave(h);
    if (!r) return STRATA_OK;
    *p = NULL;
    st_cuda_fail(&h->err, g, NULL, "cuMemHostAlloc", r,
                 "strata_alloc_host: no page-locked host memory for %zu bytes", bytes);
    return h->err.status;
}

strata_status st_cuda_free_host(strata_handle *h, void *p)
{
    st_cuda *g = st_cuda_of(h);
    if (atomic_load(&g->lost)) return STRATA_OK;
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) {
        st_cuda_prefix(&h->err, "strata_free_host");
        return h->err.status;
    }
    int mode = st_cuda_relax(g);
    st_cu_result r = cu->mem_free_host(p);
    st_cuda_restore(g, mode);
    st_cuda_leave(h);
    if (!r) return STRATA_OK;
    st_cuda_fail(&h->err, g, NULL, "cuMemFreeHost", r,
                 "strata_free_host: %p is not memory of strata_alloc_host (freed twice, or "
                 "from elsewhere?)",
                 p);
    return h->err.status;
}

/* ---- workspace ----------------------------------------------------------------------------------------------------------------------- */
void st_cuda_workspace_drop(strata_handle *h)
{
    st_err kept = h->err;
    if (h->workspace_is_callers || !h->workspace) return;
    if (h->cuda.graph) {
        st_cuda_graph_keep(h, h->workspace); /* nodes that use it are in the graph already */
    } else if (!atomic_load(&st_cuda_of(h)->lost) && !st_libcuda_forked()) {
        strata_stream *s = st_cuda_stream(h), *was = h->stream;
        const st_libcuda *cu = NULL;
        if (s->magic !=
            ST_STREAM_MAGIC) { /* its stream is gone: nothing orders its last use but the device's end */
            h->stream = NULL;
            if ((cu = st_cuda_enter(h)) != NULL) {
                const int mode = st_cuda_relax(st_cuda_of(h));
                cu->ctx_synchronize();
                st_cuda_restore(st_cuda_of(h), mode);
            }
            s = NULL;
        } else {
            cu = st_cuda_enter(h);
        }
        if (cu) {
            give(h, h->workspace, s);
            st_cuda_leave(h);
        }
        h->stream = was;
    }
    h->workspace = NULL;
    h->workspace_size = 0;
    h->err = kept;
}

void st_gpu_run_end(strata_handle *h)
{
    if (ST_LIKELY(!h->cuda.node_workspace)) return;
    const st_libcuda *cu = st_cuda_enter(h);
    if (cu) {
        cu->mem_free_async((st_cu_ptr)(uintptr_t)h->cuda.node_workspace, st_cuda_stream(h)->native);
        st_cuda_leave(h);
    }
    h->cuda.node_workspace = NULL;
}

/* Workspace for one run inside a caller's capture. */
static void *node(strata_handle *h, size_t bytes)
{
    st_cu_ptr p = 0;
    const st_libcuda *cu = st_cuda_of(h)->cu;
    st_gpu_run_end(h);
    st_cu_result r = cu->mem_alloc_async(&p, bytes, st_cuda_stream(h)->native);
    if (r) {
        st_cuda_fail(&h->err, st_cuda_of(h), st_cuda_stream(h), "cuMemAllocAsync", r,
                     "the graph took no memory node for %zu bytes of workspace", bytes);
        st_err_remedy(&h->err, "strata_set_workspace(h, memory, %zu) before the capture", bytes);
        return NULL;
    }
    h->cuda.node_workspace = (void *)(uintptr_t)p;
    h->cuda.node_bytes = bytes;
    return h->cuda.node_workspace;
}

static void *grow(strata_handle *h, size_t bytes, size_t limit)
{
    size_t want = bytes < 65536 ? 65536 : bytes + bytes / 8;
    if (want > limit || want < bytes) want = bytes;
    st_cuda_workspace_drop(h);
    void *p = take(h, want);
    if (!p && want > bytes) p = take(h, want = bytes);
    if (!p) {
        st_err_remedy(&h->err, "strata_set_workspace_limit(h, 0) runs this without workspace, somewhat "
                               "slower; or free memory first");
        return NULL;
    }
    h->workspace = p;
    h->workspace_size = want;
    h->cuda.ordered = false; /* fresh memory: the pool has ordered it */
    return p;
}

void *st_cuda_workspace(strata_handle *h, size_t bytes, size_t uncounted)
{
    void *p = NULL;
    size_t limit;
    if (!st_workspace_allowed(h, bytes, uncounted, &limit)) return NULL;
    if (!st_cuda_enter(h)) return NULL;
    const bool capturing = st_gpu_capturing(h);
    if (capturing && (!h->cuda.graph || h->own_allocator))
        p = node(h, bytes);
    else if (bytes <= h->workspace_size)
        p = h->workspace;
    else
        p = grow(h, bytes, limit);
    if (p && bytes > h->workspace_peak) h->workspace_peak = bytes;
    st_cuda_leave(h);
    return p;
}

void st_cuda_stats(strata_handle *h, strata_memory_stats *s) { st_cuda_pool_stats(st_cuda_of(h), s); }

strata_status st_cuda_trim(strata_handle *h)
{
    if (!st_cuda_enter(h)) {
        st_cuda_prefix(&h->err, "strata_trim");
        return h->err.status;
    }
    strata_status s = refuse_captured(h, "strata_trim") ? h->err.status : STRATA_OK;
    if (!s) {
        st_cuda_workspace_drop(h);
        st_cuda_pool_trim(st_cuda_of(h));
    }
    st_cuda_leave(h);
    return s;
}
