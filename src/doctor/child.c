/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - see child.h. A driver that hangs in the kernel cannot be killed; then the child is left behind, and that is told. */
#include "doctor/child.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double st_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void in_child(int (*body)(const char *, int), const char *what, int fd)
{
    struct rlimit none = {0, 0};
    int null = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    for (int i = 0; i < 3 && null >= 0; i++)
        if (i != fd) dup2(null, i);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    _exit(body(what, fd));
}

bool st_child_start(st_child *c, int (*body)(const char *what, int fd), const char *what)
{
    int fd[2];
    memset(c, 0, sizeof *c);
    c->fd = -1;
    if (pipe2(fd, O_CLOEXEC)) return false;
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        close(fd[0]);
        /* clear of 0 to 2, which become /dev/null */
        int out = fcntl(fd[1], F_DUPFD_CLOEXEC, 3);
        in_child(body, what, out >= 0 ? out : fd[1]);
    }
    close(fd[1]);
    if (c->pid < 0) {
        int error = errno;
        close(fd[0]);
        c->pid = 0;
        errno = error;
        return false;
    }
    c->fd = fd[0];
    return true;
}

int st_child_line(st_child *c, double deadline, char *line, size_t n)
{
    for (;;) {
        char *stop = memchr(c->buffer, '\n', c->used);
        bool full = c->used == sizeof c->buffer;
        if (stop || full || (c->over && c->used)) {
            size_t k = stop ? (size_t)(stop - c->buffer) : c->used, cut = k < n - 1 ? k : n - 1;
            memcpy(line, c->buffer, cut);
            line[cut] = 0;
            for (char *z = line; (z = memchr(z, 0, (size_t)(line + cut - z))) != NULL;) *z = ' ';
            size_t eaten = stop ? k + 1 : k;
            memmove(c->buffer, c->buffer + eaten, c->used - eaten);
            c->used -= eaten;
            return 1;
        }
        if (c->over || c->fd < 0) return 0;
        double left = deadline - st_seconds();
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        int r = poll(&p, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return -1;
        ssize_t k = read(c->fd, c->buffer + c->used, sizeof c->buffer - c->used);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0)
            c->over = true;
        else
            c->used += (size_t)k;
    }
}

bool st_child_stop(st_child *c, char *how, size_t n)
{
    int status = 0;
    bool killed = false;
    how[0] = 0;
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    if (c->pid <= 0) return true;
    for (int i = 0; i < 100; i++) {
        pid_t r = waitpid(c->pid, &status, WNOHANG);
        if (r == c->pid || (r < 0 && errno != EINTR)) {
            c->pid = 0;
            break;
        }
        if (!killed && (!c->over || i > 20)) { /* at the end of its output it is about to leave by itself */
            kill(c->pid, SIGKILL);
            killed = true;
        }
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    if (c->pid) {
        snprintf(how, n, "cannot even be killed: it waits inside the kernel (process %ld)", (long)c->pid);
        c->pid = 0;
        return false;
    }
    if (killed) return true;
    if (WIFSIGNALED(status))
        snprintf(how, n, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        snprintf(how, n, "ended with status %d", WEXITSTATUS(status));
    return how[0] == 0;
}
