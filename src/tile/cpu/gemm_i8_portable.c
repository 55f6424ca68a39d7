/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_i8_portable.c - products of bytes widened to 32 bits with the compiler's 16-byte vectors, tiles of 4x8: gemm_bytes.h. */
#include <stdint.h>
#include <string.h>
typedef uint32_t word4 __attribute__((vector_size(16)));
typedef uint32_t word4u __attribute__((vector_size(16), aligned(4), may_alias));
static inline word4 load_part(int n, const int32_t *p)
{
    word4 v = {0, 0, 0, 0};
    memcpy(&v, p, (size_t)n * 4);
    return v;
}
#define V word4
#define VL 4
#define MK int
#define v_zero() ((word4){0, 0, 0, 0})
#define v_load(p) ((word4)(*(const word4u *)(p)))
#define v_store(p, v) (*(word4u *)(p) = (v))
#define v_loadm(m, p) load_part(m, p)
#define v_storem(p, m, v) memcpy(p, &(v), (size_t)(m)*4)
#define v_mask(n) (n)
#define v_add(a, b) ((a) + (b))
#define v_each(x) ((word4){(uint32_t)(x), (uint32_t)(x), (uint32_t)(x), (uint32_t)(x)})
#define v_dot(s, a, b) ((s) + (a) * (b))
#define UNIT 1
#define MR 4
#define NV 2
#define KERNEL gemm_i8_4x8_portable
#include "tile/cpu/gemm_bytes.h"
