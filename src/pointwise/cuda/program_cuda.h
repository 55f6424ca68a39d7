/* SPDX-License-Identifier: Apache-2.0 */
/* program_cuda.h - a program on a GPU: how its loops become lines and elements, which kernel goes over them, and the header that is generated for it. A kernel depends on the
 * expression, the types, which steps are 0 or 1, alignment and the geometry below; lengths and steps are in its parameter block. */
#ifndef ST_POINTWISE_PROGRAM_CUDA_H
#define ST_POINTWISE_PROGRAM_CUDA_H
#include "pointwise/program.h"
#include "runtime/gpu.h"
#include "expr/cuda.h"

/* pointwise_map.cu, _rows.cu (with a ring: _ring.cu), _cols.cu, _split.cu */
typedef enum st_pw_way { ST_PW_WAY_MAP, ST_PW_WAY_ROWS, ST_PW_WAY_COLS, ST_PW_WAY_SPLIT } st_pw_way;

enum { ST_PW_LOOPS = STRATA_MAX_RANK + 2 };

typedef struct st_pw_cuda {
    const st_pw_shape *s;
    st_pw_way way;
    int width, slots;   /* elements of a slot, slots of a thread */
    int threads, group; /* of a block, of a line within it */
    int cluster,
        tall; /* blocks of a line; threads of a line in columns (0: the line's elements are neighbours) */
    int groups, stages; /* of a block with a ring in shared memory; 0: lines are read as they are needed */
    int64_t slot_bytes, shared_bytes; /* a place of the ring; what all lines share */
    bool stream;                      /* lines are read again for every pass */
    bool precise;                     /* totals are f64 */
    bool big, hint;                   /* 64-bit indices; data that the caches need not keep */
    bool stores, line_stores;
    int ne, nl; /* loops over a line's elements and over the lines, outermost first */
    st_pw_loop e[ST_PW_LOOPS], l[ST_PW_LOOPS];
    int64_t n, lines, parts, chunk;
    int total_bytes; /* room for the totals of a pass */
    st_cuda_program p;
    bool element[ST_EXPR_VARS];  /* the variable differs along a line */
    bool wide[ST_EXPR_VARS];     /* is read and written in whole slots */
    bool constant[ST_EXPR_VARS]; /* is the same in every line and never written: read where it is used */
    bool by_value[ST_EXPR_VARS]; /* one number that is only read: may come with the launch */
} st_pw_cuda;

/* What of the device matters. */
typedef struct st_pw_device {
    int sms, cc, smem; /* smem: that a block may have */
    int64_t l2;
} st_pw_device;

/* The geometry. alignment: every operand's address is a multiple of so many bytes (1 to 16). split: a few long lines may be cut, which needs workspace. */
void st_pw_cuda_make(st_pw_cuda *c, const st_pw_shape *s, const st_pw_device *d, int alignment, bool split);
/* A geometry with more registers a thread, for a program that does not get by with those it has; false where there is none. Its parameter block is another. */
bool st_pw_cuda_relax(st_pw_cuda *c);
/* Blocks of a launch; whole: over every part of a line that is split. */
int64_t st_pw_cuda_blocks(const st_pw_cuda *c, bool whole);
void st_pw_cuda_text(const st_pw_cuda *c, st_text *t);
/* the kernel's id, and what it is compiled from; generated: st_pw_cuda_text's */
const char *st_pw_cuda_id(const st_pw_cuda *c);
st_gpu_spec st_pw_cuda_spec(const st_pw_cuda *c, const char *id, const char *generated);
void st_pw_program_pack_init(void);
/* The parameter block, addresses and numbers by value left out: the first 2 * nvars words. Returns its length in words. */
enum { ST_PW_WORDS = 2 * ST_EXPR_VARS + 8 + 2 * ST_PW_LOOPS * 2 + ST_EXPR_VARS * ST_PW_LOOPS * 2 };
int st_pw_cuda_words(const st_pw_cuda *c, int64_t *w);
enum { ST_PW_WORK = 4 }; /* the word, counted from 2 * nvars, that holds the workspace's address */
#endif
