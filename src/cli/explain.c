/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - `strata explain`: what an error message means, or which known errors a log holds. */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"
#include "doctor/doctor.h"
#include "doctor/explain.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_log(st_explain *e, const char *path)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int error = fd < 0 ? errno : st_explain_fd(e, fd);
    if (fd > STDERR_FILENO) close(fd);
    if (error) fprintf(stderr, "strata explain: %s: %s\n", CLI_SHORT(path), strerror(error));
    return error;
}

static bool is_file(const char *word)
{
    struct stat s;
    return strcmp(word, "-") == 0 || (stat(word, &s) == 0 && (S_ISREG(s.st_mode) || S_ISFIFO(s.st_mode)));
}

/* one word that can only be meant as a file: "/missing.log", "train.log" */
static bool like_a_path(const char *word)
{
    static const char *const ends[] = {".log", ".txt", ".out", ".err", ".json"};
    size_t n = strlen(word);
    if (n == 0 || n > 1024 || strpbrk(word, " \t\n:\"'()")) return false;
    if (word[0] == '/' || strncmp(word, "./", 2) == 0 || strncmp(word, "../", 3) == 0 ||
        strncmp(word, "~/", 2) == 0)
        return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t k = strlen(ends[i]);
        if (n > k && strcmp(word + n - k, ends[i]) == 0) return true;
    }
    return false;
}

int verb_explain(int argc, char **argv)
{
    const char *words[CLI_MAX_WORDS], *json = NULL, *alone = NULL, *root = "/";
    const cli_option options[] = {
        {"--json", NULL, "the findings as JSON", &json, NULL, 0},
        {"--no-machine", NULL, "do not look at this machine to order the causes", &alone, NULL, 0},
        {"--root", "DIR", "the machine to look at is the one below DIR", &root, NULL, 0},
    };
    const cli_usage usage = {"strata explain \"MESSAGE\" | FILE... | < LOG",
                             "Finds the error messages of the GPU stack in a text, and says of each which "
                             "layer is at fault, the causes in\n"
                             "order of likelihood, how to confirm them and the fix. NVIDIA's Xid lines of "
                             "every driver generation are decoded.\n"
                             "  strata explain \"CUBLAS_STATUS_NOT_INITIALIZED\"\n  strata explain \"Xid "
                             "79\"\n  dmesg | strata explain\n"
                             "Exit codes: 1 a known error was found, 0 none (or harmless ones), 2 the "
                             "command line, 3 an unknown message or an\n"
                             "unreadable file.",
                             options, 3};
    int code, n = cli_parse(&usage, argc, argv, words, CLI_MAX_WORDS, &code);
    if (n < 0) return code;
    if (n == 0 && isatty(STDIN_FILENO))
        return cli_bad("explain", "give a message, a file, or a log on standard input");
    st_explain *e = st_explain_open();
    if (!e) return fprintf(stderr, "strata explain: out of memory\n"), ST_CANNOT_LOOK;
    bool failed = false;
    int files = 0;
    for (int i = 0; i < n; i++) files += is_file(words[i]);
    for (int i = 0; i < n && files < n; i++)
        if (!is_file(words[i]) && like_a_path(words[i])) {
            struct stat s;
            fprintf(stderr, "strata explain: %s: %s\n", CLI_SHORT(words[i]),
                    stat(words[i], &s)   ? strerror(errno)
                    : S_ISDIR(s.st_mode) ? "Is a directory"
                                         : "is neither a file nor a pipe");
            st_explain_close(e);
            return ST_CANNOT_LOOK;
        }
    if (n == 0)
        failed = read_log(e, "-") != 0;
    else if (files == n)
        for (int i = 0; i < n; i++) failed |= read_log(e, words[i]) != 0;
    else
        for (int i = 0; i < n; i++) st_explain_text(e, words[i]);
    if (!alone) {
        int error;
        const st_live live = {.body = cli_doctor_child};
        st_doctor *d = st_doctor_look(root, &live, &error);
        if (!d) {
            fprintf(stderr, "strata explain: %s: %s\n", CLI_SHORT(root), strerror(error));
            failed = true;
        }
        for (int pass = 0; d && pass < 2; pass++)
            for (int i = 0; i < st_doctor_count(d); i++) {
                const st_finding *f = st_doctor_finding(d, i);
                if (f->state == (pass ? ST_FINDING_WARNING : ST_FINDING_FAULT))
                    st_explain_machine(e, f->id, f->text);
            }
        st_doctor_free(d);
    }
    code = st_explain_report(e, stdout, json != NULL);
    st_explain_close(e);
    return failed ? ST_CANNOT_LOOK : code;
}
