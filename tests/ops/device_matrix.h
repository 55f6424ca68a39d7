/* SPDX-License-Identifier: Apache-2.0 */
/* device_matrix.h - matrices in the memory of the device under test, with a copy on the host. Included after what declares a field called h. */
#ifndef TEST_DEVICE_MATRIX_H
#define TEST_DEVICE_MATRIX_H
#include "handle.h"
#include <stdlib.h>
#include <strata/runtime.h>

typedef struct matrix {
    strata_tensor host, dev;
    void *memory;
} matrix;

/* rows x cols of the device, `pitch` more elements between rows, moved by `skew` elements; turned: stored transposed */
static matrix device_matrix(test_rng *r, strata_type type, int64_t rows, int64_t cols, bool turned,
                            int64_t pitch, int64_t skew, double (*value)(test_rng *, strata_type))
{
    matrix x;
    const int64_t p = turned ? cols : rows, q = turned ? rows : cols;
    const size_t es = strata_type_bits(type) / 8, bytes = es * (size_t)(p * (q + pitch) + skew + 1);
    char *at = calloc(1, bytes);
    assert_non_null(at);
    test_ok(h, strata_alloc(h, bytes, &x.memory));
    x.host = strata_matrix(at, type, p, q, STRATA_ROW_MAJOR, q + pitch);
    x.dev = strata_matrix((char *)x.memory + es * (size_t)skew, type, p, q, STRATA_ROW_MAJOR, q + pitch);
    int64_t i[STRATA_MAX_RANK] = {0};
    if (strata_count(x.host)) do
            test_put(&x.host, i, value(r, type));
        while (test_next(&x.host, i));
    test_ok(h, strata_copy(h, x.host, x.dev));
    if (turned) {
        x.host = strata_transpose(x.host);
        x.dev = strata_transpose(x.dev);
    }
    return x;
}
static void drop(matrix *x)
{
    free(x->host.data);
    test_ok(h, strata_free(h, x->memory));
}
#endif
