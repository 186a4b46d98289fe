"""Python's own ``bytearray``: no array library at all."""

from __future__ import annotations

from typing import Any

from omb_py.buffers import PAGE, Buffer
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import OutOfMemoryError
from omb_py.core.memory import Memory


class BytearrayMemory(Memory):
    """A view into a bytearray, since a bytearray itself cannot be aligned."""

    adds = False
    typed = False

    def __init__(self, view: memoryview) -> None:
        self.array = view
        self.nbytes = view.nbytes

    def slice(self, start: int, nbytes: int) -> BytearrayMemory:
        return BytearrayMemory(self.array[start : start + nbytes])

    def fill(self, tile: bytes) -> None:
        self.array[:] = self._tiled(tile)

    def first_difference(self, tile: bytes) -> int | None:
        expected = self._tiled(tile)
        if self.array == expected:
            return None
        return next(i for i, byte in enumerate(self.array) if byte != expected[i])

    def read(self, start: int, nbytes: int) -> bytes:
        return bytes(self.array[start : start + nbytes])

    def write(self, data: Any) -> None:
        if len(data) != self.nbytes:
            raise ValueError(f"{len(data)} bytes arrived instead of {self.nbytes}")
        self.array[:] = data

    def view(self) -> memoryview:
        return memoryview(self.array)

    def payload(self) -> bytearray:
        return bytearray(self.array)

    def _tiled(self, tile: bytes) -> bytes:
        return (tile * (self.nbytes // len(tile) + 1))[: self.nbytes]


class BytearrayBuffer(Buffer):
    """Page-aligned view into a ``bytearray``; its elements are the bytes that a call names."""

    name = "bytearray"

    def allocate(self, nbytes: int, datatype: Datatype) -> BytearrayMemory:
        import ctypes

        try:
            raw = bytearray(nbytes + PAGE)
        except (MemoryError, OverflowError) as error:
            raise OutOfMemoryError(f"bytearray cannot allocate {nbytes} bytes: lower -m") from error
        start = -ctypes.addressof(ctypes.c_char.from_buffer(raw)) % PAGE
        return BytearrayMemory(memoryview(raw)[start : start + nbytes])

    def wrap(self, view: Any, datatype: Datatype) -> BytearrayMemory:
        return BytearrayMemory(memoryview(view).cast("B"))


BUFFER = BytearrayBuffer()
