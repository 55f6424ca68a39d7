/* SPDX-License-Identifier: Apache-2.0 */
/* contract.c - contractions from a description to a plan or to a result: registration, the plan cache's key, the head that
 * all providers' plans share. */
#include "tile/contract.h"
#include "runtime/gpu.h"
#include "tile/cuda/gemm_sm90.h"
#include "tile/cuda/generic.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void register_all(void)
{
    st_plan_register_engine(&st_contract_engine);
    st_plan_register(&st_gemm_small_provider);
    st_plan_register(&st_gemm_skinny_provider);
    st_plan_register(&st_gemm_packed_provider);
    st_plan_register_tiles(&st_gemm_packed_tiles);
    st_plan_register(&st_gemm_3m_provider);
    st_plan_register(&st_gemm_structured_provider);
    st_window_register();
    st_reference_register();
    st_sm90_register();
    st_generic_register(); /* CUDA: special first, the one that takes anything last */
    st_cuda_reference_register();
    st_plan_register_kernels(st_kernel_list);
}

/* so that strata_kernels() lists them to a program that has called nothing yet */
__attribute__((constructor)) static void list_kernels(void) { st_plan_register_kernels(st_kernel_list); }

void st_tile_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_all);
}

int64_t st_axes_len(const st_axes *l)
{
    int64_t n = 1;
    for (int d = 0; d < (int)l->count; d++) n *= l->ax[d].len;
    return n;
}

double st_contract_peak(const st_cpu *cpu, int type)
{
    /* flops a cycle in f32: two FMA units of 16 or 8 lanes; a multiplication and an addition of 4 lanes without FMA */
    double f = cpu->level >= ST_LEVEL_AVX512 ? 64 : cpu->level >= ST_LEVEL_AVX2 ? 32 : 8;
    return f * 3000.0 / (type == STRATA_F64 ? 2 : 1);
}

strata_status st_contract_scalar(strata_handle *h, const char *who, const char *name, const strata_scalar *s,
                                 int type, double value[2])
{
    value[1] = 0;
    if (ST_LIKELY(!s->ptr && !s->type && !s->reserved && s->im == 0)) {
        value[0] = s->re;
        return STRATA_OK;
    }
    if (!st_scalar_now(h, who, name, *s, &value[0], &value[1])) return h->err.status;
    if (value[1] == 0 || st_type_is_complex(type)) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: %s has the imaginary part %g, but the matrices are real",
                   who, name, value[1]);
}

strata_status st_contract_scalars_complex(strata_handle *h, const st_contract_plan *p, const strata_run *r,
                                          double alpha[2], double beta[2])
{
    const int type = (int)p->problem.tc;
    strata_status s = STRATA_OK;
    memcpy(alpha, p->alpha, sizeof p->alpha);
    memcpy(beta, p->beta, sizeof p->beta);
    if (r && r->alpha) s = st_contract_scalar(h, "strata_plan_run", "alpha", r->alpha, type, alpha);
    if (r && r->beta && !s) s = st_contract_scalar(h, "strata_plan_run", "beta", r->beta, type, beta);
    return s;
}

strata_status st_contract_scalars(strata_handle *h, const st_contract_plan *p, const strata_run *r,
                                  double *alpha, double *beta)
{
    double a[2], b[2];
    const strata_status s = st_contract_scalars_complex(h, p, r, a, b);
    *alpha = a[0];
    *beta = b[0];
    return s;
}

strata_status st_contract_addresses(strata_handle *h, const st_contract_plan *p, void *const data[],
                                    bool reads)
{
    const st_contract *c = &p->problem;
    if (ST_LIKELY(!c->pointers)) return STRATA_OK;
    for (int o = reads ? 0 : 2; o < 3; o++)
        for (int64_t i = 0; c->pointers >> o & 1 && i < c->batch.ax[0].len; i++)
            if (ST_UNLIKELY(!((void *const *)data[o])[i]))
                return st_fail(
                    &h->err, STRATA_ERROR_ARGUMENT,
                    "strata_plan_run: data[%d] is an array of %lld addresses, of which number %lld "
                    "(counted from 0) is NULL (%s)",
                    o, (long long)c->batch.ax[0].len, (long long)i, p->base.title);
    return STRATA_OK;
}

const char *st_contract_rules(const st_contract *c, char *buf, size_t n)
{
    const st_rule *r[] = {&c->rule_a, &c->rule_b, &c->rule_c};
    for (int i = 0; i < 3; i++) {
        const char *words = r[i]->mirror == ST_MIRROR_HERMITIAN && i < 2 ? "hermitian"
                            : r[i]->mirror && i < 2                      ? "symmetric"
                            : r[i]->half                                 ? "triangular"
                            : r[i]->conj                                 ? "conjugated"
                                                                         : NULL;
        if (c->pointers >> i & 1) words = "an array of addresses";
        if (!words) continue;
        snprintf(buf, n, "takes plain matrices; %c is %s", "ABC"[i], words);
        return buf;
    }
    return NULL;
}

void st_contract_plan_destroy(strata_plan *p)
{
    st_contract_plan *c = (st_contract_plan *)p;
    st_expr_free(c->expr);
    c->expr = NULL;
}

/* Operand 0 or 1 (A, B) as a tensor: batch dims, rows, columns. */
static void view_of(const strata_plan *plan, int operand, strata_tensor *t)
{
    const st_contract *c = &((const st_contract_plan *)plan)->problem;
    const st_rule *r = operand ? &c->rule_b : &c->rule_a;
    const st_axes *list[] = {&c->batch, operand ? &c->k : &c->m, operand ? &c->n : &c->k};
    memset(t, 0, sizeof *t);
    t->type = (int32_t)(operand ? c->tb : c->ta);
    for (int i = 0; i < ST_COUNT(list); i++)
        for (int d = 0; d < (int)list[i]->count && t->rank < STRATA_MAX_RANK; d++) {
            t->dim[t->rank] = list[i]->ax[d].len;
            t->stride[t->rank++] = st_axis_stride(&list[i]->ax[d], operand ? 'b' : 'a');
        }
    t->flags = (r->conj ? STRATA_TENSOR_CONJ : 0u) | (r->half == ST_HALF_LOWER ? STRATA_TENSOR_LOWER : 0u) |
               (r->half == ST_HALF_UPPER ? STRATA_TENSOR_UPPER : 0u) |
               (r->mirror == ST_MIRROR_SYMMETRIC ? STRATA_TENSOR_SYMMETRIC : 0u) |
               (r->mirror == ST_MIRROR_HERMITIAN ? STRATA_TENSOR_HERMITIAN : 0u) |
               (r->unit ? STRATA_TENSOR_UNIT : 0u) |
               (c->pointers >> operand & 1 ? STRATA_TENSOR_POINTERS : 0u);
}

static const char *layout_word(const st_axes *rows, const st_axes *cols, int which)
{
    const st_axis *r = &rows->ax[rows->count ? rows->count - 1 : 0],
                  *c = &cols->ax[cols->count ? cols->count - 1 : 0];
    int64_t rs = which == 'a'   ? r->a
                 : which == 'b' ? r->b
                                : r->c,
            cs = which == 'a'   ? c->a
                 : which == 'b' ? c->b
                                : c->c;
    if (cols->count == 0 || cs == 1) return "row";
    return rows->count == 0 || rs == 1 ? "col" : "strided";
}

static void write_title(strata_plan *p, const st_contract *c)
{
    char batch[32] = "";
    int64_t items = st_axes_len(&c->batch);
    if (items != 1) snprintf(batch, sizeof batch, "%lld x ", (long long)items);
    snprintf(p->title, sizeof p->title, "%s %s %s%lldx%lldx%lld, A %s, B %s, C %s%s",
             c->bounds ? "windowed product" : "gemm", strata_type_name((strata_type)c->tc), batch,
             (long long)st_axes_len(&c->m), (long long)st_axes_len(&c->n), (long long)st_axes_len(&c->k),
             layout_word(&c->m, &c->k, 'a'), layout_word(&c->k, &c->n, 'b'), layout_word(&c->m, &c->n, 'c'),
             p->operands > 3 ? ", epilogue with operands" : "");
}

/* The words for an expression that parses but is no epilogue. */
static strata_status check_epilogue(strata_handle *h, const st_problem *pr, const st_expr *x)
{
    st_err *e = &h->err;
    const st_expr_var *vars;
    st_expr_vars(x, &vars);
    int out = st_expr_find(x, "out"), acc = st_expr_find(x, "acc");
    if (st_expr_reductions(x) || st_expr_has_matmul(x))
        return st_fail(e, STRATA_ERROR_UNSUPPORTED,
                       "%s: the epilogue '%s' holds a %s; it may only map elements", pr->who,
                       ST_SHORT(pr->text), st_expr_reductions(x) ? "reduction" : "product (@)");
    if (out < 0 || !vars[out].output)
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "%s: the epilogue '%s' never writes out, the value for the result", pr->who,
                       ST_SHORT(pr->text));
    if (acc >= 0 && vars[acc].output)
        return st_fail(
            e, STRATA_ERROR_ARGUMENT,
            "%s: the epilogue '%s' writes acc, which is the product; out is the value for the result",
            pr->who, ST_SHORT(pr->text));
    if (vars[out].input)
        return st_fail(
            e, STRATA_ERROR_ARGUMENT,
            "%s: the epilogue '%s' reads out before it is written; beta brings the old value into acc",
            pr->who, ST_SHORT(pr->text));
    const st_contract *c = pr->data;
    for (int i = 0; i < (int)c->epi_operands; i++)
        if (st_expr_find(x, c->epi[i].name) < 0)
            return st_fail(e, STRATA_ERROR_ARGUMENT, "%s: operand %s does not occur in the epilogue \"%s\"",
                           pr->who, c->epi[i].name, ST_SHORT(pr->text));
    return STRATA_OK;
}

/* alpha = 0: A and B are not read, so they need no address. */
static bool may_miss(const strata_plan *plan, const strata_run *r, int operand)
{
    const st_contract_plan *p = (const st_contract_plan *)plan;
    double alpha[2] = {p->alpha[0], p->alpha[1]};
    if (r && r->alpha && r->alpha->ptr && plan->where != ST_ON_CPU)
        return false; /* it may lie on the device */
    if (r && r->alpha &&
        !st_scalar_value(st_err_thread(), "strata_plan_run", "alpha", *r->alpha, &alpha[0], &alpha[1]))
        return false;
    return operand < 2 && alpha[0] == 0 && alpha[1] == 0;
}

/* ---- extents: the bytes that a run touches, for staging ------------------------------------------------------------- */

static void widen(int64_t step, int64_t len, int64_t *lo, int64_t *hi)
{
    *(step < 0 ? lo : hi) += step * (len - 1);
}
static void widen_list(const st_axes *l, int which, int64_t *lo, int64_t *hi)
{
    for (int d = 0; d < (int)l->count; d++) widen(st_axis_stride(&l->ax[d], which), l->ax[d].len, lo, hi);
}

/* Offsets that a bound's axes reach in A: coordinates in [0, limit) at one distance each. False where the axes do not step alike. */
static bool widen_bound(const st_contract *c, const st_bound *b, int64_t *lo, int64_t *hi, bool *none_inside)
{
    const st_axis none = {1, 0, 0, 0}, *m = b->m >= 0 ? &c->m.ax[b->m] : &none,
                  *k = b->k >= 0 ? &c->k.ax[b->k] : &none;
    const int64_t im = b->m >= 0 ? b->im : 0, ik = b->k >= 0 ? b->ik : 0;
    if (!im && !ik) { /* one place: inside for all, or for none */
        *none_inside |= b->offset < 0 || b->offset >= b->limit;
        return true;
    }
    const int64_t step = im ? m->a / im : k->a / ik;
    if (step * im != m->a || step * ik != k->a) return false;
    int64_t first = b->offset, last = b->offset;
    widen(im, m->len, &first, &last);
    widen(ik, k->len, &first, &last);
    first = st_max64(first, 0);
    last = st_min64(last, b->limit - 1);
    if (first > last) {
        *none_inside = true;
        return true;
    }
    *lo += st_min64(step * (first - b->offset), step * (last - b->offset));
    *hi += st_max64(step * (first - b->offset), step * (last - b->offset));
    return true;
}

static bool extent_of_a(const st_contract *c, int64_t *lo, int64_t *hi)
{
    unsigned m = 0, k = 0; /* axes that bounds cover */
    bool none_inside = false;
    for (int b = 0; b < (int)c->bounds; b++) {
        const st_bound *x = &c->bound[b];
        const unsigned bm = x->m >= 0 ? 1u << x->m : 0, bk = x->k >= 0 ? 1u << x->k : 0;
        if ((m & bm) | (k & bk) || !widen_bound(c, x, lo, hi, &none_inside)) return false;
        m |= bm;
        k |= bk;
    }
    for (int d = 0; d < (int)c->m.count; d++)
        if (!(m >> d & 1)) widen(c->m.ax[d].a, c->m.ax[d].len, lo, hi);
    for (int d = 0; d < (int)c->k.count; d++)
        if (!(k >> d & 1)) widen(c->k.ax[d].a, c->k.ax[d].len, lo, hi);
    widen_list(&c->n, 'a', lo, hi);
    widen_list(&c->batch, 'a', lo, hi);
    if (none_inside) *hi = *lo - 1;
    return true;
}

static void extent_of(const st_contract *c, int which, int64_t *lo, int64_t *hi)
{
    widen_list(&c->m, which, lo, hi);
    widen_list(&c->n, which, lo, hi);
    widen_list(&c->k, which, lo, hi);
    widen_list(&c->batch, which, lo, hi);
}

static void extent_of_operand(const st_contract *c, const st_epi_operand *e, int64_t *lo, int64_t *hi)
{
    for (int d = 0; d < (int)c->m.count; d++) widen(e->sm[d], c->m.ax[d].len, lo, hi);
    for (int d = 0; d < (int)c->n.count; d++) widen(e->sn[d], c->n.ax[d].len, lo, hi);
    for (int d = 0; d < (int)c->batch.count; d++) widen(e->sb[d], c->batch.ax[d].len, lo, hi);
}

/* NULL where memory is short or the bounds are such that nothing can be said: then the plan cannot be staged. */
static st_extent *extents(const st_contract *c, const st_expr *x)
{
    const int n = 3 + (int)c->epi_operands;
    st_extent *e = calloc((size_t)n, sizeof *e);
    const int64_t items = st_axes_len(&c->m) * st_axes_len(&c->n) * st_axes_len(&c->batch),
                  k = st_axes_len(&c->k);
    if (!e || items == 0) return e;
    if (c->pointers) { /* what the addresses name is not known here */
        free(e);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        const int64_t type = i == 0 ? c->ta : i == 1 ? c->tb : i == 2 ? c->tc : c->epi[i - 3].type;
        const int64_t size = (int64_t)strata_type_bits((strata_type)type) / 8;
        int64_t lo = 0, hi = 0;
        e[i].read = true;
        e[i].written = i == 2;
        if (i < 2 && k == 0) continue;
        if (i == 0 && !extent_of_a(c, &lo, &hi)) {
            free(e);
            return NULL;
        }
        if (i == 1 || i == 2) extent_of(c, "abc"[i], &lo, &hi);
        if (i >= 3) {
            const st_expr_var *vars;
            const int at = x ? st_expr_find(x, c->epi[i - 3].name) : -1;
            if (at < 0) continue; /* not used */
            st_expr_vars(x, &vars);
            e[i].written = vars[at].output;
            extent_of_operand(c, &c->epi[i - 3], &lo, &hi);
        }
        e[i].lo = lo * size;
        e[i].hi = (hi + 1) * size;
    }
    return e;
}

static double lengths(const st_axes *l, int which)
{
    double n = 1;
    for (int d = 0; d < (int)l->count; d++)
        if (st_axis_stride(&l->ax[d], which)) n *= (double)l->ax[d].len;
    return n;
}
static double steps_of(const st_axes *l, const int64_t *stride)
{
    double n = 1;
    for (int d = 0; d < (int)l->count; d++)
        if (stride[d]) n *= (double)l->ax[d].len;
    return n;
}

/* What must move at least: every element that exists once, of A and B in, of C out. Elements that several places share (the windows of an image, a
 * broadcast) lie within the extent and count once; of a half there is about the half. */
static double compulsory_bytes(const st_contract *c, const st_extent *e)
{
    const st_rule *rule[3] = {&c->rule_a, &c->rule_b, &c->rule_c};
    double bytes = 0;
    for (int i = 0; i < 3 + (int)c->epi_operands; i++) {
        const st_epi_operand *o = i < 3 ? NULL : &c->epi[i - 3];
        const int64_t type = i == 0 ? c->ta : i == 1 ? c->tb : i == 2 ? c->tc : o->type;
        double n = i < 3 ? lengths(&c->m, "abc"[i]) * lengths(&c->n, "abc"[i]) * lengths(&c->k, "abc"[i]) *
                               lengths(&c->batch, "abc"[i])
                         : steps_of(&c->m, o->sm) * steps_of(&c->n, o->sn) * steps_of(&c->batch, o->sb);
        n *= (double)strata_type_bits((strata_type)type) / 8;
        if (e && n > (double)(e[i].hi - e[i].lo)) n = (double)(e[i].hi - e[i].lo);
        bytes += i < 3 && rule[i]->half ? n / 2 : n;
    }
    return bytes;
}

strata_status st_contract_plan_new(strata_handle *h, const st_problem *pr, size_t bytes,
                                   st_contract_plan **plan)
{
    const st_contract *c = pr->data;
    *plan = NULL;
    st_contract_plan *p = st_plan_new(bytes);
    if (!p) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a plan", pr->who);
    p->base.destroy = st_contract_plan_destroy;
    p->base.may_miss = may_miss;
    p->base.view = view_of;
    p->alpha[0] = 1;
    p->problem = *c;
    if (pr->text) {
        const char *names[ST_EPI_OPERANDS + 3] = {"acc", "out"};
        for (int i = 0; i < (int)c->epi_operands; i++) names[2 + i] = c->epi[i].name;
        strata_status s = st_expr_parse(&h->err, pr->who, pr->text, names, c->tc == STRATA_F64, &p->expr);
        if (!s) s = check_epilogue(h, pr, p->expr);
        if (s) {
            strata_plan_destroy(&p->base);
            return s;
        }
    }
    double m = (double)st_axes_len(&c->m), n = (double)st_axes_len(&c->n), k = (double)st_axes_len(&c->k);
    double items = (double)st_axes_len(&c->batch);
    p->base.operands = 3 + (int)c->epi_operands;
    p->base.flops = (st_type_is_complex((int)c->tc) ? 8 : 2) * m * n * k * items;
    write_title(&p->base, c);
    p->base.extent = extents(c, p->expr);
    p->base.bytes = compulsory_bytes(c, p->base.extent);
    *plan = p;
    return STRATA_OK;
}

strata_status st_contract_plan_of(strata_handle *h, const st_problem *pr, const st_kernel_row *row,
                                  size_t bytes, st_contract_setup setup, st_contract_plan **plan)
{
    char why[160];
    const strata_status s = st_contract_plan_new(h, pr, bytes, plan);
    if (s || setup(h, pr, row, *plan, why, sizeof why)) return s;
    strata_plan_destroy(&(*plan)->base);
    *plan = NULL;
    return st_fail(&h->err, STRATA_ERROR_INTERNAL, "%s: %s", pr->who, why);
}

void st_contract_candidate(const st_kernel_row *row, st_candidate *c)
{
    memset(c, 0, sizeof *c);
    snprintf(c->kernel, sizeof c->kernel, "%s", row->id);
    c->row = row;
    c->order = row->order;
    c->us = -1;
}

strata_status st_tile_contract_complex(strata_handle *h, const char *who, const st_contract *c,
                                       const char *epilogue, const double alpha[2], const double beta[2],
                                       void *const data[])
{
    if (!h->gpu && !epilogue && st_gemm_structured(c) && st_structured_direct(h, c, alpha, beta, data))
        return STRATA_OK;
    st_tile_init();
    st_problem pr = {ST_OP_CONTRACT, who, c, sizeof *c, epilogue};
    const strata_plan *p;
    strata_status s = st_plan_get(h, &pr, &p);
    if (s) return s;
    const strata_scalar va = strata_complex(alpha[0], alpha[1]), vb = strata_complex(beta[0], beta[1]);
    strata_run r = {.alpha = &va, .beta = &vb};
    return st_plan_execute(h, p, data, &r);
}

strata_status st_tile_contract(strata_handle *h, const char *who, const st_contract *c, const char *epilogue,
                               double alpha, double beta, void *const data[])
{
    return st_tile_contract_complex(h, who, c, epilogue, (double[2]){alpha, 0}, (double[2]){beta, 0}, data);
}

strata_status st_tile_plan_complex(strata_handle *h, const char *who, const st_contract *c,
                                   const char *epilogue, const double alpha[2], const double beta[2],
                                   const strata_choice *choice, strata_plan **plan)
{
    st_tile_init();
    st_problem pr = {ST_OP_CONTRACT, who, c, sizeof *c, epilogue};
    strata_status s = st_plan_make(h, &pr, choice, plan);
    if (s) return s;
    st_contract_plan *p = (st_contract_plan *)*plan;
    memcpy(p->alpha, alpha, sizeof p->alpha);
    memcpy(p->beta, beta, sizeof p->beta);
    return STRATA_OK;
}

strata_status st_tile_plan(strata_handle *h, const char *who, const st_contract *c, const char *epilogue,
                           double alpha, double beta, const strata_choice *choice, strata_plan **plan)
{
    return st_tile_plan_complex(h, who, c, epilogue, (double[2]){alpha, 0}, (double[2]){beta, 0}, choice,
                                plan);
}
