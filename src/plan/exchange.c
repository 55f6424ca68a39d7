/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - the tuning database as text: one line a measurement, fields parted by tabs.
 *
 *     device<TAB>version<TAB>problem<TAB>plan code<TAB>microseconds
 *
 * Lines that begin with # say something to people. */
#include "plan/tuning.h"
#include <string.h>

/* "12.345" whatever the locale; -1: something else */
static double number(const char *p)
{
    double v = 0, unit = 1;
    bool digits = false, point = false;
    for (; *p; p++) {
        if (*p == '.' && !point) {
            point = true;
        } else if (*p >= '0' && *p <= '9' && v < 1e15) {
            v = v * 10 + (*p - '0');
            digits = true;
            if (point) unit *= 10;
        } else
            return -1;
    }
    return digits ? v / unit : -1;
}

int st_tuning_parse(char *line, st_tuning_row *row, const char **why)
{
    static const char *const missing =
        "it has not five fields parted by tabs: device, version, problem, code, microseconds";
    char *field[5], *p = line;
    memset(row, 0, sizeof *row);
    line[strcspn(line, "\r\n")] = 0;
    if (!*line || *line == '#') return 0;
    *why = missing;
    for (int i = 0; i < 5; i++) {
        field[i] = p;
        char *tab = strchr(p, '\t');
        if ((tab != NULL) != (i < 4)) return -1;
        if (tab) *tab = 0, p = tab + 1;
    }
    if (strlen(field[0]) >= sizeof row->device || strlen(field[2]) >= sizeof row->problem ||
        strlen(field[3]) >= sizeof row->t.code) {
        *why = "a field is longer than any of ours";
        return -1;
    }
    strcpy(row->device, field[0]);
    strcpy(row->problem, field[2]);
    strcpy(row->t.code, field[3]);
    row->t.us = number(field[4]);
    if (!st_tuning_row_valid(row, why)) return -1;
    return strcmp(field[1], STRATA_VERSION_STRING) ? 0 : 1;
}
