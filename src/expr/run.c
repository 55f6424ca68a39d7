/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - runs compiled programs over blocks of a rectangle, and keeps compiled forms.
 *
 * Loops: MAP and COLS go column blocks outside, row blocks inside; ROWS and ALL the other way round. Where blocks begin
 * depends on the length of the reduced axis only, never on the caller's cutting of the other axis, and so does the order of
 * every sum: lanes within a block (COLS: groups of eight rows), then f64 from block to block. */
#include "expr/code.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct frame {
    const st_expr *x;
    const st_code *c;
    const st_expr_arg *args;
    const st_place_at *place;
    st_loc *L;
    uint16_t *dynamic;
    int ndynamic, elt;
    bool swapped;
    int64_t bc, br; /* columns and rows of a block */
    int64_t rows, cols, row0, col0, rowbuf_bytes;
    char *scratch;
} frame;

static size_t round64(size_t n) { return (n + 63) & ~(size_t)63; }

static void layout(st_expr *x)
{
    st_caps c = st_expr_caps(x);
    size_t at = round64(sizeof(frame)); /* of a bound program */
    x->at.places = at, at += round64((size_t)c.places * sizeof(st_loc));
    x->at.dynamic = at, at += round64((size_t)c.places * sizeof(uint16_t));
    x->at.code = at, at += c.code;
    x->at.unis = at, at += round64((size_t)c.unis * 8);
    x->at.mvecs = at, at += (size_t)c.mvecs * ST_ROWS_MAX * 8;
    x->at.accs = at, at += (size_t)c.reds * ST_ACC_BYTES;
    x->at.slots = at, at += (size_t)c.slots * ST_SLOT_BYTES;
    x->at.rowbufs = at;
}

void st_expr_measure(st_expr *x)
{
    x->level = st_cpu_get()->level;
    layout(x);
    for (int i = 0; i < x->nvalues; i++) x->positions |= x->value[i].op == ST_OP_INDEX;
    x->rowbufs = 0;
    if (!x->reductions) return;
    /* how many values long rows keep: as when every operand is a whole rectangle; no pattern keeps more than this allows */
    st_code *c = malloc(st_expr_caps(x).code);
    if (!c) return; /* nothing is kept then, only computed again */
    st_key key = {.mode = ST_MODE_ROWS, .level = (uint16_t)x->level};
    st_expr_arg whole = {NULL, x->f64 ? STRATA_F64 : STRATA_F32, 0x7777, 1};
    for (int i = 0; i < x->nvars; i++) key.arg[i] = (uint16_t)st_expr_pattern(&whole);
    x->rowbufs = 4;
    st_expr_compile(x, &key, c);
    x->rowbufs = c->nrowbuf;
    free(c);
}

void st_expr_set_level(st_expr *x, int level) { x->level = level; }

void st_expr_free(st_expr *x)
{
    if (!x) return;
    for (int i = 0; i < ST_EXPR_CACHE; i++) free(atomic_load(&x->cache[i]));
    free(x->text);
    free(x);
}

/* ---- compiled forms -------------------------------------------------------------------------------------------------- */
static const st_code *code_for(const st_expr *x, const st_key *key, char *scratch)
{
    st_expr *shared = (st_expr *)x; /* the cache is the one thing that changes */
    size_t key_bytes = offsetof(st_key, arg) + (size_t)x->nvars * sizeof key->arg[0];
    int i = 0;
    for (; i < ST_EXPR_CACHE; i++) {
        const st_code *c = atomic_load_explicit(&shared->cache[i], memory_order_acquire);
        if (!c) break;
        if (!memcmp(&c->key, key, key_bytes)) return c;
    }
    st_code *c = (st_code *)(scratch + x->at.code);
    st_expr_compile(x, key, c);
    if (i == ST_EXPR_CACHE) return c;
    st_code *copy = malloc(c->bytes);
    if (!copy) return c;
    memcpy(copy, c, c->bytes);
    for (; i < ST_EXPR_CACHE; i++) {
        st_code *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&shared->cache[i], &none, copy, memory_order_release,
                                                    memory_order_relaxed))
            return copy;
    }
    free(copy);
    return c;
}

/* Only outputs whose memory begins where an input's does: other overlap is the callers' to refuse. */
static bool aliased(const st_expr *x, const st_expr_arg *args)
{
    for (int o = 0; o < x->nvars; o++)
        if (x->var[o].output)
            for (int i = 0; i < x->nvars; i++)
                if (x->var[i].input && args[i].type >= 0 && args[i].ptr == args[o].ptr) return true;
    return false;
}

/* of whole-byte types; 0 of others */
static int64_t size_of(int type)
{
    static const uint8_t bytes[STRATA_TYPE_COUNT] = {
        [STRATA_F64] = 8,    [STRATA_F32] = 4,    [STRATA_F16] = 2, [STRATA_BF16] = 2,
        [STRATA_F8E4M3] = 1, [STRATA_F8E5M2] = 1, [STRATA_I64] = 8, [STRATA_I32] = 4,
        [STRATA_I8] = 1,     [STRATA_U8] = 1,     [STRATA_BOOL] = 1};
    return (unsigned)type < STRATA_TYPE_COUNT ? bytes[type] : 0;
}

static bool sub_byte(int type)
{
    const int t = type & 0xff;
    return type >= 0 && (t == STRATA_BIT || t == STRATA_I4 || t == STRATA_U4);
}
/* What a stride of 1 is in a place's distances: bytes, or bits of types of less than a byte. */
static int64_t unit_of(int type)
{
    return !sub_byte(type) ? size_of(type) : (type & 0xff) == STRATA_BIT ? 1 : 4;
}

static void begin(frame *f, int mode, bool whole, bool swapped)
{
    const st_expr *x = f->x;
    st_key key = {.mode = (uint16_t)mode, .whole = whole, .swapped = swapped, .level = (uint16_t)x->level};
    key.alias = aliased(x, f->args);
    for (int i = 0; i < x->nvars; i++) key.arg[i] = (uint16_t)st_expr_pattern(&f->args[i]);
    f->c = code_for(x, &key, f->scratch);
    f->place = (const st_place_at *)((const char *)f->c + f->c->places);
    f->L = (st_loc *)(f->scratch + x->at.places);
    f->dynamic = (uint16_t *)(f->scratch + x->at.dynamic);
    f->elt = x->f64 ? 8 : 4;
    f->ndynamic = 0;
}

/* places that stay for the whole call; pitch is the distance between rows of a block in bytes */
static void fix_places(frame *f, int64_t pitch)
{
    const st_expr *x = f->x;
    for (int i = 0; i < f->c->nplace; i++) {
        const st_place_at *p = &f->place[i];
        st_loc *l = &f->L[i];
        const st_expr_arg *a = &f->args[p->index < x->nvars ? p->index : 0];
        int64_t size = p->place >= ST_AT_ARG_MN && p->place <= ST_AT_ARG_U ? unit_of(a->type) : 0;
        *l = (st_loc){NULL, 0, f->elt, 0};
        switch (p->place) {
        case ST_AT_SLOT_MN: l->rs = pitch; /* fall through */
        case ST_AT_SLOT_N: l->p = f->scratch + x->at.slots + (size_t)p->index * ST_SLOT_BYTES; break;
        case ST_AT_MVEC:
            l->p = f->scratch + x->at.mvecs + (size_t)p->index * ST_ROWS_MAX * 8;
            l->rs = f->elt;
            break;
        case ST_AT_UNI: l->p = f->scratch + x->at.unis + (size_t)p->index * 8; break;
        case ST_AT_CONST: l->p = (char *)(uintptr_t)f->c + f->c->consts + (size_t)p->index * 8; break;
        case ST_AT_ARG_MN: l->rs = a->sm * size, l->cs = a->sn * size; break;
        case ST_AT_ARG_N: l->cs = a->sn * size; break;
        case ST_AT_ARG_M: l->rs = l->cs = a->sm * size; break;
        case ST_AT_ACC: l->p = f->scratch + x->at.accs + (size_t)p->index * ST_ACC_BYTES; break;
        default: break;
        }
        if ((p->place >= ST_AT_ARG_MN && p->place <= ST_AT_ARG_U) || p->place == ST_AT_ROWBUF ||
            p->place >= ST_AT_INDEX_M)
            f->dynamic[f->ndynamic++] = (uint16_t)i;
    }
    const st_red *r = (const st_red *)((const char *)f->c + f->c->reds);
    for (int i = 0; i < f->c->nred; i++)
        f->L[r[i].acc].rs = f->c->key.mode != ST_MODE_ROWS ? 0 : r[i].op == ST_OP_ARGMAX ? 16 : 8;
}

/* An argument's place at so many bytes, or bits, behind its address. */
static void place_arg(st_loc *l, const st_expr_arg *a, int64_t off)
{
    if (!sub_byte(a->type)) {
        l->p = (char *)a->ptr + off;
        return;
    }
    off += a->type >> 8;
    l->p = (char *)a->ptr + (off >> 3);
    l->bit = off & 7;
}

/* places that follow the block: its first row and column */
static void move_to(const frame *f, int64_t r, int64_t c)
{
    int mode = f->c->key.mode;
    for (int i = 0; i < f->ndynamic; i++) {
        const st_place_at *p = &f->place[f->dynamic[i]];
        st_loc *l = &f->L[f->dynamic[i]];
        const st_expr_arg *a = &f->args[p->index < f->x->nvars ? p->index : 0];
        switch (p->place) {
        case ST_AT_ARG_MN: place_arg(l, a, r * l->rs + c * l->cs); break;
        case ST_AT_ARG_N: place_arg(l, a, c * l->cs); break;
        case ST_AT_ARG_M: place_arg(l, a, r * l->rs); break;
        case ST_AT_ARG_U: place_arg(l, a, 0); break;
        case ST_AT_ROWBUF:
            l->p = f->scratch + f->x->at.rowbufs + p->index * f->rowbuf_bytes + c * f->elt;
            break;
        case ST_AT_INDEX_M: l->cs = f->row0 + r; break;
        case ST_AT_INDEX_N: l->cs = f->col0 + c; break;
        default: /* of argmax */
            l->cs = mode == ST_MODE_COLS ? r : mode == ST_MODE_ALL ? r * f->cols + c : c;
            l->rs = mode == ST_MODE_ALL ? f->cols : 0;
        }
    }
}

static void run_shape(const frame *f, const st_phase *ph, int shape, int64_t m, int64_t n, bool last)
{
    const st_insn *in = (const st_insn *)((const char *)f->c + f->c->insns);
    for (int i = ph->begin[shape]; i < ph->begin[shape + 1]; i++)
        if (!in[i].late || last) in[i].fn(f->L, &in[i], m, n);
}

/* ---- reductions ------------------------------------------------------------------------------------------------------ */
/* Sums accumulate in f64 and argmax in pairs of f64 (value, position); along columns the others accumulate in elements. */
static bool in_elements(const frame *f, int op)
{
    return f->c->key.mode == ST_MODE_COLS && !f->x->f64 && op != ST_OP_ARGMAX && op != ST_OP_SUM &&
           op != ST_OP_SUMSQ && op != ST_OP_DOT && op != ST_OP_SQDEV && !is_moment(op);
}

static double neutral(int op)
{
    switch (op) {
    case ST_OP_PROD:
    case ST_OP_ALL: return 1;
    case ST_OP_RMAX:
    case ST_OP_ARGMAX: return -INFINITY;
    case ST_OP_RMIN: return INFINITY;
    default: return 0;
    }
}

static void clear_accs(const frame *f, const st_phase *ph, int64_t count)
{
    const st_red *r = (const st_red *)((const char *)f->c + f->c->reds) + ph->red;
    for (int i = 0; i < ph->nred; i++, r++) {
        double *acc = (double *)f->L[r->acc].p, v = neutral(r->op);
        if (r->shared) continue;
        if (is_moment(r->op))
            for (int64_t j = 0; j < count; j++) acc[j + ST_ACC_HALF / 8] = 0;
        if (r->op == ST_OP_ARGMAX)
            for (int64_t j = 0; j < count; j++) acc[2 * j] = v, acc[2 * j + 1] = 0;
        else if (in_elements(f, r->op))
            for (int64_t j = 0; j < count; j++) ((float *)acc)[j] = (float)v;
        else
            for (int64_t j = 0; j < count; j++) acc[j] = v;
    }
}

/* From the sums of x - m and of its squares: mean and variance. The first reduction of these sums turns them into means. Equal values
 * leave d and d^2 n times over, so that they and a variance of 0 come out exactly. A mean that is not finite has no lower part. */
static void finish_moments(const frame *f, const st_red *r, int64_t count, double length)
{
    double *more = (double *)f->L[r->acc].p, *var = more + ST_ACC_HALF / 8;
    const char *mean = f->L[r->about].p;
    char *to = f->L[r->result].p;
    for (int64_t j = 0; j < count && !r->shared; j++) {
        double a = more[j] / length;
        more[j] = a = a - a == 0 ? a : 0;
        a = var[j] / length - a * a;
        var[j] = a < 0 ? 0 : a; /* a NaN stays */
    }
    const bool f64 = f->x->f64;
    const double scale = r->op == ST_OP_SCATTER ? length : 1;
    if (r->op == ST_OP_VARIANCE || r->op == ST_OP_SCATTER) {
        for (int64_t j = 0; j < count && f64; j++) ((double *)to)[j] = var[j] * scale;
        for (int64_t j = 0; j < count && !f64; j++) ((float *)to)[j] = (float)(var[j] * scale);
        return;
    }
    const bool low = r->op == ST_OP_MEAN_LO;
    for (int64_t j = 0; j < count && f64; j++) { /* Knuth's two-sum */
        const double m = ((const double *)mean)[j], hi = m + more[j], b = hi - m,
                     lo = (m - (hi - b)) + (more[j] - b);
        ((double *)to)[j] = !low ? hi : lo - lo == 0 ? lo : 0;
    }
    for (int64_t j = 0; j < count && !f64; j++) {
        const double m = ((const float *)mean)[j], sum = m + more[j], hi = (double)(float)sum,
                     lo = (m - hi) + more[j];
        ((float *)to)[j] = (float)(!low ? hi : lo - lo == 0 ? lo : 0);
    }
}

static void finish_accs(const frame *f, const st_phase *ph, int64_t count, double length)
{
    const st_red *r = (const st_red *)((const char *)f->c + f->c->reds) + ph->red;
    for (int i = 0; i < ph->nred; i++, r++) {
        if (is_moment(r->op)) {
            finish_moments(f, r, count, length);
            continue;
        }
        const double *acc = (const double *)f->L[r->acc].p;
        char *to = f->L[r->result].p;
        int step = r->op == ST_OP_ARGMAX ? 2 : 1, off = step - 1;
        if (in_elements(f, r->op)) {
            memcpy(to, acc, (size_t)count * sizeof(float));
            continue;
        }
        for (int64_t j = 0; j < count; j++) {
            double v = acc[step * j + off];
            if (r->mean) v /= length;
            if (f->x->f64)
                ((double *)to)[j] = v;
            else
                ((float *)to)[j] = (float)v;
        }
    }
}

/* ---- loops ----------------------------------------------------------------------------------------------------------- */
static int64_t balanced(int64_t total, int64_t most, int64_t unit)
{
    if (total <= most) return total;
    int64_t parts = st_ceil_div(total, most);
    return st_round_up(st_ceil_div(total, parts), unit);
}

static int64_t pitch_of(const frame *f, int64_t cols) { return st_round_up(st_max64(cols, 1) * f->elt, 64); }

static void columns_outside(const frame *f)
{
    const int64_t bc = f->bc, br = f->br;
    bool red = f->c->key.mode == ST_MODE_COLS;
    move_to(f, 0, 0);
    run_shape(f, &f->c->phase[0], ST_CLS_U, 1, 1, true);
    for (int64_t c = 0; c < f->cols; c += bc) {
        int64_t n = st_min64(bc, f->cols - c);
        for (int p = 0; p < f->c->nphase; p++) {
            const st_phase *ph = &f->c->phase[p];
            move_to(f, 0, c);
            if (p) run_shape(f, ph, ST_CLS_U, 1, 1, true);
            run_shape(f, ph, ST_CLS_N, 1, n, true);
            if (red) clear_accs(f, ph, n);
            if (ph->begin[4] > ph->begin[3] || ph->begin[2] > ph->begin[1])
                for (int64_t r = 0; r < f->rows; r += br) {
                    int64_t m = st_min64(br, f->rows - r);
                    if (r) move_to(f, r, c);
                    run_shape(f, ph, ST_CLS_M, 1, m, c + bc >= f->cols);
                    run_shape(f, ph, ST_CLS_MN, m, n, true);
                }
            if (red) finish_accs(f, ph, n, (double)f->rows);
        }
    }
}

static void rows_outside(frame *f, int64_t bc, int64_t br)
{
    fix_places(f, pitch_of(f, bc));
    move_to(f, 0, 0);
    for (int64_t r = 0; r < f->rows; r += br) {
        int64_t m = st_min64(br, f->rows - r);
        bool last_rows = r + br >= f->rows;
        for (int p = 0; p < f->c->nphase; p++) {
            const st_phase *ph = &f->c->phase[p];
            if (p == 0 || f->cols > bc) move_to(f, r, 0);
            if (r == 0) run_shape(f, ph, ST_CLS_U, 1, 1, true);
            run_shape(f, ph, ST_CLS_M, 1, m, true);
            clear_accs(f, ph, m);
            if (ph->begin[4] > ph->begin[2])
                for (int64_t c = 0; c < f->cols; c += bc) {
                    int64_t n = st_min64(bc, f->cols - c);
                    if (c) move_to(f, r, c);
                    if (!f->c->key.whole || r == 0 || last_rows) run_shape(f, ph, ST_CLS_N, 1, n, last_rows);
                    run_shape(f, ph, ST_CLS_MN, m, n, true);
                }
            finish_accs(f, ph, m, (double)f->cols);
        }
    }
}

static int64_t elements(const frame *f, int64_t bytes) { return bytes / (f->x->f64 ? 8 : 4); }

size_t st_expr_scratch(const st_expr *x) { return x->at.rowbufs; }

/* A rectangle whose operands all are one run of memory, or one number, is a single row. */
static bool one_run(const st_expr *x, const st_expr_arg *a, int64_t cols)
{
    if (x->positions) return false;
    for (int i = 0; i < x->nvars; i++) {
        if (a[i].type < 0 || sub_byte(a[i].type)) return false;
        if (a[i].sm == 0 && a[i].sn == 0) continue;
        if (a[i].sn != 1 || a[i].sm != cols) return false;
    }
    return true;
}

/* Is the rectangle better walked the other way round? Yes when an output runs along the rows and none along the columns. */
static bool better_swapped(const st_expr *x, const st_expr_arg *a, int64_t rows, int64_t cols)
{
    bool along_m = false;
    for (int i = 0; i < x->nvars; i++) /* bits want the way in which they follow each other */
        if (sub_byte(a[i].type) && (a[i].sm || a[i].sn)) return a[i].sn != 1 && a[i].sm == 1;
    for (int i = 0; i < x->nvars; i++)
        if (x->var[i].output) {
            if (a[i].sn == 1 && cols > 1) return false;
            along_m |= a[i].sm == 1;
        }
    return rows > 1 && (along_m || cols == 1);
}

static void turn(const st_expr *x, const st_expr_arg *args, st_expr_arg *turned)
{
    for (int i = 0; i < x->nvars; i++) {
        turned[i] = args[i];
        turned[i].sm = args[i].sn, turned[i].sn = args[i].sm;
        if (args[i].type < 0) turned[i].type = ST_EXPR_INDEX_M + ST_EXPR_INDEX_N - args[i].type;
    }
}

static void map_on(frame *f, const st_expr_arg *args, int64_t rows, int64_t cols, int64_t row0, int64_t col0)
{
    f->args = args;
    f->rows = rows, f->cols = cols, f->row0 = row0, f->col0 = col0;
    if (f->swapped) f->rows = cols, f->cols = rows, f->row0 = col0, f->col0 = row0;
}

/* compiles and places everything but the arguments' own memory; cut: blocks may be longer than one row's part */
static void map_prepare(frame *f, bool one_row)
{
    const st_expr *x = f->x;
    if (one_row && f->rows > 1 && one_run(x, f->args, f->cols)) f->cols *= f->rows, f->rows = 1;
    begin(f, ST_MODE_MAP, true, f->swapped);
    f->bc = balanced(f->cols, elements(f, ST_BLOCK_BYTES), 64 / f->elt);
    f->br = st_max64(1, st_min64(ST_ROWS_MAX, ST_BLOCK_BYTES / pitch_of(f, f->bc)));
    fix_places(f, pitch_of(f, f->bc));
}

void st_expr_map(const st_expr *x, const st_expr_arg *args, int64_t rows, int64_t cols, int64_t row0,
                 int64_t col0, void *scratch)
{
    if (rows <= 0 || cols <= 0 || x->reductions || x->matmul) return;
    frame f = {.x = x, .scratch = scratch, .swapped = better_swapped(x, args, rows, cols)};
    st_expr_arg turned[ST_EXPR_VARS];
    if (f.swapped) turn(x, args, turned);
    map_on(&f, f.swapped ? turned : args, rows, cols, row0, col0);
    map_prepare(&f, true);
    columns_outside(&f);
}

void st_expr_bind(const st_expr *x, const st_expr_arg *args, int64_t rows, int64_t cols, void *scratch)
{
    frame *f = scratch;
    *f = (frame){.x = x, .scratch = scratch};
    map_on(f, args, st_max64(rows, 1), st_max64(cols, 1), 0, 0);
    map_prepare(f, false);
}

void st_expr_map_bound(const st_expr_arg *args, int64_t rows, int64_t cols, int64_t row0, int64_t col0,
                       void *scratch)
{
    frame *f = scratch;
    if (rows <= 0 || cols <= 0 || f->x->reductions || f->x->matmul) return;
    map_on(f, args, rows, cols, row0, col0);
    columns_outside(f);
}

size_t st_expr_rows_scratch(const st_expr *x, int64_t cols)
{
    int64_t elt = x->f64 ? 8 : 4;
    return x->at.rowbufs + (size_t)x->rowbufs * (size_t)st_round_up(st_max64(cols, 1) * elt + 128, 64);
}

void st_expr_rows(const st_expr *x, const st_expr_arg *args, int64_t rows, int64_t cols, int64_t row0,
                  void *scratch)
{
    if (rows <= 0 || x->matmul) return;
    frame f = {.x = x, .args = args, .rows = rows, .cols = cols, .row0 = row0, .scratch = scratch};
    bool whole = cols <= elements(&f, ST_SLOT_USED);
    begin(&f, ST_MODE_ROWS, whole, false);
    /* a phase costs about 30 ns a block besides its work: programs with few blocks alive take larger ones */
    int64_t bytes = f.c->nslot <= 2 ? ST_SLOT_USED : ST_BLOCK_BYTES;
    int64_t bc = whole ? cols : balanced(cols, elements(&f, bytes), 64 / f.elt);
    if (whole && !f.c->nslot)
        bytes = ST_IN_PLACE_BYTES; /* the operands' own rows are all there is in the cache */
    int64_t br = whole ? st_max64(1, st_min64(ST_ROWS_MAX, bytes / pitch_of(&f, bc))) : 1;
    f.rowbuf_bytes = st_round_up(st_max64(cols, 1) * f.elt + 128, 64);
    rows_outside(&f, st_max64(bc, 1), br);
}

size_t st_expr_cols_scratch(const st_expr *x, int64_t cols)
{
    (void)cols;
    return x->at.rowbufs;
}

void st_expr_cols(const st_expr *x, const st_expr_arg *args, int64_t rows, int64_t cols, int64_t col0,
                  void *scratch)
{
    if (cols <= 0 || x->matmul) return;
    frame f = {.x = x, .args = args, .rows = rows, .cols = cols, .col0 = col0, .scratch = scratch};
    f.elt = x->f64 ? 8 : 4;
    /* blocks of at most 1 KiB a row; rows in whole groups */
    f.bc = balanced(cols, elements(&f, ST_SLOT_USED / ST_COLS_GROUP), 64 / f.elt);
    f.br = st_max64(1, ST_BLOCK_BYTES / pitch_of(&f, f.bc) / ST_COLS_GROUP) * ST_COLS_GROUP;
    f.br = st_min64(f.br, ST_ROWS_MAX);
    begin(&f, ST_MODE_COLS, rows <= f.br, false);
    fix_places(&f, pitch_of(&f, f.bc));
    columns_outside(&f);
}

void st_expr_all(const st_expr *x, const st_expr_arg *args, int64_t rows, int64_t cols, int64_t row0,
                 int64_t col0, void *scratch)
{
    if (x->matmul) return;
    frame f = {.x = x,
               .args = args,
               .rows = st_max64(rows, 0),
               .cols = st_max64(cols, 0),
               .row0 = row0,
               .col0 = col0,
               .scratch = scratch};
    f.elt = x->f64 ? 8 : 4;
    int64_t bc = st_max64(1, balanced(f.cols, elements(&f, ST_BLOCK_BYTES), 64 / f.elt));
    int64_t br = st_max64(1, st_min64(ST_ROWS_MAX, ST_BLOCK_BYTES / pitch_of(&f, bc)));
    begin(&f, ST_MODE_ALL, f.rows <= br && f.cols <= bc, false);
    fix_places(&f, pitch_of(&f, bc));
    for (int p = 0; p < f.c->nphase; p++) {
        const st_phase *ph = &f.c->phase[p];
        move_to(&f, 0, 0);
        run_shape(&f, ph, ST_CLS_U, 1, 1, true);
        clear_accs(&f, ph, 1);
        for (int64_t r = 0; r < f.rows; r += br) {
            int64_t m = st_min64(br, f.rows - r);
            for (int64_t c = 0; c < f.cols; c += bc) {
                int64_t n = st_min64(bc, f.cols - c);
                move_to(&f, r, c);
                if (c == 0) run_shape(&f, ph, ST_CLS_M, 1, m, true);
                run_shape(&f, ph, ST_CLS_N, 1, n, r + br >= f.rows);
                run_shape(&f, ph, ST_CLS_MN, m, n, true);
            }
        }
        finish_accs(&f, ph, 1, (double)f.rows * (double)f.cols);
    }
}
