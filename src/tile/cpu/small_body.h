/* SPDX-License-Identifier: Apache-2.0 */
/* small_body.h - kernels of small products for one vector width: every height up to what the registers hold, every width,
 * with and without a masked last vector. Narrow results take narrow registers: masked 64-byte accesses would be their limit.
 *
 * Including file: VEC_F64, VEC_BITS, SMALL(name) pasting a suffix, ROWS1..ROWS4 the most rows for 1..4 vectors (0: not built); VEC_PAIRS 1
 * for complex numbers (small_pairs.h), which take two registers a row and vector. May be included once for every width. Each gives
 * SMALL(full) and SMALL(masked), tables indexed as in small_kernel.h. */
#include "tile/cpu/gemm_vec.h"
#include "tile/cpu/small_kernel.h"
#ifndef VEC_PAIRS
#    define VEC_PAIRS 0
#endif

/* Rows of A are reached from three addresses (rows 0, 6 and 12) and distances that the machine's address forms multiply by 1, 2 or 4:
 * left to themselves compilers keep a distance for every row, more than there are registers, and load them back in the loop. */
#undef HALF
#define HALF 6
#undef ROW_OF
#define ROW_OF(i)                 \
    (((i) < HALF       ? a0       \
      : (i) < 2 * HALF ? a6       \
                       : a12) +   \
     ((i) % HALF == 0   ? 0       \
      : (i) % HALF == 1 ? ars     \
      : (i) % HALF == 2 ? 2 * ars \
      : (i) % HALF == 3 ? ars3    \
      : (i) % HALF == 4 ? 4 * ars \
                        : ars5))

#if VEC_PAIRS
#    include "tile/cpu/small_pairs.h"
#else
ST_INLINE void SMALL(tile)(const int mr, const int nv, const int masked, const st_small_shape *s,
                           const T *restrict a, const T *restrict b, T *restrict c, double alpha, double beta)
{
    const double scalars[2] = {alpha, beta};
    const MK mask = v_mask(masked ? s->last : VL - 1);
    for (int64_t t = s->tiles; t > 0; t--) {
        V acc[ST_SMALL_ROWS][ST_SMALL_NV];
        UNROLL
        for (int i = 0; i < mr; i++) UNROLL
        for (int j = 0; j < nv; j++) acc[i][j] = v_zero();
        const int64_t ars = s->ars, acs = s->acs, brs = s->brs;
        int64_t ars3 = 3 * ars, ars5 = 5 * ars;
        const T *pb = b, *a0 = a, *a6 = a + HALF * ars, *a12 = a6 + HALF * ars;
        __asm__("" : "+r"(ars3), "+r"(ars5), "+r"(a6), "+r"(a12));
        for (int64_t p = s->k; p > 0; p--, pb += brs) {
            V bv[ST_SMALL_NV];
            UNROLL
            for (int j = 0; j < nv; j++)
                bv[j] = masked && j == nv - 1 ? v_loadm(mask, pb + j * VL) : v_load(pb + j * VL);
            UNROLL
            for (int i = 0; i < mr; i++) {
                V x = v_set1(*ROW_OF(i));
                UNROLL
                for (int j = 0; j < nv; j++) acc[i][j] = v_fma(x, bv[j], acc[i][j]);
            }
            a0 += acs;
            if (mr > HALF) a6 += acs;
            if (mr > 2 * HALF) a12 += acs;
        }
        T *pc = c;
        const double *ab = scalars;
        /* or GCC keeps row addresses, alpha, beta and 0 in vector registers through the loop over k and spills what is needed there */
        __asm__ volatile("" : "+r"(pc), "+r"(ab) : : "memory");
        const int64_t crs = s->crs;
        if (ab[1] == 0.0) {
            if (ab[0] == 1.0) {
                UNROLL
                for (int i = 0; i < mr; i++, pc += crs) UNROLL
                for (int j = 0; j < nv; j++) {
                    if (masked && j == nv - 1)
                        v_storem(pc + j * VL, mask, acc[i][j]);
                    else
                        v_store(pc + j * VL, acc[i][j]);
                }
            } else {
                const V va = v_set1((T)ab[0]);
                UNROLL
                for (int i = 0; i < mr; i++, pc += crs) UNROLL
                for (int j = 0; j < nv; j++) {
                    V r = v_mul(va, acc[i][j]);
                    if (masked && j == nv - 1)
                        v_storem(pc + j * VL, mask, r);
                    else
                        v_store(pc + j * VL, r);
                }
            }
        } else {
            const V va = v_set1((T)ab[0]), vb = v_set1((T)ab[1]);
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
        a += mr * s->ars;
        c += mr * s->crs;
    }
    (void)mask;
}
#endif

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
#define UP_TO_3(v) BOTH(1, v) BOTH(2, v) BOTH(3, v)
#define UP_TO_4(v) UP_TO_3(v) BOTH(4, v)
#define UP_TO_6(v) UP_TO_4(v) BOTH(5, v) BOTH(6, v)
#define UP_TO_8(v) UP_TO_6(v) BOTH(7, v) BOTH(8, v)
#define UP_TO_12(v) UP_TO_8(v) BOTH(9, v) BOTH(10, v) BOTH(11, v) BOTH(12, v)
#define UP_TO_16(v) UP_TO_12(v) BOTH(13, v) BOTH(14, v) BOTH(15, v) BOTH(16, v)
#define LIST_2(x, v) SMALL(x##_1_##v), SMALL(x##_2_##v)
#define LIST_3(x, v) LIST_2(x, v), SMALL(x##_3_##v)
#define LIST_4(x, v) LIST_3(x, v), SMALL(x##_4_##v)
#define LIST_6(x, v) LIST_4(x, v), SMALL(x##_5_##v), SMALL(x##_6_##v)
#define LIST_8(x, v) LIST_6(x, v), SMALL(x##_7_##v), SMALL(x##_8_##v)
#define LIST_12(x, v) LIST_8(x, v), SMALL(x##_9_##v), SMALL(x##_10_##v), SMALL(x##_11_##v), SMALL(x##_12_##v)

#define LIST_16(x, v) \
    LIST_12(x, v), SMALL(x##_13_##v), SMALL(x##_14_##v), SMALL(x##_15_##v), SMALL(x##_16_##v)

#if ROWS1 == 16
UP_TO_16(1)
#elif ROWS1 == 12
UP_TO_12(1)
#elif ROWS1 == 8
UP_TO_8(1)
#elif ROWS1 == 6
UP_TO_6(1)
#else
UP_TO_4(1)
#endif
#if ROWS2 == 12
UP_TO_12(2)
#elif ROWS2 == 6
UP_TO_6(2)
#elif ROWS2 == 4
UP_TO_4(2)
#elif ROWS2 == 2
BOTH(1, 2)
BOTH(2, 2)
#endif
#if ROWS3 == 8
UP_TO_8(3)
#elif ROWS3 == 4
UP_TO_4(3)
#endif
#if ROWS4 == 6
UP_TO_6(4)
#elif ROWS4 == 3
UP_TO_3(4)
#endif

/* as many numbers as ROWS1..ROWS4 say */
#define LIST_OF_2(rows, x, v) LIST_##rows(x, v)
#define LIST_OF(rows, x, v) LIST_OF_2(rows, x, v)
#if ROWS4
#    define TABLE(x)                                                                              \
        {                                                                                         \
            [0] = LIST_OF(ROWS1, x, 1), [16] = LIST_OF(ROWS2, x, 2), [32] = LIST_OF(ROWS3, x, 3), \
            [48] = LIST_OF(ROWS4, x, 4)                                                           \
        }
#elif ROWS2
#    define TABLE(x)                                                \
        {                                                           \
            [0] = LIST_OF(ROWS1, x, 1), [16] = LIST_OF(ROWS2, x, 2) \
        }
#else
#    define TABLE(x)                   \
        {                              \
            [0] = LIST_OF(ROWS1, x, 1) \
        }
#endif
static const st_small_fn SMALL(full)[ST_SMALL_NV * ST_SMALL_ROWS] = TABLE(f);
static const st_small_fn SMALL(masked)[ST_SMALL_NV * ST_SMALL_ROWS] = TABLE(p);

#undef ONE
#undef BOTH
#undef UP_TO_3
#undef UP_TO_4
#undef UP_TO_6
#undef UP_TO_8
#undef UP_TO_12
#undef UP_TO_16
#undef LIST_2
#undef LIST_3
#undef LIST_4
#undef LIST_6
#undef LIST_8
#undef LIST_12
#undef LIST_16
#undef LIST_OF
#undef LIST_OF_2
#undef TABLE
#undef ROWS1
#undef ROWS2
#undef ROWS3
#undef ROWS4
#undef SMALL
#undef VEC_BITS
