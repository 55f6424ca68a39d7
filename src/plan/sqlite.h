/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite.h - the few functions of SQLite (libsqlite3.so.0, public domain) that the tuning database needs, opened at run time: building needs
 * no header of it, nothing links to it, and a machine without it keeps measurements in memory. Names and numbers: sqlite.org/c3ref. */
#ifndef ST_PLAN_SQLITE_H
#define ST_PLAN_SQLITE_H
#include "base/base.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
enum {
    SQLITE_OK = 0,
    SQLITE_ERROR = 1,
    SQLITE_CORRUPT = 11,
    SQLITE_NOTADB = 26,
    SQLITE_ROW = 100,
    SQLITE_DONE = 101,
    SQLITE_OPEN_READWRITE = 2,
    SQLITE_OPEN_CREATE = 4,
    SQLITE_OPEN_FULLMUTEX = 0x10000,
    SQLITE_OPEN_NOFOLLOW = 0x1000000
};

/* ST_SQLITE(result, name, arguments) */
#define ST_SQLITE_FUNCTIONS                                                                             \
    ST_SQLITE(int, open_v2, (const char *path, sqlite3 **db, int flags, const char *vfs))               \
    ST_SQLITE(int, close, (sqlite3 *))                                                                  \
    ST_SQLITE(int, busy_timeout, (sqlite3 *, int ms))                                                   \
    ST_SQLITE(int, exec,                                                                                \
              (sqlite3 *, const char *sql, int (*)(void *, int, char **, char **), void *, char **))    \
    ST_SQLITE(int, prepare_v2, (sqlite3 *, const char *sql, int n, sqlite3_stmt **, const char **tail)) \
    ST_SQLITE(int, bind_text, (sqlite3_stmt *, int, const char *, int n, void (*)(void *)))             \
    ST_SQLITE(int, bind_double, (sqlite3_stmt *, int, double))                                          \
    ST_SQLITE(int, step, (sqlite3_stmt *))                                                              \
    ST_SQLITE(int, reset, (sqlite3_stmt *))                                                             \
    ST_SQLITE(int, finalize, (sqlite3_stmt *))                                                          \
    ST_SQLITE(const unsigned char *, column_text, (sqlite3_stmt *, int))                                \
    ST_SQLITE(int, column_bytes, (sqlite3_stmt *, int))                                                 \
    ST_SQLITE(double, column_double, (sqlite3_stmt *, int))                                             \
    ST_SQLITE(const char *, errmsg, (sqlite3 *))                                                        \
    ST_SQLITE(int, libversion_number, (void))

typedef struct st_sqlite {
#define ST_SQLITE(result, name, arguments) result(*name) arguments;
    ST_SQLITE_FUNCTIONS
#undef ST_SQLITE
} st_sqlite;

/* NULL with why when it is not there. */
const st_sqlite *st_sqlite_get(char *why, size_t n);
#endif
