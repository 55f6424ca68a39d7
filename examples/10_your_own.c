/* SPDX-License-Identifier: Apache-2.0 */
/* 10_your_own.c - the caller may own everything: the allocator, the workspace, the threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata.h>
#include <string.h>

enum { N = 4, C = 16, SIDE = 32, COUNT = N * C * SIDE * SIDE, THREADS = 2 };
static float x[COUNT], w[C * C * 9], y[COUNT], first[COUNT];
static size_t held;
static int bodies;

static void *get(void *user, size_t bytes, size_t alignment)
{
    *(size_t *)user += bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void put(void *user, void *p, size_t bytes)
{
    *(size_t *)user -= bytes;
    free(p);
}

/* A parallel for of one's own: every body once, in any order, on any threads. */
typedef struct work {
    atomic_int next;
    int n;
    void (*body)(void *arg, int i);
    void *arg;
} work;

static void *worker(void *arg)
{
    work *job = arg;
    for (int i; (i = atomic_fetch_add(&job->next, 1)) < job->n;) job->body(job->arg, i);
    return NULL;
}

static void mine(void *user, int n, void (*body)(void *arg, int i), void *arg)
{
    work job = {0, n, body, arg};
    pthread_t t[THREADS - 1];
    *(int *)user += n;
    for (int i = 0; i < THREADS - 1; i++) pthread_create(&t[i], NULL, worker, &job);
    worker(&job);
    for (int i = 0; i < THREADS - 1; i++) pthread_join(t[i], NULL);
}

int main(void)
{
    for (int i = 0; i < COUNT; i++) x[i] = 1.0f / (float)(1 + i % 13);
    for (int i = 0; i < C * C * 9; i++) w[i] = 1.0f / (float)(1 + i % 7);
    strata_tensor X = strata_nhwc(x, STRATA_F32, N, C, SIDE, SIDE),
                  W = strata_nhwc(w, STRATA_F32, C, C, 3, 3);
    strata_tensor Y = strata_nhwc(y, STRATA_F32, N, C, SIDE, SIDE);
    strata_conv same = {.pad = {1, 1}};
    strata_handle *h;
    if (strata_create(&h, "cpu")) return 1;

    strata_allocator allocator = {get, put, &held};
    if (strata_set_allocator(h, &allocator) || strata_conv_forward(h, &same, X, W, Y)) goto failed;
    printf("the handle holds %zu bytes, all from the caller's allocator\n", held);
    memcpy(first, y, sizeof y);

    if (strata_set_parallel_for(h, mine, &bodies, THREADS)) goto failed;
    if (strata_conv_forward(h, &same, X, W, Y)) goto failed;
    printf("%d bodies ran on the caller's threads; the bits are %s\n", bodies,
           memcmp(first, y, sizeof y) ? "other" : "the same");

    static _Alignas(64) char space[8 << 20];
    if (strata_set_workspace(h, space, sizeof space)) goto failed;
    if (strata_conv_forward(h, &same, X, W, Y)) goto failed;
    printf("the workspace is an array of the caller's; the bits are %s\n",
           memcmp(first, y, sizeof y) ? "other" : "the same");
    strata_destroy(h);
    printf("after strata_destroy %zu bytes are held\n", held);
    return held || !bodies || memcmp(first, y, sizeof y) ? 1 : 0;
failed:
    fprintf(stderr, "%s\n", strata_error(h));
    return 1;
}
