/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c - from a program and its operands' views to loops: broadcasting, which dims are reduced, which outputs are one value a
 * line, the order and joining of loops, and which of them becomes the rectangle that the expr layer evaluates. */
#include "pointwise/program.h"
#include "pointwise/varies.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct operand {
    const char *name;
    int type, rank;
    const int64_t *dim, *stride;
} operand;

/* Everything that is known before loops are chosen. */
typedef struct space {
    st_err *e;
    const char *who;
    st_pw_shape *s;
    operand op[ST_EXPR_VARS];
    int64_t dim[STRATA_MAX_RANK];
    uint32_t axes;                                 /* reduced dims */
    int64_t stride[ST_EXPR_VARS][STRATA_MAX_RANK]; /* per variable, in the iteration space */
    bool extent[ST_EXPR_VARS][STRATA_MAX_RANK];    /* the variable has more than one element there */
} space;

static const char *dims_text(const int64_t *dim, int rank, char *buf, size_t n)
{
    strata_tensor t = {.rank = rank};
    for (int d = 0; d < rank; d++) t.dim[d] = dim[d];
    return st_dims(&t, buf, n);
}
#define DIMS(dim, rank) dims_text(dim, rank, (char[96]){0}, 96)

/* The dim of the iteration space that dim d of a variable runs along. */
static int runs_along(const space *p, int v, int d)
{
    const st_pw_shape *s = p->s;
    if (s->var[v].index == ST_INDEX_N) return s->rank - 1;
    if (s->var[v].index == ST_INDEX_M) return s->rank - 2;
    return s->rank - p->op[s->operand[v]].rank + d;
}

static strata_status bind_variables(space *p)
{
    st_pw_shape *s = p->s;
    uint32_t used = 0;
    s->nvars = st_expr_vars(s->x, &s->var);
    s->rank = 0;
    for (int v = 0; v < s->nvars; v++) {
        const st_expr_var *var = &s->var[v];
        s->operand[v] = -1;
        for (int o = 0; o < s->noperands; o++)
            if (!strcmp(var->name, p->op[o].name)) s->operand[v] = o;
        const int o = s->operand[v];
        if (o < 0) continue; /* index(d): position() below */
        used |= 1u << o;
        s->type[v] = p->op[o].type;
        if (var->output) s->outputs |= 1u << o;
        if (var->index != ST_INDEX_NONE && p->op[o].rank != 1)
            return st_expr_fail_at(p->e, s->x, p->who, var->column, (int)strlen(var->name),
                                   "%s is written %s[%c], so it must have rank 1, and it is %s", var->name,
                                   var->name, var->index == ST_INDEX_M ? 'm' : 'n',
                                   DIMS(p->op[o].dim, p->op[o].rank));
        const int rank = var->index == ST_INDEX_M ? 2 : var->index == ST_INDEX_N ? 1 : p->op[o].rank;
        if (rank > s->rank) s->rank = rank;
    }
    for (int o = 0; o < s->noperands; o++)
        if (!(used >> o & 1))
            return st_fail(p->e, STRATA_ERROR_ARGUMENT, "%s: operand %s does not occur in the program \"%s\"",
                           p->who, p->op[o].name, ST_SHORT(st_expr_text(s->x)));
    if (!s->outputs)
        return st_fail(p->e, STRATA_ERROR_ARGUMENT,
                       "%s: the program \"%s\" writes no operand: give the name on its left an operand",
                       p->who, ST_SHORT(st_expr_text(s->x)));
    return STRATA_OK;
}

static strata_status broadcast(space *p)
{
    st_pw_shape *s = p->s;
    int from[STRATA_MAX_RANK];
    for (int d = 0; d < s->rank; d++) p->dim[d] = 1, from[d] = -1;
    for (int v = 0; v < s->nvars; v++) {
        if (s->operand[v] < 0) continue;
        const operand *o = &p->op[s->operand[v]];
        for (int k = 0; k < o->rank; k++) {
            const int d = runs_along(p, v, k);
            if (o->dim[k] == 1) continue;
            if (p->dim[d] != 1 && p->dim[d] != o->dim[k]) {
                const operand *w = &p->op[s->operand[from[d]]];
                return st_fail(p->e, STRATA_ERROR_SHAPE,
                               "%s: %s is %s and %s is %s: counted from the right, dim %d is %lld in one and "
                               "%lld in the other; they must "
                               "be equal, or one of them 1",
                               p->who, w->name, DIMS(w->dim, w->rank), o->name, DIMS(o->dim, o->rank),
                               d - s->rank, (long long)p->dim[d], (long long)o->dim[k]);
            }
            p->dim[d] = o->dim[k];
            from[d] = v;
        }
    }
    s->elements = 1;
    for (int d = 0; d < s->rank; d++)
        if (st_mul_over(s->elements, p->dim[d], &s->elements))
            return st_fail(p->e, STRATA_ERROR_OVERFLOW,
                           "%s: the operands broadcast to %s, more than 2^63 elements", p->who,
                           DIMS(p->dim, s->rank));
    for (int v = 0; v < s->nvars; v++) {
        if (s->operand[v] < 0) continue;
        const operand *o = &p->op[s->operand[v]];
        for (int k = 0; k < o->rank; k++) {
            const int d = runs_along(p, v, k);
            p->extent[v][d] = o->dim[k] != 1;
            p->stride[v][d] = o->dim[k] > 1 ? o->stride[k] : 0;
        }
    }
    return STRATA_OK;
}

static strata_status choose_axes(space *p, uint32_t axes)
{
    st_pw_shape *s = p->s;
    s->reduces = st_expr_reductions(s->x) > 0;
    if (s->rank < 32 && axes >> s->rank)
        return st_fail(
            p->e, STRATA_ERROR_ARGUMENT,
            "%s: axes is %#x, but the operands broadcast to %s, of rank %d: only the lowest %d bits "
            "may be set",
            p->who, axes, DIMS(p->dim, s->rank), s->rank, s->rank);
    p->axes = !s->reduces ? 0 : axes ? axes : s->rank ? 1u << (s->rank - 1) : 0;
    return STRATA_OK;
}

/* Positions: index(d) where the expr layer made a variable of it. */
static strata_status positions(space *p)
{
    st_pw_shape *s = p->s;
    s->positions = st_pw_has_index(s->x);
    for (int v = 0; v < s->nvars; v++) {
        if (s->operand[v] >= 0) continue;
        int d = 0;
        if (sscanf(s->var[v].name, "index(%d)", &d) != 1)
            return st_fail(p->e, STRATA_ERROR_INTERNAL, "%s: variable %s of the program is bound to nothing",
                           p->who, s->var[v].name);
        s->positions = true;
        s->position[v] = d < 0 ? s->rank + d : d;
        if (s->position[v] < 0 || s->position[v] >= s->rank)
            return st_expr_fail_at(p->e, s->x, p->who, s->var[v].column, (int)strlen(s->var[v].name),
                                   "%s: the operands broadcast to %s, of rank %d", s->var[v].name,
                                   DIMS(p->dim, s->rank), s->rank);
    }
    return STRATA_OK;
}

static bool output_varies(const space *p, int v)
{
    const st_pw_shape *s = p->s;
    bool reduced[ST_EXPR_VARS] = {false};
    for (int i = 0; i < s->nvars; i++)
        for (int d = 0; d < s->rank; d++)
            if (p->axes >> d & 1) reduced[i] |= s->operand[i] < 0 ? s->position[i] == d : p->extent[i][d];
    const bool row = s->rank > 1 && p->axes >> (s->rank - 2) & 1,
               col = s->rank > 0 && p->axes >> (s->rank - 1) & 1;
    return st_pw_output_varies(s->x, v, reduced, row, col);
}

static strata_status check_outputs(space *p)
{
    st_pw_shape *s = p->s;
    for (int v = 0; v < s->nvars; v++) {
        if (!s->var[v].output) continue;
        const operand *o = &p->op[s->operand[v]];
        strata_tensor view = {.data = (void *)p, .type = o->type, .rank = o->rank}; /* any address but NULL */
        memcpy(view.dim, o->dim, (size_t)o->rank * sizeof *o->dim);
        memcpy(view.stride, o->stride, (size_t)o->rank * sizeof *o->stride);
        strata_status st = st_tensor_check_output(p->e, p->who, o->name, &view);
        if (st) return st;
        int line = 0, full = 0, bad = -1;
        for (int d = 0; d < s->rank; d++) {
            const bool reduced = p->axes >> d & 1;
            if (p->dim[d] == 1) continue;
            if (p->extent[v][d]) {
                full += reduced;
            } else {
                line += reduced;
                if (!reduced) bad = d;
            }
        }
        if (bad < 0 && line && !full && output_varies(p, v)) {
            return st_fail(p->e, STRATA_ERROR_SHAPE,
                           "%s: output %s is %s, one value along the reduced dims, but what is stored there "
                           "is not a reduction; it needs "
                           "the dims %s",
                           p->who, o->name, DIMS(o->dim, o->rank), DIMS(p->dim, s->rank));
        }
        if (bad >= 0 || (line && full)) {
            int64_t lines[STRATA_MAX_RANK];
            for (int d = 0; d < s->rank; d++) lines[d] = p->axes >> d & 1 ? 1 : p->dim[d];
            if (s->reduces)
                return st_fail(
                    p->e, STRATA_ERROR_SHAPE,
                    "%s: output %s is %s; the operands broadcast to %s, so it must be that, or %s for a "
                    "value that is a reduction",
                    p->who, o->name, DIMS(o->dim, o->rank), DIMS(p->dim, s->rank), DIMS(lines, s->rank));
            return st_fail(p->e, STRATA_ERROR_SHAPE,
                           "%s: output %s is %s and must be %s, to which the operands broadcast", p->who,
                           o->name, DIMS(o->dim, o->rank), DIMS(p->dim, s->rank));
        }
    }
    return STRATA_OK;
}

/* ---- loops ---- */
static int64_t mag(int64_t x) { return x < 0 ? -x : x; }

/* More variables want a inside b than b inside a (outputs count twice, bits and half bytes more). */
static bool inside(const st_pw_shape *s, const st_pw_loop *a, const st_pw_loop *b)
{
    int votes = 0;
    for (int v = 0; v < s->nvars; v++) {
        const int64_t sa = mag(a->step[v]), sb = mag(b->step[v]);
        if (sa && sb && sa != sb)
            votes += (sa < sb ? 1 : -1) * (st_type_is_sub_byte(s->type[v]) ? 8 : s->var[v].output ? 2 : 1);
    }
    return votes > 0;
}

/* Loops over the dims of `which`, outermost first; ordered by their strides and joined unless positions are asked for. */
static int make_loops(const space *p, uint32_t which, st_pw_loop *l)
{
    const st_pw_shape *s = p->s;
    int n = 0;
    for (int d = 0; d < s->rank; d++) {
        if (!(which >> d & 1) || p->dim[d] == 1) continue;
        st_pw_loop a = {.len = p->dim[d], .dim = d};
        for (int v = 0; v < s->nvars; v++) a.step[v] = p->stride[v][d];
        int i = n++;
        while (i > 0 && inside(s, &l[i - 1], &a)) l[i] = l[i - 1], i--;
        l[i] = a;
    }
    for (int i = 0; i + 1 < n;) {
        bool join = true;
        for (int v = 0; v < s->nvars; v++)
            if (l[i].step[v] != l[i + 1].step[v] * l[i + 1].len) join = false;
        if (join) {
            l[i + 1].len *= l[i].len;
            l[i + 1].dim = -1;
            memmove(&l[i], &l[i + 1], (size_t)(n - i - 1) * sizeof *l);
            n--;
        } else {
            i++;
        }
    }
    return n;
}

static void one(st_pw_loop *l)
{
    memset(l, 0, sizeof *l);
    l->len = 1;
    l->dim = -1;
}

static void take_outer(st_pw_shape *s, const st_pw_loop *l, int n)
{
    s->nouter = 0;
    for (int i = 0; i < n; i++) s->outer[s->nouter++] = l[i];
}

static void arrange(space *p)
{
    st_pw_shape *s = p->s;
    st_pw_loop kept[STRATA_MAX_RANK], red[STRATA_MAX_RANK];
    const uint32_t all = (uint32_t)((1ull << s->rank) - 1);
    const int nk = make_loops(p, all & ~p->axes, kept), nr = make_loops(p, p->axes, red);
    one(&s->row);
    one(&s->col);
    if (!s->reduces) {
        s->mode = ST_PW_MAP;
        if (nk > 0) s->col = kept[nk - 1];
        if (nk > 1) s->row = kept[nk - 2];
        take_outer(s, kept, nk > 2 ? nk - 2 : 0);
    } else if (nr <= 1) {
        st_pw_loop r;
        one(&r);
        if (nr) r = red[0];
        /* a line of one element: the kept dim is the long one */
        const bool cols = nk && (!nr || inside(s, &kept[nk - 1], &r));
        s->mode = cols ? ST_PW_COLS : ST_PW_ROWS;
        *(cols ? &s->row : &s->col) = r;
        if (nk) *(cols ? &s->col : &s->row) = kept[nk - 1];
        take_outer(s, kept, nk > 1 ? nk - 1 : 0);
    } else if (nr == 2) {
        s->mode = ST_PW_ALL;
        s->row = red[0];
        s->col = red[1];
        take_outer(s, kept, nk);
    } else {
        s->mode = ST_PW_ROWS;
        s->pack = true;
        s->npacked = nr;
        memcpy(s->packed, red, sizeof red);
        for (int i = 0; i < nr; i++) s->col.len *= red[i].len;
        for (int v = 0; v < s->nvars; v++)
            for (int i = 0; i < nr; i++)
                if (red[i].step[v]) s->col.step[v] = 1;
        take_outer(s, kept, nk);
    }
}

/* With positions the rectangle is the last two dims as they are. */
static strata_status arrange_positions(space *p)
{
    st_pw_shape *s = p->s;
    const uint32_t n = s->rank > 0 ? 1u << (s->rank - 1) : 0, m = s->rank > 1 ? 1u << (s->rank - 2) : 0;
    one(&s->row);
    one(&s->col);
    s->nouter = 0;
    if (p->axes & ~(m | n)) {
        /* reduced dims of length 1 do not matter */
        for (int d = 0; d < s->rank - 2; d++)
            if (p->axes >> d & 1 && p->dim[d] != 1)
                return st_fail(p->e, STRATA_ERROR_UNSUPPORTED,
                               "%s: a program with index() reduces over dim %d of %s; only the last two dims "
                               "may be reduced then: permute "
                               "the operands",
                               p->who, d, DIMS(p->dim, s->rank));
    }
    for (int d = 0; d < s->rank; d++) {
        st_pw_loop a = {.len = p->dim[d], .dim = d};
        for (int v = 0; v < s->nvars; v++) a.step[v] = p->stride[v][d];
        if (d == s->rank - 1)
            s->col = a;
        else if (d == s->rank - 2)
            s->row = a;
        else
            s->outer[s->nouter++] = a;
    }
    const bool rm = p->axes & m && s->row.len != 1, rn = p->axes & n && s->col.len != 1;
    s->mode = !s->reduces ? ST_PW_MAP : rm && rn ? ST_PW_ALL : rm ? ST_PW_COLS : ST_PW_ROWS;
    if (s->mode == ST_PW_ROWS && s->col.len != 1 && !rn) {
        /* all reduced dims have length 1: every element is a line */
        s->mode = ST_PW_COLS;
        if (s->row.len != 1)
            return st_fail(p->e, STRATA_ERROR_UNSUPPORTED,
                           "%s: a program with index() and reductions over dims of length 1 only, in %s",
                           p->who, DIMS(p->dim, s->rank));
    }
    return STRATA_OK;
}

/* Where bits and half bytes cannot be reached: packed lines are copied by bytes, and what is written outside the rectangle may share none. */
static strata_status check_bits(const space *p)
{
    const st_pw_shape *s = p->s;
    for (int v = 0; v < s->nvars; v++) {
        const int o = s->operand[v];
        if (o < 0 || !st_type_is_sub_byte(s->type[v])) continue;
        bool bad = s->pack;
        for (int i = 0; i < s->nouter; i++)
            bad |= s->var[v].output && s->outer[i].step[v] == 1 && s->outer[i].len > 1;
        if (bad)
            return st_fail(p->e, STRATA_ERROR_UNSUPPORTED,
                           "%s: %s is %s, whose elements share bytes along a dim that this program does not "
                           "walk as the last one; permute its operands, or convert it to i8 first",
                           p->who, p->op[o].name, strata_type_name((strata_type)s->type[v]));
    }
    return STRATA_OK;
}

static void spans(space *p)
{
    st_pw_shape *s = p->s;
    for (int o = 0; o < s->noperands; o++) {
        const operand *a = &p->op[o];
        const int64_t bits = (int64_t)strata_type_bits((strata_type)a->type);
        int64_t lo = 0, hi = 1;
        for (int d = 0; d < a->rank; d++) {
            if (a->dim[d] == 0)
                lo = hi = 0, d = a->rank;
            else if (a->dim[d] > 1)
                *(a->stride[d] < 0 ? &lo : &hi) += (a->dim[d] - 1) * a->stride[d];
        }
        s->lo[o] = lo * bits >> 3;
        s->hi[o] = (hi * bits + 7) >> 3;
        for (int b = 0; b < s->noperands; b++) {
            const operand *c = &p->op[b];
            bool same = a->type == c->type && a->rank == c->rank;
            for (int d = 0; same && d < a->rank; d++)
                same = a->dim[d] == c->dim[d] && (a->dim[d] <= 1 || a->stride[d] == c->stride[d]);
            if (same) s->same[o] |= 1u << b;
        }
    }
}

/* Are there positions that f32 cannot tell apart: index() along a dim, argmax along what is reduced, of more than 2^24? The
 * program is then evaluated in f64. */
static bool far_positions(const space *p)
{
    const int64_t most = (int64_t)1 << 24;
    const st_pw_shape *s = p->s;
    int64_t reduced = 1; /* no more than s->elements */
    bool far_dim = false;
    if (s->elements <= most) return false;
    for (int d = 0; d < s->rank; d++) {
        far_dim |= p->dim[d] > most;
        if (p->axes >> d & 1) reduced *= p->dim[d];
    }
    return (far_dim && s->positions) || (reduced > most && st_pw_has_argmax(s->x));
}

static strata_status bind(space *p, const char *text, const char *const *names, uint32_t axes)
{
    st_pw_shape *s = p->s;
    strata_status st = st_expr_parse(p->e, p->who, text, names, s->f64, &s->x);
    if (st) return st;
    if (st_expr_has_matmul(s->x))
        st = st_fail(p->e, STRATA_ERROR_UNSUPPORTED, "%s: a product (@) cannot be part of this program",
                     p->who);
    if (!st) st = bind_variables(p);
    if (!st) st = broadcast(p);
    if (!st) st = choose_axes(p, axes);
    if (!st) st = positions(p);
    if (st || s->f64 || !far_positions(p)) return st;
    s->f64 = true;
    st_expr_free(s->x);
    s->x = NULL;
    return bind(p, text, names, axes);
}

strata_status st_pw_shape_make(st_err *e, const char *who, const int64_t *key, const char *text,
                               st_pw_shape *s)
{
    space p;
    memset(&p, 0, sizeof p);
    memset(s, 0, sizeof *s);
    p.e = e;
    p.who = who;
    p.s = s;
    s->noperands = (int)key[3];
    const char *names[ST_EXPR_VARS + 1] = {NULL};
    const int64_t *k = key + ST_KEY_HEAD;
    for (int o = 0; o < s->noperands; o++) {
        memcpy(s->name[o], k + 1, ST_EXPR_NAME);
        operand *a = &p.op[o];
        a->type = (int)(k[0] & 0xff);
        a->rank = (int)(k[0] >> 8);
        a->name = names[o] = s->name[o];
        a->dim = k + 1 + ST_KEY_NAME;
        a->stride = a->dim + a->rank;
        k = a->stride + a->rank;
        s->f64 |= a->type == STRATA_F64;
    }
    strata_status st = bind(&p, text, names, (uint32_t)key[2]);
    if (!st) st = check_outputs(&p);
    if (!st) {
        if (s->positions)
            st = arrange_positions(&p);
        else
            arrange(&p);
        if (!st) st = check_bits(&p);
    }
    if (st) {
        st_expr_free(s->x);
        s->x = NULL;
        return st;
    }
    spans(&p);
    s->lines = s->mode == ST_PW_ROWS ? s->row.len : s->mode == ST_PW_COLS ? s->col.len : 1;
    for (int i = 0; i < s->nouter; i++) s->lines *= s->outer[i].len;
    return STRATA_OK;
}
