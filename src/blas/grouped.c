/* SPDX-License-Identifier: Apache-2.0 */
/* grouped.c - strata_gemm_grouped: all products are checked, then run together where none depends on another, else one after another.
 *
 * Operands are sorted by address, so that each is compared only with those whose spans meet its own. */
#include "blas/product.h"
#include "base/trace.h"
#include "tile/grouped.h"
#include <stdlib.h>
#include <string.h>

static const char who[] = "strata_gemm_grouped";

typedef struct st_span {
    const char *lo, *hi;
    const strata_tensor *t;
    int64_t group;
    bool written;
} st_span;

static int by_address(const void *a, const void *b)
{
    const st_span *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Does one product write what another reads or writes? Where that cannot be said, yes. */
static bool depend(const strata_gemm_group *g, int64_t count)
{
    st_span *s = malloc(sizeof *s * 3 * (size_t)count);
    int64_t n = 0;
    bool any = !s;
    for (int64_t i = 0; i < count && !any; i++) {
        const strata_tensor *t[] = {&g[i].A, &g[i].B, &g[i].C};
        for (int k = 0; k < 3; k++) {
            st_span *x = &s[n];
            any |= (t[k]->flags & STRATA_TENSOR_POINTERS) != 0;
            st_tensor_span(t[k], &x->lo, &x->hi);
            if (!x->lo) continue; /* nothing in it */
            x->t = t[k];
            x->group = i;
            x->written = k == 2;
            n++;
        }
    }
    if (!any) qsort(s, (size_t)n, sizeof *s, by_address);
    for (int64_t i = 0; i < n && !any; i++)
        for (int64_t k = i + 1; k < n && s[k].lo < s[i].hi && !any; k++)
            any = (s[i].written || s[k].written) && s[i].group != s[k].group &&
                  st_tensor_overlap(s[i].t, s[k].t);
    free(s);
    return any;
}

static strata_status check_group(strata_handle *h, const strata_gemm_group *g, const strata_gemm_options *o,
                                 st_member *m)
{
    strata_status s = st_gemm_check(h, who, &g->A, &g->B, &g->C, o, true);
    if (!s) s = st_contract_scalar(h, who, "alpha", &g->alpha, g->C.type, m->alpha);
    if (!s) s = st_contract_scalar(h, who, "beta", &g->beta, g->C.type, m->beta);
    if (!s && (g->reserved[0] || g->reserved[1]))
        s = st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                    "%s: reserved words of strata_gemm_group are not zero; start from {0}", who);
    return s;
}

strata_status strata_gemm_grouped(strata_handle *h, const strata_gemm_group *g, int64_t count,
                                  const strata_gemm_options *o)
{
    static const strata_gemm_options no_options;
    const uint64_t t0 = st_trace_begin();
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    if (!o) o = &no_options;
    if (count < 0 || (count > 0 && !g))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: count is %lld and groups is %p", who,
                       (long long)count, (const void *)g);
    if (o->epilogue || (o->operands && o->operands[0].name))
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                       "%s: an epilogue's operands belong to one product; call strata_gemm for each", who);
    if (count == 0) return STRATA_OK;
    st_member *m = calloc((size_t)count, sizeof *m);
    st_contract *c = calloc((size_t)count, sizeof *c);
    if (!m || !c) s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a list of products", who);
    int64_t at = -1;
    for (int64_t i = 0; i < count && !s; i++) {
        s = check_group(h, &g[i], o, &m[i]);
        at = i;
        if (s) break;
        st_product_describe(&g[i].A, &g[i].B, &g[i].C, &c[i]);
        if (h->gpu) c[i].math = o->math;
        m[i].c = &c[i];
        m[i].data[0] = g[i].A.data;
        m[i].data[1] = g[i].B.data;
        m[i].data[2] = g[i].C.data;
    }
    if (!s && !depend(g, count)) {
        s = st_tile_grouped(h, who, m, count, &at);
    } else {
        for (int64_t i = 0; i < count && !s; i++)
            s = st_tile_contract_complex(h, who, m[at = i].c, NULL, m[i].alpha, m[i].beta, m[i].data);
    }
    if (s && at >= 0) st_err_frame(&h->err, "blas", "in group %lld of %lld", (long long)at, (long long)count);
    free(m);
    free(c);
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "blas", who, "%lld products", (long long)count);
    return s;
}
