/* SPDX-License-Identifier: Apache-2.0 */
/* Searches on a GPU, through the fake driver, whose clock moves one millisecond an event: kernels that record events of their own take known
 * times, whatever this machine is doing. Operands are the search's own and are given back; what fails is said. */
#include "fake_test.h"
#include "plan/tuning.h"
#include "runtime/gpu.h"

typedef struct kernel {
    const char *id, *order;
    double predicted;
    int ms;
} kernel;
/* the model is wrong about every one of them */
static const kernel kernels[] = {{"first", "a", 10, 40}, {"second", "a", 20, 9}, {"third", "b", 30, 2}};
static strata_handle *h;
static strata_event *tick;
static int refuse_build = -1, runs;
static int64_t shape;

typedef struct clock_plan {
    strata_plan base;
    int ms;
} clock_plan;

static strata_status clock_run(strata_handle *handle, const strata_plan *plan, void *const d[],
                               const strata_run *r)
{
    (void)r;
    runs++;
    for (int i = 0; i < 2; i++) assert_true(st_gpu_reaches(handle, d[i]));
    for (int i = 0; i < ((const clock_plan *)plan)->ms; i++)
        test_ok(handle, strata_event_record(handle, tick));
    return STRATA_OK;
}
static strata_status clock_build(strata_handle *handle, const st_problem *p, const st_candidate *c,
                                 strata_plan **plan)
{
    (void)p;
    const kernel *k = c->row;
    if (refuse_build == (int)(k - kernels))
        return st_fail(&handle->err, STRATA_ERROR_MEMORY, "the kernel cannot be compiled");
    clock_plan *s = st_plan_new(sizeof *s);
    s->ms = k->ms;
    s->base.run = clock_run;
    s->base.operands = 2;
    s->base.extent = calloc(2, sizeof *s->base.extent);
    s->base.extent[0] = (st_extent){.lo = -40, .hi = 3000000, .read = true};
    s->base.extent[1] = (st_extent){.lo = 0, .hi = 64, .written = true};
    snprintf(s->base.title, sizeof s->base.title, "clock");
    *plan = &s->base;
    return STRATA_OK;
}
static int clock_list(strata_handle *handle, const st_problem *p, st_candidate *out, int max)
{
    (void)handle;
    (void)p;
    int n = 0;
    for (; n < TEST_COUNT(kernels) && n < max; n++) {
        memset(&out[n], 0, sizeof out[n]);
        snprintf(out[n].kernel, sizeof out[n].kernel, "%s", kernels[n].id);
        out[n].order = kernels[n].order;
        out[n].us = kernels[n].predicted;
        out[n].row = &kernels[n];
    }
    return n;
}
static void clock_key(const st_problem *p, char *text, size_t n)
{
    snprintf(text, n, "clock %lld", (long long)*(const int64_t *)p->data);
}
static const st_provider provider = {
    .name = "clock", .op = ST_OP_POOL, .enumerate = clock_list, .build = clock_build, .where = ST_ON_CUDA};
static const st_engine engine = {.op = ST_OP_POOL, .key = clock_key};

static st_problem problem(int64_t n)
{
    shape = n;
    return (st_problem){ST_OP_POOL, "strata_clock", &shape, sizeof shape, NULL};
}
static strata_plan *make(int64_t n, const strata_choice *choice)
{
    const st_problem p = problem(n);
    strata_plan *plan;
    test_ok(h, st_plan_make(h, &p, choice, &plan));
    return plan;
}
static size_t in_use(void)
{
    strata_memory_stats m;
    test_ok(h, strata_get_memory_stats(h, &m));
    return (size_t)m.bytes_in_use;
}

static int setup(void **state)
{
    (void)state;
    fake_reset();
    refuse_build = -1;
    runs = 0;
    return 0;
}

static void by_the_clock_of_the_device(void **state)
{
    (void)state;
    const size_t before = in_use();
    strata_candidate c[8];
    int n;
    strata_plan *p = make(1, NULL);
    const strata_tune_options o = {.seconds = 5};
    test_ok(h, strata_tune(h, p, NULL, &o, c, 8, &n));
    assert_int_equal(n, 2);
    assert_string_equal(c[0].kernel, "second");
    assert_true(c[0].measured_us >= 9000 && c[0].measured_us <= 10000);
    assert_true(c[1].chosen && c[1].measured_us >= 40000 && c[1].measured_us <= 41000);
    assert_int_equal(in_use(), before);
    strata_plan_destroy(p);
    p = make(1, NULL);
    assert_string_equal(strata_plan_kernel(p), "second");
    strata_plan_destroy(p);
    p = make(2, NULL);
    const strata_tune_options all = {.seconds = 5, .allow_reordering = true};
    test_ok(h, strata_tune(h, p, NULL, &all, c, 8, &n));
    strata_plan_destroy(p);
    assert_string_equal(c[0].kernel, "third");
    p = make(2, &(strata_choice){.allow_reordering = true});
    assert_string_equal(strata_plan_kernel(p), "third");
    strata_plan_destroy(p);
    p = make(2, NULL);
    assert_string_equal(strata_plan_kernel(p), "second");
    strata_plan_destroy(p);
}

static void what_fails(void **state)
{
    (void)state;
    const size_t before = in_use();
    strata_candidate c[8];
    int n;
    const strata_tune_options o = {.seconds = 5};
    strata_plan *p = make(3, NULL);
    refuse_build = 1; /* a kernel that cannot be compiled is left out */
    test_ok(h, strata_tune(h, p, NULL, &o, c, 8, &n));
    assert_true(n == 2 && !strcmp(c[0].kernel, "first") && c[1].measured_us == 0);
    assert_string_equal(strata_error(h), "no error");
    /* none can run */
    refuse_build = -1;
    strata_handle *cpu = fake_handle("cpu");
    test_error(cpu, strata_tune(cpu, p, NULL, &o, NULL, 0, NULL), STRATA_ERROR_STATE, "made for cuda:0",
               "cpu");
    strata_destroy(cpu);
    strata_stream *s;
    test_ok(h, strata_stream_create(h, &s));
    test_ok(h, strata_set_stream(h, s));
    test_ok(h, strata_graph_begin(h));
    test_error(h, strata_tune(h, p, NULL, &o, NULL, 0, NULL), STRATA_ERROR_STATE, "captured");
    strata_graph *g;
    test_ok(h, strata_graph_end(h, &g));
    test_ok(h, strata_graph_destroy(g));
    test_ok(h, strata_tune(h, p, NULL, &o, c, 8, &n)); /* in a stream of one's own */
    assert_string_equal(c[0].kernel, "second");
    test_ok(h, strata_set_stream(h, NULL));
    test_ok(h, strata_stream_destroy(s));
    strata_plan_destroy(p);
    assert_int_equal(in_use(), before);
}

static void at_first_use(void **state)
{
    (void)state;
    const st_problem pr = problem(4);
    const strata_plan *p;
    test_ok(h, strata_find(h, 5, false));
    test_ok(h, st_plan_get(h, &pr, &p));
    assert_string_equal(strata_plan_kernel(p), "second");
    const int once = runs;
    test_ok(h, st_plan_get(h, &pr, &p));
    assert_int_equal(runs, once);
    test_ok(h, strata_find(h, 0, false));
}

int main(void)
{
    fake_use();
    st_plan_register(&provider);
    st_plan_register_engine(&engine);
    h = fake_handle("cuda:0");
    test_ok(h, strata_event_create(h, &tick));
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(by_the_clock_of_the_device, setup),
                                       cmocka_unit_test_setup(what_fails, setup),
                                       cmocka_unit_test_setup(at_first_use, setup)};
    const int r = cmocka_run_group_tests(tests, NULL, NULL);
    strata_event_destroy(tick);
    strata_destroy(h);
    return r;
}
