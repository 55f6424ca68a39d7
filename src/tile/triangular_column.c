/* SPDX-License-Identifier: Apache-2.0 */
/* triangular_column.c - a triangle on the CPU, column of B by column: substitution with true divisions, or the product in the order in which
 * no element is needed after it is written. Slow and obvious, without workspace: for where the packed blocks have no room, or where the
 * inverse of a diagonal element is no normal number. */
#include "tile/triangular.h"
#include "tile/contract.h"

typedef struct column_job {
    const st_triangle *t;
    double alpha[2];
} column_job;

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

void st_triangle_column_range(const st_triangle *t, const double alpha[2], int64_t first, int64_t end)
{
    const int64_t es = (int64_t)strata_type_bits((strata_type)t->type) / 8;
    for (int64_t col = first; col < end; col++) {
        char *b = (char *)t->b + col * t->bcs * es;
        switch (t->type) {
        case STRATA_F32: column_float(t, alpha[0], t->a, (float *)(void *)b); break;
        case STRATA_F64: column_double(t, alpha[0], t->a, (double *)(void *)b); break;
        case STRATA_C64: pairs_float(t, alpha, t->a, (float *)(void *)b); break;
        default: pairs_double(t, alpha, t->a, (double *)(void *)b);
        }
    }
}

static void column_task(void *arg, int64_t i, int worker)
{
    const column_job *j = arg;
    const int64_t g = i / j->t->cols, col = i % j->t->cols,
                  es = (int64_t)strata_type_bits((strata_type)j->t->type) / 8;
    st_triangle one = *j->t;
    (void)worker;
    one.a = (const char *)one.a + st_axes_offset(&one.batch, 'a', g) * es;
    one.b = (char *)one.b + st_axes_offset(&one.batch, 'b', g) * es;
    st_triangle_column_range(&one, j->alpha, col, col + 1);
}

void st_triangle_columns(strata_handle *h, const st_triangle *t, const double alpha[2])
{
    column_job j = {t, {alpha[0], alpha[1]}};
    const int64_t items = st_axes_len(&t->batch);
    st_team_for(h, items * t->cols, (double)items * (double)(t->cols * t->n * t->n) * 1e-3, column_task, &j);
}
