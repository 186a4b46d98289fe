/* Loaded before libc: each open takes OMB_SLOW_OPEN_US longer, MPI_Init OMB_SLOW_INIT_S.
   An allreduce of many elements takes OMB_CALL_US longer, the first OMB_SLOW_CALLS of them ten times
   that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for(const char *name, double unit)
{
    const char *text = getenv(name);
    if (text)
        usleep((useconds_t)(atof(text) * unit));
}

#define OPENS(NAME, PARAMETERS, ...)                                   \
    int NAME PARAMETERS                                                \
    {                                                                  \
        static int (*real) PARAMETERS;                                 \
        mode_t mode = 0;                                               \
        if (!real)                                                     \
            *(void **)&real = dlsym(RTLD_NEXT, #NAME);                 \
        if (flags & O_CREAT) {                           \
            va_list rest;                                              \
            va_start(rest, flags);                                     \
            mode = va_arg(rest, int);                                  \
            va_end(rest);                                              \
        }                                                              \
        wait_for("OMB_SLOW_OPEN_US", 1);                               \
        return real(__VA_ARGS__, mode);                                \
    }

OPENS(open, (const char *path, int flags, ...), path, flags)
OPENS(open64, (const char *path, int flags, ...), path, flags)
OPENS(openat, (int folder, const char *path, int flags, ...), folder, path, flags)
OPENS(openat64, (int folder, const char *path, int flags, ...), folder, path, flags)

int PMPI_Init(int *, char ***);
int PMPI_Init_thread(int *, char ***, int, int *);

int MPI_Init(int *count, char ***words)
{
    wait_for("OMB_SLOW_INIT_S", 1e6);
    return PMPI_Init(count, words);
}

int MPI_Init_thread(int *count, char ***words, int required, int *provided)
{
    wait_for("OMB_SLOW_INIT_S", 1e6);
    return PMPI_Init_thread(count, words, required, provided);
}

#define MANY 128 /* of a benchmark: omb-py's own have fewer */

#define ALLREDUCE(NAME, COUNT)                                                                   \
    int NAME(const void *from, void *to, COUNT count, void *type, void *operation, void *comm)   \
    {                                                                                            \
        static int (*real)(const void *, void *, COUNT, void *, void *, void *);                 \
        static long calls;                                                                       \
        const char *slow = getenv("OMB_SLOW_CALLS");                                             \
        if (!real)                                                                               \
            *(void **)&real = dlsym(RTLD_NEXT, "P" #NAME);                                       \
        if (!real) /* Open MPI 5 has no MPI_Allreduce_c */                                       \
            *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Allreduce");                                \
        if (count >= MANY)                                                                       \
            wait_for("OMB_CALL_US", slow && calls++ < atol(slow) ? 10 : 1);                      \
        return real(from, to, count, type, operation, comm);                                     \
    }

ALLREDUCE(MPI_Allreduce, int)
ALLREDUCE(MPI_Allreduce_c, long)
