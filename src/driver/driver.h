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
bool st_libcuda_forked(void); /* this process is the child of one that had the driver in use */
/* The same table without keeping it: for tests that open one library after the other in one process. */
void st_driver_forget_for_tests(void);
/* Values of the driver's enums that are used. */
enum {
    ST_CU_OUT_OF_MEMORY = 2,
    ST_CU_DEINITIALIZED = 4,
    ST_CU_NO_DEVICE = 100,
    ST_CU_NO_BINARY_FOR_GPU = 209,
    ST_CU_NOT_READY = 600,
    ST_CU_CAPTURE_UNSUPPORTED = 900,
    ST_CU_CAPTURE_INVALIDATED = 901,
    ST_CU_CAPTURE_IMPLICIT = 906
};
enum { /* CUdevice_attribute */
       ST_CU_ATTR_CLOCK_KHZ = 13,
       ST_CU_ATTR_SMS = 16,
       ST_CU_ATTR_INTEGRATED = 18,
       ST_CU_ATTR_COMPUTE_MODE = 20,
       ST_CU_ATTR_MEMORY_CLOCK_KHZ = 36,
       ST_CU_ATTR_MEMORY_BUS_BITS = 37,
       ST_CU_ATTR_L2 = 38,
       ST_CU_ATTR_THREADS_SM = 39,
       ST_CU_ATTR_CC_MAJOR = 75,
       ST_CU_ATTR_CC_MINOR = 76,
       ST_CU_ATTR_SMEM_SM = 81,
       ST_CU_ATTR_REGS_SM = 82,
       ST_CU_ATTR_PAGEABLE_ACCESS = 88,
       ST_CU_ATTR_SMEM_BLOCK_OPTIN = 97,
       ST_CU_ATTR_MEMORY_POOLS = 115
};
enum { /* CUfunction_attribute, CUlaunchAttributeID, CUpointer_attribute, CUmemorytype, CUstreamCaptureMode, flags */
       ST_CU_FUNC_MAX_DYNAMIC_SMEM = 8,
       ST_CU_FUNC_NON_PORTABLE_CLUSTER = 14,
       ST_CU_LAUNCH_CLUSTER = 4,
       ST_CU_LAUNCH_OVERLAP = 6, /* programmatic stream serialization */
       ST_CU_POINTER_MEMORY_TYPE = 2,
       ST_CU_POINTER_HOST_POINTER = 4,
       ST_CU_POINTER_IS_MANAGED = 8,
       ST_CU_POINTER_DEVICE_ORDINAL = 9,
       ST_CU_POINTER_RANGE_START = 11,
       ST_CU_POINTER_RANGE_SIZE = 12,
       ST_CU_MEMORY_HOST = 1,
       ST_CU_MEMORY_DEVICE = 2,
       ST_CU_CAPTURE_RELAXED = 2,
       ST_CU_STREAM_NON_BLOCKING = 1,
       ST_CU_EVENT_NO_TIMING = 2,
       ST_CU_HOST_PORTABLE = 1
};
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
const char *st_nvrtc_result_name(int r); /* "NVRTC_ERROR_COMPILATION" */

typedef void *st_nvml_device;
typedef struct st_nvml_pci { /* nvmlPciInfo_t */
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32]; /* "00000000:41:00.0" */
} st_nvml_pci;
typedef struct st_nvml_memory { /* nvmlMemory_t, bytes */
    unsigned long long total, free, used;
} st_nvml_memory;
typedef struct st_nvml_utilization { /* nvmlUtilization_t, percent */
    unsigned gpu, memory;
} st_nvml_utilization;
typedef struct st_nvml_process { /* nvmlProcessInfo_v2_t; used_bytes is all ones where it is not known */
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
} st_nvml_process;
enum {
    ST_NVML_CLOCK_SM = 1,
    ST_NVML_CLOCK_MEMORY = 2,
    ST_NVML_ECC_CORRECTED = 0,
    ST_NVML_ECC_UNCORRECTED = 1,
    ST_NVML_ECC_SINCE_BOOT = 0,
    ST_NVML_ECC_LIFETIME = 1
};
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
