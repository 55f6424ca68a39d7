/* SPDX-License-Identifier: Apache-2.0 */
/* root.h - reading a machine through a root directory: every path is resolved inside it, whatever links it holds. */
#ifndef ST_DOCTOR_ROOT_H
#define ST_DOCTOR_ROOT_H
#include "base/base.h"
#include <stdio.h>
#include <sys/stat.h>

enum { ST_PATH = 1024 };
typedef struct st_root st_root;
/* NULL with *error set to an errno when `path` is no directory that can be read. */
st_root *st_root_open(const char *path, int *error);
void st_root_close(st_root *r);
bool st_root_is_host(const st_root *r); /* the root is "/" itself */
int st_root_starved(const st_root *r);  /* EMFILE or ENFILE when a file could not be opened by it, else 0 */

/* The functions below return false (or -1, NULL) with errno set. Paths are absolute inside the root. */
/* The path without links. */
bool st_root_resolve(st_root *r, const char *path, char out[ST_PATH]);
bool st_root_stat(st_root *r, const char *path, struct stat *s);  /* follows links inside the root */
bool st_root_lstat(st_root *r, const char *path, struct stat *s); /* not the last one */
bool st_root_exists(st_root *r, const char *path);
bool st_root_readlink(st_root *r, const char *path, char out[ST_PATH]); /* the text of a link */
int st_root_openfile(st_root *r,
                     const char *path); /* regular files only: no device is ever opened, no fifo waited for */
/* Up to max bytes and a NUL (free it); *size without the NUL. The last `max` bytes with tail. */
char *st_root_read(st_root *r, const char *path, size_t max, size_t *size);
char *st_root_read_tail(st_root *r, const char *path, size_t max, size_t *size);
/* One line of a small file without its newline; false when it cannot be read. */
bool st_root_line(st_root *r, const char *path, char *out, size_t n);

/* Names in a directory, sorted, without . and .., at most ST_LIST_MAX of them. */
enum { ST_LIST_MAX = 8192 };
typedef struct st_list {
    int n;
    char **name;
} st_list;
bool st_root_list(st_root *r, const char *path, st_list *out);
void st_list_free(st_list *l);

/* snprintf where a cut text is what is wanted */
void st_put(char *out, size_t n, const char *fmt, ...) ST_PRINTF(3, 4);
/* The text and a newline, broken between words at 110 columns; the first line stands at `column`, later ones are indented. */
void st_wrap(FILE *out, int indent, int column, const char *text);

#endif
