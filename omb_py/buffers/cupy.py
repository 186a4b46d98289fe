"""CuPy arrays on an NVIDIA device, from CuPy's memory pool."""

from __future__ import annotations

from typing import Any

from omb_py.buffers.device import NOT_ON_DEVICES, CudaBuffer, Library


class Cupy(Library):
    """Arrays of ``cupy.empty``, in memory of CuPy's pool."""

    lacks = frozenset(NOT_ON_DEVICES)

    def __init__(self, device: int) -> None:
        import cupy

        self._cupy: Any = cupy
        cupy.cuda.Device(device).use()

    def empty(self, nbytes: int) -> Any:
        return self._cupy.empty(nbytes, self._cupy.uint8)

    def managed(self, nbytes: int) -> Any:
        pointer = self._cupy.cuda.malloc_managed(nbytes)
        return self._cupy.ndarray(nbytes, self._cupy.uint8, memptr=pointer)

    def out_of_memory(self, error: Exception) -> bool:
        return isinstance(error, self._cupy.cuda.memory.OutOfMemoryError)

    def address(self, array: Any) -> int:
        address: int = array.data.ptr
        return address

    def versions(self) -> dict[str, str]:
        runtime = self._cupy.cuda.runtime.runtimeGetVersion()
        return {
            "cupy": self._cupy.__version__,
            "cuda_runtime": f"{runtime // 1000}.{runtime % 1000 // 10}",
        }


BUFFER = CudaBuffer("cupy", ("cupy",), "cu{cuda}", Cupy)
