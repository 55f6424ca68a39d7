/* SPDX-License-Identifier: Apache-2.0 */
/* pack_lists.c - who has kernels worth building ahead of time; tools/pack.c reads it. */
#include "runtime/gpu.h"
#include <pthread.h>

enum { MAX_LISTS = 32 };
static st_gpu_pack_fn lists[MAX_LISTS];
static int list_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void st_gpu_register_pack(st_gpu_pack_fn f)
{
    pthread_mutex_lock(&lock);
    bool known = false;
    for (int i = 0; i < list_count; i++) known = known || lists[i] == f;
    if (!known && list_count < MAX_LISTS) lists[list_count++] = f;
    pthread_mutex_unlock(&lock);
}

int st_gpu_pack_lists(st_gpu_pack_fn *out, int max)
{
    pthread_mutex_lock(&lock);
    int n = list_count < max ? list_count : max;
    for (int i = 0; i < n; i++) out[i] = lists[i];
    pthread_mutex_unlock(&lock);
    return n;
}
