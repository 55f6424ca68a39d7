/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - repeatable random numbers, the line that reproduces a problem, comparisons that a NaN fails. */
#include "support.h"
#include <math.h>

static uint64_t mix(uint64_t x)
{ /* splitmix64, so that neighbouring seeds give unrelated sequences */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t test_seed(uint64_t base)
{
    const char *env = getenv("STRATA_SEED");
    return env && *env ? mix(base) ^ mix(strtoull(env, NULL, 10) + 1) : base;
}

test_rng test_rng_make(uint64_t base)
{
    uint64_t s = mix(test_seed(base));
    return (test_rng){s ? s : 1};
}

uint64_t test_u64(test_rng *r)
{
    r->s ^= r->s >> 12;
    r->s ^= r->s << 25;
    r->s ^= r->s >> 27;
    return r->s * 0x2545f4914f6cdd1du;
}

int64_t test_int(test_rng *r, int64_t lo, int64_t hi)
{
    uint64_t n = (uint64_t)hi - (uint64_t)lo + 1;
    return (int64_t)((uint64_t)lo + (n ? test_u64(r) % n : test_u64(r)));
}

double test_real(test_rng *r, double lo, double hi)
{
    return lo + (hi - lo) * ((double)(test_u64(r) >> 11) * 0x1p-53);
}

bool test_chance(test_rng *r, double p) { return test_real(r, 0, 1) < p; }

int test_rounds(int n)
{
    const char *soak = getenv("STRATA_SOAK");
    return soak && *soak && strcmp(soak, "0") ? 4 * n : n;
}

static _Thread_local char problem[400];

void test_problem(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(problem, sizeof problem, fmt, ap);
    va_end(ap);
}

static void report(const char *file, int line, const char *what)
{
    const char *seed = getenv("STRATA_SEED");
    if (problem[0]) fprintf(stderr, "problem: %s\n", problem);
    if (seed && *seed) fprintf(stderr, "seed: STRATA_SEED=%s\n", seed);
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    _fail(file, line);
    abort(); /* not reached: cmocka leaves the test */
}

bool test_values_ignored(void)
{
    static int known = -1;
    if (known < 0) {
        const char *v = getenv("STRATA_TEST_VALUES");
        known = v && strcmp(v, "ignore") == 0;
    }
    return known;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
    char text[1200];
    if (test_values_ignored()) return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    report(file, line, text);
}

bool test_near(double got, double want, double bound)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want) || isinf(got)) return got == want;
    return fabs(got - want) <= bound;
}

void test_fail_close(const char *file, int line, double got, double want, double bound, const char *fmt, ...)
{
    char where[300], text[600];
    va_list ap;
    if (test_values_ignored()) return;
    va_start(ap, fmt);
    vsnprintf(where, sizeof where, fmt, ap);
    va_end(ap);
    snprintf(text, sizeof text, "%s is %.17g, should be %.17g: off by %.3g, allowed %.3g", where, got, want,
             fabs(got - want), bound);
    report(file, line, text);
}

void test_error_words(const char *file, int line, strata_handle *h, strata_status got, strata_status want,
                      const char *call, const char *const *words)
{
    char text[3200] = "";
    if (got != want)
        snprintf(text, sizeof text, "%s gave %s, should give %s; error text: %s", call,
                 strata_status_name(got), strata_status_name(want), strata_error(h));
    for (int i = 0; !*text && got && words && words[i]; i++)
        if (!strstr(strata_error(h), words[i]))
            snprintf(text, sizeof text, "%s: the message lacks \"%s\": %s", call, words[i], strata_error(h));
    if (*text) report(file, line, text);
}

double test_unit(strata_type t)
{
    switch (t) {
    case STRATA_F64: return 0x1p-53;
    case STRATA_F32: return 0x1p-24;
    case STRATA_F16: return 0x1p-11;
    case STRATA_BF16: return 0x1p-8;
    case STRATA_F8E4M3: return 0x1p-4;
    case STRATA_F8E5M2: return 0x1p-3;
    default: return 0;
    }
}

double test_gamma(int64_t k, strata_type t)
{
    double ku = (double)k * test_unit(t);
    return ku < 1 ? ku / (1 - ku) : INFINITY;
}

const char *test_device(void)
{
    const char *d = getenv("STRATA_TEST_DEVICE");
    return d && *d ? d : "cpu";
}
