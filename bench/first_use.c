/* SPDX-License-Identifier: Apache-2.0 */
/* first_use.c - `strata bench first-use`: what the first call of a new problem costs beyond its work.
 *
 * In a warm process: products of new shapes, new expressions, new programs with products, each called once and never again (the plan is made, on a CPU an
 * expression compiled to vector code). In a fresh process (the command starts itself): the same as the first call after strata_create. On a GPU the
 * first process compiles into an empty cache folder and the second finds the image there; a handle, memory and the stream are made before the clock
 * starts, so that the driver's context is not part of it. Problems are small: their own work is a few microseconds. */
#include "bench.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE = 128, MOST = 64 };
typedef enum kind { PRODUCT, EXPRESSION, ROWS, FUSED, KINDS } kind;
static const char *const kind_name[KINDS] = {"product", "expression", "rows", "fused product"};

typedef struct place {
    strata_handle *h;
    float *x, *w, *y;
} place;

static bool take_place(place *p, const char *device)
{
    void *m[3];
    const size_t bytes = sizeof(float) * (2 * SIDE) * (2 * SIDE);
    if (strata_create(&p->h, device)) return false;
    for (int i = 0; i < 3; i++)
        if (strata_alloc(p->h, bytes, &m[i])) return false;
    for (int i = 0; i < 3 && !strcmp(device, "cpu"); i++)
        memset(m[i], 0, bytes); /* and the pages are there */
    p->x = m[0], p->w = m[1], p->y = m[2];
    return !strata_synchronize(p->h);
}

static void leave_place(place *p)
{
    if (!p->h) return;
    strata_free(p->h, p->x), strata_free(p->h, p->w), strata_free(p->h, p->y);
    strata_destroy(p->h);
}

/* One call of a problem that `seed` makes a new one; microseconds, < 0: it failed. */
static double call(const place *p, kind k, int seed)
{
    char text[160];
    const int64_t m = SIDE / 2 + seed % SIDE, n = SIDE / 2 + seed / SIDE % SIDE;
    const strata_tensor X = strata_matrix(p->x, STRATA_F32, m, 72, STRATA_ROW_MAJOR, 0),
                        W = strata_matrix(p->w, STRATA_F32, 72, n, STRATA_ROW_MAJOR, 0),
                        Y = strata_matrix(p->y, STRATA_F32, m, n, STRATA_ROW_MAJOR, 0),
                        E = strata_matrix(p->x, STRATA_F32, 64, 64, STRATA_ROW_MAJOR, 0),
                        F = strata_matrix(p->y, STRATA_F32, 64, 64, STRATA_ROW_MAJOR, 0);
    const strata_operand map[] = {{"x", E}, {"out", F}, {NULL, {0}}},
                         product[] = {{"X", X}, {"W", W}, {"out", Y}, {NULL, {0}}};
    const double c = 1 + seed / 65536.0;
    if (k == EXPRESSION) snprintf(text, sizeof text, "out = tanh(x * %.9g) + sigmoid(x) * 0.5", c);
    if (k == ROWS) snprintf(text, sizeof text, "e = exp((x - max(x)) * %.9g); out = e / sum(e)", c);
    if (k == FUSED) snprintf(text, sizeof text, "out = gelu((X @ W) * %.9g)", c);
    const double begin = cli_seconds();
    strata_status s = k == PRODUCT ? strata_gemm(p->h, STRATA_ONE, X, W, STRATA_ZERO, Y, NULL)
                                   : strata_fused(p->h, text, k == FUSED ? product : map, NULL);
    if (!s) s = strata_synchronize(p->h);
    return s ? -1 : 1e6 * (cli_seconds() - begin);
}

/* ---- fresh processes ----------------------------------------------------------------------------------------------------------- */

static int child(const char *device, const char *which, const char *seed)
{
    place p = {NULL, NULL, NULL, NULL};
    int k = 0;
    while (k < KINDS && strcmp(kind_name[k], which) != 0) k++;
    double us = -1;
    if (k < KINDS && take_place(&p, device)) us = call(&p, (kind)k, atoi(seed));
    if (us < 0) fprintf(stderr, "%s\n", strata_error(p.h));
    printf("%.3f\n", us);
    leave_place(&p);
    return us < 0 ? CLI_FAILED : CLI_OK;
}

/* The first call in a process of its own, with its cache in `cache` (NULL: as here); < 0: it failed */
static double fresh(const char *device, kind k, int seed, const char *cache)
{
    int out[2];
    char text[64] = "", number[16];
    snprintf(number, sizeof number, "%d", seed);
    fflush(NULL);
    if (pipe(out)) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]), close(out[1]);
        if (cache) setenv("XDG_CACHE_HOME", cache, 1);
        execl("/proc/self/exe", "strata", "bench", "first-use", "--child", kind_name[k], "--seed", number,
              "--device", device, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    size_t at = 0;
    for (ssize_t n; at + 1 < sizeof text && (n = read(out[0], text + at, sizeof text - 1 - at)) > 0;)
        at += (size_t)n;
    close(out[0]);
    int status = 1;
    if (pid > 0) waitpid(pid, &status, 0);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? atof(text) : -1;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------------- */

typedef struct row {
    const char *what, *process;
    double us[MOST], target;
    int n;
} row;

static int upward(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

typedef struct output {
    bool tsv, json;
    cli_json j;
    int failed, above;
} output;

static void show(output *o, row *r)
{
    int bad = 0;
    for (int i = 0; i < r->n; i++) bad += r->us[i] < 0;
    qsort(r->us, (size_t)r->n, sizeof *r->us, upward);
    const double median = r->n && !bad ? r->us[r->n / 2] : -1, most = r->n && !bad ? r->us[r->n - 1] : -1;
    o->failed += bad > 0;
    o->above += !(median <= r->target);
    if (o->json) {
        cli_json_open(&o->j, NULL, '{');
        cli_json_string(&o->j, "what", r->what);
        cli_json_string(&o->j, "process", r->process);
        cli_json_number(&o->j, "us", median);
        cli_json_number(&o->j, "us_most", most);
        cli_json_number(&o->j, "us_target", r->target);
        cli_json_integer(&o->j, "times", r->n);
        cli_json_close(&o->j, '}');
    } else if (o->tsv) {
        printf("%s\t%s\t%.1f\t%.1f\t%.0f\t%d\n", r->what, r->process, median, most, r->target, r->n);
    } else {
        printf("%-16s %-22s %12.1f %12.1f %12.0f   %s\n", r->what, r->process, median, most, r->target,
               bad                   ? "FAILED"
               : median <= r->target ? ""
                                     : "above");
    }
    fflush(stdout);
}

static bool on_cpu(output *o, int times)
{
    place p = {NULL, NULL, NULL, NULL};
    if (!take_place(&p, "cpu")) return cli_failed("bench", p.h), false;
    int seed = 1;
    for (int k = 0; k < KINDS; k++) {
        row r = {kind_name[k], "warm", {0}, 1000, times};
        call(&p, (kind)k, seed++); /* the family's own first use */
        for (int i = 0; i < times; i++) r.us[i] = call(&p, (kind)k, seed++);
        show(o, &r);
    }
    leave_place(&p);
    for (int k = 0; k < KINDS; k++) {
        row r = {kind_name[k], "fresh", {0}, 1000, times < 9 ? times : 9};
        for (int i = 0; i < r.n; i++) r.us[i] = fresh("cpu", (kind)k, seed++, NULL);
        show(o, &r);
    }
    return true;
}

static bool on_gpu(output *o, const char *device, int times)
{
    char cache[] = "/tmp/strata-first-use-XXXXXX", line[80];
    if (!mkdtemp(cache)) return cli_bad("bench", "no folder for a cache can be made in /tmp"), false;
    const int n = times < 3 ? times : 3;
    for (int k = 0; k < KINDS; k++) {
        row compile = {kind_name[k], "fresh, compiles", {0}, 1.5e6, n},
            again = {kind_name[k], "fresh, from the cache", {0}, 5000, n};
        for (int i = 0; i < n; i++) {
            const int seed = 1 + k * 16 + i;
            compile.us[i] = fresh(device, (kind)k, seed, cache);
            again.us[i] = fresh(device, (kind)k, seed, cache);
        }
        show(o, &compile);
        show(o, &again);
    }
    snprintf(line, sizeof line, "rm -rf '%s'", cache);
    return system(line) == 0;
}

int bench_first_use(int argc, char **argv)
{
    const char *device = "cpu", *tsv = NULL, *json = NULL, *of = NULL, *seed = "1", *count = NULL;
    const cli_option options[] = {
        {"--device", "DEVICE", "cpu (default) or cuda:N", &device, NULL, 0},
        {"--times", "N", "new problems of each kind (default 21)", &count, NULL, 0},
        {"--tsv", NULL, "tab-separated rows instead of the table", &tsv, NULL, 0},
        {"--json", NULL, "JSON instead of the table", &json, NULL, 0},
        {"--child", "KIND", NULL, &of, NULL, 0},
        {"--seed", "N", NULL, &seed, NULL, 0},
    };
    const cli_usage usage = {"strata bench first-use [options]",
                             "What the first call of a new product, expression, reduction and fused product "
                             "costs, in microseconds: in a process that\n"
                             "has worked before, and as a process's first call. On a GPU: with compiling, "
                             "and from the cache of an earlier process.\n"
                             "Targets: 1 ms on a CPU; 1.5 s and 5 ms on a GPU. The exit code is 1 when a "
                             "call fails, not when it is slow.",
                             options, (int)(sizeof options / sizeof *options)};
    const char *none;
    int code;
    int64_t times = 21;
    argv[0] = "bench";
    if (cli_parse(&usage, argc, argv, &none, 0, &code) < 0) return code;
    if (of) return child(device, of, seed);
    if (cli_two_formats("bench", tsv, json)) return CLI_USAGE;
    if (count && !cli_integer(count, 1, MOST, &times))
        return cli_bad("bench", "--times takes 1 to %d, not '%s'", MOST, CLI_SHORT(count));
    output o = {.tsv = tsv != NULL, .json = json != NULL, .j = {.f = stdout}};
    if (o.json) cli_json_open(&o.j, NULL, '[');
    if (o.tsv) printf("what\tprocess\tus\tus_most\tus_target\ttimes\n");
    if (!o.json && !o.tsv)
        printf("%-16s %-22s %12s %12s %12s\n", "first use of", "process", "median us", "most", "target");
    const bool ran = strcmp(device, "cpu") == 0 ? on_cpu(&o, (int)times) : on_gpu(&o, device, (int)times);
    if (o.json) cli_json_close(&o.j, ']');
    if (ran && !o.json && !o.tsv) printf("%d of the medians above their targets\n", o.above);
    return ran && !o.failed ? CLI_OK : CLI_FAILED;
}
