/* SPDX-License-Identifier: Apache-2.0 */
/* test_window.c - windowed contractions as the engine sees them: random axes, strides and bounds in every kernel against the sum
 * itself, what simplification may and may not do, packing, and the refusals in words. */
#include "support.h"
#include "tile/window.h"
#include <math.h>
#include <strata/plan.h>

static strata_handle *h;

/* A random contraction over one image operand: m = (image, y, x, channel or none), k = (taps, taps, channel or none). */
typedef struct problem {
    st_contract c;
    int64_t elements[3], start[3]; /* sizes of the buffers and where A, B, C begin */
} problem;

static void extent(const st_contract *c, int which, int64_t *lo, int64_t *hi)
{
    const st_axes *l[4] = {&c->m, &c->n, &c->k, &c->batch};
    *lo = *hi = 0;
    for (int i = 0; i < 4; i++)
        for (int64_t d = 0; d < l[i]->count; d++) {
            const st_axis *x = &l[i]->ax[d];
            const int64_t s = (which == 0 ? x->a : which == 1 ? x->b : x->c) * (x->len - 1);
            *(s < 0 ? lo : hi) += s;
        }
}

static int64_t shuffle_strides(test_rng *r, int n, const int64_t *len, int64_t *stride)
{
    int order[8];
    int64_t s = test_chance(r, 0.7) ? 1 : 2;
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)test_int(r, 0, i), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (int i = 0; i < n; i++) {
        stride[order[i]] = test_chance(r, 0.15) ? -s : s;
        s *= len[order[i]] + (test_chance(r, 0.2) ? 1 : 0);
    }
    return s;
}

static problem draw(test_rng *r)
{
    problem p;
    memset(&p, 0, sizeof p);
    st_contract *c = &p.c;
    const int64_t type = test_chance(r, 0.3) ? STRATA_F64 : STRATA_F32;
    c->ta = c->tb = c->tc = type;
    const bool gradient = test_chance(r, 0.5); /* channels in m, images in k */
    const int64_t g = test_int(r, 1, 2), images = test_int(r, 1, 4), ch = test_int(r, 1, 20),
                  oy = test_int(r, 1, 7), ox = test_int(r, 1, 9), ky = test_int(r, 1, 3),
                  kx = test_int(r, 1, 4), n = test_int(r, 1, 70), iy = test_int(r, 1, 8),
                  ix = test_int(r, 1, 8);
    const int64_t my = test_int(r, 1, 2), mx = test_int(r, 1, 2),
                  dy = test_chance(r, 0.3) ? -1 : test_int(r, 1, 2), dx = test_int(r, 1, 2);
    int64_t sa[5];
    shuffle_strides(r, 5, (int64_t[]){g, images, ch, iy, ix}, sa);
    st_axes *in = gradient ? &c->m : &c->k, *out = gradient ? &c->k : &c->m; /* channels; images */
    st_axes *win = gradient ? &c->m : &c->k, *pos = gradient ? &c->k : &c->m;
    out->ax[out->count++] = (st_axis){images, sa[1], 0, 0};
    const int64_t py = pos->count;
    pos->ax[pos->count++] = (st_axis){oy, sa[3] * my, 0, 0};
    pos->ax[pos->count++] = (st_axis){ox, sa[4] * mx, 0, 0};
    const int64_t wy = win->count;
    win->ax[win->count++] = (st_axis){ky, sa[3] * dy, 0, 0};
    win->ax[win->count++] = (st_axis){kx, sa[4] * dx, 0, 0};
    in->ax[in->count++] = (st_axis){ch, sa[2], 0, 0};
    c->n.ax[c->n.count++] = (st_axis){n, 0, 0, 0};
    c->batch.ax[c->batch.count++] = (st_axis){g, sa[0], 0, 0};
    int64_t len[5];
    for (int64_t i = 0; i < c->k.count; i++) len[i] = c->k.ax[i].len;
    len[c->k.count] = n, len[c->k.count + 1] = g;
    int64_t st[6];
    shuffle_strides(r, (int)c->k.count + 2, len, st);
    for (int64_t i = 0; i < c->k.count; i++) c->k.ax[i].b = st[i];
    c->n.ax[0].b = st[c->k.count], c->batch.ax[0].b = st[c->k.count + 1];
    for (int64_t i = 0; i < c->m.count; i++) len[i] = c->m.ax[i].len;
    len[c->m.count] = n, len[c->m.count + 1] = g;
    shuffle_strides(r, (int)c->m.count + 2, len, st);
    for (int64_t i = 0; i < c->m.count; i++) c->m.ax[i].c = st[i];
    c->n.ax[0].c = st[c->m.count], c->batch.ax[0].c = st[c->m.count + 1];
    const int64_t offy = test_int(r, -3, 1), offx = test_int(r, -3, 1);
    c->bounds = 2;
    c->bound[0] =
        (st_bound){iy, offy, gradient ? wy : py, gradient ? dy : my, gradient ? py : wy, gradient ? my : dy};
    c->bound[1] = (st_bound){ix,
                             offx,
                             gradient ? wy + 1 : py + 1,
                             gradient ? dx : mx,
                             gradient ? py + 1 : wy + 1,
                             gradient ? mx : dx};
    /* A: the image's own extent; its address is that of coordinate (offy, offx), which may lie outside */
    int64_t lo = 0, hi = 0;
    const int64_t dims[5] = {g, images, ch, iy, ix};
    for (int i = 0; i < 5; i++) *((sa[i] < 0) ? &lo : &hi) += sa[i] * (dims[i] - 1);
    p.elements[0] = hi - lo + 1;
    p.start[0] = -lo + offy * sa[3] + offx * sa[4];
    for (int o = 1; o < 3; o++) {
        extent(c, o, &lo, &hi);
        p.elements[o] = hi - lo + 1;
        p.start[o] = -lo;
    }
    return p;
}

static double get(int64_t type, const void *v, int64_t i)
{
    return type == STRATA_F32 ? ((const float *)v)[i] : ((const double *)v)[i];
}
static void put(int64_t type, void *v, int64_t i, double x)
{
    if (type == STRATA_F32)
        ((float *)v)[i] = (float)x;
    else
        ((double *)v)[i] = x;
}

/* One element: the sum, the sum of absolute products, the number of terms. */
static double element(const st_contract *c, void *const data[], int64_t g, int64_t m, int64_t n, double *abs,
                      int64_t *terms)
{
    int64_t mi[ST_AXES] = {0}, ki[ST_AXES] = {0};
    double s = 0;
    *abs = 0, *terms = 0;
    st_axes_index(&c->m, m, mi);
    const int64_t K = st_axes_len(&c->k);
    for (int64_t k = 0; k < K; k++) {
        st_axes_index(&c->k, k, ki);
        bool in = true;
        for (int64_t b = 0; b < c->bounds; b++) {
            const st_bound *q = &c->bound[b];
            const int64_t at =
                q->offset + (q->m < 0 ? 0 : q->im * mi[q->m]) + (q->k < 0 ? 0 : q->ik * ki[q->k]);
            in = in && at >= 0 && at < q->limit;
        }
        if (!in) continue;
        const int64_t a =
            st_axes_offset(&c->batch, 'a', g) + st_axes_offset(&c->m, 'a', m) + st_axes_offset(&c->k, 'a', k);
        const int64_t b =
            st_axes_offset(&c->batch, 'b', g) + st_axes_offset(&c->n, 'b', n) + st_axes_offset(&c->k, 'b', k);
        const double x = get(c->ta, data[0], a) * get(c->tb, data[1], b);
        s += x;
        *abs += fabs(x);
        ++*terms;
    }
    return s;
}

static void check(test_rng *r, const problem *p, const char *kernel, int *used)
{
    const st_contract *c = &p->c;
    const int64_t es = c->ta == STRATA_F32 ? 4 : 8, M = st_axes_len(&c->m), N = st_axes_len(&c->n),
                  G = st_axes_len(&c->batch);
    unsigned char *buffer[3];
    void *data[3];
    for (int o = 0; o < 3; o++) {
        buffer[o] = test_guard((size_t)(p->elements[o] * es), test_chance(r, 0.5));
        data[o] = buffer[o] + p->start[o] * es;
        if (o < 2)
            for (int64_t i = 0; i < p->elements[o]; i++) put(c->ta, buffer[o], i, test_real(r, -1, 1));
    }
    strata_plan *plan;
    const double alpha = test_chance(r, 0.5)   ? 1
                         : test_chance(r, 0.3) ? 0
                                               : -1.5,
                 beta = test_chance(r, 0.5) ? 0 : 0.75;
    strata_status s =
        st_tile_plan(h, "test", c, NULL, alpha, beta, &(strata_choice){.kernel = kernel}, &plan);
    if (s == STRATA_OK) {
        ++*used;
        double *old = calloc((size_t)(M * N * G), sizeof *old);
        if (beta != 0)
            for (int64_t i = 0; i < M * N * G; i++) {
                old[i] = test_real(r, -1, 1);
                const int64_t at = st_axes_offset(&c->batch, 'c', i / (M * N)) +
                                   st_axes_offset(&c->m, 'c', i / N % M) + st_axes_offset(&c->n, 'c', i % N);
                put(c->tc, data[2], at, old[i]);
                old[i] = get(c->tc, data[2], at);
            }
        if (alpha == 0) { /* A and B are not read */
            test_poison(buffer[0], (size_t)(p->elements[0] * es));
            test_poison(buffer[1], (size_t)(p->elements[1] * es));
        }
        test_ok(h, strata_plan_run(h, plan, data, NULL));
        for (int64_t i = 0; i < M * N * G; i++) {
            double abs = 0, want = 0;
            int64_t terms = 0;
            if (alpha != 0) want = element(c, data, i / (M * N), i / N % M, i % N, &abs, &terms);
            const int64_t at = st_axes_offset(&c->batch, 'c', i / (M * N)) +
                               st_axes_offset(&c->m, 'c', i / N % M) + st_axes_offset(&c->n, 'c', i % N);
            test_close(get(c->tc, data[2], at), alpha * want + beta * old[i],
                       test_gamma(terms + 4, (strata_type)c->tc) * (fabs(alpha) * abs + fabs(beta * old[i])),
                       "element %lld", (long long)i);
        }
        free(old);
        strata_plan_destroy(plan);
    } else {
        test_check(strstr(strata_error(h), kernel), "%s", strata_error(h));
    }
    for (int o = 0; o < 3; o++) {
        test_check(test_guard_intact(buffer[o]), "operand %d", o);
        test_guard_free(buffer[o]);
    }
}

static void test_random(void **state)
{
    (void)state;
    test_rng r = test_rng_make(301);
    int used[64] = {0}, count = 0;
    strata_kernel_info info;
    for (int round = 0; round < test_rounds(60); round++) {
        const problem p = draw(&r);
        count = 0;
        for (int i = 0; strata_kernels(i, &info); i++) {
            if (!info.usable || (strcmp(info.family, "conv") != 0 && strcmp(info.family, "reference") != 0))
                continue;
            if (strstr(info.id, "depthwise"))
                continue; /* wants one column: tests/ops/test_conv.c draws such problems */
            test_problem("contraction round %d kernel %s", round, info.id);
            check(&r, &p, info.id, &used[count++]);
        }
    }
    for (int i = 0; i < count; i++) test_check(used[i] > 0, "kernel number %d was never run", i);
}

/* The simplified problem has the same elements. */
static void test_simplify(void **state)
{
    (void)state;
    test_rng r = test_rng_make(302);
    for (int round = 0; round < test_rounds(60); round++) {
        const problem p = draw(&r);
        st_contract s = p.c;
        st_tile_simplify(&s);
        test_problem("simplify round %d", round);
        assert_true(st_axes_len(&s.m) == st_axes_len(&p.c.m) && st_axes_len(&s.k) == st_axes_len(&p.c.k));
        for (int64_t d = 0; d < s.k.count; d++) assert_true(s.k.ax[d].len > 1);
        void *data[3];
        double *v[2];
        for (int o = 0; o < 2; o++) {
            v[o] = calloc((size_t)p.elements[o], 8);
            for (int64_t i = 0; i < p.elements[o]; i++) put(p.c.ta, v[o], i, (double)test_int(&r, -4, 4));
            data[o] = (char *)v[o] + p.start[o] * (p.c.ta == STRATA_F32 ? 4 : 8);
        }
        for (int probe = 0; probe < 20; probe++) {
            const int64_t m = test_int(&r, 0, st_axes_len(&s.m) - 1),
                          n = test_int(&r, 0, st_axes_len(&s.n) - 1),
                          g = test_int(&r, 0, st_axes_len(&s.batch) - 1);
            double abs;
            int64_t terms;
            assert_true(element(&s, data, g, m, n, &abs, &terms) ==
                        element(&p.c, data, g, m, n, &abs, &terms));
            assert_true(st_axes_offset(&s.m, 'c', m) == st_axes_offset(&p.c.m, 'c', m));
        }
        free(v[0]);
        free(v[1]);
    }
    /* bounds that always hold go, others stay; neighbours merge */
    st_contract c = {.m = {2, {{3, 12, 0, 8}, {4, 3, 0, 2}}},
                     .k = {1, {{2, 1, 1, 0}}},
                     .n = {1, {{2, 0, 2, 1}}},
                     .bounds = 2};
    c.ta = c.tb = c.tc = STRATA_F32;
    c.bound[0] = (st_bound){6, 0, 1, 1, 0, 1};
    c.bound[1] = (st_bound){5, -1, 1, 1, 0, 1};
    st_tile_simplify(&c);
    assert_true(c.bounds == 1 && c.bound[0].offset == -1 && c.m.count == 2);
    c.bound[0].offset = 0;
    c.bound[0].limit = 9;
    st_tile_simplify(&c);
    assert_true(c.bounds == 0 && c.m.count == 1 && c.m.ax[0].len == 12 && c.m.ax[0].a == 3);
}

/* What only the reference takes, and what the windowed kernels say about it. */
static void test_refusals(void **state)
{
    (void)state;
    st_contract c = {.m = {1, {{3, 2, 1, 1}}}, .k = {1, {{2, 1, 3, 0}}}, .n = {1, {{2, 0, 6, 3}}}};
    c.ta = c.tb = c.tc = STRATA_F32;
    strata_plan *p;
    test_ok(h, st_tile_plan(h, "test", &c, NULL, 1, 0,
                            &(strata_choice){.kernel = "contract_any_reference_portable"}, &p));
    assert_non_null(strstr(strata_plan_describe(p), "an m axis moves in B"));
    float a[6] = {1, 2, 3, 4, 5, 6}, b[16], out[6];
    for (int i = 0; i < 16; i++) b[i] = (float)i;
    void *data[3] = {a, b, out};
    test_ok(h, strata_plan_run(h, p, data, NULL));
    for (int m = 0; m < 3; m++)
        for (int n = 0; n < 2; n++)
            assert_true(out[m + 3 * n] == a[2 * m] * b[m + 6 * n] + a[2 * m + 1] * b[m + 6 * n + 3]);
    strata_plan_destroy(p);
    test_error(h,
               st_tile_plan(h, "test", &c, NULL, 1, 0,
                            &(strata_choice){.kernel = "conv_f32f32f32_direct_6x8_portable"}, &p),
               STRATA_ERROR_ARGUMENT, "conv_f32f32f32_direct_6x8_portable");
    c.tb = STRATA_F64;
    test_error(h,
               st_tile_plan(h, "test", &c, NULL, 1, 0,
                            &(strata_choice){.kernel = "conv_f32f32f32_direct_6x8_portable"}, &p),
               STRATA_ERROR_ARGUMENT, "conv_f32f32f32_direct_6x8_portable");
}

static int setup(void **state)
{
    (void)state;
    st_tile_init();
    return strata_create(&h, "cpu") != STRATA_OK;
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_simplify),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
