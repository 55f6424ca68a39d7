/* SPDX-License-Identifier: Apache-2.0 */
/* lower.c - from values to nodes: what class each has under a pattern of arguments, in which phase it can be had, and which
 * pairs become one operation. */
#include "expr/lower.h"
#include <string.h>

int st_expr_variant(st_op op, unsigned bits)
{
    if (op == ST_OP_SELECT_LT || op == ST_OP_SELECT_LE) return bits & 1 ? -1 : (int)(bits >> 1);
    if (op == ST_OP_SUBSUBMUL) return bits & 1 ? -1 : (int)(bits >> 1);
    if (op == ST_OP_SUBMULMULADD) return bits == 6 ? 0 : -1;
    if (op == ST_OP_DEV_AFFINE) return bits == 14 ? 0 : -1;
    return bits < 8 ? (int)bits : -1;
}

/* ---- classes, phases, uses ------------------------------------------------------------------------------------------- */
void st_expr_classify(build *b)
{
    const st_expr *x = b->x;
    int mode = b->key->mode;
    bool swapped = b->key->swapped;
    for (int i = 0; i < x->nvalues; i++) {
        const st_value *v = &x->value[i];
        node *n = &b->n[i];
        *n = (node){.op = v->op, .at = NOWHERE, .keep_at = NOWHERE, .home = NOWHERE};
        memcpy(n->arg, v->arg, sizeof n->arg);
        if (v->op == ST_OP_VAR) n->cls = (uint8_t)pat_cls(b->key->arg[v->var]);
        if (v->op == ST_OP_INDEX) n->cls = (v->var == -1) != swapped ? ST_CLS_N : ST_CLS_M;
        for (int j = 0; j < ST_EXPR_ARGS; j++)
            if (n->arg[j] >= 0) {
                const node *a = &b->n[n->arg[j]];
                n->cls |= a->cls;
                if (a->phase > n->phase) n->phase = a->phase;
            }
        if (is_red(v->op)) {
            n->cls = mode == ST_MODE_ROWS ? ST_CLS_M : mode == ST_MODE_COLS ? ST_CLS_N : ST_CLS_U;
            n->phase++;
            n->mean = v->op == ST_OP_MEAN;
            if (n->mean) n->op = ST_OP_SUM;
        }
    }
    for (int i = 0; i < x->nstores; i++) b->n[x->store[i].value].uses++, b->n[x->store[i].value].live = true;
    for (int i = x->nvalues - 1; i >= 0; i--)
        if (b->n[i].live)
            for (int j = 0; j < ST_EXPR_ARGS; j++)
                if (b->n[i].arg[j] >= 0) b->n[b->n[i].arg[j]].live = true, b->n[b->n[i].arg[j]].uses++;
    for (int i = 0; i < x->nstores; i++)
        if (b->n[x->store[i].value].phase > b->last_phase) b->last_phase = b->n[x->store[i].value].phase;
}

/* ---- fusion ---------------------------------------------------------------------------------------------------------- */
unsigned st_expr_variant_bits(const build *b, const node *n, int cls)
{
    unsigned bits = 0;
    for (int j = 0; j < ST_EXPR_ARGS; j++)
        if (n->arg[j] >= 0 && is_scalar_for(b, cls, n->arg[j])) bits |= 1u << j;
    return bits;
}

static bool has_kernel(const build *b, const node *n, int cls)
{
    int v = st_expr_variant((st_op)n->op, st_expr_variant_bits(b, n, cls));
    return v >= 0 && b->k->op[n->op][v];
}

/* node `i` has producer `p` to itself and both work on the same class, so the two can be one instruction */
static bool own(const build *b, const node *n, int p)
{
    return p >= 0 && b->n[p].uses == 1 && b->n[p].cls == n->cls && b->n[p].phase == n->phase;
}

/* n becomes `op` of the given operands (-1 ends them), where that has a kernel */
#define take(b, n, op, ...) take_of(b, n, op, (const int[]){__VA_ARGS__, -1})
static bool take_of(build *b, node *n, st_op op, const int *arg)
{
    node f = *n;
    f.op = (uint8_t)op;
    for (int j = 0; j < ST_EXPR_ARGS; j++) f.arg[j] = -1;
    for (int j = 0; arg[j] >= 0; j++) f.arg[j] = (int16_t)arg[j];
    if (!is_red(op) ? !has_kernel(b, &f, f.cls) : b->key->mode == ST_MODE_COLS && !b->k->cols[op])
        return false;
    *n = f;
    return true;
}

static void scalar_last(build *b, node *n, int i, int j)
{
    if (is_scalar_for(b, n->cls, n->arg[i]) && !is_scalar_for(b, n->cls, n->arg[j])) {
        int16_t t = n->arg[i];
        n->arg[i] = n->arg[j];
        n->arg[j] = t;
    }
}

static void fuse_sum(build *b, node *n)
{
    for (int j = 1; j >= 0; j--) {
        int p = n->arg[j], other = n->arg[1 - j];
        if (!own(b, n, p)) continue;
        const node *q = &b->n[p];
        if (q->op != ST_OP_MUL) continue;
        st_op op = n->op == ST_OP_ADD ? ST_OP_FMA : j == 0 ? ST_OP_FMS : ST_OP_FNMA;
        if (take(b, n, op, q->arg[0], q->arg[1], other)) break;
    }
    for (int j = 0; j < 2 && n->op == ST_OP_FMA; j++) {
        const node *q = &b->n[n->arg[j]];
        if (own(b, n, n->arg[j]) && q->op == ST_OP_SUBMUL)
            take(b, n, ST_OP_SUBMULMULADD, q->arg[0], q->arg[1], q->arg[2], n->arg[1 - j], n->arg[2]);
        else if (own(b, n, n->arg[j]) && q->op == ST_OP_SUBSUBMUL)
            take(b, n, ST_OP_DEV_AFFINE, q->arg[0], q->arg[1], q->arg[2], q->arg[3], n->arg[1 - j],
                 n->arg[2]);
    }
    int p = n->arg[0]; /* a difference is cheap enough to be computed for each of its users */
    if (n->op == ST_OP_SUB && b->n[p].op == ST_OP_SUB && b->n[p].cls == n->cls)
        take(b, n, ST_OP_SUBSUB, b->n[p].arg[0], b->n[p].arg[1], n->arg[1]);
}

static void fuse_product(build *b, node *n)
{
    for (int j = 0; j < 2 && n->arg[0] != n->arg[1]; j++) { /* a square may become part of a sum */
        const node *q = &b->n[n->arg[j]];
        if (q->cls != n->cls) continue;
        if (q->op == ST_OP_SUB && take(b, n, ST_OP_SUBMUL, q->arg[0], q->arg[1], n->arg[1 - j])) break;
        if (q->op == ST_OP_SUBSUB &&
            take(b, n, ST_OP_SUBSUBMUL, q->arg[0], q->arg[1], q->arg[2], n->arg[1 - j]))
            break;
    }
}

static void fuse_unary(build *b, node *n)
{
    static const struct {
        uint8_t outer, inner, fused;
    } pairs[] = {
        {ST_OP_RELU, ST_OP_ADD, ST_OP_RELU_ADD},       {ST_OP_RELU, ST_OP_FMA, ST_OP_RELU_FMA},
        {ST_OP_EXP, ST_OP_SUB, ST_OP_EXP_SUB},         {ST_OP_TANH, ST_OP_ADD, ST_OP_TANH_ADD},
        {ST_OP_SIGMOID, ST_OP_ADD, ST_OP_SIGMOID_ADD}, {ST_OP_GELU, ST_OP_ADD, ST_OP_GELU_ADD},
        {ST_OP_SILU, ST_OP_ADD, ST_OP_SILU_ADD},       {ST_OP_GELU_TANH, ST_OP_ADD, ST_OP_GELU_TANH_ADD}};
    if (!own(b, n, n->arg[0])) return;
    const node *q = &b->n[n->arg[0]];
    for (int i = 0; i < ST_COUNT(pairs); i++)
        if (n->op == pairs[i].outer && q->op == pairs[i].inner)
            if (take(b, n, (st_op)pairs[i].fused, q->arg[0], q->arg[1], q->arg[2])) return;
}

static void fuse_reduction(build *b, node *n)
{
    int p = n->arg[0];
    const node *q = &b->n[p];
    if (n->op != ST_OP_SUM || q->op != ST_OP_MUL || q->uses != 1 || q->cls != ST_CLS_MN) return;
    int a = q->arg[0], c = q->arg[1];
    if (a != c) {
        if (b->n[a].cls & ST_CLS_N && b->n[c].cls & ST_CLS_N) take(b, n, ST_OP_DOT, a, c);
        return;
    }
    const node *d = &b->n[a];
    if (d->op == ST_OP_SUB && d->cls == ST_CLS_MN && b->n[d->arg[0]].cls & ST_CLS_N &&
        (b->key->mode == ST_MODE_COLS ? b->n[d->arg[1]].cls == ST_CLS_N : !(b->n[d->arg[1]].cls & ST_CLS_N)))
        take(b, n, ST_OP_SQDEV, d->arg[0], d->arg[1]);
    else
        take(b, n, ST_OP_SUMSQ, a);
}

void st_expr_fuse(build *b)
{
    for (int i = 0; i < b->x->nvalues; i++) {
        node *n = &b->n[i];
        if (!n->live || n->arg[0] < 0) continue;
        if (st_expr_ops[n->op].flags & ST_OPF_C) scalar_last(b, n, 0, 1);
        int p;
        switch (n->op) {
        case ST_OP_ADD:
        case ST_OP_SUB: fuse_sum(b, n); break;
        case ST_OP_MUL: fuse_product(b, n); break;
        case ST_OP_DIV: /* a row's own scale: one division a row */
            if (b->n[n->arg[1]].phase > 0) take(b, n, ST_OP_DIV_ROW, n->arg[0], n->arg[1]);
            break;
        case ST_OP_FMA: scalar_last(b, n, 0, 1); break;
        case ST_OP_SELECT:
            p = n->arg[0];
            if (own(b, n, p) && (b->n[p].op == ST_OP_LT || b->n[p].op == ST_OP_LE))
                take(b, n, b->n[p].op == ST_OP_LT ? ST_OP_SELECT_LT : ST_OP_SELECT_LE, b->n[p].arg[0],
                     b->n[p].arg[1], n->arg[1], n->arg[2]);
            break;
        case ST_OP_SUM: fuse_reduction(b, n); break;
        default:
            if (st_expr_ops[n->op].arity == 1 && !is_red(n->op)) fuse_unary(b, n);
        }
    }
}
