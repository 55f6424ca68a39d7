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
/* Where all that is stored has 16 bits or fewer, generated.cuh calls these in place of their namesakes: relative errors to 2^-19 where the result is between 2^-20
 * and 2^20, to 2^-16 elsewhere, a third to a half of the instructions. On a card that is limited by its power instructions cost time even where another warp group's tensor work hides them. */
INL float light_exp_f32(float x) { return ex2_approx(x * 1.44269504f); }
INL float light_sigmoid_f32(float x) { return rcp_approx(1.f + ex2_approx(x * -1.44269504f)); }
INL float light_silu_f32(float x)
{
    const float y = st_max_f32(x, -1e4f); /* -inf * 0 */
    return y * light_sigmoid_f32(y);
}
INL float light_gelu_tanh_f32(float x)
{
    const float y = st_max_f32(x, -100.f), s = y * y;
    return y * rcp_approx(1.f + ex2_approx(y * st_fma_f32(s, -0.102943240f, -2.30220819f)));
}
/* as st_gelu_f32, with t = 1 / (1 + 0.36 a) and a P6 */
INL float light_gelu_f32(float x)
{
    const float a = st_min_f32(fabsf(x), 16.f), t = rcp_approx(st_fma_f32(a, 0.36f, 1.f));
    float p = st_fma_f32(0.04764914512634277f, t, -0.18179354071617126f);
    p = st_fma_f32(p, t, 0.18371662497520447f);
    p = st_fma_f32(p, t, 0.024644237011671066f);
    p = st_fma_f32(p, t, 0.14041686058044434f);
    p = st_fma_f32(p, t, 0.14164455235004425f);
    p = st_fma_f32(p, t, 0.14372217655181885f);
    return st_max_f32(x, -0.f) - p * (t * a) * ex2_approx(a * (a * -0.72134752f));
}
/* sat_i8(rint(x)) + 1.5 * 2^23, whose bits' low byte is the number */
INL float biased_i8(float x)
{
    float r;
    asm("{ .reg .pred p; .reg .f32 y; max.f32 y, %1, 0fC3000000; min.f32 y, y, 0f42FE0000; testp.notanumber.f32 p, %1; @p mov.f32 y, 0f00000000; "
        "add.rn.f32 %0, y, 0f4B400000; }"
        : "=f"(r)
        : "f"(x));
    return r;
}
#    include "generated.cuh"
#endif
#endif
