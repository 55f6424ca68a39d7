/* SPDX-License-Identifier: Apache-2.0 */
/* test_misuse.c - plans and handles used as they may not be: a destroyed plan, a handle of two threads at once, a workspace over an
 * operand. Each is an error in words, and nothing is written. */
#include "plan/plan.h"
#include "support.h"
#include <pthread.h>

enum { N = 64, WORKSPACE = 128 };
static strata_handle *h;
static int live, runs;

static void gone(strata_plan *p)
{
    (void)p;
    live--;
}
static strata_status fill(strata_handle *handle, const strata_plan *plan, void *const data[],
                          const strata_run *r)
{
    char *ws = st_plan_workspace(handle, plan, r);
    if (!ws) return handle->err.status;
    memset(ws, 0x5a, plan->workspace);
    memset(data[1], 7, N);
    runs++;
    return STRATA_OK;
}
static strata_plan *make(bool extents)
{
    strata_plan *p = st_plan_new(sizeof *p + 100);
    assert_non_null(p);
    p->run = fill;
    p->destroy = gone;
    p->operands = 2;
    p->workspace = WORKSPACE;
    p->flops = 1;
    snprintf(p->title, sizeof p->title, "fill %d", (int)N);
    if (extents) {
        p->extent = calloc(2, sizeof *p->extent);
        assert_non_null(p->extent);
        p->extent[0] = (st_extent){.lo = -16, .hi = N, .read = true};
        p->extent[1] = (st_extent){.lo = 0, .hi = N, .written = true};
    }
    live++;
    return p;
}

/* A destroyed plan is recognised, also after others of its size came and went, and destroying it again does nothing. */
static void destroyed(void **state)
{
    (void)state;
    char a[N] = {0}, b[N] = {0};
    void *const operands[2] = {a, b};
    strata_plan *p = make(true);
    strata_plan_destroy(p);
    for (int i = 0; i < 10; i++) {
        test_error(h, strata_plan_run(h, p, operands, NULL), STRATA_ERROR_STATE, "strata_plan_run",
                   "the plan is destroyed");
        assert_int_equal(strata_plan_workspace(p), 0);
        assert_string_equal(strata_plan_kernel(p), "");
        assert_string_equal(strata_plan_describe(p), "a destroyed plan");
        strata_plan_destroy(p);
        strata_plan *other = make(i % 2);
        assert_ptr_not_equal(other, p);
        strata_plan_destroy(other);
    }
    assert_int_equal(b[0], 0);
    assert_int_equal(runs, 0);
    assert_int_equal(live, 0);
}

/* Memory of plans is used again: many that come and go are few. */
static void reused(void **state)
{
    (void)state;
    const strata_plan *seen[40] = {NULL};
    int kinds = 0;
    for (int i = 0; i < 2000; i++) {
        strata_plan *p = make(false);
        int at = 0;
        while (at < kinds && seen[at] != p) at++;
        if (at == kinds) {
            assert_true(kinds < TEST_COUNT(seen));
            seen[kinds++] = p;
        }
        strata_plan_destroy(p);
    }
    assert_int_equal(live, 0);
}

/* What another thread is told while this one's call is inside. */
static strata_plan *entered;
static strata_status told[2];
static char words[300];
static void *elsewhere(void *arg)
{
    char a[N] = {0}, b[N] = {0};
    static const int64_t key = 1;
    const strata_plan *cached;
    const st_problem pr = {ST_OP_CONTRACT, "strata_fill", &key, sizeof key, NULL};
    (void)arg;
    told[0] = strata_plan_run(h, entered, (void *[]){a, b}, NULL);
    snprintf(words, sizeof words, "%s", strata_error(NULL));
    told[1] = st_plan_get(h, &pr, &cached);
    return NULL;
}
static strata_status busy_run(strata_handle *handle, const strata_plan *plan, void *const data[],
                              const strata_run *r)
{
    pthread_t t;
    (void)data;
    if (!st_plan_workspace(handle, plan, r)) return handle->err.status;
    assert_int_equal(pthread_create(&t, NULL, elsewhere, NULL), 0);
    pthread_join(t, NULL);
    return STRATA_OK;
}
static void one_thread_at_a_time(void **state)
{
    (void)state;
    char a[N] = {0}, b[N] = {0};
    void *const operands[2] = {a, b};
    entered = make(false);
    entered->run = busy_run;
    for (int round = 0; round < 2; round++) { /* the handle is free again afterwards */
        told[0] = told[1] = STRATA_OK;
        test_ok(h, strata_plan_run(h, entered, operands, NULL));
        assert_int_equal(told[0], STRATA_ERROR_STATE);
        assert_int_equal(told[1], STRATA_ERROR_STATE);
        assert_non_null(strstr(words, "in use by another thread"));
        assert_non_null(strstr(words, "make a handle for every thread"));
    }
    entered->run = fill;
    test_ok(h, strata_plan_run(h, entered, operands, NULL));
    assert_int_equal(b[N - 1], 7);
    strata_plan_destroy(entered);
}

static void workspace_over_operands(void **state)
{
    (void)state;
    static _Alignas(64) char m[1024];
    for (int extents = 0; extents < 2; extents++) {
        strata_plan *p = make(extents);
        char *a = m + 512, *b = m + 640;
        void *const operands[2] = {a, b};
        /* from the operand's first byte; ending just inside what lies below a's address; the last byte of b */
        char *const bad[] = {a, a - WORKSPACE, b + N - 64};
        memset(m, 0, sizeof m);
        runs = 0;
        for (int i = 0; i < TEST_COUNT(bad); i++) {
            if (!extents && i) continue; /* without extents only addresses are known */
            const strata_run r = {.workspace = bad[i], .workspace_bytes = WORKSPACE};
            test_error(h, strata_plan_run(h, p, operands, &r), STRATA_ERROR_ALIAS, "the run's workspace",
                       i == 2 ? "operand 1" : "operand 0", "fill 64");
            test_ok(h, strata_set_workspace(h, bad[i], WORKSPACE));
            test_error(h, strata_plan_run(h, p, operands, NULL), STRATA_ERROR_ALIAS,
                       "the handle's workspace");
            test_ok(h, strata_set_workspace(h, NULL, 0));
        }
        assert_int_equal(runs, 0);
        for (int i = 0; i < 1024; i++) assert_int_equal(m[i], 0);
        const strata_run good = {.workspace = b + N, .workspace_bytes = WORKSPACE};
        test_ok(h, strata_plan_run(h, p, operands, &good));
        assert_int_equal(b[N - 1], 7);
        strata_plan_destroy(p);
    }
}

static int setup(void **state)
{
    (void)state;
    live = runs = 0;
    return strata_create(&h, "cpu") != STRATA_OK;
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return live;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(destroyed), T(reused), T(one_thread_at_a_time),
                                       T(workspace_over_operands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
