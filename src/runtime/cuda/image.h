/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - how a kernel's specification becomes machine code: its key, and the places where code is looked for.
 *
 * A key is 128 bits of everything that the code depends on besides the compiler: the source, the embedded headers that it can reach, the
 * options in their order, the generated header, the entry's name, the architecture, and ST_IMAGE_RECIPE, which counts changes of how
 * st_gpu_compile calls the compiler. The version of NVRTC is kept beside the code (so that code can be found without opening NVRTC,
 * which costs 70 to 270 ms and may be missing) and compared when STRATA_NVRTC_LIB asks for a particular one. */
#ifndef ST_RUNTIME_CUDA_IMAGE_H
#define ST_RUNTIME_CUDA_IMAGE_H
#include "runtime/gpu.h"

enum { ST_IMAGE_RECIPE = 1 };
extern const st_gpu_source st_gpu_source_rows[]; /* from the build; ends with a zero row */

typedef struct st_image_key {
    uint64_t word[2];
} st_image_key;
/* false, with the error set: no such source */
bool st_image_key_of(st_err *e, const st_gpu_spec *s, const char *arch, st_image_key *key);
const st_gpu_source *st_gpu_source_find(const char *name);
#endif
