"""Buffers from outside the package: anonymous mapped memory, plain and shown as a device's."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

from omb_py.buffers import Buffer
from omb_py.core.datatypes import Datatype
from omb_py.core.memory import Memory


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


class DeviceArray:
    """What CuPy and Numba show of an array on a device: its address, and no buffer protocol."""

    def __init__(self, view: memoryview) -> None:
        address = ctypes.addressof(ctypes.c_char.from_buffer(view)) if view.nbytes else 0
        self.view = view
        self.__cuda_array_interface__ = {
            "shape": (view.nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


class InterfaceMemory(MappedMemory):
    """Host memory that only says what device memory says."""

    def __init__(self, view: memoryview) -> None:
        super().__init__(view)
        self.host = MappedMemory(view)
        self.array = DeviceArray(view)

    def slice(self, start: int, nbytes: int) -> InterfaceMemory:
        return InterfaceMemory(self.host.array[start : start + nbytes])

    def fill(self, tile: bytes) -> None:
        self.host.fill(tile)

    def first_difference(self, tile: bytes) -> int | None:
        return self.host.first_difference(tile)

    def read(self, start: int, nbytes: int) -> bytes:
        return self.host.read(start, nbytes)


class InterfaceBuffer(MappedBuffer):
    name = "interface"

    def allocate(self, nbytes: int, datatype: Datatype) -> InterfaceMemory:
        return InterfaceMemory(super().allocate(nbytes, datatype).array)


MAPPED = MappedBuffer()
INTERFACE = InterfaceBuffer()
