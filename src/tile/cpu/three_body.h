/* SPDX-License-Identifier: Apache-2.0 */
/* three_body.h - the two ends of a complex product by three real ones: pairs to separate parts, and three real tiles to complex elements.
 *
 * Including file: VEC_F64, VEC_BITS, MR and NR (lines of the real kernel's panels), REAL (its id) and KERNEL (the row's id). */
#include "tile/cpu/three_kernel.h"
#include "tile/cpu/pack_pairs.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#if VL == 16
#    define evens(x, y) \
        __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#    define odds(x, y) \
        __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#    define low_pairs(x, y) \
        __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#    define high_pairs(x, y) \
        __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif VL == 8
#    define evens(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14)
#    define odds(x, y) __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15)
#    define low_pairs(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#    define high_pairs(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#elif VL == 4
#    define evens(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6)
#    define odds(x, y) __builtin_shufflevector(x, y, 1, 3, 5, 7)
#    define low_pairs(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#    define high_pairs(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#else
#    define evens(x, y) __builtin_shufflevector(x, y, 0, 2)
#    define odds(x, y) __builtin_shufflevector(x, y, 1, 3)
#    define low_pairs(x, y) __builtin_shufflevector(x, y, 0, 2)
#    define high_pairs(x, y) __builtin_shufflevector(x, y, 1, 3)
#endif

static void pack_a(void *dst, int64_t w, int64_t k, const void *src, int64_t ls, int64_t ks)
{
    pack_lines(MR, dst, w, k, src, ls, ks);
}
static void pack_b(void *dst, int64_t w, int64_t k, const void *src, int64_t ls, int64_t ks)
{
    pack_lines(NR, dst, w, k, src, ls, ks);
}

static void split(int64_t n, const void *pairs, int conj, void *re, void *im, void *sum)
{
    const T *s = pairs;
    T *r = re, *m = im, *t = sum;
    const V sign = v_set1(conj ? (T)-1 : (T)1);
    int64_t i = 0;
    for (; i + VL <= n; i += VL, s += 2 * VL) {
        const V a = v_load(s), b = v_load(s + VL), x = evens(a, b), y = v_mul(sign, odds(a, b));
        v_store(r + i, x);
        v_store(m + i, y);
        v_store(t + i, v_add(x, y));
    }
    for (; i < n; i++, s += 2) {
        r[i] = s[0];
        m[i] = conj ? -s[1] : s[1];
        t[i] = r[i] + m[i];
    }
}

static const T three_turn[16] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};

/* a vector of complex elements to C */
ST_INLINE void to_c(T *c, int64_t numbers, V y, const st_three_factors *f)
{
    const V turn = v_load(three_turn);
    const MK mask = v_mask((int)(numbers < VL ? numbers : VL - 1));
    V x = v_mul(v_set1((T)f->alpha), y);
    if (f->alpha_im != 0) x = v_fma(v_mul(turn, v_set1((T)f->alpha_im)), v_swap(y), x);
    if (f->beta != 0 || f->beta_im != 0) {
        const V old = numbers >= VL ? v_load(c) : v_loadm(mask, c);
        x = v_fma(v_set1((T)f->beta), old, x);
        if (f->beta_im != 0) x = v_fma(v_mul(turn, v_set1((T)f->beta_im)), v_swap(old), x);
    }
    if (numbers >= VL)
        v_store(c, x);
    else
        v_storem(c, mask, x);
}

static void join(int64_t h, int64_t w, const void *p, const void *q, const void *r, int64_t ld, void *c,
                 int64_t ldc, const st_three_factors *f)
{
    const T *a = p, *b = q, *s = r;
    T *to = c;
    const V minus = v_set1((T)-1);
    for (int64_t i = 0; i < h; i++, a += ld, b += ld, s += ld, to += 2 * ldc)
        for (int64_t j = 0; j < w; j += VL) {
            const V x = v_load(a + j), y = v_load(b + j), re = v_fma(minus, y, x),
                    im = v_fma(minus, y, v_fma(minus, x, v_load(s + j)));
            to_c(to + 2 * j, 2 * (w - j), low_pairs(re, im), f);
            if (2 * (w - j) > VL) to_c(to + 2 * j + VL, 2 * (w - j) - VL, high_pairs(re, im), f);
        }
}

extern const st_packed_kernel PASTE(st_kernel_, REAL);
const st_three_kernel PASTE(st_kernel_, KERNEL) = {&PASTE(st_kernel_, REAL), pack_a, pack_b, split, join};
