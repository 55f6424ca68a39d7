/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_gpu.c - a plain real product on a GPU whose plan is known: found by its sizes, strides and type, without describing the problem. A short kernel's
 * launch is otherwise half as long as the checks, the description and its hash. What depends on addresses is looked at in every call; whatever is not
 * clearly fine goes the long way, which finds the words for what is wrong. */
#include "blas/product.h"
#include "runtime/handle.h"
#include <string.h>

static bool key_of(const strata_gemm_plain *p, int64_t key[ST_MEMO_WORDS])
{
    const int64_t k[ST_MEMO_WORDS] = {p->type,  p->m,     p->k,     p->n,     p->a_row,
                                      p->a_col, p->b_row, p->b_col, p->c_row, p->c_col};
    const int64_t strides = p->a_row | p->a_col | p->b_row | p->b_col | p->c_row | p->c_col;
    memcpy(key, k, sizeof k);
    return strides >= 0 && p->m > 0 && p->k > 0 && p->n > 0 && !st_type_is_complex(p->type);
}

/* bytes from the first element to behind the last one; the long way has seen that they are no more than memory holds */
static int64_t bytes_of(int64_t rows, int64_t cols, int64_t row, int64_t col, int64_t size)
{
    return ((rows - 1) * row + (cols - 1) * col + 1) * size;
}

bool st_gemm_recall(strata_handle *h, const strata_gemm_plain *p, strata_status *s)
{
    int64_t key[ST_MEMO_WORDS];
    if (!key_of(p, key) || !p->a || !p->b || !p->c) return false;
    const strata_plan *const plan = st_plan_recall(h, key);
    if (!plan) return false;
    const int64_t es = (int64_t)strata_type_bits((strata_type)p->type) / 8;
    const char *const a = p->a, *const b = p->b, *const c = p->c,
                      *const a1 = a + bytes_of(p->m, p->k, p->a_row, p->a_col, es),
                      *const b1 = b + bytes_of(p->k, p->n, p->b_row, p->b_col, es),
                      *const c1 = c + bytes_of(p->m, p->n, p->c_row, p->c_col, es);
    if (!(c1 <= a || a1 <= c) || !(c1 <= b || b1 <= c)) return false;
    const strata_scalar alpha = strata_real(p->alpha), beta = strata_real(p->beta);
    const strata_run r = {.alpha = &alpha, .beta = &beta};
    *s = st_plan_execute(h, plan, (void *const[]){(void *)(uintptr_t)a, (void *)(uintptr_t)b, p->c}, &r);
    return true;
}

void st_gemm_remember(strata_handle *h, const strata_gemm_plain *p, const strata_tensor *A,
                      const strata_tensor *B, const strata_tensor *C)
{
    int64_t key[ST_MEMO_WORDS];
    st_contract c;
    const strata_plan *plan;
    if (!key_of(p, key)) return;
    st_product_describe(A, B, C, &c);
    const st_problem pr = {ST_OP_CONTRACT, "strata_gemm", &c, sizeof c, NULL};
    if (!st_plan_get(h, &pr, &plan)) st_plan_keep(h, key, plan); /* it is there: the product has just run */
}
