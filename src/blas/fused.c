/* SPDX-License-Identifier: Apache-2.0 */
/* fused.c - strata_fused: a program without a product goes to the pointwise engine as it is; one with a product `X @ W` becomes a gemm
 * whose epilogue is the program with the product named acc and the output that receives C named out. */
#include "pointwise/pointwise.h"
#include "tile/tile.h"
#include <strata/blas.h>
#include <stdlib.h>
#include <string.h>

#define WHO "strata_fused"

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
static bool is_token(const char *at, size_t n, const char *name)
{
    return strlen(name) == n && !memcmp(at, name, n);
}

/* The program, split once: names of the factors and of the output that is C; whether a factor also stands outside products. */
typedef struct product {
    const char *x, *w, *out;
    bool again_x, again_w;
} product;

/* Writes the epilogue into `to` (room for 2 * strlen + 1): every "X @ W" becomes acc, every `out` name becomes "out". Returns whether
 * all products are of these names. */
static bool rewrite(const char *from, product *p, char *to)
{
    while (*from) {
        if (!name_char(*from)) {
            if (*from == '@') return false;
            *to++ = *from++;
            continue;
        }
        size_t n = 0;
        while (name_char(from[n])) n++;
        const char *next = from + n;
        while (*next == ' ' || *next == '\t' || *next == '\n') next++;
        if (*next == '@') {
            const char *w = next + 1;
            while (*w == ' ' || *w == '\t' || *w == '\n') w++;
            size_t k = 0;
            while (name_char(w[k])) k++;
            if (!is_token(from, n, p->x) || !is_token(w, k, p->w)) return false;
            memcpy(to, "acc", 3);
            to += 3;
            from = w + k;
        } else if (p->out && is_token(from, n, p->out)) {
            memcpy(to, "out", 3);
            to += 3;
            from += n;
        } else {
            p->again_x |= is_token(from, n, p->x);
            p->again_w |= is_token(from, n, p->w);
            memcpy(to, from, n);
            to += n;
            from += n;
        }
    }
    *to = 0;
    return true;
}

/* The first product's names, as positions among the operands; -1 when the text around '@' is not two names. */
static void first_product(const char *text, const strata_operand *o, int n, int *x, int *w)
{
    const char *at = strchr(text, '@'), *end = at, *b = at + 1;
    *x = *w = -1;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n')) end--;
    const char *a = end;
    while (a > text && name_char(a[-1])) a--;
    while (*b == ' ' || *b == '\t' || *b == '\n') b++;
    size_t k = 0;
    while (name_char(b[k])) k++;
    for (int i = 0; i < n; i++) {
        if (is_token(a, (size_t)(end - a), o[i].name)) *x = i;
        if (is_token(b, k, o[i].name)) *w = i;
    }
}

/* Every operand is a view, occurs in the program and is given once, as in a program without a product. */
static strata_status check_operands(st_err *e, const strata_operand *o, int n, const st_expr *x,
                                    const char *program)
{
    for (int i = 0; i < n; i++) {
        strata_status s = st_tensor_check(e, WHO, o[i].name, &o[i].tensor);
        if (s) return s;
        if (st_expr_find(x, o[i].name) < 0)
            return st_fail(e, STRATA_ERROR_ARGUMENT, WHO ": operand %s does not occur in the program \"%s\"",
                           o[i].name, program);
        for (int k = 0; k < i; k++)
            if (!strcmp(o[k].name, o[i].name))
                return st_fail(e, STRATA_ERROR_ARGUMENT, WHO ": operand %s is given twice", o[i].name);
    }
    return STRATA_OK;
}

/* C is apart from everything else, and factors are only read. */
static strata_status check_apart(st_err *e, const strata_operand *o, int n, const st_expr *x, int ix, int iw,
                                 int out)
{
    const st_expr_var *var;
    st_expr_vars(x, &var);
    for (int i = 0; i < n; i++) {
        const bool factor = i == ix || i == iw;
        if (factor && i == out)
            return st_fail(e, STRATA_ERROR_ALIAS,
                           WHO
                           ": %s receives %s @ %s and is a factor of it; a product cannot replace its own "
                           "factor: store it to another operand",
                           o[out].name, o[ix].name, o[iw].name);
        if (factor && var[st_expr_find(x, o[i].name)].output)
            return st_fail(e, STRATA_ERROR_ALIAS,
                           WHO ": the program writes %s, a factor of %s @ %s; factors are only read",
                           o[i].name, o[ix].name, o[iw].name);
        if (i != out && st_tensor_overlap(&o[out].tensor, &o[i].tensor))
            return st_fail(e, STRATA_ERROR_ALIAS,
                           WHO ": %s, which receives %s @ %s, overlaps %s in memory; it must be apart from "
                               "every other operand",
                           o[out].name, o[ix].name, o[iw].name, o[i].name);
    }
    return STRATA_OK;
}

/* What the epilogue reads and writes beside the product and C; -1: more than it takes. */
static int epilogue_operands(const strata_operand *o, int n, const st_expr *x, const product *p, int ix,
                             int iw, int out, strata_operand *rest)
{
    const st_expr_var *var;
    st_expr_vars(x, &var);
    int k = 0;
    for (int i = 0; i < n; i++) {
        const bool used = i == ix   ? p->again_x
                          : i == iw ? p->again_w
                                    : !var[st_expr_find(x, o[i].name)].matmul;
        if (i == out || !used) continue;
        if (k == ST_EPI_OPERANDS) return -1;
        rest[k++] = o[i];
    }
    rest[k].name = NULL;
    return k;
}

/* A factor that stands outside the product too is one of the epilogue's operands there. */
static strata_status check_again(st_err *e, const product *p, const strata_tensor *X, const strata_tensor *W,
                                 const strata_tensor *C)
{
    for (int f = 0; f < 2; f++) {
        const strata_tensor *t = f ? W : X;
        const char *name = f ? p->w : p->x;
        bool fits = t->rank <= C->rank;
        if (!(f ? p->again_w : p->again_x)) continue;
        for (int d = 1; fits && d <= t->rank; d++)
            fits = t->dim[t->rank - d] == 1 || t->dim[t->rank - d] == C->dim[C->rank - d];
        if (!fits)
            return st_fail(e, STRATA_ERROR_SHAPE,
                           WHO
                           ": %s stands outside the product too and is %s there, which does not broadcast "
                           "to %s (%s)",
                           name, ST_DIMS(*t), p->out, ST_DIMS(*C));
    }
    return STRATA_OK;
}

static strata_status gemm_with(strata_handle *h, const char *program, const strata_operand *o, int n,
                               st_expr *x)
{
    st_err *e = &h->err;
    const st_expr_var *var;
    const int nvars = st_expr_vars(x, &var);
    int ix, iw, out = -1;
    first_product(program, o, n, &ix, &iw);
    if (ix < 0 || iw < 0)
        return st_fail(e, STRATA_ERROR_UNSUPPORTED,
                       WHO ": write the product as two operands' names, X @ W, in \"%s\"", program);
    for (int v = 0; v < nvars; v++)
        for (int i = 0; i < n; i++)
            if (var[v].output && !strcmp(var[v].name, o[i].name) && (out < 0 || !strcmp(o[i].name, "out")))
                out = i;
    if (out < 0)
        return st_fail(e, STRATA_ERROR_ARGUMENT, WHO ": the program \"%s\" writes no operand", program);
    if (st_expr_reductions(x))
        return st_fail(
            e, STRATA_ERROR_UNSUPPORTED,
            WHO ": \"%s\" has a product and a reduction; run the product first, then the reduction", program);
    const strata_tensor *X = &o[ix].tensor, *W = &o[iw].tensor, *C = &o[out].tensor;
    strata_status s;
    if ((s = st_tensor_check(e, WHO, o[ix].name, X)) || (s = st_tensor_check(e, WHO, o[iw].name, W)) ||
        (s = st_tensor_check_output(e, WHO, o[out].name, C)))
        return s;
    if (X->rank < 2 || W->rank < 2 || C->rank < 2 || X->dim[X->rank - 1] != W->dim[W->rank - 2])
        return st_fail(
            e, STRATA_ERROR_SHAPE,
            WHO ": %s is %s and %s is %s: in %s @ %s the columns of the first and the rows of the second "
                "must agree, and %s must have rank 2 or more",
            o[ix].name, ST_DIMS(*X), o[iw].name, ST_DIMS(*W), o[ix].name, o[iw].name, o[out].name);
    if (C->type != X->type || C->type != W->type || (C->type != STRATA_F32 && C->type != STRATA_F64))
        return st_fail(
            e, STRATA_ERROR_TYPE,
            WHO ": %s is %s, %s is %s and %s is %s; a product takes f32 into f32 or f64 into f64 (store it, "
                "then convert with a second program)",
            o[ix].name, strata_type_name((strata_type)X->type), o[iw].name,
            strata_type_name((strata_type)W->type), o[out].name, strata_type_name((strata_type)C->type));
    if ((s = check_operands(e, o, n, x, program)) || (s = check_apart(e, o, n, x, ix, iw, out))) return s;
    char small[1024], *text = small;
    const size_t room = 2 * strlen(program) + 1;
    if (room > sizeof small && !(text = malloc(room)))
        return st_fail(e, STRATA_ERROR_MEMORY, WHO ": out of memory for %zu bytes", room);
    product p = {o[ix].name, o[iw].name, o[out].name, false, false};
    if (!rewrite(program, &p, text)) {
        s = st_fail(e, STRATA_ERROR_UNSUPPORTED,
                    WHO
                    ": \"%s\" has several different products; one, %s @ %s, may occur (any number of times): "
                    "store the others first",
                    program, o[ix].name, o[iw].name);
    } else {
        strata_operand rest[ST_EPI_OPERANDS + 1];
        const int k = epilogue_operands(o, n, x, &p, ix, iw, out, rest);
        if (k < 0) {
            s = st_fail(e, STRATA_ERROR_UNSUPPORTED, WHO ": more than %d operands beside the product and %s",
                        ST_EPI_OPERANDS, o[out].name);
        } else if (!(s = check_again(e, &p, X, W, C))) {
            const bool plain = k == 0 && !strcmp(text, "out = acc");
            const strata_gemm_options with = {.epilogue = text, .operands = rest};
            s = strata_gemm(h, STRATA_ONE, *X, *W, STRATA_ZERO, *C, plain ? NULL : &with);
        }
    }
    if (text != small) free(text);
    return s;
}

strata_status strata_fused(strata_handle *h, const char *program, const strata_operand *operands,
                           const strata_fused_options *options)
{
    strata_status s = st_handle_check(h, WHO);
    if (s) return s;
    st_err *e = &h->err;
    for (int i = 0; options && i < ST_COUNT(options->reserved); i++)
        if (options->reserved[i])
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           WHO ": reserved words of strata_fused_options are not zero; start from {0}");
    if (!program || !strchr(program, '@'))
        return st_pw_run(h, WHO, program, operands, options ? options->axes : 0);
    if (!operands)
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       WHO ": operands is NULL; give a list that ends in a row without name");
    const char *names[ST_EXPR_VARS + 1] = {NULL};
    int n = 0;
    bool f64 = false;
    for (; operands[n].name; n++) {
        if (n == ST_EXPR_VARS)
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           WHO ": more than %d operands (does the list end in a row without name?)",
                           ST_EXPR_VARS);
        names[n] = operands[n].name;
        f64 |= operands[n].tensor.type == STRATA_F64;
    }
    st_expr *x;
    if ((s = st_expr_parse(e, WHO, program, names, f64, &x))) return s;
    s = st_expr_has_matmul(x) ? gemm_with(h, program, operands, n, x)
                              : st_pw_run(h, WHO, program, operands, options ? options->axes : 0);
    st_expr_free(x);
    return s;
}
