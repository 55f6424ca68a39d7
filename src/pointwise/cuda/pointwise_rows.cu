/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_rows.cu - reductions along lines whose neighbouring elements belong to neighbouring threads. GROUP threads have a line: lanes of a warp, several lines a
 * warp where lines are short, or a whole block, or CLUSTER blocks that join their totals through distributed shared memory. The line is read once into SLOTS slots of W
 * elements a thread and stays there; with STREAM it is longer than that and is read again for every pass, in parts
 * whose totals are joined one after another. Totals of threads are joined in an order fixed by GROUP. */
#include "generated.cuh"

#if CLUSTER > 1
INL u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
INL u32 cluster_rank()
{
    u32 r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
INL void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
INL void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
/* thread i gives this block's total to block i */
template <class S> INL void over_cluster(S &t, S *all, u32 rank)
{
    if (threadIdx.x < CLUSTER) {
        u32 to;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                     : "=r"(to)
                     : "r"(shared_address(&all[rank])), "r"(threadIdx.x));
        const u32 *a = (const u32 *)&t;
#    pragma unroll
        for (int i = 0; i < (int)(sizeof(S) / 4); i++)
            asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to + 4 * i), "r"(a[i]) : "memory");
    }
    cluster_arrive();
    cluster_wait();
    t = all[0];
#    pragma unroll
    for (int i = 1; i < CLUSTER; i++) t.merge(all[i]);
}
#endif

extern "C" __global__ void BOUNDS program_rows(const args given)
{
    constexpr int LINES = THREADS / GROUP; /* of a block */
    program P(given);
    const int lane = threadIdx.x % GROUP;
    const idx l = LINES > 1 ? (idx)blockIdx.x * LINES + threadIdx.x / GROUP : (idx)(blockIdx.x / CLUSTER);
    const bool active = LINES == 1 || l < P.lines();
    const length<A> len = P.len();
    P.line(active ? l : P.lines() - 1);
#if CLUSTER > 1
    const u32 rank = cluster_rank();
    const idx e0 = ((idx)rank * (SLOTS * GROUP) + lane) * W;
    cluster_arrive(); /* nobody writes to a block that has not begun */
    bool begun = false;
#    define JOIN(p)                                      \
        __shared__ tot##p place##p[32], all##p[CLUSTER]; \
        over_block<GROUP>(t, place##p);                  \
        if (!begun) cluster_wait();                      \
        begun = true;                                    \
        over_cluster(t, all##p, rank);
#elif GROUP > 32
    const idx e0 = (idx)lane * W;
#    define JOIN(p)                     \
        __shared__ tot##p place##p[32]; \
        over_block<GROUP>(t, place##p);
#else
    const idx e0 = (idx)lane * W;
#    define JOIN(p) over_lanes<GROUP>(t);
#endif

#if STREAM
    const idx n = P.n(), chunk = P.chunk();
#    define EACH_SLOTS for (idx at = e0; at - e0 < n; at += GROUP * SLOTS * W)
#    define PASS(p)                                                                                         \
        {                                                                                                   \
            __shared__ tot##p place##p[2][32];                                                              \
            parts_of_line<tot##p> joined;                                                                   \
            joined.clear();                                                                                 \
            u32 turn = 0;                                                                                   \
            for (idx begin = e0; begin - e0 < n; begin += chunk, turn ^= 1) {                               \
                tot##p t;                                                                                   \
                t.clear();                                                                                  \
                for (idx at = begin; at - begin < chunk && at - e0 < n; at += GROUP * SLOTS * W) {          \
                    acc##p a;                                                                               \
                    a.clear();                                                                              \
                    _Pragma("unroll") for (int k = 0; k < SLOTS; k++) P.load##p(k, at + k * (GROUP * W));   \
                    _Pragma("unroll") for (int k = 0; k < SLOTS; k++) P.add##p(k, at + k * (GROUP * W), a); \
                    t.take(a);                                                                              \
                }                                                                                           \
                over_block<GROUP>(t, place##p[turn]);                                                       \
                joined.take(t);                                                                             \
            }                                                                                               \
            P.line##p(joined.done(), len);                                                                  \
        }
#else
    const idx at = e0;
#    define EACH_SLOTS
#    define PASS(p)                                                                                 \
        {                                                                                           \
            tot##p t;                                                                               \
            t.clear();                                                                              \
            acc##p a;                                                                               \
            a.clear();                                                                              \
            _Pragma("unroll") for (int k = 0; k < SLOTS; k++) P.load##p(k, at + k * (GROUP * W));   \
            _Pragma("unroll") for (int k = 0; k < SLOTS; k++) P.add##p(k, at + k * (GROUP * W), a); \
            t.take(a);                                                                              \
            JOIN(p)                                                                                 \
            P.line##p(t, len);                                                                      \
        }
#endif
    EACH_PASS(PASS)

#if STORES
    if (active) EACH_SLOTS
        {
#    pragma unroll
            for (int k = 0; k < SLOTS; k++) P.load_last(k, at + k * (GROUP * W));
#    pragma unroll
            for (int k = 0; k < SLOTS; k++) P.store(k, at + k * (GROUP * W));
        }
#endif
#if CLUSTER > 1
    if (rank != 0) return;
#endif
    if (active && lane == 0) P.store_line();
}
