/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - what a plan says of itself: written when the plan is made, so that describing costs nothing and cannot fail. */
#include "plan/plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct st_text {
    char *s;
    size_t n, cap;
} st_text;

static void put(st_text *t, const char *fmt, ...) ST_PRINTF(2, 3);
static void put(st_text *t, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int k = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (k < 0) return;
    size_t len = (size_t)k < sizeof line ? (size_t)k : sizeof line - 1;
    if (t->n + len + 1 > t->cap) {
        size_t cap = (t->cap + len + 1) * 2;
        char *s = realloc(t->s, cap);
        if (!s) return;
        t->s = s;
        t->cap = cap;
    }
    memcpy(t->s + t->n, line, len + 1);
    t->n += len;
}

static void put_size(st_text *t, size_t bytes)
{
    if (bytes < 10240)
        put(t, "%zu B", bytes);
    else if (bytes < 10u << 20)
        put(t, "%.1f KiB", (double)bytes / 1024);
    else
        put(t, "%.1f MiB", (double)bytes / (1 << 20));
}

void st_order_words(const st_candidate *c, char *text, size_t n)
{
    if (c->order_arg)
        snprintf(text, n, "%s [%lld]", c->order ? c->order : "", (long long)c->order_arg);
    else
        snprintf(text, n, "%s", c->order ? c->order : "");
}

static void put_level(st_text *t, const char *name, int m, int n, int k)
{
    if (!m && !n && !k) return;
    put(t, "%s %d x %d", name, m, n);
    if (k) put(t, " x %d", k);
}

static void put_tile(st_text *t, const strata_tile *x, st_where where)
{
    static const strata_tile none;
    if (!memcmp(x, &none, sizeof none)) return;
    const bool cpu = where == ST_ON_CPU;
    put(t, "  tile       ");
    put_level(t, "block", x->block_m, x->block_n, x->block_k);
    put_level(t, cpu ? ", registers" : ", warp", x->warp_m, x->warp_n, x->warp_k);
    put_level(t, cpu ? ", vector" : ", instruction", x->instruction_m, x->instruction_n, x->instruction_k);
    if (x->stages) put(t, ", %d stages", x->stages);
    if (x->cluster_m * x->cluster_n > 1) put(t, ", cluster %d x %d", x->cluster_m, x->cluster_n);
    if (x->split_k > 1) put(t, ", k in %d parts", x->split_k);
    if (x->raster) put(t, ", raster %d", x->raster);
    put(t, "\n");
}

/* The nearest of the others, by what the choice was made on. */
static const st_candidate *runner_up(const st_choice *c)
{
    const st_candidate *next = NULL;
    for (int i = 0; i < c->count; i++) {
        const st_candidate *x = &c->list[i];
        if (x == c->best || x->us < 0) continue;
        if (c->by == ST_BY_MEASUREMENT && !(x->measured > 0)) continue;
        const double a = c->by == ST_BY_MEASUREMENT ? x->measured : x->us;
        if (!next || a < (c->by == ST_BY_MEASUREMENT ? next->measured : next->us)) next = x;
    }
    return next;
}

static void put_why(st_text *t, const st_choice *c)
{
    const st_candidate *best = c->best, *next = runner_up(c);
    put(t, "  why        ");
    if (c->by == ST_BY_CODE)
        put(t, "the plan's code says so");
    else if (c->by == ST_BY_CALLER)
        put(t, "the caller asked for it");
    else if (c->by == ST_BY_MEASUREMENT)
        put(t, "least measured time, %.2f us%s", best->measured,
            best == c->model ? ", and least predicted time" : "");
    else
        put(t, "least predicted time");
    if (next && c->by == ST_BY_MEASUREMENT)
        put(t, "; next %s, %.2f us", next->kernel, next->measured);
    else if (next && c->by == ST_BY_PREDICTION && best->us > 0)
        put(t, "; next %s, %.2f times as long", next->kernel, next->us / best->us);
    else if (!next && c->by == ST_BY_PREDICTION)
        put(t, "; no other can do it");
    if (c->model && best != c->model && c->by != ST_BY_PREDICTION)
        put(t, "; prediction prefers %s", c->model->kernel);
    put(t, "\n");
}

void st_plan_write_text(strata_plan *p, const st_choice *c)
{
    st_text t = {0};
    const st_candidate *best = c->best;
    put(&t, "%s on %s\n", p->title, p->device);
    put(&t, "  kernel     %s    workspace ", best->kernel);
    put_size(&t, p->workspace);
    put(&t, "    predicted %.1f us%s\n", p->chosen.us, p->where == ST_ON_CPU ? " on one thread" : "");
    if (p->flops > 0 || p->bytes > 0)
        put(&t, "  work       %.4g Mflop, %.4g MB at least, %.3g flop/byte\n", p->flops * 1e-6,
            p->bytes * 1e-6, p->bytes > 0 ? p->flops / p->bytes : 0.0);
    put_tile(&t, &best->tile, p->where);
    if (best->order) put(&t, "  order      %s\n", p->order);
    if (c->reordered) {
        char words[192];
        st_order_words(c->model, words, sizeof words);
        put(&t, "  reordered  the usual choice, %s, sums so: %s\n", c->model->kernel, words);
    }
    put_why(&t, c);
    if (p->code[0]) put(&t, "  code       %s\n", p->code);
    for (int i = 0; i < c->count; i++)
        if (&c->list[i] != best && c->list[i].us >= 0) {
            put(&t, "  also       %-40s predicted %.1f us", c->list[i].kernel, c->list[i].us);
            if (c->list[i].measured > 0) put(&t, ", measured %.2f us", c->list[i].measured);
            if (!st_same_order(&c->list[i], best)) put(&t, ", another order");
            put(&t, "\n");
        }
    for (int i = 0; i < c->count; i++)
        if (c->list[i].us < 0) put(&t, "  refused    %-40s %s\n", c->list[i].kernel, c->list[i].why);
    if (c->full)
        put(&t, "  left out   candidates beyond the first %d, for which the list has no room\n",
            ST_MAX_CANDIDATES);
    if (t.n && t.s[t.n - 1] == '\n') t.s[t.n - 1] = 0;
    p->text = t.s;
}
