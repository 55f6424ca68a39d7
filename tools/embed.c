/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c - files to C: `embed [--full] OUT.c HEADER TYPE SYMBOL [FILE...]` writes an array of {name, bytes, size} named SYMBOL, ended by
 * a zero row; HEADER declares it and its TYPE. The name of a row is the file's name without folder, and without extension unless --full
 * is given; two files of one name are refused. Runs at build time and needs nothing but a C compiler. */
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

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int main(int argc, char **argv)
{
    int full = argc > 1 && strcmp(argv[1], "--full") == 0;
    argv += full, argc -= full;
    if (argc < 5) return fprintf(stderr, "usage: embed [--full] OUT.c HEADER TYPE SYMBOL [FILE...]\n"), 2;
    for (int i = 5; i < argc; i++)
        for (int j = 5; j < i; j++)
            if (strcmp(base_name(argv[i]), base_name(argv[j])) == 0)
                return fprintf(stderr, "embed: %s and %s have one name\n", argv[j], argv[i]), 1;
    FILE *out = fopen(argv[1], "wb");
    if (!out) return perror(argv[1]), 1;
    fprintf(out, "/* made by tools/embed.c at build time */\n#include \"%s\"\n", argv[2]);
    for (int i = 5; i < argc; i++)
        if (bytes(out, argv[i], i)) return perror(argv[i]), fclose(out), 1;
    fprintf(out, "extern const %s %s[];\nconst %s %s[] = {\n", argv[3], argv[4], argv[3], argv[4]);
    for (int i = 5; i < argc; i++) {
        const char *name = base_name(argv[i]);
        int n = (int)(full ? strlen(name) : strcspn(name, "."));
        fprintf(out, "    {\"%.*s\", file_%d, sizeof file_%d - 1},\n", n, name, i, i);
    }
    fprintf(out, "    {0, 0, 0}};\n");
    if (fclose(out)) return perror(argv[1]), 1;
    return 0;
}
