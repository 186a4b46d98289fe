"""CuPy arrays on a device of NVIDIA or AMD, from CuPy's memory pool."""

from __future__ import annotations

from typing import Any

from omb_py.buffers import LONG_DOUBLES
from omb_py.buffers.device import NVIDIA_OR_AMD, DeviceBuffer


class Cupy(DeviceBuffer):
    """Arrays of ``cupy.empty``, in memory of CuPy's pool."""

    name = "cupy"
    packages = ("cupy",)
    extra = "cu{cuda}"
    drivers = NVIDIA_OR_AMD
    lacks = LONG_DOUBLES

    def start(self, number: int) -> None:
        import cupy

        self._cupy: Any = cupy
        cupy.cuda.Device(number).use()

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
        found = {"cupy": self._cupy.__version__}
        runtime = self._cupy.cuda.runtime
        if not runtime.is_hip:  # HIP is its own driver, which tells
            version = runtime.runtimeGetVersion()
            found["cuda_runtime"] = f"{version // 1000}.{version % 1000 // 10}"
        return found


BUFFER = Cupy()
