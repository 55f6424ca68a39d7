/* SPDX-License-Identifier: Apache-2.0 */
/* window_padded.c - the direct and the taps form on a padded copy of the image, for images of few channels.
 *
 * With 1 to 16 channels the border costs more than the image: nearly every tile meets it, and a tap is a run of a few steps. A
 * copy in which the bounds always hold makes a window's row one run, without a test. It is made for a group of images that fits
 * GROUP_BYTES (the shape alone fixes it), channels innermost whatever the image's own layout; then the form runs on the copy as on a
 * problem without bounds. Groups along k (weight gradient) are added in order. */
#include "tile/window.h"
#include <string.h>
#include <stdlib.h>

enum { GROUP_BYTES = 4 << 20, LARGEST_IMAGE = 8 << 20, ROWS_A_TASK = 16 };

/* The copy: element [outer...][y][x][inner...]; y and x are the two bounded coordinates (extent 1 where there is one only). */
struct st_win_pad {
    int64_t es;
    int64_t outer_count, outer_len[3 * ST_AXES], outer_stride[3 * ST_AXES]; /* of the image, in elements */
    int64_t inner_count, inner_len[ST_AXES], inner_stride[ST_AXES], inner; /* inner: product of the lengths */
    int64_t extent[2], first[2], limit[2],
        stride[2];               /* coordinates first .. first + extent - 1; stride in the image */
    int64_t origin[2];           /* coordinate of the image operand's address */
    int64_t outer;               /* product of outer_len, for a whole group */
    int group_axis;              /* index in outer_len, -1: none */
    int64_t group, groups, rest; /* units of the group axis a group, full groups, units of the last one */
    int64_t shift[3], epi_shift[ST_EPI_OPERANDS]; /* bytes that operands move from group to group */
    int64_t base;                                 /* elements from the copy's start to the form's operand A */
    bool along_k;
    st_win_plan *plan[2]; /* for a full group and for the last one */
};

static void add_outer(st_win_pad *d, st_axis *x)
{
    d->outer_len[d->outer_count] = x->len;
    d->outer_stride[d->outer_count++] = x->a;
}

static bool bounded(const st_contract *c, bool is_m, int64_t axis)
{
    for (int64_t b = 0; b < c->bounds; b++)
        if ((is_m ? c->bound[b].m : c->bound[b].k) == axis) return true;
    return false;
}

/* Lays out the copy for contract c and rewrites c to read it; NULL, or why not. */
static const char *lay_out(st_contract *c, bool taps, st_win_pad *d)
{
    memset(d, 0, sizeof *d);
    if (c->bounds == 0) return "there is no padding";
    d->es = c->ta == STRATA_F32 ? 4 : 8;
    d->group_axis = -1;
    d->extent[0] = d->extent[1] = d->limit[0] = d->limit[1] = 1;
    for (int64_t b = 0; b < c->bounds; b++) {
        const st_bound *q = &c->bound[b];
        if (q->m < 0 || q->k < 0 || q->im == 0 || q->ik == 0) return "a bound does not read both m and k";
        const int64_t am = c->m.ax[q->m].a, ak = c->k.ax[q->k].a;
        if (am % q->im || ak % q->ik || am / q->im != ak / q->ik)
            return "a bounded coordinate is not a place in one image";
        for (int64_t e = 0; e < b; e++)
            if (c->bound[e].m == q->m || c->bound[e].k == q->k) return "two bounds read one axis";
        const int64_t me = q->im * (c->m.ax[q->m].len - 1), ke = q->ik * (c->k.ax[q->k].len - 1);
        const int64_t at = 2 - c->bounds + b; /* one bound only: the inner coordinate */
        d->first[at] = q->offset + st_min64(me, 0) + st_min64(ke, 0);
        d->extent[at] = q->offset + st_max64(me, 0) + st_max64(ke, 0) - d->first[at] + 1;
        d->limit[at] = q->limit;
        d->origin[at] = q->offset;
        d->stride[at] = am / q->im;
    }
    /* free axes: those of the rows' own kind lie innermost in the copy (channels), the rest outside (images) */
    st_axes *in = taps ? &c->m : &c->k, *out = taps ? &c->k : &c->m;
    for (int64_t i = 0; i < c->batch.count; i++) add_outer(d, &c->batch.ax[i]);
    for (int64_t i = 0; i < out->count; i++)
        if (!bounded(c, !taps, i)) {
            if (d->group_axis < 0) d->group_axis = (int)d->outer_count;
            add_outer(d, &out->ax[i]);
        }
    d->inner = 1;
    for (int64_t i = in->count - 1; i >= 0; i--)
        if (!bounded(c, taps, i)) {
            d->inner_len[d->inner_count] = in->ax[i].len;
            d->inner_stride[d->inner_count++] = in->ax[i].a;
            in->ax[i].a = d->inner;
            d->inner *= in->ax[i].len;
        }
    /* pitches: x, y, then the outer axes; the group axis with a whole group's length */
    int64_t unit, pitch[2] = {0, d->inner};
    if (st_mul_over(d->extent[1], d->inner, &pitch[0]) || st_mul_over(pitch[0], d->extent[0], &unit) ||
        unit > LARGEST_IMAGE)
        return "the padded copy of one image would take more than 8 MiB";
    int64_t all = unit * d->es;
    for (int64_t i = 0; i < d->outer_count; i++)
        if (i != d->group_axis && (st_mul_over(all, d->outer_len[i], &all) || all > LARGEST_IMAGE))
            return "the padded copy of one image would take more than 8 MiB";
    const int64_t len = d->group_axis < 0 ? 1 : d->outer_len[d->group_axis];
    d->group = st_min64(len, st_max64(1, GROUP_BYTES / all));
    d->groups = len / d->group;
    d->rest = len % d->group;
    d->along_k = taps;
    if (d->group_axis >= 0) d->outer_len[d->group_axis] = d->group;
    int64_t p = unit, at = d->outer_count - 1;
    for (int64_t i = out->count - 1; i >= 0; i--)
        if (!bounded(c, !taps, i)) {
            if (at == d->group_axis) { /* operands move on by a whole group */
                const st_axis x = out->ax[i];
                d->shift[0] = d->group * x.a * d->es;
                d->shift[1] = d->group * x.b * d->es;
                d->shift[2] = d->group * x.c * d->es;
                for (int64_t e = 0; e < c->epi_operands && !taps; e++)
                    d->epi_shift[e] = d->group * c->epi[e].sm[i] *
                                      (int64_t)(strata_type_bits((strata_type)c->epi[e].type) / 8);
                out->ax[i].len = d->group;
            }
            out->ax[i].a = p;
            p *= d->outer_len[at--];
        }
    for (int64_t i = c->batch.count - 1; i >= 0; i--) {
        c->batch.ax[i].a = p;
        p *= d->outer_len[at--];
    }
    d->outer = p / unit;
    for (int64_t b = 0; b < c->bounds; b++) {
        const int64_t x = 2 - c->bounds + b;
        c->m.ax[c->bound[b].m].a = c->bound[b].im * pitch[x];
        c->k.ax[c->bound[b].k].a = c->bound[b].ik * pitch[x];
        d->base += (d->origin[x] - d->first[x]) * pitch[x];
    }
    memset(c->bound, 0, sizeof c->bound);
    c->bounds = 0;
    return NULL;
}

int64_t st_win_pad_size(st_contract *c, bool taps, double *times, const char **why)
{
    st_win_pad d;
    *why = lay_out(c, taps, &d);
    if (*why) return -1;
    const int64_t units = d.group_axis < 0 ? 1 : d.groups * d.group + d.rest;
    *times = (double)units / (double)d.group;
    return d.outer / d.group * units * d.extent[0] * d.extent[1] * d.inner;
}

/* The axis of c that a last, smaller group shortens: the one whose length is `group` and whose place is the group axis. */
static void shorten(st_contract *c, bool taps, const st_contract *before, int64_t len)
{
    st_axes *out = taps ? &c->k : &c->m;
    for (int64_t i = 0; i < out->count; i++)
        if (!bounded(before, !taps, i)) {
            out->ax[i].len = len;
            return;
        }
}

strata_status st_win_padded_build(strata_handle *h, st_win_plan *p, const st_problem *problem,
                                  const st_kernel_row *row)
{
    const bool taps = p->form == ST_WIN_PADTAPS;
    st_win_pad *d = calloc(1, sizeof *d);
    if (!d) return st_fail(&h->err, STRATA_ERROR_MEMORY, "%s: no memory for a plan", problem->who);
    p->pad = d;
    st_contract before = p->c, c = p->c;
    const char *why = lay_out(&c, taps, d);
    if (why) return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED, "%s: %s", problem->who, why);
    size_t inner = 0;
    for (int i = 0; i < (d->rest ? 2 : 1); i++) {
        st_contract part = c;
        if (i) shorten(&part, taps, &before, d->rest);
        st_problem q = *problem;
        q.data = &part;
        strata_status s = st_win_make(h, &q, row, taps ? ST_WIN_TAPS : ST_WIN_DIRECT, &d->plan[i]);
        if (s) return s;
        if (d->plan[i]->head.base.workspace > inner) inner = d->plan[i]->head.base.workspace;
    }
    p->shared = (size_t)st_round_up(d->outer * d->extent[0] * d->extent[1] * d->inner * d->es, 64) + inner;
    p->local = 0;
    p->head.base.run = st_win_padded_run;
    return STRATA_OK;
}

void st_win_pad_free(st_win_pad *d)
{
    if (!d) return;
    for (int i = 0; i < 2; i++)
        if (d->plan[i]) strata_plan_destroy(&d->plan[i]->head.base);
    free(d);
}

typedef struct pad_job {
    const st_win_pad *d;
    const char *image; /* where coordinates are 0 */
    char *copy;
    int64_t group; /* units of the group axis in this group */
} pad_job;

static void copy_pixel(const st_win_pad *d, char *to, const char *from)
{
    if (d->inner_count == 0) {
        memcpy(to, from, (size_t)d->es);
        return;
    }
    int64_t at = 0;
    for (int64_t i = 0; i < d->inner; i += d->inner_len[0]) {
        int64_t off = 0, r = i / d->inner_len[0];
        for (int64_t x = 1; x < d->inner_count; x++) {
            off += r % d->inner_len[x] * d->inner_stride[x];
            r /= d->inner_len[x];
        }
        for (int64_t x = 0; x < d->inner_len[0]; x++, at++)
            memcpy(to + at * d->es, from + (off + x * d->inner_stride[0]) * d->es, d->es == 4 ? 4 : 8);
    }
}

/* Row y of the copy of the image at `from`. */
static void copy_row(const st_win_pad *d, char *to, const char *from, int64_t y)
{
    const int64_t row = d->extent[1] * d->inner * d->es, cy = d->first[0] + y;
    if (cy < 0 || cy >= d->limit[0]) {
        memset(to, 0, (size_t)row);
        return;
    }
    const int64_t lo = st_min64(d->extent[1], st_max64(0, -d->first[1]));
    const int64_t hi = st_max64(lo, st_min64(d->extent[1], d->limit[1] - d->first[1]));
    const char *line = from + (cy * d->stride[0] + (d->first[1] + lo) * d->stride[1]) * d->es;
    char *q = to + lo * d->inner * d->es;
    memset(to, 0, (size_t)(lo * d->inner * d->es));
    memset(to + hi * d->inner * d->es, 0, (size_t)(row - hi * d->inner * d->es));
    const bool packed =
        d->stride[1] == d->inner && (d->inner_count == 0 || (d->inner_count == 1 && d->inner_stride[0] == 1));
    if (packed) {
        memcpy(q, line, (size_t)((hi - lo) * d->inner * d->es));
    } else if (d->inner_count == 1 && d->stride[1] == 1) { /* pixels lie side by side: channel by channel */
        for (int64_t i = 0; i < d->inner; i++) {
            const char *s = line + i * d->inner_stride[0] * d->es;
            if (d->es == 4)
                for (int64_t x = 0; x < hi - lo; x++) ((float *)q)[x * d->inner + i] = ((const float *)s)[x];
            else
                for (int64_t x = 0; x < hi - lo; x++)
                    ((double *)q)[x * d->inner + i] = ((const double *)s)[x];
        }
    } else {
        for (int64_t x = lo; x < hi; x++, q += d->inner * d->es, line += d->stride[1] * d->es)
            copy_pixel(d, q, line);
    }
}

static void copy_task(void *arg, int64_t i, int worker)
{
    const pad_job *j = arg;
    const st_win_pad *d = j->d;
    (void)worker;
    const int64_t slabs = st_ceil_div(d->extent[0], ROWS_A_TASK), y0 = i % slabs * ROWS_A_TASK;
    const int64_t y1 = st_min64(d->extent[0], y0 + ROWS_A_TASK);
    int64_t r = i / slabs, off = 0, place = 0, pitch = d->extent[0] * d->extent[1] * d->inner;
    for (int64_t x = d->outer_count - 1; x >= 0; x--) {
        const int64_t len = x == d->group_axis ? j->group : d->outer_len[x];
        off += r % len * d->outer_stride[x];
        place += r % len * pitch;
        pitch *= d->outer_len[x];
        r /= len;
    }
    char *to = j->copy + place * d->es;
    for (int64_t y = y0; y < y1; y++)
        copy_row(d, to + y * d->extent[1] * d->inner * d->es, j->image + off * d->es, y);
}

strata_status st_win_padded_run(strata_handle *h, const strata_plan *plan, void *const data[],
                                const strata_run *r)
{
    const st_win_plan *p = (const st_win_plan *)plan;
    const st_win_pad *d = p->pad;
    double alpha, beta;
    const uint64_t t0 = st_trace_begin();
    strata_status s = st_contract_scalars(h, &p->head, r, &alpha, &beta);
    if (s) return s;
    char *ws = st_plan_workspace(h, plan, r);
    if (!ws) return h->err.status;
    const size_t copy = (size_t)st_round_up(d->outer * d->extent[0] * d->extent[1] * d->inner * d->es, 64);
    const int64_t total = d->groups + (d->rest > 0);
    for (int64_t g = 0; g < total; g++) {
        const int last = g == d->groups;
        const st_win_plan *q = d->plan[last];
        void *own[3 + ST_EPI_OPERANDS];
        for (int o = 0; o < 3; o++) own[o] = (char *)data[o] + g * d->shift[o];
        for (int64_t e = 0; e < p->c.epi_operands; e++)
            own[3 + e] = (char *)data[3 + e] + g * d->epi_shift[e];
        pad_job j = {.d = d, .copy = ws, .group = last ? d->rest : d->group};
        j.image = (const char *)own[0] - (d->origin[0] * d->stride[0] + d->origin[1] * d->stride[1]) * d->es;
        const int64_t outer = d->outer / d->group * j.group;
        if (alpha != 0)
            st_win_for(h, p, outer * st_ceil_div(d->extent[0], ROWS_A_TASK),
                       (double)(outer * d->extent[0] * d->extent[1] * d->inner) * 0.4e-3, copy_task, &j);
        own[0] = ws + d->base * d->es;
        const strata_scalar va = strata_real(alpha), vb = strata_real(d->along_k && g ? 1 : beta);
        const strata_run sub = {
            .alpha = &va, .beta = &vb, .workspace = ws + copy, .workspace_bytes = q->head.base.workspace};
        s = q->head.base.run(h, &q->head.base, own, &sub);
        if (s) return s;
    }
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel,
                     "%lld groups of %lld images padded to %lldx%lldx%lld, workspace %zu", (long long)total,
                     (long long)d->group, (long long)d->extent[0], (long long)d->extent[1],
                     (long long)d->inner, plan->workspace);
    return STRATA_OK;
}
