/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - compiled kernels in files, one a kernel: a head (magic, st_image_record) and the code.
 *
 * They lie in the cache folder (runtime/folder.h). A file is written under another name, synced, and renamed, so that readers see all of it or
 * nothing; its hash is compared when it is read, and a damaged file is renamed to *.damaged and reported in the trace. Reading a file
 * sets its time, and where the files exceed ST_CACHE_MEGABYTES together, those used longest ago are removed. Failures here are never
 * errors of a call: the kernel is compiled instead. */
#include "runtime/cuda/image.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char magic[8] = "STRIMG01";
typedef struct head {
    char magic[8];
    st_image_record record;
} head;

/* ---- records ---------------------------------------------------------------------------------------------------------- */

st_image_record st_image_record_of(const st_image_key *key, const char *arch, int nvrtc, const st_gpu_spec *s,
                                   const st_gpu_image *im)
{
    st_image_record r = {.key = {key->word[0], key->word[1]},
                         .nvrtc = (uint32_t)nvrtc,
                         .registers = im->registers,
                         .spill_stores = im->spill_stores,
                         .spill_loads = im->spill_loads,
                         .stack = im->stack,
                         .smem = im->smem,
                         .size = im->size,
                         .stored = im->size};
    snprintf(r.arch, sizeof r.arch, "%s", arch);
    snprintf(r.entry, sizeof r.entry, "%s", s->entry);
    r.hash = st_image_record_hash(&r, im->bytes);
    return r;
}

uint64_t st_image_record_hash(const st_image_record *r, const void *code)
{
    st_image_record plain = *r;
    plain.stored = plain.offset = plain.hash = 0; /* where it is kept does not matter */
    return st_hash(code, r->size, st_hash(&plain, sizeof plain, 0));
}

void st_image_take(st_gpu_image *im, const st_image_record *r, void *code)
{
    *im = (st_gpu_image){.bytes = code,
                         .size = r->size,
                         .registers = r->registers,
                         .spill_stores = r->spill_stores,
                         .spill_loads = r->spill_loads,
                         .stack = r->stack,
                         .smem = r->smem};
}

bool st_image_record_serves(const st_image_record *r, const st_image_wish *w, char *why, size_t n)
{
    if (w->nvrtc && (int)r->nvrtc != w->nvrtc)
        return snprintf(why, n, "its code is of NVRTC %u.%u, and STRATA_NVRTC_LIB names %d.%d",
                        r->nvrtc / 1000, r->nvrtc % 1000 / 10, w->nvrtc / 1000, w->nvrtc % 1000 / 10),
               false;
    /* machine code runs with drivers of its major version on; PTX needs a driver that is at least as new */
    bool ptx = strncmp(r->arch, "compute_", 8) == 0;
    int needs = ptx ? (int)r->nvrtc : (int)r->nvrtc / 1000 * 1000;
    if (w->driver && needs > w->driver)
        return snprintf(why, n, "its code is of NVRTC %u.%u, and the driver is of CUDA %d.%d",
                        r->nvrtc / 1000, r->nvrtc % 1000 / 10, w->driver / 1000, w->driver % 1000 / 10),
               false;
    return true;
}

static void file_name(const st_image_wish *w, char *name, size_t n)
{
    snprintf(name, n, "%016llx%016llx.kernel", (unsigned long long)w->key.word[0],
             (unsigned long long)w->key.word[1]);
}

/* ---- reading ---------------------------------------------------------------------------------------------------------- */

static bool read_all(int fd, void *to, size_t n)
{
    for (char *p = to; n;) {
        ssize_t got = read(fd, p, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

/* 1: there; 0: not, with why; -1: damaged, with why */
static int read_file(int fd, const st_image_wish *w, st_image_record *r, st_gpu_image *im, char *why,
                     size_t n)
{
    head h;
    struct stat st;
    if (fstat(fd, &st)) return snprintf(why, n, "%s", strerror(errno)), 0;
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof h || !read_all(fd, &h, sizeof h) ||
        memcmp(h.magic, magic, sizeof magic) != 0)
        return snprintf(why, n, "it is not a kernel file"), -1;
    *r = h.record;
    if (r->size != (uint64_t)st.st_size - sizeof h || !r->size || r->size > (1u << 30))
        return snprintf(why, n, "it is cut or padded"), -1;
    if (r->key[0] != w->key.word[0] || r->key[1] != w->key.word[1] ||
        strncmp(r->arch, w->arch, sizeof r->arch) != 0)
        return snprintf(why, n, "it holds another kernel"), -1;
    if (!st_image_record_serves(r, w, why, n)) return 0;
    void *code = malloc(r->size);
    if (!code) return snprintf(why, n, "no memory for it"), 0;
    if (!read_all(fd, code, r->size) || st_image_record_hash(r, code) != r->hash) {
        free(code);
        return snprintf(why, n, "its content does not have its hash"), -1;
    }
    st_image_take(im, r, code);
    futimens(fd, NULL); /* used now */
    return 1;
}

bool st_cache_read(const st_image_wish *w, st_image_record *r, st_gpu_image *im, char *why, size_t n)
{
    char path[1024], name[64], aside[80];
    int dir = st_cache_open(path, sizeof path, why, n);
    if (dir < 0) return false;
    file_name(w, name, sizeof name);
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), found = 0;
    if (fd < 0)
        snprintf(why, n, errno == ENOENT ? "not there" : "%s", strerror(errno));
    else {
        found = read_file(fd, w, r, im, why, n);
        close(fd);
    }
    if (found < 0) {
        snprintf(aside, sizeof aside, "%s.damaged", name);
        if (renameat(dir, name, dir, aside)) unlinkat(dir, name, 0);
        uint64_t t0 = st_trace_begin();
        if (ST_UNLIKELY(t0))
            st_trace_end(t0, "runtime", "warning", "%s/%s set aside as %s: %s", path, name, aside, why);
    }
    close(dir);
    return found > 0;
}

/* ---- writing ---------------------------------------------------------------------------------------------------------- */

typedef struct entry {
    char name[72];
    int64_t ns;
    int64_t bytes;
} entry;

static int by_time(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Removes the files used longest ago until the rest is below the bound; also temporary files that a killed process left an hour ago. */
static void trim(int dir, int64_t bound)
{
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    if (!d) {
        if (again >= 0) close(again);
        return;
    }
    entry *list = NULL;
    int count = 0, room = 0;
    int64_t total = 0, now = (int64_t)time(NULL);
    for (struct dirent *x; (x = readdir(d)) != NULL;) {
        bool temporary = strncmp(x->d_name, "tmp-", 4) == 0;
        struct stat st;
        if (!temporary && !ends_with(x->d_name, ".kernel") && !ends_with(x->d_name, ".kernel.damaged"))
            continue;
        const size_t length = strlen(x->d_name) + 1;
        if (!temporary && length > sizeof list->name) continue; /* not a name of ours */
        if (fstatat(dir, x->d_name, &st, AT_SYMLINK_NOFOLLOW)) continue;
        if (temporary) {
            if (now - (int64_t)st.st_mtime > 3600) unlinkat(dir, x->d_name, 0);
            continue;
        }
        if (count == room) {
            entry *more = realloc(list, sizeof *list * (size_t)(room = room ? room * 2 : 256));
            if (!more) break;
            list = more;
        }
        memcpy(list[count].name, x->d_name, length);
        list[count].ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        list[count].bytes = (int64_t)st.st_size;
        total += list[count++].bytes;
    }
    closedir(d);
    if (total > bound) {
        qsort(list, (size_t)count, sizeof *list, by_time);
        for (int i = 0; i < count && total > bound; i++)
            if (unlinkat(dir, list[i].name, 0) == 0) total -= list[i].bytes;
    }
    free(list);
}

static bool write_all(int fd, const void *from, size_t n)
{
    for (const char *p = from; n;) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

bool st_cache_write(const st_image_record *r, const void *code, char *why, size_t n)
{
    static atomic_uint serial;
    char path[1024], name[64], temporary[96];
    int dir = st_cache_open(path, sizeof path, why, n);
    if (dir < 0) return false;
    st_image_wish w = {.key = {{r->key[0], r->key[1]}}};
    file_name(&w, name, sizeof name);
    snprintf(temporary, sizeof temporary, "tmp-%ld-%u-%llx", (long)getpid(), atomic_fetch_add(&serial, 1),
             (unsigned long long)st_now_ns());
    head h = {.record = *r};
    memcpy(h.magic, magic, sizeof magic);
    h.record.stored = r->size;
    h.record.offset = sizeof h;
    int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_all(fd, &h, sizeof h) && write_all(fd, code, r->size) && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0 && close(fd) && ok) ok = false, error = errno;
    if (ok && renameat(dir, temporary, dir, name)) ok = false, error = errno;
    if (!ok) {
        snprintf(why, n, "%.120s: %s", path, strerror(error));
        if (fd >= 0) unlinkat(dir, temporary, 0);
    } else
        trim(dir, (int64_t)ST_CACHE_MEGABYTES << 20);
    close(dir);
    return ok;
}
