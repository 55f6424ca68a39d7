/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c - the embedded tables, parsed once for each st_facts (about a millisecond for all of them). */
#include "facts/facts.h"
#include "facts/embedded.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_TABLES = 32 };
struct st_facts {
    int n;
    const char *name[MAX_TABLES];
    st_table table[MAX_TABLES];
};
static const st_table no_table;

st_facts *st_facts_open(void)
{
    st_facts *f = calloc(1, sizeof *f);
    for (const st_embedded *e = st_facts_embedded; f && e->name && f->n < MAX_TABLES; e++) {
        if (!st_table_parse(&f->table[f->n], e->text, e->size)) {
            st_facts_close(f);
            return NULL;
        }
        f->name[f->n++] = e->name;
    }
    return f;
}

void st_facts_close(st_facts *f)
{
    if (!f) return;
    for (int i = 0; i < f->n; i++) st_table_free(&f->table[i]);
    free(f);
}

const st_table *st_facts_table(const st_facts *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->name[i], name) == 0) return &f->table[i];
    return &no_table;
}
