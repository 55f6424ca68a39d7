/* SPDX-License-Identifier: Apache-2.0 */
/* for_python.c - what `import torch` and its like load in a given Python: its package folders in the order of sys.path, then the libraries
 * as the package's own start-up code opens them (torch/__init__.py: libtorch_global_deps.so, else a list of preloads; then torch._C). */
#include "doctor/for.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATHS = 16 };
typedef struct paths { /* sys.path, package folders only */
    int n;
    char dir[MAX_PATHS][256];
} paths;

static void add_path(st_for *f, paths *p, const char *dir)
{
    struct stat s;
    if (p->n == MAX_PATHS || strlen(dir) >= sizeof p->dir[0] || !st_root_stat(f->d->m.root, dir, &s) ||
        !S_ISDIR(s.st_mode))
        return;
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->dir[i], dir) == 0) return;
    strcpy(p->dir[p->n++], dir);
}

static void add_lib(st_for *f, paths *p, const char *prefix, const char *version)
{
    static const char *const forms[][2] = {{"lib", "site-packages"},
                                           {"lib64", "site-packages"},
                                           {"local/lib", "dist-packages"},
                                           {"lib", "dist-packages"}};
    char dir[600];
    for (int i = 0; i < ST_COUNT(forms); i++) {
        st_put(dir, sizeof dir, "%s/%s/python%s/%s", prefix, forms[i][0], version, forms[i][1]);
        add_path(f, p, dir);
    }
    st_put(dir, sizeof dir, "%s/lib/python3/dist-packages", prefix);
    add_path(f, p, dir);
}

/* "3.12" from the file's name, from pyvenv.cfg, from the libpython that it needs, from the folders beside it */
static bool python_version(st_for *f, const char *real, const char *prefix, char *out, size_t n)
{
    const char *name = strrchr(real, '/') + 1, *v = strncmp(name, "python", 6) == 0 ? name + 6 : "";
    char path[600], *text;
    if (strchr(v, '.')) return st_put(out, n, "%.8s", v), true;
    st_put(path, sizeof path, "%s/pyvenv.cfg", prefix);
    if ((text = st_root_read(f->d->m.root, path, 16384, NULL)) != NULL) {
        const char *at = strstr(text, "version");
        int major = 0, minor = 0;
        while (at && !isdigit((unsigned char)*at) && *at && *at != '\n') at++;
        bool good = at && sscanf(at, "%d.%d", &major, &minor) == 2 && major == 3;
        free(text);
        if (good) return st_put(out, n, "%d.%d", major, minor), true;
    }
    st_elf e;
    int fd = st_root_openfile(f->d->m.root, real);
    bool good = fd >= 0 && st_elf_read(fd, &e, NULL);
    if (fd >= 0) close(fd);
    for (int i = 0; good && i < e.needed_count; i++)
        if (strncmp(e.needed[i], "libpython3.", 11) == 0) {
            st_put(out, n, "3.%.*s", (int)strspn(e.needed[i] + 11, "0123456789"), e.needed[i] + 11);
            return true;
        }
    st_list l;
    st_put(path, sizeof path, "%s/lib", prefix);
    bool found = false;
    if (st_root_list(f->d->m.root, path, &l)) {
        for (int i = 0; i < l.n;
             i++) /* sorted: the last one is taken, 3.9 before 3.10 does not matter with one Python */
            if (strncmp(l.name[i], "python3.", 8) == 0) st_put(out, n, "%.8s", l.name[i] + 6), found = true;
        st_list_free(&l);
    }
    return found;
}

static bool find_paths(st_for *f, const char *python, paths *p, char *version, size_t vn)
{
    char real[ST_PATH], prefix[256], base[256], path[600];
    if (!st_root_resolve(f->d->m.root, python, real)) return false;
    const char *bin = strrchr(python, '/');
    st_put(prefix, sizeof prefix, "%.*s", (int)(bin - python), python);
    char *cut = strrchr(prefix, '/');
    if (cut) *cut = 0;
    bin = strrchr(real, '/');
    st_put(base, sizeof base, "%.*s", (int)(bin - real), real);
    if ((cut = strrchr(base, '/')) != NULL) *cut = 0;
    if (!python_version(f, real, prefix, version, vn) && !python_version(f, real, base, version, vn))
        return false;
    const char *extra = st_environ(&f->d->m, "PYTHONPATH"), *home = st_environ(&f->d->m, "HOME");
    while (extra && *extra) {
        size_t k = strcspn(extra, ":");
        st_put(path, sizeof path, "%.*s", k < sizeof path ? (int)k : 0, extra);
        if (path[0] == '/') add_path(f, p, path);
        extra += k;
        if (*extra) extra++;
    }
    st_put(path, sizeof path, "%s/pyvenv.cfg", prefix);
    char *config = st_root_read(f->d->m.root, path, 16384, NULL);
    const char *share = config ? strstr(config, "include-system-site-packages") : NULL,
               *end = share ? strchr(share, '\n') : NULL, *yes = share ? strstr(share, "true") : NULL;
    bool alone = config && !(yes && (!end || yes < end));
    free(config);
    if (!alone && home && *home == '/' && !st_environ(&f->d->m, "PYTHONNOUSERSITE")) {
        st_put(path, sizeof path, "%s/.local", home);
        add_lib(f, p, path, version);
    }
    add_lib(f, p, prefix, version);
    if (!alone && strcmp(base, prefix) != 0) add_lib(f, p, base, version);
    if (!alone) add_lib(f, p, "/usr/local", version);
    return true;
}

/* the first file of dir whose name begins with head and holds ".so" */
static bool file_like(st_for *f, const char *dir, const char *head, char *out, size_t n)
{
    st_list l;
    bool found = false;
    if (!st_root_list(f->d->m.root, dir, &l)) return false;
    for (int i = 0; i < l.n && !found; i++)
        if (strncmp(l.name[i], head, strlen(head)) == 0 && strstr(l.name[i], ".so")) {
            st_put(out, n, "%s/%s", dir, l.name[i]);
            found = true;
        }
    st_list_free(&l);
    return found;
}

/* torch/__init__.py, _preload_cuda_deps: the first match of nvidia/FOLDER/lib/HEAD* (cu13 wheels share a folder) along sys.path */
static void preload(st_for *f, st_loader *l, const paths *p, const char *folder, const char *head)
{
    static const char *const folders[] = {NULL, "cu13", "cu12"};
    char dir[400], path[600];
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < ST_COUNT(folders); k++) {
            st_put(dir, sizeof dir, "%s/nvidia/%s/lib", p->dir[i], k ? folders[k] : folder);
            if (file_like(f, dir, head, path, sizeof path) &&
                st_loader_add(l, path, 0, "preloaded by torch/__init__.py", NULL) >= 0)
                return;
        }
}

static bool any_missing(const st_loader *l, int first)
{
    for (int i = first; i < l->count; i++)
        if (l->o[i].missing && !l->o[i].later) return true;
    return false;
}

static void import_torch(st_for *f, st_group *g, const paths *p, const char *site)
{
    static const char *const order[][2] = {{"cublas", "libcublas.so."},
                                           {"cublas", "libcublasLt.so."},
                                           {"cudnn", "libcudnn.so."},
                                           {"cuda_nvrtc", "libnvrtc.so."},
                                           {"cuda_nvrtc", "libnvrtc-builtins.so."},
                                           {"cuda_runtime", "libcudart.so."},
                                           {"cuda_cupti", "libcupti.so."},
                                           {"cufft", "libcufft.so."},
                                           {"curand", "libcurand.so."},
                                           {"nvjitlink", "libnvJitLink.so."},
                                           {"cusparse", "libcusparse.so."},
                                           {"cusparselt", "libcusparseLt.so."},
                                           {"cusolver", "libcusolver.so."},
                                           {"nccl", "libnccl.so."},
                                           {"nvshmem", "libnvshmem_host.so."}};
    st_loader *l = &g->l;
    char path[600];
    st_put(path, sizeof path, "%s/torch/lib/libtorch_global_deps.so", site);
    int before = l->count;
    if (st_root_exists(f->d->m.root, path)) {
        st_loader_add(l, path, 0, "opened by torch/__init__.py", NULL);
        if (any_missing(
                l,
                before)) { /* the loader refuses the whole: torch preloads from the wheels and opens it again */
            l->count = before;
            for (int i = 0; i < ST_COUNT(order); i++) preload(f, l, p, order[i][0], order[i][1]);
            st_loader_add(l, path, 0, "opened by torch/__init__.py", NULL);
        } else {
            int at = st_loader_find(l, "libcudart.so.12");
            if (at >= 0 && strstr(l->o[at].path, "nvidia/cuda_runtime/lib/")) {
                preload(f, l, p, "cuda_nvrtc", "libnvrtc.so.");
                preload(f, l, p, "cuda_nvrtc", "libnvrtc-builtins.so.");
                preload(f, l, p, "nvjitlink", "libnvJitLink.so.");
            }
        }
    }
    char dir[400];
    st_put(dir, sizeof dir, "%s/torch", site);
    if (file_like(f, dir, "_C.", path, sizeof path)) st_loader_add(l, path, 0, "import torch._C", NULL);
    st_put(path, sizeof path, "%s/torch/lib/libtorch_cuda.so", site);
    int cuda =
        st_root_exists(f->d->m.root, path) ? st_loader_add(l, path, 0, "needed by torch._C", NULL) : -1;
    /* opened by name at the first fused kernel and the first call of torch.linalg; they need NVRTC and cuSOLVER */
    static const char *const later[] = {"libcaffe2_nvrtc.so", "libtorch_cuda_linalg.so"};
    for (int i = 0; i < ST_COUNT(later); i++) {
        st_put(path, sizeof path, "%s/torch/lib/%s", site, later[i]);
        if (cuda >= 0 && st_root_exists(f->d->m.root, path)) st_loader_dlopen(l, later[i], cuda);
    }
}

static const char *version_of(st_for *f, const char *site, const char *package)
{
    char real[ST_PATH];
    if (!st_root_resolve(f->d->m.root, site, real)) return "";
    for (int i = 0; i < f->d->m.site_count; i++)
        if (strcmp(f->d->m.sites[i].path, real) == 0) {
            const char *v = st_dist_version(&f->d->m.sites[i], package);
            return v ? v : "";
        }
    return "";
}

bool st_for_python(st_for *f, const char *python, char *why, size_t n)
{
    static const struct {
        const char *package, *import, *dir, *head;
    } packages[] = {{"torch", "torch", "torch", "_C."},
                    {"jax-cuda13-plugin", "jax", "jax_plugins/xla_cuda13", "xla_cuda_plugin"},
                    {"jax-cuda12-plugin", "jax", "jax_plugins/xla_cuda12", "xla_cuda_plugin"},
                    {"tensorflow", "tensorflow", "tensorflow", "libtensorflow_cc"},
                    {"onnxruntime-gpu", "onnxruntime", "onnxruntime/capi", "libonnxruntime_providers_cuda"},
                    {"cupy-cuda13x", "cupy", "cupy_backends/cuda/libs", "cublas"},
                    {"cupy-cuda12x", "cupy", "cupy_backends/cuda/libs", "cublas"}};
    paths p = {0};
    char version[16], path[600], dir[500], title[160];
    if (!find_paths(f, python, &p, version, sizeof version)) {
        st_put(why, n, "%.200s: which version of Python it is cannot be told", python);
        return false;
    }
    size_t used = strlen(f->note);
    st_put(f->note + used, sizeof f->note - used, "%sPython %s", used ? "; " : "", version);
    for (int i = 0; i < p.n; i++) {
        used = strlen(f->note);
        st_put(f->note + used, sizeof f->note - used, "%s%s", i ? ":" : ", packages in ", p.dir[i]);
    }
    bool seen_cupy = false;
    for (int k = 0; k < ST_COUNT(packages); k++)
        for (int i = 0; i < p.n; i++) {
            st_put(dir, sizeof dir, "%s/%s", p.dir[i], packages[k].dir);
            bool torch = k == 0 && st_root_exists(f->d->m.root, dir),
                 cupy = !strcmp(packages[k].import, "cupy");
            if (!torch && !file_like(f, dir, packages[k].head, path, sizeof path)) continue;
            if (cupy && seen_cupy) break;
            seen_cupy |= cupy;
            st_put(title, sizeof title, "import %s (%s, in %.100s)", packages[k].import,
                   version_of(f, p.dir[i], packages[k].package), p.dir[i]);
            st_group *g = st_for_group(f, title);
            if (!g) break;
            st_loader_add(&g->l, python, -1, "the program", NULL);
            if (torch)
                import_torch(f, g, &p, p.dir[i]);
            else
                st_loader_add(&g->l, path, 0, "import", NULL);
            st_for_later(&g->l);
            break; /* the first along sys.path is the one */
        }
    if (f->count == 0) {
        st_put(title, sizeof title, "no torch, jax, tensorflow, onnxruntime or cupy; the program itself");
        st_group *g = st_for_group(f, title);
        if (g) st_loader_add(&g->l, python, -1, "the program", NULL);
    }
    return true;
}
