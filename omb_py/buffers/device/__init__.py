"""Memory on a device, of any array library.

A library's module makes its arrays; filling and copying go through the driver, alike for all. Data
is checked on the host, outside of the time.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import partial
from importlib.util import find_spec
from typing import Any, Self
from weakref import finalize

import numpy as np

from omb_py.buffers import LONG_DOUBLES, PAGE, TIMES_CACHE, Buffer, Device
from omb_py.buffers.device.drivers import Cuda, Driver, Hip, load
from omb_py.buffers.numpy import BUFFER as NUMPY
from omb_py.buffers.numpy import NumpyMemory
from omb_py.core.dataclass import replace
from omb_py.core.datatypes import TYPES, Datatype
from omb_py.core.errors import (
    MissingError,
    MissingPackageError,
    OmbError,
    OutOfMemoryError,
    UnsupportedError,
    installing,
    installing_cuda,
)
from omb_py.core.memory import Local, Memory, Place, StagedMemory

NVIDIA_OR_AMD = (Cuda, Hip)
"""Drivers for libraries that have a build for each of them."""

CHECKED_AT_ONCE = 16 << 20
"""Bytes that are copied to the host at a time to be checked."""


class DeviceBuffer(Buffer):
    """An array library with arrays of bytes on a device, and the device once `prepare` chose it.

    A library derives a class, whose instance serves as the buffer. ``packages`` are what has to be
    installed, ``extra`` the extra that brings it; in that, ``{cuda}`` stands for the major version
    of CUDA that the driver can run. Its device is one of the first of ``drivers`` that works here.
    ``like_numpy`` is False if its functions are not enough like NumPy's for applications.
    ``context`` was current before the device was chosen; a program that measures returns to it.
    """

    packages: tuple[str, ...]
    extra: str
    drivers: tuple[type[Driver], ...] = (Cuda,)
    like_numpy = True
    place = Place.DEVICE
    driver: Driver
    device: Device
    context: int | None = None

    @property
    def accelerators(self) -> tuple[str, ...]:
        return tuple(driver.kind for driver in self.drivers)

    @abstractmethod
    def start(self, number: int) -> None:
        """Import the library and have it work on a device, in the device's primary context."""

    @abstractmethod
    def empty(self, nbytes: int) -> Any:
        """Return a new array of bytes on the device."""

    def managed(self, nbytes: int) -> Any:
        """Return a new array of bytes in managed memory; raises `UnsupportedError` without."""
        raise UnsupportedError("this library has no managed memory: use --buffer cupy")

    @abstractmethod
    def out_of_memory(self, error: Exception) -> bool:
        """Return whether an error of the library means that memory is full."""

    def typed(self, array: Any, dtype: str) -> Any:
        """Return the bytes of ``array`` as elements of a NumPy type, not copied."""
        return array.view(np.dtype(dtype))

    def for_mpi(self, array: Any) -> Any:
        """Return the object that a program hands to MPI for an array."""
        return array

    def address(self, array: Any) -> int:
        """Return an array's address; managed ones can be NumPy's to some libraries."""
        interface = getattr(array, "__cuda_array_interface__", None)
        address: int = array.ctypes.data if interface is None else interface["data"][0]
        return address

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return versions of the library and of the runtime that it brings."""

    def payload(self, array: Any) -> Any:
        """Return an object that holds an array and can be pickled."""
        return array

    def module(self) -> Any:
        """Return the module that computes with arrays; raises `MissingPackageError` without."""
        try:
            import cupy
        except ModuleNotFoundError as error:
            what = f"computing with buffer {self.name}"
            raise MissingPackageError(what, "cupy", installing_cuda()) from error
        return cupy

    def computed(self, array: Any, address: int, dtype: str) -> Any:
        """Return an array of bytes at ``address`` as one of `module`, not copied."""
        cupy, nbytes = self.module(), array.shape[0]
        if nbytes == 0:
            return cupy.empty(0, dtype)
        owned = cupy.cuda.UnownedMemory(address, nbytes, array)
        pointer = cupy.cuda.MemoryPointer(owned, 0)
        return cupy.ndarray(nbytes // np.dtype(dtype).itemsize, dtype, memptr=pointer)

    def prepare(self, local_rank: int, devices: Sequence[int] = ()) -> Self:
        missing = next((name for name in self.packages if find_spec(name) is None), None)
        if missing is not None:
            raise MissingPackageError(f"buffer {self.name}", missing, self._how_to_install())
        driver = load(self.drivers)
        visible = driver.devices()
        chosen = devices or range(visible)
        number = chosen[local_rank % len(chosen)]
        if number >= visible:
            raise MissingError(
                f"--device: there is no device {number}; the last of {visible} that are visible "
                f"is {visible - 1}"
            )
        opened = copy(self)
        opened.driver, opened.context = driver, driver.context()
        opened.device = driver.activate(number)
        opened.start(number)
        return opened

    def _how_to_install(self) -> str:
        if "{cuda}" not in self.extra:
            return installing(self.extra)
        return installing_cuda(self.extra) + (", '[rocm]' for AMD" if Hip in self.drivers else "")

    def enter(self) -> None:
        self.driver.enter()

    def at(self, place: Place) -> Buffer:
        return NUMPY if place is Place.HOST else self._in(place)

    def _in(self, place: Place) -> Self:
        moved = copy(self)
        moved.place = place
        return moved

    def allocate(self, nbytes: int, datatype: Datatype) -> DeviceMemory:
        self.check_elements(datatype)
        make = self.empty if self.place is Place.DEVICE else self.managed
        try:
            raw = make(nbytes + PAGE)
        except Exception as error:
            if isinstance(error, OmbError) or not self.out_of_memory(error):
                raise
            raise OutOfMemoryError(
                f"{self.name} cannot allocate {nbytes} bytes on device {self.device.number}: "
                "lower -m"
            ) from None
        start = -self.address(raw) % PAGE
        address = self.address(raw) + start
        return DeviceMemory(self, raw[start : start + nbytes], address, datatype.dtype)

    def place_pages(self, address: int, nbytes: int) -> None:
        """Move pages of managed memory to where they shall stay, if that is somewhere."""
        if self.place is Place.MANAGED_DEVICE:
            self.driver.place_pages(address, nbytes, self.device.number)
        elif self.place is Place.MANAGED_HOST:
            self.driver.place_pages(address, nbytes, None)

    def describe(self) -> dict[str, str]:
        device = self.device
        memory = f"{device.memory / (1 << 30):.1f} GiB"
        found = {"device": f"{device.number}: {device.name}, {memory}"}
        return found | self.driver.versions() | self.versions()

    def wait(self) -> Local:
        return self.driver.wait()

    def flush(self) -> tuple[Local, ...]:
        size = TIMES_CACHE * self.driver.cache_size(self.device.number)
        block = self._in(Place.DEVICE).allocate(size, TYPES[0])
        write = replace(self.driver.filling(block.address, size), kept=block)
        return write, self.wait()

    def compute(self, times: int) -> tuple[Local, Local]:
        return self.driver.compute(times)

    def array_module(self) -> Any:
        if not self.like_numpy:
            raise UnsupportedError(
                f"applications do not compute with buffer {self.name}, whose functions are not "
                "NumPy's: use --buffer numpy, or cupy"
            )
        return self.module()

    def close(self) -> None:
        if self.context is not None:
            self.driver.return_to(self.context)


class DeviceMemory(Memory):
    """An array on a device, or in managed memory."""

    def __init__(self, opened: DeviceBuffer, array: Any, address: int, dtype: str) -> None:
        """Take an array of bytes at ``address`` as elements of NumPy's type ``dtype``."""
        self._opened = opened
        self._bytes = array
        self._dtype = dtype
        self.address = address
        self.array = opened.for_mpi(opened.typed(array, dtype))
        self.nbytes = array.shape[0]
        self.kind = opened.device.kind if opened.place is Place.DEVICE else ""

    def slice(self, start: int, nbytes: int) -> DeviceMemory:
        part = self._bytes[start : start + nbytes]
        return DeviceMemory(self._opened, part, self.address + start, self._dtype)

    def fill(self, tile: bytes) -> None:
        driver = self._opened.driver
        done = min(len(tile), self.nbytes)
        source = ctypes.create_string_buffer(tile, len(tile))
        driver.copy(self.address, ctypes.addressof(source), done)
        while done < self.nbytes:
            part = min(done, self.nbytes - done)
            driver.copy(self.address + done, self.address, part)
            done += part
        driver.synchronize()
        self._opened.place_pages(self.address, self.nbytes)

    def first_difference(self, tile: bytes) -> int | None:
        self._opened.driver.synchronize()
        step = max(1, CHECKED_AT_ONCE // len(tile)) * len(tile)
        for start in range(0, self.nbytes, step):
            part = np.frombuffer(self.read(start, min(step, self.nbytes - start)), np.uint8)
            if (place := NumpyMemory(part).first_difference(tile)) is not None:
                return start + place
        return None

    def read(self, start: int, nbytes: int) -> bytes:
        data = ctypes.create_string_buffer(max(1, nbytes))
        self._opened.driver.copy(ctypes.addressof(data), self.address + start, nbytes)
        return data.raw[:nbytes]

    def view(self) -> memoryview:
        return memoryview((ctypes.c_ubyte * self.nbytes).from_address(self.address)).cast("B")

    def write(self, data: Any) -> None:
        driver = self._opened.driver
        try:
            values = bytes(memoryview(data).cast("B"))
        except TypeError:  # an array on a device
            length, address = data.nbytes, self._opened.address(data)
        else:
            source = ctypes.create_string_buffer(values, max(1, len(values)))
            length, address = len(values), ctypes.addressof(source)
        if length != self.nbytes:
            raise ValueError(f"{length} bytes arrived instead of {self.nbytes}")
        driver.copy(self.address, address, length)
        driver.synchronize()

    def payload(self) -> Any:
        return self._opened.payload(self.array)

    def ndarray(self, dtype: str) -> Any:
        self._opened.module()
        return self._opened.computed(self._bytes, self.address, dtype)

    def add(self, other: Memory) -> tuple[Local, ...] | None:
        if not self.on_device:
            return None
        if self._dtype in LONG_DOUBLES:
            raise UnsupportedError(
                f"no device adds {self._dtype}: choose another -T, or --p2p-algorithm library"
            )
        total, addend = self.ndarray(self._dtype), other.ndarray(self._dtype)
        add = self._opened.module().add
        return Local("add", partial(add, total, addend, total)), self._opened.wait()

    def staged(self) -> StagedMemory | None:
        return PinnedMemory(self, self._opened.driver, self._dtype) if self.on_device else None


class PinnedMemory(NumpyMemory, StagedMemory):
    """A NumPy array in page-locked memory, which the device's copy engines reach directly."""

    def __init__(self, device: DeviceMemory, driver: Driver, dtype: str) -> None:
        self._address = driver.pinned(device.nbytes or 1)
        block = (ctypes.c_ubyte * device.nbytes).from_address(self._address)
        finalize(block, driver.free_pinned, self._address)
        super().__init__(np.ctypeslib.as_array(block).view(dtype))
        self._device = device
        self._driver = driver

    def download(self, start: int, nbytes: int) -> Local:
        there, here = self._device.address + start, self._address + start
        return self._driver.copying(here, there, nbytes)

    def upload(self) -> Local:
        return self._driver.copying(self._device.address, self._address, self.nbytes)
