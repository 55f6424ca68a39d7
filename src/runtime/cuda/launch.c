/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - kernels into the handle's stream, what the device holds of them at a time, tensor maps. Each stream remembers its last launches,
 * for the errors that are found later. STRATA_SYNC=1 waits after each launch, so that the one at fault is named. */
#include "runtime/cuda/cuda.h"
#include <stdio.h>
#include <string.h>

enum { USUAL_SMEM = 48 << 10, PORTABLE_CLUSTER = 8 };

static int sync_mode(void)
{
    static atomic_int mode; /* 0: not read, 1: off, 2: on */
    int m = atomic_load_explicit(&mode, memory_order_relaxed);
    if (ST_LIKELY(m)) return m - 1;
    const char *v = st_env("STRATA_SYNC");
    m = v && strcmp(v, "0") ? 2 : 1;
    atomic_store_explicit(&mode, m, memory_order_relaxed);
    return m - 1;
}

void st_cuda_launches(const strata_stream *s, char *text, size_t n)
{
    unsigned count = atomic_load(&s->launches);
    size_t at = 0;
    text[0] = 0;
    for (unsigned i = 0; i < count && i < ST_LAUNCHES && at + 24 < n; i++) {
        const st_launched *l = &s->launched[(count - 1 - i) % ST_LAUNCHES];
        const char *id = atomic_load(&l->id);
        if (!id) break;
        int k = snprintf(text + at, n - at, "%s%s grid %ux%ux%u block %u", at ? ", before it " : "last ", id,
                         atomic_load(&l->grid[0]), atomic_load(&l->grid[1]), atomic_load(&l->grid[2]),
                         atomic_load(&l->block));
        if (k < 0 || (size_t)k >= n - at) { /* no half names */
            text[at] = 0;
            break;
        }
        at += (size_t)k;
    }
}

static unsigned at_least_1(unsigned x) { return x ? x : 1; }

/* With 1 for every dim that the engine left 0. */
static st_gpu_launch whole(const st_gpu_launch *l)
{
    st_gpu_launch w = *l;
    for (int d = 0; d < 3; d++) {
        w.grid[d] = at_least_1(l->grid[d]);
        w.block[d] = at_least_1(l->block[d]);
        w.cluster[d] = at_least_1(l->cluster[d]);
    }
    return w;
}

/* Two handles in two threads may share a stream, so the ring is written with relaxed atomics; an entry may then mix two launches. */
static void remember(strata_stream *s, const st_gpu_launch *l)
{
    unsigned i = atomic_fetch_add_explicit(&s->launches, 1, memory_order_relaxed) % ST_LAUNCHES;
    st_launched *r = &s->launched[i];
    atomic_store_explicit(&r->id, l->kernel->id, memory_order_relaxed);
    for (int d = 0; d < 3; d++) atomic_store_explicit(&r->grid[d], l->grid[d], memory_order_relaxed);
    atomic_store_explicit(&r->block, l->block[0] * l->block[1] * l->block[2], memory_order_relaxed);
}

static unsigned cluster_size(const st_gpu_launch *l) { return l->cluster[0] * l->cluster[1] * l->cluster[2]; }

/* Shared memory above 48 KiB (the kernel's own counts) and clusters above 8 blocks are asked for once a kernel. */
static bool arrange(strata_handle *h, const st_libcuda *cu, const st_gpu_kernel *kernel, unsigned smem,
                    unsigned cluster)
{
    st_gpu_kernel *k = (st_gpu_kernel *)(uintptr_t)kernel;
    st_cu_result r = 0;
    if (smem + (unsigned)k->static_smem > USUAL_SMEM &&
        atomic_load_explicit(&k->smem_set, memory_order_relaxed) < (int)smem) {
        r = cu->func_set_attribute(k->function, ST_CU_FUNC_MAX_DYNAMIC_SMEM, (int)smem);
        if (!r) atomic_store_explicit(&k->smem_set, (int)smem, memory_order_relaxed);
    }
    if (!r && cluster > PORTABLE_CLUSTER && !atomic_load_explicit(&k->cluster_set, memory_order_relaxed)) {
        r = cu->func_set_attribute(k->function, ST_CU_FUNC_NON_PORTABLE_CLUSTER, 1);
        if (!r) atomic_store_explicit(&k->cluster_set, 1, memory_order_relaxed);
    }
    if (ST_LIKELY(!r)) return true;
    st_cuda_fail(&h->err, st_cuda_of(h), st_cuda_stream(h), "cuFuncSetAttribute", r,
                 "%s: %s refuses %u bytes of shared memory (a block may have %d) or clusters of %u",
                 kernel->id, h->device, smem, h->gpu->smem_block, cluster);
    return false;
}

static st_cu_launch config(strata_handle *h, const st_gpu_launch *l, st_cu_attribute attrs[2])
{
    st_cu_launch c = {.shared_bytes = l->smem, .stream = st_cuda_stream(h)->native, .attrs = attrs};
    for (int d = 0; d < 3; d++) {
        c.grid[d] = l->grid[d];
        c.block[d] = l->block[d];
    }
    if (cluster_size(l) > 1) {
        st_cu_attribute *a = &attrs[c.nattrs++];
        memset(a, 0, sizeof *a);
        a->id = ST_CU_LAUNCH_CLUSTER;
        for (int d = 0; d < 3; d++) a->u.dim[d] = l->cluster[d];
    }
    if (l->overlap && h->gpu->cc >= 90) {
        st_cu_attribute *a = &attrs[c.nattrs++];
        memset(a, 0, sizeof *a);
        a->id = ST_CU_LAUNCH_OVERLAP;
        a->u.value = 1;
    }
    return c;
}

static ST_NOINLINE strata_status launch_failed(strata_handle *h, const st_gpu_launch *l, const char *function,
                                               st_cu_result r)
{
    return st_cuda_fail(&h->err, st_cuda_of(h), st_cuda_stream(h), function, r,
                        "%s could not be launched on %s: grid %ux%ux%u, block %ux%ux%u, cluster of %u, %u "
                        "bytes of shared memory, "
                        "%d registers",
                        l->kernel->id, h->device, l->grid[0], l->grid[1], l->grid[2], l->block[0],
                        l->block[1], l->block[2], cluster_size(l), l->smem, l->kernel->registers);
}

/* STRATA_SYNC=1: the launch's own fault is found at once. */
static strata_status wait_here(strata_handle *h, const st_libcuda *cu, const st_gpu_launch *l)
{
    if (st_gpu_capturing(h)) return STRATA_OK;
    const int mode = st_cuda_relax(st_cuda_of(h));
    st_cu_result r = cu->stream_synchronize(st_cuda_stream(h)->native);
    st_cuda_restore(st_cuda_of(h), mode);
    if (!r) return STRATA_OK;
    int none = 0;
    atomic_compare_exchange_strong(&st_cuda_of(h)->lost, &none, r);
    st_fail(&h->err, STRATA_ERROR_DEVICE,
            "%s failed while it ran on %s: grid %ux%ux%u, block %ux%ux%u, %u bytes of shared memory",
            l->kernel->id, h->device, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
            l->block[2], l->smem);
    st_cu_frame(&h->err, "cuStreamSynchronize (STRATA_SYNC=1)", r);
    st_err_remedy(&h->err, "this launch is the one at fault: check its operands, then report it with the "
                           "trace (STRATA_TRACE=1)");
    return STRATA_ERROR_DEVICE;
}

strata_status st_gpu_run(strata_handle *h, const st_gpu_launch *given)
{
    const st_gpu_launch all = whole(given), *l = &all;
    st_cu_attribute attrs[2];
    const st_libcuda *cu = st_cuda_enter(h);
    strata_status s = STRATA_OK;
    if (ST_UNLIKELY(!cu)) return h->err.status;
    const uint64_t t0 = st_trace_begin();
    if (ST_LIKELY(arrange(h, cu, l->kernel, l->smem, cluster_size(l)))) {
        const st_cu_launch c = config(h, l, attrs);
        remember(st_cuda_stream(h), l);
        st_cu_result r = cu->launch_kernel(&c, l->kernel->function, l->args, NULL);
        if (ST_UNLIKELY(r))
            s = launch_failed(h, l, "cuLaunchKernelEx", r);
        else if (ST_UNLIKELY(sync_mode()))
            s = wait_here(h, cu, l);
    } else {
        s = h->err.status;
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "runtime", "launch", "%s grid %ux%ux%u block %ux%ux%u cluster %u smem %u",
                     l->kernel->id, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
                     cluster_size(l), l->smem);
    st_cuda_leave(h);
    return s;
}

int st_gpu_occupancy(strata_handle *h, const st_gpu_kernel *k, int threads, unsigned smem)
{
    const st_libcuda *cu = st_cuda_enter(h);
    int n = 0;
    if (!cu) return 0;
    if (arrange(h, cu, k, smem, 1)) {
        st_cu_result r = cu->occupancy_blocks(&n, k->function, threads, smem);
        if (r)
            st_cuda_fail(&h->err, st_cuda_of(h), NULL, "cuOccupancyMaxActiveBlocksPerMultiprocessor", r,
                         "%s: its occupancy could not be found", k->id);
        else if (n < 1)
            st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                    "%s: one multiprocessor of %s cannot hold a block of %d threads with %u bytes of shared "
                    "memory and %d "
                    "registers a thread",
                    k->id, h->device, threads, smem, k->registers);
        if (r) n = 0;
    }
    st_cuda_leave(h);
    return n;
}

int st_gpu_clusters(strata_handle *h, const st_gpu_launch *given)
{
    const st_gpu_launch all = whole(given), *l = &all;
    st_cu_attribute attrs[2];
    const st_libcuda *cu = st_cuda_enter(h);
    int n = 0;
    if (!cu) return 0;
    if (arrange(h, cu, l->kernel, l->smem, cluster_size(l))) {
        st_gpu_launch alone = *l;
        alone.overlap = false;
        const st_cu_launch c = config(h, &alone, attrs);
        st_cu_result r = cu->occupancy_clusters(&n, l->kernel->function, &c);
        if (r) {
            st_cuda_fail(&h->err, st_cuda_of(h), NULL, "cuOccupancyMaxActiveClusters", r,
                         "%s: the number of its clusters on the device could not be found", l->kernel->id);
            n = 0;
        } else if (n < 1) {
            st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                    "%s: %s holds no cluster of %u blocks with %u bytes of shared memory each", l->kernel->id,
                    h->device, cluster_size(l), l->smem);
        }
    }
    st_cuda_leave(h);
    return n;
}
