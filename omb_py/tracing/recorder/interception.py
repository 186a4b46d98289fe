"""MPI calls, intercepted in C: omb-py's library between all callers and MPI.

It defines MPI's functions, records, and calls MPI's own by their second names (the profiling
interface, PMPI), so calls of C libraries below Python are included. It writes the rank's record
itself.
"""

from __future__ import annotations

import ctypes
import os
import sys

from omb_py.core.errors import OmbError, UsageError
from omb_py.tracing.recorder.library import cached_library
from omb_py.tracing.recorder.record_file import RecordFile
from omb_py.tracing.records.layout import EVENT_FORMAT


class Recorder:
    """The library in this process: `load` it before MPI's, `open` a record once MPI was started."""

    def __init__(self, sites: bool) -> None:
        """Find the library, compiled if it is not there yet; on every rank.

        ``sites`` records lines of the program. Raises `UsageError` if there is no compiler, or it
        belongs to another MPI library.
        """
        self._sites = sites
        self._path = cached_library()
        self._numbers = {"": 0}

    def load(self) -> None:
        """Put the library before MPI's, which must not have been loaded yet."""
        if "mpi4py.MPI" in sys.modules:
            raise UsageError("calls cannot be intercepted: mpi4py.MPI was imported before")
        try:
            # as mpi4py.profile does it
            library = ctypes.CDLL(self._path, os.RTLD_NOW | os.RTLD_GLOBAL)
        except OSError as error:
            raise UsageError(
                f"cannot load {self._path} ({error}): remove it and try again"
            ) from error
        self._library = library
        self._name = library.omb_py_name
        self._name.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        self._event = library.omb_py_event
        self._event.argtypes = [ctypes.c_char_p]

    def open(self, file: RecordFile) -> None:
        """Record into a file from now on: names, cells and events are no longer Python's to write.

        Raises `OmbError` if the file cannot be mapped, or calls do not come to the library.
        """
        if not self._library.omb_py_started():
            raise OmbError(
                "calls cannot be intercepted: mpi4py does not call MPI through our library; was "
                "it built with MPI linked into it?"
            )
        if self._sites and not self._library.omb_py_sites():
            raise OmbError(
                "--call-sites needs Python's stable ABI of 3.10 or later, which this process has "
                "not: leave it out"
            )
        error = self._library.omb_py_open(os.fsencode(file.path))
        if error:
            raise OmbError(f"cannot map {file.path}: {os.strerror(error)}")

    def pause(self) -> None:
        """Record nothing from now on."""
        self._library.omb_py_pause(1)

    def enter(self, routine: str) -> None:
        """Publish that this thread is in a routine which nobody records."""
        self._library.omb_py_enter(self.name(routine))

    def name(self, text: str) -> int:
        """Return the number of a name, which is written when it is new; 0 when there is no room."""
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
