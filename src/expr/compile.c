/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - nodes to instructions for one pattern of arguments: what each phase needs, places, stores. Nothing
 * here depends on sizes or addresses. */
#include "expr/lower.h"
#include <string.h>

unsigned st_expr_pattern(const st_expr_arg *a)
{
    if (a->type < 0) return (unsigned)(a->type & 0xff) | (a->type == ST_EXPR_INDEX_M ? PAT_M : PAT_N);
    return (unsigned)(a->type & 0xff) | (a->sm ? PAT_M : 0) | (a->sn ? PAT_N : 0) |
           (a->sn == 1 ? PAT_UNIT_N : 0) | (a->sm == 1 ? PAT_UNIT_M : 0);
}

st_caps st_expr_caps(const st_expr *x)
{
    st_caps c = {0};
    int operands = 0, phases = 1, ph[ST_EXPR_VALUES];
    for (int i = 0; i < x->nvalues; i++) {
        const st_value *v = &x->value[i];
        c.consts += v->op == ST_OP_CONST;
        bool red = (st_expr_ops[v->op].flags & ST_OPF_R) != 0;
        c.reds += red;
        ph[i] = 0;
        for (int j = 0; j < ST_EXPR_ARGS; j++)
            if (v->arg[j] >= 0) {
                operands++;
                if (ph[v->arg[j]] > ph[i]) ph[i] = ph[v->arg[j]];
            }
        ph[i] += red;
        if (ph[i] + 1 > phases) phases = ph[i] + 1;
    }
    int work = x->nvalues - c.consts;
    c.insns = phases * (work + operands) + x->nstores + 4;
    c.places = c.consts + phases * (work + operands) + 4 * x->nvars + 2 * c.reds + 8;
    c.slots = x->nvalues + ST_EXPR_ARGS;
    c.mvecs = c.unis = x->nvalues + 1;
    c.code = sizeof(st_code) + (size_t)c.consts * 8 + (size_t)c.places * sizeof(st_place_at) +
             (size_t)c.reds * sizeof(st_red) + (size_t)c.insns * sizeof(st_insn) + 64;
    c.code = (c.code + 63) & ~(size_t)63;
    return c;
}

static void *at_offset(st_code *c, uint32_t off) { return (char *)c + off; }

static uint16_t new_place(build *b, st_place place, int index)
{
    st_place_at *p = at_offset(b->c, b->c->places);
    p[b->c->nplace] = (st_place_at){.place = (uint8_t)place, .index = (uint16_t)index};
    return (uint16_t)b->c->nplace++;
}

static uint16_t arg_place(build *b, int var, int form)
{
    static const uint8_t places[4] = {ST_AT_ARG_U, ST_AT_ARG_M, ST_AT_ARG_N, ST_AT_ARG_MN};
    if (b->arg_at[var][form] == NOWHERE) b->arg_at[var][form] = new_place(b, places[form], var);
    return b->arg_at[var][form];
}

/* scratch for a value of this class */
static uint16_t temp_place(build *b, int cls)
{
    switch (cls) {
    case ST_CLS_U: return new_place(b, ST_AT_UNI, b->nuni++);
    case ST_CLS_M: return new_place(b, ST_AT_MVEC, b->c->nmvec++);
    case ST_CLS_N: return new_place(b, ST_AT_SLOT_N, b->c->nslot++);
    default: return new_place(b, ST_AT_SLOT_MN, b->c->nslot++);
    }
}

/* ---- what a phase needs ---------------------------------------------------------------------------------------------- */
/* does a value of this class stay where it is when the next phase begins? */
static bool persistent(const build *b, int cls)
{
    if (b->key->whole || cls == ST_CLS_U) return true;
    return b->key->mode == ST_MODE_ROWS   ? cls == ST_CLS_M
           : b->key->mode == ST_MODE_COLS ? cls == ST_CLS_N
                                          : b->key->mode == ST_MODE_MAP;
}

static bool in_place(const build *b, int i)
{
    const st_value *v = &b->x->value[i];
    if (v->op != ST_OP_VAR) return false;
    unsigned p = b->key->arg[v->var];
    if (pat_type(p) != b->elt_type) return false;
    int cls = b->n[i].cls;
    if (b->key
            ->alias) { /* it may be overwritten before its last use: by a row's or column's store, or by a store before its own */
        if (cls != ST_CLS_MN) return false;
        for (int s = 0; s < b->x->nstores; s++)
            if (b->x->store[s].value == i) return false;
    }
    return cls == ST_CLS_U || (cls == ST_CLS_M ? (p & PAT_UNIT_M) != 0 : (p & PAT_UNIT_N) != 0);
}

static void mark(build *b, int i)
{
    node *n = &b->n[i];
    if (n->need || n->at != NOWHERE) return;
    n->need = true;
    if (is_red(n->op)) return; /* its operands belong to an earlier phase */
    for (int j = 0; j < ST_EXPR_ARGS; j++)
        if (n->arg[j] >= 0) mark(b, n->arg[j]);
}

static int store_phase(const build *b, int s)
{
    return b->key->alias ? b->last_phase : b->n[b->x->store[s].value].phase;
}

/* cycles a 16 elements to compute value i again in a later phase */
static float again(const build *b, int i)
{
    const node *n = &b->n[i];
    if (n->cls != ST_CLS_MN || is_red(n->op) || n->keep) return 0.5f;
    float c = st_expr_ops[n->op].cost;
    for (int j = 0; j < ST_EXPR_ARGS; j++)
        if (n->arg[j] >= 0) c += again(b, n->arg[j]);
    return c;
}

static void visit_kept(build *b, int i, int phase)
{
    node *n = &b->n[i];
    if (n->need || n->cls == ST_CLS_M || n->cls == ST_CLS_U) return;
    n->need = true;
    if (is_red(n->op)) return;
    if (n->phase < phase && n->cls == ST_CLS_MN && again(b, i) > 7) {
        n->keep = true;
        return;
    }
    for (int j = 0; j < ST_EXPR_ARGS; j++)
        if (n->arg[j] >= 0) visit_kept(b, n->arg[j], phase);
}

/* Rows of several blocks: the outermost dear values that a later phase asks for are kept in row buffers. */
static void choose_kept(build *b)
{
    for (int p = 1; p <= b->last_phase; p++) {
        for (int i = 0; i < b->x->nvalues; i++) b->n[i].need = false;
        for (int i = 0; i < b->x->nvalues; i++) {
            const node *n = &b->n[i];
            if (n->live && is_red(n->op) && n->phase == p + 1)
                for (int j = 0; j < 2; j++)
                    if (n->arg[j] >= 0) visit_kept(b, n->arg[j], p);
        }
        for (int s = 0; s < b->x->nstores; s++)
            if (store_phase(b, s) == p) visit_kept(b, b->x->store[s].value, p);
    }
    for (int i = 0; i < b->x->nvalues; i++) {
        b->n[i].need = false;
        if (b->n[i].keep && b->c->nrowbuf == b->x->rowbufs)
            b->n[i].keep = false;
        else if (b->n[i].keep)
            b->n[i].keep_at = new_place(b, ST_AT_ROWBUF, b->c->nrowbuf++);
    }
}

/* ---- emission -------------------------------------------------------------------------------------------------------- */
static void put(build *b, st_insn in) { ((st_insn *)at_offset(b->c, b->c->insns))[b->c->ninsn++] = in; }

static st_insn instruction(int op, int shape, uint16_t dst)
{
    return (st_insn){.op = (uint8_t)op,
                     .shape = (uint8_t)shape,
                     .dst = dst,
                     .src = {NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE}};
}

/* the operand as a full row of the shape, for kernels that take no scalar there */
static uint16_t expand(build *b, uint16_t at, int shape)
{
    int i = 0;
    while (i < b->nexpanded && (b->expanded[i].from != at || b->expanded[i].shape != shape)) i++;
    uint16_t to = i < b->nexpanded ? b->expanded[i].to : temp_place(b, shape);
    if (i == b->nexpanded && shape != ST_CLS_MN && i < ST_COUNT(b->expanded)) {
        b->expanded[i].from = at, b->expanded[i].to = to, b->expanded[i].shape = (uint8_t)shape;
        b->nexpanded++;
    }
    st_insn in = instruction(ST_OP_COPY, shape, to);
    in.fn = b->k->op[ST_OP_COPY][1];
    in.variant = 1;
    in.src[0] = at;
    put(b, in);
    return to;
}

static void emit_leaf(build *b, int i, uint16_t dst)
{
    const st_value *v = &b->x->value[i];
    node *n = &b->n[i];
    st_insn in = instruction(n->op, n->cls, dst);
    int type = v->op == ST_OP_VAR ? pat_type(b->key->arg[v->var]) : -1;
    if (type < 0) {
        in.fn = b->k->op[ST_OP_INDEX][0];
        in.src[0] = new_place(b, n->cls == ST_CLS_M ? ST_AT_INDEX_M : ST_AT_INDEX_N, 0);
    } else {
        in.fn = b->k->load[type];
        in.src[0] = arg_place(b, v->var, n->cls);
    }
    put(b, in);
}

/* an earlier reduction of the same deviations, whose sums do for n as well; -1 */
static int same_moments(const build *b, int i)
{
    const node *n = &b->n[i];
    for (int k = 0; k < i && is_moment(n->op); k++)
        if (b->n[k].live && is_moment(b->n[k].op) && b->n[k].arg[0] == n->arg[0] &&
            b->n[k].arg[1] == n->arg[1])
            return k;
    return -1;
}

static void emit_red(build *b, int i)
{
    node *n = &b->n[i];
    bool cols = b->key->mode == ST_MODE_COLS;
    st_insn in = instruction(n->op, ST_CLS_MN, NOWHERE);
    in.fn = cols ? b->k->cols[n->op] : b->k->op[n->op][0];
    st_red *r = (st_red *)at_offset(b->c, b->c->reds) + b->c->nred;
    const int sums = same_moments(b, i);
    *r = (st_red){.op = n->op, .mean = n->mean, .shared = sums >= 0};
    n->acc = r->acc = in.dst = sums >= 0 ? b->n[sums].acc : new_place(b, ST_AT_ACC, b->c->nred);
    b->c->nred++;
    r->result = (uint16_t)(n->at = temp_place(b, n->cls));
    if (is_moment(n->op)) r->about = b->n[n->arg[1]].at;
    if (sums >= 0) return;
    for (int j = 0; j < 2; j++)
        if (n->arg[j] >= 0) {
            const node *a = &b->n[n->arg[j]];
            bool row_scalar = (n->op == ST_OP_SQDEV || is_moment(n->op)) &&
                              j == 1; /* rows: one number a row; columns: a row of numbers */
            in.src[j] = a->cls & ST_CLS_N || row_scalar ? a->at : expand(b, a->at, ST_CLS_MN);
        }
    if (n->op == ST_OP_ARGMAX) in.src[1] = new_place(b, ST_AT_POSITION, 0);
    put(b, in);
}

static void emit_op(build *b, int i, uint16_t dst)
{
    node *n = &b->n[i];
    st_insn in = instruction(n->op, n->cls, dst);
    unsigned bits = st_expr_variant_bits(b, n, n->cls);
    int v = st_expr_variant((st_op)n->op, bits);
    if (v < 0 || !b->k->op[n->op][v]) bits = 0;
    for (int j = 0; j < ST_EXPR_ARGS; j++)
        if (n->arg[j] >= 0) {
            uint16_t at = b->n[n->arg[j]].at;
            in.src[j] = !(bits >> j & 1) && is_scalar_for(b, n->cls, n->arg[j]) ? expand(b, at, n->cls) : at;
        }
    in.variant = (uint8_t)st_expr_variant((st_op)n->op, bits);
    in.fn = b->k->op[n->op][in.variant];
    put(b, in);
}

static bool reads_memory(const build *b, int i)
{
    if (b->n[i].op == ST_OP_VAR) return true;
    for (int j = 0; j < ST_EXPR_ARGS; j++)
        if (b->n[i].arg[j] >= 0 && b->n[b->n[i].arg[j]].op == ST_OP_VAR) return true;
    return false;
}

/* Can value i be computed straight into the output of store s? Where an output is an input's memory, nothing that is
 * computed later may read an operand. */
static bool direct(const build *b, int i, int s)
{
    const st_store *st = &b->x->store[s];
    if (st->value != i || b->n[i].keep || b->n[i].op == ST_OP_VAR) return false;
    unsigned p = b->key->arg[st->var];
    int cls = b->n[i].cls;
    if (pat_type(p) != b->elt_type || (b->key->alias && (cls != ST_CLS_MN || pat_cls(p) != ST_CLS_MN)))
        return false;
    if (cls & ST_CLS_N    ? !(p & PAT_UNIT_N) || (cls == ST_CLS_N && p & PAT_M)
        : cls == ST_CLS_M ? !(p & PAT_UNIT_M) || p & PAT_N
                          : (p & (PAT_M | PAT_N)) != 0)
        return false;
    if (b->key->alias)
        for (int j = i + 1; j < b->x->nvalues; j++)
            if (b->n[j].need && reads_memory(b, j)) return false;
    return true;
}

static void emit_store(build *b, int s)
{
    const st_store *st = &b->x->store[s];
    const node *n = &b->n[st->value];
    unsigned p = b->key->arg[st->var];
    int shape = pat_cls(p) | n->cls;
    bool scalar = shape & ST_CLS_N ? !(n->cls & ST_CLS_N) : shape == ST_CLS_M && n->cls == ST_CLS_U;
    st_insn in = instruction(ST_OP_COPY, shape, arg_place(b, st->var, shape));
    in.fn = b->k->store[pat_type(p)][scalar];
    in.src[0] = n->at;
    in.late = b->key->alias && shape != ST_CLS_MN;
    put(b, in);
}

static void emit_value(build *b, int i, int phase, bool *stored)
{
    node *n = &b->n[i];
    if (is_red(n->op)) return;
    if (in_place(b, i)) {
        n->at = arg_place(b, b->x->value[i].var, n->cls);
        return;
    }
    uint16_t dst = NOWHERE;
    for (int s = 0; s < b->x->nstores && dst == NOWHERE; s++)
        if (!stored[s] && store_phase(b, s) == phase && direct(b, i, s)) {
            dst = arg_place(b, b->x->store[s].var, n->cls);
            stored[s] = true;
        }
    if (dst == NOWHERE && n->keep) dst = n->keep_at;
    if (dst == NOWHERE) dst = n->home != NOWHERE ? n->home : temp_place(b, n->cls);
    if (n->cls != ST_CLS_MN) n->home = dst;
    if (n->op == ST_OP_VAR || n->op == ST_OP_INDEX)
        emit_leaf(b, i, dst);
    else
        emit_op(b, i, dst);
    n->at = dst;
}

static void emit_phase(build *b, int phase)
{
    const st_expr *x = b->x;
    st_phase *ph = &b->c->phase[phase];
    bool stored[ST_EXPR_STORES] = {false};
    int first = b->c->ninsn;
    for (int i = 0; i < x->nvalues; i++) {
        node *n = &b->n[i];
        n->need = false;
        if (!b->key->whole && n->phase <= phase && n->at != NOWHERE && !persistent(b, n->cls) &&
            n->op != ST_OP_CONST && !n->keep)
            n->at = NOWHERE; /* what the last phase had in its blocks is gone */
    }
    ph->red = (int16_t)b->c->nred;
    for (int i = 0; i < x->nvalues; i++)
        if (b->n[i].live && is_red(b->n[i].op) && b->n[i].phase == phase + 1)
            for (int j = 0; j < 2; j++)
                if (b->n[i].arg[j] >= 0) mark(b, b->n[i].arg[j]);
    for (int s = 0; s < x->nstores; s++)
        if (store_phase(b, s) == phase) mark(b, x->store[s].value);
    for (int i = 0; i < x->nvalues; i++) {
        if (b->n[i].need) emit_value(b, i, phase, stored);
        if (b->n[i].live && is_red(b->n[i].op) && b->n[i].phase == phase + 1) emit_red(b, i);
    }
    for (int s = 0; s < x->nstores; s++)
        if (store_phase(b, s) == phase && !stored[s]) emit_store(b, s);
    ph->nred = (int16_t)(b->c->nred - ph->red);
    st_insn *in = at_offset(b->c, b->c->insns);
    for (int i = first + 1; i < b->c->ninsn; i++) { /* by shape, order kept within a shape */
        st_insn t = in[i];
        int j = i;
        for (; j > first && in[j - 1].shape > t.shape; j--) in[j] = in[j - 1];
        in[j] = t;
    }
    for (int s = 0, i = first; s < 4; s++) {
        while (i < b->c->ninsn && in[i].shape < s) i++;
        ph->begin[s] = (int16_t)i;
    }
    ph->begin[4] = (int16_t)b->c->ninsn;
}

/* ---- slots ----------------------------------------------------------------------------------------------------------- */
/* Virtual block slots become real ones: a slot is free after its last reader; the instruction that reads it last may write
 * into it (kernels read a position before they write it). Rows of numbers (N) live as long as the program. */
static void free_sources(const st_insn *in, int i, st_place_at *place, uint16_t *freed, int *nfree)
{
    for (int j = 0; j < ST_EXPR_ARGS; j++) {
        uint16_t s = in->src[j];
        bool seen = s == NOWHERE || place[s].place != ST_AT_SLOT_MN || place[s].last != i;
        for (int l = 0; l < j; l++) seen |= in->src[l] == s;
        if (!seen) freed[(*nfree)++] = place[s].real;
    }
}

static void assign_slots(st_code *c)
{
    st_place_at *place = at_offset(c, c->places);
    st_insn *in = at_offset(c, c->insns);
    uint16_t freed[ST_EXPR_VALUES + 2 * ST_EXPR_ARGS];
    int nfree = 0, used = 0;
    for (int p = 0; p < c->nplace; p++) {
        place[p].last = 0;
        place[p].real = place[p].place == ST_AT_SLOT_N ? (uint16_t)used++ : NOWHERE;
    }
    for (int i = 0; i < c->ninsn; i++)
        for (int j = 0; j < ST_EXPR_ARGS; j++)
            if (in[i].src[j] != NOWHERE) place[in[i].src[j]].last = (uint16_t)i;
    for (int i = 0; i < c->ninsn; i++) {
        free_sources(&in[i], i, place, freed, &nfree);
        st_place_at *d = &place[in[i].dst];
        if (d->place != ST_AT_SLOT_MN) continue;
        if (d->real == NOWHERE) d->real = nfree ? freed[--nfree] : (uint16_t)used++;
        if (d->last <= i) freed[nfree++] = d->real; /* computed and never read */
    }
    for (int p = 0; p < c->nplace; p++)
        if (place[p].place == ST_AT_SLOT_MN || place[p].place == ST_AT_SLOT_N) place[p].index = place[p].real;
    c->nslot = used;
}

static void constants(build *b)
{
    for (int i = 0; i < b->x->nvalues; i++)
        if (b->x->value[i].op == ST_OP_CONST) {
            char *p = (char *)at_offset(b->c, b->c->consts) + b->c->nconst * 8;
            double d = b->x->value[i].imm;
            float f = (float)d;
            memcpy(p, b->x->f64 ? (void *)&d : (void *)&f, b->x->f64 ? sizeof d : sizeof f);
            b->n[i].at = new_place(b, ST_AT_CONST, b->c->nconst++);
        }
}

void st_expr_compile(const st_expr *x, const st_key *key, st_code *c)
{
    st_caps caps = st_expr_caps(x);
    build b = {.x = x,
               .key = key,
               .c = c,
               .k = st_expr_kernels(key->level, x->f64),
               .elt_type = x->f64 ? STRATA_F64 : STRATA_F32};
    memset(c, 0, sizeof *c);
    c->key = *key;
    c->consts = (uint32_t)sizeof(st_code);
    c->insns = c->consts + (uint32_t)caps.consts * 8;
    c->reds = c->insns + (uint32_t)(caps.insns * (int)sizeof(st_insn));
    c->places = c->reds + (uint32_t)(caps.reds * (int)sizeof(st_red));
    c->bytes = (uint32_t)caps.code;
    memset(b.arg_at, 0xff, sizeof b.arg_at);
    st_expr_classify(&b);
    st_expr_fuse(&b);
    /* fusion took values out of use */
    for (int i = 0; i < x->nvalues; i++) b.n[i].live = false;
    for (int i = 0; i < x->nstores; i++) b.n[x->store[i].value].live = true;
    for (int i = x->nvalues - 1; i >= 0; i--)
        for (int j = 0; b.n[i].live && j < ST_EXPR_ARGS; j++)
            if (b.n[i].arg[j] >= 0) b.n[b.n[i].arg[j]].live = true;
    constants(&b);
    if (key->mode == ST_MODE_ROWS && !key->whole) choose_kept(&b);
    c->nphase = b.last_phase + 1;
    for (int p = 0; p <= b.last_phase; p++) emit_phase(&b, p);
    assign_slots(c);
}
