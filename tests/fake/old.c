/* SPDX-License-Identifier: Apache-2.0 */
/* old.c - a driver of CUDA 11.4: it starts, and lacks what came later. OLD_CUDA_VERSION may claim another version. */
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDriverGetVersion(int *v);

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}
int cuDriverGetVersion(int *v)
{
    const char *text = getenv("OLD_CUDA_VERSION");
    *v = text ? atoi(text) : 11040;
    return 0;
}
