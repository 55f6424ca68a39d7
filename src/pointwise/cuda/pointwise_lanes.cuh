/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_lanes.cuh - what generated programs are made of: a slot of N elements in registers, filled by one wide load or element by element, and read as N numbers
 * of the program's precision; wide stores; totals over lanes, warps and blocks in a fixed order. */
#ifndef STRATA_POINTWISE_LANES_CUH
#define STRATA_POINTWISE_LANES_CUH
#include "pointwise_reduce.cuh"

template <class T> INL void read_as(float &r, T v) { r = to_f32(v); }
template <class T> INL void read_as(double &r, T v) { r = to_f64(v); }

/* a number in memory, or one that came with the launch */
template <class R, class T> INL R scalar(const T *p, i64 value)
{
    R r = (R)f64_of_bits((u64)value);
    if (p) read_as(r, *p);
    return r;
}

/* how memory is read and written: as usual; not to be kept in the caches; constant while the kernel runs */
enum hint { USUAL, STREAMED, CONSTANT };
/* weights of every line: the last to leave the first-level cache, through which whole lines pass */
INL uint4 constant16(const uint4 *p)
{
#if defined(__CUDACC__)
    uint4 v;
    asm("ld.global.nc.L1::evict_last.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(p));
    return v;
#else
    return *p;
#endif
}

/* BYTES of memory as words; aligned to BYTES or 16 */
template <int BYTES, hint HINT> struct words {
    u32 q[(BYTES + 3) / 4];
    template <class W> static METHOD W one(const W *p) { return HINT == CONSTANT ? __ldg(p) : *p; }
    METHOD void load(const void *p)
    {
        if constexpr (BYTES >= 16) {
#pragma unroll
            for (int i = 0; i < BYTES / 16; i++) {
                const uint4 *from = (const uint4 *)p + i;
                const uint4 v = HINT == STREAMED ? __ldcs(from) : HINT == CONSTANT ? constant16(from) : *from;
                q[4 * i] = v.x, q[4 * i + 1] = v.y, q[4 * i + 2] = v.z, q[4 * i + 3] = v.w;
            }
        } else if constexpr (BYTES == 8) {
            const uint2 v = one((const uint2 *)p);
            q[0] = v.x, q[1] = v.y;
        } else if constexpr (BYTES == 4) {
            q[0] = one((const u32 *)p);
        } else if constexpr (BYTES == 2) {
            q[0] = one((const u16 *)p);
        } else {
            q[0] = one((const u8 *)p);
        }
    }
    METHOD void store(void *p) const
    {
        if constexpr (BYTES >= 16) {
#pragma unroll
            for (int i = 0; i < BYTES / 16; i++) {
                const uint4 v = make_uint4(q[4 * i], q[4 * i + 1], q[4 * i + 2], q[4 * i + 3]);
                if (HINT == STREAMED)
                    __stcs((uint4 *)p + i, v);
                else
                    ((uint4 *)p)[i] = v;
            }
        } else if constexpr (BYTES == 8) {
            *(uint2 *)p = make_uint2(q[0], q[1]);
        } else if constexpr (BYTES == 4) {
            *(u32 *)p = q[0];
        } else if constexpr (BYTES == 2) {
            *(u16 *)p = (u16)q[0];
        } else {
            *(u8 *)p = (u8)q[0];
        }
    }
};

/* element i of words, and pairs into words */
template <class T> struct in_words;
template <> struct in_words<f32> {
    static METHOD f32 get(const u32 *q, int i) { return f32_of_bits(q[i]); }
};
template <> struct in_words<f64> {
    static METHOD f64 get(const u32 *q, int i) { return f64_of_bits((u64)q[2 * i + 1] << 32 | q[2 * i]); }
};
template <> struct in_words<i64> {
    static METHOD i64 get(const u32 *q, int i) { return (i64)((u64)q[2 * i + 1] << 32 | q[2 * i]); }
};
template <> struct in_words<i32> {
    static METHOD i32 get(const u32 *q, int i) { return (i32)q[i]; }
};
template <> struct in_words<bf16> {
    static METHOD f32 get(const u32 *q, int i)
    {
        return f32_of_bits(i & 1 ? q[i / 2] & 0xffff0000u : q[i / 2] << 16);
    }
};
template <> struct in_words<f16> {
    static METHOD f32 get(const u32 *q, int i)
    {
        return cvt_f32_f16((u16)(i & 1 ? q[i / 2] >> 16 : q[i / 2]));
    }
};
#define BYTE(q, i) ((u8)((q)[(i) / 4] >> 8 * ((i)&3)))
template <> struct in_words<e4m3> {
    static METHOD f32 get(const u32 *q, int i) { return cvt_f32_e4m3(BYTE(q, i)); }
};
template <> struct in_words<e5m2> {
    static METHOD f32 get(const u32 *q, int i) { return cvt_f32_e5m2(BYTE(q, i)); }
};
template <> struct in_words<i8> {
    static METHOD i32 get(const u32 *q, int i) { return (i8)BYTE(q, i); }
};
template <> struct in_words<u8> {
    static METHOD i32 get(const u32 *q, int i) { return BYTE(q, i); }
};
template <> struct in_words<b8> {
    static METHOD i32 get(const u32 *q, int i) { return BYTE(q, i) != 0; }
};

/* N elements that stand side by side, read at once */
template <class T, int N, hint HINT> struct wide_slot {
    words<sizeof(T) * N, HINT> raw;
    METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < (int)(sizeof raw.q / 4); i++) raw.q[i] = 0;
    }
    METHOD void load(const T *p, i64) { raw.load(p); }
    /* from shared memory, which loads with a hint cannot read */
    METHOD void load_near(const T *p)
    {
        words<sizeof(T) * N, USUAL> w;
        w.load(p);
#pragma unroll
        for (int k = 0; k < (int)(sizeof raw.q / 4); k++) raw.q[k] = w.q[k];
    }
    /* Slot i of many in shared memory; of more than 16 bytes each piece has a plane of `count` pieces, so that neighbours have neighbouring banks. */
    METHOD void load_planes(const char *p, int i, int count)
    {
        if constexpr (sizeof(T) * N > 16) {
#pragma unroll
            for (int k = 0; k < (int)(sizeof(T) * N / 16); k++) {
                const uint4 v = ((const uint4 *)p)[k * count + i];
                raw.q[4 * k] = v.x, raw.q[4 * k + 1] = v.y, raw.q[4 * k + 2] = v.z, raw.q[4 * k + 3] = v.w;
            }
        } else {
            words<sizeof(T) * N, USUAL> w;
            w.load(p + i * (int)(sizeof(T) * N));
#pragma unroll
            for (int k = 0; k < (int)(sizeof raw.q / 4); k++) raw.q[k] = w.q[k];
        }
    }
    METHOD void store_planes(char *p, int i, int count) const
    {
        if constexpr (sizeof(T) * N > 16) {
#pragma unroll
            for (int k = 0; k < (int)(sizeof(T) * N / 16); k++)
                ((uint4 *)p)[k * count + i] =
                    make_uint4(raw.q[4 * k], raw.q[4 * k + 1], raw.q[4 * k + 2], raw.q[4 * k + 3]);
        } else {
            words<sizeof(T) * N, USUAL> w;
#pragma unroll
            for (int k = 0; k < (int)(sizeof raw.q / 4); k++) w.q[k] = raw.q[k];
            w.store(p + i * (int)(sizeof(T) * N));
        }
    }
    template <class R> METHOD void get(R *v) const
    {
#pragma unroll
        for (int i = 0; i < N; i++) v[i] = (R)in_words<T>::get(raw.q, i);
    }
};
/* N elements `step` apart */
template <class T, int N, class R> struct thin_slot {
    R value[N];
    METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < N; i++) value[i] = 0;
    }
    METHOD void load(const T *p, i64 step)
    {
#pragma unroll
        for (int i = 0; i < N; i++) read_as(value[i], p[i * step]);
    }
    METHOD void get(R *v) const
    {
#pragma unroll
        for (int i = 0; i < N; i++) v[i] = value[i];
    }
};

/* ---- types of less than a byte -------------------------------------------------------------------------------------------- */
/* The first element of a byte is its lowest bits; addresses are bytes', places count elements. */
template <int B, bool S> struct sub {
    static constexpr int BITS = B, MASK = (1 << B) - 1;
    static METHOD i32 get(u32 word, int shift)
    {
        const i32 v = (i32)(word >> shift) & MASK;
        return S && v >> (B - 1) ? v - (1 << B) : v;
    }
    static METHOD i32 at(const u8 *p, i64 place)
    {
        return get(p[place * B >> 3], (int)(place * B & 7));
    }
    /* towards zero and saturated, NaN as 0; of bits, 1 for whatever is not 0 */
    template <class R> static METHOD u32 from(R v)
    {
        if constexpr (B == 1) return v != (R)0;
        constexpr int LO = S ? -(1 << (B - 1)) : 0, HI = S ? (1 << (B - 1)) - 1 : MASK;
        const i32 i = v <= (R)LO ? LO : v >= (R)HI ? HI : v != v ? 0 : (i32)v;
        return (u32)i & MASK;
    }
};
typedef sub<4, true> sub_i4;
typedef sub<4, false> sub_u4;
typedef sub<1, false> sub_bit;

template <class T, int N, class R> struct sub_slot {
    R value[N];
    METHOD void clear()
    {
#pragma unroll
        for (int i = 0; i < N; i++) value[i] = 0;
    }
    METHOD void load(const u8 *p, i64 first, i64 step)
    {
        if constexpr (N * T::BITS >= 8) {
            if (step == 1 && (first * T::BITS & 7) == 0) {
                const u8 *from = p + (first * T::BITS >> 3);
#pragma unroll
                for (int b = 0; b < N * T::BITS / 8; b++) {
                    const u32 byte = from[b];
#pragma unroll
                    for (int i = 0; i < 8 / T::BITS; i++)
                        value[b * (8 / T::BITS) + i] = (R)T::get(byte, i * T::BITS);
                }
                return;
            }
        }
#pragma unroll
        for (int i = 0; i < N; i++) value[i] = (R)T::at(p, first + i * step);
    }
    METHOD void get(R *v) const
    {
#pragma unroll
        for (int i = 0; i < N; i++) v[i] = value[i];
    }
};

/* Whole bytes where a slot has them; else other threads write to the same byte, and a word's bits are exchanged at once. */
template <class T, int N, class R> INL void sub_put(u8 *p, i64 first, i64 step, const R *v)
{
    if constexpr (N * T::BITS >= 8) {
        if (step == 1 && (first * T::BITS & 7) == 0) {
            u8 *to = p + (first * T::BITS >> 3);
#pragma unroll
            for (int b = 0; b < N * T::BITS / 8; b++) {
                u32 byte = 0;
#pragma unroll
                for (int i = 0; i < 8 / T::BITS; i++)
                    byte |= T::from(v[b * (8 / T::BITS) + i]) << i * T::BITS;
                to[b] = (u8)byte;
            }
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        const i64 bit = (first + i * step) * T::BITS;
        u8 *const byte = p + (bit >> 3);
        const int in_word = (int)((u64)byte & 3);
        u32 *const word = (u32 *)(byte - in_word);
        const int shift = in_word * 8 + (int)(bit & 7);
        const u32 mask = (u32)T::MASK << shift, set = T::from(v[i]) << shift;
        if (set != mask) atomicAnd(word, ~mask);
        if (set) atomicOr(word, set);
    }
}

INL u32 bits_of(f32 v) { return bits_of_f32(v); }
INL u32 bits_of(i32 v) { return (u32)v; }
INL u32 bits_of(f16 v) { return v.x; }
INL u32 bits_of(bf16 v) { return v.x; }
INL u32 bits_of(e4m3 v) { return v.x; }
INL u32 bits_of(e5m2 v) { return v.x; }
INL u32 bits_of(i8 v) { return (u8)v; }
INL u32 bits_of(u8 v) { return v; }
INL u32 bits_of(b8 v) { return v.x; }
INL u32 pair_of(f16, float a, float b) { return pack_f16(a, b); }
INL u32 pair_of(bf16, float a, float b) { return pack_bf16(a, b); }
INL u32 pair_of(e4m3, float a, float b) { return pack_e4m3(a, b); }
INL u32 pair_of(e5m2, float a, float b) { return pack_e5m2(a, b); }
template <class T, class R> INL u32 pair_of(T, R a, R b)
{
    return bits_of(from<T>(a)) | bits_of(from<T>(b)) << 8 * sizeof(T);
}

template <class T, int N, hint HINT, class R> INL void put_wide(T *p, const R *v)
{
    words<sizeof(T) * N, HINT> w;
    if constexpr (sizeof(T) == 8) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const T e = from<T>(v[i]);
            const u64 b = *(const u64 *)&e;
            w.q[2 * i] = (u32)b, w.q[2 * i + 1] = (u32)(b >> 32);
        }
    } else if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const T e = from<T>(v[i]);
            w.q[i] = *(const u32 *)&e;
        }
    } else if constexpr (N == 1) {
        p[0] = from<T>(v[0]);
        return;
    } else {
        constexpr int PER = 4 / sizeof(T) < N ? 4 / sizeof(T) : N; /* elements of a word */
        T none;
#pragma unroll
        for (int i = 0; i < N / PER; i++) {
            u32 b = 0;
#pragma unroll
            for (int j = 0; j < PER; j += 2)
                b |= pair_of(none, v[i * PER + j], v[i * PER + (j + 1 < N ? j + 1 : j)]) << 8 * sizeof(T) * j;
            w.q[i] = b;
        }
    }
    w.store(p);
}
template <class T, int N, class R> INL void put_thin(T *p, i64 step, const R *v)
{
#pragma unroll
    for (int i = 0; i < N; i++) p[i * step] = from<T>(v[i]);
}

/* q = x / d for x below 2^31: mul and shift were made for d */
INL u32 quotient(u32 x, u64 by) { return (__umulhi(x, (u32)by) + x) >> (u32)(by >> 32); }

/* ---- totals --------------------------------------------------------------------------------------------------------------- */
template <class S> INL S from_lane_xor(const S &v, int lane)
{
    S r;
    const u32 *a = (const u32 *)&v;
    u32 *b = (u32 *)&r;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(S) / 4); i++) b[i] = __shfl_xor_sync(0xffffffffu, a[i], lane);
    return r;
}
/* over groups of LANES lanes; every lane gets it */
template <int LANES, class S> INL void over_lanes(S &t)
{
#pragma unroll
    for (int i = LANES / 2; i; i >>= 1) t.merge(from_lane_xor(t, i));
}
template <class S> INL S from_lane(const S &v, int lane)
{
    S r;
    const u32 *a = (const u32 *)&v;
    u32 *b = (u32 *)&r;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(S) / 4); i++) b[i] = __shfl_sync(0xffffffffu, a[i], lane);
    return r;
}
/* Parts of a line, joined in groups of PARTS_GROUP one after another, groups one after another: by one thread that has them in turn (take, done), or by a warp from memory. */
enum { PARTS_GROUP = 32 };
template <class S> struct parts_of_line {
    S group, all;
    int n;
    METHOD void clear() { group.clear(), all.clear(), n = 0; }
    METHOD void take(const S &part)
    {
        group.merge(part);
        if (++n == PARTS_GROUP) all.merge(group), group.clear(), n = 0;
    }
    METHOD S done()
    {
        if (n) all.merge(group);
        return all;
    }
};
template <class S> INL S parts_by_warp(const char *from, int bytes, int parts, int lane)
{
    S group, all;
    group.clear(), all.clear();
    for (int i = lane * PARTS_GROUP; i < parts && i < (lane + 1) * PARTS_GROUP; i++)
        group.merge(*(const S *)(from + (i64)i * bytes));
    for (int i = 0; i * PARTS_GROUP < parts; i++) all.merge(from_lane(group, i));
    return all;
}
/* over a block of THREADS threads through WARPS places of shared memory; every thread gets it */
template <int THREADS, class S> INL void over_block(S &t, S *place)
{
    constexpr int WARPS = THREADS / 32;
    over_lanes<32>(t);
    if (WARPS == 1) return;
    if ((threadIdx.x & 31) == 0) place[threadIdx.x / 32] = t;
    __syncthreads();
    t = place[threadIdx.x & (WARPS - 1)];
    over_lanes<WARPS>(t);
}
#endif
