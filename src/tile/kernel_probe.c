/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_probe.c - strata_kernel_probe: the packed microkernel alone, on panels that lie in cache, as the inner loops of a large product
 * would call it if packing, memory and the edges of C cost nothing. Blocks are those of gemm_packed.c. */
#include "tile/gemm.h"
#include "tile/kernels.h"
#include <string.h>

static const st_packed_kernel *find(strata_handle *h, const char *id, const st_kernel_row **row)
{
    char why[128];
    *row = id ? st_kernel_find(id) : NULL;
    if (!*row) {
        st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                "strata_kernel_probe: no kernel of the tile engine has the id '%s'; strata_kernels() "
                "lists them",
                id ? ST_SHORT(id) : "(NULL)");
        return NULL;
    }
    if (strcmp((*row)->provider, "gemm_packed") != 0) {
        st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                "strata_kernel_probe: '%s' has no microkernel on prepared panels; those of the family gemm "
                "with a tile in their id have",
                id);
        return NULL;
    }
    if (st_kernel_why_not(*row, st_cpu_get(), why, sizeof why)) {
        st_fail(&h->err, STRATA_ERROR_UNSUPPORTED, "strata_kernel_probe: '%s' %s", id, why);
        return NULL;
    }
    return (*row)->impl;
}

/* numbers of both signs that stay small however often they are added up */
static void fill(char *p, int64_t n, bool f64)
{
    for (int64_t i = 0; i < n; i++) {
        double v = ((double)(i * 7919 % 201) - 100) * 1e-4;
        if (f64)
            ((double *)p)[i] = v;
        else
            ((float *)p)[i] = (float)v;
    }
}

strata_status strata_kernel_probe(strata_handle *h, const char *id, double seconds, double *gflops)
{
    const st_kernel_row *row;
    strata_status s = st_handle_check(h, "strata_kernel_probe");
    if (s) return s;
    if (!gflops)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_kernel_probe: the address for the rate is NULL");
    if (!(seconds >= 0 && seconds <= 60))
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_kernel_probe: seconds is %g; 0 to 60 are allowed", seconds);
    const st_packed_kernel *kr = find(h, id, &row);
    if (!kr) return h->err.status;
    const bool complex = st_type_is_complex(row->type), f64 = st_type_part(row->type) == STRATA_F64;
    /* kc units of k; a line of a panel; an element of C: a number or two */
    const int64_t kc = 512, mr = kr->mr, nr = (int64_t)kr->nv * kr->vl, line = kr->head + kc * kr->size,
                  ec = (f64 ? 8 : 4) * (complex ? 2 : 1);
    const int64_t mc = st_max64(mr, st_cpu_get()->l2 / 2 / line / mr * mr);
    const int64_t na = st_round_up(mc * line, 4096) + 1344, nb = st_round_up(nr * line, 4096) + 1344,
                  nc = mr * nr * ec;
    void *block = NULL;
    if ((s = strata_alloc(h, (size_t)(na + nb + nc), &block))) return s;
    char *a = block, *b = a + na, *c = b + nb;
    fill(block, (na + nb + nc) / (f64 ? 8 : 4), f64);
    st_ukr_args x = {.k = kc, .ldc = nr, .alpha = 1, .beta = 1, .last = kr->vl};
    uint64_t begin = 0, now = 0;
    double calls = 0;
    /* the first pass over the block warms the caches and is not counted */
    for (int pass = 0; pass == 0 || (double)(now - begin) < seconds * 1e9 || pass < 2; pass++) {
        if (pass == 1) begin = st_now_ns();
        for (int64_t i = 0; i < mc; i += mr) kr->full(&x, a + i * line, b, c);
        if (pass) calls += (double)(mc / mr);
        now = st_now_ns();
    }
    *gflops = calls * (complex ? 8 : 2) * (double)(mr * nr * kc * kr->unit) / (double)(now - begin);
    return strata_free(h, block);
}
