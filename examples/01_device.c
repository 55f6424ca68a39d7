/* SPDX-License-Identifier: Apache-2.0 */
/* 01_device.c - what is here: every device, and the handle through which a program uses one. */
#include <stdio.h>
#include <strata.h>

int main(void)
{
    printf("Strata %s\n", strata_version());
    for (int i = 0; i < strata_device_count(); i++) {
        strata_device_info d;
        if (strata_get_device_info(strata_device_name(i), &d)) {
            fprintf(stderr, "%s\n", strata_error(NULL));
            return 1;
        }
        printf("%s is %s: %d threads, kernels for %s\n", d.device, d.name, d.threads, d.isa);
    }

    /* "auto" is the best device there is; "cpu" and "cuda:0" name one. A handle belongs to one thread at a time. */
    strata_handle *h;
    if (strata_create(&h, "auto")) {
        fprintf(stderr, "%s\n", strata_error(NULL));
        return 1;
    }
    printf("\"auto\" chose %s with %d threads\n", strata_handle_device(h), strata_get_threads(h));

    /* The kernels of this build, and whether this machine can use them. */
    strata_kernel_info k;
    int usable = 0, all = 0;
    for (; strata_kernels(all, &k); all++) usable += k.usable;
    printf("%d of %d kernels are usable here\n", usable, all);

    strata_destroy(h);
    return usable > 0 ? 0 : 1;
}
