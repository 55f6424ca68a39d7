/* SPDX-License-Identifier: Apache-2.0 */
/* fused_mixed.c - a program with products as one pass over the packed kernels (tile/gemm_mixed.h), where it is one: products of the same dims, nothing
 * that depends on positions, reductions over the columns only. */
#include "blas/fused_problem.h"
#include "tile/gemm_mixed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static st_mix_term no_term(void) { return (st_mix_term){.gr = 1, .gc = 1, .picks = -1}; }

/* Operand o as it stands in the program: strides along the last two dims of the products and their batch dims; false where it does not broadcast to them. */
static bool program_term(const st_fused *f, int o, st_index index, const strata_tensor *P, st_mix_term *to)
{
    const strata_tensor *t = &f->op[o].tensor;
    *to = no_term();
    to->data = o;
    to->type = t->type;
    if (index != ST_INDEX_NONE) {
        const int d = P->rank - (index == ST_INDEX_M ? 2 : 1);
        if (t->rank != 1 || (t->dim[0] != P->dim[d] && t->dim[0] != 1)) return false;
        *(index == ST_INDEX_M ? &to->sr : &to->sc) = t->dim[0] == 1 ? 0 : t->stride[0];
        return true;
    }
    if (t->rank > P->rank) return false;
    for (int d = 1; d <= t->rank; d++) {
        const int64_t len = t->dim[t->rank - d], stride = len == 1 ? 0 : t->stride[t->rank - d];
        if (len != 1 && len != P->dim[P->rank - d]) return false;
        *(d == 1 ? &to->sc : d == 2 ? &to->sr : &to->sb[P->rank - d]) = stride;
    }
    return true;
}

static void batch_strides(const strata_tensor *t, const strata_tensor *P, st_mix_term *to)
{
    for (int d = 3; d <= t->rank; d++)
        to->sb[P->rank - d] = t->dim[t->rank - d] == 1 ? 0 : t->stride[t->rank - d];
}

/* A factor's matrix: lines are rows left of '@' and columns right of it. */
static st_mix_term factor_term(const st_fused *f, const st_fused_place *p, int o, bool right,
                               const strata_tensor *P)
{
    const strata_tensor *t = &f->op[o].tensor;
    st_mix_term x = no_term();
    int64_t stride[2] = {0, 0};
    for (int d = 0; d < 2; d++) {
        const int at = p->along ? (p->along == d + 1 ? 0 : -1) : t->rank - 2 + d;
        if (at >= 0 && at < t->rank && t->dim[at] != 1) stride[d] = t->stride[at];
    }
    x.data = o;
    x.type = t->type;
    x.sr = stride[right];
    x.sc = stride[!right];
    const int64_t row = p->row_group ? p->row_group : 1, col = p->col_group ? p->col_group : 1;
    x.gr = right ? col : row;
    x.gc = right ? row : col;
    batch_strides(t, P, &x);
    if (p->picks) {
        const strata_tensor *list = &f->op[p->picks - 1].tensor;
        x.picks = p->picks - 1;
        x.picks_type = list->type;
        x.picks_step = list->stride[0];
        x.picks_from = t->dim[t->rank - 2];
        x.sr = t->stride[t->rank - 2];
    }
    return x;
}

static bool loader_factor(const st_fused *f, int i, const strata_tensor *P, st_mix_factor *to)
{
    const st_fused_loader *l = &f->t.loader[i];
    const char *names[ST_FUSED_ALL + 1] = {NULL};
    const st_expr_var *var;
    const strata_tensor *value = &f->op[st_fused_loader_at(f, i)].tensor;
    st_err ignored = {0};
    int only = -1, count = 0;
    for (int o = 0; o < f->n; o++)
        if (l->used >> o & 1) only = o, count++;
    to->type = value->type;
    to->k = value->dim[value->rank - (l->right ? 2 : 1)];
    to->by_k = value->stride[value->rank - (l->right ? 2 : 1)] == 1;
    if (count == 1 && !strcmp(l->text + 6, f->name[only]) && l->place[only].picks &&
        f->op[only].tensor.type == value->type) { /* rows of one matrix as they are */
        to->terms = 1;
        to->term[0] = factor_term(f, &l->place[only], only, l->right, P);
        return true;
    }
    for (int o = 0; o < f->n; o++) names[o] = f->name[o];
    names[f->n] = f->name[st_fused_loader_at(f, i)];
    if (st_tile_epilogue_use(l->text, "index").used ||
        st_expr_parse(&ignored, f->who, l->text, names, f->f64, &to->x))
        return false;
    if (st_expr_reductions(to->x) || st_expr_has_matmul(to->x)) return false;
    to->terms = st_expr_vars(to->x, &var);
    to->out = st_expr_find(to->x, names[f->n]);
    for (int v = 0; v < to->terms; v++) {
        to->term[v] = no_term();
        for (int o = 0; o < f->n; o++)
            if (!strcmp(var[v].name, f->name[o])) {
                if (var[v].output) return false;
                to->term[v] = factor_term(f, &l->place[o], o, l->right, P);
            }
    }
    return to->out >= 0;
}

/* The number of factor k (as st_fused_text counts) in the list, which it joins when it is new; -1: it cannot be read so. */
static int join(const st_fused *f, int k, bool right, const strata_tensor *P, st_mix_factor **list, int *n,
                int *known)
{
    for (int i = 0; i < *n; i++)
        if (known[i] == k) return i;
    st_mix_factor *x = calloc(1, sizeof *x);
    if (!x) return -1;
    list[*n] = x;
    known[*n] = k;
    if (k >= f->n) return loader_factor(f, k - f->n, P, x) ? (*n)++ : -1;
    const strata_tensor *t = &f->op[k].tensor;
    x->type = t->type;
    x->k = t->dim[t->rank - (right ? 2 : 1)];
    x->terms = 1;
    x->term[0] = factor_term(f, &(st_fused_place){0}, k, right, P);
    return (*n)++;
}

/* What the pointwise engine says to the program over products that are stored: all that is wrong with it is then found in its words by the other form. */
static bool binds(const st_fused *f, const char *text)
{
    strata_operand used[ST_FUSED_ALL + 1];
    int64_t key[ST_KEY_WORDS];
    st_err ignored = {0};
    int n = 0;
    for (int i = 0; i < f->n + f->temps; i++)
        if (st_tile_epilogue_use(text, f->op[i].name).used) used[n++] = f->op[i];
    st_pw_shape *s = malloc(sizeof *s);
    if (!s) return false;
    st_pw_program_key(key, used, n, f->axes, 1);
    const bool good = !st_pw_shape_make(&ignored, f->who, key, text, s) && s->f64 == f->f64;
    if (good || s->x) st_expr_free(s->x);
    free(s);
    return good;
}

static bool take_program(const st_fused *f, st_mix *m, const strata_tensor *P, char *why, size_t n)
{
    const char *names[ST_FUSED_ALL + 1] = {NULL};
    const st_expr_var *var;
    st_err ignored = {0};
    char *text = st_fused_rewrite(&f->t, f->op, f->n, -1, NULL);
    for (int i = 0; i < f->n + f->t.products; i++) names[i] = f->name[i];
    const bool good = text && binds(f, text) && !st_expr_parse(&ignored, f->who, text, names, f->f64, &m->x);
    free(text);
    if (!good) {
        snprintf(why, n, "the program does not bind to its operands");
        return false;
    }
    m->by_rows = st_expr_reductions(m->x) > 0;
    if (m->by_rows && f->axes && f->axes != 1u << (P->rank - 1)) {
        snprintf(why, n, "the program reduces over other dims than the columns");
        return false;
    }
    const int vars = st_expr_vars(m->x, &var);
    for (int v = 0; v < vars; v++) {
        m->product[v] = -1;
        bool known = false;
        for (int i = 0; i < f->n + f->t.products && !known; i++) {
            if (strcmp(var[v].name, f->name[i])) continue;
            known = true;
            if (i >= f->n)
                m->product[v] = i - f->n;
            else if (!program_term(f, i, var[v].index, P, &m->term[v])) {
                snprintf(why, n, "%s is more than the products' dims", f->name[i]);
                return false;
            }
        }
        if (!known) {
            snprintf(why, n, "the program asks for positions");
            return false;
        }
    }
    return true;
}

struct st_mix *st_fused_mix(const st_fused *f, char *why, size_t n)
{
    const strata_tensor *P = &f->op[st_fused_product_at(f, 0)].tensor;
    int ka[ST_MIX_PRODUCTS], kb[ST_MIX_PRODUCTS];
    if (f->h->gpu) {
        snprintf(why, n, "the packed kernels are a CPU's");
        return NULL;
    }
    if (!f->t.products || st_tile_epilogue_use(f->t.program, "index").used) {
        snprintf(why, n, "the program asks for positions");
        return NULL;
    }
    for (int i = 1; i < f->t.products; i++) {
        const strata_tensor *Q = &f->op[st_fused_product_at(f, i)].tensor;
        bool same = Q->rank == P->rank;
        for (int d = 0; same && d < P->rank; d++) same = Q->dim[d] == P->dim[d];
        if (same) continue;
        snprintf(why, n, "the products are %s and %s", ST_DIMS(*P), ST_DIMS(*Q));
        return NULL;
    }
    if (P->rank - 2 > ST_AXES) {
        snprintf(why, n, "more than %d batch dims", ST_AXES);
        return NULL;
    }
    st_mix *m = calloc(1, sizeof *m);
    if (!m) {
        snprintf(why, n, "no memory");
        return NULL;
    }
    m->m = P->dim[P->rank - 2];
    m->n = P->dim[P->rank - 1];
    m->items = 1;
    m->batches = P->rank - 2;
    for (int d = 0; d < m->batches; d++) m->items *= m->batch[d] = P->dim[d];
    m->products = f->t.products;
    if (!take_program(f, m, P, why, n)) goto refused;
    for (int i = 0; i < m->products; i++) {
        m->pa[i] = join(f, f->t.x[i], false, P, m->a, &m->na, ka);
        m->pb[i] = join(f, f->t.w[i], true, P, m->b, &m->nb, kb);
        if (m->pa[i] < 0 || m->pb[i] < 0) {
            snprintf(why, n, "a factor is no expression that maps elements");
            goto refused;
        }
        m->flops += 2.0 * (double)m->items * (double)m->m * (double)m->n * (double)m->a[m->pa[i]]->k;
    }
    return m;
refused:
    st_mix_free(m);
    return NULL;
}
