/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.cuh - the parameters of a contraction's epilogue, and, with -DEPI=1, the generated function that evaluates it:
 *
 *     INL ST_ACC st_epilogue(const st_epi &e, ST_ACC acc, i64 m, i64 n, i64 g);
 *
 * returns what is stored to C at row m, column n of batch item g, after storing the other outputs. The struct is that of src/tile/cuda/epilogue.h. */
#ifndef STRATA_DEV_EPILOGUE_CUH
#define STRATA_DEV_EPILOGUE_CUH
#include "types.cuh"

#ifndef ST_ACC
#    define ST_ACC float
#endif
#ifndef EPI
#    define EPI 0
#endif

struct st_epi {
    void *ptr[8];
    i64 sm[8], sn[8], sb[8];
};
#if EPI
#    include "math.cuh"
#    include "generated.cuh"
#endif
#endif
