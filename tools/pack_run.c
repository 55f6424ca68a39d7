/* SPDX-License-Identifier: Apache-2.0 */
/* pack_run.c - compiles a list of kernels in several processes (NVRTC's threads gain nothing in one) with a bar of progress.
 *
 * The parent forks before NVRTC is opened. Workers draw jobs from a counter in shared memory, in the order of the list, and write results to
 * unlinked files, which the parent reads when all have ended. */
#include "driver/driver.h"
#include "pack.h"
#include "pack_sass.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

enum { MAX_JOBS = 64, LEVEL = 19 };

typedef struct shared {
    atomic_int next, done;
} shared;

static bool write_result(FILE *f, const pack_result *r, const void *code, const char *complaint)
{
    return fwrite(r, sizeof *r, 1, f) == 1 &&
           (!r->record.stored || fwrite(code, r->record.stored, 1, f) == 1) &&
           (!r->complaint || fwrite(complaint, r->complaint, 1, f) == 1);
}

/* An error as one text: the sentence and its frames. */
static void error_text(const st_err *e, char *text, size_t n)
{
    int at = snprintf(text, n, "%s", e->text);
    for (int i = 0; i < e->frames && at < (int)n; i++)
        at += snprintf(text + at, n - (size_t)at, "\n    %s: %s", e->frame[i].layer, e->frame[i].text);
}

static bool compile(const pack_options *o, const pack_job *j, int number, FILE *f)
{
    pack_result r = {.job = number};
    char complaint[2048] = "";
    void *kept = NULL;
    st_err e = {0};
    st_gpu_spec s;
    st_gpu_image im = {0};
    const char *arch = st_gpu_arch(j->arch);
    const st_libnvrtc *nv = st_libnvrtc_open(&e, j->arch);
    if (!pack_spec(j, &s))
        snprintf(complaint, sizeof complaint, "its list does not give it twice");
    else if (!nv || st_image_compile(&e, nv, &s, arch, &im))
        error_text(&e, complaint, sizeof complaint);
    else {
        sass_counts c;
        r.compiled = true;
        r.ms = im.ms;
        r.record = st_image_record_of(&j->key, arch, nv->version, &s, &im);
        r.record.stored = 0;
        if (!sass_count(im.bytes, im.size, &c))
            snprintf(complaint, sizeof complaint, "the code is not an ELF file");
        else if (c.slow_arrive)
            snprintf(
                complaint, sizeof complaint,
                "MEMBAR between a wgmma and the next arrival (mbarrier.arrive.release.cluster in the loop?)");
        else if (!st_image_complaint(&im, complaint, 512))
            complaint[0] = 0;
        if (!o->check) {
            size_t room = ZSTD_compressBound(im.size);
            if (!(kept = malloc(room))) return false;
            size_t n = ZSTD_compress(kept, room, im.bytes, im.size, LEVEL);
            if (ZSTD_isError(n)) return false;
            r.record.stored = n;
        }
    }
    r.complaint = (uint32_t)strlen(complaint);
    bool ok = write_result(f, &r, kept, complaint);
    free(kept);
    free(im.bytes);
    free(im.log);
    return ok;
}

/* The code of an old pack, as it lies there. */
static bool reuse(const st_pack *old, const pack_job *j, int number, FILE *f, bool *found)
{
    st_image_record wanted = {.key = {j->key.word[0], j->key.word[1]}};
    snprintf(wanted.arch, sizeof wanted.arch, "%s", st_gpu_arch(j->arch));
    const st_image_record *row =
        old && old->row ? bsearch(&wanted, old->row, old->head.count, sizeof wanted, st_pack_order) : NULL;
    *found = row != NULL;
    if (!row) return true;
    pack_result r = {.job = number, .record = *row, .compiled = true, .reused = true};
    void *kept = malloc(row->stored);
    bool ok = kept && pread(old->fd, kept, row->stored, (off_t)row->offset) == (ssize_t)row->stored &&
              write_result(f, &r, kept, "");
    free(kept);
    return ok;
}

static int worker(const pack_options *o, const pack_job *jobs, int count, const st_pack *old, shared *sh,
                  FILE *f, uint64_t begun)
{
    for (;;) {
        bool found = false;
        int i = atomic_fetch_add(&sh->next, 1);
        if (i >= count) break;
        if (!reuse(old, &jobs[i], i, f, &found)) return 1;
        bool late = (o->limit && jobs[i].index >= o->limit) ||
                    (o->seconds > 0 && (double)(st_now_ns() - begun) > o->seconds * 1e9);
        if (!found && !late && !compile(o, &jobs[i], i, f)) return 1;
        atomic_fetch_add(&sh->done, 1);
    }
    return fflush(f) ? 1 : 0;
}

static void progress(int done, int count, uint64_t begun, bool last)
{
    static int shown = -1;
    double s = (double)(st_now_ns() - begun) / 1e9;
    if (isatty(2)) {
        char bar[41];
        int full = count ? done * 40 / count : 40;
        memset(bar, '.', 40);
        memset(bar, '#', (size_t)full);
        bar[40] = 0;
        fprintf(stderr, "\rkernels [%s] %d of %d, %.0f s%s", bar, done, count, s, last ? "\n" : "");
    } else if (count && done * 5 / count != shown) {
        shown = done * 5 / count;
        fprintf(stderr, "kernels: %d of %d, %.0f s\n", done, count, s);
    }
    fflush(stderr);
}

typedef struct gathered {
    pack_result r;
    void *code;
    char *complaint;
} gathered;

static bool gather(FILE *f, gathered *all, int count)
{
    pack_result r;
    rewind(f);
    while (fread(&r, sizeof r, 1, f) == 1) {
        if (r.job < 0 || r.job >= count) return false;
        gathered *g = &all[r.job];
        g->r = r;
        g->code = malloc(r.record.stored + 1);
        g->complaint = calloc(1, r.complaint + 1);
        if (!g->code || !g->complaint) return false;
        if (r.record.stored && fread(g->code, r.record.stored, 1, f) != 1) return false;
        if (r.complaint && fread(g->complaint, r.complaint, 1, f) != 1) return false;
    }
    return !ferror(f);
}

/* Waits for the workers; false when one failed. */
static bool wait_all(const pid_t *pid, int n, const shared *sh, int count, uint64_t begun)
{
    bool ok = true;
    for (int left = n; left > 0;) {
        left = 0;
        for (int i = 0; i < n; i++) {
            int status = 0;
            pid_t r = pid[i] > 0 ? waitpid(pid[i], &status, WNOHANG) : -1;
            left += r == 0;
            if (r > 0 && status) ok = false;
        }
        progress(atomic_load(&sh->done), count, begun, left == 0);
        if (left) usleep(100000);
    }
    return ok;
}

bool pack_run(const pack_options *o, const pack_job *jobs, int count, const st_pack *old, pack_each each,
              void *user, int *done)
{
    int n = o->jobs < 1 ? 1 : o->jobs > MAX_JOBS ? MAX_JOBS : o->jobs;
    FILE *file[MAX_JOBS];
    pid_t pid[MAX_JOBS] = {0};
    uint64_t begun = st_now_ns();
    *done = 0;
    shared *sh = mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    gathered *all = calloc((size_t)count + 1, sizeof *all);
    if (sh == MAP_FAILED || !all) return false;
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        if (!(file[i] = tmpfile())) return perror("strata-pack: a temporary file"), false;
        pid[i] = fork();
        if (pid[i] < 0) return perror("strata-pack: fork"), false;
        if (pid[i] == 0) _exit(worker(o, jobs, count, old, sh, file[i], begun));
    }
    bool ok = wait_all(pid, n, sh, count, begun);
    for (int i = 0; i < n; i++) ok = gather(file[i], all, count) && ok, fclose(file[i]);
    for (int i = 0; i < count; i++) {
        if (!all[i].code) continue;
        ++*done;
        each(user, &jobs[i], &all[i].r, all[i].code, all[i].complaint);
        free(all[i].code);
        free(all[i].complaint);
    }
    free(all);
    munmap(sh, sizeof *sh);
    return ok;
}
