"""Buffers on the stand-in for a device: arrays of our own, and those of Numba's simulator."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from omb_py.buffers.device import NVIDIA_OR_AMD, DeviceBuffer
from omb_py.buffers.numba import Numba

OUT_OF_MEMORY = 2


class Allocation:
    """Memory of the driver, given back when nobody needs it any more."""

    def __init__(self, driver: ctypes.CDLL, nbytes: int) -> None:
        self.address = 0
        place = ctypes.c_uint64()
        if driver.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(nbytes)) == OUT_OF_MEMORY:
            raise MemoryError
        self.address = place.value
        self.free = driver.cuMemFree_v2

    def __del__(self) -> None:
        if self.address:
            self.free(ctypes.c_uint64(self.address))


class Array:
    """What array libraries show of an array on a device: its address, and no buffer protocol."""

    def __init__(self, allocation: Allocation, start: int, nbytes: int, dtype: Any) -> None:
        self.allocation = allocation
        self.start = start
        self.nbytes = nbytes
        self.dtype = np.dtype(dtype)
        self.shape = (nbytes // self.dtype.itemsize,)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.allocation.address + self.start, False),
            "version": 3,
            "strides": None,
        }

    def __getitem__(self, part: slice) -> Array:
        start, stop, _ = part.indices(self.nbytes)
        return Array(self.allocation, self.start + start, stop - start, self.dtype)

    def view(self, dtype: Any) -> Array:
        return Array(self.allocation, self.start, self.nbytes, dtype)


class Raw(DeviceBuffer):
    """Arrays as thin as they can be."""

    name = "raw"
    packages = ("numpy",)
    extra = "none"
    drivers = NVIDIA_OR_AMD

    def start(self, number: int) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")

    def empty(self, nbytes: int) -> Array:
        return Array(Allocation(self._library, nbytes), 0, nbytes, np.uint8)

    def managed(self, nbytes: int) -> Any:
        return np.empty(nbytes, np.uint8)

    def out_of_memory(self, error: Exception) -> bool:
        return isinstance(error, MemoryError)

    def versions(self) -> dict[str, str]:
        return {"raw": "1.0"}


class Simulated(Numba):
    """Numba's simulator (NUMBA_ENABLE_CUDASIM=1), whose arrays are on the host."""

    name = "simulated"

    def versions(self) -> dict[str, str]:
        return {"simulator": "numba"}


RAW = Raw()
SIMULATED = Simulated()
