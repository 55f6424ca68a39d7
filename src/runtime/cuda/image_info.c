/* SPDX-License-Identifier: Apache-2.0 */
/* image_info.c - strata_get_gpu_info: driver, compiler, pack and cache folder, as `strata info` prints them. */
#include "driver/driver.h"
#include "runtime/cuda/image.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The sentence of an error without the frames, and where it was looked for */
static void reason(char *to, size_t n, const st_err *e)
{
    int at = snprintf(to, n, "%s", e->text);
    if (e->frames && at < (int)n) snprintf(to + at, n - (size_t)at, " (%s)", e->frame[0].text);
}

static void pack_archs(const st_pack *p, char *to, size_t n)
{
    struct {
        char arch[16];
        int count;
    } known[32];
    int archs = 0;
    for (uint32_t i = 0; i < p->head.count; i++) {
        int a = 0;
        while (a < archs && strncmp(known[a].arch, p->row[i].arch, sizeof known[a].arch) != 0) a++;
        if (a == ST_COUNT(known)) continue;
        if (a == archs) {
            memcpy(known[archs].arch, p->row[i].arch, sizeof known[a].arch);
            known[archs++].count = 0;
        }
        known[a].count++;
    }
    size_t at = 0;
    *to = 0;
    for (int done = 0; done < archs && at < n; done++) { /* by number: sm_80, sm_90a, sm_120 */
        int first = -1;
        for (int a = 0; a < archs; a++)
            if (known[a].count &&
                (first < 0 || st_image_arch_cc(known[a].arch) < st_image_arch_cc(known[first].arch)))
                first = a;
        at += (size_t)snprintf(to + at, n - at, "%s%.15s %d", done ? ", " : "", known[first].arch,
                               known[first].count);
        known[first].count = 0;
    }
}

static void count_files(const char *folder, strata_gpu_info *info)
{
    DIR *d = opendir(folder);
    if (!d) return;
    for (struct dirent *x; (x = readdir(d)) != NULL;) {
        struct stat st;
        size_t n = strlen(x->d_name);
        if (n < 7 || strcmp(x->d_name + n - 7, ".kernel") != 0) continue;
        if (fstatat(dirfd(d), x->d_name, &st, AT_SYMLINK_NOFOLLOW)) continue;
        info->cache_kernels++;
        info->cache_bytes += (int64_t)st.st_size;
    }
    closedir(d);
}

/* ---- which kernels run on the devices that are here ------------------------------------------------------------------------- */

static int here[64], here_count;

static void find_devices(void)
{
    strata_device_info d;
    int n = strata_device_count();
    for (int i = 0; i < n && here_count < ST_COUNT(here); i++)
        if (!strata_get_device_info(strata_device_name(i), &d) && d.compute_capability)
            here[here_count++] = d.compute_capability;
}

bool st_gpu_runs(const char *isa, const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_devices);
    int cc = atoi(isa + strcspn(isa, "0123456789"));
    bool exact = isa[strlen(isa) - 1] == 'a';
    *why = NULL;
    for (int i = 0; i < here_count; i++)
        if (here[i] == cc || (here[i] > cc && !exact)) return true;
    *why = !here_count ? "no GPU is here"
           : exact     ? "for GPUs of another compute capability"
                       : "for newer GPUs";
    return false;
}

strata_status strata_get_gpu_info(strata_gpu_info *info)
{
    st_err *e = st_err_of(NULL), found = {0};
    if (!info) return st_fail(e, STRATA_ERROR_ARGUMENT, "strata_get_gpu_info: info is NULL");
    memset(info, 0, sizeof *info);
    const st_libcuda *cu = st_libcuda_open(&found);
    if (cu) {
        info->driver_version = cu->version;
        snprintf(info->driver, sizeof info->driver, "%s", cu->path);
    } else
        reason(info->driver, sizeof info->driver, &found);
    const st_libnvrtc *nv = st_libnvrtc_open(&found, 0);
    if (nv) {
        info->nvrtc_version = nv->version;
        snprintf(info->nvrtc, sizeof info->nvrtc, "%s", nv->path);
    } else
        reason(info->nvrtc, sizeof info->nvrtc, &found);
    const st_pack *p = st_pack_get();
    info->pack_kernels = p->row ? (int32_t)p->head.count : -1;
    info->pack_bytes = p->row ? (int64_t)p->head.bytes : 0;
    snprintf(info->pack, sizeof info->pack, "%.255s", p->row ? p->path : p->why);
    if (p->row) pack_archs(p, info->pack_archs, sizeof info->pack_archs);
    char path[1024], why[256];
    info->cache_kernels = -1;
    if (st_cache_folder(path, sizeof path, why, sizeof why)) {
        info->cache_kernels = 0;
        count_files(path, info);
        snprintf(info->cache, sizeof info->cache, "%.255s", path);
    } else
        snprintf(info->cache, sizeof info->cache, "%.255s", why);
    return STRATA_OK;
}
