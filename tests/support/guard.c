/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c - buffers between PROT_NONE pages. A touch beyond the near side faults at once; the far side's slack is filled with a pattern
 * that test_guard_intact compares.
 *
 *     [ PROT_NONE | slack ... | buffer | PROT_NONE ]   at_end
 *     [ PROT_NONE | buffer | slack ... | PROT_NONE ]   otherwise
 * The sizes are kept in a table here, since no byte near the buffer may be ours. */
#include "support.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 4096, SLACK = 0xa5 };
static struct {
    char *map, *user;
    size_t total, bytes;
} slot[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void test_poison(void *p, size_t bytes)
{
    if (bytes) memset(p, 0xff, bytes);
}

static int find(const void *user)
{
    for (int i = 0; i < SLOTS; i++)
        if (slot[i].map && slot[i].user == user) return i;
    return -1;
}

void *test_guard(size_t bytes, bool at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    if (!body) body = page;
    char *map = mmap(NULL, body + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map, page, PROT_NONE) || mprotect(map + page + body, page, PROT_NONE)) {
        fprintf(stderr, "support: no memory for a guarded buffer of %zu bytes\n", bytes);
        abort();
    }
    memset(map + page, SLACK, body);
    char *user = at_end ? map + page + body - bytes : map + page;
    test_poison(user, bytes);
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < SLOTS && slot[i].map) i++;
    if (i == SLOTS) {
        fprintf(stderr, "support: more than %d guarded buffers at once\n", SLOTS);
        abort();
    }
    slot[i].map = map;
    slot[i].user = user;
    slot[i].total = body + 2 * page;
    slot[i].bytes = bytes;
    pthread_mutex_unlock(&lock);
    return user;
}

bool test_guard_intact(const void *p)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    pthread_mutex_lock(&lock);
    int i = find(p);
    bool ok = i >= 0;
    if (ok) {
        const char *lo = slot[i].map + page, *hi = slot[i].map + slot[i].total - page;
        for (const char *c = lo; c < slot[i].user && ok; c++) ok = (unsigned char)*c == SLACK;
        for (const char *c = slot[i].user + slot[i].bytes; c < hi && ok; c++) ok = (unsigned char)*c == SLACK;
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

void test_guard_free(void *p)
{
    if (!p) return;
    pthread_mutex_lock(&lock);
    int i = find(p);
    if (i < 0) {
        fprintf(stderr, "support: test_guard_free of an unknown buffer\n");
        abort();
    }
    munmap(slot[i].map, slot[i].total);
    slot[i].map = NULL;
    pthread_mutex_unlock(&lock);
}
