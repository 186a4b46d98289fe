/* A stand-in for NVML: two GPUs, of which the second has no NVLink and may not be asked for PCIe. */

typedef struct {
    unsigned number, scope;
    long long timestamp, latency;
    int kind, result;
    unsigned long long value;
} field;

static int open;

int nvmlInitWithFlags(unsigned flags) { open++; return flags; }
int nvmlShutdown(void) { open--; return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return open == 1 ? 0 : 1; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *) (unsigned long) (index + 1);
    return 0;
}

int nvmlDeviceGetFieldValues(void *device, int count, field *fields)
{
    for (int i = 0; i < count; i++) {
        int links = fields[i].number == 138 || fields[i].number == 139;
        fields[i].result = device != (void *) 1 || (links && fields[i].scope != ~0u) ? 3 : 0;
        fields[i].kind = links ? 3 : 1;
        fields[i].value = fields[i].number + (links ? 0 : 0x500000000ull);
    }
    return 0;
}
