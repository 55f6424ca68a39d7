/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - a file is first built (or read and checked) as one block of memory: what a network should look like is compared
 * byte by byte with what the file says before a single parameter changes. */
#include "weights.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static const char magic[8] = "STRATA-W";
enum { VERSION = 1 };

typedef struct block {
    uint8_t *data;
    size_t size, room;
    bool failed;
} block;

static void put(block *b, const void *bytes, size_t n)
{
    if (b->failed) return;
    if (b->size + n > b->room) {
        size_t room = 2 * (b->size + n);
        uint8_t *grown = realloc(b->data, room);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->data = grown;
        b->room = room;
    }
    memcpy(b->data + b->size, bytes, n);
    b->size += n;
}

static void put_number(block *b, uint64_t x, int bytes)
{
    uint8_t out[8];
    for (int i = 0; i < bytes; i++) out[i] = (uint8_t)(x >> 8 * i);
    put(b, out, (size_t)bytes);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* What comes before the values of a tensor. */
static void put_head(block *b, const net_parameter *p)
{
    put_number(b, strlen(p->name), 4);
    put(b, p->name, strlen(p->name));
    put_number(b, (uint64_t)p->value.type, 4);
    put_number(b, (uint64_t)p->value.rank, 4);
    for (int d = 0; d < p->value.rank; d++) put_number(b, (uint64_t)p->value.dim[d], 8);
}

/* The values packed, whatever the strides of the tensor are. */
static float *packed(net *n, strata_tensor t, bool copy)
{
    float *values = malloc((size_t)strata_count(t) * sizeof *values);
    strata_tensor to = strata_array(values, STRATA_F32, t.rank, t.dim, NULL);
    if (values && copy && strata_copy(net_handle(n), t, to)) {
        free(values);
        return NULL;
    }
    return values;
}

static int build(net *n, block *b, char *why, size_t size)
{
    net_parameter p;
    int tensors = 0;
    while (net_parameter_at(n, tensors, &p)) tensors++;
    put(b, magic, sizeof magic);
    put_number(b, VERSION, 4);
    put_number(b, (uint64_t)tensors, 4);
    for (int i = 0; net_parameter_at(n, i, &p); i++) {
        float *values = packed(n, p.value, true);
        if (!values) {
            snprintf(why, size, "%s: %s", p.name, net_error(n));
            return -1;
        }
        put_head(b, &p);
        for (int64_t k = 0; k < strata_count(p.value); k++) {
            uint32_t bits;
            memcpy(&bits, values + k, 4);
            put_number(b, bits, 4);
        }
        free(values);
    }
    put_number(b, crc32(crc32(0, NULL, 0), b->data, (uInt)b->size), 4);
    if (b->failed) snprintf(why, size, "no memory to build the file");
    return b->failed ? -1 : 0;
}

enum { BESIDE = 4096 };

/* The name under which the file is built. */
static int name_beside(const char *path, char beside[BESIDE], char *why, size_t size)
{
    struct stat there;
    if (!stat(path, &there) && !S_ISREG(there.st_mode))
        snprintf(why, size, "%s: is not a regular file; weights replace files only", path);
    else if (snprintf(beside, BESIDE, "%s.%ld", path, (long)getpid()) >= BESIDE)
        snprintf(why, size, "%s: the path is too long", path);
    else
        return 0;
    return -1;
}

static int unwritten(const char *path, int error, char *why, size_t size)
{
    snprintf(why, size, "%s: cannot be written: %s", path, strerror(error));
    return -1;
}

int weights_writable(const char *path, char *why, size_t size)
{
    char beside[BESIDE];
    if (name_beside(path, beside, why, size)) return -1;
    FILE *f = fopen(beside, "wb");
    if (!f) return unwritten(path, errno, why, size);
    bool ok = fputc(0, f) != EOF && !fflush(f);
    int error = errno;
    fclose(f);
    remove(beside);
    return ok ? 0 : unwritten(path, error, why, size);
}

int weights_save(net *n, const char *path, char *why, size_t size)
{
    block b = {0};
    char beside[BESIDE];
    int r = name_beside(path, beside, why, size);
    if (!r) r = build(n, &b, why, size);
    if (!r) {
        FILE *f = fopen(beside, "wb");
        bool ok = f && fwrite(b.data, 1, b.size, f) == b.size && !fflush(f) && !fsync(fileno(f));
        int error = errno;
        if (f && fclose(f) && ok) ok = false, error = errno;
        if (ok && rename(beside, path)) ok = false, error = errno;
        if (!ok) {
            r = unwritten(path, error, why, size);
            if (f) remove(beside);
        }
    }
    free(b.data);
    return r;
}

static int read_file(const char *path, block *b, char *why, size_t size)
{
    uint8_t part[1 << 16];
    FILE *f = fopen(path, "rb");
    if (!f) {
        snprintf(why, size, "%s: cannot be opened: %s", path, strerror(errno));
        return -1;
    }
    size_t got;
    while ((got = fread(part, 1, sizeof part, f)) && b->size < 1u << 28) put(b, part, got);
    bool failed = ferror(f) || b->failed;
    if (failed) snprintf(why, size, "%s: cannot be read: %s", path, strerror(errno));
    fclose(f);
    return failed ? -1 : 0;
}

static int bad(char *why, size_t size, const char *path, const char *what)
{
    snprintf(why, size, "%s: %s", path, what);
    return -1;
}

/* Checks the file from end to end; at[i] is where the values of parameter i begin. */
static int check(net *n, const block *b, size_t *at, int most, const char *path, char *why, size_t size)
{
    net_parameter p;
    size_t pos = 16;
    if (b->size < 20) return bad(why, size, path, "is too short for a file of weights");
    if (memcmp(b->data, magic, sizeof magic))
        return bad(why, size, path, "is not a file of weights (no STRATA-W)");
    if (get32(b->data + 8) != VERSION) {
        snprintf(why, size, "%s: has version %u; this program reads version %d", path, get32(b->data + 8),
                 VERSION);
        return -1;
    }
    if (crc32(crc32(0, NULL, 0), b->data, (uInt)b->size - 4) != get32(b->data + b->size - 4))
        return bad(why, size, path, "is damaged or cut off: its checksum does not agree with its content");
    for (int i = 0; net_parameter_at(n, i, &p) && i < most; i++) {
        block head = {0};
        put_head(&head, &p);
        size_t bytes = 4 * (size_t)strata_count(p.value);
        bool same = !head.failed && b->size - 4 - pos >= head.size + bytes &&
                    !memcmp(b->data + pos, head.data, head.size);
        at[i] = pos += head.size;
        pos += bytes;
        free(head.data);
        if (!same) {
            snprintf(why, size,
                     "%s: is of another network: tensor %d is not %s of the dims that this one has", path, i,
                     p.name);
            return -1;
        }
    }
    if (pos != b->size - 4)
        return bad(why, size, path, "is of another network: it holds more tensors than this one has");
    return 0;
}

int weights_load(net *n, const char *path, char *why, size_t size)
{
    block b = {0};
    size_t at[64] = {0};
    net_parameter p;
    int r = read_file(path, &b, why, size);
    if (!r) r = check(n, &b, at, 64, path, why, size);
    for (int i = 0; !r && net_parameter_at(n, i, &p); i++) {
        float *values = packed(n, p.value, false);
        if (!values) {
            r = bad(why, size, path, "no memory for its values");
            break;
        }
        for (int64_t k = 0; k < strata_count(p.value); k++) {
            uint32_t bits = get32(b.data + at[i] + 4 * k);
            memcpy(values + k, &bits, 4);
        }
        if (strata_copy(net_handle(n), strata_array(values, STRATA_F32, p.value.rank, p.value.dim, NULL),
                        p.value))
            r = bad(why, size, path, net_error(n));
        free(values);
    }
    free(b.data);
    return r;
}
