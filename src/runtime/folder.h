/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - the folder that caches of this user share: compiled kernels (cuda/cache.c) and the tuning database (plan). */
#ifndef ST_RUNTIME_FOLDER_H
#define ST_RUNTIME_FOLDER_H
#include "base/base.h"

/* Where it would be; nothing is made or looked at. False and why there can be none. */
bool st_cache_path(char *path, size_t n, char *why, size_t nwhy);
/* A descriptor of the folder, made where it is missing; -1 and why. */
int st_cache_open(char *path, size_t n, char *why, size_t nwhy);
/* Could st_cache_open give one? Nothing is made. A folder that is switched off on purpose is no fault. */
bool st_cache_usable(char *why, size_t nwhy);
/* The folder that is used now, or false and why none is. */
bool st_cache_folder(char *path, size_t n, char *why, size_t nwhy);
#endif
