/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - strata-pack: the kernel pack, and the check that every registered kernel compiles well. No GPU is needed, only NVRTC.
 *
 *     strata-pack build OUT [--from OLD]   compiles and writes OUT; code whose key is in OLD is taken from there
 *     strata-pack check                    compiles and judges: errors, warnings, spills, slow arrivals; exit status 1 for a fault, 77 without NVRTC
 *     strata-pack list [FILE]              what is registered, or what is in a pack
 *
 * Options: --arch sm_90a, --only PART-OF-ID, --sample N (spread over all lists and architectures), --jobs N, --verbose; --limit N and --seconds N
 * compile only the first N of a list and architecture, and nothing after N seconds (what OLD has is taken all the same); --optional: nothing is
 * done, and well, without NVRTC.
 *
 * Kernels are ordered by their index in their list, so that of a pack that time, count or size cuts short the least wanted are missing. */
#include "pack.h"
#include "driver/driver.h"
#include "tile/tile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const int pack_cc[PACK_ARCHS] = {80, 86, 89, 90, 100, 120};
enum { MAX_LISTS = 32 };

/* ---- what is registered ----------------------------------------------------------------------------------------------- */

static int lists(st_gpu_pack_fn *f)
{
    st_tile_init(); /* other engines register when they are loaded */
    return st_gpu_pack_lists(f, MAX_LISTS);
}

bool pack_spec(const pack_job *j, st_gpu_spec *s)
{
    st_gpu_pack_fn f[MAX_LISTS];
    *s = (st_gpu_spec){0};
    return j->list < lists(f) && f[j->list](j->arch, j->index, s);
}

static int by_index(const void *a, const void *b)
{
    const pack_job *x = a, *y = b;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    if (x->list != y->list) return x->list < y->list ? -1 : 1;
    return x->arch < y->arch ? -1 : x->arch > y->arch;
}

static int by_key(const void *a, const void *b)
{
    const pack_job *x = a, *y = b;
    for (int i = 0; i < 2; i++)
        if (x->key.word[i] != y->key.word[i]) return x->key.word[i] < y->key.word[i] ? -1 : 1;
    return by_index(a, b);
}

/* Takes out what is listed twice, what is beyond PACK_PER_ARCH, and all but `sample` evenly spread jobs. */
static int reduce(pack_job *job, int n, const pack_options *o)
{
    int kept = 0, of_arch[1000] = {0};
    qsort(job, (size_t)n, sizeof *job, by_key);
    for (int i = 0; i < n; i++)
        if (!i || job[i].key.word[0] != job[i - 1].key.word[0] ||
            job[i].key.word[1] != job[i - 1].key.word[1])
            job[kept++] = job[i];
    n = kept;
    qsort(job, (size_t)n, sizeof *job, by_index);
    for (int i = kept = 0; i < n; i++)
        if (of_arch[job[i].arch % 1000]++ < PACK_PER_ARCH) job[kept++] = job[i];
    if (o->sample && kept > o->sample) {
        for (int i = 0; i < o->sample; i++) job[i] = job[(int)((int64_t)i * kept / o->sample)];
        kept = o->sample;
    }
    return kept;
}

pack_job *pack_list(const pack_options *o, int *count)
{
    st_gpu_pack_fn f[MAX_LISTS];
    int nf = lists(f), n = 0, room = 0;
    pack_job *job = NULL;
    for (int l = 0; l < nf; l++)
        for (int a = 0; a < PACK_ARCHS; a++) {
            st_gpu_spec s = {0};
            if (o->arch && o->arch != pack_cc[a]) continue;
            for (int i = 0; f[l](pack_cc[a], i, &s); i++, s = (st_gpu_spec){0}) {
                st_err e = {0};
                if (o->only && !strstr(s.id, o->only)) continue;
                if (n == room) {
                    room = room ? room * 2 : 512;
                    pack_job *more = realloc(job, sizeof *job * (size_t)room);
                    if (!more) return perror("strata-pack"), free(job), NULL;
                    job = more;
                }
                pack_job *j = &job[n];
                *j = (pack_job){.list = l, .index = i, .arch = pack_cc[a]};
                snprintf(j->id, sizeof j->id, "%s", s.id);
                if (!st_image_key_of(&e, &s, st_gpu_arch(j->arch), &j->key))
                    return fprintf(stderr, "strata-pack: %s\n", e.text), free(job), NULL;
                n++;
            }
        }
    *count = job ? reduce(job, n, o) : 0;
    return job ? job : calloc(1, sizeof *job);
}

/* ---- build -------------------------------------------------------------------------------------------------------------- */

typedef struct building {
    const pack_options *o;
    st_image_record *row;
    void **code;
    int count, faults, reused, max_registers;
    uint64_t bytes;
    double ms, slowest;
    char slowest_id[96];
} building;

static void judge(void *user, const pack_job *j, const pack_result *r, const void *code,
                  const char *complaint)
{
    building *b = user;
    const char *arch = st_gpu_arch(j->arch);
    if (*complaint) {
        b->faults++;
        fprintf(stderr, "%s %s: %s\n", arch, j->id, complaint);
    }
    if (b->o->verbose)
        printf("%-7s %-56s %3d registers, %4d+%-4d spilled, stack %d, %6d shared, %6llu bytes, %5.0f ms\n",
               arch, j->id, r->record.registers, r->record.spill_stores, r->record.spill_loads,
               r->record.stack, r->record.smem, (unsigned long long)r->record.size, r->ms);
    if (!r->compiled) return;
    b->ms += r->ms;
    b->reused += r->reused;
    if (r->record.registers > b->max_registers) b->max_registers = r->record.registers;
    if (r->ms > b->slowest) {
        b->slowest = r->ms;
        snprintf(b->slowest_id, sizeof b->slowest_id, "%s", j->id);
    }
    if (!b->row || b->bytes + r->record.stored > (uint64_t)PACK_MEGABYTES << 20) return;
    void *copy = malloc(r->record.stored);
    if (!copy) return;
    memcpy(copy, code, r->record.stored);
    b->row[b->count] = r->record;
    b->row[b->count].offset = (uint64_t)b->count; /* which code, until the places are known */
    b->code[b->count++] = copy;
    b->bytes += r->record.stored;
}

static int write_pack(building *b, const char *path)
{
    char temporary[1024];
    st_pack_head h = {.magic = ST_PACK_MAGIC,
                      .format = ST_PACK_FORMAT,
                      .recipe = ST_IMAGE_RECIPE,
                      .count = (uint32_t)b->count};
    if (snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid()) >= (int)sizeof temporary)
        return fprintf(stderr, "strata-pack: %s is too long\n", path), 1;
    snprintf(h.version, sizeof h.version, "%s", strata_version());
    FILE *f = fopen(temporary, "wb");
    if (!f) return fprintf(stderr, "strata-pack: "), perror(temporary), 1;
    uint64_t at = sizeof h + (uint64_t)b->count * sizeof *b->row;
    int *which = malloc(sizeof *which * (size_t)(b->count + 1));
    bool ok = which != NULL;
    qsort(b->row, (size_t)b->count, sizeof *b->row, st_pack_order);
    for (int i = 0; ok && i < b->count; i++) {
        which[i] = (int)b->row[i].offset;
        b->row[i].offset = at;
        at += b->row[i].stored;
        if (b->row[i].nvrtc > h.nvrtc) h.nvrtc = b->row[i].nvrtc;
    }
    h.bytes = at;
    h.hash = st_pack_hash(&h, b->row);
    ok = ok && fwrite(&h, sizeof h, 1, f) == 1;
    ok = ok && fwrite(b->row, sizeof *b->row, (size_t)b->count, f) == (size_t)b->count;
    for (int i = 0; ok && i < b->count; i++) ok = fwrite(b->code[which[i]], b->row[i].stored, 1, f) == 1;
    free(which);
    ok = fflush(f) == 0 && fsync(fileno(f)) == 0 && ok;
    ok = fclose(f) == 0 && ok && rename(temporary, path) == 0;
    if (!ok) perror("strata-pack"), unlink(temporary);
    return ok ? 0 : 1;
}

static int compile_all(const pack_options *o)
{
    st_pack old = {.fd = -1};
    int count, done;
    uint64_t begun = st_now_ns();
    pack_job *jobs = pack_list(o, &count);
    if (!jobs) return 1;
    building b = {.o = o};
    if (!o->check) {
        b.row = calloc((size_t)count + 1, sizeof *b.row);
        b.code = calloc((size_t)count + 1, sizeof *b.code);
        if (!b.row || !b.code) return perror("strata-pack"), 1;
        if (o->from) st_pack_open(&old, o->from); /* none, or an unreadable one: everything is compiled */
    }
    bool ok = pack_run(o, jobs, count, &old, judge, &b, &done);
    st_pack_close(&old);
    double seconds = (double)(st_now_ns() - begun) / 1e9;
    printf("strata-pack: %d of %d kernels (%d taken from the pack before) in %.0f s, %.0f ms of compiling "
           "each; at most %d registers; slowest %s, %.0f ms; "
           "%d at fault\n",
           done, count, b.reused, seconds, done > b.reused ? b.ms / (done - b.reused) : 0, b.max_registers,
           b.slowest_id, b.slowest, b.faults);
    if (!ok) fprintf(stderr, "strata-pack: a worker failed\n");
    if (!o->check) {
        if (write_pack(&b, o->out)) return 1;
        printf("strata-pack: %s: %d kernels, %.1f MB\n", o->out, b.count, (double)b.bytes / 1e6);
        for (int i = 0; i < b.count; i++) free(b.code[i]);
    }
    free(b.row);
    free(b.code);
    free(jobs);
    return !ok || (o->check && b.faults) ? 1 : 0;
}

/* ---- list ------------------------------------------------------------------------------------------------------------------ */

static int list(const pack_options *o, const char *file)
{
    if (file) {
        st_pack p;
        if (!st_pack_open(&p, file)) return fprintf(stderr, "strata-pack: %s\n", p.why), 1;
        for (uint32_t i = 0; i < p.head.count; i++)
            printf("%016llx%016llx %-10s NVRTC %u.%u %3d registers %7llu bytes (%llu kept)  %s\n",
                   (unsigned long long)p.row[i].key[0], (unsigned long long)p.row[i].key[1], p.row[i].arch,
                   p.row[i].nvrtc / 1000, p.row[i].nvrtc % 1000 / 10, p.row[i].registers,
                   (unsigned long long)p.row[i].size, (unsigned long long)p.row[i].stored, p.row[i].entry);
        st_pack_close(&p);
        return 0;
    }
    int count;
    pack_job *jobs = pack_list(o, &count);
    if (!jobs) return 1;
    for (int i = 0; i < count; i++) printf("%-7s %s\n", st_gpu_arch(jobs[i].arch), jobs[i].id);
    fprintf(stderr, "%d kernels\n", count);
    free(jobs);
    return 0;
}

/* Looked for in a child, since workers are forked before NVRTC is open. Its absence is told, and is no fault. */
static bool have_nvrtc(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        st_err e = {0};
        bool found = st_libnvrtc_open(&e, 0) != NULL;
        if (!found) printf("skipped: no kernels are compiled: %s\n", e.text);
        fflush(NULL);
        _exit(found ? 0 : 77);
    }
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: strata-pack build OUT [--from OLD] | check | list [FILE]\n"
                    "       [--arch sm_90a] [--only PART-OF-ID] [--sample N] [--limit N] [--seconds N] "
                    "[--jobs N] [--verbose] [--optional]\n");
    return 2;
}

int main(int argc, char **argv)
{
    pack_options o = {.jobs = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    const char *word[2] = {NULL, NULL};
    int words = 0;
    bool optional = false;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--verbose") == 0)
            o.verbose = true;
        else if (strcmp(a, "--optional") == 0)
            optional = true;
        else if (a[0] != '-' && words < 2)
            word[words++] = a;
        else if (!v)
            return usage();
        else if (i++, strcmp(a, "--from") == 0)
            o.from = v;
        else if (strcmp(a, "--only") == 0)
            o.only = v;
        else if (strcmp(a, "--arch") == 0)
            o.arch = st_image_arch_cc(v);
        else if (strcmp(a, "--sample") == 0)
            o.sample = atoi(v);
        else if (strcmp(a, "--limit") == 0)
            o.limit = atoi(v);
        else if (strcmp(a, "--jobs") == 0)
            o.jobs = atoi(v);
        else if (strcmp(a, "--seconds") == 0)
            o.seconds = atof(v);
        else
            return usage();
    }
    if (!words) return usage();
    if (strcmp(word[0], "list") == 0) return list(&o, word[1]);
    o.check = strcmp(word[0], "check") == 0;
    o.out = word[1];
    if (!o.check && (strcmp(word[0], "build") != 0 || !o.out)) return usage();
    if (!have_nvrtc()) return optional ? 0 : 77;
    return compile_all(&o);
}
