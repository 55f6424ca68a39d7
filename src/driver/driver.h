/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - libcuda, NVRTC and NVML, opened at run time. No toolkit header is needed to build: the declarations here are our own
 * words for a stable binary interface (names without the prefix are those of NVIDIA's documentation).
 *
 * Each table is opened once a process, at first use, from the path that an environment variable names (STRATA_CUDA_LIB,
 * STRATA_NVRTC_LIB, STRATA_NVML_LIB; ignored in privileged processes), else from the loader's path, the usual places of the
 * driver and the toolkit, and Python wheels. What was tried and how it failed is kept and told by every later call. */
#ifndef ST_DRIVER_DRIVER_H
#define ST_DRIVER_DRIVER_H
#include "base/base.h"

typedef int st_cu_result; /* CUresult; 0 is success */
typedef int st_cu_device;
typedef unsigned long long st_cu_ptr; /* CUdeviceptr */
typedef struct CUctx_st *st_cu_context;
typedef struct CUmod_st *st_cu_module;
typedef struct CUfunc_st *st_cu_function;
typedef struct CUstream_st *st_cu_stream;
typedef struct CUevent_st *st_cu_event;
typedef struct CUmemPoolHandle_st *st_cu_mempool;
typedef struct CUgraph_st *st_cu_graph;
typedef struct CUgraphExec_st *st_cu_graphexec;

typedef struct st_cu_attribute { /* CUlaunchAttribute: 64 bytes of value behind 8 of head */
    int id, pad;
    union {
        char bytes[64];
        unsigned dim[3];
        int value;
    } u;
} st_cu_attribute;
typedef struct st_cu_launch { /* CUlaunchConfig */
    unsigned grid[3], block[3], shared_bytes;
    st_cu_stream stream;
    st_cu_attribute *attrs;
    unsigned nattrs;
} st_cu_launch;
typedef struct st_cu_tensor_map { /* CUtensorMap */
    _Alignas(64) uint64_t opaque[16];
} st_cu_tensor_map;

typedef struct st_libcuda {
#define ST_FN(name, symbol, args) st_cu_result(*name) args;
#include "driver/libcuda.inc"
#undef ST_FN
    int version; /* what cuDriverGetVersion says: 13000 */
    char path[256];
} st_libcuda;
/* NULL with the reason in e: no library (where it was looked for), a symbol that is missing (driver too old), cuInit's answer, or a
 * process that was forked after the driver was in use. cuInit has been called. */
const st_libcuda *st_libcuda_open(st_err *e);
const char *st_cu_result_name(st_cu_result r); /* "CUDA_ERROR_OUT_OF_MEMORY"; known without the library */
/* Adds the frame "driver: cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY (2)" to e. */
void st_cu_frame(st_err *e, const char *function, st_cu_result r);

typedef void *st_nvrtc_program;
typedef struct st_libnvrtc {
#define ST_FN(name, symbol, args) int(*name) args;
#include "driver/libnvrtc.inc"
#undef ST_FN
    int version;   /* 13000: major * 1000 + minor * 10 */
    int archs[64]; /* compute capabilities that it can compile for, 90; 0 ends */
    char path[256];
} st_libnvrtc;
/* The oldest NVRTC found that knows the architecture `cc` (90, 100, ...; 0: any). NULL with the reason in e. */
const st_libnvrtc *st_libnvrtc_open(st_err *e, int cc);

typedef void *st_nvml_device;
typedef struct st_libnvml {
#define ST_FN(name, symbol, args) int(*name) args;
#include "driver/libnvml.inc"
#undef ST_FN
    char path[256];
} st_libnvml;
/* A missing symbol is a NULL function here, not a failure: old drivers lack some. nvmlInit_v2 has been called. */
const st_libnvml *st_libnvml_open(st_err *e);
const char *st_nvml_result_name(int r);
#endif
