/* SPDX-License-Identifier: Apache-2.0 */
/* handle.h - the set-up of most programs of this folder: one handle on the device under test, for all of a program's tests. */
#ifndef TEST_HANDLE_H
#define TEST_HANDLE_H
#include <strata.h>
#include <string.h>
#include "support.h"

static strata_handle *h;

static int setup(void **state)
{
    (void)state;
    test_ok(NULL, strata_create(&h, test_device()));
    return 0;
}
static int teardown(void **state)
{
    (void)state;
    strata_destroy(h);
    return 0;
}

static inline bool on_gpu(void) { return strstr(strata_handle_device(h), "cuda") != NULL; }
#endif
