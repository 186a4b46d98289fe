"""The data that messages carry, and whether what arrived is what was sent."""

from __future__ import annotations

import os
from functools import lru_cache
from itertools import cycle, islice
from operator import ne

from omb_py.benchmarks import CheckedIteration, Content
from omb_py.buffers import PAGE, Buffer
from omb_py.core.dataclass import dataclass
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import OmbError
from omb_py.core.memory import Memory

# The data that messages carry: a function of rank, block, element, size and iteration.
#
# It is a short run of small whole numbers repeated to the end of the memory, so that an array
# library needs only to tile bytes and to compare with tiled bytes, on a device too. Sums over any
# number of ranks stay within the element type, since Open MPI's vectorised reductions saturate
# 8- and 16-bit integers instead of wrapping.

LONGEST_PERIOD = 1009
"""Elements after which data repeats: a prime, so that no power of two is a period."""

UNTOUCHED = b"\xff"
"""A fill for memory that a message should overwrite; no pattern's element has only this byte."""

MIN_PERIOD_OF_SUMS = 8


def tile(content: Content, datatype: Datatype, ranks: int, size: int, iteration: int) -> bytes:
    """Return the bytes that, repeated, are ``content`` in an iteration of a message size."""
    seed = size + 13 * iteration + content.start
    if not content.added:
        seed += 31 * content.sources[0] + 7 * content.block
        return _tile(datatype, _period(datatype, 1), 1, seed)
    total = sum(weight(rank, ranks, datatype, iteration) for rank in range(ranks))
    scale = sum(weight(rank, ranks, datatype, iteration) for rank in content.sources)
    return _tile(datatype, _period(datatype, total), scale, seed)


def weight(rank: int, ranks: int, datatype: Datatype, iteration: int) -> int:
    """Return a rank's factor of the common data of a reduction.

    Weights differ from rank to rank and from iteration to iteration where their sum leaves room
    for data; with very many ranks and a narrow type some ranks contribute zeros, other ones in
    each iteration.
    """
    room = datatype.largest // MIN_PERIOD_OF_SUMS
    if 3 * ranks <= room:
        return 1 + (rank + iteration) % 3
    every = -(-ranks // room)
    return int((rank + iteration) % every == 0)


def _period(datatype: Datatype, total: int) -> int:
    return max(1, min(LONGEST_PERIOD, (datatype.largest - 1) // max(1, total)))


def _tile(datatype: Datatype, period: int, scale: int, seed: int) -> bytes:
    start = seed % period * datatype.itemsize
    return _two_periods(datatype, period, scale)[start : start + period * datatype.itemsize]


@lru_cache(maxsize=64)
def _two_periods(datatype: Datatype, period: int, scale: int) -> bytes:
    return datatype.pack(scale * value for value in range(1, period + 1)) * 2


def prove(buffer: Buffer, datatype: Datatype) -> None:
    """Show that the buffer's comparison finds a changed byte, and that its memory is aligned.

    The first, a middle and the last byte of two tiles and an element are changed one by one. Raises
    `OmbError` if a change is not found where it is, or if the memory does not begin at a page,
    `UnsupportedError` if the library lacks the element type.
    """
    pattern = _tile(datatype, _period(datatype, 1), 1, 0)
    itemsize = datatype.itemsize
    memory = buffer.allocate(2 * len(pattern) + itemsize, datatype)
    wrong = f"buffer {buffer.name} cannot be checked: first_difference of its memory"
    memory.fill(pattern)
    if (offset := memory.first_difference(pattern)) is not None:
        raise OmbError(f"{wrong} finds one at byte {offset} of what fill has written")
    for offset in (0, memory.nbytes // 2, memory.nbytes - 1):
        start = offset // itemsize * itemsize
        element = bytearray(memory.read(start, itemsize))
        element[offset - start] ^= 1
        memory.slice(start, itemsize).fill(bytes(element))
        if (found := memory.first_difference(pattern)) != offset:
            where = "none" if found is None else f"byte {found}"
            raise OmbError(f"{wrong} finds {where} where byte {offset} was changed")
        memory.fill(pattern)
    if apart := address_of(memory) % PAGE:
        raise OmbError(
            f"memory of buffer {buffer.name} begins {apart} bytes after a page of {PAGE}, and that "
            "of other buffers at a page: allocate must return aligned memory"
        )


def address_of(memory: Memory) -> int:
    """Return the address of memory of at least one byte, on the host or on a device."""
    from ctypes import addressof, c_char

    return memory.address or addressof(c_char.from_buffer(memory.view()))


@dataclass(frozen=True)
class DataCheck:
    """Fills and checks the memory of one rank at one message size."""

    rank: int
    ranks: int
    size: int
    datatype: Datatype

    def fill(self, iteration: CheckedIteration, number: int) -> None:
        """Write iteration ``number``'s data into the inputs, and the untouched mark elsewhere."""
        for content in iteration.outputs:
            content.memory.fill(UNTOUCHED)
        for content in iteration.inputs:
            content.memory.fill(self._expected(content, number))

    def faults(self, iteration: CheckedIteration, number: int) -> list[str]:
        """Return a sentence for each output that does not hold the data of iteration ``number``."""
        found = []
        for content in iteration.outputs:
            expected = self._expected(content, number)
            offset = self._first_difference(content, expected)
            if offset is not None:
                found.append(self._describe(content, expected, offset, number))
        return found

    def wrong_elements(self, iteration: CheckedIteration, number: int) -> int:
        """Return how many elements do not hold the data of iteration ``number``."""
        wrong, itemsize = 0, self.datatype.itemsize
        for content in iteration.outputs:
            expected = self._expected(content, number)
            if (offset := self._first_difference(content, expected)) is None:
                continue
            start = offset // itemsize * itemsize
            tiles = cycle(expected[at : at + itemsize] for at in range(0, len(expected), itemsize))
            wanted = islice(tiles, start % len(expected) // itemsize, None)
            nbytes = content.memory.nbytes
            received = self.datatype.without_padding(content.memory.read(start, nbytes - start))
            elements = (received[at : at + itemsize] for at in range(0, len(received), itemsize))
            wrong += sum(map(ne, elements, wanted))
        return wrong

    def _expected(self, content: Content, number: int) -> bytes:
        return tile(content, self.datatype, self.ranks, self.size, number)

    def _first_difference(self, content: Content, expected: bytes) -> int | None:
        memory = content.memory
        offset = memory.first_difference(expected)
        if offset is None or not self.datatype.padded:
            return offset
        received = self.datatype.without_padding(memory.read(0, memory.nbytes))
        wanted = (expected * (memory.nbytes // len(expected) + 1))[: memory.nbytes]
        return next((i for i in range(memory.nbytes) if received[i] != wanted[i]), None)

    def _describe(self, content: Content, expected: bytes, offset: int, number: int) -> str:
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
            f"iteration {number}: expected {self.datatype.describe(wanted)} "
            f"(0x{wanted.hex()}), received {self.datatype.describe(received)} "
            f"(0x{received.hex()})"
        )


def check_log(directory: str, rank: int) -> None:
    """Make ``directory`` and try to write there what this rank may have to log.

    Raises `OmbError` when that cannot be.
    """
    before = os.path.exists(log_path(directory, rank))
    path = write_log(directory, rank, "", [])
    if not before:
        os.unlink(path)


def log_path(directory: str, rank: int) -> str:
    """Return the file in ``directory`` to which a rank logs its faults."""
    return os.path.join(directory, f"rank-{rank}.log")


def write_log(directory: str, rank: int, where: str, faults: list[str]) -> str:
    """Add every fault of this rank to ``directory/rank-N.log``, one a line; the file's path.

    Raises `OmbError` when the file cannot be written.
    """
    from omb_py.core.text import files  # pathlib is slow to import, few runs have logs

    path = log_path(directory, rank)
    with files.failing("write", path, advice="; choose another directory for -clog"):
        files.make_folder(directory)
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(f"{where}: {fault}\n" for fault in faults)
    return path
