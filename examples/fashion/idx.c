/* SPDX-License-Identifier: Apache-2.0 */
/* idx.c - a file is accepted only when its length is exactly what its header promises and the gzip checksum agrees;
 * nothing is allocated for a header that is out of bounds. */
#include "idx.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PATH_BYTES = 4096, MOST = 1000000 /* items; Fashion-MNIST has 60000 */ };

typedef struct source {
    char path[PATH_BYTES];
    gzFile file;
    char *why;
    size_t n;
} source;

static idx_result __attribute__((format(printf, 2, 3))) bad(source *s, const char *fmt, ...)
{
    int used = snprintf(s->why, s->n, "%s: ", s->path);
    if (used > 0 && (size_t)used < s->n) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(s->why + used, s->n - (size_t)used, fmt, ap);
        va_end(ap);
    }
    return IDX_BAD;
}

/* What zlib says about the file, in words. */
static idx_result bad_stream(source *s, const char *part, size_t got, size_t want)
{
    int code = Z_OK;
    const char *text = gzerror(s->file, &code);
    if (code == Z_ERRNO) return bad(s, "cannot be read: %s", strerror(errno));
    if (code == Z_DATA_ERROR || code == Z_STREAM_ERROR)
        return bad(s, "the compressed data is damaged after %zu of %zu bytes of %s (%s)", got, want, part,
                   text);
    if (code == Z_MEM_ERROR) return bad(s, "no memory to decompress it");
    return bad(s, "is cut off: %s should hold %zu bytes, %zu are there", part, want, got);
}

static idx_result take(source *s, void *to, size_t bytes, const char *part)
{
    size_t got = 0;
    while (got < bytes) {
        size_t left = bytes - got;
        errno = 0;
        int r = gzread(s->file, (char *)to + got, left < 1u << 20 ? (unsigned)left : 1u << 20);
        if (r <= 0) return bad_stream(s, part, got, bytes);
        got += (size_t)r;
    }
    return IDX_OK;
}

static idx_result open_source(source *s, const char *folder, const char *name)
{
    const char *end[] = {".gz", ""};
    for (int i = 0; i < 2; i++) {
        if (snprintf(s->path, sizeof s->path, "%s/%s%s", folder, name, end[i]) >= (int)sizeof s->path)
            return bad(s, "the path is too long");
        if (access(s->path, F_OK)) continue;
        s->file = gzopen(s->path, "rb");
        if (!s->file) return bad(s, "cannot be opened: %s", errno ? strerror(errno) : "no memory");
        gzbuffer(s->file, 1u << 17);
        return IDX_OK;
    }
    bad(s, "there is no such file (nor one that ends in .gz)");
    return IDX_ABSENT;
}

static uint32_t word(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Opens the file and checks the header: `dims` words after the magic number. */
static idx_result open_idx(source *s, const char *folder, const char *name, int dims, uint32_t *dim)
{
    uint8_t head[16] = {0};
    idx_result r = open_source(s, folder, name);
    if (r == IDX_OK) r = take(s, head, 4 + 4 * (size_t)dims, "the header");
    if (r != IDX_OK) return r;
    uint32_t magic = 0x800u + (uint32_t)dims;
    if (word(head) != magic) {
        if (gzdirect(s->file) && strlen(s->path) > 3 && !strcmp(s->path + strlen(s->path) - 3, ".gz"))
            return bad(s, "is not a gzip file although its name ends in .gz (it begins with 0x%08x)",
                       word(head));
        return bad(s, "is not an IDX file of %s: it begins with 0x%08x where 0x%08x is due",
                   dims == 3 ? "pictures" : "labels", word(head), magic);
    }
    for (int i = 0; i < dims; i++) dim[i] = word(head + 4 + 4 * i);
    if (dim[0] < 1 || dim[0] > MOST)
        return bad(s, "its header promises %u items; between 1 and %d are accepted", dim[0], (int)MOST);
    return IDX_OK;
}

/* Reads the body, which must end where the file ends: only then has zlib compared the checksum. */
static idx_result body(source *s, size_t bytes, uint8_t **out, const char *part)
{
    uint8_t extra;
    *out = malloc(bytes);
    if (!*out) return bad(s, "no memory for %zu bytes of %s", bytes, part);
    idx_result r = take(s, *out, bytes, part);
    if (r != IDX_OK) return r;
    int more = gzread(s->file, &extra, 1), code = Z_OK;
    if (more > 0) return bad(s, "goes on after the %zu bytes of %s that its header promises", bytes, part);
    gzerror(s->file, &code);
    if (code == Z_BUF_ERROR) return bad(s, "is cut off: the checksum at its end is missing");
    if (more < 0) return bad_stream(s, part, bytes, bytes);
    return IDX_OK;
}

static idx_result read_pictures(source *s, const char *folder, const char *stem, int rows, int cols,
                                idx_set *set)
{
    char name[256];
    uint32_t dim[3];
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", stem);
    idx_result r = open_idx(s, folder, name, 3, dim);
    if (r != IDX_OK) return r;
    if (dim[1] != (uint32_t)rows || dim[2] != (uint32_t)cols)
        return bad(s, "its pictures are %u x %u, expected are %d x %d", dim[1], dim[2], rows, cols);
    set->count = (int)dim[0];
    set->rows = rows;
    set->cols = cols;
    return body(s, (size_t)dim[0] * (size_t)rows * (size_t)cols, &set->pixels, "pictures");
}

static idx_result read_labels(source *s, const char *folder, const char *stem, int classes, idx_set *set)
{
    char name[256];
    uint32_t count;
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", stem);
    idx_result r = open_idx(s, folder, name, 1, &count);
    if (r != IDX_OK) return r;
    if (count != (uint32_t)set->count)
        return bad(s, "holds %u labels, but there are %d pictures", count, set->count);
    r = body(s, count, &set->labels, "labels");
    for (uint32_t i = 0; r == IDX_OK && i < count; i++)
        if (set->labels[i] >= classes)
            return bad(s, "label %u is %d; labels run from 0 to %d", i, set->labels[i], classes - 1);
    return r;
}

idx_result idx_read(const char *folder, const char *stem, int rows, int cols, int classes, idx_set *set,
                    char *why, size_t n)
{
    source s = {.why = why, .n = n};
    *set = (idx_set){0};
    idx_result r = read_pictures(&s, folder, stem, rows, cols, set);
    if (s.file) gzclose(s.file);
    s.file = NULL;
    if (r == IDX_OK) r = read_labels(&s, folder, stem, classes, set);
    if (s.file) gzclose(s.file);
    if (r != IDX_OK) idx_free(set);
    return r;
}

void idx_free(idx_set *set)
{
    free(set->pixels);
    free(set->labels);
    *set = (idx_set){0};
}
