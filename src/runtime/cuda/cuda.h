/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - what the CUDA files of this layer share: the device object, entering its context, faults, the memory pool, streams.
 *
 * Every device has one st_cuda, made at first use and never freed; its primary context is retained, so that Strata works beside PyTorch and the
 * CUDA runtime in one process. A call makes that context current only while it runs, unless it is so already. */
#ifndef ST_RUNTIME_CUDA_CUDA_H
#define ST_RUNTIME_CUDA_CUDA_H
#include "driver/driver.h"
#include "runtime/gpu.h"
#include "runtime/runtime.h"
#include <pthread.h>

enum { ST_CUDA_DEVICES = ST_MOST_GPUS, ST_CUDA_OLDEST_CC = 80 };

typedef struct st_cuda st_cuda;
struct st_cuda {
    st_gpu gpu; /* first: h->gpu points here */
    const st_libcuda *cu;
    st_cu_device device;
    st_cu_context context;
    char pci[32];                 /* "0000:41:00.0" */
    char isa[64];                 /* "sm_90" */
    double memory_gbs;            /* bus width times memory clock */
    atomic_int lost;              /* the sticky error that was met, 0: none */
    strata_stream default_stream; /* the legacy default stream */
    struct st_cuda_pool *pool;
    struct st_cuda_ring *ring; /* pinned memory that copies go through */
    _Atomic(const st_gpu_kernel *) copy_kernel[2]
                                              [5]; /* copy.c: plain, transposing; 1 to 16 bytes an element */
};
ST_INLINE st_cuda *st_cuda_of(const strata_handle *h) { return (st_cuda *)(uintptr_t)h->gpu; }

/* device.c */
/* The device of that ordinal, its context retained; NULL with the error set. */
st_cuda *st_cuda_open(st_err *e, int ordinal);
int st_cuda_count(st_err *e); /* devices that the driver shows, 0 with e set */
/* The context becomes current; NULL with h->err set: lost device, forked process, destroyed stream. Calls nest. */
const st_libcuda *st_cuda_enter(strata_handle *h);
void st_cuda_leave(strata_handle *h);
/* The same for calls that have no handle. */
typedef struct st_cuda_scope {
    st_cuda *g;
    bool pushed;
} st_cuda_scope;
bool st_cuda_enter_device(st_err *e, st_cuda *g, st_cuda_scope *scope);
void st_cuda_leave_device(st_cuda_scope *scope);

/* fault.c */
/* A failed call of the driver: sets the error, says whether it was caused earlier, marks a lost device. `what` is the sentence's beginning
 * ("strata_copy: the copy to the device failed"). Returns the status. */
strata_status st_cuda_fail(st_err *e, st_cuda *g, const strata_stream *stream, const char *function,
                           st_cu_result r, const char *what, ...) ST_PRINTF(6, 7);
bool st_cuda_sticky(st_cu_result r);
strata_status st_cuda_no_memory(st_err *e, st_cuda *g, st_cu_result r, size_t bytes, size_t released);
/* Puts "who: " before the error's sentence. */
void st_cuda_prefix(st_err *e, const char *who);

/* pool.c: blocks of device memory, ordered by streams */
bool st_cuda_pool_init(st_cuda *g);
/* All need the context current. NULL with the error set. */
void *st_cuda_pool_alloc(st_err *e, st_cuda *g, strata_stream *s, size_t bytes);
/* Enters memory that a caller's allocator gave among the live blocks; false: no host memory for that. */
bool st_cuda_pool_adopt(st_cuda *g, void *p, size_t bytes, const strata_handle *owner);
/* Frees a block of the pool's in the order of s (NULL: its last user has finished), or tells whose it is. */
st_taken st_cuda_pool_take(st_cuda *g, strata_stream *s, void *p, const strata_handle *h, size_t *bytes);
void st_cuda_pool_forget(st_cuda *g, const strata_handle *owner);
void st_cuda_pool_trim(st_cuda *g);
void st_cuda_pool_stats(st_cuda *g, strata_memory_stats *s);
bool st_cuda_pool_range(st_cuda *g, const void *p, char **lo,
                        char **hi); /* the segment that holds the address */

/* stream.c (of cuda/) */
ST_INLINE strata_stream *st_cuda_stream(strata_handle *h)
{
    return h->stream ? h->stream : &st_cuda_of(h)->default_stream;
}
bool st_cuda_stream_captures(st_cuda *g, const strata_stream *s);
/* The thread's capture mode around calls that a capture of another stream would forbid (allocation, waiting, event queries). */
int st_cuda_relax(st_cuda *g);
void st_cuda_restore(st_cuda *g, int mode);

/* launch.c: the last launches of a stream, newest first, in words */
void st_cuda_launches(const strata_stream *s, char *text, size_t n);

/* transfer.c: st_gpu_upload and st_gpu_download take any size; `who` is in the error */
bool st_cuda_host_readable(strata_handle *h, const void *p,
                           bool *reaches); /* by the processor; and by the GPU */
#endif
