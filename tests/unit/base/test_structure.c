/* SPDX-License-Identifier: Apache-2.0 */
/* Views that say what a matrix is: the flags that makers give, what transposing does to them, what is refused and in which words. */
#include "base/base.h"
#include "support.h"

static char memory[65536];
enum {
    ALL = STRATA_TENSOR_CONJ | STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER | STRATA_TENSOR_SYMMETRIC |
          STRATA_TENSOR_HERMITIAN | STRATA_TENSOR_UNIT | STRATA_TENSOR_BAND | STRATA_TENSOR_PACKED |
          STRATA_TENSOR_POINTERS
};

#define refused(t, status, ...)                                                                          \
    do {                                                                                                 \
        strata_tensor test_t = (t);                                                                      \
        test_error(NULL, st_tensor_check_flags(st_err_thread(), "strata_op", "X", &test_t, ALL), status, \
                   "strata_op: X", __VA_ARGS__);                                                         \
    } while (0)
#define flags_are(t, want)                                                                     \
    do {                                                                                       \
        strata_tensor test_t = (t);                                                            \
        test_ok(NULL, st_tensor_check_flags(st_err_thread(), "strata_op", "X", &test_t, ALL)); \
        test_check(test_t.flags == (want), "%s has flags 0x%x, not 0x%x", #t, test_t.flags,    \
                   (unsigned)(want));                                                          \
    } while (0)

static strata_tensor square(strata_type t, int64_t n)
{
    return strata_matrix(memory, t, n, n, STRATA_ROW_MAJOR, 0);
}

static void flags(void **state)
{
    (void)state;
    const strata_tensor R = square(STRATA_F64, 4), C = square(STRATA_C64, 4);
    flags_are(strata_symmetric(R, STRATA_LOWER), STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_LOWER);
    flags_are(strata_hermitian(C, STRATA_UPPER), STRATA_TENSOR_HERMITIAN | STRATA_TENSOR_UPPER);
    flags_are(strata_hermitian(R, STRATA_UPPER), STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_UPPER);
    flags_are(strata_triangular(R, STRATA_LOWER, STRATA_UNIT), STRATA_TENSOR_LOWER | STRATA_TENSOR_UNIT);
    flags_are(strata_conj(C), STRATA_TENSOR_CONJ);
    flags_are(strata_conj(strata_conj(C)), 0u);
    flags_are(strata_conj(R), 0u);
    flags_are(strata_transpose(strata_triangular(R, STRATA_LOWER, STRATA_NON_UNIT)), STRATA_TENSOR_UPPER);
    flags_are(strata_conj(strata_transpose(strata_hermitian(C, STRATA_UPPER))),
              STRATA_TENSOR_HERMITIAN | STRATA_TENSOR_LOWER | STRATA_TENSOR_CONJ);
    flags_are(strata_packed(memory, STRATA_F32, 5, STRATA_LOWER, STRATA_COL_MAJOR),
              STRATA_TENSOR_PACKED | STRATA_TENSOR_LOWER);
    flags_are(
        strata_symmetric(strata_packed(memory, STRATA_F32, 5, STRATA_UPPER, STRATA_ROW_MAJOR), STRATA_UPPER),
        STRATA_TENSOR_PACKED | STRATA_TENSOR_UPPER | STRATA_TENSOR_SYMMETRIC);
    flags_are(strata_batch(strata_symmetric(R, STRATA_LOWER), 3, 0),
              STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_LOWER);
    const void *address[2] = {memory, memory + 4096};
    const strata_tensor P = strata_pointers(strata_triangular(R, STRATA_UPPER, STRATA_NON_UNIT), address, 2);
    flags_are(P, STRATA_TENSOR_POINTERS | STRATA_TENSOR_UPPER);
    test_check(P.rank == 3 && P.dim[0] == 2 && P.stride[0] == 0 && P.data == (void *)address, " ");
}

static void bands(void **state)
{
    (void)state;
    /* 5 x 4, one diagonal below, two above, by columns: element (i, j) at 2 + i - j + 5 j */
    const strata_tensor B = strata_band(memory, STRATA_F64, 5, 4, 1, 2, STRATA_COL_MAJOR, 5);
    flags_are(B, STRATA_TENSOR_BAND);
    for (int64_t j = 0; j < 4; j++)
        for (int64_t i = j > 2 ? j - 2 : 0; i <= j + 1 && i < 5; i++)
            test_check(test_at(&B, (int64_t[]){i, j}) == memory + 8 * (2 + i - j + 5 * j), "(%d,%d)", (int)i,
                       (int)j);
    test_check(st_band_width(&B, false) == 1 && st_band_width(&B, true) == 2, " ");
    const strata_tensor T = strata_transpose(B);
    test_check(st_band_width(&T, false) == 2 && st_band_width(&T, true) == 1, " ");
    const strata_tensor R = strata_band(memory, STRATA_F64, 5, 4, 1, 2, STRATA_ROW_MAJOR, 0);
    for (int64_t i = 0; i < 5; i++)
        for (int64_t j = i > 1 ? i - 1 : 0; j <= i + 2 && j < 4; j++)
            test_check(test_at(&R, (int64_t[]){i, j}) == memory + 8 * (1 + j - i + 4 * i), "(%d,%d)", (int)i,
                       (int)j);
    flags_are(strata_triangular(strata_band(memory, STRATA_F64, 5, 5, 2, 0, STRATA_COL_MAJOR, 0),
                                STRATA_LOWER, STRATA_NON_UNIT),
              STRATA_TENSOR_BAND | STRATA_TENSOR_LOWER);
    refused(strata_band(memory, STRATA_F64, 5, 5, -1, 0, STRATA_COL_MAJOR, 0), STRATA_ERROR_ARGUMENT,
            "kl = -1");
    refused(strata_band(memory, STRATA_F64, 5, 5, 1, 1, STRATA_COL_MAJOR, 2), STRATA_ERROR_LAYOUT,
            "leading dimension 2");
    refused(strata_symmetric(strata_band(memory, STRATA_F64, 5, 5, 1, 1, STRATA_COL_MAJOR, 0), STRATA_LOWER),
            STRATA_ERROR_ARGUMENT, "1 diagonals above");
}

static void refusals(void **state)
{
    (void)state;
    const strata_tensor R = square(STRATA_F64, 4), S = strata_symmetric(R, STRATA_LOWER);
    refused(strata_symmetric(strata_matrix(memory, STRATA_F32, 3, 4, STRATA_ROW_MAJOR, 0), STRATA_LOWER),
            STRATA_ERROR_SHAPE, "3x4", "square");
    refused(strata_symmetric(strata_vector(memory, STRATA_F32, 3, 1), STRATA_LOWER), STRATA_ERROR_SHAPE,
            "rank 1");
    refused(strata_symmetric(R, (strata_uplo)7), STRATA_ERROR_ARGUMENT, "triangle 7");
    refused(strata_triangular(R, STRATA_LOWER, (strata_diag)5), STRATA_ERROR_ARGUMENT, "diagonal 5");
    refused(strata_hermitian(S, STRATA_LOWER), STRATA_ERROR_ARGUMENT, "structure already");
    refused(
        strata_symmetric(strata_packed(memory, STRATA_F32, 5, STRATA_UPPER, STRATA_ROW_MAJOR), STRATA_LOWER),
        STRATA_ERROR_ARGUMENT, "structure already");
    refused(strata_slice(S, 0, 0, 2, 1), STRATA_ERROR_ARGUMENT, "structured view");
    refused(strata_reshape(S, 1, (int64_t[]){16}), STRATA_ERROR_ARGUMENT, "structured view");
    refused(strata_permute(S, (int[]){1, 0}), STRATA_ERROR_ARGUMENT, "structured view");
    refused(strata_pointers(strata_pointers(R, NULL, 2), NULL, 2), STRATA_ERROR_ARGUMENT,
            "structure already");
    /* operators that take plain views name what they were given */
    strata_tensor t = S;
    test_error(NULL, st_tensor_check(st_err_thread(), "strata_op", "X", &t), STRATA_ERROR_UNSUPPORTED,
               "X is a symmetric matrix");
    t = strata_conj(square(STRATA_C64, 4));
    test_error(NULL, st_tensor_check(st_err_thread(), "strata_op", "X", &t), STRATA_ERROR_UNSUPPORTED,
               "X is conjugated");
    test_error(NULL, st_tensor_check_output_flags(st_err_thread(), "strata_op", "X", &t, ALL),
               STRATA_ERROR_ARGUMENT, "X is written, so it may not be a conjugated view");
    /* what no maker gives */
    t = R;
    t.flags = STRATA_TENSOR_LOWER | STRATA_TENSOR_UPPER;
    test_error(NULL, st_tensor_check_flags(st_err_thread(), "strata_op", "X", &t, ALL), STRATA_ERROR_ARGUMENT,
               "unknown flags");
    t.flags = STRATA_TENSOR_SYMMETRIC;
    test_error(NULL, st_tensor_check_flags(st_err_thread(), "strata_op", "X", &t, ALL), STRATA_ERROR_ARGUMENT,
               "unknown flags");
    t.flags = STRATA_TENSOR_SYMMETRIC | STRATA_TENSOR_LOWER | STRATA_TENSOR_UNIT;
    test_error(NULL, st_tensor_check_flags(st_err_thread(), "strata_op", "X", &t, ALL), STRATA_ERROR_ARGUMENT,
               "unknown flags");
    t.flags = STRATA_TENSOR_LOWER;
    t.dim[1] = 3;
    test_error(NULL, st_tensor_check_flags(st_err_thread(), "strata_op", "X", &t, ALL), STRATA_ERROR_SHAPE,
               "not square");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(flags), cmocka_unit_test(bands),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
