/* SPDX-License-Identifier: Apache-2.0 */
/* Searches and demands on the choice, with providers whose kernels take known times (they spin): the fastest is found and becomes the choice of
 * plans of the same bucket, within the usual order of summation unless another is allowed; codes, tiles, orders, batch invariance. Budgets are far
 * above what the searches use (each ends when every candidate has its samples), so that a machine under load changes nothing. */
#include "plan/tuning.h"
#include "support.h"
#include <math.h>
#include <unistd.h>

typedef struct problem {
    int64_t rows, n;
    int32_t no_fast; /* the kernel that is fastest in truth refuses */
} problem;
typedef struct kernel {
    const char *id, *order;
    double predicted, spins; /* microseconds */
    size_t workspace;
    bool varies;
    int32_t block_m;
} kernel;
/* the model prefers slow_a; fast_a sums in its order, fast_b in another */
static const kernel kernels[] = {{"slow_a", "order a", 10, 1000, 0, false, 8},
                                 {"fast_a", "order a", 20, 100, 100, false, 16},
                                 {"fast_b", "order b", 15, 5, 0, false, 32},
                                 {"rows_c", "order a", 9, 40, 0, true, 0},
                                 {"hopeless", "order a", 1e7, 1e6, 0, false, 0}};
static strata_handle *h;
static int built, ran[8];
static problem data;

typedef struct spin_plan {
    strata_plan base;
    int which;
    double us;
} spin_plan;

static strata_status spin_run(strata_handle *handle, const strata_plan *plan, void *const d[],
                              const strata_run *r)
{
    const spin_plan *p = (const spin_plan *)plan;
    const uint64_t until = st_now_ns() + (uint64_t)(p->us * 1000);
    (void)handle;
    (void)r;
    ran[p->which]++;
    while (st_now_ns() < until) {}
    ((float *)d[1])[0] = ((const float *)d[0])[0];
    return STRATA_OK;
}

static strata_status spin_build(strata_handle *handle, const st_problem *p, const st_candidate *c,
                                strata_plan **plan)
{
    (void)handle;
    spin_plan *s = st_plan_new(sizeof *s);
    assert_non_null(s);
    const kernel *k = c->row;
    s->which = (int)(k - kernels);
    /* arg[0] is a tile: 2 is five times as fast, 3 is slower */
    s->us = k->spins * (c->arg[0] == 2 ? 0.2 : c->arg[0] == 3 ? 1.5 : 1);
    s->base.run = spin_run;
    s->base.operands = 2;
    s->base.workspace = c->workspace;
    s->base.extent = calloc(2, sizeof *s->base.extent);
    s->base.extent[0] = (st_extent){.lo = -64, .hi = 64, .read = true};
    s->base.extent[1] = (st_extent){.lo = 0, .hi = 64, .written = true};
    s->base.flops = s->base.bytes = (double)((const problem *)p->data)->n;
    snprintf(s->base.title, sizeof s->base.title, "spin");
    built++;
    *plan = &s->base;
    return STRATA_OK;
}

static int spin_list(strata_handle *handle, const st_problem *p, st_candidate *out, int max)
{
    const problem *d = p->data;
    (void)handle;
    int n = 0;
    if (d->n == 4711) /* more than there is room for */
        for (; n < max; n++) {
            memset(&out[n], 0, sizeof out[n]);
            snprintf(out[n].kernel, sizeof out[n].kernel, "many_%d", n);
            out[n].us = 1 + n;
            out[n].row = &kernels[0];
        }
    for (int i = 0; i < TEST_COUNT(kernels) && n < max; i++, n++) {
        st_candidate *c = &out[n];
        memset(c, 0, sizeof *c);
        snprintf(c->kernel, sizeof c->kernel, "%s", kernels[i].id);
        c->order = kernels[i].order;
        c->row = &kernels[i];
        c->us = kernels[i].predicted;
        c->workspace = kernels[i].workspace;
        c->row_count_matters = kernels[i].varies;
        c->tile.block_m = kernels[i].block_m;
        /* for few rows the model sees it the other way round; the varying kernel is for few rows only */
        if (d->rows < 100 && i == 2) c->us = 5;
        if (kernels[i].varies && d->rows >= 10) c->us = -1, snprintf(c->why, sizeof c->why, "too many rows");
        if (d->no_fast && i == 1) c->us = -1, snprintf(c->why, sizeof c->why, "not today");
    }
    return n;
}

/* tiles of fast_a and fast_b alone */
static bool spin_refine(strata_handle *handle, const st_problem *p, st_candidate *c, const strata_tile *t)
{
    const kernel *k = c->row;
    (void)handle;
    (void)p;
    if (t) {
        if (k->block_m == 0 || (t->block_m && t->block_m != k->block_m && t->block_m != 2 * k->block_m))
            return snprintf(c->why, sizeof c->why, "block_m %d: this kernel has %d or twice that", t->block_m,
                            k->block_m),
                   false;
        c->arg[0] = t->block_m == 2 * k->block_m ? 2 : 0;
    }
    if (c->arg[0] < 0 || c->arg[0] > 3) return snprintf(c->why, sizeof c->why, "no such tile"), false;
    c->us = k->predicted + (double)c->arg[0];
    c->order_arg = c->arg[0] == 3;
    c->tile.block_m = c->arg[0] == 2 ? 2 * k->block_m : k->block_m;
    return true;
}
static int spin_variants(strata_handle *handle, const st_problem *p, const st_candidate *c, int64_t (*arg)[8],
                         int max)
{
    (void)handle;
    (void)p;
    (void)c;
    if (max < 2) return 0;
    memset(arg, 0, 2 * sizeof *arg);
    arg[0][0] = 2;
    arg[1][0] = 3;
    return 2;
}
static void spin_key(const st_problem *p, char *text, size_t n)
{
    const problem *d = p->data;
    snprintf(text, n, "spin rows<=%lld n%lld", d->rows <= 64 ? 64LL : 1024LL, (long long)d->n);
}
static bool spin_canonical(const st_problem *p, void *to)
{
    memcpy(to, p->data, p->bytes);
    ((problem *)to)->rows = 1000;
    return true;
}

static const st_provider provider = {
    .name = "spin", .op = ST_OP_POOL, .enumerate = spin_list, .build = spin_build, .where = ST_ON_CPU};
static const st_tiles tiles = {&provider, spin_refine, spin_variants};
static const st_engine engine = {.op = ST_OP_POOL, .key = spin_key, .canonical = spin_canonical};

static st_problem describe(int64_t rows, int64_t n)
{
    memset(&data, 0, sizeof data);
    data.rows = rows;
    data.n = n;
    return (st_problem){ST_OP_POOL, "strata_spin", &data, sizeof data, NULL};
}
static strata_plan *make(int64_t rows, int64_t n, const strata_choice *choice)
{
    const st_problem p = describe(rows, n);
    strata_plan *plan;
    test_ok(h, st_plan_make(h, &p, choice, &plan));
    return plan;
}
static void chosen(int64_t rows, int64_t n, const strata_choice *choice, const char *id)
{
    strata_plan *p = make(rows, n, choice);
    test_check(!strcmp(strata_plan_kernel(p), id), "%s, not %s:\n%s", strata_plan_kernel(p), id,
               strata_plan_describe(p));
    strata_plan_destroy(p);
}

static int setup(void **state)
{
    (void)state;
    setenv("STRATA_CACHE", "off", 1);
    st_plan_register(&provider);
    st_plan_register_tiles(&tiles);
    st_plan_register_tiles(&tiles);
    st_plan_register_engine(&engine);
    st_plan_register_engine(&engine);
    memset(ran, 0, sizeof ran);
    return strata_create(&h, "cpu") != STRATA_OK;
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

static int calls;
static bool count_calls(void *user, double done, const strata_candidate *best)
{
    assert_ptr_equal(user, &calls);
    assert_true(done >= 0 && done <= 1 && best->measured_us > 0);
    calls++;
    return true;
}

static void finds_the_fastest_of_the_order(void **state)
{
    (void)state;
    chosen(500, 1, NULL, "slow_a");
    strata_plan *p = make(500, 1, NULL);
    strata_candidate c[32];
    int n = 0;
    calls = 0;
    const strata_tune_options o = {.seconds = 20, .progress = count_calls, .user = &calls};
    test_ok(h, strata_tune(h, p, NULL, &o, c, 32, &n));
    assert_true(n >= 3 && calls > 0);
    assert_string_equal(c[0].kernel, "fast_a");
    test_check(c[0].measured_us >= 20, "%g us", c[0].measured_us); /* its tile 2: 20 us */
    assert_true(c[0].same_order && c[0].predicted_us == 22 && c[0].tile.block_m == 32);
    assert_int_equal(ran[2], 0); /* another order: not even run */
    assert_int_equal(ran[4], 0); /* predicted at a million times the best */
    for (int i = 0; i < n; i++)
        assert_true(c[i].chosen == (!strcmp(c[i].kernel, "slow_a") && c[i].tile.block_m == 8));
    assert_string_equal(strata_plan_kernel(p), "slow_a"); /* the plan stays what it is */
    strata_plan_destroy(p);
    p = make(500, 1, NULL);
    assert_string_equal(strata_plan_kernel(p), "fast_a");
    assert_string_equal(strata_plan_code(p), c[0].code);
    const char *text = strata_plan_describe(p);
    test_check(strstr(text, "least measured time") && strstr(text, "prediction prefers slow_a"), "%s", text);
    assert_true(!strstr(text, "reordered"));
    strata_plan_destroy(p);
    chosen(700, 1, NULL, "fast_a"); /* the same bucket */
    chosen(20, 1, NULL, "fast_b");  /* another one, by prediction */
    chosen(500, 2, NULL, "slow_a"); /* another problem */
    /* a limit, or a demand, that the winner does not keep */
    chosen(500, 1, &(strata_choice){.limit_workspace = true}, "slow_a");
    chosen(500, 1, &(strata_choice){.kernel = "slow_a"}, "slow_a");
}

static void other_orders_when_allowed(void **state)
{
    (void)state;
    strata_plan *p = make(500, 3, NULL);
    strata_candidate c[32];
    int n = 0;
    const strata_tune_options o = {.seconds = 20, .allow_reordering = true};
    test_ok(h, strata_tune(h, p, NULL, &o, c, 32, &n));
    strata_plan_destroy(p);
    assert_string_equal(c[0].kernel, "fast_b");
    assert_false(c[0].same_order);
    chosen(500, 3, NULL, "fast_a"); /* the usual choice stays in its order */
    p = make(500, 3, &(strata_choice){.allow_reordering = true});
    assert_string_equal(strata_plan_kernel(p), "fast_b");
    test_check(strstr(strata_plan_describe(p), "reordered  the usual choice, slow_a, sums so: order a"), "%s",
               strata_plan_describe(p));
    strata_plan_destroy(p);
    chosen(500, 3, &(strata_choice){.allow_reordering = true, .batch_invariant = true}, "fast_a");
    const strata_choice a = {.allow_reordering = true, .order = "order a"};
    chosen(500, 3, &a, "fast_a");
}

static void forgets(void **state)
{
    (void)state;
    strata_plan *p = make(500, 4, NULL);
    const strata_tune_options o = {.seconds = 20, .forget = true};
    const unsigned was = st_tuning_generation();
    test_ok(h, strata_tune(h, p, NULL, &o, NULL, 0, NULL));
    assert_int_equal(st_tuning_generation(), was);
    strata_plan_destroy(p);
    chosen(500, 4, NULL, "slow_a");
    /* operands of the caller's */
    float x[64], y[64] = {0};
    for (int i = 0; i < 64; i++) x[i] = 7;
    p = make(500, 4, NULL);
    test_ok(h, strata_tune(h, p, (void *[]){x + 32, y}, &o, NULL, 0, NULL));
    assert_true(y[0] == 7);
    strata_plan_destroy(p);
}

static void misuse(void **state)
{
    (void)state;
    strata_plan *p = make(500, 5, NULL);
    strata_candidate c[2];
    test_error(NULL, strata_tune(NULL, p, NULL, NULL, NULL, 0, NULL), STRATA_ERROR_ARGUMENT, "strata_tune",
               "handle is NULL");
    test_error(h, strata_tune(h, NULL, NULL, NULL, NULL, 0, NULL), STRATA_ERROR_ARGUMENT, "plan is NULL");
    strata_tune_options o = {.reserved = {1}};
    test_error(h, strata_tune(h, p, NULL, &o, NULL, 0, NULL), STRATA_ERROR_ARGUMENT, "reserved", "{0}");
    o = (strata_tune_options){.seconds = -1};
    test_error(h, strata_tune(h, p, NULL, &o, NULL, 0, NULL), STRATA_ERROR_ARGUMENT, "-1 seconds");
    o.seconds = NAN;
    test_error(h, strata_tune(h, p, NULL, &o, NULL, 0, NULL), STRATA_ERROR_ARGUMENT, "seconds");
    test_error(h, strata_tune(h, p, NULL, NULL, NULL, 3, NULL), STRATA_ERROR_ARGUMENT, "3 results");
    test_error(h, strata_find(h, -1, false), STRATA_ERROR_ARGUMENT, "strata_find", "-1 seconds");
    const st_problem pr = describe(500, 5);
    const strata_plan *cached;
    test_ok(h, st_plan_get(h, &pr, &cached));
    assert_int_equal(strata_plan_candidates(cached, 0, c), 0);
    test_error(h, strata_tune(h, cached, NULL, NULL, NULL, 0, NULL), STRATA_ERROR_ARGUMENT,
               "keeps no candidates");
    strata_plan_destroy(p);
    test_error(h, strata_tune(h, p, NULL, NULL, NULL, 0, NULL), STRATA_ERROR_ARGUMENT, "destroyed");
}

/* The first use of a problem searches once; then, and for the whole bucket, the database knows. */
static void at_first_use(void **state)
{
    (void)state;
    st_problem pr = describe(500, 6);
    const strata_plan *p;
    test_ok(h, st_plan_get(h, &pr, &p)); /* no search asked for */
    assert_string_equal(strata_plan_kernel(p), "slow_a");
    assert_true(ran[0] == 0);
    test_ok(h, strata_find(h, 20, false));
    pr = describe(501, 6);
    test_ok(h, st_plan_get(h, &pr, &p));
    assert_string_equal(strata_plan_kernel(p), "fast_a");
    assert_true(ran[0] > 0);
    const int once = ran[0], plans = built;
    for (int64_t rows = 502; rows < 600; rows++) {
        pr = describe(rows, 6);
        test_ok(h, st_plan_get(h, &pr, &p));
        assert_string_equal(strata_plan_kernel(p), "fast_a");
    }
    assert_true(ran[0] == once && built == plans + 98);
    pr = describe(500, 6); /* a plan from before the search is made again */
    test_ok(h, st_plan_get(h, &pr, &p));
    assert_string_equal(strata_plan_kernel(p), "fast_a");
    test_ok(h, strata_find(h, 20, true));
    pr = describe(500, 7);
    test_ok(h, st_plan_get(h, &pr, &p));
    assert_string_equal(strata_plan_kernel(p), "fast_b");
    test_ok(h, strata_find(h, 0, false));
    test_ok(h, st_plan_get(h, &pr, &p));
    assert_string_equal(strata_plan_kernel(p), "fast_a");
}

static void rebuilt_from_codes(void **state)
{
    (void)state;
    strata_plan *p = make(500, 8, NULL);
    strata_candidate c;
    int usable = 0;
    for (int i = 0; strata_plan_candidates(p, i, &c); i++) {
        assert_true((c.predicted_us >= 0) == (c.code[0] != 0) && (c.predicted_us < 0) == (c.why[0] != 0));
        if (!c.code[0]) continue;
        usable++;
        strata_plan *q = make(500, 8, &(strata_choice){.code = c.code});
        assert_string_equal(strata_plan_kernel(q), c.kernel);
        assert_string_equal(strata_plan_code(q), c.code);
        assert_string_equal(strata_plan_order(q), c.order);
        assert_true(strstr(strata_plan_describe(q), "the plan's code says so") != NULL);
        strata_plan_destroy(q);
    }
    assert_int_equal(usable, 4);
    assert_int_equal(strata_plan_candidates(p, -1, &c), 0);
    strata_plan_destroy(p);
    /* a tile that the list does not hold */
    st_candidate x = {.order = "order b", .arg = {2}};
    snprintf(x.kernel, sizeof x.kernel, "fast_b");
    char code[STRATA_PLAN_CODE];
    st_code_write(&x, code);
    p = make(500, 8, &(strata_choice){.code = code});
    assert_string_equal(strata_plan_code(p), code);
    assert_true(((spin_plan *)p)->us == 1);
    strata_plan_destroy(p);
    const st_problem pr = describe(500, 8);
    x.arg[0] = 3; /* refined, it sums in another order than the code says */
    st_code_write(&x, code);
    strata_choice choice = {.code = code};
    test_error(h, st_plan_make(h, &pr, &choice, &p), STRATA_ERROR_UNSUPPORTED, "another order of summation",
               "order b [1]", "allow_reordering");
    choice.allow_reordering = true;
    test_ok(h, st_plan_make(h, &pr, &choice, &p));
    strata_plan_destroy(p);
    choice.allow_reordering = false;
    x.arg[0] = 4;
    st_code_write(&x, code);
    test_error(h, st_plan_make(h, &pr, &choice, &p), STRATA_ERROR_UNSUPPORTED, "fast_b", "no such tile");
    snprintf(x.kernel, sizeof x.kernel, "gone");
    st_code_write(&x, code);
    test_error(h, st_plan_make(h, &pr, &choice, &p), STRATA_ERROR_UNSUPPORTED, "does not have");
    choice.code = "s1.nonsense";
    test_error(h, st_plan_make(h, &pr, &choice, &p), STRATA_ERROR_ARGUMENT, "strata_spin", "'s1.nonsense'");
    choice = (strata_choice){.code = code, .kernel = "fast_a"};
    test_error(h, st_plan_make(h, &pr, &choice, &p), STRATA_ERROR_ARGUMENT, "leave strata_choice.kernel");
    p = make(500, 8, &(strata_choice){.kernel = "fast_a"});
    snprintf(code, sizeof code, "%s", strata_plan_code(p));
    strata_plan_destroy(p);
    choice = (strata_choice){.code = code, .limit_workspace = true, .workspace_limit = 99};
    test_error(h, st_plan_make(h, &pr, &choice, &p), STRATA_ERROR_WORKSPACE, "100 bytes of workspace",
               "limit is 99");
}

static void orders_and_invariance(void **state)
{
    (void)state;
    chosen(50, 9, NULL, "fast_b"); /* few rows: another order */
    chosen(5, 9, NULL, "fast_b");
    chosen(50, 9, &(strata_choice){.batch_invariant = true}, "slow_a");
    chosen(5, 9, &(strata_choice){.batch_invariant = true},
           "slow_a"); /* and not rows_c, whose order the rows fix */
    chosen(50, 9, &(strata_choice){.order = "order b"}, "fast_b");
    chosen(500, 9, &(strata_choice){.order = "order b"}, "fast_b");
    const st_problem pr = describe(5, 9);
    strata_plan *p;
    strata_choice choice = {.order = "order z"};
    test_error(h, st_plan_make(h, &pr, &choice, &p), STRATA_ERROR_UNSUPPORTED,
               "in the order that was asked for", "order b");
    choice = (strata_choice){.batch_invariant = true, .kernel = "rows_c"};
    test_error(h, st_plan_make(h, &pr, &choice, &p), STRATA_ERROR_UNSUPPORTED, "'rows_c'", "number of rows");
    choice.kernel = "fast_b";
    test_error(h, st_plan_make(h, &pr, &choice, &p), STRATA_ERROR_UNSUPPORTED, "'fast_b'",
               "batch-invariant plans: order a");
    /* the handle's mode, also for cached plans */
    const strata_plan *cached;
    test_ok(h, st_plan_get(h, &pr, &cached));
    assert_string_equal(strata_plan_kernel(cached), "fast_b");
    test_ok(h, strata_set_batch_invariant(h, true));
    test_ok(h, st_plan_get(h, &pr, &cached));
    assert_string_equal(strata_plan_kernel(cached), "slow_a");
    test_ok(h, strata_set_batch_invariant(h, false));
    test_ok(h, st_plan_get(h, &pr, &cached));
    assert_string_equal(strata_plan_kernel(cached), "fast_b");
    test_error(NULL, strata_set_batch_invariant(NULL, true), STRATA_ERROR_ARGUMENT, "handle is NULL");
}

static void tiles_asked_for(void **state)
{
    (void)state;
    strata_tile t = {.block_m = 32};
    strata_plan *p = make(500, 10, &(strata_choice){.tile = &t});
    assert_string_equal(strata_plan_kernel(p), "fast_b"); /* 15 predicted, against 22 of fast_a's twice 16 */
    assert_true(strstr(strata_plan_describe(p), "block 32 x 0") != NULL);
    strata_plan_destroy(p);
    chosen(500, 10, &(strata_choice){.tile = &t, .order = "order a"}, "fast_a");
    const st_problem pr = describe(500, 10);
    t.block_m = 7;
    strata_choice c = {.tile = &t};
    test_error(h, st_plan_make(h, &pr, &c, &p), STRATA_ERROR_UNSUPPORTED, "with the tile that was asked for",
               "fast_a: block_m 7: this kernel has 16");
    t.block_m = -1;
    test_error(h, st_plan_make(h, &pr, &c, &p), STRATA_ERROR_ARGUMENT, "block_m is -1");
    t = (strata_tile){.reserved = {0, 1}};
    test_error(h, st_plan_make(h, &pr, &c, &p), STRATA_ERROR_ARGUMENT, "strata_tile", "reserved");
}

/* A list that is full says that others may be missing. */
static void too_many(void **state)
{
    (void)state;
    strata_plan *p = make(500, 4711, NULL);
    assert_true(strstr(strata_plan_describe(p), "left out   candidates beyond the first 1024") != NULL);
    strata_plan_destroy(p);
    p = make(500, 4712, NULL);
    assert_true(!strstr(strata_plan_describe(p), "left out"));
    strata_plan_destroy(p);
}

/* A batch that changes from call to call: one search a bucket, and plans of all its sizes have the winner. */
static void dynamic_batches(void **state)
{
    (void)state;
    const strata_plan *p;
    int searches = 0, seen = ran[0];
    test_ok(h, strata_find(h, 20, false));
    for (int64_t rows = 100; rows <= 1000; rows += rows / 16) {
        const st_problem pr = describe(rows, 21);
        test_ok(h, st_plan_get(h, &pr, &p));
        test_check(!strcmp(strata_plan_kernel(p), "fast_a"), "%lld rows", (long long)rows);
        searches += ran[0] != seen; /* the usual choice of many rows runs in a search alone */
        seen = ran[0];
    }
    assert_int_equal(searches, 1);
    strata_tuning_info info;
    test_ok(h, strata_get_tuning_info(&info));
    assert_true(info.problems >= 1);
    test_ok(h, strata_find(h, 0, false));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(finds_the_fastest_of_the_order),
                                       T(other_orders_when_allowed),
                                       T(forgets),
                                       T(misuse),
                                       T(at_first_use),
                                       T(rebuilt_from_codes),
                                       T(orders_and_invariance),
                                       T(tiles_asked_for),
                                       T(too_many),
                                       T(dynamic_batches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
