"""Placeholder memory for plans of benchmarks that send nothing: a length, and no bytes."""

from __future__ import annotations

from typing import Any, NoReturn

from omb_py.benchmarks import Exposed, Stored
from omb_py.buffers import Buffer
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import UnsupportedError
from omb_py.core.memory import Memory


class Extent(Memory):
    """Placeholder memory of a given size."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes

    def slice(self, start: int, nbytes: int) -> Memory:
        return Extent(nbytes)

    def fill(self, tile: bytes) -> NoReturn:
        raise NotImplementedError

    def first_difference(self, tile: bytes) -> NoReturn:
        raise NotImplementedError

    def read(self, start: int, nbytes: int) -> NoReturn:
        raise NotImplementedError

    def write(self, data: Any) -> NoReturn:
        raise NotImplementedError


class ExtentBuffer(Buffer):
    """An array library whose arrays are only as long as they should be."""

    name = "none"

    def allocate(self, nbytes: int, datatype: Datatype) -> Memory:
        return Extent(nbytes)


class NoResources:
    """MPI objects of `omb_py.benchmarks.Resources`, which a simulation does not have.

    All but buffers of messages raise `UnsupportedError`.
    """

    def graph(self, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Any:
        raise UnsupportedError("neighbourhoods are not simulated, only messages of two ranks")

    def window(self, nbytes: int, datatype: Datatype) -> Exposed:
        raise UnsupportedError("one-sided communication is not simulated, only messages")

    def file(self, nbytes: int) -> tuple[Any, Memory]:
        raise UnsupportedError("files are not simulated, only messages")

    def checkpoint(self, memory: Memory, writes: bool) -> Stored:
        raise UnsupportedError("checkpoints are not simulated, only messages")

    def group(self, rank: int) -> Any:
        raise UnsupportedError("groups of ranks are not simulated, only messages")

    def attach(self, messages: int, nbytes: int) -> None:
        """Attach no buffer: simulated buffered sends always have room."""

    def fork(self, processes: int) -> None:
        raise UnsupportedError("forked processes are not simulated, only messages")


BUFFER = ExtentBuffer()
RESOURCES = NoResources()
