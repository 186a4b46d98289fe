"""WHERE the bytes live: one module per array library.

A member is a module of this folder that defines ``BUFFER``, an instance of a `Buffer`, or an
entry point of group ``omb_py.buffers`` that names one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from omb_py.datatypes import Datatype
from omb_py.registry import Registry

PAGE = 4096
"""Alignment of every allocation in bytes, as in native OMB."""


class Memory(ABC):
    """A stretch of bytes that an array library owns.

    ``array`` is the object a user of the library would hand to MPI; ``nbytes`` its length.
    ``adds`` tells whether two payloads joined by ``+`` add element by element.
    """

    array: Any
    nbytes: int
    adds: bool = True

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


class Buffer(ABC):
    """An array library as a place for messages."""

    name: str

    def prepare(self, local_rank: int) -> None:  # noqa: B027 - host memory needs nothing
        """Choose this rank's device and make it current; called before MPI is started.

        Raises `UnsupportedError` when the library or the device is missing.
        """

    @abstractmethod
    def allocate(self, nbytes: int, datatype: Datatype) -> Memory:
        """New memory, aligned to `PAGE`, for whole elements of ``datatype``.

        Raises `OutOfMemoryError` when there is not enough, `UnsupportedError` when the library
        has no such element type.
        """

    def describe(self) -> dict[str, str]:
        """Versions and hardware that a reader of the results needs to know."""
        return {}


BUFFERS = Registry(
    kind="buffer", package="omb_py.buffers", attribute="BUFFER", group="omb_py.buffers"
)
