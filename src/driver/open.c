/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - opening shared libraries at run time and telling why that failed. */
#include "driver/open.h"
#include <dlfcn.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

void st_try_note(st_tried *t, const char *fmt, ...)
{
    size_t at = strlen(t->text);
    va_list ap;
    if (at + 8 >= sizeof t->text) return;
    if (at) at += (size_t)snprintf(t->text + at, sizeof t->text - at, "; ");
    va_start(ap, fmt);
    vsnprintf(t->text + at, sizeof t->text - at, fmt, ap);
    va_end(ap);
    for (char *p = t->text; *p; p++)
        if (*p == '\n') *p = ' ';
}

void *st_try_open(st_tried *t, const char *path)
{
    t->count++;
    if (path[0] == '/' && access(path, F_OK)) return NULL;
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        const char *why = dlerror();
        st_try_note(t, "%s", why ? why : path);
    }
    return lib;
}

const char *st_fill_table(void *library, void *table, const st_symbol *s, int n, bool all)
{
    const char *missing = NULL;
    for (int i = 0; i < n; i++) {
        void *f = dlsym(library, s[i].name);
        memcpy((char *)table + s[i].offset, &f, sizeof f);
        if (!f && !missing) {
            missing = s[i].name;
            if (!all) break;
        }
    }
    return missing;
}

void st_library_path(const void *function, char *path, size_t n)
{
    Dl_info info;
    snprintf(path, n, "%s", dladdr(function, &info) && info.dli_fname ? info.dli_fname : "");
}

bool st_each_file(const char *dir, const char *pattern, bool (*f)(void *arg, const char *path), void *arg)
{
    char text[1024];
    glob_t g;
    bool done = false;
    if (!dir[0] || snprintf(text, sizeof text, "%s/%s", dir, pattern) >= (int)sizeof text) return false;
    if (glob(text, 0, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc && !done; i++) done = f(arg, g.gl_pathv[i]);
        globfree(&g);
    }
    return done;
}
