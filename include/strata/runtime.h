/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - devices, handles, memory, streams, events, threads.
 *
 * A handle is a device, a stream, a workspace policy and defaults. It belongs to one thread at a time; handles are
 * independent of each other; all other functions are thread-safe. On the CPU streams are synchronous. */
#ifndef STRATA_RUNTIME_H
#define STRATA_RUNTIME_H
#include <strata/base.h>
#ifdef __cplusplus
extern "C" {
#endif

/* `device`: "cpu"; "cuda:0" or "cuda" (operands must be memory that this GPU reaches); "auto" or NULL: the first GPU that Strata can use (compute
 * capability 8.0 or newer), where host operands are copied to the device and back (synchronously, traced), else the CPU. STRATA_DEVICE in the
 * environment names what "auto" is. *h is NULL on failure; strata_error(NULL) says why. */
STRATA_API strata_status strata_create(strata_handle **h, const char *device);
STRATA_API void strata_destroy(strata_handle *h); /* NULL is allowed */
/* A handle of the calling thread's own on "auto", made at first use, destroyed with the thread; NULL when impossible. */
STRATA_API strata_handle *strata_default_handle(void);

/* What this machine offers, as data. Sizes in bytes; 0 where unknown. */
typedef struct strata_device_info {
    char name[128];  /* processor or GPU name */
    char device[32]; /* "cpu", "cuda:0" */
    char isa[128]; /* instruction sets that kernels may use, "avx512 avx512-vnni avx512-bf16 avx2"; "sm_90" */
    int32_t threads;       /* threads that the team will use (affinity mask and cgroup quota counted) */
    int32_t processors;    /* processors on line; multiprocessors of a GPU */
    int64_t l1d, l2, l3;   /* caches; l3 is the share that one may count on */
    char cache_source[64]; /* where the sizes come from: "cpuid leaf 4", "sysfs", "probe", "default" */
    int64_t memory;        /* physical memory that this process may use; the GPU's */
    int32_t compute_capability, multiprocessors; /* of a GPU: 90 for 9.0; else 0, like the rest */
    double clock_mhz;                            /* highest clock of the multiprocessors */
    double memory_gbs;      /* theoretical: bus width times memory clock, 1e9 bytes a second */
    int32_t driver_version; /* CUDA version that the driver offers: 13000 */
    int32_t pad;
    uint64_t reserved[4];
} strata_device_info;
STRATA_API strata_status strata_get_device_info(const char *device, strata_device_info *info);
STRATA_API int strata_device_count(void);         /* the CPU counts as one */
STRATA_API const char *strata_device_name(int i); /* "cpu", "cuda:0"; NULL past the end */
STRATA_API const char *strata_handle_device(const strata_handle *h);

/* What GPU kernels come from on this machine. The texts are paths where the thing is there, else why it is not. */
typedef struct strata_gpu_info {
    int32_t driver_version; /* CUDA version that the driver offers, 13000 for 13.0; 0: no driver */
    int32_t
        nvrtc_version; /* the oldest NVRTC found; 0: none, kernels come from the pack and the cache alone */
    int32_t pack_kernels;  /* in the kernel pack; -1: no pack */
    int32_t cache_kernels; /* in the cache folder; -1: none is used */
    int64_t pack_bytes, cache_bytes;
    char driver[256], nvrtc[256], pack[256], cache[256];
    char pack_archs[128]; /* "sm_80 52, sm_90a 120" */
    uint64_t reserved[8];
} strata_gpu_info;
STRATA_API strata_status strata_get_gpu_info(strata_gpu_info *info);

/* Memory of the handle's device: aligned to 64 bytes or more (256 on a GPU), on huge pages where large; contents undefined.
 * bytes = 0 gives a pointer that may only be freed. On a GPU both follow the order of the handle's stream: memory may be freed while launched
 * work still uses it in that stream. Refused while the stream is being captured. */
STRATA_API strata_status strata_alloc(strata_handle *h, size_t bytes, void **ptr);
STRATA_API strata_status strata_free(strata_handle *h, void *ptr); /* NULL is allowed */
/* Page-locked host memory, which copies to and from the GPU run fastest with and its kernels reach; plain memory on the CPU. */
STRATA_API strata_status strata_alloc_host(strata_handle *h, size_t bytes, void **ptr);
STRATA_API strata_status strata_free_host(strata_handle *h, void *ptr); /* NULL is allowed */
/* Same dims and type, any strides. On a GPU's handle each side may be device or host memory: copies to the host are finished at return,
 * host memory that was copied from may be reused at return, copies within the device run in the handle's stream. */
STRATA_API strata_status strata_copy(strata_handle *h, strata_tensor src, strata_tensor dst);
STRATA_API strata_status strata_fill(strata_handle *h, strata_tensor dst, strata_scalar value);

typedef struct strata_memory_stats {
    uint64_t bytes_in_use, bytes_peak, bytes_cached; /* through strata_alloc, whole process, this device */
    uint64_t allocations, frees;                     /* calls since the start */
    uint64_t system_allocations;                     /* how often the system was asked */
    uint64_t workspace_bytes;                        /* held by this handle as workspace now */
    uint64_t workspace_peak;                         /* largest workspace that a run on this handle used */
    uint64_t reserved[4];
} strata_memory_stats;
STRATA_API strata_status strata_get_memory_stats(strata_handle *h, strata_memory_stats *stats);
STRATA_API strata_status
strata_trim(strata_handle *h); /* gives cached memory and workspace back to the system */

/* The caller's own allocator for everything this handle allocates from now on (workspace included). alloc returns NULL on
 * failure. NULL restores the default. Refused (STRATA_ERROR_STATE) while memory from the previous one is held by the handle. */
typedef struct strata_allocator {
    void *(*alloc)(void *user, size_t bytes, size_t alignment);
    void (*free)(void *user, void *ptr, size_t bytes);
    void *user;
} strata_allocator;
STRATA_API strata_status strata_set_allocator(strata_handle *h, const strata_allocator *a);

/* Workspace. By default the handle owns a workspace that grows to what plans need, up to the limit (default: no limit on
 * CPU, 256 MiB on a GPU). A caller may give its own; it is used while its size suffices, else the call is refused. */
STRATA_API strata_status strata_set_workspace(strata_handle *h, void *ptr,
                                              size_t bytes); /* NULL, 0: the handle's own */
STRATA_API strata_status strata_set_workspace_limit(strata_handle *h, size_t bytes); /* SIZE_MAX: none */

/* Threads. One team a process, sized by affinity mask and cgroup quota; n = 0 restores that. Results never depend on n. */
STRATA_API strata_status strata_set_threads(strata_handle *h, int n);
STRATA_API int strata_get_threads(const strata_handle *h);
/* The caller's own threads: must call body(arg, i) for every i in [0, n), in any order, on any threads, and return when all
 * have returned; `threads`: how many bodies may run at once, 1 to 256. NULL and 0 restore the team. From inside it other handles may be used; a call on the
 * same handle is refused (STRATA_ERROR_STATE) where the one at work has the workspace, else runs on its own thread. */
typedef void (*strata_parallel_for)(void *user, int n, void (*body)(void *arg, int i), void *arg);
STRATA_API strata_status strata_set_parallel_for(strata_handle *h, strata_parallel_for f, void *user,
                                                 int threads);

/* Streams and events. On the CPU every call is finished when it returns; streams and events exist so that a program is
 * written once for both devices. */
typedef struct strata_stream strata_stream;
typedef struct strata_event strata_event;
STRATA_API strata_status strata_stream_create(strata_handle *h, strata_stream **s);
STRATA_API strata_status strata_stream_destroy(strata_stream *s);
STRATA_API strata_status strata_set_stream(strata_handle *h,
                                           strata_stream *s); /* NULL: the device's default stream */
STRATA_API strata_status strata_synchronize(strata_handle *h);
STRATA_API strata_status strata_event_create(strata_handle *h, strata_event **e);
STRATA_API strata_status strata_event_destroy(strata_event *e);
STRATA_API strata_status strata_event_record(strata_handle *h, strata_event *e);
STRATA_API strata_status strata_event_wait(strata_event *e); /* the calling thread waits */
/* What is launched on h from now on waits for the event (recorded in another stream of the same device); the thread does not. */
STRATA_API strata_status strata_wait_event(strata_handle *h, strata_event *e);
/* A stream of the caller's (a CUstream or cudaStream_t of the handle's device; NULL: its legacy default stream). It must outlive *s;
 * strata_stream_destroy forgets it and leaves it alone. While it is being captured into a graph, calls on the handle become nodes of the
 * graph. STRATA_ERROR_UNSUPPORTED on the CPU. */
STRATA_API strata_status strata_stream_wrap(strata_handle *h, void *cu_stream, strata_stream **s);
/* The CUstream that calls on h run in; NULL on the CPU, and for the legacy default stream. */
STRATA_API void *strata_native_stream(strata_handle *h);
/* Milliseconds between two recorded events; STRATA_ERROR_STATE when one was never recorded. */
STRATA_API strata_status strata_event_elapsed(strata_event *begin, strata_event *end, double *ms);

/* CUDA graphs without the toolkit. Between begin and end, calls on h are recorded instead of run (in a stream of the handle's own when it is
 * on the default stream); *g then runs them all at once with the same addresses. Not to be recorded: allocation, copies to or
 * from the host, host operands of an "auto" handle, plans made for the first time. A graph belongs to the device and must not run twice at
 * the same time. STRATA_ERROR_UNSUPPORTED on the CPU. */
typedef struct strata_graph strata_graph;
STRATA_API strata_status strata_graph_begin(strata_handle *h);
STRATA_API strata_status strata_graph_end(strata_handle *h, strata_graph **g);
STRATA_API strata_status strata_graph_launch(strata_handle *h, strata_graph *g);
STRATA_API strata_status strata_graph_destroy(strata_graph *g); /* NULL is allowed */

/* Tracing, also by the environment: STRATA_TRACE=1 prints one line per call per layer to stderr, STRATA_TRACE=file.json
 * writes Chrome trace events (open in Perfetto). `where`: NULL, "", "0" or "off" off, "1" or "stderr", or a file name (any other text: "2"
 * is a file). STRATA_ERROR_IO: the file cannot be written, or the one that was being written is incomplete; tracing is off then. */
STRATA_API strata_status strata_set_trace(const char *where);

#ifdef __cplusplus
}
#endif
#endif
