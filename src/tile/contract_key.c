/* SPDX-License-Identifier: Apache-2.0 */
/* contract_key.c - contractions as the tuning database and batch-invariant choices see them.
 *
 * The key names types, sizes, layouts and the epilogue. The row count of a plain product (its outermost row axis otherwise, the images of a
 * convolution) and the item counts are rounded up to buckets, two an octave above 16, so that a batch that changes from call to call is
 * one problem. */
#include "tile/contract.h"
#include <stdio.h>
#include <string.h>

static int64_t bucket(int64_t n)
{
    if (n <= 16) return n;
    int64_t up = 16;
    while (up < n && up < INT64_MAX / 4) up += up % 3 ? up / 2 : up / 3; /* 16 24 32 48 64 ... */
    return up;
}

typedef struct line {
    char *to;
    size_t n, at;
} line;
static void put(line *l, const char *fmt, ...) ST_PRINTF(2, 3);
static void put(line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int k = vsnprintf(l->to + l->at, l->n - l->at, fmt, ap);
    va_end(ap);
    if (k > 0) l->at = (size_t)st_min64((int64_t)(l->at + (size_t)k), (int64_t)l->n - 1);
}

/* The row axis whose length is the number of rows, images, sequences: the outermost that no bound steps along; -1: none */
static int rows_axis(const st_contract *c)
{
    for (int d = 0; d < (int)c->m.count; d++) {
        bool bound = false;
        for (int b = 0; b < (int)c->bounds; b++) bound |= c->bound[b].m == d;
        if (!bound) return d;
    }
    return -1;
}

static void put_axes(line *l, const char *name, const st_axes *x, int bucketed)
{
    put(l, " %s", name);
    if (!x->count) put(l, "1");
    for (int d = 0; d < (int)x->count; d++)
        put(l, "%s%s%lld", d ? "x" : "", d == bucketed ? "<=" : "",
            (long long)(d == bucketed ? bucket(x->ax[d].len) : x->ax[d].len));
}

/* "row", "col" or "any" by the innermost strides of rows and columns; "+" where the other stride keeps 16 bytes' alignment */
static void put_layout(line *l, const char *name, const st_axes *rows, const st_axes *cols, int which,
                       int64_t type)
{
    const st_axis none = {1, 0, 0, 0};
    const st_axis *r = rows->count ? &rows->ax[rows->count - 1] : &none,
                  *c = cols->count ? &cols->ax[cols->count - 1] : &none;
    const int64_t rs = st_axis_stride(r, which), cs = st_axis_stride(c, which);
    const bool row = c->len == 1 || cs == 1, col = !row && (r->len == 1 || rs == 1);
    const int64_t other = row ? rs : cs, bits = other * (int64_t)strata_type_bits((strata_type)type);
    put(l, " %s %s%s%s", name, strata_type_name((strata_type)type),
        row   ? " row"
        : col ? " col"
              : " any",
        bits % 128 ? "" : "+");
}

static void key(const st_problem *p, char *text, size_t n)
{
    st_contract c = *(const st_contract *)p->data;
    line l = {text, n, 0};
    st_tile_simplify(&c);
    const bool plain = !c.bounds && c.m.count <= 1 && c.n.count <= 1 && c.k.count <= 1;
    text[0] = 0;
    put(&l, "%s", plain ? "gemm" : c.bounds ? "window" : "contract");
    put_axes(&l, "m", &c.m, rows_axis(&c));
    put_axes(&l, "n", &c.n, -1);
    put_axes(&l, "k", &c.k, -1);
    for (int d = 0; d < (int)c.batch.count; d++)
        put(&l, " items<=%lld", (long long)bucket(c.batch.ax[d].len));
    put_layout(&l, "A", &c.m, &c.k, 'a', c.ta);
    put_layout(&l, "B", &c.k, &c.n, 'b', c.tb);
    put_layout(&l, "C", &c.m, &c.n, 'c', c.tc);
    if (c.math) put(&l, " math %d", (int)c.math);
    if (c.unaligned) put(&l, " unaligned");
    uint64_t rest = 0;
    if (!plain) { /* all strides but those of axes whose length is bucketed, and the bounds */
        const int rows = rows_axis(&c);
        for (int i = 0; i < 3; i++) {
            const st_axes *x = i == 0 ? &c.m : i == 1 ? &c.n : &c.k;
            for (int d = 0; d < (int)x->count; d++) {
                st_axis a = x->ax[d];
                if (i == 0 && d == rows) a = (st_axis){0, a.a != 0, a.b != 0, a.c != 0};
                rest = st_hash(&a, sizeof a, rest + 1);
            }
        }
        rest = st_hash(c.bound, sizeof *c.bound * (size_t)c.bounds, rest);
    }
    const st_rule rules[3] = {c.rule_a, c.rule_b, c.rule_c};
    for (int i = 0; i < 3; i++)
        if (st_rule_any(&rules[i])) rest = st_hash(&rules[i], sizeof rules[i], rest + 3 + (uint64_t)i);
    if (p->text) rest = st_hash(p->text, strlen(p->text), rest + 2);
    if (rest) put(&l, "%s #%08x", p->text ? " epilogue" : "", (unsigned)(rest ^ rest >> 32));
}

/* Many rows, so that kernels for few of them are not in question; one item. Several row axes, or a window's, are those of one image: images
 * are items where batch invariance is asked for (dnn/conv_parts.c). */
static bool canonical(const st_problem *p, void *data)
{
    st_contract *c = data;
    memcpy(c, p->data, p->bytes);
    if (!c->bounds && c->m.count == 1) c->m.ax[0].len = 4096;
    for (int d = 0; d < (int)c->batch.count; d++) c->batch.ax[d].len = 1;
    return true;
}

const st_engine st_contract_engine = {ST_OP_CONTRACT, key, canonical};
