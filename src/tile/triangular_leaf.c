/* SPDX-License-Identifier: Apache-2.0 */
/* triangular_leaf.c - a diagonal block on the CPU, column of B by column: substitution, or the product in the order in which no element is
 * needed after it is written. */
#include "tile/triangular.h"
#include "tile/contract.h"

typedef struct leaf_job {
    const st_triangle *t;
    double alpha[2];
} leaf_job;

#define COLUMN(T)                                                                              \
    static void column_##T(const st_triangle *t, double al, const T *a, T *b)                  \
    {                                                                                          \
        const int64_t n = t->n, lower = t->rule.half == ST_HALF_LOWER, up = lower == t->solve; \
        for (int64_t q = 0; q < n; q++) {                                                      \
            const int64_t i = up ? q : n - 1 - q, p0 = lower ? 0 : i + 1, p1 = lower ? i : n;  \
            T s = 0;                                                                           \
            for (int64_t p = p0; p < p1; p++) s += a[i * t->ars + p * t->acs] * b[p * t->brs]; \
            T *x = b + i * t->brs;                                                             \
            const T d = t->rule.unit ? 1 : a[i * (t->ars + t->acs)];                           \
            *x = t->solve ? ((T)al * *x - s) / d : (T)al * (s + d * *x);                       \
        }                                                                                      \
    }
COLUMN(float)
COLUMN(double)

#define PAIRS(T)                                                                                            \
    static void pairs_##T(const st_triangle *t, const double al[2], const T *a, T *b)                       \
    {                                                                                                       \
        const int64_t n = t->n, lower = t->rule.half == ST_HALF_LOWER, up = lower == t->solve;              \
        const double conj = t->rule.conj ? -1 : 1;                                                          \
        for (int64_t q = 0; q < n; q++) {                                                                   \
            const int64_t i = up ? q : n - 1 - q, p0 = lower ? 0 : i + 1, p1 = lower ? i : n;               \
            double re = 0, im = 0;                                                                          \
            for (int64_t p = p0; p < p1; p++) {                                                             \
                const T *e = a + 2 * (i * t->ars + p * t->acs), *y = b + 2 * p * t->brs;                    \
                const double ai = conj * (double)e[1];                                                      \
                re += (double)e[0] * (double)y[0] - ai * (double)y[1];                                      \
                im += (double)e[0] * (double)y[1] + ai * (double)y[0];                                      \
            }                                                                                               \
            T *x = b + 2 * i * t->brs;                                                                      \
            const T *e = a + 2 * i * (t->ars + t->acs);                                                     \
            const double dr = t->rule.unit ? 1 : (double)e[0], di = t->rule.unit ? 0 : conj * (double)e[1]; \
            double xr = (double)x[0], xi = (double)x[1];                                                    \
            if (t->solve) {                                                                                 \
                const double r = al[1] == 0 ? al[0] * xr : al[0] * xr - al[1] * xi;                         \
                xi = al[1] == 0 ? al[0] * xi : al[0] * xi + al[1] * xr;                                     \
                xr = r;                                                                                     \
                double _Complex z = __builtin_complex(xr - re, xi - im);                                    \
                if (!t->rule.unit) z /= __builtin_complex(dr, di);                                          \
                re = __real__ z;                                                                            \
                im = __imag__ z;                                                                            \
            } else {                                                                                        \
                re += t->rule.unit ? xr : dr * xr - di * xi;                                                \
                im += t->rule.unit ? xi : dr * xi + di * xr;                                                \
                const double r = al[1] == 0 ? al[0] * re : al[0] * re - al[1] * im;                         \
                im = al[1] == 0 ? al[0] * im : al[0] * im + al[1] * re;                                     \
                re = r;                                                                                     \
            }                                                                                               \
            x[0] = (T)re;                                                                                   \
            x[1] = (T)im;                                                                                   \
        }                                                                                                   \
    }
PAIRS(float)
PAIRS(double)

static void column_task(void *arg, int64_t i, int worker)
{
    const leaf_job *j = arg;
    const st_triangle *t = j->t;
    const int64_t g = i / t->cols, col = i % t->cols,
                  es = (int64_t)strata_type_bits((strata_type)t->type) / 8;
    const char *a = (const char *)t->a + st_axes_offset(&t->batch, 'a', g) * es;
    char *b = (char *)t->b + (st_axes_offset(&t->batch, 'b', g) + col * t->bcs) * es;
    (void)worker;
    switch (t->type) {
    case STRATA_F32: column_float(t, j->alpha[0], (const float *)a, (float *)b); break;
    case STRATA_F64: column_double(t, j->alpha[0], (const double *)a, (double *)b); break;
    case STRATA_C64: pairs_float(t, j->alpha, (const float *)a, (float *)b); break;
    default: pairs_double(t, j->alpha, (const double *)a, (double *)b);
    }
}

strata_status st_triangle_leaf(strata_handle *h, const char *who, const st_triangle *t, const double alpha[2])
{
    leaf_job j = {t, {alpha[0], alpha[1]}};
    if (h->gpu)
        return st_fail(&h->err, STRATA_ERROR_UNSUPPORTED, "%s: %s has no kernel for triangular blocks", who,
                       h->device);
    const int64_t items = st_axes_len(&t->batch);
    st_team_for(h, items * t->cols, (double)items * (double)(t->cols * t->n * t->n) * 1e-3, column_task, &j);
    return STRATA_OK;
}
