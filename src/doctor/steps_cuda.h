/* SPDX-License-Identifier: Apache-2.0 */
/* steps_cuda.h - libcuda as the doctor's steps see it. They have a table of their own: a driver that lacks one function of the library's larger
 * table must still be looked at call by call. */
#ifndef ST_DOCTOR_STEPS_CUDA_H
#define ST_DOCTOR_STEPS_CUDA_H
#include "doctor/child.h"
#include "doctor/steps.h"
#include "driver/driver.h"
#include "driver/open.h"

typedef struct st_cuda_calls {
#define ST_FN(name, symbol, args) st_cu_result(*name) args;
#include "doctor/steps_cuda.inc"
#undef ST_FN
    st_cu_device device;
    char path[256];
} st_cuda_calls;

bool st_cuda_call(st_steps *s, const char *function, int r); /* false: it failed, and that was reported */

/* What the maker states for the part (data/doctor/part_figures.tsv), and lanes by compute capability (sm_lanes.tsv); 0: not known. */
typedef struct st_figure {
    double memory_gbs, f32_tflops;
    int lanes; /* f32 multiply-adds a clock and SM */
    char source[120];
} st_figure;
st_figure st_steps_figure(st_steps *s, const st_cuda_calls *cu);

#endif
