/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.h - what engines ask of a CUDA device: its properties, kernels compiled from source, launches, memory.
 *
 * A handle on "cuda:N" has h->gpu; on the CPU it is NULL. Everything runs in the handle's stream. Device addresses are plain `void *`
 * (unified addressing). No type of the driver is seen here, so engines do not include the driver layer. */
#ifndef ST_RUNTIME_GPU_H
#define ST_RUNTIME_GPU_H
#include "runtime/handle.h"

/* One a device, made at first use, alive until the process ends. */
typedef struct st_gpu {
    int ordinal, cc; /* cc: compute capability, 90 for 9.0 */
    char device[16]; /* "cuda:0" */
    char name[128];
    int sms, warps_sm, regs_sm; /* multiprocessors; warps and registers each */
    int smem_block, smem_sm;    /* shared memory: most that a block may ask for (opt-in), and an SM's */
    int64_t l2, memory;         /* bytes */
    double
        copy_bytes_per_us; /* DRAM traffic that a copy reaches (from bus width and memory clock times 0.9) */
    double clock_mhz;      /* boost clock of the SMs */
} st_gpu;

/* ---- kernels ----------------------------------------------------------------------------------------------------------
 * Sources are the .cu and .cuh files of src/<layer>/cuda/ and include/strata/dev/, embedded in the library under their file names. A kernel is a source
 * specialised by -D options and, where it has one, a generated header (an epilogue, a pointwise program). It is looked for in memory, in the
 * kernel pack, in the cache folder, and else compiled by NVRTC. */
typedef struct st_gpu_source {
    const char *name, *text; /* "gemm_sm90.cu" */
    size_t bytes;
} st_gpu_source;
const st_gpu_source *st_gpu_sources(int *count); /* of the whole library; rows come from the build */

enum { ST_GPU_OPTIONS = 48 };
typedef struct st_gpu_spec {
    const char *id;                     /* kernel id for traces and errors */
    const char *source;                 /* "gemm_sm90.cu" */
    const char *entry;                  /* name of the __global__, extern "C" */
    const char *option[ST_GPU_OPTIONS]; /* "-DBM=128", NULL-terminated; order matters for the key */
    const char *generated;              /* text of the header "generated.cuh", or NULL (then it is empty) */
} st_gpu_spec;

typedef struct st_gpu_kernel {
    char id[96];
    void *function;
    int registers, local_bytes, static_smem, max_threads;
    double compile_ms; /* 0 when it came from a cache */
    atomic_int smem_set,
        cluster_set; /* launches: the most dynamic shared memory arranged for; clusters above 8 allowed */
} st_gpu_kernel;
/* Borrowed, alive until the process ends; safe from several threads. Errors carry NVRTC's log lines. Never called inside a run: plans get their
 * kernels when they are built. */
strata_status st_gpu_kernel_get(strata_handle *h, const st_gpu_spec *s, const st_gpu_kernel **k);

/* The compiler without any device, for tests and the kernel pack: an image for `arch` ("sm_90a", "compute_80") and ptxas's report. */
typedef struct st_gpu_image {
    void *bytes; /* free() */
    size_t size;
    int registers, spill_stores, spill_loads, stack, smem; /* of the entry; from the report */
    char *log;                                             /* free(); all of NVRTC's and ptxas's lines */
    double ms;
} st_gpu_image;
strata_status st_gpu_compile(st_err *e, const st_gpu_spec *s, const char *arch, st_gpu_image *image);
const char *st_gpu_arch(
    int cc); /* what kernels for this device are compiled for: 90 -> "sm_90a", 120 -> "sm_120" */

/* Does a device that is here run kernels of this instruction set ("sm80": 8.0 and newer; "sm90a": 9.0 alone)? Else why not, in words. */
bool st_gpu_runs(const char *isa, const char **why);

/* Families that have kernels worth building ahead of time enter a function that gives the specs of one architecture, one by one: false past the end. The
 * strings of *s live until the next call. tools/pack calls them when the library is built. */
typedef bool (*st_gpu_pack_fn)(int cc, int i, st_gpu_spec *s);
void st_gpu_register_pack(st_gpu_pack_fn f);
int st_gpu_pack_lists(st_gpu_pack_fn *out, int max);

/* ---- launches ----------------------------------------------------------------------------------------------------------- */
typedef struct st_gpu_launch {
    const st_gpu_kernel *kernel;
    unsigned grid[3], block[3], cluster[3]; /* cluster: 0 or 1 where there is none */
    unsigned smem;                          /* dynamic shared memory; above 48 KiB is arranged for */
    bool
        overlap; /* programmatic dependent launch: the kernel waits for its predecessor itself (griddepcontrol.wait) */
    void **args; /* addresses of the parameters */
} st_gpu_launch;
strata_status st_gpu_run(strata_handle *h, const st_gpu_launch *l);
/* Blocks of this launch that one SM holds at a time; 0 with the error set when it cannot run. */
int st_gpu_occupancy(strata_handle *h, const st_gpu_kernel *k, int threads, unsigned smem);
/* Most clusters that the device holds at a time. */
int st_gpu_clusters(strata_handle *h, const st_gpu_launch *l);

/* Instead of STRATA_F32: TMA rounds what it loads to tf32. */
enum { ST_GPU_TF32 = 100 };
/* A tiled tensor map (TMA) for `rank` dims, innermost first; stride[] in bytes for dims 1.. (dim 0 is dense). swizzle: 0, 32, 64, 128 bytes. Out of bounds reads
 * give zero. The map is 128 bytes, to be passed as `const __grid_constant__`. */
typedef struct st_gpu_map {
    _Alignas(64) uint64_t opaque[16];
} st_gpu_map;
strata_status st_gpu_map_tiled(strata_handle *h, st_gpu_map *map, int type, int rank, const void *base,
                               const int64_t *dim, const int64_t *stride, const int *box, int swizzle);
/* The same for windows of images (cuTensorMapEncodeIm2col): dims are c, w, h, n. */
strata_status st_gpu_map_im2col(strata_handle *h, st_gpu_map *map, int type, int rank, const void *base,
                                const int64_t *dim, const int64_t *stride, const int *lower, const int *upper,
                                int channels, int pixels, const int *step, int swizzle);

/* ---- memory, in the handle's stream -------------------------------------------------------------------------------------- */
void *st_gpu_alloc(strata_handle *h, size_t bytes); /* the device's pool; NULL with the error set */
void st_gpu_free(strata_handle *h, void *p);
strata_status st_gpu_set(strata_handle *h, void *dst, int byte, size_t bytes);
strata_status st_gpu_upload(strata_handle *h, void *dst, const void *src,
                            size_t bytes); /* src may be reused at return */
strata_status st_gpu_download(strata_handle *h, void *dst, const void *src,
                              size_t bytes); /* finished at return */
bool st_gpu_capturing(strata_handle *h);     /* is the stream being captured into a graph? */
void *st_gpu_stream(strata_handle *h);       /* the CUstream */
/* The end of a public call's run: gives back what
 * workspace it took inside a graph that the caller captures. */
void st_gpu_run_end(strata_handle *h);

/* Does the address belong to the device (or is it managed or registered, so that kernels may use it)? */
bool st_gpu_reaches(strata_handle *h, const void *p);
/* A scalar's value now, wherever it lies: st_scalar_value, after a copy where s.ptr is device memory (refused under capture). */
bool st_gpu_scalar_value(strata_handle *h, const char *who, const char *name, strata_scalar s, double *re,
                         double *im);
/* The same on any handle. */
ST_INLINE bool st_scalar_now(strata_handle *h, const char *who, const char *name, strata_scalar s, double *re,
                             double *im)
{
    return ST_UNLIKELY(h->gpu && s.ptr) ? st_gpu_scalar_value(h, who, name, s, re, im)
                                        : st_scalar_value(&h->err, who, name, s, re, im);
}
#endif
