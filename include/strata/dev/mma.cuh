/* SPDX-License-Identifier: Apache-2.0 */
/* mma.cuh - the instructions that contractions are made of on sm_80 and later: asynchronous copies to shared memory, matrix loads, warp-wide products.
 *
 * Shared addresses are 32-bit. Fragments are those of the PTX manual: lane l holds rows l/4 (+8) of A and C, columns l/4 of B, and pairs or quadruples along k
 * at l%4. */
#ifndef STRATA_DEV_MMA_CUH
#define STRATA_DEV_MMA_CUH
#include "types.cuh"

INL u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

/* N bytes of which `valid` are read and the rest are zero */
template <int N> INL void copy_async(u32 dst, const void *src, u32 valid)
{
    if constexpr (N == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(valid) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(dst), "l"(src), "r"(valid), "n"(N)
                     : "memory");
}
template <int N> INL void copy_async(u32 dst, const void *src)
{
    if constexpr (N == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(dst), "l"(src), "n"(N) : "memory");
}
INL void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> INL void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

INL void load_matrix(u32 *r, u32 a)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(a)
                 : "memory");
}
INL void load_matrix_turned(u32 *r, u32 a)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(a)
                 : "memory");
}

/* c (16x8) += a (16 x 32 bytes) b (32 bytes x 8) */
#define STRATA_DEV_MMA(shape, types)                                                                      \
    asm("mma.sync.aligned." shape ".row.col." types                                              \
                 " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                 \
                 : STRATA_DEV_MMA_C(c[0]), STRATA_DEV_MMA_C(c[1]), STRATA_DEV_MMA_C(c[2]),                \
                   STRATA_DEV_MMA_C(c[3])                                                                 \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
#define STRATA_DEV_MMA_C(x) "+f"(x)
template <class A, class B> struct product;
#define STRATA_DEV_PRODUCT(A, B, ACC, shape, types)                                                \
    template <> struct product<A, B> {                                                             \
        typedef ACC acc;                                                                           \
        static __device__ __forceinline__ void add(ACC *c, const u32 *a, u32 b0, u32 b1)           \
        {                                                                                          \
            STRATA_DEV_MMA(shape, types);                                                          \
        }                                                                                          \
    };
STRATA_DEV_PRODUCT(bf16, bf16, float, "m16n8k16", "f32.bf16.bf16.f32")
STRATA_DEV_PRODUCT(f16, f16, float, "m16n8k16", "f32.f16.f16.f32")
STRATA_DEV_PRODUCT(f32, f32, float, "m16n8k8", "f32.tf32.tf32.f32")
#if __CUDA_ARCH__ >= 890
STRATA_DEV_PRODUCT(e4m3, e4m3, float, "m16n8k32", "f32.e4m3.e4m3.f32")
STRATA_DEV_PRODUCT(e4m3, e5m2, float, "m16n8k32", "f32.e4m3.e5m2.f32")
STRATA_DEV_PRODUCT(e5m2, e4m3, float, "m16n8k32", "f32.e5m2.e4m3.f32")
STRATA_DEV_PRODUCT(e5m2, e5m2, float, "m16n8k32", "f32.e5m2.e5m2.f32")
#endif
#undef STRATA_DEV_MMA_C
#define STRATA_DEV_MMA_C(x) "+r"(x)
STRATA_DEV_PRODUCT(i8, i8, i32, "m16n8k32", "s32.s8.s8.s32")
STRATA_DEV_PRODUCT(u8, u8, i32, "m16n8k32", "s32.u8.u8.s32")
STRATA_DEV_PRODUCT(u8, i8, i32, "m16n8k32", "s32.u8.s8.s32")
STRATA_DEV_PRODUCT(i8, u8, i32, "m16n8k32", "s32.s8.u8.s32")
#undef STRATA_DEV_MMA_C
#undef STRATA_DEV_PRODUCT
#undef STRATA_DEV_MMA

INL u32 to_tf32(float v)
{
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
}

/* c (16x8) += a (16xK) b (Kx8) in f64, K 4, 8 or 16; one instruction from sm_90 on, 8x8x4 ones before */
template <int K> INL void product_f64(double *c, const double *a, const double *b)
{
#if __CUDA_ARCH__ >= 900
    if constexpr (K == 16)
        asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]),
              "d"(b[2]), "d"(b[3]));
    else if constexpr (K == 4)
        asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a[0]), "d"(a[1]), "d"(b[0]));
    else
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#    pragma unroll
    for (int k = 0; k < K / 4; k++)
#    pragma unroll
        for (int h = 0; h < 2; h++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                : "+d"(c[2 * h]), "+d"(c[2 * h + 1])
                : "d"(a[2 * k + h]), "d"(b[k]));
#endif
}
#endif
