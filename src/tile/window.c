/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - the provider of windowed contractions: simplify the problem, say which forms fit it and what they would cost,
 * build the plan. Forms run in window_direct.c, window_taps.c, window_panel.c, window_padded.c and window_depthwise.c. */
#include "tile/window.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- simplification ------------------------------------------------------------------------------------------------ */

static bool bound_uses(const st_contract *c, bool is_m, int64_t axis)
{
    for (int64_t b = 0; b < c->bounds; b++)
        if ((is_m ? c->bound[b].m : c->bound[b].k) == axis) return true;
    return false;
}

/* Removes axis i of a list; kind is 'm', 'n', 'k' or 'b'. Bounds and epilogue strides move along. */
static void remove_axis(st_contract *c, st_axes *l, char kind, int64_t i)
{
    for (int64_t d = i; d + 1 < l->count; d++) l->ax[d] = l->ax[d + 1];
    l->count--;
    memset(&l->ax[l->count], 0, sizeof l->ax[0]);
    for (int64_t b = 0; b < c->bounds; b++) {
        int64_t *axis = kind == 'm' ? &c->bound[b].m : kind == 'k' ? &c->bound[b].k : NULL;
        if (!axis) continue;
        if (*axis == i)
            *axis = -1;
        else if (*axis > i)
            --*axis;
    }
    for (int64_t o = 0; o < c->epi_operands; o++) {
        int64_t *s = kind == 'm'   ? c->epi[o].sm
                     : kind == 'n' ? c->epi[o].sn
                     : kind == 'b' ? c->epi[o].sb
                                   : NULL;
        if (!s) continue;
        for (int64_t d = i; d + 1 < ST_AXES; d++) s[d] = s[d + 1];
        s[ST_AXES - 1] = 0;
    }
}

static bool mergeable(const st_contract *c, const st_axes *l, char kind, int64_t i)
{
    const st_axis *o = &l->ax[i], *n = &l->ax[i + 1];
    if (o->a != n->a * n->len || o->b != n->b * n->len || o->c != n->c * n->len) return false;
    if (kind == 'm' || kind == 'k')
        if (bound_uses(c, kind == 'm', i) || bound_uses(c, kind == 'm', i + 1)) return false;
    for (int64_t e = 0; e < c->epi_operands; e++) {
        const int64_t *s = kind == 'm'   ? c->epi[e].sm
                           : kind == 'n' ? c->epi[e].sn
                           : kind == 'b' ? c->epi[e].sb
                                         : NULL;
        if (s && s[i] != s[i + 1] * n->len) return false;
    }
    return true;
}

static void simplify_list(st_contract *c, st_axes *l, char kind)
{
    for (int64_t i = l->count - 1; i >= 0; i--)
        if (l->ax[i].len == 1) remove_axis(c, l, kind, i);
    for (int64_t i = l->count - 2; i >= 0; i--)
        if (mergeable(c, l, kind, i)) {
            l->ax[i + 1].len *= l->ax[i].len;
            remove_axis(c, l, kind, i);
        }
}

static void span(int64_t step, int64_t len, int64_t *lo, int64_t *hi)
{
    *lo = *hi = 0;
    if (step * (len - 1) < 0)
        *lo = step * (len - 1);
    else
        *hi = step * (len - 1);
}

void st_tile_simplify(st_contract *c)
{
    for (int64_t b = c->bounds - 1; b >= 0; b--) { /* a bound that holds everywhere goes */
        const st_bound *x = &c->bound[b];
        int64_t ml = 0, mh = 0, kl = 0, kh = 0;
        if (x->m >= 0) span(x->im, c->m.ax[x->m].len, &ml, &mh);
        if (x->k >= 0) span(x->ik, c->k.ax[x->k].len, &kl, &kh);
        if (x->offset + ml + kl >= 0 && x->offset + mh + kh < x->limit) {
            for (int64_t d = b; d + 1 < c->bounds; d++) c->bound[d] = c->bound[d + 1];
            memset(&c->bound[--c->bounds], 0, sizeof c->bound[0]);
        }
    }
    simplify_list(c, &c->m, 'm');
    simplify_list(c, &c->n, 'n');
    simplify_list(c, &c->k, 'k');
    simplify_list(c, &c->batch, 'b');
}

/* Moves axis i of k to the end: the run axis. */
static void k_last(st_contract *c, int64_t i)
{
    const st_axis x = c->k.ax[i];
    for (int64_t d = i; d + 1 < c->k.count; d++) c->k.ax[d] = c->k.ax[d + 1];
    c->k.ax[c->k.count - 1] = x;
    for (int64_t b = 0; b < c->bounds; b++) {
        if (c->bound[b].k == i)
            c->bound[b].k = c->k.count - 1;
        else if (c->bound[b].k > i)
            c->bound[b].k--;
    }
}

/* Orders m with the bound axes first; returns how many there are. */
static int64_t m_bound_first(st_contract *c)
{
    int64_t n = 0;
    for (int64_t i = 0; i < c->m.count; i++) {
        if (!bound_uses(c, true, i)) continue;
        for (int64_t j = i; j > n; j--) { /* rotate it down to place n */
            const st_axis t = c->m.ax[j];
            c->m.ax[j] = c->m.ax[j - 1];
            c->m.ax[j - 1] = t;
            for (int64_t b = 0; b < c->bounds; b++) {
                if (c->bound[b].m == j)
                    c->bound[b].m = j - 1;
                else if (c->bound[b].m == j - 1)
                    c->bound[b].m = j;
            }
            for (int64_t e = 0; e < c->epi_operands; e++) {
                const int64_t s = c->epi[e].sm[j];
                c->epi[e].sm[j] = c->epi[e].sm[j - 1];
                c->epi[e].sm[j - 1] = s;
            }
        }
        n++;
    }
    return n;
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* ---- what fits ----------------------------------------------------------------------------------------------------- */

static const char *common_refusal(const st_contract *c)
{
    if (!(c->ta == c->tb && c->tb == c->tc && (c->ta == STRATA_F32 || c->ta == STRATA_F64)))
        return "takes f32 or f64, the same for A, B and C";
    if (st_axes_len(&c->m) == 0 || st_axes_len(&c->n) == 0 || st_axes_len(&c->k) == 0 ||
        st_axes_len(&c->batch) == 0)
        return "takes no problem without elements";
    if (c->pointers || st_rule_any(&c->rule_a) || st_rule_any(&c->rule_b) || st_rule_any(&c->rule_c))
        return "takes plain operands: none triangular, symmetric, conjugated or given by addresses";
    for (int64_t i = 0; i < c->m.count; i++)
        if (c->m.ax[i].b) return "an m axis moves in B";
    for (int64_t i = 0; i < c->n.count; i++)
        if (c->n.ax[i].a) return "an n axis moves in A";
    for (int64_t i = 0; i < c->k.count; i++)
        if (c->k.ax[i].c) return "a k axis moves in C";
    return NULL;
}

/* The run axis of the direct form: no bound moves along it, least stride in A. -1: a run of one step. */
static int64_t direct_run_axis(const st_contract *c)
{
    int64_t best = -1;
    for (int64_t i = 0; i < c->k.count; i++) {
        if (bound_uses(c, false, i)) continue;
        if (best < 0 || magnitude(c->k.ax[i].a) <= magnitude(c->k.ax[best].a)) best = i;
    }
    return best;
}

/* The order of k in the panel form: steps along contiguous A where that transposes well, else along contiguous B. */
static void panel_order(st_contract *c)
{
    int64_t run = -1;
    for (int64_t i = 0; i < c->k.count; i++)
        if (c->k.ax[i].a == 1 && c->k.ax[i].len >= 4 && !bound_uses(c, false, i)) run = i;
    const bool by_a = run >= 0;
    for (int64_t placed = 0; placed < c->k.count;
         placed++) { /* selection: the greatest stride first, to the end in turn */
        int64_t best = -1;
        for (int64_t i = 0; i < c->k.count - placed; i++) {
            const int64_t s = magnitude(by_a ? c->k.ax[i].a : c->k.ax[i].b);
            if (best < 0 || s > magnitude(by_a ? c->k.ax[best].a : c->k.ax[best].b)) best = i;
        }
        k_last(c, best);
    }
}

typedef struct cost {
    double us;
    size_t workspace;
    const char *why;
} cost;

static double lanes_used(int64_t total, int64_t vl) { return (double)total / (double)st_round_up(total, vl); }

/* Microseconds to bring `bytes` to one core, of a problem that touches `all`: what lies in the second-level cache comes three times as
 * fast as from beyond the last one. */
static double memory_us(const st_cpu *cpu, double bytes, double all)
{
    const double times = all > (double)cpu->l3 ? 1.5 : all > (double)cpu->l2 ? 2.5 : 3;
    return bytes / (ST_CONTRACT_BYTES_PER_US * times);
}

/* Elements of A: those of the box that its axes span, or one for each row and step where that is less. */
static int64_t image_elements(const st_contract *c)
{
    const st_axes *const list[3] = {&c->m, &c->k, &c->batch};
    int64_t box = 1, each = 1;
    for (int l = 0; l < 3; l++)
        for (int64_t i = 0; i < list[l]->count; i++) {
            box += (list[l]->ax[i].len - 1) * magnitude(list[l]->ax[i].a);
            each *= list[l]->ax[i].a ? list[l]->ax[i].len : 1;
        }
    return st_min64(box, each);
}

static cost direct_cost(const st_contract *whole, const st_conv_kernel *k, double rate)
{
    st_contract c = *whole;
    const st_cpu *cpu = st_cpu_get();
    const int64_t run = direct_run_axis(&c), M = st_axes_len(&c.m), N = st_axes_len(&c.n),
                  K = st_axes_len(&c.k), G = st_axes_len(&c.batch), es = c.ta == STRATA_F32 ? 4 : 8;
    const int64_t inner = run < 0 ? 1 : c.k.ax[run].len, ks = run < 0 ? 1 : c.k.ax[run].a;
    if (K / inner > 4096) return (cost){0, 0, "more than 4096 taps"};
    if (c.bounds && inner * magnitude(ks) * es > 65536)
        return (cost){0, 0, "channels too far apart for a row of zeros"};
    const double weights = (double)G * (double)K * (double)st_round_up(N, k->vl);
    if (weights * (double)es > 64e6) return (cost){0, 0, "weight panels would need more than 64 MB"};
    const int64_t v = st_min64(st_ceil_div(N, k->vl), k->vecs), blocks = st_ceil_div(N, k->vl * k->vecs);
    const double work = 2.0 * (double)G * (double)M * (double)K * (double)N / lanes_used(N, k->vl);
    const double steps = (double)inner * (double)v * k->rows[v] / 2,
                 busy = steps / (steps + (c.bounds ? 16 : 6));
    double us = work / (rate * (v == 1 ? 0.6 : v == 2 ? 0.75 : 0.92) * busy);
    if (magnitude(ks) != 1 && run >= 0) us *= 2;
    us += weights * 0.15e-3 + (double)M * (double)G * 1e-3;
    /* the image, which each block of columns reads again unless it stays in the second-level cache; C, fetched and written */
    const double image = (double)image_elements(&c) * (double)es, panels = weights * (double)es,
                 result = 2.0 * (double)G * (double)M * (double)N * (double)es;
    us += memory_us(cpu, image * (image > (double)cpu->l2 / 2 ? (double)blocks : 1) + panels + result,
                    image + panels + result);
    if (c.bounds) /* tables of border tiles */
        us += (double)M * (double)G * (double)(K / inner) * (double)blocks * 0.8e-3;
    if (!(c.n.count == 0 || (c.n.count == 1 && c.n.ax[0].c == 1)))
        us += (double)M * (double)G * (double)N * 1e-3;
    return (cost){us, 0, NULL};
}

bool st_win_b_in_place(const st_contract *c, const st_conv_kernel *k)
{
    const int64_t N = st_axes_len(&c->n), pitch = c->k.count ? magnitude(c->k.ax[c->k.count - 1].b) : 0;
    return c->n.count == 1 && c->n.ax[0].b == 1 && N % k->vl == 0 && pitch <= 2 * (int64_t)k->vl * k->vecs;
}

static cost taps_cost(const st_contract *whole, const st_conv_kernel *k, double rate)
{
    st_contract c = *whole;
    const int64_t M = st_axes_len(&c.m), N = st_axes_len(&c.n), K = st_axes_len(&c.k),
                  G = st_axes_len(&c.batch);
    int64_t free_rows = 1;
    for (int64_t i = 0; i < c.m.count; i++)
        if (!bound_uses(&c, true, i)) free_rows *= c.m.ax[i].len;
    if (!c.k.count) return (cost){0, 0, "there is no axis to run along"};
    const st_axis *run = &c.k.ax[c.k.count - 1];
    if (run->a == 1 && c.m.count && c.m.ax[c.m.count - 1].a != 1)
        return (cost){0, 0, "the sum does not run over pixels"};
    const int64_t v = st_min64(st_ceil_div(N, k->vl), k->vecs), rows = st_min64(free_rows, k->rows[v]);
    double work = 2.0 * (double)G * (double)M * (double)K * (double)N / lanes_used(N, k->vl);
    double us = work / (rate * 0.85) * (rows * v < 10 ? 10.0 / (double)(rows * v) : 1.0);
    const double steps = (double)run->len * (double)(v * rows) / 2;
    us *= (steps + 14) / steps;
    if (rows < 6)
        us *= 6.0 / (double)rows < 2 ? 6.0 / (double)rows : 2; /* columns come from the second-level cache */
    const bool in_place = st_win_b_in_place(&c, k);
    if (!in_place) us += (double)G * (double)K * (double)N * 1e-3;
    /* a tile's set-up, and the results' way through a buffer */
    us += (double)G * (double)M *
          ((double)N * 1e-3 + (double)st_ceil_div(N, k->vl * k->vecs) * 0.06 / (double)rows);
    return (cost){us, 0, NULL};
}

static cost panel_cost(const st_contract *whole, const st_conv_kernel *k, double rate)
{
    st_contract c = *whole;
    panel_order(&c);
    const int64_t M = st_axes_len(&c.m), N = st_axes_len(&c.n), K = st_axes_len(&c.k),
                  G = st_axes_len(&c.batch);
    const int64_t tail = st_win_tail(&c, k), lanes = M - tail;
    const int64_t v = st_min64(st_ceil_div(lanes, k->vl), k->vecs), rows = st_min64(N, k->rows[v]);
    double work = 2.0 * (double)G * ((double)lanes / lanes_used(lanes, k->vl) + 0.2 * (double)tail) *
                  (double)K * (double)N;
    double us = work / (rate * 0.85) * (rows * v < 10 ? 10.0 / (double)(rows * v) : 1.0);
    if (c.k.count && c.k.ax[c.k.count - 1].len > 64 &&
        magnitude(c.k.ax[c.k.count - 1].b) * (c.ta == STRATA_F32 ? 4 : 8) >= 4096)
        us *= 2.5; /* every step of a row is in a page of its own */
    const bool lanes_side = c.m.count && c.m.ax[c.m.count - 1].a == 1;
    const bool steps_side = c.k.count && c.k.ax[c.k.count - 1].a == 1 && c.k.ax[c.k.count - 1].len >= 4;
    const double es = c.ta == STRATA_F32 ? 4 : 8, rows_bytes = (double)G * (double)N * (double)K * es;
    us += memory_us(st_cpu_get(), rows_bytes * (double)st_ceil_div(lanes, k->vl * k->vecs), rows_bytes);
    us += (double)G * (double)M * (double)K * (lanes_side ? 0.15e-3 : steps_side ? 0.3e-3 : 0.8e-3);
    if (!(c.m.count && c.m.ax[c.m.count - 1].c == 1)) us += (double)G * (double)M * (double)N * 0.5e-3;
    return (cost){us, 0, NULL};
}

/* Does the sum run over an image's pixels (a weight gradient), rather than over a window's taps? */
static bool sums_pixels(const st_contract *c)
{
    double taps = 1, pixels = 1;
    for (int64_t b = 0; b < c->bounds; b++) {
        if (c->bound[b].m >= 0) taps *= (double)c->m.ax[c->bound[b].m].len;
        if (c->bound[b].k >= 0) pixels *= (double)c->k.ax[c->bound[b].k].len;
    }
    return pixels > taps;
}

static cost padded_cost(const st_contract *whole, const st_conv_kernel *k, double rate, bool taps)
{
    st_contract c = *whole;
    const char *why;
    double times;
    const int64_t copy = st_win_pad_size(&c, taps, &times, &why);
    if (copy < 0) return (cost){0, 0, why};
    st_tile_simplify(&c);
    cost x = taps ? taps_cost(&c, k, rate) : direct_cost(&c, k, rate);
    x.us = x.us * times + (double)copy * 0.4e-3 + 1;
    if (!taps && sums_pixels(whole))
        x.us *= 1.25; /* rows of pixels as runs end often; taps are as good there */
    return x;
}
static cost paddirect_cost(const st_contract *c, const st_conv_kernel *k, double rate)
{
    return padded_cost(c, k, rate, false);
}
static cost padtaps_cost(const st_contract *c, const st_conv_kernel *k, double rate)
{
    return padded_cost(c, k, rate, true);
}

static cost depthwise_cost(const st_contract *c, const st_conv_kernel *k, double rate)
{
    int64_t axis;
    const char *why = st_win_depthwise_fits(c, k, &axis);
    if (why) return (cost){0, 0, why};
    const double lanes = (double)(c->batch.ax[0].len * st_axes_len(&c->n)), M = (double)st_axes_len(&c->m),
                 K = (double)st_axes_len(&c->k);
    return (cost){2 * lanes * M * K / lanes_used((int64_t)lanes, k->vl) / (rate * 0.35) + M * 0.02, 0, NULL};
}

static const char *const form_provider[] = {"conv_direct",    "conv_taps",    "conv_panel",
                                            "conv_paddirect", "conv_padtaps", "conv_depthwise"};
static cost (*const form_cost[])(const st_contract *, const st_conv_kernel *, double) = {
    direct_cost, taps_cost, panel_cost, paddirect_cost, padtaps_cost, depthwise_cost};

/* A product whose weights lie along k, as filters of convolutions do. With few rows the panel form packs these and reads the weights in place;
 * with some more the direct form packs a block of weights and reads the rows in place. gemm would pack both. */
static bool along_k(const st_contract *c)
{
    return st_axes_len(&c->n) >= 128 && st_axes_len(&c->k) >= 128 && c->k.count && c->n.count &&
           c->k.ax[c->k.count - 1].b == 1 && c->batch.count == 0;
}
static bool few_rows(const st_contract *c, const st_conv_kernel *k)
{
    return along_k(c) && st_axes_len(&c->m) <= 2 * (int64_t)k->vl * k->vecs && st_axes_len(&c->m) >= k->vl;
}
static bool some_rows(const st_contract *c, const st_conv_kernel *k)
{
    const int64_t es = c->ta == STRATA_F32 ? 4 : 8, M = st_axes_len(&c->m);
    return along_k(c) && M >= 2 * (int64_t)k->vl * k->vecs && M <= 1024 &&
           (M + st_axes_len(&c->n)) * st_axes_len(&c->k) * es > st_cpu_get()->l2 / 2;
}

/* Plain products are gemm's, but for those above. Its predictions divide by the threads; these do it in the same way, so that a choice
 * is the same for every number of threads. */
static double among_others(strata_handle *h, const st_contract *c, const st_conv_kernel *k, int form,
                           double us)
{
    const int threads = us < 6 ? 1 : st_threads(h);
    const double share = threads > 1 ? us / threads * 1.08 + 1 : us + 0.3;
    if (c->bounds) return share;
    if (form == ST_WIN_PANEL && few_rows(c, k)) return share * 0.8;
    if (form == ST_WIN_DIRECT && some_rows(c, k)) return share * 0.9;
    return share * 1.25;
}

static int enumerate_form(strata_handle *h, const st_problem *p, st_candidate *out, int max, int form)
{
    int rows, n = 0;
    const st_kernel_row *table = st_kernel_rows(&rows);
    st_contract c = *(const st_contract *)p->data;
    const char *why = common_refusal(&c);
    if (!why) st_tile_simplify(&c);
    for (int i = 0; i < rows && n < max; i++) {
        const st_kernel_row *r = &table[i];
        if (strcmp(r->provider, form_provider[form]) != 0 || (!why && r->type != c.ta)) continue;
        if (why && n) break; /* once is enough */
        st_candidate *x = &out[n++];
        memset(x, 0, sizeof *x);
        snprintf(x->kernel, sizeof x->kernel, "%s", r->id);
        x->order = r->order;
        x->row = r;
        x->us = -1;
        if (why) {
            snprintf(x->why, sizeof x->why, "%s", why);
            continue;
        }
        if (st_kernel_why_not(r, h->cpu, x->why, sizeof x->why)) continue;
        const st_conv_kernel *k = r->impl;
        const double level = r->needs & ST_ISA_AVX512 ? 2 : r->needs & ST_ISA_AVX2 ? 1 : 0.25;
        const double best = h->cpu->isa & ST_ISA_AVX512 ? 2 : h->cpu->isa & ST_ISA_AVX2 ? 1 : 0.25;
        if (form != ST_WIN_DIRECT && c.bounds == 0 && c.m.count <= 1 && c.k.count <= 1 &&
            !(form == ST_WIN_PANEL && few_rows(&c, k))) {
            snprintf(x->why, sizeof x->why, "a plain product: gemm is for it");
            continue;
        }
        const cost y = form_cost[form](&c, k, st_contract_peak(h->cpu, (int)c.ta) * level / best);
        if (y.why) {
            snprintf(x->why, sizeof x->why, "%s", y.why);
            continue;
        }
        x->us = among_others(h, &c, k, form, y.us);
        /* a plain product may be taken turned round; of others batch-invariant plans take the images apart (contract_key.c) */
        x->row_count_matters = c.bounds == 0 && c.m.count <= 1 && c.k.count <= 1;
        /* forms divide k each in their own way; panels leave some columns to dot products in lanes */
        x->order_arg = form + 1 + (form == ST_WIN_PANEL ? 100 * k->vl : 0);
        st_win_plan *
            trial; /* the exact workspace is what the plan itself says; a plan that fails says why when it is built */
        if (st_win_make(h, p, r, form, &trial)) continue;
        x->workspace = trial->head.base.workspace;
        strata_plan_destroy(&trial->head.base);
    }
    return n;
}

static int enumerate(strata_handle *h, const st_problem *p, st_candidate *out, int max)
{
    int n = 0;
    for (int form = ST_WIN_DIRECT; form < ST_WIN_FORMS; form++)
        n += enumerate_form(h, p, out + n, max - n, form);
    return n;
}

/* ---- plans --------------------------------------------------------------------------------------------------------- */

static void destroy(strata_plan *plan)
{
    st_win_plan *p = (st_win_plan *)plan;
    free(p->tap_a);
    free(p->tap_c[0]);
    free(p->tap_c[1]);
    free(p->run);
    free(p->part_run);
    free(p->zeros);
    st_win_pad_free(p->pad);
    st_contract_plan_destroy(plan);
}

static void source_of_b(st_win_plan *p)
{
    const st_contract *c = &p->c;
    st_win_source *s = &p->source;
    s->es = p->es;
    s->lanes = (int)st_max64(c->n.count, 1);
    s->steps = (int)st_max64(c->k.count, 1);
    s->lane_len[0] = s->step_len[0] = 1;
    for (int64_t i = 0; i < c->n.count; i++)
        s->lane_len[i] = c->n.ax[i].len, s->lane_stride[i] = c->n.ax[i].b;
    for (int64_t i = 0; i < c->k.count; i++)
        s->step_len[i] = c->k.ax[i].len, s->step_stride[i] = c->k.ax[i].b;
}

static void source_of_a(st_win_plan *p)
{
    const st_contract *c = &p->c;
    st_win_source *s = &p->source;
    s->es = p->es;
    s->lanes = (int)st_max64(c->m.count, 1);
    s->steps = (int)st_max64(c->k.count, 1);
    s->lane_len[0] = s->step_len[0] = 1;
    for (int64_t i = 0; i < c->m.count; i++)
        s->lane_len[i] = c->m.ax[i].len, s->lane_stride[i] = c->m.ax[i].a;
    for (int64_t i = 0; i < c->k.count; i++)
        s->step_len[i] = c->k.ax[i].len, s->step_stride[i] = c->k.ax[i].a;
    s->bounds = (int)c->bounds;
    for (int64_t b = 0; b < c->bounds; b++) {
        s->bound[b].limit = c->bound[b].limit;
        s->bound[b].offset = c->bound[b].offset;
        s->bound[b].il = c->bound[b].im;
        s->bound[b].is = c->bound[b].ik;
        s->bound[b].lane = (int)c->bound[b].m;
        s->bound[b].step = (int)c->bound[b].k;
    }
}

strata_status st_win_make(strata_handle *h, const st_problem *problem, const st_kernel_row *row, int form,
                          st_win_plan **out)
{
    st_contract_plan *head;
    *out = NULL;
    strata_status s = st_contract_plan_new(h, problem, sizeof(st_win_plan), &head);
    if (s) return s;
    st_win_plan *p = (st_win_plan *)head;
    head->base.destroy = destroy;
    p->c = head->problem;
    st_tile_simplify(&p->c);
    p->kernel = row->impl;
    p->form = form;
    p->es = p->c.ta == STRATA_F32 ? 4 : 8;
    p->M = st_axes_len(&p->c.m);
    p->N = st_axes_len(&p->c.n);
    p->K = st_axes_len(&p->c.k);
    p->G = st_axes_len(&p->c.batch);
    strata_device_info info;
    p->workers = st_threads(h);
    if (h->threads != 1 && strata_get_device_info("cpu", &info) == STRATA_OK && info.threads > p->workers)
        p->workers = info.threads;
    p->us = form_cost[form](&p->c, p->kernel, st_contract_peak(h->cpu, (int)p->c.ta)).us;
    if (form == ST_WIN_DIRECT) {
        const int64_t run = direct_run_axis(&p->c);
        p->inner = p->ks = 1;
        if (run >= 0) {
            p->inner = p->c.k.ax[run].len;
            p->ks = p->c.k.ax[run].a;
            k_last(&p->c, run);
        }
        p->taps = p->K / p->inner;
        source_of_b(p);
        s = st_win_direct_build(h, p);
    } else if (form == ST_WIN_TAPS) {
        const int64_t bound_axes = m_bound_first(&p->c);
        p->outer_rows = p->free_rows = 1;
        for (int64_t i = 0; i < p->c.m.count; i++)
            *(i < bound_axes ? &p->outer_rows : &p->free_rows) *= p->c.m.ax[i].len;
        source_of_b(p);
        s = st_win_taps_build(h, p);
    } else if (form == ST_WIN_PANEL) {
        panel_order(&p->c);
        source_of_a(p);
        s = st_win_panel_build(h, p);
    } else if (form == ST_WIN_DEPTHWISE) {
        int64_t axis;
        p->inner = p->ks = 1;
        if (!st_win_depthwise_fits(&p->c, p->kernel, &axis) && axis >= 0) {
            p->inner = p->c.k.ax[axis].len;
            k_last(&p->c, axis);
        }
        p->taps = p->K / p->inner;
        s = st_win_depthwise_build(h, p);
    } else {
        s = st_win_padded_build(h, p, problem, row);
    }
    if (s) {
        strata_plan_destroy(&head->base);
        return s;
    }
    head->base.workspace = p->shared + p->local * (size_t)p->workers;
    *out = p;
    return STRATA_OK;
}

static strata_status build(strata_handle *h, const st_problem *problem, const st_candidate *c,
                           strata_plan **plan)
{
    const st_kernel_row *row = c->row;
    int form = 0;
    while (strcmp(row->provider, form_provider[form]) != 0) form++;
    st_win_plan *p;
    *plan = NULL;
    strata_status s = st_win_make(h, problem, row, form, &p);
    if (s == STRATA_OK) *plan = &p->head.base;
    return s;
}

static const st_provider provider = {"window", ST_OP_CONTRACT, enumerate, build, ST_ON_CPU};
void st_window_register(void) { st_plan_register(&provider); }
