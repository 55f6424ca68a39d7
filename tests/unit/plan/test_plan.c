/* SPDX-License-Identifier: Apache-2.0 */
/* Choice among providers, forced kernels, reasons, limits, the text, the cache: with three providers that multiply a vector by a number in
 * ways of their own and say through data[1] which of them ran. */
#include "plan/plan.h"
#include "support.h"

typedef struct problem {
    int64_t n;
    int32_t factor, allow; /* allow: bit of each provider that takes it */
    int32_t scratch,
        per_thread; /* what a plan needs beside what its candidate said, and for each further thread */
} problem;
typedef struct fake_plan {
    strata_plan base;
    problem p;
    const char *name;
} fake_plan;

static int enumerated, built, live, fail_builds, threads_listed, threads_built;
static strata_handle *h;

static strata_status fake_run(strata_handle *handle, const strata_plan *plan, void *const data[],
                              const strata_run *r)
{
    const fake_plan *f = (const fake_plan *)plan;
    if (plan->workspace) {
        char *ws = st_plan_workspace(handle, plan, r);
        if (!ws) return handle->err.status;
        memset(ws, 0x5a, plan->workspace);
    }
    for (int64_t i = 0; i < f->p.n; i++) ((int64_t *)data[0])[i] *= f->p.factor;
    *(const char **)data[1] = f->name;
    return STRATA_OK;
}
static void fake_destroy(strata_plan *p)
{
    (void)p;
    live--;
}

static strata_status fake_build(strata_handle *handle, const st_problem *p, const st_candidate *c,
                                strata_plan **plan)
{
    const problem *d = p->data;
    if (fail_builds) return st_fail(&handle->err, STRATA_ERROR_MEMORY, "%s: no memory for the plan", p->who);
    fake_plan *f = st_plan_new(sizeof *f);
    assert_non_null(f);
    f->base.run = fake_run;
    f->base.destroy = fake_destroy;
    f->base.operands = 2;
    threads_built = st_threads(handle);
    f->base.workspace = c->workspace + (size_t)d->scratch + (size_t)(d->per_thread * (threads_built - 1));
    f->base.flops = (double)d->n;
    f->base.bytes = (double)d->n * 16;
    snprintf(f->base.title, sizeof f->base.title, "scale %lld by %d", (long long)d->n, d->factor);
    f->p = *d;
    f->name = c->row;
    built++;
    live++;
    *plan = &f->base;
    return STRATA_OK;
}

static int one(st_candidate *out, int max, const char *kernel, double us, size_t workspace, const char *why)
{
    if (max < 1) return 0;
    snprintf(out->kernel, sizeof out->kernel, "%s", kernel);
    out->us = us;
    out->workspace = workspace;
    out->order = "one after the other";
    out->row = kernel;
    if (why) snprintf(out->why, sizeof out->why, "%s", why);
    enumerated++;
    return 1;
}

/* Fast with workspace; from 10 elements on, multiples of 4 only. */
static int fast(strata_handle *handle, const st_problem *p, st_candidate *out, int max)
{
    const problem *d = p->data;
    threads_listed = st_threads(handle);
    if (!(d->allow & 1)) return one(out, max, "scale_fast", -1, 0, "n is odd and fast steps by 4");
    return one(out, max, "scale_fast", 1.0 + (double)d->n * 0.1, 1000, NULL);
}
/* Two rows: a quick start for short vectors, and one that is never usable. */
static int small(strata_handle *handle, const st_problem *p, st_candidate *out, int max)
{
    const problem *d = p->data;
    (void)handle;
    int n = d->allow & 2 ? one(out, max, "scale_small", (double)d->n * 0.4, 100, NULL)
                         : one(out, max, "scale_small", -1, 0, "n is above 8");
    return n + one(out + n, max - n, "scale_never", -1, 0, "needs an instruction set that nobody has");
}
static int reference(strata_handle *handle, const st_problem *p, st_candidate *out, int max)
{
    const problem *d = p->data;
    (void)handle;
    return d->allow & 4 ? one(out, max, "scale_reference", 1000 + (double)d->n, 0, NULL) : 0;
}
static int another_op(strata_handle *handle, const st_problem *p, st_candidate *out, int max)
{
    (void)handle;
    (void)p;
    return one(out, max, "pool_other", 0, 0, NULL);
}
static const st_provider providers[] = {{"fast", ST_OP_CONTRACT, fast, fake_build, ST_ON_CPU},
                                        {"small", ST_OP_CONTRACT, small, fake_build, ST_ON_CPU},
                                        {"reference", ST_OP_CONTRACT, reference, fake_build, ST_ON_CPU},
                                        {"other", ST_OP_POOL, another_op, fake_build, ST_ON_CPU}};

static problem data;
static st_problem describe(int64_t n, int factor, int allow, const char *text)
{
    memset(&data, 0, sizeof data);
    data.n = n;
    data.factor = factor;
    data.allow = allow;
    return (st_problem){ST_OP_CONTRACT, "strata_scale", &data, sizeof data, text};
}

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < TEST_COUNT(providers); i++) st_plan_register(&providers[i]);
    for (int i = 0; i < TEST_COUNT(providers); i++)
        st_plan_register(&providers[i]); /* once more changes nothing */
    enumerated = built = live = fail_builds = 0;
    return strata_create(&h, "cpu") != STRATA_OK;
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return live; /* plans that nobody destroyed */
}

static strata_plan *make(int64_t n, int allow, const strata_choice *choice)
{
    st_problem p = describe(n, 3, allow, NULL);
    strata_plan *plan;
    test_ok(h, st_plan_make(h, &p, choice, &plan));
    return plan;
}

static const char *run(const strata_plan *plan, int64_t n, const strata_run *r)
{
    int64_t v[64];
    const char *who = "nobody";
    for (int i = 0; i < 64; i++) v[i] = i + 1;
    test_ok(h, strata_plan_run(h, plan, (void *[]){v, &who}, r));
    for (int64_t i = 0; i < 64; i++) assert_true(v[i] == (i + 1) * (i < n ? 3 : 1));
    return who;
}

static void least_time_wins(void **state)
{
    (void)state;
    strata_plan *p = make(2, 7, NULL);
    assert_string_equal(strata_plan_kernel(p), "scale_small"); /* 0.8 against 1.2 and 1002 */
    assert_string_equal(run(p, 2, NULL), "scale_small");
    assert_int_equal(enumerated, 4); /* each provider once, the other op's not */
    assert_int_equal(strata_plan_workspace(p), 100);
    strata_plan_destroy(p);
    p = make(40, 7, NULL);
    assert_string_equal(strata_plan_kernel(p), "scale_fast");
    assert_string_equal(run(p, 40, NULL), "scale_fast");
    strata_plan_destroy(p);
    p = make(40, 4, NULL);
    assert_string_equal(run(p, 40, NULL), "scale_reference");
    assert_int_equal(strata_plan_workspace(p), 0);
    strata_plan_destroy(p);
    strata_plan_destroy(NULL);
    assert_int_equal(built, 3);
    assert_int_equal(live, 0);
}

static void the_text(void **state)
{
    (void)state;
    strata_plan *p = make(40, 5, NULL);
    const char *s = strata_plan_describe(p);
    static const char *const words[] = {
        "scale 40 by 3 on cpu",   "kernel     scale_fast",          "workspace 1000 B",
        "predicted 5.0 us",       "order      one after the other", "also       scale_reference",
        "predicted 1040.0 us",    "refused    scale_small",         "n is above 8",
        "refused    scale_never", "needs an instruction set"};
    for (int i = 0; i < TEST_COUNT(words); i++)
        test_check(strstr(s, words[i]), "no \"%s\" in:\n%s", words[i], s);
    assert_true(s[strlen(s) - 1] != '\n');
    assert_ptr_equal(s, strata_plan_describe(p));
    strata_plan_destroy(p);
    assert_string_equal(strata_plan_describe(NULL), "no plan");
    assert_string_equal(strata_plan_kernel(NULL), "");
    assert_int_equal(strata_plan_workspace(NULL), 0);
}

static void forced_kernels(void **state)
{
    (void)state;
    strata_choice c = {.kernel = "scale_reference"};
    strata_plan *p = make(2, 7, &c);
    assert_string_equal(run(p, 2, NULL), "scale_reference"); /* although it is the slowest */
    strata_plan_destroy(p);
    c.kernel = "scale_fast";
    p = make(2, 7, &c);
    assert_string_equal(run(p, 2, NULL), "scale_fast");
    strata_plan_destroy(p);
    st_problem pr = describe(3, 3, 6, NULL);
    p = (strata_plan *)&data;
    test_error(h, st_plan_make(h, &pr, &c, &p), STRATA_ERROR_UNSUPPORTED, "strata_scale",
               "kernel 'scale_fast' was asked for", "n is odd");
    assert_null(p);
    c.kernel = "scale_never";
    test_error(h, st_plan_make(h, &pr, &c, &p), STRATA_ERROR_UNSUPPORTED, "'scale_never'", "instruction set");
    c.kernel = "scale_nothing";
    test_error(h, st_plan_make(h, &pr, &c, &p), STRATA_ERROR_ARGUMENT, "strata_scale",
               "no kernel 'scale_nothing'", "strata_kernels");
    c.kernel = "pool_other"; /* exists, for another operator */
    test_error(h, st_plan_make(h, &pr, &c, &p), STRATA_ERROR_ARGUMENT, "no kernel 'pool_other'");
    c = (strata_choice){.kernel = "scale_small", .limit_workspace = true, .workspace_limit = 99};
    test_error(h, st_plan_make(h, &pr, &c, &p), STRATA_ERROR_WORKSPACE, "'scale_small'",
               "100 bytes of workspace", "limit is 99", "try");
    assert_int_equal(built, 2);
}

static void nothing_can(void **state)
{
    (void)state;
    strata_plan *p = (strata_plan *)&data;
    st_problem pr = describe(11, 3, 0, NULL);
    test_error(h, st_plan_make(h, &pr, NULL, &p), STRATA_ERROR_UNSUPPORTED,
               "strata_scale: no kernel can do this", "plan      scale_fast: n is odd",
               "scale_small: n is above 8", "scale_never: needs");
    assert_null(p);
    const strata_plan *cached;
    test_error(h, st_plan_get(h, &pr, &cached), STRATA_ERROR_UNSUPPORTED, "no kernel can do this");
    strata_plan_cache_stats s;
    test_ok(h, strata_get_plan_cache_stats(h, &s));
    assert_true(s.entries == 0 && s.misses == 1 && s.hits == 0);
    fail_builds = 1;
    pr = describe(8, 3, 7, NULL);
    test_error(h, st_plan_make(h, &pr, NULL, &p), STRATA_ERROR_MEMORY, "no memory for the plan");
    assert_null(p);
    test_error(h, st_plan_get(h, &pr, &cached), STRATA_ERROR_MEMORY, "no memory for the plan");
    fail_builds = 0;
    test_ok(h, st_plan_get(h, &pr, &cached));
    strata_choice c = {.reserved = {9}};
    test_error(h, st_plan_make(h, &pr, &c, &p), STRATA_ERROR_ARGUMENT, "strata_scale", "reserved", "{0}");
    pr.op = ST_OP_POINTWISE; /* for which nobody registered */
    test_error(h, st_plan_make(h, &pr, NULL, &p), STRATA_ERROR_UNSUPPORTED, "no kernel can do this");
}

static void workspace_limits(void **state)
{
    (void)state;
    strata_choice c = {.limit_workspace = true, .workspace_limit = 1000};
    strata_plan *p = make(40, 7, &c);
    assert_string_equal(strata_plan_kernel(p), "scale_fast"); /* exactly the limit */
    strata_plan_destroy(p);
    c.workspace_limit = 999;
    p = make(40, 7, &c);
    assert_string_equal(strata_plan_kernel(p), "scale_small");
    test_check(strstr(strata_plan_describe(p), "needs 1000 bytes of workspace and the limit is 999"), "%s",
               strata_plan_describe(p));
    strata_plan_destroy(p);
    c.workspace_limit = 0; /* always works, through the last row */
    p = make(40, 7, &c);
    assert_string_equal(run(p, 40, NULL), "scale_reference");
    strata_plan_destroy(p);
    c.limit_workspace = false; /* then the number means nothing */
    p = make(40, 7, &c);
    assert_string_equal(strata_plan_kernel(p), "scale_fast");
    strata_plan_destroy(p);
    test_ok(h, strata_set_workspace_limit(h, 500)); /* the handle's holds where the choice has none */
    p = make(40, 7, NULL);
    assert_string_equal(strata_plan_kernel(p), "scale_small");
    strata_plan_destroy(p);
    c = (strata_choice){.limit_workspace = true, .workspace_limit = 2000};
    p = make(40, 7, &c);
    assert_string_equal(strata_plan_kernel(p), "scale_fast");
    /* but running it on this handle needs what the handle may not have */
    int64_t v[40] = {7};
    const char *who = NULL;
    test_error(h, strata_plan_run(h, p, (void *[]){v, &who}, NULL), STRATA_ERROR_WORKSPACE, "scale 40 by 3",
               "1000 bytes of workspace", "limit is 500", "strata_set_workspace_limit");
    assert_true(v[0] == 7 && !who);
    strata_plan_destroy(p);
    st_problem pr = describe(40, 3, 3, NULL);
    test_ok(h, strata_set_workspace_limit(h, 50));
    test_error(h, st_plan_make(h, &pr, NULL, &p), STRATA_ERROR_WORKSPACE, "strata_scale", "limit of 50 bytes",
               "100 would do", "try", "scale_fast: needs 1000 bytes");
}

static void own_workspace_of_a_run(void **state)
{
    (void)state;
    strata_plan *p = make(40, 1, NULL);
    char *ws = test_guard(1024, true); /* ends on a page, so begins at a multiple of 64 */
    int64_t v[40] = {7};
    const char *who = NULL;
    void *d[] = {v, &who};
    strata_memory_stats before, after;
    test_ok(h, strata_get_memory_stats(h, &before));
    strata_run r = {.workspace = ws, .workspace_bytes = 1000};
    assert_string_equal(run(p, 40, &r), "scale_fast");
    assert_true(ws[999] == 0x5a && ws[1000] == (char)0xff);
    test_ok(h, strata_get_memory_stats(h, &after));
    assert_true(after.workspace_bytes == 0 && after.allocations == before.allocations &&
                after.workspace_peak == 1000);
    r.workspace_bytes = 999;
    test_error(h, strata_plan_run(h, p, d, &r), STRATA_ERROR_WORKSPACE, "strata_plan_run", "999 bytes",
               "needs 1000");
    r = (strata_run){.workspace = ws + 8, .workspace_bytes = 1010};
    test_error(h, strata_plan_run(h, p, d, &r), STRATA_ERROR_WORKSPACE, "strata_plan_run", "multiple of 64");
    r = (strata_run){.reserved = {0, 0, 9}};
    test_error(h, strata_plan_run(h, p, d, &r), STRATA_ERROR_ARGUMENT, "strata_plan_run", "reserved");
    test_error(h, strata_plan_run(h, NULL, d, NULL), STRATA_ERROR_ARGUMENT, "strata_plan_run",
               "plan is NULL");
    test_error(h, strata_plan_run(h, p, NULL, NULL), STRATA_ERROR_ARGUMENT, "strata_plan_run",
               "data is NULL");
    test_error(NULL, strata_plan_run(NULL, p, d, NULL), STRATA_ERROR_ARGUMENT, "strata_plan_run",
               "handle is NULL");
    assert_true(v[0] == 7 && !who);
    /* the caller's workspace of the handle */
    test_ok(h, strata_set_workspace(h, ws, 960));
    test_error(h, strata_plan_run(h, p, d, NULL), STRATA_ERROR_WORKSPACE, "scale 40 by 3",
               "caller's workspace has 960", "1000 are needed");
    test_ok(h, strata_set_workspace(h, ws, 1024));
    assert_string_equal(run(p, 40, NULL), "scale_fast");
    test_ok(h, strata_set_workspace(h, NULL, 0));
    assert_string_equal(run(p, 40, NULL), "scale_fast");
    assert_true(test_guard_intact(ws));
    test_guard_free(ws);
    /* on another handle, and after the one that made it is gone */
    strata_handle *other;
    test_ok(NULL, strata_create(&other, "cpu"));
    strata_destroy(h);
    h = other;
    assert_string_equal(run(p, 40, NULL), "scale_fast");
    strata_plan_destroy(p);
}

static void nobody(void *user, int n, void (*body)(void *, int), void *arg)
{
    (void)user;
    for (int i = 0; i < n; i++) body(arg, i);
}

/* The choice is made as for one thread, the plan is built for all, and for one when only that keeps the limit. */
static void threads_and_the_choice(void **state)
{
    (void)state;
    st_problem pr = describe(40, 3, 7, NULL);
    strata_plan *p;
    test_ok(h, strata_set_threads(h, 4));
    data.per_thread = 100;
    test_ok(h, st_plan_make(h, &pr, NULL, &p));
    assert_int_equal(threads_listed, 1);
    assert_int_equal(threads_built, 4);
    assert_int_equal(strata_plan_workspace(p), 1300);
    assert_int_equal(strata_get_threads(h), 4);
    strata_plan_destroy(p);
    strata_choice c = {.limit_workspace = true, .workspace_limit = 1299};
    test_ok(h, st_plan_make(h, &pr, &c, &p));
    assert_string_equal(strata_plan_kernel(p), "scale_fast"); /* the same kernel */
    assert_int_equal(threads_built, 1);
    assert_int_equal(strata_plan_workspace(p), 1000);
    assert_int_equal(strata_get_threads(h), 4);
    strata_plan_destroy(p);
    test_ok(h, strata_set_parallel_for(h, nobody, NULL, 6));
    test_ok(h, st_plan_make(h, &pr, &c, &p));
    assert_int_equal(threads_listed, 1);
    assert_int_equal(threads_built, 1);
    assert_int_equal(strata_get_threads(h), 6);
    strata_plan_destroy(p);
    assert_int_equal(live, 0); /* the plan for several threads that was too large too */
}

/* What every kernel needs beside what it says when it is chosen (an evaluator's scratch) is not meant by a limit. */
static void scratch_is_not_counted(void **state)
{
    (void)state;
    test_ok(h, strata_set_workspace_limit(h, 0));
    test_ok(h, strata_set_threads(h, 1));
    st_problem pr = describe(40, 3, 7, NULL);
    data.scratch = 320;
    strata_plan *p;
    test_ok(h, st_plan_make(h, &pr, NULL, &p));
    assert_string_equal(run(p, 40, NULL), "scale_reference");
    assert_int_equal(strata_plan_workspace(p), 320);
    strata_memory_stats m;
    test_ok(h, strata_get_memory_stats(h, &m));
    assert_true(m.workspace_bytes == 320);
    strata_plan_destroy(p);
    strata_choice c = {.limit_workspace = true, .workspace_limit = 1000};
    test_ok(h, st_plan_make(h, &pr, &c, &p)); /* but what the candidate said is */
    int64_t v[40] = {7};
    const char *who = NULL;
    test_error(h, strata_plan_run(h, p, (void *[]){v, &who}, NULL), STRATA_ERROR_WORKSPACE, "1000 bytes",
               "limit is 0", "strata_set_workspace_limit(h, 1000)");
    test_ok(h, strata_set_workspace_limit(h, 1000));
    assert_string_equal(run(p, 40, NULL), "scale_fast");
    strata_plan_destroy(p);
}

static strata_plan_cache_stats cache(void)
{
    strata_plan_cache_stats s;
    test_ok(h, strata_get_plan_cache_stats(h, &s));
    return s;
}

static const strata_plan *get(int64_t n, int factor, const char *text)
{
    st_problem p = describe(n, factor, 7, text);
    const strata_plan *plan;
    test_ok(h, st_plan_get(h, &p, &plan));
    assert_true(((const fake_plan *)plan)->p.n == n && ((const fake_plan *)plan)->p.factor == factor);
    return plan;
}

static void cached(void **state)
{
    (void)state;
    strata_plan_cache_stats s = cache();
    assert_true(s.hits == 0 && s.misses == 0 && s.entries == 0 && s.evictions == 0);
    const strata_plan *a = get(10, 3, NULL), *b = get(11, 3, NULL), *c = get(10, 3, "x"),
                      *d = get(10, 3, "y"), *e = get(10, 3, "");
    assert_true(a != b && a != c && c != d && c != e && a != e);
    s = cache();
    assert_true(s.hits == 0 && s.misses == 5 && s.entries == 5);
    assert_int_equal(built, 5);
    char text[] = "x"; /* compared by content */
    assert_ptr_equal(get(10, 3, text), c);
    assert_ptr_equal(get(10, 3, NULL), a);
    assert_ptr_equal(get(11, 3, NULL), b);
    s = cache();
    assert_true(s.hits == 3 && s.misses == 5 && s.entries == 5);
    assert_int_equal(built, 5);
    /* the choice depended on the handle's limit, so it is part of what is looked up */
    test_ok(h, strata_set_workspace_limit(h, 0));
    const strata_plan *f = get(10, 3, NULL);
    assert_true(f != a);
    assert_string_equal(strata_plan_kernel(f), "scale_reference");
    test_ok(h, strata_set_workspace_limit(h, SIZE_MAX));
    assert_ptr_equal(get(10, 3, NULL), a);
    /* so did what it was built for */
    test_ok(h, strata_set_threads(h, 1));
    const strata_plan *one_thread = get(10, 3, NULL);
    test_ok(h, strata_set_threads(h, 2));
    assert_true(get(10, 3, NULL) != one_thread);
    test_ok(h, strata_set_threads(h, 1));
    assert_ptr_equal(get(10, 3, NULL), one_thread);
    test_ok(h, strata_set_threads(h, 0));
    /* a plan of one's own is none of the cache's */
    strata_plan *mine = make(10, 7, NULL);
    assert_true(mine != a);
    strata_plan_destroy(mine);
    assert_string_equal(run(a, 10, NULL), "scale_fast");
    test_error(h, strata_get_plan_cache_stats(h, NULL), STRATA_ERROR_ARGUMENT, "strata_get_plan_cache_stats",
               "NULL");
    test_error(NULL, strata_get_plan_cache_stats(NULL, &s), STRATA_ERROR_ARGUMENT,
               "strata_get_plan_cache_stats", "handle");
    assert_int_equal(live,
                     (int)cache().entries); /* teardown destroys the handle and expects none to be left */
}

/* Shapes that keep changing replace old plans; one that is used between them stays, and memory does not grow. */
static void eviction(void **state)
{
    (void)state;
    const strata_plan *kept = get(5, 7, NULL);
    for (int i = 0; i < 20000; i++) {
        const strata_plan *p = get(1000 + i, 2, NULL);
        assert_ptr_equal(get(1000 + i, 2, NULL), p);
        assert_ptr_equal(get(5, 7, NULL), kept);
    }
    strata_plan_cache_stats s = cache();
    assert_true(s.misses == 20001 && s.hits == 40000);
    assert_true(s.entries + s.evictions == 20001);
    assert_true(s.entries <= 4096 && s.entries > 3500); /* the table fills evenly before much is thrown out */
    assert_int_equal(live, (int)s.entries);
    assert_int_equal(built, 20001);
}

static void two_handles(void **state)
{
    (void)state;
    strata_handle *first = h, *other;
    const strata_plan *a = get(10, 3, NULL);
    test_ok(NULL, strata_create(&other, "cpu"));
    h = other;
    const strata_plan *b = get(10, 3, NULL);
    assert_true(a != b);
    assert_true(cache().misses == 1);
    strata_destroy(other);
    h = first;
    assert_int_equal(live, 1);
    assert_ptr_equal(get(10, 3, NULL), a);
}

static int list_a(int i, strata_kernel_info *info)
{
    static const char *const ids[] = {"a0", "a1"};
    if (i >= 2) return 0;
    *info = (strata_kernel_info){.id = ids[i], .usable = true};
    return 1;
}
static int list_empty(int i, strata_kernel_info *info)
{
    (void)i;
    (void)info;
    return 0;
}
static int list_b(int i, strata_kernel_info *info)
{
    if (i) return 0;
    *info = (strata_kernel_info){.id = "b0", .why_not = "because"};
    return 1;
}

static void kernel_lists(void **state)
{
    (void)state;
    strata_kernel_info info;
    assert_int_equal(strata_kernels(0, &info), 0);
    st_plan_register_kernels(list_a);
    st_plan_register_kernels(list_empty);
    st_plan_register_kernels(list_b);
    st_plan_register_kernels(list_a);
    static const char *const want[] = {"a0", "a1", "b0"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(strata_kernels(i, &info), 1);
        assert_string_equal(info.id, want[i]);
    }
    assert_string_equal(info.why_not, "because");
    assert_int_equal(strata_kernels(3, &info), 0);
    assert_int_equal(strata_kernels(1000000, &info), 0);
    assert_int_equal(strata_kernels(-1, &info), 0);
    assert_int_equal(strata_kernels(0, NULL), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(kernel_lists),           T(least_time_wins), T(the_text),
        T(forced_kernels),         T(nothing_can),     T(workspace_limits),
        T(own_workspace_of_a_run), T(cached),          T(threads_and_the_choice),
        T(scratch_is_not_counted), T(eviction),        T(two_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
