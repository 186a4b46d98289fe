"""A buffer from outside the package: anonymous mapped memory."""

from __future__ import annotations

import mmap
from typing import Any

from omb_py.buffers import Buffer, Memory
from omb_py.datatypes import Datatype


class MappedMemory(Memory):
    """A view into an ``mmap``, which the kernel aligns to the page."""

    adds = False

    def __init__(self, view: memoryview) -> None:
        self.array = view
        self.nbytes = view.nbytes

    def slice(self, start: int, nbytes: int) -> MappedMemory:
        return MappedMemory(self.array[start : start + nbytes])

    def fill(self, tile: bytes) -> None:
        self.array[:] = (tile * (self.nbytes // len(tile) + 1))[: self.nbytes]

    def first_difference(self, tile: bytes) -> int | None:
        wanted = (tile * (self.nbytes // len(tile) + 1))[: self.nbytes]
        return next((i for i in range(self.nbytes) if self.array[i] != wanted[i]), None)

    def read(self, start: int, nbytes: int) -> bytes:
        return bytes(self.array[start : start + nbytes])

    def write(self, data: Any) -> None:
        self.array[:] = data

    def payload(self) -> bytes:
        return bytes(self.array)


class MappedBuffer(Buffer):
    name = "mapped"

    def allocate(self, nbytes: int, datatype: Datatype) -> MappedMemory:
        return MappedMemory(memoryview(mmap.mmap(-1, max(1, nbytes)))[:nbytes])

    def describe(self) -> dict[str, str]:
        return {"mapped": "1.0"}


MAPPED = MappedBuffer()
