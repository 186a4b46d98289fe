/* Makes files slow to open, as on a shared filesystem: preload it, and let it audit the loader.
 *
 * SLOW_OPENS_UNDER  folders, separated by colons
 * SLOW_OPENS_STATE  a file of 16 bytes that all processes map: opens so far, when the server is free
 * SLOW_OPENS_DELAY  nanoseconds that each open takes longer
 * SLOW_OPENS_EACH   nanoseconds for which it occupies the one server of all processes
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct state {
    _Atomic int64_t opens, free;
};
static struct state *state;
static int64_t delay, each;

static int64_t number(const char *name) {
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : 0;
}

static int is_slow(const char *path) {
    const char *under = getenv("SLOW_OPENS_UNDER");
    while (under && *under) {
        size_t length = strcspn(under, ":");
        if (!strncmp(path, under, length) && (path[length] == '/' || !path[length])) return 1;
        under += length + (under[length] == ':');
    }
    return 0;
}

static void map_state(void) {
    const char *path = getenv("SLOW_OPENS_STATE");
    int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return;
    delay = number("SLOW_OPENS_DELAY");
    each = number("SLOW_OPENS_EACH");
    state = mapped;
}

static void wait_for(const char *path) {
    if (!path || path[0] != '/' || !is_slow(path)) return;
    int before = errno;
    if (!state) map_state();
    if (state) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        int64_t now = time.tv_sec * INT64_C(1000000000) + time.tv_nsec, free = state->free, end;
        do
            end = (free > now ? free : now) + each;
        while (each && !__atomic_compare_exchange_n((int64_t *)&state->free, &free, end, 0,
                                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
        state->opens++;
        end += delay;
        time.tv_sec = end / 1000000000;
        time.tv_nsec = end % 1000000000;
        if (each || delay)
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) continue;
    }
    errno = before;
}

#define NEXT(name) static __typeof__(name) *next; if (!next) next = dlsym(RTLD_NEXT, #name)
#define MODE va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest)

int open(const char *path, int flags, ...) {
    NEXT(open);
    MODE;
    wait_for(path);
    return next(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    NEXT(open64);
    MODE;
    wait_for(path);
    return next(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    NEXT(openat);
    MODE;
    wait_for(path);
    return next(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    NEXT(openat64);
    MODE;
    wait_for(path);
    return next(folder, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode) {
    NEXT(fopen);
    wait_for(path);
    return next(path, mode);
}

FILE *fopen64(const char *path, const char *mode) {
    NEXT(fopen64);
    wait_for(path);
    return next(path, mode);
}

DIR *opendir(const char *path) {
    NEXT(opendir);
    wait_for(path);
    return next(path);
}

/* The loader opens libraries by itself; it says so to those who audit it. */
unsigned int la_version(unsigned int version) { return version; }

unsigned int la_objopen(struct link_map *library, Lmid_t space, uintptr_t *cookie) {
    (void)space, (void)cookie;
    wait_for(library->l_name);
    return 0;
}
