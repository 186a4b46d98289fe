"""Files that benchmarks write and read: whether all ranks see them, and what is in them."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.core.job import Job
from omb_py.core.memory import Memory
from omb_py.core.text.files import failing


def check_place(job: Job, file: str, shared: bool = True) -> None:
    """Raise `UsageError` on all ranks if a rank's ``file`` exists; collective.

    Also if it is ``shared`` and they do not share its folder. An existing file is not left to MPI:
    Open MPI 5.0.11 deletes it when opening fails, with MODE_EXCL and MODE_DELETE_ON_CLOSE.
    """
    if shared:
        check_folder(job, file)
    first = job.first_of(os.path.lexists(file) and (job.rank == 0 or not shared))
    if first < job.ranks:
        file = job.text_of(file, first)
        raise UsageError(f"--file {file} exists: name a file that does not")


def check_folder(job: Job, file: str) -> None:
    """Raise `UsageError` on all ranks if one does not see what rank 0 makes next to ``file``.

    Collective. If rank 0 cannot make it, the error comes from MPI later.
    """
    from tempfile import mkstemp

    made = ""
    if job.rank == 0:
        with contextlib.suppress(OSError):
            folder = os.path.dirname(os.path.abspath(file))
            descriptor, made = mkstemp(prefix=".omb-py-", dir=folder)
            os.close(descriptor)
    name = job.text_of(made, 0)
    first = job.first_of(bool(name) and not os.path.exists(name))
    if made:
        with contextlib.suppress(OSError):
            os.unlink(made)
    if first < job.ranks:
        host = job.text_of(os.uname().nodename, first)
        raise UsageError(
            f"--file {file}: rank {first} on {host} does not see what rank 0 writes beside it: "
            "name a file in a folder that all hosts share"
        )


CHUNK = 1 << 20


class FileMemory(Memory):
    """Bytes of a file, read and written around MPI."""

    def __init__(self, path: str, start: int, nbytes: int) -> None:
        self.array = None
        self.nbytes = nbytes
        self._path = path
        self._start = start

    def slice(self, start: int, nbytes: int) -> FileMemory:
        return FileMemory(self._path, self._start + start, nbytes)

    def fill(self, tile: bytes) -> None:
        """Raise `OmbError` if the file cannot be written, such as on a full disk."""
        advice = "; see whether there is room, or name another --file"
        with failing("write", self._path, advice=advice), open(self._path, "r+b") as file:
            file.seek(self._start)
            for start in range(0, self.nbytes, CHUNK):
                file.write(part_of(tile, start, min(CHUNK, self.nbytes - start)))

    def first_difference(self, tile: bytes) -> int | None:
        for start in range(0, self.nbytes, CHUNK):
            length = min(CHUNK, self.nbytes - start)
            found, wanted = self.read(start, length), part_of(tile, start, length)
            if found != wanted:
                padded = found.ljust(length, b"\0")
                return start + next(i for i in range(length) if padded[i] != wanted[i])
        return None

    def read(self, start: int, nbytes: int) -> bytes:
        with open(self._path, "rb") as file:
            return os.pread(file.fileno(), nbytes, self._start + start)

    def write(self, data: Any) -> None:
        raw = bytes(data)
        if len(raw) != self.nbytes:
            raise ValueError(f"{len(raw)} bytes arrived instead of {self.nbytes}")
        with open(self._path, "r+b") as file:
            os.pwrite(file.fileno(), raw, self._start)


def part_of(tile: bytes, start: int, length: int) -> bytes:
    """Return ``length`` bytes of the repeated tile, from byte ``start`` of the repetition on."""
    offset = start % len(tile)
    return (tile * (length // len(tile) + 2))[offset : offset + length]
