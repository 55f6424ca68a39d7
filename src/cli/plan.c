/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - `strata plan`: makes a plan and prints why it is as it is: the problem's roofline on this device, the candidates with predicted (and, with
 * --measure, measured) times, the choice. Without --measure nothing is run. */
#include "cli/problem.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 300 };

/* Multiply-adds an SM and clock of Hopper's units (NVIDIA H100 architecture white paper). */
static bool gpu_roof(strata_handle *h, const cli_problem *p, cli_roof *r)
{
    strata_device_info d;
    if (strata_get_device_info(strata_handle_device(h), &d) || d.compute_capability != 90) return false;
    const strata_type t = p->type;
    const double macs = t == STRATA_F32 || t == STRATA_F64                           ? 128
                        : t == STRATA_F16 || t == STRATA_BF16                        ? 2048
                        : t == STRATA_I8 || t == STRATA_F8E4M3 || t == STRATA_F8E5M2 ? 4096
                                                                                     : 0;
    if (macs == 0 || !(d.memory_gbs > 0)) return false;
    r->gflops = 2 * macs * d.multiprocessors * d.clock_mhz * 1e-3;
    r->gbs = d.memory_gbs;
    snprintf(r->how, sizeof r->how, "by the data sheet");
    return true;
}

bool cli_roofline(strata_handle *h, const cli_problem *p, cli_roof *r)
{
    memset(r, 0, sizeof *r);
    if (strcmp(strata_handle_device(h), "cpu") != 0) {
        if (!gpu_roof(h, p, r)) return false;
    } else {
        const int threads = strata_get_threads(h);
        if ((p->type != STRATA_F32 && p->type != STRATA_F64) ||
            !bench_roof(threads, p->bytes / 2, &r->gflops, &r->gbs))
            return false;
        if (p->type == STRATA_F64) r->gflops /= 2;
        snprintf(r->how, sizeof r->how, "on %d thread%s, measured now", threads, threads == 1 ? "" : "s");
    }
    r->work_us = p->flops / r->gflops * 1e-3;
    r->move_us = p->bytes / r->gbs * 1e-3;
    r->floor_us = r->work_us > r->move_us ? r->work_us : r->move_us;
    return true;
}

static void print_roof(const cli_problem *p, const cli_roof *r, bool known)
{
    printf("problem: %.6g operations, %.6g bytes at least, %.3g operations a byte\n", p->flops, p->bytes,
           p->bytes > 0 ? p->flops / p->bytes : 0.0);
    if (known)
        printf("roofline %s: arithmetic %.4g us at %.4g GFLOP/s, memory %.4g us at %.4g GB/s (a copy); bound "
               "by %s, "
               "floor about %.4g us\n",
               r->how, r->work_us, r->gflops, r->move_us, r->gbs,
               r->work_us > r->move_us ? "arithmetic" : "memory", r->floor_us);
    else
        printf("roofline: nothing is known of the peak for this type here\n");
}

static bool progress(void *user, double done, const strata_candidate *best)
{
    char text[160];
    snprintf(text, sizeof text, "%.60s %.4g us", best->kernel, best->measured_us);
    cli_progress_update(user, done, text);
    return true;
}

static void print_row(const strata_candidate *c, const cli_roof *roof)
{
    char measured[32] = "-", part[32] = "-";
    if (c->measured_us > 0) snprintf(measured, sizeof measured, "%.2f", c->measured_us);
    if (c->measured_us > 0 && roof->floor_us > 0)
        snprintf(part, sizeof part, "%.0f %%", 100 * roof->floor_us / c->measured_us);
    printf("  %12s %12.2f %8s  %s%-42s %s%s\n", measured, c->predicted_us, part, c->chosen ? "*" : " ",
           c->kernel, c->code, c->same_order ? "" : "  (another order of summation)");
}

/* Why the fastest is not, or is, the one that was chosen. */
static void verdict_of(const strata_candidate *c, int n, char *text, size_t room)
{
    const strata_candidate *usual = NULL;
    for (int i = 0; i < n; i++)
        if (c[i].chosen && c[i].measured_us > 0) usual = &c[i];
    if (!usual || n == 0 || !(c[0].measured_us > 0)) {
        snprintf(text, room, "nothing was measured");
    } else if (usual == &c[0]) {
        snprintf(text, room, "the choice, %.95s, is the fastest that was measured%s%.95s", usual->kernel,
                 n > 1 && c[1].measured_us > 0 ? "; next is " : "",
                 n > 1 && c[1].measured_us > 0 ? c[1].kernel : "");
    } else {
        snprintf(text, room, "%.95s is the fastest, %.2f times as fast as the choice, %.95s: %s", c[0].kernel,
                 usual->measured_us / c[0].measured_us, usual->kernel,
                 c[0].same_order
                     ? "`strata tune` with the same words makes it the choice"
                     : "it sums in another order, so only a choice with allow_reordering takes it");
    }
}

typedef struct asked {
    bool measure;
    double seconds;
    const char *html;
} asked;

static int show(strata_handle *h, const cli_problem *p, const asked *a)
{
    static strata_candidate c[MOST];
    cli_roof roof;
    int n = 0;
    char verdict[512] = "";
    const bool known = cli_roofline(h, p, &roof);
    print_roof(p, &roof, known);
    printf("%s\n", strata_plan_describe(p->plan));
    if (a->measure) {
        cli_progress bar;
        cli_progress_begin(&bar, 1);
        const strata_tune_options o = {.seconds = a->seconds,
                                       .allow_reordering = true,
                                       .forget = true,
                                       .progress = progress,
                                       .user = &bar};
        const strata_status s = strata_tune(h, p->plan, NULL, &o, c, MOST, &n);
        cli_progress_end(&bar);
        if (s) return cli_failed("plan", h);
        if (n > MOST) n = MOST;
        printf("measured, on %s (* is the choice):\n  %12s %12s %8s   %-42s %s\n", strata_handle_device(h),
               "us", "predicted", "of floor", "kernel", "code");
        for (int i = 0; i < n; i++) print_row(&c[i], &roof);
        verdict_of(c, n, verdict, sizeof verdict);
        printf("%s\n", verdict);
    } else {
        while (n < MOST && strata_plan_candidates(p->plan, n, &c[n])) n++;
    }
    if (!a->html) return CLI_OK;
    if (cli_plan_html(a->html, h, p, known ? &roof : NULL, c, n, verdict)) return CLI_OK;
    fprintf(stderr, "strata plan: %s cannot be written\n", CLI_SHORT(a->html));
    return CLI_FAILED;
}

int verb_plan(int argc, char **argv)
{
    cli_problem_words c = {0};
    const char *device = NULL, *kernel = NULL, *threads = NULL, *workspace = NULL, *code = NULL,
               *measure = NULL, *seconds = NULL, *html = NULL, *invariant = NULL, *reorder = NULL;
    const cli_option options[] = {
        {"--measure", NULL, "run every candidate that can do it and show its time", &measure, NULL, 0},
        {"--seconds", "S", "budget of --measure (default 2)", &seconds, NULL, 0},
        {"--html", "FILE", "draw the roofline and the candidates into a page", &html, NULL, 0},
        {"--kernel", "ID", "force this kernel (`strata kernels` lists them)", &kernel, NULL, 0},
        {"--code", "CODE", "rebuild the plan of this code", &code, NULL, 0},
        {"--batch-invariant", NULL, "a row's bits may not depend on the number of rows", &invariant, NULL, 0},
        {"--reorder", NULL, "measured kernels may sum in another order", &reorder, NULL, 0},
        {"--device", "DEVICE", "cpu (default) or cuda:N", &device, NULL, 0},
        {"--threads", "N", "threads to plan for", &threads, NULL, 0},
        {"--workspace", "BYTES", "limit of the workspace (0 always works)", &workspace, NULL, 0},
        CLI_PROBLEM_OPTIONS(c),
    };
    const cli_usage usage = {
        "strata plan gemm M N K [TYPE] [EPILOGUE]   or   strata plan conv NxCxHxW OxRxS [TYPE]",
        "Plans the operator and prints the problem, its floor by the roofline, the kernel that was chosen "
        "and\n"
        "why, and the others with their predicted times or the reason why each cannot do it.",
        options, (int)(sizeof options / sizeof *options)};
    const char *w[8];
    int status, n;
    argv[0] = "plan";
    if ((n = cli_parse(&usage, argc, argv, w, 8, &status)) < 0) return status;
    if (n == 0) return cli_bad("plan", "plan what? known: gemm conv (see: strata help plan)");
    strata_choice choice = {.kernel = kernel,
                            .code = code,
                            .batch_invariant = invariant != NULL,
                            .allow_reordering = reorder != NULL};
    asked a = {measure != NULL, 2, html};
    int64_t v = 0;
    if (workspace) {
        if (!cli_integer(workspace, 0, INT64_MAX, &v))
            return cli_bad("plan", "--workspace takes a number of bytes, not '%s'", CLI_SHORT(workspace));
        choice.workspace_limit = (size_t)v;
        choice.limit_workspace = true;
    }
    if (threads && !cli_integer(threads, 1, 256, &v))
        return cli_bad("plan", "--threads takes 1 to 256, not '%s'", CLI_SHORT(threads));
    if (seconds && !cli_number(seconds, 0.001, 86400, &a.seconds))
        return cli_bad("plan", "--seconds takes 0.001 to 86400, not '%s'", CLI_SHORT(seconds));
    strata_handle *h;
    cli_problem p = {0};
    if (strata_create(&h, device ? device : "cpu")) return cli_failed("plan", NULL);
    if (threads && strata_set_threads(h, (int)v))
        status = cli_failed("plan", h);
    else if ((status = cli_problem_plan("plan", h, n, w, &c, &choice, &p)) == CLI_OK)
        status = show(h, &p, &a);
    if (status == CLI_OK || p.plan) strata_plan_destroy(p.plan);
    strata_destroy(h);
    return status;
}
