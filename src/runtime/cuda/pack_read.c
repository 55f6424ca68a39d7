/* SPDX-License-Identifier: Apache-2.0 */
/* pack_read.c - the prebuilt kernels that are shipped beside the library: one read-only file, made by tools/pack.c.
 *
 * The head and the records are read and checked once, the code of a kernel when it is asked for (pread, not a map: a file that is cut
 * while we run then gives an error and no signal). Each code has its own hash, begun with its record. A pack of another version of the
 * library does no harm: its keys are those of other sources, so nothing is found in it. */
#include "runtime/cuda/image.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

uint64_t st_pack_hash(const st_pack_head *h, const st_image_record *rows)
{
    st_pack_head plain = *h;
    plain.hash = 0;
    return st_hash(rows, h->count * sizeof *rows, st_hash(&plain, sizeof plain, 0));
}

int st_pack_order(const void *a, const void *b)
{
    const st_image_record *x = a, *y = b;
    for (int i = 0; i < 2; i++)
        if (x->key[i] != y->key[i]) return x->key[i] < y->key[i] ? -1 : 1;
    return strncmp(x->arch, y->arch, sizeof x->arch);
}

static bool read_at(int fd, void *to, size_t n, uint64_t offset)
{
    for (char *p = to; n;) {
        ssize_t got = pread(fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        p += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return true;
}

static bool rows_sound(const st_pack *p)
{
    uint64_t first = sizeof p->head + (uint64_t)p->head.count * sizeof *p->row;
    for (uint32_t i = 0; i < p->head.count; i++) {
        const st_image_record *r = &p->row[i];
        if (r->offset < first || r->offset > p->head.bytes || r->stored > p->head.bytes - r->offset ||
            !r->size || r->size > (1u << 30) || (i && st_pack_order(r - 1, r) >= 0))
            return false;
    }
    return true;
}

static const char *open_checked(st_pack *p)
{
    struct stat st;
    st_pack_head *h = &p->head;
    if (fstat(p->fd, &st)) return strerror(errno);
    if (!S_ISREG(st.st_mode)) return "it is not a file";
    if (st.st_size < (off_t)sizeof *h || !read_at(p->fd, h, sizeof *h, 0) ||
        memcmp(h->magic, ST_PACK_MAGIC, sizeof ST_PACK_MAGIC) != 0)
        return "it is not a kernel pack";
    if (h->format != ST_PACK_FORMAT || h->recipe != ST_IMAGE_RECIPE)
        return "it was made by another version of Strata";
    if (h->bytes != (uint64_t)st.st_size || h->count > 100000 ||
        h->bytes < sizeof *h + (uint64_t)h->count * sizeof *p->row)
        return "it is cut or padded";
    size_t bytes = h->count * sizeof *p->row;
    if (!(p->row = malloc(bytes + 1))) return "no memory for its index";
    if (!read_at(p->fd, p->row, bytes, sizeof *h) || st_pack_hash(h, p->row) != h->hash || !rows_sound(p))
        return "its index is damaged";
    return NULL;
}

bool st_pack_open(st_pack *p, const char *path)
{
    *p = (st_pack){.fd = -1};
    snprintf(p->path, sizeof p->path, "%s", path);
    p->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *fault = p->fd < 0 ? strerror(errno) : open_checked(p);
    if (!fault) return true;
    snprintf(p->why, sizeof p->why, "%.200s: %s", path, fault);
    st_pack_close(p);
    return false;
}

void st_pack_close(st_pack *p)
{
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
    free(p->row);
    p->row = NULL;
}

/* ---- the process's pack ------------------------------------------------------------------------------------------------ */

static st_pack the_pack = {.fd = -1};

/* The folder of the library, or of the program that the library is linked into. */
static bool own_folder(char *folder, size_t n)
{
    Dl_info info;
    char resolved[4096];
    if (!dladdr((const void *)st_pack_get, &info) || !info.dli_fname) return false;
    const char *name = info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe";
    if (!realpath(name, resolved)) return false;
    char *slash = strrchr(resolved, '/');
    if (!slash) return false;
    *slash = 0;
    return snprintf(folder, n, "%s", resolved) < (int)n;
}

/* A file found by its place alone must be one that only root, this user or the library's owner can have put there: a program in a folder
 * below /tmp finds /tmp/strata beside it. */
static bool trusted(const st_pack *p, const char *folder)
{
    struct stat file, own;
    return fstat(p->fd, &file) == 0 && !(file.st_mode & 022) &&
           (file.st_uid == 0 || file.st_uid == geteuid() ||
            (stat(folder, &own) == 0 && own.st_uid == file.st_uid && !(own.st_mode & 022)));
}

#ifndef STRATA_LIBDIR
#    define STRATA_LIBDIR "lib"
#endif

static void open_the_pack(void)
{
    /* beside the library; from bin/ of an installation; from tests/ and src/cli/ of a build folder */
    static const char *const places[] = {"strata", "../" STRATA_LIBDIR "/strata", "../lib/strata",
                                         "../strata", "../../strata"};
    const char *file = st_env("STRATA_PACK_FILE");
    char folder[900], path[1024];
    if (file && strcmp(file, "off") == 0) {
        snprintf(the_pack.why, sizeof the_pack.why, "STRATA_PACK_FILE=off");
        return;
    }
    if (file) {
        st_pack_open(&the_pack, file);
    } else if (own_folder(folder, sizeof folder)) {
        for (int i = 0; i < ST_COUNT(places); i++) {
            snprintf(path, sizeof path, "%s/%s/" ST_PACK_NAME, folder, places[i]);
            if (access(path, F_OK) == 0) {
                if (st_pack_open(&the_pack, path) && !trusted(&the_pack, folder)) {
                    st_pack_close(&the_pack);
                    snprintf(the_pack.why, sizeof the_pack.why, "%.200s: others than its owner may write it",
                             path);
                }
                break;
            }
        }
        if (!the_pack.row && !the_pack.why[0])
            snprintf(the_pack.why, sizeof the_pack.why, "no strata/" ST_PACK_NAME " beside %.200s", folder);
    } else
        snprintf(the_pack.why, sizeof the_pack.why, "the library's own folder is not known");
    uint64_t t0 = st_trace_begin();
    if (ST_UNLIKELY(t0))
        st_trace_end(t0, "runtime", "pack", "%s%s",
                     the_pack.row ? "" : "none: ", the_pack.row ? the_pack.path : the_pack.why);
}

const st_pack *st_pack_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_the_pack);
    return &the_pack;
}

bool st_pack_read_from(const st_pack *p, const st_image_wish *w, st_image_record *r, st_gpu_image *im,
                       char *why, size_t n)
{
    if (!p->row) return snprintf(why, n, "%s", p->why), false;
    st_image_record wanted = {.key = {w->key.word[0], w->key.word[1]}};
    snprintf(wanted.arch, sizeof wanted.arch, "%s", w->arch);
    const st_image_record *found = bsearch(&wanted, p->row, p->head.count, sizeof *p->row, st_pack_order);
    if (!found) return snprintf(why, n, "not in it"), false;
    if (!st_image_record_serves(found, w, why, n)) return false;
    char *kept = malloc(found->stored), *code = malloc(found->size);
    bool ok = kept && code && read_at(p->fd, kept, found->stored, found->offset) &&
              ZSTD_decompress(code, found->size, kept, found->stored) == found->size &&
              st_image_record_hash(found, code) == found->hash;
    free(kept);
    if (!ok) {
        free(code);
        uint64_t t0 = st_trace_begin();
        if (ST_UNLIKELY(t0))
            st_trace_end(t0, "runtime", "warning", "%s: the code of a kernel (%s) is damaged", p->path,
                         found->entry);
        return snprintf(why, n, "its code for this kernel is damaged"), false;
    }
    *r = *found;
    st_image_take(im, r, code);
    return true;
}
