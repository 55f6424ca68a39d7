/* SPDX-License-Identifier: Apache-2.0 */
/* probe_avx2.c - twelve independent chains of 256-bit FMAs: enough for two units of latency five. */
#include "bench.h"
#include <immintrin.h>

const double bench_fma_flops_avx2 = 12 * 8 * 2;

void bench_fma_avx2(long n)
{
    const __m256 x = _mm256_set1_ps(1.0000001f), y = _mm256_set1_ps(1e-9f);
    __m256 a0 = x, a1 = x, a2 = x, a3 = x, a4 = x, a5 = x, a6 = x, a7 = x, a8 = x, a9 = x, a10 = x, a11 = x;
    for (long i = 0; i < n; i++) {
#define STEP(v) v = _mm256_fmadd_ps(v, x, y)
        STEP(a0), STEP(a1), STEP(a2), STEP(a3), STEP(a4), STEP(a5);
        STEP(a6), STEP(a7), STEP(a8), STEP(a9), STEP(a10), STEP(a11);
#undef STEP
        /* equal chains would be merged into one */
        __asm__ volatile("" : "+x"(a0), "+x"(a1), "+x"(a2), "+x"(a3), "+x"(a4), "+x"(a5));
        __asm__ volatile("" : "+x"(a6), "+x"(a7), "+x"(a8), "+x"(a9), "+x"(a10), "+x"(a11));
    }
}
