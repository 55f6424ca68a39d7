/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_plan.c - what the plan layer reads that others may have written: plan codes, lines of an export, the database's file.
 *
 * The first byte says which. Whatever is accepted must be written back as the same thing. */
#include "fuzz.h"
#include "plan/tuning.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool check_row(void *user, const st_tuning_row *row)
{
    const char *why;
    int *rows = user;
    FUZZ_CHECK(st_tuning_row_valid(row, &why));
    return ++*rows < 1000;
}

static void text(const uint8_t *data, size_t n)
{
    char *line = malloc(n + 1);
    st_tuning_row row;
    st_code code;
    const char *why = NULL;
    memcpy(line, data, n);
    line[n] = 0;
    if (st_code_read(line, &code, &why)) {
        FUZZ_CHECK(strlen(line) < STRATA_PLAN_CODE);
        for (int i = 0; i < ST_COUNT(code.arg); i++) FUZZ_CHECK(code.arg[i] >= 0);
    } else
        FUZZ_CHECK(why && *why);
    why = NULL;
    const int is = st_tuning_parse(line, &row, &why);
    FUZZ_CHECK(is >= -1 && is <= 1 && (is >= 0 || (why && *why)));
    if (is == 1) FUZZ_CHECK(st_tuning_row_valid(&row, &why));
    free(line);
}

static void database(const uint8_t *data, size_t n)
{
    char path[64], why[300];
    st_tuning_fault fault;
    int rows = 0;
    snprintf(path, sizeof path, "/tmp/strata-fuzz-%ld.db", (long)getpid());
    FILE *f = fopen(path, "wb");
    if (!f) return;
    fwrite(data, 1, n, f);
    fclose(f);
    st_database_read(path, check_row, &rows, &fault, why, sizeof why);
    st_tuning_row row = {"device", "problem", {"", 1}};
    const st_candidate c = {.kernel = "k", .order = "o"};
    st_code_write(&c, row.t.code);
    st_database_write(path, &row, 1, &fault, why, sizeof why);
    unlink(path);
    char journal[80];
    snprintf(journal, sizeof journal, "%s-journal", path);
    unlink(journal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    if (data[0] == 'S') /* as SQLite's files begin */
        database(data, n);
    else
        text(data, n);
    return 0;
}
