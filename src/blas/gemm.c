/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c - strata_gemm and strata_gemm_plan: checks, then a contraction with one axis each for m, n and k and one for every batch dim.
 *
 * A small plain product is recognised first, with the fewest comparisons that make it safe, and goes straight to a kernel: at
 * 8x8x8 the product itself takes about as long as copying the arguments. Whatever is not clearly fine goes the long way,
 * which finds the words for what is wrong. */
#define STRATA_NO_INLINE /* the exported function is defined here */
#include "blas/product.h"
#include "tile/epilogue.h"
#include <stdio.h>
#include <string.h>

#define WHO "strata_gemm"

static const strata_gemm_options no_options;

static strata_status check_dims(strata_handle *h, const char *who, const strata_tensor *A,
                                const strata_tensor *B, const strata_tensor *C)
{
    st_err *e = &h->err;
    const strata_tensor *t[] = {A, B, C};
    const char *name[] = {"A", "B", "C"};
    for (int i = 0; i < 3; i++)
        if (t[i]->rank < 2)
            return st_fail(
                e, STRATA_ERROR_SHAPE,
                "%s: %s has rank %d; a matrix has rank 2, a batch of matrices one more for every batch dim",
                who, name[i], t[i]->rank);
    int64_t m = A->dim[A->rank - 2], k = A->dim[A->rank - 1], kb = B->dim[B->rank - 2],
            n = B->dim[B->rank - 1];
    int64_t cm = C->dim[C->rank - 2], cn = C->dim[C->rank - 1];
    if (ST_LIKELY(k == kb && cm == m && cn == n)) return STRATA_OK;
    char da[64], db[64], dc[64];
    snprintf(da, sizeof da, "%lldx%lld", (long long)m, (long long)k);
    snprintf(db, sizeof db, "%lldx%lld", (long long)kb, (long long)n);
    snprintf(dc, sizeof dc, "%lldx%lld", (long long)cm, (long long)cn);
    if (k != kb) {
        const char *hint = k == n    ? " Did you mean strata_transpose(B)?"
                           : m == kb ? " Did you mean strata_transpose(A)?"
                                     : "";
        return st_fail(e, STRATA_ERROR_SHAPE,
                       "%s: A is %s and B is %s: A's columns (%lld) and B's rows (%lld) must agree.%s", who,
                       da, db, (long long)k, (long long)kb, hint);
    }
    if (cm != m || cn != n) {
        const char *hint = cm == n && cn == m ? " Did you mean strata_transpose(C)?" : "";
        return st_fail(e, STRATA_ERROR_SHAPE,
                       "%s: A is %s and B is %s, so C must be %lldx%lld, but it is %s.%s", who, da, db,
                       (long long)m, (long long)n, dc, hint);
    }
    return STRATA_OK;
}

static bool is_f8(int t) { return t == STRATA_F8E4M3 || t == STRATA_F8E5M2; }
static bool is_byte(int t) { return t == STRATA_I8 || t == STRATA_U8; }
static bool is_half(int t) { return t == STRATA_F16 || t == STRATA_BF16; }

/* What of a view's structure a product takes: see base.h. */
enum {
    HALVES = STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER | STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_HERMITIAN,
    FACTOR_FLAGS = HALVES | STRATA_TENSOR_CONJ | STRATA_TENSOR_UNIT | STRATA_TENSOR_POINTERS,
    RESULT_FLAGS = HALVES | STRATA_TENSOR_POINTERS
};

/* Products of mixed types that GPUs have kernels for; everywhere: f32, f64, c64 and c128 throughout. */
static bool types_fit(const strata_handle *h, int a, int b, int c)
{
    if (a == b && a == c && (a == STRATA_F32 || a == STRATA_F64 || st_type_is_complex(a))) return true;
    const bool float_c = c == STRATA_F32 || is_half(c);
    if (!h->gpu && is_byte(a) && is_byte(b) && (is_half(c) || is_byte(c))) return true;
    if (!h->gpu && is_half(a) && b == a && is_f8(c)) return true;
    return (is_half(a) && b == a && (float_c || c == STRATA_I8)) ||
           (is_f8(a) && is_f8(b) && (float_c || is_f8(c))) ||
           (is_byte(a) && is_byte(b) && (c == STRATA_I32 || c == STRATA_F32 || c == STRATA_I8));
}

static strata_status check_types(strata_handle *h, const char *who, const strata_tensor *A,
                                 const strata_tensor *B, const strata_tensor *C)
{
    if (types_fit(h, (int)A->type, (int)B->type, (int)C->type)) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_TYPE,
                   "%s: A is %s, B is %s and C is %s; supported are f32, f64, c64 or c128 for all three, "
                   "f16 x f16 and bf16 x bf16 into f32, f16, bf16 or i8, 8-bit floats into f32, f16, bf16 or "
                   "8-bit floats, "
                   "and i8 or u8 into i32, f32 or i8",
                   who, strata_type_name((strata_type)A->type), strata_type_name((strata_type)B->type),
                   strata_type_name((strata_type)C->type));
}

strata_status st_gemm_check(strata_handle *h, const char *who, const strata_tensor *A, const strata_tensor *B,
                            const strata_tensor *C, const strata_gemm_options *o, bool addresses)
{
    st_err *e = &h->err;
    strata_status s;
    for (int i = 0; i < ST_COUNT(o->reserved); i++)
        if (o->reserved[i])
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           "%s: reserved words of strata_gemm_options are not zero; start from {0}", who);
    if ((s = st_tensor_check_flags(e, who, "A", A, FACTOR_FLAGS)) ||
        (s = st_tensor_check_flags(e, who, "B", B, FACTOR_FLAGS)) ||
        (s = st_tensor_check_output_flags(e, who, "C", C, RESULT_FLAGS)))
        return s;
    const strata_tensor *t[] = {A, B};
    const char *name[] = {"A", "B"};
    if ((unsigned)o->math > STRATA_MATH_3M)
        return st_fail(e, STRATA_ERROR_ARGUMENT, "%s: the math mode %d is none of strata_math", who,
                       (int)o->math);
    if ((s = check_types(h, who, A, B, C))) return s;
    if ((s = check_dims(h, who, A, B, C)) || (s = st_product_check_batch(h, who, "A", A, "C", C)) ||
        (s = st_product_check_batch(h, who, "B", B, "C", C)) ||
        (s = st_product_check_batch(h, who, "C", C, "C", C)))
        return s;
    if (C->rank - 2 > ST_AXES)
        return st_fail(e, STRATA_ERROR_UNSUPPORTED,
                       "%s: C has %d batch dims; at most %d are supported (strata_reshape may join some)",
                       who, C->rank - 2, ST_AXES);
    if (addresses)
        for (int i = 0; i < 2; i++)
            if (st_tensor_overlap(t[i], C))
                return st_fail(e, STRATA_ERROR_ALIAS,
                               "%s: C overlaps %s in memory; the product needs a C of its own", who, name[i]);
    if (addresses && st_addresses_any(A, B, C))
        return st_addresses_check(h, who, (const strata_tensor *[]){C, A, B}, (const char *[]){"C", "A", "B"},
                                  1, 3);
    return STRATA_OK;
}

static strata_status check_output_operand(strata_handle *h, const char *who, const strata_tensor *A,
                                          const strata_tensor *B, const strata_tensor *C,
                                          const strata_gemm_options *o, const strata_operand *x,
                                          bool addresses)
{
    const strata_tensor *t = &x->tensor;
    strata_status s = st_tensor_check_output(&h->err, who, x->name, t);
    if (s) return s;
    bool full = t->rank == C->rank;
    for (int d = 0; full && d < t->rank; d++) full = t->dim[d] == C->dim[d];
    if (!full)
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: the epilogue writes %s, so it must have C's dims (%s); it is %s", who, x->name,
                       ST_DIMS(*C), t->rank ? ST_DIMS(*t) : "one element (rank 0)");
    if (!addresses) return STRATA_OK;
    const char *hit = st_tensor_overlap(t, A) ? "A" : st_tensor_overlap(t, B) ? "B" : NULL;
    for (const strata_operand *y = o->operands; !hit && y->name; y++)
        if (y != x && st_tensor_overlap(t, &y->tensor) && !st_tensor_same_view(t, &y->tensor)) hit = y->name;
    if (hit)
        return st_fail(&h->err, STRATA_ERROR_ALIAS, "%s: the epilogue's output %s overlaps %s in memory", who,
                       x->name, hit);
    return STRATA_OK;
}

/* Checks the epilogue's operands against C, adds them to the description and their addresses to data[3..]. What else can be
 * wrong with the text is found where it is parsed. */
static strata_status add_epilogue(strata_handle *h, const char *who, const strata_tensor *A,
                                  const strata_tensor *B, const strata_tensor *C,
                                  const strata_gemm_options *o, bool addresses, st_contract *c, void **data)
{
    st_err *e = &h->err;
    int n = 0;
    for (const strata_operand *x = o->operands; x && x->name; x++, n++) {
        if (n == ST_EPI_OPERANDS)
            return st_fail(e, STRATA_ERROR_UNSUPPORTED, "%s: the epilogue has more than %d operands", who,
                           ST_EPI_OPERANDS);
        if (!x->name[0] || strlen(x->name) >= ST_EXPR_NAME)
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           "%s: the operand name '%s' has no letters or more than %d", who, x->name,
                           ST_EXPR_NAME - 1);
        if (!strcmp(x->name, "acc") || !strcmp(x->name, "out"))
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           "%s: '%s' is the epilogue's own name for %s; call the operand something else", who,
                           x->name, x->name[0] == 'a' ? "the product" : "C");
        for (const strata_operand *y = o->operands; y < x; y++)
            if (!strcmp(x->name, y->name))
                return st_fail(
                    e, STRATA_ERROR_ARGUMENT,
                    "%s: operands %d and %d of the epilogue are both called '%s'; each needs a name "
                    "of its own",
                    who, (int)(y - o->operands), n, x->name);
        strata_status s = st_tensor_check(e, who, x->name, &x->tensor);
        if (s) return s;
        if (st_type_is_sub_byte(x->tensor.type))
            return st_fail(e, STRATA_ERROR_TYPE,
                           "%s: the epilogue's operand %s is %s; epilogues take types of whole bytes, and "
                           "strata_fused takes this one: \"out = f(A @ B)\"",
                           who, x->name, strata_type_name((strata_type)x->tensor.type));
        const st_epi_use use = st_tile_epilogue_use(o->epilogue, x->name);
        st_epi_operand *op = &c->epi[n];
        memcpy(op->name, x->name, strlen(x->name));
        op->type = x->tensor.type;
        if (use.used && (s = st_tile_bind_operand(e, who, C, x, use.index, op))) return s;
        if (use.written && (s = check_output_operand(h, who, A, B, C, o, x, addresses))) return s;
        if (addresses && st_tensor_overlap(&x->tensor, C))
            return st_fail(e, STRATA_ERROR_ALIAS,
                           use.written
                               ? "%s: C overlaps the epilogue's output %s in memory; give each its own"
                               : "%s: C overlaps the epilogue's operand %s in memory; beta = 1 adds "
                                 "C's old value",
                           who, x->name);
        data[3 + n] = x->tensor.data;
    }
    c->epi_operands = n;
    return STRATA_OK;
}

static strata_status full(strata_handle *h, const char *who, const strata_scalar *alpha,
                          const strata_tensor *A, const strata_tensor *B, const strata_scalar *beta,
                          const strata_tensor *C, const strata_gemm_options *o, const strata_choice *choice,
                          strata_plan **plan)
{
    uint64_t t0 = st_trace_begin();
    strata_status s;
    if (!o) o = &no_options;
    if ((s = st_gemm_check(h, who, A, B, C, o, !plan))) return s;
    double va[2], vb[2];
    if ((s = st_contract_scalar(h, who, "alpha", alpha, C->type, va)) ||
        (s = st_contract_scalar(h, who, "beta", beta, C->type, vb)))
        return s;
    st_contract c;
    void *data[3 + ST_EPI_OPERANDS] = {A->data, B->data, C->data};
    st_product_describe(A, B, C, &c);
    /* the CPU's arithmetic is exact whatever is allowed, but for complex products by three real ones */
    if (h->gpu || (o->math == STRATA_MATH_3M && st_type_is_complex(C->type))) c.math = o->math;
    if (o->epilogue && (s = add_epilogue(h, who, A, B, C, o, !plan, &c, data))) return s;
    if (!o->epilogue && o->operands && o->operands[0].name)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                       "%s: operands (the first is '%s') without an epilogue that reads them", who,
                       o->operands[0].name);
    if (plan) return st_tile_plan_complex(h, who, &c, o->epilogue, va, vb, choice, plan);
    s = st_tile_contract_complex(h, who, &c, o->epilogue, va, vb, data);
    if (ST_UNLIKELY(t0)) {
        char ta[96], tb[96], tc[96];
        strata_tensor_describe(*A, ta, sizeof ta);
        strata_tensor_describe(*B, tb, sizeof tb);
        strata_tensor_describe(*C, tc, sizeof tc);
        st_trace_end(t0, "blas", WHO, "A %s, B %s, C %s, alpha %g, beta %g%s%s", ta, tb, tc, va[0], vb[0],
                     o->epilogue ? ", epilogue " : "", o->epilogue ? o->epilogue : "");
    }
    return s;
}

bool st_gemm_types_fit(const strata_handle *h, int a, int b, int c) { return types_fit(h, a, b, c); }

strata_status st_gemm_make(strata_handle *h, const char *who, const strata_tensor *A, const strata_tensor *B,
                           const strata_tensor *C, const strata_gemm_options *o, strata_plan **plan)
{
    const strata_scalar one = STRATA_ONE, zero = STRATA_ZERO;
    return full(h, who, &one, A, B, &zero, C, o, NULL, plan);
}

static strata_tensor plain_matrix(const void *data, int32_t type, int64_t rows, int64_t cols, int64_t row,
                                  int64_t col)
{
    return (strata_tensor){
        .data = (void *)(uintptr_t)data, .type = type, .rank = 2, .dim = {rows, cols}, .stride = {row, col}};
}

static ST_NOINLINE strata_status plain_whole(strata_handle *h, const strata_gemm_plain *p)
{
    strata_status s = st_handle_check(h, WHO);
    if (s) return s;
    strata_scalar alpha = strata_real(p->alpha), beta = strata_real(p->beta);
    strata_tensor A = plain_matrix(p->a, p->type, p->m, p->k, p->a_row, p->a_col),
                  B = plain_matrix(p->b, p->type, p->k, p->n, p->b_row, p->b_col),
                  C = plain_matrix(p->c, p->type, p->m, p->n, p->c_row, p->c_col);
    if (st_type_is_complex(p->type)) {
        if ((unsigned)p->conj > 3)
            return st_fail(&h->err, STRATA_ERROR_ARGUMENT,
                           "strata_gemm_run_plain: conj is %d; 1 conjugates A, 2 B, 3 both, 0 none",
                           (int)p->conj);
        alpha = strata_complex(p->alpha, p->alpha_im);
        beta = strata_complex(p->beta, p->beta_im);
        if (p->conj & 1) A = strata_conj(A);
        if (p->conj & 2) B = strata_conj(B);
    }
    s = full(h, WHO, &alpha, &A, &B, &beta, &C, NULL, NULL, NULL);
    if (!s && h->gpu) st_gemm_remember(h, p, &A, &B, &C);
    return s;
}

static ST_NOINLINE strata_status no_product(strata_handle *h)
{
    strata_status s = st_handle_check(h, "strata_gemm_run_plain");
    return s ? s : st_fail(&h->err, STRATA_ERROR_ARGUMENT, "strata_gemm_run_plain: the product is NULL");
}

strata_status strata_gemm_run_plain(strata_handle *h, const strata_gemm_plain *p)
{
    if (ST_UNLIKELY(!p)) return no_product(h);
    if (ST_LIKELY(h && h->magic == ST_HANDLE_MAGIC &&
                  !atomic_load_explicit(&st_trace_on, memory_order_relaxed))) {
        strata_status s;
        if (!h->gpu) return st_tile_gemm_small(h, p, plain_whole);
        if (st_gemm_recall(h, p, &s)) return s;
    }
    return plain_whole(h, p);
}

strata_status strata_gemm_run(strata_handle *h, const strata_scalar *alpha, const strata_tensor *A,
                              const strata_tensor *B, const strata_scalar *beta, const strata_tensor *C,
                              const strata_gemm_options *o)
{
    strata_gemm_plain p;
    if (ST_LIKELY(alpha && A && B && beta && C)) {
        if (strata_gemm_as_plain(alpha, A, B, beta, C, o, &p)) return strata_gemm_run_plain(h, &p);
        strata_status s = st_handle_check(h, WHO);
        return s ? s : full(h, WHO, alpha, A, B, beta, C, o, NULL, NULL);
    }
    strata_status s = st_handle_check(h, WHO);
    if (s) return s;
    return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "strata_gemm_run: the address of %s is NULL",
                   !alpha  ? "alpha"
                   : !A    ? "A"
                   : !B    ? "B"
                   : !beta ? "beta"
                           : "C");
}

strata_status strata_gemm(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B,
                          strata_scalar beta, strata_tensor C, const strata_gemm_options *o)
{
    return strata_gemm_run(h, &alpha, &A, &B, &beta, &C, o);
}

strata_status strata_gemm_plan(strata_handle *h, strata_scalar alpha, strata_tensor A, strata_tensor B,
                               strata_scalar beta, strata_tensor C, const strata_gemm_options *o,
                               const strata_choice *choice, strata_plan **plan)
{
    strata_status s = st_handle_check(h, "strata_gemm_plan");
    if (s) return s;
    if (!plan)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "strata_gemm_plan: the address for the plan is NULL");
    *plan = NULL;
    /* a plan is for shapes: tensors without an address are as good */
    static char nowhere;
    if (!A.data) A.data = &nowhere;
    if (!B.data) B.data = &nowhere;
    if (!C.data) C.data = &nowhere;
    return full(h, "strata_gemm_plan", &alpha, &A, &B, &beta, &C, o, choice, plan);
}
