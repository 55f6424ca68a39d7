/* SPDX-License-Identifier: Apache-2.0 */
/* small_body.h - kernels of small products for one vector width: every height up to what the registers hold, every width,
 * with and without a masked last vector. Narrow results take narrow registers: masked 64-byte accesses would be their limit.
 *
 * Including file: VEC_F64, VEC_BITS, SMALL(name) pasting a suffix, ROWS1..ROWS4 the most rows for 1..4 vectors (0: not built). May be
 * included once for every width. Each gives SMALL(full) and SMALL(masked), tables indexed as in small_kernel.h. */
#include "tile/cpu/gemm_vec.h"
#include "tile/cpu/small_kernel.h"

ST_INLINE void SMALL(step)(const int mr, const int nv, const int masked, MK mask,
                           V acc[ST_SMALL_ROWS][ST_SMALL_NV], const T *a, int64_t ars, const T *b)
{
    V bv[ST_SMALL_NV];
    UNROLL
    for (int j = 0; j < nv; j++)
        bv[j] = masked && j == nv - 1 ? v_loadm(mask, b + j * VL) : v_load(b + j * VL);
    UNROLL
    for (int i = 0; i < mr; i++) {
        V x = v_set1(a[i * ars]);
        UNROLL
        for (int j = 0; j < nv; j++) acc[i][j] = v_fma(x, bv[j], acc[i][j]);
    }
}

ST_INLINE void SMALL(tile)(const int mr, const int nv, const int masked, const st_small_shape *s,
                           const T *restrict a, const T *restrict b, T *restrict c, double alpha, double beta)
{
    const double scalars[2] = {alpha, beta};
    const MK mask = v_mask(masked ? s->last : VL - 1);
    const int64_t ars = s->ars, acs = s->acs, brs = s->brs, crs = s->crs;
    for (int64_t t = s->tiles; t > 0; t--, a += mr * ars, c += mr * crs) {
        V acc[ST_SMALL_ROWS][ST_SMALL_NV];
        UNROLL
        for (int i = 0; i < mr; i++) UNROLL
        for (int j = 0; j < nv; j++) acc[i][j] = v_zero();
        const T *pa = a, *pb = b;
        for (int64_t p = s->k; p > 0; p--, pa += acs, pb += brs)
            SMALL(step)(mr, nv, masked, mask, acc, pa, ars, pb);
        T *pc = c;
        const double *ab = scalars;
        /* or GCC keeps row addresses, alpha, beta and 0 in vector registers through the loop over k and spills what is needed there */
        __asm__ volatile("" : "+r"(pc), "+r"(ab) : : "memory");
        const V va = v_set1((T)ab[0]);
        if (ab[1] == 0.0) {
            UNROLL
            for (int i = 0; i < mr; i++, pc += crs) UNROLL
            for (int j = 0; j < nv; j++) {
                V r = v_mul(va, acc[i][j]);
                if (masked && j == nv - 1)
                    v_storem(pc + j * VL, mask, r);
                else
                    v_store(pc + j * VL, r);
            }
        } else {
            const V vb = v_set1((T)ab[1]);
            UNROLL
            for (int i = 0; i < mr; i++, pc += crs) UNROLL
            for (int j = 0; j < nv; j++) {
                V r = v_mul(va, acc[i][j]);
                if (masked && j == nv - 1)
                    v_storem(pc + j * VL, mask, v_fma(vb, v_loadm(mask, pc + j * VL), r));
                else
                    v_store(pc + j * VL, v_fma(vb, v_load(pc + j * VL), r));
            }
        }
    }
    (void)mask;
}

/* Kernels of 16-byte vectors leave the upper halves as they find them; when an earlier caller left those dirty, every SSE instruction of the
 * caller's merges into them (a call of strata_gemm took 190 ns instead of 35). Wider kernels clear them anyway. */
#undef CLEAN
#if defined(__AVX2__) && VEC_BITS == 128
#    define CLEAN() _mm256_zeroupper()
#else
#    define CLEAN() (void)0
#endif
#define ONE(m, v, x, name)                                                                              \
    static void SMALL(name##_##m##_##v)(const st_small_shape *s, const void *a, const void *b, void *c, \
                                        double alpha, double beta)                                      \
    {                                                                                                   \
        SMALL(tile)(m, v, x, s, a, b, c, alpha, beta);                                                  \
        CLEAN();                                                                                        \
    }
#define BOTH(m, v) ONE(m, v, 0, f) ONE(m, v, 1, p)
#define UP_TO_4(v) BOTH(1, v) BOTH(2, v) BOTH(3, v) BOTH(4, v)
#define UP_TO_6(v) UP_TO_4(v) BOTH(5, v) BOTH(6, v)
#define UP_TO_8(v) UP_TO_6(v) BOTH(7, v) BOTH(8, v)
#define UP_TO_12(v) UP_TO_8(v) BOTH(9, v) BOTH(10, v) BOTH(11, v) BOTH(12, v)
#define LIST_4(x, v) SMALL(x##_1_##v), SMALL(x##_2_##v), SMALL(x##_3_##v), SMALL(x##_4_##v)
#define LIST_6(x, v) LIST_4(x, v), SMALL(x##_5_##v), SMALL(x##_6_##v)
#define LIST_8(x, v) LIST_6(x, v), SMALL(x##_7_##v), SMALL(x##_8_##v)
#define LIST_12(x, v) LIST_8(x, v), SMALL(x##_9_##v), SMALL(x##_10_##v), SMALL(x##_11_##v), SMALL(x##_12_##v)

#if ROWS1 == 12
UP_TO_12(1)
#else
UP_TO_8(1)
#endif
#if ROWS2 == 12
UP_TO_12(2)
#elif ROWS2 == 6
UP_TO_6(2)
#elif ROWS2 == 4
UP_TO_4(2)
#endif
#if ROWS3
UP_TO_8(3)
#endif
#if ROWS4
UP_TO_6(4)
#endif

#if ROWS4
#    define TABLE(x)                                                                            \
        {                                                                                       \
            [0] = LIST_12(x, 1), [12] = LIST_12(x, 2), [24] = LIST_8(x, 3), [36] = LIST_6(x, 4) \
        }
#elif ROWS2 == 6
#    define TABLE(x)                                 \
        {                                            \
            [0] = LIST_12(x, 1), [12] = LIST_6(x, 2) \
        }
#elif ROWS2 == 4
#    define TABLE(x)                                \
        {                                           \
            [0] = LIST_8(x, 1), [12] = LIST_4(x, 2) \
        }
#else
#    define TABLE(x)            \
        {                       \
            [0] = LIST_12(x, 1) \
        }
#endif
static const st_small_fn SMALL(full)[ST_SMALL_NV * ST_SMALL_ROWS] = TABLE(f);
static const st_small_fn SMALL(masked)[ST_SMALL_NV * ST_SMALL_ROWS] = TABLE(p);

#undef ONE
#undef BOTH
#undef UP_TO_4
#undef UP_TO_6
#undef UP_TO_8
#undef UP_TO_12
#undef LIST_4
#undef LIST_6
#undef LIST_8
#undef LIST_12
#undef TABLE
#undef ROWS1
#undef ROWS2
#undef ROWS3
#undef ROWS4
#undef SMALL
#undef VEC_BITS
