/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - a double of NVML for the doctor's tests: FAKE_STATE says how many GPUs there are and how they are. */
#include "answer.h"
#include <stdio.h>

#define API __attribute__((visibility("default")))
typedef struct device {
    int index;
} device;
static device devices[64];

API int nvmlInit_v2(void);
API int nvmlInit_v2(void)
{
    ANSWER();
    for (int i = 0; i < 64; i++) devices[i].index = i;
    return 0;
}
API int nvmlShutdown(void);
API int nvmlShutdown(void)
{
    ANSWER();
    return 0;
}
API int nvmlDeviceGetCount_v2(unsigned *n);
API int nvmlDeviceGetCount_v2(unsigned *n)
{
    ANSWER();
    *n = (unsigned)fake_state("gpus", 1);
    return 0;
}
API int nvmlDeviceGetHandleByIndex_v2(unsigned i, device **d);
API int nvmlDeviceGetHandleByIndex_v2(unsigned i, device **d)
{
    ANSWER();
    if ((long long)i == fake_state("lost_gpu", -1)) return 15;
    *d = &devices[i];
    return 0;
}
API int nvmlDeviceGetName(device *d, char *name, unsigned n);
API int nvmlDeviceGetName(device *d, char *name, unsigned n)
{
    ANSWER();
    snprintf(name, n, "NVIDIA Fake %d", d->index);
    return 0;
}
API int nvmlDeviceGetMemoryInfo(device *d, unsigned long long m[3]);
API int nvmlDeviceGetMemoryInfo(device *d, unsigned long long m[3])
{
    ANSWER();
    (void)d;
    m[0] = 80ull << 30;
    m[2] = (unsigned long long)fake_state("used_mib", 600) << 20;
    m[1] = m[0] - m[2];
    return 0;
}

/* one number of the state */
#define NUMBER(function, type, name, otherwise) \
    API int function(device *d, type *v);       \
    API int function(device *d, type *v)        \
    {                                           \
        ANSWER();                               \
        (void)d;                                \
        *v = (type)fake_state(name, otherwise); \
        return 0;                               \
    }
NUMBER(nvmlDeviceGetPowerUsage, unsigned, "milliwatts", 75000)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "milliwatts_limit", 700000)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, "throttle", 1)
NUMBER(nvmlDeviceGetPersistenceMode, int, "persistence", 1)
NUMBER(nvmlDeviceGetComputeMode, int, "compute_mode", 0)
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, int, "retire_pending", 0)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "lanes", 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "lanes_max", 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, "replays", 0)

API int nvmlDeviceGetTemperature(device *d, int sensor, unsigned *v);
API int nvmlDeviceGetTemperature(device *d, int sensor, unsigned *v)
{
    ANSWER();
    (void)d, (void)sensor;
    *v = (unsigned)fake_state("celsius", 41);
    return 0;
}
API int nvmlDeviceGetUtilizationRates(device *d, unsigned v[2]);
API int nvmlDeviceGetUtilizationRates(device *d, unsigned v[2])
{
    ANSWER();
    (void)d;
    v[0] = (unsigned)fake_state("busy", 7);
    v[1] = 3;
    return 0;
}
API int nvmlDeviceGetClockInfo(device *d, int which, unsigned *mhz);
API int nvmlDeviceGetClockInfo(device *d, int which, unsigned *mhz)
{
    ANSWER();
    (void)d;
    *mhz = which == 1 ? 345 : 2619;
    return 0;
}
API int nvmlDeviceGetMaxClockInfo(device *d, int which, unsigned *mhz);
API int nvmlDeviceGetMaxClockInfo(device *d, int which, unsigned *mhz)
{
    ANSWER();
    (void)d;
    *mhz = which == 1 ? 1980 : 2619;
    return 0;
}
API int nvmlDeviceGetMigMode(device *d, unsigned *now, unsigned *next);
API int nvmlDeviceGetMigMode(device *d, unsigned *now, unsigned *next)
{
    ANSWER();
    (void)d;
    *now = *next = (unsigned)fake_state("mig", 0);
    return 0;
}
API int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned i, device **mig);
API int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned i, device **mig)
{
    ANSWER();
    *mig = d;
    return (long long)i < fake_state("mig_parts", 0) ? 0 : 6;
}
API int nvmlDeviceGetEccMode(device *d, int *now, int *next);
API int nvmlDeviceGetEccMode(device *d, int *now, int *next)
{
    ANSWER();
    (void)d;
    *now = *next = 1;
    return 0;
}
API int nvmlDeviceGetTotalEccErrors(device *d, int kind, int counter, unsigned long long *n);
API int nvmlDeviceGetTotalEccErrors(device *d, int kind, int counter, unsigned long long *n)
{
    ANSWER();
    (void)d, (void)counter;
    *n = (unsigned long long)fake_state(kind ? "ecc_bad" : "ecc_mended", 0);
    return 0;
}
API int nvmlDeviceGetRemappedRows(device *d, unsigned *c, unsigned *u, unsigned *pending, unsigned *failed);
API int nvmlDeviceGetRemappedRows(device *d, unsigned *c, unsigned *u, unsigned *pending, unsigned *failed)
{
    ANSWER();
    (void)d;
    *c = 0;
    *u = (unsigned)fake_state("remapped", 0);
    *pending = (unsigned)fake_state("remap_pending", 0);
    *failed = (unsigned)fake_state("remap_failed", 0);
    return 0;
}
API int nvmlDeviceGetRetiredPages(device *d, int cause, unsigned *n, unsigned long long *addresses);
API int nvmlDeviceGetRetiredPages(device *d, int cause, unsigned *n, unsigned long long *addresses)
{
    ANSWER();
    (void)d, (void)addresses;
    *n = cause ? (unsigned)fake_state("retired", 0) : 0;
    return *n ? 7 : 0;
}
typedef struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gi, ci;
} process;
API int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned *n, process *list);
API int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned *n, process *list)
{
    ANSWER();
    (void)d;
    long long pid = fake_state("pid", 0);
    *n = pid ? 1 : 0;
    if (pid) list[0] = (process){(unsigned)pid, (unsigned long long)fake_state("pid_mib", 512) << 20, 0, 0};
    return 0;
}
API int nvmlEventSetCreate(void **set);
API int nvmlEventSetCreate(void **set)
{
    ANSWER();
    *set = devices;
    return 0;
}
API int nvmlDeviceRegisterEvents(device *d, unsigned long long types, void *set);
API int nvmlDeviceRegisterEvents(device *d, unsigned long long types, void *set)
{
    ANSWER();
    (void)d, (void)types, (void)set;
    return 0;
}
typedef struct event {
    device *d;
    unsigned long long type, data;
    unsigned gi, ci;
} event;
API int nvmlEventSetWait_v2(void *set, event *e, unsigned ms);
API int nvmlEventSetWait_v2(void *set, event *e, unsigned ms)
{
    static int told;
    ANSWER();
    (void)set, (void)ms;
    long long xid = fake_state("xid", 0);
    if (!xid || told++) return 10;
    *e = (event){&devices[0], 8, (unsigned long long)xid, 0, 0};
    return 0;
}
