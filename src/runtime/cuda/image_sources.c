/* SPDX-License-Identifier: Apache-2.0 */
/* image_sources.c - the embedded kernel sources, and keys of specifications.
 *
 * The key covers the headers that a source reaches: every `#include "x.cuh"` line in its text, also one under an #if that is false,
 * followed into the headers. A kernel's key therefore stays what it was when another family's header changes, and a kernel pack or cache
 * keeps serving it. */
#include "runtime/cuda/image.h"
#include <string.h>

const st_gpu_source *st_gpu_sources(int *count)
{
    int n = 0;
    while (st_gpu_source_rows[n].name) n++;
    *count = n;
    return st_gpu_source_rows;
}

static int row_of(const char *name, size_t length)
{
    for (int i = 0; st_gpu_source_rows[i].name; i++)
        if (strlen(st_gpu_source_rows[i].name) == length &&
            memcmp(st_gpu_source_rows[i].name, name, length) == 0)
            return i;
    return -1;
}

const st_gpu_source *st_gpu_source_find(const char *name)
{
    int i = row_of(name, strlen(name));
    return i < 0 ? NULL : &st_gpu_source_rows[i];
}

enum { MAX_ROWS = 512 };

/* Marks the rows that `text` includes, and theirs. Depth is bounded by the number of rows: each is followed once. */
static void reach(const char *text, bool *seen)
{
    for (const char *p = text; (p = strstr(p, "#include")) != NULL;) {
        p += strlen("#include");
        while (*p == ' ' || *p == '\t') p++;
        if (*p != '"') continue;
        size_t n = strcspn(++p, "\"\n");
        int i = p[n] == '"' ? row_of(p, n) : -1;
        if (i < 0 || i >= MAX_ROWS || seen[i]) continue;
        seen[i] = true;
        reach(st_gpu_source_rows[i].text, seen);
    }
}

static void mix(st_image_key *k, const char *text, size_t n)
{
    k->word[0] = st_hash(text, n, k->word[0]);
    k->word[1] = st_hash(text, n, k->word[1] + 0x5bd1e995u);
}

bool st_image_key_of(st_err *e, const st_gpu_spec *s, const char *arch, st_image_key *key)
{
    int self = row_of(s->source, strlen(s->source));
    if (self < 0)
        return st_fail(e, STRATA_ERROR_INTERNAL, "%s: the library holds no kernel source %s", s->id,
                       s->source),
               false;
    bool seen[MAX_ROWS] = {false};
    reach(st_gpu_source_rows[self].text, seen);
    if (s->generated) reach(s->generated, seen);
    *key = (st_image_key){{ST_IMAGE_RECIPE, 0x9e3779b97f4a7c15u}};
    mix(key, st_gpu_source_rows[self].text, st_gpu_source_rows[self].bytes);
    for (int i = 0; i < MAX_ROWS && st_gpu_source_rows[i].name; i++)
        if (seen[i]) {
            mix(key, st_gpu_source_rows[i].name, strlen(st_gpu_source_rows[i].name));
            mix(key, st_gpu_source_rows[i].text, st_gpu_source_rows[i].bytes);
        }
    for (int i = 0; i < ST_GPU_OPTIONS && s->option[i]; i++) mix(key, s->option[i], strlen(s->option[i]) + 1);
    mix(key, s->generated ? s->generated : "", s->generated ? strlen(s->generated) : 0);
    mix(key, s->entry, strlen(s->entry));
    mix(key, arch, strlen(arch));
    return true;
}
