/* SPDX-License-Identifier: Apache-2.0 */
/* support.h - what the tests share: repeatable random numbers, buffers between guard pages, random views with NaN around every
 * element, comparison with a bound, and one line that reproduces the problem at hand when a check fails.
 *
 *     test_rng r = test_rng_make(7);
 *     test_problem("copy f32 %dx%d seed %d", m, n, i);            printed only if something fails
 *     test_array a = test_array_make(&r, STRATA_F32, 2, (int64_t[]){m, n}, TEST_ANY);
 *     test_array_random(&r, &a, -1, 1);
 *     ... call with a.t ...
 *     test_close(got, want, bound, "C[%d,%d]", i, j);
 *     test_array_intact(&a);                                      nothing beside the elements was touched
 *     test_array_free(&a);
 *
 * Include this header before or after cmocka.h; it includes what cmocka needs. */
#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H
#include <strata/base.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TEST_COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define TEST_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* 1 when built with ThreadSanitizer, which allows no new threads in, and no exit() of, a forked child of a process with threads. */
#if defined(__SANITIZE_THREAD__)
#    define TEST_UNDER_TSAN 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define TEST_UNDER_TSAN 1
#    endif
#endif
#ifndef TEST_UNDER_TSAN
#    define TEST_UNDER_TSAN 0
#endif

/* ---- random numbers: xorshift64*, the same on every machine ---------------------------------------------------------- */
typedef struct test_rng {
    uint64_t s;
} test_rng;
/* `base`, or base mixed with STRATA_SEED when the environment has it (the soak sets it). */
uint64_t test_seed(uint64_t base);
test_rng test_rng_make(uint64_t base); /* from test_seed(base) */
uint64_t test_u64(test_rng *r);
int64_t test_int(test_rng *r, int64_t lo, int64_t hi); /* lo <= x <= hi */
double test_real(test_rng *r, double lo, double hi);
bool test_chance(test_rng *r, double p);
/* STRATA_TEST_VALUES=ignore: wrong values are no failure, wrong errors are. For runs on a driver that computes nothing (tools/check_cuda). */
bool test_values_ignored(void);
/* n, or more when STRATA_SOAK is set */
int test_rounds(int n);

/* ---- the device: STRATA_TEST_DEVICE of the environment ("auto": a GPU, with the operands copied there and back), else "cpu" ---- */
const char *test_device(void);

/* ---- failing with the problem's line ------------------------------------------------------------------------------------ */
/* Remembers the line that reproduces what runs now; every failure below prints it (and STRATA_SEED when set). */
void test_problem(const char *fmt, ...) TEST_PRINTF(1, 2);
void test_fail(const char *file, int line, const char *fmt, ...) TEST_PRINTF(3, 4);
#define test_check(cond, ...)                                               \
    do {                                                                    \
        if (!(cond)) test_fail(__FILE__, __LINE__, #cond ": " __VA_ARGS__); \
    } while (0)
/* |got - want| <= bound; a NaN on either side fails unless both are NaN; equal infinities pass */
bool test_near(double got, double want, double bound);
#define test_close(got, want, bound, ...)                                             \
    do {                                                                              \
        double test_g = (got), test_w = (want), test_b = (bound);                     \
        if (!test_near(test_g, test_w, test_b))                                       \
            test_fail_close(__FILE__, __LINE__, test_g, test_w, test_b, __VA_ARGS__); \
    } while (0)
void test_fail_close(const char *file, int line, double got, double want, double bound, const char *fmt, ...)
    TEST_PRINTF(6, 7);
/* the status is `want` and, for an error, the text of h (NULL: the thread's) has each of the words, a NULL-ended list */
#define test_error(h, got, want, ...) \
    test_error_words(__FILE__, __LINE__, h, got, want, #got, (const char *const[]){__VA_ARGS__, NULL})
#define test_ok(h, got) test_error_words(__FILE__, __LINE__, h, got, STRATA_OK, #got, NULL)
void test_error_words(const char *file, int line, strata_handle *h, strata_status got, strata_status want,
                      const char *call, const char *const *words);

/* ---- bounds ---------------------------------------------------------------------------------------------------------------- */
double test_unit(strata_type t); /* unit round-off u of a floating type: 2^-24 for f32 */
/* gamma_k = k u / (1 - k u) (Higham, Accuracy and Stability, section 3.1), the bound of a sum or product of k terms, times |.| */
double test_gamma(int64_t k, strata_type t);

/* ---- memory ------------------------------------------------------------------------------------------------------------------ */
/* `bytes` bytes of 0xff (a NaN in every floating type) that end exactly where a PROT_NONE page begins (at_end), or begin exactly where
 * one ends; both sides have a guard page, and the slack on the other side is checked by test_guard_intact. Freed by test_guard_free. */
void *test_guard(size_t bytes, bool at_end);
bool test_guard_intact(const void *p);
void test_guard_free(void *p);
void test_poison(void *p, size_t bytes); /* 0xff */

/* ---- random views -------------------------------------------------------------------------------------------------------------- */
enum {
    TEST_PACKED = 0,
    TEST_PERMUTED = 1,  /* dims in any order in memory */
    TEST_PADDED = 2,    /* gaps between rows */
    TEST_STEPPED = 4,   /* innermost stride above 1 */
    TEST_NEGATIVE = 8,  /* some strides negative */
    TEST_BROADCAST = 16 /* some strides 0: inputs only */
};
#define TEST_ANY (TEST_PERMUTED | TEST_PADDED | TEST_STEPPED | TEST_NEGATIVE)
typedef struct test_array {
    strata_tensor t;
    unsigned char *base; /* guarded buffer, whose first or last byte belongs to an element */
    size_t bytes;
} test_array;
/* Each flag of `how` is applied at random; all bytes are 0xff. Whole-byte types. */
test_array test_array_make(test_rng *r, strata_type type, int rank, const int64_t *dim, unsigned how);
void test_array_free(test_array *a);
void test_array_random(test_rng *r, test_array *a, double lo, double hi); /* floats uniform, integers whole */
void test_array_integers(test_rng *r, test_array *a, int64_t lo,
                         int64_t hi); /* whole numbers: sums are exact */
void test_array_set(test_array *a, double v);
void test_array_intact(const test_array *a); /* fails when a byte that belongs to no element is not 0xff */

/* Elements by index. `test_next` steps idx through all of a tensor's indices in row-major order; false when done:
 *     int64_t i[STRATA_MAX_RANK] = {0};
 *     if (strata_count(t)) do { ... } while (test_next(&t, i)); */
bool test_next(const strata_tensor *t, int64_t *idx);
char *test_at(const strata_tensor *t, const int64_t *idx);
double test_get(const strata_tensor *t, const int64_t *idx);
void test_put(const strata_tensor *t, const int64_t *idx, double v);
/* shorthand for the first four indices */
#define test_elem(t, ...) test_get(&(t), (const int64_t[STRATA_MAX_RANK]){__VA_ARGS__})
/* "f32 3x4 (stride 9,-2)" in a static ring of buffers */
const char *test_say(strata_tensor t);
#endif
