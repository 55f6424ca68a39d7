/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.c - a double of libcuda for the doctor's steps: host memory, and the two kernels of those steps done here by name. */
#include "answer.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define API __attribute__((visibility("default")))
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
#define FN(name, ...)          \
    API int name(__VA_ARGS__); \
    API int name(__VA_ARGS__)

FN(cuInit, unsigned flags)
{
    ANSWER();
    return (int)flags;
}
FN(cuDriverGetVersion, int *v)
{
    ANSWER();
    *v = 13000;
    return 0;
}
FN(cuDeviceGetCount, int *n)
{
    ANSWER();
    *n = (int)fake_state("gpus", 1);
    return 0;
}
FN(cuDeviceGet, int *d, int i)
{
    ANSWER();
    *d = i;
    return 0;
}
FN(cuDeviceGetName, char *name, int n, int d)
{
    ANSWER();
    snprintf(name, (size_t)n, "NVIDIA Fake %d", d);
    return 0;
}
FN(cuDeviceGetAttribute, int *v, int attribute, int d)
{
    ANSWER();
    (void)d;
    *v = attribute == 75   ? 9
         : attribute == 76 ? 0
         : attribute == 16 ? 2
         : attribute == 13 ? 1000
         : attribute == 36 ? 10000
         : attribute == 37 ? 64
                           : 0;
    return 0;
}
FN(cuDeviceTotalMem_v2, size_t *n, int d)
{
    ANSWER();
    (void)d;
    *n = (size_t)80 << 30;
    return 0;
}
FN(cuDevicePrimaryCtxRetain, void **c, int d)
{
    ANSWER();
    (void)d;
    *c = c;
    return 0;
}
FN(cuCtxSetCurrent, void *c)
{
    ANSWER();
    (void)c;
    return 0;
}
FN(cuCtxSynchronize, void)
{
    ANSWER();
    return 0;
}
FN(cuMemGetInfo_v2, size_t *left, size_t *total)
{
    ANSWER();
    *left = (size_t)79 << 30;
    *total = (size_t)80 << 30;
    return 0;
}
FN(cuMemAlloc_v2, unsigned long long *p, size_t n)
{
    ANSWER();
    void *q = malloc(n);
    *p = (uintptr_t)q;
    return q ? 0 : 2;
}
FN(cuMemFree_v2, unsigned long long p)
{
    free((void *)(uintptr_t)p);
    return 0;
}
FN(cuMemHostAlloc, void **p, size_t n, unsigned flags)
{
    ANSWER();
    (void)flags;
    *p = malloc(n);
    return *p ? 0 : 2;
}
FN(cuMemFreeHost, void *p)
{
    free(p);
    return 0;
}
FN(cuMemcpyHtoD_v2, unsigned long long to, const void *from, size_t n)
{
    ANSWER();
    memcpy((void *)(uintptr_t)to, from, n);
    return 0;
}
FN(cuMemcpyDtoH_v2, void *to, unsigned long long from, size_t n)
{
    ANSWER();
    memcpy(to, (void *)(uintptr_t)from, n);
    if (fake_state("flip", 0) && n > 4096) ((char *)to)[n / 2 & ~3ull] ^= 4;
    return 0;
}
FN(cuMemcpyDtoD_v2, unsigned long long to, unsigned long long from, size_t n)
{
    ANSWER();
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, n);
    return 0;
}
FN(cuMemcpyHtoDAsync_v2, unsigned long long to, const void *from, size_t n, void *s)
{
    (void)s;
    ANSWER();
    memcpy((void *)(uintptr_t)to, from, n);
    return 0;
}
FN(cuMemcpyDtoHAsync_v2, void *to, unsigned long long from, size_t n, void *s)
{
    (void)s;
    ANSWER();
    memcpy(to, (void *)(uintptr_t)from, n);
    return 0;
}
FN(cuMemcpyDtoDAsync_v2, unsigned long long to, unsigned long long from, size_t n, void *s)
{
    ANSWER();
    (void)s, (void)to, (void)from, (void)n; /* its rate is what is asked for, not its bytes */
    return 0;
}
FN(cuModuleLoadDataEx, void **m, const void *image, unsigned n, int *option, void **value)
{
    int answer = fake_answer("cuModuleLoadDataEx");
    if (answer && n && option[0] == 5) strcpy(value[0], "ptxas fatal: fake complaint");
    if (answer) return answer;
    *m = (void *)(uintptr_t)image;
    return 0;
}
FN(cuModuleUnload, void *m)
{
    (void)m;
    return 0;
}
FN(cuModuleGetFunction, void **f, void *m, const char *name)
{
    ANSWER();
    (void)m;
    *f = strcmp(name, "strata_fill") == 0 ? (void *)1 : strcmp(name, "strata_fma") == 0 ? (void *)2 : NULL;
    return *f ? 0 : 500;
}
static void fma_kernel(float *p, unsigned threads, unsigned rounds, float m, float c)
{
    for (unsigned i = 0; i < threads; i += threads / 61 ? threads / 61 : 1) { /* where the doctor looks */
        float x[8];
        x[0] = (float)i;
        for (int k = 1; k < 8; k++) x[k] = x[k - 1] + m;
        for (unsigned r = 0; r < rounds * 16; r++)
            for (int k = 0; k < 8; k++) x[k] = fmaf(x[k], m, c);
        for (int k = 1; k < 8; k++) x[0] += x[k];
        p[i] = x[0];
    }
}
FN(cuLaunchKernel, void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
   unsigned shared, void *s, void **args, void **extra)
{
    ANSWER();
    (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)s, (void)extra;
    unsigned long long p = *(unsigned long long *)args[0];
    unsigned n = *(unsigned *)args[1];
    if (f == (void *)1)
        for (unsigned i = 0; i < n && i < gx * bx; i++) ((unsigned *)(uintptr_t)p)[i] = (i * 3 + 7) ^ i;
    else
        fma_kernel((float *)(uintptr_t)p, gx * bx, n, *(float *)args[2], *(float *)args[3]);
    return 0;
}
FN(cuEventCreate, double **e, unsigned flags)
{
    ANSWER();
    (void)flags;
    *e = malloc(sizeof **e);
    return 0;
}
FN(cuEventDestroy_v2, void *e)
{
    free(e);
    return 0;
}
FN(cuEventRecord, double *e, void *s)
{
    ANSWER();
    (void)s;
    *e = now();
    return 0;
}
FN(cuEventSynchronize, void *e)
{
    ANSWER();
    (void)e;
    return 0;
}
FN(cuEventElapsedTime, float *ms, double *a, double *b)
{
    ANSWER();
    *ms = (float)(*b - *a > 0.001 ? *b - *a : 0.001);
    return 0;
}
