"""The CUDA driver, as far as memory on a device needs it: one way for every array library.

It is called by ctypes, so that no package is needed and a rank's context exists before any library
is imported, and before MPI is started.
"""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path
from typing import Any

from omb_py.buffers import Device
from omb_py.core.dataclass import replace
from omb_py.core.errors import MissingError, OmbError, OutOfMemoryError
from omb_py.core.memory import Local

LIBRARY = "libcuda.so.1"
VERSION_FILE = Path("/proc/driver/nvidia/version")

OUT_OF_MEMORY = 2
NO_DEVICE = 100
PREFER_LOCATION = 3
L2_CACHE = 38
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


class Driver:
    """The driver of this process, and the device whose primary context is current."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._context, self._work = ctypes.c_void_p(), ctypes.c_void_p()

    @classmethod
    def load(cls) -> Driver:
        """Return the driver, started.

        Raises `MissingError` when the machine has none or it finds no device.
        """
        try:
            driver = cls(ctypes.CDLL(LIBRARY))
        except OSError:
            raise MissingError(
                f"no CUDA driver here ({LIBRARY} cannot be loaded): run on a node with an NVIDIA "
                "GPU, or use --buffer numpy"
            ) from None
        code = driver._library.cuInit(0)
        if code or driver.devices() == 0:
            why = "no device is visible" if code in (0, NO_DEVICE) else driver.explain(code)
            raise MissingError(
                f"the CUDA driver cannot be used: {why}; look at nvidia-smi and "
                "CUDA_VISIBLE_DEVICES, or use --buffer numpy"
            )
        return driver

    def devices(self) -> int:
        """Return the number of devices that this process sees; 0 if the driver reports an error."""
        count = ctypes.c_int(0)
        if self._library.cuDeviceGetCount(ctypes.byref(count)):
            return 0
        return count.value

    def activate(self, number: int) -> Device:
        """Make the primary context of a device current, and tell what the device is."""
        device, memory = ctypes.c_int(), ctypes.c_size_t()
        name, identity = ctypes.create_string_buffer(256), ctypes.create_string_buffer(16)
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(number))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self.enter()
        self._call("cuDeviceGetName", name, ctypes.c_int(len(name)), device)
        self._call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        newer = hasattr(self._library, "cuDeviceGetUuid_v2")
        self._call("cuDeviceGetUuid_v2" if newer else "cuDeviceGetUuid", identity, device)
        text = name.value.decode(errors="replace")
        return Device(number, text, identity.raw.hex(), memory.value)

    def enter(self) -> None:
        """Make the context of `activate` current in this thread; a new thread has none."""
        self._call("cuCtxSetCurrent", self._context)

    def context(self) -> int | None:
        """Return the context that is current in this thread; None without one."""
        context = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value

    def return_to(self, context: int) -> None:
        """Make a context current that was so before `activate`."""
        self._call("cuCtxSetCurrent", ctypes.c_void_p(context))

    def cache_size(self, number: int) -> int:
        """Return the bytes of the L2 cache of a device."""
        size = ctypes.c_int()
        self._call(
            "cuDeviceGetAttribute", ctypes.byref(size), ctypes.c_int(L2_CACHE), ctypes.c_int(number)
        )
        return size.value

    def versions(self) -> dict[str, str]:
        """Return the driver's version, if the system has it, and the latest CUDA it can run."""
        cuda = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(cuda))
        found = {"cuda_driver": f"{cuda.value // 1000}.{cuda.value % 1000 // 10}"}
        if VERSION_FILE.is_file():
            words = VERSION_FILE.read_text(errors="replace").split()
            found["nvidia_driver"] = next((w for w in words if w[:1].isdigit()), "unknown")
        return found

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes between any two addresses, on a device or not."""
        if nbytes:
            self.local("cuMemcpy", target, source, nbytes).run()

    def synchronize(self) -> None:
        """Wait until the device has done all that this process asked of it."""
        self._call("cuCtxSynchronize")

    def wait(self) -> Local:
        """Return a wait for the default stream, which array libraries use by default."""
        return self.local("cuStreamSynchronize", 0)

    def local(self, function: str, *arguments: int) -> Local:
        """Return a call of a driver's function whose arguments are words, to be made later."""
        run = partial(self._call, function, *(word(argument) for argument in arguments))
        address = ctypes.cast(getattr(self._library, function), ctypes.c_void_p).value or 0
        return Local(function, run, address, arguments)

    def pinned(self, nbytes: int) -> int:
        """Return the address of new page-aligned host memory, which devices can copy directly.

        Raises `OutOfMemoryError`. It is given back with `free_pinned`.
        """
        address = ctypes.c_void_p()
        flags = ctypes.c_uint(0)
        self._call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(nbytes), flags)
        return address.value or 0

    def free_pinned(self, address: int) -> None:
        self._library.cuMemFreeHost(ctypes.c_void_p(address))

    def allocate(self, nbytes: int) -> int:
        """Return the address of new device memory; raises `OutOfMemoryError`; see `free`."""
        address = word()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        return address.value

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", word(address))

    def settle(self, address: int, nbytes: int, number: int | None) -> None:
        """Have pages of managed memory stay on a device, or for None on the host, and go there."""
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
        """Return a chain of ``times`` steps of work: its launch, and the wait for its end."""
        if not self._work:
            module = ctypes.c_void_p()
            self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(WORK))
            name = ctypes.c_char_p(b"compute")
            self._call("cuModuleGetFunction", ctypes.byref(self._work), module, name)
        values = word(times), word(0)
        parameters = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
        one_thread = (1, 1, 1, 1, 1, 1, 0)
        given = (self._work.value or 0, *one_thread, 0, ctypes.addressof(parameters), 0)
        return replace(self.local("cuLaunchKernel", *given), kept=(values, parameters)), self.wait()

    def _call(self, function: str, *arguments: Any) -> None:
        code = getattr(self._library, function)(*arguments)
        if code == OUT_OF_MEMORY:
            raise OutOfMemoryError(f"{function}: {self.explain(code)}: lower -m")
        if code:
            raise OmbError(
                f"{function} failed: {self.explain(code)}; look at nvidia-smi, or use "
                "--buffer numpy"
            )
