/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_lds.cu - products on the tensor cores whose fragments are read word by word: f64 (exact), and f32 rounded to tf32 (opt-in).
 *
 * Shared memory keeps each side as it lies in global memory: [row][k] with a pitch of BK + 4, or [k][row] with a pitch of BM + 4 doubles or BM + 8 floats; by both a warp's 8 rows x 4 k of
 * a fragment fall into different banks, so nothing is transposed. Fragments are fetched one instruction ahead, also across the barrier between stages
 * (16 % of the rate on an H200). DEEP: k of an instruction, 8 or (f64 from sm_90 on) 16; BK is an even number of them. */
#ifndef BM
#    define BM 128
#    define BN 128
#    define BK 16
#    define STAGES 3
#    define WARPS_M 2
#    define WARPS_N 4
#    define MINB 1
#    define DEEP 8
#    define LA LK
#    define VA 2
#    define LB LR
#    define VB 2
#endif
#ifndef TA
#    define TA f64
#    define TB f64
#    define TC f64
#    define ST_ACC double
#    define WIN 0
#    define KAX 1
#    define CV 2
#    define SPLIT 0
#endif
#include "generic.cuh"

enum {
    NT = WARPS_M * WARPS_N * 32,
    FM = BM / WARPS_M / 16, /* fragments of a warp */
    FN = BN / WARPS_N / 8,
    PAD = sizeof(TA) == 8 ? 4 : 8,
    PITCH_A = LA == LK ? BK + 4 : BM + PAD,
    PITCH_B = LB == LK ? BK + 4 : BN + PAD,
    BYTES_A = (LA == LK ? BM : BK) * PITCH_A * sizeof(TA),
    BYTES_B = (LB == LK ? BN : BK) * PITCH_B * sizeof(TA),
    STAGE = BYTES_A + BYTES_B
};
template <int LAYOUT, int PITCH> struct place {
    static constexpr u32 plane = 0;
    static constexpr bool linear = true;
    static __device__ __forceinline__ u32 at(u32 row, u32 k)
    {
        return (LAYOUT == LK ? row * PITCH + k : k * PITCH + row) * sizeof(TA);
    }
};
typedef loader<TA, OF_A, NT, BM, BK, LA, VA, LA == LK ? 8 : BM / VA, place<LA, PITCH_A>> loader_a;
typedef loader<TA, OF_B, NT, BN, BK, LB, VB, LB == LK ? 8 : BN / VB, place<LB, PITCH_B>> loader_b;

/* what the instruction takes: doubles, or f32 rounded to 11 bits of mantissa */
template <class T> struct operand;
template <> struct operand<f64> {
    typedef f64 word;
    static __device__ __forceinline__ f64 of(f64 v) { return v; }
    static __device__ __forceinline__ void add(f64 *c, const f64 *a, const f64 *b) { product_f64<DEEP>(c, a, b); }
};
template <> struct operand<f32> {
    typedef u32 word;
    static __device__ __forceinline__ u32 of(f32 v) { return to_tf32(v); }
    static __device__ __forceinline__ void add(f32 *c, const u32 *a, const u32 *b) { product<f32, f32>::add(c, a, b[0], b[1]); }
};
typedef operand<TA> op;

struct fragment {
    op::word a[FM][DEEP / 2], b[FN][DEEP / 4];
    /* a, b: the thread's first places: all else is constants, which NVRTC's optimiser needs told */
    __device__ __forceinline__ void load(const char *at_a, const char *at_b, int k)
    {
#pragma unroll
        for (int i = 0; i < FM; i++)
#pragma unroll
            for (int h = 0; h < DEEP / 2; h++)
                a[i][h] = op::of(*(const TA *)(at_a + place<LA, PITCH_A>::at(i * 16 + h % 2 * 8, k + h / 2 * 4)));
#pragma unroll
        for (int j = 0; j < FN; j++)
#pragma unroll
            for (int h = 0; h < DEEP / 4; h++)
                b[j][h] = op::of(*(const TA *)(at_b + place<LB, PITCH_B>::at(j * 8, k + h * 4)));
    }
};

extern "C" __global__ void __launch_bounds__(NT, ST_BLOCKS) gemm_lds(const __grid_constant__ ST_PARAMS)
{
    ST_TAKE_PARAMS
    extern __shared__ __align__(16) char shared[];
    const u32 to = shared_base(shared), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 row = warp / WARPS_N * (BM / WARPS_M), col = warp % WARPS_N * (BN / WARPS_N);
    st_tile t = tile_of<BM, BN>(p, block);
    if (is_left_out<BM, BN>(p, t)) return;
    rule_range<BM, BN, BK>(p, t);
    loader_a a;
    loader_b b;
    a.begin(p, t.m0, t.g);
    b.begin(p, t.n0, t.g);
    TA acc[FM][FN][4];
#pragma unroll
    for (int i = 0; i < FM; i++)
#pragma unroll
        for (int j = 0; j < FN; j++)
#pragma unroll
            for (int h = 0; h < 4; h++) acc[i][j][h] = 0;

    const u32 blocks = t.k1 > t.k0 ? (t.k1 - t.k0 + BK - 1) / BK : 0;
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < blocks) {
            a.start(p, to + i * STAGE, t.k0 + i * BK, t.k1);
            b.start(p, to + i * STAGE + BYTES_A, t.k0 + i * BK, t.k1);
        }
        copy_commit();
    }
    copy_wait<STAGES - 2>();
    __syncthreads();
    const u32 at_a = place<LA, PITCH_A>::at(row + lane / 4, lane % 4), at_b = BYTES_A + place<LB, PITCH_B>::at(col + lane / 4, lane % 4);
    fragment x[2];
    u32 read = 0, write = STAGES - 1;
    if (blocks) {
        mend_tile(p, a, b, shared, BYTES_A, t.k0, t.k1);
        x[0].load(shared + at_a, shared + at_b, 0);
    }
    for (u32 block = 0; block < blocks; block++) {
        const u32 next = block + STAGES - 1;
        if (next < blocks) {
            a.start(p, to + write * STAGE, t.k0 + next * BK, t.k1);
            b.start(p, to + write * STAGE + BYTES_A, t.k0 + next * BK, t.k1);
        }
        copy_commit();
        const char *stage = shared + read * STAGE;
        read = read + 1 == STAGES ? 0 : read + 1;
        write = write + 1 == STAGES ? 0 : write + 1;
#pragma unroll
        for (int k = 0; k < BK / DEEP; k++) {
            if (k == BK / DEEP - 1) {
                copy_wait<STAGES - 2>();
                __syncthreads();
                if (block + 1 < blocks) mend_tile(p, a, b, shared + read * STAGE, BYTES_A, t.k0 + (block + 1) * BK, t.k1);
                x[(k + 1) % 2].load(shared + read * STAGE + at_a, shared + read * STAGE + at_b, 0);
            } else
                x[(k + 1) % 2].load(stage + at_a, stage + at_b, (k + 1) * DEEP);
#pragma unroll
            for (int i = 0; i < FM; i++)
#pragma unroll
                for (int j = 0; j < FN; j++) op::add(acc[i][j], x[k % 2].a[i], x[k % 2].b[j]);
        }
    }
    st_store<TA> c;
    st_columns<FN, 2, 8> cols;
    c.begin(p, t);
    cols.begin(p, t.n0 + col + lane % 4 * 2);
#pragma unroll
    for (int i = 0; i < FM; i++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            c.row(p, t, t.m0 + row + i * 16 + h * 8 + lane / 4, cols, [&](int j) { return &acc[i][j][h * 2]; });
}
