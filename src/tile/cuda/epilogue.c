/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.c - prints a contraction's epilogue as the functions of generated.cuh: st_epilogue, and where no operand has an element for each of C's, its parts.
 *
 * Where an operand's list of axes is one axis, its stride is a parameter, so that the text (and the compiled kernel) serves every size; where it is several, the
 * index is split by constants, and axes without a stride are left out. The value for C (`out`) is returned; other outputs are stored on the way.
 *
 * The parts are for kernels that hold a tile's sums in registers and fetch what belongs to its rows and columns while the main loop runs. Which operand is
 * whose follows from the strides that are 0, so a text serves all sizes of one kind of broadcast. Operands with an element for each of C's move in pairs
 * where their columns stand together in aligned pairs. */
#include "tile/cuda/epilogue.h"
#include "tile/cuda/generic.h"
#include "tile/contract.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct printer {
    const st_contract *c;
    const st_expr *x;
    const char *m, *n; /* the kernel's indices that count c's m and n */
    bool f64;
    bool swapped;
    char kind
        [ST_EPI_OPERANDS]; /* 'r' of the kernel's rows, 'c' of its columns, '1' of neither, 'f' of both; 0: not read */
    int at[ST_EPI_OPERANDS],
        out[ST_EPI_OPERANDS]; /* its number among those of its kind, among the other outputs (from 1) */
    int rows, cols, ones, full, outs;
    bool parts;       /* loads name what has been fetched */
    const char *only; /* NULL, or the one index that there is */
} printer;

static const st_expr_var *variable(const printer *p, int v)
{
    const st_expr_var *vars;
    st_expr_vars(p->x, &vars);
    return &vars[v];
}
static int operand(const printer *p, int v)
{
    const char *name = variable(p, v)->name;
    for (int i = 0; i < (int)p->c->epi_operands; i++)
        if (!strcmp(name, p->c->epi[i].name)) return i;
    return -1;
}

/* " + " terms of one list */
static void put_list(st_text *t, const st_axes *l, const int64_t *stride, const char *index,
                     const char *param, int operand)
{
    if (l->count <= 1) {
        st_text_put(t, " + %s * e.%s[%d]", index, param, operand);
        return;
    }
    int64_t below = 1;
    for (int64_t d = l->count - 1; d >= 0; d--) {
        if (stride[d] && d > 0)
            st_text_put(t, " + %s / %lldLL %% %lldLL * %lldLL", index, (long long)below,
                        (long long)l->ax[d].len, (long long)stride[d]);
        else if (stride[d])
            st_text_put(t, " + %s / %lldLL * %lldLL", index, (long long)below, (long long)stride[d]);
        below *= l->ax[d].len;
    }
}
static void put_element(const printer *p, st_text *t, int i)
{
    const st_epi_operand *o = &p->c->epi[i];
    st_text_put(t, "((%s *)e.ptr[%d])[0", st_cuda_type((int)o->type), i);
    /* a fetch of rows or columns knows one index, and the other axis has no stride */
    if (!p->only || *p->only == *p->m) put_list(t, &p->c->m, o->sm, p->m, "sm", i);
    if (!p->only || *p->only == *p->n) put_list(t, &p->c->n, o->sn, p->n, "sn", i);
    put_list(t, &p->c->batch, o->sb, "g", "sb", i);
    st_text_put(t, "]");
}

static void load(void *user, st_text *t, int v)
{
    const printer *p = user;
    const int i = operand(p, v);
    if (i < 0) { /* acc; check_epilogue has refused to read out */
        st_text_put(t, "(%s)acc", p->f64 ? "double" : "float");
        return;
    }
    if (p->parts) {
        const char k = p->kind[i];
        st_text_put(t, "%s[%d]", k == 'r' ? "row" : k == 'c' ? "col" : k == '1' ? "one" : "full", p->at[i]);
        return;
    }
    st_text_put(t, "%s(", p->f64 ? "to_f64" : "to_f32");
    put_element(p, t, i);
    st_text_put(t, ")");
}
static void store(void *user, st_text *t, int v, const char *value)
{
    const printer *p = user;
    const int i = operand(p, v);
    if (i < 0) {
        st_text_put(t, "    result = (ST_ACC)%s;\n", value);
        return;
    }
    if (p->parts) {
        st_text_put(t, "    out[%d] = %s;\n", p->out[i] - 1, value);
        return;
    }
    st_text_put(t, "    ");
    put_element(p, t, i);
    st_text_put(t, " = from<%s>(%s);\n", st_cuda_type((int)p->c->epi[i].type), value);
}

static bool any(const int64_t *stride, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (stride[i]) return true;
    return false;
}

/* Is C, and whatever else may be stored, of 16 bits or fewer? */
static bool is_light(const st_contract *c)
{
    for (int i = 0; i < (int)c->epi_operands; i++)
        if (strata_type_bits((strata_type)c->epi[i].type) > 16 && any(c->epi[i].sm, c->m.count) &&
            any(c->epi[i].sn, c->n.count))
            return false;
    return strata_type_bits((strata_type)c->tc) <= 16;
}

/* Sorts the operands that the program reads and writes. */
static void sort_operands(printer *p)
{
    const st_contract *c = p->c;
    const st_expr_var *vars;
    const int count = st_expr_vars(p->x, &vars);
    for (int v = 0; v < count; v++) {
        const int i = operand(p, v);
        if (i < 0) continue;
        if (vars[v].output && !p->out[i]) p->out[i] = ++p->outs;
        if (!vars[v].input || p->kind[i]) continue;
        const bool m = any(c->epi[i].sm, c->m.count), n = any(c->epi[i].sn, c->n.count);
        char kind = m && n ? 'f' : !m && !n ? '1' : m == p->swapped ? 'c' : 'r';
        if (p->out[i] || (kind == 'r' && p->rows == ST_EPI_VECTORS) ||
            (kind == 'c' && p->cols == ST_EPI_VECTORS))
            kind = 'f'; /* read where it is used */
        int *of = kind == '1' ? &p->ones : kind == 'c' ? &p->cols : kind == 'r' ? &p->rows : &p->full;
        p->kind[i] = kind;
        p->at[i] = (*of)++;
    }
}

/* Do the kernel's neighbouring columns 2j and 2j + 1 stand together, as an aligned pair? */
static bool pairs(const st_contract *c, int i, bool swapped)
{
    const st_epi_operand *o = &c->epi[i];
    const st_axes *across = swapped ? &c->n : &c->m, *along = swapped ? &c->m : &c->n;
    const int64_t *sr = swapped ? o->sn : o->sm, *sc = swapped ? o->sm : o->sn;
    if (c->unaligned || !along->count || sc[0] != 1 || along->ax[0].len % 2) return false;
    for (int64_t d = 0; d < c->batch.count; d++)
        if (o->sb[d] % 2) return false;
    return !across->count || sr[0] % 2 == 0;
}

static bool in_pairs(const printer *p, int i) { return pairs(p->c, i, p->swapped); }

int st_cuda_epilogue_full(const st_contract *c, bool swapped)
{
    int full = 0;
    for (int i = 0; i < (int)c->epi_operands; i++) {
        if (!any(c->epi[i].sm, c->m.count) || !any(c->epi[i].sn, c->n.count)) continue;
        if (!pairs(c, i, swapped)) return 2;
        full = 1;
    }
    return full;
}

static void put_fetch(printer *p, st_text *t, char kind, const char *name, const char *index)
{
    p->only = index;
    st_text_put(t, "INL void st_epi_%s(const st_epi &e, float *to, i64 %s, i64 g)\n{\n", name,
                *index == '-' ? "none" : index);
    for (int i = 0; i < (int)p->c->epi_operands; i++) {
        if (p->kind[i] != kind) continue;
        st_text_put(t, "    to[%d] = to_f32(", p->at[i]);
        put_element(p, t, i);
        st_text_put(t, ");\n");
    }
    st_text_put(t, "}\n");
    p->only = NULL;
}

/* Both of a pair of columns, n and n1: to[0], to[1]. */
static void put_full(printer *p, st_text *t)
{
    st_text_put(
        t, "template <int N> INL void st_epi_full(const st_epi &e, float (&to)[2][N], i64 m, i64 n, i64 n1, "
           "i64 g)\n{\n");
    for (int i = 0; i < (int)p->c->epi_operands; i++) {
        if (p->kind[i] != 'f') continue;
        const char *type = st_cuda_type((int)p->c->epi[i].type);
        if (in_pairs(p, i)) {
            st_text_put(t, "    { const lanes<%s, 2> v = *(const lanes<%s, 2> *)&", type, type);
            put_element(p, t, i);
            st_text_put(t, "; to[0][%d] = to_f32(v.e[0]); to[1][%d] = to_f32(v.e[1]); }\n", p->at[i],
                        p->at[i]);
            continue;
        }
        st_text_put(t, "    to[0][%d] = to_f32(", p->at[i]);
        put_element(p, t, i);
        st_text_put(t, ");\n    { const i64 n = n1; to[1][%d] = to_f32(", p->at[i]);
        put_element(p, t, i);
        st_text_put(t, "); }\n");
    }
    st_text_put(t, "}\n");
}
/* Stores v[0] at column n where `first`, v[1] at n + 1 where `second`. */
static void put_outs(printer *p, st_text *t)
{
    st_text_put(
        t,
        "template <int N> INL void st_epi_outs(const st_epi &e, const float (&v)[2][N], i64 m, i64 n, i64 g, "
        "bool first, bool second)\n{\n");
    for (int i = 0; i < (int)p->c->epi_operands; i++) {
        const int k = p->out[i] - 1;
        if (k < 0) continue;
        const char *type = st_cuda_type((int)p->c->epi[i].type);
        if (in_pairs(p, i)) {
            st_text_put(
                t,
                "    if (first) { lanes<%s, 2> w; w.e[0] = from<%s>(v[0][%d]); w.e[1] = from<%s>(v[1][%d]); "
                "*(lanes<%s, 2> *)&",
                type, type, k, type, k, type);
            put_element(p, t, i);
            st_text_put(t, " = w; }\n");
            continue;
        }
        st_text_put(t, "    if (first) ");
        put_element(p, t, i);
        st_text_put(t, " = from<%s>(v[0][%d]);\n    n++;\n    if (second) ", type, k);
        put_element(p, t, i);
        st_text_put(t, " = from<%s>(v[1][%d]);\n    n--;\n", type, k);
    }
    st_text_put(t, "}\n");
}

/* The number N of the value that `form` (with one %d) prints, at or after *at; -1: it is not there. */
static int value_of(const char **at, const char *before, const char *form)
{
    int n = -1, read = 0;
    const char *p = strstr(*at, before);
    if (!p || sscanf(p, form, &n, &read) != 1 || !read) return -1;
    *at = p;
    return n;
}
/* C of i8 whose value is sat_i8(rint(v)): what is rounded, clamped and converted at once need not pass the slow units for each of these (biased_i8). Prints it for kernels
 * that take the biased number. */
static void put_biased(st_text *t, size_t from)
{
    if (t->failed || !t->s) return;
    const char *const body = t->s + from, *at = body;
    char before[48];
    const int result = value_of(&at, "    result = (ST_ACC)v", "    result = (ST_ACC)v%d;%n");
    snprintf(before, sizeof before, "const float v%d = st_sat_i8_f32(", result);
    at = body;
    const int clamped = result < 0 ? -1 : value_of(&at, before, "const float v%*d = st_sat_i8_f32(v%d);%n");
    snprintf(before, sizeof before, "const float v%d = st_rint_f32(", clamped);
    at = body;
    const int rounded = clamped < 0 ? -1 : value_of(&at, before, "const float v%*d = st_rint_f32(v%d);%n");
    if (rounded >= 0)
        st_text_put(
            t,
            "#ifdef ST_EPI_TAKES_BIASED\n#    define ST_EPI_BIASED 1\n    result = biased_i8(v%d);\n#endif\n",
            rounded);
}

/* float st_epilogue_of(...): the same from fetched operands */
static void put_parts(printer *p, st_text *t)
{
    const st_cuda_names names = {load, store, p->m, p->n, p};
    sort_operands(p);
    st_text_put(
        t,
        "#define ST_EPI_ROWS %d\n#define ST_EPI_COLS %d\n#define ST_EPI_ONES %d\n#define ST_EPI_FULL %d\n"
        "#define ST_EPI_OUTS %d\n",
        p->rows, p->cols, p->ones, p->full, p->outs);
    put_fetch(p, t, 'r', "rows", "m");
    put_fetch(p, t, 'c', "cols", "n");
    put_fetch(p, t, '1', "ones", "-");
    put_full(p, t);
    put_outs(p, t);
    p->parts = true;
    st_text_put(
        t,
        "INL float st_epilogue_of(const float *row, const float *col, const float *one, const float *full, "
        "float *out, float acc, i64 m, i64 n, i64 g)\n{\n    float result = acc;\n");
    const size_t from = t->n;
    st_expr_cuda_map(p->x, &names, t);
    if (p->c->tc == STRATA_I8) put_biased(t, from);
    st_text_put(t, "    return result;\n}\n");
    p->parts = false;
}

strata_status st_cuda_epilogue_text(st_err *e, const st_contract *c, const st_expr *x, bool swapped,
                                    char **text)
{
    *text = NULL;
    if (!x) return STRATA_OK;
    printer p = {.c = c,
                 .x = x,
                 .m = swapped ? "n" : "m",
                 .n = swapped ? "m" : "n",
                 .f64 = c->tc == STRATA_F64,
                 .swapped = swapped};
    const st_cuda_names names = {load, store, p.m, p.n, &p};
    st_text t = {0};
    if (is_light(c)) {
        static const char *const light[] = {"exp", "sigmoid", "silu", "gelu_tanh", "gelu"};
        for (int i = 0; i < ST_COUNT(light); i++)
            st_text_put(&t, "#define st_%s_f32 light_%s_f32\n", light[i], light[i]);
    }
    st_text_put(&t, "INL ST_ACC st_epilogue(const st_epi &e, ST_ACC acc, i64 m, i64 n, i64 g)\n{\n"
                    "    ST_ACC result = acc;\n");
    st_expr_cuda_map(x, &names, &t);
    st_text_put(&t, "    return result;\n}\n");
    if (!p.f64 && c->m.count <= 1 && c->n.count <= 1) put_parts(&p, &t);
    if (t.failed || !t.s) {
        free(t.s);
        return st_fail(e, STRATA_ERROR_MEMORY, "no memory for the text of an epilogue");
    }
    *text = t.s;
    return STRATA_OK;
}

void st_cuda_epilogue_params(const st_contract *c, bool swapped, void *const data[], st_epi_params *p)
{
    (void)swapped; /* the text pairs each stride with its index */
    for (int i = 0; i < (int)c->epi_operands; i++) {
        p->ptr[i] = data[3 + i];
        p->sm[i] = c->m.count == 1 ? c->epi[i].sm[0] : 0;
        p->sn[i] = c->n.count == 1 ? c->epi[i].sn[0] : 0;
        p->sb[i] = c->batch.count == 1 ? c->epi[i].sb[0] : 0;
    }
}
