/* SPDX-License-Identifier: Apache-2.0 */
/* matcopy_cuda.c - sums and copies of matrices on CUDA devices: one kernel for all strides and storages. */
#include "pointwise/cuda/matvec_cuda.h"
#include "pointwise/matvec.h"
#include "runtime/gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *id, *types;
    int type;
} rows[] = {{"matcopy_f32_sm80", "f32", STRATA_F32},
            {"matcopy_f64_sm80", "f64", STRATA_F64},
            {"matcopy_c64_sm80", "c64", STRATA_C64},
            {"matcopy_c128_sm80", "c128", STRATA_C128}};
static const char *const order = "no sums";

/* As matcopy.cu has it. */
typedef struct copy_words {
    void *a, *b, *c;
    int64_t count, rank, by_rows, half, hermitian, diagonal, conj_a, conj_b;
    int64_t dim[STRATA_MAX_RANK], stride[3][STRATA_MAX_RANK], packed[3];
    double alpha[2], beta[2];
} copy_words;
typedef struct matcopy_plan {
    strata_plan base;
    copy_words w;
    const st_gpu_kernel *kernel;
} matcopy_plan;

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    const st_matcopy *p = pr->data;
    int n = 0;
    if (p->family != ST_PW_MATCOPY) return 0;
    for (int i = 0; i < ST_COUNT(rows) && n < max; i++) {
        if (rows[i].type != p->type) continue;
        st_candidate *c = &out[n++];
        double bytes = 2.0 * (double)strata_type_bits((strata_type)p->type) / 8;
        for (int d = 0; d < p->batches + 2; d++) bytes *= (double)p->dim[d];
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", rows[i].id);
        c->row = &rows[i];
        c->order = order;
        c->us = 3 + bytes / h->gpu->copy_bytes_per_us;
    }
    return n;
}

static strata_status run(strata_handle *h, const strata_plan *base, void *const data[], const strata_run *r)
{
    const matcopy_plan *pl = (const matcopy_plan *)base;
    copy_words w = pl->w;
    w.alpha[0] = 1;
    if (r && ((r->alpha && !st_scalar_now(h, base->title, "alpha", *r->alpha, &w.alpha[0], &w.alpha[1])) ||
              (r->beta && !st_scalar_now(h, base->title, "beta", *r->beta, &w.beta[0], &w.beta[1]))))
        return h->err.status;
    if (w.count == 0) return STRATA_OK;
    w.a = data[0], w.b = data[1], w.c = data[2];
    void *args[] = {&w};
    const st_gpu_launch l = {.kernel = pl->kernel,
                             .grid = {(unsigned)st_ceil_div(w.count, 256), 1, 1},
                             .block = {256, 1, 1},
                             .args = args};
    return st_gpu_run(h, &l);
}

/* A factor of 0: its matrix is not read. */
static bool may_miss(const strata_plan *base, const strata_run *r, int operand)
{
    const matcopy_plan *pl = (const matcopy_plan *)base;
    const strata_scalar *s = !r || pl->w.diagonal || operand == 2 ? NULL : operand ? r->beta : r->alpha;
    double re = 1, im = 0;
    st_err e = {0};
    return s && st_scalar_value(&e, "", "factor", *s, &re, &im) && re == 0 && im == 0;
}

static st_extent extent_of(const st_matcopy *p, int o)
{
    const int64_t rank = p->batches + 2, size = (int64_t)strata_type_bits((strata_type)p->type) / 8;
    const int64_t n = p->dim[rank - 1], packed = p->packed[o];
    st_extent e = {.hi = packed ? n * (n + 1) / 2 : 1, .read = o < 2, .written = o == 2};
    for (int64_t d = 0; d < (packed ? p->batches : rank); d++) {
        if (p->op == ST_MATCOPY_ROWS && o == 1 && d == rank - 1) continue;
        const int64_t far = (p->dim[d] - 1) * p->stride[o][d];
        if (far > 0)
            e.hi += far;
        else
            e.lo += far;
    }
    e.lo *= size, e.hi *= size;
    /* what lies between the elements comes and goes with them */
    if (o == 2) e.read = true;
    return e;
}

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *c, strata_plan **plan)
{
    const st_matcopy *p = pr->data;
    matcopy_plan *pl = st_plan_new(sizeof *pl);
    if (!pl) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    copy_words *w = &pl->w;
    w->rank = p->batches + 2, w->count = 1;
    w->half = p->half, w->hermitian = p->hermitian, w->diagonal = p->op == ST_MATCOPY_ROWS;
    w->conj_a = p->conj[0], w->conj_b = p->conj[1];
    memcpy(w->dim, p->dim, sizeof w->dim);
    memcpy(w->stride, p->stride, sizeof w->stride);
    memcpy(w->packed, p->packed, sizeof w->packed);
    for (int d = 0; d < w->rank; d++) w->count *= w->dim[d];
    const int64_t row = w->stride[2][w->rank - 2], col = w->stride[2][w->rank - 1];
    w->by_rows = w->packed[2] ? row == 0 : (row < 0 ? -row : row) > (col < 0 ? -col : col);
    pl->base.run = run;
    pl->base.may_miss = may_miss;
    pl->base.operands = 3;
    snprintf(pl->base.title, sizeof pl->base.title, "matcopy %s %lldx%lld",
             strata_type_name((strata_type)p->type), (long long)w->dim[w->rank - 2],
             (long long)w->dim[w->rank - 1]);
    pl->base.bytes = 2.0 * (double)w->count * (double)strata_type_bits((strata_type)p->type) / 8;
    pl->base.extent = calloc(3, sizeof *pl->base.extent);
    const st_gpu_spec spec = {.id = c->kernel,
                              .source = "matcopy.cu",
                              .entry = "matcopy",
                              .option = {"-fmad=false",
                                         st_type_part((int)p->type) == STRATA_F32 ? "-DT=f32" : "-DT=f64",
                                         st_type_is_complex((int)p->type) ? "-DCOMPLEX=1" : "-DCOMPLEX=0"}};
    strata_status s = STRATA_OK;
    if (!pl->base.extent)
        s = st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    else if (st_ceil_div(w->count, 256) > INT32_MAX)
        s = st_fail(&h->err, STRATA_ERROR_UNSUPPORTED,
                    "%s: %lld elements ask for more than 2^31 blocks of threads", pr->who,
                    (long long)w->count);
    for (int o = 0; o < 3 && !s; o++) pl->base.extent[o] = extent_of(p, o);
    if (!s) s = st_gpu_kernel_get(h, &spec, &pl->kernel);
    if (s) {
        strata_plan_destroy(&pl->base);
        return s;
    }
    *plan = &pl->base;
    return STRATA_OK;
}

static const st_provider provider = {"matcopy", ST_OP_POINTWISE, enumerate, build, ST_ON_CUDA};

int st_pw_matcopy_cuda_kernels(int i, strata_kernel_info *info)
{
    if (i < 0 || i >= ST_COUNT(rows)) return 0;
    *info = st_plan_gpu_kernel_info(rows[i].id, "matvec", rows[i].types, "sm80", order);
    return 1;
}

void st_pw_matcopy_cuda_init(void) { st_plan_register(&provider); }
