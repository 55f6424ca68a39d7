/* SPDX-License-Identifier: Apache-2.0 */
/* fake.h - the controls of the fake driver (libcuda_fake.so), which tests link and the library opens through STRATA_CUDA_LIB.
 *
 * One file plays libcuda, NVRTC and NVML. Device memory is host memory in a range of its own; streams, events and captures are bookkeeping;
 * launches are counted, handed to a test's function, and the copy kernels run on the processor. It can fail on demand. */
#ifndef FAKE_H
#define FAKE_H
#include <stdbool.h>
#include <stddef.h>

/* The n-th call from now of `function` ("cuMemAlloc_v2"; 1: the next) answers `code`, once. */
void fake_fail(const char *function, int nth, int code);
/* From now on every call that could answers `code`, as after an asynchronous fault; 0: no more. */
void fake_lose(int code);
/* Lazy: events stay unfinished until a host thread waits for them or their stream. */
void fake_lazy(bool on);
void fake_reset(void); /* all of the above off; counters that follow to zero where nothing lives */
void fake_memory(size_t total);
/* What the driver shows; before the library opens it. Also from the environment: FAKE_CUDA_DEVICES, FAKE_CUDA_VERSION, FAKE_CUDA_CC,
 * FAKE_CUDA_INIT (cuInit's answer). */
void fake_shape(int devices, int version, int cc);

typedef struct fake_counts {
    size_t bytes; /* device memory allocated now */
    int blocks, host_blocks, streams, events, modules, graphs, execs;
    int launches, graph_launches, copies, waits, syncs, allocations, mallocs_in_capture, queries, pushes,
        nodes;
} fake_counts;
fake_counts fake_count(void);
int fake_calls(const char *function); /* how often it was called */

typedef struct fake_launch {
    const char *function, *options; /* entry; NVRTC's options, one string */
    unsigned grid[3], block[3], cluster[3], smem;
    bool overlap, captured;
    void *stream;
    void **args;
} fake_launch;
void fake_on_launch(void (*f)(void *user, const fake_launch *l), void *user);

/* A stream and a graph of the caller's own, as a program that uses CUDA directly has them. */
void *fake_stream_make(int device);
void fake_stream_end(void *stream);
void fake_capture_begin(void *stream, int mode);
int fake_capture_end(void *stream); /* cuStreamEndCapture's answer */
int fake_last_graph_nodes(void);
/* Which context this thread has current, and another one to put there. */
void *fake_current(void);
void fake_set_current(void *context);
void *fake_other_context(void);
#endif
