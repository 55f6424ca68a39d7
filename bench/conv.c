/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c - convolution: forward, backward data and backward weights, f32, images nhwc or nchw.
 *
 * The operands exist twice: plain (images nchw, filters oihw), from which the reference and oneDNN's layouts are made, and in the
 * layout that Strata is asked to work on. Results are brought back to the plain layout before they are checked. */
#include "bench.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 600, MAX_SHAPES = 128 };

typedef struct window {
    conv_shape s;
    int64_t count[3]; /* elements of x, w, y */
    conv_pass pass;
    int output;      /* 0 x, 1 w, 2 y */
    float *plain[3]; /* the output's is where results are fetched to */
    float *ours[3];
    strata_tensor t[3], layout[3]; /* Strata's views; plain views of the same dims */
    strata_conv o;
    int samples;
    struct {
        int64_t at;
        double want, bound;
    } sample[SAMPLES];
} window;

typedef struct call {
    window *w;
    strata_handle *h;
    strata_plan *plan;
    dnnl_op *op;
} call;

static void drop_call(void *arg)
{
    call *c = arg;
    strata_plan_destroy(c->plan);
    dnnl_drop(c->op);
    free(c);
}

static strata_status convolve(strata_handle *h, const window *w)
{
    if (w->pass == PASS_FORWARD) return strata_conv_forward(h, &w->o, w->t[0], w->t[1], w->t[2]);
    if (w->pass == PASS_DATA) return strata_conv_backward_data(h, &w->o, w->t[2], w->t[1], w->t[0]);
    return strata_conv_backward_weights(h, &w->o, w->t[0], w->t[2], w->t[1]);
}

static strata_status make_plan(strata_handle *h, const window *w, strata_plan **p)
{
    if (w->pass == PASS_FORWARD)
        return strata_conv_forward_plan(h, &w->o, w->t[0], w->t[1], w->t[2], NULL, p);
    if (w->pass == PASS_DATA)
        return strata_conv_backward_data_plan(h, &w->o, w->t[2], w->t[1], w->t[0], NULL, p);
    return strata_conv_backward_weights_plan(h, &w->o, w->t[0], w->t[2], w->t[1], NULL, p);
}

static void run_strata(void *arg) { convolve(((call *)arg)->h, ((call *)arg)->w); }

static void run_plan(void *arg)
{
    call *c = arg;
    static const int order[3][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
    const int *at = order[c->w->pass];
    void *const data[3] = {c->w->ours[at[0]], c->w->ours[at[1]], c->w->ours[at[2]]};
    strata_plan_run(c->h, c->plan, data, NULL);
}

static void run_dnnl(void *arg) { dnnl_run(((call *)arg)->op); }

static bool fetch_ours(void *arg)
{
    const call *c = arg;
    const window *w = c->w;
    return strata_copy(c->h, w->t[w->output], w->layout[w->output]) == STRATA_OK;
}

static bool fetch_dnnl(void *arg)
{
    const call *c = arg;
    return dnnl_fetch(c->op, c->w->plain[c->w->output]);
}

/* ---- the reference: one element of each output by its definition -------------------------------------------------------- */
typedef struct sum {
    double value, magnitude, terms;
} sum;

static void add(sum *s, double a, double b)
{
    s->value += a * b;
    s->magnitude += fabs(a * b);
    s->terms += 1;
}

static double x_at(const window *w, int64_t n, int64_t c, int64_t y, int64_t x)
{
    return w->plain[0][((n * w->s.c + c) * w->s.h + y) * w->s.w + x];
}
static double w_at(const window *w, int64_t o, int64_t c, int64_t r, int64_t s)
{
    return w->plain[1][((o * (w->s.c / w->s.groups) + c) * w->s.r + r) * w->s.s + s];
}
static double y_at(const window *w, int64_t n, int64_t o, int64_t p, int64_t q)
{
    return w->plain[2][((n * w->s.o + o) * w->s.p + p) * w->s.q + q];
}
static bool inside(int64_t v, int64_t limit) { return v >= 0 && v < limit; }

static sum forward_element(const window *w, int64_t at)
{
    const conv_shape *s = &w->s;
    int64_t q = at % s->q, p = at / s->q % s->p, o = at / (s->q * s->p) % s->o, n = at / (s->q * s->p * s->o);
    int64_t cg = s->c / s->groups, g = o / (s->o / s->groups);
    sum e = {0};
    for (int64_t c = 0; c < cg; c++)
        for (int64_t r = 0; r < s->r; r++)
            for (int64_t t = 0; t < s->s; t++) {
                int64_t y = p * s->stride - s->pad + r, x = q * s->stride - s->pad + t;
                if (inside(y, s->h) && inside(x, s->w))
                    add(&e, x_at(w, n, g * cg + c, y, x), w_at(w, o, c, r, t));
            }
    return e;
}

static sum data_element(const window *w, int64_t at)
{
    const conv_shape *s = &w->s;
    int64_t x = at % s->w, y = at / s->w % s->h, c = at / (s->w * s->h) % s->c, n = at / (s->w * s->h * s->c);
    int64_t cg = s->c / s->groups, og = s->o / s->groups, g = c / cg;
    sum e = {0};
    for (int64_t o = g * og; o < (g + 1) * og; o++)
        for (int64_t r = 0; r < s->r; r++)
            for (int64_t t = 0; t < s->s; t++) {
                int64_t a = y + s->pad - r, b = x + s->pad - t;
                if (a % s->stride || b % s->stride || !inside(a / s->stride, s->p) ||
                    !inside(b / s->stride, s->q) || a < 0 || b < 0)
                    continue;
                add(&e, y_at(w, n, o, a / s->stride, b / s->stride), w_at(w, o, c % cg, r, t));
            }
    return e;
}

static sum weights_element(const window *w, int64_t at)
{
    const conv_shape *s = &w->s;
    int64_t cg = s->c / s->groups, t = at % s->s, r = at / s->s % s->r, c = at / (s->s * s->r) % cg,
            o = at / (s->s * s->r * cg);
    sum e = {0};
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t p = 0; p < s->p; p++)
            for (int64_t q = 0; q < s->q; q++) {
                int64_t y = p * s->stride - s->pad + r, x = q * s->stride - s->pad + t;
                if (inside(y, s->h) && inside(x, s->w))
                    add(&e, x_at(w, n, o / (s->o / s->groups) * cg + c, y, x), y_at(w, n, o, p, q));
            }
    return e;
}

static void make_reference(window *w)
{
    int64_t all = w->count[w->output];
    w->samples = (int)(all < SAMPLES ? all : SAMPLES);
    for (int i = 0; i < w->samples; i++) {
        int64_t at = all <= SAMPLES ? i
                     : i == 0       ? 0
                     : i == 1       ? all - 1
                                    : (int64_t)(((uint64_t)i * 0x9e3779b97f4a7c15u) % (uint64_t)all);
        sum e = w->pass == PASS_FORWARD ? forward_element(w, at)
                : w->pass == PASS_DATA  ? data_element(w, at)
                                        : weights_element(w, at);
        w->sample[i].at = at;
        w->sample[i].want = e.value;
        w->sample[i].bound = (e.terms + 3) * (FLT_EPSILON / 2) * e.magnitude + FLT_MIN;
    }
}

static double check_window(void *arg)
{
    const window *w = arg;
    double worst = 0;
    for (int i = 0; i < w->samples; i++) {
        double e = fabs(w->plain[w->output][w->sample[i].at] - w->sample[i].want) / w->sample[i].bound;
        if (!(e <= worst)) worst = e;
    }
    return worst;
}

static void poison_window(void *arg)
{
    window *w = arg;
    memset(w->plain[w->output], 0xff, sizeof(float) * (size_t)w->count[w->output]);
    memset(w->ours[w->output], 0xff, sizeof(float) * (size_t)w->count[w->output]);
}

static void drop_operands(window *w)
{
    for (int i = 0; i < 3; i++) {
        bench_free(w->plain[i], sizeof(float) * (size_t)w->count[i]);
        bench_free(w->ours[i], sizeof(float) * (size_t)w->count[i] + 8192);
    }
}

static bool make_operands(bench *b, window *w, const conv_shape *s)
{
    memset(w, 0, sizeof *w);
    w->s = *s;
    w->pass = (conv_pass)b->o.pass;
    w->output = w->pass == PASS_FORWARD ? 2 : w->pass == PASS_DATA ? 0 : 1;
    w->o = (strata_conv){.pad = {s->pad, s->pad}, .stride = {s->stride, s->stride}, .groups = s->groups};
    int64_t cg = s->c / s->groups;
    w->count[0] = s->n * s->c * s->h * s->w;
    w->count[1] = s->o * cg * s->r * s->s;
    w->count[2] = s->n * s->o * s->p * s->q;
    for (int i = 0; i < 3; i++) {
        w->plain[i] = bench_alloc(sizeof(float) * (size_t)w->count[i]);
        char *p = bench_alloc(sizeof(float) * (size_t)w->count[i] + 8192);
        if (!w->plain[i] || !p) return false;
        w->ours[i] = (float *)(p + (size_t)i * 21 * 64); /* not all at the same offset from a page */
        bench_random(w->plain[i], w->count[i], false, (uint64_t)i + 1);
    }
    bool nchw = b->o.nchw;
    strata_tensor (*image)(const void *, strata_type, int64_t, int64_t, int64_t, int64_t) =
        nchw ? strata_nchw : strata_nhwc;
    w->t[0] = image(w->ours[0], STRATA_F32, s->n, s->c, s->h, s->w);
    w->t[2] = image(w->ours[2], STRATA_F32, s->n, s->o, s->p, s->q);
    const int64_t wd[4] = {s->o, cg, s->r, s->s}, hwio[4] = {1, s->o, s->s * cg * s->o, cg * s->o};
    w->t[1] = strcmp(b->o.filters, "oihw") == 0   ? strata_nchw(w->ours[1], STRATA_F32, s->o, cg, s->r, s->s)
              : strcmp(b->o.filters, "ohwi") == 0 ? strata_nhwc(w->ours[1], STRATA_F32, s->o, cg, s->r, s->s)
                                                  : strata_array(w->ours[1], STRATA_F32, 4, wd, hwio);
    w->layout[0] = strata_nchw(w->plain[0], STRATA_F32, s->n, s->c, s->h, s->w);
    w->layout[1] = strata_nchw(w->plain[1], STRATA_F32, s->o, cg, s->r, s->s);
    w->layout[2] = strata_nchw(w->plain[2], STRATA_F32, s->n, s->o, s->p, s->q);
    for (int i = 0; i < 3; i++)
        if (strata_copy(b->h, w->layout[i], w->t[i])) return false;
    return true;
}

static void add_contenders(bench *b, window *w, bench_case *c)
{
    strata_plan *plan = NULL;
    call *q = calloc(1, sizeof *q);
    if (q) q->w = w, q->h = b->h;
    contender *k = case_add(c, "strata", CLASS_OURS, run_strata, q, drop_call);
    if (k) k->fetch = fetch_ours;
    if (make_plan(b->h, w, &plan) == STRATA_OK) {
        if (k) snprintf(k->note, sizeof k->note, "%s", strata_plan_kernel(plan));
        q = b->o.plan ? calloc(1, sizeof *q) : NULL;
        if (q) {
            q->w = w, q->h = b->h, q->plan = plan;
            k = case_add(c, "strata-plan", CLASS_OURS, run_plan, q, drop_call);
            if (k)
                k->fetch = fetch_ours, k->pointer = true,
                snprintf(k->note, sizeof k->note, "%s", strata_plan_kernel(plan));
        } else {
            strata_plan_destroy(plan);
        }
    }
    for (int i = 0; i < b->peers.n; i++) {
        const peer *e = &b->peers.p[i];
        for (int best = 0; e->kind == PEER_DNNL && best < 2; best++) {
            char name[40];
            q = calloc(1, sizeof *q);
            if (!q) return;
            q->w = w;
            q->op = dnnl_conv(e->dnnl, &w->s, w->pass,
                              best        ? DNNL_BEST
                              : b->o.nchw ? DNNL_NCHW
                                          : DNNL_NHWC,
                              w->plain[0], w->plain[1], w->plain[2]);
            if (!q->op) {
                free(q);
                continue;
            }
            snprintf(name, sizeof name, best ? "%s-any" : "%s", e->name);
            k = case_add(c, name, best ? CLASS_PREPARED : CLASS_PEER, run_dnnl, q, drop_call);
            if (k) k->fetch = fetch_dnnl, snprintf(k->note, sizeof k->note, "%s", dnnl_impl(q->op));
        }
    }
}

static bool one_window(bench *b, const conv_shape *s)
{
    window *w = malloc(sizeof *w);
    bench_case c = {.unit = "GFLOP/s", .peak_scale = 1};
    bool ok = w != NULL;
    if (ok && !make_operands(b, w, s)) {
        fprintf(stderr, "strata bench: no memory for %s, or its operands cannot be copied\n", s->name);
        drop_operands(w);
        free(w);
        return false;
    }
    if (!ok) return false;
    make_reference(w);
    snprintf(c.name, sizeof c.name, "%s", s->name);
    c.flops = 2.0 * (double)w->count[2] * (double)(s->c / s->groups * s->r * s->s);
    c.bytes = 4.0 * (double)(w->count[0] + w->count[1] + w->count[2]);
    c.work = c.flops * 1e-9;
    c.check = check_window;
    c.check_arg = w;
    c.poison = poison_window;
    ok = convolve(b->h, w) == STRATA_OK;
    if (!ok)
        cli_failed("bench", b->h);
    else {
        add_contenders(b, w, &c);
        ok = bench_measure(b, &c);
    }
    drop_operands(w);
    free(w);
    return ok;
}

/* ---- which convolutions ---------------------------------------------------------------------------------------------------- */
static const struct {
    const char *name, *shapes;
} sets[] = {
    {"resnet50", "1x3x224x224:64x7x7:s2:p3,1x64x56x56:64x1x1,1x64x56x56:64x3x3:p1,1x64x56x56:256x1x1,"
                 "1x256x56x56:64x1x1,1x256x56x56:128x1x1,"
                 "1x128x56x56:128x3x3:s2:p1,1x128x28x28:512x1x1,1x256x56x56:512x1x1:s2,1x512x28x28:128x1x1,"
                 "1x128x28x28:128x3x3:p1,"
                 "1x512x28x28:256x1x1,1x256x28x28:256x3x3:s2:p1,1x256x14x14:1024x1x1,1x512x28x28:1024x1x1:s2,"
                 "1x1024x14x14:256x1x1,"
                 "1x256x14x14:256x3x3:p1,1x1024x14x14:512x1x1,1x512x14x14:512x3x3:s2:p1,1x512x7x7:2048x1x1,"
                 "1x1024x14x14:2048x1x1:s2,"
                 "1x2048x7x7:512x1x1,1x512x7x7:512x3x3:p1"},
    {"mobile", "1x32x112x112:32x3x3:p1:g32,1x96x112x112:96x3x3:s2:p1:g96,1x144x56x56:144x3x3:p1:g144,"
               "1x384x14x14:384x3x3:p1:g384,"
               "1x256x56x56:256x3x3:p1:g32"},
};
enum { SETS = sizeof sets / sizeof *sets };

/* "NxCxHxW:OxRxS:sN:pN:gN"; the name is kept in `text`. */
static bool parse_shape(const char *word, int64_t batch, conv_shape *s, char *text, size_t size)
{
    char part[64];
    int64_t v[4];
    memset(s, 0, sizeof *s);
    s->stride = s->groups = 1;
    for (int i = 0; *word; i++) {
        size_t len = strcspn(word, ":");
        if (len == 0 || len >= sizeof part) return false;
        memcpy(part, word, len);
        part[len] = 0;
        word += len + (word[len] == ':');
        if (i == 0) {
            if (cli_dims(part, 1, 1 << 20, v, 4) != 4) return false;
            s->n = v[0], s->c = v[1], s->h = v[2], s->w = v[3];
        } else if (i == 1) {
            int n = cli_dims(part, 1, 1 << 20, v, 3);
            if (n < 2) return false;
            s->o = v[0], s->r = v[1], s->s = n == 3 ? v[2] : v[1];
        } else {
            int64_t *to = part[0] == 's'   ? &s->stride
                          : part[0] == 'p' ? &s->pad
                          : part[0] == 'g' ? &s->groups
                                           : NULL;
            if (!to || !cli_integer(part + 1, part[0] == 'p' ? 0 : 1, 1 << 20, to)) return false;
        }
    }
    if (batch) s->n = batch;
    if (!s->o || s->c % s->groups || s->o % s->groups || s->h + 2 * s->pad < s->r || s->w + 2 * s->pad < s->s)
        return false;
    s->p = (s->h + 2 * s->pad - s->r) / s->stride + 1;
    s->q = (s->w + 2 * s->pad - s->s) / s->stride + 1;
    int used = snprintf(text, size, "%lldx%lldx%lldx%lld %lldx%lldx%lld", (long long)s->n, (long long)s->c,
                        (long long)s->h, (long long)s->w, (long long)s->o, (long long)s->r, (long long)s->s);
    if (s->stride > 1) used += snprintf(text + used, size - (size_t)used, "/%lld", (long long)s->stride);
    if (s->groups > 1) snprintf(text + used, size - (size_t)used, " g%lld", (long long)s->groups);
    s->name = text;
    return true;
}

static int add_shapes(const char *list, int64_t batch, conv_shape *out, char (*text)[64], int n)
{
    while (*list && n >= 0) {
        size_t len = strcspn(list, ",");
        char word[128];
        bool set = false;
        if (len >= sizeof word) return cli_bad("bench", "'%.40s...' is not a convolution or a set", list), -1;
        memcpy(word, list, len);
        word[len] = 0;
        for (int i = 0; i < SETS && !set; i++)
            if (strcmp(word, sets[i].name) == 0)
                n = add_shapes(sets[i].shapes, batch, out, text, n), set = true;
        if (!set && n == MAX_SHAPES) return cli_bad("bench", "more than %d convolutions", MAX_SHAPES), -1;
        if (!set && !parse_shape(word, batch, &out[n], text[n], 64)) {
            const char *near = cli_nearest(word, &sets[0].name, SETS, sizeof *sets);
            cli_bad("bench",
                    "'%s' is neither NxCxHxW:OxRxS[:sSTRIDE][:pPAD][:gGROUPS] (filters within the padded "
                    "image, groups dividing both channels) nor a "
                    "set%s%s%s; sets: resnet50 mobile",
                    word, near ? "; did you mean '" : "", near ? near : "", near ? "'" : "");
            return -1;
        }
        if (!set) n++;
        list += len;
        if (*list == ',') list++;
    }
    return n;
}

int bench_conv(bench *b, const char **words, int n)
{
    static conv_shape s[MAX_SHAPES];
    static char text[MAX_SHAPES][64];
    int count = 0;
    if (b->o.f64) return cli_bad("bench", "conv is measured in f32 only");
    for (int i = 0; i < n; i++)
        if ((count = add_shapes(words[i], b->o.batch, s, text, count)) < 0) return CLI_USAGE;
    if (n == 0) count = add_shapes("resnet50", b->o.batch, s, text, 0);
    for (int i = 0; i < count; i++) {
        double bytes = 16.0 * ((double)s[i].n * (double)s[i].c * (double)s[i].h * (double)s[i].w +
                               (double)s[i].n * (double)s[i].o * (double)s[i].p * (double)s[i].q +
                               (double)s[i].o * (double)s[i].c * (double)s[i].r * (double)s[i].s);
        if (bytes > 0.7 * (double)b->device.memory)
            return cli_bad("bench", "%s needs %.1f GB, more than this machine can give", s[i].name,
                           bytes * 1e-9);
    }
    report_column(b, "strata", NULL);
    if (b->o.plan) report_column(b, "strata", "plan");
    for (int i = 0; i < b->peers.n; i++)
        if (b->peers.p[i].kind == PEER_DNNL)
            report_column(b, b->peers.p[i].name, NULL), report_column(b, b->peers.p[i].name, "any");
    peers_note(&b->peers,
               "convolution %s, images %s, filters %s; onednn: images in the same layout, its filters "
               "reordered before; onednn-any: images too",
               b->o.pass == PASS_FORWARD ? "forward"
               : b->o.pass == PASS_DATA  ? "backward data"
                                         : "backward weights",
               b->o.nchw ? "nchw" : "nhwc", b->o.filters);
    b->total = count;
    cli_progress_begin(&b->progress, b->total);
    bool ok = true;
    for (int i = 0; i < count; i++) ok = one_window(b, &s[i]) && ok;
    return ok ? CLI_OK : CLI_FAILED;
}
