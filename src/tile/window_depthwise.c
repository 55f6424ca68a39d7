/* SPDX-License-Identifier: Apache-2.0 */
/* window_depthwise.c - groups of few channels, channels innermost: lanes are filters. With one channel and one filter a group no two lanes meet;
 * with more, a vector holds the filters of several whole groups, and each takes the channel that it needs out of a vector of these.
 *
 * Weights are gathered once a call into rows of filters, one for each tap and channel of a group. Four pixels share a row of weights where every tap lies inside
 * the image; a border pixel goes alone with the taps it has. The image is read in place. */
#include "tile/window.h"

typedef struct depthwise_job {
    const st_win_plan *p;
    void *const *data;
    char *pick, *weights, *local;
    double alpha, beta;
} depthwise_job;

enum { MOST_TAPS = 256 };

/* The table of channels is the start of the workspace, weights follow. */
static size_t pick_bytes(const st_win_plan *p)
{
    return p->N == 1 ? 0 : (size_t)st_round_up(p->inner * p->kernel->vl * p->es, 64);
}

/* Axis of k along which a group's channels lie; -1: a group has one. */
static int64_t channel_axis(const st_contract *c)
{
    for (int64_t i = 0; i < c->k.count; i++) {
        bool bounded = false;
        for (int64_t b = 0; b < c->bounds; b++) bounded = bounded || c->bound[b].k == i;
        if (c->k.ax[i].a == 1 && !bounded) return i;
    }
    return -1;
}

const char *st_win_depthwise_fits(const st_contract *c, const st_conv_kernel *k, int64_t *channels_axis)
{
    *channels_axis = -1;
    if (c->batch.count != 1 || c->batch.ax[0].a < 1 || c->batch.ax[0].c < 1)
        return "there are no groups of channels";
    if (c->n.count > 1 || (c->n.count == 1 && c->n.ax[0].c != 1))
        return "a group's filters do not lie side by side";
    const int64_t filters = st_axes_len(&c->n);
    int64_t channels = 1;
    if (c->batch.ax[0].a > 1 || filters > 1) *channels_axis = channel_axis(c);
    if (*channels_axis >= 0) channels = c->k.ax[*channels_axis].len;
    if (c->batch.ax[0].a != channels || c->batch.ax[0].c != filters)
        return "groups do not lie side by side, channels innermost";
    if (k->vl % filters || channels > filters)
        return "filters of a group do not divide a vector's lanes, or are fewer than its channels";
    if (st_axes_len(&c->k) / channels > MOST_TAPS) return "more than 256 taps";
    return NULL;
}

strata_status st_win_depthwise_build(strata_handle *h, st_win_plan *p)
{
    strata_status s = st_win_tap_tables(h, p);
    if (s) return s;
    /* about 32 tasks; fewer where they would hold less than 16 pixels */
    p->chunk = st_min64(ST_WIN_CHUNK, st_max64(16, st_ceil_div(p->M, 32)));
    p->chunks = st_ceil_div(p->M, p->chunk);
    p->width = p->N == 1 ? p->G : st_round_up(p->G * p->N, p->kernel->vl);
    p->shared = pick_bytes(p) + (size_t)st_round_up(p->K * p->width * p->es, 64);
    p->local = st_win_epilogue_scratch(p);
    p->head.base.run = st_win_depthwise_run;
    return STRATA_OK;
}

#define GATHER(T)                                                                                  \
    static void gather_##T(const st_win_plan *p, const T *b, T *to)                                \
    {                                                                                              \
        const int64_t step = p->c.batch.ax[0].b, filter = p->c.n.count ? p->c.n.ax[0].b : 0;       \
        for (int64_t k = 0; k < p->K; k++, to += p->width) {                                       \
            const T *from = b + st_axes_offset(&p->c.k, 'b', k);                                   \
            if (p->N == 1) {                                                                       \
                for (int64_t g = 0; g < p->G; g++) to[g] = from[g * step];                         \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t g = 0; g < p->G; g++)                                                     \
                for (int64_t o = 0; o < p->N; o++) to[g * p->N + o] = from[g * step + o * filter]; \
            for (int64_t l = p->G * p->N; l < p->width; l++) to[l] = 0;                            \
        }                                                                                          \
    }
GATHER(float)
GATHER(double)

/* pick[e * vl + lane]: which channel of a vector of them lane needs as its group's e-th. */
static void fill_pick(const st_win_plan *p, char *pick)
{
    const int64_t vl = p->kernel->vl;
    for (int64_t e = 0; e < p->inner; e++)
        for (int64_t l = 0; l < vl; l++) {
            const int64_t from = l / p->N * p->inner + e;
            if (p->es == 4)
                ((int32_t *)pick)[e * vl + l] = (int32_t)from;
            else
                ((int64_t *)pick)[e * vl + l] = from;
        }
}

static void depthwise_task(void *arg, int64_t i, int worker)
{
    const depthwise_job *j = arg;
    const st_win_plan *p = j->p;
    const int64_t m0 = i * p->chunk, count = st_min64(p->chunk, p->M - m0);
    int64_t all[MOST_TAPS], wo[MOST_TAPS], xo[MOST_TAPS];
    st_win_pixels x;
    st_win_place(p, m0, count, &x);
    /* where a tap's weights begin: in elements, or in rows of filters */
    for (int64_t t = 0; t < p->taps; t++) all[t] = p->N == 1 ? t * p->G : t * p->inner;
    st_conv_groups q = {.in = p->inner, .out = p->N, .pitch = p->width, .pick = j->pick};
    st_conv_lanes *l = &q.lanes;
    l->w = j->weights;
    l->lanes = p->G * p->N;
    l->alpha = j->alpha;
    l->beta = j->beta;
    const char *a = j->data[0];
    char *c = j->data[2];
    for (int64_t e = 0; e < count;) {
        int64_t px = st_min64(ST_CONV_PIXELS, count - e);
        l->xo = p->tap_a;
        l->wo = all;
        l->taps = p->taps;
        if (!st_win_inside(p, &x, e, px)) {
            px = 1;
            l->xo = xo;
            l->wo = wo;
            l->taps = 0;
            for (int64_t t = 0; t < p->taps; t++) {
                bool in = true;
                for (int64_t b = 0; b < p->c.bounds; b++) {
                    const int64_t y = x.at[b][e] + p->tap_c[b][t];
                    in = in && y >= 0 && y < p->c.bound[b].limit;
                }
                if (!in) continue;
                xo[l->taps] = p->tap_a[t];
                wo[l->taps++] = all[t];
            }
        }
        for (int64_t r = 0; r < px; r++) {
            l->row[r] = a + x.a[e + r] * p->es;
            l->c[r] = c + x.c[e + r] * p->es;
        }
        if (p->N == 1)
            p->kernel->lanes[px](l);
        else
            p->kernel->groups[px](&q);
        e += px;
    }
    if (p->head.expr)
        for (int64_t g = 0; g < p->G; g++)
            st_win_epilogue(p, j->data, g, m0, count, 0, p->N, j->local + (size_t)worker * p->local);
}

strata_status st_win_depthwise_run(strata_handle *h, const strata_plan *plan, void *const data[],
                                   const strata_run *r)
{
    const st_win_plan *p = (const st_win_plan *)plan;
    depthwise_job j = {.p = p, .data = data};
    const uint64_t t0 = st_trace_begin();
    strata_status s = st_contract_scalars(h, &p->head, r, &j.alpha, &j.beta);
    if (s) return s;
    if (!(j.pick = st_plan_workspace(h, plan, r))) return h->err.status;
    j.weights = j.pick + pick_bytes(p);
    j.local = j.pick + p->shared;
    if (j.alpha == 0) {
        st_win_beta_only(p, data, j.beta, j.pick);
        return STRATA_OK;
    }
    if (p->N > 1) fill_pick(p, j.pick);
    if (p->es == 4)
        gather_float(p, data[1], (float *)j.weights);
    else
        gather_double(p, data[1], (double *)j.weights);
    st_win_for(h, p, p->chunks, p->us, depthwise_task, &j);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel,
                     "%lld groups of %lld filters x %lld pixels, %lld taps, workspace %zu", (long long)p->G,
                     (long long)p->N, (long long)p->M, (long long)p->taps, plan->workspace);
    return STRATA_OK;
}
