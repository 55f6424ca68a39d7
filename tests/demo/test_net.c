/* SPDX-License-Identifier: Apache-2.0 */
/* test_net.c - the network as a whole: every gradient against a central difference of the loss, the same bits for any number of
 * threads, and training and inference paths that agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "net.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16 };
static uint8_t pixels[BATCH * NET_PIXELS], labels[BATCH];

static net *make(int threads)
{
    char why[1000];
    net *n = net_create("cpu", threads, BATCH, 7, why, sizeof why);
    if (!n) fail_msg("%s", why);
    srand(3);
    for (int i = 0; i < BATCH; i++) {
        labels[i] = (uint8_t)(i % NET_CLASSES);
        /* blobs that differ by class, with noise */
        for (int k = 0; k < NET_PIXELS; k++)
            pixels[i * NET_PIXELS + k] = (uint8_t)((k / 79 == labels[i] ? 150 : 20) + rand() % 80);
    }
    return n;
}

#define OK(n, call)                             \
    do {                                        \
        if (call) fail_msg("%s", net_error(n)); \
    } while (0)

/* The value of element i, counted in memory: parameters are dense, whatever their strides. */
static float *element(strata_tensor t, int64_t i) { return (float *)t.data + i; }

static void gradients(void **state)
{
    (void)state;
    net *n = make(2);
    net_parameter p;
    double loss;
    OK(n, net_load(n, pixels, labels));
    for (int i = 0; net_parameter_at(n, i, &p) && p.gradient.data; i++) {
        int64_t count = strata_count(p.value);
        OK(n, net_forward(n, &loss));
        OK(n, net_backward(n));
        /* along the gradient itself the slope is its length; a step that changes the loss by about 1 % of it is far above
         * rounding (1e-6) and near enough for kinks and curvature to stay below the bound */
        double square = 0, side[2];
        for (int64_t k = 0; k < count; k++) square += pow(*element(p.gradient, k), 2);
        assert_true(square > 0);
        double step = 0.004 * loss / square, largest = 0;
        float *keep = malloc((size_t)count * 4);
        memcpy(keep, p.value.data, (size_t)count * 4);
        for (int64_t k = 0; k < count; k++) largest = fmax(largest, fabs(step * *element(p.gradient, k)));
        if (largest > 0.02) step *= 0.02 / largest;
        for (int s = 0; s < 2; s++) {
            for (int64_t k = 0; k < count; k++)
                *element(p.value, k) = keep[k] + (float)((s ? -step : step) * *element(p.gradient, k));
            OK(n, net_forward(n, &side[s]));
        }
        memcpy(p.value.data, keep, (size_t)count * 4);
        free(keep);
        double measured = (side[0] - side[1]) / (2 * step);
        if (!(fabs(measured - square) <= 0.03 * square + 4e-7 * loss / step))
            fail_msg("%s: slope along the gradient is %g, its square length %g", p.name, measured, square);
    }
    net_destroy(n);
}

static void threads(void **state)
{
    (void)state;
    net *n[3] = {make(1), make(2), make(3)};
    double loss[3];
    for (int step = 0; step < 3; step++)
        for (int i = 0; i < 3; i++) {
            OK(n[i], net_load(n[i], pixels, labels));
            OK(n[i], net_step(n[i], 0.05, &loss[i]));
            assert_memory_equal(&loss[i], &loss[0], sizeof *loss);
        }
    net_parameter a, b;
    for (int i = 0; net_parameter_at(n[0], i, &a); i++)
        for (int k = 1; k < 3; k++) {
            net_parameter_at(n[k], i, &b);
            if (memcmp(a.value.data, b.value.data, 4 * (size_t)strata_count(a.value)))
                fail_msg("%s differs between 1 and %d threads", a.name, k + 1);
        }
    for (int i = 0; i < 3; i++) net_destroy(n[i]);
}

static void learns(void **state)
{
    (void)state;
    net *n = make(0);
    double first = 0, loss = 0;
    uint8_t classes[BATCH + 3];
    float probability[BATCH * NET_CLASSES];
    OK(n, net_load(n, pixels, labels));
    for (int step = 0; step < 60; step++) {
        OK(n, net_step(n, 0.02, &loss));
        if (!step) first = loss;
    }
    assert_true(first > 1.5 && first < 4.5 && loss < 0.1);
    memset(classes, 77, sizeof classes);
    OK(n, net_classify(n, pixels, BATCH, classes, probability));
    assert_memory_equal(classes, labels, BATCH);
    assert_int_equal(classes[BATCH], 77);
    for (int i = 0; i < BATCH; i++) {
        double sum = 0;
        for (int c = 0; c < NET_CLASSES; c++) sum += probability[i * NET_CLASSES + c];
        assert_true(fabs(sum - 1) < 1e-5);
        assert_true(probability[i * NET_CLASSES + labels[i]] > 0.5);
    }
    /* parts of a batch, and more than one, give the same classes */
    for (int count = 0; count <= BATCH; count += 5) {
        memset(classes, 77, sizeof classes);
        OK(n, net_classify(n, pixels, count, classes, NULL));
        assert_memory_equal(classes, labels, (size_t)count);
        assert_int_equal(classes[count], 77);
    }
    net_destroy(n);
}

static void refusals(void **state)
{
    (void)state;
    char why[1000];
    assert_null(net_create("cpu", 1, 1, 7, why, sizeof why));
    assert_non_null(strstr(why, "batch is 1"));
    assert_null(net_create("abacus", 1, 2, 7, why, sizeof why));
    assert_non_null(strstr(why, "abacus"));
    net_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients), cmocka_unit_test(threads),
                                       cmocka_unit_test(learns), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
