/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.c - the fake driver: contexts, streams, events, graphs. The interface is the driver's binary one, in our words. */
#include "fake_state.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int fake_need_context(void) { return fake_current() ? 0 : 201; }

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
int fake_forbidden(void)
{
    int r = 0;
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < FAKE_STREAMS && !r; i++)
        if (fake.stream[i].live && fake.stream[i].capturing && fake.stream[i].mode != 2 && thread_mode != 2) {
            fake.stream[i].invalid = true;
            r = 900;
        }
    pthread_mutex_unlock(&fake.lock);
    return r;
}
int fake_stream_check(const fake_stream *s)
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
    if (!s || fake_stream_check(s)) return 400;
    pthread_mutex_lock(&fake.lock);
    s->live = false;
    fake.count.streams--;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}
void fake_finish(const fake_stream *s, bool all)
{
    for (int i = 0; i < FAKE_EVENTS; i++)
        if (fake.event[i].live && (all || fake.event[i].stream == s)) fake.event[i].pending = false;
}
FAKE int cuStreamSynchronize(fake_stream *s)
{
    ENTER(cuStreamSynchronize);
    CURRENT;
    if (fake_stream_check(s)) return 400;
    if (s && s->capturing) return s->invalid = true, 900;
    if (fake_forbidden()) return 900;
    fake.count.syncs++;
    fake_finish(s, false);
    return 0;
}
FAKE int cuStreamQuery(fake_stream *s) { return fake_stream_check(s); }
FAKE int cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize);
    CURRENT;
    if (fake_forbidden()) return 900;
    fake.count.syncs++;
    fake_finish(NULL, true);
    return 0;
}
FAKE int cuStreamGetCtx(fake_stream *s, fake_context **c)
{
    if (fake_stream_check(s)) return 400;
    *c = s ? s->context : fake_current();
    return 0;
}
FAKE int cuStreamIsCapturing(fake_stream *s, int *status)
{
    if (fake_stream_check(s)) return 400;
    if (!s && global_capture_elsewhere(s)) return 906;
    *status = s && s->capturing ? (s->invalid ? 2 : 1) : 0;
    return 0;
}
FAKE int cuStreamBeginCapture_v2(fake_stream *s, int mode)
{
    ENTER(cuStreamBeginCapture_v2);
    if (!s) return 900;
    if (fake_stream_check(s) || s->capturing) return 401;
    s->capturing = true;
    s->invalid = false;
    s->mode = mode;
    s->nodes = 0;
    return 0;
}
FAKE int cuStreamEndCapture(fake_stream *s, fake_graph **g)
{
    ENTER(cuStreamEndCapture);
    if (!s || fake_stream_check(s) || !s->capturing) return 903;
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
    if (event_check(e) || fake_stream_check(s)) return 400;
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
    if (fake_forbidden()) return 900;
    __atomic_fetch_add(&fake.count.queries, 1, __ATOMIC_RELAXED);
    return e->captured ? 907 : e->pending ? 600 : 0;
}
FAKE int cuEventSynchronize(fake_event *e)
{
    ENTER(cuEventSynchronize);
    if (event_check(e)) return 400;
    if (fake_forbidden()) return 900;
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
    if (event_check(e) || fake_stream_check(s)) return 400;
    if (s && s->capturing && !e->captured) return s->invalid = true, 905;
    fake.count.waits++;
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
    if (fake_stream_check(s)) return 400;
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
