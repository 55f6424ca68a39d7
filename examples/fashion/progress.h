/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - a line that shows how far a long job is: redrawn in place on a terminal, a plain line now and then elsewhere. */
#ifndef FASHION_PROGRESS_H
#define FASHION_PROGRESS_H
#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    int64_t total; /* items of the whole job */
    int lines;     /* plain lines to print when the output is not a terminal */
    bool terminal, utf8;
    double start, shown; /* seconds */
    int printed;
} progress;

double seconds(void); /* of a clock that only goes forward */
bool terminal_speaks_utf8(void);
int terminal_columns(void); /* 0 when the output is not a terminal */

void progress_start(progress *p, int64_t total, int lines);
/* `title` ("epoch 2/4") stands before the bar, `detail` ("loss 0.2134") at the end. */
void progress_show(progress *p, int64_t done, const char *title, const char *detail);
/* Clears the bar, so that a line can be printed; gives the seconds since the start. */
double progress_clear(progress *p);
#endif
