/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target on files and folders of files (the kept corpus), then on inputs made from them by a fixed generator: cut,
 * joined, bytes changed. So the targets run under CTest with any compiler; with clang and -DSTRATA_FUZZ=ON they are libFuzzer's. */
#include "fuzz.h"
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST = 4096, ROOM = 1 << 16 };
static struct {
    uint8_t *bytes;
    size_t n;
} kept[MOST];
static int count;

static void add(const char *path)
{
    struct stat st;
    if (stat(path, &st)) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    if (S_ISDIR(st.st_mode)) {
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
            char name[1024];
            if (e->d_name[0] == '.') continue;
            snprintf(name, sizeof name, "%s/%s", path, e->d_name);
            add(name);
        }
        if (d) closedir(d);
        return;
    }
    FILE *f = fopen(path, "rb");
    if (!f || count == MOST || st.st_size > ROOM) exit(1);
    kept[count].bytes = malloc((size_t)st.st_size + 1);
    kept[count].n = fread(kept[count].bytes, 1, (size_t)st.st_size, f);
    fclose(f);
    count++;
}

static uint64_t state = 88172645463325252u;
static size_t below(size_t n)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return n ? (size_t)(state % n) : 0;
}

int main(int argc, char **argv)
{
    int rounds = 2000;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--rounds=", 9) == 0)
            rounds = atoi(argv[i] + 9);
        else
            add(argv[i]);
    }
    if (!count) {
        fprintf(stderr, "usage: %s [--rounds=N] FILE|FOLDER...\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < count; i++) LLVMFuzzerTestOneInput(kept[i].bytes, kept[i].n);
    uint8_t *made = malloc(2 * ROOM);
    for (int i = 0; i < rounds; i++) {
        const int a = (int)below((size_t)count), b = (int)below((size_t)count);
        size_t n = below(4) ? kept[a].n : below(kept[a].n + 1);
        memcpy(made, kept[a].bytes, n);
        if (below(3) == 0) {
            const size_t from = below(kept[b].n + 1), more = kept[b].n - from;
            memcpy(made + n, kept[b].bytes + from, more);
            n += more;
        }
        for (size_t k = below(6); k && n; k--)
            made[below(n)] = (uint8_t)(below(2) ? below(256) : 32 + below(95));
        uint8_t *exact = malloc(n + 1); /* so that reading past the end is seen */
        memcpy(exact, made, n);
        LLVMFuzzerTestOneInput(exact, n);
        free(exact);
    }
    free(made);
    printf("%d kept, %d made\n", count, rounds);
    return 0;
}
