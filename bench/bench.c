/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - `strata bench`: the command line, the peers, then the cases. */
#include "bench.h"
#include "cuda.h"
#include <stdlib.h>
#include <string.h>

typedef struct words {
    const char *device, *regime, *sizes, *type, *trans, *threads, *seconds, *plan, *tsv, *json, *html, *peers,
        *pass, *layout, *batch, *filters, *level, *epilogue, *candidates;
    const char *given[BENCH_PEERS];
    int given_count;
} words;

static const struct {
    const char *name;
    int (*run)(bench *b, const char **words, int n);
    int (*cuda)(bench *b, const char **words, int n);
} kinds[] = {{"gemm", bench_gemm, cuda_bench_gemm},
             {"conv", bench_conv, NULL},
             {"pointwise", bench_pointwise, cuda_bench_pointwise},
             {"blas", bench_blas, cuda_bench_blas}};
enum { KIND_GEMM, KIND_CONV, KIND_POINTWISE, KIND_BLAS };

static int understand(const words *w, bench_options *o)
{
    int64_t v;
    o->seconds = 1.5;
    if (w->seconds && !cli_number(w->seconds, 0.01, 3600, &o->seconds))
        return cli_bad("bench", "--seconds takes 0.01 to 3600, not '%.40s'", w->seconds);
    if (w->threads) {
        if (!cli_integer(w->threads, 1, 256, &v))
            return cli_bad("bench", "--threads takes 1 to 256, not '%.40s'", w->threads);
        o->threads = (int)v;
    }
    o->level = 2;
    if (w->level) {
        if (!cli_integer(w->level, 1, 3, &v))
            return cli_bad("bench", "--level is 1, 2 or 3, not '%.40s'", w->level);
        o->level = (int)v;
    }
    o->device = w->device ? w->device : "cpu";
    o->epilogue = w->epilogue;
    if (w->candidates) {
        if (!cli_integer(w->candidates, 1, 12, &v))
            return cli_bad("bench", "--candidates takes 1 to 12, not '%.40s'", w->candidates);
        o->candidates = (int)v;
    }
    o->type = w->type;
    o->no_peers = w->peers && strcmp(w->peers, "none") == 0;
    o->sustained = w->regime && strcmp(w->regime, "sustained") == 0;
    if (w->regime && !o->sustained && strcmp(w->regime, "burst") != 0)
        return cli_bad("bench", "--regime is burst or sustained, not '%.40s'", w->regime);
    if (strncmp(o->device, "cuda", 4) != 0 && w->type && strcmp(w->type, "f32") != 0 &&
        strcmp(w->type, "f64") != 0 &&
        (strcmp(o->what, "blas") != 0 || (strcmp(w->type, "c64") != 0 && strcmp(w->type, "c128") != 0)) &&
        (strcmp(o->what, "gemm") != 0 || w->epilogue || !bench_gemm_type(w->type)))
        return cli_bad("bench",
                       "--type is f32 or f64 (blas: also c64, c128; gemm without an epilogue: also f16 bf16 "
                       "f8 f8e5m2 i8 c64 "
                       "c128), not '%.40s'",
                       w->type);
    o->f64 = w->type && strcmp(w->type, "f64") == 0;
    if (w->trans) {
        if (strlen(w->trans) != 2 || strspn(w->trans, "NT") != 2)
            return cli_bad("bench", "--trans is NN, NT, TN or TT, not '%.40s'", w->trans);
        o->ta = w->trans[0] == 'T';
        o->tb = w->trans[1] == 'T';
    }
    if (w->pass) {
        static const char *const passes[] = {"forward", "data", "weights"};
        o->pass = -1;
        for (int i = 0; i < 3; i++)
            if (strcmp(w->pass, passes[i]) == 0) o->pass = i;
        if (o->pass < 0) return cli_bad("bench", "--pass is forward, data or weights, not '%.40s'", w->pass);
    }
    if (w->layout && strcmp(w->layout, "nhwc") != 0 && strcmp(w->layout, "nchw") != 0)
        return cli_bad("bench", "--layout is nhwc or nchw, not '%.40s'", w->layout);
    o->nchw = w->layout && strcmp(w->layout, "nchw") == 0;
    if (w->filters && strcmp(w->filters, "oihw") != 0 && strcmp(w->filters, "ohwi") != 0 &&
        strcmp(w->filters, "hwio") != 0)
        return cli_bad("bench", "--filters is oihw, ohwi or hwio, not '%.40s'", w->filters);
    o->filters = w->filters ? w->filters : o->nchw ? "oihw" : "ohwi";
    o->batch = 0;
    if (w->batch && !cli_integer(w->batch, 1, 1 << 20, &o->batch))
        return cli_bad("bench", "--batch takes 1 to 1048576, not '%.40s'", w->batch);
    o->plan = w->plan != NULL;
    o->tsv = w->tsv != NULL;
    o->json = w->json != NULL;
    o->html = w->html;
    if (o->tsv && o->json) return cli_bad("bench", "--tsv and --json exclude each other");
    return CLI_OK;
}

/* bandwidth of memory for the roofline: a copy much larger than the caches */
static double copy_bandwidth(const bench *b)
{
    size_t bytes = (size_t)256 << 20;
    if ((double)bytes * 8 > (double)b->device.memory) bytes = (size_t)64 << 20;
    void *p = bench_alloc(bytes), *q = bench_alloc(bytes);
    double r = p && q ? bench_probe_copy(p, q, bytes, 0.15) : 0;
    bench_free(p, bytes);
    bench_free(q, bytes);
    return r;
}

static int run_cuda(bench *b, int kind, const char **shapes, int n)
{
    if (!kinds[kind].cuda)
        return cli_bad("bench", "%s is not benched on a GPU; gemm, pointwise, blas and conv are",
                       kinds[kind].name);
    if (strata_create(&b->h, b->o.device) || strata_create(&b->cpu, "cpu") ||
        strata_get_device_info(b->o.device, &b->device))
        return cli_failed("bench", NULL);
    /* a stream of the handle's own, so that peers that are given it are captured into graphs like ourselves */
    strata_stream *own;
    if (strata_stream_create(b->h, &own) || strata_set_stream(b->h, own)) return cli_failed("bench", b->h);
    b->o.threads = 1;
    /* multiply-adds of f32: 128 an SM and clock */
    b->peak = b->device.multiprocessors * b->device.clock_mhz * 128 * 2 * 1e-3;
    b->copy_gbs = b->device.memory_gbs;
    int code = kinds[kind].cuda(b, shapes, n);
    cli_progress_end(&b->progress);
    if (code != CLI_USAGE) report_end(b);
    if (b->o.html && b->count && !report_html(b, b->o.html)) {
        cli_bad("bench", "%s cannot be written", b->o.html);
        code = CLI_FAILED;
    }
    strata_destroy(b->cpu);
    strata_set_stream(b->h, NULL);
    strata_stream_destroy(own);
    return code;
}

static int run(bench *b, const words *w, int kind, const char **shapes, int n)
{
    if (strncmp(b->o.device, "cuda", 4) == 0) return run_cuda(b, kind, shapes, n);
    if (strcmp(b->o.device, "cpu") != 0)
        return cli_bad("bench", "--device is cpu or cuda:N, not '%.40s'", b->o.device);
    if (strata_create(&b->h, "cpu") || strata_get_device_info("cpu", &b->device))
        return cli_failed("bench", NULL);
    if (b->o.threads == 0) b->o.threads = b->device.threads;
    if (strata_set_threads(b->h, b->o.threads)) return cli_failed("bench", b->h);
    if (strata_create(&b->cpu, "cpu") || strata_set_threads(b->cpu, 1)) return cli_failed("bench", b->cpu);
    /* only oneDNN has the other operators; a library given under a name of one's own is opened in any case */
    const char *only = w->peers            ? w->peers
                       : kind == KIND_GEMM ? NULL
                       : kind == KIND_BLAS ? "openblas,blis,aocl,mkl"
                                           : "onednn";
    if (!peers_open(&b->peers, w->given, w->given_count, only)) return CLI_USAGE;
    peers_threads(&b->peers, b->o.threads);
    if (getenv("STRATA_ISA"))
        peers_note(&b->peers, "STRATA_ISA=%.20s limits Strata's kernels; the peak is the machine's",
                   getenv("STRATA_ISA"));
    if (getenv("STRATA_TRACE"))
        peers_note(&b->peers, "STRATA_TRACE is set: Strata's times include its trace");
    if (b->o.threads > b->device.processors) peers_note(&b->peers, "more threads than processors");
    if (!bench_probe_begin(b->o.threads))
        return cli_bad("bench", "the threads of the probe could not be started"), CLI_FAILED;
    if (b->o.html || kind == KIND_POINTWISE) b->copy_gbs = copy_bandwidth(b);
    int code = kinds[kind].run(b, shapes, n);
    cli_progress_end(&b->progress);
    if (code != CLI_USAGE) report_end(b);
    if (b->o.html && b->count && !report_html(b, b->o.html)) {
        cli_bad("bench", "%s cannot be written", b->o.html);
        code = CLI_FAILED;
    }
    bench_probe_end();
    strata_destroy(b->cpu);
    return code;
}

int verb_bench(int argc, char **argv)
{
    words w = {0};
    const cli_option options[] = {
        {"--sizes", "LIST", "the same as the words after the operator: 512,MxNxK,square", &w.sizes, NULL, 0},
        {"--device", "DEVICE", "cpu (default) or cuda:N", &w.device, NULL, 0},
        {"--regime", "burst|sustained",
         "cuda: short samples in turn (default), or blocks of 0.3 s, as a card limited by its power runs "
         "them",
         &w.regime, NULL, 0},
        {"--type", "TYPE",
         "gemm: f32 (default) f64 f16 bf16 f8 f8e5m2 i8 c64 c128; cuda: bf16 (default) f32 f64 tf32 bf16x6 "
         "f16 f8 f8-exact i8",
         &w.type, NULL, 0},
        {"--level", "1|2|3", "blas: which level (default 2)", &w.level, NULL, 0},
        {"--trans", "NN|NT|TN|TT", "gemm: which operands are stored transposed (default NN)", &w.trans, NULL,
         0},
        {"--epilogue", "NAME",
         "gemm: with bias, bias_gelu, bias_relu, quantise (cuda), eight, gate, softmax, layer_norm, int4 "
         "(cpu)",
         &w.epilogue, NULL, 0},
        {"--candidates", "N", "cuda gemm: also the N kernels of least predicted time, each forced",
         &w.candidates, NULL, 0},
        {"--plan", NULL, "gemm, conv: also through a plan made before (column strata-plan)", &w.plan, NULL,
         0},
        {"--layout", "nhwc|nchw", "conv: layout of the images (default nhwc)", &w.layout, NULL, 0},
        {"--filters", "LAYOUT", "conv: oihw, ohwi or hwio (default as the images: ohwi for nhwc)", &w.filters,
         NULL, 0},
        {"--pass", "PASS", "conv: forward (default), data or weights", &w.pass, NULL, 0},
        {"--batch", "N",
         "conv: images (default: as the set says); cuda blas: so many small matrices in one call", &w.batch,
         NULL, 0},
        {"--threads", "N", "threads of every contender (default: all)", &w.threads, NULL, 0},
        {"--seconds", "S", "time for one case, all contenders together (default 1.5)", &w.seconds, NULL, 0},
        {"--peer", "NAME=PATH", "open this library as a peer, or NAME=off; may be repeated", w.given,
         &w.given_count, BENCH_PEERS},
        {"--peers", "LIST", "only these peers: openblas,blis,aocl,mkl,libxsmm,onednn or none", &w.peers, NULL,
         0},
        {"--tsv", NULL, "tab-separated rows instead of the table", &w.tsv, NULL, 0},
        {"--json", NULL, "JSON instead of the table", &w.json, NULL, 0},
        {"--html", "FILE", "also a page with plots that opens without network", &w.html, NULL, 0},
    };
    const cli_usage usage = {
        "strata bench gemm|conv|pointwise|blas [SHAPES] [options]",
        "Times Strata and the libraries it finds (or is given by --peer or STRATA_PEER_<NAME>=PATH) on the "
        "same work in one run:\n"
        "interleaved, warm, random data, every result checked against a slow reference first. A ratio above "
        "1 means that Strata is\n"
        "faster. Percentages are of the machine's FMA peak (gemm, conv) or of a copy (pointwise), measured "
        "beside each batch.\n\n"
        "shapes  gemm: N, MxNxK or a set (square small skinny resnet50 llm odd)\n"
        "        conv: NxCxHxW:OxRxS[:sSTRIDE][:pPAD][:gGROUPS] or a set (resnet50 mobile)\n"
        "        pointwise: names (exp tanh gelu relu bias_relu softmax layer_norm batch_norm), all by "
        "default\n"
        "        first-use: what the first call of a new problem costs (see: strata bench first-use --help)\n"
        "        blas: names of the level, sizes, incN for strides (axpy dot ..., gemv symv ger trsv ...)",
        options, (int)(sizeof options / sizeof *options)};
    const char *shapes[CLI_MAX_WORDS];
    int code, n;
    if (argc > 1 && strcmp(argv[1], "first-use") == 0) return bench_first_use(argc - 1, argv + 1);
    argv[0] = "bench";
    static bench b;
    memset(&b, 0, sizeof b);
    snprintf(b.command, sizeof b.command, "strata");
    for (int i = 0; i < argc; i++) {
        size_t used = strlen(b.command);
        snprintf(b.command + used, sizeof b.command - used, " %s", argv[i]);
    }
    if ((n = cli_parse(&usage, argc, argv, shapes, CLI_MAX_WORDS - 1, &code)) < 0) return code;
    int kind = -1, count = (int)(sizeof kinds / sizeof *kinds);
    for (int i = 0; n && i < count; i++)
        if (strcmp(shapes[0], kinds[i].name) == 0) kind = i;
    if (kind < 0) {
        const char *near = n ? cli_nearest(shapes[0], &kinds[0].name, count, sizeof *kinds) : NULL;
        if (!n)
            return cli_bad("bench",
                           "bench what? known: gemm conv pointwise blas first-use (see: strata help bench)");
        return cli_bad("bench", "unknown operator '%.40s'%s%s%s; known: gemm conv pointwise blas first-use",
                       shapes[0], near ? "; did you mean '" : "", near ? near : "", near ? "'" : "");
    }
    b.o.what = kinds[kind].name;
    if ((code = understand(&w, &b.o)) != CLI_OK) return code;
    if (w.sizes) shapes[n++] = w.sizes;
    code = run(&b, &w, kind, shapes + 1, n - 1);
    strata_destroy(b.h);
    free(b.rows);
    return code;
}
