/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.c - a rectangle of C is cut where its innermost m or n axis ends; each piece has plain strides in every operand and is one call of the
 * expression's vector code, along whichever side C is contiguous. */
#include "tile/epilogue.h"
#include "tile/contract.h"
#include <string.h>

size_t st_epilogue_scratch(const st_expr *x) { return x ? (st_expr_scratch(x) + 63) / 64 * 64 : 0; }

static int64_t dot(const int64_t *idx, const int64_t *stride, int64_t n)
{
    int64_t s = 0;
    for (int64_t d = 0; d < n; d++) s += idx[d] * stride[d];
    return s;
}

typedef struct st_piece {
    int64_t gi[ST_AXES], mi[ST_AXES], ni[ST_AXES];
    int64_t rows, cols, row, col; /* row, col: of the piece within the call's rectangle */
    int64_t m0, n0;
} st_piece;

static void run_piece(const st_expr *x, const st_contract *c, void *const data[], const st_epi_acc *acc,
                      const st_piece *p, void *scratch)
{
    const st_expr_var *vars;
    const int count = st_expr_vars(x, &vars);
    const int64_t ml = c->m.count - 1, nl = c->n.count - 1;
    const int64_t cm = ml >= 0 ? c->m.ax[ml].c : 0, cn = nl >= 0 ? c->n.ax[nl].c : 0;
    const bool turned = cm == 1 && cn != 1;
    st_expr_arg args[ST_EXPR_VARS];
    for (int v = 0; v < count; v++) {
        int64_t off = 0, sm = cm, sn = cn, type = c->tc;
        void *base = data[2];
        int o = -1;
        for (int i = 0; i < c->epi_operands; i++)
            if (strcmp(vars[v].name, c->epi[i].name) == 0) o = i;
        if (o >= 0) {
            const st_epi_operand *e = &c->epi[o];
            base = data[3 + o];
            type = e->type;
            sm = ml >= 0 ? e->sm[ml] : 0;
            sn = nl >= 0 ? e->sn[nl] : 0;
            off = dot(p->mi, e->sm, c->m.count) + dot(p->ni, e->sn, c->n.count) +
                  dot(p->gi, e->sb, c->batch.count);
        } else if (acc && strcmp(vars[v].name, "acc") == 0) {
            base = acc->ptr;
            type = acc->type;
            sm = acc->sm;
            sn = acc->sn;
            off = p->row * sm + p->col * sn;
        } else {
            for (int64_t d = 0; d <= ml; d++) off += p->mi[d] * c->m.ax[d].c;
            for (int64_t d = 0; d <= nl; d++) off += p->ni[d] * c->n.ax[d].c;
            for (int64_t d = 0; d < c->batch.count; d++) off += p->gi[d] * c->batch.ax[d].c;
        }
        args[v] = st_expr_arg_at(base, (int)type, off, turned ? sn : sm, turned ? sm : sn);
    }
    if (turned)
        st_expr_map(x, args, p->cols, p->rows, p->n0, p->m0, scratch);
    else
        st_expr_map(x, args, p->rows, p->cols, p->m0, p->n0, scratch);
}

void st_epilogue_run(const st_expr *x, const st_contract *c, void *const data[], const st_epi_acc *acc,
                     int64_t g, int64_t m0, int64_t rows, int64_t n0, int64_t cols, void *scratch)
{
    st_piece p;
    memset(&p, 0, sizeof p);
    st_axes_index(&c->batch, g, p.gi);
    for (int64_t i = 0; i < rows; i += p.rows) {
        st_axes_index(&c->m, m0 + i, p.mi);
        p.rows = c->m.count ? st_min64(rows - i, c->m.ax[c->m.count - 1].len - p.mi[c->m.count - 1]) : rows;
        p.row = i;
        p.m0 = m0 + i;
        for (int64_t j = 0; j < cols; j += p.cols) {
            st_axes_index(&c->n, n0 + j, p.ni);
            p.cols =
                c->n.count ? st_min64(cols - j, c->n.ax[c->n.count - 1].len - p.ni[c->n.count - 1]) : cols;
            p.col = j;
            p.n0 = n0 + j;
            run_piece(x, c, data, acc, &p, scratch);
        }
    }
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
static const char *skip_spaces(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n') p++;
    return p;
}

st_epi_use st_tile_epilogue_use(const char *text, const char *name)
{
    st_epi_use u = {0};
    const size_t len = strlen(name);
    for (const char *p = text; (p = strstr(p, name)); p += len) {
        if ((p > text && is_letter(p[-1])) || is_letter(p[len])) continue;
        u.used = true;
        const char *q = skip_spaces(p + len);
        u.called = u.called || *q == '(';
        if (*q == '[') {
            q = skip_spaces(q + 1);
            u.index = *q == 'm' ? ST_INDEX_M : *q == 'n' ? ST_INDEX_N : u.index;
            while (*q && *q != ']') q++;
            q = skip_spaces(q + (*q == ']'));
        }
        if (q[0] == '=' && q[1] != '=') u.written = true;
    }
    return u;
}

strata_status st_tile_bind_operand(st_err *err, const char *who, const strata_tensor *C,
                                   const strata_operand *x, st_index index, st_epi_operand *to)
{
    const strata_tensor *t = &x->tensor;
    const int64_t m = C->dim[C->rank - 2], n = C->dim[C->rank - 1];
    if (index != ST_INDEX_NONE) {
        int64_t len = index == ST_INDEX_M ? m : n;
        if (t->rank != 1 || t->dim[0] != len)
            return st_fail(
                err, STRATA_ERROR_SHAPE,
                "%s: the epilogue writes %s[%c], so %s must have rank 1 and %lld elements; it is %s", who,
                x->name, index == ST_INDEX_M ? 'm' : 'n', x->name, (long long)len,
                t->rank ? ST_DIMS(*t) : "one element (rank 0)");
        (index == ST_INDEX_M ? to->sm : to->sn)[0] = t->stride[0];
        return STRATA_OK;
    }
    if (t->rank == 0) return STRATA_OK;
    if (t->rank == 1)
        return st_fail(err, STRATA_ERROR_SHAPE,
                       "%s: the epilogue's operand %s has rank 1 (%lld elements); write %s[m] (one a row of "
                       "C) or %s[n] (one a column)",
                       who, x->name, (long long)t->dim[0], x->name, x->name);
    bool fits = t->rank <= C->rank;
    for (int d = 0; fits && d < t->rank; d++)
        fits = t->dim[d] == C->dim[C->rank - t->rank + d] || t->dim[d] == 1;
    if (!fits)
        return st_fail(err, STRATA_ERROR_SHAPE,
                       "%s: the epilogue's operand %s is %s, which does not broadcast to C (%s)", who,
                       x->name, ST_DIMS(*t), ST_DIMS(*C));
    int r = t->rank;
    to->sm[0] = t->dim[r - 2] != 1 ? t->stride[r - 2] : 0;
    to->sn[0] = t->dim[r - 1] != 1 ? t->stride[r - 1] : 0;
    for (int d = 0; d < r - 2; d++) to->sb[C->rank - r + d] = t->dim[d] != 1 ? t->stride[d] : 0;
    return STRATA_OK;
}
