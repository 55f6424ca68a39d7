/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - `strata doctor`: what is wrong with this machine's GPU stack, layer by layer. */
#define _POSIX_C_SOURCE 200809L
#include "doctor/doctor.h"
#include "cli/cli.h"
#include <errno.h>
#include <string.h>

static int look_for(const char *root, const char *subject, bool json)
{
    char why[400] = "";
    int code = st_doctor_for(root, subject, stdout, json, why, sizeof why);
    if (why[0]) fprintf(stderr, "strata doctor: %s\n", why);
    return code;
}

int verb_doctor(int argc, char **argv)
{
    const char *root = "/", *json = NULL, *html = NULL, *plan = NULL, *subject = NULL;
    const cli_option options[] = {
        {"--root", "DIR", "look at the machine below DIR (a mounted disk, a copied tree) instead of this one",
         &root, NULL, 0},
        {"--json", NULL, "everything that was found, as JSON", &json, NULL, 0},
        {"--html", "FILE", "the map as one HTML page", &html, NULL, 0},
        {"--plan", "WHAT", "which versions fit: --plan \"rtx 2080 ti, pytorch 2.8\"; looks at no machine",
         &plan, NULL, 0},
        {"--for", "WHAT", "which copies of the libraries a program, a process (its number) or python3 takes",
         &subject, NULL, 0},
    };
    const cli_usage usage = {"strata doctor [--root DIR] [--json] [--html FILE]\n       strata doctor --plan "
                             "\"GPU, pytorch X.Y, driver N, ...\"",
                             "Looks at the six layers under a GPU program, bottom-up: hardware, driver, "
                             "runtime and toolkit, base libraries,\n"
                             "frameworks, application. Names the lowest faulty one, the evidence, the fix "
                             "and what does not help. Reads files only,\n"
                             "needs no root rights and changes nothing.\n"
                             "Exit codes: 0 healthy (also without a GPU), 1 a fault, 2 the command line, 3 "
                             "the root could not be read.",
                             options, ST_COUNT(options)};
    int code, n = cli_parse(&usage, argc, argv, NULL, 0, &code), error;
    if (n < 0) return code;
    if (plan) return st_doctor_plan(plan, stdout, json != NULL);
    if (subject) return look_for(root, subject, json != NULL);
    st_doctor *d = st_doctor_run(root, &error);
    if (!d) {
        fprintf(stderr, "strata doctor: %s: %s\n", root, strerror(error));
        return ST_CANNOT_LOOK;
    }
    if (html) {
        FILE *f = strcmp(html, "-") == 0 ? stdout : fopen(html, "w");
        if (f) st_doctor_html(d, f);
        if (!f || (f != stdout && fclose(f))) {
            fprintf(stderr, "strata doctor: %s: %s\n", html, strerror(errno));
            st_doctor_free(d);
            return ST_CANNOT_LOOK;
        }
    }
    if (json)
        code = st_doctor_json(d, stdout);
    else if (!html || strcmp(html, "-") != 0)
        code = st_doctor_text(d, stdout);
    else
        code = st_doctor_verdict(d) ? ST_FAULT : ST_HEALTHY;
    st_doctor_free(d);
    return code;
}
