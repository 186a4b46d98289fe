"""A stand-in for CuPy on the stand-in for the driver: as much of it as the suite calls.

The real one cannot run without a GPU. This shows that calls reach it in its own names and order
(those of CuPy 14), never what it does with them.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
from cupy import cuda
from cupy.computing import Computed, function
from omb_test_device import Allocation, Array

__all__ = ["__version__", "cuda", "empty", "ndarray", "uint8"]
__version__ = "14.0-stand-in"
uint8 = np.uint8

CUDA, ROCM = 2, 10
"""Types of devices in DLPack (dlpack.h)."""


def __getattr__(name: str) -> Any:
    """A function of CuPy to compute with, or a type."""
    return function(name)


class ndarray(Array):  # noqa: N801 - CuPy's name
    """An array that tells its address as CuPy's do; at a pointer, one to compute with."""

    def __new__(cls, shape: int, dtype: Any, memptr: Any) -> Any:
        if isinstance(memptr, cuda.MemoryPointer):
            return Computed.at(memptr, shape, dtype)
        return super().__new__(cls)

    def __init__(self, shape: int, dtype: Any, memptr: Any) -> None:
        super().__init__(memptr, 0, shape, dtype)

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.allocation.address + self.start)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if cuda.runtime.is_hip:  # as CuPy before 14
            raise AttributeError("HIP/ROCm does not support cuda array interface")
        return super().__cuda_array_interface__

    def __dlpack_device__(self) -> tuple[int, int]:
        return (ROCM if cuda.runtime.is_hip else CUDA, 0)

    def __dlpack__(self, *, stream: int, **version: Any) -> Any:
        """NumPy's capsule of these bytes, which are not read."""
        assert stream == -1
        block = (ctypes.c_ubyte * self.nbytes).from_address(self.data.ptr)
        return np.ctypeslib.as_array(block).view(self.dtype).__dlpack__(**version)

    def _at(self, start: int, nbytes: int, dtype: Any) -> ndarray:
        other = ndarray(nbytes, dtype, self.allocation)
        other.start = start
        other.shape = (nbytes // np.dtype(dtype).itemsize,)
        return other

    def __getitem__(self, part: slice) -> ndarray:
        start, stop, _ = part.indices(self.nbytes)
        return self._at(self.start + start, stop - start, self.dtype)

    def view(self, dtype: Any) -> ndarray:
        return self._at(self.start, self.nbytes, dtype)


def empty(shape: Any, dtype: Any = float) -> Any:
    if dtype is not uint8:
        return function("empty")(shape, dtype)
    try:
        return ndarray(shape, dtype, Allocation(ctypes.CDLL(cuda.runtime.DRIVER), shape))
    except MemoryError:
        raise cuda.memory.OutOfMemoryError from None
