/* SPDX-License-Identifier: Apache-2.0 */
/* conv_parts.c - a convolution as windowed contractions: axes, strides and the bounds that padding is. */
#include "dnn/conv.h"
#include <stdio.h>
#include <string.h>

static void axis(st_axes *l, int64_t len, int64_t a, int64_t b, int64_t c)
{
    l->ax[l->count++] = (st_axis){len, a, b, c};
}

/* offset + im * i + ik * j over i < ml, j < kl may leave [0, limit): add the bound */
static void bound(st_contract *t, int64_t limit, int64_t offset, int64_t m, int64_t im, int64_t k, int64_t ik)
{
    const int64_t me = im * (t->m.ax[m].len - 1), ke = ik * (t->k.ax[k].len - 1);
    const int64_t lo = offset + st_min64(me, 0) + st_min64(ke, 0),
                  hi = offset + st_max64(me, 0) + st_max64(ke, 0);
    if (lo >= 0 && hi < limit) return;
    t->bound[t->bounds++] = (st_bound){limit, offset, m, im, k, ik};
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

static void operand_strides(const st_conv *c, st_contract *t)
{
    const int64_t og = c->o / c->groups;
    for (int i = 0; i < c->operands; i++) {
        const strata_tensor *x = &c->operand[i].tensor;
        st_epi_operand *e = &t->epi[i];
        snprintf(e->name, sizeof e->name, "%s", c->operand[i].name);
        e->type = x->type;
        int64_t s[4] = {0}; /* strides along n, c, h, w */
        if (c->along_channels >> i & 1)
            s[1] = x->stride[0];
        else
            for (int d = 0; d < x->rank && x->rank <= 4; d++)
                s[4 - x->rank + d] = x->dim[d] == 1 ? 0 : x->stride[d];
        e->sm[0] = s[0], e->sm[1] = s[2], e->sm[2] = s[3];
        e->sn[0] = s[1];
        e->sb[0] = s[1] * og;
    }
    t->epi_operands = c->operands;
}

static void forward(const st_conv *c, st_conv_part *part)
{
    st_contract *t = &part->problem;
    const int64_t *x = c->x.stride, *w = c->w.stride, *y = c->y.stride, cg = c->c / c->groups,
                  og = c->o / c->groups;
    const int64_t wr = c->flip ? -w[2] : w[2], ws = c->flip ? -w[3] : w[3];
    axis(&t->m, c->n, x[0], 0, y[0]);
    axis(&t->m, c->p, x[2] * c->stride[0], 0, y[2]);
    axis(&t->m, c->q, x[3] * c->stride[1], 0, y[3]);
    axis(&t->k, c->r, x[2] * c->dilation[0], wr, 0);
    axis(&t->k, c->s, x[3] * c->dilation[1], ws, 0);
    axis(&t->k, cg, x[1], w[1], 0);
    axis(&t->n, og, 0, w[0], y[1]);
    axis(&t->batch, c->groups, x[1] * cg, w[0] * og, y[1] * og);
    bound(t, c->h, -c->pad[0], 1, c->stride[0], 0, c->dilation[0]);
    bound(t, c->wd, -c->pad[1], 2, c->stride[1], 1, c->dilation[1]);
    part->offset[0] = -c->pad[0] * x[2] - c->pad[1] * x[3];
    part->offset[1] = c->flip ? (c->r - 1) * w[2] + (c->s - 1) * w[3] : 0;
    operand_strides(c, t);
}

static void weights(const st_conv *c, st_conv_part *part)
{
    st_contract *t = &part->problem;
    const int64_t *x = c->x.stride, *w = c->w.stride, *y = c->y.stride, cg = c->c / c->groups,
                  og = c->o / c->groups;
    const int64_t wr = c->flip ? -w[2] : w[2], ws = c->flip ? -w[3] : w[3];
    axis(&t->m, c->r, x[2] * c->dilation[0], 0, wr);
    axis(&t->m, c->s, x[3] * c->dilation[1], 0, ws);
    axis(&t->m, cg, x[1], 0, w[1]);
    axis(&t->k, c->n, x[0], y[0], 0);
    axis(&t->k, c->p, x[2] * c->stride[0], y[2], 0);
    axis(&t->k, c->q, x[3] * c->stride[1], y[3], 0);
    axis(&t->n, og, 0, y[1], w[0]);
    axis(&t->batch, c->groups, x[1] * cg, y[1] * og, w[0] * og);
    bound(t, c->h, -c->pad[0], 0, c->dilation[0], 1, c->stride[0]);
    bound(t, c->wd, -c->pad[1], 1, c->dilation[1], 2, c->stride[1]);
    part->offset[0] = -c->pad[0] * x[2] - c->pad[1] * x[3];
    part->offset[2] = c->flip ? (c->r - 1) * w[2] + (c->s - 1) * w[3] : 0;
}

/* The taps k0, k0 + step, ... that reach image positions i0, i0 + stride, ...: position i0 + stride * j meets tap k0 + step * t at
 * output position first + j - back * t. */
typedef struct residue {
    int64_t positions, taps, k0, step, first, back;
} residue;

static residue residue_of(const st_conv *c, int d, int64_t i0)
{
    const int64_t s = c->stride[d], dil = c->dilation[d], kernel = d ? c->s : c->r, image = d ? c->wd : c->h;
    const int64_t g = gcd(dil, s);
    residue x = {.positions = st_ceil_div(image - i0, s), .step = s / g, .back = dil / g, .k0 = -1};
    for (int64_t k = 0; k < kernel && k < x.step; k++)
        if ((i0 + c->pad[d] - k * dil) % s == 0) {
            x.k0 = k;
            break;
        }
    if (x.k0 < 0) return x;
    x.taps = st_ceil_div(kernel - x.k0, x.step);
    x.first = (i0 + c->pad[d] - x.k0 * dil) / s;
    return x;
}

static bool data_gradient(const st_conv *c, int64_t i, st_conv_part *part)
{
    st_contract *t = &part->problem;
    const int64_t *x = c->x.stride, *w = c->w.stride, *y = c->y.stride, cg = c->c / c->groups,
                  og = c->o / c->groups;
    const int64_t across = st_min64(c->stride[1], c->wd), y0 = i / across, x0 = i % across;
    const residue ry = residue_of(c, 0, y0), rx = residue_of(c, 1, x0);
    const bool taps = ry.taps && rx.taps;
    if (!taps && c->accumulate) return false;
    const int64_t wr = c->flip ? -w[2] : w[2], ws = c->flip ? -w[3] : w[3];
    axis(&t->m, c->n, y[0], 0, x[0]);
    axis(&t->m, ry.positions, y[2], 0, x[2] * c->stride[0]);
    axis(&t->m, rx.positions, y[3], 0, x[3] * c->stride[1]);
    axis(&t->n, cg, 0, w[1], x[1]);
    axis(&t->batch, c->groups, y[1] * og, w[0] * og, x[1] * cg);
    part->offset[2] = y0 * x[2] + x0 * x[3];
    if (!taps) { /* no output reads these positions: a sum of nothing */
        axis(&t->k, 0, 0, 0, 0);
        return true;
    }
    axis(&t->k, ry.taps, -y[2] * ry.back, wr * ry.step, 0);
    axis(&t->k, rx.taps, -y[3] * rx.back, ws * rx.step, 0);
    axis(&t->k, og, y[1], w[0], 0);
    bound(t, c->p, ry.first, 1, 1, 0, -ry.back);
    bound(t, c->q, rx.first, 2, 1, 1, -rx.back);
    part->offset[0] = ry.first * y[2] + rx.first * y[3];
    part->offset[1] = ry.k0 * wr + rx.k0 * ws + (c->flip ? (c->r - 1) * w[2] + (c->s - 1) * w[3] : 0);
    return true;
}

/* The images, outermost axis of the rows, become items of the batch. */
static void take_images_apart(st_contract *t)
{
    const st_axis images = t->m.ax[0];
    for (int d = 0; d + 1 < (int)t->m.count; d++) t->m.ax[d] = t->m.ax[d + 1];
    for (int d = (int)t->batch.count; d > 0; d--) t->batch.ax[d] = t->batch.ax[d - 1];
    memset(&t->m.ax[--t->m.count], 0, sizeof images);
    t->batch.ax[0] = images;
    t->batch.count++;
    for (int b = 0; b < (int)t->bounds; b++) t->bound[b].m--;
    for (int i = 0; i < (int)t->epi_operands; i++) {
        st_epi_operand *e = &t->epi[i];
        const int64_t step = e->sm[0];
        for (int d = 0; d + 1 < ST_AXES; d++) e->sm[d] = e->sm[d + 1];
        for (int d = ST_AXES - 1; d > 0; d--) e->sb[d] = e->sb[d - 1];
        e->sm[ST_AXES - 1] = 0;
        e->sb[0] = step;
    }
}

int64_t st_conv_parts(const st_conv *c)
{
    switch (c->kind) {
    case ST_CONV_FORWARD: return c->n && c->o ? 1 : 0;
    case ST_CONV_WEIGHTS: return c->c && c->o ? 1 : 0;
    default:
        return c->n && c->c && c->h && c->wd ? st_min64(c->stride[0], c->h) * st_min64(c->stride[1], c->wd)
                                             : 0;
    }
}

bool st_conv_part_at(const st_conv *c, int64_t i, st_conv_part *part)
{
    memset(part, 0, sizeof *part);
    part->problem.ta = part->problem.tb = part->problem.tc = c->x.type;
    if (c->kind == ST_CONV_FORWARD)
        forward(c, part);
    else if (c->kind == ST_CONV_WEIGHTS)
        weights(c, part);
    else if (!data_gradient(c, i, part))
        return false;
    if (c->images_apart && c->kind != ST_CONV_WEIGHTS) take_images_apart(&part->problem);
    st_tile_simplify(&part->problem);
    return true;
}

void st_conv_data(const st_conv *c, const st_conv_part *part, void *const in[], void **data)
{
    for (int i = 0; i < 3; i++) data[i] = (char *)in[i] + part->offset[i] * c->es;
    for (int i = 0; i < c->operands; i++) data[3 + i] = in[3 + i];
}
