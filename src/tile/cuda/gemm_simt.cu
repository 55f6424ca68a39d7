/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_simt.cu - products in the arithmetic of the cores: f32 (and f64), each sum in one accumulator by fused multiply-adds, k ascending.
 *
 * Shared memory holds [k][row] of both sides, so that a thread reads its TM x TN block's operands as 16-byte pieces; they are fetched one k ahead of their use. A warp's
 * lanes are LM x LN, a thread's rows come in fours LM * 4 apart. Layout after CUTLASS's SIMT kernels. */
#ifndef BM
#    define BM 128
#    define BN 128
#    define BK 16
#    define STAGES 3
#    define WARPS_M 2
#    define WARPS_N 4
#    define LM 8
#    define LN 4
#    define MINB 2
#    define LA LK
#    define VA 1
#    define LB LR
#    define VB 4
#endif
#ifndef TA
#    define TA f32
#    define TB f32
#    define TC f32
#    define WIN 0
#    define KAX 1
#    define CV 4
#    define SPLIT 0
#endif
#include "generic.cuh"

enum {
    NT = WARPS_M * WARPS_N * 32,
    TM = BM / (WARPS_M * LM),
    TN = BN / (WARPS_N * LN),
    Q = 16 / sizeof(TA), /* elements of a piece */
    PITCH_A = BM + (LA == LK ? Q : 0),
    PITCH_B = BN + (LB == LK ? Q : 0),
    BYTES_A = BK * PITCH_A * sizeof(TA),
    BYTES_B = BK * PITCH_B * sizeof(TA),
    STAGE = BYTES_A + BYTES_B
};
template <int PITCH> struct place {
    static __device__ __forceinline__ u32 at(u32 row, u32 k) { return (k * PITCH + row) * sizeof(TA); }
};
/* along k eight lanes: with the pitch of BM + 4 words, 8 k x 4 rows fall into 32 banks */
typedef loader<TA, OF_A, NT, BM, BK, LA, VA, LA == LK ? 8 : BM / VA, place<PITCH_A>> loader_a;
typedef loader<TA, OF_B, NT, BN, BK, LB, VB, LB == LK ? 8 : BN / VB, place<PITCH_B>> loader_b;

struct fragment {
    TA a[TM], b[TN];
    __device__ __forceinline__ void load(const char *stage, int k, u32 row, u32 col)
    {
        const TA *pa = (const TA *)stage + k * PITCH_A + row, *pb = (const TA *)(stage + BYTES_A) + k * PITCH_B + col;
#pragma unroll
        for (int i = 0; i < TM / Q; i++) *(uint4 *)(a + i * Q) = *(const uint4 *)(pa + i * LM * Q);
#pragma unroll
        for (int i = 0; i < TN / Q; i++) *(uint4 *)(b + i * Q) = *(const uint4 *)(pb + i * LN * Q);
    }
};

extern "C" __global__ void __launch_bounds__(NT, ST_BLOCKS) gemm_simt(const __grid_constant__ st_params p)
{
    extern __shared__ __align__(16) char shared[];
    const u32 to = shared_address(shared), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 row = warp / WARPS_N * (BM / WARPS_M) + lane / LN * Q, col = warp % WARPS_N * (BN / WARPS_N) + lane % LN * Q;
    const st_tile t = tile_of<BM, BN>(p);
    loader_a a;
    loader_b b;
    a.begin(p, t.m0, t.g);
    b.begin(p, t.n0, t.g);
    TA acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) acc[i][j] = 0;

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
    fragment x[2];
    u32 read = 0, write = STAGES - 1;
    if (blocks) x[0].load(shared, 0, row, col);
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
        for (int k = 0; k < BK; k++) {
            if (k == BK - 1) {
                copy_wait<STAGES - 2>();
                __syncthreads();
                x[0].load(shared + read * STAGE, 0, row, col);
            } else
                x[(k + 1) % 2].load(stage, k + 1, row, col);
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) { /* there and back: the next row begins with the b that the last one ended with */
                    const int at = i & 1 ? TN - 1 - j : j;
                    acc[i][at] = fma(x[k % 2].a[i], x[k % 2].b[at], acc[i][at]);
                }
        }
    }
    st_store<TA> c;
    st_columns<TN / Q, Q, LN * Q> cols;
    c.begin(p, t);
    cols.begin(p, t.n0 + col);
#pragma unroll
    for (int i = 0; i < TM; i++)
        c.row(p, t, t.m0 + row + i / Q * (LM * Q) + i % Q, cols, [&](int j) { return &acc[i][j * Q]; });
}
