/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - pictures as text, several beside each other. */
#ifndef FASHION_SHOW_H
#define FASHION_SHOW_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum show_style {
    SHOW_ASCII,  /* ten characters from blank to @ */
    SHOW_SHADES, /* the block shades of Unicode, five levels */
    SHOW_COLOR   /* upper half blocks in the 24 greys of a 256-colour terminal: two pixels a cell */
} show_style;

typedef struct show_picture {
    const uint8_t *pixels; /* side x side */
    const char *caption[2];
} show_picture;

/* What the terminal behind standard output can do. */
show_style show_style_here(void);
/* Prints the pictures in rows that fit `columns` characters (0: 148), each scaled down to at most `side` columns. */
void show_pictures(FILE *f, show_style style, int columns, int side, int count, const show_picture *picture);
#endif
