/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_cols.cu - reductions along lines that stand side by side: a block has 32 of them, each with TALL threads that take elements in turn. Every pass reads
 * the lines again, in parts; a part's totals are joined in order of the threads, parts one after another. */
#include "generated.cuh"

extern "C" __global__ void __launch_bounds__(32 * TALL) program_cols(const args given)
{
    program P(given);
    const idx l = (idx)blockIdx.x * 32 + threadIdx.x, n = P.n();
    const bool active = l < P.lines();
    const length<A> len = P.len();
    P.line(active ? l : P.lines() - 1);
    const idx chunk = P.chunk();
#define PASS(p)                                                                                               \
    {                                                                                                         \
        __shared__ tot##p place##p[TALL][32];                                                                 \
        parts_of_line<tot##p> joined;                                                                         \
        joined.clear();                                                                                       \
        for (idx begin = 0; begin < n; begin += chunk) {                                                      \
            tot##p t;                                                                                         \
            t.clear();                                                                                        \
            for (idx at = begin + threadIdx.y; at - begin < chunk && at - threadIdx.y < n;                    \
                 at += TALL * SLOTS) {                                                                        \
                acc##p a;                                                                                     \
                a.clear();                                                                                    \
                _Pragma("unroll") for (int k = 0; k < SLOTS; k++) P.load##p(k, at + k * TALL);                \
                _Pragma("unroll") for (int k = 0; k < SLOTS; k++) P.add##p(k, at + k * TALL, a);              \
                t.take(a);                                                                                    \
            }                                                                                                 \
            if (begin) __syncthreads();                                                                       \
            place##p[threadIdx.y][threadIdx.x] = t;                                                           \
            __syncthreads();                                                                                  \
            t = place##p[0][threadIdx.x];                                                                     \
            _Pragma("unroll") for (int i = 1; i < TALL; i++) t.merge(place##p[i][threadIdx.x]);               \
            joined.take(t);                                                                                   \
        }                                                                                                     \
        P.line##p(joined.done(), len);                                                                        \
    }
    EACH_PASS(PASS)
    if (!active) return;
#if STORES
    for (idx at = threadIdx.y; at < n; at += TALL * SLOTS) {
#    pragma unroll
        for (int k = 0; k < SLOTS; k++) P.load_last(k, at + k * TALL);
#    pragma unroll
        for (int k = 0; k < SLOTS; k++) P.store(k, at + k * TALL);
    }
#endif
    if (threadIdx.y == 0) P.store_line();
}
