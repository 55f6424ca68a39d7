/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - GPUs: what they are, their primary contexts, making a context current for the length of a call. */
#include "runtime/cuda/cuda.h"
#include "facts/cause.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* a handle's: padded copies of an odd 4096-class bf16 product take 68 MB, of an f32 one twice that */
enum { WORKSPACE_LIMIT = 256 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static st_cuda *devices[ST_CUDA_DEVICES];

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void register_fork(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* The driver with what its failure means. */
static const st_libcuda *driver(st_err *e)
{
    const st_libcuda *cu = st_libcuda_open(e);
    const char *name = cu ? NULL : strstr(e->text, "CUDA_ERROR_");
    if (name) {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), name);
        st_facts_explain(e, word);
    } else if (!cu && strstr(e->text, "is not here")) {
        st_facts_explain(e, "libcuda.so.1: cannot open shared object file");
    }
    return cu;
}

int st_cuda_count(st_err *e)
{
    const st_libcuda *cu = driver(e);
    int n = 0;
    if (!cu) return 0;
    st_cu_result r = cu->device_get_count(&n);
    if (r || n < 1) {
        st_fail(e, STRATA_ERROR_DEVICE, "the NVIDIA driver shows no GPU");
        st_cu_frame(e, "cuDeviceGetCount", r ? r : ST_CU_NO_DEVICE);
        st_facts_explain(e, st_cu_result_name(r ? r : ST_CU_NO_DEVICE));
        return 0;
    }
    return n < ST_CUDA_DEVICES ? n : ST_CUDA_DEVICES;
}

static int attribute(const st_libcuda *cu, st_cu_device d, int which)
{
    int v = 0;
    return cu->device_get_attribute(&v, which, d) == 0 ? v : 0;
}

static int capability(const st_libcuda *cu, int ordinal)
{
    st_cu_device d;
    if (cu->device_get(&d, ordinal)) return 0;
    return attribute(cu, d, ST_CU_ATTR_CC_MAJOR) * 10 + attribute(cu, d, ST_CU_ATTR_CC_MINOR);
}

int st_cuda_best(st_err *e)
{
    int n = st_cuda_count(e);
    const st_libcuda *cu = n ? driver(e) : NULL;
    for (int i = 0; i < n; i++)
        if (capability(cu, i) >= ST_CUDA_OLDEST_CC) return i;
    if (n) st_fail(e, STRATA_ERROR_DEVICE, "no GPU here has compute capability 8.0 or newer");
    return -1;
}

int st_cuda_visible(void)
{
    st_err e = {0};
    return st_cuda_count(&e);
}

static void properties(st_cuda *g)
{
    const st_libcuda *cu = g->cu;
    st_gpu *p = &g->gpu;
    size_t bytes = 0;
    cu->device_get_name(p->name, sizeof p->name, g->device);
    cu->device_total_mem(&bytes, g->device);
    cu->device_get_pci_bus_id(g->pci, sizeof g->pci, g->device);
    p->memory = (int64_t)bytes;
    p->sms = attribute(cu, g->device, ST_CU_ATTR_SMS);
    p->warps_sm = attribute(cu, g->device, ST_CU_ATTR_THREADS_SM) / 32;
    p->regs_sm = attribute(cu, g->device, ST_CU_ATTR_REGS_SM);
    p->smem_block = attribute(cu, g->device, ST_CU_ATTR_SMEM_BLOCK_OPTIN);
    p->smem_sm = attribute(cu, g->device, ST_CU_ATTR_SMEM_SM);
    p->l2 = attribute(cu, g->device, ST_CU_ATTR_L2);
    p->clock_mhz = attribute(cu, g->device, ST_CU_ATTR_CLOCK_KHZ) * 1e-3;
    /* two transfers a clock: 6144 bits at 3201 MHz are 4917 GB/s */
    g->memory_gbs = 2e-6 * attribute(cu, g->device, ST_CU_ATTR_MEMORY_CLOCK_KHZ) *
                    attribute(cu, g->device, ST_CU_ATTR_MEMORY_BUS_BITS) / 8;
    if (!(g->memory_gbs > 0)) g->memory_gbs = 500; /* a virtual machine may hide it */
    p->copy_bytes_per_us = g->memory_gbs * 1e3 * 0.9;
    snprintf(p->device, sizeof p->device, "cuda:%d", p->ordinal);
    snprintf(g->isa, sizeof g->isa, "sm_%d", p->cc);
}

static st_cuda *make(st_err *e, const st_libcuda *cu, int ordinal)
{
    st_cuda *g = calloc(1, sizeof *g);
    if (!g || !st_cuda_pool_init(g)) {
        free(g);
        st_fail(e, STRATA_ERROR_MEMORY, "no host memory for the device cuda:%d", ordinal);
        return NULL;
    }
    g->cu = cu;
    g->gpu.ordinal = ordinal;
    g->gpu.cc = capability(cu, ordinal);
    st_cu_result r = cu->device_get(&g->device, ordinal);
    if (!r) {
        properties(g);
        if (g->gpu.cc < ST_CUDA_OLDEST_CC) {
            st_fail(e, STRATA_ERROR_DEVICE,
                    "cuda:%d (%s) has compute capability %d.%d; Strata's kernels need 8.0 or newer", ordinal,
                    g->gpu.name, g->gpu.cc / 10, g->gpu.cc % 10);
            st_err_remedy(e, "use \"cpu\", or \"auto\" for the best device there is");
            free(g->pool);
            free(g);
            return NULL;
        }
        r = cu->primary_ctx_retain(&g->context, g->device);
    }
    if (r) {
        st_fail(e, STRATA_ERROR_DEVICE, "cuda:%d cannot be used: its context could not be made", ordinal);
        st_cu_frame(e, "cuDevicePrimaryCtxRetain", r);
        st_facts_explain(e, st_cu_result_name(r));
        free(g->pool);
        free(g);
        return NULL;
    }
    g->default_stream.magic = ST_STREAM_MAGIC;
    g->default_stream.wrapped = true;
    g->default_stream.device = g;
    g->default_stream.serial = st_stream_serial();
    return g;
}

st_cuda *st_cuda_open(st_err *e, int ordinal)
{
    int n = st_cuda_count(e);
    if (!n) return NULL;
    if (ordinal < 0 || ordinal >= n) {
        st_fail(e, STRATA_ERROR_DEVICE, "there is no GPU %d; the driver shows %d (cuda:0 to cuda:%d)",
                ordinal, n, n - 1);
        st_err_remedy(e, "CUDA_VISIBLE_DEVICES and the container's options choose which GPUs a process sees");
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (!devices[ordinal]) devices[ordinal] = make(e, driver(e), ordinal);
    st_cuda *g = devices[ordinal];
    pthread_mutex_unlock(&lock);
    return g;
}

bool st_cuda_attach(strata_handle *h, st_err *e, int ordinal)
{
    st_cuda *g = st_cuda_open(e, ordinal);
    if (!g) return false;
    h->gpu = &g->gpu;
    h->workspace_limit = (size_t)WORKSPACE_LIMIT;
    snprintf(h->device, sizeof h->device, "%s", g->gpu.device);
    return true;
}

void st_cuda_detach(strata_handle *h)
{
    st_cuda *g = st_cuda_of(h);
    st_err spare = {0};
    st_cuda_scope scope;
    if (h->outstanding && !st_libcuda_forked()) st_cuda_pool_forget(g, h);
    if (h->cuda.last && st_cuda_enter_device(&spare, g, &scope)) {
        g->cu->event_destroy(h->cuda.last);
        st_cuda_leave_device(&scope);
    }
    h->cuda.last = NULL;
    h->gpu = NULL;
}

strata_status st_cuda_info(st_err *e, const char *who, int ordinal, strata_device_info *info)
{
    const st_cuda *g = st_cuda_open(e, ordinal);
    if (!g) {
        st_cuda_prefix(e, who);
        return e->status;
    }
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "%s", g->gpu.name);
    snprintf(info->device, sizeof info->device, "%s", g->gpu.device);
    snprintf(info->isa, sizeof info->isa, "%s", g->isa);
    snprintf(info->cache_source, sizeof info->cache_source, "driver");
    info->processors = info->multiprocessors = g->gpu.sms;
    info->threads = st_team_size();
    info->l2 = g->gpu.l2;
    info->memory = g->gpu.memory;
    info->compute_capability = g->gpu.cc;
    info->clock_mhz = g->gpu.clock_mhz;
    info->memory_gbs = g->memory_gbs;
    info->driver_version = g->cu->version;
    return STRATA_OK;
}

/* ---- the context of a call ---------------------------------------------------------------------------------------------------- */
static bool alive(st_err *e, st_cuda *g)
{
    if (ST_UNLIKELY(st_libcuda_forked())) {
        st_libcuda_open(e);
        return false;
    }
    int lost = atomic_load_explicit(&g->lost, memory_order_relaxed);
    if (ST_LIKELY(!lost)) return true;
    st_cuda_fail(e, g, NULL, "an earlier call", lost, "%s cannot be used any more in this process",
                 g->gpu.device);
    return false;
}

/* Makes g's context current. A thread without any keeps ours on device 0, where the CUDA runtime would put it too. */
static st_cu_result make_current(st_cuda *g, bool *pushed)
{
    st_cu_context now = NULL;
    *pushed = false;
    st_cu_result r = g->cu->ctx_get_current(&now);
    if (ST_LIKELY(!r && now == g->context)) return 0;
    if (!r && !now && g->gpu.ordinal == 0) return g->cu->ctx_set_current(g->context);
    r = g->cu->ctx_push_current(g->context);
    *pushed = r == 0;
    return r;
}

bool st_cuda_enter_device(st_err *e, st_cuda *g, st_cuda_scope *scope)
{
    *scope = (st_cuda_scope){.g = g};
    if (!alive(e, g)) return false;
    st_cu_result r = make_current(g, &scope->pushed);
    if (ST_LIKELY(!r)) return true;
    st_cuda_fail(e, g, NULL, "cuCtxPushCurrent", r, "%s: its context cannot be made current", g->gpu.device);
    return false;
}

void st_cuda_leave_device(st_cuda_scope *scope)
{
    st_cu_context popped;
    if (scope->pushed) scope->g->cu->ctx_pop_current(&popped);
    scope->pushed = false;
}

const st_libcuda *st_cuda_enter(strata_handle *h)
{
    st_cuda *g = st_cuda_of(h);
    if (h->cuda.entered == 0) {
        if (ST_UNLIKELY(h->stream && h->stream->magic != ST_STREAM_MAGIC)) {
            st_fail(&h->err, STRATA_ERROR_STATE, "the handle's stream was destroyed");
            st_err_remedy(&h->err,
                          "strata_set_stream with a live stream, or with NULL for the default stream");
            return NULL;
        }
        if (!alive(&h->err, g)) return NULL;
        st_cu_result r = make_current(g, &h->cuda.pushed);
        if (ST_UNLIKELY(r)) {
            st_cuda_fail(&h->err, g, NULL, "cuCtxPushCurrent", r, "%s: its context cannot be made current",
                         g->gpu.device);
            return NULL;
        }
    }
    h->cuda.entered++;
    return g->cu;
}

void st_cuda_leave(strata_handle *h)
{
    st_cu_context popped;
    if (--h->cuda.entered == 0 && ST_UNLIKELY(h->cuda.pushed)) {
        st_cuda_of(h)->cu->ctx_pop_current(&popped);
        h->cuda.pushed = false;
    }
}
