/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_pointwise.c - programs bound by memory on a GPU, beside a copy of the same bytes. */
#include "cuda.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *program;
    int vectors; /* rows of parameters of `cols` elements: w, b */
} programs[] = {
    {"exp", "y = exp(x)", 0},
    {"gelu", "y = gelu(x)", 0},
    {"relu", "y = relu(x)", 0},
    {"softmax", "y = exp(x - max(x)) / sum(exp(x - max(x)))", 0},
    {"layer_norm", "y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w[n] + b[n]", 2},
    {"rms_norm", "y = x * rsqrt(mean(x * x) + 1e-6) * w[n]", 1},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

typedef struct row_work {
    int turn;
    cuda_work w;
    int64_t rows, cols;
    strata_type type;
    int program;
} row_work;

static void views(row_work *r, strata_tensor *x, strata_tensor *y)
{
    r->turn = (r->turn + 1) % r->w.copies;
    *x = strata_matrix(r->w.data[0][r->turn], r->type, r->rows, r->cols, STRATA_ROW_MAJOR, 0);
    *y = strata_matrix(r->w.data[1][r->turn], r->type, r->rows, r->cols, STRATA_ROW_MAJOR, 0);
}

static void run_program(void *arg)
{
    row_work *r = arg;
    strata_tensor x, y;
    views(r, &x, &y);
    strata_operand ops[5] = {{"x", x}, {"y", y}, {0}};
    static const char *const names[] = {"w", "b"};
    for (int i = 0; i < programs[r->program].vectors; i++)
        ops[2 + i] =
            (strata_operand){names[i], strata_vector(r->w.data[2 + i][r->turn], STRATA_F32, r->cols, 1)};
    strata_fused(r->w.h, programs[r->program].program, ops, NULL);
}

static void run_copy(void *arg)
{
    row_work *r = arg;
    strata_tensor x, y;
    views(r, &x, &y);
    strata_copy(r->w.h, x, y);
}

/* The whole result beside the same program on the CPU, whose functions have their own tests: a guard against timing nonsense. */
static double check_rows(void *arg)
{
    row_work *r = arg;
    const int64_t rows = r->rows < 16 ? r->rows : 16, n = rows * r->cols;
    const size_t es = strata_type_bits(r->type) / 8;
    float *x = malloc((size_t)n * 4), *want = malloc((size_t)n * 4), *got = malloc((size_t)n * 4),
          *v[2] = {NULL, NULL};
    char *raw = malloc((size_t)n * es);
    double worst = x && want && got && raw ? 0 : INFINITY;
    const int64_t dim[2] = {rows, r->cols};
    strata_tensor X = strata_array(x, STRATA_F32, 2, dim, NULL),
                  Y = strata_array(want, STRATA_F32, 2, dim, NULL),
                  G = strata_array(got, STRATA_F32, 2, dim, NULL),
                  R = strata_array(raw, r->type, 2, dim, NULL);
    for (int o = 0; o < 2 && worst == 0; o++) {
        strata_tensor d = strata_array(r->w.data[o][r->turn], r->type, 2, dim, NULL);
        strata_operand ops[] = {{"a", R}, {"out", o ? G : X}, {0}};
        if (strata_copy(r->w.h, d, R) || strata_fused(r->w.cpu, "out = a", ops, NULL)) worst = INFINITY;
    }
    strata_operand ops[5] = {{"x", X}, {"y", Y}, {0}};
    static const char *const names[] = {"w", "b"};
    for (int i = 0; i < programs[r->program].vectors && worst == 0; i++) {
        v[i] = malloc((size_t)r->cols * 4);
        strata_tensor d = strata_vector(r->w.data[2 + i][r->turn], STRATA_F32, r->cols, 1),
                      t = strata_vector(v[i], STRATA_F32, r->cols, 1);
        if (!v[i] || strata_copy(r->w.h, d, t)) worst = INFINITY;
        ops[2 + i] = (strata_operand){names[i], t};
    }
    if (worst == 0 && strata_fused(r->w.cpu, programs[r->program].program, ops, NULL)) worst = INFINITY;
    const double u = r->type == STRATA_F32 ? 1e-5 : r->type == STRATA_F16 ? 0x1p-10 : 0x1p-7;
    for (int64_t i = 0; i < n && worst < INFINITY; i++) {
        const double e = fabs((double)got[i] - (double)want[i]) / (u * (fabs((double)want[i]) + 0.1));
        if (!(e <= worst)) worst = e;
    }
    free(x);
    free(want);
    free(got);
    free(raw);
    free(v[0]);
    free(v[1]);
    return worst;
}

static bool fill(row_work *r)
{
    const int64_t n = r->rows * r->cols;
    const size_t es = strata_type_bits(r->type) / 8;
    float *x = bench_alloc((size_t)n * 4);
    char *t = bench_alloc((size_t)n * es);
    bool ok = x && t;
    if (ok) {
        bench_random(x, n, false, 3);
        strata_operand ops[] = {{"x", strata_array(x, STRATA_F32, 1, &n, NULL)},
                                {"out", strata_array(t, r->type, 1, &n, NULL)},
                                {0}};
        ok = !strata_fused(r->w.cpu, "out = 4 * x", ops, NULL);
        for (int i = 0; ok && i < r->w.copies; i++) {
            ok = !strata_copy(r->w.h, strata_array(t, r->type, 1, &n, NULL),
                              strata_array(r->w.data[0][i], r->type, 1, &n, NULL));
            for (int v = 2; ok && v < r->w.operands; v++)
                ok = !strata_copy(r->w.h, strata_vector(x, STRATA_F32, r->cols, 1),
                                  strata_vector(r->w.data[v][i], STRATA_F32, r->cols, 1));
        }
    }
    bench_free(x, (size_t)n * 4);
    bench_free(t, (size_t)n * es);
    return ok;
}

static bool one_case(bench *b, int program, int64_t rows, int64_t cols, strata_type type)
{
    row_work *r = calloc(1, sizeof *r);
    if (!r) return false;
    const size_t bytes = (size_t)(rows * cols) * (strata_type_bits(type) / 8),
                 all[4] = {bytes, bytes, (size_t)cols * 4, (size_t)cols * 4};
    bench_case c = {.unit = "GB/s"};
    r->w.h = b->h;
    r->w.cpu = b->cpu;
    r->rows = rows;
    r->cols = cols;
    r->type = type;
    r->program = program;
    bool ok = cuda_work_alloc(b, &r->w, 2 + programs[program].vectors, all) && fill(r);
    if (!ok) {
        cli_failed("bench", b->h);
    } else {
        snprintf(c.name, sizeof c.name, "%s %s %lldx%lld", programs[program].name, strata_type_name(type),
                 (long long)rows, (long long)cols);
        c.bytes = 2.0 * (double)bytes;
        c.work = c.bytes * 1e-9;
        c.copy_work = c.work;
        c.check = check_rows;
        c.check_arg = r;
        case_add(&c, "strata", CLASS_OURS, run_program, r, NULL);
        case_add(&c, "copy", CLASS_REFERENCE, run_copy, r, NULL);
        ok = cuda_measure(b, &c);
    }
    cuda_work_free(&r->w);
    free(r);
    return ok;
}

int cuda_bench_pointwise(bench *b, const char **words, int n)
{
    static const int64_t widths[] = {1024, 2048, 4096, 8192, 16384, 32768};
    const char *name = b->o.type ? b->o.type : "bf16";
    const strata_type type = strata_type_from_name(name);
    bool want[PROGRAMS] = {false}, ok = true;
    if (type != STRATA_F32 && type != STRATA_F16 && type != STRATA_BF16)
        return cli_bad("bench", "--type of pointwise on a GPU is f32, f16 or bf16, not '%.40s'", name);
    for (int i = 0; i < n; i++) {
        int at = -1;
        for (int p = 0; p < PROGRAMS; p++)
            if (!strcmp(words[i], programs[p].name)) at = p;
        if (at < 0)
            return cli_bad("bench",
                           "'%.40s' is no program on a GPU; known: exp gelu relu softmax layer_norm rms_norm",
                           words[i]);
        want[at] = true;
    }
    for (int p = 0; p < PROGRAMS; p++)
        b->total += (n == 0 || want[p]) * (double)(sizeof widths / sizeof *widths);
    report_column(b, "strata", NULL);
    report_column(b, "copy", NULL);
    cli_progress_begin(&b->progress, b->total);
    for (int p = 0; p < PROGRAMS; p++)
        for (size_t w = 0; (n == 0 || want[p]) && w < sizeof widths / sizeof *widths; w++)
            ok = one_case(b, p, (int64_t)64 * 1024 * 1024 / widths[w], widths[w], type) && ok;
    return ok ? CLI_OK : CLI_FAILED;
}
