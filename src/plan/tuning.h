/* SPDX-License-Identifier: Apache-2.0 */
/* tuning.h - the tuning database inside the layer: measured times by device, library version, problem and plan code.
 *
 * One copy in memory (the snapshot) is all that choices ask. It is read from $XDG_CACHE_HOME/strata/tuning.db at the first question, and again
 * when a search or an import stores there. No connection stays open. What goes wrong with the file is said once (strata_get_tuning_info, the trace); the
 * snapshot then lives in memory alone. */
#ifndef ST_PLAN_TUNING_H
#define ST_PLAN_TUNING_H
#include "plan/plan.h"

enum { ST_TUNING_DEVICE = 160, ST_TUNING_PROBLEM = 256, ST_TUNED_MAX = 96 };

typedef struct st_tuned {
    char code[STRATA_PLAN_CODE];
    double us;
} st_tuned;

/* The names under which a handle's measurements of a problem stand; false: the problem's engine gives it none. */
typedef struct st_tuning_key {
    char device[ST_TUNING_DEVICE], problem[ST_TUNING_PROBLEM];
} st_tuning_key;
bool st_tuning_key_of(const strata_handle *h, const st_problem *p, st_tuning_key *key);

/* What is known of the key, at most max. */
int st_tuning_find(const st_tuning_key *key, st_tuned *out, int max);
/* Replaces what is known of the key, here and in the file. */
void st_tuning_store(const st_tuning_key *key, const st_tuned *t, int n);
/* Grows with every change of the snapshot: plans in caches of another number are made again. */
unsigned st_tuning_generation(void);

/* ---- the file (database.c); text.c of tuning: exchange.c ---- */
typedef struct st_tuning_row {
    char device[ST_TUNING_DEVICE], problem[ST_TUNING_PROBLEM];
    st_tuned t;
} st_tuning_row;
typedef bool (*st_tuning_take)(void *user, const st_tuning_row *row); /* false: enough */
/* Are these words and numbers what a row may hold? `why`: static */
bool st_tuning_row_valid(const st_tuning_row *r, const char **why);
/* What is wrong with a file that cannot be used: nothing that lies in its content (a lock, a right, the disk); its bytes; what they are: a database of
 * another format or of another program. The last two are set aside. */
typedef enum st_tuning_fault { ST_TUNING_FINE, ST_TUNING_DAMAGED, ST_TUNING_FOREIGN } st_tuning_fault;
/* All rows of this library's version. False with why: the file cannot be used. No file: true. */
bool st_database_read(const char *path, st_tuning_take take, void *user, st_tuning_fault *fault, char *why,
                      size_t n);
/* Replaces the rows of every device and problem that occur in rows, in one transaction. */
bool st_database_write(const char *path, const st_tuning_row *rows, int count, st_tuning_fault *fault,
                       char *why, size_t n);

/* exchange.c: one line of an export into row; 1: a row, 0: nothing (empty, comment, another version), -1: why (static) */
int st_tuning_parse(char *line, st_tuning_row *row, const char **why);
#endif
