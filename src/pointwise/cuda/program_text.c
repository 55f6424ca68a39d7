/* SPDX-License-Identifier: Apache-2.0 */
/* program_text.c - the header "generated.cuh" of a program: the parameter block, the totals of every pass, and struct program, which holds one thread's
 * part of a line and has a function for every step of the kernels (pointwise_*.cu). */
#include "pointwise/cuda/program_cuda.h"
#include <stdlib.h>
#include <string.h>

static const char *const type_names[STRATA_TYPE_COUNT] = {
    [STRATA_F64] = "f64",     [STRATA_F32] = "f32",     [STRATA_F16] = "f16", [STRATA_BF16] = "bf16",
    [STRATA_F8E4M3] = "e4m3", [STRATA_F8E5M2] = "e5m2", [STRATA_I64] = "i64", [STRATA_I32] = "i32",
    [STRATA_I8] = "i8",       [STRATA_U8] = "u8",       [STRATA_BOOL] = "b8"};

static const char *sub_name(int type)
{
    return type == STRATA_I4 ? "sub_i4" : type == STRATA_U4 ? "sub_u4" : "sub_bit";
}

typedef struct printer {
    const st_pw_cuda *c;
    st_text *t;
    bool element; /* inside an element, else of the line */
} printer;

static int base_of(const st_pw_cuda *c) { return 2 * c->s->nvars; }
static int dims_of(const st_pw_cuda *c) { return base_of(c) + 7; }
static int steps_of(const st_pw_cuda *c) { return dims_of(c) + 2 * (c->ne + c->nl); }
static int step_word(const st_pw_cuda *c, int v, bool line, int d)
{
    return steps_of(c) + v * (c->ne + c->nl) + (line ? c->ne : 0) + d;
}

/* how many bits a quotient is shifted by, and its factor: Granlund and Montgomery, "Division by invariant integers using multiplication", 1994, for 31-bit numbers */
static int64_t divider(int64_t d)
{
    int shift = 0;
    while (((int64_t)1 << shift) < d) shift++;
    const uint64_t m = ((uint64_t)1 << 32) * (((uint64_t)1 << shift) - (uint64_t)d) / (uint64_t)d + 1;
    return (int64_t)((m & 0xffffffffu) | (uint64_t)shift << 32);
}

static int64_t bits_of_double(double v)
{
    int64_t b;
    memcpy(&b, &v, 8);
    return b;
}

int st_pw_cuda_words(const st_pw_cuda *c, int64_t *w)
{
    const int b = base_of(c), d = dims_of(c);
    memset(w, 0, ST_PW_WORDS * sizeof *w);
    w[b] = c->n, w[b + 1] = c->lines;
    w[b + 2] = bits_of_double((double)c->n), w[b + 3] = bits_of_double(1 / (double)c->n);
    w[b + 5] = c->parts, w[b + 6] = c->chunk;
    for (int i = 0; i < c->ne + c->nl; i++) {
        const st_pw_loop *l = i < c->ne ? &c->e[i] : &c->l[i - c->ne];
        w[d + 2 * i] = l->len;
        w[d + 2 * i + 1] = c->big ? 0 : divider(st_max64(1, l->len));
        for (int v = 0; v < c->s->nvars; v++) w[steps_of(c) + v * (c->ne + c->nl) + i] = l->step[v];
    }
    return steps_of(c) + c->s->nvars * (c->ne + c->nl);
}

/* ---- positions and offsets ---- */
/* `at` (a name that exists) cut into the indices <prefix>0 ... of the loops */
static void put_indices(printer *p, const char *prefix, const char *at, int first, int n, bool members)
{
    const char *declare = members ? "" : "const idx ";
    if (n == 0) return;
    st_text_put(p->t, "idx r = %s;\n", at);
    for (int d = n - 1; d > 0; d--) {
        const int w = dims_of(p->c) + 2 * (first + d);
        if (p->c->big)
            st_text_put(p->t, "const idx q%d = r / arg.w[%d];\n", d, w);
        else
            st_text_put(p->t, "const idx q%d = quotient(r, (u64)arg.w[%d]);\n", d, w + 1);
        st_text_put(p->t, "%s%s%d = r - q%d * (idx)arg.w[%d]; r = q%d;\n", declare, prefix, d, d, w, d);
    }
    st_text_put(p->t, "%s%s0 = r;\n", declare, prefix);
}

/* " + index * step ..." of variable v over the loops */
static void put_offset(printer *p, int v, bool line)
{
    const st_pw_cuda *c = p->c;
    for (int d = 0; d < (line ? c->nl : c->ne); d++) {
        const int64_t step = line ? c->l[d].step[v] : c->e[d].step[v];
        if (step == 1)
            st_text_put(p->t, " + (i64)%s%d", line ? "il" : "ie", d);
        else if (step)
            st_text_put(p->t, " + (i64)%s%d * arg.w[%d]", line ? "il" : "ie", d, step_word(c, v, line, d));
    }
}

static void put_position(printer *p, int dim)
{
    const st_pw_cuda *c = p->c;
    for (int d = 0; d < c->ne; d++)
        if (c->e[d].dim == dim) {
            if (d == c->ne - 1)
                st_text_put(p->t, "((i64)ie%d + j)", d);
            else
                st_text_put(p->t, "(i64)ie%d", d);
            return;
        }
    for (int d = 0; d < c->nl; d++)
        if (c->l[d].dim == dim) {
            st_text_put(p->t, "(i64)il%d", d);
            return;
        }
    st_text_put(p->t, "0");
}

/* ---- what expressions ask ---- */
static void load(void *user, st_text *t, int v)
{
    printer *p = user;
    const st_pw_cuda *c = p->c;
    if (c->s->operand[v] < 0) {
        st_text_put(t, "(R)");
        put_position(p, c->s->position[v]);
    } else if (c->element[v]) {
        st_text_put(t, "x%dv[j]", v);
    } else if (st_type_is_sub_byte(c->s->type[v])) {
        st_text_put(t, "(R)%s::at(p%d, o%d)", sub_name(c->s->type[v]), v, v);
    } else {
        st_text_put(t, "scalar<R>(p%d, %s", v, c->by_value[v] ? "" : "0)");
        if (c->by_value[v]) st_text_put(t, "arg.w[%d])", c->s->nvars + v);
    }
}

static void store(void *user, st_text *t, int v, const char *value)
{
    printer *p = user;
    if (p->element != p->c->element[v]) return;
    if (p->element)
        st_text_put(t, "y%d[j] = %s;", v, value);
    else if (st_type_is_sub_byte(p->c->s->type[v]))
        st_text_put(t, "{ const R b[1] = {%s}; sub_put<%s, 1>(p%d, o%d, 0, b); }", value,
                    sub_name(p->c->s->type[v]), v, v);
    else
        st_text_put(t, "*p%d = from<%s>(%s);", v, type_names[p->c->s->type[v]], value);
}

static bool is_memory(const st_pw_cuda *c, int v) { return c->s->operand[v] >= 0; }
static bool reads(const st_pw_cuda *c, int stage, int v)
{
    return is_memory(c, v) && c->element[v] && st_expr_cuda_reads(&c->p, stage, v);
}
/* is read into a member before it is used */
static bool holds(const st_pw_cuda *c, int stage, int v) { return reads(c, stage, v) && !c->constant[v]; }
static bool reads_ever(const st_pw_cuda *c, int v)
{
    for (int q = 0; q <= c->p.passes; q++)
        if (holds(c, q, v)) return true;
    return false;
}
static int64_t part_of(const st_pw_cuda *c) { return (int64_t)c->group * c->slots * c->width; }
static int64_t size_of(const st_pw_cuda *c, int v)
{
    return (int64_t)strata_type_bits((strata_type)c->s->type[v]) / 8;
}
/* with a ring: what all lines share lies in shared memory where it is read in whole slots */
static bool in_shared(const st_pw_cuda *c, int v) { return c->groups && c->constant[v] && c->wide[v]; }
/* loaded at this stage: what it reads, unless it is there from an earlier one */
static bool loads(const st_pw_cuda *c, int stage, int v)
{
    if (!holds(c, stage, v)) return false;
    const bool kept = c->way == ST_PW_WAY_ROWS && !c->stream;
    for (int q = 0; q < stage && kept; q++)
        if (reads(c, q, v)) return false;
    return true;
}

/* the last stage that reads from a place of the ring */
static int release_of(const st_pw_cuda *c)
{
    int last = 0;
    for (int q = 0; q <= c->p.passes; q++)
        for (int v = 0; v < c->s->nvars; v++)
            if (loads(c, q, v)) last = q;
    return last;
}
static int offset_in(const st_pw_cuda *c, int v, bool constant)
{
    int64_t at = 0;
    for (int i = 0; i < v; i++)
        if (constant ? in_shared(c, i) : reads_ever(c, i)) at += part_of(c) * size_of(c, i);
    return (int)at;
}

/* "0" ... or "_last" */
static void put_stage(st_text *t, const st_pw_cuda *c, int stage)
{
    if (stage < c->p.passes)
        st_text_put(t, "%d", stage);
    else
        st_text_put(t, "_last");
}

static bool streams(const st_pw_cuda *c, int v)
{
    bool whole = c->hint;
    for (int d = 0; d < c->ne; d++) whole &= c->e[d].step[v] != 0;
    for (int d = 0; d < c->nl; d++) whole &= c->l[d].step[v] != 0;
    return whole;
}

/* ".load(address, step);" of the slot at the indices */
static void put_fetch(printer *p, int v)
{
    const st_pw_cuda *c = p->c;
    const int64_t step = c->ne ? c->e[c->ne - 1].step[v] : 0;
    st_text_put(p->t, ".load(p%d", v);
    if (st_type_is_sub_byte(c->s->type[v])) st_text_put(p->t, ", o%d", v);
    put_offset(p, v, false);
    if (c->wide[v])
        st_text_put(p->t, ", 1);\n");
    else if (step == 0 || step == 1)
        st_text_put(p->t, ", %d);\n", (int)step);
    else
        st_text_put(p->t, ", arg.w[%d]);\n", step_word(c, v, false, c->ne - 1));
}

static void put_slot_type(printer *p, int v)
{
    const st_pw_cuda *c = p->c;
    const char *type = type_names[c->s->type[v]];
    if (st_type_is_sub_byte(c->s->type[v]))
        st_text_put(p->t, "sub_slot<%s, W, R>", sub_name(c->s->type[v]));
    else if (c->wide[v])
        st_text_put(p->t, "wide_slot<%s, W, %s>", type,
                    c->constant[v]  ? "CONSTANT"
                    : streams(c, v) ? "STREAMED"
                                    : "USUAL");
    else
        st_text_put(p->t, "thin_slot<%s, W, R>", type);
}

static void put_load(printer *p, int stage)
{
    const st_pw_cuda *c = p->c;
    st_text *t = p->t;
    int any = 0;
    st_text_put(t, "METHOD void load");
    put_stage(t, c, stage);
    st_text_put(t, "(int k, idx e)\n{\n(void)k, (void)e;\n");
    for (int v = 0; v < c->s->nvars; v++) any += loads(c, stage, v);
    if (any) {
        st_text_put(t, "if (e < n()) {\n");
        if (!c->groups) put_indices(p, "ie", "e", 0, c->ne, false);
        for (int v = 0; v < c->s->nvars; v++) {
            if (!loads(c, stage, v)) continue;
            st_text_put(t, "x%d[k]", v);
            if (c->groups)
                st_text_put(t, ".load_near((const %s *)(place + %d) + (e - part0));\n",
                            type_names[c->s->type[v]], offset_in(c, v, false));
            else
                put_fetch(p, v);
        }
        st_text_put(t, "} else {\n");
        for (int v = 0; v < c->s->nvars; v++)
            if (loads(c, stage, v)) st_text_put(t, "x%d[k].clear();\n", v);
        st_text_put(t, "}\n");
    }
    st_text_put(t, "}\n");
}

/* the head of an element's loop: its slot's numbers, indices where they are asked for */
static void open_elements(printer *p, int stage)
{
    const st_pw_cuda *c = p->c;
    st_text_put(p->t, "{\n(void)k;\nif (e >= n()) return;\n");
    put_indices(p, "ie", "e", 0, c->ne, false);
    for (int d = 0; d < c->ne; d++) st_text_put(p->t, "(void)ie%d;\n", d);
    for (int v = 0; v < c->s->nvars; v++)
        if (holds(c, stage, v)) {
            st_text_put(p->t, "R x%dv[W]; x%d[k].get(x%dv);\n", v, v, v);
        } else if (reads(c, stage, v)) {
            put_slot_type(p, v);
            st_text_put(p->t, " x%d; x%d", v, v);
            if (in_shared(c, v))
                st_text_put(p->t, ".load_planes(shared + %d, (e - part0) / W, SLOTS * GROUP);\n",
                            offset_in(c, v, true));
            else
                put_fetch(p, v);
            st_text_put(p->t, "R x%dv[W]; x%d.get(x%dv);\n", v, v, v);
        }
    if (stage == c->p.passes)
        for (int v = 0; v < c->s->nvars; v++)
            if (c->s->var[v].output && c->element[v]) st_text_put(p->t, "R y%d[W];\n", v);
    st_text_put(
        p->t,
        "#pragma unroll\nfor (int j = 0; j < W; j++) {\nconst i64 position = (i64)e + j; (void)position;\n");
}

static void names_of(printer *p, st_cuda_names *names, char row[2][64])
{
    st_text t[2] = {{0}, {0}};
    st_text *mine = p->t;
    for (int i = 0; i < 2; i++) {
        p->t = &t[i];
        put_position(p, p->c->s->rank - 1 - i);
        /* short by construction */
        memset(row[i], 0, 64);
        if (t[i].s) strncpy(row[i], t[i].s, 63);
        mine->failed |= t[i].failed;
    }
    p->t = mine;
    free(t[0].s);
    free(t[1].s);
    *names = (st_cuda_names){load, store, row[1], row[0], p};
}

/* A ring's copies: a line's part into a place, and what lines share into its planes. */
static void put_ring(printer *p)
{
    const st_pw_cuda *c = p->c;
    st_text *t = p->t;
    int64_t bytes = 0;
    st_text_put(t, "METHOD void fetch(idx l, u32 to, u32 bar) const\n{\n(void)l;\n");
    put_indices(p, "il", "l", c->ne, c->nl, false);
    for (int d = 0; d < c->nl; d++) st_text_put(t, "(void)il%d;\n", d);
    for (int v = 0; v < c->s->nvars; v++) bytes += reads_ever(c, v) ? size_of(c, v) : 0;
    st_text_put(
        t,
        "const idx most = SLOTS * GROUP * W, rest = part0 < n() ? n() - part0 : 0, count = rest < most ? "
        "rest : most;\nmbar_expect(bar, (u32)count * %lld);\nif (count == 0) return;\n",
        (long long)bytes);
    for (int v = 0; v < c->s->nvars; v++) {
        if (!reads_ever(c, v)) continue;
        const char *type = type_names[c->s->type[v]];
        st_text_put(t, "bulk_load(to + %d, (const %s *)arg.w[%d] + (i64)part0", offset_in(c, v, false), type,
                    v);
        put_offset(p, v, true);
        st_text_put(t, ", (u32)count * (u32)sizeof(%s), bar);\n", type);
    }
    st_text_put(t, "}\nMETHOD void share(char *to, int thread, int threads)\n{\n(void)to;\n"
                   "for (int i = thread; i < SLOTS * GROUP; i += threads) {\n"
                   "const idx e = part0 + i * W;\nif (e >= n()) break;\n");
    for (int v = 0; v < c->s->nvars; v++) {
        if (!in_shared(c, v)) continue;
        st_text_put(t, "{ ");
        put_slot_type(p, v);
        st_text_put(
            t, " s; s.load((const %s *)arg.w[%d] + e, 1); s.store_planes(to + %d, i, SLOTS * GROUP); }\n",
            type_names[c->s->type[v]], v, offset_in(c, v, true));
    }
    st_text_put(t, "}\n}\n");
}

static void put_functions(printer *p)
{
    const st_pw_cuda *c = p->c;
    st_text *t = p->t;
    st_cuda_names names;
    char row[2][64];
    names_of(p, &names, row);
    p->element = false;
    st_text_put(t, "METHOD void line(idx l)\n{\n(void)l;\n");
    put_indices(p, "il", "l", c->ne, c->nl, c->s->positions);
    for (int d = 0; d < c->nl; d++) st_text_put(t, "(void)il%d;\n", d);
    for (int v = 0; v < c->s->nvars; v++) {
        if (!is_memory(c, v)) continue;
        if (st_type_is_sub_byte(c->s->type[v]))
            st_text_put(t, "p%d = (u8 *)arg.w[%d]; o%d = 0", v, v, v);
        else
            st_text_put(t, "p%d = (%s *)arg.w[%d]", v, type_names[c->s->type[v]], v);
        put_offset(p, v, true);
        st_text_put(t, ";\n");
    }
    st_expr_cuda_line(&c->p, 0, &names, t);
    st_text_put(t, "}\n");
    for (int q = 0; q < c->p.passes; q++) {
        put_load(p, q);
        p->element = true;
        st_text_put(t, "METHOD void add%d(int k, idx e, acc%d &a)\n", q, q);
        open_elements(p, q);
        st_expr_cuda_add(&c->p, q, &names, t);
        st_text_put(t, "}\n}\n");
        p->element = false;
        st_text_put(t, "METHOD void line%d(const tot%d &t, const length<A> &n)\n{\n(void)t, (void)n;\n", q,
                    q);
        st_expr_cuda_line(&c->p, q + 1, &names, t);
        st_text_put(t, "}\n");
    }
    put_load(p, c->p.passes);
    st_text_put(t, "METHOD void store(int k, idx e) const\n");
    if (c->stores) {
        p->element = true;
        open_elements(p, c->p.passes);
        st_expr_cuda_store(&c->p, true, &names, t);
        st_text_put(t, "}\n");
        for (int v = 0; v < c->s->nvars; v++) {
            if (!c->s->var[v].output || !c->element[v]) continue;
            const char *type = type_names[c->s->type[v]];
            if (st_type_is_sub_byte(c->s->type[v]))
                st_text_put(t, "sub_put<%s, W>(p%d, o%d", sub_name(c->s->type[v]), v, v);
            else if (c->wide[v])
                st_text_put(t, "put_wide<%s, W, %s>(p%d", type, streams(c, v) ? "STREAMED" : "USUAL", v);
            else
                st_text_put(t, "put_thin<%s, W>(p%d", type, v);
            put_offset(p, v, false);
            if (st_type_is_sub_byte(c->s->type[v]) && c->e[c->ne - 1].step[v] == 1)
                st_text_put(t, ", 1");
            else if (!c->wide[v])
                st_text_put(t, ", arg.w[%d]", step_word(c, v, false, c->ne - 1));
            st_text_put(t, ", y%d);\n", v);
        }
        st_text_put(t, "}\n");
    } else {
        st_text_put(t, "{ (void)k, (void)e; }\n");
    }
    if (c->groups) put_ring(p);
    p->element = false;
    st_text_put(t, "METHOD void store_line() const\n{\n");
    st_expr_cuda_store(&c->p, false, &names, t);
    st_text_put(t, "}\n");
}

static void put_settings(const st_pw_cuda *c, st_text *t)
{
    const struct {
        const char *name;
        int value;
    } list[] = {{"W", c->width},
                {"SLOTS", c->slots},
                {"THREADS", c->threads},
                {"GROUP", c->group},
                {"CLUSTER", c->cluster},
                {"TALL", c->tall},
                {"STREAM", c->stream},
                {"STORES", c->stores},
                {"PASSES", c->p.passes},
                {"TOTAL_BYTES", c->total_bytes},
                {"GROUPS", c->groups},
                {"STAGES", c->stages},
                {"RELEASE", release_of(c)},
                {"PLACE_BYTES", (int)c->slot_bytes},
                {"SHARED_BYTES", (int)c->shared_bytes}};
    for (int i = 0; i < ST_COUNT(list); i++) st_text_put(t, "#define %s %d\n", list[i].name, list[i].value);
    st_text_put(t, "#define BOUNDS __launch_bounds__(%d)\n", c->threads);
    st_text_put(t, "#define EACH_PASS(X)");
    for (int q = 0; q < c->p.passes; q++) st_text_put(t, " X(%d)", q);
    st_text_put(t, "\ntypedef %s R;\ntypedef %s A;\ntypedef %s idx;\n", c->s->f64 ? "double" : "float",
                c->s->f64 || c->precise ? "double" : "float", c->big ? "i64" : "u32");
}

void st_pw_cuda_text(const st_pw_cuda *c, st_text *t)
{
    printer p = {.c = c, .t = t};
    int64_t words[ST_PW_WORDS];
    const int b = base_of(c), n = st_pw_cuda_words(c, words);
    st_text_put(t, "#include \"pointwise_lanes.cuh\"\n");
    if (c->groups) st_text_put(t, "#include \"async.cuh\"\n");
    put_settings(c, t);
    st_text_put(t, "struct args {\ni64 w[%d];\n};\n", n);
    st_expr_cuda_types(&c->p, t);
    st_text_put(t, "struct program {\nconst args &arg;\n");
    for (int v = 0; v < c->s->nvars; v++) {
        if (!is_memory(c, v)) continue;
        const char *type = type_names[c->s->type[v]];
        if (st_type_is_sub_byte(c->s->type[v]))
            st_text_put(t, "u8 *p%d;\ni64 o%d;\n", v, v);
        else
            st_text_put(t, "%s *p%d;\n", type, v);
        if (!reads_ever(c, v)) continue;
        put_slot_type(&p, v);
        st_text_put(t, " x%d[SLOTS];\n", v);
    }
    for (int d = 0; d < c->nl && c->s->positions; d++) st_text_put(t, "idx il%d;\n", d);
    st_expr_cuda_members(&c->p, t);
    if (c->groups) st_text_put(t, "const char *place, *shared;\nidx part0;\n");
    st_text_put(t, "METHOD program(const args &a) : arg(a) {}\n");
    static const char *const words_of[] = {"n", "lines", NULL, NULL, NULL, "parts", "chunk"};
    for (int i = 0; i < ST_COUNT(words_of); i++)
        if (words_of[i])
            st_text_put(t, "METHOD idx %s() const { return (idx)arg.w[%d]; }\n", words_of[i], b + i);
    st_text_put(t,
                "METHOD length<A> len() const { return {(A)f64_of_bits((u64)arg.w[%d]), "
                "(A)f64_of_bits((u64)arg.w[%d])}; }\n",
                b + 2, b + 3);
    st_text_put(t, "METHOD char *work() const { return (char *)arg.w[%d]; }\n", b + ST_PW_WORK);
    put_functions(&p);
    st_text_put(t, "};\n");
}
