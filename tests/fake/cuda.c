/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.c - the fake driver: contexts, memory, streams, events, graphs. The interface is the driver's binary one, in our words. */
#include "fake_state.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

fake_state fake = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .devices = 1, .version = 13000, .cc = 90, .total = (size_t)2 << 30};
static _Thread_local fake_context *stack[16];
static _Thread_local int depth;
static _Thread_local int thread_mode;

/* ---- failing on demand ----------------------------------------------------------------------------------------------------------- */
int fake_enter(const char *function, bool sticky)
{
    int r = 0;
    pthread_mutex_lock(&fake.lock);
    fake_called *c = NULL;
    for (int i = 0; i < fake.called_count && !c; i++)
        if (!strcmp(fake.called[i].name, function)) c = &fake.called[i];
    if (!c && fake.called_count < FAKE_FUNCTIONS) {
        c = &fake.called[fake.called_count++];
        c->name = function;
    }
    if (c) {
        c->calls++;
        if (c->fail_in > 0 && --c->fail_in == 0) r = c->code;
    }
    if (!r && sticky) r = fake.lost;
    pthread_mutex_unlock(&fake.lock);
    return r;
}

void fake_fail(const char *function, int nth, int code)
{
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i <= fake.called_count && i < FAKE_FUNCTIONS; i++) {
        if (i == fake.called_count) fake.called[fake.called_count++].name = strdup(function);
        if (strcmp(fake.called[i].name, function)) continue;
        fake.called[i].fail_in = nth;
        fake.called[i].code = code;
        break;
    }
    pthread_mutex_unlock(&fake.lock);
}

int fake_calls(const char *function)
{
    int n = 0;
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < fake.called_count; i++)
        if (!strcmp(fake.called[i].name, function)) n = fake.called[i].calls;
    pthread_mutex_unlock(&fake.lock);
    return n;
}

void fake_lose(int code) { fake.lost = code; }
void fake_lazy(bool on) { fake.lazy = on; }
void fake_memory(size_t total) { fake.total = total; }
void fake_shape(int devices, int version, int cc)
{
    fake.devices = devices;
    fake.version = version;
    fake.cc = cc;
}
void fake_reset(void)
{
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < fake.called_count; i++) fake.called[i].fail_in = 0;
    fake.lost = 0;
    fake.lazy = false;
    fake.total = (size_t)2 << 30;
    fake.on_launch = NULL;
    pthread_mutex_unlock(&fake.lock);
}
fake_counts fake_count(void)
{
    pthread_mutex_lock(&fake.lock);
    fake_counts c = fake.count;
    pthread_mutex_unlock(&fake.lock);
    return c;
}

__attribute__((constructor)) static void from_environment(void)
{
    const char *v;
    if ((v = getenv("FAKE_CUDA_DEVICES"))) fake.devices = atoi(v);
    if ((v = getenv("FAKE_CUDA_VERSION"))) fake.version = atoi(v);
    if ((v = getenv("FAKE_CUDA_CC"))) fake.cc = atoi(v);
    if ((v = getenv("FAKE_CUDA_INIT"))) fake.init = atoi(v);
}

/* ---- devices and contexts ------------------------------------------------------------------------------------------------------------ */
FAKE int cuInit(unsigned flags)
{
    (void)flags;
    int r = fake_enter("cuInit", false);
    if (!r) r = fake.init;
    if (!r && fake.devices < 1) r = 100;
    fake.started = r == 0;
    return r;
}
FAKE int cuDriverGetVersion(int *v)
{
    *v = fake.version;
    return 0;
}
FAKE int cuDeviceGetCount(int *n)
{
    ENTER(cuDeviceGetCount);
    if (!fake.started) return 3;
    *n = fake.devices;
    return 0;
}
FAKE int cuDeviceGet(int *d, int ordinal)
{
    if (ordinal < 0 || ordinal >= fake.devices) return 101;
    *d = ordinal;
    return 0;
}
FAKE int cuDeviceGetName(char *name, int n, int d) { return snprintf(name, (size_t)n, "Fake GPU %d", d), 0; }
FAKE int cuDeviceGetUuid_v2(unsigned char *u, int d) { return memset(u, d + 1, 16), 0; }
FAKE int cuDeviceTotalMem_v2(size_t *bytes, int d)
{
    (void)d;
    *bytes = fake.total;
    return 0;
}
FAKE int cuDeviceGetPCIBusId(char *id, int n, int d)
{
    return snprintf(id, (size_t)n, "0000:%02x:00.0", 0x41 + d), 0;
}
FAKE int cuDeviceGetAttribute(int *v, int a, int d)
{
    static const int table[][2] = {{13, 1980000},   {16, 132},  {36, 3201000},   {37, 6144},
                                   {38, 50 << 20},  {39, 2048}, {81, 228 << 10}, {82, 65536},
                                   {97, 227 << 10}, {115, 1}};
    (void)d;
    *v = a == 75 ? fake.cc / 10 : a == 76 ? fake.cc % 10 : 0;
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i][0] == a) *v = table[i][1];
    return 0;
}
FAKE int cuDevicePrimaryCtxRetain(fake_context **c, int d)
{
    ENTER(cuDevicePrimaryCtxRetain);
    fake.context[d].device = d;
    *c = &fake.context[d];
    return 0;
}
FAKE int cuDevicePrimaryCtxRelease_v2(int d)
{
    (void)d;
    return 0;
}
FAKE int cuCtxGetCurrent(fake_context **c)
{
    *c = depth ? stack[depth - 1] : NULL;
    return 0;
}
FAKE int cuCtxSetCurrent(fake_context *c)
{
    if (!depth) depth = 1;
    stack[depth - 1] = c;
    return 0;
}
FAKE int cuCtxPushCurrent_v2(fake_context *c)
{
    ENTER(cuCtxPushCurrent_v2);
    if (depth == 16) return 999;
    stack[depth++] = c;
    __atomic_add_fetch(&fake.count.pushes, 1, __ATOMIC_RELAXED);
    return 0;
}
FAKE int cuCtxPopCurrent_v2(fake_context **c)
{
    if (!depth) return 201;
    *c = stack[--depth];
    return 0;
}
void *fake_current(void) { return depth ? stack[depth - 1] : NULL; }
void fake_set_current(void *c)
{
    depth = c ? 1 : 0;
    stack[0] = c;
}
void *fake_other_context(void) { return &fake.other; }

static int need_context(void) { return depth && stack[depth - 1] ? 0 : 201; }
#define CURRENT                      \
    do {                             \
        int fake_c = need_context(); \
        if (fake_c) return fake_c;   \
    } while (0)

/* ---- streams and events ------------------------------------------------------------------------------------------------------------------ */
static bool global_capture_elsewhere(const fake_stream *s)
{
    for (int i = 0; i < FAKE_STREAMS; i++)
        if (fake.stream[i].live && fake.stream[i].capturing && fake.stream[i].mode == 0 &&
            &fake.stream[i] != s)
            return true;
    return false;
}
/* Calls that a capture in global mode forbids to threads that are not relaxed. */
static int forbidden(void)
{
    for (int i = 0; i < FAKE_STREAMS; i++)
        if (fake.stream[i].live && fake.stream[i].capturing && fake.stream[i].mode != 2 && thread_mode != 2) {
            fake.stream[i].invalid = true;
            return 900;
        }
    return 0;
}
static int stream_check(const fake_stream *s)
{
    if (!s) return 0;
    if (s < fake.stream || s >= fake.stream + FAKE_STREAMS || !s->live) return 400;
    return 0;
}
FAKE int cuStreamCreate(fake_stream **s, unsigned flags)
{
    (void)flags;
    ENTER(cuStreamCreate);
    CURRENT;
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < FAKE_STREAMS; i++)
        if (!fake.stream[i].live) {
            fake.stream[i] = (fake_stream){.live = true, .context = fake_current()};
            *s = &fake.stream[i];
            fake.count.streams++;
            break;
        }
    pthread_mutex_unlock(&fake.lock);
    return 0;
}
FAKE int cuStreamDestroy_v2(fake_stream *s)
{
    ENTER(cuStreamDestroy_v2);
    if (!s || stream_check(s)) return 400;
    pthread_mutex_lock(&fake.lock);
    s->live = false;
    fake.count.streams--;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}
static void finish(const fake_stream *s, bool all)
{
    for (int i = 0; i < FAKE_EVENTS; i++)
        if (fake.event[i].live && (all || fake.event[i].stream == s)) fake.event[i].pending = false;
}
FAKE int cuStreamSynchronize(fake_stream *s)
{
    ENTER(cuStreamSynchronize);
    CURRENT;
    if (stream_check(s)) return 400;
    if (s && s->capturing) return s->invalid = true, 900;
    if (forbidden()) return 900;
    fake.count.syncs++;
    finish(s, false);
    return 0;
}
FAKE int cuStreamQuery(fake_stream *s) { return stream_check(s); }
FAKE int cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize);
    CURRENT;
    if (forbidden()) return 900;
    fake.count.syncs++;
    finish(NULL, true);
    return 0;
}
FAKE int cuStreamGetCtx(fake_stream *s, fake_context **c)
{
    if (stream_check(s)) return 400;
    *c = s ? s->context : fake_current();
    return 0;
}
FAKE int cuStreamIsCapturing(fake_stream *s, int *status)
{
    if (stream_check(s)) return 400;
    if (!s && global_capture_elsewhere(s)) return 906;
    *status = s && s->capturing ? (s->invalid ? 2 : 1) : 0;
    return 0;
}
FAKE int cuStreamBeginCapture_v2(fake_stream *s, int mode)
{
    ENTER(cuStreamBeginCapture_v2);
    if (!s) return 900;
    if (stream_check(s) || s->capturing) return 401;
    s->capturing = true;
    s->invalid = false;
    s->mode = mode;
    s->nodes = 0;
    return 0;
}
FAKE int cuStreamEndCapture(fake_stream *s, fake_graph **g)
{
    ENTER(cuStreamEndCapture);
    if (!s || stream_check(s) || !s->capturing) return 903;
    s->capturing = false;
    *g = NULL;
    if (s->invalid || s->node_memory) {
        s->node_memory = 0;
        return 901;
    }
    *g = calloc(1, sizeof **g);
    (*g)->nodes = s->nodes;
    fake.last_nodes = s->nodes;
    __atomic_add_fetch(&fake.count.graphs, 1, __ATOMIC_RELAXED);
    return 0;
}
FAKE int cuThreadExchangeStreamCaptureMode(int *mode)
{
    int was = thread_mode;
    thread_mode = *mode;
    *mode = was;
    return 0;
}
FAKE int cuEventCreate(fake_event **e, unsigned flags)
{
    (void)flags;
    ENTER(cuEventCreate);
    CURRENT;
    pthread_mutex_lock(&fake.lock);
    *e = NULL;
    for (int i = 0; i < FAKE_EVENTS && !*e; i++)
        if (!fake.event[i].live) {
            fake.event[i] = (fake_event){.live = true};
            *e = &fake.event[i];
            fake.count.events++;
        }
    pthread_mutex_unlock(&fake.lock);
    return *e ? 0 : 2;
}
static int event_check(const fake_event *e)
{
    return !e || e < fake.event || e >= fake.event + FAKE_EVENTS || !e->live ? 400 : 0;
}
FAKE int cuEventDestroy_v2(fake_event *e)
{
    if (event_check(e)) return 400;
    pthread_mutex_lock(&fake.lock);
    e->live = false;
    fake.count.events--;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}
FAKE int cuEventRecord(fake_event *e, fake_stream *s)
{
    ENTER(cuEventRecord);
    CURRENT;
    if (event_check(e) || stream_check(s)) return 400;
    e->stream = s;
    e->captured = s && s->capturing;
    e->pending = fake.lazy && !e->captured;
    e->ms = (double)++fake.clock;
    if (e->captured) s->nodes++;
    return 0;
}
FAKE int cuEventQuery(fake_event *e)
{
    ENTER(cuEventQuery);
    if (event_check(e)) return 400;
    if (forbidden()) return 900;
    fake.count.queries++;
    return e->captured ? 907 : e->pending ? 600 : 0;
}
FAKE int cuEventSynchronize(fake_event *e)
{
    ENTER(cuEventSynchronize);
    if (event_check(e)) return 400;
    if (forbidden()) return 900;
    if (e->captured) return 907;
    e->pending = false;
    return 0;
}
FAKE int cuEventElapsedTime(float *ms, fake_event *a, fake_event *b)
{
    ENTER(cuEventElapsedTime);
    if (event_check(a) || event_check(b)) return 400;
    if (a->pending || b->pending) return 600;
    *ms = (float)(b->ms - a->ms);
    return 0;
}
FAKE int cuStreamWaitEvent(fake_stream *s, fake_event *e, unsigned flags)
{
    (void)flags;
    ENTER(cuStreamWaitEvent);
    CURRENT;
    if (event_check(e) || stream_check(s)) return 400;
    if (s && s->capturing && !e->captured) return s->invalid = true, 905;
    fake.count.waits++;
    return 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------------------- */
static fake_block *block_at(uintptr_t p)
{
    for (int i = 0; i < FAKE_BLOCKS; i++)
        if (fake.block[i].bytes && p >= fake.block[i].p && p < fake.block[i].p + fake.block[i].bytes)
            return &fake.block[i];
    return NULL;
}
static int take(uintptr_t *p, size_t bytes, int kind)
{
    int r = 2;
    pthread_mutex_lock(&fake.lock);
    if (bytes && (kind == 1 || fake.count.bytes + bytes <= fake.total))
        for (int i = 0; i < FAKE_BLOCKS; i++) {
            if (fake.block[i].bytes) continue;
            void *m = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (m == MAP_FAILED) break;
            fake.block[i] = (fake_block){.p = (uintptr_t)m,
                                         .bytes = bytes,
                                         .kind = kind,
                                         .device = depth ? stack[depth - 1]->device : 0};
            *p = (uintptr_t)m;
            if (kind == 2) {
                fake.count.bytes += bytes;
                fake.count.blocks++;
            } else {
                fake.count.host_blocks++;
            }
            r = 0;
            break;
        }
    pthread_mutex_unlock(&fake.lock);
    return r;
}
static int give(uintptr_t p, int kind)
{
    int r = 1;
    pthread_mutex_lock(&fake.lock);
    fake_block *b = block_at(p);
    if (b && b->p == p && b->kind == kind) {
        munmap((void *)p, b->bytes + 4096);
        if (kind == 2) {
            fake.count.bytes -= b->bytes;
            fake.count.blocks--;
        } else {
            fake.count.host_blocks--;
        }
        b->bytes = 0;
        r = 0;
    }
    pthread_mutex_unlock(&fake.lock);
    return r;
}
FAKE int cuMemAlloc_v2(uintptr_t *p, size_t bytes)
{
    ENTER(cuMemAlloc_v2);
    CURRENT;
    if (forbidden()) return 900;
    fake.count.allocations++;
    return take(p, bytes, 2);
}
FAKE int cuMemFree_v2(uintptr_t p)
{
    ENTER(cuMemFree_v2);
    CURRENT;
    if (forbidden()) return 900;
    finish(NULL, true);
    return give(p, 2);
}
FAKE int cuMemAllocAsync(uintptr_t *p, size_t bytes, fake_stream *s)
{
    ENTER(cuMemAllocAsync);
    CURRENT;
    if (s && s->capturing) {
        s->nodes++;
        s->node_memory++;
        fake.count.mallocs_in_capture++;
    }
    return take(p, bytes, 2);
}
FAKE int cuMemFreeAsync(uintptr_t p, fake_stream *s)
{
    ENTER(cuMemFreeAsync);
    CURRENT;
    if (s && s->capturing) {
        s->nodes++;
        s->node_memory--;
    }
    return give(p, 2);
}
FAKE int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *total = fake.total;
    *free_bytes = fake.total - (fake.count.bytes < fake.total ? fake.count.bytes : fake.total);
    return 0;
}
FAKE int cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    ENTER(cuMemHostAlloc);
    CURRENT;
    if (forbidden()) return 900;
    return take((uintptr_t *)p, bytes, 1);
}
FAKE int cuMemFreeHost(void *p)
{
    ENTER(cuMemFreeHost);
    return give((uintptr_t)p, 1);
}
/* Both ends must be what the call says, and inside one block. */
static int copy(uintptr_t d, int d_device, uintptr_t s, int s_device, size_t n, fake_stream *stream)
{
    CURRENT;
    if (stream_check(stream)) return 400;
    fake_block *bd = block_at(d), *bs = block_at(s);
    if (d_device != (bd && bd->kind == 2) || s_device != (bs && bs->kind == 2)) return 1;
    if ((bd && d + n > bd->p + bd->bytes) || (bs && s + n > bs->p + bs->bytes)) return 1;
    fake.count.copies++;
    if (stream && stream->capturing)
        stream->nodes++;
    else
        memmove((void *)d, (void *)s, n);
    return 0;
}
FAKE int cuMemcpyHtoDAsync_v2(uintptr_t d, const void *s, size_t n, fake_stream *stream)
{
    ENTER(cuMemcpyHtoDAsync_v2);
    return copy(d, 1, (uintptr_t)s, 0, n, stream);
}
FAKE int cuMemcpyDtoHAsync_v2(void *d, uintptr_t s, size_t n, fake_stream *stream)
{
    ENTER(cuMemcpyDtoHAsync_v2);
    return copy((uintptr_t)d, 0, s, 1, n, stream);
}
FAKE int cuMemcpyDtoDAsync_v2(uintptr_t d, uintptr_t s, size_t n, fake_stream *stream)
{
    ENTER(cuMemcpyDtoDAsync_v2);
    return copy(d, 1, s, 1, n, stream);
}
static int set(uintptr_t d, const void *v, size_t size, size_t n, fake_stream *stream)
{
    CURRENT;
    fake_block *b = block_at(d);
    if (!b || d + n * size > b->p + b->bytes || d % size) return 1;
    if (stream && stream->capturing) return stream->nodes++, 0;
    for (size_t i = 0; i < n; i++) memcpy((char *)d + i * size, v, size);
    return 0;
}
FAKE int cuMemsetD8Async(uintptr_t d, unsigned char v, size_t n, fake_stream *s)
{
    ENTER(cuMemsetD8Async);
    return set(d, &v, 1, n, s);
}
FAKE int cuMemsetD16Async(uintptr_t d, unsigned short v, size_t n, fake_stream *s)
{
    ENTER(cuMemsetD16Async);
    return set(d, &v, 2, n, s);
}
FAKE int cuMemsetD32Async(uintptr_t d, unsigned v, size_t n, fake_stream *s)
{
    ENTER(cuMemsetD32Async);
    return set(d, &v, 4, n, s);
}
FAKE int cuPointerGetAttributes(unsigned n, const int *what, void **to, uintptr_t p)
{
    ENTER(cuPointerGetAttributes);
    CURRENT;
    pthread_mutex_lock(&fake.lock);
    const fake_block *b = block_at(p);
    for (unsigned i = 0; i < n; i++) {
        if (what[i] == 2) *(int *)to[i] = b ? b->kind : 0;
        if (what[i] == 8) *(int *)to[i] = 0;
        if (what[i] == 9) *(int *)to[i] = b ? b->device : -2;
        if (what[i] == 11) *(uintptr_t *)to[i] = b ? b->p : 0;
        if (what[i] == 12) *(size_t *)to[i] = b ? b->bytes : 0;
    }
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

/* ---- graphs ---------------------------------------------------------------------------------------------------------------------------------- */
FAKE int cuGraphInstantiateWithFlags(fake_graph **exec, fake_graph *g, unsigned long long flags)
{
    (void)flags;
    ENTER(cuGraphInstantiateWithFlags);
    *exec = malloc(sizeof **exec);
    **exec = *g;
    __atomic_add_fetch(&fake.count.execs, 1, __ATOMIC_RELAXED);
    return 0;
}
FAKE int cuGraphLaunch(fake_graph *exec, fake_stream *s)
{
    ENTER(cuGraphLaunch);
    if (stream_check(s)) return 400;
    fake.count.graph_launches++;
    return exec ? 0 : 1;
}
FAKE int cuGraphDestroy(fake_graph *g)
{
    free(g);
    __atomic_sub_fetch(&fake.count.graphs, 1, __ATOMIC_RELAXED);
    return 0;
}
FAKE int cuGraphExecDestroy(fake_graph *exec)
{
    free(exec);
    __atomic_sub_fetch(&fake.count.execs, 1, __ATOMIC_RELAXED);
    return 0;
}
FAKE int cuGraphGetNodes(fake_graph *g, void **nodes, size_t *n)
{
    (void)nodes;
    *n = (size_t)g->nodes;
    return 0;
}
int fake_last_graph_nodes(void) { return fake.last_nodes; }

/* ---- a program of the test's that uses CUDA directly --------------------------------------------------------------------------------------- */
void *fake_stream_make(int device)
{
    fake_stream *s = NULL;
    void *was = fake_current();
    fake_set_current(&fake.context[device]);
    cuStreamCreate(&s, 1);
    fake_set_current(was);
    return s;
}
void fake_stream_end(void *s) { cuStreamDestroy_v2(s); }
void fake_capture_begin(void *s, int mode) { cuStreamBeginCapture_v2(s, mode); }
int fake_capture_end(void *s)
{
    fake_graph *g = NULL;
    int r = cuStreamEndCapture(s, &g);
    if (g) cuGraphDestroy(g);
    return r;
}
