/* SPDX-License-Identifier: Apache-2.0 */
/* problem.h - a problem in words of the command line, as a plan. */
#ifndef ST_CLI_PROBLEM_H
#define ST_CLI_PROBLEM_H
#include "cli/cli.h"

/* Values of options; NULL: not given. */
typedef struct cli_problem_words {
    const char *math, *trans, *stride, *pad, *dilation, *groups, *layout, *pass, *epilogue;
} cli_problem_words;
#define CLI_PROBLEM_OPTIONS(c)                                                                                \
    {"--math", "MODE", "gemm: exact (default), tf32, bf16x6 or fast", &(c).math, NULL, 0},                    \
        {"--epilogue", "TEXT", "expression over acc, such as 'relu(acc + bias[n])'", &(c).epilogue, NULL, 0}, \
        {"--trans", "NN|NT|TN|TT", "gemm: which operands are transposed (default NN)", &(c).trans, NULL, 0},  \
        {"--layout", "nhwc|nchw", "conv: layout of images and filters (default nhwc)", &(c).layout, NULL, 0}, \
        {"--pass", "PASS", "conv: forward (default), data or weights", &(c).pass, NULL, 0},                   \
        {"--stride", "N|RxC", "conv: stride (default 1)", &(c).stride, NULL, 0},                              \
        {"--pad", "N|RxC", "conv: padding (default 0)", &(c).pad, NULL, 0},                                   \
        {"--dilation", "N|RxC", "conv: dilation (default 1)", &(c).dilation, NULL, 0},                        \
    {                                                                                                         \
        "--groups", "N", "conv: groups (default 1)", &(c).groups, NULL, 0                                     \
    }

typedef struct cli_problem {
    strata_plan *plan; /* the caller's to destroy */
    double flops, bytes;
    strata_type type;
} cli_problem;
/* words: "gemm M N K [TYPE] [EPILOGUE]" or "conv NxCxHxW OxRxS [TYPE]". CLI_OK, or what the verb returns, said on stderr. */
int cli_problem_plan(const char *verb, strata_handle *h, int n, const char **words,
                     const cli_problem_words *c, const strata_choice *choice, cli_problem *made);

/* What no kernel can beat: its arithmetic at the peak rate and its operands' bytes at the rate of memory; microseconds. On a CPU both rates
 * are measured now; of a GPU they are those of the data sheet. */
typedef struct cli_roof {
    double work_us, move_us, floor_us, gflops, gbs;
    char how[96]; /* "on 2 threads, measured now" */
} cli_roof;
bool cli_roofline(strata_handle *h, const cli_problem *p, cli_roof *r); /* false: nothing is known */

/* tune_trace.c: the products of a trace as lines of `size` bytes, at most max; -1 (said on stderr) when it cannot be read */
int cli_trace_problems(const char *path, char *lines, int size, int max);

/* plan_html.c: one page without any outside resource */
bool cli_plan_html(const char *path, strata_handle *h, const cli_problem *p, const cli_roof *roof,
                   const strata_candidate *c, int count, const char *verdict);
#endif
