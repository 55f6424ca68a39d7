/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_map.cu - a program without reductions: every thread loads SLOTS slots of W elements, then computes and stores them. Slots that neighbouring threads have
 * at the same time are neighbours. */
#include "generated.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) program_map(const args given)
{
    program P(given);
    P.line(0);
    const idx first = (idx)blockIdx.x * (THREADS * SLOTS) + threadIdx.x;
#pragma unroll
    for (int k = 0; k < SLOTS; k++) P.load_last(k, (first + k * THREADS) * W);
#pragma unroll
    for (int k = 0; k < SLOTS; k++) P.store(k, (first + k * THREADS) * W);
    if (first == 0) P.store_line();
}
