/* SPDX-License-Identifier: Apache-2.0 */
/* norm_cuda.c - batch normalisation on CUDA devices, as programs: the channel is what a line is, statistics are the reductions' (mean as a pair of numbers,
 * variance in two passes), vectors of channels are the line's inputs and outputs. A plan is a program's plan and the order of its operands. */
#include "pointwise/norm.h"
#include "pointwise/program.h"
#include "runtime/gpu.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct norm_row {
    const char *id, *types;
    int type;
} norm_row;
static const norm_row rows[] = {{"norm_program_f32_sm80", "f32", STRATA_F32},
                                {"norm_program_f64_sm80", "f64", STRATA_F64}};
static const char *const order = "as the program's kernel says";

/* Numbers that depend on how many elements a channel has are operands, so that kernels do not. */
enum { SHARE, UNBIASED, NUMBERS, NAMES = ST_NORM_OPERANDS + NUMBERS };

typedef struct norm_plan {
    strata_plan base;
    strata_plan *program;
    int n, operand[NAMES]; /* of the program: which of the problem's, or a number of the plan's own */
    union {
        float f32;
        double f64;
    } number[NUMBERS];
} norm_plan;

#define HAS(p, o) ((p)->present >> (o)&1)
/* names in programs */
static const char *const names[NAMES] = {"x",  "y",  "dy", "dx",     "scale",  "shift", "rm",
                                         "rv", "sm", "si", "dscale", "dshift", "share", "unbiased"};

static int enumerate(strata_handle *h, const st_problem *pr, st_candidate *out, int max)
{
    const st_norm_key *k = pr->data;
    int n = 0;
    if (k->family != ST_PW_NORM) return 0;
    for (int i = 0; i < ST_COUNT(rows) && n < max; i++) {
        if (rows[i].type != k->p.type) continue;
        double elements = k->p.type == STRATA_F64 ? 24 : 12;
        for (int d = 0; d < ST_NORM_DIMS; d++) elements *= (double)k->p.dim[d];
        st_candidate *c = &out[n++];
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", rows[i].id);
        c->row = &rows[i];
        c->order = order;
        c->us = 5 + elements / h->gpu->copy_bytes_per_us;
    }
    return n;
}

/* The program's text. Statements appear only for what is asked, since a program may not compute what it does not store. */
static void write_text(const st_norm_problem *p, char *t, size_t room)
{
    const char *scale = HAS(p, ST_NORM_SCALE) ? " * scale" : "",
               *shift = HAS(p, ST_NORM_SHIFT) ? " + shift" : "";
    int k = 0;
#define PUT(...) k += snprintf(t + k, room - (size_t)k, __VA_ARGS__)
    *t = 0;
    switch (p->op) {
    case ST_NORM_INFERENCE:
        PUT("y = (x%s) * (", HAS(p, ST_NORM_RUNNING_MEAN) ? " - rm" : "");
        if (HAS(p, ST_NORM_RUNNING_VAR))
            PUT("rsqrt(rv + %.17g)%s)%s", p->epsilon, scale, shift);
        else
            PUT("%.17g%s)%s", 1 / sqrt(1 + p->epsilon), scale, shift);
        break;
    case ST_NORM_TRAINING:
        if (HAS(p, ST_NORM_SAVE_MEAN)) PUT("sm = mean(x); ");
        if (HAS(p, ST_NORM_SAVE_INV_STD)) PUT("si = rsqrt(var(x) + %.17g); ", p->epsilon);
        if (HAS(p, ST_NORM_RUNNING_MEAN))
            PUT("rm = %.17g * rm + %.17g * mean(x); ", 1 - p->momentum, p->momentum);
        if (HAS(p, ST_NORM_RUNNING_VAR))
            PUT("rv = %.17g * rv + %.17g * (var(x)%s); ", 1 - p->momentum, p->momentum,
                p->running_biased ? "" : " * unbiased");
        if (HAS(p, ST_NORM_Y))
            PUT("y = (x - mean(x)) * (rsqrt(var(x) + %.17g)%s)%s", p->epsilon, scale, shift);
        break;
    default:
        if (HAS(p, ST_NORM_DSCALE))
            PUT("dscale = sum(dy * (x - sm)) * si%s; ", p->accumulate ? " + dscale" : "");
        if (HAS(p, ST_NORM_DSHIFT)) PUT("dshift = sum(dy)%s; ", p->accumulate ? " + dshift" : "");
        if (HAS(p, ST_NORM_DX))
            PUT("dx = (dy - sum(dy) * share - (x - sm) * (si * si * sum(dy * (x - sm)) * share)) * (si%s)%s",
                scale, p->accumulate ? " + dx" : "");
    }
#undef PUT
}

/* does `name` stand in the text as a word? */
static bool mentions(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *s = text; (s = strstr(s, name)); s++) {
        const char before = s == text ? ' ' : s[-1], after = s[n];
        const bool word = (before >= 'a' && before <= 'z') || (after >= 'a' && after <= 'z');
        if (!word) return true;
    }
    return false;
}

static strata_tensor view(const st_norm_problem *p, int o)
{
    /* any address will do: plans have none */
    static double somewhere;
    if (o >= ST_NORM_OPERANDS) return strata_point(&somewhere, (strata_type)p->type);
    if (o < ST_NORM_SCALE)
        return strata_array(&somewhere, (strata_type)p->type, ST_NORM_DIMS, p->dim, p->stride[o]);
    const int64_t dim[4] = {p->dim[1], 1, 1, 1}, stride[4] = {p->vector[o], 0, 0, 0};
    return strata_array(&somewhere, (strata_type)p->type, 4, dim, stride);
}

static void set_numbers(norm_plan *pl, const st_norm_problem *p)
{
    const double n = (double)(p->dim[0] * p->dim[2] * p->dim[3] * p->dim[4]);
    for (int i = 0; i < NUMBERS; i++) {
        const double v = i == SHARE ? 1 / n : n / (n - 1);
        if (p->type == STRATA_F64)
            pl->number[i].f64 = v;
        else
            pl->number[i].f32 = (float)v;
    }
}

static void destroy(strata_plan *p) { strata_plan_destroy(((norm_plan *)p)->program); }

static strata_status run(strata_handle *h, const strata_plan *base, void *const data[], const strata_run *r)
{
    const norm_plan *pl = (const norm_plan *)base;
    void *mine[NAMES];
    for (int i = 0; i < pl->n; i++) {
        const int o = pl->operand[i];
        mine[i] = o < ST_NORM_OPERANDS ? data[o] : (void *)(uintptr_t)&pl->number[o - ST_NORM_OPERANDS];
    }
    return pl->program->run(h, pl->program, mine, r);
}

static strata_status build(strata_handle *h, const st_problem *pr, const st_candidate *c, strata_plan **plan)
{
    const st_norm_key *k = pr->data;
    const st_norm_problem *p = &k->p;
    char text[1024], more[128];
    int64_t key[ST_KEY_WORDS];
    strata_operand operands[NAMES];
    (void)c;
    norm_plan *pl = st_plan_new(sizeof *pl);
    if (!pl) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: out of memory for a plan", pr->who);
    write_text(p, text, sizeof text);
    set_numbers(pl, p);
    for (int o = 0; o < NAMES; o++)
        if ((o >= ST_NORM_OPERANDS || HAS(p, o)) && mentions(text, names[o])) {
            operands[pl->n] = (strata_operand){names[o], view(p, o)};
            pl->operand[pl->n++] = o;
        }
    const uint32_t axes = p->op == ST_NORM_INFERENCE ? 0 : 1 | 4 | 8 | 16;
    const st_problem inner = {ST_OP_POINTWISE, pr->who, key,
                              st_pw_program_key(key, operands, pl->n, axes, k->alignment), text};
    pl->base.destroy = destroy;
    strata_status s = st_plan_make(h, &inner, NULL, &pl->program);
    if (!s && (s = st_pw_norm_extents(&pl->base, p)))
        st_fail(&h->err, s, "%s: out of memory for a plan", pr->who);
    if (s) {
        strata_plan_destroy(&pl->base);
        return s;
    }
    pl->base.run = run;
    pl->base.workspace = pl->program->workspace;
    snprintf(more, sizeof more, ", by %s", pl->program->chosen.kernel);
    st_pw_norm_describe(&pl->base, p, more);
    *plan = &pl->base;
    return STRATA_OK;
}

static const st_provider provider = {"norm", ST_OP_POINTWISE, enumerate, build, ST_ON_CUDA};

int st_pw_norm_cuda_kernels(int i, strata_kernel_info *info)
{
    if (i < 0 || i >= ST_COUNT(rows)) return 0;
    *info = (strata_kernel_info){
        rows[i].id, "norm", rows[i].types, "sm80", order, false, "runs on a handle of a CUDA device"};
    return 1;
}

void st_pw_norm_cuda_init(void) { st_plan_register(&provider); }
