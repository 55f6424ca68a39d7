/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90_end.cuh - the end of a tile in gemm_sm90.cu, which includes this behind its macros and struct gemm_args: old values of C and the epilogue on the sums in their
 * registers, then bits of C through shared memory (16 rows of a warp, swizzled) to memory; and the fragments of an operand that goes through registers,
 * whose rows are in another order (row_at).
 *
 * Registers are scarce beside the sums. What is opaque here (empty asm statements) would else be worked out once, before the main loop or for all steps together,
 * and kept. */
/* ---- the end of a tile: values, then bits of C ---------------------------------------------------------------------------- */
/* opaque: else the accumulators become integers in the main loop, with a move each around every wgmma */
INL u32 raw(float v)
{
    u32 r;
    asm volatile("mov.b32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
}
INL u32 raw(i32 v) { return (u32)v; }
INL u32 raw(f16 v) { return v.x; }
INL u32 raw(bf16 v) { return v.x; }
INL u32 raw(e4m3 v) { return v.x; }
INL u32 raw(e5m2 v) { return v.x; }
INL u32 raw(i8 v) { return (u8)v; }
#ifdef INTEGER
typedef double val_t;
INL u32 bits(acc_t v) { return (u32)v; }
INL val_t value(TC v) { return to_f64(v); }
#else
typedef float val_t;
INL u32 bits(acc_t v) { return raw(from<TC>(v)); }
INL val_t value(TC v) { return to_f32(v); }
#endif
/* a register's bits as they are */
INL u32 bits_of(float v) { return raw(v); }
INL u32 bits_of(int v) { return (u32)v; }
/* two neighbours; the first argument names C's type */
template <class T> INL u32 pair_of(T, acc_t lo, acc_t hi) { return bits(lo) | bits(hi) << (CS < 4 ? 8 * CS : 0); }
#ifndef INTEGER
INL u32 pair_of(bf16, float lo, float hi) { return pack_bf16(lo, hi); }
INL u32 pair_of(f16, float lo, float hi) { return pack_f16(lo, hi); }
INL u32 pair_of(e4m3, float lo, float hi) { return pack_e4m3(lo, hi); }
INL u32 pair_of(e5m2, float lo, float hi) { return pack_e5m2(lo, hi); }
#endif
#ifdef ST_EPI_BIASED
INL u32 pair_of(i8, acc_t lo, acc_t hi) { return __byte_perm((u32)bits_of(lo), (u32)bits_of(hi), 0x0040); }
#endif

#if EPI
#    define EPI_PARAM , const __grid_constant__ st_epi epi
#    define EPI_FORMAL , const st_epi &epi
#    define EPI_ARG , epi
#else
#    define EPI_PARAM
#    define EPI_FORMAL
#    define EPI_ARG
#endif
#if BN % 16
#    error columns are staged by 16
#endif
/* 16 columns (d: two groups of 8) of 16 rows into rows of 128 bytes, swizzled by the row. row, col: of the first */
INL void stage(u32 base, u32 row, u32 col, int lane, const acc_t *d)
{
    const u32 byte = col * CS;
    if (CS == 2) {
        const u32 r = row + (lane & 15), ch = (byte >> 4) + (lane >> 4);
        sts_matrix(base + r * 128 + ((ch ^ (r & 7)) << 4), pair_of(TC(), d[0], d[1]), pair_of(TC(), d[2], d[3]),
                   pair_of(TC(), d[4], d[5]), pair_of(TC(), d[6], d[7]));
    } else {
#pragma unroll
        for (int q = 0; q < 4; q++) { /* rows r and r + 8 of both groups */
            const u32 r = row + (lane >> 2) + (q & 1) * 8, at = byte + ((q >> 1) * 8 + 2 * (lane & 3)) * CS;
            const u32 a = base + r * 128 + (((at >> 4) ^ (r & 7)) << 4) + (at & 15);
            if (CS == 4)
                sts8(a, bits(d[2 * q]), bits(d[2 * q + 1]));
            else
                sts2(a, (u16)pair_of(TC(), d[2 * q], d[2 * q + 1]));
        }
    }
}

#if !SPLIT
/* what a sum's register holds until it is stored: the value, or of integers the bits of C */
#    ifdef INTEGER
template <class T> INL acc_t finished(T v) { return (acc_t)raw(from<TC>(v)); }
#        ifdef ST_EPI_BIASED
INL acc_t finished(float v) { return (acc_t)raw(v); }
#        endif
#    else
INL acc_t finished(float v) { return v; }
#    endif
/* Before an epilogue the sums of integers become f32; f32 sums are. */
INL acc_t before(val_t v)
{
#    if EPI && defined INTEGER
    return (acc_t)raw((float)v);
#    else
    return finished(v);
#    endif
}
/* Where a thread's sums d[i][4j + 2h + ...] are: row of a consumer's tile. RA: the rows of A that a warp reads at a time lie in different banks */
INL int row_at(int t, int i, int h)
{
    if (RA) return i * 64 + t / 64 * 32 + (t / 32 & 1) * 8 + h * 4 + (t / 4 & 3) + (t / 16 & 1) * 16;
    return i * 64 + t / 32 * 16 + h * 8 + (t & 31) / 4;
}
INL i64 place(const gemm_args &p, int row, int col) { return CT ? row + col * p.ldc : row * p.ldc + col; }
/* alpha * sum + beta * C, in the registers of the sums. C is read an element at a time, through the first-level cache: nearly all of a line's elements are some lane's. m0,
 * n0: of a consumer's tile */
INL void scale(acc_t (&d)[MT][BN / 2], const gemm_args &p, int m0, int n0, int z, int t)
{
    const int c0 = n0 + 2 * (t & 3);
    const val_t alpha = (val_t)p.alpha, beta = (val_t)p.beta;
    const bool old = p.beta != 0;
#    pragma unroll
    for (int i = 0; i < MT; i++)
#    pragma unroll
        for (int h = 0; h < 2; h++) {
            const int r = m0 + row_at(t, i, h);
            int left = r < p.m ? p.n - c0 : 0; /* opaque: else what is known of a column in one row is kept for the next, in a register */
            asm volatile("" : "+r"(left));
            const TC *at = p.c + z * p.cg + place(p, r, c0);
#    pragma unroll
            for (int j = 0; j < BN / 8; j++) {
                if (j % (MT * BN > 320 ? 1 : 4) == 0) asm volatile("" ::: "memory"); /* reads ahead take registers */
#    pragma unroll
                for (int k = 0; k < 2; k++) {
                    acc_t &x = d[i][4 * j + 2 * h + k];
                    TC o = TC();
                    if (old && 8 * j + k < left) o = at[CT ? k * p.ldc : 8 * j + k];
                    const val_t v = alpha * (val_t)x, both = v + beta * value(o);
                    x = before(old ? both : v);
                    asm volatile("" : ST_ACC_REG(x));
                }
                if (CT) at += 8 * p.ldc;
                if (CT) asm volatile("" : "+l"(at));
            }
        }
}
#    if EPI
INL void meet(int w) /* by a constant: else the block takes all 16 barriers */
{
    if (w == 0)
        BAR_SYNC(3, 128);
    else
        BAR_SYNC(4, 128);
}
/* A thread's share of the operands of its consumer's tile: of columns t, t + 128, ... and of row t. Loaded before the main loop, which hides the wait, put
 * into shared memory after it. */
struct fetched {
    float col[(BN + 127) / 128][SOME(ST_EPI_COLS)], row[SOME(ST_EPI_ROWS)], one[SOME(ST_EPI_ONES)];
    METHOD void get(const st_epi &e, int m0, int n0, int g, int m, int n, int t)
    {
#        pragma unroll
        for (int u = 0; u < (BN + 127) / 128; u++)
            if (t + u * 128 < BN) st_epi_cols(e, col[u], min(n0 + t + u * 128, n - 1), g);
        if (t < MT * 64) st_epi_rows(e, row, min(m0 + t, m - 1), g);
        st_epi_ones(e, one, 0, g);
    }
    METHOD void put(float *to, int t, int w) const
    {
        if (ST_EPI_COLS + ST_EPI_ROWS == 0) return;
        meet(w); /* the last tile's have been read */
#        pragma unroll
        for (int q = 0; q < ST_EPI_COLS; q++)
#        pragma unroll
            for (int u = 0; u < (BN + 127) / 128; u++)
                if (t + u * 128 < BN) to[q * BN + t + u * 128] = col[u][q];
#        pragma unroll
        for (int q = 0; q < ST_EPI_ROWS; q++)
            if (t < MT * 64) to[ST_EPI_COLS * BN + q * MT * 64 + t] = row[q];
        meet(w);
    }
};
/* The expression on a consumer's sums where they are (before() has been there where p.scaled). */
INL void finish(acc_t (&d)[MT][BN / 2], const fetched &f, const st_epi &e, const gemm_args &p,
                const float *vectors, int m0, int n0, int z, int t)
{
    const int c0 = 2 * (t & 3), g = p.g0 + z;
    float row[MT][2][SOME(ST_EPI_ROWS)];
#        pragma unroll
    for (int i = 0; i < MT; i++)
#        pragma unroll
        for (int h = 0; h < 2; h++)
#        pragma unroll
            for (int q = 0; q < ST_EPI_ROWS; q++)
                row[i][h][q] = vectors[ST_EPI_COLS * BN + q * MT * 64 + row_at(t, i, h)];
#        pragma unroll
    for (int j = 0; j < BN / 8; j++) {
        float col[2][SOME(ST_EPI_COLS)], full[MT][2][2][SOME(ST_EPI_FULL)], out[2][SOME(ST_EPI_OUTS)];
        const int n1 = n0 + 8 * j + c0;
#        if ST_EPI_FULL + ST_EPI_OUTS
        asm volatile("" : "+r"(t), "+r"(m0)::"memory"); /* addresses of rows are worked out anew: else they take registers for all j */
#        endif
#        pragma unroll
        for (int q = 0; q < ST_EPI_COLS; q++) {
            const lanes<float, 2> x = *(const lanes<float, 2> *)(vectors + q * BN + 8 * j + c0);
            col[0][q] = x.e[0];
            col[1][q] = x.e[1];
        }
#        if ST_EPI_FULL
        /* clamped, not skipped: what lies outside of C is never stored; columns are even in number where they are read in pairs */
        const int last = p.n - 1, in = n1 < last ? n1 : last & ~1;
#            pragma unroll
        for (int i = 0; i < MT; i++)
#            pragma unroll
            for (int h = 0; h < 2; h++)
                st_epi_full(e, full[i][h], min(m0 + row_at(t, i, h), p.m - 1), in, min(in + 1, last), g);
#        endif
#        pragma unroll
        for (int i = 0; i < MT; i++)
#        pragma unroll
            for (int h = 0; h < 2; h++) {
                const int m = m0 + row_at(t, i, h);
#        pragma unroll
                for (int k = 0; k < 2; k++) {
                    acc_t &x = d[i][4 * j + 2 * h + k];
#        ifdef INTEGER
                    const float v = p.scaled ? f32_of_bits((u32)x) : (float)x;
#        else
                    const float v = x;
#        endif
                    x = finished(st_epilogue_of(row[i][h], col[k], f.one, full[i][h][k], out[k], v, m, n1 + k, g));
                }
#        if ST_EPI_OUTS
                st_epi_outs(e, out, m, n1, g, m < p.m && n1 < p.n, m < p.m && n1 + 1 < p.n);
#        endif
            }
    }
}
#    endif
#endif

INL void store_bits(TC *at, u32 v)
{
    if (CS == 4)
        *(u32 *)at = v;
    else if (CS == 2)
        *(u16 *)at = (u16)v;
    else
        *(u8 *)at = (u8)v;
}
/* One staged row to any address of the type. */
INL void flush_row(u32 buf, int r, const gemm_args &p, TC *at, int col, int width, int lane)
{
    if (CS == 2 && col + width <= p.n) { /* in whole words, between those of a row that starts within one */
        const bool mine = lane < width / 2;
        const u32 w = lds_bytes(buf + (((lane >> 2) ^ (r & 7)) << 4) + (lane & 3) * 4, 4), next = __shfl_down_sync(~0u, w, 1);
        if (((u64)at & 2) == 0) {
            if (mine) *(u32 *)(at + 2 * lane) = w;
        } else if (mine) {
            if (lane == 0) store_bits(at, w);
            if (lane < width / 2 - 1)
                *(u32 *)(at + 2 * lane + 1) = __byte_perm(w, next, 0x5432);
            else
                store_bits(at + width - 1, w >> 16);
        }
        return;
    }
#pragma unroll
    for (int v = 0; v < CW; v += 32) {
        const int c = v + lane;
        if (c < width && col + c < p.n)
            store_bits(at + c, lds_bytes(buf + (((c * CS >> 4) ^ (r & 7)) << 4) + (c * CS & 15), CS));
    }
}
/* which of C's rows the r-th staged one is, from the first: see row_at */
INL int staged_row(int r) { return RA ? (r >> 3) * 4 + (r & 3) + (r >> 2 & 1) * 16 : r; }
/* A warp's 16 staged rows of `width` columns to memory; row, col: of the first. */
INL void flush(u32 buf, const gemm_args &p, TC *out, int row, int col, int width, int lane)
{
    const int chunks = width * CS / 16;
    if (p.vec && col + width <= p.n) {
#pragma unroll
        for (int v = 0; v < (chunks + 1) / 2; v++) {
            const int e = v * 32 + lane, r = e / chunks, ch = e % chunks;
            if (chunks % 2 && r > 15) break;
            const uint4 x = lds16(buf + r * 128 + ((ch ^ (r & 7)) << 4));
            const int at = row + staged_row(r);
            if (at < p.m) store16(out + at * p.ldc + col + ch * (16 / CS), x);
        }
    } else {
#pragma unroll 1
        for (int r = 0; r < 16; r += 4)
#pragma unroll
            for (int u = 0; u < 4; u++) {
                const int at = row + staged_row(r + u);
                if (at < p.m) flush_row(buf + (r + u) * 128, r + u, p, out + at * p.ldc + col, col, width, lane);
            }
    }
}

#if RA
/* A's fragments of a stage: boxes of 32 k by 32 rows, rows contiguous. a: of the consumer's first row */
INL void fragments(u32 (&f)[4][MT][4], u32 a, int t)
{
#    pragma unroll
    for (int kk = 0; kk < 4; kk++)
#    pragma unroll
        for (int i = 0; i < MT; i++)
#    pragma unroll
            for (int q = 0; q < 4; q++) {
                const int row = row_at(t, i, q & 1), k = (t & 3) + (q >> 1) * 4;
                f[kk][i][q] = lds_bytes(a + row / 32 * 4096 + (kk * 8 + k) * 128 + ((((row & 31) >> 2) ^ k) << 4) + (row & 3) * 4, 4);
            }
}
#endif
#if CT
/* A warp's 16 rows x 32 columns (d: four groups of 8), turned round: lines of 128 bytes for two columns each, which are two rows' halves of C */
INL void stage_turned(u32 buf, int lane, const acc_t *d)
{
#    pragma unroll
    for (int j = 0; j < 4; j++)
#    pragma unroll
        for (int h = 0; h < 2; h++)
#    pragma unroll
            for (int k = 0; k < 2; k++) {
                const u32 line = j * 4 + (lane & 3), chunk = (lane >> 4) * 4 + k * 2 + h;
                sts4(buf + line * 128 + ((chunk ^ (line & 3)) << 4) + (lane >> 2 & 3) * 4, bits(d[4 * j + 2 * h + k]));
            }
}
INL void flush_turned(u32 buf, const gemm_args &p, TC *out, int row, int col, int lane)
{
#    pragma unroll
    for (int v = 0; v < 4; v++) {
        const int line = v * 4 + lane / 8, chunk = lane & 7, m = row + (chunk >> 2) * 16 + (chunk & 1) * 4,
                  n = col + 2 * line + (chunk >> 1 & 1);
        const uint4 x = lds16(buf + line * 128 + ((chunk ^ (line & 3)) << 4));
        TC *const at = out + m + n * p.ldc;
        if (n >= p.n || m >= p.m) continue;
        if (p.vec && m + 4 <= p.m) {
            store16(at, x);
        } else {
            const u32 w[4] = {x.x, x.y, x.z, x.w};
#    pragma unroll
            for (int q = 0; q < 4; q++)
                if (m + q < p.m) store_bits(at + q, w[q]);
        }
    }
}
#endif
