/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and graphs of a GPU through the fake driver: ours and callers', wrong ones, what a graph keeps, nothing leaked. */
#include "fake_test.h"
#include "runtime/cuda/cuda.h"
#include "runtime/gpu.h"

static strata_handle *h;
static fake_counts before;

static int setup(void **state)
{
    (void)state;
    fake_reset();
    h = fake_handle("cuda:0");
    before = fake_count();
    return 0;
}
static int teardown(void **state)
{
    (void)state;
    fake_reset();
    test_ok(h, strata_trim(h));
    strata_destroy(h);
    fake_counts c = fake_count();
    assert_int_equal(c.streams, 0);
    assert_int_equal(c.graphs, 0);
    assert_int_equal(c.execs, 0);
    assert_int_equal(c.blocks, 0);
    return 0;
}

static void streams(void **state)
{
    (void)state;
    strata_stream *s, *t = (void *)1;
    strata_handle *cpu = fake_handle("cpu"), *g = fake_handle("cuda:1");
    test_ok(h, strata_stream_create(h, &s));
    assert_int_equal(fake_count().streams, 1);
    test_error(h, strata_stream_create(h, NULL), STRATA_ERROR_ARGUMENT, "strata_stream_create", "NULL");
    fake_fail("cuStreamCreate", 1, 2);
    test_error(h, strata_stream_create(h, &t), STRATA_ERROR_MEMORY, "strata_stream_create", "cuStreamCreate");
    assert_null(t);
    test_ok(h, strata_set_stream(h, s));
    assert_non_null(strata_native_stream(h));
    test_ok(h, strata_synchronize(h));
    test_error(g, strata_set_stream(g, s), STRATA_ERROR_ARGUMENT, "strata_set_stream", "another device",
               "cuda:1");
    test_error(cpu, strata_set_stream(cpu, s), STRATA_ERROR_ARGUMENT, "strata_set_stream", "GPU");
    test_ok(cpu, strata_stream_create(cpu, &t));
    test_error(h, strata_set_stream(h, t), STRATA_ERROR_ARGUMENT, "strata_set_stream", "another device");
    test_ok(NULL, strata_stream_destroy(t));
    test_error(h, strata_set_stream(h, t), STRATA_ERROR_ARGUMENT, "not a live");
    test_ok(h, strata_set_stream(h, NULL));
    assert_null(strata_native_stream(h));
    test_ok(NULL, strata_stream_destroy(s));
    test_error(NULL, strata_stream_destroy(s), STRATA_ERROR_ARGUMENT, "not a live");
    assert_int_equal(fake_count().streams, 0);
    assert_null(strata_native_stream(cpu));
    assert_null(strata_native_stream(NULL));
    /* a caller's */
    void *mine = fake_stream_make(0), *theirs = fake_stream_make(1);
    test_ok(h, strata_stream_wrap(h, mine, &s));
    test_ok(h, strata_set_stream(h, s));
    assert_ptr_equal(strata_native_stream(h), mine);
    test_ok(h, strata_set_stream(h, NULL));
    test_ok(NULL, strata_stream_destroy(s));
    test_ok(h, strata_stream_wrap(h, NULL, &s)); /* the legacy default stream */
    test_ok(h, strata_set_stream(h, s));
    assert_null(strata_native_stream(h));
    test_ok(h, strata_synchronize(h));
    test_ok(h, strata_set_stream(h, NULL));
    test_ok(NULL, strata_stream_destroy(s));
    test_error(h, strata_stream_wrap(h, theirs, &s), STRATA_ERROR_ARGUMENT, "strata_stream_wrap",
               "another device");
    assert_null(s);
    test_error(h, strata_stream_wrap(h, (void *)&before, &s), STRATA_ERROR_DEVICE, "strata_stream_wrap",
               "not a CUstream");
    test_error(cpu, strata_stream_wrap(cpu, mine, &s), STRATA_ERROR_UNSUPPORTED, "strata_stream_wrap", "cpu");
    test_error(h, strata_stream_wrap(h, mine, NULL), STRATA_ERROR_ARGUMENT, "NULL");
    fake_stream_end(mine);
    fake_stream_end(theirs);
    strata_destroy(cpu);
    strata_destroy(g);
}

static void events(void **state)
{
    (void)state;
    strata_event *a, *b, *c;
    strata_handle *cpu = fake_handle("cpu"), *g = fake_handle("cuda:1");
    double ms = -1;
    fake_fail("cuEventCreate", 1, 2);
    test_error(h, strata_event_create(h, &a), STRATA_ERROR_MEMORY, "strata_event_create");
    assert_null(a);
    test_ok(h, strata_event_create(h, &a));
    test_ok(h, strata_event_create(h, &b));
    test_ok(cpu, strata_event_create(cpu, &c));
    test_ok(NULL, strata_event_wait(a)); /* never recorded: nothing to wait for */
    test_ok(h, strata_wait_event(h, a));
    test_error(NULL, strata_event_elapsed(a, b, &ms), STRATA_ERROR_STATE, "begin event was never recorded");
    fake_lazy(true);
    test_ok(h, strata_event_record(h, a));
    test_ok(h, strata_event_record(h, b));
    int waits = fake_count().waits;
    test_ok(h, strata_wait_event(h, a));
    assert_int_equal(fake_count().waits, waits + 1);
    test_ok(NULL, strata_event_elapsed(a, b, &ms)); /* waits for both */
    assert_true(ms == 1);
    test_ok(NULL, strata_event_wait(b));
    test_error(g, strata_event_record(g, a), STRATA_ERROR_ARGUMENT, "another device");
    test_error(h, strata_event_record(h, c), STRATA_ERROR_ARGUMENT, "another device");
    test_error(cpu, strata_event_record(cpu, a), STRATA_ERROR_ARGUMENT, "GPU");
    test_ok(cpu, strata_event_record(cpu, c));
    test_error(NULL, strata_event_elapsed(c, a, &ms), STRATA_ERROR_ARGUMENT, "two devices");
    test_ok(h, strata_wait_event(h, c));     /* the CPU's are over */
    test_ok(cpu, strata_wait_event(cpu, a)); /* the thread waits */
    test_error(h, strata_wait_event(h, NULL), STRATA_ERROR_ARGUMENT, "strata_wait_event", "NULL");
    fake_fail("cuEventRecord", 1, 400);
    test_error(h, strata_event_record(h, a), STRATA_ERROR_DEVICE, "cuEventRecord: CUDA_ERROR_INVALID_HANDLE");
    fake_fail("cuEventSynchronize", 1, 700);
    test_error(NULL, strata_event_wait(a), STRATA_ERROR_DEVICE, "strata_event_wait",
               "CUDA_ERROR_ILLEGAL_ADDRESS", "caused earlier");
    atomic_store(&st_cuda_of(h)->lost, 0);
    test_ok(NULL, strata_event_destroy(a));
    test_ok(NULL, strata_event_destroy(b));
    test_ok(NULL, strata_event_destroy(c));
    strata_destroy(cpu);
    strata_destroy(g);
}

static void graphs(void **state)
{
    (void)state;
    strata_graph *q = (void *)1, *r;
    strata_handle *cpu = fake_handle("cpu");
    void *p, *x;
    test_ok(h, strata_alloc(h, 4096, &p));
    strata_tensor t = strata_vector(p, STRATA_F32, 1024, 1), half = strata_slice(t, 0, 0, 512, 2);
    test_ok(h, strata_fill(h, half, STRATA_ONE)); /* its kernel is there before the capture */
    char *own = st_workspace(h, 5000);
    for (int stream = 0; stream < 2; stream++) { /* in the default stream, and in one of ours */
        strata_stream *s = NULL;
        if (stream) test_ok(h, strata_stream_create(h, &s));
        test_ok(h, strata_set_stream(h, s));
        void *native = strata_native_stream(h);
        own = st_workspace(h, 5000);
        test_ok(h, strata_graph_begin(h));
        assert_true(st_gpu_capturing(h));
        test_error(h, strata_graph_begin(h), STRATA_ERROR_STATE, "strata_graph_begin", "already");
        test_error(h, strata_set_stream(h, stream ? NULL : (strata_stream *)s),
                   stream ? STRATA_ERROR_STATE : STRATA_ERROR_STATE, "strata_graph_end");
        test_ok(h, strata_fill(h, t, STRATA_ONE));
        test_ok(h, strata_fill(h, half, STRATA_ONE));
        test_error(h, strata_alloc(h, 10, &x), STRATA_ERROR_STATE, "captured");
        test_error(h, strata_copy(h, t, strata_vector(&before, STRATA_F32, 1024, 1)), STRATA_ERROR_STATE,
                   "strata_copy", "captured");
        char *w = st_workspace(h, 5000); /* the graph's own */
        assert_true(w && w != own);
        char *more = st_workspace(h, 500000);
        assert_true(more && more != w && more != own);
        st_gpu_run_end(h);
        test_ok(h, strata_graph_end(h, &q));
        assert_int_equal(fake_last_graph_nodes(), 2);
        assert_ptr_equal(strata_native_stream(h), native);
        assert_ptr_equal(st_workspace(h, 5000), own);
        assert_false(st_gpu_capturing(h));
        for (int i = 0; i < 3; i++) test_ok(h, strata_graph_launch(h, q));
        assert_int_equal(fake_count().graph_launches, before.graph_launches + 3 * (stream + 1));
        assert_int_equal(fake_count().graphs, 0);
        assert_int_equal(fake_count().execs, 1);
        strata_memory_stats m;
        test_ok(h, strata_get_memory_stats(h, &m));
        uint64_t with = m.bytes_in_use;
        test_ok(NULL, strata_graph_destroy(q));
        test_ok(h, strata_get_memory_stats(h, &m));
        assert_true(m.bytes_in_use < with); /* its workspaces */
        test_error(NULL, strata_graph_destroy(q), STRATA_ERROR_ARGUMENT, "strata_graph_destroy");
        test_error(h, strata_graph_launch(h, q), STRATA_ERROR_ARGUMENT, "destroyed");
        test_ok(h, strata_set_stream(h, NULL));
        if (stream) test_ok(NULL, strata_stream_destroy(s));
    }
    test_ok(NULL, strata_graph_destroy(NULL));
    test_error(h, strata_graph_end(h, &q), STRATA_ERROR_STATE, "strata_graph_end", "strata_graph_begin");
    assert_null(q);
    test_error(h, strata_graph_launch(h, NULL), STRATA_ERROR_ARGUMENT, "NULL");
    test_error(cpu, strata_graph_begin(cpu), STRATA_ERROR_UNSUPPORTED, "strata_graph_begin", "cpu");
    test_error(cpu, strata_graph_end(cpu, &q), STRATA_ERROR_UNSUPPORTED, "strata_graph_end");
    test_error(cpu, strata_graph_launch(cpu, NULL), STRATA_ERROR_UNSUPPORTED, "strata_graph_launch");
    /* failures leave the handle as it was */
    static const char *const functions[] = {"cuStreamBeginCapture_v2", "cuStreamCreate", "cuEventCreate"};
    for (int i = 0; i < TEST_COUNT(functions); i++) {
        fake_fail(functions[i], 1, 999);
        test_error(h, strata_graph_begin(h), STRATA_ERROR_DEVICE, "strata_graph_begin", "could not begin");
        test_ok(h, strata_synchronize(h));
        assert_int_equal(fake_count().streams, 0);
    }
    test_ok(h, strata_graph_begin(h));
    fake_fail("cuStreamEndCapture", 1, 901);
    test_error(h, strata_graph_end(h, &q), STRATA_ERROR_DEVICE, "strata_graph_end", "cannot be recorded",
               "CAPTURE_INVALIDATED");
    test_ok(h, strata_graph_begin(h));
    fake_fail("cuGraphInstantiateWithFlags", 1, 2);
    test_error(h, strata_graph_end(h, &q), STRATA_ERROR_MEMORY, "strata_graph_end", "cuGraphInstantiate");
    assert_null(q);
    test_ok(h, strata_synchronize(h));
    assert_ptr_equal(st_workspace(h, 5000), own);
    /* two graphs of one handle keep apart; a launch that fails says so */
    test_ok(h, strata_graph_begin(h));
    char *w1 = st_workspace(h, 5000);
    test_ok(h, strata_graph_end(h, &q));
    test_ok(h, strata_graph_begin(h));
    char *w2 = st_workspace(h, 5000);
    test_ok(h, strata_graph_end(h, &r));
    assert_true(w1 && w2 && w1 != w2);
    fake_fail("cuGraphLaunch", 1, 1);
    test_error(h, strata_graph_launch(h, q), STRATA_ERROR_DEVICE, "strata_graph_launch", "cuGraphLaunch");
    test_ok(NULL, strata_graph_destroy(q));
    test_ok(NULL, strata_graph_destroy(r));
    test_ok(h, strata_free(h, p));
    /* a handle that goes while it records */
    strata_handle *g = fake_handle("cuda:0");
    test_ok(g, strata_graph_begin(g));
    assert_non_null(st_workspace(g, 5000));
    strata_destroy(g);
    strata_destroy(cpu);
}

/* A caller's capture of its own stream, with a handle on it: the calls become nodes and the capture stays valid. */
static void callers_capture(void **state)
{
    (void)state;
    void *p, *cu = fake_stream_make(0);
    strata_stream *s;
    test_ok(h, strata_alloc(h, 4096, &p));
    strata_tensor t = strata_vector(p, STRATA_F32, 1024, 1), half = strata_slice(t, 0, 0, 512, 2);
    test_ok(h, strata_fill(h, half, STRATA_ONE));
    test_ok(h, strata_stream_wrap(h, cu, &s));
    assert_non_null(st_workspace(h, 1000));
    fake_capture_begin(cu, 0);
    test_ok(h, strata_set_stream(h, s)); /* the old stream's use of the workspace does not enter the graph */
    test_ok(h, strata_fill(h, t, STRATA_ONE));
    test_ok(h, strata_fill(h, half, STRATA_ONE));
    test_ok(h, strata_copy(h, half, strata_slice(t, 0, 1, 512, 2)));
    test_ok(h, strata_set_stream(h, NULL));
    assert_int_equal(fake_capture_end(cu), 0);
    assert_int_equal(fake_last_graph_nodes(), 3);
    test_ok(NULL, strata_stream_destroy(s));
    fake_stream_end(cu);
    test_ok(h, strata_free(h, p));
}

int main(void)
{
    fake_use();
    fake_shape(2, 13000, 90);
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(streams), TEST(events), TEST(graphs), TEST(callers_capture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
