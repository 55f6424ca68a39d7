/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - tab-separated text into cells. Accepts any bytes: a damaged table gives odd cells, never a fault. */
#include "facts/facts.h"
#include <stdlib.h>
#include <string.h>

static int count_columns(const char *p, const char *end)
{
    int n = 1;
    for (; p < end && *p != '\n'; p++) n += *p == '\t';
    return n > ST_TABLE_MAX_COLUMNS ? ST_TABLE_MAX_COLUMNS : n;
}

bool st_table_parse(st_table *t, const char *text, size_t n)
{
    memset(t, 0, sizeof *t);
    if (n == 0 || n > (size_t)1 << 28) return false;
    size_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    t->columns = count_columns(text, text + n);
    t->text = malloc(n + 1);
    t->cell = calloc((lines + 2) * (size_t)t->columns, sizeof *t->cell);
    if (!t->text || !t->cell) {
        st_table_free(t);
        return false;
    }
    memcpy(t->text, text, n);
    t->text[n] = 0;
    int row = -1;
    for (char *p = t->text, *end = t->text + n; p < end;) {
        char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop) stop = end;
        for (char *q = p; q < stop; q++)
            if (*q == 0) *q = ' ';
        if (stop > p && stop[-1] == '\r') stop[-1] = 0;
        *stop = 0;
        if (*p && !(p[0] == '#' && row >= 0)) {
            const char **cell = t->cell + (size_t)(row + 1) * (size_t)t->columns;
            char *field = p;
            for (int c = 0; c < t->columns; c++) {
                cell[c] = field ? field : "";
                char *tab = field ? strchr(field, '\t') : NULL;
                if (tab) *tab = 0;
                field = tab ? tab + 1 : NULL;
            }
            row++;
        }
        p = stop + 1;
    }
    t->rows = row < 0 ? 0 : row;
    if (row < 0) st_table_free(t);
    return row >= 0;
}

void st_table_free(st_table *t)
{
    free(t->text);
    free(t->cell);
    memset(t, 0, sizeof *t);
}

int st_table_column(const st_table *t, const char *name)
{
    for (int c = 0; c < t->columns; c++)
        if (strcmp(t->cell[c], name) == 0) return c;
    return -1;
}

const char *st_table_at(const st_table *t, int row, int column)
{
    if (row < 0 || row >= t->rows || column < 0 || column >= t->columns) return "";
    return t->cell[((size_t)row + 1) * (size_t)t->columns + (size_t)column];
}

const char *st_table_get(const st_table *t, int row, const char *column)
{
    return st_table_at(t, row, st_table_column(t, column));
}

int st_table_find(const st_table *t, const char *column, const char *value)
{
    int c = st_table_column(t, column);
    for (int i = 0; c >= 0 && i < t->rows; i++)
        if (strcmp(st_table_at(t, i, c), value) == 0) return i;
    return -1;
}
