/* SPDX-License-Identifier: Apache-2.0 */
/* level1_rot.c - building rotations: a handful of numbers, computed on the host in f64 and rounded once. */
#include "pointwise/pointwise.h"
#include "pointwise/vector.h"
#include "runtime/handle.h"
#include <float.h>
#include <math.h>
#include <strata/blas.h>
#include <string.h>

/* The parts of a tensor of a few numbers, wherever it lies, to v and back. */
enum { FEW = 5 };
static strata_tensor packed(const strata_tensor *t, void *room)
{
    return strata_array(room, (strata_type)t->type, t->rank, t->dim, NULL);
}
static strata_status get(strata_handle *h, const strata_tensor *t, int parts, double *v)
{
    double room[FEW] = {0};
    const int part = st_type_part(t->type);
    strata_status s = strata_copy(h, *t, packed(t, room));
    for (int i = 0; i < parts && !s; i++)
        st_load_f64(part, (char *)room + (size_t)i * strata_type_bits((strata_type)part) / 8, &v[i]);
    return s;
}
static strata_status put(strata_handle *h, const strata_tensor *t, int parts, const double *v)
{
    double room[FEW];
    const int part = st_type_part(t->type);
    for (int i = 0; i < parts; i++)
        st_store_f64(part, (char *)room + (size_t)i * strata_type_bits((strata_type)part) / 8, v[i]);
    return strata_copy(h, packed(t, room), *t);
}

static strata_status check_number(strata_handle *h, const char *who, const char *name, const strata_tensor *t,
                                  int type)
{
    strata_status s = st_tensor_check_output(&h->err, who, name, t);
    if (s) return s;
    if (t->rank != 0)
        return st_fail(&h->err, STRATA_ERROR_SHAPE, "%s: %s is %s; it must be one number (strata_point)", who,
                       name, ST_DIMS(*t));
    if (t->type != type)
        return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: %s is %s; it must be %s", who, name,
                       strata_type_name((strata_type)t->type), strata_type_name((strata_type)type));
    return STRATA_OK;
}

/* v: a, b -> r, z; c, s. After Anderson, "Safe scaling in the level 1 BLAS": no overflow unless r itself overflows. */
static void rotg_real(double v[2], double *c, double *s)
{
    const double a = v[0], b = v[1], na = fabs(a), nb = fabs(b);
    if (nb == 0) {
        *c = 1, *s = 0;
        v[1] = 0;
    } else if (na == 0) {
        *c = 0, *s = 1;
        v[0] = b, v[1] = 1;
    } else {
        const double scale = fmin(0x1p+1022, fmax(DBL_MIN, fmax(na, nb))),
                     sigma = na > nb ? copysign(1, a) : copysign(1, b);
        const double r = sigma * (scale * sqrt((a / scale) * (a / scale) + (b / scale) * (b / scale)));
        *c = a / r;
        *s = b / r;
        v[0] = r;
        v[1] = na > nb ? *s : *c != 0 ? 1 / *c : 1;
    }
}

/* a := r, and c real, s complex with (c s; -conj(s) c) (a b)' = (r 0)'. */
static void rotg_complex(double a[2], const double b[2], double *c, double s[2])
{
    const double na = hypot(a[0], a[1]), nb = hypot(b[0], b[1]);
    if (nb == 0) {
        *c = 1, s[0] = s[1] = 0;
    } else if (na == 0) {
        *c = 0;
        s[0] = b[0] / nb, s[1] = -b[1] / nb;
        a[0] = nb, a[1] = 0;
    } else {
        const double norm = hypot(na, nb), p[2] = {a[0] / na, a[1] / na}, q[2] = {b[0] / norm, -b[1] / norm};
        *c = na / norm;
        s[0] = p[0] * q[0] - p[1] * q[1];
        s[1] = p[0] * q[1] + p[1] * q[0];
        a[0] = p[0] * norm;
        a[1] = p[1] * norm;
    }
}

strata_status strata_rotg(strata_handle *h, strata_tensor a, strata_tensor b, strata_tensor c,
                          strata_tensor s)
{
    static const char who[] = "strata_rotg";
    strata_status e = st_handle_check(h, who);
    if (e) return e;
    const int type = a.type, part = st_type_part(type), n = st_type_is_complex(type) ? 2 : 1;
    if (part != STRATA_F32 && part != STRATA_F64)
        return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: a is %s; f32, f64, c64 and c128 are supported", who,
                       strata_type_name((strata_type)type));
    if ((e = check_number(h, who, "a", &a, type)) || (e = check_number(h, who, "b", &b, type)) ||
        (e = check_number(h, who, "c", &c, part)) || (e = check_number(h, who, "s", &s, type)))
        return e;
    const strata_tensor *all[] = {&a, &b, &c, &s};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            if (st_tensor_overlap(all[i], all[k]))
                return st_fail(&h->err, STRATA_ERROR_ALIAS,
                               "%s: %c and %c overlap in memory; each needs a place of its own", who,
                               "abcs"[k], "abcs"[i]);
    double va[2] = {0}, vb[2] = {0}, vc, vs[2] = {0};
    if ((e = get(h, &a, n, va)) || (e = get(h, &b, n, vb))) return e;
    if (n == 1) {
        double v[2] = {va[0], vb[0]};
        rotg_real(v, &vc, vs);
        va[0] = v[0], vb[0] = v[1];
    } else {
        rotg_complex(va, vb, &vc, vs);
    }
    if ((e = put(h, &a, n, va)) || (e = put(h, &c, 1, &vc)) || (e = put(h, &s, n, vs))) return e;
    return n == 1 ? put(h, &b, 1, vb) : STRATA_OK;
}

static strata_status check_param(strata_handle *h, const char *who, const strata_tensor *p, int type)
{
    strata_status s = st_tensor_check_output(&h->err, who, "param", p);
    if (s) return s;
    if (p->rank != 1 || p->dim[0] != 5 || p->type != type)
        return st_fail(&h->err, p->type != type ? STRATA_ERROR_TYPE : STRATA_ERROR_SHAPE,
                       "%s: param is %s %s; it must be %s with 5 elements: flag, h11, h21, h12, h22", who,
                       strata_type_name((strata_type)p->type), p->rank ? ST_DIMS(*p) : "of one element",
                       strata_type_name((strata_type)type));
    return STRATA_OK;
}

static strata_status real_type(strata_handle *h, const char *who, const char *name, const strata_tensor *t)
{
    if (t->type == STRATA_F32 || t->type == STRATA_F64) return STRATA_OK;
    return st_fail(&h->err, STRATA_ERROR_TYPE, "%s: %s is %s; f32 and f64 are supported", who, name,
                   strata_type_name((strata_type)t->type));
}

strata_status strata_rotm(strata_handle *h, strata_tensor x, strata_tensor y, strata_tensor param)
{
    static const char who[] = "strata_rotm";
    double p[5];
    strata_status s = st_handle_check(h, who);
    if (s || (s = st_tensor_check_output(&h->err, who, "x", &x)) ||
        (s = st_tensor_check_output(&h->err, who, "y", &y)) || (s = real_type(h, who, "x", &x)) ||
        (s = check_param(h, who, &param, x.type)))
        return s;
    if (x.rank != 1 || y.rank != 1 || x.type != y.type || x.dim[0] != y.dim[0])
        return st_fail(&h->err, STRATA_ERROR_SHAPE,
                       "%s: x is %s and y is %s; two vectors of one type and length are expected", who,
                       ST_DIMS(x), ST_DIMS(y));
    if (st_tensor_overlap(&x, &y))
        return st_fail(&h->err, STRATA_ERROR_ALIAS, "%s: x and y overlap in memory", who);
    if (x.dim[0] == 0 || (s = get(h, &param, 5, p))) return s;
    double m[4] = {p[1], p[2], p[3], p[4]};
    if (p[0] == -2) return STRATA_OK;
    if (p[0] == 0) m[0] = m[3] = 1;
    if (p[0] == 1) m[2] = 1, m[1] = -1;
    if (p[0] != 0 && p[0] != 1 && p[0] != -1)
        return st_fail(&h->err, STRATA_ERROR_ARGUMENT, "%s: param's flag is %g; it must be -2, -1, 0 or 1",
                       who, p[0]);
    if (h->gpu) {
        double room[4]; /* numbers of the vectors' type, as the program's operands */
        static const char *const names[] = {"h11", "h21", "h12", "h22"};
        strata_operand o[7] = {{"x", x}, {"y", y}, {0}};
        for (int i = 0; i < 4; i++) {
            st_store_f64(x.type, &room[i], m[i]);
            o[2 + i] = (strata_operand){names[i], strata_point(&room[i], (strata_type)x.type)};
        }
        return st_pw_run(h, who, "a = h11 * x + h12 * y; b = h21 * x + h22 * y; x = a; y = b", o, 0);
    }
    st_vec_rotm(h, x.type, x.dim[0], m, (st_vec){x.data, x.stride[0]}, (st_vec){y.data, y.stride[0]});
    return STRATA_OK;
}

/* Keeps d1 and d2 within [2^-24, 2^24], rescaling rows of H: BLAS's gam is 4096. */
static void rescale(double *d, double *row1, double *row2, double *flag, double m[4], double *x1)
{
    const double gam = 4096, big = gam * gam, small = 1 / big;
    while (*d != 0 && (fabs(*d) <= small || fabs(*d) >= big)) {
        if (*flag == 0) m[0] = m[3] = 1;
        if (*flag == 1) m[2] = 1, m[1] = -1;
        *flag = -1;
        const double f = fabs(*d) <= small ? gam : 1 / gam;
        *d *= f * f;
        *row1 /= f;
        *row2 /= f;
        if (x1) *x1 /= f;
    }
}

/* m: h11 h21 h12 h22. Lawson and others, TOMS 5 (1979), with the sign rules of the reference implementation. */
static double rotmg(double *d1, double *d2, double *x1, double y1, double m[4])
{
    double flag = -1;
    memset(m, 0, 4 * sizeof *m);
    if (*d1 < 0) {
        *d1 = *d2 = *x1 = 0;
        return flag;
    }
    const double p2 = *d2 * y1, p1 = *d1 * *x1, q2 = p2 * y1, q1 = p1 * *x1;
    if (p2 == 0) return -2;
    if (fabs(q1) > fabs(q2)) {
        m[1] = -y1 / *x1;
        m[2] = p2 / p1;
        const double u = 1 - m[2] * m[1];
        if (!(u > 0)) {
            memset(m, 0, 4 * sizeof *m);
            *d1 = *d2 = *x1 = 0;
            return -1;
        }
        flag = 0;
        *d1 /= u;
        *d2 /= u;
        *x1 *= u;
    } else if (q2 < 0) {
        *d1 = *d2 = *x1 = 0;
        return -1;
    } else {
        flag = 1;
        m[0] = p1 / p2;
        m[3] = *x1 / y1;
        const double u = 1 + m[0] * m[3], t = *d2 / u;
        *d2 = *d1 / u;
        *d1 = t;
        *x1 = y1 * u;
    }
    rescale(d1, &m[0], &m[2], &flag, m, x1);
    rescale(d2, &m[1], &m[3], &flag, m, NULL);
    return flag;
}

strata_status strata_rotmg(strata_handle *h, strata_tensor d1, strata_tensor d2, strata_tensor x1,
                           strata_tensor y1, strata_tensor param)
{
    static const char who[] = "strata_rotmg";
    double v[4], p[5] = {0}, m[4], old[5];
    const strata_tensor *t[] = {&d1, &d2, &x1, &y1};
    static const char *const name[] = {"d1", "d2", "x1", "y1"};
    strata_status s = st_handle_check(h, who);
    if (s || (s = real_type(h, who, "d1", &d1)) || (s = check_param(h, who, &param, d1.type))) return s;
    for (int i = 0; i < 4; i++)
        if ((s = check_number(h, who, name[i], t[i], d1.type)) || (s = get(h, t[i], 1, &v[i]))) return s;
    p[0] = rotmg(&v[0], &v[1], &v[2], v[3], m);
    /* as in BLAS, only what the flag makes meaningful is stored */
    if ((s = get(h, &param, 5, old))) return s;
    memcpy(p + 1, old + 1, 4 * sizeof *p);
    if (p[0] == -1) memcpy(p + 1, m, 4 * sizeof *m);
    if (p[0] == 0) p[2] = m[1], p[3] = m[2];
    if (p[0] == 1) p[1] = m[0], p[4] = m[3];
    for (int i = 0; i < 3; i++)
        if ((s = put(h, t[i], 1, &v[i]))) return s;
    return put(h, &param, 5, p);
}
