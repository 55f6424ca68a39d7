/* SPDX-License-Identifier: Apache-2.0 */
/* pack_pairs.h - packing of complex elements: their two numbers stay side by side. A c64 has the size of a double and is packed as one; c128 is
 * moved in 16-byte pieces, lines that are contiguous along k four steps (a cache line) at a time. Leaves the vectors of VEC_F64 defined. */
#if !VEC_F64
#    undef VEC_F64
#    define VEC_F64 1
#    include "tile/cpu/gemm_vec.h"
#    include "tile/cpu/pack_body.h"
#    undef VEC_F64
#    define VEC_F64 0
#    include "tile/cpu/gemm_vec.h"
#else
#    include "tile/cpu/gemm_vec.h"
#    define pack_lines pack_lines_of_numbers
#    include "tile/cpu/pack_body.h"
#    undef pack_lines
typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));
ST_INLINE void pack_lines(const int W, void *dst, int64_t w, int64_t k, const void *src, int64_t ls,
                          int64_t ks)
{
    const pair *s = src;
    pair *d = dst;
    if (ls == 1 && ks != 1) {
        pack_copied(2 * W, dst, 2 * w, k, src, 2 * ks);
        return;
    }
    for (int64_t i0 = 0; i0 < w; i0 += W, s += W * ls, d += W * k) {
        const int64_t n = w - i0 < W ? w - i0 : W;
        int64_t p = 0;
        for (; ks == 1 && p + 4 <= k; p += 4)
            for (int64_t i = 0; i < W; i++)
                for (int q = 0; q < 4; q++) d[(p + q) * W + i] = i < n ? s[i * ls + p + q] : (pair){0, 0};
        for (; p < k; p++)
            for (int64_t i = 0; i < W; i++) d[p * W + i] = i < n ? s[i * ls + p * ks] : (pair){0, 0};
    }
}
#endif
