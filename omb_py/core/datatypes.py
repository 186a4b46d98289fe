"""The element types that ``-T`` takes, NumPy's numeric types that MPI has too; layouts (``-D``)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError
from omb_py.core.text.units import parse_count

BRAIN = "bfloat16"
"""The code of a component of 8 bits of exponent and 7 of mantissa: the first half of a float."""

X86_EXTENDED_BYTES = 10
"""Bytes of an x86 long double that carry its value; the rest of its 16 is padding."""

FORTRAN = {"FLOAT16_T": "REAL2"}
"""Fortran's types of the same elements: all that the standard's ABI has of half precision."""


@dataclass(frozen=True)
class Datatype:
    """An element type, under the names that ``-T``, MPI and NumPy give it.

    ``code`` is the `struct` code of one component, or one that `struct` lacks: ``g`` is a long
    double, `BRAIN` a bfloat16. ``components`` is 2 for complex numbers, and every integer up to
    ``largest`` is represented exactly. ``moved_as`` is MPI's name of elements of the same size, for
    libraries without these: they can be sent by it, but not added; ``dtype`` then only has the
    size, for NumPy lacks these elements. ``passed`` is the one of `mpi_names` that the library has,
    known once MPI has started.
    """

    name: str
    mpi: str
    dtype: str
    code: str
    largest: int
    components: int = 1
    moved_as: str = ""
    passed: str = ""

    @property
    def mpi_names(self) -> tuple[str, ...]:
        """MPI's names of the elements, the best first."""
        return tuple(filter(None, (self.mpi, FORTRAN.get(self.mpi), self.moved_as)))

    @property
    def mpi_type(self) -> str:
        """MPI's name of the elements in results: that which is passed, as far as it is known."""
        return f"MPI_{self.passed or self.mpi}"

    @property
    def narrow(self) -> str:
        """The name of elements of `NARROW`, which `mpi_type` alone may not tell."""
        return self.name if self.name in [one.name for one in NARROW] else ""

    @property
    def numbers(self) -> str:
        """NumPy's name of the numbers, or our own where NumPy has none."""
        return self.name if self.moved_as else self.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory, padding included."""
        return self._component_bytes * self.components

    @property
    def padded(self) -> bool:
        """Return whether some bytes of an element carry no value, as in x86's long double."""
        return self._component_bytes > self._component_value_bytes

    def pack(self, values: Iterable[int]) -> bytes:
        """Return the elements that hold ``values`` (a complex number: in both parts), as bytes."""
        parts = [value for value in values for _ in range(self.components)]
        if self.code == "g":
            import ctypes

            return self.without_padding(bytes((ctypes.c_longdouble * len(parts))(*parts)))
        if self.code == BRAIN:
            wide = struct.pack(f"<{len(parts)}f", *parts)
            return b"".join(wide[start + 2 : start + 4] for start in range(0, len(wide), 4))
        return struct.pack(f"{len(parts)}{self.code}", *parts)

    def describe(self, element: bytes) -> str:
        """Return one element as a number a person can read."""
        if self.code == "g":
            import ctypes

            parts = list((ctypes.c_longdouble * self.components).from_buffer_copy(element))
        elif self.code == BRAIN:
            parts = list(struct.unpack("<f", bytes(2) + element))
        else:
            parts = list(struct.unpack(f"{self.components}{self.code}", element))
        return f"{parts[0]}+{parts[1]}j" if self.components == 2 else str(parts[0])

    def without_padding(self, data: bytes) -> bytes:
        """Return ``data`` with the bytes that carry no value set to zero."""
        if not self.padded:
            return data
        clean = bytearray(data)
        size = self._component_bytes
        for byte in range(self._component_value_bytes, size):
            clean[byte::size] = bytes(len(range(byte, len(clean), size)))
        return bytes(clean)

    @property
    def _component_bytes(self) -> int:
        if self.code == "g":
            import ctypes

            return ctypes.sizeof(ctypes.c_longdouble)
        return struct.calcsize("H" if self.code == BRAIN else self.code)

    @property
    def _component_value_bytes(self) -> int:
        if self.code == "g":
            import platform

            if platform.machine() in ("x86_64", "AMD64", "i386", "i686"):
                return X86_EXTENDED_BYTES
        return self._component_bytes


def widen(brains: Any) -> Any:
    """Return an array's bfloat16 elements, which it holds as uint16, as float32."""
    return (brains.astype("uint32") << 16).view("float32")


def narrow(floats: Any) -> Any:
    """Return an array of float32 as bfloat16 elements; round to the nearest, ties to even."""
    bits = floats.view("uint32")
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


TYPES = (
    Datatype("mpi_char", "CHAR", "int8", "b", 2**7 - 1),
    Datatype("mpi_int", "INT", "int32", "i", 2**31 - 1),
    Datatype("mpi_float", "FLOAT", "float32", "f", 2**24),
    Datatype("int8", "INT8_T", "int8", "b", 2**7 - 1),
    Datatype("int16", "INT16_T", "int16", "h", 2**15 - 1),
    Datatype("int32", "INT32_T", "int32", "i", 2**31 - 1),
    Datatype("int64", "INT64_T", "int64", "q", 2**63 - 1),
    Datatype("uint8", "UINT8_T", "uint8", "B", 2**8 - 1),
    Datatype("uint16", "UINT16_T", "uint16", "H", 2**16 - 1),
    Datatype("uint32", "UINT32_T", "uint32", "I", 2**32 - 1),
    Datatype("uint64", "UINT64_T", "uint64", "Q", 2**64 - 1),
    Datatype("float32", "FLOAT", "float32", "f", 2**24),
    Datatype("float64", "DOUBLE", "float64", "d", 2**53),
    Datatype("longdouble", "LONG_DOUBLE", "longdouble", "g", 2**53),
    Datatype("complex64", "C_FLOAT_COMPLEX", "complex64", "f", 2**24, components=2),
    Datatype("complex128", "C_DOUBLE_COMPLEX", "complex128", "d", 2**53, components=2),
    Datatype("clongdouble", "C_LONG_DOUBLE_COMPLEX", "clongdouble", "g", 2**53, components=2),
)

NARROW = (
    Datatype("float16", "FLOAT16_T", "float16", "e", 2**11),
    Datatype("bfloat16", "BFLOAT16_T", "uint16", BRAIN, 2**8, moved_as="UINT16_T"),
    Datatype("float8", "FLOAT8_T", "uint8", "B", 2**8 - 1, moved_as="UINT8_T"),
)
"""Elements of training that few MPI libraries have; ``all`` leaves them out. MPI has no 8-bit
floating point, whose bytes are filled as whole numbers."""


def find_types(names: Iterable[str]) -> tuple[Datatype, ...]:
    """Return the types called ``names``, each once; ``all`` is every type that MPI distinguishes.

    A type is known by its ``-T`` name and by its MPI name (``MPI_DOUBLE``, in any case).
    Raises `UsageError` for an unknown name.
    """
    known = {f"mpi_{datatype.mpi.lower()}": datatype for datatype in reversed(TYPES)}
    known |= {datatype.name: datatype for datatype in (*TYPES, *NARROW)}
    found: dict[str, Datatype] = {}
    for name in names:
        if name.lower() == "all":
            found |= {datatype.mpi: datatype for datatype in reversed(TYPES)}
        elif name.lower() in known:
            found[known[name.lower()].mpi] = known[name.lower()]
        else:
            choices = ", ".join(datatype.name for datatype in (*TYPES, *NARROW))
            raise UsageError(f"unknown type {name!r}: choose from all, {choices}")
    return tuple(sorted(found.values(), key=(*TYPES, *NARROW).index))


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

    text = files.read_text(path, UsageError)
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return tuple(
        numbers(
            ",".join(map(str.strip, line.split(","))), ",", f"{option}: {path}, line {number}", form
        )
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
