/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - `strata kernels`: every kernel row of this build, in the order of preference. */
#include "cli/cli.h"
#include <string.h>

static bool wanted(const strata_kernel_info *k, const char *family, const char *usable)
{
    return (!family || strcmp(family, k->family) == 0) && (!usable || k->usable);
}

static void print_table(const char *family, const char *usable)
{
    strata_kernel_info k;
    int w[4] = {2, 6, 5, 3};
    for (int i = 0; strata_kernels(i, &k); i++) {
        if (!wanted(&k, family, usable)) continue;
        const char *field[4] = {k.id, k.family, k.types, k.isa};
        for (int f = 0; f < 4; f++)
            if ((int)strlen(field[f]) > w[f]) w[f] = (int)strlen(field[f]);
    }
    printf("%-*s  %-*s  %-*s  %-*s  usable  order of the sum\n", w[0], "id", w[1], "family", w[2], "types",
           w[3], "isa");
    for (int i = 0; strata_kernels(i, &k); i++) {
        if (!wanted(&k, family, usable)) continue;
        printf("%-*s  %-*s  %-*s  %-*s  %-6s  %s", w[0], k.id, w[1], k.family, w[2], k.types, w[3], k.isa,
               k.usable ? "yes" : "no", k.order ? k.order : "");
        if (!k.usable) printf("%s(%s)", k.order ? "  " : "", k.why_not ? k.why_not : "no reason given");
        putchar('\n');
    }
}

static void print_tsv(const char *family, const char *usable)
{
    strata_kernel_info k;
    printf("id\tfamily\ttypes\tisa\tusable\twhy_not\torder\n");
    for (int i = 0; strata_kernels(i, &k); i++)
        if (wanted(&k, family, usable))
            printf("%s\t%s\t%s\t%s\t%d\t%s\t%s\n", k.id, k.family, k.types, k.isa, k.usable,
                   k.why_not ? k.why_not : "", k.order ? k.order : "");
}

static void print_json(const char *family, const char *usable)
{
    strata_kernel_info k;
    cli_json j = {.f = stdout};
    cli_json_open(&j, NULL, '[');
    for (int i = 0; strata_kernels(i, &k); i++) {
        if (!wanted(&k, family, usable)) continue;
        cli_json_open(&j, NULL, '{');
        cli_json_string(&j, "id", k.id);
        cli_json_string(&j, "family", k.family);
        cli_json_string(&j, "types", k.types);
        cli_json_string(&j, "isa", k.isa);
        cli_json_bool(&j, "usable", k.usable);
        cli_json_string(&j, "why_not", k.why_not);
        cli_json_string(&j, "order", k.order);
        cli_json_close(&j, '}');
    }
    cli_json_close(&j, ']');
}

int verb_kernels(int argc, char **argv)
{
    const char *tsv = NULL, *json = NULL, *usable = NULL, *family;
    const cli_option options[] = {
        {"--usable", NULL, "only those that this machine can run", &usable, NULL, 0},
        {"--tsv", NULL, "tab-separated, with a head line", &tsv, NULL, 0},
        {"--json", NULL, "machine-readable", &json, NULL, 0},
    };
    const cli_usage usage = {
        "strata kernels [FAMILY] [options]",
        "Lists the kernels of this build in the order of preference. Any of them can be forced by its id\n"
        "(strata_choice.kernel, or `strata plan ... --kernel ID`).",
        options, 3};
    int code, n;
    argv[0] = "kernels";
    if ((n = cli_parse(&usage, argc, argv, &family, 1, &code)) < 0) return code;
    if (cli_two_formats("kernels", tsv, json)) return CLI_USAGE;
    if (n == 0) family = NULL;
    strata_handle *h;
    if (strata_create(&h, "cpu")) return cli_failed("kernels", NULL);
    if (family) {
        const char *names[64];
        int count = 0;
        bool known = false;
        strata_kernel_info k;
        for (int i = 0; strata_kernels(i, &k); i++) {
            int at = 0;
            while (at < count && strcmp(names[at], k.family) != 0) at++;
            if (at == count && count < 64) names[count++] = k.family;
            known = known || strcmp(family, k.family) == 0;
        }
        if (!known) {
            const char *near = cli_nearest(family, names, count, sizeof *names);
            fprintf(stderr, "strata kernels: no family '%s'", CLI_SHORT(family));
            if (near) fprintf(stderr, "; did you mean '%s'?", near);
            fprintf(stderr, "\n  known:");
            for (int i = 0; i < count; i++) fprintf(stderr, " %s", names[i]);
            fputc('\n', stderr);
            strata_destroy(h);
            return CLI_USAGE;
        }
    }
    if (json)
        print_json(family, usable);
    else if (tsv)
        print_tsv(family, usable);
    else
        print_table(family, usable);
    strata_destroy(h);
    return CLI_OK;
}
