/* The stand-in for CUDA's driver by HIP's names, for a libamdhip64.so.7 (see driver.c). */
#include <stddef.h>
#include <stdint.h>

typedef uint64_t address;

#define CU(name, ...) extern int name(__VA_ARGS__);
CU(cuInit, unsigned) CU(cuDeviceGetCount, int *) CU(cuDeviceGet, int *, int)
CU(cuDeviceGetName, char *, int, int) CU(cuDeviceTotalMem_v2, size_t *, int)
CU(cuDeviceGetUuid, char *, int) CU(cuDevicePrimaryCtxRetain, void **, int)
CU(cuCtxSetCurrent, void *) CU(cuCtxGetDevice, int *) CU(cuCtxSynchronize, void)
CU(cuMemcpy, address, address, size_t) CU(cuMemsetD8_v2, address, unsigned char, size_t)
CU(cuMemHostAlloc, void **, size_t, unsigned) CU(cuMemFreeHost, void *)
CU(cuMemAlloc_v2, address *, size_t) CU(cuMemFree_v2, address)

#define HIP(name, ...) __attribute__((visibility("default"))) int name(__VA_ARGS__)

enum { INVALID_VALUE = 1, INVALID_DIRECTION = 21, HOST = -1, PREFERRED_LOCATION = 3 };
enum { MEMCPY_DEFAULT = 4, L2_CACHE = 19, NO_DEVICE = 100, INVALID_DEVICE = 101 };

HIP(hipInit, unsigned flags) { return cuInit(flags) == NO_DEVICE ? INVALID_DEVICE : 0; }
HIP(hipRuntimeGetVersion, int *version) { *version = 70051831; return 0; }
HIP(hipGetDeviceCount, int *count) { cuDeviceGetCount(count); return *count ? 0 : NO_DEVICE; }
HIP(hipDeviceGet, int *device, int number) { return cuDeviceGet(device, number); }
HIP(hipDeviceGetName, char *name, int size, int device) {
    return cuDeviceGetName(name, size, device);
}
HIP(hipDeviceTotalMem, size_t *size, int device) { return cuDeviceTotalMem_v2(size, device); }
HIP(hipDeviceGetUuid, char *uuid, int device) { return cuDeviceGetUuid(uuid, device); }
HIP(hipDeviceGetAttribute, int *value, int which, int device) {
    if (which != L2_CACHE) return INVALID_VALUE;
    *value = 1 << 20;
    return 0;
}
HIP(hipSetDevice, int device) {
    void *context;
    int count, code = cuDeviceGetCount(&count);
    if (code || device < 0 || device >= count) return INVALID_DEVICE;
    return cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context);
}
/* A thread has a current device from its beginning: the first. */
static int begun(void) {
    int device;
    return cuCtxGetDevice(&device) ? hipSetDevice(0) : 0;
}
HIP(hipGetDevice, int *device) { return begun() || cuCtxGetDevice(device); }
HIP(hipDeviceSynchronize, void) { return begun() || cuCtxSynchronize(); }
HIP(hipStreamSynchronize, void *stream) { return 0; }
HIP(hipMemcpy, address to, address from, size_t size, int kind) {
    if (kind != MEMCPY_DEFAULT) return INVALID_DIRECTION;
    return begun() || cuMemcpy(to, from, size);
}
HIP(hipMemsetD8, address place, unsigned char value, size_t count) {
    return cuMemsetD8_v2(place, value, count);
}
HIP(hipHostMalloc, void **place, size_t size, unsigned flags) {
    return cuMemHostAlloc(place, size, flags);
}
HIP(hipHostFree, void *place) { return cuMemFreeHost(place); }
HIP(hipMalloc, address *place, size_t size) {
    int code = begun();
    return code ? code : cuMemAlloc_v2(place, size);
}
HIP(hipFree, address place) { return cuMemFree_v2(place); }
HIP(hipMemAdvise, address place, size_t size, int advice, int device) {
    return advice == PREFERRED_LOCATION && device >= HOST ? 0 : INVALID_VALUE;
}
HIP(hipMemPrefetchAsync, address place, size_t size, int device, void *stream) { return 0; }

__attribute__((visibility("default"))) const char *hipGetErrorString(int code) {
    return code == 2 ? "hipErrorOutOfMemory" : "fake runtime's error";
}
