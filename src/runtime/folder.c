/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c - the cache folder: $XDG_CACHE_HOME/strata or ~/.cache/strata.
 *
 * It must be a real folder of this user with mode 0700: whoever may write there decides which code runs on the device and which kernels are
 * chosen. Processes with raised privileges have none. */
#include "runtime/folder.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool st_cache_path(char *path, size_t n, char *why, size_t nwhy)
{
    const char *off = st_env("STRATA_CACHE");
    if (!st_env_allowed()) return snprintf(why, nwhy, "this process runs with raised privileges"), false;
    if (off && strcmp(off, "off") == 0) return snprintf(why, nwhy, "STRATA_CACHE=off"), false;
    if (off) return snprintf(why, nwhy, "STRATA_CACHE=%.40s is not understood (known: off)", off), false;
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int used;
    if (xdg && *xdg == '/')
        used = snprintf(path, n, "%s", xdg);
    else if (home && *home == '/')
        used = snprintf(path, n, "%s/.cache", home);
    else
        return snprintf(why, nwhy, "neither XDG_CACHE_HOME nor HOME names a folder"), false;
    if (used < 0 || (size_t)used + sizeof "/strata" > n)
        return snprintf(why, nwhy, "the path of the cache folder is too long"), false;
    strcat(path, "/strata");
    return true;
}

static bool keeps_rules(int fd, const char *path, char *why, size_t nwhy)
{
    struct stat st;
    if (!fstat(fd, &st) && st.st_uid == geteuid() && (st.st_mode & 07777) == 0700) return true;
    snprintf(why, nwhy, "%.120s is not a folder of this user with mode 0700", path);
    return false;
}

int st_cache_open(char *path, size_t n, char *why, size_t nwhy)
{
    if (!st_cache_path(path, n, why, nwhy)) return -1;
    char *last = strrchr(path, '/');
    *last = 0;
    mkdir(path, 0700); /* what exists is looked at below */
    *last = '/';
    if (mkdir(path, 0700) && errno != EEXIST)
        return snprintf(why, nwhy, "%.120s cannot be made: %s", path, strerror(errno)), -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return snprintf(why, nwhy, "%.120s cannot be opened: %s", path, strerror(errno)), -1;
    if (keeps_rules(fd, path, why, nwhy)) return fd;
    close(fd);
    return -1;
}

bool st_cache_folder(char *path, size_t n, char *why, size_t nwhy)
{
    int fd = st_cache_open(path, n, why, nwhy);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

bool st_cache_usable(char *why, size_t nwhy)
{
    char path[1024];
    const char *off = st_env("STRATA_CACHE");
    if (!st_cache_path(path, sizeof path, why, nwhy))
        return !st_env_allowed() || (off && !strcmp(off, "off"));
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        const bool good = keeps_rules(fd, path, why, nwhy);
        close(fd);
        return good;
    }
    if (errno != ENOENT)
        return snprintf(why, nwhy, "%.120s cannot be opened: %s", path, strerror(errno)), false;
    for (int up = 0; up < 2; up++) { /* it and its parent are made when there is something to keep */
        *strrchr(path, '/') = 0;
        if (!*path) strcpy(path, "/");
        if (!access(path, W_OK | X_OK)) return true;
        if (errno != ENOENT)
            return snprintf(why, nwhy, "%.120s cannot be written: %s", path, strerror(errno)), false;
    }
    return snprintf(why, nwhy, "there is no folder %.120s", path), false;
}
