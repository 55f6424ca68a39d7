/* SPDX-License-Identifier: Apache-2.0 */
/* window_depthwise.c - one filter a group, channels innermost: lanes are channels, no two of them meet.
 *
 * Weights are gathered once a call into rows of channels, one a tap. Four pixels share a row of weights where every tap lies inside
 * the image; a border pixel goes alone with the taps it has. The image is read in place. */
#include "tile/window.h"

typedef struct depthwise_job {
    const st_win_plan *p;
    void *const *data;
    char *weights, *local;
    double alpha, beta;
} depthwise_job;

enum { MOST_TAPS = 256 };

strata_status st_win_depthwise_build(strata_handle *h, st_win_plan *p)
{
    strata_status s = st_win_tap_tables(h, p);
    if (s) return s;
    /* about 32 tasks; fewer where they would hold less than 16 pixels */
    p->chunk = st_min64(ST_WIN_CHUNK, st_max64(16, st_ceil_div(p->M, 32)));
    p->chunks = st_ceil_div(p->M, p->chunk);
    p->shared = (size_t)st_round_up(p->K * p->G * p->es, 64);
    p->local = st_win_epilogue_scratch(p);
    p->head.base.run = st_win_depthwise_run;
    return STRATA_OK;
}

static void gather_weights(const st_win_plan *p, const char *b, char *to)
{
    const int64_t step = p->c.batch.ax[0].b;
    for (int64_t t = 0; t < p->K; t++) {
        const int64_t off = st_axes_offset(&p->c.k, 'b', t);
        if (p->es == 4)
            for (int64_t g = 0; g < p->G; g++)
                ((float *)to)[t * p->G + g] = ((const float *)b)[off + g * step];
        else
            for (int64_t g = 0; g < p->G; g++)
                ((double *)to)[t * p->G + g] = ((const double *)b)[off + g * step];
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
    for (int64_t t = 0; t < p->K; t++) all[t] = t * p->G;
    st_conv_lanes q = {.w = j->weights, .lanes = p->G, .alpha = j->alpha, .beta = j->beta};
    const char *a = j->data[0];
    char *c = j->data[2];
    for (int64_t e = 0; e < count;) {
        int64_t px = st_min64(ST_CONV_PIXELS, count - e);
        q.xo = p->tap_a;
        q.wo = all;
        q.taps = p->K;
        if (!st_win_inside(p, &x, e, px)) {
            px = 1;
            q.xo = xo;
            q.wo = wo;
            q.taps = 0;
            for (int64_t t = 0; t < p->K; t++) {
                bool in = true;
                for (int64_t b = 0; b < p->c.bounds; b++) {
                    const int64_t y = x.at[b][e] + p->tap_c[b][t];
                    in = in && y >= 0 && y < p->c.bound[b].limit;
                }
                if (!in) continue;
                xo[q.taps] = p->tap_a[t];
                wo[q.taps++] = all[t];
            }
        }
        for (int64_t r = 0; r < px; r++) {
            q.row[r] = a + x.a[e + r] * p->es;
            q.c[r] = c + x.c[e + r] * p->es;
        }
        p->kernel->lanes[px](&q);
        e += px;
    }
    if (p->head.expr)
        for (int64_t g = 0; g < p->G; g++)
            st_win_epilogue(p, j->data, g, m0, count, 0, 1, j->local + (size_t)worker * p->local);
}

strata_status st_win_depthwise_run(strata_handle *h, const strata_plan *plan, void *const data[],
                                   const strata_run *r)
{
    const st_win_plan *p = (const st_win_plan *)plan;
    depthwise_job j = {.p = p, .data = data};
    const uint64_t t0 = st_trace_begin();
    strata_status s = st_contract_scalars(h, &p->head, r, &j.alpha, &j.beta);
    if (s) return s;
    if (!(j.weights = st_plan_workspace(h, plan, r))) return h->err.status;
    j.local = j.weights + p->shared;
    if (j.alpha == 0) {
        st_win_beta_only(p, data, j.beta, j.weights);
        return STRATA_OK;
    }
    gather_weights(p, data[1], j.weights);
    st_win_for(h, p, p->chunks, p->us, depthwise_task, &j);
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "tile", plan->chosen.kernel, "%lld channels x %lld pixels, %lld taps, workspace %zu",
                     (long long)p->G, (long long)p->M, (long long)p->K, plan->workspace);
    return STRATA_OK;
}
