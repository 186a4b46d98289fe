"""Keeps a rank's record up to date while it runs: a thread that writes a few times a second.

What is written is there for others (`omb-py watch`), and for everybody if the rank is killed. The
thread sees what the rank is doing by looking at its frames, which costs the rank nothing.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from omb_py.tracing.recorder.record_file import RecordFile
from omb_py.tracing.recorder.recorder import OBSERVERS, PythonRecorder
from omb_py.tracing.records.layout import NOBODY
from omb_py.tracing.records.routines import begins_collective

SECONDS = 0.25
SHARE = 0.01
"""At most this share of the time goes into publishing."""

KIBIBYTE = 1024


class Publisher:
    """Publishes what a recorder has, if any, and what the system says of this process."""

    def __init__(self, file: RecordFile, recorder: PythonRecorder | None) -> None:
        """``recorder`` None: calls are recorded by others, only the process is published."""
        self._file = file
        self._recorder = recorder
        self._thread_clock = time.pthread_getcpuclockid(threading.get_ident())
        self._main = threading.get_ident()
        self._first = self._usage()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._inside: Callable[[], int] | None = None
        self._thread = threading.Thread(target=self._run, name="omb-py record", daemon=True)

    def start(self, inside: Callable[[], int] | None = None) -> None:
        """Begin; ``inside`` tells the thread's CPU ns within MPI, where they are measured."""
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
        with self._lock:
            file, first, usage = self._file, self._first, self._usage()
            for name in ("user_ns", "system_ns", "thread_ns", "switches"):
                file.set(name, usage[name] - first[name])
            file.set("memory_bytes", usage["memory_bytes"])
            if self._inside is not None:
                file.set("outside_ns", usage["thread_ns"] - first["thread_ns"] - self._inside())
            if self._recorder is not None:
                cells = self._recorder.tallies.cells()
                file.write_cells(cells, 0)
                self._say_what_now(self._recorder, cells)
            file.set("updated", time.monotonic_ns())

    def _usage(self) -> dict[str, int]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "user_ns": round(used.ru_utime * 1e9),
            "system_ns": round(used.ru_stime * 1e9),
            "thread_ns": time.clock_gettime_ns(self._thread_clock),
            "memory_bytes": used.ru_maxrss * KIBIBYTE,
            "switches": used.ru_nivcsw,
        }

    def _say_what_now(self, recorder: PythonRecorder, cells: list[tuple[int, ...]]) -> None:
        call = _call_of(sys._current_frames().get(self._main))
        file = self._file
        if call is None:
            file.set("now_name", 0)
            return
        given = {**call.get("given", {}), **call}
        communicator = getattr(call.get("self"), "_number", 0)
        if not isinstance(communicator, int) or not communicator:
            communicator = recorder.met(call.get("self"))  # it has it after its first call
        peer = next((given[p] for p in ("dest", "source", "target_rank", "root") if p in given), -1)
        routine = recorder.names[call["number"]]
        begun = sum(
            cell[6]
            for cell in cells
            if cell[1] == communicator and begins_collective(recorder.names[cell[0]])
        )
        rank = recorder.world_rank(communicator, peer) if isinstance(peer, int) else NOBODY
        file.set("now_communicator", communicator)
        file.set("now_peer", rank)
        file.set("now_began", round(call["began"] * recorder.tick))
        file.set("now_collectives", begun + begins_collective(routine))
        file.set("now_name", call["number"])


def _call_of(frame: FrameType | None) -> dict[str, Any] | None:
    """What an observed call that a thread is in knows, None when it is in none."""
    while frame is not None and frame.f_code.co_filename.startswith(OBSERVERS):
        if frame.f_code.co_name == "observed":
            known = dict(frame.f_locals)
            return known if "began" in known and "ended" not in known else None
        frame = frame.f_back
    return None
