/* SPDX-License-Identifier: Apache-2.0 */
/* inventory.c - every copy of the GPU stack's libraries, by every route a program may find it, with its version; the CUDA toolkits;
 * the Python package folders. Versions come from the file's real name, else from the file itself, else from the package's metadata. */
#include "doctor/elf.h"
#include "doctor/machine.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const st_route_names[] = {"loader cache", "LD_LIBRARY_PATH", "default directory",
                                      "WSL",          "toolkit",         "stub",
                                      "cuda-compat",  "wheel",           "conda"};
static const char *const stems[] = {"libcuda",      "libnvidia-ml", "libnvidia-ptxjitcompiler",
                                    "libcudart",    "libcublas",    "libcublasLt",
                                    "libnccl",      "libnvrtc",     "libnvrtc-builtins",
                                    "libnvJitLink", "libcusparse",  "libcusolver",
                                    "libcufft",     "libcurand",    "libcusparseLt"};

enum { MAX_LOOKS = 96 }; /* files whose inside is searched for a version: bounds the work on an odd tree */

/* "libcudnn_ops.so.9.10.2" -> stem "libcudnn_ops"; false for files that are not of interest */
static bool stem_of(const char *file, char stem[48])
{
    const char *so = strstr(file, ".so");
    if (!so || so - file >= 48 || (so[3] && so[3] != '.')) return false;
    memcpy(stem, file, (size_t)(so - file));
    stem[so - file] = 0;
    if (strncmp(stem, "libcudnn", 8) == 0) return true;
    for (int i = 0; i < ST_COUNT(stems); i++)
        if (strcmp(stem, stems[i]) == 0) return true;
    return false;
}

/* the version behind ".so." of a real file's name, when it has more than the major number that the soname has too */
static bool version_in_name(const char *real, char *out, size_t n)
{
    const char *base = strrchr(real, '/'), *so = strstr(base ? base : real, ".so.");
    if (!so) return false;
    so += 4;
    if (!strchr(so, '.') || strspn(so, "0123456789.") != strlen(so)) return false;
    st_put(out, n, "%s", so);
    return true;
}

static void examine(st_machine *m, st_copy *c)
{
    char real[ST_PATH];
    bool found = st_root_resolve(m->root, c->path, real);
    int error = errno;
    if (found && strlen(real) < sizeof c->real)
        strcpy(c->real, real);
    else {
        c->broken = !found && (error == ENOENT || error == ELOOP);
        if (!c->broken) c->damaged = "cannot be read";
        st_put(c->real, sizeof c->real, "%s", c->path);
        return;
    }
    for (int i = 0; i < m->copy_count; i++) { /* the same file by another route is read once */
        const st_copy *o = &m->copies[i];
        if (o == c || strcmp(o->real, c->real) || strcmp(o->stem, c->stem)) continue;
        memcpy(c->version, o->version, sizeof c->version);
        c->version_from = o->version_from;
        c->damaged = o->damaged;
        c->narrow = o->narrow;
        return;
    }
    st_elf e;
    int fd = st_root_openfile(m->root, c->real);
    if (fd < 0) {
        c->damaged = errno == EACCES || errno == EPERM    ? "may not be read by this user"
                     : errno == EINVAL || errno == EISDIR ? "is no regular file"
                                                          : "cannot be read";
        return;
    }
    bool named = version_in_name(c->real, c->version, sizeof c->version);
    /* WSL's libcuda.so.1.1 is no driver version */
    if (named && (!strcmp(c->stem, "libcuda") || !strncmp(c->stem, "libnvidia-", 10)) &&
        atoi(c->version) < 100)
        named = false, c->version[0] = 0;
    /* libcudart.so.11.0 and libnvrtc-builtins.so.13.0 are sonames: the name tells the version all the same */
    if (named) c->version_from = "name";
    bool good = st_elf_read(fd, &e, &c->damaged);
    c->narrow = e.bits == 32;
    if (good) {
        c->damaged = NULL;
        if (!named && m->looked_inside++ < MAX_LOOKS) {
            st_elf_version(fd, &e);
            if (e.version[0]) {
                st_put(c->version, sizeof c->version, "%s", e.version);
                c->version_from = "file";
            }
        }
    }
    close(fd);
}

bool st_stem_of(const char *file, char stem[48]) { return stem_of(file, stem); }

void st_copy_at(st_machine *m, const char *path, st_copy *c)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char real[ST_PATH];
    memset(c, 0, sizeof *c);
    c->site = -1;
    c->version_from = "";
    if (strlen(path) >= sizeof c->path || !stem_of(name, c->stem)) {
        c->stem[0] = 0;
        return;
    }
    st_put(c->name, sizeof c->name, "%s", name);
    st_put(c->path, sizeof c->path, "%s", path);
    for (int i = 0; i < m->copy_count && st_root_resolve(m->root, path, real); i++)
        if (strcmp(m->copies[i].real, real) == 0) { /* known, with what the packages say of it */
            *c = m->copies[i];
            st_put(c->path, sizeof c->path, "%s", path);
            return;
        }
    c->route = ROUTE_DEFAULT;
    examine(m, c);
}

static void add_copy(st_machine *m, enum st_route route, const char *dir, const char *file, int order,
                     int site)
{
    char stem[48];
    if (m->copy_count == MAX_COPIES || !stem_of(file, stem)) return;
    st_copy *c = &m->copies[m->copy_count];
    memset(c, 0, sizeof *c);
    c->route = route;
    c->order = order;
    c->site = site;
    c->version_from = "";
    st_put(c->name, sizeof c->name, "%s", file);
    strcpy(c->stem, stem);
    st_put(c->path, sizeof c->path, "%s/%s", dir, file);
    m->copy_count++;
    examine(m, c);
}

/* A directory holds libcudnn.so (for linking), libcudnn.so.9 (what the loader asks for) and libcudnn.so.9.10.2 (the file). One copy
 * is kept for each: the loader's name. Full names are only kept when no shorter one leads to them. */
static bool is_loader_name(const st_list *l, int i)
{
    const char *name = l->name[i], *so = strstr(name, ".so");
    if (!so || !so[3])
        return so && strncmp(name, "libcuda.so", 10) == 0; /* libcuda.so is opened by programs too */
    for (const char *dot = strchr(so + 4, '.'); dot; dot = strchr(dot + 1, '.')) {
        /* a shorter name of the same library in this directory */
        size_t k = (size_t)(dot - name);
        for (int j = 0; j < l->n; j++)
            if (j != i && strncmp(l->name[j], name, k) == 0 && l->name[j][k] == 0) return false;
    }
    return true;
}

/* libcudnn.so.9 and libcudnn.so.9.1.0 that are two regular files */
static bool is_flattened(st_machine *m, const char *dir, const st_list *l, int i)
{
    struct stat s;
    char path[512];
    size_t k = strlen(l->name[i]);
    st_put(path, sizeof path, "%s/%s", dir, l->name[i]);
    if (!strstr(l->name[i], ".so.") || !st_root_lstat(m->root, path, &s) || !S_ISREG(s.st_mode)) return false;
    for (int j = 0; j < l->n; j++) {
        if (strncmp(l->name[j], l->name[i], k) || l->name[j][k] != '.') continue;
        st_put(path, sizeof path, "%s/%s", dir, l->name[j]);
        if (st_root_lstat(m->root, path, &s) && S_ISREG(s.st_mode)) return true;
    }
    return false;
}

static void scan_dir(st_machine *m, enum st_route route, const char *dir, int order, int site)
{
    st_list l;
    if (!st_root_list(m->root, dir, &l)) return;
    char stem[48];
    for (int i = 0; i < l.n; i++) {
        if (!stem_of(l.name[i], stem) || !is_loader_name(&l, i)) continue;
        int before = m->copy_count;
        add_copy(m, route, dir, l.name[i], order, site);
        if (m->copy_count > before) m->copies[before].flattened = is_flattened(m, dir, &l, i);
    }
    st_list_free(&l);
}

typedef struct cache_user {
    st_machine *m;
    int order;
} cache_user;
static void see_cached(const char *name, const char *path, void *arg)
{
    cache_user *u = arg;
    char stem[48], dir[256];
    const char *slash = strrchr(path, '/');
    if (!stem_of(name, stem) || !slash || slash - path >= (long)sizeof dir || strlen(path) >= 256) return;
    st_put(dir, sizeof dir, "%.*s", (int)(slash - path), path);
    int before = u->m->copy_count;
    add_copy(u->m, strstr(path, "/stubs/") ? ROUTE_STUB : ROUTE_CACHE, dir, slash + 1, u->order++, -1);
    if (u->m->copy_count > before) st_put(u->m->copies[before].name, 80, "%s", name);
}

static void scan_env_path(st_machine *m)
{
    const char *p = st_environ(m, "LD_LIBRARY_PATH");
    for (int order = 0; p && *p; order++) {
        size_t k = strcspn(p, ":;");
        char dir[256];
        if (k && k < sizeof dir && *p == '/') {
            st_put(dir, sizeof dir, "%.*s", (int)k, p);
            scan_dir(m, ROUTE_ENV, dir, order, -1);
        }
        p += k;
        if (*p) p++;
    }
}

/* without a readable cache: the directories that ldconfig would put into it, in the order of /etc/ld.so.conf.d */
static void scan_configured(st_machine *m)
{
    st_list l;
    int order = 0;
    if (!st_root_list(m->root, "/etc/ld.so.conf.d", &l)) return;
    for (int i = 0; i < l.n; i++) {
        char path[512];
        size_t k = strlen(l.name[i]);
        if (k < 5 || strcmp(l.name[i] + k - 5, ".conf")) continue;
        st_put(path, sizeof path, "/etc/ld.so.conf.d/%s", l.name[i]);
        char *text = st_root_read(m->root, path, 65536, NULL), *save = NULL;
        for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
             line = strtok_r(NULL, "\n", &save)) {
            line[strcspn(line, " \t\r#")] = 0;
            if (*line == '/' && strlen(line) < 200)
                scan_dir(m, strstr(line, "/stubs") ? ROUTE_STUB : ROUTE_CACHE, line, order++, -1);
        }
        free(text);
    }
    st_list_free(&l);
}

/* wheels: what the file does not say, the package does */
static void versions_of_wheels(st_machine *m)
{
    static const struct {
        const char *stem, *dist;
    } packages[] = {{"libcudnn", "nvidia-cudnn"},         {"libcublas", "nvidia-cublas"},
                    {"libcublasLt", "nvidia-cublas"},     {"libcudart", "nvidia-cuda-runtime"},
                    {"libnccl", "nvidia-nccl"},           {"libnvrtc", "nvidia-cuda-nvrtc"},
                    {"libnvJitLink", "nvidia-nvjitlink"}, {"libcusparse", "nvidia-cusparse"},
                    {"libcusolver", "nvidia-cusolver"}};
    for (int i = 0; i < m->copy_count; i++) {
        st_copy *c = &m->copies[i];
        if (c->route != ROUTE_WHEEL) continue;
        for (int j = 0; j < ST_COUNT(packages); j++) {
            bool cudnn = j == 0 && strncmp(c->stem, "libcudnn", 8) == 0;
            if (!cudnn && strcmp(c->stem, packages[j].stem) != 0) continue;
            const char *v = st_dist_version(&m->sites[c->site], packages[j].dist);
            /* a file that states only major.minor gives way to the package's full version */
            if (v && (!c->version[0] || (!cudnn && strlen(v) > strlen(c->version)))) {
                st_put(c->version, sizeof c->version, "%s", v);
                c->version_from = "metadata";
            }
        }
    }
}

/* cuDNN's sub-libraries cnn and heuristic, its shim, and libcublas do not tell; the library beside them that does came with them */
static void versions_of_neighbours(st_machine *m)
{
    for (int i = 0; i < m->copy_count; i++) {
        st_copy *c = &m->copies[i];
        bool cudnn = strncmp(c->stem, "libcudnn", 8) == 0, cublas = strcmp(c->stem, "libcublas") == 0;
        if (c->version[0] || c->broken || (!cudnn && !cublas)) continue;
        const char *slash = strrchr(c->real, '/');
        for (int j = 0; j < m->copy_count && slash; j++) {
            const st_copy *o = &m->copies[j];
            size_t k = (size_t)(slash - c->real + 1);
            bool kin = cudnn ? strncmp(o->stem, "libcudnn", 8) == 0 : strcmp(o->stem, "libcublasLt") == 0;
            if (!kin || strcmp(o->version_from, "file") || strncmp(o->real, c->real, k) ||
                strchr(o->real + k, '/'))
                continue;
            st_put(c->version, sizeof c->version, "%s", o->version);
            c->version_from = "neighbour";
            break;
        }
    }
}

/* cudart of a toolkit whose files have short names: it belongs to the toolkit around it */
static void versions_of_toolkits(st_machine *m)
{
    for (int i = 0; i < m->copy_count; i++) {
        st_copy *c = &m->copies[i];
        if (c->version[0] || c->broken || c->damaged || strcmp(c->stem, "libcudart")) continue;
        for (int k = 0; k < m->toolkit_count; k++) {
            size_t n = strlen(m->toolkits[k].path);
            if (strncmp(c->real, m->toolkits[k].path, n) || c->real[n] != '/') continue;
            st_put(c->version, sizeof c->version, "%s", m->toolkits[k].version);
            c->version_from = "neighbour";
        }
    }
}

void st_find_copies(st_machine *m)
{
    static const char *const defaults[] = {"/lib/x86_64-linux-gnu",
                                           "/usr/lib/x86_64-linux-gnu",
                                           "/lib/aarch64-linux-gnu",
                                           "/usr/lib/aarch64-linux-gnu",
                                           "/lib64",
                                           "/usr/lib64",
                                           "/lib",
                                           "/usr/lib"};
    scan_env_path(m);
    size_t n;
    char *cache = st_root_read(m->root, "/etc/ld.so.cache", 32 << 20, &n);
    cache_user u = {m, 0};
    if (!cache || !st_ldcache_each(cache, n, see_cached, &u)) scan_configured(m);
    free(cache);
    char seen[ST_COUNT(defaults)][ST_PATH];
    for (int i = 0; i < ST_COUNT(defaults); i++) { /* /lib is mostly a link to /usr/lib: once is enough */
        bool again = !st_root_resolve(m->root, defaults[i], seen[i]);
        for (int j = 0; j < i && !again; j++) again = strcmp(seen[i], seen[j]) == 0;
        if (!again) scan_dir(m, ROUTE_DEFAULT, defaults[i], i, -1);
        if (again) seen[i][0] = 0;
    }
    scan_dir(m, ROUTE_WSL, "/usr/lib/wsl/lib", 0, -1);
    for (int i = 0; i < m->toolkit_count; i++) {
        char dir[300];
        st_put(dir, sizeof dir, "%s/lib64", m->toolkits[i].path);
        scan_dir(m, ROUTE_TOOLKIT, dir, i, -1);
        st_put(dir, sizeof dir, "%s/compat", m->toolkits[i].path);
        scan_dir(m, ROUTE_COMPAT, dir, i, -1);
    }
    for (int i = 0; i < m->site_count; i++) {
        char dir[512];
        st_list l;
        st_put(dir, sizeof dir, "%s/nvidia", m->sites[i].path);
        if (st_root_list(m->root, dir, &l)) {
            for (int j = 0; j < l.n; j++) {
                st_put(dir, sizeof dir, "%s/nvidia/%s/lib", m->sites[i].path, l.name[j]);
                scan_dir(m, ROUTE_WHEEL, dir, j, i);
            }
            st_list_free(&l);
        }
        st_put(dir, sizeof dir, "%s/torch/lib", m->sites[i].path);
        scan_dir(m, ROUTE_WHEEL, dir, 0, i);
        /* <conda prefix>/lib is two levels above lib/python3.x/site-packages */
        char *cut = strstr(m->sites[i].path, "/lib/python3");
        if (!cut) continue;
        st_put(dir, sizeof dir, "%.*s/conda-meta", (int)(cut - m->sites[i].path), m->sites[i].path);
        if (!st_root_exists(m->root, dir)) continue;
        st_put(dir, sizeof dir, "%.*s/lib", (int)(cut - m->sites[i].path), m->sites[i].path);
        scan_dir(m, ROUTE_CONDA, dir, 0, i);
    }
    versions_of_wheels(m);
    versions_of_neighbours(m);
    versions_of_toolkits(m);
}

const st_copy *st_loader_choice(const st_machine *m, const char *name)
{
    static const enum st_route order[] = {ROUTE_ENV, ROUTE_CACHE, ROUTE_DEFAULT};
    for (int r = 0; r < ST_COUNT(order); r++) {
        const st_copy *best = NULL;
        for (int i = 0; i < m->copy_count; i++) {
            const st_copy *c = &m->copies[i];
            bool route = c->route == order[r] || (order[r] == ROUTE_CACHE && c->route == ROUTE_STUB);
            if (route && !c->broken && !c->narrow && strcmp(c->name, name) == 0 &&
                (!best || c->order < best->order))
                best = c;
        }
        if (best) return best;
    }
    return NULL;
}

/* ---- toolkits ---------------------------------------------------------------------------------------------------------- */
static bool json_version(const char *text, const char *key, char *out, size_t n)
{
    char quoted[48];
    st_put(quoted, sizeof quoted, "\"%s\"", key);
    const char *p = text ? strstr(text, quoted) : NULL;
    const char *stop = p ? strchr(p, '}') : NULL;
    p = p ? strstr(p, "\"version\"") : NULL;
    if (!p || !stop || p > stop) return false;
    p += 9;
    p += strcspn(p, "0123456789}");
    st_put(out, n, "%.*s", (int)strspn(p, "0123456789."), p);
    return isdigit((unsigned char)out[0]) != 0;
}

static void read_toolkit(st_machine *m, const char *path, bool is_default)
{
    char file[256], real[ST_PATH];
    if (!st_root_resolve(m->root, path, real) || strlen(real) >= sizeof m->toolkits[0].path) return;
    for (int i = 0; i < m->toolkit_count; i++)
        if (strcmp(m->toolkits[i].path, real) == 0) {
            m->toolkits[i].is_default |= is_default;
            return;
        }
    if (m->toolkit_count == MAX_TOOLKITS) return;
    st_toolkit t = {.is_default = is_default};
    strcpy(t.path, real);
    st_put(file, sizeof file, "%s/version.json", real);
    char *text = st_root_read(m->root, file, 1 << 16, NULL);
    /* early 12.x wrote a date into the first field ("12.1.20230222") */
    if (!json_version(text, "cuda", t.version, sizeof t.version) || strlen(t.version) > 8)
        json_version(text, "cuda_nvcc", t.version, sizeof t.version);
    free(text);
    if (!t.version[0]) {
        st_put(file, sizeof file, "%s/version.txt", real);
        char line[128];
        if (st_root_line(m->root, file, line, sizeof line) && strncmp(line, "CUDA Version ", 13) == 0)
            st_put(t.version, sizeof t.version, "%s", line + 13);
    }
    const char *dash = strrchr(real, '-');
    if (!t.version[0] && dash && isdigit((unsigned char)dash[1]))
        st_put(t.version, sizeof t.version, "%s", dash + 1);
    st_put(file, sizeof file, "%s/bin/nvcc", real);
    t.has_nvcc = st_root_exists(m->root, file);
    if (t.version[0]) m->toolkits[m->toolkit_count++] = t;
}

void st_find_toolkits(st_machine *m)
{
    st_list l;
    read_toolkit(m, "/usr/local/cuda", true);
    if (st_root_list(m->root, "/usr/local", &l)) {
        for (int i = 0; i < l.n; i++) {
            char path[300];
            if (strncmp(l.name[i], "cuda-", 5) || !isdigit((unsigned char)l.name[i][5])) continue;
            st_put(path, sizeof path, "/usr/local/%s", l.name[i]);
            read_toolkit(m, path, false);
        }
        st_list_free(&l);
    }
    read_toolkit(m, "/usr/lib/cuda", false);
    read_toolkit(m, "/opt/cuda", false);
    const char *home = st_environ(m, "CUDA_HOME");
    if (home && *home == '/') read_toolkit(m, home, false);
}
