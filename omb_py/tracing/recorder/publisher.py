"""The system's values of a rank, in its record: a thread writes them a few times a second.

Other programs (`omb-py watch`) read them, also after the rank was killed.
"""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable

from omb_py.tracing.recorder.record_file import RecordFile
from omb_py.tracing.records.layout import NS_PER_SECOND

SECONDS = 0.25
SHARE = 0.01
"""At most this share of the time goes into publishing."""

KIBIBYTE = 1024


class Publisher:
    """A writer of the system's values of this process."""

    def __init__(self, file: RecordFile) -> None:
        self._file = file
        self._thread_clock = time.pthread_getcpuclockid(threading.get_ident())
        self._first = self._usage()
        self._stopped = threading.Event()
        self._inside: Callable[[], int] | None = None
        self._thread = threading.Thread(target=self._run, name="omb-py record", daemon=True)

    def start(self, inside: Callable[[], int] | None = None) -> None:
        """Begin; ``inside`` returns the thread's CPU ns within MPI, if they are measured."""
        self._inside = inside
        self._thread.start()

    def stop(self) -> None:
        """Publish a last time, and end."""
        self._stopped.set()
        self._thread.join()
        self.publish()

    def _run(self) -> None:
        pause = SECONDS
        while not self._stopped.wait(pause):
            began = time.thread_time()
            self.publish()
            pause = max(SECONDS, (time.thread_time() - began) / SHARE)

    def publish(self) -> None:
        """Write everything now."""
        file, first, usage = self._file, self._first, self._usage()
        for name in ("user_ns", "system_ns", "thread_ns", "switches"):
            file.set(name, usage[name] - first[name])
        file.set("memory_bytes", usage["memory_bytes"])
        if self._inside is not None:
            file.set("outside_ns", usage["thread_ns"] - first["thread_ns"] - self._inside())
        file.set("updated", time.monotonic_ns())

    def _usage(self) -> dict[str, int]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "user_ns": round(used.ru_utime * NS_PER_SECOND),
            "system_ns": round(used.ru_stime * NS_PER_SECOND),
            "thread_ns": time.clock_gettime_ns(self._thread_clock),
            "memory_bytes": used.ru_maxrss * KIBIBYTE,
            "switches": used.ru_nivcsw,
        }
