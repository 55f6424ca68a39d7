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
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file; /* Chrome trace, or NULL for stderr lines */
static bool first_event;
static uint64_t origin;
static pid_t owner;
static atomic_int next_thread;
static _Thread_local int thread_number, depth;

static void close_file(void)
{
    if (!file) return;
    if (getpid() == owner) {
        fputs("\n]}\n", file);
        fclose(file);
    }
    file = NULL;
}

static void at_exit(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&st_trace_on, 0);
    close_file();
    pthread_mutex_unlock(&lock);
}

bool st_trace_set(const char *where, char *why, size_t n)
{
    static bool registered;
    bool ok = true;
    pthread_mutex_lock(&lock);
    atomic_store(&st_trace_on, 0);
    close_file();
    if (where && *where && strcmp(where, "0")) {
        origin = st_now_ns();
        owner = getpid();
        if (strcmp(where, "1") && strcmp(where, "stderr")) {
            file = fopen(where, "w");
            if (!file) {
                snprintf(why, n, "the trace file '%s' cannot be written: %s", where, strerror(errno));
                ok = false;
            } else {
                fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
                first_event = true;
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
    /* an unwritable file may not stop the program; this is the one place where the library speaks unasked, and tracing was asked for */
    if (where && !st_trace_set(where, why, sizeof why))
        fprintf(stderr, "strata: STRATA_TRACE ignored: %s\n", why);
}
void st_trace_init(void) { pthread_once(&once, init_once); }

uint64_t st_trace_start_slow(void)
{
    depth++;
    return st_now_ns();
}

static void json_string(FILE *f, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') fputc('\\', f);
        if (c < 32)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
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
