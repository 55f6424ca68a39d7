/* SPDX-License-Identifier: Apache-2.0 */
/* probe_avx512.c - sixteen independent chains of 512-bit FMAs. */
#include "bench.h"
#include <immintrin.h>

const double bench_fma_flops_avx512 = 16 * 16 * 2;

void bench_fma_avx512(long n)
{
    const __m512 x = _mm512_set1_ps(1.0000001f), y = _mm512_set1_ps(1e-9f);
    __m512 a0 = x, a1 = x, a2 = x, a3 = x, a4 = x, a5 = x, a6 = x, a7 = x;
    __m512 a8 = x, a9 = x, a10 = x, a11 = x, a12 = x, a13 = x, a14 = x, a15 = x;
    for (long i = 0; i < n; i++) {
#define STEP(v) v = _mm512_fmadd_ps(v, x, y)
        STEP(a0), STEP(a1), STEP(a2), STEP(a3), STEP(a4), STEP(a5), STEP(a6), STEP(a7);
        STEP(a8), STEP(a9), STEP(a10), STEP(a11), STEP(a12), STEP(a13), STEP(a14), STEP(a15);
#undef STEP
        /* equal chains would be merged into one */
        __asm__ volatile("" : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5), "+v"(a6), "+v"(a7));
        __asm__ volatile(""
                         : "+v"(a8), "+v"(a9), "+v"(a10), "+v"(a11), "+v"(a12), "+v"(a13), "+v"(a14),
                           "+v"(a15));
    }
}
