/* SPDX-License-Identifier: Apache-2.0 */
/* facts.h - the knowledge base: tables, the matcher that finds known errors in text, Xid lines, versions that fit together.
 *
 * Nothing here keeps state outside the objects that it hands out; an open st_facts is read-only and may be shared by threads. */
#ifndef ST_FACTS_FACTS_H
#define ST_FACTS_FACTS_H
#include "base/base.h"

/* ---- tables: tab-separated text, first row names the columns --------------------------------------------------------- */
typedef struct st_table {
    char *text;        /* our copy, cells ended by NUL */
    const char **cell; /* (rows + 1) * columns, row -1 of the reader is the header */
    int rows, columns;
} st_table;
enum { ST_TABLE_MAX_COLUMNS = 64 };

/* False when out of memory or without a header. A short row is filled with "", a long one cut; NUL bytes become spaces. */
bool st_table_parse(st_table *t, const char *text, size_t n);
void st_table_free(st_table *t);
int st_table_column(const st_table *t, const char *name);        /* -1: none */
const char *st_table_at(const st_table *t, int row, int column); /* "" outside the table */
const char *st_table_get(const st_table *t, int row, const char *column);
int st_table_find(const st_table *t, const char *column,
                  const char *value); /* first row with that cell, or -1 */

typedef struct st_facts st_facts;
st_facts *st_facts_open(void); /* NULL: out of memory */
void st_facts_close(st_facts *f);
const st_table *st_facts_table(const st_facts *f,
                               const char *name); /* an empty table when there is none of that name */

/* ---- patterns -------------------------------------------------------------------------------------------------------- */
/* The fixed strings of which at least one occurs in every match of a POSIX extended pattern, longest choice first.
 * exact: a text matches if and only if it contains one of them. n = 0: no such set (within the limits). */
enum { ST_LITERALS = 64, ST_LITERAL_SIZE = 96 };
typedef struct st_literals {
    int n;
    bool exact;
    char s[ST_LITERALS][ST_LITERAL_SIZE];
} st_literals;
void st_literals_of(const char *pattern, st_literals *out);

/* ---- the matcher: known errors in a stream of text ------------------------------------------------------------------- */
enum st_hit_kind { ST_HIT_ERROR, ST_HIT_XID, ST_HIT_ADVICE };
typedef struct st_xid {
    int number, caused_by; /* caused_by 0: not said */
    long pid;              /* -1: not said */
    char device[24];       /* "0000:41:00"; "" when the line names none */
    char instance[32];     /* "GPU-I:05 GPU-CI:00" */
    char name[64], message[160];
} st_xid;
typedef struct st_hit {
    enum st_hit_kind kind;
    int row; /* of the table errors, xid (-1: a number that it does not know) or common_advice */
    int64_t count, first_line, last_line; /* lines count from 1 */
    char text[320];                       /* the first such line, cleaned of control characters */
    st_xid xid;                           /* the first line's; kind XID only: one hit a number and device */
} st_hit;

typedef struct st_matcher st_matcher;
st_matcher *st_matcher_open(const st_facts *f); /* f must outlive it; NULL: out of memory */
void st_matcher_close(st_matcher *m);
/* Any bytes; lines may be split between calls. */
void st_matcher_feed(st_matcher *m, const void *text, size_t n);
/* Reads a descriptor to its end; 0, or the errno of the failing read. */
int st_matcher_read(st_matcher *m, int fd);
void st_matcher_finish(
    st_matcher *m); /* the last line may lack its newline; hits are complete and sorted by first line */
int st_matcher_count(const st_matcher *m);
const st_hit *st_matcher_hit(const st_matcher *m, int i);
int64_t st_matcher_lines(const st_matcher *m);
int64_t st_matcher_bytes(const st_matcher *m);
/* Rows whose pattern has no usable literal or does not compile (a fault of the table; a test demands 0). */
int st_matcher_refused(const st_matcher *m);

/* ---- Xid -------------------------------------------------------------------------------------------------------------- */
/* A kernel line of any driver generation ("NVRM: Xid (PCI:0000:41:00): 79, pid=..., GPU has fallen off the bus."), or the
 * bare form "Xid 79" / "Xid: 79" / "XID=79". */
bool st_xid_parse(const char *line, size_t n, st_xid *x);
bool st_xid_next(const char **p, const char *end,
                 st_xid *x); /* the next one at or after *p, which moves behind it */
/* Which side is at fault as a rule: the table's cause_class ("application", "driver", "hardware", "bus", "power", "info"). */
const char *st_xid_class(const st_facts *f, int number);

/* ---- versions ---------------------------------------------------------------------------------------------------------- */
int st_version_cmp(const char *a,
                   const char *b); /* by numbers: "12.10" > "12.9"; what is missing counts as 0 */
/* The newest CUDA of a driver by its branch ("580.95.05" -> "13.0"); a branch that the table lacks takes the next lower one and
 * sets *exact to false. NULL: older than all. */
const char *st_driver_cuda(const st_facts *f, const char *driver, bool *exact);
/* The oldest driver for programs built with CUDA x.y, given minor-version compatibility; NULL: unknown toolkit. */
const char *st_cuda_min_driver(const st_facts *f, const char *cuda, bool windows);

typedef struct st_gpu {
    const char *name, *chip, *arch, *segment; /* never NULL */
    int cc;                                   /* 75 for 7.5; 0: unknown */
    const char *last_branch;                  /* "580", "current" or "" */
    const char *first_toolkit, *last_toolkit; /* "10.0", "current" or "" */
    const char *open_module;                  /* "yes", "no", "" */
} st_gpu;
bool st_gpu_by_id(const st_facts *f, unsigned device, st_gpu *g);
/* "rtx 2080 ti", "H100", "GeForce GTX 1080": the row whose words hold all the given ones and the fewest others. */
bool st_gpu_by_name(const st_facts *f, const char *name, st_gpu *g);
bool st_gpu_by_cc(const st_facts *f, int cc, st_gpu *g);
int st_cc_of(const char *text); /* "7.5", "sm_75", "75" -> 75; 0: not one */
/* Code for the architectures in a list ("70 75 80 +PTX") runs on cc: 1 native, 2 by JIT from PTX, 0 no, -1 the list is empty. */
int st_cc_in_list(const char *list, int cc);

#endif
