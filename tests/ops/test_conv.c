/* SPDX-License-Identifier: Apache-2.0 */
/* test_conv.c - convolution and both gradients against a loop over every product in f64, over random shapes, layouts and options; every
 * kernel forced; threads; hostile memory. Every buffer lies between guard pages with NaN around every element. */
#include "support.h"
#include <math.h>
#include <strata.h>

enum { FORWARD, DATA, WEIGHTS };
static const char *const kind_name[3] = {"forward", "data", "weights"};

static strata_handle *h;

typedef struct problem {
    strata_type type;
    strata_conv o;
    int64_t x[4], w[4], y[4];
} problem;

static int64_t or_one(int64_t v) { return v ? v : 1; }

/* Draws the output's dims so that everything fits; returns false when it does not. */
static bool finish(problem *p)
{
    for (int d = 0; d < 2; d++) {
        const int64_t end = p->o.asymmetric ? p->o.pad_end[d] : p->o.pad[d];
        const int64_t room =
            p->x[2 + d] + p->o.pad[d] + end - (p->w[2 + d] - 1) * or_one(p->o.dilation[d]) - 1;
        if (room < 0) return false;
        p->y[2 + d] = room / or_one(p->o.stride[d]) + 1;
    }
    p->y[0] = p->x[0];
    p->y[1] = p->w[0];
    return true;
}

static problem draw(test_rng *r, int64_t channels, int64_t image)
{
    problem p;
    do {
        memset(&p, 0, sizeof p);
        p.type = test_chance(r, 0.3) ? STRATA_F64 : STRATA_F32;
        int64_t g = test_chance(r, 0.25) ? test_int(r, 2, 4) : 1;
        p.o.groups = g == 1 && test_chance(r, 0.5) ? 0 : g;
        int64_t cg = test_int(r, 1, channels / g), og = test_int(r, 1, channels / g);
        if (test_chance(r, 0.15)) { /* one filter a channel */
            p.o.groups = g = test_int(r, 2, channels);
            cg = og = 1;
        }
        p.x[0] = test_int(r, 1, 3), p.x[1] = cg * g, p.x[2] = test_int(r, 1, image),
        p.x[3] = test_int(r, 1, image);
        p.w[0] = og * g, p.w[1] = cg, p.w[2] = test_int(r, 1, 5), p.w[3] = test_int(r, 1, 5);
        p.o.asymmetric = test_chance(r, 0.3);
        p.o.flip = test_chance(r, 0.3);
        p.o.accumulate = test_chance(r, 0.3);
        for (int d = 0; d < 2; d++) {
            p.o.pad[d] = test_chance(r, 0.6) ? test_int(r, 0, 3) : 0;
            p.o.pad_end[d] = p.o.asymmetric ? test_int(r, 0, 3) : 0;
            p.o.stride[d] = test_chance(r, 0.4) ? test_int(r, 1, 3) : 0;
            p.o.dilation[d] = test_chance(r, 0.3) ? test_int(r, 1, 3) : 0;
        }
        if (test_chance(r, 0.15)) p.w[2] = p.w[3] = 1;
    } while (!finish(&p));
    return p;
}

/* Channels innermost, pixels innermost, or anything. */
static test_array image(test_rng *r, strata_type type, const int64_t *d, int how, bool input)
{
    if (how == 0) {
        test_array a = test_array_make(r, type, 4, (int64_t[]){d[0], d[2], d[3], d[1]}, TEST_PACKED);
        a.t = strata_permute(a.t, (int[]){0, 3, 1, 2});
        return a;
    }
    return test_array_make(r, type, 4, d, how == 1 ? TEST_PACKED : TEST_ANY | (input ? TEST_BROADCAST : 0));
}

static void say(const problem *p, int kind, const char *more)
{
    test_problem("conv %s %s x %lldx%lldx%lldx%lld w %lldx%lldx%lldx%lld pad %lld,%lld end %lld,%lld asym %d "
                 "stride %lld,%lld dilation "
                 "%lld,%lld groups %lld flip %d acc %d %s",
                 kind_name[kind], strata_type_name(p->type), (long long)p->x[0], (long long)p->x[1],
                 (long long)p->x[2], (long long)p->x[3], (long long)p->w[0], (long long)p->w[1],
                 (long long)p->w[2], (long long)p->w[3], (long long)p->o.pad[0], (long long)p->o.pad[1],
                 (long long)p->o.pad_end[0], (long long)p->o.pad_end[1], p->o.asymmetric,
                 (long long)p->o.stride[0], (long long)p->o.stride[1], (long long)p->o.dilation[0],
                 (long long)p->o.dilation[1], (long long)p->o.groups, p->o.flip, p->o.accumulate, more);
}

/* out, abs: dense arrays of the output's dims: sums and sums of absolute products, in f64 */
typedef struct expected {
    double *sum, *abs;
    int64_t *terms;
} expected;

static int64_t flat(const int64_t *d, int64_t a, int64_t b, int64_t c, int64_t e)
{
    return ((a * d[1] + b) * d[2] + c) * d[3] + e;
}

static expected reference(const problem *p, int kind, strata_tensor x, strata_tensor w, strata_tensor y)
{
    const int64_t *od = kind == FORWARD ? p->y : kind == DATA ? p->x : p->w;
    const size_t n = (size_t)(od[0] * od[1] * od[2] * od[3]) + 1;
    expected e = {calloc(n, sizeof(double)), calloc(n, sizeof(double)), calloc(n, sizeof(int64_t))};
    const int64_t groups = or_one(p->o.groups), og = p->w[0] / groups, cg = p->w[1];
    for (int64_t b = 0; b < p->y[0]; b++)
        for (int64_t oc = 0; oc < p->y[1]; oc++)
            for (int64_t i = 0; i < p->y[2]; i++)
                for (int64_t j = 0; j < p->y[3]; j++)
                    for (int64_t c = 0; c < cg; c++)
                        for (int64_t u = 0; u < p->w[2]; u++)
                            for (int64_t v = 0; v < p->w[3]; v++) {
                                const int64_t iy =
                                    i * or_one(p->o.stride[0]) - p->o.pad[0] + u * or_one(p->o.dilation[0]);
                                const int64_t ix =
                                    j * or_one(p->o.stride[1]) - p->o.pad[1] + v * or_one(p->o.dilation[1]);
                                if (iy < 0 || ix < 0 || iy >= p->x[2] || ix >= p->x[3]) continue;
                                const int64_t ic = oc / og * cg + c;
                                const int64_t wu = p->o.flip ? p->w[2] - 1 - u : u,
                                              wv = p->o.flip ? p->w[3] - 1 - v : v;
                                const double xv = kind == DATA ? 0 : test_elem(x, b, ic, iy, ix);
                                const double wv_ = kind == WEIGHTS ? 0 : test_elem(w, oc, c, wu, wv);
                                const double yv = kind == FORWARD ? 0 : test_elem(y, b, oc, i, j);
                                const double q = kind == FORWARD ? xv * wv_
                                                 : kind == DATA  ? yv * wv_
                                                                 : xv * yv;
                                const int64_t at = kind == FORWARD ? flat(od, b, oc, i, j)
                                                   : kind == DATA  ? flat(od, b, ic, iy, ix)
                                                                   : flat(od, oc, c, wu, wv);
                                e.sum[at] += q;
                                e.abs[at] += fabs(q);
                                e.terms[at]++;
                            }
    return e;
}

static void drop(expected *e)
{
    free(e->sum);
    free(e->abs);
    free(e->terms);
}

static strata_status call(strata_handle *hh, int kind, const strata_conv *o, strata_tensor x, strata_tensor w,
                          strata_tensor y)
{
    return kind == FORWARD ? strata_conv_forward(hh, o, x, w, y)
           : kind == DATA  ? strata_conv_backward_data(hh, o, y, w, x)
                           : strata_conv_backward_weights(hh, o, x, y, w);
}

static strata_status plan(strata_handle *hh, int kind, const strata_conv *o, strata_tensor x, strata_tensor w,
                          strata_tensor y, const strata_choice *choice, strata_plan **out)
{
    return kind == FORWARD ? strata_conv_forward_plan(hh, o, x, w, y, choice, out)
           : kind == DATA  ? strata_conv_backward_data_plan(hh, o, y, w, x, choice, out)
                           : strata_conv_backward_weights_plan(hh, o, x, y, w, choice, out);
}

static strata_status run(strata_handle *hh, int kind, const strata_plan *p, strata_tensor x, strata_tensor w,
                         strata_tensor y)
{
    void *forward[3] = {x.data, w.data, y.data}, *data[3] = {y.data, w.data, x.data},
         *weights[3] = {x.data, y.data, w.data};
    return strata_plan_run(hh, p, kind == FORWARD ? forward : kind == DATA ? data : weights, NULL);
}

/* The output against the reference: k rounded products and additions, the old value and its addition when accumulating. */
static void compare(const problem *p, int kind, const expected *e, strata_tensor out, const double *before)
{
    const int64_t *d = kind == FORWARD ? p->y : kind == DATA ? p->x : p->w;
    int64_t i[STRATA_MAX_RANK] = {0};
    if (!strata_count(out)) return;
    do {
        const int64_t at = flat(d, i[0], i[1], i[2], i[3]);
        const double old = before ? before[at] : 0;
        const double bound = test_gamma(e->terms[at] + 2, p->type) * (e->abs[at] + fabs(old));
        test_close(test_get(&out, i), e->sum[at] + old, bound, "[%lld,%lld,%lld,%lld]", (long long)i[0],
                   (long long)i[1], (long long)i[2], (long long)i[3]);
    } while (test_next(&out, i));
}

static double *snapshot(const int64_t *d, strata_tensor t)
{
    double *v = calloc((size_t)(d[0] * d[1] * d[2] * d[3]) + 1, sizeof *v);
    int64_t i[STRATA_MAX_RANK] = {0};
    if (strata_count(t)) do {
            v[flat(d, i[0], i[1], i[2], i[3])] = test_get(&t, i);
        } while (test_next(&t, i));
    return v;
}

static void fill(strata_tensor t, const int64_t *d, const double *v)
{
    int64_t i[STRATA_MAX_RANK] = {0};
    if (strata_count(t)) do {
            test_put(&t, i, v ? v[flat(d, i[0], i[1], i[2], i[3])] : NAN);
        } while (test_next(&t, i));
}

/* One problem, all three kinds: the plain call, and every kernel in `ids` forced through a plan (NULL ends). used[] counts. */
static void check_problem(test_rng *r, const problem *p, const char *const *ids, int *used)
{
    for (int kind = FORWARD; kind <= WEIGHTS; kind++) {
        int how[3] = {(int)test_int(r, 0, 2), (int)test_int(r, 0, 2), (int)test_int(r, 0, 2)};
        if (test_chance(r, 0.5)) how[2] = how[0];
        test_array x = image(r, p->type, p->x, how[0], kind != DATA),
                   w = image(r, p->type, p->w, how[1], kind != WEIGHTS),
                   y = image(r, p->type, p->y, how[2], kind != FORWARD);
        char more[64];
        snprintf(more, sizeof more, "layouts %d %d %d", how[0], how[1], how[2]);
        say(p, kind, more);
        const int64_t *od = kind == FORWARD ? p->y : kind == DATA ? p->x : p->w;
        test_array *out = kind == FORWARD ? &y : kind == DATA ? &x : &w;
        if (kind != DATA) test_array_random(r, &x, -1, 1);
        if (kind != WEIGHTS) test_array_random(r, &w, -1, 1);
        if (kind != FORWARD) test_array_random(r, &y, -1, 1);
        double *before = NULL;
        if (p->o.accumulate) {
            test_array_random(r, out, -1, 1);
            before = snapshot(od, out->t);
        }
        expected e = reference(p, kind, x.t, w.t, y.t);
        test_ok(h, call(h, kind, &p->o, x.t, w.t, y.t));
        compare(p, kind, &e, out->t, before);
        for (int i = 0; ids[i]; i++) {
            strata_plan *q;
            fill(out->t, od, before);
            say(p, kind, ids[i]);
            if (plan(h, kind, &p->o, x.t, w.t, y.t, &(strata_choice){.kernel = ids[i]}, &q)) {
                test_check(strstr(strata_error(h), "kernel"), "%s", strata_error(h));
                continue;
            }
            used[i]++;
            /* a gradient that no output reaches has no sum to force a kernel on: it is filled, or left as it is */
            const bool filled = kind == DATA && strstr(strata_plan_kernel(q), "reference"),
                       nothing = strstr(strata_plan_describe(q), ": 0 steps");
            test_check(filled || nothing || !strcmp(strata_plan_kernel(q), ids[i]), "%s",
                       strata_plan_describe(q));
            test_ok(h, run(h, kind, q, x.t, w.t, y.t));
            compare(p, kind, &e, out->t, before);
            strata_plan_destroy(q);
        }
        test_array_intact(&x);
        test_array_intact(&w);
        test_array_intact(&y);
        drop(&e);
        free(before);
        test_array_free(&x);
        test_array_free(&w);
        test_array_free(&y);
    }
}

/* Threads that a plan's workspace may serve: the team's, or as many as the handle was set to. */
static size_t most_threads(void)
{
    strata_device_info info;
    test_ok(h, strata_get_device_info("cpu", &info));
    return (size_t)(info.threads > 2 ? info.threads : 2);
}

/* All kernels of contractions with windows that run here, with the plain ones that may serve 1x1. */
static int kernel_ids(const char **ids, int max)
{
    int n = 0;
    strata_kernel_info info;
    for (int i = 0; strata_kernels(i, &info) && n < max - 1; i++)
        if (info.usable && (strcmp(info.family, "conv") == 0 || strcmp(info.family, "reference") == 0))
            ids[n++] = info.id;
    ids[n] = NULL;
    return n;
}

static void test_random(void **state)
{
    (void)state;
    const char *ids[64];
    int used[64] = {0};
    test_rng r = test_rng_make(101);
    const int n = kernel_ids(ids, 64);
    assert_true(n > 6);
    for (int i = 0; i < test_rounds(60); i++) {
        problem p = draw(&r, i % 4 == 0 ? 80 : 12, i % 4 == 0 ? 8 : 12);
        check_problem(&r, &p, ids, used);
    }
    for (int i = 0; i < n; i++) test_check(used[i] > 0, "kernel %s was never run", ids[i]);
}

static void test_special(void **state)
{
    (void)state;
    static const problem list[] = {
        {STRATA_F32, {.pad = {2, 2}}, {2, 1, 28, 28}, {16, 1, 5, 5}, {0}},
        {STRATA_F32, {.pad = {2, 2}}, {2, 16, 14, 14}, {32, 16, 5, 5}, {0}},
        {STRATA_F32, {.pad = {3, 3}, .stride = {2, 2}}, {1, 3, 31, 29}, {64, 3, 7, 7}, {0}},
        {STRATA_F32, {.pad = {1, 1}}, {1, 150, 7, 7}, {70, 150, 3, 3}, {0}},
        {STRATA_F32, {.stride = {2, 2}}, {2, 33, 9, 8}, {65, 33, 1, 1}, {0}},
        {STRATA_F32, {.groups = 1}, {2, 33, 9, 8}, {65, 33, 1, 1}, {0}},
        {STRATA_F32, {.pad = {1, 1}, .groups = 24}, {2, 24, 9, 11}, {24, 1, 3, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}, .groups = 24, .stride = {2, 2}}, {2, 24, 9, 11}, {48, 1, 3, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}, .groups = 9}, {2, 72, 6, 7}, {72, 8, 3, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}, .groups = 5, .stride = {2, 1}}, {1, 20, 6, 9}, {20, 4, 3, 3}, {0}},
        {STRATA_F64, {.pad = {1, 0}, .groups = 7}, {1, 28, 5, 6}, {28, 4, 3, 2}, {0}},
        {STRATA_F32, {.pad = {1, 1}, .groups = 3}, {2, 3, 7, 5}, {24, 1, 3, 3}, {0}},
        {STRATA_F32, {.groups = 11, .accumulate = true}, {2, 22, 3, 5}, {44, 2, 1, 1}, {0}},
        {STRATA_F32, {.pad = {1, 1}, .flip = true, .groups = 3}, {1, 48, 4, 4}, {48, 16, 3, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}}, {1, 96, 7, 7}, {40, 96, 3, 3}, {0}}, /* 49 = 3 vectors + 1 */
        {STRATA_F64, {.pad = {1, 1}}, {1, 70, 7, 6}, {19, 70, 3, 3}, {0}}, /* 42 = 5 vectors + 2 */
        {STRATA_F32, {.pad = {0, 1}}, {1, 130, 5, 7}, {33, 130, 1, 3}, {0}},
        {STRATA_F32,
         {.pad = {1, 1}},
         {1, 620, 3, 4},
         {66, 620, 3, 3},
         {0}}, /* weights of a block beyond L2 */
        {STRATA_F32, {.pad = {4, 4}}, {1, 2, 1, 1}, {3, 2, 9, 9}, {0}},
        {STRATA_F32, {.pad = {5, 4}, .stride = {3, 4}}, {1, 2, 3, 2}, {3, 2, 2, 3}, {0}},
        {STRATA_F32, {.stride = {5, 7}}, {1, 3, 6, 8}, {4, 3, 1, 1}, {0}},
        {STRATA_F32, {.pad = {2, 2}, .dilation = {2, 2}, .stride = {2, 2}}, {1, 5, 9, 9}, {6, 5, 3, 3}, {0}},
        {STRATA_F64, {.pad = {1, 1}, .accumulate = true}, {2, 40, 6, 6}, {36, 40, 3, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}}, {0, 4, 6, 6}, {8, 4, 3, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}, .accumulate = true}, {0, 4, 6, 6}, {8, 4, 3, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}}, {2, 0, 6, 6}, {8, 0, 3, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}}, {2, 4, 6, 6}, {0, 4, 3, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}}, {2, 4, 0, 6}, {3, 4, 2, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}}, {8, 8, 40, 40}, {8, 8, 3, 3}, {0}},
    };
    const char *ids[64];
    int used[64] = {0};
    test_rng r = test_rng_make(102);
    kernel_ids(ids, 64);
    for (int i = 0; i < TEST_COUNT(list); i++) {
        problem p = list[i];
        assert_true(finish(&p));
        check_problem(&r, &p, ids, used);
    }
}

/* x = 0..9 as 5x2, kernel [[1],[2]] */
static void test_flip(void **state)
{
    (void)state;
    float x[10], w[2] = {1, 2}, y[8];
    const float cross[8] = {4, 7, 10, 13, 16, 19, 22, 25}, flipped[8] = {2, 5, 8, 11, 14, 17, 20, 23};
    for (int i = 0; i < 10; i++) x[i] = (float)i;
    strata_tensor tx = strata_nchw(x, STRATA_F32, 1, 1, 5, 2), tw = strata_nchw(w, STRATA_F32, 1, 1, 2, 1),
                  ty = strata_nchw(y, STRATA_F32, 1, 1, 4, 2);
    test_ok(h, strata_conv_forward(h, NULL, tx, tw, ty));
    assert_memory_equal(y, cross, sizeof y);
    test_ok(h, strata_conv_forward(h, &(strata_conv){.flip = true}, tx, tw, ty));
    assert_memory_equal(y, flipped, sizeof y);
    int64_t dim[4];
    test_ok(h, strata_conv_output(h, NULL, tx, tw, dim));
    assert_true(dim[0] == 1 && dim[1] == 1 && dim[2] == 4 && dim[3] == 2);
}

/* The same bits from 1, 2 and 3 threads, and from a plan. */
static void test_threads(void **state)
{
    (void)state;
    test_rng r = test_rng_make(103);
    for (int round = 0; round < test_rounds(12); round++) {
        problem p = draw(&r, 48, 24);
        p.x[0] = 4;
        p.o.accumulate = false;
        if (!finish(&p)) continue;
        for (int kind = FORWARD; kind <= WEIGHTS; kind++) {
            const int how = (int)test_int(&r, 0, 1);
            test_array x = image(&r, p.type, p.x, how, false), w = image(&r, p.type, p.w, how, false),
                       y = image(&r, p.type, p.y, how, false);
            test_array *out = kind == FORWARD ? &y : kind == DATA ? &x : &w;
            if (kind != DATA) test_array_random(&r, &x, -1, 1);
            if (kind != WEIGHTS) test_array_random(&r, &w, -1, 1);
            if (kind != FORWARD) test_array_random(&r, &y, -1, 1);
            unsigned char *first = malloc(out->bytes);
            for (int threads = 1; threads <= 3; threads++) {
                say(&p, kind, "threads");
                test_ok(h, strata_set_threads(h, threads));
                for (int again = 0; again < 2; again++) {
                    test_ok(h, call(h, kind, &p.o, x.t, w.t, y.t));
                    if (threads == 1 && again == 0)
                        memcpy(first, out->base, out->bytes);
                    else
                        test_check(memcmp(first, out->base, out->bytes) == 0, "%d threads give other bits",
                                   threads);
                }
            }
            free(first);
            test_array_free(&x);
            test_array_free(&w);
            test_array_free(&y);
        }
        test_ok(h, strata_set_threads(h, 0));
    }
}

/* f(x, w) = sum of dy * conv(x, w) is linear in x and in w: central differences have no error but rounding. */
static void test_gradients(void **state)
{
    (void)state;
    test_rng r = test_rng_make(104);
    for (int round = 0; round < test_rounds(25); round++) {
        problem p = draw(&r, 6, 7);
        p.type = STRATA_F64;
        p.o.accumulate = false;
        say(&p, FORWARD, "gradients");
        test_array x = image(&r, p.type, p.x, 2, false), w = image(&r, p.type, p.w, 2, false),
                   y = image(&r, p.type, p.y, 2, false), dy = image(&r, p.type, p.y, 2, false),
                   dx = image(&r, p.type, p.x, 2, false), dw = image(&r, p.type, p.w, 2, false);
        test_array_random(&r, &x, -1, 1);
        test_array_random(&r, &w, -1, 1);
        test_array_random(&r, &dy, -1, 1);
        test_ok(h, strata_conv_backward_data(h, &p.o, dy.t, w.t, dx.t));
        test_ok(h, strata_conv_backward_weights(h, &p.o, x.t, dy.t, dw.t));
        for (int probe = 0; probe < 12; probe++) {
            test_array *v = probe % 2 ? &x : &w, *g = probe % 2 ? &dx : &dw;
            int64_t i[STRATA_MAX_RANK] = {0};
            for (int d = 0; d < 4; d++) i[d] = test_int(&r, 0, v->t.dim[d] - 1);
            const double at = test_get(&v->t, i);
            double f[2] = {0, 0}, scale = 0;
            for (int side = 0; side < 2; side++) {
                test_put(&v->t, i, at + (side ? 0.5 : -0.5));
                test_ok(h, strata_conv_forward(h, &p.o, x.t, w.t, y.t));
                int64_t j[STRATA_MAX_RANK] = {0};
                do {
                    f[side] += test_get(&dy.t, j) * test_get(&y.t, j);
                    scale += fabs(test_get(&y.t, j)) + 1;
                } while (test_next(&y.t, j));
            }
            test_put(&v->t, i, at);
            const double terms = (double)(p.w[1] * p.w[2] * p.w[3] + strata_count(y.t));
            test_close(test_get(&g->t, i), f[1] - f[0],
                       test_gamma((int64_t)terms + 8, STRATA_F64) * scale * terms, "d%s",
                       probe % 2 ? "x" : "w");
        }
        test_array *all[6] = {&x, &w, &y, &dy, &dx, &dw};
        for (int i = 0; i < 6; i++) {
            test_array_intact(all[i]);
            test_array_free(all[i]);
        }
    }
}

/* After the first call of a shape nothing is allocated. */
static void test_no_allocation(void **state)
{
    (void)state;
    test_rng r = test_rng_make(105);
    problem p = {STRATA_F32, {.pad = {1, 1}, .stride = {2, 2}}, {2, 24, 15, 15}, {40, 24, 3, 3}, {0}};
    assert_true(finish(&p));
    test_array x = image(&r, p.type, p.x, 0, false), w = image(&r, p.type, p.w, 0, false),
               y = image(&r, p.type, p.y, 0, false);
    test_array_random(&r, &x, -1, 1);
    test_array_random(&r, &w, -1, 1);
    test_array_random(&r, &y, -1, 1);
    strata_memory_stats s0, s1;
    strata_plan_cache_stats c0, c1;
    for (int kind = FORWARD; kind <= WEIGHTS; kind++) test_ok(h, call(h, kind, &p.o, x.t, w.t, y.t));
    test_ok(h, strata_get_memory_stats(h, &s0));
    test_ok(h, strata_get_plan_cache_stats(h, &c0));
    for (int i = 0; i < 3; i++)
        for (int kind = FORWARD; kind <= WEIGHTS; kind++) test_ok(h, call(h, kind, &p.o, x.t, w.t, y.t));
    test_ok(h, strata_get_memory_stats(h, &s1));
    test_ok(h, strata_get_plan_cache_stats(h, &c1));
    if (strcmp(strata_handle_device(h), "cpu") ==
        0) /* on a GPU the test's operands are staged, in blocks of the pool */
        assert_true(s0.allocations == s1.allocations);
    assert_true(s0.system_allocations == s1.system_allocations);
    assert_true(c0.misses == c1.misses && c1.hits > c0.hits);
    test_array_free(&x);
    test_array_free(&w);
    test_array_free(&y);
}

/* No kernel keeps more than packing buffers: a few MiB a thread, whatever the weights' size. */
static void test_workspace(void **state)
{
    (void)state;
    static const problem list[] = {
        {STRATA_F32, {.pad = {1, 1}}, {1, 512, 7, 7}, {512, 512, 3, 3}, {0}},
        {STRATA_F32, {.pad = {1, 1}}, {1, 256, 14, 14}, {256, 256, 3, 3}, {0}},
        {STRATA_F32, {.stride = {2, 2}}, {1, 1024, 14, 14}, {2048, 1024, 1, 1}, {0}},
        {STRATA_F64, {.pad = {1, 1}}, {1, 512, 14, 14}, {512, 512, 3, 3}, {0}},
        {STRATA_F32, {.pad = {3, 3}, .stride = {2, 2}}, {8, 3, 224, 224}, {64, 3, 7, 7}, {0}},
    };
    const char *ids[64];
    kernel_ids(ids, 64);
    for (int i = 0; i < TEST_COUNT(list); i++)
        for (int k = -1; k < 0 || ids[k]; k++) {
            problem p = list[i];
            assert_true(finish(&p));
            void *memory = malloc(64 << 20); /* never touched */
            strata_plan *q;
            const strata_choice choice = {.kernel = k < 0 ? NULL : ids[k]};
            const strata_tensor x = strata_nhwc(memory, p.type, p.x[0], p.x[1], p.x[2], p.x[3]),
                                w = strata_nhwc(memory, p.type, p.w[0], p.w[1], p.w[2], p.w[3]),
                                y = strata_nhwc((char *)memory + (48 << 20), p.type, p.y[0], p.y[1], p.y[2],
                                                p.y[3]);
            test_ok(h, strata_set_threads(h, 2));
            say(&p, FORWARD, k < 0 ? "workspace" : ids[k]);
            if (strata_conv_forward_plan(h, &p.o, x, w, y, &choice, &q) == STRATA_OK) {
                const size_t threads = most_threads();
                test_check(strata_plan_workspace(q) <= (8u << 20) + threads * (4u << 20), "workspace is %zu",
                           strata_plan_workspace(q));
                if (strstr(strata_plan_kernel(q), "_direct_") || k < 0)
                    test_check(strata_plan_workspace(q) <=
                                   threads * (4u << 20) + (p.w[2] == 7 ? 4u << 20 : 0),
                               "workspace is %zu", strata_plan_workspace(q));
                strata_plan_destroy(q);
            }
            free(memory);
        }
    test_ok(h, strata_set_threads(h, 0));
}

static int setup(void **state)
{
    (void)state;
    return strata_create(&h, test_device()) != STRATA_OK;
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flip),      cmocka_unit_test(test_special),
        cmocka_unit_test(test_random),    cmocka_unit_test(test_threads),
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_workspace),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
