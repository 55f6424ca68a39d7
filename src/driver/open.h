/* SPDX-License-Identifier: Apache-2.0 */
/* open.h - what the three loaders share: trying paths in turn, keeping what each try said, filling a table of functions by name. */
#ifndef ST_DRIVER_OPEN_H
#define ST_DRIVER_OPEN_H
#include "driver/driver.h"
#include <stdio.h>

typedef struct st_tried {
    char text[560]; /* "libcuda.so.1: cannot open shared object file; ..." */
    int count;
} st_tried;
/* dlopen with what it said on failure appended (places that do not exist are not worth a word). */
void *st_try_open(st_tried *t, const char *path);
void st_try_note(st_tried *t, const char *fmt, ...) ST_PRINTF(2, 3);

typedef struct st_symbol {
    const char *name;
    size_t offset; /* of the function pointer in the table */
} st_symbol;
/* The first name that the library lacks, or NULL. `all`: go on past missing ones (they stay NULL). */
const char *st_fill_table(void *library, void *table, const st_symbol *s, int n, bool all);
void st_library_path(const void *function, char *path, size_t n); /* the file that holds it */

/* Calls f for each existing file of `dir`/`pattern` (a glob) in order; stops when f returns true. */
bool st_each_file(const char *dir, const char *pattern, bool (*f)(void *arg, const char *path), void *arg);
#endif
