/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_mma.cu - products on the tensor cores of sm_80 and later for 16-bit floats, 8-bit floats (from sm_89) and 8-bit integers: cp.async, ldmatrix, mma.sync.
 *
 * Shared memory holds [row][k], rows of 64 or 128 bytes, or, for 16-bit types that lie along rows, [k][row], which ldmatrix turns. 16-byte pieces are
 * exchanged within 128 bytes (by the row's last bits), so that the eight rows of a matrix fall into different banks. What cannot be copied
 * piece by piece - elements of 16 bits without alignment, and bytes that lie along rows, which have to be turned - is gathered: a tile is read into
 * registers while the one before it is multiplied, and stored as words afterwards. */
#ifndef BM
#    define BM 128
#    define BN 128
#    define BK 32
#    define STAGES 4
#    define WARPS_M 2
#    define WARPS_N 4
#    define MINB 2
#    define LA LK
#    define VA 8
#    define LB LR
#    define VB 8
#endif
#ifndef TA
#    define TA bf16
#    define TB bf16
#    define TC bf16
#    define WIN 0
#    define KAX 1
#    define CV 2
#    define SPLIT 0
#endif
#include "generic.cuh"

enum {
    ES = sizeof(TA),
    NT = WARPS_M * WARPS_N * 32,
    WM = BM / WARPS_M,
    WN = BN / WARPS_N,
    FM = WM / 16,
    FN = WN / 8,
    DEEP = 32 / ES, /* k of an instruction */
    BYTES_A = BM * BK * ES,
    BYTES_B = BN * BK * ES,
    STAGE = BYTES_A + BYTES_B
};
static_assert(BK * ES == 64 || BK * ES == 128, "a row of k is 64 or 128 bytes");

/* LAYOUT of shared memory */
template <int LAYOUT, int ROWS> struct place {
    static constexpr u32 plane = 0;
    static constexpr bool linear = false;
    static __device__ __forceinline__ u32 at(u32 row, u32 k)
    {
        if (LAYOUT == LK) {
            const u32 x = k * ES, flip = BK * ES == 128 ? row & 7 : row >> 1 & 3;
            return row * (BK * ES) + ((x / 16 ^ flip) * 16) + x % 16;
        }
        const u32 x = row * ES;
        return k * (ROWS * ES) + ((x / 16 ^ (k & 7)) * 16) + x % 16;
    }
};

/* ---- gathering: units of one word, UK of k x UR rows; V = 4: bytes along rows, four words at a time, turned ------------- */
template <class T, int W, int ROWS, int LAYOUT, int V, class S> struct gatherer {
    static constexpr bool windowed = WIN == (W == OF_A ? 1 : 2);
    static constexpr int UK = LAYOUT == LR && ES == 2 ? 1 : 4 / ES, UR = LAYOUT == LR && ES == 2 ? 2 : V;
    static constexpr int FU = LAYOUT == LK ? UK : UR, SU = LAYOUT == LK ? UR : UK;
    static constexpr int FAST = (LAYOUT == LK ? BK : ROWS) / FU, SLOW = (LAYOUT == LK ? ROWS : BK) / SU;
    static constexpr int LANES = LAYOUT == LK ? 8 : NT, LF = FAST < LANES ? FAST : LANES, LS = NT / LF, FI = FAST / LF, SI = (SLOW + LS - 1) / LS;
    static constexpr int RI = LAYOUT == LK ? SI : FI, KI = LAYOUT == LK ? FI : SI, PR = V == 4 ? 1 : UR, WORDS = ES == 2 ? 1 : V;
    static_assert(FAST % LF == 0 && NT % LF == 0, "lanes do not divide the tile");
    loader<T, W, NT, ROWS, BK, LAYOUT, 1, 1, S> axes; /* for along() only */
    const T *row[RI][PR];
    i32 y[windowed ? RI : 1][PR], x[windowed ? RI : 1][PR];
    u32 some[RI]; /* rows that exist of a unit */
    u32 word[RI][KI][WORDS];
    u32 f, s;
    __device__ __forceinline__ u32 row_at(int i) const { return (LAYOUT == LK ? s + i * LS : f + i * LF) * UR; }
    __device__ __forceinline__ u32 k_at(int j) const { return (LAYOUT == LK ? f + j * LF : s + j * LS) * UK; }
    __device__ __forceinline__ void begin(const st_params &p, u32 r0, u32 g)
    {
        const st_list &l = W == OF_A ? p.m : p.n;
        const u32 count = W == OF_A ? p.M : p.N;
        const T *base = (const T *)(W == OF_A ? p.a : p.b) + list_offset<W>(p.batch, g);
        f = threadIdx.x % LF;
        s = threadIdx.x / LF;
#pragma unroll
        for (int i = 0; i < RI; i++) {
            const u32 r = r0 + row_at(i);
            some[i] = r < count ? min((u32)UR, count - r) : 0;
#pragma unroll
            for (int u = 0; u < PR; u++) {
                u32 idx[4];
                row[i][u] = base + list_offset<W>(l, r + u < count ? r + u : 0, idx);
                if constexpr (windowed) {
                    y[i][u] = p.win[0].offset;
                    x[i][u] = p.win[1].offset;
#pragma unroll
                    for (int d = 0; d < 4; d++) {
                        y[i][u] += (i32)idx[d] * p.win[0].row[d];
                        x[i][u] += (i32)idx[d] * p.win[1].row[d];
                    }
                }
            }
        }
    }
    __device__ __forceinline__ bool inside(const st_params &p, int i, int u, i32 dy, i32 dx) const
    {
        if constexpr (windowed)
            return (u32)(y[i][u] + dy) < (u32)p.win[0].limit && (u32)(x[i][u] + dx) < (u32)p.win[1].limit;
        else
            return true;
    }
    static __device__ __forceinline__ u32 bits(const T *at)
    {
        return ES == 2 ? (u32) * (const u16 *)at : (u32) * (const u8 *)at;
    }
    __device__ __forceinline__ void fetch(const st_params &p, u32 k0, u32 k1)
    {
#pragma unroll
        for (int j = 0; j < KI; j++) {
#pragma unroll
            for (int i = 0; i < RI; i++)
#pragma unroll
                for (int w = 0; w < WORDS; w++) word[i][j][w] = 0;
#pragma unroll
            for (int v = 0; v < UK; v++) {
                const u32 k = k0 + k_at(j) + v;
                const bool there = k < k1 && k_at(j) < BK;
                i32 dy, dx;
                const i64 off = axes.along(p, there ? k : 0, dy, dx);
#pragma unroll
                for (int i = 0; i < RI; i++)
                    if constexpr (V == 4) { /* four rows at one k, the v-th byte of each word */
                        u32 four = 0;
                        if (there && inside(p, i, 0, dy, dx)) {
                            if (some[i] == 4)
                                four = *(const u32 *)(row[i][0] + off);
                            else
                                for (u32 u = 0; u < some[i]; u++) four |= bits(row[i][0] + off + u) << 8 * u;
                        }
#pragma unroll
                        for (int u = 0; u < 4; u++) word[i][j][u] |= (four >> 8 * u & 0xff) << 8 * v;
                    } else {
#pragma unroll
                        for (int u = 0; u < UR; u++)
                            if (there && u < some[i] && inside(p, i, u, dy, dx))
                                word[i][j][0] |= bits(row[i][u] + off) << 8 * ES * (LAYOUT == LR && ES == 2 ? u : v);
                    }
            }
        }
    }
    __device__ __forceinline__ void store(char *stage) const
    {
#pragma unroll
        for (int j = 0; j < KI; j++)
#pragma unroll
            for (int i = 0; i < RI; i++)
                if (k_at(j) < BK && row_at(i) < ROWS)
#pragma unroll
                    for (int w = 0; w < WORDS; w++) *(u32 *)(stage + S::at(row_at(i) + w, k_at(j))) = word[i][j][w];
    }
};

/* ---- one side: copied or gathered ------------------------------------------------------------------------------------------ */
template <class T, int W, int ROWS, int LAYOUT, int V, bool GATHER> struct side;
template <class T, int W, int ROWS, int LAYOUT, int V> struct side<T, W, ROWS, LAYOUT, V, false> {
    typedef place<LAYOUT, ROWS> S;
    loader<T, W, NT, ROWS, BK, LAYOUT, V, LAYOUT == LK ? BK / V : ROWS / V, S> l;
    __device__ __forceinline__ void begin(const st_params &p, u32 r0, u32 g) { l.begin(p, r0, g); }
    __device__ __forceinline__ void early(const st_params &p, char *stage, u32 k0, u32 k1)
    {
        l.start(p, shared_address(stage), k0, k1);
    }
    __device__ __forceinline__ void late(char *) const {}
};
template <class T, int W, int ROWS, int LAYOUT, int V> struct side<T, W, ROWS, LAYOUT, V, true> {
    typedef place<ES == 1 ? LK : LAYOUT, ROWS> S;
    gatherer<T, W, ROWS, LAYOUT, V, S> l;
    __device__ __forceinline__ void begin(const st_params &p, u32 r0, u32 g) { l.begin(p, r0, g); }
    __device__ __forceinline__ void early(const st_params &p, char *, u32 k0, u32 k1) { l.fetch(p, k0, k1); }
    __device__ __forceinline__ void late(char *stage) const { l.store(stage); }
};
#define GATHERED(L, V) (V * ES < 4 || (ES == 1 && L == LR))
typedef side<TA, OF_A, BM, LA, VA, GATHERED(LA, VA)> side_a;
typedef side<TB, OF_B, BN, LB, VB, GATHERED(LB, VB)> side_b;

typedef product<TA, TB>::acc acc_type;
struct fragment {
    u32 a[FM][4], b[FN / 2][4];
    __device__ __forceinline__ void load(u32 stage, int k, u32 row, u32 col)
    {
        const u32 lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < FM; i++)
            if (LA == LK || ES == 1)
                load_matrix(a[i], stage + side_a::S::at(row + i * 16 + lane % 16, k + lane / 16 * (16 / ES)));
            else
                load_matrix_turned(a[i], stage + side_a::S::at(row + i * 16 + lane / 8 % 2 * 8, k + lane % 8 + lane / 16 * 8));
#pragma unroll
        for (int j = 0; j < FN / 2; j++)
            if (LB == LK || ES == 1)
                load_matrix(b[j], stage + BYTES_A + side_b::S::at(col + j * 16 + lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * (16 / ES)));
            else
                load_matrix_turned(b[j], stage + BYTES_A + side_b::S::at(col + j * 16 + lane / 16 * 8, k + lane % 16));
    }
};

/* gathering needs the registers of a second block */
extern "C" __global__ void __launch_bounds__(NT, GATHERED(LA, VA) || GATHERED(LB, VB) ? 1 : ST_BLOCKS) gemm_mma(const __grid_constant__ ST_PARAMS)
{
    ST_TAKE_PARAMS
    extern __shared__ __align__(128) char shared[];
    const u32 to = shared_base(shared), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 row = warp / WARPS_N * WM, col = warp % WARPS_N * WN;
    const st_tile t = tile_of<BM, BN>(p, block);
    side_a a;
    side_b b;
    a.begin(p, t.m0, t.g);
    b.begin(p, t.n0, t.g);
    acc_type acc[FM][FN][4];
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
            char *stage = shared + i * STAGE;
            a.early(p, stage, t.k0 + i * BK, t.k1);
            a.late(stage);
            b.early(p, stage + BYTES_A, t.k0 + i * BK, t.k1);
            b.late(stage + BYTES_A);
        }
        copy_commit();
    }
    u32 read = 0, write = STAGES - 1;
    for (u32 block = 0; block < blocks; block++) {
        copy_wait<STAGES - 2>();
        __syncthreads();
        const u32 next = block + STAGES - 1, stage = to + read * STAGE;
        char *fill = shared + write * STAGE;
        if (next < blocks) {
            a.early(p, fill, t.k0 + next * BK, t.k1);
            b.early(p, fill + BYTES_A, t.k0 + next * BK, t.k1);
        }
        copy_commit();
        fragment x[2];
        x[0].load(stage, 0, row, col);
#pragma unroll
        for (int k = 0; k < BK / DEEP; k++) {
            if (k + 1 < BK / DEEP) x[(k + 1) % 2].load(stage, (k + 1) * DEEP, row, col);
            const fragment &y = x[k % 2];
#pragma unroll
            for (int i = 0; i < FM; i++)
#pragma unroll
                for (int j = 0; j < FN; j++) product<TA, TB>::add(acc[i][j], y.a[i], y.b[j / 2][j % 2 * 2], y.b[j / 2][j % 2 * 2 + 1]);
        }
        if (next < blocks) { /* gathered: this stage was read before the barrier above */
            a.late(fill);
            b.late(fill + BYTES_A);
        }
        read = read + 1 == STAGES ? 0 : read + 1;
        write = write + 1 == STAGES ? 0 : write + 1;
    }
    st_store<acc_type> c;
    st_columns<FN, 2, 8> cols;
    c.begin(p, t);
    cols.begin(p, t.n0 + col + lane % 4 * 2);
#pragma unroll
    for (int i = 0; i < FM; i++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            c.row(p, t, t.m0 + row + i * 16 + h * 8 + lane / 4, cols, [&](int j) { return &acc[i][j][h * 2]; });
}
