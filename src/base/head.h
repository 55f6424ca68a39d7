/* SPDX-License-Identifier: Apache-2.0 */
/* head.h - how a handle begins: base, which composes its errors, does not know the rest of it. Handles lie on cache lines, and their memory is
 * never given back: so a destroyed one is seen by its magic. */
#ifndef ST_BASE_HEAD_H
#define ST_BASE_HEAD_H
#include "base/base.h"

#define ST_HANDLE_MAGIC 0x53747261u
enum { ST_HANDLE_ALIGN = 64 };
typedef struct st_handle_head {
    uint32_t magic;
    st_err err;
} st_handle_head;
#endif
