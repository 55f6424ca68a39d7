/* SPDX-License-Identifier: Apache-2.0 */
/* custom.h - plans of users' own kernels, as custom.c makes them and custom.c (GPU) and custom_cpu.c run them. */
#ifndef ST_TILE_CUSTOM_H
#define ST_TILE_CUSTOM_H
#include "runtime/gpu.h"
#include "tile/contract.h"
#include <strata/custom.h>

enum { ST_CUSTOM_OPERANDS = 24, ST_CUSTOM_PARAMS = 2048 };

typedef struct st_custom_plan {
    strata_plan base;
    unsigned grid[3], block[3], cluster[3], smem;
    size_t params_bytes;
    _Alignas(16) char params[ST_CUSTOM_PARAMS];
    bool epilogue;
    st_contract c; /* output's axes and the epilogue's operands */
    int epi[ST_EPI_OPERANDS];
    const st_gpu_kernel *kernel; /* GPU */
    /* CPU */
    strata_status (*cpu)(const strata_custom_call *call);
    st_expr
        *expr; /* the epilogue's, `acc` where there is an output and no epilogue; NULL without an output */
    int output, threads;
    size_t apart; /* bytes of workspace a thread */
} st_custom_plan;

/* Finishes p, whose operands are bound, for the CPU; owns x from here on. */
void st_custom_cpu(strata_handle *h, const strata_custom *c, st_expr *x, int output, st_custom_plan *p);
#endif
