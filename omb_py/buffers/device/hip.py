"""HIP, the runtime of AMD's devices: functions like CUDA's, by other names (HIP API reference)."""

from __future__ import annotations

import ctypes
from pathlib import Path

from omb_py.buffers.device.cuda import Cuda
from omb_py.buffers.device.driver import Driver
from omb_py.core.memory import Local

VERSION_FILE = Path("/sys/module/amdgpu/version")

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
    """The runtime of this process, and its current device."""

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
        if VERSION_FILE.is_file():
            found["amdgpu_driver"] = VERSION_FILE.read_text(errors="replace").strip()
        return found

    def copying(self, target: int, source: int, nbytes: int) -> Local:
        return self._local("cuMemcpy", target, source, nbytes, MEMCPY_DEFAULT)

    def explain(self, code: int) -> str:
        describe = self._library.hipGetErrorString
        describe.restype = ctypes.c_char_p
        text: bytes = describe(ctypes.c_int(code)) or b"unknown error"
        return f"{text.decode(errors='replace')} (HIP error {code})"
