/* SPDX-License-Identifier: Apache-2.0 */
/* for_program.c - a program file with all that it needs and may open, and a running process with what it has mapped. */
#include "doctor/for.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SCAN = 24 << 20, MAX_RODATA = 256 << 20, MAX_LATER = 64 };

/* The big ones hold kernels, no names; the system's own hold nothing of ours. */
static bool worth_scanning(const st_object *o)
{
    static const char *const dull[] = {"libcublas",         "libcublasLt",  "libcufft", "libcurand",
                                       "libcusparse",       "libcusolver",  "libnccl",  "libcudart",
                                       "libnvrtc-builtins", "libnvJitLink", "libcuda",  "libnvidia-ml",
                                       "libcusparseLt"};
    static const char *const system[] = {"libc.so",  "libm.so",      "libdl.so",    "libpthread.so",
                                         "librt.so", "libstdc++.so", "libgcc_s.so", "ld-linux"};
    if (o->missing || strncmp(o->copy.stem, "libcudnn", 8) == 0) return false;
    for (int i = 0; i < ST_COUNT(dull); i++)
        if (strcmp(o->copy.stem, dull[i]) == 0) return false;
    for (int i = 0; i < ST_COUNT(system); i++)
        if (strncmp(o->name, system[i], strlen(system[i])) == 0) return false;
    return true;
}

typedef struct names {
    int n;
    char name[MAX_LATER][64];
} names;

/* whole strings such as "libcuda.so.1" in a piece of the file */
static void collect_names(const char *text, size_t size, names *out)
{
    char stem[48];
    const char *end = text + size;
    for (const char *p = text; out->n < MAX_LATER && (p = memmem(p, (size_t)(end - p), "lib", 3)) != NULL;
         p += 3) {
        size_t k = strnlen(p, (size_t)(end - p));
        if ((p > text && p[-1] != 0) || k < 8 || k > 63 || p + k == end) continue;
        if (!st_stem_of(p, stem) || strspn(p + strlen(stem) + 3, ".0123456789") != k - strlen(stem) - 3)
            continue;
        bool again = false;
        for (int i = 0; i < out->n; i++) again |= strcmp(out->name[i], p) == 0;
        if (!again) strcpy(out->name[out->n++], p);
    }
}

static void scan_names(st_loader *l, int at)
{
    enum { PIECE = 1 << 20, OVERLAP = 128 };
    names found = {0};
    uint64_t offset, size;
    int fd = st_root_openfile(l->m->root, l->o[at].real);
    char *piece = fd >= 0 ? malloc(PIECE + OVERLAP) : NULL;
    if (piece) {
        if (!st_elf_section(fd, ".rodata", &offset, &size)) offset = 0, size = MAX_SCAN;
        if (size > MAX_RODATA) size = MAX_RODATA;
        size_t kept = 0;
        for (uint64_t done = 0; done < size;) {
            size_t want = size - done < PIECE ? (size_t)(size - done) : PIECE;
            ssize_t k = pread(fd, piece + kept, want, (off_t)(offset + done));
            if (k <= 0) break;
            collect_names(piece, kept + (size_t)k, &found);
            done += (uint64_t)k;
            size_t all = kept + (size_t)k;
            kept = all < OVERLAP ? all : OVERLAP;
            memmove(piece, piece + all - kept, kept);
        }
    }
    free(piece);
    if (fd >= 0) close(fd);
    for (int i = 0; i < found.n; i++) st_loader_dlopen(l, found.name[i], at);
}

/* cuDNN opens its sub-libraries by soname, NVRTC its builtins by its own version; neither name stands in the file as a whole. */
static void known_names(st_loader *l, int at)
{
    char name[96];
    const st_copy *c = &l->o[at].copy;
    const char *so = strstr(l->o[at].name, ".so.");
    if (!strcmp(c->stem, "libcudnn") && so) {
        const st_table *t = st_facts_table(l->m->facts, "cudnn_libs");
        for (int i = 0; i < t->rows; i++) {
            const char *since = st_table_get(t, i, "since");
            if (atoi(st_table_get(t, i, "major")) != atoi(so + 4) ||
                strcmp(st_table_get(t, i, "role"), "sub-library") || strstr(since, "or earlier") ||
                st_version_cmp(c->version[0] ? c->version : so + 4, since) < 0)
                continue;
            st_loader_dlopen(l, st_table_get(t, i, "library"), at);
        }
    }
    if (!strcmp(c->stem, "libnvrtc") && c->version[0]) {
        int major = 0, minor = 0;
        sscanf(c->version, "%d.%d", &major, &minor);
        st_put(name, sizeof name, "libnvrtc-builtins.so.%d.%d", major, minor);
        st_loader_dlopen(l, name, at);
    }
}

/* cuDNN's shim and libcublas do not state a version; the library of their family in the same directory does */
static void lend_versions(st_loader *l)
{
    for (int i = 0; i < l->count; i++) {
        st_copy *c = &l->o[i].copy;
        const char *slash = strrchr(l->o[i].real, '/');
        bool dnn = strncmp(c->stem, "libcudnn", 8) == 0, blas = strcmp(c->stem, "libcublas") == 0;
        for (int k = 0; k < l->count && slash && !c->version[0] && (dnn || blas); k++) {
            const st_object *o = &l->o[k];
            bool kin = dnn ? !strncmp(o->copy.stem, "libcudnn", 8) : !strcmp(o->copy.stem, "libcublasLt");
            if (!kin || !o->copy.version[0] ||
                strncmp(o->real, l->o[i].real, (size_t)(slash - l->o[i].real + 1)) ||
                strchr(o->real + (slash - l->o[i].real) + 1, '/'))
                continue;
            st_put(c->version, sizeof c->version, "%s", o->copy.version);
            c->version_from = "neighbour";
        }
    }
}

void st_for_later(st_loader *l)
{
    int scanned = 0;
    for (int i = 0; i < l->count; i++) { /* grows while we go */
        known_names(l, i);
        if (worth_scanning(&l->o[i]) && scanned++ < 64) scan_names(l, i);
    }
    lend_versions(l);
}

bool st_for_program(st_for *f, const char *path, char *why, size_t n)
{
    const char *reason = "is not read";
    char title[160];
    struct stat s;
    if (f->library_path && st_root_stat(f->d->m.root, path, &s) && s.st_mode & (S_ISUID | S_ISGID)) {
        st_put(f->note, sizeof f->note,
               "it runs with another user's rights, so the loader ignores LD_LIBRARY_PATH");
        free(f->library_path);
        f->library_path = NULL;
    }
    st_put(title, sizeof title, "%.150s", path);
    st_group *g = st_for_group(f, title);
    int at = g ? st_loader_add(&g->l, path, -1, "the program", &reason) : -1;
    if (at < 0) {
        if (strcmp(reason, "is not dynamically linked") == 0) {
            st_put(f->note, sizeof f->note,
                   "it is not dynamically linked, so it carries its libraries in itself");
            return true;
        }
        st_put(why, n, "%.200s %s", path, reason);
        return false;
    }
    const char *preload = st_environ(&f->d->m, "LD_PRELOAD");
    while (preload && *preload) {
        size_t k = strcspn(preload, ": ");
        char name[128];
        if (k && k < sizeof name) {
            st_put(name, sizeof name, "%.*s", (int)k, preload);
            int o = st_loader_dlopen(&g->l, name, 0);
            if (o > 0 && !g->l.o[o].missing) st_put(g->l.o[o].how, sizeof g->l.o[o].how, "LD_PRELOAD");
        }
        preload += k;
        if (*preload) preload++;
    }
    st_for_later(&g->l);
    return true;
}

/* ---- a process ---------------------------------------------------------------------------------------------------------- */
/* Its files may lie in another mount namespace (a container's): then they are read below /proc/PID/root. */
static void enter_namespace(st_for *f, long pid)
{
    char mine[64] = "", its[64] = "", path[64];
    if (!st_root_is_host(f->d->m.root)) return;
    st_put(path, sizeof path, "/proc/%ld/ns/mnt", pid);
    if (readlink("/proc/self/ns/mnt", mine, sizeof mine - 1) <= 0 ||
        readlink(path, its, sizeof its - 1) <= 0 || !strcmp(mine, its))
        return;
    st_put(path, sizeof path, "/proc/%ld/root", pid);
    st_root *root = st_root_open(path, NULL);
    f->other = root ? malloc(sizeof *f->other) : NULL;
    if (!f->other) {
        st_root_close(root);
        return;
    }
    *f->other = f->d->m;
    f->other->root = root;
    f->other->copy_count = 0;
    f->other->looked_inside = 0;
    st_put(f->note, sizeof f->note, "it runs in another mount namespace (a container); paths are its own");
}

static void add_mapping(st_loader *l, const char *line)
{
    char stem[48];
    const char *path = strchr(line, '/');
    if (!path || l->count == ST_MAX_OBJECTS || strlen(path) >= sizeof l->o[0].path + 10) return;
    char file[300];
    st_put(file, sizeof file, "%s", path);
    size_t k = strlen(file);
    bool deleted = k > 10 && strcmp(file + k - 10, " (deleted)") == 0;
    if (deleted) file[k - 10] = 0;
    const char *name = strrchr(file, '/') + 1;
    if (!strstr(name, ".so") || strlen(file) >= sizeof l->o[0].path || strlen(name) >= sizeof l->o[0].name)
        return;
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->o[i].path, file) == 0) return;
    st_object *o = &l->o[l->count++];
    memset(o, 0, sizeof *o);
    o->parent = -1;
    o->deleted = deleted;
    st_put(o->path, sizeof o->path, "%s", file);
    st_put(o->real, sizeof o->real, "%s", file);
    st_put(o->name, sizeof o->name, "%s", name);
    st_put(o->how, sizeof o->how, "mapped");
    if (!st_stem_of(name, stem)) return;
    if (deleted) /* the file there now is another one */
        st_put(o->copy.stem, sizeof o->copy.stem, "%s", stem), o->copy.version_from = "";
    else
        st_copy_at(l->m, file, &o->copy);
    const char *so = strstr(name, ".so.");
    if (!o->copy.version[0] && so && strchr(so + 4, '.'))
        st_put(o->copy.version, sizeof o->copy.version, "%s", so + 4);
}

bool st_for_process(st_for *f, long pid, char *why, size_t n)
{
    char path[64], name[128] = "", title[160];
    size_t size;
    st_root *root = f->d->m.root;
    st_put(path, sizeof path, "/proc/%ld/maps", pid);
    char *maps = st_root_read(root, path, 16 << 20, &size);
    if (!maps) {
        int error = errno;
        st_put(path, sizeof path, "/proc/%ld", pid);
        if (!st_root_exists(root, path))
            st_put(why, n, "there is no process %ld", pid);
        else
            st_put(why, n, "/proc/%ld/maps: %s%s", pid, strerror(error),
                   error == EACCES || error == EPERM ? " (another user's process: as root it can be read)"
                                                     : "");
        return false;
    }
    st_put(path, sizeof path, "/proc/%ld/comm", pid);
    st_root_line(root, path, name, sizeof name);
    st_put(path, sizeof path, "/proc/%ld/environ", pid);
    free(f->library_path);
    f->library_path = NULL;
    f->environ_text = st_root_read(root, path, 1 << 20, &size);
    for (const char *p = f->environ_text, *end = p ? p + size : NULL; p && p < end; p += strlen(p) + 1)
        if (strncmp(p, "LD_LIBRARY_PATH=", 16) == 0 && !f->library_path) f->library_path = strdup(p + 16);
    enter_namespace(f, pid);
    st_put(f->program, sizeof f->program, "%ld (%s)", pid, name);
    st_put(title, sizeof title, "mapped by process %ld (%.100s)", pid, name);
    st_group *g = st_for_group(f, title);
    char *save = NULL;
    for (char *line = g ? strtok_r(maps, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save))
        add_mapping(&g->l, line);
    free(maps);
    if (g) lend_versions(&g->l);
    if (!g) st_put(why, n, "out of memory");
    return g != NULL;
}
