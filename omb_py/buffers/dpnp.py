"""Arrays of dpnp on a device of SYCL: of Intel, or whatever ONEAPI_DEVICE_SELECTOR selects."""

from __future__ import annotations

import ctypes
import hashlib
import os
from functools import partial
from typing import Any, Self

import numpy as np

from omb_py.buffers import LONG_DOUBLES, PAGE, Device
from omb_py.buffers.device import DeviceBuffer
from omb_py.buffers.device.drivers import Driver
from omb_py.core.errors import MissingError, OmbError, OutOfMemoryError, UnsupportedError
from omb_py.core.memory import Local

SELECTOR = "ONEAPI_DEVICE_SELECTOR"

MEMORY_KINDS = {"level_zero": "level_zero", "cuda": "cuda", "hip": "rocm"}
"""MPI's kinds of memory, by the backends of SYCL that have one."""

LACKING = {"has_aspect_fp16": {"float16"}, "has_aspect_fp64": {"float64", "complex128"}}
"""NumPy's types that a device without an aspect lacks."""


def chosen_devices() -> list[Any]:
    """Return SYCL's GPUs, each once, or all devices of a selector that selects no GPU.

    A GPU of Intel is one of Level Zero and one of OpenCL, whose memory no MPI library knows.
    """
    import dpctl

    found = dpctl.get_devices()
    gpus = [device for device in found if device.is_gpu]
    known = [device for device in gpus if device.backend.name in MEMORY_KINDS]
    return known or gpus or (found if SELECTOR in os.environ else [])


def queue_of(number: int) -> Any:
    """Return the queue in which dpnp works on a device; the same in every call."""
    import dpctl

    return dpctl.get_device_cached_queue(chosen_devices()[number])


class Sycl(Driver):
    """SYCL's runtime by dpctl, and the queue of the device that was chosen.

    Bare addresses are copied by dpctl's C library; its Python functions take objects only.
    """

    kind = "sycl"

    def __init__(self) -> None:
        import dpctl.memory

        self._dpctl: Any = dpctl
        self._pinned: dict[int, Any] = {}
        self._library = ctypes.CDLL(f"{os.path.dirname(dpctl.__file__)}/libDPCTLSyclInterface.so")

    @classmethod
    def load(cls) -> Self:
        if not chosen_devices():
            raise MissingError(
                "SYCL finds no GPU (for its processor device, install intel-opencl-rt and set "
                f"{SELECTOR}=*:cpu)"
            )
        return cls()

    def devices(self) -> int:
        return len(chosen_devices())

    def activate(self, number: int) -> Device:
        self._queue = queue_of(number)
        device = self._queue.sycl_device
        mask = os.environ.get("ZE_AFFINITY_MASK", "")  # each rank's own devices begin at 0
        place = f"{mask} {device.filter_string}".encode()
        identity = hashlib.blake2s(place, digest_size=16).hexdigest()
        backend = device.backend.name
        kind = "" if device.is_cpu else MEMORY_KINDS.get(backend, backend)
        return Device(number, device.name, identity, device.global_mem_size, kind, "SYCL")

    def cache_size(self, number: int) -> int:
        return int(self._queue.sycl_device.global_mem_cache_size)

    def versions(self) -> dict[str, str]:
        device = self._queue.sycl_device
        return {
            "dpctl": self._dpctl.__version__,
            "sycl_backend": device.backend.name,
            "sycl_driver": device.driver_version,
        }

    def copying(self, target: int, source: int, nbytes: int) -> Local:
        return self._local("DPCTLQueue_Memcpy", target, source, nbytes)

    def filling(self, address: int, nbytes: int) -> Local:
        return self._local("DPCTLQueue_Memset", address, 1, nbytes)

    def synchronize(self) -> None:
        self._queue.wait()

    def wait(self) -> Local:
        return Local("queue.wait", self._queue.wait)

    def pinned(self, nbytes: int) -> int:
        try:
            memory = self._dpctl.memory.MemoryUSMHost(nbytes, alignment=PAGE, queue=self._queue)
        except self._dpctl.memory.USMAllocationError as error:
            raise OutOfMemoryError(f"SYCL cannot allocate {nbytes} bytes: lower -m") from error
        self._pinned[memory._pointer] = memory
        return int(memory._pointer)

    def free_pinned(self, address: int) -> None:
        del self._pinned[address]

    def place_pages(self, address: int, nbytes: int, number: int | None) -> None:
        if nbytes and number is None:
            raise UnsupportedError("SYCL keeps no pages on the host: use D, MD or --managed")
        if nbytes:
            self._local("DPCTLQueue_Prefetch", address, nbytes).run()

    def _local(self, name: str, *arguments: int) -> Local:
        """Return a call of dpctl that gives an event, and the wait for that."""
        words = map(ctypes.c_uint64, (self._queue.addressof_ref(), *arguments))
        return Local(name, partial(self._call, name, *words))

    def _call(self, name: str, *words: ctypes.c_uint64) -> None:
        self._queue.wait()  # it has no order, so that a copy could pass what is to be copied
        start, wait = getattr(self._library, name), self._library.DPCTLEvent_Wait
        start.restype = ctypes.c_void_p
        event = ctypes.c_void_p(start(*words))
        if not event:
            raise OmbError(f"{name} failed; look at sycl-ls, or use --buffer numpy")
        wait(event)
        self._library.DPCTLEvent_Delete(event)


class Exported:
    """An array as mpi4py takes it: by DLPack, without CUDA's stream, which dpnp refuses."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__dlpack_device__ = array.__dlpack_device__

    def __dlpack__(self, stream: Any = None, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)


class Dpnp(DeviceBuffer):
    """Arrays of ``dpnp.empty``, in device memory or shared memory of SYCL."""

    name = "dpnp"
    packages = ("dpnp",)
    extra = "sycl"
    drivers = (Sycl,)
    like_numpy = False

    def start(self, number: int) -> None:
        import dpnp

        self._dpnp: Any = dpnp
        self._queue = queue_of(number)
        aspects = self._queue.sycl_device
        lacking = (types for name, types in LACKING.items() if not getattr(aspects, name))
        self.lacks = LONG_DOUBLES.union(*lacking)

    def empty(self, nbytes: int) -> Any:
        return self._dpnp.empty(nbytes, dtype="u1", sycl_queue=self._queue)

    def managed(self, nbytes: int) -> Any:
        return self._dpnp.empty(nbytes, dtype="u1", usm_type="shared", sycl_queue=self._queue)

    def out_of_memory(self, error: Exception) -> bool:
        return type(error).__name__ == "USMAllocationError"

    def typed(self, array: Any, dtype: str) -> Any:
        from dpctl.memory import as_usm_memory

        # not array.view, which begins where the sliced array does (dpnp#3036, in 0.20)
        elements = array.shape[0] // np.dtype(dtype).itemsize
        return self._dpnp.ndarray(elements, dtype, buffer=as_usm_memory(array))

    def for_mpi(self, array: Any) -> Exported:
        return Exported(array)

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def versions(self) -> dict[str, str]:
        return {"dpnp": self._dpnp.__version__}

    def payload(self, array: Any) -> Any:
        raise UnsupportedError("dpnp's arrays cannot be pickled: use --binding buffer")

    def module(self) -> Any:
        return self._dpnp

    def computed(self, array: Any, address: int, dtype: str) -> Any:
        return self.typed(array, dtype)


BUFFER = Dpnp()
