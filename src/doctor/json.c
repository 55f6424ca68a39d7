/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - see json.h. */
#include "doctor/json.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int st_utf8_length(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    if (p[0] < 0x80) return 1;
    int n = p[0] >= 0xf0 && p[0] < 0xf5   ? 4
            : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
            : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                                          : 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0))) return 0;
    if (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))) return 0;
    return n;
}

static void quoted(FILE *f, const char *s, size_t n)
{
    fputc('"', f);
    for (const char *end = s + n; s < end;) {
        unsigned char c = (unsigned char)*s;
        int k = st_utf8_length(s);
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", f);
        else if (c < 32 || c == 127)
            fprintf(f, "\\u%04x", c);
        else if (k == 0 || k > end - s)
            fputs("\\ufffd", f), k = 1;
        else
            fwrite(s, 1, (size_t)k, f);
        s += k;
    }
    fputc('"', f);
}

static void lead(st_json *j, const char *key)
{
    if (j->depth && j->line) {
        if (j->some[j->depth]) fputs(", ", j->f);
        j->some[j->depth] = true;
    } else if (j->depth) {
        fputs(j->some[j->depth] ? ",\n" : "\n", j->f);
        j->some[j->depth] = true;
        for (int i = 0; i < j->depth; i++) fputs("  ", j->f);
    }
    if (key) {
        quoted(j->f, key, strlen(key));
        fputs(": ", j->f);
    }
}

void st_json_open(st_json *j, const char *key, char bracket)
{
    lead(j, key);
    fputc(bracket, j->f);
    if (j->depth < 15) j->depth++;
    j->some[j->depth] = false;
}

void st_json_close(st_json *j, char bracket)
{
    bool some = j->some[j->depth];
    if (j->depth) j->depth--;
    if (some && !j->line) {
        fputc('\n', j->f);
        for (int i = 0; i < j->depth; i++) fputs("  ", j->f);
    }
    fputc(bracket, j->f);
    if (j->depth == 0) fputc('\n', j->f);
}

void st_json_string(st_json *j, const char *key, const char *value)
{
    lead(j, key);
    if (value)
        quoted(j->f, value, strlen(value));
    else
        fputs("null", j->f);
}

void st_json_integer(st_json *j, const char *key, int64_t value)
{
    lead(j, key);
    fprintf(j->f, "%lld", (long long)value);
}

void st_json_number(st_json *j, const char *key, double value)
{
    lead(j, key);
    if (isfinite(value))
        fprintf(j->f, "%.6g", value);
    else
        fputs("null", j->f);
}

void st_json_bool(st_json *j, const char *key, bool value)
{
    lead(j, key);
    fputs(value ? "true" : "false", j->f);
}

void st_json_parts(st_json *j, const char *key, const char *value, const char *separator)
{
    st_json_open(j, key, '[');
    while (*value) {
        const char *stop = strstr(value, separator);
        size_t n = stop ? (size_t)(stop - value) : strlen(value);
        lead(j, NULL);
        quoted(j->f, value, n);
        value += n;
        if (stop) value += strlen(separator);
    }
    st_json_close(j, ']');
}

/* ---- reading one flat line ---------------------------------------------------------------------------------------------- */
/* a string at p (behind its first quote) into out, cut at n; the place behind its last quote, NULL when it does not end */
static const char *read_string(const char *p, char *out, size_t n)
{
    size_t k = 0;
    for (; *p && *p != '"'; p++) {
        char c = *p;
        if (c == '\\') {
            c = *++p;
            if (!c) return NULL;
            if (c == 'n') c = '\n';
            if (c == 't') c = '\t';
            if (c == 'u') {
                char hex[5] = "";
                for (int i = 0; i < 4 && isxdigit((unsigned char)p[1]); i++) hex[i] = *++p;
                long v = strtol(hex, NULL, 16);
                c = v > 0 && v < 127 ? (char)v : '?';
            }
        }
        if (out && k + 1 < n) out[k++] = c;
    }
    if (out && n) out[k] = 0;
    return *p ? p + 1 : NULL;
}

bool st_json_get(const char *line, const char *key, char *out, size_t n)
{
    char name[64];
    const char *p = line + strspn(line, " \t");
    if (n) out[0] = 0;
    if (*p++ != '{') return false;
    for (;;) {
        p += strspn(p, " ,\t");
        if (*p++ != '"' || !(p = read_string(p, name, sizeof name))) return false;
        p += strspn(p, " :\t");
        bool wanted = strcmp(name, key) == 0;
        if (*p == '"') {
            p = read_string(p + 1, wanted ? out : NULL, n);
            if (!p) return false;
        } else {
            size_t k = strcspn(p, ",} \t\r\n");
            if (*p == '{' || *p == '[' || k == 0) return false;
            if (wanted) {
                if (k >= n) k = n ? n - 1 : 0;
                memcpy(out, p, k);
                if (n) out[k] = 0;
                return n > 0;
            }
            p += k;
        }
        if (wanted) return true;
    }
}
