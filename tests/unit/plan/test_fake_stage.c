/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a GPU given host memory: copied there and back on an "auto" handle, refused on a "cuda:0" one; through the fake driver, whose device
 * memory a plan's run may touch as a kernel would. */
#include "fake_test.h"
#include "plan/plan.h"
#include "runtime/gpu.h"

static strata_handle *h, *strict;
static void *seen[8];
static int runs;
static strata_status answer;
static float *intruder; /* host memory that another thread writes during the run */

/* 100 is added to every second float of what the plan writes */
static strata_status run(strata_handle *handle, const strata_plan *p, void *const data[], const strata_run *r)
{
    (void)r;
    runs++;
    for (int i = 0; i < p->operands; i++) {
        seen[i] = data[i];
        const bool may_be_host = p->extent[i].by_value || p->extent[i].hi <= p->extent[i].lo || !data[i];
        if (!may_be_host) assert_true(st_gpu_reaches(handle, (char *)data[i] + p->extent[i].lo));
    }
    if (intruder) *intruder = 4711;
    if (answer) return st_fail(&handle->err, answer, "the run fails");
    for (int i = 0; i < p->operands; i++)
        if (p->extent[i].written)
            for (int64_t k = p->extent[i].lo; k < p->extent[i].hi; k += 8)
                ((float *)((char *)data[i] + k))[0] += 100;
    return STRATA_OK;
}

static strata_plan *plan(int operands, const st_extent *e)
{
    strata_plan *p = st_plan_new(sizeof *p);
    p->run = run;
    p->operands = operands;
    p->where = ST_ON_CUDA;
    snprintf(p->device, sizeof p->device, "cuda:0");
    snprintf(p->title, sizeof p->title, "test plan");
    if (e) {
        p->extent = calloc((size_t)operands, sizeof *e);
        memcpy(p->extent, e, sizeof *e * (size_t)operands);
    }
    return p;
}

static size_t in_use(void)
{
    strata_memory_stats m;
    test_ok(h, strata_get_memory_stats(h, &m));
    return m.bytes_in_use;
}

static int setup(void **state)
{
    (void)state;
    fake_reset();
    runs = 0;
    answer = STRATA_OK;
    return 0;
}

static void copied_and_back(void **state)
{
    (void)state;
    float x[20], y[20];
    for (int i = 0; i < 20; i++) x[i] = (float)i, y[i] = (float)(1000 + i);
    strata_plan *p =
        plan(2, (st_extent[]){{.lo = 0, .hi = 80, .read = true}, {.lo = -8, .hi = 16, .written = true}});
    void *data[] = {x, y + 10};
    test_ok(h, st_plan_execute(h, p, data, NULL));
    assert_int_equal(runs, 1);
    assert_true(seen[0] != x && seen[1] != y + 10);
    /* the copy keeps the address's place within 256 bytes */
    assert_true(((uintptr_t)seen[0] & 255) == ((uintptr_t)x & 255) &&
                ((uintptr_t)seen[1] & 255) == ((uintptr_t)(y + 10) & 255));
    for (int i = 0; i < 20; i++) {
        assert_true(x[i] == (float)i);
        const bool written = i == 8 || i == 10 || i == 12; /* what lies between comes back as it was */
        assert_true(y[i] == (float)(1000 + i + (written ? 100 : 0)));
    }
    assert_true(in_use() == 0);
    intruder = &y[9]; /* between the elements that the plan writes: another thread's */
    test_ok(h, st_plan_execute(h, p, data, NULL));
    intruder = NULL;
    assert_true(y[9] == 4711 && y[8] == 1208 && y[10] == 1210);
    /* operands on the device are not copied; mixed ones only where needed */
    void *d;
    test_ok(h, strata_alloc(h, 80, &d));
    int copies = fake_count().copies;
    data[0] = d;
    test_ok(h, st_plan_execute(h, p, data, NULL));
    assert_ptr_equal(seen[0], d);
    assert_int_equal(fake_count().copies, copies + 2);
    data[1] = (char *)d + 8;
    test_ok(h, st_plan_execute(h, p, data, NULL));
    assert_int_equal(fake_count().copies, copies + 2);
    test_ok(strict, st_plan_execute(strict, p, data, NULL));
    /* refused where the handle does not stage */
    data[1] = y + 10;
    runs = 0;
    test_error(strict, st_plan_execute(strict, p, data, NULL), STRATA_ERROR_DEVICE, "test plan", "operand 1",
               "host memory", "cuda:0", "strata_alloc", "\"auto\"");
    assert_int_equal(runs, 0);
    test_ok(h, strata_free(h, d));
    strata_plan_destroy(p);
}

/* One buffer given for two operands is one copy, also when the later one reaches further. */
static void in_place(void **state)
{
    (void)state;
    float x[64];
    for (int i = 0; i < 64; i++) x[i] = (float)i;
    static const st_extent wide = {.lo = -16, .hi = 64, .written = true},
                           narrow = {.lo = 0, .hi = 32, .read = true};
    for (int order = 0; order < 2; order++) {
        strata_plan *p = plan(2, order ? (st_extent[]){wide, narrow} : (st_extent[]){narrow, wide});
        void *data[] = {x + 20, x + 20};
        int copies = fake_count().copies;
        test_ok(h, st_plan_execute(h, p, data, NULL));
        assert_ptr_equal(seen[0], seen[1]);
        assert_int_equal(fake_count().copies, copies + 2); /* in and out */
        for (int i = 0; i < 64; i++)
            assert_true(x[i] == (float)(i + 100 * (order + 1) * (i >= 16 && i < 36 && i % 2 == 0)));
        strata_plan_destroy(p);
    }
    assert_true(in_use() == 0);
}

static void left_alone(void **state)
{
    (void)state;
    float x[4] = {1, 2, 3, 4}, s = 5, y[4] = {0};
    strata_plan *p = plan(4, (st_extent[]){{.lo = 0, .hi = 16, .read = true},
                                           {.lo = 0, .hi = 4, .read = true, .by_value = true},
                                           {0},
                                           {.lo = 0, .hi = 16, .written = true}});
    void *data[] = {x, &s, y, y};
    test_ok(h, st_plan_execute(h, p, data, NULL));
    assert_ptr_equal(seen[1], &s); /* a number that the run itself reads */
    assert_true(y[0] == 100 && y[1] == 0 && y[2] == 100);
    data[2] = NULL; /* nothing is there */
    test_ok(h, st_plan_execute(h, p, data, NULL));
    assert_null(seen[2]);
    /* numbers may lie on the host for a handle that does not stage, too */
    void *d;
    test_ok(strict, strata_alloc(strict, 32, &d));
    void *mixed[] = {d, &s, NULL, (char *)d + 16};
    test_ok(strict, st_plan_execute(strict, p, mixed, NULL));
    test_ok(strict, strata_free(strict, d));
    strata_plan_destroy(p);
}

static void failures(void **state)
{
    (void)state;
    float x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8};
    strata_plan *p =
        plan(2, (st_extent[]){{.lo = 0, .hi = 16, .read = true}, {.lo = 0, .hi = 16, .written = true}});
    void *data[] = {x, y};
    answer = STRATA_ERROR_INTERNAL;
    test_error(h, st_plan_execute(h, p, data, NULL), STRATA_ERROR_INTERNAL, "the run fails");
    answer = STRATA_OK;
    test_ok(h, strata_trim(h));
    fake_fail("cuMemcpyHtoDAsync_v2", 2, 1);
    test_error(h, st_plan_execute(h, p, data, NULL), STRATA_ERROR_DEVICE, "cuMemcpyHtoDAsync");
    assert_true(y[0] == 5 && y[3] == 8); /* an output is touched by nothing but success */
    fake_memory(0);
    test_ok(h, strata_trim(h));
    test_error(h, st_plan_execute(h, p, data, NULL), STRATA_ERROR_MEMORY, "no memory");
    fake_memory((size_t)1 << 30);
    assert_true(in_use() == 0);
    assert_true(y[0] == 5 && y[3] == 8);
    /* in a capture */
    void *cu = fake_stream_make(0);
    strata_stream *s;
    test_ok(h, strata_stream_wrap(h, cu, &s));
    test_ok(h, strata_set_stream(h, s));
    fake_capture_begin(cu, 0);
    test_error(h, st_plan_execute(h, p, data, NULL), STRATA_ERROR_STATE, "test plan", "captured",
               "strata_alloc");
    assert_int_equal(fake_capture_end(cu), 0);
    test_ok(h, strata_set_stream(h, NULL));
    test_ok(NULL, strata_stream_destroy(s));
    fake_stream_end(cu);
    test_ok(h, st_plan_execute(h, p, data, NULL));
    assert_true(y[0] == 105 && y[1] == 6);
    strata_plan_destroy(p);
    /* plans that cannot be staged, or are of another device */
    p = plan(2, NULL);
    test_error(h, st_plan_execute(h, p, data, NULL), STRATA_ERROR_UNSUPPORTED, "does not take host memory");
    snprintf(p->device, sizeof p->device, "cuda:1");
    test_error(h, st_plan_execute(h, p, data, NULL), STRATA_ERROR_STATE, "made for cuda:1", "cuda:0");
    strata_handle *cpu = fake_handle("cpu");
    test_error(cpu, st_plan_execute(cpu, p, data, NULL), STRATA_ERROR_STATE, "made for cuda:1", "cpu");
    p->where = ST_ON_CPU;
    snprintf(p->device, sizeof p->device, "cpu");
    test_error(h, st_plan_execute(h, p, data, NULL), STRATA_ERROR_STATE, "made for cpu");
    strata_destroy(cpu);
    strata_plan_destroy(p);
}

int main(void)
{
    fake_use();
    h = fake_handle("auto");
    strict = fake_handle("cuda:0");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(copied_and_back, setup), cmocka_unit_test_setup(in_place, setup),
        cmocka_unit_test_setup(left_alone, setup), cmocka_unit_test_setup(failures, setup)};
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    strata_destroy(h);
    strata_destroy(strict);
    return r;
}
