"""PyCUDA's arrays on an NVIDIA device, in its primary context."""

from __future__ import annotations

from typing import Any

import numpy as np

from omb_py.buffers.device import DeviceBuffer


class Pycuda(DeviceBuffer):
    """``pycuda.gpuarray.empty``.

    ``pycuda.autoinit`` would make a context of its own, on device 0.
    """

    name = "pycuda"
    packages = ("pycuda",)
    extra = "pycuda"

    def start(self, number: int) -> None:
        import pycuda.driver as driver
        from pycuda import gpuarray

        driver.init()
        self._pycuda: Any = driver
        self._arrays: Any = gpuarray
        self._primary = driver.Device(number).retain_primary_context()
        self._primary.push()

    def empty(self, nbytes: int) -> Any:
        return self._arrays.empty(nbytes, np.uint8)

    def managed(self, nbytes: int) -> Any:
        everywhere = self._pycuda.mem_attach_flags.GLOBAL
        return self._pycuda.managed_empty(nbytes, np.uint8, mem_flags=everywhere)

    def out_of_memory(self, error: Exception) -> bool:
        return isinstance(error, self._pycuda.MemoryError)

    def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        runtime = ".".join(str(part) for part in self._pycuda.get_version()[:2])
        return {"pycuda": version("pycuda"), "cuda_runtime": runtime}

    def close(self) -> None:
        self._primary.pop()
        super().close()


BUFFER = Pycuda()
