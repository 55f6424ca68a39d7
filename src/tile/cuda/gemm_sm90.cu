/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90.cu - products on Hopper: C = epilogue(alpha * A B + beta * C) by TMA, an mbarrier ring and warpgroup matrix instructions.
 *
 * One block is NCONS consumer warpgroups and, behind them, a producer of which one thread issues all loads. They meet in a ring of STAGES buffers of BM x 128 bytes
 * of A and BN x 128 bytes of B (128-byte swizzle), with a full and an empty mbarrier each. Blocks are persistent: block c takes
 * tiles c, c + grid, ... in groups of columns that stay in L2. The design is that of CUTLASS's and DeepGEMM's Hopper kernels; what costs what is in
 * docs/performance/hopper.md.
 *
 * Macros (default in brackets):
 *   TA TB ABYTES TC      PTX names of the operands' types (f16 bf16 tf32 e4m3 e5m2 s8), their bytes; C's type (types.cuh); INTEGER for s8
 *   AMN BMN [0]          1: rows of A (columns of B) are contiguous instead of k; 16-bit types
 *   BM BN STAGES NCONS   tile, ring depth, consumer warpgroups
 *   PP [0]               0 cooperative: the consumers share a tile, BM/NCONS rows each; 1 ping-pong: two consumers take alternate tiles, the
 *                        epilogue of one under the main loop of the other
 *   WAIT [PP]            wgmma groups in flight when a stage is freed
 *   CM CN [1]            cluster: CM blocks along m share B by multicast, CN blocks along n share A
 *   EST [1]              epilogue: 1 per-warp staging and 16-byte stores; 0 staging of CB boxes of 128 bytes and TMA stores (C must suit TMA)
 *   CB [all]             boxes staged at a time
 *   PREG CREG            registers of producer and consumers
 *   BATCH [0]            tensor maps of rank 3
 *   SPLIT [0]            K is cut into args.splits parts; each stores its raw sums to its own plane of C (args.cg apart), summed by gemm_sm90_sum.cu
 *   PROM [0]             p: add to a second accumulator every p k-blocks (8-bit floats, whose hardware sums keep few bits)
 *   X6 [0]               f32 as three bf16 parts (planes of the maps' third dim), six products a k-block, the small ones first; 1: a stage holds one part of A and of B,
 *                        2: all three of both, which halves what is loaded
 *   RA [0]               f32 with contiguous rows of A (AMN=1): fragments of A go through registers, since the instruction wants k contiguous in shared memory
 *   CT [0]               with RA: C is stored transposed, element (row, column) at row + column * ldc
 *   SCALES [0]           with PROM=1: every 128 of k are multiplied by a scale of A's row (1), of B's columns, one for a tile's (2), or both (3) before they are added
 *   GROUP [0]            members of a launch, each a product of its own: m, n, k, addresses (cooperative kernels without clusters); a block's tiles go on from one member to the next
 *   EPI [0]              1: the epilogue of generated.cuh, by its parts: each thread fetches its share of what belongs to the tile's rows and columns before the
 *                        main loop; the expression then runs on the sums in their registers, and C leaves as it does without */
#include "async.cuh"

#ifndef AMN
#    define AMN 0
#endif
#ifndef BMN
#    define BMN 0
#endif
#define WN BN
#include "wgmma.cuh"
#ifndef PP
#    define PP 0
#endif
#ifndef WAIT
#    define WAIT PP
#endif
#ifndef CM
#    define CM 1
#endif
#ifndef CN
#    define CN 1
#endif
#ifndef EST
#    define EST 1
#endif
#ifndef PREG
#    define PREG (NCONS == 1 ? 56 : 40)
#endif
#ifndef CREG
#    define CREG (NCONS == 1 ? 248 : 232)
#endif
#ifndef BATCH
#    define BATCH 0
#endif
#ifndef SPLIT
#    define SPLIT 0
#endif
#ifndef PROM
#    define PROM 0
#endif
#ifndef X6
#    define X6 0
#endif
#ifndef RA
#    define RA 0
#endif
#ifndef CT
#    define CT 0
#endif
#ifndef EPI
#    define EPI 0
#endif
#ifndef GROUP
#    define GROUP 0
#endif
#ifndef SCALES
#    define SCALES 0
#endif
#ifdef INTEGER
#    define ST_ACC double
#else
#    define ST_ACC float
#endif
#if EPI
#    define ST_EPI_TAKES_BIASED 1
#    include "epilogue.cuh"
#endif

#if !EPI
#    define ST_EPI_ROWS 0
#    define ST_EPI_COLS 0
#endif
#define SOME(n) ((n) > 0 ? (n) : 1)

/* parts of A and of B, two bits each, first product lowest */
#define X6_A 0x052
#define X6_B 0x118
#define KB (128 / ABYTES) /* k in a stage */
#define CS ((int)sizeof(TC))
#define CW (128 / CS) /* columns of C in 128 bytes */
#ifdef CB
#    define BOXES (CB < BN / CW ? CB : BN / CW)
#else
#    define BOXES (BN / CW)
#endif
#define CL (CM * CN)
#define PEERS (CM + CN - 1) /* blocks that write into my ring, me included */
#define A_BYTES (BM * 128)
#define B_BYTES (BN * 128)
#define HELD (X6 == 2 ? 3 : 1)
#define A_STAGE (HELD * A_BYTES)
#define B_STAGE (HELD * B_BYTES)
#define MT (BM / (PP ? 1 : NCONS) / 64) /* blocks of 64 rows of one consumer */
#define BOX_BYTES (BM * 128)
#define WARP_C 2048 /* EST: 16 rows of 128 bytes a warp */
#define VECTORS (4 * (ST_EPI_COLS * BN + ST_EPI_ROWS * MT * 64)) /* what a consumer fetched for its tile */
#define C_BYTES (EST ? NCONS * 4 * WARP_C : BOXES * BOX_BYTES)
#define ARRIVALS ((PP ? 1 : NCONS) * PEERS)
#define THREADS (NCONS * 128 + 128)

#if PP && (NCONS != 2 || !WAIT || !EST || SPLIT)
#    error PP needs NCONS=2 WAIT=1 EST=1 SPLIT=0
#endif
#if PROM && WAIT
#    error PROM needs WAIT=0
#endif
#if RA && (ABYTES != 4 || !AMN || BMN || CN > 1 || PP || WAIT || PROM || !EST || SPLIT)
#    error RA is for f32 with contiguous rows of A, in the plain cooperative kernel
#endif
#if SCALES && (PROM != 1 || ABYTES != 1 || BN > 128)
#    error SCALES is for 8-bit floats whose blocks of 128 are promoted
#endif
#if GROUP && (PP || CL > 1 || BATCH || SPLIT || X6 || RA || EPI || !EST)
#    error GROUP is for the plain cooperative kernel
#endif
#if (AMN || BMN) && !RA && (ABYTES != 2 || (BMN && BN % (64 * CM)) || (AMN && BM % (64 * CN)))
#    error contiguous rows are for 16-bit types, in boxes of 64
#endif

struct gemm_args { /* mirrored by the host */
    int m, n, k, g;
    int g0; /* what the epilogue counts batch items from */
    int raster, splits;
    int az, bz; /* 0: the operand is the same for the whole batch */
    int vec;    /* C may be stored 16 bytes at a time */
    int m_at, n_at; /* where in C (and for the epilogue) the operands' first row and column are; m and n are ends in C */
    int bytes;      /* of a stage's loads: boxes are no larger than the operands */
    int scaled;     /* sums are not C's values yet: alpha, beta, or integers into floats */
    double alpha, beta;
    TC *c;
    i64 ldc, cg;      /* elements between rows and between batch items (parts) */
    const u32 *found; /* X6: not 0 there: nothing is done */
};

struct scale_args { /* mirrored by the host */
    const float *a, *b;
    i64 a_row, a_k, b_col, b_k; /* elements between blocks */
    int a_rows, b_cols;         /* rows, columns of a block; b_cols a multiple of BN, or all columns */
};
#if SCALES
#    define SCALES_PARAM , const __grid_constant__ scale_args sc
#else
#    define SCALES_PARAM
#endif
#if GROUP
struct member { /* mirrored by the host */
    tensor_map ta, tb;
    gemm_args p;
};
struct members {
    int tiles, end[GROUP]; /* of all; after each member's last */
    member m[GROUP];
};
#    define PARAMETERS const __grid_constant__ members all
#else
#    define PARAMETERS                                                                     \
        const __grid_constant__ tensor_map ta, const __grid_constant__ tensor_map tb,      \
            const __grid_constant__ tensor_map tc, const __grid_constant__ gemm_args p EPI_PARAM SCALES_PARAM
#endif

/* Groups of `raster` tile rows run along n. Blocks that run together then touch few tile rows and columns. */
INL void tile_at(int t, int tm, int tn, int raster, int *pm, int *pn, int *pz)
{
    const int z = BATCH || SPLIT ? t / (tm * tn) : 0;
    t -= z * tm * tn;
    const int per = raster * tn, q = t / per, r = t - q * per, w = min(raster, tm - q * raster), j = r / w;
    *pm = q * raster + (r - j * w);
    *pn = j;
    *pz = z;
}

INL void load(u32 dst, const tensor_map *t, u32 bar, int x, int y, int z)
{
    if (BATCH)
        tma_load3(dst, t, bar, x, y, z);
    else
        tma_load2(dst, t, bar, x, y);
}
INL void share(u32 dst, const tensor_map *t, u32 bar, int x, int y, int z, u16 mask)
{
    if (BATCH)
        tma_share3(dst, t, bar, x, y, z, mask);
    else
        tma_share2(dst, t, bar, x, y, mask);
}

#define MEMBER_TILE(t)                                                   \
    const int kall = (p.k + KB - 1) / KB;                                \
    tile_at(t - (at ? all.end[at - 1] : 0), (p.m + BM - 1) / BM, (p.n + BN - 1) / BN, p.raster, &m, &n, &z)

#include "gemm_sm90_end.cuh"

#if SCALES
/* where the scales of a thread's rows begin; m0: a consumer's first row */
INL void scales_of(const float *(&a)[MT][2], const scale_args &sc, int m0, int m, int t)
{
#    pragma unroll
    for (int i = 0; i < MT; i++)
#    pragma unroll
        for (int h = 0; h < 2; h++)
            a[i][h] = sc.a + min(m0 + row_at(t, i, h), m - 1) / sc.a_rows * sc.a_row;
}
INL void load_scales(float (&to)[MT][2], const float *(&a)[MT][2], const float *b, int k, const scale_args &sc)
{
    const float of_b = SCALES & 2 ? b[k * sc.b_k] : 1;
#    pragma unroll
    for (int i = 0; i < MT; i++)
#    pragma unroll
        for (int h = 0; h < 2; h++) to[i][h] = SCALES & 1 ? a[i][h][k * sc.a_k] * of_b : of_b;
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_sm90(PARAMETERS)
{
    extern __shared__ __align__(1024) u8 sm[];
    u32 sA; /* opaque, so that it is worked out once: as a constant expression it would be in every step of the main loop */
    asm("mov.u32 %0, %1;" : "=r"(sA) : "r"(saddr(sm)));
    const u32 sB = sA + STAGES * A_STAGE, sC = sB + STAGES * B_STAGE;
    const u32 full = sC + C_BYTES, empty = full + STAGES * 8;
    const int tid = threadIdx.x, wg = __shfl_sync(~0u, tid >> 7, 0);
#if X6
    launch_next();
    launch_wait();
    if (*p.found) return;
#endif
    const u32 rank = CL > 1 ? cluster_rank() : 0, rm = rank / CN, rn = rank % CN;
    if (tid == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbar_init(full + 8 * i, 1);
            mbar_init(empty + 8 * i, ARRIVALS);
        }
        mbar_init_fence();
    }
    if (CL > 1)
        cluster_sync();
    else
        __syncthreads();

#if GROUP
    const int nt = all.tiles;
    int at = 0; /* the member of my tile */
#else
    const int tm = (p.m - p.m_at + BM * CM - 1) / (BM * CM), tn = (p.n - p.n_at + BN * CN - 1) / (BN * CN);
    const int nt = tm * tn * (BATCH || SPLIT ? p.g * (SPLIT ? p.splits : 1) : 1),
              kall = (p.k + KB - 1) / KB * (X6 == 1 ? 6 : 1);
#endif
    const int cid = blockIdx.x / CL, ncl = gridDim.x / CL;

    if (wg == NCONS) { /* ---- producer ---- */
        REGS_DEC(PREG);
        if (tid == NCONS * 128) {
#if !GROUP
            tma_prefetch(&ta);
            tma_prefetch(&tb);
#endif
            u32 s = 0, ph = 1;
            launch_next();
            launch_wait();
            for (int t = cid; t < nt; t += ncl) {
                int m, n, z;
#if GROUP
                while (t >= all.end[at]) at++;
                const tensor_map &ta = all.m[at].ta, &tb = all.m[at].tb;
                const gemm_args &p = all.m[at].p;
                MEMBER_TILE(t);
#else
                tile_at(t, tm, tn, p.raster, &m, &n, &z);
#endif
                const int part = SPLIT ? z / p.g : 0, g = SPLIT ? z % p.g : z;
                const int k0 = SPLIT ? (int)((i64)kall * part / p.splits) : 0,
                          k1 = SPLIT ? (int)((i64)kall * (part + 1) / p.splits) : kall;
                /* my slice of a shared operand starts at rn/CN of A's rows, rm/CM of B's */
                const int m0 = (m * CM + (int)rm) * BM + (int)rn * (BM / CN),
                          n0 = (n * CN + (int)rn) * BN + (int)rm * (BN / CM);
#if X6 != 1
                [[maybe_unused]] const int ga = g * p.az, gb = g * p.bz;
#endif
                u32 mask = 0;
#pragma unroll
                for (int i = 0; i < CM; i++) mask |= 1u << (i * CN);
                const u16 ma = (u16)(((1u << CN) - 1) << (rm * CN)), mb = (u16)(mask << rn);
                for (int k = k0; k < k1; k++) {
#if X6 == 1 /* the parts of A and of B in the order 2 0, 0 2, 1 1, 1 0, 0 1, 0 0 */
                    const int six = k % 6 * 2, x = k / 6 * KB;
                    const int ga = (X6_A >> six & 3) * (p.az ? p.g : 1) + g * p.az,
                              gb = (X6_B >> six & 3) * (p.bz ? p.g : 1) + g * p.bz;
#else
                    const int x = k * KB;
#endif
                    const u32 bar = full + 8 * s, a = sA + s * A_STAGE + rn * (A_BYTES / CN),
                              b = sB + s * B_STAGE + rm * (B_BYTES / CM);
                    mbar_wait(empty + 8 * s, ph);
                    mbar_expect(bar, (u32)p.bytes);
#if X6 == 2
#    pragma unroll
                    for (int i = 0; i < 3; i++) {
                        load(a + i * A_BYTES, &ta, bar, x, m0, i * (p.az ? p.g : 1) + g * p.az);
                        load(b + i * B_BYTES, &tb, bar, x, n0, i * (p.bz ? p.g : 1) + g * p.bz);
                    }
#else
#if AMN
#    pragma unroll
                    for (int i = 0; i < BM / KB / CN; i++)
                        if (CN == 1 && RA)
                            load(a + i * 4096, &ta, bar, m0 + i * 32, x, ga);
                        else if (CN == 1)
                            load(a + i * 8192, &ta, bar, m0 + i * 64, x, ga);
                        else
                            share(a + i * 8192, &ta, bar, m0 + i * 64, x, ga, ma);
#else
                    if (CN == 1)
                        load(a, &ta, bar, x, m0, ga);
                    else
                        share(a, &ta, bar, x, m0, ga, ma);
#endif
#if BMN
#    pragma unroll
                    for (int i = 0; i < BN / 64 / CM; i++)
                        if (CM == 1)
                            load(b + i * 8192, &tb, bar, n0 + i * 64, x, gb);
                        else
                            share(b + i * 8192, &tb, bar, n0 + i * 64, x, gb, mb);
#else
                    if (CM == 1)
                        load(b, &tb, bar, x, n0, gb);
                    else
                        share(b, &tb, bar, x, n0, gb, mb);
#endif
#endif
                    if (++s == STAGES) {
                        s = 0;
                        ph ^= 1;
                    }
                }
            }
            if (CL > 1) /* a peer may still arrive here: stay until the ring is free */
                for (int i = 0; i < STAGES; i++) {
                    mbar_wait(empty + 8 * s, ph);
                    if (++s == STAGES) {
                        s = 0;
                        ph ^= 1;
                    }
                }
        }
    } else { /* ---- consumers ---- */
        REGS_INC(CREG);
        launch_wait(); /* the previous grid may still read or write C and what the epilogue touches */
        const int w = wg, wt = tid & 127;
        /* the threads that free a stage, one for each block that writes into my ring: those of my cluster row, then column */
        const bool arriver = wt < PEERS;
        const u32 al = wt, dst = CL == 1        ? 0
                                 : al < (u32)CN ? rm * CN + al
                                                : (al - CN + (al - CN >= rm ? 1u : 0u)) * CN + rn;
        u32 s = 0, ph = 0;
#if PP
        const int wrow = 0, first = w, step = 2; /* the tiles between are the other's */
#else
        const int wrow = w * MT, first = 0, step = 1;
#endif
        const u32 a0 = sA + wrow * 8192;
        const u64 da0 = AMN ? desc_mn(a0, 8192) : desc_k(a0), db0 = BMN ? desc_mn(sB, 8192) : desc_k(sB);
        acc_t d[MT][BN / 2];
#if PROM
        acc_t sum[MT][BN / 2];
#    define ACC sum
#else
#    define ACC d
#endif
        for (int turn = first;; turn += step) { /* one counter gives tile and place in the ring: registers are scarce */
            const int t = cid + turn * ncl;
            if (t >= nt) break;
            int m, n, z;
#if GROUP
            while (t >= all.end[at]) at++;
            const gemm_args &p = all.m[at].p;
            MEMBER_TILE(t);
#else
            tile_at(t, tm, tn, p.raster, &m, &n, &z);
#endif
            const int m0 = p.m_at + (m * CM + (int)rm) * BM, n0 = p.n_at + (n * CN + (int)rn) * BN;
            const int part = SPLIT ? z / p.g : 0;
            const int kb =
                SPLIT ? (int)((i64)kall * (part + 1) / p.splits) - (int)((i64)kall * part / p.splits) : kall;
#if PROM
#    pragma unroll
            for (int i = 0; i < MT; i++)
#    pragma unroll
                for (int j = 0; j < BN / 2; j++) sum[i][j] = 0;
#endif
#if EPI
            fetched share;
            share.get(epi, m0 + wrow * 64, n0, p.g0 + z, p.m, p.n, wt);
#endif
            u32 prev = 0;
#if PP
            s = (u32)turn * kall % STAGES;
            ph = (u32)turn * kall / STAGES & 1;
            if (t != cid) { /* my turn to issue wgmma */
                if (w == 0)
                    BAR_SYNC(1, 256);
                else
                    BAR_SYNC(2, 256);
            }
#endif
#if SCALES
            const float *from_a[MT][2], *from_b = sc.b + n0 / sc.b_cols * sc.b_col;
            float by[MT][2], next[MT][2];
            scales_of(from_a, sc, m0 + wrow * 64, p.m, wt);
            load_scales(by, from_a, from_b, 0, sc);
#endif
            for (int k = 0; k < kb; k++) {
                mbar_wait(full + 8 * s, ph);
#if RA
                u32 f[4][MT][4];
                fragments(f, a0 + s * A_BYTES, wt);
#endif
                wgmma_fence();
#if X6 == 2
#    pragma unroll
                for (int six = 0; six < 6; six++)
#    pragma unroll
                    for (int kk = 0; kk < 4; kk++)
#    pragma unroll
                        for (int i = 0; i < MT; i++)
                            wgmma(d[i],
                                  desc_add(da0, s * (A_STAGE / 16) + (X6_A >> 2 * six & 3) * (A_BYTES / 16) + i * 512 + kk * 2),
                                  desc_add(db0, s * (B_STAGE / 16) + (X6_B >> 2 * six & 3) * (B_BYTES / 16) + kk * 2),
                                  six != 0 || kk != 0 || k % PROM != 0);
#else
#    pragma unroll
                for (int kk = 0; kk < 4; kk++)
#    pragma unroll
                    for (int i = 0; i < MT; i++) {
                        [[maybe_unused]] const u64 da = desc_add(da0, s * (A_BYTES / 16) + i * 512 + kk * (AMN ? 128 : 2)),
                                  db = desc_add(db0, s * (B_BYTES / 16) + kk * (BMN ? 128 : 2));
#if RA
                        wgmma_regs(d[i], f[kk][i], db, kk != 0 || k != 0);
#elif PROM
                        wgmma(d[i], da, db, kk != 0 || k % PROM != 0);
#else
                        wgmma(d[i], da, db, kk != 0 || k != 0);
#endif
                    }
#endif
                wgmma_commit();
#if PP
                if (k == kb - 1 && t + ncl < nt) { /* the other's turn */
                    if (w == 0)
                        BAR_ARRIVE(2, 256);
                    else
                        BAR_ARRIVE(1, 256);
                }
#endif
#if SCALES /* while the tensor cores work */
                load_scales(next, from_a, from_b, min(k + 1, kb - 1), sc);
#endif
                wgmma_wait<WAIT>();
                if (arriver && (!WAIT || k > 0)) {
                    if (CL == 1)
                        arrive(empty + 8 * (WAIT ? prev : s));
                    else
                        arrive_at(empty + 8 * (WAIT ? prev : s), dst);
                }
                prev = s;
                if (++s == STAGES) {
                    s = 0;
                    ph ^= 1;
                }
#if PROM
                if (PROM == 1 || k % PROM == PROM - 1 || k == kb - 1) {
#    pragma unroll
                    for (int i = 0; i < MT; i++)
#    pragma unroll
                        for (int j = 0; j < BN / 2; j++) asm volatile("" : "+f"(d[i][j])::"memory");
#    pragma unroll
                    for (int i = 0; i < MT; i++)
#    pragma unroll
                        for (int j = 0; j < BN / 2; j++)
#if SCALES
                            sum[i][j] += d[i][j] * by[i][j >> 1 & 1];
#else
                            sum[i][j] += d[i][j];
#endif
                }
#endif
#if SCALES
#    pragma unroll
                for (int i = 0; i < MT; i++) {
                    by[i][0] = next[i][0];
                    by[i][1] = next[i][1];
                }
#endif
            }
            if (WAIT) wgmma_wait<0>();
#pragma unroll
            for (int i = 0; i < MT; i++)
#pragma unroll
                for (int j = 0; j < BN / 2; j++)
                    asm volatile("" : ST_ACC_REG(d[i][j])::"memory"); /* keep reads below the wait */
            if (WAIT && arriver) {
                if (CL == 1)
                    arrive(empty + 8 * prev);
                else
                    arrive_at(empty + 8 * prev, dst);
            }
            int ti; /* asked again, not kept in registers through the main loop */
            asm volatile("mov.u32 %0, %%tid.x;" : "=r"(ti));
            ti &= 127;
            const int lane = ti & 31, warp = ti >> 5;
            [[maybe_unused]] const u32 buf = sC + (w * 4 + warp) * WARP_C;
#if !SPLIT
            if (p.scaled) scale(ACC, p, m0 + wrow * 64, n0, z, ti);
#    if EPI
            float *const vectors = (float *)(sm + STAGES * (A_STAGE + B_STAGE) + C_BYTES + STAGES * 16 + w * VECTORS);
            share.put(vectors, ti, w);
            finish(ACC, share, epi, p, vectors, m0 + wrow * 64, n0, z, ti);
#    endif
#endif
#if EST
/* each warp on its own: registers, 16 swizzled rows of 128 bytes, 16 bytes a lane to memory */
#    pragma unroll
            for (int i = 0; i < MT; i++) {
                const int r0 = m0 + (wrow + i) * 64 + (RA ? warp / 2 * 32 + warp % 2 * 8 : warp * 16);
#    if CT
#        pragma unroll
                for (int c = 0; c < BN; c += 32) {
                    int ln = lane, nc = n0 + c; /* opaque, as below */
                    asm volatile("" : "+r"(ln), "+r"(nc));
                    stage_turned(buf, ln, &ACC[i][c / 2]);
                    __syncwarp();
                    flush_turned(buf, p, p.c + z * p.cg, r0, nc, ln);
                    __syncwarp();
                }
#    else
#        pragma unroll
                for (int c = 0; c < BN; c += CW) {
                    const int width = BN - c < CW ? BN - c : CW;
                    int ln = lane; /* opaque: else the addresses of one step are kept for the next, in registers */
                    asm volatile("" : "+r"(ln));
#    pragma unroll
                    for (int q = 0; q < CW / 16; q++)
                        if (q * 16 < width) stage(buf, 0, q * 16, ln, &ACC[i][c / 2 + q * 8]);
                    __syncwarp();
                    flush(buf, p, p.c + z * p.cg, r0, n0 + c, width, ln);
                    __syncwarp();
                }
#    endif
            }
#else
/* registers, swizzled boxes of 128 bytes of columns, TMA */
#    pragma unroll
            for (int c = 0; c < BN / CW; c += BOXES) {
                if (ti == 0) tma_wait_read();
                if (w == 0)
                    BAR_SYNC(1, 128);
                else
                    BAR_SYNC(2, 128);
#    pragma unroll
                for (int i = 0; i < MT; i++)
#    pragma unroll
                    for (int b = 0; b < BOXES; b++)
#    pragma unroll
                        for (int q = 0; q < CW / 16; q++)
                            stage(sC + b * BOX_BYTES, (wrow + i) * 64 + warp * 16, q * 16, lane,
                                  &ACC[i][(c + b) * (CW / 2) + q * 8]);
                proxy_fence();
                if (w == 0)
                    BAR_SYNC(1, 128);
                else
                    BAR_SYNC(2, 128);
                if (ti == 0) {
#    pragma unroll
                    for (int b = 0; b < BOXES; b++) {
                        if (BATCH)
                            tma_store3(&tc, sC + b * BOX_BYTES + wrow * 8192, n0 + (c + b) * CW,
                                       m0 + wrow * 64, z);
                        else
                            tma_store2(&tc, sC + b * BOX_BYTES + wrow * 8192, n0 + (c + b) * CW,
                                       m0 + wrow * 64);
                    }
                    tma_commit();
                }
            }
#endif
        }
        if (!EST && wt == 0)
            tma_wait_read(); /* shared memory must outlive the reads; the end of the grid publishes the writes */
    }
    if (CL > 1) cluster_sync(); /* no block leaves while a peer may still touch its shared memory */
}
