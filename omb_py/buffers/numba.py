"""Numba's arrays on an NVIDIA device."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from omb_py.buffers.device import DeviceBuffer
from omb_py.core.errors import UnsupportedError

OUT_OF_MEMORY = 2


class Numba(DeviceBuffer):
    """Arrays of ``numba.cuda.device_array``."""

    name = "numba"
    packages = ("numba", "numba_cuda")
    extra = "cu{cuda}"

    def start(self, number: int) -> None:
        from numba import cuda

        self._cuda: Any = cuda
        self._cuda.select_device(number)

    def empty(self, nbytes: int) -> Any:
        return self._cuda.device_array(nbytes, np.uint8)

    def managed(self, nbytes: int) -> Any:
        return self._cuda.managed_array(nbytes, np.uint8)

    def out_of_memory(self, error: Exception) -> bool:
        return getattr(error, "code", None) == OUT_OF_MEMORY

    def typed(self, array: Any, dtype: str) -> Any:
        if isinstance(array, np.ndarray):  # managed; its own view fails on slices of it
            return np.ndarray.view(array, np.dtype(dtype))
        return super().typed(array, dtype)

    def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        found = {name: version(name) for name in ("numba", "numba-cuda")}
        with suppress(ImportError, OSError, RuntimeError):  # only a toolkit tells it
            runtime = self._cuda.runtime.get_version()
            found["cuda_runtime"] = ".".join(str(part) for part in runtime)
        return found

    def payload(self, array: Any) -> Any:
        raise UnsupportedError(
            "Numba's device arrays cannot be pickled: use --binding buffer, or --buffer cupy"
        )


BUFFER = Numba()
