/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - what the files of the pointwise engine share: registration of their families. */
#ifndef ST_POINTWISE_ENGINE_H
#define ST_POINTWISE_ENGINE_H
#include "pointwise/pointwise.h"

/* first word of every ST_OP_POINTWISE problem */
enum { ST_PW_PROGRAM = 1, ST_PW_NORM = 2, ST_PW_MATVEC = 3, ST_PW_MATCOPY = 4, ST_PW_VECSUM = 5 };

extern const st_engine st_pw_engine, st_pw_pool_engine; /* key.c: for the tuning database */
void st_pw_pool_init(void);
void st_pw_norm_init(void);
void st_pw_program_init(void);
/* rows of strata_kernels() */
int st_pw_pool_kernels(int i, strata_kernel_info *info);
int st_pw_norm_kernels(int i, strata_kernel_info *info);
int st_pw_program_kernels(int i, strata_kernel_info *info);
#endif
