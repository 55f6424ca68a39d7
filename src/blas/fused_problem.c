/* SPDX-License-Identifier: Apache-2.0 */
/* fused_problem.c - takes a program with products apart: names, factors, and the dims and types of loaders and products. */
#include "blas/fused_problem.h"
#include <stdio.h>
#include <string.h>

static char nowhere[64];

/* ---- shapes ------------------------------------------------------------------------------------------------------------------ */

static bool small_float(int t) { return t == STRATA_F16 || t == STRATA_BF16; }
static bool is_byte(int t) { return t == STRATA_I8 || t == STRATA_U8; }

/* A packed tensor; `turned`: the last dim but one is the contiguous one. */
static strata_tensor packed(int type, int rank, const int64_t *dim, bool turned)
{
    strata_tensor t = strata_array(nowhere, (strata_type)type, rank, dim, NULL);
    if (!turned || rank < 2 || t.error) return t;
    int64_t d[STRATA_MAX_RANK];
    memcpy(d, dim, sizeof(int64_t) * (size_t)rank);
    d[rank - 1] = dim[rank - 2];
    d[rank - 2] = dim[rank - 1];
    return strata_transpose(strata_array(nowhere, (strata_type)type, rank, d, NULL));
}

/* Of an operand of factor l: elements along its rows and columns, and the strides; what it does not have is one element. */
typedef struct extent2 {
    int64_t len[2], stride[2];
} extent2;
static extent2 matrix_of(const st_fused *f, const st_fused_loader *l, int o)
{
    const strata_tensor *t = &f->op[o].tensor;
    const st_fused_place *p = o < f->n ? &l->place[o] : &(st_fused_place){0};
    extent2 x = {{1, 1}, {0, 0}};
    for (int d = 0; d < 2; d++) {
        const int at = p->along ? (p->along == d + 1 ? 0 : -1) : t->rank - 2 + d;
        if (at < 0 || at >= t->rank) continue;
        x.len[d] = t->dim[at];
        x.stride[d] = t->dim[at] == 1 ? 0 : t->stride[at];
    }
    return x;
}

/* As the factor sees it: a group's one element stands for all of them, and a list picks as many rows as it has elements. */
static void seen(const st_fused *f, const st_fused_loader *l, int o, int64_t len[2])
{
    const st_fused_place *p = &l->place[o];
    const extent2 x = matrix_of(f, l, o);
    len[0] = p->picks ? f->op[p->picks - 1].tensor.dim[0] : p->row_group ? x.len[0] * p->row_group : x.len[0];
    len[1] = p->col_group ? x.len[1] * p->col_group : x.len[1];
}

static strata_status check_place(const st_fused *f, const st_fused_loader *l, int o)
{
    const st_fused_place *p = &l->place[o];
    const strata_tensor *t = &f->op[o].tensor;
    if (p->along && t->rank != 1)
        return st_fail(f->e, STRATA_ERROR_SHAPE,
                       "%s: the factor \"%s\" indexes %s by one letter, so it must have rank 1; it is %s",
                       f->who, l->text + 6, f->op[o].name, ST_DIMS(*t));
    if (!p->along && (p->picks || p->row_group || p->col_group) && t->rank < 2)
        return st_fail(f->e, STRATA_ERROR_SHAPE,
                       "%s: the factor \"%s\" indexes %s by two letters, so it must be a matrix; it is %s",
                       f->who, l->text + 6, f->op[o].name, ST_DIMS(*t));
    if (!p->picks) return STRATA_OK;
    const strata_tensor *list = &f->op[p->picks - 1].tensor;
    if (list->rank != 1 || (list->type != STRATA_I32 && list->type != STRATA_I64))
        return st_fail(f->e, STRATA_ERROR_TYPE,
                       "%s: %s picks rows of %s, so it must be i32 or i64 of rank 1; it is %s %s", f->who,
                       f->op[p->picks - 1].name, f->op[o].name, strata_type_name((strata_type)list->type),
                       ST_DIMS(*list));
    if (p->row_group || t->rank > 2)
        return st_fail(f->e, STRATA_ERROR_UNSUPPORTED,
                       "%s: rows of %s are picked, so it must be one matrix without "
                       "groups along its rows",
                       f->who, f->op[o].name);
    return STRATA_OK;
}

static void widen(int64_t *to, int64_t len, bool *clash)
{
    if (*to == 1)
        *to = len;
    else if (len != 1 && len != *to)
        *clash = true;
}

/* An operand with groups has another length than the factor: the words are about groups, whose length must divide what they lie along. */
static strata_status groups_differ(const st_fused *f, const st_fused_loader *l, int o, const int64_t dim[2])
{
    const st_fused_place *p = &l->place[o];
    const extent2 x = matrix_of(f, l, o);
    const int d = p->row_group && x.len[0] * p->row_group != dim[0] ? 0 : p->col_group ? 1 : 0;
    const int64_t group = d ? p->col_group : p->row_group;
    return st_fail(f->e, STRATA_ERROR_SHAPE,
                   "%s: in the factor \"%s\" %s has %lld %s for groups of %lld, which are %lld %s, and the "
                   "other operands "
                   "have %lld; one element stands for a whole group, so %lld must be a multiple of %lld",
                   f->who, l->text + 6, f->op[o].name, (long long)x.len[d], d ? "columns" : "rows",
                   (long long)group, (long long)(x.len[d] * group), d ? "columns" : "rows", (long long)dim[d],
                   (long long)dim[d], (long long)group);
}

/* The dims of a loader's value: what its operands broadcast to; at least one of them is a matrix. */
static strata_status loader_shape(st_fused *f, int i, int other_type)
{
    const st_fused_loader *l = &f->t.loader[i];
    int64_t dim[STRATA_MAX_RANK];
    int rank = 0;
    bool turned = false;
    int64_t plain[2] = {0, 0}; /* the most rows and columns of an operand without groups along them */
    for (int d = 0; d < STRATA_MAX_RANK; d++) dim[d] = 1;
    for (int o = 0; o < f->n; o++) {
        const strata_tensor *t = &f->op[o].tensor;
        strata_status s;
        if (!(l->used >> o & 1)) continue;
        if ((s = check_place(f, l, o))) return s;
        if (t->rank < 2 && !l->place[o].along) continue;
        int64_t len[2];
        bool clash = false;
        seen(f, l, o, len);
        for (int d = 3; d <= t->rank; d++) widen(&dim[STRATA_MAX_RANK - d], t->dim[t->rank - d], &clash);
        widen(&dim[STRATA_MAX_RANK - 2], len[0], &clash);
        widen(&dim[STRATA_MAX_RANK - 1], len[1], &clash);
        if (!l->place[o].row_group) plain[0] = st_max64(plain[0], len[0]);
        if (!l->place[o].col_group) plain[1] = st_max64(plain[1], len[1]);
        if (clash && (l->place[o].row_group || l->place[o].col_group))
            return groups_differ(f, l, o, dim + STRATA_MAX_RANK - 2);
        if (clash)
            return st_fail(
                f->e, STRATA_ERROR_SHAPE,
                "%s: in the factor \"%s\" %s is %s, which does not fit the other operands (rows and "
                "columns of the factor are %lld and %lld)",
                f->who, l->text + 6, f->op[o].name, ST_DIMS(*t), (long long)dim[STRATA_MAX_RANK - 2],
                (long long)dim[STRATA_MAX_RANK - 1]);
        if (t->rank > rank && t->rank >= 2) {
            rank = t->rank;
            const int64_t a = t->stride[t->rank - 2], b = t->stride[t->rank - 1];
            turned = (a < 0 ? -a : a) < (b < 0 ? -b : b);
        }
    }
    if (!rank)
        return st_fail(f->e, STRATA_ERROR_SHAPE,
                       "%s: the factor \"%s\" has no operand of rank 2 or more, so it is no matrix", f->who,
                       l->text + 6);
    const int64_t rows = dim[STRATA_MAX_RANK - 2], cols = dim[STRATA_MAX_RANK - 1];
    /* one row or column does not repeat for the sake of a group */
    for (int o = 0; o < f->n; o++) {
        const st_fused_place *p = &l->place[o];
        if ((l->used >> o & 1) &&
            ((p->row_group && plain[0] && plain[0] < rows) || (p->col_group && plain[1] && plain[1] < cols)))
            return groups_differ(f, l, o, plain);
    }
    if ((l->row_group && rows % l->row_group) || (l->col_group && cols % l->col_group))
        return st_fail(f->e, STRATA_ERROR_SHAPE,
                       "%s: the factor \"%s\" is %lldx%lld, no multiple of its groups of %lld and %lld",
                       f->who, l->text + 6, (long long)rows, (long long)cols,
                       (long long)(l->row_group ? l->row_group : 1),
                       (long long)(l->col_group ? l->col_group : 1));
    const int type = f->f64 ? STRATA_F64 : small_float(other_type) ? other_type : STRATA_F32;
    f->op[st_fused_loader_at(f, i)].tensor = packed(type, rank, dim + STRATA_MAX_RANK - rank, turned);
    return STRATA_OK;
}

strata_tensor st_fused_loader_view(const st_fused *f, int i, int o)
{
    const st_fused_loader *l = &f->t.loader[i];
    const strata_tensor *t = &f->op[o].tensor;
    const st_fused_place *p = o < f->n ? &l->place[o] : &(st_fused_place){0};
    const int64_t group[2] = {l->row_group, l->col_group}, own[2] = {p->row_group, p->col_group};
    if (t->rank < 2 && !p->along) return *t;
    const extent2 x = matrix_of(f, l, o);
    strata_tensor r = *t;
    r.rank = t->rank > 2 ? t->rank - 2 : 0; /* batch dims */
    for (int d = 0; d < 2; d++) {
        int64_t len = x.len[d], stride = x.stride[d];
        if (d == 0 && p->picks) len = f->op[p->picks - 1].tensor.dim[0];
        if (group[d]) {
            const bool whole = own[d] || len == 1;
            r.dim[r.rank] = whole ? len : len / group[d];
            r.stride[r.rank++] = whole ? stride : stride * group[d];
            r.dim[r.rank] = whole ? 1 : group[d];
            r.stride[r.rank++] = whole ? 0 : stride;
        } else {
            r.dim[r.rank] = len;
            r.stride[r.rank++] = stride;
        }
    }
    return r;
}

static strata_status product_shape(st_fused *f, int i)
{
    const int ix = st_fused_factor_at(f, f->t.x[i]), iw = st_fused_factor_at(f, f->t.w[i]);
    const strata_tensor *X = &f->op[ix].tensor, *W = &f->op[iw].tensor;
    const char *nx = f->op[ix].name, *nw = f->op[iw].name;
    int64_t dim[STRATA_MAX_RANK];
    const int rank = X->rank > W->rank ? X->rank : W->rank;
    if (X->rank < 2 || W->rank < 2 || X->dim[X->rank - 1] != W->dim[W->rank - 2])
        return st_fail(
            f->e, STRATA_ERROR_SHAPE,
            "%s: %s is %s and %s is %s: in %s @ %s the columns of the first and the rows of the second "
            "must agree, and both must have rank 2 or more",
            f->who, nx, ST_DIMS(*X), nw, ST_DIMS(*W), nx, nw);
    dim[rank - 2] = X->dim[X->rank - 2];
    dim[rank - 1] = W->dim[W->rank - 1];
    for (int d = 3; d <= rank; d++) {
        const int64_t a = d <= X->rank ? X->dim[X->rank - d] : 1, b = d <= W->rank ? W->dim[W->rank - d] : 1;
        if (a != b && a != 1 && b != 1)
            return st_fail(f->e, STRATA_ERROR_SHAPE,
                           "%s: %s is %s and %s is %s: their batch dims do not broadcast", f->who, nx,
                           ST_DIMS(*X), nw, ST_DIMS(*W));
        dim[rank - d] = a == 1 ? b : a;
    }
    const int type = X->type == STRATA_F64                  ? STRATA_F64
                     : is_byte(X->type) && is_byte(W->type) ? STRATA_I32
                                                            : STRATA_F32;
    if (!st_gemm_types_fit(f->h, X->type, W->type, type))
        return st_fail(
            f->e, STRATA_ERROR_TYPE,
            "%s: %s is %s and %s is %s; products take f32 x f32, f64 x f64, f16 x f16, bf16 x bf16, 8-bit "
            "floats and 8-bit integers where the device has them",
            f->who, nx, strata_type_name((strata_type)X->type), nw, strata_type_name((strata_type)W->type));
    f->op[st_fused_product_at(f, i)].tensor = packed(type, rank, dim, false);
    return STRATA_OK;
}

/* The space of the program: the broadcast of what it names. Whether it broadcasts at all the pointwise engine says, with better words. */
static void program_space(st_fused *f)
{
    const st_expr_var *var;
    const int nv = st_expr_vars(f->x, &var);
    f->rank = 0;
    f->first = 1;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < f->n + f->t.products; i++) {
            const strata_tensor *t = &f->op[i].tensor;
            if (i < f->n && !(f->t.outside >> i & 1)) continue;
            const int v = st_expr_find(f->x, f->op[i].name);
            if (i < f->n && v >= 0 && v < nv && var[v].index != ST_INDEX_NONE) continue;
            if (pass == 0 && t->rank > f->rank) f->rank = t->rank;
            if (pass == 1 && t->rank == f->rank && f->rank > 0 && t->dim[0] > f->first) f->first = t->dim[0];
        }
}

static void take_key(st_fused *f, const st_problem *p)
{
    const int64_t *key = p->data, *k = key + ST_KEY_HEAD;
    f->second = key[1];
    f->axes = (uint32_t)key[2];
    f->n = (int)key[3];
    for (int o = 0; o < f->n; o++) {
        strata_tensor t = {.data = nowhere, .type = (int32_t)(k[0] & 0xff), .rank = (int32_t)(k[0] >> 8)};
        memcpy(f->name[o], k + 1, ST_EXPR_NAME);
        k += 1 + ST_KEY_NAME;
        memcpy(t.dim, k, (size_t)t.rank * sizeof *k), k += t.rank;
        memcpy(t.stride, k, (size_t)t.rank * sizeof *k), k += t.rank;
        f->op[o] = (strata_operand){f->name[o], t};
        f->f64 |= t.type == STRATA_F64;
    }
}

static strata_status parse(st_fused *f)
{
    const char *names[ST_FUSED_ALL + 1] = {NULL};
    int n = 0;
    for (; n < f->n; n++) names[n] = f->name[n];
    for (int i = 0; i < f->t.loaders; i++) names[n + i] = f->name[st_fused_loader_at(f, i)];
    strata_status s = st_expr_parse(f->e, f->who, f->t.program, names, f->f64, &f->x);
    if (s) return s;
    const st_expr_var *var;
    const int nv = st_expr_vars(f->x, &var);
    for (int v = 0; v < nv; v++)
        for (int i = 0; i < f->n; i++)
            if (var[v].output && !strcmp(var[v].name, f->name[i])) f->outputs |= 1u << i;
    for (int i = 0; i < f->t.products; i++) {
        if (f->t.x[i] < f->n) f->factors |= 1u << f->t.x[i];
        if (f->t.w[i] < f->n) f->factors |= 1u << f->t.w[i];
    }
    for (int i = 0; i < f->t.loaders; i++) f->factors |= f->t.loader[i].used | f->t.loader[i].lists;
    for (int i = 0; i < f->n; i++) {
        const bool used = (f->factors | f->t.outside | f->outputs) >> i & 1;
        if (!used)
            return st_fail(f->e, STRATA_ERROR_ARGUMENT, "%s: operand %s does not occur in the program",
                           f->who, f->name[i]);
        if (f->outputs >> i & 1 && f->factors >> i & 1)
            return st_fail(
                f->e, STRATA_ERROR_ALIAS,
                "%s: the program writes %s, a factor of a product; a product cannot replace its own "
                "factor: store it to another operand",
                f->who, f->name[i]);
    }
    if (!f->outputs)
        return st_fail(f->e, STRATA_ERROR_ARGUMENT, "%s: the program \"%s\" writes no operand", f->who,
                       f->t.program);
    return STRATA_OK;
}

void st_fused_free(st_fused *f)
{
    st_expr_free(f->x);
    st_fused_text_free(&f->t);
    f->x = NULL;
}

strata_status st_fused_take(st_fused *f, strata_handle *h, const st_problem *p)
{
    memset(f, 0, sizeof *f);
    f->h = h;
    f->e = &h->err;
    f->who = p->who;
    take_key(f, p);
    strata_status s = st_fused_split(f->e, f->who, p->text, f->op, f->n, &f->t);
    if (s) return s;
    f->temps = f->t.products + f->t.loaders;
    if (f->n + f->temps > ST_EXPR_VARS) {
        st_fused_text_free(&f->t);
        return st_fail(f->e, STRATA_ERROR_UNSUPPORTED,
                       "%s: more than %d operands, products and factors together", f->who, ST_EXPR_VARS);
    }
    for (int i = 0; i < f->temps; i++) {
        const bool product = i < f->t.products;
        snprintf(f->name[f->n + i], ST_EXPR_NAME, product ? "_p%d" : "_f%d", product ? i : i - f->t.products);
        f->op[f->n + i].name = f->name[f->n + i];
    }
    if ((s = parse(f))) goto failed;
    for (int i = 0; i < f->t.loaders; i++) {
        int plain = STRATA_NONE;
        if (f->t.loader[i].picks &&
            !strpbrk(f->t.loader[i].text + 6, "+-*/!?<>=&|(), ")) /* rows as they are */
            for (int o = 0; o < f->n; o++)
                if (f->t.loader[i].used >> o & 1) plain = f->op[o].tensor.type;
        int other = STRATA_NONE; /* of the first product that has the loader */
        for (int k = 0; k < f->t.products && !other; k++) {
            const int o = f->t.x[k] == f->n + i ? f->t.w[k] : f->t.w[k] == f->n + i ? f->t.x[k] : -1;
            if (o >= 0 && o < f->n) other = f->op[o].tensor.type;
        }
        if ((s = loader_shape(f, i, other))) goto failed;
        if (plain && !f->f64 && !st_type_is_sub_byte(plain))
            f->op[st_fused_loader_at(f, i)].tensor.type = plain;
    }
    for (int i = 0; i < f->t.products; i++)
        if ((s = product_shape(f, i))) goto failed;
    program_space(f);
    return STRATA_OK;
failed:
    st_fused_free(f);
    return s;
}
