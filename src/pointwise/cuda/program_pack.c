/* SPDX-License-Identifier: Apache-2.0 */
/* program_pack.c - which programs' kernels are worth building ahead of time: normalisations and activations of large bf16 and f32 tensors, as
 * callers write them. A kernel knows neither names nor the number of rows. */
#include "pointwise/cuda/program_cuda.h"
#include "runtime/gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    int weights;
} row_programs[] = {{"e = exp(x - max(x)); y = e * (1 / sum(e))", 0},
                    {"y = (x - mean(x)) * rsqrt(var(x) + 1e-5) * w[n] + b[n]", 2},
                    {"y = x * rsqrt(mean(x * x) + 1e-6) * w[n]", 1}};
static const char *const map_programs[] = {"y = gelu(x)", "y = relu(x)", "y = silu(x)"};
static const strata_type types[] = {STRATA_BF16, STRATA_F32};
static const int64_t lengths[] = {4096, 1024, 2048, 8192, 16384, 32768};
enum {
    MAPS = ST_COUNT(map_programs) * ST_COUNT(types),
    ROWS = ST_COUNT(lengths) * ST_COUNT(row_programs) * ST_COUNT(types)
};

static bool pack(int cc, int i, st_gpu_spec *s)
{
    static st_text text;
    static char id[96];
    const int count = MAPS + ROWS;
    if (i < 0 || i >= count) return false;
    const bool map = i < MAPS;
    const int k = map ? i : i - MAPS, type = types[k % ST_COUNT(types)], which = k / ST_COUNT(types);
    const char *program = map ? map_programs[which] : row_programs[which % ST_COUNT(row_programs)].text;
    const int64_t n = map ? 4096 : lengths[which / ST_COUNT(row_programs)],
                  dim[2] = {(INT64_C(1) << 27) / n, n};
    /* any address will do: nothing is read */
    static double somewhere;
    const strata_tensor x = strata_array(&somewhere, (strata_type)type, 2, dim, NULL),
                        w = strata_array(&somewhere, (strata_type)type, 1, &n, NULL);
    const strata_operand operands[] = {{"x", x}, {"y", x}, {"w", w}, {"b", w}};
    int64_t key[ST_KEY_WORDS];
    st_pw_program_key(key, operands, 2 + (map ? 0 : row_programs[which % ST_COUNT(row_programs)].weights), 0,
                      16);
    st_pw_shape *shape = malloc(sizeof *shape);
    st_pw_cuda *c = malloc(sizeof *c);
    st_err e = {0};
    const bool good = shape && c && st_pw_shape_make(&e, "the kernel pack", key, program, shape) == STRATA_OK;
    if (good) {
        /* so large that neither the number of SMs nor the cache matters */
        st_pw_cuda_make(
            c, shape,
            &(st_pw_device){
                .sms = 100, .cc = cc, .smem = cc >= 90 && cc < 120 ? 227 << 10 : 99 << 10, .l2 = 50 << 20},
            16, true);
        text.n = 0;
        st_pw_cuda_text(c, &text);
        *s = st_pw_cuda_spec(c, st_pw_cuda_id(c), text.s);
        snprintf(id, sizeof id, "%s", s->id);
        s->id = id;
        st_expr_free(shape->x);
    }
    free(shape);
    free(c);
    return good && !text.failed;
}

void st_pw_program_pack_init(void) { st_gpu_register_pack(pack); }
