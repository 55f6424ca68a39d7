/* SPDX-License-Identifier: Apache-2.0 */
/* fake_state.h - the fake driver's state, shared by its files. */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H
#include "fake.h"
#include <pthread.h>
#include <stdint.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define FAKE __attribute__((visibility("default")))
enum { FAKE_FUNCTIONS = 96, FAKE_STREAMS = 64, FAKE_EVENTS = 4096, FAKE_BLOCKS = 4096, FAKE_DEVICES = 16 };

typedef struct fake_context {
    int device;
} fake_context;
typedef struct fake_stream {
    bool live, capturing, invalid;
    int mode, nodes, node_memory;
    fake_context *context;
} fake_stream;
typedef struct fake_event {
    bool live, pending, captured;
    const fake_stream *stream;
    double ms;
} fake_event;
typedef struct fake_block {
    uintptr_t p;
    size_t bytes; /* 0: free */
    int kind;     /* 1: page-locked host memory, 2: device */
    int device;
    bool node; /* made inside a capture: its address means nothing to cuPointerGetAttributes */
} fake_block;
typedef struct fake_graph {
    int nodes;
} fake_graph;
typedef struct fake_called {
    const char *name;
    int calls, fail_in, code;
} fake_called;

typedef struct fake_state {
    pthread_mutex_t lock;
    int devices, version, cc, init, lost, called_count, last_nodes, clock;
    bool started, lazy;
    size_t total;
    fake_context context[FAKE_DEVICES], other;
    fake_stream stream[FAKE_STREAMS];
    fake_event event[FAKE_EVENTS];
    fake_block block[FAKE_BLOCKS];
    fake_called called[FAKE_FUNCTIONS];
    fake_counts count;
    void (*on_launch)(void *user, const fake_launch *l);
    void *user;
} fake_state;
extern fake_state fake;

/* Counts the call; the injected answer, or 0. */
int fake_enter(const char *function, bool sticky);
#define ENTER(f)                           \
    do {                                   \
        int fake_r = fake_enter(#f, true); \
        if (fake_r) return fake_r;         \
    } while (0)
/* 0, or the driver's answer when no context is current */
int fake_need_context(void);
#define CURRENT                           \
    do {                                  \
        int fake_c = fake_need_context(); \
        if (fake_c) return fake_c;        \
    } while (0)
int fake_forbidden(
    void); /* 900 for calls that a capture in global mode forbids to threads that are not relaxed */
int fake_stream_check(const fake_stream *s);
void fake_finish(const fake_stream *s, bool all); /* events of the stream, or all */
#endif
