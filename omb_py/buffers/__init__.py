"""WHERE the bytes live: one module per array library.

A member is a module of this folder that defines ``BUFFER``, an instance of a `Buffer`, or an
entry point of group ``omb_py.buffers`` that names one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from omb_py.core.datatypes import Datatype
from omb_py.core.errors import UnsupportedError
from omb_py.core.registry import Registry

PAGE = 4096
"""Alignment of every allocation in bytes, as in native OMB."""


class Place(Enum):
    """Which memory a message lies in, by native OMB's letters; ``M`` leaves pages to the driver."""

    HOST = "H"
    DEVICE = "D"
    MANAGED = "M"
    MANAGED_HOST = "MH"
    MANAGED_DEVICE = "MD"


@dataclass(frozen=True)
class Device:
    """A device that a rank has chosen: its number among those visible, and what it is.

    ``identity`` is the same for all processes that use it, ``memory`` in bytes.
    """

    number: int
    name: str
    identity: str
    memory: int


@dataclass(frozen=True)
class Local:
    """What a rank does by itself between its MPI calls: a copy, or a wait for its device.

    ``run`` does it from Python. ``function`` is the address of the C function that does the same
    when it is given ``arguments``, each a word of 64 bits; it returns 0 or an error code. ``kept``
    is what has to live as long.
    """

    name: str
    run: Callable[[], None]
    function: int
    arguments: tuple[int, ...]
    kept: Any = None


class Memory(ABC):
    """A stretch of bytes that an array library owns.

    ``array`` is the object a user of the library would hand to MPI; ``nbytes`` its length.
    ``adds`` tells whether two payloads joined by ``+`` add element by element, ``on_device``
    whether the processor cannot read it, so that only an MPI library that knows devices can;
    ``address`` is then where it is.
    """

    array: Any
    nbytes: int
    adds: bool = True
    on_device: bool = False
    address: int = 0

    @abstractmethod
    def slice(self, start: int, nbytes: int) -> Memory:
        """The same memory from byte ``start`` on, ``nbytes`` long, not copied."""

    @abstractmethod
    def fill(self, tile: bytes) -> None:
        """Write ``tile`` from the start, again and again, to the end."""

    @abstractmethod
    def first_difference(self, tile: bytes) -> int | None:
        """First byte that is not what `fill` with ``tile`` would have written; None if all are."""

    @abstractmethod
    def read(self, start: int, nbytes: int) -> bytes:
        """A copy of ``nbytes`` bytes from byte ``start`` on."""

    @abstractmethod
    def write(self, data: Any) -> None:
        """Copy a payload that arrived into this memory.

        Raises `ValueError` when its length is not ``nbytes``.
        """

    def payload(self) -> Any:
        """An object of the library that holds these bytes and can be pickled."""
        return self.array

    def ndarray(self, dtype: str) -> Any:
        """The same bytes as a one-dimensional array of the module that computes with them.

        That is NumPy for memory on the host, CuPy for memory on a device (`Buffer.array_module`).
        """
        import numpy as np

        return np.frombuffer(self.array, np.uint8).view(dtype)

    def add(self, other: Memory) -> tuple[Local, ...] | None:
        """What adds the elements of ``other`` to these on a device; None for host memory.

        Raises `UnsupportedError` where the device has no such elements.
        """
        return None

    def staged(self) -> StagedMemory | None:
        """New host memory to which these bytes can be copied; None where they are on the host."""
        return None


class StagedMemory(Memory):
    """Host memory that stands in for memory on a device."""

    @abstractmethod
    def download(self, start: int, nbytes: int) -> Local:
        """Copy bytes from the device to the same place here."""

    @abstractmethod
    def upload(self) -> Local:
        """Copy all bytes to the device."""


class Buffer(ABC):
    """An array library as a place for messages."""

    name: str
    place = Place.HOST
    device: Device | None = None

    def prepare(self, local_rank: int, devices: Sequence[int] = ()) -> Buffer:
        """This buffer with its device chosen and made current; called before MPI is started.

        The device is that of ``devices`` (by default all that are visible) whose turn it is when
        the ranks of a node, of which this one is number ``local_rank``, take them in order.
        Raises `UnsupportedError` when the library or the device is missing.
        """
        return self

    def at(self, place: Place) -> Buffer:
        """The same library with messages in another place; called on a prepared buffer.

        Raises `UnsupportedError` where the library has no such memory.
        """
        if place is Place.HOST:
            return self
        raise UnsupportedError(
            f"buffer {self.name} is in host memory and has no {place.value}: use a device's, such "
            "as --buffer cupy"
        )

    @abstractmethod
    def allocate(self, nbytes: int, datatype: Datatype) -> Memory:
        """New memory, aligned to `PAGE`, for whole elements of ``datatype``.

        Raises `OutOfMemoryError` when there is not enough, `UnsupportedError` when the library
        has no such element type.
        """

    def wrap(self, view: Any, datatype: Datatype) -> Memory:
        """Memory that somebody else allocated, of whole elements of ``datatype``.

        ``view`` has Python's buffer interface. Raises `UnsupportedError` where the library cannot
        take it for its own.
        """
        raise UnsupportedError(
            f"buffer {self.name} cannot use memory that MPI allocates: use -w create or -w dynamic"
        )

    def check_elements(self, datatype: Datatype, lacks: frozenset[str]) -> None:
        """Raise `UnsupportedError` for a type that is one of NumPy's that the library lacks."""
        if datatype.dtype in lacks:
            raise UnsupportedError(
                f"buffer {self.name} has no elements of type {datatype.name}: choose another -T"
            )

    def array_module(self) -> Any:
        """NumPy or CuPy: what computes with the arrays of `Memory.ndarray`.

        Raises `MissingPackageError` when it is not installed.
        """
        import numpy as np

        return np

    def describe(self) -> dict[str, str]:
        """Versions and hardware that a reader of the results needs to know."""
        return {}

    def wait(self) -> Local | None:
        """A wait for the stream in which the library works; None for host memory."""
        return None

    def compute(self, times: int) -> tuple[Local, Local]:
        """Work for the device, so many steps: its launch, and the wait for its end.

        Raises `UnsupportedError` where there is no device.
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
