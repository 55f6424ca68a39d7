/* SPDX-License-Identifier: Apache-2.0 */
/* test_batch_norm.c - strata_batch_norm_*: against two-pass formulae in double precision over random ranks, views and optional tensors;
 * gradients against central differences; same bits for any number of threads. */
#include <math.h>
#include <strata.h>
#include "levels.h"
#include "handle.h"
#include "support.h"

static double at(const strata_tensor *v, int64_t c, double absent)
{
    return v->data ? test_get(v, (const int64_t[STRATA_MAX_RANK]){c}) : absent;
}

typedef struct moments {
    double mean, var, mag; /* mag: largest |x - mean| */
    int64_t n;
} moments;
static moments moments_of(const strata_tensor *x, int64_t c)
{
    moments m = {0, 0, 0, 0};
    for (int pass = 0; pass < 2; pass++) {
        int64_t i[STRATA_MAX_RANK] = {0};
        double s = 0;
        m.n = 0;
        do {
            if (i[1] != c) continue;
            double d = test_get(x, i) - m.mean;
            s += pass ? d * d : d;
            if (pass && fabs(d) > m.mag) m.mag = fabs(d);
            m.n++;
        } while (test_next(x, i));
        *(pass ? &m.var : &m.mean) = s / (double)m.n;
    }
    return m;
}

/* dims in NCHW, NHWC or any order of memory */
static test_array image(test_rng *r, strata_type t, int rank, const int64_t *dim, int layout)
{
    if (layout != 1) return test_array_make(r, t, rank, dim, layout ? TEST_ANY : TEST_PACKED);
    int64_t d[STRATA_MAX_RANK];
    int order[STRATA_MAX_RANK] = {0, rank - 1};
    d[0] = dim[0];
    d[rank - 1] = dim[1];
    for (int k = 2; k < rank; k++) d[k - 1] = dim[k], order[k] = k - 1;
    test_array a = test_array_make(r, t, rank, d, test_chance(r, 0.3) ? TEST_PADDED : TEST_PACKED);
    a.t = strata_permute(a.t, order);
    return a;
}

typedef struct set {
    test_array x, y, scale, shift, rm, rv, sm, si, dy, dx, dscale, dshift;
    strata_batch_norm_tensors t;
} set;

static void set_make(test_rng *r, set *k, strata_type type, int rank, const int64_t *dim, int layout,
                     bool all)
{
    test_array *vec[8] = {&k->scale, &k->shift, &k->rm, &k->rv, &k->sm, &k->si, &k->dscale, &k->dshift};
    k->x = image(r, type, rank, dim, layout), k->y = image(r, type, rank, dim, layout);
    k->dy = image(r, type, rank, dim, layout), k->dx = image(r, type, rank, dim, layout);
    for (int i = 0; i < 8; i++)
        vec[i]->t = (strata_tensor){0}, vec[i]->base = NULL,
        *vec[i] = test_array_make(r, type, 1, &dim[1], TEST_ANY);
    test_array_random(r, &k->x, -1, 3), test_array_random(r, &k->dy, -1, 1);
    test_array_random(r, &k->scale, 0.5, 2), test_array_random(r, &k->shift, -1, 1);
    test_array_random(r, &k->rm, -1, 1), test_array_random(r, &k->rv, 0.5, 2);
    k->t = (strata_batch_norm_tensors){.x = k->x.t, .y = k->y.t, .dy = k->dy.t};
    const double p = all ? 1 : 0.7;
    if (test_chance(r, p)) k->t.scale = k->scale.t;
    if (test_chance(r, p)) k->t.shift = k->shift.t;
    if (test_chance(r, p)) k->t.running_mean = k->rm.t;
    if (test_chance(r, p)) k->t.running_var = k->rv.t;
    if (test_chance(r, p)) k->t.dx = k->dx.t;
    if (test_chance(r, p)) k->t.dscale = k->dscale.t;
    if (test_chance(r, p)) k->t.dshift = k->dshift.t;
    k->t.save_mean = k->sm.t, k->t.save_inv_std = k->si.t;
}
static void set_free(set *k)
{
    test_array *all[12] = {&k->x,  &k->y,  &k->scale, &k->shift, &k->rm,     &k->rv,
                           &k->sm, &k->si, &k->dy,    &k->dx,    &k->dscale, &k->dshift};
    for (int i = 0; i < 12; i++) test_array_intact(all[i]), test_array_free(all[i]);
}

static void check_case(test_rng *r, strata_type type, int i)
{
    const int rank = (int)test_int(r, 2, 5), layout = (int)test_int(r, 0, 2);
    int64_t dim[STRATA_MAX_RANK] = {test_int(r, 1, 5), test_int(r, 1, 40), 1, 1, 1};
    if (test_chance(r, 0.1)) dim[1] = test_int(r, 100, 300);
    for (int d = 2; d < rank; d++) dim[d] = test_int(r, 1, rank == 3 ? 60 : rank == 4 ? 9 : 5);
    if (test_chance(r, 0.05)) dim[0] = 3000 / dim[1] + 1;
    if (rank == 3 && test_chance(r, 0.1)) dim[0] = 2, dim[1] = 2, dim[2] = 40000;
    if (rank == 2) dim[0] += 20;
    int64_t n = dim[0] * dim[2] * dim[3] * dim[4];
    if (n == 1) n = dim[0] = 2;
    strata_batch_norm o = {.epsilon = test_chance(r, 0.5) ? 0 : 1e-3,
                           .momentum = test_chance(r, 0.5) ? 0 : 0.3,
                           .running_biased = test_chance(r, 0.3),
                           .accumulate = test_chance(r, 0.3)};
    test_problem("batch norm case %d %s rank %d %lldx%lldx%lldx%lldx%lld layout %d accumulate %d", i,
                 strata_type_name(type), rank, (long long)dim[0], (long long)dim[1], (long long)dim[2],
                 (long long)dim[3], (long long)dim[4], layout, o.accumulate);
    const double u = test_unit(type), eps = o.epsilon > 0 ? o.epsilon : 1e-5,
                 mom = o.momentum > 0 ? o.momentum : 0.1;
    set k;
    set_make(r, &k, type, rank, dim, layout, false);
    const int64_t c = dim[1];
    double *old = malloc((size_t)c * 4 * sizeof *old);
    for (int64_t j = 0; j < c; j++) old[j] = at(&k.rm.t, j, 0), old[c + j] = at(&k.rv.t, j, 0);
    test_ok(h, strata_batch_norm_training(h, &o, &k.t));
    /* a lane sums at most PIECE / 64 + a few terms before double precision takes over; the mean's error is relative to |x| <= 3 */
    const double g = 600 * u;
    moments *m = malloc((size_t)c * sizeof *m);
    for (int64_t j = 0; j < c; j++) {
        m[j] = moments_of(&k.x.t, j);
        const double inv = 1 / sqrt(m[j].var + eps), unb = m[j].var * (double)m[j].n / (double)(m[j].n - 1);
        test_close(at(&k.sm.t, j, 0), m[j].mean, 3 * g, "save_mean[%d]", (int)j);
        test_close(at(&k.si.t, j, 0), inv, 3 * g * (inv + inv * inv), "save_inv_std[%d]", (int)j);
        if (k.t.running_mean.data)
            test_close(at(&k.rm.t, j, 0), (1 - mom) * old[j] + mom * m[j].mean, 4 * g, "running_mean[%d]",
                       (int)j);
        if (k.t.running_var.data)
            test_close(at(&k.rv.t, j, 0), (1 - mom) * old[c + j] + mom * (o.running_biased ? m[j].var : unb),
                       20 * g, "running_var[%d]", (int)j);
    }
    int64_t idx[STRATA_MAX_RANK] = {0};
    do {
        const moments *q = &m[idx[1]];
        const double inv = 1 / sqrt(q->var + eps), a = inv * at(&k.t.scale, idx[1], 1),
                     b = at(&k.t.shift, idx[1], 0);
        const double x = test_get(&k.x.t, idx);
        test_close(test_get(&k.y.t, idx), (x - q->mean) * a + b,
                   4 * g * (fabs(a) * (1 + fabs(x - q->mean)) * (1 + inv) + fabs(b)), "y");
    } while (test_next(&k.y.t, idx));

    /* inference, over the running statistics */
    strata_batch_norm_tensors inf = k.t;
    inf.running_mean = k.rm.t, inf.running_var = k.rv.t;
    test_ok(h, strata_batch_norm_inference(h, &o, &inf));
    memset(idx, 0, sizeof idx);
    do {
        const double a = at(&k.t.scale, idx[1], 1) / sqrt(at(&k.rv.t, idx[1], 0) + eps),
                     b = at(&k.t.shift, idx[1], 0);
        const double d = test_get(&k.x.t, idx) - at(&k.rm.t, idx[1], 0);
        test_close(test_get(&k.y.t, idx), d * a + b, 6 * u * (fabs(d * a) + fabs(b) + fabs(a)),
                   "inference y");
    } while (test_next(&k.y.t, idx));

    /* backward, from the saved statistics as they are */
    double *before = malloc((size_t)strata_count(k.x.t) * sizeof *before);
    if (o.accumulate)
        test_array_random(r, &k.dx, -1, 1), test_array_random(r, &k.dscale, -1, 1),
            test_array_random(r, &k.dshift, -1, 1);
    int64_t e = 0;
    memset(idx, 0, sizeof idx);
    do before[e++] = o.accumulate ? test_get(&k.dx.t, idx) : 0;
    while (test_next(&k.dx.t, idx));
    for (int64_t j = 0; j < c; j++) {
        old[2 * c + j] = o.accumulate ? at(&k.dscale.t, j, 0) : 0;
        old[3 * c + j] = o.accumulate ? at(&k.dshift.t, j, 0) : 0;
    }
    test_ok(h, strata_batch_norm_backward(h, &o, &k.t));
    double *s = calloc((size_t)c, sizeof *s), *q = calloc((size_t)c, sizeof *q),
           *sa = calloc((size_t)c, sizeof *sa), *qa = calloc((size_t)c, sizeof *qa);
    memset(idx, 0, sizeof idx);
    do {
        const int64_t j = idx[1];
        const double d = test_get(&k.dy.t, idx), p = d * (test_get(&k.x.t, idx) - at(&k.sm.t, j, 0));
        s[j] += d, q[j] += p, sa[j] += fabs(d), qa[j] += fabs(p);
    } while (test_next(&k.dy.t, idx));
    for (int64_t j = 0; j < c; j++) {
        const double inv = at(&k.si.t, j, 0);
        if (k.t.dscale.data)
            test_close(at(&k.dscale.t, j, 0), old[2 * c + j] + q[j] * inv, g * (qa[j] * inv + 1),
                       "dscale[%d]", (int)j);
        if (k.t.dshift.data)
            test_close(at(&k.dshift.t, j, 0), old[3 * c + j] + s[j], g * (sa[j] + 1), "dshift[%d]", (int)j);
    }
    memset(idx, 0, sizeof idx);
    e = 0;
    if (k.t.dx.data) do {
            const int64_t j = idx[1];
            const double inv = at(&k.si.t, j, 0), a = at(&k.t.scale, j, 1) * inv,
                         d = test_get(&k.x.t, idx) - at(&k.sm.t, j, 0);
            const double k2 = inv * inv * q[j] / (double)n, dy = test_get(&k.dy.t, idx);
            const double mag =
                fabs(a) * (fabs(dy) + sa[j] / (double)n + fabs(d) * inv * inv * qa[j] / (double)n);
            test_close(test_get(&k.dx.t, idx), before[e] + a * (dy - s[j] / (double)n - d * k2),
                       g * (mag + fabs(before[e])), "dx");
            e++;
        } while (test_next(&k.dx.t, idx));
    free(s), free(q), free(sa), free(qa), free(before), free(old), free(m);
    set_free(&k);
}

static void random_cases(void **s)
{
    (void)s;
    test_rng r = test_rng_make(8);
    for (int i = 0; i < test_rounds(250); i++) check_case(&r, i % 3 == 2 ? STRATA_F64 : STRATA_F32, i);
}

static double loss(set *k, const strata_batch_norm *o)
{
    int64_t i[STRATA_MAX_RANK] = {0};
    double f = 0;
    test_ok(h, strata_batch_norm_training(h, o, &k->t));
    do f += test_get(&k->y.t, i) * test_get(&k->dy.t, i);
    while (test_next(&k->y.t, i));
    return f;
}

static void gradients(void **s)
{
    (void)s;
    test_rng r = test_rng_make(3);
    for (int layout = 0; layout < 3; layout++) {
        const int64_t dim[4] = {3, 4, 3, 2};
        const strata_batch_norm o = {.epsilon = 1e-3};
        set k;
        set_make(&r, &k, STRATA_F64, 4, dim, layout, true);
        k.t.running_mean = k.t.running_var = (strata_tensor){0};
        loss(&k, &o);
        test_ok(h, strata_batch_norm_backward(h, &o, &k.t));
        const strata_tensor *by[3] = {&k.x.t, &k.scale.t, &k.shift.t},
                            *got[3] = {&k.dx.t, &k.dscale.t, &k.dshift.t};
        for (int v = 0; v < 3; v++) {
            int64_t i[STRATA_MAX_RANK] = {0};
            do {
                const double x = test_get(by[v], i), step = 1e-5;
                test_put(by[v], i, x + step);
                const double up = loss(&k, &o);
                test_put(by[v], i, x - step);
                const double down = loss(&k, &o);
                test_put(by[v], i, x);
                test_close(test_get(got[v], i), (up - down) / (2 * step), 1e-7, "layout %d operand %d",
                           layout, v);
            } while (test_next(by[v], i));
        }
        set_free(&k);
    }
}

/* a mean far larger than the deviation: two passes hold, E[x^2] - E[x]^2 would not */
static void large_mean(void **s)
{
    (void)s;
    enum { N = 64, C = 3 };
    float x[N * C], y[N * C], mean[C], inv[C];
    for (int nchw = 0; nchw < 2; nchw++) {
        for (int i = 0; i < N; i++)
            for (int c = 0; c < C; c++) x[nchw ? c * N + i : i * C + c] = (float)(10000 + (i % 16) * 1e-3);
        strata_tensor X = strata_nhwc(x, STRATA_F32, 1, C, 1, N), Y = strata_nhwc(y, STRATA_F32, 1, C, 1, N);
        if (nchw) X = strata_nchw(x, STRATA_F32, 1, C, 1, N), Y = strata_nchw(y, STRATA_F32, 1, C, 1, N);
        strata_batch_norm_tensors t = {.x = X,
                                       .y = Y,
                                       .save_mean = strata_vector(mean, STRATA_F32, C, 1),
                                       .save_inv_std = strata_vector(inv, STRATA_F32, C, 1)};
        test_ok(h, strata_batch_norm_training(h, &(strata_batch_norm){.epsilon = 1e-12}, &t));
        double m = 0, v = 0;
        for (int i = 0; i < 16; i++) m += (float)(10000 + i * 1e-3) / 16;
        for (int i = 0; i < 16; i++) v += pow((double)(float)(10000 + i * 1e-3) - m, 2) / 16;
        for (int c = 0; c < C; c++)
            for (int i = 0; i < N; i++)
                test_close(y[nchw ? c * N + i : i * C + c], ((float)(10000 + (i % 16) * 1e-3) - m) / sqrt(v),
                           1e-4, "[%d][%d]", c, i);
    }
}

static void threads_same_bits(void **s)
{
    (void)s;
    test_rng r = test_rng_make(12);
    for (int layout = 0; layout < 2; layout++)
        for (int big = 0; big < 2; big++) {
            const int64_t dim[4] = {4, big ? 12 : 3, 50, 60};
            set k;
            set_make(&r, &k, STRATA_F32, 4, dim, layout, true);
            k.t.running_mean = k.t.running_var = (strata_tensor){0};
            test_array *out[6] = {&k.y, &k.dx, &k.sm, &k.si, &k.dscale, &k.dshift};
            unsigned char *first[6] = {NULL};
            for (int t = 1; t <= 3; t++) {
                test_ok(h, strata_set_threads(h, t));
                test_ok(h, strata_batch_norm_training(h, NULL, &k.t));
                test_ok(h, strata_batch_norm_backward(h, NULL, &k.t));
                for (int i = 0; i < 6; i++) {
                    if (!first[i])
                        first[i] = malloc(out[i]->bytes), memcpy(first[i], out[i]->base, out[i]->bytes);
                    test_check(!memcmp(first[i], out[i]->base, out[i]->bytes),
                               "%d threads change output %d, layout %d", t, i, layout);
                }
            }
            for (int i = 0; i < 6; i++) free(first[i]);
            set_free(&k);
        }
    test_ok(h, strata_set_threads(h, 0));
}

/* outputs beyond the caches are written past them: aligned or not, the values are the same */
static void large(void **s)
{
    (void)s;
    enum { N = 2, C = 48, S = 230 };
    const int64_t count = (int64_t)N * C * S * S;
    float *x = malloc((size_t)count * 4), *dy = malloc((size_t)count * 4),
          *y = test_guard((size_t)(count + 1) * 4, true), v[4][C];
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(i * 7919 % 1009) / 500 - 1, dy[i] = (float)(i * 104729 % 997) / 500 - 1;
    for (int nhwc = 0; nhwc < 2; nhwc++)
        for (int shift = 0; shift < 2; shift++) {
            strata_tensor X = nhwc ? strata_nhwc(x, STRATA_F32, N, C, S, S)
                                   : strata_nchw(x, STRATA_F32, N, C, S, S),
                          Y = X, DY = X;
            Y.data = y + shift, DY.data = dy;
            strata_batch_norm_tensors t = {.x = X,
                                           .y = Y,
                                           .dy = DY,
                                           .dx = Y,
                                           .save_mean = strata_vector(v[0], STRATA_F32, C, 1),
                                           .save_inv_std = strata_vector(v[1], STRATA_F32, C, 1),
                                           .dscale = strata_vector(v[2], STRATA_F32, C, 1),
                                           .dshift = strata_vector(v[3], STRATA_F32, C, 1)};
            test_ok(h, strata_batch_norm_training(h, NULL, &t));
            for (int64_t i = 0; i < count; i++) {
                const int64_t c = nhwc ? i % C : i / (S * S) % C;
                test_close(y[shift + i], ((double)x[i] - v[0][c]) * v[1][c], 1e-6, "y[%lld] nhwc %d shift %d",
                           (long long)i, nhwc, shift);
            }
            test_ok(h, strata_batch_norm_backward(h, NULL, &t));
            const double n = (double)count / C;
            for (int64_t i = 0; i < count; i++) {
                const int64_t c = nhwc ? i % C : i / (S * S) % C;
                const double want =
                    v[1][c] * (dy[i] - v[3][c] / n - ((double)x[i] - v[0][c]) * v[1][c] * v[2][c] / n);
                test_close(y[shift + i], want, 1e-6, "dx[%lld] nhwc %d shift %d", (long long)i, nhwc, shift);
            }
        }
    test_guard_free(y);
    free(x), free(dy);
}

static void nan_and_in_place(void **s)
{
    (void)s;
    /* a NaN stays in its channel; y may be x */
    float x[4 * 2] = {1, 10, 2, NAN, 3, 30, 4, 40};
    strata_tensor X = strata_matrix(x, STRATA_F32, 4, 2, STRATA_ROW_MAJOR, 0);
    test_ok(h, strata_batch_norm_training(h, NULL, &(strata_batch_norm_tensors){.x = X, .y = X}));
    for (int i = 0; i < 4; i++) {
        test_close(x[2 * i], (i - 1.5) / sqrt(1.25 + 1e-5), 1e-6, "%d", i);
        test_check(isnan(x[2 * i + 1]), "channel 1 must be NaN");
    }
}

static void refusals(void **s)
{
    (void)s;
    float x[24] = {0}, y[24] = {0}, v[6] = {0};
    strata_tensor X = strata_nchw(x, STRATA_F32, 2, 3, 2, 2), Y = strata_nchw(y, STRATA_F32, 2, 3, 2, 2),
                  V = strata_vector(v, STRATA_F32, 3, 1), W = strata_vector(v, STRATA_F32, 2, 1);
    strata_batch_norm_tensors t = {.x = X, .y = Y};
    test_error(h, strata_batch_norm_training(h, NULL, NULL), STRATA_ERROR_ARGUMENT, "tensors");
    test_error(h, strata_batch_norm_training(h, &(strata_batch_norm){.epsilon = -1}, &t),
               STRATA_ERROR_ARGUMENT, "epsilon is -1");
    test_error(h, strata_batch_norm_training(h, &(strata_batch_norm){.epsilon = NAN}, &t),
               STRATA_ERROR_ARGUMENT, "epsilon");
    test_error(h, strata_batch_norm_training(h, &(strata_batch_norm){.momentum = 2}, &t),
               STRATA_ERROR_ARGUMENT, "momentum is 2");
    t.scale = W;
    test_error(h, strata_batch_norm_training(h, NULL, &t), STRATA_ERROR_SHAPE, "scale is 2", "3 channels");
    t.scale = V;
    t.save_mean = V;
    test_error(h, strata_batch_norm_training(h, NULL, &t), STRATA_ERROR_ALIAS, "save_mean", "scale");
    t.save_mean = (strata_tensor){0};
    test_error(h, strata_batch_norm_inference(h, NULL, &t), STRATA_ERROR_TYPE, "running_mean");
    test_error(h, strata_batch_norm_backward(h, NULL, &t), STRATA_ERROR_TYPE, "dy");
    t.x = strata_vector(x, STRATA_F32, 3, 1);
    test_error(h, strata_batch_norm_training(h, NULL, &t), STRATA_ERROR_SHAPE, "rank 1");
    t = (strata_batch_norm_tensors){.x = strata_matrix(x, STRATA_F32, 1, 3, STRATA_ROW_MAJOR, 0),
                                    .y = strata_matrix(y, STRATA_F32, 1, 3, STRATA_ROW_MAJOR, 0),
                                    .running_var = V};
    test_error(h, strata_batch_norm_training(h, NULL, &t), STRATA_ERROR_SHAPE, "one element a channel",
               "running_biased");
    for (int i = 0; i < 24; i++) test_check(y[i] == 0, "y[%d] was written", i);
    t = (strata_batch_norm_tensors){.x = strata_nchw(NULL, STRATA_F32, 0, 3, 2, 2),
                                    .y = strata_nchw(NULL, STRATA_F32, 0, 3, 2, 2)};
    test_ok(h, strata_batch_norm_training(h, NULL, &t));
    v[0] = v[1] = v[2] = 7;
    t.dy = t.y, t.save_mean = t.save_inv_std = strata_vector(x, STRATA_F32, 3, 1), t.dshift = V;
    test_ok(h, strata_batch_norm_backward(h, NULL, &t));
    for (int i = 0; i < 3; i++) test_check(v[i] == 0, "the sum over no elements is 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_cases), cmocka_unit_test(gradients),
                                       cmocka_unit_test(large_mean),   cmocka_unit_test(threads_same_bits),
                                       cmocka_unit_test(large),        cmocka_unit_test(nan_and_in_place),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, setup, teardown) + test_lower_levels();
}
