"""Descriptions of memory: the place of a message, and bytes that a library owns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any

from omb_py.core.dataclass import dataclass


class Place(Enum):
    """Memory in which a message lies, by native OMB's letters; ``M`` leaves pages to the driver."""

    HOST = "H"
    DEVICE = "D"
    MANAGED = "M"
    MANAGED_HOST = "MH"
    MANAGED_DEVICE = "MD"


@dataclass(frozen=True)
class Local:
    """A step of a rank outside MPI: a copy, a wait for its device.

    ``run`` does it from Python. ``function`` is the address of the C function that does the same
    when it is given ``arguments``, each a word of 64 bits; it returns 0 or an error code. It is 0
    if Python does the step. ``kept`` are the objects that have to live as long.
    """

    name: str
    run: Callable[[], None]
    function: int = 0
    arguments: tuple[int, ...] = ()
    kept: Any = None


class Memory(ABC):
    """A stretch of bytes that an array library owns.

    ``array`` is the object a user of the library would hand to MPI; ``nbytes`` its length. ``adds``
    is true if two payloads joined by ``+`` add element by element, ``typed`` if mpi4py sees the
    type of ``array``'s elements, not bytes, and can reduce them. ``kind`` is the MPI standard's
    name of memory that the processor cannot read, so that only an MPI library with support for its
    device can; ``address`` is then its address there.
    """

    array: Any
    nbytes: int
    adds: bool = True
    typed: bool = True
    kind: str = ""
    address: int = 0

    @property
    def on_device(self) -> bool:
        """Return whether only a device can read this memory."""
        return bool(self.kind)

    @property
    def sent(self) -> Any:
        """The object that a user would hand to MPI to send: not ``array`` if that only receives.

        Raises `UnsupportedError` if the library has no such object at this address.
        """
        return self.array

    @abstractmethod
    def slice(self, start: int, nbytes: int) -> Memory:
        """Return this memory from byte ``start`` on, ``nbytes`` long, without a copy."""

    @abstractmethod
    def fill(self, tile: bytes) -> None:
        """Write ``tile`` from the start, again and again, to the end."""

    @abstractmethod
    def first_difference(self, tile: bytes) -> int | None:
        """Return the first byte that differs from `fill` with ``tile``; None if all are equal."""

    @abstractmethod
    def read(self, start: int, nbytes: int) -> bytes:
        """Return a copy of ``nbytes`` bytes from byte ``start`` on."""

    @abstractmethod
    def write(self, data: Any) -> None:
        """Copy a payload that arrived into this memory.

        Raises `ValueError` when its length is not ``nbytes``.
        """

    def view(self) -> memoryview:
        """Return a view of these bytes, for readers and writers of host memory."""
        return memoryview(self.ndarray("uint8"))

    def payload(self) -> Any:
        """Return an object of the library that holds these bytes and can be pickled."""
        return self.array

    def ndarray(self, dtype: str) -> Any:
        """Return these bytes as a one-dimensional array of the module that computes with them.

        That is NumPy for memory on the host, CuPy for memory on a device (`Buffer.array_module`).
        """
        import numpy as np

        return np.frombuffer(self.array, np.uint8).view(dtype)

    def add(self, other: Memory) -> tuple[Local, ...] | None:
        """Return a step that adds ``other``'s elements to these on a device; None for host memory.

        Raises `UnsupportedError` if the device lacks the element type.
        """
        return None

    def staged(self) -> StagedMemory | None:
        """Return new host memory for a copy of these bytes; None if they are on the host."""
        return None


class StagedMemory(Memory):
    """Host memory that stands in for memory on a device."""

    @abstractmethod
    def download(self, start: int, nbytes: int) -> Local:
        """Return a step that copies ``nbytes`` bytes at ``start`` from the device to here."""

    @abstractmethod
    def upload(self) -> Local:
        """Return a step that copies all bytes to the memory on the device."""
