/* SPDX-License-Identifier: Apache-2.0 */
/* custom.h - a kernel of your own in a plan: your CUDA C, compiled for the device at hand, with the library's launches, caches, epilogues and traces. */
#ifndef STRATA_CUSTOM_H
#define STRATA_CUSTOM_H
#include <strata/base.h>
#include <strata/plan.h>
#include <strata/pointwise.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_custom {
    const char *source;         /* CUDA C; or NULL, and then `file` is read */
    const char *file;           /* a path; with `source`: a name for messages, or NULL */
    const char *entry;          /* name of the kernel: extern "C" __global__ */
    const char *const *options; /* "-DTILE=64", ...: an array that ends with NULL; or NULL */
    uint32_t grid[3], block[3]; /* of the launch; 0 counts as 1 */
    uint32_t cluster[3];        /* blocks of a cluster (compute capability 9.0); 0 counts as 1 */
    size_t shared_bytes;        /* dynamic shared memory; above 48 KiB is arranged for */
    const void *
        params; /* what the kernel takes by value behind the operands' addresses; copied when the plan is made; or NULL */
    size_t params_bytes;
    /* NULL, or an expression over `acc` and operands, as in strata_gemm_options: compiled into the kernel, which includes "epilogue.cuh" and calls
     * st_epilogue(e, acc, m, n, g) for the value at row m and column n of item g of `output`. e, of type st_epi, is the kernel's last parameter. */
    const char *epilogue;
    const char *
        output; /* with an epilogue: the operand whose dims (..., m, n) it has and to which the kernel stores; it is not named in the expression */
    double flops, bytes;  /* useful work, for what the plan says; 0: unknown */
    uint64_t reserved[4]; /* zero */
} strata_custom;

/* Makes the plan on a handle of a CUDA device. Parameters of the kernel, in this order: the address of every operand (in the order of `operands`, also those
 * of the epilogue), the struct at `params` where there is one, and the epilogue's st_epi where there is one. The headers of include/strata/dev are
 * found by their bare names ("mma.cuh"); no header of the toolkit is needed. data[] of the plan's runs are the operands' addresses. Runs allocate nothing and do
 * not wait, so they can be captured into graphs; that kernels stay inside their operands is yours to see to.
 * Compiled code is kept in memory and in the cache folder, by everything it depends on: another process does not compile it again.
 * Errors: _ARGUMENT and _SYNTAX for what is wrong with the description, _INTERNAL with the compiler's lines (file and line of your text) where it does
 * not compile, _UNSUPPORTED on the CPU (strata_fused is for both), and what the device says of an impossible launch. */
STRATA_API strata_status strata_custom_plan(strata_handle *h, const strata_custom *c,
                                            const strata_operand *operands, strata_plan **plan);

#ifdef __cplusplus
}
#endif
#endif
