/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: every 16- and 8-bit code both ways against definitions written out here, ties, saturation, NaN, and conversion from f64 in
 * one rounding. */
#include "base/base.h"
#include "support.h"
#include <fenv.h>
#include <math.h>

/* A format as its definition says it: sign, exponent of e bits, mantissa of m bits. `fn`: finite numbers in the top exponent too (e4m3). */
typedef struct format {
    const char *name;
    strata_type type;
    int e, m;
    bool fn, saturate;
} format;
static const format formats[] = {{"f16", STRATA_F16, 5, 10, false, false},
                                 {"bf16", STRATA_BF16, 8, 7, false, false},
                                 {"f8e4m3", STRATA_F8E4M3, 4, 3, true, true},
                                 {"f8e5m2", STRATA_F8E5M2, 5, 2, false, true}};

static unsigned codes(const format *f) { return 1u << (1 + f->e + f->m); }

static double decode(const format *f, unsigned c)
{
    unsigned top = (1u << f->e) - 1, ex = c >> f->m & top, man = c & ((1u << f->m) - 1);
    double v;
    if (ex == top && (f->fn ? man == (1u << f->m) - 1 : man != 0)) return NAN;
    if (ex == top && !f->fn)
        v = INFINITY;
    else if (ex == 0)
        v = man * pow(2, 2 - (1 << (f->e - 1)) - f->m);
    else
        v = (1 + man * pow(2, -f->m)) * pow(2, (int)ex - (1 << (f->e - 1)) + 1);
    return c >> (f->e + f->m) ? -v : v;
}

static double library_decode(const format *f, unsigned c)
{
    switch (f->type) {
    case STRATA_F16: return st_f16_to_f32((uint16_t)c);
    case STRATA_BF16: return st_bf16_to_f32((uint16_t)c);
    case STRATA_F8E4M3: return st_f8e4m3_to_f32((uint8_t)c);
    default: return st_f8e5m2_to_f32((uint8_t)c);
    }
}

static unsigned library_encode(const format *f, float v)
{
    switch (f->type) {
    case STRATA_F16: return st_f32_to_f16(v);
    case STRATA_BF16: return st_f32_to_bf16(v);
    case STRATA_F8E4M3: return st_f32_to_f8e4m3(v);
    default: return st_f32_to_f8e5m2(v);
    }
}

static unsigned store_code(const format *f, double v)
{
    uint16_t c = 0;
    assert_true(st_store_f64(f->type, &c, v));
    return f->e + f->m == 7 ? *(uint8_t *)&c : c;
}

/* Codes in the order of their values: 0 .. largest finite of the positive half. */
static unsigned largest(const format *f)
{
    unsigned c = codes(f) / 2 - 1;
    while (!isfinite(decode(f, c))) c--;
    return c;
}

static void check_nan(const format *f, unsigned got, const char *what)
{
    test_check(isnan(decode(f, got)), "%s of %s gave code 0x%x", what, f->name, got);
}

static void every_code(void **state)
{
    (void)state;
    for (int k = 0; k < TEST_COUNT(formats); k++) {
        const format *f = &formats[k];
        for (unsigned c = 0; c < codes(f); c++) {
            double want = decode(f, c), got = library_decode(f, c), loaded;
            uint16_t raw = (uint16_t)c;
            uint8_t raw8 = (uint8_t)c;
            test_problem("%s code 0x%x", f->name, c);
            test_check(isnan(want) ? isnan(got) : got == want && signbit(got) == signbit(want), "%g, not %g",
                       got, want);
            assert_true(st_load_f64(f->type, f->e + f->m == 7 ? (void *)&raw8 : (void *)&raw, &loaded));
            test_check(isnan(want) ? isnan(loaded) : loaded == want, "loaded %g", loaded);
            if (isnan(want)) {
                check_nan(f, library_encode(f, (float)got), "NaN back");
                continue;
            }
            /* back: the same code, but infinity saturates where the format's conversion does */
            unsigned back = isinf(want) && f->saturate ? largest(f) | (c & codes(f) / 2) : c;
            test_check(library_encode(f, (float)want) == back, "back as 0x%x",
                       library_encode(f, (float)want));
            test_check(store_code(f, want) == back, "stored as 0x%x", store_code(f, want));
        }
    }
}

/* Around every midpoint of neighbouring codes: the midpoint goes to the even code, a little less and more to either side. */
static void midpoints(void **state)
{
    (void)state;
    for (int k = 0; k < TEST_COUNT(formats); k++) {
        const format *f = &formats[k];
        for (unsigned c = 0; c < largest(f); c++)
            for (int sign = 0; sign < 2; sign++) {
                double mid = (decode(f, c) + decode(f, c + 1)) / 2, s = sign ? -1 : 1;
                unsigned bit = sign ? codes(f) / 2 : 0, even = c & 1 ? c + 1 : c;
                test_problem("%s between 0x%x and the next, sign %d", f->name, c, sign);
                test_check(store_code(f, s * mid) == (even | bit), "midpoint %g gave 0x%x", mid,
                           store_code(f, s * mid));
                test_check(store_code(f, s * nextafter(mid, 0)) == (c | bit), "below the midpoint");
                test_check(store_code(f, s * nextafter(mid, INFINITY)) == ((c + 1) | bit),
                           "above the midpoint");
                if ((double)(float)mid == mid) {
                    test_check(library_encode(f, (float)(s * mid)) == (even | bit), "midpoint in f32");
                    test_check(library_encode(f, nextafterf((float)(s * mid), 0)) == (c | bit),
                               "below in f32");
                    test_check(library_encode(f, nextafterf((float)(s * mid), (float)s * INFINITY)) ==
                                   ((c + 1) | bit),
                               "above in f32");
                }
            }
    }
}

static void beyond_the_largest(void **state)
{
    (void)state;
    for (int k = 0; k < TEST_COUNT(formats); k++) {
        const format *f = &formats[k];
        unsigned top = largest(f);
        double step = decode(f, top) - decode(f, top - 1), edge = decode(f, top) + step / 2;
        unsigned over = f->saturate ? top : top + 1; /* top + 1 is infinity */
        test_problem("%s", f->name);
        assert_int_equal(store_code(f, nextafter(edge, 0)), top);
        assert_int_equal(store_code(f, edge), over);
        assert_int_equal(store_code(f, 1e300), over);
        assert_int_equal(store_code(f, INFINITY), over);
        assert_int_equal(store_code(f, -INFINITY), over | codes(f) / 2);
        assert_int_equal(library_encode(f, INFINITY), over);
        assert_int_equal(store_code(f, 1e-320), 0);
        assert_int_equal(store_code(f, -1e-320), codes(f) / 2);
        assert_int_equal(library_encode(f, -0.0f), codes(f) / 2);
        check_nan(f, store_code(f, NAN), "NaN");
        check_nan(f, library_encode(f, NAN), "NaN");
    }
    assert_float_equal(st_f8e4m3_to_f32(st_f32_to_f8e4m3(1e9f)), 448,
                       0); /* the largest values that OCP OFP8 names */
    assert_float_equal(st_f8e5m2_to_f32(st_f32_to_f8e5m2(1e9f)), 57344, 0);
    assert_true(isinf(st_f16_to_f32(st_f32_to_f16(65520.0f))));
    assert_float_equal(st_f16_to_f32(st_f32_to_f16(65519.0f)), 65504, 0);
    union {
        uint32_t u;
        float f;
    } quiet = {0x7f800001u}; /* a NaN whose upper half alone would be infinity */
    assert_true(isnan(st_bf16_to_f32(st_f32_to_bf16(quiet.f))));
}

/* f64 must not be rounded to f32 first: 1 + 2^-11 + 2^-40 is above the f16 midpoint, its f32 is the midpoint and would go down to even. */
static void one_rounding(void **state)
{
    (void)state;
    assert_int_equal(store_code(&formats[0], 1 + 0x1p-11 + 0x1p-40), 0x3c01);
    assert_int_equal(store_code(&formats[1], 1 + 0x1p-8 + 0x1p-40), 0x3f81);
    assert_int_equal(store_code(&formats[2], 1 + 0x1p-4 + 0x1p-40), 0x39);
    assert_int_equal(store_code(&formats[3], 1 + 0x1p-3 + 0x1p-40), 0x3d);
}

static void rounding_mode_of_the_caller(void **state)
{
    (void)state;
    const int mode[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < TEST_COUNT(mode); i++) {
        fesetround(mode[i]);
        unsigned up = store_code(&formats[0], 1 + 0x1p-10 * 0.75),
                 down = store_code(&formats[0], 1 + 0x1p-10 * 0.25);
        fesetround(FE_TONEAREST);
        assert_int_equal(up, 0x3c01);
        assert_int_equal(down, 0x3c00);
    }
}

static void names_and_sizes(void **state)
{
    (void)state;
    static const struct {
        strata_type t;
        const char *name;
        size_t bits;
        bool real, whole;
    } row[] = {{STRATA_F64, "f64", 64, 1, 0},      {STRATA_F32, "f32", 32, 1, 0},
               {STRATA_C64, "c64", 64, 0, 0},      {STRATA_C128, "c128", 128, 0, 0},
               {STRATA_F16, "f16", 16, 1, 0},      {STRATA_BF16, "bf16", 16, 1, 0},
               {STRATA_F8E4M3, "f8e4m3", 8, 1, 0}, {STRATA_F8E5M2, "f8e5m2", 8, 1, 0},
               {STRATA_I64, "i64", 64, 0, 1},      {STRATA_I32, "i32", 32, 0, 1},
               {STRATA_I8, "i8", 8, 0, 1},         {STRATA_U8, "u8", 8, 0, 1},
               {STRATA_I4, "i4", 4, 0, 1},         {STRATA_U4, "u4", 4, 0, 1},
               {STRATA_BOOL, "bool", 8, 0, 0},     {STRATA_BIT, "bit", 1, 0, 0}};
    assert_int_equal(TEST_COUNT(row), STRATA_TYPE_COUNT - 1);
    for (int i = 0; i < TEST_COUNT(row); i++) {
        assert_string_equal(strata_type_name(row[i].t), row[i].name);
        assert_int_equal(strata_type_from_name(row[i].name), row[i].t);
        assert_int_equal(strata_type_bits(row[i].t), row[i].bits);
        assert_int_equal(st_type_is_float(row[i].t), row[i].real);
        assert_int_equal(st_type_is_integer(row[i].t), row[i].whole);
    }
    assert_int_equal(strata_type_from_name("f31"), STRATA_NONE);
    assert_int_equal(strata_type_from_name(""), STRATA_NONE);
    assert_int_equal(strata_type_from_name(NULL), STRATA_NONE);
    assert_int_equal(strata_type_bits((strata_type)99), 0);
    assert_int_equal(strata_type_bits((strata_type)-1), 0);
    assert_string_equal(strata_type_name((strata_type)99), "unknown type");
    assert_string_equal(strata_type_name((strata_type)-1), "unknown type");
}

static void integers(void **state)
{
    (void)state;
    static const struct {
        strata_type t;
        double v, want;
    } row[] = {{STRATA_I8, 127.9, 127},
               {STRATA_I8, 128, 127},
               {STRATA_I8, -128.9, -128},
               {STRATA_I8, -1e30, -128},
               {STRATA_I8, -0.9, 0},
               {STRATA_U8, 255.9, 255},
               {STRATA_U8, 1e30, 255},
               {STRATA_U8, -3, 0},
               {STRATA_I32, 2147483648.0, 2147483647},
               {STRATA_I32, -2147483649.0, -2147483648.0},
               {STRATA_I32, 1.99, 1},
               {STRATA_I64, -7.5, -7},
               {STRATA_I64, 4503599627370497, 4503599627370497},
               {STRATA_BOOL, 0.25, 1},
               {STRATA_BOOL, -0.0, 0},
               {STRATA_BOOL, 7, 1},
               {STRATA_I32, NAN, 0},
               {STRATA_I64, NAN, 0},
               {STRATA_U8, INFINITY, 255},
               {STRATA_I8, -INFINITY, -128}};
    for (int i = 0; i < TEST_COUNT(row); i++) {
        char at[8];
        double back;
        assert_true(st_store_f64(row[i].t, at, row[i].v));
        assert_true(st_load_f64(row[i].t, at, &back));
        test_close(back, row[i].want, 0, "%s of %g", strata_type_name(row[i].t), row[i].v);
    }
    int64_t big;
    assert_true(st_store_f64(STRATA_I64, &big, 1e300));
    assert_true(big == INT64_MAX);
    assert_true(st_store_f64(STRATA_I64, &big, -1e300));
    assert_true(big == INT64_MIN);
    uint8_t two = 2; /* any byte but 0 is true */
    double v;
    assert_true(st_load_f64(STRATA_BOOL, &two, &v) && v == 1);
    static const strata_type none[] = {STRATA_C64, STRATA_C128, STRATA_I4,
                                       STRATA_U4,  STRATA_BIT,  STRATA_NONE};
    for (int i = 0; i < TEST_COUNT(none); i++) {
        assert_false(st_load_f64(none[i], &big, &v));
        assert_false(st_store_f64(none[i], &big, 1));
    }
    assert_true(big == INT64_MIN);
}

static void misaligned(void **state)
{
    (void)state;
    static const strata_type t[] = {STRATA_F64, STRATA_F32, STRATA_F16, STRATA_BF16, STRATA_I64, STRATA_I32};
    char bytes[16];
    for (int i = 0; i < TEST_COUNT(t); i++) {
        double v = 0;
        assert_true(st_store_f64(t[i], bytes + 1, -3));
        assert_true(st_load_f64(t[i], bytes + 1, &v));
        assert_true(v == -3);
    }
}

static void scalars(void **state)
{
    (void)state;
    st_err *e = st_err_thread();
    double re, im;
    assert_true(st_scalar_value(e, "who", "alpha", strata_complex(2, -3), &re, &im) && re == 2 && im == -3);
    assert_true(st_scalar_value(e, "who", "alpha", STRATA_ONE, &re, &im) && re == 1 && im == 0);
    assert_true(st_scalar_value(e, "who", "alpha", STRATA_ZERO, &re, &im) && re == 0 && im == 0);
    float f = -1.5f;
    assert_true(st_scalar_value(e, "who", "alpha", strata_scalar_at(STRATA_F32, &f), &re, &im) &&
                re == -1.5 && im == 0);
    int8_t b = -7;
    assert_true(st_scalar_value(e, "who", "alpha", strata_scalar_at(STRATA_I8, &b), &re, &im) && re == -7);
    float c64[2] = {1, 2};
    double c128[2] = {3, 4};
    assert_true(st_scalar_value(e, "who", "alpha", strata_scalar_at(STRATA_C64, c64), &re, &im) && re == 1 &&
                im == 2);
    assert_true(st_scalar_value(e, "who", "alpha", strata_scalar_at(STRATA_C128, c128), &re, &im) &&
                re == 3 && im == 4);
    assert_false(st_scalar_value(e, "strata_gemm", "alpha", strata_scalar_at(STRATA_I4, &b), &re, &im));
    test_error(NULL, e->status, STRATA_ERROR_TYPE, "strata_gemm", "alpha", "i4", "whole-byte");
    assert_false(st_scalar_value(e, "strata_gemm", "beta", strata_scalar_at((strata_type)77, &b), &re, &im));
    test_error(NULL, e->status, STRATA_ERROR_TYPE, "beta", "unknown type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code),      cmocka_unit_test(midpoints),
        cmocka_unit_test(one_rounding),    cmocka_unit_test(beyond_the_largest),
        cmocka_unit_test(names_and_sizes), cmocka_unit_test(rounding_mode_of_the_caller),
        cmocka_unit_test(integers),        cmocka_unit_test(misaligned),
        cmocka_unit_test(scalars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
