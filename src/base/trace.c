/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - events to stderr (one line each, when they end; indented by depth) or to a Chrome trace file, which is valid JSON at every
 * moment after st_trace_set or exit closes it. Off: one relaxed load a call. */
#include "base/trace.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

atomic_int st_trace_on;
static pthread_once_t once = PTHREAD_ONCE_INIT, fork_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file; /* Chrome trace, or NULL for stderr lines */
static bool first_event;
static uint64_t origin;
static pid_t owner;
static atomic_int next_thread;
static _Thread_local int thread_number, depth;

/* False when not all of it could be written: errno says why. */
static bool close_file(void)
{
    bool ok = true;
    if (!file) return true;
    if (getpid() == owner) {
        int error = 0;
        fputs("\n]}\n", file);
        if (ferror(file) || fflush(file)) error = errno;
        if (fclose(file) && !error) error = errno;
        ok = !error;
        errno = error;
    }
    file = NULL;
    return ok;
}

/* Fork: nobody may hold the lock across it, and the child's copy of the buffer must be empty, or its exit would write it again. */
static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    if (file && getpid() == owner) fflush(file);
}
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void register_fork(void) { pthread_atfork(before_fork, after_fork, after_fork); }

static void at_exit(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&st_trace_on, 0);
    if (!close_file()) fprintf(stderr, "strata: the trace file is incomplete: %s\n", strerror(errno));
    pthread_mutex_unlock(&lock);
}

static bool means_off(const char *where)
{
    return !where || !*where || !strcmp(where, "0") || !strcmp(where, "off");
}

/* the first bytes go out at once, so that a full disk is known before anything is traced */
static bool open_file(const char *where)
{
    file = fopen(where, "we");
    if (!file) return false;
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
    first_event = true;
    if (!fflush(file)) return true;
    int error = errno;
    fclose(file);
    file = NULL;
    errno = error;
    return false;
}

bool st_trace_set(const char *where, char *why, size_t n)
{
    static bool registered;
    bool ok = true;
    pthread_once(&fork_once, register_fork);
    pthread_mutex_lock(&lock);
    atomic_store(&st_trace_on, 0);
    if (!close_file()) {
        snprintf(why, n, "the trace file is incomplete: %s", strerror(errno));
        ok = false;
    }
    if (ok && !means_off(where)) {
        origin = st_now_ns();
        owner = getpid();
        if (strcmp(where, "1") && strcmp(where, "stderr")) {
            if (!open_file(where)) {
                snprintf(why, n, "the trace file '%s' cannot be written: %s", where, strerror(errno));
                ok = false;
            } else {
                if (!registered) atexit(at_exit);
                registered = true;
            }
        }
        if (ok) atomic_store(&st_trace_on, 1);
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

static void init_once(void)
{
    char why[300];
    const char *where = st_env("STRATA_TRACE");
    /* an unwritable file may not stop the program; here and in at_exit the library speaks unasked, and tracing was asked for */
    if (where && !st_trace_set(where, why, sizeof why))
        fprintf(stderr, "strata: STRATA_TRACE ignored: %s\n", why);
}
void st_trace_init(void) { pthread_once(&once, init_once); }

uint64_t st_trace_start_slow(void)
{
    depth++;
    return st_now_ns();
}

/* Bytes of the UTF-8 sequence at s, 0 when it is not one: names come from callers, and a text may have been cut anywhere. */
static int utf8(const unsigned char *s)
{
    int n = *s < 0x80                 ? 1
            : *s >= 0xc2 && *s < 0xe0 ? 2
            : *s >= 0xe0 && *s < 0xf0 ? 3
            : *s >= 0xf0 && *s < 0xf5 ? 4
                                      : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static void json_string(FILE *f, const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        int n = utf8(s);
        if (*s == '"' || *s == '\\') fputc('\\', f);
        if (*s < 32)
            fprintf(f, "\\u%04x", *s);
        else if (n)
            fwrite(s, 1, (size_t)n, f);
        else
            fputc('?', f);
        s += n ? n : 1;
    }
}

void st_trace_end(uint64_t t0, const char *layer, const char *name, const char *fmt, ...)
{
    uint64_t t1 = st_now_ns();
    char detail[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(detail, sizeof detail, fmt, ap);
    va_end(ap);
    if (depth > 0) depth--;
    if (!thread_number) thread_number = atomic_fetch_add(&next_thread, 1) + 1;
    pthread_mutex_lock(&lock);
    if (atomic_load(&st_trace_on)) {
        double us = (double)(t1 - t0) * 1e-3;
        if (!file) {
            fprintf(stderr, "strata %*s%-9s %-40s %10.2f us  %s\n", 2 * depth, "", layer, name, us, detail);
        } else if (getpid() == owner) {
            fprintf(
                file,
                "%s{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":\"",
                first_event ? "" : ",\n", (int)owner, thread_number, (double)(t0 - origin) * 1e-3, us, layer);
            json_string(file, name);
            fputs("\",\"args\":{\"detail\":\"", file);
            json_string(file, detail);
            fputs("\"}}", file);
            first_event = false;
        }
    }
    pthread_mutex_unlock(&lock);
}
