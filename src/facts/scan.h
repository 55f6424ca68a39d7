/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - many fixed strings in one pass. */
#ifndef ST_FACTS_SCAN_H
#define ST_FACTS_SCAN_H
#include "base/base.h"

enum { ST_SCAN_MIN = 4 }; /* shortest string that it takes */
typedef struct st_scan st_scan;
/* Strings of ST_SCAN_MIN bytes and more, not empty of count; copies them. NULL: out of memory or a string too short. */
st_scan *st_scan_new(const char *const *s, int n);
void st_scan_free(st_scan *x);
/* Walks over every occurrence in [begin, end), in order of a point inside each (so nearly in order of place). Start with
 * {begin, 0}; false at the end. *id is the index of the string, *place where it begins. */
typedef struct st_scan_cursor {
    const char *q;
    int entry;
} st_scan_cursor;
bool st_scan_next(const st_scan *x, const char *begin, const char *end, st_scan_cursor *c, int *id,
                  const char **place);

#endif
