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

extern "C" __global__ void __launch_bounds__(256) st_copy(char *dst, const char *src, const walk w, i64 count)
{
    const i64 step = (i64)gridDim.x * 256;
    const elem value = value_of(w.value);
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < count; i += step) {
        i64 d, s;
        if (count < (1ll << 31))
            offsets<unsigned>(w, (unsigned)i, d, s);
        else
            offsets<u64>(w, (u64)i, d, s);
        *(elem *)(dst + d) = w.fill ? value : *(const elem *)(src + s);
    }
}

#else
// Tiles of 32 x 32 through shared memory: dim n-1 is dense in the output, dim n-2 in the input (the host puts it there). blockIdx.x: tiles;
// blockIdx.y and on: the other dims.
extern "C" __global__ void __launch_bounds__(256) st_transpose(char *dst, const char *src, const walk w, i64 others)
{
    __shared__ elem tile[32][33];
    const int x = threadIdx.x & 31, y = threadIdx.x >> 5, a = w.n - 1, b = w.n - 2;
    const i64 tiles = (w.len[a] + 31) / 32, ta = (i64)blockIdx.x % tiles * 32, tb = (i64)blockIdx.x / tiles * 32;
    for (i64 o = blockIdx.y; o < others; o += gridDim.y) {
        i64 d = 0, s = 0, i = o;
        for (int k = b - 1; k >= 0; k--) {
            i64 q = i / w.len[k], r = i - q * w.len[k];
            d += r * w.d[k];
            s += r * w.s[k];
            i = q;
        }
        for (int j = y; j < 32; j += 8)
            if (ta + j < w.len[a] && tb + x < w.len[b])
                tile[j][x] = *(const elem *)(src + s + (ta + j) * w.s[a] + (tb + x) * w.s[b]);
        __syncthreads();
        for (int j = y; j < 32; j += 8)
            if (ta + x < w.len[a] && tb + j < w.len[b])
                *(elem *)(dst + d + (ta + x) * w.d[a] + (tb + j) * w.d[b]) = tile[x][j];
        __syncthreads();
    }
}
#endif
