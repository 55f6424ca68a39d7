/* SPDX-License-Identifier: Apache-2.0 */
/* handle.h - the per-user object: device, stream, workspace, threads, defaults; and the services engines ask of it. */
#ifndef ST_RUNTIME_HANDLE_H
#define ST_RUNTIME_HANDLE_H
#include "base/base.h"
#include "base/cpu.h"
#include "base/head.h"
#include "base/trace.h"
#include <stddef.h>
#include <strata/runtime.h>

struct strata_handle {
    uint32_t magic; /* these two as in st_handle_head */
    st_err err;
    char device[32];
    const st_cpu *cpu;
    const struct st_gpu *gpu; /* NULL on the CPU; runtime/gpu.h */
    bool staging;             /* made as "auto" on a GPU: host operands are copied to the device and back */
    int threads;              /* what strata_set_threads asked, 0: the team's size */
    strata_parallel_for parallel_for;
    bool in_callers; /* it is at work: a call on this handle from inside it runs on its own thread */
    void *parallel_user;
    int parallel_threads;
    strata_allocator allocator;
    bool own_allocator;
    char *workspace; /* the handle's, grown on demand; or the caller's */
    size_t workspace_size, workspace_peak;
    size_t workspace_limit;
    bool workspace_is_callers;
    size_t held;     /* bytes the handle holds from its allocator */
    int outstanding; /* strata_alloc'ed blocks from a caller's allocator */
    strata_stream *stream;
    struct {                     /* of a handle on a GPU */
        int entered;             /* calls that have its context current */
        bool pushed;             /* of them the outermost found another one */
        bool ordered;            /* `last` holds the workspace's last use in another stream */
        struct CUevent_st *last; /* recorded where the stream was left */
        uint64_t last_serial;    /* of that stream */
        void *node_workspace;    /* workspace of one run inside a graph that the caller captures */
        size_t node_bytes;
        struct strata_graph *graph; /* being captured by strata_graph_begin */
        struct {
            char *lo, *hi;
        } reach[8]; /* ranges of device memory met last */
        unsigned reach_next;
    } cuda;
    atomic_uintptr_t
        busy;             /* the thread whose call uses the workspace or changes the cache: st_handle_enter */
    bool batch_invariant; /* plan layer: strata_set_batch_invariant */
    double find_seconds;  /* plan layer: strata_find; 0: no search at first use */
    bool find_reorders;
    void *plan_slot; /* plan layer's cache */
    void (*plan_slot_free)(void *);
};
_Static_assert(offsetof(strata_handle, magic) == offsetof(st_handle_head, magic) &&
                   offsetof(strata_handle, err) == offsetof(st_handle_head, err),
               "strata_error reads a handle as st_handle_head");

/* Workspace of at least `bytes`, 64-byte aligned, valid until the next call of this function on the handle (nested users must
 * not exist: the outermost plan asks once for all its parts). NULL with the error set (naming the limit) when impossible. */
void *st_workspace(strata_handle *h, size_t bytes);
/* The same, where `uncounted` of the bytes are what every kernel needs and so no limit can mean (an evaluator's scratch). */
void *st_workspace_beyond(strata_handle *h, size_t bytes, size_t uncounted);

/* ---- the thread team ------------------------------------------------------------------------------------------------ */
/* Threads this handle may use now (1 when the caller's parallel_for has 1, or threads was set to 1). */
int st_threads(const strata_handle *h);
/* Runs fn(arg, id, n) for id = 0..n-1 with n <= want, the caller being id 0; returns n. The n bodies run at the same time, so
 * that they may use st_barrier. n is 1 when the team is busy with another handle's call, when it is parked and `us`
 * (the estimated one-thread microseconds of the work) is too small to pay for waking it, or when the caller brought its own
 * parallel_for (which promises no concurrency). fn must give the same result for every n. */
typedef void (*st_team_fn)(void *arg, int id, int n);
int st_team_run(strata_handle *h, int want, double us, st_team_fn fn, void *arg);
/* The same for bodies that never wait for each other: they may also run one after the other, so the caller's parallel_for serves too. */
int st_team_run_apart(strata_handle *h, int want, double us, st_team_fn fn, void *arg);
/* Runs fn(arg, i) for i in [0, tasks), shared among the threads dynamically (or by the caller's parallel_for). No barriers.
 * `worker` is 0..st_threads(h)-1, unique among bodies running at the same time: scratch may be indexed by it. */
typedef void (*st_task_fn)(void *arg, int64_t i, int worker);
void st_team_for(strata_handle *h, int64_t tasks, double us, st_task_fn fn, void *arg);
/* A barrier for the n bodies of one st_team_run; put one in shared memory, zeroed, and let each body keep its own `sense`
 * (an int starting at 0). */
typedef struct st_barrier {
    _Alignas(64) atomic_int count;
    _Alignas(64) atomic_int sense;
} st_barrier;
void st_barrier_wait(st_barrier *b, int n, int *sense);

/* Internal allocation for long-lived things (plans, caches): through the handle's allocator when it has one. */
void *st_malloc(strata_handle *h, size_t bytes);
void st_mfree(strata_handle *h, void *p, size_t bytes);

/* A handle is one thread's at a time. What two at once would ruin (the workspace, in which kernels keep the flags that their threads wait
 * for; the plan cache) is entered by one: enter says ST_ENTERED, or ST_INSIDE when this thread is inside already, or ST_IN_USE while another
 * is; that call then fails with what in_use returns (the message is the calling thread's: strata_error(NULL)). */
typedef enum st_enter { ST_IN_USE, ST_ENTERED, ST_INSIDE } st_enter;
ST_INLINE st_enter st_handle_enter(strata_handle *h)
{
    const uintptr_t me = (uintptr_t)st_err_thread();
    uintptr_t who = 0;
    if (ST_LIKELY(atomic_compare_exchange_strong_explicit(&h->busy, &who, me, memory_order_acquire,
                                                          memory_order_relaxed)))
        return ST_ENTERED;
    return who == me ? ST_INSIDE : ST_IN_USE;
}
ST_INLINE void st_handle_leave(strata_handle *h, st_enter e)
{
    if (e == ST_ENTERED) atomic_store_explicit(&h->busy, 0, memory_order_release);
}
/* May this thread enter now? */
ST_INLINE bool st_handle_open(strata_handle *h)
{
    const uintptr_t who = atomic_load_explicit(&h->busy, memory_order_relaxed);
    return ST_LIKELY(!who) || who == (uintptr_t)st_err_thread();
}
strata_status st_handle_in_use(const char *who);

/* Common opening of public functions: handle check and magic. */
strata_status st_handle_check(strata_handle *h, const char *who);
#endif
