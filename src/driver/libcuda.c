/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.c - the driver's library: found, filled in, initialised once a process; its failure kept for later callers.
 *
 * cuInit does not survive fork: the child sees "forked", whatever it asks. */
#include "driver/open.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { OLDEST = 12000 }; /* CUDA 12.0, driver 525: cuTensorMapEncodeTiled */

static const st_symbol symbols[] = {
#define ST_FN(name, symbol, args) {#symbol, offsetof(st_libcuda, name)},
#include "driver/libcuda.inc"
#undef ST_FN
};
static const char *const places[] = {"libcuda.so.1",
                                     "/usr/lib/wsl/lib/libcuda.so.1",
                                     "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                                     "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
                                     "/usr/lib64/libcuda.so.1",
                                     "/usr/lib/libcuda.so.1",
                                     "/usr/local/nvidia/lib64/libcuda.so.1",
                                     "/usr/local/nvidia/lib/libcuda.so.1",
                                     "/run/opengl-driver/lib/libcuda.so.1",
                                     "/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static st_libcuda table;
static st_err why;
static atomic_int state; /* 0: not tried, 1: open, -1: failed */
static atomic_bool forked;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void in_child(void)
{
    if (atomic_load(&state) == 1) atomic_store(&forked, true);
    pthread_mutex_unlock(&lock);
}
__attribute__((constructor)) static void register_fork(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

bool st_libcuda_forked(void) { return atomic_load_explicit(&forked, memory_order_relaxed); }

static void *find(st_tried *t)
{
    const char *named = st_env("STRATA_CUDA_LIB");
    if (named) {
        void *lib = st_try_open(t, named);
        if (!lib && !t->text[0]) st_try_note(t, "STRATA_CUDA_LIB names %s, which does not exist", named);
        return lib;
    }
    void *lib = NULL;
    for (int i = 0; i < ST_COUNT(places) && !lib; i++) lib = st_try_open(t, places[i]);
    return lib;
}

static bool too_old(int version, const char *missing)
{
    st_fail(&why, STRATA_ERROR_DEVICE,
            "the NVIDIA driver is too old: it offers CUDA %d.%d and 12.0 (driver 525) is needed",
            version / 1000, version % 1000 / 10);
    st_err_frame(&why, "driver", "%s: %s%s", table.path, missing ? "no function " : "",
                 missing ? missing : "cuDriverGetVersion says so");
    st_err_remedy(
        &why,
        "update the NVIDIA driver to 525 or newer (580 or newer for kernels compiled by CUDA 13); the CUDA "
        "toolkit need not be installed");
    return false;
}

static bool open_once(void)
{
    st_tried tried = {.count = 0};
    void *lib = find(&tried);
    if (!lib) {
        st_fail(&why, STRATA_ERROR_DEVICE, "the NVIDIA driver's library libcuda.so.1 is not here");
        st_err_frame(&why, "driver", "%d places tried: %s", tried.count, tried.text);
        st_err_remedy(
            &why,
            "install the NVIDIA driver, or start the container with GPUs (docker run --gpus all); `strata "
            "doctor` looks closer; \"cpu\" works without");
        return false;
    }
    const char *missing = st_fill_table(lib, &table, symbols, ST_COUNT(symbols), true);
    table.version = 0;
    snprintf(table.path, sizeof table.path, "libcuda.so.1");
    if (!table.init || !table.driver_get_version) {
        st_fail(&why, STRATA_ERROR_DEVICE,
                "the file found as libcuda.so.1 is not the NVIDIA driver's library");
        st_err_frame(&why, "driver", "no function cuInit; tried: %s", tried.text[0] ? tried.text : places[0]);
        st_err_remedy(&why, "`strata doctor` names the file; the driver's package brings the right one");
        return false;
    }
    st_library_path((const void *)(uintptr_t)table.init, table.path, sizeof table.path);
    st_cu_result r = table.driver_get_version(&table.version);
    if (r == 0 && table.version > 0 && (missing || table.version < OLDEST)) {
        if (table.version < OLDEST) return too_old(table.version, missing);
        st_fail(&why, STRATA_ERROR_DEVICE,
                "the NVIDIA driver's library lacks a function that CUDA %d.%d has: %s", table.version / 1000,
                table.version % 1000 / 10, missing);
        st_err_frame(&why, "driver", "%s is damaged, or mixes versions", table.path);
        st_err_remedy(&why, "reinstall the NVIDIA driver's user-space part; `strata doctor` looks closer");
        return false;
    }
    if ((r = table.init(0)) != 0 || missing) {
        st_fail(&why, STRATA_ERROR_DEVICE, "the NVIDIA driver does not start: cuInit answers %s (%d)",
                st_cu_result_name(r), r);
        st_err_frame(&why, "driver", "%s (CUDA %d.%d): cuInit: %s", table.path, table.version / 1000,
                     table.version % 1000 / 10, st_cu_result_name(r));
        return false;
    }
    return true;
}

const st_libcuda *st_libcuda_open(st_err *e)
{
    if (ST_UNLIKELY(st_libcuda_forked())) {
        st_fail(e, STRATA_ERROR_DEVICE,
                "this process was forked after its parent had used the GPU; CUDA does not survive fork");
        st_err_frame(e, "driver", "cuInit was called before the fork");
        st_err_remedy(
            e, "fork before the first GPU call, or start the child with exec (Python: the \"spawn\" method)");
        return NULL;
    }
    if (ST_LIKELY(atomic_load_explicit(&state, memory_order_acquire) == 1)) return &table;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&state)) atomic_store_explicit(&state, open_once() ? 1 : -1, memory_order_release);
    bool ok = atomic_load(&state) == 1;
    if (!ok) *e = why;
    pthread_mutex_unlock(&lock);
    return ok ? &table : NULL;
}

void st_driver_forget_for_tests(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&state, 0);
    atomic_store(&forked, false);
    memset(&table, 0, sizeof table);
    memset(&why, 0, sizeof why);
    pthread_mutex_unlock(&lock);
}

void st_cu_frame(st_err *e, const char *function, st_cu_result r)
{
    st_err_frame(e, "driver", "%s: %s (%d)", function, st_cu_result_name(r), r);
}
