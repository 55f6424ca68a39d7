/* SPDX-License-Identifier: Apache-2.0 */
/* fused_plan.c - plans of programs with products, as steps.
 *
 *   fused_epilogue  the program only maps elements: loaders, then all products but the last, into the workspace; the last product has the
 *                   whole program as its epilogue and reads the others there. With one product and no loader nothing is stored in between.
 *   fused_steps     anything else (reductions, outputs of other types or shapes): every product into the workspace, then the program as a
 *                   pointwise one. Where that would exceed the workspace limit and the lines of the first dim do not depend on each other, it
 *                   runs on some lines after others.
 *   fused_packed    (CPU) one pass over the packed kernels: fused_mixed.c.
 *   fused_reference (CPU) element by element, without a workspace: fused_reference.c.
 *
 * Products in the workspace are f32 (f64 in programs of f64, i32 for integers). A loader's values have the type of the other factor where that is a
 * float, else f32. */
#include "blas/fused_problem.h"
#include "blas/fused_scaled.h"
#include "runtime/gpu.h"
#include "tile/gemm_mixed.h"
#include "tile/tile.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = ST_FUSED_TEMPS + 1, EPILOGUE = 1, AS_STEPS = 2, PACKED = 3, SCALED = 5 };

typedef struct fused_step {
    strata_plan *plan;
    int n, at[ST_FUSED_ALL]; /* data[i] is operand at[i]; from `operands` on: temporaries */
} fused_step;

typedef struct fused_plan {
    strata_plan base;
    st_fused_use use;
    int temps, steps;
    fused_step step[2][STEPS]; /* for a whole chunk, and for what is left */
    size_t temp_at[ST_FUSED_TEMPS], inner_at, inner;
    char words[320];               /* of fused_packed */
    int64_t chunks, tail;          /* tail: 1 where the last chunk is shorter */
    int64_t advance[ST_EXPR_VARS]; /* bytes from chunk to chunk */
} fused_plan;

/* ---- which form ------------------------------------------------------------------------------------------------------------------ */

/* The output that an epilogue of a product of these types stores as C: `out`, else the first that the program writes and that has the product's dims. -1 with the reason. */
static int epilogue_output(const st_fused *f, int ta, int tb, char *why, size_t n)
{
    const int main = f->t.products - 1;
    const strata_tensor *P = &f->op[st_fused_product_at(f, main)].tensor;
    const st_expr_var *var;
    const int nv = st_expr_vars(f->x, &var);
    int out = -1, others = 0;
    if (st_expr_reductions(f->x)) {
        snprintf(why, n, "the program reduces, and an epilogue only maps elements");
        return -1;
    }
    for (int i = 0; i < f->n; i++)
        if ((f->t.outside | f->outputs) >> i & 1 && st_type_is_sub_byte(f->op[i].tensor.type)) {
            snprintf(why, n, "%s is %s, and an epilogue takes whole bytes", f->name[i],
                     strata_type_name((strata_type)f->op[i].tensor.type));
            return -1;
        }
    for (int v = 0; v < nv; v++)
        for (int i = 0; i < f->n; i++)
            if (var[v].output && !strcmp(var[v].name, f->name[i]) && (out < 0 || !strcmp(f->name[i], "out")))
                out = i;
    for (int i = 0; i < f->n + f->t.products; i++) {
        const strata_tensor *t = &f->op[i].tensor;
        const bool output = i < f->n && f->outputs >> i & 1, product = i >= f->n;
        others += i != out && i != st_fused_product_at(f, main) && (product || f->t.outside >> i & 1);
        if (!output && !product) continue;
        bool same = t->rank == P->rank;
        for (int d = 0; same && d < t->rank; d++) same = t->dim[d] == P->dim[d];
        if (!same) {
            snprintf(why, n, "%s does not have the dims of the last product", f->name[i]);
            return -1;
        }
    }
    if (!st_gemm_types_fit(f->h, ta, tb, f->op[out].tensor.type)) {
        snprintf(why, n, "products of %s do not store %s", strata_type_name((strata_type)ta),
                 strata_type_name((strata_type)f->op[out].tensor.type));
        return -1;
    }
    if (f->t.outside >> out & 1 && var[st_expr_find(f->x, f->name[out])].input) {
        snprintf(why, n, "the program reads %s before it writes it", f->name[out]);
        return -1;
    }
    if (others > ST_EPI_OPERANDS) {
        snprintf(why, n, "more than %d operands beside the product", ST_EPI_OPERANDS);
        return -1;
    }
    return out;
}

static size_t tensor_bytes(const strata_tensor *t)
{
    return ((size_t)strata_count(*t) * strata_type_bits((strata_type)t->type) / 8 + 255) / 256 * 256;
}

/* May the program run on some lines of the first dim after others? Then bit i of *sliced says that operand i (or product) has these lines. */
static bool lines_apart(const st_fused *f, uint64_t *sliced)
{
    const uint32_t axes = !st_expr_reductions(f->x) ? 0 : f->axes ? f->axes : 1u << (f->rank - 1);
    *sliced = 0;
    if (f->rank < 2 || axes & 1 || f->first < 2 || st_tile_epilogue_use(f->t.program, "index").used ||
        f->t.loaders)
        return false;
    const st_expr_var *var;
    const int nv = st_expr_vars(f->x, &var);
    uint32_t as_factor = 0, as_operand = 0, seen_factor = 0, seen_operand = 0;
    for (int i = 0; i < f->n; i++) {
        if (!((f->t.outside | f->outputs) >> i & 1)) continue;
        const strata_tensor *t = &f->op[i].tensor;
        const int v = st_expr_find(f->x, f->name[i]);
        const st_index index = v >= 0 && v < nv ? var[v].index : ST_INDEX_NONE;
        const bool has = index == ST_INDEX_M
                             ? f->rank == 2
                             : index == ST_INDEX_NONE && t->rank == f->rank && t->dim[0] == f->first;
        seen_operand |= 1u << i;
        as_operand |= (uint32_t)has << i;
    }
    for (int p = 0; p < f->t.products; p++) {
        const strata_tensor *t = &f->op[st_fused_product_at(f, p)].tensor;
        if (t->rank != f->rank || t->dim[0] != f->first) return false;
        *sliced |= 1ull << st_fused_product_at(f, p);
        const int k[2] = {f->t.x[p], f->t.w[p]};
        for (int j = 0; j < 2; j++) {
            const strata_tensor *q = &f->op[k[j]].tensor;
            const bool has = f->rank == 2 ? j == 0 : q->rank == f->rank && q->dim[0] == f->first;
            if (seen_factor >> k[j] & 1 && (as_factor >> k[j] & 1) != (uint32_t)has) return false;
            seen_factor |= 1u << k[j];
            as_factor |= (uint32_t)has << k[j];
        }
    }
    if ((as_factor ^ as_operand) & seen_factor & seen_operand) return false;
    *sliced |= as_factor | as_operand;
    return true;
}

static size_t temps_bytes(const st_fused *f, int without)
{
    size_t n = 0;
    for (int i = 0; i < f->temps; i++)
        if (i != without) n += tensor_bytes(&f->op[f->n + i].tensor);
    return n;
}

/* Lines of a chunk: all of them, or what keeps the products in half of the limit. */
static int64_t chunk_lines(const st_fused *f, size_t limit)
{
    uint64_t sliced;
    const size_t all = temps_bytes(f, -1);
    if (all <= limit || !lines_apart(f, &sliced)) return f->first;
    const size_t line = all / (size_t)f->first + 1;
    const int64_t lines = (int64_t)(limit / 2 / line);
    return lines > 64 ? lines / 64 * 64 : lines > 0 ? lines : 1;
}

/* ---- steps ------------------------------------------------------------------------------------------------------------------ */

static int add_step(fused_step *s, int *steps, strata_plan *plan)
{
    s[*steps].plan = plan;
    s[*steps].n = 0;
    return (*steps)++;
}

static strata_status product_step(const st_fused *f, int i, fused_step *s, int *steps)
{
    strata_plan *plan;
    const int at[3] = {st_fused_factor_at(f, f->t.x[i]), st_fused_factor_at(f, f->t.w[i]),
                       st_fused_product_at(f, i)};
    strata_status st = st_gemm_make(f->h, f->who, &f->op[at[0]].tensor, &f->op[at[1]].tensor,
                                    &f->op[at[2]].tensor, NULL, &plan);
    if (st) return st;
    fused_step *x = &s[add_step(s, steps, plan)];
    for (x->n = 0; x->n < 3; x->n++) x->at[x->n] = at[x->n];
    return STRATA_OK;
}

/* The program `text` over those of the tensors that it names. */
static strata_status program_step(const st_fused *f, const char *text, const strata_operand *op,
                                  uint32_t axes, fused_step *s, int *steps)
{
    strata_operand used[ST_FUSED_ALL + 1];
    int64_t key[ST_KEY_WORDS];
    int at[ST_FUSED_ALL], n = 0;
    for (int i = 0; i < f->n + f->temps; i++)
        if (st_tile_epilogue_use(text, op[i].name).used) {
            used[n] = op[i];
            at[n++] = i;
        }
    st_pw_init();
    const size_t bytes = st_pw_program_key(key, used, n, axes, f->h->gpu ? f->second : st_threads(f->h));
    const st_problem pr = {ST_OP_POINTWISE, f->who, key, bytes, text};
    strata_plan *plan;
    strata_status st = st_plan_make(f->h, &pr, NULL, &plan);
    if (st) return st;
    fused_step *x = &s[add_step(s, steps, plan)];
    memcpy(x->at, at, (size_t)n * sizeof *at);
    x->n = n;
    return STRATA_OK;
}

static strata_status loader_step(const st_fused *f, int i, fused_step *s, int *steps)
{
    const st_fused_loader *l = &f->t.loader[i];
    strata_operand op[ST_FUSED_ALL + 1];
    memcpy(op, f->op, sizeof op);
    for (int o = 0; o < f->n + f->temps; o++)
        if (o < f->n ? l->used >> o & 1 : o == st_fused_loader_at(f, i)) {
            if (op[o].tensor.rank + 2 > STRATA_MAX_RANK)
                return st_fail(f->e, STRATA_ERROR_UNSUPPORTED,
                               "%s: %s of the factor \"%s\" has rank %d; %d is the most", f->who, f->name[o],
                               l->text + 6, (int)op[o].tensor.rank, STRATA_MAX_RANK - 2);
            op[o].tensor = st_fused_loader_view(f, i, o);
        }
    return program_step(f, l->text, op, 0, s, steps);
}

static strata_status epilogue_step(const st_fused *f, int out, fused_step *s, int *steps)
{
    const int main = f->t.products - 1, ix = st_fused_factor_at(f, f->t.x[main]),
              iw = st_fused_factor_at(f, f->t.w[main]);
    char *text = st_fused_rewrite(&f->t, f->op, f->n, main, f->name[out]);
    if (!text) return st_fail(f->e, STRATA_ERROR_MEMORY, "%s: no memory for a program", f->who);
    strata_operand rest[ST_EPI_OPERANDS + 1];
    int at[3 + ST_EPI_OPERANDS] = {ix, iw, out}, k = 0;
    for (int i = 0; i < f->n + f->t.products; i++)
        if (i != out && st_tile_epilogue_use(text, f->name[i]).used) {
            at[3 + k] = i;
            rest[k++] = f->op[i];
        }
    rest[k].name = NULL;
    const bool plain = k == 0 && !strcmp(text, "out = acc");
    const strata_gemm_options with = {.epilogue = text, .operands = rest};
    strata_plan *plan;
    strata_status st = st_gemm_make(f->h, f->who, &f->op[ix].tensor, &f->op[iw].tensor, &f->op[out].tensor,
                                    plain ? NULL : &with, &plan);
    free(text);
    if (st) return st;
    fused_step *x = &s[add_step(s, steps, plan)];
    memcpy(x->at, at, sizeof(int) * (size_t)(3 + k));
    x->n = 3 + k;
    return STRATA_OK;
}

static strata_status make_steps(const st_fused *f, int form, int out, fused_step *s, int *steps)
{
    strata_status st = STRATA_OK;
    *steps = 0;
    for (int i = 0; i < f->t.loaders && !st; i++) st = loader_step(f, i, s, steps);
    for (int i = 0; i < f->t.products - (form == EPILOGUE) && !st; i++) st = product_step(f, i, s, steps);
    if (st) return st;
    if (form == EPILOGUE) return epilogue_step(f, out, s, steps);
    char *text = st_fused_rewrite(&f->t, f->op, f->n, -1, NULL);
    if (!text) return st_fail(f->e, STRATA_ERROR_MEMORY, "%s: no memory for a program", f->who);
    st = program_step(f, text, f->op, f->axes, s, steps);
    free(text);
    return st;
}

/* ---- the provider ---------------------------------------------------------------------------------------------------------- */

static void destroy(strata_plan *plan)
{
    fused_plan *p = (fused_plan *)plan;
    for (int v = 0; v < 2; v++)
        for (int i = 0; i < STEPS; i++) strata_plan_destroy(p->step[v][i].plan);
}

static strata_status run(strata_handle *h, const strata_plan *plan, void *const data[], const strata_run *r)
{
    const fused_plan *p = (const fused_plan *)plan;
    void *at[ST_FUSED_ALL], *d[ST_FUSED_ALL];
    char *w = NULL;
    if (plan->workspace && !(w = st_plan_workspace(h, plan, r))) return h->err.status;
    for (int i = 0; i < p->temps; i++) at[plan->operands + i] = w + p->temp_at[i];
    const strata_run inner = {.workspace = p->inner ? w + p->inner_at : NULL, .workspace_bytes = p->inner};
    for (int64_t c = 0; c < p->chunks; c++) {
        const fused_step *step = p->step[p->tail && c == p->chunks - 1];
        for (int i = 0; i < plan->operands; i++) at[i] = (char *)data[i] + c * p->advance[i];
        for (int i = 0; i < p->steps; i++) {
            for (int k = 0; k < step[i].n; k++) d[k] = at[step[i].at[k]];
            const strata_status s =
                step[i].plan->run(h, step[i].plan, d, step[i].plan->workspace ? &inner : NULL);
            if (s) return s;
        }
    }
    return STRATA_OK;
}

void st_fused_operands(const st_fused *f, strata_plan *p)
{
    st_extent *e = calloc((size_t)f->n, sizeof *e);
    p->extent = e;
    p->operands = f->n;
    for (int i = 0; i < f->n && e; i++) {
        const strata_tensor *t = &f->op[i].tensor;
        e[i] = st_plan_extent(t, f->outputs >> i & 1);
        p->bytes += (double)strata_count(*t) * (double)strata_type_bits((strata_type)t->type) / 8;
    }
    for (int i = 0; i < f->t.products; i++) {
        const strata_tensor *X = &f->op[st_fused_factor_at(f, f->t.x[i])].tensor;
        p->flops +=
            2.0 * (double)strata_count(f->op[st_fused_product_at(f, i)].tensor) * (double)X->dim[X->rank - 1];
    }
    snprintf(p->title, sizeof p->title, "fused \"%.150s\", %d product%s", f->t.program, f->t.products,
             f->t.products > 1 ? "s" : "");
}

/* ---- predicted times ---------------------------------------------------------------------------------------------- */

/* Multiply-adds a microsecond that a product of this type reaches: on a GPU those of Hopper's units at three quarters (tile/cuda has the exact models),
 * which is enough to compare forms of the same products. */
static double rate_of(const st_fused *f, int type)
{
    const st_cpu *cpu = f->h->cpu;
    if (!f->h->gpu) return 0.44 * st_contract_peak(cpu, type == STRATA_F64 ? STRATA_F64 : STRATA_F32);
    const double macs = type == STRATA_F16 || type == STRATA_BF16  ? 2048
                        : type == STRATA_F64 || type == STRATA_F32 ? 128
                        : strata_type_bits((strata_type)type) == 8 ? 4096
                                                                   : 128;
    return 0.75 * macs * f->h->gpu->sms * f->h->gpu->clock_mhz;
}

/* What the program itself takes on n elements on one thread, beside moving them. */
static double program_us(const st_fused *f, double n)
{
    const double slow = f->h->cpu->level >= ST_LEVEL_AVX512 ? 1 : 2;
    return f->h->gpu ? 0 : n * st_expr_cost(f->x) * slow / 2800;
}

/* Before anything is built: products by their operations, what is stored in between by its bytes. */
static double cost(const st_fused *f, int form)
{
    const double threads = f->h->gpu ? 1 : st_threads(f->h),
                 bandwidth = f->h->gpu ? f->h->gpu->copy_bytes_per_us : 20000, launch = f->h->gpu ? 3 : 1;
    double us = 0, moved = 0;
    for (int i = 0; i < f->t.products; i++) {
        const strata_tensor *X = &f->op[st_fused_factor_at(f, f->t.x[i])].tensor;
        const double n = (double)strata_count(f->op[st_fused_product_at(f, i)].tensor);
        us += n * (double)X->dim[X->rank - 1] / rate_of(f, f->f64 ? STRATA_F64 : X->type);
        if (form == AS_STEPS || i + 1 < f->t.products) moved += 8 * n;
        if (i == 0) us += program_us(f, n);
    }
    for (int i = 0; i < f->t.loaders; i++)
        moved += 20 * (double)strata_count(f->op[st_fused_loader_at(f, i)].tensor);
    return us / threads + moved / bandwidth + launch * f->temps;
}

/* The sum of the steps' own predictions, and of the program where it is an epilogue. */
static double steps_us(const st_fused *f, const fused_plan *p, int form)
{
    double us = 0;
    for (int v = 0; v < 2; v++) {
        const double times = v ? (double)p->tail : (double)(p->chunks - p->tail);
        for (int i = 0; i < STEPS; i++)
            if (p->step[v][i].plan) us += times * p->step[v][i].plan->chosen.us;
    }
    if (form == EPILOGUE)
        us += program_us(f, (double)strata_count(f->op[st_fused_product_at(f, f->t.products - 1)].tensor));
    return us;
}

/* ---- building ----------------------------------------------------------------------------------------------------- */

/* All of it as one step on the operands as they are. */
static strata_status packed_step(const st_fused *f, fused_plan *p)
{
    char why[160] = "";
    strata_plan *plan;
    st_mix *m = st_fused_mix(f, why, sizeof why);
    if (!m) return st_fail(f->e, STRATA_ERROR_INTERNAL, "%s: %s", f->who, why);
    const strata_status s = st_mix_build(f->h, f->who, m, f->n, &plan);
    if (s) return s;
    st_mix_words(plan, p->words, sizeof p->words);
    fused_step *x = &p->step[0][0];
    x->plan = plan;
    x->n = f->n;
    for (int i = 0; i < f->n; i++) x->at[i] = i;
    p->steps = 1;
    p->temps = 0;
    p->inner = plan->workspace;
    return STRATA_OK;
}

/* The product and the scales of its factors as one kernel. */
static strata_status scaled_step(const st_fused *f, int out, fused_plan *p)
{
    fused_step *s = &p->step[0][0];
    int x[2];
    const strata_status st = st_fused_scaled_plan(f, out, &s->plan, s->at, &s->n, x);
    if (st) return st;
    p->use = (st_fused_use){f->outputs, x[0], x[1], out};
    p->steps = 1;
    p->temps = 0;
    p->inner = s->plan->workspace;
    return STRATA_OK;
}

static strata_status build(strata_handle *h, const st_problem *problem, const st_candidate *c,
                           strata_plan **plan)
{
    st_fused f;
    const int form = (int)c->arg[0], out = (int)c->arg[1];
    const int64_t lines = c->arg[2];
    *plan = NULL;
    strata_status s = st_fused_take(&f, h, problem);
    if (s) return s;
    fused_plan *p = st_plan_new(sizeof *p);
    if (!p) {
        st_fused_free(&f);
        return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a plan", problem->who);
    }
    p->base.destroy = destroy;
    p->base.run = run;
    p->temps = f.temps;
    p->use = (st_fused_use){f.outputs, -1, -1, -1};
    if (form == EPILOGUE) {
        const int main = f.t.products - 1;
        p->use = (st_fused_use){f.outputs, f.t.x[main] < f.n ? f.t.x[main] : -1,
                                f.t.w[main] < f.n ? f.t.w[main] : -1, out};
    }
    st_fused_operands(&f, &p->base);
    p->chunks = lines > 0 ? st_ceil_div(f.first, lines) : 1;
    p->tail = p->chunks > 1 && f.first % lines != 0;
    uint64_t sliced = 0;
    if (p->chunks > 1) lines_apart(&f, &sliced);
    for (int i = 0; i < f.n; i++)
        if (sliced >> i & 1)
            p->advance[i] = lines * f.op[i].tensor.stride[0] *
                            (int64_t)strata_type_bits((strata_type)f.op[i].tensor.type) / 8;
    for (int v = 0; v <= (int)p->tail && !s && form < PACKED; v++) {
        st_fused g = f;
        for (int i = 0; i < f.n + f.temps; i++) g.op[i].name = g.name[i];
        for (int i = 0; i < f.n + f.temps && p->chunks > 1; i++)
            if (sliced >> i & 1) g.op[i].tensor.dim[0] = v ? f.first % lines : lines;
        if (v == 0) {
            size_t at = 0;
            for (int i = 0; i < f.temps; i++) {
                p->temp_at[i] = at;
                if (form == EPILOGUE && i == f.t.products - 1) continue; /* never stored */
                at += tensor_bytes(&g.op[f.n + i].tensor);
            }
            p->inner_at = at;
        }
        const size_t limit = h->workspace_limit; /* the steps' own share of it */
        h->workspace_limit = limit > p->inner_at ? limit - p->inner_at : 0;
        s = make_steps(&g, form, out, p->step[v], &p->steps);
        h->workspace_limit = limit;
        for (int i = 0; i < STEPS; i++)
            if (p->step[v][i].plan && p->step[v][i].plan->workspace > p->inner)
                p->inner = p->step[v][i].plan->workspace;
    }
    if (form == PACKED) s = packed_step(&f, p);
    if (form == SCALED) s = scaled_step(&f, out, p);
    p->base.workspace = p->inner_at + p->inner;
    if (!s && form != PACKED) p->base.predicted = steps_us(&f, p, form);
    st_fused_free(&f);
    if (s) {
        strata_plan_destroy(&p->base);
        return s;
    }
    *plan = &p->base;
    return STRATA_OK;
}

static int enumerate(strata_handle *h, const st_problem *problem, st_candidate *x, int max)
{
    st_fused f;
    if (max < 4) return 0;
    memset(x, 0, 4 * sizeof *x);
    if (st_fused_take(&f, h, problem)) { /* build finds the same words */
        snprintf(x->kernel, sizeof x->kernel, "fused_steps");
        x->us = 0;
        x->arg[0] = AS_STEPS;
        return 1;
    }
    bool picks = false;
    for (int i = 0; i < f.t.loaders; i++) picks |= f.t.loader[i].picks;
    static const char picked[] = "rows that a list picks are read by the packed kernels alone";
    snprintf(x[0].kernel, sizeof x[0].kernel, "fused_epilogue");
    const int last = f.t.products - 1, ta = (int)f.op[st_fused_factor_at(&f, f.t.x[last])].tensor.type,
              tb = (int)f.op[st_fused_factor_at(&f, f.t.w[last])].tensor.type,
              out = picks ? -1 : epilogue_output(&f, ta, tb, x[0].why, sizeof x[0].why);
    if (picks) snprintf(x[0].why, sizeof x[0].why, "%s", picked);
    x[0].us = out < 0 ? -1 : cost(&f, EPILOGUE);
    x[0].order = "each product's own";
    x[0].arg[0] = EPILOGUE;
    x[0].arg[1] = out < 0 ? 0 : out;
    x[0].workspace = temps_bytes(&f, f.t.products - 1);
    snprintf(x[1].kernel, sizeof x[1].kernel, "fused_packed");
    x[1].us = -1;
    x[1].arg[0] = PACKED;
    st_mix *m = NULL;
    if (out >= 0 && f.t.products == 1 && !f.t.loaders)
        snprintf(x[1].why, sizeof x[1].why,
                 "one product whose program maps elements is fused as its epilogue");
    else
        m = st_fused_mix(&f, x[1].why, sizeof x[1].why);
    if (m) st_mix_consider(h, m, &x[1]);
    st_mix_free(m);
    snprintf(x[2].kernel, sizeof x[2].kernel, "fused_steps");
    x[2].us = picks ? -1 : cost(&f, AS_STEPS);
    if (picks) snprintf(x[2].why, sizeof x[2].why, "%s", picked);
    x[2].order = "each product's own, then the program's";
    x[2].arg[0] = AS_STEPS;
    x[2].arg[2] = chunk_lines(&f, h->workspace_limit);
    const size_t all = temps_bytes(&f, -1);
    x[2].workspace =
        x[2].arg[2] == f.first || f.first == 0 ? all : all / (size_t)f.first * (size_t)x[2].arg[2];
    int count = 3;
    if (h->gpu && f.t.loaders && !picks) {
        const int to = epilogue_output(&f, STRATA_F8E4M3, STRATA_F8E4M3, x[3].why, sizeof x[3].why);
        snprintf(x[3].kernel, sizeof x[3].kernel, "fused_scaled");
        x[3].order = "k ascending in groups of 128, each times its scales";
        x[3].arg[0] = SCALED;
        x[3].arg[1] = to < 0 ? 0 : to;
        if (to < 0 || !st_fused_scaled(&f, to, &x[3].us, &x[3].workspace, x[3].why, sizeof x[3].why))
            x[3].us = -1;
        count = 4;
    }
    st_fused_free(&f);
    return count;
}

st_fused_use st_fused_plan_use(const strata_plan *p) { return ((const fused_plan *)p)->use; }

void st_fused_describe(strata_plan *plan)
{
    const fused_plan *p = (const fused_plan *)plan;
    if (plan->run != run) return; /* the reference has no steps */
    size_t n = plan->text ? strlen(plan->text) : 0;
    if (p->words[0]) {
        char *text = realloc(plan->text, n + sizeof p->words + 16);
        if (!text) return;
        plan->text = text;
        snprintf(text + n, sizeof p->words + 16, "\n  step 1     %s", p->words);
        return;
    }
    for (int i = 0; i < p->steps; i++) {
        const char *d = strata_plan_describe(p->step[0][i].plan), *end = strchr(d, '\n');
        const char *next =
            end ? strchr(end + 1, '\n') : NULL; /* the first two lines: what, and with which kernel */
        const size_t len = next ? (size_t)(next - d) : strlen(d);
        char *text = realloc(plan->text, n + len + 32);
        if (!text) return;
        plan->text = text;
        n += (size_t)snprintf(text + n, len + 32, "\n  step %d     %.*s", i + 1, (int)len, d);
    }
}

static const st_provider cpu_provider = {"fused", ST_OP_FUSED, enumerate, build, ST_ON_CPU},
                         cuda_provider = {"fused", ST_OP_FUSED, enumerate, build, ST_ON_CUDA};

static void register_all(void)
{
    st_plan_register(&cpu_provider);
    st_plan_register(&cuda_provider);
    st_plan_register(&st_fused_reference);
}
void st_fused_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_all);
}
