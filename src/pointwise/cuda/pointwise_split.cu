/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_split.cu - few long lines: each is cut into parts by its length alone. Stage 2 p leaves the totals of pass p of every part in workspace,
 * stage 2 p + 1 (a warp a line) joins a line's in the order in which one block would, stage 2 PASSES stores
 * elements and 2 PASSES + 1 the lines' numbers, which without elements come with the last totals. TALL > 0: lines stand side by side, as in pointwise_cols.cu; else THREADS
 * threads take neighbouring slots, as in pointwise_rows.cu. */
#include "generated.cuh"

#if TALL > 0
#    define SPAN (TALL * SLOTS)
#else
#    define SPAN (THREADS * SLOTS * W)
#endif

extern "C" __global__ void BOUNDS program_split(const args given, const int stage)
{
    program P(given);
    const idx lines = P.lines(), parts = P.parts();
    char *const totals = P.work(), *const partial = totals + (i64)PASSES * lines * TOTAL_BYTES;
    const length<A> len = P.len();

#if !STORES
    /* the last totals are the end */
    if (stage == 2 * PASSES - 1) {
        P.line(blockIdx.x);
#    define PASS(p)                                                                                          \
        {                                                                                                    \
            const tot##p t = p < PASSES - 1                                                                  \
                                 ? *(const tot##p *)(totals + ((i64)p * lines + blockIdx.x) * TOTAL_BYTES)   \
                                 : parts_by_warp<tot##p>(partial + (i64)blockIdx.x * parts * TOTAL_BYTES,    \
                                                         TOTAL_BYTES, (int)parts, threadIdx.x);              \
            P.line##p(t, len);                                                                               \
        }
        EACH_PASS(PASS)
#    undef PASS
        if (threadIdx.x == 0) P.store_line();
        return;
    }
#endif
#define PASS(p)                                                                                      \
    static_assert(sizeof(tot##p) <= TOTAL_BYTES, "room for a total");                                \
    if (stage == 2 * p + 1) {                                                                        \
        const tot##p t = parts_by_warp<tot##p>(partial + (i64)blockIdx.x * parts * TOTAL_BYTES,      \
                                               TOTAL_BYTES, (int)parts, threadIdx.x);                \
        if (threadIdx.x == 0) *(tot##p *)(totals + ((i64)p * lines + blockIdx.x) * TOTAL_BYTES) = t; \
        return;                                                                                      \
    }
    EACH_PASS(PASS)
#undef PASS

    const idx part = (idx)blockIdx.x % parts, tile = (idx)blockIdx.x / parts;
#if TALL > 0
    const idx l = tile * 32 + threadIdx.x, first = threadIdx.y;
    const bool active = l < lines;
#    define AT(k) (at + (k)*TALL)
#else
    const idx l = tile, first = (idx)threadIdx.x * W;
    const bool active = true;
#    define AT(k) (at + (k) * (THREADS * W))
#endif
    P.line(active ? l : lines - 1);
    const idx begin = part * P.chunk() + first, n = P.n(), end = begin + P.chunk();
#if TALL > 0
#    define JOIN(p)                                                                         \
        __shared__ tot##p place##p[TALL][32];                                               \
        place##p[threadIdx.y][threadIdx.x] = t;                                             \
        __syncthreads();                                                                    \
        t = place##p[0][threadIdx.x];                                                       \
        _Pragma("unroll") for (int i = 1; i < TALL; i++) t.merge(place##p[i][threadIdx.x]); \
        if (threadIdx.y == 0 && active)
#else
#    define JOIN(p)                       \
        __shared__ tot##p place##p[32];   \
        over_block<THREADS>(t, place##p); \
        if (threadIdx.x == 0)
#endif
#define PASS(p)                                                                      \
    if (stage == 2 * p) {                                                            \
        tot##p t;                                                                    \
        t.clear();                                                                   \
        for (idx at = begin; at < end && at - first < n; at += SPAN) {               \
            acc##p a;                                                                \
            a.clear();                                                               \
            _Pragma("unroll") for (int k = 0; k < SLOTS; k++) P.load##p(k, AT(k));   \
            _Pragma("unroll") for (int k = 0; k < SLOTS; k++) P.add##p(k, AT(k), a); \
            t.take(a);                                                               \
        }                                                                            \
        JOIN(p) * (tot##p *)(partial + ((i64)l * parts + part) * TOTAL_BYTES) = t;   \
        return;                                                                      \
    }                                                                                \
    P.line##p(*(const tot##p *)(totals + ((i64)p * lines + (active ? l : 0)) * TOTAL_BYTES), len);
    EACH_PASS(PASS)
    if (!active) return;
#if STORES
    if (stage == 2 * PASSES) {
        for (idx at = begin; at < end && at - first < n; at += SPAN) {
#    pragma unroll
            for (int k = 0; k < SLOTS; k++) P.load_last(k, AT(k));
#    pragma unroll
            for (int k = 0; k < SLOTS; k++) P.store(k, AT(k));
        }
        return;
    }
#endif
    /* by itself, since a line's output may be a number of the line that other parts read */
    if (part == 0 && (TALL > 0 ? threadIdx.y : threadIdx.x) == 0) P.store_line();
}
