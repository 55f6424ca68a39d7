/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - `strata info`: the map of what Strata found on this machine and what it would use. */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

/* What a user may have set, and what it does. */
static const struct {
    const char *name, *what;
} variables[] = {
    {"STRATA_ISA", "limits the instruction sets that kernels may use"},
    {"STRATA_TRACE", "prints or writes one event per call per layer"},
    {"STRATA_THREADS", "limits the threads"},
    {"STRATA_DEVICE", "what \"auto\" means"},
    {"STRATA_CUDA_LIB", "the driver's library"},
    {"STRATA_NVRTC_LIB", "the compiler of GPU kernels, whose code alone is then used"},
    {"STRATA_NVML_LIB", "the library of NVML"},
    {"STRATA_PACK_FILE", "the kernel pack, or off"},
    {"STRATA_CACHE", "off: compiled GPU kernels are kept in memory only"},
    {"STRATA_SYNC", "waits for the GPU after each launch"},
};

typedef struct found {
    strata_kernel_info info;
    int usable, rows;
} found;

static bool for_gpu(const strata_kernel_info *k) { return strncmp(k->isa, "sm", 2) == 0; }

/* The first usable row of each family and types (of processor and GPU apart); the rows of its instruction set are what ordinary calls choose among. */
static int first_kernels(found *out, int max, int *rows, int *usable)
{
    int n = 0;
    strata_kernel_info k;
    *rows = *usable = 0;
    for (int i = 0; strata_kernels(i, &k); i++) {
        int at = 0;
        ++*rows;
        *usable += k.usable;
        while (at < n && !(strcmp(out[at].info.family, k.family) == 0 &&
                           strcmp(out[at].info.types, k.types) == 0 && for_gpu(&out[at].info) == for_gpu(&k)))
            at++;
        if (at == max) continue;
        if (at == n) {
            out[n].info = k;
            out[n].usable = out[n].rows = 0;
            n++;
        } else if (!out[at].usable && k.usable) {
            out[at].info = k;
        }
        out[at].rows++;
        out[at].usable += k.usable;
    }
    return n;
}

/* "small skinny 6x64" of gemm_f32f32f32_small_avx512 and so on: what the ids of a family's kernels say beyond family and types, in the order of preference */
static void print_kernels(const strata_kernel_info *first)
{
    strata_kernel_info k;
    const char *shown[64];
    int n = 0, at = 0;
    for (int i = 0; strata_kernels(i, &k); i++) {
        if (!k.usable || strcmp(k.family, first->family) != 0 || strcmp(k.types, first->types) != 0 ||
            strcmp(k.isa, first->isa) != 0)
            continue;
        if (n < 64) shown[n++] = k.id;
    }
    for (int i = 0; i < n; i++) {
        const char *word = shown[i];
        size_t len = strlen(word);
        const char *common[] = {first->family, first->types};
        for (int c = 0; c < 2; c++) {
            size_t l = strlen(common[c]);
            if (len > l + 1 && strncmp(word, common[c], l) == 0 && word[l] == '_')
                word += l + 1, len -= l + 1;
        }
        const char *end[] = {first->isa, first->types};
        for (int c = 0; c < 2; c++) {
            size_t l = strlen(end[c]);
            if (len > l + 1 && strncmp(word + len - l, end[c], l) == 0 && word[len - l - 1] == '_')
                len -= l + 1;
        }
        if (at > 60) at = printf("\n%28s", "") - 1;
        at += printf(" %.*s", (int)len, word);
    }
    putchar('\n');
}

static const char *cache_words(const strata_device_info *d, char *buf, size_t n)
{
    char l1[32], l2[32], l3[32];
    snprintf(buf, n, "L1d %s, L2 %s, L3 %s a core (%s)",
             d->l1d ? cli_bytes((double)d->l1d, l1, sizeof l1) : "unknown",
             d->l2 ? cli_bytes((double)d->l2, l2, sizeof l2) : "unknown",
             d->l3 ? cli_bytes((double)d->l3, l3, sizeof l3) : "unknown",
             d->cache_source[0] ? d->cache_source : "source unknown");
    return buf;
}

static void print_gpu(const strata_device_info *d)
{
    char buf[64];
    printf("  architecture  %s, %d multiprocessors", d->isa, d->multiprocessors);
    if (d->clock_mhz > 0) printf(", up to %.0f MHz", d->clock_mhz);
    printf("\n  caches        L2 %s\n", d->l2 ? cli_bytes((double)d->l2, buf, sizeof buf) : "unknown");
    printf("  memory        %s", d->memory ? cli_bytes((double)d->memory, buf, sizeof buf) : "unknown");
    if (d->memory_gbs > 0) printf(", %.0f GB/s by its bus and clock", d->memory_gbs);
    putchar('\n');
}

/* Driver, compiler, pack and cache: where the kernels of GPUs come from. */
static void print_gpu_support(void)
{
    strata_gpu_info g;
    char buf[64];
    if (strata_get_gpu_info(&g)) return;
    printf("\nGPU support\n");
    if (g.driver_version)
        printf("  driver        CUDA %d.%d, %s\n", g.driver_version / 1000, g.driver_version % 1000 / 10,
               g.driver);
    else
        printf("  driver        none: %s\n", g.driver);
    if (g.nvrtc_version)
        printf("  compiler      NVRTC %d.%d, %s\n", g.nvrtc_version / 1000, g.nvrtc_version % 1000 / 10,
               g.nvrtc);
    else
        printf("  compiler      none: %s\n", g.nvrtc);
    if (g.pack_kernels >= 0)
        printf("  kernel pack   %d kernels, %s%s%s%s, %s\n", g.pack_kernels,
               cli_bytes((double)g.pack_bytes, buf, sizeof buf), g.pack_archs[0] ? " (" : "", g.pack_archs,
               g.pack_archs[0] ? ")" : "", g.pack);
    else
        printf("  kernel pack   none: %s\n", g.pack);
    if (g.cache_kernels >= 0)
        printf("  cache         %d kernels, %s, %s\n", g.cache_kernels,
               cli_bytes((double)g.cache_bytes, buf, sizeof buf), g.cache);
    else
        printf("  cache         not used: %s\n", g.cache);
}

static void print_text(const strata_device_info *devices, int count)
{
    char buf[256];
    printf("Strata %s\n", strata_version());
    for (int i = 0; i < count; i++) {
        const strata_device_info *d = &devices[i];
        printf("\n%s\n", d->device);
        printf("  name          %s\n", d->name);
        if (d->compute_capability) {
            print_gpu(d);
            continue;
        }
        printf("  instructions  %s\n", d->isa[0] ? d->isa : "portable");
        printf("  threads       %d of %d processor%s\n", d->threads, d->processors,
               d->processors == 1 ? "" : "s");
        printf("  caches        %s\n", cache_words(d, buf, sizeof buf));
        printf("  memory        %s\n", d->memory ? cli_bytes((double)d->memory, buf, sizeof buf) : "unknown");
    }
    print_gpu_support();
    enum { MAX = 64 };
    found k[MAX];
    int rows, usable, n = first_kernels(k, MAX, &rows, &usable);
    printf("\nkernels (%d, %d usable here; `strata kernels` lists them), by family, in the order of "
           "preference\n",
           rows, usable);
    int elsewhere = 0;
    for (int i = 0; i < n; i++) {
        snprintf(buf, sizeof buf, "%s %s", k[i].info.family, k[i].info.types);
        if (!k[i].usable && for_gpu(&k[i].info)) {
            elsewhere += k[i].rows;
            continue;
        }
        if (k[i].usable) {
            printf("  %-24s %s:", buf, k[i].info.isa);
            print_kernels(&k[i].info);
        } else
            printf("  %-24s none: %s\n", buf, k[i].info.why_not ? k[i].info.why_not : "not usable here");
    }
    if (elsewhere) printf("  and %d for GPUs that are not here\n", elsewhere);
    bool any = false;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *v = getenv(variables[i].name);
        if (!v) continue;
        if (!any) printf("\nenvironment\n");
        any = true;
        printf("  %s=%s  (%s)\n", variables[i].name, v, variables[i].what);
    }
}

static void json_gpu_support(cli_json *j)
{
    strata_gpu_info g;
    if (strata_get_gpu_info(&g)) return;
    cli_json_open(j, "gpu_support", '{');
    cli_json_integer(j, "driver_version", g.driver_version);
    cli_json_string(j, "driver", g.driver);
    cli_json_integer(j, "nvrtc_version", g.nvrtc_version);
    cli_json_string(j, "nvrtc", g.nvrtc);
    cli_json_integer(j, "pack_kernels", g.pack_kernels);
    cli_json_integer(j, "pack_bytes", g.pack_bytes);
    cli_json_string(j, "pack", g.pack);
    cli_json_string(j, "pack_archs", g.pack_archs);
    cli_json_integer(j, "cache_kernels", g.cache_kernels);
    cli_json_integer(j, "cache_bytes", g.cache_bytes);
    cli_json_string(j, "cache", g.cache);
    cli_json_close(j, '}');
}

static void print_json(const strata_device_info *devices, int count)
{
    enum { MAX = 64 };
    found k[MAX];
    int rows, usable, n = first_kernels(k, MAX, &rows, &usable);
    cli_json j = {.f = stdout};
    cli_json_open(&j, NULL, '{');
    cli_json_string(&j, "version", strata_version());
    cli_json_open(&j, "devices", '[');
    for (int i = 0; i < count; i++) {
        const strata_device_info *d = &devices[i];
        cli_json_open(&j, NULL, '{');
        cli_json_string(&j, "device", d->device);
        cli_json_string(&j, "name", d->name);
        cli_json_string(&j, "isa", d->isa);
        cli_json_integer(&j, "threads", d->threads);
        cli_json_integer(&j, "processors", d->processors);
        cli_json_integer(&j, "l1d", d->l1d);
        cli_json_integer(&j, "l2", d->l2);
        cli_json_integer(&j, "l3", d->l3);
        cli_json_string(&j, "cache_source", d->cache_source);
        cli_json_integer(&j, "memory", d->memory);
        cli_json_integer(&j, "compute_capability", d->compute_capability);
        cli_json_integer(&j, "multiprocessors", d->multiprocessors);
        cli_json_integer(&j, "clock_mhz", (int64_t)d->clock_mhz);
        cli_json_integer(&j, "memory_gbs", (int64_t)d->memory_gbs);
        cli_json_close(&j, '}');
    }
    cli_json_close(&j, ']');
    json_gpu_support(&j);
    cli_json_integer(&j, "kernel_rows", rows);
    cli_json_integer(&j, "kernel_rows_usable", usable);
    cli_json_open(&j, "kernels", '[');
    for (int i = 0; i < n; i++) {
        cli_json_open(&j, NULL, '{');
        cli_json_string(&j, "family", k[i].info.family);
        cli_json_string(&j, "types", k[i].info.types);
        cli_json_string(&j, "first", k[i].usable ? k[i].info.id : NULL);
        cli_json_close(&j, '}');
    }
    cli_json_close(&j, ']');
    cli_json_open(&j, "environment", '{');
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i].name)) cli_json_string(&j, variables[i].name, getenv(variables[i].name));
    cli_json_close(&j, '}');
    cli_json_close(&j, '}');
}

int verb_info(int argc, char **argv)
{
    const char *json = NULL;
    const cli_option options[] = {{"--json", NULL, "machine-readable", &json, NULL, 0}};
    const cli_usage usage = {
        "strata info [--json]",
        "Prints what Strata found: devices, instruction sets, threads, caches and where their sizes come "
        "from,\n"
        "memory, and for each kernel family the kernel that an ordinary call would take first.",
        options, 1};
    int code;
    argv[0] = "info";
    if (cli_parse(&usage, argc, argv, NULL, 0, &code) < 0) return code;
    enum { MAX = 17 };
    strata_device_info devices[MAX];
    int count = strata_device_count();
    if (count > MAX) count = MAX;
    for (int i = 0; i < count; i++)
        if (strata_get_device_info(strata_device_name(i), &devices[i])) return cli_failed("info", NULL);
    /* A handle, so that every engine has registered its kernels. */
    strata_handle *h;
    if (strata_create(&h, "cpu")) return cli_failed("info", NULL);
    if (json)
        print_json(devices, count);
    else
        print_text(devices, count);
    strata_destroy(h);
    /* a wish for "auto" that cannot be met shows nowhere else, as long as no program asks for "auto" */
    if (getenv("STRATA_DEVICE") && strata_get_device_info("auto", &devices[0]))
        return cli_failed("info", NULL);
    return CLI_OK;
}
