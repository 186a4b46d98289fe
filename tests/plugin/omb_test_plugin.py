"""Buffers from outside the package: anonymous mapped memory, plain and shown as a device's."""

from __future__ import annotations

import ctypes
import mmap
import resource
import sys
from collections.abc import Sequence

from omb_py.buffers import Buffer
from omb_py.buffers.bytearray import BytearrayMemory
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import OutOfMemoryError


class MappedBuffer(Buffer):
    name = "mapped"

    def allocate(self, nbytes: int, datatype: Datatype) -> BytearrayMemory:
        return BytearrayMemory(memoryview(mmap.mmap(-1, max(1, nbytes)))[:nbytes])

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


class InterfaceMemory(BytearrayMemory):
    """Host memory that only says what device memory says."""

    def __init__(self, view: memoryview) -> None:
        super().__init__(view)
        self.host = BytearrayMemory(view)
        self.array = DeviceArray(view)

    def slice(self, start: int, nbytes: int) -> InterfaceMemory:
        return InterfaceMemory(self.host.array[start : start + nbytes])

    def fill(self, tile: bytes) -> None:
        self.host.fill(tile)

    def first_difference(self, tile: bytes) -> int | None:
        return self.host.first_difference(tile)

    def read(self, start: int, nbytes: int) -> bytes:
        return self.host.read(start, nbytes)

    def view(self) -> memoryview:
        return self.host.view()


class InterfaceBuffer(MappedBuffer):
    name = "interface"

    def allocate(self, nbytes: int, datatype: Datatype) -> InterfaceMemory:
        return InterfaceMemory(super().allocate(nbytes, datatype).array)


class BlindMemory(BytearrayMemory):
    """Memory whose comparison never finds a difference."""

    def slice(self, start: int, nbytes: int) -> BlindMemory:
        return BlindMemory(self.array[start : start + nbytes])

    def first_difference(self, tile: bytes) -> int | None:
        return None


class BlindBuffer(MappedBuffer):
    name = "blind"

    def allocate(self, nbytes: int, datatype: Datatype) -> BlindMemory:
        return BlindMemory(super().allocate(nbytes, datatype).array)


class LimitedBuffer(MappedBuffer):
    """One after whose first allocation no file of this process may grow beyond 1000 bytes."""

    name = "limited"

    def allocate(self, nbytes: int, datatype: Datatype) -> BytearrayMemory:
        sys.dont_write_bytecode = True  # else a module that is imported next is cached in part
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        return super().allocate(nbytes, datatype)


class RankedBuffer(MappedBuffer):
    """One that knows its rank."""

    def prepare(self, local_rank: int, devices: Sequence[int] = ()) -> Buffer:
        self._rank = local_rank
        return self


class ShiftedBuffer(RankedBuffer):
    """Memory that begins 7 bytes after a page, on rank 1 only."""

    name = "shifted"

    def allocate(self, nbytes: int, datatype: Datatype) -> BytearrayMemory:
        shift = 7 * self._rank
        return super().allocate(nbytes + shift, datatype).slice(shift, nbytes)


class ScarceBuffer(RankedBuffer):
    """No memory on rank 1."""

    name = "scarce"

    def allocate(self, nbytes: int, datatype: Datatype) -> BytearrayMemory:
        if self._rank == 1:
            raise OutOfMemoryError(f"there are no {nbytes} bytes here: lower -m")
        return super().allocate(nbytes, datatype)


MAPPED = MappedBuffer()
BLIND = BlindBuffer()
LIMITED = LimitedBuffer()
SHIFTED = ShiftedBuffer()
SCARCE = ScarceBuffer()
INTERFACE = InterfaceBuffer()
