/* A stand-in for libcuda.so.1 over host memory, for tests on machines without a GPU.
 *
 * Every allocation has two addresses: the one handed out, which nobody may touch (a processor that
 * does dies of a segmentation fault, as it would with a real device), and a second view of the same
 * bytes, through which the functions here copy. It shows which code runs, never how fast.
 *
 * OMB_FAKE_DEVICES: how many devices there are (1).  OMB_FAKE_MEMORY: bytes of each (16 GiB).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CUDA(name, ...) __attribute__((visibility("default"))) int name(__VA_ARGS__)
#define IGNORED(name) CUDA(name, void) { return SUCCESS; }

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101 };
enum { INVALID_CONTEXT = 201, NOT_FOUND = 500, NOT_SUPPORTED = 801 };
enum { MOST_DEVICES = 16, DEEPEST = 64 };

typedef uint64_t address;

/* ---- memory ------------------------------------------------------------------------------ */

typedef struct allocation {
    char *device, *host;
    size_t size, mapped;
    int file, number;
    uint64_t identity;
    struct allocation *next;
} allocation;

static allocation *allocations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_identity;
static size_t used[MOST_DEVICES];

static int contexts[MOST_DEVICES], retained[MOST_DEVICES];
static __thread void *stack[DEEPEST];
static __thread int depth;

static size_t setting(const char *name, size_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static int devices(void) { return (int)setting("OMB_FAKE_DEVICES", 1); }
static size_t capacity(void) { return setting("OMB_FAKE_MEMORY", (size_t)16 << 30); }

static int current_device(void) {
    if (!depth || !stack[depth - 1]) return -1;
    return (int)((int *)stack[depth - 1] - contexts);
}

static allocation *find(address place) {
    allocation *item;
    pthread_mutex_lock(&lock);
    for (item = allocations; item; item = item->next)
        if ((char *)place >= item->device && (char *)place < item->device + item->mapped) break;
    pthread_mutex_unlock(&lock);
    return item;
}

/* Where the processor finds the bytes of an address. */
static char *reachable(address place) {
    allocation *item = find(place);
    return item ? item->host + ((char *)place - item->device) : (char *)place;
}

/* For the stand-in for CuPy, which computes on the processor. */
__attribute__((visibility("default"))) char *fakecuda_host(address place);
char *fakecuda_host(address place) { return reachable(place); }

static allocation *map(size_t size, int file, int number) {
    allocation *item = calloc(1, sizeof *item);
    item->size = size;
    item->mapped = size ? (size + 4095) & ~(size_t)4095 : 4096;
    item->number = number;
    item->file = file;
    if (file < 0) {
        item->file = (int)syscall(SYS_memfd_create, "fakecuda", 0);
        if (ftruncate(item->file, (off_t)item->mapped)) abort();
    }
    item->device = mmap(NULL, item->mapped, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    item->host = mmap(NULL, item->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, item->file, 0);
    if (item->device == MAP_FAILED || item->host == MAP_FAILED) abort();
    pthread_mutex_lock(&lock);
    item->identity = (uint64_t)getpid() << 32 | ++last_identity;
    item->next = allocations;
    allocations = item;
    pthread_mutex_unlock(&lock);
    return item;
}

static int unmap(address place, int owned) {
    pthread_mutex_lock(&lock);
    for (allocation **link = &allocations; *link; link = &(*link)->next) {
        allocation *item = *link;
        if (item->device != (char *)place) continue;
        *link = item->next;
        if (owned) used[item->number] -= item->mapped;
        pthread_mutex_unlock(&lock);
        munmap(item->device, item->mapped);
        munmap(item->host, item->mapped);
        close(item->file);
        free(item);
        return SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return INVALID_VALUE;
}

CUDA(cuMemAlloc_v2, address *place, size_t size) {
    int number = current_device();
    if (number < 0) return INVALID_CONTEXT;
    if (used[number] + size > capacity()) return OUT_OF_MEMORY;
    allocation *item = map(size, -1, number);
    used[number] += item->mapped;
    *place = (address)item->device;
    return SUCCESS;
}
CUDA(cuMemFree_v2, address place) {
    if (!place) return SUCCESS;
    if (find(place)) return unmap(place, 1);
    free((void *)place);
    return SUCCESS;
}
CUDA(cuMemAllocManaged, address *place, size_t size, unsigned flags) {
    if (size > capacity()) return OUT_OF_MEMORY;
    *place = (address)aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
    return SUCCESS;
}
CUDA(cuMemHostAlloc, void **place, size_t size, unsigned flags) {
    *place = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
    return *place ? SUCCESS : OUT_OF_MEMORY;
}
CUDA(cuMemAllocHost_v2, void **place, size_t size) { return cuMemHostAlloc(place, size, 0); }
CUDA(cuMemFreeHost, void *place) { free(place); return SUCCESS; }
CUDA(cuMemHostGetDevicePointer_v2, address *place, void *host, unsigned flags) {
    *place = (address)host;
    return SUCCESS;
}
CUDA(cuMemGetAddressRange_v2, address *base, size_t *size, address place) {
    allocation *item = find(place);
    if (!item) return NOT_FOUND;
    if (base) *base = (address)item->device;
    if (size) *size = item->size;
    return SUCCESS;
}
CUDA(cuMemGetInfo_v2, size_t *free_bytes, size_t *total) {
    int number = current_device();
    if (number < 0) return INVALID_CONTEXT;
    *total = capacity();
    *free_bytes = *total - used[number];
    return SUCCESS;
}
CUDA(cuMemAdvise, address place, size_t size, int advice, int device) { return SUCCESS; }
CUDA(cuMemPrefetchAsync, address place, size_t size, int device, void *stream) { return SUCCESS; }
IGNORED(cuMemHostRegister_v2)
IGNORED(cuMemHostUnregister)

static int attribute(void *value, int which, address place) {
    allocation *item = find(place);
    if (!item) return INVALID_VALUE;
    switch (which) {
    case 1: *(void **)value = &contexts[item->number]; break;
    case 2: *(unsigned *)value = 2; break;                       /* memory of a device */
    case 3: *(address *)value = place; break;
    case 6: *(int *)value = 0; break;
    case 7: *(uint64_t *)value = item->identity; break;
    case 8: *(int *)value = 0; break;                            /* not managed */
    case 9: *(int *)value = item->number; break;
    case 10: *(int *)value = 1; break;                           /* can be shared by IPC */
    case 11: *(address *)value = (address)item->device; break;
    case 12: *(size_t *)value = item->size; break;
    case 13: *(int *)value = 1; break;
    case 14: *(uint64_t *)value = 1; break;
    case 15: *(unsigned *)value = 3; break;
    case 16: *(int *)value = 0; break;
    case 17: *(void **)value = NULL; break;
    default: return INVALID_VALUE;
    }
    return SUCCESS;
}
CUDA(cuPointerGetAttribute, void *value, int which, address place) {
    return attribute(value, which, place);
}
CUDA(cuPointerGetAttributes, unsigned count, int *which, void **values, address place) {
    for (unsigned i = 0; i < count; i++) {
        int wide = which[i] == 1 || which[i] == 3 || which[i] == 4 || which[i] == 7 ||
                   which[i] == 11 || which[i] == 12 || which[i] == 14 || which[i] == 17;
        if (attribute(values[i], which[i], place)) memset(values[i], 0, wide ? 8 : 4);
    }
    return SUCCESS;
}
CUDA(cuPointerSetAttribute, const void *value, int which, address place) {
    return find(place) ? SUCCESS : INVALID_VALUE;
}

static int copy(address target, address source, size_t size) {
    if (!depth) return INVALID_CONTEXT;
    memmove(reachable(target), reachable(source), size);
    return SUCCESS;
}
#define COPY(name) CUDA(name, address to, address from, size_t n) { return copy(to, from, n); }
#define COPY_ASYNC(name) \
    CUDA(name, address to, address from, size_t n, void *stream) { return copy(to, from, n); }
COPY(cuMemcpy) COPY(cuMemcpy_ptds) COPY(cuMemcpyHtoD_v2) COPY(cuMemcpyDtoH_v2)
COPY(cuMemcpyDtoD_v2)
COPY_ASYNC(cuMemcpyAsync) COPY_ASYNC(cuMemcpyAsync_ptsz) COPY_ASYNC(cuMemcpyHtoDAsync_v2)
COPY_ASYNC(cuMemcpyDtoHAsync_v2) COPY_ASYNC(cuMemcpyDtoDAsync_v2)

CUDA(cuMemsetD8_v2, address place, unsigned char value, size_t count) {
    memset(reachable(place), value, count);
    return SUCCESS;
}
CUDA(cuMemsetD8Async, address place, unsigned char value, size_t count, void *stream) {
    return cuMemsetD8_v2(place, value, count);
}

/* ---- memory of another process ------------------------------------------------------------ */

/* The identity tells an allocation from an earlier one with the same file and address. */
typedef struct {
    int mark, process, file, number;
    size_t size;
    uint64_t identity;
    char rest[32];
} handle;

CUDA(cuIpcGetMemHandle, handle *out, address place) {
    allocation *item = find(place);
    if (!item) return INVALID_VALUE;
    memset(out, 0, sizeof *out);
    *out = (handle){0xfa, getpid(), item->file, item->number, item->size, item->identity, {0}};
    return SUCCESS;
}
CUDA(cuIpcOpenMemHandle_v2, address *place, handle in, unsigned flags) {
    char path[64];
    if (in.mark != 0xfa) return INVALID_VALUE;
    if (in.process == getpid()) return INVALID_CONTEXT;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", in.process, in.file);
    int file = open(path, O_RDWR);
    if (file < 0) return INVALID_VALUE;
    *place = (address)map(in.size, file, in.number)->device;
    return SUCCESS;
}
CUDA(cuIpcOpenMemHandle, address *place, handle in, unsigned flags) {
    return cuIpcOpenMemHandle_v2(place, in, flags);
}
CUDA(cuIpcCloseMemHandle, address place) { return unmap(place, 0); }
CUDA(cuIpcGetEventHandle, char *out, void *event) { memset(out, 1, 64); return SUCCESS; }
CUDA(cuIpcOpenEventHandle, void **event, handle in) { *event = calloc(1, 8); return SUCCESS; }

/* ---- devices and contexts ------------------------------------------------------------------ */

CUDA(cuInit, unsigned flags) { return devices() ? SUCCESS : NO_DEVICE; }
CUDA(cuDriverGetVersion, int *version) { *version = 13000; return SUCCESS; }
CUDA(cuDeviceGetCount, int *count) { *count = devices(); return SUCCESS; }
CUDA(cuDeviceGet, int *device, int number) {
    *device = number;
    return number < devices() ? SUCCESS : INVALID_DEVICE;
}
CUDA(cuDeviceGetName, char *name, int size, int device) {
    snprintf(name, (size_t)size, "Fake device %d (host memory)", device);
    return SUCCESS;
}
CUDA(cuDeviceGetUuid_v2, char *uuid, int device) {
    memset(uuid, 0x50 + device, 16);
    return SUCCESS;
}
CUDA(cuDeviceGetUuid, char *uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }
CUDA(cuDeviceTotalMem_v2, size_t *size, int device) { *size = capacity(); return SUCCESS; }
CUDA(cuDeviceGetPCIBusId, char *text, int size, int device) {
    snprintf(text, (size_t)size, "0000:%02x:00.0", device + 1);
    return SUCCESS;
}
CUDA(cuDeviceGetByPCIBusId, int *device, const char *text) {
    *device = (int)strtol(text + 5, NULL, 16) - 1;
    return SUCCESS;
}
CUDA(cuDeviceComputeCapability, int *major, int *minor, int device) {
    *major = 9;
    *minor = 0;
    return SUCCESS;
}
CUDA(cuDeviceGetAttribute, int *value, int which, int device) {
    switch (which) {
    case 1: case 2: case 3: *value = 1024; break;                /* threads of a block */
    case 4: *value = 64; break;
    case 5: case 6: case 7: *value = 65535; break;
    case 8: *value = 49152; break;
    case 10: *value = 32; break;                                 /* threads of a warp */
    case 12: *value = 65536; break;
    case 16: *value = 132; break;                                /* multiprocessors */
    case 33: *value = device + 1; break;                         /* PCI bus */
    case 38: *value = 1 << 20; break;                            /* bytes of the L2 cache */
    case 39: *value = 2048; break;
    case 41: *value = 1; break;                                  /* unified addresses */
    case 75: *value = 9; break;                                  /* compute capability 9.0 */
    default: *value = 0;
    }
    return SUCCESS;
}
CUDA(cuDeviceCanAccessPeer, int *can, int device, int peer) { *can = 1; return SUCCESS; }
CUDA(cuDevicePrimaryCtxRetain, void **context, int device) {
    *context = &contexts[device];
    retained[device]++;
    return SUCCESS;
}
CUDA(cuDevicePrimaryCtxGetState, int device, unsigned *flags, int *active) {
    if (flags) *flags = 0;
    *active = retained[device] > 0;
    return SUCCESS;
}
CUDA(cuDevicePrimaryCtxRelease_v2, int device) { retained[device]--; return SUCCESS; }
CUDA(cuDevicePrimaryCtxRelease, int device) { return cuDevicePrimaryCtxRelease_v2(device); }
CUDA(cuCtxGetCurrent, void **context) {
    *context = depth ? stack[depth - 1] : NULL;
    return SUCCESS;
}
CUDA(cuCtxSetCurrent, void *context) {
    if (!depth) depth = 1;
    stack[depth - 1] = context;
    if (!context) depth--;
    return SUCCESS;
}
CUDA(cuCtxPushCurrent_v2, void *context) { stack[depth++] = context; return SUCCESS; }
CUDA(cuCtxPopCurrent_v2, void **context) {
    if (!depth) return INVALID_CONTEXT;
    depth--;
    if (context) *context = stack[depth];
    return SUCCESS;
}
CUDA(cuCtxGetDevice, int *device) {
    *device = current_device();
    return *device < 0 ? INVALID_CONTEXT : SUCCESS;
}
CUDA(cuCtxGetApiVersion, void *context, unsigned *version) { *version = 13000; return SUCCESS; }
CUDA(cuCtxGetFlags, unsigned *flags) { *flags = 0; return SUCCESS; }
CUDA(cuCtxGetId, void *context, uint64_t *identity) { *identity = 7; return SUCCESS; }
CUDA(cuCtxGetStreamPriorityRange, int *least, int *most) { *least = *most = 0; return SUCCESS; }
CUDA(cuCtxCreate_v2, void **context, unsigned flags, int device) {
    *context = stack[depth++] = &contexts[device];
    return SUCCESS;
}
CUDA(cuCtxSynchronize, void) { return depth ? SUCCESS : INVALID_CONTEXT; }
IGNORED(cuCtxDestroy_v2)
IGNORED(cuCtxDetach)
IGNORED(cuCtxEnablePeerAccess)
IGNORED(cuCtxSetFlags)
IGNORED(cuDevicePrimaryCtxSetFlags_v2)

/* ---- streams, events ----------------------------------------------------------------------- */

CUDA(cuStreamCreate, void **stream, unsigned flags) { *stream = malloc(8); return SUCCESS; }
CUDA(cuStreamCreateWithPriority, void **stream, unsigned flags, int priority) {
    return cuStreamCreate(stream, flags);
}
CUDA(cuStreamAddCallback, void *stream, void (*call)(void *, int, void *), void *data, unsigned f) {
    call(stream, SUCCESS, data);
    return SUCCESS;
}
CUDA(cuLaunchHostFunc, void *stream, void (*call)(void *), void *data) {
    call(data);
    return SUCCESS;
}
CUDA(cuEventCreate, void **event, unsigned flags) { *event = calloc(1, 8); return SUCCESS; }
CUDA(cuEventElapsedTime, float *ms, void *from, void *to) { *ms = 0; return SUCCESS; }
CUDA(cuEventElapsedTime_v2, float *ms, void *from, void *to) { *ms = 0; return SUCCESS; }
IGNORED(cuStreamDestroy_v2)
IGNORED(cuStreamSynchronize)
IGNORED(cuStreamQuery)
IGNORED(cuStreamWaitEvent)
IGNORED(cuEventDestroy_v2)
IGNORED(cuEventRecord)
IGNORED(cuEventQuery)
IGNORED(cuEventSynchronize)

/* ---- kernels: the suite's own ----------------------------------------------------------------- */

static char work[] = "compute";

CUDA(cuModuleLoadData, void **module, const char *code) {
    *module = malloc(8);
    return SUCCESS;
}
CUDA(cuModuleLoadFatBinary, void **module, const void *code) {
    return cuModuleLoadData(module, code);
}
CUDA(cuModuleUnload, void *module) { free(module); return SUCCESS; }
CUDA(cuModuleGetFunction, void **function, void *module, const char *name) {
    *function = strcmp(name, work) ? malloc(8) : work;
    return SUCCESS;
}
CUDA(cuLaunchKernel, void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
    if (function != work) return NOT_SUPPORTED;
    volatile double value = 1.0;
    for (uint64_t i = *(uint64_t *)parameters[0]; i > 0; i--) value = value * 0.75 + 0.3;
    return SUCCESS;
}

/* ---- errors, and all other functions ------------------------------------------------------- */

CUDA(cuGetErrorString, int code, const char **text) {
    *text = code == OUT_OF_MEMORY ? "out of memory" : code == NO_DEVICE ? "no CUDA-capable device"
                                                                        : "fake driver's error";
    return SUCCESS;
}
CUDA(cuGetErrorName, int code, const char **text) {
    *text = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return SUCCESS;
}
IGNORED(cuProfilerStart)
IGNORED(cuProfilerStop)

int fakecuda_unknown(void) { return NOT_SUPPORTED; }

/* By the names without a version that callers use; the newest version that is here. */
CUDA(cuGetProcAddress_v2, const char *name, void **function, int version, uint64_t flags,
     int *status) {
    static void *self;
    char versioned[128];
    Dl_info here;
    if (!self && dladdr((void *)find, &here)) self = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *function = NULL;
    for (int number = 4; number >= 1 && !*function; number--) {
        snprintf(versioned, sizeof versioned, number > 1 ? "%s_v%d" : "%s", name, number);
        *function = dlsym(self, versioned);
    }
    if (status) *status = *function ? 0 : 1;
    return *function ? SUCCESS : NOT_FOUND;
}
CUDA(cuGetProcAddress, const char *name, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
