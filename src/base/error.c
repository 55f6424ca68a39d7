/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - the error chain: one sentence, frames from the outside in, one remedy. Composed when it is asked for. */
#include "base/head.h"
#include <stdio.h>
#include <string.h>

static _Thread_local st_err thread_error;

st_err *st_err_thread(void) { return &thread_error; }
st_err *st_err_of(strata_handle *h) { return h ? &((st_handle_head *)(void *)h)->err : &thread_error; }

strata_status st_vfail(st_err *e, strata_status s, const char *fmt, va_list ap)
{
    e->status = s;
    e->frames = 0;
    e->remedy[0] = 0;
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    return s;
}

strata_status st_fail(st_err *e, strata_status s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    st_vfail(e, s, fmt, ap);
    va_end(ap);
    return s;
}

void st_err_frame(st_err *e, const char *layer, const char *fmt, ...)
{
    if (e->frames >= ST_ERR_FRAMES) return;
    int i = e->frames++;
    va_list ap;
    va_start(ap, fmt);
    snprintf(e->frame[i].layer, sizeof e->frame[i].layer, "%s", layer);
    vsnprintf(e->frame[i].text, sizeof e->frame[i].text, fmt, ap);
    va_end(ap);
}

void st_err_remedy(st_err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->remedy, sizeof e->remedy, fmt, ap);
    va_end(ap);
}

/* Appends at most what fits; returns the new length. */
static size_t append(char *buf, size_t n, size_t at, const char *fmt, ...) ST_PRINTF(4, 5);
static size_t append(char *buf, size_t n, size_t at, const char *fmt, ...)
{
    if (at + 1 >= n) return at;
    va_list ap;
    va_start(ap, fmt);
    int k = vsnprintf(buf + at, n - at, fmt, ap);
    va_end(ap);
    if (k < 0) return at;
    return (size_t)k < n - at ? at + (size_t)k : n - 1;
}

const char *strata_error(const strata_handle *h)
{
    /* of a pointer from anywhere nothing but the magic is read, and that only where a handle can lie */
    st_handle_head *head = (st_handle_head *)(uintptr_t)h;
    if (h && ((uintptr_t)h % ST_HANDLE_ALIGN || head->magic != ST_HANDLE_MAGIC))
        return "the handle is destroyed, or not a strata_handle; make one with strata_create";
    st_err *e = h ? &head->err : &thread_error;
    if (e->status == STRATA_OK) return "no error";
    size_t at = append(e->composed, sizeof e->composed, 0, "%s", e->text);
    /* frames were added from the inside out; a reader wants the outermost first */
    for (int i = e->frames - 1; i >= 0; i--)
        at = append(e->composed, sizeof e->composed, at, "\n  %-9s %s", e->frame[i].layer, e->frame[i].text);
    if (e->remedy[0]) append(e->composed, sizeof e->composed, at, "\n  %-9s %s", "try", e->remedy);
    return e->composed;
}

const char *strata_status_name(strata_status s)
{
    static const char *const names[] = {
        "STRATA_OK",           "STRATA_ERROR_ARGUMENT",  "STRATA_ERROR_SHAPE",    "STRATA_ERROR_TYPE",
        "STRATA_ERROR_LAYOUT", "STRATA_ERROR_ALIAS",     "STRATA_ERROR_OVERFLOW", "STRATA_ERROR_UNSUPPORTED",
        "STRATA_ERROR_MEMORY", "STRATA_ERROR_WORKSPACE", "STRATA_ERROR_DEVICE",   "STRATA_ERROR_SYNTAX",
        "STRATA_ERROR_STATE",  "STRATA_ERROR_IO",        "STRATA_ERROR_INTERNAL"};
    return (unsigned)s < ST_COUNT(names) ? names[s] : "unknown status";
}

const char *strata_version(void) { return STRATA_VERSION_STRING; }

/* A byte of UTF-8 that begins no character */
static bool inside(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

const char *st_cut(const char *s, char room[ST_CUT])
{
    enum { MOST = 80, END = 24 };
    const size_t n = strlen(s);
    size_t head = n, tail = n, at = 0;
    if (n > MOST) {
        head = MOST - END - 3;
        tail = n - END;
        while (head && inside(s[head])) head--;
        while (tail < n && inside(s[tail])) tail++;
    }
    for (size_t i = 0; i < head; i++) room[at++] = s[i];
    if (head < n) memcpy(room + at, "...", 3), at += 3;
    for (size_t i = tail; i < n; i++) room[at++] = s[i];
    room[at] = 0;
    for (char *c = room; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
    return room;
}
