/* SPDX-License-Identifier: Apache-2.0 */
/* test_fuzz.c - random programs on random rectangles, strides, types and levels, against a scalar interpreter of the program's tree.
 * All numbers are small integers (and NaN and infinities), for which f32 arithmetic is exact, so results must be equal. Buffers and
 * the scratch stand against guard pages; every byte that no store names must stay as it was. */
#include "support.h"
#include <math.h>
#include "expr/ir.h"

enum { MAX_NODES = 64, MAX_VARS = 8, MAX_TEXT = 4096, LIMIT = 100, CELLS = 24000 };
enum { MAP, ROWS, COLS, ALL };

typedef enum kind {
    NUM,
    VAR,
    IDX,
    NEG,
    NOT,
    ABS,
    RELU,
    FLOOR_HALF,
    SIGN,
    SAT_I8,
    SAT_U4,
    ISNAN,
    ISINF,
    CLAMP,
    ADD,
    SUB,
    MUL,
    MIN,
    MAX,
    LT,
    LE,
    GT,
    GE,
    EQ,
    NE,
    AND,
    OR,
    LEAKY,
    FMA,
    SEL,
    TERN,
    SUM,
    PROD_SIGN,
    RMAX,
    RMIN,
    ABSMAX,
    ANY,
    ALLOF,
    ARGMAX,
    KINDS
} kind;

typedef struct node {
    kind k;
    int a, b, c;
    double num;
    double most; /* bound of the magnitude of finite values */
    int cls;     /* 1 depends on the row, 2 on the column */
    int depth;   /* of reductions */
    double *val;
} node;

typedef struct var {
    char name[8];
    int type, cls;
    int64_t sm, sn, off; /* elements; off: of element (0, 0) in the buffer */
    char *buf, *want;    /* guarded buffer; what it should be afterwards */
    size_t bytes;
    bool output, used;
    int value; /* node stored */
} var;

typedef struct fuzz {
    test_rng r;
    node n[MAX_NODES];
    int nn, mode, nv;
    int64_t rows, cols, row0, col0;
    var v[MAX_VARS];
    bool f64;
    double *arena;
    size_t used;
} fuzz;

static const int in_types[] = {STRATA_F32,  STRATA_F32,    STRATA_F32,    STRATA_F64, STRATA_F16,
                               STRATA_BF16, STRATA_F8E4M3, STRATA_F8E5M2, STRATA_I64, STRATA_I32,
                               STRATA_I8,   STRATA_U8,     STRATA_BOOL};
static const int out_types[] = {STRATA_F32,    STRATA_F32, STRATA_F32, STRATA_F64, STRATA_F16,
                                STRATA_BF16,   STRATA_I64, STRATA_I32, STRATA_I8,  STRATA_F8E4M3,
                                STRATA_F8E5M2, STRATA_U8,  STRATA_BOOL};

/* ---- trees ----------------------------------------------------------------------------------------------------------- */
static int add_node(fuzz *f, node n)
{
    int kids[3] = {n.a, n.b, n.c};
    for (int i = 0; i < 3; i++)
        if (kids[i] >= 0) {
            n.cls |= f->n[kids[i]].cls;
            if (f->n[kids[i]].depth > n.depth) n.depth = f->n[kids[i]].depth;
        }
    if (n.k >= SUM) {
        n.cls = f->mode == ROWS ? 1 : f->mode == COLS ? 2 : 0;
        n.depth++;
    }
    f->n[f->nn] = n;
    return f->nn++;
}

static int grow(fuzz *f, int depth);

/* brings a value back to small integers where the next operation could leave the exact range */
static int small(fuzz *f, int i, double most)
{
    if (f->n[i].most <= most) return i;
    return add_node(f, (node){.k = CLAMP, .a = i, .b = -1, .c = -1, .most = most, .num = most});
}

static int leaf(fuzz *f)
{
    int which = (int)test_int(&f->r, 0, 9);
    if (which < 2 || f->nv == 0) {
        double c = (double)test_int(&f->r, -5, 5);
        if (test_chance(&f->r, 0.03)) c = test_chance(&f->r, 0.5) ? INFINITY : NAN;
        return add_node(
            f, (node){.k = NUM, .a = -1, .b = -1, .c = -1, .num = c, .most = isfinite(c) ? fabs(c) : 0});
    }
    if (which == 2) {
        bool col = test_chance(&f->r, 0.5);
        int i = add_node(
            f,
            (node){
                .k = IDX, .a = -1, .b = -1, .c = -1, .num = col ? -1 : -2, .cls = col ? 2 : 1, .most = 1e6});
        return small(f, i, 40);
    }
    int v;
    do v = (int)test_int(&f->r, 0, f->nv - 1);
    while (f->v[v].output);
    f->v[v].used = true;
    return add_node(f, (node){.k = VAR, .a = -1, .b = -1, .c = -1, .num = v, .cls = f->v[v].cls, .most = 8});
}

static int reduction(fuzz *f, int depth)
{
    static const kind kinds[] = {SUM, SUM, SUM, RMAX, RMAX, RMIN, ABSMAX, ANY, ALLOF, ARGMAX, PROD_SIGN};
    kind k = kinds[test_int(&f->r, 0, TEST_COUNT(kinds) - 1)];
    int a = small(f, grow(f, depth - 1), LIMIT);
    if (k == PROD_SIGN) a = add_node(f, (node){.k = SIGN, .a = a, .b = -1, .c = -1, .most = 1});
    if (k == SUM && test_chance(&f->r, 0.4)) { /* the fused kinds: sum(a a), sum(a b), sum((a - s)^2) */
        int b = test_chance(&f->r, 0.4) ? a : small(f, grow(f, depth - 2), 20);
        a = small(f, a, 20);
        if (test_chance(&f->r, 0.4)) {
            a = add_node(f, (node){.k = SUB, .a = a, .b = small(f, b, 20), .c = -1, .most = 40});
            b = a;
        } else if (b != a)
            b = small(f, b, 20);
        else
            b = a;
        if (f->n[b].most > 40) b = small(f, b, 20);
        a = add_node(f, (node){.k = MUL, .a = a, .b = b, .c = -1, .most = f->n[a].most * f->n[b].most});
    }
    double most = k == SUM                                   ? f->n[a].most * (double)CELLS
                  : k == ARGMAX                              ? 1e6
                  : k == PROD_SIGN || k == ANY || k == ALLOF ? 1
                                                             : f->n[a].most;
    int i = add_node(f, (node){.k = k, .a = a, .b = -1, .c = -1, .most = most});
    return small(f, i, LIMIT);
}

static int grow(fuzz *f, int depth)
{
    if (depth <= 0 || f->nn > MAX_NODES - 24) return leaf(f);
    if (f->mode != MAP && depth >= 2 && test_chance(&f->r, 0.25)) return reduction(f, depth);
    kind k = (kind)test_int(&f->r, NEG, TERN);
    int a = grow(f, depth - 1), b = -1, c = -1;
    double most = f->n[a].most;
    if (k >= ADD) b = grow(f, depth - 1 - test_chance(&f->r, 0.5));
    if (k >= FMA) c = grow(f, depth - 2);
    switch (k) {
    case NOT:
    case SIGN:
    case ISNAN:
    case ISINF:
    case LT:
    case LE:
    case GT:
    case GE:
    case EQ:
    case NE:
    case AND:
    case OR: most = 1; break;
    case ADD:
    case SUB: most += f->n[b].most; break;
    case MUL:
        a = small(f, a, LIMIT), b = small(f, b, LIMIT);
        most = f->n[a].most * f->n[b].most;
        break;
    case FMA:
        a = small(f, a, LIMIT), b = small(f, b, LIMIT);
        most = f->n[a].most * f->n[b].most + f->n[c].most;
        break;
    case LEAKY: most = f->n[a].most * 2, b = -1; break;
    case MIN:
    case MAX: most = fmax(most, f->n[b].most); break;
    case SEL:
    case TERN: most = fmax(f->n[b].most, f->n[c].most); break;
    case CLAMP: return small(f, a, most / 2 + 1 < 1 ? 1 : floor(most / 2 + 1));
    case SAT_I8: most = 128; break;
    case SAT_U4: most = 15; break;
    default: break;
    }
    int i = add_node(f, (node){.k = k, .a = a, .b = b, .c = c, .most = most});
    return most > 1e6 ? small(f, i, LIMIT) : i;
}

/* ---- text ------------------------------------------------------------------------------------------------------------ */
static void text_of(const fuzz *f, int i, char *out)
{
    static const char *const binary[KINDS] = {
        [ADD] = "+", [SUB] = "-", [MUL] = "*", [LT] = "<",   [LE] = "<=", [GT] = ">",
        [GE] = ">=", [EQ] = "==", [NE] = "!=", [AND] = "&&", [OR] = "||"};
    static const char *const call[KINDS] = {
        [ABS] = "abs",        [RELU] = "relu",   [SIGN] = "sign",    [SAT_I8] = "sat_i8",
        [SAT_U4] = "sat_u4",  [ISNAN] = "isnan", [ISINF] = "isinf",  [MIN] = "min",
        [MAX] = "max",        [FMA] = "fma",     [SEL] = "select",   [SUM] = "sum",
        [PROD_SIGN] = "prod", [RMAX] = "max",    [RMIN] = "min",     [ABSMAX] = "absmax",
        [ANY] = "any",        [ALLOF] = "all",   [ARGMAX] = "argmax"};
    const node *n = &f->n[i];
    char *p = out + strlen(out);
    if (p - out > MAX_TEXT - 200) return;
#define SUBTREE(k) text_of(f, n->k, out), p = out + strlen(out)
#define PUT(...) p += sprintf(p, __VA_ARGS__)
    if (n->k == NUM) {
        if (isnan(n->num))
            PUT("nan");
        else if (isinf(n->num))
            PUT("inf");
        else if (n->num < 0)
            PUT("(%g)", n->num);
        else
            PUT("%g", n->num);
    } else if (n->k == VAR)
        PUT("%s", f->v[(int)n->num].name);
    else if (n->k == IDX)
        PUT("index(%g)", n->num);
    else if (binary[n->k]) {
        PUT("(");
        SUBTREE(a);
        PUT(" %s ", binary[n->k]);
        SUBTREE(b);
        PUT(")");
    } else if (n->k == NEG || n->k == NOT) {
        PUT(n->k == NEG ? "(-" : "(!");
        SUBTREE(a);
        PUT(")");
    } else if (n->k == FLOOR_HALF) {
        PUT("floor(");
        SUBTREE(a);
        PUT(" / 2)");
    } else if (n->k == CLAMP) {
        PUT("clamp(");
        SUBTREE(a);
        PUT(", %g, %g)", -n->num, n->num);
    } else if (n->k == LEAKY) {
        PUT("leaky_relu(");
        SUBTREE(a);
        PUT(", 2)");
    } else if (n->k == TERN) {
        PUT("(");
        SUBTREE(a);
        PUT(" ? ");
        SUBTREE(b);
        PUT(" : ");
        SUBTREE(c);
        PUT(")");
    } else {
        PUT("%s(", call[n->k]);
        SUBTREE(a);
        if (n->b >= 0) {
            PUT(", ");
            SUBTREE(b);
        }
        if (n->c >= 0) {
            PUT(", ");
            SUBTREE(c);
        }
        PUT(")");
    }
}

/* ---- the reference --------------------------------------------------------------------------------------------------- */
#include "fuzz_scalar.h"

static void shape_var(fuzz *f, var *v)
{
    int64_t m = v->cls & 1 ? f->rows : 1, n = v->cls & 2 ? f->cols : 1,
            step = test_chance(&f->r, 0.25) ? test_int(&f->r, 2, 3) : 1;
    int64_t pad = test_chance(&f->r, 0.5) ? test_int(&f->r, 0, 5) : 0;
    bool turned = test_chance(&f->r, 0.2);
    v->sn = turned ? (m + pad) * step : step;
    v->sm = turned ? step : (n + pad) * step;
    if (!(v->cls & 1)) v->sm = 0;
    if (!(v->cls & 2)) v->sn = 0;
    if (v->cls == 1) v->sm = step;
    if (v->cls == 2) v->sn = step;
    if (test_chance(&f->r, 0.1)) v->sm = -v->sm;
    if (test_chance(&f->r, 0.1)) v->sn = -v->sn;
    int64_t lo = 0, hi = 0;
    if (m > 0 && n > 0) {
        int64_t em = (m - 1) * v->sm, en = (n - 1) * v->sn;
        lo = (em < 0 ? em : 0) + (en < 0 ? en : 0);
        hi = (em > 0 ? em : 0) + (en > 0 ? en : 0);
    }
    v->off = -lo;
    v->bytes = m > 0 && n > 0 ? (size_t)(hi - lo + 1) * (strata_type_bits(v->type) / 8) : 0;
    v->buf = test_guard(v->bytes, test_chance(&f->r, 0.5));
    v->want = malloc(v->bytes + 1);
}

static void fill_var(fuzz *f, var *v)
{
    int64_t size = (int64_t)strata_type_bits(v->type) / 8, m = v->cls & 1 ? f->rows : 1,
            n = v->cls & 2 ? f->cols : 1;
    bool special = test_chance(&f->r, 0.1);
    for (int64_t r = 0; r < m; r++)
        for (int64_t c = 0; c < n; c++) {
            double x = (double)test_int(&f->r, -8, 8);
            if (v->type == STRATA_U8) x = fabs(x);
            if (v->type == STRATA_BOOL) x = x > 0;
            if (special && st_type_is_float(v->type) && test_chance(&f->r, 0.05))
                x = test_chance(&f->r, 0.5) ? NAN : INFINITY;
            if (v->type == STRATA_F8E4M3 && isinf(x)) x = NAN;
            st_store_f64(v->type, v->buf + (v->off + r * v->sm + c * v->sn) * size, x);
        }
    memcpy(v->want, v->buf, v->bytes);
}

static void apply_store(const fuzz *f, var *v, const var *onto)
{
    int64_t size = (int64_t)strata_type_bits(v->type) / 8;
    for (int64_t r = 0; r < f->rows; r++)
        for (int64_t c = 0; c < f->cols; c++)
            st_store_f64(v->type, onto->want + (v->off + r * v->sm + c * v->sn) * size,
                         f->n[v->value].val[r * f->cols + c]);
}

/* equal as numbers: any NaN is as good as another, and so are the zeros */
static bool same(int type, const char *a, const char *b)
{
    double x, y;
    int64_t size = (int64_t)strata_type_bits(type) / 8;
    if (!memcmp(a, b, (size_t)size)) return true;
    st_load_f64(type, a, &x);
    st_load_f64(type, b, &y);
    return st_type_is_float(type) && ((isnan(x) && isnan(y)) || x == y);
}

static void compare(const fuzz *f, const var *v, const char *text)
{
    size_t size = strata_type_bits(v->type) / 8;
    for (size_t i = 0; i < v->bytes; i += size)
        if (!same(v->type, v->buf + i, v->want + i)) {
            double got, want;
            st_load_f64(v->type, v->buf + i, &got);
            st_load_f64(v->type, v->want + i, &want);
            test_fail(__FILE__, __LINE__,
                      "%s (%s, class %d, strides %lld %lld): element %zu is %.9g, not %.9g\n    %s", v->name,
                      strata_type_name(v->type), v->cls, (long long)v->sm, (long long)v->sn, i / size, got,
                      want, text);
        }
    test_check(test_guard_intact(v->buf), "%s: bytes beside the buffer changed\n    %s", v->name, text);
    (void)f;
}

static void dims(fuzz *f)
{
    static const int64_t lengths[] = {0,   1,   2,    3,    7,    8,    9,    15,  16,  17,
                                      31,  33,  63,   64,   65,   100,  127,  130, 255, 257,
                                      300, 513, 1000, 1023, 1025, 2047, 2049, 4100};
    do {
        f->rows = lengths[test_int(&f->r, test_chance(&f->r, 0.1) ? 0 : 1,
                                   test_chance(&f->r, 0.5) ? 8 : TEST_COUNT(lengths) - 1)];
        f->cols = lengths[test_int(&f->r, test_chance(&f->r, 0.1) ? 0 : 1, TEST_COUNT(lengths) - 1)];
    } while (f->rows * f->cols > CELLS);
    f->row0 = test_int(&f->r, 0, 50), f->col0 = test_int(&f->r, 0, 50);
    if (f->mode == ROWS) f->col0 = 0;
    if (f->mode == COLS) f->row0 = 0;
}

static void one(uint64_t seed, double *arena)
{
    fuzz *f = calloc(1, sizeof *f);
    f->r = test_rng_make(seed);
    f->arena = arena;
    f->mode = (int)test_int(&f->r, MAP, ALL);
    f->f64 = test_chance(&f->r, 0.3);
    dims(f);
    int level = (int)test_int(&f->r, 0, st_cpu_get()->level), inputs = (int)test_int(&f->r, 1, 4),
        outputs = (int)test_int(&f->r, 1, 3);
    test_problem("fuzz seed %llu mode %d %lldx%lld level %d", (unsigned long long)seed, f->mode,
                 (long long)f->rows, (long long)f->cols, level);
    for (int i = 0; i < inputs; i++) {
        var *v = &f->v[f->nv++];
        sprintf(v->name, "x%d", i);
        v->type = in_types[test_int(&f->r, 0, TEST_COUNT(in_types) - 1)];
        if (f->f64 && test_chance(&f->r, 0.5)) v->type = STRATA_F64;
        v->cls = test_chance(&f->r, 0.6) ? 3 : (int)test_int(&f->r, 0, 3);
        shape_var(f, v);
        fill_var(f, v);
    }
    char *text = calloc(1, 4 * MAX_TEXT);
    var out[3];
    memset(out, 0, sizeof out);
    int roots[3];
    for (int o = 0; o < outputs; o++) roots[o] = small(f, grow(f, (int)test_int(&f->r, 1, 5)), 1e5);
    unsigned taken = 0; /* inputs that an output stands in for */
    for (int o = 0; o < outputs; o++) {
        var *v = &out[o];
        sprintf(v->name, "y%d", o);
        v->value = roots[o];
        v->cls = f->n[v->value].cls | (test_chance(&f->r, 0.3) ? 3 : 0);
        v->type = out_types[test_int(&f->r, 0, TEST_COUNT(out_types) - 1)];
        if (f->f64 && test_chance(&f->r, 0.5)) v->type = STRATA_F64;
        v->output = true;
        int alias = test_chance(&f->r, 0.25) ? (int)test_int(&f->r, 0, inputs - 1) : -1;
        if (alias >= 0 && !(taken >> alias & 1) && (f->v[alias].cls & v->cls) == v->cls &&
            (v->cls | f->v[alias].cls) == f->v[alias].cls) {
            const var *a = &f->v[alias]; /* in place */
            v->type = a->type, v->cls = a->cls, v->sm = a->sm, v->sn = a->sn, v->off = a->off,
            v->buf = a->buf, v->want = a->want, v->bytes = 0;
            taken |= 1u << alias;
        } else {
            shape_var(f, v);
            memcpy(v->want, v->buf, v->bytes);
        }
        if (test_chance(&f->r, 0.4)) { /* through a temporary */
            sprintf(text + strlen(text), "t%d = ", o);
            text_of(f, v->value, text);
            sprintf(text + strlen(text), "; %s = t%d", v->name, o);
        } else {
            sprintf(text + strlen(text), "%s = ", v->name);
            text_of(f, v->value, text);
        }
        if (o + 1 < outputs) strcat(text, "; ");
    }
    f->used = 0;
    evaluate(f);
    const char *names[MAX_VARS + 1] = {0};
    for (int i = 0; i < inputs; i++) names[i] = f->v[i].name;
    for (int o = 0; o < outputs; o++) names[inputs + o] = out[o].name;
    st_expr *x;
    st_err e;
    bool too_long = strlen(text) > MAX_TEXT - 300;
    if (!too_long) {
        strata_status s = st_expr_parse(&e, "fuzz", text, names, f->f64, &x);
        test_check(s == STRATA_OK, "%s", e.text);
        st_expr_set_level(x, level);
        const st_expr_var *vars;
        st_expr_arg args[ST_EXPR_VARS];
        int n = st_expr_vars(x, &vars);
        for (int i = 0; i < n; i++) {
            const var *v =
                vars[i].name[0] == 'x' ? &f->v[vars[i].name[1] - '0'] : &out[vars[i].name[1] - '0'];
            args[i] = (st_expr_arg){v->buf + v->off * (int64_t)(strata_type_bits(v->type) / 8), v->type,
                                    v->sm, v->sn};
        }
        int mode = f->mode;
        if (mode == MAP && x->reductions) mode = ALL;
        if (mode != MAP && !x->reductions && test_chance(&f->r, 0.5)) mode = MAP;
        size_t bytes = mode == ROWS   ? st_expr_rows_scratch(x, f->cols)
                       : mode == COLS ? st_expr_cols_scratch(x, f->cols)
                                      : st_expr_scratch(x);
        char *scratch = test_guard(bytes, true);
        for (int twice = 0; twice < 2; twice++) { /* compiled, then from the cache */
            if (twice)
                for (int i = 0; i < inputs; i++) memcpy(f->v[i].buf, f->v[i].want, f->v[i].bytes);
            if (mode == MAP && twice) { /* bound for another size */
                st_expr_bind(x, args, test_int(&f->r, 1, f->rows + 3), test_int(&f->r, 1, f->cols + 3),
                             scratch);
                st_expr_map_bound(args, f->rows, f->cols, f->row0, f->col0, scratch);
            } else if (mode == MAP)
                st_expr_map(x, args, f->rows, f->cols, f->row0, f->col0, scratch);
            if (mode == ROWS) st_expr_rows(x, args, f->rows, f->cols, f->row0, scratch);
            if (mode == COLS) st_expr_cols(x, args, f->rows, f->cols, f->col0, scratch);
            if (mode == ALL) st_expr_all(x, args, f->rows, f->cols, f->row0, f->col0, scratch);
        }
        test_check(test_guard_intact(scratch), "scratch overrun: %s", text);
        test_guard_free(scratch);
        /* what the stores should have left; a rectangle without elements stores what has elements of its own, which is not checked */
        bool empty = f->rows == 0 || f->cols == 0;
        for (int o = 0; o < outputs; o++) apply_store(f, &out[o], &out[o]);
        for (int i = 0; i < inputs && !empty; i++) compare(f, &f->v[i], text);
        for (int o = 0; o < outputs && !empty; o++)
            if (out[o].bytes) compare(f, &out[o], text);
        st_expr_free(x);
    }
    for (int o = 0; o < outputs; o++) {
        bool borrowed = false;
        for (int i = 0; i < inputs; i++) borrowed |= f->v[i].buf == out[o].buf;
        if (borrowed) continue;
        test_guard_free(out[o].buf);
        free(out[o].want);
    }
    for (int i = 0; i < inputs; i++) {
        test_guard_free(f->v[i].buf);
        free(f->v[i].want);
    }
    free(text);
    free(f);
}

static void test_random_programs(void **state)
{
    (void)state;
    double *arena = malloc(sizeof *arena * (size_t)CELLS * MAX_NODES);
    assert_non_null(arena);
    int rounds = test_rounds(3000);
    const char *only = getenv("FUZZ_ONLY");
    for (int i = 0; i < rounds; i++) one(only ? strtoull(only, NULL, 10) : (uint64_t)i + 1, arena);
    free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
