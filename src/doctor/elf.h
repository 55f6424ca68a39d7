/* SPDX-License-Identifier: Apache-2.0 */
/* elf.h - what a shared library says about itself, read from its bytes; nothing is ever loaded. */
#ifndef ST_DOCTOR_ELF_H
#define ST_DOCTOR_ELF_H
#include "base/base.h"

enum { ST_ELF_NEEDED = 48 };
typedef struct st_elf {
    int bits, machine; /* 32 or 64; EM_* */
    char soname[96];
    int needed_count;
    char needed[ST_ELF_NEEDED][64];
    char rpath[2048], runpath[2048]; /* PyTorch names fourteen directories */
    char version[48];                /* found inside the file ("" when it does not tell); see elf.c */
} st_elf;
/* False with a reason in words for anything that is no usable little-endian ELF file. fd is read with pread only. */
bool st_elf_read(int fd, st_elf *e, const char **why);
/* Looks for the version that the code or data of known libraries states: cuDNN's version objects (cudnn_graph_version), the code of
 * nvrtcVersion, nvJitLinkVersion and cublasLtGetVersion, the strings of NCCL and of the driver's libraries. Fills e->version. */
void st_elf_version(int fd, st_elf *e);
/* Where a section's bytes lie in the file (".rodata"); false when there is none or the table of sections is damaged. */
bool st_elf_section(int fd, const char *name, uint64_t *offset, uint64_t *size);
/* Calls see(name, arg) for each defined dynamic symbol; false when there is no readable symbol table. */
bool st_elf_symbols(int fd, void (*see)(const char *name, void *arg), void *arg);

#endif
