/* SPDX-License-Identifier: Apache-2.0 */
/* image_sources.c - the embedded kernel sources, and keys of specifications.
 *
 * The key covers the headers that a source reaches: every `#include "x.cuh"` line in its text, indented or not, also one under an #if that is false,
 * followed into the headers. A kernel's key therefore stays what it was when another family's header changes, and a kernel pack or cache
 * keeps serving it. */
#include "runtime/cuda/image.h"
#include <stdatomic.h>
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

/* What stands between the quotes of the next #include "..." at or behind p; NULL: there is none. */
static const char *next_include(const char *text, const char *p, size_t *length)
{
    while ((p = strstr(p, "include")) != NULL) {
        const char *hash = p;
        p += strlen("include");
        while (hash > text && (hash[-1] == ' ' || hash[-1] == '\t')) hash--;
        if (hash == text || hash[-1] != '#') continue;
        while (*p == ' ' || *p == '\t') p++;
        if (*p != '"') continue;
        *length = strcspn(++p, "\"\n");
        if (p[*length] == '"') return p;
    }
    return NULL;
}

/* Marks the rows that `text` includes, and theirs. Depth is bounded by the number of rows: each is followed once. */
static void reach(const char *text, bool *seen)
{
    size_t n;
    for (const char *p = text; (p = next_include(text, p, &n)) != NULL; p += n) {
        const int i = row_of(p, n);
        if (i < 0 || i >= MAX_ROWS || seen[i]) continue;
        seen[i] = true;
        reach(st_gpu_source_rows[i].text, seen);
    }
}

bool st_image_reaches(const char *source, const char *header)
{
    bool seen[MAX_ROWS] = {false};
    const st_gpu_source *self = st_gpu_source_find(source);
    const int at = row_of(header, strlen(header));
    if (!self || at < 0) return false;
    reach(self->text, seen);
    return seen[at];
}

static void mix(st_image_key *k, const char *text, size_t n)
{
    k->word[0] = st_hash(text, n, k->word[0]);
    k->word[1] = st_hash(text, n, k->word[1] + 0x5bd1e995u);
}

/* The texts of a source and of all that it and `generated` reach. */
static st_image_key key_of_texts(int self, const char *generated)
{
    bool seen[MAX_ROWS] = {false};
    st_image_key key = {{ST_IMAGE_RECIPE, 0x9e3779b97f4a7c15u}};
    reach(st_gpu_source_rows[self].text, seen);
    if (generated) reach(generated, seen);
    mix(&key, st_gpu_source_rows[self].text, st_gpu_source_rows[self].bytes);
    for (int i = 0; i < MAX_ROWS && st_gpu_source_rows[i].name; i++)
        if (seen[i]) {
            mix(&key, st_gpu_source_rows[i].name, strlen(st_gpu_source_rows[i].name));
            mix(&key, st_gpu_source_rows[i].text, st_gpu_source_rows[i].bytes);
        }
    return key;
}

/* The same where nothing generated has includes of its own: worked out once a source, since some engines ask for a kernel at each run. */
static st_image_key key_of_source(int self)
{
    static struct {
        atomic_bool known;
        _Atomic uint64_t word[2];
    } memo[MAX_ROWS];
    st_image_key key;
    if (self >= MAX_ROWS) return key_of_texts(self, NULL);
    if (atomic_load_explicit(&memo[self].known, memory_order_acquire)) {
        for (int i = 0; i < 2; i++)
            key.word[i] = atomic_load_explicit(&memo[self].word[i], memory_order_relaxed);
        return key;
    }
    key = key_of_texts(self, NULL);
    for (int i = 0; i < 2; i++) atomic_store_explicit(&memo[self].word[i], key.word[i], memory_order_relaxed);
    atomic_store_explicit(&memo[self].known, true, memory_order_release);
    return key;
}

bool st_image_key_of(st_err *e, const st_gpu_spec *s, const char *arch, st_image_key *key)
{
    size_t n;
    const int self = row_of(s->source, strlen(s->source));
    if (self < 0)
        return st_fail(e, STRATA_ERROR_INTERNAL, "%s: the library holds no kernel source %s", s->id,
                       s->source),
               false;
    *key = s->generated && next_include(s->generated, s->generated, &n) ? key_of_texts(self, s->generated)
                                                                        : key_of_source(self);
    for (int i = 0; i < ST_GPU_OPTIONS && s->option[i]; i++) mix(key, s->option[i], strlen(s->option[i]) + 1);
    mix(key, s->generated ? s->generated : "", s->generated ? strlen(s->generated) : 0);
    mix(key, s->entry, strlen(s->entry));
    mix(key, arch, strlen(arch));
    return true;
}
