/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - writes JSON; commas, indents and escapes are taken care of. Bytes that are not UTF-8 become U+FFFD. */
#ifndef ST_DOCTOR_JSON_H
#define ST_DOCTOR_JSON_H
#include "base/base.h"
#include <stdio.h>

typedef struct st_json {
    FILE *f;
    bool line; /* everything in one line */
    int depth;
    bool some[16];
} st_json;
void st_json_open(st_json *j, const char *key,
                  char bracket); /* '{' or '['; key NULL inside an array and at the top */
void st_json_close(st_json *j, char bracket);
void st_json_string(st_json *j, const char *key, const char *value); /* NULL: null */
void st_json_integer(st_json *j, const char *key, int64_t value);
void st_json_number(st_json *j, const char *key, double value); /* not finite: null */
void st_json_bool(st_json *j, const char *key, bool value);
/* "a | b | c" as an array of strings */
void st_json_parts(st_json *j, const char *key, const char *value, const char *separator);
/* Reads a flat object of one line, such as the writer above makes: the value of a key, strings unescaped, numbers and words as they stand.
 * False when the line is no such object or lacks the key. Any bytes may be given. */
bool st_json_get(const char *line, const char *key, char *out, size_t n);
/* Bytes of a valid UTF-8 sequence at s (1 for ASCII), 0 when it is none. */
int st_utf8_length(const char *s);

#endif
