/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_simt.cu - products in the arithmetic of the cores: f32, c64 (and f64), each sum in one accumulator by fused multiply-adds, k ascending.
 *
 * Shared memory holds [k][row] of both sides, so that a thread reads its TM x TN block's operands as 16-byte pieces; they are fetched one k ahead of their use. A thread's
 * rows come in pieces (four f32) LM * 4 apart. Layout after CUTLASS's SIMT kernels.
 * What bounds it on Hopper, where an SM issues a warp's instruction a clock and quarter and multiplies as fast: the share of FFMA among the instructions (a thread's block
 * of 8 x 16: six 16-byte loads for 128 of them), two registers of one bank in one FFMA (hence the order of the loops, found by reading the machine code: columns outside, up and
 * down), the cache of instructions (KU of k are unrolled, not a stage), and passes through shared memory: a 16-byte load of a warp takes two instead of four where lanes i and i ^ 1 (or i ^ 2) read the same place, so
 * bits of the lane's number alternate between rows and columns.
 * CA, CB 1: the complex side is conjugated. */
#ifndef BM
#    define BM 128
#    define BN 128
#    define BK 16
#    define STAGES 3
#    define WARPS_M 2
#    define WARPS_N 2
#    define LM 8
#    define LN 4
#    define MINB 2
#    define KU 8
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
    PARTS = sizeof(parts<TA>) / sizeof(parts<TA>::word), /* a complex number's are apart: [part][k][row] */
    WORD = sizeof(parts<TA>::word),
    Q = 16 / WORD, /* words of a piece */
    PITCH_A = BM + (LA == LK || (RULE_A & R_MIRROR) ? Q : 0),
    PITCH_B = BN + (LB == LK || (RULE_B & R_MIRROR) ? Q : 0),
    BYTES_A = BK * PITCH_A * PARTS * WORD,
    BYTES_B = BK * PITCH_B * PARTS * WORD,
    STAGE = BYTES_A + BYTES_B
};
template <int PITCH> struct place {
    static constexpr u32 plane = PARTS == 1 ? 0 : BK * PITCH * WORD;
    static constexpr bool linear = true;
    static __device__ __forceinline__ u32 at(u32 row, u32 k) { return (k * PITCH + row) * WORD; }
};
/* along k eight lanes: with a pitch of 16 bytes more, 8 k x 4 rows fall into 32 banks */
typedef loader<TA, OF_A, NT, BM, BK, LA, VA, LA == LK ? 8 : BM / VA, place<PITCH_A>> loader_a;
typedef loader<TA, OF_B, NT, BN, BK, LB, VB, LB == LK ? 8 : BN / VB, place<PITCH_B>> loader_b;

typedef parts<TA>::word word;
struct fragment {
    word a[PARTS][TM], b[PARTS][TN];
    __device__ __forceinline__ void load(const word *pa, const word *pb, int k)
    {
#pragma unroll
        for (int h = 0; h < PARTS; h++) {
#pragma unroll
            for (int i = 0; i < TM / Q; i++) *(uint4 *)(a[h] + i * Q) = *(const uint4 *)(pa + (h * BK + k) * PITCH_A + i * LM * Q);
#pragma unroll
            for (int i = 0; i < TN / Q; i++) *(uint4 *)(b[h] + i * Q) = *(const uint4 *)(pb + (h * BK + k) * PITCH_B + i * LN * Q);
        }
    }
};
/* one column of the block, up or down */
INL void column(word (*acc)[TN], const word *a, word b, int j, bool down)
{
#pragma unroll
    for (int i = 0; i < TM; i++) {
        const int at = down ? TM - 1 - i : i;
        acc[at][j] = fma(a[at], b, acc[at][j]);
    }
}

extern "C" __global__ void __launch_bounds__(NT, ST_BLOCKS) gemm_simt(const __grid_constant__ ST_PARAMS)
{
    ST_TAKE_PARAMS
    extern __shared__ __align__(16) char shared[];
    const u32 to = shared_base(shared), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 lane_n = (lane & 1) + (lane >> 2 & 1) * 2 + (LN == 8 ? lane >> 4 : 0) * 4,
              lane_m = (lane >> 1 & 1) + (lane >> 3 & 1) * 2 + (LM == 8 ? lane >> 4 : 0) * 4;
    const u32 row = warp / WARPS_N * (BM / WARPS_M) + lane_m * Q, col = warp % WARPS_N * (BN / WARPS_N) + lane_n * Q;
    st_tile t = tile_of<BM, BN>(p, block);
    if (is_left_out<BM, BN>(p, t)) return;
    rule_range<BM, BN, BK>(p, t);
    loader_a a;
    loader_b b;
    a.begin(p, t.m0, t.g);
    b.begin(p, t.n0, t.g);
    word acc[PARTS][TM][TN];
#pragma unroll
    for (int h = 0; h < PARTS; h++)
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++) acc[h][i][j] = 0;

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
    const word *pa = (const word *)shared + row, *pb = (const word *)(shared + BYTES_A) + col;
    if (blocks) {
        mend_tile(p, a, b, shared, BYTES_A, t.k0, t.k1);
        x[0].load(pa, pb, 0);
    }
    for (u32 block = 0; block < blocks; block++) {
        const u32 next = block + STAGES - 1;
        if (next < blocks) {
            a.start(p, to + write * STAGE, t.k0 + next * BK, t.k1);
            b.start(p, to + write * STAGE + BYTES_A, t.k0 + next * BK, t.k1);
        }
        copy_commit();
        read = read + 1 == STAGES ? 0 : read + 1;
        write = write + 1 == STAGES ? 0 : write + 1;
#pragma unroll 1
        for (int part = 0; part < BK; part += KU) {
#pragma unroll
            for (int k = 0; k < KU; k++) {
                if (k + 1 < KU)
                    x[(k + 1) % 2].load(pa, pb, k + 1);
                else {
                    if (part + KU == BK) {
                        copy_wait<STAGES - 2>();
                        __syncthreads();
                        if (block + 1 < blocks) mend_tile(p, a, b, shared + read * STAGE, BYTES_A, t.k0 + (block + 1) * BK, t.k1);
                        pa = (const word *)(shared + read * STAGE) + row;
                        pb = (const word *)(shared + read * STAGE + BYTES_A) + col;
                    } else {
                        pa += KU * PITCH_A;
                        pb += KU * PITCH_B;
                    }
                    x[0].load(pa, pb, 0);
                }
                const fragment &y = x[k % 2];
#pragma unroll
                for (int h = 0; h < PARTS * PARTS; h++) { /* re re, im im, re im, im re; conj by signs, which cost nothing */
                    const bool ai = PARTS == 2 && h % 2, bi = h == 1 || h == 2,
                               minus = PARTS == 2 && (h == 1 ? CA == CB : h == 2 ? CB : h == 3 ? CA : 0);
#pragma unroll
                    for (int j = 0; j < TN; j++) {
                        const int at = PARTS == 2 ? j : j < TN / 2 ? 2 * j : 2 * (j - TN / 2) + 1;
                        const word v = y.b[PARTS == 2 && bi][at];
                        column(acc[h / 2], y.a[ai], minus ? -v : v, at, j % 2);
                    }
                }
            }
        }
    }
    st_store<TA> c;
    st_columns<TN / Q, Q, LN * Q> cols;
    c.begin(p, t);
    cols.begin(p, t.n0 + col);
#pragma unroll
    for (int i = 0; i < TM; i++) {
        TA v[TN];
#pragma unroll
        for (int j = 0; j < TN; j++) v[j] = parts<TA>::join(acc[0][i][j], acc[PARTS - 1][i][j]);
        c.row(p, t, t.m0 + row + i / Q * (LM * Q) + i % Q, cols, [&](int j) { return &v[j * Q]; });
    }
}
