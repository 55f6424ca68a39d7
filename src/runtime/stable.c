/* SPDX-License-Identifier: Apache-2.0 */
/* stable.c - handles, streams and events live in memory that is never given back: a spare object keeps the word by which its functions see
 * that it was destroyed, and is reused only after KEEP others. Their number is bounded by the most that lived at once.
 *
 *     [ st_spare | object ] */
#include "runtime/runtime.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP = 16 };
struct st_spare {
    _Alignas(64) struct st_spare *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void register_fork(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

void *st_stable_new(st_stable *kind)
{
    struct st_spare *s = NULL;
    pthread_mutex_lock(&lock);
    if (kind->spare > KEEP) {
        s = kind->first;
        kind->first = s->next;
        kind->spare--;
    }
    pthread_mutex_unlock(&lock);
    if (!s && posix_memalign((void **)&s, 64, sizeof *s + kind->size)) return NULL;
    return memset(s + 1, 0, kind->size);
}

void st_stable_put(st_stable *kind, void *object)
{
    struct st_spare *s = (struct st_spare *)object - 1;
    s->next = NULL;
    pthread_mutex_lock(&lock);
    if (kind->spare++)
        kind->last->next = s;
    else
        kind->first = s;
    kind->last = s;
    pthread_mutex_unlock(&lock);
}
