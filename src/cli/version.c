/* SPDX-License-Identifier: Apache-2.0 */
/* version.c - `strata version`. */
#include "cli/cli.h"
#include <string.h>

int verb_version(int argc, char **argv)
{
    static const cli_usage usage = {
        "strata version", "Prints the version of this command and of the library it runs with.", NULL, 0};
    int code;
    argv[0] = "version";
    if (cli_parse(&usage, argc, argv, NULL, 0, &code) < 0) return code;
    printf("strata %s", STRATA_VERSION_STRING);
    if (strcmp(STRATA_VERSION_STRING, strata_version()) != 0) printf(" (library %s)", strata_version());
    putchar('\n');
    return CLI_OK;
}
