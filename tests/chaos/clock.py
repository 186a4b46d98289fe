"""A clock that can be set for some processes alone.

A library that is loaded before libc (``LD_PRELOAD``) adds the seconds in a file, which all these
processes map, to what libc's functions say of the time of day: they see a step at the same moment,
as of ``date --set``. Times that the kernel writes, and CLOCK_MONOTONIC, stay as they are.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const long long none;
static const volatile long long *step = &none;

__attribute__((constructor)) static void map(void) {
    const char *name = getenv("CHAOS_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) step = page;
}

static int real(clockid_t clock, struct timespec *now) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return next(clock, now);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int code = real(clock, now);
    if (!code && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *step;
    return code;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}
"""


def make(folder: Path, compiler: str) -> dict[str, str]:
    """The environment of processes with a clock that shows the true time until it is set."""
    library, step = folder / "clock.so", folder / "clock.step"
    step.write_bytes(bytes(8))
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), "-xc", "-", "-ldl"]
    subprocess.run(words, input=SOURCE, text=True, check=True)
    return {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(step)}


def move(environment: dict[str, str], seconds: int) -> None:
    """Set a clock to so many seconds after the true time, or before if that is negative."""
    with open(environment["CHAOS_CLOCK"], "r+b") as file:
        file.write(struct.pack("q", seconds))
