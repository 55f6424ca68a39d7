/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - how a kernel's specification becomes machine code: its key, and the places where code is looked for.
 *
 * A key is 128 bits of everything that the code depends on besides the compiler: the source, the embedded headers that it can reach, the
 * options in their order, the generated header, the entry's name, the architecture, and ST_IMAGE_RECIPE, which counts changes of how
 * st_gpu_compile calls the compiler. The version of NVRTC is kept beside the code (so that code can be found without opening NVRTC,
 * which costs 70 to 270 ms and may be missing) and compared when STRATA_NVRTC_LIB asks for a particular one. */
#ifndef ST_RUNTIME_CUDA_IMAGE_H
#define ST_RUNTIME_CUDA_IMAGE_H
#include "runtime/folder.h"
#include "runtime/gpu.h"

enum { ST_IMAGE_RECIPE = 1 };
extern const st_gpu_source st_gpu_source_rows[]; /* from the build; ends with a zero row */

typedef struct st_image_key {
    uint64_t word[2];
} st_image_key;
/* false, with the error set: no such source */
bool st_image_key_of(st_err *e, const st_gpu_spec *s, const char *arch, st_image_key *key);
const st_gpu_source *st_gpu_source_find(const char *name);
/* Does the key of kernels of this source cover that header? */
bool st_image_reaches(const char *source, const char *header);
int st_image_arch_cc(const char *arch); /* "sm_90a", "compute_90" -> 90 */

/* What a cache file and a row of the kernel pack say about code: little endian, 8-byte aligned, 120 bytes. */
typedef struct st_image_record {
    uint64_t key[2];
    char arch[16];
    uint32_t nvrtc; /* 13000 */
    int32_t registers, spill_stores, spill_loads, stack, smem;
    uint64_t size;   /* bytes of code */
    uint64_t stored; /* bytes kept (equal where they are not compressed) */
    uint64_t offset; /* of the kept bytes in the file */
    uint64_t hash;   /* of the code, begun with the fields above */
    char entry[32];  /* cut; for listings */
} st_image_record;
_Static_assert(sizeof(st_image_record) == 120, "a file format");
st_image_record st_image_record_of(const st_image_key *key, const char *arch, int nvrtc, const st_gpu_spec *s,
                                   const st_gpu_image *im);
uint64_t st_image_record_hash(const st_image_record *r, const void *code);
void st_image_take(st_gpu_image *im, const st_image_record *r, void *code); /* owns code */

/* Code kept in files. `nvrtc`: only by this version, 0: any. `driver`: what cuDriverGetVersion says, 0: not asked. `why` says in a few
 * words why there is none. */
typedef struct st_image_wish {
    st_image_key key;
    const char *arch;
    int nvrtc, driver;
} st_image_wish;
bool st_image_record_serves(const st_image_record *r, const st_image_wish *w, char *why, size_t n);
bool st_cache_read(const st_image_wish *w, st_image_record *r, st_gpu_image *im, char *why, size_t n);
bool st_cache_write(const st_image_record *r, const void *code, char *why, size_t n);
enum { ST_CACHE_MEGABYTES = 256 }; /* above this, the files used longest ago go */

/* The kernel pack: st_pack_head, `count` records ordered by key (then architecture), and the code of each, compressed by zstd. */
typedef struct st_pack_head {
    char magic[8];
    uint32_t format, recipe, count, nvrtc;
    uint64_t bytes; /* of the file */
    uint64_t hash;  /* of the records, begun with the head's other fields */
    char version[24];
} st_pack_head;
_Static_assert(sizeof(st_pack_head) == 64, "a file format");
#define ST_PACK_MAGIC "STRPACK"
enum { ST_PACK_FORMAT = 1 };
#define ST_PACK_NAME "strata-kernels.pack"
uint64_t st_pack_hash(const st_pack_head *h, const st_image_record *rows);

typedef struct st_pack {
    st_pack_head head;
    st_image_record *row; /* NULL: no pack, and why */
    int fd;
    char path[1024], why[320];
} st_pack;
/* The process's pack, opened at first use: STRATA_PACK_FILE ("off": none), else strata/strata-kernels.pack beside the library. Never NULL. */
const st_pack *st_pack_get(void);
bool st_pack_open(st_pack *p, const char *path); /* false: p->why */
void st_pack_close(st_pack *p);
bool st_pack_read_from(const st_pack *p, const st_image_wish *w, st_image_record *r, st_gpu_image *im,
                       char *why, size_t n);
int st_pack_order(const void *a, const void *b); /* of records, for qsort */

/* st_gpu_compile with a compiler that is open already */
struct st_libnvrtc;
strata_status st_image_compile(st_err *e, const struct st_libnvrtc *nv, const st_gpu_spec *s,
                               const char *arch, st_gpu_image *im);
/* The code of a kernel for a device, from the pack, the cache folder, or NVRTC, in this order. */
typedef struct st_image_request {
    const st_gpu_spec *spec;
    int cc, driver; /* compute capability; cuDriverGetVersion, 0: not asked */
    /* Loads the code (may be NULL). false with *other set: other code may do (it is not for this driver or device). */
    bool (*load)(void *user, st_err *e, const st_gpu_image *im, bool *other);
    void *user;
    /* answers */
    st_gpu_image image; /* to be freed: bytes, log */
    st_image_record record;
    const char *from; /* "pack", "cache", "nvrtc" */
} st_image_request;
strata_status st_image_obtain(st_err *e, st_image_request *q);

/* What tests and the kernel pack refuse: a warning, a C75xx note (wgmma serialised, setmaxnreg ignored), a spill. Gives that line. */
bool st_image_complaint(const st_gpu_image *im, char *line, size_t n);
#endif
