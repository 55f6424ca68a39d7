/* SPDX-License-Identifier: Apache-2.0 */
/* fused_reference.c - programs with products without a workspace (CPU): slow, and always there where it can be at all.
 *
 * The program runs on strips: of a map a few columns of a row, of a reduction one line (or, across rows, a few columns). Before a strip its products are
 * computed element by element into a buffer: a sum over k in f64, factors that are expressions evaluated as k passes. Strip, buffer and the evaluation's own
 * scratch stay below 1 MiB, which a workspace limit does not mean (strata_choice); a reduction whose line is longer than that is refused. */
#include "blas/fused_problem.h"
#include "tile/tile.h"
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

enum { STRIP = 64, STEP = 256, MOST_BYTES = 512 << 10 };

typedef struct reference_plan {
    strata_plan base;
    st_fused_use use; /* as all plans of the family begin */
    st_fused f;
    st_pw_shape s;        /* of the program, over those operands and products that it names */
    int at[ST_FUSED_ALL]; /* operand i of the shape is number at[i] of f */
    st_expr *loader[ST_FUSED_LOADERS];
    int64_t rows, cols;          /* of a strip */
    size_t buffer[ST_EXPR_VARS]; /* where variable v's product stands in the scratch */
    size_t factor_scratch, program_scratch, bytes;
} reference_plan;

/* ---- making ------------------------------------------------------------------------------------------------------------------- */

static bool is_product(const reference_plan *p, int v)
{
    return p->s.operand[v] >= 0 && p->at[p->s.operand[v]] >= p->f.n;
}

static size_t up64(size_t n) { return (n + 63) / 64 * 64; }

/* Strips, and what stands where in the scratch; false with the rule that refuses. */
static bool lay_out(reference_plan *p, char *why, size_t n)
{
    const st_pw_shape *s = &p->s;
    size_t column = 0;
    for (int v = 0; v < s->nvars; v++) column += is_product(p, v) ? 8 : 0;
    const int64_t few = st_min64(STRIP, s->col.len);
    p->rows = s->mode == ST_PW_COLS || s->mode == ST_PW_ALL ? s->row.len : 1;
    p->cols = s->mode == ST_PW_ROWS || s->mode == ST_PW_ALL ? s->col.len : few;
    if (s->mode == ST_PW_COLS)
        while (p->cols > 1 && (double)p->rows * (double)p->cols * (double)column > MOST_BYTES) p->cols /= 2;
    if (s->pack) return snprintf(why, n, "it reduces over dims that do not lie beside each other"), false;
    if (s->elements == 0) return snprintf(why, n, "there are no elements"), false;
    if ((double)p->rows * (double)p->cols * (double)column > MOST_BYTES)
        return snprintf(why, n, "what is reduced at once, %lld x %lld products, is more than %d KiB",
                        (long long)p->rows, (long long)p->cols, MOST_BYTES >> 10),
               false;
    size_t at = p->factor_scratch;
    p->program_scratch = at;
    at += up64(s->mode == ST_PW_ROWS   ? st_expr_rows_scratch(s->x, s->col.len)
               : s->mode == ST_PW_COLS ? st_expr_cols_scratch(s->x, p->cols)
                                       : st_expr_scratch(s->x));
    for (int v = 0; v < s->nvars; v++) {
        if (!is_product(p, v)) continue;
        p->buffer[v] = at;
        at += up64((size_t)(p->rows * p->cols) * 8);
    }
    p->bytes = at;
    return true;
}

static bool parse_loaders(reference_plan *p, char *why, size_t n)
{
    st_fused *f = &p->f;
    const char *names[ST_FUSED_ALL + 1] = {NULL};
    for (int i = 0; i < f->n + f->temps; i++) names[i] = f->name[i];
    for (int i = 0; i < f->t.loaders; i++) {
        st_err e = {0};
        const st_expr_var *var;
        if (f->t.loader[i].picks)
            return snprintf(why, n, "rows that a list picks are read by other kernels"), false;
        if (st_expr_parse(&e, f->who, f->t.loader[i].text, names, f->f64, &p->loader[i]))
            return snprintf(why, n, "%.150s", e.text), false;
        for (int v = st_expr_vars(p->loader[i], &var) - 1; v >= 0; v--) {
            bool known = false;
            for (int o = 0; o < f->n + f->temps; o++) known |= !strcmp(var[v].name, f->name[o]);
            if (!known) return snprintf(why, n, "a factor uses %s", var[v].name), false;
        }
        const size_t scratch = up64(st_expr_scratch(p->loader[i]));
        if (scratch > p->factor_scratch) p->factor_scratch = scratch;
    }
    return true;
}

static bool shape(reference_plan *p, char *why, size_t n)
{
    st_fused *f = &p->f;
    char *text = st_fused_rewrite(&f->t, f->op, f->n, -1, NULL);
    strata_operand used[ST_FUSED_ALL + 1];
    int64_t key[ST_KEY_WORDS];
    st_err e = {0};
    int k = 0;
    if (!text) return snprintf(why, n, "no memory"), false;
    for (int i = 0; i < f->n + f->t.products; i++) {
        if (!st_tile_epilogue_use(text, f->name[i]).used) continue;
        p->at[k] = i;
        used[k] = f->op[i];
        used[k++].name = f->name[i];
    }
    used[k].name = NULL;
    st_pw_program_key(key, used, k, f->axes, 1);
    const strata_status s = st_pw_shape_make(&e, f->who, key, text, &p->s);
    free(text);
    if (s) p->s.x = NULL;
    if (s) snprintf(why, n, "%.150s", e.text);
    return !s;
}

static void destroy(strata_plan *plan)
{
    reference_plan *p = (reference_plan *)plan;
    for (int i = 0; i < ST_FUSED_LOADERS; i++) st_expr_free(p->loader[i]);
    st_expr_free(p->s.x);
    st_fused_free(&p->f);
}

/* p->f is taken when this is true; else nothing is left to free */
static bool make(reference_plan *p, strata_handle *h, const st_problem *pr, char *why, size_t n)
{
    if (st_fused_take(&p->f, h, pr)) return snprintf(why, n, "%.150s", h->err.text), false;
    for (int i = 0; i < p->f.n + p->f.temps; i++) p->f.op[i].name = p->f.name[i];
    if (shape(p, why, n) && parse_loaders(p, why, n) && lay_out(p, why, n)) return true;
    destroy(&p->base);
    return false;
}

/* ---- factors ------------------------------------------------------------------------------------------------------------------ */

typedef struct worker {
    const reference_plan *p;
    void *const *data; /* of the operands */
    char *scratch;
} worker;

/* n elements of loader i's value as its k goes on, from k0: `item` is its batch index, `line` its row (left of '@') or column. */
static void loader_run(const worker *w, int i, const int64_t *item, int64_t line, int64_t k0, int64_t n,
                       double *out)
{
    const st_fused *f = &w->p->f;
    const st_fused_loader *l = &f->t.loader[i];
    const strata_tensor *value = &f->op[st_fused_loader_at(f, i)].tensor;
    const int64_t group[2] = {l->row_group, l->col_group};
    const st_expr_var *var;
    const int nv = st_expr_vars(w->p->loader[i], &var), kd = l->right ? 0 : 1;
    while (n > 0) {
        int64_t at[STRATA_MAX_RANK + 2], place[2], many = n;
        double room[STEP];
        int rank = 0, along = 0;
        place[kd] = k0, place[1 - kd] = line;
        if (group[kd]) many = st_min64(n, group[kd] - k0 % group[kd]);
        for (; rank < value->rank - 2; rank++) at[rank] = item[rank];
        for (int d = 0; d < 2; d++) {
            if (group[d]) at[rank++] = place[d] / group[d];
            if (d == kd) along = rank;
            at[rank++] = group[d] ? place[d] % group[d] : place[d];
        }
        st_expr_arg args[ST_EXPR_VARS];
        for (int v = 0; v < nv; v++) {
            int o = 0;
            while (strcmp(f->name[o], var[v].name) != 0) o++;
            if (o >= f->n) { /* the value itself */
                args[v] = (st_expr_arg){room, value->type, 0, 1};
                continue;
            }
            const strata_tensor t = st_fused_loader_view(f, i, o);
            int64_t off = 0, step = 0;
            for (int d = 0; d < t.rank; d++) {
                const int own = rank - t.rank + d;
                if (t.dim[d] > 1 && own >= 0) off += at[own] * t.stride[d];
                if (t.dim[d] > 1 && own == along) step = t.stride[d];
            }
            args[v] = st_expr_arg_at(w->data[o], t.type, off, 0, step);
        }
        st_expr_map(w->p->loader[i], args, 1, many, 0, 0, w->scratch);
        st_convert(value->type, room, 1, STRATA_F64, out, 1, many);
        k0 += many, out += many, n -= many;
    }
}

/* n elements of factor `which` along k from k0; item: the product's batch index, of `rank` dims */
static void factor_run(const worker *w, int which, bool right, const int64_t *item, int rank, int64_t line,
                       int64_t k0, int64_t n, double *out)
{
    const st_fused *f = &w->p->f;
    const int o = st_fused_factor_at(f, which);
    const strata_tensor *t = &f->op[o].tensor;
    int64_t own[STRATA_MAX_RANK] = {0}, off = 0;
    for (int d = 0; d < t->rank - 2; d++) {
        const int64_t index = item[rank - (t->rank - 2) + d];
        own[d] = t->dim[d] > 1 ? index : 0;
        off += own[d] * t->stride[d];
    }
    if (o >= f->n) {
        loader_run(w, o - st_fused_loader_at(f, 0), own, line, k0, n, out);
        return;
    }
    const int64_t sl = t->stride[t->rank - (right ? 1 : 2)], sk = t->stride[t->rank - (right ? 2 : 1)];
    off += line * sl + k0 * sk;
    const char *at = (const char *)w->data[o] + off * (int64_t)strata_type_bits((strata_type)t->type) / 8;
    st_convert(t->type, at, sk, STRATA_F64, out, 1, n);
}

/* Element `off` (in its packed order) of product k into `to`. */
static void product_run(const worker *w, int k, int64_t off, void *to)
{
    const st_fused *f = &w->p->f;
    const strata_tensor *P = &f->op[st_fused_product_at(f, k)].tensor,
                        *X = &f->op[st_fused_factor_at(f, f->t.x[k])].tensor;
    int64_t at[STRATA_MAX_RANK];
    double a[STEP], b[STEP], sum = 0;
    for (int d = P->rank - 1; d >= 0; d--) {
        at[d] = off % P->dim[d];
        off /= P->dim[d];
    }
    const int64_t depth = X->dim[X->rank - 1];
    for (int64_t k0 = 0; k0 < depth; k0 += STEP) {
        const int64_t n = st_min64(STEP, depth - k0);
        factor_run(w, f->t.x[k], false, at, P->rank - 2, at[P->rank - 2], k0, n, a);
        factor_run(w, f->t.w[k], true, at, P->rank - 2, at[P->rank - 1], k0, n, b);
        for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    }
    if (P->type == STRATA_I32) /* modulo 2^32, as integer kernels add; sums of bytes are exact up to 2^53 */
        *(int32_t *)to = (int32_t)(uint32_t)(int64_t)sum;
    else if (P->type == STRATA_F64)
        *(double *)to = sum;
    else
        *(float *)to = (float)sum;
}

/* ---- running ------------------------------------------------------------------------------------------------------------------ */

static st_expr_arg position_arg(const st_pw_shape *s, int v, int64_t *pos)
{
    const int d = s->position[v];
    return d == s->rank - 1   ? (st_expr_arg){NULL, ST_EXPR_INDEX_N, 0, 1}
           : d == s->rank - 2 ? (st_expr_arg){NULL, ST_EXPR_INDEX_M, 1, 0}
                              : (st_expr_arg){&pos[d], STRATA_I64, 0, 0};
}

/* The products of a strip of rows x cols whose first element is number off; an axis along which the product does not change has one. */
static st_expr_arg fill(const worker *w, int v, int64_t off, int64_t rows, int64_t cols)
{
    const st_pw_shape *s = &w->p->s;
    const int64_t sm = s->row.step[v], sn = s->col.step[v],
                  size = (int64_t)strata_type_bits((strata_type)s->type[v]) / 8;
    char *to = w->scratch + w->p->buffer[v];
    const int64_t wide = sn ? cols : 1;
    for (int64_t i = 0; i < (sm ? rows : 1); i++)
        for (int64_t j = 0; j < wide; j++)
            product_run(w, w->p->at[s->operand[v]] - w->p->f.n, off + i * sm + j * sn,
                        to + (i * wide + j) * size);
    return (st_expr_arg){to, s->type[v], sm ? wide : 0, sn ? 1 : 0};
}

static void strip_run(const worker *w, const int64_t *at, int64_t *pos, int64_t row0, int64_t col0)
{
    const st_pw_shape *s = &w->p->s;
    const int64_t rows = st_min64(w->p->rows, s->row.len - row0),
                  cols = st_min64(w->p->cols, s->col.len - col0);
    void *scratch = w->scratch + w->p->program_scratch;
    st_expr_arg args[ST_EXPR_VARS];
    for (int v = 0; v < s->nvars; v++) {
        if (s->operand[v] < 0) {
            args[v] = position_arg(s, v, pos);
            continue;
        }
        int64_t off = row0 * s->row.step[v] + col0 * s->col.step[v];
        for (int i = 0; i < s->nouter; i++) off += at[i] * s->outer[i].step[v];
        if (is_product(w->p, v))
            args[v] = fill(w, v, off, rows, cols);
        else
            args[v] = st_expr_arg_at(w->data[w->p->at[s->operand[v]]], s->type[v], off, s->row.step[v],
                                     s->col.step[v]);
    }
    switch (s->mode) {
    case ST_PW_ROWS: st_expr_rows(s->x, args, rows, cols, row0, scratch); break;
    case ST_PW_COLS: st_expr_cols(s->x, args, rows, cols, col0, scratch); break;
    case ST_PW_ALL: st_expr_all(s->x, args, rows, cols, row0, col0, scratch); break;
    default: st_expr_map(s->x, args, rows, cols, row0, col0, scratch);
    }
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const reference_plan *p = (const reference_plan *)plan;
    const st_pw_shape *s = &p->s;
    worker w = {p, data, NULL};
    if (plan->workspace && !(w.scratch = st_plan_workspace(h, plan, r))) return h->err.status;
    int64_t lines = 1;
    for (int i = 0; i < s->nouter; i++) lines *= s->outer[i].len;
    for (int64_t line = 0; line < lines; line++) {
        int64_t at[STRATA_MAX_RANK], pos[STRATA_MAX_RANK] = {0}, rest = line;
        for (int i = s->nouter - 1; i >= 0; i--) {
            at[i] = rest % s->outer[i].len;
            rest /= s->outer[i].len;
            if (s->outer[i].dim >= 0) pos[s->outer[i].dim] = at[i];
        }
        for (int64_t row0 = 0; row0 < s->row.len; row0 += p->rows)
            for (int64_t col0 = 0; col0 < s->col.len; col0 += p->cols) strip_run(&w, at, pos, row0, col0);
    }
    return STRATA_OK;
}

/* ---- the provider ------------------------------------------------------------------------------------------------------------- */

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *c, strata_plan **plan)
{
    char why[200] = "";
    (void)c;
    *plan = NULL;
    reference_plan *p = st_plan_new(sizeof *p);
    if (!p) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a plan", pr->who);
    if (!make(p, h, pr, why, sizeof why)) {
        strata_plan_destroy(&p->base);
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED, "%s: %s", pr->who, why);
    }
    p->base.run = run;
    p->base.destroy = destroy;
    p->base.workspace = p->bytes;
    p->use = (st_fused_use){p->f.outputs, -1, -1, -1};
    st_fused_operands(&p->f, &p->base);
    *plan = &p->base;
    return STRATA_OK;
}

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *x, int max)
{
    if (max < 1) return 0;
    const st_err before = h->err;
    reference_plan *p = calloc(1, sizeof *p);
    if (!p) return 0;
    memset(x, 0, sizeof *x);
    snprintf(x->kernel, sizeof x->kernel, "fused_reference");
    x->order = "k in ascending order, one accumulator in f64; then the program's";
    x->us = -1;
    if (make(p, h, pr, x->why, sizeof x->why)) {
        const st_fused *f = &p->f;
        x->us = 1;
        for (int i = 0; i < f->t.products; i++) {
            const strata_tensor *X = &f->op[st_fused_factor_at(f, f->t.x[i])].tensor;
            const bool loads = f->t.x[i] >= f->n || f->t.w[i] >= f->n;
            x->us += (double)strata_count(f->op[st_fused_product_at(f, i)].tensor) *
                     (double)X->dim[X->rank - 1] * (loads ? 0.02 : 0.003);
        }
        destroy(&p->base);
    }
    free(p);
    h->err = before;
    return 1;
}

const st_provider st_fused_reference = {"fused_reference", ST_OP_FUSED, enumerate, build, ST_ON_CPU};
