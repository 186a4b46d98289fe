"""WHERE the bytes live: one module per array library.

A member is a module of this folder that defines ``BUFFER``, an instance of a `Buffer`, or an
entry point of group ``omb_py.buffers`` that names one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from omb_py.core.dataclass import dataclass
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import OmbError, UnsupportedError
from omb_py.core.memory import Local, Memory, Place
from omb_py.core.registry import Registry

TIMES_CACHE = 2
"""Size of what a flush reads, in sizes of the largest cache: caches do not replace the
oldest line exactly."""

LONG_DOUBLES = frozenset({"longdouble", "clongdouble"})
"""NumPy's types that no device computes with, and that several libraries lack."""

PAGE = 4096
"""Alignment of every allocation in bytes, as in native OMB."""


@dataclass(frozen=True)
class Device:
    """A device that a rank has chosen: its number among those visible, and what it is.

    ``identity`` is the same for all processes that use it, ``memory`` in bytes. ``kind`` is the
    MPI standard's name of its memory (side document "Memory Allocation Kinds"), empty if the
    processor reads it as its own, ``accelerator`` native OMB's name of what drives it.
    """

    number: int
    name: str
    identity: str
    memory: int
    kind: str
    accelerator: str


class Buffer(ABC):
    """An array library as a place for messages."""

    name: str
    place = Place.HOST
    device: Device | None = None
    lacks: frozenset[str] = frozenset()
    """NumPy's types that the library has no elements of."""

    @property
    def accelerators(self) -> tuple[str, ...]:
        """Native OMB's words for the devices on one of which messages lie; none on the host."""
        return ()

    def prepare(self, local_rank: int, devices: Sequence[int] = ()) -> Buffer:
        """Return this buffer with its device chosen and current; called before MPI is started.

        The device is that of ``devices`` (by default all that are visible) whose turn it is when
        the ranks of a node, of which this one is number ``local_rank``, take them in order.
        Raises `UnsupportedError` when the library or the device is missing.
        """
        return self

    def enter(self) -> None:
        """Make the device current in this thread; each thread that a rank starts calls it first."""
        return

    def at(self, place: Place) -> Buffer:
        """Return this library with messages in another place; called on a prepared buffer.

        Raises `UnsupportedError` if the library has no such memory.
        """
        if place is Place.HOST:
            return self
        raise UnsupportedError(
            f"buffer {self.name} is in host memory and has no {place.value}: use a device's, such "
            "as --buffer cupy"
        )

    @abstractmethod
    def allocate(self, nbytes: int, datatype: Datatype) -> Memory:
        """Return new memory, aligned to `PAGE`, for whole elements of ``datatype``.

        Raises `OutOfMemoryError` when there is not enough, `UnsupportedError` when the library
        lacks the element type.
        """

    def wrap(self, view: Any, datatype: Datatype) -> Memory:
        """Return memory that was allocated elsewhere, of whole elements of ``datatype``.

        ``view`` has Python's buffer interface. Raises `UnsupportedError` if the library cannot take
        it for its own.
        """
        raise UnsupportedError(
            f"buffer {self.name} cannot use memory that MPI allocates: use -w create or -w dynamic"
        )

    def check_elements(self, datatype: Datatype) -> None:
        """Raise `UnsupportedError` for a type that is one of NumPy's that the library lacks."""
        if datatype.dtype in self.lacks:
            raise UnsupportedError(
                f"buffer {self.name} has no elements of type {datatype.name}: choose another -T"
            )

    def array_module(self) -> Any:
        """Return NumPy or CuPy, the module that computes with the arrays of `Memory.ndarray`.

        Raises `MissingPackageError` when it is not installed.
        """
        import numpy as np

        return np

    def describe(self) -> dict[str, str]:
        """Return versions and hardware that a reader of the results needs to know."""
        return {}

    def wait(self) -> Local | None:
        """Return a wait for the stream in which the library works; None for host memory."""
        return None

    def flush(self) -> tuple[Local, ...]:
        """Return steps that push messages out of the device's cache; none for host memory."""
        return ()

    def compute(self, times: int) -> tuple[Local, Local]:
        """Return ``times`` steps of work for the device: its launch, and the wait for its end.

        Raises `UnsupportedError` if there is no device.
        """
        raise UnsupportedError(
            f"-r gpu and -r both compute on a device, which buffer {self.name} has not: use "
            "--buffer cupy"
        )

    def close(self) -> None:  # noqa: B027 - host memory holds nothing
        """Give the device back; called after the end of MPI."""


BUFFERS = Registry(
    kind="buffer", package="omb_py.buffers", attribute="BUFFER", group="omb_py.buffers"
)


def on_device(name: str) -> bool:
    """Return whether the messages of a buffer library lie on a device."""
    return bool(accelerators(name))


def accelerators(name: str) -> tuple[str, ...]:
    """Return the kinds of devices that a buffer library can use, as `Buffer.accelerators`."""
    try:
        found: tuple[str, ...] = BUFFERS.load(name).accelerators
    except OmbError:
        return ()
    return found
