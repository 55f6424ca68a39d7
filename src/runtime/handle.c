/* SPDX-License-Identifier: Apache-2.0 */
/* handle.c - handles and devices. */
#include "runtime/runtime.h"
#include <pthread.h>
#include <stdio.h>
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

bool st_device_parse(st_err *e, const char *who, const char *device, char *out, size_t n)
{
    if (!device || !strcmp(device, "auto") || !strcmp(device, "cpu") || !strcmp(device, "cpu:0")) {
        snprintf(out, n, "cpu");
        return true;
    }
    if (!strncmp(device, "cuda", 4)) {
        st_fail(e, STRATA_ERROR_DEVICE,
                "%s: this build of Strata has no CUDA backend, so there is no device \"%s\"", who, device);
        st_err_remedy(e, "use \"cpu\", or \"auto\" for the best device there is");
    } else {
        st_fail(e, STRATA_ERROR_DEVICE, "%s: there is no device \"%s\"; known are \"auto\" and \"cpu\"", who,
                device);
    }
    return false;
}

strata_status strata_create(strata_handle **out, const char *device)
{
    st_err *e = st_err_thread();
    if (!out) return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_create: the address for the handle is NULL");
    *out = NULL;
    st_trace_init();
    char name[32];
    if (!st_device_parse(e, "strata_create", device, name, sizeof name)) return e->status;
    strata_handle *h = st_stable_new(&handles);
    if (!h)
        return st_fail(e, STRATA_ERROR_MEMORY, "strata_create: no memory for a handle (%zu bytes)",
                       sizeof *h);
    h->magic = ST_HANDLE_MAGIC;
    snprintf(h->device, sizeof h->device, "%s", name);
    h->cpu = st_cpu_get();
    h->workspace_limit = SIZE_MAX;
    *out = h;
    return STRATA_OK;
}

void strata_destroy(strata_handle *h)
{
    if (!h || h->magic != ST_HANDLE_MAGIC) return;
    if (h->plan_slot && h->plan_slot_free) h->plan_slot_free(h->plan_slot);
    h->plan_slot = NULL;
    st_workspace_drop(h);
    if (h->outstanding) st_cpu_forget(h); /* their memory stays the caller's allocator's */
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
int strata_device_count(void) { return 1; }
const char *strata_device_name(int i) { return i == 0 ? "cpu" : NULL; }

strata_status strata_get_device_info(const char *device, strata_device_info *info)
{
    st_err *e = st_err_thread();
    char name[32], isa[128];
    if (!info) return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_get_device_info: info is NULL");
    if (!st_device_parse(e, "strata_get_device_info", device, name, sizeof name)) return e->status;
    const st_cpu *c = st_cpu_get();
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "%s", c->name);
    snprintf(info->device, sizeof info->device, "%s", name);
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
