"""Drivers of devices, as far as memory on them needs it: one way for every array library.

CUDA's driver and HIP's runtime are called by ctypes, so that no package is needed and a rank's
context exists before any library is imported, and before MPI is started.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from omb_py.buffers import Device
from omb_py.core.dataclass import replace
from omb_py.core.errors import MissingError, OmbError, OutOfMemoryError, UnsupportedError
from omb_py.core.memory import Local

NVIDIA_VERSION_FILE = Path("/proc/driver/nvidia/version")
AMD_VERSION_FILE = Path("/sys/module/amdgpu/version")


class Driver(ABC):
    """A driver of this process, and the device that is current.

    ``kind`` is native OMB's word for its devices, in lower case.
    """

    kind: str

    @classmethod
    @abstractmethod
    def load(cls) -> Self:
        """Return the driver, started; raises `MissingError` without one, or without a device."""

    @abstractmethod
    def devices(self) -> int:
        """Return the number of devices that this process sees; 0 if the driver reports an error."""

    @abstractmethod
    def activate(self, number: int) -> Device:
        """Make a device current, and tell what it is."""

    def enter(self) -> None:  # noqa: B027 - not every driver has a current device
        """Make the device of `activate` current in this thread."""

    def context(self) -> int | None:
        """Return the handle of this thread's current context, for `return_to`; None without one."""
        return None

    def return_to(self, context: int) -> None:  # noqa: B027
        """Make a ``context`` of `context` current in this thread again."""

    @abstractmethod
    def cache_size(self, number: int) -> int:
        """Return the bytes of the last cache of a device."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return the versions of the driver and of its runtime."""

    @abstractmethod
    def copying(self, target: int, source: int, nbytes: int) -> Local:
        """Return a copy of bytes between any two addresses, on a device or not."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes between any two addresses, on a device or not."""
        if nbytes:
            self.copying(target, source, nbytes).run()

    @abstractmethod
    def filling(self, address: int, nbytes: int) -> Local:
        """Return a step that writes every byte of device memory."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until the device has done all that this process asked of it."""

    @abstractmethod
    def wait(self) -> Local:
        """Return a wait for the stream or queue that array libraries use by default."""

    @abstractmethod
    def pinned(self, nbytes: int) -> int:
        """Return the address of new page-aligned host memory, which devices can copy directly.

        Raises `OutOfMemoryError`. It is given back with `free_pinned`.
        """

    @abstractmethod
    def free_pinned(self, address: int) -> None:
        """Give back memory of `pinned`."""

    @abstractmethod
    def place_pages(self, address: int, nbytes: int, number: int | None) -> None:
        """Have pages of managed memory stay on a device, or for None on the host, and go there."""

    def compute(self, times: int) -> tuple[Local, Local]:
        """Return a chain of ``times`` steps of work: its launch, and the wait for its end.

        Raises `UnsupportedError` if there is no such work for the device.
        """
        raise UnsupportedError("-r gpu and -r both compute on NVIDIA devices only: use -r cpu")


Loaded = TypeVar("Loaded", bound=Driver)


def load(drivers: Sequence[type[Loaded]]) -> Loaded:
    """Return the first driver that works here; raises `MissingError` if none does."""
    reasons = []
    for one in drivers:
        try:
            return one.load()
        except MissingError as error:
            reasons.append(str(error))
    raise MissingError(f"{', '.join(reasons)}: run on a node with a GPU, or use --buffer numpy")


OUT_OF_MEMORY = 2
WITHOUT_DEVICE = (0, 100, 101)
"""What a start without devices returns: CUDA_ERROR_NO_DEVICE; HIP 5 says that one is invalid."""

PREFER_LOCATION = 3
HOST = -1

word = ctypes.c_uint64

WORK = b"""\
.version 6.0
.target sm_50
.address_size 64

.visible .entry compute(
    .param .u64 times,
    .param .u64 result
)
{
    .reg .pred %done, %negative;
    .reg .f32 %value;
    .reg .u64 %index, %times, %result;

    ld.param.u64 %times, [times];
    ld.param.u64 %result, [result];
    mov.u64 %index, 0;
    mov.f32 %value, 0f3F800000;
again:
    setp.ge.u64 %done, %index, %times;
    @%done bra end;
    fma.rn.f32 %value, %value, 0f3F400000, 0f3E99999A;
    add.u64 %index, %index, 1;
    bra again;
end:
    setp.lt.f32 %negative, %value, 0f00000000;
    @!%negative bra out;
    st.global.f32 [%result], %value;
out:
    ret;
}
\0"""
"""A kernel that computes for a time, in PTX, which the driver itself compiles for its device.

    for (i = 0; i < times; i++) value = value * 0.75 + 0.3;
    if (value < 0) *result = value;

The store never happens; without it the driver's compiler would leave the chain out.
"""


class Cuda(Driver):
    """CUDA's driver, and the device whose primary context is current."""

    what = "CUDA driver"
    kind = "cuda"
    libraries: tuple[str, ...] = ("libcuda.so.1",)
    look_at = "nvidia-smi and CUDA_VISIBLE_DEVICES"
    l2_cache = 38

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._context, self._work = ctypes.c_void_p(), ctypes.c_void_p()

    @classmethod
    def load(cls) -> Self:
        for name in cls.libraries:
            with suppress(OSError):
                driver = cls(ctypes.CDLL(name))
                break
        else:
            name = Path(cls.libraries[0]).name
            raise MissingError(f"no {cls.what} here ({name} cannot be loaded)")
        code = driver._function("cuInit")(0)
        if driver.devices() == 0:
            why = "no device is visible" if code in WITHOUT_DEVICE else driver.explain(code)
            raise MissingError(f"the {cls.what} cannot be used ({why}; look at {cls.look_at})")
        return driver

    def devices(self) -> int:
        count = ctypes.c_int(0)
        if self._function("cuDeviceGetCount")(ctypes.byref(count)):
            return 0
        return count.value

    def activate(self, number: int) -> Device:
        device, memory = ctypes.c_int(), ctypes.c_size_t()
        name, identity = ctypes.create_string_buffer(256), ctypes.create_string_buffer(16)
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(number))
        self._retain(device)
        self.enter()
        self._call("cuDeviceGetName", name, ctypes.c_int(len(name)), device)
        self._call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        newer = hasattr(self._library, "cuDeviceGetUuid_v2")
        self._call("cuDeviceGetUuid_v2" if newer else "cuDeviceGetUuid", identity, device)
        text = name.value.decode(errors="replace")
        return Device(number, text, identity.raw.hex(), memory.value, self.kind, self.kind.upper())

    def _retain(self, device: ctypes.c_int) -> None:
        """Make what `enter` makes current; here the primary context, which libraries share."""
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)

    def enter(self) -> None:
        self._call("cuCtxSetCurrent", self._context)

    def context(self) -> int | None:
        context = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value

    def return_to(self, context: int) -> None:
        self._call("cuCtxSetCurrent", ctypes.c_void_p(context))

    def cache_size(self, number: int) -> int:
        size = ctypes.c_int()
        which, device = ctypes.c_int(self.l2_cache), ctypes.c_int(number)
        self._call("cuDeviceGetAttribute", ctypes.byref(size), which, device)
        return size.value

    def versions(self) -> dict[str, str]:
        """Return the driver's version, if the system has it, and the latest CUDA it can run."""
        cuda = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(cuda))
        found = {"cuda_driver": f"{cuda.value // 1000}.{cuda.value % 1000 // 10}"}
        if NVIDIA_VERSION_FILE.is_file():
            words = NVIDIA_VERSION_FILE.read_text(errors="replace").split()
            found["nvidia_driver"] = next((w for w in words if w[:1].isdigit()), "unknown")
        return found

    def copying(self, target: int, source: int, nbytes: int) -> Local:
        return self._local("cuMemcpy", target, source, nbytes)

    def filling(self, address: int, nbytes: int) -> Local:
        return self._local("cuMemsetD8_v2", address, 1, nbytes)

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")

    def wait(self) -> Local:
        return self._local("cuStreamSynchronize", 0)

    def pinned(self, nbytes: int) -> int:
        address = ctypes.c_void_p()
        flags = ctypes.c_uint(0)
        self._call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(nbytes), flags)
        return address.value or 0

    def free_pinned(self, address: int) -> None:
        self._function("cuMemFreeHost")(ctypes.c_void_p(address))

    def allocate(self, nbytes: int) -> int:
        """Return the address of new device memory; raises `OutOfMemoryError`; see `free`."""
        address = word()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        return address.value

    def free(self, address: int) -> None:
        """Give back memory of `allocate`."""
        self._call("cuMemFree_v2", word(address))

    def place_pages(self, address: int, nbytes: int, number: int | None) -> None:
        if nbytes == 0:
            return
        where = ctypes.c_int(HOST if number is None else number)
        length = ctypes.c_size_t(nbytes)
        self._call("cuMemAdvise", word(address), length, ctypes.c_int(PREFER_LOCATION), where)
        self._call("cuMemPrefetchAsync", word(address), length, where, None)
        self.synchronize()

    def explain(self, code: int) -> str:
        """Return the driver's description of an error."""
        text = ctypes.c_char_p()
        self._library.cuGetErrorString(ctypes.c_int(code), ctypes.byref(text))
        return f"{(text.value or b'unknown error').decode(errors='replace')} (CUDA error {code})"

    def compute(self, times: int) -> tuple[Local, Local]:
        if not self._work:
            module = ctypes.c_void_p()
            self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(WORK))
            name = ctypes.c_char_p(b"compute")
            self._call("cuModuleGetFunction", ctypes.byref(self._work), module, name)
        values = word(times), word(0)
        parameters = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
        one_thread = (1, 1, 1, 1, 1, 1, 0)
        given = (self._work.value or 0, *one_thread, 0, ctypes.addressof(parameters), 0)
        launch = self._local("cuLaunchKernel", *given)
        return replace(launch, kept=(values, parameters)), self.wait()

    def name_of(self, function: str) -> str:
        """Return the library's name of one of CUDA's functions."""
        return function

    def _function(self, name: str) -> Any:
        return getattr(self._library, self.name_of(name))

    def _local(self, name: str, *arguments: int) -> Local:
        """Return a call of a function whose arguments are words, to be made later."""
        run = partial(self._call, name, *(word(argument) for argument in arguments))
        address = ctypes.cast(self._function(name), ctypes.c_void_p).value or 0
        return Local(self.name_of(name), run, address, arguments)

    def _call(self, name: str, *arguments: Any) -> None:
        code = self._function(name)(*arguments)
        name = self.name_of(name)
        if code == OUT_OF_MEMORY:
            raise OutOfMemoryError(f"{name}: {self.explain(code)}: lower -m")
        if code:
            look = self.look_at.partition(" ")[0]
            raise OmbError(
                f"{name} failed: {self.explain(code)}; look at {look}, or use --buffer numpy"
            )


MEMCPY_DEFAULT = 4
"""hipMemcpyDefault: addresses tell the direction."""

NAMES = {
    "cuDeviceGetCount": "hipGetDeviceCount",
    "cuCtxSynchronize": "hipDeviceSynchronize",
    "cuMemHostAlloc": "hipHostMalloc",
    "cuMemFreeHost": "hipHostFree",
    "cuMemAlloc_v2": "hipMalloc",
    "cuMemFree_v2": "hipFree",
}
"""HIP's names of functions that differ from CUDA's by more than the prefix and the version."""


class Hip(Cuda):
    """HIP, the runtime of AMD's devices: functions like CUDA's, by other names.

    Source: HIP API reference.
    """

    what = "HIP runtime"
    kind = "rocm"
    libraries: tuple[str, ...] = ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6")
    look_at = "rocm-smi and ROCR_VISIBLE_DEVICES"
    l2_cache = 19
    compute = Driver.compute

    def name_of(self, function: str) -> str:
        return NAMES.get(function, f"hip{function[2:].removesuffix('_v2')}")

    def _retain(self, device: ctypes.c_int) -> None:
        self._device = device

    def enter(self) -> None:
        self._call("cuSetDevice", self._device)

    def context(self) -> int:
        device = ctypes.c_int()
        self._call("cuGetDevice", ctypes.byref(device))
        return device.value

    def return_to(self, context: int) -> None:
        self._call("cuSetDevice", ctypes.c_int(context))

    def versions(self) -> dict[str, str]:
        """Return HIP's version and, if the system has it, that of the kernel's driver."""
        hip = ctypes.c_int()
        self._call("cuRuntimeGetVersion", ctypes.byref(hip))
        major, rest = divmod(hip.value, 10_000_000)
        found = {"hip_runtime": f"{major}.{rest // 100_000}.{rest % 100_000}"}
        if AMD_VERSION_FILE.is_file():
            found["amdgpu_driver"] = AMD_VERSION_FILE.read_text(errors="replace").strip()
        return found

    def copying(self, target: int, source: int, nbytes: int) -> Local:
        return self._local("cuMemcpy", target, source, nbytes, MEMCPY_DEFAULT)

    def explain(self, code: int) -> str:
        describe = self._library.hipGetErrorString
        describe.restype = ctypes.c_char_p
        text: bytes = describe(ctypes.c_int(code)) or b"unknown error"
        return f"{text.decode(errors='replace')} (HIP error {code})"
