"""A clock that can be set for some processes alone.

A library that is loaded before libc (``LD_PRELOAD``) adds the seconds in a file, which all these
processes map, to what `clock_gettime` (of CLOCK_REALTIME), `gettimeofday`, `time` and
`timespec_get` say. So Python, the ranks, launchers and MPI libraries see a step at the same moment,
as of ``date --set``. What it does not cover: times that the kernel writes (of files), timers that
the kernel ends at a time of day, and programs that ask the kernel without libc. CLOCK_MONOTONIC
stays as it is: setting the clock does not change it on Linux either.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Clock:
    """A clock for the processes that have ``environment``."""

    library: Path
    step: Path

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process see this clock."""
        return {"LD_PRELOAD": str(self.library), "CHAOS_CLOCK": str(self.step)}

    def set(self, seconds: int) -> None:
        """Set it to so many seconds after the true time, or before if that is negative."""
        with self.step.open("r+b") as file:
            file.write(struct.pack("q", seconds))


def make(folder: Path) -> Clock | None:
    """A clock that shows the true time until it is set; None without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source, library, step = folder / "clock.c", folder / "clock.so", folder / "clock.step"
    source.write_text(SOURCE)
    step.write_bytes(bytes(8))
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(words, check=True)
    return Clock(library, step)
