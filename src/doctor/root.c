/* SPDX-License-Identifier: Apache-2.0 */
/* root.c - paths resolved inside a root directory.
 *
 * A path is walked one component at a time with O_NOFOLLOW from a stack of directory descriptors; links are read and expanded here, an
 * absolute target starts again at the root, ".." stops at the root. So nothing outside the root is ever opened, whatever the tree
 * holds, and a loop of links ends after MAX_LINKS. */
#include "doctor/root.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LINKS = 40, MAX_DEPTH = 64, REST = 4096 };
struct st_root {
    int fd, starved; /* EMFILE or ENFILE, once an open failed by it */
    bool host;
};
typedef struct walk {
    int fd[MAX_DEPTH + 1], depth; /* fd[0] is the root's and stays open */
    char path[ST_PATH];           /* of fd[depth], without the last component */
    char last[256];               /* "" when the path is the directory fd[depth] itself */
    struct stat stat;             /* of the last component */
} walk;

st_root *st_root_open(const char *path, int *error)
{
    st_root *r = calloc(1, sizeof *r);
    int ignored;
    if (!error) error = &ignored;
    *error = ENOMEM;
    if (!r) return NULL;
    r->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->fd < 0) {
        *error = errno;
        free(r);
        return NULL;
    }
    struct stat here, top;
    r->host = fstat(r->fd, &here) == 0 && stat("/", &top) == 0 && here.st_dev == top.st_dev &&
              here.st_ino == top.st_ino;
    *error = 0;
    return r;
}

void st_root_close(st_root *r)
{
    if (!r) return;
    close(r->fd);
    free(r);
}

bool st_root_is_host(const st_root *r) { return r->host; }
int st_root_starved(const st_root *r) { return r->starved; }

/* What is missing for want of descriptors is not known to be missing; errno stays. */
static void remember(st_root *r)
{
    if (errno == EMFILE || errno == ENFILE) r->starved = errno;
}

static void pop(walk *w)
{
    if (w->depth == 0) return;
    close(w->fd[w->depth--]);
    char *slash = strrchr(w->path, '/');
    *slash = 0;
}

static void finish(walk *w)
{
    int saved = errno;
    while (w->depth) close(w->fd[w->depth--]);
    errno = saved;
}

static bool fail(walk *w, int error)
{
    finish(w);
    errno = error;
    return false;
}

/* goes down into the directory w->last */
static bool push(walk *w)
{
    size_t n = strlen(w->path), k = strlen(w->last);
    if (w->depth == MAX_DEPTH || n + k + 2 > sizeof w->path) return fail(w, ENAMETOOLONG);
    int fd = openat(w->fd[w->depth], w->last, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return fail(w, errno);
    w->fd[++w->depth] = fd;
    w->path[n] = '/';
    memcpy(w->path + n + 1, w->last, k + 1);
    w->last[0] = 0;
    return true;
}

/* On success the caller uses w and calls finish(w). */
static bool step_down(const st_root *r, const char *path, bool follow, walk *w)
{
    char rest[REST], target[ST_PATH];
    int links = 0;
    w->depth = 0;
    w->fd[0] = r->fd;
    w->path[0] = w->last[0] = 0;
    if (strlen(path) >= sizeof rest) return fail(w, ENAMETOOLONG);
    strcpy(rest, path);
    for (char *p = rest;;) {
        p += strspn(p, "/");
        size_t k = strcspn(p, "/");
        if (k == 0) break;
        if (k >= sizeof w->last) return fail(w, ENAMETOOLONG);
        if (w->last[0] && !push(w))
            return false; /* the component before was no directory: push says ENOTDIR */
        bool final = p[k + strspn(p + k, "/")] == 0;
        char name[256];
        memcpy(name, p, k);
        name[k] = 0;
        p += k;
        if (strcmp(name, ".") == 0) continue;
        if (strcmp(name, "..") == 0) {
            pop(w);
            continue;
        }
        if (fstatat(w->fd[w->depth], name, &w->stat, AT_SYMLINK_NOFOLLOW)) return fail(w, errno);
        strcpy(w->last, name);
        if (!S_ISLNK(w->stat.st_mode) || (final && !follow)) continue;
        if (++links > MAX_LINKS) return fail(w, ELOOP);
        ssize_t n = readlinkat(w->fd[w->depth], name, target, sizeof target - 1);
        if (n <= 0) return fail(w, n < 0 ? errno : ENOENT);
        target[n] = 0;
        if ((size_t)n + 1 + strlen(p) >= sizeof rest) return fail(w, ENAMETOOLONG);
        memmove(rest + n + 1, p, strlen(p) + 1);
        memcpy(rest, target, (size_t)n);
        rest[n] = '/';
        p = rest;
        w->last[0] = 0;
        if (target[0] == '/')
            while (w->depth) pop(w);
    }
    if (!w->last[0] && fstat(w->fd[w->depth], &w->stat)) return fail(w, errno);
    return true;
}

static bool go(st_root *r, const char *path, bool follow, walk *w)
{
    if (step_down(r, path, follow, w)) return true;
    remember(r);
    return false;
}

bool st_root_resolve(st_root *r, const char *path, char out[ST_PATH])
{
    walk w;
    if (!go(r, path, true, &w)) return false;
    size_t n = strlen(w.path), k = strlen(w.last);
    bool fits = n + k + 2 <= ST_PATH;
    if (fits) {
        memcpy(out, w.path, n + 1);
        if (k || n == 0) {
            out[n] = '/';
            memcpy(out + n + 1, w.last, k + 1);
        }
    }
    finish(&w);
    if (!fits) errno = ENAMETOOLONG;
    return fits;
}

bool st_root_stat(st_root *r, const char *path, struct stat *s)
{
    walk w;
    if (!go(r, path, true, &w)) return false;
    *s = w.stat;
    finish(&w);
    return true;
}

bool st_root_lstat(st_root *r, const char *path, struct stat *s)
{
    walk w;
    if (!go(r, path, false, &w)) return false;
    *s = w.stat;
    finish(&w);
    return true;
}

bool st_root_exists(st_root *r, const char *path)
{
    struct stat s;
    return st_root_stat(r, path, &s);
}

bool st_root_readlink(st_root *r, const char *path, char out[ST_PATH])
{
    walk w;
    if (!go(r, path, false, &w)) return false;
    ssize_t n = S_ISLNK(w.stat.st_mode) ? readlinkat(w.fd[w.depth], w.last, out, ST_PATH - 1) : -1;
    if (n < 0 && !S_ISLNK(w.stat.st_mode)) errno = EINVAL;
    finish(&w);
    if (n < 0) return false;
    out[n] = 0;
    return true;
}

int st_root_openfile(st_root *r, const char *path)
{
    walk w;
    if (!go(r, path, true, &w)) return -1;
    if (!S_ISREG(w.stat.st_mode)) {
        fail(&w, S_ISDIR(w.stat.st_mode) ? EISDIR : EINVAL);
        return -1;
    }
    int fd = openat(w.fd[w.depth], w.last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat s;
    if (fd < 0) remember(r);
    finish(&w);
    if (fd >= 0 && (fstat(fd, &s) || !S_ISREG(s.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

static char *read_from(int fd, size_t max, size_t *size)
{
    size_t room = 4096, n = 0;
    char *p = malloc(room + 1);
    while (p && n < max) {
        if (n == room) {
            room *= 2;
            char *more = realloc(p, room + 1);
            if (!more) free(p);
            p = more;
            continue;
        }
        size_t want = room - n < max - n ? room - n : max - n;
        ssize_t k = read(fd, p + n, want);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0 && n == 0) {
            int saved = errno;
            free(p);
            p = NULL;
            errno = saved;
            break;
        }
        if (k <= 0) break;
        n += (size_t)k;
    }
    if (p) p[n] = 0;
    if (size) *size = p ? n : 0;
    return p;
}

char *st_root_read(st_root *r, const char *path, size_t max, size_t *size)
{
    int fd = st_root_openfile(r, path);
    if (fd < 0) return NULL;
    char *p = read_from(fd, max, size);
    close(fd);
    return p;
}

char *st_root_read_tail(st_root *r, const char *path, size_t max, size_t *size)
{
    int fd = st_root_openfile(r, path);
    if (fd < 0) return NULL;
    struct stat s;
    if (fstat(fd, &s) == 0 && s.st_size > (off_t)max && lseek(fd, s.st_size - (off_t)max, SEEK_SET) < 0)
        lseek(fd, 0, SEEK_SET);
    char *p = read_from(fd, max, size);
    close(fd);
    return p;
}

bool st_root_line(st_root *r, const char *path, char *out, size_t n)
{
    out[0] = 0;
    char *p = st_root_read(r, path, 4096, NULL);
    if (!p) return false;
    size_t k = strcspn(p, "\r\n");
    if (k >= n) k = n - 1;
    memcpy(out, p, k);
    out[k] = 0;
    free(p);
    return true;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

bool st_root_list(st_root *r, const char *path, st_list *out)
{
    memset(out, 0, sizeof *out);
    walk w;
    if (!go(r, path, true, &w)) return false;
    int fd = S_ISDIR(w.stat.st_mode) ? openat(w.fd[w.depth], w.last[0] ? w.last : ".",
                                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                                     : -1;
    int error = S_ISDIR(w.stat.st_mode) ? errno : ENOTDIR;
    if (fd < 0 && error != ENOTDIR) remember(r);
    finish(&w);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0) close(fd);
        errno = error;
        return false;
    }
    int room = 0;
    for (struct dirent *e; out->n < ST_LIST_MAX && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (out->n == room) {
            char **more = realloc(out->name, (size_t)(room = room ? 2 * room : 64) * sizeof *more);
            if (!more) break;
            out->name = more;
        }
        if (!(out->name[out->n] = strdup(e->d_name))) break;
        out->n++;
    }
    closedir(d);
    if (out->n) qsort(out->name, (size_t)out->n, sizeof *out->name, by_name);
    return true;
}

void st_list_free(st_list *l)
{
    for (int i = 0; i < l->n; i++) free(l->name[i]);
    free(l->name);
    memset(l, 0, sizeof *l);
}

void st_put(char *out, size_t n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out, n, fmt, ap);
    va_end(ap);
}

void st_wrap(FILE *out, int indent, int column, const char *text)
{
    bool first = true;
    for (const char *p = text + strspn(text, " "); *p; first = false) {
        int n = (int)strcspn(p, " "), space = first ? 0 : 1;
        if (!first && column + space + n > 110) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            space = 0;
        }
        column += fprintf(out, "%*s%.*s", space, "", n, p);
        p += n;
        p += strspn(p, " ");
    }
    fputc('\n', out);
}
