/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - the process's table of loaded kernels.
 *
 * One entry a device and key, kept until the process ends (a module holds device memory, 10 to 60 KB). A thread that asks for a kernel
 * which another is compiling waits for it; different kernels compile at the same time. A failure is not kept: the next call tries again. */
#include "driver/driver.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/image.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUfunction_attribute, and results after which other code may load */
enum { MAX_THREADS = 0, SHARED_BYTES = 1, LOCAL_BYTES = 3, REGISTERS = 4 };
enum { INVALID_IMAGE = 200, NO_BINARY = 209, INVALID_PTX = 218, UNSUPPORTED_PTX = 222, CAPTURE_RELAXED = 2 };

typedef struct loaded {
    struct loaded *next;
    st_image_key key;
    int ordinal;
    bool ready;
    st_gpu_kernel kernel;
} loaded;

enum { BUCKETS = 512 };
static loaded *bucket[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

typedef struct loading {
    const st_libcuda *cu;
    strata_handle *h;
    const st_gpu_spec *spec;
    st_gpu_kernel *kernel;
} loading;

static bool refused(st_cu_result r)
{
    return r == INVALID_IMAGE || r == NO_BINARY || r == INVALID_PTX || r == UNSUPPORTED_PTX;
}

static bool load_failed(loading *l, st_err *e, const char *function, st_cu_result r)
{
    const char *device = l->h->gpu->device;
    if (refused(r)) {
        st_fail(e, STRATA_ERROR_DEVICE, "%s: %s cannot run this code: %s", l->spec->id, device,
                st_cu_result_name(r));
        st_cu_frame(e, function, r);
    } else
        st_cuda_fail(e, st_cuda_of(l->h), l->h->stream, function, r, "%s: %s cannot load this kernel",
                     l->spec->id, device);
    return false;
}

static bool load(void *user, st_err *e, const st_gpu_image *im, bool *other)
{
    loading *l = user;
    const st_libcuda *cu = l->cu;
    st_cu_module module;
    st_cu_function f;
    int mode = CAPTURE_RELAXED; /* another thread may be capturing a graph in global mode */
    cu->thread_exchange_capture_mode(&mode);
    const char *function = "cuModuleLoadData";
    st_cu_result r = cu->module_load_data(&module, im->bytes);
    if (!r) {
        function = "cuModuleGetFunction";
        r = cu->module_get_function(&f, module, l->spec->entry);
        if (r) cu->module_unload(module);
    }
    st_gpu_kernel *k = l->kernel;
    const struct {
        int id, *to;
    } want[] = {{MAX_THREADS, &k->max_threads},
                {SHARED_BYTES, &k->static_smem},
                {LOCAL_BYTES, &k->local_bytes},
                {REGISTERS, &k->registers}};
    for (int i = 0; !r && i < ST_COUNT(want); i++) {
        function = "cuFuncGetAttribute";
        r = cu->func_get_attribute(want[i].to, want[i].id, f);
    }
    cu->thread_exchange_capture_mode(&mode);
    *other = refused(r);
    if (r) return load_failed(l, e, function, r);
    k->function = f;
    return true;
}

static loaded *find(const st_image_key *key, int ordinal)
{
    for (loaded *x = bucket[key->word[0] % BUCKETS]; x; x = x->next)
        if (x->key.word[0] == key->word[0] && x->key.word[1] == key->word[1] && x->ordinal == ordinal)
            return x;
    return NULL;
}

/* The entry of this key: a ready one (true in *ready), or a new one that the caller must finish or drop. NULL: no memory. */
static loaded *claim(const st_image_key *key, int ordinal, bool *ready)
{
    pthread_mutex_lock(&lock);
    loaded *x;
    while ((x = find(key, ordinal)) != NULL && !x->ready) pthread_cond_wait(&changed, &lock);
    *ready = x != NULL;
    if (!x && (x = calloc(1, sizeof *x)) != NULL) {
        x->key = *key;
        x->ordinal = ordinal;
        x->next = bucket[key->word[0] % BUCKETS];
        bucket[key->word[0] % BUCKETS] = x;
    }
    pthread_mutex_unlock(&lock);
    return x;
}

static void settle(loaded *x, bool ok)
{
    pthread_mutex_lock(&lock);
    x->ready = ok;
    if (!ok) {
        loaded **at = &bucket[x->key.word[0] % BUCKETS];
        while (*at != x) at = &(*at)->next;
        *at = x->next;
        free(x);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static strata_status build(strata_handle *h, const st_gpu_spec *s, loaded *x)
{
    uint64_t t0 = st_trace_begin(), begun = st_now_ns();
    const st_libcuda *cu = st_cuda_enter(h);
    if (!cu) return h->err.status;
    loading l = {cu, h, s, &x->kernel};
    st_image_request q = {.spec = s, .cc = h->gpu->cc, .driver = cu->version, .load = load, .user = &l};
    snprintf(x->kernel.id, sizeof x->kernel.id, "%s", s->id);
    strata_status status = st_image_obtain(&h->err, &q);
    st_cuda_leave(h);
    if (status) return status;
    x->kernel.compile_ms = strcmp(q.from, "nvrtc") == 0 ? q.image.ms : 0;
    char complaint[200];
    if (ST_UNLIKELY(t0) && q.image.log && st_image_complaint(&q.image, complaint, sizeof complaint))
        st_trace_end(t0, "runtime", "warning", "%s compiles with: %s", s->id, complaint);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "runtime", "kernel",
                     "%s for %s from %s (NVRTC %u.%u), %zu bytes, %d registers, %.1f ms", s->id,
                     q.record.arch, q.from, q.record.nvrtc / 1000, q.record.nvrtc % 1000 / 10, q.image.size,
                     x->kernel.registers, (double)(st_now_ns() - begun) / 1e6);
    free(q.image.bytes);
    free(q.image.log);
    return STRATA_OK;
}

strata_status st_gpu_kernel_get(strata_handle *h, const st_gpu_spec *s, const st_gpu_kernel **k)
{
    *k = NULL;
    if (!h->gpu)
        return st_fail(&h->err, STRATA_ERROR_INTERNAL, "%s: a CUDA kernel was asked of %s", s->id, h->device);
    const char *arch = st_gpu_arch(h->gpu->cc);
    st_image_key key;
    if (!st_image_key_of(&h->err, s, arch ? arch : "", &key)) return h->err.status;
    bool ready;
    loaded *x = claim(&key, h->gpu->ordinal, &ready);
    if (!x) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for the kernel table", s->id);
    if (!ready) {
        strata_status status = build(h, s, x);
        settle(x, status == STRATA_OK);
        if (status) return status;
    }
    *k = &x->kernel;
    return STRATA_OK;
}
