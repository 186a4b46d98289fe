"""PyCUDA's arrays on an NVIDIA device, in its primary context."""

from __future__ import annotations

from typing import Any

import numpy as np

from omb_py.buffers.device import GpuBuffer, Library


class Pycuda(Library):
    """``pycuda.gpuarray.empty``.

    ``pycuda.autoinit`` would make a context of its own, on device 0.
    """

    def __init__(self, device: int) -> None:
        import pycuda.driver as driver
        from pycuda import gpuarray

        driver.init()
        self._driver: Any = driver
        self._arrays: Any = gpuarray
        self._context = driver.Device(device).retain_primary_context()
        self._context.push()

    def empty(self, nbytes: int) -> Any:
        return self._arrays.empty(nbytes, np.uint8)

    def managed(self, nbytes: int) -> Any:
        everywhere = self._driver.mem_attach_flags.GLOBAL
        return self._driver.managed_empty(nbytes, np.uint8, mem_flags=everywhere)

    def out_of_memory(self, error: Exception) -> bool:
        return isinstance(error, self._driver.MemoryError)

    def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        runtime = ".".join(str(part) for part in self._driver.get_version()[:2])
        return {"pycuda": version("pycuda"), "cuda_runtime": runtime}

    def close(self) -> None:
        self._context.pop()


BUFFER = GpuBuffer("pycuda", ("pycuda",), "pycuda", Pycuda)
