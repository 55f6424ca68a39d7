/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h - the parameters of a network in a file.
 *
 * All numbers are little-endian.
 *
 *     8 bytes   "STRATA-W"
 *     u32       version, 1
 *     u32       number of tensors
 *     for each tensor:
 *       u32, bytes        length of the name, the name (no zero at its end)
 *       u32               type, as in strata_type (2 is f32)
 *       u32, i64 ...      rank, dims
 *       f32 ...           the values, last dim fastest, whatever the strides in memory are
 *     u32       CRC-32 of all that comes before (as in zlib and PNG)
 *
 * A file is written beside its place and renamed into it, so that there is never half of one under the name. */
#ifndef FASHION_WEIGHTS_H
#define FASHION_WEIGHTS_H
#include "net.h"

/* 0, or -1 with the file and what is wrong with it in why (n bytes). A failed load leaves the network as it was. */
int weights_writable(const char *path, char *why, size_t size); /* a trial that leaves nothing behind */
int weights_save(net *n, const char *path, char *why, size_t size);
int weights_load(net *n, const char *path, char *why, size_t size);
#endif
