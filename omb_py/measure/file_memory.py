"""A rank's part of a file as memory, so that it is filled and checked like any other."""

from __future__ import annotations

import os
from typing import Any

from omb_py.buffers import Memory

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
        with open(self._path, "r+b") as file:
            file.seek(self._start)
            for start in range(0, self.nbytes, CHUNK):
                file.write(_part(tile, start, min(CHUNK, self.nbytes - start)))

    def first_difference(self, tile: bytes) -> int | None:
        for start in range(0, self.nbytes, CHUNK):
            length = min(CHUNK, self.nbytes - start)
            found, wanted = self.read(start, length), _part(tile, start, length)
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


def _part(tile: bytes, start: int, length: int) -> bytes:
    """``length`` bytes of the repeated tile, from byte ``start`` of the repetition on."""
    offset = start % len(tile)
    return (tile * (length // len(tile) + 2))[offset : offset + length]
