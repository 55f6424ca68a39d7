/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - registers the engine's families with the plan layer, once. */
#include "pointwise/engine.h"
#include "pointwise/matvec.h"
#include "pointwise/cuda/matvec_cuda.h"
#include "pointwise/vector.h"
#include <pthread.h>

static int list(int i, strata_kernel_info *info)
{
    static int (*const families[])(int, strata_kernel_info *) = {st_pw_program_kernels,
                                                                 st_pw_norm_kernels,
                                                                 st_pw_pool_kernels,
                                                                 st_vec_list,
                                                                 st_matvec_list,
                                                                 st_pw_matvec_cuda_kernels,
                                                                 st_pw_matcopy_cuda_kernels,
                                                                 st_pw_vecsum_cuda_kernels};
    if (i < 0) return 0;
    for (int f = 0; f < ST_COUNT(families); f++) {
        int n = 0;
        for (strata_kernel_info skip; families[f](n, &skip); n++)
            if (n == i) {
                *info = skip;
                return 1;
            }
        i -= n;
    }
    return 0;
}

static void init_once(void)
{
    st_plan_register_engine(&st_pw_engine);
    st_plan_register_engine(&st_pw_pool_engine);
    st_pw_program_init();
    st_pw_norm_init();
    st_pw_pool_init();
    st_pw_matvec_cuda_init();
    st_pw_matcopy_cuda_init();
    st_pw_vecsum_cuda_init();
    st_plan_register_kernels(list);
}

void st_pw_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_once);
}

/* strata_kernels() lists this engine before its first call */
__attribute__((constructor)) static void at_load(void) { st_pw_init(); }
