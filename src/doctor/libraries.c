/* SPDX-License-Identifier: Apache-2.0 */
/* libraries.c - cuBLAS, cuDNN, NCCL, NVRTC and their neighbours: broken copies, mixtures of versions, copies that hide others. */
#include "doctor/elf.h"
#include "doctor/machine.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void directory(const st_copy *c, char *out, size_t n)
{
    const char *slash = strrchr(c->path, '/');
    st_put(out, n, "%.*s", (int)(slash ? slash - c->path : 0), c->path);
}

static bool same_directory(const st_copy *a, const st_copy *b)
{
    char x[256], y[256];
    directory(a, x, sizeof x);
    directory(b, y, sizeof y);
    return a->route == b->route && strcmp(x, y) == 0;
}

static bool is_cudnn(const st_copy *c) { return strncmp(c->stem, "libcudnn", 8) == 0; }

/* the number behind ".so." of the loader's name */
static int soname_major(const st_copy *c)
{
    const char *so = strstr(c->name, ".so.");
    return so ? atoi(so + 4) : 0;
}

/* "9.10.2.21" and "9.10.2" are one release */
static bool same_release(const char *a, const char *b)
{
    int x[3] = {0}, y[3] = {0};
    sscanf(a, "%d.%d.%d", x, x + 1, x + 2);
    sscanf(b, "%d.%d.%d", y, y + 1, y + 2);
    return x[0] == y[0] && x[1] == y[1] && x[2] == y[2];
}

static void list_copies(st_doctor *d)
{
    static const char *const shown[] = {"libcudart", "libcublas", "libcudnn", "libnccl", "libnvrtc"};
    const st_machine *m = &d->m;
    int n = 0;
    for (int s = 0; s < ST_COUNT(shown); s++)
        for (int i = 0; i < m->copy_count; i++) {
            const st_copy *c = &m->copies[i];
            if (strcmp(c->stem, shown[s]) != 0 || c->broken || c->damaged || c->narrow ||
                !strstr(c->name, ".so."))
                continue;
            bool again = false; /* the same file by an earlier route */
            for (int j = 0; j < i; j++)
                again |= strcmp(m->copies[j].real, c->real) == 0 && strcmp(m->copies[j].stem, c->stem) == 0;
            if (again || n++ >= 24) continue;
            st_finding *f =
                st_report(d, s == 0 ? ST_RUNTIME : ST_LIBRARIES, ST_FINDING_OK, "copy", "%s %s (%s)", c->name,
                          c->version[0] ? c->version : "of unknown version", st_route_names[c->route]);
            const char *from = !strcmp(c->version_from, "name")        ? "; version from the file's name"
                               : !strcmp(c->version_from, "file")      ? "; version from the file itself"
                               : !strcmp(c->version_from, "metadata")  ? "; version from the package"
                               : !strcmp(c->version_from, "neighbour") ? "; version from its neighbour"
                                                                       : "";
            st_evidence(f, "%s%s", c->real, from);
        }
}

static void broken_copies(st_doctor *d)
{
    const st_machine *m = &d->m;
    int said = 0;
    for (int i = 0; i < m->copy_count && said < 4; i++) {
        const st_copy *c = &m->copies[i];
        if ((!c->broken && !c->damaged) || c->narrow || !strcmp(c->stem, "libcuda") ||
            !strncmp(c->stem, "libnvidia-", 10))
            continue;
        const st_copy *chosen = st_loader_choice(m, c->name);
        bool used = chosen == c || (c->route == ROUTE_WHEEL && c->site >= 0 && m->sites[c->site].active) ||
                    (c->broken && !chosen && c->route <= ROUTE_DEFAULT);
        used = used && st_doctor_has_gpu(d);
        st_finding *f = st_report(d, ST_LIBRARIES, used ? ST_FINDING_FAULT : ST_FINDING_WARNING,
                                  c->broken ? "broken_link" : "damaged_library", "%s %s", c->path,
                                  c->broken ? "is a link whose target is missing" : c->damaged);
        st_evidence(f, "%s, found by %s", c->real, st_route_names[c->route]);
        if (c->route == ROUTE_WHEEL)
            st_fix(f, "pip install --force-reinstall --no-deps --no-cache-dir the package that owns it (pip "
                      "show -f names it)");
        else
            st_fix(
                f,
                "reinstall the package that owns it (dpkg -S %s) or remove the left-over, then sudo ldconfig",
                c->path);
        said++;
    }
}

/* cp without -P makes full copies of a library's links; the next update then leaves the old one behind */
static void flattened_links(st_doctor *d)
{
    const st_machine *m = &d->m;
    for (int i = 0; i < m->copy_count; i++) {
        const st_copy *c = &m->copies[i];
        if (!c->flattened || c->route == ROUTE_WHEEL || m->wsl) continue;
        st_finding *f = st_report(
            d, ST_LIBRARIES, ST_FINDING_NOTE, "flattened_link",
            "%s is a copy where a link belongs: an update of the library will not reach it", c->path);
        st_evidence(f, "%s and a file of its full name beside it are both regular files", c->path);
        st_fix(f, "replace it by a link (ln -sf), or install again with cp -P or the package");
        return;
    }
}

/* ---- cuDNN ------------------------------------------------------------------------------------------------------------- */
static void mix(st_doctor *d, const st_copy *a, const st_copy *b, const char *how)
{
    st_finding *f = st_report(d, ST_LIBRARIES, ST_FINDING_FAULT, "cudnn_mix",
                              "two cuDNN releases get mixed in one process: %s %s and %s %s (%s)", a->name,
                              a->version, b->name, b->version, how);
    st_evidence(f, "%s (%s) and %s (%s)", a->path, st_route_names[a->route], b->path,
                st_route_names[b->route]);
    if (b->route == ROUTE_ENV)
        st_fix(f, "unset LD_LIBRARY_PATH, or take %.*s out of it", (int)(strrchr(b->path, '/') - b->path),
               b->path);
    else if (a->route == ROUTE_WHEEL)
        st_fix(f,
               "remove the system copy (sudo apt remove 'libcudnn9*'), or raise the wheel to a complete "
               "release: pip install -U nvidia-cudnn-cu%s",
               st_dist_version(&d->m.sites[a->site], "nvidia-cudnn-cu12") ? "12" : "13");
    else
        st_fix(f, "remove every libcudnn* in %.*s and install one release whole",
               (int)(strrchr(a->path, '/') - a->path), a->path);
    st_avoid(
        f, "reinstalling the same wheel, CUDA or the driver: the files are whole, the mixture is the fault");
}

static bool mixed_directory(st_doctor *d)
{
    const st_machine *m = &d->m;
    for (int i = 0; i < m->copy_count; i++)
        for (int j = i + 1; j < m->copy_count; j++) {
            const st_copy *a = &m->copies[i], *b = &m->copies[j];
            if (!is_cudnn(a) || !is_cudnn(b) || soname_major(a) != soname_major(b) || !a->version[0] ||
                !b->version[0])
                continue;
            if (a->route == ROUTE_TOOLKIT || !same_directory(a, b) || same_release(a->version, b->version) ||
                a->broken || b->broken)
                continue;
            mix(d, a, b, "one directory holds both");
            return true;
        }
    return false;
}

/* The sub-libraries are opened by their soname: LD_LIBRARY_PATH comes before the shim's own $ORIGIN. */
static bool path_mixes_wheel(st_doctor *d)
{
    const st_machine *m = &d->m;
    for (int i = 0; i < m->copy_count; i++)
        for (int j = 0; j < m->copy_count; j++) {
            const st_copy *a = &m->copies[i], *b = &m->copies[j];
            if (!is_cudnn(a) || !is_cudnn(b) || a->route != ROUTE_WHEEL || b->route != ROUTE_ENV ||
                !m->sites[a->site].active)
                continue;
            if (soname_major(a) != soname_major(b) || !a->version[0] || !b->version[0] ||
                same_release(a->version, b->version))
                continue;
            mix(d, a, b, "LD_LIBRARY_PATH is searched before the wheel's own folder");
            return true;
        }
    return false;
}

/* A wheel without one of the sub-libraries of its release takes the system's. */
static bool incomplete_wheel(st_doctor *d)
{
    const st_machine *m = &d->m;
    const st_table *t = st_facts_table(m->facts, "cudnn_libs");
    for (int i = 0; i < m->copy_count; i++) {
        const st_copy *shim = &m->copies[i];
        if (shim->route != ROUTE_WHEEL || strcmp(shim->stem, "libcudnn") || !m->sites[shim->site].active ||
            !shim->version[0])
            continue;
        for (int k = 0; k < t->rows; k++) {
            const char *name = st_table_get(t, k, "library"), *since = st_table_get(t, k, "since");
            if (atoi(st_table_get(t, k, "major")) != soname_major(shim) ||
                strcmp(st_table_get(t, k, "role"), "sub-library") || !isdigit((unsigned char)*since))
                continue;
            if (strstr(since, "or earlier") || st_version_cmp(shim->version, since) < 0) continue;
            bool have = false;
            for (int j = 0; j < m->copy_count; j++)
                have |= same_directory(shim, &m->copies[j]) && !strcmp(m->copies[j].name, name);
            if (have) continue;
            const st_copy *other = st_loader_choice(m, name);
            if (other && other->version[0] && !same_release(other->version, shim->version)) {
                mix(d, shim, other, "the wheel lacks this sub-library, so the loader takes the system's");
                return true;
            }
            st_finding *f = st_report(d, ST_LIBRARIES, ST_FINDING_WARNING, "cudnn_incomplete",
                                      "the cuDNN wheel %s lacks %s", shim->version, name);
            st_evidence(f, "%s", shim->path);
            st_fix(f, "pip install --force-reinstall --no-deps the nvidia-cudnn wheel, or a release that has "
                      "the file (9.21 or later has libcudnn_engines_tensor_ir)");
        }
    }
    return false;
}

static void cudnn_against_gpu(st_doctor *d)
{
    const st_machine *m = &d->m;
    if (!m->oldest_cc || m->oldest_cc >= 75) return;
    for (int i = 0; i < m->copy_count; i++) {
        const st_copy *c = &m->copies[i];
        if (strcmp(c->stem, "libcudnn") || !c->version[0] || st_version_cmp(c->version, "9.11") < 0) continue;
        bool used = c->route == ROUTE_WHEEL ? m->sites[c->site].active : st_loader_choice(m, c->name) == c;
        st_finding *f =
            st_report(d, ST_LIBRARIES, used ? ST_FINDING_FAULT : ST_FINDING_NOTE, "cudnn_drops_gpu",
                      "cuDNN %s no longer supports compute capability %d.%d; 9.10.2 is the last that does",
                      c->version, m->oldest_cc / 10, m->oldest_cc % 10);
        st_evidence(f, "%s", c->real);
        st_fix(
            f,
            c->route == ROUTE_WHEEL
                ? "install a torch build with CUDA 12.6: pip install torch --index-url "
                  "https://download.pytorch.org/whl/cu126 (it brings cuDNN 9.10.2)"
                : "sudo apt install libcudnn9-cuda-12=9.10.2.21-1 && sudo apt-mark hold libcudnn9-cuda-12");
        st_avoid(f, "a newer driver or toolkit");
        return;
    }
}

/* ---- copies that hide others ------------------------------------------------------------------------------------------- */
/* "12.4.127" and "12.4.99" are of one minor version */
static bool same_minor(const char *a, const char *b)
{
    int x[2] = {0}, y[2] = {0};
    sscanf(a, "%d.%d", x, x + 1);
    sscanf(b, "%d.%d", y, y + 1);
    return x[0] == y[0] && x[1] == y[1];
}

/* Where in LD_LIBRARY_PATH a file's folder stands; INT_MAX: nowhere. */
static int place_in_path(const st_machine *m, const char *file)
{
    const char *p = st_environ(m, "LD_LIBRARY_PATH");
    const size_t folder = (size_t)(strrchr(file, '/') - file);
    for (int i = 0; p && *p; i++) {
        const size_t whole = strcspn(p, ":;");
        size_t n = whole;
        while (n > 1 && p[n - 1] == '/') n--;
        if (n == folder && !strncmp(p, file, n)) return i;
        p += whole + (p[whole] != 0);
    }
    return INT_MAX;
}

/* PyTorch names most of its libraries itself and finds them by DT_RPATH, before LD_LIBRARY_PATH. nvJitLink is only asked for by the
 * wheels' own libraries, which have a RUNPATH: there LD_LIBRARY_PATH wins. */
static void shadows(st_doctor *d)
{
    static const char *const stems[] = {"libnvJitLink", "libcublasLt", "libcusparse",
                                        "libnvrtc",     "libnccl",     "libcublas"};
    const st_machine *m = &d->m;
    for (int s = 0; s < ST_COUNT(stems); s++)
        for (int i = 0; i < m->copy_count; i++)
            for (int j = 0; j < m->copy_count; j++) {
                const st_copy *w = &m->copies[i], *e = &m->copies[j];
                if (w->route != ROUTE_WHEEL || e->route != ROUTE_ENV || strcmp(w->stem, stems[s]) ||
                    strcmp(w->name, e->name) || !m->sites[w->site].active)
                    continue;
                if (!w->version[0] || !e->version[0] || st_version_cmp(e->version, w->version) >= 0 ||
                    same_minor(e->version, w->version) ||
                    place_in_path(m, w->path) <
                        place_in_path(m, e->path)) /* the wheel's own is found first */
                    continue;
                st_finding *f = st_report(
                    d, ST_LIBRARIES, s == 0 ? ST_FINDING_FAULT : ST_FINDING_WARNING, "shadowed",
                    "LD_LIBRARY_PATH puts %s %s before the wheel's own %s%s", e->name, e->version, w->version,
                    s == 0 ? " (undefined symbol at import)" : " for programs other than PyTorch");
                st_evidence(f, "%s hides %s: same soname, and LD_LIBRARY_PATH is searched before RUNPATH",
                            e->path, w->path);
                st_fix(f, "unset LD_LIBRARY_PATH, or take %.*s out of it",
                       (int)(strrchr(e->path, '/') - e->path), e->path);
                st_avoid(f, "reinstalling PyTorch or CUDA: both are whole; wheels need no LD_LIBRARY_PATH");
                return;
            }
    /* libcublas and libcublasLt of two releases by the same route */
    for (int i = 0; i < m->copy_count; i++) {
        const st_copy *a = &m->copies[i];
        if (strcmp(a->stem, "libcublas") || a->route > ROUTE_DEFAULT || !a->version[0] ||
            st_loader_choice(m, a->name) != a)
            continue;
        char name[80];
        st_put(name, sizeof name, "libcublasLt%s", a->name + 9);
        const st_copy *b = st_loader_choice(m, name);
        if (!b || !b->version[0] || same_release(a->version, b->version)) continue;
        st_finding *f = st_report(d, ST_LIBRARIES, ST_FINDING_FAULT, "shadowed",
                                  "%s %s and %s %s are of two releases (undefined symbol in libcublas)",
                                  a->name, a->version, b->name, b->version);
        st_evidence(f, "%s (%s) and %s (%s)", a->path, st_route_names[a->route], b->path,
                    st_route_names[b->route]);
        st_fix(f, "take one of the two directories off the path, so that both come from one toolkit");
        return;
    }
}

/* Packages that hold nothing: nvidia-*-cu110..cu116 0.0.1.dev5 and nvidia-cublas-cu13 0.0.1. */
static void fake_wheels(st_doctor *d)
{
    const st_machine *m = &d->m;
    for (int i = 0; i < m->site_count; i++)
        for (int k = 0; k < m->sites[i].dist_count; k++) {
            const st_dist *x = &m->sites[i].dists[k];
            if (strncmp(x->name, "nvidia-", 7) || strncmp(x->version, "0.0.", 4)) continue;
            st_finding *f = st_report(
                d, ST_LIBRARIES, m->sites[i].active ? ST_FINDING_FAULT : ST_FINDING_WARNING, "fake_wheel",
                "the package %s %s is an empty placeholder, not the library", x->name, x->version);
            st_evidence(f, "%s/%s-%s.dist-info", m->sites[i].path, x->name, x->version);
            st_fix(f,
                   "pip uninstall %s; CUDA 13 packages have no suffix (nvidia-cublas), CUDA 12 ones end in "
                   "-cu12",
                   x->name);
            return;
        }
}

static void double_nccl(st_doctor *d)
{
    const st_machine *m = &d->m;
    for (int i = 0; i < m->site_count; i++) {
        int n = 0;
        char list[128] = "";
        for (int k = 0; k < m->sites[i].dist_count; k++) {
            const st_dist *x = &m->sites[i].dists[k];
            if (strncmp(x->name, "nvidia-nccl-cu", 14) || !strncmp(x->version, "0.0.", 4)) continue;
            size_t used = strlen(list);
            st_put(list + used, sizeof list - used, "%s%s %s", n++ ? ", " : "", x->name, x->version);
        }
        if (n < 2) continue;
        st_finding *f = st_report(d, ST_LIBRARIES, m->sites[i].active ? ST_FINDING_FAULT : ST_FINDING_WARNING,
                                  "double_nccl", "two NCCL wheels write into one folder: %s", list);
        st_evidence(f, "%s/nvidia/nccl", m->sites[i].path);
        st_fix(f, "pip uninstall both, then reinstall the one of torch's CUDA major");
        return;
    }
}

void st_probe_libraries(st_doctor *d)
{
    list_copies(d);
    broken_copies(d);
    flattened_links(d);
    if (!mixed_directory(d) && !path_mixes_wheel(d)) incomplete_wheel(d);
    cudnn_against_gpu(d);
    shadows(d);
    fake_wheels(d);
    double_nccl(d);
    bool any = false;
    for (int i = 0; i < d->count; i++) any |= d->findings[i].layer == ST_LIBRARIES;
    if (!any)
        st_report(d, ST_LIBRARIES, ST_FINDING_ABSENT, "no_libraries",
                  "no copy of cuBLAS, cuDNN, NCCL or NVRTC");
}

/* ---- the host's BLAS ------------------------------------------------------------------------------------------------------ */
typedef struct wanted {
    const st_table *t;
    char *seen;
} wanted;
static void see_symbol(const char *name, void *arg)
{
    wanted *w = arg;
    for (int i = 0; i < w->t->rows; i++)
        if (!w->seen[i] && strcmp(st_table_at(w->t, i, 0), name) == 0) w->seen[i] = 1;
}

void st_probe_blas(st_doctor *d)
{
    static const char *const places[] = {"/usr/lib/x86_64-linux-gnu/libblas.so.3",
                                         "/usr/lib/aarch64-linux-gnu/libblas.so.3", "/usr/lib64/libblas.so.3",
                                         "/usr/lib/libblas.so.3"};
    st_machine *m = &d->m;
    for (int k = 0; k < ST_COUNT(places); k++) {
        struct stat s;
        if (!st_root_lstat(m->root, places[k], &s)) continue;
        int fd = st_root_openfile(m->root, places[k]);
        st_finding *f;
        int error = errno;
        if (fd < 0 && error != ENOENT && error != ENOTDIR && error != ELOOP && error != EISDIR &&
            error != EINVAL) {
            f = st_report(d, ST_LIBRARIES, ST_FINDING_NOTE, "blas_unseen",
                          "libblas.so.3 could not be looked at: %s", strerror(error));
            st_evidence(f, "%s", places[k]);
            return;
        }
        if (fd < 0 && (error == EISDIR || error == EINVAL)) {
            f = st_report(d, ST_LIBRARIES, ST_FINDING_FAULT, "blas_broken",
                          "libblas.so.3 is no regular file");
            st_evidence(f, "%s", places[k]);
            st_fix(f, "sudo apt install --reinstall libblas3");
            return;
        }
        if (fd < 0) {
            f = st_report(d, ST_LIBRARIES, ST_FINDING_FAULT, "blas_broken", "libblas.so.3 leads nowhere");
            st_evidence(f, "%s", places[k]);
            st_fix(f, "sudo update-alternatives --config libblas.so.3-x86_64-linux-gnu, or sudo apt install "
                      "--reinstall libblas3");
            return;
        }
        wanted w = {st_facts_table(m->facts, "blas_symbols"), NULL};
        w.seen = calloc((size_t)w.t->rows + 1, 1);
        bool read = w.seen && st_elf_symbols(fd, see_symbol, &w);
        st_elf head;
        const char *why = NULL;
        if (!read && st_elf_read(fd, &head, &why)) why = NULL;
        close(fd);
        int fortran = 0, cblas = 0, total = 0;
        bool needed = false;
        char beside[96];
        st_put(beside, sizeof beside, "%.*s/libcblas.so.3", (int)(strrchr(places[k], '/') - places[k]),
               places[k]);
        bool apart = st_root_exists(m->root, beside);
        char list[200] = "", real[ST_PATH] = "";
        for (int i = 0; i < w.t->rows && read; i++) {
            bool c = strcmp(st_table_at(w.t, i, 1), "cblas") == 0;
            total++;
            if (w.seen[i]) continue;
            size_t used = strlen(list);
            if (used < 150)
                st_put(list + used, sizeof list - used, "%s%s", used ? " " : "", st_table_at(w.t, i, 0));
            c ? cblas++ : fortran++;
            /* error hooks: OpenBLAS lacks some, hardly anything asks for them. Fedora and Arch keep CBLAS in a library of its own;
             * Debian's programs expect it here. */
            bool hook = strstr(st_table_at(w.t, i, 0), "xerbla") != NULL;
            needed |= !hook && (!c || (st_debian_like(m) && !apart));
        }
        free(w.seen);
        st_root_resolve(m->root, places[k], real);
        if (!read) {
            f = st_report(d, ST_LIBRARIES, ST_FINDING_WARNING, "blas_unreadable", "libblas.so.3 %s",
                          why ? why : "has no readable symbol table");
            st_evidence(f, "%s", real);
        } else if (fortran + cblas) {
            f = st_report(
                d, ST_LIBRARIES, needed ? ST_FINDING_FAULT : ST_FINDING_NOTE, "blas_incomplete",
                "libblas.so.3 lacks %d of the %d symbols of the BLAS interface (%d Fortran, %d CBLAS)",
                fortran + cblas, total, fortran, cblas);
            st_evidence(f, "%s lacks: %s%s", real, list, fortran + cblas > 12 ? " ..." : "");
            st_fix(f, "sudo update-alternatives --config libblas.so.3-x86_64-linux-gnu and choose a complete "
                      "library (reference, OpenBLAS, Strata)");
            st_avoid(
                f,
                "reinstalling NumPy, SciPy, R or Octave: they ask for symbols that the interface promises");
        } else
            st_evidence(st_report(d, ST_LIBRARIES, ST_FINDING_OK, "blas",
                                  "libblas.so.3 has all %d symbols of BLAS and CBLAS", total),
                        "%s", real);
        return;
    }
}
