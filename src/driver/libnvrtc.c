/* SPDX-License-Identifier: Apache-2.0 */
/* libnvrtc.c - the run-time compilers that this machine has: all are found once, and each architecture gets the oldest that knows it, since
 * images of an older compiler run on more drivers (those of 13.x need driver 580).
 *
 * Places: STRATA_NVRTC_LIB alone if set; else the loader's path, the toolkit's folders, the Python wheels of the environment. Nothing is run
 * to find Python's folders: they are where `python3` of the PATH, VIRTUAL_ENV and CONDA_PREFIX say. */
#include "driver/open.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OLDEST = 12000, MOST = 16, FILES = 64 };

static const st_symbol symbols[] = {
#define ST_FN(name, symbol, args) {#symbol, offsetof(st_libnvrtc, name)},
#include "driver/libnvrtc.inc"
#undef ST_FN
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static st_libnvrtc found[MOST]; /* oldest first */
static int count = -1;          /* -1: not looked yet */
static st_tried tried;
static struct {
    dev_t dev;
    ino_t ino;
} seen[FILES];
static int seen_count;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void register_fork(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static void insert(const st_libnvrtc *t)
{
    int i = count;
    if (count == MOST) return;
    for (; i > 0 && found[i - 1].version > t->version; i--) found[i] = found[i - 1];
    found[i] = *t;
    count++;
}

/* Takes the library in when it is one, new, and not too old. */
static void take(void *lib, const char *name)
{
    st_libnvrtc t;
    int major = 0, minor = 0, n = 0;
    struct stat st;
    memset(&t, 0, sizeof t);
    const char *missing = st_fill_table(lib, &t, symbols, ST_COUNT(symbols), false);
    if (missing) {
        st_try_note(&tried, "%s: no function %s", name, missing);
        return;
    }
    st_library_path((const void *)(uintptr_t)t.create, t.path, sizeof t.path);
    if (stat(t.path, &st) == 0) {
        for (int i = 0; i < seen_count; i++)
            if (seen[i].dev == st.st_dev && seen[i].ino == st.st_ino) return;
        if (seen_count < FILES) {
            seen[seen_count].dev = st.st_dev;
            seen[seen_count++].ino = st.st_ino;
        }
    }
    if (t.get_version(&major, &minor) || t.num_archs(&n) || n < 1 || n >= ST_COUNT(t.archs) ||
        t.get_archs(t.archs)) {
        st_try_note(&tried, "%s: does not say its version", t.path);
        return;
    }
    t.version = major * 1000 + minor * 10;
    if (t.version < OLDEST)
        st_try_note(&tried, "%s: version %d.%d, 12.0 is needed", t.path, major, minor);
    else
        insert(&t);
}

static bool take_file(void *arg, const char *path)
{
    (void)arg;
    struct stat st;
    if (stat(path, &st)) return false;
    for (int i = 0; i < seen_count; i++)
        if (seen[i].dev == st.st_dev && seen[i].ino == st.st_ino) return false;
    void *lib = st_try_open(&tried, path);
    if (lib) take(lib, path);
    return count == MOST;
}

static void folder(const char *root, const char *pattern)
{
    if (root && root[0] == '/') st_each_file(root, pattern, take_file, NULL);
}

/* The wheels below one prefix ("/usr", a virtual environment). */
static void prefix(const char *root)
{
    static const char *const sites[] = {"lib/python3*/site-packages", "lib/python3*/dist-packages",
                                        "local/lib/python3*/dist-packages", "lib64/python3*/site-packages"};
    char pattern[160];
    for (int i = 0; i < ST_COUNT(sites); i++) {
        snprintf(pattern, sizeof pattern, "%s/nvidia/cu*/lib/libnvrtc.so.[0-9]*", sites[i]);
        folder(root, pattern);
    }
}

static void python_of_path(void)
{
    const char *path = getenv("PATH");
    char dir[PATH_MAX], real[PATH_MAX];
    while (path && *path) {
        size_t n = strcspn(path, ":");
        if (n && n < sizeof dir - 16) {
            snprintf(dir, sizeof dir, "%.*s/python3", (int)n, path);
            struct stat st;
            if (stat(dir, &st) == 0) {
                snprintf(dir, sizeof dir, "%.*s/..", (int)n, path);
                if (realpath(dir, real)) prefix(real);
                return; /* the first python3 is the one that runs */
            }
        }
        path += n + (path[n] == ':');
    }
}

static void look(void)
{
    static const char *const sonames[] = {"libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"};
    static const char any[] = "libnvrtc.so.[0-9]*";
    const char *named = st_env("STRATA_NVRTC_LIB");
    count = 0;
    if (named) {
        void *lib = st_try_open(&tried, named);
        if (lib)
            take(lib, named);
        else if (!tried.text[0])
            st_try_note(&tried, "STRATA_NVRTC_LIB names %s, which does not exist", named);
        return;
    }
    for (int i = 0; i < ST_COUNT(sonames); i++) {
        void *lib = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
        tried.count++;
        if (lib) take(lib, sonames[i]);
    }
    if (st_env_allowed()) { /* in a privileged process nothing that a user may write to is loaded */
        static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "VIRTUAL_ENV"};
        for (int i = 0; i < ST_COUNT(homes); i++) {
            const char *home = getenv(homes[i]);
            folder(home, "lib64/libnvrtc.so.[0-9]*");
            folder(home, "lib/libnvrtc.so.[0-9]*");
            if (home && i >= 2) prefix(home);
        }
        python_of_path();
        char local[PATH_MAX];
        const char *home = getenv("HOME");
        if (home && snprintf(local, sizeof local, "%s/.local", home) < (int)sizeof local) prefix(local);
    }
    folder("/usr/local/cuda/lib64", any);
    folder("/usr/local", "cuda-*/lib64/libnvrtc.so.[0-9]*");
    folder("/usr/local", "cuda-*/targets/*/lib/libnvrtc.so.[0-9]*");
    folder("/opt/cuda/lib64", any);
    prefix("/usr/local");
    prefix("/usr");
}

static bool knows(const st_libnvrtc *t, int cc)
{
    for (int i = 0; i < ST_COUNT(t->archs) && t->archs[i]; i++)
        if (t->archs[i] == cc) return true;
    return cc == 0;
}

const st_libnvrtc *st_libnvrtc_open(st_err *e, int cc)
{
    const st_libnvrtc *t = NULL;
    pthread_mutex_lock(&lock);
    if (count < 0) look();
    for (int i = 0; i < count && !t; i++)
        if (knows(&found[i], cc)) t = &found[i];
    if (!t) {
        if (count)
            st_fail(e, STRATA_ERROR_DEVICE, "no NVRTC here compiles for compute capability %d.%d", cc / 10,
                    cc % 10);
        else
            st_fail(e, STRATA_ERROR_DEVICE,
                    "NVRTC (libnvrtc.so.12 or .13), which compiles GPU kernels, is not here");
        for (int i = 0; i < count && i < 3; i++)
            st_err_frame(e, "driver", "%s (%d.%d) does not know it", found[i].path, found[i].version / 1000,
                         found[i].version % 1000 / 10);
        if (!count)
            st_err_frame(e, "driver", "loader's path, toolkits, Python wheels%s%s", tried.text[0] ? ": " : "",
                         tried.text);
        st_err_remedy(
            e,
            "pip install nvidia-cuda-nvrtc-cu12 or nvidia-cuda-nvrtc (13), or a CUDA toolkit that knows the "
            "architecture; or name the file in STRATA_NVRTC_LIB");
    }
    pthread_mutex_unlock(&lock);
    return t;
}
