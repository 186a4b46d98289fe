"""A driver of devices, as far as memory on them needs it: one way for every array library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self, TypeVar

from omb_py.buffers import Device
from omb_py.core.errors import MissingError, UnsupportedError
from omb_py.core.memory import Local


class Driver(ABC):
    """A driver of this process, and the device that is current."""

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
        """Return what is current in this thread, for `return_to`; None without."""
        return None

    def return_to(self, context: int) -> None:  # noqa: B027
        """Make current what was so before `activate`."""

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
    def settle(self, address: int, nbytes: int, number: int | None) -> None:
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
