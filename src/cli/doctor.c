/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - `strata doctor`: what is wrong with this machine's GPU stack, layer by layer. */
#define _POSIX_C_SOURCE 200809L
#include "doctor/doctor.h"
#include "cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The child asks in a program of its own, so that the same lines can be had by hand. CUDA_VISIBLE_DEVICES is looked at elsewhere: here it would
 * hide what the driver can do. */
int cli_doctor_child(const char *what, int fd)
{
    if (strncmp(what, "watch ", 6) == 0) return st_steps_body(what, fd);
    if (dup2(fd, STDOUT_FILENO) < 0) return 2;
    unsetenv("CUDA_VISIBLE_DEVICES");
    execl("/proc/self/exe", "strata", "selftest", "--json", "--only", what, (char *)NULL);
    return st_steps_body(what, fd);
}

static int look_for(const char *root, const char *subject, bool json)
{
    char why[400] = "";
    int code = st_doctor_for(root, subject, stdout, json, why, sizeof why);
    if (why[0]) fprintf(stderr, "strata doctor: %s\n", why);
    return code;
}

static int look_on(const st_live *live, const char *count, const char *interval, bool json)
{
    int64_t n = 0;
    double seconds = 1;
    char why[700] = "";
    if (count && !cli_integer(count, 1, 1000000000, &n))
        return cli_bad("doctor", "--count takes a number from 1, not '%s'", CLI_SHORT(count));
    if (interval && !cli_number(interval, 0.05, 3600, &seconds))
        return cli_bad("doctor", "--interval takes 0.05 to 3600 seconds, not '%s'", CLI_SHORT(interval));
    int code = st_doctor_watch(live, (int)n, seconds, stdout, json, why, sizeof why);
    if (why[0]) fprintf(stderr, "strata doctor: %s\n", why);
    return code;
}

static bool write_html(const st_doctor *d, const char *path)
{
    FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (f) st_doctor_html(d, f);
    if (f && (f == stdout || fclose(f) == 0)) return true;
    fprintf(stderr, "strata doctor: %s: %s\n", CLI_SHORT(path), strerror(errno));
    return false;
}

int verb_doctor(int argc, char **argv)
{
    const char *root = "/", *json = NULL, *html = NULL, *plan = NULL, *subject = NULL, *deep = NULL,
               *verify = NULL, *watch = NULL, *count = NULL, *interval = NULL, *files = NULL,
               *patience = NULL;
    const cli_option options[] = {
        {"--root", "DIR", "look at the machine below DIR (a mounted disk, a copied tree) instead of this one",
         &root, NULL, 0},
        {"--json", NULL, "everything that was found, as JSON", &json, NULL, 0},
        {"--html", "FILE", "the map as one HTML page", &html, NULL, 0},
        {"--deep", NULL,
         "also run a kernel through every layer up to a product, and measure memory and arithmetic", &deep,
         NULL, 0},
        {"--files", NULL, "read files only: do not ask NVML and the driver", &files, NULL, 0},
        {"--verify", NULL, "what an installation needs, step by step, each tried", &verify, NULL, 0},
        {"--watch", NULL, "memory, clocks, temperature, power, ECC and Xid of the GPUs, again and again",
         &watch, NULL, 0},
        {"--count", "N", "with --watch: N times, then end (default: until interrupted)", &count, NULL, 0},
        {"--interval", "SECONDS", "with --watch: the time between (default 1)", &interval, NULL, 0},
        {"--patience", "SECONDS",
         "how long a step of --deep, --verify or --watch may take (default 30; --watch 10)", &patience, NULL,
         0},
        {"--for", "WHAT", "which copies of the libraries a program, a process (its number) or python3 takes",
         &subject, NULL, 0},
        {"--plan", "WHAT", "which versions fit: --plan \"rtx 2080 ti, pytorch 2.8\"; looks at no machine",
         &plan, NULL, 0},
    };
    const cli_usage usage = {
        "strata doctor [--root DIR] [--deep | --files] [--json] [--html FILE]\n"
        "       strata doctor --verify | --watch [--count N] [--interval SECONDS] [--json]\n"
        "       strata doctor --for PROGRAM|PID|python3 [--root DIR] [--json]\n"
        "       strata doctor --plan \"GPU, pytorch X.Y, driver N, ...\" [--json]",
        "Looks at the six layers under a GPU program, bottom-up: hardware, driver, runtime and toolkit, base "
        "libraries,\n"
        "frameworks, application. Names the lowest faulty one, the evidence, the fix and what does not help. "
        "Needs no root\n"
        "rights and changes nothing. NVML and the driver are asked in processes of their own, which are "
        "ended when they hang.\n"
        "Exit codes: 0 healthy (also without a GPU), 1 a fault, 2 the command line, 3 nothing could be "
        "looked at.",
        options, (int)(sizeof options / sizeof *options)};
    int code, n = cli_parse(&usage, argc, argv, NULL, 0, &code), error;
    if (n < 0) return code;
    int kinds = (plan != NULL) + (subject != NULL) + (verify != NULL) + (watch != NULL) + (deep || files);
    if (kinds > 1 || (deep && files))
        return cli_bad("doctor", "--deep, --files, --verify, --watch, --for and --plan exclude each other");
    if (html && (plan || subject || verify || watch))
        return cli_bad("doctor", "--html goes with the whole look only");
    if ((count || interval) && !watch) return cli_bad("doctor", "--count and --interval belong to --watch");
    if (strcmp(root, "/") != 0 && (deep || verify || watch))
        return cli_bad("doctor", "%s runs things on this machine; it does not go with --root",
                       deep     ? "--deep"
                       : verify ? "--verify"
                                : "--watch");
    if (plan && !plan[strspn(plan, " ,;\t")])
        return cli_bad("doctor", "--plan is empty: give parts such as \"rtx 2080 ti, pytorch 2.8\"");
    if (plan) return st_doctor_plan(plan, stdout, json != NULL);
    if (subject) return look_for(root, subject, json != NULL);
    st_live live = {.body = cli_doctor_child, .deep = deep != NULL};
    if (patience && !cli_number(patience, 0.1, 86400, &live.patience))
        return cli_bad("doctor", "--patience takes 0.1 to 86400 seconds, not '%s'", CLI_SHORT(patience));
    if (verify) return st_doctor_verify(&live, stdout, json != NULL);
    if (watch) return look_on(&live, count, interval, json != NULL);
    st_doctor *d = st_doctor_look(root, files ? NULL : &live, &error);
    if (!d) {
        fprintf(stderr, "strata doctor: %s: %s\n", CLI_SHORT(root), strerror(error));
        return ST_CANNOT_LOOK;
    }
    if (html && !write_html(d, html)) {
        st_doctor_free(d);
        return ST_CANNOT_LOOK;
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
