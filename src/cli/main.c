/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the `strata` command: finds the verb and hands the rest of the line to it. */
#include "cli/cli.h"
#include <string.h>

const cli_verb cli_verbs[] = {
    {"info", "what this machine offers, and which kernels would be used", verb_info},
    {"kernels", "every kernel of this build, usable here or why not", verb_kernels},
    {"plan", "what a product or a convolution would do: floor, candidates, choice and why", verb_plan},
    {"tune", "measures the kernels that could do a problem and remembers the fastest", verb_tune},
    {"bench", "times Strata beside the peers it finds, in one run", verb_bench},
    {"selftest", "a quick numerical check of each operator on this machine", verb_selftest},
    {"doctor", "what is wrong with this machine's GPU stack, layer by layer, and the fix", verb_doctor},
    {"explain", "what an error message means, or which known errors a log holds", verb_explain},
    {"version", "the version of this command and library", verb_version},
    {"help", "help on the command or on one verb", verb_help},
};
const int cli_verb_count = (int)(sizeof cli_verbs / sizeof *cli_verbs);

int main(int argc, char **argv)
{
    static char *no_words[] = {"help", NULL};
    if (argc < 2) {
        verb_help(1, no_words);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) name = "version";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    for (int i = 0; i < cli_verb_count; i++)
        if (strcmp(name, cli_verbs[i].name) == 0) {
            int code = cli_verbs[i].run(argc - 1, argv + 1);
            /* a full disk or a closed pipe must not look like success */
            if ((fflush(stdout) || ferror(stdout)) && code == CLI_OK) {
                fprintf(stderr, "strata %s: the output could not be written\n", name);
                code = CLI_FAILED;
            }
            return code;
        }
    const char *near = cli_nearest(name, &cli_verbs[0].name, cli_verb_count, sizeof *cli_verbs);
    fprintf(stderr, "strata: unknown verb '%s'", CLI_SHORT(name));
    if (near) fprintf(stderr, "; did you mean '%s'?", near);
    fprintf(stderr, "\n  known:");
    for (int i = 0; i < cli_verb_count; i++) fprintf(stderr, " %s", cli_verbs[i].name);
    fputc('\n', stderr);
    return CLI_USAGE;
}
