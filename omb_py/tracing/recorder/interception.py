"""Seeing calls of MPI in C: a library of ours that stands between all callers and MPI.

It defines MPI's functions, records, and calls MPI's own by their second names (the profiling
interface, PMPI), so that what C libraries below Python call is seen, too. It writes the rank's
record itself.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from omb_py.core.errors import OmbError, UsageError
from omb_py.tracing.recorder.compilation import cached_library
from omb_py.tracing.recorder.record_file import RecordFile
from omb_py.tracing.records.layout import EVENT_FORMAT

_LOADED: list[ctypes.CDLL] = []
"""The library is in this process once, as MPI is."""


def library() -> Path:
    """The library, compiled if it is not there yet; before MPI is started, on every rank.

    Raises `UsageError` where there is no compiler, or it belongs to another MPI library.
    """
    return cached_library()


def load(path: Path) -> None:
    """Put the library before MPI's, which must not have been loaded yet."""
    if _LOADED:
        return
    if "mpi4py.MPI" in sys.modules:
        raise UsageError("calls cannot be seen in C: mpi4py.MPI was imported before")
    try:
        # as mpi4py.profile does it
        _LOADED.append(ctypes.CDLL(str(path), os.RTLD_NOW | os.RTLD_GLOBAL))
    except OSError as error:
        raise UsageError(f"cannot load {path} ({error}): remove it and try again") from error


class CRecorder:
    """Keeps what the library sees; as a `Recorder` it keeps spans in the same record."""

    def __init__(self) -> None:
        """The library must have been loaded."""
        self._library = _LOADED[0]
        self._name = self._library.omb_py_name
        self._name.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        self._event = self._library.omb_py_event
        self._event.argtypes = [ctypes.c_char_p]
        self._inside_ns = self._library.omb_py_inside_ns
        self._inside_ns.restype = ctypes.c_int64
        self._numbers = {"": 0}

    def open(self, file: RecordFile, sites: bool = False, cpu_time: bool = False) -> None:
        """Record into a file from now on: names, cells and events are no longer Python's to write.

        ``sites`` records lines of the program, ``cpu_time`` the CPU time of this thread within MPI.
        Raises `OmbError` where the file cannot be mapped, or calls do not come to the library.
        """
        if not self._library.omb_py_started():
            raise OmbError(
                "calls cannot be seen in C: mpi4py does not call MPI through our library; profile "
                "without --intercept pmpi"
            )
        if sites and not self._library.omb_py_sites():
            raise OmbError(
                "--call-sites needs Python's stable ABI of 3.10 or later, which this process has "
                "not: leave it out"
            )
        if cpu_time:
            self._library.omb_py_cpu_time()
        self._numbers = {"": 0}
        error = self._library.omb_py_open(os.fsencode(file.path))
        if error:
            raise OmbError(f"cannot map {file.path}: {os.strerror(error)}")

    def inside_ns(self) -> int:
        """The CPU time of the thread that opened the record, within MPI."""
        return int(self._inside_ns())

    def pause(self) -> None:
        """Record nothing until `resume`."""
        self._library.omb_py_pause(1)

    def resume(self) -> None:
        """Go on."""
        self._library.omb_py_pause(0)

    def name(self, text: str) -> int:
        """The number of a name, which is written when it is new; 0 when there is no room."""
        number = self._numbers.get(text)
        if number is None:
            line = " ".join(text.splitlines()).encode(errors="replace")
            number = self._numbers[text] = self._name(line, len(line))
        return number

    def event(self, *fields: int) -> None:
        """Keep an event, with the fields of `layout.EVENT`."""
        self._event(EVENT_FORMAT.pack(*fields))

    def close(self) -> None:
        """Record no more; the file is complete as far as calls go."""
        self._library.omb_py_close()
