/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c - files to C: `embed OUT.c SYMBOL FILE...` writes an array of {name, bytes, size} named SYMBOL, ended by a zero row.
 * The name of a row is the file's name without folder and extension. Runs at build time and needs nothing but a C compiler. */
#include <stdio.h>
#include <string.h>

static int bytes(FILE *out, const char *path, int index)
{
    FILE *in = fopen(path, "rb");
    if (!in) return -1;
    fprintf(out, "static const char file_%d[] =\n    \"", index);
    int c, column = 0, escaped = 0;
    while ((c = fgetc(in)) != EOF) {
        /* a digit behind an octal escape would be read as part of it */
        if (c == '\n') {
            fputs("\\n\"\n    \"", out);
            column = 0;
            continue;
        }
        if (c == '\\' || c == '"' || c == '?')
            fprintf(out, "\\%c", c);
        else if (c < 32 || c > 126)
            fprintf(out, "\\%03o", c);
        else
            fputc(c, out);
        escaped = c < 32 || c > 126;
        if (++column >= 1000 && !escaped) {
            fputs("\"\n    \"", out);
            column = 0;
        }
    }
    fputs("\";\n", out);
    int bad = ferror(in);
    fclose(in);
    return bad ? -1 : 0;
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "usage: embed OUT.c SYMBOL FILE...\n"), 2;
    FILE *out = fopen(argv[1], "wb");
    if (!out) return perror(argv[1]), 1;
    fprintf(out, "/* made by tools/embed.c at build time */\n#include \"facts/embedded.h\"\n");
    for (int i = 3; i < argc; i++)
        if (bytes(out, argv[i], i)) return perror(argv[i]), fclose(out), 1;
    fprintf(out, "const st_embedded %s[] = {\n", argv[2]);
    for (int i = 3; i < argc; i++) {
        const char *name = strrchr(argv[i], '/');
        name = name ? name + 1 : argv[i];
        fprintf(out, "    {\"%.*s\", file_%d, sizeof file_%d - 1},\n", (int)strcspn(name, "."), name, i, i);
    }
    fprintf(out, "    {0, 0, 0}};\n");
    if (fclose(out)) return perror(argv[1]), 1;
    return 0;
}
