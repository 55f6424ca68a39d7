/* SPDX-License-Identifier: Apache-2.0 */
/* handle.c - handles and devices. */
#include "runtime/gpu.h"
#include "runtime/runtime.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static st_stable handles = {.size = sizeof(strata_handle)};
static pthread_key_t key; /* of each thread's default handle */
static bool have_key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

strata_status st_handle_check(strata_handle *h, const char *who)
{
    if (ST_LIKELY(h && h->magic == ST_HANDLE_MAGIC)) return STRATA_OK;
    return st_fail(st_err_thread(), h ? STRATA_ERROR_STATE : STRATA_ERROR_ARGUMENT,
                   "%s: the handle is %s; make one with strata_create", who,
                   h ? "destroyed, or not a strata_handle" : "NULL");
}

static void unknown_device(st_err *e, const char *who, const char *device)
{
    st_fail(e, STRATA_ERROR_DEVICE,
            "%s: there is no device \"%s\"; known are \"auto\", \"cpu\" and \"cuda:0\" (the GPU's number)",
            who, ST_SHORT(device));
}

/* ST_NO_DEVICE with e set, ST_DEVICE_CPU, or a GPU's ordinal. */
enum { ST_NO_DEVICE = -2, ST_DEVICE_CPU = -1 };
static int device_parse(st_err *e, const char *who, const char *device)
{
    if (!strcmp(device, "cpu") || !strcmp(device, "cpu:0")) return ST_DEVICE_CPU;
    if (!strcmp(device, "cuda")) return 0;
    if (!strncmp(device, "cuda:", 5) && device[5] >= '0' && device[5] <= '9') {
        char *end;
        long n = strtol(device + 5, &end, 10);
        if (!*end && n < 4096) return (int)n;
    }
    unknown_device(e, who, device);
    return ST_NO_DEVICE;
}

/* What "auto" is: STRATA_DEVICE, else the first GPU that can be used, else the CPU (and the trace says why). */
static int device_auto(st_err *e, const char *who)
{
    const char *named = st_env("STRATA_DEVICE");
    if (named && strcmp(named, "auto")) {
        int d = device_parse(e, who, named);
        if (d == ST_NO_DEVICE)
            st_err_frame(e, "runtime", "STRATA_DEVICE=%.100s says what \"auto\" is", named);
        return d;
    }
    st_err why = {0};
    int d = st_cuda_best(&why);
    if (d >= 0) return d;
    const uint64_t t0 = st_trace_begin();
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "runtime", "auto", "is the CPU: %.300s", why.text);
    return ST_DEVICE_CPU;
}

/* Puts the handle on the device; false with e set. */
static bool attach(strata_handle *h, st_err *e, const char *device)
{
    static const char who[] = "strata_create";
    const bool any = !device || !strcmp(device, "auto");
    int d = any ? device_auto(e, who) : device_parse(e, who, device);
    if (d == ST_NO_DEVICE) return false;
    if (d == ST_DEVICE_CPU) {
        snprintf(h->device, sizeof h->device, "cpu");
        h->workspace_limit = SIZE_MAX;
        return true;
    }
    h->staging = any;
    if (st_cuda_attach(h, e, d)) return true;
    char text[sizeof e->text];
    memcpy(text, e->text, sizeof text);
    snprintf(e->text, sizeof e->text, "%s: the device \"cuda:%d\" cannot be used: %.600s", who, d, text);
    if (!e->remedy[0])
        st_err_remedy(e,
                      "use \"cpu\", or \"auto\" for the best device there is; `strata doctor` looks closer");
    return false;
}

strata_status st_handle_in_use(const char *who)
{
    st_err *e = st_err_thread(); /* the handle's own is the other thread's now */
    st_fail(e, STRATA_ERROR_STATE, "%s: the handle is in use by another thread", who);
    st_err_remedy(e, "make a handle for every thread, or let one call end before the next begins");
    return STRATA_ERROR_STATE;
}

/* A wish in the environment that nobody understands would be ignored in silence. */
static bool environment(st_err *e)
{
    const char *isa = st_env("STRATA_ISA"), *threads = st_env("STRATA_THREADS");
    const char *unknown = NULL;
    if (isa && strcmp(isa, "avx512") && strcmp(isa, "avx2") && strcmp(isa, "portable")) {
        st_fail(
            e, STRATA_ERROR_ARGUMENT,
            "strata_create: the environment's STRATA_ISA is \"%.60s\"; it may be avx512, avx2 or portable",
            isa);
        unknown = "STRATA_ISA";
    } else if (threads) {
        char *end;
        const long n = strtol(threads, &end, 10);
        if (*end || end == threads || n < 1 || n > 256) {
            st_fail(e, STRATA_ERROR_ARGUMENT,
                    "strata_create: the environment's STRATA_THREADS is \"%.60s\"; it may be a number from 1 "
                    "to 256",
                    threads);
            unknown = "STRATA_THREADS";
        }
    }
    if (unknown) st_err_remedy(e, "correct %s, or unset it", unknown);
    return !unknown;
}

strata_status strata_create(strata_handle **out, const char *device)
{
    st_err *e = st_err_thread();
    if (!out) return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_create: the address for the handle is NULL");
    *out = NULL;
    st_trace_init();
    if (!environment(e)) return e->status;
    strata_handle *h = st_stable_new(&handles);
    if (!h)
        return st_fail(e, STRATA_ERROR_MEMORY, "strata_create: no memory for a handle (%zu bytes)",
                       sizeof *h);
    h->cpu = st_cpu_get();
    if (!attach(h, e, device)) {
        st_stable_put(&handles, h);
        return e->status;
    }
    h->magic = ST_HANDLE_MAGIC;
    *out = h;
    return STRATA_OK;
}

void strata_destroy(strata_handle *h)
{
    if (!h || h->magic != ST_HANDLE_MAGIC) return;
    if (h->plan_slot && h->plan_slot_free) h->plan_slot_free(h->plan_slot);
    h->plan_slot = NULL;
    if (h->gpu) st_cuda_graph_abandon(h);
    st_workspace_drop(h);
    if (h->gpu)
        st_cuda_detach(h);
    else if (h->outstanding)
        st_cpu_forget(h); /* their memory stays the caller's allocator's */
    h->magic = 0;
    st_stable_put(&handles, h);
}

static void destroy_default(void *h) { strata_destroy(h); }
static void make_key(void) { have_key = pthread_key_create(&key, destroy_default) == 0; }

strata_handle *strata_default_handle(void)
{
    pthread_once(&key_once, make_key);
    if (!have_key) {
        st_fail(st_err_thread(), STRATA_ERROR_MEMORY,
                "strata_default_handle: this process has no thread-specific key left");
        return NULL;
    }
    strata_handle *h = pthread_getspecific(key);
    if (h && h->magic == ST_HANDLE_MAGIC) return h; /* the caller may have destroyed it */
    if (strata_create(&h, "auto")) return NULL;
    if (!pthread_setspecific(key, h)) return h;
    strata_destroy(h);
    st_fail(st_err_thread(), STRATA_ERROR_MEMORY,
            "strata_default_handle: no memory to keep a handle for this thread");
    return NULL;
}

const char *strata_handle_device(const strata_handle *h)
{
    return h && h->magic == ST_HANDLE_MAGIC ? h->device : "none";
}
int strata_device_count(void) { return 1 + st_cuda_visible(); }

const char *strata_device_name(int i)
{
    static char names[ST_MOST_GPUS][12]; /* the same bytes whoever writes them */
    if (i == 0) return "cpu";
    if (i < 0 || i > ST_MOST_GPUS || i > st_cuda_visible()) return NULL;
    snprintf(names[i - 1], sizeof names[i - 1], "cuda:%d", i - 1);
    return names[i - 1];
}

strata_status strata_get_device_info(const char *device, strata_device_info *info)
{
    static const char who[] = "strata_get_device_info";
    st_err *e = st_err_thread();
    char isa[128];
    if (!info) return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_get_device_info: info is NULL");
    int d = !device || !strcmp(device, "auto") ? device_auto(e, who) : device_parse(e, who, device);
    if (d == ST_NO_DEVICE) return e->status;
    if (d != ST_DEVICE_CPU) return st_cuda_info(e, who, d, info);
    const st_cpu *c = st_cpu_get();
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "%s", c->name);
    snprintf(info->device, sizeof info->device, "cpu");
    snprintf(info->isa, sizeof info->isa, "%s", st_isa_name(c->isa, isa, sizeof isa));
    info->threads = st_team_size();
    info->processors = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    info->l1d = c->l1d;
    info->l2 = c->l2;
    info->l3 = c->l3;
    snprintf(info->cache_source, sizeof info->cache_source, "%s", c->cache_source);
    info->memory = (int64_t)st_cpu_memory_limit();
    return STRATA_OK;
}

strata_status strata_set_threads(strata_handle *h, int n)
{
    strata_status s = st_handle_check(h, "strata_set_threads");
    if (s) return s;
    if (n < 0 || n > 256)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_set_threads: n is %d; 1 to 256, or 0 for as many as the process may use (%d)",
                       n, st_team_size());
    h->threads = n;
    return STRATA_OK;
}

int strata_get_threads(const strata_handle *h)
{
    return h && h->magic == ST_HANDLE_MAGIC ? st_threads(h) : 0;
}

strata_status strata_set_parallel_for(strata_handle *h, strata_parallel_for f, void *user, int threads)
{
    strata_status s = st_handle_check(h, "strata_set_parallel_for");
    if (s) return s;
    if (f && (threads < 1 || threads > 256))
        return st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "strata_set_parallel_for: threads is %d; say how many bodies may run at once, 1 to 256", threads);
    if (!f && threads)
        return st_fail(
            &h->err, STRATA_ERROR_ARGUMENT,
            "strata_set_parallel_for: threads is %d beside a function that is NULL, which restores "
            "the library's team; give 0 there (strata_set_threads sizes the team)",
            threads);
    h->parallel_for = f;
    h->parallel_user = user;
    h->parallel_threads = f ? threads : 0;
    return STRATA_OK;
}

strata_status strata_set_trace(const char *where)
{
    char why[400];
    st_trace_init(); /* so that a later strata_create does not undo this with the environment's wish */
    if (st_trace_set(where, why, sizeof why)) return STRATA_OK;
    return st_fail(st_err_thread(), STRATA_ERROR_IO, "strata_set_trace: %s", why);
}
