/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - what the files of this layer share among themselves. */
#ifndef ST_RUNTIME_RUNTIME_H
#define ST_RUNTIME_RUNTIME_H
#include "runtime/handle.h"

/* pool.c: blocks have a header of this size before them */
enum { ST_BLOCK_HEADER = 64 };
void *st_cpu_alloc(size_t bytes, size_t align); /* from the cache or the system; NULL when there is none */
/* Enters a block that a caller's allocator gave, with room for the header before it, among the live ones. */
void st_cpu_adopt(void *user, size_t bytes, const strata_handle *owner);
typedef enum st_taken {
    ST_TAKEN_NOTHING, /* no live block begins there */
    ST_TAKEN_POOL,    /* it was the pool's and has been freed */
    ST_TAKEN_CALLERS, /* it is h's caller's, no longer live, and must go back to that allocator */
    ST_TAKEN_OTHERS   /* it is another handle's caller's and stays live */
} st_taken;
st_taken st_cpu_take(void *user, const strata_handle *h, size_t *bytes);
void st_cpu_forget(const strata_handle *owner); /* a handle's caller's blocks are live no longer */
void st_cpu_trim(void);
void st_cpu_stats(strata_memory_stats *s);
size_t st_cpu_memory_limit(void); /* physical memory or the cgroup's limit */

/* memory.c */
/* May the handle's own workspace have so many bytes? *limit: with what the limit does not count. False with the error set. */
bool st_workspace_allowed(strata_handle *h, size_t bytes, size_t uncounted, size_t *limit);
void st_workspace_drop(strata_handle *h); /* gives the handle's own workspace back */

/* stable.c: small objects whose memory stays theirs after destruction, so that using a destroyed one is seen and not undefined. */
typedef struct st_stable {
    const size_t size;
    struct st_spare *first, *last; /* the longest unused is reused first */
    int spare;
} st_stable;
void *st_stable_new(st_stable *kind); /* zeroed; NULL when there is no memory */
void st_stable_put(st_stable *kind, void *object);

/* cpu/team.c */
int st_team_size(void); /* affinity mask and cgroup quota */
void st_team_count_calls(int *fork_joins);

/* stream.c: on the CPU a stream is an identity and an event a time */
#define ST_STREAM_MAGIC 0x73747265u
#define ST_EVENT_MAGIC 0x6576656eu
enum { ST_LAUNCHES = 16 }; /* that a stream remembers for error messages */
typedef struct st_launched {
    _Atomic(const char *) id; /* of the kernel; lives as long as the process */
    atomic_uint grid[3], block;
} st_launched;
struct strata_stream {
    uint32_t magic;
    bool wrapped;           /* a caller's CUstream: not ours to destroy */
    struct st_cuda *device; /* NULL: the CPU's */
    struct CUstream_st *native;
    uint64_t serial; /* no two streams have one */
    atomic_uint launches;
    st_launched launched[ST_LAUNCHES];
};
struct strata_event {
    uint32_t magic;
    bool recorded;
    struct st_cuda *device; /* NULL: the CPU's */
    struct CUevent_st *native;
    uint64_t ns; /* of the CPU */
};
uint64_t st_stream_serial(void);

/* cuda/stream.c: what stream.c asks for handles on a GPU; all set h's error, or e */
strata_status st_cuda_stream_create(strata_handle *h, strata_stream *s, bool wrap, void *native);
strata_status st_cuda_stream_destroy(st_err *e, strata_stream *s);
strata_status st_cuda_stream_set(strata_handle *h, strata_stream *s);
strata_status st_cuda_synchronize(strata_handle *h);
strata_status st_cuda_event_create(strata_handle *h, strata_event *ev);
void st_cuda_event_destroy(strata_event *ev);
strata_status st_cuda_event_record(strata_handle *h, strata_event *ev);
strata_status st_cuda_event_order(strata_handle *h, strata_event *ev);
strata_status st_cuda_event_wait(st_err *e, strata_event *ev);
strata_status st_cuda_event_elapsed(st_err *e, strata_event *begin, strata_event *end, double *ms);

/* cuda/device.c: what handle.c asks */
bool st_cuda_attach(strata_handle *h, st_err *e,
                    int ordinal); /* the handle is on that GPU; false with e set */
void st_cuda_detach(strata_handle *h);
int st_cuda_best(st_err *e);                  /* the first usable GPU, or -1 with e set */
void st_cuda_graph_abandon(strata_handle *h); /* ends a capture of the handle */
enum { ST_MOST_GPUS = 64 };
int st_cuda_visible(void); /* GPUs; 0 when there is no driver */
strata_status st_cuda_info(st_err *e, const char *who, int ordinal, strata_device_info *info);

/* cuda/memory.c: what memory.c asks */
strata_status st_cuda_alloc(strata_handle *h, size_t bytes, void **p);
strata_status st_cuda_free(strata_handle *h, void *p);
void *st_cuda_workspace(strata_handle *h, size_t bytes, size_t uncounted);
void st_cuda_workspace_drop(strata_handle *h);
void st_cuda_stats(strata_handle *h, strata_memory_stats *s);
strata_status st_cuda_trim(strata_handle *h);
strata_status st_cuda_alloc_host(strata_handle *h, size_t bytes, void **p);
strata_status st_cuda_free_host(strata_handle *h, void *p);

/* cuda/transfer.c: a scalar in device memory is brought to `value` (16 bytes); false with h's error set */
bool st_cuda_scalar_here(strata_handle *h, const char *who, const char *name, strata_scalar *s, void *value);

/* cuda/copy.c: strata_copy and strata_fill of checked tensors on a GPU's handle. A walk is a tensor pair's dims, longest strides first. */
typedef struct st_walk {
    int n;
    int64_t len[STRATA_MAX_RANK], d[STRATA_MAX_RANK], s[STRATA_MAX_RANK]; /* bytes */
} st_walk;
st_walk st_walk_plan(const strata_tensor *dst, const strata_tensor *src, int64_t size);
void st_walk_copy(const st_walk *w, char *d, const char *s, int64_t size); /* on the processor */
void st_walk_fill(const st_walk *w, char *d, const char *value, int64_t size);
strata_status st_cuda_copy(strata_handle *h, const strata_tensor *src, const strata_tensor *dst,
                           const st_walk *w, int64_t size);
strata_status st_cuda_fill(strata_handle *h, const strata_tensor *dst, const st_walk *w, const void *value,
                           int64_t size);

#endif
