/* SPDX-License-Identifier: Apache-2.0 */
/* factor.c - batched factorisations: checks, the description, and who runs it. */
#include "blas/factor.h"
#include "blas/product.h"
#include "runtime/gpu.h"
#include <stdio.h>
#include <string.h>

static const char *const letter[ST_FACTOR_OPERANDS] = {"A", "B", "pivots", "info"};

typedef struct call {
    strata_handle *h;
    const char *who;
    const strata_tensor *t[ST_FACTOR_OPERANDS]; /* NULL: not an operand of this operator */
    const char *name[ST_FACTOR_OPERANDS];
    bool optional[ST_FACTOR_OPERANDS], written[ST_FACTOR_OPERANDS];
    st_factor f;
} call;

static bool absent(const call *c, int o)
{
    return !c->t[o] || (c->optional[o] && c->t[o]->type == STRATA_NONE && c->t[o]->rank == 0 &&
                        !c->t[o]->data && !c->t[o]->error);
}

/* dims behind the batch: A and B two, pivots and tau one, info none */
static int own_rank(int o) { return o <= ST_FACTOR_B ? 2 : o == ST_FACTOR_P ? 1 : 0; }

static strata_status check_view(call *c, int o)
{
    st_err *e = &c->h->err;
    const strata_tensor *t = c->t[o], *A = c->t[ST_FACTOR_A];
    const uint32_t flags = o <= ST_FACTOR_B ? STRATA_TENSOR_POINTERS : 0;
    strata_status s = c->written[o] ? st_tensor_check_output_flags(e, c->who, c->name[o], t, flags)
                                    : st_tensor_check_flags(e, c->who, c->name[o], t, flags);
    if (s) return s;
    const int batch = A->rank - 2;
    if (o == ST_FACTOR_A && (batch < 0 || batch > ST_FACTOR_BATCH))
        return st_fail(
            e, STRATA_ERROR_SHAPE,
            "%s: %s has rank %d; a matrix has rank 2, a batch one more for every batch dim, at most %d",
            c->who, c->name[o], t->rank, ST_FACTOR_BATCH);
    if (t->rank != batch + own_rank(o) && !(o == ST_FACTOR_I && batch == 0 && strata_count(*t) == 1))
        return st_fail(e, STRATA_ERROR_SHAPE, "%s: %s has rank %d; beside %s of rank %d it must be %d",
                       c->who, c->name[o], t->rank, c->name[ST_FACTOR_A], A->rank, batch + own_rank(o));
    for (int d = 0; d < batch; d++)
        if (t->dim[d] != A->dim[d])
            return st_fail(e, STRATA_ERROR_SHAPE, "%s: %s is %s and %s is %s: their batch dims must agree",
                           c->who, c->name[ST_FACTOR_A], ST_DIMS(*A), c->name[o],
                           t->rank ? ST_DIMS(*t) : "one element");
    if (t->flags & STRATA_TENSOR_POINTERS && t->rank != 3)
        return st_fail(
            e, STRATA_ERROR_SHAPE,
            "%s: %s is an array of addresses, which is one batch dim and the only one; it has rank %d",
            c->who, c->name[o], t->rank);
    return STRATA_OK;
}

static strata_status check_type(call *c, int o, bool index)
{
    const int type = (int)c->t[o]->type, A = (int)c->t[ST_FACTOR_A]->type;
    const bool linear = type == STRATA_F32 || type == STRATA_F64 || st_type_is_complex(type);
    if (index ? type == STRATA_I32 || type == STRATA_I64 : linear && type == A) return STRATA_OK;
    return st_fail(&c->h->err, STRATA_ERROR_TYPE, "%s: %s is %s; it must be %s", c->who, c->name[o],
                   strata_type_name((strata_type)type),
                   index              ? "i32 or i64"
                   : o == ST_FACTOR_A ? "f32, f64, c64 or c128"
                                      : "of A's type");
}

static strata_status check_dim(call *c, int o, int d, int64_t want, const char *rule)
{
    const strata_tensor *t = c->t[o];
    const int64_t got = t->dim[t->rank - own_rank(o) + d];
    if (got == want) return STRATA_OK;
    return st_fail(&c->h->err, STRATA_ERROR_SHAPE, "%s: %s is %s; %s, so its dim %d must be %lld", c->who,
                   c->name[o], ST_DIMS(*t), rule, t->rank - own_rank(o) + d, (long long)want);
}

static strata_status check_apart(call *c)
{
    for (int i = 0; i < ST_FACTOR_OPERANDS; i++)
        for (int k = 0; k < ST_FACTOR_OPERANDS; k++)
            if (i != k && !absent(c, i) && !absent(c, k) && c->written[i] &&
                st_tensor_overlap(c->t[i], c->t[k]))
                return st_fail(&c->h->err, STRATA_ERROR_ALIAS,
                               "%s: %s overlaps %s in memory; each needs a place of its own", c->who,
                               c->name[i], c->name[k]);
    return STRATA_OK;
}

static void describe(call *c)
{
    st_factor *f = &c->f;
    const strata_tensor *A = c->t[ST_FACTOR_A];
    f->type = A->type;
    f->m = A->dim[A->rank - 2];
    f->n = A->dim[A->rank - 1];
    f->batch = A->rank - 2;
    f->items = 1;
    f->index = 4;
    for (int d = 0; d < (int)f->batch; d++) f->items *= f->len[d] = A->dim[d];
    for (int o = 0; o < ST_FACTOR_OPERANDS; o++) {
        const strata_tensor *t = c->t[o];
        st_factor_view *v = &f->view[o];
        if (absent(c, o)) continue;
        v->ptr = t->data;
        v->pointers = (t->flags & STRATA_TENSOR_POINTERS) != 0;
        const int own = own_rank(o), r = t->rank - own;
        if (own > 0) v->rs = t->stride[r];
        if (own > 1) v->cs = t->stride[r + 1];
        for (int d = 0; d < (int)f->batch && d < r; d++) v->bs[d] = t->stride[d];
        if (t->type == STRATA_I64) f->index = 8;
    }
}

typedef struct work {
    const st_factor *f;
    st_factor_fn run;
    char *scratch;
    size_t each;
} work;
static void one_item(void *arg, int64_t i, int worker)
{
    const work *w = arg;
    w->run(w->f, i, w->scratch + (size_t)worker * w->each);
}

size_t st_factor_scratch(const st_factor *f)
{
    const int64_t size = st_factor_size(f), step = 64 / size, rows = st_max64(f->m, f->n);
    const int64_t elements =
        st_round_up(f->m, step) * f->n + st_round_up(rows, step) * f->nrhs + rows + 2 * step;
    return (size_t)st_round_up(elements * size + rows * 8, 64);
}

static strata_status run_cpu(call *c)
{
    strata_handle *h = c->h;
    const st_factor *f = &c->f;
    const st_factor_table *t = &st_factor_portable;
#if defined(__x86_64__)
    if (h->cpu->isa & ST_ISA_AVX2) t = &st_factor_avx2;
    if (h->cpu->isa & ST_ISA_AVX512) t = &st_factor_avx512;
#endif
    const double flops =
        (double)f->m * (double)f->n * (double)(st_min64(f->m, f->n) + f->nrhs) * (double)f->items;
    work w = {.f = f, .each = st_factor_scratch(f)};
    w.run = t->run[f->type == STRATA_F32 ? 0 : f->type == STRATA_F64 ? 1 : f->type == STRATA_C64 ? 2 : 3];
    const st_enter e = st_handle_enter(h);
    if (e == ST_IN_USE) return st_handle_in_use(c->who);
    strata_status s = STRATA_OK;
    const int workers = st_threads(h);
    if (!(w.scratch = st_workspace_beyond(h, w.each * (size_t)workers, w.each))) {
        st_err_frame(&h->err, "blas", "%s: a copy of one item for each of %d threads", c->who, workers);
        s = h->err.status;
    } else {
        st_team_for(h, f->items, flops / 2000, one_item, &w);
    }
    st_handle_leave(h, e);
    return s;
}

/* Pivots that are read name rows of the matrix. */
static strata_status check_pivots(call *c)
{
    const st_factor *f = &c->f;
    const st_factor_view *v = &f->view[ST_FACTOR_P];
    if (!v->ptr || (f->op != ST_GETRS && f->op != ST_GETRI)) return STRATA_OK;
    for (int64_t i = 0; i < f->items; i++) {
        const char *p = st_factor_at(f, ST_FACTOR_P, i, f->index);
        for (int64_t k = 0; k < f->n; k++) {
            const char *x = p + k * v->rs * f->index;
            const int64_t row =
                f->index == 8 ? *(const int64_t *)(const void *)x : *(const int32_t *)(const void *)x;
            if (ST_LIKELY(row >= 0 && row < f->n)) continue;
            char item[48] = "";
            if (f->batch) snprintf(item, sizeof item, " of item %lld", (long long)i);
            st_fail(&c->h->err, STRATA_ERROR_ARGUMENT,
                    "%s: pivots[%lld]%s is %lld, but LU has the rows 0 to %lld", c->who, (long long)k, item,
                    (long long)row, (long long)(f->n - 1));
            st_err_remedy(&c->h->err,
                          "pivots count from 0, as strata_getrf gives them; subtract 1 from LAPACK's ipiv");
            return STRATA_ERROR_ARGUMENT;
        }
    }
    return STRATA_OK;
}

static strata_status reach(call *c)
{
    strata_handle *h = c->h;
    for (int o = 0; o < ST_FACTOR_OPERANDS; o++)
        if (!absent(c, o) && strata_count(*c->t[o]) > 0 && !st_gpu_reaches(h, c->t[o]->data)) {
            st_fail(&h->err, STRATA_ERROR_DEVICE, "%s: %s at %p is host memory, which %s does not reach",
                    c->who, c->name[o], c->t[o]->data, h->device);
            st_err_remedy(
                &h->err,
                "allocate it with strata_alloc on this handle, or factor on a handle made with \"cpu\"");
            return STRATA_ERROR_DEVICE;
        }
    return STRATA_OK;
}

/* pivots and info must have one width between them; what may be NULL is. */
static strata_status finish(call *c)
{
    strata_status s;
    const uint64_t t0 = st_trace_begin();
    const strata_tensor *P = c->t[ST_FACTOR_P], *I = c->t[ST_FACTOR_I];
    if (!absent(c, ST_FACTOR_P) && !absent(c, ST_FACTOR_I) && c->f.op != ST_GEQRF && P->type != I->type)
        return st_fail(&c->h->err, STRATA_ERROR_TYPE, "%s: pivots is %s and info is %s; both have one type",
                       c->who, strata_type_name((strata_type)P->type),
                       strata_type_name((strata_type)I->type));
    unsigned written = 0;
    for (int o = 0; o < ST_FACTOR_OPERANDS; o++) written |= (unsigned)(c->t[o] && c->written[o]) << o;
    if ((s = check_apart(c)) ||
        (s = st_addresses_check(c->h, c->who, c->t, c->name, written, ST_FACTOR_OPERANDS)))
        return s;
    describe(c);
    if (c->f.items == 0) return STRATA_OK;
    if (!c->h->gpu)
        s = (s = check_pivots(c)) ? s : run_cpu(c);
    else if (!(s = reach(c)))
        s = st_factor_cuda(c->h, c->who, &c->f);
    if (c->h->gpu) st_gpu_run_end(c->h);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "blas", c->who, "%lld x %lldx%lld %s, %lld right-hand sides", (long long)c->f.items,
                     (long long)c->f.m, (long long)c->f.n, strata_type_name((strata_type)c->f.type),
                     (long long)c->f.nrhs);
    return s;
}

/* Everything that operators have in common: which operands there are, their views and types, m = n where it must be. */
static strata_status begin(call *c, strata_handle *h, const char *who, st_factor_op op,
                           const strata_tensor *A, const strata_tensor *B, const strata_tensor *P,
                           const strata_tensor *I)
{
    strata_status s = st_handle_check(h, who);
    if (s) return s;
    memset(c, 0, sizeof *c);
    c->h = h;
    c->who = who;
    c->f.op = op;
    const strata_tensor *t[] = {A, B, P, I};
    for (int o = 0; o < ST_FACTOR_OPERANDS; o++) {
        c->t[o] = t[o];
        c->name[o] = letter[o];
    }
    if (op == ST_GETRS || op == ST_GETRI) c->name[ST_FACTOR_A] = "LU";
    if (op == ST_GETRI || op == ST_MATINV) c->name[ST_FACTOR_B] = "C";
    if (op == ST_GEQRF) c->name[ST_FACTOR_P] = "tau";
    c->optional[ST_FACTOR_I] = true;
    c->optional[ST_FACTOR_P] = op != ST_GEQRF;
    c->written[ST_FACTOR_A] = op == ST_GETRF || op == ST_GEQRF || op == ST_GELS;
    c->written[ST_FACTOR_B] = c->written[ST_FACTOR_I] = true;
    c->written[ST_FACTOR_P] = op == ST_GETRF || op == ST_GEQRF;
    for (int o = 0; o < ST_FACTOR_OPERANDS; o++) {
        if (absent(c, o)) {
            c->t[o] = NULL;
            continue;
        }
        if ((s = check_view(c, o)) ||
            (s = check_type(c, o, o == ST_FACTOR_I || (o == ST_FACTOR_P && op != ST_GEQRF))))
            return s;
    }
    const int64_t m = A->dim[A->rank - 2], n = A->dim[A->rank - 1];
    if (op != ST_GETRF && op != ST_GEQRF && op != ST_GELS && m != n)
        return st_fail(&h->err, STRATA_ERROR_SHAPE, "%s: %s is %s; it must be square", who,
                       c->name[ST_FACTOR_A], ST_DIMS(*A));
    if (op == ST_GELS && m < n)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: A is %s; it must have at least as many rows as columns", who, ST_DIMS(*A));
    if (c->t[ST_FACTOR_P] && (s = check_dim(c, ST_FACTOR_P, 0, m < n ? m : n,
                                            "there is one for every row or column, whichever are fewer")))
        return s;
    if (!B) return STRATA_OK;
    if ((s = check_dim(c, ST_FACTOR_B, 0, m, "it has as many rows as the matrix"))) return s;
    if ((op == ST_GETRI || op == ST_MATINV) && (s = check_dim(c, ST_FACTOR_B, 1, n, "an inverse is square")))
        return s;
    c->f.nrhs = B->dim[B->rank - 1];
    return STRATA_OK;
}

strata_status strata_getrf(strata_handle *h, strata_tensor A, strata_tensor pivots, strata_tensor info)
{
    call c;
    strata_status s = begin(&c, h, "strata_getrf", ST_GETRF, &A, NULL, &pivots, &info);
    return s ? s : finish(&c);
}

strata_status strata_getrs(strata_handle *h, strata_tensor LU, strata_tensor pivots, strata_tensor B,
                           const strata_getrs_options *o)
{
    call c;
    strata_status s = begin(&c, h, "strata_getrs", ST_GETRS, &LU, &B, &pivots, NULL);
    if (s) return s;
    for (int i = 0; o && i < ST_COUNT(o->reserved); i++)
        if (o->reserved[i])
            return st_fail(
                &h->err, STRATA_ERROR_ARGUMENT,
                "strata_getrs: reserved words of strata_getrs_options are not zero; start from {0}");
    if (o && o->conjugate && !o->transpose)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "strata_getrs: conjugate without transpose; it means the conjugate transpose");
    c.f.transpose = o && o->transpose;
    c.f.conjugate = o && o->conjugate;
    return finish(&c);
}

strata_status strata_getri(strata_handle *h, strata_tensor LU, strata_tensor pivots, strata_tensor C,
                           strata_tensor info)
{
    call c;
    strata_status s = begin(&c, h, "strata_getri", ST_GETRI, &LU, &C, &pivots, &info);
    return s ? s : finish(&c);
}

strata_status strata_matinv(strata_handle *h, strata_tensor A, strata_tensor C, strata_tensor info)
{
    call c;
    strata_status s = begin(&c, h, "strata_matinv", ST_MATINV, &A, &C, NULL, &info);
    return s ? s : finish(&c);
}

strata_status strata_geqrf(strata_handle *h, strata_tensor A, strata_tensor tau)
{
    call c;
    strata_status s = begin(&c, h, "strata_geqrf", ST_GEQRF, &A, NULL, &tau, NULL);
    return s ? s : finish(&c);
}

strata_status strata_gels(strata_handle *h, strata_tensor A, strata_tensor B, strata_tensor info)
{
    call c;
    strata_status s = begin(&c, h, "strata_gels", ST_GELS, &A, &B, NULL, &info);
    return s ? s : finish(&c);
}
