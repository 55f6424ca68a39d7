/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.h - which files the dynamic loader would take for a program: its search, replayed by parsing (ld.so(8), glibc elf/dl-load.c). */
#ifndef ST_DOCTOR_RESOLVE_H
#define ST_DOCTOR_RESOLVE_H
#include "doctor/elf.h"
#include "doctor/machine.h"

enum { ST_MAX_OBJECTS = 512 };
typedef struct st_object {
    char name[128]; /* as it was asked for */
    char path[256], real[256];
    char how[160]; /* "DT_RPATH of libtorch_cuda.so", "LD_LIBRARY_PATH", "loader cache", ... */
    int parent; /* index of the object that asked first; -1: nobody, it is the program or was opened by path */
    bool missing; /* found nowhere */
    bool later;   /* opened by name while the program runs, not needed to start */
    bool deleted; /* a process has it mapped, the file is gone or replaced */
    bool has_elf;
    st_elf elf;
    st_copy copy; /* version and so on, of the libraries of the GPU stack; stem "" for others */
} st_object;

typedef struct st_loader {
    st_machine *m;
    const char *library_path; /* LD_LIBRARY_PATH, or NULL */
    char *cache;
    size_t cache_size;
    int dir_count; /* without a cache: what ld.so.conf names */
    char dir[32][200];
    int count, machine, bits; /* machine and bits of the program: other libraries are passed over */
    st_object *o;
} st_loader;

bool st_loader_open(st_loader *l, st_machine *m, const char *library_path); /* false: out of memory */
void st_loader_close(st_loader *l);
/* A file by its path, with everything that it needs. Its index, or -1 with *why. */
int st_loader_add(st_loader *l, const char *path, int parent, const char *how, const char **why);
/* dlopen(name) called from the code of object `from`, with everything that it needs. Its index (an object with `missing` when it is
 * found nowhere), -1 when the list is full. */
int st_loader_dlopen(st_loader *l, const char *name, int from);
int st_loader_find(const st_loader *l, const char *name); /* loaded under that name or soname; -1 */

#endif
