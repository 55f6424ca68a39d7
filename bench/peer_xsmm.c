/* SPDX-License-Identifier: Apache-2.0 */
/* peer_xsmm.c - libxsmm's JIT products. The structures below are those of its interface of 2022 and later (the one with
 * libxsmm_dispatch_gemm); they are passed by value, so their layout is checked at compile time against what was read there. */
#include "bench.h"
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef struct xsmm_shape {
    int m, n, k, lda, ldb, ldc;
    int a_type, b_type, out_type, comp_type; /* enumeration: f64 0, f32 1 */
} xsmm_shape;
typedef struct xsmm_param {
    void *op[4];
    struct {
        void *primary, *rest[5];
    } a, b, c;
} xsmm_param;
_Static_assert(sizeof(xsmm_shape) == 40 && sizeof(xsmm_param) == 176 && offsetof(xsmm_param, c) == 128,
               "libxsmm's layout");
enum { XSMM_TRANS_A = 1, XSMM_TRANS_B = 2, XSMM_BETA_0 = 4 };
typedef void (*xsmm_function)(const void *param);

/* It is column-major: row-major C = A B is C' = B' A', so the operands change places. */
void *xsmm_gemm(const peer *p, int64_t m, int64_t n, int64_t k, bool f64, bool ta, bool tb)
{
    xsmm_function (*dispatch)(xsmm_shape, unsigned, unsigned);
    *(void **)&dispatch = dlsym(p->lib, "libxsmm_dispatch_gemm");
    int type = f64 ? 0 : 1;
    xsmm_shape s = {(int)n, (int)m, (int)k, (int)(tb ? k : n), (int)(ta ? m : k), (int)n, type,
                    type,   type,   type};
    xsmm_function f = dispatch(s, XSMM_BETA_0 | (tb ? XSMM_TRANS_A : 0u) | (ta ? XSMM_TRANS_B : 0u), 0);
    void *kernel;
    memcpy(&kernel, &f, sizeof kernel);
    return kernel;
}

void xsmm_run(void *kernel, const void *a, const void *b, void *c)
{
    xsmm_function f;
    memcpy(&f, &kernel, sizeof f);
    xsmm_param q = {0};
    q.a.primary = (void *)(uintptr_t)b;
    q.b.primary = (void *)(uintptr_t)a;
    q.c.primary = c;
    f(&q);
}
