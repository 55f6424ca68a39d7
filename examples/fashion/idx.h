/* SPDX-License-Identifier: Apache-2.0 */
/* idx.h - reads image sets in the IDX format of the MNIST family, compressed with gzip or plain.
 *
 * A set is two files in one folder: STEM-images-idx3-ubyte and STEM-labels-idx1-ubyte, each with or without ".gz".
 * An IDX file is big-endian 32-bit words (0x00000803 count rows columns, or 0x00000801 count), then one byte a value. */
#ifndef FASHION_IDX_H
#define FASHION_IDX_H
#include <stddef.h>
#include <stdint.h>

typedef enum idx_result {
    IDX_OK,
    IDX_ABSENT, /* there is no such file */
    IDX_BAD     /* it is there, but cannot be read or its content is wrong */
} idx_result;

typedef struct idx_set {
    int count, rows, cols;
    uint8_t *pixels; /* count x rows x cols, 0 to 255 */
    uint8_t *labels; /* count, 0 to 9 */
} idx_set;

/* Reads `stem` ("train", "t10k") from `folder`. Unless IDX_OK, *set is empty and `why` (n bytes) names the file and says what is
 * wrong with it. Pictures must be rows x cols and labels below `classes`. */
idx_result idx_read(const char *folder, const char *stem, int rows, int cols, int classes, idx_set *set,
                    char *why, size_t n);
void idx_free(idx_set *set);
#endif
