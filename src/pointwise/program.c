/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - expressions as plans: one parse and one analysis a shape, then pieces of fixed size for the team.
 *
 * A piece is a rectangle: some rows and columns of a map, some rows of a row reduction, some columns of a column reduction, one line
 * otherwise. Reductions are never split, so every thread count gives the same bits. Scratch belongs to slots, not threads. */
#include "pointwise/program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program_row {
    const char *id, *types, *isa_name;
    st_pw_mode mode;
    int type;
    unsigned isa;
} program_row;
enum { MODE_map = ST_PW_MAP, MODE_rows = ST_PW_ROWS, MODE_cols = ST_PW_COLS, MODE_all = ST_PW_ALL };
#define PROGRAM(way, type, TYPE, arch, ISA) \
    {"pointwise_" #way "_" #type "_" #arch, #type, #arch, (st_pw_mode)MODE_##way, TYPE, ISA},
static const program_row program_rows[] = {
#include "pointwise/cpu/kernels.inc"
};

enum { PIECE = 16384, MAP_COLS = 8192, MIN_COLS = 64 };

typedef struct program_plan {
    strata_plan base;
    st_pw_shape s;
    int64_t slots, step_rows, step_cols, pieces_rows, pieces_cols, pieces;
    size_t scratch;                 /* bytes of a slot: the expr layer's, then packed lines */
    size_t packed_at[ST_EXPR_VARS]; /* of each variable within the slot; 0: not packed */
} program_plan;

static const char *mode_order(st_pw_mode m)
{
    return m == ST_PW_MAP ? "no sums" : "in lanes, each line whole, in an order fixed by its length";
}

static unsigned level_isa(const st_cpu *c)
{
    return c->level == ST_LEVEL_AVX512 ? ST_ISA_AVX512
           : c->level == ST_LEVEL_AVX2 ? ST_ISA_AVX2
                                       : ST_ISA_PORTABLE;
}

static double predict(const st_pw_shape *s, unsigned isa)
{
    double bytes = 0;
    for (int v = 0; v < s->nvars; v++)
        if (s->operand[v] >= 0) bytes += (double)(s->hi[s->operand[v]] - s->lo[s->operand[v]]);
    const double slow = isa == ST_ISA_AVX512 ? 1 : isa == ST_ISA_AVX2 ? 2 : 4, n = (double)s->elements;
    const double work = n * (st_expr_cost(s->x) * slow + 0.05) / 2800, memory = bytes / 20000;
    return 0.3 + (work > memory ? work : memory);
}

static int program_enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    const int64_t *key = pr->data;
    if (key[0] != ST_PW_PROGRAM) return 0;
    st_pw_shape *s = malloc(sizeof *s);
    if (!s) return 0;
    st_err e = {0};
    const bool good = st_pw_shape_make(&e, pr->who, key, pr->text, s) == STRATA_OK;
    int n = 0;
    for (int i = 0; i < ST_COUNT(program_rows) && n < max; i++) {
        const program_row *row = &program_rows[i];
        if (row->type != (s->f64 ? STRATA_F64 : STRATA_F32)) continue;
        st_candidate *c = &out[n++];
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", row->id);
        c->row = row;
        c->order = mode_order(row->mode);
        c->us = -1;
        if (!good && n == 1)
            c->us = 1; /* build repeats the analysis and reports its fault */
        else if (row->isa != level_isa(h->cpu))
            snprintf(c->why, sizeof c->why,
                     "expressions run with the best instruction set of the processor (STRATA_ISA lowers it)");
        else if (good && row->mode != s->mode)
            snprintf(c->why, sizeof c->why,
                     "the program's reductions and strides ask for another way through memory");
        else
            c->us = good ? predict(s, row->isa) : -1;
    }
    if (good) st_expr_free(s->x);
    free(s);
    return n;
}

static int64_t packed_elements(const st_pw_shape *s, int v)
{
    return s->pack && s->operand[v] >= 0 && s->col.step[v] ? s->col.len : 0;
}

static void cut(program_plan *pl)
{
    const st_pw_shape *s = &pl->s;
    const int64_t rows = s->row.len, cols = s->col.len;
    pl->step_rows = st_max64(rows, 1);
    pl->step_cols = st_max64(cols, 1);
    if (s->mode == ST_PW_MAP) {
        pl->step_cols = st_min64(pl->step_cols, MAP_COLS);
        pl->step_rows = st_min64(pl->step_rows, st_max64(1, PIECE / pl->step_cols));
    } else if (s->mode == ST_PW_ROWS) {
        pl->step_rows = st_min64(pl->step_rows, st_max64(1, PIECE / pl->step_cols));
    } else if (s->mode == ST_PW_COLS) {
        const int64_t want = st_max64(MIN_COLS, st_round_up(2 * PIECE / st_max64(1, rows), MIN_COLS));
        pl->step_cols = st_min64(pl->step_cols, want);
    }
    /* two pieces may not share a byte that is written */
    for (int v = 0; v < s->nvars; v++)
        if (s->operand[v] >= 0 && s->var[v].output && st_type_is_sub_byte(s->type[v]) && s->row.step[v] == 1)
            pl->step_rows = st_round_up(pl->step_rows, 8);
    /* an empty rectangle still has lines to write */
    pl->pieces_rows = rows ? st_ceil_div(rows, pl->step_rows) : s->mode == ST_PW_COLS || s->mode == ST_PW_ALL;
    pl->pieces_cols = cols ? st_ceil_div(cols, pl->step_cols) : s->mode == ST_PW_ROWS || s->mode == ST_PW_ALL;
    pl->pieces = pl->pieces_rows * pl->pieces_cols;
    for (int i = 0; i < s->nouter; i++) pl->pieces *= s->outer[i].len;
}

static strata_status program_run(strata_handle *h, const strata_plan *base, void *const data[],
                                 const strata_run *r);
static void program_destroy(strata_plan *p) { st_expr_free(((program_plan *)p)->s.x); }

void st_pw_program_describe(strata_plan *p, const st_pw_shape *s)
{
    const char *text = st_expr_text(s->x);
    int n =
        snprintf(p->title, sizeof p->title, "fused %lldx%lld", (long long)s->row.len, (long long)s->col.len);
    int64_t outer = 1;
    for (int i = 0; i < s->nouter; i++) outer *= s->outer[i].len;
    if (outer != 1) n += snprintf(p->title + n, sizeof p->title - (size_t)n, " %lld times", (long long)outer);
    snprintf(p->title + n, sizeof p->title - (size_t)n, " \"%.100s%s\"", text,
             strlen(text) > 100 ? "..." : "");
    p->operands = s->noperands;
    for (int v = 0; v < s->nvars; v++)
        if (s->operand[v] >= 0)
            p->bytes += (double)(s->hi[s->operand[v]] - s->lo[s->operand[v]]) *
                        (s->var[v].input && s->var[v].output ? 2 : 1);
    p->flops = (double)s->elements;
}

strata_status st_pw_program_extents(strata_plan *p, const st_pw_shape *s)
{
    p->extent = calloc((size_t)s->noperands + 1, sizeof *p->extent);
    if (!p->extent) return STRATA_ERROR_MEMORY;
    for (int v = 0; v < s->nvars; v++) {
        const int o = s->operand[v];
        if (o < 0) continue;
        const int64_t size = (int64_t)strata_type_bits((strata_type)s->type[v]) / 8;
        st_extent *e = &p->extent[o];
        e->lo = s->lo[o], e->hi = s->hi[o];
        e->read |= s->var[v].input;
        e->written |= s->var[v].output;
        e->by_value = e->hi - e->lo == size && !e->written;
    }
    return STRATA_OK;
}

static strata_status program_build(strata_handle *h, const st_problem *pr, const st_candidate *c,
                                   strata_plan **plan)
{
    program_plan *pl = st_plan_new(sizeof *pl);
    if (!pl) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    const int64_t *key = pr->data;
    strata_status st = st_pw_shape_make(&h->err, pr->who, key, pr->text, &pl->s);
    if (st) {
        free(pl);
        return st;
    }
    const st_pw_shape *s = &pl->s;
    (void)c;
    cut(pl);
    /* fewer threads than the key says: the workspace limit allows no more */
    pl->slots = st_max64(1, st_min64(st_min64(key[1], st_threads(h)), pl->pieces));
    switch (s->mode) {
    case ST_PW_ROWS: pl->scratch = st_expr_rows_scratch(s->x, s->col.len); break;
    case ST_PW_COLS: pl->scratch = st_expr_cols_scratch(s->x, pl->step_cols); break;
    default: pl->scratch = st_expr_scratch(s->x);
    }
    pl->scratch = (size_t)st_round_up((int64_t)pl->scratch, 64);
    for (int v = 0; v < s->nvars; v++) {
        const int64_t n = packed_elements(s, v) * (int64_t)strata_type_bits((strata_type)s->type[v]) / 8;
        if (!n) continue;
        pl->packed_at[v] = pl->scratch;
        pl->scratch += (size_t)st_round_up(n, 64);
    }
    pl->base.workspace = (size_t)pl->slots * pl->scratch;
    pl->base.run = program_run;
    pl->base.destroy = program_destroy;
    st_pw_program_describe(&pl->base, s);
    if (st_pw_program_extents(&pl->base, s)) {
        strata_plan_destroy(&pl->base);
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    }
    *plan = &pl->base;
    return STRATA_OK;
}

/* ---- running ---- */
typedef struct program_work {
    const program_plan *pl;
    void *const *data;
    char *scratch;
    atomic_llong next;
} program_work;

/* Between a line's elements (the reduced loops of s->packed) and a dense buffer. */
static void pack(const st_pw_shape *s, int v, char *memory, char *buffer, bool in)
{
    const int64_t size = (int64_t)strata_type_bits((strata_type)s->type[v]) / 8;
    const int n = s->npacked;
    const int64_t inner = s->packed[n - 1].len, step = s->packed[n - 1].step[v] * size;
    int64_t at[STRATA_MAX_RANK] = {0};
    for (int64_t i = 0; i < s->col.len; i += inner) {
        int64_t off = 0;
        for (int d = 0; d < n - 1; d++) off += at[d] * s->packed[d].step[v] * size;
        for (int64_t j = 0; j < inner; j++) {
            char *m = memory + off + j * step, *b = buffer + (i + j) * size;
            memcpy(in ? b : m, in ? m : b, (size_t)size);
        }
        for (int d = n - 2; d >= 0; d--) {
            if (++at[d] < s->packed[d].len) break;
            at[d] = 0;
        }
    }
}

static void run_rectangle(const st_pw_shape *s, const st_expr_arg *args, int64_t rows, int64_t cols,
                          int64_t row0, int64_t col0, void *scratch)
{
    switch (s->mode) {
    case ST_PW_ROWS: st_expr_rows(s->x, args, rows, cols, row0, scratch); break;
    case ST_PW_COLS: st_expr_cols(s->x, args, rows, cols, col0, scratch); break;
    case ST_PW_ALL: st_expr_all(s->x, args, rows, cols, row0, col0, scratch); break;
    default: st_expr_map(s->x, args, rows, cols, row0, col0, scratch);
    }
}

static void run_piece(const program_work *w, int64_t piece, char *scratch)
{
    const program_plan *pl = w->pl;
    const st_pw_shape *s = &pl->s;
    const int64_t c = piece % pl->pieces_cols, r = piece / pl->pieces_cols % pl->pieces_rows;
    int64_t outer = piece / (pl->pieces_cols * pl->pieces_rows), at[STRATA_MAX_RANK],
            pos[STRATA_MAX_RANK] = {0};
    for (int i = s->nouter - 1; i >= 0; i--) {
        at[i] = outer % s->outer[i].len;
        outer /= s->outer[i].len;
        if (s->outer[i].dim >= 0) pos[s->outer[i].dim] = at[i];
    }
    const int64_t row0 = r * pl->step_rows, col0 = c * pl->step_cols;
    const int64_t rows = st_min64(pl->step_rows, s->row.len - row0),
                  cols = st_min64(pl->step_cols, s->col.len - col0);
    st_expr_arg args[ST_EXPR_VARS];
    for (int v = 0; v < s->nvars; v++) {
        if (s->operand[v] < 0) {
            const int d = s->position[v];
            if (d == s->rank - 1)
                args[v] = (st_expr_arg){NULL, ST_EXPR_INDEX_N, 0, 1};
            else if (d == s->rank - 2)
                args[v] = (st_expr_arg){NULL, ST_EXPR_INDEX_M, 1, 0};
            else
                args[v] = (st_expr_arg){&pos[d], STRATA_I64, 0, 0};
            continue;
        }
        int64_t off = row0 * s->row.step[v] + (s->pack ? 0 : col0 * s->col.step[v]);
        for (int i = 0; i < s->nouter; i++) off += at[i] * s->outer[i].step[v];
        args[v] = st_expr_arg_at(w->data[s->operand[v]], s->type[v], off, s->row.step[v], s->col.step[v]);
    }
    if (!s->pack) {
        run_rectangle(s, args, rows, cols, row0, col0, scratch);
        return;
    }
    void *memory[ST_EXPR_VARS];
    for (int v = 0; v < s->nvars; v++) {
        memory[v] = args[v].ptr;
        if (!pl->packed_at[v]) continue;
        args[v].ptr = scratch + pl->packed_at[v];
        if (s->var[v].input) pack(s, v, memory[v], args[v].ptr, true);
    }
    run_rectangle(s, args, rows, cols, row0, col0, scratch);
    for (int v = 0; v < s->nvars; v++)
        if (pl->packed_at[v] && s->var[v].output) pack(s, v, memory[v], args[v].ptr, false);
}

static void program_slot(void *arg, int64_t slot, int worker)
{
    program_work *w = arg;
    (void)worker;
    char *scratch = w->scratch + (size_t)slot * w->pl->scratch;
    for (;;) {
        const int64_t i = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed);
        if (i >= w->pl->pieces) return;
        run_piece(w, i, scratch);
    }
}

static strata_status program_run(strata_handle *h, const strata_plan *base, void *const data[],
                                 const strata_run *r)
{
    const program_plan *pl = (const program_plan *)base;
    if (pl->pieces == 0) return STRATA_OK;
    program_work w = {.pl = pl, .data = data};
    if (base->workspace) {
        w.scratch = st_plan_workspace(h, base, r);
        if (!w.scratch) return h->err.status;
    }
    st_team_for(h, pl->slots, base->chosen.us, program_slot, &w);
    return STRATA_OK;
}

static const st_provider program_provider = {"program", ST_OP_POINTWISE, program_enumerate, program_build,
                                             ST_ON_CPU};

int st_pw_program_kernels(int i, strata_kernel_info *info)
{
    if (i >= ST_COUNT(program_rows)) return st_pw_program_cuda_kernels(i - ST_COUNT(program_rows), info);
    if (i < 0) return 0;
    const program_row *k = &program_rows[i];
    const bool usable = k->isa == level_isa(st_cpu_get());
    *info = (strata_kernel_info){
        k->id,
        "pointwise",
        k->types,
        k->isa_name,
        mode_order(k->mode),
        usable,
        usable ? NULL : "expressions run with the best instruction set there is (STRATA_ISA lowers it)"};
    return 1;
}

void st_pw_program_init(void)
{
    st_plan_register(&program_provider);
    st_pw_program_cuda_init();
}

/* ---- the call ---- */
/* Plans of a GPU depend on how operands are aligned (only in how they read), those of the CPU on the threads there are. */
int64_t st_pw_program_second(const strata_handle *h, const strata_operand *operands, int n)
{
    if (!h->gpu) return st_threads(h);
    uintptr_t bits = 16;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < operands[i].tensor.rank; d++)
            if (operands[i].tensor.dim[d] > 1) bits |= (uintptr_t)operands[i].tensor.data;
    return (int64_t)(bits & (~bits + 1));
}

strata_status st_pw_check_operands(strata_handle *h, const char *who, const strata_operand *o, int *n)
{
    st_err *e = &h->err;
    if (!o)
        return st_fail(e, STRATA_ERROR_ARGUMENT,
                       "%s: operands is NULL; give a list that ends in a row without name", who);
    for (*n = 0; o[*n].name; ++*n) {
        const char *name = o[*n].name;
        const strata_tensor *t = &o[*n].tensor;
        if (*n == ST_EXPR_VARS)
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           "%s: more than %d operands (does the list end in a row without name?)", who,
                           ST_EXPR_VARS);
        if (!name[0] || strlen(name) >= ST_EXPR_NAME)
            return st_fail(e, STRATA_ERROR_ARGUMENT,
                           "%s: the operand name '%.40s' has no letters or more than %d", who, name,
                           ST_EXPR_NAME - 1);
        strata_status s = st_tensor_check(e, who, name, t);
        if (s) return s;
        if (st_type_is_complex(t->type))
            return st_fail(e, STRATA_ERROR_TYPE,
                           "%s: %s is %s; programs take real types: f64 f32 f16 bf16 f8e4m3 f8e5m2 "
                           "i64 i32 i8 u8 i4 u4 bool bit",
                           who, name, strata_type_name((strata_type)t->type));
        if ((s = st_tensor_check_bits(e, who, name, t))) return s;
        for (int i = 0; i < *n; i++)
            if (!strcmp(o[i].name, name))
                return st_fail(e, STRATA_ERROR_ARGUMENT, "%s: operand %s is given twice", who, name);
    }
    return STRATA_OK;
}

/* Addresses change from call to call, so overlap is looked at each time: first the spans, which the shape knows; where they meet, whether
 * elements do (views may lie between each other's elements, as columns of one matrix and channels of one image do). */
static strata_status check_alias(strata_handle *h, const char *who, const st_pw_shape *s,
                                 const strata_operand *operands)
{
    for (int o = 0; o < s->noperands; o++) {
        if (!(s->outputs >> o & 1)) continue;
        const char *at = operands[o].tensor.data, *lo = at + s->lo[o], *hi = at + s->hi[o];
        for (int i = 0; i < s->noperands; i++) {
            if (i == o) continue;
            const char *other = operands[i].tensor.data, *a = other + s->lo[i], *b = other + s->hi[i];
            if (!(a < hi && lo < b)) continue;
            const bool output = s->outputs >> i & 1, identical = other == at && (s->same[o] >> i & 1);
            if (identical && !output) continue;
            if (!st_tensor_overlap(&operands[o].tensor, &operands[i].tensor)) continue;
            return st_fail(
                &h->err, STRATA_ERROR_ALIAS, "%s: the output %s overlaps %s %s in memory; %s", who,
                s->name[o], output ? "the output" : "the input", s->name[i],
                output ? "outputs must be apart"
                       : "an input may only be the identical view (same address, type, dims and strides)");
        }
    }
    return STRATA_OK;
}

size_t st_pw_program_key(int64_t *key, const strata_operand *operands, int n, uint32_t axes, int64_t second)
{
    int64_t *k = key + ST_KEY_HEAD;
    key[0] = ST_PW_PROGRAM, key[1] = second, key[2] = axes, key[3] = n;
    for (int i = 0; i < n; i++) {
        const strata_tensor *t = &operands[i].tensor;
        *k++ = t->type | (int64_t)t->rank << 8;
        memset(k, 0, ST_EXPR_NAME);
        memcpy(k, operands[i].name, strlen(operands[i].name));
        k += ST_KEY_NAME;
        memcpy(k, t->dim, (size_t)t->rank * sizeof *k), k += t->rank;
        memcpy(k, t->stride, (size_t)t->rank * sizeof *k), k += t->rank;
    }
    return (size_t)(k - key) * sizeof *k;
}

strata_status st_pw_run(strata_handle *h, const char *who, const char *program,
                        const strata_operand *operands, uint32_t axes)
{
    st_pw_init();
    if (!program) return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: the program is NULL", who);
    int64_t key[ST_KEY_WORDS];
    void *data[ST_EXPR_VARS];
    int n;
    strata_status s = st_pw_check_operands(h, who, operands, &n);
    if (s) return s;
    for (int i = 0; i < n; i++) data[i] = operands[i].tensor.data;
    const size_t bytes = st_pw_program_key(key, operands, n, axes, st_pw_program_second(h, operands, n));
    const st_problem pr = {ST_OP_POINTWISE, who, key, bytes, program};
    const strata_plan *plan;
    if ((s = st_plan_get(h, &pr, &plan))) return s;
    if ((s = check_alias(h, who, &((const program_plan *)plan)->s, operands))) return s;
    const uint64_t t0 = st_trace_begin();
    s = st_plan_execute(h, plan, data, NULL);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "pointwise", plan->chosen.kernel, "%s, workspace %zu", plan->title, plan->workspace);
    return s;
}
