/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - a character cell is about twice as high as it is wide, so it stands for one pixel across and two down. Smaller pictures are
 * area averages of the large one. */
#include "show.h"
#include "progress.h"
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, SMALLEST = 18 };

show_style show_style_here(void)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    if (!terminal_speaks_utf8()) return SHOW_ASCII;
    bool color =
        terminal_columns() > 0 && !(no && *no) && term && (strstr(term, "256") || getenv("COLORTERM"));
    return color ? SHOW_COLOR : SHOW_SHADES;
}

/* Mean of the picture over the rectangle [x0, x1) x [y0, y1), in pixels with fractions. */
static double mean(const uint8_t *pixels, int side, double x0, double x1, double y0, double y1)
{
    double sum = 0;
    for (int y = (int)y0; y < side && y < y1; y++) {
        double h = (y + 1 < y1 ? y + 1 : y1) - (y > y0 ? y : y0);
        for (int x = (int)x0; x < side && x < x1; x++) {
            double w = (x + 1 < x1 ? x + 1 : x1) - (x > x0 ? x : x0);
            sum += w * h * pixels[y * side + x];
        }
    }
    return sum / ((x1 - x0) * (y1 - y0));
}

static void cell(FILE *f, show_style style, const show_picture *p, int side, int width, int row, int col)
{
    static const char *shade[] = {" ", "░", "▒", "▓", "█"};
    double s = (double)side / width, x = col * s, y = 2 * row * s;
    if (style == SHOW_COLOR) {
        /* 232 to 255 are the greys */
        int top = (int)(mean(p->pixels, side, x, x + s, y, y + s) * 23.99 / 255);
        int low = (int)(mean(p->pixels, side, x, x + s, y + s, y + 2 * s) * 23.99 / 255);
        fprintf(f, "\033[38;5;%dm\033[48;5;%dm▀", 232 + top, 232 + low);
    } else {
        double v = mean(p->pixels, side, x, x + s, y, y + 2 * s) / 255;
        if (style == SHOW_SHADES)
            fputs(shade[(int)(v * 4.99)], f);
        else
            fputc(" .:-=+*#%@"[(int)(v * 9.99)], f);
    }
}

static void captions(FILE *f, int line, int in_row, int width, const show_picture *picture)
{
    for (int i = 0; i < in_row; i++) {
        int used = fprintf(f, "%.*s", width, picture[i].caption[line]);
        fprintf(f, "%*s", i + 1 < in_row ? width + GAP - used : 0, "");
    }
    fputc('\n', f);
}

void show_pictures(FILE *f, show_style style, int columns, int side, int count, const show_picture *picture)
{
    if (columns <= 0) columns = 148;
    int per_row = (columns + GAP) / (SMALLEST + GAP);
    if (per_row > 5) per_row = 5;
    if (per_row < 1) per_row = 1;
    int width = (columns + GAP) / per_row - GAP;
    if (width > side) width = side;
    width &= ~1; /* two pixels a cell down */
    if (width < 2) width = 2;
    for (int at = 0; at < count; at += per_row) {
        int in_row = count - at < per_row ? count - at : per_row;
        for (int row = 0; row < width / 2; row++) {
            for (int i = 0; i < in_row; i++) {
                for (int col = 0; col < width; col++) cell(f, style, picture + at + i, side, width, row, col);
                if (style == SHOW_COLOR) fputs("\033[0m", f);
                if (i + 1 < in_row) fprintf(f, "%*s", GAP, "");
            }
            fputc('\n', f);
        }
        for (int line = 0; line < 2; line++) captions(f, line, in_row, width, picture + at);
        fputc('\n', f);
    }
}
