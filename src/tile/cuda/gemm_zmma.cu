/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_zmma.cu - products of c128 on the tensor cores (f64, exact): four real products an element, re += re re, im += re im, re -= im im, im += im re, of fragments whose
 * real and imaginary parts one 16-byte load brings.
 *
 * Shared memory keeps each side as it lies in global memory: [row][k] with a pitch of BK + 4 elements, or [k][row] with a pitch of rows + 2: a quarter of a warp's
 * fragment (2 rows x 4 k) falls into different banks of 16 bytes. An instruction multiplies 4 of k (16x8x4): with the fragments of the next one fetched meanwhile a warp's
 * 32 x 32 elements still fit the registers. The tensor cores do not negate: B's imaginary part is kept in both signs. conj(A) B is conj(A conj(B)), so that a sign is
 * B's alone until the end. CA, CB 1: the side is conjugated. HALVES 1: addresses are those of f64, so that an element is two copies. */
#ifndef BM
#    define BM 64
#    define BN 64
#    define BK 8
#    define STAGES 4
#    define WARPS_M 2
#    define WARPS_N 2
#    define MINB 2
#    define LA LK
#    define VA 1
#    define LB LR
#    define VB 1
#    define HALVES 0
#endif
#ifndef TA
#    define TA c128
#    define TB c128
#    define TC c128
#    define ST_ACC double
#    define WIN 0
#    define KAX 1
#    define CV 1
#    define SPLIT 0
#endif
#include "generic.cuh"

enum {
    NT = WARPS_M * WARPS_N * 32,
    FM = BM / WARPS_M / 16, /* fragments of a warp */
    FN = BN / WARPS_N / 8,
    PITCH_A = LA == LK ? BK + 4 : BM + 2,
    PITCH_B = LB == LK ? BK + 4 : BN + 2,
    BYTES_A = (LA == LK ? BM : BK) * PITCH_A * sizeof(TA),
    BYTES_B = (LB == LK ? BN : BK) * PITCH_B * sizeof(TA),
    STAGE = BYTES_A + BYTES_B
};
template <int LAYOUT, int PITCH> struct place {
    static constexpr u32 plane = HALVES ? sizeof(TA) / 2 : 0;
    static constexpr bool linear = true;
    static __device__ __forceinline__ u32 at(u32 row, u32 k)
    {
        return (LAYOUT == LK ? row * PITCH + k : k * PITCH + row) * sizeof(TA);
    }
};
typedef loader<TA, OF_A, NT, BM, BK, LA, VA, LA == LK ? 8 : 32, place<LA, PITCH_A>> loader_a;
typedef loader<TA, OF_B, NT, BN, BK, LB, VB, LB == LK ? 8 : 32, place<LB, PITCH_B>> loader_b;

struct fragment {
    c128 a[FM][2], b[FN];
    /* a, b: the thread's first places: all else is constants, which NVRTC's optimiser needs told */
    __device__ __forceinline__ void load(const char *at_a, const char *at_b, int k)
    {
#pragma unroll
        for (int i = 0; i < FM; i++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                *(double2 *)&a[i][h] = *(const double2 *)(at_a + place<LA, PITCH_A>::at(i * 16 + h * 8, k));
#pragma unroll
        for (int j = 0; j < FN; j++)
            *(double2 *)&b[j] = *(const double2 *)(at_b + place<LB, PITCH_B>::at(j * 8, k));
    }
};
INL f64 negative(f64 v) { return __hiloint2double(__double2hiint(v) ^ (int)0x80000000, __double2loint(v)); }

extern "C" __global__ void __launch_bounds__(NT, (RULE_A || RULE_B) && ST_BLOCKS > 2 ? 2 : ST_BLOCKS) gemm_zmma(const __grid_constant__ ST_PARAMS)
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
    f64 re[FM][FN][4], im[FM][FN][4];
#pragma unroll
    for (int i = 0; i < FM; i++)
#pragma unroll
        for (int j = 0; j < FN; j++)
#pragma unroll
            for (int h = 0; h < 4; h++) re[i][j][h] = im[i][j][h] = 0;

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
        for (int k = 0; k < BK / 4; k++) {
            if (k == BK / 4 - 1) {
                copy_wait<STAGES - 2>();
                __syncthreads();
                if (block + 1 < blocks) mend_tile(p, a, b, shared + read * STAGE, BYTES_A, t.k0 + (block + 1) * BK, t.k1);
                x[(k + 1) % 2].load(shared + read * STAGE + at_a, shared + read * STAGE + at_b, 0);
            } else
                x[(k + 1) % 2].load(stage + at_a, stage + at_b, (k + 1) * 4);
            const fragment &y = x[k % 2];
#pragma unroll
            for (int j = 0; j < FN; j++) {
                const f64 minus = negative(y.b[j].im), bre = y.b[j].re, same = CA == CB ? y.b[j].im : minus, other = CA == CB ? minus : y.b[j].im;
#pragma unroll
                for (int i = 0; i < FM; i++) {
                    const f64 are[2] = {y.a[i][0].re, y.a[i][1].re}, aim[2] = {y.a[i][0].im, y.a[i][1].im};
                    product_f64<4>(re[i][j], are, &bre);
                    product_f64<4>(im[i][j], are, &same);
                    product_f64<4>(re[i][j], aim, &other);
                    product_f64<4>(im[i][j], aim, &bre);
                }
            }
        }
    }
    st_store<TA> c;
    st_columns<FN, 2, 8> cols;
    c.begin(p, t);
    cols.begin(p, t.n0 + col + lane % 4 * 2);
#pragma unroll
    for (int i = 0; i < FM; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            c128 v[FN][2];
#pragma unroll
            for (int j = 0; j < FN; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) v[j][e] = c128{re[i][j][h * 2 + e], CA ? -im[i][j][h * 2 + e] : im[i][j][h * 2 + e]};
            c.row(p, t, t.m0 + row + i * 16 + h * 8 + lane / 4, cols, [&](int j) { return v[j]; });
        }
}
