"""Data before a call and data after it: fill, compare, and say what is wrong where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from omb_py.benchmarks import Content, Exchange
from omb_py.datatypes import Datatype
from omb_py.errors import OmbError
from omb_py.measure.pattern import UNTOUCHED, tile


@dataclass(frozen=True)
class DataCheck:
    """Fills and checks the memory of one rank at one message size."""

    rank: int
    ranks: int
    size: int
    datatype: Datatype

    def fill(self, exchange: Exchange, iteration: int) -> None:
        """Write the data of ``iteration`` into the inputs, and the untouched mark elsewhere."""
        for content in exchange.outputs:
            content.memory.fill(UNTOUCHED)
        for content in exchange.inputs:
            content.memory.fill(self._expected(content, iteration))

    def faults(self, exchange: Exchange, iteration: int) -> list[str]:
        """A sentence for each output that does not hold the data of ``iteration``."""
        found = []
        for content in exchange.outputs:
            expected = self._expected(content, iteration)
            offset = self._first_difference(content, expected)
            if offset is not None:
                found.append(self._describe(content, expected, offset, iteration))
        return found

    def _expected(self, content: Content, iteration: int) -> bytes:
        return tile(content, self.datatype, self.ranks, self.size, iteration)

    def _first_difference(self, content: Content, expected: bytes) -> int | None:
        memory = content.memory
        offset = memory.first_difference(expected)
        if offset is None or not self.datatype.padded:
            return offset
        received = self.datatype.without_padding(memory.read(0, memory.nbytes))
        wanted = (expected * (memory.nbytes // len(expected) + 1))[: memory.nbytes]
        return next((i for i in range(memory.nbytes) if received[i] != wanted[i]), None)

    def _describe(self, content: Content, expected: bytes, offset: int, iteration: int) -> str:
        itemsize = self.datatype.itemsize
        start = offset // itemsize * itemsize
        wanted = expected[start % len(expected) :][:itemsize]
        received = content.memory.read(start, itemsize)
        sources = content.sources
        origin = (
            f"the sum over ranks {sources[0]} to {sources[-1]}"
            if content.added
            else f"block {content.block} of rank {sources[0]}"
        )
        return (
            f"rank {self.rank}, offset {offset} of {content.memory.nbytes} bytes of {origin}, "
            f"iteration {iteration}: expected {self.datatype.describe(wanted)} "
            f"(0x{wanted.hex()}), received {self.datatype.describe(received)} "
            f"(0x{received.hex()})"
        )


def check_log(directory: str, rank: int) -> None:
    """Make ``directory`` and try to write there what this rank may have to log.

    Raises `OmbError` when that cannot be.
    """
    before = (Path(directory) / f"rank-{rank}.log").exists()
    path = write_log(directory, rank, "", [])
    if not before:
        path.unlink()


def write_log(directory: str, rank: int, where: str, faults: list[str]) -> Path:
    """Add every fault of this rank to ``directory/rank-N.log``, one a line; the file's path.

    Raises `OmbError` when the file cannot be written.
    """
    path = Path(directory) / f"rank-{rank}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{where}: {fault}\n" for fault in faults)
    except OSError as error:
        raise OmbError(
            f"cannot write {path}: {error.strerror}; choose another directory for -clog"
        ) from error
    return path
