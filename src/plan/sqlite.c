/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite.c - opens libsqlite3.so.0 once a process, at the first use of the database's file. */
#include "plan/sqlite.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { OLDEST = 3031000 }; /* SQLITE_OPEN_NOFOLLOW */
static st_sqlite table;
static bool usable;
static char reason[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *lib = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        const char *said = dlerror();
        snprintf(reason, sizeof reason, "SQLite cannot be opened (Debian: libsqlite3-0): %.160s",
                 said ? said : "");
        return;
    }
#define ST_SQLITE(result, name, arguments)                                        \
    *(void **)(void *)&table.name = dlsym(lib, "sqlite3_" #name);                 \
    if (!table.name) {                                                            \
        snprintf(reason, sizeof reason, "libsqlite3.so.0 has no sqlite3_" #name); \
        return;                                                                   \
    }
    ST_SQLITE_FUNCTIONS
#undef ST_SQLITE
    if (table.libversion_number() < OLDEST) {
        snprintf(reason, sizeof reason, "libsqlite3.so.0 is of version %d; %d or newer is needed",
                 table.libversion_number(), OLDEST);
        return;
    }
    usable = true;
}

const st_sqlite *st_sqlite_get(char *why, size_t n)
{
    pthread_once(&once, load);
    if (usable) return &table;
    snprintf(why, n, "%s", reason);
    return NULL;
}
