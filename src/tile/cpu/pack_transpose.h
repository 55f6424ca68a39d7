/* SPDX-License-Identifier: Apache-2.0 */
/* pack_transpose.h - one panel of w <= W lines, each contiguous along k, by transposing square blocks in registers.
 *
 * Including file: PACK_NAME the function, TR rows of a block, TV its vector, tv_load, tv_store, tv_zero, tv_transpose(r[TR]).
 * Full stores in ascending steps: the tail of each is overwritten by the next one, the panel's last by the next panel (or it
 * falls into the slack); hence groups of lines in descending order. */
ST_INLINE void PACK_NAME(const int W, T *restrict dst, int64_t w, int64_t k, const T *src, int64_t ls)
{
    int64_t p = 0;
    for (; p + TR <= k; p += TR) {
#pragma GCC unroll 1
        for (int i0 = (W - 1) / TR * TR; i0 >= 0; i0 -= TR) {
            TV r[TR];
            const T *s = src + i0 * ls + p;
            T *d = dst + p * W + i0;
            if (w >= i0 + TR) {
                UNROLL
                for (int i = 0; i < TR; i++, s += ls) r[i] = tv_load(s);
            } else {
                UNROLL
                for (int i = 0; i < TR; i++, s += ls) r[i] = i0 + i < w ? tv_load(s) : tv_zero();
            }
            /* the next panel's lines: no hardware prefetch goes from one row to another */
            UNROLL
            for (int i = 0; i < (W < TR ? W : TR); i++) __builtin_prefetch(src + (W + i0 + i) * ls + p);
            tv_transpose(r);
            UNROLL
            for (int q = 0; q < TR; q++) tv_store(d + q * W, r[q]);
        }
    }
    pack_gather(W, dst + p * W, w, k - p, src + p, ls, 1);
}
#undef PACK_NAME
#undef TR
#undef TV
#undef tv_load
#undef tv_store
#undef tv_zero
#undef tv_transpose
