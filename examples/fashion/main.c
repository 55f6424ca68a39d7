/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - strata-demo: shows the machine, trains a network on Fashion-MNIST, saves and reloads it, shows what it sees. The seed is
 * fixed and Strata is deterministic: the same machine prints the same losses and accuracies every time. */
#include "idx.h"
#include "net.h"
#include "path.h"
#include "progress.h"
#include "show.h"
#include "weights.h"
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DONE = 0, FAILED = 1, USAGE = 2, NO_DATA = 3, BAD_DATA = 4, NOT_LEARNT = 5 };
enum { BATCH = 128, QUICK_BATCHES = 40, QUICK_TESTS = 1000, SHOWN = 10 };
static const double top_rate = 0.1, warm_up = 0.25; /* one-cycle schedule */
static const double promised = 90.0;                /* percent of the test pictures */

static const char *const class_name[NET_CLASSES] = {"T-shirt", "trousers",  "pullover", "dress",
                                                    "coat",    "sandal",    "shirt",    "sneaker",
                                                    "handbag", "ankle boot"};

typedef struct options {
    const char *data, *weights, *device;
    int epochs, threads;
    bool quick;
} options;

static const char help[] =
    "strata-demo [options]: trains a small convolutional network on Fashion-MNIST with Strata\n"
    "  --data DIR      folder of the pictures (default /usr/share/datasets/fashion-mnist)\n"
    "  --weights FILE  where the trained weights go (default fashion.weights)\n"
    "  --epochs N      times through the 60000 pictures (default 3)\n"
    "  --device NAME   cpu, cuda:0, or auto for the best there is (default)\n"
    "  --threads N     threads to use (default: all that this process may use)\n"
    "  --quick         40 batches and 1000 test pictures, to see that everything works\n"
    "exit codes: 0 done, 1 failed, 2 wrong usage, 3 no data, 4 bad data or weights, 5 less than 90 % "
    "learnt\n";

static long whole(const char *option, const char *text, long low, long high)
{
    char *end;
    long x = strtol(text, &end, 10);
    if (*text && !*end && x >= low && x <= high) return x;
    fprintf(stderr, "strata-demo: --%s %s: a number from %ld to %ld is expected\n", option, text, low, high);
    exit(USAGE);
}

static options read_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"data", required_argument, NULL, 'd'},   {"weights", required_argument, NULL, 'w'},
        {"epochs", required_argument, NULL, 'e'}, {"threads", required_argument, NULL, 't'},
        {"device", required_argument, NULL, 'D'}, {"quick", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    options o = {.data = "/usr/share/datasets/fashion-mnist",
                 .weights = "fashion.weights",
                 .device = "auto",
                 .epochs = 3};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (c) {
        case 'd': o.data = optarg; break;
        case 'w': o.weights = optarg; break;
        case 'D': o.device = optarg; break;
        case 'e': o.epochs = (int)whole("epochs", optarg, 1, 1000); break;
        case 't': o.threads = (int)whole("threads", optarg, 1, 256); break;
        case 'q': o.quick = true; break;
        case 'h': fputs(help, stdout); exit(DONE);
        default: fputs(help, stderr); exit(USAGE);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "strata-demo: '%s' is not an option\n%s", argv[optind], help);
        exit(USAGE);
    }
    if (o.quick) o.epochs = 1;
    return o;
}

/* ---- what is here -------------------------------------------------------------------------------------------------------- */

static void print_bytes(const char *what, int64_t bytes)
{
    if (bytes >= (int64_t)1 << 30)
        printf("%s %.1f GiB", what, (double)bytes / (1 << 30));
    else if (bytes >= 1 << 20)
        printf("%s %.4g MiB", what, (double)bytes / (1 << 20));
    else if (bytes)
        printf("%s %.4g KiB", what, (double)bytes / (1 << 10));
    else
        printf("%s unknown", what);
}

static int show_machine(void)
{
    printf("Strata %s found\n", strata_version());
    for (int i = 0; i < strata_device_count(); i++) {
        strata_device_info d;
        if (strata_get_device_info(strata_device_name(i), &d)) {
            fprintf(stderr, "strata-demo: %s\n", strata_error(NULL));
            return FAILED;
        }
        printf("  device   %s: %s\n", d.device, d.name);
        printf("  kernels  for %s\n", d.isa);
        if (d.multiprocessors > 0) {
            printf("  units    %d multiprocessors, up to %.0f MHz\n", d.multiprocessors, d.clock_mhz);
            print_bytes("  caches   L2", d.l2);
            print_bytes("\n  memory  ", d.memory);
            printf(", %.0f GB/s\n\n", d.memory_gbs);
            continue;
        }
        printf("  threads  %d of %d processors\n", d.threads, d.processors);
        print_bytes("  caches   L1", d.l1d);
        print_bytes(", L2", d.l2);
        print_bytes(", L3", d.l3);
        printf(" (%s)\n", d.cache_source);
        print_bytes("  memory  ", d.memory);
        printf("\n\n");
    }
    return DONE;
}

/* ---- training ------------------------------------------------------------------------------------------------------------ */

static int read_data(const options *o, idx_set *train, idx_set *test)
{
    char why[4400];
    idx_result r = idx_read(o->data, "train", NET_SIDE, NET_SIDE, NET_CLASSES, train, why, sizeof why);
    if (r == IDX_OK) r = idx_read(o->data, "t10k", NET_SIDE, NET_SIDE, NET_CLASSES, test, why, sizeof why);
    if (r == IDX_OK && train->count < BATCH) {
        snprintf(why, sizeof why, "%s: holds %d training pictures; one batch takes %d", o->data, train->count,
                 BATCH);
        r = IDX_BAD;
    }
    if (r == IDX_OK) return DONE;
    if (r == IDX_ABSENT)
        fprintf(
            stderr,
            "strata-demo: Fashion-MNIST is not in %s; get it with `apt-get install dataset-fashion-mnist`, "
            "or name its folder with --data\n",
            o->data);
    else
        fprintf(stderr, "strata-demo: %s\n", why);
    return r == IDX_ABSENT ? NO_DATA : BAD_DATA;
}

static int fail(net *n)
{
    fprintf(stderr, "strata-demo: %s\n", net_error(n));
    return FAILED;
}

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators", TOMS 42 (2016) */
static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(((*state * 2685821657736338717u >> 32) * n) >> 32);
}

static void shuffle(int *order, int count, uint64_t *state)
{
    for (int i = count - 1; i > 0; i--) {
        int j = (int)random_below(state, (uint32_t)i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

/* Rises to the top in the first quarter of the way, then falls to nothing. */
static double rate_at(double part)
{
    double r = part < warm_up ? part / warm_up : (1 - part) / (1 - warm_up);
    return top_rate * (r > 0.01 ? r : 0.01);
}

/* Counts the test pictures that the network names rightly. */
static int test_network(net *n, const idx_set *test, int count, int *right)
{
    uint8_t *classes = malloc((size_t)count);
    *right = 0;
    if (!classes || net_classify(n, test->pixels, count, classes, NULL)) {
        free(classes);
        return fail(n);
    }
    for (int i = 0; i < count; i++) *right += classes[i] == test->labels[i];
    free(classes);
    return DONE;
}

typedef struct job {
    const options *o;
    net *n;
    idx_set train, test;
    int tests, batches; /* test pictures to use; batches an epoch */
    int *order;
    uint8_t pixels[BATCH * NET_PIXELS], labels[BATCH];
    double training; /* seconds */
} job;

static int train_epoch(job *j, int epoch, progress *p, double *mean_loss)
{
    char title[40], detail[40];
    double loss, sum = 0;
    int64_t all = (int64_t)j->batches * j->o->epochs;
    snprintf(title, sizeof title, "epoch %d/%d", epoch + 1, j->o->epochs);
    for (int b = 0; b < j->batches; b++) {
        for (int i = 0; i < BATCH; i++) {
            int from = j->order[b * BATCH + i];
            memcpy(j->pixels + i * NET_PIXELS, j->train.pixels + (int64_t)from * NET_PIXELS, NET_PIXELS);
            j->labels[i] = j->train.labels[from];
        }
        int64_t step = (int64_t)epoch * j->batches + b;
        if (net_load(j->n, j->pixels, j->labels)) return fail(j->n);
        if (net_step(j->n, rate_at((double)(step + 1) / (double)all), &loss)) return fail(j->n);
        sum += loss;
        snprintf(detail, sizeof detail, "loss %.4f", loss);
        progress_show(p, (step + 1) * BATCH, title, detail);
    }
    *mean_loss = sum / j->batches;
    return DONE;
}

static int train(job *j)
{
    uint64_t state = 20170825;
    progress p;
    int code = DONE, right;
    printf("Training %d numbers on %d pictures, tests on %d others\n", (int)net_parameter_count(j->n),
           j->train.count, j->tests);
    progress_start(&p, (int64_t)j->batches * j->o->epochs * BATCH, 4 * j->o->epochs);
    for (int i = 0; i < j->train.count; i++) j->order[i] = i;
    for (int e = 0; e < j->o->epochs && !code; e++) {
        double loss, begin = seconds();
        shuffle(j->order, j->train.count, &state);
        code = train_epoch(j, e, &p, &loss);
        j->training += seconds() - begin;
        if (!code) code = test_network(j->n, &j->test, j->tests, &right);
        progress_clear(&p);
        if (!code)
            printf("epoch %d/%d: mean loss %.4f, test accuracy %.2f %%\n", e + 1, j->o->epochs, loss,
                   100.0 * right / j->tests);
    }
    return code;
}

/* ---- what was learnt ----------------------------------------------------------------------------------------------------- */

/* The first ten test pictures that show ten different things. */
static int show_ten(job *j)
{
    uint8_t pixels[SHOWN * NET_PIXELS], classes[SHOWN], label[SHOWN];
    float probability[SHOWN * NET_CLASSES];
    char line[SHOWN][2][48];
    show_picture picture[SHOWN];
    int found = 0;
    for (int i = 0; i < j->test.count && found < SHOWN; i++) {
        bool known = false;
        for (int k = 0; k < found; k++) known |= label[k] == j->test.labels[i];
        if (known && j->test.count - i > SHOWN - found) continue;
        label[found] = j->test.labels[i];
        memcpy(pixels + found++ * NET_PIXELS, j->test.pixels + (int64_t)i * NET_PIXELS, NET_PIXELS);
    }
    if (net_classify(j->n, pixels, found, classes, probability)) return fail(j->n);
    for (int i = 0; i < found; i++) {
        bool right = classes[i] == label[i];
        snprintf(line[i][0], sizeof line[i][0], "%s %.0f %%", class_name[classes[i]],
                 100.0 * probability[i * NET_CLASSES + classes[i]]);
        snprintf(line[i][1], sizeof line[i][1], right ? "right" : "WRONG: %s", class_name[label[i]]);
        picture[i] = (show_picture){pixels + i * NET_PIXELS, {line[i][0], line[i][1]}};
    }
    printf("\nTen test pictures, what the reloaded network takes them for, and the truth\n\n");
    show_pictures(stdout, show_style_here(), terminal_columns(), NET_SIDE, found, picture);
    return DONE;
}

/* Saves, reloads into a network of other fresh weights, and compares. */
static int save_and_reload(job *j, int *right)
{
    char why[8300];
    int before, code = test_network(j->n, &j->test, j->tests, &before);
    if (code) return code;
    if (weights_save(j->n, j->o->weights, why, sizeof why)) {
        fprintf(stderr, "strata-demo: %s\n", why);
        return FAILED;
    }
    net *fresh = net_create(j->o->device, j->o->threads, BATCH, 2, why, sizeof why);
    if (!fresh) {
        fprintf(stderr, "strata-demo: %s\n", why);
        return FAILED;
    }
    net_destroy(j->n);
    j->n = fresh;
    if (weights_load(fresh, j->o->weights, why, sizeof why)) {
        fprintf(stderr, "strata-demo: %s\n", why);
        return BAD_DATA;
    }
    code = test_network(fresh, &j->test, j->tests, right);
    if (code) return code;
    printf("Saved to %s, reloaded into a fresh network: %d of %d right, %s as before\n", j->o->weights,
           *right, j->tests, *right == before ? "the same" : "NOT the same");
    return *right == before ? DONE : FAILED;
}

/* The plan in words, but of the kernels that were not chosen only how many they are. */
static void print_plan(const char *plan)
{
    int slower = 0, refused = 0;
    for (const char *end; *plan; plan = *end ? end + 1 : end) {
        end = plan + strcspn(plan, "\n");
        const char *word = plan + strspn(plan, " ");
        bool also = !strncmp(word, "also ", 5), no = !strncmp(word, "refused ", 8);
        slower += also;
        refused += no;
        if (!also && !no && end > plan) printf("  %.*s\n", (int)(end - plan), plan);
    }
    printf("    beside it  %d kernels that would be slower, %d that refused (example 07_plans shows such a "
           "list)\n\n",
           slower, refused);
}

/* Traces one convolution: the plan in words first, then each layer's part of the time. */
static int show_path(job *j)
{
    char file[] = "/tmp/strata-demo-XXXXXX", *plan = NULL;
    if (getenv("STRATA_TRACE")) return DONE; /* the caller traces already */
    int fd = mkstemp(file);
    if (fd < 0) return DONE;
    close(fd);
    if (net_load(j->n, j->pixels, j->labels) || net_one_call(j->n, &plan)) return fail(j->n);
    printf("One call from the public function down: the second convolution on %d pictures\n\n", BATCH);
    if (plan) print_plan(plan);
    free(plan);
    if (strata_set_trace(file)) {
        fprintf(stderr, "strata-demo: %s\n", strata_error(NULL));
        return FAILED;
    }
    strata_status s = net_one_call(j->n, NULL);
    strata_set_trace(NULL);
    if (!s) path_show(stdout, file);
    remove(file);
    return s ? fail(j->n) : DONE;
}

static int run(job *j)
{
    char why[8300];
    int right, code = read_data(j->o, &j->train, &j->test);
    if (code) return code;
    if (weights_writable(j->o->weights, why, sizeof why)) { /* not after the training */
        fprintf(stderr, "strata-demo: %s\n", why);
        return FAILED;
    }
    j->order = malloc((size_t)j->train.count * sizeof *j->order);
    j->n = net_create(j->o->device, j->o->threads, BATCH, 1, why, sizeof why);
    if (!j->n || !j->order) {
        fprintf(stderr, "strata-demo: %s\n", j->order ? why : "no memory");
        return FAILED;
    }
    j->batches = j->train.count / BATCH;
    j->tests = j->test.count;
    if (j->o->quick && j->batches > QUICK_BATCHES) j->batches = QUICK_BATCHES;
    if (j->o->quick && j->tests > QUICK_TESTS) j->tests = QUICK_TESTS;
    code = train(j);
    if (code) return code;
    double images = (double)j->batches * BATCH * j->o->epochs;
    const char *device = strata_handle_device(net_handle(j->n));
    if (!strcmp(device, "cpu"))
        printf("Trained in %.1f s on %d threads: %.0f images/s\n", j->training,
               strata_get_threads(net_handle(j->n)), images / j->training);
    else
        printf("Trained in %.1f s on %s: %.0f images/s\n", j->training, device, images / j->training);
    code = save_and_reload(j, &right);
    if (!code) code = show_ten(j);
    if (!code) code = show_path(j);
    if (!code && !j->o->quick && 100.0 * right < promised * j->tests) {
        fprintf(stderr, "strata-demo: %.2f %% is less than the %.0f %% that is promised\n",
                100.0 * right / j->tests, promised);
        code = NOT_LEARNT;
    }
    return code;
}

int main(int argc, char **argv)
{
    static job j;
    setlocale(LC_CTYPE, "");
    options o = read_options(argc, argv);
    j.o = &o;
    int code = show_machine();
    if (!code) code = run(&j);
    net_destroy(j.n);
    idx_free(&j.train);
    idx_free(&j.test);
    free(j.order);
    return code;
}
