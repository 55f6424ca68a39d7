/* SPDX-License-Identifier: Apache-2.0 */
/* fake_test.h - what tests against the fake driver share. */
#ifndef FAKE_TEST_H
#define FAKE_TEST_H
#include "fake.h"
#include "support.h"
#include <strata.h>

/* Before the first call of the library: it opens the fake, compiles with the fake, keeps nothing in files. */
static inline void fake_use(void)
{
    setenv("STRATA_CUDA_LIB", FAKE_CUDA, 1);
    setenv("STRATA_NVRTC_LIB", FAKE_CUDA, 1);
    setenv("STRATA_NVML_LIB", FAKE_CUDA, 1);
    setenv("STRATA_CACHE", "off", 1);
    setenv("STRATA_PACK_FILE", "off", 1);
    unsetenv("STRATA_DEVICE");
}
static inline strata_handle *fake_handle(const char *device)
{
    strata_handle *h = NULL;
    test_ok(NULL, strata_create(&h, device));
    return h;
}
#endif
