/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_ring.cu - long lines on Hopper, many of them: what pointwise_rows.cu does, with the same sums in the same order, by blocks that stay. Each of a block's GROUPS
 * groups of GROUP threads has a ring of STAGES places in shared memory, into which bulk copies bring its part of the lines that come next while it computes one; so memory is
 * never idle while threads meet. What all lines share (weights) is read once a block and stays in shared memory: read again for every line it would cross the second-level
 * cache as often as the lines themselves.
 *
 * Group g of cluster c has lines c * GROUPS + g, and every clusters * GROUPS further. CLUSTER blocks have a part of the line each; their groups g meet through mbarriers to which
 * totals are sent (st.async), two of each kind in turn: a block's next total but one is sent only after all others have read this one. */
#include "generated.cuh"
#include "async.cuh"

#define THREADS_ALL (GROUPS * GROUP)
#define WARPS (GROUP / 32)

INL u32 of_block(u32 address, u32 block)
{
    u32 r;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(block));
    return r;
}
/* threads i of a group's first warp give this block's total to block i */
template <class S> INL void give(const S &t, S *to, u32 bar, int lane)
{
    if (lane >= CLUSTER) return;
    const u32 at = of_block(saddr(to), lane), met = of_block(bar, lane);
    const u32 *a = (const u32 *)&t;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(S) / 4); i++)
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                         at + 4 * i),
                     "r"(a[i]), "r"(met)
                     : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS_ALL, 1) program_ring(const args given)
{
    extern __shared__ uint4 memory[];
    __shared__ u64 full[GROUPS][STAGES];
    program P(given);
    const int group = threadIdx.x / GROUP, lane = threadIdx.x % GROUP;
    const u32 rank = CLUSTER > 1 ? cluster_rank() : 0;
    const idx lines = P.lines(), step = (idx)(gridDim.x / CLUSTER) * GROUPS,
              first = (idx)(blockIdx.x / CLUSTER) * GROUPS + group;
    const length<A> len = P.len();
    char *const ring = (char *)memory + SHARED_BYTES + group * (STAGES * PLACE_BYTES);
    P.part0 = rank * (SLOTS * GROUP * W);
    P.shared = (const char *)memory;
#if CLUSTER > 1
    __shared__ u64 met[GROUPS][PASSES][2];
#endif
    if (lane == 0) {
        for (int i = 0; i < STAGES; i++) mbar_init(saddr(&full[group][i]), 1);
#if CLUSTER > 1
        for (int i = 0; i < PASSES; i++) {
            mbar_init(saddr(&met[group][i][0]), 1);
            mbar_init(saddr(&met[group][i][1]), 1);
        }
#endif
        mbar_init_fence();
    }
    P.share((char *)memory, threadIdx.x, THREADS_ALL);
    __syncthreads();
    if (lane == 0)
        for (int i = 0; i < STAGES; i++)
            if (first + i * step < lines)
                P.fetch(first + i * step, saddr(ring + i * PLACE_BYTES), saddr(&full[group][i]));
#if CLUSTER > 1
    cluster_sync();
#endif
    const idx at = P.part0 + lane * W;
    u32 place = 0, round = 0, turn = 0;
#define JOINED(p)                                                        \
    __shared__ tot##p inside##p[GROUPS][2][WARPS];                       \
    over_lanes<32>(t);                                                   \
    if ((lane & 31) == 0) inside##p[group][turn & 1][lane / 32] = t;     \
    BAR_SYNC(group + 1, GROUP);                                          \
    if (p == RELEASE && lane == 0 && l + STAGES * step < lines)          \
        P.fetch(l + STAGES * step, saddr(ring + place * PLACE_BYTES), saddr(&full[group][place])); \
    t = inside##p[group][turn & 1][lane & (WARPS - 1)];                  \
    over_lanes<WARPS>(t);
#if CLUSTER > 1
#    define JOIN(p)                                                                             \
        __shared__ tot##p all##p[GROUPS][2][CLUSTER];                                           \
        JOINED(p)                                                                               \
        {                                                                                       \
            const u32 bar = saddr(&met[group][p][turn & 1]);                                    \
            if (lane == 0) mbar_expect(bar, CLUSTER * sizeof(tot##p));                          \
            give(t, &all##p[group][turn & 1][rank], bar, lane);                                 \
            mbar_wait(bar, turn >> 1 & 1);                                                      \
            t = all##p[group][turn & 1][0];                                                     \
            _Pragma("unroll") for (int i = 1; i < CLUSTER; i++) t.merge(all##p[group][turn & 1][i]); \
        }
#else
#    define JOIN(p) JOINED(p)
#endif
#define PASS(p)                                                                                     \
    {                                                                                               \
        tot##p t;                                                                                   \
        acc##p a;                                                                                   \
        t.clear();                                                                                  \
        a.clear();                                                                                  \
        _Pragma("unroll") for (int k = 0; k < SLOTS; k++) P.load##p(k, at + k * (GROUP * W));       \
        _Pragma("unroll") for (int k = 0; k < SLOTS; k++) P.add##p(k, at + k * (GROUP * W), a);     \
        t.take(a);                                                                                  \
        JOIN(p)                                                                                     \
        P.line##p(t, len);                                                                          \
    }
    for (idx l = first; l < lines; l += step) {
        P.line(l);
        P.place = ring + place * PLACE_BYTES;
        mbar_wait(saddr(&full[group][place]), round);
        EACH_PASS(PASS)
#if STORES
#    pragma unroll
        for (int k = 0; k < SLOTS; k++) P.load_last(k, at + k * (GROUP * W));
#    pragma unroll
        for (int k = 0; k < SLOTS; k++) P.store(k, at + k * (GROUP * W));
#endif
        if (rank == 0 && lane == 0) P.store_line();
        if (RELEASE == PASSES) {
            BAR_SYNC(group + 1, GROUP);
            if (lane == 0 && l + STAGES * step < lines)
                P.fetch(l + STAGES * step, saddr(ring + place * PLACE_BYTES), saddr(&full[group][place]));
        }
        turn++;
        if (++place == STAGES) place = 0, round ^= 1;
    }
#if CLUSTER > 1
    cluster_sync(); /* nobody leaves while others still send to it */
#endif
}
