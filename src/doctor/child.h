/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - work that may hang or crash, in a process of its own that writes lines. */
#ifndef ST_DOCTOR_CHILD_H
#define ST_DOCTOR_CHILD_H
#include "base/base.h"
#include <sys/types.h>

typedef struct st_child {
    pid_t pid; /* 0: none */
    int fd;
    bool over; /* its output has ended */
    size_t used;
    char buffer[8192];
} st_child;
double st_seconds(void); /* monotonic */
/* Forks; the child calls body(what, fd), which writes lines to fd and whose return value is the exit status. Its standard input is empty, its
 * standard error too; it dies with its parent. False with errno. */
bool st_child_start(st_child *c, int (*body)(const char *what, int fd), const char *what);
/* The next line, without its newline, waiting until `deadline` (of st_seconds): 1 a line, 0 the output has ended, -1 nothing by then. */
int st_child_line(st_child *c, double deadline, char *line, size_t n);
/* Ends it. How it went: "" for exit status 0 or our own kill of a child that still ran, else "was ended by signal 11 (Segmentation fault)",
 * "ended with status 3", "cannot even be killed: it waits inside the kernel". True for "". */
bool st_child_stop(st_child *c, char *how, size_t n);

#endif
