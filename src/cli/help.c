/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - `strata help [verb]`. A verb's own text is printed by the verb, so that it stands beside what it describes. */
#include "cli/cli.h"
#include <string.h>

int verb_help(int argc, char **argv)
{
    static char *ask[] = {NULL, "--help", NULL};
    if (argc > 2) return cli_bad("help", "takes at most one verb");
    if (argc == 2 && strcmp(argv[1], "help") != 0 && strcmp(argv[1], "--help") != 0) {
        for (int i = 0; i < cli_verb_count; i++)
            if (strcmp(argv[1], cli_verbs[i].name) == 0) {
                ask[0] = argv[1];
                return cli_verbs[i].run(2, ask);
            }
        const char *near = cli_nearest(argv[1], &cli_verbs[0].name, cli_verb_count, sizeof *cli_verbs);
        return cli_bad("help",
                       near ? "no verb '%s'; did you mean '%s'?" : "no verb '%s'; `strata help` lists them",
                       CLI_SHORT(argv[1]), near);
    }
    printf("usage: strata VERB [arguments]\n\nStrata %s, dense numerics and neural-network operators for "
           "C.\n\nverbs:\n",
           strata_version());
    for (int i = 0; i < cli_verb_count; i++) printf("  %-10s %s\n", cli_verbs[i].name, cli_verbs[i].summary);
    printf("\n`strata help VERB` tells more. Exit codes: 0 done, 1 something failed, 2 the command line was "
           "not understood; doctor and explain\nhave more, see there.\n");
    return CLI_OK;
}
