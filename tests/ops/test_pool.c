/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool.c - strata_pool_*: against direct loops in double precision over random windows and views; exact for max. */
#include <math.h>
#include <strata.h>
#include "levels.h"
#include "handle.h"
#include "support.h"

static const strata_tensor none;

/* the window of output (p, q) in numbers */
typedef struct window {
    int64_t h0, w0, count;
} window;
static int64_t or1(int64_t v, int64_t otherwise) { return v ? v : otherwise; }
static int64_t end_pad(const strata_pool *o, int d) { return o->asymmetric ? o->pad_end[d] : o->pad[d]; }
static window window_at(const strata_pool *o, const strata_tensor *x, int64_t p, int64_t q)
{
    window w = {p * or1(o->stride[0], o->window[0]) - o->pad[0],
                q * or1(o->stride[1], o->window[1]) - o->pad[1], 0};
    for (int64_t r = 0; r < o->window[0]; r++)
        for (int64_t s = 0; s < o->window[1]; s++) {
            int64_t a = w.h0 + r * or1(o->dilation[0], 1), b = w.w0 + s * or1(o->dilation[1], 1);
            bool in = a >= 0 && a < x->dim[2] && b >= 0 && b < x->dim[3];
            bool padded = a < x->dim[2] + end_pad(o, 0) && b < x->dim[3] + end_pad(o, 1);
            w.count += o->count_padding ? padded : in;
        }
    return w;
}
/* value of a window; *at: position of the maximum, -1 for none; *mag: sum of magnitudes */
static double reference(const strata_pool *o, const strata_tensor *x, int64_t n, int64_t c, int64_t p,
                        int64_t q, int64_t *at, double *mag)
{
    window w = window_at(o, x, p, q);
    double best = -INFINITY, sum = 0;
    *at = -1;
    *mag = 0;
    for (int64_t r = 0; r < o->window[0]; r++)
        for (int64_t s = 0; s < o->window[1]; s++) {
            int64_t a = w.h0 + r * or1(o->dilation[0], 1), b = w.w0 + s * or1(o->dilation[1], 1);
            if (a < 0 || a >= x->dim[2] || b < 0 || b >= x->dim[3]) continue;
            double v = test_elem(*x, n, c, a, b);
            if (*at < 0 || v > best || (isnan(v) && !isnan(best))) best = v, *at = a * x->dim[3] + b;
            sum += v;
            *mag += fabs(v);
        }
    if (o->kind == STRATA_POOL_MAX) return best;
    *mag /= w.count ? (double)w.count : 1;
    return *at < 0 ? 0 : sum / (double)w.count;
}

static strata_pool random_pool(test_rng *r, int64_t height, int64_t width)
{
    strata_pool o = {.kind = test_chance(r, 0.6) ? STRATA_POOL_MAX : STRATA_POOL_AVERAGE};
    const int64_t len[2] = {height, width};
    for (int d = 0; d < 2; d++) {
        o.window[d] = test_int(r, 1, 4);
        o.dilation[d] = test_chance(r, 0.2) ? test_int(r, 1, 3) : 0;
        o.stride[d] = test_chance(r, 0.2) ? 0 : test_int(r, 1, 4);
        int64_t extent = (o.window[d] - 1) * or1(o.dilation[d], 1) + 1;
        o.pad[d] = test_chance(r, 0.5) ? test_int(r, 0, extent - 1) : 0;
        o.pad_end[d] = test_int(r, 0, extent - 1);
        while (len[d] + o.pad[d] + (o.pad[d] < o.pad_end[d] ? o.pad[d] : o.pad_end[d]) < extent) {
            o.window[d] = o.window[d] > 1 ? o.window[d] - 1 : 1;
            o.dilation[d] = 0;
            extent = o.window[d];
            o.pad[d] = o.pad_end[d] = 0;
        }
    }
    o.asymmetric = test_chance(r, 0.3);
    o.ceil_mode = test_chance(r, 0.3);
    o.count_padding = test_chance(r, 0.5);
    return o;
}

/* NCHW, NHWC or anything */
static test_array image(test_rng *r, strata_type t, const int64_t dim[4], int layout)
{
    if (layout == 0) return test_array_make(r, t, 4, dim, TEST_PACKED);
    if (layout == 1) {
        int64_t d[4] = {dim[0], dim[2], dim[3], dim[1]};
        test_array a = test_array_make(r, t, 4, d, test_chance(r, 0.3) ? TEST_PADDED : TEST_PACKED);
        a.t = strata_permute(a.t, (const int[]){0, 3, 1, 2});
        return a;
    }
    return test_array_make(r, t, 4, dim, TEST_ANY);
}

static void check_case(test_rng *r, strata_type type, int i)
{
    int64_t dim[4] = {test_int(r, 1, 3), test_int(r, 1, 40), test_int(r, 1, 20), test_int(r, 1, 45)};
    if (test_chance(r, 0.5)) dim[1] = test_int(r, 1, 3);
    strata_pool o = random_pool(r, dim[2], dim[3]);
    const int layout = (int)test_int(r, 0, 2);
    test_problem("pool case %d %s %s %lldx%lldx%lldx%lld layout %d window %lldx%lld stride %lld,%lld pad "
                 "%lld,%lld end %lld,%lld asym %d "
                 "dilation %lld,%lld ceil %d count %d",
                 i, o.kind ? "average" : "max", strata_type_name(type), (long long)dim[0], (long long)dim[1],
                 (long long)dim[2], (long long)dim[3], layout, (long long)o.window[0], (long long)o.window[1],
                 (long long)o.stride[0], (long long)o.stride[1], (long long)o.pad[0], (long long)o.pad[1],
                 (long long)o.pad_end[0], (long long)o.pad_end[1], o.asymmetric, (long long)o.dilation[0],
                 (long long)o.dilation[1], o.ceil_mode, o.count_padding);
    test_array x = image(r, type, dim, layout);
    test_array_integers(r, &x, -9, 9); /* many ties */
    int64_t idx[STRATA_MAX_RANK] = {0};
    if (test_chance(r, 0.5)) do {
            if (test_chance(r, 0.03)) test_put(&x.t, idx, test_chance(r, 0.5) ? NAN : -INFINITY);
        } while (test_next(&x.t, idx));
    int64_t out[4];
    test_ok(h, strata_pool_output(h, &o, x.t, out));
    test_array y = image(r, type, out, layout), a = image(r, STRATA_I32, out, layout);
    const bool arg = o.kind == STRATA_POOL_MAX && test_chance(r, 0.7);
    test_ok(h, strata_pool_forward(h, &o, x.t, y.t, arg ? a.t : none));
    memset(idx, 0, sizeof idx);
    do {
        int64_t at;
        double mag, want = reference(&o, &x.t, idx[0], idx[1], idx[2], idx[3], &at, &mag);
        const double bound =
            o.kind == STRATA_POOL_MAX ? 0 : test_gamma(o.window[0] * o.window[1] + 1, type) * mag;
        test_close(test_get(&y.t, idx), want, bound, "y[%d,%d,%d,%d]", (int)idx[0], (int)idx[1], (int)idx[2],
                   (int)idx[3]);
        if (arg)
            test_close(test_get(&a.t, idx), (double)at, 0, "argmax[%d,%d,%d,%d]", (int)idx[0], (int)idx[1],
                       (int)idx[2], (int)idx[3]);
    } while (test_next(&y.t, idx));
    test_array_intact(&x), test_array_intact(&y), test_array_intact(&a);

    /* backward: the windows' shares, in double precision */
    test_array dy = image(r, type, out, layout), dx = image(r, type, dim, layout),
               again = image(r, type, dim, 2);
    test_array_random(r, &dy, -2, 2);
    o.accumulate = test_chance(r, 0.4);
    test_array_random(r, &again, -1, 1);
    if (o.accumulate) test_array_random(r, &dx, -1, 1);
    double *want = calloc((size_t)strata_count(x.t), sizeof *want),
           *mags = calloc((size_t)strata_count(x.t), sizeof *mags);
    const int64_t area = dim[2] * dim[3];
    memset(idx, 0, sizeof idx);
    if (o.accumulate) do {
            int64_t k = (idx[0] * dim[1] + idx[1]) * area + idx[2] * dim[3] + idx[3];
            want[k] = test_get(&dx.t, idx);
            mags[k] = fabs(want[k]);
        } while (test_next(&dx.t, idx));
    memset(idx, 0, sizeof idx);
    do {
        int64_t at, plane = (idx[0] * dim[1] + idx[1]) * area;
        double mag, g = test_get(&dy.t, idx);
        reference(&o, &x.t, idx[0], idx[1], idx[2], idx[3], &at, &mag);
        window w = window_at(&o, &x.t, idx[2], idx[3]);
        if (o.kind == STRATA_POOL_MAX) {
            if (at >= 0) want[plane + at] += g, mags[plane + at] += fabs(g);
            continue;
        }
        for (int64_t p = 0; p < o.window[0]; p++)
            for (int64_t q = 0; q < o.window[1]; q++) {
                int64_t s = w.h0 + p * or1(o.dilation[0], 1), t = w.w0 + q * or1(o.dilation[1], 1);
                if (s < 0 || s >= dim[2] || t < 0 || t >= dim[3]) continue;
                want[plane + s * dim[3] + t] += g / (double)w.count;
                mags[plane + s * dim[3] + t] += fabs(g) / (double)w.count;
            }
    } while (test_next(&dy.t, idx));
    const bool use_x = !arg;
    test_ok(h, strata_pool_backward(h, &o, use_x && o.kind == STRATA_POOL_MAX ? x.t : none, dy.t,
                                    use_x ? none : a.t, dx.t));
    memset(idx, 0, sizeof idx);
    do {
        int64_t k = (idx[0] * dim[1] + idx[1]) * area + idx[2] * dim[3] + idx[3];
        test_close(test_get(&dx.t, idx), want[k], test_gamma(o.window[0] * o.window[1] + 3, type) * mags[k],
                   "dx[%d,%d,%d,%d]", (int)idx[0], (int)idx[1], (int)idx[2], (int)idx[3]);
    } while (test_next(&dx.t, idx));
    test_array_intact(&dx), test_array_intact(&dy);
    free(want), free(mags);
    test_array_free(&x), test_array_free(&y), test_array_free(&a), test_array_free(&dy), test_array_free(&dx),
        test_array_free(&again);
}

static void random_cases(void **s)
{
    (void)s;
    test_rng r = test_rng_make(41);
    for (int i = 0; i < test_rounds(400); i++) check_case(&r, i % 4 == 3 ? STRATA_F64 : STRATA_F32, i);
}

static void known_values(void **s)
{
    (void)s;
    float x[49], y[16];
    for (int i = 0; i < 5; i++) x[i] = (float)(i + 1);
    strata_pool o = {.kind = STRATA_POOL_AVERAGE,
                     .window = {1, 2},
                     .stride = {1, 2},
                     .ceil_mode = true,
                     .count_padding = true};
    strata_tensor xt = strata_nchw(x, STRATA_F32, 1, 1, 1, 5);
    int64_t dim[4];
    test_ok(h, strata_pool_output(h, &o, xt, dim));
    test_check(dim[2] == 1 && dim[3] == 3, "3 windows, got %d", (int)dim[3]);
    test_ok(h, strata_pool_forward(h, &o, xt, strata_nchw(y, STRATA_F32, 1, 1, 1, 3), none));
    const float want[3] = {1.5f, 3.5f, 5.0f};
    for (int i = 0; i < 3; i++) test_close(y[i], want[i], 0, "y[%d]", i);
    for (int i = 0; i < 49; i++) x[i] = (float)i;
    o = (strata_pool){.kind = STRATA_POOL_AVERAGE, .window = {2, 2}, .stride = {3, 3}, .ceil_mode = true};
    xt = strata_nchw(x, STRATA_F32, 1, 1, 7, 7);
    test_ok(h, strata_pool_forward(h, &o, xt, strata_nchw(y, STRATA_F32, 1, 1, 3, 3), none));
    const float want2[9] = {4, 7, 9.5f, 25, 28, 30.5f, 42.5f, 45.5f, 48};
    for (int i = 0; i < 9; i++) test_close(y[i], want2[i], 0, "y[%d]", i);
}

/* the mean of whole images, which has a kernel of its own where planes are contiguous */
static void global_average(void **s)
{
    (void)s;
    test_rng r = test_rng_make(19);
    for (int k = 0; k < 24; k++) {
        const int64_t dim[4] = {2, test_int(&r, 1, 20), test_int(&r, 1, 15), test_int(&r, 1, 15)},
                      one[4] = {2, dim[1], 1, 1};
        const strata_pool o = {.kind = STRATA_POOL_AVERAGE, .window = {dim[2], dim[3]}};
        test_problem("global average %lldx%lldx%lld", (long long)dim[1], (long long)dim[2],
                     (long long)dim[3]);
        test_array x = image(&r, k & 1 ? STRATA_F64 : STRATA_F32, dim, k % 3),
                   y = image(&r, k & 1 ? STRATA_F64 : STRATA_F32, one, k % 3);
        test_array_random(&r, &x, -1, 1);
        test_ok(h, strata_pool_forward(h, &o, x.t, y.t, none));
        int64_t i[STRATA_MAX_RANK] = {0};
        do {
            int64_t at;
            double mag, want = reference(&o, &x.t, i[0], i[1], 0, 0, &at, &mag);
            test_close(test_get(&y.t, i), want, test_gamma(dim[2] * dim[3] + 1, (strata_type)x.t.type) * mag,
                       "y[%d,%d]", (int)i[0], (int)i[1]);
        } while (test_next(&y.t, i));
        test_array_intact(&y);
        test_array_free(&x), test_array_free(&y);
    }
}

/* average is linear and max is locally linear away from ties: central differences are exact up to rounding */
static void gradients(void **s)
{
    (void)s;
    test_rng r = test_rng_make(5);
    for (int kind = 0; kind < 2; kind++) {
        const int64_t dim[4] = {2, 3, 6, 7};
        strata_pool o = {.kind = (strata_pool_kind)kind,
                         .window = {3, 2},
                         .stride = {2, 1},
                         .pad = {1, 1},
                         .count_padding = kind};
        test_array x = test_array_make(&r, STRATA_F64, 4, dim, TEST_PACKED);
        test_array_random(&r, &x, -1, 1);
        int64_t out[4], idx[STRATA_MAX_RANK] = {0}, jdx[STRATA_MAX_RANK] = {0};
        test_ok(h, strata_pool_output(h, &o, x.t, out));
        test_array y = test_array_make(&r, STRATA_F64, 4, out, TEST_PACKED),
                   dy = test_array_make(&r, STRATA_F64, 4, out, TEST_PACKED),
                   dx = test_array_make(&r, STRATA_F64, 4, dim, TEST_PACKED);
        test_array_random(&r, &dy, -1, 1);
        test_ok(h, strata_pool_backward(h, &o, x.t, dy.t, none, dx.t));
        do {
            double v = test_get(&x.t, idx), f[2] = {0, 0}, step = 1e-6;
            for (int side = 0; side < 2; side++) {
                test_put(&x.t, idx, v + (side ? step : -step));
                test_ok(h, strata_pool_forward(h, &o, x.t, y.t, none));
                memset(jdx, 0, sizeof jdx);
                do f[side] += test_get(&y.t, jdx) * test_get(&dy.t, jdx);
                while (test_next(&y.t, jdx));
            }
            test_put(&x.t, idx, v);
            test_close(test_get(&dx.t, idx), (f[1] - f[0]) / (2 * step), 1e-8, "kind %d", kind);
        } while (test_next(&x.t, idx));
        test_array_free(&x), test_array_free(&y), test_array_free(&dy), test_array_free(&dx);
    }
}

static void threads_same_bits(void **s)
{
    (void)s;
    test_rng r = test_rng_make(77);
    for (int layout = 0; layout < 2; layout++)
        for (int kind = 0; kind < 2; kind++) {
            const int64_t dim[4] = {3, 24, 40, 40};
            strata_pool o = {
                .kind = (strata_pool_kind)kind, .window = {3, 3}, .stride = {2, 2}, .pad = {1, 1}};
            test_array x = image(&r, STRATA_F32, dim, layout);
            test_array_random(&r, &x, -1, 1);
            int64_t out[4];
            test_ok(h, strata_pool_output(h, &o, x.t, out));
            test_array dy = image(&r, STRATA_F32, out, layout);
            test_array_random(&r, &dy, -1, 1);
            float *first = NULL;
            for (int t = 1; t <= 3; t++) {
                test_array y = image(&r, STRATA_F32, out, 0), dx = image(&r, STRATA_F32, dim, 0);
                /* the operands' layouts must agree for the channels kernel: copy back through dense images */
                test_array yl = image(&r, STRATA_F32, out, layout), dxl = image(&r, STRATA_F32, dim, layout);
                test_ok(h, strata_set_threads(h, t));
                test_ok(h, strata_pool_forward(h, &o, x.t, yl.t, none));
                test_ok(h, strata_pool_backward(h, &o, x.t, dy.t, none, dxl.t));
                test_ok(h, strata_copy(h, yl.t, y.t));
                test_ok(h, strata_copy(h, dxl.t, dx.t));
                const size_t ny = (size_t)strata_count(y.t), nx = (size_t)strata_count(dx.t);
                if (!first) {
                    first = malloc((ny + nx) * sizeof *first);
                    memcpy(first, y.t.data, ny * sizeof *first);
                    memcpy(first + ny, dx.t.data, nx * sizeof *first);
                }
                test_check(!memcmp(first, y.t.data, ny * 4) && !memcmp(first + ny, dx.t.data, nx * 4),
                           "%d threads change bits", t);
                test_array_free(&y), test_array_free(&dx), test_array_free(&yl), test_array_free(&dxl);
            }
            free(first);
            test_array_free(&x), test_array_free(&dy);
        }
    test_ok(h, strata_set_threads(h, 0));
}

/* An argmax that no forward call wrote: entries outside their windows give their gradients to nobody, and nothing beside dx is written. */
static void wild_argmax(void **s)
{
    (void)s;
    enum { C = 5, H = 8, W = 6, P = 4, Q = 3 };
    static const int32_t wild[] = {-1, -2, H * W, H * W + 7, INT32_MAX, INT32_MIN, 0, H * W - 1};
    const strata_pool o = {.kind = STRATA_POOL_MAX, .window = {2, 2}};
    for (int nhwc = 0; nhwc < 2; nhwc++) {
        float *dx = test_guard(C * H * W * sizeof *dx, true);
        float dy[C * P * Q], want[C * H * W] = {0};
        int32_t a[C * P * Q];
        strata_tensor (*const view)(const void *, strata_type, int64_t, int64_t, int64_t, int64_t) =
            nhwc ? strata_nhwc : strata_nchw;
        const strata_tensor tx = view(dx, STRATA_F32, 1, C, H, W), ty = view(dy, STRATA_F32, 1, C, P, Q);
        for (int c = 0; c < C; c++)
            for (int i = 0; i < P; i++)
                for (int j = 0; j < Q; j++) {
                    const int64_t at = c * ty.stride[1] + i * ty.stride[2] + j * ty.stride[3];
                    const int n = (c * P + i) * Q + j;
                    dy[at] = (float)(n + 1);
                    const int y = 2 * i + n % 2,
                              x = 2 * j + n / 2 % 2; /* every third entry is a position of its window */
                    a[at] = n % 3 ? wild[n % TEST_COUNT(wild)] : y * W + x;
                    const int own = a[at] >= 0 && a[at] < H * W && a[at] / W / 2 == i && a[at] % W / 2 == j;
                    if (own)
                        want[c * tx.stride[1] + a[at] / W * tx.stride[2] + a[at] % W * tx.stride[3]] +=
                            dy[at];
                }
        memset(dx, 0xff, C * H * W * sizeof *dx);
        test_ok(h, strata_pool_backward(h, &o, none, ty, view(a, STRATA_I32, 1, C, P, Q), tx));
        for (int i = 0; i < C * H * W; i++) test_check(dx[i] == want[i], "dx[%d] is %g", i, (double)dx[i]);
        test_check(test_guard_intact((unsigned char *)dx), "written beside dx");
        test_guard_free((unsigned char *)dx);
    }
}

static void refusals(void **s)
{
    (void)s;
    float x[64] = {0}, y[64] = {0};
    strata_tensor xt = strata_nchw(x, STRATA_F32, 1, 1, 8, 8), yt = strata_nchw(y, STRATA_F32, 1, 1, 4, 4);
    strata_pool o = {.window = {2, 2}};
    test_error(h, strata_pool_forward(h, NULL, xt, yt, none), STRATA_ERROR_ARGUMENT, "options", "window");
    test_error(h, strata_pool_forward(h, &(strata_pool){.window = {2, 0}}, xt, yt, none),
               STRATA_ERROR_ARGUMENT, "columns", "window is 0");
    test_error(h, strata_pool_forward(h, &(strata_pool){.window = {2, 2}, .pad = {2, 0}}, xt, yt, none),
               STRATA_ERROR_ARGUMENT, "padding");
    test_error(h, strata_pool_forward(h, &(strata_pool){.window = {9, 2}}, xt, yt, none), STRATA_ERROR_SHAPE,
               "must fit");
    test_error(h, strata_pool_forward(h, &o, xt, strata_nchw(y, STRATA_F32, 1, 1, 3, 4), none),
               STRATA_ERROR_SHAPE, "y is 1x1x3x4", "1x1x4x4");
    test_error(h, strata_pool_forward(h, &o, xt, strata_nchw(x, STRATA_F32, 1, 1, 4, 4), none),
               STRATA_ERROR_ALIAS, "overlaps");
    test_error(h, strata_pool_forward(h, &o, xt, yt, strata_nchw(y + 32, STRATA_F32, 1, 1, 4, 4)),
               STRATA_ERROR_TYPE, "argmax", "i32");
    test_error(h, strata_pool_forward(h, &o, strata_nchw(x, STRATA_I32, 1, 1, 8, 8), yt, none),
               STRATA_ERROR_TYPE, "x is i32");
    test_error(h, strata_pool_backward(h, &o, none, yt, none, xt), STRATA_ERROR_TYPE, "x");
    test_error(h, strata_pool_forward(h, &(strata_pool){.window = {2, 2}, .reserved = {0, 1}}, xt, yt, none),
               STRATA_ERROR_ARGUMENT, "reserved");
    for (int i = 0; i < 64; i++) test_check(y[i] == 0 && x[i] == 0, "written at %d", i);
    /* no elements */
    test_ok(h, strata_pool_forward(h, &o, strata_nchw(NULL, STRATA_F32, 0, 1, 8, 8),
                                   strata_nchw(NULL, STRATA_F32, 0, 1, 4, 4), none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_values),      cmocka_unit_test(global_average),
                                       cmocka_unit_test(random_cases),      cmocka_unit_test(gradients),
                                       cmocka_unit_test(threads_same_bits), cmocka_unit_test(refusals),
                                       cmocka_unit_test(wild_argmax)};
    return cmocka_run_group_tests(tests, setup, teardown) + test_lower_levels();
}
