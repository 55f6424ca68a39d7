/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - a fuzz target: one function that libFuzzer calls with made-up bytes, or replay.c with the files of the kept corpus. */
#ifndef FUZZ_H
#define FUZZ_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#define FUZZ_CHECK(x)                                                    \
    do {                                                                 \
        if (!(x)) {                                                      \
            fprintf(stderr, "%s:%d: not: %s\n", __FILE__, __LINE__, #x); \
            abort();                                                     \
        }                                                                \
    } while (0)
#endif
