/* SPDX-License-Identifier: Apache-2.0 */
/* database.c - the file of the tuning database: one table, one row a measurement.
 *
 *     tuning(device, version, problem, code, us, unix time), key: the first four; PRAGMA user_version = 1
 *
 * Every call opens the file, does one thing, and closes it, so that no connection lives across a fork and no lock is held between calls.
 * Content is checked row by row (lengths, letters, codes, numbers): the file may have been written by anything. */
#include "plan/sqlite.h"
#include "plan/tuning.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT = 1, WAIT_TO_READ_MS = 100, WAIT_TO_WRITE_MS = 2000, MOST_ROWS = 200000 };

static bool text_valid(const char *s, size_t room)
{
    const size_t n = strnlen(s, room);
    if (!n || n == room) return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || (unsigned char)s[i] > 0x7e) return false;
    return true;
}

bool st_tuning_row_valid(const st_tuning_row *r, const char **why)
{
    st_code code;
    *why = "the device is empty, too long, or not plain text";
    if (!text_valid(r->device, sizeof r->device)) return false;
    *why = "the problem is empty, too long, or not plain text";
    if (!text_valid(r->problem, sizeof r->problem)) return false;
    *why = "the time is not a plain number of microseconds from 0.0001 (a step of a clock) to 1e11 (a day)";
    if (!(r->t.us >= 1e-4) || !(r->t.us <= 1e11)) return false;
    return st_code_read(r->t.code, &code, why);
}

typedef struct file {
    const st_sqlite *q;
    sqlite3 *db;
} file;

/* Our statements are right for our table: one that SQLite does not understand (SQLITE_ERROR) meets another. */
static bool say(const file *f, const char *what, int code, st_tuning_fault *fault, char *why, size_t n)
{
    code &= 255;
    *fault = code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? ST_TUNING_DAMAGED
             : code == SQLITE_ERROR                          ? ST_TUNING_FOREIGN
                                                             : ST_TUNING_FINE;
    snprintf(why, n, "%s: %.160s", what, f->db ? f->q->errmsg(f->db) : "no memory");
    return false;
}

static bool open_file(file *f, const char *path, int flags, int wait_ms, st_tuning_fault *fault, char *why,
                      size_t n)
{
    memset(f, 0, sizeof *f);
    *fault = ST_TUNING_FINE;
    if (!(f->q = st_sqlite_get(why, n))) return false;
    const int code = f->q->open_v2(path, &f->db, flags | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
    if (code != SQLITE_OK) return say(f, "it cannot be opened", code, fault, why, n);
    f->q->busy_timeout(f->db, wait_ms);
    return true;
}

static void close_file(file *f)
{
    if (f->db) f->q->close(f->db);
}

static bool run(const file *f, const char *sql, st_tuning_fault *fault, char *why, size_t n)
{
    const int code = f->q->exec(f->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK || say(f, "it cannot be used", code, fault, why, n);
}

/* A single number that a statement gives */
static bool ask(const file *f, const char *sql, double *v, st_tuning_fault *fault, char *why, size_t n)
{
    sqlite3_stmt *s = NULL;
    int code = f->q->prepare_v2(f->db, sql, -1, &s, NULL);
    if (code == SQLITE_OK && (code = f->q->step(s)) == SQLITE_ROW) {
        *v = f->q->column_double(s, 0);
        code = SQLITE_OK;
    }
    f->q->finalize(s);
    return code == SQLITE_OK || say(f, "it cannot be read", code, fault, why, n);
}

/* 1: of our format; 0: empty; -1: neither, or unreadable, with why */
static int format_of(const file *f, st_tuning_fault *fault, char *why, size_t n)
{
    double format = 0, tables = 0, all = 0;
    if (!ask(f, "PRAGMA user_version", &format, fault, why, n) ||
        !ask(f, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'tuning'", &tables, fault,
             why, n) ||
        !ask(f, "SELECT count(*) FROM sqlite_master", &all, fault, why, n))
        return -1;
    if (format == 0 && all == 0) return 0;
    if (format == FORMAT && tables == 1) return 1;
    *fault = ST_TUNING_FOREIGN;
    if (format == FORMAT || format == 0)
        snprintf(why, n, "it is another program's database (no table `tuning` of format %d)", FORMAT);
    else
        snprintf(why, n, "its format is %g and this version reads %d", format, FORMAT);
    return -1;
}

static bool column(const file *f, sqlite3_stmt *s, int i, char *to, size_t room)
{
    const unsigned char *t = f->q->column_text(s, i);
    const int n = f->q->column_bytes(s, i);
    if (!t || n < 0 || (size_t)n >= room || strlen((const char *)t) != (size_t)n) return false;
    memcpy(to, t, (size_t)n + 1);
    return true;
}

static bool read_rows(const file *f, st_tuning_take take, void *user, st_tuning_fault *fault, char *why,
                      size_t n)
{
    sqlite3_stmt *s = NULL;
    int code = f->q->prepare_v2(f->db, "SELECT device, problem, code, us FROM tuning WHERE version = ?", -1,
                                &s, NULL);
    if (code == SQLITE_OK) code = f->q->bind_text(s, 1, STRATA_VERSION_STRING, -1, NULL);
    int rows = 0;
    while (code == SQLITE_OK && rows++ < MOST_ROWS && (code = f->q->step(s)) == SQLITE_ROW) {
        st_tuning_row r;
        const char *reason;
        code = SQLITE_OK;
        memset(&r, 0, sizeof r);
        r.t.us = f->q->column_double(s, 3);
        if (!column(f, s, 0, r.device, sizeof r.device) || !column(f, s, 1, r.problem, sizeof r.problem) ||
            !column(f, s, 2, r.t.code, sizeof r.t.code) || !st_tuning_row_valid(&r, &reason))
            continue; /* not ours: no measurement */
        if (!take(user, &r)) break;
    }
    if (code != SQLITE_OK && code != SQLITE_DONE) say(f, "it cannot be read", code, fault, why, n);
    f->q->finalize(s);
    return code == SQLITE_OK || code == SQLITE_DONE;
}

bool st_database_read(const char *path, st_tuning_take take, void *user, st_tuning_fault *fault, char *why,
                      size_t n)
{
    file f;
    *fault = ST_TUNING_FINE;
    if (access(path, F_OK)) return true;
    bool ok = open_file(&f, path, SQLITE_OPEN_READWRITE, WAIT_TO_READ_MS, fault, why, n);
    if (ok) ok = run(&f, "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF", fault, why, n);
    const int format = ok ? format_of(&f, fault, why, n) : -1;
    if (ok) ok = format == 0 || (format > 0 && read_rows(&f, take, user, fault, why, n));
    close_file(&f);
    return ok;
}

/* ---- writing -------------------------------------------------------------------------------------------------------------- */

static bool step(const file *f, sqlite3_stmt *s, st_tuning_fault *fault, char *why, size_t n)
{
    const int code = f->q->step(s);
    f->q->reset(s);
    return code == SQLITE_DONE || say(f, "it cannot be written", code, fault, why, n);
}

static bool write_rows(const file *f, const st_tuning_row *rows, int count, st_tuning_fault *fault, char *why,
                       size_t n)
{
    sqlite3_stmt *drop = NULL, *put = NULL;
    int code = f->q->prepare_v2(f->db, "DELETE FROM tuning WHERE device = ? AND version = ? AND problem = ?",
                                -1, &drop, NULL);
    if (code == SQLITE_OK)
        code = f->q->prepare_v2(f->db,
                                "INSERT OR REPLACE INTO tuning(device, version, problem, code, us, time) "
                                "VALUES(?, ?, ?, ?, ?, strftime('%s', 'now'))",
                                -1, &put, NULL);
    bool ok = code == SQLITE_OK || say(f, "it cannot be written", code, fault, why, n);
    for (int pass = 0; pass < 2 && ok; pass++) /* all old rows go before the first new one comes */
        for (int i = 0; i < count && ok; i++) {
            sqlite3_stmt *s = pass ? put : drop;
            f->q->bind_text(s, 1, rows[i].device, -1, NULL);
            f->q->bind_text(s, 2, STRATA_VERSION_STRING, -1, NULL);
            f->q->bind_text(s, 3, rows[i].problem, -1, NULL);
            if (pass) {
                f->q->bind_text(s, 4, rows[i].t.code, -1, NULL);
                f->q->bind_double(s, 5, rows[i].t.us);
            }
            ok = step(f, s, fault, why, n);
        }
    f->q->finalize(drop);
    f->q->finalize(put);
    return ok;
}

bool st_database_write(const char *path, const st_tuning_row *rows, int count, st_tuning_fault *fault,
                       char *why, size_t n)
{
    file f;
    bool ok =
        open_file(&f, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, WAIT_TO_WRITE_MS, fault, why, n);
    if (ok) ok = run(&f, "PRAGMA trusted_schema = OFF; BEGIN IMMEDIATE", fault, why, n);
    const int format = ok ? format_of(&f, fault, why, n) : -1;
    if (ok && format == 0)
        ok = run(&f,
                 "PRAGMA user_version = 1; CREATE TABLE tuning(device TEXT NOT NULL, version TEXT NOT NULL, "
                 "problem TEXT NOT NULL, code TEXT NOT NULL, us REAL NOT NULL, time INTEGER, "
                 "PRIMARY KEY(device, version, problem, code)) WITHOUT ROWID",
                 fault, why, n);
    ok = ok && format >= 0 && write_rows(&f, rows, count, fault, why, n) && run(&f, "COMMIT", fault, why, n);
    close_file(&f); /* what was not committed is undone */
    return ok;
}
