"""The layout of a message's elements in memory: native OMB's ``-D``."""

from __future__ import annotations

import re

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError
from omb_py.core.text.numbers import parse_count


@dataclass(frozen=True)
class Layout:
    """A derived datatype, described without MPI; lengths and displacements in elements.

    ``stride`` and ``length`` describe a vector, ``blocks`` an indexed type as pairs of
    displacement and length; with neither, elements are contiguous. ``text`` is the option's
    spelling.
    """

    text: str = "cont"
    stride: int = 0
    length: int = 0
    blocks: tuple[tuple[int, int], ...] = ()

    @property
    def contiguous(self) -> bool:
        """Return whether every element is sent, so that MPI's own datatype serves."""
        return not self.stride and not self.blocks

    def pieces(self, elements: int) -> tuple[tuple[int, int], ...]:
        """Yield displacement and length of each piece sent of a message of ``elements``.

        A vector has as many blocks as whole strides fit. An indexed type has all its blocks,
        or none when the message is too short to hold them.
        """
        if self.stride:
            return tuple((i * self.stride, self.length) for i in range(elements // self.stride))
        if self.blocks:
            end = max(displacement + length for displacement, length in self.blocks)
            return self.blocks if end <= elements else ()
        return ((0, elements),)

    def transmitted(self, elements: int) -> int:
        """Return the number of elements that travel out of a message of ``elements``."""
        if self.stride:
            return elements // self.stride * self.length
        return sum(length for _, length in self.pieces(elements))


CONTIGUOUS = Layout()


def parse_layout(text: str) -> Layout:
    """Return the layout that ``cont``, ``vect:STRIDE:BLOCK`` or ``indx:FILE`` names.

    The file has a line ``DISPLACEMENT,LENGTH`` (in elements) per block; empty lines and what
    follows ``#`` are skipped. Raises `UsageError` when the text or the file is not like that.
    """
    kind, _, rest = text.partition(":")
    if kind == "cont" and not rest:
        return CONTIGUOUS
    if kind == "vect":
        stride, length = numbers(rest, ":", f"-D {text}", "vect:STRIDE:BLOCK")
        if not 1 <= length <= stride:
            raise UsageError(f"-D {text}: the block must have 1 to STRIDE ({stride}) elements")
        return Layout(text, stride=stride, length=length)
    if kind == "indx" and rest:
        return Layout(text, blocks=_read_blocks(rest))
    raise UsageError(f"-D {text}: use cont, vect:STRIDE:BLOCK or indx:FILE")


def _read_blocks(path: str) -> tuple[tuple[int, int], ...]:
    blocks = number_pairs(path, "-D indx", "DISPLACEMENT,LENGTH")
    if not any(length for _, length in blocks):
        raise UsageError(f"-D indx: {path} has no line DISPLACEMENT,LENGTH")
    end = 0
    for displacement, length in sorted(block for block in blocks if block[1]):
        if displacement < end:
            raise UsageError(
                f"-D indx: {path}: the block at element {displacement} overlaps another"
            )
        end = displacement + length
    return blocks


def number_pairs(path: str, option: str, form: str) -> tuple[tuple[int, int], ...]:
    """Return the pairs of whole numbers on the lines of a file, comments and empty lines left out.

    Raises `UsageError` when the file cannot be read or a line is not like ``form``.
    """
    from omb_py.core.text import files

    try:
        text = files.read(path, UsageError).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: it is not UTF-8 text") from error
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return tuple(
        numbers(re.sub(r"\s*,\s*", ",", line), ",", f"{option}: {path}, line {number}", form)
        for number, line in enumerate(lines, start=1)
        if line
    )


def numbers(text: str, separator: str, where: str, form: str) -> tuple[int, int]:
    """Return two whole numbers; raise `UsageError` if a text is not like ``form``."""
    try:
        first, second = map(parse_count, text.split(separator))
    except ValueError as error:
        raise UsageError(f"{where}: expected {form}, two whole numbers") from error
    return first, second
