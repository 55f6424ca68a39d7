/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_sm90_scaled.c - products of 8-bit floats whose blocks have scales: A's by rows (any number of them together) and 128 of k, B's by columns and 128 of k, as
 * cublasLt's VEC128_32F and BLK128x128_32F. The kernels that add every 128 products in f32 multiply them by both scales as they do so.
 *
 * B's blocks have at least a tile's columns, so that a thread needs one number of B and two of A for each 128 of k; they are fetched a step ahead. */
#include "tile/cuda/gemm_sm90.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool st_sm90_scale(st_sm90 *q, const st_block_scale scale[2], char *why, size_t n)
{
    const bool exchanged = q->g.swapped != q->turned;
    const st_block_scale *a = &scale[exchanged], *b = &scale[!exchanged];
    const st_sm90_row *row = q->row;
    if (row->kind != ST_SM90_PROMOTE || row->bn > 128 || q->batch || q->outer > 1) {
        snprintf(why, n, "multiplies no blocks by scales");
        return false;
    }
    if (b->rows && b->rows < q->N && b->rows % row->bn) {
        snprintf(why, n, "has tiles of %d columns, and the scales are of %lld", row->bn, (long long)b->rows);
        return false;
    }
    q->scales = (a->rows ? 1 : 0) | (b->rows ? 2 : 0);
    q->scale = (st_sm90_scales){
        .a_row = a->row,
        .a_k = a->k,
        .b_col = b->row,
        .b_k = b->k,
        .a_rows = (int32_t)st_max64(st_min64(a->rows, q->M), 1),
        .b_cols = (int32_t)(b->rows && b->rows < q->N ? b->rows : (int64_t)1 << 30),
    };
    return true;
}

/* The row of least predicted time that takes the problem with its scales. */
static bool choose(strata_handle *h, const st_contract *c, const char *text, const st_block_scale scale[2],
                   size_t limit, st_candidate *best, char *why, size_t n)
{
    int count;
    const st_sm90_row *row = st_sm90_rows(&count);
    best->us = -1;
    for (int i = 0; i < count; i++) {
        st_sm90 q = {.row = &row[i]};
        char refused[160];
        if (row[i].kind != ST_SM90_PROMOTE) continue;
        if (!st_sm90_configure(&row[i], c, text, h->gpu, &q, refused, sizeof refused) ||
            !st_sm90_scale(&q, scale, refused, sizeof refused)) {
            snprintf(why, n, "%s", refused);
            continue;
        }
        if (q.workspace > limit) {
            snprintf(why, n, "needs %zu bytes of workspace, the limit is %zu", q.workspace, limit);
            continue;
        }
        if (best->us >= 0 && q.us >= best->us) continue;
        memset(best, 0, sizeof *best);
        st_sm90_candidate(c, &q, true, best);
        best->order =
            "k ascending in groups of 128 that the tensor cores sum, groups times their scales added in "
            "f32 in order";
    }
    best->provider = &st_sm90_provider;
    return best->us >= 0;
}

static strata_status make(strata_handle *h, const char *who, const st_contract *c, const char *epilogue,
                          const st_block_scale scale[2], strata_plan **plan)
{
    st_candidate x = {.us = -1};
    char why[160] = "";
    if (h->gpu->cc != 90 || st_contract_rules(c, why, sizeof why) ||
        !choose(h, c, epilogue, scale, h->workspace_limit, &x, why, sizeof why))
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                       "%s: no kernel multiplies blocks by their scales%s%s", who, *why ? ": it " : "", why);
    const st_problem pr = {ST_OP_CONTRACT, who, c, sizeof *c, epilogue};
    const strata_status s = st_sm90_build(h, &pr, &x, scale, plan);
    if (s) return s;
    strata_plan *p = *plan;
    p->op = ST_OP_CONTRACT;
    p->where = ST_ON_CUDA;
    p->chosen = x;
    p->operands += 2;
    free(p->extent); /* a step of other plans, which know what it touches */
    p->extent = NULL;
    snprintf(p->device, sizeof p->device, "%s", h->device);
    snprintf(p->order, sizeof p->order, "%s", x.order);
    return STRATA_OK;
}

bool st_tile_scaled_fits(strata_handle *h, const st_contract *c, const char *epilogue,
                         const st_block_scale scale[2], double *us, size_t *workspace, char *why, size_t n)
{
    st_contract exact = *c;
    st_candidate as_is, any;
    snprintf(why, n, "only devices of compute capability 9.0 have kernels that multiply blocks by scales");
    if (!h->gpu || h->gpu->cc != 90 || st_contract_rules(c, why, n)) return false;
    exact.math = STRATA_MATH_EXACT;
    if (!choose(h, &exact, epilogue, scale, h->workspace_limit, &as_is, why, n)) return false;
    exact.unaligned = 1;
    if (!choose(h, &exact, epilogue, scale, h->workspace_limit, &any, why, n)) return false;
    *us = as_is.us;
    *workspace = as_is.workspace > any.workspace ? as_is.workspace : any.workspace;
    return true;
}

strata_status st_tile_scaled_plan(strata_handle *h, const char *who, const st_contract *c,
                                  const char *epilogue, const st_block_scale scale[2], strata_plan **plan)
{
    st_contract exact = *c;
    strata_plan *twin;
    *plan = NULL;
    if (!h->gpu)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                       "%s: no kernel of the CPU multiplies blocks by scales", who);
    exact.math = STRATA_MATH_EXACT;
    strata_status s = make(h, who, &exact, epilogue, scale, plan);
    if (s) return s;
    exact.unaligned = 1;
    s = make(h, who, &exact, epilogue, scale, &twin);
    if (s) {
        strata_plan_destroy(*plan);
        *plan = NULL;
        return s;
    }
    st_sm90_set_twin(*plan, twin);
    if (twin->workspace > (*plan)->workspace) (*plan)->workspace = twin->workspace;
    return STRATA_OK;
}
