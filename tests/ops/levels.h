/* SPDX-License-Identifier: Apache-2.0 */
/* levels.h - runs a test program once for every instruction-set level: the processor's own here, then itself again as
 * child processes with STRATA_ISA lowered. A level that is set from outside is tested alone. */
#ifndef TEST_LEVELS_H
#define TEST_LEVELS_H
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static inline int test_lower_levels(void)
{
    static const char *const level[] = {"avx2", "portable"};
    int failures = 0;
    if (getenv("STRATA_ISA")) return 0;
    for (int i = 0; i < 2; i++) {
        fprintf(stderr, "---- STRATA_ISA=%s ----\n", level[i]);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            setenv("STRATA_ISA", level[i], 1);
            execl("/proc/self/exe", "self", (char *)NULL);
            _exit(127);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) failures++;
    }
    return failures;
}
#endif
