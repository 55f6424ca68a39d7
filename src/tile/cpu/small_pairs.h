/* SPDX-License-Identifier: Apache-2.0 */
/* small_pairs.h - the tile of small_body.h for complex numbers, by the arithmetic of the packed product (gemm_body.h), so with its bits: a row of A
 * is two, its real and its imaginary parts, each times B as it lies: P = sum of re(a) (re b, im b), Q = sum of im(a) (re b, im b).
 * The store joins them, a b = (P.re - Q.im, P.im + Q.re), and gives conjugates their signs there.
 *
 * Strides and lanes are in complex elements outside, in numbers inside. Included once for every width. */
#ifndef ST_TILE_CPU_SMALL_PAIRS_H
#    define ST_TILE_CPU_SMALL_PAIRS_H
#    define SIGNS(re, im)                                                  \
        {                                                                  \
            re, im, re, im, re, im, re, im, re, im, re, im, re, im, re, im \
        }
static const T small_sign_p[4][16] = {SIGNS(1, 1), SIGNS(1, 1), SIGNS(1, -1), SIGNS(1, -1)};
static const T small_sign_q[4][16] = {SIGNS(-1, 1), SIGNS(1, -1), SIGNS(1, 1), SIGNS(-1, -1)};
#endif

/* C := alpha y + beta C of a tile whose sums y lie one after the other; not unrolled: with its branches it would be most of every kernel.
 * An imaginary part of 0 is no factor (0 * Inf is not 0). */
static ST_NOINLINE void SMALL(finish)(const T *y, int mr, int nv, int last, int64_t crs, const double *ab,
                                      T *restrict c)
{
    const V turn = v_load(small_sign_q[0]), va = v_set1((T)ab[0]), vb = v_set1((T)ab[1]),
            ia = v_mul(turn, v_set1((T)ab[2])), ib = v_mul(turn, v_set1((T)ab[3]));
    const bool plain = ab[1] == 0.0 && ab[3] == 0.0, real = ab[2] == 0.0, real_b = ab[3] == 0.0;
    const MK mask = v_mask(last);
    for (int i = 0; i < mr; i++, c += crs)
        for (int j = 0; j < nv; j++, y += VL) {
            const bool part = j == nv - 1 && last < VL;
            const V x = v_load(y);
            V r = v_mul(va, x);
            if (!real) r = v_fma(ia, v_swap(x), r);
            if (!plain) {
                const V old = part ? v_loadm(mask, c + j * VL) : v_load(c + j * VL);
                r = v_fma(vb, old, r);
                if (!real_b) r = v_fma(ib, v_swap(old), r);
            }
            if (part)
                v_storem(c + j * VL, mask, r);
            else
                v_store(c + j * VL, r);
        }
}

ST_INLINE void SMALL(tile)(const int mr, const int nv, const int masked, const st_small_shape *s,
                           const T *restrict a, const T *restrict b, T *restrict c, double alpha, double beta)
{
    const double scalars[4] = {alpha, beta, s->pairs->alpha_im, s->pairs->beta_im};
    const MK mask = v_mask(masked ? 2 * (int)s->last : VL - 1);
    for (int64_t t = s->tiles; t > 0; t--) {
        V re[ST_SMALL_ROWS / 2][ST_SMALL_NV], im[ST_SMALL_ROWS / 2][ST_SMALL_NV];
        UNROLL
        for (int i = 0; i < mr; i++) UNROLL
        for (int j = 0; j < nv; j++) re[i][j] = im[i][j] = v_zero();
        const int64_t ars = 2 * s->ars, acs = 2 * s->acs, brs = 2 * s->brs;
        int64_t ars3 = 3 * ars, ars5 = 5 * ars;
        const T *pb = b, *a0 = a, *a6 = a + HALF * ars, *a12 = a0;
        __asm__("" : "+r"(ars3), "+r"(ars5), "+r"(a6));
        for (int64_t p = s->k; p > 0; p--, pb += brs) {
            V bv[ST_SMALL_NV];
            UNROLL
            for (int j = 0; j < nv; j++)
                bv[j] = masked && j == nv - 1 ? v_loadm(mask, pb + j * VL) : v_load(pb + j * VL);
            UNROLL
            for (int i = 0; i < mr; i++) {
                const T *e = ROW_OF(i);
                const V x = v_set1(e[0]), y = v_set1(e[1]);
                UNROLL
                for (int j = 0; j < nv; j++) {
                    re[i][j] = v_fma(x, bv[j], re[i][j]);
                    im[i][j] = v_fma(y, bv[j], im[i][j]);
                }
            }
            a0 += acs;
            if (mr > HALF) a6 += acs;
        }
        T *pc = c;
        const double *ab = scalars;
        /* as in small_body.h: nothing of what follows in registers through the loop above */
        __asm__ volatile("" : "+r"(pc), "+r"(ab) : : "memory");
        const int64_t crs = 2 * s->crs, conj = s->pairs->conj;
        const V sq = v_load(small_sign_q[conj]);
        if (ab[0] == 1.0 && ab[1] == 0.0 && ab[2] == 0.0 && ab[3] == 0.0 && conj == 0) {
            UNROLL
            for (int i = 0; i < mr; i++, pc += crs) UNROLL
            for (int j = 0; j < nv; j++) {
                const V y = v_fma(sq, v_swap(im[i][j]), re[i][j]);
                if (masked && j == nv - 1)
                    v_storem(pc + j * VL, mask, y);
                else
                    v_store(pc + j * VL, y);
            }
        } else {
            _Alignas(64) T y[ST_SMALL_ROWS / 2 * ST_SMALL_NV * VL];
            const V sp = v_load(small_sign_p[conj]);
            T *py = y;
            __asm__("" : "+r"(py)); /* not by the stack pointer: tools/check_kernels would see spills */
            UNROLL
            for (int i = 0; i < mr; i++) UNROLL
            for (int j = 0; j < nv; j++)
                v_store(py + (i * nv + j) * VL, v_fma(sq, v_swap(im[i][j]), v_mul(sp, re[i][j])));
            SMALL(finish)(py, mr, nv, masked ? 2 * (int)s->last : VL, crs, ab, pc);
        }
        a += mr * ars;
        c += mr * crs;
    }
    (void)mask;
}
