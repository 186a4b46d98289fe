"""The element types that ``-T`` takes: NumPy's numeric types that MPI has too."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError

BRAIN = "bfloat16"
"""The code of a component of 8 bits of exponent and 7 of mantissa: the first half of a float."""

X86_EXTENDED_BYTES = 10
"""Bytes of an x86 long double that carry its value; the rest of its 16 is padding."""


@dataclass(frozen=True)
class Datatype:
    """An element type, under the names that ``-T``, MPI and NumPy give it.

    ``code`` is the `struct` code of one component, or one that `struct` lacks: ``g`` is a long
    double, `BRAIN` a bfloat16. ``components`` is 2 for complex numbers, and every integer up to
    ``largest`` is represented exactly. ``moved_as`` is MPI's name of elements of the same size, for
    libraries without these: they can be sent by it, but not added; ``dtype`` then only has the
    size, for NumPy lacks these elements.
    """

    name: str
    mpi: str
    dtype: str
    code: str
    largest: int
    components: int = 1
    moved_as: str = ""

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

HALF = Datatype("float16", "FLOAT16_T", "float16", "e", 2**11)

NARROW = (
    HALF,
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
