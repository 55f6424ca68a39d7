/* SPDX-License-Identifier: Apache-2.0 */
/* steps_nvml.h - NVML as the doctor's steps see it; see steps_cuda.h why it is a table of its own. */
#ifndef ST_DOCTOR_STEPS_NVML_H
#define ST_DOCTOR_STEPS_NVML_H
#include "doctor/steps.h"
#include "driver/driver.h"
#include "driver/open.h"

typedef struct st_nvml_event { /* nvmlEventData_t */
    st_nvml_device device;
    unsigned long long type, data; /* type 8: an Xid, data its number */
    unsigned gpu_instance, compute_instance;
} st_nvml_event;
typedef struct st_nvml_calls {
#define ST_FN(name, symbol, args) int(*name) args;
#include "doctor/steps_nvml.inc"
#undef ST_FN
    char path[256];
} st_nvml_calls;
enum {
    ST_NVML_NOT_SUPPORTED = 3,
    ST_NVML_INSUFFICIENT_SIZE = 7,
    ST_NVML_TIMEOUT = 10,
    ST_NVML_MAX_DEVICES = 64,
    ST_NVML_EVENT_XID = 8
};

/* Opens NVML and initialises it, as steps of s; NULL after that was reported. */
const st_nvml_calls *st_steps_nvml_open(st_steps *s, unsigned *devices);
/* "power limit, temperature" of the bits that mean a slowdown; "" when there is none. *hard: temperature, power brake, hardware */
void st_nvml_throttle_words(unsigned long long bits, char *out, size_t n, bool *hard);

#endif
