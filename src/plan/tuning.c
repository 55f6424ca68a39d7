/* SPDX-License-Identifier: Apache-2.0 */
/* tuning.c - the snapshot of the tuning database that choices ask, and what people see of it.
 *
 * The snapshot is a hash table of groups (device, problem), each with its measurements. One lock guards it and every use of the file, and is
 * held across a fork, so that a child finds both whole. */
#include "plan/tuning.h"
#include "runtime/folder.h"
#include "runtime/gpu.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "tuning.db"
enum { TABLE = 1024 };

typedef struct group {
    struct group *next;
    char *device, *problem;
    st_tuned *t;
    int n, room;
} group;

static struct {
    pthread_mutex_t lock;
    bool loaded;
    group *table[TABLE];
    int64_t rows, groups;
    atomic_uint generation;
    char path[1100];
    char warning[512]; /* the first thing that went wrong with the file; "": nothing */
} tuning = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void before_fork(void) { pthread_mutex_lock(&tuning.lock); }
static void after_fork(void) { pthread_mutex_unlock(&tuning.lock); }
__attribute__((constructor)) static void register_fork(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

unsigned st_tuning_generation(void) { return atomic_load_explicit(&tuning.generation, memory_order_relaxed); }

/* Said once: in the trace, and by strata_get_tuning_info. */
static void warn(const char *what, const char *why)
{
    if (tuning.warning[0]) return;
    snprintf(tuning.warning, sizeof tuning.warning, "%.200s%s%.280s", what, *what ? ": " : "", why);
    const uint64_t t0 = st_trace_begin();
    if (ST_UNLIKELY(t0)) st_trace_end(t0, "plan", "warning", "tuning database: %s", tuning.warning);
}

/* ---- groups ------------------------------------------------------------------------------------------------------------------ */

static group **slot(const char *device, const char *problem)
{
    const uint64_t hash = st_hash(problem, strlen(problem), st_hash(device, strlen(device), 7));
    group **g = &tuning.table[hash % TABLE];
    while (*g && (strcmp((*g)->problem, problem) || strcmp((*g)->device, device))) g = &(*g)->next;
    return g;
}

static group *group_of(const char *device, const char *problem)
{
    group **at = slot(device, problem);
    if (*at) return *at;
    group *g = calloc(1, sizeof *g);
    if (g) {
        g->device = strdup(device);
        g->problem = strdup(problem);
    }
    if (!g || !g->device || !g->problem) {
        if (g) free(g->device), free(g->problem);
        free(g);
        return NULL;
    }
    tuning.groups++;
    return *at = g;
}

/* A later measurement of a code replaces the earlier one; memory that is short loses the measurement. */
static void add(group *g, const st_tuned *t)
{
    for (int i = 0; i < g->n; i++)
        if (!strcmp(g->t[i].code, t->code)) {
            g->t[i].us = t->us;
            return;
        }
    if (g->n == g->room) {
        if (g->room >= ST_TUNED_MAX) return;
        const int room = g->room ? g->room * 2 : 12;
        st_tuned *more = realloc(g->t, sizeof *more * (size_t)room);
        if (!more) return;
        g->t = more;
        g->room = room;
    }
    g->t[g->n++] = *t;
    tuning.rows++;
}

static bool take(void *user, const st_tuning_row *row)
{
    (void)user;
    group *g = group_of(row->device, row->problem);
    if (g) add(g, &row->t);
    return g != NULL;
}

static void empty_group(const char *device, const char *problem)
{
    group *g = *slot(device, problem);
    if (!g) return;
    tuning.rows -= g->n;
    g->n = 0;
}

/* ---- the file -------------------------------------------------------------------------------------------------------------- */

/* Where it is, in a folder that keeps the rules; false with a warning, where that is not simply switched off */
static bool file_path(bool make)
{
    char folder[1024], why[300];
    if (!st_cache_path(folder, sizeof folder, why, sizeof why)) {
        if (!make) return false; /* nothing to read */
        warn("measurements stay in memory", why);
        return false;
    }
    snprintf(tuning.path, sizeof tuning.path, "%s/" FILE_NAME, folder);
    if (!make && access(tuning.path, F_OK))
        return errno != ENOENT && errno != ENOTDIR && st_cache_folder(folder, sizeof folder, why, sizeof why);
    if (st_cache_folder(folder, sizeof folder, why, sizeof why)) return true;
    warn("measurements stay in memory", why);
    return false;
}

static bool set_aside(st_tuning_fault fault, const char *why)
{
    const char *const end = fault == ST_TUNING_DAMAGED ? ".damaged" : ".foreign";
    char aside[1200], text[400];
    snprintf(aside, sizeof aside, "%s%s", tuning.path, end);
    const bool moved = rename(tuning.path, aside) == 0 || unlink(tuning.path) == 0;
    snprintf(aside, sizeof aside, "%s-journal", tuning.path);
    if (moved) unlink(aside);
    if (moved)
        snprintf(text, sizeof text, "%.160s; it was set aside as " FILE_NAME "%s", why, end);
    else
        snprintf(text, sizeof text, "%.160s; it cannot be set aside", why);
    warn(tuning.path, text);
    return moved;
}

static void load(void)
{
    char why[300];
    st_tuning_fault fault;
    if (tuning.loaded) return;
    tuning.loaded = true;
    if (!file_path(false)) return;
    if (st_database_read(tuning.path, take, NULL, &fault, why, sizeof why)) return;
    if (fault)
        set_aside(fault, why);
    else
        warn(tuning.path, why);
}

/* A file that became another one since it was read is set aside here, too. */
static bool write_file(const st_tuning_row *rows, int count, char *why, size_t n)
{
    st_tuning_fault fault;
    if (!file_path(true)) return snprintf(why, n, "%.290s", tuning.warning), false;
    for (int i = 0; i < 2; i++) {
        if (st_database_write(tuning.path, rows, count, &fault, why, n)) return true;
        if (!fault || i || !set_aside(fault, why)) break;
    }
    warn(tuning.path, why);
    return false;
}

/* ---- for choices and searches ------------------------------------------------------------------------------------------------- */

bool st_tuning_key_of(const strata_handle *h, const st_problem *p, st_tuning_key *key)
{
    const st_engine *e = st_plan_engine(p->op);
    if (!e || !e->key) return false;
    if (h->gpu) {
        snprintf(key->device, sizeof key->device, "%.100s, sm_%d, %d multiprocessors", h->gpu->name,
                 h->gpu->cc, h->gpu->sms);
    } else {
        char isa[64];
        const int threads = h->parallel_for ? h->parallel_threads : st_threads(h);
        snprintf(key->device, sizeof key->device, "%.63s, %.63s, %d thread%s", h->cpu->name,
                 st_isa_name(h->cpu->isa, isa, sizeof isa), threads, threads == 1 ? "" : "s");
    }
    for (char *c = key->device; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e) *c = '?';
    e->key(p, key->problem, sizeof key->problem);
    return true;
}

int st_tuning_find(const st_tuning_key *key, st_tuned *out, int max)
{
    pthread_mutex_lock(&tuning.lock);
    load();
    const group *g = *slot(key->device, key->problem);
    const int n = g ? (int)st_min64(g->n, max) : 0;
    if (n) memcpy(out, g->t, sizeof *out * (size_t)n);
    pthread_mutex_unlock(&tuning.lock);
    return n;
}

void st_tuning_store(const st_tuning_key *key, const st_tuned *t, int n)
{
    char why[300];
    pthread_mutex_lock(&tuning.lock);
    load();
    empty_group(key->device, key->problem);
    group *g = group_of(key->device, key->problem);
    st_tuning_row *rows = calloc((size_t)n + 1, sizeof *rows);
    for (int i = 0; i < n; i++) {
        if (g) add(g, &t[i]);
        if (!rows) continue;
        memcpy(rows[i].device, key->device, sizeof rows[i].device);
        memcpy(rows[i].problem, key->problem, sizeof rows[i].problem);
        rows[i].t = t[i];
    }
    if (rows) write_file(rows, n, why, sizeof why);
    free(rows);
    atomic_fetch_add(&tuning.generation, 1);
    pthread_mutex_unlock(&tuning.lock);
}

/* ---- for people ------------------------------------------------------------------------------------------------------------- */

strata_status strata_get_tuning_info(strata_tuning_info *info)
{
    if (!info)
        return st_fail(st_err_thread(), STRATA_ERROR_ARGUMENT, "strata_get_tuning_info: the address is NULL");
    memset(info, 0, sizeof *info);
    pthread_mutex_lock(&tuning.lock);
    load();
    char folder[1024], why[300];
    if (!st_cache_path(folder, sizeof folder, why, sizeof why))
        snprintf(info->path, sizeof info->path, "memory only: %.200s", why);
    else
        snprintf(info->path, sizeof info->path, "%.240s/" FILE_NAME, folder);
    if (!st_cache_usable(why, sizeof why)) warn("measurements stay in memory", why);
    for (int i = 0; i < TABLE; i++)
        for (const group *g = tuning.table[i]; g; g = g->next) info->problems += g->n > 0;
    info->measurements = tuning.rows;
    snprintf(info->warning, sizeof info->warning, "%s", tuning.warning);
    pthread_mutex_unlock(&tuning.lock);
    return STRATA_OK;
}

static int by_key(const void *a, const void *b)
{
    const group *x = *(const group *const *)a, *y = *(const group *const *)b;
    const int d = strcmp(x->device, y->device);
    return d ? d : strcmp(x->problem, y->problem);
}

static bool print_all(FILE *f)
{
    group **all = calloc((size_t)tuning.groups + 1, sizeof *all);
    int64_t n = 0;
    if (!all) return false;
    for (int i = 0; i < TABLE; i++)
        for (group *g = tuning.table[i]; g; g = g->next) all[n++] = g;
    qsort(all, (size_t)n, sizeof *all, by_key);
    fprintf(f, "# strata tuning 1: device, version, problem, plan code, microseconds\n");
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < all[i]->n; k++) {
            const long long ns = (long long)(all[i]->t[k].us * 1000 + 0.5);
            fprintf(f, "%s\t" STRATA_VERSION_STRING "\t%s\t%s\t%lld.%03lld\n", all[i]->device,
                    all[i]->problem, all[i]->t[k].code, ns / 1000, ns % 1000 ? ns % 1000 : ns < 1000);
        }
    free(all);
    return true;
}

strata_status strata_tuning_export(const char *path)
{
    st_err *e = st_err_thread();
    if (!path) return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_tuning_export: the path is NULL");
    FILE *f = fopen(path, "w");
    if (!f)
        return st_fail(e, STRATA_ERROR_IO, "strata_tuning_export: %s cannot be written: %s", ST_SHORT(path),
                       strerror(errno));
    pthread_mutex_lock(&tuning.lock);
    load();
    bool ok = print_all(f);
    pthread_mutex_unlock(&tuning.lock);
    ok = !ferror(f) && ok;
    const bool closed = fclose(f) == 0;
    if (ok && closed) return STRATA_OK;
    return st_fail(e, STRATA_ERROR_IO, "strata_tuning_export: %s is not whole: %s", ST_SHORT(path),
                   strerror(errno));
}

typedef struct imported {
    st_tuning_row *row;
    int n, room;
} imported;

static strata_status read_lines(FILE *f, const char *path, imported *in)
{
    st_err *e = st_err_thread();
    char line[1024];
    const char *why;
    for (int64_t number = 1; fgets(line, sizeof line, f); number++) {
        if (in->n == in->room) {
            const int room = in->room ? in->room * 2 : 64;
            st_tuning_row *more = room > (1 << 20) ? NULL : realloc(in->row, sizeof *more * (size_t)room);
            if (!more)
                return st_fail(e, STRATA_ERROR_MEMORY, "strata_tuning_import: no memory for the lines of %s",
                               ST_SHORT(path));
            in->row = more;
            in->room = room;
        }
        const int is = st_tuning_parse(line, &in->row[in->n], &why);
        if (is < 0)
            return st_fail(e, STRATA_ERROR_IO,
                           "strata_tuning_import: %s, line %lld: %s; nothing was imported", ST_SHORT(path),
                           (long long)number, why);
        in->n += is;
    }
    if (ferror(f))
        return st_fail(e, STRATA_ERROR_IO, "strata_tuning_import: %s cannot be read: %s", ST_SHORT(path),
                       strerror(errno));
    return STRATA_OK;
}

strata_status strata_tuning_import(const char *path, int64_t *measurements)
{
    st_err *e = st_err_thread();
    imported in = {0};
    char why[300];
    if (measurements) *measurements = 0;
    if (!path) return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_tuning_import: the path is NULL");
    FILE *f = fopen(path, "r");
    if (!f)
        return st_fail(e, STRATA_ERROR_IO, "strata_tuning_import: %s cannot be read: %s", ST_SHORT(path),
                       strerror(errno));
    strata_status s = read_lines(f, path, &in);
    fclose(f);
    if (!s && in.n) {
        pthread_mutex_lock(&tuning.lock);
        load();
        for (int i = 0; i < in.n; i++) empty_group(in.row[i].device, in.row[i].problem);
        for (int i = 0; i < in.n; i++) take(NULL, &in.row[i]);
        write_file(in.row, in.n, why, sizeof why);
        atomic_fetch_add(&tuning.generation, 1);
        pthread_mutex_unlock(&tuning.lock);
    }
    if (!s && measurements) *measurements = in.n;
    free(in.row);
    return s;
}
