/* SPDX-License-Identifier: Apache-2.0 */
/* libnvml.c - NVML, the driver's management library: opened once a process, functions that it lacks are NULL. */
#include "driver/open.h"
#include <pthread.h>

static const st_symbol symbols[] = {
#define ST_FN(name, symbol, args) {#symbol, offsetof(st_libnvml, name)},
#include "driver/libnvml.inc"
#undef ST_FN
};
static const char *const places[] = {"libnvidia-ml.so.1",
                                     "/usr/lib/wsl/lib/libnvidia-ml.so.1",
                                     "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
                                     "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
                                     "/usr/lib64/libnvidia-ml.so.1",
                                     "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
                                     "/run/opengl-driver/lib/libnvidia-ml.so.1"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static st_libnvml table;
static st_err why;
static int state; /* 0: not tried, 1: open, -1: failed */

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void register_fork(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static bool open_once(void)
{
    st_tried tried = {.count = 0};
    const char *named = st_env("STRATA_NVML_LIB");
    void *lib = named ? st_try_open(&tried, named) : NULL;
    for (int i = 0; i < ST_COUNT(places) && !lib && !named; i++) lib = st_try_open(&tried, places[i]);
    if (!lib) {
        st_fail(&why, STRATA_ERROR_DEVICE, "NVML (libnvidia-ml.so.1) is not here");
        st_err_frame(&why, "driver", "%d places tried: %s", tried.count, tried.text);
        return false;
    }
    st_fill_table(lib, &table, symbols, ST_COUNT(symbols), true);
    int r = table.init ? table.init() : 13;
    if (r == 0) {
        st_library_path((const void *)(uintptr_t)table.init, table.path, sizeof table.path);
        return true;
    }
    st_fail(&why, STRATA_ERROR_DEVICE, "NVML does not start: nvmlInit_v2 answers %s (%d)",
            st_nvml_result_name(r), r);
    st_err_frame(&why, "driver", "nvmlInit_v2: %s", st_nvml_result_name(r));
    return false;
}

const st_libnvml *st_libnvml_open(st_err *e)
{
    pthread_mutex_lock(&lock);
    if (!state) state = open_once() ? 1 : -1;
    bool ok = state == 1;
    if (!ok) *e = why;
    pthread_mutex_unlock(&lock);
    return ok ? &table : NULL;
}
