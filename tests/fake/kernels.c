/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - the fake driver's modules and launches, with the copy kernels done on the processor, and a fake NVRTC and NVML.
 *
 * "Machine code" is the four bytes that an ELF file begins with, then the compiler's options, so that a launch knows them. */
#include "fake_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_module {
    char options[1024];
} fake_module;
typedef struct fake_function {
    char name[64];
    fake_module *module;
} fake_function;

FAKE int cuModuleLoadData(fake_module **m, const void *image)
{
    ENTER(cuModuleLoadData);
    if (memcmp(image, "\177ELF", 4)) return 200;
    *m = calloc(1, sizeof **m);
    snprintf((*m)->options, sizeof(*m)->options, "%s", (const char *)image + 4);
    __atomic_fetch_add(&fake.count.modules, 1, __ATOMIC_RELAXED);
    return 0;
}
FAKE int cuModuleUnload(fake_module *m)
{
    free(m);
    __atomic_fetch_sub(&fake.count.modules, 1, __ATOMIC_RELAXED);
    return 0;
}
FAKE int cuModuleGetFunction(fake_function **f, fake_module *m, const char *name)
{
    ENTER(cuModuleGetFunction);
    *f = calloc(1, sizeof **f); /* lives as long as its module: for ever, like the library's kernels */
    snprintf((*f)->name, sizeof(*f)->name, "%s", name);
    (*f)->module = m;
    return 0;
}
FAKE int cuFuncGetAttribute(int *v, int a, fake_function *f)
{
    (void)f;
    *v = a == 0 ? 1024 : a == 4 ? 32 : 0;
    return 0;
}
FAKE int cuFuncSetAttribute(fake_function *f, int a, int v)
{
    (void)f;
    ENTER(cuFuncSetAttribute);
    return a == 8 && v > 227 << 10 ? 1 : 0;
}
FAKE int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, fake_function *f, int threads, size_t smem)
{
    (void)f;
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    *n = 2048 / threads;
    if (smem && (int)((228 << 10) / smem) < *n) *n = (int)((228 << 10) / smem);
    return 0;
}

typedef struct launch {
    unsigned grid[3], block[3], smem;
    fake_stream *stream;
    struct {
        int id, pad;
        union {
            unsigned dim[3];
            int value;
            char bytes[64];
        } u;
    } * attrs;
    unsigned nattrs;
} launch;
FAKE int cuOccupancyMaxActiveClusters(int *n, fake_function *f, const launch *l)
{
    (void)f;
    ENTER(cuOccupancyMaxActiveClusters);
    unsigned size = 1;
    for (unsigned i = 0; i < l->nattrs; i++)
        if (l->attrs[i].id == 4) size = l->attrs[i].u.dim[0] * l->attrs[i].u.dim[1] * l->attrs[i].u.dim[2];
    *n = (int)(132 / size);
    return 0;
}

/* ---- the copy kernels -------------------------------------------------------------------------------------------------------------- */
typedef struct walk { /* of copy.cu */
    int n, fill;
    long long len[8], d[8], s[8];
    _Alignas(16) char value[16];
} walk;

static void copy_elements(char *d, const char *s, const walk *w, size_t size, int k)
{
    if (k == w->n) {
        memcpy(d, w->fill ? w->value : s, size);
        return;
    }
    for (long long i = 0; i < w->len[k]; i++) copy_elements(d + i * w->d[k], s + i * w->s[k], w, size, k + 1);
}

static void run_copy(const fake_launch *l)
{
    const char *size = strstr(l->options, "-DESIZE=");
    if (!size || (strcmp(l->function, "st_copy") && strcmp(l->function, "st_transpose"))) return;
    if (*(long long *)l->args[3] > 0) /* elements, or dims beside the tile's */
        copy_elements(*(char **)l->args[0], *(const char **)l->args[1], l->args[2], (size_t)atoi(size + 8),
                      0);
}

FAKE int cuLaunchKernelEx(const launch *l, fake_function *f, void **args, void **extra)
{
    (void)extra;
    ENTER(cuLaunchKernelEx);
    if (!fake_current()) return 201;
    fake_launch q = {.function = f->name,
                     .options = f->module->options,
                     .smem = l->smem,
                     .stream = l->stream,
                     .args = args};
    for (int d = 0; d < 3; d++) {
        q.grid[d] = l->grid[d];
        q.block[d] = l->block[d];
        q.cluster[d] = 1;
        if (!l->grid[d] || !l->block[d]) return 1;
    }
    if (q.block[0] * q.block[1] * q.block[2] > 1024 || q.grid[1] > 65535 || q.grid[2] > 65535) return 1;
    for (unsigned i = 0; i < l->nattrs; i++) {
        if (l->attrs[i].id == 4) memcpy(q.cluster, l->attrs[i].u.dim, sizeof q.cluster);
        if (l->attrs[i].id == 6) q.overlap = l->attrs[i].u.value != 0;
    }
    q.captured = l->stream && l->stream->capturing;
    __atomic_add_fetch(&fake.count.launches, 1, __ATOMIC_RELAXED);
    if (q.captured)
        l->stream->nodes++;
    else
        run_copy(&q);
    if (fake.on_launch) fake.on_launch(fake.user, &q);
    return 0;
}
void fake_on_launch(void (*f)(void *user, const fake_launch *l), void *user)
{
    fake.on_launch = f;
    fake.user = user;
}

FAKE int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const uint64_t *dim,
                                const uint64_t *stride, const unsigned *box, const unsigned *step,
                                int interleave, int swizzle, int promotion, int oob)
{
    uint64_t w[16] = {(uint64_t)type,           rank,   (uintptr_t)base,  dim[0],
                      rank > 1 ? stride[0] : 0, box[0], (uint64_t)swizzle};
    (void)step, (void)interleave, (void)promotion, (void)oob;
    ENTER(cuTensorMapEncodeTiled);
    memcpy(map, w, sizeof w);
    return 0;
}
FAKE int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *base, const uint64_t *dim,
                                 const uint64_t *stride, const int *lower, const int *upper,
                                 unsigned channels, unsigned pixels, const unsigned *step, int interleave,
                                 int swizzle, int promotion, int oob)
{
    (void)lower, (void)upper, (void)pixels;
    ENTER(cuTensorMapEncodeIm2col);
    return cuTensorMapEncodeTiled(map, type, rank, base, dim, stride, &channels, step, interleave, swizzle,
                                  promotion, oob);
}

/* ---- NVRTC ----------------------------------------------------------------------------------------------------------------------------- */
typedef struct program {
    char code[1024];
} program;
FAKE int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}
FAKE int nvrtcGetNumSupportedArchs(int *n) { return *n = 4, 0; }
FAKE int nvrtcGetSupportedArchs(int *a)
{
    static const int archs[] = {80, 86, 90, 120};
    memcpy(a, archs, sizeof archs);
    return 0;
}
FAKE int nvrtcCreateProgram(program **p, const char *source, const char *name, int n, const char *const *h,
                            const char *const *hn)
{
    (void)source, (void)name, (void)n, (void)h, (void)hn;
    *p = calloc(1, sizeof **p);
    return *p ? 0 : 1;
}
FAKE int nvrtcCompileProgram(program *p, int n, const char *const *option)
{
    int r = fake_enter("nvrtcCompileProgram", false);
    size_t at = (size_t)snprintf(p->code, sizeof p->code, "\177ELF");
    for (int i = 0; i < n && at < sizeof p->code; i++)
        at += (size_t)snprintf(p->code + at, sizeof p->code - at, "%s ", option[i]);
    return r;
}
FAKE int nvrtcDestroyProgram(program **p)
{
    free(*p);
    *p = NULL;
    return 0;
}
static const char report[] = "ptxas info    : 0 bytes gmem\n";
FAKE int nvrtcGetProgramLogSize(program *p, size_t *n)
{
    (void)p;
    *n = sizeof report;
    return 0;
}
FAKE int nvrtcGetProgramLog(program *p, char *text)
{
    (void)p;
    memcpy(text, report, sizeof report);
    return 0;
}
FAKE int nvrtcGetCUBINSize(program *p, size_t *n) { return *n = strlen(p->code) + 1, 0; }
FAKE int nvrtcGetCUBIN(program *p, char *bytes) { return memcpy(bytes, p->code, strlen(p->code) + 1), 0; }
FAKE int nvrtcGetPTXSize(program *p, size_t *n) { return nvrtcGetCUBINSize(p, n); }
FAKE int nvrtcGetPTX(program *p, char *text) { return nvrtcGetCUBIN(p, text); }

/* ---- NVML -------------------------------------------------------------------------------------------------------------------------------- */
typedef struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} process;
FAKE int nvmlInit_v2(void) { return fake_enter("nvmlInit_v2", false); }
FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **d)
{
    *d = (void *)(uintptr_t)1;
    return strncmp(id, "0000:4", 6) ? 6 : 0;
}
FAKE int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, process *list)
{
    (void)d;
    if (*n < 2) return 7;
    list[0] = (process){.pid = 1, .used = 138200000000ull}; /* exists on every machine */
    list[1] = (process){.pid = 4194999, .used = 2100000000ull};
    *n = 2;
    return 0;
}
