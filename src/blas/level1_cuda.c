/* SPDX-License-Identifier: Apache-2.0 */
/* level1_cuda.c - see level1.h. A complex vector of stride s is two real ones of stride 2 s, or n x 2 parts, which join to 2 n neighbours where s = 1. */
#include "blas/level1.h"
#include "pointwise/pointwise.h"
#include <stdio.h>

strata_tensor st_level1_parts(const strata_tensor *t)
{
    if (!st_type_is_complex(t->type)) return *t;
    const int64_t dim[2] = {t->dim[0], 2}, stride[2] = {2 * t->stride[0], 1};
    return strata_array(t->data, (strata_type)st_type_part(t->type), 2, dim, stride);
}

static strata_tensor part(const strata_tensor *t, int which)
{
    const int type = st_type_part(t->type);
    char *at = (char *)t->data + which * (type == STRATA_F32 ? 4 : 8);
    if (t->rank == 0 || strata_count(*t) == 1) return strata_point(at, (strata_type)type);
    const int64_t stride = 2 * t->stride[0];
    return strata_array(at, (strata_type)type, 1, t->dim, &stride);
}

static strata_tensor vector_part(const strata_tensor *t, int which)
{
    const int type = st_type_part(t->type);
    const int64_t stride = 2 * t->stride[0];
    return strata_array((char *)t->data + which * (type == STRATA_F32 ? 4 : 8), (strata_type)type, 1, t->dim,
                        &stride);
}

static strata_operand number(const char *name, int type, double v, double *room)
{
    st_store_f64(type, room, v);
    return (strata_operand){name, strata_point(room, (strata_type)type)};
}

strata_status st_level1_axpby(strata_handle *h, const char *who, const double a[2], const strata_tensor *x,
                              const double b[2], const strata_tensor *y)
{
    const int type = st_type_part(y->type);
    double room[4];
    if (!x && b[1] == 0) {
        strata_operand o[] = {{"y", st_level1_parts(y)}, number("b", type, b[0], &room[0]), {0}};
        return st_pw_run(h, who, "y = b * y", o, 0);
    }
    if (x && a[1] == 0 && b[1] == 0) {
        strata_operand o[] = {{"y", st_level1_parts(y)},
                              number("b", type, b[0], &room[0]),
                              {"x", st_level1_parts(x)},
                              number("a", type, a[0], &room[1]),
                              {0}};
        return st_pw_run(h, who, b[0] == 0 ? "y = a * x + 0 * b" : "y = a * x + b * y", o, 0);
    }
    if (x && b[0] == 0 && b[1] == 0) {
        strata_operand o[] = {{"p", vector_part(y, 0)},
                              {"q", vector_part(y, 1)},
                              {"u", vector_part(x, 0)},
                              {"v", vector_part(x, 1)},
                              number("a", type, a[0], &room[0]),
                              number("c", type, a[1], &room[1]),
                              {0}};
        return st_pw_run(h, who, "p = a * u - c * v; q = a * v + c * u", o, 0);
    }
    strata_operand o[9] = {{"p", vector_part(y, 0)},
                           {"q", vector_part(y, 1)},
                           number("b", type, b[0], &room[0]),
                           number("d", type, b[1], &room[1])};
    if (!x) return st_pw_run(h, who, "s = b * p - d * q; t = b * q + d * p; p = s; q = t", o, 0);
    o[4] = (strata_operand){"u", vector_part(x, 0)}, o[5] = (strata_operand){"v", vector_part(x, 1)};
    o[6] = number("a", type, a[0], &room[2]), o[7] = number("c", type, a[1], &room[3]);
    return st_pw_run(
        h, who, "s = (a * u - c * v) + (b * p - d * q); t = (a * v + c * u) + (b * q + d * p); p = s; q = t",
        o, 0);
}

strata_status st_level1_dot(strata_handle *h, const char *who, bool conjugate, const strata_tensor *x,
                            const strata_tensor *y, const strata_tensor *r)
{
    strata_operand o[] = {{"p", vector_part(x, 0)},
                          {"q", vector_part(x, 1)},
                          {"u", vector_part(y, 0)},
                          {"v", vector_part(y, 1)},
                          {"r", part(r, 0)},
                          {"i", part(r, 1)},
                          {0}};
    return st_pw_run(h, who,
                     conjugate ? "r = sum(p * u) + sum(q * v); i = sum(p * v) - sum(q * u)"
                               : "r = sum(p * u) - sum(q * v); i = sum(p * v) + sum(q * u)",
                     o, 0);
}

/* Squares of f64 go to one of three sums, as on the processor (vector.c: Anderson's algorithm); those of f32 have room in f64. */
strata_status st_level1_sum(strata_handle *h, const char *who, bool squares, const strata_tensor *x,
                            const strata_tensor *r)
{
    char text[640];
    double one = 1;
    strata_operand o[] = {{"x", st_level1_parts(x)},
                          {"r", strata_point(r->data, (strata_type)r->type)},
                          {"u", strata_point(&one, STRATA_F64)},
                          {0}};
    const uint32_t axes = st_type_is_complex(x->type) ? 3 : 0;
    if (!squares) {
        o[2] = (strata_operand){0};
        return st_pw_run(h, who, "r = sum(abs(x))", o, axes);
    }
    if (st_type_part(x->type) == STRATA_F32) return st_pw_run(h, who, "r = sqrt(sum(x * x)) * u", o, axes);
    o[2] = (strata_operand){0};
    const double large = 0x1p+486, little = 0x1p-511, down = 0x1p-538, up = 0x1p+537;
    snprintf(
        text, sizeof text,
        "a = abs(x); d = a * %.17g; e = a * %.17g; b = sum(select(a > %.17g, d * d, 0)); t = sum(select(a < "
        "%.17g, e * e, 0)); m = sum(select(a > %.17g || a < %.17g, 0, a * a)); "
        "r = select(b > 0, sqrt(b + m * %.17g * %.17g) / %.17g, select(t > 0 && m < 1e-250, "
        "sqrt(t + m * %.17g * %.17g) / %.17g, sqrt(m)))",
        down, up, large, little, large, little, down, down, down, up, up, up);
    return st_pw_run(h, who, text, o, axes);
}

strata_status st_level1_rot(strata_handle *h, const char *who, double c, const double s[2],
                            const strata_tensor *x, const strata_tensor *y)
{
    const int type = st_type_part(x->type);
    double room[3];
    strata_operand o[] = {{"p", vector_part(x, 0)},          {"q", vector_part(x, 1)},
                          {"u", vector_part(y, 0)},          {"v", vector_part(y, 1)},
                          number("c", type, c, &room[0]),    number("s", type, s[0], &room[1]),
                          number("z", type, s[1], &room[2]), {0}};
    return st_pw_run(h, who,
                     "k = c * p + (s * u - z * v); l = c * q + (s * v + z * u); m = c * u - (s * p + z * q); "
                     "o = c * v - (s * q - z * p); p = k; q = l; u = m; v = o",
                     o, 0);
}
