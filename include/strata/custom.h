/* SPDX-License-Identifier: Apache-2.0 */
/* custom.h - a kernel of your own in a plan: your CUDA C, compiled for the device at hand, or your C function on a CPU, with the library's launches and threads, caches,
 * epilogues and traces. */
#ifndef STRATA_CUSTOM_H
#define STRATA_CUSTOM_H
#include <strata/base.h>
#include <strata/plan.h>
#include <strata/pointwise.h>
#ifdef __cplusplus
extern "C" {
#endif

/* On a CPU: one piece of the grid, what a thread block is on a GPU. */
typedef struct strata_custom_call {
    void *const *data;       /* the operands' addresses, in their order */
    const void *params;      /* the plan's copy of strata_custom.params, or NULL */
    uint32_t at[3], grid[3]; /* which piece, of how many each way */
    void *
        scratch; /* shared_bytes of this thread's own, on a multiple of 64; what is in them is undefined. NULL where there are none */
    const struct strata_custom_state *state; /* the library's */
} strata_custom_call;

typedef struct strata_custom {
    const char *source; /* CUDA C; or NULL, and then `file` is read */
    const char *file;   /* a path; with `source`: a name for messages, or NULL */
    const char *entry;  /* name of the kernel: extern "C" __global__; on a CPU a name for plans and traces */
    const char *const *options; /* "-DTILE=64", ...: an array that ends with NULL; or NULL */
    uint32_t grid[3], block[3]; /* of the launch; 0 counts as 1 */
    uint32_t cluster[3];        /* blocks of a cluster (compute capability 9.0); 0 counts as 1 */
    size_t
        shared_bytes; /* dynamic shared memory, above 48 KiB is arranged for; on a CPU scratch of each thread, at most 1 GiB */
    const void *
        params; /* what the kernel takes by value behind the operands' addresses; copied when the plan is made; or NULL */
    size_t params_bytes;
    /* NULL, or an expression over `acc` and operands, as in strata_gemm_options: compiled into the kernel, which includes "epilogue.cuh" and calls
     * st_epilogue(e, acc, m, n, g) for the value at row m and column n of item g of `output`. e, of type st_epi, is the kernel's last parameter. */
    const char *epilogue;
    const char *
        output; /* with an epilogue: the operand whose dims (..., m, n) it has and to which the kernel stores; it is not named in the expression */
    double flops, bytes; /* useful work, for what the plan says; 0: unknown */
    /* The kernel on a CPU: called once for each piece of `grid`, from several threads at a time and in any order, so pieces must not depend on each other. Sums leave by
     * strata_custom_store. Anything but STRATA_OK ends the run, which fails with it. NULL: the plan is for GPUs. */
    strata_status (*cpu)(const strata_custom_call *call);
    uint64_t reserved[3]; /* zero */
} strata_custom;

/* Makes the plan on a handle of a CUDA device, from `source` or `file`, or of the CPU, from `cpu`; a description may have both, and the handle decides. On a CPU
 * source, file, options, block and cluster are not looked at. On a GPU, parameters of the kernel, in this order: the address of every operand (in the order of `operands`, also those
 * of the epilogue), the struct at `params` where there is one, and the epilogue's st_epi where there is one. The headers of include/strata/dev are
 * found by their bare names ("mma.cuh"); no header of the toolkit is needed. data[] of the plan's runs are the operands' addresses. Runs allocate nothing and do
 * not wait, so they can be captured into graphs; that kernels stay inside their operands is yours to see to.
 * Compiled code is kept in memory and in the cache folder, by everything it depends on: another process does not compile it again.
 * Errors: _ARGUMENT and _SYNTAX for what is wrong with the description, _INTERNAL with the compiler's lines (file and line of your text) where it does
 * not compile, _UNSUPPORTED where the description has no kernel for the handle's device (strata_fused is for both), and what the device says of an impossible launch. */
STRATA_API strata_status strata_custom_plan(strata_handle *h, const strata_custom *c,
                                            const strata_operand *operands, strata_plan **plan);

/* On a CPU, from within `cpu`: rows x cols sums (f32; f64 where the output is), row r and column c at acc[r * ld + c], become the output's at rows m.. and columns
 * n.. of item g: through the epilogue, or without one converted to its type. What lies outside of the output is left out. */
STRATA_API void strata_custom_store(const strata_custom_call *call, const void *acc, int64_t ld, int64_t m,
                                    int64_t n, int64_t g, int64_t rows, int64_t cols);

#ifdef __cplusplus
}
#endif
#endif
