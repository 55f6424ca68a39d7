/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - how the doctor's test doubles of libcuda and NVML misbehave: the environment variable FAKE_ANSWERS holds words
 * "function=CODE", "function=hang" or "function=crash", FAKE_STATE words "name=NUMBER". */
#ifndef FAKE_ANSWER_H
#define FAKE_ANSWER_H
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline const char *fake_word(const char *variable, const char *name)
{
    const char *list = getenv(variable);
    size_t n = strlen(name);
    for (const char *p = list; p && (p = strstr(p, name)) != NULL; p += n)
        if ((p == list || p[-1] == ' ') && p[n] == '=') return p + n + 1;
    return NULL;
}

static inline long long fake_state(const char *name, long long otherwise)
{
    const char *v = fake_word("FAKE_STATE", name);
    return v ? strtoll(v, NULL, 10) : otherwise;
}

/* 0, or what the test wants of this function */
static inline int fake_answer(const char *function)
{
    const char *v = fake_word("FAKE_ANSWERS", function);
    if (!v) return 0;
    if (strncmp(v, "hang", 4) == 0)
        for (;;) pause();
    if (strncmp(v, "crash", 5) == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would make it an exit */
        raise(SIGSEGV);
    }
    return atoi(v);
}
#define ANSWER()                             \
    do {                                     \
        int answer_ = fake_answer(__func__); \
        if (answer_) return answer_;         \
    } while (0)
#endif
