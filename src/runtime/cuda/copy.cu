// SPDX-License-Identifier: Apache-2.0
// copy.cu - copies and fills with any strides. ESIZE bytes an element (1, 2, 4, 8, 16); a walk is a list of dims with the output's
// longest stride first, strides in bytes. With -DTRANSPOSE the image holds st_transpose, else st_copy.
#ifndef ESIZE
#define ESIZE 4
#endif
typedef long long i64;
typedef unsigned long long u64;
#if ESIZE == 1
typedef unsigned char elem;
#elif ESIZE == 2
typedef unsigned short elem;
#elif ESIZE == 4
typedef unsigned elem;
#elif ESIZE == 8
typedef uint2 elem;
#else
typedef uint4 elem;
#endif
struct walk {
    int n, fill;
    i64 len[8], d[8], s[8];
    uint4 value; // of a fill
};

#ifndef TRANSPOSE
__device__ __forceinline__ elem value_of(const uint4 &v)
{
#if ESIZE <= 4
    return (elem)v.x;
#elif ESIZE == 8
    return make_uint2(v.x, v.y);
#else
    return v;
#endif
}

// Offsets of element i, its index taken apart from the innermost dim outwards.
template <typename T> __device__ __forceinline__ void offsets(const walk &w, T i, i64 &d, i64 &s)
{
    d = s = 0;
    for (int k = w.n - 1; k > 0; k--) {
        T len = (T)w.len[k], q = i / len, r = i - q * len;
        d += (i64)r * w.d[k];
        s += (i64)r * w.s[k];
        i = q;
    }
    if (w.n) {
        d += (i64)i * w.d[0];
        s += (i64)i * w.s[0];
    }
}

// Four elements a thread in flight: one is not enough to keep the memory busy.
extern "C" __global__ void __launch_bounds__(256) st_copy(char *dst, const char *src, const walk w, i64 count)
{
    const elem value = value_of(w.value);
    for (i64 first = (i64)blockIdx.x * 1024 + threadIdx.x; first < count; first += (i64)gridDim.x * 1024) {
        i64 d[4], s[4];
        elem v[4];
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const i64 i = first + u * 256 < count ? first + u * 256 : first;
            if (count < (1ll << 31))
                offsets<unsigned>(w, (unsigned)i, d[u], s[u]);
            else
                offsets<u64>(w, (u64)i, d[u], s[u]);
            v[u] = value;
        }
        if (!w.fill) {
#pragma unroll
            for (int u = 0; u < 4; u++) v[u] = *(const elem *)(src + s[u]);
        }
#pragma unroll
        for (int u = 0; u < 4; u++)
            if (first + u * 256 < count) *(elem *)(dst + d[u]) = v[u];
    }
}
#else
// Tiles through shared memory: dim n-1 is dense in the output, dim n-2 in the input (the host puts it there). blockIdx.x: tiles;
// blockIdx.y and on: the other dims. A tile's loads are all in flight before the first is stored.
#if ESIZE <= 4
#define TILE 64
#else
#define TILE 32
#endif
extern "C" __global__ void __launch_bounds__(256) st_transpose(char *dst, const char *src, const walk w, i64 others)
{
    __shared__ elem tile[TILE][TILE + 1];
    constexpr int STEP = 256 / TILE, EACH = TILE / STEP;
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE, a = w.n - 1, b = w.n - 2;
    const i64 tiles = (w.len[a] + TILE - 1) / TILE, ta = (i64)blockIdx.x % tiles * TILE,
              tb = (i64)blockIdx.x / tiles * TILE;
    for (i64 o = blockIdx.y; o < others; o += gridDim.y) {
        i64 d = 0, s = 0, i = o;
        for (int k = b - 1; k >= 0; k--) {
            i64 q = i / w.len[k], r = i - q * w.len[k];
            d += r * w.d[k];
            s += r * w.s[k];
            i = q;
        }
        elem v[EACH];
        const char *from = src + s + (ta + y) * w.s[a] + (tb + x) * w.s[b];
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (ta + y + j * STEP < w.len[a] && tb + x < w.len[b]) v[j] = *(const elem *)(from + j * STEP * w.s[a]);
#pragma unroll
        for (int j = 0; j < EACH; j++) tile[y + j * STEP][x] = v[j];
        __syncthreads();
        char *to = dst + d + (ta + x) * w.d[a] + (tb + y) * w.d[b];
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (ta + x < w.len[a] && tb + y + j * STEP < w.len[b]) *(elem *)(to + j * STEP * w.d[b]) = tile[x][y + j * STEP];
        __syncthreads();
    }
}
#endif
