/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.c - the dynamic loader's search, replayed by parsing.
 *
 * Breadth first over DT_NEEDED. A name without a slash is looked for in: DT_RPATH of the asking object and of those that asked for it (each
 * only when it has no DT_RUNPATH, and only when the asking one has none), LD_LIBRARY_PATH, DT_RUNPATH of the asking object, ld.so.cache, the
 * default directories. What is loaded under the same name or soname already is taken again, whatever its path. */
#include "doctor/resolve.h"
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_conf(st_loader *l, const char *path)
{
    char *text = st_root_read(l->m->root, path, 65536, NULL), *save = NULL;
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save)) {
        line[strcspn(line, " \t\r#")] = 0;
        if (*line == '/' && strlen(line) < sizeof l->dir[0] && l->dir_count < ST_COUNT(l->dir))
            strcpy(l->dir[l->dir_count++], line);
    }
    free(text);
}

static void ignore_entry(const char *name, const char *path, void *arg) { (void)name, (void)path, (void)arg; }

bool st_loader_open(st_loader *l, st_machine *m, const char *library_path)
{
    memset(l, 0, sizeof *l);
    l->m = m;
    l->library_path = library_path;
    l->o = calloc(ST_MAX_OBJECTS, sizeof *l->o);
    l->cache = st_root_read(m->root, "/etc/ld.so.cache", 32 << 20, &l->cache_size);
    if (l->cache && !st_ldcache_each(l->cache, l->cache_size, ignore_entry, NULL)) {
        free(l->cache);
        l->cache = NULL;
    }
    st_list list;
    if (!l->cache && st_root_list(m->root, "/etc/ld.so.conf.d", &list)) {
        for (int i = 0; i < list.n; i++) {
            char path[400];
            size_t k = strlen(list.name[i]);
            if (k < 5 || strcmp(list.name[i] + k - 5, ".conf")) continue;
            st_put(path, sizeof path, "/etc/ld.so.conf.d/%s", list.name[i]);
            read_conf(l, path);
        }
        st_list_free(&list);
    }
    return l->o != NULL;
}

void st_loader_close(st_loader *l)
{
    free(l->o);
    free(l->cache);
}

int st_loader_find(const st_loader *l, const char *name)
{
    for (int i = 0; i < l->count; i++) {
        const st_object *o = &l->o[i];
        if (!o->missing && (strcmp(o->name, name) == 0 || (o->has_elf && strcmp(o->elf.soname, name) == 0)))
            return i;
    }
    return -1;
}

/* an ELF file of the program's kind? Fills o->real and o->elf. */
static bool try_file(st_loader *l, const char *path, st_object *o, const char **why)
{
    char real[ST_PATH];
    *why = "does not exist";
    if (strlen(path) >= sizeof o->path || !st_root_resolve(l->m->root, path, real) ||
        strlen(real) >= sizeof o->real)
        return false;
    int fd = st_root_openfile(l->m->root, real);
    *why = "cannot be opened";
    if (fd < 0) return false;
    bool good = st_elf_read(fd, &o->elf, why);
    close(fd);
    if (good && l->machine && (o->elf.machine != l->machine || o->elf.bits != l->bits)) {
        *why = "is for another kind of machine";
        return false;
    }
    if (!good) return false;
    st_put(o->path, sizeof o->path, "%s", path);
    st_put(o->real, sizeof o->real, "%s", real);
    o->has_elf = true;
    return true;
}

/* $ORIGIN, $LIB and $PLATFORM; false when the result is too long */
static bool expand(const st_loader *l, const char *p, size_t k, const st_object *owner, char out[ST_PATH])
{
    size_t n = 0;
    for (size_t i = 0; i < k;) {
        static const char *const words[] = {"ORIGIN", "LIB", "PLATFORM"};
        char value[256] = "";
        size_t used = 0;
        for (int w = 0; w < 3 && p[i] == '$' && !used; w++) {
            size_t len = strlen(words[w]);
            bool braces = i + 1 < k && p[i + 1] == '{';
            const char *at = p + i + 1 + braces;
            if ((size_t)(p + k - at) < len + braces || strncmp(at, words[w], len) ||
                (braces && at[len] != '}'))
                continue;
            used = 1 + len + 2 * (size_t)braces;
            /* the directory of the file behind the links, as glibc's l_origin */
            const char *slash = owner ? strrchr(owner->real, '/') : NULL;
            if (w == 0)
                st_put(value, sizeof value, "%.*s", (int)(slash ? slash - owner->real : 0),
                       owner ? owner->real : "");
            if (w == 1) st_put(value, sizeof value, "%s", l->bits == 32 ? "lib" : "lib64");
            if (w == 2) st_put(value, sizeof value, "%s", l->machine == EM_AARCH64 ? "aarch64" : "x86_64");
        }
        if (!used) value[0] = p[i], value[1] = 0, used = 1;
        size_t len = strlen(value);
        if (n + len >= ST_PATH) return false;
        memcpy(out + n, value, len);
        n += len;
        i += used;
    }
    out[n] = 0;
    return n > 0;
}

/* a list of directories with ':' (and ';' in LD_LIBRARY_PATH) between */
static bool try_list(st_loader *l, const char *list, const char *ends, const st_object *owner,
                     const char *name, st_object *o)
{
    for (const char *p = list, *why; p && *p;) {
        size_t k = strcspn(p, ends);
        char dir[ST_PATH], path[ST_PATH + 130];
        if (k && expand(l, p, k, owner, dir) && dir[0] == '/') {
            st_put(path, sizeof path, "%s/%s", dir, name);
            if (try_file(l, path, o, &why)) return true;
        }
        p += k;
        if (*p) p++;
    }
    return false;
}

typedef struct lookup {
    st_loader *l;
    const char *name;
    st_object *o;
    bool found;
} lookup;
static void see_cached(const char *name, const char *path, void *arg)
{
    lookup *u = arg;
    const char *why;
    if (!u->found && strcmp(name, u->name) == 0) u->found = try_file(u->l, path, u->o, &why);
}

static const char *short_name(const st_object *o)
{
    const char *slash = strrchr(o->path, '/');
    return slash ? slash + 1 : o->path;
}

static bool search(st_loader *l, const char *name, int from, st_object *o)
{
    static const char *const defaults[] = {"/lib/x86_64-linux-gnu",
                                           "/usr/lib/x86_64-linux-gnu",
                                           "/lib/aarch64-linux-gnu",
                                           "/usr/lib/aarch64-linux-gnu",
                                           "/lib64",
                                           "/usr/lib64",
                                           "/lib",
                                           "/usr/lib"};
    const st_object *asker = from >= 0 ? &l->o[from] : NULL;
    const char *why;
    char path[ST_PATH];
    if (asker && !asker->elf.runpath[0]) {
        bool main_seen = false;
        for (int i = from, steps = 0; i >= 0 && steps < ST_MAX_OBJECTS; i = l->o[i].parent, steps++) {
            main_seen |= i == 0;
            if (l->o[i].elf.runpath[0] || !l->o[i].elf.rpath[0]) continue;
            if (try_list(l, l->o[i].elf.rpath, ":", &l->o[i], name, o)) {
                st_put(o->how, sizeof o->how, "DT_RPATH of %s", short_name(&l->o[i]));
                return true;
            }
        }
        if (!main_seen && l->count && !l->o[0].elf.runpath[0] &&
            try_list(l, l->o[0].elf.rpath, ":", &l->o[0], name, o)) {
            st_put(o->how, sizeof o->how, "DT_RPATH of %s", short_name(&l->o[0]));
            return true;
        }
    }
    if (try_list(l, l->library_path, ":;", l->count ? &l->o[0] : NULL, name, o)) {
        st_put(o->how, sizeof o->how, "LD_LIBRARY_PATH");
        return true;
    }
    if (asker && try_list(l, asker->elf.runpath, ":", asker, name, o)) {
        st_put(o->how, sizeof o->how, "DT_RUNPATH of %s", short_name(asker));
        return true;
    }
    lookup u = {l, name, o, false};
    if (l->cache) st_ldcache_each(l->cache, l->cache_size, see_cached, &u);
    st_put(o->how, sizeof o->how, "loader cache");
    if (u.found) return true;
    for (int i = 0; i < l->dir_count; i++) {
        st_put(path, sizeof path, "%s/%s", l->dir[i], name);
        st_put(o->how, sizeof o->how, "/etc/ld.so.conf.d");
        if (try_file(l, path, o, &why)) return true;
    }
    for (int i = 0; i < ST_COUNT(defaults); i++) {
        st_put(path, sizeof path, "%s/%s", defaults[i], name);
        st_put(o->how, sizeof o->how, "default directory");
        if (try_file(l, path, o, &why)) return true;
    }
    return false;
}

static int ask(st_loader *l, const char *name, int from, bool later)
{
    int known = st_loader_find(l, name);
    if (known >= 0) return known;
    for (int i = 0; i < l->count; i++)
        if (l->o[i].missing && strcmp(l->o[i].name, name) == 0) return i;
    if (l->count == ST_MAX_OBJECTS || strlen(name) >= sizeof l->o[0].name || !*name) return -1;
    st_object *o = &l->o[l->count];
    const char *why;
    memset(o, 0, sizeof *o);
    o->parent = from;
    o->later = later;
    if (strchr(name, '/')) {
        char path[ST_PATH];
        st_put(o->how, sizeof o->how, "by its path");
        o->missing = !expand(l, name, strlen(name), from >= 0 ? &l->o[from] : NULL, path) ||
                     !try_file(l, path, o, &why);
    } else
        o->missing = !search(l, name, from, o);
    st_put(o->name, sizeof o->name, "%s", name);
    if (o->missing) {
        o->how[0] = o->path[0] = o->real[0] = 0;
        o->has_elf = false;
    } else {
        for (int i = 0; i < l->count; i++) /* one file under two names is loaded once */
            if (!l->o[i].missing && strcmp(l->o[i].real, o->real) == 0) return i;
        st_copy_at(l->m, o->path, &o->copy);
    }
    return l->count++;
}

/* what the objects from `first` on need, breadth first */
static void complete(st_loader *l, int first, bool later)
{
    for (int i = first; i < l->count; i++)
        for (int k = 0; k < l->o[i].elf.needed_count && l->o[i].has_elf; k++)
            ask(l, l->o[i].elf.needed[k], i, later);
}

int st_loader_add(st_loader *l, const char *path, int parent, const char *how, const char **why)
{
    const char *ignored;
    if (!why) why = &ignored;
    *why = "has too many libraries";
    if (l->count == ST_MAX_OBJECTS) return -1;
    st_object *o = &l->o[l->count];
    memset(o, 0, sizeof *o);
    if (!try_file(l, path, o, why)) return -1;
    for (int i = 0; i < l->count; i++)
        if (!l->o[i].missing && strcmp(l->o[i].real, o->real) == 0) return i;
    int at = l->count++;
    if (!l->machine) l->machine = o->elf.machine, l->bits = o->elf.bits;
    o->parent = parent;
    st_put(o->name, sizeof o->name, "%s", short_name(o));
    st_put(o->how, sizeof o->how, "%s", how);
    st_copy_at(l->m, o->path, &o->copy);
    complete(l, at, false);
    return at;
}

int st_loader_dlopen(st_loader *l, const char *name, int from)
{
    int before = l->count, at = ask(l, name, from, true);
    complete(l, before, true);
    return at;
}
