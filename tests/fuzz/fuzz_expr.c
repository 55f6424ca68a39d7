/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_expr.c - the parser of expressions, with the names that an epilogue has, in both precisions; what parses is printed as CUDA C too, where
 * it can be. */
#include "expr/expr.h"
#include "fuzz.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const names[] = {"acc", "out", "x", "y", "bias", "s", "n", NULL};
    if (n > 4096) return 0;
    char *text = malloc(n + 1);
    memcpy(text, data, n);
    text[n] = 0;
    for (int wide = 0; wide < 2; wide++) {
        st_err e;
        memset(&e, 0, sizeof e);
        st_expr *x = NULL;
        const strata_status s = st_expr_parse(&e, "fuzz", text, names, wide, &x);
        FUZZ_CHECK(s ? e.status == s && e.text[0] && !x : x != NULL);
        st_expr_free(x);
    }
    free(text);
    return 0;
}
